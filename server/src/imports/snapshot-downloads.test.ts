/** Stored snapshots: how one is added, downloaded whole or in ranges, fetched with a token, and viewed. */

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { turnableClock } from '@vacancy/shared'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { AuditTables } from '../access/tables.ts'
import { openDatabase } from '../database/database.ts'
import { problem } from '../http/errors.ts'
import { sha256 } from '../testing/import-files.ts'
import { pullSnapshot, sendArchive, sendFile } from './snapshot-downloads.ts'
import {
  addSnapshot,
  createPullToken,
  createSnapshots,
  findSnapshot,
  headOf,
  type InstallRow,
  type NewSnapshot,
  requireSnapshot,
  type Snapshots,
  storeInstall,
  sweepSnapshots,
} from './snapshot-store.ts'
import { listSnapshots, servedBy, snapshotDetails } from './snapshot-views.ts'
import type { ImportDatabase, ImportTables } from './tables.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const HOUR = 3_600_000
const ID = 'a'.repeat(64)

let root: string
let database: ImportDatabase
let clock: ReturnType<typeof turnableClock>
let snapshots: Snapshots
let shards: object[]
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
  shards = []
  snapshots = createSnapshots({
    ...{ database, clock, folder: root, audit: async () => {}, log: { info: () => {} } },
    cluster: { shards: () => shards },
    codecs: async () => ({ names: ['late'], hash: 'codecs', source: '' }),
  } as unknown as Parameters<typeof createSnapshots>[0])
})

