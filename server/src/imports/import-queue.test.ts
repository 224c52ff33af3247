/** The queue of imports: when one begins, how it ends, and what a restart does. The builds are stubs. */

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { turnableClock } from '@vacancy/shared'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { AuditTables } from '../access/tables.ts'
import { openDatabase } from '../database/database.ts'
import type { BuildEnd } from './build-import.ts'
import {
  beginWhenComplete,
  finishImport,
  forgetOldImports,
  observeUpload,
  startImports,
  stopImports,
} from './import-queue.ts'
import { buildFolder, type Imports, importView } from './import-state.ts'
import { importHandlers } from './imports.ts'
import { type ImportDetail, type Item, itemOf, type Row } from './item.ts'
import { FileFault } from './reading.ts'
import type { ImportDatabase, ImportTables } from './tables.ts'
import type { UploadRow } from './uploads.ts'

const NOW = Date.parse('2026-11-22T12:34:56.000Z')

type Build = (id: string, signal: AbortSignal) => Promise<BuildEnd>
/** What a build does, and the builds that began. */
const builds = vi.hoisted(() => ({ run: undefined as unknown, begun: [] as string[] }))
vi.mock('./build-import.ts', () => ({
  buildImport: async (_: unknown, item: Item, signal: AbortSignal) => {
    builds.begun.push(item.row.id)
    return await (builds.run as Build)(item.row.id, signal)
  },
}))

let folder: string
let database: ImportDatabase
let imports: Imports
let notes: { readonly [name: string]: unknown }[]
let errors: unknown[]
let touched: Map<string, { isTouched: boolean; followers: Map<unknown, unknown> }>
let clock: ReturnType<typeof turnableClock>
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-queue-'))
  database = await openDatabase<ImportTables & AuditTables>(':memory:')
})
afterAll(async () => {
  await database.destroy()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(async () => {
  for (const table of ['imports', 'uploads'] as const) await database.deleteFrom(table).execute()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'uploads'), { recursive: true })
  clock = turnableClock(NOW)
  notes = []
  errors = []
  touched = new Map()
  builds.begun = []
  builds.run = (async () => ({ state: 'built', message: 'Built.', hint: '' })) satisfies Build
  imports = {
    ...{ database, clock, folder, live: { topics: touched }, items: new Map(), received: new Map() },
    ...{ working: undefined, isStopping: false },
    uploads: { database, clock, folder: join(folder, 'uploads') },
    ...{ dayBegins: () => 0, shards: () => ['s1'] },
    audit: async (note: { readonly [name: string]: unknown }) => void notes.push(note),
    log: { error: (fields: object, text: string) => void errors.push([fields, text]) },
  } as unknown as Imports
})

const DETAIL: ImportDetail = {
  ...{
    message: '',
    hint: '',
    errors: null,
    counters: null,
    snapshot: null,
    priceDecimals: 0,
    result: null,
    pace: null,
    log: [],
  },
  files: {
    properties: { name: 'p.csv', bytes: 10, sha256: null, rows: null, unpacked: false },
    packages: { name: 'k.csv', bytes: 20, sha256: null, rows: null, unpacked: false },
  },
}
const rowOf = (id: string, change: Partial<Row> = {}): Row => ({
  ...{ id, name: `name ${id}`, shard: 's1', state: 'uploading', by_name: 'ada', created_at: NOW, started_at: null },
  ...{ ended_at: null, window_from: '2026-12-01', window_to: '2026-12-31', without_rows_of: null, codecs: null },
  ...{ properties_upload: `${id}-p`, packages_upload: `${id}-k`, attempts: 0, detail: JSON.stringify(DETAIL) },
  ...change,
})
const uploadOf = (id: string, change: Partial<UploadRow> = {}): UploadRow => ({
  ...{ id, name: id, kind: 'packages', bytes: 10, received: 10, fingerprint: '', sha256: null },
  ...{ import_id: id.slice(0, -2), by_name: 'ada', created_at: NOW, touched_at: NOW, ...change },
})

