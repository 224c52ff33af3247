/**
 * Files on their way here: chunk after chunk, each verified before it counts, resumed after whatever interrupted them
 * (console.md §8.3). What is on disk behind `received` counts for nothing; the next chunk overwrites it.
 *
 *   folder/uploads/<id>   the bytes so far; names that people gave stand in the database and are never a path
 */
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rm, statfs, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Clock } from '@vacancy/shared'
import { IMPORT_LIMITS, type IMPORT_ROUTES, type UploadView } from '@vacancy/shared/contract'
import type { Selectable } from 'kysely'
import type { WriteAudit } from '../audit.ts'
import type { Database } from '../database.ts'
import { type Asked, type Handlers, ProblemError } from '../route.ts'
import { fileOf, listFolder } from './folder.ts'
import type { ImportTables } from './tables.ts'

export type UploadRow = Selectable<ImportTables['uploads']>

/** Kept free on the disk: the database and the log of this process lie there, too. */
const RESERVE_BYTES = 256 * 2 ** 20
const MEBIBYTE = 2 ** 20
const NAME_CHARACTERS_MAX = 200

export type Uploads = {
  readonly handlers: Pick<
    Handlers<typeof IMPORT_ROUTES>,
    | 'POST /api/v1/uploads'
    | 'GET /api/v1/uploads'
    | 'GET /api/v1/uploads/{id}'
    | 'PATCH /api/v1/uploads/{id}'
    | 'DELETE /api/v1/uploads/{id}'
    | 'GET /api/v1/import-folder'
    | 'POST /api/v1/import-folder'
  >
  readonly find: (id: string) => Promise<UploadRow | undefined>
  readonly list: () => Promise<UploadView[]>
  readonly pathOf: (id: string) => string
  /** Gives uploads to an import, or takes them from it (null). */
  readonly give: (ids: readonly string[], importId: string | null) => Promise<void>
  readonly noteDigest: (id: string, sha256: string) => Promise<void>
  readonly drop: (id: string) => Promise<void>
  readonly freeBytes: () => Promise<number>
  /** Drops what nobody came back for, and files that no row knows. */
  readonly sweep: () => Promise<void>
  readonly viewOf: (row: UploadRow) => UploadView
}

export type UploadParts = {
  readonly database: Database
  readonly audit: WriteAudit
  readonly clock: Clock
  readonly folder: string
  /** Whose files need no upload; '' for none. */
  readonly importFolder: string
  /** Something about an upload has changed; `isComplete` with its last chunk. */
  readonly onChange: (row: UploadRow, isComplete: boolean) => void
}

type AnyUploadAsked = Pick<Asked<'POST /api/v1/uploads'>, 'asker' | 'address' | 'requestId'>

