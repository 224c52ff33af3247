/**
 * What the proxy sends requests to: one node or one edge router (docs/proxy.md#upstream). The forwarder of routers and
 * bridges does the work, so that deadlines, retries, the order of writes and the rule that no write is sent twice are
 * the same everywhere. Each HTTP connection is a client of it, as a TCP connection is one of a router.
 */

import type { ConnectionOptions } from 'node:tls'
import { FRAME_HEADER_BYTES, MAGIC_ENVELOPE, MAGIC_FRAME, readU32 } from '@vacancy/shared/wire'
import {
  acceptClient,
  createForwarder,
  drain,
  type Forwarder,
  type InboundEvents,
  type Policy,
} from '../forward/forwarder.ts'
import { closePool, setHops } from '../forward/hops.ts'
import type { Hop, Link } from '../forward/state.ts'
import { systemWorld, type Wire } from '../forward/world.ts'
import { JSON_COMMANDS } from './commands.ts'

type Call = {
  /** For the envelope; undefined for a bare frame. */
  readonly segment: string | undefined
  readonly isWrite: boolean
  readonly payload: Uint8Array
}

/** @param reply payload of the reply, valid during this call only; undefined when the client was closed before */
type Done = (reply: Uint8Array | undefined) => void

/** One client of the upstream. Its writes to a segment keep their order. */
export type UpstreamClient = {
  /** Sends a request. `done` is called once, later: by the deadline, or when the client is closed. */
  readonly call: (call: Call, done: Done) => void
  /** The client is gone: what is not sent is dropped, what is sent is not waited for. */
  readonly close: () => void
}

export type Upstream = {
  readonly openClient: () => UpstreamClient
  /** Why no request can be sent now; '' if one can. */
  readonly fault: () => string
  readonly counts: () => UpstreamCounts
  /** Finishes what is in flight, then closes the connections. */
  readonly close: (drainMs: number) => Promise<void>
}

/** Totals since the start, and what is open and in flight now. */
type UpstreamCounts = {
  readonly opened: number
  readonly lost: number
  readonly loginFailures: number
  readonly open: number
  readonly inFlight: number
}

export type UpstreamSettings = {
  readonly mode: 'standalone' | 'router'
  readonly host: string
  readonly port: number
  /** Called for each connection, so that changed certificates are used; undefined for plain TCP. */
  readonly tls: (() => ConnectionOptions) | undefined
  /** Sent with LOGIN; undefined where no login is needed. */
  readonly nodeToken: () => string | undefined
  readonly connections: number
  readonly keepAliveMs: number
  /** Of a call, repetitions included. */
  readonly deadlineMs: number
  /** A connection was opened after none was, or the last one was lost. */
  readonly onChange: (isUp: boolean) => void
}

/** Larger replies end their connection. A search of 200 properties over a year has less than a megabyte. */
const REPLY_BYTES_MAX = 16 * 1024 * 1024
/** More than any request that the body limit admits. */
const REQUEST_BYTES_MAX = 1024 * 1024
/** Unsent bytes of a connection beyond which requests are refused. */
const QUEUED_BYTES_MAX = 4 * 1024 * 1024
/** Requests in flight in all. */
const INFLIGHT_MAX = 20_000
const GREETING_MS = 2_000
const CONNECT_MS = 5_000
const HOP = 'upstream'
const LOGIN_REFUSED = 'the token was refused'

type State = {
  readonly settings: UpstreamSettings
  readonly hop: () => Hop | undefined
  /** The connections that were open at the last change. */
  known: ReadonlySet<Link>
  opened: number
  lost: number
  loginFailures: number
}

export function openUpstream(settings: UpstreamSettings): Upstream {
  const forwarder: Forwarder = createForwarder({
    world: systemWorld({ connectMs: CONNECT_MS, tls: settings.tls }),
    policy: policyOf(settings, () => forwarder.pool.hops.get(HOP)),
    limits: {
      deadlineMs: settings.deadlineMs,
      totalInFlightMax: INFLIGHT_MAX,
      frameBytesMax: REQUEST_BYTES_MAX,
      skipBytesMax: REQUEST_BYTES_MAX,
      rubbishBytesMax: 0,
      // The HTTP side bounds its clients.
      inFlightMax: Number.POSITIVE_INFINITY,
      queuedBytesMax: Number.POSITIVE_INFINITY,
      stalledMsMax: Number.POSITIVE_INFINITY,
      frameMsMax: Number.POSITIVE_INFINITY,
      idleMsMax: Number.POSITIVE_INFINITY,
    },
    pool: {
      peer: settings.mode === 'router' ? 'router' : 'node',
      linksPerHop: settings.connections,
      frameBytesMax: REPLY_BYTES_MAX,
      queuedBytesMax: QUEUED_BYTES_MAX,
      keepaliveMs: settings.mode === 'router' ? settings.keepAliveMs : 0,
      greetingMs: GREETING_MS,
      token: settings.nodeToken,
      statusFault: () => '',
      resolve: () => Promise.reject(new Error('the address is fixed')),
      resolveAgain: () => {},
    },
    requireLogin: false,
    onEnd: () => {},
    onHopChange: () => noteChange(state),
  })
  const state: State = {
    settings,
    hop: () => forwarder.pool.hops.get(HOP),
    known: new Set(),
    opened: 0,
    lost: 0,
    loginFailures: 0,
  }
  setHops(forwarder.pool, new Map([[HOP, { host: settings.host, port: settings.port }]]))
  return {
    openClient: () => openClient(forwarder),
    fault: () => faultOf(state),
    counts: () => {
      const { known, opened, lost, loginFailures } = state
      return { opened, lost, loginFailures, open: known.size, inFlight: forwarder.inFlight }
    },
    async close(drainMs) {
      await drain(forwarder, drainMs)
      closePool(forwarder.pool)
    },
  }
}

