/** Uploads: chunks, their checks and limits, and what is dropped when. */

import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { turnableClock } from '@vacancy/shared'
import { IMPORT_LIMITS, type UploadView } from '@vacancy/shared/contract'
import { createRandom } from '@vacancy/testkit/random'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { AuditTables } from '../access/tables.ts'
import { openDatabase } from '../database/database.ts'
import { sha256 } from '../testing/import-files.ts'
import type { ImportDatabase, ImportTables } from './tables.ts'
import {
  assignUploads,
  createUploads,
  dropStaleUploads,
  findUpload,
  freeDiskBytes,
  listUploads,
  storeDigest,
  type UploadRow,
  type Uploads,
  uploadHandlers,
  uploadPath,
} from './uploads.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const HOUR = 3_600_000
const MEBIBYTE = 2 ** 20
const RESERVE_BYTES = 256 * MEBIBYTE
const ID = 'a0000000-0000-4000-8000-000000000000'

/** Free bytes of the disk, and the error of the next synchronization. */
const disk = vi.hoisted(() => ({ freeBytes: 2 ** 40, syncError: undefined as string | undefined, synced: 0 }))
vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof import('node:fs/promises')>()
  return {
    ...fs,
    statfs: async () => ({ bsize: 4_096, bavail: disk.freeBytes / 4_096 }),
    open: async (path: string, flags: string) => {
      const file = await fs.open(path, flags)
      const datasync = file.datasync.bind(file)
      file.datasync = async () => {
        disk.synced++
        if (disk.syncError !== undefined) throw Object.assign(new Error('sync failed'), { code: disk.syncError })
        await datasync()
      }
      return file
    },
  }
})

let root: string
let database: ImportDatabase
let clock: ReturnType<typeof turnableClock>
let uploads: Uploads
let notes: unknown[]
let changes: unknown[]
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'vacancy-uploads-'))
  database = await openDatabase<ImportTables & AuditTables>(':memory:')
})
afterAll(async () => {
  await database.destroy()
  rmSync(root, { recursive: true, force: true })
})
beforeEach(async () => {
  await database.deleteFrom('uploads').execute()
  rmSync(root, { recursive: true, force: true })
  mkdirSync(join(root, 'inbox'), { recursive: true })
  Object.assign(disk, { freeBytes: 2 ** 40, syncError: undefined, synced: 0 })
  clock = turnableClock(NOW)
  notes = []
  changes = []
  uploads = createUploads({
    ...{ database, clock, folder: join(root, 'all'), importFolder: join(root, 'inbox') },
    audit: async (note) => void notes.push(note),
    onChange: ({ id, received }, isComplete) => void changes.push([id, received, isComplete]),
  })
})

type Name = keyof ReturnType<typeof uploadHandlers>
/** Calls a handler; headers of the reply are collected. */
async function call(name: Name, given: object = {}): Promise<{ body: unknown; headers: { [name: string]: string } }> {
  const headers: { [name: string]: string } = {}
  const request = {
    ...{ principal: { kind: 'person', id: 'p1', name: 'ada', role: 'operator' }, address: '::1', requestId: 'r1' },
    ...{ headers: {}, params: {}, query: {}, signal: new AbortController().signal },
    reply: {
      header(header: string, value: string) {
        headers[header] = value
      },
    },
    ...given,
  }
  const handler = uploadHandlers(uploads)[name] as unknown as (request: object) => Promise<unknown>
  return { body: await handler(request), headers }
}
const codeOf = (request: Promise<unknown>) =>
  request.then(
    () => 'no error',
    (error: { code?: string }) => error.code ?? String(error),
  )

/** As documented: size, line end, first MiB, last MiB. */
const fingerprint = (bytes: Buffer) =>
  createHash('sha256')
    .update(`${bytes.length}\n`)
    .update(bytes.subarray(0, MEBIBYTE))
    .update(bytes.subarray(Math.max(0, bytes.length - MEBIBYTE)))
    .digest('hex')

const begin = async (bytes: Buffer, change: object = {}) => {
  const body = { name: 'p.csv', kind: 'properties', bytes: bytes.length, fingerprint: fingerprint(bytes), ...change }
  return (await call('POST /api/v1/uploads', { body })).body as UploadView
}
const chunk = (id: string, offset: number | string, bytes: Buffer, change: { sum?: string; pieces?: Buffer[] } = {}) =>
  call('PATCH /api/v1/uploads/{id}', {
    params: { id },
    headers: { 'upload-offset': String(offset), 'x-chunk-sha256': change.sum ?? sha256(bytes) },
    stream: Readable.from(change.pieces ?? [bytes]),
  })

