import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { turnableClock } from '@vacancy/shared'
import { afterEach, expect, test } from 'vitest'
import { createEnv } from '../env.ts'
import {
  addressOf,
  closeDiscovery,
  createDiscovery,
  DIALLED_MAX,
  DISCOVERY_LIMITS,
  findNode,
  knownAddress,
  nodesToDial,
  openTokenFile,
  parseResolverUrl,
} from './discovery.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** A resolver whose answer a test sets, and a node that asks it. */
async function open(token?: string) {
  const asked: string[] = []
  const logged: object[] = []
  const resolver = {
    answer: ((_, response) => response.end('10.0.0.1')) as Answer,
    asked,
    logged,
    clock: turnableClock(0),
  }
  const server = createServer((request, response) => {
    asked.push(`${request.url ?? ''}${request.headers.authorization === undefined ? '' : ' with token'}`)
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
    fetch,
    token: () => token,
  })
  cleanups.push(async () => {
    closeDiscovery(discovery)
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { ...resolver, resolver, discovery, server }
}

const say =
  (body: string, headers: { [name: string]: string } = {}, status = 200): Answer =>
  (_, response) => {
    response.writeHead(status, headers)
    response.end(body)
  }

test('the resolver is asked by shard and node, and its host goes with our own ports', async () => {
  const { discovery, asked } = await open()

  expect(await findNode(discovery, 'n1')).toEqual({ host: '10.0.0.1', quicPort: 17777, apiPort: 8080 })
  expect(asked).toEqual(['/shards/s%2F1/nodes/n1'])
  expect(knownAddress(discovery, 'n1')?.host).toBe('10.0.0.1')
  expect(knownAddress(discovery, 'n2')).toBe(undefined)
})

test('ports in the answer win; that of clients is not that of peers', async () => {
  const { discovery, resolver } = await open()
  resolver.answer = say('{"hostname":"::1","port":1,"api_port":2,"quic_port":3}', {
    'content-type': 'application/json',
  })

  expect(await findNode(discovery, 'n1')).toEqual({ host: '::1', quicPort: 3, apiPort: 2 })
  expect(await addressOf(discovery, 'n1', false)).toEqual({ host: '::1', port: 3 })

  resolver.answer = say('10.0.0.9:7777')
  expect(await addressOf(discovery, 'n2', false)).toEqual({ host: '10.0.0.9', port: 17777 })
})

test('an answer is used for half a minute, then renewed behind the back of whoever asks', async () => {
  const { discovery, resolver, asked, clock } = await open()
  await findNode(discovery, 'n1')
  resolver.answer = say('10.0.0.2')

  clock.advance(29_999)
  expect((await findNode(discovery, 'n1')).host).toBe('10.0.0.1')
  expect(asked).toHaveLength(1)
  clock.advance(1)
  expect((await findNode(discovery, 'n1')).host).toBe('10.0.0.1')

  // The look-up that is under way is the one that is waited for here.
  expect((await findNode(discovery, 'n1', true)).host).toBe('10.0.0.2')
  expect(asked).toHaveLength(2)
})

test.each([
  ['max-age=5', 5_000],
  ['public, max-age=120', 120_000],
  ['max-age=0', DISCOVERY_LIMITS.freshMsMin],
  ['max-age=999999', DISCOVERY_LIMITS.freshMsMax],
  ['s-maxage=7', DISCOVERY_LIMITS.freshMs],
  ['max-age=x', DISCOVERY_LIMITS.freshMs],
])('Cache-Control: %s keeps an answer for %d ms', async (header, freshMs) => {
  const { discovery, resolver, asked, clock } = await open()
  resolver.answer = say('10.0.0.1', { 'cache-control': header })
  await findNode(discovery, 'n1')

  clock.advance(freshMs - 1)
  await findNode(discovery, 'n1')
  expect(asked).toHaveLength(1)
  expect(discovery.entries.get('n1')?.freshUntilMs).toBe(freshMs)
})

test('who could not connect asks anew, at most once a second', async () => {
  const { discovery, resolver, asked, clock } = await open()
  await findNode(discovery, 'n1')
  resolver.answer = say('10.0.0.2')

  clock.advance(999)
  expect((await findNode(discovery, 'n1', true)).host).toBe('10.0.0.1')
  clock.advance(1)
  expect((await findNode(discovery, 'n1', true)).host).toBe('10.0.0.2')

  expect(asked).toHaveLength(2)
})

test('look-ups of one node at the same time are one call', async () => {
  const { discovery, asked } = await open()

  await Promise.all([1, 2, 3].map(() => findNode(discovery, 'n1')))

  expect(asked).toHaveLength(1)
})

test('a failure is tried three times, then the last good answer counts for ten minutes', async () => {
  const { discovery, resolver, asked, clock, logged } = await open()
  await findNode(discovery, 'n1')
  resolver.answer = say('', {}, 500)

  clock.advance(DISCOVERY_LIMITS.staleMsMax - 1)
  expect((await findNode(discovery, 'n1', true)).host).toBe('10.0.0.1')
  expect(asked).toHaveLength(4)
  expect(discovery.counters).toEqual({ requests: 4, failed: 1, unknown: 0, stale: 1 })

  clock.advance(1_000)
  await expect(findNode(discovery, 'n1', true)).rejects.toThrow('node n1 is not known: status 500')
  expect(asked).toHaveLength(7)
  // And it is not asked again at once, nor is it said again.
  await expect(findNode(discovery, 'n1')).rejects.toThrow('asked a moment ago')
  expect(asked).toHaveLength(7)
  expect(logged).toEqual([{ node: 'n1', reason: 'status 500' }])
})

test('a second try that succeeds is an answer', async () => {
  const { discovery, resolver, asked } = await open()
  resolver.answer = (request, response) => say('10.0.0.5', {}, asked.length < 2 ? 503 : 200)(request, response)

  expect((await findNode(discovery, 'n1')).host).toBe('10.0.0.5')
  expect(asked).toHaveLength(2)
})

test('an unknown node is asked for once, remembered for two seconds, and not where it was', async () => {
  const { discovery, resolver, asked, clock } = await open()
  await findNode(discovery, 'n1')
  resolver.answer = say('{"error":"unknown id"}', {}, 404)
  clock.advance(1_000)

  await expect(findNode(discovery, 'n1', true)).rejects.toThrow('does not know it')
  expect(asked).toHaveLength(2)
  expect(knownAddress(discovery, 'n1')).toBe(undefined)
  clock.advance(1_999)
  await expect(findNode(discovery, 'n1')).rejects.toThrow('asked a moment ago')
  expect(asked).toHaveLength(2)

  clock.advance(1)
  resolver.answer = say('10.0.0.7')
  expect((await findNode(discovery, 'n1')).host).toBe('10.0.0.7')
})

test.each([
  ['is too long', say('a'.repeat(5_000)), 'more than 4096 bytes'],
  ['never ends', ((_, response) => response.write('a'.repeat(5_000))) as Answer, 'more than 4096 bytes'],
  ['names no host', say('two words'), 'names no host'],
  ['is empty', say(''), 'names no host'],
  ['leads elsewhere', say('', { location: 'http://127.0.0.1:1/' }, 302), 'status 302'],
  ['breaks off', ((_, response) => response.destroy()) as Answer, 'fetch failed'],
])('an answer that %s is a failure', async (_, answer, reason) => {
  const { discovery, resolver } = await open()
  resolver.answer = answer

  await expect(findNode(discovery, 'n1')).rejects.toThrow(reason)
})

test('a resolver that does not answer is given up in time', async () => {
  const { discovery, resolver } = await open()
  resolver.answer = () => {}
  // Two seconds pass at once.
  const hurried = createDiscovery({
    ...discovery,
    env: { ...discovery.env, schedule: { after: (ms, run) => createEnvSchedule(Math.min(ms, 20), run) } },
  })

  await expect(findNode(hurried, 'n1')).rejects.toThrow('no answer in time')
})

function createEnvSchedule(ms: number, run: () => void): () => void {
  const handle = setTimeout(run, ms)
  return () => clearTimeout(handle)
}

test('what is under way ends with the node', async () => {
  const { discovery, resolver } = await open()
  let isAsked = (): void => {}
  const arrived = new Promise<void>((resolve) => {
    isAsked = resolve
  })
  resolver.answer = () => isAsked()
  const asking = findNode(discovery, 'n1')
  const ended = expect(asking).rejects.toThrow('not known')
  await arrived

  closeDiscovery(discovery)

  await ended
})

test('a token goes along', async () => {
  const { discovery, asked } = await open('secret')

  await findNode(discovery, 'n1')

  expect(asked).toEqual(['/shards/s%2F1/nodes/n1 with token'])
})

test('a token is the first line of its file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-token-'))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'token')
  const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  writeFileSync(file, 'secret \nsecond line\n')

  const opened = openTokenFile(file, silent)
  cleanups.push(opened.close)

  expect(opened.token()).toBe('secret')
  writeFileSync(file, 'two words\n')
  expect(() => openTokenFile(file, silent)).toThrow('holds no token')
  expect(() => openTokenFile(join(folder, 'none'), silent)).toThrow('cannot be read')
})

