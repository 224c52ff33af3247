/**
 * Storage tests 1–4 of docs/design/testing.md#storage-tests for the log and the folder of a node, on a disk that drops
 * unsynced data. They also prove their own strength: with any one sync removed, one of them fails.
 *
 * The short form runs with all other tests. VACANCY_STORAGE_FULL=1 tries every byte, bit and operation; VACANCY_SEED
 * repeats a run.
 */

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { assert, createCodecList, VacancyError } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import {
  beginWriting,
  closeDataDirectory,
  createCluster,
  type DataDirectory,
  ensureReserve,
  logIdentity,
  openDataDirectory,
  setAside,
  walFolder,
  writeClean,
  writeCluster,
} from '../data/data-directory.ts'
import { diskFailed, isDiskFull, replaceFile } from '../env.ts'
import {
  contentOf,
  copyDisk,
  cut,
  type DiskOperation,
  damage,
  type Fault,
  fillDisk,
  restart,
  type SimulatedDisk,
} from '../testing/disk.ts'
import { batchTexts, entries, IDENTITY, replayTexts, SMALL, tryOpen } from '../testing/log-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import {
  crashEverywhere,
  failEverywhere,
  type Scenario,
  syncSites,
  type Watcher,
  withoutSync,
} from '../testing/storage.ts'
import { createWal, openWal, type Recovered } from '../wal/open.ts'
import type { SnapshotMark } from '../wal/payload.ts'
import { FILE_HEADER_BYTES } from '../wal/record.ts'
import { listLogFiles, scanLog } from '../wal/scan.ts'
import { appendGroup, closeWal, compactWal, type Group, prepareNext, retryNext, type Wal } from '../wal/wal.ts'

const FULL = process.env['VACANCY_STORAGE_FULL'] === '1'
const SEED = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)
const PATH = '/data/node'
const RESERVE = 4096
const CODECS = createCodecList(['breakfast'])
const sha256 = (bytes: Uint8Array) => Uint8Array.from(createHash('sha256').update(bytes).digest())

type State = {
  readonly texts: ReadonlyMap<number, string>
  readonly lastIndex: number
  readonly term: number
  readonly vote: number
  readonly commit: number
  readonly mark: number
}

type Ledger = {
  incarnation: string
  isFormed: boolean
  /** Acknowledged state. */
  state: State
  /** State if the group being written survives. */
  pending: State | undefined
  /** The log may begin at or before this index. */
  floor: number
  clean: 'no' | 'maybe' | 'yes'
  aside: 'absent' | 'here' | 'moving' | 'moved'
  processId: number
}

type Node = { readonly directory: DataDirectory; readonly wal: Wal; readonly disk: SimulatedDisk }

const NOTHING: State = { texts: new Map(), lastIndex: 0, term: 0, vote: 0, commit: 0, mark: 0 }

function createLedger(): Ledger {
  return {
    incarnation: '',
    isFormed: false,
    state: NOTHING,
    pending: undefined,
    floor: 1,
    clean: 'no',
    aside: 'absent',
    processId: 100,
  }
}

function start(disk: SimulatedDisk, ledger: Ledger): Node {
  const { env } = createSimulation({ disk, processId: ++ledger.processId, seed: ledger.processId })
  const directory = openDataDirectory(env, PATH, { nodeId: 'n1' })
  const { incarnation } = directory.identity
  assert(ledger.incarnation === '' || incarnation === ledger.incarnation, 'the incarnation is kept')
  ledger.incarnation = incarnation
  assert(ledger.clean !== 'yes' || directory.isClean, 'a clean shutdown is recorded')
  assert(ledger.clean !== 'no' || !directory.isClean, 'CLEAN only exists after a clean shutdown')
  const { cluster } = directory
  if (!cluster) {
    assert(!ledger.isFormed, 'a formed node stays formed')
    const genesis = { shardId: 's1', codecs: CODECS, base: { index: 0, term: 0 }, snapshotDigest: '', voters: ['n1'] }
    const formed = createCluster(genesis, sha256)
    const wal = createWal(env, walFolder(directory), logIdentity(directory, formed), genesis.base, SMALL)
    writeCluster(directory, formed)
    ledger.isFormed = true
    ledger.clean = 'no'
    return { directory, wal, disk }
  }
  ledger.isFormed = true
  const onVerified = () => {
    ledger.clean = 'maybe'
    beginWriting(directory)
    ledger.clean = 'no'
  }
  const options = { ...SMALL, isClean: directory.isClean, onVerified }
  const { wal, recovered } = openWal(env, walFolder(directory), logIdentity(directory, cluster), options)
  compare(disk, recovered, ledger)
  return { directory, wal, disk }
}

