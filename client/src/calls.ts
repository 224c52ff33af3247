/**
 * Calls between their caller and the sockets: they are queued, sent, possibly retried, and settled exactly once.
 *
 *   waiting → sent → settled          a reply arrived, the deadline passed, or the caller cancelled
 *      ↑        ↓
 *      └─ (pausing)                   retry: at once on another connection, or after a delay
 *
 * With a shard of several nodes the topology chooses the node for each call, and learns from the outcome.
 *
 * Writes reach a connection in call order. Reads overtake a write that waits for its request key, so that a node with
 * a stalled disk still serves searches.
 */

import { assert, VacancyError } from '@vacancy/shared'
import {
  COMMANDS,
  type CommandName,
  decodeReply,
  type Envelope,
  encodeRequest,
  FIELD_HEADER_BYTES,
  type Reply,
  type RequestFields,
  type Result,
} from '@vacancy/shared/wire'
import { type Connection, checkHealth, flush, type InFlight, send, textOfAddress } from './connection.ts'
import { badArgument, errorOfAnswer, errorOfClient, errorOfConnection, type VacancyCallError } from './errors.ts'
import { createRequestKeys, type RequestKey, type RequestKeys, releaseKey, retire, takeKey } from './request-keys.ts'
import { leavesDoubt, mayRepeat, repeatDelayMs, tellsFate } from './retry.ts'
import { nodeAnswered, nodeFor, nodeSilent, type Topology, writeSent } from './topology.ts'
import type { World } from './world.ts'

export type Calls = {
  readonly world: World
  readonly inFlightMax: number
  /** Unsettled calls, including those in flight. */
  readonly unsettledMax: number
  readonly retry: boolean
  /** Undefined when writes have no key. */
  readonly keys: RequestKeys | undefined
  /** Undefined with a single node. */
  readonly topology: Topology | undefined
  /** The open connections. */
  readonly connections: Set<Connection>
  /** Calls to retry. They are sent first. */
  readonly readsAgain: Set<Call>
  /** In call order, regardless of the order of their refusals. */
  readonly writesAgain: Call[]
  readonly reads: Set<Call>
  readonly writes: Set<Call>
  readonly unsettled: Set<Call>
  isTurnDue: boolean
  /** When the one timer for the deadlines of all calls fires, on the monotonic clock; Infinity: it is not set. */
  wakeMs: number
  stopWake: () => void
  callsMade: number
  /** Why there is no connection. */
  connectionFailure: VacancyCallError | undefined
  /** Called when the last call is settled. */
  whenIdle: () => void
}

