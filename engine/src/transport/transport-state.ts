/** State of the TLS transport: peers, their connections, and counters. */

import type { X509Certificate } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { isIP, type Socket } from 'node:net'
import { type SecureContext, TLSSocket } from 'node:tls'
import { assert } from '@vacancy/shared'
import type { TlsMaterial } from '@vacancy/shared/node'
import { type Env, errnoOf } from '../env.ts'
import { frameParts } from './framing.ts'
import type { Refusal } from './handshake.ts'
import { isGoodForHost, type Named, namedBy, namesANode, namesText, nodeUri, requiresNodeId } from './peer-tls.ts'
import { STREAMS, type StreamKind, type TransportEvents } from './transport.ts'

export const TRANSPORT_LIMITS = {
  /** From accepting a connection to its hello, and from dialling to the welcome. */
  handshakeMs: 5_000,
  /** An idle connection sends a keep-alive at this interval. */
  keepAliveMs: 2_000,
  /** A connection that is silent this long is half open. */
  silenceMs: 8_000,
  /** Back-off between attempts to connect; each wait is between half of it and all of it. */
  retryMsMin: 50,
  retryMsMax: 2_000,
  /** How long a loss is withheld to find out whether the peer is dead. */
  lossMs: 500,
  /** Connections without a hello. Beyond this the oldest is closed, so that slow ones do not block others. */
  unauthenticated: 64,
  /** Nodes that are connected or in the peer list. */
  peers: 256,
  /** Bytes queued on one stream for one peer. Beyond this frames are dropped: raft sends again. */
  controlBytes: 4 << 20,
  appendBytes: 32 << 20,
  bulkBytes: 16 << 20,
  queuedFrames: 4_096,
  /** Bytes passed to a socket at a time. The rest is queued here, where it is counted. */
  socketBytes: 512 << 10,
  /** A repeated warning is logged at most once in this time. */
  warnMs: 60_000,
} as const

export type TransportLimits = { readonly [name in keyof typeof TRANSPORT_LIMITS]: number }

export type Address = { readonly host: string; readonly port: number }

export type TlsTransportOptions = {
  readonly env: Pick<Env, 'clock' | 'random' | 'schedule' | 'log'>
  /** Own node id. */
  readonly node: string
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  /**
   * Certificate, key and the authority as `clientCa`; undefined: plain TCP, where node ids are unverified
   * (`--insecure-cluster`).
   */
  readonly tls: TlsMaterial | undefined
  /** Certificates of peers must name the node (peer-tls.ts); undefined: if the own certificate does. */
  readonly requireNodeId?: boolean | 'any' | undefined
  /**
   * The address where a node listens; a failure is retried later. Called before each attempt except the first after a
   * loss, with whether the previous attempt failed to connect (discovery.ts).
   */
  readonly addressOf: (node: string, wasUnreachable: boolean) => Promise<Address>
  /**
   * A peer keeps refusing this node because another node with the same id is connected to it. Called once per peer
   * (docs/design/http.md#node-flags, exit 65).
   */
  readonly onDuplicate?: ((peer: string) => void) | undefined
  readonly limits?: Partial<TransportLimits> | undefined
}

/** Why a connection was refused or closed by this node; the peer or the network caused `peerClosed` and `network`. */
export const CLOSE_REASONS = [
  'crowded',
  'timeout',
  'tls',
  'certificate',
  'identity',
  'hello',
  'addressee',
  'self',
  'duplicate',
  'checksum',
  'length',
  'silent',
  'replaced',
  'unwanted',
  'address',
  'refused',
  'peerRefused',
  'peerClosed',
  'network',
] as const

export type CloseReason = (typeof CLOSE_REASONS)[number]

export type Tally = { [reason in CloseReason]: number }

export type StreamCounters = {
  framesIn: number
  framesOut: number
  bytesIn: number
  bytesOut: number
  /** Keep-alives received. */
  keepAlivesIn: number
  /** Frames dropped for lack of a connection, for a full queue, or queued when a connection was lost. */
  dropped: number
}

