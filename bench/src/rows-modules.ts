/** Rows 2, 3, 13 and 14: measured inside the engine by the benchmarks that stand beside its modules. */
import { readBandwidth, syncLatency } from './baselines.ts'
import { type Bench, figure, figuresOf } from './bench.ts'
import { percentile } from './histogram.ts'
import { judged, type Measure } from './verdict.ts'

const KERNEL_BENCH = 'engine/src/search/kernel.bench.ts'

/** Row 2: one search in the kernel, ordered rows, segment of 25,000, three nights, cold planes. */
export async function kernelRow(bench: Bench): Promise<Measure[]> {
  const figures = await figuresOf(bench, KERNEL_BENCH)
  return [
    judged({
      name: '300 hits',
      value: figure(figures, 'ordered, 300 hits: kernel'),
      unit: 'µs',
      target: { atMost: 16 },
    }),
    judged({
      name: 'selective',
      value: figure(figures, 'ordered, selective: kernel'),
      unit: 'µs',
      target: { atMost: 6 },
    }),
  ]
}

/** Row 3: a scan of 100,000 rows by price alone. */
export async function scanRow(bench: Bench): Promise<Measure[]> {
  const figures = await figuresOf(bench, KERNEL_BENCH)
  const scan = figure(figures, 'price-only scan')
  const read = (await readBandwidth()) / 1e9
  return [
    judged({ name: 'share of read bandwidth', value: (100 * scan) / read, unit: '%', target: { atLeast: 50 } }),
    { name: 'scan', value: scan, unit: 'GB/s', baseline: { name: 'read', value: read } },
    judged({
      name: 'over the TypeScript fallback',
      value: figure(figures, 'price-only scan: kernel over TypeScript'),
      unit: '×',
      target: { atLeast: 3 },
    }),
  ]
}

/** Row 13: what a snapshot costs the writer beside it. */
export async function pauseRow(bench: Bench): Promise<Measure[]> {
  const figures = await figuresOf(bench, 'engine/src/snapshot/snapshot.bench.ts', ['--dir', bench.dir])
  return [
    judged({ name: 'start', value: figure(figures, 'start of a snapshot'), unit: 'ms', target: { atMost: 0.1 } }),
    judged({
      name: 'added to a write, p99',
      value: figure(figures, 'added to a write, p99'),
      unit: 'µs',
      target: { atMost: 30 },
    }),
    judged({
      name: 'added to a write, p99.9',
      value: figure(figures, 'added to a write, p99.9'),
      unit: 'µs',
      target: { atMost: 150 },
    }),
    { name: 'longest delay for spare pages', value: figure(figures, 'longest delay for spare pages'), unit: 'ms' },
  ]
}

/** Entries of a group whose commit is compared with a bare fdatasync: few, as on a quiet node, and many. */
const GROUPS = [1, 100, 5000] as const
/** A little more than an entry, and how often it is synced. */
const SYNC_BYTES = 96
const SYNCS = 500

/** Row 14: a commit beside a bare fdatasync of the same bytes, and what groups of 5,000 carry. */
export async function walRow(bench: Bench): Promise<Measure[]> {
  const figures = await figuresOf(bench, 'engine/src/wal/wal.bench.ts', ['--dir', bench.dir])
  const quiet = percentile(syncLatency({ dir: bench.dir, bytes: SYNC_BYTES, count: SYNCS }), 0.5)
  const commits = GROUPS.map((entries) => {
    const sync = figure(figures, `raw p50, ${entries} a group`)
    return judged({
      name: `commit p50, ${entries} a group`,
      value: figure(figures, `commit p50, ${entries} a group`),
      unit: 'ms',
      target: { atMost: 2 * sync },
      baseline: { name: 'fdatasync', value: sync },
    })
  })
  return [
    ...commits,
    { name: `fdatasync of ${SYNC_BYTES} bytes alone`, value: quiet, unit: 'ms' },
    judged({
      name: 'entries, 5000 a group',
      value: figure(figures, 'entries/s, 5000 a group') / 1e6,
      unit: 'M/s',
      target: { atLeast: 1 },
    }),
  ]
}
