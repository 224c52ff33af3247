/** What a replica does with the replies of its log: stored groups, a full disk, deletion of the log. */

import { expect, test } from 'vitest'
import type { SnapshotOffer } from '../raft/messages.ts'
import { step } from '../raft/raft.ts'
import { acknowledge, drain, give, leaderOf, memberOf } from '../testing/raft-fixture.ts'
import { REFUSED } from '../threads/writes.ts'
import type { FromWal, ToWal } from '../wal/wal-thread.ts'
import { shardTime } from './keep-time.ts'
import { compactionFloor, noteFullDisk, onLogMessage, retryLog, snapshotCurrent } from './log-answers.ts'
import {
  addSink,
  createReplica,
  isBetweenStates,
  observe,
  RETRY_FULL_MS,
  type Replica,
  type ReplicaParts,
  SNAPSHOT_LOOK_MS,
} from './replica-state.ts'

type Raft = ReturnType<typeof leaderOf>

function around(raft: Raft) {
  const timers: { delayMs: number; run: () => void }[] = []
  const seen = { log: [] as ToWal[], lines: [] as string[], fatal: [] as unknown[], reserves: 0, retained: 0 }
  const note = (_fields: object, message: string) => void seen.lines.push(message)
  const env = {
    clock: { monotonicMs: () => 500, wallMs: () => 1_000 },
    log: { debug: note, info: note, warn: note, error: note },
    schedule: {
      after(delayMs: number, run: () => void) {
        timers.push({ delayMs, run })
        return () => undefined
      },
    },
  }
  const machine = {
    ...{ publish: () => undefined, digestMarks: () => [], lastMaintenanceDay: () => 0, latestTimeMs: () => 77 },
    ...{ apply: (index: number) => ({ code: 0, value: 0, index, detail: '', stay: 0 }) },
    time: { lastSet: () => undefined, noteDay: () => undefined },
    stays: { nextDeadlineMs: () => Number.POSITIVE_INFINITY },
  }
  const replica = createReplica({
    ...{ env, raft, machine, onMaintained: () => undefined },
    onFatal: (failure: unknown) => void seen.fatal.push(failure),
    onReserve: () => void seen.reserves++,
    log: (message: ToWal) => void seen.log.push(message),
    snapshots: { start: () => undefined, retain: () => void seen.retained++ },
    space: () => ({ freeBytes: 5e9, totalBytes: 1e10 }),
    ...{ snapshotIntervalMs: 1e9, snapshotTriggerCount: 1e9, snapshotIndex: 0, tornTailBytes: 0, acceptDay: 0 },
    lastTimeMs: 1_000,
  } as unknown as ReplicaParts)
  return { replica, seen, timers, env }
}

/** A leader of three that has applied 100 entries; all peers have them. */
function leading() {
  const raft = leaderOf()
  give(raft, 99)
  drain(raft)
  for (const id of [2, 3]) acknowledge(raft, id)
  drain(raft)
  expect(raft.applied).toBe(100)
  return around(raft)
}

const stored = (token: number, change: object = {}): FromWal =>
  ({ type: 'stored', token, syncMs: 2, entries: 3, bytes: 4_096, files: 2, ...change }) as FromWal

// The floor of the log

test.each<[string, Partial<Replica>, number]>([
  ['the older snapshot', { snapshotIndexBefore: 40, snapshotIndexLast: 90 }, 41],
  ['the entries kept before the newer one', { snapshotIndexBefore: 85, snapshotIndexLast: 90 }, 81],
  ['no snapshot yet', { snapshotIndexBefore: 0, snapshotIndexLast: 90 }, 1],
  ['fewer entries than are kept', { snapshotIndexBefore: 5, snapshotIndexLast: 5 }, 1],
  ['a snapshot ahead of what is applied here', { snapshotIndexBefore: 200, snapshotIndexLast: 300 }, 101],
])('the log begins behind %s', (_name, change, floor) => {
  const { replica } = leading()
  Object.assign(replica, { keptEntries: 10, ...change })
  expect(compactionFloor(replica)).toBe(floor)
})

test('by default 10,000 entries are kept before the newest snapshot', () => {
  const { replica } = around(memberOf())
  Object.assign(replica.raft, { applied: 50_000 })
  Object.assign(replica, { snapshotIndexBefore: 45_000, snapshotIndexLast: 50_000 })
  expect(compactionFloor(replica)).toBe(40_001)
})

test('entries are kept for a transfer that runs, and for followers that lag', () => {
  const { replica } = leading()
  Object.assign(replica, { keptEntries: 0, snapshotIndexBefore: 95, snapshotIndexLast: 99 })
  expect(compactionFloor(replica)).toBe(96)
  replica.link = { keptIndex: () => 60 } as unknown as NonNullable<Replica['link']>
  expect(compactionFloor(replica)).toBe(61)
  replica.link = { keptIndex: () => Number.POSITIVE_INFINITY } as unknown as NonNullable<Replica['link']>
  const [second, third] = replica.raft.peers as [Raft['peers'][0], Raft['peers'][0]]
  Object.assign(second, { match: 30 })
  Object.assign(third, { match: 50 })
  expect(compactionFloor(replica)).toBe(31)
  Object.assign(second, { state: 'snapshot' })
  expect(compactionFloor(replica)).toBe(51)
  Object.assign(third, { isActive: false, wasActive: false })
  expect(compactionFloor(replica)).toBe(96)
})

