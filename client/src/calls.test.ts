/** When calls are sent, to which node, and in which envelope, on real sockets and with time that the test advances. */
import { CODECS_SEGMENT, decodeEnvelope, SEGMENTS_SEGMENT } from '@vacancy/shared/wire'
import { afterEach, describe, expect, test } from 'vitest'
import { connectIn, type VacancyClient } from './client.ts'
import type { ClientOptions } from './options.ts'
import { type ReceivedRequest, type ScriptedNode, startScriptedNode } from './testing/scripted-node.ts'
import { turnedWorld } from './testing/turned-world.ts'
import { until } from './testing/until.ts'

const HOTEL = { propertyId: 'hotel_123' }
const NIGHT = { ...HOTEL, roomType: 'suite', date: '2026-12-24' }
const DECREMENT = { ...NIGHT, amount: 1 }

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

async function startNodes(count: number): Promise<ScriptedNode[]> {
  const nodes = await Promise.all(Array.from({ length: count }, () => startScriptedNode()))
  for (const node of nodes) cleanUp.push(() => node.close())
  return nodes
}

async function startShard(count: number, options: ClientOptions = {}) {
  const nodes = await startNodes(count)
  const world = turnedWorld()
  const client = await connectIn(world, { nodes: nodes.map(({ port }) => `127.0.0.1:${port}`), ...options })
  await until(() => client.status().connections === count * (options.connections ?? 1))
  const received = () => nodes.flatMap((node) => [...node.untaken()])
  /** The next request that reaches any node. */
  const next = async (): Promise<ReceivedRequest> => {
    await until(() => received().length > 0)
    return (nodes.find((node) => node.untaken().length > 0) as ScriptedNode).next()
  }
  return { nodes, world, client, received, next }
}

/** A request and its reply on the same connection: what was sent before it has arrived. */
async function exchange(client: VacancyClient, next: () => Promise<ReceivedRequest>): Promise<void> {
  const call = client.listRoomTypes(HOTEL)
  ;(await next()).answer({ roomTypes: [] })
  await call
}

describe('a call', () => {
  test.each([
    [2_000, 500],
    [1_001, 251],
    [400, 250],
  ])('with a deadline of %d ms waits %d ms for a node before it goes to another', async (deadlineMs, attemptMs) => {
    const { world, client, received, next } = await startShard(2)
    const call = client.propertyExists(HOTEL, { deadlineMs })
    const first = await next()

    world.advance(attemptMs - 1)
    expect(received()).toEqual([])
    world.advance(1)
    const second = await next()

    expect(second.peer).not.toBe(first.peer)
    second.answer({ exists: true })
    expect(await call).toBe(true)
    // The late reply is dropped.
    first.answer({ exists: false })
    await exchange(client, next)
    expect(client.status()).toMatchObject({ connections: 2, unsettled: 0, inFlight: 0 })
  })

  test('in a shard of one node waits for that one', async () => {
    const { world, client, received, next } = await startShard(1)
    const call = client.propertyExists(HOTEL)
    const only = await next()
    world.advance(1_999)
    expect(received()).toEqual([])
    only.answer({ exists: true })
    expect(await call).toBe(true)
  })

  test('without retries waits for its node, and goes nowhere else', async () => {
    const { world, client, received, next } = await startShard(2, { retry: false })
    const call = client.propertyExists(HOTEL)
    const first = await next()
    world.advance(500)
    expect(received()).toEqual([])
    first.answer({ exists: true })
    expect(await call).toBe(true)
  })

  test('that was cancelled by its caller fails with the reason, before it is sent and after', async () => {
    const { client, next, received } = await startShard(1)
    const reason = new Error('no longer wanted')
    const before = client.propertyExists(HOTEL, { signal: AbortSignal.abort(reason) })
    await expect(before).rejects.toMatchObject({ name: 'VacancyClientError', code: 'cancelled', cause: reason })

    const stop = new AbortController()
    const read = client.propertyExists(HOTEL, { signal: stop.signal })
    const write = client.setAvailability(DECREMENT, { signal: stop.signal })
    const sent = [await next(), await next()]
    stop.abort(reason)

    await expect(read).rejects.toMatchObject({ name: 'VacancyClientError', code: 'cancelled', cause: reason })
    await expect(write).rejects.toMatchObject({ name: 'VacancyUnknownOutcomeError', code: 'cancelled' })
    for (const each of sent) each.refuse('503')
    await exchange(client, next)
    expect(received()).toEqual([])
  })

  test('refused for now is sent again after a pause, which doubles up to half a second', async () => {
    const [node] = await startNodes(1)
    const world = turnedWorld()
    const client = await connectIn(world, { port: node?.port ?? 0 })
    const call = client.propertyExists(HOTEL, { deadlineMs: 1_000 })
    const pauses: number[] = []

    for (let n = 0; n < 6; n++) {
      ;(await node?.next())?.refuse('429')
      await until(() => world.waits().length === 2)
      const pause = Math.min(...world.waits())
      pauses.push(pause)
      world.advance(pause)
    }
    ;(await node?.next())?.answer({ exists: true })

    // The random number is 0.5: three quarters of 20, 40, 80, 160, 320, and of the greatest, 500.
    expect(pauses).toEqual([15, 30, 60, 120, 240, 375])
    expect(await call).toBe(true)
  })

  test.each(['429', '408'])('refused with %s by a node of a shard does not go to another at once', async (code) => {
    const { world, client, next, received } = await startShard(2)
    const call = client.propertyExists(HOTEL)

    ;(await next()).refuse(code)
    await until(() => world.waits().includes(15))
    expect(received()).toEqual([])
    world.advance(15)
    ;(await next()).answer({ exists: true })

    expect(await call).toBe(true)
  })

  test('whose connection was lost reports that at its deadline, when there is no other until then', async () => {
    const [node] = await startNodes(1)
    const world = turnedWorld()
    const client = await connectIn(world, { port: node?.port ?? 0 })
    const call = client.propertyExists(HOTEL, { deadlineMs: 1_000 }).catch((error: unknown) => error)
    await node?.next()

    await node?.close()
    await until(() => client.status().connections === 0)
    world.advance(1_000)

    expect(await call).toMatchObject({ name: 'VacancyRetryError', code: 'connection_lost', command: 'PROPEXIST' })
  })

  test('that was refused and waits for its retry has changed nothing when it is cancelled or its time is over', async () => {
    const [node] = await startNodes(1)
    const world = turnedWorld()
    const client = await connectIn(world, { port: node?.port ?? 0 })
    const stop = new AbortController()
    const refused = async (options: object) => {
      const failure = client.decreaseAvailability(DECREMENT, options).catch((error: unknown) => error)
      ;(await node?.next())?.refuse('429')
      await until(() => world.waits().includes(15))
      return { failure }
    }

    const cancelled = await refused({ signal: stop.signal })
    stop.abort()
    expect(await cancelled.failure).toMatchObject({ name: 'VacancyClientError', code: 'cancelled' })
    const late = await refused({ deadlineMs: 10 })
    world.advance(10)
    expect(await late.failure).toMatchObject({ name: 'VacancyRetryError', code: '429' })
    expect(node?.untaken()).toEqual([])
  })

  test.each([
    [500, 0],
    [501, 1],
  ])('of 2 s whose node was last heard after %d ms leaves %d connections', async (heardMs, left) => {
    const { world, client, next } = await startShard(1)
    const silent = client.propertyExists(HOTEL, { deadlineMs: 2_000 }).catch((error: unknown) => error)
    await next()
    world.advance(heardMs)
    await exchange(client, next)

    world.advance(2_000 - heardMs)

    // A node without a byte for three quarters of the client's deadline is given up.
    expect(await silent).toMatchObject({ code: 'deadline_exceeded' })
    expect(client.status().connections).toBe(left)
  })

  test('with several connections goes to the least loaded one', async () => {
    const { client, next } = await startShard(1, { connections: 2 })
    const [a, b] = [client.propertyExists(HOTEL), client.propertyExists(HOTEL)]
    const [first, second] = [await next(), await next()]
    expect(first.peer).not.toBe(second.peer)
    second.answer({ exists: true })
    await b

    const c = client.propertyExists(HOTEL)
    const third = await next()
    expect(third.peer).toBe(second.peer)
    third.answer({ exists: true })
    first.answer({ exists: false })
    expect([await a, await c]).toEqual([false, true])
  })
})

