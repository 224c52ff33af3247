/**
 * The real transport (docs/design/protocol.md#peer-frames): TLS 1.3 with certificates on both sides, over TCP on
 * `quic_port`; plain TCP with `--insecure-cluster`.
 *
 * **Connections.** A node dials each of its peers three times, once per stream, and sends on the connections it
 * dialled. A pair thus has two connections per stream, one in each direction: no rule for the direction is needed, and
 * each side detects the loss of the other by itself. While a node has no open connection of its own, it also sends on
 * connections that the peer dialled. A joining node thus gets replies before its address is known.
 *
 *   dialler                                         acceptor
 *   TCP, TLS: both check certificates  ◄──────────► a certificate is valid for the node it names, and no other;
 *                                                   one that names hosts, for nodes found there (peer-tls.ts)
 *   hello: protocol, stream, node, addressee ──────►
 *                                      ◄──────────  welcome: node; or refused: reason, and close
 *   frames, and keep-alives when idle ◄───────────► the same
 *
 * Until its hello is accepted, a connection has a deadline, a few hundred bytes, and one of a few places.
 *
 * **Instances.** Each opened transport draws an instance, 128 random bits sent in hello and welcome. While a connection
 * with one instance of a node is alive, another instance is refused: of two nodes with one id, the later one. A
 * restarted node is a new instance too; its old connections were closed by its kernel, or are silent and end.
 *
 * **A dead peer.** When the peer closes the last connection of a stream, this node dials at once. A refused connection
 * means that the process is gone (docs/design/consensus.md#fast-failover). A welcome means that only the connection was
 * cut. An accepted connection alone proves nothing yet.
 */

import type { Server } from 'node:net'
import { assert } from '@vacancy/shared'
import type { TlsMaterial } from '@vacancy/shared/node'
import { listen } from './accept.ts'
import { addPeer, dial, drop, flush, forgetIfIdle, forgetLoss, lose, stopDialling } from './dial.ts'
import { FRAME_BYTES_MAX } from './frame-fields.ts'
import { KEEP_ALIVE } from './framing.ts'
import { INSTANCE_BYTES } from './handshake.ts'
import { checkPeerTls, peerContext, requiresNodeId } from './peer-tls.ts'
import type { StreamKind, Transport, TransportEvents } from './transport.ts'
import {
  CLOSE_REASONS,
  type Link,
  linksOf,
  nowOf,
  type Slot,
  type State,
  type StreamCounters,
  slotsOf,
  type Tally,
  type TlsTransportOptions,
  TRANSPORT_LIMITS,
  type TransportCounters,
  warnUnnamed,
} from './transport-state.ts'

export type TlsTransport = Transport & {
  /** The listening port. */
  readonly port: number
  /**
   * Uses another certificate for new connections; open ones stay.
   *
   * @throws VacancyError invalid_tls: it does not name this node, or its authority is unknown; the old one stays in
   * force
   */
  reload(material: TlsMaterial): void
  counters(): TransportCounters
}

/** Opens the listener; connections follow `setPeers`. @throws VacancyError port_taken, invalid_tls */
export function openTlsTransport(options: TlsTransportOptions): (events: TransportEvents) => Promise<TlsTransport> {
  return async (events) => {
    const { env, node, tls, requireNodeId } = options
    if (tls !== undefined) checkPeerTls(tls, node, requireNodeId)
    const state: State = {
      options,
      limits: { ...TRANSPORT_LIMITS, ...options.limits },
      events,
      instance: Buffer.from(env.random.bytes(INSTANCE_BYTES)).toString('hex'),
      peers: new Map(),
      pending: new Map(),
      material: tls,
      context: tls && peerContext(tls),
      isUnnamedWarned: false,
      isClosed: false,
      opened: 0,
      accepted: 0,
      reconnects: 0,
      refused: createTally(),
      failed: createTally(),
      lost: createTally(),
      streams: { control: createStreamCounters(), append: createStreamCounters(), bulk: createStreamCounters() },
      warnings: new Map(),
    }
    if (tls !== undefined && !requiresNodeId(tls, requireNodeId)) warnUnnamed(state, node)
    const { server, port, reload } = await listen(state)
    const stopWatch = watch(state)
    return {
      port,
      send: (peer, stream, frame) => send(state, peer, stream, frame),
      queuedBytes: (peer, stream) => bytesWaiting(state.peers.get(peer)?.slots[stream]),
      setPeers: (peers) => setPeers(state, peers),
      reload(material) {
        if (tls === undefined) return
        checkPeerTls(material, node, requireNodeId)
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

// Sending

function send(state: State, node: string, stream: StreamKind, frame: Uint8Array): boolean {
  assert(frame.length > 0 && frame.length <= FRAME_BYTES_MAX, 'a frame is neither empty nor larger than the bound')
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

// Peers and their connections

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

/** Sends keep-alives and closes connections on which the other side is silent. @returns a function that stops it */
function watch(state: State): () => void {
  const { keepAliveMs, silenceMs } = state.limits
  const everyMs = Math.min(keepAliveMs, silenceMs / 2) / 2
  let lastMs = nowOf(state)
  let cancel = (): void => {}
  const look = (): void => {
    const nowMs = nowOf(state)
    // If this process stalled, frames that peers sent meanwhile are still unread.
    const wasStalled = nowMs - lastMs > silenceMs / 2
    lastMs = nowMs
    for (const link of linksOf(state)) {
      if (wasStalled) link.receivedMs = nowMs
      if (nowMs - link.receivedMs >= silenceMs) lose(state, link, 'silent')
      else if (nowMs - link.sentMs >= keepAliveMs && link.socket.writableLength === 0) {
        link.sentMs = nowMs
        link.socket.write(KEEP_ALIVE)
      }
    }
    cancel = state.options.env.schedule.after(everyMs, look)
  }
  cancel = state.options.env.schedule.after(everyMs, look)
  return () => cancel()
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

function createTally(): Tally {
  return Object.fromEntries(CLOSE_REASONS.map((reason) => [reason, 0])) as Tally
}

function createStreamCounters(): StreamCounters {
  return { framesIn: 0, framesOut: 0, bytesIn: 0, bytesOut: 0, keepAlivesIn: 0, dropped: 0 }
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
