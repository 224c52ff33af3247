/**
 * The order of rows in a table: by type, category, stars, area and id, so that the rows of a search are adjacent. New
 * rows are appended. Maintenance sorts tables with many small commands, each of which swaps a few rows: the leader
 * sorts, and every replica swaps the same properties.
 */

import { clearRowBits, noteBounds, setRowBits } from './bitmaps.ts'
import {
  type CommandKind,
  type CommandReader,
  createCommandWriter,
  KIND,
  readBytes,
  readName,
  readU8,
  readU32,
  writeBytes,
  writeName,
  writeU8,
  writeU32,
} from './command.ts'
import { touch } from './cow.ts'
import { compareBytes, findName, NAMES, type NameKind, nameBytes, nameCount } from './dictionary.ts'
import { moveRow } from './gaps.ts'
import { CONTROL, PROPERTY, PROPERTY_TABLE, ROOMS, SEGMENT, STATE, TABLE } from './layout.ts'
import { forEachSlot, wordAddress, writeWord } from './planes.ts'
import { findProperty } from './property-index.ts'
import { findRoom, forEachTable, segmentOf, tableOf } from './segment.ts'
import { featureLevel, type Memory, type Store, state } from './store.ts'
import { liveRowsOf } from './table.ts'
import { field, noteChange, rowCountOf, setField } from './table-fields.ts'
import { mark, unmark } from './version.ts'

const ID_BYTES = 16
/** Upper bound of rows times nights that one command swaps. */
const WORDS_EXCHANGED = 2_048
/** Lower bound of the nights per table in that product: a pair of rows has a fixed cost. */
const NIGHTS_MIN = 16
/** Comparisons, or rows examined, between two pauses of the sorting. */
const COMPARISONS = 2_048

/** One table: that of a room type, or the property table. The values are dictionary numbers. */
export type TableName = { readonly segment: number; readonly roomType: number | undefined }

/** Tables with more than a tenth of their rows unsorted: those that maintenance sorts. */
export function unorderedTables(memory: Memory): TableName[] {
  const found: TableName[] = []
  const capacity = state(memory, STATE.segmentCapacity)
  const isUnordered = (table: number) =>
    field(memory, table + TABLE.unordered) * 10 > field(memory, table + TABLE.liveRows) &&
    field(memory, table + TABLE.unordered) > 1
  for (let name = 0; name < capacity; name++) {
    const segment = segmentOf(memory, name)
    if (segment === 0) continue
    if (isUnordered(field(memory, segment + SEGMENT.propertyTable))) found.push({ segment: name, roomType: undefined })
    forEachTable(memory, segment, (table, roomType) => {
      if (isUnordered(table)) found.push({ segment: name, roomType })
    })
  }
  return found
}

/** A command that maintenance proposes. */
export type OrderCommand = { readonly kind: CommandKind; readonly body: Uint8Array }

/**
 * The commands that sort all tables. Yields `undefined` between them after a short slice of work. Runs on the writing
 * thread, where commands are applied between two steps. They may change the rows being sorted, which makes the order
 * less good but not wrong.
 */
export function* orderTables(memory: Memory): Generator<OrderCommand | undefined, void> {
  for (const table of unorderedTables(memory)) {
    if (featureLevel(memory) < 1) yield { kind: KIND.orderRows, body: tableBody(memory, table).slice() }
    else yield* orderTable(memory, table)
  }
}

export function* orderTable(memory: Memory, name: TableName): Generator<OrderCommand | undefined, void> {
  const generation = memory.u32[CONTROL.generation]
  const table = addressOf(memory, name)
  if (table === 0) return
  const covered = field(memory, table + TABLE.unordered)
  const rows = liveRowsOf(memory, table)
  // Read the current rows: they may move, and their properties disappear, before all are placed.
  const count = rowCountOf(memory, table)
  const firstProperty = field(memory, table + TABLE.rowProperties) >>> 2
  const properties = memory.u32.slice(firstProperty, firstProperty + count)
  const firstId = field(memory, table + TABLE.rowIds)
  const ids = memory.u8.slice(firstId, firstId + count * ID_BYTES)
  const order = yield* sort(memory, rows, properties)

  let nights = 0
  forEachSlot(memory, table, () => nights++)
  const pairsMax = Math.max(1, Math.floor(WORDS_EXCHANGED / Math.max(NIGHTS_MIN, nights)))
  let pairs: number[] = []
  for (const [a, b] of exchanges(rows, order)) {
    // The data of another node has replaced the data being sorted.
    if (memory.u32[CONTROL.generation] !== generation) return
    if (pairs.length === pairsMax * 2) {
      yield { kind: KIND.swapRows, body: swapBody(memory, name, pairs, ids, 0) }
      pairs = []
    }
    pairs.push(a, b)
  }
  yield { kind: KIND.swapRows, body: swapBody(memory, name, pairs, ids, covered) }
}

