import { createServer } from 'node:http'
import { seeded } from '@vacancy/testkit/random'
import { afterEach, describe, expect, test } from 'vitest'
import { connect, connectIn, type VacancyClient } from './client.ts'
import { VacancyUnknownOutcomeError } from './errors.ts'
import { type ClientOptions, checkOptions, type NodeAddress } from './options.ts'
import { type ReceivedRequest, type Script, type ScriptedNode, startScriptedNode } from './testing/scripted-node.ts'
import { type TurnedWorld, turnedWorld } from './testing/turned-world.ts'
import { until } from './testing/until.ts'

const NIGHT = { propertyId: 'hotel_123', roomType: 'suite', date: '2026-12-24' }
const DECREMENT = { ...NIGHT, amount: 1 }
const HOTEL = { propertyId: 'hotel_123' }
/** An address without a listener. */
const NOBODY_LISTENS = '127.0.0.1:1'

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

async function startNode(script?: Script): Promise<ScriptedNode> {
  const node = await startScriptedNode(script)
  cleanUp.push(() => node.close())
  return node
}

const addressOf = ({ port }: { port: number }) => `127.0.0.1:${port}`

type Shard = {
  readonly a: ScriptedNode
  readonly b: ScriptedNode
  readonly c: ScriptedNode
  readonly world: TurnedWorld
  readonly client: VacancyClient
}

/** Three nodes that reply as the test decides, and a client that is connected to all of them. */
async function start(options: ClientOptions = {}): Promise<Shard> {
  const [a, b, c] = [await startNode(), await startNode(), await startNode()]
  const world = turnedWorld()
  const client = await connectIn(world, { nodes: [a, b, c].map(addressOf), ...options })
  await until(() => client.status().connections === 3 * (options.connections ?? 1))
  return { a, b, c, world, client }
}

/** A write that `leader` executes, after which the leader is known. */
async function findLeader({ a, b, c, client }: Shard, leader: ScriptedNode): Promise<ReceivedRequest> {
  const write = client.setAvailability(DECREMENT)
  for (const node of [a, b, c]) {
    const received = await node.next()
    if (node === leader) {
      received.answer({ availability: 9 })
      await write
      return received
    }
    received.refuse('308')
  }
  throw new Error('the leader is one of the three')
}

const roles = (client: VacancyClient) => client.status().nodes?.map(({ role }) => role)
/** The next request that reaches any of the nodes. */
async function firstOf(...nodes: readonly ScriptedNode[]): Promise<ReceivedRequest> {
  await until(() => nodes.some((node) => node.untaken().length > 0))
  const found = nodes.find((node) => node.untaken().length > 0) as ScriptedNode
  return found.next()
}

const failureOf = (call: Promise<unknown>) =>
  call.then(
    (result) => Promise.reject(new Error(`it answered ${JSON.stringify(result)}`)),
    ({ name, code, command }) => ({ name, code, command }),
  )

