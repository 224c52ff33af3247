/**
 * How large is a snapshot, how fast is it written and loaded, and what does it cost the writer beside it?
 * (docs/design/storage.md#snapshot-format, targets 12 and 13)
 *
 * Data: 4 room types of each property over 366 nights; once with nights that are equal, once with availability and
 * price random for each night. Default 6 million packages, `--full` 60 million. Baselines in the same run: a copy
 * of the same words, and zstd alone over them. The loaded state is compared with the written one before a time is
 * printed.
 *
 * The threads that encode are workers of this file; in a build they are those of the import.
 *
 * Times in the JSON are medians of the rounds.
 *
 *   node engine/src/snapshot/snapshot.bench.ts [--full] [--dir DIR] [--threads N] [--json]
 */

import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { constants, zstdCompressSync } from 'node:zlib'
import { assert } from '@vacancy/shared'
import { createEnv, realDisk } from '../env.ts'
import { measurePause, type Percentiles } from '../testing/snapshot-pause.ts'
import { createTestSource, layPlanes, type TestSource, wordsOf } from '../testing/snapshot-source.ts'
import { openSeedFile, type SnapshotReader } from './load.ts'
import { firstPlanes, type PackedTables, packTables, unpackTables } from './schema.ts'
import { createWordsCoder, type EncodedPart, encodeWords, planWords, type WordsPart } from './words.ts'
import { closeWordsPool, createWordsPool, decodeAll, type WordsPool } from './words-pool.ts'
import { type WordsEncoder, writeSeedFile, writeSnapshotDir } from './write.ts'

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
    json: { type: 'boolean', default: false },
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
  if (values.json) process.stdout.write(`${JSON.stringify(figures)}\n`)
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
  const words = wordsOf(source.planes, source.tables)
  const bytes = words.reduce((sum, plane) => sum + plane.byteLength, 0)
  const packages = bytes / 8
  print(
    `${shape} nights: ${packages.toLocaleString('en')} packages of ${source.properties.count} properties, ` +
      `${threads} threads`,
  )
  const pool = createWordsPool(threads)
  const { encoder, stop } = startEncoders(source)
  try {
    const path = join(folder, `${shape}.snapshot`)
    const rounds: Round[] = []
    for (let round = 1; round <= ROUNDS; round++)
      rounds.push(await writeAndLoad(pool, encoder, source, path, packages, bytes, round))
    figures['packages'] = packages
    figures[`write, ${shape} nights`] = median(rounds.map(({ writeMs }) => writeMs)) / 1000
    figures[`load, ${shape} nights`] = median(rounds.map(({ loadMs }) => loadMs)) / 1000
    await writeFolders(encoder, source, shape, bytes)
  } finally {
    await closeWordsPool(pool)
    await stop()
  }
  baselines(words, bytes)
}

type Round = { readonly writeMs: number; readonly loadMs: number }

async function writeAndLoad(
  pool: WordsPool,
  encoder: WordsEncoder,
  source: TestSource,
  path: string,
  packages: number,
  bytes: number,
  round: number,
): Promise<Round> {
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
  const size = `${(written.bytes / 1e6).toFixed(2)} MB (${(written.bytes / packages).toFixed(3)} B a package)`
  print(
    `  round ${round}: ${size} · write ${seconds(writeMs)} (${rate(bytes, writeMs)}) · ` +
      `load ${seconds(openMs + decodeMs)} (${rate(bytes, openMs + decodeMs)}), of it names and shapes ${seconds(openMs)}`,
  )
  return { writeMs, loadMs: openMs + decodeMs }
}

async function pause(): Promise<void> {
  const dataDir = join(folder, 'pause')
  env.disk.makeDirectory(dataDir)
  const { packages, snapshots, startMs, epochMs, alone, ...others } = await measurePause(packagesWanted, dataDir)
  const { beside, copying, copyingShare, firstSnapshot, delayedSnapshots, longestDelayMs } = others
  figures['start of a snapshot'] = startMs
  figures['start of a snapshot, the epoch alone'] = epochMs
  const added = (name: string, { p99, p999 }: Percentiles) => {
    figures[`added to a ${name}, p99`] = p99 - alone.p99
    figures[`added to a ${name}, p99.9`] = p999 - alone.p999
  }
  added('write', beside)
  added('first write to a page', copying)
  added('write beside the first snapshot', firstSnapshot)
  figures['longest delay for spare pages'] = longestDelayMs
  const micros = (name: string, { p99, p999 }: Percentiles) =>
    print(`  ${name.padEnd(32)} p99 ${p99.toFixed(1).padStart(7)} µs · p99.9 ${p999.toFixed(1).padStart(7)} µs`)
  print(
    `writes beside ${snapshots} snapshots of ${packages.toLocaleString('en')} packages, ` +
      `${(copyingShare * 100).toFixed(0)} % the first to their page; start ${startMs.toFixed(3)} ms, of it the epoch ${epochMs.toFixed(4)} ms`,
  )
  micros('alone', alone)
  micros('beside a snapshot', beside)
  micros('the first to their page', copying)
  micros('beside the first snapshot', firstSnapshot)
  print(
    `  writes waited for spare pages beside ${delayedSnapshots} of ${snapshots} snapshots, at most ${longestDelayMs.toFixed(1)} ms`,
  )
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

/** As a running node does it: every chunk a file of its own, synced; then once more with nothing changed. */
async function writeFolders(encoder: WordsEncoder, source: TestSource, shape: string, bytes: number): Promise<void> {
  const dataDir = join(folder, `data-${shape}`)
  env.disk.makeDirectory(dataDir)
  const begun = performance.now()
  const first = await writeSnapshotDir(env, dataDir, source, { encoder, origin: 'bench' })
  const firstMs = performance.now() - begun
  assert(first, 'the source does not give up')
  const again = { ...source, index: 2, unchangedSince: () => true }
  const { previous } = first
  const begunAgain = performance.now()
  const second = await writeSnapshotDir(env, dataDir, again, { encoder, origin: 'bench', previous })
  const secondMs = performance.now() - begunAgain
  assert(second?.newChunkBytes === 0, 'an unchanged state writes no chunk')
  print(`  as a folder: ${seconds(firstMs)} (${rate(bytes, firstMs)}), unchanged once more ${seconds(secondMs)}`)
}

function baselines(words: readonly Uint32Array[], bytes: number): void {
  const copying = performance.now()
  let cells = 0
  for (const plane of words) cells += plane.slice().length
  const copyMs = performance.now() - copying
  assert(cells * 4 === bytes, 'all of it was copied')
  // A part of the planes is enough to know a rate.
  const sample = words.slice(0, Math.min(words.length, 200))
  let raw = 0
  let packed = 0
  const packing = performance.now()
  for (const plane of sample) {
    raw += plane.byteLength
    packed += zstdCompressSync(plane, { params: { [constants.ZSTD_c_compressionLevel]: 1 } }).length
  }
  const packMs = performance.now() - packing
  print(
    `  baselines, one thread: copy ${rate(bytes, copyMs)} · zstd alone ${rate(raw, packMs)}, ` +
      `${((packed / raw) * 8).toFixed(2)} B a package`,
  )
}

function median(samples: readonly number[]): number {
  return samples.toSorted((a, b) => a - b)[samples.length >>> 1] ?? 0
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`
}

function rate(bytes: number, ms: number): string {
  return `${(bytes / ms / 1e6).toFixed(2)} GB/s`
}

function print(line: string): void {
  if (!values.json) process.stdout.write(`${line}\n`)
}