/** A stored import with its uploads; it is in memory, too, unless the process has just started. */
async function add(id: string, change: Partial<Row> = {}, isInMemory = true, detail: Partial<ImportDetail> = {}) {
  const row = { ...rowOf(id, change), detail: JSON.stringify({ ...DETAIL, ...detail }) }
  await database.insertInto('imports').values(row).execute()
  for (const upload of [`${id}-p`, `${id}-k`]) {
    await database.insertInto('uploads').values(uploadOf(upload)).execute()
    writeFileSync(join(folder, 'uploads', upload), '')
  }
  for (const topic of ['imports', `import:${id}`]) touched.set(topic, { isTouched: false, followers: new Map() })
  const item = itemOf(row, { ...DETAIL, ...detail })
  if (isInMemory) imports.items.set(id, item)
  return item
}
const file = (id: string, name: string) => {
  mkdirSync(buildFolder(imports, id), { recursive: true })
  writeFileSync(join(buildFolder(imports, id), name), '')
}
const stateOf = async (id: string) =>
  (await database.selectFrom('imports').select('state').where('id', '=', id).executeTakeFirst())?.state
const uploadsLeft = async () =>
  (await database.selectFrom('uploads').select(['id', 'import_id']).orderBy('id').execute()).map(
    ({ id, import_id }) => `${id} of ${import_id}`,
  )
/** Until no build runs. */
async function idle() {
  while (imports.working) await imports.working
}

// Begin

test.each([
  ['in UTC', 0, ['2026-11-22', '2027-11-22']],
  ['later, so the night before may still be sold', 780, ['2026-11-21', '2027-11-21']],
  ['earlier, so the next one begins', -720, ['2026-11-23', '2027-11-23']],
])('an import keeps the nights of a year from the day of its shard, which begins %s', async (_, begins, [from, to]) => {
  for (const kind of ['properties', 'packages'] as const)
    await database
      .insertInto('uploads')
      .values(uploadOf(kind, { kind, received: 0, import_id: null }))
      .execute()
  imports = { ...imports, dayBegins: (shard) => (shard === 's2' ? begins : 0) }
  const body = { name: 'a', shard: 's2', properties: 'properties', packages: 'packages', priceDecimals: 0 }
  const principal = { name: 'ada' }

  const create = importHandlers(imports)['POST /api/v1/imports']
  expect(await create({ body, principal } as Parameters<typeof create>[0])).toMatchObject({ window: { from, to } })
})

test('an import begins with the last byte of both files, and its uploads are dropped when it is built', async () => {
  const item = await add('a')
  await database.updateTable('uploads').set({ received: 9 }).where('id', '=', 'a-k').execute()

  await beginWhenComplete(imports, item)
  expect([item.row.state, builds.begun]).toEqual(['uploading', []])
  expect(touched.get('import:a')?.isTouched).toBe(true)

  await database.updateTable('uploads').set({ received: 10 }).where('id', '=', 'a-k').execute()
  await beginWhenComplete(imports, item)
  expect([item.row.state, item.detail.message]).toEqual(['queued', 'Waiting for other imports.'])
  await idle()

  expect([item.row.state, item.detail.message, item.row.ended_at]).toEqual(['built', 'Built.', NOW])
  expect(await stateOf('a')).toBe('built')
  expect(await uploadsLeft()).toEqual([])
  expect(readdirSync(join(folder, 'uploads'))).toEqual([])
  expect(notes).toEqual([
    {
      ...{ principal: 'system', address: '', userAgent: '', requestId: '', action: 'import.end', target: 'name a' },
      ...{ result: 'built', detail: 'Built.' },
    },
  ])
})

test('an import that has begun does not begin again', async () => {
  const item = await add('a', { state: 'building' })

  await beginWhenComplete(imports, item)

  expect([item.row.state, builds.begun]).toEqual(['building', []])
})

test('an import without one of its files fails', async () => {
  const item = await add('a')
  await database.deleteFrom('uploads').where('id', '=', 'a-p').execute()

  await beginWhenComplete(imports, item)

  expect(item.detail).toMatchObject({
    ...{ message: 'A file of this import is missing.', hint: 'Start a new import with both files.' },
  })
  expect(item.row.state).toBe('failed')
  expect(await uploadsLeft()).toEqual(['a-k of null'])
})

