/** Creates and connects the parts of the control plane. */

import type { Clock } from '@vacancy/shared'
import { VERSION } from '@vacancy/shared/node'
import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import { type Access, createAccess, onEnd } from './access/access.ts'
import { type Accounts, createAccounts } from './access/accounts.ts'
import { type Audit, createAudit } from './access/audit.ts'
import type { Settings } from './access/settings.ts'
import { createSingleSignOn } from './access/single-sign-on.ts'
import type { AccessTables } from './access/tables.ts'
import { importSeeds } from './cluster/attention-sources.ts'
import { clusterOf, createClusterModule } from './cluster/cluster-module.ts'
import {
  addAttentionSource,
  addRunningSource,
  addValueSource,
  type ClusterConfig,
  type ClusterModule,
} from './cluster/cluster-state.ts'
import { collectorCounts } from './cluster/collector.ts'
import type { ClusterTables } from './cluster/tables.ts'
import type { ControlConfig } from './config.ts'
import type { Folders } from './data-folder.ts'
import { isPostgres } from './database/database.ts'
import { planOf } from './golden/check.ts'
import { createGoldenModule, type GoldenModule } from './golden/golden-module.ts'
import type { GoldenTables } from './golden/tables.ts'
import type { Values } from './history/series.ts'
import type { HistoryTables } from './history/tables.ts'
import { importValues, importViews, runningImports } from './imports/import-state.ts'
import { createImportsModule, type ImportsModule, importOperationTypes } from './imports/imports-module.ts'
import type { ImportTables } from './imports/tables.ts'
import { createLive, endClients, liveCounts } from './live/live.ts'
import type { Live } from './live/state.ts'
import { offerTopics, touchTopic } from './live/topics.ts'
import { createPlayground, type Playground } from './playground/playground.ts'
import { allSaved } from './playground/saved.ts'
import type { PlaygroundTables } from './playground/tables.ts'
import { createProbes, type Probes } from './probes/probes-module.ts'
import type { Program } from './program.ts'

/** Every table of the control plane; each part declares its own. */
export type Tables = AccessTables & ClusterTables & GoldenTables & HistoryTables & ImportTables & PlaygroundTables

export type Parts = {
  readonly program: Program
  readonly settings: Settings
  readonly live: Live
  readonly audit: Audit
  readonly access: Access
  readonly accounts: Accounts
  readonly cluster: ClusterModule
  readonly playground: Playground
  readonly imports: ImportsModule
  readonly golden: GoldenModule
  readonly probes: Probes
}

/** Dependencies of all parts. */
type Base = {
  readonly options: { readonly config: ControlConfig; readonly clock: Clock; readonly log: Logger }
  readonly program: Program
  readonly folders: Folders
  readonly database: Kysely<Tables>
  readonly settings: Settings
  readonly baseUrl: () => string
}

const HOUR_MS = 3_600_000

export function createParts(base: Base): Parts {
  const { options, program, database, settings } = base
  const { config, clock, log } = options
  const live = createLive({ server: VERSION, log, clock })
  const audit = createAudit(database, clock, () => touchTopic(live, 'audit'))
  offerTopics(live, /^audit$/, async () => ({ total: await audit.total() }))
  const access = createAccess({
    ...{ database, clock },
    sessionIdleMs: config.sessionIdleHours * HOUR_MS,
    ssoSessionMs: config.oidcSessionHours * HOUR_MS,
  })
  onEnd(access, (key) => endClients(live, key))
  const clusterModule = createClusterModule(clusterConfig(config, base.folders.cluster), {
    database,
    live,
    audit: audit.write,
    log,
    clock,
    environment: settings.environment,
    baseUrl: base.baseUrl,
  })
  addValueSource(clusterModule, ownValues(clusterModule))
  const cluster = clusterOf(clusterModule)
  const clientToken = given(config.nodeClientToken)
  const connection = clientToken === undefined ? {} : { token: clientToken }
  const playground = createPlayground({ cluster, database, audit: audit.write, log, clock, connection })
  const probes = createProbes({
    intervalMs: config.probeIntervalSecs * 1_000,
    token: clientToken,
    ...{ cluster, clock, log },
    onProbe: (request, seconds) => countProbe(program, request, seconds),
  })
  clusterModule.clients = () => probes.view
  const imports = connectImports(base, { live, audit, cluster: clusterModule })
  const { snapshots } = imports
  const golden = createGoldenModule({ database, audit: audit.write, clock, log, cluster, connection, snapshots })
  connectInstalls(clusterModule, imports, golden)
  const accounts = createAccounts({
    database,
    clock,
    access,
    audit,
    settings,
    singleSignOn: createSingleSignOn(config),
    facts: () => ({
      database: isPostgres(config.databaseUrl) ? 'postgresql' : 'sqlite',
      registry: given(config.registry) ?? null,
      resolver: given(config.resolver) ?? null,
      nodes: cluster.shards().reduce((count, { nodes }) => count + nodes.length, 0),
      startedAt: program.startedAt,
    }),
    onSignIn: (result) => program.metrics.of.control_sign_ins_total.inc({ result }),
  })
  const modules = { cluster: clusterModule, playground, imports, golden, probes }
  return { program, settings, live, audit, access, accounts, ...modules }
}