const rowOf = (change: Partial<UploadRow>): UploadRow => ({
  ...{ id: ID, name: 'p.csv', kind: 'properties', bytes: 10, received: 10, fingerprint: '', sha256: null },
  ...{ import_id: null, by_name: 'ada', created_at: NOW, touched_at: NOW, ...change },
})
const insert = async (...rows: Partial<UploadRow>[]) => {
  for (const row of rows) await database.insertInto('uploads').values(rowOf(row)).execute()
}

// Begin

test('an upload begins empty, under the last part of its name', async () => {
  const view = await begin(Buffer.from('0123456789'), { name: 'C:\\data\\hotels.csv' })

  expect(view).toEqual({
    ...{ id: view.id, name: 'hotels.csv', kind: 'properties', bytes: 10, offset: 0, chunkBytes: 8 * MEBIBYTE },
    ...{ fingerprint: fingerprint(Buffer.from('0123456789')), complete: false, sha256: null, import: null, by: 'ada' },
    ...{ createdAt: '2026-11-22T12:00:00.000Z', touchedAt: '2026-11-22T12:00:00.000Z' },
    expiresAt: '2026-11-24T12:00:00.000Z',
  })
  expect(view.id).toMatch(/^[0-9a-f-]{36}$/)
  expect(notes).toEqual([
    {
      ...{ principal: { kind: 'person', id: 'p1', name: 'ada', role: 'operator' }, address: '::1', requestId: 'r1' },
      ...{ action: 'upload.begin', target: 'hotels.csv', result: 'done', detail: '10 bytes' },
    },
  ])
  expect(changes).toEqual([[view.id, 0, false]])
  expect((await call('GET /api/v1/uploads')).body).toEqual({ uploads: [view] })
})

test('unfinished uploads and 256 MiB stay reserved on the disk', async () => {
  await insert({ id: 'a', bytes: 10_000, received: 4_000 }, { id: 'b', bytes: 500, received: 500 })
  disk.freeBytes = RESERVE_BYTES + 4_096 * 3
  const free = 4_096 * 3 - 6_000

  const [body, request] = [{ name: 'p', kind: 'properties', fingerprint: '' }, 'POST /api/v1/uploads' as const]
  await expect(call(request, { body: { ...body, bytes: free + 1 } })).rejects.toMatchObject({
    ...{ code: 'disk-full', message: `The file needs ${free + 1} bytes; ${free} are free.` },
    more: { neededBytes: free + 1, freeBytes: free },
  })
  await call(request, { body: { ...body, bytes: free } })
  disk.freeBytes = 4_096
  await expect(call(request, { body: { ...body, bytes: 1 } })).rejects.toMatchObject({
    ...{ message: 'The file needs 1 bytes; 0 are free.', more: { neededBytes: 1, freeBytes: 0 } },
  })
})

test('there are at most 32 uploads', async () => {
  await insert(...Array.from({ length: 31 }, (_, at) => ({ id: `u${at}` })))
  writeFileSync(join(root, 'inbox', 'a.csv'), 'x')
  await begin(Buffer.from('x'))

  await expect(begin(Buffer.from('x'))).rejects.toMatchObject({
    ...{ code: 'too-many-uploads', message: 'There are already 32 uploads.' },
  })
  const body = { path: 'a.csv', kind: 'packages' }
  expect(await codeOf(call('POST /api/v1/import-folder', { body }))).toBe('too-many-uploads')
})

test('the free space is that of the folder of uploads, which is created', async () => {
  disk.freeBytes = 40_960

  expect(await freeDiskBytes(uploads)).toBe(40_960)
  expect(existsSync(join(root, 'all', 'uploads'))).toBe(true)
})

// Chunks