export type CallRequest = {
  readonly command: CommandName
  readonly fields: RequestFields<CommandName>
  readonly envelope: Envelope | undefined
  readonly deadlineMs: number
  readonly signal: AbortSignal | undefined
  readonly watch: ((seen: AnswerSeen) => void) | undefined
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/** A node's reply as received, for tools that show the wire bytes. */
export type AnswerSeen = {
  /** `host:port` of the node. */
  readonly address: string
  /** The request frame as sent to this node. */
  readonly request: Uint8Array
  /** The payload of the reply: its frame without the 9 header bytes. */
  readonly answer: Uint8Array
  /** From the hand-over to the socket to the last byte of the reply. */
  readonly milliseconds: number
}

export type Call = {
  readonly command: CommandName
  readonly isWrite: boolean
  readonly isKeyed: boolean
  /** The client adds a key, because the caller gave none. */
  readonly wantsKey: boolean
  readonly bytesBehindKey: number
  key: RequestKey | undefined
  frame: Uint8Array
  readonly watch: ((seen: AnswerSeen) => void) | undefined
  /** The requested nights. The packed dates of a reply are among them. */
  readonly dates: readonly string[]
  readonly order: number
  readonly deadlineMs: number
  /** The deadline on the monotonic clock. */
  readonly dueMs: number
  /** When another node is tried; Infinity: not at all. */
  elsewhereMs: number
  sent: InFlight | undefined
  /** Where it waits to be sent. */
  queue: Set<Call> | Call[] | undefined
  attempts: number
  /** A node reported that the leader can serve this read. */
  prefersLeader: boolean
  /** Nodes that refused it in a row without a pause. */
  hops: number
  /** Number of retries after a reply. */
  repeats: number
  /** An attempt may have executed it. */
  inDoubt: boolean
  /** The reply that caused the pending retry; of a read, the last refusal. */
  refusal: { readonly code: string; readonly message: string } | undefined
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
  stopPause: (() => void) | undefined
  stopSignal: (() => void) | undefined
}

export function createCalls(
  world: World,
  limits: { inFlightMax: number; unsettledMax: number; hasKeys: boolean; retry: boolean },
  topology?: Topology,
): Calls {
  return {
    world,
    inFlightMax: limits.inFlightMax,
    unsettledMax: limits.unsettledMax,
    retry: limits.retry,
    keys: limits.hasKeys ? createRequestKeys(world) : undefined,
    topology,
    connections: new Set(),
    readsAgain: new Set(),
    writesAgain: [],
    reads: new Set(),
    writes: new Set(),
    unsettled: new Set(),
    isTurnDue: false,
    wakeMs: Number.POSITIVE_INFINITY,
    stopWake: () => {},
    callsMade: 0,
    connectionFailure: undefined,
    whenIdle: () => {},
  }
}

/**
 * Accepts a call and settles it with `resolve` or `reject`, the latter only with the errors of errors.ts.
 *
 * @throws such an error when the call is not accepted
 */
export function makeCall(calls: Calls, request: CallRequest): void {
  const { command, signal } = request
  const unsent = { command, inDoubt: false }
  if (signal?.aborted) throw errorOfClient('cancelled', unsent, {}, signal.reason)
  if (calls.unsettled.size >= calls.unsettledMax) {
    throw errorOfClient('backpressure', unsent, { count: calls.unsettled.size })
  }
  const call = createCall(calls, request)
  if (signal) call.stopSignal = listen(signal, () => cancel(calls, call, signal.reason))
  calls.unsettled.add(call)
  wakeBy(calls, call.dueMs)
  enqueue(call, call.isWrite ? calls.writes : calls.reads)
  takeTurnSoon(calls)
}

function listen(signal: AbortSignal, run: () => void): () => void {
  signal.addEventListener('abort', run, { once: true })
  return () => signal.removeEventListener('abort', run)
}

/** Replaced when the write is sent. */
const NO_SESSION = '0'.repeat(32)
const NO_NUMBER = 2n ** 64n - 1n
const NUMBER_BYTES = 8
const NO_DATES: readonly string[] = []
/** Fields of writes whose ids are greater than those of the key, and their bytes. */
const BEHIND_KEY = [
  ['wantIndex', FIELD_HEADER_BYTES + 1],
  ['asOf', FIELD_HEADER_BYTES + 8],
] as const
/** Of any length, and the last one. */
const LAST = 'trace'

function createCall(calls: Calls, request: CallRequest): Call {
  const { command, fields, envelope, deadlineMs, watch, resolve, reject } = request
  const given: { readonly [name: string]: unknown } = fields
  const isWrite = COMMANDS[command].access === 'write'
  // The id of a stay makes a call on it repeatable.
  const isStay = COMMANDS[command].group === 'stays'
  const hasSession = isWrite && given['session'] !== undefined
  const wantsKey = isWrite && !isStay && calls.keys !== undefined && !hasSession
  const keyed = wantsKey ? { ...fields, session: NO_SESSION, requestNumber: NO_NUMBER } : fields
  return {
    command,
    isWrite,
    isKeyed: wantsKey || (isWrite && isStay) || hasSession,
    wantsKey,
    bytesBehindKey: wantsKey ? bytesBehindKey(given) : 0,
    key: undefined,
    frame: encode(command, keyed, envelope),
    watch,
    dates: Array.isArray(given['dates']) ? [...given['dates']] : NO_DATES,
    order: calls.callsMade++,
    deadlineMs,
    dueMs: calls.world.clock.monotonicMs() + deadlineMs,
    elsewhereMs: Number.POSITIVE_INFINITY,
    sent: undefined,
    queue: undefined,
    attempts: 0,
    prefersLeader: false,
    hops: 0,
    repeats: 0,
    inDoubt: false,
    refusal: undefined,
    resolve,
    reject,
    stopPause: undefined,
    stopSignal: undefined,
  }
}

function bytesBehindKey(given: { readonly [name: string]: unknown }): number {
  const last = given[LAST]
  const lastBytes = last === undefined ? 0 : FIELD_HEADER_BYTES + Buffer.byteLength(String(last))
  return BEHIND_KEY.reduce((sum, [name, bytes]) => sum + (given[name] === undefined ? 0 : bytes), lastBytes)
}

function encode(command: CommandName, fields: RequestFields<CommandName>, envelope: Envelope | undefined): Uint8Array {
  try {
    return encodeRequest({ command, correlationId: 0, fields, envelope })
  } catch (error) {
    throw badArgument(command, error instanceof Error ? error.message : String(error), error)
  }
}

/** All calls of a tick are sent together. */
export function takeTurnSoon(calls: Calls): void {
  if (calls.isTurnDue) return
  calls.isTurnDue = true
  queueMicrotask(() => {
    calls.isTurnDue = false
    takeTurn(calls)
  })
}

function takeTurn(calls: Calls): void {
  const nowMs = calls.world.clock.monotonicMs()
  let mayRead = true
  let mayWrite = true
  for (;;) {
    const call = nextCall(calls, mayRead, mayWrite)
    if (!call) break
    const connection = connectionFor(calls, call)
    if (connection && hasKey(calls, call)) hand(calls, call, connection, nowMs)
    // The same obstacle stops all calls of this kind.
    else if (call.isWrite) mayWrite = false
    else mayRead = false
  }
  for (const connection of calls.connections) flush(connection)
}

/** The least loaded connection, of all nodes or of the call's node. */
function connectionFor({ topology, connections, inFlightMax }: Calls, call: Call): Connection | undefined {
  const candidates = topology ? nodeFor(topology, call)?.connections : connections
  let best: Connection | undefined
  for (const connection of candidates ?? []) {
    if (connection.isFull || connection.onTheirWay.size >= inFlightMax) continue
    if (!best || connection.onTheirWay.size < best.onTheirWay.size) best = connection
  }
  return best
}

/** The next call; it stays in its queue. Retries come first, then the oldest. */
function nextCall(calls: Calls, mayRead: boolean, mayWrite: boolean): Call | undefined {
  const read = mayRead ? (firstOf(calls.readsAgain) ?? firstOf(calls.reads)) : undefined
  const write = mayWrite ? (calls.writesAgain[0] ?? firstOf(calls.writes)) : undefined
  if (!read || !write) return read ?? write
  const isReadAgain = read.attempts > 0
  if (isReadAgain !== write.attempts > 0) return isReadAgain ? read : write
  return read.order < write.order ? read : write
}

function firstOf(queue: Set<Call>): Call | undefined {
  const [first] = queue
  return first
}

function hasKey(calls: Calls, call: Call): boolean {
  if (!call.wantsKey || call.key || !calls.keys) return true
  call.key = takeKey(calls.keys)
  if (call.key) putKey(call, call.key)
  return call.key !== undefined
}

/**
 * Writes the key into its reserved place. Fields are in ascending id order:
 *
 *   … · 0x8010 header, 32 bytes of session · 0x8011 header, 8 bytes of number · fields of BEHIND_KEY · trace
 */
function putKey({ frame, bytesBehindKey }: Call, { session, number }: RequestKey): void {
  const numberAt = frame.length - bytesBehindKey - NUMBER_BYTES
  const view = new DataView(frame.buffer, frame.byteOffset)
  assert(view.getBigUint64(numberAt, true) === NO_NUMBER, 'the key offset differs from the number offset')
  view.setBigUint64(numberAt, BigInt(number), true)
  const sessionAt = numberAt - FIELD_HEADER_BYTES - session.id.length
  for (let i = 0; i < session.id.length; i++) frame[sessionAt + i] = session.id.charCodeAt(i)
}

function hand(calls: Calls, call: Call, connection: Connection, nowMs: number): void {
  leaveQueue(call)
  // The previous socket may still hold these bytes, and the correlation id differs.
  if (call.attempts > 0) call.frame = call.frame.slice()
  call.attempts++
  if (call.isWrite) call.refusal = undefined
  call.sent = send(connection, call.frame, call, nowMs)
  if (calls.topology) watchAttempt(calls, calls.topology, call, call.sent)
}

/** A connection received the reply to a call. */
export function callAnswered(calls: Calls, call: Call, payload: Uint8Array, { connection, sentMs }: InFlight): void {
  call.sent = undefined
  call.elsewhereMs = Number.POSITIVE_INFINITY
  call.watch?.({
    address: textOfAddress(connection.settings.address),
    request: call.frame.slice(),
    answer: payload.slice(),
    milliseconds: calls.world.clock.monotonicMs() - sentMs,
  })
  takeAnswer(calls, call, payload, connection)
  // Calls made by whoever awaits this one take a turn together, which one for nothing would split.
  if (isAnyWaiting(calls)) takeTurnSoon(calls)
}

function isAnyWaiting({ readsAgain, writesAgain, reads, writes }: Calls): boolean {
  return reads.size > 0 || writes.size > 0 || readsAgain.size > 0 || writesAgain.length > 0
}

/** The connection of a call in flight ended. */
export function callLost(calls: Calls, call: Call, error: VacancyCallError): void {
  call.sent = undefined
  call.elsewhereMs = Number.POSITIVE_INFINITY
  takeLoss(calls, call, error)
}

/** The fraction of its deadline that a call waits for one node before it tries another. */
const ATTEMPTS_IN_DEADLINE = 4
/** A node may wait this long for an index, or for a confirmation of leadership, before it refuses. */
const ATTEMPT_MS_MIN = 250

function watchAttempt(calls: Calls, topology: Topology, call: Call, sent: InFlight): void {
  const attemptMs = Math.max(ATTEMPT_MS_MIN, Math.ceil(call.deadlineMs / ATTEMPTS_IN_DEADLINE))
  if (call.isWrite && !topology.isConfirmed) writeSent(topology, () => call.sent === sent, attemptMs)
  if (topology.nodes.length === 1) return
  call.elsewhereMs = sent.sentMs + attemptMs
  wakeBy(calls, call.elsewhereMs)
}

/** The timer stays set while calls come and go: a call that is settled in time costs none. */
function wakeBy(calls: Calls, ms: number): void {
  if (ms >= calls.wakeMs) return
  calls.stopWake()
  calls.wakeMs = ms
  calls.stopWake = calls.world.after(Math.max(0, Math.ceil(ms - calls.world.clock.monotonicMs())), () => wake(calls))
}

/** All calls are looked at, so not for each of thousands. */
const WAKE_MS_MIN = 5

function wake(calls: Calls): void {
  const nowMs = calls.world.clock.monotonicMs()
  calls.wakeMs = Number.POSITIVE_INFINITY
  let next = Number.POSITIVE_INFINITY
  let isAnyExpired = false
  for (const call of calls.unsettled) {
    if (call.dueMs <= nowMs) {
      fail(calls, call, reasonOfDelay(calls, call), false)
      isAnyExpired = true
      continue
    }
    if (call.elsewhereMs <= nowMs) lookElsewhere(calls, call)
    next = Math.min(next, call.dueMs, call.elsewhereMs)
  }
  if (isAnyExpired) for (const connection of [...calls.connections]) checkHealth(connection)
  if (next < Number.POSITIVE_INFINITY) wakeBy(calls, Math.max(next, nowMs + WAKE_MS_MIN))
}

/** No call is left, nor will there be one. */
export function stopCalls(calls: Calls): void {
  calls.stopWake()
  calls.wakeMs = Number.POSITIVE_INFINITY
}

/** The node has kept the call waiting for a long time. */
function lookElsewhere(calls: Calls, call: Call): void {
  const { topology } = calls
  const { sent } = call
  assert(topology !== undefined && sent !== undefined, 'only attempts in flight are watched')
  call.elsewhereMs = Number.POSITIVE_INFINITY
  nodeSilent(topology, sent.connection, call.isWrite)
  if (calls.retry && mayRepeat(call, { ended: 'lost' })) {
    // A late reply is dropped. A retried write has its key, so it gets the same result.
    call.inDoubt ||= call.isWrite
    giveUp(call)
    repeat(calls, call)
  }
  checkHealth(sent.connection)
  takeTurnSoon(calls)
}

/** The reply to its attempt in flight will be dropped. */
function giveUp(call: Call): void {
  if (call.sent) call.sent.call = undefined
  call.sent = undefined
}

function enqueue(call: Call, queue: Set<Call> | Call[]): void {
  call.queue = queue
  if (Array.isArray(queue)) queue.splice(placeOf(queue, call), 0, call)
  else queue.add(call)
}

function leaveQueue(call: Call): void {
  const { queue } = call
  if (Array.isArray(queue)) queue.splice(placeOf(queue, call), 1)
  else queue?.delete(call)
  call.queue = undefined
}

/** The position of a call in call order. */
function placeOf(calls: readonly Call[], { order }: Call): number {
  let low = 0
  let high = calls.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((calls[middle] as Call).order < order) low = middle + 1
    else high = middle
  }
  return low
}

