/**
 * Runs the core: proposals → log → apply → answers (style.md §6, consensus.md §13). One voter stands in for the
 * cluster; who the peers are changes here and in raft/, not in what is around it.
 *
 * Everything it touches comes in: log, state machine, snapshots, clock. The thread entry is replica-worker.ts; a
 * simulator can run the same in one thread.
 */

import { assert, dayOf } from '@vacancy/shared'
import type { Env } from '../env.ts'
import {
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  type EntryBatch,
  entryKind,
  entryLength,
  viewOf,
  writeEntryHeader,
} from '../raft/entry.ts'
import {
  applied,
  hasReady,
  nextCommitted,
  persisted,
  propose,
  type Raft,
  refused,
  storeCommit,
  takeReady,
} from '../raft/raft.ts'
import type { Buckets, ReplicaStatus, SnapshotInfo } from '../status.ts'
import type { Applied, DigestMark } from '../store/apply.ts'
import {
  beginCommand,
  COMMAND_HEADER_BYTES,
  type CommandKind,
  type CommandWriter,
  createCommandWriter,
  KIND,
  stampCommand,
} from '../store/command.ts'
import { ANSWER_BYTES, REFUSED } from '../threads/writes.ts'
import type { FromWal, ToWal } from '../wal/wal-thread.ts'

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

export type StateMachine = {
  apply(index: number, bytes: Uint8Array, start: number, end: number): Applied
  /** Ends a batch: readers may see it. */
  publish(index: number): void
  /** The latest digest that was noted on the way and is not in the log yet. */
  readonly digestMark: () => DigestMark | undefined
  readonly digest: () => { readonly lo: number; readonly hi: number }
  readonly lastMaintenanceDay: () => number
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

/** Where answers go: one channel a serving thread. */
export type AnswerSink = (answers: ArrayBuffer) => void

export type ReplicaParts = {
  readonly env: Env
  readonly raft: Raft
  readonly machine: StateMachine
  readonly snapshots: Snapshots
  readonly log: (message: ToWal) => void
  readonly onFatal: (failure: Extract<FromWal, { type: 'failed' }>['failure']) => void
  readonly onMaintained: (day: number, removedPackages: number) => void
  readonly onReserve: () => void
  readonly freeBytes: () => number
  readonly snapshotIntervalMs: number
  readonly snapshotTriggerCount: number
  /** Index of the snapshot the node started from, and of the one before. */
  readonly snapshotIndex: number
  readonly tornTailBytes: number
  readonly acceptDay: number
  readonly lastTimeMs: number
}

type Answers = { readonly sink: AnswerSink; buffer: ArrayBuffer; view: DataView; at: number }

export type Replica = ReplicaParts & {
  readonly sinks: Answers[]
  /** Who waits for the entry at waitingFrom + n: sink number + 1 and token; 0 for nobody. */
  waitingSinks: number[]
  waitingTokens: number[]
  waitingFrom: number
  waitingHead: number
  readonly own: CommandWriter
  /** Clock of the log: never goes back (C2). */
  timeMs: number
  readonly termStartWallMs: number
  readonly termStartMonotonicMs: number
  isDiskFull: boolean
  isRetrying: boolean
  isStopping: boolean
  isApplying: boolean
  lastDigestIndex: number
  digestChecks: number
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
  readonly commitTime: MutableBuckets
  readonly snapshotTime: MutableBuckets
  /** When the proposals that are not applied yet were taken. */
  proposedAt: { readonly lastIndex: number; readonly atMs: number }[]
  removedPackages: number
  lastMaintenanceMs: number
  maintenanceDay: number
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
    isStopping: false,
    isApplying: false,
    lastDigestIndex: 0,
    digestChecks: 0,
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
    commitTime: buckets(SYNC_BOUNDS),
    snapshotTime: buckets(SNAPSHOT_BOUNDS),
    proposedAt: [],
    removedPackages: 0,
    lastMaintenanceMs: 0,
    maintenanceDay: 0,
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
    const first = entries ? propose(raft, count, entries) : 'not-leader'
    if (typeof first === 'number') {
      waitForBatch(replica, sink, view, start, at)
      replica.proposedAt.push({ lastIndex: raft.lastIndex, atMs: replica.env.clock.monotonicMs() })
      continue
    }
    const code = refusal !== 0 ? refusal : first === 'overloaded' ? REFUSED.overloaded : REFUSED.notServing
    for (let from = start; from < at; from += 8 + view.getUint32(from + 4, true)) {
      putAnswer(replica, sink, view.getUint32(from, true), code, 0, 0)
    }
  }
  sendAnswers(replica)
  pump(replica)
}

