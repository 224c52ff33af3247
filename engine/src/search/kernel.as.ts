// AssemblyScript: the search kernel (docs/design/search.md#kernels), over the parameter block of parameters.ts.
// Compiled without runtime and static data: it works on the store's shared memory at the addresses it is given.

import { calendar, writeDays } from './calendar.as'
import { COLUMNS_MAX } from './columns.as'
import { FLAG_FEATURES, overlapOf, tallyRows } from './tally.as'

// Cells of the parameter block, as byte offsets.
const FIRST_ROW: usize = 0 * 4
const END_ROW: usize = 1 * 4
const ROW_PROPERTIES: usize = 2 * 4
const ROW_IDS: usize = 3 * 4
const NIGHTS: usize = 4 * 4
const LIMIT: usize = 5 * 4
const MIN_AVAILABILITY: usize = 6 * 4
const FEATURES: usize = 7 * 4
const INVERTED_MIN: usize = 8 * 4
const INVERTED_MAX: usize = 9 * 4
const BITMAPS: usize = 10 * 4
const COLUMNS: usize = 11 * 4
const AMENITIES: usize = 12 * 4
const HAS_POSITION: usize = 13 * 4
const OUT: usize = 14 * 4
const OUT_END: usize = 15 * 4
const FIELD_ID: usize = 16 * 4
const HITS: usize = 17 * 4
const WRITTEN: usize = 18 * 4
const EXAMINED: usize = 19 * 4
const NEXT_ROW: usize = 20 * 4
const NARROW: usize = 21 * 4
const TOUCHED: usize = 30 * 4
const MODE: usize = 31 * 4
const MODE_ENCODE: u32 = 0
const MODE_PICK: u32 = 1
const MODE_COLLECT: u32 = 2
const MODE_CALENDAR: u32 = 3
const POSITION_AT: usize = 88
const BITMAPS_AT: usize = 128
const COLUMNS_AT: usize = 128 + 72 * 4
const COLUMN_BYTES: usize = 12
const AMENITIES_AT: usize = COLUMNS_AT + COLUMNS_MAX * COLUMN_BYTES
const PLANES_AT: usize = AMENITIES_AT + 64 * 4
const AVAILABLE_AT: usize = PLANES_AT + 366 * 4
const DATES_AT: usize = AVAILABLE_AT + 366 * 4
const LIST_AT: usize = (DATES_AT + 366 * 2 + 15) & ~15
const LIST_ROWS: u32 = 512
const TOTALS_AT: usize = LIST_AT + 512 * 4
const FEATURES_AT: usize = TOTALS_AT + 512 * 8
const TALLY_AT: usize = FEATURES_AT + 512 * 4
/** Exported, so that a kernel with other sizes than parameters.ts is not used. */
export const PAGE_AT: usize = TALLY_AT + 320
// Cells and wide values of a page (parameters.ts, PAGE and PAGE_WIDE).
const MATCHES: usize = PAGE_AT
const AFTER: usize = PAGE_AT + 1 * 4
const STOP_AFTER: usize = PAGE_AT + 2 * 4
const ORDER: usize = PAGE_AT + 3 * 4
const CAPACITY: usize = PAGE_AT + 4 * 4
const ENTRIES: usize = PAGE_AT + 5 * 4
const SIZE: usize = PAGE_AT + 6 * 4
const HAS_TOTALS: usize = PAGE_AT + 7 * 4
const BOX: usize = PAGE_AT + 8 * 4
const HAS_CURSOR: usize = PAGE_AT + 9 * 4
const FROM: usize = PAGE_AT + 10 * 4
const TO: usize = PAGE_AT + 11 * 4
const EMITTED: usize = PAGE_AT + 12 * 4
const STRIDE: usize = PAGE_AT + 13 * 4
const HAS_TOTAL_VALUE: usize = PAGE_AT + 14 * 4
const IS_FULL: usize = PAGE_AT + 15 * 4
const IS_STOPPED: usize = PAGE_AT + 16 * 4
const POSITIONS: usize = PAGE_AT + 17 * 4
const MIN_TOTAL: usize = PAGE_AT + 72
const MAX_TOTAL: usize = PAGE_AT + 80
const CURSOR_KEY: usize = PAGE_AT + 88
const CURSOR_HIGH: usize = PAGE_AT + 96
const CURSOR_LOW: usize = PAGE_AT + 104
const SOUTH: usize = PAGE_AT + 112
const WEST: usize = PAGE_AT + 120
const NORTH: usize = PAGE_AT + 128
const EAST: usize = PAGE_AT + 136
const POSITION_STRIDE: usize = PAGE_AT + 144
const LATITUDE_CELLS: usize = PAGE_AT + 148
const LONGITUDE_CELLS: usize = PAGE_AT + 152
const LATITUDE_WITHIN: usize = PAGE_AT + 156
const LONGITUDE_WITHIN: usize = PAGE_AT + 160
const NO_CELLS: u32 = 0xffffffff
/** Of a listed row: its position needs no comparison. Multiplied by the size of any value, a row loses this bit. */
const WITHIN: u32 = 0x80000000
const CELL_BITS: u32 = 8
const BOX_ACROSS: u32 = 2
const ORDER_TOTAL: u32 = 1
const ORDER_TOTAL_DOWN: u32 = 2
const ORDER_DISTANCE: u32 = 3
const ORDER_STARS: u32 = 4
const ENTRY_BYTES: usize = 32
// Columns of a property (store/layout.ts).
const PROPERTY_STARS: usize = 32
const PROPERTY_AMENITIES: usize = 36
const PROPERTY_ROW: usize = 44
const PROPERTY_LATITUDE: usize = 48
const PROPERTY_LONGITUDE: usize = 56
const PROPERTY_X: usize = 64
/** From this many of 32 rows on, words are compared 32 at a time instead of row by row. */
const DENSE_ROWS: u32 = 10
/** The same with a box, whose rows are of few groups, or are many in each of them. */
const DENSE_ROWS_OF_BOX: u32 = 5
/** From this many of 128 rows on, all of their words are prefetched before the first one is tested. */
const TOUCH_ROWS: u32 = 32
const VAIN_BLOCKS: u32 = 2
/** A price and the same price inverted are this together. */
const PRICE_INVERTED: u64 = 0xffffffff
/** No total is as high: the bound that means none, and above. */
const NO_TOTAL: u64 = 0x1fffffffffffff

