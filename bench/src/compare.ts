/** `npm run bench -- compare`: the figures of a node alone, of this commit and of another one, measured in turn. */

import { join } from 'node:path'
import { EXIT, VacancyError } from '@vacancy/shared'
import { defineCommand, whole } from '@vacancy/shared/node'
import { commitNamed, makeClone } from '@vacancy/testkit/earlier'
import { type Bench, dataOf, measureLoad, requestsOf, SIZES, sendersFor, serverOf } from './bench.ts'
import { failure } from './failure.ts'
import { formatValue, type RowReport, rowOf } from './format.ts'
import { percentile } from './histogram.ts'
import type { Stream } from './load.ts'
import { cpuPressure } from './machine.ts'
import { metric } from './metrics.ts'
import { median } from './pauses.ts'
import { lastJson, ROOT, runProgram } from './programs.ts'
import { dirFlag, RECORD_FLAGS, recordSection, type SectionHead } from './record-section.ts'
import { metricsOf, type RunningNode, startNode, stopNode } from './running-node.ts'
import type { Measure, Unit } from './verdict.ts'

/** Share of the base by which a figure may be worse, beside the spread of the runs. */
const WORSE_SHARE_MAX = 0.05

/** Whether a figure of one commit is worse than that of another one, measured in turn on the same machine. */
export type Compared = {
  name: string
  unit: Unit
  isBetter: 'more' | 'less'
  /** One value a run. */
  base: readonly number[]
  here: readonly number[]
}

/**
 * Half the distance between the quartiles of the noisier side, as a share of its median: how far a median of such runs
 * is off by chance. The extremes of a few runs on a shared machine would excuse everything.
 */
export function spread({ base, here }: Pick<Compared, 'base' | 'here'>): number {
  return Math.max(
    ...[base, here].map((values) => (quartile(values, 0.75) - quartile(values, 0.25)) / 2 / median(values)),
  )
}

/** Between the two nearest values, by their distance. */
function quartile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * share
  const [low, high] = [sorted[Math.floor(place)] ?? Number.NaN, sorted[Math.ceil(place)] ?? Number.NaN]
  return low + (high - low) * (place - Math.floor(place))
}

/** How much worse the median is, as a share of the base; negative when it is better. */
export function worseBy({ isBetter, base, here }: Compared): number {
  const change = median(here) / median(base) - 1
  return isBetter === 'less' ? change : -change
}

