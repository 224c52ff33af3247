/** The job queue alone, as `vacancy queue serve`: producers and consumers, its API, health and metrics. */
import { randomBytes } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { isIPv6 } from 'node:net'
import { hostname } from 'node:os'
import { type Clock, VacancyError } from '@vacancy/shared'
import { tooManyTries } from '@vacancy/shared/api/admission'
import { registerModules } from '@vacancy/shared/api/modules'
import { type App, HTTP_LIMITS, type HttpOptions } from '@vacancy/shared/api/options'
import { type ControlModule, moduleOf, type Visitor } from '@vacancy/shared/api/route'
import { createHttp, type Listening, listen, listeningUrl, openListenerTls } from '@vacancy/shared/api/server'
import { dispatchUpgrades } from '@vacancy/shared/api/upgrades'
import { type ControlRoute, PROGRAM_ROUTES } from '@vacancy/shared/contract'
import {
  bearerToken,
  createFailureLimiter,
  createReadiness,
  endsReasons,
  followConnections,
  METRICS_CONTENT_TYPE,
  openTracing,
  type TlsStore,
} from '@vacancy/shared/node'
import type { Logger } from 'pino'
import type { ServeConfig } from './config.ts'
import {
  CONSUMER_PATH,
  consumerUpgrade,
  createQueueNode,
  endsOf,
  putProducersInFront,
  type QueueNode,
  startPartitions,
  stopQueue,
  unavailability,
} from './queue-node.ts'
import type { QueueAudit } from './queue-server.ts'
import { queueModule } from './routes.ts'
import { endOf, findQueueToken } from './tokens.ts'

export type QueueProgram = {
  /** `http://host:port`. */
  readonly url: string
  readonly node: QueueNode
  readonly reload: () => void
  readonly stop: () => Promise<void>
}

type ServeOptions = { readonly config: ServeConfig; readonly clock: Clock; readonly log: Logger }

/** @throws VacancyError when the port is taken, or the journal or the auth file cannot be used */
export async function serveQueue(options: ServeOptions): Promise<QueueProgram> {
  const { config, log, clock } = options
  makeAuthFile(config.authFile, log)
  const tracing = await openTracing(config, 'vacancy-queue', log)
  const holder: Listening = { app: undefined }
  const tls = openListenerTls(options, holder)
  let port = config.listenPort
  const node = createQueueNode({
    config,
    dataDir: config.dataDir,
    databaseUrl: config.databaseUrl,
    address: () => (port === 0 ? '' : advertised(config, port)),
    clock,
    log,
    isAlone: true,
    others: undefined,
    isOtherGood: undefined,
    trustProxy: config.trustProxy,
    tracing,
  })
  // While the thread of the journal starts, this one prepares its listener.
  const [, app] = await Promise.all([startPartitions(node), openApp(options, node, tls)]).catch(async (error) => {
    await stopQueue(node)
    throw error
  })
  holder.app = app
  const endConnections = followConnections(app.server)
  try {
    await listen(app, config)
  } catch (error) {
    await stopQueue(node)
    throw error
  }
  const url = listeningUrl(app)
  port = Number(new URL(url).port)
  return {
    url,
    node,
    reload: () => {
      node.tokens?.reload()
      tls?.reload()
    },
    stop: async () => {
      await stopQueue(node)
      const closed = app.close()
      endConnections(0)
      await closed
      tls?.close()
      await tracing?.close()
    },
  }
}

/** Without advertise_url: the address to listen on, or the name of this machine if it listens on all of them. */
function advertised({ listenHost, tlsCert }: ServeConfig, port: number): string {
  const isAny = listenHost === '0.0.0.0' || listenHost === '::'
  const host = isAny ? hostname() : isIPv6(listenHost) ? `[${listenHost}]` : listenHost
  return `${tlsCert === '' ? 'http' : 'https'}://${host}:${port}`
}

