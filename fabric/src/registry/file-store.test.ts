import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createCodecList, turnableClock } from '@vacancy/shared'
import { eventually } from '@vacancy/testkit/until'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { CODECS, memoryStorage, onFile, START_MS, type Started, startOn } from '../testing/registries.ts'
import { fileStorage } from './storage.ts'

type Options = Started & {
  readonly storage?: ReturnType<typeof memoryStorage>
  readonly bufferMs?: number
  readonly resetsState?: boolean
}

async function start({ storage = memoryStorage(), bufferMs = 10, resetsState = false, ...options }: Options = {}) {
  return { storage, ...(await startOn(onFile(storage, { bufferMs, resetsState }), options)) }
}

test('changes are written within the buffer time; without changes nothing is written', async () => {
  const { storage, register, push } = await start()
  const saves = () => storage.texts.length
  expect(saves()).toBe(1)
  await register('node', 'n1', 'z1', 's1')
  await eventually(() => expect(saves()).toBe(2))
  await push('s1', 'z1', ['a'])
  await eventually(() => expect(storage.texts.at(-1)).toContain('"a"'))
  const before = saves()
  for (let i = 0; i < 20; i++) await register('node', 'n1', 'z1', 's1', { term: i })

  expect(saves()).toBe(before)
})

test('a failing disk is reported, and pending changes are written when it recovers', async () => {
  const { storage, register, get, metric } = await start()
  storage.fails = true
  await register('node', 'n1', 'z1', 's1')
  await eventually(async () => expect((await get('/ready')).status).toBe(503))
  expect((await get('/ready')).json.reasons[0]).toMatchObject({
    name: 'storage',
    message: expect.stringContaining('no space left'),
  })
  expect((await get('/shards/s1/nodes')).json.nodes).toEqual(['n1'])
  expect(await metric('registry_storage_up')).toBe('registry_storage_up 0')

  storage.fails = false
  await eventually(async () => expect((await get('/ready')).status).toBe(200))
  expect(storage.texts.at(-1)).toContain('"n1"')
})

test('a disk that does not answer is reported, and no longer when it does', async () => {
  const { storage, register, get, clock } = await start()
  const hangs = Promise.withResolvers<void>()
  storage.hangs = hangs.promise
  await register('node', 'n1', 'z1', 's1')
  await eventually(async () => {
    clock.advance(1_000)
    expect((await get('/ready')).json.reasons[0]?.message).toContain('the disk has not answered for')
  })

  hangs.resolve()
  await eventually(async () => expect((await get('/ready')).status).toBe(200))
})

test('stopping writes pending changes, and fails if that fails', async () => {
  const one = await start({ bufferMs: 60_000 })
  await one.register('node', 'n1', 'z1', 's1')
  await one.stop()
  expect(one.storage.texts.at(-1)).toContain('"n1"')

  const { storage, register, registry } = await start({ bufferMs: 60_000 })
  await register('node', 'n1', 'z1', 's1')
  storage.fails = true
  await expect(registry.stop()).rejects.toMatchObject({ code: 'disk_failed' })
  storage.fails = false
})

test('a start with an unwritable location fails', async () => {
  const storage = memoryStorage()
  storage.fails = true

  await expect(start({ storage })).rejects.toMatchObject({ code: 'disk_failed' })
})

test('another codec list after a restart is applied, reported, and changes the global version', async () => {
  const one = await start()
  const before = (await one.get('/versions')).json
  await one.stop()
  const two = await start({
    storage: one.storage,
    codecs: createCodecList([...CODECS.names].reverse()),
  })

  expect((await two.get('/codecs')).json).toMatchObject({
    rate_features: [...CODECS.names].reverse(),
    hash_hex: '1fbe79d405deae0f',
  })
  expect((await two.get('/codecs')).json.ordered_hash).not.toBe(CODECS.orderedHash)
  expect((await two.get('/versions')).json.global_version).toBe(before.global_version + 1)
  expect(two.lines.some((line) => line.startsWith('the codec list changed'))).toBe(true)
})

test('unreadable state fails the start, or is set aside on request', async () => {
  await expect(start({ storage: memoryStorage('{') })).rejects.toMatchObject({ code: 'data_conflict' })

  const storage = memoryStorage('{')
  const { get } = await start({ storage, resetsState: true })
  expect((await get('/shards')).json).toEqual({ shards: {} })
  expect(storage.aside).toEqual(['reset-2026-11-20T08-00-00-000Z'])
})

test('a port in use fails the start', async () => {
  const { registry, storage } = await start()
  const other = memoryStorage()

  await expect(start({ port: registry.port, storage: other })).rejects.toMatchObject({ code: 'port_taken' })
  expect(other.texts).toEqual([])
  expect(storage.texts.length).toBe(1)
})

/** Every version of a registry, with the global one. */
async function versionsOf({ get }: Awaited<ReturnType<typeof start>>): Promise<number[]> {
  const { versions, global_version: global } = (await get('/versions')).json
  return [global, ...(Object.values(versions) as number[])]
}

test('versions start at the unix time in seconds and rise by one', async () => {
  const { register, get } = await start()
  const first = Math.floor(START_MS / 1000)
  expect((await get('/versions')).json).toMatchObject({ global_version: first, versions: {} })
  await register('router', 'r1', 'z1')

  expect((await get('/versions')).json).toMatchObject({
    global_version: first + 1,
    versions: { 'zones/z1/routers': first + 1 },
  })
})

