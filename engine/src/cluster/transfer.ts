/**
 * Snapshots between nodes (consensus.md §16.3): the leader offers a manifest, the receiver pulls the chunks it lacks in
 * ranges, from any node that has them, and says when all of them are here. Two state machines without a clock, a disk or
 * a network of their own; the disk's part is snapshot/exchange.ts, on another thread.
 *
 *   receiver   (manifest ──) planning ── pulling ── ready ── making ── gone
 *
 * A chunk is held in memory until its last range is here, then verified and written at once: what is on disk is whole,
 * and what was not whole is pulled again after a restart. So few chunks are begun at a time as there are requests.
 */

import { assert, unreachable } from '@vacancy/shared'
import type { Log } from '../env.ts'
import { type ChunkName, type Exchange, type ExchangeAnswer, isManifest, type Newest } from '../snapshot/exchange.ts'
import { CHUNK_BYTES_MAX, MANIFEST_BYTES_MAX } from '../snapshot/format.ts'
import type { InstallStatus } from '../status.ts'
import type { ChunkDataFrame, ChunkMissingFrame, ChunkRequestFrame, DriverFrame, OfferReplyFrame } from './frames.ts'

export const TRANSFER_LIMITS = {
  rangeBytes: 1 << 20,
  /** Ranges asked for and not answered. */
  window: 8,
  /** Chunks that the disk is verifying or writing. */
  storing: 4,
  outgoing: 2,
  bytesPerSecond: 100e6,
  /** A request for a range that is not answered is given to another node. */
  requestMs: 4_000,
  progressMs: 10_000,
  /** How often the receiver tells the one who offered that it goes on: its chunks may come from others. */
  tellMs: 1_000,
  retryMs: 1_000,
  retryMsMax: 30_000,
  /** The log behind a snapshot that is being sent is kept so long. */
  keepLogMs: 600_000,
  /** Ranges that wait for their turn to be sent, all peers together. */
  waitingRanges: 64,
  /** A manifest that is larger is named in the offer and pulled like a chunk. */
  offeredBytes: 512 * 1024,
} as const

/** What an offer reply says, beside `ok`. */
export const OFFER_REASONS = ['pulling', 'installed', 'no-space', 'no-memory', 'foreign', 'failed'] as const
export type OfferReason = (typeof OFFER_REASONS)[number]

// The manifest of an offer: itself, or magic u32 · bytes u32 · digest, 32 bytes

const REFERENCE_MAGIC = 0x46455256 // "VREF"
const REFERENCE_BYTES = 40

/** The manifest field of an offer. */
export function offeredManifest({ manifest, manifestDigest }: Pick<Newest, 'manifest' | 'manifestDigest'>): Uint8Array {
  if (manifest.length <= TRANSFER_LIMITS.offeredBytes) return manifest
  return manifestReference(manifestDigest, manifest.length)
}

/** A manifest by its digest: it is pulled like a chunk. */
export function manifestReference(manifestDigest: string, manifestBytes: number): Uint8Array {
  const bytes = new Uint8Array(REFERENCE_BYTES)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, REFERENCE_MAGIC, true)
  view.setUint32(4, manifestBytes, true)
  bytes.set(fromHex(manifestDigest), 8)
  return bytes
}

function referenceOf(bytes: Uint8Array): ChunkName | undefined {
  if (bytes.length !== REFERENCE_BYTES) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const length = view.getUint32(4, true)
  if (view.getUint32(0, true) !== REFERENCE_MAGIC || length === 0 || length > MANIFEST_BYTES_MAX) return undefined
  return { digest: toHex(bytes.subarray(8)), bytes: length }
}

const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
const fromHex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))

// The receiver

export type Offer = {
  /** Node that offers. */
  readonly node: string
  readonly index: number
  readonly term: number
  /** The field of the message, as it came. */
  readonly manifest: Uint8Array
  /** `load`: it is to be loaded into the running shard and kept beside; a snapshot to install goes before it. */
  readonly purpose?: 'install' | 'load'
}

/** All chunks of an offer are here and verified. */
export type Received = {
  readonly purpose: 'install' | 'load'
  readonly index: number
  readonly term: number
  readonly manifest: Uint8Array
  readonly contentDigest: string
  readonly packages: number
}

