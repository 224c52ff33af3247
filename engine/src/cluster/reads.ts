/**
 * Reads that need a word of the shard before they may be served here, leader or follower (consensus.md §9, §14).
 *
 *   gathering ── round sent ──► in a round ── index confirmed ──► waiting for apply ──► answered
 *       ▲                            │ no answer in time
 *       └────────────────────────────┘
 *
 * A round is one ReadIndex of the core. It is sent every heartbeat interval, whoever waits, and at once when a
 * linearizable read comes; reads that come while enough rounds are on their way share the next one. When the index that
 * a round brought is applied here, everything that was acknowledged before the round was sent is applied here: that
 * moment is the freshness of the node, measured by one clock alone.
 *
 * A read with a least index waits for that index only, and needs no round.
 *
 * The driver owns the core: after every call that may start a round it takes what is ready (`pump`).
 */

import { assert } from '@vacancy/shared'
import { READ_CELLS } from '../threads/reads.ts'
import { REFUSED } from '../threads/writes.ts'

export const READ_LIMITS = {
  /** Reads of all serving threads that wait; beyond: overloaded (consensus.md §21). */
  waiting: 10_000,
  /** A read with a least index waits this long, then it is for the leader to answer. */
  minIndexWaitMs: 200,
  /** A linearizable read waits this long: inside the 1,400 ms of a bridge, as a write does (X6). */
  linearizableWaitMs: 1_200,
  /** Rounds without an answer; what comes meanwhile shares the next one. */
  roundsAsked: 4,
  /** Rounds whose index is not applied yet; a node that is that far behind sends no more of its own accord. */
  roundsUnapplied: 64,
} as const

/** A round that had no answer after this many heartbeat intervals is taken for lost. */
const ROUND_HEARTBEATS = 3

export type ReadsParts = {
  readonly nowMs: () => number
  /** The core's `readIndex`. */
  readonly readIndex: (context: number) => 'taken' | DropReason
  /** Applied, and published to the readers of this node. */
  readonly applied: () => number
  readonly commit: () => number
  /** Code 0: may be served at `index`; else one of REFUSED. */
  readonly answer: (sink: number, token: number, code: number, index: number) => void
  readonly heartbeatMs: number
  /**
   * Drawn anew at every start, 0 to 2^48: an answer that was on its way while the node restarted must not be taken for
   * one to a question of this life.
   */
  readonly firstContext: number
  readonly defects?: ReadonlySet<string> | undefined
}

/** Why the core does not take a read, or gave one up. */
export type DropReason = 'not-leader' | 'no-leader' | 'overloaded' | 'transferring'

type WaitingRead = {
  readonly sink: number
  readonly token: number
  readonly isLinearizable: boolean
  /** To be applied before it is answered; grows with the index of its round. */
  index: number
  readonly deadlineMs: number
}

type Round = {
  readonly context: number
  readonly sentMs: number
  /** Committed here when it was sent: no answer may lie below (A14). */
  readonly commit: number
  reads: WaitingRead[]
}

export type Reads = ReadsParts & {
  /** Everything acknowledged in the shard before this moment is applied here; −∞ at first. */
  freshMs: number
  /** All that wait, oldest first. */
  readonly waiting: Set<WaitingRead>
  gathering: WaitingRead[]
  readonly asked: Map<number, Round>
  /** Confirmed, to be applied. */
  unapplied: { readonly index: number; readonly sentMs: number }[]
  /** Reads whose index is known, by ascending index. */
  readonly ordered: WaitingRead[]
  nextContext: number
  nextRoundMs: number
  rounds: number
}

export function createReads(parts: ReadsParts): Reads {
  const { firstContext } = parts
  assert(Number.isSafeInteger(firstContext) && firstContext >= 0, 'contexts are whole numbers')
  return {
    ...parts,
    freshMs: Number.NEGATIVE_INFINITY,
    waiting: new Set(),
    gathering: [],
    asked: new Map(),
    unapplied: [],
    ordered: [],
    nextContext: firstContext,
    nextRoundMs: Number.NEGATIVE_INFINITY,
    rounds: 0,
  }
}

/** Takes a batch of reads of one serving thread (threads/reads.ts). */
export function askReads(reads: Reads, sink: number, batch: Float64Array): void {
  assert(batch.length % READ_CELLS === 0, 'a batch holds whole reads')
  const nowMs = reads.nowMs()
  for (let at = 0; at < batch.length; at += READ_CELLS) {
    takeRead(reads, nowMs, sink, batch[at] as number, batch[at + 1] === 1, batch[at + 2] as number)
  }
  if (reads.gathering.length > 0) sendRound(reads)
}

