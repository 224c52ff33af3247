/** A report as a table for the terminal and as a page. */
import type { Machine } from './machine.ts'
import { type Measure, type Target, type Unit, type Verdict, worstOf } from './verdict.ts'

export type RowReport = {
  id: number
  what: string
  verdict: Verdict
  measures: Measure[]
  /** Why there are no measures. */
  why?: string
}

/** A row whose verdict is that of its worst measure. */
export function rowOf(id: number, what: string, measures: Measure[]): RowReport {
  return { id, what, verdict: worstOf(measures), measures }
}

export type Report = {
  size: string
  packages: number
  startedAt: string
  seconds: number
  machine: Machine
  rows: RowReport[]
  /** What went wrong beside the rows. */
  notes: string[]
}

/** Rows of another benchmark, shown on the same page. */
export type Section = {
  name: 'failover' | 'compare' | 'decode' | 'lists' | 'queue' | 'fabric' | 'stays' | 'writes' | 'idle'
  title: string
  /** What was typed. */
  command: string
  /** What was measured, in a few words. */
  scope: string
  startedAt: string
  seconds: number
  machine: Machine
  rows: RowReport[]
  notes: string[]
  /** How it is measured, a sentence or two each. */
  how: readonly string[]
}

const COLUMNS = ['', 'figure', 'value', 'target', 'baseline', 'ratio', 'verdict'] as const

/** The whole report for a terminal. */
export function formatTable(report: Report | Section): string {
  const lines = report.rows.map((row) => ({ head: `${row.id}. ${row.what}`, row, cells: row.measures.map(cellsOf) }))
  const cells = [COLUMNS.slice(1), ...lines.flatMap((line) => line.cells)]
  const widths = COLUMNS.slice(1).map((_, column) => Math.max(...cells.map((texts) => texts[column]?.length ?? 0)))
  const aligned = (texts: readonly string[]) =>
    `   ${texts.map((text, column) => pad(text, widths[column] ?? 0, column > 0 && column < 5)).join('  ')}`.trimEnd()
  return [
    headOf(report),
    '',
    aligned(COLUMNS.slice(1)),
    ...lines.flatMap(({ head, row, cells }) => ['', `${head}: ${row.verdict}`, ...cells.map(aligned), ...notesOf(row)]),
    '',
    summaryOf(report),
    ...report.notes,
    '',
  ].join('\n')
}

function pad(text: string, width: number, isNumber: boolean): string {
  return isNumber ? text.padStart(width) : text.padEnd(width)
}

function notesOf(row: RowReport): string[] {
  return whysOf(row).map((why) => `   ${why}`)
}

/** One line for every reason of a row. */
function whysOf(row: RowReport): string[] {
  const ofMeasures = row.measures.flatMap(({ name, why }) => (why ? [`${name}: ${why}`] : []))
  return row.why ? [row.why, ...ofMeasures] : ofMeasures
}

export function formatMarkdown(report: Report): string {
  return `## One node

\`npm run bench -- --write\` measured this part. A baseline is what a bare program does on the same machine in the
same run: an echo with the reply size, counting newlines, fdatasync, reading memory. Trust the ratios before the figures.
Latencies count from the moment a request was intended to be sent.

${figuresOf(report)}

${[...behindLines(report), ''].join('\n')}- Data: ${report.packages.toLocaleString('en')} packages of 60 nights, in segments of 25,000 properties with 4 room types. How load and
  verdicts are made: [testing.md](design/testing.md#benchmarks).
- Row 15: the echo answers both loads at once, each with the length of its replies, on as many threads as the node.
- Memory: every resident page by \`/proc/PID/smaps_rollup\`, right after loading and after a load of searches as dense as
  the node accepts. Data is \`vacancy_memory_bytes\`. Pages of files belong to the Node program; the kernel reclaims them
  when memory is short.
`
}

/** @param heading with what the part is about */
export function formatSection(section: Section, heading = `### ${section.title}`): string {
  return `${heading}

\`${section.command} --write\` measured this part.

${figuresOf(section)}

${[...behindLines(section), ...section.how.map(bullet)].join('\n')}
`
}

