/**
 * The HTTP side of the proxy: HTTP/1.1 and HTTP/2 with prior knowledge on one plain port, distinguished by the
 * first bytes; both over TLS, distinguished by ALPN (docs/proxy.md#http). It bounds what a client can make this process keep,
 * and turns either protocol into exchanges: a request with its body, and one response.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import {
  constants,
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { lacksDescriptors } from '@vacancy/shared/descriptors'
import {
  dropRest,
  http,
  https,
  LISTENER_LIMITS,
  limitsOf,
  listenAt,
  REFUSED_HEADS,
  refusedHead,
  refusedHeadOf,
  requestPath,
  secureContextOf,
  sendUnreadable,
  type TlsMaterial,
  tlsOptionsOf,
} from '@vacancy/shared/node'
import { API_LIMITS, type Body, type Connection, type Exchange, type Proto } from './exchange.ts'
import { servePlain } from './http1.ts'

export type ListenerSettings = {
  readonly host: string
  /** Undefined: this listener is off. */
  readonly httpPort: number | undefined
  readonly https: { readonly port: number; readonly tls: TlsMaterial } | undefined
  readonly connectionsMax: number
  /** Other threads listen on the same ports. */
  readonly sharesPorts: boolean
  readonly serverName: string
  /** From the first byte of a request to the last of its body. */
  readonly requestMs: number
}

export type Listener = {
  readonly httpPort: number | undefined
  readonly httpsPort: number | undefined
  readonly setTls: (tls: TlsMaterial) => void
  readonly counts: ListenerCounts
  /** Accepts no more connections; resolves when the requests in flight are answered, after `drainMs` at the latest. */
  readonly close: (drainMs: number) => Promise<void>
}

type ListenerCounts = {
  readonly connections: Record<Proto, number>
  readonly inFlight: Record<Proto, number>
  refused: number
  /** Requests that HTTP itself refused: headers too large, too slow, or not HTTP. */
  unreadable: number
}

type State = {
  readonly settings: ListenerSettings
  readonly handle: (exchange: Exchange) => void
  readonly connections: Map<Socket, Connection>
  /** Accepted, and not known yet to speak either protocol: by the address of the client, since TLS wraps the socket. */
  readonly starting: Map<string, Socket>
  readonly counts: ListenerCounts
  readonly http2: Http2Server
  readonly sessions: WeakMap<ServerHttp2Session, Connection>
  /** The connection whose session is being created. */
  beginning: Connection | undefined
  /** All TCP connections, those in their TLS handshake included. */
  open: number
  bodyBytes: number
  isClosing: boolean
}

/** @throws VacancyError port_taken */
export async function openListener(
  settings: ListenerSettings,
  handle: (exchange: Exchange) => void,
): Promise<Listener> {
  const state: State = {
    settings,
    handle,
    connections: new Map(),
    starting: new Map(),
    counts: { connections: { http1: 0, http2: 0 }, inFlight: { http1: 0, http2: 0 }, refused: 0, unreadable: 0 },
    http2: createHttp2Server({
      settings: {
        maxConcurrentStreams: API_LIMITS.requestsPerConnection,
        maxHeaderListSize: LISTENER_LIMITS.headBytesRead,
        enablePush: false,
      },
      maxHeaderListPairs: API_LIMITS.headersMax,
      maxSessionMemory: API_LIMITS.sessionMegabytes,
    }),
    sessions: new WeakMap(),
    beginning: undefined,
    open: 0,
    bodyBytes: 0,
    isClosing: false,
  }
  state.http2.on('session', (session) => openSession(state, session))
  state.http2.on('stream', (stream, headers) => onStream(state, stream as ServerHttp2Stream, headers))
  const plain = settings.httpPort === undefined ? undefined : plainServer(state)
  const secure = settings.https === undefined ? undefined : secureServer(state, settings.https.tls)
  try {
    return {
      httpPort: plain && (await listenAt(plain, settings.host, settings.httpPort as number, settings.sharesPorts)),
      httpsPort:
        secure && (await listenAt(secure, settings.host, settings.https?.port as number, settings.sharesPorts)),
      setTls: (tls) => secure?.setSecureContext(secureContextOf(tls)),
      counts: state.counts,
      close: (drainMs) => close(state, [plain, secure], drainMs),
    }
  } catch (error) {
    plain?.close()
    secure?.close()
    throw error
  }
}

