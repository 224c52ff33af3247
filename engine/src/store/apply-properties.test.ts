/** Commands on properties, room types and segments: what is there afterwards, with counts, digests and charge. */
import { formatDay } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import { TODAY } from '../testing/model.ts'
import {
  ask,
  createNodeInMemory,
  type LooseFields,
  raiseFeatureLevel,
  restartEmpty,
  setMemoryBudget,
} from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import { endStays, propertyDigest, sumSegments } from './apply-properties.ts'
import { ALL_ROWS, SEGMENT, STAY_PROPERTY } from './layout.ts'
import { recountCharge } from './recount.ts'
import { forEachProperty, segmentNames, segmentOf } from './segment.ts'
import { countsOf, stateDigest } from './store.ts'
import { field, setField } from './table-fields.ts'

const PLACE = { segment: 's', area: 'a', propertyType: 't', category: 'c', stars: 3, latitude: 47, longitude: 8 }
const NIGHTS = [1, 2, 40]

const node = createNodeInMemory(TODAY, 48 << 20)

const setProperty = (propertyId: string, fields: LooseFields = {}) =>
  ask(node, 'SETPROP', { ...PLACE, amenities: ['wifi', 'pool'], propertyId, ...fields })
const sell = (propertyId: string, roomType: string, night: number, availability = 2) =>
  ask(node, 'SETROOMPKG', { propertyId, roomType, date: formatDay(TODAY + night), availability, finalPrice: night })
const found = (fields: LooseFields) => (ask(node, 'SEARCHPROP', fields).result.propertyIds ?? []).toSorted()
const stays = (segment: string, roomType: string, night: number) =>
  (ask(node, 'SEARCHAVAIL', { segment, roomType, dates: [formatDay(TODAY + night)] }).result.properties ?? [])
    .map(({ propertyId, days }) => `${propertyId} ${days[0]?.availability} ${days[0]?.finalPrice}`)
    .toSorted()
const exists = (propertyId: string, roomType: string) =>
  (ask(node, 'PROPROOMEXIST', { propertyId, roomType }).result as { exists: boolean }).exists

function check(packages: number, properties: number): void {
  const { memory } = node.store
  const counted = recountDigest(memory)
  expect([counted.packages, counted.properties]).toEqual([packages, properties])
  expect(countsOf(memory)).toMatchObject({ packages, properties })
  expect(stateDigest(memory)).toEqual(counted.digest)
  expect(node.store.writer.charge.bytes).toBe(recountCharge(memory))
  // Versions of tables are even again: nothing is left marked.
  expect(found({ segment: 's' }).length + found({ segment: 'u' }).length).toBe(properties)
}

/** Properties p1 to p3 in segment s, each with two room types on three nights; p4 in segment u. */
function fill(): void {
  for (const id of ['p1', 'p2', 'p3', 'p4']) {
    setProperty(id, id === 'p4' ? { segment: 'u' } : {})
    for (const roomType of ['double', 'suite']) for (const night of NIGHTS) sell(id, roomType, night)
  }
}

