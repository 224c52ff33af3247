/**
 * A replica as a member of a shard: ticks for the core, frames to and from peers, who the members are, reads that need
 * a word of the shard, and what operators ask for (consensus.md §4–§10, §14; platform.md §7.3).
 *
 *   transport ── frames ──► core | formation | membership | transfer
 *   timer ── tick, reads, membership, reports ──► pump ──► transport
 *
 * Before a node is a member it looks for its shard: gathering.ts. One thread, no promises: a simulator runs it.
 */

import { assert, dayOf, unreachable } from '@vacancy/shared'
import type { Env } from '../env.ts'
import { isVoter } from '../raft/membership.ts'
import type { Configuration, Message, Sample, SnapshotOffer } from '../raft/messages.ts'
import {
  campaign,
  forgetLeader,
  offerSnapshot,
  proposeChange,
  readIndex,
  reportSnapshot,
  reportUnreachable,
  setCounts,
  status,
  step,
  tick,
  transferLeader,
} from '../raft/raft.ts'
import type { Exchange, Newest } from '../snapshot/exchange.ts'
import { type ClusterStatus, type MemberStatus, OPERATIONS_KEPT, type TransportCounts } from '../status.ts'
import { encodeBulkLoad, KIND } from '../store/command.ts'
import { REFUSED } from '../threads/writes.ts'
import { type Cells, publishCells, ROLE, type RoleCode } from './cells.ts'
import type { Cluster } from './data-directory.ts'
import { nodesToDial } from './discovery.ts'
import {
  type Formation,
  genesisConfiguration,
  hold,
  knownNodes,
  onPeer,
  onPeerLost,
  REMOVED,
  REPORT_EVERY_MS,
  raftIdOf,
} from './formation.ts'
import { type AdminFrame, isRaftMessage, type PeerFrame } from './frames.ts'
import { askToJoin, leaderHeard, report, turnAway } from './gathering.ts'
import { beginLoading, createLoader, type Loader, lookAgain, proceed } from './loading.ts'
import {
  askForLoad,
  bringIn,
  createLoads,
  type Loads,
  loadOperationOf,
  onDrop,
  onHeld,
  onHold,
  onHolds,
  onLoaded,
  onNotHeld,
  startDrop,
  startLoad,
  tickLoads,
} from './loads.ts'
import {
  createMembership,
  type Membership,
  type MembershipView,
  onFounder,
  onJoin,
  operationsOf,
  type PeerView,
  startDemote,
  startPromote,
  startTransfer,
  tickMembership,
} from './membership.ts'
import { type Peers, sendFrame, wantPeers } from './peers.ts'
import { createReads, onApplied, onReadDropped, onReadState, type Reads, refuseReads, tickReads } from './reads.ts'
import {
  answerRead,
  applyCommitted,
  type Link,
  peerDigest,
  proposeOwn,
  pump,
  type Replica,
  snapshotCurrent,
  startSnapshot,
} from './replica.ts'
import {
  createReceiver,
  createSender,
  forgetIncoming,
  forgetOutgoing,
  installStatusOf,
  keptFor,
  loadBytesMissing,
  makeCurrent,
  offerTo,
  onChunkData,
  onChunkMissing,
  onChunkRequest,
  onOffer,
  onOfferReply,
  onSourceLost,
  type Received,
  type Receiver,
  refuseReceived,
  replyInstalled,
  type Sender,
  tickReceiver,
  tickSender,
} from './transfer.ts'

export type MemberOptions = {
  readonly node: string
  readonly incarnation: string
  readonly zoneId: string
  readonly cluster: Cluster
  readonly initialVoters: readonly string[]
  readonly seeds: readonly string[]
  readonly tickMs: number
  readonly electionTicks: number
  readonly heartbeatTicks: number
  /** Bytes of request keys' table: a setting that the first leader logs (§11). */
  readonly sessionBytesMax: number
}

export type MemberParts = {
  readonly env: Env
  readonly replica: Replica
  readonly peers: Peers
  readonly formation: Formation
  /** The disk's part of snapshots between nodes. */
  readonly exchange: Exchange
  /** Whether the memory of this node holds so many packages. */
  readonly hasMemoryFor: (packages: number) => boolean
  /** Everything about the snapshot in this folder that can fail, before the log begins behind it. @returns why it failed */
  readonly prepareSwitch: (path: string) => string
  /** What a bulk load does to the memory of this node; absent where none is taken. */
  readonly bulkData?: {
    /** Why the data of the held snapshot in this folder cannot be loaded; '' when they can. */
    check(path: string): string
    /** Puts them in place of the store's; what fails after that ends the node. */
    replace(path: string, digest: string, done: () => void): void
  }
  /** The snapshot cannot be made current: this node must end (P6). */
  readonly onFatal: (reason: string) => void
  /** The data here are older than what this member acknowledged; absent: the core's assertion ends the node. */
  readonly onOldData?: ((lastIndex: number, acknowledged: number) => void) | undefined
  /** What serving threads see; absent where there are none. */
  readonly cells: Cells | undefined
  /** 16 bytes; zeros before the first entry of the shard is applied (G6). */
  readonly genesis: () => Uint8Array
  readonly transportCounts: () => TransportCounts
  /** Host of a node as the resolver says; '' when it was not asked yet. */
  readonly hostOf: (node: string) => string
  readonly onRole: () => void
  /** This node joined, and is a voter for the first time: to be remembered over restarts. */
  readonly onVoter: () => void
}

type AdminWait = { readonly onAnswer: (answer: AdminAnswer) => void; readonly deadlineMs: number }
export type AdminAnswer = { readonly status: 202 | 404 | 409 | 503; readonly text: string }