/** Stores a word with one 64-bit store. */
export function put(address: usize, lo: u32, hi: u32): void {
  atomic.store<u64>(address, (u64(hi) << 32) | u64(lo))
}

export function search(p: usize): void {
  const endRow = load<u32>(p, END_ROW)
  store<u32>(p, 0, HITS)
  store<u32>(p, load<u32>(p, OUT), WRITTEN)
  store<u32>(p, 0, EXAMINED)
  store<u32>(p, endRow, NEXT_ROW)
  const bitmaps = load<u32>(p, BITMAPS)
  const nights = load<u32>(p, NIGHTS)
  const narrow = load<u32>(p, NARROW) != 0
  const rows = load<u32>(p, ROW_PROPERTIES)
  const hasBox = load<u32>(p, MODE) != MODE_ENCODE && load<u32>(p, BOX) != 0
  const positions = hasBox ? usize(load<u32>(p, POSITIONS)) : 0
  const hasWithin = positions != 0 && load<u32>(p, LATITUDE_WITHIN) != NO_CELLS && load<u32>(p, LONGITUDE_WITHIN) != NO_CELLS
  const denseRows = positions != 0 ? DENSE_ROWS_OF_BOX : DENSE_ROWS
  const list = p + LIST_AT
  // Row conditions before the words make the dense path useless. It also requires ordered bounds.
  const mayBeDense =
    nights > 0 && load<u32>(p, COLUMNS) == 0 && load<u32>(p, AMENITIES) == 0 && load<u32>(p, HAS_POSITION) == 0 &&
    load<u32>(p, INVERTED_MIN) <= load<u32>(p, INVERTED_MAX)
  const firstRow = load<u32>(p, FIRST_ROW)
  let row = firstRow & ~127
  let listed: u32 = 0
  // Not 0: some rows of the list were skipped without reading a word.
  let unread: u32 = 0
  // Consecutive blocks without a passing word: where the first night rejects all rows, prefetching the others is
  // wasteful.
  let vain: u32 = 0
  while (row < endRow) {
    // 128 rows at a time through the bitmaps.
    const at = usize(row >> 3)
    let wide = i64x2.splat(-1)
    for (let i: u32 = 0; i < bitmaps; i++) {
      wide = v128.and(wide, v128.load(usize(load<u32>(p + BITMAPS_AT + usize(i) * 4)) + at))
    }
    if (narrow) {
      for (let i: u32 = 0; i < nights; i++) {
        wide = v128.and(wide, v128.load(usize(load<u32>(p + AVAILABLE_AT + usize(i) * 4)) + at))
      }
    }
    if (positions != 0 && v128.any_true(wide)) wide = v128.and(wide, inBox(p, positions + at, LATITUDE_CELLS, LONGITUDE_CELLS))
    if (!v128.any_true(wide)) {
      row += 128
      continue
    }
    let within = i64x2.splat(0)
    if (hasWithin) within = inBox(p, positions + at, LATITUDE_WITHIN, LONGITUDE_WITHIN)
    if (mayBeDense && vain < VAIN_BLOCKS) {
      const candidates = u32(popcnt<u64>(i64x2.extract_lane(wide, 0)) + popcnt<u64>(i64x2.extract_lane(wide, 1)))
      if (candidates >= TOUCH_ROWS) touchWords(p, row, min(endRow - row, 128), nights)
    }
    vain++
    for (let part: u32 = 0; part < 4; part++, row += 32) {
      if (row >= endRow) break
      let bits: u32
      if (part == 0) bits = i32x4.extract_lane(wide, 0)
      else if (part == 1) bits = i32x4.extract_lane(wide, 1)
      else if (part == 2) bits = i32x4.extract_lane(wide, 2)
      else bits = i32x4.extract_lane(wide, 3)
      if (row + 32 > endRow) bits &= (1 << (endRow - row)) - 1
      if (row < firstRow) bits &= firstRow - row >= 32 ? 0 : u32(-1) << (firstRow - row)
      if (bits == 0) continue
      if (mayBeDense && popcnt<u32>(bits) >= denseRows) {
        store<u32>(p, load<u32>(p, EXAMINED) + popcnt<u32>(bits), EXAMINED)
        for (let night: u32 = 0; night < nights && bits != 0; night++) {
          const words = usize(load<u32>(p + PLANES_AT + usize(night) * 4)) + (usize(row) << 3)
          bits &= passing32(p, words)
        }
        store<u32>(p, load<u32>(p, EXAMINED) - popcnt<u32>(bits), EXAMINED)
      } else unread |= bits
      if (bits != 0) vain = 0
      if (hasWithin) {
        let isWithin: u32
        if (part == 0) isWithin = i32x4.extract_lane(within, 0)
        else if (part == 1) isWithin = i32x4.extract_lane(within, 1)
        else if (part == 2) isWithin = i32x4.extract_lane(within, 2)
        else isWithin = i32x4.extract_lane(within, 3)
        for (; bits != 0; bits &= bits - 1, listed++) {
          const bit = ctz<u32>(bits)
          store<u32>(list + (usize(listed) << 2), (row + bit) | ((isWithin >> bit) << 31))
        }
      }
      while (bits != 0) {
        store<u32>(list + (usize(listed) << 2), row + ctz<u32>(bits))
        listed++
        bits &= bits - 1
      }
      if (listed + 32 > LIST_ROWS) {
        if (!finishList(p, listed, unread, bitmaps, rows)) return
        listed = 0
        unread = 0
      }
    }
  }
  if (listed > 0) finishList(p, listed, unread, bitmaps, rows)
}

