import { encodeRequest } from '@vacancy/shared/wire'
import {
  answerTo,
  ask,
  closeClient,
  dateIn,
  openClient,
  readAnswer,
  somewhere,
  succeed,
  type WireClient,
} from '@vacancy/testkit/node'
import { until } from '@vacancy/testkit/until'
import { afterEach, describe, expect, test } from 'vitest'
import { READ_LIMITS } from '../cluster/reads.ts'
import { ROLE, type RoleCode, STALENESS_MS_DEFAULT } from '../cluster/shared-status.ts'
import { ask as askInMemory, SAMPLE_CODECS } from '../testing/node-in-memory.ts'
import { startServingThread, type TestedThread } from '../testing/serving-thread.ts'
import { REFUSED } from '../threads/writes.ts'

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

async function start(options: Parameters<typeof startServingThread>[0] = {}): Promise<[TestedThread, WireClient]> {
  const thread = await startServingThread(options)
  cleanUp.push(() => thread.stop())
  const client = await connectTo(thread)
  return [thread, client]
}

async function connectTo(thread: TestedThread): Promise<WireClient> {
  const client = await openClient(thread, { codecs: SAMPLE_CODECS })
  cleanUp.push(() => closeClient(client))
  return client
}

const HOTEL = { propertyId: 'hotel_1' }
const NIGHT = { ...HOTEL, roomType: 'double', date: dateIn(3) }
const refusal = (code: string) => ({ ok: false, code, message: '' })
const takeRead = (thread: TestedThread) => until('the replica gets the read', () => thread.pendingReads.shift())
const takeWrite = (thread: TestedThread) => until('a write is proposed', () => thread.writes.shift())

describe('a stay where the data is below its feature level', () => {
  test.each<[string, RoleCode, boolean, string]>([
    ['a node that is behind, or has no data yet, leads to the leader', ROLE.follower, true, '308'],
    ['without a leader', ROLE.follower, false, '503'],
    ['the leader knows that the shard has no stays', ROLE.leader, true, 'VALIDATION_ERROR'],
  ])('%s', async (_, role, isLeaderKnown, code) => {
    const [thread, client] = await start()
    thread.setStatus(role, { isLeaderKnown })

    expect(await ask(client, 'GETSTAY', { stayId: 'x' })).toMatchObject({ ok: false, code })
    expect(await ask(client, 'RELEASESTAY', { stayId: 'x' })).toMatchObject({ ok: false, code })
    expect(thread.batches.writes).toBe(0)
  })
})

describe('a write', () => {
  test.each<[string, RoleCode, boolean, string]>([
    ['on a follower', ROLE.follower, true, '308'],
    ['on a learner', ROLE.learner, true, '308'],
    ['without a leader', ROLE.none, false, '503'],
    ['on a leader that has not begun its term', ROLE.none, true, '503'],
    ['on a follower that lost its leader', ROLE.follower, false, '503'],
    ['on a node that is not serving', ROLE.unavailable, true, '503'],
  ])('%s is refused, bare, and reaches no log', async (_, role, isLeaderKnown, code) => {
    const [thread, client] = await start()
    thread.setStatus(role, { isLeaderKnown })

    expect(await ask(client, 'SETPROP', somewhere('hotel_1'))).toEqual(refusal(code))
    expect(thread.batches.writes).toBe(0)
  })

  test('on the leader goes to the log, and its reply has the index if requested', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.leader)

    const plain = ask(client, 'SETPROP', somewhere('hotel_1'))
    thread.apply(await takeWrite(thread))
    expect(await plain).toEqual({ ok: true, result: {} })
    const indexed = ask(client, 'SETROOMPKG', { ...NIGHT, availability: 2, wantIndex: 1 })
    thread.apply(await takeWrite(thread))

    expect(await indexed).toEqual({ ok: true, result: { index: 2 } })
  })

  test.each<[keyof typeof REFUSED, string]>([
    ['notLeader', '308'],
    ['noLeader', '503'],
    ['transferring', '503'],
    ['overloaded', '429'],
    ['outcomeUnknown', '408'],
  ])('with the replica outcome %s gets %s', async (name, code) => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.leader)

    const answer = ask(client, 'DELPROP', HOTEL)
    thread.reply((await takeWrite(thread)).token, REFUSED[name])

    expect(await answer).toEqual(refusal(code))
  })
})

test('a thread that ends refuses new requests and still answers those before', async () => {
  const [thread, client] = await start()
  thread.setStatus(ROLE.leader)
  const written = ask(client, 'SETPROP', somewhere('hotel_1'))
  const write = await takeWrite(thread)

  const ended = thread.server.drain(60_000)

  const refused = await until('it refuses', async () => {
    const answer = await ask(client, 'GETCODECS', {})
    return answer.ok ? undefined : answer
  })
  expect(refused).toEqual(refusal('503'))
  thread.apply(write)
  expect(await written).toEqual({ ok: true, result: {} })
  await ended
})

