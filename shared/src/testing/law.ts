import fc from 'fast-check'

/**
 * Checks a property on random values. A failure prints its seed, which VACANCY_SEED accepts, and the smallest
 * counterexample.
 */
export function law<Values extends [unknown, ...unknown[]]>(
  values: { [I in keyof Values]: fc.Arbitrary<Values[I]> },
  check: (...values: Values) => void,
  runs = 200,
): void {
  const property = fc.property(...values, (...drawn) => {
    check(...(drawn as Values))
  })
  fc.assert(property, { numRuns: runs })
}
