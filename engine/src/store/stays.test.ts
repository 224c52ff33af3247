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
import { isStayAdmitted } from './apply-stays.ts'
import { KIND, writeF64, writeU8, writeU32 } from './command.ts'
import { findName } from './dictionary.ts'
import { NAMES } from './layout.ts'
import { segmentOf, tableOf } from './segment.ts'
import { encodeSetting } from './stay-settings.ts'
import { AS_OF_LEVEL, countsOf, FEATURE_LEVEL, featureLevel, type Store, stateDigest } from './store.ts'
import { versionOf } from './version.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const START_MS = TODAY * DAY_MS

const place = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
let node: NodeInMemory

function property(id: string, rooms: number, to = node): void {
  ask(to, 'SETPROP', { ...place, propertyId: id, amenities: [] })
  for (let n = 1; n < 6; n++) {
    const night = { propertyId: id, date: formatDay(TODAY + n), availability: rooms, finalPrice: 10 }
    for (const roomType of ['double', 'suite']) ask(to, 'SETROOMPKG', { ...night, roomType })
  }
}

beforeEach(() => {
  node = createNodeInMemory(TODAY)
  raiseFeatureLevel(node)
  node.timeMs = START_MS + HOUR_MS
  property('p', 5)
})

const line = (rest: Partial<StayLine> = {}): StayLine => ({
  propertyId: 'p',
  roomType: 'double',
  arrival: formatDay(TODAY + 1),
  nights: 3,
  rooms: 2,
  ...rest,
})
const hold = (stayId: string, rest: object = {}, to = node) =>
  ask(to, 'HOLDSTAY', { stayId, seconds: 900, lines: [line()], ...rest })
const book = (stayId: string, rest: object = {}, to = node) => ask(to, 'BOOKSTAY', { stayId, lines: [line()], ...rest })
const left = (n = 1, of = node, propertyId = 'p') => {
  const { result } = ask(of, 'GETPROPROOMDAY', { propertyId, roomType: 'double', date: formatDay(TODAY + n) })
  return (result as { availability?: number }).availability
}
const stateOf = (answer: Answer) => (answer.result as { state?: string }).state
const getState = (stayId: string, of = node) => stateOf(ask(of, 'GETSTAY', { stayId }))
const setTo = (propertyId: string, amount: number, n = 1) =>
  ask(node, 'SETROOMAVL', { propertyId, roomType: 'double', date: formatDay(TODAY + n), amount }).value

/** The same commands on two replicas give equal digests. */
const sameDigest = (a: Store, b: Store) => {
  const [one, other] = [stateDigest(a.memory), stateDigest(b.memory)]
  return one.lo === other.lo && one.hi === other.hi
}

describe('a shard below feature level 2', () => {
  test('knows no stays, and keeps its state when the level is raised', () => {
    const old = createNodeInMemory(TODAY)
    applyOwn(old, KIND.featureLevel, (writer) => writeU32(writer, 1))
    property('p', 5, old)

    expect(book('x', {}, old).error).toBe('below level')
    expect(ask(old, 'GETSTAY', { stayId: 'x' }).error).toBe('below level')
    raiseFeatureLevel(old)

    expect(featureLevel(old.store.memory)).toBe(FEATURE_LEVEL)
    expect(stateOf(book('x', {}, old))).toBe('booked')
  })
})

test.each([
  ['a property', { propertyId: 'q' }],
  ['a room type', { roomType: 'suite' }],
  ['an arrival', { arrival: formatDay(TODAY + 2) }],
  ['nights', { nights: 2 }],
  ['rooms', { rooms: 1 }],
])('the same id with other lines is another request: %s', (_, other) => {
  property('q', 5)
  book('x')

  expect(book('x').error).toBe('')
  expect(book('x', { lines: [line(other)] }).error).not.toBe('')
  expect(book('x', { lines: [line(), line(other)] }).error).not.toBe('')

  expect(left()).toBe(3)
})

