/** Commands on packages: which values they set, what they refuse at the limits, and that a refusal changes nothing. */
import { formatDay, LIMITS } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import { TODAY } from '../testing/model.ts'
import {
  applyOwn,
  ask,
  createNodeInMemory,
  type LooseFields,
  raiseFeatureLevel,
  restartEmpty,
  setMemoryBudget,
} from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import './apply-packages.ts'
import { growthLeft } from './charge.ts'
import { KIND, writeU8, writeU32 } from './command.ts'
import { STATE, STATE_START } from './layout.ts'
import { recountCharge } from './recount.ts'
import { countsOf, stateDigest } from './store.ts'

const PLACE = { segment: 's', area: 'a', propertyType: 't', category: 'c', stars: 1, latitude: 1, longitude: 1 }
const date = formatDay(TODAY + 1)
const NIGHT = { propertyId: 'p', roomType: 'double', date }

const node = createNodeInMemory(TODAY, 48 << 20)
beforeEach(() => {
  restartEmpty(node, TODAY)
  // The digest contains shard time, which a refused command advances, too.
  node.timeMs = TODAY * 86_400_000 + 1
  raiseFeatureLevel(node)
  ask(node, 'SETPROP', { ...PLACE, propertyId: 'p', amenities: [] })
})

const set = (fields: LooseFields) => ask(node, 'SETROOMPKG', { ...NIGHT, ...fields })
const seen = (fields: LooseFields = {}) => {
  const { error, result } = ask(node, 'GETPROPROOMDAY', { ...NIGHT, ...fields })
  if (error !== '') return error
  const { availability, finalPrice, rateFeatures } = result as {
    availability: number
    finalPrice: number
    rateFeatures: readonly string[]
  }
  return [availability, finalPrice, ...rateFeatures]
}
const check = () => {
  const counted = recountDigest(node.store.memory)
  expect(stateDigest(node.store.memory)).toEqual(counted.digest)
  expect(countsOf(node.store.memory).packages).toBe(counted.packages)
  expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
}

/** Applies a command that must be refused, and checks that nothing else happened. */
function refused(command: Parameters<typeof ask>[1], fields: LooseFields) {
  const before = stateDigest(node.store.memory)
  const { text } = ask(node, command, fields)
  expect(stateDigest(node.store.memory)).toEqual(before)
  check()
  return text
}

