/**
 * properties.csv → columns, in the row order of a snapshot, and the index from packed id to ordinal.
 *
 * The order is by segment, property type, category, stars, area and id, comparing bytes of names. Name numbers depend
 * on file order, but the same properties in another order must give the same snapshot. Neighbours in this order are
 * what searches request together (docs/design/store.md#tables-and-planes).
 */

import { IMPORT_COLUMNS, LIMITS, PROPERTY_ID_BYTES, packPropertyIdInto, RESERVED_SEGMENTS } from '@vacancy/shared'
import { textFault } from '@vacancy/shared/wire'
import type { Digest } from '../snapshot/format.ts'
import { type PropertyColumns, sharedBytes, sharedU32 } from '../snapshot/schema.ts'
import { nameHash, type PropertyHashInput, propertyHash } from '../store/digest.ts'
import {
  arrangeCells,
  barFrom,
  type Cells,
  type ColumnOrder,
  cellText,
  createCells,
  dropBlanks,
  faultAt,
  faultInFile,
  LINE_BYTES_MAX,
  readRecord,
  recordText,
  rowOf,
  scanFault,
  skipBlanks,
  textFaultAt,
  wholeNumber,
} from './csv.ts'
import { hashId } from './layout.ts'
import { createNames, type Names, numberOf, ranksOf, sortedNames } from './names.ts'
import type { Fault } from './row-errors.ts'
import { type Blocks, type CsvFile, nextBlock, openRange, skipLine } from './split.ts'

const PROPERTY_CELLS = IMPORT_COLUMNS.properties.length

/** Packed ids by ordinal, and open addressing over them: slot = hashId >>> shift, ordinal + 1, 0 = free. */
export type PropertyIndex = { readonly ids: Uint8Array; readonly slots: Uint32Array; readonly shift: number }

/** Columns are in shared memory, because other threads read them too. */
export type PropertyTable = {
  readonly columns: Omit<PropertyColumns, 'roomStart' | 'rooms'>
  readonly names: { segments: string[]; areas: string[]; types: string[]; categories: string[]; amenities: string[] }
  /** Includes properties with refused lines, after the others, so that their packages are not errors. */
  readonly index: PropertyIndex
}

type Reading = ReturnType<typeof createReading>

type Columns = {
  /** Index in `seen`. */
  id: Uint32Array
  segment: Uint32Array
  area: Uint32Array
  type: Uint32Array
  category: Uint32Array
  stars: Uint8Array
  latitude: Float64Array
  longitude: Float64Array
  amenityEnd: Uint32Array
}

type PropertyEvents = {
  /** Called with every error, its line number and the bytes of the line, which are valid during the call. */
  readonly onFault: (line: number, fault: Fault, row: Uint8Array) => void
  /** Called now and then with the read position. */
  readonly onBlock: (bytesDone: number) => void
}

/** Reads the whole file. */
export function readProperties(file: CsvFile, blocks: Blocks, { onFault, onBlock }: PropertyEvents): PropertyTable {
  const reading = createReading()
  let line = file.firstLine
  openRange(blocks, file.dataStart, file.bytes, true)
  for (;;) {
    const state = nextBlock(blocks)
    if (state === 'end') return finish(reading)
    if (state === 'long') {
      onFault(line++, scanFault(reading.cells, 'long'), blocks.bytes.subarray(0, LINE_BYTES_MAX))
      skipLine(blocks)
      continue
    }
    onBlock(blocks.position)
    let at = blocks.start
    while (at < blocks.end) {
      const { cells } = reading
      const scanned = readRecord(cells, blocks.bytes, at, blocks.filled, blocks.isLast)
      if (scanned === 'incomplete') {
        blocks.end = at
        break
      }
      let faults: readonly Fault[] = []
      if (scanned === 'record') faults = addProperty(reading, line, file.order)
      else if (scanned !== 'blank') faults = [scanFault(cells, scanned)]
      const next = scanned === 'long' ? blocks.bytes.indexOf(0x0a, cells.next) + 1 : cells.next
      for (const fault of faults)
        onFault(line, scanned === 'record' ? faultInFile(fault, file.order) : fault, rowOf(blocks.bytes, at, next))
      line += scanned === 'long' ? 1 : cells.lines
      at = next
    }
  }
}