describe.each([0, 3])('at feature level %i', (level) => {
  beforeEach(() => {
    restartEmpty(node, TODAY)
    node.timeMs = TODAY * 86_400_000 + 1
    raiseFeatureLevel(node, level)
    fill()
  })

  test('what was written is there', () => {
    check(24, 4)
    expect(found({ segment: 's' })).toEqual(['p1', 'p2', 'p3'])
    expect(stays('s', 'suite', 40)).toEqual(['p1 2 40', 'p2 2 40', 'p3 2 40'])
    // The same attributes again change nothing.
    const before = stateDigest(node.store.memory)
    setProperty('p2')
    setProperty('p2', { amenities: ['pool', 'wifi'] })
    expect(stateDigest(node.store.memory)).toEqual(before)
    check(24, 4)
  })

  test('new attributes replace the old ones, and packages stay', () => {
    const fresh = { area: 'b', propertyType: 'v', category: 'd', stars: 5, latitude: 10, longitude: 20 }
    expect(setProperty('p2', { ...fresh, amenities: ['spa'] }).error).toBe('')
    for (const [name, value] of Object.entries({ area: 'b', propertyType: 'v', category: 'd', stars: 5 })) {
      expect(found({ segment: 's', [name]: value })).toEqual(['p2'])
    }
    expect(found({ segment: 's', amenities: ['spa'] })).toEqual(['p2'])
    expect(found({ segment: 's', amenities: ['wifi'] })).toEqual(['p1', 'p3'])
    expect(found({ segment: 's', latitude: 10, longitude: 20 })).toEqual(['p2'])
    expect(found({ segment: 's', latitude: 47, longitude: 8 })).toEqual(['p1', 'p3'])
    expect(stays('s', 'double', 2)).toEqual(['p1 2 2', 'p2 2 2', 'p3 2 2'])
    check(24, 4)
  })

  test('a move takes the packages to the other segment', () => {
    expect(setProperty('p2', { segment: 'u' }).error).toBe('')
    expect([found({ segment: 's' }), found({ segment: 'u' })]).toEqual([
      ['p1', 'p3'],
      ['p2', 'p4'],
    ])
    for (const night of NIGHTS) {
      for (const roomType of ['double', 'suite']) {
        expect(stays('s', roomType, night)).toEqual([`p1 2 ${night}`, `p3 2 ${night}`])
        expect(stays('u', roomType, night)).toEqual([`p2 2 ${night}`, `p4 2 ${night}`])
      }
    }
    check(24, 4)
  })

  test('a segment ends with its last property, and starts with its first', () => {
    setProperty('p4', { segment: 's' })
    expect([segmentNames(node.store.memory).length, found({ segment: 'u' })]).toEqual([1, []])
    check(24, 4)
    for (const id of ['p1', 'p2', 'p3', 'p4']) setProperty(id, { segment: 'u' })
    expect([found({ segment: 's' }), stays('u', 'suite', 1).length]).toEqual([[], 4])
    check(24, 4)
  })

  test('a deleted room type takes its packages with it', () => {
    expect(ask(node, 'DELPROPROOM', { propertyId: 'p1', roomType: 'double' }).error).toBe('')
    expect([exists('p1', 'double'), exists('p1', 'suite'), exists('p2', 'double')]).toEqual([false, true, true])
    expect(stays('s', 'double', 1)).toEqual(['p2 2 1', 'p3 2 1'])
    check(21, 4)
    expect(sell('p1', 'double', 1, 7).error).toBe('')
    expect(stays('s', 'double', 1)).toContain('p1 7 1')
    check(22, 4)
  })

  test('a deleted property takes its packages with it', () => {
    expect(ask(node, 'DELPROP', { propertyId: 'p1' }).error).toBe('')
    expect([found({ segment: 's' }), stays('s', 'double', 1)]).toEqual([
      ['p2', 'p3'],
      ['p2 2 1', 'p3 2 1'],
    ])
    check(18, 3)
    setProperty('p1')
    expect([exists('p1', 'double'), stays('s', 'double', 1).length]).toEqual([false, 2])
    check(18, 4)
  })

  test('a deleted segment takes its properties with it, and no other', () => {
    expect(ask(node, 'DELSEGMENT', { segment: 's' }).error).toBe('')
    expect([found({ segment: 's' }), found({ segment: 'u' })]).toEqual([[], ['p4']])
    expect(stays('s', 'double', 1)).toEqual([])
    expect(stays('u', 'double', 1)).toEqual(['p4 2 1'])
    check(6, 1)
    fill()
    check(24, 4)
  })

  test('what is unknown cannot be deleted, and nothing changes', () => {
    const before = stateDigest(node.store.memory)
    const refusals: [Parameters<typeof ask>[1], LooseFields, RegExp][] = [
      ['DELPROP', { propertyId: 'q' }, /property/i],
      ['DELPROPROOM', { propertyId: 'q', roomType: 'double' }, /property/i],
      ['DELPROPROOM', { propertyId: 'p1', roomType: 'cave' }, /room type/i],
      ['DELSEGMENT', { segment: 'nowhere' }, /segment/i],
      // A name of another kind.
      ['DELSEGMENT', { segment: 'double' }, /segment/i],
    ]
    for (const [command, fields, text] of refusals) expect(ask(node, command, fields).text).toMatch(text)
    expect(stateDigest(node.store.memory)).toEqual(before)
    check(24, 4)
  })
})