test('a follower that lags keeps no more than 1 GiB of log', () => {
  const { replica } = leading()
  Object.assign(replica, { keptEntries: 0, snapshotIndexBefore: 95, snapshotIndexLast: 99 })
  Object.assign(replica.raft.peers[0] ?? {}, { match: 30 })
  const floors = [1_073_741_824, 1_073_741_825].map((walBytes) => {
    Object.assign(replica, { walBytes })
    return compactionFloor(replica)
  })
  expect(floors).toEqual([31, 96])
})

test('a marked snapshot lets older ones and the log before it go', () => {
  const { replica, seen } = leading()
  Object.assign(replica, { keptEntries: 0, snapshotIndexBefore: 95, snapshotIndexLast: 99 })
  onLogMessage(replica, { type: 'marked' } as FromWal)
  expect([seen.retained, seen.log]).toEqual([1, [{ type: 'compact', floor: 96 }]])
})

test('a compacted log begins later in the core, and never behind what is applied', () => {
  const { replica } = leading()
  const firstAfter = (firstIndex: number) => {
    onLogMessage(replica, { type: 'compacted', firstIndex, bytes: 10 + firstIndex, files: 3 } as FromWal)
    return [replica.raft.firstIndex, replica.walBytes, replica.walFiles]
  }
  expect([50, 20, 500].map(firstAfter)).toEqual([
    [50, 60, 3],
    [50, 30, 3],
    [101, 510, 3],
  ])
})

// Stored groups

test('figures of stored groups are kept, and syncs of a second or more add up until a quicker one', () => {
  const { replica } = leading()
  const slow = [999, 1_000, 1_500, 999, 2_000].map((syncMs, n) => {
    onLogMessage(replica, stored(0, { syncMs, bytes: n, files: n + 1 }))
    return replica.slowSyncMs
  })
  expect(slow).toEqual([0, 1_000, 2_500, 0, 2_000])
  expect([replica.groups, replica.walBytes, replica.walFiles]).toEqual([5, 4, 5])
  expect([replica.fsync.sum, replica.groupEntries.sum]).toEqual([6.498, 15])
})

test('a stored group makes its entries durable in the core', () => {
  const { replica } = leading()
  const { raft } = replica
  const before = raft.persisted
  give(raft)
  onLogMessage(replica, stored(0))
  const sent = replica.handOvers.at(-1)
  expect(raft.persisted).toBe(before)
  onLogMessage(replica, stored(sent?.token ?? 0))
  expect([raft.persisted, replica.handOvers]).toEqual([before + 1, []])
})

// A full disk

test('a full disk is reported once, releases the reserve and is tried again after a while', () => {
  const { replica, seen, timers } = leading()
  for (let n = 0; n < 2; n++) {
    noteFullDisk(replica)
    retryLog(replica)
  }
  expect([replica.isDiskFull, seen.reserves, seen.lines]).toEqual([true, 1, ['disk full, writes refused']])
  expect(timers.map(({ delayMs }) => delayMs)).toEqual([RETRY_FULL_MS])
  timers[0]?.run()
  expect(seen.log.at(-1)).toEqual({ type: 'resume' })
  onLogMessage(replica, { type: 'resumed', takesEntries: false } as FromWal)
  expect([replica.isDiskFull, replica.isRetrying, seen.lines.length]).toEqual([true, false, 1])
  onLogMessage(replica, { type: 'resumed', takesEntries: true } as FromWal)
  onLogMessage(replica, { type: 'resumed', takesEntries: true } as FromWal)
  expect([replica.isDiskFull, seen.lines.slice(1)]).toEqual([false, ['the disk takes writes again']])
})

test('the writers of refused entries of a node alone are answered, and their hand-overs are void', () => {
  const { replica } = around(leaderOf({ voters: [1] }))
  const answers: ArrayBuffer[] = []
  addSink(replica, (bytes) => void answers.push(bytes))
  give(replica.raft)
  onLogMessage(replica, stored(0))
  const { token } = replica.handOvers[0] as Replica['handOvers'][0]
  Object.assign(replica, { waitingFrom: 2, waitingSinks: [1], waitingTokens: [9] })
  onLogMessage(replica, { type: 'refused', token, storedTo: undefined } as FromWal)
  expect(answers.map((bytes) => [bytes.byteLength, new DataView(bytes).getUint32(0, true)])).toEqual([[16, 9]])
  expect(new DataView(answers[0] as ArrayBuffer).getUint8(4)).toBe(REFUSED.diskFull)
  expect([replica.handOvers, replica.refusals, replica.waitingSinks, replica.isDiskFull]).toEqual([[], 1, [], true])
})