export type ReceiverPort = {
  send(node: string, frame: DriverFrame): boolean
  readonly exchange: Exchange
  /** Nodes that are connected, by whatever role: any of them may have a chunk. */
  sources(): readonly string[]
  nowMs(): number
  readonly log: Log
  /** Step the offer into the core now; when it hands it over, call `makeCurrent`. */
  onReady(received: Received): void
  onFailed(reason: OfferReason, detail: string, purpose: Received['purpose']): void
}

export type ReceiverOptions = {
  readonly shardId: string
  readonly codecsOrderedHash: string
  readonly defects?: ReadonlySet<string> | undefined
}

type Pulled = ChunkName & {
  /** First byte that was not asked for yet. */
  next: number
  /** Ranges to be asked for again. */
  readonly again: { offset: number; length: number }[]
  buffer: Uint8Array | undefined
  receivedBytes: number
  /** Nodes that served a part of it, and those that do not have it, or not as it should be. */
  readonly servedBy: Set<string>
  readonly lacking: Set<string>
  /** Parts of several nodes made no whole: it comes from one node now, so that one is known to be wrong. */
  sole: { node: string | undefined } | undefined
}

type Request = {
  readonly chunk: Pulled
  readonly node: string
  readonly offset: number
  readonly length: number
  readonly atMs: number
}

type Incoming = {
  readonly offer: Offer
  /** Who is told how it goes: the last one that offered the same. */
  node: string
  phase: 'manifest' | 'planning' | 'pulling' | 'ready' | 'making'
  manifest: Uint8Array | undefined
  received: Received | undefined
  /** Not begun, begun, by the disk. */
  readonly waiting: ChunkName[]
  readonly pulling: Pulled[]
  readonly verifying: ChunkName[]
  storing: number
  readonly requests: Map<number, Request>
  bytesDone: number
  bytesTotal: number
  progressMs: number
  toldMs: number
}

export type Receiver = ReceiverOptions & {
  readonly port: ReceiverPort
  incoming: Incoming | undefined
  nextRequest: number
  received: number
  failed: number
}

export function createReceiver(port: ReceiverPort, options: ReceiverOptions): Receiver {
  return { ...options, port, incoming: undefined, nextRequest: 1, received: 0, failed: 0 }
}

/**
 * A snapshot is offered. The driver has looked already whether it is ahead of what is committed here (§16.3, 7); an
 * offer that is not goes to the core as it is.
 */
export function onOffer(receiver: Receiver, offer: Offer): void {
  const { incoming, port } = receiver
  if (incoming && isSameOffer(incoming.offer, offer)) {
    // Another leader, or the same one again: what is under way goes on.
    incoming.node = offer.node
    if (incoming.phase === 'ready' && incoming.received) port.onReady(incoming.received)
    return tell(receiver, incoming, true)
  }
  // What is handed to the core must be ended first; the leader offers again.
  if (incoming && (incoming.phase === 'making' || !outranks(offer, incoming.offer))) return
  const nowMs = port.nowMs()
  const begun: Incoming = {
    offer,
    node: offer.node,
    phase: 'planning',
    manifest: undefined,
    received: undefined,
    waiting: [],
    pulling: [],
    verifying: [],
    storing: 0,
    requests: new Map(),
    bytesDone: 0,
    bytesTotal: 0,
    progressMs: nowMs,
    toldMs: nowMs,
  }
  receiver.incoming = begun
  const reference = referenceOf(offer.manifest)
  if (!reference) return plan(receiver, begun, offer.manifest)
  begun.phase = 'manifest'
  begun.bytesTotal = reference.bytes
  begun.waiting.push(reference)
  pull(receiver, begun)
}

/** A newer one to install, or any one to install before one to load. */
function outranks(offer: Offer, other: Offer): boolean {
  if (offer.purpose !== other.purpose) return offer.purpose !== 'load'
  return offer.index >= other.index
}

function isSameOffer(a: Offer, b: Offer): boolean {
  const isSame = a.manifest.length === b.manifest.length && a.manifest.every((byte, at) => byte === b.manifest[at])
  return isSame && a.index === b.index && a.term === b.term && a.purpose === b.purpose
}

