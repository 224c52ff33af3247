/**
 * The HTTP listener of all services of the fabric: limits, path patterns, bodies, errors. The service provides the
 * routes and the access rules. A route is a row with a function that returns its response.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  asHttpError,
  dropRest,
  HttpError,
  type HttpServer,
  type Log,
  openHttpServer,
  parseJsonBody,
  readRequestBody,
  requestPath,
  type TlsMaterial,
} from '@vacancy/shared/node'

export const HTTP_LIMITS = {
  /** Allows a list of 100,000 segments over a slow line. */
  requestTimeoutMs: 60_000,
  connectionsMax: 10_000,
  bodyBytesMax: 64 * 1024,
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

export function createListener(options: ListenerOptions): HttpServer {
  const table = options.routes.map((route) => ({ route, pieces: route.path.split('/').slice(1) }))
  const { connectionsMax, requestTimeoutMs } = HTTP_LIMITS
  return openHttpServer({ ...options, connectionsMax, requestTimeoutMs }, (request, response) => {
    void serve(options, table, request, response)
  })
}

const NO_BODY = Buffer.alloc(0)

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
    const bytesMax = found.route.bodyBytesMax ?? HTTP_LIMITS.bodyBytesMax
    const sent = takesBody ? await readRequestBody(request, bytesMax) : NO_BODY
    const body = sent.length === 0 ? {} : parseJsonBody(sent)
    const parameters = new URLSearchParams((request.url ?? '').slice(requestPath(request).length + 1))
    const query = { caller, path: found.path, parameters, headers: request.headers, body, gone: gone.signal }
    answer = await found.route.answer(query)
  } catch (error) {
    // The caller disconnected during its request, so the response is not read.
    if (response.destroyed) return
    const refused = asHttpError(error)
    if (refused.status === 500) options.log.error({ err: error, path: requestPath(request) }, 'an HTTP request failed')
    answer = json(refused.status, { error: refused.message }, refused.headers)
  }
  options.onAnswer?.(endpoint, answer.status, (performance.now() - startMs) / 1000)
  send(request, response, answer)
}

function send(request: IncomingMessage, response: ServerResponse, { status, headers, body }: Answer): void {
  if (response.destroyed) return
  for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value)
  if (status !== 304) response.setHeader('Content-Length', Buffer.byteLength(body))
  response.writeHead(status)
  response.end(status === 304 || request.method === 'HEAD' ? undefined : body)
  dropRest(request)
}

/** @throws HttpError 404 or 405 */
function find(table: Table, request: IncomingMessage): Found {
  const pieces = requestPath(request).split('/').slice(1)
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