function plainServer(state: State): Server {
  const server = http.createServer(limitsOf(state.settings.requestMs, state.settings.requestMs))
  prepare(state, server)
  const serveHttp1 = takeListener(server, 'connection')
  server.on('connection', (socket: Socket) => {
    if (admit(state, socket)) detect(state, socket, serveHttp1)
  })
  return server
}

function secureServer(state: State, tls: TlsMaterial) {
  const server = https.createServer({
    ...limitsOf(state.settings.requestMs, state.settings.requestMs),
    ...tlsOptionsOf(tls),
    ALPNProtocols: ['h2', 'http/1.1'],
  })
  prepare(state, server)
  const serveHttp1 = takeListener(server, 'secureConnection')
  server.prependListener('connection', (socket: Socket) => admit(state, socket))
  server.on('secureConnection', (socket) => {
    if (socket.alpnProtocol === 'h2') begin(state, socket, 'http2', (connection) => startHttp2(state, connection))
    else begin(state, socket, 'http1', (connection) => startHttp1(state, connection, undefined, serveHttp1))
  })
  // Node reports a failed or timed-out handshake, but leaves the socket open.
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  return server
}

type ServeHttp1 = (socket: Socket) => void

/** Node's own handler of a connection, which then runs only for those that speak HTTP/1. */
function takeListener(server: Server, event: 'connection' | 'secureConnection'): ServeHttp1 {
  const own = server.listeners(event)
  server.removeAllListeners(event)
  return (socket) => {
    for (const each of own) each.call(server, socket)
  }
}

function prepare(state: State, server: Server): void {
  server.maxHeadersCount = API_LIMITS.headersMax
  server.setTimeout(LISTENER_LIMITS.idleTimeoutMs)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuseUnreadable(state, error, socket))
  server.on('request', (request, response) => onRequest(state, request, response))
  server.on('checkContinue', (request, response) => {
    // A body that is refused anyway need not be sent.
    if (Number(request.headers['content-length'] ?? 0) <= API_LIMITS.bodyBytesMax) response.writeContinue()
    onRequest(state, request, response)
  })
}

