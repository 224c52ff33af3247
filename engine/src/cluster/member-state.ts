/** State of a shard member and its parts. */

import type { VacancyError } from '@vacancy/shared'
import type { Formation } from '../bootstrap/formation.ts'
import type { Cluster } from '../data/data-directory.ts'
import type { Env } from '../env.ts'
import type { Configuration, Sample, SnapshotOffer } from '../raft/messages.ts'
import { status } from '../raft/raft.ts'
import type { Exchange } from '../snapshot/exchange.ts'
import type { ClusterStatus, TransportCounts } from '../status.ts'
import type { FactsFrame } from '../transport/frames.ts'
import type { Peers } from '../transport/peers.ts'
import type { Loader } from './bulk-load-apply.ts'
import type { Loads } from './bulk-load-coordinator.ts'
import type { Leaves } from './leaves.ts'
import type { Membership, MembershipView } from './membership.ts'
import type { Reads } from './reads.ts'
import type { Replica } from './replica-state.ts'
import { type Cells, publishCells, ROLE, type RoleCode } from './shared-status.ts'
import { loadBytesMissing, type Receiver, type Sender } from './transfer.ts'

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
  /** Size of the request-key table in bytes: a setting that the first leader logs. */
  readonly sessionBytesMax: number
  /** Bytes that this node has for data; 0 for no limit. */
  readonly memoryBudget: number
}

export type MemberParts = {
  readonly env: Env
  readonly replica: Replica
  readonly peers: Peers
  readonly formation: Formation
  /** Disk operations for snapshots between nodes. */
  readonly exchange: Exchange
  /** Whether this many packages fit the memory of this node. */
  readonly hasMemoryFor: (packages: number) => boolean
  /**
   * Performs every step of the switch to this folder's snapshot that can fail, before the log restarts. @returns why it
   * failed
   */
  readonly prepareSwitch: (path: string) => VacancyError | undefined
  /** Memory operations of a bulk load; absent where loads are not supported. */
  readonly bulkData?: {
    /** Why the data of the held snapshot in this folder cannot be loaded; '' if they can. */
    check(path: string): string
    /** Replaces the data of the store with them. A failure after this ends the node. */
    replace(path: string, digest: string, done: () => void): void
  }
  /** The snapshot cannot be made current: this node must end (docs/design/consensus.md#promises). */
  readonly onFatal: (error: VacancyError) => void
  /** The data here are older than an index that this member acknowledged. Absent: the core's assertion ends the node. */
  readonly onOldData?: ((lastIndex: number, acknowledged: number) => void) | undefined
  /** Status shared with the serving threads; absent where there are none. */
  readonly cells: Cells | undefined
  /** 16 bytes; zeros before the first entry of the shard is applied (docs/design/consensus.md#formation). */
  readonly genesis: () => Uint8Array
  /** What frames carry of it. */
  readonly shownGenesis: () => Uint8Array
  readonly transportCounts: () => TransportCounts
  /** Host of a node according to the resolver; '' before the first lookup. */
  readonly hostOf: (node: string) => string
  readonly onRole: () => void
  /** This node joined and is a voter for the first time. The data directory remembers that. */
  readonly onVoter: () => void
}

type AdminWait = { readonly onAnswer: (answer: AdminAnswer) => void; readonly deadlineMs: number }

export type AdminAnswer = { readonly status: 202 | 404 | 409 | 503; readonly text: string }

type Facts = Pick<FactsFrame, 'featureLevel' | 'memoryBudget'>

type ReceivedSample = Sample & { readonly receivedMs: number }

