// AssemblyScript: the lowest totals of stays of several arrival days, over the block of calendar-block.as.ts
// (docs/design/search.md#calendars). Walks the nights: each word is loaded once for all arrivals.

import {
  ALLOWED, ARRIVALS, BEST, BY_DAY, CODES, DAY_BYTES, DAY_COUNT, DAY_ID,
  DAY_NUMBER, DAY_RECORD_BYTES, DAYS, FACTORS, FEATURES, FITS_BITS,
  FIRST_DAY, FITS_BITS_BYTES, FITS_PLACES, INVERTED_MAX, INVERTED_MIN, IS_BOUNDED, IS_ONE, MAX_TOTAL, MIN_TOTAL,
  MOST_NIGHTS, NIGHTS, OUT, PLANES, RING, RING_LINE, ROOMS_LEFT, ROW_IDS, ROW_PROPERTIES, RUNS, SPAN, STAY_BYTES,
  STAY_CODE, STAY_PLACE, STAY_ROW, SUMS, TABLE, TOUCHED, VISIBLE, WITH_FITS,
} from './calendar-block.as'

// Columns of a property, and the planes of a table (store/layout.ts).
const PROPERTY_ROW: usize = 44
const TABLE_DAYS: usize = 80
const DAY_SLOTS: u32 = 384
const DAY_ROUNDS: u32 = 16
const PLANE_WORDS: usize = 16
const NOTHING: i64 = 0x7fffffffffffffff
/** Of so few rows all words are loaded first, so that they arrive from memory in parallel. */
const TOUCHED_ROWS: u32 = 16

/** @param list rows that pass all other filters, with room for three more */
export function calendar(c: usize, list: usize, count: u32): void {
  if (count == 0) return
  if (load<u32>(c, IS_ONE) != 0) {
    for (let i: u32 = 0; i < count; i++) calendarOfRow(c, load<u32>(list + (usize(i) << 2)))
    return
  }
  const width = (count + 3) & ~3
  const last = load<u32>(list + (usize(count - 1) << 2))
  for (let i = count; i < width; i++) store<u32>(list + (usize(i) << 2), last)
  const ring = load<u32>(c, MOST_NIGHTS)
  const span = load<u32>(c, SPAN)
  const byDay = load<u32>(c, BY_DAY) != 0
  const withFits = load<u32>(c, WITH_FITS) != 0
  if (count <= TOUCHED_ROWS) touch(c, list, count, span)
  clear(c, width, ring)
  if (withFits) memory.fill(usize(load<u32>(c, OUT)) + FITS_BITS, 0, usize(load<u32>(c, ARRIVALS)) * FITS_BITS_BYTES)
  if (!byDay) {
    for (let i: usize = 0; i < usize(width) << 3; i += 8) {
      store<i64>(c + BEST + i, NOTHING)
      store<i64>(c + CODES + i, NOTHING)
    }
  }
  let isClear = true
  let slot: u32 = 0
  for (let night: u32 = 0; night < span; night++) {
    const plane = usize(load<u32>(c + PLANES + (usize(night) << 2)))
    if (plane == 0) {
      if (!isClear) clear(c, width, ring)
      isClear = true
    } else {
      isClear = false
      advance(c, list, count, plane, slot)
      if (byDay) reduceDay(c, list, count, night)
      else reduceRows(c, width, night, slot)
    }
    slot = slot + 1 == ring ? 0 : slot + 1
  }
  if (withFits) writeFits(c, list, count)
  else if (!byDay) writeStays(c, list, count)
}

