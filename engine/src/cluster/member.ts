/**
 * A replica as a member of a shard: ticks for the core, frames to and from peers, membership, reads that the shard must
 * confirm, and operator requests (docs/design/protocol.md#peer-frames, docs/design/consensus.md#reads,
 * docs/design/http.md#cluster-changes).
 *
 *   transport ── frames ──► core | formation | membership | transfer
 *   timer ── tick, reads, membership, reports ──► pump ──► transport
 *
 * bootstrap.ts finds the shard before a node is a member. One thread and no promises, so that a simulator can run it.
 */

import { VacancyError } from '@vacancy/shared'
import { REPORT_EVERY_MS } from '../bootstrap/formation.ts'
import {
  campaign,
  proposeChange,
  readIndex,
  reportSnapshot,
  reportUnreachable,
  tick,
  ticksToAct,
  transferLeader,
} from '../raft/raft.ts'
import { encodeBulkLoad, encodeSettings, KIND } from '../store/command.ts'
import { FEATURE_LEVEL } from '../store/store.ts'
import { REFUSED } from '../threads/writes.ts'
import { sendFrame } from '../transport/peers.ts'
import { expireAdmin, requestAdmin } from './admin.ts'
import { answerRead } from './answers.ts'
import { applyCommitted } from './applying.ts'
import { createLoader, proceed } from './bulk-load-apply.ts'
import { createLoads, type Loads, onNotHeld, requestLoad, tickLoads } from './bulk-load-coordinator.ts'
import { pump } from './hand-over.ts'
import { shardDay } from './keep-time.ts'
import { createLeaves } from './leaves.ts'
import { noteFullDisk } from './log-answers.ts'
import {
  FAST_CAMPAIGN_TICKS,
  hasBegun,
  idOf,
  isReady,
  type Member,
  type MemberOptions,
  type MemberParts,
  nameOf,
  nodeOf,
  nodesOf,
  publishFacts,
  viewOf,
  votersOf,
} from './member-state.ts'
import { createMembership, type Membership, type PeerView, tickMembership } from './membership.ts'
import {
  adopt,
  install,
  linkOf,
  notPast,
  onFrame,
  onPeerGone,
  onReceived,
  reportTo,
  reportToPeers,
  sendOffer,
} from './peer-link.ts'
import { proposeOwn, raiseFeatureLevel, setMemoryBudget } from './proposals.ts'
import { createReads, refuseReads, requestReads, tickReads } from './reads.ts'
import { isStuck, RETRY_FULL_MS } from './replica-state.ts'
import {
  createReceiver,
  createSender,
  onOffer,
  onSourceLost,
  type Receiver,
  replyInstalled,
  tickReceiver,
  tickSender,
} from './transfer.ts'

const FAST_CAMPAIGNS_MAX = 5

/** Least time since the last hand-over, for a node that leads again or still (docs/design/storage.md#full-disk). */
const AGAIN_MS = { stuck: 2_000, full: 10_000, slow: 300_000 } as const

const HANDOVER_SYNC_MS = 1_000

