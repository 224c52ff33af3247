/** Stored snapshots: their rows, files, tokens and installs. */
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import {
  IMPORT_LIMITS,
  type ImportView,
  type SnapshotDetails,
  type SnapshotFile,
  type SnapshotView,
} from '@vacancy/shared/contract'
import type { Selectable } from 'kysely'
import type { Logger } from 'pino'
import type { WriteAudit } from '../access/audit.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { CodecSource } from './codecs.ts'
import type { ImportDatabase, ImportTables } from './tables.ts'

export type Row = Selectable<ImportTables['snapshots']>

export type InstallRow = Selectable<ImportTables['installs']>

export type NewSnapshot = {
  /** The path of the built file, which is moved. */
  readonly path: string
  readonly document: SnapshotFile
  readonly counters: NonNullable<ImportView['counters']>
  readonly import: Selectable<ImportTables['imports']>
  readonly sources: SnapshotDetails['sources']
}

export type StoredSnapshot = {
  readonly id: string
  readonly name: string
  readonly shard: string
  readonly bytes: number
  readonly installable: boolean
  readonly document: SnapshotFile
}

/** The stored snapshots and their folder. */
export type Snapshots = {
  readonly database: ImportDatabase
  readonly audit: WriteAudit
  readonly clock: Clock
  readonly log: Logger
  readonly folder: string
  readonly cluster: Cluster
  readonly codecs: CodecSource
  /** The fields of each document that lists show, by digest. A document may be megabytes of JSON. */
  readonly heads: Map<string, Head>
}

/** @param options its folder is that of all imports; snapshots are in a subfolder */
export function createSnapshots(options: Omit<Snapshots, 'heads'>): Snapshots {
  return { ...options, folder: join(options.folder, 'snapshots'), heads: new Map() }
}

export function snapshotPath(snapshots: Snapshots, id: string): string {
  return join(snapshots.folder, `${id}.snapshot`)
}

/** Without documents, which may be megabytes of JSON, because lists are requested every few seconds. */
export function snapshotRows(snapshots: Snapshots) {
  return snapshots.database.selectFrom('snapshots').select(COLUMNS).orderBy('created_at', 'desc').execute()
}

export async function headOf(snapshots: Snapshots, id: string): Promise<Head | undefined> {
  const known = snapshots.heads.get(id)
  if (known) return known
  const row = await snapshots.database
    .selectFrom('snapshots')
    .select('document')
    .where('id', '=', id)
    .executeTakeFirst()
  const head = row && headIn(JSON.parse(row.document) as SnapshotFile)
  if (head) snapshots.heads.set(id, head)
  return head
}

export function snapshotRow(snapshots: Snapshots, id: string) {
  return snapshots.database.selectFrom('snapshots').selectAll().where('id', '=', id).executeTakeFirst()
}

export async function requireSnapshot(snapshots: Snapshots, id: string): Promise<Row> {
  const row = await snapshotRow(snapshots, id)
  if (row) return row
  throw problem('no-such-snapshot', { detail: `There is no snapshot ${id.slice(0, 12)}… here.` })
}

export function installRows(snapshots: Snapshots) {
  return snapshots.database.selectFrom('installs').selectAll().orderBy('at', 'desc').execute()
}

export async function addSnapshot(
  snapshots: Snapshots,
  { path, document, counters, import: from, sources }: NewSnapshot,
): Promise<void> {
  await mkdir(snapshots.folder, { recursive: true })
  const { size } = await stat(path)
  const sha256 = await digestOf(path)
  const before = await snapshotRow(snapshots, document.id)
  await rename(path, snapshotPath(snapshots, document.id))
  const row: Row = {
    id: document.id,
    name: from.name,
    shard: from.shard,
    bytes: size,
    sha256,
    import_id: from.id,
    by_name: from.by_name,
    created_at: snapshots.clock.wallMs(),
    installable: counters.agree ? 1 : 0,
    document: JSON.stringify(document),
    counters: JSON.stringify(counters),
    sources: JSON.stringify(sources),
  }
  // Equal files make equal snapshots: the row refers to the later import.
  if (before) {
    const { id: _id, ...columns } = row
    await snapshots.database.updateTable('snapshots').set(columns).where('id', '=', row.id).execute()
  } else await snapshots.database.insertInto('snapshots').values(row).execute()
  snapshots.log.info({ snapshot: document.id, bytes: size }, 'a snapshot was built')
}

export async function findSnapshot(snapshots: Snapshots, id: string): Promise<StoredSnapshot | undefined> {
  const row = await snapshotRow(snapshots, id)
  if (!row) return undefined
  const { name, shard, bytes, installable } = row
  return {
    id,
    name,
    shard,
    bytes,
    installable: installable === 1,
    document: JSON.parse(row.document) as SnapshotFile,
  }
}

/** Creates a token for nodes to fetch this snapshot. */
export async function createPullToken(snapshots: Snapshots, id: string): Promise<string> {
  const token = randomBytes(32).toString('base64url')
  const expires_at = snapshots.clock.wallMs() + IMPORT_LIMITS.pullMs
  await snapshots.database
    .insertInto('pull_tokens')
    .values({ hash: hashOf(token), snapshot: id, expires_at })
    .execute()
  return token
}

export async function storeInstall(snapshots: Snapshots, install: InstallRow): Promise<void> {
  const { operation, ...columns } = install
  const changed = await snapshots.database
    .updateTable('installs')
    .set(columns)
    .where('operation', '=', operation)
    .executeTakeFirst()
  if (Number(changed.numUpdatedRows) === 0) await snapshots.database.insertInto('installs').values(install).execute()
}

/** Removes files without a row and expired tokens. */
export async function sweepSnapshots(snapshots: Snapshots): Promise<void> {
  await snapshots.database.deleteFrom('pull_tokens').where('expires_at', '<', snapshots.clock.wallMs()).execute()
  await mkdir(snapshots.folder, { recursive: true })
  const known = new Set((await snapshotRows(snapshots)).map(({ id }) => `${id}.snapshot`))
  for (const name of await readdir(snapshots.folder))
    if (!known.has(name)) await rm(join(snapshots.folder, name), { force: true })
}

/** A stored snapshot without its counts. */
export const COLUMNS = [
  'id',
  'name',
  'shard',
  'bytes',
  'sha256',
  'import_id',
  'by_name',
  'created_at',
  'installable',
] as const

export type Head = Pick<SnapshotView, 'packages' | 'properties' | 'segments' | 'roomTypes' | 'window' | 'codecHash'>

export function headIn({ packages, properties, segments, roomTypes, window, codecHash }: SnapshotFile): Head {
  return { packages, properties, segments: segments.length, roomTypes, window, codecHash }
}

async function digestOf(path: string): Promise<string> {
  const digest = createHash('sha256')
  for await (const piece of createReadStream(path, { highWaterMark: 1 << 20 })) digest.update(piece as Buffer)
  return digest.digest('hex')
}

export function hashOf(token: string | Buffer): string {
  return createHash('sha256').update(token).digest('hex')
}