function takeAnswer(calls: Calls, call: Call, payload: Uint8Array, connection: Connection): void {
  let reply: Reply
  try {
    reply = readReply(call, payload, connection)
  } catch (error) {
    const reason = error instanceof VacancyError ? String(error.fields['reason']) : String(error)
    const blamed = { command: call.command, inDoubt: call.isWrite }
    return fail(calls, call, errorOfClient('malformed_reply', blamed, { reason }, error), false)
  }
  const { topology } = calls
  if (topology) nodeAnswered(topology, connection, call.isWrite, reply.ok ? 'SUCCESS' : reply.code)
  if (reply.ok) {
    settle(calls, call, true)
    return call.resolve(reply.result)
  }
  takeRefusal(calls, call, reply.code, reply.message)
}

function takeRefusal(calls: Calls, call: Call, code: string, message: string): void {
  const attempt = { ended: 'answered', code } as const
  call.inDoubt ||= leavesDoubt(call, attempt)
  const isUnknown = code === '408'
  // The node may have forgotten the session (docs/design/consensus.md#request-keys).
  if (isUnknown && call.key && calls.keys) retire(calls.keys, call.key.session)
  if (!calls.retry || !mayRepeat(call, attempt)) {
    const isFateKnown = tellsFate(code)
    const inDoubt = call.inDoubt && !isFateKnown
    return fail(calls, call, errorOfAnswer({ ...call, inDoubt }, code, message), isFateKnown)
  }
  call.refusal = { code, message }
  if (calls.topology && goesElsewhere(calls.topology, call, code)) return repeat(calls, call)
  call.stopPause = calls.world.after(repeatDelayMs(call.repeats++, calls.world.random()), () => repeat(calls, call))
}

