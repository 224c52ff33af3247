import { expect, test } from 'vitest'
import { writeFully } from '../env.ts'
import {
  contentOf,
  copyDisk,
  crash,
  cut,
  damage,
  fillDisk,
  picture,
  restart,
  type SimulatedDisk,
} from '../testing/disk.ts'
import { batchTexts, entries, IDENTITY, replayTexts, SMALL, tryOpen } from '../testing/log-fixture.ts'
import { createSimulation, type Simulation } from '../testing/simulation.ts'
import { assertConnects, createWal, openWal, recoveredTerm } from './open.ts'
import { FILE_HEADER_BYTES, RECORD_TYPE, recordBytes } from './record.ts'
import { listLogFiles } from './scan.ts'
import {
  appendGroup,
  closeWal,
  compactWal,
  fitsGroup,
  GROUP_BYTES_MAX,
  installWal,
  isFull,
  prepareNext,
  retryNext,
  type Wal,
  walBytes,
} from './wal.ts'

const DIRECTORY = '/wal'
const EMPTY = { index: 0, term: 0 }

type Begun = { simulation: Simulation; disk: SimulatedDisk; wal: Wal }

function begin(options = SMALL, base = EMPTY): Begun {
  const simulation = createSimulation()
  simulation.disk.makeDirectory(DIRECTORY)
  simulation.disk.syncDirectory('/')
  const wal = createWal(simulation.env, DIRECTORY, IDENTITY, base, options)
  return { simulation, disk: simulation.disk, wal }
}

function reopen(disk: SimulatedDisk, isClean = false) {
  const simulation = createSimulation({ disk: restart(disk) })
  const opened = openWal(simulation.env, DIRECTORY, IDENTITY, { ...SMALL, isClean })
  return { simulation, disk: simulation.disk, ...opened }
}

function hardState(term: number, commit: number, vote = 1) {
  return { term, vote, commit }
}

/** Groups of ten entries until there are `files` log files. @returns the texts of all entries */
function fill(wal: Wal, files: number, bytes = 100): string[] {
  const texts: string[] = []
  while (wal.files.length < files) {
    const batch = entries(wal.lastIndex + 1, 10, 1, bytes)
    expect(appendGroup(wal, { hardState: hardState(1, wal.lastIndex), batches: [batch] })).toBe('stored')
    texts.push(...batchTexts([batch]))
  }
  return texts
}

function vote(wal: Wal, term: number): void {
  appendGroup(wal, { hardState: hardState(term, wal.hardState.commit), batches: [] })
}

const lastPath = (wal: Wal) => wal.files.at(-1)?.path ?? ''

test('what was appended is there after a restart, with term, vote and commit index', () => {
  const { disk, wal } = begin()
  const first = entries(1, 3, 1)
  const second = entries(4, 2, 2)
  appendGroup(wal, { hardState: hardState(1, 0), batches: [first] })
  appendGroup(wal, { hardState: hardState(2, 3), batches: [second] })

  const { recovered } = reopen(disk)

  expect(recovered.hardState).toEqual({ term: 2, vote: 1, commit: 3 })
  expect([recovered.firstIndex, recovered.lastIndex]).toEqual([1, 5])
  expect(replayTexts(disk, recovered.scan)).toEqual(batchTexts([first, second]))
  expect([3, 4].map((index) => recoveredTerm(recovered, index))).toEqual([1, 2])
})

test('appending continues after a restart where it ended', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 2, 1)] })
  const again = reopen(disk)

  appendGroup(again.wal, { batches: [entries(3, 2, 1)] })

  const { recovered } = reopen(again.disk)
  expect(replayTexts(again.disk, recovered.scan)).toEqual(batchTexts([entries(1, 2, 1), entries(3, 2, 1)]))
})

test('an acknowledged group survives a crash that loses everything unsynced', () => {
  const { disk, wal } = begin()
  const batch = entries(1, 5, 1)
  appendGroup(wal, { hardState: hardState(1, 0), batches: [batch] })

  const after = createSimulation({ disk: crash(disk, () => false) })

  expect(tryOpen(after.env, DIRECTORY)).toMatchObject({ code: '', texts: batchTexts([batch]), term: 1, vote: 1 })
})

test('a group is one write and one sync', () => {
  const { disk, wal } = begin()
  const before = disk.operations.length

  const batches = [entries(1, 2, 1), entries(3, 4, 1), entries(7, 1, 1)]
  appendGroup(wal, { hardState: hardState(1, 0), mark: EMPTY, batches })

  expect(disk.operations.slice(before).map(({ call }) => call)).toEqual(['write', 'syncData'])
})

