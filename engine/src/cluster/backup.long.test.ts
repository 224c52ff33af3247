/** `vacancy backup` of a running shard while it is written to, and what is restored from it; real processes. */

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runVacancy, statusOf } from '@vacancy/testkit/node'
import { ADMIN_TOKEN, healthOf, leaderOf, type Shard, sameDigest, seedNode, startShard } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startWriters } from '../testing/shard-writer.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

let shard: Shard
let token: string

beforeAll(async () => {
  shard = await startShard()
  token = join(shard.folder, 'token')
  writeFileSync(token, `${ADMIN_TOKEN}\n`)
})
afterAll(() => shard.close())

type Document = { readonly node: string; readonly digest: string; readonly index: number; readonly packages: number }

async function backUp(folder: string, flags: readonly string[] = []): Promise<Document> {
  const { host, apiPort } = await leaderOf(shard)
  const at = ['--node', `${host}:${apiPort}`, '--token-file', token]
  const { code, output } = await runVacancy(['backup', ...at, '--output-path', folder, '--json', ...flags])
  if (code !== 0) throw new Error(output)
  return JSON.parse(output.slice(output.indexOf('\n{') + 1)) as Document
}

async function stopAndRestore(seeded: readonly string[], file: string): Promise<void> {
  await Promise.all(shard.running().map((node) => node.kill()))
  for (const voter of shard.voters) rmSync(shard.dataDir(voter), { recursive: true, force: true })
  for (const voter of seeded) {
    seedNode(shard, voter, file)
    shard.start(voter)
  }
  await leaderOf(shard)
}

test('a backup of a follower runs during writes and restores a shard (it used to need a stopped node)', async () => {
  const before = startWriters(shard, 'hotel_1')
  await happens('writes are answered', shard.running(), () => before.acknowledged() > 200)
  await before.stop()
  const during = startWriters(shard, 'hotel_2')
  const folder = join(shard.folder, 'backup')
  const sentBefore = during.acknowledged()
  const document = await backUp(folder)
  expect(during.acknowledged()).toBeGreaterThan(sentBefore)
  await during.stop()

  expect(document.node).not.toBe((await leaderOf(shard)).name)
  expect(readdirSync(folder)).toEqual(['seed.snapshot'])
  const { code, output } = await runVacancy(['inspect', join(folder, 'seed.snapshot')])
  expect(output).toContain(String(document.packages))
  expect(code).toBe(0)
  // No writes run now: the digest in the file is that of the running shard.
  const [leader] = [await leaderOf(shard)]
  await happens('a backup of a shard at rest', [leader], async () => {
    const { index, digest } = await backUp(folder, ['--overwrite'])
    const { replica, digest: now } = await statusOf(leader)
    return replica?.applied_index === index && now?.value === digest
  })

  await stopAndRestore(shard.voters, join(folder, 'seed.snapshot'))
  for (const node of shard.running()) {
    expect(await before.differences(node)).toEqual([])
    expect(await during.differences(node)).toEqual([])
  }
  await sameDigest(shard.running())
})

test('a node of one restore is refused by another restore of the same file (it used to be admitted)', async () => {
  const file = join(shard.folder, 'backup', 'seed.snapshot')
  await stopAndRestore(shard.voters, file)
  const [forgotten, ...others] = shard.voters as [string, string, string]
  const aside = join(shard.folder, 'forgotten')
  await Promise.all(shard.running().map((node) => node.stop()))
  renameSync(shard.dataDir(forgotten), aside)

  await stopAndRestore(others, file)
  renameSync(aside, shard.dataDir(forgotten))
  const old = shard.start(forgotten)
  const isRefused = async () => {
    const counts = await Promise.all(
      shard.running().map(async (node) => (await statusOf(node)).cluster?.connections_rejected),
    )
    return counts.some((each) => (each?.['genesis'] ?? 0) > 0)
  }
  // Processes that share two cores with others take long to find each other.
  await happens('the node is refused', shard.running(), isRefused, 240_000)
  expect(await healthOf(old)).toBe('unavailable')
  await old.kill()
})

test('a failed backup reports its reason and leaves no file', async () => {
  const folder = join(shard.folder, 'refused')
  const backup = (flags: readonly string[]) => runVacancy(['backup', '--output-path', folder, ...flags])
  const { host, apiPort } = await leaderOf(shard)
  const node = `${host}:${apiPort}`

  const noToken = await backup(['--node', node])
  expect(noToken.output).toContain('--token-file')
  expect(noToken.code).not.toBe(0)
  const refused = await backup(['--node', `${shard.host('node-5')}:${apiPort}`, '--token-file', token])
  expect(refused.output).toMatch(/ECONNREFUSED/)
  expect(refused.code).not.toBe(0)
  expect(existsSync(join(folder, 'seed.snapshot'))).toBe(false)

  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'seed.snapshot'), 'kept')
  const there = await backup(['--node', node, '--token-file', token])
  expect(there.output).toContain('--overwrite')
  expect(there.code).toBe(64)
})
