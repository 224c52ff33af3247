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
  /** What happens to a match (MODE). */
  mode: 31,
} as const

/**
 * A match is written as a hit, is a candidate of the page, is collected as a record of MATCH, is searched for stays over
 * the block that is the output (calendar-block.as.ts), or is only counted.
 */
export const MODE = { encode: 0, pick: 1, collect: 2, calendar: 3, count: 4 } as const

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
/** Total of each row of the list, u64. */
export const TOTALS_AT = LIST_AT + LIST_ROWS * 4
/** Features that all nights of each row of the list have, u32. */
export const FEATURES_AT = TOTALS_AT + LIST_ROWS * 8
/** Cells of what is counted by index from here; wide values by byte offset. */
export const TALLY_AT = FEATURES_AT + LIST_ROWS * 4
const TALLY_BYTES = 64 + LIMITS.facetBoundsMax * 8
/** Cells of a page by index from here; its wide values by byte offset. */
export const PAGE_AT = TALLY_AT + TALLY_BYTES
const PAGE_BYTES = 168
export const PARAMETER_BYTES = PAGE_AT + PAGE_BYTES

/** Of a search that picks a page. The counts are never reset by a kernel: they add up over slices and tables. */
export const PAGE = {
  matches: 0,
  /** Matches behind the cursor. */
  after: 1,
  /** The search ends at this number of them. */
  stopAfter: 2,
  /** SEARCH_ORDERS. */
  order: 3,
  /** Most entries, their address, and how many there are: a heap with the last one on top, until `sort`. */
  capacity: 4,
  entries: 5,
  size: 6,
  /** 1: totals are computed, and bounded by minTotal and maxTotal. */
  hasTotals: 7,
  /** BOX. */
  box: 8,
  hasCursor: 9,
  /** `emit` writes the entries in [from, to) as hits, and leaves EMITTED records at the start of the entries. */
  from: 10,
  to: 11,
  emitted: 12,
  /** Bytes of a hit in a compact reply, which begins with id and, with `hasTotalValue`, total; 0 for hits in full. */
  stride: 13,
  hasTotalValue: 14,
  /** Results: 1 when the output was too small, or when `stopAfter` was reached. */
  isFull: 15,
  isStopped: 16,
  /** Address of the first bitmap of the position, 0 without: rows outside of the cells of the box are left out at once. */
  positions: 17,
} as const
/**
 * Byte offsets from PAGE_AT: three u64, the id of the cursor as two u64 of big-endian value, four doubles, bytes of a
 * bitmap, and cells of the box as u32: those that it touches, and those within it (`cellsWithin`).
 */
export const PAGE_WIDE = {
  ...{ minTotal: 72, maxTotal: 80, cursorKey: 88, cursorHigh: 96, cursorLow: 104 },
  ...{ south: 112, west: 120, north: 128, east: 136 },
  ...{ positionStride: 144, latitudeCells: 148, longitudeCells: 152, latitudeWithin: 156, longitudeWithin: 160 },
} as const
/** Longitudes from west to east, or past 180 degrees. */
export const BOX = { none: 0, within: 1, across: 2 } as const

/** What is counted of matches; nothing unless a flag is set. */
export const TALLY = {
  flags: 0,
  /** Address of the bit of row 0; the bits begin at the first row of the slice. */
  bits: 1,
  /** Address of SUMS. */
  sums: 2,
  bounds: 3,
  columns: 4,
  rows: 5,
} as const
/** Byte offsets from TALLY_AT: doubles, and the bounds of the total as u64. */
export const TALLY_WIDE = { south: 32, west: 40, perLatitude: 48, perLongitude: 56, bounds: 64 } as const
/** A bit for each row, the rate features, the ranges of the total, the cells of the box. */
export const TALLY_FLAGS = { bits: 1, features: 2, ranges: 4, cells: 8 } as const
/** Counts of features and ranges, u32; of each cell lowest total u64, sums of positions as two i64, matches u32. */
export const SUMS = { features: 0, ranges: 96, cells: 256, cellBytes: 32 } as const

/** An entry of the page: u64 key, the id as two u64 of big-endian value, u32 row, u32 free for the caller. */
export const ENTRY = { bytes: 32, key: 0, high: 8, low: 16, row: 24, source: 28 } as const
/** A hit that `emit` wrote, in the place of an entry. */
export const EMITTED = { total: 0, property: 8, row: 12, source: 16 } as const
/** A collected match: total as a double, u32 row, u32 row of the property in the table of all properties, u32 features if they count. */
export const MATCH = { bytes: 16, total: 0, row: 8, place: 12, features: 16, bytesWithFeatures: 24 } as const

/** Bytes of one hit: the id field, and the field of days when there are nights. */
export function hitBytes(nights: number): number {
  return nights === 0 ? 23 : 23 + 9 + 11 * nights
}

/** Runs one search over a parameter block; writes the hits in wire format and the results into the block. */
export type SearchKernel = (parameters: number) => void

/** The steps of a page after the match. */
export type PageKernel = {
  /** Offers the first `count` rows of the list, with their totals as doubles, to the page. */
  readonly pick: (parameters: number, count: number) => void
  /** Puts the entries in ascending order. */
  readonly sort: (parameters: number) => void
  /** Writes entries as hits. An entry whose words no longer match, or whose key has changed, is left out. */
  readonly emit: (parameters: number) => void
  /** Counts the first `count` rows of the list, with their totals as doubles and features. */
  readonly tally: (parameters: number, count: number) => void
  /** How many bits are set in both, of 128 × `groups`. */
  readonly overlap: (a: number, b: number, groups: number) => number
  /** Writes the arrival days among DAY records as those of a reply. @returns how many have a stay */
  readonly days: (records: number, count: number, to: number) => number
}

assert(PARAMETER_BYTES <= 16_384, 'the parameter block ends before the reply slabs')
assert(
  TALLY_AT % 8 === 0 && TALLY.rows * 4 < TALLY_WIDE.south,
  'wide values of counts are aligned, and behind the cells',
)
assert(TOTALS_AT % 8 === 0 && PAGE.positions * 4 < PAGE_WIDE.minTotal, 'wide values are aligned, and behind the cells')
assert(POSITION_AT % 8 === 0 && PARAMETER.narrowByAvailable * 4 < POSITION_AT, 'cells and doubles do not overlap')
