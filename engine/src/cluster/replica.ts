/**
 * Runs the core: proposals → log → apply → answers (style.md §6, consensus.md §13). A node by itself is a shard with
 * one voter and no link to others; what a member does beyond this is member.ts.
 *
 *   serving threads ── proposals ──► core ── entries ──► log thread ── stored ──► core ── committed ──► apply ──► answers
 *                                     └── messages ──► link ──► peers
 *
 * Everything it touches comes in: log, state machine, snapshots, peers, clock. The thread entry is replica-worker.ts; a
 * simulator runs the same in one thread.
 */

import { assert, dayOf, VacancyError } from '@vacancy/shared'
import type { Env } from '../env.ts'
import {
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  type EntryBatch,
  entryKind,
  entryLength,
  entryTerm,
  skipEntries,
  viewOf,
  writeEntryHeader,
} from '../raft/entry.ts'
import { readTail } from '../raft/log.ts'
import { decodeConfiguration } from '../raft/membership.ts'
import type { Configuration, Message, SnapshotOffer } from '../raft/messages.ts'
import { isHeard } from '../raft/progress.ts'
import {
  applied,
  applyConfiguration,
  compactedTo,
  type Dropped,
  handBack,
  hasReady,
  installed,
  nextCommitted,
  persisted,
  propose,
  provideEntries,
  type Raft,
  type Ready,
  refused,
  storeCommit,
  takeReady,
} from '../raft/raft.ts'
import { hex } from '../snapshot/format.ts'
import type { Buckets, ReplicaStatus, SnapshotInfo } from '../status.ts'
import type { Applied, DigestMark } from '../store/apply.ts'
import {
  beginCommand,
  COMMAND_HEADER_BYTES,
  type CommandKind,
  type CommandWriter,
  createCommandWriter,
  decodeBulkLoad,
  KIND,
  kindOfCommand,
  stampCommand,
  timeOfCommand,
} from '../store/command.ts'
import { ANSWER_BYTES, answerOfLogged, REFUSED } from '../threads/writes.ts'
import type { LogAsk } from '../wal/read.ts'
import { LOG_FILE_BYTES } from '../wal/wal.ts'
import type { FromWal, ToWal } from '../wal/wal-thread.ts'
import { type DigestBook, digestText, judgeDigest, noteDigest } from './digests.ts'

/** Bounds of one slice of work, so that nothing waits long (consensus.md §13). */
const APPLY_COMMANDS_MAX = 1_024
const APPLY_MS_MAX = 2
/** One hand-over to the log at most; larger proposals are cut. */
const BATCH_BYTES_MAX = 512 * 1024
/** Log that is kept behind the newest snapshot. */
const KEPT_ENTRIES = 10_000
const RETRY_FULL_MS = 5_000
/** A snapshot is taken no sooner after the last than this many times what that one took. */
const SNAPSHOT_REST = 10
const SNAPSHOT_RETRY_MS = 60_000
const SNAPSHOT_LOOK_MS = 5
/** X6: a write waits this long for its fate, inside the 1,400 ms of a bridge. */
const FATE_MS = 1_200
/** Log that followers may hold back (consensus.md §17, §21). */
const LOG_BYTES_MAX = 1 << 30
/** Less of the disk free than this, or than two files of the log, is little (§19). */
const LOW_SHARE = 0.05
/** A sync that takes this long is slow; ten seconds of them and a leader hands over (§19). */
const SLOW_SYNC_MS = 1_000
const SLOW_FOR_MS = 10_000

export type StateMachine = {
  apply(index: number, bytes: Uint8Array, start: number, end: number): Applied
  /** Ends a batch: readers may see it. */
  publish(index: number): void
  /** Digests that were noted on the way and that no check of the log has named yet, oldest first. */
  readonly digestMarks: () => readonly DigestMark[]
  readonly digest: () => { readonly lo: number; readonly hi: number }
  readonly lastMaintenanceDay: () => number
  /** Leader time of the last command that was applied, ms (C2). */
  readonly latestTimeMs: () => number
  /** Packages that maintenance up to a day would remove. */
  readonly packagesBefore: (day: number) => number
  /** Tables whose rows are out of order, as bodies of orderRows commands. */
  readonly unorderedTables: () => readonly Uint8Array[]
  /** Frees a little of what maintenance left. @returns whether more is left */
  readonly sweep: () => boolean
}

export type Snapshots = {
  /** Begins an epoch at the applied index and has it written; `snapshotWritten` or `snapshotFailed` follows. */
  start(index: number, term: number, origin: SnapshotInfo['origin']): void
  /** The mark is durable: older snapshots may go. */
  retain(): void
}

/**
 * A bulk load that is committed and not applied: the data of another snapshot are put in place of the store's first,
 * after the entry before it and before any behind it (§11). loading.ts does it.
 */
export type Loading = {
  /** Of its entry; everything before it is applied. */
  readonly index: number
  /** Content digest of the snapshot. */
  readonly digest: string
  /**
   * `awaited`: it is not here, or cannot be used. `keeping`: the state before it is being written. `replacing`: the
   * memory holds nothing of use. `placed`: the data are in place, and the entry is the next to be applied.
   */
  phase: 'looking' | 'awaited' | 'keeping' | 'replacing' | 'placed'
}

/** The other members, as the replica needs them. */
export type Link = {
  send(message: Message): void
  onReadState(context: number, index: number): void
  onReadDropped(context: number, reason: Dropped): void
  /** The peer needs a snapshot: what it lacks is not in memory any more. */
  onOffer(peer: number): void
  /** A snapshot whose chunks are all here is to be made current; `snapshotCurrent` follows, or `snapshotNotCurrent`. */
  onInstall(offer: SnapshotOffer): void
  /** Log behind this index stays for those that receive a snapshot. */
  keptIndex(): number
  onConfiguration(index: number, configuration: Configuration): void
  /** Entries were applied and published. */
  onApplied(): void
  /** Role, term or leader changed. */
  onRole(): void
  /** Apply has come to a bulk load; `dataPlaced` follows. */
  onLoadEntry(loading: Loading): void
  /** It is applied. */
  onLoaded(loading: Loading): void
}

