import { CONSUMER_PATH, consumerUpgrade, endsOf, type Partition, putProducersInFront } from '@vacancy/queue'
import type { Clock } from '@vacancy/shared'
import { admitUpgrade } from '@vacancy/shared/api/admission'
import { registerModules } from '@vacancy/shared/api/modules'
import { type App, HTTP_LIMITS, type HttpOptions } from '@vacancy/shared/api/options'
import { type ControlModule, moduleOf } from '@vacancy/shared/api/route'
import { createHttp, type Listening, listen, listeningUrl, openListenerTls, setTls } from '@vacancy/shared/api/server'
import { dispatchUpgrades, type Upgrade } from '@vacancy/shared/api/upgrades'
import { ACCESS_ROUTES, LIVE, type PersonRole, PLAYGROUND_ROUTES } from '@vacancy/shared/contract'
import {
  createFailureLimiter,
  followConnections,
  openTracing,
  spanCounts,
  type TlsStore,
  type Tracing,
} from '@vacancy/shared/node'
import type { Logger } from 'pino'
import { identify, isValidKey } from './access/identify.ts'
import { setUpCode, signInCode } from './access/people.ts'
import { accessHandlers } from './access/routes.ts'
import { deleteExpiredAccess } from './access/sessions.ts'
import { openSettings } from './access/settings.ts'
import { clientModule } from './client-package.ts'
import { endSeeds, queueSeeds } from './cluster/attention-sources.ts'
import { clusterRoutes } from './cluster/cluster-module.ts'
import { addAttentionSource, addValueSource } from './cluster/cluster-state.ts'
import type { ControlConfig } from './config.ts'
import { databaseOf, lockFolders, makeFolders } from './data-folder.ts'
import { openDatabase } from './database/database.ts'
import { goldenRoutes } from './golden/golden-module.ts'
import type { Values } from './history/series.ts'
import { mountWeb } from './http/web.ts'
import { importsRoutes } from './imports/imports-module.ts'
import { acceptClient, stopLive } from './live/live.ts'
import { createParts, type Parts, type Tables } from './parts.ts'
import { countClients, probesModule } from './probes/probes-module.ts'
import { createProgram, ownEnds, programModule } from './program.ts'
import { type MountedQueue, mountQueue } from './queue/mounted.ts'
import { type RemoteQueue, remoteQueueModule } from './queue/remote.ts'

/** How often expired records are deleted. */
const SWEEP_MS = 3_600_000

export type ControlPlane = {
  /** `http://host:port` of the listener. */
  readonly url: string
  /** The address that browsers use: the base address, or the listener's. */
  readonly origin: string
  readonly people: {
    /** The code of a new set-up link, while there is no person. */
    readonly setUpCode: () => Promise<string | undefined>
    /** A one-time sign-in code. With a role, a person with an unknown name is added. */
    readonly signInCode: (name: string, create?: PersonRole) => Promise<string>
  }
  /** Reloads the certificate. @throws VacancyError invalid_tls; the previous one stays in use */
  readonly reload: () => void
  readonly stop: () => Promise<void>
}

type ControlPlaneOptions = {
  readonly config: ControlConfig
  readonly clock: Clock
  readonly log: Logger
  /** NODE_ENV=production: the console must have been built. */
  readonly isProduction: boolean
}

/** Close functions of everything that is open; run in reverse order. */
type Closers = (() => Promise<void>)[]

/**
 * Starts the control plane.
 *
 * @throws VacancyError port_taken, invalid_tls, or the reason why the database cannot be opened
 */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const closers: Closers = []
  try {
    return await openControlPlane(options, closers)
  } catch (error) {
    await closeAll(closers)
    throw error
  }
}

async function closeAll(closers: Closers): Promise<void> {
  for (const closer of closers.splice(0).reverse()) await closer()
}

