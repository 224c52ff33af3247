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
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { addOneYear, type Clock, dayOf, formatDay, ID_RULE, parseDay, parseId } from '@vacancy/shared'
import {
  BUILD_PHASES,
  type BuildDone,
  type BuildEvent,
  type BuildPhase,
  FILE_KINDS,
  type FileKind,
  IMPORT_ENDS,
  IMPORT_LIMITS,
  type IMPORT_ROUTES,
  type ImportState,
  type ImportView,
  type Summary,
} from '@vacancy/shared/contract'
import type { Selectable } from 'kysely'
import type { Logger } from 'pino'
import type { WriteAudit } from '../audit.ts'
import { grouped } from '../cluster/derive.ts'
import type { Database } from '../database.ts'
import type { Live } from '../live.ts'
import { type Asked, type Handlers, ProblemError } from '../route.ts'
import { buildArguments, inspectSnapshot, memoryOf, runBuild } from './builder.ts'
import type { CodecSource, Codecs } from './codecs.ts'
import { FileFault, type Reading, readUpload } from './reading.ts'
import { errorsPage, keptOf, rejectedFile } from './rejected.ts'
import type { Snapshots } from './snapshots.ts'
import type { ImportTables } from './tables.ts'
import { isDiskFull, type UploadRow, type Uploads } from './uploads.ts'

/** Imports that are over and still listed. */
const ENDED_KEPT = 200
/** A process that ends while it works on an import so often is ended by the import. */
const ATTEMPTS_MAX = 3
const LOG_LINE_CHARACTERS_MAX = 500
/** The codec list is asked for this long before an import gives up. */
const CODECS_MS = 60_000
const CODECS_AGAIN_MS = 1_000

/** Where each phase ends, of the whole. */
const SHARES: Readonly<Record<BuildPhase, readonly [from: number, to: number]>> = {
  settings: [0, 10],
  properties: [10, 15],
  packages: [15, 80],
  tables: [80, 84],
  write: [84, 92],
  verify: [92, 100],
}

type FileNote = {
  readonly name: string
  readonly bytes: number
  readonly sha256: string | null
  readonly rows: number | null
  readonly unpacked: boolean
}

type ImportDetail = {
  readonly says: string
  readonly hint: string
  readonly files: Readonly<Record<FileKind, FileNote>>
  readonly errors: ImportView['errors']
  readonly counters: ImportView['counters']
  readonly snapshot: string | null
  readonly result: ImportView['result']
  readonly log: readonly string[]
}

type Row = Selectable<ImportTables['imports']>

/** An import as it is worked with; `row` and `detail` are what the database has. */
type Item = {
  row: Row
  detail: ImportDetail
  progress: ImportView['progress']
  rates: number[]
  /** Ends the work on it; set while there is any. */
  end: AbortController | undefined
  isCancelled: boolean
}

