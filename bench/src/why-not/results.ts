/** Figures of the comparison, as bench/results/latest.json keeps them and docs/why-not.md shows them. */
import { formatValue } from '../format.ts'
import type { Machine } from '../machine.ts'
import { PAGE_STAYS } from '../queries.ts'
import type { SystemName } from './system.ts'

/** Requests a second, latencies in milliseconds, and processor time a request in microseconds. */
export type Rate = {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of the server; absent of a library. */
  readonly cpuMicros?: number
  /** Of the client, which includes a library; absent in results that were recorded without it. */
  readonly clientMicros?: number
}

/** What one round measured of a system. */
export type Figures = {
  readonly broad: { readonly one: Rate; readonly many: Rate }
  readonly selective: { readonly one: Rate; readonly many: Rate }
  /** Pages of the cheapest stays of broad searches; absent in results that were recorded without them. */
  readonly pages?: { readonly one: Rate; readonly many: Rate }
  readonly writes: { readonly one: Rate; readonly many: Rate }
  /** Broad searches of many clients and one client that writes. */
  readonly mixed: { readonly searches: Rate; readonly writes: Rate }
}

export type MeasuredSystem = {
  readonly name: SystemName
  readonly version: string
  readonly loadSeconds: number
  readonly bytesPerPackage: number
  /** One for each round. */
  readonly runs: readonly Figures[]
}
export type SystemResult = MeasuredSystem | { readonly name: SystemName; readonly notMeasured: string }

/** All systems with the same packages. */
export type SizeResult = {
  readonly packages: number
  /** Answers that were compared before anything was measured. */
  readonly compared: number
  /** Mean number of properties in an answer. */
  readonly hits: { readonly broad: number; readonly selective: number }
  readonly systems: readonly SystemResult[]
}

export type WhyNot = {
  readonly command: string
  readonly startedAt: string
  readonly seconds: number
  readonly machine: Machine
  readonly clients: number
  readonly sizes: readonly SizeResult[]
  readonly notes: readonly string[]
}

export const TITLES: Record<SystemName, string> = {
  vacancy: 'Vacancy',
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  redis: 'Redis',
}

/** Median of a figure over the rounds; NaN where a round does not have it. */
export function medianOf({ runs }: MeasuredSystem, figure: (figures: Figures) => number | undefined): number {
  return sortedOf(runs, figure)[(runs.length - 1) >>> 1] ?? Number.NaN
}

function sortedOf(runs: readonly Figures[], figure: (figures: Figures) => number | undefined): number[] {
  return runs.map((figures) => figure(figures) ?? Number.NaN).sort((a, b) => a - b)
}

type Row = readonly [what: string, cell: (system: MeasuredSystem) => string]

/** Medians; of the rate also the lowest and the highest. */
function rateCell(system: MeasuredSystem, of: (figures: Figures) => Rate): string {
  const rates = sortedOf(system.runs, (figures) => of(figures).perSecond)
  const text = (value: number | undefined) => formatValue(Math.round(value ?? Number.NaN), '')
  const ms = (pick: (rate: Rate) => number) =>
    formatValue(
      medianOf(system, (figures) => pick(of(figures))),
      'ms',
    )
  const median = text(medianOf(system, (figures) => of(figures).perSecond))
  const range = rates.length > 1 ? ` (${text(rates[0])}–${text(rates.at(-1))})` : ''
  return `${median}/s${range}, ${ms(({ p50Ms }) => p50Ms)} / ${ms(({ p99Ms }) => p99Ms)}`
}

/** Heads and cells of the table: one column for each system. */
export function whyNotCells({ systems, hits }: SizeResult, clients: number): { heads: string[]; rows: string[][] } {
  const rated = (what: string, of: (figures: Figures) => Rate): Row => [what, (system) => rateCell(system, of)]
  const cost = (what: string, of: (figures: Figures) => Rate): Row[] => {
    const micros = (system: MeasuredSystem, pick: (rate: Rate) => number | undefined) =>
      formatValue(
        medianOf(system, (figures) => pick(of(figures))),
        'µs',
      )
    return [
      [`Processor time ${what}, server`, (system) => micros(system, ({ cpuMicros }) => cpuMicros)],
      ['The same, client', (system) => micros(system, ({ clientMicros }) => clientMicros)],
    ]
  }
  const isPaged = systems.some((system) => 'runs' in system && system.runs.some((figures) => figures.pages))
  const pages = (which: 'one' | 'many', what: string): Row[] =>
    isPaged ? [rated(what, (figures) => figures.pages?.[which] as Rate)] : []
  const rows: Row[] = [
    rated(`Searches of ${hits.broad} hits, 1 client`, ({ broad }) => broad.one),
    rated(`The same, ${clients} clients`, ({ broad }) => broad.many),
    rated(`Searches of ${hits.selective} hits, 1 client`, ({ selective }) => selective.one),
    rated(`The same, ${clients} clients`, ({ selective }) => selective.many),
    ...pages('one', `Pages of the ${PAGE_STAYS} cheapest of ${hits.broad}, 1 client`),
    ...pages('many', `The same, ${clients} clients`),
    rated('Durable writes, 1 client', ({ writes }) => writes.one),
    rated(`The same, ${clients} clients`, ({ writes }) => writes.many),
    rated(`Searches of ${hits.broad} hits, ${clients} clients beside a writer`, ({ mixed }) => mixed.searches),
    rated('Durable writes beside them, 1 client', ({ mixed }) => mixed.writes),
    ...cost(`a search of ${hits.broad} hits`, ({ broad }) => broad.many),
    ...cost(`a search of ${hits.selective} hits`, ({ selective }) => selective.many),
    ...cost('a durable write', ({ writes }) => writes.many),
    ['Bytes a package', ({ bytesPerPackage }) => formatValue(bytesPerPackage, 'B')],
    ['Load', ({ loadSeconds }) => formatValue(loadSeconds, 's')],
  ]
  const heads = systems.map((system) =>
    'runs' in system ? `${TITLES[system.name]} ${system.version}` : TITLES[system.name],
  )
  const cells = rows.map(([what, cell]) => [
    what,
    ...systems.map((system) => ('runs' in system ? cell(system) : 'not measured')),
  ])
  return { heads: ['What', ...heads], rows: cells }
}

const BUSY =
  '**The machine was busy with other work**: figures are low and vary from run to run. Repeat the run on a quiet machine before you rely on them.'

/** Where and when it was measured, and why a system is missing. */
export function whyNotLines({ machine, sizes, startedAt, notes }: WhyNot): string[] {
  const missing = (sizes[0]?.systems ?? []).flatMap((system) =>
    'notMeasured' in system ? [`${TITLES[system.name]} was not measured: ${system.notMeasured}.`] : [],
  )
  const [first] = sizes[0]?.systems.filter((system) => 'runs' in system) ?? []
  const rounds = first?.runs.length ?? 0
  const compared = sizes.reduce((sum, size) => sum + size.compared, 0)
  return [
    `Requests a second, then p50 / p99${rounds > 1 ? `: medians of ${rounds} rounds, in which the systems take turns, with the lowest and the highest rate` : ''}. ${startedAt.slice(0, 10)}, ${machine.cores} cores (${machine.cpu}), clients on the same cores, load ${machine.loadBefore.toFixed(2)} before, commit ${machine.commit}. ${compared.toLocaleString('en')} answers were compared first.`,
    ...(machine.loadBefore > machine.cores ? [BUSY] : []),
    ...missing,
    ...notes,
  ]
}
