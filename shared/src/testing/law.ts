import fc from 'fast-check'

/** Checks a law on random values; a failure prints its seed, which VACANCY_SEED takes back, and the smallest counterexample. */
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
