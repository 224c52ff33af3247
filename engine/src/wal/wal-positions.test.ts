/** Exact limits and positions of a log: what fits a file, what a full disk still takes, what a restart finds. */

import { createRandom, type Random } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { ENTRY_BYTES_MAX, ENTRY_HEADER_BYTES } from '../raft/entry.ts'
import { contentOf, copyDisk, crash, cut, damage, restart, type SimulatedDisk } from '../testing/disk.ts'
import { batchTexts, entries, IDENTITY, replayTexts, SMALL, tryOpen } from '../testing/log-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createWal, type OpenOptions, openWal, recoveredTerm } from './open.ts'
import { FILE_HEADER_BYTES, recordBytes } from './record.ts'
import {
  appendGroup,
  buildWal,
  closeWal,
  compactWal,
  fitsGroup,
  GROUP_BYTES_MAX,
  type Group,
  installWal,
  isFull,
  lastFile,
  prepareNext,
  retryNext,
  startFile,
  type Wal,
  walBytes,
} from './wal.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const DIRECTORY = '/wal'
const FILE_BYTES = 8192
const RESERVE_BYTES = 512
const HEAD_BYTES = FILE_HEADER_BYTES + recordBytes(64) + recordBytes(24) + recordBytes(16)
const STATE_BYTES = recordBytes(24)
const END_BYTES = recordBytes(8)

function begin(base = { index: 0, term: 0 }, options = SMALL) {
  const simulation = createSimulation()
  simulation.disk.makeDirectory(DIRECTORY)
  simulation.disk.syncDirectory('/')
  return { disk: simulation.disk, wal: createWal(simulation.env, DIRECTORY, IDENTITY, base, options) }
}

function reopen(disk: SimulatedDisk, options: Partial<OpenOptions> = {}) {
  const simulation = createSimulation({ disk })
  return { simulation, ...openWal(simulation.env, DIRECTORY, IDENTITY, { ...SMALL, isClean: false, ...options }) }
}

const hardState = (term: number, commit: number, vote = 1) => ({ term, vote, commit })

/** One entry whose record has so many bytes. */
function entryOf(wal: Wal, bytes: number, term = 1) {
  const batch = entries(wal.lastIndex + 1, 1, term, bytes - recordBytes(0) - 12 - ENTRY_HEADER_BYTES)
  expect(recordBytes(12 + batch.bytes.length)).toBe(bytes)
  return batch
}

/** What a restart must find as it was. */
function standOf({ sequence, chain, group, hardState, mark, lastIndex, offset, isEnded, files }: Wal) {
  return { sequence, chain, group, hardState, mark, lastIndex, offset, isEnded, files }
}

test('a log begins with one file, its first group and the promises of its snapshot', () => {
  const { disk, wal } = begin({ index: 41, term: 3 })
  expect(standOf(wal)).toMatchObject({
    ...{ sequence: 3, group: 1, lastIndex: 41, offset: HEAD_BYTES, isEnded: false },
    ...{ hardState: { term: 3, vote: 0, commit: 41 }, mark: { index: 41, term: 3 } },
  })
  const path = `${DIRECTORY}/wal-0000000001-0000000000000042.log`
  expect(wal.files).toEqual([{ path, sequence: 1, firstIndex: 42, bytes: FILE_BYTES, lastIndex: 41 }])
  expect(disk.list(DIRECTORY)).toEqual(['wal-0000000001-0000000000000042.log'])
  expect(disk.stat(path)?.bytes).toBe(FILE_BYTES)
})

test('a log file holds more than its reserve, and the reserve more than an end', () => {
  const { disk } = createSimulation()
  const least = HEAD_BYTES + 8 * END_BYTES
  const build = (fileBytes: number, reserveBytes: number) => buildWal(disk, '/', IDENTITY, { fileBytes, reserveBytes })
  expect(build(least, 4 * END_BYTES).groupBytesMax).toBe(2 * END_BYTES)
  expect(() => build(least - 1, 4 * END_BYTES)).toThrow('a log file holds more than its reserve')
  expect(() => build(FILE_BYTES, 4 * END_BYTES - 1)).toThrow('the reserve holds an end record')
})

