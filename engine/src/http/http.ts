/**
 * The listener of api_port: limits, tokens, roles, errors (docs/design/http.md#access,
 * docs/design/http.md#http-limits). The paths are in node.ts. A route is a row with a handler that returns its
 * response.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, isIP, type Socket } from 'node:net'
import { assert, type Clock, errorRow, VacancyError } from '@vacancy/shared'
import { NODE_HTTP_LIMITS, type NodeAccess } from '@vacancy/shared/contract'
import {
  bearerToken,
  checkToken,
  createFailureLimiter,
  type FailureLimiter,
  followConnections,
  type Log,
  type Role,
  roleMay,
  secureContextOf,
  type TlsMaterial,
  type TokenHash,
} from '@vacancy/shared/node'

export const HTTP_LIMITS = {
  headerBytesMax: 16 * 1024,
  headerTimeoutMs: 10_000,
  /** Longest duration of a TLS handshake. */
  handshakeTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  idleTimeoutMs: 75_000,
  connectionsMax: 1_024,
  bodyBytesMax: NODE_HTTP_LIMITS.bodyBytesMax,
  /** Responses still running this long after close() are cut off. */
  closeMs: 2_000,
  /** How often Node looks for connections past a time limit. */
  checkEveryMs: 1_000,
} as const

export type Query = {
  readonly path: string
  /** The part of the path that matched `*`, undecoded. */
  readonly rest: string
  readonly parameters: URLSearchParams
  /** Empty for routes whose body is a list. */
  readonly body: JsonObject
  readonly list: readonly unknown[]
}
export type JsonObject = { readonly [name: string]: unknown }

export type Answer = {
  readonly status: number
  readonly type: string
  readonly body: string | Uint8Array
  /** Runs once the response has been sent. */
  readonly after?: () => void
}

export type Route = {
  readonly method: 'GET' | 'POST'
  /** The whole path, or one that ends in `/*` and matches everything below. */
  readonly path: string
  readonly access: NodeAccess
  /** Required form of the body; `anything` is not checked. */
  readonly takes: 'object' | 'list' | 'anything'
  readonly answer: (query: Query) => Answer | Promise<Answer>
}

export type Rules = {
  /** Undefined without an auth file. */
  readonly tokens: readonly TokenHash[] | undefined
  /** GETs need no token although there is an auth file, except those for admins. */
  readonly publicRead: boolean
  /** Without an auth file: whether admin paths are closed. */
  readonly adminClosed: boolean
}

export type ListenerOptions = {
  readonly routes: readonly Route[]
  readonly rules: () => Rules
  /** Undefined for plain HTTP. */
  readonly tls: TlsMaterial | undefined
  /** Value of the header `Server`. */
  readonly serverName: string
  readonly clock: Clock
  readonly log: Log
  readonly host: string
  readonly port: number
}

export type Listener = {
  /** The port once it is open; rejects with VacancyError port_taken. */
  readonly listening: Promise<number>
  /** Accepts no more connections, ends the idle ones and waits for the others, `closeMs` at most. */
  readonly close: () => Promise<void>
  /** Uses this certificate for new connections. Throws when it is unusable, and the old one stays in force. */
  readonly setTls: (tls: TlsMaterial) => void
}

/** A refused request: thrown anywhere below a route. */
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

export function json(status: number, value: unknown, after?: () => void): Answer {
  return { status, type: 'application/json', body: JSON.stringify(value), ...(after && { after }) }
}

export function text(status: number, body: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body }
}

/** Whether a listening address is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  const kind = isIP(host)
  if (kind === 4) return host.startsWith('127.')
  if (kind === 6) return host === '::1' || host.toLowerCase().startsWith('::ffff:127.')
  return host.toLowerCase() === 'localhost'
}

export function createListener(options: ListenerOptions): Listener {
  const failures = createFailureLimiter(options.clock)
  const handler = (request: IncomingMessage, response: ServerResponse) => {
    void serve(options, failures, request, response)
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
    close: () => close(server, endConnections),
    setTls(tls) {
      assert(secure !== undefined, 'only a listener with TLS has a certificate')
      secure.setSecureContext(secureContextOf(tls))
    },
  }
}

function tlsOptions(tls: TlsMaterial) {
  // With authorities for clients, a client without a certificate is refused.
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

async function close(server: Server, endConnections: (drainMs: number) => void): Promise<void> {
  if (!server.listening) return
  const closed = Promise.withResolvers<void>()
  server.close(() => closed.resolve())
  endConnections(HTTP_LIMITS.closeMs)
  await closed.promise
}

/** Replies to input that Node could not parse as a request: headers too large, too slow, or not HTTP. */
function refuseUnreadable({ serverName }: ListenerOptions, error: NodeJS.ErrnoException, socket: Socket): void {
  // The caller is gone, or the previous response was cut.
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

/** Handles a request. Every error below becomes a response here. */
async function serve(
  options: ListenerOptions,
  failures: FailureLimiter,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  response.setHeader('Server', options.serverName)
  response.setHeader('Cache-Control', 'no-store')
  try {
    const answer = await route(options, failures, request)
    send(request, response, answer)
  } catch (error) {
    // The caller disconnected during its request, so it gets no response.
    if (response.destroyed) return
    const refused = asHttpError(error)
    if (refused.status === 500) options.log.error({ err: error, path: pathOf(request) }, 'an HTTP request failed')
    for (const [name, value] of Object.entries(refused.headers)) response.setHeader(name, value)
    send(request, response, json(refused.status, { error: refused.message }))
  }
}

function asHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error
  if (error instanceof VacancyError) return new HttpError(errorRow(error.code).http, error.message)
  return new HttpError(500, 'internal error, the log says more')
}