test('entries that replace a tail replace it in the replay, over any number of rounds', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 2), batches: [entries(1, 10, 1)] })
  appendGroup(wal, { hardState: hardState(2, 2), batches: [entries(8, 4, 2)] })
  appendGroup(wal, { hardState: hardState(3, 2), batches: [entries(5, 2, 3)] })
  appendGroup(wal, { hardState: hardState(4, 2), batches: [entries(7, 3, 4)] })

  const { recovered } = reopen(disk)

  const expected = batchTexts([entries(1, 4, 1), entries(5, 2, 3), entries(7, 3, 4)])
  expect(replayTexts(disk, recovered.scan)).toEqual(expected)
  for (let from = 1; from <= 10; from++) {
    expect(replayTexts(disk, recovered.scan, from)).toEqual(expected.slice(from - 1))
  }
  expect([4, 5, 6, 7].map((index) => recoveredTerm(recovered, index))).toEqual([1, 3, 3, 4])
})

test('a log over many files reads as one, and each file can stand first', () => {
  const { disk, wal } = begin()
  const texts = fill(wal, 5)

  const { recovered } = reopen(disk)

  expect(replayTexts(disk, recovered.scan)).toEqual(texts)
  expect(disk.list(DIRECTORY)[0]).toBe('wal-0000000001-0000000000000001.log')
  for (let floor = 1; floor < wal.lastIndex; floor += 7) {
    const copy = createSimulation({ disk: copyDisk(disk) })
    const opened = openWal(copy.env, DIRECTORY, IDENTITY, { ...SMALL, isClean: false })
    appendGroup(opened.wal, { hardState: hardState(1, opened.wal.lastIndex), batches: [] })
    compactWal(opened.wal, floor)
    const cutLog = tryOpen(copy.env, DIRECTORY)
    expect(cutLog).toMatchObject({ code: '', texts: texts.slice(-cutLog.texts.length) })
    expect(cutLog.texts.length).toBeGreaterThanOrEqual(texts.length - floor + 1)
  }
})

test('the bytes of a log do not depend on whether the next file was prepared ahead', () => {
  const eager = begin()
  const lazy = begin()
  for (let i = 0; i < 20; i++) {
    while (prepareNext(eager.wal, 1000));
    for (const { wal } of [eager, lazy]) {
      appendGroup(wal, { hardState: hardState(1, wal.lastIndex), batches: [entries(wal.lastIndex + 1, 10, 1, 100)] })
    }
  }
  expect(eager.wal.files.length).toBeGreaterThan(2)
  for (const { path } of eager.wal.files) expect(contentOf(eager.disk, path)).toEqual(contentOf(lazy.disk, path))
})

test('no sync waits for more than a step of the next file', () => {
  const { disk, wal } = begin()
  let unsynced = 0
  let worst = 0
  disk.fault = ({ call, bytes }) => {
    if (call === 'write') unsynced += bytes
    if (call === 'syncData') {
      worst = Math.max(worst, unsynced)
      unsynced = 0
    }
    return undefined
  }

  fill(wal, 4, 40)

  expect(worst).toBeLessThanOrEqual((SMALL.prepareSyncBytes ?? 0) + FILE_HEADER_BYTES)
})

test('a log begins behind the snapshot a member starts with', () => {
  const { disk } = begin(SMALL, { index: 41, term: 3 })
  const empty = reopen(disk)
  expect(empty.recovered).toMatchObject({ firstIndex: 42, lastIndex: 41, marks: [{ index: 41, term: 3 }] })
  expect(empty.recovered.hardState).toEqual({ term: 3, vote: 0, commit: 41 })
  expect(recoveredTerm(empty.recovered, 41)).toBe(3)

  appendGroup(empty.wal, { hardState: hardState(4, 41), batches: [entries(42, 1, 4)] })

  expect(tryOpen(createSimulation({ disk: restart(empty.disk) }).env, DIRECTORY)).toMatchObject({
    texts: batchTexts([entries(42, 1, 4)]),
  })
})

