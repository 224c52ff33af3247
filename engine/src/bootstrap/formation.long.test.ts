/**
 * How a shard of real processes begins: which nodes found it, with what, and which ones wait and report why
 * (docs/design/consensus.md#formation).
 */

import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { closeClient, dateIn, getText, openClient, runVacancy, succeed, TEST_CODECS } from '@vacancy/testkit/node'
import {
  infoOf,
  leaderOf,
  type NodePlan,
  openShard,
  type Shard,
  type ShardNode,
  sameDigest,
} from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

/** One registry and one resolver for all tests. Each test has its own shard at the same addresses. */
let shard: Shard
let seeds: { readonly one: string; readonly other: string }

beforeAll(async () => {
  shard = await openShard()
  const [one, other] = await Promise.all([seedFile('one', 3), seedFile('other', 4)])
  seeds = { one, other }
})
afterEach(() => Promise.all(shard.running().map((node) => node.kill())))
afterAll(() => shard.close())

/** A snapshot with this many rooms in its one package. */
async function seedFile(name: string, rooms: number): Promise<string> {
  const folder = join(shard.folder, `seed-${name}`)
  mkdirSync(folder)
  writeFileSync(join(folder, 'codecs.yml'), `rate_features:\n${TEST_CODECS.map((codec) => `  - ${codec}\n`).join('')}`)
  writeFileSync(join(folder, 'properties.csv'), 'hotel_1,alpine,valley,hotel,standard,3,47,11,wifi\n')
  writeFileSync(join(folder, 'packages.csv'), `hotel_1,double,${dateIn(3)},${rooms},120,breakfast\n`)
  const { code, output } = await runVacancy(['build-snapshot', '--shard-id', 'shard-1', '--input-path', folder])
  if (code !== 0) throw new Error(output)
  return join(folder, 'seed.snapshot')
}

let folders = 0
/** A shard that is not founded yet: nodes with data directories of their own. */
function newShard(flags: readonly string[] = []) {
  const folder = join(shard.folder, `shard-${++folders}`)
  const dataDir = (name: string) => join(folder, name)
  return {
    dataDir,
    start: (name: string, plan: NodePlan = {}) => shard.start(name, { dataDir: dataDir(name), flags, ...plan }),
    seed(name: string, file: string) {
      mkdirSync(dataDir(name), { recursive: true })
      copyFileSync(file, join(dataDir(name), 'seed.snapshot'))
    },
  }
}

async function rooms(node: ShardNode): Promise<number> {
  const client = await openClient(node)
  const { availability } = await succeed(client, 'GETPROPROOMDAY', {
    propertyId: 'hotel_1',
    roomType: 'double',
    date: dateIn(3),
  })
  closeClient(client)
  return availability
}

/** /ready, /cluster/info and the log of a waiting node must give the same reason. */
async function waits(node: ShardNode, why: string): Promise<void> {
  await happens(`${node.name} waits: ${why}`, [node], async () => {
    const [status, ready] = await getText(node, '/ready')
    const { bootstrap } = await infoOf(node)
    return status === 503 && ready.includes(why) && bootstrap?.why.includes(why)
  })
  expect(await getText(node, '/healthz')).toEqual([503, 'unavailable'])
}

test('nodes report that they wait for the registry, the resolver and each other; when all are empty they found an empty shard', async () => {
  const { start } = newShard()
  const [first, second] = [start('node-1'), start('node-2')]
  await happens('they wait for the registry', [first], () => first.output().includes('waiting for the registry'))
  shard.startRegistry()
  await waits(first, '1 of 3 initial voters report that they are empty; without a snapshot all must')
  await happens('they miss the resolver', [first], () => first.output().includes('resolver returned no address'))
  shard.startResolver()
  await waits(first, '2 of 3 initial voters report that they are empty; without a snapshot all must')
  await waits(second, '2 of 3 initial voters report that they are empty; without a snapshot all must')
  expect(first.output()).toContain('waiting to form')

  const other = start('node-3', { voters: ['node-1', 'node-3', 'node-4'] })
  expect(await other.ended).toEqual({ code: 65, signal: null })
  expect(other.output()).toContain('Most nodes were started with --initial-voters node-1, node-2, node-3')
  start('node-3')

  await leaderOf(shard)
})

test('with --form-with-majority two empty nodes of three found the shard, and the third is admitted', async () => {
  const { start } = newShard(['--form-with-majority'])
  start('node-1')
  start('node-2')
  await leaderOf(shard)

  start('node-3')

  await happens('the third is a voter', shard.running(), async () => {
    const { members, last_operation } = await infoOf(await leaderOf(shard))
    return members.voters.length === 3 && last_operation?.result === 'done'
  })
  await sameDigest(shard.running())
})

test('a snapshot on two of three voters: they found the shard, the third downloads it', async () => {
  const { start, seed } = newShard()
  seed('node-1', seeds.one)
  seed('node-3', seeds.one)

  start('node-1')
  const third = start('node-2')
  start('node-3')

  await leaderOf(shard)
  await sameDigest(shard.running())
  expect(await rooms(third)).toBe(3)
})

test('one snapshot of three, then another one beside it: they wait; with a majority of one the other is set aside', async () => {
  const { start, seed, dataDir } = newShard()
  seed('node-1', seeds.one)
  start('node-1')
  const second = start('node-2')
  const third = start('node-3')
  await waits(third, 'is on 1 of 3 voters, 2 needed')

  await second.kill()
  seed('node-2', seeds.other)
  const other = start('node-2')
  await waits(third, 'is on 1 of 3 voters, 2 needed')
  await happens(
    'both are named',
    [third],
    async () => (await infoOf(third)).bootstrap?.why.match(/ is on 1/g)?.length === 2,
  )
  const holders = (await infoOf(third)).bootstrap?.voters.map(({ state }) => state)
  expect(holders).toEqual(['seeded', 'seeded', 'empty'])

  await third.kill()
  seed('node-3', seeds.one)
  start('node-3')
  await leaderOf(shard)

  await sameDigest(shard.running())
  expect(await rooms(other)).toBe(3)
  expect(existsSync(join(dataDir('node-2'), 'quarantine'))).toBe(true)
  expect(readdirSync(join(dataDir('node-2'), 'quarantine'))).toHaveLength(1)
})
