/**
 * Stays over time (docs/design/stays.md#rules): changes that are abandoned, guests who leave early, ids that are used
 * again, records that are forgotten, and refreshes of what is on hold.
 */

import { formatDay } from '@vacancy/shared'
import type { StayLine } from '@vacancy/shared/wire'
import { beforeEach, describe, expect, test } from 'vitest'
import { copyOf, loadDataOf } from '../testing/copied-node.ts'
import { TODAY } from '../testing/model.ts'
import {
  type Answer,
  applyCommandOf,
  applyOwn,
  ask,
  createNodeInMemory,
  type NodeInMemory,
  raiseFeatureLevel,
  setMemoryBudget,
} from '../testing/node-in-memory.ts'
import { KIND, writeU8, writeU32 } from './command.ts'
import { recountCharge } from './recount.ts'
import { encodeSetting, staySettings } from './stay-settings.ts'
import { stateDigest } from './store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const PLACE = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
let node: NodeInMemory

/** Nights 0 to 19 of one room type. */
function fill(propertyId: string, rooms: number): void {
  ask(node, 'SETPROP', { ...PLACE, propertyId, amenities: [] })
  for (let n = 0; n < 20; n++) setRooms(rooms, n, propertyId)
}

function setRooms(rooms: number, n: number, propertyId = 'p'): void {
  const night = { propertyId, roomType: 'double', date: formatDay(TODAY + n) }
  ask(node, 'SETROOMPKG', { ...night, availability: rooms, finalPrice: 10 })
}

beforeEach(() => {
  node = createNodeInMemory(TODAY, 48 << 20)
  raiseFeatureLevel(node)
  node.timeMs = TODAY * DAY_MS + HOUR_MS
  fill('p', 1)
})

const line = (n: number, nights = 1, rest: Partial<StayLine> = {}): StayLine => ({
  ...{ propertyId: 'p', roomType: 'double', arrival: formatDay(TODAY + n), nights, rooms: 1 },
  ...rest,
})
const hold = (stayId: string, lines: StayLine[], rest: object = {}) =>
  ask(node, 'HOLDSTAY', { stayId, seconds: 600, lines, ...rest })
const book = (stayId: string, lines: StayLine[], rest: object = {}) => ask(node, 'BOOKSTAY', { stayId, lines, ...rest })
const confirm = (stayId: string, rest: object = {}) => ask(node, 'CONFIRMSTAY', { stayId, ...rest })
const release = (stayId: string, rest: object = {}) => ask(node, 'RELEASESTAY', { stayId, ...rest })
const stateOf = (answer: Answer) => (answer.result as { state?: string }).state ?? answer.error
const getState = (stayId: string) => stateOf(ask(node, 'GETSTAY', { stayId }))
const indexOf = (answer: Answer) => (answer.result as { index?: number }).index
const deadlineOf = (answer: Answer) => (answer.result as { deadlineMs?: number }).deadlineMs
const left = (n: number, propertyId = 'p') => {
  const { result } = ask(node, 'GETPROPROOMDAY', { propertyId, roomType: 'double', date: formatDay(TODAY + n) })
  return (result as { availability?: number }).availability
}
const lefts = (count: number) => Array.from({ length: count }, (_, n) => left(n + 1))
const passClock = (ms: number) => {
  node.timeMs += ms
  node.day = Math.floor(node.timeMs / DAY_MS)
}
const passTime = (ms: number) => {
  passClock(ms)
  applyOwn(node, KIND.dropBefore, (writer) => {
    writeU32(writer, node.day)
    writeU8(writer, 1)
  })
}
const digestOf = ({ store }: NodeInMemory) => stateDigest(store.memory)
/** Digests and charge, of this replica and of one that loads its snapshot. */
function expectWhole(): void {
  const { lo, hi } = digestOf(node)
  expect(digestOf(copyOf(node))).toMatchObject({ lo, hi })
  expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
}

