/** The paths under /api/v1/queue: topics, statistics, dead jobs and consumers, for people and programs. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { traceparentOf } from '@vacancy/shared'
import { type ControlModule, type Handlers, moduleOf, ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import {
  CLOSE_CODES,
  JOB_LIMITS,
  type JobView,
  QUEUE_ERRORS,
  QUEUE_ROUTES,
  type RedriveState,
  type RedriveView,
  type TopicConfig,
  type TopicStats,
  type TopicTotals,
  topicConfig,
} from '@vacancy/shared/contract'
import { currentTrace } from '@vacancy/shared/node'
import { type Consumers, close, closeAll, drain } from './consumer.ts'
import { sparklines, topicHistory } from './history.ts'
import { findById } from './id-index.ts'
import { type Job, NO_TOTALS, type Redrive, STATE, type Topic } from './job.ts'
import { forgetRejected } from './metrics.ts'
import { copyJournal, faultOf, outcomeOf, runSoon } from './partition.ts'
import { cancelJob, makeTopic, submitParsed } from './producer.ts'
import { configureTopic, deleteTopic, purge, redrive, redriveTo, removeJobs, unfinishedOf } from './queue.ts'
import {
  durable,
  type QueueAudit,
  QueueError,
  type QueueServer,
  refuseFullDisk,
  type Serving,
  servingOf,
  servingPartition,
  topicOf,
  withReason,
} from './queue-server.ts'
import { beginRedrive, isRedriveOpen, redriveView, setRedriveState } from './redrive.ts'
import { runRedrive } from './redrive-runner.ts'
import type { Group } from './state.ts'
import { parseValue } from './submission.ts'
import { readTail } from './tail.ts'
import {
  consumerView,
  countDead,
  deadGroups,
  finishedJobs,
  jobData,
  jobHead,
  jobView,
  listDead,
  listJobs,
  selectDead,
  shownJob,
  topicRow,
  topicStats,
} from './views.ts'

export type QueueModuleOptions = {
  readonly server: QueueServer
  readonly consumers: Consumers
  readonly audit: QueueAudit
  /** Folder of backups. */
  readonly dataDir: string
  /** Name of this process. */
  readonly node: string
  readonly isSynced: boolean
}

type Routes = typeof QUEUE_ROUTES
type Name = keyof Routes
type Request<N extends Name> = RouteRequest<N>

export function queueModule(options: QueueModuleOptions): ControlModule {
  const { server } = options
  const handlers: Handlers<Routes> = {
    'GET /api/v1/queue/health': (request) => health(options, request),
    'GET /api/v1/queue/stats': () => stats(options),
    'GET /api/v1/queue/topics': ({ query }) => listTopics(server, query),
    'GET /api/v1/queue/topics/{topic}': ({ params }) =>
      withTopic(server, params.topic, ({ topic }) => ({ ...topicRow(topic), config: topic.config })),
    'PUT /api/v1/queue/topics/{topic}': (request) => putTopic(options, request),
    'DELETE /api/v1/queue/topics/{topic}': (request) => removeTopic(options, request),
    'POST /api/v1/queue/topics/{topic}/pause': (request) => setPaused(options, request, true),
    'POST /api/v1/queue/topics/{topic}/resume': (request) => setPaused(options, request, false),
    'POST /api/v1/queue/topics/{topic}/purge': (request) => purgeTopic(options, request),
    'GET /api/v1/queue/topics/{topic}/stats': ({ params }) =>
      withTopic(server, params.topic, ({ topic, serving }) => topicStats(topic, serving.now)),
    'GET /api/v1/queue/history': () => courses(server),
    'GET /api/v1/queue/topics/{topic}/history': ({ params, query }) =>
      withTopic(server, params.topic, ({ topic, serving }) => topicHistory(topic, query.minutes, serving.now)),
    'GET /api/v1/queue/topics/{topic}/tail': ({ params, query }) =>
      withTopic(server, params.topic, ({ topic, serving: { queue, now } }) =>
        readTail(queue, topic, query.cursor, jobHead, now),
      ),
    'GET /api/v1/queue/jobs': ({ query }) => findJobs(server, query.id),
    'GET /api/v1/queue/topics/{topic}/jobs': ({ params, query }) =>
      withTopic(server, params.topic, ({ topic, serving }) => jobsOf(serving, topic, query)),
    'GET /api/v1/queue/topics/{topic}/jobs/{id}': ({ params, query }) =>
      withTopic(server, params.topic, ({ topic, serving }) => jobOf(serving, topic, params.id, query.data === '1')),
    'POST /api/v1/queue/topics/{topic}/jobs': (request) => submitJobs(options, request),
    'DELETE /api/v1/queue/topics/{topic}/jobs/{id}': (request) => removeJob(options, request),
    'GET /api/v1/queue/topics/{topic}/dead': ({ params, query }) =>
      withTopic(server, params.topic, ({ topic, serving }) => deadOf(serving, topic, query)),
    'GET /api/v1/queue/topics/{topic}/dead/count': ({ params, query }) =>
      withTopic(server, params.topic, ({ topic }) => countDead(topic, query)),
    'GET /api/v1/queue/topics/{topic}/dead/groups': ({ params }) =>
      withTopic(server, params.topic, ({ topic }) => ({ groups: deadGroups(topic) })),
    'POST /api/v1/queue/topics/{topic}/dead/redrive': (request) => redriveDead(options, request),
    'DELETE /api/v1/queue/topics/{topic}/dead': (request) => deleteDead(options, request),
    ...redriveHandlers(options),
    'GET /api/v1/queue/consumers': ({ query }) => listConsumers(options, query),
    'DELETE /api/v1/queue/consumers/{id}': (request) => closeConsumer(options, request),
    'POST /api/v1/queue/backup': (request) => backup(options, request),
    'POST /api/v1/queue/vacuum': (request) => vacuum(options, request),
  }
  return moduleOf('queue', QUEUE_ROUTES, asProblems(handlers))
}