/** For metrics; a copy. */
export type TransportCounters = {
  readonly outgoing: number
  readonly incoming: number
  readonly unauthenticated: number
  /** Connections established since the start: dialled and accepted ones. */
  readonly opened: number
  readonly accepted: number
  readonly reconnects: number
  /** Incoming connections that were refused. */
  readonly refused: Readonly<Tally>
  /** Attempts to connect that failed. */
  readonly failed: Readonly<Tally>
  /** Connections that were open and were lost. */
  readonly lost: Readonly<Tally>
  readonly streams: { readonly [stream in StreamKind]: Readonly<StreamCounters> }
  /** Undefined without TLS. */
  readonly certificateNotAfterMs: number | undefined
}

export type State = {
  readonly options: TlsTransportOptions
  readonly limits: TransportLimits
  readonly events: TransportEvents
  /** Sixteen random bytes, hexadecimal. */
  readonly instance: string
  readonly peers: Map<string, Peer>
  /** Accepted, without a hello; oldest first. By `address:port` of the caller. */
  readonly pending: Map<string, Pending>
  material: TlsMaterial | undefined
  context: SecureContext | undefined
  /** The warning about a certificate without a node has been logged. */
  isUnnamedWarned: boolean
  isClosed: boolean
  opened: number
  accepted: number
  reconnects: number
  readonly refused: Tally
  readonly failed: Tally
  readonly lost: Tally
  readonly streams: { readonly [stream in StreamKind]: StreamCounters }
  readonly warnings: Map<string, { atMs: number; suppressed: number }>
}

export type Pending = {
  /** Counts the reason of a refusal and closes the connection. */
  readonly end: (reason: CloseReason) => void
  /** The same, but sends the reason to the dialler first, within the rest of its deadline. */
  readonly refuse: (socket: Socket, refusal: Refusal, cause?: string) => void
  /** The connection was accepted: its place is free. */
  readonly settle: () => void
}

export type Peer = {
  readonly node: string
  /** In the list of `setPeers`. */
  isWanted: boolean
  /** Instance of its open connections; '' for none. */
  instance: string
  readonly slots: { readonly [stream in StreamKind]: Slot }
  /** Since when it has refused this node as a duplicate; −1 if it has not. */
  refusedSinceMs: number
  isReported: boolean
}

/** One stream of one peer, usable while one of its connections is open. */
export type Slot = {
  readonly peer: Peer
  readonly stream: StreamKind
  outgoing: Link | undefined
  incoming: Link | undefined
  /** Stops the running attempt or wait; undefined for none. */
  stopDialling: (() => void) | undefined
  isWaiting: boolean
  attempts: number
  address: Address | undefined
  /** A loss not reported yet; cancels its timeout. */
  unreported: (() => void) | undefined
  wasOpen: boolean
}

export type Link = {
  readonly slot: Slot
  readonly isOutgoing: boolean
  readonly socket: Socket
  readonly queue: Uint8Array[]
  /** First frame of the queue that is not with the socket yet. */
  next: number
  queuedBytes: number
  isFlushing: boolean
  receivedMs: number
  sentMs: number
  isOpen: boolean
}

export const slotsOf = (peer: Peer): readonly Slot[] => STREAMS.map((stream) => peer.slots[stream])

export const isUsable = (slot: Slot): boolean => slot.outgoing !== undefined || slot.incoming !== undefined

