/**
 * The Raft core (docs/design/consensus.md#raft-core): elections, replication, membership, reads. It opens no file and
 * no socket and knows no clock. What happened goes in through the functions here; what to store and to send comes out
 * of `takeReady`, what to apply out of `nextCommitted`.
 *
 *   step, tick, propose … ──► state.ts ──► takeReady ──► disk ──► persisted ──► nextCommitted ──► applied
 *                                              │           └────► sendAfterPersist
 *                                              └► sendNow
 *
 * A single voter is no special case: its own vote and its own acknowledgement count when they are durable
 * (docs/design/consensus.md#hand-over), and they are a quorum.
 */

import { assert, unreachable } from '@vacancy/shared'
import { leaveJointPhase } from './changes.ts'
import { campaign, countOwnVote, isLeaseHeld, learnCommitted, onTimeoutNow, onVote, onVoteReply } from './elections.ts'
import type { EntryBatch } from './entry.ts'
import { onAppend, onHeartbeat, onSnapshot } from './follower.ts'
import { checkQuorum } from './heartbeats.ts'
import { broadcast, commitByCounting, onAppendReply, onHeartbeatReply } from './leader.ts'
import {
  appendEntries,
  applyTo,
  compactTo,
  giveOut,
  persistTo,
  takeBack,
  takeUnsent,
  trimTail,
  truncateFrom,
} from './log.ts'
import { isJoint, isVoter } from './membership.ts'
import type { Configuration, Message, SnapshotOffer } from './messages.ts'
import { isReachable, type ProgressState } from './progress.ts'
import { beginRound, onReadIndex, onReadIndexReply } from './reads.ts'
import {
  becomeFollower,
  type Dropped,
  type HardState,
  isElectable,
  knowledge,
  placePeers,
  promise,
  type Raft,
  type Role,
  setLeader,
} from './state.ts'
import { tickTransfer, transferLeader } from './transfer.ts'

export { applyConfiguration, proposeChange, takeId } from './changes.ts'
export { campaign } from './elections.ts'
export { installed } from './follower.ts'
export { offerSnapshot, owesCommit, provideEntries, reportSnapshot, reportUnreachable, sendCommit } from './leader.ts'
export { readIndex } from './reads.ts'
export {
  createRaft,
  type Dropped,
  RAFT_LIMITS,
  type Raft,
  type RaftConfig,
  type RestoredState,
} from './state.ts'
export { abortTransfer, transferLeader } from './transfer.ts'

/** One slice of work of the thread that applies (docs/design/consensus.md#apply). */
const APPLY_ENTRIES_MAX = 1_024

/** Everything that is to be done now; taken at once (docs/design/consensus.md#hand-over). */
export type Ready = {
  /** Return it through `persisted` or `refused`, in order. */
  readonly token: number
  /** False: there is nothing to write, and it is confirmed as soon as everything before it is. */
  readonly mustStore: boolean
  /** Entries, term or vote changed; a commit index alone needs no sync (docs/design/storage.md#group-commit). */
  readonly mustSync: boolean
  /**
   * Store it before or together with the entries (docs/design/consensus.md#hand-over,
   * docs/design/consensus.md#when-a-configuration-takes-effect).
   */
  readonly hardState: HardState
  /** May begin at or below what was handed over before, and replaces it from there. */
  readonly entries: readonly EntryBatch[]
  /**
   * To be made current; answered by `installed`. Comes without entries, when everything before it is durable
   * (docs/design/consensus.md#hand-over).
   */
  readonly snapshot: SnapshotOffer | undefined
  readonly sendNow: readonly Message[]
  /**
   * Leave when this hand-over and all before it are durable; are forgotten when it is refused
   * (docs/design/consensus.md#hand-over, docs/design/consensus.md#invariants).
   */
  readonly sendAfterPersist: readonly Message[]
  readonly readStates: Readonly<Raft['readStates']>
  readonly droppedReads: Readonly<Raft['droppedReads']>
  /** Entries that are only on disk, not behind `lastIndex`: what stands there may be void. Answered by `provideEntries`. */
  readonly logReads: Readonly<Raft['logReads']>
  /** Peers that need a snapshot: answered by `offerSnapshot` or `reportSnapshot`. */
  readonly offers: Readonly<Raft['offers']>
  /**
   * Entries of another term follow from here on. The proposers of the replaced entries get that outcome only when one
   * of the new entries is committed at its index (docs/design/consensus.md#outcome-of-a-proposal).
   */
  readonly overwritten: { readonly from: number } | undefined
}

