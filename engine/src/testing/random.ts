/** A seeded source of numbers for tests and simulations: the same seed gives the same run. */

export type Random = {
  /** 32 bits, unsigned. */
  next(): number
  /** A whole number from 0 to `limit` − 1. */
  below(limit: number): number
}

/** sfc32 by Chris Doty-Humphrey (PractRand), which passes its tests and needs four words of state. */
export function createRandom(seed: number): Random {
  let a = 0x9e3779b9
  let b = 0x243f6a88
  let c = seed >>> 0
  let counter = 1
  const next = (): number => {
    const result = (a + b + counter) >>> 0
    counter = (counter + 1) >>> 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) >>> 0
    c = (((c << 21) | (c >>> 11)) + result) >>> 0
    return result
  }
  for (let i = 0; i < 12; i++) next()
  return { next, below: (limit) => Math.floor((next() / 2 ** 32) * limit) }
}
