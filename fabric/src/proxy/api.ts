/**
 * From an exchange to its response: routes, tokens, limits, the upstream, and the counts of all that (docs/proxy.md).
 * It knows neither sockets nor timers.
 */

import { type Clock, type CodecList, createCodecList, traceparentOf } from '@vacancy/shared'
import {
  bearerToken,
  beginCall,
  beginTrace,
  type FailureLimiter,
  type Log,
  REFUSED_HEADS,
  type Readiness,
  type Span,
  type Trace,
  type Tracing,
  tokenFault,
} from '@vacancy/shared/node'
import {
  CODECS_SEGMENT,
  decodeReply,
  encodeRequest,
  FRAME_HEADER_BYTES,
  SEGMENTS_SEGMENT,
  withTrace,
} from '@vacancy/shared/wire'
import type { JsonCommand } from './commands.ts'
import { API_LIMITS, type Body, type Connection, type Exchange, type ResponseHead, responseHead } from './exchange.ts'
import { type Observed, observe, type Rejection } from './observed.ts'
import {
  createJsonWriter,
  JSON_ROOM_BYTES,
  type JsonWriter,
  type ReplyJson,
  releaseJson,
  setReplyContext,
  writeReply,
} from './reply-json.ts'
import { type ApiRequest, parseBody, readCommand, readRequest } from './request.ts'
import { isRefusal, type Refusal, refusal, refusalJson, refusalOfCode } from './status.ts'
import {
  type ApiToken,
  type ApiTokens,
  admitToken,
  findApiToken,
  refusalOfCommand,
  refusalOfSegment,
  type TokenLimits,
} from './tokens.ts'
import type { Upstream, UpstreamClient } from './upstream.ts'

type ApiSettings = {
  /** Requests carry the segment for a router. */
  readonly isRouter: boolean
  /** Undefined: every request has full access. */
  readonly tokens: (() => ApiTokens) | undefined
  /** Origins of web pages; `*` = all. */
  readonly corsOrigins: readonly string[]
  readonly serverName: string
  /** Beginning of the ids of requests that bring none. */
  readonly idPrefix: string
  /** Where calls go, for their spans. */
  readonly upstream: { readonly shard?: string; readonly upstream?: string }
}

export type Page = {
  /** `token`: any valid token, where tokens are needed. `full`: one with full access. */
  readonly access: 'open' | 'token' | 'full'
  readonly read: () => PageContent | Promise<PageContent>
}
type PageContent = { readonly status: number; readonly type: string; readonly body: string }

export type Api = {
  readonly settings: ApiSettings
  readonly upstream: Upstream
  /** Undefined: no spans are recorded. */
  readonly tracing: Tracing | undefined
  readonly pages: ReadonlyMap<string, Page>
  readonly clock: Clock
  readonly log: Log
  readonly failures: FailureLimiter
  readonly limits: TokenLimits
  readonly readiness: Readiness
  readonly observed: Observed
  readonly writer: JsonWriter
  /** Of a success for any origin, or without one. */
  readonly successHead: ResponseHead
  readonly clients: WeakMap<Connection, UpstreamClient>
  /** The client that fetches the codec list. */
  readonly own: UpstreamClient
  codecs: CodecList | undefined
  /** The upstream was reconnected since the list was fetched: replies with masks wait for the new one. */
  isStale: boolean
  isFetching: boolean
  /** Called after each attempt to fetch the list. */
  waiting: (() => void)[]
  nextId: number
}

export function createApi(
  parts: Pick<
    Api,
    'settings' | 'upstream' | 'tracing' | 'pages' | 'clock' | 'log' | 'failures' | 'limits' | 'readiness' | 'observed'
  >,
): Api {
  return {
    ...parts,
    writer: createJsonWriter(),
    successHead: responseHead({
      ...JSON_TYPE,
      ...(parts.settings.corsOrigins.includes('*') ? ANY_ORIGIN : NO_ORIGIN),
      Server: parts.settings.serverName,
    }),
    clients: new WeakMap(),
    own: parts.upstream.openClient(),
    codecs: undefined,
    isStale: false,
    isFetching: false,
    waiting: [],
    nextId: 1,
  }
}

// The codec list

const CODECS_PAYLOAD = encodeRequest({ command: 'GETCODECS', correlationId: 0, fields: {} }).subarray(
  FRAME_HEADER_BYTES,
)

