/** The log of simulated cores: arrays with delays. Whole nodes have the production log on a simulated disk. */

import { assert } from '@vacancy/shared'
import { between, chance } from '@vacancy/testkit/random'
import { scheduleIn } from '@vacancy/testkit/scheduler'
import { type EntryBatch, entryTerm, skipEntries, sliceBatch, viewOf } from '../../engine/src/raft/entry.ts'
import { lastOf as lastOfBatch, type TermRun } from '../../engine/src/raft/log.ts'
import type { Configuration } from '../../engine/src/raft/messages.ts'
import type { Ready } from '../../engine/src/raft/raft.ts'
import { onStored } from './oracles.ts'
import { createToyMachine, encodeToy } from './toy-machine.ts'
import { type Host, type SimulatedNode, syncUs, type World } from './world.ts'

export type CoreSnapshot = {
  readonly index: number
  readonly term: number
  readonly configuration: Configuration
  readonly state: Uint8Array
}

/** The result of opening a log. */
type Recovered = {
  readonly term: number
  readonly vote: number
  readonly commit: number
  readonly snapshot: CoreSnapshot
  readonly firstIndex: number
  readonly lastIndex: number
  readonly lastTerm: number
  readonly terms: readonly TermRun[]
  /** Entries after the snapshot. */
  readonly entries: readonly EntryBatch[]
}

/** The log of one process. Hand-overs are stored in order; results arrive through `LogEvents`. */
export type CoreLog = {
  readonly recovered: Recovered
  submit(ready: Ready): void
  /** The newest snapshot. */
  snapshot(): CoreSnapshot
  /** A snapshot taken by this node; the log before `floor` may be dropped. */
  keep(snapshot: CoreSnapshot, floor: number): void
  read(firstIndex: number, lastIndex: number, bytesMax: number): readonly EntryBatch[] | 'compacted'
  isDurable(index: number, term: number): boolean
  waiting(): number
}

type LogEvents = {
  onStored(ready: Ready): void
  onRefused(token: number, storedTo: number | undefined): void
  /** Called before `onStored` of the hand-over that contained it. */
  onInstalled(snapshot: CoreSnapshot): void
  /** Called with the new start of the log. */
  onCompacted(firstIndex: number): void
}

export function firstSnapshot(configuration: Configuration): CoreSnapshot {
  return { index: 0, term: 0, configuration, state: encodeToy(createToyMachine()) }
}

type ArrayStorage = {
  term: number
  vote: number
  commit: number
  snapshot: CoreSnapshot
  /** Entries from `firstIndex`, one each, with their headers. */
  firstIndex: number
  /** Term of the preceding entry. */
  baseTerm: number
  entries: Uint8Array[]
  isFull: boolean
  /** Hand-overs that were being written when the process ended. */
  underWay: readonly Ready[]
}

export function createStorage(snapshot: CoreSnapshot): ArrayStorage {
  const state = { term: 0, vote: 0, commit: 0, firstIndex: 1, baseTerm: 0, entries: [], isFull: false, underWay: [] }
  return { snapshot, ...state }
}

export function storageAfterCrash(world: World, node: SimulatedNode): ArrayStorage {
  const storage = node.storage as ArrayStorage
  // Pending writes may be on disk up to any point, since none was confirmed.
  for (const ready of storage.underWay) {
    if (chance(world.diskRandom, 0.5)) {
      if (world.knobs.tearsHandOvers && chance(world.diskRandom, 0.5)) storePart(world, storage, ready)
      break
    }
    store(world, storage, ready)
  }
  storage.underWay = []
  return storage
}

export function fillStorage(world: World, node: SimulatedNode, lengthUs: number): void {
  const storage = node.storage as ArrayStorage
  storage.isFull = true
  scheduleIn(world.scheduler, lengthUs * 4, () => {
    storage.isFull = false
  })
}

export function healStorage(node: SimulatedNode): void {
  ;(node.storage as ArrayStorage).isFull = false
}

export function openLog(host: Host, events: LogEvents): CoreLog {
  const { world, node } = host
  const storage = node.storage as ArrayStorage
  const lastIndex = lastOf(storage)
  let queue: Ready[] = []
  let isBusy = false
  const write = (): void => {
    if (isBusy || queue.length === 0) return
    isBusy = true
    const group = queue.splice(0, between(host.random, 1, 8))
    storage.underWay = group
    host.later(syncUs(world, node), 'sync', () => {
      storage.underWay = []
      for (const ready of group) {
        if (storage.isFull && ready.entries.length > 0) {
          // All later hand-overs are withdrawn with it.
          queue = []
          const isTorn = world.knobs.tearsHandOvers && chance(world.diskRandom, 0.5)
          events.onRefused(ready.token, isTorn ? storePart(world, storage, ready) : undefined)
          break
        }
        store(world, storage, ready)
        if (ready.snapshot) events.onInstalled(storage.snapshot)
        events.onStored(ready)
      }
      isBusy = false
      write()
    })
  }
  return {
    recovered: {
      term: storage.term,
      vote: storage.vote,
      commit: Math.max(storage.commit, storage.snapshot.index),
      snapshot: storage.snapshot,
      firstIndex: storage.firstIndex,
      lastIndex,
      lastTerm: termOf(storage, lastIndex),
      terms: runsOf(storage),
      entries: batchesOf(storage, storage.snapshot.index + 1, lastIndex, Number.POSITIVE_INFINITY),
    },
    submit(ready) {
      queue.push(ready)
      write()
    },
    snapshot: () => storage.snapshot,
    keep(snapshot, floor) {
      // A snapshot beyond the durable log would leave a gap.
      if (snapshot.index > lastOf(storage) || snapshot.index <= storage.snapshot.index) return
      storage.snapshot = snapshot
      storage.commit = Math.max(storage.commit, snapshot.index)
      if (floor <= storage.firstIndex) return
      storage.baseTerm = termOf(storage, floor - 1)
      storage.entries.splice(0, floor - storage.firstIndex)
      storage.firstIndex = floor
      events.onCompacted(floor)
    },
    read(firstIndex, lastRequested, bytesMax) {
      const last = Math.min(lastRequested, lastOf(storage))
      return firstIndex >= storage.firstIndex && firstIndex <= last
        ? batchesOf(storage, firstIndex, last, bytesMax)
        : 'compacted'
    },
    isDurable: (index, term) => index <= storage.snapshot.index || termOf(storage, index) === term,
    waiting: () => queue.length,
  }
}

