/**
 * The way of a request through a router or bridge: received, routed, sent, repeated where that is safe, answered before
 * its deadline (docs/design/fabric.md#forwarding). The component gives the routes; connections and time come from the
 * world, so that the model runs the same code.
 */

import { assert } from '@vacancy/shared'
import { LOGGED_OUT } from '@vacancy/shared/tokens'
import { encodeLogin, FRAME_HEADER_BYTES, LOGIN_FAILED, LOGIN_OK } from '@vacancy/shared/wire'
import { createDeadlineQueue, type DeadlineQueue, dequeue, enqueue } from './deadlines.ts'
import {
  afterFailure,
  type Code,
  chooseHop,
  creditAfterRead,
  type Failure,
  HEDGE_COST,
  laterMs,
  mayHedge,
  SENDABLE_MS,
} from './decide.ts'
import { codeOfReply, commandOf, errorFrame, flagOf, hasRequestKey, readFrames, segmentOf, writeId } from './frames.ts'
import { abandon, createHopPool, endTry, freeLink, isFree, isHopeful, sendAlso, sendOver } from './hops.ts'
import { adjustReading, createInbound, notePartial, overdue } from './inbound.ts'
import {
  addWrite,
  createLane,
  nextWrite,
  pinnedVia,
  writeInDoubt,
  writeOver,
  writeRefused,
  writeSent,
} from './lanes.ts'
import { addBytes, clearOutbox, flushOutbox, type Outbox, queuedBytes } from './outbox.ts'
import { servingHops } from './serving.ts'
import {
  ANYONE,
  type Hop,
  type HopPool,
  type Inbound,
  type InboundLimits,
  type Link,
  type Login,
  type PoolSettings,
  type Request,
} from './state.ts'
import { STATUS_SEGMENT } from './status.ts'
import { fitTrace, hasTrace, refusesTrace } from './traces.ts'
import type { Wire, World } from './world.ts'

/** Where a request goes. Without an open hop it waits for one until its deadline. */
export type Route = { readonly code: Code } | { readonly hops: readonly Hop[] }

/** What makes a component a router or a bridge. */
export type Policy = {
  /** Whole envelopes are forwarded, or bare frames. */
  readonly forwardsEnvelopes: boolean
  /**
   * Its clients may be routers of this project, which send a write again after 404 and 503. The same codes of an
   * existing component promise nothing, so they are not passed on here.
   */
  readonly servesRouters: boolean
  /** A router of this project gets 503 at once where no hop is open: it waits itself, and knows other ways. */
  readonly sendsRoutersBack: boolean
  /** A frame without an envelope is a request here. */
  readonly takesBareFrames: boolean
  isWrite(command: string, flag: boolean): boolean
  /** Writes of one client with the same key keep their order. */
  laneKey(segment: string): string
  /** The reply to a request that is answered here; undefined for all others. */
  localReply(segment: string, command: string, id: number): Buffer | undefined
  route(segment: string, isWrite: boolean): Route
  /** A read without a reply for this time is sent to a second hop as well; 0 or undefined = never. */
  readonly hedgeAfterMs?: number
  /** A hop refused a request, or did not answer. */
  noteFailure(hop: Hop, failure: Failure, isWrite: boolean): void
  /** After a 404 of a hop: whether the segment has another route by now. Undefined = a 404 is passed on. */
  readonly recheck?: (segment: string, hop: Hop) => Promise<boolean>
  /** Checks a token; undefined = refused. */
  login(token: string, remote: string): Login | undefined
}

export type ForwardLimits = InboundLimits & {
  readonly deadlineMs: number
  /** Requests in flight in all. */
  readonly totalInFlightMax: number
}

export type Counters = ReturnType<typeof noCounts>

export type Ended = { readonly request: Request; readonly result: string; readonly seconds: number }