describe('a stay that replaces another one', () => {
  const lines = (rooms: number) => ({ lines: [line({ rooms })] })

  test.each([
    ['booking', () => book('x', lines(4))],
    ['hold', () => hold('x', lines(4))],
  ])('may take the rooms of a %s, which ends with it', (_, take) => {
    take()
    expect(left()).toBe(1)

    expect(stateOf(book('y', { ...lines(5), replaces: 'x' }))).toBe('booked')

    expect([left(), left(3), left(4)]).toEqual([0, 0, 5])
    expect(getState('x')).toBe('released')
    ask(node, 'RELEASESTAY', { stayId: 'y' })
    expect(left()).toBe(5)
  })

  test('leaves that one as it is when it is refused', () => {
    book('x', lines(4))

    expect(book('y', { ...lines(6), replaces: 'x' }).error).toBeDefined()
    expect(book('z', { ...lines(1), replaces: 'unknown' }).error).toBeDefined()

    expect(left()).toBe(1)
    expect(getState('x')).toBe('booked')
  })

  test('gets nothing from one that has ended', () => {
    book('x', lines(4))
    ask(node, 'RELEASESTAY', { stayId: 'x' })

    expect(stateOf(book('y', { ...lines(2), replaces: 'x' }))).toBe('booked')

    expect(left()).toBe(3)
  })
})

describe('expiry', () => {
  test('a hold returns its rooms with the first entry at its deadline, never before', () => {
    hold('x')
    node.timeMs += 899_999
    setTo('p', 5, 5)
    expect(left()).toBe(3)

    node.timeMs += 1
    applyOwn(node, KIND.expireHolds, () => undefined)

    expect(left()).toBe(5)
    expect(getState('x')).toBe('expired')
    expect(ask(node, 'CONFIRMSTAY', { stayId: 'x' })).toMatchObject({
      error: 'EXPIRED',
      text: 'EXPIRED: state=expired',
    })
  })

  test('the entry decides between a confirmation and the deadline', () => {
    hold('x')
    node.timeMs += 900_000
    expect(ask(node, 'CONFIRMSTAY', { stayId: 'x' }).error).toBe('EXPIRED')
    expect(stateOf(ask(node, 'CONFIRMSTAY', { stayId: 'x', retake: 1 }))).toBe('booked')
    node.timeMs += DAY_MS
    setTo('p', 5, 5)
    expect(getState('x')).toBe('booked')
  })

  test('one entry returns 256 holds at most; a command that names another one returns its rooms first', () => {
    property('many', 255)
    property('more', 255)
    for (let n = 0; n < 300; n++) {
      const lines = [line({ propertyId: n < 150 ? 'many' : 'more', nights: 1, rooms: 1 })]
      hold(`h${n.toString().padStart(3, '0')}`, { lines })
    }
    node.timeMs += HOUR_MS

    expect(getState('h299')).toBe('held')
    expect(ask(node, 'CONFIRMSTAY', { stayId: 'h299' }).error).toBe('EXPIRED')
    expect(left(1, node, 'more')).toBe(255 - 43)
    setTo('p', 5, 5)
    expect(left(1, node, 'more')).toBe(255)
  })

  test('a hold is extended up to a day after it began', () => {
    const first = hold('x', { seconds: 86_400 }).result as { deadlineMs: number }
    node.timeMs += 12 * HOUR_MS

    expect((hold('x', { seconds: 86_400 }).result as { deadlineMs: number }).deadlineMs).toBe(first.deadlineMs)
    expect((hold('x', { seconds: 60 }).result as { deadlineMs: number }).deadlineMs).toBe(node.timeMs + 60_000)
  })

  test('time that is set back keeps no hold longer than a day', () => {
    node.timeMs += 20 * DAY_MS
    node.day += 20
    ask(node, 'SETROOMPKG', { propertyId: 'p', roomType: 'double', date: formatDay(node.day + 1), availability: 5 })
    hold('x', { lines: [line({ arrival: formatDay(node.day + 1), nights: 1 })] })
    applyOwn(node, KIND.setTime, (writer) => writeF64(writer, START_MS + 2 * HOUR_MS))
    node.day = TODAY
    node.timeMs = START_MS + 27 * HOUR_MS

    setTo('p', 5, 5)

    expect(getState('x')).toBe('expired')
  })

  test('nights that time set back reopens used to forget what is on hold', () => {
    const arrival = formatDay(TODAY + 1)
    const set = () => ask(node, 'SETROOMPKG', { propertyId: 'p', roomType: 'double', date: arrival, availability: 5 })
    hold('x', { lines: [line({ arrival, nights: 1, rooms: 2 })], seconds: 86_400 })
    applyOwn(node, KIND.dropBefore, (writer) => {
      writeU32(writer, TODAY + 3)
      writeU8(writer, 0)
    })
    applyOwn(node, KIND.setTime, (writer) => writeF64(writer, START_MS + 2 * HOUR_MS))

    set()
    expect(left()).toBe(3)
    hold('y', { lines: [line({ arrival, nights: 1, rooms: 1 })] })
    ask(node, 'RELEASESTAY', { stayId: 'x' })

    expect(left()).toBe(4)
    expect(sameDigest(node.store, copyOf(node).store)).toBe(true)
  })
})

