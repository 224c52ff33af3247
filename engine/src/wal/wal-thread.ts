/**
 * The log's side of the protocol with the replica, without a thread around it, so that a simulator can drive it: takes
 * all queued messages, writes them with one write and one sync, and reports (docs/design/storage.md#group-commit).
 * While it waits for the disk the next group collects; there is no timer and no window to tune.
 */

import { assert } from '@vacancy/shared'
import { realDisk } from '../env.ts'
import type { Failure } from '../failure.ts'
import { ENTRY_HEADER_BYTES, type EntryBatch, entryLength, sliceBatch, viewOf } from '../raft/entry.ts'
import type { HardState, SnapshotMark } from './payload.ts'
import {
  appendGroup,
  closeWal,
  compactWal,
  continueAt,
  fitsGroup,
  installWal,
  isFull,
  isPreparing,
  retryNext,
  tailOf,
  type Wal,
  type WalTail,
  walBytes,
} from './wal.ts'

/** A log as data: descriptors belong to the process, so another thread can continue with them. */
export type WalState = Omit<Wal, 'disk' | 'view'>

export function packWal({ disk: _disk, view: _view, ...state }: Wal): WalState {
  return state
}

export function unpackWal(state: WalState): Wal {
  return { ...state, disk: realDisk, view: viewOf(state.buffer) }
}

export type WalOptionsOfThread = {
  readonly state: WalState
  readonly flushThreshold: number
  /** Whether the other side writes small groups itself (inline-log.ts). */
  readonly lends: boolean
}

/** `tail`: the sender has written to the log, which ends there now. */
export type ToWal = { readonly tail?: WalTail } & Message

type Message =
  | {
      readonly type: 'append'
      readonly token: number
      readonly hardState: HardState
      readonly entries: readonly EntryBatch[]
      /**
       * Refusals that the sender had received when it sent this. If the count differs from the log's, it was sent
       * before a refusal arrived, and the sender has taken it back or is about to.
       */
      readonly refusals: number
    }
  /** A snapshot of this node is whole on disk. */
  | { readonly type: 'mark'; readonly mark: SnapshotMark }
  /** A snapshot of the leader is complete on disk: the log restarts after it. */
  | { readonly type: 'install'; readonly mark: SnapshotMark }
  | { readonly type: 'compact'; readonly floor: number }
  /** Try to make room, and take entries again. */
  | { readonly type: 'resume' }
  | { readonly type: 'close' }

export type FromWal =
  | {
      readonly type: 'stored'
      /** All tokens up to here. */
      readonly token: number
      readonly syncMs: number
      readonly entries: number
      readonly bytes: number
      readonly files: number
      /** Lent to a sender that has the answer to all it sent (inline-log.ts). */
      readonly tail?: WalTail | undefined
    }
  /**
   * No room for this token's entries, nor for any token behind it: those are dropped without a message of their own.
   * `storedTo`: the last one of them that is stored all
   * the same, because a hand-over can be larger than a group; absent when none is.
   */
  | { readonly type: 'refused'; readonly token: number; readonly storedTo?: number | undefined }
  | { readonly type: 'resumed'; readonly takesEntries: boolean }
  | { readonly type: 'marked'; readonly mark: SnapshotMark }
  /** `isDone` false: there was no room, and nothing has changed. */
  | { readonly type: 'installed'; readonly mark: SnapshotMark; readonly isDone: boolean }
  | {
      readonly type: 'compacted'
      readonly deleted: number
      /** The log on disk begins here now. */
      readonly firstIndex: number
      readonly bytes: number
      readonly files: number
    }
  | { readonly type: 'failed'; readonly failure: Failure }
  /** `isClean`: the log ends as after a clean shutdown. */
  | { readonly type: 'closed'; readonly isClean: boolean }

export type WalThread = {
  readonly wal: Wal
  readonly flushThreshold: number
  readonly lends: boolean
  readonly send: (message: FromWal) => void
  readonly monotonicMs: () => number
  /** Set by a full disk until `resume`: entries are refused, votes are not. */
  isRefusing: boolean
  /** Refusals sent. */
  refusals: number
}

type Append = Extract<Message, { type: 'append' }>

/** Each batch is a record of its own; so many headers still fit the buffer beside 1 MiB of entries. */
const BATCHES_MAX = 8_192

/** A group while it is put together. */
type Gathering = {
  readonly batches: EntryBatch[]
  bytes: number
  entries: number
  hardState: HardState
  /** The first hand-over that is in it, and the last one that it completes. */
  readonly firstToken: number
  wholeToken: number
  /** The hand-over that its last entries are of. */
  lastToken: number
  /** Entries of the first hand-over that an earlier group stored. */
  readonly storedTo: number | undefined
}

/**
 * Handles everything that is queued, in order. Appends are put together into groups of at most `flushThreshold` entries
 * and 1 MiB (docs/design/storage.md#group-commit); a hand-over that is larger goes into several.
 */
export function handleWalMessages(thread: WalThread, queue: readonly ToWal[]): void {
  let group: Gathering | undefined
  for (const message of queue) {
    if (message.tail) {
      assert(!group, 'the end of the log is lent when all is answered')
      continueAt(thread.wal, message.tail)
    }
    if (message.type === 'append') {
      group = gather(thread, group, message)
      continue
    }
    if (group) storeGroup(thread, group)
    group = undefined
    handleOne(thread, message)
  }
  if (group) storeGroup(thread, group)
}

