/** Late values of a source of record: which bookings and cancellations they do not know yet. */
import { packPropertyId } from '@vacancy/shared'
import { STAY_STATE } from '@vacancy/shared/wire'
import { createRandom } from '@vacancy/testkit/random'
import { beforeEach, describe, expect, test } from 'vitest'
import { baseAsOf, enterAsOf, knownFrom, noteDropped } from './as-of.ts'
import { STATE } from './layout.ts'
import {
  changeStay,
  createStay,
  findStayProperty,
  type LineRecord,
  nextGeneration,
  type StayRecord,
  stayPropertyOf,
} from './stays.ts'
import { AS_OF_LEVEL, clearStore, createStore, setState } from './store.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const DAY = 20_000
const ROOM = 2
const idOf = (text: string) => packPropertyId(text) as Uint8Array
const store = createStore({ memoryBytes: 16 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax: 1 << 20 })
const { memory } = store

beforeEach(() => {
  clearStore(store)
  setState(store, STATE.featureLevel, AS_OF_LEVEL)
})

const { booked, held, released, expired } = STAY_STATE
/** Booked at index 10, and in its state since index 20. */
const RECORD: StayRecord = {
  ...{ state: booked, deadlineMs: 0, total: 0, index: 20, timeMs: 5, bookedIndex: 10, heldSinceMs: 0 },
}
let stays = 0
function add(record: Partial<StayRecord>, ...lines: Partial<LineRecord & { property: string }>[]): number {
  const id = idOf(`stay${stays++}`)
  const records = (lines.length === 0 ? [{}] : lines).map(({ property = 'p', ...rest }) => ({
    ...{ id: idOf(property), idStart: 0, roomType: ROOM, arrival: DAY, nights: 2, rooms: 3, flags: 0 },
    ...rest,
  }))
  return createStay(store, id, 0, { ...RECORD, ...record }, new Uint8Array(0), records)
}

/** What a value of `value` as of `index` means now. */
function base(index: number, value = 100, day = DAY, roomType = ROOM): number {
  return baseAsOf(store, stayPropertyOf(store, idOf('p'), 0), roomType, day, value, index)
}

