/** Rooms on hold and debt of each night, when the source of record or a deletion changes what is below them. */
import { formatDay } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import { TODAY } from '../testing/model.ts'
import { applyOwn, ask, createNodeInMemory, type NodeInMemory, raiseFeatureLevel } from '../testing/node-in-memory.ts'
import { KIND, writeU8, writeU32 } from './command.ts'
import { NAMES, nameText } from './dictionary.ts'
import { STAY_NIGHT } from './layout.ts'
import { debtOn, forEachNight, heldOn } from './nights.ts'
import { recountCharge } from './recount.ts'
import { stateDigest } from './store.ts'
import { field } from './table-fields.ts'

const PLACE = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
let node: NodeInMemory

/** 'room type, days from today, held, debt' of each night. */
function nights(): string[] {
  const { memory } = node.store
  const found: string[] = []
  forEachNight(memory, (night, day) => {
    const roomType = nameText(memory, NAMES.roomType, field(memory, night + STAY_NIGHT.roomType))
    found.push(`${roomType} ${day - TODAY}: ${heldOn(memory, night)} ${debtOn(memory, night)}`)
  })
  return found.sort()
}

const date = formatDay(TODAY + 1)
const night = { propertyId: 'p', roomType: 'double', date }
const left = () => (ask(node, 'GETPROPROOMDAY', night).result as { availability?: number }).availability

/** Five rooms on two nights. On hold are four doubles and one suite; the source counts one double on the first night. */
beforeEach(() => {
  node = createNodeInMemory(TODAY, 48 << 20)
  raiseFeatureLevel(node)
  ask(node, 'SETPROP', { ...PLACE, propertyId: 'p', amenities: [] })
  for (const roomType of ['double', 'suite']) {
    for (const n of [1, 2]) {
      const given = { availability: 5, finalPrice: 1, rateFeatures: [] }
      ask(node, 'SETROOMPKG', { propertyId: 'p', roomType, date: formatDay(TODAY + n), ...given })
    }
  }
  const line = (roomType: string, rooms: number, count: number) => ({
    ...{ propertyId: 'p', roomType, arrival: date, nights: count, rooms },
  })
  ask(node, 'HOLDSTAY', { stayId: 'a', seconds: 900, lines: [line('double', 2, 2)] })
  ask(node, 'HOLDSTAY', { stayId: 'b', seconds: 900, lines: [line('double', 2, 2), line('suite', 1, 1)] })
  ask(node, 'SETROOMAVL', { ...night, amount: 1 })
})

const OTHERS = ['double 2: 4 0', 'suite 1: 1 0']

test('a source that counts fewer rooms than are held leaves none for sale, and debt', () => {
  expect([nights(), left()]).toEqual([['double 1: 4 3', ...OTHERS], 0])
  expect(node.store.writer.ledger.oversold.size).toBe(1)
})

describe('that debt', () => {
  test.each<[string, () => unknown, string[], number | undefined]>([
    ['is lower with each room more', () => ask(node, 'INCROOMAVL', { ...night, amount: 2 }), ['double 1: 4 1'], 0],
    ['is paid before a room is for sale', () => ask(node, 'INCROOMAVL', { ...night, amount: 4 }), ['double 1: 4 0'], 1],
    [
      'ends when the source counts as many',
      () => ask(node, 'SETROOMAVL', { ...night, amount: 4 }),
      ['double 1: 4 0'],
      0,
    ],
    ['ends when the source counts more', () => ask(node, 'SETROOMAVL', { ...night, amount: 6 }), ['double 1: 4 0'], 2],
    ['follows a package', () => ask(node, 'SETROOMPKG', { ...night, availability: 2 }), ['double 1: 4 2'], 0],
    ['stays with another price', () => ask(node, 'SETROOMPKG', { ...night, finalPrice: 9 }), ['double 1: 4 3'], 0],
    ['ends with the package', () => ask(node, 'DELROOMDAY', night), ['double 1: 4 0'], undefined],
    ['ends with the date', () => ask(node, 'DELPROPDAY', { propertyId: 'p', date }), ['double 1: 4 0'], undefined],
    [
      'ends with the room type',
      () => ask(node, 'DELPROPROOM', { propertyId: 'p', roomType: 'double' }),
      ['double 1: 4 0'],
      undefined,
    ],
  ])('%s', (_, change, expected, forSale) => {
    change()
    expect([nights(), left()]).toEqual([[...expected, ...OTHERS], forSale])
    expect(node.store.writer.ledger.oversold.size).toBe(expected[0]?.endsWith(' 0') ? 0 : 1)
    expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
  })

  test('is paid by a hold that ends', () => {
    ask(node, 'RELEASESTAY', { stayId: 'a' })
    expect([nights(), left()]).toEqual([['double 1: 2 1', 'double 2: 2 0', 'suite 1: 1 0'], 0])
    ask(node, 'RELEASESTAY', { stayId: 'b' })
    expect([nights(), left()]).toEqual([[], 1])
  })
})

describe('nights with holds are forgotten', () => {
  test.each<[string, () => unknown, string[]]>([
    ['with their property', () => ask(node, 'DELPROP', { propertyId: 'p' }), []],
    ['with their segment', () => ask(node, 'DELSEGMENT', { segment: 's' }), []],
    [
      'when they have passed',
      () =>
        applyOwn(node, KIND.dropBefore, (writer) => {
          writeU32(writer, TODAY + 2)
          writeU8(writer, 0)
        }),
      ['double 2: 4 0'],
    ],
  ])('%s', (_, change, expected) => {
    change()
    expect(nights()).toEqual(expected)
    expect([node.store.writer.ledger.nights.size, node.store.writer.ledger.oversold.size]).toEqual([expected.length, 0])
    expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
  })
})

test('a package that is set again starts from its new value, less what is still held', () => {
  ask(node, 'DELROOMDAY', night)
  ask(node, 'SETROOMPKG', { ...night, availability: 7, finalPrice: 1 })
  expect([nights(), left()]).toEqual([['double 1: 4 0', ...OTHERS], 3])
})

test('an increase beyond 255 counts what is held, not what is missing', () => {
  ask(node, 'SETROOMAVL', { ...night, amount: 200 })
  expect(left()).toBe(196)
  expect(ask(node, 'INCROOMAVL', { ...night, amount: 56 }).error).toBe('OVERFLOW')
  expect(ask(node, 'INCROOMAVL', { ...night, amount: 55 })).toMatchObject({ error: '', value: 251 })
})

test('the digest has what is held and missing on a night, not how it came about', () => {
  const digest = () => stateDigest(node.store.memory)
  const before = digest()
  ask(node, 'SETROOMAVL', { ...night, amount: 2 })
  const less = digest()
  ask(node, 'SETROOMAVL', { ...night, amount: 1 })
  expect(digest()).toEqual(before)
  ask(node, 'SETROOMAVL', { ...night, amount: 9 })
  ask(node, 'SETROOMAVL', { ...night, amount: 2 })
  expect(digest()).toEqual(less)
  // Both sell no room: only the debt differs.
  expect([less.lo === before.lo, less.hi === before.hi]).toEqual([false, false])
})
