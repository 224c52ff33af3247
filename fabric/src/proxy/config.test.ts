import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { shardNodesBody } from '@vacancy/shared/contract'
import { type Given, openHttpCaller, parseCommand } from '@vacancy/shared/node'
import { systemSchedule } from '@vacancy/shared/schedule'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { keepingLog } from '../testing/http.ts'
import { proxyCommand } from './cli.ts'
import { joinBooleans, loadProxyConfig } from './config.ts'
import { type NodeListOptions, openNodeList, parseNodeList } from './node-list.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-proxy-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function load(args: readonly string[], file = '', env: { readonly [name: string]: string } = {}) {
  const name = path.join(folder, 'proxy.yml')
  writeFileSync(name, file)
  const parsed = parseCommand(proxyCommand, joinBooleans(args), env)
  return loadProxyConfig({ file: name, given: parsed.given as ReadonlyMap<string, Given> })
}

const SHARD = [
  ...['--mode', 'cluster', '--shard-id', 's1', '--registry-addr', 'r:1', '--resolver-addr', 'r:2'],
] as const
const SEEDS = ['--mode', 'cluster', '--seed-ids', 'node-1,node-2'] as const
const NODE = ['--mode', 'standalone', '--upstream-addr', 'n1'] as const

test('defaults, and the port of the upstream by the mode', () => {
  expect(load(NODE)).toMatchObject({
    mode: 'standalone',
    upstreamPort: 7777,
    httpEnabled: true,
    httpPort: 8777,
    httpsEnabled: false,
    httpsPort: 3443,
    timeoutSec: 2,
    connPerNode: 4,
    maxActiveConns: 10_000,
    tokensFile: undefined,
  })
  expect(load(['--mode', 'router', '--upstream-addr', 'edge']).upstreamPort).toBe(9000)
  expect(load([...NODE, '--upstream-port', '7000']).upstreamPort).toBe(7000)
})

test('without tokens the proxy listens on loopback alone, unless the operator says otherwise', () => {
  const refused = /^listening_addr 0\.0\.0\.0: everyone .* --allow-anonymous/
  const all = ['--listening-addr', '0.0.0.0']
  const onlyTls = ['--http-enabled', 'false', '--https-enabled', '--tls-client-ca', 'ca.pem']

  expect(load(NODE)).toMatchObject({ listeningAddr: '127.0.0.1' })
  expect(load(NODE).view['listening_addr']).toMatchObject({ value: '127.0.0.1', origin: 'default' })
  expect(() => load([...NODE, ...all])).toThrow(refused)
  expect(() => load([...NODE, ...all, '--https-enabled', '--tls-client-ca', 'ca.pem'])).toThrow(refused)
  for (const guard of [['--auth-enabled'], ['--allow-anonymous'], onlyTls]) {
    expect(load([...NODE, ...guard])).toMatchObject({ listeningAddr: '0.0.0.0' })
    expect(load([...NODE, ...all, ...guard])).toMatchObject({ listeningAddr: '0.0.0.0' })
  }
})

test('a shard is found by a registry, or by seeds', () => {
  expect(load(SHARD)).toMatchObject({ mode: 'cluster', shardId: 's1', zoneId: '', reads: 'followers', seedIds: [] })
  expect(load(SEEDS)).toMatchObject({ seedIds: ['node-1', 'node-2'], discoveryYmlPath: './discovery.yml' })
  expect(load([...SEEDS, '--discovery-kind', 'http', '--discovery-addr', 'https://x/nodes'])).toMatchObject({
    discoveryKind: 'http',
  })
})

test('a flag overrides its variable, which overrides the file', () => {
  const file = 'mode: standalone\nupstream_addr: n1\nhttp_port: 1\ntimeout_sec: 7\n'
  const env = { VACANCY_PROXY_HTTP_PORT: '2', VACANCY_PROXY_TIMEOUT_SEC: '8' }

  expect(load(['--http-port', '3'], file, env)).toMatchObject({ httpPort: 3, timeoutSec: 8, connPerNode: 4 })
})

