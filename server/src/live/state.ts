/** State of the live channel: topics, clients, what is offered, and the limits. */
import type { Clock } from '@vacancy/shared'
import type { ServerFrame } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { WebSocket, WebSocketServer } from 'ws'

/** The principal behind a client. `key` is of the session or token; `check` reports whether it is still valid. */
export type Viewer = { readonly key: string; readonly check: () => Promise<boolean> }

export const LIVE_LIMITS = {
  clientsMax: 1_000,
  clientsPerViewerMax: 32,
  checkMs: 5_000,
  /** A client pings each 5 s; one that is silent this long is gone. */
  silentMs: 30_000,
  /** When the control plane stops, a channel has this long to close. */
  stopMs: 250,
  /** Values that nobody follows are kept this long for who comes back. */
  idleMs: 60_000,
  /** Changes kept a topic, as they are sent: who lacks more is better off with the whole value. */
  keptBytesMax: 512 << 10,
  /** Frames of a client at once, and each second from then on: two pages that open, and then a human being. */
  framesAtOnce: 256,
  framesPerSecond: 32,
  /** Who asks and does not read the answers is let go, too. */
  unreadBytesMax: 32 << 20,
  /** Until the connection of who was let go is cut. */
  farewellMs: 1_000,
  flushMs: 25,
} as const

/** The topics, the clients that follow them, and what was sent. */
export type Live = {
  readonly server: string
  readonly log: Log
  readonly clock: Clock
  readonly webSockets: WebSocketServer
  readonly topics: Map<string, Topic>
  readonly offers: Offer[]
  readonly clients: Set<Client>
  /** The frame that was made last: most followers of a topic lack the same changes. */
  lastFrame: { readonly topic: string; readonly from: number; readonly to: number; readonly bytes: Buffer } | undefined
  framesSent: number
  bytesSent: number
  readonly timers: NodeJS.Timeout[]
}

/** Topics whose value is only computed while somebody follows them. Undefined: there is no such thing. */
export type Offer = { readonly pattern: RegExp; readonly read: (topic: string) => unknown }

export function time(ms: number): string {
  return new Date(ms).toISOString()
}

export type Topic = {
  readonly name: string
  value: unknown
  seq: number
  at: number
  hasValue: boolean
  /** Ops from `seq - kept.length` to `seq`, oldest first; as JSON, without the brackets around them. */
  kept: { readonly seq: number; readonly ops: string }[]
  keptBytes: number
  readonly followers: Map<Client, { /** The last number that was sent to it. */ seq: number }>
  isTouched: boolean
  /** Of an offered topic, while its value is being read. */
  reading: Promise<void> | undefined
  sentAt: number
  emptySince: number
}

export type Client = {
  readonly socket: WebSocket
  readonly viewer: Viewer
  readonly topics: Map<string, number>
  lastFrameAt: number
  /** Frames that it may send, at `lastFrameAt`. */
  allowance: number
}

export function send(live: Live, client: Client, frame: ServerFrame): void {
  sendBytes(live, client, Buffer.from(JSON.stringify(frame)))
}

export function sendBytes(live: Live, client: Client, frame: Buffer): void {
  live.framesSent++
  live.bytesSent += frame.length
  client.socket.send(frame, { binary: false })
}