/** Where answers go: one channel a serving thread. */
export type AnswerSink = (answers: ArrayBuffer) => void

export type ReplicaParts = {
  readonly env: Env
  readonly raft: Raft
  readonly machine: StateMachine
  readonly snapshots: Snapshots
  readonly log: (message: ToWal) => void
  /** Reads entries back from the log on disk; calls back later, once. Absent: what is not in memory counts as compacted. */
  readonly readLog?: (ask: LogAsk, done: (batches: readonly EntryBatch[] | 'compacted') => void) => void
  /** Absent: a node by itself. Set once the member around the replica is there. */
  link?: Link | undefined
  /** Puts the state of an installed snapshot in the place of the present one, in one step (§16.3). */
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

type Answers = { readonly sink: AnswerSink; buffer: ArrayBuffer; view: DataView; at: number }

/** Somebody waits for what becomes of an entry that was proposed when this node led. */
type Orphan = { readonly term: number; readonly sink: number; readonly token: number; readonly deadlineMs: number }

/** A hand-over that the core waits for, oldest first (H4). */
type HandOver = { readonly token: number; isStored: boolean; readonly promises: readonly Message[] }

export type Replica = ReplicaParts & {
  readonly sinks: Answers[]
  readonly handOvers: HandOver[]
  /** What was last seen of the core, to notice a change. */
  seen: { readonly role: Raft['role']; readonly term: number; readonly leader: number }
  /** By index of the entry; answered when it is known what is committed there (R10, X6). */
  readonly orphans: Map<number, Orphan[]>
  /** The snapshot that is being made current. */
  installing: SnapshotOffer | undefined
  /** The bulk load that apply stands before. */
  loading: Loading | undefined
  leaderChanges: number
  readonly outcomes: { applied: number; dropped: number; unknown: number }
  /** Who waits for the entry at waitingFrom + n: sink number + 1 and token; 0 for nobody. */
  waitingSinks: number[]
  waitingTokens: number[]
  waitingFrom: number
  waitingHead: number
  readonly own: CommandWriter
  /** Clock of the log: never goes back (C2). */
  timeMs: number
  termStartWallMs: number
  termStartMonotonicMs: number
  isDiskFull: boolean
  isRetrying: boolean
  /** Heard of from the log. */
  refusals: number
  isStopping: boolean
  isApplying: boolean
  lastDigestIndex: number
  digestChecks: number
  /** What the other members told of their state. */
  readonly digests: DigestBook
  repeats: number
  // Snapshots
  snapshotRunning: boolean
  snapshotIndexLast: number
  snapshotIndexBefore: number
  snapshotOrigin: SnapshotInfo['origin'] | undefined
  nextSnapshotMs: number
  snapshotEarliestMs: number
  snapshotFailures: number
  // Figures
  groups: number
  walBytes: number
  walFiles: number
  readonly fsync: MutableBuckets
  readonly groupEntries: MutableBuckets
  /** For how long every sync has been slow (§19). */
  slowSyncMs: number
  readonly commitTime: MutableBuckets
  readonly snapshotTime: MutableBuckets
  /** When the proposals that are not applied yet were taken. */
  proposedAt: { readonly lastIndex: number; readonly atMs: number }[]
  removedPackages: number
  lastMaintenanceMs: number
  maintenanceDay: number
  /** The day that was last dropped up to, as applied here. */
  maintainedDay: number
  /** After the entry: rows are put in order and memory is freed. */
  isTidying: boolean
  maintenanceWillRemove: number
  stallMs: number
  lastTickMs: number
  /** Called when something that was under way has ended; set while the replica stops. */
  onSettled: (() => void) | undefined
}

export type MutableBuckets = { readonly bounds: readonly number[]; readonly counts: number[]; sum: number }

const SYNC_BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5] as const
const GROUP_BOUNDS = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384] as const
const SNAPSHOT_BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const

function buckets(bounds: readonly number[]): MutableBuckets {
  return { bounds, counts: new Array<number>(bounds.length + 1).fill(0), sum: 0 }
}

function observe(target: MutableBuckets, seconds: number): void {
  const at = target.bounds.findIndex((bound) => seconds <= bound)
  const bucket = at < 0 ? target.bounds.length : at
  target.counts[bucket] = (target.counts[bucket] as number) + 1
  target.sum += seconds
}

export function createReplica(parts: ReplicaParts): Replica {
  const { env } = parts
  return {
    ...parts,
    sinks: [],
    handOvers: [],
    seen: { role: parts.raft.role, term: parts.raft.term, leader: parts.raft.leader },
    orphans: new Map(),
    installing: undefined,
    loading: undefined,
    leaderChanges: 0,
    outcomes: { applied: 0, dropped: 0, unknown: 0 },
    waitingSinks: [],
    waitingTokens: [],
    waitingFrom: parts.raft.lastIndex + 1,
    waitingHead: 0,
    own: createCommandWriter(),
    timeMs: parts.lastTimeMs,
    termStartWallMs: env.clock.wallMs(),
    termStartMonotonicMs: env.clock.monotonicMs(),
    isDiskFull: false,
    isRetrying: false,
    refusals: 0,
    isStopping: false,
    isApplying: false,
    lastDigestIndex: 0,
    digestChecks: 0,
    digests: new Map(),
    repeats: 0,
    snapshotRunning: false,
    snapshotIndexLast: parts.snapshotIndex,
    snapshotIndexBefore: parts.snapshotIndex,
    snapshotOrigin: undefined,
    nextSnapshotMs: env.clock.monotonicMs() + parts.snapshotIntervalMs,
    snapshotEarliestMs: 0,
    snapshotFailures: 0,
    groups: 0,
    walBytes: 0,
    walFiles: 0,
    fsync: buckets(SYNC_BOUNDS),
    groupEntries: buckets(GROUP_BOUNDS),
    slowSyncMs: 0,
    commitTime: buckets(SYNC_BOUNDS),
    snapshotTime: buckets(SNAPSHOT_BOUNDS),
    proposedAt: [],
    removedPackages: 0,
    lastMaintenanceMs: 0,
    maintenanceDay: 0,
    maintainedDay: parts.machine.lastMaintenanceDay(),
    isTidying: false,
    maintenanceWillRemove: 0,
    stallMs: 0,
    lastTickMs: env.clock.monotonicMs(),
    onSettled: undefined,
  }
}