export function createMember(parts: MemberParts, options: MemberOptions): Member {
  const { env, replica, peers } = parts
  const { raft } = replica
  const heartbeatMs = options.heartbeatTicks * options.tickMs
  const now = env.clock.monotonicMs()
  const bytes = env.random.bytes(6)
  const member: Member = {
    ...parts,
    ...options,
    membership: membershipOf(parts, options, () => member),
    reads: createReads({
      nowMs: () => env.clock.monotonicMs(),
      readIndex: (context) => readIndex(raft, context),
      applied: () => raft.applied,
      commit: () => raft.commit,
      indexBase: () => replica.machine.indexBase(),
      hasBegun: () => member.genesis().some((byte) => byte !== 0),
      answer: (sink, token, code, index) => answerRead(replica, sink, token, code, index),
      heartbeatMs,
      // 48 random bits: a reply to a request of an earlier process never matches one of this process.
      firstContext: bytes.reduce((sum, byte) => sum * 256 + byte, 0),
    }),
    spoken: new Map(),
    samples: new Map(),
    facts: new Map(),
    running: new Set(),
    nextRulesMs: 0,
    admin: new Map(),
    leaves: createLeaves(now),
    receiver: receiverOf(parts, options, () => member),
    sender: createSender({
      send: (node, frame) => sendFrame(peers, node, frame),
      exchange: parts.exchange,
      nowMs: () => env.clock.monotonicMs(),
      after: (delayMs, run) => void env.schedule.after(delayMs, run),
      log: env.log,
      sendOffer: (peer, newest, manifest) => sendOffer(member, peer, newest, manifest),
      reportSnapshot(peer, isReceived) {
        if (raft.role === 'leader') reportSnapshot(raft, peer, isReceived)
      },
    }),
    loads: loadsOf(parts, options, () => member),
    loader: createLoader({
      env,
      replica,
      exchange: parts.exchange,
      request: (digest) => requestLoad(member.loads, digest),
      check: (path) => checkLoad(member, path),
      replace: (path, digest, done) => parts.bulkData?.replace(path, digest, done),
      onPhase: () => publishFacts(member),
    }),
    offered: undefined,
    nextAdmin: 1,
    lastTickMs: now,
    lookedMs: now,
    ticksAsleep: 0,
    cancelTimer: () => undefined,
    nextReportMs: now,
    campaignIn: 0,
    deathTerm: 0,
    stands: 0,
    begunTerm: 0,
    readyTerm: 0,
    stalls: 0,
    wasVoter: options.cluster.wasVoter ?? false,
    isRemoved: false,
    isStopped: false,
    isSwitching: false,
    elections: { won: 0, lost: 0, refused: 0 },
    lastHandoverMs: Number.NEGATIVE_INFINITY,
    dialled: [],
  }
  replica.link = linkOf(member)
  peers.raftId = raft.id
  peers.nodeOf = (id) => nodeOf(member, id)
  peers.handler = {
    onFrame: (peer, frame) => {
      countTicks(member)
      onFrame(member, peer, frame)
    },
    onOpen: (peer, stream) => {
      if (stream === 'control') reportTo(member, peer)
    },
    onClosed: (peer, stream, isDead) => {
      if (stream === 'control') onPeerGone(member, peer, isDead)
      if (member.campaignIn > 0) wake(member)
      if (stream === 'bulk') onSourceLost(member.receiver, peer)
      const id = idOf(member, peer)
      // The node may return with another program version or another memory size.
      if (stream === 'control') {
        member.facts.delete(id)
        member.running.delete(peer)
      }
      if (id > 0 && raft.role === 'leader') reportUnreachable(raft, id)
    },
  }
  adopt(member, raft.configuration)
  schedule(member)
  return member
}

function membershipOf({ env, replica }: MemberParts, options: MemberOptions, member: () => Member): Membership {
  const { raft } = replica
  return createMembership(
    {
      status: () => viewOf(member()),
      isReady: () => isReady(member()),
      proposeChange: (change) => {
        const index = proposeChange(raft, change)
        pump(replica)
        return index
      },
      transferLeader: (target) => {
        const taken = transferLeader(raft, target)
        pump(replica)
        return taken
      },
      requestLeader: (kind, node, onAnswer) => requestAdmin(member(), { kind, node }, onAnswer),
      nowMs: () => env.clock.monotonicMs(),
      wallMs: () => env.clock.wallMs(),
      log: env.log,
    },
    {
      self: { node: options.node, incarnation: options.incarnation, isFounder: options.cluster.isFounder !== false },
      initialVoters: options.initialVoters,
    },
  )
}

