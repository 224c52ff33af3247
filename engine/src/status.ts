/**
 * Reports of the parts of a node, for metrics, HTTP and decisions of the main thread. Plain data of bounded size,
 * because it crosses threads a few times a second.
 */

import type { MemberOperation } from '@vacancy/shared'

/** Replicated settings of stays (store/stay-settings.ts). */
export type StaySettings = {
  readonly stays_bytes: number
  readonly holds_max: number
  readonly holds_max_per_source: number
  readonly day_begins_minutes: number
}

/** A night on which rooms on hold are missing. */
export type OversoldNight = {
  readonly propertyId: string
  readonly roomType: string
  readonly date: string
  readonly held: number
  readonly owed: number
}

/** Figures of the ledger of this node. */
export type StaysStatus = {
  readonly stays: number
  readonly held: number
  readonly bytes: number
  readonly oversoldNights: number
  /** Some of them. */
  readonly oversold: readonly OversoldNight[]
  /** When the first hold ends, ms; 0 without holds. */
  readonly nextDeadlineMs: number
  /** Since the start of the process. */
  readonly expired: number
  readonly overflowedRooms: number
  /** Rooms a night of bookings without a record, given back by their lines. */
  readonly unrecordedRooms: number
  /** Stays that were forgotten before their time, because `stays_bytes` was reached. */
  readonly evicted: { readonly ended: number; readonly booked: number }
  /** Whether some were within the last day. */
  readonly isFull: boolean
  readonly refused: { readonly [code: string]: number }
  readonly settings: StaySettings
}

/** The logged memory budget (0 for none), the charge of the state, and its remaining growth. */
export type BudgetUse = { readonly budgetBytes: number; readonly chargedBytes: number; readonly leftBytes: number }

/** Counts of a histogram with upper bounds in seconds, and one more count above the last bound. */
export type Buckets = { readonly bounds: readonly number[]; readonly counts: readonly number[]; readonly sum: number }

type MemberRole = 'leader' | 'follower' | 'learner' | 'candidate'

/** Shard time and the clock of this node (cluster/shard-time.ts). */
export type ClockStatus = {
  /** 0 before a new shard has a time. */
  readonly timeMs: number
  /** Clock minus shard time. */
  readonly offsetMs: number
  /** `holding`: the clock differs and is not followed. `suspect`: shard time is ahead of trusted clocks. */
  readonly state: 'following' | 'holding' | 'suspect'
  /** The last time an operator set shard time. */
  readonly lastSet:
    | {
        readonly fromMs: number
        readonly toMs: number
        /** Days that need a new import, without `end`. */
        readonly importNights: { readonly from: number; readonly end: number } | undefined
        /** First of the days dropped at the far end. */
        readonly droppedFrom: number | undefined
      }
    | undefined
}

/** Status that the replica thread reports a few times a second. */
export type ReplicaStatus = {
  readonly role: MemberRole
  readonly term: number
  readonly firstIndex: number
  readonly lastIndex: number
  readonly commitIndex: number
  readonly appliedIndex: number
  readonly walBytes: number
  readonly walFiles: number
  readonly groups: number
  readonly fsync: Buckets
  readonly commit: Buckets
  readonly tornTailBytes: number
  readonly repeatsAnswered: number
  readonly digestChecks: number
  readonly digest: { readonly lo: number; readonly hi: number }
  /** Digest at the newest index at which all replicas note theirs; undefined until one was noted. */
  readonly newestMark: { readonly index: number; readonly lo: number; readonly hi: number } | undefined
  readonly snapshotRunning: boolean
  readonly snapshotFailures: number
  readonly snapshotDuration: Buckets
  readonly sparePages: number
  readonly clock: ClockStatus
  readonly maintenanceRunning: boolean
  readonly lastMaintenanceDay: number
  readonly lastMaintenanceMs: number
  readonly removedPackages: number
  readonly eventLoopStallMs: number
  readonly diskFreeBytes: number
  readonly diskFull: boolean
  /** Free space is below two log files, or below a twentieth of the disk (docs/design/storage.md#full-disk). */
  readonly diskLow: boolean
  /** Entries of each group that was written with one sync. */
  readonly groupEntries?: Buckets
  /** Chunks of snapshots that no longer verify, found while running. Damage of the log ends the node. */
  readonly corruptions?: number
  /** Bytes that the log holds in memory: entries kept for followers, and buffers on their way to the disk. */
  readonly walMemoryBytes?: number
  /** Replicated memory budget and its use (store/charge.ts). */
  readonly budget?: BudgetUse
  /** Held and booked stays (store/stays.ts). */
  readonly stays?: StaysStatus
  /** Syncs take so long that a leader hands over (docs/design/storage.md#full-disk). */
  readonly walSlow?: boolean
  /** A sync has not returned for seconds, or a snapshot holds up writes. */
  readonly isStuck?: boolean
}