describe('writes', () => {
  test('find the leader through refusals, one at a time, and are pipelined from then on', async () => {
    const shard = await start()
    const { a, b, c, client } = shard
    const writes = [1, 2, 3].map((amount) => client.decreaseAvailability({ ...NIGHT, amount }))

    const first = await a.next()
    first.refuse('308')
    const again = await b.next()
    expect(again.payload).toEqual(first.payload)
    again.answer({ availability: 1 })
    const rest = [await b.next(), await b.next()]
    for (const received of rest) received.answer({ availability: received.fields['amount'] as number })

    expect(await Promise.all(writes)).toEqual([1, 2, 3])
    expect([a, c].flatMap((node) => node.untaken())).toEqual([])
    expect(roles(client)).toEqual(['follower', 'leader', 'unknown'])
  })

  test('follow a leader change while many are in flight, each with its own key, in order', async () => {
    const shard = await start()
    const { b, c, client } = shard
    await findLeader(shard, b)
    const writes = [1, 2, 3, 4].map((amount) => client.decreaseAvailability({ ...NIGHT, amount }))
    const sent = [await b.next(), await b.next(), await b.next(), await b.next()]

    // The first is executed before the leadership change; the others are in no log.
    sent[0]?.answer({ availability: 10 })
    for (const received of sent.slice(1)) received.refuse('308')
    await (await shard.a.next()).refuse('308')
    const executed: ReceivedRequest[] = []
    for (let i = 0; i < 3; i++) {
      const received = await c.next()
      executed.push(received)
      received.answer({ availability: 10 + i + 1 })
    }

    expect(await Promise.all(writes)).toEqual([10, 11, 12, 13])
    expect(executed.map(({ fields }) => fields['amount'])).toEqual([2, 3, 4])
    expect(executed.map(({ payload }) => payload)).toEqual(sent.slice(1).map(({ payload }) => payload))
  })

  test('wait while there is no leader, and are executed by the elected node within the deadline', async () => {
    const shard = await start()
    const { a, b, c, world, client } = shard
    const write = client.decreaseAvailability(DECREMENT)
    for (const node of [a, b, c]) (await node.next()).refuse('503')
    await until(() => client.status().inFlight === 0)

    world.advance(20)
    ;(await a.next()).refuse('308')
    ;(await b.next()).answer({ availability: 7 })

    expect(await write).toBe(7)
  })

  test('are reported as not done when no leader is found in time', async () => {
    const { a, b, c, world, client } = await start()
    const failure = failureOf(client.decreaseAvailability(DECREMENT))
    for (const node of [a, b, c]) (await node.next()).refuse('503')
    await until(() => client.status().inFlight === 0)

    world.advance(2_000)

    expect(await failure).toEqual({ name: 'VacancyRetryError', code: '503', command: 'DECROOMAVL' })
  })

  test('have changed nothing when cancelled during the search for the leader', async () => {
    const { a, client } = await start()
    const controller = new AbortController()
    const first = failureOf(client.decreaseAvailability(DECREMENT, { signal: controller.signal }))
    const second = failureOf(client.increaseAvailability(DECREMENT, { signal: controller.signal }))
    await a.next()

    controller.abort()

    // The one already sent may have been executed.
    expect(await first).toMatchObject({ name: 'VacancyUnknownOutcomeError', code: 'cancelled' })
    expect(await second).toMatchObject({ name: 'VacancyClientError', code: 'cancelled' })
  })
})

describe('a leader that dies', () => {
  test('with a write in flight: the next leader receives it with the same key and the same bytes', async () => {
    const shard = await start()
    const { a, b, client } = shard
    await findLeader(shard, a)
    const write = client.decreaseAvailability(DECREMENT)
    const lost = await a.next()

    lost.peer.socket.destroy()
    const again = await b.next()
    again.answer({ availability: 3 })

    expect(again.payload).toEqual(lost.payload)
    expect(again.fields['requestNumber']).toBe(2)
    expect(await write).toBe(3)
  })

  test('with an unkeyed write in flight: its outcome is unknown, and it is not retried', async () => {
    const shard = await start({ requestKeys: false })
    const { a, b, c, client } = shard
    await findLeader(shard, a)
    const failure = failureOf(client.decreaseAvailability(DECREMENT))
    const other = client.propertyExists(HOTEL)

    ;(await a.next()).peer.socket.destroy()

    expect(await failure).toMatchObject({ name: 'VacancyUnknownOutcomeError', code: 'connection_lost' })
    ;(await firstOf(b, c)).answer({ exists: true })
    expect(await other).toBe(true)
    expect([b, c].flatMap((node) => node.untaken())).toEqual([])
  })

  test('silently: after part of the deadline the next leader receives the write, and a late reply is dropped', async () => {
    const shard = await start()
    const { a, b, world, client } = shard
    await findLeader(shard, a)
    const write = client.decreaseAvailability(DECREMENT)
    const silent = await a.next()

    world.advance(500)
    const again = await b.next()
    silent.answer({ availability: 99 })
    again.answer({ availability: 5 })

    expect(again.payload).toEqual(silent.payload)
    expect(await write).toBe(5)
    expect(roles(client)?.[1]).toBe('leader')
  })

  test('silently, with an unkeyed write in flight: it waits, because the leader may still execute it', async () => {
    const shard = await start({ requestKeys: false })
    const { a, b, c, world, client } = shard
    await findLeader(shard, a)
    const write = client.decreaseAvailability(DECREMENT)
    const silent = await a.next()

    world.advance(1_000)
    const next = client.increaseAvailability(DECREMENT)
    const elsewhere = await b.next()
    expect(elsewhere.command).toBe('INCROOMAVL')
    elsewhere.answer({ availability: 6 })
    silent.answer({ availability: 5 })

    expect([await write, await next]).toEqual([5, 6])
    expect([b, c].flatMap((node) => node.untaken())).toEqual([])
  })
})