function createReading() {
  const capacity = 1024
  return {
    cells: createCells(),
    segments: createNames(),
    areas: createNames(),
    types: createNames(),
    categories: createNames(),
    amenityNames: createNames(),
    seen: createSeenIds(),
    /** By order in the file; columns grow together. */
    count: 0,
    capacity,
    columns: createColumns(capacity),
    amenities: new Uint32Array(8 * capacity),
    /** Distinct amenities of the current line. */
    lineAmenities: [] as number[],
  }
}

function createColumns(capacity: number): Columns {
  return {
    id: new Uint32Array(capacity),
    segment: new Uint32Array(capacity),
    area: new Uint32Array(capacity),
    type: new Uint32Array(capacity),
    category: new Uint32Array(capacity),
    stars: new Uint8Array(capacity),
    latitude: new Float64Array(capacity),
    longitude: new Float64Array(capacity),
    amenityEnd: new Uint32Array(capacity),
  }
}

const id = new Uint8Array(16)

const NONE: readonly Fault[] = []

/** Validates the nine cells in the order of IMPORT_COLUMNS, then that the property is new. @returns every error */
function addProperty(reading: Reading, line: number, order: ColumnOrder | undefined): readonly Fault[] {
  const { cells, seen } = reading
  const { text, starts, ends } = cells
  if (cells.count !== PROPERTY_CELLS) {
    return [
      {
        kind: 'columns',
        column: 0,
        value: recordText(cells),
        found: cells.count,
        expected: PROPERTY_CELLS,
      },
    ]
  }
  if (order) arrangeCells(cells, order)
  const isId = packPropertyIdInto(text, starts[0], ends[0], id, 0)
  const before = seen.count
  const place = isId ? placeOf(seen, id, line) : -1
  const faults = faultsOfValues(reading)
  if (!isId) return [faultAt(cells, 'property_id', 0), ...faults]
  if (faults.length > 0) return faults
  if (place < before) return [{ ...faultAt(cells, 'property_twice', 0), firstLine: seen.lines[place] }]
  append(reading, place)
  return NONE
}

function faultsOfValues(reading: Reading): readonly Fault[] {
  const { cells } = reading
  let faults = NONE
  const check = (fault: Fault | undefined) => {
    if (fault) faults = [...faults, fault]
  }
  for (let cell = 1; cell <= 4; cell++) {
    check(textFaultAt(cells, cell, LIMITS.nameBytesMax))
    if (cell === 1 && isReserved(cells)) check(faultAt(cells, 'reserved_segment', 1))
  }
  const stars = wholeNumber(cells.text, cells.starts[5], cells.ends[5])
  if (!(stars >= 1 && stars <= 5)) check(faultAt(cells, 'stars', 5))
  if (!(Math.abs(degreesAt(cells, 6)) <= 90)) check(faultAt(cells, 'latitude', 6))
  if (!(Math.abs(degreesAt(cells, 7)) <= 180)) check(faultAt(cells, 'longitude', 7))
  check(readAmenities(reading))
  return faults
}

const RESERVED_LENGTHS = RESERVED_SEGMENTS.map((name) => name.length)