test('recovery cuts the log at the first torn record and keeps all before it', () => {
  const { disk, wal } = begin()
  const kept = entries(1, 5, 1)
  appendGroup(wal, { hardState: hardState(1, 0), batches: [kept] })
  const end = wal.offset
  appendGroup(wal, { batches: [entries(6, 5, 1)] })
  damage(disk, lastPath(wal), end + 20, Uint8Array.of(0, 0, 0, 0, 0, 0))

  const { simulation, recovered, wal: opened } = reopen(disk)

  expect(replayTexts(simulation.disk, recovered.scan)).toEqual(batchTexts([kept]))
  expect(recovered.tornBytes).toBeGreaterThan(0)
  expect(simulation.lines.some(({ level, message }) => level === 'warn' && message.includes('cut off'))).toBe(true)
  expect(opened.offset).toBe(end)
  expect(
    contentOf(simulation.disk, lastPath(wal))
      .subarray(end)
      .every((byte) => byte === 0),
  ).toBe(true)
})

test('damage before an acknowledged group is refused with file, offset and reason, and nothing changes', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
  const middle = wal.offset
  appendGroup(wal, { batches: [entries(6, 5, 1)] })
  appendGroup(wal, { batches: [entries(11, 5, 1)] })
  damage(disk, lastPath(wal), middle + 50, Uint8Array.of(1, 2, 3))
  const before = picture(disk)

  const refusal = tryOpen(createSimulation({ disk: restart(disk) }).env, DIRECTORY)

  expect(refusal).toMatchObject({ code: 'corrupt_data' })
  expect(refusal).toMatchObject({ message: expect.stringContaining(lastPath(wal)) })
  expect(refusal).toMatchObject({ message: expect.stringContaining(String(middle)) })
  expect(picture(disk)).toEqual(before)
})

test('damage in a file that others follow is never taken for a torn tail', () => {
  const { disk, wal } = begin()
  fill(wal, 3)
  const first = wal.files[0]?.path ?? ''
  cut(disk, first, 6000)

  expect(tryOpen(createSimulation({ disk }).env, DIRECTORY)).toMatchObject({
    code: 'corrupt_data',
    message: expect.stringContaining('later log files follow'),
  })
})

test('a missing file, a foreign file and a changed name are refused', () => {
  const { disk, wal } = begin()
  fill(wal, 4)
  const [first, second] = wal.files.map((file) => file.path) as [string, string]
  const cases: [string, (disk: SimulatedDisk) => void, string][] = [
    ['hole', (copy) => copy.unlink(second), 'is missing'],
    ['name', (copy) => copy.rename(first, first.replace('-0000000000000001.', '-0000000000000002.')), 'its name'],
    ['all', (copy) => wal.files.forEach(({ path }) => void copy.unlink(path)), 'the log is missing'],
  ]
  for (const [, change, reason] of cases) {
    const copy = copyDisk(disk)
    change(copy)
    expect(tryOpen(createSimulation({ disk: copy }).env, DIRECTORY)).toMatchObject({
      code: 'corrupt_data',
      message: expect.stringContaining(reason),
    })
  }
})

test('a log of another cluster, incarnation or codec list is refused by name', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
  const { env } = createSimulation({ disk: restart(disk) })
  const other = (key: keyof typeof IDENTITY) => ({ ...IDENTITY, [key]: IDENTITY[key].map((byte) => byte ^ 1) })
  const open = (identity: typeof IDENTITY) => () => openWal(env, DIRECTORY, identity, { ...SMALL, isClean: true })

  expect(open(other('clusterId'))).toThrow('the cluster id differs')
  expect(open(other('incarnation'))).toThrow('the incarnation differs')
  expect(open(other('codecHash'))).toThrow('the codec list differs')
})

test('a file that cannot be read is damage, not a torn tail', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
  const simulation = createSimulation({ disk: restart(disk) })
  simulation.disk.fault = ({ call }) => (call === 'read' ? { kind: 'fail', code: 'EIO' } : undefined)

  expect(tryOpen(simulation.env, DIRECTORY)).toMatchObject({
    code: 'corrupt_data',
    message: expect.stringContaining('cannot be read (EIO)'),
  })
})

test('a process killed between write and sync may have been seen: what is read back is synced first', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
  disk.fault = ({ call }) => (call === 'syncData' ? { kind: 'crash' } : undefined)
  expect(() => appendGroup(wal, { batches: [entries(6, 5, 1)] })).toThrow('machine stops')
  const again = reopen(disk)
  expect(again.recovered.lastIndex).toBe(10)

  const after = createSimulation({ disk: crash(again.disk, () => false) })

  expect(tryOpen(after.env, DIRECTORY)).toMatchObject({ texts: batchTexts([entries(1, 10, 1)]) })
})

