/** A build of two uploads. The processes of builder and inspection are stubs. */

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { turnableClock } from '@vacancy/shared'
import type { BuildDone, BuildEvent, SnapshotFile } from '@vacancy/shared/contract'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { AuditTables } from '../access/tables.ts'
import { openDatabase } from '../database/database.ts'
import { problem } from '../http/errors.ts'
import { sha256 } from '../testing/import-files.ts'
import { buildImport, countersOf } from './build-import.ts'
import type { BuildOptions } from './builder.ts'
import { buildFolder, type Imports } from './import-state.ts'
import { type ImportDetail, type Item, itemOf, type Row } from './item.ts'
import type { ImportDatabase, ImportTables } from './tables.ts'

const NOW = Date.parse('2026-11-22T12:34:56.000Z')
const ROW = 'h1,double,2026-12-01,1,120,breakfast\n'
const PROPERTY = 'h1,s1,valley,hotel,standard,3,47.1,11.1,wifi\n'

type Program = (options: BuildOptions) => Promise<{ code: number | null; stderr?: string }>
/** What the processes do, and what they were given. */
const programs = vi.hoisted(() => ({
  run: undefined as unknown,
  document: undefined as unknown,
  memory: 0 as number | null,
  inspected: [] as unknown[],
  added: [] as unknown[],
  sleeps: [] as unknown[],
  onSleep: () => {},
}))
vi.mock('./builder.ts', async (original) => ({
  ...(await original<typeof import('./builder.ts')>()),
  runBuild: async (options: BuildOptions) => ({ stderr: '', ...(await (programs.run as Program)(options)) }),
  inspectSnapshot: async (path: string) => {
    programs.inspected.push(path)
    return programs.document
  },
  memoryOf: async (pid: number) => (pid === 77 ? programs.memory : -1),
}))
vi.mock('./snapshot-store.ts', () => ({
  addSnapshot: async (_: unknown, snapshot: unknown) => void programs.added.push(snapshot),
}))
vi.mock('node:timers/promises', () => ({
  setTimeout: async (ms: number, _: undefined, { signal }: { signal: AbortSignal }) => {
    signal.throwIfAborted()
    programs.sleeps.push(ms)
    programs.onSleep()
  },
}))

let folder: string
let database: ImportDatabase
let clock: ReturnType<typeof turnableClock>
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-build-'))
  database = await openDatabase<ImportTables & AuditTables>(':memory:')
})
afterAll(async () => {
  await database.destroy()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(async () => {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'uploads'), { recursive: true })
  for (const table of ['imports', 'uploads'] as const) await database.deleteFrom(table).execute()
  Object.assign(programs, { memory: 4_096, inspected: [], added: [], sleeps: [], onSleep: () => {} })
  programs.document = { id: 'digest', properties: 1, packages: 2 } satisfies Partial<SnapshotFile>
  programs.run = (async ({ onEvent }) => {
    onEvent(DONE)
    return { code: 0 }
  }) satisfies Program
  clock = turnableClock(NOW)
})
afterEach(() => {
  vi.useRealTimers()
})

const DONE: BuildDone = {
  ...{ event: 'done', snapshotId: 'digest', path: '/out/one', bytes: 9, packages: 2, properties: 1, outOfWindow: 0 },
  ...{ seconds: 1.25, recordsPerSecond: 7, threads: 3, kernel: 'wasm', notes: ['a note'] },
}
const progress = (change: Partial<Extract<BuildEvent, { event: 'progress' }>>): BuildEvent => ({
  ...{ event: 'progress', phase: 'packages', done: 1, total: 4, packages: 10, seconds: 1, recordsPerSecond: 20 },
  ...change,
})

const touched = new Map<string, { isTouched: boolean }>()