function plan(receiver: Receiver, incoming: Incoming, manifest: Uint8Array): void {
  incoming.phase = 'planning'
  incoming.manifest = manifest
  receiver.port.exchange({ kind: 'plan', manifest }, (answer) => {
    if (receiver.incoming !== incoming) return
    if (answer.state !== 'planned')
      return fail(receiver, answer.state === 'full' ? 'no-space' : 'failed', detailOf(answer))
    const { index, term, purpose = 'install' } = incoming.offer
    const { contentDigest, packages, held, missing, bytesTotal } = answer
    if (answer.shardId !== receiver.shardId) return fail(receiver, 'foreign', `it is of shard ${answer.shardId}`)
    if (answer.codecsOrderedHash !== receiver.codecsOrderedHash) return fail(receiver, 'foreign', 'it has other codecs')
    if (!answer.hasRoom) return fail(receiver, 'no-space', `there is no room for ${bytesTotal} bytes of chunks`)
    incoming.phase = 'pulling'
    incoming.received = { purpose, index, term, manifest, contentDigest, packages }
    incoming.bytesDone = 0
    incoming.bytesTotal = bytesTotal
    incoming.waiting.push(...missing)
    incoming.verifying.push(...held)
    progressed(receiver, incoming)
    proceed(receiver, incoming)
  })
}

function detailOf(answer: ExchangeAnswer): string {
  if (answer.state !== 'refused') return answer.state
  const { reason } = answer.error
  return typeof reason === 'string' ? reason : answer.error.code
}

function progressed({ port }: Receiver, incoming: Incoming): void {
  incoming.progressMs = port.nowMs()
}

/** Goes on with whatever there is to do, or says that all is here. */
function proceed(receiver: Receiver, incoming: Incoming): void {
  if (incoming.phase !== 'pulling') return
  while (incoming.verifying.length > 0 && incoming.storing < TRANSFER_LIMITS.storing) {
    verify(receiver, incoming, incoming.verifying.shift() as ChunkName)
  }
  pull(receiver, incoming)
  const { waiting, pulling, verifying, storing, received } = incoming
  const isComplete = waiting.length + pulling.length + verifying.length + storing === 0
  if (!isComplete && !receiver.defects?.has('transfer/switch-before-complete')) return
  assert(received !== undefined, 'a snapshot that is here was planned')
  incoming.phase = 'ready'
  receiver.port.onReady(received)
}

/** A chunk that was here before is used again only when it is what its name says. */
function verify(receiver: Receiver, incoming: Incoming, chunk: ChunkName): void {
  incoming.storing++
  receiver.port.exchange({ kind: 'verify', chunk }, (answer) => {
    if (receiver.incoming !== incoming) return
    incoming.storing--
    if (answer.state === 'full') return fail(receiver, 'no-space', 'the disk is full')
    if (answer.state === 'verified') incoming.bytesDone += chunk.bytes
    else incoming.waiting.push(chunk)
    progressed(receiver, incoming)
    proceed(receiver, incoming)
  })
}

/** Asks for ranges as far as the window goes. */
function pull(receiver: Receiver, incoming: Incoming): void {
  const { window, storing } = TRANSFER_LIMITS
  while (incoming.requests.size < window) {
    const chunk = incoming.pulling.find(hasRange) ?? beginChunk(incoming, storing)
    if (!chunk) return
    const node = sourceFor(receiver, incoming, chunk)
    if (node === undefined) {
      // Nobody who is connected has it: the snapshot is gone where it was, and the leader has a newer one to offer.
      if (incoming.requests.size === 0 && receiver.port.sources().length > 0)
        fail(receiver, 'failed', `nobody has chunk ${chunk.digest.slice(0, 12)}`)
      return
    }
    ask(receiver, incoming, chunk, node)
  }
}

const hasRange = ({ next, bytes, again }: Pulled): boolean => next < bytes || again.length > 0

function beginChunk(incoming: Incoming, storingMax: number): Pulled | undefined {
  // The disk is behind: what comes in would only wait in memory.
  if (incoming.storing >= storingMax) return undefined
  const chunk = incoming.waiting.shift()
  if (!chunk) return undefined
  const begun = { ...chunk, next: 0, again: [], buffer: undefined, receivedBytes: 0 }
  const pulled: Pulled = { ...begun, servedBy: new Set(), lacking: new Set(), sole: undefined }
  incoming.pulling.push(pulled)
  return pulled
}