/** @returns number of the sink, for `proposeBatch` */
export function addSink(replica: Replica, sink: AnswerSink): number {
  const buffer = new ArrayBuffer(ANSWER_BYTES * 64)
  replica.sinks.push({ sink, buffer, view: new DataView(buffer), at: 0 })
  return replica.sinks.length - 1
}

// Proposals

/** Wall clock of this term, advanced by the monotonic one: it never goes back in the log (C2). */
function leaderTime(replica: Replica): number {
  const elapsed = replica.env.clock.monotonicMs() - replica.termStartMonotonicMs
  replica.timeMs = Math.max(replica.timeMs, Math.floor(replica.termStartWallMs + elapsed))
  return replica.timeMs
}

/** Takes a batch of commands of one serving thread (tcp/writes.ts). */
export function proposeBatch(replica: Replica, sink: number, batch: ArrayBuffer): void {
  const source = new Uint8Array(batch)
  const view = new DataView(batch)
  const { raft } = replica
  const timeMs = leaderTime(replica)
  const day = dayOf(timeMs)
  let at = 0
  while (at < source.length) {
    // As many commands as one hand-over to the log may hold.
    const start = at
    let count = 0
    let bytes = 0
    while (at < source.length && bytes < BATCH_BYTES_MAX) {
      const length = view.getUint32(at + 4, true)
      bytes += ENTRY_HEADER_BYTES + length
      at += 8 + length
      count++
    }
    const refusal = refusalOf(replica)
    const entries = refusal === 0 ? encodeEntries(view, source, start, at, bytes, raft.term, timeMs, day) : undefined
    const first = entries ? propose(raft, count, entries) : 'overloaded'
    if (typeof first === 'number') {
      waitForBatch(replica, sink, view, start, at)
      replica.proposedAt.push({ lastIndex: raft.lastIndex, atMs: replica.env.clock.monotonicMs() })
      continue
    }
    const code = refusal !== 0 ? refusal : droppedCode(first)
    replica.outcomes.dropped += count
    for (let from = start; from < at; from += 8 + view.getUint32(from + 4, true)) {
      putAnswer(replica, sink, view.getUint32(from, true), code, 0, 0)
    }
  }
  sendAnswers(replica)
  pump(replica)
}

function refusalOf(replica: Replica): number {
  const { raft } = replica
  if (replica.isStopping) return replica.link ? REFUSED.noLeader : REFUSED.notServing
  if (raft.role !== 'leader') {
    if (!replica.link) return REFUSED.notServing
    return raft.leader === 0 ? REFUSED.noLeader : REFUSED.notLeader
  }
  // It would wait behind the load, perhaps for longer than anybody waits for an answer.
  if (replica.loading) return REFUSED.notServing
  return replica.isDiskFull ? REFUSED.diskFull : 0
}

/** The code of a proposal that is certainly in no log (X5). */
function droppedCode(reason: Dropped): number {
  switch (reason) {
    case 'not-leader':
      return REFUSED.notLeader
    case 'no-leader':
      return REFUSED.noLeader
    case 'transferring':
      return REFUSED.transferring
    default:
      return REFUSED.overloaded
  }
}

function encodeEntries(
  view: DataView,
  source: Uint8Array,
  start: number,
  end: number,
  bytes: number,
  term: number,
  timeMs: number,
  day: number,
): Uint8Array {
  const entries = new Uint8Array(bytes)
  const target = viewOf(entries)
  let to = 0
  for (let at = start; at < end; ) {
    const length = view.getUint32(at + 4, true)
    writeEntryHeader(target, to, term, ENTRY_KIND.command, length)
    entries.set(source.subarray(at + 8, at + 8 + length), to + ENTRY_HEADER_BYTES)
    stampCommand(target, to + ENTRY_HEADER_BYTES, timeMs, day)
    to += ENTRY_HEADER_BYTES + length
    at += 8 + length
  }
  return entries
}

function waitForBatch(replica: Replica, sink: number, view: DataView, start: number, end: number): void {
  fillWaiting(replica)
  for (let at = start; at < end; at += 8 + view.getUint32(at + 4, true)) {
    replica.waitingSinks.push(sink + 1)
    replica.waitingTokens.push(view.getUint32(at, true))
  }
  assert(
    replica.waitingFrom + replica.waitingSinks.length === replica.raft.lastIndex + 1,
    'somebody waits for each entry',
  )
}

/** Entries that nobody waits for, such as the empty one of a term, have a place in the list, too. */
function fillWaiting(replica: Replica): void {
  const { raft } = replica
  const unsent = raft.unsent[raft.unsent.length - 1]
  const due = (unsent?.firstIndex ?? raft.lastIndex + 1) - replica.waitingFrom
  while (replica.waitingSinks.length < due) {
    replica.waitingSinks.push(0)
    replica.waitingTokens.push(0)
  }
}

/** Proposes a command of the node's own. @returns whether it was taken */
export function proposeOwn(replica: Replica, kind: CommandKind, body: Uint8Array): boolean {
  if (refusalOf(replica) !== 0) return false
  const { own, raft } = replica
  own.at = 0
  beginCommand(own, kind)
  const length = COMMAND_HEADER_BYTES + body.length
  const entries = new Uint8Array(ENTRY_HEADER_BYTES + length)
  const view = viewOf(entries)
  writeEntryHeader(view, 0, raft.term, ENTRY_KIND.command, length)
  entries.set(own.bytes.subarray(0, COMMAND_HEADER_BYTES), ENTRY_HEADER_BYTES)
  entries.set(body, ENTRY_HEADER_BYTES + COMMAND_HEADER_BYTES)
  const timeMs = leaderTime(replica)
  stampCommand(view, ENTRY_HEADER_BYTES, timeMs, dayOf(timeMs))
  const first = propose(raft, 1, entries)
  if (typeof first !== 'number') return false
  fillWaiting(replica)
  replica.waitingSinks.push(0)
  replica.waitingTokens.push(0)
  replica.proposedAt.push({ lastIndex: raft.lastIndex, atMs: replica.env.clock.monotonicMs() })
  pump(replica)
  return true
}