/** A first start makes tokens, so that it is usable at once. */
function makeAuthFile(file: string, log: Logger): void {
  if (existsSync(file)) return
  const lines = ['producer', 'consumer', 'admin'].map(
    (role) => `  - { token: ${randomBytes(24).toString('base64url')}, role: ${role}, name: ${role} }`,
  )
  try {
    writeFileSync(file, `tokens:\n${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    throw new VacancyError(
      'invalid_tokens',
      { reason: `${file}: cannot be created: ${(cause as Error).message}` },
      { cause },
    )
  }
  log.warn({ file }, 'created an auth file with a token for each role')
}

async function openApp(options: ServeOptions, node: QueueNode, tls: TlsStore | undefined): Promise<App> {
  const { config, log, clock } = options
  const http = httpOptions(options, node, tls)
  const app = await createHttp(http)
  // The id makes each message differ: a log drops repeats.
  const audit: QueueAudit = async ({ principal, address, requestId }, action, target, detail) =>
    log.info({ by: principal.name, address, action, target, detail }, `queue changed by request ${requestId}`)
  const queue = queueModule({
    server: node.server,
    consumers: node.consumers,
    audit,
    dataDir: config.dataDir,
    node: hostname(),
    isSynced: node.isSynced,
  })
  await registerModules(app, [programModule(node, config, clock, tls), queue], http)
  putProducersInFront(app, node)
  dispatchUpgrades(app, new Map([[CONSUMER_PATH, consumerUpgrade(node)]]), undefined, (error) =>
    log.error({ err: error }, 'opening a WebSocket failed'),
  )
  return app
}

function httpOptions({ config, log, clock }: ServeOptions, node: QueueNode, tls: TlsStore | undefined): HttpOptions {
  return {
    log,
    identify: (headers, address) => identify(node, headers, address),
    connectionsMax: config.maxConnections,
    keepAliveMs: config.keepAliveSec * 1000,
    audit: async ({ action, target, detail, requestId }) =>
      log.warn({ action, target, detail }, `queue change refused, request ${requestId}`),
    tls: tls?.material(),
    hstsDays: 0,
    trustProxy: config.trustProxy,
    allowedHosts: () => config.allowedHosts,
    baseUrl: () => '',
    tracing: node.server.tracing,
    upgradeFailures: createFailureLimiter(clock, HTTP_LIMITS.upgradesRefusedMax),
    onAnswer: () => undefined,
    onRefusal: () => undefined,
  }
}

/** Programs only: a bearer token of the auth file. @throws ProblemError 429 after too many unknown ones */
async function identify(
  { server }: QueueNode,
  { authorization }: IncomingHttpHeaders,
  address: string,
): Promise<Visitor> {
  const anonymous = {
    principal: { kind: 'anonymous', id: '', name: '', role: undefined },
    key: '',
    session: undefined,
  } as const
  if (authorization === undefined) return { ...anonymous, fault: '' }
  const text = bearerToken(authorization)
  const token = text === undefined ? undefined : await findQueueToken(server.access, text, address)
  if (token === undefined) {
    server.metrics.authFailures++
    const wait = server.access.failures.waitSeconds(address)
    if (wait > 0) throw tooManyTries(wait, 'invalid tokens')
    server.access.failures.failed(address)
    const detail = endOf(server.access, text)
    return { ...anonymous, fault: 'token', ...(detail && { detail }) }
  }
  const id = Buffer.from(token.hash).toString('hex').slice(0, 16)
  const principal = { kind: 'token', id, name: token.name || token.role, role: token.role } as const
  return { principal, key: id, session: undefined, fault: '' }
}

function programModule(
  node: QueueNode,
  { metricsPublic }: ServeConfig,
  clock: Clock,
  tls: TlsStore | undefined,
): ControlModule {
  const readiness = createReadiness(clock)
  const routes: { readonly [N in keyof typeof PROGRAM_ROUTES]: ControlRoute } = {
    ...PROGRAM_ROUTES,
    'GET /metrics': { ...PROGRAM_ROUTES['GET /metrics'], access: metricsPublic ? 'open' : 'viewer' },
  }
  return moduleOf('program', routes as typeof PROGRAM_ROUTES, {
    'GET /health': () => ({ status: 'ok' as const }),
    'GET /ready': ({ reply }) => {
      readiness.set('queue', unavailability(node))
      const ends = endsOf(node, tls?.material(), clock.wallMs())
      const { ready, reasons } = readiness.read()
      if (!ready) reply.status(503)
      return { ready, reasons: [...reasons.map(({ name, message }) => ({ name, message })), ...endsReasons(ends)] }
    },
    'GET /metrics': async ({ reply }) => {
      endsOf(node, tls?.material(), clock.wallMs())
      reply.header('content-type', METRICS_CONTENT_TYPE)
      return await node.metrics.text()
    },
  })
}
