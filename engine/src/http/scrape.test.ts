import { parseDay } from '@vacancy/shared'
import type { MetricSpec } from '@vacancy/shared/node'
import { COMMANDS } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { METRICS, type MetricName } from '../metrics.ts'
import { COUNTER, count, countCommand, countDuration, countError, countRows } from '../tcp/counters.ts'
import { FOLLOWING, fakeCluster, fakeHandle, NOON, REGISTRY, REPLICA } from '../testing/fake-handle.ts'
import { ask, createNodeInMemory } from '../testing/node-in-memory.ts'
import type { ClusterHandle, NodeHandle } from './handle.ts'
import { metricsText, type Scrape, SEGMENT_SERIES_MAX, samplesOf, scrape } from './scrape.ts'

function page(handle: NodeHandle, differs: Partial<Scrape> = {}): string[] {
  return metricsText({ ...scrape(handle, 10_000, 0.002), ...differs }).split('\n')
}

/** Values of a metric by its labels as they are written. */
function values(lines: string[], name: string): { [labels: string]: number } {
  const own = lines.filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return Object.fromEntries(
    own.map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(name.length, end), Number(line.slice(end + 1))]
    }),
  )
}

test('counts of the serving threads are added up', () => {
  const handle = fakeHandle()
  const [first, second] = handle.counters as [never, never]
  count(first, COUNTER.bytesSent, 100)
  count(second, COUNTER.bytesSent, 11)
  countCommand(first, COMMANDS.SEARCHAVAIL.code)
  countCommand(second, COMMANDS.SEARCHAVAIL.code)
  countError(second, COMMANDS.SEARCHAVAIL.code, 'VALIDATION_ERROR: stars must be 1 to 5, got 6')
  countError(second, COMMANDS.SEARCHAVAIL.code, '429')

  const lines = page(handle)

  expect(values(lines, 'tcp_bytes_sent_total')).toEqual({ '': 111 })
  expect(values(lines, 'tcp_commands_total')).toEqual({ '': 2 })
  expect(values(lines, 'vacancy_commands_total')['{command="SEARCHAVAIL"}']).toBe(2)
  expect(values(lines, 'vacancy_command_errors_total')).toEqual({
    '{command="SEARCHAVAIL",code="VALIDATION_ERROR"}': 1,
    '{command="SEARCHAVAIL",code="408"}': 0,
    '{command="SEARCHAVAIL",code="429"}': 1,
    '{command="SEARCHAVAIL",code="500"}': 0,
    '{command="SEARCHAVAIL",code="503"}': 0,
  })
  expect(values(lines, 'tcp_rejected_request_total')).toEqual({ '': 1 })
})

test('a histogram counts upwards, and its last bucket is its count', () => {
  const handle = fakeHandle()
  const [counters] = handle.counters as [never]
  const { code } = COMMANDS.SEARCHPROP
  countCommand(counters, code)
  for (const seconds of [0.00002, 0.0004, 0.0004, 2]) countDuration(counters, code, 1, seconds)
  countRows(counters, code, 200)

  const lines = page(handle)

  const buckets = values(lines, 'vacancy_command_duration_seconds_bucket')
  const run = (le: string) => buckets[`{command="SEARCHPROP",phase="run",le="${le}"}`]
  expect([run('0.00001'), run('0.000025'), run('0.0005'), run('1'), run('+Inf')]).toEqual([0, 1, 3, 3, 4])
  expect(values(lines, 'vacancy_command_duration_seconds_count')['{command="SEARCHPROP",phase="run"}']).toBe(4)
  expect(values(lines, 'vacancy_command_duration_seconds_sum')['{command="SEARCHPROP",phase="run"}']).toBeCloseTo(
    2.00082,
  )
  expect(values(lines, 'vacancy_result_rows_bucket')['{command="SEARCHPROP",le="200"}']).toBe(1)
  expect(values(lines, 'vacancy_wal_fsync_seconds_bucket')).toEqual({
    '{le="0.001"}': 30,
    '{le="0.01"}': 38,
    '{le="+Inf"}': 40,
  })
})

