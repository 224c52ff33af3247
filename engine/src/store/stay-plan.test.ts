/** Plans of stays: what a command takes and returns on copies of nights, and what is written in one step. */
import { formatDay } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import { TODAY } from '../testing/model.ts'
import { ask, createNodeInMemory, raiseFeatureLevel, restartEmpty } from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import { findName, NAMES } from './dictionary.ts'
import { PROPERTY, ROOMS, STATE } from './layout.ts'
import { debtOn, heldOn, nightOf, setNight } from './nights.ts'
import { nightsOfRow } from './planes.ts'
import { recountCharge } from './recount.ts'
import { findRoom, forEachProperty, segmentOf } from './segment.ts'
import {
  beginPlan,
  commit,
  createStayPlan,
  endNights,
  type Fate,
  hasPackage,
  nightIn,
  type PlannedNight,
  planEnd,
  takeRooms,
} from './stay-plan.ts'
import { stayPropertyOf } from './stays.ts'
import { attachMemory, setState, stateDigest } from './store.ts'
import { field } from './table-fields.ts'
import { versionOf } from './version.ts'

const PLACE = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
const node = createNodeInMemory(TODAY, 48 << 20)
const { store, context } = node
const { memory } = store
const plan = createStayPlan()
let properties: number[]

/** Two properties with two room types and packages on four nights: 5 rooms at a price of 10, 11 and so on. */
beforeEach(() => {
  restartEmpty(node, TODAY)
  raiseFeatureLevel(node)
  for (const propertyId of ['p', 'q']) {
    ask(node, 'SETPROP', { ...PLACE, propertyId, amenities: [] })
    for (let n = 0; n < 4; n++) {
      const night = { propertyId, date: formatDay(TODAY + n), availability: 5, finalPrice: 10 + n }
      for (const roomType of ['double', 'suite']) {
        ask(node, 'SETROOMPKG', { ...night, roomType, rateFeatures: ['wifi'] })
      }
    }
  }
  properties = []
  forEachProperty(memory, segmentOf(memory, 0), (property) => properties.push(property))
  beginPlan(plan)
})

const typeOf = (roomType: string) => findName(memory, NAMES.roomType, Buffer.from(roomType), 0, roomType.length)
const roomOf = (property: number, roomType: number) => findRoom(memory, property, roomType)
function planned(day: number, roomType = 'double', of = 0): PlannedNight {
  const property = properties[of] as number
  return nightIn(plan, store, property, roomOf(property, typeOf(roomType)), typeOf(roomType), TODAY + day)
}

/** Sets what is on hold and owed on a night of the first property, like a hold and a value of the source. */
function setHeld(day: number, held: number, debt: number): void {
  const id = (properties[0] as number) + PROPERTY.id
  setNight(store, stayPropertyOf(store, memory.u8, id), typeOf('double'), TODAY + day, held, debt)
}
function heldAndDebt(day: number): number[] {
  const night = nightOf(store, (properties[0] as number) + PROPERTY.id, typeOf('double'), TODAY + day)
  return [heldOn(memory, night), debtOn(memory, night)]
}
/** Rooms left of each night with a package. */
function lefts(roomType = 'double', of = 0): { [night: number]: number } {
  const entry = roomOf(properties[of] as number, typeOf(roomType))
  const nights = nightsOfRow(memory, field(memory, entry + ROOMS.table), field(memory, entry + ROOMS.row))
  return Object.fromEntries(nights.map(({ day, lo }) => [day - TODAY, lo & 0xff]))
}
const end = (fate: Fate, day: number, nights: number, rooms: number) =>
  endNights(plan, store, properties[0] as number, typeOf('double'), TODAY + day, nights, rooms, fate)
function expectSound(): void {
  // The nights of the ledger have a share of the digest that is not counted again.
  if (store.writer.ledger.nights.size === 0) expect(stateDigest(memory)).toEqual(recountDigest(memory).digest)
  expect(store.writer.charge.bytes).toBe(recountCharge(memory))
  expect(store.writer.marks.size).toBe(0)
  // No word at the beginning of the memory was taken for a table.
  expect(() => attachMemory(memory.wasm)).not.toThrow()
}

