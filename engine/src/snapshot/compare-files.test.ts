/** Differences of snapshot files that are made from plain records, and those that a comparison of the records gives. */

import { createCodecList, packPropertyId } from '@vacancy/shared'
import { SNAPSHOT_DIFFERENCES_MAX, type SnapshotDifferences } from '@vacancy/shared/contract'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { createSimulatedDisk, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createTestSource, FIRST_DAY, layPlanes } from '../testing/snapshot-source.ts'
import { differencesOf } from './compare.ts'
import { DEAD_ROW, firstPlanes, type TableShape } from './schema.ts'
import { inlineEncoder, writeSeedFileAtOnce } from './write.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const CODECS = ['breakfast', 'late', 'wifi']

type Night = { readonly availability: number; readonly price: number; readonly features: readonly string[] }
type Property = {
  readonly id: string
  readonly segment: string
  readonly area: string
  readonly type: string
  readonly category: string
  readonly stars: number
  readonly latitude: number
  readonly longitude: number
  readonly amenities: readonly string[]
  /** By room type, then by night. */
  readonly rooms: { readonly [roomType: string]: { readonly [night: number]: Night } }
}

const NIGHT: Night = { availability: 3, price: 120, features: ['late'] }
const PROPERTY: Property = {
  ...{ id: 'p', segment: 'alpine', area: 'valley', type: 'hotel', category: 'standard', stars: 3 },
  ...{ latitude: 47.5, longitude: 11.25, amenities: ['pool', 'wifi'] },
  rooms: { double: { 0: NIGHT, 2: NIGHT }, suite: { 1: NIGHT } },
}

const sorted = (names: Iterable<string>) => [...new Set(names)].sort()
const base = createTestSource({ segments: 1, propertiesPerSegment: 1, roomTypes: 1, nights: 1 })

/** @param dead a row without a property comes first in each table */
function write(disk: SimulatedDisk, path: string, list: readonly Property[], codecs = CODECS, dead = false): void {
  const segments = sorted(list.map(({ segment }) => segment))
  const areas = sorted(list.map(({ area }) => area))
  const types = sorted(list.map(({ type }) => type))
  const categories = sorted(list.map(({ category }) => category))
  const roomTypes = sorted(list.flatMap(({ rooms }) => Object.keys(rooms)))
  const amenities = sorted(list.flatMap((each) => each.amenities))
  const own = segments.flatMap((segment) => list.filter((each) => each.segment === segment))
  const numbers = (of: (each: Property) => number) => Uint32Array.from(own, of)
  const starts = (of: (each: Property) => number) => {
    const start = [0]
    for (const each of own) start.push((start.at(-1) as number) + of(each))
    return Uint32Array.from(start)
  }
  const tables: (TableShape & { readonly room: string })[] = []
  for (const [segment, name] of segments.entries()) {
    for (const [roomType, room] of roomTypes.entries()) {
      const rows = own.flatMap((each, at) => (each.segment === name && each.rooms[room] ? [at] : []))
      if (rows.length === 0) continue
      const days = sorted(rows.flatMap((at) => Object.keys(own[at]?.rooms[room] ?? {})))
      tables.push({
        ...{ segment, roomType, room, rows: Uint32Array.from(dead ? [DEAD_ROW, ...rows] : rows) },
        days: Uint32Array.from(
          days.map(Number).sort((a, b) => a - b),
          (night) => FIRST_DAY + night,
        ),
      })
    }
  }
  const planes = layPlanes(tables)
  const first = firstPlanes(tables)
  for (const [table, { room, rows, days }] of tables.entries()) {
    for (const [night, day] of days.entries()) {
      for (const [row, at] of rows.entries()) {
        const stay = own[at]?.rooms[room]?.[day - FIRST_DAY]
        if (!stay) continue
        const bits = stay.features.reduce((mask, name) => mask | (1 << codecs.indexOf(name)), 0)
        const word = (planes.planeMap.words[(first[table] as number) + night] as number) / 4 + row * 2
        planes.u32[word] = stay.availability | (bits << 8)
        planes.u32[word + 1] = ~stay.price
      }
    }
  }
  const source = {
    ...base,
    codecs: createCodecList(codecs),
    names: { segments, areas, types, categories, roomTypes, amenities },
    properties: {
      count: own.length,
      ids: Uint8Array.from(own.flatMap(({ id }) => [...(packPropertyId(id) as Uint8Array)])),
      segment: numbers(({ segment }) => segments.indexOf(segment)),
      area: numbers(({ area }) => areas.indexOf(area)),
      type: numbers(({ type }) => types.indexOf(type)),
      category: numbers(({ category }) => categories.indexOf(category)),
      stars: Uint8Array.from(own, ({ stars }) => stars),
      latitude: Float64Array.from(own, ({ latitude }) => latitude),
      longitude: Float64Array.from(own, ({ longitude }) => longitude),
      amenityStart: starts((each) => each.amenities.length),
      amenities: Uint32Array.from(own.flatMap((each) => each.amenities.map((name) => amenities.indexOf(name)))),
      roomStart: starts(({ rooms }) => Object.keys(rooms).length),
      rooms: Uint32Array.from(own.flatMap(({ rooms }) => Object.keys(rooms).map((name) => roomTypes.indexOf(name)))),
    },
    tables,
    memory: planes.memory,
    words(table: number, rowStart: number, _rows: number, addresses: Uint32Array) {
      const start = first[table] as number
      const count = (tables[table] as TableShape).days.length
      for (let n = 0; n < count; n++) addresses[n] = (planes.planeMap.words[start + n] as number) + rowStart * 8
      return true
    },
  }
  const encoder = inlineEncoder(source, planes.scratch[0] as number)
  writeSeedFileAtOnce(createSimulation({ disk }).env, path, source, { encoder })
}

