/**
 * Snapshot transfer between nodes (docs/design/storage.md#transfer). The leader offers a manifest. The receiver pulls
 * the missing chunks in ranges from any node that has them and reports when all are complete. Two state machines
 * without a clock, disk or network of their own. Disk operations run on another thread (snapshot/exchange.ts).
 *
 *   receiver   (manifest ──) planning ── pulling ── ready ── making ── gone
 *
 * A chunk stays in memory until its last range has arrived, and is then verified and written at once. Only whole chunks
 * are on disk; partial ones are pulled again after a restart. At most as many chunks are begun as there are requests.
 */

import { assert, unreachable } from '@vacancy/shared'
import type { Log } from '../env.ts'
import { type ChunkName, type Exchange, type ExchangeAnswer, isManifest, type Newest } from '../snapshot/exchange.ts'
import { CHUNK_BYTES_MAX, MANIFEST_BYTES_MAX } from '../snapshot/format.ts'
import type { InstallStatus } from '../status.ts'
import type {
  ChunkDataFrame,
  ChunkMissingFrame,
  ChunkRequestFrame,
  DriverFrame,
  OfferReplyFrame,
} from '../transport/frames.ts'

export const TRANSFER_LIMITS = {
  rangeBytes: 1 << 20,
  /** Ranges requested and not received. */
  window: 8,
  /** Chunks that the disk is verifying or writing. */
  storing: 4,
  outgoing: 2,
  bytesPerSecond: 100e6,
  /** A range request without a reply goes to another node after this. */
  requestMs: 4_000,
  progressMs: 10_000,
  /** How often the receiver reports progress to the offering node, since its chunks may come from others. */
  reportMs: 1_000,
  /** While the core waits for a snapshot: how long to retry a chunk that no connected node has. */
  missingMs: 60_000,
  retryMs: 1_000,
  retryMsMax: 30_000,
  /** How long to keep the log behind a snapshot that is being sent. */
  keepLogMs: 600_000,
  /** Ranges queued for sending, all peers together. */
  waitingRanges: 64,
  /** A larger manifest is only named in the offer and pulled like a chunk. */
  offeredBytes: 512 * 1024,
} as const

/** Reasons in an offer reply, besides `ok`. */
const OFFER_REASONS = ['pulling', 'installed', 'no-space', 'no-memory', 'foreign', 'failed'] as const
export type OfferReason = (typeof OFFER_REASONS)[number]

// The manifest of an offer: itself, or magic u32 · bytes u32 · digest, 32 bytes

const REFERENCE_MAGIC = 0x46455256 // "VREF"
const REFERENCE_BYTES = 40

/** The manifest field of an offer. */
export function offeredManifest({ manifest, manifestDigest }: Pick<Newest, 'manifest' | 'manifestDigest'>): Uint8Array {
  if (manifest.length <= TRANSFER_LIMITS.offeredBytes) return manifest
  return manifestReference(manifestDigest, manifest.length)
}

/** Refers to a manifest by its digest: it is pulled like a chunk. */
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
  /** Node that made the offer. */
  readonly node: string
  readonly index: number
  readonly term: number
  /** The manifest field of the message, undecoded. */
  readonly manifest: Uint8Array
  /**
   * `load`: to be loaded into the running shard and kept beside its snapshots. A snapshot to install takes precedence.
   */
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
  /** Connected nodes of any role: each may have a chunk. */
  sources(): readonly string[]
  nowMs(): number
  readonly log: Log
  /** The driver steps the offer into the core. When the core hands it over, the driver calls `makeCurrent`. */
  onReady(received: Received): void
  onFailed(reason: OfferReason, detail: string, purpose: Received['purpose']): void
  /** The core waits for this snapshot, but it cannot be completed now: call `makeCurrent` again later. */
  onDelayed(reason: OfferReason, detail: string): void
}

export type ReceiverOptions = {
  readonly shardId: string
  readonly codecsOrderedHash: string
}