test('a log must connect to the snapshot the node starts from', () => {
  const { disk, wal } = begin(SMALL, { index: 10, term: 2 })
  appendGroup(wal, { hardState: hardState(3, 10), batches: [entries(11, 5, 3)] })
  const { recovered } = reopen(disk)
  for (const good of [
    { index: 10, term: 2 },
    { index: 15, term: 3 },
  ]) {
    assertConnects(recovered, good)
  }
  const bad: [number, number, string][] = [
    [9, 2, 'it begins at 11 and the snapshot ends at 9'],
    [16, 3, 'it ends at 15 and the snapshot holds 16'],
    [12, 2, 'entry 12 is of term 3'],
    [10, 1, 'entry 10 is of term 2'],
  ]
  for (const [index, term, reason] of bad) expect(() => assertConnects(recovered, { index, term })).toThrow(reason)
})

test('a log is made again where a formation was cut short, and never over one with content', () => {
  const { disk } = begin()
  const simulation = createSimulation({ disk: restart(disk) })
  const wal = createWal(simulation.env, DIRECTORY, IDENTITY, EMPTY, SMALL)
  expect(listLogFiles(simulation.disk, DIRECTORY)).toHaveLength(1)

  appendGroup(wal, { hardState: hardState(1, 0), batches: [] })

  const { env } = createSimulation({ disk: restart(disk) })
  expect(() => createWal(env, DIRECTORY, IDENTITY, EMPTY, SMALL)).toThrow('CLUSTER')
})

test('compaction deletes whole files below the floor, oldest first, each one durably', () => {
  const { disk, wal } = begin()
  fill(wal, 5)
  appendGroup(wal, { hardState: hardState(1, wal.lastIndex), batches: [] })
  const third = wal.files[2]
  const before = disk.operations.length

  expect(compactWal(wal, (wal.files[1]?.lastIndex ?? 0) + 1)).toBe(2)

  expect(wal.files[0]).toBe(third)
  const calls = disk.operations.slice(before).map(({ call }) => call)
  expect(calls).toEqual(['unlink', 'syncDirectory', 'unlink', 'syncDirectory'])
  expect(compactWal(wal, wal.lastIndex + 1)).toBe(2)
  expect(wal.files).toHaveLength(1)
})

test('the file that is written is never deleted, so term and vote stay', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(7, 0, 3), batches: [] })
  appendGroup(wal, { hardState: hardState(7, 5, 3), batches: [entries(1, 5, 7)] })

  compactWal(wal, 6)

  expect(reopen(disk).recovered.hardState).toEqual({ term: 7, vote: 3, commit: 5 })
})

test('on a full disk entries are refused whole, votes and marks are still stored', () => {
  const { disk, wal } = begin()
  disk.capacityBytes = 8192 + 1000
  const texts: string[] = []
  for (;;) {
    const batch = entries(wal.lastIndex + 1, 10, 1, 40)
    if (appendGroup(wal, { hardState: hardState(1, wal.lastIndex), batches: [batch] }) === 'full') break
    texts.push(...batchTexts([batch]))
  }
  expect(isFull(wal)).toBe(true)
  expect(disk.list(DIRECTORY)).toHaveLength(1)

  const vote = { term: 9, vote: 2, commit: wal.hardState.commit }
  expect(appendGroup(wal, { hardState: vote, batches: [] })).toBe('stored')
  expect(appendGroup(wal, { mark: { index: wal.hardState.commit, term: 1 }, batches: [] })).toBe('stored')

  const opened = tryOpen(createSimulation({ disk: restart(disk) }).env, DIRECTORY)
  expect(opened).toMatchObject({ code: '', texts, term: 9, vote: 2, markIndex: wal.mark.index })
})

test('writing continues without a restart when space returns', () => {
  const { disk, wal } = begin()
  disk.capacityBytes = 8192 + 1000
  while (
    appendGroup(wal, { hardState: hardState(1, wal.lastIndex), batches: [entries(wal.lastIndex + 1, 10, 1)] }) ===
    'stored'
  );
  expect(retryNext(wal)).toBe(false)
  const last = wal.lastIndex

  disk.capacityBytes = 100_000

  expect(retryNext(wal)).toBe(true)
  expect(isFull(wal)).toBe(false)
  expect(appendGroup(wal, { batches: [entries(last + 1, 10, 1)] })).toBe('stored')
  expect(tryOpen(createSimulation({ disk: restart(disk) }).env, DIRECTORY)).toMatchObject({ code: '' })
})

