import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { turnableClock } from '@vacancy/shared'
import { parseResolverUrl, RESOLVER_LIMITS } from '@vacancy/shared/node'
import { afterEach, expect, test } from 'vitest'
import { createEnv } from '../env.ts'
import {
  addressOf,
  closeDiscovery,
  createDiscovery,
  DIALLED_MAX,
  findNode,
  NODES_MAX,
  nodeAddress,
  nodesToDial,
} from './discovery.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** A resolver whose response a test sets, and a discovery that uses it. */
async function open(token?: string) {
  const requests: string[] = []
  const logged: object[] = []
  const resolver = {
    answer: ((_, response) => response.end('10.0.0.1')) as Answer,
    requests,
    logged,
    clock: turnableClock(0),
  }
  const server = createServer((request, response) => {
    requests.push(`${request.url ?? ''}${request.headers.authorization === undefined ? '' : ' with token'}`)
    resolver.answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const silent = (): void => {}
  const log = { debug: silent, info: silent, warn: (fields: object) => void logged.push(fields), error: silent }
  const discovery = createDiscovery({
    env: { ...createEnv(log), clock: resolver.clock },
    url: `http://127.0.0.1:${port}`,
    shardId: 's/1',
    ports: { quic: 17777, api: 8080 },
    token: () => token,
  })
  cleanups.push(async () => {
    closeDiscovery(discovery)
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { ...resolver, resolver, discovery, server }
}

const reply =
  (body: string, headers: { [name: string]: string } = {}, status = 200): Answer =>
  (_, response) => {
    response.writeHead(status, headers)
    response.end(body)
  }

test('the resolver is queried by shard and node, and its host is combined with our own ports', async () => {
  const { discovery, requests } = await open()

  expect(await findNode(discovery, 'n1')).toEqual({ host: '10.0.0.1', quicPort: 17777, apiPort: 8080 })
  expect(requests).toEqual(['/shards/s%2F1/nodes/n1'])
  expect(nodeAddress(discovery, 'n1')?.host).toBe('10.0.0.1')
  expect(nodeAddress(discovery, 'n2')).toBe(undefined)
})

test('ports in the response win; the client port differs from the peer port', async () => {
  const { discovery, resolver } = await open()
  resolver.answer = reply('{"hostname":"::1","port":1,"api_port":2,"quic_port":3}', {
    'content-type': 'application/json',
  })

  expect(await findNode(discovery, 'n1')).toEqual({ host: '::1', quicPort: 3, apiPort: 2 })
  expect(await addressOf(discovery, 'n1', false)).toEqual({ host: '::1', port: 3 })

  resolver.answer = reply('10.0.0.9:7777')
  expect(await addressOf(discovery, 'n2', false)).toEqual({ host: '10.0.0.9', port: 17777 })
})

test('an address is used for half a minute, then renewed in the background', async () => {
  const { discovery, resolver, requests, clock } = await open()
  await findNode(discovery, 'n1')
  resolver.answer = reply('10.0.0.2')

  clock.advance(29_999)
  expect((await findNode(discovery, 'n1')).host).toBe('10.0.0.1')
  expect(requests).toHaveLength(1)
  clock.advance(1)
  expect((await findNode(discovery, 'n1')).host).toBe('10.0.0.1')

  // Waits for the lookup that is already running.
  expect((await findNode(discovery, 'n1', true)).host).toBe('10.0.0.2')
  expect(requests).toHaveLength(2)
})

test.each([
  ['max-age=5', 5_000],
  ['public, max-age=120', 120_000],
  ['max-age=0', RESOLVER_LIMITS.freshMsMin],
  ['max-age=999999', RESOLVER_LIMITS.freshMsMax],
  ['s-maxage=7', RESOLVER_LIMITS.freshMs],
  ['max-age=x', RESOLVER_LIMITS.freshMs],
])('Cache-Control: %s keeps an address for %d ms', async (header, freshMs) => {
  const { discovery, resolver, requests, clock } = await open()
  resolver.answer = reply('10.0.0.1', { 'cache-control': header })
  await findNode(discovery, 'n1')

  clock.advance(freshMs - 1)
  await findNode(discovery, 'n1')
  expect(requests).toHaveLength(1)
  expect(discovery.cache.entries.get('/shards/s%2F1/nodes/n1')?.freshUntilMs).toBe(freshMs)
})

test('a failed connection causes a new lookup, at most once a second', async () => {
  const { discovery, resolver, requests, clock } = await open()
  await findNode(discovery, 'n1')
  resolver.answer = reply('10.0.0.2')

  clock.advance(999)
  expect((await findNode(discovery, 'n1', true)).host).toBe('10.0.0.1')
  clock.advance(1)
  expect((await findNode(discovery, 'n1', true)).host).toBe('10.0.0.2')

  expect(requests).toHaveLength(2)
})

test('lookups of one node at the same time are one call', async () => {
  const { discovery, requests } = await open()

  await Promise.all([1, 2, 3].map(() => findNode(discovery, 'n1')))

  expect(requests).toHaveLength(1)
})

test('a failed lookup is tried three times, then the last good address is used for ten minutes', async () => {
  const { discovery, resolver, requests, clock, logged } = await open()
  await findNode(discovery, 'n1')
  resolver.answer = reply('', {}, 500)

  clock.advance(RESOLVER_LIMITS.staleMsMax - 1)
  expect((await findNode(discovery, 'n1', true)).host).toBe('10.0.0.1')
  expect(requests).toHaveLength(4)
  expect(discovery.cache.counters).toEqual({ requests: 4, failed: 1, unknown: 0, stale: 1 })

  clock.advance(1_000)
  await expect(findNode(discovery, 'n1', true)).rejects.toThrow('node n1 is not known: status 500')
  expect(requests).toHaveLength(7)
  // It is neither queried again at once nor logged again.
  await expect(findNode(discovery, 'n1')).rejects.toThrow('looked up a moment ago')
  expect(requests).toHaveLength(7)
  expect(logged).toEqual([{ node: 'n1', reason: 'status 500' }])
})

test('a second try that succeeds yields an address', async () => {
  const { discovery, resolver, requests } = await open()
  resolver.answer = (request, response) => reply('10.0.0.5', {}, requests.length < 2 ? 503 : 200)(request, response)

  expect((await findNode(discovery, 'n1')).host).toBe('10.0.0.5')
  expect(requests).toHaveLength(2)
})

test('an unknown node is looked up once, remembered for two seconds, and loses its old address', async () => {
  const { discovery, resolver, requests, clock } = await open()
  await findNode(discovery, 'n1')
  resolver.answer = reply('{"error":"unknown id"}', {}, 404)
  clock.advance(1_000)

  await expect(findNode(discovery, 'n1', true)).rejects.toThrow('does not know it')
  expect(requests).toHaveLength(2)
  expect(nodeAddress(discovery, 'n1')).toBe(undefined)
  clock.advance(1_999)
  await expect(findNode(discovery, 'n1')).rejects.toThrow('looked up a moment ago')
  expect(requests).toHaveLength(2)

  clock.advance(1)
  resolver.answer = reply('10.0.0.7')
  expect((await findNode(discovery, 'n1')).host).toBe('10.0.0.7')
})

test.each([
  ['is too long', reply('a'.repeat(5_000)), 'more than 4096 bytes'],
  ['never ends', ((_, response) => response.write('a'.repeat(5_000))) as Answer, 'more than 4096 bytes'],
  ['names no host', reply('two words'), 'names no host'],
  ['is empty', reply(''), 'names no host'],
  ['redirects', reply('', { location: 'http://127.0.0.1:1/' }, 302), 'status 302'],
  ['breaks off', ((_, response) => response.destroy()) as Answer, 'socket hang up'],
])('a response that %s is a failure', async (_, answer, reason) => {
  const { discovery, resolver } = await open()
  resolver.answer = answer

  await expect(findNode(discovery, 'n1')).rejects.toThrow(reason)
})

test('a resolver that does not respond times out', async () => {
  const { discovery, resolver } = await open()
  resolver.answer = () => {}
  // Two seconds pass at once.
  const hurried = createDiscovery({
    ...discovery,
    env: { ...discovery.env, schedule: { after: (ms, run) => createEnvSchedule(Math.min(ms, 20), run) } },
  })

  await expect(findNode(hurried, 'n1')).rejects.toThrow('no response in time')
})

function createEnvSchedule(ms: number, run: () => void): () => void {
  const handle = setTimeout(run, ms)
  return () => clearTimeout(handle)
}

test('a running lookup ends with the node', async () => {
  const { discovery, resolver } = await open()
  let isRequested = (): void => {}
  const arrived = new Promise<void>((resolve) => {
    isRequested = resolve
  })
  resolver.answer = () => isRequested()
  const lookUp = findNode(discovery, 'n1')
  const ended = expect(lookUp).rejects.toThrow('not known')
  await arrived

  closeDiscovery(discovery)

  await ended
})

test('the token is sent with the request', async () => {
  const { discovery, requests } = await open('secret')

  await findNode(discovery, 'n1')

  expect(requests).toEqual(['/shards/s%2F1/nodes/n1 with token'])
})

test('beyond the limit of remembered nodes the oldest is dropped', async () => {
  const { discovery } = await open()
  for (let i = 0; i <= NODES_MAX; i++) await findNode(discovery, `n${i}`)

  expect(discovery.cache.entries.size).toBe(NODES_MAX)
  expect(nodeAddress(discovery, 'n0')).toBe(undefined)
})

test.each([
  ['http://resolver:9090', 'http://resolver:9090'],
  ['resolver:9090', 'http://resolver:9090'],
  ['https://resolver/base/', 'https://resolver/base'],
  ['http://[::1]:9090/', 'http://[::1]:9090'],
])('%s is the resolver %s', (text, base) => {
  expect(parseResolverUrl(text)).toBe(base)
})

test.each(['', 'http://', 'ftp://resolver', 'http://resolver/?a=1', 'http://user@resolver', 'two words'])(
  '%j is not a resolver',
  (text) => {
    expect(() => parseResolverUrl(text)).toThrow('--resolver-addr')
  },
)

const DIAL = { members: ['a', 'b', 'me'], isSettled: false, seeds: ['s', 'a', 'me'], learned: ['x', 's', 'not an id'] }

test('members come before seeds, seeds before nodes learned from peers; without duplicates and without this node', () => {
  expect(nodesToDial('me', DIAL)).toEqual(['a', 'b', 's', 'x'])
})

test('a member that knows a leader dials only members', () => {
  expect(nodesToDial('me', { ...DIAL, isSettled: true })).toEqual(['a', 'b'])
})

test('nodes learned from peers are bounded and never displace members', () => {
  const learned = Array.from({ length: 1_000 }, (_, i) => `x${i}`)

  const nodes = nodesToDial('me', { ...DIAL, learned })

  expect(nodes).toHaveLength(DIALLED_MAX)
  expect(nodes.slice(0, 3)).toEqual(['a', 'b', 's'])
})
