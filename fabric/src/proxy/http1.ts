/**
 * The usual request, without the HTTP server of Node: `POST /api` of HTTP/1.1 that arrives whole, one at a time. It is
 * read from the bytes of the socket, and its response is one write of one buffer. That halves what a request costs.
 *
 * Anything else (another path, a body in parts, pipelining, any header with a meaning for the connection, anything
 * malformed) is given to the HTTP server of Node with all its bytes, and so is the connection from then on. Therefore
 * this reader need not know what is allowed: it accepts what is surely valid, and decides nothing else.
 */

import { http, LISTENER_LIMITS } from '@vacancy/shared/node'
import { type Answer, API_LIMITS, type Connection, type Exchange } from './exchange.ts'

/** The head of a request. */
export type PlainHead = {
  /** By name in lower case. */
  readonly fields: ReadonlyMap<string, string>
  /** With the empty line at its end. */
  readonly bytes: number
  readonly bodyBytes: number
}

const START = Buffer.from('POST /api HTTP/1.1\r\n')
const LINE_END = '\r\n'
const HEAD_END = '\r\n\r\n'
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const LENGTH = /^\d{1,7}$/
/** They say how the message is framed or packed, or what becomes of the connection. */
const NOT_PLAIN: ReadonlySet<string> = new Set([
  'connection',
  'content-encoding',
  'expect',
  'proxy-connection',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * Reads the head of a request at the start of a chunk. Pure.
 *
 * @returns undefined for everything but a plain request
 */
export function readPlainHead(chunk: Buffer): PlainHead | undefined {
  if (chunk.length < START.length || START.compare(chunk, 0, START.length) !== 0) return undefined
  const end = chunk.indexOf(HEAD_END, START.length - LINE_END.length, 'latin1')
  if (end < 0 || end > LISTENER_LIMITS.headerBytesMax) return undefined
  const lines = chunk.toString('latin1', START.length, end).split(LINE_END)
  if (lines.length > API_LIMITS.headersMax) return undefined
  const fields = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon < 0) return undefined
    const name = line.slice(0, colon).toLowerCase()
    const value = trimmed(line, colon + 1)
    if (!NAME.test(name) || !VALUE.test(value) || fields.has(name)) return undefined
    if (NOT_PLAIN.has(name) && !(name === 'connection' && value.toLowerCase() === 'keep-alive')) return undefined
    fields.set(name, value)
  }
  const length = fields.get('content-length')
  if (length === undefined || !LENGTH.test(length) || !fields.has('host')) return undefined
  const bodyBytes = Number(length)
  if (bodyBytes > API_LIMITS.bodyBytesMax) return undefined
  return { fields, bytes: end + HEAD_END.length, bodyBytes }
}

