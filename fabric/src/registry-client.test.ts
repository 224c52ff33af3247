import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { systemClock } from '@vacancy/shared'
import { versionsBody, zoneRoutersBody } from '@vacancy/shared/contract'
import { expect, onTestFinished, test } from 'vitest'
import { openRegistryClient, type RegistryClientOptions } from './registry-client.ts'
import { AUTHORITY, SERVER } from './testing/certificates.ts'
import { startExistingRegistry } from './testing/existing/registry.ts'
import { keepingLog, stub } from './testing/http.ts'
import { runningRegistry } from './testing/registries.ts'

function open(addr: string, more: Partial<RegistryClientOptions> = {}) {
  const log = keepingLog()
  const client = openRegistryClient({ addr, clock: systemClock, log, ...more })
  onTestFinished(client.close)
  return { client, log }
}

const answering = async (status: number, body: string) => {
  const server = await stub((_, response) => {
    response.writeHead(status)
    response.end(body)
  })
  onTestFinished(server.stop)
  return server
}

test('a list is read with its ETag, and not again while it is the same', async () => {
  const registry = await runningRegistry()
  await registry.register('router', 'r1', 'z1')
  const { client } = open(registry.addr)

  const first = await client.get('/zones/z1/routers', zoneRoutersBody)

  expect(first).toMatchObject({ kind: 'ok', body: { routers: ['r1'] } })
  const { etag } = first as { readonly etag: string }
  expect(await client.get('/zones/z1/routers', zoneRoutersBody, { etag })).toEqual({ kind: 'unchanged' })
  await registry.register('router', 'r2', 'z1')
  expect(await client.get('/zones/z1/routers', zoneRoutersBody, { etag })).toMatchObject({ kind: 'ok' })
})

test('a long poll returns as soon as the registry has another version', async () => {
  const registry = await runningRegistry()
  const { client } = open(registry.addr)
  const now = await client.get('/versions', versionsBody)
  if (now.kind !== 'ok') throw new Error(now.kind)
  const { epoch, global_version: since } = now.body

  const poll = client.get(`/versions?epoch=${epoch}&since=${since}&wait_secs=60`, versionsBody, { timeoutMs: 60_000 })
  await registry.register('router', 'r1', 'z1')

  expect(await poll).toMatchObject({ kind: 'ok', body: { versions: { 'zones/z1/routers': expect.any(Number) } } })
})

test('a stale response counts only when no other registry has a better one', async () => {
  const body = (version: number) => JSON.stringify({ version, routers: [`r${version}`] })
  const stale = await stub((_, response) => response.setHeader('X-Registry-Stale', '7').end(body(1)))
  const current = await stub((_, response) => response.end(body(2)))
  onTestFinished(stale.stop)
  onTestFinished(current.stop)
  const { client } = open(`${stale.addr},${current.addr}`)
  const read = () => client.get('/zones/z1/routers', zoneRoutersBody)

  expect(await read()).toMatchObject({ kind: 'ok', body: { routers: ['r2'] } })
  expect(await read()).toMatchObject({ kind: 'ok', body: { routers: ['r2'] } })
  expect(stale.requests).toHaveLength(1)
  await current.stop()
  expect(await read()).toMatchObject({ kind: 'ok', body: { routers: ['r1'] } })
  expect(client.health()).toMatchObject({ isUp: true })
})

test('a cancelled request is no failure of the registry', async () => {
  const silent = await stub(() => {})
  onTestFinished(silent.stop)
  const { client } = open(silent.addr)
  const cancel = new AbortController()
  const pending = client.get('/versions', versionsBody, { signal: cancel.signal })

  cancel.abort()

  expect(await pending).toEqual({ kind: 'failed', reason: 'cancelled' })
  expect(client.health()).toMatchObject({ isUp: true, fault: '' })
})

test('the codec list is read in its order, whatever its hash', async () => {
  const existing = await startExistingRegistry()
  onTestFinished(existing.close)
  const ours = await runningRegistry()

  expect(await open(existing.addr).client.codecs()).toMatchObject({
    kind: 'ok',
    body: { names: ['breakfast', 'Free_WiFi'], hash: 11_142_104_031_873_161_849n },
  })
  expect(await open(ours.addr).client.codecs()).toMatchObject({ kind: 'ok', body: { text: 'breakfast,wifi' } })
})

