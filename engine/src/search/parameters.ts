/**
 * The parameter block of a search: written by the plan and read by the kernels (docs/design/search.md#kernels). It is
 * at the start of a reader's scratch area, in the memory of the store. The AssemblyScript kernel repeats these
 * numbers, and is not used if the sizes differ (threads/kernels.ts).
 *
 * Cells are 32-bit, by index; lists are byte offsets. "Address" means a byte offset in the memory.
 */

import { assert, LIMITS } from '@vacancy/shared'
import { COLUMNS_MAX } from './columns.as.ts'

export const PARAMETER = {
  firstRow: 0,
  endRow: 1,
  rowProperties: 2,
  rowIds: 3,
  /** Nights of the stay; 0 for a search of properties only. */
  nights: 4,
  limit: 5,
  minAvailability: 6,
  /** Required features at their position in the word: bit 8 + i. */
  features: 7,
  /** Bounds of the inverted price, both included: `~maxPrice` and `~minPrice`. */
  invertedMin: 8,
  invertedMax: 9,
  bitmaps: 10,
  /** Columns of the property whose value must lie in a range, for filters without a bitmap: column, least, greatest. */
  columns: 11,
  amenities: 12,
  hasPosition: 13,
  out: 14,
  outEnd: 15,
  /** Id of the first reply field of the first hit. */
  fieldId: 16,
  // Results
  hits: 17,
  written: 18,
  examined: 19,
  /** The row to continue with when the output was full; endRow when the search is complete. */
  nextRow: 20,
  /** 1: the planes of rooms left filter the rows before any word is read. */
  narrowByAvailable: 21,
} as const

/** Four doubles: x, y, z of the point and the greatest squared chord. */
export const POSITION_AT = 88
export const BITMAPS_AT = 128
export const BITMAPS_MAX = 72
export const COLUMNS_AT = BITMAPS_AT + BITMAPS_MAX * 4
export const COLUMN_BYTES = 12
export const AMENITIES_AT = COLUMNS_AT + COLUMNS_MAX * COLUMN_BYTES
/** Address of the words of each night, and of its bits of rooms left. */
export const PLANES_AT = AMENITIES_AT + LIMITS.amenitiesMax * 4
export const AVAILABLE_AT = PLANES_AT + LIMITS.datesInQueryMax * 4
/** The packed date of each night, u16. */
export const DATES_AT = AVAILABLE_AT + LIMITS.datesInQueryMax * 4
export const LIST_AT = (DATES_AT + LIMITS.datesInQueryMax * 2 + 15) & ~15
export const LIST_ROWS = 512
export const PARAMETER_BYTES = LIST_AT + LIST_ROWS * 4

/** Bytes of one hit: the id field, and the field of days when there are nights. */
export function hitBytes(nights: number): number {
  return nights === 0 ? 23 : 23 + 9 + 11 * nights
}

/** Runs one search over a parameter block; writes the hits in wire format and the results into the block. */
export type SearchKernel = (parameters: number) => void

assert(PARAMETER_BYTES <= 8192, 'the parameter block has a page of its own')
assert(POSITION_AT % 8 === 0 && PARAMETER.narrowByAvailable * 4 < POSITION_AT, 'cells and doubles do not overlap')
