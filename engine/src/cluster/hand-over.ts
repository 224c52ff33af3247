/** Hands the work of the core over to the log and to peers, and notices changes of its role. */

import { assert } from '@vacancy/shared'
import { hasReady, owesCommit, persisted, provideEntries, type Ready, sendCommit, takeReady } from '../raft/raft.ts'
import { orphanWaiting } from './answers.ts'
import { readClocks, resumeTime } from './keep-time.ts'
import type { HandOver, Replica } from './replica-state.ts'

/**
 * A commit index waits so long for the next entries, which take it along, and up to twice as long. While one client
 * writes, a message of its own would cost each node as much as the write (docs/design/consensus.md#replication).
 */
const COMMIT_WAIT_MS = 1

/**
 * Takes the ready work of the core: messages to peers, entries and promises to the log, reads
 * (docs/design/consensus.md#hand-over).
 */
export function pump(replica: Replica): void {
  const { raft } = replica
  noticeRole(replica)
  while (hasReady(raft)) {
    const ready = takeReady(raft)
    handOver(replica, ready)
    noticeRole(replica)
  }
  if (replica.owedCommit === 0 && owesCommit(raft)) awaitEntries(replica)
}

function awaitEntries(replica: Replica): void {
  const { raft, env } = replica
  const owed = raft.commit
  replica.owedCommit = owed
  env.schedule.after(COMMIT_WAIT_MS, () => {
    replica.owedCommit = 0
    sendCommit(raft, owed)
    pump(replica)
  })
}

function handOver(replica: Replica, ready: Ready): void {
  const { link } = replica
  const { token, hardState, entries, snapshot } = ready
  if (link) {
    for (const message of ready.sendNow) link.send(message)
    for (const { context, index } of ready.readStates) link.onReadState(context, index)
    for (const { context, reason } of ready.droppedReads) link.onReadDropped(context, reason)
    for (const read of ready.logReads) readForPeer(replica, read)
    for (const { peer } of ready.offers) link.onOffer(peer)
  }
  replica.handOvers.push({ token, isStored: !ready.mustStore, promises: ready.sendAfterPersist })
  if (ready.mustStore) replica.log({ type: 'append', token, hardState, entries, refusals: replica.refusals })
  else confirmStored(replica)
  if (!snapshot) return
  assert(link !== undefined && !replica.installing, 'one snapshot at a time comes from a peer')
  replica.installing = snapshot
  link.onInstall(snapshot)
}

/** A peer needs entries that are no longer in memory. */
function readForPeer(replica: Replica, { peer, firstIndex, lastIndex, bytesMax }: Ready['logReads'][number]): void {
  const { raft, readLog } = replica
  if (!readLog) return provideEntries(raft, peer, 'compacted')
  const start = raft.runs.findLastIndex((run) => run.firstIndex <= firstIndex)
  const terms = raft.runs.slice(Math.max(0, start)).filter((run) => run.firstIndex <= lastIndex)
  readLog({ firstIndex, lastIndex, bytesMax, terms }, (batches) => {
    provideEntries(raft, peer, batches)
    pump(replica)
  })
}

/** All hand-overs up to `token` are durable. */
export function markStored(replica: Replica, token: number): void {
  for (const handed of replica.handOvers) {
    if (handed.token > token) break
    handed.isStored = true
  }
  confirmStored(replica)
}

/**
 * Confirms durable hand-overs to the core in order and sends the promises made with them
 * (docs/design/consensus.md#invariants, docs/design/consensus.md#hand-over).
 */
function confirmStored(replica: Replica): void {
  const { handOvers, raft, link } = replica
  while (handOvers[0]?.isStored) {
    const { token, promises } = handOvers.shift() as HandOver
    persisted(raft, token)
    for (const message of promises) link?.send(message)
  }
}

/** Reacts when the node gains or loses leadership or follows another leader. */
function noticeRole(replica: Replica): void {
  const { raft, seen } = replica
  const { role, term, leader } = raft
  if (role === seen.role && term === seen.term && leader === seen.leader) return
  replica.seen = { role, term, leader }
  const led = seen.role === 'leader'
  const leads = role === 'leader'
  if (led && (!leads || term !== seen.term)) orphanWaiting(replica, seen.term)
  if (leads && (!led || term !== seen.term)) beginTerm(replica)
  if (leader !== 0 && leader !== seen.leader) replica.leaderChanges++
  replica.link?.onRole()
}

function beginTerm(replica: Replica): void {
  const { raft } = replica
  resumeTime(replica)
  readClocks(replica)
  // The empty entry of the term is there already and has no waiter.
  replica.waitingFrom = raft.lastIndex + 1
  replica.waitingSinks = []
  replica.waitingTokens = []
  replica.waitingHead = 0
  replica.proposedAt = []
}