/** Counts a TCP connection. @returns false for one too many, which is closed without a byte */
function admit(state: State, socket: Socket): boolean {
  if (state.open >= state.settings.connectionsMax || state.isClosing || lacksDescriptors(socket)) {
    state.counts.refused++
    socket.destroy()
    return false
  }
  state.open++
  const key = peerOf(socket)
  state.starting.set(key, socket)
  socket.once('close', () => {
    state.open--
    if (state.starting.get(key) === socket) state.starting.delete(key)
  })
  socket.setNoDelay(true)
  return true
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

const PREFACE = Buffer.from('PRI * HTTP/2.0')
/** No method of HTTP/1 begins so (RFC 9113 §3.4). */
const TELLING_BYTES = 3

/** Waits for the first bytes of a plain connection and gives them back to the protocol that they belong to. */
function detect(state: State, socket: Socket, serveHttp1: ServeHttp1): void {
  const timer = setTimeout(() => socket.destroy(), state.settings.requestMs)
  let first: Buffer = Buffer.alloc(0)
  const onData = (chunk: Buffer): void => {
    first = Buffer.concat([first, chunk])
    const isPreface = first
      .subarray(0, TELLING_BYTES)
      .equals(PREFACE.subarray(0, Math.min(first.length, TELLING_BYTES)))
    if (isPreface && first.length < TELLING_BYTES) return
    clearTimeout(timer)
    socket.off('data', onData)
    socket.off('error', onError)
    if (!isPreface)
      return begin(state, socket, 'http1', (connection) => startHttp1(state, connection, first, serveHttp1))
    socket.pause()
    // A session takes the bytes that were given back itself; flowing, they would pass it by.
    socket.unshift(first)
    begin(state, socket, 'http2', (connection) => startHttp2(state, connection))
  }
  // Its `close` follows.
  const onError = (): void => {}
  socket.on('data', onData)
  socket.on('error', onError)
  socket.once('close', () => clearTimeout(timer))
}

function begin(state: State, socket: Socket, proto: Proto, start: (connection: Connection) => void): void {
  const { connections, counts } = state
  state.starting.delete(peerOf(socket))
  if (state.isClosing) {
    socket.destroy()
    return
  }
  const remote = socket.remoteAddress ?? ''
  const connection: Connection = { socket, remote, proto, session: undefined, inFlight: 0, onEnd: undefined }
  connections.set(socket, connection)
  counts.connections[proto]++
  socket.once('close', () => {
    connections.delete(socket)
    counts.connections[proto]--
    connection.onEnd?.()
  })
  start(connection)
}

/** @param first bytes that were read */
function startHttp1(state: State, connection: Connection, first: Buffer | undefined, serveHttp1: ServeHttp1): void {
  const { socket } = connection
  servePlain(connection, first, state.settings.requestMs, {
    isClosing: () => state.isClosing,
    count: (change) => countRequest(state, connection, 'http1', change),
    handle: state.handle,
    handOver: (bytes) => {
      socket.pause()
      socket.unshift(bytes)
      serveHttp1(socket)
      socket.resume()
    },
  })
}

function startHttp2(state: State, connection: Connection): void {
  const { socket } = connection
  // HTTP/1 lets a client close its half of the connection and still answers; a session has no use for that.
  socket.once('end', () => socket.destroy())
  state.beginning = connection
  state.http2.emit('connection', socket)
  state.beginning = undefined
}

function countRequest({ counts }: State, connection: Connection, proto: Proto, change: 1 | -1): void {
  connection.inFlight += change
  counts.inFlight[proto] += change
}

/** Requests that Node could not parse: headers too large, too slow, or not HTTP. */
function refuseUnreadable(state: State, error: NodeJS.ErrnoException, socket: Socket): void {
  // No client is left to read a response, or it is in the middle of another one.
  const inFlight = state.connections.get(socket)?.inFlight ?? 0
  if (error.code === 'ECONNRESET' || !socket.writable || (inFlight > 0 && error.code !== 'ERR_HTTP_REQUEST_TIMEOUT')) {
    socket.destroy()
    return
  }
  state.counts.unreadable++
  sendUnreadable(socket, state.settings.serverName, error, (message) => ({ status: 'error', message }))
}

// Bodies, of either protocol.

type BodySource = {
  on(event: 'data', listener: (chunk: Buffer) => void): unknown
  on(event: 'end' | 'close', listener: () => void): unknown
}

/** Collects a body within its limits. Bytes beyond them are dropped: the caller ends the connection. */
function collect(state: State, source: BodySource, declaredBytes: number, done: (body: Body) => void): void {
  const chunks: Buffer[] = []
  let bytes = 0
  let isOver = false
  const finish = (body: Body): void => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    state.bodyBytes -= bytes
    done(body)
  }
  const timer = setTimeout(() => finish('slow'), state.settings.requestMs)
  source.on('data', (chunk) => {
    if (isOver) return
    if (bytes + chunk.length > API_LIMITS.bodyBytesMax) return finish('too_large')
    bytes += chunk.length
    state.bodyBytes += chunk.length
    chunks.push(chunk)
    if (state.bodyBytes > API_LIMITS.bodiesBytesMax) finish('busy')
  })
  source.on('end', () => finish(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, bytes)))
  source.on('close', () => finish('gone'))
  if (declaredBytes > API_LIMITS.bodyBytesMax) finish('too_large')
}

// HTTP/1.1

function onRequest(state: State, request: IncomingMessage, response: ServerResponse): void {
  const connection = state.connections.get(request.socket)
  if (!connection) {
    request.socket.destroy()
    return
  }
  countRequest(state, connection, 'http1', 1)
  response.once('close', () => {
    countRequest(state, connection, 'http1', -1)
    if (state.isClosing && connection.inFlight === 0) connection.socket.destroySoon()
  })
  request.on('error', () => {})
  response.on('error', () => {})
  state.handle({
    connection,
    proto: 'http1',
    method: request.method ?? '',
    path: requestPath(request),
    query: (request.url ?? '').slice(requestPath(request).length + 1),
    refused: refusedHeadOf(request),
    header: (name) => {
      const value = request.headers[name]
      return Array.isArray(value) ? value[0] : value
    },
    readBody: (done) => collect(state, request, Number(request.headers['content-length'] ?? 0), done),
    respond: ({ status, head, id, body }) => {
      if (response.destroyed || response.writableEnded) return false
      const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
      for (const [name, value] of head.fields) response.setHeader(name, value)
      response.setHeader('X-Request-Id', id)
      if (status !== 204) response.setHeader('Content-Length', length)
      if (state.isClosing || endsConnection(status)) response.setHeader('Connection', 'close')
      response.writeHead(status)
      response.end(request.method === 'HEAD' || status === 204 ? undefined : ownCopy(body))
      dropRest(request)
      return false
    },
  })
}

