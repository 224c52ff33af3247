/**
 * What forwarding needs of the outside: time, chance and connections. The model replaces it (proofs/fabric-model), so that
 * the same code runs over connections that are cut, stalled and reordered.
 */

import { connect as connectTcp, isIP } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { followAttempts } from '@vacancy/shared'

/** A byte stream in both directions: what is used of `net.Socket`. */
export type Wire = {
  /**
   * The bytes are not kept unless `writableLength` counts them: their buffer is used again.
   *
   * @returns false when bytes are queued in this process
   */
  write(bytes: Uint8Array): boolean
  pause(): void
  resume(): void
  /** Closes it; what was written is not waited for. */
  destroy(): void
  /** Closes it after what was written has left. */
  destroySoon(): void
  /** Bytes queued in this process. */
  readonly writableLength: number
  /** Of a client within this process: takes a reply at once, where it is. Valid during the call only. */
  takeReply?(frame: Buffer): void
}

export type WireEvents = {
  /** Valid during the call only. */
  data(chunk: Buffer): void
  /** Queued bytes have left. */
  drained(): void
  /** The last event, once. */
  closed(reason: string): void
}

export type Address = { readonly host: string; readonly port: number }

export type World = {
  /** Monotonic milliseconds. */
  nowMs(): number
  /** From 0 up to but not including 1. */
  random(): number
  /** Calls `run` once after `ms`. @returns cancels it */
  after(ms: number, run: () => void): () => void
  /** Calls `run` at the end of this turn of the event loop. */
  atTurnEnd(run: () => void): void
  /** Opens a connection; `opened` comes before any other event. */
  connect(address: Address, events: WireEvents & { opened(): void }): Wire
}

export type DialOptions = {
  /** Until the connection is open, TLS included. */
  readonly connectMs: number
  /** Undefined for plain TCP. Called for each connection, so that changed certificates are used. */
  readonly tls: (() => ConnectionOptions) | undefined
}

const TCP_KEEPALIVE_MS = 30_000
/** Node itself goes on to the next address of a name, if there is one. */
const NEXT_ADDRESS_MS = 50

/**
 * Plain connections are read into this one buffer, which the next read overwrites: a buffer for each read would cost
 * more than everything else that happens to a reply.
 */
export const READ_BUFFER = Buffer.allocUnsafeSlow(256 * 1024)

/** The real world. */
export function systemWorld({ connectMs, tls }: DialOptions): World {
  return {
    nowMs: () => performance.now(),
    random: Math.random,
    after(ms, run) {
      const timer = setTimeout(run, ms)
      return () => clearTimeout(timer)
    },
    atTurnEnd: (run) => setImmediate(run),
    connect({ host, port }, events) {
      const transport = {
        ...{ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS },
        autoSelectFamilyAttemptTimeout: connectMs,
      }
      const options = tls?.()
      const socket = options
        ? connectTls({ ...transport, ...(isIP(host) ? {} : { servername: host }), ...options })
        : connectTcp({
            ...transport,
            onread: {
              buffer: READ_BUFFER,
              callback: (bytes, buffer) => {
                events.data((buffer as Buffer).subarray(0, bytes))
                return true
              },
            },
          })
      let reason = 'closed by the other side'
      // Each address of a name has this time.
      const isLate = () => socket.destroy(new Error(`not open within ${connectMs} ms`))
      const timer = setTimeout(isLate, connectMs + NEXT_ADDRESS_MS)
      const reasonOf = followAttempts(socket, () => timer.refresh())
      socket.once(options ? 'secureConnect' : 'connect', () => {
        clearTimeout(timer)
        events.opened()
      })
      if (options) socket.on('data', (chunk: Buffer) => events.data(chunk))
      // Without it the end of the stream is not noticed, because nothing is read as a stream.
      else socket.resume()
      socket.on('drain', () => events.drained())
      socket.on('error', (error) => {
        reason = reasonOf(error.message)
      })
      socket.once('close', () => {
        clearTimeout(timer)
        events.closed(reason)
      })
      return socket
    },
  }
}