test.each([
  ['an invalid list', '{"rate_features":["a","A"]}', 'repeats'],
  ['numbers', '{"rate_features":[1]}', 'must be text'],
  ['no list', '{}', 'rate_features'],
  ['no JSON', '<html>', 'unusable response'],
])('codecs that are %s are a failure', async (_, body, reason) => {
  const { client } = open((await answering(200, body)).addr)

  const reply = await client.codecs()

  expect(reply.kind).toBe('failed')
  expect(reply).toMatchObject({ reason: expect.stringContaining(reason) })
})

test('a body of another form names the field', async () => {
  const { client } = open((await answering(200, '{"global_version":-1,"versions":{}}')).addr)

  const reply = await client.get('/versions', versionsBody)

  expect(reply).toMatchObject({ kind: 'failed', reason: expect.stringContaining('global_version') })
})

test('a refusal is returned with its reason, and the next registry is not tried', async () => {
  const refusing = await answering(401, '{"error":"no token"}')
  const other = await answering(200, '')
  const { client } = open(`${refusing.addr},${other.addr}`)

  expect(await client.post('/register', {})).toMatchObject({
    kind: 'refused',
    status: 401,
    reason: expect.stringContaining('no token (401): set --registry-token-file'),
  })
  expect(other.requests).toEqual([])
})

test('on an error, a timeout and 5xx the next registry is tried, and stays the one in use', async () => {
  const failing = await answering(500, '')
  const silent = await stub(() => {})
  onTestFinished(silent.stop)
  const good = await answering(200, '{"global_version":1,"versions":{}}')
  const { client, log } = open(`127.0.0.1:1, ${failing.addr}, http://${silent.addr}, ${good.addr}`)

  expect(await client.get('/versions', versionsBody, { timeoutMs: 100 })).toMatchObject({ kind: 'ok' })
  await client.get('/versions', versionsBody)

  expect([failing.requests.length, silent.requests.length, good.requests.length]).toEqual([1, 1, 2])
  expect(client.health()).toMatchObject({ address: `http://${good.addr}`, isUp: true })
  expect(log.lines.map(({ text }) => text)).toEqual(Array(3).fill('trying the next registry'))
})

test('when all fail it is logged once, and again when one responds', async () => {
  let status = 503
  const server = await stub((_, response) => {
    response.writeHead(status)
    response.end('{"global_version":1,"versions":{}}')
  })
  onTestFinished(server.stop)
  const { client, log } = open(`127.0.0.1:1,${server.addr}`)

  for (let i = 0; i < 3; i++) expect((await client.get('/versions', versionsBody)).kind).toBe('failed')
  expect(client.health()).toMatchObject({ isUp: false, fault: expect.stringContaining('503'), ageMs: undefined })
  status = 200
  expect((await client.get('/versions', versionsBody)).kind).toBe('ok')

  expect(log.lines.filter(({ text }) => text.startsWith('registry unreachable'))).toHaveLength(1)
  expect(log.lines.filter(({ text }) => text === 'registry responds again')).toHaveLength(1)
  expect(client.health()).toMatchObject({ isUp: true, fault: '', ageMs: expect.any(Number) })
})

test('https uses the authority of its file', async () => {
  const server = createServer({ cert: SERVER.cert, key: SERVER.key }, (_, response) => {
    response.end('{"global_version":1,"versions":{}}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-registry-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const caFile = path.join(folder, 'ca.pem')
  writeFileSync(caFile, AUTHORITY)
  const addr = `https://127.0.0.1:${(server.address() as AddressInfo).port}`

  expect((await open(addr, { caFile }).client.get('/versions', versionsBody)).kind).toBe('ok')
  expect((await open(addr).client.get('/versions', versionsBody)).kind).toBe('failed')
})

test('an address that is none is refused', () => {
  expect(() => open('a:1,http://b/c')).toThrow('--registry-addr')
})
