/**
 * Reads that the shard must confirm before this node, leader or follower, may serve them
 * (docs/design/consensus.md#reads).
 *
 *   pending ── round sent ──► in a round ── index confirmed ──► waiting for apply ──► answered
 *       ▲                          │ no reply in time
 *       └──────────────────────────┘
 *
 * A round is one ReadIndex of the core. A round is sent every heartbeat interval, and at once for a linearizable read.
 * Reads that arrive while the limit of rounds is in flight share the next one. When the index of a round is applied
 * here, so is everything acknowledged before the round was sent. That moment is the freshness of the node, measured by
 * one clock alone.
 *
 * A read with a least index waits for that index only. If this node does not know the index to be committed by the next
 * tick, a round shows whether the shard has it: whoever knows an index was told so before, and a confirmed index is not
 * below it. An index that no entry has is of another life of the data. Until that life has begun here, the indexes of
 * the former one are not below it yet: the read waits for the entry that begins it.
 *
 * The driver owns the core: after every call that may start a round it takes the ready work (`pump`).
 */

import { assert } from '@vacancy/shared'
import { READ_CELLS } from '../threads/reads.ts'
import { REFUSED } from '../threads/writes.ts'

export const READ_LIMITS = {
  /** Waiting reads of all serving threads; beyond this: overloaded (docs/design/consensus.md#limits). */
  waiting: 10_000,
  /** A read with a least index waits this long. After that the leader has to answer it. */
  minIndexWaitMs: 200,
  /**
   * A linearizable read waits this long, within the 1,400 ms of a bridge, as a write does
   * (docs/design/consensus.md#outcome-of-a-proposal).
   */
  linearizableWaitMs: 1_200,
  /** Rounds without a reply; later reads share the next one. */
  roundsInFlight: 4,
  /** Rounds whose index is not applied yet. A node this far behind sends no periodic rounds. */
  roundsUnapplied: 64,
} as const

/** A round without a reply is lost after this many heartbeat intervals. */
const ROUND_HEARTBEATS = 3

export type ReadsParts = {
  readonly nowMs: () => number
  /** The core's `readIndex`. */
  readonly readIndex: (context: number) => 'taken' | DropReason
  /** Applied, and published to the readers of this node. */
  readonly applied: () => number
  readonly commit: () => number
  /** What is added to an index of the log for clients. */
  readonly indexBase: () => number
  /** Whether the entry that begins the life of the shard is applied here. */
  readonly hasBegun: () => boolean
  /** Code 0: may be served at `index`, as clients see it; else one of REFUSED. */
  readonly answer: (sink: number, token: number, code: number, index: number) => void
  readonly heartbeatMs: number
  /**
   * Random at every start, 0 to 2^48: a reply to a request of the previous process must not match one of this process.
   */
  readonly firstContext: number
}

/** Why the core rejected or abandoned a read. */
export type DropReason = 'not-leader' | 'no-leader' | 'overloaded' | 'transferring'

type WaitingRead = {
  readonly sink: number
  readonly token: number
  readonly isLinearizable: boolean
  /** As clients see it; 0 for none. */
  readonly minIndex: number
  /** Index of the log to apply before the reply; of a linearizable read known with its round. */
  index: number
  readonly deadlineMs: number
}

type Round = {
  readonly context: number
  readonly sentMs: number
  /** Committed here when it was sent: no confirmed index may be lower (docs/design/consensus.md#invariants). */
  readonly commit: number
  reads: WaitingRead[]
}

export type Reads = ReadsParts & ReturnType<typeof createReads>

export function createReads(parts: ReadsParts) {
  const { firstContext } = parts
  assert(Number.isSafeInteger(firstContext) && firstContext >= 0, 'contexts are whole numbers')
  return {
    ...parts,
    /** Everything acknowledged in the shard before this moment is applied here; −∞ at first. */
    freshMs: Number.NEGATIVE_INFINITY,
    /** All waiting reads, oldest first. */
    waiting: new Set<WaitingRead>(),
    pending: [] as WaitingRead[],
    inFlight: new Map<number, Round>(),
    /** Confirmed, not yet applied. */
    unapplied: [] as { readonly index: number; readonly sentMs: number }[],
    /** Reads whose index is known, by ascending index. */
    ordered: [] as WaitingRead[],
    nextContext: firstContext,
    nextRoundMs: Number.NEGATIVE_INFINITY,
    rounds: 0,
  }
}