/** The connected node with the fewest requests; among equals the one that offered, which surely had it. */
function sourceFor({ port }: Receiver, { requests, node: offering }: Incoming, chunk: Pulled): string | undefined {
  const load = new Map<string, number>()
  for (const { node } of requests.values()) load.set(node, (load.get(node) ?? 0) + 1)
  let best: string | undefined
  let bestLoad = Number.POSITIVE_INFINITY
  for (const node of port.sources()) {
    if (chunk.lacking.has(node)) continue
    if (node === chunk.sole?.node) return node
    const own = (load.get(node) ?? 0) - (node === offering ? 0.5 : 0)
    if (own >= bestLoad) continue
    best = node
    bestLoad = own
  }
  if (chunk.sole) chunk.sole.node = best
  return best
}

function ask(receiver: Receiver, incoming: Incoming, chunk: Pulled, node: string): void {
  const range = chunk.again.shift() ?? { offset: chunk.next, length: 0 }
  if (range.length === 0) {
    range.length = Math.min(TRANSFER_LIMITS.rangeBytes, chunk.bytes - chunk.next)
    chunk.next += range.length
  }
  const id = receiver.nextRequest++
  const { offset, length } = range
  incoming.requests.set(id, { chunk, node, offset, length, atMs: receiver.port.nowMs() })
  const isSent = receiver.port.send(node, { type: 'chunkRequest', id, digest: chunk.digest, offset, length })
  // Its queue is full or the connection is just gone: asked again when the request is overdue.
  if (!isSent) receiver.port.log.debug({ node }, 'a request for a chunk was not sent')
}

/** A range came. */
export function onChunkData(receiver: Receiver, node: string, frame: ChunkDataFrame): void {
  const { incoming } = receiver
  const request = incoming?.requests.get(frame.id)
  if (!incoming || !request || request.node !== node) return
  const { chunk, offset, length } = request
  if (frame.digest !== chunk.digest || frame.offset !== offset || frame.bytes.length !== length) {
    return onChunkMissing(receiver, node, { type: 'chunkMissing', id: frame.id, digest: frame.digest })
  }
  incoming.requests.delete(frame.id)
  chunk.buffer ??= new Uint8Array(chunk.bytes)
  chunk.buffer.set(frame.bytes, offset)
  chunk.receivedBytes += length
  chunk.servedBy.add(node)
  progressed(receiver, incoming)
  if (chunk.receivedBytes === chunk.bytes) endChunk(receiver, incoming, chunk, chunk.buffer)
  if (receiver.incoming !== incoming) return
  if (incoming.phase === 'manifest') pull(receiver, incoming)
  else proceed(receiver, incoming)
}

function endChunk(receiver: Receiver, incoming: Incoming, chunk: Pulled, bytes: Uint8Array): void {
  incoming.pulling.splice(incoming.pulling.indexOf(chunk), 1)
  if (incoming.phase === 'manifest') {
    if (isManifest(bytes, chunk.digest)) return plan(receiver, incoming, bytes)
    return pullAgain(receiver, incoming, chunk)
  }
  incoming.storing++
  receiver.port.exchange({ kind: 'store', digest: chunk.digest, bytes }, (answer) => {
    if (receiver.incoming !== incoming) return
    incoming.storing--
    switch (answer.state) {
      case 'stored':
        incoming.bytesDone += chunk.bytes
        progressed(receiver, incoming)
        break
      case 'full':
        return fail(receiver, 'no-space', 'the disk is full')
      default:
        pullAgain(receiver, incoming, chunk)
    }
    if (receiver.incoming === incoming) proceed(receiver, incoming)
  })
}

/** What came is not what its name says: who sent all of it is not asked for it again. */
function pullAgain(receiver: Receiver, incoming: Incoming, chunk: Pulled): void {
  receiver.port.log.warn({ chunk: chunk.digest, nodes: [...chunk.servedBy] }, 'a chunk came damaged')
  if (chunk.servedBy.size === 1) for (const node of chunk.servedBy) chunk.lacking.add(node)
  chunk.sole = { node: undefined }
  chunk.servedBy.clear()
  chunk.next = 0
  chunk.again.length = 0
  chunk.receivedBytes = 0
  incoming.pulling.push(chunk)
  if (incoming.phase === 'manifest') pull(receiver, incoming)
}

/** The node does not have the chunk. */
export function onChunkMissing(receiver: Receiver, node: string, { id }: ChunkMissingFrame): void {
  const { incoming } = receiver
  const request = incoming?.requests.get(id)
  if (!incoming || !request || request.node !== node) return
  incoming.requests.delete(id)
  request.chunk.lacking.add(node)
  request.chunk.again.push({ offset: request.offset, length: request.length })
  pull(receiver, incoming)
}

