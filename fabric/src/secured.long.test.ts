/**
 * Tokens and certificates on every hop, with real processes: a client logs in at the edge over TLS; edge, zone router
 * and bridge show certificates to the next one, and so does the bridge to its node, where it logs in. Wrong ones are
 * refused with the reason at both ends.
 */

import { writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { type ClientOptions, connect, type VacancyClient } from '@vacancy/client'
import { launch, type Running, somewhere } from '@vacancy/testkit/node'
import { ADMIN_TOKEN, openShard, type Service, type Shard } from '@vacancy/testkit/shard'
import { happens, until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AUTHORITY, CALLER, SERVER, STRANGER } from './testing/certificates.ts'

const ZONE = 'zone-1'
const SHARD = 'shard-1'
const SEGMENT = 'alpine'
const TOKEN = 'a-token-of-a-client'
const EXPIRED = 'a-token-of-last-year'
const OPERATOR = 'a-token-of-an-operator'
const [TCP_PORT, API_PORT] = [9000, 9100]

let shard: Shard
let registry: Service
let resolver: Service
let client: VacancyClient
const started = new Map<string, Running>()

const file = (name: string) => join(shard.folder, name)
const LISTENER = () => ['--tls-cert', file('server.pem'), '--tls-key', file('server.key')]
const MUTUAL = () => [...LISTENER(), '--tls-client-ca', file('authority.pem')]
/** The certificates of these tests are for localhost, and every process has an address of its own. */
const UPSTREAM = () => [
  ...['--upstream-tls', '--upstream-ca', file('authority.pem'), '--upstream-server-name', 'localhost'],
  ...['--upstream-cert', file('caller.pem'), '--upstream-key', file('caller.key')],
]
const STRANGE = () => [
  ...['--upstream-tls', '--upstream-ca', file('authority.pem'), '--upstream-server-name', 'localhost'],
  ...['--upstream-cert', file('stranger.pem'), '--upstream-key', file('stranger.key')],
]

function start(command: 'bridge' | 'router', name: string, flags: readonly string[]): void {
  const host = shard.host(name)
  const port = command === 'bridge' ? '--listen-port' : '--tcp-port'
  const running = launch([
    ...[command, ...flags, '--registry-addr', registry.url, '--resolver-addr', resolver.url],
    ...['--listen-host', host, port, String(TCP_PORT), '--api-host', host, '--api-port', String(API_PORT)],
  ])
  started.set(name, running)
}

const bridgeFlags = (name: string) => ['--zone-id', ZONE, '--shard-id', SHARD, '--bridge-id', name]
const output = (name: string) => started.get(name)?.output() ?? ''

/** A page of a component's HTTP API, over TLS, with a client certificate where it asks for one. */
function page(name: string, path: string, token?: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` }
    const options = { host: shard.host(name), port: API_PORT, path, headers, agent: false, servername: 'localhost' }
    const outgoing = request({ ...options, ca: AUTHORITY, ...CALLER }, (answer) => {
      let text = ''
      answer.on('data', (chunk) => {
        text += chunk
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    outgoing.on('error', reject)
    outgoing.end()
  })
}

const reasons = async (name: string) =>
  (JSON.parse((await page(name, '/ready')).text) as { reasons: { name: string; message: string }[] }).reasons

const open = (options: Partial<ClientOptions>) =>
  connect({
    routers: [shard.host('edge')],
    tls: { ca: AUTHORITY, servername: 'localhost' },
    ...options,
  })

beforeAll(async () => {
  const components = ['bridge-1', 'bridge-2', 'zone-router', 'edge', 'edge-2', 'edge-3']
  shard = await openShard({
    nodes: ['node-1', ...components],
    voters: ['node-1'],
    shardId: SHARD,
    zoneId: ZONE,
    config: { tcp_require_login: true },
  })
  const files = { authority: AUTHORITY, server: SERVER.cert, caller: CALLER.cert, stranger: STRANGER.cert }
  for (const [name, text] of Object.entries(files)) writeFileSync(file(`${name}.pem`), text)
  for (const [name, { key }] of Object.entries({ server: SERVER, caller: CALLER, stranger: STRANGER }))
    writeFileSync(file(`${name}.key`), key)
  writeFileSync(file('node.token'), `${ADMIN_TOKEN}\n`)
  writeFileSync(
    file('edge-tokens.yml'),
    `tokens:
  - { token: ${TOKEN}, role: client, name: site }
  - { token: ${EXPIRED}, role: client, name: old site, expires: 2025-12-31T00:00:00Z }
  - { token: ${OPERATOR}, role: admin, name: ops }
`,
  )
  registry = shard.startRegistry()
  resolver = shard.startResolver()
  shard.start('node-1', {
    flags: [
      ...['--tcp-cert-path', file('server.pem'), '--tcp-key-path', file('server.key')],
      ...['--tcp-client-ca-path', file('authority.pem')],
      ...['--api-cert-path', file('server.pem'), '--api-key-path', file('server.key')],
    ],
  })
  start('bridge', 'bridge-1', [
    ...bridgeFlags('bridge-1'),
    ...[...MUTUAL(), ...UPSTREAM(), '--node-token-file', file('node.token')],
  ])
  start('router', 'zone-router', [
    ...['--mode', 'zone', '--zone-id', ZONE, '--router-id', 'zone-router', ...MUTUAL(), ...UPSTREAM()],
  ])
  start('router', 'edge', [
    ...['--mode', 'edge', ...LISTENER(), ...UPSTREAM()],
    ...['--auth-file', file('edge-tokens.yml'), '--require-login'],
  ])
  await happens(
    'the path is complete',
    [...started.values()],
    async () => (await page('edge', '/ready')).status === 200,
  )
  client = await open({ token: TOKEN, connectDeadlineMs: 30_000 })
}, 240_000)

afterAll(async () => {
  await client?.close()
  await Promise.all(
    [...started.values()].map(({ child, ended }) => {
      child.kill('SIGKILL')
      return ended
    }),
  )
  await shard?.close()
})

test('a client that logged in writes and reads through four encrypted hops', async () => {
  await fetch(`${registry.url}/segments/${SEGMENT}`, { method: 'PUT', body: JSON.stringify({ shard: SHARD }) })
  const property = somewhere('hotel_1', SEGMENT) as Parameters<VacancyClient['setProperty']>[0]
  await happens('the segment is routed', [...started.values()], async () => {
    await client.setProperty(property)
    return true
  })
  expect(await client.propertyExists({ propertyId: 'hotel_1' }, { segment: SEGMENT })).toBe(true)
})

test('an unknown token, an expired one and none are refused, and the edge tells them apart in its log', async () => {
  await expect(open({ token: 'an-unknown-token' })).rejects.toMatchObject({ code: 'login_failed' })
  await expect(open({ token: EXPIRED })).rejects.toMatchObject({ code: 'login_failed' })
  await expect(open({})).rejects.toThrow('login required')

  expect(output('edge')).toMatch(/"login refused: unknown token"/)
  expect(output('edge')).toMatch(/"name":"old site","expired":"2025-12-31.*"login refused: the token expired"/)
  for (const secret of ['an-unknown-token', EXPIRED, TOKEN]) expect(output('edge')).not.toContain(secret)
  const metrics = (await page('edge', '/metrics')).text
  expect(metrics).toMatch(/^router_login_failures_total 2$/m)
  expect(metrics).toMatch(/^tls_cert_not_after_seconds\{listener="tcp"\} \d+$/m)
  expect(metrics).toMatch(/^tls_cert_not_after_seconds\{listener="upstream"\} \d+$/m)
})

test('a client without encryption, or with another authority, gets no connection', async () => {
  const short = { token: TOKEN, connectDeadlineMs: 500 }
  await expect(open({ ...short, tls: { ca: STRANGER.cert, servername: 'localhost' } })).rejects.toThrow(
    /verify|certificate|issuer/,
  )
  await expect(connect({ routers: [shard.host('edge')], ...short })).rejects.toThrow()
  await until('the edge logs it', () => output('edge').includes('TLS handshake with a client failed'))
})

test('GET /config is for operators, and shows each value with its source', async () => {
  expect((await page('edge', '/config')).status).toBe(401)
  expect((await page('edge', '/config', TOKEN)).status).toBe(403)
  const { status, text } = await page('edge', '/config', OPERATOR)

  expect(status).toBe(200)
  const config = JSON.parse(text)
  expect(config['tcp-port']).toEqual({ value: TCP_PORT, origin: 'flag', at: '--tcp-port' })
  expect(config['request-timeout-ms']).toEqual({ value: 1_800, origin: 'default', at: '' })
  expect(config['require-login'].value).toBe(true)
  expect(text).not.toContain(TOKEN)
})

test('an edge with a certificate of another authority is refused by the zone router, and both say why', async () => {
  start('router', 'edge-2', ['--mode', 'edge', ...LISTENER(), ...STRANGE()])
  await until('the edge names the reason', async () => {
    const found = (await reasons('edge-2')).find(({ name }) => name === 'hops')?.message ?? ''
    return found.includes('zone-router: AUTH_ERROR: the client certificate is refused (DEPTH_ZERO_SELF_SIGNED_CERT)')
  })
  expect(output('edge-2')).toMatch(
    /"hop":"zone-router".*"reason":"AUTH_ERROR: the client certificate.*"hop unreachable"/,
  )
  expect(output('zone-router')).toMatch(
    /"reason":"the client certificate is refused.*"TLS handshake with a client failed"/,
  )
})

test('an edge that does not trust the zone router sends it nothing', async () => {
  const distrusting = ['--upstream-tls', '--upstream-ca', file('stranger.pem'), '--upstream-server-name', 'localhost']
  start('router', 'edge-3', ['--mode', 'edge', ...LISTENER(), ...distrusting])
  await until('the edge names the reason', async () => {
    const found = (await reasons('edge-3')).find(({ name }) => name === 'hops')?.message ?? ''
    return /zone-router: .*(verify|issuer|self-signed)/.test(found)
  })
})

test('a bridge with a wrong certificate is never open towards its node, and requests use the other one', async () => {
  start('bridge', 'bridge-2', [...bridgeFlags('bridge-2'), ...MUTUAL(), ...STRANGE()])
  await until('the bridge names the reason', async () => {
    const found = (await reasons('bridge-2')).find(({ name }) => name === 'leader')?.message ?? ''
    return found.includes('Leader node-1 is not reachable: AUTH_ERROR: the client certificate is refused')
  })
  await until('the zone router uses both bridges', async () => {
    const { hops } = JSON.parse((await page('zone-router', `/routes?segment=${SEGMENT}`)).text)
    return (hops as { connections: number }[]).filter(({ connections }) => connections > 0).length === 2
  })

  for (let i = 0; i < 20; i++) {
    expect(await client.propertyExists({ propertyId: 'hotel_1' }, { segment: SEGMENT })).toBe(true)
    await client.setProperty(somewhere('hotel_1', SEGMENT) as Parameters<VacancyClient['setProperty']>[0])
  }
  expect(output('bridge-2')).not.toContain('"hop connected"')
})