/** Accepts a batch of reads from one serving thread (threads/reads.ts). */
export function requestReads(reads: Reads, sink: number, batch: Float64Array): void {
  assert(batch.length % READ_CELLS === 0, 'a batch holds whole reads')
  const nowMs = reads.nowMs()
  for (let at = 0; at < batch.length; at += READ_CELLS) {
    takeRead(reads, nowMs, sink, batch[at], batch[at + 1] === 1, batch[at + 2])
  }
  // A least index may be known with the next message of the leader, sooner than with a round.
  if (reads.pending.some(({ isLinearizable }) => isLinearizable)) sendRound(reads)
}

function takeRead(
  reads: Reads,
  nowMs: number,
  sink: number,
  token: number,
  isLinearizable: boolean,
  minIndex: number,
): void {
  const index = minIndex - reads.indexBase()
  if (!isLinearizable && index <= reads.applied()) return reads.answer(sink, token, 0, servedIndex(reads))
  if (reads.waiting.size >= READ_LIMITS.waiting) return reads.answer(sink, token, REFUSED.overloaded, 0)
  const waitMs = isLinearizable ? READ_LIMITS.linearizableWaitMs : READ_LIMITS.minIndexWaitMs
  const read = { sink, token, isLinearizable, minIndex, index, deadlineMs: nowMs + waitMs }
  reads.waiting.add(read)
  if (!isLinearizable) putInOrder(reads, read)
  if (isLinearizable || index > reads.commit()) reads.pending.push(read)
}

/** Sends a round for all pending reads. At the limit of rounds in flight, the next reply sends it. */
function sendRound(reads: Reads): void {
  if (reads.inFlight.size >= READ_LIMITS.roundsInFlight) return
  const context = reads.nextContext++
  assert(Number.isSafeInteger(context), 'contexts do not run out')
  const round: Round = { context, sentMs: reads.nowMs(), commit: reads.commit(), reads: reads.pending }
  reads.pending = []
  reads.inFlight.set(context, round)
  reads.rounds++
  const taken = reads.readIndex(context)
  if (taken !== 'taken') dropRound(reads, context, taken)
}

/** The core confirmed a round (`readStates` of a hand-over). */
export function onReadState(reads: Reads, context: number, index: number): void {
  const round = reads.inFlight.get(context)
  // The round was counted as lost: its reads are in a later one.
  if (!round) return
  assert(index >= round.commit, 'a read index is not below the commit index at its request')
  reads.inFlight.delete(context)
  const applied = reads.applied()
  if (index <= applied) reads.freshMs = Math.max(reads.freshMs, round.sentMs)
  else reads.unapplied.push({ index, sentMs: round.sentMs })
  const waiting = round.reads.filter((read) => reads.waiting.has(read))
  takeOut(reads, new Set(waiting.filter(({ isLinearizable }) => !isLinearizable)))
  for (const read of waiting) {
    // The read waits for the confirmed index (docs/design/consensus.md#reads). A least index is not above it.
    read.index = index
    if (read.index <= applied) release(reads, read)
    else putInOrder(reads, read)
  }
  if (reads.pending.length > 0) sendRound(reads)
}

/**
 * The core abandoned a round, for instance after losing leadership (docs/design/consensus.md#reads; `droppedReads` of a
 * hand-over).
 */
export function onReadDropped(reads: Reads, context: number, reason: DropReason): void {
  dropRound(reads, context, reason)
  if (reads.pending.length > 0) sendRound(reads)
}

