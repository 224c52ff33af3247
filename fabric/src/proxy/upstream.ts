/**
 * What the proxy sends requests to: one node, one edge router, or the nodes of a shard (docs/proxy.md#upstream). The
 * forwarder of routers and bridges does the work, so that deadlines, retries, the order of writes and the rule that no
 * write is sent twice are the same everywhere; for a shard it is that of a bridge. Each HTTP connection is a client of it, as a TCP connection is one of a router.
 */

import type { ConnectionOptions } from 'node:tls'
import { assert } from '@vacancy/shared'
import { endsWithTrace, FRAME_HEADER_BYTES, MAGIC_ENVELOPE, MAGIC_FRAME, readU32 } from '@vacancy/shared/wire'
import { type Bridge, bridgeServing, createBridge } from '../bridge/bridge.ts'
import type { Discovery } from '../bridge/discovery.ts'
import {
  acceptClient,
  createForwarder,
  drain,
  type Forwarder,
  type ForwardLimits,
  type InboundEvents,
  type Policy,
} from '../forward/forwarder.ts'
import { closePool, setHops } from '../forward/hops.ts'
import { type Serving, servingAll, servingBehind } from '../forward/serving.ts'
import type { Hop, Link, PoolSettings } from '../forward/state.ts'
import { systemWorld, type Wire } from '../forward/world.ts'
import { JSON_COMMANDS } from './commands.ts'

type Call = {
  /** For the envelope; undefined for a bare frame. */
  readonly segment: string | undefined
  readonly isWrite: boolean
  readonly payload: Uint8Array
}

/** Where a call went last. */
type Via = { readonly node?: string | undefined; readonly tries: number }

/**
 * @param reply payload of the reply, valid during this call only; undefined when the client was closed before
 * @param via of a call with a trace
 */
type Done = (reply: Uint8Array | undefined, via?: Via) => void

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
  /** Which shards behind it serve. */
  readonly serving: () => Serving
  /** The shard; undefined for one node or router. */
  readonly shard: () => ShardState | undefined
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
  /** Of a shard. */
  readonly leaderChanges: number
}

export type ShardState = { readonly leader: string | undefined; readonly followers: readonly string[] }

/** Where requests go. */
export type Target =
  | { readonly mode: 'standalone' | 'router'; readonly host: string; readonly port: number }
  | {
      readonly mode: 'cluster'
      readonly shard: string
      readonly reads: 'followers' | 'any' | 'leader'
      readonly lagMax: number
      readonly discovery: Discovery
    }

export type UpstreamSettings = {
  readonly target: Target
  /** Called for each connection, so that changed certificates are used; undefined for plain TCP. */
  readonly tls: (() => ConnectionOptions) | undefined
  /** Sent with LOGIN; undefined where no login is needed. */
  readonly nodeToken: () => string | undefined
  readonly connections: number
  readonly keepAliveMs: number
  /** Of a call, repetitions included. */
  readonly deadlineMs: number
  /** The first connection to a hop was opened, or the last one of all was lost. */
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
  readonly bridge: Bridge | undefined
  readonly forwarder: Forwarder
  /** The connections that were open at the last change. */
  known: ReadonlySet<Link>
  /** Failed attempts of each hop at the last change. */
  readonly attempts: WeakMap<Hop, number>
  opened: number
  lost: number
  loginFailures: number
}

export function openUpstream(settings: UpstreamSettings): Upstream {
  let state: State | undefined
  const { target } = settings
  const clients = new WeakMap<Wire, Client>()
  const create = (policy: Policy, pool: PoolSettings, onChange: () => void): Forwarder =>
    createForwarder({
      world: systemWorld({ connectMs: CONNECT_MS, tls: settings.tls }),
      policy,
      limits: limitsOf(settings),
      pool,
      requireLogin: false,
      onEnd: ({ request: { frame, id, inbound, lastHop, tries } }) => {
        if (!endsWithTrace(frame, frame.length)) return
        clients.get(inbound.wire)?.via.set(id, { ...(target.mode === 'cluster' && { node: lastHop?.id }), tries })
      },
      onHopChange: () => {
        onChange()
        if (state) noteChange(state)
      },
    })
  const bridge = target.mode === 'cluster' ? openBridge(settings, target, create) : undefined
  const forwarder = bridge?.forwarder ?? openSingle(settings, create)
  const opened: State = {
    settings,
    bridge,
    forwarder,
    known: new Set(),
    attempts: new WeakMap(),
    opened: 0,
    lost: 0,
    loginFailures: 0,
  }
  state = opened
  return {
    openClient: () => openClient(forwarder, clients),
    fault: () => faultOf(opened),
    counts: () => {
      const { known, opened: total, lost, loginFailures } = opened
      const leaderChanges = bridge?.leaderChanges ?? 0
      return { opened: total, lost, loginFailures, open: known.size, inFlight: forwarder.inFlight, leaderChanges }
    },
    serving: () => servingBehindUs(opened),
    shard: () => bridge && shardState(bridge),
    async close(drainMs) {
      await drain(forwarder, drainMs)
      bridge?.unfollow()
      closePool(forwarder.pool)
      if (target.mode === 'cluster') await target.discovery.stop()
    },
  }
}

type Create = (policy: Policy, pool: PoolSettings, onChange: () => void) => Forwarder

