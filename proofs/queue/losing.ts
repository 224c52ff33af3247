/**
 * `npm run proofs -- queue-losing`: the shell of the queue over a journal that fails and loses what it may. Ends of the
 * process, failed writes and a full disk come at random groups, while producers submit and consumers acknowledge. After each
 * the journal is opened again, and what it holds is compared with what was promised.
 *
 * - Every id that was accepted is known, or an acknowledgement was sent for it.
 * - No job returns whose acknowledgement was confirmed.
 */
import { EXIT, systemClock } from '@vacancy/shared'
import { topicConfig } from '@vacancy/shared/contract'
import { createLogger, defineCommand, loadConfig } from '@vacancy/shared/node'
import { createRandom, pick, type Random } from '@vacancy/testkit/random'
import { queueLimits, queueSettings, SERVE_SCHEMA } from '../../queue/src/config.ts'
import { acknowledge, connect, disconnect, reject } from '../../queue/src/delivery.ts'
import { findById } from '../../queue/src/id-index.ts'
import type { Consumer, Delivery } from '../../queue/src/job.ts'
import { JournalFullError, type OpenJournal } from '../../queue/src/journal.ts'
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
import { SEED_FLAG, seedOfNow } from '../seed.ts'
import { createRows, jobsOf, storedRows, writeRows } from './memory-rows.ts'

/**
 * What happens to a group instead of being stored and confirmed:
 *
 * - `cut`: the process ends before it is stored
 * - `kill`: the process ends when it is stored
 * - `sync`: it fails, although the next process will find it
 * - `write`: it fails, and nothing of it is left
 * - `full`: there is no room for it
 * - `open`: it fails, and the journal cannot be opened at first
 */
const FAULTS = ['cut', 'kill', 'sync', 'write', 'full', 'open'] as const
type Fault = (typeof FAULTS)[number]

const TOPIC = 'orders'
const PRODUCERS = 3
const JOBS_OF_REQUEST = 5
/** Known jobs beyond which producers wait. */
const JOBS_MAX = 60
const DEAD_MAX = 10
/** Groups until the next fault. */
const GROUPS_MAX = 40
const RETRY_MS = 20
/** How long a consumer keeps a job, before it connects again. */
const KEEP_MS = 100
/** Requests of one producer in a row that may be refused while a journal is opened again. */
const REFUSED_MAX = 500
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
  readonly faults: { readonly [fault in Fault]: number }
  readonly accepted: number
  readonly confirmed: number
  readonly duplicates: number
  /** What was found, in the order it was found. */
  readonly found: readonly string[]
}

type Lane = ReturnType<typeof createLane>

export type LosingOptions = { readonly faults: number; readonly seed: number }

/** Stops at the first lane that found something. */
export async function loseGroups(
  { faults, seed }: LosingOptions,
  say: (line: string) => void = () => undefined,
): Promise<LosingReport> {
  const count = Math.min(LANES, faults)
  const lanes = Array.from({ length: count }, (_, n) => createLane(seed + n))
  const sum = (pick: (lane: Lane) => number) => lanes.reduce((total, lane) => total + pick(lane), 0)
  const faultsOf = (lane: Lane) => Object.values(lane.faults).reduce((total, each) => total + each, 0)
  const isOver = () => sum(faultsOf) >= faults || lanes.some(({ found }) => found.length > 0)
  const timer = setInterval(() => say(`${sum(faultsOf)} of ${faults} faults`), 10_000)
  await Promise.all(lanes.map((lane) => runLane(lane, isOver)))
  clearInterval(timer)
  return {
    seed,
    faults: Object.fromEntries(FAULTS.map((fault) => [fault, sum((lane) => lane.faults[fault])])) as {
      [fault in Fault]: number
    },
    accepted: sum(({ accepted }) => accepted),
    confirmed: sum(({ confirmed }) => confirmed),
    duplicates: sum(({ duplicates }) => duplicates),
    found: lanes.flatMap(({ found }) => found),
  }
}

function createLane(seed: number) {
  const random = createRandom(seed)
  return {
    random,
    /** What is stored: the next process finds it. */
    rows: createRows(),
    next: drawFault(random),
    isBlocked: false,
    partition: undefined as Partition | undefined,
    fates: new Map<string, Fate>(),
    /** Requests of unknown outcome, which are repeated with the same ids. */
    unanswered: [] as string[][],
    found: [] as string[],
    faults: { cut: 0, kill: 0, sync: 0, write: 0, full: 0, open: 0 } as { [fault in Fault]: number },
    isTopicAccepted: false,
    nextId: 0,
    accepted: 0,
    confirmed: 0,
    duplicates: 0,
    /** Called when the engine is loaded. */
    onLoaded: () => {},
  }
}