/** An import whose uploads are on disk. */
async function world(change: Partial<Row> = {}, files: { properties?: string; packages?: string } = {}) {
  const { properties = PROPERTY, packages = ROW.repeat(2) } = files
  writeFileSync(join(folder, 'uploads', 'u1'), properties)
  writeFileSync(join(folder, 'uploads', 'u2'), packages)
  const note = (name: string, text: string) => ({
    ...{ name, bytes: text.length, sha256: null, rows: null, unpacked: false },
  })
  const detail: ImportDetail = {
    ...{ message: 'Waiting.', hint: 'old hint', errors: null, counters: null, snapshot: null, result: null, log: [] },
    files: { properties: note('p.csv', properties), packages: note('k.csv', packages) },
  }
  const row: Row = {
    ...{ id: 'i1', name: 'hotels', shard: 's1', state: 'queued', by_name: 'ada', created_at: NOW, started_at: null },
    ...{ ended_at: null, window_from: '2026-12-01', window_to: '2026-12-31', without_rows_of: null, codecs: null },
    ...{ properties_upload: 'u1', packages_upload: 'u2', attempts: 0, detail: JSON.stringify(detail), ...change },
  }
  await database.insertInto('imports').values(row).execute()
  for (const id of ['u1', 'u2']) {
    const upload = { id, name: id, bytes: 1, received: 1, fingerprint: '', sha256: null, import_id: 'i1' }
    const values = { ...upload, kind: 'packages' as const, by_name: '', created_at: 0, touched_at: 0 }
    await database.insertInto('uploads').values(values).execute()
  }
  touched.clear()
  for (const topic of ['imports', 'import:i1']) touched.set(topic, { isTouched: false })
  const imports = {
    ...{ database, clock, folder, live: { topics: touched }, snapshots: 'snapshots' },
    uploads: { database, folder: join(folder, 'uploads') },
    codecs: async () => ({ names: ['breakfast', 'late'], hash: 'h', source: 'node n1' }),
  } as unknown as Imports
  const item = itemOf(row, detail)
  const end = new AbortController()
  return { imports, item, end, build: () => buildImport(imports, item, end.signal) }
}

const stored = () => database.selectFrom('imports').selectAll().executeTakeFirstOrThrow()
/** Without times and digests. */
const logOf = (item: Item) => item.detail.log.map((line) => line.slice(9).replace(/sha256 [0-9a-f]{64}/, 'sha256'))
const put = (path: string, text: string) => {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
}

// A build

test('a build reads both files, runs the builder, verifies the snapshot and stores it', async () => {
  const { imports, item, build } = await world()
  const leftover = join(buildFolder(imports, 'i1'), 'out', 'old')
  put(leftover, '')
  const states: unknown[] = []
  let given: BuildOptions | undefined
  programs.run = (async (options) => {
    given = options
    states.push((await stored()).state, existsSync(leftover), item.detail.message)
    expect(readFileSync(join(options.inputPath, 'codecs.yml'), 'utf8')).toBe(
      'rate_features:\n  - "breakfast"\n  - "late"\n',
    )
    expect(readFileSync(join(options.inputPath, 'properties.csv'), 'utf8')).toBe(PROPERTY)
    expect(readFileSync(join(options.inputPath, 'packages.csv'), 'utf8')).toBe(ROW.repeat(2))
    options.onEvent(DONE)
    return { code: 0 }
  }) satisfies Program

  expect(await build()).toEqual({
    state: 'built',
    message: 'Built in 1.3 s: 2 packages of 1 properties.',
    hint: '',
  })
  expect(states).toEqual(['building', false, 'Building the snapshot.'])
  const inputPath = buildFolder(imports, 'i1')
  expect(given).toMatchObject({
    ...{ shard: 's1', from: '2026-12-01', to: '2026-12-31', inputPath, outputPath: join(inputPath, 'out') },
    errorsFile: join(inputPath, 'errors.jsonl'),
  })
  expect(programs.inspected).toEqual(['/out/one'])
  const digests = [sha256(Buffer.from(PROPERTY)), sha256(Buffer.from(ROW.repeat(2)))] as const
  expect(programs.added).toEqual([
    {
      ...{ path: '/out/one', document: programs.document, counters: item.detail.counters, import: item.row },
      sources: [
        { name: 'p.csv', bytes: PROPERTY.length, sha256: digests[0], rows: 1 },
        { name: 'k.csv', bytes: ROW.length * 2, sha256: digests[1], rows: 2 },
      ],
    },
  ])
  expect(item.detail).toMatchObject({
    ...{ snapshot: 'digest', counters: { agree: true }, hint: '', errors: null },
    result: {
      ...{ seconds: 1.25, recordsPerSecond: 7, threads: 3, kernel: 'wasm', notes: ['a note'] },
      command:
        'vacancy build-snapshot --shard-id s1 --input-path DIR --output-path DIR --from 2026-12-01 --to 2026-12-31',
    },
  })
  expect(item.progress).toMatchObject({ phase: 'verify', number: 6, of: 6, percent: 100, done: 1, total: 1 })
  expect(logOf(item)).toEqual([
    'started',
    'codec list of node n1: breakfast, late',
    'p.csv: 1 rows, sha256',
    'k.csv: 2 rows, sha256',
    'reading the snapshot back',
    'all counters agree',
  ])
  expect(await stored()).toMatchObject({ state: 'verifying', attempts: 1, started_at: NOW })
  const uploads = await database.selectFrom('uploads').select(['id', 'sha256']).orderBy('id').execute()
  expect(uploads).toEqual([
    { id: 'u1', sha256: digests[0] },
    { id: 'u2', sha256: digests[1] },
  ])
  expect([...touched.values()]).toEqual([{ isTouched: true }, { isTouched: true }])
})