/** A client that sends such heads is not worth a connection. */
function endsConnection(status: number): boolean {
  return status === 414 || status === 431
}

/** A stream may send its bytes later. */
function ownCopy(body: Buffer | string): Buffer | string {
  return typeof body === 'string' ? body : Buffer.from(body)
}

// HTTP/2

/** Called while the connection begins: a session shows a stand-in for its socket, which names no connection. */
function openSession(state: State, session: ServerHttp2Session): void {
  const connection = state.beginning
  if (!connection) return session.destroy()
  connection.session = session
  state.sessions.set(session, connection)
  // A session that neither reads nor writes, whatever is in flight.
  session.setTimeout(LISTENER_LIMITS.idleTimeoutMs, () => session.destroy())
  session.on('error', () => session.destroy())
}

function onStream(state: State, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  stream.on('error', () => {})
  const { session } = stream
  const connection = session && state.sessions.get(session as ServerHttp2Session)
  if (!connection) return stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  countRequest(state, connection, 'http2', 1)
  stream.once('close', () => countRequest(state, connection, 'http2', -1))
  const method = headers[':method'] ?? ''
  const url = headers[':path'] ?? ''
  const refused = refusedHead(url.length, headerBytes(headers) - url.length, headers['content-encoding'])
  if (refused === 'headers too large') return refuseHeaders(state, stream)
  state.handle({
    connection,
    proto: 'http2',
    method,
    path: requestPath({ url }),
    query: url.slice(requestPath({ url }).length + 1),
    refused,
    header: (name) => {
      const value = headers[name]
      return Array.isArray(value) ? value[0] : value
    },
    readBody: (done) => collect(state, stream, Number(headers['content-length'] ?? 0), done),
    respond: ({ status, head, id, body }) => {
      if (stream.destroyed || stream.closed || stream.headersSent) return false
      const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
      const isEmpty = method === 'HEAD' || status === 204
      const fields: Record<string, string | number> = { ':status': status, 'x-request-id': id }
      for (const [name, value] of head.fields) fields[name.toLowerCase()] = value
      if (status !== 204) fields['content-length'] = length
      stream.respond(fields, { endStream: isEmpty })
      if (!isEmpty) stream.end(ownCopy(body))
      // The rest of an unread body is not wanted; the response is complete (RFC 9113 §8.1).
      if (!stream.readableEnded) {
        stream.resume()
        stream.once('finish', () => {
          if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR)
        })
      }
      return false
    },
  })
}

/** The size of a list of headers (RFC 9113 §6.5.2); Node refuses what is beyond the announced one without a response. */
function headerBytes(headers: IncomingHttpHeaders): number {
  let bytes = 0
  for (const name in headers) bytes += name.length + String(headers[name]).length + HEADER_OVERHEAD_BYTES
  return bytes
}

const HEADER_OVERHEAD_BYTES = 32

function refuseHeaders(state: State, stream: ServerHttp2Stream): void {
  state.counts.unreadable++
  stream.respond({ ':status': 431, 'content-type': 'application/json', server: state.settings.serverName })
  stream.end(JSON.stringify({ status: 'error', message: REFUSED_HEADS['headers too large'][1] }))
  stream.resume()
}

// Start and end.

async function close(state: State, servers: readonly (Server | undefined)[], drainMs: number): Promise<void> {
  state.isClosing = true
  const closed = servers.map(
    (server) =>
      new Promise<void>((resolve) => {
        if (server?.listening) server.close(() => resolve())
        else resolve()
      }),
  )
  for (const socket of state.starting.values()) socket.destroy()
  for (const { socket, session, inFlight } of state.connections.values()) {
    // A session ends after its streams, and its client gets GOAWAY.
    if (session) session.close()
    else if (inFlight === 0) socket.destroy()
  }
  const timer = setTimeout(() => {
    for (const { socket } of state.connections.values()) socket.destroy()
  }, drainMs)
  await Promise.all(closed)
  clearTimeout(timer)
}
