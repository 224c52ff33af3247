/** A queue that runs: its partitions, interfaces, metrics and tokens, and how it starts and stops. */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { Clock } from '@vacancy/shared'
import { CLOSE_CODES, QUEUE_ERRORS } from '@vacancy/shared/contract'
import { type Metrics, openTokens, type TokenStore } from '@vacancy/shared/node'
import type { Logger } from 'pino'
import type { App } from '../http/options.ts'
import type { Upgrade } from '../http/web.ts'
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
import { observe } from './latency.ts'
import { createQueueMetrics, type QUEUE_METRICS, registerQueueMetrics } from './metrics.ts'
import { createPartition, momentOf, type Partition, startPartition, stopPartition } from './partition.ts'
import { handleProducer, isProducerPath } from './producer.ts'
import { QueueError, type QueueServer } from './queue-server.ts'
import { resumeRedrives } from './redrive-runner.ts'
import { sqliteJournal } from './sqlite-journal.ts'
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
  readonly config: QueueConfig
  sizes: { bytes: number; freeBytes: number }
}

export type QueueNodeOptions = Pick<QueueAccess, 'others' | 'isOtherGood'> & {
  readonly config: QueueConfig
  readonly dataDir: string
  readonly clock: Clock
  readonly log: Logger
  /** Whether the process is the queue's own; its metrics then tell about the process, too. */
  readonly isAlone: boolean
}

const SAMPLE_MS = 10_000
/** How often a shutdown looks whether consumers have finished. */
const DRAIN_POLL_MS = 50

/** The path of consumers. */
export const CONSUMER_PATH = '/ws'

/** @throws VacancyError when the auth file or the journal cannot be used */
export async function startQueue(options: QueueNodeOptions): Promise<QueueNode> {
  const { config, dataDir, clock, log, others, isOtherGood } = options
  const metrics = createQueueMetrics('sqlite')
  const access = createQueueAccess({ clock, others, isOtherGood, allowQueryToken: config.allowQueryToken }, [])
  const tokens = openAuthFile(config.authFile, access, log)
  const partitions: Partition[] = []
  const server: QueueServer = { settings: queueSettings(config), log, access, metrics, partitions }
  const consumers = createConsumers(server)
  for (let number = 0; number < config.partitions; number++)
    partitions.push(createPartition(number, partitionOptions(options, { server, consumers, number })))
  const timer = setInterval(() => sample(node), SAMPLE_MS)
  timer.unref()
  const node: QueueNode = {
    server,
    consumers,
    metrics: registerQueueMetrics({
      metrics,
      isAlone: options.isAlone,
      connections: () => consumers.connections.size,
      partitions: () => partitions,
      journalSizes: () => node.sizes,
      now: () => ({ wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() }),
    }),
    dataDir,
    isSynced: config.sync === 'full',
    tokens,
    timer,
    config,
    sizes: { bytes: 0, freeBytes: 0 },
  }
  try {
    for (const partition of partitions) await startPartition(partition)
  } catch (error) {
    await stopQueue(node)
    throw error
  }
  sample(node)
  return node
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

/** Why the queue is not available; '' when it is. */
export function unavailability({ server }: QueueNode): string {
  const faulty = server.partitions.find(({ unavailable }) => unavailable !== undefined)
  return faulty === undefined ? '' : `The queue is not available: ${faulty.unavailable}.`
}

function partitionOptions(
  { config, dataDir, clock, log }: QueueNodeOptions,
  { server, consumers, number }: { server: QueueServer; consumers: Consumers; number: number },
) {
  const { metrics } = server
  const { partitions } = config
  const file = join(dataDir, number === 0 ? 'queue.db' : `queue-${number}.db`)
  return {
    clock,
    log,
    open: sqliteJournal({ file, partition: number, partitions, isSynced: config.sync === 'full' }),
    limits: queueLimits(config),
    partitions,
    ackFlushMs: config.ackFlushMs,
    random: Math.random,
    leasePrefix: () => randomBytes(4).toString('hex'),
    send: (delivery: Parameters<typeof sendDelivery>[1]) => sendDelivery(consumers, delivery),
    sent: () => flushDeliveries(consumers),
    onLost: (lost: Parameters<typeof closeAll>[1]) => closeAll(consumers, lost, CLOSE_CODES.overloaded, 'journal lost'),
    onLoaded: (partition: Partition) => {
      metrics.ownerChanges.set(number, (metrics.ownerChanges.get(number) ?? 0) + 1)
      resumeRedrives(partition)
    },
    onGroup: (changes: number, seconds: number) => {
      observe(metrics.groupChanges, changes)
      observe(metrics.commitSeconds, seconds)
    },
    onError: (operation: 'open' | 'write' | 'full') => {
      metrics.errors[operation]++
    },
  }
}

/** Every ten seconds: rates, and the size of the journal. */
function sample(node: QueueNode): void {
  for (const partition of node.server.partitions)
    if (partition.queue !== undefined) sampleRates(partition.queue, momentOf(partition))
  void readSizes(node)
}

async function readSizes(node: QueueNode): Promise<void> {
  const sizes = { bytes: 0, freeBytes: 0 }
  try {
    for (const { journal } of node.server.partitions) {
      const own = await journal?.sizes()
      sizes.bytes += own?.bytes ?? 0
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
  consumers.isDraining = true
  for (const partition of server.partitions) partition.unavailable = 'shutting_down'
  const all = [...consumers.byConsumer.keys()]
  drain(consumers, all, 'shutdown', config.shutdownGraceMs)
  const until = server.access.clock.monotonicMs() + config.shutdownGraceMs
  const isBusy = () => [...consumers.byConsumer.keys()].some(({ deliveries }) => deliveries.size > 0)
  while (isBusy() && server.access.clock.monotonicMs() < until)
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS))
  stopConsumers(consumers)
  for (const partition of server.partitions) await stopPartition(partition)
  node.tokens?.close()
}
