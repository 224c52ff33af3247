/** Bulk loads: the data of one node replace those of another, whose stays remain (docs/design/stays.md#ledger). */

import { formatDay } from '@vacancy/shared'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { debtOn, forEachNight, heldOn } from '../store/nights.ts'
import { loadDataOf } from '../testing/copied-node.ts'
import { TODAY } from '../testing/model.ts'
import {
  ask,
  createNodeInMemory,
  type NodeInMemory,
  raiseFeatureLevel,
  restartEmpty,
} from '../testing/node-in-memory.ts'

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
  expect(target.store.writer.ledger.stays.size).toBe(0)
})

test('a property that the data do not have ends its holds', () => {
  property(target, 5)
  hold(target, 'x', 3)
  property(source, 7, 'other')

  loadDataOf(source, target)

  expect(nightsOf(target)).toEqual([])
  expect(target.store.writer.ledger.stays.size).toBe(1)
  property(target, 5)
  expect(left(target)).toBe(5)
  expect(left(target, 'other')).toBe(7)
})

test('a debt ends where the data have no package, and the hold remains', () => {
  property(target, 5)
  hold(target, 'x', 3)
  set(target, 1)
  expect(nightsOf(target)).toEqual([[3, 2]])
  property(source, 7)
  ask(source, 'DELROOMDAY', { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 1) })

  loadDataOf(source, target)

  expect(nightsOf(target)).toEqual([[3, 0]])
  expect(left(target)).toBeUndefined()
  set(target, 8)
  expect(left(target)).toBe(5)
})
