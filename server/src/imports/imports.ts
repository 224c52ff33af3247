/**
 * The life of an import (console.md §8): two uploads become a snapshot.
 *
 *   uploading ──► queued ──► checking ──► building ──► verifying ──► built
 *
 * Each may end in `failed` or `cancelled`. One is worked on at a time, in processes of their own. What is on its way
 * when the control plane ends is begun again at its next start; what stands in the database is enough for that.
 *
 *   folder/builds/<id>/   properties.csv, packages.csv, codecs.yml while it runs; errors.jsonl for as long as it is listed
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  addOneYear,
  type Clock,
  createCodecList,
  dayOf,
  formatDay,
  ID_RULE,
  parseDay,
  parseId,
  VacancyError,
} from '@vacancy/shared'
import {
  FILE_KINDS,
  type FileKind,
  IMPORT_LIMITS,
  type IMPORT_ROUTES,
  type ImportState,
  type ImportView,
  type Summary,
} from '@vacancy/shared/contract'
import { parseCodecFile } from '@vacancy/shared/node'
import type { Logger } from 'pino'
import type { WriteAudit } from '../audit.ts'
import type { Database } from '../database.ts'
import type { Live } from '../live.ts'
import { type Asked, type Handlers, ProblemError } from '../route.ts'
import { createBuild } from './build-import.ts'
import type { CodecSource } from './codecs.ts'
import { detailOf, type ImportDetail, type Item, isOver, itemOf, noteOf, type Row } from './item.ts'
import { FileFault } from './reading.ts'
import { errorsPage, rejectedFile } from './rejected.ts'
import type { Snapshots } from './snapshots.ts'
import { isDiskFull, type UploadRow, type Uploads } from './uploads.ts'

/** Imports that are over and still listed. */
const ENDED_KEPT = 200
/** A process that ends while it works on an import so often is ended by the import. */
const ATTEMPTS_MAX = 3
const LOG_LINE_CHARACTERS_MAX = 500

export type Imports = {
  readonly handlers: Pick<
    Handlers<typeof IMPORT_ROUTES>,
    | 'GET /api/v1/import-options'
    | 'POST /api/v1/imports'
    | 'GET /api/v1/imports'
    | 'GET /api/v1/imports/{id}'
    | 'POST /api/v1/imports/{id}/cancel'
    | 'POST /api/v1/imports/{id}/again'
    | 'POST /api/v1/import-codecs'
    | 'GET /api/v1/imports/{id}/errors'
    | 'GET /api/v1/imports/{id}/files/{file}'
  >
  readonly start: () => Promise<void>
  readonly stop: () => Promise<void>
  readonly onUpload: (row: UploadRow, isComplete: boolean) => void
  /** For the overview. */
  readonly running: () => Summary['running']
}

export type ImportsParts = {
  readonly database: Database
  readonly audit: WriteAudit
  readonly clock: Clock
  readonly log: Logger
  readonly live: Live
  readonly folder: string
  readonly uploads: Uploads
  readonly snapshots: Snapshots
  readonly codecs: CodecSource
  readonly shards: () => readonly string[]
  /** Files may be taken from a folder of this machine. */
  readonly hasFolder: boolean
  /** Whether nodes of a shard read a codec file of their own. */
  readonly ownCodecs: (shard: string) => boolean
}