export type Forwarder = {
  readonly world: World
  readonly policy: Policy
  readonly limits: ForwardLimits
  readonly pool: HopPool
  /** Called for each request that ends: `result` is `ok`, a code, or `dropped` when the client is gone. */
  readonly onEnd: (ended: Ended) => void
  readonly counters: Counters
  readonly inbounds: Set<Inbound>
  readonly usual: DeadlineQueue
  /** DELSEGMENT, whose work grows with the segment. */
  readonly long: DeadlineQueue
  readonly held: Set<Request>
  readonly dirty: Set<Outbox>
  readonly requireLogin: boolean
  /** What reads have earned for hedges. */
  hedgeCredit: number
  isFlushPending: boolean
  isDraining: boolean
  inFlight: number
  stopTick: (() => void) | undefined
  stopWatch: () => void
}

const LONG_FACTOR = 10
const LONG_COMMAND = 'DELSEGMENT'
/** Interval of checks while there are deadlines or held requests. */
const TICK_MS = 20
/** Requests beyond this share of those in flight do not wait for a hop: others need the room. */
const HELD_SHARE = 1 / 2
const WATCH_MS = 1_000
/** A stopping component answers what arrives within this time: clients cannot know of the stop before. */
const LINGER_MS = 100
const KEEPALIVE_SEGMENT = '__keepalive__'

export function createForwarder(options: {
  readonly world: World
  readonly policy: Policy
  readonly limits: ForwardLimits
  readonly pool: PoolSettings
  readonly requireLogin: boolean
  readonly onEnd: (ended: Ended) => void
  /** A connection to the hop works now, or ended or failed for this reason. */
  readonly onHopChange: (hop: Hop, fault: string) => void
}): Forwarder {
  const { world, limits } = options
  const forwarder: Forwarder = {
    world,
    policy: options.policy,
    limits,
    pool: createHopPool(world, options.pool, {
      reply: (request, link, bytes, start, end) => onReply(forwarder, request, link, bytes, start, end),
      lost: (request, link) => {
        forwarder.counters.networkErrors++
        tryFailed(forwarder, request, link, { how: 'lost' })
      },
      opened: (hop) => {
        options.onHopChange(hop, '')
        wakeHeld(forwarder)
      },
      failed: (hop, reason) => options.onHopChange(hop, reason),
      dirty: (outbox) => markDirty(forwarder, outbox),
      stray: () => {
        forwarder.counters.strayReplies++
      },
      kept: () => {
        forwarder.counters.keepalivesSent++
      },
    }),
    onEnd: options.onEnd,
    counters: noCounts(),
    inbounds: new Set(),
    usual: createDeadlineQueue(limits.deadlineMs),
    long: createDeadlineQueue(limits.deadlineMs * LONG_FACTOR),
    held: new Set(),
    dirty: new Set(),
    requireLogin: options.requireLogin,
    hedgeCredit: 0,
    isFlushPending: false,
    isDraining: false,
    inFlight: 0,
    stopTick: undefined,
    stopWatch: () => {},
  }
  watch(forwarder)
  return forwarder
}

function noCounts() {
  return {
    connectionsOpened: 0,
    connectionsClosed: 0,
    connectionsRefused: 0,
    handshakesFailed: 0,
    loginsRefused: 0,
    framesReceived: 0,
    framesForwarded: 0,
    bytesReceived: 0,
    bytesSent: 0,
    keepalives: 0,
    keepalivesSent: 0,
    resyncs: 0,
    clientErrors: 0,
    retries: 0,
    hedges: 0,
    /** Their replies came first. */
    hedgesWon: 0,
    /** Tries of hedged reads that ended without a reply, while the other one was in flight. */
    hedgesFailed: 0,
    redirects: 0,
    timeouts: 0,
    networkErrors: 0,
    unknownSegments: 0,
    strayReplies: 0,
    flagMismatches: 0,
  }
}

// Clients.

/** Handlers for the events of a client's connection. */
export type InboundEvents = {
  data(chunk: Buffer): void
  drained(): void
  /** The client sends no more. */
  ended(): void
  closed(): void
}