/**
 * Recovery yields every acknowledged group, and in addition the group being written as a whole or not at all
 * (docs/design/testing.md#oracles).
 */
function compare(disk: SimulatedDisk, recovered: Recovered, ledger: Ledger): void {
  const texts = replayTexts(disk, recovered.scan)
  const found = describe({
    texts: new Map(texts.map((text, i) => [recovered.firstIndex + i, text])),
    lastIndex: recovered.lastIndex,
    ...recovered.hardState,
    mark: recovered.marks.at(-1)?.index ?? 0,
  })
  assert(recovered.firstIndex <= ledger.floor, 'needed entries are not compacted')
  const states = ledger.pending ? [ledger.state, ledger.pending] : [ledger.state]
  const match = states.find((state) => describe(state, recovered.firstIndex) === found)
  assert(match, `recovered:\n${found}\nexpected one of\n${states.map((s) => describe(s)).join('\n')}`)
  ledger.state = match
  ledger.pending = undefined
}

function describe(state: State, from = 1): string {
  const texts = [...state.texts].filter(([index]) => index >= from).map(([, text]) => text)
  return JSON.stringify([state.lastIndex, state.term, state.vote, state.commit, state.mark, texts])
}

function append(node: Node, ledger: Ledger, group: Group): boolean {
  const before = ledger.state
  const texts = new Map(before.texts)
  let { lastIndex } = before
  for (const batch of group.batches) {
    for (let index = batch.firstIndex; index <= lastIndex; index++) texts.delete(index)
    for (const [i, text] of batchTexts([batch]).entries()) texts.set(batch.firstIndex + i, text)
    lastIndex = batch.firstIndex + batch.count - 1
  }
  const { term, vote, commit } = group.hardState ?? before
  ledger.pending = { texts, lastIndex, term, vote, commit, mark: group.mark?.index ?? before.mark }
  const result = appendGroup(node.wal, group)
  if (result === 'stored') ledger.state = ledger.pending
  ledger.pending = undefined
  return result === 'stored'
}

const next = ({ state }: Ledger, count: number, bytes: number, salt = 0) =>
  entries(state.lastIndex + 1, count, state.term, bytes, salt)

/** Appends entries whose predecessors are committed, as a single voter does. */
function write(node: Node, ledger: Ledger, count: number, bytes = 60): boolean {
  if (ledger.state.term === 0 && !campaign(node, ledger)) return false
  const { term, vote, lastIndex } = ledger.state
  return append(node, ledger, { hardState: { term, vote, commit: lastIndex }, batches: [next(ledger, count, bytes)] })
}

function campaign(node: Node, ledger: Ledger): boolean {
  const { term, commit } = ledger.state
  return append(node, ledger, { hardState: { term: term + 1, vote: 1, commit }, batches: [] })
}

function commitAll(node: Node, ledger: Ledger): boolean {
  const { term, vote, lastIndex } = ledger.state
  return append(node, ledger, { hardState: { term, vote, commit: lastIndex }, batches: [] })
}

function markAndCompact(node: Node, ledger: Ledger): void {
  const mark: SnapshotMark = { index: ledger.state.commit, term: ledger.state.term }
  if (!append(node, ledger, { mark, batches: [] })) return
  ledger.floor = mark.index + 1
  compactWal(node.wal, ledger.floor)
}

function stop({ wal, directory }: Node, ledger: Ledger): void {
  closeWal(wal)
  ledger.clean = 'maybe'
  ledger.clean = writeClean(directory) ? 'yes' : 'no'
  closeDataDirectory(directory)
}

