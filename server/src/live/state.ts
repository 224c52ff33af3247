/** State of the live channel: topics, clients, offers, and limits. */
import type { Clock } from '@vacancy/shared'
import type { ServerFrame } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { WebSocket, WebSocketServer } from 'ws'
import type { Alarm } from '../http/alarm.ts'

/** The principal behind a client. `key` is of the session or token; `check` reports whether it is still valid. */
export type Viewer = { readonly key: string; readonly check: () => Promise<boolean> }

export const LIVE_LIMITS = {
  clientsMax: 1_000,
  clientsPerViewerMax: 32,
  checkMs: 5_000,
  /** Clients ping every 5 s; one that is silent this long is disconnected. */
  silentMs: 30_000,
  /** Time for channels to close on shutdown. */
  stopMs: 250,
  /** Values without followers are kept this long for clients that reconnect. */
  idleMs: 60_000,
  /** Changes kept per topic, as sent. A client that lacks more is better served with the whole value. */
  keptBytesMax: 512 << 10,
  /** Burst and rate per second of a client's frames: two opening pages, then a person. */
  framesAtOnce: 256,
  framesPerSecond: 32,
  /** A client that does not read its responses is disconnected. */
  unreadBytesMax: 32 << 20,
  /** Time until the connection of a disconnected client is destroyed. */
  farewellMs: 1_000,
  /** At least this long between flushes. */
  flushMs: 25,
  /** Changes that come so close together leave in one frame. */
  joinMs: 12,
} as const

/** The topics, their subscribers, and the sent frames. */
export type Live = {
  readonly server: string
  readonly log: Log
  readonly clock: Clock
  readonly webSockets: WebSocketServer
  readonly topics: Map<string, Topic>
  readonly offers: Offer[]
  readonly clients: Set<Client>
  /** The last built frame, reused because most followers of a topic lack the same changes. */
  lastFrame: { readonly topic: string; readonly from: number; readonly to: number; readonly bytes: Buffer } | undefined
  framesSent: number
  bytesSent: number
  /** Of the next flush: when a followed topic has changed. */
  readonly alarm: Alarm
  checking: NodeJS.Timeout | undefined
}

/** Topics whose value is computed only while they have followers. Undefined: the topic does not exist. */
export type Offer = { readonly pattern: RegExp; readonly read: (topic: string) => unknown }

export function time(ms: number): string {
  return new Date(ms).toISOString()
}

export type Topic = ReturnType<typeof createTopic>

export function createTopic(name: string, clock: Clock) {
  return {
    name,
    value: undefined as unknown,
    /** Sequence numbers of previous processes and of dropped topics are below all new ones. */
    seq: clock.wallMs(),
    at: clock.wallMs(),
    hasValue: false,
    /** Ops from `seq - kept.length` to `seq`, oldest first, as JSON without the surrounding brackets. */
    kept: [] as { readonly seq: number; readonly ops: string }[],
    keptBytes: 0,
    followers: new Map<Client, { /** The last sequence number sent to it. */ seq: number }>(),
    isTouched: false,
    /** Of an offered topic, while its value is being computed. */
    reading: undefined as Promise<void> | undefined,
    sentAt: 0,
    emptySince: clock.monotonicMs(),
  }
}

export type Client = {
  readonly socket: WebSocket
  readonly viewer: Viewer
  readonly topics: Map<string, number>
  lastFrameAt: number
  /** Frames it may still send, as of `lastFrameAt`. */
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