test('a group takes batches up to its limit, and one of any size', () => {
  const { disk } = createSimulation()
  const small = buildWal(disk, '/', IDENTITY, SMALL)
  const large = buildWal(disk, '/', IDENTITY, {})
  expect(small.groupBytesMax).toBe((FILE_BYTES - HEAD_BYTES - RESERVE_BYTES) / 2)
  expect(large.groupBytesMax).toBe(GROUP_BYTES_MAX)
  for (const wal of [small, large]) {
    const batch = entries(1, 1, 1, 100)
    const rest = wal.groupBytesMax - batch.bytes.length
    expect([rest - 1, rest, rest + 1, 1e9, 0].map((bytes) => fitsGroup(wal, bytes, batch))).toEqual([
      ...[true, true, false, false, true],
    ])
    expect(fitsGroup(wal, 0, entries(1, 3, 1, GROUP_BYTES_MAX))).toBe(true)
  }
})

test('a group that fits before the reserve stays in its file; eight bytes more begin the next one', () => {
  const room = FILE_BYTES - RESERVE_BYTES - HEAD_BYTES - STATE_BYTES
  for (const [bytes, files] of [
    [room, 1],
    [room + 8, 2],
  ] as const) {
    const { disk, wal } = begin()
    appendGroup(wal, { hardState: hardState(1, 0), batches: [] })
    const used = wal.offset - HEAD_BYTES
    appendGroup(wal, { batches: [entryOf(wal, bytes - used)] })
    expect([wal.files.length, wal.lastIndex]).toEqual([files, 1])
    expect(wal.files.map(({ firstIndex, lastIndex }) => [firstIndex, lastIndex])).toEqual(
      files === 1
        ? [[1, 1]]
        : [
            [1, 0],
            [1, 1],
          ],
    )
    expect(standOf(reopen(copyDisk(disk)).wal)).toEqual(standOf(wal))
  }
})

test('a full disk takes votes up to the place of the end record, and nothing else', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entryOf(wal, 3_000)] })
  disk.capacityBytes = FILE_BYTES
  const offset = wal.offset
  expect(appendGroup(wal, { batches: [entryOf(wal, 3_000)] })).toBe('full')
  expect([wal.offset, wal.lastIndex, isFull(wal)]).toEqual([offset, 1, true])

  for (let term = 2; wal.offset + STATE_BYTES <= FILE_BYTES - RESERVE_BYTES; term++) {
    expect(appendGroup(wal, { hardState: hardState(term, 0), batches: [] })).toBe('stored')
  }
  const { term } = wal.hardState
  const refusals: Group[] = [
    { hardState: hardState(term, 1), batches: [] },
    { hardState: hardState(term + 1, 0), batches: [entries(2, 1, 1)] },
    { batches: [] },
  ]
  for (const group of refusals) expect(appendGroup(wal, group)).toBe('full')
  // A later vote of the same term, and a mark.
  for (const group of [
    { hardState: hardState(term + 1, 0, 0), batches: [] },
    { hardState: hardState(term + 1, 0, 7), batches: [] },
    { mark: { index: 0, term: 0 }, batches: [] },
  ]) {
    expect(appendGroup(wal, group)).toBe('stored')
  }
  let more = 0
  while (appendGroup(wal, { hardState: hardState(term + 2 + more, 0), batches: [] }) === 'stored') more++
  const left = FILE_BYTES - wal.offset
  expect(left).toBeGreaterThanOrEqual(END_BYTES)
  expect(left).toBeLessThan(END_BYTES + STATE_BYTES)
  expect(standOf(reopen(copyDisk(disk)).wal)).toEqual(standOf(wal))

  disk.capacityBytes = 1e6
  expect(retryNext(wal)).toBe(true)
  expect(appendGroup(wal, { hardState: hardState(term + 3 + more, 0), batches: [entries(2, 1, 1)] })).toBe('stored')
  expect(standOf(reopen(copyDisk(disk)).wal)).toEqual(standOf(wal))
})

