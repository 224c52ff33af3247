/**
 * A random run of the queue engine beside an exact model and a journal in memory, and what must hold after every step
 * (docs/design/queue.md#invariants).
 */
import { assert } from '@vacancy/shared'
import { type TopicConfig, topicConfig } from '@vacancy/shared/contract'
import { createRandom, type Random } from '@vacancy/testkit/random'
import {
  acknowledge,
  connect,
  disconnect,
  dispatch,
  extend,
  heard,
  pauseConsumer,
  reject,
  release,
  releaseAll,
  resume,
  setPrefetch,
  suspend,
} from '../../queue/src/delivery.ts'
import { findById } from '../../queue/src/id-index.ts'
import {
  type Consumer,
  type Delivery,
  type Job,
  type Moment,
  type NewJob,
  STATE,
  type Topic,
} from '../../queue/src/job.ts'
import {
  advance,
  cancel,
  commitGroup,
  configureTopic,
  createTopic,
  deleteTopic,
  purge,
  redrive,
  redriveTo,
  refuseGrowth,
  restoreFinished,
  restoreJob,
  restoreTopic,
  submit,
  unfinishedOf,
} from '../../queue/src/queue.ts'
import { beginRedrive, redriveEnded, setRedriveState, stepRedrive as stepLong } from '../../queue/src/redrive.ts'
import { createQueue, failGroups, type Group, type Queue, takeGroup, waitForGroup } from '../../queue/src/state.ts'
import { createRows, jobsOf, type MemoryRows, storedRows, writeRows } from './memory-rows.ts'

/** What a producer knows of a job. */
type Promised = {
  /** The 200 was sent. */
  isAccepted: boolean
  /** Finished, cancelled, purged, dropped, or its topic deleted: it may be anywhere or nowhere. */
  isEnded: boolean
}

export type Run = {
  readonly random: Random
  readonly clock: { wallMs: number; monotonicMs: number }
  queue: Queue
  readonly rows: MemoryRows
  /** By topic and id, of the newest job with that id. */
  readonly promised: Map<string, Promised>
  readonly consumers: Consumer[]
  /** In flight, as the consumers see it. */
  readonly deliveries: Set<Delivery>
  readonly counts: { [step: string]: number }
}

const TOPICS = ['orders', 'mail', 'sync']
const LIMITS = {
  topicsMax: 4,
  bytesMax: 400_000,
  groupChangesMax: 20,
  groupBytesMax: 20_000,
  prefetchDefault: 64,
  prefetchMax: 1000,
  ackDeadlineMsMax: 43_200_000,
  leaseFactorMax: 10,
  resumeGraceMs: 2_000,
}

export function createRun(seed: number): Run {
  const random = createRandom(seed)
  const clock = { wallMs: 1_700_000_000_000, monotonicMs: 1_000 }
  return {
    random,
    clock,
    queue: emptyQueue(random, clock),
    rows: createRows(),
    promised: new Map(),
    consumers: [],
    deliveries: new Set(),
    counts: {},
  }
}

function emptyQueue(random: Random, clock: Moment): Queue {
  const uniform = () => random.next() / 2 ** 32
  return createQueue({ limits: LIMITS, random: uniform, leasePrefix: 'm', nextConsumer: 1, consumerStride: 1 }, clock)
}

const nowOf = ({ clock }: Run): Moment => ({ ...clock })

/** One random step, and all checks. */
export function step(run: Run): void {
  const { random } = run
  const name = pickStep(random)
  run.counts[name] = (run.counts[name] ?? 0) + 1
  const dropped = new Map([...run.queue.topics.values()].map((topic) => [topic, topic.totals.deadDropped]))
  STEPS[name]?.[1](run)
  for (const [topic, before] of dropped) noticeDropped(run, topic, topic.totals.deadDropped - before)
  check(run)
}

type Step = readonly [weight: number, run: (run: Run) => void]

