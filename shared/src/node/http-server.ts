/**
 * What the HTTP listeners of nodes and fabric have in common: limits, TLS, start and shutdown, refusals, bodies. Routes
 * and access rules are those of each program.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { TlsOptions } from 'node:tls'
import { assert } from '../assert.ts'
import { errorRow, VacancyError } from '../errors.ts'
import { followConnections } from './connections.ts'
import { DESCRIPTORS_KEPT } from './descriptors.ts'
import { http, https } from './http-modules.ts'
import { secureContextOf, type TlsMaterial } from './tls.ts'

/** Limits of every listener; each program adds those of its requests. */
export const LISTENER_LIMITS = {
  /** Of the address, and of the names and values of headers. */
  headerBytesMax: 16 * 1024,
  /** What is read of a head beyond that, so that its refusal can say what is too long. */
  headBytesRead: 32 * 1024,
  headerTimeoutMs: 10_000,
  /** Maximum duration of a TLS handshake. */
  handshakeTimeoutMs: 10_000,
  idleTimeoutMs: 75_000,
  /** Interval at which Node checks connections against the time limits. */
  checkEveryMs: 1_000,
  /** Of the rest of a request that was answered before its end: bytes and time in which it is read and dropped. */
  droppedBytesMax: 4 * 1024 * 1024,
  droppedMs: 10_000,
} as const

export type HttpServerOptions = {
  /** Undefined for plain HTTP. */
  readonly tls: TlsMaterial | undefined
  /** Value of the header `Server`. */
  readonly serverName: string
  readonly host: string
  readonly port: number
  readonly connectionsMax: number
  /** Until a whole request has arrived. */
  readonly requestTimeoutMs: number
}

export type HttpServer = {
  /** The port, once it is open; rejects with VacancyError port_taken. */
  readonly listening: Promise<number>
  /** Accepts no more connections, closes the idle ones and waits for the others up to the limit. */
  readonly close: (drainMs: number) => Promise<void>
  /** Uses this certificate for new connections. Throws when it is invalid, and keeps the old one. */
  readonly setTls: (tls: TlsMaterial) => void
}

/** A refused request; may be thrown anywhere below a route. */
export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly status: number
  readonly headers: { readonly [name: string]: string }

  constructor(status: number, text: string, headers: { readonly [name: string]: string } = {}) {
    super(text)
    this.status = status
    this.headers = headers
  }
}

/** The response to any error: errors without a status of their own are internal, and their text stays in the log. */
export function asHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error
  if (error instanceof VacancyError) return new HttpError(errorRow(error.code).http, error.message)
  return new HttpError(500, 'internal error, see the log')
}

export function openHttpServer(
  options: HttpServerOptions,
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): HttpServer {
  const limits = limitsOf(LISTENER_LIMITS.headerTimeoutMs, options.requestTimeoutMs)
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const refused = refusedHeadOf(request)
    if (refused === undefined) handler(request, response)
    else refuseHead(options, refused, request, response)
  }
  const secure = options.tls && https.createServer({ ...limits, ...tlsOptionsOf(options.tls) }, serve)
  const server = secure ?? http.createServer(limits, serve)
  const endConnections = followConnections(server, DESCRIPTORS_KEPT.health)
  server.maxConnections = options.connectionsMax
  server.setTimeout(LISTENER_LIMITS.idleTimeoutMs)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuseUnreadable(options, error, socket))
  return {
    listening: listenAt(server, options.host, options.port),
    close: (drainMs) => close(server, () => endConnections(drainMs)),
    setTls(tls) {
      assert(secure !== undefined, 'a listener without TLS has no certificate to change')
      secure.setSecureContext(secureContextOf(tls))
    },
  }
}

/** Limits as Node's HTTP server takes them. */
export function limitsOf(headersTimeout: number, requestTimeout: number) {
  return {
    maxHeaderSize: LISTENER_LIMITS.headBytesRead,
    headersTimeout,
    requestTimeout,
    keepAliveTimeout: LISTENER_LIMITS.idleTimeoutMs,
    connectionsCheckingInterval: LISTENER_LIMITS.checkEveryMs,
  }
}

/** Options of a TLS listener. With client authorities, a client without a certificate of theirs is refused. */
export function tlsOptionsOf(tls: TlsMaterial): TlsOptions {
  return {
    ...secureContextOf(tls),
    handshakeTimeout: LISTENER_LIMITS.handshakeTimeoutMs,
    requestCert: tls.clientCa !== undefined,
    rejectUnauthorized: tls.clientCa !== undefined,
  }
}

/**
 * @param sharesPort other threads listen on the same port
 * @throws VacancyError port_taken
 */
export function listenAt(server: Server, host: string, port: number, sharesPort = false): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const fail = (cause: NodeJS.ErrnoException) => {
    reject(
      new VacancyError('port_taken', { address: `${host}:${port}`, reason: cause.code ?? cause.message }, { cause }),
    )
  }
  server.once('error', fail)
  server.listen({ port, host, reusePort: sharesPort }, () => {
    server.off('error', fail)
    resolve((server.address() as AddressInfo).port)
  })
  return promise
}