async function openControlPlane(options: ControlPlaneOptions, closers: Closers): Promise<ControlPlane> {
  const { config, log } = options
  const tracing = await openTracing(config, 'vacancy-control-plane', log)
  if (tracing !== undefined) closers.push(tracing.close)
  const program = createProgram(options)
  const listener: Listener = { app: undefined, url: '' }
  const tls = openListenerTls(options, listener)
  if (tls !== undefined) closers.push(async () => tls.close())
  const folders = makeFolders(config)
  closers.push(lockFolders(config, folders))
  const database = await openDatabase<Tables>(databaseOf(config), (error) =>
    log.warn({ err: error }, 'database connection lost'),
  )
  closers.push(() => database.destroy())
  const settings = await openSettings(database, config)
  const baseUrl = (): string => settings.baseUrl() || listener.url
  const parts = createParts({ options, program, folders, database, settings, baseUrl })
  const { live, access, accounts, audit } = parts
  const queue =
    config.queue && config.queueUrl === ''
      ? await mountQueue({ ...options, access, audit, tracing, address: baseUrl })
      : undefined
  if (queue !== undefined) {
    closers.push(queue.stop)
    addValueSource(
      parts.cluster,
      queueValues(queue.node.server.partitions, () => options.clock.monotonicMs()),
    )
    addAttentionSource(parts.cluster, () => queueSeeds(queue.fault(), queue.topics()))
  }

  const measured = { tls, queue: measuredQueue(queue, options.clock) }
  addAttentionSource(parts.cluster, () => endSeeds(ownEnds(measured, [], options.clock.wallMs())))

  const http = httpOptions(options, parts, tls, tracing)
  const app = await createHttp(http)
  const endConnections = followConnections(app.server)
  // The files may have changed since they were read at the start.
  if (tls !== undefined) setTls(app, tls.material())
  listener.app = app
  const modules: readonly ControlModule[] = [
    programModule(program, {
      access,
      live,
      collector: parts.cluster.collector,
      clients: () => countClients(parts.probes),
      ...measured,
      spans: () => spanCounts(tracing),
    }),
    clientModule,
    moduleOf(
      'access',
      ACCESS_ROUTES,
      accessHandlers(accounts, () => queue?.fileTokens()),
    ),
    clusterRoutes(parts.cluster),
    moduleOf('playground', PLAYGROUND_ROUTES, parts.playground.handlers, { stop: parts.playground.stop }),
    importsRoutes(parts.imports),
    goldenRoutes(parts.golden),
    probesModule(parts.probes),
    ...(queue !== undefined ? [queue.module] : remoteQueue(config, parts)),
  ]
  await registerModules(app, modules, http)
  const web = config.web ? await mountWeb(app, options.isProduction) : undefined
  if (web !== undefined) closers.push(web.close)
  const upgrades = new Map<string, Upgrade>([[LIVE.path, liveUpgrade(parts, http)]])
  if (queue !== undefined) {
    upgrades.set(CONSUMER_PATH, consumerUpgrade(queue.node))
    putProducersInFront(app, queue.node)
  }
  dispatchUpgrades(app, upgrades, web, (error) => log.error({ err: error }, 'opening a WebSocket failed'))
  await startModules(modules, closers)
  await startSweeping(options, parts, closers)
  await listen(app, config)
  closers.push(() => closeListener(app, () => endConnections(config.drainSecs * 1000)))
  listener.url = listeningUrl(app)
  closers.push(() => stopLive(live))
  // First of all, while it is reachable: consumers finish what they hold.
  if (queue !== undefined) closers.push(queue.stop)
  return {
    url: listener.url,
    origin: baseUrl(),
    people: {
      setUpCode: () => setUpCode(accounts),
      signInCode: (name, create) => signInCode(accounts, name, create),
    },
    reload: () => {
      tls?.reload()
      queue?.node.tokens?.reload()
    },
    stop: async () => {
      program.readiness.set('stopping', 'The control plane is shutting down.')
      await closeAll(closers)
    },
  }
}

/** The listening server, once it exists. */
type Listener = Listening & { url: string }

function httpOptions(
  { config, log, clock }: ControlPlaneOptions,
  parts: Parts,
  tls: TlsStore | undefined,
  tracing: Tracing | undefined,
): HttpOptions {
  const { access, audit, settings, program } = parts
  const { of } = program.metrics
  return {
    log,
    identify: (headers, address) => identify(access, headers, address),
    connectionsMax: config.maxConnections,
    keepAliveMs: config.keepAliveSec * 1000,
    audit: audit.write,
    tls: tls?.material(),
    hstsDays: config.hstsDays,
    trustProxy: config.trustProxy,
    allowedHosts: () => config.allowedHosts,
    baseUrl: () => settings.baseUrl(),
    tracing,
    upgradeFailures: createFailureLimiter(clock, HTTP_LIMITS.upgradesRefusedMax),
    onAnswer: (route, status, seconds) => {
      of.control_http_requests_total.inc({ route, status: String(status) })
      of.control_http_request_seconds.observe({ route }, seconds)
    },
    onRefusal: (reason) => of.control_refused_total.inc({ reason }),
  }
}

