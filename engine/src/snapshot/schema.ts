/**
 * The shape of a state: names, properties, and the rows and days of its tables; everything except words.
 *
 * Writers provide it and readers return it. Name numbers are indexes into the lists of `Names`, property numbers are
 * indexes into the columns. Columns of a loaded shape are in shared memory, so that the threads that decode words
 * need no copies.
 */

import type { Digest, Membership } from './format.ts'

/** A row that keeps its position after its property is removed; its words are empty. */
export const DEAD_ROW = 0xffffffff

/** Each list sorted by UTF-8 bytes, without repeats. */
export type Names = {
  readonly segments: readonly string[]
  readonly areas: readonly string[]
  readonly types: readonly string[]
  readonly categories: readonly string[]
  readonly roomTypes: readonly string[]
  readonly amenities: readonly string[]
}

export const NAME_LISTS = ['segments', 'areas', 'types', 'categories', 'roomTypes', 'amenities'] as const

/** Ordered by segment as in `Names`, and within one by the row order of its property table. */
export type PropertyColumns = {
  readonly count: number
  /** 16 bytes each (property-id.ts of shared). */
  readonly ids: Uint8Array
  readonly segment: Uint32Array
  readonly area: Uint32Array
  readonly type: Uint32Array
  readonly category: Uint32Array
  readonly stars: Uint8Array
  /** Degrees. */
  readonly latitude: Float64Array
  readonly longitude: Float64Array
  /** count + 1 offsets into `amenities`. */
  readonly amenityStart: Uint32Array
  readonly amenities: Uint32Array
  /** count + 1 offsets into `rooms`. */
  readonly roomStart: Uint32Array
  /** Room types of a property in order of creation. */
  readonly rooms: Uint32Array
}

/** Tables are sorted by (segment, room type), each pair at most once. */
export type TableShape = {
  readonly segment: number
  readonly roomType: number
  /** Number of the property of each row, or DEAD_ROW. */
  readonly rows: Uint32Array
  /** Day numbers that have a plane, ascending. */
  readonly days: Uint32Array
}

/** A state to write, at one log index. Built by the import from CSV files, or by the store at an epoch. */
export type SnapshotSource = {
  readonly shardId: string
  readonly codecs: { readonly names: readonly string[]; readonly orderedHash: string }
  readonly index: number
  readonly term: number
  readonly configuration: { readonly voters: readonly string[]; readonly learners: readonly string[] }
  /** The members of the shard; absent without a membership. */
  readonly membership?: Membership | undefined
  readonly lastMaintenanceDay: number
  /** State digest without the packages, whose share is summed while they are encoded. */
  readonly digestWithoutPackages: Digest
  /** Expected state digest with them, if known: a snapshot with another digest is not written. */
  readonly digest?: Digest
  readonly names: Names
  readonly properties: PropertyColumns
  readonly tables: readonly TableShape[]
  readonly sessionCount: number
  /** Canonical bytes of the sessions, may be empty. */
  readonly sessions: Uint8Array
  readonly settings: Uint8Array
  /** Replicated words; empty below feature level 1. */
  readonly replicated: Uint8Array
  /** The ledger (ledger.ts); empty without stays. */
  readonly stays: Uint8Array
  /** Location of the words, and the memory of the kernel that encodes them. */
  readonly memory: WebAssembly.Memory
  /**
   * Fills in where the words of rows `rowStart` … `rowStart + rows` of a table lie, one address a night in the order of
   * its days. They must stay as they are until the next call, which is for other rows; each row is requested once.
   *
   * @returns false when the state at this index can no longer be had: the snapshot is given up
   */
  words(table: number, rowStart: number, rows: number, addresses: Uint32Array): boolean
  /** Whether rows, days and words of a table are the same as in the state at an earlier index. */
  unchangedSince?(table: number, index: number): boolean
}

/**
 * Location of the planes of tables in one shared memory. `words[firstPlane(table) + night]` is the address of row 0.
 * Everything is in shared memory, because several threads read it.
 */
export type PlaneMap = {
  readonly words: Uint32Array
  /** Per table: bytes from the words of a plane to its bits of rows with rooms left; 0 for none. */
  readonly availableOffset: Uint32Array
  /** Bytes from the words of a plane back to its three cells packages, digest low, digest high; 0 for none. */
  readonly statsBefore: number
}

export function sharedU32(length: number): Uint32Array<SharedArrayBuffer> {
  return new Uint32Array(new SharedArrayBuffer(length * 4))
}

export function sharedBytes(length: number): Uint8Array<SharedArrayBuffer> {
  return new Uint8Array(new SharedArrayBuffer(length))
}

/** Number of the first plane of each table in a PlaneMap, and behind the last one the number of all. */
export function firstPlanes(tables: readonly TableShape[]): Uint32Array {
  const first = new Uint32Array(tables.length + 1)
  for (let table = 0; table < tables.length; table++) {
    first[table + 1] = first[table] + (tables[table] as TableShape).days.length
  }
  return first
}

/** First and last day that has a plane. */
export function windowOf(tables: readonly TableShape[]): { readonly from: number; readonly to: number } | undefined {
  let from = 0xffffffff
  let to = -1
  for (const { days, rows } of tables) {
    if (days.length === 0 || rows.length === 0) continue
    from = Math.min(from, days[0])
    to = Math.max(to, days[days.length - 1])
  }
  return to < 0 ? undefined : { from, to }
}

/** Tables as columns in shared memory: sending a hundred thousand objects to another thread is slow. */
export type PackedTables = {
  readonly segment: Uint32Array
  readonly roomType: Uint32Array
  /** One more element than tables. */
  readonly rowStart: Uint32Array
  readonly rows: Uint32Array
  readonly dayList: Uint32Array
  readonly dayLists: readonly Uint32Array[]
}

export function packTables(tables: readonly TableShape[]): PackedTables {
  const count = tables.length
  const rowStart = sharedU32(count + 1)
  for (let i = 0; i < count; i++) rowStart[i + 1] = rowStart[i] + (tables[i] as TableShape).rows.length
  const packed = {
    segment: sharedU32(count),
    roomType: sharedU32(count),
    rowStart,
    rows: sharedU32(rowStart[count]),
    dayList: sharedU32(count),
    dayLists: [] as Uint32Array[],
  }
  let lastDays: Uint32Array | undefined
  tables.forEach(({ segment, roomType, rows, days }, i) => {
    packed.segment[i] = segment
    packed.roomType[i] = roomType
    packed.rows.set(rows, rowStart[i])
    if (days !== lastDays) packed.dayLists.push(days)
    lastDays = days
    packed.dayList[i] = packed.dayLists.length - 1
  })
  return packed
}

export function unpackTables({ segment, roomType, rowStart, rows, dayList, dayLists }: PackedTables): TableShape[] {
  const tables: TableShape[] = new Array(segment.length)
  for (let i = 0; i < tables.length; i++) {
    tables[i] = {
      segment: segment[i],
      roomType: roomType[i],
      rows: rows.subarray(rowStart[i], rowStart[i + 1]),
      days: dayLists[dayList[i]] as Uint32Array,
    }
  }
  return tables
}