/** Stays of one property in one of its tables, by day of arrival: the day counts it once for all tables. */
function calendarOfRow(c: usize, row: u32): void {
  const leaves = usize(load<u32>(c, TABLE)) + TABLE_DAYS
  const first = load<u32>(c, FIRST_DAY)
  const visible = load<u32>(c, VISIBLE)
  const from = visible >> 16
  const end = min(visible & 0xffff, load<u32>(c, SPAN))
  const nights = load<u32>(c, NIGHTS)
  const arrivals = load<u32>(c, ARRIVALS)
  const rooms = load<u32>(c, ROOMS_LEFT)
  const features = load<u32>(c, FEATURES)
  const least = load<u32>(c, INVERTED_MIN)
  const most = load<u32>(c, INVERTED_MAX)
  const minTotal = load<u64>(c, MIN_TOTAL)
  const maxTotal = load<u64>(c, MAX_TOTAL)
  const id = usize(load<u32>(c, ROW_IDS)) + (usize(row) << 4)
  const idHigh = load<u64>(id)
  const idLow = load<u64>(id, 8)
  const days = usize(load<u32>(c, DAYS))
  const prices = c + RING
  let run: u32 = 0
  let sum: u64 = 0
  let slot = (first + from) % DAY_SLOTS
  let round = (first + from) / DAY_SLOTS % DAY_ROUNDS
  touchRow(c, leaves, slot, from, end, row)
  for (let night = from; night < end; night++) {
    const leaf = usize(load<u32>(leaves + (usize(slot >> 5) << 2)))
    const entry: u32 = leaf == 0 ? 0 : load<u32>(leaf + (usize(slot & 31) << 2))
    const isOther = (entry & (DAY_ROUNDS - 1)) != round
    if (++slot == DAY_SLOTS) {
      slot = 0
      round = (round + 1) % DAY_ROUNDS
    }
    const price = prices + (usize(night) << 2)
    const plane = usize(entry & -DAY_ROUNDS)
    const word = plane == 0 || isOther ? 0 : load<u64>(plane + PLANE_WORDS + (usize(row) << 3))
    const lo = u32(word)
    const hi = u32(word >> 32)
    if (hi < least || hi > most || (lo & 0xff) < rooms || (lo & features) != features) {
      run = 0
      sum = 0
      continue
    }
    store<u32>(price, ~hi)
    sum += u64(~hi)
    if (++run > nights) sum -= u64(load<u32>(price - (usize(nights) << 2)))
    if (run < nights) continue
    const arrival = night + 1 - nights
    if (arrival >= arrivals || load<u8>(c + ALLOWED + usize(arrival)) == 0 || sum < minTotal || sum > maxTotal) continue
    const day = days + usize(arrival) * DAY_BYTES
    store<u32>(day, 1, DAY_COUNT)
    if (sum >= load<u64>(day)) continue
    store<u64>(day, sum)
    store<u64>(day, idHigh, DAY_ID)
    store<u64>(day, idLow, DAY_ID + 8)
  }
}

/** Loads what a row has in its planes, so that it arrives from memory in parallel. */
function touchRow(c: usize, leaves: usize, first: u32, from: u32, end: u32, row: u32): void {
  let seen: u32 = 0
  let slot = first
  for (let night = from; night < end; night++) {
    const leaf = usize(load<u32>(leaves + (usize(slot >> 5) << 2)))
    const plane = leaf == 0 ? 0 : usize(load<u32>(leaf + (usize(slot & 31) << 2)) & -DAY_ROUNDS)
    slot = slot + 1 == DAY_SLOTS ? 0 : slot + 1
    if (plane != 0) seen += load<u32>(plane + PLANE_WORDS + (usize(row) << 3))
  }
  store<u32>(c, seen, TOUCHED)
}

/** Writes the arrival days among `count` DAY records as those of a reply. @returns how many have a stay */
export function writeDays(days: usize, count: u32, to: usize): u32 {
  let found: u32 = 0
  let at = to
  const end = days + usize(count) * DAY_BYTES
  for (let day = days; day < end; day += DAY_BYTES) {
    const number = load<u32>(day, DAY_NUMBER)
    if (number == 0) continue
    store<u16>(at, number)
    if (load<u32>(day, DAY_COUNT) == 0) memory.fill(at + 2, 0, DAY_RECORD_BYTES - 2)
    else {
      found++
      store<u8>(at, 1, 2)
      v128.store(at + 3, v128.load(day))
      store<u64>(at + 19, load<u64>(day, 16))
      store<u32>(at + 27, load<u32>(day, 24))
    }
    at += DAY_RECORD_BYTES
  }
  return found
}

