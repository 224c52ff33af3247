import { createHash } from 'node:crypto'
import { createCodecList } from '@vacancy/shared'
import { expect, test } from 'vitest'
import {
  contentOf,
  copyDisk,
  crash,
  createSimulatedDisk,
  cut,
  damage,
  fillDisk,
  picture,
  restart,
  type SimulatedDisk,
  shareDisk,
} from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { crc32c } from '../wal/crc32c.ts'
import {
  beginWriting,
  type Cluster,
  checkLock,
  closeDataDirectory,
  createCluster,
  type DataDirectory,
  ensureReserve,
  logIdentity,
  openDataDirectory,
  readCluster,
  releaseReserve,
  requireFree,
  setAside,
  writeClean,
  writeCluster,
} from './data-directory.ts'

const PATH = '/srv/vacancy/data'
const CODECS = createCodecList(['breakfast', 'wifi'])
const codeOf = (code: string, fields: object) =>
  expect.objectContaining({ code, fields: expect.objectContaining(fields) })
const sha256 = (bytes: Uint8Array) => Uint8Array.from(createHash('sha256').update(bytes).digest())

const GENESIS = {
  shardId: 's1',
  codecs: CODECS,
  base: { index: 1, term: 1 },
  snapshotDigest: 'abcd',
  voters: ['n1'],
}

function open(disk = createSimulatedDisk(), processId = 100, nodeId = 'n1', processes?: Map<number, string>) {
  const simulation = createSimulation({ disk, processId, seed: processId, ...(processes && { processes }) })
  return { simulation, disk, directory: openDataDirectory(simulation.env, PATH, { nodeId }) }
}

/** Names in the folder except those of the lock, which are never synced and void after a reboot. */
function namesOf(disk: SimulatedDisk): string[] {
  return disk.list(PATH).filter((name) => !/^lock/i.test(name))
}

function formed(): { disk: SimulatedDisk; directory: DataDirectory } {
  const { disk, directory } = open()
  writeCluster(directory, createCluster(GENESIS, sha256))
  return { disk, directory }
}

test('a folder is created with its parents and survives an immediate crash', () => {
  const { disk, directory } = open()
  const after = crash(disk, () => false)

  expect(namesOf(after)).toEqual(['IDENTITY', 'snapshots', 'wal'])
  expect(directory).toMatchObject({ cluster: undefined, isClean: false, identity: { nodeId: 'n1' } })
  expect(directory.identity.incarnation).toMatch(/^[0-9a-f]{32}$/)
  expect(open(after).directory.identity).toEqual(directory.identity)
})

test('a folder that another node creates at the same moment is used', () => {
  const disk = createSimulatedDisk()
  const made = disk.makeDirectory.bind(disk)
  let others = 0
  disk.makeDirectory = (path) => {
    if (path === '/srv/vacancy' && others++ === 0) made(path)
    made(path)
  }

  const { directory } = open(disk)

  expect(others).toBe(1)
  expect(directory.path).toBe(PATH)
  expect(disk.stat(PATH)?.isDirectory).toBe(true)
})

test('a wiped folder gets another incarnation', () => {
  const first = open(createSimulatedDisk(), 100).directory.identity.incarnation
  const second = open(createSimulatedDisk(), 101).directory.identity.incarnation
  expect(first).not.toBe(second)
})

test('the genesis is a pure function of the values that the voters agree on', () => {
  const cluster = createCluster({ ...GENESIS, voters: ['b', 'a'] }, sha256)
  expect(cluster).toEqual(createCluster({ ...GENESIS, voters: ['a', 'b'] }, sha256))
  const others = [
    { shardId: 's2' },
    { voters: ['a', 'b', 'c'] },
    { snapshotDigest: '' },
    { base: { index: 2, term: 1 } },
    { base: { index: 1, term: 2 } },
  ]
  const ids = others.map((other) => createCluster({ ...GENESIS, voters: ['a', 'b'], ...other }, sha256).clusterId)
  expect(new Set([cluster.clusterId, ...ids]).size).toBe(others.length + 1)
})

test('a formed node finds its genesis again, whole', () => {
  const { disk, directory } = formed()
  const again = open(crash(disk, () => false)).directory

  expect(again.cluster).toEqual(directory.cluster)
  expect(again.cluster?.codecs).toEqual(['breakfast', 'wifi'])
  const identity = logIdentity(again, again.cluster as NonNullable<typeof again.cluster>)
  expect([identity.clusterId.length, identity.incarnation.length, identity.codecHash.length]).toEqual([16, 16, 32])
})

