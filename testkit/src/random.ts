/** A seeded random number generator for tests and simulations: the same seed gives the same run. */

export type Random = {
  /** 32 bits, unsigned. */
  next(): number
  /** A whole number from 0 to `limit` − 1. */
  below(limit: number): number
}

/** sfc32 by Chris Doty-Humphrey, which passes PractRand and needs four words of state. */
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

/** Numbers from 0 up to 1. */
export type Uniform = () => number

/** mulberry32: quicker than `createRandom`, for filling large data sets. */
export function seeded(seed: number): Uniform {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * A separate generator for one part of a simulation: drawing more numbers in one part does not affect the others
 * (docs/design/testing.md#simulation).
 */
export function streamOf(seed: number, name: string): Random {
  let hash = 0x811c9dc5 ^ (seed % 2 ** 32)
  hash = Math.imul(hash ^ Math.floor(seed / 2 ** 32), 0x85ebca6b)
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0xc2b2ae35)
  return createRandom(hash ^ (hash >>> 13))
}

/** From `least` to `most`, inclusive. */
export function between(random: Random, least: number, most: number): number {
  return least + random.below(most - least + 1)
}

/** Between two numbers, log-uniform: for rates, sizes and times that span orders of magnitude. */
export function betweenDecades(random: Random, least: number, most: number): number {
  const exponent = Math.log(least) + (random.next() / 2 ** 32) * (Math.log(most) - Math.log(least))
  return Math.round(Math.exp(exponent))
}

/** True with probability `p`, 0 … 1. */
export function chance(random: Random, p: number): boolean {
  return random.next() < p * 2 ** 32
}

export function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[random.below(choices.length)] as T
}

/** Shuffles in place, with uniform probability. */
export function shuffle<T>(random: Random, items: T[]): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const other = random.below(i + 1)
    const moved = items[i] as T
    items[i] = items[other] as T
    items[other] = moved
  }
  return items
}

/** Of `npm test`, which has little time: `npm run test:all` tries as often as a test names. */
const isShort = process.env['VACANCY_TEST_TRIES'] === 'few'

/** How often a test tries something that it could try without end: a fifth of `all` in `npm test`. */
export const tries = (all: number): number => (isShort ? Math.ceil(all / 5) : all)