export function createImports(parts: ImportsParts): Imports {
  const { database, audit, clock, log, live, uploads, snapshots } = parts
  const items = new Map<string, Item>()
  const folderOf = (id: string) => join(parts.folder, 'builds', id)
  let working: Promise<void> | undefined
  let isStopping = false

  // What is told

  const now = () => new Date(clock.wallMs()).toISOString()
  const ordered = () => [...items.values()].sort((a, b) => b.row.created_at - a.row.created_at)
  const received = new Map<string, number>()

  const viewOf = ({ row, detail, progress, rates }: Item): ImportView => {
    const state = row.state as ImportState
    const file = (kind: FileKind) => {
      const note = detail.files[kind]
      const upload = row[`${kind}_upload`]
      return { upload, ...note, received: state === 'uploading' ? (received.get(upload) ?? 0) : note.bytes }
    }
    return {
      id: row.id,
      name: row.name,
      shard: row.shard,
      state,
      says: detail.says,
      hint: detail.hint,
      by: row.by_name,
      createdAt: iso(row.created_at),
      startedAt: row.started_at === null ? null : iso(row.started_at),
      endedAt: row.ended_at === null ? null : iso(row.ended_at),
      window: { from: row.window_from, to: row.window_to },
      files: { properties: file('properties'), packages: file('packages') },
      progress,
      rates,
      log: [...detail.log],
      errors: detail.errors,
      withoutRowsOf: row.without_rows_of,
      codecs: row.codecs === null ? null : (JSON.parse(row.codecs) as string[]),
      counters: detail.counters,
      snapshot: detail.snapshot,
      result: detail.result,
      cancellable: !isOver(row),
    }
  }

  const listBody = async () => ({
    imports: ordered().map(viewOf),
    uploads: (await uploads.list()).filter((upload) => upload.import === null),
  })

  /** How often followers are told, the channel decides. */
  const tell = (item: Item) => {
    live.touch(`import:${item.row.id}`)
    live.touch('imports')
  }
  live.offer(/^import:/, (topic) => {
    const item = items.get(topic.slice('import:'.length))
    return item && viewOf(item)
  })
  live.offer(/^imports$/, listBody)

  const save = async (item: Item, row: Partial<Row>, detail: Partial<ImportDetail> = {}) => {
    item.row = { ...item.row, ...row }
    item.detail = { ...item.detail, ...detail }
    const { id: _id, ...columns } = item.row
    await database
      .updateTable('imports')
      .set({ ...columns, detail: JSON.stringify(item.detail) })
      .where('id', '=', item.row.id)
      .execute()
    tell(item)
  }
  const note = (item: Item, line: string) => {
    const lines = [...item.detail.log, `${now().slice(11, 19)} ${line.slice(0, LOG_LINE_CHARACTERS_MAX)}`]
    item.detail = { ...item.detail, log: lines.slice(-IMPORT_LIMITS.logLinesMax) }
  }

  // What is asked

  const findOrRefuse = (id: string): Item => {
    const item = items.get(id)
    if (item) return item
    throw new ProblemError(404, 'no-such-import', `There is no import ${id.slice(0, 64)}.`, {
      hint: 'The page of imports lists those that there are.',
    })
  }

  async function create(asked: Asked<'POST /api/v1/imports'>): Promise<ImportView> {
    const { body } = asked
    if (parseId(body.shard) === undefined) {
      throw new ProblemError(400, 'invalid-shard', `${JSON.stringify(body.shard)} is no id of a shard.`, {
        field: 'shard',
        hint: `It must be ${ID_RULE}.`,
      })
    }
    const codecs = body.codecs && (await ownCodecs(body.shard, body.codecs))
    const { from, to } = windowOf(body, clock)
    return await begin(
      { name: body.name, shard: body.shard, from, to, properties: body.properties, packages: body.packages, codecs },
      asked,
      { action: 'import.create', reason: '' },
    )
  }

  /** Only where nodes read a file of their own may another list come with the files. */
  async function ownCodecs(shard: string, names: readonly string[]): Promise<readonly string[]> {
    const { orderedHash } = checkedList(() => createCodecList(names))
    if (parts.ownCodecs(shard)) return names
    const { hash, source } = await parts.codecs(shard)
    if (hash === orderedHash) return names
    throw new ProblemError(
      409,
      'codec-list-differs',
      `In a cluster the list of the registry counts, as ${source} has it.`,
      {
        field: 'codecs',
        hint: 'Leave the file out; to change the list itself see the page of the codec list.',
      },
    )
  }

  type Begun = {
    readonly name: string
    readonly shard: string
    readonly from: string
    readonly to: string
    readonly properties: string
    readonly packages: string
    readonly codecs?: readonly string[] | undefined
    readonly withoutRowsOf?: string
  }

  async function begin(
    given: Begun,
    { asker, address, requestId }: Pick<Asked<'POST /api/v1/imports'>, 'asker' | 'address' | 'requestId'>,
    note: { readonly action: string; readonly reason: string },
  ): Promise<ImportView> {
    const open = [...items.values()].filter(({ row }) => !isOver(row))
    if (open.length >= IMPORT_LIMITS.importsOpenMax) {
      throw new ProblemError(409, 'too-many-imports', `${open.length} imports are not over yet.`, {
        hint: 'Wait for one of them, or cancel it.',
      })
    }
    const [properties, packages] = (await Promise.all(FILE_KINDS.map((kind) => uploadFor(given[kind], kind)))) as [
      UploadRow,
      UploadRow,
    ]
    const at = clock.wallMs()
    const detail: ImportDetail = {
      says: 'Files are being uploaded.',
      hint: '',
      files: { properties: noteOf(properties), packages: noteOf(packages) },
      errors: null,
      counters: null,
      snapshot: null,
      result: null,
      log: [],
    }
    const row: Row = {
      id: randomUUID(),
      name: given.name,
      shard: given.shard,
      state: 'uploading',
      by_name: asker.name,
      created_at: at,
      started_at: null,
      ended_at: null,
      window_from: given.from,
      window_to: given.to,
      properties_upload: properties.id,
      packages_upload: packages.id,
      attempts: 0,
      without_rows_of: given.withoutRowsOf ?? null,
      codecs: given.codecs ? JSON.stringify(given.codecs) : null,
      detail: JSON.stringify(detail),
    }
    await database.transaction().execute(async (transaction) => {
      await transaction.insertInto('imports').values(row).execute()
      const what = { ...note, target: row.name, result: 'done', detail: `shard ${row.shard}, ${row.id}` }
      await audit({ asker, address, requestId, ...what }, transaction)
    })
    const item = itemOf(row, detail)
    items.set(row.id, item)
    for (const upload of [properties, packages]) received.set(upload.id, upload.received)
    await uploads.give([properties.id, packages.id], row.id)
    await beginWhenComplete(item)
    await forgetOld()
    return viewOf(item)
  }

  async function again(asked: Asked<'POST /api/v1/imports/{id}/again'>): Promise<ImportView> {
    const { row, detail } = findOrRefuse(asked.params.id)
    const errors = detail.errors
    if (row.state !== 'failed' || !errors) {
      throw new ProblemError(409, 'nothing-rejected', `${row.name} has no rejected rows.`, {
        hint: 'Only a build that failed for what is in its files can be done again without them.',
      })
    }
    if (errors.rows === null) {
      throw new ProblemError(409, 'rows-unknown', errors.again, { hint: 'Mend the files and import them again.' })
    }
    const { name, shard, window_from: from, window_to: to, codecs } = row
    return await begin(
      {
        ...{ name, shard, from, to, properties: row.properties_upload, packages: row.packages_upload },
        codecs: codecs === null ? undefined : (JSON.parse(codecs) as string[]),
        withoutRowsOf: row.id,
      },
      asked,
      { action: 'import.again', reason: asked.body.reason },
    )
  }

  async function uploadFor(id: string, kind: FileKind): Promise<UploadRow> {
    const row = await uploads.find(id)
    if (!row) {
      throw new ProblemError(404, 'no-such-upload', `There is no upload ${id.slice(0, 64)}.`, {
        field: kind,
        hint: 'Upload the file again.',
      })
    }
    if (row.kind !== kind) {
      throw new ProblemError(400, 'wrong-kind', `${row.name} was uploaded as ${row.kind}.csv.`, {
        field: kind,
        hint: 'Name the two uploads the other way round.',
      })
    }
    if (row.import_id !== null) {
      throw new ProblemError(409, 'upload-in-use', `${row.name} belongs to another import.`, {
        field: kind,
        hint: 'Wait for that import or cancel it; its files can be used again then.',
      })
    }
    return row
  }

  async function cancel(asked: Asked<'POST /api/v1/imports/{id}/cancel'>): Promise<ImportView> {
    const { params, asker, address, requestId } = asked
    const item = findOrRefuse(params.id)
    if (isOver(item.row)) {
      throw new ProblemError(409, 'import-over', `The import is ${item.row.state} already.`, {
        hint: 'Nothing is left to cancel.',
      })
    }
    await audit({
      asker,
      address,
      requestId,
      action: 'import.cancel',
      target: item.row.name,
      result: 'done',
      detail: item.row.id,
    })
    item.isCancelled = true
    note(item, `cancelled by ${asker.name}`)
    if (item.end) {
      item.end.abort()
      await working
    } else await finish(item, 'cancelled', 'It was cancelled. What it had written is removed.', '')
    return viewOf(item)
  }

  const errorsFileOf = (id: string): string => {
    const item = findOrRefuse(id)
    const file = join(folderOf(item.row.id), 'errors.jsonl')
    if (item.detail.errors && existsSync(file)) return file
    throw new ProblemError(404, 'no-errors', `No errors of ${item.row.name} are kept.`, {
      hint: 'There are some only after a build has failed for what is in the files.',
    })
  }

  const handlers: Imports['handlers'] = {
    'GET /api/v1/import-options': async () => {
      const today = dayOf(clock.wallMs())
      const [codecs, freeBytes] = await Promise.all([
        parts.codecs(undefined).then(
          (found) => ({ codecs: found, codecsError: '' }),
          (error: unknown) => ({ codecs: null, codecsError: (error as Error).message }),
        ),
        uploads.freeBytes(),
      ])
      const last = ordered().find(({ detail }) => detail.result)
      return {
        ...codecs,
        shards: [...parts.shards()],
        freeBytes,
        recordsPerSecond: last?.detail.result?.recordsPerSecond ?? null,
        folder: parts.hasFolder,
        today: formatDay(today),
        window: { from: formatDay(today), to: formatDay(addOneYear(today)) },
      }
    },
    'POST /api/v1/imports': create,
    'POST /api/v1/imports/{id}/again': again,
    'POST /api/v1/import-codecs': ({ body }) => {
      const { names, orderedHash } = checkedList(() => parseCodecFile(body.text, 'codecs.yml'))
      return { names: [...names], hash: orderedHash }
    },
    'GET /api/v1/imports': listBody,
    'GET /api/v1/imports/{id}': ({ params }) => viewOf(findOrRefuse(params.id)),
    'POST /api/v1/imports/{id}/cancel': cancel,
    'GET /api/v1/imports/{id}/errors': ({ params, query }) => errorsPage(errorsFileOf(params.id), query),
    'GET /api/v1/imports/{id}/files/{file}': ({ params, reply }) => {
      const stream = rejectedFile(errorsFileOf(params.id), params.file)
      reply.header('content-type', params.file.endsWith('.json') ? 'application/json' : 'text/csv; charset=utf-8')
      reply.header('content-disposition', `attachment; filename="${params.file}"`)
      return stream
    },
  }

  // What is done

  const buildItem = createBuild({ clock, uploads, snapshots, codecs: parts.codecs, folderOf, save, note, tell })

  async function beginWhenComplete(item: Item): Promise<void> {
    if (item.row.state !== 'uploading') return
    const rows = await Promise.all(FILE_KINDS.map((kind) => uploads.find(item.row[`${kind}_upload`])))
    if (rows.some((row) => row === undefined)) {
      return await finish(item, 'failed', 'A file of this import is gone.', 'Begin a new import with both files.')
    }
    if (rows.some((row) => row && row.received < row.bytes)) return tell(item)
    await save(item, { state: 'queued' }, { says: 'It waits for its turn.' })
    work()
  }

  /** One import after the other: a build uses all cores by itself. */
  function work(): void {
    if (working || isStopping) return
    const next = ordered().findLast(({ row }) => row.state === 'queued')
    if (!next) return
    working = build(next)
      .catch((error: unknown) => log.error({ err: error, import: next.row.id }, 'an import could not be ended'))
      .finally(() => {
        working = undefined
        work()
      })
  }

  async function build(item: Item): Promise<void> {
    const end = new AbortController()
    item.end = end
    try {
      const { state, says, hint } = await buildItem(item, end.signal)
      await finish(item, state, says, hint)
    } catch (error) {
      // At a stop it stays as it is: the next start begins it again.
      if (isStopping && !item.isCancelled) return
      if (item.isCancelled) await finish(item, 'cancelled', 'It was cancelled. What it had written is removed.', '')
      else await fail(item, error)
    } finally {
      item.end = undefined
    }
  }

  async function fail(item: Item, error: unknown): Promise<void> {
    if (error instanceof FileFault) return await finish(item, 'failed', error.message, error.hint)
    if (isDiskFull(error)) {
      const hint = 'Delete old snapshots or unfinished uploads, then begin a new import with the same uploads.'
      return await finish(item, 'failed', 'The disk of the control plane is full.', hint)
    }
    log.error({ err: error, import: item.row.id }, 'an import failed')
    await finish(item, 'failed', (error as Error).message, 'The log of the import and of the control plane say more.')
  }

  async function finish(
    item: Item,
    state: 'built' | 'failed' | 'cancelled',
    says: string,
    hint: string,
  ): Promise<void> {
    note(item, says)
    if (state !== 'built') item.progress = null
    const ids = FILE_KINDS.map((kind) => item.row[`${kind}_upload`])
    await save(item, { state, ended_at: clock.wallMs() }, { says, hint })
    // A snapshot is there: its files have done their work. Otherwise they can be used again.
    if (state === 'built') for (const id of ids) await uploads.drop(id)
    else await uploads.give(ids, null)
    await clearBuild(item.row.id, item.detail.errors !== null)
    await audit({
      asker: 'system',
      address: '',
      requestId: '',
      action: 'import.end',
      target: item.row.name,
      result: state,
      detail: says,
    })
    tell(item)
  }

  async function clearBuild(id: string, keepsErrors: boolean): Promise<void> {
    const folder = folderOf(id)
    if (!keepsErrors) return await rm(folder, { recursive: true, force: true })
    for (const name of await readdir(folder)) {
      if (name !== 'errors.jsonl') await rm(join(folder, name), { recursive: true, force: true })
    }
  }

  async function forgetOld(): Promise<void> {
    const ended = ordered().filter(({ row }) => isOver(row))
    for (const { row } of ended.slice(ENDED_KEPT)) {
      items.delete(row.id)
      await database.deleteFrom('imports').where('id', '=', row.id).execute()
      await rm(folderOf(row.id), { recursive: true, force: true })
    }
  }

  async function start(): Promise<void> {
    const rows = await database.selectFrom('imports').selectAll().execute()
    for (const row of rows) items.set(row.id, itemOf(row, detailOf(row.detail)))
    for (const upload of await uploads.list()) received.set(upload.id, upload.offset)
    await removeUnknown()
    for (const item of ordered()) {
      if (isOver(item.row)) continue
      if (item.row.state === 'uploading') {
        await beginWhenComplete(item)
        continue
      }
      if (item.row.attempts >= ATTEMPTS_MAX) {
        const says = `The control plane ended ${ATTEMPTS_MAX} times while it worked on this import.`
        await finish(item, 'failed', says, 'Look into its log for what ended it, memory above all; then import again.')
        continue
      }
      note(item, 'the control plane was started anew')
      await save(item, { state: 'queued' }, { says: 'It was interrupted and begins again.' })
    }
    await uploads.sweep()
    work()
  }

  async function removeUnknown(): Promise<void> {
    const folder = join(parts.folder, 'builds')
    await mkdir(folder, { recursive: true })
    for (const name of await readdir(folder)) {
      if (!items.has(name)) await rm(join(folder, name), { recursive: true, force: true })
    }
  }

  return {
    handlers,
    start,
    async stop() {
      isStopping = true
      for (const item of items.values()) {
        item.end?.abort()
      }
      await working
    },
    onUpload(row, isComplete) {
      received.set(row.id, row.received)
      const item = row.import_id === null ? undefined : items.get(row.import_id)
      if (!item) return live.touch('imports')
      if (!isComplete) return tell(item)
      beginWhenComplete(item).catch((error: unknown) => {
        log.error({ err: error, import: item.row.id }, 'an import could not be begun')
      })
    },
    running: () =>
      ordered()
        .filter(({ row }) => !isOver(row))
        .map((item) => ({
          id: item.row.id,
          kind: 'import',
          title: `Import ${item.row.name}`,
          says: item.detail.says,
          href: `/imports/${item.row.id}`,
          percent: item.progress?.percent ?? null,
        })),
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}

function checkedList<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    throw new ProblemError(400, 'invalid-codecs', error.message, {
      field: 'codecs',
      hint: 'A codec file has the key rate_features with 1 to 24 names.',
      cause: error,
    })
  }
}

function windowOf(
  given: { readonly from?: string | undefined; readonly to?: string | undefined },
  clock: Clock,
): { from: string; to: string } {
  const today = dayOf(clock.wallMs())
  const from = given.from ?? formatDay(today)
  const to = given.to ?? formatDay(addOneYear(today))
  const [first, last] = [parseDay(from), parseDay(to)]
  if (first !== undefined && last !== undefined && first <= last) return { from, to }
  throw new ProblemError(400, 'invalid-window', `${from} to ${to} are no nights.`, {
    field: 'from',
    hint: 'Name the first and the last night to keep, YYYY-MM-DD, in this order.',
  })
}
