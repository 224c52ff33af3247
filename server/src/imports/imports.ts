/**
 * The life cycle of an import: two uploads become a snapshot.
 *
 *   uploading ──► queued ──► checking ──► building ──► verifying ──► built
 *
 * Each state may end in `failed` or `cancelled`. One import is built at a time, in separate processes. Imports that are
 * interrupted by the end of the control plane are restarted at its next start from the database.
 *
 *   folder/builds/<id>/   properties.csv, packages.csv, codecs.yml while it runs; errors.jsonl for as long as it is listed
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  addOneYear,
  createCodecList,
  dayOf,
  formatDay,
  ID_RULE,
  parseDay,
  parseId,
  VacancyError,
} from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { type Caller, callerOf, type Handlers, type RouteRequest } from '@vacancy/shared/api/route'
import {
  FILE_KINDS,
  type FileKind,
  IMPORT_LIMITS,
  type IMPORT_ROUTES,
  type ImportView,
  type UploadView,
} from '@vacancy/shared/contract'
import { parseCodecFile } from '@vacancy/shared/node'
import { offerTopics } from '../live/topics.ts'
import { beginWhenComplete, finishImport, forgetOldImports } from './import-queue.ts'
import {
  addLogLine,
  buildFolder,
  type Imports,
  type ImportsOptions,
  importView,
  importViews,
  ordered,
  requireImport,
} from './import-state.ts'
import { type ImportDetail, isOver, itemOf, noteOf, type Row } from './item.ts'
import { errorsPage, rejectedFile } from './rejected.ts'
import { assignUploads, findUpload, freeDiskBytes, listUploads, type UploadRow } from './uploads.ts'

export function createImports(options: ImportsOptions): Imports {
  const imports: Imports = { ...options, items: new Map(), received: new Map(), working: undefined, isStopping: false }
  offerTopics(options.live, /^import:/, (topic) => {
    const item = imports.items.get(topic.slice('import:'.length))
    return item && importView(imports, item)
  })
  offerTopics(options.live, /^imports$/, () => listImports(imports))
  return imports
}

export function importHandlers(
  imports: Imports,
): Pick<
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
> {
  return {
    'GET /api/v1/import-options': () => readOptions(imports),
    'POST /api/v1/imports': (request) => createImport(imports, request),
    'POST /api/v1/imports/{id}/again': (request) => repeatImport(imports, request),
    'POST /api/v1/import-codecs': ({ body }) => parseCodecs(body.text),
    'GET /api/v1/imports': () => listImports(imports),
    'GET /api/v1/imports/{id}': ({ params }) => importView(imports, requireImport(imports, params.id)),
    'POST /api/v1/imports/{id}/cancel': (request) => cancelImport(imports, request),
    'GET /api/v1/imports/{id}/errors': ({ params, query }) => errorsPage(errorsFile(imports, params.id), query),
    'GET /api/v1/imports/{id}/files/{file}': (request) => getRejectedFile(imports, request),
  }
}

type NewImport = {
  readonly name: string
  readonly shard: string
  readonly from: string
  readonly to: string
  readonly properties: string
  readonly packages: string
  readonly codecs?: readonly string[] | undefined
  readonly withoutRowsOf?: string
  readonly priceDecimals: number
}

async function listImports(imports: Imports): Promise<{ imports: ImportView[]; uploads: UploadView[] }> {
  return {
    imports: importViews(imports),
    uploads: (await listUploads(imports.uploads)).filter((upload) => upload.import === null),
  }
}

async function createImport(imports: Imports, request: RouteRequest<'POST /api/v1/imports'>): Promise<ImportView> {
  const { body } = request
  if (parseId(body.shard) === undefined) {
    throw problem('invalid-shard', {
      detail: `${JSON.stringify(body.shard)} is not a shard id.`,
      field: 'shard',
      hint: `A shard id is ${ID_RULE}.`,
    })
  }
  const codecs = body.codecs && (await checkedCodecs(imports, body.shard, body.codecs))
  const { from, to } = windowOf(body, todayOf(imports, body.shard))
  return await beginImport(imports, { ...body, from, to, codecs }, request, { action: 'import.create', reason: '' })
}

/** A codec list can be given with the files only if the nodes read codec files of their own. */
async function checkedCodecs(imports: Imports, shard: string, names: readonly string[]): Promise<readonly string[]> {
  const { orderedHash } = checkedList(() => createCodecList(names))
  if (imports.ownCodecs(shard)) return names
  const { hash, source } = await imports.codecs(shard)
  if (hash === orderedHash) return names
  throw problem('codec-list-differs', {
    detail: `In a cluster the codec list of the registry applies (${source}).`,
    field: 'codecs',
  })
}