const STEPS: { readonly [name: string]: Step } = {
  create: [2, stepCreate],
  submit: [18, stepSubmit],
  commit: [18, stepCommit],
  dispatch: [18, stepDispatch],
  ack: [16, stepAck],
  nack: [6, stepNack],
  release: [2, stepRelease],
  extend: [2, stepExtend],
  connect: [3, stepConnect],
  disconnect: [2, stepDisconnect],
  cut: [2, stepCut],
  credit: [1, stepCredit],
  pauseConsumer: [1, stepPauseConsumer],
  time: [10, stepTime],
  clock: [1, stepClock],
  cancel: [2, stepCancel],
  purge: [0.3, stepPurge],
  configure: [1, stepConfigure],
  redrive: [2, stepRedrive],
  redriveTo: [1, stepRedriveTo],
  longRedrive: [3, stepLongRedrive],
  deleteTopic: [0.2, stepDeleteTopic],
  full: [1, stepFull],
  restart: [0.5, stepRestart],
}
const WEIGHT = Object.values(STEPS).reduce((sum, [weight]) => sum + weight, 0)

function pickStep(random: Random): string {
  let left = (random.next() / 2 ** 32) * WEIGHT
  for (const [name, [weight]] of Object.entries(STEPS)) {
    left -= weight
    if (left < 0) return name
  }
  return 'commit'
}

function anyTopic({ random, queue }: Run): Topic | undefined {
  const topics = [...queue.topics.values()]
  return topics[random.below(Math.max(1, topics.length))]
}

/** @param isHeld of a consumer that is connected; others can only be acknowledged by another one */
function anyDelivery({ random, deliveries }: Run, isHeld = true): Delivery | undefined {
  const all = isHeld ? [...deliveries].filter(({ consumer }) => consumer.awayUntil === 0) : [...deliveries]
  return all[random.below(Math.max(1, all.length))]
}

function randomConfig({ random }: Run): TopicConfig {
  const some = (chance: number, value: Partial<TopicConfig>) => (random.below(100) < chance ? value : {})
  return topicConfig.parse({
    ack_deadline_ms: 1_000 + random.below(5) * 1_000,
    max_attempts: 1 + random.below(4),
    max_deliveries: 1 + random.below(8),
    retry_base_ms: random.below(3) * 500,
    starvation_guard: [0, 16, 2][random.below(3)],
    ...some(20, { max_leased: 1 + random.below(5) }),
    ...some(20, { rate_per_sec: 1 + random.below(20) }),
    ...some(10, { ordered: true }),
    ...some(10, { paused: true }),
    ...some(20, { max_jobs: 5 + random.below(40) }),
    ...some(20, { dlq_max_jobs: random.below(5) }),
    ...some(30, { dedup_window_sec: 1 + random.below(60) }),
    ...some(10, { dlq_max_age_ms: 5_000 }),
  })
}

const key = (topic: string, id: string) => `${topic}/${id}`

function stepCreate(run: Run): void {
  const name = TOPICS[run.random.below(TOPICS.length)] as string
  if (!run.queue.topics.has(name)) createTopic(run.queue, name, randomConfig(run), nowOf(run))
}

