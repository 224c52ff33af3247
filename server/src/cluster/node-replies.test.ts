/** Replies of nodes, path by path: what each one sets, and which ones are refused. */

import { between, createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { HASH, infoOf, NOW, statusOf } from '../testing/observed-nodes.ts'
import { COLLECTOR, type Collector, type PolledNode } from './collector-state.ts'
import { NodeHttpError } from './node-http.ts'
import { ageOf, parseReply, sourceOf } from './node-replies.ts'
import { emptyObservation, type NodeObservation, SOURCES, type SourcePath } from './observation.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

const ADDRESS = { id: 'n1', shard: 's1', zone: 'eu-1', apiUrl: 'http://n1:8080', tcp: undefined }
const CODECS = { rate_features: ['breakfast'], hash: 1, hash_hex: '0'.repeat(16), ordered_hash: HASH }
const IDENTITY = { leader_id: 'n1', shard_id: 's1', zone_id: 'eu-1', node_id: 'n1' }

function node(change: Partial<NodeObservation> = {}) {
  const readings: unknown[][] = []
  const polled = { observation: { ...emptyObservation(ADDRESS), ...change }, reading: undefined } as PolledNode
  const hooks = { onReading: (...args: unknown[]) => void readings.push(args) }
  const collector = { hooks } as unknown as Collector
  return {
    ...{ polled, readings },
    read: (path: SourcePath, body: unknown, status = 200, now = NOW) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      return parseReply(collector, polled, path, { status, body: text, type: '', milliseconds: 1 }, now)
    },
  }
}

/** The code of the error that reading throws. */
function codeOf(read: () => unknown): string {
  try {
    read()
  } catch (error) {
    if (error instanceof NodeHttpError) return error.code
    throw error
  }
  return ''
}

const info = infoOf({ id: 'n1' })
const status = statusOf({})

test.each<[SourcePath, unknown, number, Partial<NodeObservation>]>([
  ['/healthz', ' active_follower\n', 200, { health: { value: 'active_follower', at: NOW } }],
  ['/healthz', 'unavailable', 503, { health: { value: 'unavailable', at: NOW } }],
  ['/node-info', IDENTITY, 200, { isStandalone: false, nodeInfo: { value: IDENTITY, at: NOW } }],
  ['/node-info', '', 404, { isStandalone: true, nodeInfo: undefined }],
  ['/leader', '"n2"', 200, { namesLeader: { value: 'n2', at: NOW } }],
  ['/leader', '', 404, {}],
  ['/peers', '["n1"]', 200, {}],
  ['/peers', '', 404, {}],
  ['/cluster/info', info, 200, { info: { value: info, at: NOW } }],
  ['/cluster/info', '', 404, { info: undefined }],
  ['/status', status, 200, { status: { value: status, at: NOW }, digests: [], isStandalone: false }],
  ['/codecs', CODECS, 200, { codecs: { value: CODECS, at: NOW } }],
  ['/config', '', 401, {}],
  ['/config', {}, 200, { limits: undefined }],
])('%s with the body %o and status %d', (path, body, code, expected) => {
  expect(node().read(path, body, code)).toEqual(expected)
})

test.each<[SourcePath, unknown, number, string]>([
  ['/healthz', 'fine', 200, 'garbage'],
  ['/node-info', '', 500, 'status'],
  ['/node-info', '{}', 200, 'garbage'],
  ['/leader', '5', 200, 'garbage'],
  ['/leader', '', 403, 'not-allowed'],
  ['/peers', '5', 200, 'garbage'],
  ['/cluster/info', '{}', 200, 'garbage'],
  ['/status', 'not JSON', 200, 'garbage'],
  ['/status', '', 404, 'status'],
  ['/metrics', '', 401, 'not-allowed'],
  ['/metrics', '', 500, 'status'],
  ['/metrics', 'hello', 200, 'garbage'],
  ['/codecs', '{}', 200, 'garbage'],
  ['/config', '[]', 200, 'garbage'],
])('%s with the body %o and status %d is the error %s', (path, body, code, expected) => {
  expect(codeOf(() => node().read(path, body, code))).toBe(expected)
})

test('the error of an unknown health has its status', () => {
  expect(() => node().read('/healthz', 'fine', 418)).toThrow('answered 418 without a health state')
})

// Identity

test.each<[SourcePath, unknown, string]>([
  ['/node-info', { ...IDENTITY, node_id: 'n2' }, 's1/n2'],
  ['/node-info', { ...IDENTITY, shard_id: 's2' }, 's2/n1'],
  ['/node-info', { ...IDENTITY, shard_id: 'no id!' }, 'a different shard/n1'],
  ['/cluster/info', { ...info, node_id: 'n2' }, 's1/n2'],
  ['/cluster/info', { ...info, node_id: 'no id!' }, 's1/a different node'],
  ['/cluster/info', { ...info, shard_id: 's2' }, 's2/n1'],
  ['/status', statusOf({ mode: 'standalone', shard_id: 's2' }), 's2/n1'],
])('%s of another node is refused', (path, body, reported) => {
  const read = () => node().read(path, body)
  expect(codeOf(read)).toBe('other-node')
  expect(read).toThrow(`${reported} answers at the address of s1/n1`)
})

test('an entry of the list that is not identified yet accepts every node', () => {
  const { read } = node({ address: { ...ADDRESS, shard: 'unknown' } })
  expect(read('/node-info', { ...IDENTITY, node_id: 'n2' })).toMatchObject({ isStandalone: false })
})