test('a write the disk has no room for leaves no trace of its group', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
  let writes = 0
  disk.fault = ({ call }) =>
    call === 'write' && writes++ === 0 ? { kind: 'short', bytes: 700, code: 'ENOSPC' } : undefined

  expect(appendGroup(wal, { batches: [entries(6, 30, 1)] })).toBe('full')
  expect(appendGroup(wal, { batches: [entries(6, 2, 1, 8, 99)] })).toBe('stored')

  for (const survives of [false, true]) {
    const opened = tryOpen(createSimulation({ disk: crash(disk, () => survives) }).env, DIRECTORY)
    expect(opened).toMatchObject({ code: '', texts: batchTexts([entries(1, 5, 1), entries(6, 2, 1, 8, 99)]) })
  }
})

test('what a refused write left is wiped before anything is written there, and until then everything waits', () => {
  const begun = () => {
    const { disk, wal } = begin()
    appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
    disk.fault = ({ call }) => (call === 'write' ? { kind: 'short', bytes: 700, code: 'ENOSPC' } : undefined)
    expect(appendGroup(wal, { batches: [entries(6, 30, 1)] })).toBe('full')
    return { disk, wal }
  }
  const { disk, wal } = begun()
  // Not even a vote may stand behind what is left there: it would look like a part of the group that was refused.
  expect(appendGroup(wal, { hardState: hardState(2, 0), batches: [] })).toBe('full')
  expect(retryNext(wal)).toBe(false)
  expect(installWal(wal, { index: 100, term: 1 })).toBe(false)
  expect(isFull(wal)).toBe(true)
  disk.fault = () => undefined
  expect(retryNext(wal)).toBe(true)
  expect(appendGroup(wal, { hardState: hardState(2, 0), batches: [] })).toBe('stored')
  expect(tryOpen(createSimulation({ disk: crash(disk, () => false) }).env, DIRECTORY)).toMatchObject({
    ...{ code: '', term: 2, texts: batchTexts([entries(1, 5, 1)]) },
  })

  for (const call of ['write', 'syncData'] as const) {
    const other = begun()
    other.disk.fault = (operation) => (operation.call === call ? { kind: 'fail', code: 'EIO' } : undefined)
    expect(() => retryNext(other.wal), call).toThrow(expect.objectContaining({ code: 'disk_failed' }))
  }
})

test('the rest of a refused group does not remain after the next one', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
  const batches = Array.from({ length: 8 }, (_, i) => entries(6 + i, 1, 1, 40))
  let isLeft = false
  disk.fault = ({ call }) => {
    if (call !== 'write' || isLeft) return undefined
    isLeft = true
    return { kind: 'short', bytes: 700, code: 'ENOSPC' }
  }
  expect(appendGroup(wal, { batches })).toBe('full')
  expect(appendGroup(wal, { batches: [entries(6, 1, 1, 40)] })).toBe('stored')

  const found = tryOpen(createSimulation({ disk: restart(disk) }).env, DIRECTORY)
  expect(found).toMatchObject({ code: '', texts: batchTexts([entries(1, 5, 1), entries(6, 1, 1, 40)]) })
})

test('a failed sync is not tried again: a second one would report success, and the data is gone', () => {
  const { disk, wal } = begin()
  let failures = 0
  disk.fault = ({ call }) => (call === 'syncData' && failures++ === 0 ? { kind: 'fail', code: 'EIO' } : undefined)

  expect(() => appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })).toThrow(
    expect.objectContaining({ code: 'disk_failed' }),
  )
})

test('compaction keeps the files whose entries are needed', () => {
  const { disk, wal } = begin()
  fill(wal, 3)
  appendGroup(wal, { hardState: hardState(1, wal.lastIndex), batches: [] })
  const floor = (wal.files[0]?.lastIndex ?? 0) - 2
  compactWal(wal, floor)

  expect(reopen(disk).recovered.firstIndex).toBeLessThanOrEqual(floor)
})

