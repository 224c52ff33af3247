/**
 * Where the queue is stored. A journal holds one row for each unfinished or dead job; delivering a job writes nothing
 * (docs/design/queue.md#journal).
 */
import type { StoredJob, StoredTopic } from './queue.ts'
import type { Change } from './state.ts'

export type Stored =
  /** Numbers below it may still have rows of deleted topics. */
  | { readonly kind: 'nextTopic'; readonly number: number }
  | { readonly kind: 'topic'; readonly topic: StoredTopic }
  | { readonly kind: 'finished'; readonly topicNumber: number; readonly id: string; readonly at: number }
  | { readonly kind: 'jobs'; readonly jobs: readonly StoredJob[] }

/** A write that the disk had no room for: nothing of it was stored, and the journal stays usable. */
export class JournalFullError extends Error {
  override readonly name = 'JournalFullError'
}

export type JournalSizes = { readonly bytes: number; readonly freeBytes: number }

export type Journal = {
  readonly kind: 'sqlite' | 'pg' | 'memory'
  /** Topics first, then finished ids, then jobs in order of `seq`; in batches. */
  load(): AsyncIterable<readonly Stored[]>
  /**
   * Stores changes in one transaction; resolves when they are durable. One call at a time.
   *
   * @throws JournalFullError when nothing was stored; any other error leaves the outcome unknown
   */
  write(changes: readonly Change[]): Promise<void>
  /** Copies the journal to a file while it is used. */
  backup(path: string): Promise<void>
  /** Gives free space back to the file system. */
  vacuum(): Promise<void>
  sizes(): Promise<JournalSizes>
  close(): Promise<void>
}

export type JournalEvents = {
  /** Called once when the journal can no longer be used: stop serving and open it again. */
  readonly onLost: (why: Error) => void
  /** Another process owns the journal, at this address if it is known; called again when that changes. */
  readonly onStandby: (owner: string | undefined) => void
  /** Ends the wait. */
  readonly signal: AbortSignal
}

/** Opens a journal, and waits until this process owns it. */
export type OpenJournal = (events: JournalEvents) => Promise<Journal>
