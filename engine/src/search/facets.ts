/**
 * Counts of all matches of a search, by value and by cell of its box (docs/design/search.md#counts). A facet that is
 * counted without its own filter has a pass of its own over the tables, before that of the page.
 */

import { LIMITS } from '@vacancy/shared'
import { SEARCH_FACETS } from '@vacancy/shared/wire'
import { bitmapAddress, isOverflowed } from '../store/bitmaps.ts'
import { compareBytes, NAMES, type NameKind, nameBytes, nameCount } from '../store/dictionary.ts'
import { ATTRIBUTE, ATTRIBUTE_SLOT, type Attribute, PROPERTY, TABLE } from '../store/layout.ts'
import type { Memory } from '../store/store.ts'
import { field, propertyOfRow, rowCountOf } from '../store/table-fields.ts'
import { isUnchanged } from '../store/version.ts'
import type { Merge } from './merge.ts'
import {
  BOX,
  FEATURES_AT,
  LIST_AT,
  LIST_ROWS,
  MATCH,
  MODE,
  PARAMETER,
  SUMS,
  TALLY,
  TALLY_AT,
  TALLY_FLAGS,
  TALLY_WIDE,
  TOTALS_AT,
} from './parameters.ts'
import type { Entry, Pass, Progress, Tally } from './progress.ts'
import type { PageQuery, Search } from './query.ts'
import type { Searcher } from './searcher.ts'

/** Facets of properties, whose values have bitmaps: the facet of an attribute is the bit below it. */
const ATTRIBUTES: readonly { attribute: Attribute; kind: NameKind | undefined; column: number }[] = [
  { attribute: ATTRIBUTE.type, kind: NAMES.type, column: PROPERTY.type },
  { attribute: ATTRIBUTE.category, kind: NAMES.category, column: PROPERTY.category },
  { attribute: ATTRIBUTE.stars, kind: undefined, column: PROPERTY.stars },
  { attribute: ATTRIBUTE.area, kind: NAMES.area, column: PROPERTY.area },
  { attribute: ATTRIBUTE.amenity, kind: NAMES.amenity, column: -1 },
]
const BITMAP_FACETS = 2 ** ATTRIBUTES.length - 1
const STARS_NAMES = Array.from({ length: 6 }, (_, stars) => digitsOf(stars))
const FEATURES = 24
/** Rows that are counted at a time, each with a bit in the memory behind the sums. */
const TALLY_ROWS = 1 << 18
const BITS_BYTES = TALLY_ROWS / 8
const CELL_BYTES = 22
/** Sums, bits and trailers of a search: the values of all facets but totals may be names. */
export const COUNTS_BYTES_MOST =
  SUMS.cells +
  LIMITS.mapCellsMax ** 2 * (SUMS.cellBytes + CELL_BYTES) +
  BITS_BYTES +
  Object.keys(SEARCH_FACETS).length * LIMITS.facetValuesMax * (5 + LIMITS.nameBytesMax)

function isCounted({ facets, columns }: PageQuery): boolean {
  return facets !== 0 || columns !== 0
}

/** Bytes of the sums, which are kept between slices, and of the bits behind them, which are not. */
export function sumsBytes({ page }: Search): number {
  return isCounted(page) ? SUMS.cells + page.columns * page.rows * SUMS.cellBytes : 0
}
export function bitsBytes({ page }: Search): number {
  return (page.facets & BITMAP_FACETS) === 0 ? 0 : BITS_BYTES
}

/** @returns undefined for a search that counts nothing */
export function createTally({ page }: Search): Tally | undefined {
  if (!isCounted(page)) return undefined
  const passes: Pass[] = []
  for (let left = page.disjunctive; left !== 0; left &= left - 1)
    passes.push({ facets: left & -left, without: left & -left })
  passes.push({ facets: page.facets & ~page.disjunctive, without: 0 })
  return { passes, pass: 0, isBegun: false, counts: [], rooms: new Uint32Array(64), results: new Map() }
}

function passOf({ passes, pass }: Tally): Pass {
  return passes[pass] as Pass
}

/** Whether the pass is that of the page. */
export function isLastPass({ tally }: Progress): boolean {
  return !tally || tally.pass === tally.passes.length - 1
}

/** The facets whose filters the current pass leaves out. */
export function leftOut({ tally }: Progress): number {
  return tally ? passOf(tally).without : 0
}

export function countsTotals({ tally }: Progress): boolean {
  return tally !== undefined && (passOf(tally).facets & SEARCH_FACETS.total) !== 0
}

/** What the kernel does with a match of one table. */
export function modeOf(progress: Progress): number {
  if (progress.merge) return MODE.collect
  return isLastPass(progress) ? MODE.pick : MODE.count
}