/** Takes what the core has ready: messages to peers, entries and promises to the log, reads (H1–H4). */
export function pump(replica: Replica): void {
  const { raft } = replica
  noticeRole(replica)
  while (hasReady(raft)) {
    const ready = takeReady(raft)
    handOver(replica, ready)
    noticeRole(replica)
  }
}

function handOver(replica: Replica, ready: Ready): void {
  const { link } = replica
  const { token, hardState, entries, snapshot } = ready
  if (link) {
    for (const message of ready.sendNow) link.send(message)
    for (const { context, index } of ready.readStates) link.onReadState(context, index)
    for (const { context, reason } of ready.droppedReads) link.onReadDropped(context, reason)
    for (const read of ready.logReads) readForPeer(replica, read)
    for (const { peer } of ready.offers) link.onOffer(peer)
  }
  replica.handOvers.push({ token, isStored: !ready.mustStore, promises: ready.sendAfterPersist })
  if (ready.mustStore) replica.log({ type: 'append', token, hardState, entries })
  else confirmStored(replica)
  if (!snapshot) return
  assert(link !== undefined && !replica.installing, 'one snapshot at a time comes from a peer')
  replica.installing = snapshot
  link.onInstall(snapshot)
}

/** A peer needs entries that are not in memory any more. */
function readForPeer(replica: Replica, { peer, firstIndex, lastIndex, bytesMax }: Ready['logReads'][number]): void {
  const { raft, readLog } = replica
  if (!readLog) return provideEntries(raft, peer, 'compacted')
  const start = raft.runs.findLastIndex((run) => run.firstIndex <= firstIndex)
  const terms = raft.runs.slice(Math.max(0, start)).filter((run) => run.firstIndex <= lastIndex)
  readLog({ firstIndex, lastIndex, bytesMax, terms }, (batches) => {
    provideEntries(raft, peer, batches)
    pump(replica)
  })
}

/** Everything handed over up to `token` is durable. */
function markStored(replica: Replica, token: number): void {
  for (const handed of replica.handOvers) {
    if (handed.token > token) break
    handed.isStored = true
  }
  confirmStored(replica)
}

/** Confirms to the core what is durable, in order, and lets the promises go that were made with it (A8, H2). */
function confirmStored(replica: Replica): void {
  const { handOvers, raft, link } = replica
  while (handOvers[0]?.isStored) {
    const { token, promises } = handOvers.shift() as HandOver
    persisted(raft, token)
    for (const message of promises) link?.send(message)
  }
}

/** What the node does when it begins or ends to lead, or follows somebody else. */
function noticeRole(replica: Replica): void {
  const { raft, seen } = replica
  const { role, term, leader } = raft
  if (role === seen.role && term === seen.term && leader === seen.leader) return
  replica.seen = { role, term, leader }
  const led = seen.role === 'leader'
  const leads = role === 'leader'
  if (led && (!leads || term !== seen.term)) orphanWaiting(replica, seen.term)
  if (leads && (!led || term !== seen.term)) beginTerm(replica)
  if (leader !== 0 && leader !== seen.leader) replica.leaderChanges++
  replica.link?.onRole()
}

function beginTerm(replica: Replica): void {
  const { raft, env } = replica
  replica.termStartWallMs = env.clock.wallMs()
  replica.termStartMonotonicMs = env.clock.monotonicMs()
  replica.timeMs = Math.max(replica.timeMs, replica.machine.latestTimeMs(), latestTimeIn(raft))
  // The empty entry of the term is there already; nobody waits for it.
  replica.waitingFrom = raft.lastIndex + 1
  replica.waitingSinks = []
  replica.waitingTokens = []
  replica.waitingHead = 0
  replica.proposedAt = []
}

/** Leader time of the newest command that is in the log and not applied yet; 0 without one. */
function latestTimeIn(raft: Raft): number {
  let latest = 0
  for (const batch of readTail(raft, raft.applied + 1, Number.POSITIVE_INFINITY)) {
    const view = viewOf(batch.bytes)
    for (let at = 0; at < batch.bytes.length; at += ENTRY_HEADER_BYTES + entryLength(view, at)) {
      if (entryKind(view, at) === ENTRY_KIND.command) latest = timeOfCommand(view, at + ENTRY_HEADER_BYTES)
    }
  }
  return latest
}

/** X6: it led, and does not know yet what becomes of these. As a follower it will learn it. */
function orphanWaiting(replica: Replica, term: number): void {
  const deadlineMs = replica.env.clock.monotonicMs() + FATE_MS
  for (let n = replica.waitingHead; n < replica.waitingSinks.length; n++) {
    const sink = replica.waitingSinks[n] as number
    if (sink === 0) continue
    const index = replica.waitingFrom + n
    const token = replica.waitingTokens[n] as number
    const code = answerOfLogged('unsure', replica.env.defects)
    if (code !== undefined) putAnswer(replica, sink - 1, token, code, 0, 0)
    else addOrphan(replica, index, { term, sink: sink - 1, token, deadlineMs })
  }
  replica.waitingSinks = []
  replica.waitingTokens = []
  replica.waitingHead = 0
  replica.proposedAt = []
  sendAnswers(replica)
}

function addOrphan(replica: Replica, index: number, orphan: Orphan): void {
  const known = replica.orphans.get(index)
  if (known) known.push(orphan)
  else replica.orphans.set(index, [orphan])
}

/** R10: an entry is applied where others were proposed: the same one, or one that took its place for good. */
function settleOrphans(replica: Replica, index: number, term: number, result: Applied | undefined): void {
  for (const orphan of replica.orphans.get(index) ?? []) {
    if (orphan.term === term && result) {
      replica.outcomes.applied++
      putAnswer(replica, orphan.sink, orphan.token, result.code, result.value, result.index)
      continue
    }
    replica.outcomes.dropped++
    const code = answerOfLogged('overwritten', replica.env.defects) ?? REFUSED.outcomeUnknown
    putAnswer(replica, orphan.sink, orphan.token, code, 0, 0)
  }
  replica.orphans.delete(index)
}