describe('a package', () => {
  test.each<[string, LooseFields, LooseFields, (number | string)[]]>([
    [
      'is created with all of its values',
      {},
      { availability: 3, finalPrice: 90, rateFeatures: ['wifi'] },
      [3, 90, 'wifi'],
    ],
    ['may have no rooms', {}, { availability: 0, finalPrice: 90 }, [0, 90]],
    ['has no rooms and the price 0 until they are given', {}, { rateFeatures: ['wifi'] }, [0, 0, 'wifi']],
    ['keeps what is not given: price and features', {}, { availability: 9 }, [9, 50, 'breakfast']],
    ['keeps what is not given: rooms and features', {}, { finalPrice: 60 }, [4, 60, 'breakfast']],
    ['keeps what is not given: rooms and price', {}, { rateFeatures: ['half_board'] }, [4, 50, 'half_board']],
    ['may lose all features', {}, { rateFeatures: [] }, [4, 50]],
    ['has the greatest price', {}, { finalPrice: LIMITS.priceMax }, [4, LIMITS.priceMax, 'breakfast']],
    ['has 255 rooms at most', {}, { availability: 255 }, [255, 50, 'breakfast']],
  ])('%s', (title, _, fields, expected) => {
    const isNew = !/keep|lose|greatest|most/.test(title)
    if (!isNew) set({ availability: 4, finalPrice: 50, rateFeatures: ['breakfast'] })
    expect(set(fields).error).toBe('')
    expect(seen()).toEqual(expected)
    check()
  })

  test('of another night or room type is another one', () => {
    set({ availability: 1, finalPrice: 1 })
    set({ availability: 2, finalPrice: 2, date: formatDay(TODAY + 2) })
    set({ availability: 3, finalPrice: 3, roomType: 'suite' })
    expect([seen(), seen({ date: formatDay(TODAY + 2) }), seen({ roomType: 'suite' })]).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ])
    expect(countsOf(node.store.memory).packages).toBe(3)
    check()
  })

  test.each<[string, LooseFields, string]>([
    ['an unknown property', { propertyId: 'q' }, 'NOT_FOUND'],
    ['a day that was dropped', { date: formatDay(TODAY) }, 'VALIDATION_ERROR'],
  ])('is refused for %s', (_, fields, code) => {
    applyOwn(node, KIND.dropBefore, (writer) => {
      writeU32(writer, TODAY + 1)
      writeU8(writer, 1)
    })
    expect(refused('SETROOMPKG', { ...NIGHT, availability: 1, finalPrice: 1, ...fields })).toMatch(code)
  })

  test(`of one room type more than ${LIMITS.roomTypesPerPropertyMax} is refused, and those that exist still change`, () => {
    for (let n = 0; n < LIMITS.roomTypesPerPropertyMax; n++) {
      expect(set({ roomType: `r${n}`, availability: 1, finalPrice: 1 }).error).toBe('')
    }
    expect(refused('SETROOMPKG', { ...NIGHT, roomType: 'one more', availability: 1, finalPrice: 1 })).not.toBe('')
    expect(set({ roomType: 'r0', availability: 2 }).error).toBe('')
    expect(seen({ roomType: 'r0' })).toEqual([2, 1])
    expect(set({ roomType: 'r1', date: formatDay(TODAY + 2), availability: 2, finalPrice: 3 }).error).toBe('')
    check()
  })

  test('that needs memory is refused above the budget; one that exists still changes', () => {
    set({ availability: 1, finalPrice: 1 })
    setMemoryBudget(node, 1 << 18)
    expect(growthLeft(node.store)).toBeLessThanOrEqual(0)
    expect(refused('SETROOMPKG', { ...NIGHT, roomType: 'suite', availability: 1, finalPrice: 1 })).toMatch(/^503/)
    expect(refused('SETROOMPKG', { ...NIGHT, date: formatDay(TODAY + 2), availability: 1, finalPrice: 1 })).toMatch(
      /^503/,
    )
    expect(set({ availability: 2, finalPrice: 2 }).error).toBe('')
    expect(seen()).toEqual([2, 2])
  })
})

describe('rooms left', () => {
  test.each<[string, number, 'SETROOMAVL' | 'INCROOMAVL' | 'DECROOMAVL', number, string, number]>([
    ['are set', 4, 'SETROOMAVL', 9, '', 9],
    ['are set to 0', 4, 'SETROOMAVL', 0, '', 0],
    ['are set to 255', 4, 'SETROOMAVL', 255, '', 255],
    ['increase', 4, 'INCROOMAVL', 3, '', 7],
    ['increase to 255', 250, 'INCROOMAVL', 5, '', 255],
    ['do not increase to 256', 250, 'INCROOMAVL', 6, 'OVERFLOW', 250],
    ['decrease', 4, 'DECROOMAVL', 3, '', 1],
    ['decrease to 0', 4, 'DECROOMAVL', 4, '', 0],
    ['do not decrease below 0', 4, 'DECROOMAVL', 5, 'UNDERFLOW', 4],
    ['do not decrease a sold-out night', 0, 'DECROOMAVL', 1, 'UNDERFLOW', 0],
  ])('%s: %i, %s %i', (_, before, command, amount, error, after) => {
    set({ availability: before, finalPrice: 50, rateFeatures: ['half_board'] })
    expect(ask(node, command, { ...NIGHT, amount })).toMatchObject({ error, value: after })
    expect(seen()).toEqual([after, 50, 'half_board'])
    check()
  })

  test.each(['SETROOMAVL', 'INCROOMAVL', 'DECROOMAVL', 'DELROOMDAY'] as const)(
    '%s names what is missing',
    (command) => {
      set({ availability: 1, finalPrice: 1 })
      const amount = command === 'DELROOMDAY' ? {} : { amount: 1 }
      const texts = [{ propertyId: 'q' }, { roomType: 'suite' }, { date: formatDay(TODAY + 2) }].map((fields) =>
        refused(command, { ...NIGHT, ...amount, ...fields }),
      )
      expect(texts.map((text) => /property|room type|package/i.exec(text ?? '')?.[0]?.toLowerCase())).toEqual([
        ...['property', 'room type', 'package'],
      ])
      // A plane that another property has on the night.
      ask(node, 'SETPROP', { ...PLACE, propertyId: 'q', amenities: [] })
      set({ propertyId: 'q', date: formatDay(TODAY + 2), availability: 1, finalPrice: 1 })
      expect(refused(command, { ...NIGHT, ...amount, date: formatDay(TODAY + 2) })).toMatch(/package/i)
    },
  )
})