/** Forgets the sums of the pass before. @param sums their address */
function beginPass({ memory, search }: Searcher, tally: Tally, sums: number): void {
  tally.isBegun = true
  tally.rooms.fill(0)
  const { facets } = passOf(tally)
  for (const { attribute, kind } of ATTRIBUTES) {
    if ((facets & facetOf(attribute)) === 0) continue
    tally.counts[attribute] = new Uint32Array(kind === undefined ? STARS_NAMES.length : nameCount(memory, kind))
  }
  memory.u8.fill(0, sums, sums + sumsBytes(search))
  for (let cell = 0; cell < search.page.columns * search.page.rows; cell++) {
    // No total is as high.
    memory.u8.fill(0xff, sums + SUMS.cells + cell * SUMS.cellBytes, sums + SUMS.cells + cell * SUMS.cellBytes + 8)
  }
}

function facetOf(attribute: Attribute): number {
  return 1 << (attribute - 1)
}

/** Writes what the kernel counts of each match into the parameter block. */
export function planTally({ memory, parameters, search }: Searcher, progress: Progress, sums: number): void {
  const { u32, f64 } = memory
  const { tally, merge } = progress
  const at = (parameters + TALLY_AT) >>> 2
  u32[at + TALLY.flags] = 0
  if (!tally) return
  const { page } = search
  const { facets } = passOf(tally)
  const features = (facets & SEARCH_FACETS.rateFeatures) !== 0 ? TALLY_FLAGS.features : 0
  const others =
    ((facets & BITMAP_FACETS) !== 0 ? TALLY_FLAGS.bits : 0) |
    ((facets & SEARCH_FACETS.total) !== 0 ? TALLY_FLAGS.ranges : 0) |
    (page.columns > 0 && isLastPass(progress) ? TALLY_FLAGS.cells : 0)
  // Of several tables, properties are counted once their matches are merged.
  u32[at + TALLY.flags] = features | (merge ? 0 : others)
  u32[at + TALLY.sums] = sums
  u32[at + TALLY.bounds] = page.totalBounds
  u32[at + TALLY.columns] = page.columns
  u32[at + TALLY.rows] = page.rows
  const wide = parameters + TALLY_AT
  for (let n = 0; n < page.totalBounds; n++) {
    const low = page.bounds[n] >>> 0
    u32[(wide + TALLY_WIDE.bounds + n * 8) >>> 2] = low
    u32[(wide + TALLY_WIDE.bounds + n * 8 + 4) >>> 2] = (page.bounds[n] - low) / 2 ** 32
  }
  const width = page.east - page.west + (page.box === BOX.across ? 360 : 0)
  const height = page.north - page.south
  f64[(wide + TALLY_WIDE.south) / 8] = page.south
  f64[(wide + TALLY_WIDE.west) / 8] = page.west
  f64[(wide + TALLY_WIDE.perLatitude) / 8] = height > 0 ? page.rows / height : 0
  f64[(wide + TALLY_WIDE.perLongitude) / 8] = width > 0 ? page.columns / width : 0
}

/** Begins the current pass, where it is not begun. */
export function openPass(searcher: Searcher, progress: Progress, sums: number): void {
  const { tally } = progress
  if (tally && !tally.isBegun) beginPass(searcher, tally, sums)
}

/** Prepares to count the planned rows of one table. @returns the row to stop at */
export function openRows(
  { memory, parameters, search }: Searcher,
  progress: Progress,
  sums: number,
  stop: number,
): number {
  if (!progress.tally || progress.merge) return stop
  const p = parameters >>> 2
  const first = memory.u32[p + PARAMETER.firstRow] & -128
  return clearBits(memory, parameters, sums + sumsBytes(search), first, Math.min(stop, first + TALLY_ROWS))
}

function clearBits({ u8, u32 }: Memory, parameters: number, bits: number, first: number, stop: number): number {
  const at = (parameters + TALLY_AT) >>> 2
  if ((u32[at + TALLY.flags] & TALLY_FLAGS.bits) === 0) return stop
  u8.fill(0, bits, bits + (((stop - first + 127) >>> 7) << 4))
  u32[at + TALLY.bits] = bits - (first >>> 3)
  return stop
}

/** Counts the matches of one table that the kernel found from its first row on. */
export function closeRows(searcher: Searcher, progress: Progress, sums: number, stop: number): void {
  const { memory, parameters, search } = searcher
  const table = progress.tables[progress.table] as number
  const version = progress.versions[progress.table] as number
  if (!progress.tally || progress.merge) return
  const first = memory.u32[(parameters >>> 2) + PARAMETER.firstRow] & -128
  countValues(searcher, progress.tally, table, version, sums + sumsBytes(search), first, stop)
}