export type Imports = {
  readonly handlers: Pick<
    Handlers<typeof IMPORT_ROUTES>,
    | 'GET /api/v1/import-options'
    | 'POST /api/v1/imports'
    | 'GET /api/v1/imports'
    | 'GET /api/v1/imports/{id}'
    | 'POST /api/v1/imports/{id}/cancel'
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
    const { body, asker, address, requestId } = asked
    if (parseId(body.shard) === undefined) {
      throw new ProblemError(400, 'invalid-shard', `${JSON.stringify(body.shard)} is no id of a shard.`, {
        field: 'shard',
        hint: `It must be ${ID_RULE}.`,
      })
    }
    const open = [...items.values()].filter(({ row }) => !isOver(row))
    if (open.length >= IMPORT_LIMITS.importsOpenMax) {
      throw new ProblemError(409, 'too-many-imports', `${open.length} imports are not over yet.`, {
        hint: 'Wait for one of them, or cancel it.',
      })
    }
    const { from, to } = windowOf(body, clock)
    const [properties, packages] = (await Promise.all(FILE_KINDS.map((kind) => uploadFor(body[kind], kind)))) as [
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
      name: body.name,
      shard: body.shard,
      state: 'uploading',
      by_name: asker.name,
      created_at: at,
      started_at: null,
      ended_at: null,
      window_from: from,
      window_to: to,
      properties_upload: properties.id,
      packages_upload: packages.id,
      attempts: 0,
      detail: JSON.stringify(detail),
    }
    await database.transaction().execute(async (transaction) => {
      await transaction.insertInto('imports').values(row).execute()
      const what = {
        action: 'import.create',
        target: row.name,
        result: 'done',
        detail: `shard ${row.shard}, ${row.id}`,
      }
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
        today: formatDay(today),
        window: { from: formatDay(today), to: formatDay(addOneYear(today)) },
      }
    },
    'POST /api/v1/imports': create,
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
      await buildSteps(item, end.signal)
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

  async function buildSteps(item: Item, signal: AbortSignal): Promise<void> {
    const folder = folderOf(item.row.id)
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true })
    const attempts = item.row.attempts + 1
    note(item, attempts === 1 ? 'begun' : `begun again, attempt ${attempts}`)
    item.rates = []
    item.progress = null
    const begun = { state: 'checking', attempts, started_at: clock.wallMs() }
    await save(item, begun, { says: 'Both files are being read.', hint: '', errors: null, counters: null })
    const codecs = await codecsFor(item, signal)
    note(item, `codec list of ${codecs.source}: ${codecs.names.join(', ')}`)
    await writeFile(
      join(folder, 'codecs.yml'),
      `rate_features:\n${codecs.names.map((name) => `  - ${JSON.stringify(name)}\n`).join('')}`,
    )
    const readings = await readBoth(item, folder, signal)

    await save(item, { state: 'building' }, { says: 'The snapshot is being built.' })
    const done = await buildWith(item, folder, signal)
    if (!done) return

    await save(item, { state: 'verifying' }, { says: 'The snapshot is read back and counted.' })
    note(item, 'reading the snapshot back')
    showProgress(item, { phase: 'verify', done: 0, total: 1 })
    const document = await inspectSnapshot(done.path, signal)
    const counters = countersOf(readings, done, document)
    for (const line of counters.differs) note(item, line)
    note(item, counters.agree ? 'all counters agree' : 'counters differ')
    await snapshots.add({
      path: done.path,
      document,
      counters,
      import: item.row,
      sources: FILE_KINDS.map((kind) => {
        const { name, bytes, sha256, rows } = item.detail.files[kind]
        return { name, bytes, sha256: sha256 ?? '', rows: rows ?? 0 }
      }),
    })
    const { seconds, recordsPerSecond, threads, kernel, notes } = done
    const command = `vacancy ${buildArguments({ ...optionsOf(item), inputPath: 'DIR', outputPath: 'DIR' }).join(' ')}`
    item.detail = {
      ...item.detail,
      counters,
      snapshot: document.id,
      result: { seconds, recordsPerSecond, threads, kernel, notes: [...notes], command },
    }
    showProgress(item, { phase: 'verify', done: 1, total: 1 })
    const built = `Built in ${seconds.toFixed(1)} s: ${grouped(done.packages)} packages of ${grouped(done.properties)} properties.`
    const differ = 'Counters differ, so it cannot be installed.'
    const hint = counters.agree ? '' : 'Import again; if they differ again, keep both files for a report.'
    await finish(item, 'built', counters.agree ? built : `${built} ${differ}`, hint)
  }

  /** A control plane that has just started knows no node yet, and a node may be starting as well. */
  async function codecsFor(item: Item, signal: AbortSignal): Promise<Codecs> {
    const until = clock.monotonicMs() + CODECS_MS
    for (;;) {
      try {
        return await parts.codecs(item.row.shard)
      } catch (error) {
        if (!(error instanceof ProblemError)) throw error
        if (clock.monotonicMs() > until) throw new FileFault(error.message, error.hint)
        await sleep(CODECS_AGAIN_MS, undefined, { signal })
      }
    }
  }

  const optionsOf = ({ row }: Item) => ({ shard: row.shard, from: row.window_from, to: row.window_to })

  async function readBoth(item: Item, folder: string, signal: AbortSignal): Promise<Record<FileKind, Reading>> {
    const { files } = item.detail
    const total = files.properties.bytes + files.packages.bytes
    const readings: Partial<Record<FileKind, Reading>> = {}
    let before = 0
    for (const kind of FILE_KINDS) {
      const upload = item.row[`${kind}_upload`]
      const { name, bytes } = files[kind]
      readings[kind] = await readUpload({
        source: uploads.pathOf(upload),
        target: join(folder, `${kind}.csv`),
        name,
        signal,
        onProgress: (done) => showProgress(item, { phase: 'settings', done: before + done, total }),
      })
      before += bytes
    }
    const read = readings as Record<FileKind, Reading>
    if (read.properties.kind === 'packages' && read.packages.kind === 'properties') {
      throw new FileFault(
        `${files.properties.name} has the columns of packages, ${files.packages.name} those of properties.`,
        'Upload them the other way round.',
      )
    }
    for (const kind of FILE_KINDS) {
      if (read[kind].kind === kind || read[kind].rows === 0) continue
      const columns = kind === 'properties' ? 9 : 6
      throw new FileFault(
        `The first line of ${files[kind].name} has not the ${columns} columns of ${kind}.csv.`,
        'Check the file: cells are separated by commas, one record a line.',
      )
    }
    const noted = (kind: FileKind): FileNote => {
      const { sha256, rows, isUnpacked } = read[kind]
      note(item, `${files[kind].name}: ${rows} rows, sha256 ${sha256}${isUnpacked ? ', unpacked' : ''}`)
      return { ...files[kind], sha256, rows, unpacked: isUnpacked }
    }
    item.detail = { ...item.detail, files: { properties: noted('properties'), packages: noted('packages') } }
    for (const kind of FILE_KINDS) await uploads.noteDigest(item.row[`${kind}_upload`], read[kind].sha256)
    return read
  }

  /** @returns undefined when the files have errors, with which the import has failed */
  async function buildWith(item: Item, folder: string, signal: AbortSignal): Promise<BuildDone | undefined> {
    let done: BuildDone | undefined
    let failed: Extract<BuildEvent, { event: 'failed' }> | undefined
    let pid = 0
    let memory: number | null = null
    let phase = ''
    const errorsFile = join(folder, 'errors.jsonl')
    const sampling = setInterval(() => {
      if (pid !== 0) void memoryOf(pid).then((bytes) => (memory = bytes))
      if (item.progress && item.progress.phase === 'packages') {
        item.rates = [...item.rates, item.progress.recordsPerSecond].slice(-IMPORT_LIMITS.ratesMax)
      }
    }, 1_000)
    const { code, stderr } = await runBuild({
      ...optionsOf(item),
      inputPath: folder,
      outputPath: join(folder, 'out'),
      errorsFile,
      signal,
      onStart: (started) => {
        pid = started
      },
      onEvent: (event) => {
        if (event.event === 'done') done = event
        else if (event.event === 'failed') failed = event
        else {
          if (event.phase !== phase) note(item, event.phase === 'errors' ? 'looking for all errors' : event.phase)
          phase = event.phase
          showProgress(item, event, memory)
        }
      },
    }).finally(() => clearInterval(sampling))
    signal.throwIfAborted()
    if (done) return done
    if (failed) {
      const { count, countByKind } = failed
      const kept = Math.min(count, IMPORT_LIMITS.errorsKept)
      const errors = { count, countByKind: { ...countByKind }, kept, keptOf: await keptOf(errorsFile) }
      item.detail = { ...item.detail, errors }
      const hint =
        countByKind['feature'] !== undefined
          ? 'Rate features are missing in the codec list: mend the file, or change the list first.'
          : 'Download the rejected rows, mend the file and upload it again; the other one can stay.'
      await finish(
        item,
        'failed',
        `${grouped(count)} ${count === 1 ? 'error' : 'errors'} in the files; nothing was built.`,
        hint,
      )
      return undefined
    }
    for (const line of stderr.trim().split('\n').slice(-20)) note(item, line)
    if (stderr.includes('ENOSPC')) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
    const [last = `build-snapshot ended with ${code}`] = stderr.trim().split('\n').slice(-1)
    throw new FileFault(last.replace(/^vacancy build-snapshot: /, ''), 'The log of this import says what it was doing.')
  }

  function showProgress(
    item: Item,
    event: { phase: BuildPhase | 'errors'; done: number; total: number } & Partial<{
      packages: number
      recordsPerSecond: number
      etaSeconds: number | undefined
    }>,
    memoryBytes: number | null = null,
  ): void {
    const { phase, done, total, packages = 0, recordsPerSecond = 0, etaSeconds = null } = event
    const before = item.progress?.percent ?? 0
    const [from, to] = phase === 'errors' ? [before, before] : SHARES[phase]
    const share = total === 0 ? 1 : Math.min(1, done / total)
    // 100 only when everything is verified; and what was shown once is never taken back.
    const percent = Math.max(
      before,
      Math.min(phase === 'verify' && done >= total ? 100 : 99.9, from + (to - from) * share),
    )
    const startedAt = item.row.started_at ?? clock.wallMs()
    item.progress = {
      phase,
      number: phase === 'errors' ? (item.progress?.number ?? 0) : BUILD_PHASES.indexOf(phase) + 1,
      of: BUILD_PHASES.length,
      done,
      total,
      percent: Math.round(percent * 10) / 10,
      records: Math.max(packages, item.progress?.records ?? 0),
      recordsPerSecond: recordsPerSecond || (item.progress?.recordsPerSecond ?? 0),
      etaSeconds,
      seconds: Math.round((clock.wallMs() - startedAt) / 100) / 10,
      memoryBytes,
    }
    tell(item)
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
    for (const row of rows) items.set(row.id, itemOf(row, JSON.parse(row.detail) as ImportDetail))
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

function itemOf(row: Row, detail: ImportDetail): Item {
  return {
    row,
    detail,
    progress: null,
    rates: [],
    end: undefined,
    isCancelled: false,
  }
}

function isOver({ state }: Row): boolean {
  return IMPORT_ENDS.includes(state as ImportState)
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}

function noteOf({ name, bytes, sha256 }: UploadRow): FileNote {
  return { name, bytes, sha256, rows: null, unpacked: false }
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

/** Three that counted for themselves: the lines of the files, the builder, and the file that was written. */
export function countersOf(
  read: Readonly<Record<FileKind, { readonly rows: number }>>,
  done: Pick<BuildDone, 'properties' | 'packages' | 'outOfWindow'>,
  document: { readonly properties: number; readonly packages: number },
): NonNullable<ImportView['counters']> {
  const reader = { properties: read.properties.rows, packages: read.packages.rows }
  const builder = { properties: done.properties, packages: done.packages, outOfWindow: done.outOfWindow }
  const readBack = { properties: document.properties, packages: document.packages }
  const differs = [
    ...(reader.properties === builder.properties
      ? []
      : [`properties.csv has ${reader.properties} rows, the builder took ${builder.properties}`]),
    ...(reader.packages === builder.packages + builder.outOfWindow
      ? []
      : [
          `packages.csv has ${reader.packages} rows, the builder took ${builder.packages} and left out ${builder.outOfWindow}`,
        ]),
    ...(builder.properties === readBack.properties
      ? []
      : [`the builder took ${builder.properties} properties, the snapshot has ${readBack.properties}`]),
    ...(builder.packages === readBack.packages
      ? []
      : [`the builder took ${builder.packages} packages, the snapshot has ${readBack.packages}`]),
  ]
  return { reader, builder, readBack, agree: differs.length === 0, differs }
}