describe('deleting', () => {
  beforeEach(() => {
    for (const roomType of ['double', 'suite']) {
      for (const night of [1, 2]) set({ roomType, date: formatDay(TODAY + night), availability: 1, finalPrice: 1 })
    }
    set({ roomType: 'other', date: formatDay(TODAY + 2), availability: 1, finalPrice: 1 })
  })

  test('a package leaves the other ones', () => {
    expect(ask(node, 'DELROOMDAY', NIGHT).error).toBe('')
    expect([seen(), seen({ roomType: 'suite' }), seen({ date: formatDay(TODAY + 2) })]).toEqual([
      ...['NOT_FOUND', [1, 1], [1, 1]],
    ])
    expect(countsOf(node.store.memory).packages).toBe(4)
    check()
  })

  test('a date deletes the packages of all room types', () => {
    expect(ask(node, 'DELPROPDAY', { propertyId: 'p', date }).error).toBe('')
    expect([seen(), seen({ roomType: 'suite' }), seen({ date: formatDay(TODAY + 2) })]).toEqual([
      ...['NOT_FOUND', 'NOT_FOUND', [1, 1]],
    ])
    expect(countsOf(node.store.memory).packages).toBe(3)
    // Nothing is left to delete, which is no error.
    expect(ask(node, 'DELPROPDAY', { propertyId: 'p', date }).error).toBe('')
    check()
  })

  test('a date of an unknown property is refused', () => {
    expect(refused('DELPROPDAY', { propertyId: 'q', date })).not.toBe('')
  })

  test.each([
    ['DELPROPDAY', { propertyId: 'p' }],
    ['DELROOMDAY', { propertyId: 'p', roomType: 'double' }],
    ['SETROOMAVL', { propertyId: 'p', roomType: 'double', amount: 1 }],
  ] as const)('a day that was dropped is refused: %s', (command, fields) => {
    applyOwn(node, KIND.dropBefore, (writer) => {
      writeU32(writer, TODAY + 2)
      writeU8(writer, 1)
    })
    expect(countsOf(node.store.memory).packages).toBe(3)
    expect(refused(command, { ...fields, date })).toMatch('VALIDATION_ERROR')
  })
})