describe('a hold that replaces a stay', () => {
  test.each(['BOOKSTAY', 'HOLDSTAY'] as const)('leaves it as it is until it is confirmed: %s', (command) => {
    ask(node, command, { stayId: 'a', lines: [line(1, 2)], ...(command === 'HOLDSTAY' && { seconds: 900 }) })
    expect(stateOf(hold('b', [line(1, 3)], { replaces: 'a' }))).toBe('held')
    expect([getState('a'), ...lefts(3)]).toEqual([command === 'BOOKSTAY' ? 'booked' : 'held', 0, 0, 0])
    expectWhole()

    expect(stateOf(confirm('b'))).toBe('booked')

    expect([getState('a'), ...lefts(4)]).toEqual(['released', 0, 0, 0, 1])
    expect(stateOf(release('b'))).toBe('released')
    expect(lefts(3)).toEqual([1, 1, 1])
    expectWhole()
  })

  test.each([
    ['expires', () => passTime(600_000)],
    ['is released', () => release('b')],
  ])('gives back only what it took itself when it %s', (_, end) => {
    book('a', [line(1, 2)])
    hold('b', [line(1, 3)], { replaces: 'a' })

    end()

    expect([getState('a'), ...lefts(3)]).toEqual(['booked', 0, 0, 1])
    expect(stateOf(book('c', [line(1, 2)]))).toBe('SOLD_OUT')
    expectWhole()
  })

  test('that has expired still replaces it when it is taken again', () => {
    book('a', [line(1, 2)])
    hold('b', [line(1, 3)], { replaces: 'a' })
    passTime(600_000)

    expect(stateOf(confirm('b', { retake: 1 }))).toBe('booked')

    expect([getState('a'), ...lefts(3)]).toEqual(['released', 0, 0, 0])
  })

  test.each([
    ['with fewer nights', [line(1, 1)], [0, 1, 1]],
    ['on other nights', [line(2, 2)], [1, 0, 0]],
    ['of another property', [line(1, 2, { propertyId: 'q' })], [1, 1, 1]],
  ])('holds what that one lacks, %s', (_, lines, after) => {
    fill('q', 1)
    book('a', [line(1, 2)])
    hold('b', lines, { replaces: 'a' })
    expect(lefts(2)).toEqual([0, 0])

    expect(stateOf(confirm('b'))).toBe('booked')

    expect(lefts(3)).toEqual(after)
    expectWhole()
  })

  test('takes all rooms by itself when that one has ended meanwhile, or is refused', () => {
    book('a', [line(1, 2)])
    hold('b', [line(1, 3)], { replaces: 'a' })
    release('a')
    expect(lefts(3)).toEqual([1, 1, 0])
    book('c', [line(1)])
    expect(stateOf(confirm('b'))).toBe('SOLD_OUT')
    expect([getState('b'), ...lefts(3)]).toEqual(['held', 0, 1, 0])

    release('c')

    expect(stateOf(confirm('b'))).toBe('booked')
    expect(lefts(3)).toEqual([0, 0, 0])
  })

  test('replaces it also after it was confirmed, but not after it was changed', () => {
    hold('a', [line(1, 2)])
    hold('b', [line(2, 2)], { replaces: 'a' })
    expect(stateOf(confirm('a'))).toBe('booked')
    expect([stateOf(confirm('b')), getState('a'), ...lefts(3)]).toEqual(['booked', 'released', 1, 0, 0])

    hold('d', [line(3, 2)], { replaces: 'b' })
    expect(stateOf(book('c', [line(2, 1)], { replaces: 'b' }))).toBe('booked')
    expect([stateOf(confirm('d')), getState('c'), ...lefts(4)]).toEqual(['booked', 'booked', 1, 0, 0, 0])
  })

  test('is one of two for the same stay: the first confirmation ends it', () => {
    book('a', [line(1, 2)])
    hold('b', [line(1, 3)], { replaces: 'a' })
    hold('c', [line(2, 1)], { replaces: 'a' })

    expect(stateOf(confirm('c'))).toBe('booked')
    expect(stateOf(confirm('b'))).toBe('SOLD_OUT')

    expect([getState('a'), getState('b'), ...lefts(3)]).toEqual(['released', 'held', 1, 0, 0])
  })

  test('gives way to another change, which then replaces the first stay', () => {
    book('a', [line(1, 2)])
    hold('b', [line(1, 3)], { replaces: 'a' })

    hold('c', [line(2, 3)], { replaces: 'b' })

    expect([getState('a'), getState('b'), ...lefts(4)]).toEqual(['booked', 'released', 0, 0, 0, 0])
    expect([stateOf(confirm('c')), getState('a'), ...lefts(4)]).toEqual(['booked', 'released', 1, 0, 0, 0])
    hold('d', [line(1, 4)], { replaces: 'c' })
    expect(stateOf(book('e', [line(4)], { replaces: 'd' }))).toBe('booked')
    expect([getState('c'), getState('d'), ...lefts(4)]).toEqual(['released', 'released', 1, 1, 1, 0])
    expectWhole()
  })

  test('keeps a cart that it replaces for as long, within a day of the first hold', () => {
    hold('a', [line(1, 2)], { seconds: 60 })
    passTime(30_000)
    const until = deadlineOf(hold('b', [line(1, 1)], { replaces: 'a', seconds: 600 }))
    expect(deadlineOf(ask(node, 'GETSTAY', { stayId: 'a' }))).toBe(until)
    expect(deadlineOf(hold('b', [line(1, 1)], { seconds: 86_400 }))).toBe(node.timeMs - 30_000 + DAY_MS)
    passTime(DAY_MS - 31_000)

    expect(stateOf(confirm('b'))).toBe('booked')
    expect(lefts(2)).toEqual([0, 1])
  })
})

