/**
 * What every path of the control plane has, in one place: the host it may be asked under, who asks, limits, the
 * contract's schemas, protection from other sites' pages, and errors as `application/problem+json`.
 */
import { randomUUID, timingSafeEqual } from 'node:crypto'
import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from 'node:http'
import { type AddressInfo, isIP, Socket } from 'node:net'
import { type Duplex, Readable } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import { promisify } from 'node:util'
import { gzip, type ZlibOptions } from 'node:zlib'
import cookies from '@fastify/cookie'
import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import { assert, errorRow, VacancyError } from '@vacancy/shared'
import { CONTROL_BODY_BYTES_MAX, type ControlRoute, type Problem, problemBody } from '@vacancy/shared/contract'
import { type FailureLimiter, secureContextOf, type TlsMaterial, VERSION } from '@vacancy/shared/node'
import fastify, {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifySchema,
  LogController,
} from 'fastify'
import {
  hasZodFastifySchemaValidationErrors,
  isResponseSerializationError,
  jsonSchemaTransform,
  serializerCompiler,
  validatorCompiler,
} from 'fastify-type-provider-zod'
import type { Logger } from 'pino'
import { type Access, mayAsk, tooManyTries, type Visitor } from './access.ts'
import type { WriteAudit } from './audit.ts'
import { type Area, ProblemError } from './route.ts'
import { accepts } from './static-files.ts'

declare module 'fastify' {
  interface FastifyRequest {
    visitor: Visitor
  }
  interface FastifyContextConfig {
    /** `METHOD /path` of the contract. */
    route?: string
    isOpen?: boolean
  }
}

export const HTTP_LIMITS = {
  /** Requests a minute of somebody who showed who they are, and of an address that did not. */
  requestsKnown: 6_000,
  requestsUnknown: 600,
  headerBytesMax: 16_384,
  /** From the first byte of a request to the end of its headers, and to its own end. */
  headersMs: 10_000,
  requestMs: 300_000,
  lookMs: 2_000,
  farewellMs: 1_000,
  connectionsMax: 5_000,
  /** Of an address, in a minute. */
  upgradesRefusedMax: 300,
} as const

const DAY_SECONDS = 86_400

export type HttpOptions = {
  readonly log: Logger
  readonly access: Access
  readonly audit: WriteAudit
  /** Undefined: plain HTTP, TLS ends at a reverse proxy or nowhere. */
  readonly tls: TlsMaterial | undefined
  /** How long browsers are told to come by https alone; 0: they are not told. */
  readonly hstsDays: number
  readonly trustProxy: readonly string[]
  readonly allowedHosts: () => readonly string[]
  /** Origin of the address under which browsers come, '' when nobody said. */
  readonly baseUrl: () => string
  /** Of live channels that were refused, by address: requests are counted elsewhere. */
  readonly upgradeFailures: FailureLimiter
  readonly onAnswer: (route: string, status: number, seconds: number) => void
  readonly onRefusal: (reason: Refusal) => void
}

export type Refusal = 'unauthenticated' | 'forbidden' | 'cross-site' | 'host' | 'too-many'

// biome-ignore lint/suspicious/noExplicitAny: the parts of a FastifyInstance's type that differ by logger and types.
export type App = FastifyInstance<any, any, any, any, any>

