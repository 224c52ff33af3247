/** The rules of stays at their limits: refusals in their order, deadlines, retention and the budget. */
import { formatDay, packPropertyId } from '@vacancy/shared'
import type { StayLine } from '@vacancy/shared/wire'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { TODAY } from '../testing/model.ts'
import {
  type Answer,
  ask,
  createNodeInMemory,
  type NodeInMemory,
  raiseFeatureLevel,
} from '../testing/node-in-memory.ts'
import { settleDeadlines } from './apply-stays.ts'
import { STAY } from './layout.ts'
import { forEachNight } from './nights.ts'
import { recountCharge } from './recount.ts'
import { findStay } from './stays.ts'
import { stateDigest } from './store.ts'

const HOUR_MS = 3_600_000
const START_MS = TODAY * 24 * HOUR_MS + HOUR_MS
const PLACE = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
const ROOMS = 5

let node: NodeInMemory
const line = (rest: Partial<StayLine> = {}): StayLine => ({
  ...{ propertyId: 'p', roomType: 'double', arrival: formatDay(TODAY + 1), nights: 2, rooms: 2 },
  ...rest,
})
const hold = (stayId: string, rest: object = {}) =>
  ask(node, 'HOLDSTAY', { stayId, seconds: 900, lines: [line()], ...rest })
const book = (stayId: string, rest: object = {}) => ask(node, 'BOOKSTAY', { stayId, lines: [line()], ...rest })
const confirm = (stayId: string, rest: object = {}) => ask(node, 'CONFIRMSTAY', { stayId, ...rest })
const release = (stayId: string, rest: object = {}) => ask(node, 'RELEASESTAY', { stayId, ...rest })
const stateOf = (answer: Answer) => (answer.result as { state?: string }).state
const getState = (stayId: string) => stateOf(ask(node, 'GETSTAY', { stayId }))
const textOf = ({ text, error }: Answer) => text ?? error
const left = (n = 1, roomType = 'double') => {
  const { result } = ask(node, 'GETPROPROOMDAY', { propertyId: 'p', roomType, date: formatDay(TODAY + n) })
  return (result as { availability?: number }).availability
}
const nightsHeld = () => {
  let count = 0
  forEachNight(node.store.memory, () => count++)
  return count
}

function begin(): void {
  node = createNodeInMemory(TODAY, 48 << 20)
  raiseFeatureLevel(node)
  node.timeMs = START_MS
  ask(node, 'SETPROP', { ...PLACE, propertyId: 'p', amenities: [] })
  for (let n = 0; n < 4; n++) {
    const night = { propertyId: 'p', date: formatDay(TODAY + n), availability: ROOMS, finalPrice: 10 + n }
    for (const roomType of ['double', 'suite']) ask(node, 'SETROOMPKG', { ...night, roomType, rateFeatures: ['wifi'] })
  }
}

describe('a refused stay changes nothing, and names the first reason', () => {
  beforeAll(begin)

  const date = formatDay(TODAY + 2)
  test.each<[string, object, string]>([
    ['a property', { lines: [line(), line({ propertyId: 'q' })] }, 'NOT_FOUND: property of line 1 not found'],
    ['a room type', { lines: [line({ roomType: 'x' })] }, 'NOT_FOUND: room type of line 0 not found'],
    ['a package', { lines: [line({ nights: 4 })] }, `NOT_FOUND: package not found, line 0, ${formatDay(TODAY + 4)}`],
    ['rooms', { lines: [line(), line({ arrival: date, rooms: 4 })] }, `SOLD_OUT: line=1 date=${date} left=5 wanted=6`],
    ['rooms of several lines', { lines: [line(), line({ rooms: 3 }), line({ rooms: 1 })] }, 'line=2'],
    ['a room type before rooms', { lines: [line({ rooms: 9 }), line({ roomType: 'x' })] }, 'room type of line 1'],
    ['a feature', { rateFeatures: ['wifi', 'breakfast'] }, 'PRICE_CHANGED: total=46'],
    ['a lower total', { maxTotal: 45 }, 'PRICE_CHANGED: total=46'],
    ['a stay to replace', { replaces: 'nothing' }, 'NOT_FOUND'],
  ])('it lacks %s', (_, rest, text) => {
    const digest = () => {
      const { lo, hi } = stateDigest(node.store.memory)
      return [lo, hi]
    }
    const before = digest()
    for (const send of [hold, book]) expect(textOf(send('x', rest))).toContain(text)
    expect([left(1), left(2), left(3), getState('x')]).toEqual([ROOMS, ROOMS, ROOMS, undefined])
    expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
    // Shard time did not change either.
    expect(digest()).toEqual(before)
  })
})

describe('the window and the counts', () => {
  beforeAll(begin)

  test.each([
    [-1, 'outside'],
    [0, 'fine'],
    [365, 'not found'],
    [366, 'outside'],
  ])('a night %i days from today is %s', (offset, expected) => {
    const { text, error } = book(`night ${offset}`, {
      lines: [line({ arrival: formatDay(TODAY + offset), nights: 1 })],
    })
    if (expected === 'fine') expect(error).toBe('')
    else expect(text ?? error).toMatch(expected === 'outside' ? /window|range|outside|VALIDATION/ : /NOT_FOUND/)
  })
})

test('the total counts every room and night, except those of uncounted lines', () => {
  begin()
  const total = (answer: Answer) => (answer.result as { total?: number }).total
  expect(total(hold('x'))).toBe(2 * (11 + 12))
  const lines = [line({ rooms: 1 }), line({ roomType: 'suite', nights: 3, rooms: 1, uncounted: true })]
  expect(total(book('y', { lines, maxTotal: 23, rateFeatures: ['wifi'] }))).toBe(23)
  expect(total(confirm('x'))).toBe(46)
})

