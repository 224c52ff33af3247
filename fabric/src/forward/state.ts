/**
 * The state of forwarding: clients, requests, hops and connections, as plain data. The functions are in the modules of
 * the same names.
 */

import type { Standing } from '@vacancy/shared/tokens'
import type { FrameReader } from './frames.ts'
import type { Lane, LaneEntry } from './lanes.ts'
import type { Outbox } from './outbox.ts'
import type { Status } from './status.ts'
import type { Address, Wire, World } from './world.ts'

/** A request on its way through a component. */
export type Request = {
  readonly inbound: Inbound
  /** The client's correlation id. */
  readonly id: number
  /** Its envelope with the bare frame, which begins at `inner`. Loses its trace in front of a hop that takes none. */
  frame: Buffer
  readonly inner: number
  /** '' for a frame without an envelope. */
  readonly segment: string
  readonly command: string
  readonly isWrite: boolean
  /** Monotonic. */
  readonly receivedMs: number
  readonly deadlineMs: number
  state: 'held' | 'sent' | 'over'
  tries: number
  /** A held request is not tried before. */
  notBeforeMs: number
  /** When it was sent last. */
  sentMs: number
  link: Link | undefined
  /** Its correlation id on that link. */
  linkId: number
  /** Its second try, while the first one is still waited for. */
  hedge: { readonly link: Link; readonly id: number } | undefined
  /** The hop of the last try. */
  lastHop: Hop | undefined
  /** The code that refused it last, passed on if no further try follows; 0 = none did. */
  refusal: number
  /** A write whose last reply is missing: it may have been executed whatever the replies to later tries. */
  isInDoubt: boolean
  wasRechecked: boolean
  /** Writes only. */
  lane: WriteLane | undefined
  entry: LaneEntry<Request, Link> | undefined
  before: Request | undefined
  after: Request | undefined
}

type WriteLane = Lane<Request, Link>

/** A connection to a hop. */
export type Link = {
  readonly pool: HopPool
  readonly hop: Hop
  readonly outbox: Outbox
  readonly reader: FrameReader
  /** `greeting`: LOGIN or `__status__` has no answer yet. */
  state: 'connecting' | 'greeting' | 'open' | 'closed'
  /** It leads to a component that answered `__status__`, and to the one that was meant. */
  isNamed: boolean
  /** Takes no more requests, and closes with its last reply. */
  isDraining: boolean
  awaitsLogin: boolean
  loginAnswer: Buffer
  readonly inFlight: Map<number, Request>
  nextId: number
  /** Requests without a reply in time since the last reply. */
  timeouts: number
  heardMs: number
  wroteMs: number
  stopTimer: () => void
}

export type Hop = ReturnType<typeof createHop>

/** @param fixed its address, given by the caller instead of the resolver */
export function createHop(id: string, fixed: Address | undefined, kind: 'unknown' | 'node') {
  return {
    id,
    /** Of the last attempt; undefined until it is resolved. */
    address: fixed,
    fixed,
    links: [] as Link[],
    kind: kind as 'unknown' | 'ours' | 'foreign' | 'node',
    status: undefined as Status | undefined,
    inFlight: 0,
    /** Requests sent to it, repeated ones each time. */
    readsSent: 0,
    writesSent: 0,
    failures: 0,
    ejectMs: 0,
    ejectedUntilMs: 0,
    /** Attempts to connect since the last success. */
    attempts: 0,
    isResolving: false,
    /** Connections that ended before the greeting was answered, in a row. */
    mute: 0,
    stopTimer: () => {},
    /** It has accepted a request with a trace, or until when it gets none (traces.ts). */
    takesTraces: false,
    tracesRefusedUntilMs: 0,
    /** Removed from the routes: no new requests, closed when it has no more in flight. */
    isGone: false,
    lastFault: '',
  }
}

export type PoolSettings = {
  readonly peer: 'node' | 'router' | 'bridge'
  readonly linksPerHop: number
  readonly frameBytesMax: number
  /** Queued bytes beyond which a connection takes no more requests. */
  readonly queuedBytesMax: number
  /** Between keepalives on an idle connection; 0 = none. */
  readonly keepaliveMs: number
  /** Until LOGIN or `__status__` is answered. */
  readonly greetingMs: number
  readonly token: () => string | undefined
  /**
   * A link to a node is open when the node has sent its codec list: with TLS 1.3 a refused client certificate shows only after the
   * handshake, and a write sent before would be in doubt.
   */
  readonly provesNodes?: boolean
  /** What is wrong with the component that answered; '' = it is the one that was meant. */
  readonly statusFault: (hop: string, status: Status) => string
  readonly resolve: (hop: string) => Promise<Address>
  /** The address of the hop may have changed. */
  readonly resolveAgain: (hop: string) => void
}

export type PoolEvents = {
  /** A reply: the bare frame is [start, end) of `bytes`, which the receiver may change, and copies to keep. */
  reply(request: Request, link: Link, bytes: Buffer, start: number, end: number): void
  /** The connection of a sent request ended. */
  lost(request: Request, link: Link): void
  /** A connection takes requests now. */
  opened(hop: Hop): void
  /** A connection ended, or could not be opened. */
  failed(hop: Hop, reason: string): void
  /** The outbox has bytes to flush at the end of the turn. */
  dirty(outbox: Outbox): void
  /** A reply to a request that is no longer waited for. */
  stray(): void
  /** A keepalive was sent. */
  kept(): void
}

export type HopPool = {
  readonly world: World
  readonly settings: PoolSettings
  readonly events: PoolEvents
  readonly hops: Map<string, Hop>
  stopKeepalive: () => void
  stopAsking: () => void
  isClosed: boolean
}

export type InboundLimits = {
  readonly frameBytesMax: number
  /** Larger frames up to this size are skipped and refused. */
  readonly skipBytesMax: number
  readonly rubbishBytesMax: number
  /** Requests in flight beyond which the connection is not read. */
  readonly inFlightMax: number
  /** Replies that wait for the client, beyond which its connection is not read. */
  readonly queuedBytesMax: number
  /** How long a client may leave more than that unread. */
  readonly stalledMsMax: number
  /** From the first byte of a frame to its last. */
  readonly frameMsMax: number
  /** Since the last byte. */
  readonly idleMsMax: number
}

/** What the token of a connection is worth at this moment. */
export type Login = () => Standing

/** Where tokens are not checked. */
export const ANYONE: Standing = { role: 'client', fault: '' }

export type Inbound = {
  readonly wire: Wire
  readonly remote: string
  readonly outbox: Outbox
  readonly reader: FrameReader
  readonly lanes: Map<string, WriteLane>
  /** It asked `__status__`, as routers of this project and the proxy do. */
  isRouter: boolean
  /** Its standing now. */
  login: Login
  inFlight: number
  isPaused: boolean
  isClosed: boolean
  /** The client sends no more; the connection closes with the last reply. */
  isLast: boolean
  heardMs: number
  /** When the unfinished frame began; 0 = there is none. */
  partialMs: number
  /** Since when replies are not read; 0 = they are. */
  stalledMs: number
}
