/** Stays of people in the console, with a real node. */
import { connect, type VacancyClient } from '@vacancy/client'
import { dayOf, formatDay } from '@vacancy/shared'
import { TEST_CODECS } from '@vacancy/testkit/node'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startNode } from '../testing/nodes.ts'
import { openPlayground } from '../testing/playground-world.ts'

const NIGHTS = [1, 2, 3].map((n) => formatDay(dayOf(Date.now()) + n)) as [string, string, string]
const [FIRST, SECOND, THIRD] = NIGHTS
const UUID = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const line = { propertyId: 'h1', roomType: 'double', arrival: FIRST, nights: 2, rooms: 2 }
const SHARD = { params: { shard: 's1' } }
const at = (stay: string) => ({ params: { shard: 's1', stay } })

let node: Awaited<ReturnType<typeof startNode>>
let client: VacancyClient
let world: Awaited<ReturnType<typeof openPlayground>>

beforeAll(async () => {
  node = await startNode()
  client = await connect({ host: node.host, port: node.tcpPort })
  const place = { latitude: 48, longitude: 16, amenities: [] }
  await client.setProperty({
    ...{ segment: 'Vienna', area: 'a', propertyId: 'h1', propertyType: 'hotel', category: 'c', stars: 3, ...place },
  })
  for (const date of NIGHTS) {
    await client.setPackage({
      ...{ propertyId: 'h1', roomType: 'double', date, availability: 9, finalPrice: 100 },
      rateFeatures: TEST_CODECS.slice(0, 1),
    })
  }
  world = await openPlayground([{ ...node, id: 'n1' }])
}, 240_000)
afterAll(async () => {
  await world?.close()
  await client?.close()
  await node?.close()
})
beforeEach(() => void world.notes.splice(0))

test('a stay is found by its id in every spelling, with lines, total, deadline and source', async () => {
  await client.holdStay({ stayId: UUID, seconds: 900, lines: [line], source: 'ota-17' })

  for (const spelling of [
    UUID,
    UUID.toUpperCase(),
    ` ${UUID} `,
    UUID.replaceAll('-', ''),
    `{${UUID}}`,
    `urn:uuid:${UUID}`,
  ]) {
    const stay = await world.call('GET /api/v1/shards/{shard}/stays/{stay}', at(spelling))
    expect(stay).toMatchObject({ id: UUID, state: 'held', total: '400', source: 'ota-17', node: 'n1', shard: 's1' })
    expect(Date.parse(stay.deadline ?? '') - Date.now()).toBeGreaterThan(800_000)
    expect(stay.lines).toEqual([
      {
        ...{ property: 'h1', room: 'double', arrival: FIRST, nights: 2, rooms: 2, uncounted: false },
        days: [FIRST, SECOND].map((date) => ({ date, left: 7, price: 100, features: TEST_CODECS.slice(0, 1) })),
      },
    ])
  }
  await expect(world.call('GET /api/v1/shards/{shard}/stays/{stay}', at('nothing-here'))).rejects.toMatchObject({
    ...{ code: 'stay-not-found', status: 404 },
  })
  await expect(world.call('GET /api/v1/shards/{shard}/stays/{stay}', at('ä'))).rejects.toMatchObject({
    ...{ code: 'invalid-stay-id', status: 400 },
  })
})

test('stays are listed by property, room type and night in pages, and counted by night', async () => {
  await client.bookStay({ stayId: 'b1', lines: [{ ...line, arrival: SECOND, rooms: 1 }] })
  await client.bookStay({ stayId: 'b2', lines: [{ ...line, arrival: SECOND, rooms: 1 }] })
  await client.releaseStay('b2')
  const list = (query: object) => world.call('GET /api/v1/shards/{shard}/stays', { ...SHARD, query })

  const first = await list({ property: 'h1', limit: 2 })
  expect(first.stays.map(({ id, state }) => [id, state])).toEqual([
    ['b2', 'released'],
    ['b1', 'booked'],
  ])
  const second = await list({ property: 'h1', limit: 2, cursor: first.next })
  expect(second).toMatchObject({ stays: [{ id: UUID, source: 'ota-17' }], next: '' })
  expect((await list({ property: 'h1', room: 'double', date: THIRD })).stays).toHaveLength(2)
  expect((await list({ property: 'h1', room: 'suite' })).stays).toEqual([])
  await expect(list({ property: 'h2' })).rejects.toMatchObject({ code: 'property-not-found' })

  const query = { from: FIRST, nights: 3 }
  const params = { shard: 's1', property: 'h1' }
  const { nights, more } = await world.call('GET /api/v1/shards/{shard}/properties/{property}/stays', { params, query })
  const of = (date: string, held: number, booked: number, stays: number) => ({
    ...{ room: 'double', date, held, booked, stays, owed: 0 },
  })
  expect(nights).toEqual([of(FIRST, 2, 0, 1), of(SECOND, 2, 1, 2), of(THIRD, 0, 1, 1)])
  expect(more).toBe(false)
})

