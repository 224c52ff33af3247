/** A queue that runs: its partitions, interfaces, metrics and tokens, and how it starts and stops. */
import { randomBytes, randomInt } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import type { Clock } from '@vacancy/shared'
import type { App } from '@vacancy/shared/api/options'
import type { Upgrade } from '@vacancy/shared/api/upgrades'
import { CLOSE_CODES, JOB_LIMITS, QUEUE_ERRORS } from '@vacancy/shared/contract'
import {
  certificateEnds,
  endingText,
  followQueueSize,
  type Metrics,
  nextTokenEnd,
  openTokens,
  postgresUrl,
  spanCounts,
  type TlsMaterial,
  type TokenStore,
  type Tracing,
  tokenEnds,
} from '@vacancy/shared/node'
import type { Logger } from 'pino'
import { type QueueConfig, queueLimits, queueSettings } from './config.ts'
import {
  acceptConsumer,
  type Consumers,
  closeAll,
  createConsumers,
  drain,
  flushDeliveries,
  sendDelivery,
  stopConsumers,
} from './consumer.ts'
import { HISTORY_STEP_MS, sampleHistory } from './history.ts'
import type { Consumer } from './job.ts'
import type { OpenJournal } from './journal.ts'
import { observe } from './latency.ts'
import { createQueueMetrics, type QUEUE_METRICS, registerQueueMetrics } from './metrics.ts'
import {
  createPartition,
  faultOf,
  handOver,
  momentOf,
  type Partition,
  startPartition,
  stopPartition,
  stopWaiting,
  writeForAWhile,
} from './partition.ts'
import { readPlainRequests } from './plain-requests.ts'
import type { PostgresOptions } from './postgres-journal.ts'
import { handleProducer, isProducerPath } from './producer.ts'
import { QueueError, type QueueServer } from './queue-server.ts'
import { resumeRedrives } from './redrive-runner.ts'
import { sqliteJournal } from './sqlite-journal.ts'
import { dropIdleTails } from './tail.ts'
import {
  createQueueAccess,
  QUEUE_ROLES,
  type QueueAccess,
  type QueueRole,
  setQueueTokens,
  TOPIC_ROLES,
} from './tokens.ts'
import { sampleRates } from './views.ts'

export type QueueNode = {
  readonly server: QueueServer
  readonly consumers: Consumers
  readonly metrics: Metrics<typeof QUEUE_METRICS>
  readonly dataDir: string
  readonly isSynced: boolean
  readonly tokens: TokenStore<QueueRole> | undefined
  readonly timer: NodeJS.Timeout
  readonly balanceTimer: NodeJS.Timeout
  readonly config: QueueConfig
  readonly sharing: Sharing
  sizes: { bytes: number; freeBytes: number }
}

export type QueueNodeOptions = Pick<QueueAccess, 'others' | 'isOtherGood'> & {
  readonly config: QueueConfig
  readonly dataDir: string
  /** Of PostgreSQL; '' for a file in `dataDir`. */
  readonly databaseUrl: string
  /** Reverse proxies that name the address of their callers. */
  readonly trustProxy: readonly string[]
  /** Where clients reach this process; '' until it is known. */
  readonly address: () => string
  readonly clock: Clock
  readonly log: Logger
  /** Undefined: no spans are recorded. */
  readonly tracing: Tracing | undefined
  /** Whether the process is the queue's own; its metrics then tell about the process, too. */
  readonly isAlone: boolean
}

/** How long a pack stays of which at most half is left. */
const SPARSE_MS = 10_000
/** How often a shutdown looks whether consumers have finished. */
const DRAIN_POLL_MS = 50

/** Of values of [0, 1): 32 bits each. */
const RANDOM_STEPS = 2 ** 32

/** The path of consumers. */
export const CONSUMER_PATH = '/ws'

/** @throws VacancyError when the auth file or the journal cannot be used */
export async function startQueue(options: QueueNodeOptions): Promise<QueueNode> {
  const node = createQueueNode(options)
  try {
    await startPartitions(node)
  } catch (error) {
    await stopQueue(node)
    throw error
  }
  return node
}

