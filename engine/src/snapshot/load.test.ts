/** Snapshot files whose parts contradict each other although every checksum is right, and files that are cut or changed. */

import { crc32 } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import type { FileStat } from '../env.ts'
import { contentOf, createSimulatedDisk, cut, damage, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createTestSource, FIRST_DAY, type TestSource, wordsOf } from '../testing/snapshot-source.ts'
import { visitWords } from './content.ts'
import { type Block, chunkBytesOf, type Manifest, sha256 } from './format.ts'
import {
  openSeedFile,
  openSnapshot,
  placeChunks,
  readChunk,
  readSeedFile,
  readSnapshotDir,
  type SnapshotHead,
  scrubChunk,
} from './load.ts'
import { MANIFEST_FILE_BYTES_MAX } from './manifest-file.ts'
import { beginSeed, readSeedHead, SEED_HEADER_BYTES } from './seed.ts'
import { inlineEncoder, writeSeedFileAtOnce, writeSnapshotDirAtOnce } from './write.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const PATH = '/data/seed'
const source = createTestSource({
  seed: SEED,
  segments: 2,
  roomTypes: 2,
  propertiesPerSegment: 9,
  nights: 5,
  absent: 30,
})

function write(disk: SimulatedDisk, from: TestSource, path = PATH): void {
  const { env } = createSimulation({ disk })
  writeSeedFileAtOnce(env, path, from, { encoder: inlineEncoder(from, from.planes.scratch[0] as number) })
}

let disk: SimulatedDisk
beforeEach(() => {
  disk = createSimulatedDisk()
  disk.makeDirectory('/data')
  write(disk, source)
})

const withManifest = (changes: Partial<Manifest>): SnapshotHead => {
  const head = readSeedFile(disk, PATH)
  return { ...head, manifest: { ...head.manifest, ...changes } }
}
const changed = (change: (blocks: Block[]) => Block[]) =>
  withManifest({ blocks: change([...readSeedFile(disk, PATH).manifest.blocks]) })

test('a file opens with everything it was written with', () => {
  const reader = openSeedFile(disk, PATH)

  expect(reader).toMatchObject({ path: PATH, note: undefined, bytes: contentOf(disk, PATH).length })
  expect(reader.names).toEqual(source.names)
  expect(reader.properties).toEqual(source.properties)
  expect(reader.tables).toEqual(source.tables)
  expect([reader.sessions, reader.settings, reader.replicated]).toEqual([
    source.sessions,
    source.settings,
    new Uint8Array(0),
  ])
  expect([...reader.firstPlane]).toEqual([0, 5, 10, 15, 20])
  expect(reader.words.parts.length).toBe(reader.words.chunks.length)
  expect(disk.openFiles()).toBe(0)
})

test('its words are visited night by night, each row once', () => {
  const reader = openSeedFile(disk, PATH)
  const expected = wordsOf(source.planes, source.tables)
  const found = expected.map((words) => new Uint32Array(words.length))

  visitWords(disk, reader, ({ table, night, rowStart, rows }, u32, at) => {
    found[table * 5 + night]?.set(u32.subarray(at, at + rows * 2), rowStart * 2)
  })

  expect(found, `VACANCY_SEED=${SEED}`).toEqual(expected)
})

test('a snapshot without words is visited without a call', () => {
  const empty = createTestSource({ nights: 0 })
  write(disk, empty, '/data/empty')

  visitWords(disk, openSeedFile(disk, '/data/empty'), () => expect.unreachable())
})

test('chunks of a file follow each other, behind the manifest', () => {
  const head = readSeedFile(disk, PATH)
  const chunks = placeChunks(head)
  let offset = readSeedHead(disk, PATH).chunksStart
  for (const [number, chunk] of chunks.entries()) {
    expect(chunk).toMatchObject({ number, file: PATH, offset, codecsOrderedHash: source.codecs.orderedHash })
    offset += chunk.part.bytes
  }
  expect(chunks.map(({ kind }) => kind)).toEqual(['properties', 'tables', 'words', 'sessions', 'settings'])
  expect(offset + 48).toBe(head.bytes)
})

