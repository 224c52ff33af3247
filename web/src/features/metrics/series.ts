/** Maps the series of the control plane to charts and lines. */

import type { SeriesBody } from '@vacancy/shared/contract'
import { SERIES, type SeriesName } from '@vacancy/shared/series'
import { type ChartSeries, LOOKS, PLAIN } from '../../ui/time-chart-lines.ts'
import type { DashboardChart } from './dashboards.ts'

/** Charts of a shard, one line per node. */
export const SHARD_CHARTS: readonly DashboardChart[] = Object.entries(SERIES).flatMap(([name, series]) =>
  'title' in series ? [{ names: [name as SeriesName], title: series.title, unit: series.unit }] : [],
)

const NATURAL = new Intl.Collator('en', { numeric: true })

/**
 * A look for each node of a shard, the same in all charts and on all pages: n3 has the third, whether or not it is drawn
 * beside n1. Nodes whose names do not end with a number have the first ones that are left.
 */
export function looksOf(nodes: readonly string[]): ReadonlyMap<string, number> {
  const ids = [...new Set(nodes)].sort(NATURAL.compare)
  const looks = new Map<string, number>()
  const taken = new Set<number>()
  const give = (id: string, look: number) => {
    looks.set(id, look)
    taken.add(look)
  }
  for (const id of ids) {
    const look = Number(/\d+$/.exec(id)?.[0] ?? 0) - 1
    if (look >= 0 && look < LOOKS && !taken.has(look)) give(id, look)
  }
  const left = Array.from({ length: LOOKS }, (_, look) => look).filter((look) => !taken.has(look))
  for (const id of ids) if (!looks.has(id)) give(id, left.shift() ?? looks.size % LOOKS)
  return looks
}

/** The first metric of a chart is solid; the others are dashed as the fourth line and those after it. */
const dashOf = (metric: number) => (metric === 0 ? 0 : metric + 2)

/** An axis needs two. */
const STEPS_MIN = 2

/**
 * The series from the first step that has a value of any of them, as `recordedFrom`: what was not recorded yet takes no
 * room.
 */
export function fromFirst(body: SeriesBody): SeriesBody & { readonly recordedFrom?: string } {
  const steps = Math.max(0, ...body.series.map(({ values }) => values.length))
  const isBlank = (at: number) => body.series.every(({ values }) => typeof values[at] !== 'number')
  let known = 0
  while (known < steps && isBlank(known)) known++
  if (known === 0 || known === steps) return body
  const from = new Date(Date.parse(body.from) + known * body.stepSeconds * 1_000).toISOString()
  const coming = Array.from({ length: Math.max(0, STEPS_MIN - (steps - known)) }, () => null)
  const series = body.series.map((one) => ({ ...one, values: [...one.values.slice(known), ...coming] }))
  return { ...body, from, series, recordedFrom: from }
}

/** More lines in one chart cannot be distinguished by eye. */
const LINES_MAX = 6

/**
 * The lines of a chart: one per node, by id, or one for the whole; for several metrics one of each.
 *
 * @param looks those of the nodes
 * @returns the lines to draw, those with the highest values if there are many, and the number of hidden ones
 */
export function linesOf(
  body: SeriesBody,
  names: readonly SeriesName[],
  looks: ReadonlyMap<string, number> = looksOf(nodesOf(body)),
): { readonly lines: readonly ChartSeries[]; readonly hidden: number } {
  const isMany = names.length > 1
  const hasNodes = body.series.some(({ name, node }) => node !== null && names.includes(name as SeriesName))
  const all = names.flatMap((name, metric) =>
    body.series
      .filter((series) => series.name === name)
      .map(({ node, values }): ChartSeries => {
        const label = labelOf(node, isMany ? SERIES[name].label : '')
        if (node === null) return { label, values, ...(hasNodes && { colour: PLAIN, dash: dashOf(metric) }) }
        return { label, values, colour: looks.get(node) ?? 0, ...(isMany && { dash: dashOf(metric) }) }
      })
      .sort((a, b) => (a.label < b.label ? -1 : 1)),
  )
  if (all.length <= LINES_MAX) return { lines: all, hidden: 0 }
  const highest = new Set(all.toSorted((a, b) => top(b.values) - top(a.values)).slice(0, LINES_MAX))
  return { lines: all.filter((line) => highest.has(line)), hidden: all.length - LINES_MAX }
}

export const nodesOf = (body: SeriesBody): readonly string[] => body.series.flatMap(({ node }) => node ?? [])

function labelOf(node: string | null, metric: string): string {
  if (metric === '') return node ?? 'all'
  return node === null ? metric : `${node} ${metric}`
}

function top(values: readonly (number | null)[]): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0)
}

/** Whether Prometheus has a series, too. */
export function hasPromql(name: SeriesName): boolean {
  const series: { readonly unit: string; readonly source?: unknown; readonly promql?: string } = SERIES[name]
  return series.source !== undefined || series.promql !== undefined
}