test('a second process is refused and changes nothing, whatever it knows of processes', () => {
  const { disk } = open()
  const before = picture(disk)
  const inUse = expect.objectContaining({ code: 'directory_in_use', fields: { directory: PATH, pid: 100 } })

  expect(() => open(shareDisk(disk), 101)).toThrow(inUse)
  // The same process id, in another PID namespace.
  expect(() => open(shareDisk(disk), 100)).toThrow(inUse)
  expect(() => requireFree(createSimulation({ disk: shareDisk(disk) }).env, PATH)).toThrow(inUse)
  expect(picture(disk)).toEqual(before)
})

test('the lock of a dead process, whose id may be in use again, does not count', () => {
  const { disk } = open()
  expect(open(restart(disk), 101).directory.identity.nodeId).toBe('n1')
  expect(open(restart(disk), 102, 'n1', new Map([[101, 'start-of-101']])).directory).toBeDefined()
  cut(disk, `${PATH}/LOCK`, 5)
  expect(open(restart(disk), 103).directory).toBeDefined()
})

test('a process of an earlier release, which has only LOCK, keeps its folder', () => {
  const { disk, directory } = open()
  closeDataDirectory(directory)
  disk.unlink(`${PATH}/lock.db`)
  const owner = { processId: 7, startedAt: 'start-of-7', bootId: 'simulated-boot' }
  put(disk, 'LOCK', stateFile('LOCK', `${JSON.stringify(owner)}\n`))

  expect(() => open(restart(disk), 101, 'n1', new Map([[7, 'start-of-7']]))).toThrow(
    codeOf('directory_in_use', { pid: 7 }),
  )
  expect(open(restart(disk), 102).directory).toBeDefined()
})

test('a process whose lock was deleted notices it, and does not touch the lock of the next one', () => {
  const { disk, directory } = open()
  checkLock(directory)
  disk.unlink(`${PATH}/lock.db`)
  const next = open(shareDisk(disk), 101)

  expect(() => checkLock(directory)).toThrow(codeOf('lock_lost', { file: `${PATH}/lock.db` }))
  closeDataDirectory(directory)
  checkLock(next.directory)
  expect(() => open(shareDisk(disk), 102)).toThrow(codeOf('directory_in_use', { pid: 101 }))
})

test('a clean shutdown leaves CLEAN and no lock; the next run deletes CLEAN before it writes', () => {
  const { disk, directory } = formed()
  writeClean(directory)
  closeDataDirectory(directory)
  const stopped = crash(disk, () => false)
  expect(namesOf(stopped)).toEqual(['CLEAN', 'CLUSTER', 'IDENTITY', 'snapshots', 'wal'])

  const next = open(stopped)
  expect(next.directory.isClean).toBe(true)
  beginWriting(next.directory)

  expect(open(crash(next.disk, () => false)).directory.isClean).toBe(false)
})

test('a folder of another node is refused (65)', () => {
  const { disk, directory } = open()
  closeDataDirectory(directory)
  expect(() => open(restart(disk), 101, 'n2')).toThrow(expect.objectContaining({ code: 'data_conflict' }))
  expect(disk.list(PATH)).not.toContain('LOCK')
})

test.each([
  ['EROFS', 'invalid_config', 'is on a file system that is mounted read-only'],
  ['EACCES', 'invalid_config', 'is not writable for this user'],
  ['EPERM', 'invalid_config', 'is not writable for this user'],
  ['ENOENT', 'invalid_config', 'cannot be created'],
  ['ENOTDIR', 'invalid_config', 'is not a folder'],
  ['ENOSPC', 'no_room', ''],
  ['EDQUOT', 'no_room', ''],
  ['EIO', 'disk_failed', 'EIO'],
])('a folder that cannot be created or written (%s) is refused as %s', (code, expected, text) => {
  const written = copyDisk(formed().disk)
  for (const disk of ['EROFS', 'EACCES'].includes(code) ? [createSimulatedDisk(), written] : [createSimulatedDisk()]) {
    disk.fault = ({ call }) => (call === 'create' || call === 'makeDirectory' ? { kind: 'fail', code } : undefined)
    expect(() => open(disk)).toThrow(expect.objectContaining({ code: expected }))
    expect(() => open(disk)).toThrow(text)
  }
})

