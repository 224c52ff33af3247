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
import { recountCharge } from './recount.ts'
import { segmentNames } from './segment.ts'
import { countsOf, stateDigest } from './store.ts'

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
