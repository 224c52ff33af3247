/**
 * Plain submissions, read off their connections without Node's HTTP server: its parser and its objects cost more than
 * storing the job (docs/design/queue-delivery.md#plain-requests). A request is plain when it arrives at once and has the
 * usual form. Anything else gives the connection to Node's HTTP server for good, with every byte that was not answered.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { assert } from '@vacancy/shared'
import { http } from '@vacancy/shared/node'
import { type Answer, answerSubmission } from './producer.ts'
import type { QueueServer } from './queue-server.ts'

export type PlainRequest = {
  readonly authorization: string | undefined
  /** The header `X-Forwarded-For`. */
  readonly forwarded: string | undefined
  readonly traceparent: string | undefined
  /** The client wants the connection to be closed after the response. */
  readonly isLast: boolean
  readonly body: Buffer
}

const START = 'POST /producer/job'
const REQUEST_LINE = /^POST \/producer\/jobs? HTTP\/1\.1$/
/** A name, and a value of printable ASCII. Anything else is for a real parser. */
const HEADER = /^([A-Za-z0-9_-]+):[ \t]*([\x20-\x7e]*)$/
const LENGTH = /^\d{1,9}$/
const HEAD_BYTES_MAX = 4_096
/** Headers that are read. */
const ONCE = new Set(['authorization', 'connection', 'content-length', 'host', 'traceparent', 'x-forwarded-for'])
/** Headers that frame or pack the body in another way, or ask for more than a response. */
const NOT_PLAIN = new Set([
  'transfer-encoding',
  'content-encoding',
  'expect',
  'upgrade',
  'trailer',
  'te',
  'proxy-connection',
])

/** @returns undefined unless the bytes are one whole plain request */
export function readPlain(bytes: Buffer): PlainRequest | undefined {
  if (bytes.toString('latin1', 0, START.length) !== START) return undefined
  const headBytes = bytes.indexOf('\r\n\r\n', START.length, 'latin1')
  if (headBytes < 0 || headBytes > HEAD_BYTES_MAX) return undefined
  const [requestLine = '', ...lines] = bytes.toString('latin1', 0, headBytes).split('\r\n')
  if (!REQUEST_LINE.test(requestLine)) return undefined
  const found = new Map<string, string>()
  for (const line of lines) {
    const [, name, value] = HEADER.exec(line) ?? []
    if (name === undefined || value === undefined) return undefined
    const key = name.toLowerCase()
    if (NOT_PLAIN.has(key)) return undefined
    if (!ONCE.has(key)) continue
    if (found.has(key)) return undefined
    found.set(key, value.trimEnd())
  }
  const length = found.get('content-length')
  if (!found.has('host') || length === undefined || !LENGTH.test(length)) return undefined
  const connection = found.get('connection')?.toLowerCase()
  if (connection !== undefined && connection !== 'keep-alive' && connection !== 'close') return undefined
  const bodyAt = headBytes + 4
  if (bytes.length - bodyAt !== Number(length)) return undefined
  const authorization = found.get('authorization')
  const forwarded = found.get('x-forwarded-for')
  const traceparent = found.get('traceparent')
  return { authorization, forwarded, traceparent, isLast: connection === 'close', body: bytes.subarray(bodyAt) }
}

/** A connection before Node's HTTP server has it. */
type Connection = {
  readonly queue: QueueServer
  readonly socket: Socket
  readonly keepAliveMs: number
  /** Stops listening, and gives the socket to Node's HTTP server. */
  readonly leave: () => void
  /** Nothing has arrived yet. */
  isNew: boolean
  /** A request is being answered, or the client has not taken the last response. */
  isBusy: boolean
  /** What arrived meanwhile. */
  waiting: Buffer | undefined
  /** The client sends no more, or wants no more. */
  isLast: boolean
}

/** A client that sends nothing for so long is left to the time limits of Node's HTTP server. */
const FIRST_BYTES_MS = 1_000

