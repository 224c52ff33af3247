/**
 * Words of one range of rows over all its nights ⇄ byte planes. codec.ts defines the format.
 *
 * AssemblyScript. No data of its own and no allocation: every address is an argument. It processes sixteen rows at a
 * time, then four, then single rows: small tables are common, and the step of four decodes ten rows in a third of the
 * time. A night is read twice when encoded: first for the digest and the non-empty planes, then, from cache, for
 * those planes. Measured by snapshot.bench.ts.
 */

const ROWS_A_STEP: usize = 16
const WORD: usize = 8

/** Even 32-bit lanes of eight words' halves: the low halves of four words. */
@inline function lows(a: v128, b: v128): v128 { return v128.shuffle<i32>(a, b, 0, 2, 4, 6) }
@inline function highs(a: v128, b: v128): v128 { return v128.shuffle<i32>(a, b, 1, 3, 5, 7) }

/** Availability by difference, features by what changed. */
@inline function lowDelta(now: v128, before: v128): v128 {
  return v128.bitselect(i8x16.sub(now, before), v128.xor(now, before), i32x4.splat(0xff))
}
@inline function lowSum(delta: v128, before: v128): v128 {
  return v128.bitselect(i8x16.add(delta, before), v128.xor(delta, before), i32x4.splat(0xff))
}

/** Price minus the price before, which is the inverted price before minus the inverted price; zigzag. */
@inline function highDelta(now: v128, before: v128): v128 {
  const difference = i32x4.sub(before, now)
  return v128.xor(i32x4.shl(difference, 1), i32x4.shr_s(difference, 31))
}
@inline function highSum(delta: v128, before: v128): v128 {
  const sign = i32x4.neg(v128.and(delta, i32x4.splat(1)))
  return i32x4.sub(before, v128.xor(i32x4.shr_u(delta, 1), sign))
}

/** packageHash of store/digest.ts for four words, not yet emptied where there is no package. */
@inline function hash(key: v128, lo: v128, hi: v128, day: v128, a: v128, b: v128, c: v128): v128 {
  let h = i32x4.mul(v128.xor(key, lo), a)
  h = i32x4.mul(i32x4.add(v128.xor(h, i32x4.shr_u(h, 15)), hi), b)
  h = i32x4.mul(i32x4.add(v128.xor(h, i32x4.shr_u(h, 13)), day), c)
  return v128.xor(h, i32x4.shr_u(h, 16))
}
@inline function hashOne(key: u32, lo: u32, hi: u32, day: u32, a: u32, b: u32, c: u32): u32 {
  let h: u32 = (key ^ lo) * a
  h = ((h ^ (h >> 15)) + hi) * b
  h = ((h ^ (h >> 13)) + day) * c
  return h ^ (h >> 16)
}

const A0: u32 = 0x9e3779b1, A1: u32 = 0x27d4eb2f
const B0: u32 = 0x85ebca77, B1: u32 = 0x165667b1
const C0: u32 = 0xc2b2ae3d, C1: u32 = 0x2545f491

@inline function sumOf(v: v128): u32 {
  return i32x4.extract_lane(v, 0) + i32x4.extract_lane(v, 1) + i32x4.extract_lane(v, 2) + i32x4.extract_lane(v, 3)
}
@inline function anyOf(v: v128): u32 {
  return i32x4.extract_lane(v, 0) | i32x4.extract_lane(v, 1) | i32x4.extract_lane(v, 2) | i32x4.extract_lane(v, 3)
}
/** One bit a byte that is not zero. */
@inline function bytesOf(v: u32): u32 {
  return u32((v & 0xff) != 0) | (u32((v & 0xff00) != 0) << 1) | (u32((v & 0xff0000) != 0) << 2) | (u32((v & 0xff000000) != 0) << 3)
}

/** Encodes; arguments as in codec.ts, SnapshotKernel.encode. */
export function encode(
  planes: usize, nights: u32, rows: u32, days: usize, keysLow: usize, keysHigh: usize,
  masks: usize, cursors: usize, stats: usize,
): void {
  let before: usize = 0
  for (let night: u32 = 0; night < nights; night++) {
    const words: usize = load<u32>(planes + (night << 2))
    const mask = survey(words, before, rows, load<u32>(days + (night << 2)), keysLow, keysHigh, stats)
    store<u8>(masks + night, mask)
    if (mask != 0) spread(words, before, rows, mask, cursors)
    before = words
  }
}

