import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createEnv, realDisk } from '../env.ts'
import { settled, walk } from '../steps.ts'
import { createTestSource, layPlanes, type TestSource, wordsOf } from '../testing/snapshot-source.ts'
import type { SnapshotReader } from './load.ts'
import { openSeedFile, placeChunks } from './load.ts'
import { loadNewestSteps } from './snapshot.ts'
import { closeWordsPool, createWordsPool, decodeAll, type WordsPool } from './words-pool.ts'
import { inlineEncoder, writeSeedFile, writeSnapshotDir } from './write.ts'

const quiet = () => undefined
const env = createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet })
const folder = mkdtempSync(join(tmpdir(), 'vacancy-words-pool-'))
const THREADS = 2
// Large enough for a table in several parts, beside many small ones in one.
const large = createTestSource({ segments: 1, roomTypes: 1, propertiesPerSegment: 4000, nights: 366, threads: THREADS })
const small = createTestSource({
  segments: 30,
  roomTypes: 6,
  propertiesPerSegment: 9,
  nights: 5,
  absent: 20,
  dead: 10,
  threads: THREADS,
})

let pools: WordsPool[] = []
const startPool = () => {
  const pool = createWordsPool(THREADS)
  pools.push(pool)
  return pool
}

beforeAll(() => mkdirSync(join(folder, 'data')))
afterEach(async () => {
  await Promise.all(pools.map(closeWordsPool))
  pools = []
})
afterAll(() => rmSync(folder, { recursive: true }))

const encoderOf = (source: TestSource) => inlineEncoder(source, source.planes.scratch[0])

for (const [name, source] of Object.entries({ large, small })) {
  test(`several threads decode the written words: ${name} tables`, async () => {
    const pool = startPool()
    const path = join(folder, name)
    await writeSeedFile(env, path, source, { encoder: encoderOf(source) })
    const reader = openSeedFile(realDisk, path)
    const target = layPlanes(reader.tables, THREADS)

    await decodeAll(pool, reader, target.memory, target.planeMap, target.scratch)

    const found = wordsOf(target, reader.tables)
    const differences = wordsOf(source.planes, source.tables).filter((plane, i) => {
      return Buffer.compare(Buffer.from(plane.buffer), Buffer.from(found[i]?.buffer ?? new ArrayBuffer(0))) !== 0
    })
    expect(differences).toEqual([])
  })
}

test('a snapshot folder on a real disk is found and loads', async () => {
  const pool = startPool()
  const dataDir = join(folder, 'data')
  await writeSnapshotDir(env, dataDir, small, { encoder: encoderOf(small), origin: 'test' })
  const wanted = { shardId: 's1', codecsOrderedHash: small.codecs.orderedHash, codecsText: '' }

  const load = async (reader: SnapshotReader) => {
    const target = layPlanes(reader.tables, THREADS)
    await decodeAll(pool, reader, target.memory, target.planeMap, target.scratch)
    return wordsOf(target, reader.tables)
  }
  const { loaded, refused } = await walk(loadNewestSteps(realDisk, dataDir, wanted, (reader) => settled(load(reader))))

  expect(refused).toEqual([])
  expect(loaded?.value).toEqual(wordsOf(small.planes, small.tables))
})

test('damage found by a thread is reported with its error code', async () => {
  const pool = startPool()
  const path = join(folder, 'damaged')
  await writeSeedFile(env, path, large, { encoder: encoderOf(large) })
  const chunk = placeChunks(openSeedFile(realDisk, path)).filter(({ kind }) => kind === 'words')[2]
  const bytes = readFileSync(path)
  bytes[(chunk?.offset ?? 0) + 1000] = bytes[(chunk?.offset ?? 0) + 1000] ^ 1
  writeFileSync(path, bytes)

  const reader = openSeedFile(realDisk, path)
  const target = layPlanes(reader.tables, THREADS)
  await expect(decodeAll(pool, reader, target.memory, target.planeMap, target.scratch)).rejects.toMatchObject({
    code: 'corrupt_data',
    fields: { file: path, offset: chunk?.offset },
  })
})
