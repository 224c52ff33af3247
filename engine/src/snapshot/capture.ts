/**
 * The store as of one log index, as the source of a snapshot, while writes continue
 * (docs/design/storage.md#snapshot-format).
 *
 * Records (properties, names, tables, sessions) are copied whole at the start, into a private memory at the same
 * addresses, so that the store's own reading functions work on the copy. Words are copied range by range when they
 * are encoded. Both use the page epochs of store/cow.ts.
 */

import { assert, type CodecList, compareBytes } from '@vacancy/shared'
import { readAtEpoch } from '../store/cow.ts'
import { NAMES, type NameKind, nameBytes, nameCount, nameCounts } from '../store/dictionary.ts'
import {
  PAGE_BYTES,
  PLANE,
  PROPERTY,
  REPLICATED_CELLS,
  ROOMS,
  SEGMENT,
  SLOT,
  STATE,
  STATE_BYTES,
  STATE_START,
  TABLE,
} from '../store/layout.ts'
import { forEachSlot } from '../store/planes.ts'
import { forEachTable, roomCount, roomEntry, segmentOf } from '../store/segment.ts'
import { encodeSessions } from '../store/sessions.ts'
import { digestWithoutPackages, featureLevel, type Memory, state } from '../store/store.ts'
import { field } from '../store/table-fields.ts'
import { type Membership, RAW_BYTES_MAX } from './format.ts'
import { encodeLedger } from './ledger.ts'
import { DEAD_ROW, type Names, type PropertyColumns, type SnapshotSource, type TableShape } from './schema.ts'

/** The replica thread's message when it has started an epoch. */
export type CapturePoint = {
  readonly epoch: number
  readonly index: number
  readonly term: number
  readonly shardId: string
  readonly voters: readonly string[]
  /** In force at the index; absent in a standalone node. */
  readonly membership?: Membership | undefined
  readonly recordsStart: number
  readonly recordsEnd: number
}

export type Captured = { readonly source: SnapshotSource; readonly epoch: number }

/** Copies of the words of one request: at most a part of words. */
export const CAPTURE_SCRATCH_BYTES = RAW_BYTES_MAX + 8192

/** Settings that the log determines, as stored in a snapshot. */
export const SETTINGS_BYTES = 32

export function encodeSettings(memory: Memory): Uint8Array {
  const bytes = new Uint8Array(SETTINGS_BYTES)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, state(memory, STATE.sessionBytesMax), true)
  view.setUint32(4, state(memory, STATE.featureLevel), true)
  view.setUint32(24, state(memory, STATE.timeLow), true)
  view.setUint32(28, state(memory, STATE.timeHigh), true)
  for (let cell = 0; cell < 4; cell++) view.setUint32(8 + cell * 4, state(memory, STATE.genesis + cell), true)
  return bytes
}

/**
 * Replicated words of feature level 1; empty below it, because older programs must be able to read the snapshot. The
 * first day that is not dropped is last: after a bulk load it may differ from the day of maintenance.
 */
export function encodeReplicated(memory: Memory): Uint8Array {
  if (featureLevel(memory) < 1) return new Uint8Array(0)
  const bytes = new Uint8Array((REPLICATED_CELLS + 1) * 4)
  const view = new DataView(bytes.buffer)
  for (let cell = 0; cell < REPLICATED_CELLS; cell++) {
    view.setUint32(cell * 4, state(memory, STATE.replicated + cell), true)
  }
  view.setUint32(REPLICATED_CELLS * 4, state(memory, STATE.droppedBefore), true)
  return bytes
}

/**
 * Captures the state at an epoch.
 *
 * @param scratch address of CAPTURE_SCRATCH_BYTES of this thread, in the store's memory
 * @param previous index and epoch of the previous snapshot, to reuse unchanged tables
 * @returns undefined when the epoch was aborted
 */
