/**
 * `npm run proofs -- queue-losing`: the shell of the queue on a disk that loses what was not synced. Power cuts, ends of the
 * process, failed syncs, failed writes and a full disk come at random operations, while producers submit and consumers
 * acknowledge. After each the journal is opened again, and what it holds is compared with what was promised.
 *
 * - Every id that was accepted is known, or an acknowledgement was sent for it.
 * - No job returns whose acknowledgement was confirmed.
 *
 * `--without SYNC` leaves a sync of the journal out, which must be found.
 */
import { randomInt } from 'node:crypto'
import { EXIT, systemClock } from '@vacancy/shared'
import { topicConfig } from '@vacancy/shared/contract'
import { createLogger, defineCommand, loadConfig } from '@vacancy/shared/node'
import { createRandom, type Random } from '@vacancy/testkit/random'
import * as config from '../../queue/src/config.ts'
import * as delivery from '../../queue/src/delivery.ts'
import { findById } from '../../queue/src/id-index.ts'
import type { Consumer, Delivery } from '../../queue/src/job.ts'
import * as metrics from '../../queue/src/metrics.ts'
import type { Partition, PartitionOptions } from '../../queue/src/partition.ts'
import * as partitions from '../../queue/src/partition.ts'
import * as producer from '../../queue/src/producer.ts'
import * as queues from '../../queue/src/queue.ts'
import type { QueueServer } from '../../queue/src/queue-server.ts'
import * as queueServer from '../../queue/src/queue-server.ts'
import * as tokens from '../../queue/src/tokens.ts'
import { createLosingDisk, DISK_FAULTS, type DiskFault, type LosingDisk, planFault, startAgain } from './losing-disk.ts'
import { losingJournal, SYNCS, type Sync } from './losing-journal.ts'
import { jobsOf } from './memory-rows.ts'

const TOPIC = 'orders'
const PRODUCERS = 3
const JOBS_OF_REQUEST = 5
/** Known jobs beyond which producers wait. */
const JOBS_MAX = 60
const DEAD_MAX = 10
/** Operations until the next fault. */
const OPERATIONS_MAX = 60
const RETRY_MS = 20
/** How long a consumer keeps a job, before it connects again. */
const KEEP_MS = 100
const RELOAD_MS = 5_000
/** Queues that run at the same time: most of the time they wait to be opened again. */
const LANES = 100

type Fate = {
  isAccepted: boolean
  /** An acknowledgement was sent: it may be gone. */
  isAcknowledged: boolean
  /** It is durable: it must be gone. */
  isConfirmed: boolean
}

export type LosingReport = {
  readonly seed: number
  readonly faults: { readonly [fault in DiskFault]: number }
  readonly accepted: number
  readonly confirmed: number
  readonly duplicates: number
  /** What was found, in the order it was found. */
  readonly found: readonly string[]
}

type Lane = {
  readonly random: Random
  readonly disk: LosingDisk
  readonly fates: Map<string, Fate>
  /** Requests of unknown outcome, which are repeated with the same ids. */
  readonly unanswered: string[][]
  readonly found: string[]
  readonly faults: { [fault in DiskFault]: number }
  isTopicAccepted: boolean
  nextId: number
  accepted: number
  confirmed: number
  duplicates: number
  /** Called when the engine is loaded. */
  onLoaded: () => void
}

export type LosingOptions = { readonly faults: number; readonly seed: number; readonly without?: Sync | undefined }

/** The code under test. */
const CODE = { ...config, ...metrics, ...tokens, ...partitions, ...producer, ...queueServer, ...delivery, ...queues }
type Code = typeof CODE

