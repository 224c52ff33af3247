/**
 * Everything one core knows, and the few changes of it that all rooms of the core share: the term, falling back to
 * follower, cutting the log, messages that wait for the disk (docs/design/consensus.md#raft-core).
 */

import { assert } from '@vacancy/shared'
import type { EntryBatch } from './entry.ts'
import { createLog, type TermRun, termAt, truncateFrom } from './log.ts'
import { assertConfiguration, isVoter, votersOnly } from './membership.ts'
import type { Configuration, Message, SnapshotOffer } from './messages.ts'
import { createProgress, forgetMatch, type Progress, toProbe } from './progress.ts'

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader'

/** What must survive a crash beside the entries. `vote` is a raft id, 0 for none. */
export type HardState = { readonly term: number; readonly vote: number; readonly commit: number }

/** Limits of what may be under way (docs/design/consensus.md#limits). */
export const RAFT_LIMITS = {
  uncommittedBytes: 64 << 20,
  uncommittedEntries: 50_000,
  /** Entries in one message; one of any size goes alone. */
  messageBytes: 1 << 20,
  inflightMessages: 256,
  inflightBytes: 16 << 20,
  waitingReads: 10_000,
} as const
type RaftLimits = { readonly [name in keyof typeof RAFT_LIMITS]: number }

/** Applied entries that stay in memory for peers that lag. */
const KEEP_BYTES = 32 << 20

export type RaftConfig = {
  readonly id: number
  /** E: a follower waits E to 2E − 1 ticks for its leader. */
  readonly electionTicks: number
  readonly heartbeatTicks: number
  /** A whole number from 0 to `below` − 1. */
  readonly random: (below: number) => number
  /** The other values of these four are for tests (docs/design/consensus.md#raft-core). */
  readonly preVote: boolean
  readonly checkQuorum: boolean
  readonly stepDownOnRemoval: boolean
  readonly validateChanges: boolean
  readonly limits?: Partial<RaftLimits>
  readonly keepBytes?: number
  /**
   * No hand-over is taken before the one before it is confirmed (docs/design/consensus.md#hand-over,
   * docs/design/consensus.md#invariants): tests and recovery.
   */
  readonly isLockStep?: boolean
}

/** Where a recovered node stands: everything in its log is durable. */
export type RestoredState = HardState & {
  readonly lastIndex: number
  /** Term of the last entry; lower than `term` after a vote that brought none. */
  readonly lastTerm: number
  readonly applied: number
  readonly appliedTerm?: number
  /** The oldest entry that can be read from disk; needs `terms`. Default: applied + 1. */
  readonly firstIndex?: number
  /** Terms of the log as far as it can be read, ascending, and of the entry before that; later ones are ignored. */
  readonly terms?: readonly TermRun[]
  /** In force at `applied`. */
  readonly configuration?: Configuration
  /** Entries behind `applied`, in order, each batch of one term. */
  readonly entries?: readonly EntryBatch[]
  /**
   * Neither votes nor campaigns nor counts: an empty initial voter before it is bound
   * (docs/design/consensus.md#formation).
   */
  readonly isMute?: boolean
}

export type Dropped = 'not-leader' | 'no-leader' | 'overloaded' | 'transferring'

type Handed = {
  readonly token: number
  readonly hardState: HardState
  /** What of the log it makes durable; a later cut takes from it (docs/design/consensus.md#hand-over). */
  lastIndex: number
}

export type Read = {
  /** 0: of this node. */
  readonly from: number
  readonly context: number
  /** Commit index at the request; −1 until an entry of the own term is committed (docs/design/consensus.md#reads). */
  index: number
  /** The round of heartbeats that confirms it; 0 until one is sent. */
  round: number
}

/** Entries that a peer needs and only the disk holds: from `firstIndex`, not behind `lastIndex`, about `bytesMax`. */
type LogRead = {
  readonly peer: number
  readonly firstIndex: number
  readonly lastIndex: number
  readonly bytesMax: number
}

export type Raft = ReturnType<typeof create>

/** A shard of one has no peers. */
function soleConfig(id: number): RaftConfig {
  return {
    id,
    electionTicks: 10,
    heartbeatTicks: 1,
    random: () => 0,
    preVote: true,
    checkQuorum: true,
    stepDownOnRemoval: true,
    validateChanges: true,
  }
}

/**
 * @param config or the raft id of the only voter of a shard
 */
export function createRaft(config: RaftConfig | number, restored: RestoredState): Raft {
  if (typeof config === 'number') {
    const configuration = votersOnly([{ id: config, node: '', incarnation: '' }])
    return create(soleConfig(config), { ...restored, configuration })
  }
  return create(config, restored)
}