test('what may follow is accepted up to its limit', () => {
  const accepted: Group[] = [
    { hardState: hardState(5, 3), batches: [] },
    { hardState: hardState(6, 5, 9), batches: [] },
    { hardState: hardState(5, 4), batches: [entries(4, 1, 5)] },
    { batches: [entries(6, 2, 5), entries(8, 1, 5)] },
    { batches: [entries(6, 2, 5), entries(7, 1, 5)] },
    { mark: { index: 3, term: 5 }, batches: [] },
  ]
  const refused: [string, Group][] = [
    ['a batch holds entries', { batches: [entries(6, 0, 5)] }],
    ['indexes are contiguous', { batches: [entries(6, 1, 5), entries(8, 1, 5)] }],
    ['a batch fits a group', { batches: [entries(6, 2, 5, GROUP_BYTES_MAX / 2 - ENTRY_HEADER_BYTES + 1)] }],
    ['an entry has at most 1 MiB', { batches: [entries(6, 1, 5, ENTRY_BYTES_MAX + 1)] }],
    ['only entries of the log are committed', { hardState: hardState(5, 5), batches: [entries(4, 1, 5)] }],
    ['snapshots go forward', { mark: { index: 1, term: 5 }, batches: [] }],
    ['the vote changes only', { hardState: hardState(5, 3, 0), batches: [] }],
  ]
  const five = () => {
    const { wal } = begin()
    appendGroup(wal, { hardState: hardState(5, 3), mark: { index: 2, term: 5 }, batches: [entries(1, 5, 5)] })
    return wal
  }
  for (const group of accepted) expect(appendGroup(five(), group)).toBe('stored')
  for (const [reason, group] of refused) expect(() => appendGroup(five(), group), reason).toThrow(reason)
})

test('a replaced tail lowers the last index of the log, not that of its file', () => {
  const { wal } = begin()
  appendGroup(wal, { hardState: hardState(2, 3), batches: [entries(1, 10, 1)] })
  appendGroup(wal, { batches: [entries(8, 1, 2)] })
  expect([wal.lastIndex, lastFile(wal).lastIndex]).toEqual([8, 10])
})

test('the next file is filled in steps, each synced, and all of it is zero', () => {
  const { disk, wal } = begin()
  const path = `${DIRECTORY}/next.tmp`
  const from = disk.operations.length
  const seen: [boolean, number][] = []
  for (let n = 0; n < 8; n++) seen.push([prepareNext(wal, 1_500), disk.stat(path)?.bytes ?? 0])

  expect(seen).toEqual([
    ...[1_500, 3_000, 4_500, 6_000, 7_500].map((bytes) => [true, bytes]),
    ...[8_192, 8_192, 8_192].map((bytes) => [false, bytes]),
  ])
  const calls = disk.operations.slice(from).filter(({ path: at }) => at === path)
  let unsynced = 0
  const synced: number[] = []
  for (const { call, bytes } of calls) {
    if (call === 'write') unsynced += bytes
    if (call !== 'syncData') continue
    synced.push(unsynced)
    unsynced = 0
  }
  expect(synced).toEqual([2_048, 2_048, 2_048, 2_048])
  expect(wal.next.state).toBe('ready')
  expect(contentOf(disk, path).every((byte) => byte === 0)).toBe(true)
  expect(walBytes(wal)).toBe(2 * FILE_BYTES)
})

test('without room the unfinished next file goes, and only a retry makes it again', () => {
  for (const call of ['create', 'write'] as const) {
    const { disk, wal } = begin()
    prepareNext(wal, call === 'write' ? 1_000 : 0)
    if (call === 'create') wal.next = { state: 'absent' }
    if (call === 'create') disk.unlink(`${DIRECTORY}/next.tmp`)
    disk.fault = (operation) => (operation.call === call ? { kind: 'fail', code: 'ENOSPC' } : undefined)
    expect(prepareNext(wal, 1_000)).toBe(false)
    expect([wal.next.state, isFull(wal), walBytes(wal)]).toEqual(['full', true, FILE_BYTES])
    expect(disk.list(DIRECTORY)).not.toContain('next.tmp')

    disk.fault = () => undefined
    expect([prepareNext(wal, 1_000), isFull(wal)]).toEqual([false, true])
    expect([retryNext(wal), isFull(wal), wal.next.state]).toEqual([true, false, 'ready'])
  }
})

