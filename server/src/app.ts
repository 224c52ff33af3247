/** The control plane put together: opens everything in order, closes it in reverse. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Clock, VacancyError } from '@vacancy/shared'
import { ACCESS_ROUTES, LIVE, PLAYGROUND_ROUTES, PROGRAM_ROUTES } from '@vacancy/shared/contract'
import {
  createFailureLimiter,
  createReadiness,
  METRICS_CONTENT_TYPE,
  openTls,
  registerMetrics,
  setTotal,
  VERSION,
} from '@vacancy/shared/node'
import type { Logger } from 'pino'
import { createAccess } from './access.ts'
import { createAudit } from './audit.ts'
import { createClusterArea } from './cluster/area.ts'
import type { ControlConfig } from './config.ts'
import { isPostgres, openDatabase } from './database.ts'
import {
  type App,
  admitUpgrade,
  createHttp,
  HTTP_LIMITS,
  type HttpOptions,
  listeningUrl,
  registerAreas,
  setTls,
} from './http.ts'
import { createImportsArea } from './imports/area.ts'
import { createInventory } from './inventory/inventory.ts'
import { createLive } from './live.ts'
import { CONTROL_METRICS } from './metrics.ts'
import { createPeople, type People } from './people.ts'
import { type Area, areaOf } from './route.ts'
import { openSettings } from './settings.ts'
import { dispatchUpgrades, mountWeb, type Upgrade } from './web.ts'

/** How often what ended by itself is deleted. */
const SWEEP_MS = 3_600_000
/** The database has this long to answer before it counts as gone. */
const DATABASE_MS = 2_000

export type ControlPlane = {
  /** `http://host:port` of the listener. */
  readonly url: string
  /** Under which browsers come: the base address, or the listener's. */
  readonly origin: string
  readonly people: People
  /** Reads the certificate again. @throws VacancyError invalid_tls, and the one before stays in force */
  readonly reload: () => void
  readonly stop: () => Promise<void>
}

/**
 * Starts the control plane.
 *
 * @throws VacancyError port_taken, invalid_tls, or what keeps the database from opening
 */
