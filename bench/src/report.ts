/**
 * `npm run bench`: measures every target of docs/design/testing.md#targets that applies to one node, and reports the
 * verdicts.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EXIT, VacancyError } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { readBandwidth, syncLatency } from './baselines.ts'
import { type Bench, closeBench, createBench, figure, figuresOf, SIZES } from './bench.ts'
import { formatTable, type Report, type RowReport, rowOf } from './format.ts'
import { percentile } from './histogram.ts'
import { describeMachine } from './machine.ts'
import { writeBenchmark } from './pages.ts'
import { ROOT } from './programs.ts'
import { refusePartialWrite } from './results.ts'
import { groupedImportRow, memoryRow, shuffledImportRow, snapshotRow } from './rows-files.ts'
import { echoShareRow, mixedRow, peakRow, regularRow, scalingRow, spikeRow } from './rows-network.ts'
import { judged, type Measure, verdictOf } from './verdict.ts'

const KERNEL_BENCH = 'engine/src/search/kernel.bench.ts'

// Rows 2, 3, 13 and 14 are measured inside the engine by the benchmarks that stand beside its modules.

/** Row 2: one search in the kernel, ordered rows, segment of 25,000, three nights, cold planes. */
async function kernelRow(bench: Bench): Promise<Measure[]> {
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
async function scanRow(bench: Bench): Promise<Measure[]> {
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
async function pauseRow(bench: Bench): Promise<Measure[]> {
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
async function walRow(bench: Bench): Promise<Measure[]> {
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

type Row = {
  /** Number in docs/design/testing.md#targets. */
  id: number
  what: string
  measure(bench: Bench): Promise<Measure[]>
}

/**
 * In the order they are run: a fresh node starts once for the rows with two serving threads and once for those with
 * one. Row 1, which looks at what a node has just loaded, comes first on its node, and row 15, which changes the data,
 * last.
 */
const ROWS: readonly Row[] = [
  { id: 10, what: 'import, grouped file', measure: groupedImportRow },
  { id: 11, what: 'import, shuffled file', measure: shuffledImportRow },
  { id: 12, what: 'snapshot', measure: snapshotRow },
  { id: 1, what: 'resident memory after searches', measure: memoryRow },
  { id: 4, what: '20,000 searches/s, 1,000 connections, 300 hits', measure: regularRow },
  { id: 8, what: 'spike: 2,000 at once on 100 connections', measure: spikeRow },
  { id: 7, what: 'peak, 2 serving threads', measure: peakRow },
  { id: 15, what: 'searches while 50,000 writes/s apply', measure: mixedRow },
  { id: 5, what: 'closed loop, 50 connections, 1 serving thread', measure: echoShareRow },
  { id: 6, what: 'two serving threads over one', measure: scalingRow },
  { id: 2, what: 'search kernel, 25,000 properties, 3 nights', measure: kernelRow },
  { id: 3, what: 'scan of 100,000 rows by price', measure: scanRow },
  { id: 13, what: 'write pause by a snapshot', measure: pauseRow },
  { id: 14, what: 'write-ahead log', measure: walRow },
]

export const reportCommand = defineCommand({
  name: 'bench report',
  component: 'bench',
  summary: 'Measures the targets of one node; prints value, baseline, ratio and verdict of each.',
  flags: {
    quick: { type: 'boolean', summary: '6 million packages, about 3 minutes; else 60 million, about half an hour.' },
    only: { type: 'list', value: '4,8', summary: 'These rows only.' },
    write: { type: 'boolean', summary: 'Records the figures and renews the pages that quote them.' },
    json: { type: 'text', value: 'FILE', summary: 'Writes the report as JSON.' },
    dir: {
      type: 'text',
      default: join(ROOT, '.vacancy/bench'),
      value: 'DIR',
      summary: 'Folder for up to 14 GB of data, on the disk to be measured.',
    },
    keep: { type: 'boolean', summary: 'Leaves the data there.' },
  },
  run: async ({ flags }) => {
    refusePartialWrite(flags)
    const rows = rowsOf(flags.only)
    const say = (text: string) => process.stderr.write(`${text}\n`)
    const bench = createBench({ size: flags.quick ? SIZES.quick : SIZES.full, dir: flags.dir, say })
    try {
      deliver(await measureRows(bench, rows), flags)
    } finally {
      await closeBench(bench, { keep: flags.keep })
    }
    return EXIT.ok
  },
})

/** The requested rows, in the order they are run. */
function rowsOf(only: readonly string[] | undefined): readonly Row[] {
  const unknown = only?.find((id) => !ROWS.some((row) => String(row.id) === id))
  if (unknown === undefined) return ROWS.filter(({ id }) => only?.includes(String(id)) ?? true)
  const ids = ROWS.map(({ id }) => id).toSorted((a, b) => a - b)
  throw new VacancyError('usage_error', { reason: `--only: there is no row ${unknown}; there are ${ids.join(', ')}` })
}

async function measureRows(bench: Bench, rows: readonly Row[]): Promise<Report> {
  const machine = describeMachine()
  const begun = performance.now()
  const startedAt = new Date().toISOString()
  const reports: RowReport[] = []
  for (const row of rows) {
    bench.say(`row ${row.id}: ${row.what}`)
    const rowBegun = performance.now()
    const report = await measureRow(bench, row)
    const seconds = Math.round((performance.now() - rowBegun) / 1000)
    bench.say(`row ${row.id}: ${report.verdict}${report.why ? ` (${report.why})` : ''}, ${seconds} s`)
    reports.push(report)
  }
  return {
    size: bench.size.name,
    packages: bench.size.packages,
    startedAt,
    seconds: (performance.now() - begun) / 1000,
    machine,
    rows: reports.toSorted((a, b) => a.id - b.id),
    notes: bench.notes,
  }
}

/** A row that cannot be measured has a reason. A failed one has missed its target, because the node failed under it. */
async function measureRow(bench: Bench, { id, what, measure }: Row): Promise<RowReport> {
  try {
    const measures = await measure(bench)
    return rowOf(id, what, measures)
  } catch (error) {
    return { id, what, verdict: verdictOf(error), measures: [], why: (error as Error).message }
  }
}

function deliver(report: Report, { write, json }: { write: boolean; json: string | undefined }): void {
  process.stdout.write(formatTable(report))
  if (json) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`)
  if (write) writeBenchmark({ report })
}