function stepSubmit(run: Run): void {
  const topic = anyTopic(run)
  if (topic === undefined) return
  const { random, clock } = run
  const jobs: NewJob[] = Array.from({ length: 1 + random.below(random.below(5) === 0 ? 30 : 4) }, () => ({
    id: `job-${random.below(300)}`,
    priority: random.below(4) === 0 ? random.below(10) : 0,
    flags: 0,
    maxAttempts: random.below(5) === 0 ? 1 + random.below(3) : 0,
    ackDeadlineMs: 0,
    runAt: random.below(6) === 0 ? clock.wallMs + random.below(10_000) : 0,
    data: undefined,
    bytes: random.below(1_000),
  }))
  for (const [n, job] of jobs.entries()) if (job.runAt > 0 && random.below(2) === 0) jobs[n] = { ...job, flags: 2 }
  const before = new Map(jobs.map(({ id }) => [id, findById(topic.jobs, id)]))
  const finished = new Set(jobs.filter(({ id }) => topic.finished.has(id)).map(({ id }) => id))
  const result = submit(run.queue, topic, jobs, nowOf(run))
  if ('refused' in result) {
    for (const [id, job] of before) assert(findById(topic.jobs, id) === job, 'a refused submission changes nothing')
    return
  }
  assert(result.accepted + result.duplicateIds.length === jobs.length, 'every job of a request is counted once')
  if (result.accepted > 0)
    assert(unfinishedOf(topic) <= topic.config.max_jobs, 'a topic holds at most max_jobs unfinished jobs')
  let open = result.groups.length
  const accept = () => {
    for (const { id } of jobs) {
      const mine = before.get(id) === undefined && !finished.has(id)
      const known = run.promised.get(key(topic.name, id))
      if (mine)
        run.promised.set(key(topic.name, id), { isAccepted: true, isEnded: topic.isGone || known?.isEnded === true })
    }
  }
  for (const { id } of jobs)
    if (before.get(id) === undefined && !finished.has(id))
      run.promised.set(key(topic.name, id), { isAccepted: false, isEnded: false })
  for (const group of result.groups) {
    waitForGroup(group, true, (outcome) => {
      open--
      if (outcome === 'durable' && open === 0) accept()
    })
  }
}

function stepCommit(run: Run): void {
  const group = takeGroup(run.queue)
  if (group === undefined) return
  writeRows(run.rows, group.changes)
  commitGroup(run.queue, nowOf(run))
  for (const change of group.changes)
    if (change.kind === 'redrive' && change.job.state === STATE.ready)
      assert(change.job.failures === 0 && change.job.deliveries === 0, 'a redriven job begins again')
}

/** The disk is full: growth is refused, and the rest is written. */
function stepFull(run: Run): void {
  const group = takeGroup(run.queue)
  if (group === undefined) return
  refuseGrowth(run.queue, nowOf(run))
  writeRows(run.rows, group.changes)
  commitGroup(run.queue, nowOf(run))
}

function stepDispatch(run: Run): void {
  const { queue } = run
  for (let n = 0; n < 3 && dispatch(queue, nowOf(run), (delivery) => delivered(run, delivery)); n++);
}

function delivered(run: Run, delivery: Delivery): void {
  const { job, consumer } = delivery
  assert(consumer.deliveries.size <= consumer.window, 'I3: deliveries fit into the window')
  assert(run.rows.jobs.has(job.seq), 'I4: only stored jobs are delivered')
  assert(!job.topic.config.paused, 'nothing is delivered from a paused topic')
  const { max_leased, ordered } = job.topic.config
  assert(max_leased === 0 || job.topic.counts.leased <= max_leased, 'max_leased is exact')
  assert(!ordered || job.topic.counts.leased <= 1, 'an ordered topic has one delivery')
  for (const other of run.deliveries) assert(other.job !== job, 'I2: a job is in flight once')
  if (job.topic.config.starvation_guard === 0)
    for (const other of jobsOf(job.topic)) {
      if (other.state !== STATE.ready) continue
      assert(other.priority <= job.priority, 'higher priorities go first')
      if (other.priority === job.priority && isFresh(other) && isFresh(job, 1))
        assert(other.seq > job.seq, 'first deliveries are in order of acceptance')
    }
  run.deliveries.add(delivery)
}

/** Never waited for anything but its first delivery. */
function isFresh({ deliveries, runAt, past }: Job, delivered = 0): boolean {
  return deliveries === delivered && runAt === 0 && past === undefined
}

/** Ended deliveries leave the consumers' view. */
function forgetEnded({ deliveries }: Run): void {
  for (const delivery of deliveries) if (delivery.isResolved) deliveries.delete(delivery)
}

