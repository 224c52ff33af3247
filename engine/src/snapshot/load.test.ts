/** Snapshot files whose parts contradict each other although every checksum is right, and files that are cut or changed. */

import { crc32 } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import type { FileStat } from '../env.ts'
import { contentOf, createSimulatedDisk, cut, damage, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createTestSource, FIRST_DAY, type TestSource } from '../testing/snapshot-source.ts'
import type { Block, Manifest } from './format.ts'
import { openSeedFile, openSnapshot, readSeedFile, readSnapshotDir, type SnapshotHead } from './load.ts'
import { MANIFEST_FILE_BYTES_MAX } from './manifest-file.ts'
import { readSeedHead, SEED_HEADER_BYTES } from './seed.ts'
import { inlineEncoder, writeSeedFileAtOnce } from './write.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const PATH = '/data/seed'
const MEBIBYTE = 1 << 20
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

test.each(['settings', 'replicated'] as const)('%s have at most 1 MiB', (kind) => {
  write(disk, { ...source, [kind]: new Uint8Array(MEBIBYTE) })
  expect(openSeedFile(disk, PATH)[kind].length).toBe(MEBIBYTE)
  write(disk, { ...source, [kind]: new Uint8Array(MEBIBYTE + 1) })
  expect(() => openSeedFile(disk, PATH)).toThrow(`its ${kind} exceed the limit`)
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
})