/** Fetches the codec list, unless that is under way. */
export function fetchCodecs(api: Api): void {
  if (api.isFetching) return
  api.isFetching = true
  const segment = api.settings.isRouter ? CODECS_SEGMENT : undefined
  api.own.call({ segment, isWrite: false, payload: CODECS_PAYLOAD }, (payload) => {
    api.isFetching = false
    if (payload) takeCodecs(api, payload)
    const { waiting } = api
    api.waiting = []
    for (const each of waiting) each()
  })
}

function takeCodecs(api: Api, payload: Uint8Array): void {
  let fault: string
  try {
    const reply = decodeReply('GETCODECS', payload, { codecs: undefined })
    if (reply.ok) {
      const codecs = createCodecList(reply.result.rateFeatures)
      if (codecs.text !== api.codecs?.text) {
        api.log.info({ names: codecs.names.length, hash: codecs.hashHex }, 'codec list fetched')
        api.codecs = codecs
      }
      api.isStale = false
      api.readiness.set('codecs', '')
      return
    }
    fault = `the upstream answered ${reply.code}`
  } catch (error) {
    fault = (error as Error).message
  }
  if (!api.codecs) api.readiness.set('codecs', `no codec list yet: ${fault}`)
  else api.log.warn({ reason: fault }, 'codec list not fetched')
}

/** The connections to the upstream were opened after all were lost, or are lost. */
export function upstreamChanged(api: Api, isUp: boolean): void {
  api.readiness.set('upstream', isUp ? '' : api.upstream.fault())
  if (!isUp) return
  api.isStale = true
  fetchCodecs(api)
}

// Requests

/** One request and what is known of it, for counts and logs. */
type Visit = {
  readonly exchange: Exchange
  readonly id: string
  readonly startMs: number
  token: ApiToken | undefined
  command: JsonCommand | undefined
  segment: string
  upstreamMs: number
  isUpstreamUsed: boolean
  /** What it is part of, and the call that it makes. */
  readonly trace: Trace | undefined
  call: Trace | undefined
  /** Why it is refused, or failed. */
  refused: Refusal | undefined
  /** Ends what the limits of the token count. */
  release: () => void
}

const REQUEST_ID = /^[\x21-\x7e]{1,128}$/
const NOTHING = (): void => {}

/** Handles one request, up to its response. */
export function handle(api: Api, exchange: Exchange): void {
  const { method, path, query, refused } = exchange
  const isApi = path === '/api' || path === '/api/'
  const given = exchange.header('x-request-id')
  const visit: Visit = {
    exchange,
    id:
      given !== undefined && REQUEST_ID.test(given) ? given : `${api.settings.idPrefix}${(api.nextId++).toString(36)}`,
    startMs: api.clock.monotonicMs(),
    token: undefined,
    command: undefined,
    segment: '',
    upstreamMs: 0,
    isUpstreamUsed: false,
    trace: isApi || !PROBED.has(path) ? traceOf(api, exchange, isApi) : undefined,
    call: undefined,
    refused: undefined,
    release: NOTHING,
  }
  if (refused !== undefined) {
    const [status, message] = REFUSED_HEADS[refused]
    return refuse(api, visit, refusal(status, '', message), 'invalid')
  }
  if (method === 'OPTIONS') return answer(api, visit, 204, preflightHeaders(exchange), '')
  if (query !== '' && (isApi || api.pages.has(path)) && !PROBED.has(path)) {
    return refuse(api, visit, refusal(400, 'VALIDATION_ERROR', 'this path has no parameters'), 'invalid')
  }
  if (isApi) {
    if (method === 'POST') return handleApi(api, visit)
    return refuse(api, visit, refusal(405, '', 'method not allowed'), 'invalid', { Allow: 'POST, OPTIONS' })
  }
  const page = api.pages.get(path)
  if (!page) return refuse(api, visit, refusal(404, '', 'not found'), 'invalid')
  if (method !== 'GET' && method !== 'HEAD') {
    return refuse(api, visit, refusal(405, '', 'method not allowed'), 'invalid', { Allow: 'GET, HEAD, OPTIONS' })
  }
  void showPage(api, visit, page)
}

