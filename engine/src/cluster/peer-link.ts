/** Communication with the other members: frames, their identities, and snapshots for members that lag far behind. */

import { assert, unreachable } from '@vacancy/shared'
import { isAddressee, type Joined, refuseForeign, report, reportedLeader, requestJoin } from '../bootstrap/bootstrap.ts'
import { nodesToDial } from '../bootstrap/discovery.ts'
import { hold, knownNodes, onPeer, onPeerLost, REMOVED, raftIdOf } from '../bootstrap/formation.ts'
import { genesisConfiguration } from '../data/genesis.ts'
import { isVoter } from '../raft/membership.ts'
import type { Configuration, Message } from '../raft/messages.ts'
import {
  forgetLeader,
  offerSnapshot,
  reportSnapshot,
  reportUnreachable,
  setCounts,
  step,
  takeId,
} from '../raft/raft.ts'
import type { Newest } from '../snapshot/exchange.ts'
import { FEATURE_LEVEL } from '../store/store.ts'
import { isRaftMessage, type PeerFrame } from '../transport/frames.ts'
import { sendFrame, wantPeers } from '../transport/peers.ts'
import { adminStatus, onAdminFrame } from './admin.ts'
import { applyCommitted } from './applying.ts'
import { beginLoading, retryLookup } from './bulk-load-apply.ts'
import { onHeld, onHolds, onLoaded } from './bulk-load-coordinator.ts'
import { noteFacts, noteSample, sampleOf, voterClocks } from './clock-samples.ts'
import { pump } from './hand-over.ts'
import { shardTime } from './keep-time.ts'
import { createLeaves } from './leaves.ts'
import { snapshotCurrent } from './log-answers.ts'
import { startSnapshot } from './maintenance.ts'
import {
  FAST_CAMPAIGN_TICKS,
  hasBegun,
  idOf,
  isReady,
  type Member,
  nameOf,
  nodeOf,
  nodesOf,
  publishFacts,
  SPOKEN_MAX,
  viewOf,
} from './member-state.ts'
import { onFounder, onJoin } from './membership.ts'
import { onApplied, onReadDropped, onReadState } from './reads.ts'
import type { Link } from './replica-state.ts'
import {
  forgetIncoming,
  forgetOutgoing,
  isWhole,
  keptFor,
  makeCurrent,
  offerTo,
  onChunkData,
  onChunkMissing,
  onChunkRequest,
  onOffer,
  onOfferReply,
  type Received,
  refuseReceived,
} from './transfer.ts'

/** Most bytes of entries that a follower accepts while it cannot apply them. */
const HELD_BYTES_MAX = 64 << 20
/** Hand-overs that wait for the disk; a member whose disk works has a few. */
const HAND_OVERS_MAX = 4_096

/** Reports the position of this node to the members once a second. Nodes that look for the shard find it this way. */
export function reportToPeers(member: Member): void {
  const { formation, peers, replica, node } = member
  const { raft } = replica
  hold(formation, formedState(member))
  dial(member)
  for (const name of new Set([...nodesOf(raft.configuration), ...knownNodes(formation)])) {
    if (name !== node) reportTo(member, name)
  }
  const isNamed = member.initialVoters.includes(node)
  if (member.cluster.isFounder !== false || !isNamed || member.wasVoter || member.isRemoved) return
  const leader = nodeOf(member, raft.leader) ?? reportedLeader(formation, member.env.clock.monotonicMs())
  if (leader !== undefined) requestJoin(peers, formation, leader)
}

/**
 * Always reports the current state. A wiped founder may found the shard again while all others report that nothing has
 * happened in it. An outdated report would let it vote a second time (docs/design/consensus.md#formation).
 */