describe('a read on a follower', () => {
  test('is served while the data is fresh, and writes of others are visible once applied', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.follower)
    expect(await succeed(client, 'PROPEXIST', HOTEL)).toEqual({ exists: false })

    askInMemory(thread.node, 'SETPROP', somewhere('hotel_1'))

    expect(await succeed(client, 'PROPEXIST', HOTEL)).toEqual({ exists: true })
    expect(await succeed(client, 'SEARCHPROP', { segment: 'alpine' })).toEqual({ propertyIds: ['hotel_1'] })
    expect(thread.batches).toEqual({ reads: 0, writes: 0 })
  })

  test('continues without a leader: no read fails in a failover', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.none, { isLeaderKnown: false, ageMs: 1_000 })

    expect(await succeed(client, 'PROPEXIST', HOTEL)).toEqual({ exists: false })
  })

  test('beyond the bound is refused, until it is fresh again; a read may accept more or less', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.follower, { ageMs: STALENESS_MS_DEFAULT + 1 })

    expect(await ask(client, 'PROPEXIST', HOTEL)).toEqual(refusal('503'))
    expect(await ask(client, 'SEARCHPROP', { segment: 'alpine' })).toEqual(refusal('503'))
    expect(await succeed(client, 'PROPEXIST', { ...HOTEL, maxStalenessMs: 600_000 })).toEqual({ exists: false })
    expect(await succeed(client, 'GETCODECS', {})).toEqual({ rateFeatures: SAMPLE_CODECS })
    expect(await ask(client, 'GETCODECS', { maxStalenessMs: 1 })).toEqual(refusal('503'))

    thread.setStatus(ROLE.follower, { ageMs: 1_000 })
    expect(await succeed(client, 'PROPEXIST', HOTEL)).toEqual({ exists: false })
    expect(await ask(client, 'PROPEXIST', { ...HOTEL, maxStalenessMs: 999 })).toEqual(refusal('503'))
  })

  test('is refused by a node that does not serve, the codec list included', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.unavailable)

    expect(await ask(client, 'PROPEXIST', HOTEL)).toEqual(refusal('503'))
    expect(await ask(client, 'GETCODECS', {})).toEqual(refusal('503'))
    expect(await ask(client, 'PROPEXIST', { ...HOTEL, linearizable: 1 })).toEqual(refusal('503'))
  })
})

test('leader_reads off: the leader answers reads 405, followers answer them', async () => {
  const [thread, client] = await start({ leaderReads: false })
  thread.setStatus(ROLE.leader)
  expect(await ask(client, 'PROPEXIST', HOTEL)).toEqual(refusal('405'))

  thread.setStatus(ROLE.follower)

  expect(await succeed(client, 'PROPEXIST', HOTEL)).toEqual({ exists: false })
})

describe('a linearizable read', () => {
  test('is served at the applied index when the replica confirms it', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.follower, { ageMs: 60_000 })

    const answer = ask(client, 'PROPEXIST', { ...HOTEL, linearizable: 1 })
    const { token, isLinearizable, minIndex } = await takeRead(thread)
    askInMemory(thread.node, 'SETPROP', somewhere('hotel_1'))
    thread.reply(token, 0, 1)

    expect({ isLinearizable, minIndex }).toEqual({ isLinearizable: true, minIndex: 0 })
    expect(await answer).toEqual({ ok: true, result: { exists: true } })
  })

  test('is refused when it cannot be confirmed', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.follower)

    const answer = ask(client, 'PROPEXIST', { ...HOTEL, linearizable: 1 })
    thread.reply((await takeRead(thread)).token, REFUSED.noLeader)

    expect(await answer).toEqual(refusal('503'))
  })

  test('many of one turn go to the replica in one message; other reads overtake them', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.leader)
    const ids = Array.from({ length: 50 }, (_, i) => 100 + i)
    const answers = ids.map((id) => answerTo(client, id))
    const plain = answerTo(client, 99)

    client.socket.write(
      Buffer.concat([
        ...ids.map((correlationId) =>
          encodeRequest({ command: 'PROPEXIST', correlationId, fields: { ...HOTEL, linearizable: 1 } }),
        ),
        encodeRequest({ command: 'PROPEXIST', correlationId: 99, fields: HOTEL }),
      ]),
    )

    expect(await plain).toBeDefined()
    await until('all reads are sent', () => thread.pendingReads.length === 50 || undefined)
    expect(thread.batches.reads).toBe(1)
    for (const { token } of thread.pendingReads) thread.reply(token, 0, 0)
    for (const answer of answers) {
      expect(readAnswer(client, 'PROPEXIST', await answer)).toEqual({ ok: true, result: { exists: false } })
    }
  })

  test('does not see a later write, and sees earlier ones', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.leader)
    const [before, read, behind] = [answerTo(client, 1), answerTo(client, 2), answerTo(client, 3)]

    client.socket.write(
      Buffer.concat([
        encodeRequest({ command: 'SETPROP', correlationId: 1, fields: somewhere('hotel_1') }),
        encodeRequest({ command: 'PROPEXIST', correlationId: 2, fields: { ...HOTEL, linearizable: 1 } }),
        encodeRequest({ command: 'DELPROP', correlationId: 3, fields: HOTEL }),
      ]),
    )
    const first = await takeWrite(thread)
    expect(thread.pendingReads).toEqual([])
    thread.apply(first)
    const { token } = await takeRead(thread)
    expect(thread.writes).toEqual([])
    thread.reply(token, 0, 1)
    thread.apply(await takeWrite(thread))

    expect(readAnswer(client, 'SETPROP', await before).ok).toBe(true)
    expect(readAnswer(client, 'PROPEXIST', await read)).toEqual({ ok: true, result: { exists: true } })
    expect(readAnswer(client, 'DELPROP', await behind).ok).toBe(true)
  })

  test('of a disconnected client is dropped, and so is its confirmation', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.leader)
    const answer = answerTo(client, 1)
    client.socket.write(
      encodeRequest({ command: 'PROPEXIST', correlationId: 1, fields: { ...HOTEL, linearizable: 1 } }),
    )
    const { token } = await takeRead(thread)
    closeClient(client)
    expect(await answer).toBeUndefined()

    thread.reply(token, 0, 0)

    expect(await succeed(await connectTo(thread), 'PROPEXIST', HOTEL)).toEqual({ exists: false })
  })
})

