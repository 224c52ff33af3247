/**
 * Loads a snapshot into an empty store: names, properties, rows and planes here. Several threads decode the words
 * into the planes, which are then counted.
 */

import { assert } from '@vacancy/shared'
import { propertyCharge } from '../store/charge.ts'
import { endIndexes } from '../store/client-index.ts'
import { dayAt } from '../store/day.ts'
import { internText, NAMES, type NameKind } from '../store/dictionary.ts'
import { DAY_SLOTS, PLANE, PROPERTY_TABLE, REPLICATED_CELLS, ROOMS, SEGMENT, STATE, TABLE } from '../store/layout.ts'
import { adoptPlane, createPlane } from '../store/planes.ts'
import { reserveProperties } from '../store/property-index.ts'
import {
  addPropertyBytes,
  admitLoaded,
  createPropertyRecord,
  ensureSegment,
  ensureTable,
  findRoom,
  reserveRooms,
} from '../store/segment.ts'
import { decodeSessions, encodeSessions, removeSessions } from '../store/sessions.ts'
import { featureLevel, latestTime, type Store, setState, state, stateDigest } from '../store/store.ts'
import { createTable, fillRows } from '../store/table.ts'
import { field, setField } from '../store/table-fields.ts'
import { dropBefore, dropFrom, GAP_REASON, sweepOne } from '../store/window.ts'
import { encodeReplicated, encodeSettings, SETTINGS_BYTES } from './capture.ts'
import type { Digest } from './format.ts'
import { decodeLedger, dissolveLedger, encodeLedger, holdInData, type LoadedLedger, restoreLedger } from './ledger.ts'
import {
  DEAD_ROW,
  firstPlanes,
  type Names,
  type PlaneMap,
  type PropertyColumns,
  sharedU32,
  type TableShape,
} from './schema.ts'

/** Bytes from a plane's words back to its cells packages, digest low, digest high. */
const STATS_BEFORE_WORDS = PLANE.words - PLANE.packages

export type Prepared = {
  readonly planeMap: PlaneMap
  readonly tables: readonly number[]
  readonly shapes: readonly TableShape[]
}

/** Builds everything but words. The store must be empty. */
export function prepareStore(
  store: Store,
  names: Names,
  columns: PropertyColumns,
  shapes: readonly TableShape[],
): Prepared {
  assert(state(store.memory, STATE.propertyCount) === 0, 'a snapshot is loaded into an empty store')
  const numbers = internNames(store, names)
  const properties = createProperties(store, columns, numbers)
  fillSegments(store, columns, numbers, properties)
  const first = firstPlanes(shapes)
  const planeMap: PlaneMap = {
    words: sharedU32(first[shapes.length]),
    availableOffset: sharedU32(shapes.length),
    statsBefore: STATS_BEFORE_WORDS,
  }
  const tables: number[] = []
  for (const [n, shape] of shapes.entries()) {
    const table = createLoadedTable(store, shape, numbers, properties)
    tables.push(table)
    planeMap.availableOffset[n] = field(store.memory, table + TABLE.capacity) * 8
    for (const [night, day] of shape.days.entries()) {
      planeMap.words[first[n] + night] = createPlane(store, table, day) + PLANE.words
    }
  }
  return { planeMap, tables, shapes }
}

type Numbers = { readonly [list in keyof Names]: readonly number[] }

function internNames(store: Store, names: Names): Numbers {
  const intern = (kind: NameKind, list: readonly string[]) => list.map((name) => internText(store, kind, name))
  return {
    segments: intern(NAMES.segment, names.segments),
    areas: intern(NAMES.area, names.areas),
    types: intern(NAMES.type, names.types),
    categories: intern(NAMES.category, names.categories),
    roomTypes: intern(NAMES.roomType, names.roomTypes),
    amenities: intern(NAMES.amenity, names.amenities),
  }
}