/** A file beside the log that is set aside later. */
function putOld(disk: SimulatedDisk, ledger: Ledger): void {
  try {
    replaceFile(disk, join(PATH, 'old'), Uint8Array.of(1, 2, 3))
  } catch (error) {
    step(!isDiskFull(error), 'there is room for it')
    throw error instanceof VacancyError ? error : diskFailed('writing', 'old', error)
  }
  ledger.aside = 'here'
}

function compareAside(disk: SimulatedDisk, { aside }: Ledger): void {
  if (aside === 'absent') return
  const isHere = disk.stat(join(PATH, 'old'))?.bytes === 3
  const quarantine = join(PATH, 'quarantine')
  const places = disk.stat(quarantine) ? disk.list(quarantine) : []
  const isThere = places.some((place) => disk.stat(join(quarantine, place, 'old'))?.bytes === 3)
  assert(isHere || isThere, 'a file set aside is never lost')
  assert(aside !== 'here' || isHere, 'no file moves unless set aside')
  assert(aside !== 'moved' || !isHere, 'a file set aside does not return')
  assert(aside !== 'moved' || isThere, 'a file set aside is kept')
}

function check(disk: SimulatedDisk, ledger: Ledger, continues: boolean): void {
  compareAside(disk, ledger)
  const node = startWhenFull(disk, ledger)
  if (!continues) return
  // A full disk may refuse entries but never lose them. A vote uses the reserve of the file.
  if (!write(node, ledger, 2)) campaign(node, ledger)
}

/** A node without any room reports that, and starts once there is some. */
function startWhenFull(disk: SimulatedDisk, ledger: Ledger): Node {
  try {
    return start(disk, ledger)
  } catch (error) {
    const isFull = error instanceof VacancyError && error.code === 'no_room'
    if (!isFull || disk.stat(join(PATH, 'reserve.bin'))) throw error
    const again = restart(disk)
    again.capacityBytes += 100_000
    return start(again, ledger)
  }
}

/**
 * No sync writes more than one step of the next file, so that no commit waits for more
 * (docs/design/storage.md#log-files).
 */
function checkRun(operations: readonly DiskOperation[]): void {
  const unsynced = new Map<string, number>()
  for (const { call, path, bytes, fault } of operations) {
    if (call === 'write') unsynced.set(path, (unsynced.get(path) ?? 0) + bytes)
    if (call !== 'syncData' || fault) continue
    const isCopy = path.endsWith('.log.tmp')
    const most = (SMALL.prepareSyncBytes ?? 0) + FILE_HEADER_BYTES + 512
    assert(isCopy || (unsynced.get(path) ?? 0) <= most, `a sync of ${path} waits for a whole file`)
    unsynced.set(path, 0)
  }
}

const common = { createLedger, check, checkRun, copyLedger: (ledger: Ledger) => ({ ...ledger }) }

/** A step of a scenario had another result than on a healthy disk. */
class ScenarioError extends Error {}

function step(isExpected: boolean, message: string): void {
  if (!isExpected) throw new ScenarioError(message)
}

/** First start, votes, several log files, a snapshot mark, compaction, clean shutdown, restart, a new term. */
const life: Scenario<Ledger> = {
  ...common,
  name: 'the life of a node',
  run(disk, ledger) {
    const node = start(disk, ledger)
    ensureReserve(node.directory, RESERVE)
    putOld(disk, ledger)
    campaign(node, ledger)
    for (let i = 0; i < 10; i++) {
      write(node, ledger, 12)
      prepareNext(node.wal, 3000)
    }
    commitAll(node, ledger)
    step(node.wal.files.length >= 3, 'more than one file can be deleted')
    markAndCompact(node, ledger)
    step(node.wal.files.length === 1, 'older files are deleted')
    ledger.aside = 'moving'
    setAside(node.directory, ['old'], 'test')
    ledger.aside = 'moved'
    stop(node, ledger)

    const again = start(disk, ledger)
    campaign(again, ledger)
    step(write(again, ledger, 3), 'these entries are replaced by the next')
    const { term, vote, commit, lastIndex } = ledger.state
    append(again, ledger, {
      hardState: { term: term + 1, vote, commit },
      batches: [entries(lastIndex - 1, 2, term + 1, 60, 5)],
    })
    for (let i = 0; i < 4; i++) write(again, ledger, 14)
  },
}

