/**
 * A TCP relay for one directed link of a network: what a partition, a slow line and a reset look like to the processes at
 * its ends, without privileges.
 *
 *   dialler ──► listener of the link ══ forward ══► target
 *           ◄══════════════════════════ backward ══
 *
 * A direction that is held takes no bytes out of its queue, and no end of a connection either: as with lost packets, the
 * other side hears nothing, and what was under way arrives when the link heals. Closing the listener makes attempts to
 * connect fail at once, as where no process listens.
 */

import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { assert } from '@vacancy/shared'

export type Place = { readonly host: string; readonly port: number }

export type Condition = {
  /** Bytes from the dialler, or to it, wait. */
  readonly holdsForward: boolean
  readonly holdsBackward: boolean
  /** Each way. */
  readonly delayMs: number
  /** Each way, a connection; 0 = as fast as it goes. */
  readonly bytesPerSecond: number
}

export const OPEN: Condition = { holdsForward: false, holdsBackward: false, delayMs: 0, bytesPerSecond: 0 }

export type Relay = {
  /** Where it listens. */
  readonly at: Place
  /** What holds from now on, for open connections as for new ones. */
  readonly set: (condition: Condition) => void
  /** Holds both directions, like an unplugged cable. */
  readonly cut: () => void
  /** Lets everything through; bytes in flight arrive, as if TCP had sent them again. */
  readonly mend: () => void
  /** Ends all connections with a reset on both sides. */
  readonly reset: () => void
  /** Whether anything listens at this end. */
  readonly listen: (isListening: boolean) => Promise<void>
  readonly close: () => Promise<void>
}

/** What is read of one direction and not written yet; then its source is not read from. */
const QUEUED_BYTES_MAX = 256 << 10

type Pipe = { readonly wake: () => void }
type State = { condition: Condition; readonly sockets: Set<Socket>; readonly pipes: Set<Pipe> }

/** Opens a relay that leads to `target`; without `at` it listens on a free port of 127.0.0.1. */
export async function openRelay(target: Place, at: Place = { host: '127.0.0.1', port: 0 }): Promise<Relay> {
  const state: State = { condition: OPEN, sockets: new Set(), pipes: new Set() }
  let { port } = at
  let server: Server | undefined
  const listen = async (isListening: boolean) => {
    if (isListening === (server !== undefined)) return
    if (!isListening) {
      server?.close()
      server = undefined
      return
    }
    const opened = createServer({ allowHalfOpen: true }, (dialler) => accept(state, dialler, target))
    server = opened
    await new Promise<void>((resolve, reject) => {
      opened.once('error', reject)
      opened.listen(port, at.host, () => resolve())
    })
    port = (opened.address() as AddressInfo).port
  }
  await listen(true)
  const set = (condition: Condition) => {
    assert(condition.delayMs >= 0 && condition.bytesPerSecond >= 0, 'a link has a delay and a rate')
    state.condition = condition
    for (const pipe of [...state.pipes]) pipe.wake()
  }
  const reset = () => {
    for (const socket of state.sockets) socket.resetAndDestroy()
  }
  return {
    at: { host: at.host, port },
    set,
    cut: () => set({ ...OPEN, holdsForward: true, holdsBackward: true }),
    mend: () => set(OPEN),
    reset,
    listen,
    async close() {
      await listen(false)
      reset()
    },
  }
}

function accept(state: State, dialler: Socket, target: Place): void {
  const acceptor = connect({ ...target, allowHalfOpen: true })
  for (const socket of [dialler, acceptor]) {
    socket.setNoDelay(true)
    state.sockets.add(socket)
    socket.on('close', () => state.sockets.delete(socket))
    // What became of it is told by `close`.
    socket.on('error', () => undefined)
  }
  pipe(state, dialler, acceptor, (condition) => condition.holdsForward)
  pipe(state, acceptor, dialler, (condition) => condition.holdsBackward)
}

type Piece = { readonly bytes: Buffer; readonly dueMs: number }

/** One direction of one connection. */
function pipe(state: State, source: Socket, target: Socket, isHeld: (condition: Condition) => boolean): void {
  const queue: Piece[] = []
  let queued = 0
  let freeMs = 0
  let ended: 'no' | 'end' | 'closed' = 'no'
  let timer: NodeJS.Timeout | undefined
  const wake = () => {
    clearTimeout(timer)
    timer = undefined
    if (isHeld(state.condition)) return
    for (let piece = queue[0]; piece; piece = queue[0]) {
      const nowMs = performance.now()
      const dueMs = Math.max(piece.dueMs, freeMs)
      if (dueMs > nowMs) {
        timer = setTimeout(wake, dueMs - nowMs)
        return
      }
      if (target.writableNeedDrain && !target.destroyed) return
      const { bytesPerSecond } = state.condition
      freeMs = bytesPerSecond > 0 ? nowMs + (piece.bytes.length * 1_000) / bytesPerSecond : 0
      queue.shift()
      queued -= piece.bytes.length
      target.write(piece.bytes)
    }
    if (source.isPaused()) source.resume()
    if (ended === 'end') target.end()
    if (ended === 'closed') target.destroy()
  }
  const self = { wake }
  state.pipes.add(self)
  source.on('data', (bytes: Buffer) => {
    queue.push({ bytes, dueMs: performance.now() + state.condition.delayMs })
    queued += bytes.length
    if (queued > QUEUED_BYTES_MAX) source.pause()
    wake()
  })
  target.on('drain', wake)
  source.on('end', () => {
    ended = 'end'
    wake()
  })
  source.on('close', (hadError) => {
    // A broken connection loses what is under way; a closed one delivers it.
    if (hadError && !isHeld(state.condition)) {
      queue.length = 0
      target.resetAndDestroy()
    }
    ended = 'closed'
    wake()
  })
  target.on('close', () => {
    clearTimeout(timer)
    state.pipes.delete(self)
    // Nobody takes these bytes any more.
    queue.length = 0
    source.resume()
  })
}