function receiverOf(parts: MemberParts, options: MemberOptions, member: () => Member): Receiver {
  const { env, replica, peers } = parts
  return createReceiver(
    {
      send: (node, frame) => sendFrame(peers, node, frame),
      exchange: parts.exchange,
      sources: () => [...peers.connected],
      nowMs: () => env.clock.monotonicMs(),
      log: env.log,
      onReady: (received) => onReceived(member(), received),
      onFailed(reason, detail, purpose) {
        if (purpose === 'load') return onNotHeld(member().loads, `${reason}: ${detail}`)
        member().offered = undefined
        if (!replica.installing) return
        const why = `a snapshot cannot be installed: ${reason} ${detail}`.trim()
        parts.onFatal(new VacancyError('disk_failed', { operation: 'install', file: 'snapshots', reason: why }))
      },
      onDelayed(reason, detail) {
        env.log.warn({ reason, detail }, 'a snapshot cannot be installed yet; trying again')
        if (reason === 'no-space') noteFullDisk(replica)
        env.schedule.after(RETRY_FULL_MS, () => install(member()))
      },
    },
    {
      shardId: options.cluster.shardId,
      codecsOrderedHash: options.cluster.codecHash,
    },
  )
}

function loadsOf(parts: MemberParts, options: MemberOptions, member: () => Member): Loads {
  const { env, replica, peers } = parts
  const { raft } = replica
  return createLoads({
    self: options.node,
    send: (node, frame) => sendFrame(peers, node, frame),
    exchange: parts.exchange,
    isLeader: () => raft.role === 'leader',
    isReady: () => isReady(member()),
    voters: () => votersOf(raft.configuration),
    others: () => nodesOf(raft.configuration).filter((node) => node !== options.node),
    receive: (offer) => onOffer(member().receiver, offer),
    wanted: {
      shardId: options.cluster.shardId,
      codecsOrderedHash: options.cluster.codecHash,
      codecsText: options.cluster.codecs.join(','),
    },
    check: (path) => checkLoad(member(), path),
    notPast: (index) => notPast(member(), index),
    propose: (digest) => proposeLoad(member(), digest),
    nowMs: () => env.clock.monotonicMs(),
    wallMs: () => env.clock.wallMs(),
    log: env.log,
  })
}

/** Ends the timers. Later messages of peers are dropped. */
export function stopMember(member: Member): void {
  member.isStopped = true
  member.peers.handler = undefined
  refuseReads(member.reads, REFUSED.notServing)
  publishFacts(member)
}

// Time

/**
 * The timer of the ticks. While nothing is under way ticks only count: it sleeps until one does more, and those before
 * are counted when it wakes (docs/design/consensus.md#ticks).
 */
function schedule(member: Member): void {
  const { env, tickMs } = member
  const ticks = isQuiet(member) ? ticksToNext(member) : 1
  member.ticksAsleep = ticks - 1
  member.cancelTimer = env.schedule.after(ticks * tickMs, () => {
    if (member.isStopped) return
    onTimer(member)
    schedule(member)
  })
}

function isQuiet({ replica, reads, campaignIn }: Member): boolean {
  const { raft, handOvers } = replica
  const hasLeader = raft.role === 'leader' || (raft.role === 'follower' && raft.leader !== 0)
  const isChanging = raft.transferTarget !== 0 || campaignIn > 0
  const hasWrites = raft.applied < raft.lastIndex || handOvers.length > 0
  return hasLeader && !isChanging && !hasWrites && reads.waiting.size === 0 && reads.inFlight.size === 0
}

function ticksToNext({ env, replica, reads, tickMs }: Member): number {
  const toRound = Math.ceil((reads.nextRoundMs - env.clock.monotonicMs()) / tickMs)
  return Math.max(1, Math.min(ticksToAct(replica.raft), toRound))
}

/** Counts the ticks that have passed while the timer sleeps. */
function countTicks(member: Member): void {
  if (member.ticksAsleep === 0) return
  const { env, replica, tickMs } = member
  const passed = Math.floor((env.clock.monotonicMs() - member.lastTickMs) / tickMs)
  for (let due = Math.min(member.ticksAsleep, passed); due > 0; due--) {
    member.ticksAsleep--
    member.lastTickMs += tickMs
    tick(replica.raft)
  }
}

