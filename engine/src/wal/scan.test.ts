import { createRandom, type Random } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { ENTRY_BYTES_MAX, ENTRY_HEADER_BYTES, ENTRY_KIND, viewOf, writeU64 } from '../raft/entry.ts'
import { contentOf, copyDisk, createSimulatedDisk, cut, damage, type SimulatedDisk } from '../testing/disk.ts'
import { entries, IDENTITY, replayTexts, SMALL, textsOf } from '../testing/log-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import { crc32c } from './crc32c.ts'
import { inspectWal, replaySalvage, salvageWal } from './inspect.ts'
import { createWal } from './open.ts'
import { type HardState, writeHardState, writeIdentity, writeSnapshotMark } from './payload.ts'
import {
  checksumSeed,
  encodeFileHeader,
  FILE_HEADER_BYTES,
  type FileHeader,
  nextGroup,
  RECORD_HEADER_BYTES,
  RECORD_TYPE,
  type RecordType,
  recordBytes,
  sealRecord,
} from './record.ts'
import { type LogScan, listLogFiles, logFileName, replayEntries, type ScanOptions, scanLog, termAt } from './scan.ts'
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
const log = (firstIndex: number, count: number, term: number, entryBytes = 8): Payload => {
  const batch = entries(firstIndex, count, term, entryBytes)
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

type Groups = readonly (readonly Payload[])[]
type Crafted = {
  readonly firstIndex: number
  readonly groups: Groups
  /** False values of its header. */
  readonly header?: Partial<FileHeader>
  readonly bytes?: number
}

/** A log whose groups have the given contents and are otherwise valid. */
function craftFiles(files: readonly Crafted[]): SimulatedDisk {
  const disk = createSimulatedDisk()
  disk.makeDirectory('/wal')
  const seed = checksumSeed(IDENTITY)
  let [sequence, chain, group] = [0, 0, 0]
  files.forEach(({ firstIndex, groups, header, bytes: size = 16_384 }, number) => {
    const bytes = new Uint8Array(size)
    const view = viewOf(bytes)
    const previous = { sequence, checksum: chain, group }
    encodeFileHeader(bytes, { identity: IDENTITY, sequence: number + 1, firstIndex, previous, ...header })
    let at = FILE_HEADER_BYTES
    for (const records of groups) {
      group = nextGroup(group)
      records.forEach(([type, content], i) => {
        bytes.set(content, at + RECORD_HEADER_BYTES)
        const isLastOfGroup = i === records.length - 1
        const header = { type, payloadLength: content.length, sequence: ++sequence, chain, group, isLastOfGroup }
        chain = sealRecord({ buffer: bytes, view, seed }, at, header)
        at += recordBytes(content.length)
      })
    }
    const file = disk.open(`/wal/${logFileName(number + 1, firstIndex)}`, 'create')
    disk.write(file, bytes, 0, bytes.length, 0)
    disk.syncData(file)
    disk.close(file)
  })
  disk.syncDirectory('/wal')
  return disk
}

const craft = (groups: Groups): SimulatedDisk => craftFiles([{ firstIndex: 1, groups }])
const scanned = (disk: SimulatedDisk, options: ScanOptions = {}): LogScan =>
  scanLog(disk, listLogFiles(disk, '/wal'), options)

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
  ['A3', [HEAD, [state(3, 1, 0), log(1, 2, 3)], [state(3, 1, 0), log(3, 1, 2)]], 'entry terms decrease'],
  [
    'A4',
    [HEAD, [state(1, 1, 3), log(1, 5, 1)], [state(1, 1, 3), log(3, 1, 1)]],
    'entry 3 was committed and is replaced',
  ],
  ['H8', [HEAD, [state(1, 1, 0), log(1, 1, 2)]], 'an entry of term 2 before that term was stored'],
  ['V1', [HEAD, [state(1, 1, 0), log(1, 5, 1)], [end(4)]], 'the end of the file has a different last index'],
  [
    'V1',
    [HEAD, [state(1, 1, 0), mark(0, 0)], [state(1, 1, 5), log(1, 5, 1), mark(5)], [mark(3)]],
    'the snapshot index decreases',
  ],
  ['V1', [[state(1, 1, 0)]], 'the file does not begin with an identity'],
  ['V1', [HEAD, [[RECORD_TYPE.hardState, new Uint8Array(23)]]], 'the record is valid but its content is not'],
  ['V1', [HEAD, [[RECORD_TYPE.entries, new Uint8Array(40)]]], 'the record is valid but its content is not'],
  ['V1', [[[RECORD_TYPE.identity, new Uint8Array(64)]]], 'the cluster id differs from that of the header'],
  ['V1', [HEAD, [[RECORD_TYPE.hardState, new Uint8Array(24).fill(255)]]], 'the record is valid but its content is not'],
  ['V1', [HEAD, [[RECORD_TYPE.snapshotMark, new Uint8Array(15)]]], 'the record is valid but its content is not'],
  ['V1', [HEAD, [[RECORD_TYPE.identity, new Uint8Array(63)]]], 'the record is valid but its content is not'],
  ['V1', [HEAD, [[RECORD_TYPE.fileEnd, new Uint8Array(9)]]], 'the record is valid but its content is not'],
  ['V3', [], 'the first group of a file is never torn'],
])('%s: records that verify and cannot be true are damage: %#', (_, groups, reason) => {
  const disk = craft(groups)

  const { damage: found } = scanLog(disk, listLogFiles(disk, '/wal'))

  expect(found?.reason).toContain(reason)
})