test('a file goes when all its entries are below the floor, and the last one never', () => {
  const { wal } = begin()
  while (wal.files.length < 4) {
    const batches = [entries(wal.lastIndex + 1, 10, 1, 100)]
    appendGroup(wal, { hardState: hardState(1, wal.lastIndex), batches })
  }
  appendGroup(wal, { hardState: hardState(1, wal.lastIndex), batches: [] })
  const [first, second] = wal.files
  expect(compactWal(wal, first?.lastIndex ?? 0)).toBe(0)
  expect(compactWal(wal, (first?.lastIndex ?? 0) + 1)).toBe(1)
  expect(wal.files[0]).toBe(second)
  expect(() => compactWal(wal, wal.lastIndex + 2)).toThrow('only committed entries are compacted')
  expect([compactWal(wal, wal.lastIndex + 1), wal.files.length]).toEqual([2, 1])
})

test('an installed snapshot is ahead of the commit index and of no later term', () => {
  const stored = () => {
    const { disk, wal } = begin()
    appendGroup(wal, { hardState: hardState(5, 3, 2), batches: [entries(1, 5, 5)] })
    return { disk, wal }
  }
  expect(() => installWal(stored().wal, { index: 3, term: 5 })).toThrow('ahead of what is committed')
  expect(() => installWal(stored().wal, { index: 4, term: 6 })).toThrow('the term of its sender')
  const { disk, wal } = stored()
  expect(installWal(wal, { index: 4, term: 5 })).toBe(true)
  expect(standOf(wal)).toMatchObject({
    ...{ sequence: 9, group: 4, lastIndex: 4, offset: HEAD_BYTES, isEnded: false },
    ...{ hardState: { term: 5, vote: 2, commit: 4 }, mark: { index: 4, term: 5 } },
  })
  expect(wal.files).toMatchObject([{ sequence: 2, firstIndex: 5, lastIndex: 4 }])
  expect(standOf(reopen(copyDisk(disk)).wal)).toEqual(standOf(wal))
})

test('a close that cannot wipe a refused write is not clean', () => {
  for (const isWiped of [true, false]) {
    const { disk, wal } = begin()
    let writes = 0
    disk.fault = ({ call }) =>
      call === 'write' && (writes++ === 0 || !isWiped) ? { kind: 'short', bytes: 9, code: 'ENOSPC' } : undefined
    prepareNext(wal, 0)
    expect(appendGroup(wal, { hardState: hardState(1, 0), batches: [] })).toBe('full')
    expect(closeWal(wal)).toBe(isWiped)
    expect(disk.openFiles()).toBe(0)
  }
  const { wal } = begin()
  expect(closeWal(wal)).toBe(true)
})

/** A group that may follow, drawn: at times with a vote, a replaced tail, or a mark. */
function drawGroup(random: Random, wal: Wal): Group {
  const { term, commit } = wal.hardState
  const next = Math.max(1, term + (random.below(3) === 0 ? 1 : 0))
  const vote = next > term ? random.below(3) : wal.hardState.vote
  const count = random.below(5)
  const from = random.below(4) === 0 ? commit + 1 + random.below(wal.lastIndex - commit + 1) : wal.lastIndex + 1
  const batches = count > 0 ? [entries(from, count, next, random.below(300))] : []
  const last = count > 0 ? from + count - 1 : wal.lastIndex
  const upTo = commit + random.below(last - commit + 1)
  const mark = random.below(6) === 0 && upTo > wal.mark.index ? { index: upTo, term: next } : undefined
  return { hardState: { term: next, vote, commit: upTo }, batches, mark }
}

