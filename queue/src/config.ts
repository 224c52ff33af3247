/** Settings of the queue: of `vacancy queue serve`, and with the prefix `queue_` of the control plane. */
import { existsSync } from 'node:fs'
import { totalmem } from 'node:os'
import { assert } from '@vacancy/shared'
import { JOB_LIMITS, type TopicConfig, topicConfig } from '@vacancy/shared/contract'
import {
  type ConfigSchema,
  type ConfigValues,
  camelCase,
  choice,
  type Given,
  isNetwork,
  LOG_FORMATS,
  LOG_LEVELS,
  loadConfig,
  port,
  postgresUrl,
  readSecret,
  refuseSecretFlags,
  SSL_MODES,
  settingText,
  TRACE_SCHEMA,
  tlsFault,
  traceFaults,
  whole,
  withDatabaseUrl,
} from '@vacancy/shared/node'
import type { QueueSettings } from './queue-server.ts'
import type { QueueLimits } from './state.ts'

const QUEUE_SCHEMA = {
  auth_file: {
    ...settingText('./auth.yml'),
    summary: 'Tokens of producers and consumers, with roles producer, consumer, monitoring and admin; followed.',
  },
  allow_query_token: {
    type: 'boolean',
    default: false,
    summary: 'Accepts ?token= outside /ws, too. Query strings end up in access logs.',
  },
  topic_create_role: {
    ...choice(['producer', 'admin'], 'producer'),
    summary: 'Lowest role that creates topics at /producer/topic.',
  },
  producer_response: { ...choice(['json', 'empty'], 'json'), summary: 'Body of a successful submission.' },
  producer_wait_ms: {
    ...whole(2_000, 10, 600_000, 'milliseconds'),
    summary: 'A submission that would wait longer for the journal is refused with queue_full before it is taken.',
  },
  read_timeout_sec: { ...whole(45, 1, 300, 'seconds'), summary: 'Time for the body of a request to arrive.' },
  max_request_bytes: { ...whole(16_777_216, 1_024, 268_435_456, 'bytes'), summary: 'Largest body of a submission.' },
  max_jobs_per_request: { ...whole(10_000, 1, 100_000), summary: 'Most jobs of a submission.' },
  max_job_bytes: { ...whole(1_048_576, 1, 134_217_728, 'bytes'), summary: 'Largest decoded payload.' },
  max_bytes_total: {
    ...whole(0, 0, 1_099_511_627_776, 'bytes'),
    summary:
      'Memory for all jobs, beyond which submissions are refused; 0: half of the memory of the machine or container.',
  },
  max_consumers: { ...whole(10_000, 1, 100_000), summary: 'Most consumer connections.' },
  ws_read_limit_bytes: { ...whole(262_144, 1_024, 16_777_216, 'bytes'), summary: 'Largest message of a consumer.' },
  ws_write_timeout_sec: {
    ...whole(30, 1, 3_600, 'seconds'),
    summary: 'A consumer that does not read for this long is disconnected.',
  },
  ws_init_timeout_ms: {
    ...whole(10_000, 100, 600_000, 'milliseconds'),
    summary: 'Time for the first message of a consumer.',
  },
  heartbeat_ms: {
    ...whole(3_000, 100, 4_900, 'milliseconds'),
    summary: 'A consumer that was sent nothing for this long gets a heartbeat message.',
  },
  ws_ping_ms: {
    ...whole(15_000, 100, 600_000, 'milliseconds'),
    summary: 'A consumer that is silent for this long is pinged.',
  },
  ws_dead_ms: {
    ...whole(45_000, 500, 3_600_000, 'milliseconds'),
    summary: 'A consumer that sends nothing for this long, not even a pong, is disconnected.',
  },
  ws_max_buffered_bytes: {
    ...whole(1_048_576, 1_024, 268_435_456, 'bytes'),
    summary: 'Unsent bytes of a consumer beyond which nothing more is delivered to it.',
  },
  ws_max_errors: {
    ...whole(20, 1, 100_000),
    summary: 'Faulty messages a minute beyond which a consumer is disconnected.',
  },
  default_prefetch: { ...whole(64, 1, 1_000), summary: 'Largest window of consumers that name no prefetch.' },
  max_prefetch: { ...whole(1_000, 1, 1_000), summary: 'Largest prefetch.' },
  max_ack_deadline_ms: {
    ...whole(43_200_000, 1_000, 43_200_000, 'milliseconds'),
    summary: 'Longest lease that a consumer can ask for.',
  },
  max_lease_factor: {
    type: 'integer',
    default: 10,
    min: 1,
    max: 1_000,
    summary: 'Acknowledgements of a consumer extend its other leases to at most this many ack deadlines.',
  },
  resume_grace_ms: {
    ...whole(5_000, 0, 600_000, 'milliseconds'),
    summary: 'How long a consumer whose connection broke keeps its jobs, so that it can come back under its name.',
  },
  sync: {
    type: 'choice',
    choices: ['full', 'off'],
    default: 'full',
    summary: 'full: a job is on disk before it is accepted. off loses jobs on a crash; for tests and benchmarks.',
  },
  group_max_changes: { ...whole(2_000, 1, 100_000), summary: 'Most changes of one commit.' },
  group_max_bytes: { ...whole(4_194_304, 1_024, 268_435_456, 'bytes'), summary: 'Most bytes of one commit.' },
  ack_flush_ms: {
    ...whole(5, 0, 1_000, 'milliseconds'),
    summary: 'How long acknowledgements are collected before they are stored.',
  },
  shutdown_grace_ms: {
    ...whole(10_000, 0, 600_000, 'milliseconds'),
    summary: 'Time for consumers to finish their jobs on shutdown.',
  },
  partitions: {
    ...whole(1, 1, 64),
    summary: 'Parts of the queue, each with its own journal; fixed when the journal is created.',
  },
  topic_defaults: {
    ...settingText('{}'),
    summary: 'Configuration of new topics where they name none, as JSON: {"max_attempts":8,"ack_deadline_ms":60000}.',
  },
  journal: {
    ...choice(['auto', 'sqlite'], 'auto'),
    summary: 'auto: PostgreSQL where database_url is set, else a SQLite file. sqlite: a file although it is set.',
  },
  pg_schema: {
    ...settingText('vacancy_queue'),
    summary:
      'Schema of the tables in PostgreSQL; created at the first start. Processes with the same one share a queue.',
  },
  pg_sslmode: {
    ...choice(['', ...SSL_MODES], ''),
    summary:
      'TLS to PostgreSQL, as sslmode in database_url, which it overrides: require encrypts, verify-ca also checks the CA, verify-full also the host name. Empty without sslmode in database_url: no TLS.',
  },
  pg_sslrootcert: {
    ...settingText(''),
    summary:
      'File with the certificates of the CA of PostgreSQL, PEM, as sslrootcert in database_url; alone it means verify-full.',
  },
  pg_lock_key: {
    ...whole(0, -2_147_483_648, 2_147_483_647),
    summary:
      'First number of the advisory locks in PostgreSQL, when another program uses the same; 0: a hash of pg_schema. Fixed when the journal is created.',
  },
  advertise_url: {
    ...settingText(''),
    summary:
      'Address under which clients reach this process, such as http://queue-1:8080, shown by processes that stand by; empty: made of listen_host and the port.',
  },
} as const satisfies ConfigSchema