describe('a late value', () => {
  test.each<[string, Partial<StayRecord>, [number, number][]]>([
    [
      'lacks rooms booked after its index',
      { state: booked, bookedIndex: 10 },
      [
        [9, 97],
        [10, 100],
        [11, 100],
      ],
    ],
    [
      'is not changed by a hold',
      { state: held, bookedIndex: 0, heldSinceMs: 5 },
      [
        [0, 100],
        [20, 100],
      ],
    ],
    [
      'is not changed by a hold that expired',
      { state: expired, bookedIndex: 0, heldSinceMs: 5 },
      [
        [0, 100],
        [19, 100],
      ],
    ],
    [
      'is not changed by a hold that was released',
      { state: released, bookedIndex: 0, heldSinceMs: 5 },
      [
        [0, 100],
        [19, 100],
      ],
    ],
    [
      'has rooms back whose booking it knows and whose release it does not',
      { state: released, bookedIndex: 10 },
      [
        [9, 100],
        [10, 103],
        [19, 103],
        [20, 100],
        [21, 100],
      ],
    ],
    [
      'has rooms back that were held first, and booked',
      { state: released, bookedIndex: 10, heldSinceMs: 5 },
      [
        [9, 100],
        [10, 103],
        [19, 103],
        [20, 100],
      ],
    ],
    [
      'has rooms back of a booking that was dropped before its release',
      { state: released, bookedIndex: 0, heldSinceMs: 0 },
      [
        [0, 103],
        [19, 103],
        [20, 100],
      ],
    ],
  ])('%s', (_, record, expected) => {
    add(record)
    expect(expected.map(([index]) => [index, base(index)])).toEqual(expected)
  })

  test.each([
    [DAY - 1, 0],
    [DAY, 3],
    [DAY + 1, 3],
    [DAY + 2, 0],
  ])('of night %i lacks %i rooms of a stay of two nights', (day, rooms) => {
    add({})
    expect(base(0, 100, day)).toBe(100 - rooms)
  })

  test('is not changed by other room types, other properties and deleted properties', () => {
    add({}, { roomType: ROOM + 1 }, { property: 'q' })
    expect([base(0), base(0, 100, DAY, ROOM + 1)]).toEqual([100, 97])
    add({})
    nextGeneration(store, findStayProperty(store, idOf('p'), 0))
    expect([base(0), base(0, 100, DAY, ROOM + 1)]).toEqual([100, 100])
    add({}, { rooms: 1 })
    expect(base(0)).toBe(99)
  })

  test('of a property without stays is as it is', () => {
    const address = add({}, { property: 'q' })
    memory.u8.set(idOf('p'), address)
    expect([0, 7, 255].map((value) => baseAsOf(store, address, ROOM, DAY, value, 0))).toEqual([0, 7, 255])
  })

  test.each([
    [2, 3, 0],
    [3, 3, 0],
    [4, 3, 1],
    [255, 1, 254],
  ])('of %i rooms with %i booked since means %i', (value, rooms, expected) => {
    add({}, { rooms })
    expect(base(0, value)).toBe(expected)
  })

  test.each([
    [251, 3, 254],
    [252, 3, 255],
    [253, 3, 255],
  ])('of %i rooms with %i cancelled since means %i', (value, rooms, expected) => {
    add({ state: released }, { rooms })
    expect(base(10, value)).toBe(expected)
  })

  test('is the sum over all stays of the night', () => {
    const random = createRandom(SEED)
    let expected = 128
    for (let n = 0; n < 40; n++) {
      const bookedIndex = 1 + random.below(40)
      const rooms = 1 + random.below(3)
      const isReleased = random.below(2) === 0
      const index = isReleased ? bookedIndex + 1 + random.below(20) : bookedIndex
      add({ state: isReleased ? released : booked, bookedIndex, index }, { rooms }, { rooms: 9, arrival: DAY + 5 })
      if (!isReleased && bookedIndex > 25) expected -= rooms
      if (isReleased && bookedIndex <= 25 && index > 25) expected += rooms
    }
    expect(base(25, 128), `VACANCY_SEED=${SEED}`).toBe(Math.min(255, Math.max(0, expected)))
  })
})

describe('the index from which all bookings are known', () => {
  const LATE = 3 * 2 ** 32 + 9
  test.each<[string, Partial<StayRecord>, number]>([
    ['is that of a booking that is dropped', { state: booked, index: 20 }, 20],
    ['has more than 32 bits', { state: booked, index: LATE }, LATE],
    ['is that of a release that is dropped', { state: released, index: 31 }, 31],
    ['is that of a release of a dropped booking', { state: released, bookedIndex: 0, index: 31 }, 31],
    ['is not changed by a hold that was released', { state: released, bookedIndex: 0, heldSinceMs: 5 }, 0],
    ['is not changed by a hold that expired', { state: expired, bookedIndex: 0, heldSinceMs: 5 }, 0],
    ['is not changed by an expired stay without a hold', { state: expired, bookedIndex: 0 }, 0],
    ['counts a booking at the first index', { state: booked, bookedIndex: 1, index: 1 }, 1],
  ])('%s', (_, record, expected) => {
    noteDropped(store, add(record))
    expect(knownFrom(memory)).toBe(expected)
  })

  test('never decreases', () => {
    const stay = add({})
    const seen = [20, 19, 21, 2 ** 32, 30].map((index) => {
      changeStay(store, stay, { index })
      noteDropped(store, stay)
      return knownFrom(memory)
    })
    expect(seen).toEqual([20, 20, 21, 2 ** 32, 2 ** 32])
  })

  test.each([0, 1, 2])('is not kept at level %i', (level) => {
    setState(store, STATE.featureLevel, level)
    noteDropped(store, add({}))
    expect(knownFrom(memory)).toBe(0)
  })

  test.each([
    [0, 0],
    [1, 0],
    [2, LATE],
    [3, 0],
  ])('begins, when level %i is raised, at %i', (level, expected) => {
    setState(store, STATE.featureLevel, level)
    enterAsOf(store, LATE)
    expect(knownFrom(memory)).toBe(expected)
  })
})
