/** Stays on a shard of three nodes whose leader dies between hold and confirmation (docs/design/stays.md). */

import type { StayLine } from '@vacancy/shared/wire'
import { ask, closeClient, dateIn, openClient, somewhere, statusOf, type WireClient } from '@vacancy/testkit/node'
import { chance, createRandom, pick } from '@vacancy/testkit/random'
import { infoOf, leaderOf, postText, type Shard, type ShardNode, sameDigest, startShard } from '@vacancy/testkit/shard'
import { happens, until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))
const BOOKERS = 8
const STAYS_EACH = 60
const NIGHTS = 4
const ROOMS_LEFT = 40
const HOTELS = ['inn-0', 'inn-1']

let shard: Shard
const clients = new Map<ShardNode, WireClient>()

beforeAll(async () => {
  shard = await startShard()
})
afterAll(async () => {
  for (const client of clients.values()) closeClient(client)
  await shard.close()
})

async function clientOf(node: ShardNode): Promise<WireClient> {
  const known = clients.get(node)
  if (known && !known.isClosed) return known
  const client = await openClient(node)
  clients.set(node, client)
  return client
}

/** Sends a call until some node has decided it. Its id makes it count once, however often it is sent. */
async function decide(
  command: 'BOOKSTAY' | 'HOLDSTAY' | 'CONFIRMSTAY' | 'RELEASESTAY' | 'SETPROP' | 'SETROOMPKG',
  fields: object,
) {
  return until(`${command} is decided`, async () => {
    for (const node of shard.running()) {
      const answer = await clientOf(node)
        .then((client) => ask(client, command, fields as never))
        .catch(() => undefined)
      if (answer?.ok || (answer && !/^\d+$/.test(answer.code))) return answer
    }
    return undefined
  })
}

const stateOf = (answer: Awaited<ReturnType<typeof decide>>) =>
  answer.ok ? (answer.result as { state: string }).state : answer.code

async function fill(): Promise<void> {
  for (const propertyId of HOTELS) {
    await decide('SETPROP', somewhere(propertyId))
    for (let n = 0; n < NIGHTS; n++) {
      const night = { propertyId, roomType: 'double', date: dateIn(3 + n) }
      await decide('SETROOMPKG', { ...night, availability: ROOMS_LEFT, finalPrice: 100 })
    }
  }
}

test(`bookers and a killed leader: nothing is oversold, no stay is taken partly, every hold has one fate (VACANCY_SEED=${SEED})`, async () => {
  await leaderOf(shard)
  await until('the shard has stays', async () => {
    const answer = await ask(await clientOf(await leaderOf(shard)), 'GETSTAY', { stayId: 'none' })
    return (!answer.ok && answer.code === 'NOT_FOUND') || undefined
  })
  await fill()
  const booked: StayLine[] = []
  const fates: Promise<void>[] = []
  const book = async (booker: number) => {
    const random = createRandom(SEED + booker)
    for (let n = 0; n < STAYS_EACH; n++) {
      const first = random.below(NIGHTS)
      const line: StayLine = {
        propertyId: pick(random, HOTELS),
        roomType: 'double',
        arrival: dateIn(3 + first),
        nights: 1 + random.below(NIGHTS - first),
        rooms: 1 + random.below(2),
      }
      const stayId = `s-${booker}-${n}`
      const isHold = chance(random, 0.5)
      const taken = stateOf(
        await decide(isHold ? 'HOLDSTAY' : 'BOOKSTAY', { stayId, lines: [line], ...(isHold && { seconds: 10 }) }),
      )
      expect(['held', 'booked', 'SOLD_OUT']).toContain(taken)
      if (taken === 'SOLD_OUT') continue
      if (isHold && chance(random, 0.4)) continue
      const confirmed = isHold ? stateOf(await decide('CONFIRMSTAY', { stayId })) : taken
      expect(['booked', 'EXPIRED']).toContain(confirmed)
      if (confirmed !== 'booked') continue
      if (chance(random, 0.3)) expect(stateOf(await decide('RELEASESTAY', { stayId }))).toBe('released')
      else booked.push(line)
    }
  }
  for (let booker = 0; booker < BOOKERS; booker++) fates.push(book(booker))
  const leader = await leaderOf(shard)
  await until('some stays are booked', () => booked.length > 20 || undefined)
  await leader.kill()
  shard.start(leader.name)
  await Promise.all(fates)

  const next = await leaderOf(shard)
  await happens('the last hold has expired', shard.running(), async () => (await statusOf(next)).stays?.held === 0)
  for (const propertyId of HOTELS) {
    for (let n = 0; n < NIGHTS; n++) {
      const date = dateIn(3 + n)
      const answer = await ask(await clientOf(next), 'GETPROPROOMDAY', {
        propertyId,
        roomType: 'double',
        date,
        linearizable: 1,
      })
      const taken = booked.filter(
        (line) =>
          line.propertyId === propertyId && line.arrival <= date && date < dateIn(dayIn(line.arrival) + line.nights),
      )
      const rooms = taken.reduce((sum, line) => sum + line.rooms, 0)
      expect(answer.ok && answer.result, `${propertyId} ${date}`).toMatchObject({ availability: ROOMS_LEFT - rooms })
      expect(rooms).toBeLessThanOrEqual(ROOMS_LEFT)
    }
  }
  await sameDigest(shard.running())
})

function dayIn(date: string): number {
  return Math.round((Date.parse(date) - Date.parse(dateIn(0))) / 86_400_000)
}

test('a follower shows a stay at the index of its booking, and a setting is the same on all nodes', async () => {
  const leader = await leaderOf(shard)
  const follower = shard.running().find((node) => node !== leader) as ShardNode
  const line = { propertyId: HOTELS[0], roomType: 'double', arrival: dateIn(3), nights: 1, rooms: 1 }
  await decide('SETROOMPKG', { propertyId: HOTELS[0], roomType: 'double', date: dateIn(3), availability: 5 })
  const answer = await decide('BOOKSTAY', { stayId: 'seen', lines: [line], wantIndex: 1 })
  const { appliedIndex } = (answer.ok ? answer.result : {}) as { appliedIndex: number }

  const read = await until('the follower has applied it', async () => {
    const seen = await ask(await clientOf(follower), 'GETSTAY', { stayId: 'seen', minIndex: appliedIndex })
    return seen.ok ? seen.result : undefined
  })
  expect(read).toMatchObject({ state: 'booked', lines: [line] })

  const [status] = await postText(follower, '/admin/settings', { name: 'holds_max', value: 1234 })
  expect(status).toBe(202)
  for (const node of shard.running()) {
    await happens(`${node.name} has the setting`, shard.running(), async () => {
      return (await infoOf(node)).settings?.holds_max === 1234
    })
  }
})