/** Ended by its last group, with entries 1 to 5 of term 1, all committed. */
const FIVE: Crafted = { firstIndex: 1, groups: [HEAD, [state(1, 1, 0), log(1, 5, 1)], [state(1, 1, 5), end(5)]] }
const otherCluster = { ...IDENTITY, clusterId: IDENTITY.clusterId.map((byte) => byte ^ 1) }

test('behind an installed snapshot a file may begin anywhere, and nothing before it counts any more', () => {
  const next: Crafted = { firstIndex: 20, groups: [[identity, state(2, 1, 19), mark(19, 2)], [log(20, 3, 2)]] }

  const scan = scanned(craftFiles([FIVE, next]))

  expect(scan.damage).toBeUndefined()
  expect(scan).toMatchObject({ firstIndex: 20, lastIndex: 22, terms: [{ term: 2, firstIndex: 20 }] })
  expect(scan.files[0]?.lastIndex).toBe(0)
})

test.each<[string, Crafted, string]>([
  ['no snapshot explains where it begins', { firstIndex: 20, groups: [[identity, state(1, 1, 5)]] }, 'not 6'],
  ['its snapshot is another', { firstIndex: 20, groups: [[identity, state(1, 1, 7), mark(7)]] }, 'at index 20, not 6'],
  ['its snapshot goes back', { firstIndex: 1, groups: [[identity, state(1, 1, 5), mark(0, 0)]] }, 'at index 1, not 6'],
  [
    'it is of another cluster',
    { firstIndex: 6, groups: [[identity]], header: { identity: otherCluster } },
    'the cluster id differs',
  ],
  [
    'it was written behind something else',
    { firstIndex: 6, groups: [[identity]], header: { previous: { sequence: 1, checksum: 2, group: 3 } } },
    'it does not continue the log file before it',
  ],
  ['its header names another file', { firstIndex: 6, groups: [[identity]], header: { sequence: 9 } }, '(file 9, first'],
  ['its header names another index', { firstIndex: 6, groups: [[identity]], header: { firstIndex: 8 } }, 'index 8)'],
])('V4: a file that does not follow the one before it is damage: %s', (_, next, reason) => {
  const { damage: found, lastIndex } = scanned(craftFiles([FIVE, next]))

  expect(found?.reason).toContain(reason)
  expect(found?.file).toContain(logFileName(2, next.firstIndex))
  expect(lastIndex).toBe(5)
})

test('only the newest marks are kept, and the same one is kept once', () => {
  const marks = Array.from({ length: 20 }, (_, i) => [state(1, 1, 20), mark(i + 1), mark(i + 1)])
  const scan = scanned(craft([HEAD, [state(1, 1, 20), log(1, 20, 1)], ...marks]))

  expect(scan.damage).toBeUndefined()
  expect(scan.marks.map(({ index }) => index)).toEqual(Array.from({ length: 16 }, (_, i) => i + 5))
})

