/** Connections that this node opens, sends on and loses. A lost one is opened again after a growing delay. */

import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { ATTEMPT_MS, assert, followAttempts } from '@vacancy/shared'
import { FRAME_BYTES_MAX } from './frame-fields.ts'
import { createFraming, type Framing, type FramingFault, frameParts, takeChunk } from './framing.ts'
import { decodeAnswer, encodeHello, HELLO_BYTES_MAX } from './handshake.ts'
import { STREAMS, type StreamKind } from './transport.ts'
import {
  type Address,
  ALPN,
  type CloseReason,
  describe,
  distrustText,
  failureOf,
  isGoodForAny,
  isUsable,
  type Link,
  mismatchText,
  namedOf,
  nowOf,
  type Peer,
  type Slot,
  type State,
  sealed,
  slotsOf,
  type TransportLimits,
  warn,
  warnUnnamed,
} from './transport-state.ts'

/** Passes frames to the socket while it has room; the `drain` event continues. */
export function flush(state: State, link: Link): void {
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

export function addPeer(state: State, node: string): Peer {
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

export function forgetIfIdle(state: State, peer: Peer): void {
  if (slotsOf(peer).some(isUsable)) return
  peer.instance = ''
  if (!peer.isWanted) state.peers.delete(peer.node)
}

/** The handshake succeeded: the connection carries frames from now on. */
export function open(state: State, slot: Slot, socket: Socket, isOutgoing: boolean, instance: string): Link {
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
    receivedMs: nowMs,
    sentMs: nowMs,
    isOpen: true,
  }
  const isNew = !isUsable(slot)
  const before = isOutgoing ? slot.outgoing : slot.incoming
  if (before) {
    assert(!isOutgoing, 'a slot has one dialler')
    // Only a dialler that lost its connection dials again: the known one is half open.
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
  socket.on('error', () => {}) // 'close' follows and handles it.
  socket.on('end', () => lose(state, link, 'peerClosed'))
  socket.on('close', () => lose(state, link, 'peerClosed'))
  if (isNew) {
    settleLoss(state, slot, false)
    if (stream === 'control') state.options.env.log.info({ peer: peer.node }, 'peer connected')
    state.events.onOpen(peer.node, stream)
  }
  return link
}

/** Handles bytes received on a connection. @returns false when it is closed and no more is to be read */
export function receive(state: State, link: Link, body: Uint8Array): boolean {
  if (!link.isOpen) return false
  const { peer, stream } = link.slot
  const counters = state.streams[stream]
  if (body.length === 0) {
    counters.keepAlivesIn++
    return true
  }
  counters.framesIn++
  counters.bytesIn += body.length
  state.events.onFrame(peer.node, stream, body)
  return link.isOpen
}

/** Removes a connection from its slot. @returns whether it was there */
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

/** Closes a connection without reporting a loss. */
export function drop(state: State, link: Link, reason: CloseReason): void {
  detach(state, link, reason)
}

/** Handles a connection that was lost or has to be closed. */
export function lose(state: State, link: Link, reason: CloseReason): void {
  if (!detach(state, link, reason) || state.isClosed) return
  const { slot } = link
  const { peer } = slot
  warn(
    state,
    `lost ${peer.node} ${reason}`,
    { peer: peer.node, stream: slot.stream, reason },
    'connection to a peer lost',
  )
  const isGone = !isUsable(slot)
  if (isGone) {
    forgetIfIdle(state, peer)
    if (peer.isWanted && reason === 'peerClosed') {
      slot.unreported = state.options.env.schedule.after(state.limits.lossMs, () => settleLoss(state, slot, false))
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

export function forgetLoss(slot: Slot): void {
  slot.unreported?.()
  slot.unreported = undefined
}

// Dialling

export function stopDialling(slot: Slot): void {
  slot.stopDialling?.()
  slot.stopDialling = undefined
  slot.isWaiting = false
}

/** Dials the last known address at once: its reply distinguishes a dead peer from a cut connection. */
export function redial(state: State, slot: Slot): void {
  if (slot.stopDialling !== undefined && !slot.isWaiting) return
  stopDialling(slot)
  slot.attempts = 0
  dial(state, slot, slot.address)
}

export function dial(state: State, slot: Slot, known?: Address): void {
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

/**
 * Milliseconds until the next attempt to connect. They double with each one that failed before, up to a limit, and are
 * drawn between half of that and all of it, so that nodes do not return at the same time.
 *
 * @param random a byte
 */
export function retryMs(
  { retryMsMin, retryMsMax }: Pick<TransportLimits, 'retryMsMin' | 'retryMsMax'>,
  failedBefore: number,
  random: number,
): number {
  const ms = Math.min(retryMsMax, retryMsMin * 2 ** Math.min(failedBefore, 16))
  return (ms / 2) * (1 + (random + 1) / 256)
}

/** After a failure: waits longer each time, with jitter. */
function retry(state: State, slot: Slot, reason: CloseReason, error?: unknown): void {
  const { env } = state.options
  state.failed[reason]++
  // A process that is ending keeps its listener for a moment after its connections. A connection that it accepts and
  // closes proves nothing. The next attempt decides, or the timeout does.
  if (reason !== 'network') settleLoss(state, slot, reason === 'refused')
  // An event handler may have removed the peer.
  if (!slot.peer.isWanted || state.isClosed) return
  const fields = {
    peer: slot.peer.node,
    stream: slot.stream,
    reason,
    cause: describe(error),
  }
  warn(state, `dial ${slot.peer.node} ${reason}`, fields, 'cannot connect to a peer')
  const ms = retryMs(state.limits, slot.attempts++, env.random.bytes(1)[0])
  slot.isWaiting = true
  slot.stopDialling = env.schedule.after(ms, () => {
    slot.stopDialling = undefined
    dial(state, slot)
  })
}

function attempt(state: State, slot: Slot, address: Address): void {
  const { options, limits, context } = state
  const { peer } = slot
  slot.address = address
  const target = { ...address, autoSelectFamilyAttemptTimeout: ATTEMPT_MS }
  const socket = context
    ? connectTls({
        ...target,
        secureContext: context,
        minVersion: 'TLSv1.3',
        ALPNProtocols: [ALPN],
        // Both are checked below, where the log can say why.
        checkServerIdentity: () => undefined,
        rejectUnauthorized: false,
      })
    : connectTcp(target)
  const reasonOf = followAttempts(socket)
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
  const cancel = options.env.schedule.after(limits.handshakeMs, () => end('timeout', reasonOf('')))
  slot.stopDialling = () => {
    isOver = true
    cancel()
    socket.destroy()
  }
  socket.on('error', (error) => end(failureOf(socket, error), reasonOf('') || error))
  socket.on('close', () => end('network'))
  socket.on(context ? 'secureConnect' : 'connect', () => {
    if (isOver) return
    if (socket instanceof TLSSocket) {
      if (!socket.authorized) return end('certificate', distrustText(socket))
      const named = namedOf(state, socket)
      const certificate = socket.getPeerX509Certificate()
      const hosts = [address.host, socket.remoteAddress]
      const isPeer =
        typeof named === 'object'
          ? named.node === peer.node
          : named === 'any' || (named === 'hosts' && isGoodForAny(certificate, hosts))
      if (!isPeer) return end('identity', mismatchText(state, peer.node, hosts, certificate))
      if (named === 'hosts') warnUnnamed(state, peer.node)
    }
    socket.write(
      sealed(encodeHello({ stream: slot.stream, instance: state.instance, from: options.node, to: peer.node })),
    )
  })
  let link: Link | undefined
  const onBody = (framing: Framing, body: Uint8Array): boolean => {
    if (link) return receive(state, link, body)
    if (isOver) return false
    const answer = decodeAnswer(body)
    if (answer === undefined) end('hello')
    else if ('refusal' in answer) {
      if (answer.refusal === 'duplicate') suspectDuplicate(state, peer)
      end('peerRefused', answer.refusal)
    } else if (answer.node !== peer.node) end('identity', `it is ${answer.node}`)
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

/** A peer reports that a node with our id is connected. For a while it may be our own previous process. */
function suspectDuplicate(state: State, peer: Peer): void {
  const nowMs = nowOf(state)
  if (peer.refusedSinceMs < 0) peer.refusedSinceMs = nowMs
  if (peer.isReported || nowMs - peer.refusedSinceMs < 2 * state.limits.silenceMs) return
  peer.isReported = true
  const { log } = state.options.env
  log.error(
    { peer: peer.node, node: state.options.node },
    'a peer is connected to another node with the id of this one',
  )
  state.options.onDuplicate?.(peer.node)
}

// Both directions

/** Reads frames from a socket. The first ones are bounded by the size of a handshake. */
export function read(
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
    if (link) link.receivedMs = nowOf(state)
    const fault = takeChunk(framing, chunk, take)
    if (fault !== '') onFault(fault)
  })
}