export type Member = MemberParts &
  MemberOptions & {
    readonly membership: Membership
    readonly reads: Reads
    /** Nodes by raft id that sent frames before the configuration of this node contains them. */
    readonly spoken: Map<number, string>
    readonly samples: Map<number, ReceivedSample>
    /** Program version and memory that members reported; dropped when the connection is lost. */
    readonly facts: Map<number, Facts>
    /** Connected nodes that run as members, of this configuration or of an earlier one: only members report facts. */
    readonly running: Set<string>
    /** Earliest time to propose feature level and budget again. */
    nextRulesMs: number
    readonly admin: Map<number, AdminWait>
    /** Begins anew with each leadership. */
    leaves: Leaves
    readonly receiver: Receiver
    readonly sender: Sender
    readonly loads: Loads
    readonly loader: Loader
    /** Message of the snapshot that is being received: stepped once the snapshot is complete. */
    offered: SnapshotOffer | undefined
    nextAdmin: number
    lastTickMs: number
    /** When timer or beat last ran. */
    lookedMs: number
    /** How many ticks its timer sleeps before the one that it wakes for. */
    ticksAsleep: number
    cancelTimer: () => void
    nextReportMs: number
    /**
     * Ticks until this node campaigns because the leader's process is gone; 0 for none
     * (docs/design/consensus.md#fast-failover).
     */
    campaignIn: number
    /** Term of that leader, and the number of campaigns since. */
    deathTerm: number
    stands: number
    /** Term in which this leader proposed the initial entries of a new shard. */
    begunTerm: number
    /** Last term in which this node became ready to lead. */
    readyTerm: number
    stalls: number
    /** This node joined and has been a voter since. */
    wasVoter: boolean
    /** This node was a member, and an applied entry removed it. */
    isRemoved: boolean
    isStopped: boolean
    /** The node does not serve while its state is being replaced. */
    isSwitching: boolean
    elections: { won: number; lost: number; refused: number }
    /** How long syncs have been slow, and the earliest time of the next handover for it. */
    lastHandoverMs: number
    /** Extra names to dial, from POST /peers. */
    dialled: readonly string[]
  }

/**
 * Ticks between the campaigns of successive voters: two at once would split the vote
 * (docs/design/consensus.md#fast-failover).
 */
export const FAST_CAMPAIGN_TICKS = 4

/**
 * A leader knows what is committed only after applying an entry of its own term
 * (docs/design/consensus.md#when-a-configuration-takes-effect). The leader of a new shard also waits for the voters'
 * clocks, because each write carries a time.
 */
export function isReady({ replica: { raft, clock } }: Member): boolean {
  return raft.role === 'leader' && raft.termStart > 0 && raft.applied >= raft.termStart && clock.timeMs > 0
}

/** Whether the random genesis is applied, or proposed by this leader. */
export function hasBegun(member: Member): boolean {
  const { term } = member.replica.raft
  if (member.begunTerm !== term && member.genesis().some((byte) => byte !== 0)) member.begunTerm = term
  return member.begunTerm === term
}

/** The core counts a peer as active for up to two quorum checks. A peer known to be silent is inactive here. */
export function viewOf(member: Member): MembershipView {
  const { raft } = member.replica
  const view = status(raft)
  const peers = view.peers.map((peer) => ({
    ...peer,
    isActive: peer.isActive && silentMs(member, peer.id) <= silenceMax(member),
  }))
  return { id: raft.id, ...view, peers }
}

/** Time since its last sample; 0 if it has sent none. */
function silentMs({ samples, env }: Member, id: number): number {
  const sample = samples.get(id)
  return sample ? env.clock.monotonicMs() - sample.receivedMs : 0
}

const silenceMax = ({ electionTicks, tickMs }: Member): number => electionTicks * tickMs

export const SPOKEN_MAX = 64

/** The bulk load that keeps this node from serving. */
export function awaitedLoadOf({ replica: { loading }, receiver }: Member): ClusterStatus['awaitedLoad'] {
  if (!loading || loading.phase === 'looking' || loading.phase === 'keeping') return undefined
  return { digest: loading.digest, bytesMissing: loadBytesMissing(receiver) }
}

export function votersOf({ members, voters }: Configuration): string[] {
  return members.filter(({ id }) => voters.includes(id)).map(({ node }) => node)
}

export function nodesOf({ members }: Configuration): string[] {
  return members.map(({ node }) => node)
}

/** '' for id 0 and for unknown ids. */
export function nameOf({ members }: Configuration, id: number): string {
  return members.find((each) => each.id === id)?.node ?? ''
}

export function nodeOf({ replica, spoken }: Member, id: number): string | undefined {
  return replica.raft.configuration.members.find((each) => each.id === id)?.node ?? spoken.get(id)
}

export function idOf({ replica }: Member, node: string): number {
  return replica.raft.configuration.members.find((each) => each.node === node)?.id ?? 0
}

function roleCode(member: Member): RoleCode {
  const { raft } = member.replica
  if (member.isSwitching || member.isRemoved || member.isStopped) return ROLE.unavailable
  if (awaitedLoadOf(member)) return ROLE.unavailable
  if (raft.role === 'leader') return isReady(member) ? ROLE.leader : ROLE.none
  if (raft.configuration.learners.includes(raft.id)) return ROLE.learner
  return raft.role === 'follower' ? ROLE.follower : ROLE.none
}

/** Publishes to the serving threads, after every batch, change of role and tick. */
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
