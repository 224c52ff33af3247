// AssemblyScript: the search kernel (docs/design/search.md#kernels), over the parameter block of parameters.ts.
// Compiled without runtime and static data: it works on the store's shared memory at the addresses it is given.

import { COLUMNS_MAX } from './columns.as'

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
const POSITION_AT: usize = 88
const BITMAPS_AT: usize = 128
const COLUMNS_AT: usize = 128 + 72 * 4
const COLUMN_BYTES: usize = 12
const AMENITIES_AT: usize = COLUMNS_AT + COLUMNS_MAX * COLUMN_BYTES
const PLANES_AT: usize = AMENITIES_AT + 64 * 4
const AVAILABLE_AT: usize = PLANES_AT + 366 * 4
const DATES_AT: usize = AVAILABLE_AT + 366 * 4
/** Exported, so that a kernel with other sizes than parameters.ts is not used. */
export const LIST_AT: usize = (DATES_AT + 366 * 2 + 15) & ~15
const LIST_ROWS: u32 = 512
// Columns of a property (store/layout.ts).
const PROPERTY_AMENITIES: usize = 36
const PROPERTY_X: usize = 64
/** From this many of 32 rows on, words are compared 32 at a time instead of row by row. */
const DENSE_ROWS: u32 = 10
/** From this many of 128 rows on, all of their words are prefetched before the first one is tested. */
const TOUCH_ROWS: u32 = 32
const VAIN_BLOCKS: u32 = 2

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
    if (!v128.any_true(wide)) {
      row += 128
      continue
    }
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
      if (mayBeDense && popcnt<u32>(bits) >= DENSE_ROWS) {
        store<u32>(p, load<u32>(p, EXAMINED) + popcnt<u32>(bits), EXAMINED)
        for (let night: u32 = 0; night < nights && bits != 0; night++) {
          const words = usize(load<u32>(p + PLANES_AT + usize(night) * 4)) + (usize(row) << 3)
          bits &= passing32(p, words)
        }
        store<u32>(p, load<u32>(p, EXAMINED) - popcnt<u32>(bits), EXAMINED)
      } else unread |= bits
      if (bits != 0) vain = 0
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
  return encode(p, list, count, nights)
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