/** Reads plain submissions in front of an HTTP server, which must be without TLS. */
export function readPlainRequests(server: Server, queue: QueueServer): void {
  const [listener] = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
  assert(listener?.name === 'connectionListener', 'the first listener for connections is that of Node')
  server.off('connection', listener)
  server.on('connection', (socket: Socket) =>
    follow(socket, queue, server.keepAliveTimeout, () => listener.call(server, socket)),
  )
}

function follow(socket: Socket, queue: QueueServer, keepAliveMs: number, handOver: () => void): void {
  const onData = (bytes: Buffer) => receive(connection, bytes)
  const onEnd = () => {
    connection.isLast = true
    if (!connection.isBusy) socket.end()
  }
  const onTimeout = () => {
    if (connection.isNew) connection.leave()
    // Idle, or a client that does not take its responses.
    else if (!connection.isBusy || socket.writableLength > 0) socket.destroy()
  }
  // The client is gone; `close` follows.
  const onError = () => undefined
  const leave = () => {
    socket.off('data', onData).off('end', onEnd).off('timeout', onTimeout)
    socket.setTimeout(0)
    handOver()
    socket.off('error', onError)
  }
  const connection: Connection = {
    ...{ queue, socket, keepAliveMs, leave },
    ...{ isNew: true, isBusy: false, waiting: undefined, isLast: false },
  }
  socket.setTimeout(FIRST_BYTES_MS)
  socket.on('data', onData).on('end', onEnd).on('timeout', onTimeout).on('error', onError)
}

function receive(connection: Connection, bytes: Buffer): void {
  const { queue, socket, keepAliveMs } = connection
  if (connection.isBusy) {
    connection.waiting = connection.waiting === undefined ? bytes : Buffer.concat([connection.waiting, bytes])
    socket.pause()
    return
  }
  const request = readPlain(bytes)
  if (request === undefined || request.body.length > queue.settings.requestBytesMax) {
    connection.leave()
    socket.emit('data', bytes)
    if (socket.isPaused()) socket.resume()
    return
  }
  if (connection.isNew) socket.setTimeout(keepAliveMs)
  connection.isNew = false
  connection.isBusy = true
  connection.isLast ||= request.isLast
  const { authorization, forwarded, traceparent, body } = request
  const address = queue.access.addressOf(socket.remoteAddress, forwarded)
  const caller = { authorization, query: undefined, address }
  // An error is an answer, too.
  void answerSubmission(queue, caller, body, traceparent).then((answer) => respond(connection, answer))
}

function respond(connection: Connection, answer: Answer): void {
  const { socket, keepAliveMs, isLast } = connection
  if (socket.destroyed) return
  const isTaken = socket.write(responseOf(answer, isLast ? undefined : keepAliveMs))
  // Whatever else the client sends is not read, and its side need not end.
  if (isLast) socket.destroySoon()
  else if (isTaken) next(connection)
  else socket.once('drain', () => next(connection))
}

function next(connection: Connection): void {
  const { socket, waiting } = connection
  connection.isBusy = false
  if (waiting !== undefined) {
    connection.waiting = undefined
    socket.resume()
    receive(connection, waiting)
  } else if (connection.isLast) socket.end()
}

/** The response as Node's HTTP server would send it. @param keepAliveMs undefined: the connection is closed */
function responseOf({ status, headers, body }: Answer, keepAliveMs: number | undefined): string {
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const reuse =
    keepAliveMs === undefined
      ? 'Connection: close'
      : `Connection: keep-alive${keepAliveMs > 0 ? `\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}` : ''}`
  return `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${more.join('')}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nDate: ${httpDate()}\r\n${reuse}\r\n\r\n${body}`
}

const date = { text: '', until: 0 }

function httpDate(): string {
  const now = Date.now()
  if (now >= date.until) {
    date.text = new Date(now).toUTCString()
    date.until = now - (now % 1000) + 1000
  }
  return date.text
}
