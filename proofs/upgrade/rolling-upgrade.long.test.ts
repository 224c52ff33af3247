// A shard whose nodes are replaced one by one by the present program, while clients write, sell stays and search
// (docs/upgrades.md#a-rolling-upgrade).
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type VacancyClient } from '@vacancy/client'
import { makeClone } from '@vacancy/testkit/earlier'
import { removeFolder, temporaryFolder } from '@vacancy/testkit/node'
import {
  ADMIN_TOKEN,
  becomes,
  infoOf,
  leaderOf,
  openShard,
  type Shard,
  type ShardNode,
  sameDigest,
} from '@vacancy/testkit/shard'
import { happens, until } from '@vacancy/testkit/until'
import { afterAll, describe, expect, test } from 'vitest'
import { FULL_NIGHT, startWorkload, type Workload } from './workload.ts'

const PROGRAMS = [
  { name: 'version 0.1.0', commit: 'be58c3a7', hasStays: false },
  { name: 'feature level 3', commit: 'dbca2786', hasStays: true },
] as const
/** What nodes are made of. */
const WORKSPACES = ['shared', 'engine']
const BUILD_MS = 900_000
const UPGRADE_MS = 900_000
/** Longer than a node takes to start. */
const CALL_MS = 60_000
/** From feature level 5 on, clients see times in microseconds as indexes; they were counts before. */
const FIRST_INDEX_OF_LEVEL_5 = 1e15
/** Of each kind after each step. */
const REQUESTS = 20

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

const appliedBy = async (node: ShardNode) => (await infoOf(node)).applied_index

/** The index of a write that changes nothing. */
async function nextIndex(client: VacancyClient): Promise<number> {
  const { index } = await client.send('SETROOMAVL', { ...FULL_NIGHT, amount: 0, wantIndex: 1 })
  return Number(index)
}

/** Waits for a node to be healthy and not behind, as an operator does before the next step. */
async function rejoins(shard: Shard, node: ShardNode): Promise<void> {
  await becomes(node, 'active_follower', 'active_leader')
  const { commit_index: index } = await infoOf(await leaderOf(shard))
  await happens(`${node.name} is not behind`, [node], async () => (await appliedBy(node)) >= index)
}

/** Waits until more requests of every kind were answered. @throws when one has failed */
async function goesOn(workload: Workload): Promise<void> {
  const before = workload.answered()
  const more = until('requests of every kind are answered', () => {
    const now = workload.answered()
    return Object.keys(before).every((kind) => (now[kind] ?? 0) >= (before[kind] ?? 0) + REQUESTS)
  })
  await Promise.race([more, workload.ended])
}

describe.each(PROGRAMS)('a rolling upgrade from $name', ({ commit, hasStays }) => {
  const root = join(folder, commit)

  test('its program is built from the history of this clone', { timeout: BUILD_MS }, async () => {
    await makeClone(commit, root, WORKSPACES)
    expect(existsSync(join(root, 'bin/vacancy.mjs'))).toBe(true)
  })

  test('loses nothing, and raises the feature level once all nodes are replaced', { timeout: UPGRADE_MS }, async () => {
    const shard = await openShard()
    shard.startRegistry()
    shard.startResolver()
    const nodes = new Map(shard.voters.map((name) => [name, shard.start(name, { root })]))
    try {
      await leaderOf(shard)
      const client = await connect({
        nodes: shard.voters.map((name) => `${shard.host(name)}:7777`),
        token: ADMIN_TOKEN,
        deadlineMs: CALL_MS,
      })
      const workload = await startWorkload(client, hasStays)
      const replace = async (name: string, program: { root?: string }) => {
        const before = nodes.get(name) as ShardNode
        expect(await before.stop(), before.output()).toEqual({ code: 0, signal: null })
        nodes.set(name, shard.start(name, program))
        await rejoins(shard, nodes.get(name) as ShardNode)
        await goesOn(workload)
      }
      await goesOn(workload)
      const first = (await leaderOf(shard)).name
      const [one = '', another = ''] = shard.voters.filter((name) => name !== first)

      await replace(one, {})
      // The way back is open until all are replaced.
      await replace(one, { root })
      await replace(one, {})
      await replace(another, {})
      expect(await nextIndex(client)).toBeLessThan(FIRST_INDEX_OF_LEVEL_5)
      await replace(first, {})
      await happens(
        'the feature level rises',
        [...nodes.values()],
        async () => (await nextIndex(client)) >= FIRST_INDEX_OF_LEVEL_5,
      )
      await goesOn(workload)
      console.log(`answered meanwhile: ${JSON.stringify(workload.answered())}`)
      await workload.finish()
      await client.close()
      const digest = await sameDigest([...nodes.values()])

      const leader = await leaderOf(shard)
      const follower = [...nodes.values()].find((node) => node !== leader) as ShardNode
      await follower.stop()
      const refused = shard.start(follower.name, { root })
      expect((await refused.ended).code, refused.output()).not.toBe(0)
      await rejoins(shard, shard.start(follower.name))
      expect(await sameDigest(shard.running())).toBe(digest)
    } finally {
      await shard.close()
    }
  })
})