describe('a night in the plan', () => {
  test('is one copy for each property, room type and day', () => {
    const nights = [planned(1), planned(2), planned(1, 'suite'), planned(1, 'double', 1), planned(2, 'suite', 1)]
    expect([planned(1), planned(2), planned(1, 'suite'), planned(1, 'double', 1), planned(2, 'suite', 1)]).toEqual(
      nights,
    )
    expect(nights.every((night, n) => night === plan.nights[n])).toBe(true)
    expect([plan.count, new Set(nights).size]).toEqual([5, 5])
    beginPlan(plan)
    expect([plan.count, plan.overflowed]).toEqual([0, 0])
    expect([planned(1) === nights[0], plan.count]).toEqual([false, 1])
  })

  test('starts with what is stored', () => {
    setHeld(1, 3, 2)
    const [property, roomType] = [properties[0], typeOf('double')]
    expect(planned(1)).toMatchObject({
      ...{ property, roomType, day: TODAY + 1, left: 5, held: 3, debt: 2, heldBefore: 3, debtBefore: 2 },
      ...{ hi: ~11 >>> 0, offered: 0, wanted: 0 },
    })
    expect([planned(1).lo & 0xff, planned(1).lo > 255]).toEqual([5, true])
    expect(planned(2)).toMatchObject({ left: 5, held: 0, debt: 0, heldBefore: 0, debtBefore: 0, hi: ~12 >>> 0 })
    expect(hasPackage(planned(1))).toBe(true)
  })

  test('has no rooms without a package, without a room type and before the first day that is kept', () => {
    setHeld(9, 4, 0)
    ask(node, 'DELROOMDAY', { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 3) })
    setState(store, STATE.droppedBefore, TODAY + 1)
    const none = nightIn(plan, store, properties[0] as number, 0, typeOf('double'), TODAY + 2)
    for (const night of [none, planned(9), planned(3), planned(0)]) {
      expect([hasPackage(night), night.left, night.lo, night.hi]).toEqual([false, 0, 0, 0])
    }
    expect(planned(9).held).toBe(4)
    expect([hasPackage(planned(1)), planned(1).left]).toEqual([true, 5])
  })
})

test('rooms are taken while there are enough, and those wanted are counted in any case', () => {
  const night = planned(1)
  const take = (rooms: number, isHold: boolean) => {
    const isTaken = takeRooms(night, rooms, isHold)
    return [isTaken, night.left, night.held, night.offered, night.wanted]
  }
  expect(take(2, true)).toEqual([true, 3, 2, 5, 2])
  expect(take(1, false)).toEqual([true, 2, 2, 5, 3])
  expect(take(3, true)).toEqual([false, 2, 2, 5, 6])
  expect(take(2, true)).toEqual([true, 0, 4, 5, 8])
  expect(take(1, false)).toEqual([false, 0, 4, 5, 9])
})

describe('rooms come back', () => {
  test.each<[Fate, string, number[], number, number[]]>([
    // Left, held and debt before; rooms; left, held, debt after, and how many are too many.
    ['release-held', 'to the rooms left', [5, 3, 0], 2, [7, 1, 0, 0]],
    ['release-held', 'no more than are held', [5, 3, 0], 4, [8, 0, 0, 0]],
    ['release-held', 'first for what is owed', [0, 4, 3], 4, [1, 0, 0, 0]],
    ['release-held', 'only for what is owed', [0, 4, 3], 2, [0, 2, 1, 0]],
    ['release-held', 'exactly what is owed', [0, 4, 3], 3, [0, 1, 0, 0]],
    ['release-booked', 'to the rooms left', [5, 3, 0], 2, [7, 3, 0, 0]],
    ['release-booked', 'first for what is owed', [0, 4, 3], 4, [1, 4, 0, 0]],
    ['release-booked', 'up to 255 with those on hold', [250, 3, 0], 2, [252, 3, 0, 0]],
    ['release-booked', 'not above 255 with those on hold', [250, 3, 0], 5, [252, 3, 0, 3]],
    ['release-booked', 'less what is owed', [253, 4, 2], 2, [253, 4, 2, 2]],
    ['confirm', 'never when they are booked', [5, 3, 0], 2, [5, 1, 0, 0]],
    ['confirm', 'never, however many are held', [5, 3, 1], 4, [5, 0, 1, 0]],
  ])('%s: %s', (fate, _, [left = 0, held = 0, debt = 0], rooms, expected) => {
    Object.assign(planned(1), { left, held, debt })
    const first = { ...planned(2) }
    end(fate, 1, 1, rooms)
    const night = planned(1)
    expect([night.left, night.held, night.debt, plan.overflowed]).toEqual(expected)
    expect(planned(2)).toEqual(first)
  })

  test('on each night of a line, from the first one that is kept', () => {
    setState(store, STATE.droppedBefore, TODAY + 1)
    end('release-booked', 0, 3, 1)
    expect([plan.count, planned(1).left, planned(2).left]).toEqual([2, 6, 6])
    expect([planned(3).left, plan.count]).toEqual([5, 3])
  })

  test('nowhere on a night without a package, where what is held still ends', () => {
    setHeld(9, 4, 0)
    end('release-booked', 9, 1, 1)
    expect([planned(9).left, planned(9).held, plan.overflowed]).toEqual([0, 4, 0])
    end('release-held', 9, 1, 3)
    expect([planned(9).left, planned(9).held]).toEqual([0, 1])
  })
})

