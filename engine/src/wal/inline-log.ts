/**
 * The log of a node alone while few write: its replica thread writes and syncs itself, without the log thread. Waking a
 * thread and being woken by it takes about as long as the sync.
 *
 * The log thread lends the end of the log with the answer to an append (`WalTail`) when it has nothing to prepare.
 * Whatever is sent to it carries the end back. So one thread at a time writes behind the end: this one only while it has
 * the answer to all that it sent.
 *
 * Larger groups go to the log thread, which syncs them while the replica prepares the next one. So do all groups on a
 * slow disk, and those that need a new file.
 */

import { assert } from '@vacancy/shared'
import { appendGroup, continueAt, fitsFile, type Group, tailOf, type Wal } from './wal.ts'
import type { FromWal, ToWal } from './wal-thread.ts'

type Append = Extract<ToWal, { readonly type: 'append' }>
type Stored = Extract<FromWal, { readonly type: 'stored' }>

/** With more in one group, the replica has better things to do during a sync. */
const ENTRIES_MAX = 8
const BYTES_MAX = 32 * 1024
/** On a slower disk too. */
const SYNC_MS_MAX = 2
/** Clients on the same machine take less. Those that come later wait for a sync: waiting longer than that gains nothing. */
const GATHER_MS_MAX = 0.2

export type InlineLogParts = {
  /** Its end is used only while it is lent. */
  readonly wal: Wal
  readonly toThread: (message: ToWal) => void
  readonly onStored: (message: Stored) => void
  /** Something waits for `settle`. */
  readonly onWaiting: () => void
  readonly monotonicMs: () => number
}

export type InlineLog = {
  readonly send: (message: ToWal) => void
  /** Stores the appends that were sent, as one group, here or in the log thread. @returns how many they were */
  readonly settle: () => number
  /**
   * How long the present group may wait: clients whose replies came together send their next writes together. 0 if it
   * has as many entries as the last group and those that came during its sync, and while the end is not lent.
   */
  readonly gatherMs: () => number
  /** Whether the end is lent: the log thread has nothing to do. */
  readonly mayStore: () => boolean
  /** Sees each answer of the log thread first. */
  readonly onAnswer: (message: FromWal) => void
}

export function createInlineLog({ wal, toThread, onStored, onWaiting, monotonicMs }: InlineLogParts): InlineLog {
  const waiting: Append[] = []
  /** The token whose answer answers all that the thread was sent; 0 for none. */
  let awaited = 0
  let isLent = false
  let hasWritten = false
  let refusals = 0
  /** The last group that was stored here, and the entries that waited when it was: undefined until that is known. */
  let last = { entries: 0, syncMs: 0 }
  let behind: number | undefined = 0
  /** As the thread last reported them. */
  let known: Pick<Stored, 'bytes' | 'files'> = { bytes: 0, files: 0 }

  const post = (message: ToWal) => {
    toThread(hasWritten ? { ...message, tail: tailOf(wal) } : message)
    isLent = false
    hasWritten = false
    last = { entries: 0, syncMs: 0 }
    awaited = message.type === 'append' ? message.token : 0
  }

  /** @returns false when the log thread must do it; nothing is in the log then */
  const store = (appends: readonly Append[]): boolean => {
    if (!isLent) return false
    const newest = appends.at(-1) as Append
    const batches = appends.flatMap((append) => append.entries)
    const entries = entriesOf(appends)
    const bytes = batches.reduce((sum, batch) => sum + batch.bytes.length, 0)
    const group: Group = { hardState: newest.hardState, batches }
    if (entries > ENTRIES_MAX || bytes > BYTES_MAX || !fitsFile(wal, group)) return false
    assert(
      appends.every((append) => append.refusals === refusals),
      'nothing is sent between a refusal and its arrival while the end is lent',
    )
    const started = monotonicMs()
    hasWritten = true
    if (appendGroup(wal, group) === 'full') return false
    const syncMs = monotonicMs() - started
    if (syncMs > SYNC_MS_MAX) isLent = false
    last = { entries, syncMs }
    behind = undefined
    onStored({ type: 'stored', token: newest.token, syncMs, entries, ...known })
    return true
  }

  return {
    send(message) {
      if (message.type === 'append') {
        waiting.push(message)
        if (waiting.length === 1) onWaiting()
        return
      }
      for (const append of waiting.splice(0)) post(append)
      post(message)
    },
    settle() {
      if (waiting.length === 0) return 0
      const appends = waiting.splice(0)
      if (!store(appends)) for (const append of appends) post(append)
      return appends.length
    },
    gatherMs() {
      const entries = entriesOf(waiting)
      behind ??= entries
      const expected = Math.min(ENTRIES_MAX, last.entries + behind)
      return isLent && entries > 0 && entries < expected ? Math.min(GATHER_MS_MAX, last.syncMs) : 0
    },
    mayStore: () => isLent,
    onAnswer(message) {
      if (message.type === 'refused') refusals++
      if (message.type !== 'stored') return
      known = { bytes: message.bytes, files: message.files }
      const isSmall = message.entries <= ENTRIES_MAX && message.syncMs <= SYNC_MS_MAX
      if (!message.tail || message.token !== awaited || !isSmall) return
      continueAt(wal, message.tail)
      isLent = true
    },
  }
}

function entriesOf(appends: readonly Append[]): number {
  let entries = 0
  for (const append of appends) for (const { count } of append.entries) entries += count
  return entries
}
