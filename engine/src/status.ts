/** What the replica reports of itself: for metrics, /status and the decisions of the main thread. */

/** Counts of a histogram with upper bounds in seconds, one more count for what is above. */
export type Buckets = { readonly bounds: readonly number[]; readonly counts: readonly number[]; readonly sum: number }

/** What the replica thread reports a few times a second. */
export type ReplicaStatus = {
  readonly role: 'leader' | 'follower'
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
