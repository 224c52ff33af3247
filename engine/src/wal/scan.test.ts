import { expect, test } from 'vitest'
import { ENTRY_KIND, viewOf, writeU64 } from '../raft/entry.ts'
import { copyDisk, createSimulatedDisk, cut, damage, type SimulatedDisk } from '../testing/disk.ts'
import { entries, IDENTITY, SMALL, textsOf } from '../testing/log-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import { inspectWal, replaySalvage, salvageWal } from './inspect.ts'
import { createWal } from './open.ts'
import { type HardState, writeHardState, writeIdentity, writeSnapshotMark } from './payload.ts'
import {
  checksumSeed,
  encodeFileHeader,
  FILE_HEADER_BYTES,
  nextGroup,
  RECORD_HEADER_BYTES,
  RECORD_TYPE,
  type RecordType,
  recordBytes,
  sealRecord,
} from './record.ts'
import { listLogFiles, logFileName, scanLog } from './scan.ts'
import { appendGroup, type Wal } from './wal.ts'

type Payload = readonly [type: RecordType, bytes: Uint8Array]

const identity: Payload = [RECORD_TYPE.identity, payload(64, (bytes) => writeIdentity(bytes, 0, IDENTITY))]
const state = (term: number, vote: number, commit: number): Payload => [
  RECORD_TYPE.hardState,
  payload(24, (_, view) => writeHardState(view, 0, { term, vote, commit } satisfies HardState)),
]
const mark = (index: number, term = 1): Payload => [
  RECORD_TYPE.snapshotMark,
  payload(16, (_, view) => writeSnapshotMark(view, 0, { index, term })),
]
const end = (lastIndex: number): Payload => [RECORD_TYPE.fileEnd, payload(8, (_, view) => writeU64(view, 0, lastIndex))]
const log = (firstIndex: number, count: number, term: number): Payload => {
  const batch = entries(firstIndex, count, term)
  const write = (bytes: Uint8Array, view: DataView) => {
    writeU64(view, 0, firstIndex)
    view.setUint32(8, count, true)
    bytes.set(batch.bytes, 12)
  }
  return [RECORD_TYPE.entries, payload(12 + batch.bytes.length, write)]
}

function payload(bytes: number, write: (bytes: Uint8Array, view: DataView) => void): Uint8Array {
  const content = new Uint8Array(bytes)
  write(content, viewOf(content))
  return content
}

/** A log of one file whose groups say what they are told to, with everything else right. */
function craft(groups: readonly (readonly Payload[])[]): SimulatedDisk {
  const disk = createSimulatedDisk()
  const bytes = new Uint8Array(16384)
  const view = viewOf(bytes)
  const seed = checksumSeed(IDENTITY)
  const previous = { sequence: 0, checksum: 0, group: 0 }
  encodeFileHeader(bytes, { identity: IDENTITY, sequence: 1, firstIndex: 1, previous })
  let at = FILE_HEADER_BYTES
  let [sequence, chain, group] = [0, 0, 0]
  for (const records of groups) {
    group = nextGroup(group)
    records.forEach(([type, content], i) => {
      bytes.set(content, at + RECORD_HEADER_BYTES)
      const isLast = i === records.length - 1
      chain = sealRecord(bytes, view, at, type, content.length, ++sequence, chain, group, isLast, seed)
      at += recordBytes(content.length)
    })
  }
  disk.makeDirectory('/wal')
  const file = disk.open(`/wal/${logFileName(1, 1)}`, 'create')
  disk.write(file, bytes, 0, bytes.length, 0)
  return disk
}

const HEAD = [identity, state(1, 1, 0), mark(0, 0)]

test('a crafted log is read as it was meant', () => {
  const disk = craft([HEAD, [state(1, 1, 0), log(1, 5, 1)], [state(2, 1, 3), log(4, 2, 2)], [state(2, 1, 5)]])

  const scan = scanLog(disk, listLogFiles(disk, '/wal'))

  expect(scan.damage).toBeUndefined()
  expect(scan).toMatchObject({ hardState: { term: 2, vote: 1, commit: 5 }, firstIndex: 1, lastIndex: 5, group: 4 })
  expect(scan.terms).toEqual([
    { term: 1, firstIndex: 1 },
    { term: 2, firstIndex: 4 },
  ])
})

