/**
 * The real transport (consensus.md §4): TLS 1.3 with certificates on both sides, over TCP on `quic_port`; plain TCP
 * with `--insecure-cluster`.
 *
 * **Connections.** A node dials each of its peers three times, once a stream, and sends on what it dialled. So there are
 * two connections a stream and pair, one each way: who connects to whom never has to be settled, and each side finds out
 * by itself that the other is gone. What a peer dialled carries frames back as well while no connection of our own is
 * open: a node that joins gets its answers before anybody knows its address.
 *
 *   dialler                                         acceptor
 *   TCP, TLS: both check certificates  ◄──────────► a certificate is good for the node it names, and no other
 *   hello: protocol, stream, node, whom it means ──►
 *                                      ◄──────────  welcome: node; or refused: reason, and close
 *   frames, and a sign of life when idle ◄────────► the same
 *
 * Until its hello was taken a connection has a deadline, a few hundred bytes, and one of a few places.
 *
 * **Instances.** Each opened transport draws an instance, 128 random bits that travel in hello and welcome. While a
 * connection with one instance of a node is alive, another instance is refused: of two nodes with one id the later one.
 * A restarted node is a new instance as well; its old connections were closed by its kernel, or are silent and end.
 *
 * **A dead peer.** When the last connection of a stream is closed by the peer we dial at once; refused means that the
 * process is gone (E10), a welcome that only the connection was cut. An accepted connection alone means nothing yet.
 */

import type { X509Certificate } from 'node:crypto'
import { type AddressInfo, connect as connectTcp, createServer, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer, type SecureContext, TLSSocket } from 'node:tls'
import { assert, VacancyError } from '@vacancy/shared'
import type { TlsMaterial } from '@vacancy/shared/node'
import { type Env, errnoOf } from '../env.ts'
import { FRAME_BYTES_MAX } from './frame-fields.ts'
import { createFraming, type Framing, type FramingFault, frameParts, SIGN_OF_LIFE, takeChunk } from './framing.ts'
import {
  decodeAnswer,
  decodeHello,
  encodeHello,
  encodeRefusal,
  encodeWelcome,
  HELLO_BYTES_MAX,
  INSTANCE_BYTES,
  type Refusal,
} from './greeting.ts'
import { checkPeerTls, nodeNamedBy, peerContext, peerContextOptions } from './peer-tls.ts'
import { STREAMS, type StreamKind, type Transport, type TransportEvents } from './transport.ts'

export const TRANSPORT_LIMITS = {
  /** From accepting a connection to its hello, and from dialling to the welcome. */
  greetingMs: 5_000,
  /** An idle connection says that it is there. */
  signMs: 2_000,
  /** A connection on which nothing came for so long is half open. */
  silenceMs: 8_000,
  /** Back-off between attempts to connect; each wait is between half of it and all of it. */
  retryMsMin: 50,
  retryMsMax: 2_000,
  /** How long a loss is kept back to learn whether the peer is dead. */
  verdictMs: 500,
  /** Connections whose hello is still to come; of more the oldest goes, so that slow ones keep nobody out. */
  unauthenticated: 64,
  /** Nodes with a connection or wanted. */
  peers: 256,
  /** What waits on one stream for one peer. Past it frames are dropped: raft sends again. */
  controlBytes: 4 << 20,
  appendBytes: 32 << 20,
  bulkBytes: 16 << 20,
  queuedFrames: 4_096,
  /** What is handed to a socket at a time; the rest waits here, where it can be counted. */
  socketBytes: 512 << 10,
  /** The same complaint is logged once in so long. */
  complainMs: 60_000,
} as const
export type TransportLimits = { readonly [name in keyof typeof TRANSPORT_LIMITS]: number }

export type Address = { readonly host: string; readonly port: number }