/** An instance with everything but paths. */
export async function createHttp(options: HttpOptions): Promise<App> {
  const { tls } = options
  const limits = {
    maxHeaderSize: HTTP_LIMITS.headerBytesMax,
    headersTimeout: HTTP_LIMITS.headersMs,
    connectionsCheckingInterval: HTTP_LIMITS.lookMs,
  }
  const app: App = fastify({
    loggerInstance: options.log as unknown as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    trustProxy: options.trustProxy.length === 0 ? false : [...options.trustProxy],
    bodyLimit: CONTROL_BODY_BYTES_MAX,
    requestTimeout: HTTP_LIMITS.requestMs,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 512 },
    genReqId: () => randomUUID(),
    ...(tls === undefined ? { http: limits } : { https: { ...limits, ...secureContextOf(tls) } }),
    clientErrorHandler: refuseBytes,
    frameworkErrors: (error, request, reply) => sendProblem(error, request as FastifyRequest, reply as FastifyReply),
  })
  app.server.maxConnections = HTTP_LIMITS.connectionsMax
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  app.setErrorHandler(sendProblem)
  app.setNotFoundHandler((request, reply) =>
    sendProblem(
      new ProblemError(404, 'no-such-path', `There is no ${request.method} ${cut(request.url)}.`, {
        hint: 'The paths are listed at /docs.',
      }),
      request,
      reply,
    ),
  )
  // Forms of other sites can post these without asking first; nothing here takes them.
  app.removeContentTypeParser('text/plain')
  app.decorateRequest('visitor')
  // Loads what access.ts reads and writes cookies with; upgrades pass no hook of it.
  await app.register(cookies, { hook: false })
  await app.register(helmet, {
    // Pages of the console bring their own, with a nonce.
    contentSecurityPolicy: false,
    // It holds for all ports of the name: behind a proxy that ends TLS, that one decides.
    hsts: tls !== undefined &&
      options.hstsDays > 0 && { maxAge: options.hstsDays * DAY_SECONDS, includeSubDomains: false },
    referrerPolicy: { policy: 'no-referrer' },
    frameguard: { action: 'deny' },
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    reply.header('server', `vacancy/${VERSION}`)
    // Without a socket the program asks itself, for a page that somebody asked for under a good name.
    if (request.raw.socket instanceof Socket && !isOwnHost(request.raw, options))
      throw foreignHost(request.raw, options)
  })
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.config?.route ?? (request.routeOptions.url === undefined ? 'none' : 'pages')
    options.onAnswer(route, reply.statusCode, reply.elapsedTime / 1000)
  })
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Vacancy control plane', version: VERSION },
      components: {
        securitySchemes: {
          token: { type: 'http', scheme: 'bearer' },
          session: { type: 'apiKey', in: 'cookie', name: 'vacancy_session' },
        },
      },
    },
    transform: jsonSchemaTransform,
  })
  return app
}

/** What came is no request, or never became one: there is nothing yet that could answer it. */
function refuseBytes(error: Error & { readonly code?: string }, socket: Socket): void {
  if (socket.destroyed || !socket.writable) return
  endWith(socket, UNREADABLE[error.code ?? ''] ?? NO_HTTP)
}

const NO_HTTP = new ProblemError(400, 'no-http', 'What came is no request of HTTP/1.1.', {
  hint: 'Is this the address of the control plane, with http:// or https:// as it serves?',
})
const UNREADABLE: { readonly [code: string]: ProblemError } = {
  ERR_HTTP_REQUEST_TIMEOUT: new ProblemError(408, 'request-timeout', 'The request did not arrive in time.', {
    hint: `Send its headers within ${HTTP_LIMITS.headersMs / 1000} s and all of it within ${HTTP_LIMITS.requestMs / 1000} s.`,
  }),
  HPE_HEADER_OVERFLOW: new ProblemError(431, 'headers-too-large', 'The headers of the request are too large.', {
    hint: `Send at most ${HTTP_LIMITS.headerBytesMax} bytes of headers; delete the cookies of this address.`,
  }),
}

/** Tells a problem over a connection that no request stands for, and ends it. */
export function endWith(socket: Duplex, { status, code, message, hint, more }: ProblemError): void {
  const title = STATUS_CODES[status] ?? 'Error'
  const body = JSON.stringify({ status, code, title, detail: message, hint, requestId: randomUUID() })
  const wait = more['retryAfterSeconds']
  const lines = [
    `HTTP/1.1 ${status} ${title}`,
    'content-type: application/problem+json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    ...(typeof wait === 'number' ? [`retry-after: ${wait}`] : []),
    'connection: close',
    '',
    body,
  ]
  socket.end(lines.join('\r\n'))
  // Cut at once, what was sent last could be lost on the way; never cut, who does not close would keep it open.
  setTimeout(() => socket.destroy(), HTTP_LIMITS.farewellMs).unref()
}