export function captureStore(
  memory: Memory,
  point: CapturePoint,
  codecs: CodecList,
  scratch: number,
  previous?: { readonly index: number; readonly epoch: number },
): Captured | undefined {
  const image = copyRecords(memory, point)
  if (!image) return undefined
  const reader: ImageReader = { memory, image, epoch: point.epoch, failed: false }
  const names = collectNames(image)
  const catalog = collectCatalog(reader, names)
  if (reader.failed) return undefined
  const { tables, addresses, properties } = catalog
  const source: SnapshotSource = {
    shardId: point.shardId,
    codecs,
    index: point.index,
    term: point.term,
    configuration: { voters: point.voters, learners: namesOf(point.membership) },
    ...(point.membership && { membership: point.membership }),
    lastMaintenanceDay: state(image, STATE.lastMaintenanceDay),
    digestWithoutPackages: digestWithoutPackages(image),
    names: names.texts,
    properties,
    tables,
    sessionCount: state(image, STATE.sessionCount),
    sessions: encodeSessions(image),
    settings: encodeSettings(image),
    replicated: encodeReplicated(image),
    stays: encodeLedger(image),
    memory: memory.wasm,
    words(table, rowStart, rows, targets) {
      const planes = addresses[table] as Uint32Array
      let at = scratch
      for (let night = 0; night < planes.length; night++) {
        const from = planes[night] + PLANE.words + rowStart * 8
        if (!readAtEpoch(memory, point.epoch, from, rows * 8, memory.u8, at)) return false
        targets[night] = at
        at += rows * 8
      }
      return true
    },
    ...(previous
      ? {
          unchangedSince: (table: number, index: number) =>
            index === previous.index &&
            field(image, catalog.tableAddresses[table] + TABLE.changedEpoch) <= previous.epoch,
        }
      : {}),
  }
  return { source, epoch: point.epoch }
}

function namesOf(membership: Membership | undefined): string[] {
  const { members = [], learners = [] } = membership ?? {}
  return members.filter(({ id }) => learners.includes(id)).map(({ node }) => node)
}

type ImageReader = { readonly memory: Memory; readonly image: Memory; readonly epoch: number; failed: boolean }

/** A private memory with state and records at their own addresses. */
function copyRecords(memory: Memory, point: CapturePoint): Memory | undefined {
  const buffer = new ArrayBuffer(Math.ceil(point.recordsEnd / PAGE_BYTES) * PAGE_BYTES)
  const u8 = new Uint8Array(buffer)
  const image: Memory = {
    ...memory,
    buffer: buffer as unknown as SharedArrayBuffer,
    u8,
    u16: new Uint16Array(buffer),
    i32: new Int32Array(buffer),
    u32: new Uint32Array(buffer),
    f64: new Float64Array(buffer),
  }
  if (!readAtEpoch(memory, point.epoch, STATE_START, STATE_BYTES, u8, STATE_START)) return undefined
  const bytes = point.recordsEnd - point.recordsStart
  return readAtEpoch(memory, point.epoch, point.recordsStart, bytes, u8, point.recordsStart) ? image : undefined
}

/** Reads u32 cells of the planes region as of the epoch. */
function readCells(reader: ImageReader, address: number, cells: number): Uint32Array {
  const copy = new Uint32Array(cells)
  if (!readAtEpoch(reader.memory, reader.epoch, address, cells * 4, new Uint8Array(copy.buffer), 0))
    reader.failed = true
  return copy
}

// Names

type CollectedNames = {
  readonly texts: Names
  /** By kind: list index of each name's number, filled in while the catalog is read. */
  readonly placeOf: (kind: NameKind, name: number) => number
  /** Segments in the order of their names. */
  readonly segments: readonly number[]
}

const KIND_ORDER: readonly NameKind[] = [
  NAMES.segment,
  NAMES.area,
  NAMES.type,
  NAMES.category,
  NAMES.roomType,
  NAMES.amenity,
]