function touch(c: usize, list: usize, count: u32, span: u32): void {
  let seen: u32 = 0
  for (let night: u32 = 0; night < span; night++) {
    const plane = usize(load<u32>(c + PLANES + (usize(night) << 2)))
    if (plane == 0) continue
    for (let i: u32 = 0; i < count; i++) seen += load<u32>(plane + (usize(load<u32>(list + (usize(i) << 2))) << 3))
  }
  store<u32>(c, seen, TOUCHED)
}

/** Forgets all nights. */
function clear(c: usize, width: u32, ring: u32): void {
  memory.fill(c + RUNS, 0, usize(width) << 2)
  memory.fill(c + SUMS, 0, usize(width) << 3)
  for (let line: u32 = 0; line < ring; line++) memory.fill(c + RING + usize(line) * RING_LINE, 0, usize(width) << 2)
}

/** Adds a night to runs, sums and prices of all rows. */
function advance(c: usize, list: usize, count: u32, plane: usize, slot: u32): void {
  const ring = load<u32>(c, MOST_NIGHTS)
  const nights = load<u32>(c, NIGHTS)
  const newest = c + RING + usize(slot) * RING_LINE
  const oldest = c + RING + usize((slot + ring - nights) % ring) * RING_LINE
  const rooms = i32x4.splat(load<u32>(c, ROOMS_LEFT) - 1)
  const features = i32x4.splat(load<u32>(c, FEATURES))
  const least = load<u32>(c, INVERTED_MIN)
  // As in passing32 of kernel.as.ts: signed comparisons of unsigned numbers.
  const above = i32x4.splat(0x80000000 - least)
  const most = i32x4.splat((load<u32>(c, INVERTED_MAX) - least) ^ 0x80000000)
  const low = i32x4.splat(0xff)
  // Rows that fill the last four are not in order.
  const ordered = usize(count & ~3) << 2
  for (let i: usize = 0; i < usize(count) << 2; i += 16) {
    const first = load<u32>(list + i)
    const fourth = load<u32>(list + i, 12)
    const words = plane + (usize(first) << 3)
    let a: v128
    let b: v128
    if (i < ordered && fourth - first == 3) {
      a = v128.load(words)
      b = v128.load(words, 16)
    } else {
      a = v128.load64_zero(words)
      a = v128.load64_lane(plane + (usize(load<u32>(list + i, 4)) << 3), a, 1)
      b = v128.load64_zero(plane + (usize(load<u32>(list + i, 8)) << 3))
      b = v128.load64_lane(plane + (usize(fourth) << 3), b, 1)
    }
    const lo = v128.shuffle<i32>(a, b, 0, 2, 4, 6)
    const hi = v128.shuffle<i32>(a, b, 1, 3, 5, 7)
    const ok = v128.andnot(
      v128.and(v128.gt<i32>(v128.and(lo, low), rooms), v128.eq<i32>(v128.and(lo, features), features)),
      v128.gt<i32>(v128.add<i32>(hi, above), most),
    )
    const price = v128.andnot(ok, hi)
    v128.store(c + RUNS + i, v128.and(v128.sub<i32>(v128.load(c + RUNS + i), ok), ok))
    const old = v128.load(oldest + i)
    v128.store(newest + i, price)
    const sums = c + SUMS + (i << 1)
    v128.store(sums, v128.add<i64>(v128.load(sums), v128.sub<i64>(
      i64x2.extend_low_i32x4_u(price), i64x2.extend_low_i32x4_u(old))))
    v128.store(sums, v128.add<i64>(v128.load(sums, 16), v128.sub<i64>(
      i64x2.extend_high_i32x4_u(price), i64x2.extend_high_i32x4_u(old))), 16)
  }
}

