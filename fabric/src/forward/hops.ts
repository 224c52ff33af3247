/**
 * Hops: the components or nodes behind this one, each with several connections (docs/design/fabric.md#hops). A
 * connection is opened as soon as its hop is known and again whenever it ends, at least twice a second. A hop that
 * fails three requests in a row is passed over for a second, doubling to thirty.
 *
 * A component of this project answers `__status__`, and gets many requests at once. Any other component serves one
 * request at a time and closes its connection on errors, so that it gets one request per connection.
 */

import { encodeKeepalive, encodeLogin, encodeRequest, FRAME_HEADER_BYTES, readLoginAnswer } from '@vacancy/shared/wire'
import { EJECT_AFTER, nextEjectMs, retryWaitMs } from './decide.ts'
import { createFrameReader, type FrameSink, readFrames, writeId } from './frames.ts'
import { addBytes, clearOutbox, createOutbox, flushOutbox, queuedBytes } from './outbox.ts'
import {
  createHop,
  type Hop,
  type HopPool,
  type Link,
  type PoolEvents,
  type PoolSettings,
  type Request,
} from './state.ts'
import { readRefusal, readStatusReply, STATUS_SEGMENT } from './status.ts'
import type { Address, World } from './world.ts'

/** Time for replies on the connections of a hop that is gone or has moved. */
const DRAIN_MS = 10_000
/** Connections to a component that serves one request at a time. */
const FOREIGN_LINKS_MAX = 64
/** Between two questions for `__status__` on an open connection. */
const ASK_MS = 1_000
/** Mute connections after which a hop is taken for a foreign one that does not answer `__status__`. */
const MUTE_MAX = 2

export function createHopPool(world: World, settings: PoolSettings, events: PoolEvents): HopPool {
  const pool: HopPool = {
    ...{ world, settings, events, hops: new Map(), isClosed: false },
    ...{ stopKeepalive: () => {}, stopAsking: () => {} },
  }
  if (settings.keepaliveMs > 0) scheduleKeepalive(pool)
  if (settings.peer !== 'node') scheduleAsking(pool)
  return pool
}

/**
 * Adds the hops that are new and drops the others. Hops with an address are not resolved. One that waits for its next
 * try to connect is tried at once: the news may be that it is back.
 */
export function setHops(pool: HopPool, wanted: ReadonlyMap<string, Address | undefined>): void {
  for (const [id, hop] of pool.hops) if (!wanted.has(id)) dropHop(pool, hop)
  for (const [id, address] of wanted) {
    const hop = pool.hops.get(id)
    if (hop === undefined) addHop(pool, id, address)
    else if (address !== undefined && !isSame(hop.fixed, address)) {
      hop.fixed = address
      hop.address = address
      moveHop(pool, hop)
    } else if (hop.links.length === 0) fillHop(pool, hop)
  }
}

function isSame(a: Address | undefined, b: Address): boolean {
  return a?.host === b.host && a.port === b.port
}

function addHop(pool: HopPool, id: string, fixed: Address | undefined): void {
  const hop = createHop(id, fixed, pool.settings.peer === 'node' ? 'node' : 'unknown')
  pool.hops.set(id, hop)
  fillHop(pool, hop)
}

function dropHop(pool: HopPool, hop: Hop): void {
  hop.isGone = true
  hop.stopTimer()
  pool.hops.delete(hop.id)
  drainLinks(pool, hop)
}

/** Connections end with their last reply, at the latest after a while. */
function drainLinks(pool: HopPool, hop: Hop, which: (link: Link) => boolean = () => true): void {
  for (const link of hop.links.filter(which)) {
    link.isDraining = true
    if (link.inFlight.size === 0) closeLink(link, 'the hop was removed or has moved')
    else {
      const stop = pool.world.after(DRAIN_MS, () => closeLink(link, 'the hop was removed or has moved'))
      link.stopTimer = stop
    }
  }
}

/** The address of a hop changed. */
export function moveHop(pool: HopPool, hop: Hop): void {
  drainLinks(pool, hop)
  fillHop(pool, hop)
}

/** Opens the connections that a hop lacks: one while none of them works, else all. */
function fillHop(pool: HopPool, hop: Hop): void {
  hop.stopTimer()
  if (pool.isClosed || hop.isGone || hop.isResolving) return
  const usable = hop.links.filter(({ isDraining }) => !isDraining).length
  const isUp = hop.links.some(({ state, isDraining }) => state === 'open' && !isDraining)
  const wanted = isUp ? pool.settings.linksPerHop : 1
  if (usable >= wanted) return
  if (hop.fixed !== undefined) {
    for (let i = usable; i < wanted; i++) openLink(pool, hop, hop.fixed)
    return
  }
  hop.isResolving = true
  pool.settings.resolve(hop.id).then(
    (address) => {
      hop.isResolving = false
      hop.address = address
      if (pool.isClosed || hop.isGone) return
      for (let i = usable; i < wanted; i++) openLink(pool, hop, address)
    },
    (error: unknown) => {
      hop.isResolving = false
      connectFailed(pool, hop, error instanceof Error ? error.message : String(error))
    },
  )
}