function isReserved(cells: Cells): boolean {
  // Most names differ in length: they are compared without creating a string.
  const length = cells.ends[1] - cells.starts[1]
  return RESERVED_LENGTHS.includes(length) && (RESERVED_SEGMENTS as readonly string[]).includes(cellText(cells, 1))
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/
/** Powers of ten that a double holds exactly. */
const TENS = Array.from({ length: 23 }, (_, power) => 10 ** power)
const decoder = new TextDecoder()

/** @returns the number in a cell, NaN if it is not valid; -0 is 0 */
function degreesAt({ text, starts, ends }: Cells, cell: number): number {
  const start = starts[cell]
  const end = ends[cell]
  const isNegative = text[start] === 0x2d
  if (isNegative && end === start + 1) return Number.NaN
  let digits = 0
  let fraction = -1
  for (let at = isNegative ? start + 1 : start; at < end; at++) {
    const byte = text[at]
    if (byte === 0x2e && fraction < 0 && at > start && at + 1 < end) fraction = 0
    else if (byte >= 0x30 && byte <= 0x39) {
      digits = digits * 10 + byte - 0x30
      if (fraction >= 0) fraction++
    } else return slowNumber(text, start, end)
  }
  // Both are exact up to here, so one division rounds as the standard requires. Longer numbers take the slow path.
  if (digits > Number.MAX_SAFE_INTEGER || fraction >= TENS.length || start === end) return slowNumber(text, start, end)
  const value = fraction > 0 ? digits / TENS[fraction] : digits
  return isNegative && value !== 0 ? -value : value
}

function slowNumber(text: Uint8Array, start: number, end: number): number {
  const number = decoder.decode(text.subarray(start, end))
  return NUMBER.test(number) ? Number(number) + 0 : Number.NaN
}

/** Names separated by `|`; empty ones and repeats ignored. */
function readAmenities(reading: Reading): Fault | undefined {
  const { cells, amenityNames, lineAmenities } = reading
  const { text } = cells
  const end = cells.ends[8]
  lineAmenities.length = 0
  for (let start = cells.starts[8]; start < end; ) {
    const bar = barFrom(text, start, end)
    const nameStart = skipBlanks(text, start, bar)
    const nameEnd = dropBlanks(text, nameStart, bar)
    if (nameStart < nameEnd) {
      const reason = amenityFault(text, nameStart, nameEnd)
      if (reason !== '') {
        const value = decoder.decode(text.subarray(nameStart, Math.min(nameEnd, nameStart + LIMITS.amenityBytesMax)))
        return { kind: 'amenity', column: 9, value, reason }
      }
      const name = numberOf(amenityNames, text, nameStart, nameEnd)
      if (!lineAmenities.includes(name)) lineAmenities.push(name)
    }
    start = bar + 1
  }
  const found = lineAmenities.length
  if (found <= LIMITS.amenitiesMax) return undefined
  return { ...faultAt(cells, 'amenities', 8), found, expected: LIMITS.amenitiesMax }
}

/**
 * Requests carry amenities joined by commas, so one with a comma could never be searched for
 * (docs/design/protocol.md#text-and-lists).
 */
function amenityFault(text: Uint8Array, start: number, end: number): string {
  for (let at = start; at < end; at++) {
    if (text[at] === 0x2c) return 'must not contain a comma; amenities are separated by |'
  }
  return textFault(text, start, end, LIMITS.amenityBytesMax)
}

function append(reading: Reading, place: number): void {
  if (reading.count === reading.capacity) {
    reading.capacity *= 2
    const grown = createColumns(reading.capacity)
    for (const name of Object.keys(grown) as (keyof Columns)[]) grown[name].set(reading.columns[name])
    reading.columns = grown
  }
  const { columns, count, lineAmenities } = reading
  const amenityStart = count === 0 ? 0 : columns.amenityEnd[count - 1]
  if (amenityStart + lineAmenities.length > reading.amenities.length) {
    const amenities = new Uint32Array(reading.amenities.length * 2)
    amenities.set(reading.amenities)
    reading.amenities = amenities
  }
  for (let i = 0; i < lineAmenities.length; i++) reading.amenities[amenityStart + i] = lineAmenities[i]
  columns.amenityEnd[count] = amenityStart + lineAmenities.length
  const { cells } = reading
  const nameAt = (names: Names, cell: number) => numberOf(names, cells.text, cells.starts[cell], cells.ends[cell])
  columns.id[count] = place
  columns.segment[count] = nameAt(reading.segments, 1)
  columns.area[count] = nameAt(reading.areas, 2)
  columns.type[count] = nameAt(reading.types, 3)
  columns.category[count] = nameAt(reading.categories, 4)
  columns.stars[count] = wholeNumber(cells.text, cells.starts[5], cells.ends[5])
  columns.latitude[count] = degreesAt(cells, 6)
  columns.longitude[count] = degreesAt(cells, 7)
  reading.count++
}

/** Ids of all lines that have one, including lines refused for another reason. */
type SeenIds = {
  count: number
  ids: Uint8Array
  words: Uint32Array
  lines: Float64Array
  slots: Uint32Array
  shift: number
}

function createSeenIds(): SeenIds {
  const ids = new Uint8Array(1024 * 16)
  return {
    count: 0,
    ids,
    words: new Uint32Array(ids.buffer),
    lines: new Float64Array(1024),
    slots: new Uint32Array(4096),
    shift: 20,
  }
}

const idWords = new Uint32Array(id.buffer)

/** @returns index of the id in order of appearance */
function placeOf(seen: SeenIds, bytes: Uint8Array, line: number): number {
  const { slots, words } = seen
  const w0 = idWords[0]
  const w1 = idWords[1]
  const w2 = idWords[2]
  const w3 = idWords[3]
  let slot = hashId(w0, w1, w2, w3) >>> seen.shift
  for (;;) {
    const place = slots[slot] - 1
    if (place < 0) break
    const at = place * 4
    if (words[at] === w0 && words[at + 1] === w1 && words[at + 2] === w2 && words[at + 3] === w3) return place
    slot = (slot + 1) & (slots.length - 1)
  }
  if (seen.count === seen.lines.length) growSeen(seen)
  seen.ids.set(bytes, seen.count * 16)
  seen.lines[seen.count] = line
  slots[slot] = ++seen.count
  if (seen.count * 2 > slots.length) growSlots(seen)
  return seen.count - 1
}

function growSeen(seen: SeenIds): void {
  const ids = new Uint8Array(seen.ids.length * 2)
  ids.set(seen.ids)
  const lines = new Float64Array(seen.lines.length * 2)
  lines.set(seen.lines)
  seen.ids = ids
  seen.words = new Uint32Array(ids.buffer)
  seen.lines = lines
}

function growSlots(seen: SeenIds): void {
  const { words } = seen
  const slots = new Uint32Array(seen.slots.length * 4)
  seen.shift -= 2
  for (let place = 0; place < seen.count; place++) {
    let slot = hashAt(words, place) >>> seen.shift
    while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1)
    slots[slot] = place + 1
  }
  seen.slots = slots
}