test('a next file without a name waits for room for it, and an installation waits as well', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [] })
  disk.fault = ({ call }) => (call === 'rename' ? { kind: 'fail', code: 'ENOSPC' } : undefined)
  while (appendGroup(wal, { batches: [entries(wal.lastIndex + 1, 10, 1, 100)] }) === 'stored');
  const last = wal.lastIndex
  expect(wal.next.state).toBe('nameless')
  expect(isFull(wal)).toBe(true)

  // The file before has ended: nothing goes into it, not even a vote.
  expect(appendGroup(wal, { hardState: hardState(3, 0), batches: [] })).toBe('full')
  expect(retryNext(wal)).toBe(false)
  expect(installWal(wal, { index: last + 50, term: 1 })).toBe(false)
  const opened = tryOpen(createSimulation({ disk: copyDisk(disk) }).env, DIRECTORY)
  expect(opened).toMatchObject({ code: '', term: 1 })
  expect(opened.texts).toHaveLength(last)

  disk.fault = () => undefined
  expect(installWal(wal, { index: last + 50, term: 1 })).toBe(true)
  expect(reopen(disk).recovered).toMatchObject({ firstIndex: last + 51, hardState: { term: 1, commit: last + 50 } })
})

test('a start that finds the end of a file and no room for the next one waits for it', () => {
  const { disk, wal } = begin()
  disk.fault = ({ call }) => (call === 'rename' ? { kind: 'crash' } : undefined)
  expect(() => fill(wal, 2)).toThrow('machine stops')
  const left = crash(disk, () => true)
  left.unlink(`${DIRECTORY}/next.tmp`)
  fillDisk(left)

  const again = reopen(left, true)

  expect(again.simulation.lines.some(({ message }) => message.includes('no room for the next log file'))).toBe(true)
  const last = again.wal.lastIndex
  expect(last).toBeGreaterThan(0)
  expect(appendGroup(again.wal, { batches: [entries(last + 1, 1, 1)] })).toBe('full')
  again.disk.capacityBytes = 2 ** 40
  expect(retryNext(again.wal)).toBe(true)
  expect(appendGroup(again.wal, { batches: [entries(last + 1, 1, 1)] })).toBe('stored')
  expect(reopen(again.disk).recovered.lastIndex).toBe(last + 1)
})

test('a torn group after a clean shutdown is damage, because no write was in progress', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
  const end = wal.offset
  appendGroup(wal, { batches: [entries(6, 5, 1)] })
  damage(disk, lastPath(wal), end + 20, Uint8Array.of(0, 0, 0, 0, 0, 0))

  const { env } = createSimulation({ disk: restart(disk) })
  expect(tryOpen(env, DIRECTORY, SMALL, true)).toMatchObject({
    code: 'corrupt_data',
    message: expect.stringContaining('the last shutdown was clean'),
  })
})

test('a disk that fails while the last file is written again ends the process', () => {
  for (const call of ['create', 'write', 'syncData', 'rename', 'syncDirectory'] as const) {
    const { disk, wal } = begin()
    appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
    const { env, disk: again } = createSimulation({ disk: restart(disk) })
    again.fault = (operation) => (operation.call === call ? { kind: 'fail', code: 'EIO' } : undefined)
    expect(tryOpen(env, DIRECTORY), call).toMatchObject({ code: 'disk_failed' })
  }
  // The same without room for a copy, where it is written in place.
  for (const call of ['write', 'syncData'] as const) {
    const { disk, wal } = begin()
    appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
    const { env, disk: again } = createSimulation({ disk: restart(disk) })
    again.fault = ({ call: tried, path }) => {
      if (path.endsWith('.tmp') && tried === 'create') return { kind: 'fail', code: 'ENOSPC' }
      return tried === call && path.endsWith('.log') ? { kind: 'fail', code: 'EIO' } : undefined
    }
    expect(tryOpen(env, DIRECTORY), `${call} in place`).toMatchObject({ code: 'disk_failed' })
  }
})

test('creating a log without room is reported, and succeeds once there is some', () => {
  const { env, disk } = createSimulation()
  disk.makeDirectory(DIRECTORY)
  fillDisk(disk)

  expect(() => createWal(env, DIRECTORY, IDENTITY, EMPTY, SMALL)).toThrow(expect.objectContaining({ code: 'no_room' }))

  disk.capacityBytes = 2 ** 40
  const wal = createWal(env, DIRECTORY, IDENTITY, EMPTY, SMALL)
  expect(appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 1, 1)] })).toBe('stored')
})

test('a log is never made over several files, or over one that is damaged', () => {
  const { disk, wal } = begin()
  fill(wal, 2)
  const { env } = createSimulation({ disk: restart(disk) })
  expect(() => createWal(env, DIRECTORY, IDENTITY, EMPTY, SMALL)).toThrow('CLUSTER')

  const single = begin()
  damage(single.disk, lastPath(single.wal), FILE_HEADER_BYTES + 20, Uint8Array.of(1, 2, 3))
  const again = createSimulation({ disk: restart(single.disk) })
  expect(() => createWal(again.env, DIRECTORY, IDENTITY, EMPTY, SMALL)).toThrow('never torn')
  expect(listLogFiles(again.disk, DIRECTORY)).toHaveLength(1)
})