function refOf(run: Run, delivery: Delivery) {
  const how = run.random.below(3)
  return {
    jobId: how === 0 ? undefined : delivery.job.id,
    seqId: how === 1 ? undefined : delivery.seqId,
    lease: undefined,
  }
}

function ended(run: Run, job: Job): void {
  const promise = run.promised.get(key(job.topic.name, job.id))
  if (promise !== undefined) promise.isEnded = true
}

function stepAck(run: Run): void {
  const { random, queue, consumers } = run
  const isOther = random.below(20) === 0
  const delivery = anyDelivery(run, !isOther)
  if (delivery === undefined) return
  const consumer = isOther ? consumers[random.below(consumers.length)] : delivery.consumer
  if (consumer === undefined) return
  heard(queue, consumer, nowOf(run))
  const ref = isOther ? { jobId: delivery.job.id, seqId: undefined, lease: undefined } : refOf(run, delivery)
  const { job } = delivery
  const result = acknowledge(queue, consumer, ref, nowOf(run))
  if (consumer === delivery.consumer) assert(result === 'done', 'an acknowledgement in time finishes the job')
  if (result === 'done' || result === 'late') {
    assert(consumer.topic !== undefined, 'a consumer that acknowledges has a topic')
    assert(findById(consumer.topic.jobs, job.id) === undefined, 'an acknowledged job is gone')
    // Another topic may have a job of the same id.
    const promise = run.promised.get(key(consumer.topicName, job.id))
    if (promise !== undefined) promise.isEnded = true
  }
  // A second one finds nothing.
  if (random.below(4) === 0 && result === 'done') {
    const again = acknowledge(queue, consumer, { jobId: job.id, seqId: delivery.seqId, lease: undefined }, nowOf(run))
    assert(again === 'unknown', 'a job finishes once')
  }
}

function stepNack(run: Run): void {
  const delivery = anyDelivery(run)
  if (delivery === undefined) return
  const { random, queue } = run
  const failures = delivery.job.failures
  const failure = {
    error: `HTTP ${random.below(3)}`,
    requeue: random.below(8) > 0,
    delayMs: random.below(3) === 0 ? random.below(2_000) : undefined,
  }
  const result = reject(queue, delivery.consumer, refOf(run, delivery), failure, nowOf(run))
  assert(result === 'retry' || result === 'dead', 'a nack in time counts')
  const { job } = delivery
  assert(job.failures === failures + 1, 'a nack is one failure')
  const isLast = job.failures >= (job.maxAttempts || job.topic.config.max_attempts)
  assert((result === 'dead') === (!failure.requeue || isLast), 'a job is dead after its last attempt, not before')
}

function stepRelease(run: Run): void {
  const delivery = anyDelivery(run)
  if (delivery === undefined) return
  const { failures, deliveries } = delivery.job
  if (run.random.below(4) === 0) releaseAll(run.queue, delivery.consumer, nowOf(run))
  else
    assert(release(run.queue, delivery.consumer, refOf(run, delivery), nowOf(run)) === 'released', 'a release counts')
  assert(delivery.job.failures === failures && delivery.job.deliveries === deliveries - 1, 'a release counts nothing')
}

function stepExtend(run: Run): void {
  const delivery = anyDelivery(run)
  if (delivery === undefined) return
  extend(run.queue, delivery.consumer, refOf(run, delivery), 500 + run.random.below(20_000), nowOf(run))
}