async function beginImport(
  imports: Imports,
  given: NewImport,
  { principal, address, userAgent, requestId }: Pick<RouteRequest<'POST /api/v1/imports'>, keyof Caller>,
  note: { readonly action: string; readonly reason: string },
): Promise<ImportView> {
  const open = [...imports.items.values()].filter(({ row }) => !isOver(row))
  if (open.length >= IMPORT_LIMITS.importsOpenMax) {
    throw problem('too-many-imports', { detail: `${open.length} imports have not ended yet.` })
  }
  const [properties, packages] = (await Promise.all(
    FILE_KINDS.map((kind) => uploadFor(imports, given[kind], kind)),
  )) as [UploadRow, UploadRow]
  const at = imports.clock.wallMs()
  const detail: ImportDetail = {
    message: 'Uploading files.',
    hint: '',
    files: { properties: noteOf(properties), packages: noteOf(packages) },
    errors: null,
    counters: null,
    snapshot: null,
    priceDecimals: given.priceDecimals,
    result: null,
    pace: null,
    log: [],
  }
  const row: Row = {
    id: randomUUID(),
    name: given.name,
    shard: given.shard,
    state: 'uploading',
    by_name: principal.name,
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
  await imports.database.transaction().execute(async (transaction) => {
    await transaction.insertInto('imports').values(row).execute()
    const what = { ...note, target: row.name, result: 'done', detail: `shard ${row.shard}, ${row.id}` }
    await imports.audit({ principal, address, userAgent, requestId, ...what }, transaction)
  })
  const item = itemOf(row, detail)
  imports.items.set(row.id, item)
  for (const upload of [properties, packages]) imports.received.set(upload.id, upload.received)
  await assignUploads(imports.uploads, [properties.id, packages.id], row.id)
  await beginWhenComplete(imports, item)
  await forgetOldImports(imports)
  return importView(imports, item)
}

async function repeatImport(
  imports: Imports,
  request: RouteRequest<'POST /api/v1/imports/{id}/again'>,
): Promise<ImportView> {
  const { row, detail } = requireImport(imports, request.params.id)
  const errors = detail.errors
  if (row.state !== 'failed' || !errors) {
    throw problem('nothing-rejected', { detail: `${row.name} has no rejected rows.` })
  }
  if (errors.rows === null) {
    throw problem('rows-unknown', { detail: errors.again })
  }
  const { name, shard, window_from: from, window_to: to, codecs } = row
  return await beginImport(
    imports,
    {
      ...{ name, shard, from, to, properties: row.properties_upload, packages: row.packages_upload },
      codecs: codecs === null ? undefined : (JSON.parse(codecs) as string[]),
      withoutRowsOf: row.id,
      priceDecimals: detail.priceDecimals,
    },
    request,
    { action: 'import.again', reason: request.body.reason },
  )
}

async function uploadFor(imports: Imports, id: string, kind: FileKind): Promise<UploadRow> {
  const row = await findUpload(imports.uploads, id)
  if (!row) {
    throw problem('no-such-upload', {
      detail: `There is no upload ${id.slice(0, 64)}.`,
      field: kind,
      hint: 'Upload the file again.',
    })
  }
  if (row.kind !== kind) {
    throw problem('wrong-kind', { detail: `${row.name} was uploaded as ${row.kind}.csv.`, field: kind })
  }
  if (row.import_id !== null) {
    throw problem('upload-in-use', {
      detail: `${row.name} belongs to another import.`,
      field: kind,
      hint: 'Wait for that import or cancel it. Then its files can be used again.',
    })
  }
  return row
}

async function cancelImport(
  imports: Imports,
  request: RouteRequest<'POST /api/v1/imports/{id}/cancel'>,
): Promise<ImportView> {
  const { params, principal } = request
  const item = requireImport(imports, params.id)
  if (isOver(item.row)) {
    throw problem('import-over', { detail: `The import is already ${item.row.state}.` })
  }
  await imports.audit({
    ...callerOf(request),
    action: 'import.cancel',
    target: item.row.name,
    result: 'done',
    detail: item.row.id,
  })
  item.isCancelled = true
  addLogLine(imports, item, `cancelled by ${principal.name}`)
  if (item.end) {
    item.end.abort()
    await imports.working
  } else await finishImport(imports, item, 'cancelled', 'Cancelled. Its files were removed.', '')
  return importView(imports, item)
}

function errorsFile(imports: Imports, id: string): string {
  const item = requireImport(imports, id)
  const file = join(buildFolder(imports, item.row.id), 'errors.jsonl')
  if (item.detail.errors && existsSync(file)) return file
  throw problem('no-errors', { detail: `No errors of ${item.row.name} are stored.` })
}

async function readOptions(imports: Imports) {
  const shards = imports.shards()
  // Which shard the files are for is chosen later: no night that one of them takes is warned of.
  const days = shards.map((shard) => todayOf(imports, shard))
  const utc = dayOf(imports.clock.wallMs())
  const [today, last] = [Math.min(utc, ...days), Math.max(utc, ...days)]
  const [codecs, freeBytes] = await Promise.all([
    imports.codecs(undefined).then(
      (found) => ({ codecs: found, codecsError: '' }),
      (error: unknown) => ({ codecs: null, codecsError: (error as Error).message }),
    ),
    freeDiskBytes(imports.uploads),
  ])
  const newest = ordered(imports).find(({ detail }) => detail.result)
  return {
    ...codecs,
    shards: [...shards],
    freeBytes,
    recordsPerSecond: newest?.detail.result?.recordsPerSecond ?? null,
    folder: imports.hasFolder,
    today: formatDay(today),
    window: { from: formatDay(today), to: formatDay(addOneYear(last)) },
  }
}

function parseCodecs(text: string): { names: string[]; hash: string } {
  const { names, orderedHash } = checkedList(() => parseCodecFile(text, 'codecs.yml'))
  return { names: [...names], hash: orderedHash }
}

function getRejectedFile(imports: Imports, { params, reply }: RouteRequest<'GET /api/v1/imports/{id}/files/{file}'>) {
  const stream = rejectedFile(errorsFile(imports, params.id), params.file)
  reply.header('content-type', params.file.endsWith('.json') ? 'application/json' : 'text/csv; charset=utf-8')
  reply.header('content-disposition', `attachment; filename="${params.file}"`)
  return stream
}

function checkedList<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    throw problem('invalid-codecs', {
      detail: error.message,
      field: 'codecs',
      hint: 'A codec file has the key rate_features with 1 to 24 names.',
      cause: error,
    })
  }
}

/** Of a shard whose day begins later than in UTC, the night before may still be sold. */
function todayOf({ clock, dayBegins }: Imports, shard: string): number {
  return dayOf(clock.wallMs() - dayBegins(shard) * 60_000)
}

function windowOf(
  given: { readonly from?: string | undefined; readonly to?: string | undefined },
  today: number,
): { from: string; to: string } {
  const from = given.from ?? formatDay(today)
  const to = given.to ?? formatDay(addOneYear(today))
  const [first, last] = [parseDay(from), parseDay(to)]
  if (first !== undefined && last !== undefined && first <= last) return { from, to }
  throw problem('invalid-window', { detail: `${from} to ${to} is not a range of nights.`, field: 'from' })
}
