/**
 * A node that is far behind gets a snapshot, whatever happens meanwhile, with real processes
 * (docs/design/storage.md#transfer, docs/design/storage.md#log-compaction).
 */

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { encodeRequest } from '@vacancy/shared/wire'
import {
  answerTo,
  ask,
  closeClient,
  dateIn,
  openClient,
  pause,
  readAnswer,
  somewhere,
  statusOf,
  succeed,
} from '@vacancy/testkit/node'
import { becomes, leaderOf, type Shard, type ShardNode, sameDigest, startShard } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 420_000, hookTimeout: 120_000 })

let shard: Shard
const CONSTANT = { propertyId: 'hotel_1', roomType: 'constant', date: dateIn(5) }
const IN_FLIGHT = 200
type Command = 'SETPROP' | 'SETROOMPKG'
type Fields = Parameters<typeof succeed>[2]

beforeAll(async () => {
  shard = await startShard({ config: { snapshot_trigger_count: 500, snapshot_interval_sec: 1 } })
})
afterAll(() => shard.close())

type Client = Awaited<ReturnType<typeof openClient>>

/** Sends these commands at once. @returns the code of the first that failed; '' when each succeeded */
async function sendAll(client: Client, command: Command, commands: readonly Fields[]): Promise<string> {
  const first = client.nextId
  client.nextId += commands.length
  const answers = commands.map((_, i) => answerTo(client, first + i))
  client.socket.write(
    Buffer.concat(commands.map((fields, i) => encodeRequest({ command, correlationId: first + i, fields }))),
  )
  const replies = (await Promise.all(answers)).map((answer) => readAnswer(client, command, answer))
  const failed = replies.find(({ ok }) => !ok)
  return failed && !failed.ok ? failed.code : ''
}

/** Has the leader execute this many commands, many at a time. */
async function flood(count: number, fieldsOf: (i: number) => Fields, command: Command): Promise<void> {
  let client: Client | undefined
  for (let from = 0; from < count; ) {
    client ??= await openClient(await leaderOf(shard))
    const size = Math.min(IN_FLIGHT, count - from)
    const code = await sendAll(
      client,
      command,
      Array.from({ length: size }, (_, i) => fieldsOf(from + i)),
    )
    if (code === '') {
      from += size
      continue
    }
    // On a busy machine the leader may change. Then these are sent to the next one, also those that were executed.
    expect(['408', '503', '405', '308']).toContain(code)
    closeClient(client)
    client = undefined
  }
  if (client) closeClient(client)
}

/** The largest write there is: a file of the log holds 15,000 of them. */
const large = (i: number) => ({
  ...somewhere('hotel_2'),
  amenities: Array.from({ length: 64 }, (_, n) => `${n} ${i % 7} `.padEnd(64, 'x')),
})
const small = (i: number) => ({
  propertyId: 'hotel_1',
  roomType: `room_${i % 50}`,
  date: dateIn(i % 300),
  availability: i % 200,
})

test('a follower that missed more than the log keeps gets a snapshot, even if it is killed meanwhile', async () => {
  const leader = await leaderOf(shard)
  const client = await openClient(leader)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  await succeed(client, 'SETROOMPKG', { ...CONSTANT, availability: 7 })
  closeClient(client)
  const follower = shard.running().find(({ name }) => name !== leader.name) as ShardNode
  await sameDigest(shard.running())
  await follower.kill()

  // Read before the writes: the log may delete it while they continue.
  const oldest = readdirSync(join(leader.dataDir, 'wal'))
    .sort()
    .find((name) => name.startsWith('wal-')) as string
  const log = join(leader.dataDir, 'wal', oldest)
  await flood(15_800, large, 'SETPROP')
  await flood(10_500, small, 'SETROOMPKG')
  // The time between snapshots is at least ten times the duration of the last one, and none is taken without writes.
  // The log reaches back two snapshots.
  await happens(
    'the log begins behind what the follower has',
    [leader],
    async () => {
      await flood(1, small, 'SETROOMPKG')
      return !existsSync(log)
    },
    240_000,
  )
  // Two of three voters are a majority: what both have at an index is in the log (docs/design/consensus.md#apply).
  await happens(
    'digests were compared',
    [leader],
    async () => ((await statusOf(leader)).digest?.checked_index ?? 0) > 0,
  )

  // Kills the follower once when chunks arrive, and once when the snapshot has its name and the log is about to restart
  // after it. If a poll misses the first, short moment, the kill happens at the second.
  const incoming = join(follower.dataDir, 'incoming')
  const snapshots = () => readdirSync(join(follower.dataDir, 'snapshots')).filter((name) => name.startsWith('snap-'))
  const held = snapshots()
  const isNamed = () => snapshots().some((name) => !held.includes(name))
  const first = shard.start(follower.name)
  await happens('chunks arrive', [first], () => existsSync(incoming) || isNamed())
  await first.kill()
  const second = shard.start(follower.name)
  await happens('the snapshot has its name', [second], isNamed)
  await second.kill()

  const third = shard.start(follower.name)
  let answers = 0
  let isDone = false
  const reading = (async () => {
    while (!isDone) {
      try {
        const reader = await openClient(third)
        while (!isDone) {
          const reply = await ask(reader, 'GETPROPROOMDAY', CONSTANT)
          if (reply.ok) {
            answers++
            expect(reply.result.availability).toBe(7)
          } else expect(['503', '308', '405']).toContain(reply.code)
        }
        closeClient(reader)
      } catch (error) {
        if ((error as Error).name === 'AssertionError') throw error
        await pause()
      }
    }
  })()
  await becomes(third, 'active_follower')
  await happens('reads are answered', [third], () => answers > 0)
  isDone = true
  await reading
  await sameDigest(shard.running())
})