/** The rest of a line without the blanks around it; nothing else counts as blank here. */
function trimmed(line: string, from: number): string {
  let start = from
  let end = line.length
  while (start < end && isBlank(line.charCodeAt(start))) start++
  while (end > start && isBlank(line.charCodeAt(end - 1))) end--
  return line.slice(start, end)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** The listener around a connection. */
export type PlainEvents = {
  readonly isClosing: () => boolean
  /** A request begins or ends. */
  readonly count: (change: 1 | -1) => void
  readonly handle: (exchange: Exchange) => void
  /** The connection is for the HTTP server from here on; the bytes are the first it gets. */
  readonly handOver: (bytes: Buffer) => void
}

/** Larger heads are parsed each time. */
const HEAD_BYTES_KEPT = 1024

type Plain = {
  readonly connection: Connection
  readonly events: PlainEvents
  /** The head of the last request: most clients send the same again. */
  headBytes: Buffer | undefined
  head: PlainHead | undefined
  isBusy: boolean
  /** The client does not read its last response: it gets no other until that has left. */
  isBlocked: boolean
  /** What arrived during a request. */
  early: Buffer | undefined
  /** The client sends no more. */
  isEnded: boolean
  stop: () => void
}

/**
 * Serves a connection.
 *
 * @param first bytes that were read; without them the first request must begin within `firstMs`
 */
export function servePlain(
  connection: Connection,
  first: Buffer | undefined,
  firstMs: number,
  events: PlainEvents,
): void {
  const { socket } = connection
  const plain: Plain = {
    connection,
    events,
    headBytes: undefined,
    head: undefined,
    isBusy: false,
    isBlocked: false,
    early: undefined,
    isEnded: false,
    stop: () => {
      for (const [event, listener] of listeners) socket.off(event, listener)
      socket.setTimeout(0)
    },
  }
  const listeners = [
    ['data', (chunk: Buffer) => onData(plain, chunk)],
    ['end', () => onEnd(plain)],
    ['timeout', () => socket.destroy()],
    // Its `close` follows.
    ['error', () => {}],
    ['close', () => onClose(plain)],
  ] as const
  socket.setTimeout(first ? LISTENER_LIMITS.idleTimeoutMs : firstMs)
  if (!first) socket.once('data', () => socket.setTimeout(LISTENER_LIMITS.idleTimeoutMs))
  for (const [event, listener] of listeners) socket.on(event, listener)
  if (first) onData(plain, first)
}

function onData(plain: Plain, chunk: Buffer): void {
  const { connection, events } = plain
  if (plain.isBusy || plain.isBlocked) {
    plain.early = plain.early ? Buffer.concat([plain.early, chunk]) : chunk
    connection.socket.pause()
    return
  }
  const head = headOf(plain, chunk)
  if (head === undefined || chunk.length !== head.bytes + head.bodyBytes) {
    plain.stop()
    events.handOver(chunk)
    return
  }
  plain.isBusy = true
  events.count(1)
  events.handle({
    connection,
    proto: 'http1',
    method: 'POST',
    path: '/api',
    query: '',
    refused: undefined,
    header: (name) => head.fields.get(name),
    readBody: (done) => done(chunk.subarray(head.bytes)),
    respond: (answer) => respond(plain, answer),
  })
}

function headOf(plain: Plain, chunk: Buffer): PlainHead | undefined {
  const { headBytes } = plain
  const bytes = headBytes?.length ?? 0
  // Both end with the first empty line, so one cannot be the beginning of the other.
  if (headBytes && chunk.length >= bytes && headBytes.compare(chunk, 0, bytes) === 0) return plain.head
  const head = readPlainHead(chunk)
  if (head && head.bytes <= HEAD_BYTES_KEPT) {
    plain.head = head
    plain.headBytes = Buffer.from(chunk.subarray(0, head.bytes))
  }
  return head
}

function onEnd(plain: Plain): void {
  plain.isEnded = true
  if (!plain.isBusy) plain.connection.socket.end()
}

function onClose(plain: Plain): void {
  plain.early = undefined
  if (!plain.isBusy) return
  plain.isBusy = false
  plain.events.count(-1)
}

function respond(plain: Plain, answer: Answer): boolean {
  const { connection, events } = plain
  const { socket } = connection
  // The client is gone.
  if (!plain.isBusy) return false
  plain.isBusy = false
  events.count(-1)
  if (socket.destroyed) return false
  const isLast = events.isClosing() || plain.isEnded
  const { bytes, isShared } = bytesOf(answer, isLast)
  const isAccepted = socket.write(bytes)
  const isQueued = socket.writableLength > 0
  if (isLast) socket.destroySoon()
  else if (isQueued && !isAccepted) {
    plain.isBlocked = true
    socket.once('drain', () => {
      plain.isBlocked = false
      continueWith(plain)
    })
  } else continueWith(plain)
  return isShared && isQueued
}

/** The response has left: what arrived meanwhile is next. */
function continueWith(plain: Plain): void {
  const { early, connection } = plain
  if (early === undefined) return
  plain.early = undefined
  connection.socket.resume()
  onData(plain, early)
}

/** A response as bytes: in front of its body, where there is room for that. */
function bytesOf(answer: Answer, isLast: boolean): { readonly bytes: Buffer; readonly isShared: boolean } {
  const { status, head, id, body, room } = answer
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  const text = `${statusLine(status)}${head.text}X-Request-Id: ${id}\r\nContent-Length: ${length}${endOfHead(isLast)}`
  if (typeof body !== 'string' && text.length <= room) {
    const bytes = Buffer.from(body.buffer, body.byteOffset - text.length, text.length + length)
    bytes.write(text, 0, 'latin1')
    return { bytes, isShared: true }
  }
  const bytes = Buffer.allocUnsafe(text.length + length)
  bytes.write(text, 0, 'latin1')
  if (typeof body === 'string') bytes.write(body, text.length)
  else bytes.set(body, text.length)
  return { bytes, isShared: false }
}

function statusLine(status: number): string {
  return status === 200 ? OK : `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? 'unknown'}\r\n`
}

const OK = 'HTTP/1.1 200 OK\r\n'
const KEPT = `\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${LISTENER_LIMITS.idleTimeoutMs / 1000}\r\n\r\n`
let dateSeconds = 0
let dated = ''

/** From after the length to the empty line: the same for all responses of a second. */
function endOfHead(isLast: boolean): string {
  const nowMs = Date.now()
  const seconds = Math.floor(nowMs / 1000)
  if (seconds !== dateSeconds) {
    dateSeconds = seconds
    dated = `\r\nDate: ${new Date(nowMs).toUTCString()}${KEPT}`
  }
  return isLast ? dated.replace(KEPT, '\r\nConnection: close\r\n\r\n') : dated
}