describe('an outcome that the leader does not know (408)', () => {
  test('is retried with its key, on the new leader', async () => {
    const shard = await start()
    const { a, b, world, client } = shard
    await findLeader(shard, a)
    const write = client.decreaseAvailability(DECREMENT)
    const first = await a.next()

    first.refuse('408')
    await until(() => client.status().inFlight === 0)
    world.advance(20)
    const again = await b.next()
    again.answer({ availability: 4 })

    expect(again.payload).toEqual(first.payload)
    expect(await write).toBe(4)
  })

  test('is reported to the caller without a key', async () => {
    const shard = await start({ requestKeys: false })
    const { a, b, c, client } = shard
    await findLeader(shard, a)
    const failure = failureOf(client.decreaseAvailability(DECREMENT))

    ;(await a.next()).refuse('408')

    expect(await failure).toEqual({ name: 'VacancyUnknownOutcomeError', code: '408', command: 'DECROOMAVL' })
    expect([b, c].flatMap((node) => node.untaken())).toEqual([])
  })

  test('stays unknown when every retry is refused', async () => {
    const shard = await start()
    const { a, b, c, world, client } = shard
    await findLeader(shard, a)
    const failure = failureOf(client.decreaseAvailability(DECREMENT))
    ;(await a.next()).refuse('408')
    await until(() => client.status().inFlight === 0)
    world.advance(20)
    ;(await b.next()).refuse('308')
    ;(await c.next()).refuse('308')
    await until(() => client.status().inFlight === 0)

    world.advance(1_980)

    expect((await failure).name).toBe('VacancyUnknownOutcomeError')
  })
})