/** From feature level 1 on charged names are state, in use or not; below it the names in use are kept. */
function namesToKeep(image: Memory): Uint8Array[] {
  const kept = KIND_ORDER.map((kind) => new Uint8Array(nameCount(image, kind)))
  if (featureLevel(image) >= 1) {
    for (const kind of KIND_ORDER) {
      const list = kept[kind] as Uint8Array
      for (let name = 0; name < list.length; name++) list[name] = nameCounts(image, kind, name) ? 1 : 0
    }
    return kept
  }
  const use = (kind: NameKind, name: number) => {
    ;(kept[kind] as Uint8Array)[name] = 1
  }
  const capacity = state(image, STATE.segmentCapacity)
  for (let name = 0; name < capacity; name++) {
    const segment = segmentOf(image, name)
    if (segment === 0) continue
    use(NAMES.segment, name)
    forEachTable(image, segment, (_table, roomType) => use(NAMES.roomType, roomType))
  }
  forEachIndexed(image, (property) => {
    use(NAMES.area, field(image, property + PROPERTY.area))
    use(NAMES.type, field(image, property + PROPERTY.type))
    use(NAMES.category, field(image, property + PROPERTY.category))
    const amenities = field(image, property + PROPERTY.amenities)
    const held = amenities === 0 ? 0 : field(image, amenities)
    for (let i = 1; i <= held; i++) use(NAMES.amenity, field(image, amenities + i * 4))
  })
  return kept
}

function collectNames(image: Memory): CollectedNames {
  const kept = namesToKeep(image)
  const decoder = new TextDecoder()
  const places = KIND_ORDER.map((kind) => new Uint32Array(nameCount(image, kind)))
  const lists = KIND_ORDER.map((kind) => {
    const names: { name: number; bytes: Uint8Array }[] = []
    for (const [name, isKept] of (kept[kind] as Uint8Array).entries()) {
      if (isKept === 1) names.push({ name, bytes: nameBytes(image, kind, name) })
    }
    names.sort((a, b) => compareBytes(a.bytes, b.bytes))
    for (const [place, { name }] of names.entries()) (places[kind] as Uint32Array)[name] = place
    return names
  })
  const texts = (kind: NameKind) => (lists[kind] ?? []).map(({ bytes }) => decoder.decode(bytes))
  return {
    texts: {
      segments: texts(NAMES.segment),
      areas: texts(NAMES.area),
      types: texts(NAMES.type),
      categories: texts(NAMES.category),
      roomTypes: texts(NAMES.roomType),
      amenities: texts(NAMES.amenity),
    },
    placeOf: (kind, name) => (places[kind] as Uint32Array)[name],
    segments: (lists[NAMES.segment] ?? []).map(({ name }) => name),
  }
}

/** Every property, through the index by id, in no particular order. */
function forEachIndexed(image: Memory, visit: (property: number) => void): void {
  const slots = state(image, STATE.propertySlots)
  const size = slots === 0 ? 0 : field(image, slots) + 1
  for (let i = 0; i < size; i++) {
    const property = field(image, slots + 4 + i * 4)
    // 0 is empty, 1 was removed.
    if (property > 1) visit(property)
  }
}

// Properties and tables

type Catalog = {
  readonly properties: PropertyColumns
  readonly tables: TableShape[]
  readonly tableAddresses: number[]
  /** By table: address of the plane of each of its days. */
  readonly addresses: Uint32Array[]
}

function collectCatalog(reader: ImageReader, names: CollectedNames): Catalog {
  const { image } = reader
  const count = state(image, STATE.propertyCount)
  const numberOf = new Map<number, number>()
  const order: number[] = []
  for (const name of names.segments) {
    if (segmentOf(image, name) === 0) continue
    const table = field(image, segmentOf(image, name) + SEGMENT.propertyTable)
    for (const property of rowsOf(reader, table)) {
      if (property === 0) continue
      numberOf.set(property, order.length)
      order.push(property)
    }
  }
  assert(reader.failed || order.length === count, 'every property has a row in its segment')
  const properties = collectProperties(image, names, order)
  const tables: TableShape[] = []
  const tableAddresses: number[] = []
  const addresses: Uint32Array[] = []
  for (const [segmentPlace, name] of names.segments.entries()) {
    if (segmentOf(image, name) === 0) continue
    const found: { roomType: number; table: number }[] = []
    forEachTable(image, segmentOf(image, name), (table, roomType) =>
      found.push({ roomType: names.placeOf(NAMES.roomType, roomType), table }),
    )
    found.sort((a, b) => a.roomType - b.roomType)
    for (const { roomType, table } of found) {
      const planes = planesOf(reader, table)
      tables.push({
        segment: segmentPlace,
        roomType,
        rows: rowsOf(reader, table).map((property) => numberOf.get(property) ?? DEAD_ROW),
        days: Uint32Array.from(planes, ({ day }) => day),
      })
      tableAddresses.push(table)
      addresses.push(Uint32Array.from(planes, ({ plane }) => plane))
    }
  }
  return { properties, tables, tableAddresses, addresses }
}

