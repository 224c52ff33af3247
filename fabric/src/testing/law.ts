/** Property tests with one way to repeat a failure: VACANCY_SEED takes the seed back that fast-check printed. */

import fc from 'fast-check'

const seed = process.env['VACANCY_SEED']

/** Checks a law on random values; a failure prints its seed and the smallest counterexample. */
export function law<Values extends [unknown, ...unknown[]]>(
  values: { [I in keyof Values]: fc.Arbitrary<Values[I]> },
  check: (...values: Values) => void,
): void {
  const options = seed === undefined ? {} : { seed: Number(seed) }
  const property = fc.property(...values, (...drawn) => {
    check(...(drawn as Values))
  })
  fc.assert(property, options)
}