/** Stays that end with this night, by day of arrival. */
function reduceDay(c: usize, list: usize, count: u32, night: u32): void {
  const nights = load<u32>(c, NIGHTS)
  const arrival = night + 1 - nights
  if (night + 1 < nights || arrival >= load<u32>(c, ARRIVALS) || load<u8>(c + ALLOWED + usize(arrival)) == 0) return
  const day = usize(load<u32>(c, DAYS)) + usize(arrival) * DAY_BYTES
  const ids = usize(load<u32>(c, ROW_IDS))
  const bounded = load<u32>(c, IS_BOUNDED) != 0
  const atLeast = i64x2.splat(load<i64>(c, MIN_TOTAL))
  const atMost = i64x2.splat(load<i64>(c, MAX_TOTAL))
  const withFits = load<u32>(c, WITH_FITS) != 0
  const fits = usize(load<u32>(c, OUT)) + FITS_BITS + usize(arrival) * FITS_BITS_BYTES
  const enough = i32x4.splat(nights - 1)
  let best = load<i64>(day)
  let bests = i64x2.splat(best)
  let high = bswap<u64>(load<u64>(day, DAY_ID))
  let low = bswap<u64>(load<u64>(day, DAY_ID + 8))
  let found = load<u32>(day, DAY_COUNT)
  for (let i: u32 = 0; i < count; i += 4) {
    let bits = u32(v128.bitmask<i32>(v128.gt<i32>(v128.load(c + RUNS + (usize(i) << 2)), enough)))
    if (i + 4 > count) bits &= (1 << (count - i)) - 1
    if (bits == 0) continue
    const sums = c + SUMS + (usize(i) << 3)
    const a = v128.load(sums)
    const b = v128.load(sums, 16)
    if (bounded) {
      bits &= u32(v128.bitmask<i64>(v128.and(v128.ge<i64>(a, atLeast), v128.le<i64>(a, atMost)))) |
        (u32(v128.bitmask<i64>(v128.and(v128.ge<i64>(b, atLeast), v128.le<i64>(b, atMost)))) << 2)
    }
    if (!withFits) found += popcnt<u32>(bits)
    else {
      const word = fits + (usize(i >> 5) << 2)
      store<u32>(word, load<u32>(word) | (bits << (i & 31)))
    }
    bits &= u32(v128.bitmask<i64>(v128.le<i64>(a, bests))) | (u32(v128.bitmask<i64>(v128.le<i64>(b, bests))) << 2)
    while (bits != 0) {
      const lane = ctz<u32>(bits)
      bits &= bits - 1
      const total = load<i64>(sums + (usize(lane) << 3))
      if (total > best) continue
      const id = ids + (usize(load<u32>(list + (usize(i + lane) << 2))) << 4)
      const idHigh = bswap<u64>(load<u64>(id))
      const idLow = bswap<u64>(load<u64>(id, 8))
      if (total == best && (idHigh > high || (idHigh == high && idLow >= low))) continue
      best = total
      bests = i64x2.splat(best)
      high = idHigh
      low = idLow
    }
  }
  store<i64>(day, best)
  store<u64>(day, bswap<u64>(high), DAY_ID)
  store<u64>(day, bswap<u64>(low), DAY_ID + 8)
  store<u32>(day, found, DAY_COUNT)
}

