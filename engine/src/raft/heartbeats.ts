/**
 * Heartbeats of a leader, and the check-quorum on their replies (docs/design/protocol.md#peer-frames,
 * docs/design/consensus.md#check-quorum, docs/design/consensus.md#invariants).
 */

import { assert } from '@vacancy/shared'
import { reached } from './agreement.ts'
import type { Progress } from './progress.ts'
import { becomeFollower, type Raft, send } from './state.ts'

/**
 * To all members in any state: a heartbeat prevents elections and carries the round of reads
 * (docs/design/consensus.md#reads).
 */
export function sendHeartbeats(raft: Raft): void {
  raft.heartbeatElapsed = 0
  for (const peer of raft.peers) {
    // Only up to what the peer itself acknowledged: its log may differ after that.
    const commit = Math.min(peer.match, raft.commit)
    assert(commit <= peer.match, 'a heartbeat commits only existing entries')
    const { id: from, term, readRound } = raft
    send(raft, { type: 'heartbeat', from, to: peer.id, term, commit, readRound })
  }
}

const activity = (peer: Progress): number => (peer.isActive ? 1 : 0)

/**
 * docs/design/consensus.md#check-quorum: a leader without replies from a quorum steps down, so that another can be
 * elected.
 */
export function checkQuorum(raft: Raft): void {
  raft.electionElapsed = 0
  const isQuorum = reached(raft, 1, activity) >= 1
  for (const peer of raft.peers) {
    peer.wasActive = peer.isActive
    peer.isActive = false
  }
  if (!isQuorum && raft.config.checkQuorum) becomeFollower(raft, raft.term, 0)
}