/** A listener that thousands of producers and consumers connect to. */
const LISTENER_SCHEMA = {
  listen_backlog: {
    ...whole(4_096, 1, 65_535),
    summary: 'Connections that may wait to be accepted; the operating system may limit it further.',
  },
  keep_alive_sec: {
    ...whole(120, 91, 3_600, 'seconds'),
    summary: 'How long an idle connection is kept; longer than clients keep theirs.',
  },
  max_connections: { ...whole(20_000, 1, 1_000_000), summary: 'Most connections.' },
} as const satisfies ConfigSchema

/** Settings of `vacancy queue serve`. */
export const SERVE_SCHEMA = {
  listen_host: { ...settingText('127.0.0.1'), summary: 'Address to listen on.' },
  listen_port: {
    ...port(8080),
    summary: 'Port of producers, consumers and the API; 0 = any free port, which is printed.',
  },
  ...LISTENER_SCHEMA,
  tls_cert: {
    ...settingText(''),
    summary: 'Certificate of the listener, PEM, followed by its intermediate certificates; with tls_key.',
  },
  tls_key: { ...settingText(''), summary: 'Private key of tls_cert, PEM without a passphrase.' },
  allowed_hosts: {
    type: 'list',
    default: [],
    summary: 'Further host names under which its API is reached; requests with other Host headers are refused.',
  },
  trust_proxy: {
    type: 'list',
    default: [],
    summary: 'Addresses or networks of reverse proxies whose X-Forwarded headers are trusted.',
  },
  data_dir: { ...settingText('./data/queue'), summary: 'Folder of the journal; created if absent.' },
  database_url: {
    ...settingText(''),
    secret: true,
    summary:
      'PostgreSQL address, postgres://user:password@host/name, also as DATABASE_URL: the journal is there, and processes can take over from each other; empty: a SQLite file in data_dir.',
  },
  ...QUEUE_SCHEMA,
  metrics_public: { type: 'boolean', default: false, summary: 'Serves /metrics without a token.' },
  log_level: { ...choice(LOG_LEVELS, 'info'), summary: 'Lowest level that is logged.' },
  log_format: { ...choice(LOG_FORMATS, 'json'), summary: 'Log lines as JSON or as text.' },
  ...TRACE_SCHEMA,
} as const satisfies ConfigSchema

