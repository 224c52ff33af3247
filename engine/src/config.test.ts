import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VacancyError } from '@vacancy/shared'
import { type Given, loadCodecFile } from '@vacancy/shared/node'
import { afterAll, expect, test } from 'vitest'
import { codecsFileOf, loadEngineConfig, memoryBytes, memoryShortage, servingThreads } from './config.ts'
import { LOG_FILE_BYTES } from './wal/wal.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0

function write(content: string): string {
  const file = join(folder, `${files++}.yml`)
  writeFileSync(file, content)
  return file
}

const load = (content: string, cores = 4) => loadEngineConfig({ file: write(content), cores })

/** The lines of an error without the file name. */
function faults(run: () => unknown): string[] {
  try {
    run()
  } catch (error) {
    if (error instanceof VacancyError && error.code === 'invalid_config') {
      return error.message.split('\n').map((line) => line.replaceAll(/\S*\/(\d+\.yml)/g, 'FILE').replace(/^ +/, ''))
    }
    throw error
  }
  return []
}

test('without a file every key has the default of the contract', () => {
  const { values, origins } = load('')

  expect(values).toMatchObject({
    sysCoresCount: 0,
    avgRoomTypesPerProperty: 6,
    tcpPort: 7777,
    tcpMaxConnections: 10_000,
    tcpUserTimeoutMs: 200,
    tcpKeepaliveSeconds: 30,
    tcpRecvBufferSize: 262_144,
    tcpSendBufferSize: 131_072,
    quicPort: 17_777,
    raftTickMs: 30,
    raftElectionTick: 60,
    raftHeartbeatTick: 15,
    apiPort: 8080,
    maintenanceHour: 0,
    maxCalendarDays: 92,
    maxDatesInQuery: 14,
    queryLimit: 200,
    snapshotIntervalSec: 60,
    snapshotTriggerCount: 10_000,
    walFlushThreshold: 2_000,
    walFileBytes: LOG_FILE_BYTES,
  })
  expect(origins.tcp_port.from).toBe('default')
  expect(Object.isFrozen(values)).toBe(true)
})

test('a flag overrides the file, and each value has its origin', () => {
  const given = new Map<string, Given>([['query_limit', { text: '10', at: '--query-limit', from: 'flag' }]])

  const { values, origins } = loadEngineConfig({ file: write('query_limit: 20\ntcp_port: 0\n'), given, cores: 4 })

  expect([values.queryLimit, values.tcpPort]).toEqual([10, 0])
  expect([origins.query_limit.from, origins.tcp_port.from]).toEqual(['flag', 'file'])
  expect(origins.tcp_port.at).toMatch(/:2$/)
})

test('wrong types, values out of range and unknown keys are reported one per line with file, key, value and range', () => {
  const lines = faults(() => load('tcp_port: 70000\nmaintenance_hour: "3"\nquery_limt: 5\ncpu_watch: yes please\n'))

  expect(lines).toHaveLength(4)
  expect(lines[0]).toMatch(/FILE:1: tcp_port: 70000 is not a whole number from 0 to 65535/)
  expect(lines[1]).toMatch(/maintenance_hour: "3" is not a whole number from 0 to 23/)
  expect(lines[2]).toMatch(/query_limt: .*did you mean query_limit\?/)
  expect(lines[3]).toMatch(/cpu_watch: "yes please" is not true or false/)
})

test.each([
  ['api_port: 7777', 'tcp_port and api_port: both are 7777'],
  ['quic_port: 8080', 'api_port and quic_port: both are 8080'],
  ['raft_tick_ms: 5\nraft_election_tick: 20\nraft_heartbeat_tick: 10', 'is 100 ms, not 150 to 60000'],
  ['raft_tick_ms: 1000\nraft_election_tick: 61', 'is 61000 ms, not 150 to 60000'],
  ['raft_heartbeat_tick: 31', 'raft_heartbeat_tick: 31 is more than half of raft_election_tick, 60'],
  ['sys_cores_count: 4', 'sys_cores_count: 4 leaves none of 4 cores; at most 3'],
  ['memory_max_bytes: 67108863', 'memory_max_bytes: 67108863 is neither 0 nor 67108864 to 4294967296'],
  ['memory_max_bytes: 67108864\nsession_table_bytes: 33554433', 'session_table_bytes: 33554433 is more than half'],
])('conflicting keys are refused: %j', (content, message) => {
  const lines = faults(() => load(content))

  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain(message)
})