/** Stops at the first lane that found something. */
export async function loseSyncs(
  { faults, seed, without }: LosingOptions,
  say: (line: string) => void = () => undefined,
): Promise<LosingReport> {
  const count = Math.min(LANES, faults)
  const lanes = Array.from({ length: count }, (_, n) => createLane(seed + n))
  const sum = (pick: (lane: Lane) => number) => lanes.reduce((total, lane) => total + pick(lane), 0)
  const faultsOf = (lane: Lane) => Object.values(lane.faults).reduce((total, each) => total + each, 0)
  const isOver = () => sum(faultsOf) >= faults || lanes.some(({ found }) => found.length > 0)
  const timer = setInterval(() => say(`${sum(faultsOf)} of ${faults} faults`), 10_000)
  await Promise.all(lanes.map((lane) => runLane(CODE, lane, without, isOver)))
  clearInterval(timer)
  return {
    seed,
    faults: Object.fromEntries(DISK_FAULTS.map((fault) => [fault, sum((lane) => lane.faults[fault])])) as {
      [fault in DiskFault]: number
    },
    accepted: sum(({ accepted }) => accepted),
    confirmed: sum(({ confirmed }) => confirmed),
    duplicates: sum(({ duplicates }) => duplicates),
    found: lanes.flatMap(({ found }) => found),
  }
}

function createLane(seed: number): Lane {
  const random = createRandom(seed)
  return {
    random,
    disk: createLosingDisk(random),
    fates: new Map(),
    unanswered: [],
    found: [],
    faults: { cut: 0, kill: 0, sync: 0, write: 0, full: 0 },
    isTopicAccepted: false,
    nextId: 0,
    accepted: 0,
    confirmed: 0,
    duplicates: 0,
    onLoaded: () => undefined,
  }
}

/** One process after the other on the same disk. */
async function runLane(code: Code, lane: Lane, without: Sync | undefined, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const partition = code.createPartition(0, partitionOptions(code, lane, without))
    let wasCut = false
    lane.disk.onFault = (fault) => {
      lane.faults[fault]++
      wasCut = fault === 'cut'
      // Nothing of this process happens after its end.
      if (lane.disk.isOff) partition.stopping.abort()
      else planNext(lane)
    }
    planNext(lane)
    try {
      await code.startPartition(partition)
      await serve(code, lane, partition, isOver)
    } catch (error) {
      // The process ends when it cannot open its journal.
      if (!isDiskError(error)) lane.found.push(`${error}`)
    }
    lane.disk.plan = undefined
    partition.stopping.abort()
    await code.stopPartition(partition)
    startAgain(lane.disk, wasCut)
  }
}

function isDiskError(error: unknown): boolean {
  return error instanceof Error && error.name === 'DiskError'
}

function planNext({ disk, random }: Lane): void {
  planFault(disk, DISK_FAULTS[random.below(DISK_FAULTS.length)] as DiskFault, 1 + random.below(OPERATIONS_MAX))
}

function partitionOptions(code: Code, lane: Lane, without: Sync | undefined): PartitionOptions {
  const { values } = loadConfig({ schema: code.SERVE_SCHEMA, file: undefined, searched: [], given: new Map() })
  const deliveries: Delivery[] = []
  return {
    clock: systemClock,
    log: createLogger({ level: 'silent', format: 'json', component: 'queue', write: () => undefined }),
    open: losingJournal(lane.disk, without),
    limits: code.queueLimits(values),
    partitions: 1,
    ackFlushMs: 1,
    random: () => lane.random.next() / 2 ** 32,
    leasePrefix: () => 'losing',
    send: (delivery) => deliveries.push(delivery),
    sent: () => {
      for (const delivery of deliveries.splice(0)) setImmediate(() => void consume(code, lane, delivery))
    },
    onLost: () => undefined,
    onLoading: () => undefined,
    onLoaded: (partition) => {
      compare(lane, partition)
      connectConsumer(code, partition)
      lane.onLoaded()
    },
    onGroup: () => undefined,
    onError: () => undefined,
  }
}

