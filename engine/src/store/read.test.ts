import { formatDay, packPropertyId, parseDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { ask, createNodeInMemory, type NodeInMemory } from '../testing/node-in-memory.ts'
import { findName, NAMES } from './dictionary.ts'
import { ROOMS } from './layout.ts'
import { findProperty } from './property-index.ts'
import { daysOfRoom, propertyDetails, type ReadView, readNight } from './read.ts'
import { findRoom } from './segment.ts'
import { field } from './table-fields.ts'
import { mark, unmark } from './version.ts'

const place = { propertyId: 'p', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
const ID = packPropertyId('p') as Uint8Array

function nodeWithNight(): NodeInMemory {
  const node = createNodeInMemory(parseDay('2026-11-20') as number)
  ask(node, 'SETPROP', { ...place, segment: 'here', amenities: [] })
  const date = formatDay(node.day + 1)
  ask(node, 'SETROOMPKG', { propertyId: 'p', roomType: 'r', date, availability: 2, finalPrice: 70 })
  return node
}

function roomTypeOf({ store }: NodeInMemory): number {
  const bytes = new TextEncoder().encode('r')
  return findName(store.memory, NAMES.roomType, bytes, 0, bytes.length)
}

/** A view whose reader finds the room's table marked. While it waits, the property moves to another segment. */
function viewDuringMove(node: NodeInMemory): ReadView {
  const { store } = node
  const { memory } = store
  const table = field(memory, findRoom(memory, findProperty(memory, ID, 0), roomTypeOf(node)) + ROOMS.table)
  mark(store, table)
  let isMoved = false
  const waiting = {
    ...memory,
    get fence() {
      if (!isMoved) {
        isMoved = true
        ask(node, 'SETPROP', { ...place, segment: 'there', amenities: [] })
        unmark(store, table)
      }
      return memory.fence
    },
  }
  return { memory: waiting, reader: 0 }
}

test('a night read while its property moved to another segment used to be missing', () => {
  const node = nodeWithNight()

  const night = readNight(viewDuringMove(node), ID, roomTypeOf(node), node.day + 1)

  expect(night).toEqual({ availability: 2, price: 70, features: 0 })
})

test('listing nights while their property moved to another segment used to return none', () => {
  const node = nodeWithNight()

  expect(daysOfRoom(viewDuringMove(node), ID, roomTypeOf(node), node.day)).toEqual([node.day + 1])
})

test('a read gives up when its table keeps changing', () => {
  const node = nodeWithNight()
  const { store } = node
  const view = { memory: store.memory, reader: 0, tries: 3 }
  const table = field(
    store.memory,
    findRoom(store.memory, findProperty(store.memory, ID, 0), roomTypeOf(node)) + ROOMS.table,
  )

  mark(store, table)
  expect(readNight(view, ID, roomTypeOf(node), node.day + 1)).toBe('changing')
  expect(propertyDetails(view, ID)).toMatchObject({ segment: 'here', roomTypes: ['r'] })
  unmark(store, table)

  expect(readNight(view, ID, roomTypeOf(node), node.day + 1)).toMatchObject({ price: 70 })
})