/**
 * Which of 128 rows are in cells of the box: in those that it touches, or that are within it. Cells repeat, so that some of
 * the first are far away.
 */
function inBox(p: usize, bits: usize, latitudes: usize, longitudes: usize): v128 {
  const stride = usize(load<u32>(p, POSITION_STRIDE))
  const isIn = inCells(bits, stride, load<u32>(p + latitudes))
  return v128.and(isIn, inCells(bits + stride * CELL_BITS, stride, load<u32>(p + longitudes)))
}

/** Compares the bits of 128 cells with the first and the last one, from the lowest bit on. */
function inCells(bits: usize, stride: usize, cells: u32): v128 {
  const last = cells >> CELL_BITS
  let isFrom = i64x2.splat(-1)
  let isTo = i64x2.splat(-1)
  for (let bit: u32 = 0; bit < CELL_BITS; bit++, bits += stride) {
    const rows = v128.load(bits)
    isFrom = ((cells >> bit) & 1) != 0 ? v128.and(isFrom, rows) : v128.or(isFrom, rows)
    isTo = ((last >> bit) & 1) != 0 ? v128.or(isTo, v128.not(rows)) : v128.andnot(isTo, rows)
  }
  return (cells & 0xff) > last ? v128.or(isFrom, isTo) : v128.and(isFrom, isTo)
}

/** Prefetches one line per eight words of 128 neighbours, so that they arrive from memory in parallel. */
function touchWords(p: usize, row: u32, rows: u32, nights: u32): void {
  let seen: u32 = 0
  for (let night: u32 = 0; night < nights; night++) {
    const words = usize(load<u32>(p + PLANES_AT + (usize(night) << 2))) + (usize(row) << 3)
    for (let line: usize = 0; line < usize(rows) << 3; line += 64) seen += load<u32>(words + line)
  }
  // An unused load is not executed.
  store<u32>(p, seen, TOUCHED)
}

/** Which of 32 neighbouring words pass: two at a time, with halves shuffled apart into four. */
function passing32(p: usize, words: usize): u32 {
  const rooms = i32x4.splat(load<u32>(p, MIN_AVAILABILITY) - 1)
  const features = i32x4.splat(load<u32>(p, FEATURES))
  const least = load<u32>(p, INVERTED_MIN)
  // A signed comparison takes one instruction. Added to an inverted price, this maps the lowest valid price to the
  // smallest number.
  const above = i32x4.splat(0x80000000 - least)
  const most = i32x4.splat((load<u32>(p, INVERTED_MAX) - least) ^ 0x80000000)
  const low = i32x4.splat(0xff)
  let bits: u32 = 0
  for (let i: u32 = 0; i < 32; i += 4) {
    const a = v128.load(words + (usize(i) << 3))
    const b = v128.load(words + (usize(i) << 3), 16)
    const lo = v128.shuffle<i32>(a, b, 0, 2, 4, 6)
    const hi = v128.shuffle<i32>(a, b, 1, 3, 5, 7)
    const ok = v128.andnot(
      v128.and(v128.gt<i32>(v128.and(lo, low), rooms), v128.eq<i32>(v128.and(lo, features), features)),
      v128.gt<i32>(v128.add<i32>(hi, above), most),
    )
    bits |= u32(v128.bitmask<i32>(ok)) << i
  }
  return bits
}