describe('a repeated request', () => {
  beforeEach(begin)

  test('returns the stay in its state, and takes no more rooms', () => {
    hold('x')
    node.timeMs += 1_000
    expect(stateOf(hold('x', { seconds: 60 }))).toBe('held')
    expect([left(), settleDeadlines(node.store)]).toEqual([
      3,
      { ...settleDeadlines(node.store), deadlineMs: node.timeMs + 60_000 },
    ])
    expect(stateOf(book('x', { maxTotal: 46 }))).toBe('booked')
    expect(stateOf(hold('x'))).toBe('booked')
    expect(stateOf(confirm('x'))).toBe('booked')
    expect([left(), settleDeadlines(node.store), nightsHeld()]).toEqual([3, undefined, 0])
    expect(stateOf(release('x', { lines: [line()] }))).toBe('released')
    expect(stateOf(release('x'))).toBe('released')
    expect([left(), left(2), left(3)]).toEqual([ROOMS, ROOMS, ROOMS])
    for (const send of [hold, book, confirm]) expect(textOf(send('x'))).toBe('CONFLICT: state=released')
  })

  test('to book a hold checks the highest total, and keeps the hold when it is lower', () => {
    hold('x')
    expect(textOf(book('x', { maxTotal: 45 }))).toContain('PRICE_CHANGED: total=46')
    expect([getState('x'), left()]).toEqual(['held', 3])
  })

  test('with other lines is a conflict', () => {
    hold('x')
    expect(textOf(hold('x', { lines: [line({ rooms: 1 })] }))).toBe('CONFLICT: state=held')
    expect(textOf(release('x', { lines: [line({ nights: 1 })] }))).toBe('CONFLICT: state=held')
    expect([getState('x'), left()]).toEqual(['held', 3])
  })
})

describe('an expired hold', () => {
  beforeEach(() => {
    begin()
    hold('x')
    node.timeMs += 900_000
  })

  test('is taken again by each command that may, for as long as there are rooms', () => {
    expect(textOf(confirm('x'))).toContain('EXPIRED')
    book('other', { lines: [line({ rooms: 4 })] })
    expect(textOf(confirm('x', { retake: 1 }))).toContain('left=1 wanted=2')
    expect(getState('x')).toBe('expired')
    release('other')
    expect(textOf(confirm('x', { retake: 1, maxTotal: 45 }))).toContain('PRICE_CHANGED')
    expect(stateOf(confirm('x', { retake: 1, maxTotal: 46 }))).toBe('booked')
    expect([left(), left(2), left(3)]).toEqual([3, 3, ROOMS])
    expect(node.store.writer.ledger.stays.count).toBe(2)
    expect(node.store.writer.ledger.counts.expired).toBe(1)
  })

  test('may be held again, which begins a new day of extensions', () => {
    expect(stateOf(hold('x', { seconds: 86_400 }))).toBe('held')
    expect(settleDeadlines(node.store)?.deadlineMs).toBe(node.timeMs + 86_400_000)
    expect([left(), nightsHeld()]).toEqual([3, 2])
  })

  test('that is taken again keeps its source, its lines and the flags of the lines', () => {
    const lines = [line({ rooms: 1, uncounted: true }), line({ roomType: 'suite', nights: 1, rooms: 1 })]
    hold('y', { source: 'ota', lines })
    const stay = () => {
      const { result } = ask(node, 'GETSTAY', { stayId: 'y' })
      const { total, lines: known } = result as { total?: number; lines?: StayLine[] }
      const { memory } = node.store
      const at = findStay(node.store, packPropertyId('y') as Uint8Array, 0)
      const start = at + STAY.source
      const source = Buffer.from(memory.u8.slice(start, start + (memory.u8[at + STAY.sourceBytes] ?? 0))).toString()
      return [source, total, known]
    }
    const before = stay()
    expect(before.slice(0, 2)).toEqual(['ota', 11])
    node.timeMs += 900_000
    expect(stateOf(confirm('y', { retake: 1 }))).toBe('booked')
    expect(stay()).toEqual(before)
    expect([left(), left(1, 'suite'), left(2, 'suite')]).toEqual([4, 4, ROOMS])
  })

  test('is released without an effect', () => {
    release('x')
    expect([left(), getState('x')]).toEqual([ROOMS, 'expired'])
  })
})

describe('a stay that is not known', () => {
  beforeEach(begin)

  test('is released by its lines with a flag, once, or is void', () => {
    ask(node, 'SETROOMAVL', { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 1), amount: 254 })
    for (const send of [release, confirm]) expect(textOf(send('x'))).toContain('NOT_FOUND')
    const lines = [line(), line({ propertyId: 'gone' }), line({ roomType: 'never used' })]
    expect(textOf(release('x', { lines }))).toContain('NOT_FOUND')
    for (let n = 0; n < 2; n++) expect(stateOf(release('x', { lines, unrecorded: 1 }))).toBe('released')
    // 255 rooms at most: one of the two rooms is too many on the first night.
    expect([left(1), left(2), node.store.writer.ledger.counts.overflowed]).toEqual([255, ROOMS + 2, 1])
    expect(textOf(book('x'))).toBe('CONFLICT: state=released')
    expect(stateOf(release('v', { void: 1 }))).toBe('void')
    expect(textOf(hold('v'))).toBe('CONFLICT: state=void')
    expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
  })
})