type Pulled = ChunkName & {
  /** First byte not requested yet. */
  next: number
  /** Ranges to request again. */
  readonly again: { offset: number; length: number }[]
  buffer: Uint8Array | undefined
  receivedBytes: number
  /** Nodes that served a part of it, and nodes that lack it or sent damaged data. */
  readonly servedBy: Set<string>
  readonly lacking: Set<string>
  /**
   * Parts of several nodes did not verify. The chunk now comes from one node, so that a second failure identifies it.
   */
  sole: { node: string | undefined } | undefined
}

type Request = {
  readonly chunk: Pulled
  readonly node: string
  readonly offset: number
  readonly length: number
  readonly atMs: number
}

type Incoming = ReturnType<typeof createIncoming>

function createIncoming(offer: Offer, nowMs: number) {
  return {
    offer,
    /** Node that gets the progress reports: the last one that offered this snapshot. */
    node: offer.node,
    phase: 'planning' as 'manifest' | 'planning' | 'pulling' | 'ready' | 'making',
    manifest: undefined as Uint8Array | undefined,
    received: undefined as Received | undefined,
    /** Not begun, begun, with the disk. */
    waiting: [] as ChunkName[],
    pulling: [] as Pulled[],
    verifying: [] as ChunkName[],
    storing: 0,
    requests: new Map<number, Request>(),
    bytesDone: 0,
    bytesTotal: 0,
    progressMs: nowMs,
    reportedMs: nowMs,
    /** The core waits for it: giving it up would end the node. */
    isAwaited: false,
    /** Since when no connected node has one of its chunks. */
    missingSinceMs: undefined as number | undefined,
  }
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
 * A snapshot is offered. The driver has already checked whether it is ahead of the commit index here
 * (docs/design/storage.md#transfer, 7). Other offers go to the core unchanged.
 */
export function onOffer(receiver: Receiver, offer: Offer): void {
  const { incoming, port } = receiver
  if (incoming && isSameOffer(incoming.offer, offer)) {
    // Another leader, or the same one again: the running transfer continues.
    incoming.node = offer.node
    if (incoming.phase === 'ready' && incoming.received) port.onReady(incoming.received)
    return report(receiver, incoming, true)
  }
  // A snapshot handed to the core must be finished first. The leader offers again.
  if (incoming && (incoming.phase === 'making' || !outranks(offer, incoming.offer))) return
  const begun = createIncoming(offer, port.nowMs())
  receiver.incoming = begun
  const reference = referenceOf(offer.manifest)
  if (!reference) return plan(receiver, begun, offer.manifest)
  begun.phase = 'manifest'
  begun.bytesTotal = reference.bytes
  begun.waiting.push(reference)
  pull(receiver, begun)
}

/** A newer snapshot to install, or any to install over one to load. */
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
    if (answer.shardId !== receiver.shardId) return fail(receiver, 'foreign', `it belongs to shard ${answer.shardId}`)
    if (answer.codecsOrderedHash !== receiver.codecsOrderedHash) return fail(receiver, 'foreign', 'it has other codecs')
    if (!answer.hasRoom) return fail(receiver, 'no-space', `no room for ${bytesTotal} bytes of chunks`)
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
  incoming.missingSinceMs = undefined
}

/** Continues with the next step, or reports that all chunks are here. */
function proceed(receiver: Receiver, incoming: Incoming): void {
  if (incoming.phase !== 'pulling') return
  while (incoming.verifying.length > 0 && incoming.storing < TRANSFER_LIMITS.storing) {
    verify(receiver, incoming, incoming.verifying.shift() as ChunkName)
  }
  pull(receiver, incoming)
  const { waiting, pulling, verifying, storing, received } = incoming
  const isComplete = waiting.length + pulling.length + verifying.length + storing === 0
  if (!isComplete) return
  assert(received !== undefined, 'a complete snapshot was planned')
  incoming.phase = 'ready'
  receiver.port.onReady(received)
}

/** A chunk already on disk is reused only if it matches its digest. */
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

/** Requests ranges up to the window. */
function pull(receiver: Receiver, incoming: Incoming): void {
  const { window, storing } = TRANSFER_LIMITS
  while (incoming.requests.size < window) {
    const chunk = incoming.pulling.find(hasRange) ?? beginChunk(incoming, storing)
    if (!chunk) return
    const node = sourceFor(receiver, incoming, chunk)
    if (node === undefined) {
      // No connected node has it: the snapshot was deleted at its source, and the leader has a newer one to offer.
      if (incoming.requests.size === 0 && receiver.port.sources().length > 0) missing(receiver, incoming, chunk)
      return
    }
    request(receiver, incoming, chunk, node)
  }
}

function missing(receiver: Receiver, incoming: Incoming, chunk: ChunkName): void {
  const detail = `no node has chunk ${chunk.digest.slice(0, 12)}`
  const nowMs = receiver.port.nowMs()
  incoming.missingSinceMs ??= nowMs
  const isPassing = nowMs - incoming.missingSinceMs < TRANSFER_LIMITS.missingMs
  if (incoming.isAwaited && isPassing) return delay(receiver, incoming, 'failed', detail)
  fail(receiver, 'failed', detail)
}

const hasRange = ({ next, bytes, again }: Pulled): boolean => next < bytes || again.length > 0

function beginChunk(incoming: Incoming, storingMax: number): Pulled | undefined {
  // The disk is behind: more data would only wait in memory.
  if (incoming.storing >= storingMax) return undefined
  const chunk = incoming.waiting.shift()
  if (!chunk) return undefined
  const begun = { ...chunk, next: 0, again: [], buffer: undefined, receivedBytes: 0 }
  const pulled: Pulled = { ...begun, servedBy: new Set(), lacking: new Set(), sole: undefined }
  incoming.pulling.push(pulled)
  return pulled
}

/** The connected node with the fewest requests; among equals the offering node, which certainly had the chunk. */
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

function request(receiver: Receiver, incoming: Incoming, chunk: Pulled, node: string): void {
  const range = chunk.again.shift() ?? { offset: chunk.next, length: 0 }
  if (range.length === 0) {
    range.length = Math.min(TRANSFER_LIMITS.rangeBytes, chunk.bytes - chunk.next)
    chunk.next += range.length
  }
  const id = receiver.nextRequest++
  const { offset, length } = range
  incoming.requests.set(id, { chunk, node, offset, length, atMs: receiver.port.nowMs() })
  const isSent = receiver.port.send(node, { type: 'chunkRequest', id, digest: chunk.digest, offset, length })
  // Its queue is full or it has just disconnected: the request is repeated when it is overdue.
  if (!isSent) receiver.port.log.debug({ node }, 'chunk request not sent')
}

/** A range has arrived. */
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

/** The chunk does not match its digest. A node that sent all of it gets no more requests for it. */
function pullAgain(receiver: Receiver, incoming: Incoming, chunk: Pulled): void {
  receiver.port.log.warn({ chunk: chunk.digest, nodes: [...chunk.servedBy] }, 'damaged chunk received')
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

/** All connections to the node are lost: its requests go to other nodes. */
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
      // The core or the disk has it; both will finish.
      return report(receiver, incoming, false)
    case 'manifest':
    case 'planning':
    case 'pulling':
      break
    default:
      return unreachable(incoming.phase)
  }
  if (nowMs - incoming.progressMs >= TRANSFER_LIMITS.progressMs) return fail(receiver, 'failed', NO_PROGRESS)
  for (const [id, { chunk, node, offset, length, atMs }] of incoming.requests) {
    if (nowMs - atMs < TRANSFER_LIMITS.requestMs) continue
    incoming.requests.delete(id)
    chunk.again.push({ offset, length })
    // Prefer another node. Without one the same node gets the request again.
    if (port.sources().some((other) => other !== node && !chunk.lacking.has(other))) chunk.lacking.add(node)
  }
  if (incoming.phase === 'manifest') pull(receiver, incoming)
  else proceed(receiver, incoming)
  if (receiver.incoming === incoming) report(receiver, incoming, false)
}