/** The name of a span is one of a few: no client makes up another one. */
function traceOf({ tracing, pages }: Api, { method, path, header }: Exchange, isApi: boolean): Trace | undefined {
  const name = isApi && method === 'POST' ? 'POST /api' : pages.has(path) ? `GET ${path}` : 'HTTP'
  return beginTrace(tracing, header('traceparent'), name)
}

/** Probes and scrapers may add parameters of their own, and are no part of a trace. */
const PROBED: ReadonlySet<string> = new Set(['/health', '/ready', '/metrics'])

async function showPage(api: Api, visit: Visit, page: Page): Promise<void> {
  if (page.access !== 'open' && !authenticate(api, visit)) return
  if (page.access === 'full' && visit.token?.role === 'read') {
    return refuse(api, visit, refusal(403, 'FORBIDDEN', 'needs a token with full access'), 'forbidden')
  }
  try {
    const { status, type, body } = await page.read()
    answer(api, visit, status, { 'Content-Type': type, 'Cache-Control': 'no-store' }, body)
  } catch (error) {
    api.log.error({ err: error, path: visit.exchange.path }, 'a page failed')
    refuse(api, visit, refusal(500, '', 'internal error, see the log'), 'internal')
  }
}

/** Checks the token where tokens are needed. @returns false after the refusal was sent */
function authenticate(api: Api, visit: Visit): boolean {
  const { tokens } = api.settings
  if (!tokens) return true
  const { exchange } = visit
  const header = exchange.header('authorization')
  const token = header === undefined ? undefined : bearerToken(header)
  visit.token = token === undefined ? undefined : findApiToken(tokens().tokens, token, api.clock.wallMs())
  // Before the limit: others at this address must not block a valid token.
  if (visit.token) return true
  const { remote } = exchange.connection
  const waitSeconds = api.failures.waitSeconds(remote)
  if (waitSeconds > 0) {
    refuse(api, visit, refusal(429, '429', 'Too many failed tries. Retry later.', waitSeconds), 'unauthorized')
    return false
  }
  api.observed.loginFailures++
  if (header !== undefined) api.failures.failed(remote)
  const message =
    header === undefined
      ? 'Missing Authorization header'
      : token === undefined
        ? 'Invalid Authorization header scheme'
        : endedText(tokenFault(tokens().tokens, token, api.clock.wallMs()))
  refuse(api, visit, refusal(401, 'AUTH_ERROR', message), 'unauthorized', { 'WWW-Authenticate': 'Bearer' })
  return false
}

/** Callers of existing proxies know the text for a token that is not known. */
function endedText(fault: string): string {
  return fault === 'invalid token' ? 'Invalid or unauthorized token' : `Invalid or unauthorized token: ${fault}`
}

const BODY_FAULTS = {
  too_large: [refusal(413, 'TOO_LARGE', `the body exceeds ${API_LIMITS.bodyBytesMax} bytes`), 'too_large'],
  slow: [refusal(408, '', 'the request took too long to arrive'), 'slow'],
  busy: [refusal(429, '429', 'Too many request bodies are being received. Nothing was done. Retry.', 1), 'limit'],
} as const

function handleApi(api: Api, visit: Visit): void {
  const { exchange } = visit
  if (!authenticate(api, visit)) return
  if (exchange.connection.inFlight > API_LIMITS.requestsPerConnection) {
    const tooMany = refusal(
      429,
      '429',
      'Too many requests of this connection are in flight. Nothing was done. Retry.',
      1,
    )
    return refuse(api, visit, tooMany, 'limit')
  }
  exchange.readBody((body) => {
    if (body === 'gone') return
    if (typeof body === 'string') return refuse(api, visit, BODY_FAULTS[body][0], BODY_FAULTS[body][1])
    try {
      handleBody(api, visit, body)
    } catch (error) {
      api.log.error({ err: error, request: visit.id }, 'a request failed')
      refuse(api, visit, refusal(500, '500', 'internal error, see the log'), 'internal')
    }
  })
}