test('a failure of the log ends the node', () => {
  const { replica, seen } = leading()
  const failure = { code: 'disk_failed', fields: {}, message: '' }
  onLogMessage(replica, { type: 'failed', failure } as unknown as FromWal)
  expect(seen.fatal).toEqual([failure])
})

// An installed snapshot

const OFFER: SnapshotOffer = {
  ...{ type: 'snapshot', from: 2, to: 1, term: 1, index: 120, snapshotTerm: 1 },
  ...{ configuration: leaderOf().configuration, manifest: new Uint8Array(0) },
}

test('the log restarts at the mark of a current snapshot', () => {
  const { replica, seen } = leading()
  expect(() => snapshotCurrent(replica)).toThrow('a snapshot is being installed')
  replica.installing = OFFER
  snapshotCurrent(replica)
  expect(seen.log).toEqual([{ type: 'install', mark: { index: 120, term: 1 } }])
})

test('without room for the log behind a snapshot it is tried again', () => {
  const { replica, seen, timers } = leading()
  replica.installing = OFFER
  onLogMessage(replica, { type: 'installed', isDone: false } as FromWal)
  expect([replica.isDiskFull, seen.reserves, timers.map(({ delayMs }) => delayMs)]).toEqual([true, 1, [RETRY_FULL_MS]])
  timers[0]?.run()
  expect(seen.log).toEqual([{ type: 'install', mark: { index: 120, term: 1 } }])
})

test.each<[string, object]>([
  ['a snapshot is written', { snapshotRunning: true }],
  ['a load replaces the data', { loading: { phase: 'replacing' } }],
])('the state is not replaced while %s', (_name, busy) => {
  const { replica, timers } = leading()
  const switched: unknown[] = []
  Object.assign(replica, { installing: OFFER, ...busy, switchState: (offer: unknown) => switched.push(offer) })
  onLogMessage(replica, { type: 'installed', isDone: true } as FromWal)
  expect([switched, timers.map(({ delayMs }) => delayMs)]).toEqual([[], [SNAPSHOT_LOOK_MS]])
  Object.assign(replica, { snapshotRunning: false, loading: undefined })
  timers[0]?.run()
  expect(switched).toEqual([OFFER])
})

test('a replaced state continues behind the snapshot, and its configuration is in force', () => {
  const { replica } = around(memberOf())
  const { raft } = replica
  step(raft, OFFER)
  drain(raft)
  const seen: unknown[] = []
  const link = {
    ...{ onRole: () => undefined, send: () => undefined },
    onConfiguration: (...given: unknown[]) => seen.push(given),
    onApplied: () => seen.push(raft.applied),
  }
  Object.assign(replica, { link, installing: OFFER, switchState: (_offer: unknown, done: () => void) => done() })
  onLogMessage(replica, { type: 'installed', isDone: true } as FromWal)
  expect(seen).toEqual([[120, OFFER.configuration], 120])
  expect([replica.installing, replica.snapshotIndexBefore, replica.snapshotIndexLast]).toEqual([undefined, 120, 120])
  expect([raft.applied, raft.lastIndex, shardTime(replica)]).toEqual([120, 120, 77])
})

// Parts of the state

test('a value is counted below the first bound that it does not exceed', () => {
  const target = { bounds: [1, 4], counts: [0, 0, 0], sum: 0 }
  for (const value of [0, 1, 2, 4, 5]) observe(target, value)
  expect(target).toEqual({ bounds: [1, 4], counts: [2, 2, 1], sum: 12 })
})

test('sinks are numbered from 0', () => {
  const { replica } = leading()
  expect([addSink(replica, () => undefined), addSink(replica, () => undefined)]).toEqual([0, 1])
  expect(replica.sinks.map(({ at }) => at)).toEqual([0, 0])
})

test.each<[object, boolean]>([
  [{}, false],
  [{ installing: OFFER }, true],
  [{ loading: { phase: 'awaited' } }, false],
  [{ loading: { phase: 'replacing' } }, true],
  [{ loading: { phase: 'placed' } }, true],
])('the memory is between two states: %o', (change, isBetween) => {
  const { replica } = leading()
  Object.assign(replica, change)
  expect(isBetweenStates(replica)).toBe(isBetween)
})

test('a new replica continues after the log of its core, with the next snapshot an interval away', () => {
  const { replica } = leading()
  expect([replica.waitingFrom, replica.waitingHead, replica.changedIndex, replica.nextSnapshotMs]).toEqual([
    ...[101, 0, 100],
    1e9 + 500,
  ])
  const figures = { groups: 0, refusals: 0, leaderChanges: 0, repeats: 0, stallMs: 0, removedPackages: 0 }
  expect(replica).toMatchObject({ ...figures, outcomes: { applied: 0, dropped: 0, unknown: 0 }, walBytes: 0 })
  expect(replica).toMatchObject({ isStopping: false, isApplying: false, isDiskFull: false, snapshotRunning: false })
  expect(replica).toMatchObject({ lastMarkMs: 500, lastExpiryMs: 500, lastTickMs: 500, digestChecks: 0, walFiles: 0 })
})
