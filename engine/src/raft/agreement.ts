/**
 * What a quorum of the configuration in force has reached: both halves of it while joint
 * (docs/design/consensus.md#when-a-configuration-takes-effect).
 */

import type { Progress } from './progress.ts'
import { majorityValue } from './quorum.ts'
import type { Raft } from './state.ts'

/** Scratch buffer, reused by every call. */
const values: number[] = []

/**
 * The greatest value that a majority of voters reach, in both halves. Learners and members that do not count yet are
 * excluded, and so is a leader that is not a voter (docs/design/consensus.md#when-a-configuration-takes-effect).
 *
 * @param own the value of this node
 */
export function reached(raft: Raft, own: number, reachOf: (peer: Progress) => number): number {
  const { peers, isMute } = raft
  const ownValue = isMute ? 0 : own
  values.length = 0
  if (raft.isOwnVoter) values.push(ownValue)
  for (const peer of peers) {
    if (peer.isVoter) values.push(peer.counts ? reachOf(peer) : 0)
  }
  const incoming = majorityValue(values)
  if (raft.configuration.outgoing.length === 0) return incoming
  values.length = 0
  if (raft.isOwnOutgoing) values.push(ownValue)
  for (const peer of peers) if (peer.isOutgoing) values.push(peer.counts ? reachOf(peer) : 0)
  return Math.min(incoming, majorityValue(values))
}