function clusterConfig(config: ControlConfig, folder: string): ClusterConfig {
  return {
    registry: given(config.registry),
    resolver: given(config.resolver),
    nodes: config.nodes,
    fabric: config.fabric,
    apiPort: config.nodeApiPort,
    tcpPort: config.nodeTcpPort,
    tokens: {
      monitoring: given(config.nodeMonitoringToken),
      client: given(config.nodeClientToken),
      admin: given(config.nodeAdminToken),
      registry: given(config.registryToken),
    },
    folder,
  }
}

/** Imports. Their running builds are registered with the cluster. */
function connectImports(
  { options, folders, database, baseUrl }: Base,
  { live, audit, cluster }: Pick<Parts, 'live' | 'audit' | 'cluster'>,
): ImportsModule {
  const { config, log, clock } = options
  const module = createImportsModule(
    {
      folder: folders.imports,
      importFolder: config.importFolder,
      registry: config.registry,
      registryToken: config.registryToken,
    },
    {
      database,
      live,
      audit: audit.write,
      log,
      clock,
      cluster: clusterOf(cluster),
      baseUrl,
      savedQueries: () => allSaved(database),
    },
  )
  addRunningSource(cluster, () => runningImports(module.imports))
  addAttentionSource(cluster, () => importSeeds(importViews(module.imports), clock.wallMs()))
  addValueSource(cluster, () => importValues(module.imports))
  return module
}

/** An install is planned with what golden searches find in its snapshot. */
function connectInstalls(cluster: ClusterModule, imports: ImportsModule, { checks }: GoldenModule): void {
  const types = importOperationTypes(imports, (snapshot, look) => planOf(checks, snapshot, look))
  cluster.types.set('install', types.install)
  cluster.types.set('undo-install', types['undo-install'])
}

function countProbe({ metrics: { of } }: Program, request: 'search' | 'hold', seconds: number | undefined): void {
  of.control_probes_total.inc({ request, result: seconds === undefined ? 'failed' : 'answered' })
  if (seconds !== undefined) of.control_probe_seconds.observe({ request }, seconds)
}

/** A configured text; undefined when it is ''. */
function given(text: string): string | undefined {
  return text === '' ? undefined : text
}

type Totals = {
  readonly at: number
  readonly requests: number
  readonly failures: number
  readonly frames: number
  readonly bytes: number
}

/** @returns reads the figures; rates are those since the read before */
function ownValues({ collector, deps }: ClusterModule): () => Values {
  let before: Totals | undefined
  return () => {
    const { requests, failures, roundMs } = collectorCounts(collector)
    const { clients, frames, bytes } = liveCounts(deps.live)
    const now: Totals = { at: deps.clock.monotonicMs(), requests, failures, frames, bytes }
    const last = before
    before = now
    const rate = (name: 'requests' | 'failures' | 'frames' | 'bytes') =>
      last && now.at > last.at ? ((now[name] - last[name]) / (now.at - last.at)) * 1_000 : null
    return {
      control_polls: rate('requests'),
      control_failures: rate('failures'),
      control_round: roundMs,
      control_clients: clients,
      control_frames: rate('frames'),
      control_bytes: rate('bytes'),
      control_memory: process.memoryUsage.rss(),
    }
  }
}