test('chunks of a folder are files of their own, from their beginning', () => {
  const { env } = createSimulation({ disk })
  const encoder = inlineEncoder(source, source.planes.scratch[0] as number)
  const written = writeSnapshotDirAtOnce(env, '/data', source, { encoder, origin: 'test' })

  const head = readSnapshotDir(disk, '/data/snapshots/snap-1-1', '/data/snapshots/chunks')

  expect(head).toMatchObject({
    bytes: chunkBytesOf(head.manifest),
    places: { form: 'folder' },
    note: { origin: 'test' },
  })
  expect(written?.chunkBytes).toBe(head.bytes)
  const chunks = placeChunks(head)
  expect(chunks.every(({ offset }) => offset === 0)).toBe(true)
  expect(new Set(chunks.map(({ file }) => file)).size).toBe(5)
  const first = chunks[0] as (typeof chunks)[0]
  expect(readChunk(disk, first, 'folder').length).toBe(first.part.bytes)
  scrubChunk(disk, head, first)
  const longer = { ...first, part: { ...first.part, bytes: first.part.bytes - 1 } }
  expect(() => readChunk(disk, longer, 'folder')).toThrow(/the chunk has \d+ bytes, expected/)
  damage(disk, first.file, 70, Uint8Array.of((contentOf(disk, first.file)[70] as number) ^ 1))
  expect(() => scrubChunk(disk, head, first)).toThrow()
  expect(() => readChunk(disk, { ...first, file: '/data/nothing' }, 'folder')).toThrow(/the chunk is missing/)
  expect(() => readChunk(disk, { ...first, file: '/data' }, 'folder')).toThrow(/the chunk is missing/)
  expect(() => readChunk(disk, { ...first, offset: 10 }, 'file')).toThrow(/the file ends too early/)
  expect(disk.openFiles()).toBe(0)
})

test('a missing or far too long manifest is damage', () => {
  const stat = (bytes: number): SimulatedDisk => ({ ...disk, stat: () => ({ bytes, isDirectory: false }) as FileStat })
  expect(() => readSnapshotDir(stat(MANIFEST_FILE_BYTES_MAX + 1), '/data', '/data')).toThrow(
    `a file of ${MANIFEST_FILE_BYTES_MAX + 1} bytes exceeds the limit`,
  )
  expect(() => readSnapshotDir(disk, '/data/none', '/data')).toThrow(/the file does not exist/)
  disk.makeDirectory('/data/none')
  disk.makeDirectory('/data/none/MANIFEST')
  expect(() => readSnapshotDir(disk, '/data/none', '/data')).toThrow(/the file does not exist/)
  expect(() => readSeedFile(disk, '/data/none')).toThrow(/the file does not exist/)
  expect(() => readSeedFile(disk, '/data/nothing')).toThrow(/the file does not exist/)
})