/** The row of a figure: missed when it is worse by more than the allowed share and the spread together. */
export function comparedMeasures(compared: Compared): Measure[] {
  const { name, unit, isBetter, base, here } = compared
  const allowed = WORSE_SHARE_MAX + spread(compared)
  const bound = median(base) * (isBetter === 'less' ? 1 + allowed : 1 - allowed)
  const worse = worseBy(compared)
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`
  return [
    {
      name,
      value: median(here),
      unit,
      target: isBetter === 'less' ? { atMost: bound } : { atLeast: bound },
      baseline: { name: 'base', value: median(base) },
      verdict: worse <= allowed ? 'met' : 'missed',
      why: `${percent(Math.abs(worse))} ${worse > 0 ? 'worse' : 'better'}, allowed are ${percent(allowed)}; base ${range(base, unit)}, here ${range(here, unit)}`,
    },
  ]
}

function range(values: readonly number[], unit: Unit): string {
  return [Math.min(...values), Math.max(...values)].map((value) => formatValue(value, unit)).join(' to ')
}

const PACKAGES = 3_000_000
const WARMUP_MS = 1_000
const RUN_MS = 4_000
const THREADS = 1
const FIGURES = {
  'searches of 300 hits, p50': { unit: 'ms', isBetter: 'less' },
  'searches of 300 hits, p99': { unit: 'ms', isBetter: 'less' },
  'selective searches, p50': { unit: 'ms', isBetter: 'less' },
  'selective searches, p99': { unit: 'ms', isBetter: 'less' },
  'peak of searches of 300 hits': { unit: '/s', isBetter: 'more' },
  'peak of selective searches': { unit: '/s', isBetter: 'more' },
  'processor time a search of 300 hits': { unit: 'µs', isBetter: 'less' },
  'processor time a selective search': { unit: 'µs', isBetter: 'less' },
  'peak of writes': { unit: '/s', isBetter: 'more' },
  'processor time a write': { unit: 'µs', isBetter: 'less' },
  'records imported, one thread': { unit: 'M/s', isBetter: 'more' },
  'records imported, build-snapshot as a whole': { unit: 'M/s', isBetter: 'more' },
  'snapshot loaded and log read': { unit: 's', isBetter: 'less' },
  'start to active': { unit: 's', isBetter: 'less' },
  'resident memory after the searches': { unit: 'MB', isBetter: 'less' },
} as const satisfies Record<string, Pick<Compared, 'unit' | 'isBetter'>>
type Figure = keyof typeof FIGURES
export type Figures = Record<Figure, number>

export const compareCommand = defineCommand({
  name: 'bench compare',
  component: 'compare',
  summary: 'Measures a node of this commit and one of another commit in turn; reports what became worse.',
  flags: {
    base: { type: 'text', value: 'REV', required: true, summary: 'The other commit, as git names it.' },
    runs: { ...whole(5, 1, 100), summary: 'Runs of each, in turn.' },
    packages: { ...whole(PACKAGES, 100_000, 60_000_000), summary: 'Size of the data set.' },
    json: RECORD_FLAGS.json,
    dir: dirFlag('compare'),
  },
  run: async ({ flags }) => {
    const base = baseNamed(flags.base)
    const size = { ...SIZES.quick, packages: flags.packages, warmupMs: WARMUP_MS, runMs: RUN_MS }
    const { rows } = await recordSection({ ...flags, write: false }, size, headOf(base, flags), (bench) =>
      measure(bench, base, flags.runs),
    )
    return rows.some(({ verdict }) => verdict === 'missed') ? 1 : EXIT.ok
  },
})

/** @throws usage_error when git knows no such commit */
function baseNamed(name: string): string {
  const commit = commitNamed(name)
  if (commit !== undefined) return commit
  throw new VacancyError('usage_error', { reason: `--base: git knows no commit ${name}` })
}

export type Runs = { base: Figures[]; here: Figures[] }

async function measure(bench: Bench, base: string, count: number): Promise<{ rows: RowReport[]; runs: Runs }> {
  const other = await cloneOf(bench, base)
  const pressure = cpuPressure()
  const runs: Runs = { base: [], here: [] }
  for (let run = 1; run <= count; run++) {
    // The second of two is on the warmer machine: each goes first every other time.
    const order = run % 2 === 1 ? (['base', 'here'] as const) : (['here', 'base'] as const)
    for (const side of order) {
      bench.say(`run ${run} of ${count}: ${side === 'base' ? base.slice(0, 7) : 'this commit'}`)
      runs[side].push(await figuresOfRun(bench, side === 'base' ? other : ROOT))
    }
  }
  bench.notes.push(...pressure().map((note) => `Without the making of the clone: ${note}`))
  return { rows: rowsOf(runs), runs }
}

const headOf = (base: string, { runs, packages }: { runs: number; packages: number }): SectionHead => ({
  name: 'compare',
  title: 'A node alone, before and after',
  command: `npm run bench -- compare --base ${base.slice(0, 7)} --runs ${runs} --packages ${packages}`,
  scope: `${runs} runs of ${base.slice(0, 7)} and of this commit in turn, ${packages.toLocaleString('en')} packages`,
  how: HOW,
})

const HOW = [
  `Each run builds the snapshot, starts a node with it (${THREADS} serving thread), searches, writes, and stops it. The load is the same, made by this commit's generator on the same cores.`,
  'A figure is missed when its median is worse than that of the base by more than 5 % and the spread: half the distance between the quartiles of the noisier side.',
]

/** The other commit with its packages, built as a clone would be. */
async function cloneOf(bench: Bench, commit: string): Promise<string> {
  const folder = join(bench.dir, 'base')
  bench.say(`making a clone of ${commit.slice(0, 7)}`)
  try {
    await makeClone(commit, folder)
  } catch (error) {
    throw failure((error as Error).message, error)
  }
  return folder
}

/** One run over all figures. */
async function figuresOfRun(bench: Bench, root: string): Promise<Figures> {
  const { dir } = await dataOf(bench, 'random')
  const out = join(bench.dir, 'snapshot')
  const printed = await runProgram(
    ['bin/vacancy.mjs', 'build-snapshot', '--shard-id', 'bench', '--input-path', dir].concat([
      '--output-path',
      out,
      '--overwrite',
      '--progress',
      'json',
    ]),
    root,
  )
  const { recordsPerSecond } = lastJson(printed) as { recordsPerSecond: number }
  const imported = lastJson(
    await runProgram(['engine/src/import/import.bench.ts', '--json', '--input', dir], root),
  ) as Record<string, number>
  const node = await startNode({
    dir: join(bench.dir, 'node'),
    seed: join(out, 'seed.snapshot'),
    codecs: join(dir, 'codecs.yml'),
    config: { serving_threads: THREADS, query_limit: 1000 },
    root,
  })
  try {
    return {
      ...(await searchFigures(bench, node)),
      'records imported, one thread': (imported['records/s, one thread'] ?? Number.NaN) / 1e6,
      'records imported, build-snapshot as a whole': recordsPerSecond / 1e6,
      'snapshot loaded and log read': recoverySeconds(node),
      'start to active': node.startMs / 1000,
    }
  } finally {
    const fault = await stopNode(node)
    if (fault) bench.notes.push(fault)
  }
}