test('segments have series by name, those beyond the limit share one, and any name is escaped', () => {
  const named = (name: string, packages: number) => ({ name, bytes: new Uint8Array(), properties: 1, packages })
  const segments = Array.from({ length: SEGMENT_SERIES_MAX + 2 }, (_, i) => named(`s${i}`, i))
  const lines = page(fakeHandle(), { segments })

  const series = values(lines, 'vacancy_packages')
  expect(Object.keys(series)).toHaveLength(SEGMENT_SERIES_MAX + 1)
  expect(series['{segment="s999"}']).toBe(999)
  expect(series['{segment="other"}']).toBe(1000 + 1001)
  const duplicates = [named('other', 5), ...segments]
  expect(values(page(fakeHandle(), { segments: duplicates }), 'vacancy_packages')['{segment="other"}']).toBe(
    5 + 999 + 1000 + 1001,
  )
  const escaped = values(page(fakeHandle(), { segments: [named('a"b\\c\nd', 7)] }), 'vacancy_packages')
  expect(escaped).toEqual({ '{segment="a\\"b\\\\c\\nd"}': 7 })
})

test('the inventory is counted from the store', () => {
  const node = createNodeInMemory(parseDay('2026-06-15') as number)
  const property = { area: 'a', propertyType: 't', category: 'c', stars: 3, latitude: 0, longitude: 0, amenities: [] }
  ask(node, 'SETPROP', { ...property, segment: 'Vienna', propertyId: 'h1' })
  ask(node, 'SETROOMPKG', { propertyId: 'h1', roomType: 'double', date: '2026-06-20', availability: 1 })

  const lines = page(fakeHandle({ memory: () => node.store.memory }))

  expect(values(lines, 'vacancy_properties')).toEqual({ '{segment="Vienna"}': 1 })
  expect(values(lines, 'vacancy_packages')).toEqual({ '{segment="Vienna"}': 1 })
  expect(values(lines, 'vacancy_memory_bytes')['{kind="free"}']).toBeGreaterThan(0)
})

test('values unknown to a starting node are left out, not zero', () => {
  const unavailable = () => [{ reason: 'starting', detail: '', sinceMs: 0 }] as const
  const lines = page(fakeHandle({ replica: () => undefined, snapshot: () => undefined, unavailable }))

  expect(lines.join('\n')).not.toContain('vacancy_snapshot_age_seconds')
  expect(lines.join('\n')).not.toContain('vacancy_raft')
  expect(values(lines, 'vacancy_health')).toEqual({ '{value="active"}': 0, '{value="unavailable"}': 1 })
  expect(values(lines, 'vacancy_unavailable')['{reason="starting"}']).toBe(1)
})

test('times are seconds, and the longest stall of a thread is reported once', () => {
  const handle = fakeHandle()
  const [first, second] = handle.counters as [never, never]
  count(first, COUNTER.stallMicrosMax, 1_500)
  count(second, COUNTER.stallMicrosMax, 40_000)

  const lines = page(handle)
  expect(values(lines, 'vacancy_event_loop_delay_seconds')).toEqual({
    '{thread="main"}': 0.002,
    '{thread="serving"}': 0.04,
    '{thread="replica"}': 0.004,
  })
  expect(values(lines, 'vacancy_snapshot_age_seconds')).toEqual({ '': 60 })
  expect(values(page(handle), 'vacancy_event_loop_delay_seconds')['{thread="serving"}']).toBe(0)
})

const RESOLVER = {
  address: 'v:9090',
  durations: { node: { bounds: [0.1], counts: [2, 1], sum: 0.5 } },
  errors: { node: 4 },
  error: '',
}
const clusterHandle = (differs: Partial<ClusterHandle> = {}) =>
  fakeHandle({
    cluster: fakeCluster({
      registry: () => ({ ...REGISTRY, codecMismatch: 'POOL is new' }),
      resolver: () => RESOLVER,
      ...differs,
    }),
  })

test('every row names its unit, and its samples have its labels', () => {
  const node = createNodeInMemory(20_000)
  const certificates = () => [{ listener: 'api', notAfterMs: NOON }] as const
  for (const handle of [fakeHandle(), clusterHandle()]) {
    const from = scrape({ ...handle, certificates, memory: () => node.store.memory }, 10, 0)
    for (const [name, row] of Object.entries<MetricSpec>(METRICS)) {
      expect(row.help, name).toMatch(/^[A-Z0-9].*\.$/)
      expect(name.endsWith('_total'), name).toBe(row.type === 'counter')
      const samples = samplesOf(name as MetricName, from)
      for (const { labels } of samples) expect(Object.keys(labels), name).toEqual(row.labels ?? [])
      if (row.appliesTo === 'clustered') expect(samples.length > 0, name).toBe(handle.cluster !== undefined)
    }
  }
})