export function createUploads(parts: UploadParts): Uploads {
  const { database, clock, audit, onChange } = parts
  const folder = join(parts.folder, 'uploads')
  const pathOf = (id: string) => join(folder, id)
  const busy = new Set<string>()

  const find: Uploads['find'] = (id) =>
    database.selectFrom('uploads').selectAll().where('id', '=', id).executeTakeFirst()
  const findOrRefuse = async (id: string): Promise<UploadRow> => {
    const row = await find(id)
    if (row) return row
    throw new ProblemError(404, 'no-such-upload', `There is no upload ${id.slice(0, 64)}.`, {
      hint: 'It was finished, dropped, or nothing came for 48 h: begin it again.',
    })
  }
  const rows = () => database.selectFrom('uploads').selectAll().orderBy('created_at', 'desc').execute()
  const freeBytes = async () => {
    await mkdir(folder, { recursive: true })
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  }
  const drop = async (id: string) => {
    await database.deleteFrom('uploads').where('id', '=', id).execute()
    await rm(pathOf(id), { force: true })
  }

  /** Those that are there; one more may be. */
  async function openRows(): Promise<UploadRow[]> {
    const open = await rows()
    if (open.length < IMPORT_LIMITS.uploadsMax) return open
    throw new ProblemError(409, 'too-many-uploads', `There are ${open.length} uploads already.`, {
      hint: 'Finish or drop one of them on the page of imports.',
    })
  }

  /** What lies in the import folder is an upload that is complete: a name that leads there. */
  async function takeFromFolder(asked: Asked<'POST /api/v1/import-folder'>): Promise<UploadView> {
    const { body } = asked
    const found = await fileOf(parts.importFolder, body.path)
    await openRows()
    const { bytes } = found
    const fingerprint = await fingerprintOf(found.path, bytes)
    const row = newRow(asked, { name: body.path, kind: body.kind, bytes, received: bytes, fingerprint })
    await mkdir(folder, { recursive: true })
    await symlink(found.path, pathOf(row.id))
    return await keep(asked, row, { action: 'upload.folder', target: body.path })
  }

  function newRow(
    { asker }: Pick<AnyUploadAsked, 'asker'>,
    given: Pick<UploadRow, 'name' | 'kind' | 'bytes' | 'received' | 'fingerprint'>,
  ): UploadRow {
    const now = clock.wallMs()
    return {
      ...given,
      id: randomUUID(),
      name: cleanName(given.name),
      sha256: null,
      import_id: null,
      by_name: asker.name,
      created_at: now,
      touched_at: now,
    }
  }

  async function keep(
    { asker, address, requestId }: AnyUploadAsked,
    row: UploadRow,
    note: { readonly action: string; readonly target: string },
  ): Promise<UploadView> {
    await database.transaction().execute(async (transaction) => {
      await transaction.insertInto('uploads').values(row).execute()
      const what = { ...note, result: 'done', detail: `${row.bytes} bytes` }
      await audit({ asker, address, requestId, ...what }, transaction)
    })
    onChange(row, false)
    return viewOf(row)
  }

  async function begin(asked: Asked<'POST /api/v1/uploads'>): Promise<UploadView> {
    const { body } = asked
    const open = await openRows()
    const owed = open.reduce((sum, row) => sum + row.bytes - row.received, 0)
    const free = (await freeBytes()) - owed - RESERVE_BYTES
    if (free < body.bytes) {
      throw new ProblemError(507, 'disk-full', `The file needs ${body.bytes} bytes, ${Math.max(0, free)} are free.`, {
        hint: 'Drop unfinished uploads or delete old snapshots, or give the control plane a larger disk.',
        more: { neededBytes: body.bytes, freeBytes: Math.max(0, free) },
      })
    }
    const { name, kind, bytes, fingerprint } = body
    const row = newRow(asked, { name, kind, bytes, received: 0, fingerprint })
    return await keep(asked, row, { action: 'upload.begin', target: row.name })
  }

  /** One chunk. It counts when its checksum is right and it is on the disk, in this order. */
  async function take({ params, headers, stream }: Asked<'PATCH /api/v1/uploads/{id}'>): Promise<UploadRow> {
    const row = await findOrRefuse(params.id)
    const offset = headerNumber(headers['upload-offset'], 'upload-offset')
    const wanted = headers['x-chunk-sha256']
    if (typeof wanted !== 'string' || !/^[0-9a-f]{64}$/.test(wanted)) {
      throw new ProblemError(400, 'no-checksum', 'x-chunk-sha256 is not 64 hexadecimal digits.', {
        hint: 'Send the SHA-256 of the bytes of this chunk.',
      })
    }
    if (offset !== row.received) {
      throw new ProblemError(409, 'wrong-offset', `The next chunk begins at ${row.received}, not ${offset}.`, {
        hint: 'Go on at the offset in this answer.',
        more: { offset: row.received },
      })
    }
    if (row.received === row.bytes) return row
    if (busy.has(row.id)) {
      throw new ProblemError(409, 'upload-busy', 'Another chunk of this file is on its way.', {
        hint: 'Send one chunk at a time; ask for the offset in a second.',
        more: { offset: row.received },
      })
    }
    busy.add(row.id)
    try {
      const bytes = await writeChunk(row, stream as Readable, wanted)
      const received = row.received + bytes
      const now = clock.wallMs()
      const changed = await database
        .updateTable('uploads')
        .set({ received, touched_at: now })
        .where('id', '=', row.id)
        .where('received', '=', row.received)
        .executeTakeFirst()
      // Dropped meanwhile: what was written goes with it.
      if (Number(changed.numUpdatedRows) === 0) {
        await rm(pathOf(row.id), { force: true })
        return await findOrRefuse(row.id)
      }
      const next = { ...row, received, touched_at: now }
      if (received === row.bytes) await checkFingerprint(next)
      onChange(next, received === row.bytes)
      return next
    } finally {
      busy.delete(row.id)
    }
  }

  /** @returns bytes written, all of them synced */
  async function writeChunk(row: UploadRow, stream: Readable, wanted: string): Promise<number> {
    const most = Math.min(IMPORT_LIMITS.chunkBytes, row.bytes - row.received)
    await mkdir(folder, { recursive: true })
    const file = await open(pathOf(row.id), row.received === 0 ? 'w' : 'r+').catch((cause: unknown) => {
      throw new ProblemError(410, 'upload-lost', 'What was uploaded so far is gone from the disk.', {
        hint: 'Drop this upload and begin it again.',
        cause,
      })
    })
    const digest = createHash('sha256')
    let bytes = 0
    try {
      for await (const piece of stream as AsyncIterable<Buffer>) {
        if (bytes + piece.length > most) {
          throw new ProblemError(413, 'chunk-too-large', `This chunk may have ${most} bytes.`, {
            hint: `Send at most ${IMPORT_LIMITS.chunkBytes} bytes at a time, and no more than the file has.`,
          })
        }
        digest.update(piece)
        await writeAll(file, piece, row.received + bytes)
        bytes += piece.length
      }
      if (bytes === 0) throw new ProblemError(400, 'empty-chunk', 'The chunk is empty.', { hint: 'Send its bytes.' })
      if (digest.digest('hex') !== wanted) {
        throw new ProblemError(460, 'wrong-checksum', 'What arrived has another checksum than was sent.', {
          hint: 'Send the chunk again.',
          more: { offset: row.received },
        })
      }
      await file.datasync()
      return bytes
    } catch (error) {
      throw isDiskFull(error) ? diskFull(error) : error
    } finally {
      await file.close()
    }
  }

  /** Two files under one name are told apart at the latest here. */
  async function checkFingerprint(row: UploadRow): Promise<void> {
    const found = await fingerprintOf(pathOf(row.id), row.bytes)
    if (found === row.fingerprint) return
    await drop(row.id)
    throw new ProblemError(422, 'other-file', `What was uploaded of ${row.name} is not one file.`, {
      hint: 'It was changed, or went on with another file of the same name: begin it again.',
    })
  }

  const handlers: Uploads['handlers'] = {
    'GET /api/v1/import-folder': () => listFolder(parts.importFolder),
    'POST /api/v1/import-folder': takeFromFolder,
    'POST /api/v1/uploads': begin,
    'GET /api/v1/uploads': async () => ({ uploads: (await rows()).map(viewOf) }),
    'GET /api/v1/uploads/{id}': async ({ params, reply }) => {
      const row = await findOrRefuse(params.id)
      reply.header('upload-offset', String(row.received))
      reply.header('upload-length', String(row.bytes))
      return viewOf(row)
    },
    'PATCH /api/v1/uploads/{id}': async (asked) => {
      const row = await take(asked)
      asked.reply.header('upload-offset', String(row.received))
      return viewOf(row)
    },
    'DELETE /api/v1/uploads/{id}': async ({ params, asker, address, requestId }) => {
      const row = await findOrRefuse(params.id)
      if (row.import_id !== null) {
        throw new ProblemError(409, 'upload-in-use', `${row.name} belongs to an import.`, {
          hint: 'Cancel the import first.',
        })
      }
      await drop(row.id)
      await audit({ asker, address, requestId, action: 'upload.drop', target: row.name, result: 'done' })
      onChange(row, false)
    },
  }

  return {
    handlers,
    find,
    list: async () => (await rows()).map(viewOf),
    pathOf,
    async give(ids, importId) {
      const touched = { import_id: importId, touched_at: clock.wallMs() }
      await database
        .updateTable('uploads')
        .set(touched)
        .where('id', 'in', [...ids])
        .execute()
    },
    async noteDigest(id, sha256) {
      await database.updateTable('uploads').set({ sha256 }).where('id', '=', id).execute()
    },
    drop,
    freeBytes,
    async sweep() {
      const limit = clock.wallMs() - IMPORT_LIMITS.uploadKeptMs
      const known = new Set<string>()
      for (const row of await rows()) {
        if (row.import_id === null && row.touched_at < limit) await drop(row.id)
        else known.add(row.id)
      }
      await mkdir(folder, { recursive: true })
      for (const name of await readdir(folder)) if (!known.has(name)) await rm(join(folder, name), { force: true })
    },
    viewOf,
  }
}