function connectFailed(pool: HopPool, hop: Hop, reason: string): void {
  hop.attempts++
  hop.lastFault = reason
  pool.events.failed(hop, reason)
  if (pool.isClosed || hop.isGone) return
  hop.stopTimer()
  hop.stopTimer = pool.world.after(retryWaitMs(hop.attempts, pool.world.random()), () => fillHop(pool, hop))
}

function openLink(pool: HopPool, hop: Hop, address: Address): void {
  const { world, settings } = pool
  // The wire reports nothing before this function returns, so that the link is complete by then.
  const wire = world.connect(address, {
    opened: () => greet(link),
    data: (chunk) => hear(link, chunk),
    drained: () => pool.events.opened(hop),
    closed: (reason) => linkClosed(link, reason),
  })
  const nowMs = world.nowMs()
  const link: Link = {
    pool,
    hop,
    outbox: createOutbox(wire),
    reader: createFrameReader({
      frameBytesMax: settings.frameBytesMax,
      skipBytesMax: settings.frameBytesMax,
      requests: false,
      rubbishBytesMax: 0,
    }),
    state: 'connecting',
    isNamed: false,
    isDraining: false,
    awaitsLogin: false,
    loginAnswer: Buffer.alloc(0),
    inFlight: new Map(),
    nextId: 1,
    timeouts: 0,
    heardMs: nowMs,
    wroteMs: nowMs,
    stopTimer: () => {},
  }
  hop.links.push(link)
}

const STATUS_REQUEST = encodeRequest({
  command: 'GETCODECS',
  correlationId: 0,
  fields: {},
  envelope: { segment: STATUS_SEGMENT, write: false },
})

const CODECS_REQUEST = encodeRequest({ command: 'GETCODECS', correlationId: 0, fields: {} })

function greet(link: Link): void {
  const { pool, hop } = link
  const { settings, world } = pool
  link.state = 'greeting'
  if (settings.peer === 'node') {
    const token = settings.token()
    link.awaitsLogin = token !== undefined
    if (token !== undefined) link.outbox.wire.write(encodeLogin(token))
    else if (settings.provesNodes) link.outbox.wire.write(CODECS_REQUEST)
    else return becomeOpen(link)
  } else {
    if (hop.mute >= MUTE_MAX) {
      hop.kind = 'foreign'
      return becomeOpen(link)
    }
    link.outbox.wire.write(STATUS_REQUEST)
  }
  link.stopTimer = world.after(settings.greetingMs, () => closeLink(link, `no answer to the greeting`))
}

function becomeOpen(link: Link): void {
  const { pool, hop } = link
  link.stopTimer()
  link.state = 'open'
  hop.attempts = 0
  hop.mute = 0
  hop.lastFault = ''
  fillHop(pool, hop)
  pool.events.opened(hop)
}

function hear(link: Link, chunk: Buffer): void {
  if (link.state === 'closed') return
  link.heardMs = link.pool.world.nowMs()
  if (link.state === 'greeting' && link.awaitsLogin) return hearLogin(link, chunk)
  readFrames(link.reader, chunk, sinkOf(link))
}

/** The reply to LOGIN is bare text, and may arrive in pieces. */
function hearLogin(link: Link, chunk: Buffer): void {
  link.loginAnswer = Buffer.concat([link.loginAnswer, chunk])
  const { answer, bytes } = readLoginAnswer(link.loginAnswer)
  if (answer === 'pending') return
  if (answer !== 'ok') return closeLink(link, answer === 'failed' ? 'the token was refused' : 'invalid reply to LOGIN')
  const rest = link.loginAnswer.subarray(bytes)
  link.loginAnswer = Buffer.alloc(0)
  becomeOpen(link)
  if (rest.length > 0) readFrames(link.reader, rest, sinkOf(link))
}

const sinks = new WeakMap<Link, FrameSink>()

function sinkOf(link: Link): FrameSink {
  let sink = sinks.get(link)
  if (sink === undefined) {
    sink = {
      frame: (bytes, start, _inner, end) => hearFrame(link, bytes, start, end),
      refuse: (_id, text) => closeLink(link, text),
      skipped: () => {},
      fatal: (reason) => closeLink(link, reason),
    }
    sinks.set(link, sink)
  }
  return sink
}

