/**
 * Converts rows as left by the threads, unordered, to tables as in a snapshot: by segment, by room type, rows in
 * property order. Words stay where they are; the encoder of a range of rows gathers its nights into planes first.
 */

import { assert, compareBytes } from '@vacancy/shared'
import { BYTES_PER_WORD } from '../snapshot/codec.ts'
import type { Digest } from '../snapshot/format.ts'
import { type PropertyColumns, sharedU32, type TableShape } from '../snapshot/schema.ts'
import { nameHash } from '../store/digest.ts'
import type { ImportKernel } from './layout.ts'
import {
  CHUNK_NIGHTS,
  HEADER,
  RESULT_BYTES,
  ROOM,
  ROOM_TEXT_AT,
  ROW,
  TASK_BYTES,
  TASK_ROWS,
  WINDOW_DAYS_MAX,
} from './layout.ts'
import type { PropertyTable } from './properties.ts'
import { forEachRecord, takeMemory } from './staging.ts'

/** All tables as columns in shared memory, so that a thread gets them without a copy. */
export type FlatTables = {
  readonly segment: Uint32Array
  readonly roomType: Uint32Array
  /** Rows of table t: rowStart[t] … rowStart[t + 1], in `rows` and in the list of their addresses. */
  readonly rowStart: Uint32Array
  /** Property of each row. */
  readonly rows: Uint32Array
  /** Days of table t: dayStart[t] … dayStart[t + 1]. */
  readonly dayStart: Uint32Array
  readonly days: Uint32Array
  /** Location of the row addresses, u32 each. */
  readonly rowList: number
}

/** Tables without their days, and the tasks that determine these. */
export type Arrangement = {
  readonly roomTypes: string[]
  readonly rooms: Pick<PropertyColumns, 'roomStart' | 'rooms'>
  readonly tables: Omit<FlatTables, 'dayStart' | 'days'>
  readonly census: CensusTasks
}

/** Up to TASK_ROWS rows of one table each; tasks of a table are consecutive. */
export type CensusTasks = {
  readonly count: number
  readonly at: number
  readonly results: number
  readonly tableOf: Uint32Array
}

/** @throws VacancyError `failure` when the memory is full */
export function arrange(memory: WebAssembly.Memory, properties: PropertyTable): Arrangement {
  const roomTypes = rankRooms(memory)
  const { count, segment } = properties.columns
  const rows = new Uint32Array(memory.buffer)[HEADER.rows]
  const rowList = takeMemory(memory, Math.max(rows, 1) * 4)
  const u32 = new Uint32Array(memory.buffer)
  const byProperty = rowsByProperty(memory, count, rows)
  sortRooms(byProperty)
  const { roomStart, rooms } = byProperty
  const tables = collectTables({ u32, segment, ...byProperty, rowList, roomTypes: roomTypes.length })
  return { roomTypes, rooms: { roomStart, rooms }, tables, census: planCensus(memory, tables.rowStart) }
}

/** Sorts the room types by their bytes and writes rank and name hashes into their records. */
function rankRooms(memory: WebAssembly.Memory): string[] {
  const u8 = new Uint8Array(memory.buffer)
  const u32 = new Uint32Array(memory.buffer)
  const rooms: { record: number; name: Uint8Array }[] = []
  forEachRecord(memory, HEADER.roomSlots, (record) => {
    const length = u32[(record >>> 2) + ROOM.length]
    rooms.push({ record, name: u8.slice(record + ROOM_TEXT_AT, record + ROOM_TEXT_AT + length) })
  })
  rooms.sort((a, b) => compareBytes(a.name, b.name))
  const decoder = new TextDecoder()
  return rooms.map(({ record, name }, rank) => {
    const cell = record >>> 2
    u32[cell + ROOM.rank] = rank
    u32[cell + ROOM.nameHash0] = nameHash(0, name, 0, name.length)
    u32[cell + ROOM.nameHash1] = nameHash(1, name, 0, name.length)
    return decoder.decode(name)
  })
}

type ByProperty = {
  /** Rows of property p: roomStart[p] … roomStart[p + 1]. */
  readonly roomStart: Uint32Array
  /** Addresses of the rows, and ranks of their room types. */
  readonly records: Uint32Array
  readonly rooms: Uint32Array
}