/** Errors of the queue become problems of the API, with the same codes. */
function asProblems(handlers: Handlers<Routes>): Handlers<Routes> {
  const wrapped = Object.entries(handlers).map(([name, handler]) => [
    name,
    async (request: never) => {
      try {
        return await (handler as (request: never) => unknown)(request)
      } catch (error) {
        throw error instanceof QueueError ? problemOf(error) : error
      }
    },
  ])
  return Object.fromEntries(wrapped) as unknown as Handlers<Routes>
}

function problemOf(error: QueueError): ProblemError {
  const { code, message, more } = error
  const wait = more.retryAfterMs === undefined ? {} : { retryAfterSeconds: Math.ceil(more.retryAfterMs / 1000) }
  return new ProblemError(QUEUE_ERRORS[code], code, message, { more: { ...more, ...wait }, cause: error })
}

function withTopic<T>(server: QueueServer, name: string, read: (found: { topic: Topic; serving: Serving }) => T): T {
  const serving = servingOf(server, name)
  return read({ topic: topicOf(serving, name), serving })
}

function* servingPartitions({ partitions }: QueueServer): Generator<Serving> {
  for (const partition of partitions)
    if (partition.queue !== undefined && partition.unavailable === undefined) yield servingPartition(partition)
}

// --- Reading ---

function health({ server, isSynced }: QueueModuleOptions, { reply }: Request<'GET /api/v1/queue/health'>) {
  const { partitions, metrics } = server
  // Partitions of other processes are no fault of this one, which serves its own.
  const faulty = partitions.map(faultOf).find((fault) => fault !== undefined && fault !== 'standby')
  if (faulty === undefined && partitions.some(({ unavailable }) => unavailable === undefined))
    return { status: 'ok' as const, role: 'owner' as const, journal: metrics.journal, durable: isSynced }
  reply.status(503)
  if (faulty !== undefined) return { status: 'unavailable' as const, reason: faulty }
  const owner = partitions.find((partition) => partition.owner !== undefined)?.owner
  return { status: 'standby' as const, role: 'standby' as const, ...(owner !== undefined && { owner }) }
}

/** Of the topics whose partitions are served here. */
export function allTopicStats(server: QueueServer): TopicStats[] {
  return [...servingPartitions(server)].flatMap(({ queue, now }) =>
    [...queue.topics.values()].map((topic) => topicStats(topic, now)),
  )
}

function stats({ server, node }: QueueModuleOptions) {
  const topics = allTopicStats(server)
  const totals = Object.fromEntries(
    Object.keys(NO_TOTALS).map((name) => [
      name,
      topics.reduce((sum, topic) => sum + topic.totals[name as keyof TopicTotals], 0),
    ]),
  ) as TopicTotals
  const role = server.partitions.some(({ queue }) => queue !== undefined) ? ('owner' as const) : ('standby' as const)
  return { node, role, journal: server.metrics.journal, topics, totals }
}