describe('reads', () => {
  test('go to the nodes that do not lead', async () => {
    const shard = await start()
    const { a, b, c, client } = shard
    await findLeader(shard, b)

    const reads = Array.from({ length: 8 }, () => client.propertyExists(HOTEL))
    await until(() => client.status().inFlight === 8)
    await until(() => a.untaken().length + c.untaken().length === 8)

    expect([a.untaken().length, b.untaken().length, c.untaken().length]).toEqual([4, 0, 4])
    for (const node of [a, c]) for (let i = 0; i < 4; i++) (await node.next()).answer({ exists: true })
    expect(await Promise.all(reads)).toEqual(Array(8).fill(true))
  })

  test('refused by a stale follower are served by another node, and the follower is avoided', async () => {
    const shard = await start()
    const { a, b, c, client } = shard
    await findLeader(shard, a)
    const read = client.propertyExists(HOTEL)
    const stale = await firstOf(b, c)
    stale.refuse('503')
    const fresh = await firstOf(b, c)
    expect(fresh.peer).not.toBe(stale.peer)
    fresh.answer({ exists: true })
    expect(await read).toBe(true)

    for (let i = 0; i < 5; i++) {
      const another = client.propertyExists(HOTEL)
      const received = await firstOf(a, b, c)
      received.answer({ exists: true })
      expect(received.peer).toBe(fresh.peer)
      await another
    }
  })

  test('for an index that a follower has not applied go to the leader', async () => {
    const shard = await start()
    const { a, b, c, client } = shard
    await findLeader(shard, a)
    const read = client.propertyExists(HOTEL, { minIndex: 77 })

    const behind = await firstOf(b, c)
    expect(behind.fields).toEqual({ ...HOTEL, minIndex: 77 })
    behind.refuse('308')
    ;(await a.next()).answer({ exists: true })

    expect(await read).toBe(true)
  })

  test('go to the leader while it is the only node left, and to followers where it serves no reads (405)', async () => {
    const shard = await start({ reads: 'leader' })
    const { a, b, c, client } = shard
    await findLeader(shard, a)
    const read = client.propertyExists(HOTEL)
    ;(await a.next()).refuse('405')
    ;(await firstOf(b, c)).answer({ exists: true })

    expect(await read).toBe(true)
  })

  test('of a silent node are retried elsewhere, and a node that dies costs nothing', async () => {
    const shard = await start()
    const { a, b, c, world, client } = shard
    await findLeader(shard, a)
    const silent = client.propertyExists(HOTEL)
    await firstOf(b, c)
    world.advance(500)
    ;(await firstOf(a, b, c)).answer({ exists: true })
    expect(await silent).toBe(true)

    const lost = client.propertyExists(HOTEL)
    ;(await firstOf(a, b, c)).peer.socket.destroy()
    ;(await firstOf(a, b, c)).answer({ exists: false })

    expect(await lost).toBe(false)
  })

  test('pass the freshness options of the call', async () => {
    const { a, b, c, client } = await start()
    const calls = [
      client.propertyExists(HOTEL, { maxStalenessMs: 250 }),
      client.listSegments({ linearizable: true }),
      client.searchProperties({ segment: 's' }, { minIndex: 5, linearizable: false }),
    ]
    const received = [await firstOf(a, b, c), await firstOf(a, b, c), await firstOf(a, b, c)]
    const byCommand = Object.fromEntries(received.map(({ command, fields }) => [command, fields]))

    expect(byCommand).toEqual({
      PROPEXIST: { ...HOTEL, maxStalenessMs: 250 },
      GETSEGMENTS: { linearizable: 1 },
      SEARCHPROP: { segment: 's', minIndex: 5, linearizable: 0 },
    })
    for (const { command, answer } of received) {
      answer(command === 'PROPEXIST' ? { exists: true } : { segments: [], propertyIds: [] })
    }
    await Promise.all(calls)
    await expect(client.setAvailability(DECREMENT, { linearizable: true })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
    })
  })

  test('pass the trace of the caller, and ignore a malformed one', async () => {
    const { a, b, c, client } = await start()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const calls = [
      client.propertyExists(HOTEL, { traceparent }),
      client.propertyExists(HOTEL, { traceparent: traceparent.toUpperCase() }),
      client.setAvailability(DECREMENT, { traceparent }),
    ]
    const received = [await firstOf(a, b, c), await firstOf(a, b, c), await firstOf(a, b, c)]
    const traces = (of: string) => received.flatMap(({ command, fields }) => (command === of ? [fields['trace']] : []))
    expect(new Set(traces('PROPEXIST'))).toEqual(new Set([traceparent, undefined]))
    expect(traces('SETROOMAVL')).toEqual([traceparent])
    // The key of a write has its place in front of it.
    expect(received.find(({ command }) => command === 'SETROOMAVL')?.fields).toMatchObject({
      ...{ session: expect.stringMatching(/^[0-9a-f]{32}$/), requestNumber: 1 },
    })
    for (const { command, answer } of received) answer(command === 'PROPEXIST' ? { exists: true } : { availability: 4 })
    await Promise.all(calls)
  })

  test('of a stale shard are retried after a pause, and are refused at their deadline', async () => {
    const { a, b, c, world, client } = await start()
    const failure = failureOf(client.propertyExists(HOTEL))
    for (let i = 0; i < 3; i++) (await firstOf(a, b, c)).refuse('503')
    await until(() => client.status().inFlight === 0)
    expect([a, b, c].flatMap((node) => node.untaken())).toEqual([])

    world.advance(2_000)

    expect(await failure).toEqual({ name: 'VacancyRetryError', code: '503', command: 'PROPEXIST' })
  })
})