/**
 * The disk fills up, still accepts votes and marks, accepts entries once there is room, and then runs out during a
 * write.
 */
const fullDisk: Scenario<Ledger> = {
  ...common,
  name: 'a full disk',
  run(disk, ledger) {
    const node = start(disk, ledger)
    campaign(node, ledger)
    fillDisk(disk)
    while (write(node, ledger, 20));
    campaign(node, ledger)
    markAndCompact(node, ledger)
    disk.capacityBytes += 20_000
    step(retryNext(node.wal), 'space has returned')
    step(write(node, ledger, 5), 'entries are accepted again')

    fillDisk(disk)
    disk.copiesOnWrite = 'each time'
    disk.capacityBytes += 700
    // Many small records, so that complete records of the refused group stay on the disk.
    const { term, vote, lastIndex } = ledger.state
    const batches = Array.from({ length: 20 }, (_, i) => entries(lastIndex + 1 + i, 1, term, 20))
    const refused = { hardState: { term, vote, commit: lastIndex }, batches }
    step(!append(node, ledger, refused), 'a file system that copies runs out in the middle of a write')
    step(!append(node, ledger, refused), 'and has no room to wipe what was written')
    disk.capacityBytes += 20_000
    step(write(node, ledger, 2), 'the next group overwrites the refused one')
    disk.copiesOnWrite = false
  },
}

const SCENARIOS = [life, fullDisk]

const options = (watcher?: Watcher) => ({
  random: createRandom(SEED),
  samples: FULL ? 30 : 3,
  ...(watcher && { watcher }),
})

function seeded(violation: { at: number; how: string; error: Error } | undefined): string {
  return violation ? `seed ${SEED}, operation ${violation.at}, ${violation.how}: ${violation.error.stack}` : ''
}

// 1 and 2: one log, damaged at every position.

const LOG = { ...SMALL, fileBytes: 65_536 }
const openCopy = (disk: SimulatedDisk, options = LOG) => tryOpen(createSimulation({ disk }).env, '/wal', options)

/** Groups of 40 records in one file; the last move of the commit index is a group of its own. */
function logOfGroups(groups: number, records: number, withCommit: boolean, options = LOG) {
  const simulation = createSimulation({ seed: SEED })
  simulation.disk.makeDirectory('/wal')
  const wal = createWal(simulation.env, '/wal', IDENTITY, { index: 0, term: 0 }, options)
  const ends: { offset: number; texts: string[] }[] = [{ offset: wal.offset, texts: [] }]
  for (let group = 0; group < groups; group++) {
    const batches = Array.from({ length: records - 1 }, (_, i) => entries(wal.lastIndex + 1 + i, 1, 1, 4 + (i % 23)))
    appendGroup(wal, { hardState: { term: 1, vote: 1, commit: wal.lastIndex }, batches })
    ends.push({ offset: wal.offset, texts: [...(ends.at(-1)?.texts ?? []), ...batchTexts(batches)] })
  }
  if (withCommit) appendGroup(wal, { hardState: { term: 1, vote: 1, commit: wal.lastIndex }, batches: [] })
  assert(wal.files.length === 1, 'the log is one file')
  const path = wal.files[0]?.path ?? ''
  return { disk: copyDisk(simulation.disk), path, ends, end: wal.offset }
}