export async function startControlPlane(options: {
  readonly config: ControlConfig
  readonly clock: Clock
  readonly log: Logger
  /** NODE_ENV=production: the console must have been built. */
  readonly isProduction: boolean
}): Promise<ControlPlane> {
  const { config, clock, log } = options
  const closers: (() => Promise<void>)[] = []
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    return await open()
  } catch (error) {
    await close()
    throw error
  }

  async function open(): Promise<ControlPlane> {
    const startedAt = new Date(clock.wallMs()).toISOString()
    const readiness = createReadiness(clock)
    const metrics = registerMetrics(CONTROL_METRICS, { process: true })

    let listener: App | undefined
    const tls =
      config.tlsCert === ''
        ? undefined
        : openTls({
            files: { cert: config.tlsCert, key: config.tlsKey },
            log,
            clock,
            onReload: (material) => {
              if (listener !== undefined) setTls(listener, material)
            },
          })
    if (tls !== undefined) closers.push(async () => tls.close())
    const clusterFolder = join(config.dataDir, 'cluster')
    const importsFolder = config.importsDir === '' ? join(config.dataDir, 'imports') : config.importsDir
    for (const folder of [clusterFolder, importsFolder]) makeFolder(folder)
    closers.push(lockFolder(config.dataDir))
    const database = await openDatabase(databaseOf(config), (error) =>
      log.warn({ err: error }, 'a connection to the database broke'),
    )
    closers.push(() => database.destroy())
    const settings = await openSettings(database, config)
    const live = createLive({ server: VERSION, log, clock })
    const audit = createAudit(database, clock, () => live.touch('audit'))
    live.offer(/^audit$/, async () => ({ total: await audit.total() }))
    const access = createAccess({ database, clock, sessionIdleMs: config.sessionIdleHours * 3_600_000 })
    access.onEnd(live.end)
    let url = ''
    const baseUrl = (): string => settings.baseUrl() || url
    const cluster = createClusterArea(
      {
        registry: given(config.registry),
        resolver: given(config.resolver),
        nodes: config.nodes,
        apiPort: config.nodeApiPort,
        tcpPort: config.nodeTcpPort,
        tokens: {
          monitoring: given(config.nodeMonitoringToken),
          client: given(config.nodeClientToken),
          admin: given(config.nodeAdminToken),
          registry: given(config.registryToken),
        },
        folder: clusterFolder,
      },
      { database, live, audit: audit.write, log, clock, environment: settings.environment, baseUrl },
    )
    const clientToken = given(config.nodeClientToken)
    const inventory = createInventory({
      cluster: cluster.cluster,
      database,
      audit: audit.write,
      log,
      clock,
      connection: clientToken === undefined ? {} : { token: clientToken },
    })
    const imports = createImportsArea(
      {
        folder: importsFolder,
        importFolder: config.importFolder,
        registry: config.registry,
        registryToken: config.registryToken,
      },
      { database, live, audit: audit.write, log, clock, cluster: cluster.cluster, baseUrl },
    )
    cluster.kinds.set('install', imports.kinds.install)
    cluster.kinds.set('undo-install', imports.kinds['undo-install'])
    cluster.onRunning(imports.running)
    const people = createPeople({
      database,
      clock,
      access,
      audit,
      settings,
      facts: () => ({
        database: isPostgres(config.databaseUrl) ? 'postgresql' : 'sqlite',
        registry: given(config.registry) ?? null,
        resolver: given(config.resolver) ?? null,
        nodes: cluster.cluster.shards().reduce((count, { nodes }) => count + nodes.length, 0),
        startedAt,
      }),
      onSignIn: (result) => metrics.of.control_sign_ins_total.inc({ result }),
    })

    const http: HttpOptions = {
      log,
      access,
      audit: audit.write,
      tls: tls?.material(),
      hstsDays: config.hstsDays,
      trustProxy: config.trustProxy,
      allowedHosts: () => config.allowedHosts,
      baseUrl: () => settings.baseUrl(),
      upgradeFailures: createFailureLimiter(clock, HTTP_LIMITS.upgradesRefusedMax),
      onAnswer: (route, status, seconds) => {
        metrics.of.control_http_requests_total.inc({ route, status: String(status) })
        metrics.of.control_http_request_seconds.observe({ route }, seconds)
      },
      onRefusal: (reason) => metrics.of.control_refused_total.inc({ reason }),
    }
    const app = await createHttp(http)
    // The files may have changed since they were first read.
    if (tls !== undefined) setTls(app, tls.material())
    listener = app
    const program = areaOf('program', PROGRAM_ROUTES, {
      'GET /health': () => ({ status: 'ok' as const }),
      'GET /ready': async ({ reply }) => {
        const says = await databaseFault()
        readiness.set('database', says)
        const { ready, reasons } = readiness.read()
        if (!ready) reply.status(503)
        return { ready, reasons: reasons.map(({ name, says }) => ({ name, says })) }
      },
      'GET /metrics': async ({ reply }) => {
        const says = await databaseFault()
        metrics.of.control_database_up.set(says === '' ? 1 : 0)
        if (says === '') metrics.of.control_sessions.set(await access.countSessions())
        const { clients, frames, bytes } = live.counts()
        metrics.of.control_live_connections.set(clients)
        setTotal(metrics.of.control_live_frames_total, frames)
        setTotal(metrics.of.control_live_bytes_total, bytes)
        const polled = cluster.counts()
        metrics.of.control_nodes.set(polled.nodes)
        setTotal(metrics.of.control_node_requests_total, polled.requests)
        setTotal(metrics.of.control_node_failures_total, polled.failures)
        metrics.of.control_poll_round_seconds.set(polled.roundMs / 1000)
        if (tls !== undefined)
          metrics.of.tls_cert_not_after_seconds.set({ listener: 'http' }, tls.material().notAfterMs / 1000)
        reply.header('content-type', METRICS_CONTENT_TYPE)
        return await metrics.text()
      },
    })
    const areas: readonly Area[] = [
      program,
      areaOf('access', ACCESS_ROUTES, { ...people.handlers, ...audit.handlers }),
      cluster.area,
      areaOf('playground', PLAYGROUND_ROUTES, inventory.handlers, { stop: inventory.stop }),
      imports.area,
    ]

    await registerAreas(app, areas, http)
    const openLive: Upgrade = async (request, socket, head) => {
      const { key } = await admitUpgrade(request, http)
      live.accept(request, socket, head, { key, check: () => access.isGood(key) })
    }
    const web = config.web ? await mountWeb(app, options.isProduction) : undefined
    if (web !== undefined) closers.push(web.close)
    dispatchUpgrades(app, new Map([[LIVE.path, openLive]]), web, (error) =>
      log.error({ err: error }, 'a WebSocket could not be opened'),
    )
    for (const area of areas) {
      await area.start?.()
      closers.push(async () => await area.stop?.())
    }
    const sweeping = setInterval(() => void sweep(), SWEEP_MS)
    closers.push(async () => clearInterval(sweeping))
    await sweep()
    await listen(app, config)
    closers.push(() => closeListener(app, config.drainSecs * 1000))
    url = listeningUrl(app)
    closers.push(() => live.stop())
    return {
      url,
      origin: baseUrl(),
      people,
      reload: () => void tls?.reload(),
      stop: async () => {
        readiness.set('stopping', 'The control plane stops.')
        await close()
      },
    }

    async function databaseFault(): Promise<string> {
      const late = Promise.withResolvers<string>()
      const timer = setTimeout(() => late.resolve(`The database did not answer within ${DATABASE_MS} ms.`), DATABASE_MS)
      const asked = database.selectFrom('audit_chain').select('id').executeTakeFirst()
      try {
        return await Promise.race([asked.then(() => ''), late.promise])
      } catch (error) {
        return (error as Error).message
      } finally {
        clearTimeout(timer)
      }
    }

    async function sweep(): Promise<void> {
      try {
        await access.sweep()
        await audit.prune(config.auditKeepDays)
        await inventory.sweep()
      } catch (error) {
        // The next hour does it.
        log.error({ err: error }, 'what is over could not be deleted')
      }
    }
  }
}

