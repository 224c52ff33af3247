import { encodeRequest } from '@vacancy/shared/wire'
import { afterEach, expect, test } from 'vitest'
import {
  type Connection,
  type ConnectionSettings,
  checkHealth,
  giveUp,
  hangUp,
  openConnection,
  send,
  textOfAddress,
} from './connection.ts'
import type { VacancyCallError } from './errors.ts'
import { replyFrame, type Script, type ScriptedNode, startScriptedNode } from './testing/scripted-node.ts'
import { turnedWorld } from './testing/turned-world.ts'
import { until } from './testing/until.ts'

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

/** A connection to a node that replies as the test decides, and what it reports. */
async function start(script: Script = {}, settings: Partial<ConnectionSettings> = {}) {
  const node = await startScriptedNode(script)
  cleanUp.push(() => node.close())
  const world = turnedWorld()
  const events: string[] = []
  const connection = openConnection(
    world,
    {
      ...{ address: { host: '127.0.0.1', port: node.port }, tls: undefined, token: undefined, isRouter: false },
      ...{ handshakeMs: 5_000, silenceMs: 1_500, ...settings },
    },
    {
      opened: () => events.push('opened'),
      drained: () => events.push('drained'),
      closed: (_, error: VacancyCallError) => events.push(`${error.code}: ${error.message}`),
    },
  )
  cleanUp.push(() => hangUp(connection))
  return { node, world, events, connection }
}

async function open(script: Script = {}, settings: Partial<ConnectionSettings> = {}) {
  const started = await start(script, settings)
  await until(() => started.events.length > 0)
  expect(started.events.splice(0)).toEqual(['opened'])
  return started
}

const ask = (connection: Connection, replies: string[], name = 'p') =>
  send(connection, encodeRequest({ command: 'PROPEXIST', correlationId: 0, fields: { propertyId: name } }), {
    command: 'PROPEXIST',
    answered: (payload) => replies.push(`${name}: ${payload.length} bytes`),
    lost: ({ code }) => replies.push(`${name}: ${code}`),
  })
/** A request whose reply has arrived: what was sent before it has, too. */
async function exchange(connection: Connection, node: ScriptedNode): Promise<void> {
  const replies: string[] = []
  ask(connection, replies, 'exchange')
  ;(await node.next()).answer({ exists: true })
  await until(() => replies.length === 1)
}

test('the token is sent first, and its reply may come in pieces', async () => {
  const login = ['LOG', 'IN O', 'K'].map((piece) => Buffer.from(piece))
  const { node, connection, world } = await open({ login }, { token: 'secret' })

  expect(node.peers[0]?.received.toString('latin1')).toContain('secret')
  expect(connection.state).toBe('open')
  expect(connection.codecs?.names).toEqual(['breakfast', 'late_checkout', 'sea_view'])
  expect(world.waits()).toEqual([])
})

test.each<[string, Script, Partial<ConnectionSettings>, RegExp]>([
  ['refuses the token', { login: [Buffer.from('LOGIN FAILED')] }, { token: 'x' }, /^login_failed: .*127\.0\.0\.1:\d+/],
  [
    'replies something else to LOGIN',
    { login: [Buffer.from('HELLO')] },
    { token: 'x' },
    /^connection_failed: .*invalid reply to LOGIN/,
  ],
  [
    'has an invalid codec list',
    { codecs: ({ peer, id }) => peer.socket.write(replyFrame('PROPEXIST', id, { exists: true })) },
    {},
    /^connection_failed: .*invalid codec list/,
  ],
  ['refuses its codec list', { codecs: (received) => received.refuse('503') }, {}, /^503: /],
  [
    'closes the connection',
    { codecs: ({ peer }) => peer.socket.end() },
    {},
    /^connection_failed: .*the peer closed the connection/,
  ],
  [
    'replies to a request that was never sent',
    { codecs: ({ peer, id }) => peer.socket.write(replyFrame('GETCODECS', id + 1, { rateFeatures: [] })) },
    {},
    /^connection_failed: .*received a reply to request 2, which was never sent/,
  ],
  [
    'is no node',
    { codecs: ({ peer }) => peer.socket.write('HTTP/1.1 400 Bad Request\r\n') },
    {},
    /^connection_failed: /,
  ],
])('a peer that %s ends it once', async (_, script, settings, reason) => {
  const { events, connection, world } = await start(script, settings)
  await until(() => events.length > 0)
  await hangUp(connection)

  expect(events).toEqual([expect.stringMatching(reason)])
  expect([connection.state, world.waits()]).toEqual(['closed', []])
})