test.each([
  [['--https-enabled'], true],
  [['--https-enabled', 'true'], true],
  [['--https-enabled=true'], true],
  [['--https-enabled', 'false'], false],
  [['--https-enabled=false'], false],
  [['--https-enabled', '--http-port', '1'], true],
])('%j: a boolean flag with and without its value', (flags, wanted) => {
  expect(load([...NODE, ...flags]).httpsEnabled).toBe(wanted)
})

test.each([
  ['', [], 'mode: is required, one of standalone, cluster, router'],
  ['', ['--mode', 'none', '--upstream-addr', 'x'], 'mode'],
  [
    '',
    [...SHARD, '--upstream-addr', 'x'],
    'upstream_addr: has no effect in mode cluster, which finds the nodes itself',
  ],
  ['', ['--mode', 'cluster', '--registry-addr', 'r:1'], 'shard_id: is required for cluster without seed_ids'],
  ['', SHARD.slice(0, 6), 'resolver_addr: is required for cluster without seed_ids'],
  ['', [...SHARD, '--seed-ids', 'node-1'], 'registry_addr: has no effect with seed_ids'],
  ['', [...SHARD, '--discovery-addr', 'http://x'], 'discovery_addr: needs seed_ids'],
  ['', [...SHARD, '--zone-id', 'a/b'], 'zone_id: must be'],
  ['', [...SEEDS, '--seed-ids', 'a/b'], 'seed_ids: a/b must be'],
  ['', [...SEEDS, '--discovery-kind', 'http', '--discovery-addr', 'x:1/nodes'], 'discovery_addr: must be a URL'],
  ['', [...SEEDS, '--discovery-addr', 'http://x/nodes'], 'discovery_addr: needs discovery_kind: http'],
  ['', [...NODE, '--shard-id', 's1'], 'shard_id: needs mode: cluster'],
  ['', [...NODE, '--seed-ids', 'node-1'], 'seed_ids: needs mode: cluster'],
  ['', [...NODE, '--cache-dir', 'cache'], 'cache_dir: needs mode: cluster'],
  ['', [...SEEDS, '--cache-dir', 'cache'], 'cache_dir: has no effect with seed_ids'],
  ['', ['--mode', 'router'], 'upstream_addr: is required'],
  ['', [...NODE.slice(0, 3), 'http://n1'], 'upstream_addr: must be a host name'],
  ['', [...NODE, '--http-enabled', 'false'], 'http_enabled, https_enabled: one of them must be true'],
  ['', [...NODE, '--https-enabled', '--https-port', '8777'], 'http_port, https_port: must differ'],
  ['', [...NODE, '--http-port', '70000'], 'http_port: 70000 is not a whole number from 0 to 65535'],
  ['', [...NODE, '--upstream-ca', 'x.pem'], 'upstream_ca: needs upstream_tls'],
  ['', [...NODE, '--upstream-tls', '--upstream-cert', 'x.pem'], 'upstream_cert, upstream_key: must be set together'],
  ['htpp_port: 1\n', NODE, 'htpp_port: is not a known key; did you mean http_port?'],
  ['http_enabled: "yes"\n', NODE, 'http_enabled: "yes" is not true or false'],
  ['discovery: static\n', NODE, 'discovery: is not a known key'],
])('%j with %j is refused: %s', (file, flags, message) => {
  expect(() => load(flags, file)).toThrow(message)
})

test('the auth file is read where tokens are required, and where it is named', () => {
  expect(load([...NODE, '--auth-enabled']).tokensFile).toBe('./auth.yml')
  expect(load([...NODE, '--tokens-path', 'a.yml']).tokensFile).toBe('a.yml')
})