/** The texts of the entries, by index. */
function noteGroup(texts: string[], { batches }: Group): void {
  for (const batch of batches) {
    texts.length = batch.firstIndex
    texts.push(...batchTexts([batch]))
  }
}

test('a restart at any time finds the log as it was', () => {
  const random = createRandom(SEED)
  const { disk, wal } = begin()
  const texts: string[] = ['']
  for (let n = 0; n < 70; n++) {
    const group = drawGroup(random, wal)
    expect(appendGroup(wal, group)).toBe('stored')
    noteGroup(texts, group)
    if (random.below(8) === 0) prepareNext(wal, 1 + random.below(3_000))
    const floor = random.below(wal.mark.index + 1) + 1
    if (random.below(8) === 0) compactWal(wal, floor)
    const label = `seed ${SEED}, group ${n}`

    const copy = random.below(2) === 0 ? copyDisk(disk) : crash(disk, () => false)
    const { wal: again, recovered } = reopen(copy, { isClean: random.below(2) === 0 })

    expect(standOf(again), label).toEqual(standOf(wal))
    expect(replayTexts(copy, recovered.scan), label).toEqual(texts.slice(recovered.firstIndex))
    expect(recovered, label).toMatchObject({ lastIndex: wal.lastIndex, hardState: wal.hardState, tornBytes: 0 })
    expect(recovered.firstIndex, label).toBe(wal.files[0]?.firstIndex)
  }
  expect(wal.files.at(-1)?.sequence).toBeGreaterThan(2)
})

test('a disk that is full at any one operation costs nothing but a retry', () => {
  const random = createRandom(SEED)
  for (let at = 0; at < 60; at++) {
    const { disk, wal } = begin()
    const texts: string[] = ['']
    const label = `seed ${SEED}, operation ${at}`
    let calls = 0
    disk.fault = ({ call }) => {
      if (call !== 'write' && call !== 'create' && call !== 'rename') return undefined
      if (calls++ !== at) return undefined
      return call === 'write'
        ? { kind: 'short', bytes: random.below(200), code: 'ENOSPC' }
        : { kind: 'fail', code: 'ENOSPC' }
    }
    let refused = 0
    for (let n = 0; n < 9; n++) {
      const batches = [entries(wal.lastIndex + 1, 3, 1, 400)]
      const group = { hardState: hardState(1, wal.lastIndex), batches }
      let result = appendGroup(wal, group)
      if (result === 'full') {
        refused++
        const stand = standOf(reopen(copyDisk(disk)).wal)
        expect(stand, label).toMatchObject({ lastIndex: wal.lastIndex, hardState: wal.hardState })
        expect([retryNext(wal), isFull(wal)], label).toEqual([true, false])
        result = appendGroup(wal, group)
      }
      expect(result, label).toBe('stored')
      noteGroup(texts, group)
    }
    expect(refused, label).toBeLessThanOrEqual(1)
    const { wal: again, recovered } = reopen(crash(disk, () => false))
    expect(standOf(again), label).toEqual(standOf(wal))
    expect(replayTexts(copyDisk(disk), recovered.scan), label).toEqual(texts.slice(1))
  }
})

// Opening

test('the last file is made as long as the others, and a longer one keeps its length', () => {
  for (const [bytes, isClean] of [
    [6_000, true],
    [6_000, false],
    [FILE_BYTES, false],
    [9_000, false],
  ] as const) {
    const { disk, wal } = begin()
    appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
    const path = lastFile(wal).path
    cut(disk, path, Math.min(bytes, FILE_BYTES))
    const file = disk.open(path, 'write')
    if (bytes > FILE_BYTES) disk.write(file, new Uint8Array(bytes - FILE_BYTES), 0, bytes - FILE_BYTES, FILE_BYTES)
    disk.close(file)
    const { wal: again } = reopen(disk, { isClean })
    const length = Math.max(bytes, FILE_BYTES)
    expect([lastFile(again).bytes, disk.stat(path)?.bytes, walBytes(again)]).toEqual([length, length, length])
    expect(tryOpen(createSimulation({ disk }).env, DIRECTORY).texts).toEqual(batchTexts([entries(1, 5, 1)]))
  }
})