export type TlsTransportOptions = {
  readonly env: Pick<Env, 'clock' | 'random' | 'schedule' | 'log'>
  /** Own node id. */
  readonly node: string
  readonly host: string
  /** 0 for any free one. */
  readonly port: number
  /** Certificate, key and the authority as `clientCa`; undefined: plain TCP, where a node is who it says (`--insecure-cluster`). */
  readonly tls: TlsMaterial | undefined
  /**
   * Where a node listens; a failure is tried again later. Asked before each attempt but the first after a loss, and told
   * whether the attempt before failed to connect (discovery.ts).
   */
  readonly addressOf: (node: string, wasUnreachable: boolean) => Promise<Address>
  /** A peer goes on refusing us because another node with our id is connected to it; once a peer (platform.md §7.9, exit 65). */
  readonly onDuplicate?: ((peer: string) => void) | undefined
  readonly limits?: Partial<TransportLimits> | undefined
}

export type TlsTransport = Transport & {
  /** The port it listens on. */
  readonly port: number
  /**
   * Takes another certificate for connections to come; those that are open stay.
   *
   * @throws VacancyError invalid_tls: it is not this node's, or not of its authority; the old one stays in force
   */
  reload(material: TlsMaterial): void
  counters(): TransportCounters
}

/** Why a connection was not taken, or was closed by us; `peerClosed` and `network` are not our doing. */
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
type Tally = { [reason in CloseReason]: number }

export type StreamCounters = {
  framesIn: number
  framesOut: number
  bytesIn: number
  bytesOut: number
  /** Signs of life that came. */
  signsIn: number
  /** Frames that were not taken: no connection, or a full queue; and those that waited when a connection was lost. */
  dropped: number
}

/** For metrics; a copy. */
export type TransportCounters = {
  readonly outgoing: number
  readonly incoming: number
  readonly unauthenticated: number
  /** Connections that came up since the start: those we dialled, and those we were dialled by. */
  readonly opened: number
  readonly accepted: number
  readonly reconnects: number
  /** Incoming connections that were not taken. */
  readonly refused: Readonly<Tally>
  /** Attempts to connect that failed. */
  readonly failed: Readonly<Tally>
  /** Connections that were open and were lost. */
  readonly lost: Readonly<Tally>
  readonly streams: { readonly [stream in StreamKind]: Readonly<StreamCounters> }
  /** Undefined without TLS. */
  readonly certificateNotAfterMs: number | undefined
}

type State = {
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
  isClosed: boolean
  opened: number
  accepted: number
  reconnects: number
  readonly refused: Tally
  readonly failed: Tally
  readonly lost: Tally
  readonly streams: { readonly [stream in StreamKind]: StreamCounters }
  readonly complaints: Map<string, { atMs: number; unsaid: number }>
}

type Pending = {
  /** Counts why it is not taken, and closes it. */
  readonly end: (reason: CloseReason) => void
  /** The same, but the dialler is told first; it has the rest of its time to go. */
  readonly refuse: (socket: Socket, refusal: Refusal) => void
  /** It was taken: its place is free. */
  readonly settle: () => void
}

type Peer = {
  readonly node: string
  /** In the list of `setPeers`. */
  isWanted: boolean
  /** Of its open connections; '' when there are none. */
  instance: string
  readonly slots: { readonly [stream in StreamKind]: Slot }
  /** Since when it refuses us as a duplicate; −1 when it does not. */
  refusedSinceMs: number
  isReported: boolean
}

/** One stream of one peer. It can be used while one of its links is open. */
type Slot = {
  readonly peer: Peer
  readonly stream: StreamKind
  outgoing: Link | undefined
  incoming: Link | undefined
  /** Ends the attempt or the wait that is under way; undefined when there is none. */
  stopDialling: (() => void) | undefined
  isWaiting: boolean
  attempts: number
  address: Address | undefined
  /** A loss that is not reported yet; cancels its time-out. */
  unreported: (() => void) | undefined
  wasOpen: boolean
}

type Link = {
  readonly slot: Slot
  readonly isOutgoing: boolean
  readonly socket: Socket
  readonly queue: Uint8Array[]
  /** First of the queue that is not with the socket yet. */
  next: number
  queuedBytes: number
  isFlushing: boolean
  heardMs: number
  sentMs: number
  isOpen: boolean
}

