/** Segments, properties and their rooms against a model, with every count, digest, charge and byte of memory. */
import { formatDay, parseDay, unpackPropertyId } from '@vacancy/shared'
import { createRandom, pick, type Random } from '@vacancy/testkit/random'
import { describe, expect, test } from 'vitest'
import {
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  raiseFeatureLevel,
} from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import { keyOf } from './apply-context.ts'
import { propertyDigest } from './apply-properties.ts'
import { NAMES, nameText } from './dictionary.ts'
import { roomHash } from './digest.ts'
import { PLANE, PROPERTY, ROOMS, SEGMENT, STATE, TABLE } from './layout.ts'
import { forEachSlot, nightsOfRow, wordAddress } from './planes.ts'
import { findProperty } from './property-index.ts'
import { recountCharge } from './recount.ts'
import {
  findRoom,
  forEachProperty,
  forEachTable,
  freeDeleted,
  roomCount,
  roomEntry,
  segmentNames,
  segmentOf,
  tableOf,
  writeUnitVector,
} from './segment.ts'
import { countsOf, publish, state, stateDigest } from './store.ts'
import { field, propertyOfRow, rowCountOf } from './table-fields.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const TODAY = parseDay('2026-11-20') as number
const SEGMENTS = ['coast', 'alps', 'city', 'city west']
const ROOM_TYPES = Array.from({ length: 11 }, (_, n) => `room ${n}`)
const IDS = Array.from({ length: 14 }, (_, n) => `hotel-${n}`)
const AMENITIES = ['bar', 'pool', 'spa', 'sauna', 'lift']
const NIGHTS = 4

/** A word per night, and the room types in the order of their first package. */
type Property = { fields: LooseFields; rooms: Map<string, Map<number, string>> }
type Model = Map<string, Property>

function someProperty(random: Random, propertyId: string): LooseFields {
  const place = { segment: pick(random, SEGMENTS), area: pick(random, ['a', 'b']), propertyType: 'hotel' }
  return {
    ...{ ...place, propertyId, category: pick(random, ['low', 'high']), stars: 1 + random.below(5) },
    ...{ latitude: random.below(180) - 90, longitude: random.below(360) - 180 },
    amenities: AMENITIES.filter(() => random.below(2) === 0),
  }
}

/** One command, sent to the store and the model. */
function step(node: NodeInMemory, model: Model, random: Random): void {
  const propertyId = pick(random, IDS)
  const roomType = pick(random, ROOM_TYPES)
  const night = random.below(NIGHTS)
  const date = formatDay(TODAY + night)
  const known = model.get(propertyId)
  const send = (command: Parameters<typeof ask>[1], fields: LooseFields, isDone: boolean) =>
    expect(ask(node, command, fields).error, `VACANCY_SEED=${SEED}: ${command}`).toBe(isDone ? '' : 'NOT_FOUND')
  const roll = random.below(100)
  if (roll < 25) {
    const fields = someProperty(random, propertyId)
    send('SETPROP', fields, true)
    if (known) known.fields = fields
    else model.set(propertyId, { fields, rooms: new Map() })
  } else if (roll < 75) {
    const given = { availability: random.below(3), finalPrice: random.below(99), rateFeatures: [] }
    send('SETROOMPKG', { propertyId, roomType, date, ...given }, known !== undefined)
    if (!known) return
    const nights = known.rooms.get(roomType) ?? new Map<number, string>()
    known.rooms.set(roomType, nights.set(night, `${given.availability} ${given.finalPrice}`))
  } else if (roll < 82) send('DELPROPROOM', { propertyId, roomType }, known?.rooms.delete(roomType) === true)
  else if (roll < 86) {
    send('DELROOMDAY', { propertyId, roomType, date }, known?.rooms.get(roomType)?.delete(night) === true)
  } else if (roll < 90) {
    send('DELPROPDAY', { propertyId, date }, known !== undefined)
    for (const nights of known?.rooms.values() ?? []) nights.delete(night)
  } else if (roll < 97) send('DELPROP', { propertyId }, model.delete(propertyId))
  else {
    const segment = pick(random, SEGMENTS)
    const gone = [...model].filter(([, { fields }]) => fields['segment'] === segment)
    for (const [id] of gone) model.delete(id)
    send('DELSEGMENT', { segment }, gone.length > 0)
  }
}