describe('a manifest that contradicts its chunks is damage', () => {
  const block = (blocks: Block[], kind: string) => blocks.find((each) => each.kind === kind) as Block

  test.each<[string, (blocks: Block[]) => Block[]]>([
    ['a block of tables is out of order', (all) => [all[1] as Block, all[0] as Block, ...all.slice(2)].reverse()],
    ['a block of properties is out of order', (all) => [all[0] as Block, ...all]],
    ['a block of settings is out of order', (all) => [...all, block(all, 'settings')]],
    [
      'a block of sessions has no parts',
      (all) => all.map((each) => (each.kind === 'sessions' ? { ...each, parts: [] } : each)),
    ],
    ['it has no properties', (all) => all.slice(1)],
    ['it has no tables', (all) => all.filter(({ kind }) => kind !== 'tables')],
  ])('%s', (reason, change) => {
    expect(() => openSnapshot(disk, changed(change))).toThrow(/out of order|no parts|it has no/)
    if (!reason.startsWith('a block of tables')) expect(() => openSnapshot(disk, changed(change))).toThrow(reason)
  })

  test('another number of blocks or parts of words than the tables need', () => {
    const twice = changed((all) => all.slice(0, 3).concat(block(all, 'words')))
    expect(() => openSnapshot(disk, twice)).toThrow('it has 2 blocks of words, its tables need 1')
    const { parts } = block([...readSeedFile(disk, PATH).manifest.blocks], 'words')
    const longer = changed((all) => [...all.slice(0, 2), { kind: 'words', parts: [...parts, ...parts] }])
    expect(() => openSnapshot(disk, longer)).toThrow('block 0 of its words has 2 parts')
  })

  test.each<[string, (manifest: Manifest) => Partial<Manifest>, RegExp]>([
    [
      'packages',
      ({ packages }) => ({ packages: packages + 1 }),
      /its parts hold \d+ packages, expected \d+ by its manifest/,
    ],
    ['properties', () => ({ properties: 17 }), /it holds 18 properties, not 17/],
    ['first day', () => ({ window: { from: FIRST_DAY + 1, to: FIRST_DAY + 4 } }), /its manifest has different days/],
    ['last day', () => ({ window: { from: FIRST_DAY, to: FIRST_DAY + 5 } }), /its manifest has different days/],
    ['no window', () => ({ window: undefined }), /its manifest has different days/],
    ['segments', ({ segments }) => ({ segments: segments.slice(1) }), /its manifest names different segments/],
    [
      'name of a segment',
      ({ segments }) => ({ segments: segments.map((each) => ({ ...each, name: 'x' })) }),
      /its manifest names different segments/,
    ],
    [
      'properties of a segment',
      ({ segments }) => ({ segments: segments.map((each) => ({ ...each, properties: 8 })) }),
      /segment segment-0000 has a different number of properties/,
    ],
  ])('another %s', (_, change, reason) => {
    const { manifest } = readSeedFile(disk, PATH)

    expect(() => openSnapshot(disk, withManifest(change(manifest)))).toThrow(reason)
  })
})