test('a log that begins at a snapshot without a mark accepts entries of any term', () => {
  const disk = craftFiles([{ firstIndex: 42, groups: [[identity, state(3, 1, 41), mark(30, 2)], [log(42, 2, 1)]] }])

  expect(scanned(disk)).toMatchObject({ damage: undefined, firstIndex: 42, lastIndex: 43 })
})

test('inconsistent records after the damage do not extend the known loss', () => {
  const nonsense: Payload = [RECORD_TYPE.entries, new Uint8Array(40)]
  const scan = scanned(craft([HEAD, [state(1, 1, 9), log(1, 5, 1)], [nonsense], [state(1, 1, 9), log(6, 2, 1)]]))

  expect(scan.damage?.reason).toContain('index 9 was committed')
  expect(scan).toMatchObject({ lastIndex: 0, lostThrough: 7 })
})

test('where no header can be read, nothing is believed and no checksum is looked for', () => {
  const disk = craft([HEAD, [state(1, 1, 0), log(1, 5, 1)]])
  damage(disk, `/wal/${logFileName(1, 1)}`, 100, Uint8Array.of(1, 2, 3))

  const found = inspectWal(disk, '/wal')

  expect(found).toMatchObject({ damage: { offset: 0 }, firstIndex: 1, lastIndex: 0 })
  expect(found?.damage?.reason).toContain('header')
  expect(found?.files[0]?.identity).toBeUndefined()
})

test('a foreign file or one of a later format is distinguished from a damaged one', () => {
  const path = `/wal/${logFileName(1, 1)}`
  const foreign = craft([HEAD])
  damage(foreign, path, 0, Uint8Array.of(1))
  expect(scanned(foreign).damage?.reason).toBe('it does not begin like a log file')

  const later = craft([HEAD])
  const header = contentOf(later, path).slice(0, FILE_HEADER_BYTES)
  const view = viewOf(header)
  view.setUint32(8, 2, true)
  view.setUint32(FILE_HEADER_BYTES - 4, crc32c(header, 0, FILE_HEADER_BYTES - 4), true)
  damage(later, path, 0, header)
  expect(scanned(later).damage?.reason).toBe('format version 2 is not known to this program')
})

test('entries that were replaced stay replaced', () => {
  const groups: Groups = [HEAD, [state(2, 1, 2), log(1, 6, 1)], [state(2, 1, 2), log(4, 3, 2)]]
  const disk = craft(groups)
  const texts: string[] = []
  replayEntries(disk, scanned(disk), 1, (first, count, bytes, start) => {
    texts.push(...textsOf(first, count, bytes, start))
  })

  const kept = [...textsOf(1, 3, entries(1, 3, 1).bytes), ...textsOf(4, 3, entries(4, 3, 2).bytes)]
  expect(texts).toEqual(kept)
})

test('where no log is, or one of another cluster, nothing is saved', () => {
  const disk = createSimulatedDisk()
  disk.makeDirectory('/wal')
  const nothing = { lastIndex: 7, lastTerm: 1, scan: undefined }
  expect(salvageWal(disk, '/wal', { index: 7, term: 1 })).toEqual({
    ...{ ...nothing, damage: undefined, lost: { from: 8, through: undefined } },
  })

  const whole = wholeLog().disk
  expect(salvageWal(whole, '/wal', { index: 40, term: 1 }, IDENTITY)).toMatchObject({ lastIndex: 100 })
  expect(salvageWal(whole, '/wal', { index: 7, term: 1 }, otherCluster)).toMatchObject({
    ...{ ...nothing, damage: { reason: 'the cluster id differs' } },
  })
})

test('a file shorter than its header is reported as such', () => {
  const disk = craft([HEAD])
  cut(disk, `/wal/${logFileName(1, 1)}`, 1_000)

  expect(scanned(disk).damage).toMatchObject({ offset: 0, reason: 'the header has 1000 of 4096 bytes' })
  expect(scanned(disk, { identity: IDENTITY }).damage).toMatchObject({ reason: 'the header has 1000 of 4096 bytes' })
})

