/** The chunks that writing adds, the parts that it reuses, and what a caller learns on the way. */

import { beforeEach, expect, test } from 'vitest'
import { createSimulatedDisk, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createTestSource, type TestSource } from '../testing/snapshot-source.ts'
import { chunkBytesOf, chunkFileName } from './format.ts'
import {
  chunksFolder,
  inlineEncoder,
  makeFolder,
  type PreviousSnapshot,
  putChunk,
  snapshotsFolder,
  type WordsEncoder,
  writeSeedFile,
  writeSeedFileAtOnce,
  writeSnapshotDirAtOnce,
} from './write.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const source: TestSource = {
  ...createTestSource({ seed: SEED, segments: 2, roomTypes: 1, propertiesPerSegment: 3, nights: 2 }),
  replicated: Uint8Array.of(5, 6, 7),
}
const encoder = inlineEncoder(source, source.planes.scratch[0] as number)

let disk: SimulatedDisk
beforeEach(() => {
  disk = createSimulatedDisk()
  disk.makeDirectory('/data')
})

function write(from: TestSource, options: { previous?: PreviousSnapshot; encoder?: WordsEncoder } = {}) {
  const { env } = createSimulation({ disk })
  return writeSnapshotDirAtOnce(env, '/data', from, { encoder, origin: 'test', ...options })
}

test('a snapshot has its blocks in order, its counts and its place', () => {
  const written = write({ ...source, index: 9, term: 4 })

  expect(written?.path).toBe('/data/snapshots/snap-9-4')
  const manifest = written?.manifest
  expect(manifest?.blocks.map(({ kind }) => kind)).toEqual([
    ...['properties', 'tables', 'words', 'sessions', 'settings', 'replicated'],
  ])
  expect(manifest).toMatchObject({ index: 9, term: 4, shardId: 's1', properties: 6, packages: 12, sessions: 2 })
  expect(manifest).toMatchObject({ codecs: source.codecs.names, lastMaintenanceDay: source.lastMaintenanceDay })
  expect(manifest?.segments).toEqual([
    { name: 'segment-0000', properties: 3, packages: 6 },
    { name: 'segment-0001', properties: 3, packages: 6 },
  ])
  expect(written?.note).toMatchObject({ origin: 'test', durationMs: 0, createdAtMs: Date.UTC(2026, 0, 15, 12) })
  const parts = manifest?.blocks.flatMap((block) => block.parts) ?? []
  const files = parts.map(({ digest }) => chunkFileName(digest))
  expect(disk.list(chunksFolder('/data')).sort()).toEqual([...files].sort())
  expect([...(written?.previous.chunks ?? [])].sort()).toEqual([...files].sort())
  expect(written?.chunkBytes).toBe(parts.reduce((sum, { bytes }) => sum + bytes, 0))
  expect(written?.newChunkBytes).toBe(written?.chunkBytes)
  expect(disk.openFiles()).toBe(0)
})

test('the digest of the state is that without packages plus those of its parts', () => {
  const { digest, blocks } = write(source)?.manifest ?? {}
  const words = blocks?.find(({ kind }) => kind === 'words')?.parts ?? []
  const sum = (half: 'lo' | 'hi') =>
    words.reduce((all, { packageDigest }) => (all + packageDigest[half]) >>> 0, source.digestWithoutPackages[half])

  expect(digest).toEqual({ lo: sum('lo'), hi: sum('hi') })
  const { lo, hi } = digest ?? { lo: 0, hi: 0 }
  expect(write({ ...source, digest: { lo, hi } })).toBeDefined()
  for (const wrong of [
    { lo: lo ^ 1, hi },
    { lo, hi: hi ^ 1 },
  ]) {
    expect(() => write({ ...source, digest: wrong })).toThrow(expect.objectContaining({ code: 'digest_mismatch' }))
  }
})

test('a segment without properties is not listed', () => {
  const { names } = source
  const written = write({ ...source, names: { ...names, segments: [...names.segments, 'unused'] } })

  expect(written?.manifest.segments.map(({ name }) => name)).toEqual(['segment-0000', 'segment-0001'])
})

