import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { readFully, readSmallFile, replaceFile, syncFile, writeFully } from '../env.ts'
import { contentOf, crash, crashOutcomes, createSimulatedDisk, restart, type SimulatedDisk } from './disk.ts'

const bytes = (...values: number[]) => Uint8Array.from(values)

function write(disk: SimulatedDisk, path: string, content: Uint8Array): number {
  const file = disk.stat(path) ? disk.open(path, 'write') : disk.open(path, 'create')
  writeFully(disk, file, content, 0, content.length, 0)
  return file
}

test('a file that was synced with its name survives every crash', () => {
  const disk = createSimulatedDisk()
  const file = write(disk, '/a', bytes(1, 2, 3))
  disk.syncData(file)
  disk.syncDirectory('/')
  writeFully(disk, file, bytes(9), 0, 1, 1)

  const after = crash(disk, () => false)

  expect([...contentOf(after, '/a')]).toEqual([1, 2, 3])
})

test('a file that was synced without its folder may lose its name', () => {
  const disk = createSimulatedDisk()
  disk.syncData(write(disk, '/a', bytes(1)))

  expect(crash(disk, () => false).stat('/a')).toBeUndefined()
  expect(crash(disk, () => true).stat('/a')?.bytes).toBe(1)
})

test('a length may survive without the bytes, and a later sector without an earlier one', () => {
  const disk = createSimulatedDisk()
  const file = write(disk, '/a', new Uint8Array(0))
  disk.syncData(file)
  disk.syncDirectory('/')
  writeFully(disk, file, new Uint8Array(1024).fill(7), 0, 1024, 0)

  const found = new Set<string>()
  for (const after of crashOutcomes(disk, createRandom(1), 20)) {
    const content = contentOf(after, '/a')
    found.add(`${content.length}:${content[0] ?? '-'}:${content[600] ?? '-'}`)
  }

  expect([...found].sort()).toEqual(['0:-:-', '1024:0:0', '1024:0:7', '1024:7:0', '1024:7:7'])
})

test('a rename is atomic', () => {
  const disk = createSimulatedDisk()
  disk.syncData(write(disk, '/a', bytes(1)))
  disk.syncDirectory('/')
  disk.rename('/a', '/b')

  const found = [...crashOutcomes(disk, createRandom(1), 5)].map((after) => after.list('/').join())

  expect(found.sort()).toEqual(['a', 'b'])
})

test.each([
  ['/file', '/empty', 'EISDIR'],
  ['/empty', '/file', 'ENOTDIR'],
  ['/empty', '/full', 'ENOTEMPTY'],
  ['/file', '/full', 'ENOTEMPTY'],
  ['/full', '/empty', undefined],
  ['/file', '/full/x', undefined],
])('%s renamed to %s: %s', (from, to, code) => {
  const disk = createSimulatedDisk()
  for (const folder of ['/full', '/empty']) disk.makeDirectory(folder)
  for (const file of ['/file', '/full/x']) write(disk, file, bytes(1))

  if (code === undefined) disk.rename(from, to)
  else expect(() => disk.rename(from, to)).toThrow(expect.objectContaining({ code }))

  expect(disk.stat(from) === undefined).toBe(code === undefined)
})

test('a crash never loses a file moved between folders; the move needs a sync of both, the target first', () => {
  const start = () => {
    const disk = createSimulatedDisk()
    disk.makeDirectory('/x')
    disk.makeDirectory('/y')
    disk.syncDirectory('/')
    disk.syncData(write(disk, '/x/a', bytes(1)))
    disk.syncDirectory('/x')
    disk.rename('/x/a', '/y/b')
    return disk
  }
  const outcomes = (disk: SimulatedDisk) => {
    const found = [...crashOutcomes(disk, createRandom(1), 5)].map((after) => [
      ...after.list('/x'),
      ...after.list('/y'),
    ])
    return [...new Set(found.map((names) => names.join()))].sort()
  }

  expect(outcomes(start())).toEqual(['a', 'a,b', 'b'])
  const target = start()
  target.syncDirectory('/y')
  expect(outcomes(target)).toEqual(['a,b', 'b'])
  target.syncDirectory('/x')
  expect(outcomes(target)).toEqual(['b'])
  const source = start()
  source.syncDirectory('/x')
  expect(outcomes(source)).toEqual(['', 'b'])
})

