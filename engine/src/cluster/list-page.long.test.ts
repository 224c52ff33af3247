/** A list page of a shard of three: each replica returns the same bytes, so its pages may come from any of them. */

import { createCodecList } from '@vacancy/shared'
import { type CommandName, decodeReply, encodeRequest, type RequestFields, type Result } from '@vacancy/shared/wire'
import {
  answerTo,
  closeClient,
  dateIn,
  openClient,
  somewhere,
  statusOf,
  succeed,
  TEST_CODECS,
  type WireClient,
} from '@vacancy/testkit/node'
import { seeded } from '@vacancy/testkit/random'
import { becomes, leaderOf, postText, type Shard, type ShardNode, sameDigest, startShard } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'

const SEED = Number(process.env['VACANCY_SEED'] ?? 20_261_129)
const PROPERTIES = 150
const WEEKEND = [dateIn(5), dateIn(6)]
const FILTERED = { segment: 'alpine', anyRoomType: 1, dates: WEEKEND, stars: 4, rateFeatures: ['breakfast'] }
const CODECS = createCodecList(TEST_CODECS)

let shard: Shard
beforeAll(async () => {
  shard = await startShard({ config: { maintenance_hour: 23 } })
})
afterAll(() => shard.close())

/** Equal totals by the dozen, in no order of ids; and nights of today, which the next day drops. */
async function fill(client: WireClient): Promise<void> {
  const random = seeded(SEED)
  const below = (most: number) => Math.floor(random() * most)
  const ids = Array.from({ length: PROPERTIES }, (_, n) => ({ id: `hotel_${n}`, at: random() }))
  ids.sort((a, b) => a.at - b.at)
  for (const { id } of ids) await succeed(client, 'SETPROP', { ...somewhere(id), stars: 3 + below(2) })
  const packages = ids.flatMap(({ id }) =>
    ['double', 'suite'].flatMap((roomType) =>
      [dateIn(0), ...WEEKEND].map((date) => ({
        ...{ propertyId: id, roomType, date, availability: below(4), finalPrice: 100 + below(3) },
        rateFeatures: below(4) > 0 ? ['breakfast'] : [],
      })),
    ),
  )
  for (const each of packages) await succeed(client, 'SETROOMPKG', each)
}

/** The same request to each node, as bytes, once all of them have the same log position. */
async function onEach(fields: RequestFields): Promise<{ bytes: Buffer; result: Result<'SEARCHAVAIL'> }> {
  const command: CommandName = 'SEARCHAVAIL'
  const nodes = shard.running()
  const clients = await Promise.all(nodes.map((node) => openClient(node)))
  const read = async (client: WireClient) => {
    const correlationId = client.nextId++
    const answer = answerTo(client, correlationId)
    client.socket.write(encodeRequest({ command, correlationId, fields }))
    const bytes = Buffer.from((await answer) ?? [])
    const reply = decodeReply(command, bytes, { dates: WEEKEND, codecs: CODECS })
    if (!reply.ok) throw new Error(JSON.stringify(reply))
    return { bytes, result: reply.result }
  }
  try {
    return await happens('all nodes are at one log position', nodes, async () => {
      const replies = await Promise.all(clients.map(read))
      const [first] = replies as [Awaited<ReturnType<typeof read>>]
      if (replies.some(({ result }) => result.page?.index !== first.result.page?.index)) return undefined
      for (const { bytes } of replies) expect(bytes.equals(first.bytes)).toBe(true)
      return first
    })
  } finally {
    for (const client of clients) closeClient(client)
  }
}

/** The 25 cheapest with their totals and rooms, the number of all, and the next page. */
async function pages() {
  const ordered = { ...FILTERED, order: 1, want: 9, count: 1, limit: 25 }
  const { result: first } = await onEach(ordered)
  const { result: second } = await onEach({ ...ordered, cursor: first.page?.cursor })
  const hits = [first, second].map(({ properties }) =>
    properties.map(({ propertyId, total, roomType }) => ({ propertyId, total, roomType })),
  )
  return { hits, matches: first.page?.matches }
}

test(`the pages of a filtered weekend are the same bytes on all replicas, before and after maintenance (VACANCY_SEED=${SEED})`, async () => {
  const leader = await leaderOf(shard)
  const client = await openClient(leader)
  await fill(client)
  closeClient(client)
  await sameDigest(shard.running())

  const before = await pages()

  const [first, second] = before.hits as [(typeof before.hits)[0], (typeof before.hits)[0]]
  expect([first.length, second.length > 0, Number(before.matches) > 25]).toEqual([25, true, true])
  const both = [...first, ...second]
  expect(new Set(both.map(({ propertyId }) => propertyId)).size).toBe(both.length)
  expect(both.map(({ total }) => total)).toEqual(both.map(({ total }) => Number(total)).sort((a, b) => a - b))
  await happens('maintenance has run', [leader], async () => {
    await postText(leader, '/maintenance')
    return (await statusOf(leader)).maintenance?.last_success_at
  })
  expect(await pages()).toEqual(before)
  // A node that loads a snapshot has its rows in another order than one that wrote them.
  const follower = shard.running().find((node) => node !== leader) as ShardNode
  await follower.stop()
  await becomes(shard.start(follower.name), 'active_follower')
  await sameDigest(shard.running())
  expect(await pages()).toEqual(before)
})