test('a torn group is cut off with its position in the log, with room for a copy or without', () => {
  for (const isFullDisk of [false, true]) {
    const { disk, wal } = begin()
    appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
    const { offset } = wal
    const { path } = lastFile(wal)
    appendGroup(wal, { batches: [entries(6, 5, 1)] })
    const tornBytes = wal.offset - offset
    damage(disk, path, offset + 20, Uint8Array.of(0, 0, 0, 0, 0, 0))
    if (isFullDisk) disk.capacityBytes = FILE_BYTES

    let verified = 0
    const { simulation, wal: again, recovered } = reopen(disk, { onVerified: () => verified++ })

    expect([recovered.tornBytes, again.offset, again.lastIndex, verified]).toEqual([tornBytes, offset, 5, 1])
    expect(simulation.lines.find(({ level }) => level === 'warn')?.fields).toEqual({ file: path, offset, tornBytes })
    expect(
      contentOf(disk, path)
        .subarray(offset)
        .every((byte) => byte === 0),
    ).toBe(true)
    expect(lastFile(again).bytes).toBe(FILE_BYTES)
    expect(disk.list(DIRECTORY)).toEqual([path.slice(DIRECTORY.length + 1)])
  }
})

test('nothing is changed and nothing reported as verified when a log is damaged', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
  damage(disk, lastFile(wal).path, FILE_HEADER_BYTES + 3, Uint8Array.of(99))
  let verified = 0
  expect(() => reopen(disk, { onVerified: () => verified++ })).toThrow(
    'no record begins here, and a record of group 2 stands at',
  )
  expect(verified).toBe(0)
})

test('a log that ended is continued in a new file', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
  while (prepareNext(wal, FILE_BYTES));
  disk.fault = ({ call }) => (call === 'rename' ? { kind: 'crash' } : undefined)
  expect(() => startFile(wal)).toThrow()
  const { wal: again } = reopen(
    crash(disk, () => true),
    { isClean: true },
  )
  expect(again.files.map(({ sequence, firstIndex }) => [sequence, firstIndex])).toEqual([
    [1, 1],
    [2, 6],
  ])
  expect([again.isEnded, again.offset, again.lastIndex]).toEqual([false, HEAD_BYTES, 5])
  expect(appendGroup(again, { batches: [entries(6, 1, 1)] })).toBe('stored')
})

test('the term of a position is known within the log and at its snapshots', () => {
  const { disk, wal } = begin({ index: 10, term: 2 })
  appendGroup(wal, { hardState: hardState(4, 10), batches: [entries(11, 2, 3), entries(13, 2, 4)] })
  const { recovered } = reopen(restart(disk))
  expect([9, 10, 11, 12, 13, 14, 15].map((index) => recoveredTerm(recovered, index))).toEqual([0, 2, 3, 3, 4, 4, 0])
})

test.each<[string, Group]>([
  ['a vote', { hardState: hardState(0, 0, 2), batches: [] }],
  ['an entry', { hardState: { term: 1, vote: 0, commit: 0 }, batches: [entries(1, 1, 1)] }],
])('a log with content is not made again: %s', (_, group) => {
  const { disk, wal } = begin()
  appendGroup(wal, group)
  const { env } = createSimulation({ disk: restart(disk) })
  expect(() => createWal(env, DIRECTORY, IDENTITY, { index: 0, term: 0 }, SMALL)).toThrow('CLUSTER')
  expect(disk.list(DIRECTORY)).toHaveLength(1)
})

test('a log without content is made again, and what it was being prepared with goes', () => {
  const { disk, wal } = begin()
  prepareNext(wal, 100)
  const again = createSimulation({ disk: restart(disk) })
  const other = createWal(again.env, DIRECTORY, IDENTITY, { index: 7, term: 2 }, SMALL)
  expect(other.lastIndex).toBe(7)
  expect(again.disk.list(DIRECTORY)).toEqual(['wal-0000000001-0000000000000008.log'])
})