/** @param unread 0: all rows of the list are known to pass on all nights */
function finishList(p: usize, listed: u32, unread: u32, bitmaps: u32, rows: u32): bool {
  store<u32>(p, load<u32>(p, EXAMINED) + listed, EXAMINED)
  const list = p + LIST_AT
  const properties = usize(rows)
  let count = listed
  // With a bitmap the dead rows are excluded already: the first bitmap marks the live rows.
  if (bitmaps == 0) {
    let kept: u32 = 0
    for (let i: u32 = 0; i < count; i++) {
      const row = load<u32>(list + (usize(i) << 2))
      store<u32>(list + (usize(kept) << 2), row)
      kept += u32(load<u32>(properties + (usize(row) << 2)) != 0)
    }
    count = kept
  }
  const columns = load<u32>(p, COLUMNS)
  for (let c: u32 = 0; c < columns; c++) {
    const entry = p + COLUMNS_AT + usize(c) * COLUMN_BYTES
    const column = usize(load<u32>(entry))
    const least = load<u32>(entry, 4)
    const span = load<u32>(entry, 8) - least
    let kept: u32 = 0
    for (let i: u32 = 0; i < count; i++) {
      const row = load<u32>(list + (usize(i) << 2))
      store<u32>(list + (usize(kept) << 2), row)
      kept += u32(load<u32>(usize(load<u32>(properties + (usize(row) << 2))) + column) - least <= span)
    }
    count = kept
  }
  if (load<u32>(p, AMENITIES) != 0) count = keepAmenities(p, list, properties, count)
  if (load<u32>(p, HAS_POSITION) != 0) count = keepNear(p, list, properties, count)
  const nights = load<u32>(p, NIGHTS)
  for (let night: u32 = 0; night < nights && unread != 0 && count != 0; night++) count = keepNight(p, list, night, count)
  const mode = load<u32>(p, MODE)
  if (mode == MODE_ENCODE) return encode(p, list, count, nights)
  if (load<u32>(p, BOX) != 0) count = keepBox(p, list, properties, count)
  if (mode == MODE_CALENDAR) {
    calendar(usize(load<u32>(p, OUT)), list, count)
    return true
  }
  const flags = load<u32>(p, TALLY_AT)
  const hasFeatures = (flags & FLAG_FEATURES) != 0
  if (hasFeatures || load<u32>(p, HAS_TOTALS) != 0) {
    if (hasFeatures) joinNights(p, list, count)
    else sumNights(p, list, count)
    count = keepTotals(p, list, count)
  }
  if (mode == MODE_COLLECT) return collect(p, list, properties, count)
  if (flags != 0) tallyList(p, count)
  if (mode != MODE_PICK) return true
  pickList(p, count)
  return load<u32>(p, IS_STOPPED) == 0
}

/** Counts the first rows of the list, with their totals as doubles and features. */
export function tally(p: usize, count: u32): void {
  readTotals(p, count)
  tallyList(p, count)
}

/** Offers the first rows of the list, with their totals as doubles, to the page. */
export function pick(p: usize, count: u32): void {
  readTotals(p, count)
  pickList(p, count)
}

function readTotals(p: usize, count: u32): void {
  const end = p + TOTALS_AT + (usize(count) << 3)
  for (let at = p + TOTALS_AT; at < end; at += 8) store<i64>(at, i64(load<f64>(at)))
}

function tallyList(p: usize, count: u32): void {
  const properties = usize(load<u32>(p, ROW_PROPERTIES))
  tallyRows(p + TALLY_AT, p + LIST_AT, p + TOTALS_AT, p + FEATURES_AT, properties, count)
}

export function overlap(a: usize, b: usize, groups: u32): u32 {
  return overlapOf(a, b, groups)
}

export function days(records: usize, count: u32, to: usize): u32 {
  return writeDays(records, count, to)
}

function keepAmenities(p: usize, list: usize, properties: usize, count: u32): u32 {
  const wanted = load<u32>(p, AMENITIES)
  let kept: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(list + (usize(i) << 2))
    const amenities = usize(load<u32>(usize(load<u32>(properties + (usize(row) << 2))), PROPERTY_AMENITIES))
    const held: u32 = amenities == 0 ? 0 : load<u32>(amenities)
    let all = true
    for (let w: u32 = 0; w < wanted && all; w++) {
      const amenity = load<u32>(p + AMENITIES_AT + (usize(w) << 2))
      all = false
      for (let h: u32 = 1; h <= held && !all; h++) all = load<u32>(amenities + (usize(h) << 2)) == amenity
    }
    store<u32>(list + (usize(kept) << 2), row)
    kept += u32(all)
  }
  return kept
}

function keepNear(p: usize, list: usize, properties: usize, count: u32): u32 {
  const x = load<f64>(p, POSITION_AT)
  const y = load<f64>(p, POSITION_AT + 8)
  const z = load<f64>(p, POSITION_AT + 16)
  const chordMax = load<f64>(p, POSITION_AT + 24)
  let kept: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(list + (usize(i) << 2))
    const property = usize(load<u32>(properties + (usize(row) << 2)))
    const dx = load<f64>(property, PROPERTY_X) - x
    const dy = load<f64>(property, PROPERTY_X + 8) - y
    const dz = load<f64>(property, PROPERTY_X + 16) - z
    store<u32>(list + (usize(kept) << 2), row)
    kept += u32(dx * dx + dy * dy + dz * dz <= chordMax)
  }
  return kept
}

