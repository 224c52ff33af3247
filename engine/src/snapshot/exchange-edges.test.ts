/** Limits of the disk operations of a transfer: ranges, sizes, the last byte of space, and which files stay. */

import { assert } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Disk } from '../env.ts'
import { contentOf, createSimulatedDisk, damage, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createTestSource } from '../testing/snapshot-source.ts'
import {
  createExchanger,
  type ExchangeAnswer,
  type ExchangeAsk,
  incomingFolder,
  inlineExchange,
  isManifest,
  runExchange,
} from './exchange.ts'
import { encodeManifest, hex, type Manifest, sha256 } from './format.ts'
import { placeChunks, readChunk, readSeedFile, type SnapshotHead } from './load.ts'
import { findSnapshots, heldSnapshots, loadFolder, SEED_FILE } from './snapshot.ts'
import { inlineEncoder, writeSeedFileAtOnce, writeSnapshotDirAtOnce } from './write.ts'

const HERE = '/here'
const RESERVE = 64 << 20
const source = createTestSource({ segments: 2, roomTypes: 2, propertiesPerSegment: 3, nights: 2 })
const encoder = inlineEncoder(source, source.planes.scratch[0])
const wanted = {
  ...{ shardId: 's1', codecsOrderedHash: source.codecs.orderedHash, codecsText: source.codecs.names.join(', ') },
}

let disk: SimulatedDisk
/** A snapshot file elsewhere, whose chunks arrive. */
let sent: SnapshotHead
let ask: (request: ExchangeAsk) => ExchangeAnswer

beforeEach(() => {
  disk = createSimulatedDisk()
  disk.makeDirectory(HERE)
  writeSeedFileAtOnce(envOf(), '/sent', source, { encoder })
  sent = readSeedFile(disk, '/sent')
  ask = asker(disk)
})

const envOf = (over: Disk = disk) => ({ ...createSimulation({ disk }).env, disk: over })

function asker(over: Disk): (request: ExchangeAsk) => ExchangeAnswer {
  const exchanger = createExchanger(envOf(over), HERE)
  return (request) => runExchange(exchanger, request)
}

const chunks = () =>
  placeChunks(sent).map((chunk) => ({
    ...{ digest: hex(chunk.part.digest), bytes: readChunk(disk, chunk, 'file') },
  }))
const names = () => chunks().map(({ digest, bytes }) => ({ digest, bytes: bytes.length }))
const total = () => chunks().reduce((sum, { bytes }) => sum + bytes.length, 0)

function storeAll(except?: string): void {
  for (const { digest, bytes } of chunks()) {
    if (digest !== except) expect(ask({ kind: 'store', digest, bytes })).toEqual({ state: 'stored' })
  }
}

const manifestAt = (index: number, changes: Partial<Manifest> = {}) =>
  encodeManifest({ ...sent.manifest, index, ...changes })

function plan(manifest = manifestAt(9), over = ask) {
  const answer = over({ kind: 'plan', manifest })
  assert(answer.state === 'planned', 'the manifest is sound')
  return answer
}

function writeHere(index: number, changes: Partial<typeof source> = {}): void {
  writeSnapshotDirAtOnce(envOf(), HERE, { ...source, index, ...changes }, { encoder, origin: 'test' })
}

