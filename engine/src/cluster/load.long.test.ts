/**
 * Loads another snapshot into a running shard of real processes, and returns to the data before
 * (docs/design/consensus.md#log-commands).
 */

import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NodeStatus } from '@vacancy/shared/contract'
import {
  ask,
  closeClient,
  dateIn,
  getText,
  openClient,
  runVacancy,
  somewhere,
  succeed,
  TEST_CODECS,
} from '@vacancy/testkit/node'
import {
  ADMIN_TOKEN,
  infoOf,
  leaderOf,
  postText,
  type Shard,
  type ShardNode,
  sameDigest,
  startShard,
} from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Way, write } from '../testing/shard-writer.ts'

const ROOMS = 200
let shard: Shard
let seed: string
let tokenFile: string
/** Digest of the data before the first load. */
let before: string

beforeAll(async () => {
  shard = await startShard()
  seed = await seedFile()
  tokenFile = join(shard.folder, 'operator.token')
  writeFileSync(tokenFile, ADMIN_TOKEN)
  const leader = await leaderOf(shard)
  const client = await openClient(leader)
  for (const propertyId of ['hotel_old', 'hotel_both']) await succeed(client, 'SETPROP', somewhere(propertyId))
  await succeed(client, 'SETROOMPKG', { ...placeOf('hotel_old', 1), ...packageOf(7) })
  closeClient(client)
  // The first maintenance changes the state, so it must not come between two digests that are compared.
  await happens('maintenance has run', [leader], async () => {
    await postText(leader, '/maintenance')
    return (await statusOf(leader)).maintenance?.last_success_at
  })
})
afterAll(() => shard.close())

const placeOf = (propertyId: string, night: number) => ({ propertyId, roomType: 'double', date: dateIn(night) })
const packageOf = (availability: number) => ({ availability, finalPrice: 100, rateFeatures: [] })

/** A snapshot of other properties; one property is in both. */
async function seedFile(): Promise<string> {
  const folder = join(shard.folder, 'seed')
  mkdirSync(folder)
  const properties = ['hotel_both', ...Array.from({ length: ROOMS }, (_, i) => `hotel_new_${i}`)]
  const lines = (make: (id: string, i: number) => string) => properties.map(make).join('')
  writeFileSync(join(folder, 'codecs.yml'), `rate_features:\n${TEST_CODECS.map((codec) => `  - ${codec}\n`).join('')}`)
  writeFileSync(
    join(folder, 'properties.csv'),
    lines((id) => `${id},alpine,valley,hotel,standard,3,47,11,wifi\n`),
  )
  writeFileSync(
    join(folder, 'packages.csv'),
    lines((id, i) => `${id},double,${dateIn(3)},${1 + (i % 9)},120,breakfast\n`),
  )
  const { code, output } = await runVacancy(['build-snapshot', '--shard-id', 'shard-1', '--input-path', folder])
  if (code !== 0) throw new Error(output)
  return join(folder, 'seed.snapshot')
}

/** Runs `vacancy cluster …` against a node. */
function operate(node: ShardNode, ...args: readonly string[]) {
  return runVacancy(['cluster', ...args, '--node', `${node.host}:${node.apiPort}`, '--token-file', tokenFile])
}

/** Loads and waits for it. @returns digest of the data before */
async function load(node: ShardNode, what: string): Promise<string> {
  const { code, output } = await operate(node, 'load', what, '--wait')
  const digest = /the previous data is snapshot ([0-9a-f]{64})/.exec(output)?.[1]
  expect([code, digest === undefined ? output : '']).toEqual([0, ''])
  return digest as string
}

async function statusOf(node: ShardNode): Promise<NodeStatus> {
  const [, text] = await getText(node, '/status')
  return JSON.parse(text) as NodeStatus
}

/** Log indexes of the loads that a node has reached since its last start. */
function loadsOf(node: ShardNode): number[] {
  const lines = node.output().matchAll(/^.*"apply reached a bulk load".*$/gm)
  return [...lines].map(([line]) => (JSON.parse(line) as { index: number }).index)
}

async function roomsAt(node: ShardNode, propertyId: string, night: number): Promise<number | string> {
  const client = await openClient(node)
  const reply = await ask(client, 'GETPROPROOMDAY', placeOf(propertyId, night))
  closeClient(client)
  return reply.ok ? reply.result.availability : reply.code
}