describe('reading your own writes', () => {
  test('requests the index of writes, and reads at the greatest one on any node', async () => {
    const shard = await start({ readYourWrites: true })
    const { a, b, c, client } = shard
    const before = client.propertyExists(HOTEL)
    const first = await firstOf(a, b, c)
    expect(first.fields).toEqual(HOTEL)
    first.answer({ exists: false })
    await before

    const writes = [client.setPackage(NIGHT), client.deletePackage(NIGHT)]
    const one = await a.next()
    expect(one.fields).toMatchObject({ wantIndex: 1, requestNumber: 1 })
    one.answer({ index: 41 })
    ;(await a.next()).answer({ index: 40 })
    await Promise.all(writes)
    const read = client.propertyExists(HOTEL)
    const received = await firstOf(b, c)
    received.answer({ exists: true })
    await read

    expect(received.fields).toEqual({ ...HOTEL, minIndex: 41 })
    const own = client.propertyExists(HOTEL, { minIndex: 3 })
    const last = await firstOf(b, c)
    last.answer({ exists: true })
    await own
    expect(last.fields).toEqual({ ...HOTEL, minIndex: 3 })
  })
})

test.each(['its own', 'that of the call'])(
  'an index that the data do not have is forgotten or reported: %s',
  async (whose) => {
    const { a, b, c, client } = await start({ readYourWrites: true })
    const write = client.setPackage(NIGHT)
    ;(await a.next()).answer({ index: 41 })
    await write

    const isOwn = whose === 'its own'
    const read = isOwn ? client.propertyExists(HOTEL) : client.propertyExists(HOTEL, { minIndex: 41 })
    const outcome = read.catch((error: { code: string }) => error.code)
    const first = await firstOf(b, c)
    expect(first.fields).toEqual({ ...HOTEL, minIndex: 41 })
    first.refuse('UNKNOWN_INDEX: newest=7')
    if (!isOwn) return expect(await outcome).toBe('UNKNOWN_INDEX')
    const again = await firstOf(b, c)
    expect(again.fields).toEqual(HOTEL)
    again.answer({ exists: true })
    expect(await outcome).toBe(true)
  },
)

describe('connections', () => {
  test('a duplicate reply ends its connection, and its requests are retried', async () => {
    const shard = await start()
    const { a, b, world, client } = shard
    await findLeader(shard, a)
    const writes = [client.decreaseAvailability(DECREMENT), client.increaseAvailability(DECREMENT)]
    const [first, second] = [await a.next(), await a.next()]

    first.answer({ availability: 2 })
    first.answer({ availability: 2 })
    const again = await b.next()
    again.answer({ availability: 3 })

    expect(await Promise.all(writes)).toEqual([2, 3])
    expect(again.payload).toEqual(second.payload)
    world.advance(100)
    await until(() => client.status().connections === 3)
  })

  test('one reachable node is enough, and one that refuses the token does no harm', async () => {
    const [up, refusing] = [
      await startNode({ login: [Buffer.from('LOGIN OK')] }),
      await startNode({ login: [Buffer.from('LOGIN FAILED')] }),
    ]

    const client = await connectIn(turnedWorld(), {
      nodes: [NOBODY_LISTENS, addressOf(refusing), addressOf(up)],
      token: 'abc',
    })
    const read = client.propertyExists(HOTEL)
    ;(await up.next()).answer({ exists: true })

    expect(await read).toBe(true)
    expect(client.status().nodes?.map(({ connections }) => connections)).toEqual([0, 0, 1])
    await client.close()
  })

  test('a token that all nodes refuse fails at once', async () => {
    const nodes = [
      await startNode({ login: [Buffer.from('LOGIN FAILED')] }),
      await startNode({ login: [Buffer.from('LOGIN FAILED')] }),
    ]

    const failure = failureOf(connectIn(turnedWorld(), { nodes: nodes.map(addressOf), token: 'abc' }))

    expect(await failure).toMatchObject({ name: 'VacancyClientError', code: 'login_failed' })
  })

  test.each<[string, ClientOptions]>([
    ['nodes', { nodes: [] }],
    ['nodes', { nodes: ['a:1:2'] }],
    ['port', { nodes: ['a:99999'] }],
    ['different', { nodes: ['a', 'a:7777'] }],
    ['nodes, or host', { nodes: ['a'], host: 'b' }],
    ['router', { nodes: ['a'], envelope: 'router' }],
    ['reads', { nodes: ['a'], reads: 'nearest' as 'any' }],
    ['api', { nodes: [{ host: 'a', api: 'a:8080' }] }],
  ])('connecting names the invalid option: %s', async (name, options) => {
    await expect(connect(options)).rejects.toThrow(name)
  })

  test.each([
    ['a', 'a', 7777],
    ['a:81', 'a', 81],
    ['[::1]', '::1', 7777],
    ['[::1]:81', '::1', 81],
  ])('a node is written %s', (text, host, port) => {
    expect(checkOptions({ nodes: [text] }).nodes).toEqual([{ address: { host, port }, api: undefined }])
  })
})

