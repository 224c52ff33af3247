import { assert } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { createSimulatedDisk, damage, fillDisk, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createTestSource } from '../testing/snapshot-source.ts'
import { crashEverywhere, type Scenario, syncSites, withoutSync } from '../testing/storage.ts'
import {
  createExchanger,
  type ExchangeAnswer,
  type ExchangeAsk,
  type Exchanger,
  incomingFolder,
  isManifest,
  runExchange,
} from './exchange.ts'
import { chunkFileName, encodeManifest, hex, type Manifest, type Membership } from './format.ts'
import { placeChunks, readChunk, readSeedFile } from './load.ts'
import {
  findSnapshots,
  heldSnapshots,
  readHeldSnapshot,
  retainSnapshots,
  SEED_FILE,
  verifySnapshot,
  type Wanted,
} from './snapshot.ts'
import { inlineEncoder, writeSeedFileAtOnce, writeSnapshotDirAtOnce } from './write.ts'

const HERE = '/here'
const THERE = '/there'
const source = createTestSource({ segments: 2, roomTypes: 2, propertiesPerSegment: 3, nights: 2 })
const encoder = inlineEncoder(source, source.planes.scratch[0])
const membership: Membership = {
  members: [{ id: 1, node: 'a', incarnation: '11'.repeat(16) }],
  voters: [1],
  outgoing: [],
  learners: [],
  staged: [],
  autoLeave: false,
}

const wanted: Wanted = {
  shardId: 's1',
  codecsOrderedHash: source.codecs.orderedHash,
  codecsText: source.codecs.names.join(', '),
}

const envOf = (disk: SimulatedDisk) => createSimulation({ disk }).env

/** A node that has a snapshot, and one that has nothing. */
function createNodes(): SimulatedDisk {
  const disk = createSimulatedDisk()
  for (const path of [HERE, THERE]) disk.makeDirectory(path)
  disk.syncDirectory('/')
  write(disk, THERE, 7)
  return disk
}

function write(disk: SimulatedDisk, dataDir: string, index: number): void {
  source.planes.u32[source.planes.planeMap.words[0] / 4 + 1] = ~index
  const at = { ...source, index, membership, lastMaintenanceDay: 20_000 + index }
  writeSnapshotDirAtOnce(envOf(disk), dataDir, at, { encoder, origin: 'test' })
}

type Node = Exchanger & { readonly ask: (ask: ExchangeAsk) => ExchangeAnswer }
function nodeOn(disk: SimulatedDisk, dataDir: string): Node {
  const exchanger = createExchanger(envOf(disk), dataDir)
  return Object.assign(exchanger, { ask: (ask: ExchangeAsk) => runExchange(exchanger, ask) })
}

function newestOf(node: Node) {
  const answer = node.ask({ kind: 'newest' })
  assert(answer.state === 'newest' && answer.newest !== undefined, 'there is a snapshot')
  return answer.newest
}

function planOf(node: Node, manifest: Uint8Array) {
  const answer = node.ask({ kind: 'plan', manifest })
  assert(answer.state === 'planned', 'the manifest is sound')
  return answer
}

/** Downloads everything that is missing. */
function pullAll(here: Node, there: Node, manifest: Uint8Array): void {
  const { held, missing } = planOf(here, manifest)
  const bad = held.filter((chunk) => here.ask({ kind: 'verify', chunk }).state === 'bad')
  for (const { digest, bytes: length } of [...missing, ...bad]) {
    const read = there.ask({ kind: 'read', digest, offset: 0, length })
    assert(read.state === 'read' && read.bytes !== undefined, 'the other node has the chunk')
    expect(here.ask({ kind: 'store', digest, bytes: read.bytes })).toEqual({ state: 'stored' })
  }
}

test('a snapshot that was downloaded chunk by chunk is made current and verifies, its members included', () => {
  const disk = createNodes()
  const [here, there] = [nodeOn(disk, HERE), nodeOn(disk, THERE)]
  const newest = newestOf(there)
  expect(newest).toMatchObject({ index: 7, term: 1, membership })

  pullAll(here, there, newest.manifest)
  expect(here.ask({ kind: 'current', manifest: newest.manifest, origin: 'transfer' }).state).toBe('current')

  const [found] = findSnapshots(disk, HERE)
  assert(found?.state === 'readable', 'it is found')
  verifySnapshot(disk, found.head)
  expect(found.head.manifest.membership).toEqual(membership)
  expect(found.head.note?.origin).toBe('transfer')
  expect(disk.stat(incomingFolder(HERE))).toBeUndefined()
})