type HeardSample = Sample & { readonly heardMs: number; readonly offsetMs: number }

export type Member = MemberParts &
  MemberOptions & {
    readonly membership: Membership
    readonly reads: Reads
    /** Node of a raft id that spoke to us, before the configuration here names it. */
    readonly spoken: Map<number, string>
    readonly samples: Map<number, HeardSample>
    readonly admin: Map<number, AdminWait>
    readonly receiver: Receiver
    readonly sender: Sender
    readonly loads: Loads
    readonly loader: Loader
    /** The message behind what is being received: stepped when all of it is here. */
    offered: SnapshotOffer | undefined
    nextAdmin: number
    nextTickMs: number
    lastTickMs: number
    nextBeatMs: number
    nextReportMs: number
    /** E10: ticks until this node stands, because the leader's process is gone; 0 for not. */
    campaignIn: number
    /** The term of that leader, and how often this node has stood since. */
    deathTerm: number
    stands: number
    /** Term in which this leader proposed what a new shard begins with. */
    begunTerm: number
    /** Last term in which this node became ready to lead. */
    readyTerm: number
    stalls: number
    /** It joined, and has been a voter since. */
    wasVoter: boolean
    /** It was a member, and an applied entry says that it is none any more. */
    isRemoved: boolean
    isStopped: boolean
    /** Not served while the state is being replaced. */
    isSwitching: boolean
    elections: { won: number; lost: number; refused: number }
    /** How long syncs have been slow, and when leadership was last handed over for it (§19). */
    nextHandoverMs: number
    /** Members are looked for by these names, too: POST /peers. */
    dialled: readonly string[]
  }

/** Membership, samples and health are looked at this often. */
const BEAT_MS = 100
/** E10: the voters stand one after another, so many ticks apart: two at once would take each other's votes. */
const FAST_CAMPAIGN_TICKS = 4
const FAST_CAMPAIGNS_MAX = 5
/** Entries that a follower takes while it cannot apply them. */
const HELD_BYTES_MAX = 64 << 20
/** Longer than the caller waits, which then knows that the fate is open (http/cluster.ts). */
const ADMIN_MS = 6_000
const ADMIN_WAITING_MAX = 64
/** C4 */
const CLOCK_SUSPECT_MS = 60_000
/** §19: at most one in so long. */
const HANDOVER_EVERY_MS = 300_000
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
    membership: createMembership(
      {
        status: () => viewOf(member),
        isReady: () => isReady(member),
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
        askLeader: (kind, node, onAnswer) => askAdmin(member, { kind, node }, onAnswer),
        nowMs: () => env.clock.monotonicMs(),
        wallMs: () => env.clock.wallMs(),
        log: env.log,
      },
      {
        self: { node: options.node, incarnation: options.incarnation, isFounder: options.cluster.isFounder !== false },
        initialVoters: options.initialVoters,
        defects: env.defects,
      },
    ),
    reads: createReads({
      nowMs: () => env.clock.monotonicMs(),
      readIndex: (context) => readIndex(raft, context),
      applied: () => raft.applied,
      commit: () => raft.commit,
      answer: (sink, token, code, index) => answerRead(replica, sink, token, code, index),
      heartbeatMs,
      // 48 random bits: an answer to a question of an earlier life is none to one of this.
      firstContext: bytes.reduce((sum, byte) => sum * 256 + byte, 0),
      defects: env.defects,
    }),
    spoken: new Map(),
    samples: new Map(),
    admin: new Map(),
    receiver: createReceiver(
      {
        send: (node, frame) => sendFrame(peers, node, frame),
        exchange: parts.exchange,
        sources: () => [...peers.connected],
        nowMs: () => env.clock.monotonicMs(),
        log: env.log,
        onReady: (received) => onReceived(member, received),
        onFailed(reason, detail, purpose) {
          if (purpose === 'load') return onNotHeld(member.loads, `${reason}: ${detail}`)
          member.offered = undefined
          if (replica.installing) parts.onFatal(`a snapshot cannot be installed: ${reason} ${detail}`.trim())
        },
      },
      {
        shardId: options.cluster.shardId,
        codecsOrderedHash: options.cluster.codecHash,
        defects: env.defects,
      },
    ),
    sender: createSender(
      {
        send: (node, frame) => sendFrame(peers, node, frame),
        exchange: parts.exchange,
        nowMs: () => env.clock.monotonicMs(),
        after: (delayMs, run) => void env.schedule.after(delayMs, run),
        log: env.log,
        sendOffer: (peer, newest, manifest) => sendOffer(member, peer, newest, manifest),
        reportSnapshot(peer, isReceived) {
          if (raft.role === 'leader') reportSnapshot(raft, peer, isReceived)
        },
      },
      env.defects,
    ),
    loads: createLoads({
      self: options.node,
      send: (node, frame) => sendFrame(peers, node, frame),
      exchange: parts.exchange,
      isLeader: () => raft.role === 'leader',
      isReady: () => isReady(member),
      voters: () => votersOf(raft.configuration),
      others: () => nodesOf(raft.configuration).filter((node) => node !== options.node),
      receive: (offer) => onOffer(member.receiver, offer),
      wanted: {
        shardId: options.cluster.shardId,
        codecsOrderedHash: options.cluster.codecHash,
        codecsText: options.cluster.codecs.join(','),
      },
      check: (path) => checkLoad(member, path),
      notPast: (index) => notPast(member, index),
      propose: (digest) => proposeLoad(member, digest),
      nowMs: () => env.clock.monotonicMs(),
      wallMs: () => env.clock.wallMs(),
      log: env.log,
    }),
    loader: createLoader({
      env,
      replica,
      exchange: parts.exchange,
      ask: (digest) => askForLoad(member.loads, digest),
      check: (path) => checkLoad(member, path),
      replace: (path, digest, done) => parts.bulkData?.replace(path, digest, done),
      onPhase: () => publishFacts(member),
    }),
    offered: undefined,
    nextAdmin: 1,
    nextTickMs: now + options.tickMs,
    lastTickMs: now,
    nextBeatMs: now,
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
    nextHandoverMs: 0,
    dialled: [],
  }
  replica.link = linkOf(member)
  peers.raftId = raft.id
  peers.nodeOf = (id) => nodeOf(member, id)
  peers.handler = {
    onFrame: (peer, frame) => onFrame(member, peer, frame),
    onOpen: (peer, stream) => {
      if (stream === 'control') reportTo(member, peer)
    },
    onClosed: (peer, stream, isDead) => {
      if (stream === 'control') onPeerGone(member, peer, isDead)
      if (stream === 'bulk') onSourceLost(member.receiver, peer)
      const id = idOf(member, peer)
      if (id > 0 && raft.role === 'leader') reportUnreachable(raft, id)
    },
  }
  adopt(member, raft.configuration)
  schedule(member)
  return member
}