type Api = { health: string; info: object; readonly tokens: (string | undefined)[] }

/** The HTTP API of a node, reduced to what it reports about the leader. */
async function startApi(api: Api): Promise<string> {
  const server = createServer((request, response) => {
    api.tokens.push(request.headers.authorization)
    if (request.url === '/healthz') response.writeHead(api.health === 'unavailable' ? 503 : 200).end(`${api.health}\n`)
    else if (request.url === '/node-info') response.end(JSON.stringify(api.info))
    else response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp.push(() => new Promise((resolve) => server.close(resolve)))
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
}

describe('the API of the nodes', () => {
  async function startWithApis(apis: readonly Partial<Api>[], options: ClientOptions = {}) {
    const nodes: ScriptedNode[] = []
    const full = apis.map(
      (api, i): Api => ({
        health: 'active_follower',
        tokens: [],
        ...api,
        info: { node_id: `n${i}`, leader_id: 'n1', shard_id: 's1', zone_id: 'z', ...api.info },
      }),
    )
    const addresses: NodeAddress[] = []
    for (const api of full) {
      const node = await startNode({ ...(options.token ? { login: [Buffer.from('LOGIN OK')] } : {}) })
      nodes.push(node)
      addresses.push({ host: '127.0.0.1', port: node.port, api: await startApi(api) })
    }
    const world = turnedWorld()
    const client = await connectIn(world, { nodes: addresses, ...options })
    cleanUp.push(() => client.close())
    await until(() => client.status().connections === nodes.length)
    return { nodes, apis: full, world, client }
  }

  test('names the leader, so that the first write goes there', async () => {
    const { nodes, world, apis, client } = await startWithApis([{}, { health: 'active_leader' }, {}], { token: 'abc' })
    world.advance(0)
    await until(() => roles(client)?.[1] === 'leader')

    const write = client.decreaseAvailability(DECREMENT)
    ;(await (nodes[1] as ScriptedNode).next()).answer({ availability: 1 })

    expect(await write).toBe(1)
    expect(roles(client)).toEqual(['follower', 'leader', 'follower'])
    expect(new Set(apis.flatMap(({ tokens }) => tokens))).toEqual(new Set(['Bearer abc']))
  })

  test('is polled again when a leader is lost, and does not outvote one that executes writes', async () => {
    const { nodes, world, apis, client } = await startWithApis([{}, { health: 'active_leader' }, {}])
    world.advance(0)
    await until(() => roles(client)?.[1] === 'leader')
    const write = client.decreaseAvailability(DECREMENT)
    const refused = await (nodes[1] as ScriptedNode).next()
    for (const [i, api] of apis.entries()) {
      api.info = { ...api.info, leader_id: 'n2' }
      api.health = i === 2 ? 'active_leader' : 'active_follower'
    }

    refused.refuse('308')
    // Meanwhile a node is tried without waiting for the API.
    const probe = await (nodes[0] as ScriptedNode).next()
    world.advance(100)
    await until(() => roles(client)?.[2] === 'leader')
    probe.refuse('308')
    ;(await (nodes[2] as ScriptedNode).next()).answer({ availability: 1 })

    expect(await write).toBe(1)
    for (const api of apis) api.info = { ...api.info, leader_id: 'n0' }
    ;(apis[0] as Api).health = 'active_leader'
    const looks = apis[0]?.tokens.length as number
    world.advance(2_000)
    await until(() => (apis[0]?.tokens.length as number) >= looks + 2)
    expect(roles(client)?.[2]).toBe('leader')
  })

  test('reveals a node of another shard, which receives no requests', async () => {
    const { nodes, world, client } = await startWithApis([
      {},
      { health: 'active_leader', info: { shard_id: 's2' } },
      {},
    ])
    world.advance(0)
    const [, foreign] = nodes as [ScriptedNode, ScriptedNode]
    await until(() => roles(client)?.[0] === 'follower')

    for (let i = 0; i < 5; i++) {
      const read = client.propertyExists(HOTEL)
      ;(await firstOf(nodes[0] as ScriptedNode, nodes[2] as ScriptedNode)).answer({ exists: true })
      await read
    }

    expect(foreign.untaken()).toEqual([])
  })

  test('is optional: missing or invalid responses are ignored', async () => {
    const { nodes, world, client } = await startWithApis([
      { info: { leader_id: null } },
      { health: '<html>' },
      { health: 'unavailable' },
    ])
    world.advance(0)

    const write = client.decreaseAvailability(DECREMENT)
    ;(await (nodes[0] as ScriptedNode).next()).answer({ availability: 1 })

    expect(await write).toBe(1)
  })
})

/** A shard whose leader changes and whose connections break at random. @returns executions by room type */
async function startUnreliableShard(random: () => number) {
  const nodes = [await startNode(), await startNode(), await startNode()]
  const executions = new Map<unknown, number>()
  const results = new Map<string, number>()
  let leader = 0
  const serve = async (node: ScriptedNode, number: number) => {
    for (;;) {
      const received = await node.next()
      const { session, requestNumber, roomType } = received.fields
      const chance = random()
      if (leader !== number) received.refuse('308')
      else if (chance < 0.05) {
        leader = Math.floor(random() * 3)
        received.refuse('503')
      } else {
        const key = session === undefined ? undefined : `${session} ${requestNumber}`
        const isRepeat = key !== undefined && results.has(key)
        if (!isRepeat) executions.set(roomType, (executions.get(roomType) ?? 0) + 1)
        if (key !== undefined) results.set(key, 1)
        if (chance < 0.1) received.peer.socket.destroy()
        else if (chance < 0.15) received.refuse('408')
        else received.answer({ availability: 1 })
        if (chance > 0.95) leader = Math.floor(random() * 3)
      }
    }
  }
  for (const [number, node] of nodes.entries()) void serve(node, number)
  return { nodes, executions }
}

const WRITERS = 6
const WRITES_EACH = 30

test.each([true, false])(
  'under any faults, an acknowledged write is executed once, and any other at most once (request keys: %s)',
  async (requestKeys) => {
    const { nodes, executions } = await startUnreliableShard(seeded(requestKeys ? 7 : 11))
    const client = await connect({ nodes: nodes.map(addressOf), requestKeys, deadlineMs: 20_000 })
    const failures: unknown[] = []

    const write = async (writer: number) => {
      for (let i = 0; i < WRITES_EACH; i++) {
        const roomType = `room ${writer} ${i}`
        const isAnswered = await client.increaseAvailability({ ...DECREMENT, roomType }).then(
          () => true,
          (error) => {
            failures.push(error)
            return false
          },
        )
        const times = executions.get(roomType) ?? 0
        if (isAnswered) expect(times).toBe(1)
      }
    }
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)))
    await client.close()

    expect(failures.filter((error) => !(error instanceof VacancyUnknownOutcomeError))).toEqual([])
    expect([...executions.values()].filter((times) => times > 1)).toEqual([])
    if (!requestKeys) expect(failures.length).toBeGreaterThan(0)
  },
)