describe('a record', () => {
  test('of a stay that never was is void: the booking that comes later is refused', () => {
    expect(stateOf(ask(node, 'RELEASESTAY', { stayId: 'x', void: 1 }))).toBe('void')

    expect(book('x')).toMatchObject({ error: 'CONFLICT', text: 'CONFLICT: state=void' })
    expect(left()).toBe(5)
  })

  test('goes when bytes run out, the oldest first, if it is neither held nor younger than an hour', () => {
    property('big', 255)
    const lines = [line({ propertyId: 'big', nights: 1, rooms: 1 })]
    applyCommandOf(node, KIND.setting, encodeSetting('stays_bytes', 3_000))
    for (let n = 0; n < 20; n++) book(`old-${n}`, { lines })
    hold('held', { lines, seconds: 86_400 })
    node.timeMs += 2 * HOUR_MS
    for (let n = 0; n < 5; n++) book(`new-${n}`, { lines })

    expect(getState('old-0')).toBeUndefined()
    expect(getState('held')).toBe('held')
    expect(getState('new-0')).toBe('booked')
    expect(node.store.writer.ledger.bytes).toBeLessThanOrEqual(3_000)
  })
})

test('a reader of one table of a stay meets a changed version of it', () => {
  const versions = ({ memory }: Store) =>
    ['double', 'suite'].map((name) => {
      const number = (kind: 0 | 4, text: string) => {
        const bytes = new TextEncoder().encode(text)
        return findName(memory, kind, bytes, 0, bytes.length)
      }
      return versionOf(
        memory,
        tableOf(memory, segmentOf(memory, number(NAMES.segment, 's')), number(NAMES.roomType, name)),
      )
    })
  const before = versions(node.store)
  book('x', { lines: [line(), line({ roomType: 'suite' })] })

  expect(versions(node.store).filter((version, n) => version === before[n])).toEqual([])
})

