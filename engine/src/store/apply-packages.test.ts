/** Which values SETROOMPKG sets, and what is refused at the limits without any change. */
import { formatDay, LIMITS } from '@vacancy/shared'
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
import './apply-packages.ts'
import { growthLeft } from './charge.ts'
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