function listTopics(server: QueueServer, { prefix = '', cursor, limit }: Request<'GET /api/v1/queue/topics'>['query']) {
  const names = [...servingPartitions(server)]
    .flatMap(({ queue }) => [...queue.topics.keys()])
    .filter((name) => name.startsWith(prefix) && (cursor === undefined || name > cursor))
    .sort()
  const page = names.slice(0, limit)
  const topics = page.map((name) => withTopic(server, name, ({ topic }) => topicRow(topic)))
  return { topics, next: names.length > limit ? (page.at(-1) ?? null) : null }
}

function courses(server: QueueServer) {
  const serving = [...servingPartitions(server)]
  const topics = serving.flatMap(({ queue }) => [...queue.topics.values()])
  const { clock } = server.access
  return sparklines(topics, serving[0]?.now ?? { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() })
}

/** Jobs with an id in any topic; one lookup for each topic. */
function findJobs(server: QueueServer, id: string) {
  const jobs: JobView[] = []
  for (const { queue, now } of servingPartitions(server))
    for (const topic of queue.topics.values()) {
      if (jobs.length === JOB_LIMITS.foundMax) return { jobs }
      const job = findById(topic.jobs, id)
      if (job !== undefined) jobs.push(jobView(queue, job, now))
    }
  return { jobs }
}

function jobsOf(
  { queue, now }: Serving,
  topic: Topic,
  { state, limit, cursor, head }: Request<'GET /api/v1/queue/topics/{topic}/jobs'>['query'],
) {
  if (state === 'done') return finishedJobs(topic, limit, cursor)
  const { jobs, next } = listJobs(topic, state, limit, cursor)
  return {
    jobs: jobs.map((job) => ({ ...jobView(queue, job, now), ...(head === '1' && { head: jobHead(job) }) })),
    next,
  }
}

function jobOf({ queue, now }: Serving, topic: Topic, id: string, isDataWanted: boolean) {
  const job = findById(topic.jobs, id)
  if (job === undefined) {
    const shown = shownJob(topic, id)
    if (shown === undefined) throw new QueueError('job_not_found', `job "${id}" is not known`)
    return { ...shown, history: [] }
  }
  const history = (job.past?.history ?? []).map(({ at, ...line }) => ({ at: new Date(at).toISOString(), ...line }))
  return { ...jobView(queue, job, now), history, ...(isDataWanted && { data: jobData(job) }) }
}

function deadOf(
  { queue, now }: Serving,
  topic: Topic,
  query: Request<'GET /api/v1/queue/topics/{topic}/dead'>['query'],
) {
  const { cursor, limit, data, head, ...filter } = query
  const { jobs, next } = listDead(topic, limit, cursor, filter)
  return {
    jobs: jobs.map((job) => ({
      ...jobView(queue, job, now),
      ...(data === '1' && { data: jobData(job) }),
      ...(head === '1' && { head: jobHead(job) }),
    })),
    next,
  }
}

function listConsumers(
  { server }: QueueModuleOptions,
  { topic, cursor, limit }: Request<'GET /api/v1/queue/consumers'>['query'],
) {
  const after = cursor === undefined ? 0 : Number(cursor.slice(2)) || 0
  const found = [...servingPartitions(server)]
    .flatMap(({ queue }) => [...queue.consumers.values()])
    .filter((consumer) => consumer.id > after && (topic === undefined || consumer.topicName === topic))
    .sort((a, b) => a.id - b.id)
  const consumers = found.slice(0, limit).map(consumerView)
  return { consumers, next: found.length > limit ? (consumers.at(-1)?.id ?? null) : null }
}

// --- Changing ---

async function putTopic({ server, audit }: QueueModuleOptions, request: Request<'PUT /api/v1/queue/topics/{topic}'>) {
  const { params, body, reply } = request
  const name = params.topic
  const serving = servingOf(server, name)
  const known = serving.queue.topics.get(name)
  const config = topicConfig.parse({ ...(known?.config ?? server.settings.topicDefaults), ...body.config })
  if (known === undefined) {
    await makeTopic(server, serving, name, config)
    reply.status(201)
  } else await configure(serving, known, config)
  await audit(
    request as never,
    known === undefined ? 'queue.topic.create' : 'queue.topic.configure',
    name,
    JSON.stringify(body.config),
  )
  return { status: 'success' as const, topic: name, created: known === undefined, config }
}

