import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Given, parseCommand } from '@vacancy/shared/node'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { proxyCommand } from './cli.ts'
import { joinBooleans, loadProxyConfig } from './config.ts'

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
