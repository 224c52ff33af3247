/**
 * A shard of three real processes accepts writes, loses its leader, and continues (docs/design/consensus.md#promises,
 * docs/design/consensus.md#leadership-transfer, docs/design/consensus.md#request-keys, docs/design/consensus.md#reads).
 */

import { ask, closeClient, dateIn, openClient, somewhere, succeed, type WireClient } from '@vacancy/testkit/node'
import {
  healthOf,
  infoOf,
  leaderOf,
  postText,
  type Shard,
  type ShardNode,
  sameDigest,
  startShard,
} from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startWriters } from '../testing/shard-writer.ts'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

let shard: Shard
const clients: WireClient[] = []
const ROOM = { propertyId: 'hotel_1', roomType: 'double', date: dateIn(3) }

beforeAll(async () => {
  shard = await startShard()
})
afterAll(async () => {
  for (const client of clients) closeClient(client)
  await shard.close()
})

async function connectTo(node: ShardNode): Promise<WireClient> {
  const client = await openClient(node)
  clients.push(client)
  return client
}

/** Every acknowledged write is on every node, once. */
async function nothingIsLost(writers: ReturnType<typeof startWriters>): Promise<void> {
  await writers.stop()
  await sameDigest(shard.running())
  for (const node of shard.running()) expect(await writers.differences(node)).toEqual([])
}

test('the leader accepts writes, followers redirect them and serve every kind of read', async () => {
  // The first leader of nodes that start on a busy machine may lose an election at once.
  const leader = await happens('a leader accepts writes', shard.running(), async () => {
    const node = await leaderOf(shard)
    const { ok } = await ask(await connectTo(node), 'SETPROP', somewhere('hotel_1'))
    return ok ? node : undefined
  })
  const follower = shard.running().find((node) => node !== leader) as ShardNode
  const [atLeader, atFollower] = [await connectTo(leader), await connectTo(follower)]
  const { index } = await succeed(atLeader, 'SETROOMPKG', { ...ROOM, availability: 5, wantIndex: 1 })
  expect(index).toBeGreaterThan(0)

  expect(await ask(atFollower, 'SETROOMAVL', { ...ROOM, amount: 1 })).toMatchObject({ ok: false, code: '308' })
  const read = (fields: object) => ask(atFollower, 'GETPROPROOMDAY', { ...ROOM, ...fields })
  const five = { ok: true, result: { availability: 5 } }
  expect(await read({ minIndex: index })).toMatchObject(five)
  expect(await read({ linearizable: 1 })).toMatchObject(five)
  expect(await read({ maxStalenessMs: 10_000 })).toMatchObject(five)
  expect(await read({})).toMatchObject(five)
  expect(await read({ minIndex: Number(index) + 1_000_000 })).toMatchObject({ ok: false, code: 'UNKNOWN_INDEX' })
  expect(await read({ maxStalenessMs: 0 })).toMatchObject({ ok: false, code: '503' })
})

test('acknowledged writes survive a killed leader, and none is applied twice', async () => {
  const writers = startWriters(shard, 'hotel_2')
  const leader = await leaderOf(shard)
  await happens('writes are answered', [leader], () => writers.acknowledged() > 200)

  await leader.kill()
  const before = writers.acknowledged()
  await happens('writes are answered again', shard.running(), () => writers.acknowledged() > before + 200)
  shard.start(leader.name)
  const next = await leaderOf(shard)

  expect(next.name).not.toBe(leader.name)
  await nothingIsLost(writers)
})

test('leadership is transferred, and a stopping leader hands it over first', async () => {
  const writers = startWriters(shard, 'hotel_3')
  const leader = await leaderOf(shard)
  const target = shard.running().find((node) => node !== leader) as ShardNode
  const path = '/cluster/transfer-leader'
  expect(await postText(leader, path, { target_node_id: target.name })).toEqual([202, 'transfer in progress'])
  await happens('the target leads', shard.running(), async () => (await leaderOf(shard)) === target)
  expect(await postText(leader, path, { target_node_id: target.name })).toEqual([202, 'transfer in progress'])

  const ended = await target.stop()

  expect(ended).toEqual({ code: 0, signal: null })
  const heirs = await Promise.all(shard.running().map(async (node) => (await infoOf(node)).leader_id))
  expect(heirs.filter((heir) => heir !== '' && heir !== target.name)).not.toEqual([])
  const before = writers.acknowledged()
  await happens('writes continue', shard.running(), () => writers.acknowledged() > before + 100)
  shard.start(target.name)
  await leaderOf(shard)
  await nothingIsLost(writers)
})

test('without a majority writes are refused, reads continue, and membership changes have no leader', async () => {
  const leader = await leaderOf(shard)
  const [survivor, other] = shard.running().filter((node) => node !== leader) as [ShardNode, ShardNode]
  const client = await connectTo(survivor)
  await Promise.all([leader.kill(), other.kill()])
  await happens('it knows no leader', [survivor], async () => (await infoOf(survivor)).leader_id === '')

  expect(await ask(client, 'GETPROPROOMDAY', ROOM)).toMatchObject({ ok: true, result: { availability: 5 } })
  expect(await ask(client, 'SETROOMAVL', { ...ROOM, amount: 1 })).toMatchObject({ ok: false, code: '503' })
  expect(await ask(client, 'GETPROPROOMDAY', { ...ROOM, linearizable: 1 })).toMatchObject({ ok: false, code: '503' })
  const noLeader = [503, '{"error":"no leader"}']
  expect(await postText(survivor, '/cluster/promote-learner', { node_id: 'node-4' })).toEqual(noLeader)
  expect(await postText(survivor, '/admin/transfer-leader/node-1')).toEqual(noLeader)
  expect(await healthOf(survivor)).toBe('active_follower')

  shard.start(leader.name)
  shard.start(other.name)
  await leaderOf(shard)
})

test('all nodes are killed at once: all acknowledged writes are restored', async () => {
  const writers = startWriters(shard, 'hotel_4')
  await happens('writes are answered', shard.running(), () => writers.acknowledged() > 200)

  await Promise.all(shard.running().map((node) => node.kill()))
  const before = writers.acknowledged()
  for (const voter of shard.voters) shard.start(voter)
  await happens('writes are answered again', shard.running(), () => writers.acknowledged() > before + 100)
  await leaderOf(shard)

  await nothingIsLost(writers)
})
