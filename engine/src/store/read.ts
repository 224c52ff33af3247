/**
 * The cheap reads: exists, lists, one night, segments (wire-protocol.md §9.1–9.2, §9.8). Each returns what it saw, or
 * `undefined` when the table kept changing while it looked; dates outside the visible window are checked by the caller.
 */

import { lastVisibleDay } from '@vacancy/shared'
import { compareBytes, findName, NAMES, nameBytes, nameText } from './dictionary.ts'
import { PLANE, PROPERTY, ROOMS, SEGMENT, STATE } from './layout.ts'
import { findProperty, findRoom, forEachTable, roomCount, roomEntry, segmentNames, segmentOf } from './segment.ts'
import { type Memory, state } from './store.ts'
import { field, forEachPlane, forEachSlot, planeOf, propertyOfRow, rowCountOf, wordAddress } from './table.ts'
import { enter, isUnchanged, leave, READ_TRIES_MAX, versionOf } from './version.ts'

const PAUSE_MS = 0.05

export type ReadView = { readonly memory: Memory; readonly reader: number }

/** Runs a read inside the reader's epoch. */
function inEpoch<T>(view: ReadView, read: () => T): T {
  enter(view.memory, view.reader)
  try {
    return read()
  } finally {
    leave(view.memory, view.reader)
  }
}

/** Repeats a read until the table did not change underneath. */
function steadily<T>(view: ReadView, table: number, read: () => T): T | undefined {
  for (let tries = 0; tries < READ_TRIES_MAX; tries++) {
    const version = versionOf(view.memory, table)
    if (version >= 0) {
      const result = read()
      if (isUnchanged(view.memory, table, version)) return result
    }
    Atomics.wait(view.memory.fence, 0, 0, PAUSE_MS)
  }
  return undefined
}

export function propertyExists(view: ReadView, id: Uint8Array): boolean {
  return inEpoch(view, () => findProperty(view.memory, id, 0) !== 0)
}

export function roomExists(view: ReadView, id: Uint8Array, roomType: number): boolean {
  return inEpoch(view, () => {
    const property = findProperty(view.memory, id, 0)
    return property !== 0 && findRoom(view.memory, property, roomType) !== 0
  })
}

/** Room types of a property, ascending by bytes; undefined when there is no such property. */
export function roomTypesOf(view: ReadView, id: Uint8Array): Uint8Array[] | undefined {
  const { memory } = view
  return inEpoch(view, () => {
    const property = findProperty(memory, id, 0)
    if (property === 0) return undefined
    const names: Uint8Array[] = []
    const count = roomCount(memory, property)
    for (let n = 0; n < count; n++) {
      names.push(
        nameBytes(memory, NAMES.roomType, field(memory, roomEntry(memory, property, n) + ROOMS.roomType)).slice(),
      )
    }
    return names.sort(compareBytes)
  })
}

export type Missing = 'property' | 'room-type' | 'package'
export type Changing = 'changing'

/** Days with a package from `today` on, ascending. */
export function daysOfRoom(
  view: ReadView,
  id: Uint8Array,
  roomType: number,
  today: number,
): number[] | Missing | Changing {
  const { memory } = view
  return inEpoch(view, () => {
    const property = findProperty(memory, id, 0)
    if (property === 0) return 'property'
    const entry = findRoom(memory, property, roomType)
    if (entry === 0) return 'room-type'
    const table = field(memory, entry + ROOMS.table)
    const days = steadily(view, table, () => readDays(memory, table, rowOf(memory, entry, table, property), today))
    return days ?? 'changing'
  })
}

/** The row of a room entry, -1 when it was given up meanwhile. */
function rowOf(memory: Memory, entry: number, table: number, property: number): number {
  const row = field(memory, entry + ROOMS.row)
  return row < rowCountOf(memory, table) && propertyOfRow(memory, table, row) === property ? row : -1
}

function readDays(memory: Memory, table: number, row: number, today: number): number[] {
  const days: number[] = []
  if (row < 0) return days
  const from = Math.max(today, state(memory, STATE.droppedBefore))
  const last = lastVisibleDay(today)
  forEachPlane(memory, table, from, (plane, day) => {
    const cell = wordAddress(plane, row) >>> 2
    if (day <= last && ((memory.u32[cell] as number) | (memory.u32[cell + 1] as number)) !== 0) days.push(day)
  })
  return days
}

export type Night = { readonly availability: number; readonly price: number; readonly features: number }

/** One package. */
export function readNight(view: ReadView, id: Uint8Array, roomType: number, day: number): Night | Missing | Changing {
  const { memory } = view
  return inEpoch(view, () => {
    const property = findProperty(memory, id, 0)
    if (property === 0) return 'property'
    const entry = findRoom(memory, property, roomType)
    if (entry === 0) return 'room-type'
    if (day < state(memory, STATE.droppedBefore)) return 'package'
    const table = field(memory, entry + ROOMS.table)
    const word = steadily(view, table, () => {
      const row = rowOf(memory, entry, table, property)
      const plane = row < 0 ? 0 : planeOf(memory, table, day)
      // One 64-bit load: a word that is being changed is seen as it was or as it is.
      return plane === 0 ? 0n : Atomics.load(wordsOf(memory), wordAddress(plane, row) / 8)
    })
    if (word === undefined) return 'changing'
    if (word === 0n) return 'package'
    const lo = Number(word & 0xffffffffn)
    const hi = Number(word >> 32n)
    return { availability: lo & 0xff, price: ~hi >>> 0, features: lo >>> 8 }
  })
}