function create(config: RaftConfig, restored: RestoredState) {
  const { term, vote, commit, lastTerm, configuration } = restored
  assert(config.id > 0, 'raft ids begin at 1')
  assert(config.heartbeatTicks >= 1, 'the heartbeat interval is at least one tick')
  assert(config.electionTicks >= 2 * config.heartbeatTicks, 'an election waits for two heartbeats')
  assert(lastTerm <= term, 'no entry is of a term that was never stored')
  assert(configuration !== undefined, 'a member knows who the others are')
  assertConfiguration(configuration)
  const stored = { term, vote, commit }
  const log = createLog({
    firstIndex: restored.firstIndex ?? restored.applied + 1,
    lastIndex: restored.lastIndex,
    lastTerm,
    commit,
    applied: restored.applied,
    appliedTerm: restored.appliedTerm ?? lastTerm,
    runs: restored.terms ?? [],
    entries: restored.entries ?? [],
  })
  assert(
    log.configurations.filter((index) => index > commit).length <= 1,
    'at most one configuration above the commit index',
  )
  const raft = {
    ...log,
    id: config.id,
    config,
    limits: { ...RAFT_LIMITS, ...config.limits },
    keepBytes: config.keepBytes ?? KEEP_BYTES,
    role: 'follower' as Role,
    term,
    vote,
    /** 0: none is known. */
    leader: 0,
    /** Who was seen to lead in this term, even when it was forgotten since (docs/design/consensus.md#invariants). */
    leaderOfTerm: 0,
    configuration,
    /** Index whose entry brought the configuration. */
    configurationIndex: 0,
    isMute: restored.isMute ?? false,
    /** Set by the driver: the log does not answer, so this member does not campaign. */
    standsBack: false,
    // Ticks since the leader was heard or, as leader, since the quorum was checked.
    electionElapsed: 0,
    heartbeatElapsed: 0,
    electionTimeout: 0,
    /** Answers to the election that is under way. */
    votes: new Map<number, boolean>(),
    isForced: false,
    /** Of a leader: all members but itself, ascending by id. */
    peers: [] as Progress[],
    isOwnVoter: configuration.voters.includes(config.id),
    isOwnOutgoing: configuration.outgoing.includes(config.id),
    /** Set by the driver: the members whose acknowledgements count, regardless of the configuration. */
    counts: new Map<number, boolean>(),
    /** The empty entry of the own term. */
    termStart: 0,
    /** docs/design/consensus.md#when-a-configuration-takes-effect: no change is taken before this index is applied. */
    changeIndex: 0,
    transferTarget: 0,
    transferElapsed: 0,
    /** Newest entry that any peer was sent in this term, members that left since included. */
    sentIndex: 0,
    /** Entries wait to be sent to peers. */
    mustBroadcast: false,
    /** Oldest first. */
    reads: [] as Read[],
    /** The newest round of reads that was sent. */
    readRound: 0,
    confirmedRound: 0,
    mustBeginRound: false,
    /**
     * Staged by the driver, to be made current. Until then nothing is appended or applied
     * (docs/design/consensus.md#hand-over).
     */
    snapshot: undefined as SnapshotOffer | undefined,
    isSnapshotHanded: false,
    /** Handed over to be stored, oldest first; tokens are confirmed in order (docs/design/consensus.md#invariants). */
    handed: [] as Handed[],
    /** What the disk is known to hold. */
    stored,
    /** What was handed over last. */
    handedState: stored,
    mustStoreState: false,
    nextToken: 1,
    sendNow: [] as Message[],
    sendAfter: [] as Message[],
    readStates: [] as { readonly context: number; readonly index: number }[],
    droppedReads: [] as { readonly context: number; readonly reason: Dropped }[],
    logReads: [] as LogRead[],
    offers: [] as { readonly peer: number }[],
    overwrittenFrom: 0,
  }
  drawTimeout(raft)
  return raft
}

/** E to 2E − 1 ticks, drawn for each role (docs/design/consensus.md#ticks). */
export function drawTimeout(raft: Raft): void {
  const { electionTicks, random } = raft.config
  raft.electionElapsed = 0
  raft.heartbeatElapsed = 0
  raft.electionTimeout = electionTicks + random(electionTicks)
}

/**
 * May stand for leader: a voter of either half that has nothing to forget
 * (docs/design/consensus.md#when-a-node-does-not-campaign, docs/design/consensus.md#invariants).
 */
