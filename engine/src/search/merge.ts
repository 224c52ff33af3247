/** The cheapest room of each property over several tables, by the row of the property in the table of all properties. */

import type { Memory } from '../store/store.ts'
import { MATCH } from './parameters.ts'

export type Merge = {
  /** Cheapest total; infinite for properties without a match. */
  totals: Float64Array
  /** Row and table of it. */
  rows: Uint32Array
  sources: Uint8Array
  /** Of stays with several arrival days (calendar-merge.ts). */
  stays: Uint32Array
  /** What any of its matches has, where that is counted (facets.ts); else empty. */
  features: Uint32Array
  ranges: Uint32Array
  /** The rows with a match, in no order. */
  touched: Uint32Array
  count: number
}

export function createMerge(): Merge {
  return {
    ...{ totals: new Float64Array(0), rows: new Uint32Array(0), sources: new Uint8Array(0) },
    ...{ stays: new Uint32Array(0), features: new Uint32Array(0), ranges: new Uint32Array(0) },
    ...{ touched: new Uint32Array(0), count: 0 },
  }
}

/** Forgets all matches, and makes room for so many properties; with `hasSets` also for what any of their matches has. */
export function resetMerge(merge: Merge, properties: number, hasSets: boolean): void {
  const { touched, features, ranges } = merge
  for (let i = 0; i < merge.count; i++) merge.totals[touched[i]] = Number.POSITIVE_INFINITY
  for (let i = 0; i < merge.count && features.length > 0; i++) {
    features[touched[i]] = 0
    ranges[touched[i]] = 0
  }
  merge.count = 0
  if (merge.totals.length < properties) {
    merge.totals = new Float64Array(properties).fill(Number.POSITIVE_INFINITY)
    merge.rows = new Uint32Array(properties)
    merge.sources = new Uint8Array(properties)
    merge.touched = new Uint32Array(properties)
  }
  if (!hasSets || features.length >= properties) return
  merge.features = new Uint32Array(merge.totals.length)
  merge.ranges = new Uint32Array(merge.totals.length)
}

/** Takes the matches of a table. Tables come in the order of their names: the first of equal totals stays. */
export function mergeMatches(
  { u32, f64 }: Memory,
  merge: Merge,
  at: number,
  count: number,
  bytes: number,
  source: number,
): void {
  const { totals, rows, sources, touched } = merge
  const known = totals.length
  let found = merge.count
  for (let i = 0, cell = at >>> 2; i < count; i++, cell += bytes >>> 2) {
    const row = u32[cell + MATCH.row / 4]
    const total = f64[cell >>> 1]
    const place = u32[cell + MATCH.place / 4]
    // Beyond them are properties that are newer than the search.
    if (place >= known || total >= totals[place]) continue
    if (totals[place] === Number.POSITIVE_INFINITY) touched[found++] = place
    totals[place] = total
    rows[place] = row
    sources[place] = source
  }
  merge.count = found
}
