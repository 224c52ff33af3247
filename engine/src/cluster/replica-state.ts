/** State of a replica and its parts. The functions on it are in the files beside this one. */

import type { Env } from '../env.ts'
import type { EntryBatch } from '../raft/entry.ts'
import type { Configuration, Message, SnapshotOffer } from '../raft/messages.ts'
import type { Dropped, Raft } from '../raft/raft.ts'
import type { BudgetUse, SnapshotInfo } from '../status.ts'
import type { Applied, DigestMark } from '../store/apply-context.ts'
import { createCommandWriter } from '../store/command.ts'
import type { OrderCommand } from '../store/row-order.ts'
import { ANSWER_BYTES, UNANSWERED_MS } from '../threads/writes.ts'
import type { LogAsk } from '../wal/read.ts'
import type { FromWal, ToWal } from '../wal/wal-thread.ts'
import type { DigestBook } from './digests.ts'
import type { TimeOfMachine, TimeOfReplica } from './keep-time.ts'
import { createShardClock } from './shard-time.ts'
import type { StaysOfMachine } from './stay-answers.ts'

/** One hand-over to the log at most; larger proposals are cut. */
export const BATCH_BYTES_MAX = 512 * 1024

export const RETRY_FULL_MS = 5_000

export const SNAPSHOT_LOOK_MS = 5

export type StateMachine = {
  apply(index: number, bytes: Uint8Array, start: number, end: number): Applied
  /** Ends a batch and makes it visible to readers. */
  publish(index: number): void
  /** Digests noted since the last one that a check in the log named, oldest first. */
  readonly digestMarks: () => readonly DigestMark[]
  /** The newest digest at an index that all replicas note, kept after a check named it. */
  readonly newestMark: () => DigestMark | undefined
  readonly digest: () => { readonly lo: number; readonly hi: number }
  readonly lastMaintenanceDay: () => number
  /** Shard time of the last applied command, ms. */
  readonly latestTimeMs: () => number
  readonly time: TimeOfMachine
  /** Packages that maintenance up to a day would remove. */
  readonly packagesBefore: (day: number) => number
  /** Whether a table has many rows out of order. */
  readonly isUnordered: () => boolean
  /** Commands that restore row order, in steps of a moment each; undefined for a step that only sorts. */
  readonly orderTables: () => Iterator<OrderCommand | undefined, void>
  /** Frees some memory after maintenance. @returns whether more is left */
  readonly sweep: () => boolean
  /** Whether deleted segments have memory for `sweep` to free. */
  readonly hasDeleted: () => boolean
  /** Prepares for shorter deletes of whole segments. Changes no replicated state. */
  readonly prepareDeletes: () => void
  /** Rules that apply follows (store.ts). */
  readonly featureLevel: () => number
  /** What is added to an index of the log for clients (store/client-index.ts). */
  readonly indexBase: () => number
  readonly budgetUse: () => BudgetUse
  readonly stays: StaysOfMachine
  /** Whether the next command must wait until the running snapshot is written. */
  readonly lacksSparePages: () => boolean
  /** Updates wait for the snapshot, so it is written as fast as the disk allows. */
  readonly hurrySnapshot: () => void
}

type Snapshots = {
  /** Starts an epoch at the applied index and writes it; `snapshotWritten` or `snapshotFailed` follows. */
  start(index: number, term: number, origin: SnapshotInfo['origin']): void
  /** The mark is durable: older snapshots may be deleted. */
  retain(): void
}

/**
 * A bulk load that is committed but not applied. Before its entry is applied, the data of another snapshot replace
 * those of the store, after the entry before it and before any entry behind it (bulk-load-apply.ts).
 */
export type Loading = {
  /** Index of its entry; everything before it is applied. */
  readonly index: number
  /** Content digest of the snapshot. */
  readonly digest: string
  /**
   * `awaited`: the snapshot is missing or unusable. `keeping`: the previous state is being written. `replacing`: the
   * memory holds no usable state. `placed`: the data are in place, and the entry is applied next.
   */
  phase: 'looking' | 'awaited' | 'keeping' | 'replacing' | 'placed'
}

