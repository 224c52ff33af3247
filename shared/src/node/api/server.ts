/** The HTTP server of the control plane: the instance, and the headers, hooks and limits shared by all paths. */
import { randomUUID } from 'node:crypto'
import { type AddressInfo, Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import cookies from '@fastify/cookie'
import helmet from '@fastify/helmet'
import fastify, {
  type FastifyBaseLogger,
  type FastifyReply,
  type FastifyRequest,
  type FastifySchemaCompiler,
  LogController,
} from 'fastify'
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod'
import type { Logger } from 'pino'
import type { z } from 'zod'
import { CONTROL_BODY_BYTES_MAX, unknownField, unknownFieldText } from '../../contract/index.ts'
import { assert, type Clock, VacancyError } from '../../index.ts'
import { warnOfDescriptors } from '../descriptors.ts'
import {
  beginTrace,
  dropRest,
  LISTENER_LIMITS,
  openTls,
  refusedHeadOf,
  secureContextOf,
  type TlsMaterial,
  type TlsStore,
  VERSION,
} from '../index.ts'
import { foreignHost, isOwnHost, isProbe } from './admission.ts'
import { problem } from './errors.ts'
import { type App, HTTP_LIMITS, type HttpOptions } from './options.ts'
import { cut, refusalOfHead, refuseBytes, sendProblem } from './problems.ts'

const DAY_SECONDS = 86_400

/** An instance without paths. */
export async function createHttp(options: HttpOptions): Promise<App> {
  const { tls } = options
  const limits = {
    maxHeaderSize: LISTENER_LIMITS.headBytesRead,
    headersTimeout: HTTP_LIMITS.headersMs,
    connectionsCheckingInterval: HTTP_LIMITS.checkMs,
  }
  const app: App = fastify({
    loggerInstance: options.log as unknown as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    trustProxy: options.trustProxy.length === 0 ? false : [...options.trustProxy],
    bodyLimit: CONTROL_BODY_BYTES_MAX,
    requestTimeout: HTTP_LIMITS.requestMs,
    keepAliveTimeout: options.keepAliveMs,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 512 },
    genReqId: () => randomUUID(),
    ...(tls === undefined
      ? { http: limits }
      : { https: { ...limits, handshakeTimeout: HTTP_LIMITS.headersMs, ...secureContextOf(tls) } }),
    clientErrorHandler: refuseBytes,
    frameworkErrors: (error, request, reply) => sendProblem(error, request as FastifyRequest, reply as FastifyReply),
  })
  app.server.maxConnections = options.connectionsMax
  warnOfDescriptors(options.log, options.connectionsMax)
  app.setValidatorCompiler(compileStrictly)
  app.setSerializerCompiler(serializerCompiler)
  app.setErrorHandler(sendProblem)
  app.setNotFoundHandler((request, reply) =>
    sendProblem(
      problem('no-such-path', { detail: `There is no ${request.method} ${cut(request.url.split('?', 1)[0])}.` }),
      request,
      reply,
    ),
  )
  // Forms of other sites can post these content types without a preflight request; no path accepts them.
  app.removeContentTypeParser('text/plain')
  app.decorateRequest('visitor')
  app.decorateRequest('trace')
  addTraces(app, options)
  await addSecurity(app, options)
  return app
}

/** Refuses what no schema reads, such as a misspelt field; the schemas alone would drop it. */
const compileStrictly: FastifySchemaCompiler<z.ZodType> = (route) => {
  const check = validatorCompiler(route)
  const kind = route.httpPart === 'querystring' ? 'parameter' : 'field'
  return (input: unknown) => {
    const unknown = unknownField(route.schema, input)
    if (unknown === undefined) return check(input)
    const [detail, field] = [unknownFieldText(unknown, kind), unknown.path.join('.')]
    return { error: problem('invalid-request', { detail: cut(detail, 500), field: cut(field) }) }
  }
}