test('the bytes of the next file count as soon as they are on the disk', () => {
  const { wal } = begin()
  expect(walBytes(wal)).toBe(8_192)
  prepareNext(wal, 1_000)
  expect(walBytes(wal)).toBe(9_192)
  while (prepareNext(wal, 1_000));
  expect(walBytes(wal)).toBe(2 * 8_192)
})

test('any other failure of a write or a sync ends the process with disk_failed', () => {
  for (const call of ['write', 'syncData', 'rename', 'syncDirectory', 'create'] as const) {
    const { disk, wal } = begin()
    disk.fault = (operation) => (operation.call === call ? { kind: 'fail', code: 'EIO' } : undefined)
    expect(() => fill(wal, 3)).toThrow(expect.objectContaining({ code: 'disk_failed' }))
  }
})

test('an unclean start on a full disk syncs the last file where it is', () => {
  const { disk, wal } = begin()
  disk.fault = ({ call, path }) => (call === 'syncData' && path.endsWith('.log') ? { kind: 'crash' } : undefined)
  expect(() => appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })).toThrow()
  disk.capacityBytes = 8192
  const again = reopen(disk)
  expect(again.recovered.lastIndex).toBe(5)

  const after = createSimulation({ disk: crash(again.disk, () => false) })

  expect(tryOpen(after.env, DIRECTORY)).toMatchObject({ texts: batchTexts([entries(1, 5, 1)]) })
})

test('group numbers wrap after 2^32 groups', () => {
  const simulation = createSimulation()
  simulation.disk.makeDirectory(DIRECTORY)
  const wal = createWal(simulation.env, DIRECTORY, IDENTITY, EMPTY, SMALL)
  wal.group = 0xfffffffd
  // A new file takes the number up from its header, as if four billion groups had gone before.
  fill(wal, 3)
  simulation.disk.unlink(wal.files[0]?.path ?? '')

  const { recovered } = reopen(simulation.disk)

  expect(recovered.lastIndex).toBe(wal.lastIndex)
  expect(wal.group).toBeLessThan(1000)
})

test.each([
  ['a clean start', 1e9, true],
  ['an unclean start', 1e9, false],
  ['an unclean start on a full disk', 8192, false],
])('%s opens nothing that closing does not close', (_, capacityBytes, isClean) => {
  const { disk, wal } = begin()
  fill(wal, 3)
  disk.capacityBytes = capacityBytes
  const again = reopen(disk, isClean)

  closeWal(again.wal)

  expect(again.disk.openFiles()).toBe(0)
})

test('closing lets go of the files, and a clean start changes nothing', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 5, 1)] })
  closeWal(wal)
  expect(disk.openFiles()).toBe(0)
  const before = picture(disk)

  reopen(disk, true)

  expect(picture(disk)).toEqual(before)
})

test('a group is bounded, but for a single entry', () => {
  const { wal } = begin({})
  const entry = entries(1, 1, 1, GROUP_BYTES_MAX)
  expect(fitsGroup(wal, 0, entry)).toBe(true)
  expect(fitsGroup(wal, 1, entry)).toBe(false)
  expect(appendGroup(wal, { hardState: hardState(1, 0), batches: [entry] })).toBe('stored')
  expect(walBytes(wal)).toBe(64 * 1024 * 1024)
})

test('what cannot be true is not written', () => {
  const { wal } = begin()
  appendGroup(wal, { hardState: hardState(5, 3), batches: [entries(1, 5, 5)] })
  const refused: [string, Parameters<typeof appendGroup>[1]][] = [
    ['the term never decreases', { hardState: hardState(4, 3), batches: [] }],
    ['the vote changes only with the term', { hardState: hardState(5, 3, 2), batches: [] }],
    ['commit', { hardState: hardState(5, 2), batches: [] }],
    ['commit', { hardState: hardState(5, 6), batches: [] }],
    ['commit', { mark: { index: 4, term: 5 }, batches: [] }],
    ['indexes are contiguous', { batches: [entries(7, 1, 5)] }],
    ['at or below the commit index', { batches: [entries(3, 1, 6)] }],
  ]
  for (const [id, group] of refused) expect(() => appendGroup(wal, group)).toThrow(id)
})