/**
 * Status of the shard as a clustered node knows it, from its start on. Before it is a member only `bootstrap` is known.
 * Counts begin at 0 with the process.
 */
export type ClusterStatus = {
  readonly nodeId: string
  readonly zoneId: string
  /** 32 hexadecimal digits; '' before the shard has formed. */
  readonly clusterId: string
  readonly role: MemberRole
  readonly term: number
  /** '' while none is known. */
  readonly leader: string
  /**
   * A leader that has applied an entry of its own term and was confirmed by a quorum within the last check-quorum
   * interval.
   */
  readonly isLeading: boolean
  /** The configuration in force, by node id; empty before this node knows one. */
  readonly members: readonly MemberStatus[]
  readonly isJoint: boolean
  /** The node was a member and no longer is. */
  readonly isRemoved: boolean
  /** Nodes to find through the resolver, without the node itself. */
  readonly peers: readonly string[]
  /** Greatest age of the data in a reply (docs/design/consensus.md#reads); undefined until it was measured once. */
  readonly stalenessMs: number | undefined
  /** Set while it waits for the first election, or for admission as a member. */
  readonly bootstrap: BootstrapStatus | undefined
  /** The snapshot being received from another node. */
  readonly installing: InstallStatus | undefined
  /**
   * A bulk load that this node cannot apply yet: it lacks chunks of its snapshot
   * (docs/design/consensus.md#log-commands).
   */
  readonly awaitedLoad: { readonly digest: string; readonly bytesMissing: number } | undefined
  /** The running change, on the leader; other nodes may know a part of it. */
  readonly operation: RunningOperation | undefined
  /** Newest first, `OPERATIONS_KEPT` at most. */
  readonly lastOperations: readonly FinishedOperation[]
  /** Operations that ended while this node led, by result. */
  readonly operationsEnded: { readonly [result: string]: number }
  /** Its clock is more than 60 s from the median of the reporting voters (docs/design/consensus.md#shard-time). */
  readonly isClockSuspect: boolean
  readonly transport: TransportCounts
  /** Elections of this node as a candidate, by result: `won`, `lost`, `refused` in the pre-vote. */
  readonly elections: { readonly [result: string]: number }
  readonly leaderChanges: number
  /** Proposals of this node by outcome: `applied`, `dropped`, `unknown`. */
  readonly proposals: { readonly [outcome: string]: number }
  readonly tickStalls: number
  readonly transfers: SnapshotTransferCounts
}

/** Finished operations that a leader keeps. */
export const OPERATIONS_KEPT = 20

export type MemberStatus = {
  readonly id: string
  /** As known here: a node knows `candidate` only of itself. */
  readonly role: MemberRole
  readonly isVoter: boolean
  /**
   * `active`: reported within an election timeout. `installing`: it receives a snapshot. `unknown`: this node does not
   * lead, so it gets no reports.
   */
  readonly health: 'active' | 'installing' | 'inactive' | 'unknown'
  /** How the leader replicates to it; undefined for itself and on others. */
  readonly progress: 'probe' | 'replicate' | 'snapshot' | undefined
  readonly matchIndex: number | undefined
  readonly lagEntries: number | undefined
  /** Age of the oldest entry that it lacks. */
  readonly lagMs: number | undefined
  /** Host according to the resolver; '' when unknown. */
  readonly host: string
  /** Of heartbeats, seconds. */
  readonly roundTrip: Buckets | undefined
}