/** Its connections are gone: what it was asked for goes to others. */
export function onSourceLost(receiver: Receiver, node: string): void {
  const { incoming } = receiver
  if (!incoming) return
  for (const [id, request] of incoming.requests) {
    if (request.node !== node) continue
    incoming.requests.delete(id)
    request.chunk.again.push({ offset: request.offset, length: request.length })
  }
  if (incoming.phase === 'manifest' || incoming.phase === 'pulling') pull(receiver, incoming)
}

/** Called on every tick of the driver. */
export function tickReceiver(receiver: Receiver): void {
  const { incoming, port } = receiver
  if (!incoming) return
  const nowMs = port.nowMs()
  switch (incoming.phase) {
    case 'ready':
    case 'making':
      // The core has it, or the disk; both are waited for.
      return tell(receiver, incoming, false)
    case 'manifest':
    case 'planning':
    case 'pulling':
      break
    default:
      return unreachable(incoming.phase)
  }
  if (nowMs - incoming.progressMs >= TRANSFER_LIMITS.progressMs) return fail(receiver, 'failed', 'no progress')
  for (const [id, { chunk, node, offset, length, atMs }] of incoming.requests) {
    if (nowMs - atMs < TRANSFER_LIMITS.requestMs) continue
    incoming.requests.delete(id)
    chunk.again.push({ offset, length })
    // Somebody else first; when nobody else is there it is asked again.
    if (port.sources().some((other) => other !== node && !chunk.lacking.has(other))) chunk.lacking.add(node)
  }
  if (incoming.phase === 'manifest') pull(receiver, incoming)
  else proceed(receiver, incoming)
  if (receiver.incoming === incoming) tell(receiver, incoming, false)
}

/** The one who offered hears that it goes on, also where the chunks come from others. */
function tell({ port }: Receiver, incoming: Incoming, isDue: boolean): void {
  const nowMs = port.nowMs()
  if (!isDue && nowMs - incoming.toldMs < TRANSFER_LIMITS.tellMs) return
  incoming.toldMs = nowMs
  reply(port, incoming.node, incoming.offer.index, 'pulling')
}

function reply(port: Pick<ReceiverPort, 'send'>, node: string, index: number, reason: OfferReason): void {
  const ok = reason === 'pulling' || reason === 'installed'
  port.send(node, { type: 'offerReply', index, ok, reason })
}

function fail(receiver: Receiver, reason: OfferReason, detail: string): void {
  const { incoming, port } = receiver
  assert(incoming !== undefined, 'what fails is under way')
  receiver.incoming = undefined
  receiver.failed++
  const { index, purpose = 'install' } = incoming.offer
  port.log.warn({ index, from: incoming.node, reason, detail }, 'a snapshot was not received')
  reply(port, incoming.node, index, reason)
  port.onFailed(reason, detail, purpose)
}

/** The driver cannot use what is ready, for instance because its memory is too small for it. */
export function refuseReceived(receiver: Receiver, reason: OfferReason, detail: string): void {
  if (receiver.incoming) fail(receiver, reason, detail)
}

/** The core has taken the log on instead, or the offer is of no use any more: what was verified stays for the next one. */
export function forgetIncoming(receiver: Receiver): void {
  receiver.incoming = undefined
}

/**
 * Gives the received snapshot its name, and one to load its place beside (`hold`). The index and term come from its own manifest, never from what is newest on
 * disk.
 *
 * @param done called with the path of its folder; not when chunks turn out to be gone, then they are pulled again and
 *   `onReady` follows once more
 */
export function makeCurrent(receiver: Receiver, done: (path: string) => void): void {
  const { incoming, port } = receiver
  assert(incoming?.phase === 'ready' && incoming.manifest !== undefined, 'what is made current is all here')
  incoming.phase = 'making'
  const kind = incoming.offer.purpose === 'load' ? 'hold' : 'current'
  port.exchange({ kind, manifest: incoming.manifest, origin: kind === 'hold' ? 'load' : 'transfer' }, (answer) => {
    if (receiver.incoming !== incoming) return
    switch (answer.state) {
      case 'current':
      case 'held':
        receiver.incoming = undefined
        receiver.received++
        return done(answer.path)
      case 'lacking':
        // A snapshot of this node went, and chunks with it.
        incoming.phase = 'pulling'
        incoming.waiting.push(...answer.missing)
        progressed(receiver, incoming)
        return proceed(receiver, incoming)
      case 'full':
        return fail(receiver, 'no-space', 'the disk is full')
      default:
        return fail(receiver, 'failed', detailOf(answer))
    }
  })
}