export function reportTo(member: Member, peer: string): void {
  hold(member.formation, formedState(member))
  report(member.peers, member.formation, peer)
  // A peer of an older version drops a frame of an unknown kind.
  const { memoryBudget, replica } = member
  const shardTimeMs = isReady(member) ? shardTime(replica) : 0
  sendFrame(member.peers, peer, { type: 'facts', featureLevel: FEATURE_LEVEL, memoryBudget, shardTimeMs })
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

export function linkOf(member: Member): Link {
  const { peers, replica } = member
  const { raft } = replica
  return {
    send(message) {
      const to = nodeOf(member, message.to)
      if (to === undefined || to === member.node) return
      const isBeat = message.type === 'heartbeat' || message.type === 'heartbeatReply'
      const isSent = sendFrame(peers, to, isBeat ? { ...message, sample: sampleOf(member) } : message)
      // An append window that the transport did not accept becomes a probe.
      if (!isSent && message.type === 'append' && replica.raft.role === 'leader')
        reportUnreachable(replica.raft, message.to)
    },
    onReadState: (context, index) => onReadState(member.reads, context, index),
    onReadDropped: (context, reason) => onReadDropped(member.reads, context, reason),
    onOffer(id) {
      const node = nodeOf(member, id)
      // Without a snapshot that reaches the first entry of the log, one is started. The next attempt finds it.
      if (replica.snapshotIndexLast + 1 < replica.raft.firstIndex || replica.snapshotIndexLast === 0)
        startSnapshot(replica, 'requested')
      if (node === undefined) reportSnapshot(replica.raft, id, false)
      else offerTo(member.sender, id, node)
    },
    onInstall() {
      member.isSwitching = true
      publishFacts(member)
      install(member)
    },
    keptIndex: () => keptFor(member.sender),
    onConfiguration: (_index, configuration) => adopt(member, configuration),
    onApplied() {
      // From its first entry on, a shard differs from another one that began in the same way
      // (docs/design/consensus.md#formation).
      const genesis = member.shownGenesis()
      if (genesis.some((byte, at) => byte !== peers.common.genesis[at])) peers.common.genesis = genesis
      onApplied(member.reads)
      publishFacts(member)
      // Clients also find the leader over HTTP: they must not wait for the next status.
      if (member.readyTerm === raft.term || !isReady(member)) return
      member.readyTerm = raft.term
      member.onRole()
    },
    onRole: () => onRole(member),
    hasBegun: () => hasBegun(member),
    voterClocks: (monotonicMs) => voterClocks(member, monotonicMs),
    onLoadEntry: () => beginLoading(member.loader),
    onLoaded({ digest }) {
      onLoaded(member.loads, digest, member.loader.before)
      // Spares a restart from loading it again.
      startSnapshot(replica, 'requested')
    },
  }
}

/** Makes the snapshot current that the core waits for, as soon as it is complete and there is room for it. */
export function install(member: Member): void {
  const { replica, receiver } = member
  if (member.isStopped || !replica.installing || !isWhole(receiver)) return
  makeCurrent(receiver, (path) => {
    const fault = member.prepareSwitch(path)
    if (fault) return member.onFatal(fault)
    snapshotCurrent(replica)
  })
}

/** A seed names no members: its members are those that founded the shard. */
export function sendOffer(member: Member, peer: number, newest: Newest, manifest: Uint8Array): boolean {
  const { raft } = member.replica
  if (raft.role !== 'leader' || newest.index > raft.applied) return false
  const configuration = newest.membership ?? genesisConfiguration(member.cluster.voters)
  const { index, term: snapshotTerm } = newest
  const isTaken = offerSnapshot(raft, peer, { index, snapshotTerm, configuration, manifest })
  pump(member.replica)
  return isTaken
}

/** An offered snapshot is complete. The core decides whether it is still wanted. */
export function onReceived(member: Member, { index, packages, purpose }: Received): void {
  const { offered, replica, receiver } = member
  const { raft } = replica
  // Chunks of the snapshot that the core waits for were lost and are complete again.
  if (purpose === 'install' && replica.installing?.index === index) return install(member)
  if (purpose === 'install' && (!offered || offered.index !== index || replica.installing)) return
  if (!member.hasMemoryFor(packages)) {
    return refuseReceived(receiver, 'no-memory', `${packages} packages exceed the memory of this node`)
  }
  if (purpose === 'load') {
    return makeCurrent(receiver, (path) => {
      onHeld(member.loads, path)
      retryLookup(member.loader)
    })
  }
  assert(offered !== undefined, 'an installed snapshot was offered')
  // The term may have changed during the transfer; the present leader has the same history. Without a leader it waits
  // for the next offer, which finds all chunks here.
  if (raft.leader === 0 || raft.role === 'leader') return
  step(raft, { ...offered, from: raft.leader, term: raft.term })
  if (raft.snapshot === undefined) forgetIncoming(receiver)
  pump(replica)
  applyCommitted(replica)
}

function onRole(member: Member): void {
  const { replica, env } = member
  const { raft } = replica
  if (raft.role === 'leader') {
    member.elections.won++
    member.leaves = createLeaves(env.clock.monotonicMs())
    env.log.info({ term: raft.term }, 'this node leads the shard')
  } else if (raft.leader !== 0) {
    forgetOutgoing(member.sender)
    member.campaignIn = 0
    env.log.info({ term: raft.term, leader: nameOf(raft.configuration, raft.leader) }, 'follows a leader')
  } else env.log.info({ term: raft.term, role: raft.role }, 'no leader')
  publishFacts(member)
  member.onRole()
}

/** A member with a leader needs no other nodes. Without one, it dials every node it knows. */
function dial({ node, replica, peers, formation, seeds, dialled }: Member): void {
  const { configuration, id, leader } = replica.raft
  const isSettled = leader !== 0 && configuration.members.some((each) => each.id === id)
  const members = [...nodesOf(configuration), ...dialled]
  wantPeers(peers, nodesToDial(node, { members, isSettled, seeds, learned: knownNodes(formation) }))
}

/** Adopts the membership of an applied configuration. */
export function adopt(member: Member, configuration: Configuration): void {
  const { raft } = member.replica
  // Unbound members are founders: no other node ever uses such an id (formation.ts).
  for (const { id, incarnation } of configuration.members) {
    if (incarnation === '') setCounts(raft, id, true)
  }
  const isIn = configuration.members.some(({ id }) => id === raft.id)
  // A node that is catching up applies configurations from before it was added.
  const wasAdded = raft.configurationIndex > raft.id - JOINED_BASE
  const isRemoved = !isIn && (raft.id <= JOINED_BASE || wasAdded)
  noteRemoval(member, isRemoved)
  if (member.cluster.isFounder === false && !member.wasVoter && isVoter(configuration, raft.id)) {
    // From now on operators decide its role, even if they make it a learner.
    member.wasVoter = true
    member.onVoter()
  }
  dial(member)
}

const JOINED_BASE = 1_000

function noteRemoval(member: Member, isRemoved: boolean): void {
  const { env, node } = member
  if (isRemoved && !member.isRemoved) {
    env.log.error({ node }, 'this node is no longer a member of its shard: it was removed or replaced')
  }
  member.isRemoved = isRemoved
  publishFacts(member)
}

/**
 * The leader tells a node that reports but does not answer what it is in this shard. No peer sends a removed member the
 * entry that removed it, and one that was admitted again may listen under its earlier id.
 */
function tellPlace(member: Member, node: string, report: Omit<FormationFrame, 'type'>): void {
  const { peers, replica, cluster } = member
  if (report.state !== 'formed' || report.clusterId !== cluster.clusterId) return
  const { configuration } = replica.raft
  const id = raftIdOf(configuration, { ...report, node })
  const isSilent = viewOf(member).peers.some((peer) => peer.id === id && !peer.isActive)
  if (id === 0) sendFrame(peers, node, { type: 'refused', reason: REMOVED, detail: '' })
  else if (isSilent) sendFrame(peers, node, { type: 'joined', member: id, configuration })
}

type FormationFrame = Extract<PeerFrame, { type: 'formation' }>

/**
 * Under the id of an earlier admission this node would receive nothing (docs/design/consensus.md#joining). A lower id is
 * of a reply that arrives late.
 */
function onJoined(member: Member, joined: Joined): void {
  const { raft } = member.replica
  const { member: id } = joined
  if (id <= raft.id || !isAddressee(member.formation, joined)) return
  member.env.log.warn({ before: raft.id, member: id }, 'this node was removed and admitted again')
  takeId(raft, id)
  member.peers.raftId = id
  member.offered = undefined
  noteRemoval(member, false)
}

export function onFrame(member: Member, peer: string, frame: PeerFrame): void {
  const { replica, env } = member
  const { raft } = replica
  if (isRaftMessage(frame)) onMessage(member, peer, frame)
  else {
    switch (frame.type) {
      case 'formation': {
        const { type: _type, ...received } = frame
        refuseForeign(member.peers, member.formation, peer, received)
        if (onPeer(member.formation, peer, received, env.clock.monotonicMs())) reportTo(member, peer)
        if (received.isFounder && received.clusterId === member.cluster.clusterId)
          onFounder(member.membership, peer, received.incarnation)
        if (isReady(member)) tellPlace(member, peer, received)
        break
      }
      case 'join': {
        const answer = onJoin(member.membership, { ...frame, isMember: member.running.has(peer) })
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
        else env.log.warn({ peer, reason: frame.reason, detail: frame.detail }, 'refused by a peer')
        break
      case 'joined':
        onJoined(member, frame)
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
      case 'facts':
        member.running.add(peer)
        noteFacts(member, peer, frame)
        break
      default:
        return unreachable(frame)
    }
  }
  // The state of the core may have changed. Code that drives `raft` sees that in its hand-overs.
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
  // A heartbeat commits no more than its receiver has acknowledged (docs/design/consensus.md#invariants). A member with
  // an old copy of its folder has lost that state, including its votes. It must not continue under the same identity.
  const hasForgotten = message.type === 'heartbeat' && message.term >= raft.term && message.commit > raft.lastIndex
  if (hasForgotten && !raft.snapshot && !raft.isMute && member.onOldData) {
    member.isStopped = true
    member.peers.handler = undefined
    publishFacts(member)
    return member.onOldData(raft.lastIndex, message.commit)
  }
  // Nothing this node could promise would leave before its disk answers. Leaders send everything again.
  if (raft.role !== 'leader' && replica.handOvers.length >= HAND_OVERS_MAX) return
  // The leader sends it again. Entries behind a bulk load are bounded in memory.
  if (message.type === 'append' && replica.loading && raft.unappliedBytes >= HELD_BYTES_MAX) return
  if (message.type !== 'snapshot') return step(raft, message)
  if (message.term < raft.term || message.index <= raft.commit) return step(raft, message)
  // Followed like any message of a leader, even before its data are here.
  if (message.term > raft.term) step(raft, { ...message, type: 'heartbeat', commit: 0, readRound: 0 })
  if (replica.installing) return
  member.offered = message
  const { index, snapshotTerm: term, manifest } = message
  onOffer(member.receiver, { node: peer, index, term, manifest })
}

/** A new raft id sent a frame: replies need its node before the configuration here contains it. */
function remember({ spoken }: Member, id: number, peer: string): void {
  if (spoken.size >= SPOKEN_MAX && !spoken.has(id)) spoken.delete(spoken.keys().next().value as number)
  spoken.set(id, peer)
}

export function onPeerGone(member: Member, peer: string, isDead: boolean): void {
  onPeerLost(member.formation, peer)
  const { raft } = member.replica
  if (!isDead || raft.role !== 'follower' || raft.leader === 0 || nodeOf(member, raft.leader) !== peer) return
  // The leader's process is gone, so no node hears it any more (docs/design/consensus.md#fast-failover).
  const others = raft.configuration.voters.filter((id) => id !== raft.leader)
  forgetLeader(raft)
  member.deathTerm = raft.term
  member.stands = 0
  member.campaignIn = others.includes(raft.id) ? 1 + others.indexOf(raft.id) * FAST_CAMPAIGN_TICKS : 0
  pump(member.replica)
}

/** Members not known to have applied an index. */
export function notPast({ replica: { raft }, samples }: Member, index: number): string[] {
  return raft.configuration.members
    .filter(({ id }) => (id === raft.id ? raft.applied : (samples.get(id)?.applied ?? 0)) < index)
    .map(({ node }) => node)
}