export function acceptClient(forwarder: Forwarder, wire: Wire, remote: string): InboundEvents {
  const { world, limits, counters } = forwarder
  const standing = forwarder.requireLogin ? LOGGED_OUT : ANYONE
  const inbound = createInbound(wire, remote, () => standing, limits, world.nowMs())
  forwarder.inbounds.add(inbound)
  counters.connectionsOpened++
  const sink = {
    frame: (bytes: Buffer, start: number, inner: number, end: number) =>
      onFrame(forwarder, inbound, bytes, start, inner, end),
    refuse: (id: number, text: string) => {
      counters.clientErrors++
      answer(forwarder, inbound, errorFrame(id, text))
    },
    skipped: () => {
      counters.resyncs++
    },
    fatal: () => {
      counters.clientErrors++
      inbound.isLast = true
      if (inbound.inFlight === 0) closeInbound(forwarder, inbound)
    },
  }
  return {
    data(chunk) {
      if (inbound.isClosed || inbound.isLast) return
      inbound.heardMs = world.nowMs()
      counters.bytesReceived += chunk.length
      readFrames(inbound.reader, chunk, sink)
      notePartial(inbound, inbound.heardMs)
      adjustReading(inbound, limits, inbound.heardMs)
    },
    drained: () => {
      if (!inbound.isClosed) adjustReading(inbound, limits, world.nowMs())
    },
    ended() {
      inbound.isLast = true
      if (inbound.inFlight === 0) closeInbound(forwarder, inbound)
    },
    closed: () => inboundClosed(forwarder, inbound),
  }
}

/** Closes a client's connection after the bytes that it still gets. */
function closeInbound(forwarder: Forwarder, inbound: Inbound): void {
  if (inbound.isClosed) return
  flushOutbox(inbound.outbox)
  inbound.wire.destroySoon()
  inboundClosed(forwarder, inbound)
}

function inboundClosed(forwarder: Forwarder, inbound: Inbound): void {
  if (inbound.isClosed) return
  inbound.isClosed = true
  clearOutbox(inbound.outbox)
  forwarder.inbounds.delete(inbound)
  forwarder.counters.connectionsClosed++
  // What was not sent is not sent any more; what was sent is waited for, and its reply dropped.
  for (const request of [...forwarder.held]) if (request.inbound === inbound) end(forwarder, request, 'dropped', false)
  for (const lane of inbound.lanes.values()) {
    for (const { item, state } of [...lane.entries]) {
      if (state !== 'sent' && item.state !== 'over') end(forwarder, item, 'dropped', false)
    }
  }
}

function onFrame(
  forwarder: Forwarder,
  inbound: Inbound,
  bytes: Buffer,
  start: number,
  inner: number,
  end: number,
): void {
  const { policy, limits, counters } = forwarder
  const hasEnvelope = inner > start
  const id = bytes.readUInt32LE(inner + 1)
  const segment = hasEnvelope ? segmentOf(bytes, start) : ''
  if (end === inner + FRAME_HEADER_BYTES || segment === KEEPALIVE_SEGMENT) {
    counters.keepalives++
    return
  }
  counters.framesReceived++
  const command = commandOf(bytes, inner, end)
  if (!hasEnvelope && command === 'LOGIN') return login(forwarder, inbound, bytes.subarray(inner, end))
  const { role, fault } = inbound.login()
  if (role === undefined) return refuse(forwarder, inbound, id, `AUTH_ERROR: ${fault}`)
  if (role === 'monitoring') {
    return refuse(forwarder, inbound, id, `FORBIDDEN: role monitoring may not run ${command}`)
  }
  if (!hasEnvelope && !policy.takesBareFrames) {
    return refuse(forwarder, inbound, id, 'VALIDATION_ERROR: a router needs the segment, in an envelope')
  }
  if (segment === STATUS_SEGMENT) inbound.isRouter = true
  const local = policy.localReply(segment, command, id)
  if (local !== undefined) return answer(forwarder, inbound, local)
  if (forwarder.isDraining) return refuse(forwarder, inbound, id, '503')
  if (forwarder.inFlight >= limits.totalInFlightMax) return refuse(forwarder, inbound, id, '429')
  const flag = hasEnvelope && flagOf(bytes, inner)
  const isWrite = policy.isWrite(command, flag)
  if (hasEnvelope && flag !== isWrite) counters.flagMismatches++
  const queue = command === LONG_COMMAND ? forwarder.long : forwarder.usual
  const receivedMs = forwarder.world.nowMs()
  const request: Request = {
    inbound,
    id,
    frame: Buffer.from(bytes.subarray(start, end)),
    inner: inner - start,
    segment,
    command,
    isWrite,
    receivedMs,
    deadlineMs: receivedMs + queue.limitMs,
    state: 'held',
    tries: 0,
    notBeforeMs: 0,
    sentMs: 0,
    link: undefined,
    linkId: 0,
    hedge: undefined,
    lastHop: undefined,
    refusal: 0,
    isInDoubt: false,
    wasRechecked: false,
    lane: undefined,
    entry: undefined,
    before: undefined,
    after: undefined,
  }
  enqueue(queue, request)
  inbound.inFlight++
  forwarder.inFlight++
  if (forwarder.stopTick === undefined) scheduleTick(forwarder)
  if (isWrite) {
    const key = policy.laneKey(segment)
    let lane = inbound.lanes.get(key)
    if (lane === undefined) {
      lane = createLane()
      inbound.lanes.set(key, lane)
    }
    request.lane = lane
    request.entry = addWrite(lane, request)
  }
  dispatch(forwarder, request)
}