describe('absolute values and holds', () => {
  test('a value of the source includes rooms on hold; what is missing is owed and paid first', () => {
    hold('x', { lines: [line({ rooms: 4 })] })

    expect(setTo('p', 3)).toBe(0)
    expect(node.store.writer.ledger.oversold.size).toBe(1)
    ask(node, 'INCROOMAVL', { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 1), amount: 2 })
    expect(left()).toBe(1)
    expect(node.store.writer.ledger.oversold.size).toBe(0)
    ask(node, 'RELEASESTAY', { stayId: 'x' })
    expect(left()).toBe(5)
  })

  test('a value is raised up to 255 with what is held', () => {
    hold('x')
    setTo('p', 255)
    const raise = { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 1), amount: 1 }

    expect(left()).toBe(253)
    expect(ask(node, 'INCROOMAVL', raise).error).toBe('OVERFLOW')
  })

  test('a cancellation never fails: it stops at 255 and is counted', () => {
    book('x')
    setTo('p', 254)

    expect(stateOf(ask(node, 'RELEASESTAY', { stayId: 'x' }))).toBe('released')
    expect(left()).toBe(255)
    expect(node.store.writer.ledger.counts.overflowed).toBe(1)
  })

  test('a bulk load between hold and release keeps the holds, and counts its values as gross', () => {
    const source = createNodeInMemory(TODAY)
    raiseFeatureLevel(source)
    property('p', 9, source)
    hold('own', { lines: [line({ rooms: 1 })] }, source)
    hold('x')
    hold('gone', { lines: [line({ propertyId: 'other' })] })

    loadDataOf(source, node)

    expect(getState('own')).toBeUndefined()
    expect(left()).toBe(7)
    ask(node, 'RELEASESTAY', { stayId: 'x' })
    expect(left()).toBe(9)
    expect(sameDigest(node.store, copyOf(node).store)).toBe(true)
  })

  test('a property that is deleted between hold and confirmation gives a new one none of its holds', () => {
    hold('x')
    ask(node, 'DELPROP', { propertyId: 'p' })
    property('p', 5)

    expect(stateOf(ask(node, 'CONFIRMSTAY', { stayId: 'x' }))).toBe('booked')
    ask(node, 'RELEASESTAY', { stayId: 'x' })
    expect(left()).toBe(5)
  })

  test('so does one whose segment is deleted', () => {
    hold('x')
    ask(node, 'DELSEGMENT', { segment: 's' })
    property('p', 5)
    ask(node, 'RELEASESTAY', { stayId: 'x' })

    expect(left()).toBe(5)
    expect(node.store.writer.ledger.nights.size).toBe(0)
  })
})

describe('admission', () => {
  const admits = (isHold: boolean, source = '') => isStayAdmitted(node.store, isHold, source, node.timeMs)

  test('holds are limited, in all and by source', () => {
    applyCommandOf(node, KIND.setting, encodeSetting('holds_max', 2))
    applyCommandOf(node, KIND.setting, encodeSetting('holds_max_per_source', 1))
    hold('x', { source: 'ota', lines: [line({ rooms: 1 })] })
    expect([admits(true, 'ota'), admits(true, 'web')]).toEqual([false, true])
    hold('y', { source: 'web', lines: [line({ rooms: 1 })] })

    expect([admits(true, 'desk'), admits(false, 'desk')]).toEqual([false, true])
  })

  test('beyond 90 % of the bytes only what may go makes room', () => {
    applyCommandOf(node, KIND.setting, encodeSetting('stays_bytes', 300))
    book('x', { lines: [line({ rooms: 1 })] })
    book('y', { lines: [line({ rooms: 1 })] })
    expect(admits(false)).toBe(false)
    node.timeMs += 2 * HOUR_MS

    expect(admits(false)).toBe(true)
  })

  test('without memory a stay is refused and nothing changed', () => {
    setMemoryBudget(node, 1)

    expect(book('x').error).toBe('503')
    expect(left()).toBe(5)
    expect(countsOf(node.store.memory).properties).toBe(1)
  })
})