describe('with rooms on hold', () => {
  const hold = (stayId: string, rooms: number) => {
    const line = { propertyId: 'p', roomType: 'double', arrival: date, nights: 1, rooms }
    expect(ask(node, 'HOLDSTAY', { stayId, seconds: 900, lines: [line] }).error).toBe('')
  }
  beforeEach(() => {
    set({ availability: 5, finalPrice: 50, rateFeatures: ['wifi'] })
    hold('h', 3)
    expect(seen()).toEqual([2, 50, 'wifi'])
  })

  test.each<[string, Parameters<typeof ask>[1], LooseFields, number]>([
    ['a package counts those that are held', 'SETROOMPKG', { availability: 9 }, 6],
    ['a package with fewer rooms than are held has none left', 'SETROOMPKG', { availability: 2 }, 0],
    ['another price leaves the rooms alone', 'SETROOMPKG', { finalPrice: 50 }, 2],
    ['a source counts those that are held', 'SETROOMAVL', { amount: 9 }, 6],
    ['an increase adds to what is left', 'INCROOMAVL', { amount: 4 }, 6],
    ['an increase up to 255 with those that are held', 'INCROOMAVL', { amount: 250 }, 252],
    ['an increase beyond is refused', 'INCROOMAVL', { amount: 251 }, 2],
    ['a decrease takes from what is left', 'DECROOMAVL', { amount: 2 }, 0],
    ['a decrease beyond is refused', 'DECROOMAVL', { amount: 3 }, 2],
  ])('%s', (_, command, fields, left) => {
    ask(node, command, { ...NIGHT, ...fields })
    expect(seen()).toEqual([left, 50, 'wifi'])
    expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
  })

  test.each([
    [0, 1, 0],
    [2, 1, 0],
    [2, 3, 2],
    [3, 1, 1],
  ])('rooms that are missing are paid first: %i counted, %i more, %i left', (counted, more, left) => {
    ask(node, 'SETROOMAVL', { ...NIGHT, amount: counted })
    expect(seen()).toEqual([0, 50, 'wifi'])
    ask(node, 'INCROOMAVL', { ...NIGHT, amount: more })
    expect(seen()).toEqual([left, 50, 'wifi'])
  })

  test.each<[string, Parameters<typeof ask>[1], LooseFields]>([
    ['a package', 'DELROOMDAY', NIGHT],
    ['a date', 'DELPROPDAY', { propertyId: 'p', date }],
  ])('nothing is missing any more when %s is deleted', (_, command, fields) => {
    ask(node, 'SETROOMAVL', { ...NIGHT, amount: 1 })
    expect(node.store.writer.ledger.oversold.size).toBe(1)
    ask(node, command, fields)
    expect(node.store.writer.ledger.oversold.size).toBe(0)
    expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
  })
})

describe('a source that knows the bookings up to an index', () => {
  const book = (stayId: string) => {
    const line = { propertyId: 'p', roomType: 'double', arrival: date, nights: 1, rooms: 2 }
    expect(ask(node, 'BOOKSTAY', { stayId, lines: [line] }).error).toBe('')
    return node.index
  }

  test('sets what is left after the bookings that it does not know', () => {
    set({ availability: 9, finalPrice: 50 })
    const first = book('b1')
    const second = book('b2')
    const left = [second, first, first - 1].flatMap((asOf) => {
      ask(node, 'SETROOMAVL', { ...NIGHT, amount: 8, asOf })
      const rooms = seen()[0]
      set({ availability: 7, asOf })
      return [rooms, seen()[0]]
    })
    expect(left).toEqual([8, 7, 6, 5, 4, 3])
    expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
  })

  test('is refused when bookings since then may be forgotten', () => {
    set({ availability: 9, finalPrice: 50 })
    const { memory } = node.store
    memory.u32[(STATE_START >>> 2) + STATE.knownFromLow] = 40
    for (const [command, value] of [
      ['SETROOMAVL', { amount: 8 }],
      ['SETROOMPKG', { availability: 8 }],
    ] as const) {
      const { error, text } = ask(node, command, { ...NIGHT, ...value, asOf: 39 })
      expect([error, text]).toEqual(['TOO_OLD', expect.stringContaining('oldest=40')])
      expect(seen()).toEqual([9, 50])
      expect(ask(node, command, { ...NIGHT, ...value, asOf: 40 }).error).toBe('')
      expect(seen()).toEqual([8, 50])
      set({ availability: 9 })
    }
  })
})