test('chunks make up the file, and each counts when it is synced', async () => {
  const bytes = Buffer.from('0123456789')
  const { id } = await begin(bytes)
  clock.advance(1_000)

  const first = await chunk(id, 0, bytes.subarray(0, 4), { pieces: [bytes.subarray(0, 1), bytes.subarray(1, 4)] })
  expect(first.body).toMatchObject({ offset: 4, complete: false, touchedAt: '2026-11-22T12:00:01.000Z' })
  expect(first.headers).toEqual({ 'upload-offset': '4' })
  const last = await chunk(id, 4, bytes.subarray(4))

  expect(last.body).toMatchObject({ offset: 10, complete: true })
  expect(disk.synced).toBe(2)
  expect(readFileSync(uploadPath(uploads, id), 'utf8')).toBe('0123456789')
  expect(changes.slice(1)).toEqual([
    [id, 4, false],
    [id, 10, true],
  ])
  expect(await findUpload(uploads, id)).toMatchObject({ received: 10, touched_at: NOW + 1_000 })
  const { headers } = await call('GET /api/v1/uploads/{id}', { params: { id } })
  expect(headers).toEqual({ 'upload-offset': '10', 'upload-length': '10' })
  expect(uploads.busy.size).toBe(0)
})

test('drawn files arrive unchanged, whatever the chunks and failures between them', async () => {
  const seed = Number(process.env['VACANCY_SEED'] ?? 1)
  const random = createRandom(seed)
  for (let round = 0; round < 8; round++) {
    const bytes = Buffer.from(Array.from({ length: 1 + random.below(40) }, () => random.below(256)))
    const { id } = await begin(bytes)
    for (let at = 0; at < bytes.length; ) {
      const part = bytes.subarray(at, at + 1 + random.below(15))
      const isBad = random.below(3) === 0
      const done = chunk(id, at, part, isBad ? { sum: '0'.repeat(64) } : {})
      expect(await codeOf(done), `seed ${seed}, round ${round}`).toBe(isBad ? 'wrong-checksum' : 'no error')
      if (!isBad) at += part.length
    }
    expect(readFileSync(uploadPath(uploads, id)), `seed ${seed}, round ${round}`).toEqual(bytes)
    await call('DELETE /api/v1/uploads/{id}', { params: { id } })
  }
})

test('a chunk that is sent again to a complete upload changes nothing', async () => {
  await insert({ bytes: 4, received: 4 })

  expect((await chunk(ID, 4, Buffer.from('xx'))).body).toMatchObject({ offset: 4, complete: true })
  expect(changes).toEqual([])
})

test.each<[string, unknown, string, string]>([
  ['without an offset', {}, 'no-offset', 'upload-offset is not a number of bytes.'],
  ['at a negative offset', { 'upload-offset': '-1' }, 'no-offset', 'upload-offset is not a number of bytes.'],
  ['at an offset of 16 digits', { 'upload-offset': '0'.repeat(16) }, 'no-offset', ''],
  ['with two offsets', { 'upload-offset': ['0', '0'] }, 'no-offset', ''],
  ['without a checksum', { 'upload-offset': '0' }, 'no-checksum', ''],
  ['with a short checksum', { 'upload-offset': '0', 'x-chunk-sha256': 'a'.repeat(63) }, 'no-checksum', ''],
  ['with a long checksum', { 'upload-offset': '0', 'x-chunk-sha256': 'a'.repeat(65) }, 'no-checksum', ''],
  ['with two checksums', { 'upload-offset': '0', 'x-chunk-sha256': ['a'.repeat(64)] }, 'no-checksum', ''],
  [
    'at another offset',
    { 'upload-offset': '000000000000003', 'x-chunk-sha256': 'a'.repeat(64) },
    'wrong-offset',
    'The next chunk must start at 4, not 3.',
  ],
])('a chunk %s is refused', async (_, headers, code, message) => {
  await insert({ received: 4 })

  const sent = call('PATCH /api/v1/uploads/{id}', { params: { id: ID }, headers, stream: Readable.from([]) })

  await expect(sent).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
  if (code === 'wrong-offset') await expect(sent).rejects.toMatchObject({ more: { offset: 4 } })
})

test.each<[number, number, string]>([
  [10, 10, 'no error'],
  [10, 11, 'chunk-too-large'],
  [9 * MEBIBYTE, 8 * MEBIBYTE, 'no error'],
  [9 * MEBIBYTE, 8 * MEBIBYTE + 1, 'chunk-too-large'],
  [10, 0, 'empty-chunk'],
])('of an upload of %d bytes a chunk of %d bytes gives: %s', async (bytes, size, code) => {
  const file = Buffer.alloc(bytes, 'x')
  const { id } = await begin(file)
  const pieces = [file.subarray(0, Math.min(5, size)), Buffer.alloc(Math.max(0, size - 5), 'x')]

  expect(await codeOf(chunk(id, 0, Buffer.alloc(size, 'x'), { pieces }))).toBe(code)
  expect((await findUpload(uploads, id))?.received).toBe(code === 'no error' ? size : 0)
  expect(uploads.busy.size).toBe(0)
})

