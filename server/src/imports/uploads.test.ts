/** Uploads: chunks, their checks and limits, and what is dropped when. */

import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { turnableClock } from '@vacancy/shared'
import type { UploadView } from '@vacancy/shared/contract'
import { createRandom } from '@vacancy/testkit/random'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { AuditTables } from '../access/tables.ts'
import { openDatabase } from '../database/database.ts'
import { sha256 } from '../testing/import-files.ts'
import type { ImportDatabase, ImportTables } from './tables.ts'
import {
  createUploads,
  dropStaleUploads,
  findUpload,
  listUploads,
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
    ...{
      principal: { kind: 'person', id: 'p1', name: 'ada', role: 'operator' },
      address: '::1',
      userAgent: '',
      requestId: 'r1',
    },
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