describe('a plan', () => {
  test('it describes the offered snapshot and counts each chunk once', () => {
    const { manifest } = sent

    expect(plan()).toEqual({
      ...{ state: 'planned', shardId: 's1', codecsOrderedHash: source.codecs.orderedHash, hasRoom: true },
      ...{ contentDigest: hex(manifest.contentDigest), packages: manifest.packages, bytesTotal: total() },
      ...{ held: [], missing: names() },
    })
  })

  test.each([
    [-1, false],
    [0, true],
  ])('with %i bytes beyond the missing chunks and the reserve, the disk has space: %s', (more, hasRoom) => {
    const [first, second] = chunks()
    assert(first !== undefined && second !== undefined, 'there are chunks')
    ask({ kind: 'store', digest: first.digest, bytes: first.bytes })
    const freeBytes = total() - first.bytes.length + RESERVE + more
    const limited = { ...disk, space: () => ({ freeBytes, totalBytes: 2 ** 40 }) }

    expect(plan(manifestAt(9), asker(limited)).hasRoom).toBe(hasRoom)
  })

  test('chunks in the seed file are held, and still need space for their copies', () => {
    writeSeedFileAtOnce(envOf(), `${HERE}/${SEED_FILE}`, source, { encoder })
    const withFree = (freeBytes: number) =>
      plan(manifestAt(9), asker({ ...disk, space: () => ({ freeBytes, totalBytes: 2 ** 40 }) }))

    expect(withFree(total() + RESERVE)).toMatchObject({ held: names(), missing: [], hasRoom: true })
    expect(withFree(total() + RESERVE - 1)).toMatchObject({ held: names(), hasRoom: false })
  })

  test('a file of the name with another length is missing, and a folder of the name does not count', () => {
    storeAll()
    const [first, second] = names()
    assert(first !== undefined && second !== undefined, 'there are chunks')
    const path = (digest: string) => `${incomingFolder(HERE)}/${digest}.chk`
    disk.unlink(path(first.digest))
    disk.unlink(path(second.digest))
    disk.makeDirectory(path(second.digest))
    const file = disk.open(path(first.digest), 'create')
    disk.write(file, new Uint8Array(first.bytes - 1), 0, first.bytes - 1, 0)
    disk.close(file)

    expect(plan().missing).toEqual([first, second])
  })

  test('it removes what another offer left, and keeps its own chunks', () => {
    storeAll()
    const stray = new Uint8Array(40)
    ask({ kind: 'store', digest: hex(sha256(stray)), bytes: stray })
    const file = disk.open(`${incomingFolder(HERE)}/${names()[0]?.digest}.chk.tmp`, 'create')
    disk.close(file)

    expect(plan().held).toEqual(names())
    expect(disk.list(incomingFolder(HERE)).sort()).toEqual(
      names()
        .map(({ digest }) => `${digest}.chk`)
        .sort(),
    )
  })

  test('a damaged seed file has no chunks, one that was replaced has its own', () => {
    const seed = `${HERE}/${SEED_FILE}`
    writeSeedFileAtOnce(envOf(), seed, source, { encoder })
    damage(disk, seed, 0, Uint8Array.of(0))
    expect(plan().held).toEqual([])
    disk.unlink(seed)
    expect(plan().held).toEqual([])
    writeSeedFileAtOnce(envOf(), seed, { ...source, sessions: new Uint8Array(5_000) }, { encoder })
    expect(plan().held).toHaveLength(names().length - 1)
  })
})

describe('ranges', () => {
  test.each([
    [0, 0, false],
    [-1, 1, false],
    [0, 1, true],
    [3, 7, true],
    [1, -1, false],
  ])('from %i, %i bytes: there is such a range: %s', (offset, length, isThere) => {
    storeAll()
    const [{ digest, bytes }] = chunks() as [ReturnType<typeof chunks>[0]]

    expect(ask({ kind: 'read', digest, offset, length })).toEqual({
      state: 'read',
      bytes: isThere ? bytes.slice(offset, offset + length) : undefined,
    })
  })

  test('the last byte of a chunk is read, and none behind it', () => {
    storeAll()
    for (const { digest, bytes } of chunks()) {
      const read = (offset: number, length: number) => ask({ kind: 'read', digest, offset, length })
      expect(read(0, bytes.length)).toEqual({ state: 'read', bytes })
      expect(read(bytes.length - 1, 1)).toEqual({ state: 'read', bytes: bytes.slice(-1) })
      expect(read(bytes.length - 1, 2)).toEqual({ state: 'read', bytes: undefined })
    }
    expect(disk.openFiles()).toBe(0)
  })

  test('chunks of the seed file are read at their offset', () => {
    disk.unlink('/sent')
    writeSeedFileAtOnce(envOf(), `${HERE}/${SEED_FILE}`, source, { encoder })
    sent = readSeedFile(disk, `${HERE}/${SEED_FILE}`)

    for (const { digest, bytes } of chunks()) {
      expect(ask({ kind: 'read', digest, offset: 2, length: bytes.length - 2 })).toEqual({
        state: 'read',
        bytes: bytes.slice(2),
      })
    }
  })

  test('a manifest is read in ranges by its digest, also that of an earlier snapshot or of a load', () => {
    storeAll()
    const loaded = manifestAt(5)
    ask({ kind: 'hold', manifest: loaded, origin: 'load' })
    writeHere(7)
    writeHere(8)
    ask({ kind: 'newest' })

    const manifests = findSnapshots(disk, HERE).map((found) => {
      assert(found.state === 'readable', 'it is found')
      return encodeManifest(found.head.manifest)
    })
    expect(manifests).toHaveLength(2)
    for (const manifest of [...manifests, loaded]) {
      const digest = hex(manifest.subarray(manifest.length - 32))
      for (const [offset, length] of [
        [0, 10],
        [10, manifest.length - 10],
      ] as const) {
        const bytes = manifest.slice(offset, offset + length)
        expect(ask({ kind: 'read', digest, offset, length })).toEqual({ state: 'read', bytes })
      }
    }
  })
})

