/**
 * How large is a snapshot, how fast is it written and loaded, and what does it cost the writer beside it?
 * (docs/design/storage.md#snapshot-format, targets 12 and 13)
 *
 * Data: 4 room types of each property over 366 nights; once with nights that are equal, once with availability and
 * price random for each night. Default 6 million packages, `--full` 60 million. The loaded state is compared with the
 * written one before a time is printed.
 *
 * The threads that encode are workers of this file; in a build they are those of the import.
 *
 * Times are medians of the rounds.
 *
 *   node engine/src/snapshot/snapshot.bench.ts [--full] [--dir DIR] [--threads N]
 */

import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { assert } from '@vacancy/shared'
import { createEnv, realDisk } from '../env.ts'
import { measurePause } from '../testing/snapshot-pause.ts'
import { createTestSource, layPlanes, type TestSource } from '../testing/snapshot-source.ts'
import { openSeedFile, type SnapshotReader } from './load.ts'
import { firstPlanes, type PackedTables, packTables, unpackTables } from './schema.ts'
import { createWordsCoder, type EncodedPart, encodeWords, planWords, type WordsPart } from './words.ts'
import { closeWordsPool, createWordsPool, decodeAll, type WordsPool } from './words-pool.ts'
import { type WordsEncoder, writeSeedFile } from './write.ts'

/** Input of an encoding thread. Part numbers follow, each with one reply. */
type EncodeJob = {
  readonly memory: WebAssembly.Memory
  readonly tables: PackedTables
  readonly ids: Uint8Array
  readonly roomTypes: readonly string[]
  readonly words: Uint32Array
  readonly codecsOrderedHash: string
  readonly scratch: number
}

const { values } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    dir: { type: 'string' },
    threads: { type: 'string', default: '2' },
    json: { type: 'boolean' },
  },
})
const ROUNDS = 3
const NIGHTS = 366
const ROOM_TYPES = 4
const packagesWanted = values.full ? 60e6 : 6e6
const threads = Number(values.threads)
const figures: Record<string, number> = {}
const quiet = () => undefined
const env = createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet })

let folder = ''
if (isMainThread) {
  folder = mkdtempSync(join(values.dir ?? tmpdir(), 'vacancy-snapshot-bench-'))
  try {
    for (const shape of ['constant', 'random'] as const) await measure(shape)
    await pause()
  } finally {
    rmSync(folder, { recursive: true })
  }
  process.stdout.write(`${JSON.stringify(figures)}\n`)
} else {
  encodeParts(workerData as EncodeJob)
}

function encodeParts({ memory, tables: packed, ids, roomTypes, words, codecsOrderedHash, scratch }: EncodeJob): void {
  const tables = unpackTables(packed)
  const parts = planWords(tables).flat()
  const first = firstPlanes(tables)
  const coder = createWordsCoder(memory, scratch, { tables, ids, roomTypes })
  const place = (table: number, rowStart: number, _rows: number, addresses: Uint32Array) => {
    const start = first[table]
    for (let night = 0; night < NIGHTS; night++) addresses[night] = words[start + night] + rowStart * 8
    return true
  }
  parentPort?.on('message', (part: number) => {
    const encoded = encodeWords(coder, parts[part] as WordsPart, codecsOrderedHash, place)
    assert(encoded, 'the source does not give up')
    parentPort?.postMessage(encoded, [encoded.chunk.bytes.buffer as ArrayBuffer])
  })
}

