/**
 * Members join, change role and leave during writes, with real processes (docs/design/consensus.md#membership,
 * docs/design/http.md#cluster-changes).
 */

import { rmSync } from 'node:fs'
import {
  becomes,
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
import { startWriters, type Writers } from '../testing/shard-writer.ts'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

let shard: Shard
let writers: Writers

beforeAll(async () => {
  shard = await startShard()
  writers = startWriters(shard)
})
afterAll(() => shard.close())

const adding = [202, 'add in progress']
const removing = [202, 'remove in progress']
const refused = (status: number, error: string) => [status, JSON.stringify({ error })]

/** Waits until the leader reports the node in this role and no operation is running. */
async function isAmong(kind: 'voters' | 'learners', node: string, wanted = true): Promise<void> {
  await happens(`${node} is ${wanted ? 'among' : 'not among'} the ${kind}`, shard.running(), async () => {
    for (const each of shard.running()) {
      const { leader_id, members, operation } = await infoOf(each)
      if (leader_id === each.name) return operation === null && members[kind].includes(node) === wanted
    }
    return undefined
  })
}

async function aFollower(): Promise<ShardNode> {
  const leader = await leaderOf(shard)
  return shard.running().find((node) => node !== leader) as ShardNode
}

test('refuses an unknown node, an invalid id and a missing token', async () => {
  const follower = await aFollower()
  const leader = await leaderOf(shard)

  for (const node of [leader, follower]) {
    const unknown = refused(404, 'unknown node')
    expect(await postText(node, '/cluster/promote-learner', { node_id: 'node-9' })).toEqual(unknown)
    expect(await postText(node, '/cluster/demote-voter', { node_id: 'node-9' })).toEqual(unknown)
    expect(await postText(node, '/cluster/transfer-leader', { target_node_id: 'node-9' })).toEqual(unknown)
    expect(await postText(node, '/admin/add-member/node-9')).toEqual(unknown)
    expect(await postText(node, '/admin/remove-member/node-9')).toEqual(unknown)
    expect(await postText(node, '/admin/transfer-leader/node-9')).toEqual(unknown)
  }
  expect(await postText(follower, '/cluster/promote-learner', {})).toEqual(refused(400, 'node_id is required'))
  expect(await postText(follower, '/cluster/promote-learner', { node_id: 'node-1' }, '')).toEqual(
    refused(401, 'missing authorization header'),
  )
  expect(await postText(follower, '/cluster/promote-learner', { node_id: leader.name })).toEqual(adding)
})

test('a learner joins by one seed, is promoted, demoted and removed', async () => {
  const learner = shard.start('node-4', { flags: ['--seed', 'node-2'] })
  await isAmong('learners', 'node-4')
  await becomes(learner, 'active_follower')
  const toLearner = await postText(learner, '/cluster/transfer-leader', { target_node_id: 'node-4' })
  expect(toLearner).toEqual(refused(409, 'the target is a learner'))

  expect(await postText(learner, '/cluster/promote-learner', { node_id: 'node-4' })).toEqual(adding)
  await isAmong('voters', 'node-4')
  expect(await postText(learner, '/admin/remove-member/node-4')).toEqual(removing)
  await isAmong('learners', 'node-4')
  expect(await postText(learner, '/admin/remove-member/node-4')).toEqual(removing)
  await isAmong('learners', 'node-4', false)

  await becomes(learner, 'unavailable')
  await happens('it logs the reason', [learner], () => learner.output().includes('is no longer a member of its shard'))
  expect(await learner.stop()).toEqual({ code: 0, signal: null })
})

test('a demoted leader hands over first', async () => {
  const leader = await leaderOf(shard)
  expect(await postText(leader, '/cluster/demote-voter', { node_id: leader.name })).toEqual(removing)
  await isAmong('learners', leader.name)
  expect((await leaderOf(shard)).name).not.toBe(leader.name)

  expect(await postText(leader, `/admin/add-member/${leader.name}`)).toEqual(adding)
  await isAmong('voters', leader.name)
})

test('while a voter is down it cannot become leader, and no other voter can be removed', async () => {
  const follower = await aFollower()
  const leader = await leaderOf(shard)
  const other = shard.running().find((node) => node !== leader && node !== follower) as ShardNode
  await follower.kill()
  await happens('it counts as inactive', [leader], async () => {
    const { nodes } = await infoOf(leader)
    return nodes.find(({ id }) => id === follower.name)?.health === 'inactive'
  })

  const transfer = await postText(leader, '/cluster/transfer-leader', { target_node_id: follower.name })
  expect(transfer).toEqual(refused(409, 'the target is inactive'))
  const demote = await postText(leader, '/cluster/demote-voter', { node_id: other.name })
  expect(demote).toEqual(refused(409, 'the remaining voters would be no healthy majority'))

  shard.start(follower.name)
  await leaderOf(shard)
})

test('a voter whose disk was wiped returns as a new member and is promoted', async () => {
  const victim = await aFollower()
  await victim.kill()
  rmSync(victim.dataDir, { recursive: true })

  const again = shard.start(victim.name)

  await happens('it is a voter again', shard.running(), async () => {
    const { members, last_operation: last } = await infoOf(await leaderOf(shard))
    return last?.kind === 'replace' && last.result === 'done' && members.voters.includes(victim.name)
  })
  await becomes(again, 'active_follower', 'active_leader')
})

test('all voters but the last can be removed', async () => {
  const leader = await leaderOf(shard)
  const others = shard.voters.filter((voter) => voter !== leader.name)
  for (const voter of others) {
    expect(await postText(leader, '/cluster/demote-voter', { node_id: voter })).toEqual(removing)
    await isAmong('learners', voter)
  }
  const last = await postText(leader, '/cluster/demote-voter', { node_id: leader.name })
  expect(last).toEqual(refused(409, 'it is the last voter'))
})

test('no write was lost or applied twice', async () => {
  await writers.stop()
  await sameDigest(shard.running())
  for (const node of shard.running()) expect(await writers.differences(node)).toEqual([])
})
