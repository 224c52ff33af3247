/** The types of a store: its memory, and the state of the writing thread. */

import type { Gap, Region } from './arena.ts'
import type { IdIndex } from './id-index.ts'

/**
 * The shared memory and the views of one thread. It never grows: its size is reserved at startup, and pages are
 * committed on use.
 */
export type Memory = {
  readonly wasm: WebAssembly.Memory
  readonly buffer: SharedArrayBuffer
  readonly u8: Uint8Array
  readonly u16: Uint16Array
  readonly i32: Int32Array
  readonly u32: Uint32Array
  readonly f64: Float64Array
  /** Index of the first cell of the pages' epochs and spare addresses. */
  readonly pageEpochs: number
  readonly pageSpares: number
  /** A word private to this thread, for ordering reads. */
  readonly fence: Int32Array
}

/** State of the writing thread. */
type Writer = {
  readonly records: Region
  readonly planes: Region
  readonly gap: Gap
  readonly limbo: Limbo
  readonly spare: SparePages
  /** The charge of the logical state (charge.ts). */
  readonly charge: Charge
  readonly marks: Map<number, number>
  /** The last version given to a table; even (version.ts). */
  versions: number
  /** Addresses of sessions by key, as 32 hexadecimal digits. */
  readonly sessions: Map<string, number>
  copyOnWrite: boolean
  epoch: number
  /** Bytes between the regions reserved for the current command. Copies for a snapshot do not use them. */
  promisedBytes: number
  /** Bytes that were left when a write was last refused for lack of memory; -1 once more are available. */
  lackingAt: number
  /** First possible address of a record. */
  readonly recordsStart: number
  /** Expected room types per property: the initial capacity of its list. */
  readonly roomsHint: number
  /** Segments that the sweep of dropped nights has not visited yet. */
  readonly sweep: number[]
  /** Addresses of the records of deleted segments whose memory is not freed yet. */
  readonly deleted: number[]
  /** Rows of the property table of the last one whose properties are freed. */
  deletedRows: number
  /** Properties of deleted segments that still have an index entry. */
  goneProperties: number
  /** The address of a session is in use: no session may move. */
  holdsSession: boolean
  /** Number of session moves. */
  sessionMoves: number
  /** Name numbers of segments whose digest is not summed yet. */
  readonly unsummed: number[]
  /** The table whose planes are copied ahead of growth; undefined if none. */
  growing: GrowingTable | undefined
  /** The index by id that is copied into a larger one; undefined if none. */
  indexCopy: IndexCopy | undefined
  /** Private indexes of the ledger (ledger.ts). */
  readonly ledger: Ledger
}

/** What the writing thread knows about stays beside their records: indexes, and sums over them. */
export type Ledger = {
  /** Addresses by packed id (id-index.ts); those of properties by a text of 16 characters. */
  readonly stays: IdIndex
  readonly properties: Map<string, number>
  /** Addresses by property, room type and day. */
  readonly nights: Map<string, number>
  /** Deadlines of held stays, a heap by (deadline, id). Entries of stays that are no longer held may remain. */
  readonly deadlines: { readonly deadlineMs: number; readonly id: string }[]
  heldCount: number
  /** Held stays by source. */
  readonly heldBySource: Map<string, number>
  /** Bytes of all records. */
  bytes: number
  /** No settled stay is forgotten on an earlier day. */
  forgetFrom: number
  /** Addresses of the nights with debt. */
  readonly oversold: Set<number>
  readonly counts: LedgerCounts
}

/** Since the start of the process. */
type LedgerCounts = {
  expired: number
  /** Rooms that a cancellation did not return, because 255 were left. */
  overflowed: number
  /** Rooms a night of bookings that were not recorded, and were given back by their lines. */
  unrecorded: number
  /** Stays that were forgotten before their time, because `stays_bytes` was reached: ended ones, and bookings. */
  readonly evicted: { ended: number; booked: number }
  /** Shard time of the last of them, ms; 0 without one. */
  evictedAtMs: number
  /** By wire code. */
  readonly refused: Map<string, number>
}

/** A table whose planes are copied into planes of another capacity (growing.ts). */
export type GrowingTable = {
  readonly table: number
  /** Capacity of its planes when the copying began. */
  readonly bytes: number
  /** Row capacity of the copies. */
  readonly capacity: number
  /** Copies by the addresses of their planes. */
  readonly copies: Map<number, number>
  nextSlot: number
  /** Rows added to other tables since the last copy was made. */
  waits: number
}

/** A larger index that is being filled (property-index.ts). Slots of the old one before `next` are copied. */
type IndexCopy = {
  readonly slots: number
  next: number
  /** Slots that are not free, those of removed properties included. */
  used: number
}

/** The charge of a table: nights that count, largest row capacity of its columns, and bytes. */
type TableCharge = { planes: number; capacity: number; bytes: number }

/** The memory charge of the logical state (charge.ts). */
export type Charge = {
  /** Everything except sessions. */
  bytes: number
  /** By table address: nights that count, and the charge. */
  readonly tables: Map<number, TableCharge>
  /** Number of tables in each size class. */
  readonly classes: Uint32Array
  /** Behind the last class with a table; 0 for none. */
  classesEnd: number
  /** Names of each kind that are charged, and of segments with a directory entry. */
  readonly names: Uint32Array
  /** Bytes of the largest dictionary. */
  largestDictionary: number
}
export type Store = { readonly memory: Memory; readonly writer: Writer }

/** Blocks that readers may still access, with the epoch in which they were retired. */
export type Limbo = { addresses: number[]; sizes: number[]; planes: boolean[]; epochs: number[]; head: number }

/** Spare pages at the end of the memory, for copies of pages that change during a snapshot. */
export type SparePages = {
  readonly start: number
  readonly pages: number
  /** Pages of the gap when the snapshot began: the first, and one past the last. */
  freshFrom: number
  freshEnd: number
  used: number
  /** Since the store was created. */
  copied: number
  failed: boolean
}
