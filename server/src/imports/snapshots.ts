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
  clusterInfoBody,
  IMPORT_LIMITS,
  type IMPORT_ROUTES,
  type ImportView,
  type ShardView,
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
import { compare, parseJson } from './compare.ts'
import { type Founders, matrixOf, restorableOf } from './matrix.ts'
import type { ImportTables } from './tables.ts'
import { tarBytes, tarOf } from './tar.ts'

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
    | 'GET /api/v1/snapshots/matrix'
    | 'GET /api/v1/snapshots/{id}'
    | 'GET /api/v1/snapshots/{id}/download'
    | 'GET /api/v1/snapshots/{id}/archive'
    | 'POST /api/v1/snapshots/{id}/delete'
    | 'GET /api/v1/pull/{id}'
  >
  /** Those that are stored, and those that nodes tell of; the newest first. */
  readonly list: () => Promise<SnapshotView[]>
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

  // What a file was counted to hold may be megabytes of JSON: lists are asked for each few seconds, and need a line of it.
  const rows = () => database.selectFrom('snapshots').select(COLUMNS).orderBy('created_at', 'desc').execute()
  const heads = new Map<string, Head>()
  const headOf = async (id: string): Promise<Head | undefined> => {
    const known = heads.get(id)
    if (known) return known
    const row = await database.selectFrom('snapshots').select('document').where('id', '=', id).executeTakeFirst()
    const head = row && headIn(JSON.parse(row.document) as SnapshotFile)
    if (head) heads.set(id, head)
    return head
  }
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
  /** By snapshot: the nodes whose newest own one it is. */
  const holdersNow = (): Holders => {
    const holders = new Map<string, { shard: string; node: string }[]>()
    for (const { id: shard, nodes } of cluster.shards()) {
      for (const { id: node, snapshot } of nodes) {
        if (!snapshot) continue
        const known = holders.get(snapshot.id)
        if (known) known.push({ shard, node })
        else holders.set(snapshot.id, [{ shard, node }])
      }
    }
    return holders
  }

  const viewOf = (
    row: Pick<Row, (typeof COLUMNS)[number]>,
    head: Head,
    done: readonly InstallRow[],
    hash: string | undefined,
    holders: Holders,
  ): SnapshotView => ({
    id: row.id,
    name: row.name,
    origin: 'import',
    shard: row.shard,
    stored: true,
    ...head,
    codecsCurrent: hash === undefined ? null : hash === head.codecHash,
    bytes: row.bytes,
    sha256: row.sha256,
    createdAt: new Date(row.created_at).toISOString(),
    by: row.by_name,
    import: row.import_id,
    installable: row.installable === 1,
    servedBy: servedBy(row.id, done),
    heldBy: holders.get(row.id) ?? [],
  })

  /** Newest own snapshots of nodes that were not built here. */
  const foundOnNodes = (known: ReadonlySet<string>, hash: string | undefined, holders: Holders): SnapshotView[] => {
    const found = new Map<string, SnapshotView>()
    for (const { id: shard, nodes } of cluster.shards()) {
      for (const { snapshot, window } of nodes) {
        if (!snapshot || known.has(snapshot.id) || found.has(snapshot.id)) continue
        const { id, lastIndex, packages, properties, segments, codecHash, bytes, createdAt, origin } = snapshot
        found.set(id, {
          ...{ id, shard, origin, packages, properties, segments, codecHash, bytes, createdAt, window },
          name: `${shard}, entry ${lastIndex}`,
          stored: false,
          roomTypes: null,
          codecsCurrent: hash === undefined ? null : hash === codecHash,
          sha256: null,
          by: '',
          import: null,
          installable: false,
          servedBy: [],
          heldBy: holders.get(id) ?? [],
        })
      }
    }
    return [...found.values()]
  }

  async function list(): Promise<SnapshotView[]> {
    const [stored, done, hash] = await Promise.all([rows(), installs(), codecHash()])
    const holders = holdersNow()
    const own: SnapshotView[] = []
    for (const row of stored) {
      // Undefined: it was deleted just now.
      const head = await headOf(row.id)
      if (head) own.push(viewOf(row, head, done, hash, holders))
    }
    const others = foundOnNodes(new Set(own.map(({ id }) => id)), hash, holders)
    return [...own, ...others].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1))
  }

  async function matrix({ query }: Asked<'GET /api/v1/snapshots/matrix'>) {
    const shards = cluster.shards()
    const founders = new Map(
      await Promise.all(shards.map(async (shard) => [shard.id, await foundersOf(cluster, shard)] as const)),
    )
    const asked = query.shard ?? (shards.length === 1 ? shards[0]?.id : undefined)
    const shard = shards.find(({ id }) => id === asked)
    if (query.shard !== undefined && !shard) {
      throw new ProblemError(404, 'no-such-shard', `No node of shard ${query.shard.slice(0, 128)} is known.`, {
        hint: 'The page of shards lists those that there are.',
      })
    }
    return {
      shards: shards.map((each) => restorableOf(each, founders.get(each.id))),
      matrix: shard
        ? matrixOf(
            shard,
            (await list()).filter((each) => each.shard === shard.id),
            founders.get(shard.id),
          )
        : null,
    }
  }

  async function details(id: string): Promise<SnapshotDetails> {
    const [row, done, hash] = await Promise.all([rowOf(id), installs(), codecHash()])
    if (!row) {
      const found = foundOnNodes(new Set(), hash, holdersNow()).find((each) => each.id === id)
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
      ...viewOf(row, headIn(document), done, hash, holdersNow()),
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
    heads.delete(row.id)
    await rm(pathOf(row.id), { force: true })
  }

  /** The file, or the part of it that is asked for. */
  async function send(
    row: Row,
    { headers, reply }: Pick<Asked<'GET /api/v1/pull/{id}'>, 'headers' | 'reply'>,
  ): Promise<Readable> {
    await checkFile(row)
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

  /** One tar: the file, what it holds and was made from, and the checksums of both. */
  async function archive({ params, reply }: Asked<'GET /api/v1/snapshots/{id}/archive'>): Promise<Readable> {
    const row = await rowOrRefuse(params.id)
    await checkFile(row)
    const document = JSON.parse(row.document) as SnapshotFile
    const { segments: _segments, path: _path, ...facts } = document
    const file = `${row.id}.snapshot`
    const createdAt = new Date(row.created_at).toISOString()
    const manifest = Buffer.from(
      `${JSON.stringify(
        {
          format: 'vacancy-snapshot-archive',
          version: 1,
          name: row.name,
          createdAt,
          by: row.by_name,
          file: { name: file, bytes: row.bytes, sha256: row.sha256 },
          snapshot: { ...facts, segments: document.segments.map(({ name, properties }) => ({ name, properties })) },
          counters: JSON.parse(row.counters) as unknown,
          sources: JSON.parse(row.sources) as unknown,
        },
        undefined,
        2,
      )}\n`,
    )
    const sums = Buffer.from(`${row.sha256}  ${file}\n${hashOf(manifest)}  manifest.json\n`)
    const entries = [
      { name: 'manifest.json', bytes: manifest.length, content: manifest },
      { name: 'SHA256SUMS', bytes: sums.length, content: sums },
      { name: file, bytes: row.bytes, content: () => createReadStream(pathOf(row.id), { highWaterMark: 1 << 20 }) },
    ]
    reply.header('content-type', 'application/x-tar')
    reply.header('content-disposition', `attachment; filename="vacancy-${row.id.slice(0, 12)}.tar"`)
    reply.header('content-length', String(tarBytes(entries)))
    return tarOf(entries, Math.floor(row.created_at / 1000))
  }

  /** @throws ProblemError 410 when the disk has not what the database says */
  async function checkFile(row: Row): Promise<void> {
    const found = await stat(pathOf(row.id)).catch((error: NodeJS.ErrnoException) => {
      // Any other fault is one of this machine, and belongs in its log.
      if (error.code !== 'ENOENT') throw error
      return undefined
    })
    if (found?.size === row.bytes) return
    throw new ProblemError(410, 'snapshot-lost', 'The file of this snapshot is gone from the disk.', {
      hint: 'Delete it here and build it again.',
    })
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
      'GET /api/v1/snapshots': async () => ({ snapshots: await list() }),
      'GET /api/v1/snapshots/compare': ({ query }) =>
        compare({ cluster, clock, find: async (id) => await rowOrRefuse(id) }, query.a, query.b),
      'GET /api/v1/snapshots/matrix': matrix,
      'GET /api/v1/snapshots/{id}': ({ params }) => details(params.id),
      'GET /api/v1/snapshots/{id}/download': async (asked) => await send(await rowOrRefuse(asked.params.id), asked),
      'GET /api/v1/snapshots/{id}/archive': archive,
      'POST /api/v1/snapshots/{id}/delete': remove,
      'GET /api/v1/pull/{id}': pull,
    },
    list,
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

/** Of a stored snapshot, all but what was counted of it. */
const COLUMNS = ['id', 'name', 'shard', 'bytes', 'sha256', 'import_id', 'by_name', 'created_at', 'installable'] as const
/** Nodes by the snapshot that is their newest own one. */
type Holders = ReadonlyMap<string, SnapshotView['heldBy']>
type Head = Pick<SnapshotView, 'packages' | 'properties' | 'segments' | 'roomTypes' | 'window' | 'codecHash'>

function headIn({ packages, properties, segments, roomTypes, window, codecHash }: SnapshotFile): Head {
  return { packages, properties, segments: segments.length, roomTypes, window, codecHash }
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

/** Of a shard that waits to form, who is to found it; whoever waits tells the same. */
async function foundersOf(cluster: Cluster, { id, state }: ShardView): Promise<Founders | undefined> {
  if (state !== 'forming') return undefined
  for (const node of cluster.addresses(id)) {
    try {
      const { status, body } = await cluster.ask(node, '/cluster/info')
      const told = status === 200 ? clusterInfoBody.safeParse(parseJson(body)).data?.bootstrap : undefined
      if (told) return told
    } catch (error) {
      // Silent: another one may wait as well, and who did not answer stands in the matrix.
      if (!(error instanceof ProblemError)) throw error
    }
  }
  return undefined
}

function hashOf(token: string | Buffer): string {
  return createHash('sha256').update(token).digest('hex')
}
