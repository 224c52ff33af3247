import { createRandom, tries } from '@vacancy/testkit/random'
import { beforeEach, expect, test } from 'vitest'
import { isDiskFull } from '../env.ts'
import { settled, walk } from '../steps.ts'
import { contentOf, createSimulatedDisk, damage, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createTestSource, layPlanes, type TestSource, wordsOf } from '../testing/snapshot-source.ts'
import { crashEverywhere, failEverywhere, type Scenario, syncSites, withoutSync } from '../testing/storage.ts'
import { decodePart, openSeedFile, openSnapshot, placeChunks, readSeedFile, type SnapshotReader } from './load.ts'
import {
  collectChunks,
  findSnapshots,
  foreignness,
  loadNewestSteps,
  makeDurable,
  retainSnapshots,
  scrubStep,
  verifySnapshot,
} from './snapshot.ts'
import { createWordsCoder } from './words.ts'
import {
  inlineEncoder,
  type PreviousSnapshot,
  writeSeedFileAtOnce,
  writeSnapshotDir,
  writeSnapshotDirAtOnce,
} from './write.ts'

const DATA = '/data'
const source = createTestSource({ segments: 1, roomTypes: 2, propertiesPerSegment: 3, nights: 2, values: 'constant' })
const target = layPlanes(source.tables)
const encoder = inlineEncoder(source, source.planes.scratch[0])
const wanted = { shardId: 's1', codecsOrderedHash: source.codecs.orderedHash, codecsText: 'all' }

/** The state at an index, which one word identifies. */
function stateAt(index: number, changes: Partial<TestSource> = {}): TestSource {
  source.planes.u32[source.planes.planeMap.words[0] / 4 + 1] = ~index
  return { ...source, index, ...changes }
}

function envOf(disk: SimulatedDisk) {
  return createSimulation({ disk }).env
}

function createDataDir(): SimulatedDisk {
  const disk = createSimulatedDisk()
  disk.makeDirectory(DATA)
  disk.syncDirectory('/')
  return disk
}

function write(disk: SimulatedDisk, index: number, previous?: PreviousSnapshot, changes: Partial<TestSource> = {}) {
  const options = { encoder, origin: 'test', ...(previous ? { previous } : {}) }
  return writeSnapshotDirAtOnce(envOf(disk), DATA, stateAt(index, changes), options)
}

/** Decodes all words, which identify the index they were taken at. */
function loadWords(disk: SimulatedDisk, reader: SnapshotReader): number {
  for (const planes of target.planeMap.words) target.u32.fill(0, planes / 4 - 4, planes / 4 + 2 * 3)
  const { tables, properties, names, words, firstPlane, places } = reader
  const rows = { tables, ids: properties.ids, roomTypes: names.roomTypes }
  const coder = createWordsCoder(target.memory, target.scratch[0], rows)
  for (let part = 0; part < words.parts.length; part++) {
    decodePart(disk, { words, form: places.form, firstPlane }, coder, target.planeMap, part)
  }
  const index = ~target.u32[target.planeMap.words[0] / 4 + 1]
  stateAt(index)
  expect(wordsOf(target, tables)).toEqual(wordsOf(source.planes, source.tables))
  return index
}

const load = (disk: SimulatedDisk) =>
  walk(loadNewestSteps(disk, DATA, wanted, (reader) => settled(loadWords(disk, reader))))
const names = (disk: SimulatedDisk) => findSnapshots(disk, DATA).map(({ path, state }) => `${path} ${state}`)
const chunkNames = (disk: SimulatedDisk) => disk.list(`${DATA}/snapshots/chunks`)

let disk: SimulatedDisk
beforeEach(() => {
  disk = createDataDir()
})

test('an empty directory has no snapshot', async () => {
  expect(findSnapshots(disk, DATA)).toEqual([])
  expect(await load(disk)).toEqual({ loaded: undefined, refused: [] })
  expect(retainSnapshots(disk, DATA)).toEqual([])
})