/** Ends the timers; what peers send from now on is dropped. */
export function stopMember(member: Member): void {
  member.isStopped = true
  member.peers.handler = undefined
  refuseReads(member.reads, REFUSED.notServing)
  publishFacts(member)
}

// Time

function schedule(member: Member): void {
  const { env, tickMs } = member
  env.schedule.after(tickMs, () => {
    if (member.isStopped) return
    onTimer(member)
    schedule(member)
  })
}

/** §3.4: one tick however many are due; a node that stood still must not fire a burst of them. */
function onTimer(member: Member): void {
  const { env, replica, tickMs } = member
  const now = env.clock.monotonicMs()
  const sinceTick = now - member.lastTickMs
  if (sinceTick >= tickMs * 0.9) {
    if (sinceTick > member.heartbeatTicks * tickMs) noteStall(member, sinceTick)
    const ticks = env.defects?.has('driver/tick-burst') ? Math.floor(sinceTick / tickMs) : 1
    for (let i = 0; i < Math.max(1, ticks); i++) tick(replica.raft)
    member.lastTickMs = now
    standAfterDeath(member)
  }
  tickReads(member.reads)
  if (now >= member.nextBeatMs) beat(member, now)
  pump(replica)
  applyCommitted(replica)
  publishFacts(member)
}

function noteStall(member: Member, milliseconds: number): void {
  member.stalls++
  member.env.log.warn({ milliseconds: Math.round(milliseconds) }, 'the replica thread stood still')
}

/**
 * E10: stands when its turn has come after the leader's death, unless somebody else has begun an election by then. Asked
 * again a few times: the others may notice the death a moment later, and until then they do not answer.
 */
function standAfterDeath(member: Member): void {
  if (member.campaignIn === 0 || --member.campaignIn > 0) return
  const { raft } = member.replica
  if (raft.leader !== 0 || raft.term !== member.deathTerm || member.stands >= FAST_CAMPAIGNS_MAX) return
  if (raft.role !== 'follower' && raft.role !== 'preCandidate') return
  member.stands++
  member.campaignIn = FAST_CAMPAIGN_TICKS * raft.configuration.voters.length
  campaign(raft)
}

function beat(member: Member, now: number): void {
  member.nextBeatMs = now + BEAT_MS
  tickMembership(member.membership)
  expireAdmin(member, now)
  beginShard(member)
  handOverWhenSick(member, now)
  tickReceiver(member.receiver)
  tickLoads(member.loads)
  proceed(member.loader)
  if (member.replica.raft.role === 'leader') tickSender(member.sender)
  if (now < member.nextReportMs) return
  member.nextReportMs = now + REPORT_EVERY_MS
  reportToPeers(member)
}

/** Members hear once a second where this one stands, and nodes that look for the shard find it. */
function reportToPeers(member: Member): void {
  const { formation, peers, replica, node } = member
  const { raft } = replica
  hold(formation, formedState(member))
  dial(member)
  for (const name of new Set([...nodesOf(raft.configuration), ...knownNodes(formation)])) {
    if (name !== node) reportTo(member, name)
  }
  const isNamed = member.initialVoters.includes(node)
  if (member.cluster.isFounder !== false || !isNamed || member.wasVoter) return
  const leader = nodeOf(member, raft.leader) ?? leaderHeard(formation, member.env.clock.monotonicMs())
  if (leader !== undefined) askToJoin(peers, formation, leader)
}

/**
 * Always what holds now: a founder that was wiped founds the shard again as long as all others say that nothing has
 * happened in it yet. An old word of theirs would let it vote a second time (G3).
 */
function reportTo(member: Member, peer: string): void {
  hold(member.formation, formedState(member))
  report(member.peers, member.formation, peer)
}

function formedState({ cluster, replica }: Member): Extract<Parameters<typeof hold>[1], { state: 'formed' }> {
  const { raft } = replica
  const { clusterId, snapshotDigest = '', baseIndex, baseTerm, voters, isFounder = true } = cluster
  return {
    state: 'formed',
    clusterId,
    digest: snapshotDigest,
    index: baseIndex,
    term: baseTerm,
    voters,
    isFounder,
    isUntouched: raft.term === baseTerm && raft.vote === 0 && raft.leader === 0 && raft.lastIndex === baseIndex,
    leader: nameOf(raft.configuration, raft.leader),
  }
}