function hearFrame(link: Link, bytes: Buffer, start: number, end: number): void {
  const { pool, hop } = link
  if (link.state === 'closed') return
  const id = bytes.readUInt32LE(start + 1)
  const request = link.inFlight.get(id)
  if (request === undefined) {
    if (id === 0 && link.isNamed) {
      hop.status = readStatusReply(bytes.subarray(start + FRAME_HEADER_BYTES, end)) ?? hop.status
      return
    }
    if (id === 0 && link.state === 'greeting') {
      const refusal = readRefusal(bytes.subarray(start + FRAME_HEADER_BYTES, end))
      if (refusal !== '') return closeLink(link, refusal)
      // Any reply of a node proves that it takes requests here.
      if (pool.settings.peer === 'node') return becomeOpen(link)
      return heardStatus(link, bytes.subarray(start, end))
    }
    pool.events.stray()
    return
  }
  link.inFlight.delete(id)
  link.timeouts = 0
  hop.inFlight--
  hop.failures = 0
  if (hop.ejectMs > 0 && hop.ejectedUntilMs <= link.heardMs) hop.ejectMs = 0
  pool.events.reply(request, link, bytes, start, end)
  closeIfGone(link)
}

function heardStatus(link: Link, frame: Buffer): void {
  const { pool, hop } = link
  const status = readStatusReply(frame.subarray(FRAME_HEADER_BYTES))
  if (status !== undefined) {
    const fault = pool.settings.statusFault(hop.id, status)
    if (fault !== '') {
      pool.settings.resolveAgain(hop.id)
      return closeLink(link, fault)
    }
  }
  hop.kind = status === undefined ? 'foreign' : 'ours'
  hop.status = status
  link.isNamed = status !== undefined
  becomeOpen(link)
  // Opened while the hop was mute and passed for an existing one: they may lead elsewhere.
  if (link.isNamed) drainLinks(pool, hop, ({ state, isNamed }) => state === 'open' && !isNamed)
}

/** Ends a connection: its requests are reported as lost. */
function closeLink(link: Link, reason: string): void {
  if (link.state === 'closed') return
  link.outbox.wire.destroy()
  linkClosed(link, reason)
}

function linkClosed(link: Link, reason: string): void {
  if (link.state === 'closed') return
  const { pool, hop, inFlight } = link
  const wasOpen = link.state === 'open'
  if (link.state === 'greeting' && pool.settings.peer !== 'node' && inFlight.size === 0) hop.mute++
  link.state = 'closed'
  link.stopTimer()
  clearOutbox(link.outbox)
  const at = hop.links.indexOf(link)
  if (at >= 0) hop.links.splice(at, 1)
  const lost = [...inFlight.values()]
  inFlight.clear()
  hop.inFlight -= lost.length
  if (hop.fixed === undefined && !wasOpen) pool.settings.resolveAgain(hop.id)
  // One that cannot be connected is not used anyway, and is to be used as soon as it can.
  if (!link.isDraining && wasOpen) noteFailure(hop, pool.world.nowMs())
  if (!link.isDraining) connectFailed(pool, hop, reason)
  for (const request of lost) pool.events.lost(request, link)
}

function closeIfGone(link: Link): void {
  if (link.isDraining && link.inFlight.size === 0) closeLink(link, 'the hop was removed or has moved')
}

/**
 * The connection of a hop that takes a request now: one that sends in this turn anyway, since a write costs more than
 * anything else here, or the one with the fewest requests in flight.
 */
export function freeLink(hop: Hop): Link | undefined {
  let best: Link | undefined
  for (const link of hop.links) {
    if (link.state !== 'open' || link.isDraining || queuedBytes(link.outbox) > link.pool.settings.queuedBytesMax)
      continue
    if (hop.kind === 'foreign' && link.inFlight.size > 0) continue
    if (link.outbox.bytes > 0 && link.outbox.bytes < SHARED_BYTES_MAX && link.outbox.wire.writableLength === 0)
      return link
    if (best === undefined || link.inFlight.size < best.inFlight.size) best = link
  }
  return best
}

/** With more collected bytes, further requests of a turn take another connection. */
const SHARED_BYTES_MAX = 16 << 10

/** Whether a request can be handed to the hop. A foreign hop gets a further connection when all are busy. */
export function isFree(hop: Hop): boolean {
  if (freeLink(hop) !== undefined) return true
  const [any] = hop.links
  if (hop.kind === 'foreign' && any !== undefined && hop.address !== undefined && !hop.isGone) {
    const opening = hop.links.some(({ state }) => state === 'connecting' || state === 'greeting')
    if (!opening && hop.links.length < FOREIGN_LINKS_MAX) openLink(any.pool, hop, hop.address)
  }
  return false
}

