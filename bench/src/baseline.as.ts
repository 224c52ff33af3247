// AssemblyScript: what this machine can do at best, for the baselines of baselines.ts. Compiled when a benchmark
// starts (about a second); never part of a node. Memory is imported, addresses are bytes, lengths multiples of 64.

/** How many bytes are line feeds: the least that any reader of a CSV file must do. */
export function countNewlines(start: usize, length: usize): i32 {
  const newline = i8x16.splat(10)
  let count = 0
  for (let at = start, end = start + length; at < end; at += 64) {
    count += i32.popcnt(i8x16.bitmask(i8x16.eq(v128.load(at), newline)))
    count += i32.popcnt(i8x16.bitmask(i8x16.eq(v128.load(at, 16), newline)))
    count += i32.popcnt(i8x16.bitmask(i8x16.eq(v128.load(at, 32), newline)))
    count += i32.popcnt(i8x16.bitmask(i8x16.eq(v128.load(at, 48), newline)))
  }
  return count
}

/** Adds up all words, in four independent sums so that loads and not additions are what it waits for. */
export function sumWords(start: usize, length: usize): i32 {
  let a = i32x4.splat(0)
  let b = i32x4.splat(0)
  let c = i32x4.splat(0)
  let d = i32x4.splat(0)
  for (let at = start, end = start + length; at < end; at += 64) {
    a = i32x4.add(a, v128.load(at))
    b = i32x4.add(b, v128.load(at, 16))
    c = i32x4.add(c, v128.load(at, 32))
    d = i32x4.add(d, v128.load(at, 48))
  }
  const sum = i32x4.add(i32x4.add(a, b), i32x4.add(c, d))
  return (
    i32x4.extract_lane(sum, 0) +
    i32x4.extract_lane(sum, 1) +
    i32x4.extract_lane(sum, 2) +
    i32x4.extract_lane(sum, 3)
  )
}