/** What the journal holds beside what was promised. */
function compare(lane: Lane, { queue }: Partition): void {
  const topic = queue?.topics.get(TOPIC)
  if (topic === undefined && lane.isTopicAccepted) lane.found.push('the topic is lost')
  for (const [id, { isAccepted, isAcknowledged, isConfirmed }] of lane.fates) {
    const isKnown = findById(topic?.jobs, id) !== undefined
    if (isAccepted && !isAcknowledged && !isKnown) lane.found.push(`the accepted job ${id} is lost`)
    if (isConfirmed && isKnown) lane.found.push(`the finished job ${id} returned`)
  }
}

type PartitionConsumer = { readonly partition: Partition; readonly consumer: Consumer }
const consumersOf = new WeakMap<Consumer, PartitionConsumer>()

function connectConsumer(code: Code, partition: Partition): void {
  if (partition.queue === undefined) return
  const fields = { name: 'w', topicName: TOPIC, prefetch: 20, confirms: true, tokenName: '', remote: '' }
  const consumer = code.connect(partition.queue, fields, code.momentOf(partition))
  consumersOf.set(consumer, { partition, consumer })
  code.runSoon(partition)
}

/** A consumer that keeps jobs for long is stalled, and gets no others. */
function reconnect(code: Code, consumer: Consumer): void {
  const partition = consumersOf.get(consumer)?.partition
  if (partition?.queue?.consumers.get(consumer.id) !== consumer) return
  code.disconnect(partition.queue, consumer, code.momentOf(partition))
  connectConsumer(code, partition)
}

/** Acknowledges most jobs, rejects some for good, and keeps some until the next connection. */
async function consume(code: Code, lane: Lane, { consumer, job, seqId }: Delivery): Promise<void> {
  const partition = consumersOf.get(consumer)?.partition
  const queue = partition?.queue
  if (partition === undefined || queue === undefined || lane.disk.isOff || consumer.topic === undefined) return
  const { id } = job
  const ref = { jobId: id, seqId, lease: undefined }
  const choice = lane.random.below(10)
  const now = code.momentOf(partition)
  if (choice === 0) return void setTimeout(() => reconnect(code, consumer), KEEP_MS)
  if (choice === 1) code.reject(queue, consumer, ref, { error: 'bad', requeue: false, delayMs: undefined }, now)
  else {
    if (code.acknowledge(queue, consumer, ref, now) !== 'done') return
    const fate = lane.fates.get(id)
    if (fate !== undefined) fate.isAcknowledged = true
    // As the consumer interface confirms it.
    const group = queue.groups.at(-1) ?? queue.writing
    if (group !== undefined)
      void code.outcomeOf(group, false).then((outcome) => {
        if (outcome !== 'durable' || fate === undefined) return
        fate.isConfirmed = true
        lane.confirmed++
      })
  }
  code.runSoon(partition)
}

/** Producers and consumers work until the process ends. */
async function serve(code: Code, lane: Lane, partition: Partition, isOver: () => boolean): Promise<void> {
  const { values } = loadConfig({ schema: code.SERVE_SCHEMA, file: undefined, searched: [], given: new Map() })
  const access = code.createQueueAccess(
    { clock: systemClock, others: undefined, isOtherGood: undefined, allowQueryToken: false },
    [],
  )
  const server: QueueServer = {
    settings: code.queueSettings(values),
    log: partition.options.log,
    access,
    metrics: code.createQueueMetrics('memory'),
    partitions: [partition],
  }
  const isServing = () => !lane.disk.isOff && lane.found.length === 0 && !isOver()
  await Promise.all(Array.from({ length: PRODUCERS }, () => produce(code, lane, server, isServing)))
}