test('a build after an interrupted one starts with empty results', async () => {
  const { imports, item, build } = await world({ attempts: 1 })
  item.rates = [5]
  item.detail = { ...item.detail, errors: { count: 1 } as ImportDetail['errors'] }
  item.progress = { percent: 50 } as Item['progress']
  const codecs = async () => {
    const { state, attempts, started_at } = await stored()
    expect([state, attempts, started_at]).toEqual(['checking', 2, NOW])
    expect([item.rates, item.progress, item.detail.errors, item.detail.counters]).toEqual([[], null, null, null])
    expect([item.detail.message, item.detail.hint]).toEqual(['Reading both files.', ''])
    throw new Error('seen')
  }
  Object.assign(imports, { codecs })

  await expect(build()).rejects.toThrow('seen')
  expect(logOf(item)).toEqual(['restarted, attempt 2'])
})

test('a snapshot with other counts is stored, and cannot be installed', async () => {
  const { item, build } = await world()
  programs.document = { id: 'digest', properties: 1, packages: 3 }

  expect(await build()).toEqual({
    state: 'built',
    message: 'Built in 1.3 s: 2 packages of 1 properties. Counters differ, so it cannot be installed.',
    hint: 'Import again; if they differ again, keep both files for a report.',
  })
  expect(logOf(item).slice(-2)).toEqual(['the builder accepted 2 packages, the snapshot has 3', 'counters differ'])
})

// The codec list

test('a list given with the files needs no node', async () => {
  const { imports, item, build } = await world({ codecs: '["late","sauna"]' })
  Object.assign(imports, { codecs: () => Promise.reject(new Error('not read')) })

  await build()

  expect(logOf(item)[1]).toBe('codec list of the given codec file: late, sauna')
})

test('the codec list is requested again for a minute', async () => {
  const { imports, build } = await world()
  programs.onSleep = () => clock.advance(1_000)
  Object.assign(imports, {
    codecs: () => Promise.reject(problem('no-codec-list', { detail: 'no node', hint: 'wait' })),
  })

  await expect(build()).rejects.toMatchObject({ name: 'FileFault', message: 'no node', hint: 'wait' })
  expect(programs.sleeps).toEqual(Array.from({ length: 61 }, () => 1_000))
})