test('existing chunks are not downloaded again: own snapshots, the seed, and earlier downloads', () => {
  const disk = createNodes()
  const [here, there] = [nodeOn(disk, HERE), nodeOn(disk, THERE)]
  const { manifest } = newestOf(there)
  const all = planOf(here, manifest).missing
  writeSeedFileAtOnce(envOf(disk), `${HERE}/${SEED_FILE}`, { ...source, lastMaintenanceDay: 20_007 }, { encoder })

  // The seed has another index and no members; its chunks are the same.
  expect(planOf(here, manifest)).toMatchObject({ missing: [], held: all })
  pullAll(here, there, manifest)
  expect(here.ask({ kind: 'current', manifest, origin: 'transfer' }).state).toBe('current')

  write(disk, THERE, 8)
  const { missing, held } = planOf(here, newestOf(there).manifest)
  expect(missing).toHaveLength(1)
  expect(held).toHaveLength(all.length - 1)
})

test('a snapshot does not become current before it is complete', () => {
  const disk = createNodes()
  const [here, there] = [nodeOn(disk, HERE), nodeOn(disk, THERE)]
  const { manifest } = newestOf(there)

  expect(here.ask({ kind: 'current', manifest, origin: 'transfer' })).toMatchObject({ state: 'lacking' })
  expect(findSnapshots(disk, HERE)).toEqual([])
})

test('a chunk that does not match its name is not kept, and a rotten one is downloaded again', () => {
  const disk = createNodes()
  const [here, there] = [nodeOn(disk, HERE), nodeOn(disk, THERE)]
  const { manifest } = newestOf(there)
  const [chunk] = planOf(here, manifest).missing
  assert(chunk !== undefined, 'there are chunks')
  expect(here.ask({ kind: 'store', digest: chunk.digest, bytes: new Uint8Array(chunk.bytes) })).toEqual({
    state: 'bad',
  })

  pullAll(here, there, manifest)
  here.ask({ kind: 'current', manifest, origin: 'transfer' })
  damage(disk, `${HERE}/snapshots/chunks/${chunk.digest}.chk`, 70, Uint8Array.of(0xff))
  write(disk, THERE, 8)
  const next = newestOf(there).manifest
  expect(here.ask({ kind: 'verify', chunk })).toEqual({ state: 'bad' })
  pullAll(here, there, next)
  expect(here.ask({ kind: 'current', manifest: next, origin: 'transfer' }).state).toBe('current')

  for (const found of findSnapshots(disk, HERE)) {
    assert(found.state === 'readable', 'it is found')
    verifySnapshot(disk, found.head)
  }
})

test('chunks of an earlier offer that this one does not need are removed, the rest survives a restart', () => {
  const disk = createNodes()
  const [here, there] = [nodeOn(disk, HERE), nodeOn(disk, THERE)]
  const first = newestOf(there).manifest
  const all = planOf(here, first).missing
  pullAll(here, there, first)
  write(disk, THERE, 8)

  const again = planOf(nodeOn(disk, HERE), newestOf(there).manifest)

  expect(again.held).toHaveLength(all.length - 1)
  expect(disk.list(incomingFolder(HERE))).toHaveLength(all.length - 1)
})

test('ranges outside a chunk and missing chunks have an empty reply', () => {
  const disk = createNodes()
  const [here, there] = [nodeOn(disk, HERE), nodeOn(disk, THERE)]
  const newest = newestOf(there)
  const [chunk] = planOf(here, newest.manifest).missing
  assert(chunk !== undefined, 'there are chunks')
  const read = (digest: string, offset: number, length: number) => there.ask({ kind: 'read', digest, offset, length })
  const nothing = { state: 'read', bytes: undefined }

  expect(read(chunk.digest, 0, chunk.bytes + 1)).toEqual(nothing)
  expect(read(chunk.digest, chunk.bytes, 1)).toEqual(nothing)
  expect(read('00'.repeat(32), 0, 1)).toEqual(nothing)
  expect(read(newest.manifestDigest, 0, newest.manifest.length)).toEqual({ state: 'read', bytes: newest.manifest })
  expect(read(newest.manifestDigest, 0, newest.manifest.length + 1)).toEqual(nothing)
  const restarted = nodeOn(disk, THERE)
  const length = newest.manifest.length
  const again = restarted.ask({ kind: 'read', digest: newest.manifestDigest, offset: 0, length })
  expect(again).toEqual({ state: 'read', bytes: newest.manifest })
  expect(isManifest(newest.manifest, newest.manifestDigest)).toBe(true)
  expect(isManifest(newest.manifest.subarray(1), newest.manifestDigest)).toBe(false)
})