// Time

/**
 * One tick has passed. After a stall the driver delivers one, not all that were missed
 * (docs/design/consensus.md#ticks).
 */
export function tick(raft: Raft): void {
  raft.electionElapsed++
  if (raft.role === 'leader') return tickLeader(raft)
  if (raft.electionElapsed < raft.electionTimeout || !isElectable(raft)) return
  raft.electionElapsed = 0
  campaign(raft)
}

/** The number of the next tick that does more than count, from 1, if nothing else happens before. */
export function ticksToAct({ role, electionElapsed, electionTimeout, heartbeatElapsed, config }: Raft): number {
  if (role !== 'leader') return electionTimeout - electionElapsed
  return Math.min(config.electionTicks - electionElapsed, config.heartbeatTicks - heartbeatElapsed)
}

function tickLeader(raft: Raft): void {
  tickTransfer(raft)
  if (raft.electionElapsed >= raft.config.electionTicks) checkQuorum(raft)
  if (raft.role !== 'leader') return
  if (++raft.heartbeatElapsed >= raft.config.heartbeatTicks) beginRound(raft)
}

/**
 * docs/design/consensus.md#fast-failover: the process that led is known to be gone. Keeps term, vote and timer;
 * `campaign` follows after a moment.
 */
export function forgetLeader(raft: Raft): void {
  if (raft.role === 'follower') raft.leader = 0
}

// Messages

/** A message of another member, addressed to this one. Order and number do not matter for correctness. */
export function step(raft: Raft, message: Message): void {
  assert(message.to === raft.id && message.from !== raft.id, 'messages are for this node, from another')
  switch (message.type) {
    case 'readIndex':
      return onReadIndex(raft, message)
    case 'readIndexReply':
      return onReadIndexReply(raft, message)
    case 'transferLeader':
      if (raft.role === 'leader') transferLeader(raft, message.target)
      return
    case 'preVoteReply':
    case 'voteReply':
      learnCommitted(raft, message)
      break
    case 'preVote':
    case 'vote':
      learnCommitted(raft, message)
      // docs/design/consensus.md#formation: who may have forgotten a vote does not give another one.
      if (raft.isMute) return
      if (message.term > raft.term && !message.isForced && isLeaseHeld(raft)) return
      break
    default:
  }
  if (message.term < raft.term) return onLowerTerm(raft, message)
  if (message.term > raft.term) onHigherTerm(raft, message)
  dispatch(raft, message)
}

/** All but those that carry no term. */
type TermMessage = Exclude<Message, { readonly type: 'readIndex' | 'readIndexReply' | 'transferLeader' }>

function onHigherTerm(raft: Raft, message: TermMessage): void {
  const { type, term } = message
  // A pre-vote and its grant have a term that no candidate has begun.
  if (type === 'preVote' || (type === 'preVoteReply' && message.isGranted)) return
  const { electionElapsed, role } = raft
  becomeFollower(raft, term, 0)
  // A request does not delay the own campaign, only a grant does (docs/design/consensus.md#votes).
  if (type === 'vote' && role === 'follower') raft.electionElapsed = electionElapsed
}

/** docs/design/consensus.md#check-quorum: a leader that was replaced, or a node stuck in pre-votes, learns the term. */
function onLowerTerm(raft: Raft, { type, from: to }: TermMessage): void {
  const { id: from, term } = raft
  if (type === 'preVote')
    return promise(raft, { type: 'preVoteReply', from, to, term, isGranted: false, ...knowledge(raft) })
  if (type !== 'append' && type !== 'heartbeat') return
  if (!raft.config.preVote && !raft.config.checkQuorum) return
  promise(raft, { type: 'appendReply', from, to, term, index: 0, isRejected: false, hintIndex: 0, hintTerm: 0 })
}

function dispatch(raft: Raft, message: TermMessage): void {
  switch (message.type) {
    case 'preVote':
    case 'vote':
      return onVote(raft, message)
    case 'preVoteReply':
    case 'voteReply':
      return onVoteReply(raft, message)
    case 'append':
      obey(raft, message.from)
      return onAppend(raft, message)
    case 'heartbeat':
      obey(raft, message.from)
      return onHeartbeat(raft, message)
    case 'snapshot':
      obey(raft, message.from)
      return onSnapshot(raft, message)
    case 'appendReply':
      return onAppendReply(raft, message)
    case 'heartbeatReply':
      return onHeartbeatReply(raft, message)
    case 'timeoutNow':
      return onTimeoutNow(raft, message)
    default:
      return unreachable(message)
  }
}