/** Opens the listener; connections follow `setPeers`. @throws VacancyError port_taken, invalid_tls */
export function openTlsTransport(options: TlsTransportOptions): (events: TransportEvents) => Promise<TlsTransport> {
  return async (events) => {
    const { env, node, tls } = options
    if (tls !== undefined) checkPeerTls(tls, node)
    const state: State = {
      options,
      limits: { ...TRANSPORT_LIMITS, ...options.limits },
      events,
      instance: Buffer.from(env.random.bytes(INSTANCE_BYTES)).toString('hex'),
      peers: new Map(),
      pending: new Map(),
      material: tls,
      context: tls && peerContext(tls),
      isClosed: false,
      opened: 0,
      accepted: 0,
      reconnects: 0,
      refused: createTally(),
      failed: createTally(),
      lost: createTally(),
      streams: { control: createStreamCounters(), append: createStreamCounters(), bulk: createStreamCounters() },
      complaints: new Map(),
    }
    const { server, port, reload } = await listen(state)
    const stopWatch = watch(state)
    return {
      port,
      send: (peer, stream, frame) => send(state, peer, stream, frame),
      queuedBytes: (peer, stream) => bytesWaiting(state.peers.get(peer)?.slots[stream]),
      setPeers: (peers) => setPeers(state, peers),
      reload(material) {
        if (tls === undefined) return
        checkPeerTls(material, node)
        reload(material)
        state.context = peerContext(material)
        state.material = material
      },
      counters: () => countersOf(state),
      async close() {
        if (state.isClosed) return
        state.isClosed = true
        stopWatch()
        await closeAll(state, server)
      },
    }
  }
}

// Sending.

function send(state: State, node: string, stream: StreamKind, frame: Uint8Array): boolean {
  assert(
    frame.length > 0 && frame.length <= FRAME_BYTES_MAX,
    'a frame is neither empty nor larger than any may be (L5)',
  )
  const slot = state.peers.get(node)?.slots[stream]
  const link = slot?.outgoing ?? slot?.incoming
  if (link === undefined || !hasRoom(state, link, frame.length)) {
    state.streams[stream].dropped++
    return false
  }
  link.queue.push(frame)
  link.queuedBytes += frame.length
  if (!link.isFlushing) {
    link.isFlushing = true
    // Frames of one turn leave in one write.
    process.nextTick(flush, state, link)
  }
  return true
}

function hasRoom({ limits }: State, { slot, socket, queue, next, queuedBytes }: Link, bytes: number): boolean {
  const bytesMax = limits[`${slot.stream}Bytes`]
  return queue.length - next < limits.queuedFrames && queuedBytes + socket.writableLength + bytes <= bytesMax
}

function bytesWaiting(slot: Slot | undefined): number {
  const link = slot?.outgoing ?? slot?.incoming
  return link === undefined ? 0 : link.queuedBytes + link.socket.writableLength
}

/** Hands frames to the socket while it has room; `drain` goes on. */
function flush(state: State, link: Link): void {
  link.isFlushing = false
  if (!link.isOpen) return
  const { queue, socket, slot } = link
  const counters = state.streams[slot.stream]
  socket.cork()
  while (link.next < queue.length && socket.writableLength < state.limits.socketBytes) {
    const frame = queue[link.next++] as Uint8Array
    link.queuedBytes -= frame.length
    counters.framesOut++
    counters.bytesOut += frame.length
    for (const part of frameParts(frame)) socket.write(part)
  }
  socket.uncork()
  link.sentMs = nowOf(state)
  if (link.next < queue.length && link.next < 64) return
  queue.splice(0, link.next)
  link.next = 0
}

// Peers and their links.

function setPeers(state: State, nodes: readonly string[]): void {
  if (state.isClosed) return
  const wanted = new Set(nodes.filter((node) => node !== state.options.node).slice(0, state.limits.peers))
  for (const peer of [...state.peers.values()]) {
    if (!peer.isWanted || wanted.has(peer.node)) continue
    peer.isWanted = false
    for (const slot of slotsOf(peer)) {
      stopDialling(slot)
      forgetLoss(slot)
      if (slot.outgoing) drop(state, slot.outgoing, 'unwanted')
    }
    forgetIfIdle(state, peer)
  }
  for (const node of wanted) {
    const peer = state.peers.get(node) ?? addPeer(state, node)
    if (peer.isWanted) continue
    peer.isWanted = true
    for (const slot of slotsOf(peer)) dial(state, slot)
  }
}