function policyOf(settings: UpstreamSettings, hop: () => Hop | undefined): Policy {
  return {
    forwardsEnvelopes: settings.mode === 'router',
    servesRouters: false,
    takesBareFrames: true,
    isWrite: (command, flag) => JSON_COMMANDS.get(command)?.isWrite ?? flag,
    laneKey: (segment) => segment,
    localReply: () => undefined,
    route: () => {
      const only = hop()
      return { hops: only ? [only] : [], mayWait: false }
    },
    noteFailure: () => {},
    login: () => undefined,
  }
}

function openLinks(hop: Hop | undefined): Link[] {
  return (hop?.links ?? []).filter(({ state, isDraining }) => state === 'open' && !isDraining)
}

/** Counts connections that were opened and lost since the last change. */
function noteChange(state: State): void {
  const hop = state.hop()
  const now = new Set(openLinks(hop))
  const before = state.known
  state.known = now
  for (const link of now) if (!before.has(link)) state.opened++
  for (const link of before) if (!now.has(link)) state.lost++
  if (hop?.lastFault === LOGIN_REFUSED) state.loginFailures++
  if (now.size === 0 || before.size === 0) state.settings.onChange(now.size > 0)
}

function faultOf({ settings, hop, known }: State): string {
  if (known.size > 0) return ''
  const { host, port } = settings
  const reason = hop()?.lastFault ?? ''
  return reason === '' ? `connecting to ${host}:${port}` : `no connection to ${host}:${port}: ${reason}`
}

type Client = {
  readonly pending: Map<number, Done>
  nextId: number
  events: InboundEvents | undefined
}

function openClient(forwarder: Forwarder): UpstreamClient {
  const client: Client = { pending: new Map(), nextId: 1, events: undefined }
  const events = acceptClient(forwarder, wireOf(client), '')
  client.events = events
  return {
    call({ segment, isWrite, payload }, done) {
      while (client.pending.has(client.nextId)) client.nextId = (client.nextId + 1) >>> 0
      const id = client.nextId
      client.nextId = (id + 1) >>> 0
      client.pending.set(id, done)
      events.data(frameOf(id, segment, isWrite, payload))
    },
    close() {
      const left = [...client.pending.values()]
      client.pending.clear()
      events.closed()
      for (const done of left) done(undefined)
    },
  }
}

/** The client's end of its connection to the forwarder: nothing is queued, and replies are taken at once. */
function wireOf(client: Client): Wire {
  return {
    write(bytes) {
      for (let at = 0; at < bytes.length; ) {
        const end = at + FRAME_HEADER_BYTES + readU32(bytes, at + 5)
        const id = readU32(bytes, at + 1)
        const done = client.pending.get(id)
        client.pending.delete(id)
        done?.(bytes.subarray(at + FRAME_HEADER_BYTES, end))
        at = end
      }
      return true
    },
    pause() {},
    resume() {},
    destroy() {},
    destroySoon() {},
    writableLength: 0,
  }
}

/** Magic, length, segment length and write flag. */
const ENVELOPE_BYTES = 7

function frameOf(id: number, segment: string | undefined, isWrite: boolean, payload: Uint8Array): Buffer {
  const segmentBytes = segment === undefined ? 0 : Buffer.byteLength(segment)
  const start = segment === undefined ? 0 : ENVELOPE_BYTES + segmentBytes
  const frame = Buffer.allocUnsafe(start + FRAME_HEADER_BYTES + payload.length)
  if (segment !== undefined) {
    frame[0] = MAGIC_ENVELOPE
    frame.writeUInt32LE(frame.length - 5, 1)
    frame[5] = segmentBytes
    frame.write(segment, 6)
    frame[start - 1] = isWrite ? 1 : 0
  }
  frame[start] = MAGIC_FRAME
  frame.writeUInt32LE(id, start + 1)
  frame.writeUInt32LE(payload.length, start + 5)
  frame.set(payload, start + FRAME_HEADER_BYTES)
  return frame
}