/** The replica's interface to the other members. */
export type Link = {
  send(message: Message): void
  onReadState(context: number, index: number): void
  onReadDropped(context: number, reason: Dropped): void
  /** The peer needs a snapshot: the entries it lacks are no longer in memory. */
  onOffer(peer: number): void
  /** All chunks of a snapshot to make current are here; `snapshotCurrent` or `snapshotNotCurrent` follows. */
  onInstall(offer: SnapshotOffer): void
  /** Log after this index is kept for peers that receive a snapshot. */
  keptIndex(): number
  onConfiguration(index: number, configuration: Configuration): void
  /** Entries were applied and published. */
  onApplied(): void
  /** Role, term or leader changed. */
  onRole(): void
  /** Whether this life of the data has begun: its random genesis is in the log, or proposed by this leader. */
  hasBegun(): boolean
  /** Wall clocks of the other voters that reported recently, projected to now. */
  voterClocks(monotonicMs: number): readonly number[]
  /** Apply reached a bulk load; `dataPlaced` follows. */
  onLoadEntry(loading: Loading): void
  /** The bulk load is applied. */
  onLoaded(loading: Loading): void
}

/** Destination of replies: one channel per serving thread. */
export type AnswerSink = (answers: ArrayBuffer) => void

export type ReplicaParts = {
  readonly env: Env
  readonly raft: Raft
  readonly machine: StateMachine
  readonly snapshots: Snapshots
  readonly log: (message: ToWal) => void
  /**
   * Reads entries back from the log on disk; calls back later, once. Absent: entries no longer in memory count as
   * compacted.
   */
  readonly readLog?: (request: LogAsk, done: (batches: readonly EntryBatch[] | 'compacted') => void) => void
  /** Absent: a standalone node. Set once the member around the replica exists. */
  link?: Link | undefined
  /** Replaces the present state with that of an installed snapshot, in one step. */
  switchState?: ((offer: SnapshotOffer, done: () => void) => void) | undefined
  readonly onFatal: (failure: Extract<FromWal, { type: 'failed' }>['failure']) => void
  readonly onMaintained: (day: number, removedPackages: number) => void
  readonly onReserve: () => void
  readonly space: () => { readonly freeBytes: number; readonly totalBytes: number }
  readonly snapshotIntervalMs: number
  readonly snapshotTriggerCount: number
  /** Log that is kept behind the newest snapshot: KEPT_ENTRIES; fewer in a simulation. */
  readonly keptEntries?: number
  /** Index of the snapshot the node started from, and of the one before. */
  readonly snapshotIndex: number
  readonly tornTailBytes: number
  readonly acceptDay: number
  readonly lastTimeMs: number
}

export type Answers = { readonly sink: AnswerSink; buffer: ArrayBuffer; view: DataView; at: number }

/** A client waits for the outcome of an entry that was proposed while this node led. */
export type Orphan = {
  readonly term: number
  readonly sink: number
  readonly token: number
  readonly deadlineMs: number
}

/** A hand-over that the core waits for, oldest first (docs/design/consensus.md#hand-over). */
export type HandOver = { readonly token: number; isStored: boolean; readonly promises: readonly Message[] }

type PartsAndTime = ReplicaParts & TimeOfReplica

export type Replica = PartsAndTime & ReturnType<typeof createReplica>

export type MutableBuckets = { readonly bounds: readonly number[]; readonly counts: number[]; sum: number }

const SYNC_BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5] as const

const GROUP_BOUNDS = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384] as const

const SNAPSHOT_BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const

function buckets(bounds: readonly number[]): MutableBuckets {
  return { bounds, counts: new Array<number>(bounds.length + 1).fill(0), sum: 0 }
}

export function observe(target: MutableBuckets, seconds: number): void {
  const at = target.bounds.findIndex((bound) => seconds <= bound)
  const bucket = at < 0 ? target.bounds.length : at
  target.counts[bucket] = target.counts[bucket] + 1
  target.sum += seconds
}

