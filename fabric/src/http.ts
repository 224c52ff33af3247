/**
 * The HTTP listener of all services of the fabric: limits, path patterns, bodies, errors. The service provides the
 * routes and the access rules. A route is a row with a function that returns its response.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { assert, errorRow, VacancyError } from '@vacancy/shared'
import { followConnections, type Log, secureContextOf, type TlsMaterial } from '@vacancy/shared/node'

export const HTTP_LIMITS = {
  headerBytesMax: 16 * 1024,
  headerTimeoutMs: 10_000,
  /** Maximum duration of a TLS handshake. */
  handshakeTimeoutMs: 10_000,
  /** Allows a list of 100,000 segments over a slow line. */
  requestTimeoutMs: 60_000,
  idleTimeoutMs: 75_000,
  connectionsMax: 10_000,
  bodyBytesMax: 64 * 1024,
  /** Interval at which Node checks connections against the time limits. */
  checkEveryMs: 1_000,
} as const

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** What a caller may change: everything, or data of one shard or zone. */
export type Caller = { readonly shard?: string; readonly zone?: string }

export type Query = {
  readonly caller: Caller
  /** The parts of the path in braces, decoded. */
  readonly path: { readonly [name: string]: string }
  readonly parameters: URLSearchParams
  readonly headers: IncomingMessage['headers']
  /** The parsed body; `{}` without one. */
  readonly body: unknown
  /** Aborted when the caller has disconnected and no response is needed. */
  readonly gone: AbortSignal
}

export type Answer = {
  readonly status: number
  readonly headers?: { readonly [name: string]: string }
  readonly body: string
}

export type Route = {
  readonly method: Method
  /** A placeholder in braces matches one path segment: `/shards/{shard}/nodes`. */
  readonly path: string
  readonly bodyBytesMax?: number
  /** Authenticates and authorizes the caller; throws an HttpError. Called before the body is read. */
  readonly admit: (request: IncomingMessage) => Caller
  readonly answer: (query: Query) => Answer | Promise<Answer>
}

export type ListenerOptions = {
  readonly routes: readonly Route[]
  /** Undefined for plain HTTP. */
  readonly tls: TlsMaterial | undefined
  /** Value of the header `Server`. */
  readonly serverName: string
  readonly log: Log
  readonly host: string
  readonly port: number
  /** Called after each response: `endpoint` is the pattern of the path, '' for an unknown path. */
  readonly onAnswer?: (endpoint: string, status: number, seconds: number) => void
}

export type Listener = {
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

export function json(status: number, value: unknown, headers: Answer['headers'] = {}): Answer {
  return jsonText(status, JSON.stringify(value), headers)
}

/** Serialized JSON. */
export function jsonText(status: number, body: string, headers: Answer['headers'] = {}): Answer {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body }
}

export function text(status: number, body: string, headers: Answer['headers'] = {}): Answer {
  return { status, headers: { 'Content-Type': 'text/plain; charset=utf-8', ...headers }, body }
}

/** 200 with no body at all. */
export function empty(headers: Answer['headers'] = {}): Answer {
  return { status: 200, headers, body: '' }
}

type Found = { readonly route: Route; readonly path: Query['path'] }
type Table = readonly { readonly route: Route; readonly pieces: readonly string[] }[]

export function createListener(options: ListenerOptions): Listener {
  const table = options.routes.map((route) => ({ route, pieces: route.path.split('/').slice(1) }))
  const handler = (request: IncomingMessage, response: ServerResponse) => {
    void serve(options, table, request, response)
  }
  const limits = {
    maxHeaderSize: HTTP_LIMITS.headerBytesMax,
    headersTimeout: HTTP_LIMITS.headerTimeoutMs,
    requestTimeout: HTTP_LIMITS.requestTimeoutMs,
    keepAliveTimeout: HTTP_LIMITS.idleTimeoutMs,
    connectionsCheckingInterval: HTTP_LIMITS.checkEveryMs,
  }
  const secure = options.tls && createTlsServer({ ...limits, ...tlsOptions(options.tls) }, handler)
  const server = secure ?? createServer(limits, handler)
  const endConnections = followConnections(server)
  server.maxConnections = HTTP_LIMITS.connectionsMax
  server.setTimeout(HTTP_LIMITS.idleTimeoutMs)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuseUnreadable(options, error, socket))
  return {
    listening: listen(server, options.host, options.port),
    close: (drainMs) => close(server, () => endConnections(drainMs)),
    setTls(tls) {
      assert(secure !== undefined, 'a listener without TLS has no certificate to change')
      secure.setSecureContext(secureContextOf(tls))
    },
  }
}

function tlsOptions(tls: TlsMaterial) {
  // With client authorities, a client without a certificate is refused.
  return {
    ...secureContextOf(tls),
    handshakeTimeout: HTTP_LIMITS.handshakeTimeoutMs,
    requestCert: tls.clientCa !== undefined,
    rejectUnauthorized: tls.clientCa !== undefined,
  }
}