describe('a read with a least index', () => {
  test('that is applied is served at once', async () => {
    const [thread, client] = await start()
    askInMemory(thread.node, 'SETPROP', somewhere('hotel_1'))
    thread.setStatus(ROLE.follower)

    expect(await succeed(client, 'PROPEXIST', { ...HOTEL, minIndex: 1 })).toEqual({ exists: true })
    expect(thread.batches.reads).toBe(0)
  })

  test('that is not applied waits for the replica', async () => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.follower)

    const answer = ask(client, 'PROPEXIST', { ...HOTEL, minIndex: 1 })
    const { token, isLinearizable, minIndex } = await takeRead(thread)
    expect({ isLinearizable, minIndex }).toEqual({ isLinearizable: false, minIndex: 1 })
    askInMemory(thread.node, 'SETPROP', somewhere('hotel_1'))
    thread.reply(token, 0, 1)

    expect(await answer).toEqual({ ok: true, result: { exists: true } })
  })

  test.each([
    ['minIndex', { minIndex: 9 }, '308'],
    ['linearizable', { linearizable: 1 }, '503'],
  ])('%s: times out without the replica, whose reply may still come', async (_, mode, code) => {
    const [thread, client] = await start()
    thread.setStatus(ROLE.follower)

    const answer = ask(client, 'PROPEXIST', { ...HOTEL, ...mode })
    const { token } = await takeRead(thread)
    expect(await answer).toEqual(refusal(code))
    thread.reply(token, REFUSED.notCaughtUp)

    expect(await succeed(client, 'PROPEXIST', HOTEL)).toEqual({ exists: false })
  })
})

test('more waiting reads than a node may have are refused at once', async () => {
  const [thread] = await start()
  thread.setStatus(ROLE.follower)
  const clients = await Promise.all(Array.from({ length: 10 }, () => connectTo(thread)))
  const each = READ_LIMITS.waiting / clients.length
  const read = (correlationId: number) =>
    encodeRequest({ command: 'PROPEXIST', correlationId, fields: { ...HOTEL, linearizable: 1 } })

  for (const client of clients) {
    client.socket.write(Buffer.concat(Array.from({ length: each }, (_, i) => read(1_000 + i))))
  }
  await until('all reads are sent', () => thread.pendingReads.length === READ_LIMITS.waiting || undefined)
  const last = clients[0] as WireClient

  expect(await ask(last, 'PROPEXIST', { ...HOTEL, linearizable: 1 })).toEqual(refusal('429'))
})

test('a standalone node has no shared status: no read is sent, and it is never stale', async () => {
  const [thread, client] = await start({ isStandalone: true })
  const modes = { maxStalenessMs: 0, linearizable: 1, minIndex: 0 }

  expect(await succeed(client, 'PROPEXIST', { ...HOTEL, ...modes })).toEqual({ exists: false })
  const write = ask(client, 'SETPROP', somewhere('hotel_1'))
  thread.apply(await takeWrite(thread))

  expect((await write).ok).toBe(true)
  expect(thread.batches.reads).toBe(0)
})