function stepConnect(run: Run): void {
  const { random, queue, consumers } = run
  if (consumers.length > 8) return
  const topicName = TOPICS[random.below(TOPICS.length)] as string
  const prefetch = random.below(2) === 0 ? undefined : 1 + random.below(20)
  const fields = { name: `worker-${random.below(5)}`, topicName, prefetch, confirms: false, tokenName: '', remote: '' }
  const consumer = connect(queue, fields, nowOf(run))
  consumers.push(consumer)
  const own = [...queue.away.values()]
    .filter((other) => other.name === consumer.name && other.topicName === topicName)
    .flatMap((other) => [...other.deliveries.values()])
  const counted = own.map(({ job }) => [job.failures, job.deliveries])
  assert(resume(queue, consumer, nowOf(run)).length === own.length, 'I7: a consumer that is back has all it had')
  for (const [n, { job, consumer: holder }] of own.entries()) {
    assert(holder === consumer && job.state === STATE.leased, 'I7: a consumer that is back has its deliveries')
    assert(job.failures === counted[n]?.[0] && job.deliveries === counted[n]?.[1], 'I7: a cut counts nothing')
  }
}

function anyConsumer({ random, consumers }: Run): Consumer | undefined {
  return consumers[random.below(Math.max(1, consumers.length))]
}

function stepDisconnect(run: Run): void {
  const consumer = anyConsumer(run)
  if (consumer === undefined) return
  const jobs = [...consumer.deliveries.values()].map(({ job }) => ({ job, failures: job.failures }))
  disconnect(run.queue, consumer, nowOf(run))
  run.consumers.splice(run.consumers.indexOf(consumer), 1)
  for (const { job, failures } of jobs) assert(job.failures === failures, 'a disconnect is not a failure')
}

function stepCut(run: Run): void {
  const consumer = anyConsumer(run)
  if (consumer === undefined) return
  const had = [...consumer.deliveries.values()].map(({ job }) => ({ job, failures: job.failures }))
  suspend(run.queue, consumer, nowOf(run))
  run.consumers.splice(run.consumers.indexOf(consumer), 1)
  for (const { job, failures } of had)
    assert(job.state === STATE.leased && job.failures === failures, 'I7: a cut leaves its jobs alone')
}

function stepCredit(run: Run): void {
  const consumer = anyConsumer(run)
  if (consumer !== undefined) setPrefetch(run.queue, consumer, run.random.below(20))
}

function stepPauseConsumer(run: Run): void {
  const consumer = anyConsumer(run)
  if (consumer !== undefined) pauseConsumer(run.queue, consumer, run.random.below(2) === 0)
}

function stepTime(run: Run): void {
  const ms = run.random.below(run.random.below(10) === 0 ? 30_000 : 500)
  run.clock.wallMs += ms
  run.clock.monotonicMs += ms
  advance(run.queue, nowOf(run))
  for (const { awayUntil } of run.queue.away.values())
    assert(awayUntil > run.clock.monotonicMs, 'I7: a consumer that stays away gives its jobs back')
}

function stepClock(run: Run): void {
  run.clock.wallMs += (run.random.below(2) === 0 ? -1 : 1) * run.random.below(7_200_000)
  const failures = [...run.deliveries].map(({ job }) => [job, job.failures] as const)
  advance(run.queue, nowOf(run))
  for (const [job, count] of failures)
    assert(job.failures === count || job.state === STATE.gone, 'no lease expires by a clock step')
}

function stepCancel(run: Run): void {
  const topic = anyTopic(run)
  const [job] = topic === undefined ? [] : jobsOf(topic)
  if (job === undefined || job.state === STATE.pending) return
  const { previous, group } = cancel(run.queue, job, run.random.below(3) === 0, nowOf(run))
  assert(group !== undefined || previous === 'leased', 'only a leased job refuses')
  if (group !== undefined) ended(run, job)
}

function stepPurge(run: Run): void {
  const topic = anyTopic(run)
  if (topic === undefined) return
  const state = (['ready', 'delayed', 'dead'] as const)[run.random.below(3)] as 'ready'
  const before = jobsOf(topic)
  purge(run.queue, topic, state, 1 + run.random.below(20))
  for (const job of before) if (job.state === STATE.gone) ended(run, job)
}

function stepConfigure(run: Run): void {
  const topic = anyTopic(run)
  if (topic === undefined) return
  configureTopic(run.queue, topic, randomConfig(run), nowOf(run))
}