export function createReplica(parts: ReplicaParts) {
  const { env } = parts
  return {
    ...parts,
    sinks: [] as Answers[],
    handOvers: [] as HandOver[],
    /** The commit index that waits for entries to peers; 0 for none. */
    owedCommit: 0,
    /** State of the core at the last check, to notice a change. */
    seen: { role: parts.raft.role, term: parts.raft.term, leader: parts.raft.leader },
    /**
     * By index of the entry; answered when the entry committed at the index is known
     * (docs/design/consensus.md#outcome-of-a-proposal).
     */
    orphans: new Map<number, Orphan[]>(),
    /** The snapshot that is being made current. */
    installing: undefined as SnapshotOffer | undefined,
    /** The bulk load that apply waits at. */
    loading: undefined as Loading | undefined,
    leaderChanges: 0,
    outcomes: { applied: 0, dropped: 0, unknown: 0 },
    /** Waiter of the entry at waitingFrom + n: sink number + 1 and token; 0 for none. */
    waitingSinks: [] as number[],
    waitingTokens: [] as number[],
    waitingFrom: parts.raft.lastIndex + 1,
    waitingHead: 0,
    own: createCommandWriter(),
    clock: createShardClock(parts.lastTimeMs, env.clock.monotonicMs()),
    hasLed: false,
    appliedTimeMs: parts.lastTimeMs,
    publishedDay: 0,
    timeSets: parts.machine.time.lastSet()?.count ?? 0,
    isDiskFull: false,
    isRetrying: false,
    /** Refusals received from the log. */
    refusals: 0,
    isStopping: false,
    isApplying: false,
    lastDigestIndex: 0,
    /** Chunks of snapshots that no longer verify. */
    corruptions: 0,
    digestChecks: 0,
    /**
     * Newest applied entry that may have changed the state, and when this leader last had all replicas note their
     * digests.
     */
    changedIndex: parts.raft.applied,
    lastMarkMs: env.clock.monotonicMs(),
    /** When this leader last had holds expire. */
    lastExpiryMs: env.clock.monotonicMs(),
    /** Digests that the other members reported. */
    digests: new Map() as DigestBook,
    repeats: 0,
    // Snapshots
    snapshotRunning: false,
    snapshotIndexLast: parts.snapshotIndex,
    snapshotIndexBefore: parts.snapshotIndex,
    snapshotOrigin: undefined as SnapshotInfo['origin'] | undefined,
    nextSnapshotMs: env.clock.monotonicMs() + parts.snapshotIntervalMs,
    snapshotEarliestMs: 0,
    snapshotFailures: 0,
    /** The last snapshot ran out of spare pages: updates wait from the start of the next one. */
    pausesForSnapshot: false,
    // Figures
    groups: 0,
    walBytes: 0,
    walFiles: 0,
    fsync: buckets(SYNC_BOUNDS),
    groupEntries: buckets(GROUP_BOUNDS),
    /** How long every sync has been slow. */
    slowSyncMs: 0,
    /** How long the log has not answered the oldest hand-over, and its token; how long apply has waited for a snapshot. */
    unansweredMs: 0,
    unansweredToken: 0,
    pausedMs: 0,
    commitTime: buckets(SYNC_BOUNDS),
    snapshotTime: buckets(SNAPSHOT_BOUNDS),
    /** When the proposals that are not applied yet were accepted. */
    proposedAt: [] as { readonly lastIndex: number; readonly atMs: number }[],
    removedPackages: 0,
    lastMaintenanceMs: 0,
    maintenanceDay: 0,
    /** The day up to which nights were last dropped, as applied here. */
    maintainedDay: parts.machine.lastMaintenanceDay(),
    /** The memory of deleted segments is being freed. */
    isFreeing: false,
    /** After a maintenance entry: rows are being sorted and memory is being freed. */
    isTidying: false,
    maintenanceWillRemove: 0,
    stallMs: 0,
    lastTickMs: env.clock.monotonicMs(),
    /** Called when a pending step has ended; set while the replica stops. */
    onSettled: undefined as (() => void) | undefined,
  }
}

/** @returns number of the sink, for `proposeBatch` */
export function addSink(replica: Replica, sink: AnswerSink): number {
  const buffer = new ArrayBuffer(ANSWER_BYTES * 64)
  replica.sinks.push({ sink, buffer, view: new DataView(buffer), at: 0 })
  return replica.sinks.length - 1
}

/** A snapshot that holds up apply for this long: a large one may for half of it on a slow disk. */
const PAUSED_MS = 30_000

/** The disk neither works nor fails: writes do not get on, though none was refused. */
export function isStuck({ unansweredMs, pausedMs }: Replica): boolean {
  return unansweredMs >= UNANSWERED_MS || pausedMs >= PAUSED_MS
}

/** The memory holds no state that belongs to an index. */
export function isBetweenStates({ installing, loading }: Replica): boolean {
  return installing !== undefined || loading?.phase === 'replacing' || loading?.phase === 'placed'
}