/** Without its journals: those are opened by `startPartitions`. @throws VacancyError when the auth file cannot be used */
export function createQueueNode(options: QueueNodeOptions): QueueNode {
  const { config, dataDir, clock, log, others, isOtherGood, trustProxy, tracing } = options
  const { allowQueryToken } = config
  const metrics = createQueueMetrics(isInFile(options) ? 'sqlite' : 'pg')
  const access = createQueueAccess({ clock, others, isOtherGood, allowQueryToken, trustProxy }, [])
  const tokens = openAuthFile(config.authFile, access, log)
  const partitions: Partition[] = []
  const server: QueueServer = { settings: queueSettings(config), log, access, metrics, tracing, partitions }
  const consumers = createConsumers(server)
  const sharing: Sharing = {
    processId: randomBytes(4).toString('hex'),
    processes: 1,
    isUnevenSince: undefined,
    isMoving: false,
  }
  for (let number = 0; number < config.partitions; number++)
    partitions.push(createPartition(number, partitionOptions(options, { server, consumers, sharing, number })))
  const timer = setInterval(() => sample(node), HISTORY_STEP_MS)
  timer.unref()
  const balanceTimer = setInterval(() => void balance(node), BALANCE_MS)
  balanceTimer.unref()
  const node: QueueNode = {
    server,
    consumers,
    metrics: registerQueueMetrics({
      metrics,
      isAlone: options.isAlone,
      // Otherwise those of the control plane.
      spans: () => spanCounts(options.isAlone ? tracing : undefined),
      connections: () => consumers.connections.size,
      partitions: () => partitions,
      journalSizes: () => node.sizes,
      now: () => ({ wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() }),
    }),
    dataDir,
    isSynced: config.sync === 'full',
    tokens,
    timer,
    balanceTimer,
    config,
    sharing,
    sizes: { bytes: 0, freeBytes: 0 },
  }
  return node
}

/** @throws VacancyError when a journal cannot be used; the queue is to be stopped then */
export async function startPartitions(node: QueueNode): Promise<void> {
  for (const partition of node.server.partitions) await startPartition(partition)
  sample(node)
}

/** @returns undefined without a file, where other tokens exist */
function openAuthFile(file: string, access: QueueAccess, log: Logger): TokenStore<QueueRole> | undefined {
  if (file === '') return undefined
  const tokens = openTokens({
    file,
    log,
    rules: { roles: QUEUE_ROLES, withTopics: TOPIC_ROLES },
    onReload: (entries) => setQueueTokens(access, entries),
  })
  setQueueTokens(access, tokens.tokens())
  return tokens
}

/** What of this process ends on a date, also as metric. @param material of its own listener, where it has one */
export function endsOf({ tokens, metrics }: QueueNode, material: TlsMaterial | undefined, nowMs: number): string {
  const known = tokens?.tokens() ?? []
  const gauge = metrics.of.vacancy_queue_not_after_seconds
  gauge.set({ what: 'token' }, nextTokenEnd(known, nowMs))
  if (material) gauge.set({ what: 'certificate' }, material.notAfterMs / 1000)
  if (material?.authorityNotAfterMs !== undefined) gauge.set({ what: 'authority' }, material.authorityNotAfterMs / 1000)
  return endingText([...certificateEnds('the listener', material), ...tokenEnds(known, nowMs)], nowMs)
}

/** Why the queue is not available; '' when it is. */
export function unavailability({ server }: QueueNode): string {
  // A standby is ready: it takes over.
  const faulty = server.partitions.map(faultOf).find((fault) => fault !== undefined && fault !== 'standby')
  return faulty === undefined ? '' : `The queue is not available: ${faulty}.`
}

type PartitionParts = {
  readonly server: QueueServer
  readonly consumers: Consumers
  readonly sharing: Sharing
  readonly number: number
}

/** Otherwise in PostgreSQL. */
function isInFile({ config, databaseUrl }: QueueNodeOptions): boolean {
  return config.journal === 'sqlite' || databaseUrl === ''
}

