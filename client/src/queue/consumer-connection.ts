/** One WebSocket of a consumer: opens, reads messages, notices silence, and reports how it ended. */

import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { systemWorld } from '../world.ts'
import { authorization, type Endpoint } from './endpoint.ts'

/** A message of the server; unknown fields are ignored. */
export type ServerMessage = {
  readonly action: string
  readonly jobId: string
  readonly seqId: number
  readonly data: unknown
  readonly [more: string]: unknown
}
type Fields = { readonly [name: string]: unknown }

/** How a connection ended, or why there was none. */
export type ConnectionEnd = {
  /** A code of the queue, `connection_failed`, `connection_lost`, or `closed_` with the close code. */
  readonly code: string
  readonly message: string
  /** Connecting again does not help. */
  readonly isFatal: boolean
  /** The process that owns the topic, as the server names it. */
  readonly owner: unknown
  readonly retryAfterMs: number | undefined
}

export type ConsumerConnection = {
  readonly url: string
  /** After `accepted`. */
  isReady: boolean
  /** The server delivers nothing more, and closes soon. */
  isDraining: boolean
  /** When it was accepted; 0 before. */
  readyAt: number
  receivedAt: number
  readonly send: (message: object) => void
  /** Closes it; the peer has a second to answer. */
  readonly close: () => void
}

export type ConnectionEvents = {
  readonly message: (message: ServerMessage, connection: ConsumerConnection) => void
  /** Once, at the end; nothing follows. */
  readonly ended: (end: ConnectionEnd, connection: ConsumerConnection) => void
}

export type Subscription = {
  readonly topic: string
  readonly name: string
  readonly prefetch: number
  /** Time to open, and longest silence. */
  readonly connectMs: number
  readonly silenceMs: number
}

/** A payload of max_job_bytes in base64, with its other fields. */
const MESSAGE_BYTES_MAX = 256 << 20
const REFUSAL_BYTES_MAX = 64 << 10
const CLOSE_MS = 1_000

/** Close codes after which another attempt ends the same. */
const FATAL_CLOSES: { readonly [code: number]: string } = {
  1003: 'the server refuses binary messages',
  1007: 'the server could not read a message',
  4400: 'the server refuses the messages of this consumer',
  4401: 'the token is no longer valid',
  4409: 'a newer consumer has the same name',
}
/** Codes of `rejected` after which another attempt may succeed. */
const TEMPORARY = new Set(['not_owner', 'service_unavailable'])

/** @param url base address of the queue */
export function openConnection(
  endpoint: Endpoint,
  url: string,
  subscription: Subscription,
  events: ConnectionEvents,
): ConsumerConnection {
  const socket = new WebSocket(addressOf(url, subscription), {
    ...(url.startsWith('https:') ? endpoint.tls : {}),
    headers: authorization(endpoint),
    perMessageDeflate: false,
    handshakeTimeout: subscription.connectMs,
    maxPayload: MESSAGE_BYTES_MAX,
  })
  const now = () => systemWorld.clock.monotonicMs()
  let isOver = false
  /** What is known before the socket closes. */
  let known: ConnectionEnd | undefined
  let stopClosing: (() => void) | undefined
  const connection: ConsumerConnection = {
    url,
    isReady: false,
    isDraining: false,
    readyAt: 0,
    receivedAt: now(),
    send: (message) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
    },
    close: () => {
      socket.close(1000)
      stopClosing ??= systemWorld.after(CLOSE_MS, () => socket.terminate())
    },
  }
  let stopWatch = systemWorld.after(subscription.connectMs, watch)

  function watch(): void {
    const limitMs = connection.isReady ? subscription.silenceMs : subscription.connectMs
    const silentMs = now() - connection.receivedAt
    if (silentMs < limitMs) {
      stopWatch = systemWorld.after(Math.max(1, limitMs - silentMs), watch)
      return
    }
    known = temporary('connection_lost', `nothing was received for ${limitMs} ms`)
    socket.terminate()
  }

  function end(how: ConnectionEnd): void {
    if (isOver) return
    isOver = true
    stopWatch()
    stopClosing?.()
    events.ended(how, connection)
  }

  socket.on('message', (data: Buffer, isBinary: boolean) => {
    connection.receivedAt = now()
    const message = isBinary ? undefined : messageOf(data.toString('utf8'))
    if (isOver || message === undefined) return
    if (message.action === 'rejected') known = rejection(message.data)
    if (message.action === 'accepted') {
      connection.isReady = true
      connection.readyAt = now()
      stopWatch()
      watch()
    }
    if (message.action === 'drain') connection.isDraining = true
    events.message(message, connection)
  })
  socket.on('ping', () => {
    connection.receivedAt = now()
  })
  socket.on('unexpected-response', (request, response: IncomingMessage) => {
    readRefusal(response, (refusal) => {
      request.destroy()
      end(refusal)
    })
  })
  // The close event follows an error.
  socket.on('error', (error) => {
    known ??= temporary(connection.isReady ? 'connection_lost' : 'connection_failed', error.message)
  })
  socket.on('close', (code: number, reason: Buffer) => end(known ?? closed(code, reason.toString('utf8'))))
  return connection
}

