/** Bulk loads: the data of one node replace those of another, whose stays remain (docs/design/stays.md#ledger). */

import { formatDay, VacancyError } from '@vacancy/shared'
import { seeded } from '@vacancy/testkit/random'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { debtOn, forEachNight, heldOn } from '../store/nights.ts'
import { copyOf, loadDataOf } from '../testing/copied-node.ts'
import { TODAY } from '../testing/model.ts'
import {
  ask,
  createNodeInMemory,
  type NodeInMemory,
  raiseFeatureLevel,
  restartEmpty,
} from '../testing/node-in-memory.ts'
import { decodeLedger, encodeLedger } from './ledger.ts'

const place = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
let source: NodeInMemory
let target: NodeInMemory

beforeAll(() => {
  source = createNodeInMemory(TODAY)
  target = createNodeInMemory(TODAY)
})

beforeEach(() => {
  for (const node of [source, target]) {
    restartEmpty(node, TODAY)
    raiseFeatureLevel(node)
  }
})

/** Night 1 of one room type, with so many rooms. */
function property(node: NodeInMemory, rooms: number, propertyId = 'p'): void {
  ask(node, 'SETPROP', { ...place, propertyId, amenities: [] })
  set(node, rooms, propertyId)
}

function set(node: NodeInMemory, rooms: number, propertyId = 'p', day = TODAY + 1): void {
  const night = { propertyId, roomType: 'double', date: formatDay(day), finalPrice: 10 }
  ask(node, 'SETROOMPKG', { ...night, availability: rooms })
}

function hold(node: NodeInMemory, stayId: string, rooms: number, nights = 1): void {
  const line = { propertyId: 'p', roomType: 'double', arrival: formatDay(TODAY + 1), nights, rooms }
  expect(ask(node, 'HOLDSTAY', { stayId, lines: [line] }).error).toBe('')
}

function left(node: NodeInMemory, propertyId = 'p'): number | undefined {
  const night = { propertyId, roomType: 'double', date: formatDay(TODAY + 1) }
  return (ask(node, 'GETPROPROOMDAY', night).result as { availability?: number }).availability
}

function nightsOf(node: NodeInMemory): [held: number, debt: number][] {
  const nights: [number, number][] = []
  const { memory } = node.store
  forEachNight(memory, (night) => nights.push([heldOn(memory, night), debtOn(memory, night)]))
  return nights
}

test.each([
  ['more than are held', 9, 6, []],
  ['as many as are held', 3, 0, []],
  ['fewer than are held', 2, 0, [[3, 1]]],
  ['none', 0, 0, [[3, 3]]],
])('loaded rooms are reduced by what is held here: %s', (_, loaded, sellable, owed) => {
  property(target, 5)
  hold(target, 'x', 3)
  property(source, loaded)

  loadDataOf(source, target)

  expect(left(target)).toBe(sellable)
  expect(nightsOf(target)).toEqual(owed.length > 0 ? owed : [[3, 0]])
})

test.each([
  ['rooms on hold at the source', 9, 4, undefined, 9],
  ['holds beyond the rooms of the source', 9, 4, 2, 2],
  ['holds of which nothing is left', 4, 4, 0, 0],
  ['the highest number of rooms', 255, 4, undefined, 255],
])('what the source holds counts as left: %s', (_, rooms, held, later, expected) => {
  property(source, rooms)
  hold(source, 'own', held)
  if (later !== undefined) set(source, later)
  property(target, 1)

  loadDataOf(source, target)

  expect(left(target)).toBe(expected)
  expect(nightsOf(target)).toEqual([])
  expect(target.store.writer.ledger.stays.count).toBe(0)
})

test('what is on hold of a property that the data do not have is missing until it is set again', () => {
  property(target, 5)
  hold(target, 'x', 3)
  property(source, 7, 'other')

  loadDataOf(source, target)

  expect(nightsOf(target)).toEqual([[3, 3]])
  property(target, 5)
  expect(left(target)).toBe(2)
  expect(left(target, 'other')).toBe(7)
})