function createProperties(store: Store, columns: PropertyColumns, numbers: Numbers): Uint32Array {
  const properties = new Uint32Array(columns.count)
  reserveProperties(store, columns.count)
  for (let i = 0; i < columns.count; i++) {
    const amenities: number[] = []
    for (let at = columns.amenityStart[i]; at < columns.amenityStart[i + 1]; at++) {
      amenities.push(numbers.amenities[columns.amenities[at]])
    }
    const property = createPropertyRecord(store, columns.ids, i * 16, {
      segment: numbers.segments[columns.segment[i]],
      area: numbers.areas[columns.area[i]],
      type: numbers.types[columns.type[i]],
      category: numbers.categories[columns.category[i]],
      stars: columns.stars[i],
      latitude: columns.latitude[i],
      longitude: columns.longitude[i],
      amenities: amenities.sort((a, b) => a - b),
    })
    const rooms = columns.rooms.subarray(columns.roomStart[i], columns.roomStart[i + 1])
    reserveRooms(store, property, rooms, numbers.roomTypes)
    properties[i] = property
  }
  return properties
}

/** Properties are ordered by segment: each run becomes the rows of one property table. */
function fillSegments(store: Store, columns: PropertyColumns, numbers: Numbers, properties: Uint32Array): void {
  for (let start = 0; start < columns.count; ) {
    let end = start + 1
    while (end < columns.count && columns.segment[end] === columns.segment[start]) end++
    const name = numbers.segments[columns.segment[start]]
    const table = createTable(store, name, PROPERTY_TABLE, end - start)
    fillRows(store, table, properties.subarray(start, end))
    const segment = ensureSegment(store, name, table)
    setField(store, segment + SEGMENT.properties, end - start)
    store.writer.unsummed.push(name)
    let bytes = 0
    for (let i = start; i < end; i++) {
      admitLoaded(store, properties[i], i - start)
      const amenities = columns.amenityStart[i + 1] - columns.amenityStart[i]
      bytes += propertyCharge(amenities, columns.roomStart[i + 1] - columns.roomStart[i])
    }
    addPropertyBytes(store, segment, bytes)
    start = end
  }
}

function createLoadedTable(store: Store, shape: TableShape, numbers: Numbers, properties: Uint32Array): number {
  const { memory } = store
  const roomType = numbers.roomTypes[shape.roomType]
  const segment = ensureSegment(store, numbers.segments[shape.segment])
  const table = ensureTable(store, segment, roomType, shape.rows.length)
  const rows = new Uint32Array(shape.rows.length)
  for (let row = 0; row < rows.length; row++) {
    const number = shape.rows[row]
    if (number === DEAD_ROW) continue
    const property = properties[number]
    rows[row] = property
    const entry = findRoom(memory, property, roomType)
    assert(entry !== 0, 'a row belongs to a room of its property')
    memory.u32[(entry + ROOMS.table) >>> 2] = table
    memory.u32[(entry + ROOMS.row) >>> 2] = row
  }
  fillRows(store, table, rows, shape.days.length)
  return table
}

/** Counts the decoded planes, restores sessions and settings. */
export function finishStore(
  store: Store,
  prepared: Prepared,
  rest: {
    readonly sessions: Uint8Array
    readonly settings: Uint8Array
    readonly replicated: Uint8Array
    readonly stays: LoadedLedger
    readonly lastMaintenanceDay: number
    readonly digest: Digest
  },
): void {
  const { memory } = store
  const first = firstPlanes(prepared.shapes)
  for (const [n, table] of prepared.tables.entries()) {
    let packages = 0
    for (let plane = first[n]; plane < first[n + 1]; plane++) {
      packages += adoptPlane(store, table, prepared.planeMap.words[plane] - PLANE.words)
    }
    const segment = ensureSegment(store, field(memory, table + TABLE.segment))
    setField(store, segment + SEGMENT.packages, field(memory, segment + SEGMENT.packages) + packages)
  }
  setState(store, STATE.lastMaintenanceDay, rest.lastMaintenanceDay)
  setState(store, STATE.droppedBefore, rest.lastMaintenanceDay)
  if (rest.settings.length === SETTINGS_BYTES) restoreSettings(store, rest.settings)
  restoreReplicated(store, rest.replicated)
  decodeSessions(store, rest.sessions)
  restoreLedger(store, rest.stays)
  // The digest of the manifest covers what is expensive to hash again: chunks were verified byte for byte.
  setState(store, STATE.digestLow, 0)
  setState(store, STATE.digestHigh, 0)
  const others = stateDigest(memory)
  setState(store, STATE.digestLow, rest.digest.lo - others.lo)
  setState(store, STATE.digestHigh, rest.digest.hi - others.hi)
}