/** A leader of this term exists. */
function obey(raft: Raft, leader: number): void {
  assert(raft.role !== 'leader', 'a term has one leader')
  if (raft.role !== 'follower') becomeFollower(raft, raft.term, leader)
  setLeader(raft, leader)
  raft.electionElapsed = 0
}

// Proposals

/**
 * Appends entries that stand one behind the other in `bytes`, with the leader's term in each.
 *
 * @returns index of the first, or why they were not taken
 */
export function propose(raft: Raft, count: number, bytes: Uint8Array): number | Dropped {
  if (raft.role !== 'leader') return raft.leader === 0 ? 'no-leader' : 'not-leader'
  // docs/design/consensus.md#when-a-configuration-takes-effect: who was removed sends what is under way and takes
  // nothing new.
  if (!raft.isOwnVoter && !raft.isOwnOutgoing) return 'not-leader'
  if (raft.transferTarget !== 0) return 'transferring'
  if (!hasRoom(raft, count, bytes.length)) return 'overloaded'
  const index = appendEntries(raft, raft.term, count, bytes)
  raft.mustBroadcast = raft.peers.length > 0
  return index
}

/** docs/design/consensus.md#replication: bounded, but for one proposal of any size when nothing else is under way. */
function hasRoom({ limits, unappliedEntries, unappliedBytes }: Raft, count: number, bytes: number): boolean {
  if (unappliedEntries === 0) return true
  if (unappliedEntries + count > limits.uncommittedEntries) return false
  return unappliedBytes + bytes <= limits.uncommittedBytes
}

// Hand-over

/**
 * Has the commit index stored when no entries are on their way that would bring it along
 * (docs/design/storage.md#group-commit). Called once a heartbeat interval. Besides sparing work, it is what tells
 * damage to the last acknowledged group from a torn one (docs/design/storage.md#torn-tail-or-corruption).
 */
export function storeCommit(raft: Raft): void {
  if (raft.handed.length === 0 && raft.commit > raft.stored.commit) raft.mustStoreState = true
}

/**
 * Whether a hand-over would contain something (docs/design/consensus.md#hand-over). What peers may be sent is put
 * together here, once a turn.
 */
export function hasReady(raft: Raft): boolean {
  if (raft.mustBroadcast) broadcast(raft)
  if (raft.mustBeginRound) beginRound(raft)
  return (
    raft.unsent.length > 0 ||
    raft.sendNow.length > 0 ||
    ((raft.mustStoreState || raft.sendAfter.length > 0) && !isInstalling(raft)) ||
    raft.readStates.length > 0 ||
    raft.droppedReads.length > 0 ||
    raft.logReads.length > 0 ||
    raft.offers.length > 0 ||
    isSnapshotDue(raft)
  )
}

/**
 * While a snapshot is made current nothing is handed over to be stored: its mark brings a commit index that the log
 * before it does not have. Promises wait with it.
 */
function isInstalling({ snapshot, isSnapshotHanded }: Raft): boolean {
  return snapshot !== undefined && isSnapshotHanded
}

/** docs/design/consensus.md#hand-over: alone, behind everything that was appended before. */
function isSnapshotDue({ snapshot, isSnapshotHanded, handed, unsent, mustStoreState }: Raft): boolean {
  if (snapshot === undefined || isSnapshotHanded) return false
  return handed.length === 0 && unsent.length === 0 && !mustStoreState
}

const NOTHING: readonly never[] = []

