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
import { EXIT, systemClock } from '@vacancy/shared'
import { topicConfig } from '@vacancy/shared/contract'
import { createLogger, defineCommand, loadConfig } from '@vacancy/shared/node'
import { createRandom, pick, type Random } from '@vacancy/testkit/random'
import { errnoOf } from '../../engine/src/env.ts'
import { CrashError, crash, createSimulatedDisk, restart, type SimulatedDisk } from '../../engine/src/testing/disk.ts'
import { queueLimits, queueSettings, SERVE_SCHEMA } from '../../queue/src/config.ts'
import { acknowledge, connect, disconnect, reject } from '../../queue/src/delivery.ts'
import { findById } from '../../queue/src/id-index.ts'
import type { Consumer, Delivery } from '../../queue/src/job.ts'
import { createQueueMetrics } from '../../queue/src/metrics.ts'
import {
  createPartition,
  momentOf,
  outcomeOf,
  type Partition,
  type PartitionOptions,
  runSoon,
  startPartition,
  stopPartition,
} from '../../queue/src/partition.ts'
import { makeTopic, submitParsed } from '../../queue/src/producer.ts'
import { redrive } from '../../queue/src/queue.ts'
import { QueueError, type QueueServer, servingOf } from '../../queue/src/queue-server.ts'
import { createQueueAccess } from '../../queue/src/tokens.ts'
import { seedOfNow } from '../seed.ts'
import { losingJournal, SYNCS, type Sync } from './losing-journal.ts'
import { jobsOf } from './memory-rows.ts'

/**
 * - `cut`: the power fails, and what was not synced may be lost
 * - `kill`: the process ends, and the next one sees everything, synced or not
 * - `sync`: a sync fails, and the system forgets what was to be written
 * - `write`: a write fails half-way
 * - `full`: no room for a write
 */
const DISK_FAULTS = ['cut', 'kill', 'sync', 'write', 'full'] as const
type DiskFault = (typeof DISK_FAULTS)[number]

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
  disk: SimulatedDisk
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
  await Promise.all(lanes.map((lane) => runLane(lane, without, isOver)))
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
    disk: createSimulatedDisk(),
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
async function runLane(lane: Lane, without: Sync | undefined, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const partition = createPartition(0, partitionOptions(lane, without))
    let wasCut = false
    planFaults(lane, (fault) => {
      lane.faults[fault]++
      wasCut = fault === 'cut'
      // Nothing of this process happens after its end.
      if (wasCut || fault === 'kill') partition.stopping.abort()
    })
    try {
      await startPartition(partition)
      await serve(lane, partition, isOver)
    } catch (error) {
      // The process ends when it cannot open its journal.
      if (!isDiskError(error)) lane.found.push(`${error}`)
    }
    lane.disk.fault = () => undefined
    partition.stopping.abort()
    await stopPartition(partition)
    lane.disk = wasCut ? crash(lane.disk, () => lane.random.below(2) === 0) : restart(lane.disk)
  }
}

function isDiskError(error: unknown): boolean {
  return error instanceof CrashError || ['EIO', 'ENOSPC'].includes(errnoOf(error))
}

const CALLS_OF: { readonly [fault in DiskFault]?: readonly string[] } = {
  sync: ['syncData', 'syncDirectory'],
  write: ['write'],
  full: ['write'],
}
const CHANGES = ['create', 'write', 'rename', 'unlink', 'syncData', 'syncDirectory']

/** One fault after the other, until the process ends. */
function planFaults({ disk, random }: Lane, onFault: (fault: DiskFault) => void): void {
  const draw = () => ({ fault: pick(random, DISK_FAULTS), left: 1 + random.below(OPERATIONS_MAX) })
  let next = draw()
  disk.fault = ({ call, bytes }) => {
    const { fault } = next
    if (!CHANGES.includes(call) || --next.left > 0 || CALLS_OF[fault]?.includes(call) === false) return undefined
    next = draw()
    onFault(fault)
    if (fault === 'write') return { kind: 'short', bytes: random.below(bytes + 1), code: 'EIO' }
    return fault === 'cut' || fault === 'kill'
      ? { kind: 'crash' }
      : { kind: 'fail', code: fault === 'full' ? 'ENOSPC' : 'EIO' }
  }
}