/** The first leader logs what all replicas must agree on: random bits (G6) and settings that change results (§11). */
function beginShard(member: Member): void {
  const { replica, env } = member
  if (!isReady(member) || member.begunTerm === replica.raft.term || member.genesis().some((byte) => byte !== 0)) return
  const settings = new Uint8Array(4)
  new DataView(settings.buffer).setUint32(0, member.sessionBytesMax, true)
  if (!proposeOwn(replica, KIND.genesis, env.random.bytes(16))) return
  proposeOwn(replica, KIND.settings, settings)
  member.begunTerm = replica.raft.term
}

/** Voters that are heard, the most advanced first. */
function heirsOf(member: Member): readonly PeerView[] {
  const { peers, configuration } = viewOf(member)
  return peers
    .filter(({ id, isActive }) => isActive && configuration.voters.includes(id))
    .sort((a, b) => b.match - a.match)
}

/** §19: a leader whose disk is full or slow hands over to a voter whose is not. */
function handOverWhenSick(member: Member, now: number): void {
  const { replica, env, samples } = member
  const { raft } = replica
  const isSlow = replica.slowSyncMs >= 10 * HANDOVER_SYNC_MS
  if (raft.role !== 'leader' || !(replica.isDiskFull || isSlow) || now < member.nextHandoverMs) return
  const target = heirsOf(member).find(({ id }) => !samples.get(id)?.isDiskFull)
  if (!target || transferLeader(raft, target.id) !== 'taken') return
  member.nextHandoverMs = now + (replica.isDiskFull ? STEP_AFTER_MS : HANDOVER_EVERY_MS)
  const to = nameOf(raft.configuration, target.id)
  env.log.warn({ to }, `leadership is handed over: the disk of this node is ${replica.isDiskFull ? 'full' : 'slow'}`)
}

const STEP_AFTER_MS = 10_000

/** An entry of the own term is applied: only then does a leader know what is committed (M3). */
export function isReady({ replica: { raft } }: Member): boolean {
  return raft.role === 'leader' && raft.termStart > 0 && raft.applied >= raft.termStart
}

// Peers

function linkOf(member: Member): Link {
  const { peers, replica } = member
  const { raft } = replica
  return {
    send(message) {
      const to = nodeOf(member, message.to)
      if (to === undefined || to === member.node) return
      const isBeat = message.type === 'heartbeat' || message.type === 'heartbeatReply'
      const isSent = sendFrame(peers, to, isBeat ? { ...message, sample: sampleOf(member) } : message)
      // A window of appends that nobody takes is a probe.
      if (!isSent && message.type === 'append' && replica.raft.role === 'leader')
        reportUnreachable(replica.raft, message.to)
    },
    onReadState: (context, index) => onReadState(member.reads, context, index),
    onReadDropped: (context, reason) => onReadDropped(member.reads, context, reason),
    onOffer(id) {
      const node = nodeOf(member, id)
      // Where none reaches back to what the log still has, one is made: the next attempt finds it.
      if (replica.snapshotIndexLast + 1 < replica.raft.firstIndex || replica.snapshotIndexLast === 0)
        startSnapshot(replica, 'requested')
      if (node === undefined) reportSnapshot(replica.raft, id, false)
      else offerTo(member.sender, id, node)
    },
    onInstall() {
      member.isSwitching = true
      publishFacts(member)
      makeCurrent(member.receiver, (path) => {
        const fault = member.prepareSwitch(path)
        if (fault !== '') return member.onFatal(fault)
        snapshotCurrent(replica)
      })
    },
    keptIndex: () => keptFor(member.sender),
    onConfiguration: (_index, configuration) => adopt(member, configuration),
    onApplied() {
      // G6: from its first entry on a shard is told from another one that began in the same way.
      if (peers.common.genesis.every((byte) => byte === 0)) peers.common.genesis = member.genesis()
      onApplied(member.reads)
      publishFacts(member)
      // Clients look for the leader by HTTP, too: they must not wait for the next status.
      if (member.readyTerm === raft.term || !isReady(member)) return
      member.readyTerm = raft.term
      member.onRole()
    },
    onRole: () => onRole(member),
    onLoadEntry: () => beginLoading(member.loader),
    onLoaded({ digest }) {
      onLoaded(member.loads, digest, member.loader.before)
      // So that a start need not load it again.
      startSnapshot(replica, 'requested')
    },
  }
}

/** A seed names no members: they are those that the shard began with. */
function sendOffer(member: Member, peer: number, newest: Newest, manifest: Uint8Array): boolean {
  const { raft } = member.replica
  if (raft.role !== 'leader' || newest.index > raft.applied) return false
  const configuration = newest.membership ?? genesisConfiguration(member.cluster.voters)
  const { index, term: snapshotTerm } = newest
  const isTaken = offerSnapshot(raft, peer, { index, snapshotTerm, configuration, manifest })
  pump(member.replica)
  return isTaken
}