test('a disk that refuses to read is damage wherever it does so, never the end of the log', () => {
  const large = 10 * 1024 * 1024
  const groups: Groups = [HEAD, [state(1, 1, 0), log(1, 5, 1)]]
  const failing = (read: number): SimulatedDisk => {
    const disk = craftFiles([{ firstIndex: 1, groups, bytes: large }])
    let reads = 0
    disk.fault = ({ call }) => (call === 'read' && ++reads >= read ? { kind: 'fail', code: 'EIO' } : undefined)
    return disk
  }

  // The file is read in windows: the first holds the header and all records, the next ones zeros.
  expect(scanned(failing(9), { identity: IDENTITY })).toMatchObject({ damage: undefined, lastIndex: 5 })
  expect(scanned(failing(1), { identity: IDENTITY }).damage).toMatchObject({
    offset: 0,
    reason: 'the header cannot be read (EIO)',
  })
  expect(scanned(failing(2), { identity: IDENTITY })).toMatchObject({
    damage: { reason: 'it cannot be read (EIO)' },
    lastIndex: 5,
  })
  const read = (): never => {
    throw new Error('the cable is out')
  }
  expect(scanned({ ...craft(groups), read }, { identity: IDENTITY }).damage?.reason).toContain('the cable is out')
})

test('a record that cannot be read is damage, not a torn tail', () => {
  // Entries as large as they may be: few of them are more than is read at once.
  const wide = Array.from({ length: 9 }, (_, i): readonly Payload[] => [log(1 + i, 1, 1, ENTRY_BYTES_MAX)])
  const disk = craftFiles([{ firstIndex: 1, groups: [HEAD, ...wide], bytes: 12 * 1024 * 1024 }])
  const whole = scanned(disk, { identity: IDENTITY })
  expect(whole).toMatchObject({ damage: undefined, lastIndex: 9 })
  let reads = 0
  disk.fault = ({ call }) => (call === 'read' && ++reads === 2 ? { kind: 'fail', code: 'EIO' } : undefined)

  const { damage: found, lastIndex } = scanned(disk, { identity: IDENTITY })

  expect(found?.reason).toBe('it cannot be read (EIO)')
  expect(lastIndex).toBeLessThan(9)
})

test('entries damaged between two reads are not returned', () => {
  const disk = craft([HEAD, [state(1, 1, 0), log(1, 5, 1)], [state(1, 1, 0), log(6, 5, 1)]])
  const scan = scanned(disk)
  const path = `/wal/${logFileName(1, 1)}`
  const at = Buffer.from(contentOf(disk, path)).indexOf(Buffer.from(entries(8, 1, 1).bytes))
  damage(disk, path, at + ENTRY_HEADER_BYTES, Uint8Array.of(99))
  const seen: string[] = []

  const replay = () =>
    replayEntries(disk, scan, 1, (firstIndex, count, bytes, start) =>
      seen.push(...textsOf(firstIndex, count, bytes, start)),
    )

  expect(replay).toThrow(expect.objectContaining({ code: 'corrupt_data' }))
  expect(seen).toEqual(textsOf(1, 5, entries(1, 5, 1).bytes))
})