async function configure(serving: Serving, topic: Topic, config: TopicConfig): Promise<void> {
  const outcome = outcomeOf(configureTopic(serving.queue, topic, config, serving.now), false)
  runSoon(serving.partition)
  await durable([outcome])
}

async function setPaused(
  { server, audit }: QueueModuleOptions,
  request: Request<'POST /api/v1/queue/topics/{topic}/pause'> | Request<'POST /api/v1/queue/topics/{topic}/resume'>,
  paused: boolean,
) {
  const { topic: name } = request.params
  const serving = servingOf(server, name)
  const topic = topicOf(serving, name)
  await configure(serving, topic, { ...topic.config, paused })
  await audit(request as never, paused ? 'queue.topic.pause' : 'queue.topic.resume', name, '')
  return { status: 'success' as const, topic: name, paused }
}

async function removeTopic(
  { server, consumers, audit }: QueueModuleOptions,
  request: Request<'DELETE /api/v1/queue/topics/{topic}'>,
) {
  const { params, query } = request
  const serving = servingOf(server, params.topic)
  const topic = topicOf(serving, params.topic)
  const unfinished = unfinishedOf(topic)
  if (query.force !== '1' && unfinished > 0)
    throw new QueueError(
      'topic_not_empty',
      `topic "${topic.name}" has ${unfinished} unfinished jobs; force=1 deletes them, too`,
    )
  const deletedJobs = topic.jobs.size
  drain(consumers, topic.consumers, 'topic_deleted', 0)
  forgetRejected(server.metrics, topic.name)
  const { group, consumers: left } = deleteTopic(serving.queue, topic)
  const outcome = outcomeOf(group, false)
  runSoon(serving.partition)
  closeAll(consumers, left, CLOSE_CODES.topicDeleted, 'topic deleted')
  await durable([outcome])
  await audit(request as never, 'queue.topic.delete', topic.name, withReason(`${deletedJobs} jobs`, query))
  return { status: 'success' as const, deletedJobs }
}

/** Jobs that one turn removes, so that others are served in between. */
const PURGE_TURN = 2_000

async function purgeTopic(
  { server, audit }: QueueModuleOptions,
  request: Request<'POST /api/v1/queue/topics/{topic}/purge'>,
) {
  const { params, body } = request
  let removed = 0
  for (const state of new Set(body.states)) {
    // At most the jobs that were there at the start: others may arrive meanwhile.
    let left = withTopic(server, params.topic, ({ topic }) => topic.counts[state])
    while (left > 0) {
      const serving = servingOf(server, params.topic)
      const { removed: now, group } = purge(
        serving.queue,
        topicOf(serving, params.topic),
        state,
        Math.min(left, PURGE_TURN),
      )
      if (group === undefined) break
      const outcome = outcomeOf(group, false)
      runSoon(serving.partition)
      await durable([outcome])
      removed += now
      left -= now
    }
  }
  const detail = withReason(`${body.states.join(', ')}: ${removed} jobs`, body)
  await audit(request as never, 'queue.topic.purge', params.topic, detail)
  return { status: 'success' as const, removed }
}

async function submitJobs(
  { server, audit }: QueueModuleOptions,
  request: Request<'POST /api/v1/queue/topics/{topic}/jobs'>,
) {
  const { params, body } = request
  const { settings } = server
  const limits = { jobsMax: settings.jobsPerRequestMax, jobBytesMax: settings.jobBytesMax }
  const trace = currentTrace()
  const parsed = parseValue(body, limits, server.access.clock.wallMs(), trace && traceparentOf(trace.context))
  if ('error' in parsed)
    throw new QueueError(
      parsed.error,
      parsed.message,
      parsed.failures === undefined ? {} : { failures: parsed.failures },
    )
  if (parsed.topic !== params.topic) throw new QueueError('invalid_request', `the body has topic "${parsed.topic}"`)
  const answer = await submitParsed(server, parsed)
  await audit(request as never, 'queue.submit', params.topic, `${answer.accepted} jobs`)
  return answer
}

async function removeJob(
  { server, audit }: QueueModuleOptions,
  request: Request<'DELETE /api/v1/queue/topics/{topic}/jobs/{id}'>,
) {
  const { params, query } = request
  const serving = servingOf(server, params.topic)
  const job = findById(topicOf(serving, params.topic).jobs, params.id)
  if (job === undefined) throw new QueueError('job_not_found', `job "${params.id}" is not known`)
  const previousState = await cancelJob(serving, job, query.force === '1')
  await audit(request as never, 'queue.cancel', `${params.topic}/${params.id}`, previousState)
  return { status: 'success' as const, id: params.id, previousState }
}