/** A text of the configuration, where '' is none. */
function given(text: string): string | undefined {
  return text === '' ? undefined : text
}

/** Where the state is kept, for openDatabase. */
export function databaseOf(config: ControlConfig): string {
  return config.databaseUrl === '' ? join(config.dataDir, 'control-plane.sqlite') : config.databaseUrl
}

/** Folder by folder: all at once never ends where a file system refuses with "not found", as /proc does. */
function makeFolder(folder: string): void {
  const path = resolve(folder)
  try {
    if (existsSync(path)) return
    makeFolder(dirname(path))
    mkdirSync(path, { mode: 0o700 })
  } catch (cause) {
    if (cause instanceof VacancyError) throw cause
    const reason = (cause as Error).message
    throw new VacancyError('failure', { reason: `the folder ${path} cannot be made: ${reason}` }, { cause })
  }
}

/**
 * Keeps a second control plane out of the folder: two would both go on with the same operations and imports. The lock
 * is one of the system, so that a crash leaves none behind.
 */
function lockFolder(folder: string): () => Promise<void> {
  const lock = new DatabaseSync(join(folder, 'lock'))
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (cause) {
    lock.close()
    throw new VacancyError(
      'data_conflict',
      { reason: `${folder} is in use by another control plane: stop that one, or give another data_dir` },
      { cause },
    )
  }
  return async () => lock.close()
}

async function listen(app: App, { listenHost, listenPort }: ControlConfig): Promise<void> {
  try {
    await app.listen({ host: listenHost, port: listenPort })
  } catch (cause) {
    throw new VacancyError(
      'port_taken',
      { address: `${listenHost}:${listenPort}`, reason: (cause as Error).message },
      { cause },
    )
  }
}

/** Takes no more, and finishes what is in flight; what takes longer than the drain time is cut off. */
async function closeListener(app: App, drainMs: number): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), drainMs)
  try {
    await app.close()
  } finally {
    clearTimeout(cut)
  }
}