/** One branch-free pass per night, so that cache misses of neighbouring candidates overlap. */
function keepNight(p: usize, list: usize, night: u32, count: u32): u32 {
  const words = usize(load<u32>(p + PLANES_AT + (usize(night) << 2)))
  const least = load<u32>(p, INVERTED_MIN)
  const most = load<u32>(p, INVERTED_MAX)
  const rooms = load<u32>(p, MIN_AVAILABILITY)
  const features = load<u32>(p, FEATURES)
  let kept: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(list + (usize(i) << 2))
    const word = load<u64>(words + (usize(row) << 3))
    const lo = u32(word)
    const hi = u32(word >> 32)
    store<u32>(list + (usize(kept) << 2), row)
    kept += u32(hi >= least) & u32(hi <= most) & u32((lo & 0xff) >= rooms) & u32((lo & features) == features)
  }
  return kept
}

function encode(p: usize, list: usize, count: u32, nights: u32): bool {
  const limit = load<u32>(p, LIMIT)
  const outEnd = load<u32>(p, OUT_END)
  const bytes: u32 = nights == 0 ? 23 : 32 + 11 * nights
  const ids = usize(load<u32>(p, ROW_IDS))
  const step: u32 = nights == 0 ? 1 : 2
  let at = load<u32>(p, WRITTEN)
  let hits = load<u32>(p, HITS)
  let fieldId = load<u32>(p, FIELD_ID)
  let goOn = true
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(list + (usize(i) << 2))
    if (hits == limit) {
      goOn = false
      break
    }
    if (at + bytes > outEnd) {
      store<u32>(p, row, NEXT_ROW)
      goOn = false
      break
    }
    const to = usize(at)
    // Field header: u16 id, u8 type 1, u32 16; then the packed id.
    store<u64>(to, u64(fieldId | (1 << 16) | (16 << 24)))
    v128.store(to + 7, v128.load(ids + (usize(row) << 4)))
    if (nights != 0 && !encodeDays(p, row, nights, fieldId + 1, to + 23)) continue
    at += bytes
    hits++
    fieldId += step
  }
  store<u32>(p, at, WRITTEN)
  store<u32>(p, hits, HITS)
  store<u32>(p, fieldId, FIELD_ID)
  return goOn && hits != limit
}

/** Writes the field of days. The words are read again. If they changed since the match, this is not a hit. */
function encodeDays(p: usize, row: u32, nights: u32, fieldId: u32, to: usize): bool {
  const least = load<u32>(p, INVERTED_MIN)
  const most = load<u32>(p, INVERTED_MAX)
  const rooms = load<u32>(p, MIN_AVAILABILITY)
  const features = load<u32>(p, FEATURES)
  // Field header: u16 id, u8 type 8, u32 length; then u16 nights.
  store<u64>(to, u64(fieldId & 0xffff) | (8 << 16) | (u64(2 + nights * 11) << 24))
  store<u16>(to, u16(nights), 7)
  let at = to + 9
  for (let night: u32 = 0; night < nights; night++, at += 11) {
    const word = load<u64>(usize(load<u32>(p + PLANES_AT + (usize(night) << 2))) + (usize(row) << 3))
    const lo = u32(word)
    const hi = u32(word >> 32)
    if (hi < least || hi > most || (lo & 0xff) < rooms || (lo & features) != features) return false
    // Of each u16 date, u8 availability, u32 price, u32 features.
    store<u64>(at, u64(load<u16>(p + DATES_AT + (usize(night) << 1))) | (u64(lo & 0xff) << 16) | (u64(~hi) << 24))
    store<u32>(at, lo >> 8, 7)
  }
  return true
}

/** After the words: a table has fewer matches than rows, and coordinates are far apart in memory. Takes the marks of rows off. */
function keepBox(p: usize, list: usize, properties: usize, count: u32): u32 {
  const south = load<f64>(p, SOUTH)
  const west = load<f64>(p, WEST)
  const north = load<f64>(p, NORTH)
  const east = load<f64>(p, EAST)
  const across = load<u32>(p, BOX) == BOX_ACROSS
  let kept: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    const listed = load<u32>(list + (usize(i) << 2))
    const row = listed & ~WITHIN
    store<u32>(list + (usize(kept) << 2), row)
    if (row != listed) {
      kept++
      continue
    }
    const property = usize(load<u32>(properties + (usize(row) << 2)))
    const latitude = load<f64>(property, PROPERTY_LATITUDE)
    const longitude = load<f64>(property, PROPERTY_LONGITUDE)
    const eastOf = u32(longitude >= west)
    const westOf = u32(longitude <= east)
    kept += u32(latitude >= south) & u32(latitude <= north) & (across ? eastOf | westOf : eastOf & westOf)
  }
  return kept
}