/** Encodes in workers; part n goes to worker n modulo their number, which answers in order. */
function startEncoders(source: TestSource): { encoder: WordsEncoder; stop: () => Promise<unknown> } {
  const { memory, properties, names, codecs, planes } = source
  const shared = {
    memory,
    tables: packTables(source.tables),
    ids: properties.ids,
    roomTypes: names.roomTypes,
    words: planes.planeMap.words,
    codecsOrderedHash: codecs.orderedHash,
  }
  const workers = planes.scratch.map((scratch) => {
    const workerData: EncodeJob = { ...shared, scratch }
    return {
      worker: new Worker(new URL(import.meta.url), { workerData }),
      waiting: [] as ((part: EncodedPart) => void)[],
    }
  })
  for (const { worker, waiting } of workers) worker.on('message', (encoded: EncodedPart) => waiting.shift()?.(encoded))
  const encode = (part: number) =>
    new Promise<EncodedPart>((resolve) => {
      const { worker, waiting } = workers[part % workers.length] as (typeof workers)[number]
      waiting.push(resolve)
      worker.postMessage(part)
    })
  return {
    encoder: { ahead: workers.length * 2, encode },
    stop: () => Promise.all(workers.map(({ worker }) => worker.terminate())),
  }
}

async function measure(shape: 'constant' | 'random'): Promise<void> {
  const segments = 10
  const propertiesPerSegment = Math.round(packagesWanted / NIGHTS / ROOM_TYPES / segments)
  const source = createTestSource({
    values: shape,
    segments,
    propertiesPerSegment,
    roomTypes: ROOM_TYPES,
    nights: NIGHTS,
    threads,
  })
  const pool = createWordsPool(threads)
  const { encoder, stop } = startEncoders(source)
  try {
    const path = join(folder, `${shape}.snapshot`)
    const rounds: Round[] = []
    for (let round = 0; round < ROUNDS; round++) rounds.push(await writeAndLoad(pool, encoder, source, path))
    figures['packages'] = source.properties.count * ROOM_TYPES * NIGHTS
    figures[`write, ${shape} nights`] = median(rounds.map(({ writeMs }) => writeMs)) / 1000
    figures[`load, ${shape} nights`] = median(rounds.map(({ loadMs }) => loadMs)) / 1000
  } finally {
    await closeWordsPool(pool)
    await stop()
  }
}

type Round = { readonly writeMs: number; readonly loadMs: number }

async function writeAndLoad(pool: WordsPool, encoder: WordsEncoder, source: TestSource, path: string): Promise<Round> {
  const writing = performance.now()
  const written = await writeSeedFile(env, path, source, { encoder })
  const writeMs = performance.now() - writing
  assert(written && written.bytes === statSync(path).size, 'the file is there')

  const loading = performance.now()
  const reader = openSeedFile(realDisk, path)
  const openMs = performance.now() - loading
  const target = layPlanes(reader.tables, threads)
  const decoding = performance.now()
  await decodeAll(pool, reader, target.memory, target.planeMap, target.scratch)
  const decodeMs = performance.now() - decoding
  compare(source, reader, target)
  return { writeMs, loadMs: openMs + decodeMs }
}

async function pause(): Promise<void> {
  const dataDir = join(folder, 'pause')
  env.disk.makeDirectory(dataDir)
  const { startMs, alone, beside, longestDelayMs } = await measurePause(packagesWanted, dataDir)
  figures['start of a snapshot'] = startMs
  figures['added to a write, p99'] = beside.p99 - alone.p99
  figures['added to a write, p99.9'] = beside.p999 - alone.p999
  figures['longest delay for spare pages'] = longestDelayMs
}

function compare(source: TestSource, reader: SnapshotReader, target: ReturnType<typeof layPlanes>): void {
  const first = firstPlanes(source.tables)
  source.tables.forEach(({ rows, days }, table) => {
    for (let night = 0; night < days.length; night++) {
      const plane = first[table] + night
      const from = source.planes.planeMap.words[plane] / 4
      const to = target.planeMap.words[plane] / 4
      const cells = rows.length * 2
      const a = Buffer.from(source.memory.buffer, from * 4, cells * 4)
      const b = Buffer.from(target.memory.buffer, to * 4, cells * 4)
      assert(a.equals(b), 'what was loaded is what was written')
    }
  })
  assert(reader.tables.length === source.tables.length, 'all tables came back')
}

function median(samples: readonly number[]): number {
  return samples.toSorted((a, b) => a - b)[samples.length >>> 1] ?? 0
}