const words = new WeakMap<SharedArrayBuffer, BigUint64Array>()

function wordsOf(memory: Memory): BigUint64Array {
  let view = words.get(memory.buffer)
  if (!view) {
    view = new BigUint64Array(memory.buffer)
    words.set(memory.buffer, view)
  }
  return view
}

export type SegmentCount = {
  readonly name: string
  readonly bytes: Uint8Array
  readonly properties: number
  readonly packages: number
}

/** Segments that have a property, ascending by the bytes of their names. */
export function segmentCounts(view: ReadView): SegmentCount[] {
  const { memory } = view
  return inEpoch(view, () =>
    segmentNames(memory).flatMap((name) => {
      const segment = segmentOf(memory, name)
      if (segment === 0) return []
      return {
        name: nameText(memory, NAMES.segment, name),
        bytes: nameBytes(memory, NAMES.segment, name).slice(),
        properties: field(memory, segment + SEGMENT.properties),
        packages: field(memory, segment + SEGMENT.packages),
      }
    }),
  )
}

/** Packages of a segment, by the numbers of their days. */
export type SegmentCoverage = {
  readonly name: string
  readonly properties: number
  readonly days: ReadonlyMap<number, number>
}

/**
 * Packages by segment and day, of segments whose names come behind `after`, by name. Each table's counters are read while
 * it may be changed: what is told is what was there at some moment of the reading.
 */
export function segmentCoverage(
  view: ReadView,
  after: string,
  limit: number,
): { readonly segments: SegmentCoverage[]; readonly more: boolean } {
  const { memory } = view
  const rest = segmentCounts(view).filter(({ name }) => name > after)
  rest.sort((a, b) => (a.name < b.name ? -1 : 1))
  const encoder = new TextEncoder()
  const segments = rest.slice(0, limit).map(({ name, properties }) =>
    inEpoch(view, () => {
      const bytes = encoder.encode(name)
      const segment = segmentOf(memory, findName(memory, NAMES.segment, bytes, 0, bytes.length))
      const days = new Map<number, number>()
      if (segment === 0) return { name, properties: 0, days }
      const from = state(memory, STATE.droppedBefore)
      forEachTable(memory, segment, (table) => {
        forEachSlot(memory, table, (_slot, plane) => {
          const day = field(memory, plane + PLANE.day)
          const packages = field(memory, plane + PLANE.packages)
          if (day >= from && packages > 0) days.set(day, (days.get(day) ?? 0) + packages)
        })
      })
      return { name, properties, days }
    }),
  )
  return { segments, more: rest.length > limit }
}

export type PropertyDetails = {
  readonly segment: string
  readonly area: string
  readonly type: string
  readonly category: string
  readonly stars: number
  readonly latitude: number
  readonly longitude: number
  readonly amenities: string[]
  readonly roomTypes: string[]
}

/** All attributes of a property, for consoles and tools; undefined when there is none. */
export function propertyDetails(view: ReadView, id: Uint8Array): PropertyDetails | undefined | Changing {
  const { memory } = view
  return inEpoch(view, () => {
    const property = findProperty(memory, id, 0)
    if (property === 0) return undefined
    const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
    if (segment === 0) return undefined
    const table = field(memory, segment + SEGMENT.propertyTable)
    return steadily(view, table, () => readDetails(memory, property)) ?? 'changing'
  })
}

function readDetails(memory: Memory, property: number): PropertyDetails {
  const { f64 } = memory
  const amenities = field(memory, property + PROPERTY.amenities)
  const names: string[] = []
  const held = amenities === 0 ? 0 : field(memory, amenities)
  for (let i = 1; i <= held; i++) names.push(nameText(memory, NAMES.amenity, field(memory, amenities + i * 4)))
  const rooms = Array.from({ length: roomCount(memory, property) }, (_, n) =>
    nameText(memory, NAMES.roomType, field(memory, roomEntry(memory, property, n) + ROOMS.roomType)),
  )
  return {
    segment: nameText(memory, NAMES.segment, field(memory, property + PROPERTY.segment)),
    area: nameText(memory, NAMES.area, field(memory, property + PROPERTY.area)),
    type: nameText(memory, NAMES.type, field(memory, property + PROPERTY.type)),
    category: nameText(memory, NAMES.category, field(memory, property + PROPERTY.category)),
    stars: field(memory, property + PROPERTY.stars),
    latitude: f64[(property + PROPERTY.latitude) / 8] as number,
    longitude: f64[(property + PROPERTY.longitude) / 8] as number,
    amenities: names.sort(),
    roomTypes: rooms.sort(),
  }
}