/** Totals of the listed rows, two nights at a time: a loop over the nights of each row costs more than its loads. */
function sumNights(p: usize, list: usize, count: u32): void {
  const totals = p + TOTALS_AT
  const nights = load<u32>(p, NIGHTS)
  const end = list + (usize(count) << 2)
  if ((nights & 1) == 0) memory.fill(totals, 0, usize(count) << 3)
  else {
    const prices = usize(load<u32>(p + PLANES_AT)) + 4
    for (let at = list, total = totals; at < end; at += 4, total += 8) {
      store<u64>(total, PRICE_INVERTED - u64(load<u32>(prices + (usize(load<u32>(at)) << 3))))
    }
  }
  for (let night = nights & 1; night < nights; night += 2) {
    const prices = usize(load<u32>(p + PLANES_AT + (usize(night) << 2))) + 4
    const others = usize(load<u32>(p + PLANES_AT + (usize(night) << 2), 4)) + 4
    for (let at = list, total = totals; at < end; at += 4, total += 8) {
      const place = usize(load<u32>(at)) << 3
      const inverted = u64(load<u32>(prices + place)) + u64(load<u32>(others + place))
      store<u64>(total, load<u64>(total) + 2 * PRICE_INVERTED - inverted)
    }
  }
}

/** The same, with the features that all nights of each row have. */
function joinNights(p: usize, list: usize, count: u32): void {
  const totals = p + TOTALS_AT
  const features = p + FEATURES_AT - list
  const nights = load<u32>(p, NIGHTS)
  const end = list + (usize(count) << 2)
  if ((nights & 1) == 0) {
    memory.fill(totals, 0, usize(count) << 3)
    memory.fill(p + FEATURES_AT, 0xff, usize(count) << 2)
  } else {
    const words = usize(load<u32>(p + PLANES_AT))
    for (let at = list, total = totals; at < end; at += 4, total += 8) {
      const word = load<u64>(words + (usize(load<u32>(at)) << 3))
      store<u64>(total, PRICE_INVERTED - (word >> 32))
      store<u32>(features + at, u32(word) >> 8)
    }
  }
  for (let night = nights & 1; night < nights; night += 2) {
    const words = usize(load<u32>(p + PLANES_AT + (usize(night) << 2)))
    const others = usize(load<u32>(p + PLANES_AT + (usize(night) << 2), 4))
    for (let at = list, total = totals; at < end; at += 4, total += 8) {
      const place = usize(load<u32>(at)) << 3
      const a = load<u64>(words + place)
      const b = load<u64>(others + place)
      store<u64>(total, load<u64>(total) + 2 * PRICE_INVERTED - (a >> 32) - (b >> 32))
      store<u32>(features + at, load<u32>(features + at) & (u32(a & b) >> 8))
    }
  }
}

/** Keeps the rows whose total is within its bounds, with total and features. */
function keepTotals(p: usize, list: usize, count: u32): u32 {
  const least = load<u64>(p, MIN_TOTAL)
  const most = load<u64>(p, MAX_TOTAL)
  if (least == 0 && most >= NO_TOTAL) return count
  let kept: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    const total = load<u64>(p + TOTALS_AT + (usize(i) << 3))
    store<u32>(list + (usize(kept) << 2), load<u32>(list + (usize(i) << 2)))
    store<u64>(p + TOTALS_AT + (usize(kept) << 3), total)
    store<u32>(p + FEATURES_AT + (usize(kept) << 2), load<u32>(p + FEATURES_AT + (usize(i) << 2)))
    kept += u32(total >= least) & u32(total <= most)
  }
  return kept
}

/** Writes rows with their totals, and features if they count, as records. @returns false when the output is full */
function collect(p: usize, list: usize, properties: usize, count: u32): bool {
  const withFeatures = (load<u32>(p, TALLY_AT) & FLAG_FEATURES) != 0
  const bytes: u32 = withFeatures ? 24 : 16
  const outEnd = load<u32>(p, OUT_END)
  let at = load<u32>(p, WRITTEN)
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(list + (usize(i) << 2))
    if (at + bytes > outEnd) {
      store<u32>(p, row, NEXT_ROW)
      store<u32>(p, at, WRITTEN)
      return false
    }
    store<f64>(usize(at), f64(load<i64>(p + TOTALS_AT + (usize(i) << 3))))
    store<u32>(usize(at), row, 8)
    store<u32>(usize(at), load<u32>(usize(load<u32>(properties + (usize(row) << 2))), PROPERTY_ROW), 12)
    if (withFeatures) store<u32>(usize(at), load<u32>(p + FEATURES_AT + (usize(i) << 2)), 16)
    at += bytes
  }
  store<u32>(p, at, WRITTEN)
  return true
}

/** Ascending in the order of the page. */
function keyOf(p: usize, order: u32, property: usize, total: u64): u64 {
  if (order == ORDER_TOTAL) return total
  if (order == ORDER_TOTAL_DOWN) return ~total
  if (order == ORDER_STARS) return (u64(255 - load<u32>(property, PROPERTY_STARS)) << 56) | total
  if (order != ORDER_DISTANCE) return 0
  const dx = load<f64>(property, PROPERTY_X) - load<f64>(p, POSITION_AT)
  const dy = load<f64>(property, PROPERTY_X + 8) - load<f64>(p, POSITION_AT + 8)
  const dz = load<f64>(property, PROPERTY_X + 16) - load<f64>(p, POSITION_AT + 16)
  // Doubles that are not negative have the order of their bits.
  return reinterpret<u64>(dx * dx + dy * dy + dz * dz)
}