function takeRead(
  reads: Reads,
  nowMs: number,
  sink: number,
  token: number,
  isLinearizable: boolean,
  minIndex: number,
): void {
  if (!isLinearizable && minIndex <= reads.applied()) return reads.answer(sink, token, 0, reads.applied())
  if (reads.waiting.size >= READ_LIMITS.waiting) return reads.answer(sink, token, REFUSED.overloaded, 0)
  const waitMs = isLinearizable ? READ_LIMITS.linearizableWaitMs : READ_LIMITS.minIndexWaitMs
  const read = { sink, token, isLinearizable, index: minIndex, deadlineMs: nowMs + waitMs }
  reads.waiting.add(read)
  if (isLinearizable) reads.gathering.push(read)
  else putInOrder(reads, read)
}

/** Sends a round for all that gathered, unless enough are on their way: then the next answer does. */
function sendRound(reads: Reads): void {
  if (reads.asked.size >= READ_LIMITS.roundsAsked) return
  const context = reads.nextContext++
  assert(Number.isSafeInteger(context), 'contexts do not run out')
  const round: Round = { context, sentMs: reads.nowMs(), commit: reads.commit(), reads: reads.gathering }
  reads.gathering = []
  reads.asked.set(context, round)
  reads.rounds++
  const taken = reads.readIndex(context)
  if (taken !== 'taken') dropRound(reads, context, taken)
}

/** The core confirmed a round (`readStates` of a hand-over). */
export function onReadState(reads: Reads, context: number, index: number): void {
  const round = reads.asked.get(context)
  // Taken for lost before: its reads are in another one.
  if (!round) return
  assert(index >= round.commit, 'a read index is not below what was committed when it was asked for (A14)')
  reads.asked.delete(context)
  const applied = reads.defects?.has('reads/served-before-applied') ? Number.POSITIVE_INFINITY : reads.applied()
  if (index <= applied) reads.freshMs = Math.max(reads.freshMs, round.sentMs)
  else reads.unapplied.push({ index, sentMs: round.sentMs })
  for (const read of round.reads) {
    if (!reads.waiting.has(read)) continue
    // The index that was confirmed is the one that is waited for (RI5).
    read.index = Math.max(read.index, index)
    if (read.index <= applied) release(reads, read)
    else putInOrder(reads, read)
  }
  if (reads.gathering.length > 0) sendRound(reads)
}

/** The core gave a round up, as after losing leadership (RI6; `droppedReads` of a hand-over). */
export function onReadDropped(reads: Reads, context: number, reason: DropReason): void {
  dropRound(reads, context, reason)
  if (reads.gathering.length > 0) sendRound(reads)
}

function dropRound(reads: Reads, context: number, reason: DropReason): void {
  const round = reads.asked.get(context)
  reads.asked.delete(context)
  const code = reason === 'overloaded' ? REFUSED.overloaded : REFUSED.noLeader
  for (const read of round?.reads ?? []) settle(reads, read, code, 0)
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

/** Time has passed: lost rounds, limits of waiting, and the round of this heartbeat interval. */
export function tickReads(reads: Reads): void {
  const nowMs = reads.nowMs()
  for (const [context, round] of reads.asked) {
    if (nowMs - round.sentMs < ROUND_HEARTBEATS * reads.heartbeatMs) continue
    reads.asked.delete(context)
    // A later round is as good for them: what they must see was acknowledged before they came.
    reads.gathering.unshift(...round.reads.filter((read) => reads.waiting.has(read)))
  }
  expire(reads, nowMs)
  const isDue = nowMs >= reads.nextRoundMs && reads.unapplied.length < READ_LIMITS.roundsUnapplied
  if (isDue) reads.nextRoundMs = nowMs + reads.heartbeatMs
  if (isDue || reads.gathering.length > 0) sendRound(reads)
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
  reads.gathering = reads.gathering.filter(isWaiting)
  for (const round of reads.asked.values()) round.reads = round.reads.filter(isWaiting)
  const left = reads.ordered.filter(isWaiting)
  reads.ordered.splice(0, reads.ordered.length, ...left)
}

/**
 * Answers everything that waits: the node stops, or stops serving.
 *
 * @param code one of REFUSED
 */
export function refuseReads(reads: Reads, code: number): void {
  assert(code !== 0, 'a read that is refused is not served')
  for (const read of reads.waiting) settle(reads, read, code, 0)
  reads.gathering = []
  reads.ordered.length = 0
  for (const round of reads.asked.values()) round.reads = []
}

function release(reads: Reads, read: WaitingRead): void {
  settle(reads, read, 0, Math.max(read.index, reads.applied()))
}

function settle(reads: Reads, read: WaitingRead, code: number, index: number): void {
  if (!reads.waiting.delete(read)) return
  reads.answer(read.sink, read.token, code, index)
}

/** Behind those of its index: most come with the greatest. */
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