/** All rows, grouped by property. */
function rowsByProperty(memory: WebAssembly.Memory, properties: number, rows: number): ByProperty {
  const u32 = new Uint32Array(memory.buffer)
  const counts = u32[HEADER.propertyRooms] >>> 2
  const roomStart = new Uint32Array(properties + 1)
  for (let property = 0; property < properties; property++) {
    roomStart[property + 1] = roomStart[property] + u32[counts + property]
  }
  assert(roomStart[properties] === rows, 'every row is counted at its property')
  const next = roomStart.slice()
  const records = new Uint32Array(rows)
  const rooms = new Uint32Array(rows)
  forEachRecord(memory, HEADER.rowSlots, (record) => {
    const cell = record >>> 2
    const property = u32[cell + ROW.property]
    const at = next[property]
    records[at] = record
    rooms[at] = u32[(u32[cell + ROW.room] >>> 2) + ROOM.rank]
    next[property] = at + 1
  })
  return { roomStart, records, rooms }
}

/** Sorts the rows of each property by the rank of their room type. */
function sortRooms({ roomStart, records, rooms }: ByProperty): void {
  for (let property = 0; property + 1 < roomStart.length; property++) {
    const start = roomStart[property]
    const end = roomStart[property + 1]
    // At most 256, usually a few: insertion sort.
    for (let i = start; i < end; i++) {
      const record = records[i]
      const rank = rooms[i]
      let at = i
      while (at > start && rooms[at - 1] > rank) {
        rooms[at] = rooms[at - 1]
        records[at] = records[at - 1]
        at--
      }
      rooms[at] = rank
      records[at] = record
    }
  }
}

type Collecting = ByProperty & {
  readonly u32: Uint32Array
  /** Of each property; properties of a segment follow each other. */
  readonly segment: Uint32Array
  readonly rowList: number
  /** How many there are. */
  readonly roomTypes: number
}

function collectTables({
  u32,
  segment,
  roomStart,
  rooms,
  records,
  rowList,
  roomTypes,
}: Collecting): Arrangement['tables'] {
  const tables: { segment: number; roomType: number; rows: number }[] = []
  const rows = sharedU32(records.length)
  const list = rowList >>> 2
  const countOf = new Uint32Array(roomTypes)
  const nextOf = new Uint32Array(roomTypes)
  let end = 0
  for (let first = 0; first < segment.length; ) {
    let last = first
    while (last < segment.length && segment[last] === segment[first]) last++
    const met: number[] = []
    for (let i = roomStart[first]; i < roomStart[last]; i++) {
      const rank = rooms[i]
      if (countOf[rank] === 0) met.push(rank)
      countOf[rank] = countOf[rank] + 1
    }
    met.sort((a, b) => a - b)
    for (const rank of met) {
      const count = countOf[rank]
      tables.push({ segment: segment[first], roomType: rank, rows: count })
      nextOf[rank] = end
      end += count
      countOf[rank] = 0
    }
    for (let property = first; property < last; property++) {
      for (let i = roomStart[property]; i < roomStart[property + 1]; i++) {
        const rank = rooms[i]
        const row = nextOf[rank]
        rows[row] = property
        u32[list + row] = records[i]
        nextOf[rank] = row + 1
      }
    }
    first = last
  }
  const rowStart = sharedU32(tables.length + 1)
  for (let table = 0; table < tables.length; table++) {
    rowStart[table + 1] = rowStart[table] + (tables[table] as { rows: number }).rows
  }
  return {
    segment: Uint32Array.from(tables, (table) => table.segment),
    roomType: Uint32Array.from(tables, (table) => table.roomType),
    rowStart,
    rows,
    rowList,
  }
}

function planCensus(memory: WebAssembly.Memory, rowStart: Uint32Array): CensusTasks {
  const tableOf: number[] = []
  const ranges: number[] = []
  for (let table = 0; table + 1 < rowStart.length; table++) {
    const end = rowStart[table + 1]
    for (let row = rowStart[table]; row < end; row += TASK_ROWS) {
      tableOf.push(table)
      ranges.push(row, Math.min(TASK_ROWS, end - row))
    }
  }
  const at = takeMemory(memory, Math.max(tableOf.length, 1) * TASK_BYTES)
  const results = takeMemory(memory, Math.max(tableOf.length, 1) * RESULT_BYTES)
  new Uint32Array(memory.buffer).set(ranges, at >>> 2)
  return { count: tableOf.length, at, results, tableOf: Uint32Array.from(tableOf) }
}