function journalOf(options: QueueNodeOptions, { server, sharing, number }: PartitionParts): OpenJournal {
  const { config, dataDir, databaseUrl, address, log } = options
  const common = { partition: number, partitions: config.partitions, isSynced: config.sync === 'full' }
  if (isInFile(options))
    return sqliteJournal({
      ...common,
      file: join(dataDir, number === 0 ? 'queue.db' : `queue-${number}.db`),
      sparseMs: SPARSE_MS,
    })
  const inPostgres: PostgresOptions = {
    ...common,
    url: postgresUrl(databaseUrl, config),
    schema: config.pgSchema,
    lockKey: config.pgLockKey,
    address: () => config.advertiseUrl || address(),
    processId: sharing.processId,
    mayOwn: () => ownedBy(server).length < shareOf(sharing, config.partitions),
    onProcesses: (count) => {
      sharing.processes = count
    },
    log,
  }
  // Its driver and statements take a tenth of a second to load, which a queue in a file does not need.
  return async (events) => (await import('./postgres-journal.ts')).postgresJournal(inPostgres)(events)
}

function partitionOptions(options: QueueNodeOptions, parts: PartitionParts) {
  const { config, clock, log } = options
  const { server, consumers, number } = parts
  const { metrics } = server
  const { partitions } = config
  return {
    clock,
    log,
    open: journalOf(options, parts),
    limits: queueLimits(config),
    partitions,
    ackFlushMs: config.ackFlushMs,
    // The hash tables of ids are keyed with it, so that clients must not be able to predict it.
    random: () => randomInt(RANDOM_STEPS) / RANDOM_STEPS,
    leasePrefix: () => randomBytes(4).toString('hex'),
    send: (delivery: Parameters<typeof sendDelivery>[1]) => sendDelivery(consumers, delivery),
    sent: () => flushDeliveries(consumers),
    onLost: (lost: Parameters<typeof closeAll>[1]) => closeAll(consumers, lost, CLOSE_CODES.overloaded, 'journal lost'),
    onLoading: () => followSize(server),
    onLoaded: (partition: Partition) => {
      followSize(server)
      metrics.ownerChanges.set(number, (metrics.ownerChanges.get(number) ?? 0) + 1)
      resumeRedrives(partition)
    },
    onGroup: (changes: number, seconds: number) => {
      observe(metrics.groupChanges, changes)
      observe(metrics.commitSeconds, seconds)
      followSize(server)
    },
    onError: (operation: 'open' | 'write' | 'full') => {
      metrics.errors[operation]++
    },
  }
}

/** A partition that loads may hold any number of jobs. */
function followSize({ partitions }: QueueServer): void {
  const bytesOf = ({ queue, unavailable }: Partition) => (unavailable === 'loading' ? Infinity : (queue?.bytes ?? 0))
  followQueueSize(partitions.reduce((bytes, partition) => bytes + bytesOf(partition), 0))
}

/** Every ten seconds: rates, the course of topics, and the size of the journal. */
function sample(node: QueueNode): void {
  for (const partition of node.server.partitions)
    if (partition.queue !== undefined) {
      const now = momentOf(partition)
      sampleRates(partition.queue, now)
      sampleHistory(partition.queue, Math.ceil(JOB_LIMITS.chartedTopicsMax / node.server.partitions.length), now)
      dropIdleTails(partition.queue, now)
    }
  void readSizes(node)
}

async function readSizes(node: QueueNode): Promise<void> {
  const sizes = { bytes: 0, freeBytes: 0 }
  try {
    for (const { journal } of node.server.partitions) {
      const own = await journal?.sizes()
      // In PostgreSQL all partitions are in the same tables.
      sizes.bytes = (journal?.kind === 'pg' ? 0 : sizes.bytes) + (own?.bytes ?? 0)
      sizes.freeBytes += own?.freeBytes ?? 0
    }
    node.sizes = sizes
  } catch (error) {
    // A lost journal is reported where it was lost.
    node.server.log.debug({ err: error }, 'journal size unknown')
  }
}

/** Answers requests of producers before the application sees them. */
export function putProducersInFront({ server }: App, node: QueueNode): void {
  if (!(server instanceof TlsServer)) readPlainRequests(server, node.server)
  const application = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[]
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (isProducerPath(request.url ?? '')) handleProducer(node.server, request, response)
    else for (const answer of application) answer(request, response)
  })
}