/** Adds the paths of areas, and `/docs`, which lists them. */
export async function registerAreas(app: App, areas: readonly Area[], options: HttpOptions): Promise<void> {
  await app.register(async (api: App) => {
    api.addHook('onRequest', async (request, reply) => {
      reply.header('content-security-policy', "default-src 'none'; frame-ancestors 'none'")
      reply.header('cache-control', 'no-store')
      // An open path may have tokens of its own, as that of snapshots for nodes has: they are none of ours that failed.
      const { cookie } = request.headers
      const isOpen = request.routeOptions.config?.isOpen === true
      const shown = isOpen ? (cookie === undefined ? {} : { cookie }) : request.headers
      request.visitor = await options.access.identify(shown, request.ip)
    })
    api.addHook('onSend', async (request, reply, payload: unknown) => {
      if (typeof payload !== 'string' || payload.length < COMPRESSED_FROM || !takesGzip(request)) return payload
      reply.header('content-encoding', 'gzip').header('vary', 'accept-encoding')
      return await compress(payload, { level: 1 })
    })
    await api.register(rateLimit, {
      max: (request) => (isKnown(request) ? HTTP_LIMITS.requestsKnown : HTTP_LIMITS.requestsUnknown),
      timeWindow: 60_000,
      keyGenerator: (request) => (isKnown(request) ? request.visitor.asker.id : request.ip),
      errorResponseBuilder: (_request, { ttl }) => {
        options.onRefusal('too-many')
        const seconds = Math.ceil(ttl / 1000)
        return new ProblemError(429, 'too-many-requests', `Too many requests: wait ${seconds} s.`, {
          hint: 'Ask less often; the live channel tells changes by itself.',
          more: { retryAfterSeconds: seconds },
        })
      },
    })
    await api.register(async (docs: App) => {
      await docs.register(swaggerUi, {
        routePrefix: '/docs',
        staticCSP: DOCS_POLICY,
        uiHooks: { onRequest: async (request) => admit(request as FastifyRequest, 'GET /docs', 'viewer', options) },
      })
    })
    for (const { routes, handlers } of areas)
      for (const [name, row] of Object.entries(routes)) {
        const handler = handlers[name]
        assert(handler !== undefined, 'every row of an area has its handler')
        await registerRoute(api, name, row, handler as AnyHandler, options)
      }
  })
}

/** A picture of a thousand nodes is 0.3 MB of JSON, and a tenth of that compressed; small answers fit into a packet anyway. */
const COMPRESSED_FROM = 1_024
const compress = promisify<string, ZlibOptions, Buffer>(gzip)

function takesGzip({ headers }: FastifyRequest): boolean {
  return accepts(String(headers['accept-encoding'] ?? ''), 'gzip')
}

/** The page of the library has inline styles; it loads nothing from elsewhere. */
const DOCS_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Of answers that are no JSON, unless the handler says another. */
const CONTENT_TYPES = { text: 'text/plain; charset=utf-8', bytes: 'application/octet-stream' } as const

type AnyHandler = (asked: unknown) => unknown

async function registerRoute(
  app: App,
  name: string,
  row: ControlRoute,
  handler: AnyHandler,
  options: HttpOptions,
): Promise<void> {
  const [method = '', path = ''] = name.split(' ')
  const route = {
    method,
    url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
    schema: schemaOf(path, row),
    bodyLimit: row.bodyBytesMax ?? CONTROL_BODY_BYTES_MAX,
    config: { route: name, isOpen: row.access === 'open' },
    // After who asks and how often, and before a byte of the body is read.
    preParsing: async (request: FastifyRequest) => admit(request, name, row.access, options),
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      const answer = await handler(askedOf(request, reply, row, options))
      // A handler may have said another status.
      if (reply.statusCode === 200) reply.code(row.status)
      if (answer === undefined) return reply.send()
      // The contract has a schema for the usual status; errors pass elsewhere (sendProblem).
      if (row.gives === undefined && reply.statusCode !== row.status)
        reply.type('application/json; charset=utf-8').serializer((value: unknown) => JSON.stringify(value))
      const type = row.gives === undefined ? undefined : CONTENT_TYPES[row.gives]
      if (type !== undefined && !reply.hasHeader('content-type')) reply.type(type)
      return reply.send(answer)
    },
  }
  if (row.takes !== 'bytes') {
    app.route(route)
    return
  }
  await app.register(async (bytes: App) => {
    bytes.removeAllContentTypeParsers()
    bytes.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    bytes.route(route)
  })
}