/** The state of the snapshot is in force: the one who offered it need not wait for an acknowledgement. */
export function replyInstalled(receiver: Receiver, node: string, index: number): void {
  reply(receiver.port, node, index, 'installed')
}

/** For `/status`: the state of another node is coming in. */
export function installStatusOf({ incoming }: Receiver): InstallStatus | undefined {
  if (!incoming || incoming.offer.purpose === 'load') return undefined
  const { node: from, offer, bytesDone, bytesTotal } = incoming
  return { from, index: offer.index, bytesDone, bytesTotal }
}

/** Bytes that are still to come of the snapshot of a load; 0 while that is not known. */
export function loadBytesMissing({ incoming }: Receiver): number {
  return incoming?.offer.purpose === 'load' ? incoming.bytesTotal - incoming.bytesDone : 0
}

// The sender

export type SenderPort = {
  send(node: string, frame: DriverFrame): boolean
  readonly exchange: Exchange
  nowMs(): number
  /** As env.schedule.after. */
  after(delayMs: number, run: () => void): void
  readonly log: Log
  /** Sends the snapshot message of the core to the peer; false when it could not be queued. */
  sendOffer(peer: number, newest: Newest, manifest: Uint8Array): boolean
  /** To the core: the peer has it, or will not get it now. */
  reportSnapshot(peer: number, isReceived: boolean): void
}

type Outgoing = {
  readonly node: string
  index: number
  readonly startedMs: number
  progressMs: number
}

type Backoff = { readonly retryAtMs: number; readonly delayMs: number }

export type Sender = {
  readonly port: SenderPort
  readonly outgoing: Map<number, Outgoing>
  readonly backoff: Map<number, Backoff>
  readonly defects: ReadonlySet<string> | undefined
  /** The shared cap: before this nothing more is sent. */
  freeAtMs: number
  waiting: number
  sent: number
  failed: number
  lastDurationMs: number | undefined
}

export function createSender(port: SenderPort, defects?: ReadonlySet<string>): Sender {
  return {
    port,
    outgoing: new Map(),
    backoff: new Map(),
    defects,
    freeAtMs: 0,
    waiting: 0,
    sent: 0,
    failed: 0,
    lastDurationMs: undefined,
  }
}

/** The core wants a peer to get a snapshot (`ready.offers`). What does not begin now is reported as failed. */
export function offerTo(sender: Sender, peer: number, node: string): void {
  const { port, outgoing, backoff } = sender
  const nowMs = port.nowMs()
  const isLate = nowMs < (backoff.get(peer)?.retryAtMs ?? 0)
  if (isLate || (!outgoing.has(peer) && outgoing.size >= TRANSFER_LIMITS.outgoing)) {
    return port.reportSnapshot(peer, false)
  }
  const begun: Outgoing = { node, index: 0, startedMs: nowMs, progressMs: nowMs }
  outgoing.set(peer, begun)
  port.exchange({ kind: 'newest' }, (answer) => {
    if (outgoing.get(peer) !== begun) return
    const newest = answer.state === 'newest' ? answer.newest : undefined
    if (!newest) return failOutgoing(sender, peer, 'there is no snapshot here')
    begun.index = newest.index
    const isSent = port.sendOffer(peer, newest, offeredManifest(newest))
    if (!isSent) failOutgoing(sender, peer, 'the offer could not be sent')
  })
}

/** A peer asks for a range; it need not be one that this node made an offer to. */
export function onChunkRequest(sender: Sender, node: string, frame: ChunkRequestFrame): void {
  const { port } = sender
  const { id, digest, offset, length } = frame
  if (
    length === 0 ||
    length > TRANSFER_LIMITS.rangeBytes ||
    offset + length > Math.max(CHUNK_BYTES_MAX, MANIFEST_BYTES_MAX)
  ) {
    port.send(node, { type: 'chunkMissing', id, digest })
    return
  }
  for (const outgoing of sender.outgoing.values()) if (outgoing.node === node) outgoing.progressMs = port.nowMs()
  // Dropped without an answer: the receiver asks somebody else, or again.
  if (sender.waiting >= TRANSFER_LIMITS.waitingRanges) return
  const nowMs = port.nowMs()
  const atMs = Math.max(nowMs, sender.freeAtMs)
  sender.freeAtMs = atMs + (length / TRANSFER_LIMITS.bytesPerSecond) * 1_000
  sender.waiting++
  const serve = () =>
    port.exchange({ kind: 'read', digest, offset, length }, (answer) => {
      sender.waiting--
      const bytes = answer.state === 'read' ? answer.bytes : undefined
      if (bytes) port.send(node, { type: 'chunkData', id, digest, offset, bytes })
      else port.send(node, { type: 'chunkMissing', id, digest })
    })
  if (atMs > nowMs) port.after(atMs - nowMs, serve)
  else serve()
}

