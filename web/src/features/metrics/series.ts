/** Maps the series of the control plane to charts and lines. */

import type { SeriesBody } from '@vacancy/shared/contract'
import { SERIES, type SeriesName } from '@vacancy/shared/series'
import type { DashboardChart } from './dashboards.ts'

/** Charts of a shard, one line per node. */
export const SHARD_CHARTS: readonly DashboardChart[] = Object.entries(SERIES).flatMap(([name, series]) =>
  'title' in series ? [{ names: [name as SeriesName], title: series.title, unit: series.unit }] : [],
)

export type Line = { readonly label: string; readonly values: (number | null)[] }

/** More lines in one chart cannot be distinguished by eye. */
const LINES_MAX = 6

/**
 * The lines of a chart: one per node, by id, or one for the whole; for several metrics one of each.
 *
 * @returns the lines to draw, those with the highest values if there are many, and the number of hidden ones
 */
export function linesOf(
  body: SeriesBody,
  names: readonly SeriesName[],
): { readonly lines: readonly Line[]; readonly hidden: number } {
  const all = names.flatMap((name) =>
    body.series
      .filter((series) => series.name === name)
      .map(({ node, values }) => ({ label: labelOf(node, names.length > 1 ? SERIES[name].label : ''), values }))
      .sort((a, b) => (a.label < b.label ? -1 : 1)),
  )
  if (all.length <= LINES_MAX) return { lines: all, hidden: 0 }
  const highest = new Set(all.toSorted((a, b) => top(b.values) - top(a.values)).slice(0, LINES_MAX))
  return { lines: all.filter((line) => highest.has(line)), hidden: all.length - LINES_MAX }
}

function labelOf(node: string | null, metric: string): string {
  if (metric === '') return node ?? 'all'
  return node === null ? metric : `${node} ${metric}`
}

function top(values: readonly (number | null)[]): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0)
}

/**
 * Combines the lines of all shards into one for the cluster.
 *
 * @param combine the reported values of one moment; a moment without values is a gap
 */
export function combined(
  body: SeriesBody,
  name: string,
  combine: (values: readonly number[]) => number,
): (number | null)[] {
  const series = body.series.filter((one) => one.name === name)
  const length = Math.max(0, ...series.map((one) => one.values.length))
  return Array.from({ length }, (_, at) => {
    const values = series.map((one) => one.values[at]).filter((value) => value !== null && value !== undefined)
    return values.length === 0 ? null : combine(values)
  })
}

/** Whether Prometheus has a series, too. */
export function hasPromql(name: SeriesName): boolean {
  const series: { readonly unit: string; readonly source?: unknown; readonly promql?: string } = SERIES[name]
  return series.source !== undefined || series.promql !== undefined
}
