/**
 * A user-space proxy for one directed network link: simulates partitions, slow links and resets for the processes at
 * its ends, without privileges.
 *
 *   dialler ──► listener of the link ══ forward ══► target
 *           ◄══════════════════════════ backward ══
 *
 * A held direction delivers no bytes and no connection ends: as with packet loss, the other side receives nothing, and
 * data in flight arrives when the link heals. Closing the listener makes connection attempts fail immediately, as
 * without a listening process.
 */

import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { assert } from '@vacancy/shared'

export type Place = { readonly host: string; readonly port: number }

export type Condition = {
  /** Holds bytes from the dialler, or to it. */
  readonly holdsForward: boolean
  readonly holdsBackward: boolean
  /** Delay per direction. */
  readonly delayMs: number
  /** Rate per direction and connection; 0 = unlimited. */
  readonly bytesPerSecond: number
}

export const OPEN: Condition = { holdsForward: false, holdsBackward: false, delayMs: 0, bytesPerSecond: 0 }

export type Relay = {
  /** Where it listens. */
  readonly at: Place
  /** Sets the behaviour of open and new connections. */
  readonly set: (condition: Condition) => void
  /** Holds both directions, like an unplugged cable. */
  readonly cut: () => void
  /** Lets everything through; bytes in flight arrive, as if TCP had sent them again. */
  readonly mend: () => void
  /** Ends all connections with a reset on both sides. */
  readonly reset: () => void
  /** Whether the link accepts connections. */
  readonly listen: (isListening: boolean) => Promise<void>
  readonly close: () => Promise<void>
}

/** Maximum buffered bytes per direction; beyond it the source is paused. */
const QUEUED_BYTES_MAX = 256 << 10

type Pipe = { readonly wake: () => void }
type State = { condition: Condition; readonly sockets: Set<Socket>; readonly pipes: Set<Pipe> }

/** Opens a link that listens on `at` and connects to `target`. */
export async function openLink(at: Place, target: Place): Promise<Link> {
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
    // Handled by the `close` event.
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
    // A reset connection loses data in flight; a closed one delivers it.
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
    // The receiver is gone.
    queue.length = 0
    source.resume()
  })
}