export function takeReady(raft: Raft): Ready {
  assert(hasReady(raft), 'a hand-over contains something')
  assert(!raft.config.isLockStep || raft.handed.length === 0, 'one hand-over is open in lock-step')
  const snapshot = isSnapshotDue(raft) ? raft.snapshot : undefined
  const promises = isInstalling(raft) ? NOTHING : taken(raft, 'sendAfter')
  const { handedState } = raft
  const mustStore = raft.unsent.length > 0 || (raft.mustStoreState && !isInstalling(raft))
  if (snapshot) raft.isSnapshotHanded = true
  const entries = raft.unsent.length > 0 ? takeUnsent(raft) : NOTHING
  const hardState = mustStore ? { term: raft.term, vote: raft.vote, commit: raft.commit } : handedState
  assert(hardState.term >= raft.stored.term, 'the term never decreases')
  assertOneConfiguration(raft, hardState.commit)
  const token = raft.nextToken++
  raft.handed.push({ token, hardState, lastIndex: raft.lastIndex })
  raft.handedState = hardState
  if (mustStore) raft.mustStoreState = false
  const from = raft.overwrittenFrom
  raft.overwrittenFrom = 0
  return {
    token,
    mustStore,
    mustSync: entries.length > 0 || hardState.term !== handedState.term || hardState.vote !== handedState.vote,
    hardState,
    entries,
    snapshot,
    sendNow: taken(raft, 'sendNow'),
    sendAfterPersist: promises,
    readStates: taken(raft, 'readStates'),
    droppedReads: taken(raft, 'droppedReads'),
    logReads: taken(raft, 'logReads'),
    offers: taken(raft, 'offers'),
    overwritten: from === 0 ? undefined : { from },
  }
}

type Queue = 'sendNow' | 'sendAfter' | 'readStates' | 'droppedReads' | 'logReads' | 'offers'

/** What waits in a queue, which is empty then. */
function taken<Name extends Queue>(raft: Raft, name: Name): Raft[Name] | readonly never[] {
  const queue = raft[name]
  if (queue.length === 0) return NOTHING
  raft[name] = [] as unknown as Raft[Name]
  return queue
}

/**
 * docs/design/consensus.md#invariants: what a restart finds is at most one configuration behind
 * (docs/design/consensus.md#when-a-configuration-takes-effect).
 */
function assertOneConfiguration(raft: Raft, commit: number): void {
  if (raft.configurations.length < 2 || !raft.config.validateChanges) return
  const above = raft.configurations.filter((index) => index > commit).length
  assert(above <= 1, 'at most one configuration above the durable commit index')
}

/** Everything handed over up to `token` is durable (docs/design/consensus.md#hand-over). */
export function persisted(raft: Raft, token: number): void {
  const handed = raft.handed.shift()
  assert(handed !== undefined && handed.token === token, 'tokens are confirmed in order')
  const { hardState } = handed
  raft.stored = { ...hardState, commit: Math.max(hardState.commit, raft.stored.commit) }
  // What was cut meanwhile was taken off the hand-over then.
  const index = Math.min(handed.lastIndex, raft.lastIndex)
  if (index > raft.persisted) persistTo(raft, index)
  // A vote of an earlier term counts for nothing any more.
  if (raft.role === 'candidate' && hardState.term === raft.term) countOwnVote(raft)
  else if (raft.role === 'leader') commitByCounting(raft)
}

/**
 * The log had no room for what was handed over with `token` and everything after it; the driver forgets the promises of
 * all of them. What is not durable leaves the memory, too:
 *
 * - A single voter without peers has sent it to no other node, takes it back and continues to lead. The entries are
 *   certainly in no log, so their proposers may repeat them (docs/design/consensus.md#retryable-errors).
 * - Any other leader steps down: the outcome of its entries is open, and their proposers wait
 *   (docs/design/consensus.md#outcome-of-a-proposal). In the same term other entries must not get these indexes
 *   (docs/design/consensus.md#invariants).
 * - A candidate requested votes with a log longer than the one it now has: a late grant must not make it leader, whose
 *   log has all committed entries (docs/design/testing.md#oracles). It is a follower again.
 * - A follower has acknowledged none of it and gets it again.
 *
 * @param storedTo the last index of this very hand-over that is durable all the same: it can be larger than one group.
 *   Left out when nothing of it is: then the end of the log on disk may be entries that were to be replaced
 * @returns the first index that is gone
 */