describe('received chunks', () => {
  test('one that is damaged in the incoming folder is removed, one in use stays', () => {
    storeAll()
    const [first] = names() as [ReturnType<typeof names>[0]]
    const incoming = `${incomingFolder(HERE)}/${first.digest}.chk`
    expect(ask({ kind: 'verify', chunk: { ...first, bytes: first.bytes - 1 } })).toEqual({ state: 'bad' })
    expect(ask({ kind: 'verify', chunk: first })).toEqual({ state: 'verified' })
    damage(disk, incoming, 3, Uint8Array.of((contentOf(disk, incoming)[3] as number) ^ 1))

    expect(ask({ kind: 'verify', chunk: first })).toEqual({ state: 'bad' })
    expect(disk.stat(incoming)).toBeUndefined()
    expect(ask({ kind: 'verify', chunk: first })).toEqual({ state: 'bad' })
    writeHere(7)
    const used = `${HERE}/snapshots/chunks/${first.digest}.chk`
    expect(ask({ kind: 'verify', chunk: first })).toEqual({ state: 'verified' })
    damage(disk, used, 3, Uint8Array.of((contentOf(disk, used)[3] as number) ^ 1))
    expect(ask({ kind: 'verify', chunk: first })).toEqual({ state: 'bad' })
    expect(disk.stat(used)).toBeDefined()
  })

  test('verifying a chunk of the seed file copies it out of that file, so that it can become current', () => {
    writeSeedFileAtOnce(envOf(), `${HERE}/${SEED_FILE}`, source, { encoder })
    expect(ask({ kind: 'current', manifest: manifestAt(9), origin: 'x' })).toEqual({
      state: 'lacking',
      missing: names(),
    })

    for (const chunk of names()) expect(ask({ kind: 'verify', chunk })).toEqual({ state: 'verified' })

    for (const { digest, bytes } of chunks()) {
      expect(contentOf(disk, `${incomingFolder(HERE)}/${digest}.chk`)).toEqual(bytes)
    }
    expect(ask({ kind: 'current', manifest: manifestAt(9), origin: 'x' }).state).toBe('current')
  })

  test('a complete snapshot gets the folder of its index and term, and nothing stays in the incoming folder', () => {
    const [{ digest }] = chunks() as [ReturnType<typeof chunks>[0]]
    storeAll(digest)
    expect(ask({ kind: 'current', manifest: manifestAt(9), origin: 'x' })).toEqual({
      state: 'lacking',
      missing: [names()[0]],
    })
    storeAll()

    expect(ask({ kind: 'current', manifest: manifestAt(9, { term: 4 }), origin: 'x' })).toEqual({
      state: 'current',
      path: `${HERE}/snapshots/snap-9-4`,
    })
    expect(disk.stat(incomingFolder(HERE))).toBeUndefined()
    const [found] = findSnapshots(disk, HERE)
    assert(found?.state === 'readable', 'it is found')
    expect(found.head.note).toMatchObject({ origin: 'x', durationMs: 0 })
    // Its chunks are there already for another one of the same content.
    expect(ask({ kind: 'hold', manifest: manifestAt(10), origin: 'y' })).toEqual({
      state: 'held',
      path: loadFolder(HERE, 'load', hex(sent.manifest.contentDigest)),
    })
  })
})