/** Something is under way again: the next tick comes in time. */
function wake(member: Member): void {
  if (member.ticksAsleep === 0 || member.isStopped) return
  countTicks(member)
  member.cancelTimer()
  schedule(member)
}

/** Accepts reads of a serving thread that the shard must confirm. Those that wait have deadlines, which ticks look at. */
export function takeReads(member: Member, sink: number, batch: Float64Array): void {
  requestReads(member.reads, sink, batch)
  if (member.reads.waiting.size > 0) wake(member)
}

/**
 * One tick however many are due, so that a stalled node does not fire a burst of them (docs/design/consensus.md#ticks).
 */
function onTimer(member: Member): void {
  const { env, replica, tickMs } = member
  const now = env.clock.monotonicMs()
  noteStall(member, now)
  countTicks(member)
  if (now - member.lastTickMs >= tickMs * 0.9) {
    tick(replica.raft)
    member.lastTickMs = now
    campaignAfterDeath(member)
  }
  settle(member)
}

function settle(member: Member): void {
  tickReads(member.reads)
  pump(member.replica)
  applyCommitted(member.replica)
  publishFacts(member)
}

/** Counts a time without timer and beat that was longer than a heartbeat interval. */
function noteStall(member: Member, now: number): void {
  const { heartbeatTicks, tickMs, ticksAsleep, lookedMs } = member
  const milliseconds = now - lookedMs
  member.lookedMs = now
  if (milliseconds <= (heartbeatTicks + Math.min(1, ticksAsleep)) * tickMs) return
  member.stalls++
  member.env.log.warn({ milliseconds: Math.round(milliseconds) }, 'replica thread stalled')
}

/**
 * Campaigns when its turn comes after the leader's death, unless another node has begun an election by then. Retries a
 * few times: the other voters may notice the death a moment later and do not grant votes until then
 * (docs/design/consensus.md#fast-failover).
 */
function campaignAfterDeath(member: Member): void {
  if (member.campaignIn === 0 || --member.campaignIn > 0) return
  const { raft } = member.replica
  if (raft.leader !== 0 || raft.term !== member.deathTerm || member.stands >= FAST_CAMPAIGNS_MAX) return
  if (raft.role !== 'follower' && raft.role !== 'preCandidate') return
  member.stands++
  member.campaignIn = FAST_CAMPAIGN_TICKS * raft.configuration.voters.length
  campaign(raft)
}

/** Checks membership, samples and health. Called with each tick of the replica, ten times a second. */
export function beat(member: Member): void {
  if (member.isStopped) return
  const now = member.env.clock.monotonicMs()
  noteStall(member, now)
  countTicks(member)
  tickMembership(member.membership)
  expireAdmin(member, now)
  beginShard(member)
  keepRules(member, now)
  handOverWhenSick(member, now)
  tickReceiver(member.receiver)
  tickLoads(member.loads)
  proceed(member.loader)
  if (member.replica.raft.role === 'leader') tickSender(member.sender)
  if (now >= member.nextReportMs) {
    member.nextReportMs = now + REPORT_EVERY_MS
    reportToPeers(member)
  }
  settle(member)
  if (!isQuiet(member)) wake(member)
}

/**
 * The first leader logs what all replicas must agree on: random bits (docs/design/consensus.md#formation) and settings
 * that change results (docs/design/consensus.md#log-commands).
 */
function beginShard(member: Member): void {
  const { replica, env } = member
  if (!isReady(member) || hasBegun(member)) return
  if (!proposeOwn(replica, KIND.genesis, env.random.bytes(16))) return
  proposeOwn(replica, KIND.settings, encodeSettings(member.sessionBytesMax))
  member.begunTerm = replica.raft.term
}

/** Rules that are not in force are proposed again after this interval: a full disk may have refused the entries. */
const RULES_EVERY_MS = 2_000

/**
 * The leader raises the feature level once every member, learners included, has reported support for it. It logs the
 * least memory of the voters whenever that changes, so that all replicas refuse data that one of them cannot hold. Both
 * are proposed together, and only after every voter has reported, so no level is in force without a budget.
 */