test('an oversold night is named, and marked in the calendar until its hold ends', async () => {
  const figures = () => world.call('GET /api/v1/shards/{shard}/stay-figures', SHARD)
  // A node measures its figures once a second.
  await expect.poll(async () => (await figures()).held).toBe(1)
  expect(await figures()).toMatchObject({ oversoldNights: 0, oversold: [] })

  await client.setAvailability({ propertyId: 'h1', roomType: 'double', date: FIRST, amount: 1 })
  await expect.poll(async () => (await figures()).oversoldNights).toBe(1)
  expect((await figures()).oversold).toEqual([
    { property_id: 'h1', room_type: 'double', date: FIRST, held: 2, owed: 1 },
  ])
  const params = { shard: 's1', property: 'h1' }
  const calendar = await world.call('GET /api/v1/shards/{shard}/properties/{property}/stays', {
    params,
    query: { from: FIRST },
  })
  expect(calendar.nights[0]).toMatchObject({ date: FIRST, held: 2, owed: 1 })
})

test('an operator changes when the day begins, and both the figures and the audit log show it', async () => {
  const ask = (value: number) =>
    world.call('POST /api/v1/shards/{shard}/settings', {
      ...SHARD,
      body: { name: 'day_begins_minutes', value, reason: 'a market in California' },
    })
  expect((await world.call('GET /api/v1/shards/{shard}/stay-figures', SHARD)).settings.day_begins_minutes).toBe(0)
  world.notes.splice(0)

  await expect(ask(1_201)).rejects.toMatchObject({ status: 400, message: expect.stringContaining('-840 to 1200') })
  expect((await ask(480)).settings.day_begins_minutes).toBe(480)
  expect(world.notes.map(({ action, result, detail }) => [action, result, detail])).toEqual([
    ['shard.setting', 'requested', 'day_begins_minutes = 1201, was 0'],
    ['shard.setting', 'failed', expect.stringContaining('must be')],
    ['shard.setting', 'requested', 'day_begins_minutes = 480, was 0'],
    ['shard.setting', 'done', 'day_begins_minutes = 480'],
  ])
  expect((await ask(0)).settings.day_begins_minutes).toBe(0)
  world.notes.splice(0)
})

test('a person confirms and releases; each is in the audit log with its reason, before and after', async () => {
  const confirm = { confirm: UUID, seen: 'held', reason: 'the guest paid at the desk' }
  const ask = () => world.call('POST /api/v1/shards/{shard}/stays/{stay}/confirm', { ...at(UUID), body: confirm })
  // The night is oversold: the source has one room left, the guest holds two.
  await expect(ask()).rejects.toMatchObject({ status: 409, message: expect.stringContaining('too few rooms left') })
  await client.setAvailability({ propertyId: 'h1', roomType: 'double', date: FIRST, amount: 9 })
  world.notes.splice(0)
  const confirmed = await ask()
  expect(confirmed).toMatchObject({ state: 'booked', deadline: null })
  expect(world.notes).toMatchObject([
    {
      action: 'stay.confirm',
      target: `s1: ${UUID}`,
      result: 'requested',
      reason: confirm.reason,
      principal: { name: 'ada' },
    },
    { action: 'stay.confirm', result: 'done' },
  ])

  world.notes.splice(0)
  const body = { confirm: 'b1', seen: 'booked', reason: 'cancelled by phone' }
  expect(await world.call('POST /api/v1/shards/{shard}/stays/{stay}/release', { ...at('b1'), body })).toMatchObject({
    ...{ state: 'released', lines: [{ days: null }] },
  })
  expect(world.notes.map(({ action, result }) => [action, result])).toEqual([
    ['stay.release', 'requested'],
    ['stay.release', 'done'],
  ])
})

test('a change is refused for another id, another state than was seen, and a stay that has ended', async () => {
  const release = (id: string, body: object) =>
    world.call('POST /api/v1/shards/{shard}/stays/{stay}/release', { ...at(id), body })

  await expect(release(UUID, { confirm: 'b1', seen: 'booked' })).rejects.toMatchObject({ code: 'not-confirmed' })
  await expect(release(UUID, { confirm: UUID, seen: 'held' })).rejects.toMatchObject({
    ...{ code: 'stay-changed', status: 409, message: `The stay ${UUID} was held and is booked now.` },
  })
  await expect(release('b1', { confirm: 'b1', seen: 'released' })).rejects.toMatchObject({ code: 'stay-changed' })
  await expect(release('b9', { confirm: 'b9', seen: 'held' })).rejects.toMatchObject({ code: 'stay-not-found' })
  expect(world.notes.map(({ result }) => result)).toEqual(['refused', 'refused', 'refused', 'refused'])
  expect((await client.stay(UUID)).state).toBe('booked')
})