/** Whether the call goes to another node at once. The topology paces writes that find no leader. */
function goesElsewhere({ nodes }: Topology, call: Call, code: string): boolean {
  if (code !== '308' && code !== '405' && code !== '503') return false
  if (call.isWrite) return true
  call.prefersLeader ||= code === '308'
  call.hops = (call.hops + 1) % nodes.length
  return call.hops > 0
}

function takeLoss(calls: Calls, call: Call, error: VacancyCallError): void {
  const attempt = { ended: 'lost' } as const
  call.inDoubt ||= leavesDoubt(call, attempt)
  if (calls.retry && mayRepeat(call, attempt)) repeat(calls, call)
  else fail(calls, call, errorOfConnection(call, error), false)
}

function repeat(calls: Calls, call: Call): void {
  enqueue(call, call.isWrite ? calls.writesAgain : calls.readsAgain)
  takeTurnSoon(calls)
}

function reasonOfDelay(calls: Calls, call: Call): VacancyCallError {
  const inDoubt = mayBeExecuted(call)
  const blamed = { command: call.command, inDoubt, isWrite: call.isWrite }
  // A read that was refused, and sent once more shortly before its deadline, is better explained by the refusal.
  if (call.refusal) return errorOfAnswer(blamed, call.refusal.code, call.refusal.message)
  if (!call.sent && calls.connections.size === 0 && calls.connectionFailure) {
    return errorOfConnection(blamed, calls.connectionFailure)
  }
  return errorOfClient('deadline_exceeded', blamed, { milliseconds: call.deadlineMs })
}