function schemaOf(path: string, row: ControlRoute): FastifySchema & { [name: string]: unknown } {
  const answers = row.gives === undefined && row.status !== 204 ? { [row.status]: row.response } : {}
  return {
    summary: row.summary,
    description: `Access: ${row.access}.`,
    tags: [path.startsWith('/api/v1/') ? (path.split('/')[3] ?? '') : (path.split('/')[1] ?? '')],
    security: row.access === 'open' ? [] : [{ token: [] }, { session: [] }],
    ...(row.params && { params: row.params }),
    ...(row.query && { querystring: row.query }),
    ...(row.body && row.takes !== 'bytes' && { body: row.body }),
    response: { ...answers, default: problemBody.describe('Refused or failed, as application/problem+json.') },
  }
}

/** Whether a caller may ask this; the refusal of a change by somebody known goes into the audit log. */
async function admit(
  request: FastifyRequest,
  name: string,
  access: ControlRoute['access'],
  options: HttpOptions,
): Promise<void> {
  const { asker, session, fault } = request.visitor
  const isChange = request.method !== 'GET' && request.method !== 'HEAD'
  if (isChange && isForeignPage(request.headers, options)) throw foreignPage(options)
  if (access === 'open') return
  if (asker.kind === 'nobody') {
    options.onRefusal('unauthenticated')
    if (fault === 'token')
      throw new ProblemError(401, 'invalid-token', 'The API token is unknown, revoked or expired.', {
        hint: 'Make a new one under Settings, API tokens.',
        more: { error: 'invalid token' },
      })
    throw new ProblemError(
      401,
      fault === 'session' ? 'session-ended' : 'not-signed-in',
      fault === 'session' ? 'Your session has ended.' : 'You are not signed in.',
      {
        hint: 'Sign in, or send an API token as Authorization: Bearer.',
        more: { error: 'missing authorization header' },
      },
    )
  }
  if (isChange && session !== undefined && !isSame(request.headers['x-csrf'], session.csrf)) {
    options.onRefusal('cross-site')
    throw new ProblemError(403, 'csrf', 'The change does not show that it comes from the console.', {
      hint: 'Reload the page; programs send x-csrf with the value of GET /api/v1/me, or use an API token.',
    })
  }
  if (mayAsk(asker, access, session)) return
  options.onRefusal('forbidden')
  if (isChange)
    await options.audit({
      asker,
      address: request.ip,
      requestId: request.id,
      action: name,
      target: cut(request.url),
      result: 'refused',
      detail: `needs ${access}, is ${asker.role}`,
    })
  throw new ProblemError(403, 'forbidden', `This needs ${ACCESS_SAYS[access]}; you are ${asker.role}.`, {
    hint: access === 'session' ? 'Sign in as a person.' : 'Ask an admin for the role, or for somebody to do it.',
    more: { error: 'insufficient permissions' },
  })
}

const ACCESS_SAYS = {
  session: 'somebody who is signed in',
  viewer: 'the viewer role',
  query: 'the viewer role or a client token',
  operator: 'the operator role',
  admin: 'the admin role',
} as const