test('a written snapshot is found and loads, with names, properties, sessions and settings', async () => {
  const written = write(disk, 7)

  const { loaded, refused } = await load(disk)

  expect(refused).toEqual([])
  expect(loaded?.value).toBe(7)
  const reader = loaded?.reader as SnapshotReader
  expect(reader.path).toBe(written?.path)
  expect(reader.names).toEqual(source.names)
  expect(reader.properties).toEqual(source.properties)
  expect(reader.tables).toEqual(source.tables)
  expect(reader.sessions).toEqual(source.sessions)
  expect(reader.settings).toEqual(source.settings)
  expect(reader.manifest).toMatchObject({ index: 7, term: 1, packages: 12, properties: 3, sessions: 2 })
  expect(reader.manifest.segments).toEqual([{ name: 'segment-0000', properties: 3, packages: 12 }])
})

test('equal states give equal bytes, also in another process and as a file', () => {
  const env = envOf(disk)
  const first = writeSeedFileAtOnce(env, `${DATA}/a`, stateAt(7), { encoder })
  const other = createTestSource({ segments: 1, roomTypes: 2, propertiesPerSegment: 3, nights: 2, values: 'constant' })
  other.planes.u32[other.planes.planeMap.words[0] / 4 + 1] = ~7
  const otherEncoder = inlineEncoder(other, other.planes.scratch[0])
  writeSeedFileAtOnce(env, `${DATA}/b`, { ...other, index: 7 }, { encoder: otherEncoder })
  const asFolder = write(disk, 7)

  expect(contentOf(disk, `${DATA}/b`)).toEqual(contentOf(disk, `${DATA}/a`))
  expect(asFolder?.manifest.contentDigest).toEqual(first?.manifest.contentDigest)
  expect(asFolder?.manifest.manifestDigest).toEqual(first?.manifest.manifestDigest)
})

test('the newest comes first, and a seed file among the others by its index', async () => {
  writeSeedFileAtOnce(envOf(disk), `${DATA}/seed.snapshot`, stateAt(1), { encoder })
  write(disk, 90)
  write(disk, 100)

  expect(names(disk)).toEqual([
    '/data/snapshots/snap-100-1 readable',
    '/data/snapshots/snap-90-1 readable',
    '/data/seed.snapshot readable',
  ])
  expect((await load(disk)).loaded?.value).toBe(100)
})

test('a damaged newest snapshot falls back to the previous one, with the reason', async () => {
  write(disk, 5)
  const newest = write(disk, 9)
  const head = findSnapshots(disk, DATA)[0]
  const words = head?.state === 'readable' ? placeChunks(head.head).find(({ kind }) => kind === 'words') : undefined
  damage(disk, words?.file as string, 70, Uint8Array.of(1, 2, 3))

  const { loaded, refused } = await load(disk)

  expect(loaded?.value).toBe(5)
  expect(refused).toMatchObject([
    { path: newest?.path, error: { code: 'corrupt_data', fields: { file: words?.file } } },
  ])
})

test('a snapshot of another shard or codec list is refused, not skipped', async () => {
  write(disk, 5)
  const loadAs = (changes: object) => walk(loadNewestSteps(disk, DATA, { ...wanted, ...changes }, () => settled(0)))

  await expect(loadAs({ shardId: 's2' })).rejects.toMatchObject({ code: 'wrong_shard' })
  await expect(loadAs({ codecsOrderedHash: 'ff'.repeat(32) })).rejects.toMatchObject({ code: 'codecs_changed' })
  const found = findSnapshots(disk, DATA)[0]
  expect(found?.state === 'readable' && foreignness(found.head, wanted)).toBeUndefined()
})

test('unchanged chunks are not written again', () => {
  const first = write(disk, 5)
  const second = write(disk, 9, first?.previous)

  // Only the word with the index differs; properties, tables, sessions and settings are equal.
  expect(first?.newChunkBytes).toBe(first?.chunkBytes)
  expect(second?.newChunkBytes).toBeLessThan((second?.chunkBytes ?? 0) / 2)
  expect(chunkNames(disk).length).toBe(6)
})

test('tables unchanged since the previous snapshot are not encoded', () => {
  const first = write(disk, 5)
  let requested = 0
  const words: TestSource['words'] = (...place) => {
    requested++
    return source.words(...place)
  }
  const counting = inlineEncoder({ ...source, words }, source.planes.scratch[0])
  const options = { encoder: counting, origin: 'test', ...(first ? { previous: first.previous } : {}) }

  const unchanged = { ...source, index: 6, unchangedSince: (_: number, index: number) => index === 5 }
  const second = writeSnapshotDirAtOnce(envOf(disk), DATA, unchanged, options)
  expect(requested).toBe(0)
  expect(second?.manifest.contentDigest).toEqual(first?.manifest.contentDigest)
  expect(second?.newChunkBytes).toBe(0)

  writeSnapshotDirAtOnce(envOf(disk), DATA, { ...unchanged, unchangedSince: () => false }, options)
  expect(requested).toBe(2)
})