test('the last chunk has at most the missing bytes', async () => {
  const bytes = Buffer.from('0123456789')
  const { id } = await begin(bytes)
  await chunk(id, 0, bytes.subarray(0, 7))

  await expect(chunk(id, 7, Buffer.from('789x'))).rejects.toMatchObject({
    ...{ code: 'chunk-too-large', message: 'This chunk can have at most 3 bytes.' },
    hint: 'Send at most 8388608 bytes per chunk, and no more than the file has.',
  })
  await expect(chunk(id, 7, Buffer.from('78'), { sum: '0'.repeat(64) })).rejects.toMatchObject({ more: { offset: 7 } })
  expect((await chunk(id, 7, bytes.subarray(7))).body).toMatchObject({ complete: true })
})

test('a second chunk at the same time is refused', async () => {
  const bytes = Buffer.from('0123456789')
  const { id } = await begin(bytes)
  let release = () => {}
  const waiting = new Promise<void>((resolve) => (release = resolve))
  const slow = Readable.from(
    (async function* () {
      await waiting
      yield bytes.subarray(0, 4)
    })(),
  )
  const headers = { 'upload-offset': '0', 'x-chunk-sha256': sha256(bytes.subarray(0, 4)) }
  const first = call('PATCH /api/v1/uploads/{id}', { params: { id }, headers, stream: slow })
  await vi.waitFor(() => expect(uploads.busy.has(id)).toBe(true))

  await expect(chunk(id, 0, bytes.subarray(0, 4))).rejects.toMatchObject({ code: 'upload-busy', more: { offset: 0 } })
  release()
  expect((await first).body).toMatchObject({ offset: 4 })
})

test('a chunk of an upload that is dropped meanwhile leaves no file', async () => {
  const bytes = Buffer.from('0123456789')
  const { id } = await begin(bytes)
  const pieces = async function* () {
    await database.deleteFrom('uploads').where('id', '=', id).execute()
    yield bytes
  }
  const headers = { 'upload-offset': '0', 'x-chunk-sha256': sha256(bytes) }
  const sent = call('PATCH /api/v1/uploads/{id}', { params: { id }, headers, stream: Readable.from(pieces()) })

  await expect(sent).rejects.toMatchObject({ code: 'no-such-upload', message: `There is no upload ${id}.` })
  expect(existsSync(uploadPath(uploads, id))).toBe(false)
})

test('another file under the same fingerprint is dropped with its last chunk', async () => {
  const { id } = await begin(Buffer.from('0123456789'))

  await expect(chunk(id, 0, Buffer.from('other text'))).rejects.toMatchObject({
    ...{ code: 'other-file', message: 'The uploaded bytes of p.csv do not match the file.' },
  })
  expect(await findUpload(uploads, id)).toBe(undefined)
  expect(existsSync(uploadPath(uploads, id))).toBe(false)
})

test('an upload whose file is gone is lost', async () => {
  await insert({ received: 4 })
  mkdirSync(join(root, 'all', 'uploads'), { recursive: true })

  expect(await codeOf(chunk(ID, 4, Buffer.from('x')))).toBe('upload-lost')
})

test.each([
  ['ENOSPC', 'disk-full'],
  ['EDQUOT', 'disk-full'],
  ['EIO', 'EIO'],
])('the error %s of the disk is reported as %s', async (error, code) => {
  const { id } = await begin(Buffer.from('0123456789'))
  disk.syncError = error

  expect(await codeOf(chunk(id, 0, Buffer.from('01')))).toBe(code)
  expect(await findUpload(uploads, id)).toMatchObject({ received: 0 })
})

// Uploads by id

test.each<Name>(['GET /api/v1/uploads/{id}', 'PATCH /api/v1/uploads/{id}', 'DELETE /api/v1/uploads/{id}'])(
  '%s of an unknown upload is refused with the first 64 characters of its id',
  async (name) => {
    await expect(call(name, { params: { id: 'x'.repeat(65) } })).rejects.toMatchObject({
      ...{ code: 'no-such-upload', message: `There is no upload ${'x'.repeat(64)}.` },
    })
  },
)

