/**
 * Pages that quote measured figures: docs/benchmarks.md as a whole, and marked blocks of README.md, docs/why-not.md and
 * docs/reliability.md. `npm run docs` makes them from the results files; a test fails when one differs.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '@vacancy/shared'
import { bullet, formatMarkdown, formatSection, formatTarget, formatValue, type Report } from './format.ts'
import { ROOT } from './programs.ts'
import { measureOf, RESULTS_FILE, type RecordedRun, type Results, readResults, writeResults } from './results.ts'
import type { Measure } from './verdict.ts'
import { type MeasuredSystem, medianOf, type WhyNot, whyNotCells, whyNotLines } from './why-not/results.ts'

/** Kinds of recorded test runs, in the order of docs/reliability.md: one file of docs/results each. */
const RUN_FILES = [
  'simulation',
  'defects',
  'chaos',
  'chaos-fabric',
  'bookers',
  'fabric-model',
  'kill-queue',
  'failover-queue',
  'soak-queue',
] as const
type RunFile = (typeof RUN_FILES)[number]

export type RunLog = { readonly kind: string; readonly runs: readonly RecordedRun[] }

/** Records the figures of a benchmark and renews every page. */
export function writeBenchmark(part: Partial<Results>): void {
  writeResults(part)
  for (const [file, text] of Object.entries(pages())) writeFileSync(join(ROOT, file), text)
}

/** Puts a run in the place of the last one of its kind and renews every page. */
export function writeRun(name: RunFile, run: RecordedRun): void {
  const file = join(ROOT, `docs/results/${name}.json`)
  const { kind } = JSON.parse(readFileSync(file, 'utf8')) as RunLog
  writeFileSync(file, `${JSON.stringify({ kind, runs: [run] }, null, 2)}\n`)
  writeBenchmark({})
}

/** Every page by its path, with the figures of the results files. */
export function pages(): { readonly [file: string]: string } {
  const results = readResults()
  return {
    'docs/benchmarks.md': benchmarksPage(results),
    'README.md': withBlock(textOf('README.md'), 'figures', readmeFigures(results)),
    'docs/why-not.md': withBlock(textOf('docs/why-not.md'), 'systems', systemsTable(results.whyNot)),
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
  const { report, failover, queue, fabric, stays, writes, lists, decode, idle } = results
  return [
    '# Benchmarks',
    `<!-- Generated from ${RESULTS_FILE} by \`npm run docs\`. Run the benchmark instead of editing. -->`,
    'What was measured, where, and which targets are missed. Each part names its commit. Beside other systems:\n[why-not.md](why-not.md).',
    '## Missed targets',
    'Targets are those that Vacancy was designed for. Of all figures with one, these miss it:',
    missedLines(
      [report, failover, queue, fabric, stays, writes, lists, idle].filter((part) => part !== undefined),
    ).join('\n'),
    formatMarkdown(report),
    formatSection(failover, '## Failover\n\nHow long a shard takes no writes when its leader goes.'),
    formatSection(queue, '## Jobs\n\nWhat accepting a job durably and delivering it costs.'),
    formatSection(fabric, '## The fabric\n\nWhat routers and bridges cost for each request.'),
    formatSection(stays, '## Stays\n\nWhat booking all nights of a stay at once costs.'),
    ...(writes ? [formatSection(writes, '## Durable writes\n\nWhat one write at a time waits for.')] : []),
    ...(lists
      ? [formatSection(lists, '## List pages and calendars\n\nWhat a page of results and its calendar cost.')]
      : []),
    ...(decode ? [formatSection(decode, '## Replies in the client\n\nWhat it costs to read a reply.')] : []),
    ...(idle ? [formatSection(idle, '## At rest\n\nWhat a platform takes while nobody asks for anything.')] : []),
  ]
    .map((block) => `${block.trim()}\n`)
    .join('\n')
}

/** One item for each row with a target that is missed or was not judged. */
function missedLines(parts: readonly Pick<Report, 'rows'>[]): string[] {
  return parts
    .flatMap(({ rows }) => rows)
    .flatMap(({ what, measures, why }) => {
      const figures = measures
        .filter(({ verdict }) => verdict !== undefined && verdict !== 'met')
        .map((measure) => `${measure.name} ${valueText(measure)} (${targetText(measure)})`)
      if (figures.length > 0) return [bullet(`${what}: ${figures.join('; ')}`)]
      return why === undefined ? [] : [bullet(`${what}: not measured, ${why}`)]
    })
}

/** Five figures beside those of other systems. */
function readmeFigures({ report, failover, whyNot }: Results): string {
  const { clients, machine, startedAt, sizes } = whyNot
  const [size] = sizes
  assert(size !== undefined, `${RESULTS_FILE} must have a size of why-not`)
  const { hits, systems, packages } = size
  const rate = (value: number) => formatValue(Math.round(value), '/s')
  const rows: readonly [string, (system: MeasuredSystem) => string][] = [
    [
      `Processor time of a search with ${hits.broad} hits`,
      (system) =>
        formatValue(
          medianOf(system, ({ broad }) => broad.many.cpuMicros ?? broad.many.clientMicros),
          'µs',
        ),
    ],
    [
      `Searches with ${hits.selective} hits, ${clients} clients`,
      (system) => rate(medianOf(system, ({ selective }) => selective.many.perSecond)),
    ],
    [`Durable writes, ${clients} clients`, (system) => rate(medianOf(system, ({ writes }) => writes.many.perSecond))],
    ['Memory of a package', ({ bytesPerPackage }) => formatValue(bytesPerPackage, 'B')],
  ]
  const cells = rows.map(([what, cell]) => [what, ...systems.map((system) => ('runs' in system ? cell(system) : '–'))])
  const killed = valueText(measureOf(failover, 1, 'no writes, p50'))
  const at = (id: number, name: string) => valueText(measureOf(report, id, name))
  const { startedAt: failoverAt, machine: failoverMachine, command } = failover
  return [
    table(
      ['What', ...whyNotCells(size, clients).heads.slice(1)],
      [...cells, ['No writes after the leader is killed, p50', killed, ...systems.slice(1).map(() => '–')]],
    ),
    [
      `- Rows 1 to 4, ${packages.toLocaleString('en')} packages: \`${whyNot.command}\`, ${machine.cores} cores (${shortCpu(machine.cpu)}), ${startedAt.slice(0, 10)}, commit ${machine.commit}.`,
      `- Row 5: \`${command}\`, three nodes on ${failoverMachine.cores} cores, ${failoverAt.slice(0, 10)}, commit ${failoverMachine.commit}.`,
      `- One node with ${report.packages.toLocaleString('en')} packages: ${at(4, 'p50')} at the median of 20,000 searches a second, ${at(7, '300 hits, 20 KB')} at most, ${at(1, 'resident after searches')}.`,
      '- How to read them: [why-not.md](docs/why-not.md). All figures and missed targets: [benchmarks.md](docs/benchmarks.md).',
    ].join('\n'),
  ].join('\n\n')
}

/** Without marks and the number of the model. */
const shortCpu = (cpu: string) => cpu.replaceAll('(R)', '').replace(/ (CPU|Processor).*/, '')

function systemsTable(result: WhyNot): string {
  const tables = result.sizes.map((size) => {
    const { heads, rows } = whyNotCells(size, result.clients)
    return `**${size.packages.toLocaleString('en')} packages**\n\n${table(heads, rows)}`
  })
  return [...tables, whyNotLines(result).map(bullet).join('\n')].join('\n\n')
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