/** All of an offered snapshot is here: the core decides whether it is still wanted. */
function onReceived(member: Member, { index, packages, purpose }: Received): void {
  const { offered, replica, receiver } = member
  const { raft } = replica
  if (purpose === 'install' && (!offered || offered.index !== index || replica.installing)) return
  if (!member.hasMemoryFor(packages)) {
    return refuseReceived(receiver, 'no-memory', `${packages} packages do not fit the memory of this node`)
  }
  if (purpose === 'load') {
    return makeCurrent(receiver, (path) => {
      onHeld(member.loads, path)
      lookAgain(member.loader)
    })
  }
  assert(offered !== undefined, 'what is installed was offered')
  // The term may have moved while the data came in; whoever leads now has the same history. Without a leader it waits
  // for the next offer, which finds everything here.
  if (raft.leader === 0 || raft.role === 'leader') return
  step(raft, { ...offered, from: raft.leader, term: raft.term })
  if (raft.snapshot === undefined) forgetIncoming(receiver)
  pump(replica)
  applyCommitted(replica)
}

/** The state of an installed snapshot is in force. */
export function onSwitched(member: Member): void {
  member.isSwitching = false
  const leader = nodeOf(member, member.replica.raft.leader)
  if (leader !== undefined && member.offered) replyInstalled(member.receiver, leader, member.offered.index)
  member.offered = undefined
  publishFacts(member)
}

function onRole(member: Member): void {
  const { replica, env } = member
  const { raft } = replica
  if (raft.role === 'leader') {
    member.elections.won++
    env.log.info({ term: raft.term }, 'this node leads the shard')
  } else if (raft.leader !== 0) {
    forgetOutgoing(member.sender)
    member.campaignIn = 0
    env.log.info({ term: raft.term, leader: nameOf(raft.configuration, raft.leader) }, 'follows a leader')
  } else env.log.info({ term: raft.term, role: raft.role }, 'no leader is known')
  publishFacts(member)
  member.onRole()
}

/** A member that knows a leader needs no others; one that does not looks for everybody it has heard of. */
function dial({ node, replica, peers, formation, seeds, dialled }: Member): void {
  const { configuration, id, leader } = replica.raft
  const isSettled = leader !== 0 && configuration.members.some((each) => each.id === id)
  const members = [...nodesOf(configuration), ...dialled]
  wantPeers(peers, nodesToDial(node, { members, isSettled, seeds, learned: knownNodes(formation) }))
}

/** The core counts a peer as active for up to two checks of the quorum; one that is known to be silent is not. */
function viewOf(member: Member): MembershipView {
  const { raft } = member.replica
  const view = status(raft)
  const peers = view.peers.map((peer) => ({
    ...peer,
    isActive: peer.isActive && silentMs(member, peer.id) <= silenceMax(member),
  }))
  return { id: raft.id, ...view, peers }
}

/** Since its last sample; 0 where none has come yet. */
function silentMs({ samples, env }: Member, id: number): number {
  const sample = samples.get(id)
  return sample ? env.clock.monotonicMs() - sample.heardMs : 0
}

const silenceMax = ({ electionTicks, tickMs }: Member): number => electionTicks * tickMs

/** Who the members are, as applied here. */
function adopt(member: Member, configuration: Configuration): void {
  const { replica, env } = member
  const { raft } = replica
  // Unbound members are founders: nobody else ever speaks under such an id (formation.ts).
  for (const { id, incarnation } of configuration.members) {
    if (incarnation === '' && !env.defects?.has('formation/unbound-ignored')) setCounts(raft, id, true)
  }
  const isIn = configuration.members.some(({ id }) => id === raft.id)
  // A node that is catching up applies what was before it was added.
  const wasAdded = raft.configurationIndex > raft.id - JOINED_BASE
  const isRemoved = !isIn && (raft.id <= JOINED_BASE || wasAdded)
  noteRemoval(member, isRemoved)
  if (member.cluster.isFounder === false && !member.wasVoter && isVoter(configuration, raft.id)) {
    // From now on it is what operators make of it, also when they make it a learner.
    member.wasVoter = true
    member.onVoter()
  }
  dial(member)
}

const JOINED_BASE = 1_000

function noteRemoval(member: Member, isRemoved: boolean): void {
  const { env, node } = member
  if (isRemoved && !member.isRemoved) {
    env.log.error({ node }, 'this node is no member of its shard any more: it was removed or replaced')
  }
  member.isRemoved = isRemoved
  publishFacts(member)
}

/**
 * A node that was a member here and is none any more. Nobody sends it the entry that says so, because it is none: the
 * leader tells it when it reports.
 */
function isStranger(
  { replica, cluster }: Member,
  node: string,
  { state, clusterId, incarnation, isFounder }: Omit<FormationFrame, 'type'>,
): boolean {
  const isOurs = state === 'formed' && clusterId === cluster.clusterId
  return isOurs && raftIdOf(replica.raft.configuration, { node, incarnation, isFounder }) === 0
}

type FormationFrame = Extract<PeerFrame, { type: 'formation' }>