function refuse(forwarder: Forwarder, inbound: Inbound, id: number, text: string): void {
  forwarder.counters.clientErrors++
  answer(forwarder, inbound, errorFrame(id, text))
}

/** LOGIN has its own format: correlation id 0, one text field, and bare text as the answer. */
function login(forwarder: Forwarder, inbound: Inbound, frame: Buffer): void {
  const found = forwarder.policy.login(tokenOf(frame), inbound.remote)
  if (found !== undefined) inbound.login = found
  answer(forwarder, inbound, Buffer.from(found === undefined ? LOGIN_FAILED : LOGIN_OK))
  if (found === undefined) {
    forwarder.counters.loginsRefused++
    inbound.isLast = true
    if (inbound.inFlight === 0) closeInbound(forwarder, inbound)
  }
}

/** Bytes of a LOGIN frame before its token. */
const LOGIN_HEADER_BYTES = encodeLogin('-').length - 1

function tokenOf(frame: Buffer): string {
  return frame.length <= LOGIN_HEADER_BYTES ? '' : frame.toString('utf8', LOGIN_HEADER_BYTES)
}

/** Sends a frame to a client with the replies of this turn. */
function answer(forwarder: Forwarder, inbound: Inbound, frame: Buffer): void {
  if (inbound.isClosed) return
  forwarder.counters.bytesSent += frame.length
  if (addBytes(inbound.outbox, frame, 0, frame.length)) markDirty(forwarder, inbound.outbox)
}

function markDirty(forwarder: Forwarder, outbox: Outbox): void {
  forwarder.dirty.add(outbox)
  if (forwarder.isFlushPending) return
  forwarder.isFlushPending = true
  forwarder.world.atTurnEnd(() => flushAll(forwarder))
}

function flushAll(forwarder: Forwarder): void {
  forwarder.isFlushPending = false
  // A client within this process may send its next request while it gets a reply: that is for the next flush.
  const outboxes = [...forwarder.dirty]
  forwarder.dirty.clear()
  for (const outbox of outboxes) flushOutbox(outbox)
}

// Requests.

/** Sends a request, or with it the writes that wait in front of it. */
function dispatch(forwarder: Forwarder, request: Request): void {
  if (request.lane !== undefined) pump(forwarder, request.lane)
  else if (request.state === 'held') attempt(forwarder, request)
}

/** Sends the next writes of a lane, as far as they may go. */
function pump(forwarder: Forwarder, lane: NonNullable<Request['lane']>): void {
  if (lane.isPumping) return
  lane.isPumping = true
  let next = nextWrite(lane)
  while (next !== undefined && attempt(forwarder, next.item)) next = nextWrite(lane)
  lane.isPumping = false
}