describe('node list', () => {
  const closing: (() => unknown)[] = []

  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })

  function open(from: NodeListOptions['from']) {
    const log = keepingLog()
    const list = openNodeList({ seedIds: ['node-1'], from, refreshMs: 10, schedule: systemSchedule, log })
    closing.push(list.close)
    const find = (id: string) => list.resolver.find({ kind: 'node', shard: '', id })
    return { ...list, find }
  }

  test('a list in YAML or JSON, with the API port or without', () => {
    const yaml = 'nodes:\n  - node_id: node-1\n    addr: 10.0.0.1\n  - {node_id: node-2, addr: "::1", port: 81}\n'
    const json = '{"nodes":[{"node_id":"node-1","addr":"10.0.0.1"},{"node_id":"node-2","addr":"::1","port":81}]}'

    for (const text of [yaml, json]) {
      expect([...parseNodeList(text, 'x')]).toEqual([
        ['node-1', { host: '10.0.0.1' }],
        ['node-2', { host: '::1', apiPort: 81 }],
      ])
    }
  })

  test.each([
    ['', 'x: nodes:'],
    ['{', 'x:1:'],
    ['nodes: 5', 'x: nodes:'],
    ['nodes: [{node_id: a}]', 'x: nodes.0.addr:'],
    ['nodes: [{node_id: a, addr: "b/c"}]', 'x: nodes.0.addr:'],
    ['nodes: [{node_id: a, addr: b, port: 0}]', 'x: nodes.0.port:'],
    ['nodes: [{node_id: a, addr: b, port: "80"}]', 'x: nodes.0.port:'],
    [`nodes: [${'{node_id: a, addr: b},'.repeat(1_001)}]`, 'x: nodes:'],
  ])('%j is refused', (text, reason) => {
    expect(() => parseNodeList(text, 'x')).toThrow(reason)
  })

  test('a file is followed, and one that cannot be used changes nothing', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-nodes-'))
    closing.push(() => rmSync(folder, { recursive: true, force: true }))
    const file = path.join(folder, 'discovery.yml')
    const list = open({ kind: 'static', file })

    expect(await list.registry.get('', shardNodesBody)).toMatchObject({ kind: 'ok', body: { nodes: ['node-1'] } })
    expect(await list.find('node-1')).toMatchObject({ kind: 'failed', reason: expect.stringContaining('ENOENT') })
    writeFileSync(file, 'nodes: [{node_id: node-1, addr: a}]')
    await expect.poll(() => list.find('node-1')).toEqual({ kind: 'found', address: { host: 'a' } })
    expect(await list.find('node-2')).toMatchObject({ kind: 'unknown' })
    writeFileSync(file, 'nodes: [{node_id: node-1, addr: b, port: 1}, {node_id: node-2, addr: c}]')
    await expect.poll(() => list.find('node-1')).toEqual({ kind: 'found', address: { host: 'b', apiPort: 1 } })
    rmSync(file)
    await new Promise((resolve) => setImmediate(resolve))
    expect(await list.find('node-2')).toEqual({ kind: 'found', address: { host: 'c' } })
  })

  test('an endpoint is read again and again; statuses, rubbish and large bodies change nothing', async () => {
    let answer = { status: 200, body: '{"nodes":[{"node_id":"node-1","addr":"a"}]}' }
    let calls = 0
    const server = createServer((_request, response) => {
      calls++
      response.writeHead(answer.status).end(answer.body)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closing.push(() => server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/nodes?zone=1`
    const caller = openHttpCaller({ name: 'node list', log: keepingLog() })
    const list = open({ kind: 'http', url, caller, timeoutMs: 1_000 })

    expect(await list.find('node-1')).toEqual({ kind: 'found', address: { host: 'a' } })
    for (const bad of [
      { status: 500, body: answer.body.replace('"a"', '"z"') },
      { status: 200, body: '<html>' },
      { status: 200, body: `{"nodes":[{"node_id":"node-1","addr":"z"}],"x":"${'y'.repeat(2 << 20)}"}` },
    ]) {
      answer = bad
      const before = calls
      await expect.poll(() => calls).toBeGreaterThan(before + 1)
      expect(await list.find('node-1')).toEqual({ kind: 'found', address: { host: 'a' } })
    }
    answer = { status: 200, body: '{"nodes":[{"node_id":"node-1","addr":"b","port":9}]}' }
    await expect.poll(() => list.find('node-1')).toEqual({ kind: 'found', address: { host: 'b', apiPort: 9 } })
  })
})