test('a peer that is not ready in time is given up', async () => {
  const { events, world, node } = await start({ codecs: () => undefined })
  await until(() => (node.peers[0]?.received.length ?? 0) > 0)
  world.advance(4_999)
  expect(events).toEqual([])
  world.advance(1)
  expect(events).toEqual([expect.stringContaining('not ready within 5000 ms')])
})

test('requests have ids in order, from the one after the codec list; those in flight are left out after the last id', async () => {
  const { node, connection } = await open()
  const replies: string[] = []
  const ids = [ask(connection, replies), ask(connection, replies)]
  connection.nextId = 2 ** 32 - 1
  for (let n = 0; n < 4; n++) ids.push(ask(connection, replies))

  expect(ids).toEqual([2, 3, 4_294_967_295, 0, 1, 4])
  for (const id of ids) expect((await node.next()).id).toBe(id)
})

test('replies are matched by id, in any order; a reply to a cancelled request is dropped', async () => {
  const { node, connection, events } = await open()
  const replies: string[] = []
  const [, b] = ['a', 'b', 'c'].map((name) => ask(connection, replies, name))
  giveUp(connection, b as number)
  giveUp(connection, 77)
  const received = [await node.next(), await node.next(), await node.next()]
  for (const each of received.toReversed()) each.answer({ exists: true })
  await exchange(connection, node)

  expect(replies).toEqual([expect.stringMatching(/^c: \d+ bytes$/), expect.stringMatching(/^a: \d+ bytes$/)])
  expect([connection.onTheirWay.size, events]).toEqual([0, []])
})

test('requests without a reply are reported before the end of their connection', async () => {
  const { node, connection, events } = await open()
  ask(connection, events, 'a')
  ask(connection, events, 'b')
  const { peer } = await node.next()
  peer.socket.destroy()
  await until(() => events.length === 3)

  expect(events).toEqual(['a: connection_lost', 'b: connection_lost', expect.stringMatching(/^connection_lost: /)])
  expect(connection.onTheirWay.size).toBe(0)
})

test('silence counts from the last byte or the oldest request, whichever is later', async () => {
  const { node, connection, events, world } = await open()
  checkHealth(connection)
  world.advance(60_000)
  checkHealth(connection)
  expect(events).toEqual([])

  ask(connection, events, 'a')
  world.advance(1_000)
  await node.next()
  await exchange(connection, node)
  world.advance(1_499)
  checkHealth(connection)
  expect(events).toEqual([])
  world.advance(1)
  checkHealth(connection)

  expect(events).toEqual(['a: connection_lost', expect.stringContaining('no reply to any request for 1500 ms')])
})

test('a request without a reply for 30 s ends the connection, although others have theirs', async () => {
  const { node, connection, events, world } = await open()
  giveUp(connection, ask(connection, events, 'a'))
  await node.next()
  for (let second = 0; second < 29; second++) {
    world.advance(1_000)
    await exchange(connection, node)
  }
  world.advance(999)
  checkHealth(connection)
  expect(events).toEqual([])
  world.advance(1)
  checkHealth(connection)
  expect(events).toEqual([expect.stringContaining('no reply to a request for 30000 ms')])
})

test('a router is sent a keepalive every 15 s, until the end', async () => {
  const { node, connection, world } = await open({}, { isRouter: true })
  const [peer] = node.peers
  for (let n = 0; n < 2; n++) {
    const before = peer?.received.length ?? 0
    expect(world.waits()).toEqual([15_000])
    world.advance(15_000)
    await until(() => (peer?.received.length ?? 0) > before)
  }
  await hangUp(connection)
  expect(world.waits()).toEqual([])
})

test('a connection that is hung up reports its end, and is closed once', async () => {
  const { node, connection, events } = await open()
  ask(connection, events, 'a')
  await node.next()
  const ended = new Promise((resolve) => node.peers[0]?.socket.once('end', resolve))

  await hangUp(connection)
  await hangUp(connection)
  await ended

  expect(events).toEqual(['a: client_closed', expect.stringMatching(/^client_closed: /)])
})

test.each([
  ['host', 'host:1'],
  ['127.0.0.1', '127.0.0.1:1'],
  ['::1', '[::1]:1'],
])('the address of %s is %s', (host, text) => {
  expect(textOfAddress({ host, port: 1 })).toBe(text)
})
