/**
 * Uploads: sent in chunks, each verified before it counts, and resumable after interruptions. Bytes on disk after
 * `received` do not count; the next chunk overwrites them.
 *
 *   folder/uploads/<id>   the bytes so far; names given by people are only in the database, never part of a path
 */
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rm, statfs, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Clock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { Caller, Handlers, RouteRequest } from '@vacancy/shared/api/route'
import { IMPORT_LIMITS, type IMPORT_ROUTES, type UploadView } from '@vacancy/shared/contract'
import type { Selectable } from 'kysely'
import type { WriteAudit } from '../access/audit.ts'
import { fileOf, listFolder } from './folder.ts'
import type { ImportDatabase, ImportTables } from './tables.ts'
import { cleanName, diskFull, fingerprintOf, isDiskFull, writeAll } from './upload-files.ts'

export type UploadRow = Selectable<ImportTables['uploads']>

/** Disk space kept free, because the database and the log of this process are on the same disk. */
const RESERVE_BYTES = 256 * 2 ** 20

/** The uploads and their folder. */
export type Uploads = {
  readonly database: ImportDatabase
  readonly audit: WriteAudit
  readonly clock: Clock
  readonly folder: string
  /** Folder whose files need no upload; '' for none. */
  readonly importFolder: string
  /** Called when an upload changed; `isComplete` with its last chunk. */
  readonly onChange: (row: UploadRow, isComplete: boolean) => void
  /** Uploads with a chunk being written. */
  readonly busy: Set<string>
}

type UploadRequest = Pick<RouteRequest<'POST /api/v1/uploads'>, keyof Caller>

/** @param options its folder is that of all imports; uploads are in a subfolder */
export function createUploads(options: Omit<Uploads, 'busy'>): Uploads {
  return { ...options, folder: join(options.folder, 'uploads'), busy: new Set() }
}

export function uploadHandlers(
  uploads: Uploads,
): Pick<
  Handlers<typeof IMPORT_ROUTES>,
  | 'POST /api/v1/uploads'
  | 'GET /api/v1/uploads'
  | 'GET /api/v1/uploads/{id}'
  | 'PATCH /api/v1/uploads/{id}'
  | 'DELETE /api/v1/uploads/{id}'
  | 'GET /api/v1/import-folder'
  | 'POST /api/v1/import-folder'
> {
  return {
    'GET /api/v1/import-folder': () => listFolder(uploads.importFolder),
    'POST /api/v1/import-folder': (request) => addFromFolder(uploads, request),
    'POST /api/v1/uploads': (request) => beginUpload(uploads, request),
    'GET /api/v1/uploads': async () => ({ uploads: await listUploads(uploads) }),
    'GET /api/v1/uploads/{id}': (request) => getUpload(uploads, request),
    'PATCH /api/v1/uploads/{id}': (request) => patchUpload(uploads, request),
    'DELETE /api/v1/uploads/{id}': (request) => deleteUpload(uploads, request),
  }
}

export function uploadPath(uploads: Uploads, id: string): string {
  return join(uploads.folder, id)
}

export function findUpload(uploads: Uploads, id: string): Promise<UploadRow | undefined> {
  return uploads.database.selectFrom('uploads').selectAll().where('id', '=', id).executeTakeFirst()
}

async function requireUpload(uploads: Uploads, id: string): Promise<UploadRow> {
  const row = await findUpload(uploads, id)
  if (row) return row
  throw problem('no-such-upload', { detail: `There is no upload ${id.slice(0, 64)}.` })
}

function uploadRows(uploads: Uploads): Promise<UploadRow[]> {
  return uploads.database.selectFrom('uploads').selectAll().orderBy('created_at', 'desc').execute()
}

export async function freeDiskBytes(uploads: Uploads): Promise<number> {
  await mkdir(uploads.folder, { recursive: true })
  const { bavail, bsize } = await statfs(uploads.folder)
  return bavail * bsize
}

export async function dropUpload(uploads: Uploads, id: string): Promise<void> {
  await uploads.database.deleteFrom('uploads').where('id', '=', id).execute()
  await rm(uploadPath(uploads, id), { force: true })
}

/** The existing uploads. Throws when no further one is allowed. */
async function openRows(uploads: Uploads): Promise<UploadRow[]> {
  const open = await uploadRows(uploads)
  if (open.length < IMPORT_LIMITS.uploadsMax) return open
  throw problem('too-many-uploads', { detail: `There are already ${open.length} uploads.` })
}