function onFrame(member: Member, peer: string, frame: PeerFrame): void {
  const { replica, env } = member
  const { raft } = replica
  if (isRaftMessage(frame)) onMessage(member, peer, frame)
  else {
    switch (frame.type) {
      case 'formation': {
        const { type: _type, ...heard } = frame
        turnAway(member.peers, member.formation, peer, heard)
        if (onPeer(member.formation, peer, heard, env.clock.monotonicMs())) reportTo(member, peer)
        if (heard.isFounder && heard.clusterId === member.cluster.clusterId)
          onFounder(member.membership, peer, heard.incarnation)
        if (isReady(member) && isStranger(member, peer, heard))
          sendFrame(member.peers, peer, { type: 'refused', reason: REMOVED, detail: '' })
        break
      }
      case 'join': {
        const answer = onJoin(member.membership, frame)
        if (answer.kind === 'joined') {
          sendFrame(member.peers, peer, { type: 'joined', member: answer.member, configuration: answer.configuration })
        } else if (answer.kind === 'refused') {
          sendFrame(member.peers, peer, { type: 'refused', reason: answer.reason, detail: answer.detail })
        }
        break
      }
      case 'admin':
        onAdminFrame(member, peer, frame)
        break
      case 'adminReply': {
        const waiting = member.admin.get(frame.id)
        member.admin.delete(frame.id)
        waiting?.onAnswer({ status: adminStatus(frame.status), text: frame.text })
        break
      }
      case 'refused':
        if (frame.reason === REMOVED) noteRemoval(member, true)
        else env.log.warn({ peer, reason: frame.reason, detail: frame.detail }, 'a peer refuses this node')
        break
      case 'joined':
        break
      case 'chunkRequest':
        onChunkRequest(member.sender, peer, frame)
        break
      case 'chunkData':
        onChunkData(member.receiver, peer, frame)
        break
      case 'chunkMissing':
        onChunkMissing(member.receiver, peer, frame)
        break
      case 'offerReply':
        onOfferReply(member.sender, idOf(member, peer), frame)
        break
      case 'bulkHolds':
        onHolds(member.loads, peer, frame)
        break
      case 'chunkHave':
        break
      default:
        return unreachable(frame)
    }
  }
  // The core's state may have moved; whoever turned `raft` knows by its hand-overs.
  assert(raft === replica.raft, 'a member keeps its core')
  pump(replica)
  applyCommitted(replica)
}

function onMessage(member: Member, peer: string, message: Message): void {
  const { replica } = member
  const { raft } = replica
  if (message.from === raft.id) return
  if (nameOf(raft.configuration, message.from) === '') remember(member, message.from, peer)
  if (message.type === 'heartbeat' || message.type === 'heartbeatReply')
    noteSample(member, message.from, message.sample)
  // A13: a heartbeat commits no more than its addressee has acknowledged. With an old copy of its folder a member has
  // forgotten that, and votes as well: it must not go on as the one it was.
  const hasForgotten = message.type === 'heartbeat' && message.term >= raft.term && message.commit > raft.lastIndex
  if (hasForgotten && !raft.snapshot && !raft.isMute && member.onOldData) {
    member.isStopped = true
    member.peers.handler = undefined
    publishFacts(member)
    return member.onOldData(raft.lastIndex, message.commit)
  }
  // It is sent again: what waits behind a bulk load is bounded in memory.
  if (message.type === 'append' && replica.loading && raft.unappliedBytes >= HELD_BYTES_MAX) return
  if (message.type !== 'snapshot') return step(raft, message)
  if (message.term < raft.term || message.index <= raft.commit) return step(raft, message)
  // Obeyed like any word of a leader, also before its data is here.
  if (message.term > raft.term) step(raft, { ...message, type: 'heartbeat', commit: 0, readRound: 0 })
  if (replica.installing) return
  member.offered = message
  const { index, snapshotTerm: term, manifest } = message
  onOffer(member.receiver, { node: peer, index, term, manifest })
}

/** Somebody new speaks: answers must find the way before the configuration here names it. */
function remember({ spoken }: Member, id: number, peer: string): void {
  if (spoken.size >= SPOKEN_MAX && !spoken.has(id)) spoken.delete(spoken.keys().next().value as number)
  spoken.set(id, peer)
}
const SPOKEN_MAX = 64

function onPeerGone(member: Member, peer: string, isDead: boolean): void {
  onPeerLost(member.formation, peer)
  const { raft } = member.replica
  if (!isDead || raft.role !== 'follower' || raft.leader === 0 || nodeOf(member, raft.leader) !== peer) return
  // E10: its process is gone, so nobody hears it any more.
  const others = raft.configuration.voters.filter((id) => id !== raft.leader)
  forgetLeader(raft)
  member.deathTerm = raft.term
  member.stands = 0
  member.campaignIn = others.includes(raft.id) ? 1 + others.indexOf(raft.id) * FAST_CAMPAIGN_TICKS : 0
  pump(member.replica)
}

// Samples

function sampleOf({ env, replica }: Member): Sample {
  const { machine, raft } = replica
  const mark = machine.digestMarks().at(-1)
  return {
    wallMs: Math.max(0, Math.floor(env.clock.wallMs())),
    isDiskFull: replica.isDiskFull,
    digestIndex: mark?.index ?? 0,
    digestLo: mark?.lo ?? 0,
    digestHi: mark?.hi ?? 0,
    applied: raft.applied,
  }
}

function noteSample(member: Member, from: number, sample: Sample | undefined): void {
  if (!sample) return
  const { env, samples } = member
  if (samples.size >= SPOKEN_MAX && !samples.has(from)) samples.clear()
  const offsetMs = sample.wallMs - env.clock.wallMs()
  samples.set(from, { ...sample, heardMs: env.clock.monotonicMs(), offsetMs })
  const { digestIndex, digestLo, digestHi } = sample
  if (digestIndex > 0) peerDigest(member.replica, from, { index: digestIndex, lo: digestLo, hi: digestHi })
}

/** C4: whether this clock is far from the median of the voters that are heard. */
export function isClockSuspect(member: Member): boolean {
  const { samples, replica, env } = member
  const recentMs = 3 * member.heartbeatTicks * member.tickMs
  const now = env.clock.monotonicMs()
  const offsets = [0]
  for (const id of replica.raft.configuration.voters) {
    const sample = samples.get(id)
    if (sample && now - sample.heardMs <= recentMs) offsets.push(sample.offsetMs)
  }
  offsets.sort((a, b) => a - b)
  return Math.abs(offsets[offsets.length >>> 1] ?? 0) > CLOCK_SUSPECT_MS
}

