/**
 * Generated data of many properties without files, for benchmarks and size tests: the output of a builder, from a seed.
 * Words are filled in by `fillWords`.
 */

import { createCodecList } from '@vacancy/shared'
import { seeded } from '@vacancy/testkit/random'
import { decodeLedger } from '../snapshot/ledger.ts'
import { finishStore, type Prepared, prepareStore } from '../snapshot/restore.ts'
import type { Names, PropertyColumns, TableShape } from '../snapshot/schema.ts'
import { PLANE, TABLE } from '../store/layout.ts'
import type { PutWord } from '../store/planes.ts'
import type { Store } from '../store/store.ts'
import { field } from '../store/table-fields.ts'

export const SYNTHETIC_CODECS = createCodecList([
  'free_cancellation',
  'non_refundable',
  'pay_at_property',
  'includes_breakfast',
  'free_wifi',
  'no_prepayment',
])

export type SyntheticOptions = {
  readonly segments: number
  readonly propertiesPerSegment: number
  readonly roomTypes: number
  readonly nights: number
  readonly firstDay: number
  /** Properties sorted by their attributes, like a builder's; otherwise in random order. */
  readonly ordered: boolean
  readonly seed: number
  /** Separate room types per segment: no room type is in two segments. */
  readonly ownRoomTypes?: boolean
}

const TYPES = ['apartment', 'guesthouse', 'hostel', 'hotel', 'motel', 'resort', 'villa']
const CATEGORIES = ['budget', 'luxury', 'premium', 'standard']
const AMENITIES = ['bar', 'gym', 'parking', 'pets', 'pool', 'restaurant', 'spa', 'wifi']

export function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${String(i).padStart(5, '0')}`)
}

/** Fills an empty store. */
export function fillSynthetic(store: Store, put: PutWord, options: SyntheticOptions): Prepared {
  const random = seeded(options.seed)
  const below = (n: number) => Math.floor(random() * n)
  const count = options.segments * options.propertiesPerSegment
  const names: Names = {
    segments: numbered('segment_', options.segments),
    areas: numbered('area_', 20),
    types: TYPES,
    categories: CATEGORIES,
    roomTypes: numbered('room_', options.roomTypes * (options.ownRoomTypes ? options.segments : 1)),
    amenities: AMENITIES,
  }
  const columns = syntheticColumns(options, names, count, below)
  const shapes = syntheticTables(options)
  const prepared = prepareStore(store, names, columns, shapes)
  fillWords(store, put, prepared, below)
  finishStore(store, prepared, {
    stays: decodeLedger(new Uint8Array(0), ''),
    sessions: new Uint8Array(0),
    settings: new Uint8Array(0),
    replicated: new Uint8Array(0),
    lastMaintenanceDay: 0,
    digest: { lo: 0, hi: 0 },
  })
  return prepared
}

function syntheticColumns(
  options: SyntheticOptions,
  names: Names,
  count: number,
  below: (n: number) => number,
): PropertyColumns {
  const keys = Array.from({ length: options.propertiesPerSegment }, () => ({
    type: below(TYPES.length),
    category: below(CATEGORIES.length),
    stars: 1 + below(5),
    area: below(names.areas.length),
  }))
  if (options.ordered) {
    keys.sort((a, b) => a.type - b.type || a.category - b.category || a.stars - b.stars || a.area - b.area)
  }
  const { propertiesPerSegment, roomTypes, ownRoomTypes } = options
  const keyOf = (i: number) => keys[i % propertiesPerSegment] as (typeof keys)[0]
  const segmentOf = (i: number) => Math.floor(i / propertiesPerSegment)
  const cells = (length: number, cell: (i: number) => number) => Uint32Array.from({ length }, (_, i) => cell(i))
  const degrees = (from: number) => Float64Array.from({ length: count }, () => from + below(1_000_000) / 1e6)
  const ids = new DataView(new ArrayBuffer(count * 16))
  for (let i = 0; i < count; i++) {
    ids.setUint32(i * 16, i, false)
    ids.setUint8(i * 16 + 6, 0x47)
  }
  return {
    count,
    ids: new Uint8Array(ids.buffer),
    segment: cells(count, segmentOf),
    area: cells(count, (i) => keyOf(i).area),
    type: cells(count, (i) => keyOf(i).type),
    category: cells(count, (i) => keyOf(i).category),
    stars: Uint8Array.from({ length: count }, (_, i) => keyOf(i).stars),
    latitude: degrees(40),
    longitude: degrees(10),
    amenityStart: cells(count + 1, (i) => i * 4),
    amenities: cells(count * 4, (i) => (i % 4) * 2 + below(2)),
    roomStart: cells(count + 1, (i) => i * roomTypes),
    rooms: cells(
      count * roomTypes,
      (i) => (i % roomTypes) + (ownRoomTypes ? segmentOf(Math.floor(i / roomTypes)) * roomTypes : 0),
    ),
  }
}

function syntheticTables(options: SyntheticOptions): TableShape[] {
  const shapes: TableShape[] = []
  const days = Uint32Array.from({ length: options.nights }, (_, i) => options.firstDay + i)
  for (let segment = 0; segment < options.segments; segment++) {
    for (let room = 0; room < options.roomTypes; room++) {
      const first = segment * options.propertiesPerSegment
      const rows = Uint32Array.from({ length: options.propertiesPerSegment }, (_, i) => first + i)
      shapes.push({ segment, roomType: room + (options.ownRoomTypes ? segment * options.roomTypes : 0), rows, days })
    }
  }
  return shapes
}

function fillWords(store: Store, put: PutWord, prepared: Prepared, below: (n: number) => number): void {
  const { memory } = store
  let plane = 0
  for (const [n, shape] of prepared.shapes.entries()) {
    const table = prepared.tables[n]
    const bits = field(memory, table + TABLE.capacity) * 8
    for (const day of shape.days) {
      const words = prepared.planeMap.words[plane++]
      for (let row = 0; row < shape.rows.length; row++) {
        const availability = below(10) === 0 ? 0 : 1 + below(12)
        const price = 40 + below(160)
        put(words + row * 8, ((below(64) << 8) | availability) >>> 0, ~price >>> 0)
        const cell = (words + bits + ((row >>> 5) << 2)) >>> 2
        if (availability > 0) memory.u32[cell] = memory.u32[cell] | (1 << (row & 31))
      }
      memory.u32[(words - PLANE.words + PLANE.packages) >>> 2] = shape.rows.length
      memory.u32[(words - PLANE.words + PLANE.day) >>> 2] = day
    }
  }
}