/** Adds packages and digest of a night to the stats; @returns which bytes of the deltas are not all zero */
function survey(words: usize, before: usize, rows: usize, day: u32, keysLow: usize, keysHigh: usize, stats: usize): u32 {
  const a0 = i32x4.splat(A0), b0 = i32x4.splat(B0), c0 = i32x4.splat(C0)
  const a1 = i32x4.splat(A1), b1 = i32x4.splat(B1), c1 = i32x4.splat(C1)
  const dayLanes = i32x4.splat(day)
  const zero = i32x4.splat(0)
  let usedLow = zero, usedHigh = zero, present = zero, digestLow = zero, digestHigh = zero
  const even = rows & ~3
  let row: usize = 0
  for (; row < even; row += 4) {
    const at = words + row * WORD
    const x = v128.load(at), y = v128.load(at, 16)
    const lo = lows(x, y), hi = highs(x, y)
    if (before != 0) {
      const p = v128.load(before + row * WORD), q = v128.load(before + row * WORD, 16)
      usedLow = v128.or(usedLow, lowDelta(lo, lows(p, q)))
      usedHigh = v128.or(usedHigh, highDelta(hi, highs(p, q)))
    } else {
      usedLow = v128.or(usedLow, lo)
      usedHigh = v128.or(usedHigh, highDelta(hi, zero))
    }
    const some = i32x4.ne(v128.or(lo, hi), zero)
    present = i32x4.sub(present, some)
    const key0 = v128.load(keysLow + (row << 2)), key1 = v128.load(keysHigh + (row << 2))
    digestLow = i32x4.add(digestLow, v128.and(some, hash(key0, lo, hi, dayLanes, a0, b0, c0)))
    digestHigh = i32x4.add(digestHigh, v128.and(some, hash(key1, lo, hi, dayLanes, a1, b1, c1)))
  }
  let low = anyOf(usedLow), high = anyOf(usedHigh)
  let packages = sumOf(present), digest0 = sumOf(digestLow), digest1 = sumOf(digestHigh)
  for (; row < rows; row++) {
    const lo = load<u32>(words + row * WORD), hi = load<u32>(words + row * WORD, 4)
    low |= lowDeltaOne(lo, before, row)
    high |= highDeltaOne(hi, before, row)
    if ((lo | hi) == 0) continue
    packages++
    digest0 += hashOne(load<u32>(keysLow + (row << 2)), lo, hi, day, A0, B0, C0)
    digest1 += hashOne(load<u32>(keysHigh + (row << 2)), lo, hi, day, A1, B1, C1)
  }
  store<u32>(stats, load<u32>(stats) + packages)
  store<u32>(stats, load<u32>(stats, 4) + digest0, 4)
  store<u32>(stats, load<u32>(stats, 8) + digest1, 8)
  return bytesOf(low) | (bytesOf(high) << 4)
}

@inline function lowDeltaOne(lo: u32, before: usize, row: usize): u32 {
  const old: u32 = before != 0 ? load<u32>(before + row * WORD) : 0
  return ((lo - old) & 0xff) | ((lo ^ old) & 0xffffff00)
}
@inline function highDeltaOne(hi: u32, before: usize, row: usize): u32 {
  const old: u32 = before != 0 ? load<u32>(before + row * WORD, 4) : 0
  const difference = old - hi
  return (difference << 1) ^ u32(i32(difference) >> 31)
}

