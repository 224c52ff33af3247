/** A follower with a wrong state is detected, ends, and returns with the state of the others; real processes. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask, closeClient, dateIn, getText, openClient, somewhere, statusOf, succeed } from '@vacancy/testkit/node'
import { environmentWith, NODE_PLANTS } from '@vacancy/testkit/plant'
import { becomes, infoOf, leaderOf, type Shard, type ShardNode, sameDigest, startShard } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

let shard: Shard
const NIGHT = { propertyId: 'hotel_1', roomType: 'room', date: dateIn(5) }

beforeAll(async () => {
  shard = await startShard()
})
afterAll(() => shard.close())

async function count(leader: ShardNode, times: number): Promise<void> {
  const client = await openClient(leader)
  for (let i = 0; i < times; i++) await succeed(client, 'DECROOMAVL', { ...NIGHT, amount: 1 })
  closeClient(client)
}

/** Digests at the newest index that all of these nodes noted. */
async function marksOf(nodes: readonly ShardNode[]): Promise<readonly (string | undefined)[] | undefined> {
  const digests = await Promise.all(nodes.map(async (node) => (await statusOf(node)).digest))
  const [first] = digests
  if (!first || first.checked_index === 0) return undefined
  return digests.every((each) => each?.checked_index === first.checked_index)
    ? digests.map((each) => each?.checked_value)
    : undefined
}

test('a follower with a wrong state ends with 72 and returns with the state of the others (it used to keep its own)', async () => {
  const leader = await leaderOf(shard)
  const client = await openClient(leader)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  await succeed(client, 'SETROOMPKG', { ...NIGHT, availability: 200, finalPrice: 100 })
  closeClient(client)
  const first = await happens('all nodes note their digest at one index', shard.running(), () =>
    marksOf(shard.running()),
  )
  expect(new Set(first).size).toBe(1)

  const follower = shard.running().find(({ name }) => name !== leader.name) as ShardNode
  await follower.stop()
  const wrong = shard.start(follower.name, {
    environment: environmentWith(NODE_PLANTS.wrongDecrement),
  })
  await becomes(wrong, 'active_follower')
  await count(leader, 5)

  // It stops serving and reports the reason before it ends.
  const [status, text] = await happens('the reason is reported', [wrong, leader], async () => {
    const answer = await getText(wrong, '/ready')
    return answer[1].includes('digest_mismatch') && answer
  })
  expect(status).toBe(503)
  expect(JSON.parse(text)).toMatchObject({ ready: false })
  await expect(openClient(wrong)).rejects.toThrow()
  expect((await wrong.ended).code).toBe(73)
  expect(readFileSync(join(wrong.dataDir, 'SUSPECT'), 'utf8')).toMatch(/^The state after index \d+ has digest/)

  const back = shard.start(follower.name)
  await becomes(back, 'active_follower')
  expect(existsSync(join(back.dataDir, 'SUSPECT'))).toBe(false)
  expect(readdirSync(join(back.dataDir, 'quarantine')).some((name) => name.includes('digest-mismatch'))).toBe(true)
  await happens('it is a voter again', [back, leader], async () => {
    const { members } = await infoOf(leader)
    return members.voters.length === 3 && members.voters.includes(follower.name)
  })
  // Before the writes: a shard at rest notes its digest once after them, and never again.
  const before = (await statusOf(leader)).digest?.checked_index ?? 0
  await count(leader, 5)
  await sameDigest(shard.running())
  const marks = await happens('all note their digest at a later index', shard.running(), async () => {
    const found = await marksOf(shard.running())
    return ((await statusOf(leader)).digest?.checked_index ?? 0) > before && found
  })
  expect(new Set(marks).size).toBe(1)
  const reader = await openClient(back)
  const { result } = (await ask(reader, 'GETPROPROOMDAY', NIGHT)) as { result: { availability: number } }
  expect(result.availability).toBe(190)
  closeClient(reader)
})
