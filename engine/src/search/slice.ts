/** How far one slice of a search goes (docs/design/search.md#slices). */

import { PARAMETER } from './parameters.ts'
import type { Searcher } from './searcher.ts'

/**
 * Work of one slice in words: about a quarter of a millisecond. The kernel compares a word in 2 ns; WEIGHT has the
 * cost of other steps.
 */
export const SLICE_WORK = 1 << 17
/** In words: comparing one row with a position, a column of its property, or an amenity. */
const WEIGHT = { position: 8, column: 8, amenity: 16 } as const
/** The kernel processes rows in groups of 128. */
const SLICE_ROWS_MIN = 128

/** Work of one row of the planned search, in words. */
function weightOfRow({ memory, parameters }: Searcher, words: number): number {
  const { u32 } = memory
  const p = parameters >>> 2
  return (
    Math.max(1, words) +
    WEIGHT.position * u32[p + PARAMETER.hasPosition] +
    WEIGHT.column * u32[p + PARAMETER.columns] +
    WEIGHT.amenity * u32[p + PARAMETER.amenities]
  )
}

function nightsOf({ memory, parameters }: Searcher): number {
  return memory.u32[(parameters >>> 2) + PARAMETER.nights]
}

/**
 * @param words compared in each row
 * @returns the end of a slice of so much work of the planned rows; the last slice takes all remaining rows
 */
export function endOfSlice(
  searcher: Searcher,
  planned: number,
  work = searcher.sliceWork,
  words = nightsOf(searcher),
): number {
  const first = searcher.memory.u32[(searcher.parameters >>> 2) + PARAMETER.firstRow]
  if (work === Number.POSITIVE_INFINITY) return planned
  const rows = Math.max(SLICE_ROWS_MIN, Math.floor(work / weightOfRow(searcher, words)))
  // A whole number of kernel groups, so that no group is processed twice.
  return planned - first <= rows ? planned : (first + rows) & -SLICE_ROWS_MIN
}

/** A slice that reached its limit early examined only the rows that the kernel counted. */
export function workDone(searcher: Searcher, stop: number, words = nightsOf(searcher)): number {
  const { u32 } = searcher.memory
  const p = searcher.parameters >>> 2
  const scanned = (stop - u32[p + PARAMETER.firstRow]) >>> 5
  return scanned + u32[p + PARAMETER.examined] * weightOfRow(searcher, words)
}
