/**
 * Replies that the replica writes to a client's socket itself. A client that sends one write at a time waits for its
 * sync and for threads to be woken: the serving thread need not be one of them, and may be busy with searches.
 *
 * The serving thread offers the reply of a write, complete but for its outcome. If the write succeeds, the replica
 * takes the offer. The answer still goes to the serving thread (threads/writes.ts), which is not woken for it.
 *
 *   free → offered → taken → written → free    (taken, written: by the replica; the others by the serving thread)
 *
 * Before the serving thread writes to that socket, or closes it so that its descriptor may become another client's, it
 * ends the offer. Before it ends itself, all offers are closed.
 */

import { writeSync } from 'node:fs'
import { assert } from '@vacancy/shared'
import { commonClockOffsetMs } from './clock.ts'
import { ANSWER_BYTES, ATTACHED } from './writes.ts'

const STATE = { free: 0, offered: 1, taken: 2, written: 3 } as const
const SLOTS = 16
/** With more writes in flight, the replica has better things to do. */
export const OFFERS_MAX = SLOTS / 2
const SLOT_BYTES = 128
/** The replica may have failed meanwhile. */
const CLOSE_MS = 1_000
/** Behind the slots, as i32: 1 once no offer may be taken any more. */
const CLOSED = (SLOTS * SLOT_BYTES) / Int32Array.BYTES_PER_ELEMENT
/** Of a slot, as i32. `written`: bytes that the kernel took. */
const CELL = { state: 0, token: 1, descriptor: 2, length: 3, valueAt: 4, indexAt: 5, written: 6 } as const
/** When the offer was taken, as f64, in milliseconds common to all threads. */
const TAKEN_AT = 32
const REPLY_AT = 40

export type DirectReplies = {
  readonly cells: Int32Array
  readonly view: DataView
  readonly bytes: Buffer
  readonly clockOffsetMs: number
}

export function createDirectReplies(): SharedArrayBuffer {
  return new SharedArrayBuffer(SLOTS * SLOT_BYTES + 8)
}

export function attachDirectReplies(memory: SharedArrayBuffer): DirectReplies {
  return {
    cells: new Int32Array(memory),
    view: new DataView(memory),
    bytes: Buffer.from(memory),
    clockOffsetMs: commonClockOffsetMs(),
  }
}

/** First byte of the slot of a write, by its token. */
const slotOf = (token: number) => (token % SLOTS) * SLOT_BYTES
const cellsAt = (slot: number) => slot / Int32Array.BYTES_PER_ELEMENT

/** The reply to a successful write. */
export type ReplyForm = {
  /** Writes it with zeros as its outcome. @returns its end */
  readonly write: (bytes: Uint8Array, at: number, end: number) => number
  /** Where the new availability and the index are, counted from its end; 0: it has none. */
  readonly valueFromEnd: number
  readonly indexFromEnd: number
}

/** @returns false without a free slot, or where descriptors are not known */
export function offerReply(replies: DirectReplies, token: number, descriptor: number, form: ReplyForm): boolean {
  const { cells, bytes } = replies
  const slot = slotOf(token)
  const at = cellsAt(slot)
  if (descriptor < 0 || Atomics.load(cells, at + CELL.state) !== STATE.free) return false
  const length = form.write(bytes, slot + REPLY_AT, slot + SLOT_BYTES) - slot - REPLY_AT
  cells[at + CELL.token] = token
  cells[at + CELL.descriptor] = descriptor
  cells[at + CELL.length] = length
  cells[at + CELL.valueAt] = form.valueFromEnd > 0 ? length - form.valueFromEnd : 0
  cells[at + CELL.indexAt] = form.indexFromEnd > 0 ? length - form.indexFromEnd : 0
  Atomics.store(cells, at + CELL.state, STATE.offered)
  return true
}

/** When the replica took an offer, on the clock of the calling thread, and the bytes of the reply. */
export type TakenOffer = { readonly atMs: number; readonly bytes: number }

/** @returns undefined if the replica has not taken the offer */
export function takenOffer({ cells, view, clockOffsetMs }: DirectReplies, token: number): TakenOffer | undefined {
  const slot = slotOf(token)
  const at = cellsAt(slot)
  if (Atomics.load(cells, at + CELL.state) < STATE.taken) return undefined
  return { atMs: view.getFloat64(slot + TAKEN_AT, true) - clockOffsetMs, bytes: cells[at + CELL.length] as number }
}

