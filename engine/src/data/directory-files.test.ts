/** Files of a data directory, exactly: their format, what counts as damaged, and which failure is reported how. */

import { createHash } from 'node:crypto'
import { createCodecList } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { contentOf, createSimulatedDisk, restart, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { crc32c } from '../wal/crc32c.ts'
import {
  beginWriting,
  type Cluster,
  closeDataDirectory,
  createCluster,
  ensureReserve,
  isSeedOf,
  logIdentity,
  noteSuspect,
  noteVoter,
  openDataDirectory,
  ownerOf,
  readCluster,
  readNodeId,
  readSuspect,
  releaseReserve,
  renewIdentity,
  restoreAside,
  setAside,
  walFolder,
  writeClean,
  writeCluster,
} from './data-directory.ts'

const PATH = '/srv/data'
const sha256 = (bytes: Uint8Array) => Uint8Array.from(createHash('sha256').update(bytes).digest())
const codeOf = (code: string, fields?: object) =>
  expect.objectContaining({ code, ...(fields && { fields: expect.objectContaining(fields) }) })

const CLUSTER = {
  clusterId: '0123456789abcdef0123456789abcdef',
  shardId: 's1',
  codecs: ['breakfast', 'wifi'],
  codecHash: 'ab'.repeat(32),
  baseIndex: 7,
  baseTerm: 2,
  voters: ['n1', 'n2'],
} satisfies Cluster

function open(disk = createSimulatedDisk(), processId = 100, nodeId = 'n1', processes?: Map<number, string>) {
  const simulation = createSimulation({ disk, processId, seed: processId, ...(processes && { processes }) })
  return { simulation, disk, directory: openDataDirectory(simulation.env, PATH, { nodeId }) }
}

function put(disk: SimulatedDisk, name: string, content: Uint8Array | string): void {
  const path = `${PATH}/${name}`
  if (disk.stat(path)) disk.unlink(path)
  const file = disk.open(path, 'create')
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  disk.write(file, bytes, 0, bytes.length, 0)
  disk.close(file)
}

type Header = { format?: string; length?: number; checksum?: string; name?: string }

/** A state file with any text; its header is correct except where given. */
function stateFile(name: string, text: string, header: Header = {}): string {
  const bytes = new TextEncoder().encode(text)
  const nameBytes = new TextEncoder().encode(name)
  const checksum = crc32c(bytes, 0, bytes.length, crc32c(nameBytes, 0, nameBytes.length))
  const hex = checksum.toString(16).padStart(8, '0')
  return `VACANCY ${header.name ?? name} ${header.format ?? '1'} ${header.checksum ?? hex} ${header.length ?? bytes.length}\n${text}`
}

/** A folder with this CLUSTER. */
function withCluster(content: string): SimulatedDisk {
  const { disk, directory } = open()
  closeDataDirectory(directory)
  put(disk, 'CLUSTER', content)
  return disk
}

// Format

test('a file of an earlier release is read', () => {
  const disk = withCluster(
    'VACANCY CLUSTER 1 b3317c54 204\n{"clusterId":"0123456789abcdef0123456789abcdef","shardId":"s1","codecs":["wifi"],"codecHash":"abababababababababababababababababababababababababababababababab","baseIndex":7,"baseTerm":2,"voters":["n1"]}\n',
  )
  expect(readCluster(disk, PATH)).toEqual({ ...CLUSTER, codecs: ['wifi'], voters: ['n1'] })
  put(
    disk,
    'IDENTITY',
    'VACANCY IDENTITY 1 9487b90e 65\n{"nodeId":"n1","incarnation":"00112233445566778899aabbccddeeff"}\n',
  )
  expect(open(disk).directory.identity).toEqual({ nodeId: 'n1', incarnation: '00112233445566778899aabbccddeeff' })
})

test('a file is one header line and JSON, whose bytes it counts', () => {
  const { disk, directory } = open()
  writeCluster(directory, { ...CLUSTER, shardId: 'Zürich' })
  for (const name of ['LOCK', 'IDENTITY', 'CLUSTER']) {
    const content = contentOf(disk, `${PATH}/${name}`)
    const line = content.indexOf(10) + 1
    const header = /^VACANCY ([A-Z]+) 1 [0-9a-f]{8} ([0-9]+)\n$/.exec(
      new TextDecoder().decode(content.subarray(0, line)),
    )
    expect([header?.[1], header?.[2]]).toEqual([name, String(content.length - line)])
    const state: unknown = JSON.parse(new TextDecoder().decode(content.subarray(line)))
    if (name === 'IDENTITY') expect(state).toEqual(directory.identity)
    if (name === 'CLUSTER') expect(state).toEqual({ ...CLUSTER, shardId: 'Zürich' })
    if (name === 'LOCK') {
      expect(state).toEqual({ processId: 100, startedAt: 'start-of-100', bootId: 'simulated-boot' })
    }
  }
})

const TEXT = `${JSON.stringify(CLUSTER)}\n`

test.each<[string, string, string]>([
  ['another file', stateFile('CLUSTER', TEXT, { name: 'IDENTITY' }), 'it does not begin like CLUSTER'],
  ['no header', TEXT, 'it does not begin like CLUSTER'],
  ['an empty file', '', 'it does not begin like CLUSTER'],
  ['a later format', stateFile('CLUSTER', TEXT, { format: '2' }), 'format 2 is not supported by this program'],
  ['a cut file', stateFile('CLUSTER', 'abc', { length: 4 }), 'it has 3 bytes of 4'],
  ['a longer file', stateFile('CLUSTER', 'abc', { length: 2 }), 'it has 3 bytes of 2'],
  ['changed bytes', stateFile('CLUSTER', TEXT, { checksum: '00000000' }), 'its checksum does not match'],
  ['the checksum of another file', stateFile('IDENTITY', TEXT, { name: 'CLUSTER' }), 'its checksum does not match'],
  ['no JSON', stateFile('CLUSTER', '{"a":'), 'its content cannot be read'],
])('a file that is not CLUSTER is refused with the reason: %s', (_, content, reason) => {
  const disk = withCluster(content)
  expect(() => readCluster(disk, PATH)).toThrow(reason)
  const corrupt = codeOf('corrupt_data', { file: `${PATH}/CLUSTER`, offset: 0 })
  expect(() => open(disk)).toThrow(corrupt)
  // The folder stays free for a repair.
  expect(disk.list(PATH)).not.toContain('LOCK')
})

test.each<[string, unknown]>([
  ['clusterId', 'ab'.repeat(15)],
  ['clusterId', 'ab'.repeat(17)],
  ['clusterId', 'AB'.repeat(16)],
  ['clusterId', `${'ab'.repeat(15)}a`],
  ['clusterId', 5],
  ['shardId', undefined],
  ['codecs', 'wifi'],
  ['codecs', ['wifi', 1]],
  ['codecHash', 'ab'.repeat(31)],
  ['codecHash', undefined],
  ['baseIndex', '7'],
  ['baseIndex', 1.5],
  ['baseTerm', undefined],
  ['voters', undefined],
  ['voters', [null]],
  ['isFounder', 'no'],
  ['wasVoter', 1],
  ['drawsGenesis', 0],
  ['snapshotDigest', 5],
])('a genesis needs a correct %s, not %j', (key, value) => {
  const disk = withCluster(stateFile('CLUSTER', JSON.stringify({ ...CLUSTER, [key]: value })))
  expect(() => readCluster(disk, PATH)).toThrow('its content is not a genesis')
})

test.each<[object, object]>([
  [{}, {}],
  [{ isFounder: true, wasVoter: false, drawsGenesis: false, snapshotDigest: '' }, {}],
  [{ isFounder: false }, { isFounder: false }],
  [
    { isFounder: false, wasVoter: true },
    { isFounder: false, wasVoter: true },
  ],
  [{ drawsGenesis: true }, { drawsGenesis: true }],
  [{ snapshotDigest: 'abcd' }, { snapshotDigest: 'abcd' }],
  [{ of_a_later_release: 1 }, {}],
])('a genesis with %j is read, without what is the default', (given, kept) => {
  const disk = withCluster(stateFile('CLUSTER', JSON.stringify({ ...CLUSTER, ...given })))
  expect(readCluster(disk, PATH)).toEqual({ ...CLUSTER, ...kept })
  expect(open(disk).directory.cluster).toEqual({ ...CLUSTER, ...kept })
})

test.each<[string, object]>([
  ['a short incarnation', { nodeId: 'n1', incarnation: 'ab'.repeat(15) }],
  ['a long incarnation', { nodeId: 'n1', incarnation: 'ab'.repeat(17) }],
  ['no incarnation', { nodeId: 'n1' }],
  ['no node', { incarnation: 'ab'.repeat(16) }],
])('an identity is refused with %s', (_, state) => {
  const { disk, directory } = open()
  closeDataDirectory(directory)
  put(disk, 'IDENTITY', stateFile('IDENTITY', JSON.stringify(state)))
  expect(() => open(disk)).toThrow('its content is not an identity')
})

test('the node of a folder is known without opening it', () => {
  const disk = createSimulatedDisk()
  expect(readNodeId(disk, PATH)).toBeUndefined()
  const { directory } = open(disk)
  expect([readNodeId(disk, PATH), readCluster(disk, PATH)]).toEqual(['n1', undefined])
  closeDataDirectory(directory)
  expect(() => open(disk, 101, 'n2')).toThrow('/srv/data belongs to node n1, not to n2')
  put(disk, 'IDENTITY', stateFile('IDENTITY', '{"nodeId":5}'))
  expect(readNodeId(disk, PATH)).toBeUndefined()
})

test('a state file that cannot be read is damaged', () => {
  const { disk, directory } = open()
  closeDataDirectory(directory)
  const again = restart(disk)
  again.fault = ({ call, path }) =>
    call === 'read' && path.endsWith('IDENTITY') ? { kind: 'fail', code: 'EIO' } : undefined
  expect(() => open(again)).toThrow('it cannot be read (EIO)')
})

// Genesis

test('the cluster id is the same in every release', () => {
  const genesis = {
    ...{ shardId: 's1', codecs: createCodecList(['breakfast', 'wifi']), base: { index: 7, term: 2 } },
    ...{ snapshotDigest: 'abcd', voters: ['n2', 'n1'] },
  }
  const cluster = createCluster(genesis, sha256)
  expect(cluster).toEqual({
    ...{ clusterId: '3d82397b2da91b0a37d6120e73194c1c', shardId: 's1', codecs: ['breakfast', 'wifi'] },
    ...{
      codecHash: genesis.codecs.orderedHash,
      baseIndex: 7,
      baseTerm: 2,
      voters: ['n1', 'n2'],
      snapshotDigest: 'abcd',
    },
  })
  expect(genesis.voters).toEqual(['n2', 'n1'])
  expect(createCluster({ ...genesis, snapshotDigest: '' }, sha256)).not.toHaveProperty('snapshotDigest')
  expect(() => createCluster(genesis, () => new Uint8Array(31))).toThrow('SHA-256')
})

test('a snapshot is the founding one by position, term and content', () => {
  const cluster = { baseIndex: 7, baseTerm: 2, snapshotDigest: 'abcd' }
  const manifest = { index: 7, term: 2, contentDigest: Uint8Array.of(0xab, 0xcd) }
  expect(isSeedOf(cluster, manifest)).toBe(true)
  for (const other of [{ index: 8 }, { term: 1 }, { contentDigest: Uint8Array.of(0xab) }]) {
    expect(isSeedOf(cluster, { ...manifest, ...other })).toBe(false)
  }
  expect(isSeedOf({ baseIndex: 7, baseTerm: 2 }, manifest)).toBe(false)
  expect(isSeedOf({ baseIndex: 7, baseTerm: 2 }, { ...manifest, contentDigest: new Uint8Array(0) })).toBe(true)
})

test('the headers of the log name cluster, incarnation and codec list', () => {
  const { directory } = open()
  const named = { ...directory, identity: { nodeId: 'n1', incarnation: '00ff10'.padEnd(32, '0') } }
  const identity = logIdentity(named, CLUSTER)
  expect([...identity.clusterId]).toEqual([1, 35, 69, 103, 137, 171, 205, 239, 1, 35, 69, 103, 137, 171, 205, 239])
  expect([...identity.incarnation.subarray(0, 4), identity.incarnation.length]).toEqual([0, 255, 16, 0, 16])
  expect([...identity.codecHash]).toEqual(Array(32).fill(0xab))
  expect(walFolder(directory)).toBe('/srv/data/wal')
})

test('a node is formed once, and one that joined notes that it became a voter', () => {
  const { disk, directory } = open()
  writeCluster(directory, { ...CLUSTER, isFounder: false })
  expect(() => writeCluster(directory, CLUSTER)).toThrow('a node is formed once')
  noteVoter(directory)
  expect(directory.cluster).toEqual({ ...CLUSTER, isFounder: false, wasVoter: true })
  expect(readCluster(disk, PATH)).toEqual(directory.cluster)

  const founder = open().directory
  expect(() => noteVoter(founder)).toThrow('founders are voters')
  writeCluster(founder, CLUSTER)
  expect(() => noteVoter(founder)).toThrow('founders are voters')
})

test('a renewed identity is another incarnation of the same node', () => {
  const { disk, directory } = open()
  const before = directory.identity
  renewIdentity(directory)
  expect(directory.identity.nodeId).toBe('n1')
  expect(directory.identity.incarnation).not.toBe(before.incarnation)
  closeDataDirectory(directory)
  expect(open(restart(disk)).directory.identity).toEqual(directory.identity)
})

// CLEAN

test('CLEAN has the time of the stop, and is deleted once', () => {
  const { disk, directory } = open()
  expect(writeClean(directory)).toBe(true)
  expect(new TextDecoder().decode(contentOf(disk, `${PATH}/CLEAN`))).toContain(
    `{"stoppedAtMs":${Date.UTC(2026, 0, 15, 12)}}`,
  )
  // A run that did not find it leaves it.
  beginWriting(directory)
  expect(disk.list(PATH)).toContain('CLEAN')
  closeDataDirectory(directory)
  const next = open(restart(disk)).directory
  beginWriting(next)
  expect(next.env.disk.list(PATH)).not.toContain('CLEAN')
  beginWriting(next)
})

test('without room for CLEAN the stop is not clean, and any other failure ends the process', () => {
  const { disk, directory, simulation } = open()
  disk.fault = ({ call }) => (call === 'create' ? { kind: 'fail', code: 'ENOSPC' } : undefined)
  expect(writeClean(directory)).toBe(false)
  expect(simulation.lines.at(-1)?.message).toContain('no room for CLEAN')
  disk.fault = ({ call }) => (call === 'write' ? { kind: 'fail', code: 'EIO' } : undefined)
  expect(() => writeClean(directory)).toThrow(codeOf('disk_failed'))
})

// Reserve

test('the reserve is made with three times its size free, and as large as requested', () => {
  const { disk, directory } = open()
  const used = disk.capacityBytes - disk.space(PATH).freeBytes
  disk.capacityBytes = used + 3 * 8_192 - 1
  expect([ensureReserve(directory, 8_192), disk.stat(`${PATH}/reserve.bin`)]).toEqual([false, undefined])
  disk.capacityBytes = used + 3 * 8_192
  expect([ensureReserve(directory, 8_192), disk.stat(`${PATH}/reserve.bin`)?.bytes]).toEqual([true, 8_192])
  // One that is as large is kept; a smaller one is made again.
  const before = disk.operations.length
  expect([ensureReserve(directory, 8_192), ensureReserve(directory, 8_191)]).toEqual([true, true])
  expect(disk.operations.slice(before).map(({ call }) => call)).toEqual(['stat', 'stat'])
  disk.capacityBytes = 1e9
  expect([ensureReserve(directory, 8_193), disk.stat(`${PATH}/reserve.bin`)?.bytes]).toEqual([true, 8_193])
  const large = 2 * 1024 * 1024 + 5
  expect([ensureReserve(directory, large), disk.stat(`${PATH}/reserve.bin`)?.bytes]).toEqual([true, large])
  expect(disk.openFiles()).toBe(0)
})

test('a reserve that does not fit is removed, and a failing disk ends the process', () => {
  for (const call of ['create', 'write'] as const) {
    const { disk, directory } = open()
    disk.fault = (operation) => (operation.call === call ? { kind: 'fail', code: 'ENOSPC' } : undefined)
    expect(ensureReserve(directory, 8_192)).toBe(false)
    expect([disk.list(PATH).includes('reserve.bin'), disk.openFiles()]).toEqual([false, 0])
    disk.fault = (operation) => (operation.call === call ? { kind: 'fail', code: 'EIO' } : undefined)
    expect(() => ensureReserve(directory, 8_192)).toThrow(codeOf('disk_failed', { operation: 'making', reason: 'EIO' }))
  }
  const { directory, simulation } = open()
  expect(releaseReserve(directory)).toBe(false)
  ensureReserve(directory, 100)
  expect(releaseReserve(directory)).toBe(true)
  expect(simulation.lines.at(-1)).toMatchObject({ level: 'warn', fields: { file: `${PATH}/reserve.bin` } })
})

test('a small write uses the room of the reserve, once', () => {
  const { disk, directory } = open()
  ensureReserve(directory, 8_192)
  let creates = 0
  disk.fault = ({ call }) => (call === 'create' && creates++ === 0 ? { kind: 'fail', code: 'ENOSPC' } : undefined)
  writeCluster(directory, CLUSTER)
  expect([readCluster(disk, PATH), disk.list(PATH).includes('reserve.bin')]).toEqual([CLUSTER, false])

  const other = open()
  other.disk.fault = ({ call }) => (call === 'create' ? { kind: 'fail', code: 'ENOSPC' } : undefined)
  expect(() => writeCluster(other.directory, CLUSTER)).toThrow(codeOf('no_room', { directory: PATH }))
  expect(other.directory.cluster).toBeUndefined()
})

// Quarantine and suspicion

test('data set aside within one second has a number, and can be put back', () => {
  const { disk, directory } = open()
  const places: string[] = []
  for (const text of ['one', 'two', 'three']) {
    put(disk, 'CLUSTER', text)
    places.push(setAside(directory, ['nothing', 'CLUSTER'], 'Codecs changed!'))
  }
  const first = 'quarantine/20260115T120000Z-codecs-changed'
  expect(places).toEqual([first, `${first}-2`, `${first}-3`])
  expect(disk.list(PATH)).not.toContain('CLUSTER')
  put(disk, 'CLUSTER', 'four')

  expect(restoreAside(directory, `${first}-2`.slice('quarantine/'.length))).toBe('quarantine/20260115T120000Z-replaced')
  const textOf = (path: string) => new TextDecoder().decode(contentOf(disk, `${PATH}/${path}`))
  expect([textOf('CLUSTER'), textOf('quarantine/20260115T120000Z-replaced/CLUSTER')]).toEqual(['two', 'four'])
  expect(disk.list(`${PATH}/${first}-2`)).toEqual([])
  expect(setAside(directory, ['nothing'], 'x')).toBe('')
})

test('a reason has at most 40 characters in a name', () => {
  const { disk, directory } = open()
  put(disk, 'wal/a', 'one')
  expect(setAside(directory, ['wal'], 'a'.repeat(41))).toBe(`quarantine/20260115T120000Z-${'a'.repeat(40)}`)
})

test('a suspicion is kept with its reason', () => {
  const { simulation } = open()
  const { env } = simulation
  expect(readSuspect(env, PATH)).toBeUndefined()
  noteSuspect(env, PATH, 'entry 7 differs')
  expect(readSuspect(env, PATH)).toBe('entry 7 differs')
  noteSuspect(env, PATH, 'x'.repeat(5_000))
  expect(readSuspect(env, PATH)).toBe('x'.repeat(4_096))
  expect(simulation.disk.openFiles()).toBe(0)
})

// Lock

test('the running owner of a folder is known by process, start and boot', () => {
  const { disk, simulation, directory } = open()
  const { env } = simulation
  expect(ownerOf(env, PATH)).toBe(100)
  expect(ownerOf({ ...env, host: { ...env.host, bootId: 'other' } }, PATH)).toBe(0)
  expect(ownerOf({ ...env, host: { ...env.host, startOf: () => 'other' } }, PATH)).toBe(0)
  const owner = { processId: 100, startedAt: 'start-of-100', bootId: 'simulated-boot' }
  for (const other of [{ processId: '100' }, { startedAt: 1 }, { bootId: null }]) {
    put(disk, 'LOCK', stateFile('LOCK', JSON.stringify({ ...owner, ...other })))
    expect(ownerOf(env, PATH)).toBe(0)
  }
  // A lock that is no longer the own one stays.
  closeDataDirectory(directory)
  expect(disk.list(PATH)).toContain('LOCK')
  disk.unlink(`${PATH}/LOCK`)
  closeDataDirectory(directory)
  expect(ownerOf(env, PATH)).toBe(0)
})

test('taking over a stale lock leaves nothing and is reported', () => {
  const { disk } = open()
  const { simulation } = open(restart(disk), 101)
  expect(simulation.lines).toEqual([
    { level: 'warn', fields: { process: 100 }, message: 'took over the lock of a dead process' },
  ])
  expect(disk.list(PATH)).toEqual(['IDENTITY', 'LOCK', 'snapshots', 'wal'])
  put(disk, 'LOCK', 'half')
  const again = open(restart(disk), 102)
  expect(again.simulation.lines).toEqual([])
})

test('a folder whose lock comes and goes counts as in use after a few tries', () => {
  const { disk } = open()
  disk.unlink(`${PATH}/LOCK`)
  const again = restart(disk)
  let tries = 0
  again.fault = ({ call, path }) => {
    if (call !== 'create' || !path.endsWith('LOCK')) return undefined
    tries++
    return { kind: 'fail', code: 'EEXIST' }
  }
  expect(() => open(again, 101)).toThrow(codeOf('directory_in_use', { pid: 'unknown' }))
  expect(tries).toBe(5)
})

// Failures of the disk

test.each<[string, string, string]>([
  ['EROFS', 'invalid_config', 'is on a file system that is mounted read-only'],
  ['EACCES', 'invalid_config', 'is not writable for this user'],
  ['EPERM', 'invalid_config', 'is not writable for this user'],
  ['ENOENT', 'invalid_config', 'cannot be created'],
  ['ENOTDIR', 'invalid_config', 'is not a folder'],
  ['ENOSPC', 'no_room', ''],
  ['EDQUOT', 'no_room', ''],
  ['EIO', 'disk_failed', 'EIO'],
])('a folder that cannot be made for %s is %s', (code, expected, text) => {
  const disk = createSimulatedDisk()
  disk.fault = ({ call }) => (call === 'makeDirectory' ? { kind: 'fail', code } : undefined)
  expect(() => open(disk)).toThrow(codeOf(expected))
  expect(() => open(disk)).toThrow(text)
})

test('only a failed disk keeps the lock of a start that failed', () => {
  for (const [code, isKept] of [
    ['EIO', true],
    ['EACCES', false],
    ['ENOSPC', false],
  ] as const) {
    const disk = createSimulatedDisk()
    disk.fault = ({ call, path }) => (call === 'create' && !path.endsWith('LOCK') ? { kind: 'fail', code } : undefined)
    expect(() => open(disk)).toThrow()
    expect(disk.list(PATH).includes('LOCK'), code).toBe(isKept)
  }
})

test('parents are synced before the node is formed; one that cannot be read was there before', () => {
  const { disk, directory } = open()
  const synced = (on: SimulatedDisk) =>
    on.operations.filter(({ call }) => call === 'syncDirectory').map(({ path }) => path)
  expect(synced(disk)).toEqual(expect.arrayContaining([PATH, '/srv', '/']))
  writeCluster(directory, CLUSTER)
  closeDataDirectory(directory)
  const formed = restart(disk)
  open(formed)
  expect(synced(formed)).not.toContain('/srv')

  for (const [code, isFatal] of [
    ['EACCES', false],
    ['EPERM', false],
    ['EIO', true],
  ] as const) {
    const fresh = createSimulatedDisk()
    fresh.fault = ({ call, path }) => (call === 'syncDirectory' && path === '/' ? { kind: 'fail', code } : undefined)
    if (isFatal) expect(() => open(fresh)).toThrow(codeOf('disk_failed'))
    else expect(open(fresh).directory.path).toBe(PATH)
  }
})