/** Runs census tasks until none is left; any number of threads concurrently. */
export function runCensus(memory: WebAssembly.Memory, kernel: ImportKernel, tasks: CensusTasks, rowList: number): void {
  const u32 = new Uint32Array(memory.buffer)
  for (;;) {
    const task = Atomics.add(u32, HEADER.nextTask, 1)
    if (task >= tasks.count) return
    const cell = (tasks.at + task * TASK_BYTES) >>> 2
    kernel.census(rowList + u32[cell] * 4, u32[cell + 1], tasks.results + task * RESULT_BYTES)
  }
}

export type Counted = {
  readonly packages: number
  /** Of the facts that properties have room types. */
  readonly digest: Digest
  readonly roomTypes: readonly string[]
  readonly rooms: Arrangement['rooms']
  readonly tables: FlatTables
}

/** Adds up what the census found. */
export function countTables(memory: WebAssembly.Memory, { tables, census, roomTypes, rooms }: Arrangement): Counted {
  const u32 = new Uint32Array(memory.buffer)
  const firstDay = u32[HEADER.firstDay]
  const dayStart = sharedU32(tables.segment.length + 1)
  const days: number[] = []
  let packages = 0
  let lo = 0
  let hi = 0
  for (let task = 0; task < census.count; ) {
    const table = census.tableOf[task]
    const nights = new Uint32Array(12)
    for (; task < census.count && census.tableOf[task] === table; task++) {
      const cell = (census.results + task * RESULT_BYTES) >>> 2
      packages += u32[cell]
      lo = (lo + u32[cell + 1]) >>> 0
      hi = (hi + u32[cell + 2]) >>> 0
      for (let i = 0; i < 12; i++) nights[i] = nights[i] | u32[cell + 4 + i]
    }
    for (let night = 0; night < WINDOW_DAYS_MAX; night++) {
      if (((nights[night >>> 5] >>> (night & 31)) & 1) === 1) days.push(firstDay + night)
    }
    dayStart[table + 1] = days.length
  }
  const flatDays = sharedU32(days.length)
  flatDays.set(days)
  return { packages, digest: { lo, hi }, roomTypes, rooms, tables: { ...tables, dayStart, days: flatDays } }
}

export function tableShapes({ segment, roomType, rowStart, rows, dayStart, days }: FlatTables): TableShape[] {
  return Array.from(segment, (segmentOfTable, table) => ({
    segment: segmentOfTable,
    roomType: roomType[table],
    rows: rows.subarray(rowStart[table], rowStart[table + 1]),
    days: days.subarray(dayStart[table], dayStart[table + 1]),
  }))
}

export type WordsRange = {
  /** Of this thread. */
  readonly context: number
  readonly table: number
  readonly rowStart: number
  readonly rows: number
  /** Address of rows × nights × 8 bytes. */
  readonly target: number
}

/** Gathers the words of some rows of a table, with all nights, and returns their location: SnapshotSource.words. */
export function gatherWords(
  memory: WebAssembly.Memory,
  kernel: ImportKernel,
  tables: FlatTables,
  range: WordsRange,
  addresses: Uint32Array,
): void {
  const { table, rows } = range
  const u32 = new Uint32Array(memory.buffer)
  const firstDay = u32[HEADER.firstDay]
  const span = Math.ceil(u32[HEADER.days] / CHUNK_NIGHTS) * CHUNK_NIGHTS
  const list = tables.rowList + (tables.rowStart[table] + range.rowStart) * 4
  // Rows of a table often start with the same night: groups of nights aligned to its chunks need no joining.
  const offset = u32[(u32[list >>> 2] >>> 2) + ROW.base] % CHUNK_NIGHTS
  const groupOf = (day: number) => Math.floor((day - firstDay - offset) / CHUNK_NIGHTS)
  const stride = rows * BYTES_PER_WORD
  const end = tables.dayStart[table + 1]
  const start = tables.dayStart[table]
  let target = range.target
  for (let i = start; i < end; ) {
    const group = groupOf(tables.days[i])
    const first = group * CHUNK_NIGHTS + offset
    const planes = target
    let nights = 0
    for (; i < end && groupOf(tables.days[i]) === group; i++) {
      nights |= 1 << (tables.days[i] - firstDay - first)
      addresses[i - start] = target
      target += stride
    }
    kernel.gather(range.context, list, rows, first < 0 ? first + span : first, nights, planes, stride)
  }
}