function cancel(calls: Calls, call: Call, reason: unknown): void {
  const blamed = { command: call.command, inDoubt: mayBeExecuted(call) }
  fail(calls, call, errorOfClient('cancelled', blamed, {}, reason), false)
}

function mayBeExecuted(call: Call): boolean {
  return call.inDoubt || (call.isWrite && call.sent !== undefined)
}

/** Fails the calls that wait for a connection: the node refused the last attempt, and would refuse the next. */
export function failWaiting(calls: Calls, error: VacancyCallError): void {
  for (const call of [...calls.readsAgain, ...calls.writesAgain, ...calls.reads, ...calls.writes]) {
    fail(calls, call, errorOfConnection(call, error), false)
  }
}

function fail(calls: Calls, call: Call, error: VacancyCallError, isFateKnown: boolean): void {
  settle(calls, call, isFateKnown)
  call.reject(error)
}

function settle(calls: Calls, call: Call, isFateKnown: boolean): void {
  assert(calls.unsettled.delete(call), 'a call is settled once')
  call.stopPause?.()
  call.stopSignal?.()
  leaveQueue(call)
  giveUp(call)
  if (call.key && calls.keys) {
    releaseKey(calls.keys, call.key, isFateKnown)
    // Another write may have waited for its key.
    if (calls.writes.size > 0) takeTurnSoon(calls)
  }
  if (calls.unsettled.size === 0) calls.whenIdle()
}

/** The packed dates of a reply are those of its request, whatever the clocks of both sides. */
function readReply({ command, dates }: Call, payload: Uint8Array, { codecs }: Connection): Reply {
  return decodeReply(command, payload, { dates, codecs })
}
