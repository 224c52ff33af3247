/** What commands share: outcomes, the window of days, and what is refused for lack of memory. */
import { addOneYear, packPropertyId } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import { TODAY } from '../testing/model.ts'
import { ask, createNodeInMemory, raiseFeatureLevel, restartEmpty } from '../testing/node-in-memory.ts'
import { plainPutWord } from '../testing/search-reference.ts'
import { recountDigest } from './apply.ts'
import {
  createApplyContext,
  exceedsBudget,
  fail,
  forEachRoomTable,
  inWindow,
  lacksMemory,
  missing,
  promiseMemory,
} from './apply-context.ts'
import { growthLeft } from './charge.ts'
import { OUTCOME } from './command.ts'
import { SEGMENT, STATE, TABLE } from './layout.ts'
import { findProperty } from './property-index.ts'
import { recountCharge } from './recount.ts'
import { segmentOf } from './segment.ts'
import { setState, stateDigest } from './store.ts'
import { field } from './table-fields.ts'

const KIB = 1024
const node = createNodeInMemory(TODAY, 48 << 20)
const { store } = node
const { memory, writer } = store
let context: ReturnType<typeof createApplyContext>

beforeEach(() => {
  restartEmpty(node, TODAY)
  writer.lackingAt = -1
  writer.promisedBytes = 0
  context = createApplyContext(store, plainPutWord(memory), () => undefined)
  context.reader.day = TODAY
})

const PLACE = { segment: 's', area: 'a', propertyType: 't', category: 'c', stars: 1, latitude: 1, longitude: 1 }
const setProperty = (propertyId: string, fields: object = {}) =>
  expect(ask(node, 'SETPROP', { ...PLACE, propertyId, amenities: [], ...fields }).error).toBe('')
const setNight = (propertyId: string, roomType: string, date: string) =>
  expect(ask(node, 'SETROOMPKG', { propertyId, roomType, date, availability: 1, finalPrice: 1 }).error).toBe('')

test('a context is new, and has no defect unless one is planted', () => {
  expect(context).toMatchObject({ marks: [], agreedIndex: 0, loaded: '' })
  expect(context.newestMark).toBe(undefined)
  expect(context.applied).toEqual({ code: 0, value: 0, index: 0, detail: '', stay: 0 })
  expect(Object.values(writer.defects).some(Boolean)).toBe(false)
})

test('a planted defect is noted for the store', () => {
  createApplyContext(store, plainPutWord(memory), () => undefined, new Set(['stays/as-of-ignored']))
  expect(writer.defects['stays/as-of-ignored']).toBe(true)
})

test('an empty store has no charge', () => {
  expect(recountCharge(memory)).toBe(0)
})

test('a failure has a code, and neither value nor detail unless they are given', () => {
  fail(context, OUTCOME.overflow, 7, 'why')
  expect(context.applied).toMatchObject({ code: OUTCOME.overflow, value: 7, detail: 'why' })
  fail(context, OUTCOME.refused)
  expect(context.applied).toMatchObject({ code: OUTCOME.refused, value: 0, detail: '' })
  expect(missing(context, OUTCOME.noPackage)).toBe(false)
  expect(context.applied.code).toBe(OUTCOME.noPackage)
})

test.each([
  [TODAY - 1, 0, false],
  [TODAY, 0, true],
  [TODAY, TODAY, true],
  [TODAY, TODAY + 1, false],
  [TODAY + 1, TODAY + 1, true],
  [addOneYear(TODAY), 0, true],
  [addOneYear(TODAY) + 1, 0, false],
])('day %i is in the window, with days dropped before %i: %s', (day, droppedBefore, expected) => {
  setState(store, STATE.droppedBefore, droppedBefore)
  expect([inWindow(context, day), context.applied.code]).toEqual([expected, expected ? 0 : OUTCOME.outsideWindow])
})