/** Whether `endOffer` would wait. */
export function isBeingWritten({ cells }: DirectReplies, token: number): boolean {
  return Atomics.load(cells, cellsAt(slotOf(token)) + CELL.state) === STATE.taken
}

/**
 * Waits for a write that has begun, which takes microseconds.
 *
 * @returns undefined if the offer was not taken, otherwise what the kernel has not taken of the reply
 */
export function endOffer(replies: DirectReplies, token: number): (TakenOffer & { rest: Uint8Array }) | undefined {
  const { cells, bytes } = replies
  const slot = slotOf(token)
  const at = cellsAt(slot)
  while (Atomics.load(cells, at + CELL.state) !== STATE.written) {
    if (Atomics.compareExchange(cells, at + CELL.state, STATE.offered, STATE.free) === STATE.offered) return undefined
    untilWritten(cells, at)
  }
  const taken = takenOffer(replies, token)
  assert(taken !== undefined, 'an offer ends once')
  const start = slot + REPLY_AT
  const rest = Buffer.from(bytes.subarray(start + (cells[at + CELL.written] as number), start + taken.bytes))
  Atomics.store(cells, at + CELL.state, STATE.free)
  return { ...taken, rest }
}

/** Offers that the replica has taken: their slots. */
export type Taken = { readonly slots: readonly number[]; readonly areAll: boolean }

const NONE: Taken = { slots: [], areAll: false }

/** Takes the offers of successful writes and completes the replies. `writeReplies` follows. */
export function takeOffers(replies: DirectReplies, answers: ArrayBuffer): Taken {
  if (answers.byteLength > OFFERS_MAX * ANSWER_BYTES) return NONE
  const { cells, view: slots, clockOffsetMs } = replies
  const view = new DataView(answers)
  const taken: number[] = []
  let count = 0
  for (let from = 0; from < answers.byteLength; count++) {
    const [token, code] = [view.getUint32(from, true), view.getUint8(from + 4)]
    const [value, attached] = [view.getUint8(from + 5), view.getUint16(from + 6, true)]
    const index = view.getFloat64(from + 8, true)
    from += ANSWER_BYTES
    if (attached !== ATTACHED.none) from += 4 + view.getUint32(from, true)
    if (code !== 0 || attached !== ATTACHED.none) continue
    const slot = slotOf(token)
    const at = cellsAt(slot)
    if (cells[at + CELL.token] !== (token | 0)) continue
    if (Atomics.compareExchange(cells, at + CELL.state, STATE.offered, STATE.taken) !== STATE.offered) continue
    // Looked at after the state was set: either this thread sees the end, or `closeOffers` sees the state.
    if (Atomics.load(cells, CLOSED) === 1) {
      setState(cells, at, STATE.offered)
      continue
    }
    const [valueAt, indexAt] = [cells[at + CELL.valueAt] as number, cells[at + CELL.indexAt] as number]
    if (valueAt > 0) slots.setUint8(slot + REPLY_AT + valueAt, value)
    if (indexAt > 0) slots.setBigUint64(slot + REPLY_AT + indexAt, BigInt(index), true)
    slots.setFloat64(slot + TAKEN_AT, performance.now() + clockOffsetMs, true)
    taken.push(slot)
  }
  return { slots: taken, areAll: taken.length === count }
}

/** Writes them to their sockets, after their answers were sent to the serving thread. */
export function writeReplies({ cells, bytes }: DirectReplies, { slots }: Taken): void {
  for (const slot of slots) {
    const at = cellsAt(slot)
    let written = 0
    try {
      written = writeSync(cells[at + CELL.descriptor] as number, bytes, slot + REPLY_AT, cells[at + CELL.length])
    } catch {
      // The client does not read, or is gone. The serving thread sends what is left, and meets the same.
    }
    cells[at + CELL.written] = written
    setState(cells, at, STATE.written)
  }
}

/** Before the serving thread ends, and its descriptors become those of other files. */
export function closeOffers(memory: SharedArrayBuffer): void {
  const cells = new Int32Array(memory)
  Atomics.store(cells, CLOSED, 1)
  for (let slot = 0; slot < SLOTS; slot++) untilWritten(cells, cellsAt(slot * SLOT_BYTES), CLOSE_MS)
}

function setState(cells: Int32Array, at: number, state: number): void {
  Atomics.store(cells, at + CELL.state, state)
  Atomics.notify(cells, at + CELL.state)
}

/** Waits for a write that has begun, which takes microseconds. */
function untilWritten(cells: Int32Array, at: number, timeoutMs?: number): void {
  Atomics.wait(cells, at + CELL.state, STATE.taken, timeoutMs)
}