/** Where and when, how many targets were met, and the table. */
function figuresOf(report: Report | Section): string {
  return `${headOf(report).split('\n').map(bullet).join('\n')}

${summaryOf(report)}

| # | what | figure | value | target | baseline | ratio | verdict |
|---|---|---|---:|---:|---:|---:|---|
${report.rows.flatMap((row) => markdownRows(row, 'scope' in report)).join('\n')}`
}

function behindLines({ rows, notes }: Pick<Report, 'rows' | 'notes'>): string[] {
  const judged = rows.map((row) => ({ ...row, measures: row.measures.filter(({ verdict }) => verdict !== 'met') }))
  const whys = judged.flatMap((row) => whysOf(row).map((why) => bullet(`${row.id}: ${why}`)))
  return [...whys, ...notes.map(bullet)]
}

const LINE_LENGTH = 138

/** A list item whose lines are no longer than those of the other pages. */
export function bullet(text: string): string {
  const lines = ['-']
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1)} ${word}`
    if (line.length <= LINE_LENGTH) lines[lines.length - 1] = line
    else lines.push(`  ${word}`)
  }
  return lines.join('\n')
}

/** @param isBrief leaves out figures without a target, but for a first one with a baseline */
function markdownRows({ measures: all, ...row }: RowReport, isBrief: boolean): string[] {
  const measures = isBrief ? all.filter(({ target, baseline }, i) => target ?? (i === 0 && baseline)) : all
  if (measures.length === 0 && isBrief && row.why === undefined) return []
  if (measures.length === 0) return [`| ${row.id} | ${row.what} |  |  |  |  |  | **${row.verdict}** |`]
  return measures.map((measure, i) => {
    const cells = cellsOf(measure)
    const verdict = cells.pop() ?? ''
    const start = i === 0 ? [String(row.id), row.what] : ['', '']
    return `| ${[...start, ...cells, verdict === 'missed' ? '**missed**' : verdict].join(' | ')} |`
  })
}

function headOf(report: Report | Section): string {
  const { startedAt, seconds, machine } = report
  const scope =
    'scope' in report ? report.scope : `${report.size} run over ${report.packages.toLocaleString('en')} packages`
  return [
    `${scope}, ${startedAt.slice(0, 10)}, ${Math.round(seconds)} s`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, ${machine.system}, load ${machine.loadBefore.toFixed(2)} before`,
    `Node ${machine.node}, Vacancy ${machine.vacancy} (${machine.commit})`,
  ].join('\n')
}

function summaryOf({ rows }: Pick<Report, 'rows'>): string {
  const count = (verdict: Verdict) => rows.filter((row) => row.verdict === verdict).length
  const judged = `${count('met')} met, ${count('missed')} missed, ${count('not measurable')} not measurable here`
  return count('not measured') === 0 ? `${judged}.` : `${judged}, ${count('not measured')} not measured.`
}

function cellsOf({ name, value, unit, target, baseline, verdict }: Measure): string[] {
  return [
    name,
    formatValue(value, unit),
    target ? formatTarget(target, unit) : '',
    baseline ? `${baseline.name} ${formatValue(baseline.value, unit)}` : '',
    baseline ? formatValue(baseline.ratio ?? value / baseline.value, '×') : '',
    verdict ?? '',
  ]
}

export function formatTarget(target: Target, unit: Unit): string {
  return 'atMost' in target ? `≤ ${formatValue(target.atMost, unit)}` : `≥ ${formatValue(target.atLeast, unit)}`
}

export function formatValue(value: number, unit: Unit): string {
  if (Number.isNaN(value)) return '–'
  const digits = unit === '' || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3
  const number = value.toLocaleString('en', {
    maximumFractionDigits: digits,
    minimumFractionDigits: Math.min(digits, 2),
  })
  if (unit === '') return number
  return unit === '/s' || unit === '×' || unit === '%' ? `${number}${unit === '%' ? ' %' : unit}` : `${number} ${unit}`
}
