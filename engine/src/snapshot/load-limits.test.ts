/** Sections of one and of several chunks, and the largest that are read. */

import { createRandom } from '@vacancy/testkit/random'
import { beforeEach, expect, test } from 'vitest'
import type { FileStat } from '../env.ts'
import { contentOf, createSimulatedDisk, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createTestSource, type TestSource } from '../testing/snapshot-source.ts'
import { RAW_BYTES_MAX } from './format.ts'
import { decodePart, openSeedFile, openSnapshot, placeChunks, readSeedFile, readSnapshotDir } from './load.ts'
import { createWordsCoder } from './words.ts'
import { inlineEncoder, writeSeedFileAtOnce } from './write.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const MEBIBYTE = 1 << 20
const source = createTestSource({ segments: 2, roomTypes: 1, propertiesPerSegment: 3, nights: 2 })

let disk: SimulatedDisk
beforeEach(() => {
  disk = createSimulatedDisk()
  disk.makeDirectory('/d')
})

function write(changes: Partial<TestSource>): void {
  const encoder = inlineEncoder(source, source.planes.scratch[0] as number)
  writeSeedFileAtOnce(createSimulation({ disk }).env, '/d/a', { ...source, ...changes }, { encoder })
}

const sizes = () => readSeedFile(disk, '/d/a').manifest.blocks.map(({ kind, parts }) => `${kind} ${parts.length}`)

test.each(['settings', 'replicated'] as const)('%s have at most 1 MiB', (kind) => {
  write({ [kind]: new Uint8Array(MEBIBYTE).fill(7) })
  const found = openSeedFile(disk, '/d/a')[kind]
  expect([found.length, found.every((byte) => byte === 7)]).toEqual([MEBIBYTE, true])

  write({ [kind]: new Uint8Array(MEBIBYTE + 1) })
  expect(() => openSeedFile(disk, '/d/a')).toThrow(`its ${kind} exceed the limit`)
})

test('a manifest that became shorter while it was read is damage', () => {
  const file = disk.open('/d/MANIFEST', 'create')
  disk.write(file, new Uint8Array(90), 0, 90, 0)
  const found = disk.stat('/d/MANIFEST') as FileStat
  const shrinking: SimulatedDisk = Object.assign(Object.create(disk), { stat: () => ({ ...found, bytes: 91 }) })

  expect(() => readSnapshotDir(shrinking, '/d', '/d/chunks')).toThrow(
    expect.objectContaining({ fields: { file: '/d/MANIFEST', offset: 90, reason: 'the file ends too early' } }),
  )
})

test('a section of several chunks is joined in order', () => {
  const sessions = new Uint8Array(2 * RAW_BYTES_MAX + 3)
  const random = createRandom(SEED)
  for (let at = 0; at < sessions.length; at += 1_000_003) sessions[at] = random.below(256)
  write({ sessions })
  expect(sizes()).toContain('sessions 3')

  const found = openSeedFile(disk, '/d/a').sessions

  expect(Buffer.compare(found, sessions), `VACANCY_SEED=${SEED}`).toBe(0)
})

test('sections that are absent are empty', () => {
  write({ sessions: new Uint8Array(0), settings: new Uint8Array(0), sessionCount: 0 })

  const { sessions, settings, replicated, stays } = openSeedFile(disk, '/d/a')

  expect(sizes()).toEqual(['properties 1', 'tables 1', 'words 1'])
  expect([sessions.length, settings.length, replicated.length]).toEqual([0, 0, 0])
  expect(stays).toEqual({ roomTypes: [], stays: [], nights: [], generations: [] })
})

test('a name without a property is no segment, and each segment counts its own', () => {
  const { names } = source
  const segments = [...names.segments, 'unused']
  write({ names: { ...names, segments } })
  expect(openSeedFile(disk, '/d/a').names.segments).toEqual(segments)
  const head = readSeedFile(disk, '/d/a')
  const changed = (at: number, properties: number) => {
    const list = head.manifest.segments.map((segment, i) => (i === at ? { ...segment, properties } : segment))
    return () => openSnapshot(disk, { ...head, manifest: { ...head.manifest, segments: list } })
  }

  for (const at of [0, 1]) {
    expect(changed(at, 3)).not.toThrow()
    expect(changed(at, 4)).toThrow('has a different number of properties')
    expect(changed(at, 2)).toThrow('has a different number of properties')
  }
})

test('the first block may not be missing or come twice, whichever it is', () => {
  write({})
  const head = readSeedFile(disk, '/d/a')
  const { blocks } = head.manifest
  const opened = (list: typeof blocks) => () =>
    openSnapshot(disk, { ...head, manifest: { ...head.manifest, blocks: list } })
  const [properties, tables, ...rest] = blocks as [(typeof blocks)[0], (typeof blocks)[0]]

  expect(opened([properties, properties, tables, ...rest])).toThrow('a block of properties is out of order')
  expect(opened([tables, properties, ...rest])).toThrow('a block of properties is out of order')
  expect(opened([properties, tables, tables, ...rest])).toThrow('a block of tables is out of order')
  expect(opened([tables, ...rest])).toThrow('it has no properties')
  expect(opened([properties, ...rest])).toThrow('it has no tables')
})

test('each part is decoded into the planes of its tables', () => {
  write({})
  const reader = openSeedFile(disk, '/d/a')
  const { planeMap, memory, u32, scratch } = source.planes
  const before = u32.slice()
  for (const plane of planeMap.words) u32.fill(0, plane / 4, plane / 4 + 6)
  const { tables, properties, names, words, places, firstPlane } = reader
  const coder = createWordsCoder(memory, scratch[0] as number, {
    ...{ tables, ids: properties.ids, roomTypes: names.roomTypes },
  })

  decodePart(disk, { words, form: places.form, firstPlane }, coder, { ...planeMap, statsBefore: 0 }, 0)

  for (const plane of planeMap.words) {
    expect([...u32.slice(plane / 4, plane / 4 + 6)]).toEqual([...before.slice(plane / 4, plane / 4 + 6)])
  }
})

test('chunks of a file lie behind its head without a gap', () => {
  write({})
  const chunks = placeChunks(readSeedFile(disk, '/d/a'))
  const bytes = contentOf(disk, '/d/a')

  for (const [n, { offset, part }] of chunks.entries()) {
    expect(Buffer.from(bytes.subarray(offset, offset + 4)).toString()).toBe('VCHK')
    expect(offset + part.bytes).toBe(chunks[n + 1]?.offset ?? bytes.length - 48)
  }
})
