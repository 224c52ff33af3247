/**
 * The HTTP API of nodes and of services of the fabric: a route is a row with a function that returns its response. Each
 * program brings its rows, who may call them, and its limits.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { knownValues, unknownName } from '../names.ts'
import {
  asHttpError,
  dropRest,
  HttpError,
  type HttpServer,
  type HttpServerOptions,
  openHttpServer,
  parseJsonBody,
  readRequestBody,
  requestPath,
} from './http-server.ts'
import type { Log } from './log.ts'

export type HttpQuery<Caller> = {
  readonly caller: Caller
  /** The parts of the path in braces, decoded; of a path that ends in `/*`, the rest, undecoded. */
  readonly path: { readonly [name: string]: string }
  readonly parameters: URLSearchParams
  /** The same, undecoded. */
  readonly search: string
  readonly headers: IncomingMessage['headers']
  /** `{}` without a body. */
  readonly body: unknown
  /** Aborted when the caller has disconnected and no response is needed. */
  readonly gone: AbortSignal
}

type Headers = { readonly [name: string]: string }

export type HttpAnswer = {
  readonly status: number
  readonly headers?: Headers
  readonly body: string | Uint8Array
  /** Runs once the response has been sent. */
  readonly after?: () => void
}

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'DELETE'

export type HttpRoute<Caller> = {
  readonly method: HttpMethod
  /** A placeholder in braces matches one segment: `/shards/{shard}/nodes`; `/*` at the end matches everything below. */
  readonly path: string
  readonly bodyBytesMax?: number
  /** Its parameters; others are refused. Default: none. `any`: it has none and ignores those of a probe. */
  readonly query?: readonly string[] | 'any'
  /** Parameters that may be repeated. */
  readonly repeats?: readonly string[]
  /** The names of an object as its body, in snake_case; others are refused. Default: none. `any`: `answer` checks them. */
  readonly fields?: readonly string[] | 'any'
  /** Reads the body, which may be empty; default: as JSON. */
  readonly parse?: (body: Buffer) => unknown
  /** Authenticates and authorizes the caller; throws an HttpError. Called before the body is read. */
  readonly admit: (request: IncomingMessage) => Caller
  readonly answer: (query: HttpQuery<Caller>) => HttpAnswer | Promise<HttpAnswer>
}

export type HttpApiOptions<Caller> = HttpServerOptions & {
  readonly routes: readonly HttpRoute<Caller>[]
  readonly bodyBytesMax: number
  readonly log: Log
  /** Called after each response: `endpoint` is the pattern of the path, '' for an unknown path. */
  readonly onAnswer?: (endpoint: string, status: number, seconds: number) => void
}

export function json(status: number, value: unknown, headers: Headers = {}): HttpAnswer {
  return jsonText(status, JSON.stringify(value), headers)
}

/** Serialized JSON. */
export function jsonText(status: number, body: string, headers: Headers = {}): HttpAnswer {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body }
}

export function text(status: number, body: string, headers: Headers = {}): HttpAnswer {
  return { status, headers: { 'Content-Type': 'text/plain; charset=utf-8', ...headers }, body }
}

type Table<Caller> = readonly { readonly route: HttpRoute<Caller>; readonly pieces: readonly string[] }[]

export function openHttpApi<Caller>(options: HttpApiOptions<Caller>): HttpServer {
  const table = options.routes.map((route) => ({ route, pieces: route.path.split('/') }))
  return openHttpServer(options, (request, response) => void serve(options, table, request, response))
}

/** The entry point: every error below ends here, as a response. */
async function serve<Caller>(
  options: HttpApiOptions<Caller>,
  table: Table<Caller>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const startMs = performance.now()
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  response.setHeader('Server', options.serverName)
  response.setHeader('Cache-Control', 'no-store')
  let endpoint = ''
  let answer: HttpAnswer
  try {
    const { route, path } = find(table, request)
    endpoint = route.path
    const caller = route.admit(request)
    const parameters = parametersOf(route, request)
    const body = await bodyOf(route, request, options.bodyBytesMax)
    const search = (request.url ?? '').slice(requestPath(request).length + 1)
    answer = await route.answer({ caller, path, parameters, search, headers: request.headers, body, gone: gone.signal })
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

async function bodyOf<Caller>(route: HttpRoute<Caller>, request: IncomingMessage, bytesMax: number): Promise<unknown> {
  if (route.method !== 'POST' && route.method !== 'PUT') return {}
  const sent = await readRequestBody(request, route.bodyBytesMax ?? bytesMax)
  const { parse = (bytes: Buffer) => (bytes.length === 0 ? {} : parseJsonBody(bytes)), fields = [] } = route
  const body = parse(sent)
  if (fields === 'any' || typeof body !== 'object' || body === null || Array.isArray(body)) return body
  const values = knownValues(body, fields)
  if (typeof values === 'string') throw new HttpError(400, values)
  return values
}

/** @throws HttpError 400 for a parameter that the route has not, and for one given twice */
function parametersOf<Caller>(route: HttpRoute<Caller>, request: IncomingMessage): URLSearchParams {
  const parameters = new URLSearchParams((request.url ?? '').slice(requestPath(request).length + 1))
  const { query = [], repeats = [] } = route
  if (query === 'any') return parameters
  const seen = new Set<string>()
  for (const name of parameters.keys()) {
    if (!query.includes(name)) throw new HttpError(400, `the parameter ${unknownName(name, query)}`)
    if (seen.has(name) && !repeats.includes(name)) throw new HttpError(400, `the parameter ${name} is given twice`)
    seen.add(name)
  }
  return parameters
}

function send(request: IncomingMessage, response: ServerResponse, answer: HttpAnswer): void {
  const { status, headers = {}, body, after } = answer
  if (after) response.once('close', after)
  if (response.destroyed) return
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  if (status !== 304) response.setHeader('Content-Length', Buffer.byteLength(body))
  response.writeHead(status)
  response.end(status === 304 || request.method === 'HEAD' ? undefined : body)
  dropRest(request)
}

/** @throws HttpError 404 or 405 */
function find<Caller>(table: Table<Caller>, request: IncomingMessage) {
  const pieces = requestPath(request).split('/')
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

function match(pattern: readonly string[], pieces: readonly string[]): { readonly [name: string]: string } | undefined {
  const isOpen = pattern.at(-1) === '*'
  if (isOpen ? pieces.length < pattern.length : pieces.length !== pattern.length) return undefined
  const path: { [name: string]: string } = {}
  for (const [i, expected] of pattern.entries()) {
    const piece = pieces[i] as string
    if (isOpen && i === pattern.length - 1) path['*'] = pieces.slice(i).join('/')
    else if (expected.startsWith('{')) path[expected.slice(1, -1)] = decode(piece)
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