type Options = { readonly codecs?: string[]; readonly dead?: boolean }

function compare(a: readonly Property[], b: readonly Property[], { codecs, dead }: Options = {}): SnapshotDifferences {
  const disk = createSimulatedDisk()
  disk.makeDirectory('/d')
  write(disk, '/d/a', a)
  write(disk, '/d/b', b, codecs, dead)
  return differencesOf('/d/a', '/d/b', disk)
}

const NONE = { count: 0, first: [] }

test('equal files have no differences and the same id', () => {
  const { a, b, ...rest } = compare([PROPERTY], [PROPERTY])

  expect(rest).toEqual({ onlyA: NONE, onlyB: NONE, changed: NONE })
  expect(a).toBe(b)
})

const CHANGES: [string, Partial<Property>, string[]][] = [
  ['its segment', { segment: 'coast' }, ['attributes']],
  ['its area', { area: 'peak' }, ['attributes']],
  ['its type', { type: 'villa' }, ['attributes']],
  ['its category', { category: 'luxury' }, ['attributes']],
  ['its stars', { stars: 4 }, ['attributes']],
  ['its latitude', { latitude: 47.500001 }, ['attributes']],
  ['its longitude', { longitude: -11.25 }, ['attributes']],
  ['an amenity less', { amenities: ['pool'] }, ['attributes']],
  ['another amenity', { amenities: ['pool', 'spa'] }, ['attributes']],
  ['a room type without packages', { rooms: { ...PROPERTY.rooms, attic: {} } }, ['rooms']],
  [
    'another room type',
    { rooms: { double: PROPERTY.rooms['double'] ?? {}, attic: { 1: NIGHT } } },
    ['rooms', 'packages'],
  ],
  ['rooms left', { rooms: { ...PROPERTY.rooms, suite: { 1: { ...NIGHT, availability: 4 } } } }, ['packages']],
  ['a price', { rooms: { ...PROPERTY.rooms, suite: { 1: { ...NIGHT, price: 121 } } } }, ['packages']],
  ['no rate feature', { rooms: { ...PROPERTY.rooms, suite: { 1: { ...NIGHT, features: [] } } } }, ['packages']],
  ['another night', { rooms: { ...PROPERTY.rooms, suite: { 2: NIGHT } } }, ['packages']],
  ['a night more', { rooms: { ...PROPERTY.rooms, suite: { 1: NIGHT, 2: NIGHT } } }, ['packages']],
  ['all of it', { stars: 1, rooms: { single: { 0: NIGHT } } }, ['attributes', 'rooms', 'packages']],
]

test.each([
  ['equal, so that bits of features are compared', CODECS],
  ['different, so that names of features are compared', ['x', 'wifi', 'y', 'late', 'breakfast']],
])('each change is found in its property, codec lists being %s', (_, codecs) => {
  const idOf = (n: number) => `p${String(n).padStart(2, '0')}`
  const before = CHANGES.map((_change, n) => ({ ...PROPERTY, id: idOf(n) }))
  const after = CHANGES.map(([, changes], n) => ({ ...PROPERTY, ...changes, id: idOf(n) }))
  const same = { ...PROPERTY, id: 'same' }

  const { onlyA, onlyB, changed } = compare([same, ...before], [...after, same], { codecs })

  expect([onlyA, onlyB]).toEqual([NONE, NONE])
  const found = new Map(changed.first.map((each) => [each.id, each]))
  for (const [n, [change, , what]] of CHANGES.entries()) {
    expect(found.get(idOf(n)), change).toEqual({ id: idOf(n), segment: after[n]?.segment, what })
  }
  expect(changed.count).toBe(CHANGES.length)
})