function addPeer(state: State, node: string): Peer {
  const slots = {} as { [stream in StreamKind]: Slot }
  const peer: Peer = { node, isWanted: false, instance: '', slots, refusedSinceMs: -1, isReported: false }
  for (const stream of STREAMS) {
    slots[stream] = {
      peer,
      stream,
      outgoing: undefined,
      incoming: undefined,
      stopDialling: undefined,
      isWaiting: false,
      attempts: 0,
      address: undefined,
      unreported: undefined,
      wasOpen: false,
    }
  }
  state.peers.set(node, peer)
  return peer
}

const slotsOf = (peer: Peer): readonly Slot[] => STREAMS.map((stream) => peer.slots[stream])
const isUsable = (slot: Slot): boolean => slot.outgoing !== undefined || slot.incoming !== undefined

function forgetIfIdle(state: State, peer: Peer): void {
  if (slotsOf(peer).some(isUsable)) return
  peer.instance = ''
  if (!peer.isWanted) state.peers.delete(peer.node)
}

/** A greeting succeeded: the connection carries frames from now on. */
function open(state: State, slot: Slot, socket: Socket, isOutgoing: boolean, instance: string): Link {
  const { peer, stream } = slot
  assert(peer.instance === '' || peer.instance === instance, 'all connections of a node are of one instance')
  const nowMs = nowOf(state)
  const link: Link = {
    slot,
    isOutgoing,
    socket,
    queue: [],
    next: 0,
    queuedBytes: 0,
    isFlushing: false,
    heardMs: nowMs,
    sentMs: nowMs,
    isOpen: true,
  }
  const isNew = !isUsable(slot)
  const before = isOutgoing ? slot.outgoing : slot.incoming
  if (before) {
    assert(!isOutgoing, 'a slot has one dialler')
    // Only a dialler that lost its connection dials again: the one we know is half open.
    drop(state, before, 'replaced')
  }
  peer.instance = instance
  if (isOutgoing) {
    slot.outgoing = link
    state.opened++
  } else {
    slot.incoming = link
    state.accepted++
  }
  socket.on('drain', () => flush(state, link))
  socket.on('error', () => {}) // What it means is told by 'close'.
  socket.on('end', () => lose(state, link, 'peerClosed'))
  socket.on('close', () => lose(state, link, 'peerClosed'))
  if (isNew) {
    settleLoss(state, slot, false)
    if (stream === 'control') state.options.env.log.info({ peer: peer.node }, 'peer connected')
    state.events.onOpen(peer.node, stream)
  }
  return link
}

/** What a link hears. @returns false when it is closed and nothing more is to be read */
function hear(state: State, link: Link, body: Uint8Array): boolean {
  if (!link.isOpen) return false
  const { peer, stream } = link.slot
  const counters = state.streams[stream]
  if (body.length === 0) {
    counters.signsIn++
    return true
  }
  counters.framesIn++
  counters.bytesIn += body.length
  state.events.onFrame(peer.node, stream, body)
  return link.isOpen
}

/** Takes a link out of its slot. @returns whether it was there */
function detach(state: State, link: Link, reason: CloseReason): boolean {
  if (!link.isOpen) return false
  link.isOpen = false
  const { slot, queue } = link
  if (slot.outgoing === link) slot.outgoing = undefined
  if (slot.incoming === link) slot.incoming = undefined
  state.lost[reason]++
  state.streams[slot.stream].dropped += queue.length - link.next
  link.socket.destroy()
  return true
}

/** Closes a link of our own accord; nobody is told. */
function drop(state: State, link: Link, reason: CloseReason): void {
  detach(state, link, reason)
}

/** A link was lost, or has to be given up. */
function lose(state: State, link: Link, reason: CloseReason): void {
  if (!detach(state, link, reason) || state.isClosed) return
  const { slot } = link
  const { peer } = slot
  complain(
    state,
    `lost ${peer.node} ${reason}`,
    { peer: peer.node, stream: slot.stream, reason },
    'connection to a peer lost',
  )
  const isGone = !isUsable(slot)
  if (isGone) {
    forgetIfIdle(state, peer)
    if (peer.isWanted && reason === 'peerClosed') {
      slot.unreported = state.options.env.schedule.after(state.limits.verdictMs, () => settleLoss(state, slot, false))
    } else {
      state.events.onClosed(peer.node, slot.stream, false)
    }
  }
  if (peer.isWanted && (link.isOutgoing || isGone)) redial(state, slot)
}