/** Read from the node's log, which excludes the start of the process and its threads. */
function recoverySeconds({ program }: RunningNode): number {
  return Number(/"seconds":([0-9.]+)[^\n]*"msg":"active"/.exec(program.streams.stderr)?.[1] ?? Number.NaN)
}

type Loaded = Omit<
  Figures,
  | 'records imported, one thread'
  | 'records imported, build-snapshot as a whole'
  | 'snapshot loaded and log read'
  | 'start to active'
>

async function searchFigures(bench: Bench, node: RunningNode): Promise<Loaded> {
  const [broad, selective] = [await requestsOf(bench, 'broad'), await requestsOf(bench, 'selective')]
  const updates = await requestsOf(bench, 'updates')
  const regular = { pacing: { kind: 'regular', requestsPerSecond: MODERATE }, connections: 100 } as const
  const closed = { pacing: { kind: 'closed', pipelining: 8 }, connections: 64 } as const
  const moderateBroad = await load(bench, node, { name: 'searches', ...regular, ...broad })
  const moderateSelective = await load(bench, node, { name: 'searches', ...regular, ...selective })
  const peakBroad = await load(bench, node, { name: 'searches', ...closed, ...broad })
  const peakSelective = await load(bench, node, { name: 'searches', ...closed, ...selective })
  const memory = metric(await metricsOf(node), 'process_resident_memory_bytes') ?? Number.NaN
  const peakWrites = await load(bench, node, {
    name: 'writes',
    pacing: { kind: 'closed', pipelining: 64 },
    connections: 16,
    batch: 64,
    // A node admits a limited number of requests in 50 ms, and a fast machine reaches it.
    takesRefusals: true,
    frames: updates.frames,
  })
  return {
    'searches of 300 hits, p50': moderateBroad.ms(0.5),
    'searches of 300 hits, p99': moderateBroad.ms(0.99),
    'selective searches, p50': moderateSelective.ms(0.5),
    'selective searches, p99': moderateSelective.ms(0.99),
    'peak of searches of 300 hits': peakBroad.perSecond,
    'peak of selective searches': peakSelective.perSecond,
    'processor time a search of 300 hits': peakBroad.cpuMicros,
    'processor time a selective search': peakSelective.cpuMicros,
    'resident memory after the searches': memory / 1e6,
    'peak of writes': peakWrites.perSecond,
    'processor time a write': peakWrites.cpuMicros,
  }
}

/** A quarter of what one thread carries: nothing queues. */
const MODERATE = 5_000

async function load(
  bench: Bench,
  node: RunningNode,
  stream: Stream,
): Promise<{ ms: (share: number) => number; perSecond: number; cpuMicros: number }> {
  const { warmupMs, runMs } = bench.size
  const how = { processes: sendersFor(bench, THREADS), warmupMs, runMs, streams: [stream] }
  const measured = await measureLoad(serverOf(node), how, true)
  if (measured.void) bench.notes.push(`In one load ${measured.void}: its latencies are too long.`)
  const [only] = measured.streams
  if (!only) throw failure('the load has a stream')
  if (only.refused > 0) {
    const [refused, sent] = [only.refused, only.sent].map((count) => count.toLocaleString('en'))
    bench.notes.push(`In one load ${refused} of ${sent} ${stream.name} were refused with 429. They are not counted.`)
  }
  return {
    ms: (share) => percentile(only.latency, share),
    perSecond: only.perSecond,
    cpuMicros: measured.cpuMicros,
  }
}

const GROUPS: readonly { what: string; figures: readonly Figure[] }[] = [
  {
    what: `searches, ${MODERATE.toLocaleString('en')}/s on 100 connections`,
    figures: [
      'searches of 300 hits, p50',
      'searches of 300 hits, p99',
      'selective searches, p50',
      'selective searches, p99',
    ],
  },
  {
    what: 'peak of searches',
    figures: [
      'peak of searches of 300 hits',
      'peak of selective searches',
      'processor time a search of 300 hits',
      'processor time a selective search',
    ],
  },
  { what: 'writes, each on disk when answered', figures: ['peak of writes', 'processor time a write'] },
  {
    what: 'files',
    figures: [
      'records imported, one thread',
      'records imported, build-snapshot as a whole',
      'snapshot loaded and log read',
      'start to active',
    ],
  },
  { what: 'memory', figures: ['resident memory after the searches'] },
]

/** What every run found, as figures to compare. */
export function rowsOf({ base, here }: Runs): RowReport[] {
  return GROUPS.map(({ what, figures }, i) => {
    const measures = figures.flatMap((name) =>
      comparedMeasures({
        name,
        ...FIGURES[name],
        base: base.map((run) => run[name]),
        here: here.map((run) => run[name]),
      }),
    )
    return rowOf(i + 1, what, measures)
  })
}