function listen(server: Server, host: string, port: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const fail = (cause: NodeJS.ErrnoException) => {
    reject(
      new VacancyError('port_taken', { address: `${host}:${port}`, reason: cause.code ?? cause.message }, { cause }),
    )
  }
  server.once('error', fail)
  server.listen(port, host, () => {
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

/** Requests that Node could not parse: headers too large, too slow, or not HTTP. */
function refuseUnreadable({ serverName }: ListenerOptions, error: NodeJS.ErrnoException, socket: Socket): void {
  // No client is left to read a response, or the previous one was cut off.
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy()
    return
  }
  const [status, message] = UNREADABLE[error.code ?? ''] ?? [400, 'not a valid HTTP request']
  const body = JSON.stringify({ error: message })
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Server: ${serverName}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const UNREADABLE: { readonly [code: string]: readonly [number, string] } = {
  HPE_HEADER_OVERFLOW: [431, `headers exceed ${HTTP_LIMITS.headerBytesMax} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request took too long to arrive'],
}

/** The entry point: every error below ends here, as a response. */
async function serve(
  options: ListenerOptions,
  table: Table,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const startMs = performance.now()
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  response.setHeader('Server', options.serverName)
  response.setHeader('Cache-Control', 'no-store')
  let endpoint = ''
  let answer: Answer
  try {
    const found = find(table, request)
    endpoint = found.route.path
    const caller = found.route.admit(request)
    const takesBody = found.route.method === 'POST' || found.route.method === 'PUT'
    const body = takesBody ? await readBody(request, found.route.bodyBytesMax ?? HTTP_LIMITS.bodyBytesMax) : {}
    const parameters = new URLSearchParams((request.url ?? '').slice(pathOf(request).length + 1))
    const query = { caller, path: found.path, parameters, headers: request.headers, body, gone: gone.signal }
    answer = await found.route.answer(query)
  } catch (error) {
    // The caller disconnected during its request, so the response is not read.
    if (response.destroyed) return
    const refused = asHttpError(error)
    if (refused.status === 500) options.log.error({ err: error, path: pathOf(request) }, 'an HTTP request failed')
    answer = json(refused.status, { error: refused.message }, refused.headers)
  }
  options.onAnswer?.(endpoint, answer.status, (performance.now() - startMs) / 1000)
  send(request, response, answer)
}

function asHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error
  if (error instanceof VacancyError) return new HttpError(errorRow(error.code).http, error.message)
  return new HttpError(500, 'internal error, see the log')
}

function send(request: IncomingMessage, response: ServerResponse, { status, headers, body }: Answer): void {
  if (response.destroyed) return
  for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value)
  // An unread body would be parsed as the next request.
  if (!request.complete) response.setHeader('Connection', 'close')
  if (status !== 304) response.setHeader('Content-Length', Buffer.byteLength(body))
  response.writeHead(status)
  response.end(status === 304 || request.method === 'HEAD' ? undefined : body)
}

function pathOf(request: IncomingMessage): string {
  const url = request.url ?? '/'
  const question = url.indexOf('?')
  return question < 0 ? url : url.slice(0, question)
}

/** @throws HttpError 404 or 405 */
function find(table: Table, request: IncomingMessage): Found {
  const pieces = pathOf(request).split('/').slice(1)
  const here = table.flatMap(({ route, pieces: pattern }) => {
    const path = match(pattern, pieces)
    return path ? [{ route, path }] : []
  })
  if (here.length === 0) throw new HttpError(404, 'not found')
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const found = here.find(({ route }) => route.method === method)
  if (found) return found
  const allowed = here.map(({ route }) => (route.method === 'GET' ? 'GET, HEAD' : route.method))
  throw new HttpError(405, 'method not allowed', { Allow: allowed.join(', ') })
}

function match(pattern: readonly string[], pieces: readonly string[]): Query['path'] | undefined {
  if (pattern.length !== pieces.length) return undefined
  const path: { [name: string]: string } = {}
  for (const [i, piece] of pieces.entries()) {
    const expected = pattern[i] as string
    if (expected.startsWith('{')) path[expected.slice(1, -1)] = decode(piece)
    else if (expected !== piece) return undefined
  }
  return path
}

function decode(piece: string): string {
  try {
    return decodeURIComponent(piece)
  } catch {
    // No resource has a name that is not text. The caller gets the reason.
    throw new HttpError(400, 'the path is not percent-encoded UTF-8')
  }
}

/** @throws HttpError 400 for invalid JSON, 413 beyond the limit */
async function readBody(request: IncomingMessage, bytesMax: number): Promise<unknown> {
  const tooLarge = () => new HttpError(413, `the body exceeds ${bytesMax} bytes`)
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge()
  const chunks: Buffer[] = []
  let bytes = 0
  // Refusing a body must not close the connection before the refusal is sent.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length
    if (bytes > bytesMax) throw tooLarge()
    chunks.push(chunk as Buffer)
  }
  if (bytes === 0) return {}
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)))
  } catch (cause) {
    // The parser's message quotes the body; the reason is enough.
    throw Object.assign(new HttpError(400, 'the body is not valid JSON'), { cause })
  }
}