export function isElectable(raft: Raft): boolean {
  return isVoter(raft.configuration, raft.id) && !raft.isMute
}

export function setTerm(raft: Raft, term: number): void {
  assert(term > raft.term, 'the term never decreases')
  raft.term = term
  raft.vote = 0
  raft.leaderOfTerm = 0
  raft.mustStoreState = true
}

export function setVote(raft: Raft, vote: number): void {
  if (raft.vote === vote) return
  assert(raft.vote === 0, 'a vote is given once a term')
  raft.vote = vote
  raft.mustStoreState = true
}

/** docs/design/consensus.md#invariants: one leader a term; a second one would be the end of all promises. */
export function setLeader(raft: Raft, leader: number): void {
  raft.leader = leader
  if (leader === 0) return
  assert(raft.leaderOfTerm === 0 || raft.leaderOfTerm === leader, 'a term has one leader')
  raft.leaderOfTerm = leader
}

/** @param leader who leads in `term`; 0 when that is not known */
export function becomeFollower(raft: Raft, term: number, leader: number): void {
  if (term > raft.term) setTerm(raft, term)
  const wasLeader = raft.role === 'leader'
  raft.role = 'follower'
  raft.leader = 0
  setLeader(raft, leader)
  raft.votes.clear()
  drawTimeout(raft)
  if (!wasLeader) return
  raft.peers = []
  raft.termStart = 0
  raft.transferTarget = 0
  raft.mustBroadcast = false
  raft.mustBeginRound = false
  raft.logReads = []
  raft.offers = []
  dropReads(raft, 'not-leader')
}

/** A read of another node gets no reply: that node sends it again (docs/design/consensus.md#reads). */
function dropReads(raft: Raft, reason: Dropped): void {
  for (const { from, context } of raft.reads) if (from === 0) raft.droppedReads.push({ context, reason })
  raft.reads = []
}

/** Peers as the configuration names them; progress of those that stay is kept. */
export function placePeers(raft: Raft): void {
  const { id, configuration, limits } = raft
  raft.isOwnVoter = configuration.voters.includes(id)
  raft.isOwnOutgoing = configuration.outgoing.includes(id)
  if (raft.role !== 'leader') return
  raft.peers = configuration.members
    .filter((member) => member.id !== id)
    .map((member) => {
      const known = raft.peers.find((peer) => peer.id === member.id)
      const peer = known ?? createProgress(member.id, raft.lastIndex + 1, limits)
      peer.isVoter = configuration.voters.includes(peer.id)
      peer.isOutgoing = configuration.outgoing.includes(peer.id)
      const counts = raft.counts.get(peer.id) ?? member.incarnation !== ''
      if (known && counts && !peer.counts) {
        // What counts from now on is what the member acknowledges as who it is now.
        forgetMatch(peer)
        toProbe(peer)
      }
      peer.counts = counts
      return peer
    })
}

export function peerOf(raft: Raft, id: number): Progress | undefined {
  for (const peer of raft.peers) if (peer.id === id) return peer
  return undefined
}

/**
 * Drops the entries from `index` on, because another leader has others there. Those on their way to the disk are void,
 * too (docs/design/consensus.md#replication, docs/design/consensus.md#hand-over).
 */
export function cutLog(raft: Raft, index: number): void {
  truncateFrom(raft, index)
  for (const handed of raft.handed) handed.lastIndex = Math.min(handed.lastIndex, raft.lastIndex)
}

/** docs/design/consensus.md#hand-over: a promise; it leaves when everything up to now is durable. */
export function promise(raft: Raft, message: Message): void {
  assert(message.to !== raft.id, 'a node does not send to itself')
  raft.sendAfter.push(message)
}

/** What may leave at once. */
export function send(raft: Raft, message: Message): void {
  assert(message.to !== raft.id, 'a node does not send to itself')
  raft.sendNow.push(message)
}

/** Whether a log that ends at (`term`, `index`) is at least as new as the own (docs/design/consensus.md#votes). */
export function isUpToDate(raft: Raft, term: number, index: number): boolean {
  return term > raft.lastTerm || (term === raft.lastTerm && index >= raft.lastIndex)
}

export function knowledge(raft: Raft): { readonly commit: number; readonly commitTerm: number } {
  return { commit: raft.commit, commitTerm: knownTerm(raft, raft.commit) }
}

/** Term of an entry that must be known. */
export function knownTerm(raft: Raft, index: number): number {
  const term = termAt(raft, index)
  assert(term >= 0, 'the term of an entry that can be read is known')
  return term
}