/** Adds the marked rows of [first, stop) to the counts of their values. */
function countValues(
  searcher: Searcher,
  tally: Tally,
  table: number,
  version: number,
  bits: number,
  first: number,
  stop: number,
): void {
  const { memory } = searcher
  const facets = passOf(tally).facets & BITMAP_FACETS
  if (facets === 0 || stop <= first) return
  const hasBitmaps = field(memory, table + TABLE.bitmaps) !== 0
  let withoutBitmaps = 0
  for (const { attribute } of ATTRIBUTES) {
    const isWanted = (facets & facetOf(attribute)) !== 0
    if (isWanted && (!hasBitmaps || isOverflowed(memory, table, attribute))) withoutBitmaps |= facetOf(attribute)
  }
  if (withoutBitmaps !== 0) countByRow(memory, tally, withoutBitmaps, table, bits, first, stop)
  if (facets !== withoutBitmaps) {
    countByBitmap(searcher, tally, facets & ~withoutBitmaps, table, version, bits, first, stop)
  }
}

function countByBitmap(
  { memory, pages }: Searcher,
  tally: Tally,
  facets: number,
  table: number,
  version: number,
  bits: number,
  first: number,
  stop: number,
): void {
  const slots = field(memory, table + TABLE.attributeSlots)
  const end = slots + (field(memory, table + TABLE.attributeMask) + 1) * ATTRIBUTE_SLOT.bytes
  const [bitmaps, stride] = [bitmapAddress(memory, table, 0), bitmapAddress(memory, table, 1)]
  // These belong together only if the table did not change. Their memory is not reused before the search leaves.
  if (!isUnchanged(memory, table, version)) return
  for (let slot = slots; slot < end; slot += ATTRIBUTE_SLOT.bytes) {
    const key = field(memory, slot + ATTRIBUTE_SLOT.key) - 1
    if (key < 0) continue
    const attribute = (key >>> 28) as Attribute
    if (attribute === ATTRIBUTE.alive || (facets & facetOf(attribute)) === 0) continue
    const from = Math.max(first, field(memory, slot + ATTRIBUTE_SLOT.firstRow) & -128)
    const to = Math.min(stop, field(memory, slot + ATTRIBUTE_SLOT.endRow))
    if (from >= to) continue
    const bitmap = bitmaps + field(memory, slot + ATTRIBUTE_SLOT.bitmap) * (stride - bitmaps)
    const found = pages.overlap(bits + ((from - first) >>> 3), bitmap + (from >>> 3), (to - from + 127) >>> 7)
    if (found > 0) add(memory, tally, attribute, key & 0xfff_ffff, found)
  }
}

/** For attributes with more values than bitmaps, and for small tables. */
function countByRow(
  memory: Memory,
  tally: Tally,
  facets: number,
  table: number,
  bits: number,
  first: number,
  stop: number,
): void {
  const columns = ATTRIBUTES.filter(({ attribute, column }) => column >= 0 && (facets & facetOf(attribute)) !== 0)
  const hasAmenities = (facets & SEARCH_FACETS.amenities) !== 0
  for (let group = first; group < stop; group += 32) {
    for (let left = field(memory, bits + ((group - first) >>> 3)); left !== 0; left &= left - 1) {
      const property = propertyOfRow(memory, table, group + 31 - Math.clz32(left & -left))
      if (property === 0) continue
      for (const { attribute, column } of columns) add(memory, tally, attribute, field(memory, property + column), 1)
      if (!hasAmenities) continue
      const amenities = field(memory, property + PROPERTY.amenities)
      const held = amenities === 0 ? 0 : field(memory, amenities)
      for (let n = 1; n <= held; n++) add(memory, tally, ATTRIBUTE.amenity, field(memory, amenities + n * 4), 1)
    }
  }
}

function add(memory: Memory, tally: Tally, attribute: Attribute, value: number, found: number): void {
  let counts = tally.counts[attribute] as Uint32Array<ArrayBuffer>
  if (value >= counts.length) {
    const kind = ATTRIBUTES.find((each) => each.attribute === attribute)?.kind
    const names = kind === undefined ? STARS_NAMES.length : nameCount(memory, kind)
    // A name that was added since the pass began; anything else is of memory that is being changed.
    if (value >= names) return
    const grown = new Uint32Array(names)
    grown.set(counts)
    counts = grown
    tally.counts[attribute] = counts
  }
  counts[value] += found
}