describe('states before loads', () => {
  const LOADED = ['ab'.repeat(32), 'cd'.repeat(32)] as const

  /** Two loads, one after the other, that replaced the states of indexes 7 and 9. */
  function loadTwice(): string[] {
    writeHere(7)
    ask({ kind: 'keep', index: 7, term: 1, loaded: LOADED[0] })
    writeHere(9, { lastMaintenanceDay: source.lastMaintenanceDay + 1 })
    ask({ kind: 'keep', index: 9, term: 1, loaded: LOADED[1] })
    return findSnapshots(disk, HERE).map((found) => {
      assert(found.state === 'readable', 'it is found')
      return hex(found.head.manifest.contentDigest)
    })
  }

  const before = (contentDigest: string) => {
    const answer = ask({ kind: 'before', contentDigest })
    assert(answer.state === 'before', 'the state before a load')
    return answer.before
  }

  test('each is found by its own content and by what was loaded', () => {
    const [second, first] = loadTwice() as [string, string]

    expect(before(LOADED[0])).toMatchObject({ index: 7, contentDigest: first, loaded: LOADED[0] })
    expect(before(first)).toMatchObject({ index: 7 })
    expect(before(LOADED[1])).toMatchObject({ index: 9, contentDigest: second, loaded: LOADED[1] })
    expect(before('ef'.repeat(32))).toBeUndefined()
    expect(ask({ kind: 'find', contentDigest: 'ef'.repeat(32) })).toEqual({ state: 'found', found: undefined })
  })

  test('the last load comes first when both match', () => {
    writeHere(7)
    ask({ kind: 'keep', index: 7, term: 1, loaded: LOADED[0] })
    writeHere(9, { lastMaintenanceDay: source.lastMaintenanceDay + 1 })
    ask({ kind: 'keep', index: 9, term: 1, loaded: LOADED[0] })

    expect(before(LOADED[0])?.index).toBe(9)
  })

  test('one that is given up goes with the snapshot it loaded, the others stay', () => {
    const [second, first] = loadTwice() as [string, string]
    for (const { path } of findSnapshots(disk, HERE)) {
      for (const name of disk.list(path)) disk.unlink(`${path}/${name}`)
      disk.removeDirectory(path)
    }
    writeHere(10)

    expect(ask({ kind: 'drop', contentDigest: LOADED[1] })).toEqual({ state: 'dropped', isDone: true })
    expect(heldSnapshots(disk, HERE).map(({ contentDigest }) => contentDigest)).toEqual([first])
    expect(before(second)).toBeUndefined()
    expect(ask({ kind: 'drop', contentDigest: second })).toEqual({ state: 'dropped', isDone: false })
    expect(ask({ kind: 'drop', contentDigest: first })).toEqual({ state: 'dropped', isDone: true })
    expect(heldSnapshots(disk, HERE)).toEqual([])
  })

  test('a loaded snapshot that another state needs is not dropped with one of them', () => {
    storeAll()
    ask({ kind: 'hold', manifest: manifestAt(1), origin: 'load' })
    const loaded = hex(sent.manifest.contentDigest)
    writeHere(7, { lastMaintenanceDay: source.lastMaintenanceDay + 1 })
    ask({ kind: 'keep', index: 7, term: 1, loaded })
    writeHere(9, { lastMaintenanceDay: source.lastMaintenanceDay + 2 })
    const [newest] = findSnapshots(disk, HERE)
    assert(newest?.state === 'readable', 'it is found')
    ask({ kind: 'keep', index: 9, term: 1, loaded })
    for (const { path } of findSnapshots(disk, HERE)) {
      for (const name of disk.list(path)) disk.unlink(`${path}/${name}`)
      disk.removeDirectory(path)
    }
    const purposes = () => heldSnapshots(disk, HERE).map(({ purpose }) => purpose)
    expect(purposes().sort()).toEqual(['before', 'before', 'load'])

    ask({ kind: 'drop', contentDigest: hex(newest.head.manifest.contentDigest) })
    expect(purposes().sort()).toEqual(['before', 'load'])
    ask({ kind: 'drop', contentDigest: loaded })
    expect(purposes()).toEqual([])
  })
})

test('an import reuses a verified chunk, and copies the rest of the file', () => {
  const [first, second] = chunks()
  assert(first !== undefined && second !== undefined, 'there are chunks')
  ask({ kind: 'store', digest: first.digest, bytes: first.bytes })
  const held = loadFolder(HERE, 'load', hex(sent.manifest.contentDigest))

  expect(ask({ kind: 'import', file: '/sent', wanted })).toEqual({ state: 'held', path: held })
  expect(disk.list(`${HERE}/snapshots/chunks`).sort()).toEqual(
    names()
      .map(({ digest }) => `${digest}.chk`)
      .sort(),
  )
})

test('a node without a snapshot has no newest one', () => {
  expect(ask({ kind: 'newest' })).toEqual({ state: 'newest', newest: undefined })
})

test('a failed disk ends the process, other failures are replies', () => {
  disk.fault = ({ call }) => (call === 'write' ? { kind: 'fail', code: 'EIO' } : undefined)
  const [{ digest, bytes }] = chunks() as [ReturnType<typeof chunks>[0]]

  expect(() => ask({ kind: 'store', digest, bytes })).toThrow(expect.objectContaining({ code: 'disk_failed' }))
  disk.fault = () => undefined
  expect(ask({ kind: 'import', file: '/none', wanted })).toMatchObject({ state: 'refused' })
})

test('the exchange of a simulator replies in a later turn', () => {
  const simulation = createSimulation({ disk })
  const answers: ExchangeAnswer[] = []
  inlineExchange({ ...simulation.env, disk }, HERE)({ kind: 'newest' }, (answer) => answers.push(answer))

  expect(answers).toEqual([])
  simulation.advance(0)
  expect(answers).toEqual([{ state: 'newest', newest: undefined }])
})

test('a manifest ends with its digest; shorter bytes and another digest are refused', () => {
  const manifest = manifestAt(3)
  const digest = hex(manifest.subarray(manifest.length - 32))
  const changed = manifest.slice()
  changed[10] = (changed[10] as number) ^ 1
  const empty = sha256(new Uint8Array(0))

  expect(isManifest(manifest, digest)).toBe(true)
  expect(isManifest(changed, digest)).toBe(false)
  expect(isManifest(manifest, '00'.repeat(32))).toBe(false)
  expect(isManifest(empty, hex(empty))).toBe(true)
  expect(isManifest(empty.slice(1), hex(empty))).toBe(false)
})
