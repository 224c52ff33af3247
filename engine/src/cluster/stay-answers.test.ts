import { formatDay, packPropertyId, parseDay } from '@vacancy/shared'
import type { StayEntry, StayLine, StayResult } from '@vacancy/shared/wire'
import { createRandom } from '@vacancy/testkit/random'
import { beforeEach, expect, test } from 'vitest'
import {
  beginCommand,
  createCommandWriter,
  KIND,
  writeBytes,
  writeF64,
  writeName,
  writeU8,
  writeU32,
} from '../store/command.ts'
import { encodeSetting } from '../store/stay-settings.ts'
import {
  applyCommandOf,
  applyOwn,
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  raiseFeatureLevel,
} from '../testing/node-in-memory.ts'
import { staysOf } from './stay-answers.ts'

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

test('the reply to a booking has its state, its total, its index, its lines and what is left', () => {
  const lines = [line(), line({ propertyId: 'spa', arrival: day(1), nights: 3, rooms: 1, uncounted: true })]
  const booked = result('BOOKSTAY', { stayId: 's1', lines })
  expect(booked).toEqual({
    ...{ state: 'booked', total: 2 * (100_000 + 100_001), index: node.index },
    // Over the end of the year.
    lines: [
      { ...lines[0], days: [left(0, 7), left(1, 7)] },
      { ...lines[1], days: [left(1, 8), left(2, 8), left(3, 8)] },
    ],
  })
  expect(result('GETSTAY', { stayId: 's1' })).toEqual(booked)
})