test('a rotten chunk is rewritten by the next process, not reused', async () => {
  write(disk, 5)
  const [name] = chunkNames(disk)
  damage(disk, `${DATA}/snapshots/chunks/${name}`, 20, Uint8Array.of(99, 99))

  write(disk, 9)

  expect((await load(disk)).loaded?.value).toBe(9)
  expect((await load(disk)).refused).toEqual([])
})

test('an aborted source leaves no snapshot and no chunk', () => {
  write(disk, 5)
  const before = chunkNames(disk)
  const failing = inlineEncoder({ ...source, words: () => false }, source.planes.scratch[0])
  const changed = { ...stateAt(9), sessions: Uint8Array.of(1) }

  expect(writeSnapshotDirAtOnce(envOf(disk), DATA, changed, { encoder: failing, origin: 'test' })).toBeUndefined()
  expect(writeSeedFileAtOnce(envOf(disk), `${DATA}/x`, changed, { encoder: failing })).toBeUndefined()

  expect(chunkNames(disk)).toEqual(before)
  expect(names(disk)).toEqual(['/data/snapshots/snap-5-1 readable'])
  expect(disk.list(DATA)).toEqual(['snapshots'])
})

test('a full disk leaves no snapshot and no chunk, and the next attempt succeeds', async () => {
  write(disk, 5)
  const before = chunkNames(disk)
  const { freeBytes, totalBytes } = disk.space(DATA)
  const sessions = new Uint8Array(5000).map((_, i) => i * i)

  for (let room = 0; room < 12; room++) {
    disk.capacityBytes = totalBytes - freeBytes + room * 1024
    let error: unknown
    try {
      write(disk, 9, undefined, { sessions })
    } catch (thrown) {
      error = thrown
    }
    if (error === undefined) break
    expect(isDiskFull(error)).toBe(true)
    expect(chunkNames(disk)).toEqual(before)
    expect((await load(disk)).loaded?.value).toBe(5)
  }

  expect((await load(disk)).loaded?.value).toBe(9)
})

test('a state whose digest does not match the store is not written', () => {
  const wrong = { digest: { lo: 1, hi: 2 } }

  expect(() => write(disk, 5, undefined, wrong)).toThrow(expect.objectContaining({ code: 'digest_mismatch' }))
  expect(findSnapshots(disk, DATA)).toEqual([])
})

test('two snapshots are kept, with their chunks and nothing else', async () => {
  for (const index of [5, 9, 12, 15]) write(disk, index)

  expect(retainSnapshots(disk, DATA)).toEqual(['/data/snapshots/snap-5-1', '/data/snapshots/snap-9-1'])

  expect(names(disk)).toEqual(['/data/snapshots/snap-15-1 readable', '/data/snapshots/snap-12-1 readable'])
  // Properties, tables, sessions, settings, and the words of each.
  expect(chunkNames(disk).length).toBe(6)
  expect((await load(disk)).loaded?.value).toBe(15)
  expect(retainSnapshots(disk, DATA)).toEqual([])
})

test('a damaged snapshot does not count as one of the two', () => {
  for (const index of [5, 9, 12]) write(disk, index)
  damage(disk, '/data/snapshots/snap-12-1/MANIFEST', 40, Uint8Array.of(1, 2, 3))

  expect(retainSnapshots(disk, DATA)).toEqual([])
  expect(names(disk)[0]).toBe('/data/snapshots/snap-12-1 refused')
})

test('remains of a snapshot after a crash are removed by the next clean-up', () => {
  write(disk, 5)
  disk.makeDirectory(`${DATA}/snapshots/snap-9-1`)
  disk.close(disk.open(`${DATA}/snapshots/snap-9-1/MANIFEST.tmp`, 'create'))
  disk.close(disk.open(`${DATA}/snapshots/chunks/${'ab'.repeat(32)}.chk.tmp`, 'create'))

  expect(names(disk)).toEqual(['/data/snapshots/snap-5-1 readable'])
  expect(retainSnapshots(disk, DATA)).toEqual(['/data/snapshots/snap-9-1'])
  expect(chunkNames(disk).length).toBe(5)
})

