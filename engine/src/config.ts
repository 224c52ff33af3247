/**
 * Schema of the main configuration file of a node: keys, ranges, units, defaults (docs/design/http.md#configuration),
 * and the location of the codec file. docs/config.md and `--help` are generated from these rows.
 */

import { totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import {
  type Config,
  type ConfigSchema,
  type ConfigValues,
  type Given,
  LOG_LEVELS,
  loadConfig,
  port,
  whole,
} from '@vacancy/shared/node'
import { usableCores } from './cores.ts'

/** Each program reads variables with its own prefix. */
export const COMPONENTS = { run: 'RUN', runClustered: 'RUN_CLUSTERED' } as const

/** Sources from which a node downloads snapshots (snapshot-download.ts). */
export const PULL_URLS = ['any', 'https', 'none'] as const

/** Least size of a log file: a group of entries must fit twice. */
export const WAL_FILE_BYTES_MIN = 4_194_304

/** Least memory for data: with less, the areas of the threads leave no room for it. */
const MEMORY_BYTES_MIN = 64 * 1024 ** 2
const MEMORY_BYTES_MAX = 4 * 1024 ** 3
const CORES_MAX = 1_024
const ELECTION_MS = { min: 150, max: 60_000 } as const

const CLUSTERED = { appliesTo: 'clustered mode; checked and kept in standalone mode' } as const
const yes = (summary: string) => ({ type: 'boolean', default: true, summary }) as const
const no = (summary: string) => ({ type: 'boolean', default: false, summary }) as const

export const ENGINE_SCHEMA = {
  // Keys of the contract
  sys_cores_count: {
    ...whole(0, 0, CORES_MAX),
    summary: 'Cores left to the system and the other threads; 0 = about half of the cores, and always fewer than all.',
  },
  avg_room_types_per_property: {
    ...whole(6, 1, 256),
    summary: 'Expected room types of a property: how much is preallocated, for at most 8.',
  },
  tcp_port: { ...port(7777), summary: 'Port of the data protocol; 0 = any free port, which is printed.' },
  tcp_max_connections: {
    ...whole(10_000, 1, 1_000_000),
    summary:
      'Maximum client connections; further ones, and those that would take the last 64 open files, are closed at once.',
  },
  tcp_user_timeout_ms: {
    ...whole(200, 0, 600_000, 'ms'),
    summary:
      'A connection whose queued replies have not shrunk for this long, and at least 200 ms, is closed; 0 = never.',
  },
  tcp_keepalive_seconds: {
    ...whole(30, 0, 7_200, 'seconds'),
    summary: 'Idle time before a connection is probed; 0 = never.',
  },
  tcp_recv_buffer_size: {
    ...whole(262_144, 4_096, 16_777_216, 'bytes'),
    summary: 'Most bytes read at once from a connection (never less than one frame).',
  },
  tcp_send_buffer_size: {
    ...whole(131_072, 4_096, 67_108_864, 'bytes'),
    summary: 'Queued replies of a connection at which reading from it pauses.',
  },
  quic_port: { ...port(17_777), summary: 'Port for traffic between nodes.', ...CLUSTERED },
  raft_tick_ms: { ...whole(30, 5, 1_000, 'ms'), summary: 'Length of a Raft tick.', ...CLUSTERED },
  raft_election_tick: {
    ...whole(60, 5, 1_000, 'ticks'),
    summary: 'Ticks without a leader until an election; times raft_tick_ms it must be 150 to 60000 ms.',
    ...CLUSTERED,
  },
  raft_heartbeat_tick: {
    ...whole(15, 1, 200, 'ticks'),
    summary: 'Ticks between heartbeats; at most half of raft_election_tick.',
    ...CLUSTERED,
  },
  registry_heartbeat_secs: {
    ...whole(10, 1, 3_600, 'seconds'),
    summary: 'Time between heartbeats to the registry; any key `<word>_heartbeat_secs` is accepted.',
    ...CLUSTERED,
  },
  api_port: { ...port(8080), summary: 'Port of the HTTP API; 0 = any free port, which is printed.' },
  maintenance_hour: {
    ...whole(0, 0, 23, 'hour'),
    summary: 'Hour in UTC at which passed dates are removed and a snapshot is written.',
  },
  max_calendar_days: {
    ...whole(92, 1, 366, 'days'),
    summary: 'Most arrival days of a price calendar or of flexible dates; more is a VALIDATION_ERROR.',
  },
  max_dates_in_query: { ...whole(14, 1, 366, 'dates'), summary: 'Most dates in a query; more is a VALIDATION_ERROR.' },
  query_limit: {
    ...whole(200, 1, 32_767, 'properties'),
    summary: 'Most properties in a reply; a larger limit in a query is cut to it.',
  },
  snapshot_interval_sec: {
    ...whole(60, 0, 86_400, 'seconds'),
    summary: 'Time between snapshots if something changed; 0 = by count only.',
  },
  snapshot_trigger_count: {
    ...whole(10_000, 1, 100_000_000, 'writes'),
    summary: 'Writes after which a snapshot is written.',
  },
  wal_flush_threshold: { ...whole(2_000, 1, 1_000_000, 'entries'), summary: 'Most entries of the log in one flush.' },
  data_dir: {
    type: 'text',
    default: './data',
    summary: 'Folder of log, snapshots and identity; created if absent, locked against a second process.',
  },

  // Own keys
  serving_threads: {
    ...whole(0, 0, 64),
    summary: 'Threads that serve clients; 0 = cores minus the reserved ones, at least 1.',
  },
  memory_max_bytes: {
    ...whole(0, 0, MEMORY_BYTES_MAX, 'bytes'),
    summary:
      'Most memory for data: 0 = 4 GiB, or what the memory limit of the container leaves; else 67108864 to 4294967296. Only what is used takes memory.',
  },
  session_table_bytes: {
    ...whole(33_554_432, 1_048_576, 1_073_741_824, 'bytes'),
    summary: 'Memory for the sessions of request keys; fixed when a shard first starts.',
  },
  wal_file_bytes: {
    ...whole(67_108_864, WAL_FILE_BYTES_MIN, 1_073_741_824, 'bytes'),
    summary:
      'Size of a log file, created before its use, and of the disk reserve: three times this is used from the start.',
  },
  load_urls: {
    type: 'choice',
    default: 'any',
    choices: PULL_URLS,
    summary:
      'Sources from which an admin may load a snapshot (POST /cluster/load): http and https, https only, or none.',
    ...CLUSTERED,
  },
  leader_reads: { ...yes('The leader answers reads; false: 405.'), ...CLUSTERED },
  node_info_leader_url: { ...no('/node-info also has `leader_url`.'), ...CLUSTERED },
  api_public_read: yes('With an auth file: GETs need no token, except for /config.'),
  admin_requires_auth: no(
    'Without an auth file admin paths are closed (401). On a listener that is not loopback they are closed unless the configuration is `false`.',
  ),
  tcp_require_login: no('Clients must send LOGIN with a client or admin token first.'),
  tls_require_node_id: {
    ...no(
      'Certificates between nodes must name the node as URI `urn:vacancy:node:ID`; not set: they must if the own certificate does. Other certificates are valid for nodes at the addresses they name.',
    ),
    ...CLUSTERED,
  },
  tls_accept_any_name: {
    ...no(
      'Certificates between nodes need only be of the cluster authority, whatever they name, unless they name another node as URI: the key of one can then impersonate any.',
    ),
    ...CLUSTERED,
  },
  cpu_watch: yes('The process ends (exit code 75) when the number of cores changes; false: it is only logged.'),
  log_level: { type: 'choice', default: 'info', choices: LOG_LEVELS, summary: 'Lowest level that is logged.' },
} as const satisfies ConfigSchema

export type EngineConfig = Config<typeof ENGINE_SCHEMA>
export type EngineSettings = ConfigValues<typeof ENGINE_SCHEMA>

export const CONFIG_FILES = ['./vacancy.yml', '/etc/vacancy/vacancy.yml'] as const
const CODECS_FILE = 'codecs.yml'
/** Top-level keys of the older nested form. */
const NESTED = ['core_config', 'tcp', 'cluster']

/**
 * Loads the configuration of a node: `file` if given, else the first existing file of CONFIG_FILES, else defaults.
 * Flags and variables override it.
 *
 * @throws VacancyError invalid_config, one line per error with file, key, value and range
 */
export function loadEngineConfig(options: {
  readonly file?: string | undefined
  readonly given?: ReadonlyMap<string, Given>
  /** For tests; default: those of this machine. */
  readonly cores?: number
}): EngineConfig {
  const { file, given, cores = usableCores() } = options
  return loadConfig({
    schema: ENGINE_SCHEMA,
    file,
    searched: CONFIG_FILES,
    ...(given && { given }),
    // The original key begins with the name of a product.
    alias: (key) => (/^[a-z0-9]+_heartbeat_secs$/.test(key) ? 'registry_heartbeat_secs' : undefined),
    hint: (key, value) => nestedHint(key, value),
    check: (values) => crossFaults(values, cores),
  })
}

function nestedHint(key: string, value: unknown): string | undefined {
  if (!NESTED.includes(key) && (typeof value !== 'object' || value === null)) return undefined
  const inside = typeof value === 'object' && value !== null ? Object.keys(value) : []
  const known = inside.flatMap((name) => [name, `${key}_${name}`]).filter((name) => Object.hasOwn(ENGINE_SCHEMA, name))
  const keys = known.length === 0 ? 'for example tcp_port, api_port, data_dir' : known.join(', ')
  return `${key}: this is the older nested form; keys are flat now: ${keys}`
}

/** Errors that single ranges do not cover. */
function crossFaults(values: EngineSettings, cores: number): string[] {
  const faults: string[] = []
  const ports = [
    ['tcp_port', values.tcpPort],
    ['api_port', values.apiPort],
    ['quic_port', values.quicPort],
  ] as const
  for (const [i, [name, port]] of ports.entries()) {
    const duplicate = ports.slice(0, i).find(([, earlier]) => port !== 0 && earlier === port)
    if (duplicate) faults.push(`${duplicate[0]} and ${name}: both are ${port}; the three ports must differ`)
  }
  const electionMs = values.raftTickMs * values.raftElectionTick
  if (electionMs < ELECTION_MS.min || electionMs > ELECTION_MS.max) {
    faults.push(`raft_tick_ms × raft_election_tick: is ${electionMs} ms, not ${ELECTION_MS.min} to ${ELECTION_MS.max}`)
  }
  if (values.raftHeartbeatTick * 2 > values.raftElectionTick) {
    faults.push(
      `raft_heartbeat_tick: ${values.raftHeartbeatTick} is more than half of raft_election_tick, ${values.raftElectionTick}`,
    )
  }
  if (values.sysCoresCount > cores - 1) {
    faults.push(`sys_cores_count: ${values.sysCoresCount} leaves none of ${cores} cores; at most ${cores - 1}`)
  }
  const memory = memoryBytes(values)
  if (memory < MEMORY_BYTES_MIN) {
    faults.push(`memory_max_bytes: ${memory} is neither 0 nor ${MEMORY_BYTES_MIN} to ${MEMORY_BYTES_MAX}`)
  } else if (values.sessionTableBytes > memory / 2) {
    faults.push(`session_table_bytes: ${values.sessionTableBytes} is more than half of the memory for data, ${memory}`)
  }
  if (values.tlsAcceptAnyName && values.tlsRequireNodeId)
    faults.push('tls_accept_any_name: excludes tls_require_node_id')
  return faults
}

/**
 * `tls_require_node_id`; undefined when unset: the own certificate decides. `'any'`: names do not count
 * (`tls_accept_any_name`).
 */
export function requireNodeIdOf({ values, origins }: EngineConfig): boolean | 'any' | undefined {
  if (values.tlsAcceptAnyName) return 'any'
  return origins.tls_require_node_id.from === 'default' ? undefined : values.tlsRequireNodeId
}

/** What a node needs beside its data: threads, sockets, buffers; a tenth of a large limit. */
const OWN_BYTES = 192 * 1024 ** 2
const OWN_SHARE = 0.1
const PAGE_BYTES = 64 * 1024

/** Bytes for data: those configured, else as many as the limit of the container leaves. */
export function memoryBytes({ memoryMaxBytes }: EngineSettings, limit = containerBytes()): number {
  if (memoryMaxBytes !== 0) return memoryMaxBytes
  const left = Math.floor(Math.min(limit - OWN_BYTES, limit * (1 - OWN_SHARE)) / PAGE_BYTES) * PAGE_BYTES
  return Math.max(MEMORY_BYTES_MIN, Math.min(MEMORY_BYTES_MAX, left))
}

/** For the log at the start: the system would end the node before its data reach the configured size. '' if not. */
export function memoryShortage(settings: EngineSettings, limit = containerBytes()): string {
  const bytes = memoryBytes(settings, limit)
  if (bytes + OWN_BYTES <= limit) return ''
  return `memory_max_bytes: ${bytes} for data and about ${OWN_BYTES} for the node exceed the memory limit of the container, ${limit}: the system may end the node. Lower one, or raise the other`
}

/** Infinite without a limit. */
function containerBytes(): number {
  const bytes = process.constrainedMemory()
  return bytes > 0 && bytes <= totalmem() ? bytes : Number.POSITIVE_INFINITY
}

/** Threads that serve clients: the configured number, else the cores that are not reserved, at least one. */
export function servingThreads({ servingThreads: configured, sysCoresCount }: EngineSettings, cores: number): number {
  if (configured > 0) return configured
  const reserved = sysCoresCount === 0 ? Math.floor(cores / 2) : sysCoresCount
  return Math.max(1, Math.min(cores - reserved, ENGINE_SCHEMA.serving_threads.max))
}

/** The default location of the codec list without `--codecs`: beside the configuration file. */
export function codecsFileOf(config: EngineConfig): string {
  return config.file === '' ? CODECS_FILE : join(dirname(config.file), CODECS_FILE)
}