/**
 * Sends a request if its time has come and there is a way; else it is held, or answered.
 *
 * @returns whether it is no longer held
 */
function attempt(forwarder: Forwarder, request: Request): boolean {
  const { policy, world } = forwarder
  const nowMs = world.nowMs()
  if (nowMs < request.notBeforeMs || request.deadlineMs - nowMs < SENDABLE_MS) return hold(forwarder, request)
  const route = policy.route(request.segment, request.isWrite)
  if ('code' in route) return answerCode(forwarder, request, route.code)
  const link = linkFor(forwarder, request, route.hops, nowMs)
  if (link !== undefined) return send(forwarder, request, link, nowMs)
  if (route.hops.some(isCongested)) return answerCode(forwarder, request, 429)
  const isPinned = request.lane !== undefined && pinnedVia(request.lane) !== undefined
  if (isPinned || mayWait(forwarder, request) || route.hops.some(isHopeful)) return hold(forwarder, request)
  return answerCode(forwarder, request, 503)
}

/** Whether the request waits here for a hop that can be reached. */
function mayWait({ policy, held, limits }: Forwarder, request: Request): boolean {
  if (request.inbound.isRouter && policy.sendsRoutersBack) return false
  return held.has(request) || held.size < limits.totalInFlightMax * HELD_SHARE
}

function linkFor(forwarder: Forwarder, request: Request, hops: readonly Hop[], nowMs: number): Link | undefined {
  const pinned = request.lane && pinnedVia(request.lane)
  if (pinned !== undefined) {
    // On the way of the writes before it, or after them.
    const isUsable = pinned.state === 'open' && !pinned.isDraining && pinned.hop.kind !== 'foreign'
    return isUsable && hops.includes(pinned.hop) && !isFull(pinned) ? pinned : undefined
  }
  const serving = servingHops(hops, request.isWrite, isFree)
  const hop = chooseHop(serving, isFree, nowMs, forwarder.world.random, request.lastHop)
  return hop && freeLink(hop)
}

function isFull(link: Link): boolean {
  return queuedBytes(link.outbox) > link.pool.settings.queuedBytesMax
}

/** The hop works, and takes no more bytes. */
function isCongested(hop: Hop): boolean {
  return hop.kind !== 'foreign' && hop.links.some((link) => link.state === 'open' && isFull(link))
}

function send(forwarder: Forwarder, request: Request, link: Link, nowMs: number): true {
  const { policy, counters, held } = forwarder
  held.delete(request)
  fitTrace(request, link.hop, nowMs)
  sendOver(link, request, policy.forwardsEnvelopes ? 0 : request.inner)
  request.state = 'sent'
  request.sentMs = nowMs
  if (request.tries > 0) counters.retries++
  else if (!request.isWrite) forwarder.hedgeCredit = creditAfterRead(forwarder.hedgeCredit)
  request.tries++
  counters.framesForwarded++
  if (request.isWrite) link.hop.writesSent++
  else link.hop.readsSent++
  if (request.lane !== undefined && request.entry !== undefined) writeSent(request.lane, request.entry, link)
  return true
}

function hold(forwarder: Forwarder, request: Request): false {
  forwarder.held.add(request)
  return false
}

function onReply(forwarder: Forwarder, request: Request, link: Link, bytes: Buffer, start: number, stop: number): void {
  const code = codeOfReply(bytes, start, stop)
  if (code !== 0) {
    request.refusal = code
    return tryFailed(forwarder, request, link, { how: 'refused', code })
  }
  if (hasTrace(request) && refusesTrace(request, link.hop, bytes.subarray(start, stop), forwarder.world.nowMs())) {
    return sendPlain(forwarder, request, link)
  }
  if (request.hedge?.link === link) forwarder.counters.hedgesWon++
  if (endTry(request, link)) {
    abandon(request, false)
    request.lastHop = link.hop
  }
  passReply(forwarder, request, bytes.subarray(start, stop))
}