function hashAt(words: Uint32Array, place: number): number {
  const at = place * 4
  return hashId(words[at], words[at + 1], words[at + 2], words[at + 3])
}

/** Ranks names, sorts the properties and sums their digests. */
function finish(reading: Reading): PropertyTable {
  const { count, seen } = reading
  const ranks = {
    segment: ranksOf(reading.segments),
    area: ranksOf(reading.areas),
    type: ranksOf(reading.types),
    category: ranksOf(reading.categories),
  }
  const amenityRanks = ranksOf(reading.amenityNames)
  const { columns } = reading
  for (const name of ['segment', 'area', 'type', 'category'] as const) {
    const column = columns[name]
    for (let i = 0; i < count; i++) column[i] = ranks[name][column[i]]
  }
  const order = sortedOrder(columns, seen, count)
  const ordered = <T extends Uint32Array | Uint8Array | Float64Array>(from: T, to: T): T => {
    for (let i = 0; i < count; i++) to[i] = from[order[i]]
    return to
  }
  const amenities = orderedAmenities(reading, order, amenityRanks)
  const index = indexOf(columns, seen, order)
  const sorted = {
    count,
    ids: index.ids.subarray(0, count * 16),
    segment: ordered(columns.segment, sharedU32(count)),
    area: ordered(columns.area, sharedU32(count)),
    type: ordered(columns.type, sharedU32(count)),
    category: ordered(columns.category, sharedU32(count)),
    stars: ordered(columns.stars, sharedBytes(count)),
    latitude: ordered(columns.latitude, sharedF64(count)),
    longitude: ordered(columns.longitude, sharedF64(count)),
    ...amenities,
  }
  return {
    columns: sorted,
    names: {
      segments: sortedNames(reading.segments, ranks.segment),
      areas: sortedNames(reading.areas, ranks.area),
      types: sortedNames(reading.types, ranks.type),
      categories: sortedNames(reading.categories, ranks.category),
      amenities: sortedNames(reading.amenityNames, amenityRanks),
    },
    index,
  }
}

function sharedF64(length: number): Float64Array {
  return new Float64Array(new SharedArrayBuffer(length * 8))
}

/** Stable counting sorts, the least significant key first; keys are small numbers, so each is two passes. */
function sortedOrder(columns: Columns, { ids }: SeenIds, count: number): Uint32Array {
  const keys = new Uint32Array(count)
  let order: Uint32Array = new Uint32Array(count)
  for (let line = 0; line < count; line++) order[line] = line
  let spare: Uint32Array = new Uint32Array(count)
  const sortBy = (by: Uint32Array | Uint8Array) => {
    if (!countingSort(order, spare, by)) return
    const sorted = spare
    spare = order
    order = sorted
  }
  for (let byte = PROPERTY_ID_BYTES - 1; byte >= 0; byte--) {
    for (let line = 0; line < count; line++) {
      keys[line] = ids[columns.id[line] * PROPERTY_ID_BYTES + byte]
    }
    sortBy(keys)
  }
  for (const by of [columns.area, columns.stars, columns.category, columns.type, columns.segment]) sortBy(by)
  return order
}