export function refused(raft: Raft, token: number, storedTo = raft.persisted): number {
  const first = raft.handed[0]
  assert(first !== undefined && first.token === token, 'tokens are refused in order')
  raft.handed.length = 0
  raft.sendAfter = []
  if (storedTo > raft.persisted) {
    // Entries of this hand-over; its hard state went with them (docs/design/consensus.md#hand-over), its commit index
    // as far as they go.
    raft.stored = { ...first.hardState, commit: Math.min(first.hardState.commit, storedTo) }
    persistTo(raft, Math.min(storedTo, first.lastIndex))
  }
  raft.handedState = raft.stored
  if (raft.role === 'leader') {
    if (raft.peers.length === 0 && raft.sentIndex <= raft.persisted) commitByCounting(raft)
    else becomeFollower(raft, raft.term, 0)
  } else if (raft.role !== 'follower' && raft.lastIndex > raft.persisted) becomeFollower(raft, raft.term, 0)
  // As after a crash: nothing was promised or applied behind it, and what is committed comes again.
  raft.commit = Math.min(raft.commit, raft.persisted)
  assert(raft.handedOut <= raft.commit, 'only what is durable was given out')
  if (raft.lastIndex > raft.persisted) truncateFrom(raft, raft.persisted + 1)
  // A vote that was refused along with entries is handed over again: there is room kept for it
  // (docs/design/storage.md#group-commit).
  if (raft.stored.term !== raft.term || raft.stored.vote !== raft.vote) raft.mustStoreState = true
  return raft.lastIndex + 1
}

/**
 * The next committed entries, each returned once, in order (docs/design/consensus.md#invariants); undefined for none.
 * They are durable here (docs/design/consensus.md#hand-over). A configuration entry among them goes to
 * `applyConfiguration` before `applied` confirms it.
 */
export function nextCommitted(raft: Raft, entriesMax = APPLY_ENTRIES_MAX): EntryBatch | undefined {
  // The state is about to be replaced (docs/design/consensus.md#hand-over).
  if (raft.snapshot !== undefined) return undefined
  return giveOut(raft, entriesMax, Math.min(raft.commit, raft.persisted))
}

/**
 * The engine reached an entry that it cannot apply yet, the one after `index`: this one and later ones are returned
 * again. Called before `applied`, which confirms applied entries only.
 */
export function handBack(raft: Raft, index: number): void {
  takeBack(raft, index)
}

/** The engine has applied up to `index`. */
export function applied(raft: Raft, index: number, entries: number, bytes: number): void {
  const change = raft.configurations[0]
  assert(
    change === undefined || change > index || raft.configurationIndex >= change,
    'a change is in force when its entry is applied',
  )
  applyTo(raft, index, entries, bytes)
  trimTail(raft, raft.configuration.members.length > 1 ? raft.keepBytes : 0)
  leaveJointPhase(raft)
}

/** The log on disk begins at `firstIndex` now. */
export function compactedTo(raft: Raft, firstIndex: number): void {
  compactTo(raft, firstIndex)
}

// Members

/**
 * Sets whether acknowledgements of a peer count. Until the driver calls this, those of bound members count
 * (docs/design/consensus.md#identities).
 */
export function setCounts(raft: Raft, peer: number, counts: boolean): void {
  assert(
    raft.configuration.members.some(({ id }) => id === peer),
    'only members are counted',
  )
  raft.counts.set(peer, counts)
  placePeers(raft)
  if (raft.role === 'leader') commitByCounting(raft)
}

type PeerStatus = {
  readonly id: number
  readonly match: number
  readonly next: number
  readonly state: ProgressState
  /** Heard within the last check-quorum interval or the one before. */
  readonly isActive: boolean
  readonly inflight: number
}

export type RaftStatus = {
  readonly role: Role
  readonly term: number
  /** 0: none is known. */
  readonly leader: number
  readonly commit: number
  readonly applied: number
  readonly lastIndex: number
  /** Of a leader; empty otherwise. */
  readonly peers: readonly PeerStatus[]
  readonly configuration: Configuration
  readonly isJoint: boolean
  readonly isVoter: boolean
  readonly transferTarget: number
  /**
   * A change may be proposed: everything inherited, and an entry of the own term, is applied
   * (docs/design/consensus.md#when-a-configuration-takes-effect).
   */
  readonly takesChanges: boolean
}

export function status(raft: Raft): RaftStatus {
  const { role, term, leader, commit, applied, lastIndex, configuration, transferTarget } = raft
  return {
    role,
    term,
    leader,
    commit,
    applied,
    lastIndex,
    peers: raft.peers.map((peer) => {
      const { id, match, next, state, window } = peer
      return { id, match, next, state, isActive: isReachable(peer), inflight: window.count }
    }),
    configuration,
    isJoint: isJoint(configuration),
    isVoter: isVoter(configuration, raft.id),
    transferTarget,
    takesChanges: role === 'leader' && raft.changeIndex <= applied && transferTarget === 0,
  }
}
