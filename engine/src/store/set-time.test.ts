import { addOneYear, formatDay, parseDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { applyOwn, ask, createNodeInMemory, type NodeInMemory } from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import { KIND, OUTCOME, writeF64, writeU8, writeU32 } from './command.ts'
import { DAY_SLOTS, STATE } from './layout.ts'
import { recountCharge } from './recount.ts'
import { encodeSessions, SESSION_EXPIRY_MS } from './sessions.ts'
import { effectsOfSetTime, lastSetTime } from './set-time.ts'
import { countsOf, featureLevel, latestTime, state, stateDigest } from './store.ts'
import { GAP_REASON, sweepOne } from './window.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const TODAY = parseDay('2026-11-20') as number
const PLACE = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
const SESSION = '0123456789abcdef0123456789abcdef'

/** A node whose clock is so many days ahead. */
function nodeAhead(days: number, level = 1): NodeInMemory {
  const node = createNodeInMemory(TODAY)
  if (level > 0) applyOwn(node, KIND.featureLevel, (writer) => writeU32(writer, level))
  ask(node, 'SETPROP', { ...PLACE, propertyId: 'p1', amenities: [] })
  for (let day = TODAY; day < TODAY + 10; day++) set(node, day)
  node.day += days
  return node
}

const night = (day: number) => ({ propertyId: 'p1', roomType: 'r', date: formatDay(day) })
const set = (node: NodeInMemory, day: number) => ask(node, 'SETROOMPKG', { ...night(day), availability: 5 })

function maintain(node: NodeInMemory): void {
  applyOwn(node, KIND.dropBefore, (writer) => {
    writeU32(writer, node.day)
    writeU8(writer, GAP_REASON.operator)
  })
}

function setTime(node: NodeInMemory, day: number): number {
  const code = applyOwn(node, KIND.setTime, (writer) => writeF64(writer, day * DAY_MS + HOUR_MS))
  if (code === OUTCOME.done) node.day = day
  return code
}

function expectWhole(node: NodeInMemory): void {
  const { memory, writer } = node.store
  expect(recountDigest(memory).digest).toEqual(stateDigest(memory))
  expect(recountCharge(memory)).toBe(writer.charge.bytes)
}

test('nights dropped by a wrong clock reopen for sale, and are empty on every replica, swept or not', () => {
  const replicas = [nodeAhead(4), nodeAhead(4)]
  for (const [i, node] of replicas.entries()) {
    maintain(node)
    while (i === 0 && sweepOne(node.store));
    expect(set(node, TODAY + 1).error).toBe('VALIDATION_ERROR')
    expect(effectsOfSetTime(node.store.memory, TODAY * DAY_MS).importNights).toEqual({ from: TODAY, end: TODAY + 4 })

    expect(setTime(node, TODAY)).toBe(OUTCOME.done)

    expect(latestTime(node.store.memory)).toBe(TODAY * DAY_MS + HOUR_MS)
    expect(countsOf(node.store.memory).packages).toBe(6)
    expect(ask(node, 'GETPROPROOMDAY', night(TODAY + 1)).error).toBe('NOT_FOUND')
    expect(ask(node, 'GETPROPROOMDAY', night(TODAY + 4)).error).toBe('')
    expect(set(node, TODAY + 1).error).toBe('')
    expect(state(node.store.memory, STATE.lastMaintenanceDay)).toBe(TODAY)
    expectWhole(node)
  }
  const [first, second] = replicas.map((node) => [stateDigest(node.store.memory), countsOf(node.store.memory)])
  expect(first).toEqual(second)
})

test('maintenance continues day by day after the time was set back', () => {
  const node = nodeAhead(4)
  maintain(node)
  setTime(node, TODAY)
  set(node, TODAY)
  node.day++
  maintain(node)

  expect(countsOf(node.store.memory).packages).toBe(6)
  expect(state(node.store.memory, STATE.droppedBefore)).toBe(TODAY + 1)
})

test('nights beyond the ring of days used to crash the node when a near night was written', () => {
  const node = nodeAhead(60)
  const far = addOneYear(node.day)
  expect(far).toBeGreaterThan(TODAY + DAY_SLOTS)
  for (const day of [far, TODAY + DAY_SLOTS, TODAY + DAY_SLOTS - 1]) expect(set(node, day).error).toBe('')

  setTime(node, TODAY)

  expect(lastSetTime(node.store.memory)?.droppedFrom).toBe(TODAY + DAY_SLOTS)
  for (let day = TODAY; day <= addOneYear(TODAY); day++) expect(set(node, day).error).toBe('')
  expectWhole(node)
  // Nights within the ring stay, and become visible when their day comes.
  node.day = TODAY + 20
  expect(ask(node, 'GETPROPROOMDAY', night(TODAY + DAY_SLOTS - 1)).error).toBe('')
  expect(ask(node, 'GETPROPROOMDAY', night(TODAY + DAY_SLOTS)).error).toBe('NOT_FOUND')
})

test('a session used under the wrong clock expires a day from now, not from its last use', () => {
  const node = nodeAhead(30)
  const take = (requestNumber: number) =>
    ask(node, 'SETROOMAVL', { ...night(node.day), amount: 1, session: SESSION, requestNumber })
  set(node, node.day)
  take(1)
  setTime(node, TODAY)

  const bytes = encodeSessions(node.store.memory)
  expect(new DataView(bytes.buffer).getFloat64(4 + 16, true)).toBe(TODAY * DAY_MS + HOUR_MS)
  expect(countsOf(node.store.memory).sessions).toBe(1)
  node.day += SESSION_EXPIRY_MS / DAY_MS + 1
  set(node, node.day)
  expect(countsOf(node.store.memory).sessions).toBe(0)
  expectWhole(node)
})

test('below feature level 1 the command does not set the time', () => {
  const node = nodeAhead(2, 0)
  set(node, node.day)
  const before = [stateDigest(node.store.memory), latestTime(node.store.memory)]

  expect(setTime(node, TODAY)).toBe(OUTCOME.refused)

  expect(featureLevel(node.store.memory)).toBe(0)
  expect(stateDigest(node.store.memory)).toEqual(before[0])
  expect(lastSetTime(node.store.memory)).toBeUndefined()
})

test('time is set forward without dropping anything', () => {
  const node = nodeAhead(0)
  setTime(node, TODAY + 3)

  expect(countsOf(node.store.memory).packages).toBe(10)
  expect(lastSetTime(node.store.memory)).toMatchObject({ count: 1, importNights: undefined, droppedFrom: undefined })
  expect(set(node, TODAY + 2).error).toBe('VALIDATION_ERROR')
  expect(set(node, addOneYear(TODAY + 3)).error).toBe('')
})

test('shard time used not to follow a step of exactly 2^32 ms', () => {
  const node = createNodeInMemory(TODAY)
  const startMs = TODAY * DAY_MS + HOUR_MS
  const times = [startMs, startMs + 2 ** 32, startMs + 2 ** 32 + 1]
  const followed = times.map((timeMs) => {
    node.timeMs = timeMs
    applyOwn(node, KIND.expireHolds, () => undefined)
    return latestTime(node.store.memory)
  })
  expect(followed).toEqual(times)
})