function addressOf(memory: Memory, { segment: name, roomType }: TableName): number {
  const segment = segmentOf(memory, name)
  if (segment === 0) return 0
  return roomType === undefined ? field(memory, segment + SEGMENT.propertyTable) : tableOf(memory, segment, roomType)
}

/** Pairs of rows that, swapped one after the other, bring the second list into the positions of the first. */
function* exchanges(places: Uint32Array, order: Uint32Array): Generator<readonly [number, number], void> {
  const size = (places.at(-1) ?? 0) + 1
  // The row whose property is now in a position, and the current position of a row's property.
  const holds = new Uint32Array(size)
  const placeOf = new Uint32Array(size)
  for (const row of places) {
    holds[row] = row
    placeOf[row] = row
  }
  for (let n = 0; n < places.length; n++) {
    const place = places[n]
    const wanted = order[n]
    const held = holds[place]
    if (held === wanted) continue
    yield [held, wanted]
    const from = placeOf[wanted]
    holds[from] = held
    placeOf[held] = from
    // No later position wants this row again.
    holds[place] = wanted
  }
}

// Bodies: segment name, u8 1 for the property table, room type name; for exchanges u32 covered, pairs of ids

function tableBody(memory: Memory, { segment, roomType }: TableName) {
  const writer = createCommandWriter(1024)
  const put = (bytes: Uint8Array) => writeName(writer, bytes, 0, bytes.length)
  put(nameBytes(memory, NAMES.segment, segment))
  writeU8(writer, roomType === undefined ? 1 : 0)
  put(roomType === undefined ? new Uint8Array(0) : nameBytes(memory, NAMES.roomType, roomType))
  return writer.bytes.subarray(0, writer.at)
}

/** @param covered new rows that are sorted once this is applied; 0 while more commands follow */
function swapBody(
  memory: Memory,
  table: TableName,
  pairs: readonly number[],
  ids: Uint8Array,
  covered: number,
): Uint8Array {
  const head = tableBody(memory, table)
  const writer = createCommandWriter(head.length + 8 + pairs.length * ID_BYTES)
  writeBytes(writer, head, 0, head.length)
  writeU32(writer, covered)
  writeU32(writer, pairs.length / 2)
  for (const row of pairs) writeBytes(writer, ids, row * ID_BYTES, (row + 1) * ID_BYTES)
  return writer.bytes.slice(0, writer.at)
}

/** Reads the table of a command. @returns its address, 0 when it no longer exists */
export function readTable(memory: Memory, reader: CommandReader): number {
  const segmentStart = readName(reader)
  const segment = segmentOf(memory, findName(memory, NAMES.segment, reader.bytes, segmentStart, reader.at))
  const isPropertyTable = readU8(reader) === 1
  const roomStart = readName(reader)
  const roomType = findName(memory, NAMES.roomType, reader.bytes, roomStart, reader.at)
  if (segment === 0) return 0
  return isPropertyTable ? field(memory, segment + SEGMENT.propertyTable) : tableOf(memory, segment, roomType)
}

/** Swaps the rows of pairs of properties. Skips pairs that have lost a property since they were proposed. */
export function swapRows(store: Store, reader: CommandReader): void {
  const { memory } = store
  const table = readTable(memory, reader)
  if (table === 0) return
  const covered = readU32(reader)
  const pairs = readU32(reader)
  mark(store, table)
  for (let n = 0; n < pairs; n++) {
    const first = findProperty(memory, reader.bytes, readBytes(reader, ID_BYTES))
    const second = findProperty(memory, reader.bytes, readBytes(reader, ID_BYTES))
    const a = rowIn(memory, table, first)
    const b = rowIn(memory, table, second)
    if (a >= 0 && b >= 0 && a !== b) exchange(store, table, first, a, second, b)
  }
  if (covered > 0) {
    setField(store, table + TABLE.unordered, Math.max(0, field(memory, table + TABLE.unordered) - covered))
    if (field(memory, table + TABLE.bitmaps) !== 0) noteBounds(store, table)
  }
  noteChange(store, table)
  unmark(store, table)
}

/** @returns row of the property in the table, -1 when it has none */
function rowIn(memory: Memory, table: number, property: number): number {
  if (property === 0) return -1
  const roomType = field(memory, table + TABLE.roomType)
  if (roomType === PROPERTY_TABLE) {
    const isHere = field(memory, property + PROPERTY.segment) === field(memory, table + TABLE.segment)
    return isHere ? field(memory, property + PROPERTY.row) : -1
  }
  const room = findRoom(memory, property, roomType)
  return room !== 0 && field(memory, room + ROOMS.table) === table ? field(memory, room + ROOMS.row) : -1
}

/**
 * Swaps two live rows of a marked table: columns, words of all nights, bits, and the row references of their
 * properties.
 */