function keepRules(member: Member, now: number): void {
  const { replica } = member
  const budget = leastBudget(member)
  if (!isReady(member) || now < member.nextRulesMs || budget === undefined) return
  const { machine } = replica
  const level = commonLevel(member)
  if (machine.featureLevel() < level) {
    if (!raiseFeatureLevel(replica, level)) return
  } else if (level === 0 || machine.budgetUse().budgetBytes === budget) return
  setMemoryBudget(replica, budget)
  member.nextRulesMs = now + RULES_EVERY_MS
}

/** The highest feature level that every member supports. */
function commonLevel({ replica, facts }: Member): number {
  const { configuration, id: own } = replica.raft
  const levels = configuration.members.map(({ id }) =>
    id === own ? FEATURE_LEVEL : (facts.get(id)?.featureLevel ?? 0),
  )
  return Math.min(FEATURE_LEVEL, ...levels)
}

/** Bytes that every voter has for data, 0 for no limit; undefined until all have reported. */
function leastBudget({ replica, facts, memoryBudget }: Member): number | undefined {
  const { configuration, id: own } = replica.raft
  let least = Number.POSITIVE_INFINITY
  for (const id of [...configuration.voters, ...configuration.outgoing]) {
    const reported = id === own ? memoryBudget : facts.get(id)?.memoryBudget
    if (reported === undefined) return undefined
    if (reported > 0) least = Math.min(least, reported)
  }
  return Number.isFinite(least) ? least : 0
}

/** Reachable voters, the most advanced first. */
function heirsOf(member: Member): readonly PeerView[] {
  const { peers, configuration } = viewOf(member)
  return peers
    .filter(({ id, isActive }) => isActive && configuration.voters.includes(id))
    .sort((a, b) => b.match - a.match)
}

/**
 * A leader whose disk is full, slow or does not answer hands leadership to a voter with a healthy disk
 * (docs/design/storage.md#full-disk).
 */
function handOverWhenSick(member: Member, now: number): void {
  const { replica, env, samples } = member
  const { raft } = replica
  const isSlow = replica.slowSyncMs >= 10 * HANDOVER_SYNC_MS
  const state = isStuck(replica) ? 'stuck' : replica.isDiskFull ? 'full' : isSlow ? 'slow' : undefined
  if (raft.role !== 'leader' || !state || now < member.lastHandoverMs + AGAIN_MS[state]) return
  const target = heirsOf(member).find(({ id }) => !samples.get(id)?.isDiskFull)
  if (!target || transferLeader(raft, target.id) !== 'taken') return
  member.lastHandoverMs = now
  const to = nameOf(raft.configuration, target.id)
  env.log.warn({ to }, `leadership is handed over: the disk of this node is ${state}`)
}

/** The state of an installed snapshot is in force. */
export function onSwitched(member: Member): void {
  member.isSwitching = false
  const leader = nodeOf(member, member.replica.raft.leader)
  if (leader !== undefined && member.offered) replyInstalled(member.receiver, leader, member.offered.index)
  member.offered = undefined
  publishFacts(member)
}

/**
 * Hands leadership to the most advanced voter before the node ends (docs/design/storage.md#shutdown).
 *
 * @returns whether a handover is running
 */
export function handOverAtEnd(member: Member): boolean {
  const { raft } = member.replica
  if (raft.role !== 'leader') return false
  const [target] = heirsOf(member)
  if (!target) return false
  const taken = raft.transferTarget !== 0 || transferLeader(raft, target.id) === 'taken'
  pump(member.replica)
  return taken
}

// Bulk loads

function checkLoad({ bulkData }: Member, path: string): string {
  return bulkData ? bulkData.check(path) : 'this node does not accept bulk loads'
}

function proposeLoad({ replica }: Member, digest: string): boolean {
  const bytes = Uint8Array.from(digest.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))
  return proposeOwn(replica, KIND.bulkLoad, encodeBulkLoad(bytes, shardDay(replica)))
}