/** X6: at the deadline, and at the end, the truth is that nobody knows. */
function giveUpWaiting(replica: Replica, nowMs: number): void {
  const code = answerOfLogged('given-up', replica.env.defects) ?? REFUSED.outcomeUnknown
  for (const [index, orphans] of replica.orphans) {
    const left = orphans.filter(({ deadlineMs }) => deadlineMs > nowMs)
    if (left.length === orphans.length) continue
    for (const orphan of orphans) {
      if (orphan.deadlineMs > nowMs) continue
      replica.outcomes.unknown++
      putAnswer(replica, orphan.sink, orphan.token, code, 0, 0)
    }
    if (left.length === 0) replica.orphans.delete(index)
    else replica.orphans.set(index, left)
  }
  let givenUpTo = 0
  for (const { lastIndex, atMs } of replica.proposedAt) if (nowMs - atMs >= FATE_MS) givenUpTo = lastIndex
  const end = Math.min(givenUpTo - replica.waitingFrom + 1, replica.waitingSinks.length)
  for (let n = replica.waitingHead; n < end; n++) {
    const sink = replica.waitingSinks[n] as number
    if (sink === 0) continue
    replica.outcomes.unknown++
    putAnswer(replica, sink - 1, replica.waitingTokens[n] as number, code, 0, 0)
    replica.waitingSinks[n] = 0
  }
  sendAnswers(replica)
}

// The log's answers

export function onLogMessage(replica: Replica, message: FromWal): void {
  switch (message.type) {
    case 'stored': {
      observe(replica.fsync, message.syncMs / 1000)
      observe(replica.groupEntries, message.entries)
      replica.slowSyncMs = message.syncMs >= SLOW_SYNC_MS ? replica.slowSyncMs + message.syncMs : 0
      replica.groups++
      replica.walBytes = message.bytes
      replica.walFiles = message.files
      markStored(replica, message.token)
      pump(replica)
      return applyCommitted(replica)
    }
    case 'refused':
      return onRefused(replica, message.token, message.storedTo)
    case 'resumed':
      replica.isRetrying = false
      if (message.takesEntries && replica.isDiskFull) replica.env.log.info({}, 'the disk takes writes again')
      replica.isDiskFull = !message.takesEntries
      // A vote that was refused is tried again in any case.
      return pump(replica)
    case 'marked':
      replica.snapshots.retain()
      return replica.log({ type: 'compact', floor: compactionFloor(replica) })
    case 'installed':
      return onInstalled(replica, message.isDone)
    case 'compacted':
      if (message.firstIndex > replica.raft.firstIndex)
        compactedTo(replica.raft, Math.min(message.firstIndex, replica.raft.applied + 1))
      replica.walBytes = message.bytes
      replica.walFiles = message.files
      return
    case 'failed':
      return replica.onFatal(message.failure)
    default:
      return
  }
}

/** Log needed: behind the older of two snapshots, and some more for followers that lag (consensus.md §17). */
export function compactionFloor(replica: Replica): number {
  const { link, snapshotIndexBefore, snapshotIndexLast, keptEntries = KEPT_ENTRIES } = replica
  const held = link?.keptIndex() ?? Number.POSITIVE_INFINITY
  const kept = Math.min(snapshotIndexBefore, snapshotIndexLast - keptEntries, held, followed(replica))
  return Math.max(0, Math.min(kept, replica.raft.applied)) + 1
}

/** What the slowest follower that is heard has; those that hold back too much get a snapshot (§17). */
function followed({ raft, walBytes }: Replica): number {
  if (raft.role !== 'leader' || walBytes > LOG_BYTES_MAX) return Number.POSITIVE_INFINITY
  let least = Number.POSITIVE_INFINITY
  for (const peer of raft.peers) {
    if (isHeard(peer) && peer.state !== 'snapshot') least = Math.min(least, peer.match)
  }
  return least
}

/**
 * The disk is full: what was handed over with `token` and behind it is not in the log behind `storedTo`. A node by
 * itself tells each writer so; a leader's entries may be on their way to peers, so their writers wait for their fate.
 */
function onRefused(replica: Replica, token: number, storedTo: number | undefined): void {
  replica.refusals++
  // Refusals of groups behind the first one were taken back with it.
  if (replica.handOvers[0]?.token !== token) return
  replica.handOvers.length = 0
  const from = refused(replica.raft, token, storedTo)
  if (replica.raft.role === 'leader') refuseFrom(replica, from)
  if (!replica.isDiskFull) {
    replica.env.log.error({ freeBytes: replica.space().freeBytes }, 'the disk is full: writes are refused, reads go on')
    replica.onReserve()
  }
  replica.isDiskFull = true
  retryLog(replica)
  pump(replica)
  applyCommitted(replica)
}

/** These entries are certainly in no log. */
function refuseFrom(replica: Replica, index: number): void {
  const keep = Math.max(0, Math.min(index - replica.waitingFrom, replica.waitingSinks.length))
  for (let n = keep; n < replica.waitingSinks.length; n++) {
    const sink = replica.waitingSinks[n] as number
    if (sink > 0) putAnswer(replica, sink - 1, replica.waitingTokens[n] as number, REFUSED.diskFull, 0, 0)
  }
  replica.waitingSinks.length = keep
  replica.waitingTokens.length = keep
  replica.waitingHead = Math.min(replica.waitingHead, keep)
  // Also the empty entry of the term, for which nobody waits, may be gone.
  replica.waitingFrom = Math.min(replica.waitingFrom, index)
  replica.proposedAt = replica.proposedAt.filter(({ lastIndex }) => lastIndex < index)
  sendAnswers(replica)
}