test('a node that starts meanwhile reports the codec list of its shard', async () => {
  const { imports, build } = await world()
  const shards: unknown[] = []
  Object.assign(imports, {
    codecs: async (shard: string) => {
      shards.push(shard)
      if (shards.length < 3) throw problem('no-codec-list')
      return { names: ['late'], hash: '', source: 'node n1' }
    },
  })

  expect(await build()).toMatchObject({ state: 'built' })
  expect(shards).toEqual(['s1', 's1', 's1'])
})

test('a defect while the codec list is read ends the build', async () => {
  const { imports, build } = await world()
  Object.assign(imports, { codecs: () => Promise.reject(new TypeError('defect')) })

  await expect(build()).rejects.toThrow(TypeError)
  expect(programs.sleeps).toEqual([])
})

// The files

test.each<[string, { properties?: string; packages?: string }, string, string]>([
  [
    'swapped files',
    { properties: ROW, packages: PROPERTY },
    'p.csv has the columns of packages, and k.csv those of properties.',
    'Swap the two files.',
  ],
  [
    'two files of packages',
    { properties: ROW },
    'The first row of p.csv has 6 columns; properties.csv has 9.',
    'Check the file: one record per line, with cells separated by commas.',
  ],
  [
    'a file with one column',
    { packages: 'a\n' },
    'The first row of k.csv has 1 column; packages.csv has 6.',
    'Check the file: one record per line, with cells separated by commas.',
  ],
])('%s are refused', async (_, files, message, hint) => {
  const { build } = await world({}, files)

  await expect(build()).rejects.toMatchObject({ name: 'FileFault', message, hint })
})

test('an empty file is left to the builder', async () => {
  const { item, build } = await world({}, { packages: '' })
  programs.document = { id: 'digest', properties: 1, packages: 0 }
  programs.run = (async ({ onEvent }) => {
    onEvent({ ...DONE, packages: 0 })
    return { code: 0 }
  }) satisfies Program

  expect(await build()).toMatchObject({ state: 'built' })
  expect(item.detail.files.packages).toMatchObject({ rows: 0 })
})

test('a repetition leaves out the rejected rows of both files', async () => {
  const { imports, item, build } = await world({ without_rows_of: 'i0' }, { packages: ROW.repeat(3) })
  const error = { line: 2, column: 1, name: '', value: '', kind: 'date', message: '', row: 'x' }
  put(join(buildFolder(imports, 'i0'), 'errors.jsonl'), `${JSON.stringify({ file: 'packages.csv', ...error })}\n`)

  expect(await build()).toMatchObject({ state: 'built' })
  expect(readFileSync(join(buildFolder(imports, 'i1'), 'packages.csv'), 'utf8')).toBe(ROW.repeat(2))
  expect(item.detail.counters).toMatchObject({ agree: true, rejected: { properties: 0, packages: 1 } })
})

test('a repetition without the list of rejected rows is refused', async () => {
  const { build } = await world({ without_rows_of: 'i0' })

  await expect(build()).rejects.toMatchObject({
    ...{ name: 'FileFault', message: 'The list of rejected rows is no longer stored.' },
    hint: 'Fix the files and import them again.',
  })
})

// Failures of the builder

const failing =
  (failed: Omit<Extract<BuildEvent, { event: 'failed' }>, 'event'>, errors: readonly object[]): Program =>
  async ({ onEvent, errorsFile }) => {
    writeFileSync(errorsFile, errors.map((each) => `${JSON.stringify(each)}\n`).join(''))
    onEvent({ event: 'failed', ...failed })
    return { code: 1 }
  }
const rowError = { file: 'packages.csv', line: 2, column: 1, name: '', value: '', kind: 'date', message: '', row: 'x' }