describe('absolute values of a source that knows bookings up to an index', () => {
  const night = { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 1) }
  const setAsOf = (amount: number, asOf: number, on = node) => ask(on, 'SETROOMAVL', { ...night, amount, asOf })

  test('what was booked since then is taken off, what was cancelled since is added', () => {
    book('early')
    const index = node.index
    expect(setAsOf(3, index).value).toBe(3)
    book('late')
    expect(setAsOf(3, index).value).toBe(1)
    expect(setAsOf(3, node.index).value).toBe(3)
    ask(node, 'RELEASESTAY', { stayId: 'early' })
    expect(setAsOf(3, index).value).toBe(3)
    ask(node, 'RELEASESTAY', { stayId: 'late' })

    expect(setAsOf(3, index).value).toBe(5)
    // Booked and cancelled since: as if it had not been.
    expect(setAsOf(3, index - 1).value).toBe(3)
  })

  test('holds are no bookings: they stay on hold, until they are confirmed', () => {
    hold('cart')
    const index = node.index

    expect(setAsOf(5, index).value).toBe(3)
    ask(node, 'CONFIRMSTAY', { stayId: 'cart' })
    expect(setAsOf(5, index).value).toBe(3)
    expect(setAsOf(5, node.index).value).toBe(5)
  })

  test('a package is set the same way; more sold than there is leaves nothing, not less', () => {
    const index = node.index
    book('a')

    ask(node, 'SETROOMPKG', { ...night, availability: 4, finalPrice: 7, asOf: index })
    expect(left()).toBe(2)
    expect(setAsOf(1, index).value).toBe(0)
    expect(setAsOf(255, node.index).value).toBe(255)
    expect(left(2)).toBe(3)
  })

  test('a property that was deleted and set again meanwhile has its bookings', () => {
    const index = node.index
    book('a')
    ask(node, 'DELPROP', { propertyId: 'p' })
    property('p', 5)

    expect(setAsOf(4, index).value).toBe(2)
  })

  test('an index from before bookings that were dropped is refused, also after loading a snapshot', () => {
    applyCommandOf(node, KIND.setting, encodeSetting('stays_bytes', 200))
    const index = node.index
    const { index: booked } = book('a').result as { index?: number }
    node.timeMs += 2 * HOUR_MS
    expect(setAsOf(3, index).value).toBe(1)
    // Its bytes are needed for another stay.
    hold('cart', { lines: [line({ propertyId: 'p', roomType: 'suite' })] })

    const refused = setAsOf(3, index)
    expect(refused).toMatchObject({ error: 'TOO_OLD', text: `TOO_OLD: oldest=${booked}` })
    expect(left()).toBe(1)
    expect(setAsOf(3, Number(booked)).value).toBe(3)
    // Released by its lines: the source counts its rooms as taken.
    ask(node, 'RELEASESTAY', { stayId: 'a', lines: [line()], unrecorded: 1 })
    expect(setAsOf(1, Number(booked)).value).toBe(3)
    const copy = copyOf(node)
    expect(setAsOf(3, index, copy).error).toBe('TOO_OLD')
    expect(ask(copy, 'SETROOMPKG', { ...night, availability: 3, asOf: index }).error).toBe('TOO_OLD')
    expect(setAsOf(1, Number(booked), copy).value).toBe(3)
  })

  test('neither a hold that was dropped nor a booking whose nights have passed changes what a source counts', () => {
    const index = node.index
    hold('cart')
    ask(node, 'RELEASESTAY', { stayId: 'cart' })
    book('past', { lines: [line({ nights: 1 })] })
    applyOwn(node, KIND.dropBefore, (writer) => {
      writeU32(writer, TODAY + 3)
      writeU8(writer, 0)
    })
    node.timeMs += 9 * DAY_MS
    const later = { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 5), amount: 3, asOf: index }

    expect(ask(node, 'SETROOMAVL', later).value).toBe(3)
    expect([getState('cart'), getState('past')]).toEqual([undefined, undefined])
  })

  test('below feature level 3 the field does not exist; the step to it forgets what was dropped before', () => {
    const old = createNodeInMemory(TODAY)
    raiseFeatureLevel(old, 2)
    property('p', 5, old)
    book('a', {}, old)

    expect(setAsOf(3, 1, old).error).toBe('VALIDATION_ERROR')
    const before = old.index
    raiseFeatureLevel(old, AS_OF_LEVEL)
    expect(setAsOf(3, before, old)).toMatchObject({ error: 'TOO_OLD', text: `TOO_OLD: oldest=${before + 1}` })
    expect(setAsOf(3, before + 1, old).value).toBe(3)
  })
})
