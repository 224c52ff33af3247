/**
 * Snapshots that were built here, and those that nodes tell of: kept as files by content digest, given to people and,
 * with a token that is good for one of them and for an hour, to nodes.
 *
 *   folder/snapshots/<content digest>.snapshot
 */
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Clock } from '@vacancy/shared'
import {
  type CoverageBody,
  IMPORT_LIMITS,
  type IMPORT_ROUTES,
  type ImportView,
  type SnapshotDetails,
  type SnapshotFile,
  type SnapshotView,
} from '@vacancy/shared/contract'
import type { Selectable } from 'kysely'
import type { Logger } from 'pino'
import type { WriteAudit } from '../audit.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { Database } from '../database.ts'
import { type Asked, type Handlers, ProblemError } from '../route.ts'
import type { CodecSource } from './codecs.ts'
import { compare } from './compare.ts'
import type { ImportTables } from './tables.ts'

type Row = Selectable<ImportTables['snapshots']>
type InstallRow = Selectable<ImportTables['installs']>

export type NewSnapshot = {
  /** Where the builder put the file; it is moved. */
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

export type Snapshots = {
  readonly handlers: Pick<
    Handlers<typeof IMPORT_ROUTES>,
    | 'GET /api/v1/snapshots'
    | 'GET /api/v1/snapshots/compare'
    | 'GET /api/v1/snapshots/{id}'
    | 'GET /api/v1/snapshots/{id}/download'
    | 'POST /api/v1/snapshots/{id}/delete'
    | 'GET /api/v1/pull/{id}'
  >
  readonly add: (snapshot: NewSnapshot) => Promise<void>
  readonly find: (id: string) => Promise<StoredSnapshot | undefined>
  /** A token for nodes that are to fetch this one. */
  readonly makeToken: (id: string) => Promise<string>
  readonly noteInstall: (install: InstallRow) => Promise<void>
  /** Removes files that no row knows and tokens that are over. */
  readonly sweep: () => Promise<void>
}

export type SnapshotsParts = {
  readonly database: Database
  readonly audit: WriteAudit
  readonly clock: Clock
  readonly log: Logger
  readonly folder: string
  readonly cluster: Cluster
  readonly codecs: CodecSource
}

export function createSnapshots(parts: SnapshotsParts): Snapshots {
  const { database, audit, clock, cluster, log } = parts
  const folder = join(parts.folder, 'snapshots')
  const pathOf = (id: string) => join(folder, `${id}.snapshot`)

  const rows = () => database.selectFrom('snapshots').selectAll().orderBy('created_at', 'desc').execute()
  const rowOf = (id: string) => database.selectFrom('snapshots').selectAll().where('id', '=', id).executeTakeFirst()
  const rowOrRefuse = async (id: string): Promise<Row> => {
    const row = await rowOf(id)
    if (row) return row
    throw new ProblemError(404, 'no-such-snapshot', `There is no snapshot ${id.slice(0, 12)}… here.`, {
      hint: 'The page of snapshots lists those that there are; nodes keep their own to themselves.',
    })
  }
  const installs = () => database.selectFrom('installs').selectAll().orderBy('at', 'desc').execute()
  const codecHash = async (): Promise<string | undefined> => {
    try {
      return (await parts.codecs(undefined)).hash
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      return undefined
    }
  }

  /** Shards whose last install was of this snapshot, and those that began with it. */
  const servedBy = (id: string, done: readonly InstallRow[]): string[] => {
    const newest = new Map<string, string>()
    for (const { shard, snapshot, state } of done) {
      if (state === 'done' && !newest.has(shard)) newest.set(shard, snapshot)
    }
    const began = cluster
      .shards()
      .filter(({ id: shard, nodes }) => !newest.has(shard) && nodes.some(({ snapshot }) => snapshot?.id === id))
      .map(({ id: shard }) => shard)
    return [...[...newest].filter(([, snapshot]) => snapshot === id).map(([shard]) => shard), ...began].sort()
  }
  const heldBy = (id: string) =>
    cluster
      .shards()
      .flatMap(({ id: shard, nodes }) =>
        nodes.filter(({ snapshot }) => snapshot?.id === id).map((node) => ({ shard, node: node.id })),
      )

  const viewOf = (
    row: Row,
    document: SnapshotFile,
    done: readonly InstallRow[],
    hash: string | undefined,
  ): SnapshotView => ({
    id: row.id,
    name: row.name,
    origin: 'import',
    shard: row.shard,
    stored: true,
    packages: document.packages,
    properties: document.properties,
    segments: document.segments.length,
    roomTypes: document.roomTypes,
    window: document.window,
    codecHash: document.codecHash,
    codecsCurrent: hash === undefined ? null : hash === document.codecHash,
    bytes: row.bytes,
    sha256: row.sha256,
    createdAt: new Date(row.created_at).toISOString(),
    by: row.by_name,
    import: row.import_id,
    installable: row.installable === 1,
    servedBy: servedBy(row.id, done),
    heldBy: heldBy(row.id),
  })

  /** Newest own snapshots of nodes that were not built here. */
  const foundOnNodes = (known: ReadonlySet<string>, hash: string | undefined): SnapshotView[] => {
    const found = new Map<string, SnapshotView>()
    for (const { id: shard, nodes } of cluster.shards()) {
      for (const { snapshot, properties, segments, window, orderedHash } of nodes) {
        if (!snapshot || known.has(snapshot.id) || found.has(snapshot.id)) continue
        found.set(snapshot.id, {
          id: snapshot.id,
          name: `${shard}, entry ${snapshot.lastIndex}`,
          origin: 'node',
          shard,
          stored: false,
          packages: snapshot.packages,
          properties: properties ?? 0,
          segments: segments ?? 0,
          roomTypes: null,
          window: window ? { from: window.from, to: window.to } : null,
          codecHash: orderedHash ?? '',
          codecsCurrent: hash === undefined || orderedHash === null ? null : hash === orderedHash,
          bytes: snapshot.bytes,
          sha256: null,
          createdAt: snapshot.createdAt,
          by: '',
          import: null,
          installable: false,
          servedBy: [],
          heldBy: heldBy(snapshot.id),
        })
      }
    }
    return [...found.values()]
  }

  async function list(): Promise<{ snapshots: SnapshotView[] }> {
    const [stored, done, hash] = await Promise.all([rows(), installs(), codecHash()])
    const own = stored.map((row) => viewOf(row, JSON.parse(row.document) as SnapshotFile, done, hash))
    const others = foundOnNodes(new Set(own.map(({ id }) => id)), hash)
    return { snapshots: [...own, ...others].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1)) }
  }

  async function details(id: string): Promise<SnapshotDetails> {
    const [row, done, hash] = await Promise.all([rowOf(id), installs(), codecHash()])
    if (!row) {
      const found = foundOnNodes(new Set(), hash).find((each) => each.id === id)
      if (!found) await rowOrRefuse(id)
      return {
        ...(found as SnapshotView),
        codecs: [],
        coverage: null,
        roomsPerProperty: [],
        counters: null,
        sources: [],
        installs: [],
      }
    }
    const document = JSON.parse(row.document) as SnapshotFile
    return {
      ...viewOf(row, document, done, hash),
      codecs: [...document.codecs],
      coverage: coverageOf(document),
      roomsPerProperty: [...document.roomsPerProperty],
      counters: JSON.parse(row.counters) as SnapshotDetails['counters'],
      sources: JSON.parse(row.sources) as SnapshotDetails['sources'],
      installs: done
        .filter(({ snapshot }) => snapshot === id)
        .map(({ operation, shard, at, state }) => ({ operation, shard, at: new Date(at).toISOString(), state })),
    }
  }

  async function remove(asked: Asked<'POST /api/v1/snapshots/{id}/delete'>): Promise<undefined> {
    const { params, body, asker, address, requestId } = asked
    const row = await rowOrRefuse(params.id)
    if (body.confirm !== row.id) {
      throw new ProblemError(400, 'not-confirmed', 'The digest in confirm is another one.', {
        field: 'confirm',
        hint: 'Send the whole digest of the snapshot once more.',
      })
    }
    const done = await installs()
    const serving = servedBy(row.id, done)
    if (serving.length > 0) {
      throw new ProblemError(409, 'snapshot-in-use', `${serving.join(', ')} serves this snapshot.`, {
        hint: 'Install another one there first.',
      })
    }
    const open = done.find(({ snapshot, state }) => snapshot === row.id && state === 'running')
    if (open) {
      throw new ProblemError(409, 'snapshot-in-use', `It is being installed on ${open.shard}.`, {
        hint: 'Wait until the operation is over.',
        more: { operation: open.operation },
      })
    }
    await database.transaction().execute(async (transaction) => {
      await transaction.deleteFrom('snapshots').where('id', '=', row.id).execute()
      await transaction.deleteFrom('pull_tokens').where('snapshot', '=', row.id).execute()
      const what = { action: 'snapshot.delete', target: row.id, result: 'done', reason: body.reason, detail: row.name }
      await audit({ asker, address, requestId, ...what }, transaction)
    })
    await rm(pathOf(row.id), { force: true })
  }

  /** The file, or the part of it that is asked for. */
  async function send(
    row: Row,
    { headers, reply }: Pick<Asked<'GET /api/v1/pull/{id}'>, 'headers' | 'reply'>,
  ): Promise<Readable> {
    const found = await stat(pathOf(row.id)).catch((error: NodeJS.ErrnoException) => {
      // Any other fault is one of this machine, and belongs in its log.
      if (error.code !== 'ENOENT') throw error
      return undefined
    })
    if (found?.size !== row.bytes) {
      throw new ProblemError(410, 'snapshot-lost', 'The file of this snapshot is gone from the disk.', {
        hint: 'Delete it here and build it again.',
      })
    }
    reply.header('accept-ranges', 'bytes')
    reply.header('content-disposition', `attachment; filename="${row.id}.snapshot"`)
    const range = /^bytes=(\d{1,15})-(\d{1,15})?$/.exec(typeof headers['range'] === 'string' ? headers['range'] : '')
    const start = Number(range?.[1] ?? 0)
    const end = Math.min(Number(range?.[2] ?? row.bytes - 1), row.bytes - 1)
    if (range && start > end) {
      reply.header('content-range', `bytes */${row.bytes}`)
      throw new ProblemError(416, 'no-such-range', `The file has ${row.bytes} bytes.`, {
        hint: 'Ask for a part of it.',
      })
    }
    reply.header('content-length', String(end - start + 1))
    if (range) {
      reply.status(206)
      reply.header('content-range', `bytes ${start}-${end}/${row.bytes}`)
    }
    return createReadStream(pathOf(row.id), { start, end, highWaterMark: 1 << 20 })
  }

  async function pull(asked: Asked<'GET /api/v1/pull/{id}'>): Promise<Readable> {
    const given = /^Bearer ([A-Za-z0-9_-]{43})$/.exec(String(asked.headers['authorization'] ?? ''))?.[1]
    const token =
      given === undefined
        ? undefined
        : await database
            .selectFrom('pull_tokens')
            .selectAll()
            .where('hash', '=', hashOf(given))
            .where('snapshot', '=', asked.params.id)
            .executeTakeFirst()
    if (!token || token.expires_at < clock.wallMs()) {
      throw new ProblemError(
        401,
        'invalid-token',
        'This needs the token that was made for this snapshot, while it lasts.',
        {
          hint: 'Nodes get one with each install; people download snapshots in the console.',
        },
      )
    }
    return await send(await rowOrRefuse(asked.params.id), asked)
  }

  return {
    handlers: {
      'GET /api/v1/snapshots': list,
      'GET /api/v1/snapshots/compare': ({ query }) =>
        compare({ cluster, clock, find: async (id) => await rowOrRefuse(id) }, query.a, query.b),
      'GET /api/v1/snapshots/{id}': ({ params }) => details(params.id),
      'GET /api/v1/snapshots/{id}/download': async (asked) => await send(await rowOrRefuse(asked.params.id), asked),
      'POST /api/v1/snapshots/{id}/delete': remove,
      'GET /api/v1/pull/{id}': pull,
    },
    async add({ path, document, counters, import: from, sources }) {
      await mkdir(folder, { recursive: true })
      const { size } = await stat(path)
      const sha256 = await digestOf(path)
      const before = await rowOf(document.id)
      await rename(path, pathOf(document.id))
      const row: Row = {
        id: document.id,
        name: from.name,
        shard: from.shard,
        bytes: size,
        sha256,
        import_id: from.id,
        by_name: from.by_name,
        created_at: clock.wallMs(),
        installable: counters.agree ? 1 : 0,
        document: JSON.stringify(document),
        counters: JSON.stringify(counters),
        sources: JSON.stringify(sources),
      }
      // Equal files make equal snapshots: the later import stands for both.
      if (before) {
        const { id: _id, ...columns } = row
        await database.updateTable('snapshots').set(columns).where('id', '=', row.id).execute()
      } else await database.insertInto('snapshots').values(row).execute()
      log.info({ snapshot: document.id, bytes: size }, 'a snapshot was built')
    },
    async find(id) {
      const row = await rowOf(id)
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
    },
    async makeToken(id) {
      const token = randomBytes(32).toString('base64url')
      const expires_at = clock.wallMs() + IMPORT_LIMITS.pullMs
      await database
        .insertInto('pull_tokens')
        .values({ hash: hashOf(token), snapshot: id, expires_at })
        .execute()
      return token
    },
    async noteInstall(install) {
      const { operation, ...columns } = install
      const changed = await database
        .updateTable('installs')
        .set(columns)
        .where('operation', '=', operation)
        .executeTakeFirst()
      if (Number(changed.numUpdatedRows) === 0) await database.insertInto('installs').values(install).execute()
    },
    async sweep() {
      await database.deleteFrom('pull_tokens').where('expires_at', '<', clock.wallMs()).execute()
      await mkdir(folder, { recursive: true })
      const known = new Set((await rows()).map(({ id }) => `${id}.snapshot`))
      for (const name of await readdir(folder)) if (!known.has(name)) await rm(join(folder, name), { force: true })
    },
  }
}

function coverageOf({ window, segments }: SnapshotFile): CoverageBody {
  return {
    window,
    segments: segments.map(({ name, properties, rooms, packages }) => ({
      name,
      properties,
      rooms,
      packages: [...packages],
    })),
  }
}

async function digestOf(path: string): Promise<string> {
  const digest = createHash('sha256')
  for await (const piece of createReadStream(path, { highWaterMark: 1 << 20 })) digest.update(piece as Buffer)
  return digest.digest('hex')
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}