/** The bridge of a shard, without listeners. Its clients are in this process, and send bare frames. */
function openBridge(settings: UpstreamSettings, target: Target & { mode: 'cluster' }, create: Create): Bridge {
  const { shard, reads, lagMax, discovery } = target
  return createBridge(
    {
      version: '',
      id: '',
      zone: '',
      shard,
      reads,
      lagMax,
      login: () => undefined,
      linksPerNode: settings.connections,
      token: settings.nodeToken,
      hedgeAfterMs: 0,
      isUpstreamTls: settings.tls !== undefined,
      responseBytesMax: REPLY_BYTES_MAX,
      queuedBytesMax: QUEUED_BYTES_MAX,
    },
    discovery,
    create,
  )
}

function openSingle(settings: UpstreamSettings, create: Create): Forwarder {
  const { target } = settings
  assert(target.mode !== 'cluster', 'a shard has several hops')
  const isRouter = target.mode === 'router'
  const forwarder: Forwarder = create(
    policyOf(isRouter, () => forwarder.pool.hops.get(HOP)),
    {
      peer: isRouter ? 'router' : 'node',
      linksPerHop: settings.connections,
      frameBytesMax: REPLY_BYTES_MAX,
      queuedBytesMax: QUEUED_BYTES_MAX,
      keepaliveMs: isRouter ? settings.keepAliveMs : 0,
      greetingMs: GREETING_MS,
      token: settings.nodeToken,
      statusFault: () => '',
      resolve: () => Promise.reject(new Error('the address is fixed')),
      resolveAgain: () => {},
    },
    () => {},
  )
  setHops(forwarder.pool, new Map([[HOP, { host: target.host, port: target.port }]]))
  return forwarder
}

function limitsOf({ deadlineMs }: UpstreamSettings): ForwardLimits {
  return {
    deadlineMs,
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
  }
}

function policyOf(isRouter: boolean, hop: () => Hop | undefined): Policy {
  return {
    forwardsEnvelopes: isRouter,
    servesRouters: false,
    sendsRoutersBack: false,
    takesBareFrames: true,
    isWrite: (command, flag) => JSON_COMMANDS.get(command)?.isWrite ?? flag,
    laneKey: (segment) => segment,
    localReply: () => undefined,
    route: () => {
      const only = hop()
      return { hops: only ? [only] : [] }
    },
    noteFailure: () => {},
    login: () => undefined,
  }
}

/** The faults of a lost upstream are those of its connections. */
function servingBehindUs({ bridge, forwarder, known }: State): Serving {
  if (known.size === 0) return servingAll([])
  return bridge ? bridgeServing(bridge) : servingBehind('', [...forwarder.pool.hops.values()])
}

function shardState({ topology: { leader, nodes } }: Bridge): ShardState {
  return { leader, followers: [...nodes.values()].filter(({ role }) => role === 'follower').map(({ id }) => id) }
}

function openLinks({ forwarder }: State): Link[] {
  return [...forwarder.pool.hops.values()].flatMap(({ links }) =>
    links.filter(({ state, isDraining }) => state === 'open' && !isDraining),
  )
}

/** Counts connections that were opened and lost since the last change. */
function noteChange(state: State): void {
  const now = new Set(openLinks(state))
  const before = state.known
  state.known = now
  const hopsBefore = new Set([...before].map(({ hop }) => hop))
  let hasNewHop = false
  for (const link of now) {
    if (before.has(link)) continue
    state.opened++
    hasNewHop ||= !hopsBefore.has(link.hop)
  }
  for (const link of before) if (!now.has(link)) state.lost++
  for (const hop of state.forwarder.pool.hops.values()) {
    if (hop.lastFault === LOGIN_REFUSED && hop.attempts > (state.attempts.get(hop) ?? 0)) state.loginFailures++
    state.attempts.set(hop, hop.attempts)
  }
  if (hasNewHop || now.size === 0) state.settings.onChange(now.size > 0)
}

function faultOf({ settings: { target }, bridge, forwarder, known }: State): string {
  if (known.size > 0) return ''
  const reasons = [...forwarder.pool.hops.values()].map(({ lastFault }) => lastFault).filter((reason) => reason !== '')
  if (target.mode === 'cluster') {
    const [reason = bridge?.discovery.health().fault ?? ''] = reasons
    return `no connection to a node of the shard${reason === '' ? '' : `: ${reason}`}`
  }
  const { host, port } = target
  const [reason] = reasons
  return reason === undefined ? `connecting to ${host}:${port}` : `no connection to ${host}:${port}: ${reason}`
}

type Client = {
  readonly pending: Map<number, Done>
  /** Of calls with a trace, from their end until their reply is taken. */
  readonly via: Map<number, Via>
  nextId: number
  events: InboundEvents | undefined
}

function openClient(forwarder: Forwarder, clients: WeakMap<Wire, Client>): UpstreamClient {
  const client: Client = { pending: new Map(), via: new Map(), nextId: 1, events: undefined }
  const wire = wireOf(client)
  clients.set(wire, client)
  const events = acceptClient(forwarder, wire, '')
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
      client.via.clear()
      events.closed()
      for (const done of left) done(undefined)
    },
  }
}

/** The client's end of its connection to the forwarder: nothing is queued, and replies are taken at once. */
function wireOf(client: Client): Wire {
  const takeReply = (frame: Buffer): void => {
    const id = readU32(frame, 1)
    const done = client.pending.get(id)
    client.pending.delete(id)
    const via = client.via.size === 0 ? undefined : client.via.get(id)
    if (via !== undefined) client.via.delete(id)
    done?.(frame.subarray(FRAME_HEADER_BYTES), via)
  }
  return {
    takeReply,
    write(bytes) {
      for (let at = 0; at < bytes.length; ) {
        const end = at + FRAME_HEADER_BYTES + readU32(bytes, at + 5)
        takeReply(Buffer.from(bytes.buffer, bytes.byteOffset + at, end - at))
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