test('one import is built at a time, the oldest first', async () => {
  let running = 0
  builds.run = (async () => {
    expect(++running).toBe(1)
    await new Promise((resolve) => setImmediate(resolve))
    running--
    return { state: 'built', message: 'Built.', hint: '' }
  }) satisfies Build
  const items = [
    await add('new', { created_at: NOW + 3 }),
    await add('old', { created_at: NOW + 1 }),
    await add('mid', { created_at: NOW + 2 }),
  ]
  for (const item of items) await beginWhenComplete(imports, item)
  await idle()

  expect(builds.begun).toEqual(['new', 'old', 'mid'])
  expect(items.map(({ row }) => row.state)).toEqual(['built', 'built', 'built'])
})

// Ends

const FAILURES: [string, () => Error, string, string][] = [
  ['a fault of a file', () => new FileFault('Bad file.', 'Fix it.'), 'Bad file.', 'Fix it.'],
  [
    'a full disk',
    () => Object.assign(new Error('x'), { code: 'ENOSPC' }),
    'The disk of the control plane is full.',
    'Delete old snapshots or unfinished uploads, then start a new import with the same uploads.',
  ],
  ['a defect', () => new TypeError('broken'), 'broken', 'See the logs of the import and of the control plane.'],
]
test.each(FAILURES)(
  'after %s an import has failed, and its uploads can be used again',
  async (what, fail, message, hint) => {
    const item = await add('a')
    item.progress = { percent: 5 } as Item['progress']
    builds.run = (async () => {
      file('a', 'codecs.yml')
      throw fail()
    }) satisfies Build

    await beginWhenComplete(imports, item)
    await idle()

    expect([item.row.state, item.detail.message, item.detail.hint, item.progress]).toEqual([
      ...['failed', message, hint, null],
    ])
    expect(item.detail.log.at(-1)).toBe(`12:34:56 ${message}`)
    expect(await uploadsLeft()).toEqual(['a-k of null', 'a-p of null'])
    expect(existsSync(buildFolder(imports, 'a'))).toBe(false)
    expect(errors).toHaveLength(what === 'a defect' ? 1 : 0)
    expect(item.end).toBe(undefined)
  },
)

test('the next import is built after one whose end could not be stored', async () => {
  const [first, second] = [await add('a', { created_at: NOW - 1 }), await add('b')]
  Object.assign(imports, {
    audit: async ({ target }: { target: string }) => {
      if (target === 'name a') throw new Error('no audit')
    },
  })

  for (const item of [first, second]) await beginWhenComplete(imports, item)
  await idle()

  expect(second.row.state).toBe('built')
  expect(errors).toMatchObject([
    [{ import: 'a' }, 'an import failed'],
    [{ import: 'a' }, 'ending an import failed'],
  ])
})

test('a cancelled build ends as cancelled, whatever its error is', async () => {
  const item = await add('a')
  builds.run = ((_, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')))
    })) satisfies Build
  await beginWhenComplete(imports, item)

  item.isCancelled = true
  item.end?.abort()
  await idle()

  expect([item.row.state, item.detail.message]).toEqual(['cancelled', 'Cancelled. Its files were removed.'])
})

test('row errors stay stored after the end of their import', async () => {
  const errorsOf = { count: 1 } as ImportDetail['errors']
  const item = await add('a', {}, true, { errors: errorsOf })
  file('a', 'errors.jsonl')
  file('a', 'packages.csv')
  mkdirSync(join(buildFolder(imports, 'a'), 'out'))

  await finishImport(imports, item, 'failed', 'Row errors.', 'Fix them.')

  expect(readdirSync(buildFolder(imports, 'a'))).toEqual(['errors.jsonl'])
})

test('progress of a built import is kept', async () => {
  const item = await add('a')
  item.progress = { percent: 100 } as Item['progress']

  await finishImport(imports, item, 'built', 'Built.', '')

  expect(item.progress).toEqual({ percent: 100 })
})