test.each<[string, (readonly Payload[])[], string]>([
  ['V6', [HEAD, [state(1, 1, 9), log(1, 5, 1)]], 'index 9 was committed and the log ends at 5'],
  ['V6', [HEAD, [state(2, 1, 0)], [state(1, 1, 0)]], 'the term goes back to 1'],
  ['V6', [HEAD, [state(1, 2, 0)]], 'a second vote in term 1'],
  ['A2', [HEAD, [state(1, 1, 3), log(1, 5, 1)], [state(1, 1, 2)]], 'the commit index goes back to 2'],
  ['A3', [HEAD, [state(1, 1, 0), log(1, 5, 1)], [state(1, 1, 0), log(7, 1, 1)]], 'entries 6 to 6 are missing'],
  ['A3', [HEAD, [state(3, 1, 0), log(1, 2, 3)], [state(3, 1, 0), log(3, 1, 2)]], 'the terms of entries go back'],
  [
    'A4',
    [HEAD, [state(1, 1, 3), log(1, 5, 1)], [state(1, 1, 3), log(3, 1, 1)]],
    'entry 3 was committed and is replaced',
  ],
  ['H8', [HEAD, [state(1, 1, 0), log(1, 1, 2)]], 'an entry of term 2 before that term was stored'],
  ['V1', [HEAD, [state(1, 1, 0), log(1, 5, 1)], [end(4)]], 'the end of the file names another last index'],
  [
    'V1',
    [HEAD, [state(1, 1, 0), mark(0, 0)], [state(1, 1, 5), log(1, 5, 1), mark(5)], [mark(3)]],
    'the snapshot mark goes back',
  ],
  ['V1', [[state(1, 1, 0)]], 'the file does not begin with an identity'],
  ['V1', [HEAD, [[RECORD_TYPE.hardState, new Uint8Array(23)]]], 'the record is valid and its content is not'],
  ['V1', [HEAD, [[RECORD_TYPE.entries, new Uint8Array(40)]]], 'the record is valid and its content is not'],
  ['V1', [[[RECORD_TYPE.identity, new Uint8Array(64)]]], 'the cluster id differs from that of the header'],
])('%s: records that verify and cannot be true are damage: %#', (_, groups, reason) => {
  const disk = craft(groups)

  const { damage: found } = scanLog(disk, listLogFiles(disk, '/wal'))

  expect(found?.reason).toContain(reason)
})

test('two membership entries above the commit index are damage (M10, A23)', () => {
  const change = (index: number): Payload => {
    const [type, bytes] = log(index, 1, 1)
    bytes[12 + 8] = ENTRY_KIND.configuration
    return [type, bytes]
  }
  const open = craft([HEAD, [state(1, 1, 0), change(1), change(2)]])
  const closed = craft([HEAD, [state(1, 1, 0), change(1)], [state(1, 1, 1), change(2)]])

  expect(scanLog(open, listLogFiles(open, '/wal')).damage?.reason).toContain('entries 1, 2 change the membership')
  expect(scanLog(closed, listLogFiles(closed, '/wal')).damage).toBeUndefined()
})

/** A log of 100 entries over several files, a mark at 40. */
function wholeLog(): { disk: SimulatedDisk; wal: Wal } {
  const simulation = createSimulation()
  simulation.disk.makeDirectory('/wal')
  const wal = createWal(simulation.env, '/wal', IDENTITY, { index: 0, term: 0 }, SMALL)
  for (let i = 0; i < 20; i++) {
    const group = {
      hardState: { term: 1, vote: 1, commit: wal.lastIndex },
      batches: [entries(wal.lastIndex + 1, 5, 1, 80)],
    }
    appendGroup(wal, group)
    if (wal.lastIndex === 45) appendGroup(wal, { mark: { index: 40, term: 1 }, batches: [] })
  }
  expect(wal.files.length).toBeGreaterThan(2)
  return { disk: simulation.disk, wal }
}

function salvaged(disk: SimulatedDisk, index: number) {
  const snapshot = { index, term: index === 0 ? 0 : 1 }
  const salvage = salvageWal(disk, '/wal', snapshot)
  const texts: string[] = []
  replaySalvage(disk, salvage, snapshot, (firstIndex, count, bytes, start) => {
    texts.push(...textsOf(firstIndex, count, bytes, start))
  })
  return { salvage, texts }
}

const allTexts = textsOf(1, 100, entries(1, 100, 1, 80).bytes)

