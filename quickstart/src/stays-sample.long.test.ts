import { connect } from '@vacancy/client'
import { dayOf } from '@vacancy/shared'
import {
  closeClient,
  openClient,
  removeFolder,
  somewhere,
  startNodeProcess,
  succeed,
  temporaryFolder,
} from '@vacancy/testkit/node'
import { expect, test } from 'vitest'
import { shardSearch } from './searches.ts'
import { makeSampleStays } from './stays-sample.ts'

test('a property gets a booked and a held stay as long as it has rooms, and a second start changes nothing', async () => {
  const folder = temporaryFolder()
  const node = await startNodeProcess({ folder })
  const today = dayOf(Date.now())
  const { fields } = shardSearch(today)
  const wire = await openClient(node)
  for (const [propertyId, availability] of [
    ['roomy', 2],
    ['narrow', 1],
  ] as const) {
    await succeed(wire, 'SETPROP', somewhere(propertyId, fields.segment))
    for (const date of fields.dates) {
      const night = { propertyId, roomType: fields.roomType, date }
      await succeed(wire, 'SETROOMPKG', { ...night, availability, finalPrice: 90, rateFeatures: [] })
    }
  }
  closeClient(wire)
  const client = await connect({ host: '127.0.0.1', port: node.tcpPort })

  const first = await makeSampleStays(client, today)
  const again = await makeSampleStays(client, today)
  const stays = await Promise.all(['roomy', 'narrow'].map((propertyId) => client.stays({ propertyId })))

  expect([first.booked, first.held]).toEqual([2, 1])
  expect(stays.map(({ stays }) => stays.map(({ state }) => state).sort())).toEqual([['booked', 'held'], ['booked']])
  expect(again).toEqual(first)

  await client.close()
  await node.stop()
  removeFolder(folder)
})