function settleLoss(state: State, slot: Slot, isDead: boolean): void {
  if (slot.unreported === undefined) return
  forgetLoss(slot)
  state.events.onClosed(slot.peer.node, slot.stream, isDead)
}

function forgetLoss(slot: Slot): void {
  slot.unreported?.()
  slot.unreported = undefined
}

// Dialling.

function stopDialling(slot: Slot): void {
  slot.stopDialling?.()
  slot.stopDialling = undefined
  slot.isWaiting = false
}

/** Connects at once, to where the peer was last: it is the answer of that place that tells dead from cut. */
function redial(state: State, slot: Slot): void {
  if (slot.stopDialling !== undefined && !slot.isWaiting) return
  stopDialling(slot)
  slot.attempts = 0
  dial(state, slot, slot.address)
}

function dial(state: State, slot: Slot, known?: Address): void {
  if (state.isClosed || !slot.peer.isWanted || slot.outgoing || slot.stopDialling) return
  let isStopped = false
  slot.isWaiting = false
  slot.stopDialling = () => {
    isStopped = true
  }
  if (known !== undefined) return attempt(state, slot, known)
  state.options.addressOf(slot.peer.node, slot.attempts > 0).then(
    (address) => {
      if (!isStopped) attempt(state, slot, address)
    },
    (error: unknown) => {
      if (!isStopped) retry(state, slot, 'address', error)
    },
  )
}

/** After a failure: waits longer each time, never in step with others. */
function retry(state: State, slot: Slot, reason: CloseReason, error?: unknown): void {
  const { env } = state.options
  const { retryMsMin, retryMsMax } = state.limits
  state.failed[reason]++
  // A process that is being torn down still has its listener for a moment after its connections ended: one that took
  // us and let go again says nothing. The next attempt does, or the time for it is over.
  if (reason !== 'network') settleLoss(state, slot, reason === 'refused')
  // Whoever was told may have lost interest.
  if (!slot.peer.isWanted || state.isClosed) return
  const fields = {
    peer: slot.peer.node,
    stream: slot.stream,
    reason,
    cause: describe(error),
  }
  complain(state, `dial ${slot.peer.node} ${reason}`, fields, 'cannot connect to a peer')
  const ms = Math.min(retryMsMax, retryMsMin * 2 ** Math.min(slot.attempts++, 16))
  const fraction = ((env.random.bytes(1)[0] as number) + 1) / 256
  slot.isWaiting = true
  slot.stopDialling = env.schedule.after((ms / 2) * (1 + fraction), () => {
    slot.stopDialling = undefined
    dial(state, slot)
  })
}

