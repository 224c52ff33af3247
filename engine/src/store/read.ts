/**
 * The cheap reads: exists, lists, one night, segments (docs/design/protocol.md#successes,
 * docs/design/protocol.md#commands-that-write). Each returns its result, or `undefined` when the table kept changing.
 * The caller checks that dates are visible.
 */

import { lastVisibleDay } from '@vacancy/shared'
import { compareBytes, findName, NAMES, nameBytes, nameText } from './dictionary.ts'
import { CONTROL, PLANE, PROPERTY, ROOMS, SEGMENT, STATE } from './layout.ts'
import { forEachPlane, forEachSlot, planeOf, wordAddress } from './planes.ts'
import { findProperty } from './property-index.ts'
import { findRoom, forEachTable, roomCount, roomEntry, segmentNames, segmentOf } from './segment.ts'
import { type Memory, state } from './store.ts'
import { field, propertyOfRow, rowCountOf } from './table-fields.ts'
import { enter, isUnchanged, leave, READ_TRIES_MAX, versionOf } from './version.ts'

const PAUSE_MS = 0.05

export type ReadView = {
  readonly memory: Memory
  readonly reader: number
  /** Tries for a table that keeps changing, with a short pause between them; READ_TRIES_MAX by default. */
  readonly tries?: number
}

/** Runs a read inside the reader's epoch. */
function inEpoch<T>(view: ReadView, read: () => T): T {
  enter(view.memory, view.reader)
  try {
    return read()
  } finally {
    leave(view.memory, view.reader)
  }
}

/** Nothing to find: the reply needs no table. */
type Nowhere<M> = { readonly missing: M }

/**
 * Repeats a read until its table was unchanged during it. The table is looked up again each time, because its subject
 * may have moved to another one.
 *
 * @param read undefined when the lookup was of an older state than the table
 */
function steadily<T, M>(
  view: ReadView,
  lookUp: () => number | Nowhere<M>,
  read: (table: number) => T | undefined,
): T | M | Changing {
  const { memory, tries = READ_TRIES_MAX } = view
  for (let n = 0; n < tries; n++) {
    if (n > 0) Atomics.wait(memory.fence, 0, 0, PAUSE_MS)
    const table = lookUp()
    if (typeof table === 'object') return table.missing
    const version = versionOf(memory, table)
    if (version < 0) continue
    const result = read(table)
    if (result !== undefined && isUnchanged(memory, table, version)) return result
  }
  return 'changing'
}

/** Reads the row that a room of a property has in its table. */
function inRow<T>(
  view: ReadView,
  id: Uint8Array,
  roomType: number,
  read: (table: number, row: number) => T,
): T | Missing | Changing {
  const { memory } = view
  let property = 0
  let entry = 0
  const lookUp = (): number | Nowhere<Missing> => {
    property = findProperty(memory, id, 0)
    if (property === 0) return { missing: 'property' }
    entry = findRoom(memory, property, roomType)
    return entry === 0 ? { missing: 'room-type' } : field(memory, entry + ROOMS.table)
  }
  return steadily(view, lookUp, (table) => {
    const row = rowOf(memory, entry, table, property)
    return row < 0 ? undefined : read(table, row)
  })
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

/** Room types of a property, in byte order; undefined when the property does not exist. */
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
  return inEpoch(view, () => inRow(view, id, roomType, (table, row) => readDays(memory, table, row, today)))
}

/** The row of a room entry, -1 when it was removed meanwhile. */
function rowOf(memory: Memory, entry: number, table: number, property: number): number {
  const row = field(memory, entry + ROOMS.row)
  return row < rowCountOf(memory, table) && propertyOfRow(memory, table, row) === property ? row : -1
}

function readDays(memory: Memory, table: number, row: number, today: number): number[] {
  const days: number[] = []
  const from = Math.max(today, state(memory, STATE.droppedBefore))
  const last = lastVisibleDay(today)
  forEachPlane(memory, table, from, (plane, day) => {
    const cell = wordAddress(plane, row) >>> 2
    if (day <= last && (memory.u32[cell] | memory.u32[cell + 1]) !== 0) days.push(day)
  })
  return days
}

