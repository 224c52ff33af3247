/**
 * Nodes that return in another state: with an old copy of their folder, with a damaged one, or after the quorum was
 * lost (docs/design/consensus.md#identities, docs/design/storage.md#recovery, docs/design/consensus.md#formation).
 */

import { cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runVacancy, statusOf } from '@vacancy/testkit/node'
import {
  becomes,
  healthOf,
  infoOf,
  leaderOf,
  type Shard,
  type ShardNode,
  sameDigest,
  seedNode,
  startShard,
} from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startWriters } from '../testing/shard-writer.ts'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

let shard: Shard

beforeAll(async () => {
  shard = await startShard()
})
afterAll(() => shard.close())

async function aFollower(): Promise<ShardNode> {
  const leader = await leaderOf(shard)
  return shard.running().find((node) => node !== leader) as ShardNode
}

/** Writes a little, so that the log has entries. */
async function writeSome(propertyId: string): Promise<ReturnType<typeof startWriters>> {
  const writers = startWriters(shard, propertyId)
  await happens('writes are answered', shard.running(), () => writers.acknowledged() > 200)
  await writers.stop()
  return writers
}

/** Waits until the node was removed, rejoined as a learner and was promoted. */
async function comesBackAsAnother(node: ShardNode): Promise<void> {
  const sinceMs = Date.now()
  await happens(`${node.name} is a voter again`, shard.running(), async () => {
    const { members, last_operation: last } = await infoOf(await leaderOf(shard))
    const isReplaced = last?.kind === 'replace' && last.result === 'done' && Date.parse(last.at) >= sinceMs
    return isReplaced && members.voters.includes(node.name)
  })
  await becomes(node, 'active_follower', 'active_leader')
  await sameDigest(shard.running())
}

test('an old copy of a data directory is refused; with --rejoin the node returns as another member', async () => {
  const follower = await aFollower()
  await writeSome('hotel_1')
  await follower.stop()
  const copy = join(shard.folder, 'copy')
  cpSync(follower.dataDir, copy, { recursive: true })
  const again = shard.start(follower.name)
  await leaderOf(shard)
  const writers = await writeSome('hotel_2')
  await sameDigest(shard.running())

  await again.kill()
  rmSync(follower.dataDir, { recursive: true })
  renameSync(copy, follower.dataDir)
  const old = shard.start(follower.name)
  expect(await old.ended).toEqual({ code: 65, signal: null })
  expect(old.output()).toContain('it is an old copy, or something was lost. Start the node with --rejoin')

  await comesBackAsAnother(shard.start(follower.name, { flags: ['--rejoin'] }))
  for (const node of shard.running()) expect(await writers.differences(node)).toEqual([])
})

test('a member does not run standalone; a damaged log ends its start with 71; with --rejoin it returns as another member', async () => {
  const follower = await aFollower()
  await follower.stop()
  const codecs = join(shard.folder, 'registry-codecs.yml')
  const alone = await runVacancy([
    'run',
    '--codecs',
    codecs,
    '--data-dir',
    follower.dataDir,
    '--node-id',
    follower.name,
    '--shard-id',
    'shard-1',
    '--tcp-port',
    '0',
    '--api-port',
    '0',
  ])
  expect(alone.output).toContain('belongs to a member of a shard of several nodes')
  expect(alone.code).toBe(65)

  const log = join(follower.dataDir, 'wal')
  const file = join(log, readdirSync(log).find((name) => name.startsWith('wal-')) as string)
  const bytes = readFileSync(file)
  bytes.fill(0x55, 8_192, 8_256)
  writeFileSync(file, bytes)

  const refused = shard.start(follower.name)
  expect(await refused.ended).toEqual({ code: 71, signal: null })
  expect(refused.output()).toContain('--rejoin')

  await comesBackAsAnother(shard.start(follower.name, { flags: ['--rejoin'] }))
  expect(readdirSync(join(follower.dataDir, 'quarantine'))).not.toHaveLength(0)
})

test('exporting one survivor of a lost quorum and a new start restores all it had applied', async () => {
  const writers = await writeSome('hotel_3')
  const survivor = await aFollower()
  await sameDigest(shard.running())
  const { properties, packages } = await statusOf(survivor)
  await Promise.all(shard.running().map((node) => node.kill()))
  const others = shard.voters.filter((voter) => voter !== survivor.name)
  const [forgotten, lost] = others as [string, string]
  rmSync(shard.dataDir(lost), { recursive: true })

  const backup = join(shard.folder, 'backup')
  const { code, output } = await runVacancy(['export', survivor.dataDir, '--output-path', backup])
  if (code !== 0) throw new Error(output)
  renameSync(survivor.dataDir, join(shard.folder, 'survivor'))
  const seeded = [survivor.name, lost]
  for (const node of seeded) {
    seedNode(shard, node, join(backup, 'seed.snapshot'))
    shard.start(node)
  }
  await leaderOf(shard)

  for (const node of shard.running()) {
    expect(await writers.differences(node)).toEqual([])
    expect(await statusOf(node)).toMatchObject({ properties, packages })
  }
  // A node with the data from before, left out of the new shard, cannot rejoin it (docs/design/consensus.md#formation).
  const old = shard.start(forgotten)
  await happens('it is refused', shard.running(), async () => {
    const counts = await Promise.all(
      shard.running().map(async (node) => (await statusOf(node)).cluster?.connections_rejected),
    )
    return counts.some((each) => (each?.['cluster'] ?? 0) > 0)
  })
  expect(await healthOf(old)).toBe('unavailable')
  await old.kill()
  rmSync(shard.dataDir(forgotten), { recursive: true })
  await comesBackAsAnother(shard.start(forgotten))
})