test('a booking changes to one that others on hold leave it, however many rooms the source has taken back', () => {
  setRooms(2, 1)
  book('a', [line(1)])
  hold('x', [line(1)])
  setRooms(0, 1)
  expect(node.store.writer.ledger.oversold.size).toBe(1)

  expect(stateOf(book('b', [line(1, 2)], { replaces: 'a' }))).toBe('booked')

  expect(lefts(2)).toEqual([0, 0])
})

describe('a release', () => {
  test('never gives rooms that its id did not take', () => {
    expect(stateOf(book('x', [line(1, 1, { rooms: 2 })]))).toBe('SOLD_OUT')

    expect(stateOf(release('x', { lines: [line(1, 1, { rooms: 2 })] }))).toBe('NOT_FOUND')

    expect([left(1), getState('x')]).toEqual([1, 'NOT_FOUND'])
  })

  test('counts once, however late it is repeated', () => {
    book('x', [line(15)])
    for (let days = 0; days < 15; days += 3) {
      expect(stateOf(release('x', { lines: [line(15)] }))).toBe('released')
      expect(left(15)).toBe(1)
      passTime(3 * DAY_MS)
    }
  })

  test('of a booking from before stays were recorded needs a flag, and counts once', () => {
    const unrecorded = { unrecorded: 1, source: 'desk', lines: [line(1, 2)] }
    setRooms(0, 1)
    expect(stateOf(release('x', unrecorded))).toBe('released')
    expect(stateOf(release('x', unrecorded))).toBe('released')

    expect([left(1), left(2), node.store.writer.ledger.counts.unrecorded]).toEqual([1, 2, 2])
    const { result } = ask(node, 'LISTSTAYS', { propertyId: 'p' })
    expect(result).toMatchObject({ stays: [{ stayId: 'x', state: 'released', source: 'desk' }] })
    expect(ask(node, 'RELEASESTAY', { stayId: 'y', unrecorded: 1 }).error).toBe('VALIDATION_ERROR')
  })

  test('as void also excludes an expired hold from a late booking', () => {
    hold('x', [line(1)])
    passTime(600_000)

    expect(stateOf(release('x', { void: 1 }))).toBe('void')

    expect(stateOf(book('x', [line(1)]))).toBe('CONFLICT')
    expectWhole()
  })
})

describe.each([
  ['a guest', passTime],
  // Maintenance drops them hours after midnight.
  ['a guest of whom past nights are still there', passClock],
])('%s', (_, pass) => {
  beforeEach(() => {
    book('a', [line(0, 5)])
    pass(48 * HOUR_MS)
  })

  test.each([
    ['leaves early', [line(0, 3)], [1, 1]],
    ['leaves at once', [line(0, 2)], [1, 1]],
    ['stays longer', [line(0, 6)], [0, 0]],
  ])('who %s keeps the nights that have passed', (_, lines, after) => {
    expect(stateOf(book('b', lines, { replaces: 'a' }))).toBe('booked')

    expect([left(3), left(4)]).toEqual(after)
    expect([getState('a'), stateOf(release('b'))]).toEqual(['released', 'released'])
    expect([2, 3, 4].map((n) => left(n))).toEqual([1, 1, 1])
  })

  test('who changes by a hold does, too', () => {
    expect(stateOf(hold('b', [line(0, 3)], { replaces: 'a' }))).toBe('held')
    expect([stateOf(confirm('b')), left(2), left(3)]).toEqual(['booked', 0, 1])
  })

  test.each([
    ['has not had', [line(0, 3, { rooms: 2 })], { replaces: 'a' }],
    ['had under another id', [line(0, 3)], {}],
  ])('gets no past night that the stay %s', (_, lines, rest) => {
    expect(stateOf(book('b', lines, rest))).toBe('VALIDATION_ERROR')
    expect([getState('a'), left(4)]).toEqual(['booked', 0])
  })
})

