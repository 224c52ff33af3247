/**
 * What the parts of a node report of themselves: for metrics, HTTP and the decisions of the main thread. Plain data of
 * bounded size: it crosses threads a few times a second.
 */

/** Counts of a histogram with upper bounds in seconds, one more count for what is above. */
export type Buckets = { readonly bounds: readonly number[]; readonly counts: readonly number[]; readonly sum: number }

export type MemberRole = 'leader' | 'follower' | 'learner' | 'candidate'

/** What the replica thread reports a few times a second. */
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
  readonly lastDigestCheckIndex: number
  readonly snapshotRunning: boolean
  readonly snapshotFailures: number
  readonly snapshotDuration: Buckets
  readonly sparePages: number
  readonly maintenanceRunning: boolean
  readonly lastMaintenanceDay: number
  readonly lastMaintenanceMs: number
  readonly removedPackages: number
  readonly eventLoopStallMs: number
  readonly diskFreeBytes: number
  readonly diskFull: boolean
  /** Less is free than two files of the log, or a twentieth of the disk (consensus.md §19). */
  readonly diskLow: boolean
  /** Entries of each group that was written with one sync. */
  readonly groupEntries?: Buckets
  /** Places in log files and snapshots that did not verify, found at the start or while running. */
  readonly corruptions?: number
  /** Bytes that the log holds in memory: entries kept for followers, and buffers on their way to the disk. */
  readonly walMemoryBytes?: number
  /** Syncs take so long that a leader hands over (consensus.md §19). */
  readonly walSlow?: boolean
}

/**
 * What a clustered node knows of its shard, from its start on: `bootstrap` is all there is before it is a member.
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
  /** A leader that has applied an entry of its own term and heard a quorum within the last check-quorum interval. */
  readonly isLeading: boolean
  /** The configuration in force, by node id; empty before this node knows one. */
  readonly members: readonly MemberStatus[]
  readonly isJoint: boolean
  /** It was a member and is none any more. */
  readonly isRemoved: boolean
  /** Nodes that it looks for through the resolver, without its own. */
  readonly peers: readonly string[]
  /** How old an answer from here may be (consensus.md §14); undefined until it was measured once. */
  readonly stalenessMs: number | undefined
  /** Set while it waits for the first election, or to be taken in as a member. */
  readonly bootstrap: BootstrapStatus | undefined
  /** The snapshot that is coming in from another node. */
  readonly installing: InstallStatus | undefined
  /** A bulk load that this node cannot apply yet: it lacks chunks of its snapshot (consensus.md §11). */
  readonly awaitedLoad: { readonly digest: string; readonly bytesMissing: number } | undefined
  /** The running change, on the leader; what others know of it. */
  readonly operation: RunningOperation | undefined
  /** Newest first, `OPERATIONS_KEPT` at most. */
  readonly lastOperations: readonly FinishedOperation[]
  /** Operations that ended while this node led, by result. */
  readonly operationsEnded: { readonly [result: string]: number }
  /** Its clock is more than 60 s from the median of the voters it hears (C4). */
  readonly isClockSuspect: boolean
  readonly transport: TransportCounts
  /** Elections this node stood for, by how they ended: `won`, `lost`, `refused` in the pre-vote. */
  readonly elections: { readonly [result: string]: number }
  readonly leaderChanges: number
  /** Proposals of this node by outcome: `applied`, `dropped`, `unknown`. */
  readonly proposals: { readonly [outcome: string]: number }
  readonly tickStalls: number
  readonly transfers: SnapshotTransferCounts
}

/** Finished operations that a leader remembers. */
export const OPERATIONS_KEPT = 20

export type MemberStatus = {
  readonly id: string
  /** As far as this node knows: `candidate` is told of itself only. */
  readonly role: MemberRole
  readonly isVoter: boolean
  /**
   * `active`: heard within an election timeout. `installing`: it receives a snapshot. `unknown`: this node does not
   * lead and is not told.
   */
  readonly health: 'active' | 'installing' | 'inactive' | 'unknown'
  /** How the leader replicates to it; undefined for itself and on others. */
  readonly progress: 'probe' | 'replicate' | 'snapshot' | undefined
  readonly matchIndex: number | undefined
  readonly lagEntries: number | undefined
  /** Age of the oldest entry that it lacks. */
  readonly lagMs: number | undefined
  /** Where the resolver says it is; '' when unknown. */
  readonly host: string
  /** Of heartbeats, seconds. */
  readonly roundTrip: Buckets | undefined
}

export type BootstrapStatus = {
  /** `snapshot`: a majority with the same one is missing (G2, G5). `voters`: empty ones are missing (G4). `join`: it asks to be taken in. */
  readonly waitsFor: 'snapshot' | 'voters' | 'join'
  /** In one sentence: `snapshot 8f3a… is on 1 of 3 voters, 2 needed`. */
  readonly why: string
  readonly needed: number
  /** The initial voters, by node id. */
  readonly voters: readonly BootstrapVoter[]
}

export type BootstrapVoter = {
  readonly id: string
  /** `silent`: not heard yet. `refused`: its list, codec list or version differs; `detail` says which. */
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

export type OperationKind = 'promote' | 'demote' | 'remove' | 'transfer' | 'join' | 'replace' | 'load' | 'drop-load'

export type RunningOperation = {
  readonly kind: OperationKind
  /** Node it is about; for loads the content digest. */
  readonly node: string
  readonly startedMs: number
  /** What it waits for, in words: `waits until n4 is at most 1,000 entries behind: 52,340`. */
  readonly step: string
}

export type FinishedOperation = {
  readonly kind: OperationKind
  readonly node: string
  readonly result: 'done' | 'failed'
  /** Why it failed; of a load that is done, which snapshot holds the data before it; else ''. */
  readonly reason: string
  readonly atMs: number
}

export type TransportCounts = {
  readonly opened: number
  readonly accepted: number
  /** Peers that were turned away, by reason: `shard`, `codecs`, `version`, `cluster`, `certificate`, `identity`, … */
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

export type SnapshotTransferCounts = {
  readonly sending: number
  readonly receiving: number
  /** Transfers to other nodes that were completed. */
  readonly sent: number
  readonly received: number
  readonly failed: number
  /** Of the last one; undefined before. */
  readonly durationMs: number | undefined
  readonly loadMs: number | undefined
  /** Longest time that writes stood still when the last snapshot of this node began. */
  readonly writePauseMs: number | undefined
}

/** What a clustered node knows of the registry; cluster/registry.ts gives it. */
export type RegistryStatus = {
  readonly address: string
  readonly isReachable: boolean
  /** Why the last request failed; '' when it did not. */
  readonly fault: string
  /** Since the last heartbeat that was taken; undefined before the first. */
  readonly heartbeatAgeMs: number | undefined
  /** Why its codec list is not the node's; '' when it is. */
  readonly codecMismatch: string
  /** What it last took of this leader. */
  readonly published: { readonly segments: number; readonly conflicts: number } | undefined
  /** Why it did not take the last list; '' when it did. */
  readonly refusal: string
  /** Lists that were sent, by how it ended: `accepted`, `conflict`, `refused`, `failed`. */
  readonly pushes?: { readonly [result: string]: number }
}

/** Look-ups by what was asked for: `node`. */
export type ResolverStatus = {
  readonly address: string
  readonly durations: { readonly [kind: string]: Buckets }
  readonly errors: { readonly [kind: string]: number }
  /** Why the last look-up failed; '' when it did not. */
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