function refusalOf(replica: Replica): number {
  if (replica.isStopping) return REFUSED.notServing
  return replica.isDiskFull ? REFUSED.diskFull : 0
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

/** Hands over to the log what the core has ready. */
export function pump(replica: Replica): void {
  const { raft } = replica
  while (hasReady(raft)) {
    const { token, hardState, entries } = takeReady(raft)
    replica.log({ type: 'append', token, hardState, entries })
  }
}

// The log's answers

export function onLogMessage(replica: Replica, message: FromWal): void {
  const { raft } = replica
  switch (message.type) {
    case 'stored': {
      observe(replica.fsync, message.syncMs / 1000)
      replica.groups++
      replica.walBytes = message.bytes
      replica.walFiles = message.files
      while (raft.handed.length > 0 && (raft.handed[0]?.token as number) <= message.token) {
        persisted(raft, raft.handed[0]?.token as number)
      }
      pump(replica)
      return applyCommitted(replica)
    }
    case 'refused':
      return onRefused(replica, message.token, message.lastIndex)
    case 'resumed':
      replica.isRetrying = false
      if (message.takesEntries && replica.isDiskFull) replica.env.log.info({}, 'the disk takes writes again')
      replica.isDiskFull = !message.takesEntries
      // A vote that was refused is tried again in any case.
      return pump(replica)
    case 'marked':
      replica.snapshots.retain()
      return replica.log({ type: 'compact', floor: compactionFloor(replica) })
    case 'compacted':
      replica.walBytes = message.bytes
      replica.walFiles = message.files
      return
    case 'failed':
      return replica.onFatal(message.failure)
    default:
      return
  }
}

/** Log needed: behind the older of two snapshots, and some more (consensus.md §17). */
function compactionFloor(replica: Replica): number {
  return Math.max(0, Math.min(replica.snapshotIndexBefore, replica.snapshotIndexLast - KEPT_ENTRIES)) + 1
}

/** The disk is full: what was handed over is not in the log behind `storedTo`, so each of its writers is told so. */
function onRefused(replica: Replica, token: number, storedTo: number): void {
  // Refusals of groups behind the first one were taken back with it.
  if (replica.raft.handed[0]?.token !== token) return
  const from = refused(replica.raft, token, storedTo)
  const keep = Math.min(from - replica.waitingFrom, replica.waitingSinks.length)
  for (let n = keep; n < replica.waitingSinks.length; n++) {
    const sink = replica.waitingSinks[n] as number
    if (sink > 0) putAnswer(replica, sink - 1, replica.waitingTokens[n] as number, REFUSED.diskFull, 0, 0)
  }
  replica.waitingSinks.length = keep
  replica.waitingTokens.length = keep
  replica.proposedAt = replica.proposedAt.filter(({ lastIndex }) => lastIndex < from)
  sendAnswers(replica)
  if (!replica.isDiskFull) {
    replica.env.log.error({ freeBytes: replica.freeBytes() }, 'the disk is full: writes are refused, reads go on')
    replica.onReserve()
  }
  replica.isDiskFull = true
  retryLog(replica)
  applyCommitted(replica)
}

function retryLog(replica: Replica): void {
  if (replica.isRetrying) return
  replica.isRetrying = true
  replica.env.schedule.after(RETRY_FULL_MS, () => replica.log({ type: 'resume' }))
}

// Apply

/** Applies committed entries in slices; the rest in a later turn, so that messages get in between. */
export function applyCommitted(replica: Replica): void {
  if (replica.isApplying) return
  const { raft, env } = replica
  const started = env.clock.monotonicMs()
  let commands = 0
  while (commands < APPLY_COMMANDS_MAX && env.clock.monotonicMs() - started < APPLY_MS_MAX) {
    const batch = nextCommitted(raft, APPLY_COMMANDS_MAX - commands)
    if (!batch) break
    applyBatch(replica, batch)
    commands += batch.count
    applied(raft, batch.firstIndex + batch.count - 1, batch.count, batch.bytes.length)
    observeCommits(replica)
  }
  if (commands === 0) return replica.onSettled?.()
  replica.machine.publish(raft.applied)
  sendAnswers(replica)
  afterApply(replica)
  if (raft.applied < raft.commit) {
    replica.isApplying = true
    env.schedule.after(0, () => {
      replica.isApplying = false
      applyCommitted(replica)
    })
  } else replica.onSettled?.()
}

/** Time from a proposal to its last entry being applied. */
function observeCommits(replica: Replica): void {
  const { raft, proposedAt, env } = replica
  while ((proposedAt[0]?.lastIndex ?? raft.applied + 1) <= raft.applied) {
    const proposal = proposedAt.shift()
    if (proposal) observe(replica.commitTime, (env.clock.monotonicMs() - proposal.atMs) / 1000)
  }
}

function applyBatch(replica: Replica, batch: EntryBatch): void {
  const view = viewOf(batch.bytes)
  let at = 0
  for (let i = 0; i < batch.count; i++) {
    const index = batch.firstIndex + i
    const length = entryLength(view, at)
    const start = at + ENTRY_HEADER_BYTES
    if (entryKind(view, at) === ENTRY_KIND.command) {
      const result = replica.machine.apply(index, batch.bytes, start, start + length)
      if (result.index !== index) replica.repeats++
      answer(replica, index, result)
    } else answer(replica, index, undefined)
    at = start + length
  }
  assert(at === batch.bytes.length, 'entries fill their batch')
}

/** A8: the answer of an entry leaves when it is applied, and only once. */
function answer(replica: Replica, index: number, result: Applied | undefined): void {
  const n = index - replica.waitingFrom
  if (n < 0 || n >= replica.waitingSinks.length) return
  const sink = replica.waitingSinks[n] as number
  if (sink > 0 && result) {
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

function sendAnswers(replica: Replica): void {
  for (const answers of replica.sinks) {
    if (answers.at === 0) continue
    answers.sink(answers.buffer.slice(0, answers.at))
    answers.at = 0
  }
}

function afterApply(replica: Replica): void {
  const { raft, machine } = replica
  const mark = machine.digestMark()
  if (mark && mark.index > replica.lastDigestIndex && !replica.isStopping) logDigest(replica, mark)
  if (raft.applied - replica.snapshotIndexLast >= replica.snapshotTriggerCount) startSnapshot(replica, 'periodic')
  if (machine.lastMaintenanceDay() === replica.maintenanceDay && replica.maintenanceDay !== 0)
    finishMaintenance(replica)
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
  if (replica.snapshotRunning) return false
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
  replica.snapshotIndexBefore = replica.snapshotIndexLast
  replica.snapshotIndexLast = index
  replica.nextSnapshotMs = now + replica.snapshotIntervalMs
  replica.snapshotEarliestMs = now + SNAPSHOT_REST * durationMs
  observe(replica.snapshotTime, durationMs / 1000)
  const { raft } = replica
  replica.log({
    type: 'mark',
    mark: { index, term },
    hardState: { term: raft.term, vote: raft.vote, commit: raft.commit },
  })
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
  storeCommit(replica.raft)
  pump(replica)
}

/** Takes no more proposals and resolves when everything accepted is applied and answered, and its commit index stored. */
export function drainReplica(replica: Replica): Promise<void> {
  replica.isStopping = true
  const { raft } = replica
  return new Promise((resolve) => {
    let isLast = false
    const look = () => {
      if (raft.handed.length > 0 || raft.unsent.length > 0 || raft.applied < raft.lastIndex) return
      if (isLast) return resolve()
      // Once: a full disk may have no room for it, and it is not needed.
      isLast = true
      storeCommit(raft)
      if (hasReady(raft)) pump(replica)
      else resolve()
    }
    replica.onSettled = look
    look()
  })
}

export function statusOf(replica: Replica): ReplicaStatus {
  const { raft, machine } = replica
  const stall = replica.stallMs
  replica.stallMs = 0
  const copy = ({ bounds, counts, sum }: MutableBuckets): Buckets => ({ bounds, counts: [...counts], sum })
  return {
    role: raft.role === 'leader' ? 'leader' : 'follower',
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
    diskFreeBytes: replica.freeBytes(),
    diskFull: replica.isDiskFull,
  }
}