test('the status of a clustered node names its shard elsewhere; a standalone one is marked so', () => {
  expect(node().read('/status', statusOf({ shard_id: 's2' }))).toMatchObject({ isStandalone: false })
  expect(node().read('/status', statusOf({ mode: 'standalone' }))).toMatchObject({ isStandalone: true })
})

test('the digest of a status is added to those of the node', () => {
  const digests = [{ index: 5, value: 'a'.repeat(16) }]
  const digest = { value: 'c'.repeat(16), checked_index: 9, checked_value: 'b'.repeat(16) }
  const read = node({ digests }).read('/status', { ...status, digest })
  expect(read.digests).toEqual([...digests, { index: 9, value: 'b'.repeat(16) }])
})

// Metrics

const page = (cpu: number, searches: number, more = '') =>
  `process_cpu_seconds_total ${cpu}\nvacancy_commands_total{command="SEARCHAVAIL"} ${searches}\n${more}`

test('the first metrics page gives no rates, and later ones those since the page before', () => {
  const { read, polled, readings } = node()
  const first = read('/metrics', page(1, 100, 'vacancy_tcp_connections_limit 50'))
  expect(first).toEqual({ rates: undefined, cpu: undefined, connectionsLimit: 50 })
  const before = polled.reading

  const second = read('/metrics', page(3, 1_334), 200, NOW + 2_000)

  expect(second.rates).toEqual({
    value: { queries: 617, writes: 0, errors: 0, p50: null, p99: null },
    at: NOW + 2_000,
  })
  expect([second.cpu, second.connectionsLimit]).toEqual([1, undefined])
  expect(polled.reading).not.toBe(before)
  expect(readings.map(([address, reading]) => [address, reading])).toEqual([
    [ADDRESS, before],
    [ADDRESS, polled.reading],
  ])
  expect(readings[0]?.[2]).toBeUndefined()
  expect(readings[1]?.[2]).toMatchObject({ queries: 617, cpu: 1 })
})

test('rates are rounded to three digits', () => {
  const random = createRandom(SEED)
  const { read } = node()
  let [searches, now] = [0, NOW]
  read('/metrics', page(0, searches, ''), 200, now)
  for (let round = 0; round < 20; round++) {
    const added = between(random, 0, 100_000)
    searches += added
    now += 1_000
    const { rates } = read('/metrics', page(0, searches), 200, now)
    expect(rates?.value.queries, `seed ${SEED}`).toBe(Number(added.toPrecision(3)))
  }
})

test('after a restart of the node there are no rates', () => {
  const { read } = node()
  read('/metrics', page(5, 100))
  expect(read('/metrics', page(0, 3), 200, NOW + 1_000)).toEqual({
    ...{ rates: undefined, cpu: undefined, connectionsLimit: undefined },
  })
})

// Configuration

const config = {
  raft_tick_ms: 100,
  raft_election_tick: 18,
  snapshot_interval_sec: 600,
  snapshot_trigger_count: 5_000,
  maintenance_hour: 3,
}
const configBody = (values: object) =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, { value, origin: 'default', at: '' }]))

test('the limits of a node come from its configuration, with the election timeout in milliseconds', () => {
  expect(node().read('/config', configBody(config))).toEqual({
    limits: {
      ...{ electionTimeoutMs: 1_800, snapshotIntervalSeconds: 600 },
      ...{ snapshotTriggerCount: 5_000, maintenanceHour: 3 },
    },
  })
})

test.each(Object.keys(config))('without %s the limits are unknown', (key) => {
  const { [key as keyof typeof config]: _, ...rest } = config
  expect(node().read('/config', configBody(rest))).toEqual({ limits: undefined })
})

// Unchanged replies

test('an unchanged reply renews the time of its value alone', () => {
  const values = {
    health: { value: 'active', at: 1 },
    nodeInfo: { value: IDENTITY, at: 2 },
    namesLeader: { value: 'n1', at: 3 },
    info: { value: info, at: 4 },
    status: { value: status, at: 5 },
    codecs: { value: CODECS, at: 6 },
  }
  const fields: { [path in SourcePath]?: keyof typeof values } = {
    ...{ '/healthz': 'health', '/node-info': 'nodeInfo', '/leader': 'namesLeader', '/cluster/info': 'info' },
    ...{ '/status': 'status', '/codecs': 'codecs' },
  }
  for (const path of SOURCES) {
    const field = fields[path]
    const expected = field ? { [field]: { value: values[field].value, at: NOW } } : {}
    expect(ageOf({ ...emptyObservation(ADDRESS), ...values }, path, NOW), path).toEqual(expected)
    expect(ageOf(emptyObservation(ADDRESS), path, NOW), path).toEqual({})
  }
})

test('a response is kept up to 16,384 characters, with its time in tenths of a millisecond', () => {
  const reply = (length: number) => ({ status: 200, type: '', milliseconds: 12.345, body: 'x'.repeat(length) })
  expect(COLLECTOR.bodyKept).toBe(16_384)
  expect(sourceOf(reply(3), NOW)).toEqual({ status: 200, at: NOW, milliseconds: 12.3, error: undefined, body: 'xxx' })
  expect([16_383, 16_384, 16_385].map((length) => sourceOf(reply(length), NOW).body.length)).toEqual([
    ...[16_383, 16_384, 16_384],
  ])
})
