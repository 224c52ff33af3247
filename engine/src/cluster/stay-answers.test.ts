import { formatDay, parseDay } from '@vacancy/shared'
import type { StayEntry, StayLine, StayResult } from '@vacancy/shared/wire'
import { createRandom } from '@vacancy/testkit/random'
import { beforeEach, expect, test } from 'vitest'
import { KIND, writeU8, writeU32 } from '../store/command.ts'
import { createLedger } from '../store/ledger.ts'
import { latestTime } from '../store/store.ts'
import {
  applyOwn,
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  raiseFeatureLevel,
} from '../testing/node-in-memory.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const TODAY = parseDay('2026-12-30') as number
const NOW = TODAY * 86_400_000 + 43_200_000
const PROPERTY = {
  ...{
    segment: 'alpine',
    area: 'valley',
    propertyType: 'hotel',
    category: 'standard',
    stars: 3,
    latitude: 47,
    longitude: 11,
  },
  amenities: [],
}
const day = (n: number) => formatDay(TODAY + n)

let node: NodeInMemory

beforeEach(() => {
  node = createNodeInMemory(TODAY)
  node.timeMs = NOW
  raiseFeatureLevel(node)
  for (const propertyId of ['inn', 'spa', 'bare']) ask(node, 'SETPROP', { ...PROPERTY, propertyId })
  for (const propertyId of ['inn', 'spa']) for (let n = 0; n < 5; n++) setNight(propertyId, n)
})

function setNight(propertyId: string, n: number, roomType = 'double'): void {
  const night = { propertyId, roomType, date: day(n), availability: 9, finalPrice: 100_000 + n }
  ask(node, 'SETROOMPKG', { ...night, rateFeatures: n === 1 ? ['wifi', 'half_board'] : [] })
}

const line = (more: Partial<StayLine> = {}): StayLine => ({
  ...{ propertyId: 'inn', roomType: 'double', arrival: day(0), nights: 2, rooms: 2 },
  ...more,
})
const result = (command: 'BOOKSTAY' | 'HOLDSTAY' | 'GETSTAY' | 'RELEASESTAY' | 'CONFIRMSTAY', fields: LooseFields) => {
  const answer = ask(node, command, fields)
  expect(answer.text ?? '').toBe('')
  return answer.result as StayResult
}
const left = (n: number, availability: number) => ({
  ...{ date: day(n), availability, finalPrice: 100_000 + n },
  rateFeatures: n === 1 ? ['wifi', 'half_board'] : [],
})

test('a new store has forgotten no stay before its time', () => {
  const { store } = createNodeInMemory(TODAY)

  expect(createLedger().counts.evictedAtMs).toBeLessThan(latestTime(store.memory) - 86_400_000)
})

test('nights without a package, past nights, and nights of a deleted property are not shown', () => {
  result('BOOKSTAY', { stayId: 's1', lines: [line({ nights: 4 })] })
  ask(node, 'DELROOMDAY', { propertyId: 'inn', roomType: 'double', date: day(2) })
  const days = () => result('GETSTAY', { stayId: 's1' }).lines[0]?.days?.map(({ date }) => date)
  expect(days()).toEqual([day(0), day(1), day(3)])
  applyOwn(node, KIND.dropBefore, (writer) => {
    writeU32(writer, TODAY + 1)
    writeU8(writer, 0)
  })
  expect(days()).toEqual([day(1), day(3)])
  // In the next year the format of dates has no place for the nights of the last one.
  node.day = TODAY + 2
  node.timeMs = NOW + 1.9 * 86_400_000
  ask(node, 'SETPROP', { ...PROPERTY, propertyId: 'bare' })
  expect(days()).toEqual([day(3)])
  ask(node, 'DELPROP', { propertyId: 'inn' })
  expect(days()).toEqual([])
  expect(result('GETSTAY', { stayId: 's1' }).lines).toMatchObject([line({ nights: 4 })])
})

// Lists

type Listed = { readonly stays: readonly StayEntry[]; readonly cursor: string }

function list(fields: LooseFields): Listed {
  const answer = ask(node, 'LISTSTAYS', fields)
  expect(answer.text ?? '').toBe('')
  return answer.result as unknown as Listed
}
const idsOf = ({ stays }: Listed) => stays.map(({ stayId }) => stayId)

test('stays are listed by property, room type and night, newest first', () => {
  setNight('inn', 2, 'suite')
  result('BOOKSTAY', { stayId: 'a', lines: [line({ nights: 3 })] })
  const suite = result('BOOKSTAY', { stayId: 'b', lines: [line({ roomType: 'suite', arrival: day(2), nights: 1 })] })
  expect(suite.lines[0]?.days).toEqual([left(2, 7)])
  result('BOOKSTAY', { stayId: 'c', lines: [line({ propertyId: 'spa' })] })
  result('BOOKSTAY', {
    stayId: 'd',
    lines: [line({ arrival: day(3), nights: 1 }), line({ arrival: day(4), nights: 1 })],
  })
  const of = (fields: LooseFields) => idsOf(list({ propertyId: 'inn', ...fields }))
  expect(of({})).toEqual(['d', 'b', 'a'])
  expect(of({ propertyId: 'spa' })).toEqual(['c'])
  expect(of({ propertyId: 'bare' })).toEqual([])
  expect(of({ roomType: 'suite' })).toEqual(['b'])
  expect(of({ roomType: 'double' })).toEqual(['d', 'a'])
  expect(of({ roomType: 'other' })).toEqual([])
  expect([0, 1, 2, 3, 4].map((n) => of({ date: day(n) }))).toEqual([['a'], ['a'], ['b', 'a'], ['d'], ['d']])
  expect(of({ date: day(2), roomType: 'double' })).toEqual(['a'])
  // A stay that changes is the newest one again.
  result('RELEASESTAY', { stayId: 'a' })
  expect(of({})).toEqual(['a', 'd', 'b'])
})

test('pages of any size put together are the whole list, also of stays that changed at one index', () => {
  const random = createRandom(SEED)
  const ids = Array.from({ length: 9 }, (_, n) => `s${n}`)
  for (const stayId of ids) result('HOLDSTAY', { stayId, seconds: 10, lines: [line({ rooms: 1 })] })
  // All of them expire with one entry.
  node.timeMs = NOW + 20_000
  applyOwn(node, KIND.expireHolds, () => undefined)
  for (let n = 0; n < 4; n++) result('BOOKSTAY', { stayId: `b${n}`, lines: [line({ rooms: 1 })] })
  const whole = list({ propertyId: 'inn' })
  expect(whole.cursor).toBe('')
  expect(idsOf(whole)).toEqual(['b3', 'b2', 'b1', 'b0', ...ids.toReversed()])
  expect(new Set(whole.stays.slice(4).map(({ index }) => index)).size).toBe(1)
  for (let round = 0; round < 20; round++) {
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page: Listed = list({ propertyId: 'inn', limit: 1 + random.below(14), ...(cursor && { cursor }) })
      found.push(...idsOf(page))
      ;({ cursor } = page)
    } while (cursor !== '')
    expect(found, `seed ${SEED}, round ${round}`).toEqual(idsOf(whole))
  }
})