/** Voters, this one included, whose clocks agree with this one's within a minute: a majority may turn a rested window (§11). */
export function clocksAgree(member: Member): boolean {
  const { samples, replica, env } = member
  const recentMs = 3 * member.heartbeatTicks * member.tickMs
  const now = env.clock.monotonicMs()
  const { voters } = replica.raft.configuration
  const agreeing = voters.filter((id) => {
    if (id === replica.raft.id) return true
    const sample = samples.get(id)
    return sample && now - sample.heardMs <= recentMs && Math.abs(sample.offsetMs) <= CLOCK_SUSPECT_MS
  })
  return agreeing.length > voters.length / 2
}

// What operators ask for

/** What an operator asks of a shard. */
export type AdminAsk =
  | { readonly kind: 'promote' | 'demote' | 'transfer'; readonly node: string }
  | { readonly kind: 'load'; readonly file: string }
  | { readonly kind: 'load' | 'drop-load'; readonly digest: string }

/** What the leader is told of it. */
type AdminTold = Pick<AdminFrame, 'kind' | 'node' | 'digest' | 'detail'>
type OnAdmin = (answer: AdminAnswer) => void

/** Asks for a change; a node that does not lead passes it to the leader. Calls back once. */
export function askAdmin(member: Member, what: AdminAsk, onAnswer: OnAdmin): void {
  switch (what.kind) {
    case 'load':
      // The snapshot is brought in where it is.
      return bringIn(member.loads, what, (result) => {
        if ('status' in result) onAnswer(result)
        else tellLeader(member, { kind: 'load', node: '', ...result }, onAnswer)
      })
    case 'drop-load':
      return tellLeader(member, { kind: what.kind, node: '', digest: what.digest, detail: '' }, onAnswer)
    default:
      return tellLeader(member, { kind: what.kind, node: what.node, digest: '', detail: '' }, onAnswer)
  }
}

function tellLeader(member: Member, told: AdminTold, onAnswer: OnAdmin): void {
  const { raft } = member.replica
  if (raft.role === 'leader') {
    decideAdmin(member, told, onAnswer)
    pump(member.replica)
    return
  }
  const leader = nodeOf(member, raft.leader)
  if (leader === undefined || raft.leader === 0) return onAnswer({ status: 503, text: 'no leader' })
  if (member.admin.size >= ADMIN_WAITING_MAX) return onAnswer({ status: 503, text: 'cluster busy, please retry' })
  const id = member.nextAdmin++
  if (!sendFrame(member.peers, leader, { type: 'admin', id, ...told }))
    return onAnswer({ status: 503, text: 'no leader' })
  member.admin.set(id, { onAnswer, deadlineMs: member.env.clock.monotonicMs() + ADMIN_MS })
}

function decideAdmin({ membership, loads }: Member, told: AdminTold, onAnswer: OnAdmin): void {
  switch (told.kind) {
    case 'promote':
      return onAnswer(startPromote(membership, told.node))
    case 'demote':
      return onAnswer(startDemote(membership, told.node))
    case 'transfer':
      return onAnswer(startTransfer(membership, told.node))
    case 'load':
      return startLoad(loads, told.digest, told.detail, onAnswer)
    case 'drop-load':
      return startDrop(loads, told.digest, onAnswer)
    default:
      return unreachable(told.kind)
  }
}

/** Passed on once, not twice: a leader that has just changed answers that there is none. */
function onAdminFrame(member: Member, peer: string, frame: AdminFrame): void {
  const { id, kind } = frame
  // Not what an operator asks, but what the leader has its members do.
  if (id === 0) return kind === 'load' ? onHold(member.loads, peer, frame) : onDrop(member.loads, frame)
  const reply = ({ status: code, text }: AdminAnswer) =>
    void sendFrame(member.peers, peer, { type: 'adminReply', id, ok: code === 202, status: code, text })
  if (member.replica.raft.role === 'leader') decideAdmin(member, frame, reply)
  else reply({ status: 503, text: 'no leader' })
}

function adminStatus(code: number): AdminAnswer['status'] {
  return code === 202 || code === 404 || code === 409 ? code : 503
}

function expireAdmin({ admin }: Member, now: number): void {
  for (const [id, { deadlineMs, onAnswer }] of admin) {
    if (now < deadlineMs) continue
    admin.delete(id)
    onAnswer({ status: 503, text: 'the leader did not answer' })
  }
}

/**
 * At the end of a node: a leader gives its leadership to the most advanced voter (§18).
 *
 * @returns whether there is somebody to wait for
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
  return bulkData ? bulkData.check(path) : 'this node takes no loads'
}

function proposeLoad({ replica, env }: Member, digest: string): boolean {
  const bytes = Uint8Array.from(digest.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))
  return proposeOwn(replica, KIND.bulkLoad, encodeBulkLoad(bytes, dayOf(env.clock.wallMs())))
}

/** Members that are not known to have applied an index. */
function notPast({ replica: { raft }, samples }: Member, index: number): string[] {
  return raft.configuration.members
    .filter(({ id }) => (id === raft.id ? raft.applied : (samples.get(id)?.applied ?? 0)) < index)
    .map(({ node }) => node)
}

/** The bulk load that keeps this node from serving. */
function awaitedLoadOf({ replica: { loading }, receiver }: Member): ClusterStatus['awaitedLoad'] {
  if (!loading || loading.phase === 'looking' || loading.phase === 'keeping') return undefined
  return { digest: loading.digest, bytesMissing: loadBytesMissing(receiver) }
}