type Selected = { readonly jobs: readonly Job[]; readonly missing: readonly string[] }

function select(topic: Topic, selection: Request<'POST /api/v1/queue/topics/{topic}/dead/redrive'>['body']): Selected {
  if ('filter' in selection) return { jobs: selectDead(topic, selection.filter, selection.limit), missing: [] }
  if ('all' in selection) return { jobs: selectDead(topic, {}, selection.limit), missing: [] }
  const jobs = new Set<Job>()
  const missing: string[] = []
  for (const id of selection.ids) {
    const job = findById(topic.jobs, id)
    if (job?.state === STATE.dead) jobs.add(job)
    else if (missing.length < JOB_LIMITS.listedMax) missing.push(id)
  }
  return { jobs: [...jobs], missing }
}

async function redriveDead(
  { server, audit }: QueueModuleOptions,
  request: Request<'POST /api/v1/queue/topics/{topic}/dead/redrive'>,
) {
  const { params, body } = request
  const serving = servingOf(server, params.topic)
  const topic = topicOf(serving, params.topic)
  refuseFullDisk(serving.partition)
  const { jobs, missing } = select(topic, body)
  const target = body.to === undefined || body.to === topic.name ? undefined : servingOf(server, body.to)
  if (target !== undefined && target.partition !== serving.partition)
    throw new QueueError(
      'invalid_request',
      'the topics are in different partitions: a job cannot move in one transaction',
    )
  const moved =
    target === undefined
      ? { group: redrive(serving.queue, jobs), moved: jobs, conflicts: undefined }
      : redriveTo(serving.queue, jobs, topicOf(target, body.to ?? ''), serving.now)
  if (moved.group !== undefined) {
    const outcome = outcomeOf(moved.group, true)
    runSoon(serving.partition)
    await durable([outcome])
  }
  const redriven = moved.moved.length
  await audit(
    request as never,
    'queue.redrive',
    params.topic,
    withReason(`${redriven} jobs${body.to === undefined ? '' : ` to ${body.to}`}`, body),
  )
  return {
    status: 'success' as const,
    redriven,
    missing: [...missing],
    ...(moved.conflicts !== undefined && { conflicts: moved.conflicts.slice(0, JOB_LIMITS.listedMax) }),
  }
}

async function deleteDead(
  { server, audit }: QueueModuleOptions,
  request: Request<'DELETE /api/v1/queue/topics/{topic}/dead'>,
) {
  const { params, body } = request
  const serving = servingOf(server, params.topic)
  const { jobs } = select(topicOf(serving, params.topic), body)
  const group = removeJobs(serving.queue, jobs)
  if (group !== undefined) {
    const outcome = outcomeOf(group, false)
    runSoon(serving.partition)
    await durable([outcome])
  }
  await audit(request as never, 'queue.dead.delete', params.topic, withReason(`${jobs.length} jobs`, body))
  return { status: 'success' as const, removed: jobs.length }
}

async function closeConsumer(
  { server, consumers, audit }: QueueModuleOptions,
  request: Request<'DELETE /api/v1/queue/consumers/{id}'>,
) {
  const id = Number(request.params.id.slice(2))
  for (const { queue } of servingPartitions(server)) {
    const consumer = queue.consumers.get(id)
    const connection = consumer === undefined ? undefined : consumers.byConsumer.get(consumer)
    if (connection === undefined) continue
    close(consumers, connection, CLOSE_CODES.disconnected, 'closed by an administrator')
    await audit(request as never, 'queue.consumer.close', request.params.id, consumer?.name ?? '')
    return { status: 'success' as const, id: request.params.id }
  }
  throw new QueueError('not_found', `consumer ${request.params.id} is not connected`)
}

async function backup({ server, audit, dataDir }: QueueModuleOptions, request: Request<'POST /api/v1/queue/backup'>) {
  const [first, ...others] = server.partitions
  const { name } = request.body
  if (server.metrics.journal === 'pg')
    throw new QueueError('invalid_request', 'a queue in PostgreSQL is backed up with its database, such as by pg_dump')
  const path = join(dataDir, name)
  if (existsSync(path)) throw new QueueError('invalid_request', `there is a file ${name} already; choose another name`)
  for (const partition of first === undefined ? [] : [first, ...others]) {
    servingPartition(partition)
    await copyJournal(partition, (journal) =>
      journal.backup(partition.number === 0 ? path : `${path}.${partition.number}`),
    )
  }
  await audit(request as never, 'queue.backup', name, '')
  return { status: 'success' as const, path }
}