function handleBody(api: Api, visit: Visit, body: Exclude<Body, string>): void {
  api.observed.bytesReceived += body.length
  const parsed = parseBody(body)
  if (isRefusal(parsed)) return refuse(api, visit, parsed, 'invalid')
  const command = readCommand(parsed.value)
  if (isRefusal(command)) return refuse(api, visit, command, 'invalid')
  visit.command = command
  const { token } = visit
  const forbidden = token && refusalOfCommand(token, command)
  if (forbidden) return refuse(api, visit, forbidden, 'forbidden')
  const request = readRequest(command, parsed.value as object, api.settings.isRouter ? 'router' : 'none')
  if (isRefusal(request)) return refuse(api, visit, request, 'invalid')
  visit.segment = request.segment ?? request.bodySegment
  if (token) {
    const outside = refusalOfSegment(token, command, request.segment, request.bodySegment)
    if (outside) return refuse(api, visit, outside, 'forbidden')
    const admitted = admitToken(api.limits, token)
    if (typeof admitted !== 'function') return refuse(api, visit, admitted, 'limit')
    visit.release = admitted
  }
  if (!api.codecs) return refuse(api, visit, notReady(api), 'not_ready')
  send(api, visit, request)
}

function notReady(api: Api): Refusal {
  const reasons = api.readiness.read().reasons.map(({ message }) => message)
  return refusal(503, '503', `Not ready: ${reasons.join('; ') || 'no codec list yet'}. Nothing was done. Retry.`, 1)
}

/** The status that is counted for a client that did not wait for its response. */
const CLIENT_GONE = 499

/** Where routers take requests that concern no segment. */
const ROUTER_SEGMENTS: { readonly [command: string]: string } = {
  GETCODECS: CODECS_SEGMENT,
  GETSEGMENTS: SEGMENTS_SEGMENT,
}

function send(api: Api, visit: Visit, request: ApiRequest): void {
  const { command, segment, payload } = request
  const sentMs = api.clock.monotonicMs()
  visit.isUpstreamUsed = true
  const routed = segment ?? (api.settings.isRouter ? ROUTER_SEGMENTS[command.name] : undefined)
  const call =
    visit.trace && beginCall(visit.trace, command.name, { ...api.settings.upstream, command: command.name, segment })
  visit.call = call
  const sent = call === undefined ? payload : withTrace(payload, traceparentOf(call.context))
  clientOf(api, visit.exchange.connection).call(
    { segment: routed, isWrite: command.isWrite, payload: sent },
    (reply, via) => {
      visit.upstreamMs = api.clock.monotonicMs() - sentMs
      if (via !== undefined) call?.span?.set(via)
      if (!reply) {
        call?.span?.end('the client has disconnected')
        return answer(api, visit, CLIENT_GONE, {}, '')
      }
      // The masks of a reply refer to the codec list of its connection.
      if (api.isStale && hasFeatures(command)) return answerLater(api, visit, request, Uint8Array.from(reply))
      const json = write(api, request, reply)
      if (json.kind === 'malformed' && json.unknownFeature) {
        api.isStale = true
        return answerLater(api, visit, request, Uint8Array.from(reply))
      }
      answerReply(api, visit, command, json)
    },
  )
}

function clientOf(api: Api, connection: Connection): UpstreamClient {
  const known = api.clients.get(connection)
  if (known) return known
  const client = api.upstream.openClient()
  api.clients.set(connection, client)
  connection.onEnd = () => client.close()
  return client
}

function hasFeatures({ spec: { reply } }: JsonCommand): boolean {
  return reply === 'stays' || reply === 'night'
}

function answerLater(api: Api, visit: Visit, request: ApiRequest, reply: Uint8Array): void {
  api.waiting.push(() => answerReply(api, visit, request.command, write(api, request, reply)))
  fetchCodecs(api)
}

function write(api: Api, { command, dates, asked }: ApiRequest, reply: Uint8Array): ReplyJson {
  setReplyContext(api.writer, api.codecs, dates, asked)
  return writeReply(api.writer, command, reply)
}

function answerReply(api: Api, visit: Visit, command: JsonCommand, reply: ReplyJson): void {
  switch (reply.kind) {
    case 'success':
      if (visit.call?.span !== undefined) {
        visit.call.span.set({ index: indexIn(reply.json) })
        visit.call.span.end('')
      }
      return releaseJson(
        api.writer,
        respond(api, visit, 200, successHead(api, visit.exchange), reply.json, JSON_ROOM_BYTES),
      )
    case 'error':
      visit.call?.span?.end(reply.text)
      return refuse(api, visit, refusalOfCode(reply.code, reply.text, command.isWrite), undefined)
    case 'malformed':
      visit.call?.span?.end('malformed reply')
      api.log.warn({ command: command.name, reason: reply.reason, request: visit.id }, 'malformed reply')
      return refuse(api, visit, refusalOfCode('500', '', command.isWrite), 'malformed')
  }
}