function pickList(p: usize, count: u32): void {
  const list = p + LIST_AT
  const order = load<u32>(p, ORDER)
  const ids = usize(load<u32>(p, ROW_IDS))
  const properties = usize(load<u32>(p, ROW_PROPERTIES))
  const needsProperty = order == ORDER_DISTANCE || order == ORDER_STARS
  const hasTotals = load<u32>(p, HAS_TOTALS) != 0
  const hasCursor = load<u32>(p, HAS_CURSOR) != 0
  const cursorKey = load<u64>(p, CURSOR_KEY)
  const cursorHigh = load<u64>(p, CURSOR_HIGH)
  const cursorLow = load<u64>(p, CURSOR_LOW)
  const capacity = load<u32>(p, CAPACITY)
  const stopAfter = load<u32>(p, STOP_AFTER)
  const entries = usize(load<u32>(p, ENTRIES))
  let size = load<u32>(p, SIZE)
  let after = load<u32>(p, AFTER)
  store<u32>(p, load<u32>(p, MATCHES) + count, MATCHES)
  const isByTotal = order == ORDER_TOTAL || order == ORDER_TOTAL_DOWN
  for (let i: u32 = 0; i < count; i++) {
    if (isByTotal && size == capacity && capacity != 0) {
      const next = skipTotals(p + TOTALS_AT, i, count, load<u64>(entries), order == ORDER_TOTAL_DOWN ? -1 : 0)
      after += next - i
      i = next
      if (i == count) break
    }
    const row = load<u32>(list + (usize(i) << 2))
    const property: usize = needsProperty ? usize(load<u32>(properties + (usize(row) << 2))) : 0
    const total: u64 = hasTotals ? load<u64>(p + TOTALS_AT + (usize(i) << 3)) : 0
    const key = keyOf(p, order, property, total)
    const id = ids + (usize(row) << 4)
    if (hasCursor) {
      if (key < cursorKey) continue
      if (key == cursorKey) {
        const high = bswap<u64>(load<u64>(id))
        if (high < cursorHigh || (high == cursorHigh && bswap<u64>(load<u64>(id, 8)) <= cursorLow)) continue
      }
    }
    after++
    if (size < capacity) {
      putEntry(entries + usize(size) * ENTRY_BYTES, key, id, row)
      if (order != 0) rise(entries, size)
      size++
    } else if (order != 0 && capacity != 0 && isBefore(key, id, entries)) {
      putEntry(entries, key, id, row)
      sink(entries, 0, size)
    }
    if (after >= stopAfter) {
      store<u32>(p, 1, IS_STOPPED)
      break
    }
  }
  store<u32>(p, size, SIZE)
  store<u32>(p, after, AFTER)
}

/** Most rows are behind a full page. @param flip makes totals keys @returns the next row whose key is not above `last` */
function skipTotals(totals: usize, from: u32, count: u32, last: u64, flip: u64): u32 {
  // Signed comparisons: all keys of an order have the same highest bit.
  const most = i64x2.splat(last)
  const flips = i64x2.splat(flip)
  let i = from
  for (; i + 4 <= count; i += 4) {
    const at = totals + (usize(i) << 3)
    const a = v128.gt<i64>(v128.xor(v128.load(at), flips), most)
    const b = v128.gt<i64>(v128.xor(v128.load(at, 16), flips), most)
    if (!v128.all_true<i64>(v128.and(a, b))) break
  }
  while (i < count && (load<u64>(totals + (usize(i) << 3)) ^ flip) > last) i++
  return i
}

function putEntry(entry: usize, key: u64, id: usize, row: u32): void {
  store<u64>(entry, key)
  store<u64>(entry, bswap<u64>(load<u64>(id)), 8)
  store<u64>(entry, bswap<u64>(load<u64>(id, 8)), 16)
  store<u64>(entry, u64(row), 24)
}

/** Whether a row comes before an entry. */
function isBefore(key: u64, id: usize, entry: usize): bool {
  const other = load<u64>(entry)
  if (key != other) return key < other
  const high = bswap<u64>(load<u64>(id))
  const otherHigh = load<u64>(entry, 8)
  if (high != otherHigh) return high < otherHigh
  return bswap<u64>(load<u64>(id, 8)) < load<u64>(entry, 16)
}

function isLess(a: usize, b: usize): bool {
  const key = load<u64>(a)
  const other = load<u64>(b)
  if (key != other) return key < other
  const high = load<u64>(a, 8)
  const otherHigh = load<u64>(b, 8)
  if (high != otherHigh) return high < otherHigh
  return load<u64>(a, 16) < load<u64>(b, 16)
}

function swap(a: usize, b: usize): void {
  const first = v128.load(a)
  const second = v128.load(a, 16)
  v128.store(a, v128.load(b))
  v128.store(a, v128.load(b, 16), 16)
  v128.store(b, first)
  v128.store(b, second, 16)
}

/** A heap with the last entry of the page on top. */
function rise(entries: usize, at: u32): void {
  let child = at
  while (child != 0) {
    const parent = (child - 1) >> 1
    const a = entries + usize(parent) * ENTRY_BYTES
    const b = entries + usize(child) * ENTRY_BYTES
    if (!isLess(a, b)) return
    swap(a, b)
    child = parent
  }
}