/** A hop knows no traces: nothing was executed. Without one the request is sent again, unless later writes got through. */
function sendPlain(forwarder: Forwarder, request: Request, link: Link): void {
  if (endTry(request, link)) abandon(request, false)
  request.refusal = 503
  if (request.entry?.isOvertaken === true) passRefusal(forwarder, request, true)
  else tryAgain(forwarder, request, 0)
}

/** A try ended without a reply. That of a hedged read is not missed: the other one is waited for. */
function tryFailed(forwarder: Forwarder, request: Request, link: Link, failure: Failure): void {
  if (!endTry(request, link)) return failed(forwarder, request, link.hop, failure)
  forwarder.counters.hedgesFailed++
  forwarder.policy.noteFailure(link.hop, failure, request.isWrite)
}

/** A try ended without a reply that can be passed on at once. */
function failed(forwarder: Forwarder, request: Request, hop: Hop, failure: Failure): void {
  if (request.state !== 'sent') return
  const { policy, counters, world } = forwarder
  request.link = undefined
  if (request.isWrite && failure.how !== 'refused') request.isInDoubt = true
  policy.noteFailure(hop, failure, request.isWrite)
  const isOurs = hop.kind === 'ours' || hop.kind === 'node'
  const code = failure.how === 'refused' ? failure.code : 0
  const nowMs = world.nowMs()
  const limitMs = request.deadlineMs - request.receivedMs
  const verdict =
    request.entry?.isOvertaken === true
      ? PASS
      : afterFailure(failure, {
          isWrite: request.isWrite,
          isRepeatable: request.isWrite && hasRequestKey(request.frame, request.inner, request.frame.length),
          isOurs,
          tries: request.tries,
          tookMs: nowMs - request.sentMs,
          leftMs: request.deadlineMs - nowMs,
        })
  if (code === 404 && isOurs && !request.wasRechecked && policy.recheck && request.entry?.isOvertaken !== true) {
    return recheck(forwarder, request, hop, policy.recheck)
  }
  switch (verdict.do) {
    case 'pass':
      return passRefusal(forwarder, request, isOurs)
    case 'answer':
      answerCode(forwarder, request, verdict.code)
      return
    default:
      if (code === 308) counters.redirects++
      tryAgain(forwarder, request, verdict.do === 'later' ? nowMs + laterMs(request.tries, limitMs) : 0)
  }
}

const PASS = { do: 'pass' } as const

function tryAgain(forwarder: Forwarder, request: Request, notBeforeMs: number): void {
  request.state = 'held'
  request.notBeforeMs = notBeforeMs
  const { lane, entry } = request
  if (lane !== undefined && entry !== undefined) {
    const overtaken = request.isInDoubt ? writeInDoubt(lane, entry, ({ isInDoubt }) => !isInDoubt) : []
    writeRefused(lane, entry)
    passOvertaken(forwarder, overtaken)
  }
  dispatch(forwarder, request)
}

/** A hop does not know the segment: the routes are read again, and another way is tried once. */
function recheck(forwarder: Forwarder, request: Request, hop: Hop, check: NonNullable<Policy['recheck']>): void {
  request.wasRechecked = true
  tryAgain(forwarder, request, Number.POSITIVE_INFINITY)
  check(request.segment, hop).then((hasChanged) => {
    if (request.state !== 'held') return
    request.notBeforeMs = 0
    if (!hasChanged) return passRefusal(forwarder, request, true)
    dispatch(forwarder, request)
  })
}

/** Later writes got through, or may have: these are not sent again. */
function passOvertaken(forwarder: Forwarder, requests: readonly Request[]): void {
  for (const request of requests) {
    request.lane = undefined
    passRefusal(forwarder, request, true)
  }
}

/** Passes on the code that refused a request. @param isCertain the request was certainly not executed */
function passRefusal(forwarder: Forwarder, request: Request, isCertain: boolean): void {
  answerCode(forwarder, request, request.refusal, isCertain)
}