test('a clustered node reports its traffic, its role and its location', () => {
  const lines = page(clusterHandle())

  expect(values(lines, 'cluster_connection_rejected_total')).toEqual({ '': 3 })
  expect(values(lines, 'vacancy_peers_rejected_total')).toEqual({ '{reason="shard"}': 1, '{reason="certificate"}': 2 })
  expect(values(lines, 'cluster_bytes_received_total')).toEqual({ '': 100_000 })
  expect(values(lines, 'cluster_last_applied_wal_index')).toEqual({ '': 118 })
  expect(values(lines, 'cluster_snapshot_produced_total')).toEqual({ '': 1 })
  expect(values(lines, 'cluster_snapshot_write_pause_duration_ms')).toEqual({ '': 1.5 })
  expect(Object.keys(values(lines, 'vacancy_build_info'))).toEqual(['{version="1.2.3",node="n1",shard="s1",zone="z1"}'])
  expect(values(lines, 'vacancy_health')).toEqual({
    '{value="active_leader"}': 1,
    '{value="active_follower"}': 0,
    '{value="unavailable"}': 0,
  })
  expect(values(lines, 'vacancy_raft_role')).toEqual({
    '{role="leader"}': 1,
    '{role="follower"}': 0,
    '{role="learner"}': 0,
    '{role="candidate"}': 0,
  })
  expect(values(lines, 'vacancy_codec_mismatch')).toEqual({ '': 1 })
  expect(values(lines, 'vacancy_registry_push_total')).toEqual({ '{result="accepted"}': 2, '{result="failed"}': 1 })
  expect(values(lines, 'vacancy_resolver_duration_seconds_count')).toEqual({ '{kind="node"}': 3 })
})

test('a leader reports the progress of its members, a follower only its own staleness', () => {
  const leading = page(clusterHandle())
  expect(values(leading, 'vacancy_raft_lag_entries')).toEqual({
    '{peer="n1"}': 0,
    '{peer="n2"}': 1,
    '{peer="n3"}': 100,
    '{peer="n4"}': 1,
  })
  expect(values(leading, 'vacancy_raft_lag_seconds')['{peer="n3"}']).toBe(4)
  expect(values(leading, 'vacancy_raft_peer_state')).toEqual({ '{peer="n2"}': 1, '{peer="n3"}': 0, '{peer="n4"}': 2 })
  expect(values(leading, 'vacancy_raft_peer_rtt_seconds_count')['{peer="n2"}']).toBe(6)

  const following = page(clusterHandle({ info: () => FOLLOWING }))
  expect(values(following, 'vacancy_raft_lag_entries')).toEqual({})
  expect(values(following, 'vacancy_read_staleness_seconds')).toEqual({ '': 0.12 })
})

test('the log has series once the replica reports it', () => {
  expect(page(fakeHandle()).join('\n')).not.toContain('vacancy_wal_group_entries')

  const groupEntries = { bounds: [1, 10], counts: [1, 2, 3], sum: 90 }
  const replica = { ...REPLICA, groupEntries, corruptions: 2, walMemoryBytes: 4_096, walSlow: false }
  const certificates = () => [{ listener: 'tcp', notAfterMs: NOON }] as const
  const lines = page(fakeHandle({ replica: () => replica, certificates }))

  expect(values(lines, 'vacancy_wal_group_entries_count')).toEqual({ '': 6 })
  expect(values(lines, 'vacancy_wal_corruption_total')).toEqual({ '': 2 })
  expect(values(lines, 'vacancy_wal_slow')).toEqual({ '': 0 })
  expect(values(lines, 'vacancy_memory_bytes')['{kind="wal"}']).toBe(4_096)
  expect(values(lines, 'tls_cert_not_after_seconds')).toEqual({ '{listener="tcp"}': NOON / 1000 })
})

test('the next end of a token has a series, +Inf while none ends', () => {
  const tokens = [NOON + 86_400_000, NOON + 3_600_000, Number.POSITIVE_INFINITY].map((expiresMs) => ({
    ...{ hash: new Uint8Array(32), role: 'client' as const, name: '', expiresMs },
  }))

  expect(page(fakeHandle()).filter((line) => line.startsWith('token_'))).toEqual(['token_not_after_seconds +Inf'])
  const lines = page(fakeHandle({ tokens: () => tokens }))
  expect(values(lines, 'token_not_after_seconds')).toEqual({ '': NOON / 1000 + 3_600 })
})

test('the reasons of clustered mode have no series in standalone mode', () => {
  const reasons = (handle: NodeHandle) => Object.keys(values(page(handle), 'vacancy_unavailable'))

  expect(reasons(fakeHandle())).not.toContain('{reason="no_leader"}')
  expect(reasons(clusterHandle())).toContain('{reason="no_leader"}')
})