describe('the head of a file', () => {
  const bytesOf = () => contentOf(disk, PATH)
  /** Changes bytes of the header and makes its checksum right again. */
  function patch(at: number, ...bytes: number[]): void {
    const header = bytesOf().slice(0, SEED_HEADER_BYTES)
    header.set(bytes, at)
    new DataView(header.buffer).setUint32(24, crc32(header.subarray(0, 24)), true)
    damage(disk, PATH, 0, header)
  }

  test('it has magic, version, lengths and checksum', () => {
    const bytes = bytesOf()
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    const { manifest, chunksStart, bytes: length } = readSeedHead(disk, PATH)

    expect(Buffer.from(bytes.subarray(0, 8)).toString()).toBe('VACSEED\n')
    expect(chunksStart).toBe(32 + view.getUint32(12, true))
    expect([Number(view.getBigUint64(16, true)), length]).toEqual([bytes.length, bytes.length])
    expect(view.getUint32(24, true)).toBe(crc32(bytes.subarray(0, 24)))
    const end = bytes.length - 48
    expect(Buffer.from(bytes.subarray(end, end + 8)).toString()).toBe('VACEND.\n')
    expect(Number(view.getBigUint64(end + 8, true))).toBe(bytes.length)
    expect(bytes.slice(end + 16)).toEqual(sha256(bytes.subarray(0, chunksStart)))
    expect(manifest.properties).toBe(18)
  })

  test.each<[string, () => void, RegExp]>([
    ['other magic', () => damage(disk, PATH, 0, Uint8Array.of(0x76)), /this is not a snapshot file/],
    [
      'a wrong checksum',
      () => damage(disk, PATH, 24, Uint8Array.of((bytesOf()[24] as number) ^ 1)),
      /the checksum of the header differs/,
    ],
    ['a byte of padding', () => damage(disk, PATH, 31, Uint8Array.of(1)), /the header does not end with zeros/],
    ['another version', () => patch(8, 99), /has format version 99, which this version of Vacancy cannot read/],
    [
      'another length',
      () => patch(16, (bytesOf()[16] as number) ^ 1),
      /the file has \d+ bytes, expected \d+ by its header/,
    ],
    ['a manifest that does not fit', () => patch(14, 1), /a manifest of \d+ bytes does not fit the file/],
    [
      'another end',
      () => damage(disk, PATH, bytesOf().length - 48, Uint8Array.of(0)),
      /the file does not end with a trailer/,
    ],
    [
      'another length at the end',
      () => damage(disk, PATH, bytesOf().length - 34, Uint8Array.of(1)),
      /the trailer has a different length/,
    ],
    [
      'another digest',
      () => damage(disk, PATH, bytesOf().length - 1, Uint8Array.of((bytesOf().at(-1) as number) ^ 1)),
      /the digest of the head differs/,
    ],
    ['a cut header', () => cut(disk, PATH, 31), /the file ends too early/],
    ['a cut file', () => cut(disk, PATH, bytesOf().length - 1), /the file has \d+ bytes, expected/],
  ])('%s is refused', (_, change, reason) => {
    change()

    expect(() => readSeedHead(disk, PATH)).toThrow(reason)
    expect(disk.openFiles()).toBe(0)
  })

  test.each([0, 1])('a manifest of the greatest length that fits, and %i bytes more', (more) => {
    const manifestBytes = bytesOf().length - 32 - 48 + more
    patch(12, manifestBytes & 0xff, (manifestBytes >>> 8) & 0xff, manifestBytes >>> 16)

    expect(() => readSeedHead(disk, PATH)).toThrow(
      more === 0 ? /the digest of the head differs/ : /does not fit the file/,
    )
  })

  test('a file has a temporary name until it is finished, and none after it was given up', () => {
    const writer = beginSeed(disk, '/data/other', 4)
    writer.put(Uint8Array.of(1, 2, 3))
    expect(disk.list('/data').sort()).toEqual(['other.tmp', 'seed'])
    writer.abandon()
    writer.abandon()
    expect(disk.list('/data')).toEqual(['seed'])
    expect(disk.openFiles()).toBe(0)

    beginSeed(disk, '/data/other', 4)
    const again = beginSeed(disk, '/data/other', 4)
    again.put(Uint8Array.of(7))
    again.put(Uint8Array.of(8, 9))
    expect(again.finish(Uint8Array.of(1, 2, 3, 4))).toBe(32 + 4 + 3 + 48)
    again.abandon()
    expect(disk.list('/data').sort()).toEqual(['other', 'seed'])
    expect([...contentOf(disk, '/data/other').slice(32, 39)]).toEqual([1, 2, 3, 4, 7, 8, 9])
  })

  test('chunks that do not add up to the file are damage', () => {
    const { chunksStart, bytes } = readSeedHead(disk, PATH)
    const all = bytesOf()
    const writer = beginSeed(disk, '/data/other', chunksStart - 32)
    writer.put(all.slice(chunksStart, bytes - 48))
    writer.put(Uint8Array.of(0))
    writer.finish(all.slice(32, chunksStart))

    expect(() => readSeedHead(disk, '/data/other')).toThrow(
      /the lengths of the chunks do not add up to that of the file/,
    )
  })

  test('a failed write is reported as a failed disk, a full one as such', () => {
    const writer = beginSeed(disk, '/data/other', 4)
    for (const [code, error] of [
      ['EIO', { code: 'disk_failed' }],
      ['ENOSPC', { code: 'ENOSPC' }],
    ] as const) {
      disk.fault = ({ call }) => (call === 'write' ? { kind: 'fail', code } : undefined)
      expect(() => writer.put(Uint8Array.of(1))).toThrow(expect.objectContaining(error))
    }
    disk.fault = () => undefined
    writer.abandon()
  })
})
