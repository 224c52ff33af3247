/**
 * Majorities and the values they have reached (docs/design/consensus.md#votes,
 * docs/design/consensus.md#when-a-configuration-takes-effect). Pure arithmetic.
 */

/**
 * The greatest value that a majority reaches, one value per voter. Sorts `values` in place: a leader calls it for each
 * batch.
 *
 * @returns Infinity when there are no voters: an absent half of a configuration agrees with everything
 */
export function majorityValue(values: number[]): number {
  const { length } = values
  if (length === 0) return Number.POSITIVE_INFINITY
  // Insertion sort, descending: at most seven values (docs/design/consensus.md#limits).
  for (let i = 1; i < length; i++) {
    const value = values[i]
    let at = i
    for (; at > 0 && values[at - 1] < value; at--) values[at] = values[at - 1]
    values[at] = value
  }
  return values[length >>> 1]
}

export type Tally = 'won' | 'lost' | 'pending'

/** The state of an election among `voters`; `votes` lacks voters without a reply. */
export function tally(voters: readonly number[], votes: ReadonlyMap<number, boolean>): Tally {
  const majority = (voters.length >>> 1) + 1
  let granted = 0
  let refused = 0
  for (const voter of voters) {
    const vote = votes.get(voter)
    if (vote === true) granted++
    else if (vote === false) refused++
  }
  if (voters.length === 0 || granted >= majority) return 'won'
  return voters.length - refused < majority ? 'lost' : 'pending'
}

/** docs/design/consensus.md#votes: both halves must be won; one that can no longer be won decides. */
export function jointTally(one: Tally, other: Tally): Tally {
  if (one === 'lost' || other === 'lost') return 'lost'
  return one === 'won' && other === 'won' ? 'won' : 'pending'
}