function answerCode(forwarder: Forwarder, request: Request, code: number, isCertain = true): true {
  const given = codeFor(forwarder.policy, request, code, isCertain)
  if (given === 404) forwarder.counters.unknownSegments++
  const gotThrough = !isCertain || given === 408 || given === 500
  pass(forwarder, request, errorFrame(request.id, String(given)), String(given), gotThrough)
  return true
}

/** What a code means to the client, who relies on all but 408 and 500 to say that a write was not executed. */
function codeFor(policy: Policy, request: Request, code: number, isCertain: boolean): number {
  if (request.isInDoubt) return 408
  // Clients of a router know nothing of leaders.
  if (code === 308 || code === 405) return 503
  return request.isWrite && !isCertain && policy.servesRouters ? 408 : code
}

/** Passes on the reply of a hop. */
function passReply(forwarder: Forwarder, request: Request, frame: Buffer): void {
  const { wire } = request.inbound
  if (!wire.takeReply) return pass(forwarder, request, frame, 'ok', true)
  writeId(frame, 0, request.id)
  forwarder.counters.bytesSent += frame.length
  // The client may send its next request from within the call.
  end(forwarder, request, 'ok', true)
  if (!request.inbound.isClosed) wire.takeReply(frame)
}

/** Answers a request. */
function pass(forwarder: Forwarder, request: Request, frame: Buffer, result: string, gotThrough: boolean): void {
  writeId(frame, 0, request.id)
  answer(forwarder, request.inbound, frame)
  end(forwarder, request, result, gotThrough)
}

/** @param gotThrough a write may have been executed */
function end(forwarder: Forwarder, request: Request, result: string, gotThrough: boolean): void {
  assert(request.state !== 'over', 'a request is answered once')
  const { inbound, lane, entry } = request
  const nowMs = forwarder.world.nowMs()
  request.state = 'over'
  forwarder.held.delete(request)
  dequeue(request.command === LONG_COMMAND ? forwarder.long : forwarder.usual, request)
  forwarder.inFlight--
  inbound.inFlight--
  forwarder.onEnd({ request, result, seconds: (nowMs - request.receivedMs) / 1000 })
  if (lane !== undefined && entry !== undefined) {
    passOvertaken(forwarder, writeOver(lane, entry, gotThrough))
    if (lane.entries.length === 0) inbound.lanes.delete(forwarder.policy.laneKey(request.segment))
    else if (!inbound.isClosed) pump(forwarder, lane)
  }
  if (inbound.isClosed) return
  if (inbound.isLast && inbound.inFlight === 0) closeInbound(forwarder, inbound)
  else if (inbound.isPaused) adjustReading(inbound, forwarder.limits, nowMs)
}

// Time.

/** The routes changed, or a hop takes requests again. */
export function wakeHeld(forwarder: Forwarder): void {
  const nowMs = forwarder.world.nowMs()
  for (const request of [...forwarder.held]) {
    if (request.state === 'held' && request.notBeforeMs <= nowMs) dispatch(forwarder, request)
  }
}

function scheduleTick(forwarder: Forwarder): void {
  forwarder.stopTick = forwarder.world.after(TICK_MS, () => {
    forwarder.stopTick = undefined
    expire(forwarder, forwarder.usual)
    expire(forwarder, forwarder.long)
    hedgeReads(forwarder)
    wakeHeld(forwarder)
    if (forwarder.inFlight > 0 && forwarder.stopTick === undefined) scheduleTick(forwarder)
  })
}

function expire(forwarder: Forwarder, queue: DeadlineQueue): void {
  const nowMs = forwarder.world.nowMs()
  for (let request = queue.first; request !== undefined && request.deadlineMs <= nowMs; request = queue.first) {
    if (request.state === 'sent') {
      forwarder.counters.timeouts++
      const hop = request.lastHop
      abandon(request, true)
      if (request.state === 'sent' && hop) forwarder.policy.noteFailure(hop, { how: 'silent' }, request.isWrite)
      if (request.state === 'sent') answerCode(forwarder, request, wasNotServed(request) ? 503 : 408)
    } else answerCode(forwarder, request, 503)
  }
  const halfMs = queue.limitMs / 2
  for (let request = queue.first; request !== undefined && request.receivedMs + halfMs <= nowMs; ) {
    const next: Request | undefined = request.after
    if (request.state === 'sent' && !request.isWrite && request.tries === 1) tryElsewhere(forwarder, request)
    request = next
  }
}

