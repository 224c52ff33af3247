import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { turnableClock } from '@vacancy/shared'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AuditTables } from '../access/tables.ts'
import { openDatabase } from '../database/database.ts'
import { pullSnapshot } from './snapshot-downloads.ts'
import { addSnapshot, createPullToken, createSnapshots, type NewSnapshot, type Snapshots } from './snapshot-store.ts'
import type { ImportDatabase, ImportTables } from './tables.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const HOUR = 3_600_000
const ID = 'a'.repeat(64)

let root: string
let database: ImportDatabase
let clock: ReturnType<typeof turnableClock>
let snapshots: Snapshots
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'vacancy-snapshots-'))
  database = await openDatabase<ImportTables & AuditTables>(':memory:')
})
afterAll(async () => {
  await database.destroy()
  rmSync(root, { recursive: true, force: true })
})
beforeEach(async () => {
  for (const table of ['snapshots', 'pull_tokens', 'installs'] as const) await database.deleteFrom(table).execute()
  rmSync(root, { recursive: true, force: true })
  mkdirSync(root)
  clock = turnableClock(NOW)
  snapshots = createSnapshots({
    ...{ database, clock, folder: root, audit: async () => {}, log: { info: () => {} } },
    cluster: { shards: () => [] },
    codecs: async () => ({ names: ['late'], hash: 'codecs', source: '' }),
  } as unknown as Parameters<typeof createSnapshots>[0])
})

const CONTENT = '0123456789'
async function add(id = ID) {
  const path = join(root, 'built')
  writeFileSync(path, CONTENT)
  const document = {
    ...{ id, path, shard: 's1', codecs: ['late'], codecHash: 'codecs', bytes: CONTENT.length, properties: 2 },
    ...{ packages: 9, roomTypes: 1, window: { from: '2026-12-01', to: '2026-12-02' }, roomsPerProperty: [0, 2] },
    segments: [{ name: 'city', properties: 2, rooms: 5, packages: [4, 5] }],
  }
  const sources = [{ name: 'p.csv', bytes: 3, sha256: 'x', rows: 2 }]
  const from = { id: 'i1', name: 'hotels', shard: 's1', by_name: 'ada' }
  await addSnapshot(snapshots, {
    path,
    document,
    counters: { agree: true },
    import: from,
    sources,
  } as unknown as NewSnapshot)
}

/** Calls a download; the reply is collected. */
async function download(call: (request: never) => Promise<Readable>, headers: object = {}, id = ID) {
  const reply: { status: number; headers: { [name: string]: string } } = { status: 200, headers: {} }
  const request = {
    ...{ headers, params: { id } },
    reply: {
      header(name: string, value: string) {
        reply.headers[name] = value
      },
      status(status: number) {
        reply.status = status
      },
    },
  }
  const body = await call(request as never).then(buffer, (error: { code: string }) => error)
  return { ...reply, body: Buffer.isBuffer(body) ? String(body) : body }
}

test('a node fetches a snapshot with its token for an hour', async () => {
  await add()
  const authorization = `Bearer ${await createPullToken(snapshots, ID)}`
  const pull = (headers: object, id = ID) => download((request) => pullSnapshot(snapshots, request), headers, id)

  clock.advance(HOUR)
  expect(await pull({ authorization, range: 'bytes=7-' })).toMatchObject({ status: 206, body: '789' })
  const wrong = [{}, { authorization: `${authorization}x` }, { authorization: `Bearer ${'x'.repeat(43)}` }]
  for (const headers of wrong) expect((await pull(headers)).body).toMatchObject({ code: 'invalid-token' })
  await add('b'.repeat(64))
  expect((await pull({ authorization }, 'b'.repeat(64))).body).toMatchObject({ code: 'invalid-token' })
  clock.advance(1)
  expect((await pull({ authorization })).body).toMatchObject({ code: 'invalid-token' })
})