/** For the log: `ECONNREFUSED`, `UNABLE_TO_VERIFY_LEAF_SIGNATURE`, or what the peer said. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return error === undefined ? '' : String(error)
  return 'code' in error ? String(error.code) : error.message
}

function attempt(state: State, slot: Slot, address: Address): void {
  const { options, limits, context } = state
  const { peer } = slot
  slot.address = address
  const socket = context
    ? connectTls({
        ...address,
        secureContext: context,
        minVersion: 'TLSv1.3',
        ALPNProtocols: [ALPN],
        // Who the peer is stands in its certificate under another kind of name, looked at below.
        checkServerIdentity: () => undefined,
      })
    : connectTcp(address)
  socket.setNoDelay(true)
  let isOver = false
  const end = (reason: CloseReason | undefined, error?: unknown): void => {
    if (isOver) return
    isOver = true
    cancel()
    slot.stopDialling = undefined
    if (reason === undefined) return
    socket.destroy()
    if (!state.isClosed) retry(state, slot, reason, error)
  }
  const cancel = options.env.schedule.after(limits.greetingMs, () => end('timeout'))
  slot.stopDialling = () => {
    isOver = true
    cancel()
    socket.destroy()
  }
  socket.on('error', (error) => end(failureOf(socket, error), error))
  socket.on('close', () => end('network'))
  socket.on(context ? 'secureConnect' : 'connect', () => {
    if (isOver) return
    if (socket instanceof TLSSocket && certifiedNode(socket) !== peer.node) return end('identity')
    socket.write(
      sealed(encodeHello({ stream: slot.stream, instance: state.instance, from: options.node, to: peer.node })),
    )
  })
  let link: Link | undefined
  const onBody = (framing: Framing, body: Uint8Array): boolean => {
    if (link) return hear(state, link, body)
    if (isOver) return false
    const answer = decodeAnswer(body)
    if (answer === undefined) end('hello')
    else if ('refusal' in answer) {
      if (answer.refusal === 'duplicate') suspectDuplicate(state, peer)
      end('peerRefused', answer.refusal)
    } else if (answer.node !== peer.node) end('identity')
    else if (peer.instance !== '' && peer.instance !== answer.instance) end('duplicate')
    else {
      end(undefined)
      framing.bodyBytesMax = FRAME_BYTES_MAX
      peer.refusedSinceMs = -1
      slot.attempts = 0
      if (slot.wasOpen) state.reconnects++
      slot.wasOpen = true
      link = open(state, slot, socket, true, answer.instance)
      return link.isOpen
    }
    return false
  }
  read(
    state,
    socket,
    () => link,
    onBody,
    (fault) => (link ? lose(state, link, fault) : end(fault)),
  )
}

/** We are told that a node with our id is there already. It may be what is left of our own last run, for a while. */
function suspectDuplicate(state: State, peer: Peer): void {
  const nowMs = nowOf(state)
  if (peer.refusedSinceMs < 0) peer.refusedSinceMs = nowMs
  if (peer.isReported || nowMs - peer.refusedSinceMs < 2 * state.limits.silenceMs) return
  peer.isReported = true
  const { log } = state.options.env
  log.error(
    { peer: peer.node, node: state.options.node },
    'another node with the id of this one is connected to a peer',
  )
  state.options.onDuplicate?.(peer.node)
}

function failureOf(socket: Socket, error: Error): CloseReason {
  if (errnoOf(error) === 'ECONNREFUSED') return 'refused'
  const code = 'code' in error ? String(error.code) : ''
  if (socket instanceof TLSSocket && socket.authorizationError) return 'certificate'
  if (/CERT|UNKNOWN_CA|ACCESS_DENIED/.test(code)) return 'certificate'
  return /SSL|TLS/.test(code) ? 'tls' : 'network'
}

// Listening.

const ALPN = 'vacancy-peer/1'

type Listener = { readonly server: Server; readonly port: number; readonly reload: (material: TlsMaterial) => void }

async function listen(state: State): Promise<Listener> {
  const { options, limits } = state
  const tls = options.tls && createTls(state, options.tls)
  const server = createServer({ noDelay: true }, (socket) => {
    const pending = admit(state, socket)
    if (!pending) return
    // The gate counts and times connections; TLS takes those that it lets in.
    if (tls) tls.emit('connection', socket)
    else greet(state, pending, socket, undefined)
  })
  await new Promise<void>((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException): void => {
      const address = `${options.host}:${options.port}`
      reject(new VacancyError('port_taken', { address, reason: cause.message }, { cause }))
    }
    server.once('error', fail)
    server.listen({ host: options.host, port: options.port, backlog: limits.peers }, () => {
      server.off('error', fail)
      // After it listens, errors are of single connections: out of file descriptors, gone before they were accepted.
      server.on('error', (err) => complain(state, 'accept', { err }, 'a connection from a peer could not be accepted'))
      resolve()
    })
  })
  const { port } = server.address() as AddressInfo
  return { server, port, reload: (material) => tls?.setSecureContext(peerContextOptions(material)) }
}

function createTls(state: State, material: TlsMaterial) {
  const server = createTlsServer({
    ...peerContextOptions(material),
    requestCert: true,
    // Checked below: left to the option, a connection is closed without a word to anybody why.
    rejectUnauthorized: false,
    ALPNProtocols: [ALPN],
    // The gate has a deadline for all of the greeting; this one only must not come first.
    handshakeTimeout: 2 * state.limits.greetingMs,
  })
  server.on('secureConnection', (socket) => {
    const pending = state.pending.get(placeOf(socket))
    const node = certifiedNode(socket)
    if (!pending) socket.destroy()
    // A resumed session would stand for a certificate that nobody looked at this time; peers resume none.
    else if (!socket.authorized || socket.isSessionReused()) pending.refuse(socket, 'certificate')
    else if (node === undefined) pending.refuse(socket, 'identity')
    else greet(state, pending, socket, node)
  })
  server.on('tlsClientError', (error, socket) => {
    const failure = failureOf(socket, error)
    state.pending.get(placeOf(socket))?.end(failure === 'network' ? 'peerClosed' : failure)
    socket.destroy()
  })
  return server
}

