/** A generated state in shared memory as the source of a snapshot, and empty planes to decode a snapshot into. */

import { createCodecList, PROPERTY_ID_BYTES, packPropertyId } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import {
  DEAD_ROW,
  firstPlanes,
  type Names,
  type PlaneMap,
  type PropertyColumns,
  type SnapshotSource,
  sharedU32,
  type TableShape,
} from '../snapshot/schema.ts'
import { WORDS_SCRATCH_BYTES } from '../snapshot/words.ts'

export type SourceOptions = {
  seed?: number
  segments?: number
  propertiesPerSegment?: number
  roomTypes?: number
  nights?: number
  /**
   * `constant`: nights of a row are equal; `random`: each night draws one of 20 availabilities and 128 prices
   * (docs/design/storage.md#snapshot-format).
   */
  values?: 'constant' | 'random'
  /** Percentage of absent words, and of dead rows. */
  absent?: number
  dead?: number
  index?: number
  term?: number
  /** Number of threads with scratch memory. */
  threads?: number
}

/** Planes of tables in shared memory: each after a header of 16 bytes and before one bit per row. */
export type LaidPlanes = {
  readonly memory: WebAssembly.Memory
  readonly u32: Uint32Array
  readonly planeMap: PlaneMap
  readonly scratch: readonly number[]
}

const HEADER_BYTES = 16
export const FIRST_DAY = 20_454 // 2026-01-01

export function layPlanes(tables: readonly TableShape[], threads = 1): LaidPlanes {
  const first = firstPlanes(tables)
  const words = sharedU32(first[tables.length])
  const availableOffset = sharedU32(tables.length)
  let at = 65_536
  const scratch = Array.from({ length: threads }, () => {
    const start = at
    at += Math.ceil(WORDS_SCRATCH_BYTES / 64) * 64
    return start
  })
  tables.forEach(({ rows, days }, table) => {
    availableOffset[table] = rows.length * 8
    for (let night = 0; night < days.length; night++) {
      words[first[table] + night] = at + HEADER_BYTES
      at += Math.ceil((HEADER_BYTES + rows.length * 8 + rows.length / 8 + 8) / 16) * 16
    }
  })
  const pages = Math.ceil(at / 65_536)
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true })
  const planeMap = { words, availableOffset, statsBefore: 12 }
  return { memory, u32: new Uint32Array(memory.buffer), planeMap, scratch }
}

export type TestSource = SnapshotSource & { readonly planes: LaidPlanes }

export function createTestSource(options: SourceOptions = {}): TestSource {
  const { seed = 1, segments = 2, propertiesPerSegment = 5, roomTypes = 2, nights = 4, index = 1, term = 1 } = options
  const random = createRandom(seed)
  const names: Names = {
    segments: named('segment', segments),
    areas: named('area', 40),
    types: named('type', 6),
    categories: named('category', 8),
    roomTypes: named('room', roomTypes),
    amenities: named('amenity', 20),
  }
  const properties = createProperties(random, segments, propertiesPerSegment, roomTypes)
  const days = Uint32Array.from({ length: nights }, (_, night) => FIRST_DAY + night)
  const tables: TableShape[] = []
  for (let segment = 0; segment < segments; segment++) {
    for (let roomType = 0; roomType < roomTypes; roomType++) {
      const rows = Uint32Array.from({ length: propertiesPerSegment }, (_, row) => {
        const isDead = options.dead !== undefined && random.below(100) < options.dead
        return isDead ? DEAD_ROW : segment * propertiesPerSegment + row
      })
      tables.push({ segment, roomType, rows, days })
    }
  }
  const planes = layPlanes(tables, options.threads)
  const first = firstPlanes(tables)
  tables.forEach((shape, table) => {
    fillTable(planes, planes.planeMap.words.subarray(first[table], first[table + 1]), shape, random, options)
  })
  const codecs = createCodecList(['breakfast', 'refundable', 'half_board'])
  return {
    shardId: 's1',
    codecs,
    index,
    term,
    configuration: { voters: [], learners: [] },
    lastMaintenanceDay: FIRST_DAY,
    digestWithoutPackages: { lo: 17, hi: 4_000_000_000 },
    names,
    properties,
    tables,
    sessionCount: 2,
    stays: new Uint8Array(0),
    sessions: new TextEncoder().encode('two sessions'),
    settings: Uint8Array.of(1, 2, 3, 4),
    replicated: new Uint8Array(0),
    memory: planes.memory,
    words(table, rowStart, _rows, addresses) {
      const start = first[table]
      for (let night = 0; night < nights; night++) {
        addresses[night] = planes.planeMap.words[start + night] + rowStart * 8
      }
      return true
    },
    planes,
  }
}

function named(kind: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${kind}-${String(i).padStart(4, '0')}`)
}

function createProperties(random: Random, segments: number, each: number, roomTypes: number): PropertyColumns {
  const count = segments * each
  const amenityStart = new Uint32Array(count + 1)
  const amenities: number[] = []
  const columns = {
    count,
    ids: new Uint8Array(count * PROPERTY_ID_BYTES),
    segment: Uint32Array.from({ length: count }, (_, i) => Math.floor(i / each)),
    area: Uint32Array.from({ length: count }, () => random.below(40)),
    type: Uint32Array.from({ length: count }, (_, i) => Math.floor(((i % each) * 6) / each)),
    category: Uint32Array.from({ length: count }, () => random.below(8)),
    stars: Uint8Array.from({ length: count }, () => 1 + random.below(5)),
    latitude: Float64Array.from({ length: count }, () => (48_000_000 + random.below(400_000)) / 1e6),
    longitude: Float64Array.from({ length: count }, () => (2_000_000 - random.below(4_000_000)) / 1e6),
    amenityStart,
    roomStart: Uint32Array.from({ length: count + 1 }, (_, i) => i * roomTypes),
    rooms: Uint32Array.from({ length: count * roomTypes }, (_, i) => i % roomTypes),
  }
  for (let i = 0; i < count; i++) {
    columns.ids.set(packPropertyId(`P${String(i * 7919).padStart(9, '0')}`) as Uint8Array, i * PROPERTY_ID_BYTES)
    for (let amenity = 0; amenity < 20; amenity++) if (random.below(5) === 0) amenities.push(amenity)
    amenityStart[i + 1] = amenities.length
  }
  return { ...columns, amenities: Uint32Array.from(amenities) }
}

function fillTable(
  { u32 }: LaidPlanes,
  planes: Uint32Array,
  { rows }: TableShape,
  random: Random,
  { values = 'random', absent = 0 }: SourceOptions,
): void {
  for (let row = 0; row < rows.length; row++) {
    if (rows[row] === DEAD_ROW) continue
    const features = random.below(256) << 8
    const base = 50 + random.below(250)
    let word = { low: random.below(20) | features, high: ~(base + random.below(128)) }
    for (const plane of planes) {
      if (values === 'random') word = { low: random.below(20) | features, high: ~(base + random.below(128)) }
      const isAbsent = absent > 0 && random.below(100) < absent
      const cell = plane / 4 + row * 2
      u32[cell] = isAbsent ? 0 : word.low
      u32[cell + 1] = isAbsent ? 0 : word.high
    }
  }
}

/** All words of all planes, for comparison. */
export function wordsOf({ u32, planeMap }: LaidPlanes, tables: readonly TableShape[]): Uint32Array[] {
  const first = firstPlanes(tables)
  return tables.flatMap(({ rows, days }, table) =>
    Array.from({ length: days.length }, (_, night) => {
      const cell = planeMap.words[first[table] + night] / 4
      return u32.slice(cell, cell + rows.length * 2)
    }),
  )
}