/** Whether a connection works, or the first ones are still being opened. */
export function isHopeful(hop: Hop): boolean {
  return hop.attempts === 0 || hop.links.some(({ state, isDraining }) => state === 'open' && !isDraining)
}

/** Sends a request's frame over a connection, from the offset `from` on. */
export function sendOver(link: Link, request: Request, from: number): void {
  request.linkId = handOver(link, request, from)
  request.link = link
  request.lastHop = link.hop
}

/** Sends a request that is in flight over a second connection as well. */
export function sendAlso(link: Link, request: Request, from: number): void {
  request.hedge = { link, id: handOver(link, request, from) }
}

/** @returns the correlation id on that link */
function handOver(link: Link, request: Request, from: number): number {
  const { pool, hop, inFlight } = link
  while (inFlight.has(link.nextId) || link.nextId === 0) link.nextId = (link.nextId + 1) >>> 0
  const id = link.nextId
  link.nextId = (id + 1) >>> 0
  inFlight.set(id, request)
  hop.inFlight++
  writeId(request.frame, request.inner, id)
  link.wroteMs = request.receivedMs
  if (addBytes(link.outbox, request.frame, from, request.frame.length)) pool.events.dirty(link.outbox)
  return id
}

/**
 * The try over this link ended, and is in no table of it any more.
 *
 * @returns whether another one is still in flight
 */
export function endTry(request: Request, link: Link): boolean {
  const { hedge } = request
  request.hedge = undefined
  if (hedge === undefined) {
    request.link = undefined
    return false
  }
  if (hedge.link !== link) {
    request.link = hedge.link
    request.linkId = hedge.id
    request.lastHop = hedge.link.hop
  }
  return true
}

/** A sent request is no longer waited for: replies to it are dropped. */
export function abandon(request: Request, isTimeout: boolean): void {
  const { link, linkId, hedge } = request
  request.link = undefined
  request.hedge = undefined
  if (link !== undefined) takeBack(link, linkId, isTimeout)
  if (hedge !== undefined) takeBack(hedge.link, hedge.id, isTimeout)
}

function takeBack(link: Link, id: number, isTimeout: boolean): void {
  if (!link.inFlight.delete(id)) return
  link.hop.inFlight--
  if (isTimeout) timedOut(link)
  closeIfGone(link)
}

function timedOut(link: Link): void {
  const { hop } = link
  link.timeouts++
  noteFailure(hop, link.pool.world.nowMs())
  // A hop that serves one request at a time would hold the next ones back, and one that lost three replies more.
  if (hop.kind === 'foreign' || link.timeouts >= EJECT_AFTER) closeLink(link, `no reply to ${link.timeouts} requests`)
}

/** A request failed on the hop; after three in a row it is passed over for a while. */
function noteFailure(hop: Hop, nowMs: number): void {
  hop.failures++
  if (hop.failures < EJECT_AFTER) return
  hop.failures = 0
  hop.ejectMs = nextEjectMs(hop.ejectMs)
  hop.ejectedUntilMs = nowMs + hop.ejectMs
}

function scheduleKeepalive(pool: HopPool): void {
  const { world, settings } = pool
  pool.stopKeepalive = world.after(settings.keepaliveMs, () => {
    const before = world.nowMs() - settings.keepaliveMs / 2
    for (const hop of pool.hops.values()) {
      for (const link of hop.links) {
        if (link.state !== 'open' || link.wroteMs > before) continue
        link.wroteMs = world.nowMs()
        link.outbox.wire.write(encodeKeepalive())
        pool.events.kept()
      }
    }
    scheduleKeepalive(pool)
  })
}

/** Components of this project tell which shards behind them do not serve. */
function scheduleAsking(pool: HopPool): void {
  pool.stopAsking = pool.world.after(ASK_MS, () => {
    for (const { links } of pool.hops.values()) {
      const link = links.find(({ state, isNamed, isDraining }) => state === 'open' && isNamed && !isDraining)
      link?.outbox.wire.write(STATUS_REQUEST)
    }
    scheduleAsking(pool)
  })
}

/** Flushes and closes all connections. Requests in flight are reported as lost. */
export function closePool(pool: HopPool): void {
  pool.isClosed = true
  pool.stopKeepalive()
  pool.stopAsking()
  for (const hop of pool.hops.values()) {
    hop.stopTimer()
    for (const link of [...hop.links]) {
      flushOutbox(link.outbox)
      closeLink(link, 'shutting down')
    }
  }
}
