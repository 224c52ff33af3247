/**
 * Messages from one thread to another through a ring in shared memory, in order. A message port copies an object in
 * several times as long, and wakes an event loop, which takes as long again.
 *
 *   ring   u32 length · 4 bytes · the message, in multiples of 8, repeated; a length of REST: go on at the start
 *
 * What does not fit the ring goes through the port beside it. The sender uses the ring only while nothing that it
 * posted is untaken: so the receiver takes what is in the ring first.
 *
 * A receiver has one bell for all its pipes. It hears it where it waits on shared memory (`waitForRing`). Before it
 * goes back to its event loop it says so (`mayRest`), and the next sender posts `null`.
 */

import { MessageChannel, type MessagePort, receiveMessageOnPort, type Transferable } from 'node:worker_threads'

/** Number of rings · 1 while its thread is in its event loop. */
export type Bell = Int32Array<SharedArrayBuffer>

export function createBell(): Bell {
  return new Int32Array(new SharedArrayBuffer(8))
}

/** Read it before the pipes, so that no ring is missed. */
export function rings(bell: Bell): number {
  return Atomics.load(bell, 0)
}

/** Blocks the thread until there were other rings than `heard`. */
export function waitForRing(bell: Bell, heard: number, timeoutMs?: number): void {
  Atomics.wait(bell, 0, heard, timeoutMs)
}

/** The thread looks at its pipes, for whatever reason: the next ring need not go through its event loop. */
export function rise(bell: Bell): void {
  Atomics.store(bell, 1, 0)
}

/** @returns whether the event loop will hear of all that came after `heard` */
export function mayRest(bell: Bell, heard: number): boolean {
  Atomics.store(bell, 1, 1)
  if (rings(bell) === heard) return true
  rise(bell)
  return false
}

/** Of the ring: a power of two. */
const RING_BYTES = 1 << 16
/** A longer message is as fast through the port. */
const MESSAGE_BYTES_MAX = RING_BYTES / 4
const REST = 0xff_ff_ff_ff
const HEADER_BYTES = 8
const CELLS_BYTES = 16
/** Bytes put and bytes free again, counted up modulo 2^32, and messages taken from the port. */
const CELL = { put: 0, freed: 1, taken: 2 } as const

/** One end of a pipe in each direction. */
export type PipeEnd = {
  readonly port: MessagePort
  readonly incoming: SharedArrayBuffer
  readonly outgoing: SharedArrayBuffer
  /** Of the thread at this end, and at the other one. */
  readonly bell: Bell
  readonly otherBell: Bell
}

/** @returns the ends for the threads that have these bells */
export function createPipes(bell: Bell, otherBell: Bell): readonly [PipeEnd, PipeEnd] {
  const { port1, port2 } = new MessageChannel()
  const incoming = new SharedArrayBuffer(CELLS_BYTES + RING_BYTES)
  const outgoing = new SharedArrayBuffer(CELLS_BYTES + RING_BYTES)
  return [
    { port: port1, incoming, outgoing, bell, otherBell },
    { port: port2, incoming: outgoing, outgoing: incoming, bell: otherBell, otherBell: bell },
  ]
}

type Ring = { readonly cells: Int32Array; readonly view: DataView; readonly bytes: Uint8Array }

function ringOn(memory: SharedArrayBuffer): Ring {
  const bytes = new Uint8Array(memory, CELLS_BYTES)
  return { cells: new Int32Array(memory, 0, 3), view: new DataView(memory, CELLS_BYTES), bytes }
}

/** How messages look in the ring. */
export type Encoding<Message> = {
  /** Bytes of a message, in multiples of 8; undefined for one that goes through the port. */
  readonly length: (message: Message) => number | undefined
  readonly write: (message: Message, view: DataView, bytes: Uint8Array, at: number) => void
  /** The message may refer to `bytes` until it is handled. */
  readonly read: (view: DataView, bytes: Uint8Array, at: number) => Message
}

/** @param isQuiet the receiver takes it when it next looks; it is not woken */
export type Send<Message> = (message: Message, transfer?: readonly Transferable[], isQuiet?: boolean) => void

export function createSender<Message>(
  { port, outgoing, otherBell }: PipeEnd,
  { length, write }: Encoding<Message>,
): Send<Message> {
  const { cells, view, bytes } = ringOn(outgoing)
  let put = 0
  let posted = 0
  /** @returns where there are so many bytes in one piece; undefined without room */
  const reserve = (needed: number): number | undefined => {
    const at = put & (RING_BYTES - 1)
    const left = RING_BYTES - at
    const skipped = needed > left ? left : 0
    const used = (put - Atomics.load(cells, CELL.freed)) | 0
    if (used + skipped + needed > RING_BYTES) return undefined
    if (skipped > 0) view.setUint32(at, REST, true)
    put = (put + skipped) | 0
    return skipped > 0 ? 0 : at
  }
  return (message, transfer = [], isQuiet = false) => {
    const size = length(message)
    const fits = size !== undefined && size <= MESSAGE_BYTES_MAX && posted === Atomics.load(cells, CELL.taken)
    const at = fits ? reserve(HEADER_BYTES + size) : undefined
    if (at === undefined || size === undefined) {
      posted = (posted + 1) | 0
      port.postMessage(message, [...transfer])
    } else {
      view.setUint32(at, size, true)
      write(message, view, bytes, at + HEADER_BYTES)
      put = (put + HEADER_BYTES + size) | 0
      Atomics.store(cells, CELL.put, put)
    }
    Atomics.add(otherBell, 0, 1)
    if (isQuiet) return
    // Also behind a message that was posted: the receiver may have taken it and gone back to rest before this ring.
    if (Atomics.exchange(otherBell, 1, 0) === 1) port.postMessage(null)
    else Atomics.notify(otherBell, 0)
  }
}

/** Has `handle` take all that is there, and answers how many messages that were. `first` came with an event. */
export type Receive<Message> = (handle: (messages: readonly Message[]) => void, first?: Message | null) => number

export function createReceiver<Message>({ port, incoming }: PipeEnd, { read }: Encoding<Message>): Receive<Message> {
  const { cells, view, bytes } = ringOn(incoming)
  let at = 0
  const takeRing = (messages: Message[]) => {
    for (const end = Atomics.load(cells, CELL.put); at !== end; ) {
      const start = at & (RING_BYTES - 1)
      const size = view.getUint32(start, true)
      if (size === REST) at = (at + RING_BYTES - start) | 0
      else {
        messages.push(read(view, bytes, start + HEADER_BYTES))
        at = (at + HEADER_BYTES + size) | 0
      }
    }
  }
  // All that was sent before it is in the ring by now, and nothing that was sent after it.
  const takePosted = (messages: Message[], posted: Message | null): number => {
    if (posted === null) return 0
    takeRing(messages)
    messages.push(posted)
    return 1
  }
  return (handle, first = null) => {
    const messages: Message[] = []
    let posted = takePosted(messages, first)
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
      posted += takePosted(messages, next.message)
    takeRing(messages)
    if (messages.length > 0) handle(messages)
    Atomics.store(cells, CELL.freed, at)
    if (posted > 0) Atomics.add(cells, CELL.taken, posted)
    return messages.length
  }
}