test('a file in the place of a parent of the folder is named as no folder', () => {
  const file = createSimulatedDisk()
  file.open('/srv', 'create')
  expect(() => open(file)).toThrow('is not a folder')
})

test('a node starts on a full disk by releasing the reserve, and reports when there is none', () => {
  const { disk, directory } = formed()
  expect(ensureReserve(directory, 4096)).toBe(true)
  closeDataDirectory(directory)
  const full = fillDisk(restart(disk))

  const { simulation, directory: again } = open(full)
  expect(simulation.lines.some(({ message }) => message.includes('reserve released'))).toBe(true)
  expect(again.cluster).toBeDefined()
  closeDataDirectory(again)
  expect(() => open(fillDisk(restart(full)))).toThrow(expect.objectContaining({ code: 'no_room' }))
})

test('the reserve is created when there is room, released once, and never fills the disk', () => {
  const { disk, directory } = formed()
  expect(ensureReserve(directory, 8192)).toBe(true)
  expect(disk.stat(`${PATH}/reserve.bin`)?.bytes).toBe(8192)
  expect(releaseReserve(directory)).toBe(true)
  expect(releaseReserve(directory)).toBe(false)

  disk.capacityBytes = 20_000
  expect(ensureReserve(directory, 8192)).toBe(false)
  expect(disk.list(PATH)).not.toContain('reserve.bin')
})

test('data is set aside whole, in order, and durably', () => {
  const { disk, directory } = formed()
  const file = disk.open(`${PATH}/wal/a`, 'create')
  disk.write(file, Uint8Array.of(1), 0, 1, 0)
  disk.syncData(file)
  disk.syncDirectory(`${PATH}/wal`)

  const place = setAside(directory, ['wal', 'nothing', 'CLUSTER'], 'codecs-changed')

  expect(place).toBe('quarantine/20260115T120000Z-codecs-changed')
  const after = crash(disk, () => false)
  expect(namesOf(after)).toEqual(['IDENTITY', 'quarantine', 'snapshots'])
  expect(after.list(`${PATH}/${place}/wal`)).toEqual(['a'])
  expect(setAside(directory, ['nothing', 'CLUSTER'], 'codecs-changed')).toBe('')
  expect(disk.list(`${PATH}/wal`)).toEqual([])
})

test('a long reason becomes a short name that can be typed', () => {
  const { directory } = formed()

  const place = setAside(directory, ['CLUSTER'], `/data/wal is damaged: ${'breakfast, '.repeat(40)}`)

  expect(place).toBe('quarantine/20260115T120000Z-data-wal-is-damaged-breakfast-breakfast-')
})

test('each damaged byte of IDENTITY and CLUSTER is refused with exit code 71, or has no effect', () => {
  const { disk, directory } = formed()
  closeDataDirectory(directory)
  const whole = open(copyDisk(disk)).directory
  for (const name of ['IDENTITY', 'CLUSTER']) {
    const bytes = contentOf(disk, `${PATH}/${name}`)
    for (let at = 0; at < bytes.length; at++) {
      const copy = copyDisk(disk)
      damage(copy, `${PATH}/${name}`, at, Uint8Array.of(bytes[at] ^ (1 << (at % 8))))
      expect(() => open(copy)).toThrow(expect.objectContaining({ code: 'corrupt_data' }))
      cut(copy, `${PATH}/${name}`, at)
      expect(() => open(copy)).toThrow(expect.objectContaining({ code: 'corrupt_data' }))
    }
  }
  expect(whole.identity).toEqual(directory.identity)
})

test('CLUSTER without IDENTITY is damage: a new incarnation would not know its votes', () => {
  const { disk, directory } = formed()
  closeDataDirectory(directory)
  disk.unlink(`${PATH}/IDENTITY`)
  expect(() => open(restart(disk))).toThrow('IDENTITY')
})

test('with a damaged CLEAN the last shutdown counts as unclean', () => {
  const { disk, directory } = formed()
  writeClean(directory)
  closeDataDirectory(directory)
  damage(disk, `${PATH}/CLEAN`, 30, Uint8Array.of(0))
  expect(open(restart(disk)).directory.isClean).toBe(false)
})

// Format

const CLUSTER = {
  clusterId: '0123456789abcdef0123456789abcdef',
  shardId: 's1',
  codecs: ['breakfast', 'wifi'],
  codecHash: 'ab'.repeat(32),
  baseIndex: 7,
  baseTerm: 2,
  voters: ['n1', 'n2'],
} satisfies Cluster

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