/** Accepts consumers, or writes the refusal. */
export function consumerUpgrade(node: QueueNode): Upgrade {
  return (request, socket, head) => serveConsumer(node, request, socket, head)
}

async function serveConsumer(node: QueueNode, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
  try {
    await acceptConsumer(node.consumers, request, socket, head)
  } catch (error) {
    if (!(error instanceof QueueError)) node.server.log.error({ err: error }, 'opening a consumer connection failed')
    refuseUpgrade(
      socket,
      error instanceof QueueError ? error : new QueueError('service_unavailable', 'internal error, see the log'),
    )
  }
}

function refuseUpgrade(socket: Duplex, { code, message, more }: QueueError): void {
  const status = QUEUE_ERRORS[code]
  const body = JSON.stringify({ error: code, message, ...more })
  const lines = [
    `HTTP/1.1 ${status} Refused`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...(status === 401 ? ['www-authenticate: Bearer'] : []),
    'connection: close',
    '',
    body,
  ]
  socket.end(lines.join('\r\n'))
}

/** Refuses new work, gives consumers time to finish, stores what is left and closes everything. */
export async function stopQueue(node: QueueNode): Promise<void> {
  const { server, consumers, config } = node
  clearInterval(node.timer)
  clearInterval(node.balanceTimer)
  consumers.isDraining = true
  for (const partition of server.partitions) {
    partition.unavailable = 'shutting_down'
    stopWaiting(partition)
  }
  const all = [...consumers.byConsumer.keys()]
  await drainFor(node, all, 'shutdown', config.shutdownGraceMs)
  stopConsumers(consumers)
  for (const partition of server.partitions) await stopPartition(partition)
  node.tokens?.close()
}

/** Lets consumers finish what they have, at most for so long. */
async function drainFor(
  { server, consumers }: QueueNode,
  all: readonly Consumer[],
  reason: string,
  graceMs: number,
): Promise<void> {
  const { clock } = server.access
  drain(consumers, all, reason, graceMs)
  const until = clock.monotonicMs() + graceMs
  const isBusy = () => all.some((consumer) => consumers.byConsumer.has(consumer) && consumer.deliveries.size > 0)
  while (isBusy() && clock.monotonicMs() < until) await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS))
  // The last acknowledgements are confirmed while their consumers are connected.
  await Promise.all(server.partitions.map(writeForAWhile))
}

// --- Sharing partitions between processes ---

/** How many processes share the queue, so that each owns its share of the partitions. */
type Sharing = {
  readonly processId: string
  processes: number
  /** Since when this process owns more than its share, monotonic. */
  isUnevenSince: number | undefined
  isMoving: boolean
}

function ownedBy({ partitions }: QueueServer): Partition[] {
  return partitions.filter(({ journal }) => journal !== undefined)
}

/** The most partitions that one process owns while others stand by. */
function shareOf({ processes }: Sharing, partitions: number): number {
  return Math.ceil(partitions / Math.max(1, processes))
}

const BALANCE_MS = 1_000
/** A process that restarts must not move partitions twice. */
const UNEVEN_MS = 10_000

/** Hands a partition over when this process owns more than its share for a while. */
async function balance(node: QueueNode): Promise<void> {
  const { server, consumers, config, sharing } = node
  if (sharing.isMoving || consumers.isDraining) return
  const now = server.access.clock.monotonicMs()
  const owned = ownedBy(server)
  const last = owned.findLast(({ unavailable }) => unavailable === undefined)
  if (last === undefined || owned.length <= shareOf(sharing, config.partitions)) {
    sharing.isUnevenSince = undefined
    return
  }
  sharing.isUnevenSince ??= now
  if (now - sharing.isUnevenSince < UNEVEN_MS) return
  sharing.isMoving = true
  server.log.info({ partition: last.number, processes: sharing.processes }, 'handing a queue partition over')
  last.unavailable = 'standby'
  const all = [...(last.queue?.consumers.values() ?? [])]
  await drainFor(node, all, 'rebalance', config.shutdownGraceMs)
  closeAll(consumers, all, CLOSE_CODES.overloaded, 'another process becomes the owner')
  await handOver(last)
  sharing.isMoving = false
}