/** Changes of the membership and loads, as one list. */
function allOperations({ membership, loads }: Member): ReturnType<typeof operationsOf> {
  const { operation, lastOperations } = operationsOf(membership)
  return {
    operation: operation ?? loadOperationOf(loads),
    lastOperations: [...lastOperations, ...loads.finished].sort((a, b) => b.atMs - a.atMs).slice(0, OPERATIONS_KEPT),
  }
}

// Names

function votersOf({ members, voters }: Configuration): string[] {
  return members.filter(({ id }) => voters.includes(id)).map(({ node }) => node)
}

function nodesOf({ members }: Configuration): string[] {
  return members.map(({ node }) => node)
}

/** '' for nobody. */
function nameOf({ members }: Configuration, id: number): string {
  return members.find((each) => each.id === id)?.node ?? ''
}

function nodeOf({ replica, spoken }: Member, id: number): string | undefined {
  return replica.raft.configuration.members.find((each) => each.id === id)?.node ?? spoken.get(id)
}

function idOf({ replica }: Member, node: string): number {
  return replica.raft.configuration.members.find((each) => each.node === node)?.id ?? 0
}

// What is shown

function roleCode(member: Member): RoleCode {
  const { raft } = member.replica
  if (member.isSwitching || member.isRemoved || member.isStopped) return ROLE.unavailable
  if (awaitedLoadOf(member)) return ROLE.unavailable
  if (raft.role === 'leader') return isReady(member) ? ROLE.leader : ROLE.none
  if (raft.configuration.learners.includes(raft.id)) return ROLE.learner
  return raft.role === 'follower' ? ROLE.follower : ROLE.none
}

/** For the serving threads; after every batch, change of role and tick. */
export function publishFacts(member: Member): void {
  if (!member.cells) return
  const { raft } = member.replica
  publishCells(member.cells, {
    role: roleCode(member),
    isLeaderKnown: raft.leader !== 0,
    applied: raft.applied,
    freshMs: member.reads.freshMs,
  })
}

export function clusterStatus(member: Member): ClusterStatus {
  const { replica, env, reads, membership, receiver, sender, loads } = member
  const { raft } = replica
  const now = env.clock.monotonicMs()
  const { configuration } = raft
  return {
    nodeId: member.node,
    zoneId: member.zoneId,
    clusterId: member.cluster.clusterId,
    role: ownRole(member),
    term: raft.term,
    leader: nameOf(configuration, raft.leader),
    isLeading: isReady(member),
    members: configuration.members.map(({ id, node }) => memberStatus(member, id, node)),
    isJoint: configuration.outgoing.length > 0,
    isRemoved: member.isRemoved,
    peers: [...new Set([...nodesOf(configuration), ...knownNodes(member.formation), ...member.dialled])]
      .filter((node) => node !== member.node)
      .sort(),
    stalenessMs: reads.freshMs === Number.NEGATIVE_INFINITY ? undefined : Math.max(0, now - reads.freshMs),
    bootstrap: undefined,
    installing: installStatusOf(receiver),
    awaitedLoad: awaitedLoadOf(member),
    ...allOperations(member),
    operationsEnded: {
      done: membership.ended.done + loads.ended.done,
      failed: membership.ended.failed + loads.ended.failed,
    },
    isClockSuspect: isClockSuspect(member),
    transport: member.transportCounts(),
    elections: member.elections,
    leaderChanges: replica.leaderChanges,
    proposals: replica.outcomes,
    tickStalls: member.stalls,
    transfers: {
      sending: sender.outgoing.size,
      receiving: receiver.incoming ? 1 : 0,
      sent: sender.sent,
      received: receiver.received,
      failed: sender.failed + receiver.failed,
      durationMs: sender.lastDurationMs,
      loadMs: undefined,
      writePauseMs: undefined,
    },
  }
}

function ownRole({ replica: { raft } }: Member): ClusterStatus['role'] {
  if (raft.role === 'leader' || raft.role === 'follower') {
    return raft.configuration.learners.includes(raft.id) ? 'learner' : raft.role
  }
  return 'candidate'
}

function memberStatus(member: Member, id: number, node: string): MemberStatus {
  const { replica, samples, env } = member
  const { raft } = replica
  const peer = raft.peers.find((each) => each.id === id)
  const isVoting = isVoter(raft.configuration, id)
  const isSelf = id === raft.id
  const leads = raft.leader === id
  const base = {
    id: node,
    isVoter: isVoting,
    role: isSelf
      ? ownRole(member)
      : leads
        ? ('leader' as const)
        : isVoting
          ? ('follower' as const)
          : ('learner' as const),
    host: member.hostOf(node),
    roundTrip: undefined,
  }
  if (isSelf) {
    return { ...base, health: 'active', progress: undefined, matchIndex: raft.lastIndex, lagEntries: 0, lagMs: 0 }
  }
  if (!peer) {
    return {
      ...base,
      health: 'unknown',
      progress: undefined,
      matchIndex: undefined,
      lagEntries: undefined,
      lagMs: undefined,
    }
  }
  const sample = samples.get(id)
  const silentMs = sample ? env.clock.monotonicMs() - sample.heardMs : Number.POSITIVE_INFINITY
  const isHeard = silentMs <= member.electionTicks * member.tickMs
  const health = peer.state === 'snapshot' ? 'installing' : isHeard ? 'active' : 'inactive'
  const lagEntries = Math.max(0, raft.commit - peer.match)
  return {
    ...base,
    health,
    progress: peer.state,
    matchIndex: peer.match,
    lagEntries,
    lagMs: lagEntries === 0 ? 0 : undefined,
  }
}