test('a deleted upload is gone with its bytes', async () => {
  const { id } = await begin(Buffer.from('0123456789'))
  await chunk(id, 0, Buffer.from('01'))

  await call('DELETE /api/v1/uploads/{id}', { params: { id } })

  expect(await listUploads(uploads)).toEqual([])
  expect(existsSync(uploadPath(uploads, id))).toBe(false)
  expect(notes.at(-1)).toMatchObject({ action: 'upload.drop', target: 'p.csv', result: 'done', requestId: 'r1' })
  expect(changes.at(-1)).toEqual([id, 2, false])
})

test('an upload of an import cannot be deleted', async () => {
  await insert({ import_id: 'i1' })

  await expect(call('DELETE /api/v1/uploads/{id}', { params: { id: ID } })).rejects.toMatchObject({
    ...{ code: 'upload-in-use', message: 'p.csv belongs to an import.' },
  })
  expect(await findUpload(uploads, ID)).toBeDefined()
})

test('uploads are listed with the newest first', async () => {
  await insert({ id: 'a', created_at: 1 }, { id: 'b', created_at: 3 }, { id: 'c', created_at: 2 })

  expect((await listUploads(uploads)).map(({ id }) => id)).toEqual(['b', 'c', 'a'])
})

test('uploads are assigned to an import and released', async () => {
  await insert({ id: 'a' }, { id: 'b' }, { id: 'c' })
  clock.advance(HOUR)

  await assignUploads(uploads, ['a', 'b'], 'i1')
  await storeDigest(uploads, 'a', 'digest')

  expect(await listUploads(uploads)).toMatchObject([
    { id: 'a', import: 'i1', sha256: 'digest', touchedAt: '2026-11-22T13:00:00.000Z' },
    { id: 'b', import: 'i1', sha256: null },
    { id: 'c', import: null, touchedAt: '2026-11-22T12:00:00.000Z' },
  ])
  await assignUploads(uploads, ['a'], null)
  expect((await listUploads(uploads)).map((each) => each.import)).toEqual([null, 'i1', null])
})

// The import folder

test('a file of the import folder is a complete upload', async () => {
  mkdirSync(join(root, 'inbox', 'day'))
  const path = join(root, 'inbox', 'day', 'k.csv')
  writeFileSync(path, 'some text')

  const { files } = (await call('GET /api/v1/import-folder')).body as { files: unknown }
  const { body } = await call('POST /api/v1/import-folder', { body: { path: 'day/k.csv', kind: 'packages' } })

  expect(files).toMatchObject([{ path: 'day/k.csv', bytes: 9 }])
  const view = body as UploadView
  expect(view).toMatchObject({
    ...{ name: 'k.csv', kind: 'packages', bytes: 9, offset: 9, complete: true },
    fingerprint: fingerprint(Buffer.from('some text')),
  })
  expect(readFileSync(uploadPath(uploads, view.id), 'utf8')).toBe('some text')
  expect(notes).toMatchObject([{ action: 'upload.folder', target: 'day/k.csv', detail: '9 bytes' }])
})

// What is dropped

test('idle uploads are dropped after 48 hours, and so are files without an upload', async () => {
  await insert(
    { id: 'old', touched_at: NOW - 48 * HOUR - 1 },
    { id: 'kept', touched_at: NOW - 48 * HOUR },
    { id: 'used', touched_at: 0, import_id: 'i1' },
  )
  const folder = join(root, 'all', 'uploads')
  mkdirSync(folder, { recursive: true })
  for (const name of ['old', 'kept', 'used', 'unknown']) writeFileSync(join(folder, name), '')

  await dropStaleUploads(uploads)

  expect(readdirSync(folder).sort()).toEqual(['kept', 'used'])
  expect((await listUploads(uploads)).map(({ id }) => id).sort()).toEqual(['kept', 'used'])
})

test('without a folder of uploads nothing is dropped', async () => {
  await dropStaleUploads(uploads)

  expect(readdirSync(join(root, 'all', 'uploads'))).toEqual([])
  expect(IMPORT_LIMITS.uploadKeptMs).toBe(48 * HOUR)
})
