/** The history of a night through the control plane, from the log of a real node. */
import { connect, type VacancyClient } from '@vacancy/client'
import { dayOf, formatDay } from '@vacancy/shared'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startNode } from '../testing/nodes.ts'
import { openPlayground } from '../testing/playground-world.ts'

const DATE = formatDay(dayOf(Date.now()) + 2)
const ROUTE = 'GET /api/v1/shards/{shard}/properties/{property}/night'

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
  await client.setPackage({ propertyId: 'h1', roomType: 'double', date: DATE, availability: 1, finalPrice: 100 })
  world = await openPlayground([{ ...node, id: 'n1' }])
}, 240_000)
afterAll(async () => {
  await world?.close()
  await client?.close()
  await node?.close()
})

const history = (query: object = {}, property = 'h1') =>
  world.call(ROUTE, { params: { shard: 's1', property }, query: { room: 'double', date: DATE, ...query } })

test('who took the last room is found, with stay, source and index', async () => {
  const line = { propertyId: 'h1', roomType: 'double', arrival: DATE, nights: 1, rooms: 1 }
  const { index } = await client.bookStay({ stayId: 'b1', source: 'ota-17', lines: [line] })
  await expect(client.bookStay({ stayId: 'b2', source: 'website', lines: [line] })).rejects.toMatchObject({
    code: 'SOLD_OUT',
  })

  const page = await history()
  expect(page).toMatchObject({ shard: 's1', node: 'n1', room_type: 'double', date: DATE, next: '' })
  expect(page.changes.map(({ kind, outcome, stay, source }) => [kind, outcome, stay, source])).toEqual([
    ['book', 'refused', 'b2', 'website'],
    ['book', 'done', 'b1', 'ota-17'],
    ['package', 'done', null, null],
  ])
  expect(page.changes[1]).toMatchObject({
    ...{ index: Number(index), rooms: 1 },
    ...{ before: { package: true, rooms: 1, price: 100 }, after: { package: true, rooms: 0, price: 100 } },
  })
  expect(Date.parse(page.changes[1]?.at ?? '')).toBeLessThanOrEqual(Date.now() + 60_000)
})

test('other nights and properties have a history of their own, and what is none is refused', async () => {
  expect((await history({ date: formatDay(dayOf(Date.now()) + 3) })).changes).toEqual([])
  expect((await history({}, 'h2')).changes).toEqual([])
  await expect(history({ cursor: 'x' })).rejects.toMatchObject({
    ...{ code: 'invalid-request', status: 400, message: expect.stringContaining('cursor') },
  })
  await expect(history({ node: 'n9' })).rejects.toMatchObject({ code: 'node-not-found' })
})