const FIX = 'Download the rejected rows, fix the file and upload it again. The other file can stay.'
const FEATURES = 'Rate features are missing in the codec list. Fix the file, or change the list first.'
test.each<[string, Program, string, string, object]>([
  [
    'one error in a row',
    failing({ count: 1, countByKind: { date: 1 } }, [rowError]),
    '1 error in the files; nothing was built.',
    FIX,
    { count: 1, countByKind: { date: 1 }, kept: 1, keptOf: { properties: 0, packages: 1 }, rows: 1, again: '' },
  ],
  [
    'missing rate features',
    failing({ count: 2, countByKind: { feature: 2 } }, [rowError, rowError]),
    '2 errors in the files; nothing was built.',
    FEATURES,
    {
      ...{ count: 2, kept: 2, rows: null },
      again: 'Rate features are missing in the codec list. Rows with this error cannot be left out.',
    },
  ],
  [
    'exactly as many errors as are stored',
    failing({ count: 10_000, countByKind: { date: 10_000 } }, [rowError]),
    '10,000 errors in the files; nothing was built.',
    FIX,
    { count: 10_000, kept: 10_000, rows: 1, again: '' },
  ],
  [
    'more errors than are stored',
    failing({ count: 10_001, countByKind: { date: 10_001 } }, [rowError]),
    '10,001 errors in the files; nothing was built.',
    FIX,
    {
      ...{ count: 10_001, kept: 10_000, rows: null },
      again: 'Only 10,000 of 10,001 errors are stored, so not all rejected rows are known.',
    },
  ],
  [
    'an error of a whole file',
    failing({ count: 1, countByKind: { date: 1 } }, [{ ...rowError, line: 0 }]),
    '1 error in the files; nothing was built.',
    FIX,
    { rows: null, again: 'A file has an error that is not in a single row.' },
  ],
])('a build fails with %s', async (_, program, message, hint, errors) => {
  const { item, build } = await world()
  programs.run = program

  expect(await build()).toEqual({ state: 'failed', message, hint })
  expect(item.detail.errors).toMatchObject(errors)
  const isNoted = logOf(item).at(-1) === 'rejected: 0 lines of properties, 1 of packages'
  expect(isNoted).toBe(item.detail.errors?.rows === 1)
  expect(programs.added).toEqual([])
})

test.each<[string, string]>([
  ['vacancy build-snapshot: no columns\n', 'no columns'],
  ['first\nvacancy build-snapshot: last\n', 'last'],
  ['see vacancy build-snapshot: x', 'see vacancy build-snapshot: x'],
])('a builder that ends with the text %j fails the import with its last line', async (stderr, message) => {
  const { item, build } = await world()
  programs.run = (async () => ({ code: 1, stderr })) satisfies Program

  await expect(build()).rejects.toMatchObject({ name: 'FileFault', message, hint: 'See the log of this import.' })
  expect(logOf(item).slice(4)).toEqual(stderr.trim().split('\n'))
})

test('the last 20 lines of the builder are in the log', async () => {
  const { item, build } = await world()
  const lines = Array.from({ length: 21 }, (_, at) => `line ${at}`)
  programs.run = (async () => ({ code: 1, stderr: lines.join('\n') })) satisfies Program

  await expect(build()).rejects.toThrow('line 20')
  expect(logOf(item).slice(4)).toEqual(lines.slice(1))
})

test('a full disk is not an error of the files', async () => {
  const { build } = await world()
  programs.run = (async () => ({ code: 1, stderr: 'Error: ENOSPC: no space' })) satisfies Program

  await expect(build()).rejects.toMatchObject({ name: 'Error', code: 'ENOSPC' })
})

test('a cancelled build ends with the reason of its signal, whatever the builder reported', async () => {
  const { end, build } = await world()
  programs.run = (async ({ onEvent, signal }) => {
    expect(signal).toBe(end.signal)
    onEvent(DONE)
    end.abort(new Error('cancelled'))
    return { code: 0 }
  }) satisfies Program

  await expect(build()).rejects.toThrow('cancelled')
})

// Progress

/** The progress after each event of the builder. */
async function progressOf(events: readonly (BuildEvent | number)[]) {
  const { item, build } = await world()
  const seen: NonNullable<Item['progress']>[] = []
  programs.run = (async ({ onEvent }) => {
    for (const event of events) {
      if (typeof event === 'number') clock.advance(event)
      else {
        onEvent(event)
        seen.push(item.progress as NonNullable<Item['progress']>)
      }
    }
    onEvent(DONE)
    return { code: 0 }
  }) satisfies Program
  await build()
  return { seen, item }
}