test('rate features count by name, also the last ones of a full list', () => {
  const full = [...Array.from({ length: 21 }, (_, n) => `f${n}`), 'late', 'wifi', 'breakfast']
  const with3 = (features: string[]) => [{ ...PROPERTY, rooms: { double: { 0: { ...NIGHT, features } } } }]

  expect(compare(with3(CODECS), with3(CODECS), { codecs: full }).changed).toEqual(NONE)
  expect(compare(with3(['late']), with3(['breakfast']), { codecs: full }).changed.count).toBe(1)
  expect(compare(with3(['late']), with3(['late', 'f20']), { codecs: full }).changed.count).toBe(1)
})

test('rows without a property do not count', () => {
  const list = [PROPERTY, { ...PROPERTY, id: 'q' }]

  expect(compare(list, list, { dead: true })).toMatchObject({ onlyA: NONE, onlyB: NONE, changed: NONE })
})

test.each([SNAPSHOT_DIFFERENCES_MAX, SNAPSHOT_DIFFERENCES_MAX + 1])(
  '%i differences are counted, and at most 100 are listed',
  (count) => {
    const many = (name: string, stars: number) =>
      Array.from({ length: count }, (_, n) => ({ ...PROPERTY, id: `${name}${n}`, stars, rooms: {} }))

    const { onlyA, onlyB, changed } = compare([...many('a', 1), ...many('c', 2)], [...many('b', 1), ...many('c', 3)])

    for (const [name, list] of Object.entries({ a: onlyA, b: onlyB, c: changed })) {
      expect(list.count).toBe(count)
      const listed = Math.min(count, SNAPSHOT_DIFFERENCES_MAX)
      expect(list.first.map(({ id }) => id)).toEqual(Array.from({ length: listed }, (_, n) => `${name}${n}`))
    }
  },
)

function drawn(random: Random, id: string): Property {
  const one = (names: readonly string[]) => names[random.below(names.length)] as string
  const night = (): Night => ({
    ...{
      availability: random.below(3),
      price: 100 + random.below(3),
      features: CODECS.filter(() => random.below(2) > 0),
    },
  })
  const nights = () => Object.fromEntries([0, 1, 2].filter(() => random.below(2) > 0).map((n) => [n, night()]))
  const rooms = ['double', 'suite', 'triple'].filter(() => random.below(2) > 0)
  return {
    ...{ id, segment: one(['a', 'b', 'c']), area: one(['x', 'y']), type: one(['t', 'u']), category: one(['k', 'l']) },
    ...{ stars: 1 + random.below(5), latitude: random.below(90), longitude: random.below(90) },
    amenities: ['pool', 'spa'].filter(() => random.below(2) > 0),
    rooms: Object.fromEntries(rooms.map((room) => [room, nights()])),
  }
}

test('drawn files differ as their records do', () => {
  const random = createRandom(SEED)
  for (let round = 0; round < 4; round++) {
    const ids = Array.from({ length: 20 }, (_, n) => `hotel_${n}`)
    const before = ids.filter(() => random.below(4) > 0).map((id) => drawn(random, id))
    const after = ids
      .filter(() => random.below(4) > 0)
      .map((id) => {
        const known = before.find((each) => each.id === id)
        return known && random.below(2) > 0 ? known : drawn(random, id)
      })
    const differing = after.filter((each) => {
      const known = before.find(({ id }) => id === each.id)
      return known && JSON.stringify(known) !== JSON.stringify(each)
    })
    const without = (list: Property[], other: Property[]) =>
      list.filter(({ id }) => other.every((each) => each.id !== id)).map(({ id, segment }) => ({ id, segment }))
    const byId = <T extends { id: string }>(list: readonly T[]) => list.toSorted((a, b) => (a.id < b.id ? -1 : 1))

    const { onlyA, onlyB, changed } = compare(before, after, round % 2 === 0 ? {} : { codecs: CODECS.toReversed() })

    const where = `VACANCY_SEED=${SEED}, round ${round}`
    expect(byId(onlyA.first), where).toEqual(byId(without(before, after)))
    expect(byId(onlyB.first), where).toEqual(byId(without(after, before)))
    expect(
      byId(changed.first).map(({ id }) => id),
      where,
    ).toEqual(byId(differing).map(({ id }) => id))
  }
})