export type BootstrapStatus = {
  /**
   * `snapshot`: a majority with the same snapshot is missing. `voters`: empty voters are missing. `join`: it requests
   * to join (docs/design/consensus.md#formation).
   */
  readonly waitsFor: 'snapshot' | 'voters' | 'join'
  /** In one sentence: `snapshot 8f3a… is on 1 of 3 voters, 2 needed`. */
  readonly why: string
  readonly needed: number
  /** The initial voters, by node id. */
  readonly voters: readonly BootstrapVoter[]
}

export type BootstrapVoter = {
  readonly id: string
  /** `silent`: no report yet. `refused`: its list, codec list or version differs; `detail` names it. */
  readonly state: 'silent' | 'empty' | 'seeded' | 'formed' | 'refused'
  /** Content digest of its snapshot, hexadecimal; '' for none. */
  readonly snapshot: string
  readonly index: number
  readonly detail: string
}

export type InstallStatus = {
  readonly from: string
  readonly index: number
  readonly bytesDone: number
  readonly bytesTotal: number
}

export type RunningOperation = {
  readonly kind: MemberOperation
  /** The node it concerns; for loads the content digest. */
  readonly node: string
  readonly startedMs: number
  /** What it waits for, as text: `waits until n4 is at most 1,000 entries behind: 52,340`. */
  readonly step: string
}

export type FinishedOperation = {
  readonly kind: MemberOperation
  readonly node: string
  readonly result: 'done' | 'failed'
  /** Why it failed; for a finished load, the snapshot of the data before it; else ''. */
  readonly reason: string
  readonly atMs: number
}

export type TransportCounts = {
  readonly opened: number
  readonly accepted: number
  /** Refused peers by reason: `shard`, `codecs`, `version`, `cluster`, `certificate`, `identity`, … */
  readonly rejected: { readonly [reason: string]: number }
  readonly errors: number
  readonly dropped: number
  readonly messagesSent: number
  readonly messagesReceived: number
  readonly bytesSent: number
  readonly bytesReceived: number
  readonly sendErrors: number
  readonly receiveErrors: number
}

type SnapshotTransferCounts = {
  readonly sending: number
  readonly receiving: number
  /** Transfers to other nodes that were completed. */
  readonly sent: number
  readonly received: number
  readonly failed: number
  /** Of the last one; undefined before. */
  readonly durationMs: number | undefined
  readonly loadMs: number | undefined
  /** Longest pause of writes when the last snapshot of this node began. */
  readonly writePauseMs: number | undefined
}

/** The registry as a clustered node knows it; registry/link.ts provides it. */
export type RegistryStatus = {
  readonly address: string
  readonly isReachable: boolean
  /** Why the last request failed; '' when it did not. */
  readonly fault: string
  /** Since the last accepted heartbeat; undefined before the first. */
  readonly heartbeatAgeMs: number | undefined
  /** How its codec list differs from the node's; '' when it does not. */
  readonly codecMismatch: string
  /** The last list it accepted from this leader. */
  readonly published: { readonly segments: number; readonly conflicts: number } | undefined
  /** Why it refused the last list; '' when it did not. */
  readonly refusal: string
  /** Lists sent, by result: `accepted`, `conflict`, `refused`, `failed`. */
  readonly pushes?: { readonly [result: string]: number }
}

/** Lookups by kind: `node`. */
export type ResolverStatus = {
  readonly address: string
  readonly durations: { readonly [kind: string]: Buckets }
  readonly errors: { readonly [kind: string]: number }
  /** Why the last lookup failed; '' when it did not. */
  readonly error: string
}

export type SnapshotInfo = {
  readonly id: string
  readonly createdMs: number
  readonly shardId: string
  readonly lastIndex: number
  readonly lastTerm: number
  readonly properties: number
  readonly packages: number
  readonly segments: number
  readonly window: { readonly from: string; readonly to: string } | undefined
  readonly codecHash: string
  readonly bytes: number
  readonly origin: 'seed' | 'periodic' | 'requested' | 'maintenance' | 'shutdown' | 'recovery'
  readonly durationMs: number
}