test('reading the files is a tenth of an import, in shares of their bytes', async () => {
  const { item, build } = await world({}, { properties: PROPERTY, packages: 'x'.repeat(PROPERTY.length * 3) })
  const seen: unknown[] = []
  touched.set('imports', {
    set isTouched(_: boolean) {
      if (item.progress) seen.push([item.progress.phase, item.progress.number, item.progress.percent])
    },
  } as { isTouched: boolean })

  await expect(build()).rejects.toThrow('The first row of k.csv')

  expect(seen).toEqual([
    ['settings', 1, 2.5],
    ['settings', 1, 10],
  ])
})

test.each<[phase: Extract<BuildEvent, { event: 'progress' }>['phase'], number: number, percents: number[]]>([
  ['properties', 2, [10, 12.5, 15, 15]],
  ['packages', 3, [15, 47.5, 80, 80]],
  ['tables', 4, [80, 82, 84, 84]],
  ['write', 5, [84, 88, 92, 92]],
])('the phase %s is number %d', async (phase, number, percents) => {
  const { seen } = await progressOf([0, 2, 4, 5].map((done) => progress({ phase, done, total: 4 })))

  expect(seen.map((each) => each.percent)).toEqual(percents)
  expect(seen.map((each) => [each.phase, each.number, each.of, each.total])).toEqual(
    seen.map(() => [phase, number, 6, 4]),
  )
})

test('a phase without anything to do is complete', async () => {
  const { seen } = await progressOf([progress({ phase: 'tables', done: 0, total: 0 })])

  expect(seen[0]).toMatchObject({ percent: 84, done: 0, total: 0 })
})

test('percent and records never decrease, and the search for errors keeps them', async () => {
  const { seen, item } = await progressOf([
    progress({ done: 4, packages: 50, recordsPerSecond: 9, etaSeconds: 3 }),
    progress({ phase: 'errors', done: 1, total: 9, packages: 5, recordsPerSecond: 0 }),
    progress({ phase: 'properties', done: 0, packages: 60, recordsPerSecond: 8 }),
  ])

  expect(seen).toMatchObject([
    { percent: 80, number: 3, records: 50, recordsPerSecond: 9, etaSeconds: 3, memoryBytes: null },
    { percent: 80, number: 3, records: 50, recordsPerSecond: 9, etaSeconds: null, phase: 'errors', done: 1, total: 9 },
    { percent: 80, number: 2, records: 60, recordsPerSecond: 8 },
  ])
  expect(logOf(item).slice(4, 7)).toEqual(['packages', 'looking for all errors', 'properties'])
})

test('a phase is logged once', async () => {
  const { item } = await progressOf([progress({ done: 1 }), progress({ done: 2 }), progress({ phase: 'write' })])

  expect(logOf(item).slice(4, 7)).toEqual(['packages', 'write', 'reading the snapshot back'])
})

test('each phase has the time since the phases before it, in tenths of a second', async () => {
  const { seen } = await progressOf([
    1_040,
    progress({ phase: 'properties', done: 1 }),
    2_060,
    progress({ done: 1 }),
    500,
    progress({ done: 2 }),
  ])

  expect(seen.map(({ seconds }) => seconds)).toEqual([1, 3.1, 3.6])
  expect(seen[2]?.phases).toEqual([
    { phase: 'settings', seconds: 0 },
    { phase: 'properties', seconds: 1 },
    { phase: 'packages', seconds: 2.6 },
  ])
})

test('a phase has no negative time when the clock is set back', async () => {
  const { item, build } = await world()
  programs.run = (async ({ onEvent }) => {
    clock.advance(5_000)
    onEvent(progress({ phase: 'properties' }))
    clock.setWall(NOW + 1_000)
    onEvent(progress({}))
    expect(item.progress?.phases.at(-1)).toEqual({ phase: 'packages', seconds: 0 })
    onEvent(DONE)
    return { code: 0 }
  }) satisfies Program

  await build()
})