describe('a plan that is made', () => {
  test('writes the rooms left, what is held and what is owed, and nothing else', () => {
    setHeld(1, 2, 1)
    const [words, suites] = [nightsOf('double'), nightsOf('suite')]
    takeRooms(planned(1), 2, true)
    takeRooms(planned(2), 5, false)
    planned(3)
    planned(1, 'suite')
    Object.assign(planned(1), { debt: 0 })
    commit(context, plan)
    expect(lefts()).toEqual({ 0: 5, 1: 3, 2: 0, 3: 5 })
    expect([heldAndDebt(1), heldAndDebt(2), heldAndDebt(3)]).toEqual([
      [4, 0],
      [0, 0],
      [0, 0],
    ])
    // Prices and features are those of before.
    expect(nightsOf('double').map(({ lo, hi }) => [lo >>> 8, hi])).toEqual(words.map(({ lo, hi }) => [lo >>> 8, hi]))
    expect([nightsOf('suite'), lefts('double', 1)]).toEqual([suites, { 0: 5, 1: 5, 2: 5, 3: 5 }])
    expectSound()
  })

  test('takes rooms of two tables, whose readers meet another version', () => {
    const tables = ['double', 'suite'].map((each) => planned(1, each).table)
    const before = tables.map((table) => versionOf(memory, table))
    for (const each of ['double', 'suite']) takeRooms(planned(1, each), 1, false)
    commit(context, plan)
    const after = tables.map((table) => versionOf(memory, table))
    expect(after.every((version, n) => version > 0 && version !== before[n])).toBe(true)
    expect([lefts('double')[1], lefts('suite')[1]]).toEqual([4, 4])
    expectSound()
  })

  test('forgets a night on which nothing is held any more, and owes nothing without a package', () => {
    setHeld(1, 2, 0)
    setHeld(9, 2, 0)
    end('release-held', 1, 1, 2)
    end('release-held', 9, 1, 1)
    Object.assign(planned(9), { debt: 3 })
    commit(context, plan)
    expect([heldAndDebt(1), heldAndDebt(9), store.writer.ledger.nights.size]).toEqual([[0, 0], [1, 0], 1])
    expect(lefts()[1]).toBe(7)
    expectSound()
    beginPlan(plan)
    end('release-held', 9, 1, 1)
    commit(context, plan)
    expectSound()
  })

  test('counts the rooms that were too many', () => {
    const { counts } = store.writer.ledger
    const before = counts.overflowed
    Object.assign(planned(1), { left: 250 })
    end('release-booked', 1, 1, 9)
    commit(context, plan)
    expect([counts.overflowed - before, lefts()[1]]).toEqual([4, 255])
  })

  test('keeps no hold of a property that the ledger does not know', () => {
    takeRooms(planned(1), 2, true)
    commit(context, plan)
    expect([lefts()[1], heldAndDebt(1), store.writer.ledger.nights.size]).toEqual([3, [0, 0], 0])
  })
})

function nightsOf(roomType: string) {
  const entry = roomOf(properties[0] as number, typeOf(roomType))
  return nightsOfRow(memory, field(memory, entry + ROOMS.table), field(memory, entry + ROOMS.row))
}

describe('the end of a stay', () => {
  const book = (nights: number) => {
    const line = { propertyId: 'p', arrival: formatDay(TODAY + 1), nights, rooms: 2 }
    const lines = [
      { ...line, roomType: 'double' },
      { ...line, roomType: 'suite', rooms: 1, arrival: formatDay(TODAY) },
    ]
    expect(ask(node, 'BOOKSTAY', { stayId: 'x', lines }).error).toBe('')
    return [...store.writer.ledger.stays.values()][0] as number
  }

  test('returns the rooms of all its lines', () => {
    const stay = book(2)
    planEnd(plan, store, stay, 'release-booked')
    expect(plan.count).toBe(4)
    commit(context, plan)
    expect([lefts(), lefts('suite')]).toEqual([
      { 0: 5, 1: 5, 2: 5, 3: 5 },
      { 0: 5, 1: 5, 2: 5, 3: 5 },
    ])
  })

  test('concerns no property of the same id that was created later, and none that is gone', () => {
    const stay = book(2)
    ask(node, 'DELPROP', { propertyId: 'p' })
    planEnd(plan, store, stay, 'release-booked')
    ask(node, 'SETPROP', { ...PLACE, propertyId: 'p', amenities: [] })
    planEnd(plan, store, stay, 'release-booked')
    expect(plan.count).toBe(0)
  })
})