function sink(entries: usize, at: u32, size: u32): void {
  let parent = at
  for (;;) {
    let child = parent * 2 + 1
    if (child >= size) return
    let b = entries + usize(child) * ENTRY_BYTES
    if (child + 1 < size && isLess(b, b + ENTRY_BYTES)) {
      child++
      b += ENTRY_BYTES
    }
    const a = entries + usize(parent) * ENTRY_BYTES
    if (!isLess(a, b)) return
    swap(a, b)
    parent = child
  }
}

export function sort(p: usize): void {
  if (load<u32>(p, ORDER) == 0) return
  const entries = usize(load<u32>(p, ENTRIES))
  for (let size = load<u32>(p, SIZE); size > 1; size--) {
    swap(entries, entries + usize(size - 1) * ENTRY_BYTES)
    sink(entries, 0, size - 1)
  }
}

export function emit(p: usize): void {
  const nights = load<u32>(p, NIGHTS)
  const order = load<u32>(p, ORDER)
  const outEnd = load<u32>(p, OUT_END)
  const stride = load<u32>(p, STRIDE)
  const bytes: u32 = stride != 0 ? stride : nights == 0 ? 23 : 32 + 11 * nights
  const hasTotalValue = load<u32>(p, HAS_TOTAL_VALUE) != 0
  const hasTotals = load<u32>(p, HAS_TOTALS) != 0
  const hasKeyOfTotal = nights != 0 && (order == ORDER_TOTAL || order == ORDER_TOTAL_DOWN || order == ORDER_STARS)
  const properties = usize(load<u32>(p, ROW_PROPERTIES))
  const ids = usize(load<u32>(p, ROW_IDS))
  const entries = usize(load<u32>(p, ENTRIES))
  const to = load<u32>(p, TO)
  let emitted = load<u32>(p, EMITTED)
  let at = load<u32>(p, WRITTEN)
  let fieldId = load<u32>(p, FIELD_ID)
  for (let i = load<u32>(p, FROM); i < to; i++) {
    const entry = entries + usize(i) * ENTRY_BYTES
    const row = load<u32>(entry, 24)
    const property = load<u32>(properties + (usize(row) << 2))
    if (property == 0) continue
    if (at + bytes > outEnd) {
      store<u32>(p, 1, IS_FULL)
      break
    }
    const out = usize(at)
    const id = v128.load(ids + (usize(row) << 4))
    let total: i64 = 0
    if (stride != 0) {
      total = nights == 0 ? 0 : nightsOf(p, row, nights, 0)
    } else {
      store<u64>(out, u64(fieldId | (1 << 16) | (16 << 24)))
      v128.store(out + 7, id)
      if (nights != 0) {
        store<u64>(out + 23, u64((fieldId + 1) & 0xffff) | (8 << 16) | (u64(2 + nights * 11) << 24))
        store<u16>(out + 23, u16(nights), 7)
        total = nightsOf(p, row, nights, out + 32)
      }
    }
    if (total < 0) continue
    if (hasTotals && (u64(total) < load<u64>(p, MIN_TOTAL) || u64(total) > load<u64>(p, MAX_TOTAL))) continue
    if (hasKeyOfTotal && keyOf(p, order, usize(property), u64(total)) != load<u64>(entry)) continue
    if (stride != 0) {
      v128.store(out, id)
      if (hasTotalValue) store<u64>(out, u64(total), 16)
    }
    const source = load<u32>(entry, 28)
    const record = entries + usize(emitted) * ENTRY_BYTES
    store<u64>(record, u64(total))
    store<u32>(record, property, 8)
    store<u32>(record, row, 12)
    store<u32>(record, source, 16)
    emitted++
    at += bytes
    fieldId += nights == 0 ? 1 : 2
  }
  store<u32>(p, emitted, EMITTED)
  store<u32>(p, at, WRITTEN)
  store<u32>(p, fieldId, FIELD_ID)
}

/** Sums the nights of a row, and writes their records unless `to` is 0. @returns the total, -1 when a word fails */
function nightsOf(p: usize, row: u32, nights: u32, to: usize): i64 {
  const least = load<u32>(p, INVERTED_MIN)
  const most = load<u32>(p, INVERTED_MAX)
  const rooms = load<u32>(p, MIN_AVAILABILITY)
  const features = load<u32>(p, FEATURES)
  let at = to
  let total: i64 = 0
  for (let night: u32 = 0; night < nights; night++) {
    const word = load<u64>(usize(load<u32>(p + PLANES_AT + (usize(night) << 2))) + (usize(row) << 3))
    const lo = u32(word)
    const hi = u32(word >> 32)
    if (hi < least || hi > most || (lo & 0xff) < rooms || (lo & features) != features) return -1
    total += i64(u64(~hi))
    if (to == 0) continue
    store<u64>(at, u64(load<u16>(p + DATES_AT + (usize(night) << 1))) | (u64(lo & 0xff) << 16) | (u64(~hi) << 24))
    store<u32>(at, lo >> 8, 7)
    at += 11
  }
  return total
}