/** The receiver of an offer says how it goes. */
export function onOfferReply(sender: Sender, peer: number, { index, ok, reason }: OfferReplyFrame): void {
  const { port, outgoing, backoff } = sender
  const running = outgoing.get(peer)
  if (!running || running.index !== index) return
  if (!ok) return failOutgoing(sender, peer, reason)
  running.progressMs = port.nowMs()
  if (reason !== 'installed') return
  outgoing.delete(peer)
  backoff.delete(peer)
  sender.sent++
  sender.lastDurationMs = port.nowMs() - running.startedMs
  port.reportSnapshot(peer, true)
}

/** The peer's acknowledgements have reached the log, or it is no member, or this node leads no more. */
export function forgetOutgoing(sender: Sender, peer?: number): void {
  if (peer === undefined) {
    sender.outgoing.clear()
    sender.backoff.clear()
    return
  }
  sender.outgoing.delete(peer)
  sender.backoff.delete(peer)
}

/** Called on every tick of a leader. */
export function tickSender(sender: Sender): void {
  const nowMs = sender.port.nowMs()
  for (const [peer, { progressMs }] of sender.outgoing) {
    if (nowMs - progressMs >= TRANSFER_LIMITS.progressMs) failOutgoing(sender, peer, 'no progress')
  }
}

function failOutgoing(sender: Sender, peer: number, reason: string): void {
  const { port, outgoing, backoff } = sender
  const { retryMs, retryMsMax } = TRANSFER_LIMITS
  const node = outgoing.get(peer)?.node
  outgoing.delete(peer)
  sender.failed++
  const before = backoff.get(peer)?.delayMs ?? retryMs / 2
  // Room and memory do not come back within a second.
  const isSlow = reason === 'no-space' || reason === 'no-memory' || reason === 'foreign'
  const delayMs = isSlow ? retryMsMax : Math.min(before * 2, retryMsMax)
  backoff.set(peer, { retryAtMs: port.nowMs() + delayMs, delayMs })
  port.log.warn({ node, reason, retryMs: delayMs }, 'a snapshot was not sent')
  port.reportSnapshot(peer, false)
}

/** Log that must stay for those that receive a snapshot now (§16.3, 5); compaction goes no further than this index. */
export function keptFor(sender: Sender): number {
  let index = Number.POSITIVE_INFINITY
  if (sender.defects?.has('transfer/compaction-beyond')) return index
  const nowMs = sender.port.nowMs()
  for (const running of sender.outgoing.values()) {
    if (nowMs - running.startedMs < TRANSFER_LIMITS.keepLogMs) index = Math.min(index, running.index)
  }
  return index
}

/** Indexes of the snapshots that are being sent: retention leaves them (`pinned` of the bulk thread). */
export function pinnedBy(sender: Sender): number[] {
  if (sender.defects?.has('transfer/compaction-beyond')) return []
  return [...new Set([...sender.outgoing.values()].map(({ index }) => index))]
}

// The way to the thread that does the disk's part

export type ExchangeOverPort = {
  readonly exchange: Exchange
  /** An answer of the bulk thread came. */
  onExchanged(id: number, answer: ExchangeAnswer): void
}

/** @param post sends `{ type: 'exchange', id, ask }` to the bulk thread */
export function exchangeOverPort(post: (id: number, ask: Parameters<Exchange>[0]) => void): ExchangeOverPort {
  const waiting = new Map<number, (answer: ExchangeAnswer) => void>()
  let nextId = 1
  return {
    exchange(ask, done) {
      const id = nextId++
      waiting.set(id, done)
      post(id, ask)
    },
    onExchanged(id, answer) {
      const done = waiting.get(id)
      assert(done !== undefined, 'an exchange is answered once')
      waiting.delete(id)
      done(answer)
    },
  }
}