function dropRound(reads: Reads, context: number, reason: DropReason): void {
  const round = reads.inFlight.get(context)
  reads.inFlight.delete(context)
  const code = reason === 'overloaded' ? REFUSED.overloaded : REFUSED.noLeader
  // A read with a least index still waits for that: it may be applied without a round.
  for (const read of round?.reads ?? []) if (read.isLinearizable) settle(reads, read, code, 0)
}

/** Entries were applied and published. */
export function onApplied(reads: Reads): void {
  const applied = reads.applied()
  const { ordered } = reads
  let due = 0
  while (due < ordered.length && (ordered[due] as WaitingRead).index <= applied) due++
  for (const read of ordered.splice(0, due)) release(reads, read)
  if (reads.unapplied.length === 0) return
  for (const { index, sentMs } of reads.unapplied) {
    if (index <= applied) reads.freshMs = Math.max(reads.freshMs, sentMs)
  }
  reads.unapplied = reads.unapplied.filter(({ index }) => index > applied)
}

/** Time has passed: handles lost rounds, expired reads, and the round of this heartbeat interval. */
export function tickReads(reads: Reads): void {
  const nowMs = reads.nowMs()
  for (const [context, round] of reads.inFlight) {
    if (nowMs - round.sentMs < ROUND_HEARTBEATS * reads.heartbeatMs) continue
    reads.inFlight.delete(context)
    // A later round is just as valid: the writes these reads must see were acknowledged before they arrived.
    reads.pending.unshift(...round.reads.filter((read) => reads.waiting.has(read)))
  }
  expire(reads, nowMs)
  reads.pending = reads.pending.filter((read) => reads.waiting.has(read))
  const isDue = nowMs >= reads.nextRoundMs && reads.unapplied.length < READ_LIMITS.roundsUnapplied
  if (isDue) reads.nextRoundMs = nowMs + reads.heartbeatMs
  if (isDue || reads.pending.length > 0) sendRound(reads)
}

function expire(reads: Reads, nowMs: number): void {
  let expired = 0
  for (const read of reads.waiting) {
    if (nowMs < read.deadlineMs) continue
    expired++
    settle(reads, read, read.isLinearizable ? REFUSED.noLeader : REFUSED.notCaughtUp, 0)
  }
  if (expired === 0) return
  const isWaiting = (read: WaitingRead) => reads.waiting.has(read)
  for (const round of reads.inFlight.values()) round.reads = round.reads.filter(isWaiting)
  const left = reads.ordered.filter(isWaiting)
  reads.ordered.splice(0, reads.ordered.length, ...left)
}

/**
 * Refuses all waiting reads when the node stops, or stops serving.
 *
 * @param code one of REFUSED
 */
export function refuseReads(reads: Reads, code: number): void {
  assert(code !== 0, 'a read that is refused is not served')
  for (const read of reads.waiting) settle(reads, read, code, 0)
  reads.pending = []
  reads.ordered.length = 0
  for (const round of reads.inFlight.values()) round.reads = []
}

/** The applied index as clients see it. */
function servedIndex(reads: Reads): number {
  return reads.applied() + reads.indexBase()
}

function release(reads: Reads, read: WaitingRead): void {
  const served = servedIndex(reads)
  const isUnknown = read.minIndex > served
  if (isUnknown && !reads.hasBegun()) {
    read.index = reads.applied() + 1
    return putInOrder(reads, read)
  }
  settle(reads, read, isUnknown ? REFUSED.unknownIndex : 0, served)
}

function takeOut({ ordered }: Reads, out: ReadonlySet<WaitingRead>): void {
  if (out.size === 0) return
  const left = ordered.filter((read) => !out.has(read))
  ordered.splice(0, ordered.length, ...left)
}

function settle(reads: Reads, read: WaitingRead, code: number, index: number): void {
  if (!reads.waiting.delete(read)) return
  reads.answer(read.sink, read.token, code, index)
}

/** Inserts after reads of the same index: most new reads have the greatest. */
function putInOrder({ ordered }: Reads, read: WaitingRead): void {
  let low = 0
  let high = ordered.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ordered[middle] as WaitingRead).index <= read.index) low = middle + 1
    else high = middle
  }
  ordered.splice(low, 0, read)
}
