import { formatDay, VacancyError } from '@vacancy/shared'
import { seeded } from '@vacancy/testkit/random'
import { beforeEach, expect, test } from 'vitest'
import { copyOf } from '../testing/copied-node.ts'
import { TODAY } from '../testing/model.ts'
import { ask, createNodeInMemory, type NodeInMemory, raiseFeatureLevel } from '../testing/node-in-memory.ts'
import { decodeLedger, encodeLedger } from './ledger.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))
const place = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
let node: NodeInMemory

beforeEach(() => {
  node = createNodeInMemory(TODAY)
  raiseFeatureLevel(node)
  for (const propertyId of ['p', 'q']) {
    ask(node, 'SETPROP', { ...place, propertyId, amenities: [] })
    for (let n = 0; n < 4; n++) {
      for (const roomType of ['double', 'a suite']) {
        ask(node, 'SETROOMPKG', { propertyId, roomType, date: formatDay(TODAY + n), availability: 9, finalPrice: 5 })
      }
    }
  }
  const line = (propertyId: string, roomType = 'double') => ({
    ...{ propertyId, roomType, arrival: formatDay(TODAY), nights: 3, rooms: 2 },
  })
  ask(node, 'HOLDSTAY', { stayId: 'held', lines: [line('p'), line('q', 'a suite')], source: 'ota-17' })
  ask(node, 'BOOKSTAY', { stayId: 'booked', lines: [line('q')] })
  ask(node, 'RELEASESTAY', { stayId: 'void', void: 1 })
  // Debt, and a property of a second generation.
  ask(node, 'SETROOMAVL', { propertyId: 'p', roomType: 'double', date: formatDay(TODAY), amount: 1 })
  ask(node, 'DELPROP', { propertyId: 'q' })
})

test('without stays there is no block', () => {
  expect(encodeLedger(createNodeInMemory(TODAY).store.memory)).toHaveLength(0)
})

test('a replica that loaded the ledger writes the same bytes', () => {
  const bytes = encodeLedger(node.store.memory)

  expect(encodeLedger(copyOf(node).store.memory)).toEqual(bytes)
  const { stays, nights, generations } = decodeLedger(bytes, 'file')
  expect(stays).toHaveLength(3)
  expect(nights.map(({ held, debt }) => [held, debt])).toEqual(
    expect.arrayContaining([
      [2, 1],
      [2, 0],
    ]),
  )
  expect(generations.map(({ generation }) => generation)).toEqual([1])
})

test(`damaged bytes are refused as corrupt data, or are a ledger (VACANCY_SEED=${SEED})`, () => {
  const bytes = encodeLedger(node.store.memory)
  const random = seeded(SEED)
  const below = (limit: number) => Math.floor(random() * limit)
  let refused = 0
  for (let n = 0; n < 3_000; n++) {
    const damaged = n % 3 === 0 ? bytes.slice(0, below(bytes.length)) : bytes.slice()
    if (damaged.length > 0) damaged[below(damaged.length)] = below(256)
    try {
      decodeLedger(damaged, 'file')
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      expect(error.code).toBe('corrupt_data')
      refused++
    }
  }
  expect(refused).toBeGreaterThan(500)
})