async function produce(code: Code, lane: Lane, server: QueueServer, isServing: () => boolean): Promise<void> {
  const [partition] = server.partitions
  for (let failingSince: number | undefined; isServing(); ) {
    const topic = partition?.queue?.topics.get(TOPIC)
    const isFull = (topic?.jobs.size ?? 0) > JOBS_MAX
    if (isFull) redriveDead(code, partition)
    const ids = isFull ? undefined : (lane.unanswered.pop() ?? newIds(lane))
    try {
      // Some requests come twice at the same time.
      const times = ids === undefined ? 0 : lane.random.below(4) === 0 ? 2 : 1
      await Promise.all(Array.from({ length: times }, () => submitIds(code, lane, server, ids ?? [])))
      failingSince = undefined
      // A turn of the event loop belongs to the consumer.
      await sleep(isFull ? RETRY_MS : 0)
    } catch (error) {
      if (!(error instanceof code.QueueError)) throw error
      if (ids !== undefined) lane.unanswered.push(ids)
      if (error.code === 'topic_not_found') await createTopic(code, lane, server)
      failingSince ??= performance.now()
      if (performance.now() - failingSince > RELOAD_MS && isServing())
        lane.found.push(`nothing is accepted for ${RELOAD_MS} ms: ${error.message}`)
      await sleep(RETRY_MS)
    }
  }
}

function newIds(lane: Lane): string[] {
  return Array.from({ length: 1 + lane.random.below(JOBS_OF_REQUEST) }, () => `job-${lane.nextId++}`)
}

async function submitIds(code: Code, lane: Lane, server: QueueServer, ids: readonly string[]): Promise<void> {
  // An id that was finished before its request is repeated is a new job.
  for (const id of ids)
    if (lane.fates.get(id)?.isAcknowledged !== false)
      lane.fates.set(id, { isAccepted: false, isAcknowledged: false, isConfirmed: false })
  const fields = { priority: 0, flags: 0, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: undefined, bytes: 0 }
  const { duplicates } = await code.submitParsed(server, { topic: TOPIC, jobs: ids.map((id) => ({ id, ...fields })) })
  lane.duplicates += duplicates
  for (const id of ids) {
    const fate = lane.fates.get(id)
    if (fate !== undefined) fate.isAccepted = true
    lane.accepted++
  }
}

async function createTopic(code: Code, lane: Lane, server: QueueServer): Promise<void> {
  try {
    await code.makeTopic(server, code.servingOf(server, TOPIC), TOPIC, topicConfig.parse({}))
    lane.isTopicAccepted = true
  } catch (error) {
    // Another producer creates it, or the journal failed meanwhile.
    if (!(error instanceof code.QueueError) && !/created once/.test(String(error))) throw error
  }
}

function redriveDead(code: Code, partition: Partition | undefined): void {
  const topic = partition?.queue?.topics.get(TOPIC)
  if (partition?.queue === undefined || topic === undefined || topic.dead.length < DEAD_MAX) return
  const dead = jobsOf(topic)
    .filter((job) => job.past?.group !== undefined)
    .slice(0, DEAD_MAX)
  code.redrive(partition.queue, dead)
  code.runSoon(partition)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => (ms === 0 ? setImmediate(resolve) : setTimeout(resolve, ms)))
}

export const queueLosingCommand = defineCommand({
  name: 'proofs queue-losing',
  component: 'queue-losing',
  summary: 'Runs the queue on a disk that loses what was not synced, and compares what was promised with what is left.',
  flags: {
    faults: {
      type: 'integer',
      min: 1,
      max: 100_000_000,
      default: 20_000,
      summary: 'Power cuts, ends of the process, failed syncs and writes.',
    },
    seed: { type: 'integer', min: 0, max: 2 ** 31, summary: 'Of the random choices. Default: random.' },
    without: { type: 'choice', choices: SYNCS, summary: 'Leaves out a sync, which must be found.' },
  },
  run: async ({ flags: { faults, seed = randomInt(2 ** 31), without } }) => {
    const options = { faults, seed, without: without as Sync | undefined }
    const report = await loseSyncs(options, (line) => process.stderr.write(`${line}\n`))
    process.stdout.write(`${JSON.stringify({ ...report, found: report.found.slice(0, 5) })}\n`)
    return report.found.length === 0 ? EXIT.ok : EXIT.failure
  },
})