function deadOf(run: Run): { topic: Topic; jobs: Job[] } | undefined {
  const topic = anyTopic(run)
  if (topic === undefined) return undefined
  const jobs = jobsOf(topic)
    .filter(({ state }) => state === STATE.dead)
    .slice(0, 1 + run.random.below(5))
  return { topic, jobs }
}

function stepRedrive(run: Run): void {
  const found = deadOf(run)
  if (found !== undefined) redrive(run.queue, found.jobs)
}

function stepLongRedrive(run: Run): void {
  const topic = anyTopic(run)
  if (topic === undefined) return
  const { queue, random } = run
  if (topic.redrive?.record.state !== 'running') {
    if (topic.redrive?.record.state === 'paused') setRedriveState(queue, topic, 'running', nowOf(run))
    else beginRedrive(queue, topic, { filter: {}, to: undefined, ratePerSec: 100, by: 'model' }, nowOf(run))
    return
  }
  if (random.below(10) === 0)
    return void setRedriveState(queue, topic, random.below(2) === 0 ? 'paused' : 'cancelled', nowOf(run))
  const long = topic.redrive
  const moved = stepLong(queue, topic, 1 + random.below(3), nowOf(run))
  if (moved.kind === 'end') setRedriveState(queue, topic, 'done', nowOf(run))
  else if (moved.kind === 'moved' && moved.group !== undefined)
    waitForGroup(moved.group, true, (outcome) => {
      if (outcome !== 'unknown') redriveEnded(queue, topic, long, moved, outcome === 'durable')
    })
}

function stepRedriveTo(run: Run): void {
  const found = deadOf(run)
  const target = anyTopic(run)
  if (found === undefined || target === undefined || target === found.topic) return
  const { moved, group } = redriveTo(run.queue, found.jobs, target, nowOf(run))
  if (group === undefined) return
  for (const job of moved) {
    const to = { isAccepted: false, isEnded: false }
    run.promised.set(key(target.name, job.id), to)
    const from = run.promised.get(key(found.topic.name, job.id))
    waitForGroup(group, true, (outcome) => {
      // After a kill it may have moved or not.
      if (from !== undefined && outcome !== 'full') from.isEnded = true
      if (outcome !== 'durable') return
      to.isAccepted = true
      to.isEnded ||= target.isGone
    })
  }
}

function stepDeleteTopic(run: Run): void {
  const topic = anyTopic(run)
  if (topic === undefined) return
  deleteTopic(run.queue, topic)
  for (const [name, promise] of run.promised) if (name.startsWith(`${topic.name}/`)) promise.isEnded = true
}

/** The process is killed; the group being written may be durable or not. */
function stepRestart(run: Run): void {
  const { random, queue } = run
  if (random.below(2) === 0) {
    const group: Group | undefined = takeGroup(queue)
    if (group !== undefined) writeRows(run.rows, group.changes)
  }
  failGroups(queue)
  run.deliveries.clear()
  run.consumers.length = 0
  run.queue = emptyQueue(random, nowOf(run))
  const now = nowOf(run)
  const topics = new Map<number, Topic>()
  for (const stored of storedRows(run.rows)) {
    if (stored.kind === 'topic') topics.set(stored.topic.number, restoreTopic(run.queue, stored.topic, now))
    else if (stored.kind === 'jobs') {
      for (const job of stored.jobs) {
        const topic = topics.get(job.topicNumber)
        assert(topic !== undefined, 'rows belong to a topic')
        restoreJob(run.queue, topic, job, now)
      }
    } else if (stored.kind === 'finished') {
      const topic = topics.get(stored.topicNumber)
      if (topic !== undefined) restoreFinished(run.queue, topic, stored.id, stored.at, now)
    }
  }
}