test('two membership entries above the commit index are damage', () => {
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

test('inspect reports the contents of each file and the position of damage', () => {
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

test('entries after the damage are lost, and their range is reported', () => {
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

test('a gap after the snapshot salvages no entry and reports the entries found', () => {
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

/** Offset of a record in a file with these groups. */
function offsetOf(groups: Groups, group: number, record = 0): number {
  const before = [...groups.slice(0, group).flat(), ...(groups[group] ?? []).slice(0, record)]
  return before.reduce((sum, [, bytes]) => sum + recordBytes(bytes.length), FILE_HEADER_BYTES)
}

/** Entries of the membership kind. */
const change = (index: number): Payload => {
  const [type, bytes] = log(index, 1, 1)
  bytes[12 + 8] = ENTRY_KIND.configuration
  return [type, bytes]
}

test.each<[string, Groups, number, number]>([
  ['a term that goes back', [HEAD, [state(2, 1, 0)], [state(2, 1, 0), state(1, 1, 0)]], 2, 1],
  ['a vote that changes within its term', [HEAD, [state(1, 1, 0), state(1, 2, 0)]], 1, 1],
  ['a vote that is taken back', [HEAD, [state(1, 0, 0)]], 1, 0],
  ['a commit index that goes back', [HEAD, [state(1, 1, 3), log(1, 5, 1)], [state(1, 1, 2)]], 2, 0],
  ['a gap before entries', [HEAD, [state(1, 1, 0), log(2, 1, 1)]], 1, 1],
  ['a committed entry that is replaced', [HEAD, [state(1, 1, 3), log(1, 5, 1)], [state(1, 1, 3), log(3, 1, 1)]], 2, 1],
  [
    'entries of a lower term behind a replaced one',
    [HEAD, [state(2, 1, 0), log(1, 2, 1), log(3, 1, 2)], [log(4, 1, 1)]],
    2,
    0,
  ],
  [
    'a replacement of a lower term than the entry before it',
    [HEAD, [state(2, 1, 0), log(1, 1, 1), log(2, 2, 2)], [log(3, 1, 1)]],
    2,
    0,
  ],
  ['an entry of a later term than the stored one', [HEAD, [state(1, 1, 0), log(1, 1, 2)]], 1, 1],
  [
    'a snapshot that is older than the last one',
    [HEAD, [state(1, 1, 5), log(1, 5, 1), mark(5)], [state(1, 1, 5), mark(4)]],
    2,
    1,
  ],
  ['an end with a higher last index', [HEAD, [state(1, 1, 0), log(1, 5, 1)], [end(6)]], 2, 0],
  ['an identity of another cluster', [HEAD, [state(1, 1, 0), [RECORD_TYPE.identity, new Uint8Array(64)]]], 1, 1],
  ['a commit index behind the last entry', [HEAD, [state(1, 1, 0), log(1, 5, 1), state(1, 1, 6)]], 1, 0],
])('damage is at the offset of the record: %s', (_, groups, group, record) => {
  const scan = scanned(craft(groups))

  expect(scan.damage?.offset, scan.damage?.reason).toBe(offsetOf(groups, group, record))
  // Nothing of the group counts.
  expect(scan.files[0]?.validBytes).toBe(offsetOf(groups, group))
})

test.each<[string, Groups]>([
  ['the same term, vote and commit index again', [HEAD, [state(1, 1, 0)], [state(1, 1, 0)]]],
  ['a vote after none', [[identity, state(1, 0, 0), mark(0, 0)], [state(1, 2, 0)]]],
  ['another vote in the next term', [HEAD, [state(2, 2, 0)]]],
  ['no vote in the next term', [HEAD, [state(2, 0, 0)]]],
  ['the first entry that is not committed is replaced', [HEAD, [state(1, 1, 3), log(1, 5, 1)], [log(4, 1, 1)]]],
  [
    'a replacement of a lower term than what it replaces',
    [HEAD, [state(2, 1, 0), log(1, 1, 1), log(2, 2, 2)], [log(2, 1, 1)]],
  ],
  ['an entry of exactly the stored term', [HEAD, [state(4, 1, 0), log(1, 1, 4)]]],
  ['the last entry is committed', [HEAD, [state(1, 1, 2), log(1, 2, 1)]]],
  ['the same snapshot again', [HEAD, [state(1, 1, 2), log(1, 2, 1), mark(2)], [mark(2)]]],
  ['a change of membership above a committed one', [HEAD, [state(1, 1, 1), change(1), change(2)]]],
  [
    'a change of membership that was replaced',
    [HEAD, [state(1, 1, 0), log(1, 1, 1), change(2)], [log(2, 1, 1), change(3)]],
  ],
])('what a correct log may hold is no damage: %s', (_, groups) => {
  const scan = scanned(craft(groups))
  expect(scan.damage).toBeUndefined()
  expect(scan.files[0]?.validBytes).toBe(offsetOf(groups, groups.length))
})

test('after a snapshot was installed the files before it hold nothing, and replay begins behind it', () => {
  const second: Crafted = { firstIndex: 6, groups: [[identity, state(1, 1, 5), mark(0, 0)], [log(6, 2, 1)], [end(7)]] }
  const third: Crafted = { firstIndex: 20, groups: [[identity, state(2, 1, 19), mark(19, 2)], [log(20, 2, 2)]] }
  const disk = craftFiles([FIVE, second, third])
  const scan = scanned(disk)

  expect(scan).toMatchObject({ damage: undefined, firstIndex: 20, lastIndex: 21, isJump: false, cuts: [] })
  expect(scan.files.map(({ lastIndex }) => lastIndex)).toEqual([0, 5, 21])
  expect(replayTexts(disk, scan)).toEqual(textsOf(20, 2, entries(20, 2, 2).bytes))
  expect(replayTexts(disk, scan, 21)).toEqual(textsOf(21, 1, entries(21, 1, 2).bytes))
})

test('a torn group is cut off wherever it ends; the same bytes before a whole group are damage', () => {
  const groups: Groups = [HEAD, [state(1, 1, 0), log(1, 5, 1)], [state(1, 1, 5), log(6, 3, 1), log(9, 2, 1)]]
  const size = offsetOf(groups, 3)
  const path = `/wal/${logFileName(1, 1)}`
  const valid = offsetOf(groups, 2)
  for (let at = valid; at < size; at += 3) {
    const disk = craftFiles([{ firstIndex: 1, groups, bytes: size }])
    cut(disk, path, at)
    expect(scanned(disk), `cut at ${at}`).toMatchObject({ damage: undefined, lastIndex: 5, lostThrough: 0 })
  }
  // Whole records of the unfinished group behind the torn one do not make it damage.
  const torn = craftFiles([{ firstIndex: 1, groups, bytes: size }])
  damage(torn, path, valid + RECORD_HEADER_BYTES, Uint8Array.of(99))
  expect(scanned(torn)).toMatchObject({ damage: undefined, files: [{ validBytes: valid, tornBytes: size - valid }] })

  const next: Groups = [...groups, [log(11, 4, 1)]]
  const followed = craftFiles([{ firstIndex: 1, groups: next, bytes: offsetOf(next, 4) }])
  damage(followed, path, valid + RECORD_HEADER_BYTES, Uint8Array.of(99))
  const scan = scanned(followed)
  expect(scan.damage).toEqual({
    ...{ file: path, offset: valid },
    reason: `the checksum of the record does not match, and a record of group 4 stands at ${size}`,
  })
  // The entries behind the damage are known to be lost, also those that end with the file.
  expect(scan).toMatchObject({ lastIndex: 5, lostThrough: 14 })
})

test('entries of later files count as lost behind damage in any file', () => {
  const second: Crafted = { firstIndex: 6, groups: [[identity, state(1, 1, 5), mark(0, 0)], [log(6, 2, 1)], [end(7)]] }
  const third: Crafted = { firstIndex: 8, groups: [[identity, state(1, 1, 7), mark(0, 0)], [log(8, 4, 1)]] }
  const [one, two, three] = [logFileName(1, 1), logFileName(2, 6), logFileName(3, 8)].map((name) => `/wal/${name}`)
  const cases: [string | undefined, number, { lastIndex: number; lostThrough: number; offset: number }][] = [
    [one, 10, { lastIndex: 0, lostThrough: 11, offset: 0 }],
    [one, offsetOf(FIVE.groups, 1) + 4, { lastIndex: 0, lostThrough: 11, offset: offsetOf(FIVE.groups, 1) }],
    [two, 10, { lastIndex: 5, lostThrough: 11, offset: 0 }],
    [two, offsetOf(second.groups, 2) + 4, { lastIndex: 7, lostThrough: 11, offset: offsetOf(second.groups, 2) }],
    [three, 10, { lastIndex: 7, lostThrough: 11, offset: 0 }],
    [three, FILE_HEADER_BYTES + 4, { lastIndex: 7, lostThrough: 11, offset: FILE_HEADER_BYTES }],
  ]
  for (const [path = '', at, { offset, ...lost }] of cases) {
    const disk = craftFiles([FIVE, second, third])
    damage(disk, path, at, Uint8Array.of(99))
    const scan = scanned(disk, { identity: IDENTITY })
    expect(scan, `${path} at ${at}`).toMatchObject({ ...lost, damage: { file: path, offset } })
  }
})

test('reading resumes behind the first whole group after a damaged place', () => {
  const groups: Groups = [
    HEAD,
    [state(1, 1, 0), log(1, 5, 1)],
    [state(1, 1, 4), log(6, 3, 1)],
    [state(2, 1, 7), log(9, 2, 2)],
  ]
  const disk = craft(groups)
  const behind = scanned(disk, { identity: IDENTITY, resumeAt: offsetOf(groups, 1, 1) })
  expect(behind).toMatchObject({ damage: undefined, firstIndex: 6, lastIndex: 10, isLoose: false })
  expect(behind.terms).toEqual([
    { term: 1, firstIndex: 6 },
    { term: 2, firstIndex: 9 },
  ])
  expect(behind.files[0]).toMatchObject({ validFrom: offsetOf(groups, 2), validBytes: offsetOf(groups, 4), records: 4 })
  expect(replayTexts(disk, behind)).toHaveLength(5)
})

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

/** Groups that a correct log may hold, drawn, and what they leave: terms of all entries, hard state, last mark. */
function drawGroups(random: Random, steps: number) {
  let hard = { term: 1, vote: 1, commit: 0 }
  let terms: number[] = []
  let marked = { index: 0, term: 0 }
  const groups: Payload[][] = [[...HEAD]]
  for (let n = 0; n < steps; n++) {
    const term = hard.term + random.below(2)
    const vote = term > hard.term || hard.vote === 0 ? random.below(3) : hard.vote
    const batches: Payload[] = []
    let firstIndex = hard.commit + 1 + random.below(terms.length - hard.commit + 1)
    for (let batch = random.below(3); batch > 0; batch--) {
      const least = Math.max(1, terms[firstIndex - 2] ?? 0)
      const [count, of] = [1 + random.below(4), least + random.below(term - least + 1)]
      batches.push(log(firstIndex, count, of))
      terms = [...terms.slice(0, firstIndex - 1), ...Array<number>(count).fill(of)]
      firstIndex = terms.length + 1
    }
    const commit = hard.commit + random.below(terms.length - hard.commit + 1)
    hard = { term, vote, commit }
    const group = [state(term, vote, commit), ...batches]
    if (random.below(4) === 0 && commit > marked.index) {
      marked = { index: commit, term: terms[commit - 1] ?? 0 }
      group.push(mark(commit, marked.term))
    }
    groups.push(group)
  }
  return { groups, hard, terms, marked }
}

test('a drawn log reads back as its model, from every index on', () => {
  const random = createRandom(SEED)
  for (let round = 0; round < 60; round++) {
    const { groups, hard, terms, marked } = drawGroups(random, 1 + random.below(12))
    const disk = craft(groups)
    const scan = scanned(disk)
    const label = `seed ${SEED}, round ${round}`

    expect(scan.damage, label).toBeUndefined()
    expect([scan.hardState, scan.marks.at(-1), scan.lastIndex], label).toEqual([hard, marked, terms.length])
    expect(scan.files[0]?.validBytes, label).toBe(offsetOf(groups, groups.length))
    expect(
      terms.map((_, at) => termAt(scan.terms, at + 1)),
      label,
    ).toEqual(terms)
    const runs = terms.flatMap((term, at) => (term === terms[at - 1] ? [] : [{ term, firstIndex: at + 1 }]))
    expect(scan.terms, label).toEqual(runs)
    const texts = terms.flatMap((term, at) => textsOf(at + 1, 1, entries(at + 1, 1, term).bytes))
    for (let from = 1; from <= terms.length; from++) {
      expect(replayTexts(disk, scan, from), label).toEqual(texts.slice(from - 1))
    }
  }
})