function askedOf(request: FastifyRequest, reply: FastifyReply, row: ControlRoute, options: HttpOptions): unknown {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort()
  })
  const isStream = row.takes === 'bytes'
  return {
    params: request.params,
    query: request.query,
    body: isStream ? undefined : request.body,
    // Without a body there is no parser either, and nothing to read.
    stream: isStream ? (request.body instanceof Readable ? request.body : Readable.from([])) : undefined,
    asker: request.visitor.asker,
    session: request.visitor.session,
    isSecure: request.protocol === 'https' || options.baseUrl().startsWith('https:'),
    origin: `${request.protocol}://${request.headers.host ?? ''}`,
    address: request.ip,
    requestId: request.id,
    signal: gone.signal,
    headers: request.headers,
    reply: {
      header: (name: string, value: string) => void reply.header(name, value),
      status: (code: number) => void reply.code(code),
    },
  }
}

function isKnown(request: FastifyRequest): boolean {
  return request.visitor.asker.kind !== 'nobody'
}

/**
 * Whether the Host header names this control plane. A page of another site whose name was made to point here
 * (DNS rebinding) sends its own name.
 */
export function isOwnHost(request: IncomingMessage, options: Pick<HttpOptions, 'allowedHosts' | 'baseUrl'>): boolean {
  const host = URL.parse(`http://${request.headers.host ?? ''}`)?.hostname
  if (host === undefined || host === '') return false
  const address = request.socket.localAddress ?? ''
  const own = bare(address)
  if (bare(host) === own) return true
  if (isLoopback(own) && (host === 'localhost' || (isIP(bare(host)) !== 0 && isLoopback(bare(host))))) return true
  const base = options.baseUrl()
  return (base !== '' && URL.parse(base)?.hostname === host) || options.allowedHosts().includes(host)
}

/**
 * Who opens a WebSocket. The same doors as for requests, which upgrades do not pass.
 *
 * @throws ProblemError
 */
export async function admitUpgrade(request: IncomingMessage, options: HttpOptions): Promise<Visitor> {
  if (!isOwnHost(request, options)) throw foreignHost(request, options)
  if (isForeignPage(request.headers, options)) throw foreignPage(options)
  const address = request.socket.remoteAddress ?? ''
  const wait = options.upgradeFailures.waitSeconds(address)
  if (wait > 0) {
    options.onRefusal('too-many')
    throw tooManyTries(wait, 'live channels that were refused')
  }
  const visitor = await options.access.identify(request.headers, address)
  if (mayAsk(visitor.asker, 'viewer')) return visitor
  options.upgradeFailures.failed(address)
  options.onRefusal('unauthenticated')
  throw new ProblemError(401, 'not-signed-in', 'You are not signed in.', {
    hint: 'Sign in, or send an API token as Authorization: Bearer.',
  })
}

function foreignHost(request: IncomingMessage, options: HttpOptions): ProblemError {
  options.onRefusal('host')
  const host = cut(request.headers.host)
  return new ProblemError(421, 'foreign-host', `This control plane is not reached as ${host}.`, {
    hint: 'Use its own address, or add the name to allowed_hosts of its configuration.',
  })
}

function foreignPage(options: HttpOptions): ProblemError {
  options.onRefusal('cross-site')
  return new ProblemError(403, 'cross-site', 'This came from a page of another site.', {
    hint: 'Use the console, or a program with an API token.',
  })
}

/** An address without brackets, and IPv4 as itself. */
function bare(address: string): string {
  return address.replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:(?=\d+\.)/, '')
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^127\./.test(address)
}

/** Whether a browser says that another site's page asks. Programs say nothing of the kind. */
export function isForeignPage(headers: IncomingHttpHeaders, { baseUrl }: Pick<HttpOptions, 'baseUrl'>): boolean {
  const { origin, host } = headers
  const fetchSite = headers['sec-fetch-site']
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') return true
  if (origin === undefined) return false
  const page = URL.parse(origin)
  if (page === null) return true
  const base = baseUrl()
  return (
    page.host !== URL.parse(`${page.protocol}//${host ?? ''}`)?.host &&
    (base === '' || page.origin !== URL.parse(base)?.origin)
  )
}