async function vacuum({ server, audit }: QueueModuleOptions, request: Request<'POST /api/v1/queue/vacuum'>) {
  let bytes = 0
  // In PostgreSQL all partitions are in the same tables.
  const isShared = server.metrics.journal === 'pg'
  for (const partition of isShared
    ? server.partitions.filter(({ journal }) => journal).slice(0, 1)
    : server.partitions) {
    servingPartition(partition)
    await copyJournal(partition, (journal) => journal.vacuum())
    bytes += (await partition.journal?.sizes())?.bytes ?? 0
  }
  await audit(request as never, 'queue.vacuum', '', `${bytes} bytes`)
  return { status: 'success' as const, bytes }
}

type RedriveRoutes = Pick<typeof QUEUE_ROUTES, Extract<keyof typeof QUEUE_ROUTES, `${string}/redrive${string}`>>
type RedriveOptions = { readonly server: QueueServer; readonly audit: QueueAudit }
type AnyRequest = { readonly params: { readonly topic: string } }

/** The paths of long redrives. */
function redriveHandlers({
  server,
  audit,
}: RedriveOptions): Omit<Handlers<RedriveRoutes>, 'POST /api/v1/queue/topics/{topic}/dead/redrive'> {
  const found = (name: string) => {
    const serving = servingOf(server, name)
    return { serving, topic: topicOf(serving, name) }
  }
  const change = async (request: AnyRequest, state: RedriveState, action: string): Promise<RedriveView> => {
    const { serving, topic } = found(request.params.topic)
    const redrive = openRedrive(topic)
    if (redrive.record.state !== state) await stored(serving, setRedriveState(serving.queue, topic, state, serving.now))
    if (state === 'running') runRedrive(serving.partition, topic)
    await audit(request as never, action, topic.name, '')
    return redriveView(topic, redrive)
  }
  return {
    'POST /api/v1/queue/topics/{topic}/redrive': async (request) => {
      const { serving, topic } = found(request.params.topic)
      const { filter, to, ratePerSec } = request.body
      refuseFullDisk(serving.partition)
      if (isRedriveOpen(topic))
        throw new QueueError(
          'redrive_running',
          `a redrive of topic "${topic.name}" is running. Cancel it, or wait until it ends`,
        )
      const target = to === topic.name ? undefined : to
      if (target !== undefined) requireTarget(serving, servingOf(server, target), target)
      const by = request.principal.name
      await stored(serving, beginRedrive(serving.queue, topic, { filter, to: target, ratePerSec, by }, serving.now))
      runRedrive(serving.partition, topic)
      const view = redriveView(topic, topic.redrive as Redrive)
      const detail = withReason(`${view.total} jobs, ${ratePerSec} a second`, request.body)
      await audit(request as never, 'queue.redrive.begin', topic.name, detail)
      return view
    },
    'GET /api/v1/queue/topics/{topic}/redrive': ({ params }) => {
      const { topic } = found(params.topic)
      return { redrive: topic.redrive === undefined ? null : redriveView(topic, topic.redrive) }
    },
    'POST /api/v1/queue/topics/{topic}/redrive/pause': (request) =>
      change(request as never, 'paused', 'queue.redrive.pause'),
    'POST /api/v1/queue/topics/{topic}/redrive/resume': (request) =>
      change(request as never, 'running', 'queue.redrive.resume'),
    'POST /api/v1/queue/topics/{topic}/redrive/cancel': (request) =>
      change(request as never, 'cancelled', 'queue.redrive.cancel'),
  }
}

function requireTarget(serving: Serving, target: Serving, name: string): void {
  if (target.partition !== serving.partition)
    throw new QueueError(
      'invalid_request',
      'the topics are in different partitions: a job cannot move in one transaction',
    )
  topicOf(target, name)
}

function openRedrive(topic: Topic): Redrive {
  if (topic.redrive === undefined || !isRedriveOpen(topic))
    throw new QueueError('not_found', `no redrive of topic "${topic.name}" is open`)
  return topic.redrive
}

async function stored(serving: Serving, group: Group): Promise<void> {
  const outcome = outcomeOf(group, false)
  runSoon(serving.partition)
  await durable([outcome])
}
