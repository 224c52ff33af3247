import { addOneYear, formatDay, parseDay } from '@vacancy/shared'
import { describe, expect, test } from 'vitest'
import {
  applyOwn,
  ask,
  createNodeInMemory,
  type NodeInMemory,
  orderRows,
  raiseFeatureLevel,
} from '../testing/node-in-memory.ts'
import { plainPutWord } from '../testing/search-reference.ts'
import { fillSynthetic } from '../testing/synthetic.ts'
import { recountDigest } from './apply.ts'
import { KIND, OUTCOME, writeU8, writeU32 } from './command.ts'
import { unorderedTables } from './row-order.ts'
import { countsOf, createStore, memoryUse, publish, stateDigest } from './store.ts'
import { dropFrom, GAP_REASON, packagesBefore, sweepOne } from './window.ts'

const place = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }

function nodeAt(date: string): NodeInMemory {
  const node = createNodeInMemory(parseDay(date) as number)
  ask(node, 'SETPROP', { ...place, propertyId: 'p1', amenities: [] })
  return node
}

function set(node: NodeInMemory, day: number) {
  return ask(node, 'SETROOMPKG', {
    propertyId: 'p1',
    roomType: 'r',
    date: formatDay(day),
    availability: 5,
    finalPrice: 10,
  })
}

function drop(node: NodeInMemory, day: number, reason: number = GAP_REASON.none): number {
  return applyOwn(node, KIND.dropBefore, (writer) => {
    writeU32(writer, day)
    writeU8(writer, reason)
  })
}

function stays(node: NodeInMemory, day: number): number {
  const query = { segment: 's', roomType: 'r', dates: [formatDay(day)] }
  return (ask(node, 'SEARCHAVAIL', query).result.properties ?? []).length
}

describe('the hot window', () => {
  test('both ends of the window are allowed, one day more on either side is not', () => {
    const node = nodeAt('2026-11-20')

    expect(set(node, node.day).error).toBe('')
    expect(set(node, addOneYear(node.day)).error).toBe('')
    expect(set(node, node.day - 1).error).toBe('VALIDATION_ERROR')
    expect(set(node, addOneYear(node.day) + 1).error).toBe('VALIDATION_ERROR')
  })

  test('nights from a day on are dropped, and it is known whether there were any', () => {
    const node = nodeAt('2026-11-20')
    for (const day of [0, 3]) set(node, node.day + day)

    expect(dropFrom(node.store, node.day + 4)).toBe(false)
    expect(stays(node, node.day + 3)).toBe(1)
    expect(dropFrom(node.store, node.day + 3)).toBe(true)
    publish(node.store, node.index)
    expect([stays(node, node.day), stays(node, node.day + 3)]).toEqual([1, 0])
    expect(dropFrom(node.store, node.day + 3)).toBe(false)
  })

  test('29 February is sold, and on it the window ends on 1 March', () => {
    const node = nodeAt('2028-02-29')

    expect(set(node, node.day).error).toBe('')
    expect(stays(node, node.day)).toBe(1)
    expect(set(node, parseDay('2029-03-01') as number).error).toBe('')
    expect(set(node, parseDay('2029-03-02') as number).error).toBe('VALIDATION_ERROR')
  })

  test('at New Year yesterday becomes invisible at once, and replies count from the new year', () => {
    const node = nodeAt('2026-12-31')
    set(node, node.day)
    set(node, node.day + 1)
    expect(stays(node, node.day + 1)).toBe(1)

    node.day++

    expect(ask(node, 'SEARCHAVAIL', { segment: 's', roomType: 'r', dates: ['2026-12-31'] }).error).toBe(
      'VALIDATION_ERROR',
    )
    const found = ask(node, 'SEARCHAVAIL', { segment: 's', roomType: 'r', dates: ['2027-01-01'] }).result.properties
    expect(found?.[0]?.days[0]).toMatchObject({ date: '2027-01-01', availability: 5 })
  })

  test('maintenance drops passed days from counts and digest at once, and frees their memory in slices', () => {
    const node = nodeAt('2026-11-20')
    for (let i = 0; i < 5; i++) set(node, node.day + i)
    node.day += 2
    expect(packagesBefore(node.store.memory, node.day)).toBe(2)

    expect(drop(node, node.day)).toBe(OUTCOME.done)

    expect(countsOf(node.store.memory).packages).toBe(3)
    expect(stateDigest(node.store.memory)).toEqual(recountDigest(node.store.memory).digest)
    while (sweepOne(node.store)) publish(node.store, node.index)
    expect(recountDigest(node.store.memory).packages).toBe(3)
  })

  test('repeating maintenance changes nothing', () => {
    const node = nodeAt('2026-11-20')
    drop(node, node.day)
    const digest = stateDigest(node.store.memory)

    expect(drop(node, node.day)).toBe(OUTCOME.done)
    expect(drop(node, node.day - 3)).toBe(OUTCOME.done)

    expect(stateDigest(node.store.memory)).toEqual(digest)
  })

  test('a jump of more than three days needs a reason: a wrong clock must not empty the shard', () => {
    const node = nodeAt('2026-11-20')
    drop(node, node.day)
    for (let i = 0; i < 9; i++) set(node, node.day + i)
    node.day += 8

    expect(drop(node, node.day)).toBe(OUTCOME.refused)
    expect(countsOf(node.store.memory).packages).toBe(9)
    expect(drop(node, node.day, GAP_REASON.rest)).toBe(OUTCOME.done)
    expect(countsOf(node.store.memory).packages).toBe(1)
  })

  test('a slot of the ring is reused after more than a year of inactivity', () => {
    const node = nodeAt('2026-11-20')
    set(node, node.day)
    node.day += 384

    expect(set(node, node.day).error).toBe('')

    expect(countsOf(node.store.memory).packages).toBe(1)
    expect(stateDigest(node.store.memory)).toEqual(recountDigest(node.store.memory).digest)
    expect(stays(node, node.day)).toBe(1)
  })
})