/** Stays that end with this night, by row: the lowest key, then the first arrival, then the fewest nights. */
function reduceRows(c: usize, width: u32, night: u32, slot: u32): void {
  const nights = load<u32>(c, NIGHTS)
  if (night + 1 < nights) return
  const ring = load<u32>(c, MOST_NIGHTS)
  const arrivals = load<u32>(c, ARRIVALS)
  const most = min(ring, night + 1)
  const atLeast = i64x2.splat(load<i64>(c, MIN_TOTAL))
  const atMost = i64x2.splat(load<i64>(c, MAX_TOTAL))
  const enough = i32x4.splat(nights - 1)
  for (let i: usize = 0; i < usize(width) << 2; i += 16) {
    const runs = v128.load(c + RUNS + i)
    if (!v128.any_true(v128.gt<i32>(runs, enough))) continue
    const at = i << 1
    let a = v128.load(c + SUMS + at)
    let b = v128.load(c + SUMS + at, 16)
    for (let length = nights; ; ) {
      const arrival = night + 1 - length
      if (arrival < arrivals && load<u8>(c + ALLOWED + usize(arrival)) != 0) {
        const fits = v128.gt<i32>(runs, i32x4.splat(length - 1))
        const factor = i64x2.splat(i64(load<u32>(c + FACTORS + (usize(length - nights) << 2))))
        const code = i64x2.splat(i64((arrival << 8) | length))
        const isLow = v128.and(v128.and(v128.ge<i64>(a, atLeast), v128.le<i64>(a, atMost)), i64x2.extend_low_i32x4_s(fits))
        const isHigh = v128.and(v128.and(v128.ge<i64>(b, atLeast), v128.le<i64>(b, atMost)), i64x2.extend_high_i32x4_s(fits))
        offer(c + BEST + at, c + CODES + at, v128.mul<i64>(a, factor), code, isLow)
        offer(c + BEST + at + 16, c + CODES + at + 16, v128.mul<i64>(b, factor), code, isHigh)
      }
      if (++length > most) break
      const older = v128.load(c + RING + usize((slot + ring + 1 - length) % ring) * RING_LINE + i)
      a = v128.add<i64>(a, i64x2.extend_low_i32x4_u(older))
      b = v128.add<i64>(b, i64x2.extend_high_i32x4_u(older))
    }
  }
}

// @ts-ignore: AssemblyScript
@inline
function offer(bests: usize, codes: usize, key: v128, code: v128, fits: v128): void {
  const best = v128.load(bests)
  const held = v128.load(codes)
  const isBetter = v128.and(fits, v128.or(
    v128.lt<i64>(key, best), v128.and(v128.eq<i64>(key, best), v128.lt<i64>(code, held))))
  v128.store(bests, v128.bitselect(key, best, isBetter))
  v128.store(codes, v128.bitselect(code, held, isBetter))
}

function placeOf(c: usize, row: u32): u32 {
  return load<u32>(usize(load<u32>(usize(load<u32>(c, ROW_PROPERTIES)) + (usize(row) << 2))), PROPERTY_ROW)
}

function writeFits(c: usize, list: usize, count: u32): void {
  const out = usize(load<u32>(c, OUT))
  store<u32>(out, count)
  for (let i: usize = 0; i < usize(count) << 2; i += 4) {
    store<u32>(out + FITS_PLACES + i, placeOf(c, load<u32>(list + i)))
  }
  store<u32>(c, u32(out) + FITS_BITS + load<u32>(c, ARRIVALS) * FITS_BITS_BYTES, OUT)
}

function writeStays(c: usize, list: usize, count: u32): void {
  const nights = load<u32>(c, NIGHTS)
  let out = usize(load<u32>(c, OUT))
  for (let i: u32 = 0; i < count; i++) {
    const best = load<u64>(c + BEST + (usize(i) << 3))
    if (i64(best) == NOTHING) continue
    const row = load<u32>(list + (usize(i) << 2))
    const code = load<u32>(c + CODES + (usize(i) << 3))
    store<u64>(out, best / u64(load<u32>(c + FACTORS + (usize((code & 0xff) - nights) << 2))))
    store<u32>(out, row, STAY_ROW)
    store<u32>(out, placeOf(c, row), STAY_PLACE)
    store<u32>(out, code, STAY_CODE)
    out += STAY_BYTES
  }
  store<u32>(c, u32(out), OUT)
}