describe('digests', () => {
  beforeEach(() => {
    restartEmpty(node, TODAY)
    raiseFeatureLevel(node)
    fill()
  })

  const properties = () => {
    const list: number[] = []
    forEachProperty(node.store.memory, segmentOf(node.store.memory, 0), (property) => list.push(property))
    return list
  }

  test('of a property change with each attribute', () => {
    const { memory } = node.store
    const changes: LooseFields[] = [
      ...[{}, { area: 'b' }, { propertyType: 'b' }, { category: 'b' }, { stars: 1 }, { latitude: 1 }, { longitude: 1 }],
      ...[{ amenities: [] }, { amenities: ['wifi'] }, { amenities: ['spa', 'wifi'] }],
    ]
    const seen = changes.map((fields) => {
      setProperty('p1', fields)
      const property = properties()[0] as number
      return [propertyDigest(memory, property, 0), propertyDigest(memory, property, 1)]
    })
    for (const lane of [0, 1]) expect(new Set(seen.map((pair) => pair[lane])).size).toBe(changes.length)
    // The order of amenities does not matter.
    setProperty('p1', { amenities: ['wifi', 'spa'] })
    expect(propertyDigest(memory, properties()[0] as number, 0)).toBe(seen.at(-1)?.[0])
  })

  test.each([
    ['a row at a time', 1, 5],
    ['two rows at a time', 2, 3],
    ['all rows', 100, 1],
  ])('of a loaded segment are summed in idle time: %s', (_, rows, steps) => {
    const { memory, writer } = node.store
    const segment = segmentOf(memory, 0)
    const cells = [SEGMENT.digestLow, SEGMENT.digestHigh, SEGMENT.summedRows]
    const before = cells.map((cell) => field(memory, segment + cell))
    expect(before[2]).toBe(ALL_ROWS)
    for (const cell of cells) setField(node.store, segment + cell, 0)
    writer.unsummed.push(0)
    let needed = 0
    while (writer.unsummed.length > 0) {
      sumSegments(node.store, rows)
      needed++
    }
    expect(cells.map((cell) => field(memory, segment + cell))).toEqual(before)
    expect(needed).toBeLessThanOrEqual(steps)
    ask(node, 'DELSEGMENT', { segment: 's' })
    check(6, 1)
  })

  test.each([0, 1, 2])('a loaded segment of which %i rows are summed is deleted as a whole', (rows) => {
    const { memory, writer } = node.store
    const segment = segmentOf(memory, 0)
    for (const cell of [SEGMENT.digestLow, SEGMENT.digestHigh, SEGMENT.summedRows]) {
      setField(node.store, segment + cell, 0)
    }
    writer.unsummed.push(0)
    sumSegments(node.store, rows)
    expect(field(memory, segment + SEGMENT.summedRows)).toBe(rows)
    // Changes of rows that are summed, and of rows that are not.
    setProperty('p1', { stars: 1 })
    ask(node, 'DELPROP', { propertyId: 'p3' })
    ask(node, 'DELPROPROOM', { propertyId: 'p2', roomType: 'suite' })
    ask(node, 'DELSEGMENT', { segment: 's' })
    check(6, 1)
    // The name may be that of a deleted segment.
    sumSegments(node.store, 10)
    expect(writer.unsummed).toEqual([])
  })
})

describe('with stays', () => {
  const held = () => node.store.writer.ledger.nights.size
  beforeEach(() => {
    restartEmpty(node, TODAY)
    raiseFeatureLevel(node)
    fill()
    for (const propertyId of ['p1', 'p4']) {
      const line = { propertyId, roomType: 'double', arrival: formatDay(TODAY + 1), nights: 2, rooms: 1 }
      expect(ask(node, 'HOLDSTAY', { stayId: `stay-${propertyId}`, seconds: 900, lines: [line] }).error).toBe('')
    }
    expect(held()).toBe(4)
  })

  test.each<[string, Parameters<typeof ask>[1], LooseFields, number]>([
    ['a room type keeps what is on hold', 'DELPROPROOM', { propertyId: 'p1', roomType: 'double' }, 4],
    ['a property ends its holds', 'DELPROP', { propertyId: 'p1' }, 2],
    ['a property without stays ends none', 'DELPROP', { propertyId: 'p2' }, 4],
    ['a segment ends the holds of its properties only', 'DELSEGMENT', { segment: 's' }, 2],
    ['the other segment, too', 'DELSEGMENT', { segment: 'u' }, 2],
  ])('deleting %s', (_, command, fields, nights) => {
    expect(ask(node, command, fields).error).toBe('')
    expect(held()).toBe(nights)
    expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
  })

  test('a property whose stays end starts another generation', () => {
    const { memory, writer } = node.store
    const stayProperty = [...writer.ledger.properties.values()][0] as number
    const before = field(memory, stayProperty + STAY_PROPERTY.generation)
    endStays(node.store, stayProperty)
    expect([field(memory, stayProperty + STAY_PROPERTY.generation) - before, held()]).toEqual([1, 2])
  })
})

test('above the budget new properties, segments and names are refused and change nothing; attributes that need no memory change', () => {
  restartEmpty(node, TODAY)
  node.timeMs = TODAY * 86_400_000 + 1
  raiseFeatureLevel(node)
  fill()
  setMemoryBudget(node, 1 << 18)
  const before = stateDigest(node.store.memory)
  const refusals = [
    setProperty('p5'),
    setProperty('p1', { segment: 'new' }),
    setProperty('p1', { area: 'new' }),
    setProperty('p1', { amenities: ['wifi', 'pool', 'new'] }),
  ]
  expect(refusals.map(({ error }) => error)).toEqual(Array(4).fill('503'))
  expect(stateDigest(node.store.memory)).toEqual(before)
  check(24, 4)
  expect(setProperty('p1', { stars: 1 }).error).toBe('')
  expect(setProperty('p1', { stars: 1, amenities: ['wifi'] }).error).toBe('')
  expect(found({ segment: 's', stars: 1 })).toEqual(['p1'])
  check(24, 4)
})
