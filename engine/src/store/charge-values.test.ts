/**
 * The voters of a shard may run different versions. All must charge the same for the same state, or they refuse
 * different writes. So these values never change within a feature level.
 */

import { formatDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { ask, createNodeInMemory, raiseFeatureLevel, setMemoryBudget } from '../testing/node-in-memory.ts'
import {
  amenitiesCharge,
  budgetUse,
  capacityBytes,
  createCharge,
  fitsBudget,
  growthLeft,
  memoryBudgetOf,
  nameCharge,
  nameGrowth,
  propertyCharge,
  roomListCharge,
  segmentCharge,
  sessionBytesLimit,
  tableBytes,
  worstCapacity,
} from './charge.ts'
import { bitmapBytes, capacityFor, grownCapacity, NAMES, planeBytes } from './layout.ts'
import { stateDigest } from './store.ts'

const TODAY = 20_000
const row = (values: readonly number[]) => values.join(' ')
const COUNTS = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 65, 128, 129, 255, 256, 1_000, 4_097, 100_000]

test('capacities of tables, and the bytes of their planes and bitmaps', () => {
  expect(row(COUNTS.map(capacityFor))).toMatchInlineSnapshot(
    `"8 8 8 8 8 8 8 32 32 32 128 128 128 128 256 256 256 1024 4224 100096"`,
  )
  expect(row(COUNTS.map(worstCapacity))).toMatchInlineSnapshot(
    `"8 8 8 8 8 8 8 32 32 32 128 128 128 256 256 384 384 1152 4480 106368"`,
  )
  expect(row(COUNTS.slice(1).map((rows) => grownCapacity(capacityFor(rows))))).toMatchInlineSnapshot(
    `"32 32 32 32 32 32 128 128 128 256 256 256 256 384 384 384 1152 4608 106368"`,
  )
  expect(row(COUNTS.map((rows) => planeBytes(capacityFor(rows))))).toMatchInlineSnapshot(
    `"96 96 96 96 96 96 96 288 288 288 1056 1056 1056 1056 2096 2096 2096 8336 34336 813296"`,
  )
  expect(row(COUNTS.map((rows) => bitmapBytes(capacityFor(rows))))).toMatchInlineSnapshot(
    `"16 16 16 16 16 16 16 16 16 16 16 16 16 16 32 32 32 128 528 12512"`,
  )
})

test('charges of tables by rows and nights', () => {
  expect(row(COUNTS.map((rows) => tableBytes(rows, 0)))).toMatchInlineSnapshot(
    `"288 288 288 288 288 288 288 768 768 768 2688 2688 2688 38016 38016 48768 48768 113280 392832 8951424"`,
  )
  expect(row(COUNTS.map((rows) => tableBytes(rows, 1)))).toMatchInlineSnapshot(
    `"512 512 512 512 512 512 512 1184 1184 1184 3872 3872 3872 40240 40240 52032 52032 122784 429376 9815808"`,
  )
  expect(row([1, 11, 12, 13, 33, 384].map((nights) => capacityBytes(100, nights)))).toMatchInlineSnapshot(
    `"3088 12688 13648 14480 31120 323152"`,
  )
})

test('charges of properties, names and segments', () => {
  expect(row(COUNTS.slice(0, 11).map(roomListCharge))).toMatchInlineSnapshot(
    `"104 104 104 104 104 128 200 224 392 416 800"`,
  )
  expect(row(COUNTS.slice(0, 11).map(amenitiesCharge))).toMatchInlineSnapshot(`"0 8 16 16 24 24 40 40 72 72 136"`)
  expect(row([propertyCharge(0, 0), propertyCharge(3, 1), propertyCharge(64, 256)])).toMatchInlineSnapshot(
    `"224 240 3464"`,
  )
  expect(row([0, 1, 4, 5, 12, 13, 255].map(nameCharge))).toMatchInlineSnapshot(`"8 8 8 16 16 24 264"`)
  expect(row(COUNTS.slice(0, 11).map(segmentCharge))).toMatchInlineSnapshot(
    `"48 88 88 120 120 184 184 312 312 568 1080"`,
  )
  const growth = (kind: number) =>
    COUNTS.slice(0, 15).map((count) => {
      const charge = createCharge()
      charge.names[kind] = count
      return nameGrowth(charge, kind, 1, 10)
    })
  expect(row(growth(NAMES.area))).toMatchInlineSnapshot(`"402 10 10 10 10 10 10 10 394 10 10 1546 10 3082 10"`)
  expect(row(growth(NAMES.segment))).toMatchInlineSnapshot(`"402 10 10 10 10 10 10 10 394 10 10 1802 10 3594 10"`)
})

test('charge, room and digest of a state', () => {
  const node = createNodeInMemory(TODAY, 64 << 20)
  const { store } = node
  const before = [store.writer.charge.bytes, growthLeft(store), sessionBytesLimit(store.memory)]
  expect(row(before)).toMatchInlineSnapshot(`"0 Infinity 1048576"`)
  expect(memoryBudgetOf(store)).toMatchInlineSnapshot(`25611264`)
  raiseFeatureLevel(node, 1)
  setMemoryBudget(node, 4 << 20)
  const seen = () => {
    const { chargedBytes, leftBytes } = budgetUse(store)
    const { lo, hi } = stateDigest(store.memory)
    return [chargedBytes, leftBytes, hi, lo]
  }
  const steps = [seen()]
  const place = { area: 'valley', propertyType: 'hotel', category: 'standard', latitude: 47, longitude: 11 }
  for (let i = 0; i < 300; i++) {
    const own = {
      propertyId: `hotel_${i}`,
      segment: `segment_${i % 3}`,
      stars: 1 + (i % 5),
      amenities: ['wifi', 'pool'].slice(i % 3),
    }
    ask(node, 'SETPROP', { ...place, ...own })
    const night = { propertyId: own.propertyId, roomType: `room_${i % 4}`, date: formatDay(TODAY + (i % 40)) }
    ask(node, 'SETROOMPKG', { ...night, availability: i % 7, finalPrice: 100 + i, rateFeatures: ['breakfast'] })
    if (i === 9) steps.push(seen())
  }
  steps.push(seen())
  for (let i = 0; i < 300; i += 2) ask(node, 'DELPROP', { propertyId: `hotel_${i}` })
  steps.push(seen())
  ask(node, 'DELSEGMENT', { segment: 'segment_1' })
  steps.push(seen())

  expect(steps.map(row).join('\n')).toMatchInlineSnapshot(`
    "0 3211264 1714577683 3467971169
    11200 3199424 3974996329 2469483031
    139688 3061976 1480549955 1199566088
    90488 3115656 1387311864 2477325883
    61168 3144976 2270617760 1336717366"
  `)
  const left = growthLeft(store)
  expect([0, left, left + 1].map((bytes) => fitsBudget(store, bytes, 0))).toEqual([true, true, false])
  setMemoryBudget(node, 2 << 20)
  expect(row([sessionBytesLimit(store.memory), growthLeft(store)])).toMatchInlineSnapshot(`"262144 1375504"`)
  expect(fitsBudget(store, -1, 1 << 30)).toBe(true)
  setMemoryBudget(node, 3 * 2 ** 32 + 5)
  expect([budgetUse(store).budgetBytes, sessionBytesLimit(store.memory)]).toEqual([3 * 2 ** 32 + 5, 1 << 20])
})