/** A file of the import folder becomes a complete upload: a link to the file. */
async function addFromFolder(
  uploads: Uploads,
  request: RouteRequest<'POST /api/v1/import-folder'>,
): Promise<UploadView> {
  const { body } = request
  const found = await fileOf(uploads.importFolder, body.path)
  await openRows(uploads)
  const { bytes } = found
  const fingerprint = await fingerprintOf(found.path, bytes)
  const row = newRow(uploads, request, { name: body.path, kind: body.kind, bytes, received: bytes, fingerprint })
  await mkdir(uploads.folder, { recursive: true })
  await symlink(found.path, uploadPath(uploads, row.id))
  return await storeUpload(uploads, request, row, { action: 'upload.folder', target: body.path })
}

function newRow(
  uploads: Uploads,
  { principal }: Pick<UploadRequest, 'principal'>,
  given: Pick<UploadRow, 'name' | 'kind' | 'bytes' | 'received' | 'fingerprint'>,
): UploadRow {
  const now = uploads.clock.wallMs()
  return {
    ...given,
    id: randomUUID(),
    name: cleanName(given.name),
    sha256: null,
    import_id: null,
    by_name: principal.name,
    created_at: now,
    touched_at: now,
  }
}

async function storeUpload(
  uploads: Uploads,
  { principal, address, userAgent, requestId }: UploadRequest,
  row: UploadRow,
  note: { readonly action: string; readonly target: string },
): Promise<UploadView> {
  await uploads.database.transaction().execute(async (transaction) => {
    await transaction.insertInto('uploads').values(row).execute()
    const what = { ...note, result: 'done', detail: `${row.bytes} bytes` }
    await uploads.audit({ principal, address, userAgent, requestId, ...what }, transaction)
  })
  uploads.onChange(row, false)
  return viewOf(row)
}

async function beginUpload(uploads: Uploads, request: RouteRequest<'POST /api/v1/uploads'>): Promise<UploadView> {
  const { body } = request
  const open = await openRows(uploads)
  const owed = open.reduce((sum, row) => sum + row.bytes - row.received, 0)
  const free = (await freeDiskBytes(uploads)) - owed - RESERVE_BYTES
  if (free < body.bytes) {
    throw problem('disk-full', {
      detail: `The file needs ${body.bytes} bytes; ${Math.max(0, free)} are free.`,
      hint: 'Drop unfinished uploads, delete old snapshots, or use a larger disk.',
      more: { neededBytes: body.bytes, freeBytes: Math.max(0, free) },
    })
  }
  const { name, kind, bytes, fingerprint } = body
  const row = newRow(uploads, request, { name, kind, bytes, received: 0, fingerprint })
  return await storeUpload(uploads, request, row, { action: 'upload.begin', target: row.name })
}

/** Receives one chunk. It counts once its checksum is verified and it is synced to disk. */
async function takeChunk(
  uploads: Uploads,
  { params, headers, stream }: RouteRequest<'PATCH /api/v1/uploads/{id}'>,
): Promise<UploadRow> {
  const row = await requireUpload(uploads, params.id)
  const offset = headerNumber(headers['upload-offset'], 'upload-offset')
  const wanted = headers['x-chunk-sha256']
  if (typeof wanted !== 'string' || !/^[0-9a-f]{64}$/.test(wanted)) {
    throw problem('no-checksum')
  }
  if (offset !== row.received) {
    throw problem('wrong-offset', {
      detail: `The next chunk must start at ${row.received}, not ${offset}.`,
      more: { offset: row.received },
    })
  }
  if (row.received === row.bytes) return row
  if (uploads.busy.has(row.id)) {
    throw problem('upload-busy', { more: { offset: row.received } })
  }
  uploads.busy.add(row.id)
  try {
    const bytes = await writeChunk(uploads, row, stream as Readable, wanted)
    const received = row.received + bytes
    const now = uploads.clock.wallMs()
    const changed = await uploads.database
      .updateTable('uploads')
      .set({ received, touched_at: now })
      .where('id', '=', row.id)
      .where('received', '=', row.received)
      .executeTakeFirst()
    // The upload was dropped meanwhile, with its bytes.
    if (Number(changed.numUpdatedRows) === 0) {
      await rm(uploadPath(uploads, row.id), { force: true })
      return await requireUpload(uploads, row.id)
    }
    const next = { ...row, received, touched_at: now }
    if (received === row.bytes) await checkFingerprint(uploads, next)
    uploads.onChange(next, received === row.bytes)
    return next
  } finally {
    uploads.busy.delete(row.id)
  }
}

