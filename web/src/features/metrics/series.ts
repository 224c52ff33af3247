/** Series of the control plane as charts: which metrics stand together, and which line is whose. */

import type { SeriesBody } from '@vacancy/shared/contract'
import { SERIES, type SeriesName } from '@vacancy/shared/series'

export type ChartSpec = { readonly name: SeriesName; readonly title: string; readonly unit: string }

/** Charts of a shard, one line a node. */
export const SHARD_CHARTS: readonly ChartSpec[] = Object.entries(SERIES).flatMap(([name, series]) =>
  'title' in series ? [{ name: name as SeriesName, title: series.title, unit: series.unit }] : [],
)

/** Times that are offered; the first is the usual one. */
export const RANGES = ['now-1h', 'now-15m', 'now-6h', 'now-24h'] as const
export const RANGE_SAYS: Record<(typeof RANGES)[number], string> = {
  'now-15m': '15 min',
  'now-1h': '1 h',
  'now-6h': '6 h',
  'now-24h': '24 h',
}

export type Line = { readonly label: string; readonly values: (number | null)[] }

/** More than these in one chart cannot be told apart by eye. */
const LINES_MAX = 6

/**
 * The lines of one metric: one a node, by its id, or one for the whole.
 *
 * @returns the lines to draw, those with the highest values when there are many, and how many were left out
 */
export function linesOf(body: SeriesBody, name: string): { readonly lines: readonly Line[]; readonly leftOut: number } {
  const all = body.series
    .filter((series) => series.name === name)
    .map((series) => ({ label: series.node ?? 'all', values: series.values }))
    .sort((a, b) => (a.label < b.label ? -1 : 1))
  if (all.length <= LINES_MAX) return { lines: all, leftOut: 0 }
  const highest = new Set(all.toSorted((a, b) => top(b.values) - top(a.values)).slice(0, LINES_MAX))
  return { lines: all.filter((line) => highest.has(line)), leftOut: all.length - LINES_MAX }
}

function top(values: readonly (number | null)[]): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0)
}

/** Whether any line has a value at all. */
export function isBlank(lines: readonly Line[]): boolean {
  return lines.every((line) => line.values.every((value) => value === null))
}

/**
 * One line for the whole cluster out of those of its shards.
 *
 * @param combine of the values of one moment that were told; a moment nobody told is a gap
 */
export function combined(
  body: SeriesBody,
  name: string,
  combine: (values: readonly number[]) => number,
): (number | null)[] {
  const series = body.series.filter((one) => one.name === name)
  const length = Math.max(0, ...series.map((one) => one.values.length))
  return Array.from({ length }, (_, at) => {
    const told = series.map((one) => one.values[at]).filter((value) => value !== null && value !== undefined)
    return told.length === 0 ? null : combine(told)
  })
}