/** Adds a hand-over to the group, storing groups that are full on the way. @returns the group that is still open */
function gather(thread: WalThread, open: Gathering | undefined, message: Append): Gathering | undefined {
  const { token, entries, refusals } = message
  let { hardState } = message
  // The core takes back everything behind a refusal, also where the refused group carried no entries: what is stored
  // all the same would be unknown to it.
  if (refusals !== thread.refusals) return open
  // Behind a refusal only votes and terms are taken: there is room kept for them (docs/design/storage.md#group-commit).
  if (thread.isRefusing && entries.length > 0) {
    if (!open || storeGroup(thread, open)) refuse(thread, token)
    return undefined
  }
  // What was refused may have been meant to replace entries that are still here: they must not become committed.
  if (thread.isRefusing) hardState = { ...hardState, commit: thread.wal.hardState.commit }
  let group = open ?? beginGroup(hardState, token)
  for (const batch of entries) {
    for (let left: EntryBatch | undefined = batch; left; ) {
      const count = fittingEntries(thread, group, left)
      if (count === 0) {
        const isPart = group.wholeToken < token && group.entries > 0
        if (!storeGroup(thread, group)) return undefined
        group = beginGroup(hardState, token, isPart && group.lastToken === token ? thread.wal.lastIndex : undefined)
        continue
      }
      const last: number = left.firstIndex + left.count - 1
      const piece: EntryBatch = sliceBatch(left, left.firstIndex, left.firstIndex + count - 1)
      group.batches.push(piece)
      // Not before its entries: a commit index that covers them covers others until they are there
      // (docs/design/consensus.md#when-a-configuration-takes-effect).
      group.hardState = hardState
      group.lastToken = token
      group.bytes += piece.bytes.length
      group.entries += count
      left = count === left.count ? undefined : sliceBatch(left, left.firstIndex + count, last)
    }
  }
  group.hardState = hardState
  group.wholeToken = token
  return group
}

function beginGroup(hardState: HardState, token: number, storedTo?: number): Gathering {
  const tokens = { firstToken: token, wholeToken: token - 1, lastToken: token - 1, storedTo }
  return { batches: [], bytes: 0, entries: 0, hardState, ...tokens }
}

/** How many entries of a batch still go into the group; at least one when it is empty. */
function fittingEntries({ wal, flushThreshold }: WalThread, group: Gathering, batch: EntryBatch): number {
  const most = Math.min(batch.count, flushThreshold - group.entries)
  if (most <= 0 || group.batches.length === BATCHES_MAX) return 0
  if (most === batch.count && fitsGroup(wal, group.bytes, batch)) return most
  const view = viewOf(batch.bytes)
  let bytes = group.bytes
  let at = 0
  for (let count = 0; count < most; count++) {
    const length = ENTRY_HEADER_BYTES + entryLength(view, at)
    if (bytes > 0 && bytes + length > wal.groupBytesMax) return count
    bytes += length
    at += length
  }
  return most
}

/** @returns false when it was refused; then everything behind it that was sent before the refusal arrived is dropped */
function storeGroup(thread: WalThread, group: Gathering): boolean {
  const { wal } = thread
  const started = thread.monotonicMs()
  const last = group.batches.at(-1)
  const lastIndex = last ? last.firstIndex + last.count - 1 : wal.lastIndex
  // A hand-over that continues in the next group may commit more than this one brings
  // (docs/design/consensus.md#invariants).
  const hardState = { ...group.hardState, commit: Math.min(group.hardState.commit, lastIndex) }
  if (appendGroup(wal, { hardState, batches: group.batches }) === 'full') {
    refuse(thread, group.firstToken, group.storedTo)
    if (group.batches.length > 0) thread.isRefusing = true
    return false
  }
  const syncMs = thread.monotonicMs() - started
  const { wholeToken: token, entries } = group
  // Not while it has the next file to prepare: the other side knows the size of the log from its answers.
  const tail = thread.lends && !isPreparing(wal) ? tailOf(wal) : undefined
  thread.send({ type: 'stored', token, syncMs, entries, bytes: walBytes(wal), files: wal.files.length, tail })
  return true
}

function refuse(thread: WalThread, token: number, storedTo?: number): void {
  thread.refusals++
  thread.send({ type: 'refused', token, storedTo })
}

function committedTo({ hardState }: Wal, { index }: SnapshotMark): HardState {
  return { ...hardState, commit: Math.max(hardState.commit, index) }
}

function handleOne(thread: WalThread, message: Exclude<Message, Append>): void {
  const { wal } = thread
  switch (message.type) {
    case 'mark':
      // A mark has its place in the reserve of each file, so a full disk does not prevent it
      // (docs/design/storage.md#group-commit). A snapshot only contains committed entries, even if the log does not
      // show that yet.
      if (appendGroup(wal, { mark: message.mark, hardState: committedTo(wal, message.mark), batches: [] }) === 'stored')
        thread.send({ type: 'marked', mark: message.mark })
      return
    case 'install':
      return thread.send({ type: 'installed', mark: message.mark, isDone: installWal(wal, message.mark) })
    case 'compact': {
      const deleted = compactWal(wal, message.floor)
      const { firstIndex = 1 } = wal.files[0] ?? {}
      return thread.send({ type: 'compacted', deleted, firstIndex, bytes: walBytes(wal), files: wal.files.length })
    }
    case 'resume':
      if (thread.isRefusing || isFull(wal)) thread.isRefusing = !retryNext(wal)
      return thread.send({ type: 'resumed', takesEntries: !thread.isRefusing })
    default:
      return thread.send({ type: 'closed', isClean: closeWal(wal) })
  }
}