/** For the log: `ECONNREFUSED`, `UNABLE_TO_VERIFY_LEAF_SIGNATURE`, or the reason the peer gave. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return error === undefined ? '' : String(error)
  return 'code' in error ? String(error.code) : error.message
}

export function failureOf(socket: Socket, error: Error): CloseReason {
  if (errnoOf(error) === 'ECONNREFUSED') return 'refused'
  const code = 'code' in error ? String(error.code) : ''
  if (socket instanceof TLSSocket && socket.authorizationError) return 'certificate'
  if (/CERT|UNKNOWN_CA|ACCESS_DENIED/.test(code)) return 'certificate'
  return /SSL|TLS/.test(code) ? 'tls' : 'network'
}

// Listening

export const ALPN = 'vacancy-peer/1'

export const sealed = (body: Uint8Array): Uint8Array => {
  const [part, ...more] = frameParts(body)
  assert(part !== undefined && more.length === 0, 'a handshake message is one write')
  return part
}

/** What the certificate of the other side names, as far as it counts here. */
export function namedOf({ options, material }: State, socket: TLSSocket): Named {
  const certificate = socket.getPeerX509Certificate()
  const named = namedBy(certificate)
  if (options.requireNodeId === 'any' && certificate && typeof named === 'string' && !namesANode(certificate))
    return 'any'
  const isTooLittle = named === 'hosts' && material !== undefined && requiresNodeId(material, options.requireNodeId)
  return isTooLittle ? 'none' : named
}

export function isGoodForAny(
  certificate: X509Certificate | undefined,
  hosts: readonly (string | undefined)[],
): boolean {
  return hosts.some((host) => certificate && host !== undefined && isGoodForHost(certificate, host))
}

/** The name and the addresses at which a node is found. */
export async function hostsOfNode({ options }: State, node: string): Promise<string[]> {
  const hosts: string[] = []
  try {
    const { host } = await options.addressOf(node, false)
    hosts.push(host)
    if (isIP(host) === 0) hosts.push(...(await lookup(host, { all: true })).map(({ address }) => address))
  } catch {
    // Its address is unavailable now: the peer dials again.
  }
  return hosts
}

/** For the log: what was expected of the certificate of a node, and what it has. */
export function mismatchText(
  { options, material }: State,
  node: string,
  hosts: readonly (string | undefined)[],
  certificate: X509Certificate | undefined,
): string {
  const needsId = material !== undefined && requiresNodeId(material, options.requireNodeId)
  const places = [...new Set(hosts.filter((host) => host !== undefined))].join(' or ')
  const expected = needsId ? nodeUri(node) : `${nodeUri(node)} or the host ${places || 'of the node'}`
  return `expected ${expected}, the certificate has ${namesText(certificate)}`
}

/** For the log: why the certificate of a peer is not trusted, with its dates. */
export function distrustText(socket: TLSSocket): string {
  const { authorizationError: error } = socket
  const reason = error ? String((error as { code?: string }).code ?? error) : ''
  const certificate = socket.getPeerX509Certificate()
  return certificate ? `${reason}: valid from ${certificate.validFrom} to ${certificate.validTo}` : reason
}

/** Logged once: a shard whose nodes share a certificate may be intended or a mistake. */
export function warnUnnamed(state: State, node: string): void {
  if (state.isUnnamedWarned) return
  state.isUnnamedWarned = true
  state.options.env.log.warn(
    { node },
    'certificates that name hosts and no node are accepted: the key of one can impersonate any node at its addresses',
  )
}

export function linksOf(state: State): Link[] {
  const slots = [...state.peers.values()].flatMap(slotsOf)
  return slots.flatMap(({ outgoing, incoming }) => [outgoing, incoming]).filter((link) => link !== undefined)
}

export const nowOf = ({ options }: State): number => options.env.clock.monotonicMs()

/** Most distinct warnings remembered; beyond this the oldest is dropped. */
const WARNINGS_MAX = 1_000

/** Logs a warning, at most once per interval for the same subject. */
export function warn(state: State, what: string, fields: object, message: string): void {
  const { warnings, limits, options } = state
  const nowMs = nowOf(state)
  const last = warnings.get(what)
  if (last && nowMs - last.atMs < limits.warnMs) {
    last.suppressed++
    return
  }
  const [oldest] = warnings.size >= WARNINGS_MAX ? warnings.keys() : []
  if (oldest !== undefined) warnings.delete(oldest)
  warnings.set(what, { atMs: nowMs, suppressed: 0 })
  options.env.log.warn(last?.suppressed ? { ...fields, suppressed: last.suppressed } : fields, message)
}