function send(request: IncomingMessage, response: ServerResponse, { status, type, body, after }: Answer): void {
  if (after) response.once('close', after)
  // An unread body would be parsed as the next request.
  if (!request.complete) response.setHeader('Connection', 'close')
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}

function pathOf(request: IncomingMessage): string {
  const url = request.url ?? '/'
  const question = url.indexOf('?')
  return question < 0 ? url : url.slice(0, question)
}

async function route(options: ListenerOptions, failures: FailureLimiter, request: IncomingMessage): Promise<Answer> {
  const path = pathOf(request)
  const here = options.routes.filter((route) => matches(route.path, path))
  if (here.length === 0) throw new HttpError(404, 'not found')
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const found = here.find((route) => route.method === method)
  if (!found) {
    const allowed = here.map((route) => (route.method === 'GET' ? 'GET, HEAD' : route.method))
    throw new HttpError(405, 'method not allowed', { Allow: allowed.join(', ') })
  }
  authorize(options, failures, found.access, request)
  const sent = found.method === 'POST' ? await readBody(request) : ''
  return found.answer({
    path,
    rest: found.path.endsWith('/*') ? path.slice(found.path.length - 1) : '',
    parameters: new URLSearchParams((request.url ?? '').slice(path.length + 1)),
    body: found.takes === 'object' && sent !== '' ? parseObject(sent) : {},
    list: found.takes === 'list' ? parseList(sent) : [],
  })
}

function matches(pattern: string, path: string): boolean {
  return pattern.endsWith('/*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern
}

/** @throws HttpError 401, 403 or 429 (docs/design/http.md#access) */
function authorize(
  { clock, rules }: ListenerOptions,
  failures: FailureLimiter,
  access: NodeAccess,
  request: IncomingMessage,
) {
  if (access === 'open') return
  const { tokens, publicRead, adminClosed } = rules()
  const needed = access === 'adminToken' ? 'admin' : access
  // Without an auth file every token is unknown.
  if (tokens || access === 'adminToken') {
    if (needed !== 'admin' && publicRead) return
    const role = roleOf(tokens ?? [], failures, request, clock.wallMs())
    if (!roleMay(role, needed)) throw new HttpError(403, 'insufficient permissions')
    return
  }
  if (needed !== 'admin') return
  if (adminClosed) throw unauthorized('admin paths need an auth file')
  // Without tokens, any web page in a browser on this machine could post here.
  if (request.headers.origin !== undefined)
    throw new HttpError(403, 'web pages may not call admin paths without a token')
}

function roleOf(tokens: readonly TokenHash[], failures: FailureLimiter, request: IncomingMessage, nowMs: number): Role {
  const address = request.socket.remoteAddress ?? ''
  const { authorization } = request.headers
  const token = authorization === undefined ? undefined : bearerToken(authorization)
  const role = token === undefined ? undefined : checkToken(tokens, token, nowMs)
  // Before the limit: failures of other callers at its address must not block a valid token.
  if (role !== undefined) return role
  const wait = failures.waitSeconds(address)
  if (wait > 0) throw new HttpError(429, 'too many failed tries', { 'Retry-After': String(wait) })
  if (authorization === undefined) throw unauthorized('missing authorization header')
  failures.failed(address)
  throw unauthorized('invalid token')
}

function unauthorized(message: string): HttpError {
  return new HttpError(401, message, { 'WWW-Authenticate': 'Bearer' })
}

/** @throws HttpError 413 beyond the limit */
async function readBody(request: IncomingMessage): Promise<string> {
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > HTTP_LIMITS.bodyBytesMax) throw tooLarge()
  const chunks: Buffer[] = []
  let bytes = 0
  // Refusing a body must not close the connection that carries the refusal.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length
    if (bytes > HTTP_LIMITS.bodyBytesMax) throw tooLarge()
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString()
}

function tooLarge(): HttpError {
  return new HttpError(413, `the body exceeds ${HTTP_LIMITS.bodyBytesMax} bytes`)
}

/** @throws HttpError 400 */
function parseObject(source: string): JsonObject {
  const value = parseJson(source)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new HttpError(400, 'the body must be a JSON object')
  }
  return value as JsonObject
}

/** @throws HttpError 400 */
function parseList(source: string): readonly unknown[] {
  const value = source === '' ? undefined : parseJson(source)
  if (!Array.isArray(value)) throw new HttpError(400, 'the body must be a JSON array')
  return value
}

function parseJson(source: string): unknown {
  try {
    return JSON.parse(source)
  } catch (cause) {
    // The parser's message quotes the body, so it is not returned.
    throw Object.assign(new HttpError(400, 'the body is not valid JSON'), { cause })
  }
}
