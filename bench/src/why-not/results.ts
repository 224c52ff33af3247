/** Figures of the comparison, as bench/results/latest.json keeps them and docs/why-not.md shows them. */
import { formatValue } from '../format.ts'
import type { Machine } from '../machine.ts'
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

export type Figures = {
  readonly loadSeconds: number
  readonly bytesPerPackage: number
  readonly broad: { readonly one: Rate; readonly many: Rate }
  readonly selective: { readonly one: Rate; readonly many: Rate }
  readonly writes: { readonly one: Rate; readonly many: Rate }
  /** Broad searches of many clients and one client that writes. */
  readonly mixed: { readonly searches: Rate; readonly writes: Rate }
}

export type SystemResult =
  | { readonly name: SystemName; readonly version: string; readonly figures: Figures }
  | { readonly name: SystemName; readonly notMeasured: string }

export type WhyNot = {
  readonly command: string
  readonly startedAt: string
  readonly seconds: number
  readonly machine: Machine
  readonly packages: number
  /** Answers that were compared before anything was measured. */
  readonly compared: number
  /** Mean number of properties in an answer. */
  readonly hits: { readonly broad: number; readonly selective: number }
  readonly clients: number
  readonly systems: readonly SystemResult[]
  readonly notes: readonly string[]
}

export const TITLES: Record<SystemName, string> = {
  vacancy: 'Vacancy',
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  redis: 'Redis',
}

type Row = readonly [what: string, cell: (figures: Figures) => string]

const rate = ({ perSecond, p50Ms, p99Ms }: Rate) =>
  `${formatValue(Math.round(perSecond), '/s')}, ${formatValue(p50Ms, 'ms')} / ${formatValue(p99Ms, 'ms')}`

const cost = ({ cpuMicros, clientMicros }: Rate) =>
  [cpuMicros, clientMicros].flatMap((micros) => (micros === undefined ? [] : [formatValue(micros, 'µs')])).join(' + ')

/** Heads and cells of the table: one column for each system. */
export function whyNotCells({ systems, hits, clients }: WhyNot): { heads: string[]; rows: string[][] } {
  const rows: Row[] = [
    [`Searches of ${hits.broad} hits, 1 client`, ({ broad }) => rate(broad.one)],
    [`The same, ${clients} clients`, ({ broad }) => rate(broad.many)],
    [`Searches of ${hits.selective} hits, 1 client`, ({ selective }) => rate(selective.one)],
    [`The same, ${clients} clients`, ({ selective }) => rate(selective.many)],
    ['Durable writes, 1 client', ({ writes }) => rate(writes.one)],
    [`The same, ${clients} clients`, ({ writes }) => rate(writes.many)],
    [`Searches of ${hits.broad} hits, ${clients} clients beside a writer`, ({ mixed }) => rate(mixed.searches)],
    ['Durable writes beside them, 1 client', ({ mixed }) => rate(mixed.writes)],
    [`Processor time a search of ${hits.broad} hits, server + client`, ({ broad }) => cost(broad.many)],
    [`The same, ${hits.selective} hits`, ({ selective }) => cost(selective.many)],
    ['Bytes a package', ({ bytesPerPackage }) => formatValue(bytesPerPackage, 'B')],
    ['Load', ({ loadSeconds }) => formatValue(loadSeconds, 's')],
  ]
  const heads = systems.map((system) =>
    'figures' in system ? `${TITLES[system.name]} ${system.version}` : TITLES[system.name],
  )
  const cells = rows.map(([what, cell]) => [
    what,
    ...systems.map((system) => ('figures' in system ? cell(system.figures) : 'not measured')),
  ])
  return { heads: ['What', ...heads], rows: cells }
}

const BUSY =
  '**The machine was busy with other work**: figures are low and vary from run to run. Repeat the run on a quiet machine before you rely on them.'

/** Where and when it was measured, and why a system is missing. */
export function whyNotLines(result: WhyNot): string[] {
  const { machine, packages, startedAt, compared } = result
  const missing = result.systems.flatMap((system) =>
    'notMeasured' in system ? [`${TITLES[system.name]} was not measured: ${system.notMeasured}.`] : [],
  )
  return [
    `Requests a second, then p50 / p99. ${packages.toLocaleString('en')} packages, ${startedAt.slice(0, 10)}, ${machine.cores} cores (${machine.cpu}), clients on the same cores, load ${machine.loadBefore.toFixed(2)} before, commit ${machine.commit}. ${compared.toLocaleString('en')} answers were compared first.`,
    ...(machine.loadBefore > machine.cores ? [BUSY] : []),
    ...missing,
    ...result.notes,
  ]
}