/** One process after the other with the same journal. */
async function runLane(lane: Lane, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const partition = createPartition(0, partitionOptions(lane))
    lane.partition = partition
    try {
      await startPartition(partition)
      await serve(lane, partition, isOver)
    } catch (error) {
      // The process ends when it cannot open its journal.
      if (!(error instanceof FaultError)) lane.found.push(`${error}`)
    }
    partition.stopping.abort()
    await stopPartition(partition)
  }
}

class FaultError extends Error {}

function drawFault(random: Random): { readonly fault: Fault; left: number } {
  return { fault: pick(random, FAULTS), left: 1 + random.below(GROUPS_MAX) }
}

/** @returns what happens to the next group */
function strike(lane: Lane): Fault | undefined {
  const { next, random } = lane
  if (--next.left > 0) return undefined
  lane.next = drawFault(random)
  lane.faults[next.fault]++
  return next.fault
}

function losingJournal(lane: Lane): OpenJournal {
  return async () => {
    const { partition, rows } = lane
    const { isBlocked } = lane
    lane.isBlocked = false
    if (isBlocked) throw new FaultError('the journal cannot be opened')
    let hasFailed = false
    return {
      kind: 'memory',
      load: async function* () {
        yield [...storedRows(rows)]
      },
      write: async (changes) => {
        await turn()
        if (partition?.stopping.signal.aborted) throw new FaultError('the process has ended')
        const fault = strike(lane)
        if (fault === 'full') throw new JournalFullError('no room')
        // What is written behind a group that failed is lost with it.
        if (!hasFailed && (fault === undefined || fault === 'kill' || fault === 'sync')) writeRows(rows, changes)
        await turn()
        if (fault === undefined) return
        hasFailed = true
        lane.isBlocked = fault === 'open'
        // Nothing of this process happens after its end.
        if (fault === 'cut' || fault === 'kill') partition?.stopping.abort()
        throw new FaultError(fault)
      },
      backup: async () => undefined,
      vacuum: async () => undefined,
      sizes: async () => ({ bytes: 0, freeBytes: 0 }),
      close: async () => undefined,
    }
  }
}

/** Other work runs between the operations of a journal. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function partitionOptions(lane: Lane): PartitionOptions {
  const { values } = loadConfig({ schema: SERVE_SCHEMA, file: undefined, searched: [], given: new Map() })
  const deliveries: Delivery[] = []
  return {
    clock: systemClock,
    log: createLogger({ level: 'silent', format: 'json', component: 'queue', write: () => undefined }),
    open: losingJournal(lane),
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
  if (partition === undefined || queue === undefined || consumer.topic === undefined) return
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
  const isServing = () => !partition.stopping.signal.aborted && lane.found.length === 0 && !isOver()
  await Promise.all(Array.from({ length: PRODUCERS }, () => produce(lane, server, isServing)))
}

async function produce(lane: Lane, server: QueueServer, isServing: () => boolean): Promise<void> {
  const [partition] = server.partitions
  for (let refused = 0; isServing(); ) {
    const topic = partition?.queue?.topics.get(TOPIC)
    const isFull = (topic?.jobs.size ?? 0) > JOBS_MAX
    if (isFull) redriveDead(partition)
    const ids = isFull ? undefined : (lane.unanswered.pop() ?? newIds(lane))
    try {
      // Some requests come twice at the same time.
      const times = ids === undefined ? 0 : lane.random.below(4) === 0 ? 2 : 1
      await Promise.all(Array.from({ length: times }, () => submitIds(lane, server, ids ?? [])))
      refused = 0
      // A turn of the event loop belongs to the consumer.
      await sleep(isFull ? RETRY_MS : 0)
    } catch (error) {
      if (!(error instanceof QueueError)) throw error
      if (ids !== undefined) lane.unanswered.push(ids)
      if (error.code === 'topic_not_found') await createTopic(lane, server)
      if (++refused > REFUSED_MAX && isServing())
        lane.found.push(`nothing is accepted after ${refused} requests: ${error.message}`)
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
  summary: 'Runs the queue over a journal that fails, and compares what was promised with what is left.',
  flags: {
    faults: {
      type: 'integer',
      min: 1,
      max: 100_000_000,
      default: 20_000,
      summary: 'Ends of the process, failed writes, a full disk.',
    },
    seed: SEED_FLAG,
  },
  run: async ({ flags: { faults, seed = seedOfNow() } }) => {
    const report = await loseGroups({ faults, seed }, (line) => process.stderr.write(`${line}\n`))
    process.stdout.write(`${JSON.stringify({ ...report, found: report.found.slice(0, 5) })}\n`)
    return report.found.length === 0 ? EXIT.ok : EXIT.failure
  },
})
