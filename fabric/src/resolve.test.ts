import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { systemClock, turnableClock } from '@vacancy/shared'
import { RESOLVER_LIMITS } from '@vacancy/shared/node'
import { systemSchedule } from '@vacancy/shared/schedule'
import { eventually } from '@vacancy/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import { openResolver, type ResolverOptions, resolverPath } from './resolve.ts'
import { parseMap, startResolver } from './resolver.ts'
import { existingResolver } from './testing/existing.ts'
import { keepingLog, stub } from './testing/http.ts'

function open(addr: string, more: Partial<ResolverOptions> = {}) {
  const clock = turnableClock(0)
  const log = keepingLog()
  const resolver = openResolver({ addr, clock, schedule: systemSchedule, log, ...more })
  onTestFinished(resolver.stop)
  return { resolver, clock, log }
}

const ROUTER = { kind: 'router', id: 'r1' } as const

test('each kind of id has its own path, with encoded ids', () => {
  expect(resolverPath({ kind: 'router', id: 'r 1' })).toBe('/routers/r%201')
  expect(resolverPath({ kind: 'bridge', id: 'b/1' })).toBe('/bridges/b%2F1')
  expect(resolverPath({ kind: 'node', shard: 's#', id: 'n?' })).toBe('/shards/s%23/nodes/n%3F')
})

test('an existing resolver answers bare text', async () => {
  const hosts = new Map([
    ['/routers/r1', '10.0.0.1'],
    ['/bridges/b1', 'bridge-1.internal'],
    ['/shards/s1/nodes/n1', '10.0.0.3:7000'],
  ])
  const server = await existingResolver(hosts)
  onTestFinished(server.stop)
  const { resolver } = open(server.addr)

  expect(await resolver.find(ROUTER)).toMatchObject({ kind: 'found', address: { host: '10.0.0.1' } })
  expect(await resolver.find({ kind: 'bridge', id: 'b1' })).toMatchObject({ address: { host: 'bridge-1.internal' } })
  expect(await resolver.find({ kind: 'node', shard: 's1', id: 'n1' })).toMatchObject({
    address: { host: '10.0.0.3', port: 7000 },
  })
  expect(await resolver.find({ kind: 'router', id: 'r2' })).toMatchObject({ kind: 'unknown' })
  expect(resolver.known(ROUTER)).toEqual({ host: '10.0.0.1' })
  expect(resolver.counters()).toEqual({ requests: 4, failed: 0, unknown: 1, stale: 0 })
})

test.each(['text', 'json'] as const)('our resolver answers as %s', async (format) => {
  const server = await startResolver({
    host: '127.0.0.1',
    port: 0,
    file: undefined,
    map: parseMap(['r1=10.0.0.1:9001']),
    echoes: false,
    format,
    version: '0',
    config: {},
    clock: systemClock,
    log: keepingLog(),
    drainMs: 0,
  })
  onTestFinished(server.stop)
  const { resolver } = open(`http://127.0.0.1:${server.port}/`)

  expect(await resolver.find(ROUTER)).toMatchObject({ kind: 'found', address: { host: '10.0.0.1', port: 9001 } })
})

test('an unknown id is looked up once, and not again for two seconds', async () => {
  const server = await existingResolver(new Map())
  onTestFinished(server.stop)
  const { resolver, clock } = open(server.addr)

  await resolver.find(ROUTER)
  clock.advance(RESOLVER_LIMITS.unknownMs - 1)
  expect(await resolver.find(ROUTER)).toMatchObject({ kind: 'unknown' })
  expect(server.requests).toHaveLength(1)

  clock.advance(1)
  await resolver.find(ROUTER)
  expect(server.requests).toHaveLength(2)
})

test('calls for one id at the same time are one request', async () => {
  const server = await existingResolver(new Map([['/routers/r1', '10.0.0.1']]))
  onTestFinished(server.stop)
  const { resolver } = open(server.addr)

  const results = await Promise.all([resolver.find(ROUTER), resolver.again(ROUTER), resolver.find(ROUTER)])

  expect(results.map(({ kind }) => kind)).toEqual(['found', 'found', 'found'])
  expect(server.requests).toEqual(['GET /routers/r1'])
})