/**
 * A shard that starts from a snapshot is a new one: the random bits that identify it are drawn again and come with
 * its log (docs/design/consensus.md#formation). Otherwise two shards restored from one file would have the same
 * identity. So are its indexes.
 */
export function forgetGenesis(store: Store): void {
  for (let cell = 0; cell < 4; cell++) setState(store, STATE.genesis + cell, 0)
  endIndexes(store)
}

/** State that a bulk load keeps (docs/design/consensus.md#log-commands). */
export type KeptState = {
  readonly sessions: Uint8Array
  readonly settings: Uint8Array
  readonly replicated: Uint8Array
  readonly stays: Uint8Array
  readonly lastMaintenanceDay: number
}

export function keptStateOf({ memory }: Store): KeptState {
  return {
    sessions: encodeSessions(memory),
    settings: encodeSettings(memory),
    replicated: encodeReplicated(memory),
    stays: encodeLedger(memory),
    lastMaintenanceDay: state(memory, STATE.lastMaintenanceDay),
  }
}

/**
 * Restores the state that a bulk load keeps into a store that was loaded with the whole snapshot. Depends only on
 * both states, so the result is equal on all replicas.
 */
export function putBackState(store: Store, kept: KeptState): void {
  const { memory } = store
  removeSessions(store)
  dissolveLedger(store)
  if (kept.settings.length === SETTINGS_BYTES) restoreSettings(store, kept.settings)
  restoreReplicated(store, kept.replicated)
  decodeSessions(store, kept.sessions)
  restoreLedger(store, decodeLedger(kept.stays, 'memory'))
  const loaded = state(memory, STATE.lastMaintenanceDay)
  if (kept.lastMaintenanceDay > loaded) {
    // Days that were dropped here must not reappear from the snapshot (docs/design/consensus.md#invariants).
    dropBefore(store, kept.lastMaintenanceDay, GAP_REASON.operator)
    while (sweepOne(store));
  }
  setState(store, STATE.lastMaintenanceDay, kept.lastMaintenanceDay)
  setState(store, STATE.droppedBefore, Math.max(loaded, kept.lastMaintenanceDay))
  // A snapshot from a machine whose clock was ahead: its nights would collide with present ones.
  if (featureLevel(memory) >= 1) dropFrom(store, dayAt(memory, latestTime(memory)) + DAY_SLOTS)
  holdInData(store)
}

function restoreReplicated(store: Store, replicated: Uint8Array): void {
  const view = new DataView(replicated.buffer, replicated.byteOffset, replicated.byteLength)
  for (let cell = 0; cell < REPLICATED_CELLS; cell++) {
    const isThere = cell * 4 < replicated.length
    setState(store, STATE.replicated + cell, isThere ? view.getUint32(cell * 4, true) : 0)
  }
  const droppedAt = REPLICATED_CELLS * 4
  if (droppedAt < replicated.length) setState(store, STATE.droppedBefore, view.getUint32(droppedAt, true))
}

function restoreSettings(store: Store, settings: Uint8Array): void {
  const view = new DataView(settings.buffer, settings.byteOffset, settings.byteLength)
  setState(store, STATE.sessionBytesMax, view.getUint32(0, true))
  setState(store, STATE.featureLevel, view.getUint32(4, true))
  setState(store, STATE.timeLow, view.getUint32(24, true))
  setState(store, STATE.timeHigh, view.getUint32(28, true))
  for (let cell = 0; cell < 4; cell++) setState(store, STATE.genesis + cell, view.getUint32(8 + cell * 4, true))
}