/** Of a queue elsewhere, or none. */
function remoteQueue(
  { queue: isServed, queueUrl, queueToken }: ControlConfig,
  { audit, cluster }: Parts,
): readonly ControlModule[] {
  if (!isServed) return []
  const found: RemoteQueue = { fault: '', topics: [] }
  addAttentionSource(cluster, () => queueSeeds(found.fault, found.topics))
  return [remoteQueueModule({ url: queueUrl.replace(/\/$/, ''), token: queueToken, audit }, found)]
}

function measuredQueue(queue: MountedQueue | undefined, clock: Clock) {
  return queue === undefined
    ? undefined
    : {
        fault: queue.fault,
        ends: () => endsOf(queue.node, undefined, clock.wallMs()),
        metrics: () => queue.node.metrics.text(),
      }
}

function liveUpgrade({ live, access }: Parts, http: HttpOptions): Upgrade {
  return async (request, socket, head) => {
    const { key } = await admitUpgrade(request, http)
    acceptClient(live, request, socket, head, { key, check: () => isValidKey(access, key) })
  }
}

/** Started modules are stopped even if a later one fails to start. */
async function startModules(modules: readonly ControlModule[], closers: Closers): Promise<void> {
  for (const module of modules) {
    await module.start?.()
    closers.push(async () => await module.stop?.())
  }
}

/** Deletes expired records now and each hour. */
async function startSweeping(
  { config, log }: ControlPlaneOptions,
  { access, audit, playground }: Parts,
  closers: Closers,
): Promise<void> {
  const sweep = async () => {
    try {
      await deleteExpiredAccess(access)
      await audit.prune(config.auditKeepDays)
      await playground.sweep()
    } catch (error) {
      // Retried in an hour.
      log.error({ err: error }, 'deleting expired records failed')
    }
  }
  const sweeping = setInterval(() => void sweep(), SWEEP_MS)
  closers.push(async () => clearInterval(sweeping))
  await sweep()
}

/** Stops accepting requests and finishes those in flight; after the drain time, remaining connections are closed. */
async function closeListener(app: App, endConnections: () => void): Promise<void> {
  const closed = app.close()
  endConnections()
  await closed
}

type Totals = { readonly at: number; readonly accepted: number; readonly finished: number; readonly failed: number }

/** @returns reads the figures; rates are those since the read before, none when the queue was loaded in between */
function queueValues(partitions: readonly Partition[], monotonicMs: () => number): () => Values {
  let before: Totals | undefined
  return () => {
    const queues = partitions.flatMap(({ queue }) => queue ?? [])
    if (queues.length === 0) {
      before = undefined
      return {}
    }
    const topics = queues.flatMap((queue) => [...queue.topics.values()])
    const sum = (of: (topic: (typeof topics)[number]) => number) => topics.reduce((all, topic) => all + of(topic), 0)
    const now: Totals = {
      at: monotonicMs(),
      accepted: sum(({ totals }) => totals.accepted),
      finished: sum(({ totals }) => totals.acked + totals.lateAcked),
      failed: sum(({ totals }) => totals.nacked + totals.expired),
    }
    const last = before
    before = now
    const rate = (name: 'accepted' | 'finished' | 'failed') =>
      last && now.at > last.at && now[name] >= last[name]
        ? ((now[name] - last[name]) / (now.at - last.at)) * 1_000
        : null
    return {
      queue_ready: sum(({ counts }) => counts.ready),
      queue_leased: sum(({ counts }) => counts.leased),
      queue_delayed: sum(({ counts }) => counts.delayed),
      queue_dead: sum(({ counts }) => counts.dead),
      queue_in: rate('accepted'),
      queue_out: rate('finished'),
      queue_failed: rate('failed'),
      queue_consumers: queues.reduce((all, { consumers }) => all + consumers.size, 0),
    }
  }
}