function partitionOptions(lane: Lane, without: Sync | undefined): PartitionOptions {
  const { values } = loadConfig({ schema: SERVE_SCHEMA, file: undefined, searched: [], given: new Map() })
  const deliveries: Delivery[] = []
  return {
    clock: systemClock,
    log: createLogger({ level: 'silent', format: 'json', component: 'queue', write: () => undefined }),
    open: losingJournal(lane.disk, without),
    limits: queueLimits(values),
    partitions: 1,
    ackFlushMs: 1,
    random: () => lane.random.next() / 2 ** 32,
    leasePrefix: () => 'losing',
    send: (delivery) => deliveries.push(delivery),
    sent: () => {
      for (const delivery of deliveries.splice(0)) setImmediate(() => void consume(lane, delivery))
    },
    onLost: () => undefined,
    onLoading: () => undefined,
    onLoaded: (partition) => {
      compare(lane, partition)
      connectConsumer(partition)
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

function connectConsumer(partition: Partition): void {
  if (partition.queue === undefined) return
  const fields = { name: 'w', topicName: TOPIC, prefetch: 20, confirms: true, tokenName: '', remote: '' }
  const consumer = connect(partition.queue, fields, momentOf(partition))
  consumersOf.set(consumer, { partition, consumer })
  runSoon(partition)
}

/** A consumer that keeps jobs for long is stalled, and gets no others. */
function reconnect(consumer: Consumer): void {
  const partition = consumersOf.get(consumer)?.partition
  if (partition?.queue?.consumers.get(consumer.id) !== consumer) return
  disconnect(partition.queue, consumer, momentOf(partition))
  connectConsumer(partition)
}

/** Acknowledges most jobs, rejects some for good, and keeps some until the next connection. */
async function consume(lane: Lane, { consumer, job, seqId }: Delivery): Promise<void> {
  const partition = consumersOf.get(consumer)?.partition
  const queue = partition?.queue
  if (partition === undefined || queue === undefined || lane.disk.crashed || consumer.topic === undefined) return
  const { id } = job
  const ref = { jobId: id, seqId, lease: undefined }
  const choice = lane.random.below(10)
  const now = momentOf(partition)
  if (choice === 0) return void setTimeout(() => reconnect(consumer), KEEP_MS)
  if (choice === 1) reject(queue, consumer, ref, { error: 'bad', requeue: false, delayMs: undefined }, now)
  else {
    if (acknowledge(queue, consumer, ref, now) !== 'done') return
    const fate = lane.fates.get(id)
    if (fate !== undefined) fate.isAcknowledged = true
    // As the consumer interface confirms it.
    const group = queue.groups.at(-1) ?? queue.writing
    if (group !== undefined)
      void outcomeOf(group, false).then((outcome) => {
        if (outcome !== 'durable' || fate === undefined) return
        fate.isConfirmed = true
        lane.confirmed++
      })
  }
  runSoon(partition)
}

/** Producers and consumers work until the process ends. */
async function serve(lane: Lane, partition: Partition, isOver: () => boolean): Promise<void> {
  const { values } = loadConfig({ schema: SERVE_SCHEMA, file: undefined, searched: [], given: new Map() })
  const access = createQueueAccess(
    { clock: systemClock, others: undefined, isOtherGood: undefined, allowQueryToken: false },
    [],
  )
  const server: QueueServer = {
    settings: queueSettings(values),
    log: partition.options.log,
    access,
    metrics: createQueueMetrics('memory'),
    partitions: [partition],
  }
  const isServing = () => !lane.disk.crashed && lane.found.length === 0 && !isOver()
  await Promise.all(Array.from({ length: PRODUCERS }, () => produce(lane, server, isServing)))
}

async function produce(lane: Lane, server: QueueServer, isServing: () => boolean): Promise<void> {
  const [partition] = server.partitions
  for (let failingSince: number | undefined; isServing(); ) {
    const topic = partition?.queue?.topics.get(TOPIC)
    const isFull = (topic?.jobs.size ?? 0) > JOBS_MAX
    if (isFull) redriveDead(partition)
    const ids = isFull ? undefined : (lane.unanswered.pop() ?? newIds(lane))
    try {
      // Some requests come twice at the same time.
      const times = ids === undefined ? 0 : lane.random.below(4) === 0 ? 2 : 1
      await Promise.all(Array.from({ length: times }, () => submitIds(lane, server, ids ?? [])))
      failingSince = undefined
      // A turn of the event loop belongs to the consumer.
      await sleep(isFull ? RETRY_MS : 0)
    } catch (error) {
      if (!(error instanceof QueueError)) throw error
      if (ids !== undefined) lane.unanswered.push(ids)
      if (error.code === 'topic_not_found') await createTopic(lane, server)
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

async function submitIds(lane: Lane, server: QueueServer, ids: readonly string[]): Promise<void> {
  // An id that was finished before its request is repeated is a new job.
  for (const id of ids)
    if (lane.fates.get(id)?.isAcknowledged !== false)
      lane.fates.set(id, { isAccepted: false, isAcknowledged: false, isConfirmed: false })
  const fields = { priority: 0, flags: 0, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: undefined, bytes: 0 }
  const { duplicates } = await submitParsed(server, { topic: TOPIC, jobs: ids.map((id) => ({ id, ...fields })) })
  lane.duplicates += duplicates
  for (const id of ids) {
    const fate = lane.fates.get(id)
    if (fate !== undefined) fate.isAccepted = true
    lane.accepted++
  }
}

async function createTopic(lane: Lane, server: QueueServer): Promise<void> {
  try {
    await makeTopic(server, servingOf(server, TOPIC), TOPIC, topicConfig.parse({}))
    lane.isTopicAccepted = true
  } catch (error) {
    // Another producer creates it, or the journal failed meanwhile.
    if (!(error instanceof QueueError) && !/created once/.test(String(error))) throw error
  }
}

function redriveDead(partition: Partition | undefined): void {
  const topic = partition?.queue?.topics.get(TOPIC)
  if (partition?.queue === undefined || topic === undefined || topic.dead.length < DEAD_MAX) return
  const dead = jobsOf(topic)
    .filter((job) => job.past?.group !== undefined)
    .slice(0, DEAD_MAX)
  redrive(partition.queue, dead)
  runSoon(partition)
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
    seed: {
      type: 'integer',
      min: 0,
      max: 2 ** 31,
      summary: 'Of the random choices. Default: the time of day in seconds.',
    },
    without: { type: 'choice', choices: SYNCS, summary: 'Leaves out a sync, which must be found.' },
  },
  run: async ({ flags: { faults, seed = seedOfNow(), without } }) => {
    const options = { faults, seed, without: without as Sync | undefined }
    const report = await loseSyncs(options, (line) => process.stderr.write(`${line}\n`))
    process.stdout.write(`${JSON.stringify({ ...report, found: report.found.slice(0, 5) })}\n`)
    return report.found.length === 0 ? EXIT.ok : EXIT.failure
  },
})