export type Night = { readonly availability: number; readonly price: number; readonly features: number }

/** One package. */
export function readNight(view: ReadView, id: Uint8Array, roomType: number, day: number): Night | Missing | Changing {
  const { memory } = view
  return inEpoch(view, () => {
    const word = inRow(view, id, roomType, (table, row) => {
      const plane = day < state(memory, STATE.droppedBefore) ? 0 : planeOf(memory, table, day)
      // One 64-bit load: returns the old or the new value of a word being changed.
      return plane === 0 ? 0n : Atomics.load(wordsOf(memory), wordAddress(plane, row) / 8)
    })
    if (typeof word === 'string') return word
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

/** Segments that have a property, in the byte order of their names. */
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

/** A segment listing that is built in steps; each segment is read once. */
export type SegmentListing = {
  /** Number of the next name to examine. */
  next: number
  generation: number
  /** In the byte order of their names. */
  found: { readonly bytes: Uint8Array; readonly properties: number }[]
}

export function createSegmentListing({ memory }: ReadView): SegmentListing {
  return { next: 0, generation: Atomics.load(memory.i32, CONTROL.generation), found: [] }
}

/** Upper bound of the number of segments. */
export function segmentNameCount({ memory }: ReadView): number {
  return state(memory, STATE.segmentCapacity)
}

/** Examines so many more names. @returns whether all were examined */
export function continueListing(view: ReadView, listing: SegmentListing, names: number): boolean {
  const { memory } = view
  return inEpoch(view, () => {
    const generation = Atomics.load(memory.i32, CONTROL.generation)
    if (listing.generation !== generation) Object.assign(listing, { next: 0, generation, found: [] })
    const capacity = state(memory, STATE.segmentCapacity)
    const end = Math.min(capacity, listing.next + names)
    const run: SegmentListing['found'] = []
    for (let name = listing.next; name < end; name++) {
      const segment = segmentOf(memory, name)
      const properties = segment === 0 ? 0 : field(memory, segment + SEGMENT.properties)
      if (properties > 0) run.push({ bytes: nameBytes(memory, NAMES.segment, name).slice(), properties })
    }
    run.sort((a, b) => compareBytes(a.bytes, b.bytes))
    listing.found = merged(listing.found, run)
    listing.next = end
    return end === capacity
  })
}

/** Merges two ascending lists. Takes runs of the longer one, for few comparisons. */
function merged(long: SegmentListing['found'], run: SegmentListing['found']): SegmentListing['found'] {
  const all: SegmentListing['found'] = []
  let from = 0
  for (const entry of run) {
    let low = from
    let high = long.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareBytes((long[middle] as typeof entry).bytes, entry.bytes) < 0) low = middle + 1
      else high = middle
    }
    for (; from < low; from++) all.push(long[from] as typeof entry)
    all.push(entry)
  }
  for (; from < long.length; from++) all.push(long[from] as (typeof all)[0])
  return all
}

/** Packages of a segment, by the numbers of their days. */
export type SegmentCoverage = {
  readonly name: string
  readonly properties: number
  readonly days: ReadonlyMap<number, number>
}

/**
 * Packages by segment and day, of segments with names after `after`, by name. Each table's counters are read while it
 * may change. Each value was correct at some moment during the read.
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

/** All attributes of a property, for consoles and tools; undefined when it does not exist. */
export function propertyDetails(view: ReadView, id: Uint8Array): PropertyDetails | undefined | Changing {
  const { memory } = view
  return inEpoch(view, () => {
    let property = 0
    const lookUp = (): number | Nowhere<undefined> => {
      property = findProperty(memory, id, 0)
      if (property === 0) return { missing: undefined }
      const segment = segmentOf(memory, field(memory, property + PROPERTY.segment))
      return segment === 0 ? { missing: undefined } : field(memory, segment + SEGMENT.propertyTable)
    }
    return steadily(view, lookUp, () => readDetails(memory, property))
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
    latitude: f64[(property + PROPERTY.latitude) / 8],
    longitude: f64[(property + PROPERTY.longitude) / 8],
    amenities: names.sort(),
    roomTypes: rooms.sort(),
  }
}
