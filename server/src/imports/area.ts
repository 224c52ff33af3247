/** Uploads, imports and snapshots as one area of the control plane. */
import { mkdirSync } from 'node:fs'
import type { Clock } from '@vacancy/shared'
import { CODEC_ROUTES, IMPORT_ROUTES, type Summary } from '@vacancy/shared/contract'
import type { Logger } from 'pino'
import type { WriteAudit } from '../audit.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { Kind } from '../cluster/kinds.ts'
import type { Database } from '../database.ts'
import type { Live } from '../live.ts'
import { type Area, areaOf } from '../route.ts'
import { codecChangeHandlers } from './codec-change.ts'
import { codecSource, codecsOfRegistry } from './codecs.ts'
import { createImports } from './imports.ts'
import { installKind, undoInstallKind } from './install.ts'
import { createSnapshots } from './snapshots.ts'
import { createUploads } from './uploads.ts'

/** How often what nobody came back for is dropped. */
const SWEEP_MS = 3_600_000

export type ImportsConfig = {
  /** Folder of uploads, builds and snapshots. */
  readonly folder: string
  /** Whose files need no upload; '' for none. */
  readonly importFolder: string
  /** Address of the registry, '' without one. */
  readonly registry: string
  readonly registryToken: string
}

export type ImportsArea = {
  readonly area: Area
  /** For the runner of operations. */
  readonly kinds: { readonly install: Kind; readonly 'undo-install': Kind }
  /** Imports for the overview. */
  readonly running: () => Summary['running']
}

export function createImportsArea(
  config: ImportsConfig,
  parts: {
    readonly database: Database
    readonly live: Live
    readonly audit: WriteAudit
    readonly log: Logger
    readonly clock: Clock
    readonly cluster: Cluster
    /** Under which nodes reach this control plane. */
    readonly baseUrl: () => string
  },
): ImportsArea {
  const { database, live, audit, log, clock, cluster } = parts
  const { folder } = config
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const codecs = codecSource(cluster, () => config.registry, config.registryToken)
  const snapshots = createSnapshots({ database, audit, clock, log, folder, cluster, codecs })
  const uploads = createUploads({
    database,
    audit,
    clock,
    folder,
    importFolder: config.importFolder,
    onChange: (row, isComplete) => imports.onUpload(row, isComplete),
  })
  const imports = createImports({
    database,
    audit,
    clock,
    log,
    live,
    folder,
    uploads,
    snapshots,
    codecs,
    shards: () => cluster.shards().map(({ id }) => id),
    hasFolder: config.importFolder !== '',
    // Nodes of a cluster take the list of their registry, and their snapshots must be made with it.
    ownCodecs: (shard) => config.registry === '' && cluster.shard(shard)?.mode !== 'clustered',
  })
  let sweeping: NodeJS.Timeout | undefined
  const sweep = async () => {
    await uploads.sweep()
    await snapshots.sweep()
  }
  const ofRegistry = () => codecsOfRegistry(config.registry, config.registryToken)
  const changes = codecChangeHandlers({
    ...{ database, audit, clock, cluster, ofRegistry },
    registry: config.registry,
    // Nodes keep theirs until they start again: a change begins with what is in force for all.
    current: async () => (config.registry === '' ? undefined : await ofRegistry()) ?? (await codecs(undefined)),
    snapshots: snapshots.list,
  })
  const routes = { ...IMPORT_ROUTES, ...CODEC_ROUTES }
  const handlers = { ...uploads.handlers, ...imports.handlers, ...snapshots.handlers, ...changes }
  const area = areaOf('imports', routes, handlers, {
    async start() {
      await snapshots.sweep()
      await imports.start()
      sweeping = setInterval(() => {
        sweep().catch((error: unknown) => log.warn({ err: error }, 'old uploads could not be dropped'))
      }, SWEEP_MS)
    },
    async stop() {
      clearInterval(sweeping)
      await imports.stop()
    },
  })
  const install = { cluster, snapshots, clock, baseUrl: parts.baseUrl }
  return {
    area,
    kinds: { install: installKind(install), 'undo-install': undoInstallKind(install) },
    running: imports.running,
  }
}