test('all of a hold is missing where the data have no package', () => {
  property(target, 5)
  hold(target, 'x', 3)
  set(target, 1)
  expect(nightsOf(target)).toEqual([[3, 2]])
  property(source, 7)
  ask(source, 'DELROOMDAY', { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 1) })

  loadDataOf(source, target)

  expect(nightsOf(target)).toEqual([[3, 3]])
  expect(left(target)).toBeUndefined()
  set(target, 8)
  expect(left(target)).toBe(5)
})

describe('the bytes of a ledger', () => {
  const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))
  let node: NodeInMemory

  beforeEach(() => {
    node = createNodeInMemory(TODAY)
    raiseFeatureLevel(node, 3)
    for (const propertyId of ['p', 'q']) {
      ask(node, 'SETPROP', { ...place, propertyId, amenities: [] })
      for (let n = 0; n < 4; n++) {
        for (const roomType of ['double', 'a suite']) {
          ask(node, 'SETROOMPKG', { propertyId, roomType, date: formatDay(TODAY + n), availability: 9, finalPrice: 5 })
        }
      }
    }
    const line = (propertyId: string, roomType = 'double') => ({
      ...{ propertyId, roomType, arrival: formatDay(TODAY), nights: 3, rooms: 2 },
    })
    ask(node, 'HOLDSTAY', { stayId: 'held', lines: [line('p'), line('q', 'a suite')], source: 'ota-17' })
    ask(node, 'BOOKSTAY', { stayId: 'booked', lines: [line('q')] })
    ask(node, 'RELEASESTAY', { stayId: 'void', void: 1 })
    // Debt, and a property of a second generation, which earlier levels had.
    ask(node, 'SETROOMAVL', { propertyId: 'p', roomType: 'double', date: formatDay(TODAY), amount: 1 })
    ask(node, 'DELPROP', { propertyId: 'q' })
    raiseFeatureLevel(node)
    ask(node, 'BOOKSTAY', { stayId: 'origin', lines: [line('p', 'a suite')] })
    ask(node, 'HOLDSTAY', { stayId: 'change', lines: [{ ...line('p', 'a suite'), nights: 4 }], replaces: 'origin' })
  })

  test('without stays there is no block', () => {
    expect(encodeLedger(createNodeInMemory(TODAY).store.memory)).toHaveLength(0)
  })

  test('a replica that loaded the ledger writes the same bytes', () => {
    const bytes = encodeLedger(node.store.memory)

    expect(encodeLedger(copyOf(node).store.memory)).toEqual(bytes)
    const { stays, nights, generations } = decodeLedger(bytes, 'file')
    expect(stays).toHaveLength(5)
    expect(stays.flatMap(({ replaced }) => replaced?.lines.map(({ nights: of }) => of) ?? [])).toEqual([3])
    expect(nights.map(({ held, debt }) => [held, debt])).toEqual(
      expect.arrayContaining([
        [2, 1],
        [2, 0],
      ]),
    )
    expect(generations.map(({ generation }) => generation)).toEqual([1])
  })

  test(`damaged bytes are refused as corrupt data, or are a ledger (VACANCY_SEED=${SEED})`, () => {
    const bytes = encodeLedger(node.store.memory)
    const random = seeded(SEED)
    const below = (limit: number) => Math.floor(random() * limit)
    let refused = 0
    for (let n = 0; n < 3_000; n++) {
      const damaged = n % 3 === 0 ? bytes.slice(0, below(bytes.length)) : bytes.slice()
      if (damaged.length > 0) damaged[below(damaged.length)] = below(256)
      try {
        decodeLedger(damaged, 'file')
      } catch (error) {
        if (!(error instanceof VacancyError)) throw error
        expect(error.code).toBe('corrupt_data')
        refused++
      }
    }
    expect(refused).toBeGreaterThan(500)
  })
})