test.each([
  ['after a crash that lost the last changes', (texts: readonly string[]) => texts.at(2), 0],
  ['with an older copy from an orderly stop', (texts: readonly string[]) => texts.at(-1), 3_600_000],
])('%s no version is given a second time', async (_when, kept, laterMs) => {
  const one = await start({ bufferMs: 60_000 })
  await one.push('s1', 'z1', ['a'])
  await one.stop()
  const two = await start({ storage: one.storage, bufferMs: 10 })
  for (let i = 0; i < 50; i++) await two.push('s1', 'z1', [`segment-${i}`])
  const given = Math.max(...(await versionsOf(two)))
  const text = kept(laterMs === 0 ? two.storage.texts : one.storage.texts.slice(0, 2)) as string

  const three = await start({ storage: memoryStorage(text), clock: turnableClock(START_MS + laterMs) })
  expect((await three.get('/zones/z1/segments')).json.segments).toEqual(['a'])
  for (const version of await versionsOf(three)) expect(version).toBeGreaterThan(given)
  expect(three.lines.some((line) => line.includes('all lists get new versions'))).toBe(true)
})

describe('storage', () => {
  let folder: string
  let file: string

  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'vacancy-storage-'))
    file = path.join(folder, 'deep', 'er', 'state.json')
  })

  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const lines: string[] = []
  const note = (_fields: object, text: string) => {
    lines.push(text)
  }
  const open = () => fileStorage(file, { debug: note, info: note, warn: note, error: note })
  const anything = () => ''
  const only = (text: string) => (found: string) => (found === text ? '' : 'is another one')

  test('nothing was kept in a place that is not there', async () => {
    expect(await open().load(anything)).toBeUndefined()
  })

  test('the last save is loaded, and the previous one is kept as a backup', async () => {
    const storage = open()
    for (const text of ['one', 'two', 'three']) await storage.save(text)

    expect(await open().load(anything)).toBe('three')
    expect(readFileSync(`${file}.bak`, 'utf8')).toBe('two')
    expect(readdirSync(path.dirname(file)).sort()).toEqual(['state.json', 'state.json.bak'])
  })

  test('a file that cannot be used is put aside, and the one before is loaded and stays the backup', async () => {
    const storage = open()
    for (const text of ['one', 'two']) await storage.save(text)

    expect(await open().load(only('one'))).toBe('one')
    expect(readFileSync(`${file}.damaged`, 'utf8')).toBe('two')
    expect(lines.at(-1)).toContain('the state before it is used')
    await storage.save('three')
    // The damaged file must not have become the backup.
    expect(readFileSync(`${file}.bak`, 'utf8')).toBe('one')
    expect(await open().load(anything)).toBe('three')
  })

  test('when no file is usable the error names the action, and setting aside deletes nothing', async () => {
    const storage = open()
    for (const text of ['one', 'two']) await storage.save(text)

    await expect(storage.load(() => 'is damaged')).rejects.toMatchObject({
      code: 'data_conflict',
      message: expect.stringMatching(/state\.json cannot be used: is damaged; .*\.bak cannot be used.*--reset-state/),
    })
    await storage.setAside('old')
    expect(await storage.load(anything)).toBeUndefined()
    expect(readFileSync(`${file}.old`, 'utf8')).toBe('two')
    expect(readFileSync(`${file}.bak.old`, 'utf8')).toBe('one')
  })

  /** The folder after each step of a save, if the process dies there. */
  test.each([
    ['before anything', []],
    ['in the middle of writing the new one', [['.tmp', 'thr']]],
    ['before the new one takes its name', [['.tmp', 'three']]],
    [
      'between the names of the copy and its own',
      [
        ['.tmp', 'three'],
        ['.bak.tmp', 'two'],
      ],
    ],
    [
      'after the backup was replaced',
      [
        ['.tmp', 'three'],
        ['.bak', 'two'],
      ],
    ],
  ] as const)('a crash %s leaves a state, and the next save works', async (_when, left) => {
    const storage = open()
    for (const text of ['one', 'two']) await storage.save(text)
    for (const [suffix, text] of left) writeFileSync(`${file}${suffix}`, text)

    const next = open()
    expect(await next.load(anything)).toBe('two')
    await next.save('four')
    expect(await open().load(anything)).toBe('four')
    expect(readFileSync(`${file}.bak`, 'utf8')).toBe('two')
    expect(existsSync(`${file}.tmp`)).toBe(false)
  })

  test('a place that cannot be written to is a failure, and what was there stays', async () => {
    await open().save('one')
    const inFile = fileStorage(path.join(file, 'below', 'state.json'), {
      debug: note,
      info: note,
      warn: note,
      error: note,
    })

    await expect(inFile.save('two')).rejects.toThrow()
    expect(await open().load(anything)).toBe('one')
  })

  test('a file that another process has written is not written over', async () => {
    const [one, two] = [open(), open()]
    await one.save('one')
    expect(await two.load(anything)).toBe('one')
    await two.save('two')

    await expect(one.save('three')).rejects.toThrow('is a second registry using it?')
    expect(await open().load(anything)).toBe('two')
    // A deleted file belongs to no other process.
    rmSync(file)
    await one.save('four')
    expect(await open().load(anything)).toBe('four')
  })
})