/** Adds what the collected matches of a table have to their properties. */
export function mergeSets({ memory, search }: Searcher, progress: Progress, at: number, count: number): void {
  const { tally, merge } = progress
  if (!tally || !merge) return
  const { u32, f64 } = memory
  const { page } = search
  const { facets } = passOf(tally)
  const hasFeatures = (facets & SEARCH_FACETS.rateFeatures) !== 0
  const hasRanges = (facets & SEARCH_FACETS.total) !== 0
  const { features, ranges, totals } = merge
  const { bounds, totalBounds } = page
  const step = matchBytes(progress) >>> 2
  const places = totals.length
  let known = 0
  for (let i = 0, cell = at >>> 2; i < count; i++, cell += step) {
    const place = u32[cell + MATCH.place / 4]
    if (place >= places) continue
    known++
    if (hasFeatures) features[place] = features[place] | u32[cell + MATCH.features / 4]
    if (!hasRanges) continue
    const total = f64[cell >>> 1]
    let range = 0
    while (range < totalBounds && total >= bounds[range]) range++
    if (range === 0) features[place] = features[place] | LOWEST_RANGE
    else ranges[place] = ranges[place] | (1 << (range - 1))
  }
  tally.rooms[progress.table] = tally.rooms[progress.table] + known
}
/** Bit beside the features of a property: a total below all bounds. The other ranges fill a mask of their own. */
const LOWEST_RANGE = 1 << FEATURES

/** Bytes of a collected match. */
export function matchBytes({ tally }: Progress): number {
  const hasFeatures = tally && (passOf(tally).facets & SEARCH_FACETS.rateFeatures) !== 0
  return hasFeatures ? MATCH.bytesWithFeatures : MATCH.bytes
}

/** Counts the properties that were found in several tables. */
function countMerged(searcher: Searcher, progress: Progress, tally: Tally, merge: Merge, sums: number): void {
  const { memory, parameters, search } = searcher
  const { u32 } = memory
  const { facets } = passOf(tally)
  const table = progress.propertyTable
  const rows = rowCountOf(memory, table)
  u32[(parameters >>> 2) + PARAMETER.rowProperties] = field(memory, table + TABLE.rowProperties)
  planTally(searcher, { ...progress, merge: undefined }, sums)
  const flags = (parameters + TALLY_AT) >>> 2
  u32[flags] = u32[flags] & ~TALLY_FLAGS.ranges
  const bits = sums + sumsBytes(search)
  for (let first = 0; first < rows && u32[flags] !== 0; first += TALLY_ROWS) {
    const stop = clearBits(memory, parameters, bits, first, Math.min(rows, first + TALLY_ROWS))
    tallyProperties(searcher, merge, first, stop)
    countValues(searcher, tally, table, progress.propertyVersion, bits, first, stop)
  }
  if ((facets & SEARCH_FACETS.total) === 0) return
  const ranges = (sums + SUMS.ranges) >>> 2
  const increment = (range: number) => {
    u32[ranges + range] = u32[ranges + range] + 1
  }
  for (let i = 0; i < merge.count; i++) {
    const row = merge.touched[i]
    if ((merge.features[row] & LOWEST_RANGE) !== 0) increment(0)
    for (let left = merge.ranges[row]; left !== 0; left &= left - 1) increment(32 - Math.clz32(left & -left))
  }
}

/** Gives the merged properties in these rows of their table to the kernel, a list at a time. */
function tallyProperties({ memory, parameters, pages }: Searcher, merge: Merge, first: number, stop: number): void {
  const { u32, f64 } = memory
  const list = (parameters + LIST_AT) >>> 2
  const totals = (parameters + TOTALS_AT) / 8
  const features = (parameters + FEATURES_AT) >>> 2
  let listed = 0
  for (let i = 0; i < merge.count; i++) {
    const row = merge.touched[i]
    if (row < first || row >= stop) continue
    u32[list + listed] = row
    f64[totals + listed] = merge.totals[row]
    u32[features + listed] = merge.features[row] ?? 0
    if (++listed < LIST_ROWS) continue
    pages.tally(parameters, listed)
    listed = 0
  }
  if (listed > 0) pages.tally(parameters, listed)
}

/** Keeps the counts of a pass whose rows are read. @returns whether another one follows */
export function closePass(searcher: Searcher, progress: Progress, sums: number): boolean {
  const { tally, merge } = progress
  if (!tally) return false
  if (merge && progress.propertyTable !== 0) countMerged(searcher, progress, tally, merge, sums)
  for (let left = passOf(tally).facets; left !== 0; left &= left - 1) {
    const facet = left & -left
    tally.results.set(facet, entriesOf(searcher, progress, tally, facet, sums))
  }
  if (isLastPass(progress)) return false
  tally.pass++
  tally.isBegun = false
  return true
}

