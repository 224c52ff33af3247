/**
 * The listener of api_port: limits, tokens, roles, errors (docs/design/http.md#access,
 * docs/design/http.md#http-limits). The paths are in node.ts. A route is a row with a handler that returns its
 * response.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import type { Clock } from '@vacancy/shared'
import { NODE_HTTP_LIMITS, type NodeAccess } from '@vacancy/shared/contract'
import {
  asHttpError,
  bearerToken,
  checkToken,
  createFailureLimiter,
  dropRest,
  type FailureLimiter,
  HttpError,
  type HttpServer,
  type Log,
  openHttpServer,
  parseJsonBody,
  type Role,
  readRequestBody,
  requestPath,
  roleMay,
  type TlsMaterial,
  type TokenHash,
} from '@vacancy/shared/node'

export const HTTP_LIMITS = {
  requestTimeoutMs: 30_000,
  connectionsMax: 1_024,
  bodyBytesMax: NODE_HTTP_LIMITS.bodyBytesMax,
  /** Responses still running this long after close() are cut off. */
  closeMs: 2_000,
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

export type Listener = Omit<HttpServer, 'close'> & {
  /** Accepts no more connections, ends the idle ones and waits for the others, `closeMs` at most. */
  readonly close: () => Promise<void>
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
  const { connectionsMax, requestTimeoutMs, closeMs } = HTTP_LIMITS
  const server = openHttpServer({ ...options, connectionsMax, requestTimeoutMs }, (request, response) => {
    void serve(options, failures, request, response)
  })
  return { ...server, close: () => server.close(closeMs) }
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
    if (refused.status === 500) options.log.error({ err: error, path: requestPath(request) }, 'an HTTP request failed')
    for (const [name, value] of Object.entries(refused.headers)) response.setHeader(name, value)
    send(request, response, json(refused.status, { error: refused.message }))
  }
}

function send(request: IncomingMessage, response: ServerResponse, { status, type, body, after }: Answer): void {
  if (after) response.once('close', after)
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
  dropRest(request)
}

const NO_BODY = Buffer.alloc(0)

async function route(options: ListenerOptions, failures: FailureLimiter, request: IncomingMessage): Promise<Answer> {
  const path = requestPath(request)
  const here = options.routes.filter((route) => matches(route.path, path))
  if (here.length === 0) throw new HttpError(404, 'not found')
  const method = request.method === 'HEAD' ? 'GET' : request.method
  const found = here.find((route) => route.method === method)
  if (!found) {
    const allowed = here.map((route) => (route.method === 'GET' ? 'GET, HEAD' : route.method))
    throw new HttpError(405, 'method not allowed', { Allow: allowed.join(', ') })
  }
  authorize(options, failures, found.access, request)
  const sent = found.method === 'POST' ? await readRequestBody(request, HTTP_LIMITS.bodyBytesMax) : NO_BODY
  return found.answer({
    path,
    rest: found.path.endsWith('/*') ? path.slice(found.path.length - 1) : '',
    parameters: new URLSearchParams((request.url ?? '').slice(path.length + 1)),
    body: found.takes === 'object' && sent.length > 0 ? parseObject(sent) : {},
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

/** @throws HttpError 400 */
function parseObject(sent: Buffer): JsonObject {
  const value = parseJsonBody(sent)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new HttpError(400, 'the body must be a JSON object')
  }
  return value as JsonObject
}

/** @throws HttpError 400 */
function parseList(sent: Buffer): readonly unknown[] {
  const value = sent.length === 0 ? undefined : parseJsonBody(sent)
  if (!Array.isArray(value)) throw new HttpError(400, 'the body must be a JSON array')
  return value
}