const CONTENT = '0123456789'
type Change = { id?: string; agree?: boolean; name?: string; content?: string }
async function add({ id = ID, agree = true, name = 'hotels', content = CONTENT }: Change = {}) {
  const path = join(root, 'built')
  writeFileSync(path, content)
  const document = {
    ...{ id, path, shard: 's1', codecs: ['late'], codecHash: 'codecs', bytes: content.length, properties: 2 },
    ...{ packages: 9, roomTypes: 1, window: { from: '2026-12-01', to: '2026-12-02' }, roomsPerProperty: [0, 2] },
    segments: [{ name: 'city', properties: 2, rooms: 5, packages: [4, 5] }],
  }
  const sources = [{ name: 'p.csv', bytes: 3, sha256: 'x', rows: 2 }]
  const from = { id: 'i1', name, shard: 's1', by_name: 'ada' }
  await addSnapshot(snapshots, { path, document, counters: { agree }, import: from, sources } as unknown as NewSnapshot)
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
const file = async (headers: object = {}) => {
  const row = await requireSnapshot(snapshots, ID)
  return await download((request) => sendFile(snapshots, row, request), headers)
}

// Store

test('a built file is moved to the store under its digest', async () => {
  await add()

  expect(await findSnapshot(snapshots, ID)).toMatchObject({
    ...{ id: ID, name: 'hotels', shard: 's1', bytes: 10, installable: true, document: { packages: 9 } },
  })
  expect(await requireSnapshot(snapshots, ID)).toMatchObject({
    ...{ sha256: sha256(Buffer.from(CONTENT)), import_id: 'i1', by_name: 'ada', created_at: NOW },
  })
  expect([existsSync(join(root, 'built')), readdirSync(snapshots.folder)]).toEqual([false, [`${ID}.snapshot`]])
})

test('an equal snapshot belongs to the later import', async () => {
  await add()
  clock.advance(HOUR)
  await add({ name: 'again', agree: false })

  expect(await requireSnapshot(snapshots, ID)).toMatchObject({ name: 'again', installable: 0, created_at: NOW + HOUR })
  expect(await listSnapshots(snapshots)).toHaveLength(1)
})

test('an unknown snapshot is not found', async () => {
  expect([await findSnapshot(snapshots, ID), await headOf(snapshots, ID)]).toEqual([undefined, undefined])
  await expect(requireSnapshot(snapshots, ID)).rejects.toMatchObject({
    ...{ code: 'no-such-snapshot', message: `There is no snapshot ${'a'.repeat(12)}… here.` },
  })
})

test('files without a snapshot and expired tokens are removed', async () => {
  await add()
  writeFileSync(join(snapshots.folder, 'other.snapshot'), '')
  await createPullToken(snapshots, ID)
  clock.advance(HOUR)
  await sweepSnapshots(snapshots)
  expect(readdirSync(snapshots.folder)).toEqual([`${ID}.snapshot`])
  expect(await database.selectFrom('pull_tokens').selectAll().execute()).toHaveLength(1)

  clock.advance(1)
  await sweepSnapshots(snapshots)
  expect(await database.selectFrom('pull_tokens').selectAll().execute()).toEqual([])
})

// Downloads

test('a file is downloaded whole', async () => {
  await add()

  expect(await file()).toEqual({
    ...{ status: 200, body: CONTENT },
    headers: {
      'accept-ranges': 'bytes',
      'content-disposition': `attachment; filename="${ID}.snapshot"`,
      'content-length': '10',
    },
  })
})

test.each([
  ['bytes=0-', '0123456789', '0-9'],
  ['bytes=4-', '456789', '4-9'],
  ['bytes=4-6', '456', '4-6'],
  ['bytes=9-9', '9', '9-9'],
  ['bytes=8-99', '89', '8-9'],
])('the range %s is %s', async (range, body, content) => {
  await add()

  expect(await file({ range })).toMatchObject({
    ...{ status: 206, body, headers: { 'content-range': `bytes ${content}/10`, 'content-length': `${body.length}` } },
  })
})

test.each(['bytes=10-', 'bytes=6-5'])('the range %s is outside of the file', async (range) => {
  await add()

  expect(await file({ range })).toMatchObject({
    ...{
      body: { code: 'no-such-range', message: 'The file has 10 bytes.' },
      headers: { 'content-range': 'bytes */10' },
    },
  })
})

test.each(['bytes=-5', 'bytes=1-2,4-5', 'lines=1-2', ' bytes=1-2', 'bytes=1-2x'])(
  'the unsupported range %j gives the whole file',
  async (range) => {
    await add()

    expect(await file({ range })).toMatchObject({ status: 200, body: CONTENT })
  },
)

test('a file that is missing or has another size is lost', async () => {
  await add()
  writeFileSync(join(snapshots.folder, `${ID}.snapshot`), 'other')
  expect((await file()).body).toMatchObject({ code: 'snapshot-lost' })

  rmSync(join(snapshots.folder, `${ID}.snapshot`))
  expect((await file()).body).toMatchObject({ code: 'snapshot-lost' })
})

/** Names and contents of a tar archive. */
function entriesOf(tar: string): { [name: string]: string } {
  const entries: { [name: string]: string } = {}
  for (let at = 0; tar.charCodeAt(at) > 0; ) {
    const text = (from: number, length: number) => tar.slice(at + from, at + from + length).replace(/\0.*$/s, '')
    const size = Number.parseInt(text(124, 12), 8)
    entries[text(0, 100)] = tar.slice(at + 512, at + 512 + size)
    at += 512 + Math.ceil(size / 512) * 512
  }
  return entries
}

test('an archive has the file, its manifest, and checksums of both', async () => {
  await add()

  const { headers, body } = await download((request) => sendArchive(snapshots, request))

  const entries = entriesOf(String(body))
  const manifest = entries['manifest.json'] ?? ''
  expect(Object.keys(entries)).toEqual(['manifest.json', 'SHA256SUMS', `${ID}.snapshot`])
  expect(entries[`${ID}.snapshot`]).toBe(CONTENT)
  expect(entries['SHA256SUMS']).toBe(
    `${sha256(Buffer.from(CONTENT))}  ${ID}.snapshot\n${sha256(Buffer.from(manifest))}  manifest.json\n`,
  )
  expect(JSON.parse(manifest)).toEqual({
    ...{ format: 'vacancy-snapshot-archive', version: 1, name: 'hotels', createdAt: '2026-11-22T12:00:00.000Z' },
    ...{ by: 'ada', file: { name: `${ID}.snapshot`, bytes: 10, sha256: sha256(Buffer.from(CONTENT)) } },
    snapshot: {
      ...{ id: ID, shard: 's1', codecs: ['late'], codecHash: 'codecs', bytes: 10, properties: 2, packages: 9 },
      ...{ roomTypes: 1, window: { from: '2026-12-01', to: '2026-12-02' }, roomsPerProperty: [0, 2] },
      segments: [{ name: 'city', properties: 2 }],
    },
    ...{ counters: { agree: true }, sources: [{ name: 'p.csv', bytes: 3, sha256: 'x', rows: 2 }] },
  })
  expect(headers).toEqual({
    'content-type': 'application/x-tar',
    'content-disposition': `attachment; filename="vacancy-${'a'.repeat(12)}.tar"`,
    'content-length': String(Buffer.byteLength(String(body))),
  })
})

// Tokens

test('a node fetches a snapshot with its token for an hour', async () => {
  await add()
  const authorization = `Bearer ${await createPullToken(snapshots, ID)}`
  const pull = (headers: object, id = ID) => download((request) => pullSnapshot(snapshots, request), headers, id)

  clock.advance(HOUR)
  expect(await pull({ authorization, range: 'bytes=7-' })).toMatchObject({ status: 206, body: '789' })
  const wrong = [{}, { authorization: `${authorization}x` }, { authorization: `Bearer ${'x'.repeat(43)}` }]
  for (const headers of wrong) expect((await pull(headers)).body).toMatchObject({ code: 'invalid-token' })
  await add({ id: 'b'.repeat(64) })
  expect((await pull({ authorization }, 'b'.repeat(64))).body).toMatchObject({ code: 'invalid-token' })
  clock.advance(1)
  expect((await pull({ authorization })).body).toMatchObject({ code: 'invalid-token' })
})

// Views

const reported = (id: string, createdAt: string) => ({
  ...{ id, createdAt, lastIndex: 40, packages: 3, properties: 1, segments: 1, codecHash: 'other', bytes: 5 },
  origin: 'maintenance',
})
const shard = (id: string, nodes: { [node: string]: object | null }) => ({
  ...{ id, nodes: Object.entries(nodes).map(([node, snapshot]) => ({ id: node, snapshot, window: null })) },
})
const install = (operation: string, change: Partial<InstallRow> = {}): InstallRow => ({
  ...{ operation, shard: 's1', snapshot: ID, state: 'done', at: NOW, ...change },
})

test('snapshots built here and those on nodes are listed, the newest first', async () => {
  await add()
  const [late, early] = [reported('late', '2026-11-23T00:00:00.000Z'), reported('early', '2026-11-21T00:00:00.000Z')]
  shards = [shard('s1', { n1: late, n2: late, n3: reported(ID, '') }), shard('s2', { n4: early, n5: null })]

  const list = await listSnapshots(snapshots)

  expect(list.map(({ id }) => id)).toEqual(['late', ID, 'early'])
  expect(list[0]).toMatchObject({
    ...{ name: 's1, entry 40', stored: false, codecsCurrent: false, installable: false, roomTypes: null },
    heldBy: [
      { shard: 's1', node: 'n1' },
      { shard: 's1', node: 'n2' },
    ],
  })
  expect(list[1]).toMatchObject({
    ...{ origin: 'import', stored: true, segments: 1, codecsCurrent: true, installable: true, import: 'i1' },
    ...{ createdAt: '2026-11-22T12:00:00.000Z', heldBy: [{ shard: 's1', node: 'n3' }], servedBy: ['s1'] },
  })
})

test('without a codec list it is unknown whether snapshots have the current one', async () => {
  await add()
  Object.assign(snapshots, { codecs: () => Promise.reject(problem('no-codec-list')) })
  expect(await listSnapshots(snapshots)).toMatchObject([{ codecsCurrent: null }])

  Object.assign(snapshots, { codecs: () => Promise.reject(new TypeError('defect')) })
  await expect(listSnapshots(snapshots)).rejects.toThrow('defect')
})

test('a shard is served by its newest install, or by the snapshot with which it formed', () => {
  const cluster = { shards: () => [shard('s1', { n1: { id: ID } }), shard('s3', { n3: null, n4: { id: ID } })] }
  const installs = [
    install('3', { shard: 's2' }),
    install('2', { state: 'failed', shard: 's4' }),
    install('1', { snapshot: 'b' }),
    install('0'),
  ]

  expect(servedBy(cluster as never, ID, installs)).toEqual(['s2', 's3'])
  expect(servedBy(cluster as never, 'b', installs)).toEqual(['s1'])
})

test('details have the coverage and the installs, the newest first', async () => {
  await add()
  await storeInstall(snapshots, install('1', { state: 'running' }))
  await storeInstall(snapshots, install('2', { at: NOW + 5 }))
  await storeInstall(snapshots, install('1'))
  await storeInstall(snapshots, install('3', { snapshot: 'b' }))

  expect(await snapshotDetails(snapshots, ID)).toMatchObject({
    ...{ codecs: ['late'], counters: { agree: true }, sources: [{ name: 'p.csv' }], roomsPerProperty: [0, 2] },
    coverage: { segments: [{ name: 'city', properties: 2, rooms: 5, packages: [4, 5] }] },
    installs: [
      { operation: '2', state: 'done', at: '2026-11-22T12:00:00.005Z' },
      { operation: '1', state: 'done' },
    ],
  })
})

test('details of a snapshot on a node have no coverage', async () => {
  shards = [shard('s1', { n1: reported('late', '2026-11-23T00:00:00.000Z') })]

  expect(await snapshotDetails(snapshots, 'late')).toMatchObject({ coverage: null, counters: null, installs: [] })
  await expect(snapshotDetails(snapshots, 'none')).rejects.toMatchObject({ code: 'no-such-snapshot' })
})