/** Four vectors of four 32-bit values → their first, second, third and fourth bytes, in two steps. */
@inline function bytes01(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29)
}
@inline function bytes23(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31)
}
/** The same for one vector: its first bytes in lane 0, its second ones in lane 1 and so on. */
@inline function fourBytes(a: v128): v128 {
  return v128.shuffle<i8>(a, a, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
}
@inline function firsts(a: v128, b: v128): v128 { return v128.shuffle<i64>(a, b, 0, 2) }
@inline function seconds(a: v128, b: v128): v128 { return v128.shuffle<i64>(a, b, 1, 3) }

/** Writes the deltas of a night to the planes of its mask and moves their cursors. */
function spread(words: usize, before: usize, rows: usize, mask: u32, cursors: usize): void {
  const p0: usize = load<u32>(cursors), p1: usize = load<u32>(cursors, 4), p2: usize = load<u32>(cursors, 8)
  const p3: usize = load<u32>(cursors, 12), p4: usize = load<u32>(cursors, 16), p5: usize = load<u32>(cursors, 20)
  const p6: usize = load<u32>(cursors, 24), p7: usize = load<u32>(cursors, 28)
  const zero = i32x4.splat(0)
  const whole = rows & ~(ROWS_A_STEP - 1)
  let row: usize = 0
  for (; row < whole; row += ROWS_A_STEP) {
    const at = words + row * WORD
    const x0 = v128.load(at), x1 = v128.load(at, 16), x2 = v128.load(at, 32), x3 = v128.load(at, 48)
    const x4 = v128.load(at, 64), x5 = v128.load(at, 80), x6 = v128.load(at, 96), x7 = v128.load(at, 112)
    let q0 = zero, q1 = zero, q2 = zero, q3 = zero, q4 = zero, q5 = zero, q6 = zero, q7 = zero
    if (before != 0) {
      const old = before + row * WORD
      q0 = v128.load(old); q1 = v128.load(old, 16); q2 = v128.load(old, 32); q3 = v128.load(old, 48)
      q4 = v128.load(old, 64); q5 = v128.load(old, 80); q6 = v128.load(old, 96); q7 = v128.load(old, 112)
    }
    if ((mask & 0x0f) != 0) {
      const d0 = lowDelta(lows(x0, x1), lows(q0, q1)), d1 = lowDelta(lows(x2, x3), lows(q2, q3))
      const d2 = lowDelta(lows(x4, x5), lows(q4, q5)), d3 = lowDelta(lows(x6, x7), lows(q6, q7))
      if ((mask & 0x03) != 0) {
        const e = bytes01(d0, d1), f = bytes01(d2, d3)
        if ((mask & 1) != 0) v128.store(p0 + row, firsts(e, f))
        if ((mask & 2) != 0) v128.store(p1 + row, seconds(e, f))
      }
      if ((mask & 0x0c) != 0) {
        const e = bytes23(d0, d1), f = bytes23(d2, d3)
        if ((mask & 4) != 0) v128.store(p2 + row, firsts(e, f))
        if ((mask & 8) != 0) v128.store(p3 + row, seconds(e, f))
      }
    }
    if ((mask & 0xf0) != 0) {
      const d0 = highDelta(highs(x0, x1), highs(q0, q1)), d1 = highDelta(highs(x2, x3), highs(q2, q3))
      const d2 = highDelta(highs(x4, x5), highs(q4, q5)), d3 = highDelta(highs(x6, x7), highs(q6, q7))
      if ((mask & 0x30) != 0) {
        const e = bytes01(d0, d1), f = bytes01(d2, d3)
        if ((mask & 16) != 0) v128.store(p4 + row, firsts(e, f))
        if ((mask & 32) != 0) v128.store(p5 + row, seconds(e, f))
      }
      if ((mask & 0xc0) != 0) {
        const e = bytes23(d0, d1), f = bytes23(d2, d3)
        if ((mask & 64) != 0) v128.store(p6 + row, firsts(e, f))
        if ((mask & 128) != 0) v128.store(p7 + row, seconds(e, f))
      }
    }
  }
  const even = rows & ~3
  for (; row < even; row += 4) {
    const at = words + row * WORD
    const x = v128.load(at), y = v128.load(at, 16)
    let p = zero, q = zero
    if (before != 0) {
      p = v128.load(before + row * WORD)
      q = v128.load(before + row * WORD, 16)
    }
    const low = fourBytes(lowDelta(lows(x, y), lows(p, q)))
    const high = fourBytes(highDelta(highs(x, y), highs(p, q)))
    if ((mask & 1) != 0) v128.store32_lane(p0 + row, low, 0)
    if ((mask & 2) != 0) v128.store32_lane(p1 + row, low, 1)
    if ((mask & 4) != 0) v128.store32_lane(p2 + row, low, 2)
    if ((mask & 8) != 0) v128.store32_lane(p3 + row, low, 3)
    if ((mask & 16) != 0) v128.store32_lane(p4 + row, high, 0)
    if ((mask & 32) != 0) v128.store32_lane(p5 + row, high, 1)
    if ((mask & 64) != 0) v128.store32_lane(p6 + row, high, 2)
    if ((mask & 128) != 0) v128.store32_lane(p7 + row, high, 3)
  }
  for (; row < rows; row++) {
    const low = lowDeltaOne(load<u32>(words + row * WORD), before, row)
    const high = highDeltaOne(load<u32>(words + row * WORD, 4), before, row)
    if ((mask & 1) != 0) store<u8>(p0 + row, low)
    if ((mask & 2) != 0) store<u8>(p1 + row, low >> 8)
    if ((mask & 4) != 0) store<u8>(p2 + row, low >> 16)
    if ((mask & 8) != 0) store<u8>(p3 + row, low >> 24)
    if ((mask & 16) != 0) store<u8>(p4 + row, high)
    if ((mask & 32) != 0) store<u8>(p5 + row, high >> 8)
    if ((mask & 64) != 0) store<u8>(p6 + row, high >> 16)
    if ((mask & 128) != 0) store<u8>(p7 + row, high >> 24)
  }
  advance(mask, rows, cursors)
}

@inline function advance(mask: u32, rows: usize, cursors: usize): void {
  for (let plane: u32 = 0; plane < 8; plane++) {
    if (((mask >> plane) & 1) != 0) store<u32>(cursors + (plane << 2), load<u32>(cursors + (plane << 2)) + u32(rows))
  }
}

/** Decodes; arguments as in codec.ts, SnapshotKernel.decode. */
export function decode(
  planes: usize, nights: u32, rows: u32, days: usize, keysLow: usize, keysHigh: usize,
  masks: usize, cursors: usize, stats: usize, available: usize, nightStats: usize,
): void {
  let before: usize = 0
  for (let night: u32 = 0; night < nights; night++) {
    const words: usize = load<u32>(planes + (night << 2))
    const bits = available != 0 ? usize(load<u32>(available + (night << 2))) : 0
    const sums = nightStats != 0 ? usize(load<u32>(nightStats + (night << 2))) : 0
    const mask: u32 = load<u8>(masks + night)
    gather(words, before, rows, mask, cursors, load<u32>(days + (night << 2)), keysLow, keysHigh, stats, bits, sums)
    before = words
  }
}

/** Interleaves bytes: the inverse of bytes01, bytes23, firsts and seconds. */
@inline function zipLow(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
}
@inline function zipHigh(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
}
@inline function zipLow16(a: v128, b: v128): v128 { return v128.shuffle<i16>(a, b, 0, 8, 1, 9, 2, 10, 3, 11) }
@inline function zipHigh16(a: v128, b: v128): v128 { return v128.shuffle<i16>(a, b, 4, 12, 5, 13, 6, 14, 7, 15) }
@inline function zipLow32(a: v128, b: v128): v128 { return v128.shuffle<i32>(a, b, 0, 4, 1, 5) }
@inline function zipHigh32(a: v128, b: v128): v128 { return v128.shuffle<i32>(a, b, 2, 6, 3, 7) }

/** Writes one night from its planes and the night before. */
function gather(
  words: usize, before: usize, rows: usize, mask: u32, cursors: usize, day: u32, keysLow: usize, keysHigh: usize,
  stats: usize, bits: usize, sums: usize,
): void {
  const p0: usize = load<u32>(cursors), p1: usize = load<u32>(cursors, 4), p2: usize = load<u32>(cursors, 8)
  const p3: usize = load<u32>(cursors, 12), p4: usize = load<u32>(cursors, 16), p5: usize = load<u32>(cursors, 20)
  const p6: usize = load<u32>(cursors, 24), p7: usize = load<u32>(cursors, 28)
  const a0 = i32x4.splat(A0), b0 = i32x4.splat(B0), c0 = i32x4.splat(C0)
  const a1 = i32x4.splat(A1), b1 = i32x4.splat(B1), c1 = i32x4.splat(C1)
  const dayLanes = i32x4.splat(day), rooms = i32x4.splat(0xff)
  const zero = i32x4.splat(0)
  let present = zero, digestLow = zero, digestHigh = zero
  const whole = rows & ~(ROWS_A_STEP - 1)
  let row: usize = 0
  for (; row < whole; row += ROWS_A_STEP) {
    let l0 = zero, l1 = zero, l2 = zero, l3 = zero, h0 = zero, h1 = zero, h2 = zero, h3 = zero
    if ((mask & 0x0f) != 0) {
      const v0 = (mask & 1) != 0 ? v128.load(p0 + row) : zero
      const v1 = (mask & 2) != 0 ? v128.load(p1 + row) : zero
      const v2 = (mask & 4) != 0 ? v128.load(p2 + row) : zero
      const v3 = (mask & 8) != 0 ? v128.load(p3 + row) : zero
      const e = zipLow(v0, v1), f = zipHigh(v0, v1), g = zipLow(v2, v3), h = zipHigh(v2, v3)
      l0 = zipLow16(e, g); l1 = zipHigh16(e, g); l2 = zipLow16(f, h); l3 = zipHigh16(f, h)
    }
    if ((mask & 0xf0) != 0) {
      const v0 = (mask & 16) != 0 ? v128.load(p4 + row) : zero
      const v1 = (mask & 32) != 0 ? v128.load(p5 + row) : zero
      const v2 = (mask & 64) != 0 ? v128.load(p6 + row) : zero
      const v3 = (mask & 128) != 0 ? v128.load(p7 + row) : zero
      const e = zipLow(v0, v1), f = zipHigh(v0, v1), g = zipLow(v2, v3), h = zipHigh(v2, v3)
      h0 = zipLow16(e, g); h1 = zipHigh16(e, g); h2 = zipLow16(f, h); h3 = zipHigh16(f, h)
    }
    if (before != 0) {
      const old = before + row * WORD
      const q0 = v128.load(old), q1 = v128.load(old, 16), q2 = v128.load(old, 32), q3 = v128.load(old, 48)
      const q4 = v128.load(old, 64), q5 = v128.load(old, 80), q6 = v128.load(old, 96), q7 = v128.load(old, 112)
      l0 = lowSum(l0, lows(q0, q1)); l1 = lowSum(l1, lows(q2, q3))
      l2 = lowSum(l2, lows(q4, q5)); l3 = lowSum(l3, lows(q6, q7))
      h0 = highSum(h0, highs(q0, q1)); h1 = highSum(h1, highs(q2, q3))
      h2 = highSum(h2, highs(q4, q5)); h3 = highSum(h3, highs(q6, q7))
    } else {
      h0 = highSum(h0, zero); h1 = highSum(h1, zero); h2 = highSum(h2, zero); h3 = highSum(h3, zero)
    }
    const at = words + row * WORD
    v128.store(at, zipLow32(l0, h0)); v128.store(at, zipHigh32(l0, h0), 16)
    v128.store(at, zipLow32(l1, h1), 32); v128.store(at, zipHigh32(l1, h1), 48)
    v128.store(at, zipLow32(l2, h2), 64); v128.store(at, zipHigh32(l2, h2), 80)
    v128.store(at, zipLow32(l3, h3), 96); v128.store(at, zipHigh32(l3, h3), 112)
    if (bits != 0) {
      const full = i32x4.bitmask(i32x4.ne(v128.and(l0, rooms), zero))
        | (i32x4.bitmask(i32x4.ne(v128.and(l1, rooms), zero)) << 4)
        | (i32x4.bitmask(i32x4.ne(v128.and(l2, rooms), zero)) << 8)
        | (i32x4.bitmask(i32x4.ne(v128.and(l3, rooms), zero)) << 12)
      store<u16>(bits + (row >> 3), u16(full))
    }
    const s0 = i32x4.ne(v128.or(l0, h0), zero), s1 = i32x4.ne(v128.or(l1, h1), zero)
    const s2 = i32x4.ne(v128.or(l2, h2), zero), s3 = i32x4.ne(v128.or(l3, h3), zero)
    present = i32x4.sub(present, i32x4.add(i32x4.add(s0, s1), i32x4.add(s2, s3)))
    const k = keysLow + (row << 2), m = keysHigh + (row << 2)
    digestLow = i32x4.add(digestLow, i32x4.add(
      i32x4.add(v128.and(s0, hash(v128.load(k), l0, h0, dayLanes, a0, b0, c0)), v128.and(s1, hash(v128.load(k, 16), l1, h1, dayLanes, a0, b0, c0))),
      i32x4.add(v128.and(s2, hash(v128.load(k, 32), l2, h2, dayLanes, a0, b0, c0)), v128.and(s3, hash(v128.load(k, 48), l3, h3, dayLanes, a0, b0, c0)))))
    digestHigh = i32x4.add(digestHigh, i32x4.add(
      i32x4.add(v128.and(s0, hash(v128.load(m), l0, h0, dayLanes, a1, b1, c1)), v128.and(s1, hash(v128.load(m, 16), l1, h1, dayLanes, a1, b1, c1))),
      i32x4.add(v128.and(s2, hash(v128.load(m, 32), l2, h2, dayLanes, a1, b1, c1)), v128.and(s3, hash(v128.load(m, 48), l3, h3, dayLanes, a1, b1, c1)))))
  }
  const even = rows & ~3
  for (; row < even; row += 4) {
    let l = zero, h = zero
    if ((mask & 0x0f) != 0) {
      const v0 = (mask & 1) != 0 ? v128.load32_zero(p0 + row) : zero
      const v1 = (mask & 2) != 0 ? v128.load32_zero(p1 + row) : zero
      const v2 = (mask & 4) != 0 ? v128.load32_zero(p2 + row) : zero
      const v3 = (mask & 8) != 0 ? v128.load32_zero(p3 + row) : zero
      l = zipLow16(zipLow(v0, v1), zipLow(v2, v3))
    }
    if ((mask & 0xf0) != 0) {
      const v0 = (mask & 16) != 0 ? v128.load32_zero(p4 + row) : zero
      const v1 = (mask & 32) != 0 ? v128.load32_zero(p5 + row) : zero
      const v2 = (mask & 64) != 0 ? v128.load32_zero(p6 + row) : zero
      const v3 = (mask & 128) != 0 ? v128.load32_zero(p7 + row) : zero
      h = zipLow16(zipLow(v0, v1), zipLow(v2, v3))
    }
    if (before != 0) {
      const q0 = v128.load(before + row * WORD), q1 = v128.load(before + row * WORD, 16)
      l = lowSum(l, lows(q0, q1))
      h = highSum(h, highs(q0, q1))
    } else {
      h = highSum(h, zero)
    }
    const at = words + row * WORD
    v128.store(at, zipLow32(l, h)); v128.store(at, zipHigh32(l, h), 16)
    if (bits != 0) {
      const free = i32x4.bitmask(i32x4.ne(v128.and(l, rooms), zero))
      const byte = bits + (row >> 3)
      store<u8>(byte, load<u8>(byte) | u8(u32(free) << u32(row & 4)))
    }
    const some = i32x4.ne(v128.or(l, h), zero)
    present = i32x4.sub(present, some)
    digestLow = i32x4.add(digestLow, v128.and(some, hash(v128.load(keysLow + (row << 2)), l, h, dayLanes, a0, b0, c0)))
    digestHigh = i32x4.add(digestHigh, v128.and(some, hash(v128.load(keysHigh + (row << 2)), l, h, dayLanes, a1, b1, c1)))
  }
  let packages = sumOf(present), digest0 = sumOf(digestLow), digest1 = sumOf(digestHigh)
  for (; row < rows; row++) {
    let low: u32 = 0, high: u32 = 0
    if ((mask & 1) != 0) low |= load<u8>(p0 + row)
    if ((mask & 2) != 0) low |= u32(load<u8>(p1 + row)) << 8
    if ((mask & 4) != 0) low |= u32(load<u8>(p2 + row)) << 16
    if ((mask & 8) != 0) low |= u32(load<u8>(p3 + row)) << 24
    if ((mask & 16) != 0) high |= load<u8>(p4 + row)
    if ((mask & 32) != 0) high |= u32(load<u8>(p5 + row)) << 8
    if ((mask & 64) != 0) high |= u32(load<u8>(p6 + row)) << 16
    if ((mask & 128) != 0) high |= u32(load<u8>(p7 + row)) << 24
    let oldLow: u32 = 0, oldHigh: u32 = 0
    if (before != 0) {
      oldLow = load<u32>(before + row * WORD)
      oldHigh = load<u32>(before + row * WORD, 4)
    }
    const lo = ((low + oldLow) & 0xff) | ((low ^ oldLow) & 0xffffff00)
    const hi = oldHigh - ((high >> 1) ^ (0 - (high & 1)))
    store<u32>(words + row * WORD, lo)
    store<u32>(words + row * WORD, hi, 4)
    if (bits != 0 && (lo & 0xff) != 0) {
      const at = bits + (row >> 3)
      store<u8>(at, load<u8>(at) | u8(u32(1) << u32(row & 7)))
    }
    if ((lo | hi) == 0) continue
    packages++
    digest0 += hashOne(load<u32>(keysLow + (row << 2)), lo, hi, day, A0, B0, C0)
    digest1 += hashOne(load<u32>(keysHigh + (row << 2)), lo, hi, day, A1, B1, C1)
  }
  advance(mask, rows, cursors)
  store<u32>(stats, load<u32>(stats) + packages)
  store<u32>(stats, load<u32>(stats, 4) + digest0, 4)
  store<u32>(stats, load<u32>(stats, 8) + digest1, 8)
  if (sums != 0) {
    // Several threads may decode ranges of the same night.
    atomic.add<u32>(sums, packages)
    atomic.add<u32>(sums, digest0, 4)
    atomic.add<u32>(sums, digest1, 8)
  }
}