const NO_PROGRESS = 'no progress'

/** Reports progress to the offering node, which may not see it because the chunks come from others. */
function report({ port }: Receiver, incoming: Incoming, isDue: boolean): void {
  const nowMs = port.nowMs()
  if (!isDue && nowMs - incoming.reportedMs < TRANSFER_LIMITS.reportMs) return
  incoming.reportedMs = nowMs
  reply(port, incoming.node, incoming.offer.index, 'pulling')
}

function reply(port: Pick<ReceiverPort, 'send'>, node: string, index: number, reason: OfferReason): void {
  const ok = reason === 'pulling' || reason === 'installed'
  port.send(node, { type: 'offerReply', index, ok, reason })
}

/** Starts over with `makeCurrent`, which then reports the missing chunks. */
function delay(receiver: Receiver, incoming: Incoming, reason: OfferReason, detail: string): void {
  const empty = { waiting: [], pulling: [], verifying: [], storing: 0, requests: new Map<number, Request>() }
  // A copy: replies to earlier disk requests belong to the previous object.
  receiver.incoming = { ...incoming, ...empty, phase: 'ready' }
  receiver.port.onDelayed(reason, detail)
}

function fail(receiver: Receiver, reason: OfferReason, detail: string): void {
  const { incoming, port } = receiver
  assert(incoming !== undefined, 'only a running transfer fails')
  // A full disk must not end the node: after its restart it would receive the same offer again.
  if (incoming.isAwaited && (reason === 'no-space' || detail === NO_PROGRESS)) {
    return delay(receiver, incoming, reason, detail)
  }
  receiver.incoming = undefined
  receiver.failed++
  const { index, purpose = 'install' } = incoming.offer
  port.log.warn({ index, from: incoming.node, reason, detail }, 'snapshot not received')
  reply(port, incoming.node, index, reason)
  port.onFailed(reason, detail, purpose)
}