test('1. a log that is cut, or ends in zeros or noise, at any byte yields exactly the groups before', () => {
  const { disk, path, ends, end } = logOfGroups(5, 40, false)
  const random = createRandom(SEED)
  const step = FULL ? 1 : 11
  for (let at = (ends[0]?.offset ?? 0) + random.below(step); at <= end; at += step) {
    const whole = ends.findLast(({ offset }) => offset <= at)
    for (const how of ['cut', 'zeros', 'noise'] as const) {
      const copy = copyDisk(disk)
      if (how === 'cut') cut(copy, path, at)
      else {
        const length = Math.min(end - at, how === 'zeros' ? end : 1 + random.below(2000))
        const noise = () => (how === 'zeros' ? 0 : random.below(256))
        // Noise that is zero at the end of a group would leave it intact: make the first byte differ.
        const first = contentOf(copy, path)[at] ^ 0x55
        const bytes = Uint8Array.from({ length }, (_, i) => (how === 'noise' && i === 0 ? first : noise()))
        if (how === 'noise') damage(copy, path, at + length, new Uint8Array(end - at - length))
        damage(copy, path, at, bytes)
      }
      const found = openCopy(copy)
      const why = `seed ${SEED}, ${how} at ${at}: ${found.message}`
      // A group that lost only padding is intact.
      const next = ends.find(({ offset }) => offset > at && offset - at < 8)
      const isNext = next !== undefined && found.texts.length === next.texts.length
      expect(found.code, why).toBe('')
      expect(found.texts, why).toEqual(isNext ? next.texts : whole?.texts)
    }
  }
}, 600_000)

test.each([512, 4096])(
  '1. any set of pages of %i bytes of the last group may be missing',
  (page) => {
    const large = { ...SMALL, fileBytes: 262_144 }
    const { disk, path, ends, end } = logOfGroups(5, page === 512 ? 40 : 300, false, large)
    const random = createRandom(SEED)
    const start = ends.at(-2)?.offset ?? 0
    const first = Math.floor(start / page)
    const pages = Math.ceil(end / page) - first
    const subsets = 2 ** pages
    const tries = FULL ? Math.min(subsets, 65_536) : Math.min(subsets, 300)
    for (let i = 0; i < tries; i++) {
      const set = tries === subsets ? i : random.below(subsets)
      for (const filler of [0, 0xa5]) {
        const copy = copyDisk(disk)
        for (let n = 0; n < pages; n++) {
          if ((set >>> n) & 1) continue
          const from = Math.max(start, (first + n) * page)
          damage(copy, path, from, new Uint8Array(Math.min(end, (first + n + 1) * page) - from).fill(filler))
        }
        const found = openCopy(copy)
        const why = `seed ${SEED}, pages ${set.toString(2)}, filler ${filler}: ${found.message}`
        expect(found.code, why).toBe('')
        expect(found.texts, why).toEqual(ends.at(set === subsets - 1 ? -1 : -2)?.texts)
      }
    }
  },
  600_000,
)

test('2. a flipped bit anywhere in a log yields the same state or a refusal, never another state', () => {
  const { disk, path, ends, end } = logOfGroups(18, 40, true)
  expect(end).toBeGreaterThan(50_000)
  const whole = openCopy(copyDisk(disk))
  const random = createRandom(SEED)
  const step = FULL ? 1 : 397
  const copy = copyDisk(disk)
  const content = contentOf(disk, path)
  let refused = 0
  for (let bit = random.below(step); bit < content.length * 8; bit += step) {
    const at = bit >>> 3
    const byte = content[at]
    damage(copy, path, at, Uint8Array.of(byte ^ (1 << (bit & 7))))
    const found = verdict(copy)
    const why = `seed ${SEED}, bit ${bit & 7} of byte ${at}: ${found.reason}`
    if (found.reason) refused++
    else {
      expect(found.texts, why).toEqual(ends.at(-1)?.texts)
      expect([found.term, found.vote], why).toEqual([whole.term, whole.vote])
    }
    damage(copy, path, at, Uint8Array.of(byte))
  }
  expect(refused).toBeGreaterThan(100)
}, 600_000)

/** The decision of recovery without its effects: the same files are read half a million times. */
function verdict(disk: SimulatedDisk): { reason: string; texts: string[]; term: number; vote: number } {
  const scan = scanLog(disk, listLogFiles(disk, '/wal'), { identity: IDENTITY })
  const { term, vote } = scan.hardState
  if (scan.damage) return { reason: scan.damage.reason, texts: [], term, vote }
  return { reason: '', texts: replayTexts(disk, scan), term, vote }
}

// 3 and 4: a node's life, crashed and failing at every operation.

