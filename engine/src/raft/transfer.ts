/**
 * Handing leadership to a peer that has everything (docs/design/consensus.md#leadership-transfer,
 * docs/design/consensus.md#when-a-configuration-takes-effect).
 */

import { assert } from '@vacancy/shared'
import { isVoter } from './membership.ts'
import type { Progress } from './progress.ts'
import { peerOf, type Raft, send } from './state.ts'

export type TransferRefusal = 'no-leader' | 'unknown-member' | 'not-voter'

/**
 * Brings the target up to the end of the log and has it campaign at once; until then, or for E ticks, proposals are
 * dropped. Another transfer that runs is aborted. On a follower the wish is passed on to the leader.
 */
export function transferLeader(raft: Raft, target: number): 'taken' | TransferRefusal {
  if (raft.role !== 'leader') {
    if (raft.leader === 0) return 'no-leader'
    send(raft, { type: 'transferLeader', from: raft.id, to: raft.leader, term: 0, target })
    return 'taken'
  }
  if (target === raft.id || target === raft.transferTarget) return 'taken'
  const peer = peerOf(raft, target)
  if (!peer) return 'unknown-member'
  if (!isVoter(raft.configuration, target)) return 'not-voter'
  raft.transferTarget = target
  raft.transferElapsed = 0
  hurryTransfer(raft, peer)
  raft.mustBroadcast = true
  return 'taken'
}

export function abortTransfer(raft: Raft): void {
  raft.transferTarget = 0
  raft.transferElapsed = 0
}

/** One tick of a leader; the target has E of them. */
export function tickTransfer(raft: Raft): void {
  if (raft.transferTarget === 0) return
  raft.transferElapsed++
  if (raft.transferElapsed >= raft.config.electionTicks) abortTransfer(raft)
}

/** The target stands for leader as soon as it has all entries. */
export function hurryTransfer(raft: Raft, peer: Progress): void {
  if (raft.transferTarget !== peer.id || peer.match !== raft.lastIndex) return
  assert(raft.role === 'leader', 'a leader hands over what it has')
  send(raft, { type: 'timeoutNow', from: raft.id, to: peer.id, term: raft.term })
}