describe('below level 1', () => {
  const free = () => writer.gap.high - writer.gap.low

  test.each([
    [256 * KIB, true],
    [256 * KIB - 1, false],
  ])('a command needs %i bytes beside its own: accepted is %s', (margin, isAccepted) => {
    expect(promiseMemory(store, free() - margin)).toBe(isAccepted)
    expect(writer.promisedBytes).toBe(free() - margin + 256 * KIB)
    expect(lacksMemory(context, free() - margin)).toBe(!isAccepted)
    const outcome = [context.applied.code, writer.lackingAt]
    expect(outcome).toEqual(isAccepted ? [0, -1] : [OUTCOME.refused, free()])
  })
})

describe('from level 1 on', () => {
  const leave = (bytes: number) => {
    raiseFeatureLevel(node)
    setState(store, STATE.memoryBudgetLow, 4 << 20)
    writer.charge.bytes += growthLeft(store) - bytes
    expect(growthLeft(store)).toBe(bytes)
  }

  test.each([
    [500, 499, false],
    [500, 500, false],
    [500, 501, true],
    [0, 1, true],
    [-5, 0, false],
    [-5, -3, false],
  ])('with %i bytes left, growth by %i is refused: %s', (left, growth, isRefused) => {
    leave(left)
    expect(exceedsBudget(context, growth, 0)).toBe(isRefused)
    expect(context.applied.code).toBe(isRefused ? OUTCOME.refused : 0)
    expect(writer.lackingAt).toBe(isRefused ? Math.max(0, left) : -1)
  })

  test('a refusal above the budget lacks all memory', () => {
    leave(-7)
    expect([exceedsBudget(context, 1, 0), writer.lackingAt]).toEqual([true, 0])
  })
})

describe('of the packages', () => {
  const dates = ['2026-11-20', '2026-11-21']
  const packagesOf = (name: number) => field(memory, segmentOf(memory, name) + SEGMENT.packages)

  test('each segment counts its own', () => {
    setProperty('p')
    setProperty('q', { segment: 'x' })
    for (const date of dates) setNight('p', 'double', date)
    setNight('q', 'double', dates[0] as string)
    expect([packagesOf(0), packagesOf(1)]).toEqual([2, 1])
    ask(node, 'DELROOMDAY', { propertyId: 'p', roomType: 'double', date: dates[0] })
    expect([packagesOf(0), packagesOf(1)]).toEqual([1, 1])
    expect(recountDigest(memory).digest).toEqual(stateDigest(memory))
  })

  test('each room type has a table, visited in the order of the list', () => {
    setProperty('p')
    for (const roomType of ['double', 'suite', 'single']) setNight('p', roomType, dates[0] as string)
    const roomTypes: number[] = []
    const property = findProperty(memory, packPropertyId('p') as Uint8Array, 0)
    forEachRoomTable(memory, property, (table) => roomTypes.push(field(memory, table + TABLE.roomType)))
    expect(roomTypes).toEqual([0, 1, 2])
  })
})

test('the step to level 1 charges the names in use, of every kind, and no other', () => {
  const names = { area: 'b', propertyType: 'u', category: 'd', amenities: ['m', 'n'] }
  setProperty('p')
  setProperty('q', { ...names, segment: 'x' })
  setNight('q', 'suite', '2026-11-20')
  setNight('p', 'double', '2026-11-20')
  ask(node, 'DELPROP', { propertyId: 'p' })
  ask(node, 'DELSEGMENT', { segment: 's' })
  raiseFeatureLevel(node, 1)
  expect(writer.charge.bytes).toBe(recountCharge(memory))

  // The same state without the names that are no longer in use.
  const other = createNodeInMemory(TODAY, 48 << 20)
  raiseFeatureLevel(other, 1)
  ask(other, 'SETPROP', { ...PLACE, ...names, propertyId: 'q', segment: 'x' })
  ask(other, 'SETROOMPKG', { propertyId: 'q', roomType: 'suite', date: '2026-11-20', availability: 1, finalPrice: 1 })
  expect(writer.charge.bytes).toBe(other.store.writer.charge.bytes)
  expect(writer.charge.names).toEqual(other.store.writer.charge.names)
  for (const { store: each } of [node, other]) setState(each, STATE.memoryBudgetLow, 4 << 20)
  expect(growthLeft(store)).toBe(growthLeft(other.store))
})
