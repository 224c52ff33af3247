import type { NodeConfig } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { configWarnings } from './config-warnings.ts'

const DEFAULTS = {
  ...{ raft_tick_ms: 30, raft_election_tick: 60, raft_heartbeat_tick: 15, tcp_recv_buffer_size: 262_144 },
  ...{ snapshot_interval_sec: 60, snapshot_trigger_count: 10_000, registry_heartbeat_secs: 10 },
  ...{ tcp_port: 7777, api_port: 8080, quic_port: 17_777, admin_requires_auth: false },
  ...{ max_dates_in_query: 14, query_limit: 200, memory_max_bytes: 0 },
}
const config = (change: { [key: string]: number | boolean } = {}): NodeConfig =>
  Object.fromEntries(
    Object.entries({ ...DEFAULTS, ...change }).map(([key, value]) => [
      key,
      { value, origin: key in change ? ('file' as const) : ('default' as const), at: '' },
    ]),
  )
const shard = (...changes: { [key: string]: number | boolean }[]) =>
  changes.map((change, at) => ({ node: `n${at + 1}`, config: config(change) }))

test('the defaults give no warning', () => {
  expect(configWarnings(shard({}, {}, {}))).toEqual([])
})

test.each<[string, { [key: string]: number | boolean }, string]>([
  ['a heartbeat interval above the election timeout', { raft_heartbeat_tick: 60 }, 'leaders cannot stay elected'],
  ['a heartbeat interval of half the election timeout', { raft_heartbeat_tick: 30 }, 'two lost heartbeats'],
  ['no receive buffer', { tcp_recv_buffer_size: 0 }, 'operating system'],
  ['no snapshots', { snapshot_interval_sec: 0, snapshot_trigger_count: 100_000_000 }, 'replays all'],
  ['rare heartbeats to the registry', { registry_heartbeat_secs: 30 }, 'remove the node from a registry'],
  ['one port for two listeners', { api_port: 7777 }, 'port 7777'],
  ['admin paths opened explicitly', { admin_requires_auth: false }, 'open to every client'],
])('%s: one warning for all nodes that have it', (_, change, message) => {
  const found = configWarnings(shard(change, {}, change))

  expect(found).toEqual([expect.objectContaining({ nodes: ['n1', 'n3'], message: expect.stringContaining(message) })])
})

test.each<[{ [key: string]: number }, string]>([
  [{ raft_election_tick: 61 }, 'elections'],
  [{ max_dates_in_query: 30 }, 'another one refuses'],
  [{ query_limit: 100 }, 'different numbers of rows'],
  [{ memory_max_bytes: 67_108_864 }, 'least memory'],
])('a node that differs in %o is listed', (change, message) => {
  const found = configWarnings(shard({}, change, {}))

  expect(found).toEqual([expect.objectContaining({ nodes: ['n2'], message: expect.stringContaining(message) })])
})

test('values that are not reported give no warning', () => {
  expect(configWarnings([{ node: 'n1', config: {} }, ...shard({})])).toEqual([])
})