test('records are written at offsets of eight bytes with zeros between', () => {
  const { disk, wal } = begin()
  const start = wal.offset
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 1, 1, 3)] })

  const length = 12 + 13 + 3
  expect(wal.offset - start).toBe(recordBytes(24) + recordBytes(length))
  const content = contentOf(disk, lastPath(wal))
  const at = start + recordBytes(24)
  expect(content[at + 24]).toBe(RECORD_TYPE.entries)
  expect([...content.subarray(at + 32 + length, wal.offset)]).toEqual([0, 0, 0, 0])
})

test('bytes behind the data that make no record are wiped at the next start', () => {
  const { disk, wal } = begin()
  appendGroup(wal, { hardState: hardState(1, 0), batches: [entries(1, 1, 1)] })
  const file = disk.open(lastPath(wal), 'write')
  writeFully(disk, file, new Uint8Array(400).fill(0xa5), 0, 400, wal.offset + 96)

  const { recovered, disk: after } = reopen(disk)

  expect(recovered.tornBytes).toBe(496)
  expect(
    contentOf(after, lastPath(wal))
      .subarray(wal.offset)
      .every((byte) => byte === 0),
  ).toBe(true)
})

test('after an installed snapshot the log restarts, whatever it held', () => {
  const { disk, wal } = begin()
  fill(wal, 3)
  vote(wal, 5)
  const mark = { index: wal.lastIndex + 1000, term: 4 }

  expect(installWal(wal, mark)).toBe(true)
  const next = entries(mark.index + 1, 5, 5)
  appendGroup(wal, { hardState: { term: 5, vote: 1, commit: mark.index }, batches: [next] })

  const { recovered, disk: again } = reopen(disk)
  expect(recovered).toMatchObject({ firstIndex: mark.index + 1, lastIndex: mark.index + 5 })
  expect(recovered.marks.at(-1)).toEqual(mark)
  expect(recoveredTerm(recovered, mark.index)).toBe(4)
  assertConnects(recovered, mark)
  expect(replayTexts(again, recovered.scan)).toEqual(batchTexts([next]))
  expect(wal.files).toHaveLength(1)
})

test('a crash at any operation of an installation leaves the old log or the new one', () => {
  const { disk, wal } = begin()
  const texts = fill(wal, 3)
  vote(wal, 3)
  const last = wal.lastIndex
  const mark = { index: last - 2, term: 3 }
  const from = disk.operations.length
  const rehearsal = reopen(copyDisk(disk))
  const before = rehearsal.disk.operations.length
  installWal(rehearsal.wal, mark)
  const operations = rehearsal.disk.operations.length - before
  expect(operations).toBeGreaterThan(6)
  const seen = new Set<string>()
  for (let step = 0; step <= operations; step++) {
    for (const survives of [() => false, () => true]) {
      const run = reopen(copyDisk(disk))
      const first = run.disk.operations.length
      run.disk.fault = ({ number }) => (number === first + step ? { kind: 'crash' } : undefined)
      try {
        installWal(run.wal, mark)
      } catch {
        // The crash.
      }
      const { recovered, disk: after } = reopen(crash(run.disk, survives))
      const isNew = recovered.lastIndex === mark.index
      seen.add(isNew ? 'new' : 'old')
      if (isNew) expect(recovered.marks.at(-1)).toEqual(mark)
      else expect(replayTexts(after, recovered.scan)).toEqual(texts)
    }
  }
  expect(from).toBeGreaterThan(0)
  expect([...seen].sort()).toEqual(['new', 'old'])
})

test('a file that begins elsewhere without naming a snapshot is refused', () => {
  const { disk, wal } = begin()
  fill(wal, 3)
  const mark = { index: wal.lastIndex + 10, term: 1 }
  installWal(wal, mark)
  fill(wal, 4)
  disk.unlink(wal.files[1]?.path ?? '')

  expect(() => reopen(disk)).toThrow(/log file before it is missing/)
})

test('on a full disk no snapshot is installed and the log continues', () => {
  const { disk, wal } = begin()
  fill(wal, 2)
  const mark = { index: wal.lastIndex + 10, term: 1 }
  disk.capacityBytes = 1

  expect(installWal(wal, mark)).toBe(false)

  disk.capacityBytes = 2 ** 40
  expect(retryNext(wal)).toBe(true)
  fill(wal, 4)
  expect(reopen(disk).recovered.lastIndex).toBe(wal.lastIndex)
})
