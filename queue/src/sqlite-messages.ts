/** Messages between the journal and its thread (sqlite-journal.ts, sqlite-worker.ts). */
import type { Rows, UpdateRow } from './journal-tables.ts'
import type { StoredPack } from './sqlite-packs.ts'

export type WorkerOptions = {
  readonly file: string
  readonly partition: number
  readonly partitions: number
  readonly isSynced: boolean
  /** How long a pack stays of which at most half is left. Then its jobs become rows, and its space is free. */
  readonly sparseMs: number
}
export type ThreadOptions = WorkerOptions & {
  /** Where the rows of a group are, if they fit: one group is written at a time. Before, packs are loaded there. */
  readonly area: SharedArrayBuffer
}
/** A group of the usual limits with its numbers. */
export const AREA_BYTES = 5 << 20

/** Numbers of a row that is put: see `PUT`. */
export const PUT_NUMBERS = 9
/** Numbers of a row that is read: see `readRows`. The last is the length of its payload, -1 without one. */
export const READ_NUMBERS = 13

export type WriteRequest = {
  readonly kind: 'write'
  readonly topics: Rows['topics']
  readonly updates: readonly UpdateRow[]
  readonly finished: Rows['finished']
  readonly forgotten: Rows['forgotten']
  /** How many jobs become rows of their own, and how many are done. */
  readonly puts: number
  readonly done: number
  /** Of the rows, one a line; an id has no control characters. */
  readonly ids: string
  /** Jobs that become packs. */
  readonly packs: readonly PackRequest[]
  /**
   * In place of the usual area, for a group that does not fit it. Both hold seq, topic, flags, priority, max attempts,
   * ack deadline, created at, run at and payload length of each row; what is done, ascending; the payloads of rows, one
   * after the other; and the packs.
   */
  readonly area: SharedArrayBuffer | undefined
}
/** A pack, and where it is in the area. */
export type PackRequest = {
  readonly seq: number
  /** Of all its jobs; 0 when they have several. */
  readonly topicNumber: number
  readonly count: number
  readonly createdAt: number
  readonly from: number
  readonly to: number
}
export type RowsRequest = {
  readonly kind: 'rows'
  readonly after: number
  readonly limit: number
  /** Of the area, for packs: while loading nothing is written. The other one may still be in use. */
  readonly half: 0 | 1
}
export type JournalRequest =
  | WriteRequest
  | { readonly kind: 'topics' }
  | RowsRequest
  | { readonly kind: 'backup'; readonly path: string }
  | { readonly kind: 'vacuum' }
  | { readonly kind: 'sizes' }
  | { readonly kind: 'close' }

export type JournalRows = {
  readonly numbers: Float64Array
  readonly ids: readonly string[]
  /** Index of the row, reason, last error, history; of rows that failed or came back. */
  readonly pasts: readonly (readonly [index: number, reason: string, lastError: string, history: string])[]
  readonly payload: Uint8Array
  /** Packs before the last row, or all that are left, without the jobs that are marked. */
  readonly packs: readonly (StoredPack & { readonly marks: Uint8Array | undefined })[]
  /** Where the next rows begin; undefined behind the last one. */
  readonly next: number | undefined
}
export type JournalReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: { readonly message: string; readonly isFull: boolean } }