describe('a call that cannot be made', () => {
  test.each<[string, (client: VacancyClient) => Promise<unknown>, object]>([
    ['an unknown command', (client) => client.send('DROP' as 'SETPROP', {} as never), { message: 'no command DROP' }],
    ['LOGIN', (client) => client.send('LOGIN' as 'SETPROP', {} as never), { message: 'no command LOGIN' }],
    ['no fields', (client) => client.propertyExists(null as never), { message: 'PROPEXIST takes an object of fields' }],
    [
      'a deadline of 0',
      (client) => client.propertyExists(HOTEL, { deadlineMs: 0 }),
      { message: expect.stringContaining('deadlineMs must be a whole number') },
    ],
    [
      'read options of a write',
      (client) => client.setPackage(NIGHT, { minIndex: 1 }),
      { message: 'SETROOMPKG is not a read and takes no read options' },
    ],
  ])('%s is refused locally', async (_, call, error) => {
    const { client, received } = await startShard(1)
    await expect(call(client)).rejects.toMatchObject({ code: 'VALIDATION_ERROR', ...error })
    expect(received()).toEqual([])
    expect(client.status().unsettled).toBe(0)
  })
})

describe('through a router', () => {
  test.each<[string, (client: VacancyClient) => Promise<unknown>, string, boolean, object]>([
    ['the rate features', (client) => client.listRateFeatures(), CODECS_SEGMENT, false, { rateFeatures: [] }],
    ['the segments', (client) => client.listSegments(), SEGMENTS_SEGMENT, false, { segments: [] }],
    ['a search', (client) => client.searchProperties({ segment: 'lisbon' }), 'lisbon', false, { propertyIds: [] }],
    ['a read', (client) => client.propertyExists(HOTEL, { segment: 'porto' }), 'porto', false, { exists: true }],
    ['a write', (client) => client.setPackage(NIGHT, { segment: 'porto' }), 'porto', true, {}],
    [
      'a search elsewhere',
      (client) => client.searchProperties({ segment: 'a' }, { segment: 'b' }),
      'b',
      false,
      { propertyIds: [] },
    ],
  ])('%s has an envelope with its segment', async (_, call, segment, write, answer) => {
    const [node] = await startNodes(1)
    const client = await connectIn(turnedWorld(), { port: node?.port ?? 0, envelope: 'router' })
    const peer = await node?.nextPeer()
    const before = peer?.received.length ?? 0

    const result = call(client)
    ;(await node?.next())?.answer(answer)
    await result

    expect(decodeEnvelope(peer?.received.subarray(before) ?? new Uint8Array())).toMatchObject({ segment, write })
  })

  test('a call without a segment is refused', async () => {
    const [node] = await startNodes(1)
    const client = await connectIn(turnedWorld(), { port: node?.port ?? 0, envelope: 'router' })
    await expect(client.propertyExists(HOTEL)).rejects.toMatchObject({
      ...{ name: 'VacancyRequestError', command: 'PROPEXIST' },
      message: 'PROPEXIST has no segment, which a router requires: set { segment } in the call options',
    })
  })
})