test('the oldest of more than 200 ended imports are forgotten', async () => {
  for (let at = 0; at < 202; at++) {
    imports.items.set(`e${at}`, itemOf(rowOf(`e${at}`, { state: 'built', created_at: NOW - at }), DETAIL))
  }
  await add('e201', { state: 'failed', created_at: NOW - 201 })
  await add('open', { created_at: 0 })
  file('e201', 'errors.jsonl')

  await forgetOldImports(imports)

  expect(imports.items.size).toBe(201)
  expect(['e199', 'e200', 'e201', 'open'].map((id) => imports.items.has(id))).toEqual([true, false, false, true])
  expect(await stateOf('e201')).toBe(undefined)
  expect(existsSync(buildFolder(imports, 'e201'))).toBe(false)
})

// Start and stop

test('a start continues what the last process left', async () => {
  await add('over', { state: 'failed' }, false)
  await add('half', { state: 'uploading' }, false)
  await database.updateTable('uploads').set({ received: 4 }).where('id', '=', 'half-k').execute()
  await add('full', { state: 'uploading', created_at: NOW + 1 }, false)
  await add('cut', { state: 'building', attempts: 2 }, false)
  file('unknown', 'codecs.yml')
  file('over', 'errors.jsonl')

  await startImports(imports)

  expect(imports.items.get('cut')?.detail).toMatchObject({ message: 'Interrupted; waiting to restart.' })
  expect(imports.items.get('cut')?.detail.log).toEqual(['12:34:56 the control plane was restarted'])
  await idle()
  expect([...imports.items].map(([id, { row }]) => `${id} ${row.state}`).sort()).toEqual([
    ...['cut built', 'full built', 'half uploading', 'over failed'],
  ])
  expect(imports.received.get('half-k')).toBe(4)
  expect(readdirSync(join(folder, 'builds')).sort()).toEqual(['over'])
})

test('an import that ended three processes is not started again', async () => {
  await add('a', { state: 'building', attempts: 3 }, false)
  file('a', 'codecs.yml')

  await startImports(imports)

  expect(imports.items.get('a')?.row.state).toBe('failed')
  expect(imports.items.get('a')?.detail).toMatchObject({
    message: 'The control plane ended 3 times while it built this import.',
    hint: 'Check its log for the reason, such as lack of memory, then import again.',
  })
  expect(builds.begun).toEqual([])
})

test('a stop ends the running build, and keeps its state for the next start', async () => {
  const item = await add('a')
  const next = await add('b', { created_at: NOW + 1 })
  builds.run = ((_, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')))
    })) satisfies Build
  for (const each of [item, next]) await beginWhenComplete(imports, each)

  await stopImports(imports)

  expect([item.row.state, next.row.state, builds.begun]).toEqual(['queued', 'queued', ['a']])
  expect(notes).toEqual([])
})

test('a cancelled import stays cancelled when the control plane stops', async () => {
  const item = await add('a')
  builds.run = ((_, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')))
    })) satisfies Build
  await beginWhenComplete(imports, item)
  item.isCancelled = true

  await stopImports(imports)

  expect(item.row.state).toBe('cancelled')
})

// Uploads

test('an upload of an import is shown as it grows, and its last chunk begins the import', async () => {
  const item = await add('a')
  observeUpload(imports, uploadOf('a-p', { received: 3 }), false)

  expect(importView(imports, item).files.properties.received).toBe(3)
  expect([touched.get('import:a')?.isTouched, builds.begun]).toEqual([true, []])
  observeUpload(imports, uploadOf('a-k'), true)
  await vi.waitFor(() => expect(item.row.state).toBe('built'))
})

test.each([null, 'gone'])('an upload of no import (%s) changes the list', async (import_id) => {
  await add('a')

  observeUpload(imports, uploadOf('a-p', { import_id, received: 3 }), true)

  expect([touched.get('imports')?.isTouched, touched.get('import:a')?.isTouched]).toEqual([true, false])
  expect(imports.received.get('a-p')).toBe(3)
})

test('an import that cannot begin is logged', async () => {
  await add('a')
  Object.assign(imports, { uploads: undefined })

  observeUpload(imports, uploadOf('a-p'), true)

  await vi.waitFor(() => expect(errors).toMatchObject([[{ import: 'a' }, 'starting an import failed']]))
})