test('a log entry sorts rows by type, category, stars, area and id', () => {
  const node = createNodeInMemory(parseDay('2026-11-20') as number)
  const types = ['villa', 'hotel', 'apartment']
  for (let i = 0; i < 200; i++) {
    const propertyId = `p${String(i).padStart(3, '0')}`
    ask(node, 'SETPROP', { ...place, propertyType: types[i % 3], propertyId, amenities: [] })
    ask(node, 'SETROOMPKG', { propertyId, roomType: 'r', date: '2026-11-21', availability: 1, finalPrice: i })
  }
  const digest = stateDigest(node.store.memory)
  expect(unorderedTables(node.store.memory)).toHaveLength(2)

  orderRows(node, 's', 'r')

  const query = { segment: 's', roomType: 'r', dates: ['2026-11-21'] }
  const found = (ask(node, 'SEARCHAVAIL', query).result.properties ?? []).map(({ propertyId }) =>
    Number(propertyId.slice(1)),
  )
  const expected = [2, 1, 0].flatMap((rest) => Array.from({ length: 200 }, (_, i) => i).filter((i) => i % 3 === rest))
  expect(found).toEqual(expected)
  expect(stateDigest(node.store.memory)).toEqual(digest)
  expect(recountDigest(node.store.memory).digest).toEqual(digest)
})

test('a deleted segment disappears at once, its memory is freed in slices, and it can be recreated meanwhile', () => {
  const node = createNodeInMemory(parseDay('2026-11-20') as number)
  raiseFeatureLevel(node)
  const { store } = node
  const make = (count: number) => {
    for (let i = 0; i < count; i++) {
      ask(node, 'SETPROP', { ...place, propertyId: `p${i}`, amenities: [] })
      const date = formatDay(node.day + (i % 5))
      ask(node, 'SETROOMPKG', { propertyId: `p${i}`, roomType: `r${i % 12}`, date, availability: 1, finalPrice: i })
    }
  }
  make(1_500)

  expect(ask(node, 'DELSEGMENT', { segment: 's' }).code).toBe(OUTCOME.done)
  expect(countsOf(store.memory)).toMatchObject({ properties: 0, packages: 0 })
  expect(stateDigest(store.memory)).toEqual(recountDigest(store.memory).digest)
  expect(ask(node, 'DELPROP', { propertyId: 'p7' }).error).toBe('NOT_FOUND')
  expect(ask(node, 'SEARCHPROP', { segment: 's' }).result.propertyIds ?? []).toEqual([])
  let slices = 1
  sweepOne(store)
  make(20)
  while (sweepOne(store)) slices++

  expect(slices).toBeGreaterThan(3)
  expect(ask(node, 'SEARCHPROP', { segment: 's' }).result.propertyIds).toHaveLength(20)
  expect(countsOf(store.memory)).toMatchObject({ properties: 20, packages: 20 })
  expect(stateDigest(store.memory)).toEqual(recountDigest(store.memory).digest)
  ask(node, 'DELSEGMENT', { segment: 's' })
  while (sweepOne(store));
  for (let i = 0; i < 3; i++) publish(store, ++node.index)
  // Names and the tables that find them are kept.
  expect(memoryUse(store.memory).planeBytes).toBe(0)
  expect(store.writer.charge.tables.size).toBe(0)
})

test('small tables cost megabytes: 40 segments of 100 room types with 3 rows, a fiftieth of the required capacity', () => {
  const store = createStore({ memoryBytes: 256 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax: 1 << 20 })

  fillSynthetic(store, plainPutWord(store.memory), {
    segments: 40,
    propertiesPerSegment: 3,
    roomTypes: 100,
    nights: 10,
    firstDay: 20_777,
    ordered: true,
    seed: 1,
  })

  expect(countsOf(store.memory).packages).toBe(120_000)
  publish(store, 1)
  const { recordBytes, planeBytes } = memoryUse(store.memory)
  // 4,000 tables; fifty times as many stay below half a gigabyte.
  expect((recordBytes + planeBytes) * 50).toBeLessThan(500e6)
})
