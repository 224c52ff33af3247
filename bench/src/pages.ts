/**
 * Pages that quote measured figures: docs/benchmarks.md as a whole, and marked blocks of README.md, docs/why-not.md and
 * docs/reliability.md. `npm run docs` makes them from the results files; a test fails when one differs.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bullet, formatMarkdown, formatSection, formatTarget, formatValue, summaryOf } from './format.ts'
import { ROOT } from './programs.ts'
import { measureOf, RESULTS_FILE, type RecordedRun, type Results, readResults, writeResults } from './results.ts'
import type { Measure } from './verdict.ts'
import { type WhyNot, whyNotCells, whyNotLines } from './why-not/results.ts'

/** Kinds of recorded test runs, in the order of docs/reliability.md: one file of docs/results each, newest run first. */
const RUN_FILES = [
  'seeds',
  'whole-nodes',
  'defects',
  'coverage',
  'chaos',
  'chaos-fabric',
  'bookers',
  'fabric-model',
  'soak-queue',
] as const
type RunFile = (typeof RUN_FILES)[number]

export type RunLog = { readonly kind: string; readonly runs: readonly RecordedRun[] }

/** Records the figures of a benchmark and renews every page. */
export function writeBenchmark(part: Partial<Results>): void {
  writeResults(part)
  for (const [file, text] of Object.entries(pages())) writeFileSync(join(ROOT, file), text)
}

/** Puts a run in front of those of its kind and renews every page. */
export function writeRun(name: RunFile, run: RecordedRun): void {
  const file = join(ROOT, `docs/results/${name}.json`)
  const { kind, runs } = JSON.parse(readFileSync(file, 'utf8')) as RunLog
  writeFileSync(file, `${JSON.stringify({ kind, runs: [run, ...runs] }, null, 2)}\n`)
  writeBenchmark({})
}

/** Every page by its path, with the figures of the results files. */
export function pages(): { readonly [file: string]: string } {
  const results = readResults()
  return {
    'docs/benchmarks.md': benchmarksPage(results),
    'README.md': withBlock(textOf('README.md'), 'figures', readmeFigures(results)),
    'docs/why-not.md': withBlock(
      withBlock(textOf('docs/why-not.md'), 'systems', systemsTable(results.whyNot)),
      'figures',
      comparedFigures(results),
    ),
    'docs/reliability.md': withBlock(textOf('docs/reliability.md'), 'runs', runsTable(readRunLogs())),
  }
}

const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8')

/** The page with this text between the two marks of a block. */
export function withBlock(page: string, name: string, text: string): string {
  const begin = new RegExp(`^<!-- ${name}: .*-->$`, 'm').exec(page)
  const end = page.indexOf(`<!-- end of ${name} -->`)
  if (begin === null || end < begin.index) throw new Error(`the page has no block "${name}"`)
  return `${page.slice(0, begin.index + begin[0].length)}\n\n${text.trim()}\n\n${page.slice(end)}`
}

function benchmarksPage(results: Results): string {
  const { report, failover, replicated, compare, queue, fabric, stays, starts, runs } = results
  return [
    '# Benchmarks',
    `<!-- Generated from ${RESULTS_FILE} by \`npm run docs\`. Run the benchmark instead of editing. -->`,
    'What was measured, where, and which targets are missed. Each part names the commit that it was measured at.',
    formatMarkdown(report),
    '## A shard',
    'What several nodes add to these figures, and what they cost.',
    ...[failover, replicated, compare].map(formatSection),
    ...(queue === undefined
      ? []
      : ['## Jobs', 'What accepting a job durably and delivering it costs.', formatSection(queue)]),
    ...(fabric === undefined
      ? []
      : ['## The fabric', 'What routers and bridges cost for each request.', formatSection(fabric)]),
    ...(stays === undefined
      ? []
      : ['## Stays', 'What booking all nights of a stay at once costs.', formatSection(stays)]),
    ...(starts === undefined
      ? []
      : ['## Starts of programs', 'What the bundles of programs save.', formatSection(starts)]),
    '## Other runs',
    'Kept as sentences by the person who ran them.',
    ...runs.map(recordedRun),
  ]
    .map((block) => `${block.trim()}\n`)
    .join('\n')
}

function recordedRun({ title, command, date, commit, lines }: RecordedRun): string {
  return [`### ${title}`, `\`${command}\`, ${date}, ${commitText(commit)}:`, lines.map(bullet).join('\n')].join('\n\n')
}

const commitText = (commit: string | undefined): string =>
  commit === undefined ? 'commit not recorded' : `commit ${commit}`