export type ServeConfig = ConfigValues<typeof SERVE_SCHEMA>

const SEARCHED = ['./queue.yml', '/etc/vacancy/queue.yml']

/**
 * Fills the settings of `vacancy queue serve` from a file, the environment and flags.
 *
 * @throws VacancyError invalid_config, one line per error
 */
export function loadServeConfig(sources: {
  readonly file?: string | undefined
  readonly given?: ReadonlyMap<string, Given>
  /** The environment variable DATABASE_URL. */
  readonly databaseUrl?: string | undefined
}): ServeConfig {
  const given = withDatabaseUrl(sources.given, sources.databaseUrl)
  refuseSecretFlags(SERVE_SCHEMA, given)
  const { values } = loadConfig({ schema: SERVE_SCHEMA, file: sources.file, searched: SEARCHED, given, check })
  return Object.freeze({ ...values, databaseUrl: readSecret(values.databaseUrl) })
}

function check(values: ServeConfig): string[] {
  const faults: string[] = []
  if ((values.tlsCert === '') !== (values.tlsKey === '')) faults.push('tls_cert and tls_key must be set together')
  if (values.databaseUrl !== '' && !/^(?:postgres(?:ql)?:\/\/|file:)/.test(values.databaseUrl))
    faults.push('database_url: must begin with postgres:// (or be file: and the path of a file that contains it)')
  for (const proxy of values.trustProxy)
    if (!isNetwork(proxy)) faults.push(`trust_proxy: ${proxy} is neither an address nor a network like 10.0.0.0/8`)
  return [...faults, ...checkQueue(values, ''), ...checkTls(values, ''), ...traceFaults(values)]
}

export type QueueConfig = ConfigValues<typeof QUEUE_SCHEMA>

type Prefixed<S> = { readonly [K in keyof S & string as `queue_${K}`]: S[K] }

function prefixed<S extends ConfigSchema>(schema: S): Prefixed<S> {
  return Object.fromEntries(Object.entries(schema).map(([key, setting]) => [`queue_${key}`, setting])) as Prefixed<S>
}

/** Settings of a control plane that serves the queue. Its tokens are valid for the queue, so it needs no auth file. */
export const CONTROL_QUEUE_SCHEMA = {
  queue: {
    type: 'boolean',
    default: true,
    summary: 'Serves the job queue: producers at /producer, consumers at /ws, and its pages.',
  },
  queue_url: {
    ...settingText(''),
    summary:
      'A queue elsewhere for the pages of the console, http://host:port of `vacancy queue serve`; none is served here.',
  },
  queue_token: { ...settingText(''), secret: true, summary: 'Token with the role admin of the queue at queue_url.' },
  ...LISTENER_SCHEMA,
  queue_data_dir: { ...settingText(''), summary: 'Folder of the journal of the queue; empty: queue in data_dir.' },
  ...prefixed(QUEUE_SCHEMA),
  queue_auth_file: {
    ...QUEUE_SCHEMA.auth_file,
    default: '',
    summary: 'Tokens of producers and consumers besides those of the console, in a file that is followed; empty: none.',
  },
} as const satisfies ConfigSchema

/** The settings of the queue among those of a control plane. */
export function queueConfigOf(values: ConfigValues<typeof CONTROL_QUEUE_SCHEMA>): QueueConfig {
  return Object.fromEntries(
    Object.keys(QUEUE_SCHEMA).map((key) => [
      camelCase(key),
      values[camelCase(`queue_${key}`) as keyof ConfigValues<typeof CONTROL_QUEUE_SCHEMA>],
    ]),
  ) as QueueConfig
}