/** The log begins anew behind an installed snapshot, or has no room to. */
function onInstalled(replica: Replica, isDone: boolean): void {
  const { installing: offer, raft } = replica
  assert(offer !== undefined, 'one snapshot is installed at a time')
  if (!isDone) {
    replica.env.log.error(
      { freeBytes: replica.space().freeBytes },
      'the disk is full: a snapshot cannot be installed yet',
    )
    replica.isDiskFull = true
    replica.env.schedule.after(RETRY_FULL_MS, () => snapshotCurrent(replica))
    return
  }
  // What is being written of the present state is of no use any more, but it reads the memory that is to be cleared.
  if (replica.snapshotRunning || replica.loading?.phase === 'replacing')
    return void replica.env.schedule.after(SNAPSHOT_LOOK_MS, () => onInstalled(replica, true))
  // The snapshot is of a state behind it.
  replica.loading = undefined
  assert(replica.switchState !== undefined, 'a member can take over the state of another')
  replica.switchState(offer, () => {
    replica.installing = undefined
    replica.snapshotIndexBefore = offer.index
    replica.snapshotIndexLast = offer.index
    replica.timeMs = Math.max(replica.timeMs, replica.machine.latestTimeMs())
    installed(raft, offer.index, offer.snapshotTerm, offer.configuration)
    replica.link?.onConfiguration(offer.index, offer.configuration)
    replica.machine.publish(raft.applied)
    replica.link?.onApplied()
    pump(replica)
    applyCommitted(replica)
  })
}

/** The snapshot that is to be installed is whole on disk under its name; now the log begins behind it. */
export function snapshotCurrent(replica: Replica): void {
  const { installing } = replica
  assert(installing !== undefined, 'a snapshot is being installed')
  replica.log({ type: 'install', mark: { index: installing.index, term: installing.snapshotTerm } })
}

function retryLog(replica: Replica): void {
  if (replica.isRetrying) return
  replica.isRetrying = true
  replica.env.schedule.after(RETRY_FULL_MS, () => replica.log({ type: 'resume', refusals: replica.refusals }))
}

// Apply

/** Applies committed entries in slices; the rest in a later turn, so that messages get in between. */
export function applyCommitted(replica: Replica): void {
  if (replica.isApplying) return
  if (isHeld(replica)) return replica.onSettled?.()
  const { raft, env } = replica
  const placed = replica.loading
  const started = env.clock.monotonicMs()
  let commands = 0
  while (commands < APPLY_COMMANDS_MAX && env.clock.monotonicMs() - started < APPLY_MS_MAX) {
    const batch = nextCommitted(raft, APPLY_COMMANDS_MAX - commands)
    if (!batch) break
    const count = applyBatch(replica, batch)
    commands += count
    if (count < batch.count) {
      endBeforeLoad(replica, batch, count)
      break
    }
    applied(raft, batch.firstIndex + count - 1, count, batch.bytes.length)
    observeCommits(replica)
  }
  if (commands > 0) {
    replica.machine.publish(raft.applied)
    sendAnswers(replica)
    replica.link?.onApplied()
    if (placed && raft.applied >= placed.index) replica.link?.onLoaded(placed)
    afterApply(replica)
  }
  if (isHeld(replica)) return beginLoad(replica)
  if (commands === 0) return replica.onSettled?.()
  if (raft.applied < raft.commit) {
    replica.isApplying = true
    env.schedule.after(0, () => {
      replica.isApplying = false
      applyCommitted(replica)
    })
  } else replica.onSettled?.()
}

/** Apply stands before a bulk load whose data are not in place. */
function isHeld({ loading }: Replica): boolean {
  return loading !== undefined && loading.phase !== 'placed'
}

/** The memory holds no state that belongs to an index. */
export function isBetweenStates({ installing, loading }: Replica): boolean {
  return installing !== undefined || loading?.phase === 'replacing' || loading?.phase === 'placed'
}

/** Of a batch with a bulk load in it what stands before that is applied; the rest comes again. */
function endBeforeLoad(replica: Replica, batch: EntryBatch, count: number): void {
  const { raft } = replica
  const last = batch.firstIndex + count - 1
  handBack(raft, last)
  if (count === 0) return
  applied(raft, last, count, skipEntries(viewOf(batch.bytes), 0, count))
  observeCommits(replica)
}

function beginLoad(replica: Replica): void {
  const { loading, link, env, raft } = replica
  assert(loading !== undefined && raft.applied === loading.index - 1, 'everything before a load is applied')
  assert(link !== undefined, 'only members of a shard are given loads')
  env.log.info({ index: loading.index, digest: loading.digest }, 'apply has come to a bulk load')
  link.onLoadEntry(loading)
  replica.onSettled?.()
}

/** The data of the load that apply stands before are those of the store now. */
export function dataPlaced(replica: Replica): void {
  const { loading } = replica
  assert(loading?.phase === 'replacing', 'data are placed for an entry that waits for them')
  loading.phase = 'placed'
  applyCommitted(replica)
}

/** Time from a proposal to its last entry being applied. */
function observeCommits(replica: Replica): void {
  const { raft, proposedAt, env } = replica
  while ((proposedAt[0]?.lastIndex ?? raft.applied + 1) <= raft.applied) {
    const proposal = proposedAt.shift()
    if (proposal) observe(replica.commitTime, (env.clock.monotonicMs() - proposal.atMs) / 1000)
  }
}

/** M2: who the members are changes when the entry that says so is applied. */
function configure(replica: Replica, index: number, bytes: Uint8Array): void {
  const configuration = decodeConfiguration(bytes)
  applyConfiguration(replica.raft, index, configuration)
  replica.link?.onConfiguration(index, configuration)
}

/** @returns entries that were applied: all of them, or those before a bulk load whose data are not in place */
function applyBatch(replica: Replica, batch: EntryBatch): number {
  const view = viewOf(batch.bytes)
  const hasOrphans = replica.orphans.size > 0
  let at = 0
  for (let i = 0; i < batch.count; i++) {
    const index = batch.firstIndex + i
    const length = entryLength(view, at)
    const start = at + ENTRY_HEADER_BYTES
    const kind = entryKind(view, at)
    let result: Applied | undefined
    if (kind === ENTRY_KIND.command) {
      if (kindOfCommand(view, start) === KIND.bulkLoad && !takeLoad(replica, index, batch.bytes, start)) return i
      result = replica.machine.apply(index, batch.bytes, start, start + length)
      if (result.index !== index) replica.repeats++
      answer(replica, index, result)
    } else answer(replica, index, undefined)
    if (hasOrphans) settleOrphans(replica, index, entryTerm(view, at), result)
    if (kind === ENTRY_KIND.configuration) configure(replica, index, batch.bytes.subarray(start, start + length))
    at = start + length
  }
  assert(at === batch.bytes.length, 'entries fill their batch')
  return batch.count
}

