/** Wrong clocks in a shard of three real processes, each with its own clock. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask, closeClient, dateIn, openClient, runVacancy, somewhere, TEST_CODECS } from '@vacancy/testkit/node'
import {
  ADMIN_TOKEN,
  leaderOf,
  openShard,
  postText,
  type Shard,
  type ShardNode,
  sameDigest,
} from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterEach, expect, test } from 'vitest'
import { createFakeClock, type FakeClock } from '../testing/faketime.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
let shard: Shard

afterEach(() => shard.close())

async function startWithClocks(offsetsMs: readonly number[]): Promise<Map<string, FakeClock>> {
  shard = await openShard()
  shard.startRegistry()
  shard.startResolver()
  const clocks = new Map<string, FakeClock>()
  for (const [i, name] of shard.voters.entries()) {
    const clock = createFakeClock(shard.folder, name, offsetsMs[i] ?? 0)
    clocks.set(name, clock)
    shard.start(name, { environment: clock.environment })
  }
  await leaderOf(shard)
  return clocks
}

type Status = {
  readonly clock: { readonly shard_time: string | null; readonly last_set: object | null } | null
  readonly reasons: readonly { readonly reason: string }[]
}

async function statusOf(node: ShardNode): Promise<Status> {
  const response = await fetch(`http://${node.host}:${node.apiPort}/status`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  })
  return (await response.json()) as Status
}

/** Shard time as a node knows it minus true time, in hours. */
async function hoursAhead(node: ShardNode): Promise<number> {
  const { clock } = await statusOf(node)
  return Math.round((Date.parse(clock?.shard_time ?? '') - Date.now()) / HOUR_MS) + 0
}

/** Whether the leader accepts a package for a night this many days from the true date. */
async function takes(leader: ShardNode, days: number): Promise<boolean> {
  const client = await openClient(leader, { codecs: TEST_CODECS })
  const place = { propertyId: 'hotel_1', roomType: 'double', date: dateIn(days) }
  const reply = await ask(client, 'SETROOMPKG', { ...place, availability: 1 })
  closeClient(client)
  return reply.ok
}

async function setProperty(leader: ShardNode): Promise<void> {
  const client = await openClient(leader, { codecs: TEST_CODECS })
  // The leader may still be taking over.
  await happens('the leader accepts writes', [leader], async () => {
    const { ok } = await ask(client, 'SETPROP', somewhere('hotel_1'))
    return ok || undefined
  })
  closeClient(client)
}

test('leadership goes from a right clock to a wrong one and back, and shard time stays right', async () => {
  await startWithClocks([0, 3 * DAY_MS, 0])
  for (const target of ['node-2', 'node-3', 'node-2']) {
    const next = await happens(`${target} leads`, shard.running(), async () => {
      const found = await leaderOf(shard)
      if (found.name === target) return found
      // Refused while the target is not caught up yet, or a transfer is under way: tried again.
      const [status] = await postText(found, '/cluster/transfer-leader', { target_node_id: target })
      expect([202, 409]).toContain(status)
      return undefined
    })
    await setProperty(next)
    expect([await takes(next, 0), await takes(next, 365)]).toEqual([true, true])
    for (const node of shard.running()) {
      await happens(
        `${node.name} knows the time`,
        [node],
        async () => (await statusOf(node)).clock?.shard_time ?? undefined,
      )
      expect(await hoursAhead(node)).toBe(0)
    }
  }
  const wrong = shard.running().find(({ name }) => name === 'node-2') as ShardNode
  await happens('the node with the wrong clock is named', [wrong], async () =>
    (await statusOf(wrong)).reasons.some(({ reason }) => reason === 'clock_suspect'),
  )
  await sameDigest(shard.running())
})

test('all clocks of a shard go wrong and come back: the leader is not ready until set-time', async () => {
  const clocks = await startWithClocks([0, 0, 0])
  const leader = await leaderOf(shard)
  await setProperty(leader)
  for (const clock of clocks.values()) clock.set(2 * DAY_MS)
  for (const node of shard.running()) {
    await happens('all follow the clocks that agree', [node], async () => (await hoursAhead(node)) === 48)
  }
  const followed = await leaderOf(shard)
  expect(await takes(followed, 0)).toBe(false)
  for (const clock of clocks.values()) clock.set(0)
  await happens('the leader is not ready', [followed], async () =>
    (await statusOf(followed)).reasons.some(({ reason }) => reason === 'clock'),
  )

  const follower = shard.running().find(({ name }) => name !== followed.name) as ShardNode
  const tokenFile = join(shard.folder, 'token')
  writeFileSync(tokenFile, `${ADMIN_TOKEN}\n`)
  const at = ['--node', `${follower.host}:${follower.apiPort}`, '--token-file', tokenFile]
  const refused = await runVacancy(['cluster', 'set-time', ...at.slice(0, 2), '--yes'])
  expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('401')])
  const done = await runVacancy(['cluster', 'set-time', ...at, '--yes'])
  expect([done.code, done.output]).toEqual([0, expect.stringContaining('The time is set.')])
  // A node tells what its last status had.
  await happens('the operation is listed', [follower], async () =>
    (await runVacancy(['cluster', 'operations', ...at])).output.includes('set-time'),
  )

  const now = await leaderOf(shard)
  expect(await takes(now, 0)).toBe(true)
  for (const node of shard.running()) {
    await happens('all serve with the new time', [node], async () => {
      const { clock, reasons } = await statusOf(node)
      return clock?.last_set !== null && reasons.length === 0 && (await hoursAhead(node)) === 0
    })
  }
  await sameDigest(shard.running())
})