test('ports that are 0 may be equal, and the bounds themselves are allowed', () => {
  expect(faults(() => load('tcp_port: 0\napi_port: 0\nquic_port: 0'))).toEqual([])
  expect(faults(() => load('raft_heartbeat_tick: 30\nsys_cores_count: 3\nmemory_max_bytes: 67108864'))).toEqual([])
})

test('the heartbeat key is accepted with any prefix, once', () => {
  expect(load('acme_heartbeat_secs: 30').values.registryHeartbeatSecs).toBe(30)
  expect(faults(() => load('acme_heartbeat_secs: 30\nregistry_heartbeat_secs: 10'))).toHaveLength(1)
})

test('the older nested form is refused with the names of the flat keys', () => {
  const lines = faults(() => load('core_config:\n  sys_cores_count: 2\ntcp:\n  port: 7777\n  max_connections: 5\n'))

  expect(lines).toHaveLength(2)
  expect(lines[0]).toContain('core_config: this is the older nested form; keys are flat now: sys_cores_count')
  expect(lines[1]).toContain('keys are flat now: tcp_port, tcp_max_connections')
})

test('a named file must exist', () => {
  expect(faults(() => loadEngineConfig({ file: join(folder, 'none.yml') }))).toHaveLength(1)
})

test('serving threads are the cores that are not reserved, at least one', () => {
  const threads = (content: string, cores: number) => servingThreads(load(content, cores).values, cores)

  expect(threads('', 8)).toBe(4)
  expect(threads('', 1)).toBe(1)
  expect(threads('sys_cores_count: 2', 8)).toBe(6)
  expect(threads('serving_threads: 11', 8)).toBe(11)
})

test('memory for data is 4 GiB unless configured lower', () => {
  const MB = 1024 ** 2
  const [byDefault, set] = [load('').values, load('memory_max_bytes: 134217728').values]
  expect(memoryBytes(byDefault, Number.POSITIVE_INFINITY)).toBe(4_096 * MB)
  // A container killed the node when its data grew beyond the limit.
  expect([300, 1_024, 4_000, 100].map((limit) => memoryBytes(byDefault, limit * MB) / MB)).toEqual([
    108, 832, 3_600, 64,
  ])
  expect(memoryBytes(set, 300 * MB)).toBe(128 * MB)
  expect(memoryShortage(byDefault, 300 * MB)).toBe('')
  expect(memoryShortage(set, 300 * MB)).toContain('exceed the memory limit of the container, 314572800')
})

test('codecs are read in order from rate_features, other keys ignored', () => {
  const file = write('version: 3\nrate_features:\n  - wifi\n  - breakfast\n')

  expect(loadCodecFile(file, 'codecs').names).toEqual(['wifi', 'breakfast'])
})

test('the codec file beside the configuration is the default', () => {
  const config = load('')

  expect(codecsFileOf(config)).toBe(join(folder, 'codecs.yml'))
})

test('a codec file that is missing, is not YAML or has no list is refused with its name', () => {
  expect(faults(() => loadCodecFile(join(folder, 'none.yml'), 'codecs'))[0]).toContain('does not exist')
  expect(faults(() => loadCodecFile(write('features: []'), 'codecs'))[0]).toContain('rate_features: is missing')
  expect(faults(() => loadCodecFile(write('rate_features: wifi'), 'codecs'))[0]).toContain('must be a list')
  expect(faults(() => loadCodecFile(write('rate_features: ['), 'codecs'))).not.toEqual([])
  expect(() => loadCodecFile(write('rate_features: []'), 'codecs')).toThrow(/1 to 24/)
  expect(() => loadCodecFile(write('rate_features: [wifi, WiFi]'), 'codecs')).toThrow(/repeats wifi/)
})