/** The index that a reply names at its end. */
const INDEX = /"(?:applied_)?index":(\d+)/
const INDEX_BYTES_MAX = 256

function indexIn(json: Buffer): number | undefined {
  const [, digits] = INDEX.exec(json.toString('latin1', Math.max(0, json.length - INDEX_BYTES_MAX))) ?? []
  return digits === undefined ? undefined : Number(digits)
}

// Responses

type Headers = { readonly [name: string]: string }

const JSON_TYPE: Headers = { 'Content-Type': 'application/json' }

function refuse(api: Api, visit: Visit, refused: Refusal, reason: Rejection | undefined, headers: Headers = {}): void {
  if (reason) api.observed.rejections[reason]++
  visit.refused = refused
  const retry: Headers = refused.retryAfter === undefined ? {} : { 'Retry-After': String(refused.retryAfter) }
  answer(api, visit, refused.status, { ...JSON_TYPE, ...retry, ...headers }, refusalJson(refused))
}

function answer(api: Api, visit: Visit, status: number, headers: Headers, body: string): void {
  respond(api, visit, status, headOf(api, visit.exchange, headers), body, 0)
}

/** @returns whether the memory of the body is kept */
function respond(
  api: Api,
  visit: Visit,
  status: number,
  head: ResponseHead,
  body: Buffer | string,
  room: number,
): boolean {
  const { exchange, command, token, startMs, id } = visit
  visit.release()
  const isKept = exchange.respond({ status, head, id, body, room })
  if (visit.trace?.span !== undefined) endSpan(visit, visit.trace.span, status)
  observe(api.observed, {
    id,
    atMs: api.clock.wallMs(),
    command: command?.name ?? 'none',
    segment: visit.segment,
    status,
    token: token === undefined ? undefined : token.name,
    bytes: body.length,
    totalMs: api.clock.monotonicMs() - startMs,
    upstreamMs: visit.isUpstreamUsed ? visit.upstreamMs : undefined,
    traceId: visit.trace?.context.traceId,
  })
  return isKept
}

function endSpan({ exchange, command, id, refused }: Visit, span: Span, status: number): void {
  span.set({
    'http.request.method': exchange.method,
    'url.path': exchange.path,
    'http.response.status_code': status,
    command: command?.name,
    request_id: id,
    ...(refused && { 'error.type': refused.code || String(status), reason: refused.message }),
  })
  span.end(status >= 500 ? (refused?.message ?? '') : '')
}

function successHead(api: Api, exchange: Exchange): ResponseHead {
  const isForAll = api.settings.corsOrigins.includes('*') || exchange.header('origin') === undefined
  return isForAll ? api.successHead : headOf(api, exchange, JSON_TYPE)
}

function headOf({ settings }: Api, exchange: Exchange, headers: Headers): ResponseHead {
  return responseHead({ ...headers, ...corsHeaders(settings.corsOrigins, exchange), Server: settings.serverName })
}

/** Which web pages may read the response. */
function corsHeaders(origins: readonly string[], exchange: Exchange): Headers {
  if (origins.includes('*')) return ANY_ORIGIN
  const origin = exchange.header('origin')
  return origin !== undefined && origins.includes(origin)
    ? { 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': EXPOSED, Vary: 'Origin' }
    : NO_ORIGIN
}

const NO_ORIGIN: Headers = { Vary: 'Origin' }
const EXPOSED = 'X-Request-Id, Retry-After'
const ANY_ORIGIN: Headers = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': EXPOSED }
const HEADER_NAMES = /^[A-Za-z0-9-]+(?: *, *[A-Za-z0-9-]+)*$/
const HEADER_NAMES_MAX = 1024

function preflightHeaders(exchange: Exchange): Headers {
  const wanted = exchange.header('access-control-request-headers') ?? ''
  const isSane = wanted.length <= HEADER_NAMES_MAX && HEADER_NAMES.test(wanted)
  return {
    'Access-Control-Allow-Methods': 'GET, POST, OPTIONS',
    // A star would not include Authorization.
    'Access-Control-Allow-Headers': isSane ? wanted : 'Authorization, Content-Type, X-Request-Id',
    'Access-Control-Max-Age': '600',
  }
}