test.each(SCENARIOS)(
  '3. $name: a crash at any operation loses no acknowledged data',
  (scenario) => {
    expect(seeded(crashEverywhere(scenario, options()))).toBe('')
  },
  600_000,
)

test('3. with any one sync removed, some acknowledged data is lost', () => {
  const missed: string[] = []
  const sites = SCENARIOS.map((scenario) => syncSites(scenario))
  const all = [...new Set(sites.flatMap((found) => [...found.keys()]))].sort()
  for (const site of all) {
    const isFound = SCENARIOS.some((scenario, i) => {
      const from = sites[i]?.get(site)
      if (from === undefined) return false
      const without = { ...options(withoutSync(site)), from }
      // Most are found anywhere, some by killing the process, a few only just where they were called.
      const passes = [{ killsOnly: true, every: 3 }, { every: 7 }, { killsOnly: true }, {}]
      return passes.some((pass) => crashEverywhere(scenario, { ...without, ...pass }))
    })
    if (!isFound) missed.push(site)
  }
  expect(all.length).toBeGreaterThan(20)
  expect(missed).toEqual([])
}, 600_000)

/** How each call can fail besides EIO. */
function faultOf(operation: DiskOperation, code: string): Fault | undefined {
  const { call } = operation
  const takesRoom = call === 'create' || call === 'write' || call === 'rename' || call === 'makeDirectory'
  switch (code) {
    case 'EIO':
      return call === 'close' ? undefined : { kind: 'fail', code }
    case 'ENOSPC':
      return takesRoom ? { kind: 'fail', code } : undefined
    case 'EINTR':
      return call === 'write' || call === 'read' ? { kind: 'fail', code } : undefined
    case 'short':
      return call === 'write' ? { kind: 'short', bytes: Math.floor(operation.bytes / 2) || 1 } : undefined
    default:
      return call === 'write' ? { kind: 'short', bytes: operation.bytes >>> 1, code: 'ENOSPC' } : undefined
  }
}

const CHANGES = new Set(['create', 'write', 'rename', 'unlink', 'makeDirectory', 'syncData', 'syncDirectory'])

test.each(['EIO', 'ENOSPC', 'short', 'EINTR', 'short, then ENOSPC'])(
  '4. %s at any operation ends as specified and loses nothing',
  (code) => {
    const look = (operation: DiskOperation, thrown: unknown, disk: SimulatedDisk): void => {
      const what = `${operation.call} ${operation.path}: ${thrown instanceof Error ? thrown.stack : 'continued'}`
      if (code === 'short' || code === 'EINTR') return expect(thrown, what).toBeUndefined()
      if (thrown === undefined) return
      expect(thrown, what).toBeInstanceOf(VacancyError)
      const { code: name } = thrown as VacancyError
      // A full disk is reported as such, or the write is refused without an error. Every failed change ends with 70. A
      // failed read ends with 70, or with 71 if it is data.
      if (code === 'EIO') expect(['disk_failed', 'corrupt_data'], what).toContain(name)
      else expect(name, what).toBe('no_room')
      if (name !== 'disk_failed' || !CHANGES.has(operation.call)) return
      // No write follows a failure whose effect is unknown (docs/design/storage.md#disk-errors).
      const after = disk.operations.slice(operation.number + 1).filter(({ call }) => CHANGES.has(call))
      expect(after, what).toEqual([])
    }
    for (const scenario of SCENARIOS) {
      const violation = failEverywhere(
        { ...scenario, run: tolerant(scenario) },
        { ...options(), samples: FULL ? 10 : 1 },
        (operation) => (FULL || operation.number % 3 === SEED % 3 ? faultOf(operation, code) : undefined),
        look,
      )
      expect(seeded(violation)).toBe('')
    }
  },
  600_000,
)

/** A scenario asserts the results of a healthy disk. Under faults only the ledger counts. */
function tolerant(scenario: Scenario<Ledger>): Scenario<Ledger>['run'] {
  return (disk, ledger) => {
    try {
      scenario.run(disk, ledger)
    } catch (error) {
      if (!(error instanceof ScenarioError)) throw error
    }
  }
}