/** @returns whether the entry of a bulk load may be applied */
function takeLoad(replica: Replica, index: number, bytes: Uint8Array, start: number): boolean {
  const { loading } = replica
  if (!loading) {
    const digest = hex(decodeBulkLoad(bytes, start).digest)
    replica.loading = { index, digest, phase: 'looking' }
    return false
  }
  assert(loading.index === index && loading.phase === 'placed', 'loads are applied one by one')
  replica.loading = undefined
  return true
}

/** A8: the answer of an entry leaves when it is applied, and only once. */
function answer(replica: Replica, index: number, result: Applied | undefined): void {
  const n = index - replica.waitingFrom
  if (n < 0 || n >= replica.waitingSinks.length) return
  const sink = replica.waitingSinks[n] as number
  if (sink > 0 && result) {
    replica.outcomes.applied++
    putAnswer(replica, sink - 1, replica.waitingTokens[n] as number, result.code, result.value, result.index)
  }
  replica.waitingHead = n + 1
  if (replica.waitingHead < 8192) return
  replica.waitingSinks.splice(0, replica.waitingHead)
  replica.waitingTokens.splice(0, replica.waitingHead)
  replica.waitingFrom += replica.waitingHead
  replica.waitingHead = 0
}

function putAnswer(replica: Replica, sink: number, token: number, code: number, value: number, index: number): void {
  const answers = replica.sinks[sink] as Answers
  if (answers.at + ANSWER_BYTES > answers.buffer.byteLength) {
    const grown = new ArrayBuffer(answers.buffer.byteLength * 2)
    new Uint8Array(grown).set(new Uint8Array(answers.buffer))
    answers.buffer = grown
    answers.view = new DataView(grown)
  }
  const { view, at } = answers
  view.setUint32(at, token, true)
  view.setUint8(at + 4, code)
  view.setUint8(at + 5, value)
  view.setUint16(at + 6, 0, true)
  view.setFloat64(at + 8, index, true)
  answers.at += ANSWER_BYTES
}

/** Answers a read that waited for a word of the shard (reads.ts). */
export function answerRead(replica: Replica, sink: number, token: number, code: number, index: number): void {
  putAnswer(replica, sink, token, code, 0, index)
  sendAnswers(replica)
}

function sendAnswers(replica: Replica): void {
  for (const answers of replica.sinks) {
    if (answers.at === 0) continue
    answers.sink(answers.buffer.slice(0, answers.at))
    answers.at = 0
  }
}

function afterApply(replica: Replica): void {
  const { raft, machine } = replica
  compareDigests(replica)
  if (raft.applied - replica.snapshotIndexLast >= replica.snapshotTriggerCount) startSnapshot(replica, 'periodic')
  const day = machine.lastMaintenanceDay()
  if (day === replica.maintainedDay) return
  replica.maintainedDay = day
  if (day === replica.maintenanceDay) finishMaintenance(replica)
  else sweepOn(replica)
}

/** Somebody else led when the days were dropped: here only the memory is to be freed, in slices. */
function sweepOn(replica: Replica): void {
  replica.maintenanceDay = 0
  replica.lastMaintenanceMs = replica.env.clock.wallMs()
  const step = () => {
    if (!replica.isStopping && !isBetweenStates(replica) && replica.machine.sweep()) replica.env.schedule.after(1, step)
  }
  replica.env.schedule.after(0, step)
}

/** What another member says of its state. */
export function peerDigest(replica: Replica, peer: number, mark: DigestMark): void {
  noteDigest(replica.digests, peer, mark)
  compareDigests(replica)
}

/**
 * A leader logs the newest of its digests that a majority of the voters has, too; one that a majority contradicts ends.
 *
 * @throws digest_mismatch
 */
function compareDigests(replica: Replica): void {
  const { raft, machine, digests, lastDigestIndex } = replica
  if (raft.role !== 'leader' || replica.isStopping) return
  for (const mark of machine.digestMarks().toReversed()) {
    if (mark.index <= lastDigestIndex) return
    const verdict = judgeDigest(digests, raft.configuration, raft.id, mark)
    if (verdict === 'agreed') return logDigest(replica, mark)
    if (verdict === 'open') continue
    const wanted = 'what a majority of the voters has'
    throw new VacancyError('digest_mismatch', { index: mark.index, found: digestText(mark), wanted })
  }
}

/** Proposes the digest as it was at an index; each replica compares it with its own of that index (consensus.md §13). */
function logDigest(replica: Replica, { index, lo, hi }: DigestMark): void {
  const body = new Uint8Array(16)
  const view = viewOf(body)
  view.setFloat64(0, index, true)
  view.setUint32(8, lo, true)
  view.setUint32(12, hi, true)
  if (!proposeOwn(replica, KIND.digestCheck, body)) return
  replica.digestChecks++
  replica.lastDigestIndex = index
}

// Snapshots

/** @returns whether one was started */
export function startSnapshot(replica: Replica, origin: SnapshotInfo['origin']): boolean {
  const { raft, env } = replica
  if (replica.snapshotRunning || isBetweenStates(replica)) return false
  if (origin === 'periodic' && env.clock.monotonicMs() < replica.snapshotEarliestMs) return false
  if (raft.applied === replica.snapshotIndexLast && origin === 'periodic') return false
  replica.snapshotRunning = true
  replica.snapshotOrigin = origin
  replica.snapshots.start(raft.applied, raft.appliedTerm, origin)
  return true
}

export function snapshotWritten(replica: Replica, index: number, term: number, durationMs: number): void {
  const now = replica.env.clock.monotonicMs()
  replica.snapshotRunning = false
  // The log may begin behind a newer one by now.
  if (replica.installing) return
  replica.snapshotIndexBefore = replica.snapshotIndexLast
  replica.snapshotIndexLast = index
  replica.nextSnapshotMs = now + replica.snapshotIntervalMs
  replica.snapshotEarliestMs = now + SNAPSHOT_REST * durationMs
  observe(replica.snapshotTime, durationMs / 1000)
  replica.log({ type: 'mark', mark: { index, term } })
}