test('no chunk is removed while a manifest is unreadable, because it may refer to it', () => {
  write(disk, 5)
  write(disk, 9)
  damage(disk, '/data/snapshots/snap-5-1/MANIFEST', 40, Uint8Array.of(1, 2, 3))

  expect(collectChunks(disk, DATA)).toBe(0)
  expect(chunkNames(disk).length).toBe(6)
})

test('scrubbing verifies every chunk once and finds the damaged one', () => {
  writeSeedFileAtOnce(envOf(disk), `${DATA}/seed.snapshot`, stateAt(1), { encoder })
  write(disk, 5)
  write(disk, 9)
  const walk = () => {
    const steps = []
    for (let after = ''; ; ) {
      const step = scrubStep(disk, DATA, after)
      if (step.state === 'done') return steps
      steps.push(step)
      after = step.after
    }
  }
  expect(walk().map(({ state }) => state)).toEqual(new Array(6 + 5).fill('whole'))
  expect(walk().every(({ waitMs }) => waitMs >= 1)).toBe(true)

  const old = findSnapshots(disk, DATA)[1]
  const words = old?.state === 'readable' ? placeChunks(old.head).find(({ kind }) => kind === 'words') : undefined
  damage(disk, words?.file as string, 0, Uint8Array.of(0))
  disk.unlink(`${DATA}/snapshots/chunks/${chunkNames(disk).find((name) => !words?.file.endsWith(name))}`)

  const damaged = walk().filter((step) => step.state === 'damaged')
  expect(damaged.length).toBe(2)
  const ofOld = damaged.find(({ error }) => error.fields['file'] === words?.file)
  expect(ofOld).toMatchObject({ snapshots: [old?.path], isNewest: false })
})

test('a rate limit slows the writing down', async () => {
  const simulation = createSimulation({ disk })
  let written: Awaited<ReturnType<typeof writeSnapshotDir>>
  const writing = writeSnapshotDir(simulation.env, DATA, stateAt(5), { encoder, origin: 'test', bytesPerSecond: 1000 })
  const done = writing.then((result) => {
    written = result
  })

  for (let step = 0; written === undefined && step < 100_000; step++) {
    await Promise.resolve()
    simulation.advance(1)
  }
  await done

  // All bytes at 1000 per second; the note has the duration.
  expect(written?.note.durationMs).toBeGreaterThanOrEqual(written?.newChunkBytes ?? 0)
  expect((await load(disk)).loaded?.value).toBe(5)
})

// Storage tests (docs/design/testing.md#storage-tests)

test('every bit of a seed file that is flipped, and every length it is cut to, is detected', () => {
  writeSeedFileAtOnce(envOf(disk), `${DATA}/seed.snapshot`, stateAt(1), { encoder })
  const whole = contentOf(disk, `${DATA}/seed.snapshot`)
  const look = (bytes: Uint8Array, what: string) => {
    const other = createDataDir()
    const file = other.open(`${DATA}/seed.snapshot`, 'create')
    other.write(file, bytes, 0, bytes.length, 0)
    let error: unknown
    try {
      loadWords(other, openSeedFile(other, `${DATA}/seed.snapshot`))
    } catch (thrown) {
      error = thrown
    }
    expect(error, what).toMatchObject({ code: 'corrupt_data', fields: { file: `${DATA}/seed.snapshot` } })
    const offset = (error as { fields: { offset: number } }).fields.offset
    expect(offset >= 0 && offset <= bytes.length, what).toBe(true)
  }

  expect(loadWords(disk, openSeedFile(disk, `${DATA}/seed.snapshot`))).toBe(1)
  const stride = Math.round(5 / tries(5))
  for (let bit = 0; bit < whole.length * 8; bit += stride) {
    const flipped = whole.slice()
    flipped[bit >>> 3] = flipped[bit >>> 3] ^ (1 << (bit & 7))
    look(flipped, `bit ${bit} flipped`)
  }
  for (let length = 0; length < whole.length; length += stride) look(whole.slice(0, length), `cut to ${length} bytes`)
  const longer = new Uint8Array(whole.length + 1)
  longer.set(whole)
  look(longer, 'one byte more')
})

type Ledger = { begun: number; done: number }