test('a full disk and an invalid manifest are reported, not fatal', () => {
  const disk = createNodes()
  const [here, there] = [nodeOn(disk, HERE), nodeOn(disk, THERE)]
  const { manifest } = newestOf(there)
  const { missing } = planOf(here, manifest)
  const [chunk] = missing
  assert(chunk !== undefined, 'there are chunks')
  const read = there.ask({ kind: 'read', digest: chunk.digest, offset: 0, length: chunk.bytes })
  assert(read.state === 'read' && read.bytes !== undefined, 'the other node has the chunk')
  const other = manifest.slice()
  other[20] = other[20] ^ 1

  fillDisk(disk)

  expect(planOf(here, manifest).hasRoom).toBe(false)
  expect(here.ask({ kind: 'store', digest: chunk.digest, bytes: read.bytes })).toEqual({ state: 'full' })
  expect(here.ask({ kind: 'plan', manifest: other })).toMatchObject({
    state: 'refused',
    error: { code: 'corrupt_data' },
  })
})

test('a snapshot that is being sent is kept when older ones are removed', () => {
  const disk = createNodes()
  for (const index of [8, 9, 10]) write(disk, THERE, index)

  retainSnapshots(disk, THERE, [7])
  expect(findSnapshots(disk, THERE).map(({ index }) => index)).toEqual([10, 9, 7])
  for (const found of findSnapshots(disk, THERE)) if (found.state === 'readable') verifySnapshot(disk, found.head)

  retainSnapshots(disk, THERE)
  expect(findSnapshots(disk, THERE).map(({ index }) => index)).toEqual([10, 9])
})

const contentDigestOf = (disk: SimulatedDisk, dataDir: string) => {
  const [found] = findSnapshots(disk, dataDir)
  assert(found?.state === 'readable', 'there is a snapshot')
  return hex(found.head.manifest.contentDigest)
}

test('an imported snapshot file is not used to start from, and other nodes can download it', () => {
  const disk = createNodes()
  writeSeedFileAtOnce(envOf(disk), '/file', { ...source, lastMaintenanceDay: 20_100, membership }, { encoder })
  const [here, there] = [nodeOn(disk, HERE), nodeOn(disk, THERE)]
  const contentDigest = hex(readSeedFile(disk, '/file').manifest.contentDigest)

  expect(there.ask({ kind: 'import', file: '/file', wanted }).state).toBe('held')
  disk.unlink('/file')
  const answer = there.ask({ kind: 'find', contentDigest })
  assert(answer.state === 'found' && answer.found !== undefined, 'it is held')
  expect(answer.found.membership).toBeUndefined()
  const { manifest } = answer.found
  pullAll(here, there, manifest)
  expect(here.ask({ kind: 'hold', manifest, origin: 'load' }).state).toBe('held')

  expect(findSnapshots(disk, HERE)).toEqual([])
  retainSnapshots(disk, HERE)
  const [held] = heldSnapshots(disk, HERE)
  assert(held !== undefined, 'it is held')
  verifySnapshot(disk, readHeldSnapshot(disk, HERE, held))
})

test('a file of another shard or of other codecs is not imported', () => {
  const disk = createNodes()
  writeSeedFileAtOnce(envOf(disk), '/file', source, { encoder })
  const refusal = (other: Partial<Wanted>) =>
    nodeOn(disk, HERE).ask({ kind: 'import', file: '/file', wanted: { ...wanted, ...other } })

  expect(refusal({ shardId: 's2' })).toMatchObject({ state: 'refused', error: { code: 'wrong_shard' } })
  expect(refusal({ codecsOrderedHash: '' })).toMatchObject({ state: 'refused', error: { code: 'codecs_changed' } })
  expect(heldSnapshots(disk, HERE)).toEqual([])
})

test('a damaged file is not imported', () => {
  const disk = createNodes()
  writeSeedFileAtOnce(envOf(disk), '/file', source, { encoder })
  const bytes = readSeedFile(disk, '/file').bytes
  damage(disk, '/file', bytes - 60, Uint8Array.of(0xff, 0xff))

  const here = nodeOn(disk, HERE)
  expect(here.ask({ kind: 'import', file: '/file', wanted })).toMatchObject({ state: 'refused' })
  expect(here.ask({ kind: 'import', file: '/nothing', wanted })).toMatchObject({ state: 'refused' })
  expect(heldSnapshots(disk, HERE)).toEqual([])
})

const LOADED = 'ab'.repeat(32)