describe('an id that was released', () => {
  beforeEach(() => {
    book('x', [line(15)])
    release('x')
  })

  test.each([0, 1, 5, 14])('is not booked again by a late repeat, %i days later', (days) => {
    passTime(days * DAY_MS)

    for (const send of [book, hold]) expect(stateOf(send('x', [line(15)]))).toBe('CONFLICT')
    expect(stateOf(confirm('x'))).toBe('CONFLICT')
    expect(left(15)).toBe(1)
  })

  test.each([
    ['booked', book],
    ['held', hold],
  ])('is %s again with a flag, also with other lines', (state, send) => {
    expect(stateOf(send('x', [line(16)], { reinstate: 1 }))).toBe(state)
    expect(stateOf(send('x', [line(16)], { reinstate: 1 }))).toBe(state)

    expect([left(15), left(16)]).toEqual([1, 0])
    expect(stateOf(send('x', [line(15)], { reinstate: 1 }))).toBe('CONFLICT')
    expectWhole()
  })

  test('is booked again once by a call that names its release', () => {
    const index = indexOf(ask(node, 'GETSTAY', { stayId: 'x' }))
    const again = () => stateOf(book('x', [line(15)], { reinstate: 1, releasedAt: index }))
    expect([again(), again()]).toEqual(['booked', 'booked'])
    release('x')

    expect(again()).toBe('CONFLICT')
    expect(left(15)).toBe(1)
  })

  test.each([
    ['a booking', [() => book('y', [line(16)])]],
    ['a hold', [() => hold('y', [line(16)])]],
    ['a confirmed hold', [() => hold('y', [line(16)]), () => confirm('y')]],
    ['a hold taken again', [() => hold('y', [line(16)]), () => passClock(HOUR_MS), () => confirm('y', { retake: 1 })]],
  ])('is not ended by a late repeat of the release of an earlier life: %s', (_, steps) => {
    const answers = steps.map((each): unknown => each())
    const first = { bookedAt: indexOf(answers.at(-1) as Answer) }
    expect([stateOf(release('y', first)), stateOf(release('y', first))]).toEqual(['released', 'released'])
    const second = { bookedAt: indexOf(book('y', [line(17)], { reinstate: 1 })) }

    expect(release('y', first)).toMatchObject({ error: 'CONFLICT', text: expect.stringContaining('state=booked') })
    expect([left(16), left(17)]).toEqual([1, 0])
    expect(stateOf(release('y', second))).toBe('released')
    expect(stateOf(release('y', first))).toBe('released')
    expectWhole()
  })

  test('that is void may be reinstated, too', () => {
    release('v', { void: 1 })
    passTime(200 * DAY_MS)
    expect(stateOf(book('v', [line(15)]))).toBe('CONFLICT')
    expect(ask(node, 'BOOKSTAY', { stayId: 'v', lines: [line(215)], reinstate: 1 }).error).toBe('NOT_FOUND')
  })
})