function addressOf(url: string, { topic, name, prefetch }: Subscription): string {
  const query = new URLSearchParams({ topic, consumer: name, prefetch: String(prefetch), confirm: '1' })
  return `${url.replace(/^http/, 'ws')}/ws?${query}`
}

/** Undefined for anything but a message: a later version of the protocol may send more. */
function messageOf(text: string): ServerMessage | undefined {
  const fields = fieldsOf(jsonOf(text))
  const { action, jobId, seqId } = fields
  const isMessage = typeof action === 'string' && typeof jobId === 'string' && typeof seqId === 'number'
  return isMessage ? (fields as ServerMessage) : undefined
}

/** The fields of what may be an object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // A proxy responds with its own text; the caller looks at the status.
    return undefined
  }
}

function rejection(data: unknown): ConnectionEnd {
  const { error, code, owner } = fieldsOf(data)
  const name = typeof code === 'string' ? code : 'rejected'
  return { code: name, message: String(error ?? name), isFatal: !TEMPORARY.has(name), owner, retryAfterMs: undefined }
}

function closed(code: number, reason: string): ConnectionEnd {
  const fatal = FATAL_CLOSES[code]
  const message = `${fatal ?? 'the server closed the connection'} (${code}${reason === '' ? '' : ` ${reason}`})`
  return { code: `closed_${code}`, message, isFatal: fatal !== undefined, owner: undefined, retryAfterMs: undefined }
}

function temporary(code: string, message: string): ConnectionEnd {
  return { code, message, isFatal: false, owner: undefined, retryAfterMs: undefined }
}

/** The upgrade was refused with an HTTP response. */
function readRefusal(response: IncomingMessage, done: (end: ConnectionEnd) => void): void {
  let text = ''
  const finish = () => done(refusal(response, text))
  response.setEncoding('utf8')
  response.on('data', (piece: string) => {
    text += piece
    if (text.length > REFUSAL_BYTES_MAX) response.destroy()
  })
  response.on('close', finish)
}

/** Statuses that a request with the same token and parameters always gets. */
const FATAL_STATUSES = new Set([400, 401, 403])

function refusal({ statusCode = 0, headers }: IncomingMessage, text: string): ConnectionEnd {
  const body = fieldsOf(jsonOf(text))
  const seconds = Number(headers['retry-after'])
  const waitMs = body['retryAfterMs'] ?? (seconds > 0 ? seconds * 1000 : undefined)
  return {
    code: typeof body['error'] === 'string' ? body['error'] : `http_${statusCode}`,
    message: typeof body['message'] === 'string' ? body['message'] : `the server responds with status ${statusCode}`,
    isFatal: FATAL_STATUSES.has(statusCode),
    owner: body['owner'],
    retryAfterMs: typeof waitMs === 'number' ? waitMs : undefined,
  }
}
