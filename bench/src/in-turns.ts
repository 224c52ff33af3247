/** Loads that are compared, in turns. */

/**
 * Runs each load so many times. The last of a round is on the warmer machine, so every other round goes backwards.
 *
 * @returns what each load gave, by round
 */
export async function inTurns<Name extends string, Result>(
  rounds: number,
  loads: { readonly [name in Name]: (round: number) => Promise<Result> },
  onRound: (round: number) => void = () => {},
): Promise<{ readonly [name in Name]: Result[] }> {
  const names = Object.keys(loads) as Name[]
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Result[]>
  for (let round = 1; round <= rounds; round++) {
    for (const name of round % 2 === 1 ? names : names.toReversed()) results[name].push(await loads[name](round))
    onRound(round)
  }
  return results
}