/** The content of the store, in the form of the model. */
function contentOf({ store: { memory } }: NodeInMemory) {
  return segmentNames(memory).map((name) => {
    const segment = segmentOf(memory, name)
    const properties: object[] = []
    forEachProperty(memory, segment, (property, row) => {
      expect(field(memory, property + PROPERTY.row)).toBe(row)
      expect(findProperty(memory, memory.u8, property)).toBe(property)
      const rooms = Array.from({ length: roomCount(memory, property) }, (_, n) => {
        const entry = roomEntry(memory, property, n)
        const roomType = field(memory, entry + ROOMS.roomType)
        const [table, at] = [field(memory, entry + ROOMS.table), field(memory, entry + ROOMS.row)]
        expect(findRoom(memory, property, roomType)).toBe(entry)
        expect(tableOf(memory, segment, roomType)).toBe(table)
        expect(propertyOfRow(memory, table, at)).toBe(property)
        const nights = nightsOfRow(memory, table, at).map(
          ({ day, lo, hi }) => `${day - TODAY}: ${lo & 0xff} ${~hi >>> 0}`,
        )
        return [nameText(memory, NAMES.roomType, roomType), nights.sort()]
      })
      properties.push({ ...attributesOf(memory, property), rooms })
    })
    return { name: nameText(memory, NAMES.segment, name), properties: byId(properties) }
  })
}

const byId = (list: object[]) => list.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))

function attributesOf(memory: NodeInMemory['store']['memory'], property: number) {
  const name = (kind: (typeof NAMES)[keyof typeof NAMES], column: number) =>
    nameText(memory, kind, field(memory, property + column))
  const list = field(memory, property + PROPERTY.amenities)
  const amenities = Array.from({ length: list === 0 ? 0 : field(memory, list) }, (_, n) =>
    nameText(memory, NAMES.amenity, field(memory, list + 4 + n * 4)),
  )
  return {
    propertyId: unpackPropertyId(memory.u8, property + PROPERTY.id),
    segment: name(NAMES.segment, PROPERTY.segment),
    area: name(NAMES.area, PROPERTY.area),
    propertyType: name(NAMES.type, PROPERTY.type),
    category: name(NAMES.category, PROPERTY.category),
    stars: field(memory, property + PROPERTY.stars),
    latitude: memory.f64[(property + PROPERTY.latitude) / 8],
    longitude: memory.f64[(property + PROPERTY.longitude) / 8],
    amenities: amenities.sort(),
  }
}

function shown(model: Model) {
  const names = [...new Set([...model.values()].map(({ fields }) => String(fields['segment'])))]
  return names.sort().map((name) => ({
    name,
    properties: byId(
      [...model.values()]
        .filter(({ fields }) => fields['segment'] === name)
        .map(({ fields, rooms }) => {
          const { propertyId, segment, area, propertyType, category, stars, latitude, longitude } = fields
          return {
            ...{ propertyId, segment, area, propertyType, category, stars, latitude, longitude },
            amenities: [...(fields['amenities'] as string[])].sort(),
            rooms: [...rooms].map(([room, nights]) => [
              room,
              [...nights].map(([day, word]) => `${day}: ${word}`).sort(),
            ]),
          }
        }),
    ),
  }))
}

/** What each segment counts of its properties, tables and planes. */
function checkCounts({ store }: NodeInMemory, model: Model): void {
  const { memory } = store
  const counted = recountDigest(memory)
  expect(stateDigest(memory)).toEqual(counted.digest)
  expect(store.writer.charge.bytes).toBe(recountCharge(memory))
  expect(countsOf(memory)).toMatchObject({ properties: model.size, packages: counted.packages })
  for (const name of segmentNames(memory)) {
    const segment = segmentOf(memory, name)
    let [packages, tables, low, high, properties] = [0, 0, 0, 0, 0]
    forEachTable(memory, segment, (table, roomType) => {
      tables++
      expect(field(memory, table + TABLE.roomType)).toBe(roomType)
      expect(field(memory, table + TABLE.segment)).toBe(name)
      const words = checkPlanes(memory, table)
      expect(field(memory, table + TABLE.packages)).toBe(words)
      packages += words
    })
    forEachProperty(memory, segment, (property) => {
      properties++
      low += propertyDigest(memory, property, 0)
      high += propertyDigest(memory, property, 1)
      for (let n = 0; n < roomCount(memory, property); n++) {
        const roomType = field(memory, roomEntry(memory, property, n) + ROOMS.roomType)
        low += roomHash(0, keyOf(memory, property, roomType, 0))
        high += roomHash(1, keyOf(memory, property, roomType, 1))
      }
    })
    const held = (cell: number) => field(memory, segment + cell)
    expect(held(SEGMENT.name)).toBe(name)
    expect([held(SEGMENT.packages), held(SEGMENT.tableCount)]).toEqual([packages, tables])
    expect(held(SEGMENT.properties)).toBe(properties)
    expect([held(SEGMENT.digestLow), held(SEGMENT.digestHigh)]).toEqual([low % 2 ** 32, high % 2 ** 32])
  }
}