function rowsOf(reader: ImageReader, table: number): Uint32Array {
  const { image } = reader
  return readCells(reader, field(image, table + TABLE.rowProperties), field(image, table + TABLE.rowCount))
}

/** Planes that count, days ascending. Those of passed days that were not swept yet no longer count. */
function planesOf(reader: ImageReader, table: number): { day: number; plane: number }[] {
  const found: { day: number; plane: number }[] = []
  forEachSlot(reader.image, table, (slot, plane) => {
    const day = state(reader.image, STATE.slots + slot * SLOT.cells + SLOT.day)
    if (day !== 0 && readCells(reader, plane + PLANE.day, 1)[0] === day) found.push({ day, plane })
  })
  return found.sort((a, b) => a.day - b.day)
}

function collectProperties(image: Memory, names: CollectedNames, order: readonly number[]): PropertyColumns {
  const count = order.length
  const amenityStart = new Uint32Array(count + 1)
  const roomStart = new Uint32Array(count + 1)
  for (const [i, property] of order.entries()) {
    const amenities = field(image, property + PROPERTY.amenities)
    amenityStart[i + 1] = amenityStart[i] + (amenities === 0 ? 0 : field(image, amenities))
    roomStart[i + 1] = roomStart[i] + roomCount(image, property)
  }
  const columns: PropertyColumns = {
    count,
    ids: new Uint8Array(count * 16),
    segment: new Uint32Array(count),
    area: new Uint32Array(count),
    type: new Uint32Array(count),
    category: new Uint32Array(count),
    stars: new Uint8Array(count),
    latitude: new Float64Array(count),
    longitude: new Float64Array(count),
    amenityStart,
    amenities: new Uint32Array(amenityStart[count]),
    roomStart,
    rooms: new Uint32Array(roomStart[count]),
  }
  for (const [i, property] of order.entries()) fillProperty(image, names, columns, i, property)
  return columns
}

function fillProperty(
  image: Memory,
  names: CollectedNames,
  columns: PropertyColumns,
  i: number,
  property: number,
): void {
  columns.ids.set(image.u8.subarray(property + PROPERTY.id, property + PROPERTY.id + 16), i * 16)
  columns.segment[i] = names.placeOf(NAMES.segment, field(image, property + PROPERTY.segment))
  columns.area[i] = names.placeOf(NAMES.area, field(image, property + PROPERTY.area))
  columns.type[i] = names.placeOf(NAMES.type, field(image, property + PROPERTY.type))
  columns.category[i] = names.placeOf(NAMES.category, field(image, property + PROPERTY.category))
  columns.stars[i] = field(image, property + PROPERTY.stars)
  columns.latitude[i] = image.f64[(property + PROPERTY.latitude) / 8]
  columns.longitude[i] = image.f64[(property + PROPERTY.longitude) / 8]
  const amenities = field(image, property + PROPERTY.amenities)
  const first = columns.amenityStart[i]
  const held = columns.amenityStart[i + 1] - first
  // By list index, not by this node's numbers: equal on all replicas.
  const places = Array.from({ length: held }, (_, n) =>
    names.placeOf(NAMES.amenity, field(image, amenities + (n + 1) * 4)),
  )
  columns.amenities.set(
    places.sort((a, b) => a - b),
    first,
  )
  const rooms = roomCount(image, property)
  for (let n = 0; n < rooms; n++) {
    const roomType = field(image, roomEntry(image, property, n) + ROOMS.roomType)
    columns.rooms[columns.roomStart[i] + n] = names.placeOf(NAMES.roomType, roomType)
  }
}