/** A read that was refused before its last try is better explained by that. */
function wasNotServed({ isWrite, refusal }: Request): boolean {
  return !isWrite && (refusal === 503 || refusal === 308 || refusal === 405)
}

/** A read without a reply for half its time goes to another hop, if there is one. */
function tryElsewhere(forwarder: Forwarder, request: Request): void {
  const route = forwarder.policy.route(request.segment, false)
  const hop = request.lastHop
  if ('code' in route || hop === undefined) return
  if (!route.hops.some((other) => other !== hop && isFree(other))) return
  abandon(request, true)
  if (request.state === 'sent') failed(forwarder, request, hop, { how: 'silent' })
}

/**
 * Sends reads that wait long for their replies to a second hop as well, the oldest first
 * (docs/design/fabric.md#hedged-reads).
 */
function hedgeReads(forwarder: Forwarder): void {
  const { policy, usual, world } = forwarder
  const { hedgeAfterMs = 0 } = policy
  if (hedgeAfterMs === 0) return
  const nowMs = world.nowMs()
  for (let request = usual.first; request !== undefined && request.receivedMs + hedgeAfterMs <= nowMs; ) {
    const next: Request | undefined = request.after
    const { state, isWrite, tries, deadlineMs, inbound } = request
    if (
      state === 'sent' &&
      !inbound.isClosed &&
      mayHedge({ isWrite, tries, leftMs: deadlineMs - nowMs }, forwarder.hedgeCredit)
    ) {
      hedge(forwarder, request, nowMs)
    }
    request = next
  }
}

function hedge(forwarder: Forwarder, request: Request, nowMs: number): void {
  const { policy, world, counters } = forwarder
  const route = policy.route(request.segment, request.isWrite)
  if ('code' in route) return
  // An ejected hop is no help, and the present one is the one that does not answer.
  const others = route.hops.filter((hop) => hop !== request.lastHop && hop.ejectedUntilMs <= nowMs)
  const hop = chooseHop(servingHops(others, false, isFree), isFree, nowMs, world.random)
  const link = hop && freeLink(hop)
  if (link === undefined) return
  forwarder.hedgeCredit -= HEDGE_COST
  fitTrace(request, link.hop, nowMs)
  sendAlso(link, request, policy.forwardsEnvelopes ? 0 : request.inner)
  request.tries++
  link.hop.readsSent++
  counters.framesForwarded++
  counters.hedges++
}

/** Closes clients that are idle, stalled, or stuck in a frame. */
function watch(forwarder: Forwarder): void {
  forwarder.stopWatch = forwarder.world.after(WATCH_MS, () => {
    const nowMs = forwarder.world.nowMs()
    for (const inbound of forwarder.inbounds) {
      adjustReading(inbound, forwarder.limits, nowMs)
      if (overdue(inbound, forwarder.limits, nowMs) === '') continue
      inbound.wire.destroy()
      inboundClosed(forwarder, inbound)
    }
    watch(forwarder)
  })
}

/**
 * Finishes what is in flight; new requests get 503. Resolves when nothing is left, or after `drainMs`. The connections
 * are closed then.
 */
export function drain(forwarder: Forwarder, drainMs: number): Promise<void> {
  forwarder.isDraining = true
  const { world } = forwarder
  const beganMs = world.nowMs()
  return new Promise((resolve) => {
    const check = () => {
      const sinceMs = world.nowMs() - beganMs
      if (sinceMs < drainMs && (forwarder.inFlight > 0 || sinceMs < LINGER_MS)) {
        world.after(TICK_MS, check)
        return
      }
      for (const inbound of [...forwarder.inbounds]) closeInbound(forwarder, inbound)
      forwarder.stopTick?.()
      forwarder.stopWatch()
      resolve()
    }
    check()
  })
}
