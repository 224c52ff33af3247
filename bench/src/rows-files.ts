/** Rows 1 and 10 to 12: memory, import and snapshot of a whole data set. */
import { join } from 'node:path'
import { countLines } from './baselines.ts'
import {
  type Bench,
  dataOf,
  type Figures,
  figure,
  figuresOf,
  measureLoad,
  nodeOf,
  requestsOf,
  seedOf,
  sendersFor,
  serverOf,
} from './bench.ts'
import { metric } from './metrics.ts'
import { residentBytes } from './process-memory.ts'
import { metricsOf } from './running-node.ts'
import { judged, type Measure, part } from './verdict.ts'

/** What the targets are stated for. */
const PACKAGES = 60_000_000
const THREADS = 2

/** Row 1: 9.5 bytes a package and 80 MB for the process, after a load of searches on a node that has just started. */
export async function memoryRow(bench: Bench): Promise<Measure[]> {
  const { packages, warmupMs, memoryRunMs } = bench.size
  const node = await nodeOf(bench, THREADS)
  const pid = node.program.pid
  const loaded = residentBytes(pid)
  bench.say(`searching for ${memoryRunMs / 1000} s before memory is read`)
  await measureLoad(serverOf(node), {
    processes: sendersFor(bench, THREADS),
    warmupMs,
    runMs: memoryRunMs,
    // As many as go through: what threads keep follows from the number of searches, not from the time they take.
    streams: [
      {
        name: 'searches',
        pacing: { kind: 'closed', pipelining: 1 },
        connections: 200,
        ...(await requestsOf(bench, 'broad')),
      },
    ],
  })
  const { resident, anonymous, file } = residentBytes(pid)
  const samples = await metricsOf(node)
  const used = (kind: string) => metric(samples, 'vacancy_memory_bytes', { kind }) ?? Number.NaN
  const data = used('packages') + used('indexes')
  const megabytes = (name: string, bytes: number): Measure => ({ name, value: bytes / 1e6, unit: 'MB' })
  return [
    judged({ ...megabytes('resident after searches', resident), target: { atMost: (packages * 9.5 + 80e6) / 1e6 } }),
    megabytes('of it data', data),
    megabytes('of it heaps, stacks and slabs', anonymous - data),
    megabytes('of it pages of files', file),
    megabytes('resident after loading', loaded.resident),
    { name: 'a package', value: resident / packages, unit: 'B' },
  ]
}

const SNAPSHOT_BENCH = 'engine/src/snapshot/snapshot.bench.ts'
const IMPORT_BENCH = 'engine/src/import/import.bench.ts'

/** Row 10: CSV to words, a file in which rows lie together. */
export async function groupedImportRow(bench: Bench): Promise<Measure[]> {
  const { dir } = await dataOf(bench, 'random')
  const file = join(dir, 'packages.csv')
  const newlines = (await newlinesPerSecond(file)) / 1e6
  const figures = await figuresOf(bench, IMPORT_BENCH, ['--input', dir])
  const one = figure(figures, 'records/s, one thread') / 1e6
  const two = figure(figures, 'records/s, two threads') / 1e6
  const { summary } = await seedOf(bench, 'random')
  const whole = Number(summary['recordsPerSecond'])
  return [
    judged({
      name: 'records, one thread',
      value: one,
      unit: 'M/s',
      target: { atLeast: 20 },
      baseline: { name: 'newlines', value: newlines },
    }),
    judged({ name: 'share of counting newlines', value: (100 * one) / newlines, unit: '%', target: { atLeast: 35 } }),
    judged({ name: 'two threads over one', value: two / one, unit: '×', target: { atLeast: 1.8 } }),
    { name: 'build-snapshot as a whole', value: whole / 1e6, unit: 'M/s' },
  ]
}

/** The best of a few rounds; in the first the file may still come from the disk. */
async function newlinesPerSecond(file: string): Promise<number> {
  let best = 0
  for (let round = 0; round < 3; round++) {
    const { lines, seconds } = await countLines(file)
    best = Math.max(best, lines / seconds)
  }
  return best
}

/** Row 11: the same from a file in no order. */
export async function shuffledImportRow(bench: Bench): Promise<Measure[]> {
  const { dir } = await dataOf(bench, 'shuffled')
  const figures = await figuresOf(bench, IMPORT_BENCH, ['--input', dir])
  const value = figure(figures, 'records/s, one thread') / 1e6
  return [judged({ name: 'records, one thread', value, unit: 'M/s', target: { atLeast: 4 } })]
}

/** Row 12: size of a snapshot, time to write and to load it, time to start from it. */
export async function snapshotRow(bench: Bench): Promise<Measure[]> {
  const { packages } = bench.size
  const constant = await seedOf(bench, 'constant')
  const random = await seedOf(bench, 'random')
  const node = await nodeOf(bench, THREADS)
  return [
    judged({
      name: 'size, constant nights',
      value: constant.bytes / 1e6,
      unit: 'MB',
      target: { atMost: (1.5 * packages) / PACKAGES },
    }),
    judged({
      name: 'size, random nights',
      value: random.bytes / packages,
      unit: 'B',
      target: { atMost: 1.65 },
      why: 'bytes a package',
    }),
    judged({ name: 'start to active', value: node.startMs / 1000, unit: 's', target: { atMost: 2 } }),
    ...(await part('write and load', async () =>
      snapshotTimes(await figuresOf(bench, SNAPSHOT_BENCH, ['--dir', bench.dir])),
    )),
  ]
}

function snapshotTimes(figures: Figures): Measure[] {
  const scale = figure(figures, 'packages') / PACKAGES
  return (['constant', 'random'] as const).flatMap((nights) => [
    judged({
      name: `write, ${nights} nights`,
      value: figure(figures, `write, ${nights} nights`),
      unit: 's',
      target: { atMost: 0.5 * scale },
    }),
    judged({
      name: `load, ${nights} nights`,
      value: figure(figures, `load, ${nights} nights`),
      unit: 's',
      target: { atMost: 0.6 * scale },
    }),
  ])
}