async function close(server: Server, endConnections: () => void): Promise<void> {
  if (!server.listening) return
  const closed = Promise.withResolvers<void>()
  server.close(() => closed.resolve())
  endConnections()
  await closed.promise
}

function refuseHead(
  { serverName }: HttpServerOptions,
  refused: RefusedHead,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const [status, message] = REFUSED_HEADS[refused]
  const body = JSON.stringify({ error: message })
  response.sendDate = false
  response.setHeader('Server', serverName)
  response.setHeader('Content-Type', 'application/json')
  response.setHeader('Content-Length', Buffer.byteLength(body))
  // The body of a compressed one is still read.
  if (refused !== 'packed body') response.setHeader('Connection', 'close')
  response.writeHead(status).end(body)
  dropRest(request)
}

function refuseUnreadable({ serverName }: HttpServerOptions, error: NodeJS.ErrnoException, socket: Socket): void {
  // No client is left to read a response, or the previous one was cut off.
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy()
    return
  }
  sendUnreadable(socket, serverName, error, (message) => ({ error: message }))
}

/** The response to a request that Node could not parse: headers too large, too slow, or not HTTP. */
export function sendUnreadable(
  socket: Socket,
  serverName: string,
  error: NodeJS.ErrnoException & { readonly rawPacket?: unknown },
  bodyOf: (message: string) => object,
): void {
  const [status, message] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? REFUSED_HEADS[refusedHeadIn(error)]
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'the request took too long to arrive']
        : [400, 'not a valid HTTP request']
  const body = JSON.stringify(bodyOf(message))
  const head = [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`,
    `Server: ${serverName}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** Why a request is refused by its head alone. */
export type RefusedHead = 'address too long' | 'headers too large' | 'packed body'

/** @param encoding the header `Content-Encoding` */
export function refusedHead(urlBytes: number, headerBytes: number, encoding = ''): RefusedHead | undefined {
  const bytes = urlBytes + headerBytes
  if (bytes >= LISTENER_LIMITS.headerBytesMax) return urlBytes * 2 > bytes ? 'address too long' : 'headers too large'
  return encoding === '' || encoding.toLowerCase() === 'identity' ? undefined : 'packed body'
}

/** The same for a request of Node's HTTP server. */
export function refusedHeadOf({ url = '', rawHeaders, headers }: IncomingMessage): RefusedHead | undefined {
  const headerBytes = rawHeaders.reduce((sum, text) => sum + text.length, 0)
  return refusedHead(url.length, headerBytes, headers['content-encoding'])
}

/** A head beyond what is read: Node shows the part at which it stopped. */
export function refusedHeadIn({ rawPacket }: { readonly rawPacket?: unknown }): RefusedHead {
  const start = Buffer.isBuffer(rawPacket) ? rawPacket.toString('latin1', 0, LISTENER_LIMITS.headerBytesMax) : ''
  return /^[A-Z]+ [^\r\n]+$/.test(start) ? 'address too long' : 'headers too large'
}

/** Statuses and texts of these refusals. */
export const REFUSED_HEADS: { readonly [why in RefusedHead]: readonly [status: number, message: string] } = {
  'address too long': [414, `the address exceeds ${LISTENER_LIMITS.headerBytesMax} bytes`],
  'headers too large': [431, `headers exceed ${LISTENER_LIMITS.headerBytesMax} bytes`],
  'packed body': [415, 'Content-Encoding is not supported: send the body as it is'],
}

/** The path of a request, without its query. */
export function requestPath({ url = '/' }: { readonly url?: string | undefined }): string {
  const question = url.indexOf('?')
  return question < 0 ? url : url.slice(0, question)
}

/**
 * To be called with the response, before it is on its way: then Node would drop the rest of the request without a bound,
 * or never. Reads on when the request has not arrived, so that the client can read the response and send the next one,
 * and disconnects a client that sends too much or takes too long.
 */
export function dropRest(
  request: IncomingMessage,
  { droppedBytesMax, droppedMs }: { readonly droppedBytesMax: number; readonly droppedMs: number } = LISTENER_LIMITS,
): void {
  if (request.complete || request.readableEnded) return
  let bytes = 0
  const timer = setTimeout(() => request.socket.destroy(), droppedMs).unref()
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > droppedBytesMax) request.socket.destroy()
  })
  request.once('close', () => clearTimeout(timer))
  request.once('end', () => clearTimeout(timer))
  request.resume()
}

/** @throws HttpError 413 beyond the limit */
export async function readRequestBody(request: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const tooLarge = () => new HttpError(413, `the body exceeds ${bytesMax} bytes`)
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge()
  const chunks: Buffer[] = []
  let bytes = 0
  // Refusing a body must not close the connection before the refusal is sent; dropRest reads what is left.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length
    if (bytes > bytesMax) throw tooLarge()
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

/** @throws HttpError 400 for anything but JSON in UTF-8 */
export function parseJsonBody(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (cause) {
    // The parser's message quotes the body; the reason is enough.
    throw Object.assign(new HttpError(400, 'the body is not valid JSON'), { cause })
  }
}