const placeOf = (socket: Socket): string => `${socket.remoteAddress}:${socket.remotePort}`

/** Gives a new connection its place and its deadline. */
function admit(state: State, socket: Socket): Pending | undefined {
  const { env } = state.options
  const place = placeOf(socket)
  socket.on('error', () => {}) // What it means is told by 'close'.
  if (socket.remotePort === undefined || state.isClosed) {
    socket.destroy()
    return undefined
  }
  const [oldest] = state.pending.size >= state.limits.unauthenticated ? state.pending.values() : []
  oldest?.end('crowded')
  let isCounted = false
  const count = (reason: CloseReason): void => {
    if (isCounted) return
    isCounted = true
    state.refused[reason]++
    complain(state, `refused ${reason}`, { from: place, reason }, 'connection to the cluster port refused')
  }
  const settle = (): void => {
    cancel()
    if (state.pending.get(place) === pending) state.pending.delete(place)
  }
  const end = (reason: CloseReason): void => {
    if (state.pending.get(place) !== pending) return
    count(reason)
    settle()
    socket.destroy()
  }
  const refuse = (talker: Socket, refusal: Refusal): void => {
    count(refusal)
    talker.end(sealed(encodeRefusal(refusal)))
  }
  const cancel = env.schedule.after(state.limits.greetingMs, () => end('timeout'))
  const pending: Pending = { end, refuse, settle }
  state.pending.set(place, pending)
  socket.on('close', () => end('peerClosed'))
  return pending
}

/** Waits for the hello of a connection whose certificate, if there is TLS, is good for `certified`. */
function greet(state: State, pending: Pending, socket: Socket, certified: string | undefined): void {
  const { node: own } = state.options
  let link: Link | undefined
  let isOver = false
  const onBody = (framing: Framing, body: Uint8Array): boolean => {
    if (link) return hear(state, link, body)
    if (isOver) return false
    const hello = decodeHello(body)
    const node = certified ?? hello?.from
    const peer = node === undefined ? undefined : state.peers.get(node)
    isOver = true
    if (hello === undefined || node === undefined) pending.end('hello')
    else if (hello.from !== node) pending.refuse(socket, 'identity')
    else if (hello.to !== own) pending.refuse(socket, 'addressee')
    else if (node === own) pending.refuse(socket, 'self')
    else if (!peer && state.peers.size >= state.limits.peers) pending.refuse(socket, 'crowded')
    else if (peer && peer.instance !== '' && peer.instance !== hello.instance) pending.refuse(socket, 'duplicate')
    else {
      pending.settle()
      framing.bodyBytesMax = FRAME_BYTES_MAX
      socket.write(sealed(encodeWelcome({ instance: state.instance, node: own })))
      const slot = (peer ?? addPeer(state, node)).slots[hello.stream]
      link = open(state, slot, socket, false, hello.instance)
      // It is back: no reason to wait any longer.
      if (slot.isWaiting) redial(state, slot)
      return link.isOpen
    }
    return false
  }
  const onFault = (fault: FramingFault): void => (link ? lose(state, link, fault) : pending.end(fault))
  read(state, socket, () => link, onBody, onFault)
}

// Both sides.

/** Reads frames from a socket: at first only such as fit a greeting. */
function read(
  state: State,
  socket: Socket,
  linkOf: () => Link | undefined,
  onBody: (framing: Framing, body: Uint8Array) => boolean,
  onFault: (fault: FramingFault) => void,
): void {
  const framing = createFraming(HELLO_BYTES_MAX)
  const take = (body: Uint8Array): boolean => onBody(framing, body)
  socket.on('data', (chunk: Buffer) => {
    const link = linkOf()
    if (link) link.heardMs = nowOf(state)
    const fault = takeChunk(framing, chunk, take)
    if (fault !== '') onFault(fault)
  })
}