test('a new process sees unsynced changes', () => {
  const disk = createSimulatedDisk()
  write(disk, '/a', bytes(1, 2))

  expect([...contentOf(restart(disk), '/a')]).toEqual([1, 2])
})

test('after a failed sync the data may be lost even if the next one succeeds', () => {
  const disk = createSimulatedDisk()
  const file = write(disk, '/a', bytes(1))
  disk.syncDirectory('/')
  disk.fault = ({ call }) => (call === 'syncData' ? { kind: 'fail', code: 'EIO' } : undefined)

  expect(() => disk.syncData(file)).toThrow('EIO')

  disk.fault = () => undefined
  disk.syncData(file)
  expect(
    contentOf(
      crash(disk, () => false),
      '/a',
    ),
  ).toHaveLength(0)
})

test('a full disk accepts a part of a write, then none, and still overwrites existing bytes', () => {
  const disk = createSimulatedDisk({ capacityBytes: 1024 })
  const file = disk.open('/a', 'create')

  expect(disk.write(file, new Uint8Array(2000), 0, 2000, 0)).toBe(1024)
  expect(() => disk.write(file, new Uint8Array(10), 0, 10, 1024)).toThrow('ENOSPC')
  expect(disk.write(file, bytes(5), 0, 1, 3)).toBe(1)
  expect(disk.space('/').freeBytes).toBe(0)
})

test('short writes are continued and interrupted ones repeated', () => {
  const disk = createSimulatedDisk()
  const file = disk.open('/a', 'create')
  const answers = [
    { kind: 'short', bytes: 2 },
    { kind: 'fail', code: 'EINTR' },
    { kind: 'short', bytes: 1 },
  ] as const
  let at = 0
  disk.fault = ({ call }) => (call === 'write' ? answers[at++] : undefined)

  writeFully(disk, file, bytes(1, 2, 3, 4, 5), 0, 5, 0)

  const read = new Uint8Array(9)
  expect(readFully(disk, file, read, 0, 9, 0)).toBe(5)
  expect([...read.subarray(0, 5)]).toEqual([1, 2, 3, 4, 5])
})

test('a replaced file is the old or the new one after every crash', () => {
  const disk = createSimulatedDisk()
  replaceFile(disk, '/f', bytes(1, 1, 1))
  for (let stop = disk.operations.length; ; stop++) {
    const trial = restart(crash(disk, () => true))
    let number = 0
    trial.fault = () => (number++ === stop - disk.operations.length ? { kind: 'crash' } : undefined)
    let isDone = false
    try {
      replaceFile(trial, '/f', bytes(2, 2))
      isDone = true
    } catch {
      // The injected crash.
    }

    for (const after of crashOutcomes(trial, createRandom(stop), 10)) {
      const text = String(readSmallFile(after, '/f', 100))
      expect(isDone ? ['2,2'] : ['1,1,1', '2,2']).toContain(text)
    }
    if (isDone) return
  }
})

test('a failed sync throws disk_failed, a full disk throws disk_full', () => {
  const disk = createSimulatedDisk()
  const file = disk.open('/a', 'create')
  disk.fault = ({ call }) => (call === 'syncData' ? { kind: 'fail', code: 'EIO' } : undefined)
  expect(() => syncFile(disk, file, '/a')).toThrow(expect.objectContaining({ code: 'disk_failed' }))

  disk.fault = ({ call }) => (call === 'write' ? { kind: 'fail', code: 'ENOSPC' } : undefined)
  expect(() => replaceFile(disk, '/b', bytes(1))).toThrow(expect.objectContaining({ code: 'ENOSPC' }))
  expect(disk.list('/')).toEqual(['a'])
})
