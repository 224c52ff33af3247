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

/** Adds each of 24 bits to its own sum: bytes of four rows at a time, which a list does not overflow. */
function countFeatures(sums: usize, features: usize, count: u32): void {
  for (let row = count; (row & 3) != 0; row++) store<u32>(features + (usize(row) << 2), 0)
  const end = features + (usize(count) << 2)
  for (let bit: i8 = 0; bit < 8; bit += 2, sums += 8) {
    const first = i8x16.splat(1 << bit)
    const second = i8x16.splat(2 << bit)
    let a = i8x16.splat(0)
    let b = i8x16.splat(0)
    for (let at = features; at < end; at += 16) {
      const rows = v128.load(at)
      a = v128.sub<i8>(a, v128.eq<i8>(v128.and(rows, first), first))
      b = v128.sub<i8>(b, v128.eq<i8>(v128.and(rows, second), second))
    }
    addRows(sums, a)
    addRows(sums + 4, b)
  }
}

/** Adds the first three bytes of four rows to every eighth sum. The caller may have bits of its own in the fourth. */
function addRows(sums: usize, bytes: v128): void {
  addPairs(sums, v128.and(bytes, i32x4.splat(0x00ff00ff)))
  addPairs(sums + 32, v128.and(v128.shr<u32>(bytes, 8), i32x4.splat(0x000000ff)))
}

/** Adds the low halves of four words to a sum, and the high halves to the 16th behind it; they are 0 where there is none. */
function addPairs(sums: usize, words: v128): void {
  const halves = v128.add<i32>(words, v128.shuffle<i32>(words, words, 2, 3, 0, 1))
  const sum = u32(i32x4.extract_lane(halves, 0)) + u32(i32x4.extract_lane(halves, 1))
  store<u32>(sums, load<u32>(sums) + (sum & 0xffff))
  store<u32>(sums + 64, load<u32>(sums + 64) + (sum >> 16))
}

function countRanges(t: usize, ranges: usize, totals: usize, count: u32): void {
  const bounds = load<u32>(t, BOUNDS)
  let above = count
  let range = ranges
  for (let n: u32 = 0; n < bounds; n++, range += 4) {
    const found = countFrom(load<u64>(t + BOUNDS_AT + (usize(n) << 3)), totals, count)
    store<u32>(range, load<u32>(range) + above - found)
    above = found
  }
  store<u32>(range, load<u32>(range) + above)
}

/** How many totals are at least the bound, which is 1 or more. */
function countFrom(bound: u64, totals: usize, count: u32): u32 {
  const below = i64x2.splat(bound - 1)
  let even = i64x2.splat(0)
  let odd = i64x2.splat(0)
  let i: u32 = 0
  for (; i + 4 <= count; i += 4) {
    const at = totals + (usize(i) << 3)
    even = v128.sub<i64>(even, v128.gt<i64>(v128.load(at), below))
    odd = v128.sub<i64>(odd, v128.gt<i64>(v128.load(at, 16), below))
  }
  const sums = v128.add<i64>(even, odd)
  let found = u32(i64x2.extract_lane(sums, 0)) + u32(i64x2.extract_lane(sums, 1))
  for (; i < count; i++) found += u32(load<u64>(totals + (usize(i) << 3)) >= bound)
  return found
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
