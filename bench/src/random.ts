/** Seeded randomness for data sets and load: equal seeds give equal numbers on every machine. */

/** Scrambles 32 bits so that every input bit moves about half of the output bits ("lowbias32", C. Wellons, 2018). */
function mix32(value: number): number {
  let x = value ^ (value >>> 16)
  x = Math.imul(x, 0x7feb352d)
  x ^= x >>> 15
  x = Math.imul(x, 0x846ca68b)
  return (x ^ (x >>> 16)) >>> 0
}

/** One 32-bit number for a pair: what lets any package be computed alone, without those before it. */
export function hash2(a: number, b: number): number {
  return mix32(mix32(a) ^ Math.imul(b + 1, 0x9e3779b9))
}

/** A stream of 32-bit numbers: the n-th is a hash of the seed and n. */
export type Random = { seed: number; drawn: number }

export function createRandom(seed: number): Random {
  return { seed: mix32(seed), drawn: 0 }
}

export function nextU32(random: Random): number {
  random.drawn += 1
  return hash2(random.seed, random.drawn)
}

/** A whole number from 0 to `end` − 1. The bias of the multiplication is below `end` / 2^32. */
export function below(random: Random, end: number): number {
  return Math.floor((nextU32(random) / 4294967296) * end)
}

/** A whole number from `least` to `most`, both included. */
export function between(random: Random, least: number, most: number): number {
  return least + below(random, most - least + 1)
}

/** Running sums of weights: `pickWeighted` draws index i with probability weight i / sum. */
export function cumulative(weights: readonly number[]): Float64Array {
  const sums = new Float64Array(weights.length)
  let sum = 0
  for (const [i, weight] of weights.entries()) {
    sum += weight
    sums[i] = sum
  }
  return sums
}

export function pickWeighted(random: Random, sums: Float64Array): number {
  const wanted = (nextU32(random) / 4294967296) * (sums[sums.length - 1] ?? 0)
  return upperBound(sums, wanted)
}

/** Index of the first entry of an ascending list that is greater than `value`; the length when there is none. */
export function upperBound(ascending: Float64Array | Uint32Array, value: number): number {
  let low = 0
  let high = ascending.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ascending[middle] ?? 0) > value) high = middle
    else low = middle + 1
  }
  return low
}

/** `count` different numbers below `end` as a bit mask; `end` is at most 31. */
export function pickMask(random: Random, end: number, count: number): number {
  let mask = 0
  let left = Math.min(count, end)
  while (left > 0) {
    const bit = 1 << below(random, end)
    if ((mask & bit) === 0) {
      mask |= bit
      left -= 1
    }
  }
  return mask
}

/**
 * A permutation of 0 … `size` − 1 that needs no table: four Feistel rounds over the next even number of bits,
 * walked on while the image lies outside (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
 */
export function permute(index: number, size: number, seed: number): number {
  const halfBits = Math.max(1, Math.ceil(Math.log2(size) / 2))
  const halfMask = 2 ** halfBits - 1
  let image = index
  do {
    let left = Math.floor(image / (halfMask + 1))
    let right = image & halfMask
    for (let round = 0; round < 4; round++) {
      const next = left ^ (hash2(seed + round, right) & halfMask)
      left = right
      right = next
    }
    image = left * (halfMask + 1) + right
  } while (image >= size)
  return image
}