/** @returns the number of bytes written and synced */
async function writeChunk(uploads: Uploads, row: UploadRow, stream: Readable, wanted: string): Promise<number> {
  const most = Math.min(IMPORT_LIMITS.chunkBytes, row.bytes - row.received)
  await mkdir(uploads.folder, { recursive: true })
  const file = await open(uploadPath(uploads, row.id), row.received === 0 ? 'w' : 'r+').catch((cause: unknown) => {
    throw problem('upload-lost', { cause })
  })
  const digest = createHash('sha256')
  let bytes = 0
  try {
    // A refused chunk must not close the connection before the refusal is sent.
    for await (const piece of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      if (bytes + piece.length > most) {
        throw problem('chunk-too-large', {
          detail: `This chunk can have at most ${most} bytes.`,
          hint: `Send at most ${IMPORT_LIMITS.chunkBytes} bytes per chunk, and no more than the file has.`,
        })
      }
      digest.update(piece)
      await writeAll(file, piece, row.received + bytes)
      bytes += piece.length
    }
    if (bytes === 0) throw problem('empty-chunk')
    if (digest.digest('hex') !== wanted) {
      throw problem('wrong-checksum', { more: { offset: row.received } })
    }
    await file.datasync()
    return bytes
  } catch (error) {
    throw isDiskFull(error) ? diskFull(error) : error
  } finally {
    await file.close()
  }
}

/** Detects at the latest here that two different files were uploaded under one name. */
async function checkFingerprint(uploads: Uploads, row: UploadRow): Promise<void> {
  const found = await fingerprintOf(uploadPath(uploads, row.id), row.bytes)
  if (found === row.fingerprint) return
  await dropUpload(uploads, row.id)
  throw problem('other-file', { detail: `The uploaded bytes of ${row.name} do not match the file.` })
}

async function getUpload(uploads: Uploads, { params, reply }: RouteRequest<'GET /api/v1/uploads/{id}'>) {
  const row = await requireUpload(uploads, params.id)
  reply.header('upload-offset', String(row.received))
  reply.header('upload-length', String(row.bytes))
  return viewOf(row)
}

async function patchUpload(uploads: Uploads, request: RouteRequest<'PATCH /api/v1/uploads/{id}'>) {
  const row = await takeChunk(uploads, request)
  request.reply.header('upload-offset', String(row.received))
  return viewOf(row)
}

async function deleteUpload(
  uploads: Uploads,
  { params, principal, address, userAgent, requestId }: RouteRequest<'DELETE /api/v1/uploads/{id}'>,
): Promise<undefined> {
  const row = await requireUpload(uploads, params.id)
  if (row.import_id !== null) {
    throw problem('upload-in-use', { detail: `${row.name} belongs to an import.` })
  }
  await dropUpload(uploads, row.id)
  await uploads.audit({
    principal,
    address,
    userAgent,
    requestId,
    action: 'upload.drop',
    target: row.name,
    result: 'done',
  })
  uploads.onChange(row, false)
}

export async function listUploads(uploads: Uploads): Promise<UploadView[]> {
  return (await uploadRows(uploads)).map(viewOf)
}

/** Assigns uploads to an import, or releases them (null). */
export async function assignUploads(uploads: Uploads, ids: readonly string[], importId: string | null): Promise<void> {
  const touched = { import_id: importId, touched_at: uploads.clock.wallMs() }
  await uploads.database
    .updateTable('uploads')
    .set(touched)
    .where('id', 'in', [...ids])
    .execute()
}

export async function storeDigest(uploads: Uploads, id: string, sha256: string): Promise<void> {
  await uploads.database.updateTable('uploads').set({ sha256 }).where('id', '=', id).execute()
}

/** Drops uploads that were idle for too long, and files without a row. */
export async function dropStaleUploads(uploads: Uploads): Promise<void> {
  const limit = uploads.clock.wallMs() - IMPORT_LIMITS.uploadKeptMs
  const known = new Set<string>()
  for (const row of await uploadRows(uploads)) {
    if (row.import_id === null && row.touched_at < limit) await dropUpload(uploads, row.id)
    else known.add(row.id)
  }
  await mkdir(uploads.folder, { recursive: true })
  for (const name of await readdir(uploads.folder))
    if (!known.has(name)) await rm(join(uploads.folder, name), { force: true })
}

function viewOf(row: UploadRow): UploadView {
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    bytes: row.bytes,
    offset: row.received,
    chunkBytes: IMPORT_LIMITS.chunkBytes,
    fingerprint: row.fingerprint,
    complete: row.received === row.bytes,
    sha256: row.sha256,
    import: row.import_id,
    by: row.by_name,
    createdAt: new Date(row.created_at).toISOString(),
    touchedAt: new Date(row.touched_at).toISOString(),
    expiresAt: new Date(row.touched_at + IMPORT_LIMITS.uploadKeptMs).toISOString(),
  }
}

function headerNumber(value: string | string[] | undefined, name: string): number {
  if (typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value)
  throw problem('no-offset', { detail: `${name} is not a number of bytes.` })
}
