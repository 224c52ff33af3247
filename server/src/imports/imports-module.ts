/** The imports module: uploads, imports, snapshots and codec list changes. */
import { mkdirSync } from 'node:fs'
import type { Clock } from '@vacancy/shared'
import { type ControlModule, moduleOf } from '@vacancy/shared/api/route'
import { CODEC_ROUTES, IMPORT_ROUTES } from '@vacancy/shared/contract'
import type { Logger } from 'pino'
import type { WriteAudit } from '../access/audit.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { OperationType } from '../cluster/operation-types.ts'
import type { Live } from '../live/state.ts'
import { type CodecChanges, codecChangeHandlers } from './codec-change.ts'
import type { SavedQuery } from './codec-plan.ts'
import { codecSource, codecsOfRegistry } from './codecs.ts'
import { observeUpload, startImports, stopImports } from './import-queue.ts'
import type { Imports } from './import-state.ts'
import { createImports, importHandlers } from './imports.ts'
import { type InstallParts, installType, undoInstallType } from './install.ts'
import { createSnapshots, type Snapshots, sweepSnapshots } from './snapshot-store.ts'
import { listSnapshots } from './snapshot-views.ts'
import { snapshotHandlers } from './snapshots.ts'
import type { ImportDatabase } from './tables.ts'
import { createUploads, dropStaleUploads, type Uploads, uploadHandlers } from './uploads.ts'

/** How often abandoned uploads and expired tokens are deleted. */
const SWEEP_MS = 3_600_000

export type ImportsConfig = {
  /** Folder of uploads, builds and snapshots. */
  readonly folder: string
  /** Folder whose files need no upload; '' for none. */
  readonly importFolder: string
  /** Address of the registry; '' without one. */
  readonly registry: string
  readonly registryToken: string
}

type ImportsDeps = {
  readonly database: ImportDatabase
  readonly live: Live
  readonly audit: WriteAudit
  readonly log: Logger
  readonly clock: Clock
  readonly cluster: Cluster
  /** Saved playground queries of all people, which a codec list change may affect. */
  readonly savedQueries: () => Promise<readonly SavedQuery[]>
  /** The address of this control plane for nodes. */
  readonly baseUrl: () => string
}

export type ImportsModule = {
  readonly deps: ImportsDeps
  readonly uploads: Uploads
  readonly snapshots: Snapshots
  readonly imports: Imports
  readonly changes: CodecChanges
  sweeping: NodeJS.Timeout | undefined
}

export function createImportsModule(config: ImportsConfig, deps: ImportsDeps): ImportsModule {
  const { database, live, audit, log, clock, cluster } = deps
  const { folder, registry, registryToken } = config
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const codecs = codecSource(cluster, () => registry, registryToken)
  const snapshots = createSnapshots({ database, audit, clock, log, folder, cluster, codecs })
  const uploads = createUploads({
    database,
    audit,
    clock,
    folder,
    importFolder: config.importFolder,
    onChange: (row, isComplete) => observeUpload(imports, row, isComplete),
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
    dayBegins: cluster.dayBegins,
    hasFolder: config.importFolder !== '',
    // Clustered nodes use the list of their registry, and their snapshots must be built with it.
    ownCodecs: (shard) => registry === '' && cluster.shard(shard)?.mode !== 'clustered',
  })
  const ofRegistry = () => codecsOfRegistry(registry, registryToken)
  const changes: CodecChanges = {
    database,
    audit,
    clock,
    cluster,
    registry,
    ofRegistry,
    // Nodes keep their list until they restart, so a change starts from the list of the registry.
    current: async () => (registry === '' ? undefined : await ofRegistry()) ?? (await codecs(undefined)),
    snapshots: () => listSnapshots(snapshots),
    savedQueries: deps.savedQueries,
    counted: new Map(),
  }
  return { deps, uploads, snapshots, imports, changes, sweeping: undefined }
}

/** Operation types for the operation runner. */
export function importOperationTypes(
  { deps, snapshots }: ImportsModule,
  golden: InstallParts['golden'],
): {
  readonly install: OperationType
  readonly 'undo-install': OperationType
} {
  const install = { cluster: deps.cluster, snapshots, clock: deps.clock, golden, baseUrl: deps.baseUrl }
  return { install: installType(install), 'undo-install': undoInstallType(install) }
}

export function importsRoutes(module: ImportsModule): ControlModule {
  const { uploads, snapshots, imports, changes } = module
  return moduleOf(
    'imports',
    { ...IMPORT_ROUTES, ...CODEC_ROUTES },
    {
      ...uploadHandlers(uploads),
      ...importHandlers(imports),
      ...snapshotHandlers(snapshots),
      ...codecChangeHandlers(changes),
    },
    { start: () => startImportsModule(module), stop: () => stopImportsModule(module) },
  )
}

async function startImportsModule(module: ImportsModule): Promise<void> {
  const { uploads, snapshots, imports, deps } = module
  await sweepSnapshots(snapshots)
  await startImports(imports)
  const sweep = async () => {
    await dropStaleUploads(uploads)
    await sweepSnapshots(snapshots)
  }
  module.sweeping = setInterval(() => {
    sweep().catch((error: unknown) => deps.log.warn({ err: error }, 'dropping old uploads failed'))
  }, SWEEP_MS)
}

async function stopImportsModule(module: ImportsModule): Promise<void> {
  clearInterval(module.sweeping)
  await stopImports(module.imports)
}