/** The driver cannot use the complete snapshot, for instance because its memory is too small. */
export function refuseReceived(receiver: Receiver, reason: OfferReason, detail: string): void {
  if (receiver.incoming) fail(receiver, reason, detail)
}

/** The core has appended the log instead, or the offer is obsolete. Verified chunks stay for the next one. */
export function forgetIncoming(receiver: Receiver): void {
  receiver.incoming = undefined
}

/**
 * Gives the received snapshot its name; a snapshot to load gets a place beside (`hold`). Index and term come from its
 * own manifest, never from the newest snapshot on disk.
 *
 * @param done called with the path of its folder. If chunks are missing, they are pulled again and `onReady` follows
 * instead. If the disk is full, `onDelayed` follows.
 */
export function makeCurrent(receiver: Receiver, done: (path: string) => void): void {
  const { incoming, port } = receiver
  assert(incoming?.phase === 'ready' && incoming.manifest !== undefined, 'a snapshot made current is complete')
  incoming.phase = 'making'
  const kind = incoming.offer.purpose === 'load' ? 'hold' : 'current'
  incoming.isAwaited = kind === 'current'
  port.exchange({ kind, manifest: incoming.manifest, origin: kind === 'hold' ? 'load' : 'transfer' }, (answer) => {
    if (receiver.incoming !== incoming) return
    switch (answer.state) {
      case 'current':
      case 'held':
        receiver.incoming = undefined
        receiver.received++
        return done(answer.path)
      case 'lacking':
        // A snapshot of this node was deleted, and chunks with it.
        incoming.phase = 'pulling'
        incoming.waiting.push(...answer.missing)
        incoming.progressMs = port.nowMs()
        return proceed(receiver, incoming)
      case 'full':
        return fail(receiver, 'no-space', 'the disk is full')
      default:
        return fail(receiver, 'failed', detailOf(answer))
    }
  })
}