function readmeFigures(results: Results): string {
  const { report, failover, replicated } = results
  const { startedAt, machine } = report
  const at = (id: number, name: string) => measureOf(report, id, name)
  const killed = (name: string) => measureOf(failover, 1, name)
  const missed = missedLines(results)
  return [
    `Recorded on ${startedAt.slice(0, 10)} at commit ${machine.commit}: ${report.packages.toLocaleString('en')} packages, ${machine.cores} cores\n(${machine.cpu}), load generator on the same cores. The shard was recorded at commit ${failover.machine.commit} (failover) and\n${replicated.machine.commit} (writes).`,
    table(
      ['What', 'Measured', 'Target', ''],
      [
        row('Search, 20,000/s on 1,000 connections, 300 hits, p50', at(4, 'p50')),
        row('The same, p99', at(4, 'p99')),
        row('Peak of such searches, 20 KB each, 2 serving threads', at(7, '300 hits, 20 KB')),
        row('Peak of selective searches, 2 KB each', at(7, 'selective, 2 KB')),
        row('Durable write, 50,000/s beside the searches, p50', at(15, 'updates p50')),
        row('p99 of searches beside these writes', at(15, 'searches p99')),
        row('Start until serving, from a snapshot', at(12, 'start to active')),
        row('Resident memory after searches', at(1, 'resident after searches')),
        row('Import of grouped CSV, records a second and thread', at(10, 'records, one thread')),
        row('Leader killed: no writes for, p50', killed('no writes, p50')),
        row('Leader killed: no writes for, p99', killed('no writes, p99')),
      ],
    ),
    `Of the ${report.rows.length} targets of one node: ${summaryOf(report)} Every figure that misses its target, shard included:`,
    missed.join('\n'),
    report.notes.join('\n'),
  ].join('\n\n')
}

/** One item for each row with a missed target. */
function missedLines({ report, failover, replicated }: Results): string[] {
  return [...report.rows, ...failover.rows, ...replicated.rows]
    .filter(({ verdict }) => verdict === 'missed')
    .map(({ what, measures }) => {
      const figures = measures
        .filter(({ verdict }) => verdict === 'missed')
        .map((measure) => `${measure.name} ${valueText(measure)} (${targetText(measure)})`)
      return bullet(`${what}: ${figures.join('; ')}`)
    })
}

function comparedFigures({ report, replicated }: Results): string {
  const at = (id: number, name: string) => measureOf(report, id, name)
  const ofShard = (id: number, name: string) => measureOf(replicated, id, name)
  const { machine } = report
  return [
    table(
      ['What', 'Vacancy', 'Minimal program', 'Ratio'],
      [
        compared('Search of 300 hits at 20,000/s, p50', at(4, 'p50')),
        compared('The same, p99', at(4, 'p99')),
        compared('Selective searches a second, one thread', at(5, 'selective, 2 KB: requests')),
        compared('Searches of 300 hits a second, one thread', at(5, '300 hits, 20 KB: requests')),
        compared('Scan of a price column', at(3, 'scan')),
        compared('Commit of one write to the log', at(14, 'commit p50, 1 a group')),
        compared('Import of grouped CSV, one thread', at(10, 'records, one thread')),
        compared('Memory for each package', at(1, 'a package')),
        compared('Peak of writes, standalone node', ofShard(2, 'a node alone')),
        compared('Peak of writes, shard of 3 on the same 2 cores', ofShard(2, 'shard')),
      ],
    ),
    `Recorded at commit ${machine.commit}; the last two rows at commit ${replicated.machine.commit}.`,
  ].join('\n\n')
}

function systemsTable(result: WhyNot): string {
  const { heads, rows } = whyNotCells(result)
  return [table(heads, rows), whyNotLines(result).map(bullet).join('\n')].join('\n\n')
}

const compared = (what: string, measure: Measure): string[] => {
  const { value, unit, baseline } = measure
  if (baseline === undefined) return [what, valueText(measure), 'none', '']
  const ratio = formatValue(baseline.ratio ?? value / baseline.value, '×')
  return [what, valueText(measure), `${baseline.name} ${formatValue(baseline.value, unit)}`, ratio]
}

const row = (what: string, measure: Measure): string[] => {
  const { verdict } = measure
  return [what, valueText(measure), targetText(measure), verdict === 'missed' ? '**missed**' : (verdict ?? '')]
}

const valueText = ({ value, unit }: Measure): string => formatValue(value, unit)
const targetText = ({ target, unit }: Measure): string => (target ? formatTarget(target, unit) : '')

function readRunLogs(): RunLog[] {
  return RUN_FILES.map((name: RunFile) => JSON.parse(textOf(`docs/results/${name}.json`)) as RunLog)
}

/** The newest run of each kind. */
export function runsTable(logs: readonly RunLog[]): string {
  const newest = logs.flatMap(({ kind, runs }) =>
    runs
      .slice(0, 1)
      .map(({ command, date, commit, lines }) => [kind, lines.join(' '), code(command), date, commit ?? '–']),
  )
  return table(['Kind', 'Newest run', 'Command', 'Date', 'Commit'], newest)
}

const code = (text: string) => `\`${text}\``

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(line)].join('\n')
}