test('the state before a load stays, with its chunks, until it is dropped', () => {
  const disk = createNodes()
  const there = nodeOn(disk, THERE)
  const before = contentDigestOf(disk, THERE)
  const keep = { kind: 'keep', index: 7, term: 1, loaded: LOADED } as const
  const kept = there.ask(keep)
  expect(kept).toMatchObject({ state: 'kept', path: expect.stringContaining(before) })
  for (const index of [8, 9, 10]) write(disk, THERE, index)
  retainSnapshots(disk, THERE)
  // Repeated after a restart, when the snapshot itself is gone.
  expect(there.ask(keep)).toEqual(kept)

  const answer = there.ask({ kind: 'find', contentDigest: before })
  expect(answer).toMatchObject({ state: 'found', found: { index: 7 } })
  for (const contentDigest of [before, LOADED]) {
    expect(there.ask({ kind: 'before', contentDigest })).toMatchObject({
      before: { index: 7, contentDigest: before, loaded: LOADED },
    })
  }
  const [held] = heldSnapshots(disk, THERE)
  assert(held !== undefined, 'it is held')
  verifySnapshot(disk, readHeldSnapshot(disk, THERE, held))

  const chunks = disk.list(`${THERE}/snapshots/chunks`).length
  expect(there.ask({ kind: 'drop', contentDigest: before })).toEqual({ state: 'dropped', isDone: true })
  expect(there.ask({ kind: 'drop', contentDigest: before })).toEqual({ state: 'dropped', isDone: false })
  retainSnapshots(disk, THERE)
  expect(disk.list(`${THERE}/snapshots/chunks`).length).toBeLessThan(chunks)
  expect(there.ask({ kind: 'find', contentDigest: before })).toEqual({ state: 'found', found: undefined })
})

test('the state before a load is not dropped while a start from an own snapshot would repeat the load', () => {
  const disk = createNodes()
  const there = nodeOn(disk, THERE)
  there.ask({ kind: 'keep', index: 7, term: 1, loaded: LOADED })

  expect(there.ask({ kind: 'drop', contentDigest: LOADED })).toEqual({ state: 'needed', index: 8 })
  for (const index of [8, 9]) write(disk, THERE, index)
  expect(there.ask({ kind: 'drop', contentDigest: LOADED })).toEqual({ state: 'needed', index: 8 })
  retainSnapshots(disk, THERE)
  expect(there.ask({ kind: 'drop', contentDigest: LOADED })).toEqual({ state: 'dropped', isDone: true })
})

// Crashes

const SENT = createSimulatedDisk()
SENT.makeDirectory(THERE)
const small = { ...source, sessions: new Uint8Array(0), sessionCount: 0, settings: new Uint8Array(0) }
writeSeedFileAtOnce(envOf(SENT), `${THERE}/${SEED_FILE}`, small, { encoder })
const SEED = readSeedFile(SENT, `${THERE}/${SEED_FILE}`)

type Ledger = { current: boolean }

/** Receives the snapshot of another node. */
function receive(disk: SimulatedDisk, ledger: Ledger): void {
  const here = nodeOn(disk, HERE)
  const manifest = encodeManifest({ ...(SEED.manifest satisfies Manifest), index: 9, membership })
  planOf(here, manifest)
  for (const chunk of placeChunks(SEED)) {
    const digest = chunkFileName(chunk.part.digest).slice(0, 64)
    const answer = here.ask({ kind: 'store', digest, bytes: readChunk(SENT, chunk, 'file') })
    if (answer.state === 'full') return
  }
  if (here.ask({ kind: 'current', manifest, origin: 'transfer' }).state === 'current') ledger.current = true
}

const installing: Scenario<Ledger> = {
  name: 'install',
  createLedger: () => ({ current: false }),
  copyLedger: (ledger) => ({ ...ledger }),
  run(disk, ledger) {
    disk.makeDirectory(HERE)
    disk.syncDirectory('/')
    receive(disk, ledger)
  },
  checkRun: () => undefined,
  check(disk, ledger, continues) {
    if (!disk.stat(HERE)) {
      expect(ledger.current).toBe(false)
      disk.makeDirectory(HERE)
    }
    disk.syncDirectory('/')
    const found = findSnapshots(disk, HERE)
    if (ledger.current) expect(found.map(({ index }) => index)).toEqual([9])
    for (const snapshot of found) {
      assert(snapshot.state === 'readable', 'a manifest that is found is whole')
      verifySnapshot(disk, snapshot.head)
    }
    if (continues && !ledger.current) receive(disk, ledger)
  },
}

const options = { random: createRandom(1), samples: 1 }

test('an install is complete or absent, whichever operation the machine stops at', () => {
  expect(crashEverywhere(installing, options)).toBeUndefined()
})

test('every sync of an install is needed', () => {
  for (const [site, from] of syncSites(installing)) {
    // The process that creates the data directory syncs its parent.
    const violation = crashEverywhere(installing, { ...options, watcher: withoutSync(site), from })
    expect(violation, site).toBeDefined()
  }
})