test('inspect tells what each file holds and where it is damaged', () => {
  const { disk, wal } = wholeLog()
  const clean = inspectWal(disk, '/wal')
  expect(clean).toMatchObject({
    damage: undefined,
    firstIndex: 1,
    lastIndex: 100,
    marks: [{ index: 0 }, { index: 40 }],
  })
  expect(clean?.files.map(({ sequence }) => sequence)).toEqual(wal.files.map(({ sequence }) => sequence))
  expect(clean?.files.at(-1)).toMatchObject({
    lastIndex: 100,
    validBytes: wal.offset,
    tornBytes: 0,
    identity: IDENTITY,
  })

  damage(disk, wal.files[1]?.path ?? '', 5000, Uint8Array.of(1, 2, 3))

  const found = inspectWal(disk, '/wal')
  expect(found?.damage).toMatchObject({ file: wal.files[1]?.path, reason: expect.stringContaining('checksum') })
  expect(found?.lastIndex).toBeLessThan(100)
  expect(inspectWal(disk, '/nowhere')).toBeUndefined()
})

test('a whole log is saved whole', () => {
  const { salvage, texts } = salvaged(wholeLog().disk, 40)
  expect(texts).toEqual(allTexts.slice(40))
  expect(salvage).toMatchObject({ lastIndex: 100, lastTerm: 1, damage: undefined, lost: undefined })
})

test('what is behind the damage is lost, and how far that goes is told', () => {
  const { disk, wal } = wholeLog()
  damage(disk, wal.files[1]?.path ?? '', 5000, Uint8Array.of(1, 2, 3))
  const before = wal.files[0]?.lastIndex ?? 0

  const { salvage, texts } = salvaged(disk, 0)

  expect(texts).toEqual(allTexts.slice(0, salvage.lastIndex))
  expect(salvage.lastIndex).toBeGreaterThanOrEqual(before)
  expect(salvage.lost).toEqual({ from: salvage.lastIndex + 1, through: 100 })
})

test('damage to what the snapshot holds costs nothing, in another file or the same one', () => {
  const { disk, wal } = wholeLog()
  for (const offset of [10, FILE_HEADER_BYTES + 10, 5000, 6000]) {
    const copy = copyDisk(disk)
    damage(copy, wal.files[0]?.path ?? '', offset, Uint8Array.of(99, 99, 99))
    const { firstIndex = 0 } = listLogFiles(copy, '/wal')[1] ?? {}
    expect(salvaged(copy, firstIndex + 3).texts).toEqual(allTexts.slice(firstIndex + 3))
  }
  const copy = copyDisk(disk)
  damage(copy, wal.files[0]?.path ?? '', FILE_HEADER_BYTES + 300, Uint8Array.of(99))
  const inFile = (wal.files[0]?.lastIndex ?? 0) - 2
  const { salvage, texts } = salvaged(copy, inFile)
  expect(texts).toEqual(allTexts.slice(inFile))
  expect(salvage.damage?.reason).toContain('checksum')
})

test('a gap behind the snapshot saves nothing and says what was seen', () => {
  const { disk, wal } = wholeLog()
  const first = wal.files[0]
  disk.unlink(first?.path ?? '')

  const { salvage, texts } = salvaged(disk, 3)

  expect(texts).toEqual([])
  expect(salvage).toMatchObject({ lastIndex: 3, lost: { from: 4, through: 100 } })
})

test('a snapshot of another history is never continued', () => {
  const { disk } = wholeLog()
  expect(salvageWal(disk, '/wal', { index: 50, term: 9 })).toMatchObject({ lastIndex: 50, lost: { from: 51 } })
})

test('any damage anywhere saves only what was written, in order', () => {
  const { disk, wal } = wholeLog()
  for (let i = 0; i < 200; i++) {
    const copy = copyDisk(disk)
    const file = wal.files[i % wal.files.length]?.path ?? ''
    const offset = (i * 739) % 8000
    if (i % 3 === 0) cut(copy, file, offset)
    else
      damage(
        copy,
        file,
        offset,
        Uint8Array.from({ length: 1 + (i % 64) }, (_, j) => i * 13 + j * 5),
      )
    const index = (i * 7) % 100

    const { salvage, texts } = salvaged(copy, index)

    expect(texts).toEqual(allTexts.slice(index, salvage.lastIndex))
  }
})