/** The text of a number. */
function digitsOf(value: number): Uint8Array {
  const text = String(value)
  const bytes = new Uint8Array(text.length)
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i)
  return bytes
}

/** The values with matches, the most frequent ones first. */
function entriesOf(searcher: Searcher, progress: Progress, tally: Tally, facet: number, sums: number): Entry[] {
  const { memory, search, values } = searcher
  const { page } = search
  const { u32 } = memory
  if (facet === SEARCH_FACETS.total) {
    const countOf = (n: number) => u32[((sums + SUMS.ranges) >>> 2) + n]
    const bounds = [0, ...page.bounds.subarray(0, page.totalBounds)]
    return bounds.map((bound, n) => ({ value: digitsOf(bound), count: countOf(n) }))
  }
  const entries: Entry[] = []
  const add = (value: Uint8Array, count: number) => {
    if (count > 0) entries.push({ value, count })
  }
  if (facet === SEARCH_FACETS.rateFeatures) {
    const counts = (sums + SUMS.features) >>> 2
    for (let n = 0; n < values.featureNames.length; n++) add(values.featureNames[n] as Uint8Array, u32[counts + n])
  } else if (facet === SEARCH_FACETS.roomType) {
    for (const [n, table] of progress.tables.entries()) {
      add(nameBytes(memory, NAMES.roomType, field(memory, table + TABLE.roomType)), tally.rooms[n])
    }
  } else {
    const { attribute, kind } = ATTRIBUTES[31 - Math.clz32(facet)] as (typeof ATTRIBUTES)[number]
    const counts = tally.counts[attribute] as Uint32Array
    for (let n = 0; n < counts.length; n++) {
      if (counts[n] === 0) continue
      add(kind === undefined ? (STARS_NAMES[n] as Uint8Array) : nameBytes(memory, kind, n), counts[n])
    }
  }
  entries.sort((a, b) => b.count - a.count || compareBytes(a.value, b.value))
  return entries.length > page.facetValues ? entries.slice(0, page.facetValues) : entries
}

/** Counts by value: of each facet its bit, u16 values, and for each u8 length, text and u32 count. */
export function facetsTrailer({ results }: Tally): Uint8Array {
  const facets = [...results].sort(([a], [b]) => a - b)
  const bytes = facets.reduce(
    (sum, [, entries]) => entries.reduce((all, { value }) => all + 5 + value.length, sum + 3),
    0,
  )
  const trailer = new Uint8Array(bytes)
  const view = new DataView(trailer.buffer)
  let at = 0
  for (const [facet, entries] of facets) {
    trailer[at] = 31 - Math.clz32(facet)
    view.setUint16(at + 1, entries.length, true)
    at += 3
    for (const { value, count } of entries) {
      trailer[at] = value.length
      for (let i = 0; i < value.length; i++) trailer[at + 1 + i] = value[i] as number
      view.setUint32(at + 1 + value.length, count, true)
      at += 5 + value.length
    }
  }
  return trailer
}

/** Of each cell with matches: u8 column, u8 row, u32 matches, u64 lowest total, and their mean position as two i32. */
export function cellsTrailer({ memory, search }: Searcher, sums: number): Uint8Array {
  const { page } = search
  const view = new DataView(memory.buffer)
  const trailer = new Uint8Array(page.columns * page.rows * CELL_BYTES)
  const to = new DataView(trailer.buffer)
  let at = 0
  for (let cell = 0; cell < page.columns * page.rows; cell++) {
    const from = sums + SUMS.cells + cell * SUMS.cellBytes
    const count = view.getUint32(from + 24, true)
    if (count === 0) continue
    to.setUint8(at, cell % page.columns)
    to.setUint8(at + 1, Math.floor(cell / page.columns))
    to.setUint32(at + 2, count, true)
    to.setBigUint64(at + 6, search.nights === 0 ? 2n ** 64n - 1n : view.getBigUint64(from, true), true)
    to.setInt32(at + 14, Math.round(Number(view.getBigInt64(from + 8, true)) / count), true)
    const longitude = Math.round(page.west * 1e6 + Number(view.getBigInt64(from + 16, true)) / count)
    // 180 and -180 degrees are one meridian: east of it, the negative one.
    const isPast = longitude > 180e6 || (longitude === 180e6 && page.west === 180)
    to.setInt32(at + 18, isPast ? longitude - 360e6 : longitude, true)
    at += CELL_BYTES
  }
  return trailer.subarray(0, at)
}