test('memory and rates are sampled every second while packages are read', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { item, build } = await world()
  programs.run = (async ({ onEvent, onStart }) => {
    vi.advanceTimersByTime(1_000)
    expect(item.rates).toEqual([])
    onStart(77)
    onEvent(progress({ phase: 'properties', recordsPerSecond: 5 }))
    await vi.advanceTimersByTimeAsync(999)
    onEvent(progress({ recordsPerSecond: 6 }))
    expect(item.progress?.memoryBytes).toBe(null)
    await vi.advanceTimersByTimeAsync(1)
    onEvent(progress({ recordsPerSecond: 7 }))
    expect([item.rates, item.progress?.memoryBytes]).toEqual([[6], 4_096])
    await vi.advanceTimersByTimeAsync(60_000)
    onEvent(progress({ phase: 'write', recordsPerSecond: 8 }))
    await vi.advanceTimersByTimeAsync(1_000)
    onEvent(DONE)
    return { code: 0 }
  }) satisfies Program

  await build()

  expect(item.rates).toEqual(Array.from({ length: 60 }, () => 7))
  expect(vi.getTimerCount()).toBe(0)
})

test('sampling ends when the builder cannot be started', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { build } = await world()
  programs.run = (() => Promise.reject(new Error('no process'))) satisfies Program

  await expect(build()).rejects.toThrow('no process')
  expect(vi.getTimerCount()).toBe(0)
})

// Counters

type Counts = { properties: number; packages: number }
const counted = (read: Counts, done: Counts & { outOfWindow: number }, document: Counts, rejected?: Counts) =>
  countersOf(
    {
      properties: { rows: read.properties, ...(rejected && { rejected: rejected.properties }) },
      packages: { rows: read.packages, ...(rejected && { rejected: rejected.packages }) },
    },
    done,
    document,
  )

test('equal counts agree', () => {
  const [read, done, document] = [
    { properties: 3, packages: 20 },
    { properties: 3, packages: 15, outOfWindow: 5 },
    { properties: 3, packages: 15 },
  ]

  expect(counted(read, done, document)).toEqual({
    ...{ reader: read, builder: done, readBack: document, agree: true, differs: [] },
  })
  const rejected = { properties: 0, packages: 2 }
  expect(counted({ properties: 3, packages: 22 }, done, document, rejected)).toEqual({
    ...{
      reader: { properties: 3, packages: 22 },
      builder: done,
      readBack: document,
      rejected,
      agree: true,
      differs: [],
    },
  })
})

test.each<[Counts, Counts & { outOfWindow: number }, Counts, Counts | undefined, string[]]>([
  [
    { properties: 4, packages: 21 },
    { properties: 3, packages: 15, outOfWindow: 5 },
    { properties: 3, packages: 15 },
    undefined,
    [
      'properties.csv has 4 rows, the builder accepted 3',
      'packages.csv has 21 rows, the builder accepted 15 and omitted 5',
    ],
  ],
  [
    { properties: 3, packages: 20 },
    { properties: 3, packages: 15, outOfWindow: 5 },
    { properties: 2, packages: 16 },
    undefined,
    ['the builder accepted 3 properties, the snapshot has 2', 'the builder accepted 15 packages, the snapshot has 16'],
  ],
  [
    { properties: 3, packages: 20 },
    { properties: 3, packages: 15, outOfWindow: 5 },
    { properties: 3, packages: 15 },
    { properties: 1, packages: 2 },
    [
      'properties.csv has 3 rows, 1 of them rejected before, the builder accepted 3',
      'packages.csv has 20 rows, 2 of them rejected before, the builder accepted 15 and omitted 5',
    ],
  ],
])('counts that differ are named: case %#', (read, done, document, rejected, differs) => {
  expect(counted(read, done, document, rejected)).toMatchObject({ agree: false, differs })
})