function lastOf({ firstIndex, entries }: ArrayStorage): number {
  return firstIndex + entries.length - 1
}

function store({ oracles }: World, storage: ArrayStorage, ready: Ready): void {
  const { hardState, entries, snapshot } = ready
  if (snapshot) {
    const { index, snapshotTerm: term, configuration, manifest: state } = snapshot
    storage.snapshot = { index, term, configuration, state }
    storage.firstIndex = index + 1
    storage.baseTerm = term
    storage.entries = []
  }
  assert(hardState.term >= storage.term, 'the term on disk never decreases')
  const isVoteKept = hardState.term > storage.term || storage.vote === 0 || hardState.vote === storage.vote
  assert(isVoteKept, 'the vote of a term is kept on disk')
  storage.term = hardState.term
  storage.vote = hardState.vote
  for (const batch of entries) {
    assert(batch.firstIndex <= lastOf(storage) + 1, 'entries on disk are contiguous')
    assert(batch.firstIndex > storage.commit, 'nothing committed is overwritten')
    storage.entries.length = batch.firstIndex - storage.firstIndex
    const view = viewOf(batch.bytes)
    for (let i = 0, at = 0; i < batch.count; i++) {
      const end = skipEntries(view, at, 1)
      onStored(oracles, batch.firstIndex + i, termOf(storage, batch.firstIndex + i - 1), batch.bytes.subarray(at, end))
      storage.entries.push(batch.bytes.subarray(at, end))
      at = end
    }
  }
  storage.commit = Math.max(storage.commit, hardState.commit)
}

/** Only the first entries of a hand-over reach the disk, with its state. @returns the last one */
function storePart(world: World, storage: ArrayStorage, ready: Ready): number | undefined {
  const count = ready.entries.reduce((sum, batch) => sum + batch.count, 0)
  if (ready.snapshot || count < 2) return undefined
  const first = (ready.entries[0] as EntryBatch).firstIndex
  const last = first + between(world.diskRandom, 1, count - 1) - 1
  const entries = ready.entries
    .filter(({ firstIndex }) => firstIndex <= last)
    .map((batch) => sliceBatch(batch, batch.firstIndex, Math.min(last, lastOfBatch(batch))))
  const commit = Math.min(ready.hardState.commit, last)
  store(world, storage, { ...ready, entries, hardState: { ...ready.hardState, commit } })
  return last
}

function termOf(storage: ArrayStorage, index: number): number {
  if (index === storage.firstIndex - 1) return storage.baseTerm
  if (index === storage.snapshot.index) return storage.snapshot.term
  const entry = storage.entries[index - storage.firstIndex]
  return entry ? entryTerm(viewOf(entry), 0) : 0
}

function runsOf(storage: ArrayStorage): TermRun[] {
  const runs = [{ term: storage.baseTerm, firstIndex: storage.firstIndex - 1 }]
  storage.entries.forEach((entry, i) => {
    const term = entryTerm(viewOf(entry), 0)
    if (runs.at(-1)?.term !== term) runs.push({ term, firstIndex: storage.firstIndex + i })
  })
  return runs
}

/** Entries as batches of one term, limited in total bytes, with at least one entry. */
function batchesOf(storage: ArrayStorage, from: number, to: number, bytesMax: number): EntryBatch[] {
  const batches: EntryBatch[] = []
  let parts: Uint8Array[] = []
  let bytes = 0
  let firstIndex = from
  let term = -1
  const close = (): void => {
    const count = parts.length
    if (count === 0) return
    batches.push({ firstIndex, count, bytes: new Uint8Array(Buffer.concat(parts)) })
    firstIndex += count
    parts = []
  }
  for (const entry of storage.entries.slice(from - storage.firstIndex, to - storage.firstIndex + 1)) {
    if (bytes > 0 && bytes + entry.length > bytesMax) break
    const own = entryTerm(viewOf(entry), 0)
    if (own !== term) close()
    term = own
    parts.push(entry)
    bytes += entry.length
  }
  close()
  return batches
}
