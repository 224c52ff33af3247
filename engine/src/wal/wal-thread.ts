/**
 * The log's side of the conversation with the replica, without a thread around it, so that a simulator can drive it:
 * takes everything queued, writes it with one write and one sync, reports (performance.md §8). While it waits for the
 * disk the next group gathers; there is no timer and no window to tune.
 */

import { realDisk } from '../env.ts'
import type { Failure } from '../failure.ts'
import { type EntryBatch, viewOf } from '../raft/entry.ts'
import type { HardState, SnapshotMark } from './payload.ts'
import { appendGroup, closeWal, compactWal, fitsGroup, isFull, retryNext, type Wal, walBytes } from './wal.ts'

/** A log as data: descriptors are the process's, so another thread can go on with them. */
export type WalState = Omit<Wal, 'disk' | 'view'>

export function packWal({ disk: _disk, view: _view, ...state }: Wal): WalState {
  return state
}

export function unpackWal(state: WalState): Wal {
  return { ...state, disk: realDisk, view: viewOf(state.buffer) }
}

export type WalOptionsOfThread = { readonly state: WalState; readonly flushThreshold: number }

export type ToWal =
  | {
      readonly type: 'append'
      readonly token: number
      readonly hardState: HardState
      readonly entries: readonly EntryBatch[]
    }
  | { readonly type: 'mark'; readonly mark: SnapshotMark; readonly hardState: HardState }
  | { readonly type: 'compact'; readonly floor: number }
  /** After a refusal: what was taken back is taken back; try to make room. */
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
    }
  | { readonly type: 'refused'; readonly token: number }
  | { readonly type: 'resumed'; readonly takesEntries: boolean }
  | { readonly type: 'marked'; readonly mark: SnapshotMark }
  | { readonly type: 'compacted'; readonly deleted: number; readonly bytes: number; readonly files: number }
  | { readonly type: 'failed'; readonly failure: Failure }
  | { readonly type: 'closed' }

export type WalThread = {
  readonly wal: Wal
  readonly flushThreshold: number
  readonly send: (message: FromWal) => void
  readonly monotonicMs: () => number
  /** Set by a full disk until `resume`: everything queued behind the refused group is refused, too. */
  isRefusing: boolean
}

type Append = Extract<ToWal, { type: 'append' }>

/** Handles everything that is queued, appends put together into groups. */
export function handleWalMessages(thread: WalThread, queue: readonly ToWal[]): void {
  for (let i = 0; i < queue.length; ) {
    const message = queue[i] as ToWal
    if (message.type !== 'append') {
      handleOne(thread, message)
      i++
      continue
    }
    const group: Append[] = [message]
    let bytes = bytesOf(message)
    let entries = countOf(message)
    for (i++; i < queue.length; i++) {
      const next = queue[i] as ToWal
      if (next.type !== 'append') break
      if (entries + countOf(next) > thread.flushThreshold) break
      if (!next.entries.every((batch) => fitsGroup(thread.wal, bytes, batch))) break
      if (bytes + bytesOf(next) > thread.wal.groupBytesMax) break
      group.push(next)
      bytes += bytesOf(next)
      entries += countOf(next)
    }
    storeGroup(thread, group, entries)
  }
}

function bytesOf({ entries }: Append): number {
  return entries.reduce((sum, batch) => sum + batch.bytes.length, 0)
}

function countOf({ entries }: Append): number {
  return entries.reduce((sum, batch) => sum + batch.count, 0)
}

function storeGroup(thread: WalThread, group: readonly Append[], entries: number): void {
  const { wal } = thread
  const first = group[0] as Append
  const last = group[group.length - 1] as Append
  if (thread.isRefusing) return thread.send({ type: 'refused', token: first.token })
  const started = thread.monotonicMs()
  const batches = group.flatMap((message) => message.entries)
  if (appendGroup(wal, { hardState: last.hardState, batches }) === 'full') {
    thread.isRefusing = true
    return thread.send({ type: 'refused', token: first.token })
  }
  const syncMs = thread.monotonicMs() - started
  thread.send({ type: 'stored', token: last.token, syncMs, entries, bytes: walBytes(wal), files: wal.files.length })
}

function handleOne(thread: WalThread, message: Exclude<ToWal, Append>): void {
  const { wal } = thread
  switch (message.type) {
    case 'mark':
      // A mark has its place in the reserve of each file, so a full disk does not keep it out (W4).
      if (appendGroup(wal, { mark: message.mark, hardState: message.hardState, batches: [] }) === 'stored')
        thread.send({ type: 'marked', mark: message.mark })
      return
    case 'compact': {
      const deleted = compactWal(wal, message.floor)
      return thread.send({ type: 'compacted', deleted, bytes: walBytes(wal), files: wal.files.length })
    }
    case 'resume':
      if (thread.isRefusing || isFull(wal)) thread.isRefusing = !retryNext(wal)
      return thread.send({ type: 'resumed', takesEntries: !thread.isRefusing })
    default:
      closeWal(wal)
      return thread.send({ type: 'closed' })
  }
}