/** Dead jobs beyond the limits of their topic are dropped: as many as it counted, and no more. */
function noticeDropped(run: Run, topic: Topic, dropped: number): void {
  if (dropped === 0 || topic.isGone) return
  let missing = 0
  for (const [name, promise] of run.promised) {
    if (!name.startsWith(`${topic.name}/`) || !promise.isAccepted || promise.isEnded) continue
    if (findById(topic.jobs, name.slice(topic.name.length + 1)) !== undefined) continue
    promise.isEnded = true
    missing++
  }
  assert(missing <= dropped, `${dropped} dead jobs were dropped, and ${missing} are missing`)
}

/** Every invariant that can be seen from outside. */
function check(run: Run): void {
  forgetEnded(run)
  const { queue } = run
  let bytes = 0
  for (const topic of queue.topics.values()) {
    const found = { ready: 0, delayed: 0, leased: 0, dead: 0, pending: 0 }
    let [live, dead] = [0, 0]
    for (const job of jobsOf(topic)) {
      assert(job.state !== STATE.gone, 'a job that ended is not known')
      found[NAMES[job.state] as keyof typeof found]++
      if (job.state === STATE.dead) dead += job.bytes
      else live += job.bytes
      assert((job.delivery !== undefined) === (job.state === STATE.leased), 'I5: leased jobs have a delivery')
      if (job.delivery !== undefined) assert(run.deliveries.has(job.delivery), 'I5: only a resolution ends a delivery')
    }
    for (const [name, count] of Object.entries(found))
      assert(topic.counts[name as keyof typeof found] === count, `I1: ${name} counts the jobs of ${topic.name}`)
    checkLiveness(topic)
    assert(listed(topic) === found.ready, 'I1: every ready job is in a list')
    assert(
      topic.delayed.items.length + topic.scheduled.items.length === found.delayed,
      'I1: every delayed job is in a heap',
    )
    assert(topic.dead.length === found.dead, 'I1: every dead job is in the list')
    let grouped = 0
    for (const { jobs } of topic.deadGroups.values()) grouped += jobs.size
    assert(grouped === found.dead, 'every dead job is in a group')
    assert(topic.bytes === live && topic.deadBytes === dead, 'bytes are those of the jobs')
    bytes += live + dead + topic.jobs.size * 600 + topic.finished.size * 150
  }
  assert(queue.bytes === bytes, `the total is that of all topics: ${queue.bytes}, not ${bytes}`)
  for (const delivery of run.deliveries) assert(delivery.job.delivery === delivery, 'I2: a delivery is current')
  for (const [name, { isAccepted, isEnded }] of run.promised) {
    if (!isAccepted || isEnded) continue
    const at = name.indexOf('/')
    const topic = queue.topics.get(name.slice(0, at))
    const job = findById(topic?.jobs, name.slice(at + 1))
    assert(job !== undefined, `I1: the accepted job ${name} is known`)
  }
}

/** Nothing waits for ever: what can be delivered is going to be. */
function checkLiveness(topic: Topic): void {
  const { config, counts, free, consumers } = topic
  for (const consumer of consumers) {
    const hasRoom = !consumer.isPaused && !consumer.isStalled && consumer.deliveries.size < consumer.window
    assert(consumer.isFree || !hasRoom, 'a consumer with room takes its turn')
  }
  const isLimited =
    config.paused ||
    (config.ordered && counts.leased > 0) ||
    (config.max_leased > 0 && counts.leased >= config.max_leased) ||
    (config.rate_per_sec > 0 && topic.alarmAt < Number.POSITIVE_INFINITY)
  const canDeliver = counts.ready > 0 && free.length > 0 && !isLimited
  assert(!canDeliver || topic.isRunnable, 'a topic that can deliver is dispatched')
}

const NAMES = ['pending', 'ready', 'delayed', 'leased', 'dead', 'gone']

function listed({ ready, returned }: Topic): number {
  let count = 0
  for (const list of ready) {
    let own = 0
    for (let job = list.first; job !== undefined; job = job.next) own++
    assert(own === list.length, 'a list has its length')
    count += own
  }
  for (const heap of returned) count += heap.items.length
  return count
}