/** @param keys key of each line @returns false when all keys are equal, so that the order stays */
function countingSort(order: Uint32Array, target: Uint32Array, keys: Uint32Array | Uint8Array): boolean {
  const lines = order.length
  let lowest = 0xffffffff
  let highest = 0
  for (let line = 0; line < lines; line++) {
    const key = keys[line]
    if (key < lowest) lowest = key
    if (key > highest) highest = key
  }
  if (lowest >= highest) return false
  const starts = new Uint32Array(highest + 2)
  for (let line = 0; line < lines; line++) {
    const next = keys[line] + 1
    starts[next] = starts[next] + 1
  }
  for (let key = 0; key <= highest; key++) starts[key + 1] = starts[key + 1] + starts[key]
  for (let i = 0; i < lines; i++) {
    const line = order[i]
    const key = keys[line]
    const at = starts[key]
    target[at] = line
    starts[key] = at + 1
  }
  return true
}

function orderedAmenities(
  { columns, amenities, count }: Reading,
  order: Uint32Array,
  ranks: Uint32Array,
): { amenityStart: Uint32Array; amenities: Uint32Array } {
  const amenityStart = sharedU32(count + 1)
  const sorted = sharedU32(count === 0 ? 0 : columns.amenityEnd[count - 1])
  let end = 0
  for (let i = 0; i < count; i++) {
    const line = order[i]
    const from = line === 0 ? 0 : columns.amenityEnd[line - 1]
    const start = end
    for (let at = from; at < columns.amenityEnd[line]; at++) {
      insertAmong(sorted, start, end++, ranks[amenities[at]])
    }
    amenityStart[i + 1] = end
  }
  return { amenityStart, amenities: sorted }
}

/** Inserts a value into the sorted range [start, end). */
function insertAmong(sorted: Uint32Array, start: number, end: number, value: number): void {
  let at = end
  while (at > start && sorted[at - 1] > value) {
    sorted[at] = sorted[at - 1]
    at--
  }
  sorted[at] = value
}

/** Ordinals: first the accepted properties in their order, then the refused ones in file order. */
function indexOf(columns: Columns, seen: SeenIds, order: Uint32Array): PropertyIndex {
  const ordinalOf = new Uint32Array(seen.count).fill(0xffffffff)
  for (let ordinal = 0; ordinal < order.length; ordinal++) {
    ordinalOf[columns.id[order[ordinal]]] = ordinal
  }
  let next = order.length
  const ids = sharedBytes(seen.count * 16)
  for (let place = 0; place < seen.count; place++) {
    if (ordinalOf[place] === 0xffffffff) ordinalOf[place] = next++
    const from = place * 16
    const to = ordinalOf[place] * 16
    for (let i = 0; i < 16; i++) ids[to + i] = seen.ids[from + i]
  }
  const { slots, shift } = seen
  for (let slot = 0; slot < slots.length; slot++) {
    const place = slots[slot] - 1
    if (place >= 0) slots[slot] = ordinalOf[place] + 1
  }
  return { ids, slots, shift }
}

/** The properties' share of the state digest. */
export function digestOfProperties({ columns, names }: Pick<PropertyTable, 'columns' | 'names'>): Digest {
  const encoder = new TextEncoder()
  const sums = ([0, 1] as const).map((lane) => {
    const hashesOf = (list: readonly string[]) =>
      Uint32Array.from(list, (name) => {
        const bytes = encoder.encode(name)
        return nameHash(lane, bytes, 0, bytes.length)
      })
    const hashes = {
      segments: hashesOf(names.segments),
      areas: hashesOf(names.areas),
      types: hashesOf(names.types),
      categories: hashesOf(names.categories),
      amenities: hashesOf(names.amenities),
    }
    let sum = 0
    for (let i = 0; i < columns.count; i++) sum = (sum + propertyHash(lane, hashInputOf(columns, hashes, i))) | 0
    return sum >>> 0
  })
  return { lo: sums[0], hi: sums[1] }
}

type NameHashes = { readonly [list in keyof PropertyTable['names']]: Uint32Array }

function hashInputOf(columns: PropertyTable['columns'], hashes: NameHashes, i: number): PropertyHashInput {
  const amenityHashes: number[] = []
  const end = columns.amenityStart[i + 1]
  for (let at = columns.amenityStart[i]; at < end; at++) {
    amenityHashes.push(hashes.amenities[columns.amenities[at]])
  }
  return {
    id: columns.ids,
    idStart: i * PROPERTY_ID_BYTES,
    segmentHash: hashes.segments[columns.segment[i]],
    areaHash: hashes.areas[columns.area[i]],
    typeHash: hashes.types[columns.type[i]],
    categoryHash: hashes.categories[columns.category[i]],
    stars: columns.stars[i],
    latitude: columns.latitude[i],
    longitude: columns.longitude[i],
    amenityHashes,
  }
}