describe('a stay is remembered', () => {
  test('until 72 h after its last night: it changes in one step weeks later', () => {
    book('a', [line(15, 2)])
    passTime(14 * DAY_MS)
    expect(stateOf(book('b', [line(15, 3)], { replaces: 'a' }))).toBe('booked')
    passTime(4 * DAY_MS + 71 * HOUR_MS - HOUR_MS)
    expect([getState('a'), getState('b')]).toEqual(['NOT_FOUND', 'booked'])

    passTime(2 * HOUR_MS)

    expect(getState('b')).toBe('NOT_FOUND')
    expectWhole()
  })

  test('if it expired, for 72 h to 96 h', () => {
    hold('x', [line(15)])
    passTime(600_000)
    passTime(72 * HOUR_MS)
    expect(getState('x')).toBe('expired')

    passTime(24 * HOUR_MS)

    expect(getState('x')).toBe('NOT_FOUND')
  })

  test('within the bytes of the setting: what has ended goes first, then bookings that end soonest', () => {
    fill('p', 100)
    applyCommandOf(node, KIND.setting, encodeSetting('stays_bytes', 1_500))
    book('late', [line(18)])
    book('soon', [line(9)])
    book('ended', [line(16)])
    release('ended')
    hold('expired', [line(3)], { seconds: 10 })
    passTime(10_000)
    passTime(2 * HOUR_MS)
    const known = () => ['expired', 'ended', 'soon', 'late'].filter((id) => getState(id) !== 'NOT_FOUND')
    const seen = new Set<string>()
    for (let n = 0; n < 10; n++) {
      book(`new-${n}`, [line(10)])
      seen.add(known().join())
    }

    expect([...seen]).toEqual(['expired,ended,soon,late', 'ended,soon,late', 'soon,late', 'late', ''])
    expect(node.store.writer.ledger.counts.evicted).toEqual({ ended: 2, booked: 2 })
    expectWhole()
  })

  test('within a quarter of a small memory budget, unless it is set', () => {
    const { memory } = node.store
    expect(staySettings(memory).stays_bytes).toBe(256 << 20)
    setMemoryBudget(node, 64 << 20)
    expect(staySettings(memory).stays_bytes).toBe(16 << 20)
    applyCommandOf(node, KIND.setting, encodeSetting('stays_bytes', 20 << 20))
    expect(staySettings(memory).stays_bytes).toBe(20 << 20)
  })

  test('and forgotten by the day, in the same order on every replica', () => {
    fill('p', 255)
    for (let n = 0; n < 300; n++) book(`s${n}`, [line(1 + (n % 3))])
    const copy = copyOf(node)

    for (const each of [node, copy]) {
      each.timeMs = (TODAY + 8) * DAY_MS
      each.day = TODAY + 8
      for (let n = 0; n < 2; n++)
        ask(each, 'DELROOMDAY', { propertyId: 'none', roomType: 'd', date: formatDay(TODAY + 9) })
    }

    expect([node.store.writer.ledger.stays.count, digestOf(copy)]).toEqual([0, digestOf(node)])
  })
})

describe('a full refresh', () => {
  const refresh: Record<string, () => void> = {
    property: () => ask(node, 'DELPROP', { propertyId: 'p' }),
    segment: () => ask(node, 'DELSEGMENT', { segment: 's' }),
    'room type': () => ask(node, 'DELPROPROOM', { propertyId: 'p', roomType: 'double' }),
    night: () => ask(node, 'DELPROPDAY', { propertyId: 'p', date: formatDay(TODAY + 1) }),
    package: () => ask(node, 'DELROOMDAY', { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 1) }),
  }
  const oversold = () => node.store.writer.ledger.oversold.size

  test.each(Object.keys(refresh))('of a %s keeps what is on hold', (what) => {
    setRooms(3, 1)
    hold('x', [line(1, 1, { rooms: 2 })])

    refresh[what]?.()

    expect([oversold(), stateOf(confirm('x'))]).toEqual([1, 'NOT_FOUND'])
    expectWhole()
    fill('p', 3)
    expect([oversold(), left(1)]).toEqual([0, 1])
    expect(stateOf(book('y', [line(1, 1, { rooms: 3 })]))).toBe('SOLD_OUT')
    expect([stateOf(confirm('x')), left(1)]).toEqual(['booked', 1])
    release('x')
    expect(left(1)).toBe(3)
    expectWhole()
  })

  test('with fewer rooms than are on hold confirms only those that are there', () => {
    setRooms(3, 1)
    hold('x', [line(1, 1, { rooms: 2 })])
    hold('y', [line(1)])

    refresh['property']?.()
    fill('p', 2)

    expect([left(1), oversold(), stateOf(confirm('x')), stateOf(confirm('y'))]).toEqual([0, 1, 'booked', 'SOLD_OUT'])
    expect([getState('y'), oversold()]).toEqual(['held', 1])
    passTime(600_000)
    expect([oversold(), left(1)]).toEqual([0, 0])
  })

  test('by a bulk load keeps the holds of properties that the data do not have', () => {
    const source = createNodeInMemory(TODAY, 48 << 20)
    raiseFeatureLevel(source)
    ask(source, 'SETPROP', { ...PLACE, propertyId: 'q', amenities: [] })
    hold('x', [line(1)])

    loadDataOf(source, node)

    expect(oversold()).toBe(1)
    fill('p', 1)
    expect([left(1), stateOf(confirm('x'))]).toEqual([0, 'booked'])
    expectWhole()
  })
})

test('an increase that exceeds 255 with the rooms on hold says so', () => {
  setRooms(255, 1)
  hold('x', [line(1, 1, { rooms: 200 })])

  const { text } = ask(node, 'INCROOMAVL', {
    ...{ propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 1), amount: 1 },
  })

  expect(text).toBe('OVERFLOW: availability would pass 255 with the rooms on hold: 55 left, 200 on hold')
})