/** Publishes three snapshots, each followed by the clean-up its mark in the log would allow. */
const publishing: Scenario<Ledger> = {
  name: 'publishing snapshots',
  createLedger: () => ({ begun: 0, done: 0 }),
  copyLedger: (ledger) => ({ ...ledger }),
  checkRun: () => undefined,
  run(on, ledger) {
    on.makeDirectory(DATA)
    on.syncDirectory('/')
    let previous: PreviousSnapshot | undefined
    for (const index of [5, 9, 12]) previous = publish(on, ledger, index, previous)
  },
  check(on, ledger, continues) {
    if (on.stat(DATA) === undefined) {
      expect(ledger.done).toBe(0)
      return
    }
    const found = findSnapshots(on, DATA)
    for (const snapshot of found) {
      expect(snapshot.state).toBe('readable')
      if (snapshot.state === 'readable') verifySnapshot(on, snapshot.head)
    }
    const newest = found[0]
    expect([ledger.done, ledger.begun]).toContain(newest?.index ?? 0)
    if (newest?.state === 'readable') {
      makeDurable(on, DATA, newest.head)
      expect(loadWords(on, openSnapshot(on, newest.head))).toBe(newest.index)
      ledger.done = newest.index
    }
    if (!continues) return
    try {
      publish(on, ledger, Math.max(ledger.begun, ledger.done) + 1)
    } catch (error) {
      if (!isDiskFull(error)) throw error
      ledger.begun = ledger.done
    }
  },
}

function publish(on: SimulatedDisk, ledger: Ledger, index: number, previous?: PreviousSnapshot) {
  ledger.begun = index
  const written = write(on, index, previous)
  ledger.done = index
  retainSnapshots(on, DATA)
  return written?.previous
}

test('publishing is atomic and durable under any fault at any operation', () => {
  const violation = crashEverywhere(publishing, {
    random: createRandom(1),
    samples: 4,
    every: Math.round(15 / tries(5)),
  })

  expect(violation).toBeUndefined()
})

test('a failed operation preserves every existing snapshot', () => {
  for (const code of ['EIO', 'ENOSPC']) {
    const violation = failEverywhere(
      publishing,
      { random: createRandom(2), samples: 1 },
      ({ call, number }) =>
        call === 'close' || number % Math.round(15 / tries(5)) !== 0 ? undefined : { kind: 'fail', code },
      (operation, thrown) => {
        expect(thrown, `${code} at ${operation.call} ${operation.path}`).toBeDefined()
      },
    )

    expect(violation).toBeUndefined()
  }
})

test('removing any sync is detected', () => {
  const sites = syncSites(publishing)
  expect(sites.size).toBeGreaterThanOrEqual(5)
  for (const [site, from] of sites) {
    const options = { random: createRandom(3), samples: 3, watcher: withoutSync(site), from }

    expect(crashEverywhere(publishing, options), `removing this sync is not detected:  ${site}`).toBeDefined()
  }
})

/** Writes a seed file over an older one. */
const seeding: Scenario<Ledger> = {
  ...publishing,
  name: 'writing a seed file',
  run(on, ledger) {
    on.makeDirectory(DATA)
    on.syncDirectory('/')
    for (const index of [5, 9]) seed(on, ledger, index)
  },
  check(on, ledger) {
    const path = `${DATA}/seed.snapshot`
    if (on.stat(path) === undefined) expect(ledger.done).toBe(0)
    else {
      makeDurable(on, DATA, readSeedFile(on, path))
      const index = loadWords(on, openSeedFile(on, path))
      expect([ledger.done, ledger.begun]).toContain(index)
      ledger.done = index
    }
    ledger.begun = ledger.done
  },
}

function seed(on: SimulatedDisk, ledger: Ledger, index: number): void {
  ledger.begun = index
  writeSeedFileAtOnce(envOf(on), `${DATA}/seed.snapshot`, stateAt(index), { encoder })
  ledger.done = index
}

test('a seed file is complete or absent, and every sync of it is needed', () => {
  expect(crashEverywhere(seeding, { random: createRandom(4), samples: 10 })).toBeUndefined()
  for (const [site, from] of syncSites(seeding)) {
    const options = { random: createRandom(5), samples: 10, watcher: withoutSync(site), from }

    expect(crashEverywhere(seeding, options), `removing this sync is not detected:  ${site}`).toBeDefined()
  }
})