export function snapshotFailed(replica: Replica, reason: string): void {
  const now = replica.env.clock.monotonicMs()
  replica.snapshotRunning = false
  replica.snapshotFailures++
  replica.snapshotEarliestMs = now + SNAPSHOT_RETRY_MS
  replica.nextSnapshotMs = now + SNAPSHOT_RETRY_MS
  replica.env.log.warn({ reason }, 'a snapshot could not be written; the log is kept and it is tried again')
}

// Maintenance

/** Proposes to drop what lies before today. @returns whether it was proposed */
export function startMaintenance(replica: Replica, gapReason: number): boolean {
  if (refusalOf(replica) !== 0) return false
  const today = dayOf(leaderTime(replica))
  const last = replica.machine.lastMaintenanceDay()
  if (last >= today) return false
  const body = new Uint8Array(5)
  viewOf(body).setUint32(0, today, true)
  body[4] = gapReason
  replica.maintenanceWillRemove = replica.machine.packagesBefore(today)
  if (!proposeOwn(replica, KIND.dropBefore, body)) return false
  replica.maintenanceDay = today
  return true
}

/** After a maintenance entry was applied: rows back into order, memory freed in slices, a fresh snapshot. */
function finishMaintenance(replica: Replica): void {
  const day = replica.maintenanceDay
  replica.maintenanceDay = 0
  replica.isTidying = true
  replica.removedPackages += replica.maintenanceWillRemove
  replica.lastMaintenanceMs = replica.env.clock.wallMs()
  const orders = [...replica.machine.unorderedTables()]
  // A first maintenance with nothing to do changes a date and is not worth writing everything again.
  const hasWork = replica.maintenanceWillRemove > 0 || orders.length > 0
  const step = () => {
    if (replica.isStopping) return
    if (isBetweenStates(replica)) return void replica.env.schedule.after(SNAPSHOT_LOOK_MS, step)
    const order = orders.pop()
    if (order) proposeOwn(replica, KIND.orderRows, order)
    const more = replica.machine.sweep()
    if (order || more) {
      replica.env.schedule.after(1, step)
      return
    }
    replica.isTidying = false
    if (hasWork) startSnapshot(replica, 'maintenance')
    replica.onMaintained(day, replica.maintenanceWillRemove)
  }
  replica.env.schedule.after(0, step)
}

// Time and end

/** Called about ten times a second. */
export function tick(replica: Replica): void {
  const now = replica.env.clock.monotonicMs()
  replica.stallMs = Math.max(replica.stallMs, now - replica.lastTickMs)
  replica.lastTickMs = now
  if (replica.snapshotIntervalMs > 0 && now >= replica.nextSnapshotMs) {
    replica.nextSnapshotMs = now + replica.snapshotIntervalMs
    startSnapshot(replica, 'periodic')
  }
  if (replica.isDiskFull) retryLog(replica)
  giveUpWaiting(replica, now)
  storeCommit(replica.raft)
  pump(replica)
  replica.onSettled?.()
}

/**
 * Takes no more proposals and resolves when everything accepted is applied and answered, and its commit index stored.
 * A member does not wait for what others have to decide longer than its writers do (X6).
 */
export function drainReplica(replica: Replica): Promise<void> {
  replica.isStopping = true
  const { raft } = replica
  return new Promise((resolve) => {
    let isLast = false
    const isAnswered = () => !replica.waitingSinks.some((sink, n) => n >= replica.waitingHead && sink !== 0)
    const isSettled = () =>
      replica.link ? isAnswered() && replica.orphans.size === 0 : raft.applied === raft.lastIndex
    const look = () => {
      if (replica.handOvers.length > 0 || raft.unsent.length > 0 || !isSettled()) return
      if (isLast) return resolve()
      // Once: a full disk may have no room for it, and it is not needed.
      isLast = true
      storeCommit(raft)
      if (hasReady(raft)) pump(replica)
      if (replica.handOvers.length === 0) resolve()
    }
    replica.onSettled = look
    look()
  })
}

function roleName({ role, id, configuration }: Raft): ReplicaStatus['role'] {
  if (role === 'leader') return 'leader'
  if (role === 'candidate' || role === 'preCandidate') return 'candidate'
  return configuration.learners.includes(id) ? 'learner' : 'follower'
}

export function statusOf(replica: Replica): ReplicaStatus {
  const { raft, machine } = replica
  const { freeBytes, totalBytes } = replica.space()
  const stall = replica.stallMs
  replica.stallMs = 0
  const copy = ({ bounds, counts, sum }: MutableBuckets): Buckets => ({ bounds, counts: [...counts], sum })
  return {
    role: roleName(raft),
    term: raft.term,
    firstIndex: compactionFloor(replica),
    lastIndex: raft.lastIndex,
    commitIndex: raft.commit,
    appliedIndex: raft.applied,
    walBytes: replica.walBytes,
    walFiles: replica.walFiles,
    groups: replica.groups,
    fsync: copy(replica.fsync),
    commit: copy(replica.commitTime),
    tornTailBytes: replica.tornTailBytes,
    repeatsAnswered: replica.repeats,
    digestChecks: replica.digestChecks,
    digest: machine.digest(),
    lastDigestCheckIndex: replica.lastDigestIndex,
    snapshotRunning: replica.snapshotRunning,
    snapshotFailures: replica.snapshotFailures,
    snapshotDuration: copy(replica.snapshotTime),
    sparePages: 0,
    maintenanceRunning: replica.maintenanceDay !== 0 || replica.isTidying,
    lastMaintenanceDay: machine.lastMaintenanceDay(),
    lastMaintenanceMs: replica.lastMaintenanceMs,
    removedPackages: replica.removedPackages,
    eventLoopStallMs: stall,
    diskFreeBytes: freeBytes,
    diskFull: replica.isDiskFull,
    diskLow: freeBytes < Math.max(totalBytes * LOW_SHARE, 2 * LOG_FILE_BYTES),
    groupEntries: copy(replica.groupEntries),
    walMemoryBytes: raft.tailBytes,
    walSlow: replica.slowSyncMs >= SLOW_FOR_MS,
  }
}