test('more nodes than are remembered push the oldest out', async () => {
  const { discovery } = await open()
  for (let i = 0; i <= DISCOVERY_LIMITS.nodes; i++) await findNode(discovery, `n${i}`)

  expect(discovery.entries.size).toBe(DISCOVERY_LIMITS.nodes)
  expect(knownAddress(discovery, 'n0')).toBe(undefined)
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
  '%j is no resolver',
  (text) => {
    expect(() => parseResolverUrl(text)).toThrow('--resolver-addr')
  },
)

const DIAL = { members: ['a', 'b', 'me'], isSettled: false, seeds: ['s', 'a', 'me'], learned: ['x', 's', 'not an id'] }

test('members come before seeds, seeds before what peers told of; nobody twice, not ourselves', () => {
  expect(nodesToDial('me', DIAL)).toEqual(['a', 'b', 's', 'x'])
})

test('a member that knows a leader needs nobody but the members', () => {
  expect(nodesToDial('me', { ...DIAL, isSettled: true })).toEqual(['a', 'b'])
})

test('what peers tell of is bounded, and never at the cost of members', () => {
  const learned = Array.from({ length: 1_000 }, (_, i) => `x${i}`)

  const nodes = nodesToDial('me', { ...DIAL, learned })

  expect(nodes).toHaveLength(DIALLED_MAX)
  expect(nodes.slice(0, 3)).toEqual(['a', 'b', 's'])
})