/** Writes a package for one night after another, of the property that is in both. */
function startWriter() {
  const written: number[] = []
  let isStopping = false
  const session = randomBytes(16).toString('hex')
  const way: Way = { at: 0, client: undefined }
  const run = async () => {
    for (let number = 1; !isStopping && number <= 10_000; number++) {
      const fields = { propertyId: 'hotel_both', roomType: `room_${number}`, date: dateIn(1), ...packageOf(1) }
      const reply = await write(shard, way, 'SETROOMPKG', { ...fields, session, requestNumber: number }, () => false)
      if (reply.ok) written.push(number)
      // A property has a limited number of room types.
      if (number % ROOMS === 0) break
    }
    if (way.client) closeClient(way.client)
  }
  const running = run()
  running.catch(() => undefined)
  return {
    written,
    async stop() {
      isStopping = true
      await running
    },
  }
}

test('a load replaces the data on all nodes at one log index, even on one that is killed meanwhile', async () => {
  const leader = await leaderOf(shard)
  const victim = shard.running().find(({ name }) => name !== leader.name) as ShardNode
  const writer = startWriter()
  await happens('writes are answered', [leader], () => writer.written.length > 5)

  const loading = load(leader, seed)
  await happens('the load is under way', [leader], async () => {
    const { operation, last_operation } = await infoOf(leader)
    return operation?.kind === 'load' || last_operation?.kind === 'load'
  })
  await victim.kill()
  before = await loading
  shard.start(victim.name)
  await leaderOf(shard)
  await writer.stop()

  await sameDigest(shard.running())
  for (const node of shard.running()) {
    expect(await roomsAt(node, 'hotel_new_1', 3)).toBe(3)
    expect(await roomsAt(node, 'hotel_old', 1)).toBe('NOT_FOUND')
    const client = await openClient(node)
    const there: number[] = []
    for (const number of writer.written) {
      const at = { propertyId: 'hotel_both', roomType: `room_${number}`, date: dateIn(1) }
      if ((await ask(client, 'GETPROPROOMDAY', at)).ok) there.push(number)
    }
    closeClient(client)
    // The load removed all earlier writes, and all later ones are there without a gap.
    expect(there).toEqual(writer.written.slice(writer.written.length - there.length))
    expect(there.length).toBeLessThan(writer.written.length)
  }
})

test('a node that missed the load gets the snapshot from the others and serves again', async () => {
  const leader = await leaderOf(shard)
  const away = shard.running().find(({ name }) => name !== leader.name) as ShardNode
  await away.kill()
  const client = await openClient(leader)
  await succeed(client, 'SETROOMPKG', { ...placeOf('hotel_new_1', 3), ...packageOf(99) })
  closeClient(client)

  const changed = await load(leader, before)
  expect(changed).not.toBe(before)
  expect(await roomsAt(leader, 'hotel_old', 1)).toBe(7)
  shard.start(away.name)
  await leaderOf(shard)

  await sameDigest(shard.running())
  for (const node of shard.running()) {
    expect(await roomsAt(node, 'hotel_old', 1)).toBe(7)
    expect(await roomsAt(node, 'hotel_new_1', 3)).toBe('NOT_FOUND')
  }
})

test('all nodes are killed after a load: the data are there again', async () => {
  const leader = await leaderOf(shard)
  const earlier = loadsOf(leader).length
  await load(leader, seed)
  const index = await happens('the load is logged', [leader], () => loadsOf(leader)[earlier])
  const digest = await sameDigest(shard.running(), index - 1)
  await Promise.all(shard.running().map((node) => node.kill()))
  for (const voter of shard.voters) shard.start(voter)
  await leaderOf(shard)

  // Nodes may report for a moment what they had before the load, which they apply once more.
  expect(await sameDigest(shard.running(), index - 1)).toBe(digest)
  for (const node of shard.running()) expect(await roomsAt(node, 'hotel_new_1', 3)).toBe(3)
})

test('the data before a load can be dropped once no restart applies the load again', async () => {
  const leader = await leaderOf(shard)
  const unknown = await operate(leader, 'drop-load', 'ab'.repeat(32))
  expect([unknown.code === 0, unknown.output]).toEqual([false, expect.stringContaining('404')])
  const dropped = await happens('it is dropped', shard.running(), async () => {
    const client = await openClient(leader)
    await succeed(client, 'SETPROP', somewhere('hotel_both'))
    closeClient(client)
    for (const node of shard.running()) await postText(node, '/save-snapshot')
    const { code, output } = await operate(await leaderOf(shard), 'drop-load', before)
    return code === 0 ? output : undefined
  })
  expect(dropped).toContain('drop in progress')
  expect((await operate(leader, 'load', before)).output).toContain('404')
})

test('a file that is not a snapshot of this shard is refused on the node that has it', async () => {
  const file = join(shard.folder, 'operator.token')
  const { code, output } = await operate(await leaderOf(shard), 'load', file)
  expect([code === 0, output]).toEqual([false, expect.stringContaining('409')])
})