/** First of all hooks, so that requests that others refuse have a span, too. Probes are no part of a trace. */
function addTraces(app: App, { tracing }: HttpOptions): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const traceparent = request.headers['traceparent'] as string | undefined
    if (!isProbe(request.url)) request.trace = beginTrace(tracing, traceparent, routeOf(request))
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const span = request.trace?.span
    if (span !== undefined) {
      span.set({
        'http.request.method': request.method,
        'url.path': request.url.split('?', 1)[0],
        'http.response.status_code': reply.statusCode,
        request_id: request.id,
      })
      span.end(reply.statusCode >= 500 ? `status ${reply.statusCode}` : '')
    }
    done()
  })
}

/** `METHOD /path` of the contract; all pages of the console are one. */
function routeOf({ routeOptions }: FastifyRequest): string {
  return routeOptions.config?.route ?? (routeOptions.url === undefined ? 'none' : 'pages')
}

/** Headers of every response, and the check of the Host header. The paths of all plugins inherit these hooks. */
async function addSecurity(app: App, options: HttpOptions): Promise<void> {
  // Parses and serializes cookies; its hooks do not run for upgrades.
  await app.register(cookies, { hook: false })
  await app.register(helmet, {
    // Pages of the console set their own, with a nonce.
    contentSecurityPolicy: false,
    // HSTS applies to all ports of the name, so behind a proxy that terminates TLS the proxy decides.
    hsts: options.tls !== undefined &&
      options.hstsDays > 0 && { maxAge: options.hstsDays * DAY_SECONDS, includeSubDomains: false },
    referrerPolicy: { policy: 'no-referrer' },
    frameguard: { action: 'deny' },
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    reply.header('server', `vacancy/${VERSION}`)
    // Requests without a socket are internal, for a page whose own request passed this check.
    const isInternal = !(request.raw.socket instanceof Socket)
    if (!isInternal && !isProbe(request.url) && !isOwnHost(request.raw, options))
      throw foreignHost(request.raw, options)
    const refused = refusedHeadOf(request.raw)
    if (refused === undefined) return
    if (refused !== 'packed body') reply.header('connection', 'close')
    throw refusalOfHead(refused)
  })
  // Once the response is sent, Node reads and drops what is left without a bound.
  app.addHook('onSend', async (request) => dropRest(request.raw, HTTP_LIMITS))
  app.addHook('onResponse', async (request, reply) => {
    options.onAnswer(routeOf(request), reply.statusCode, reply.elapsedTime / 1000)
  })
}

/** A listening server, once it exists. */
export type Listening = { app: App | undefined }
type ListenerConfig = {
  readonly tlsCert: string
  readonly tlsKey: string
  readonly listenHost: string
  readonly listenPort: number
  readonly listenBacklog: number
}

/** The certificate of the listener, followed; undefined for plain HTTP. */
export function openListenerTls(
  { config, log, clock }: { readonly config: ListenerConfig; readonly log: Logger; readonly clock: Clock },
  listening: Listening,
): TlsStore | undefined {
  if (config.tlsCert === '') return undefined
  return openTls({
    files: { cert: config.tlsCert, key: config.tlsKey },
    log,
    clock,
    onReload: (material) => {
      if (listening.app !== undefined) setTls(listening.app, material)
    },
  })
}

/** @throws VacancyError port_taken */
export async function listen(app: App, { listenHost, listenPort, listenBacklog }: ListenerConfig): Promise<void> {
  try {
    await app.listen({ host: listenHost, port: listenPort, backlog: listenBacklog })
  } catch (cause) {
    const address = `${listenHost}:${listenPort}`
    throw new VacancyError('port_taken', { address, reason: (cause as Error).message }, { cause })
  }
}

/** New connections use this certificate. @throws when it is invalid; the previous one stays in use */
export function setTls(app: App, tls: TlsMaterial): void {
  assert(app.server instanceof TlsServer, 'a listener without TLS has no certificate to change')
  app.server.setSecureContext(secureContextOf(tls))
}

/** The address of a listening server as seen from this machine. */
export function listeningUrl(app: App): string {
  const { address, port, family } = app.server.address() as AddressInfo
  const host =
    address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '[::1]' : family === 'IPv6' ? `[${address}]` : address
  return `${app.server instanceof TlsServer ? 'https' : 'http'}://${host}:${port}`
}