test('only what is new is written, and only changed tables are encoded again', () => {
  const first = write(source)
  const encodings: number[] = []
  let encoded = 0
  const counting: WordsEncoder = {
    ahead: 1,
    encode: (part) => {
      encoded++
      return encoder.encode(part)
    },
  }
  const next = (isUnchanged: boolean): TestSource => ({
    ...source,
    index: 2,
    settings: Uint8Array.of(9),
    unchangedSince: (_table, index) => {
      encodings.push(index)
      return isUnchanged
    },
  })
  const options = { encoder: counting, ...(first && { previous: first.previous }) }

  const same = write(next(true), options)
  expect([encoded, encodings]).toEqual([0, [1, 1]])
  expect(same?.manifest.packages).toBe(12)
  const settings = same?.manifest.blocks.find(({ kind }) => kind === 'settings')?.parts[0]
  expect(same?.newChunkBytes).toBe(settings?.bytes)
  expect(same?.manifest.segments).toEqual(first?.manifest.segments)
  write(next(false), options)
  expect(encoded).toBe(1)
  write({ ...next(true), names: { ...source.names, roomTypes: ['another'] } }, options)
  expect(encoded).toBe(2)
})

test('an aborted source removes the chunks it added, not those of others', () => {
  write(source)
  const before = disk.list(chunksFolder('/data'))
  const aborted: WordsEncoder = { ahead: 1, encode: () => undefined }

  expect(
    write(
      { ...source, index: 2, lastMaintenanceDay: 1, names: { ...source.names, areas: [...source.names.areas, 'z'] } },
      { encoder: aborted },
    ),
  ).toBeUndefined()
  expect(disk.list(chunksFolder('/data')).sort()).toEqual(before.sort())
  expect(disk.list(snapshotsFolder('/data')).sort()).toEqual(['chunks', 'snap-1-1'])
})

test('a file reports each chunk, and its bytes are those of head, chunks and end', () => {
  const { env } = createSimulation({ disk })
  const progress: { parts: number; of: number; chunkBytes: number }[] = []

  const written = writeSeedFileAtOnce(env, '/data/a', source, { encoder, onProgress: (done) => progress.push(done) })

  expect(progress.map(({ parts, of }) => [parts, of])).toEqual([1, 2, 3, 4, 5, 6].map((n) => [n, 6]))
  expect(written?.bytes).toBe(disk.stat('/data/a')?.bytes)
  expect(written && chunkBytesOf(written.manifest)).toBe(progress.at(-1)?.chunkBytes)
})

test('an encoder of promises gives the same file, and a failing or aborted one none', async () => {
  const { env } = createSimulation({ disk })
  const first = writeSeedFileAtOnce(env, '/data/a', source, { encoder })
  const later: WordsEncoder = { ahead: 3, encode: async (part) => encoder.encode(part) }
  const second = await writeSeedFile(env, '/data/b', source, { encoder: later })
  expect(second?.manifest.manifestDigest).toEqual(first?.manifest.manifestDigest)

  const failing: WordsEncoder = { ahead: 2, encode: () => Promise.reject(new Error('broken')) }
  await expect(writeSeedFile(env, '/data/c', source, { encoder: failing })).rejects.toThrow('broken')
  const aborted: WordsEncoder = { ahead: 1, encode: async () => undefined }
  expect(await writeSeedFile(env, '/data/c', source, { encoder: aborted })).toBeUndefined()
  expect(disk.list('/data').sort()).toEqual(['a', 'b'])
})

test('a folder is made once, and a chunk replaces the remains of an earlier attempt', () => {
  makeFolder(disk, '/data/x')
  makeFolder(disk, '/data/x')
  putChunk(disk, '/data/x/1.chk.tmp', Uint8Array.of(9, 9, 9))
  putChunk(disk, '/data/x/1.chk', Uint8Array.of(1, 2))

  expect(disk.list('/data/x')).toEqual(['1.chk'])
  expect(disk.stat('/data/x/1.chk')?.bytes).toBe(2)
  disk.fault = ({ call }) => (call === 'write' ? { kind: 'fail', code: 'ENOSPC' } : undefined)
  expect(() => putChunk(disk, '/data/x/2.chk', Uint8Array.of(1))).toThrow(expect.objectContaining({ code: 'ENOSPC' }))
  expect(disk.list('/data/x')).toEqual(['1.chk'])
  expect(disk.openFiles()).toBe(0)
})