test('after a failed connect an id is looked up again, at most once a second, and a changed answer is reported', async () => {
  const hosts = new Map([['/routers/r1', '10.0.0.1']])
  const server = await existingResolver(hosts)
  onTestFinished(server.stop)
  const { resolver, clock } = open(server.addr)
  const changes: unknown[] = []
  resolver.onChange((target, address) => changes.push([target.id, address.host]))
  await resolver.find(ROUTER)
  hosts.set('/routers/r1', '10.0.0.2')

  expect(await resolver.again(ROUTER)).toMatchObject({ address: { host: '10.0.0.1' } })
  expect(server.requests).toHaveLength(1)
  clock.advance(RESOLVER_LIMITS.againMs)
  expect(await resolver.again(ROUTER)).toMatchObject({ address: { host: '10.0.0.2' } })

  expect(server.requests).toHaveLength(2)
  expect(changes).toEqual([['r1', '10.0.0.2']])
})

test('an answer is used for half a minute, then renewed in the background', async () => {
  const hosts = new Map([['/routers/r1', '10.0.0.1']])
  const server = await existingResolver(hosts)
  onTestFinished(server.stop)
  const { resolver, clock } = open(server.addr)
  await resolver.find(ROUTER)
  hosts.set('/routers/r1', '10.0.0.2')
  clock.advance(RESOLVER_LIMITS.freshMs)

  expect(await resolver.find(ROUTER)).toMatchObject({ address: { host: '10.0.0.1' } })

  await eventually(() => expect(resolver.known(ROUTER)).toEqual({ host: '10.0.0.2' }))
})

test('while the resolver fails, the last good answer counts for ten minutes', async () => {
  let isDown = false
  const server = await stub((_, response) => {
    response.writeHead(isDown ? 500 : 200)
    response.end('10.0.0.1')
  })
  onTestFinished(server.stop)
  const { resolver, clock } = open(server.addr)
  await resolver.find(ROUTER)
  isDown = true
  clock.advance(RESOLVER_LIMITS.staleMsMax - 1)

  expect(await resolver.again(ROUTER)).toMatchObject({ kind: 'found' })
  expect(server.requests).toHaveLength(4)
  clock.advance(RESOLVER_LIMITS.againMs)
  expect(await resolver.again(ROUTER)).toEqual({ kind: 'failed', reason: 'status 500' })
  expect(resolver.counters()).toEqual({ requests: 7, failed: 2, unknown: 0, stale: 1 })
})

test.each([
  ['empty', ''],
  ['two words', 'a b'],
  ['longer than 4 KiB', 'a'.repeat(5_000)],
  ['longer than 64 KiB', 'a'.repeat(100_000)],
  ['an object without a host', '{"port":1}'],
])('an answer that is %s is a failure', async (_, body) => {
  const server = await stub((_request, response) => response.end(body))
  onTestFinished(server.stop)
  const { resolver } = open(server.addr)

  expect(await resolver.find(ROUTER)).toMatchObject({ kind: 'failed' })
  expect(server.requests).toHaveLength(3)
})

test('a long page for an unknown id is still a 404', async () => {
  const server = await stub((_request, response) => {
    response.writeHead(404)
    response.end('x'.repeat(20_000))
  })
  onTestFinished(server.stop)
  const { resolver } = open(server.addr)

  expect(await resolver.find(ROUTER)).toMatchObject({ kind: 'unknown' })
})

test('a resolver that does not respond times out, and stopping ends a lookup', async () => {
  const server = await stub(() => {})
  onTestFinished(server.stop)
  const hurried = {
    schedule: { after: (ms: number, run: () => void) => systemSchedule.after(Math.min(ms, 20), run) },
  }
  const { resolver } = open(server.addr, hurried)
  expect(await resolver.find(ROUTER)).toEqual({ kind: 'failed', reason: 'no response in time' })

  const { resolver: stopped } = open(server.addr)
  const pending = stopped.find(ROUTER)
  stopped.stop()

  expect(await pending).toMatchObject({ kind: 'failed' })
})

test('the token of the file is sent', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-resolve-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const tokenFile = path.join(folder, 'token')
  writeFileSync(tokenFile, 'secret\n')
  let seen: string | undefined
  const server = await stub((request, response) => {
    seen = request.headers.authorization
    response.end('h')
  })
  onTestFinished(server.stop)
  const { resolver } = open(server.addr, { tokenFile })

  await resolver.find(ROUTER)

  expect(seen).toBe('Bearer secret')
})