const sealed = (body: Uint8Array): Uint8Array => {
  const [part, ...more] = frameParts(body)
  assert(part !== undefined && more.length === 0, 'a greeting is written as one')
  return part
}

/** The node that the certificate of the other side is good for. */
function certifiedNode(socket: TLSSocket): string | undefined {
  const certificate: X509Certificate | undefined = socket.getPeerX509Certificate()
  return nodeNamedBy(certificate?.subjectAltName)
}

/** Says that we are there, and gives up connections on which the other side does not. @returns ends it */
function watch(state: State): () => void {
  const { signMs, silenceMs } = state.limits
  const everyMs = Math.min(signMs, silenceMs / 2) / 2
  let lastMs = nowOf(state)
  let cancel = (): void => {}
  const look = (): void => {
    const nowMs = nowOf(state)
    // When it was we who stood still, what peers sent meanwhile is still to be read.
    const wasStalled = nowMs - lastMs > silenceMs / 2
    lastMs = nowMs
    for (const link of linksOf(state)) {
      if (wasStalled) link.heardMs = nowMs
      if (nowMs - link.heardMs >= silenceMs) lose(state, link, 'silent')
      else if (nowMs - link.sentMs >= signMs && link.socket.writableLength === 0) {
        link.sentMs = nowMs
        link.socket.write(SIGN_OF_LIFE)
      }
    }
    cancel = state.options.env.schedule.after(everyMs, look)
  }
  cancel = state.options.env.schedule.after(everyMs, look)
  return () => cancel()
}

function linksOf(state: State): Link[] {
  const slots = [...state.peers.values()].flatMap(slotsOf)
  return slots.flatMap(({ outgoing, incoming }) => [outgoing, incoming]).filter((link) => link !== undefined)
}

async function closeAll(state: State, server: Server): Promise<void> {
  for (const slot of [...state.peers.values()].flatMap(slotsOf)) {
    stopDialling(slot)
    forgetLoss(slot)
  }
  for (const link of linksOf(state)) drop(state, link, 'unwanted')
  for (const pending of [...state.pending.values()]) pending.end('unwanted')
  state.peers.clear()
  await new Promise<void>((resolve) => server.close(() => resolve()))
}

const nowOf = ({ options }: State): number => options.env.clock.monotonicMs()

/** Different complaints remembered at once; beyond, the oldest is forgotten. */
const COMPLAINTS_MAX = 1_000

/** Warns, once in a while for the same thing. */
function complain(state: State, what: string, fields: object, message: string): void {
  const { complaints, limits, options } = state
  const nowMs = nowOf(state)
  const last = complaints.get(what)
  if (last && nowMs - last.atMs < limits.complainMs) {
    last.unsaid++
    return
  }
  const [oldest] = complaints.size >= COMPLAINTS_MAX ? complaints.keys() : []
  if (oldest !== undefined) complaints.delete(oldest)
  complaints.set(what, { atMs: nowMs, unsaid: 0 })
  options.env.log.warn(last?.unsaid ? { ...fields, unsaid: last.unsaid } : fields, message)
}

function createTally(): Tally {
  return Object.fromEntries(CLOSE_REASONS.map((reason) => [reason, 0])) as Tally
}

function createStreamCounters(): StreamCounters {
  return { framesIn: 0, framesOut: 0, bytesIn: 0, bytesOut: 0, signsIn: 0, dropped: 0 }
}

function countersOf(state: State): TransportCounters {
  const slots = [...state.peers.values()].flatMap(slotsOf)
  const { control, append, bulk } = state.streams
  return {
    outgoing: slots.filter(({ outgoing }) => outgoing).length,
    incoming: slots.filter(({ incoming }) => incoming).length,
    unauthenticated: state.pending.size,
    opened: state.opened,
    accepted: state.accepted,
    reconnects: state.reconnects,
    refused: { ...state.refused },
    failed: { ...state.failed },
    lost: { ...state.lost },
    streams: { control: { ...control }, append: { ...append }, bulk: { ...bulk } },
    certificateNotAfterMs: state.material?.notAfterMs,
  }
}
