// AssemblyScript: what a search counts of its matches (docs/design/search.md#counts), over the rows of a list, their
// totals and features. `t` is the address of the cells and wide values of TALLY and TALLY_WIDE (parameters.ts).

const FLAGS: usize = 0 * 4
const BITS: usize = 1 * 4
const SUMS: usize = 2 * 4
const BOUNDS: usize = 3 * 4
const COLUMNS: usize = 4 * 4
const ROWS: usize = 5 * 4
const SOUTH: usize = 32
const WEST: usize = 40
const PER_LATITUDE: usize = 48
const PER_LONGITUDE: usize = 56
const BOUNDS_AT: usize = 64
const FLAG_BITS: u32 = 1
export const FLAG_FEATURES: u32 = 2
const FLAG_RANGES: u32 = 4
const FLAG_CELLS: u32 = 8
// Sums (parameters.ts, SUMS).
const RANGES_AT: usize = 96
const CELLS_AT: usize = 256
const CELL_BYTES: usize = 32
// Columns of a property (store/layout.ts).
const PROPERTY_LATITUDE: usize = 48
const PROPERTY_LONGITUDE: usize = 56

export function tallyRows(
  t: usize,
  list: usize,
  totals: usize,
  features: usize,
  properties: usize,
  count: u32,
): void {
  const flags = load<u32>(t, FLAGS)
  const sums = usize(load<u32>(t, SUMS))
  if ((flags & FLAG_BITS) != 0) setBits(load<u32>(t, BITS), list, count)
  if ((flags & FLAG_FEATURES) != 0) countFeatures(sums, features, count)
  if ((flags & FLAG_RANGES) != 0) countRanges(t, sums + RANGES_AT, totals, count)
  if ((flags & FLAG_CELLS) != 0) countCells(t, sums + CELLS_AT, list, totals, properties, count)
}

/** Rows ascend, so that most of them are in the word of the row before. */
function setBits(bits: u32, list: usize, count: u32): void {
  let at: u32 = 0
  let word: u64 = 0
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(list + (usize(i) << 2))
    const to = (row >> 6) << 3
    if (to != at) {
      if (word != 0) store<u64>(usize(bits + at), load<u64>(usize(bits + at)) | word)
      at = to
      word = 0
    }
    word |= u64(1) << u64(row & 63)
  }
  if (word != 0) store<u64>(usize(bits + at), load<u64>(usize(bits + at)) | word)
}

/** Adds each of 24 bits to its own sum: 8 bits a vector half, of up to 255 rows before they overflow. */
function countFeatures(sums: usize, features: usize, count: u32): void {
  const single = i8x16(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128)
  const lowBytes = i8x16(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)
  const highByte = i8x16.splat(2)
  let row: u32 = 0
  while (row < count) {
    const end = min<u32>(count, row + 255)
    let low = i8x16.splat(0)
    let high = i8x16.splat(0)
    for (; row < end; row++) {
      const each = i32x4.splat(load<u32>(features + (usize(row) << 2)))
      low = v128.sub<i8>(low, v128.eq<i8>(v128.and(v128.swizzle(each, lowBytes), single), single))
      high = v128.sub<i8>(high, v128.eq<i8>(v128.and(v128.swizzle(each, highByte), single), single))
    }
    addBytes(sums, low)
    addBytes(sums + 32, low, 8)
    addBytes(sums + 64, high)
  }
}

/** Adds eight bytes of a vector to eight sums. */
function addBytes(sums: usize, bytes: v128, from: u32 = 0): void {
  let left: u64 = from == 0 ? i64x2.extract_lane(bytes, 0) : i64x2.extract_lane(bytes, 1)
  for (let i: usize = 0; i < 32; i += 4, left >>= 8) store<u32>(sums + i, load<u32>(sums + i) + u32(left & 0xff))
}

function countRanges(t: usize, ranges: usize, totals: usize, count: u32): void {
  const bounds = t + BOUNDS_AT
  const end = bounds + (usize(load<u32>(t, BOUNDS)) << 3)
  for (let i: u32 = 0; i < count; i++) {
    const total = load<u64>(totals + (usize(i) << 3))
    let range = ranges
    for (let bound = bounds; bound < end; bound += 8) range += usize(total >= load<u64>(bound)) << 2
    store<u32>(range, load<u32>(range) + 1)
  }
}

function micro(degrees: f64): i64 {
  return i64(Math.floor(degrees * 1e6 + 0.5))
}

function countCells(t: usize, cells: usize, list: usize, totals: usize, properties: usize, count: u32): void {
  const south = load<f64>(t, SOUTH)
  const west = load<f64>(t, WEST)
  const perLatitude = load<f64>(t, PER_LATITUDE)
  const perLongitude = load<f64>(t, PER_LONGITUDE)
  const columns = load<u32>(t, COLUMNS)
  const lastColumn = f64(columns - 1)
  const lastRow = f64(load<u32>(t, ROWS) - 1)
  for (let i: u32 = 0; i < count; i++) {
    const property = usize(load<u32>(properties + (usize(load<u32>(list + (usize(i) << 2))) << 2)))
    // A row that died since the match.
    if (property == 0) continue
    const latitude = load<f64>(property, PROPERTY_LATITUDE)
    const longitude = load<f64>(property, PROPERTY_LONGITUDE)
    // Degrees east of the western edge, past 180 degrees too.
    let east = longitude - west
    if (east < 0) east += 360
    // A property that moved since the match may be outside.
    const column = u32(max<f64>(0, min<f64>(lastColumn, east * perLongitude)))
    const row = u32(max<f64>(0, min<f64>(lastRow, (latitude - south) * perLatitude)))
    const cell = cells + usize(row * columns + column) * CELL_BYTES
    const total = load<u64>(totals + (usize(i) << 3))
    if (total < load<u64>(cell)) store<u64>(cell, total)
    store<i64>(cell, load<i64>(cell, 8) + micro(latitude), 8)
    store<i64>(cell, load<i64>(cell, 16) + micro(east), 16)
    store<u32>(cell, load<u32>(cell, 24) + 1, 24)
  }
}

/** How many bits are set in both, of 128 × `groups`. */
export function overlapOf(a: usize, b: usize, groups: u32): u32 {
  let sum = i32x4.splat(0)
  let at: usize = 0
  let left = groups
  while (left > 0) {
    // Each byte of a sum grows by 8 at most.
    const part = min<u32>(left, 31)
    left -= part
    let bytes = i8x16.splat(0)
    for (const end = at + (usize(part) << 4); at < end; at += 16) {
      bytes = v128.add<i8>(bytes, v128.popcnt<i8>(v128.and(v128.load(a + at), v128.load(b + at))))
    }
    sum = v128.add<i32>(sum, v128.extadd_pairwise<u16>(v128.extadd_pairwise<u8>(bytes)))
  }
  return (
    u32(i32x4.extract_lane(sum, 0)) + u32(i32x4.extract_lane(sum, 1)) +
    u32(i32x4.extract_lane(sum, 2)) + u32(i32x4.extract_lane(sum, 3))
  )
}