/** One write may take less than it is given, as where a disk is nearly full; the next one says why. */
async function writeAll(file: FileHandle, piece: Buffer, position: number): Promise<void> {
  for (let done = 0; done < piece.length; ) {
    const { bytesWritten } = await file.write(piece, done, piece.length - done, position + done)
    done += bytesWritten
  }
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

/** What people see of a file's name: the last part of a path, without what is no text. */
export function cleanName(name: string): string {
  const last = name.split(/[\\/]/).at(-1) ?? ''
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out.
  const text = last.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g, '').trim()
  return text === '' || /^\.+$/.test(text) ? 'file.csv' : text.slice(0, NAME_CHARACTERS_MAX)
}

/** SHA-256 of the size as digits and a line end, the first MiB and the last MiB. */
export async function fingerprintOf(path: string, bytes: number): Promise<string> {
  const digest = createHash('sha256').update(`${bytes}\n`)
  for (const [start, end] of [
    [0, Math.min(bytes, MEBIBYTE)],
    [Math.max(0, bytes - MEBIBYTE), bytes],
  ] as const) {
    for await (const piece of createReadStream(path, { start, end: end - 1 })) digest.update(piece as Buffer)
  }
  return digest.digest('hex')
}

export function isDiskFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  return code === 'ENOSPC' || code === 'EDQUOT'
}

export function diskFull(cause: unknown): ProblemError {
  return new ProblemError(507, 'disk-full', 'The disk of the control plane is full.', {
    hint: 'Drop unfinished uploads or delete old snapshots; the upload goes on where it is.',
    cause,
  })
}

function headerNumber(value: string | string[] | undefined, name: string): number {
  if (typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value)
  throw new ProblemError(400, 'no-offset', `${name} is not a number of bytes.`, {
    hint: 'Send where the chunk begins.',
  })
}