test('the reply to a hold has its deadline; a released stay has no nights left to show', () => {
  const held = result('HOLDSTAY', { stayId: 's1', seconds: 60, lines: [line()] })
  expect(held).toMatchObject({ state: 'held', deadlineMs: NOW + 60_000, lines: [{ days: [left(0, 7), left(1, 7)] }] })
  const booked = result('CONFIRMSTAY', { stayId: 's1' })
  expect(booked).toMatchObject({ state: 'booked', lines: [{ days: [left(0, 7), left(1, 7)] }] })
  expect(booked.deadlineMs).toBeUndefined()
  const released = result('RELEASESTAY', { stayId: 's1' })
  expect(released).toEqual({ state: 'released', total: held.total, index: node.index, lines: [line()] })
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

test('a total beyond 32 bits is exact', () => {
  ask(node, 'SETROOMPKG', { propertyId: 'inn', roomType: 'double', date: day(0), finalPrice: 4_294_967_294 })
  expect(result('BOOKSTAY', { stayId: 's1', lines: [line({ nights: 1, rooms: 3 })] }).total).toBe(12_884_901_882)
})

test('the longest names and the most lines fit the reply', () => {
  const roomType = 'r'.repeat(255)
  for (let n = 0; n < 16; n++) setNight('inn', n, roomType)
  const lines = Array.from({ length: 16 }, (_, n) => line({ roomType, arrival: day(n), nights: 1, rooms: n % 9 || 1 }))
  expect(result('BOOKSTAY', { stayId: 's1', lines }).lines).toMatchObject(lines)
  expect(list({ propertyId: 'inn' }).stays[0]?.lines).toEqual(lines)
})

test('a repeated call and one that is refused have the replies of their outcomes', () => {
  const booked = result('BOOKSTAY', { stayId: 's1', lines: [line()] })
  expect(result('BOOKSTAY', { stayId: 's1', lines: [line()] })).toEqual(booked)
  expect(ask(node, 'BOOKSTAY', { stayId: 's2', lines: [line({ rooms: 8 })] }).error).toBe('SOLD_OUT')
  expect(ask(node, 'GETSTAY', { stayId: 's2' }).text).toBe('NOT_FOUND: stay not found')
  expect(ask(node, 'LISTSTAYS', { propertyId: 'other' }).text).toBe('NOT_FOUND: property not found')
})

// Lists

type Listed = { readonly stays: readonly StayEntry[]; readonly cursor: string }

function list(fields: LooseFields): Listed {
  const answer = ask(node, 'LISTSTAYS', fields)
  expect(answer.text ?? '').toBe('')
  return answer.result as unknown as Listed
}
const idsOf = ({ stays }: Listed) => stays.map(({ stayId }) => stayId)

test('an entry of a list has all that is stored of the stay', () => {
  result('HOLDSTAY', {
    stayId: 's1',
    seconds: 60,
    source: 'web',
    lines: [line(), line({ arrival: day(3), nights: 1 })],
  })
  const expected = {
    ...{ stayId: 's1', state: 'held', deadlineMs: NOW + 60_000, index: node.index, timeMs: NOW, source: 'web' },
    lines: [line(), line({ arrival: day(3), nights: 1 })],
  }
  expect(list({ propertyId: 'inn' })).toEqual({ stays: [expected], cursor: '' })
  node.timeMs = NOW + 1_234
  result('RELEASESTAY', { stayId: 's1' })
  const { stays } = list({ propertyId: 'inn' })
  expect(stays).toMatchObject([{ state: 'released', index: node.index, timeMs: NOW + 1_234, source: 'web' }])
  expect(stays[0]?.deadlineMs).toBeUndefined()
})

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

// The ledger

test('the first deadline is that of the hold that ends first, and infinite without holds', () => {
  const ledger = staysOf(node.store)
  expect(ledger.nextDeadlineMs()).toBe(Number.POSITIVE_INFINITY)
  expect(ledger.status().nextDeadlineMs).toBe(0)
  result('HOLDSTAY', { stayId: 's1', seconds: 90, lines: [line()] })
  result('HOLDSTAY', { stayId: 's2', seconds: 60, lines: [line()] })
  expect(ledger.nextDeadlineMs()).toBe(NOW + 60_000)
  expect(ledger.status()).toMatchObject({
    stays: 2,
    held: 2,
    oversoldNights: 0,
    oversold: [],
    nextDeadlineMs: NOW + 60_000,
  })
  result('CONFIRMSTAY', { stayId: 's2' })
  expect(ledger.nextDeadlineMs()).toBe(NOW + 90_000)
  node.timeMs = NOW + 90_000
  applyOwn(node, KIND.expireHolds, () => undefined)
  expect(ledger.status()).toMatchObject({ stays: 2, held: 0, expired: 1, nextDeadlineMs: 0 })
})

test('a leader admits what the ledger has room for, and always a repeat', () => {
  const ledger = staysOf(node.store)
  const admits = (kind: typeof KIND.bookStay | typeof KIND.holdStay, stayId: string, source = 'web') => {
    const writer = createCommandWriter()
    beginCommand(writer, kind)
    writeBytes(writer, packPropertyId(stayId) as Uint8Array, 0, 16)
    writeU8(writer, 0)
    writeU32(writer, 900)
    writeF64(writer, 0)
    writeU32(writer, 0)
    writeBytes(writer, new Uint8Array(16), 0, 16)
    writeName(writer, new TextEncoder().encode(source), 0, source.length)
    writeU8(writer, 0)
    return ledger.admits(writer.bytes, 0, writer.at)
  }
  expect([admits(KIND.holdStay, 's1'), admits(KIND.bookStay, 's1')]).toEqual([true, true])
  applyCommandOf(node, KIND.setting, encodeSetting('holds_max_per_source', 1))
  result('HOLDSTAY', { stayId: 's1', source: 'web', lines: [line()] })
  expect(admits(KIND.holdStay, 's1')).toBe(true)
  expect(admits(KIND.holdStay, 's2')).toBe(false)
  expect(admits(KIND.bookStay, 's2')).toBe(true)
  expect(admits(KIND.holdStay, 's2', 'desk')).toBe(true)
  // A hold whose time is over no longer counts.
  node.timeMs = NOW + 900_000
  ask(node, 'SETPROP', { ...PROPERTY, propertyId: 'bare' })
  expect(admits(KIND.holdStay, 's2')).toBe(true)
})