function isSame(given: string | string[] | undefined, wanted: string): boolean {
  if (typeof given !== 'string') return false
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** The one place where an error becomes an answer. */
function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = isGone(error, request) ? GONE : problemOf(error)
  const { status } = problem
  if (status >= 500)
    request.log.error({ err: error, requestId: request.id, path: request.routeOptions?.url }, 'a request failed')
  // What is refused before it has a path passes no hook.
  reply.header('x-request-id', request.id)
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  const wait = problem.more['retryAfterSeconds']
  if (typeof wait === 'number') reply.header('retry-after', String(wait))
  const { error: word, ...more } = problem.more
  const body: Problem & { [name: string]: unknown } = {
    ...more,
    status,
    code: problem.code,
    title: STATUS_CODES[status] ?? 'Error',
    detail: problem.message,
    hint: problem.hint,
    ...(problem.field !== undefined && { field: problem.field }),
    requestId: request.id,
    // Tools of the cluster management interface look for this (platform.md §7.3).
    ...(!request.url.startsWith('/api/') && { error: word ?? problem.message }),
  }
  return reply
    .code(status)
    .type('application/problem+json; charset=utf-8')
    .serializer((value: unknown) => JSON.stringify(value))
    .send(body)
}

/** The caller went away in the middle of what it sent: no fault of ours, and nobody hears the answer. */
function isGone(error: unknown, { raw }: FastifyRequest): boolean {
  return raw.destroyed && !raw.complete && (error as NodeJS.ErrnoException | undefined)?.code === 'ECONNRESET'
}

const GONE = new ProblemError(400, 'incomplete', 'The request ended before all of it had come.', {
  hint: 'Send it again.',
})

function problemOf(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error
  if (hasZodFastifySchemaValidationErrors(error)) {
    const [first] = error.validation
    const path = (first?.instancePath ?? '').replace(/^\//, '').replaceAll('/', '.')
    const place = path === '' ? (error.validationContext ?? 'the request') : path
    return new ProblemError(400, 'invalid-request', cut(`${place}: ${first?.message ?? 'is not valid'}`, 500), {
      hint: 'What each path takes is listed at /docs.',
      ...(path !== '' && { field: path }),
    })
  }
  if (error instanceof VacancyError) {
    const { http } = errorRow(error.code)
    return new ProblemError(http, error.code.replaceAll('_', '-'), error.message, { cause: error })
  }
  const { statusCode = 500, code, message } = error as FastifyError
  if (statusCode < 500 && !isResponseSerializationError(error))
    return new ProblemError(
      statusCode,
      (code ?? 'invalid-request')
        .toLowerCase()
        .replace(/^fst_err_/, '')
        .replaceAll('_', '-'),
      cut(message, 500),
      {
        hint: HINTS[statusCode] ?? 'What each path takes is listed at /docs.',
      },
    )
  return new ProblemError(500, 'internal', 'A fault in the control plane; it is in its log.', {
    hint: 'Give the request id to whoever runs it.',
    cause: error,
  })
}

const HINTS: { readonly [status: number]: string } = {
  413: 'Send less at once.',
  415: 'Send JSON, as content-type: application/json.',
}

/** What came from outside, short enough to be told. */
function cut(text: string | undefined, most = 120): string {
  const clean = (text ?? 'nothing').replaceAll(/\p{Cc}/gu, ' ')
  return clean.length > most ? `${clean.slice(0, most)}…` : clean
}

/** Connections to come use this certificate. @throws when it cannot be used, and the one before stays */
export function setTls(app: App, tls: TlsMaterial): void {
  assert(app.server instanceof TlsServer, 'a listener without TLS has no certificate to change')
  app.server.setSecureContext(secureContextOf(tls))
}

/** The address that a listening server can be reached at from this machine. */
export function listeningUrl(app: App): string {
  const { address, port, family } = app.server.address() as AddressInfo
  const host =
    address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '[::1]' : family === 'IPv6' ? `[${address}]` : address
  return `${app.server instanceof TlsServer ? 'https' : 'http'}://${host}:${port}`
}