/** Every plane counts its words, and has a bit for each one with rooms left. @returns number of words */
function checkPlanes(memory: NodeInMemory['store']['memory'], table: number): number {
  const capacity = field(memory, table + TABLE.capacity)
  let packages = 0
  let live = 0
  for (let row = 0; row < rowCountOf(memory, table); row++) {
    const property = propertyOfRow(memory, table, row)
    if (property === 0) continue
    live++
    const id = field(memory, table + TABLE.rowIds) + row * 16
    expect(unpackPropertyId(memory.u8, id)).toBe(unpackPropertyId(memory.u8, property))
  }
  expect(field(memory, table + TABLE.liveRows)).toBe(live)
  forEachSlot(memory, table, (_slot, plane) => {
    let words = 0
    for (let row = 0; row < capacity; row++) {
      const cell = wordAddress(plane, row) >>> 2
      const [lo, hi] = [memory.u32[cell] as number, memory.u32[cell + 1] as number]
      if ((lo | hi) !== 0) words++
      if ((lo | hi) !== 0) expect(row < rowCountOf(memory, table) && propertyOfRow(memory, table, row) !== 0).toBe(true)
      const bits = field(memory, plane + PLANE.words + capacity * 8 + (row >>> 5) * 4)
      expect((bits >>> (row & 31)) & 1).toBe((lo & 0xff) === 0 ? 0 : 1)
    }
    expect(field(memory, plane + PLANE.packages)).toBe(words)
    packages += words
  })
  return packages
}

const usedBytes = ({ store: { writer } }: NodeInMemory) => [writer.records.usedBytes, writer.planes.usedBytes]

describe.each([0, 3])('any history of properties and rooms at feature level %i', (level) => {
  const node = createNodeInMemory(TODAY, 48 << 20)
  raiseFeatureLevel(node, level)
  const model: Model = new Map()

  function run(random: Random, steps: number): void {
    for (let n = 0; n < steps; n++) {
      step(node, model, random)
      if (n % 20 !== 19) continue
      expect(contentOf(node), `VACANCY_SEED=${SEED}, step ${n}`).toEqual(shown(model))
      checkCounts(node, model)
    }
    for (const propertyId of [...model.keys()]) ask(node, 'DELPROP', { propertyId })
    model.clear()
    while (freeDeleted(node.store));
    // The memory of the last entry is free from the next one on.
    for (let n = 0; n < 2; n++) publish(node.store, node.index)
  }

  test('has the content, counts, digests and charge of the model, and frees all of its memory', () => {
    run(createRandom(SEED), 160)
    const used = usedBytes(node)
    expect(contentOf(node)).toEqual([])
    expect(state(node.store.memory, STATE.propertyCount)).toBe(0)
    // Names stay.
    expect(node.store.writer.charge.tables.size).toBe(0)
    run(createRandom(SEED), 160)
    expect(usedBytes(node), `VACANCY_SEED=${SEED}`).toEqual(used)
    expect(node.store.writer.limbo.addresses).toEqual([])
    expect(node.store.writer.goneProperties).toBe(0)
  })
})

test.each([
  [0, 0, [1, 0, 0]],
  [0, 90, [0, 1, 0]],
  [90, 0, [0, 0, 1]],
  [-90, 45, [0, 0, -1]],
  [0, -180, [-1, 0, 0]],
  [30, 60, [0.4330127, 0.75, 0.5]],
])('the position %i, %i is a point of the unit sphere', (latitude, longitude, point) => {
  const target = new Float64Array(5).fill(7)
  writeUnitVector(target, 1, latitude, longitude)
  expect([target[0], target[4]]).toEqual([7, 7])
  for (let i = 0; i < 3; i++) expect(target[1 + i]).toBeCloseTo(point[i] as number, 6)
})

describe('a deleted segment', () => {
  test('is gone at once, and may be created again before its memory is free', () => {
    const node = createNodeInMemory(TODAY, 48 << 20)
    raiseFeatureLevel(node)
    const { memory, writer } = node.store
    const place = { area: 'a', propertyType: 't', category: 'c', stars: 1, latitude: 1, longitude: 1, amenities: ['x'] }
    const create = (segment: string, propertyId: string) => {
      ask(node, 'SETPROP', { ...place, segment, propertyId })
      for (const roomType of ROOM_TYPES) {
        ask(node, 'SETROOMPKG', { propertyId, roomType, date: formatDay(TODAY), availability: 1, finalPrice: 1 })
      }
    }
    create('s', 'p1')
    create('s', 'p2')
    expect(freeDeleted(node.store)).toBe(false)
    ask(node, 'DELSEGMENT', { segment: 's' })
    expect([segmentNames(memory), writer.goneProperties, writer.deleted.length]).toEqual([[], 2, 1])
    create('s', 'p1')
    ask(node, 'DELSEGMENT', { segment: 's' })
    create('t', 'p3')
    expect(writer.deleted).toHaveLength(2)
    // Its properties, eight tables, and the other three with the segment itself; then the same for the second one.
    const slices = Array.from({ length: 6 }, () => [freeDeleted(node.store), writer.goneProperties])
    expect(slices).toEqual([
      [true, 1],
      [true, 1],
      [true, 1],
      [true, 0],
      [true, 0],
      [false, 0],
    ])
    expect([...segmentNames(memory)].map((name) => nameText(memory, NAMES.segment, name))).toEqual(['t'])
    expect(countsOf(memory)).toMatchObject({ properties: 1, packages: 11 })
    expect(writer.charge.bytes).toBe(recountCharge(memory))
  })
})