/** Checks across the settings. @param prefix of their names in messages */
export function checkQueue(config: QueueConfig, prefix: 'queue_' | ''): string[] {
  const faults: string[] = []
  if (config.wsDeadMs <= config.wsPingMs) faults.push(`${prefix}ws_dead_ms must be longer than ${prefix}ws_ping_ms`)
  if (config.maxJobBytes > config.maxRequestBytes)
    faults.push(`${prefix}max_job_bytes must fit into ${prefix}max_request_bytes`)
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(config.pgSchema) || config.pgSchema.startsWith('pg_'))
    faults.push(
      `${prefix}pg_schema: must be 1 to 63 lower-case letters, digits and _, not beginning with pg_ or a digit`,
    )
  if (config.advertiseUrl !== '' && !/^https?:\/\/[^/?#@]+$/.test(config.advertiseUrl))
    faults.push(`${prefix}advertise_url: ${config.advertiseUrl} is not an address like http://host:port`)
  const defaults = parseTopicDefaults(config)
  if (typeof defaults === 'string') faults.push(`${prefix}topic_defaults: ${defaults}`)
  return faults
}

/** Checks TLS to PostgreSQL, once the address is known. @param prefix of their names in messages */
export function checkTls(config: QueueConfig & { readonly databaseUrl: string }, prefix: 'queue_' | ''): string[] {
  const url = readSecret(config.databaseUrl)
  const fault = tlsFault(url, config)
  const file = URL.parse(postgresUrl(url, config))?.searchParams.get('sslrootcert')
  return [
    ...(fault === undefined ? [] : [`${prefix}pg_sslmode: ${fault}`]),
    ...(file === null || file === undefined || existsSync(file) ? [] : [`${prefix}pg_sslrootcert: no file ${file}`]),
  ]
}

/** @returns a text for invalid ones */
function parseTopicDefaults({ topicDefaults }: QueueConfig): TopicConfig | string {
  let given: unknown
  try {
    given = JSON.parse(topicDefaults)
  } catch (error) {
    return `is not JSON: ${(error as Error).message}`
  }
  const parsed = topicConfig.strict().safeParse(given)
  if (parsed.success) return parsed.data
  return parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join(', ')
}

export function queueSettings(config: QueueConfig): QueueSettings {
  const topicDefaults = parseTopicDefaults(config)
  assert(typeof topicDefaults !== 'string', 'checkQueue refuses invalid topic defaults')
  return {
    requestBytesMax: config.maxRequestBytes,
    jobsPerRequestMax: config.maxJobsPerRequest,
    jobBytesMax: config.maxJobBytes,
    producerResponse: config.producerResponse,
    producerWaitMs: config.producerWaitMs,
    readTimeoutMs: config.readTimeoutSec * 1000,
    topicCreateRole: config.topicCreateRole,
    topicDefaults,
    wsReadBytesMax: config.wsReadLimitBytes,
    wsWriteTimeoutMs: config.wsWriteTimeoutSec * 1000,
    wsInitTimeoutMs: config.wsInitTimeoutMs,
    wsPingMs: config.wsPingMs,
    wsDeadMs: config.wsDeadMs,
    wsBufferedBytesMax: config.wsMaxBufferedBytes,
    wsErrorsMax: config.wsMaxErrors,
    heartbeatMs: config.heartbeatMs,
    consumersMax: config.maxConsumers,
  }
}

/** Of the container, or of the machine without one. */
function memoryLimit(): number {
  return Math.min(process.constrainedMemory() || totalmem(), totalmem())
}

/** Limits of each partition. */
export function queueLimits(config: QueueConfig): QueueLimits {
  const total = config.maxBytesTotal === 0 ? Math.floor(memoryLimit() / 2) : config.maxBytesTotal
  return {
    topicsMax: JOB_LIMITS.topicsMax,
    bytesMax: Math.floor(total / config.partitions),
    groupChangesMax: config.groupMaxChanges,
    groupBytesMax: config.groupMaxBytes,
    prefetchDefault: config.defaultPrefetch,
    prefetchMax: config.maxPrefetch,
    ackDeadlineMsMax: config.maxAckDeadlineMs,
    leaseFactorMax: config.maxLeaseFactor,
    resumeGraceMs: config.resumeGraceMs,
  }
}