/** @returns whether `makeCurrent` may be called */
export function isWhole({ incoming }: Receiver): boolean {
  return incoming?.phase === 'ready'
}

/** The state of the snapshot is in force: the offering node need not wait for an acknowledgement. */
export function replyInstalled(receiver: Receiver, node: string, index: number): void {
  reply(receiver.port, node, index, 'installed')
}

/** For `/status`: the state of another node is being received. */
export function installStatusOf({ incoming }: Receiver): InstallStatus | undefined {
  if (!incoming || incoming.offer.purpose === 'load') return undefined
  const { node: from, offer, bytesDone, bytesTotal } = incoming
  return { from, index: offer.index, bytesDone, bytesTotal }
}

/** Bytes of a load's snapshot still to receive; 0 while unknown. */
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

export type Sender = ReturnType<typeof createSender>

export function createSender(port: SenderPort) {
  return {
    port,
    outgoing: new Map<number, Outgoing>(),
    backoff: new Map<number, Backoff>(),
    /** Earliest time of the next send under the shared rate limit. */
    freeAtMs: 0,
    waiting: 0,
    sent: 0,
    failed: 0,
    lastDurationMs: undefined as number | undefined,
  }
}

/** The core wants a peer to get a snapshot (`ready.offers`). An offer that does not start now is reported as failed. */
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
    if (!newest) return failOutgoing(sender, peer, 'no snapshot here')
    begun.index = newest.index
    const isSent = port.sendOffer(peer, newest, offeredManifest(newest))
    if (!isSent) failOutgoing(sender, peer, 'offer not sent')
  })
}

/** A peer requests a range. It may be a peer without an offer from this node. */
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
  // Dropped without a reply: the receiver requests it from another node, or again.
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

/** The receiver of an offer reports its progress. */
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

/** The peer has caught up with the log or left the shard, or this node no longer leads. */
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
  // Disk space and memory do not return within a second.
  const isSlow = reason === 'no-space' || reason === 'no-memory' || reason === 'foreign'
  const delayMs = isSlow ? retryMsMax : Math.min(before * 2, retryMsMax)
  backoff.set(peer, { retryAtMs: port.nowMs() + delayMs, delayMs })
  port.log.warn({ node, reason, retryMs: delayMs }, 'snapshot not sent')
  port.reportSnapshot(peer, false)
}

/**
 * First index of the log kept for peers that are receiving a snapshot (docs/design/storage.md#transfer, 5). Compaction
 * stops there.
 */
export function keptFor(sender: Sender): number {
  let index = Number.POSITIVE_INFINITY
  const nowMs = sender.port.nowMs()
  for (const running of sender.outgoing.values()) {
    if (nowMs - running.startedMs < TRANSFER_LIMITS.keepLogMs) index = Math.min(index, running.index)
  }
  return index
}

/** Indexes of the snapshots being sent: retention keeps them (`pinned` of the bulk thread). */
export function pinnedBy(sender: Sender): number[] {
  return [...new Set([...sender.outgoing.values()].map(({ index }) => index))]
}

// Connection to the thread that runs the disk operations

export type ExchangeOverPort = {
  readonly exchange: Exchange
  /** A reply of the bulk thread has arrived. */
  onExchanged(id: number, answer: ExchangeAnswer): void
}

/** @param post sends `{ type: 'exchange', id, ask: request }` to the bulk thread */
export function exchangeOverPort(post: (id: number, request: Parameters<Exchange>[0]) => void): ExchangeOverPort {
  const waiting = new Map<number, (answer: ExchangeAnswer) => void>()
  let nextId = 1
  return {
    exchange(request, done) {
      const id = nextId++
      waiting.set(id, done)
      post(id, request)
    },
    onExchanged(id, answer) {
      const done = waiting.get(id)
      assert(done !== undefined, 'an exchange gets one reply')
      waiting.delete(id)
      done(answer)
    },
  }
}