function exchange(store: Store, table: number, first: number, a: number, second: number, b: number): void {
  const { memory } = store
  const { u8 } = memory
  for (const [property, row] of [
    [first, b],
    [second, a],
  ] as const) {
    const id = field(memory, table + TABLE.rowIds) + row * ID_BYTES
    touch(store, id, ID_BYTES)
    u8.copyWithin(id, property + PROPERTY.id, property + PROPERTY.id + ID_BYTES)
    setField(store, field(memory, table + TABLE.rowProperties) + row * 4, property)
  }
  forEachSlot(memory, table, (_slot, plane) => exchangeWords(store, table, plane, a, b))
  if (field(memory, table + TABLE.bitmaps) !== 0) {
    clearRowBits(store, table, a)
    clearRowBits(store, table, b)
    setRowBits(store, table, a, second)
    setRowBits(store, table, b, first)
  }
  moveRow(store, first, table, b)
  moveRow(store, second, table, a)
}

function exchangeWords(store: Store, table: number, plane: number, a: number, b: number): void {
  const { memory } = store
  const { u32 } = memory
  const left = wordAddress(plane, a) >>> 2
  const right = wordAddress(plane, b) >>> 2
  const [leftLo, leftHi] = [u32[left], u32[left + 1]]
  const [rightLo, rightHi] = [u32[right], u32[right + 1]]
  if (leftLo === rightLo && leftHi === rightHi) return
  writeWord(store, table, plane, a, rightLo, rightHi)
  writeWord(store, table, plane, b, leftLo, leftHi)
}

// Sorting

type Compare = (a: number, b: number) => number

/** The live rows of a table in their order, at once. */
export function sortedRows(memory: Memory, table: number): Uint32Array {
  const rows = liveRowsOf(memory, table)
  const first = field(memory, table + TABLE.rowProperties) >>> 2
  const steps = sort(memory, rows, memory.u32.subarray(first, first + rowCountOf(memory, table)))
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** Merge sort that pauses after a number of comparisons. @param properties addresses by row */
function* sort(memory: Memory, rows: Uint32Array, properties: Uint32Array): Generator<undefined, Uint32Array> {
  const compare = yield* comparison(memory, rows, properties)
  let from = rows.slice()
  let to = new Uint32Array(rows.length)
  let comparisons = 0
  for (let width = 1; width < rows.length; width *= 2) {
    for (let start = 0; start < rows.length; start += 2 * width) {
      const middle = Math.min(start + width, rows.length)
      const end = Math.min(start + 2 * width, rows.length)
      let [left, right] = [start, middle]
      for (let at = start; at < end; at++) {
        const takesLeft = left < middle && (right === end || compare(from[left], from[right]) <= 0)
        to[at] = from[takesLeft ? left++ : right++]
        if (++comparisons % COMPARISONS === 0) yield undefined
      }
    }
    ;[from, to] = [to, from]
  }
  return from
}

/** The order of a property that disappears during the sort is arbitrary. */
function* comparison(memory: Memory, rows: Uint32Array, properties: Uint32Array): Generator<undefined, Compare> {
  const named = [
    { kind: NAMES.type, column: PROPERTY.type },
    { kind: NAMES.category, column: PROPERTY.category },
    { kind: NAMES.area, column: PROPERTY.area },
  ] as const
  const used = named.map(() => new Set<number>())
  for (const [n, row] of rows.entries()) {
    for (const [i, { column }] of named.entries()) used[i]?.add(field(memory, properties[row] + column))
    if (n % COMPARISONS === COMPARISONS - 1) yield undefined
  }
  const [types, categories, areas] = named.map(({ kind }, i) => ranksOf(memory, kind, used[i] as Set<number>))
  const columns = [
    { column: PROPERTY.type, ranks: types },
    { column: PROPERTY.category, ranks: categories },
    { column: PROPERTY.stars, ranks: undefined },
    { column: PROPERTY.area, ranks: areas },
  ]
  return (a, b) => {
    const left = properties[a]
    const right = properties[b]
    for (const { column, ranks } of columns) {
      const x = field(memory, left + column)
      const y = field(memory, right + column)
      if (x !== y) return ranks ? (ranks[x] ?? 0) - (ranks[y] ?? 0) : x - y
    }
    for (let i = 0; i < ID_BYTES; i++) {
      const difference = memory.u8[left + i] - memory.u8[right + i]
      if (difference !== 0) return difference
    }
    return 0
  }
}

/** Rank of each of these names in byte order, by the number of the name. */
function ranksOf(memory: Memory, kind: NameKind, used: ReadonlySet<number>): Uint32Array {
  const names = Array.from(used, (name) => ({ name, bytes: nameBytes(memory, kind, name) }))
  names.sort((a, b) => compareBytes(a.bytes, b.bytes))
  const ranks = new Uint32Array(nameCount(memory, kind))
  for (const [rank, { name }] of names.entries()) ranks[name] = rank
  return ranks
}
