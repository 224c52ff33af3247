/** The API of a queue with two partitions in memory, called without HTTP: its schemas check requests and responses. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ControlModule } from '@vacancy/shared/api/route'
import { CLOSE_CODES, QUEUE_ROUTES, topicConfig } from '@vacancy/shared/contract'
import type { Logger } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Consumers } from './consumer.ts'
import { acknowledge, connect, reject } from './delivery.ts'
import { sampleHistory } from './history.ts'
import type { Consumer, Delivery } from './job.ts'
import { type Journal, JournalFullError } from './journal.ts'
import { createQueueMetrics } from './metrics.ts'
import { createPartition, momentOf, type Partition, type PartitionOptions, startPartition } from './partition.ts'
import type { QueueServer, QueueSettings } from './queue-server.ts'
import { queueModule } from './routes.ts'
import { failure, LIMITS, ref, START } from './testing/engine.ts'
import { createQueueAccess } from './tokens.ts'

const SETTINGS = {
  ...{ jobsPerRequestMax: 3_000, jobBytesMax: 100, producerWaitMs: 5_000 },
  topicDefaults: topicConfig.parse({ max_attempts: 9, starvation_guard: 0 }),
} as unknown as QueueSettings

type Service = {
  readonly module: ControlModule
  readonly server: QueueServer
  readonly partitions: Partition[]
  readonly audits: string[]
  /** Connections that were closed, with their code. */
  readonly ended: string[]
  readonly deliveries: Delivery[]
  readonly backups: string[]
  readonly logged: string[]
  /** What the next writes of groups end with. */
  failing: Error | undefined
  now: { wallMs: number; monotonicMs: number }
}

let folder: string
let service: Service

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-routes-'))
  service = await startService()
})

afterEach(() => {
  for (const { alarm, flush } of service.partitions) {
    clearTimeout(alarm)
    flush?.cancel()
  }
  rmSync(folder, { recursive: true })
})

async function startService(): Promise<Service> {
  const now = { wallMs: START, monotonicMs: 1_000 }
  const clock = { wallMs: () => now.wallMs, monotonicMs: () => now.monotonicMs }
  const logged: string[] = []
  const log = { info: (_: object, text: string) => logged.push(text), error: () => undefined } as unknown as Logger
  const access = createQueueAccess({ clock, others: undefined, isOtherGood: undefined, allowQueryToken: false }, [])
  const partitions: Partition[] = []
  const server = { settings: SETTINGS, log, access, metrics: createQueueMetrics('memory'), partitions }
  const [ended, audits, deliveries, backups]: string[][] & [string[], string[], never[], string[]] = [[], [], [], []]
  const consumers = { server, byConsumer: new Map(), connections: new Set(), isDraining: false }
  const options = (number: number): PartitionOptions => ({
    ...{ clock, log, partitions: 2, ackFlushMs: 5, random: () => 0.5, leasePrefix: () => 'p' },
    limits: { ...LIMITS, topicsMax: 40 },
    open: async () =>
      ({
        load: async function* () {},
        write: async () => {
          if (started.failing !== undefined) throw started.failing
        },
        backup: async (path: string) => void backups.push(path),
        vacuum: async () => void backups.push(`vacuum ${number}`),
        sizes: async () => ({ bytes: 100 + number, freeBytes: 1 }),
        close: async () => undefined,
      }) as unknown as Journal,
    send: (delivery) => void started.deliveries.push(delivery),
    ...{ sent: () => undefined, onLost: () => undefined, onLoading: () => undefined, onLoaded: () => undefined },
    ...{ onGroup: () => undefined, onError: () => undefined },
  })
  for (const number of [0, 1]) partitions.push(createPartition(number, options(number)))
  const module = queueModule({
    ...{ server, consumers: consumers as unknown as Consumers, dataDir: folder, node: 'host-1', isSynced: true },
    audit: async (_, action, target, detail) => void audits.push(`${action} ${target}: ${detail}`),
  })
  const started: Service = {
    ...{ module, server, partitions, audits, ended, deliveries, backups, logged, failing: undefined, now },
  }
  for (const partition of partitions) await startPartition(partition)
  Object.assign(started, { consumers })
  return started
}

type Schema = { parse(value: unknown): unknown } | undefined
// biome-ignore lint/suspicious/noExplicitAny: tests know the shape of each response.
type Answer = any

/** Calls a handler with what the schemas of its route make of the input, and checks its response. */
async function call(name: keyof typeof QUEUE_ROUTES, params: object = {}, body?: unknown, query: object = {}) {
  const route = QUEUE_ROUTES[name] as { params?: Schema; query?: Schema; body?: Schema; response: Schema }
  let status = 200
  const request = {
    params: route.params?.parse(params),
    query: route.query?.parse(query),
    body: route.body?.parse(body),
    principal: { kind: 'token', id: '1', name: 'ann', role: 'admin' },
    reply: {
      status: (code: number) => {
        status = code
      },
    },
  }
  const answer = await service.module.handlers[name]?.(request as never)
  route.response?.parse(answer)
  return { status, body: answer as Answer }
}
const get = async (name: string, params: object = {}, query: object = {}) =>
  (await call(`GET /api/v1/queue${name}` as keyof typeof QUEUE_ROUTES, params, undefined, query)).body
const post = async (name: string, params: object = {}, body?: unknown) =>
  (await call(`POST /api/v1/queue${name}` as keyof typeof QUEUE_ROUTES, params, body)).body
const remove = async (name: string, params: object = {}, body?: unknown, query: object = {}) =>
  (await call(`DELETE /api/v1/queue${name}` as keyof typeof QUEUE_ROUTES, params, body, query)).body

const orders = { topic: 'orders' }
const addTopic = (topic: string, config: object = {}) => call('PUT /api/v1/queue/topics/{topic}', { topic }, { config })
const submit = (topic: string, ids: readonly string[], fields: object = {}) =>
  post(
    '/topics/{topic}/jobs',
    { topic },
    { topic, jobs: ids.map((id) => ({ id, topic, data: Buffer.from(`"${id}"`).toString('base64'), ...fields })) },
  )
const numbered = (count: number, prefix = 'j') => Array.from({ length: count }, (_, n) => `${prefix}${n}`)
const ids = (page: Answer) => page.jobs.map(({ id }: { id: string }) => id)

/** The partition of a topic that exists. */
const partitionOf = (topic: string) => service.partitions.find(({ queue }) => queue?.topics.has(topic)) as Partition
/** Topics of the partition that `orders` is not in. */
async function addOtherTopic(): Promise<string> {
  for (let n = 0; ; n++) {
    await addTopic(`t${n}`)
    if (partitionOf(`t${n}`) !== partitionOf('orders')) return `t${n}`
  }
}

/** Connects a consumer, which receives jobs until it has `prefetch` of them. */
async function enter(prefetch: number, topicName = 'orders', name = 'w'): Promise<Consumer> {
  const partition = partitionOf(topicName)
  const fields = { name, topicName, prefetch, confirms: false, tokenName: 't', remote: 'r' }
  const consumer = connect(partition.queue as never, fields, momentOf(partition))
  const connection = {
    socket: {
      ...{ readyState: 1, OPEN: 1, send: (text: string) => service.ended.push(text) },
      close: (code: number, reason: string) => service.ended.push(`${name} ${code} ${reason}`),
    },
    ...{ consumer, partition },
  }
  const { consumers } = service as unknown as { consumers: Consumers }
  consumers.byConsumer.set(consumer, connection as never)
  await submit(topicName, [`wake-${consumer.id}`])
  await remove('/topics/{topic}/jobs/{id}', { topic: topicName, id: `wake-${consumer.id}` }, undefined, { force: '1' })
  return consumer
}

/** Submits jobs and rejects each for good. */
async function makeDead(topic: string, names: readonly string[], error = 'no room'): Promise<void> {
  const consumer = await enter(500, topic)
  await submit(topic, names)
  const partition = partitionOf(topic)
  await settled()
  for (const id of names)
    reject(partition.queue as never, consumer, ref(id), failure({ error, requeue: false }), momentOf(partition))
  const { consumers } = service as unknown as { consumers: Consumers }
  partition.queue?.consumers.delete(consumer.id)
  consumer.topic?.consumers.delete(consumer)
  consumers.byConsumer.delete(consumer)
  consumer.isPaused = true
  expect((await get('/topics/{topic}/dead/count', { topic })).count).toBeGreaterThanOrEqual(names.length)
}

/** Groups are written, and jobs delivered. */
async function settled(): Promise<void> {
  for (let n = 0; n < 6; n++) await new Promise((resolve) => setImmediate(resolve))
}

describe('topics', () => {
  it('are created with the defaults of the queue, and changed key by key', async () => {
    const made = await addTopic('orders', { max_jobs: 7 })
    expect(made).toMatchObject({ status: 201, body: { status: 'success', topic: 'orders', created: true } })
    expect(made.body.config).toEqual({ ...SETTINGS.topicDefaults, max_jobs: 7 })
    const changed = await addTopic('orders', { max_attempts: 2 })
    expect(changed).toMatchObject({ status: 200, body: { created: false, config: { max_jobs: 7, max_attempts: 2 } } })
    expect(await get('/topics/{topic}', orders)).toMatchObject({ topic: 'orders', config: changed.body.config })
    expect(service.audits).toEqual([
      'queue.topic.create orders: {"max_jobs":7}',
      'queue.topic.configure orders: {"max_attempts":2}',
    ])
  })

  it('are paused and resumed', async () => {
    await addTopic('orders')
    expect(await post('/topics/{topic}/pause', orders)).toEqual({ status: 'success', topic: 'orders', paused: true })
    expect((await get('/topics/{topic}', orders)).config).toEqual({ ...SETTINGS.topicDefaults, paused: true })
    expect(await post('/topics/{topic}/resume', orders)).toMatchObject({ paused: false })
    expect((await get('/topics/{topic}', orders)).config.paused).toBe(false)
    expect(service.audits.slice(1)).toEqual(['queue.topic.pause orders: ', 'queue.topic.resume orders: '])
  })

  it('are listed by name in pages, over all partitions', async () => {
    const names = ['b', 'a', 'c', 'ab', 'd', 'aa']
    for (const name of names) await addTopic(name)
    expect(new Set(names.map(partitionOf)).size).toBe(2)
    const list = async (query: object) => {
      const { topics, next } = await get('/topics', {}, query)
      return [topics.map(({ topic }: { topic: string }) => topic).join(), next]
    }
    expect(await list({})).toEqual(['a,aa,ab,b,c,d', null])
    expect(await list({ limit: 5 })).toEqual(['a,aa,ab,b,c', 'c'])
    expect(await list({ limit: 6 })).toEqual(['a,aa,ab,b,c,d', null])
    expect(await list({ cursor: 'b' })).toEqual(['c,d', null])
    expect(await list({ prefix: 'a', limit: 2 })).toEqual(['a,aa', 'aa'])
    expect(await list({ prefix: 'a', cursor: 'aa' })).toEqual(['ab', null])
  })

  it('that are unknown are refused with 404', async () => {
    await expect(get('/topics/{topic}', orders)).rejects.toMatchObject({
      ...{ status: 404, code: 'topic_not_found', message: 'topic "orders" does not exist' },
    })
  })

  it('are deleted when they have no unfinished job, or by force, and their consumers leave', async () => {
    await addTopic('orders')
    await makeDead('orders', ['x'])
    await submit('orders', ['a', 'b'])
    await expect(remove('/topics/{topic}', orders)).rejects.toMatchObject({
      ...{ status: 409, code: 'topic_not_empty' },
      message: 'topic "orders" has 2 unfinished jobs; force=1 deletes them, too',
    })
    await enter(1)
    const gone = await remove('/topics/{topic}', orders, undefined, { force: '1', reason: ' wrong name ' })
    expect(gone).toEqual({ status: 'success', deletedJobs: 3 })
    expect(JSON.parse(service.ended[0] ?? '')).toMatchObject({
      ...{ action: 'drain', data: { reason: 'topic_deleted', closeInMs: 0 } },
    })
    expect(service.ended.slice(1)).toEqual([`w ${CLOSE_CODES.topicDeleted} topic deleted`])
    expect(service.audits.at(-1)).toBe('queue.topic.delete orders: 3 jobs. Reason: wrong name')
    await expect(get('/topics/{topic}', orders)).rejects.toMatchObject({ code: 'topic_not_found' })
    await addTopic('orders')
    await makeDead('orders', ['x'])
    expect(await remove('/topics/{topic}', orders)).toEqual({ status: 'success', deletedJobs: 1 })
  })

  it('lose the jobs of the states that are purged, and no others', async () => {
    await addTopic('orders')
    await makeDead('orders', numbered(3, 'x'))
    await submit('orders', numbered(2_105))
    await submit('orders', numbered(4, 'late'), { delay_ms: 60_000 })
    const counts = async () => {
      const { ready, delayed, dead } = await get('/topics/{topic}', orders)
      return [ready, delayed, dead]
    }
    expect(await counts()).toEqual([2_105, 4, 3])
    expect(await post('/topics/{topic}/purge', orders, { states: ['delayed'] })).toMatchObject({ removed: 4 })
    expect(await counts()).toEqual([2_105, 0, 3])
    const body = { states: ['ready', 'dead', 'ready'], reason: 'test' }
    expect(await post('/topics/{topic}/purge', orders, body)).toEqual({ status: 'success', removed: 2_108 })
    expect(await counts()).toEqual([0, 0, 0])
    expect(service.audits.at(-1)).toBe('queue.topic.purge orders: ready, dead, ready: 2108 jobs. Reason: test')
    expect(await post('/topics/{topic}/purge', orders, { states: ['ready'] })).toMatchObject({ removed: 0 })
  })
})

describe('health and statistics', () => {
  it('are those of an owner while a partition serves', async () => {
    const ok = { status: 'ok', role: 'owner', journal: 'memory', durable: true }
    expect(await call('GET /api/v1/queue/health')).toEqual({ status: 200, body: ok })
    const [first, second] = service.partitions as [Partition, Partition]
    Object.assign(first, { unavailable: 'standby', owner: 'http://other' })
    expect(await call('GET /api/v1/queue/health')).toEqual({ status: 200, body: ok })
    second.unavailable = 'standby'
    const standby = { status: 'standby', role: 'standby', owner: 'http://other' }
    expect(await call('GET /api/v1/queue/health')).toEqual({ status: 503, body: standby })
    first.owner = undefined
    expect(await call('GET /api/v1/queue/health')).toEqual({
      status: 503,
      body: { status: 'standby', role: 'standby' },
    })
    first.unavailable = undefined
    for (const reason of ['loading', 'journal', 'shutting_down'] as const) {
      second.unavailable = reason
      const unavailable = { status: 'unavailable', reason }
      expect(await call('GET /api/v1/queue/health')).toEqual({ status: 503, body: unavailable })
    }
  })

  it('add up over all topics', async () => {
    await addTopic('orders')
    const other = await addOtherTopic()
    await submit('orders', ['a', 'b'])
    await submit(other, ['a', 'c', 'd'])
    await makeDead('orders', ['x'])
    const stats = await get('/stats')
    expect(stats).toMatchObject({ node: 'host-1', role: 'owner', journal: 'memory' })
    expect(stats.totals.accepted).toBe(2 + 3 + 2)
    expect(stats.totals.dead).toBe(1)
    const of = await get('/topics/{topic}/stats', orders)
    expect(stats.topics.find(({ topic }: Answer) => topic === 'orders')).toEqual(of)
    for (const partition of service.partitions) sampleHistory(partition.queue as never, 1_000, momentOf(partition))
    service.now.wallMs += 10_000
    service.now.monotonicMs += 10_000
    const { topics } = await get('/history')
    expect(topics.length).toBe(service.partitions.reduce((sum, { queue }) => sum + (queue?.topics.size ?? 0), 0))
    expect(await get('/topics/{topic}/history', orders, { minutes: 5 })).toMatchObject({})
    for (const partition of service.partitions) Object.assign(partition, { unavailable: 'standby', queue: undefined })
    expect(await get('/stats')).toMatchObject({ role: 'standby', topics: [], totals: { accepted: 0 } })
    expect((await get('/history')).topics).toEqual([])
    expect((await get('/topics')).topics).toEqual([])
  })
})

describe('jobs', () => {
  it('are submitted, listed by state and shown', async () => {
    await addTopic('orders')
    expect(await submit('orders', ['a', 'b'], { priority: 3 })).toMatchObject({ accepted: 2, duplicates: 0 })
    expect(await submit('orders', ['b', 'c'])).toMatchObject({ accepted: 1, duplicates: 1, duplicateIds: ['b'] })
    expect(service.audits.slice(-2)).toEqual(['queue.submit orders: 2 jobs', 'queue.submit orders: 1 jobs'])
    const page = await get('/topics/{topic}/jobs', orders, { limit: 2 })
    expect(page).toMatchObject({ jobs: [{ id: 'a' }, { id: 'b' }], next: '2' })
    expect(page.jobs[0]).not.toHaveProperty('head')
    const last = await get('/topics/{topic}/jobs', orders, { cursor: '2', head: '1' })
    expect(last).toMatchObject({ jobs: [{ id: 'c', head: Buffer.from('"c"').toString('base64') }], next: null })

    const job = await get('/topics/{topic}/jobs/{id}', { topic: 'orders', id: 'a' })
    expect(job).toMatchObject({ id: 'a', state: 'ready', priority: 3, history: [] })
    expect(job).not.toHaveProperty('data')
    const whole = await get('/topics/{topic}/jobs/{id}', { topic: 'orders', id: 'a' }, { data: '1' })
    expect(whole.data).toBe(Buffer.from('"a"').toString('base64'))
    await expect(get('/topics/{topic}/jobs/{id}', { topic: 'orders', id: 'z' })).rejects.toMatchObject({
      ...{ status: 404, code: 'job_not_found', message: 'job "z" is not known' },
    })
  })

  it('that finished are shown for a while', async () => {
    await addTopic('orders')
    const consumer = await enter(5)
    await submit('orders', ['a', 'b'])
    await settled()
    const partition = partitionOf('orders')
    expect(acknowledge(partition.queue as never, consumer, ref('a'), momentOf(partition))).toBe('done')
    const job = await get('/topics/{topic}/jobs/{id}', { topic: 'orders', id: 'a' })
    expect(job).toMatchObject({ id: 'a', state: 'done', consumer: 'w', history: [] })
    expect(ids(await get('/topics/{topic}/jobs', orders, { state: 'done' }))).toEqual(['a'])
    expect(ids(await get('/topics/{topic}/jobs', orders, { state: 'leased' }))).toEqual(['b'])
  })

  it('are refused when they are invalid, or of another topic', async () => {
    await addTopic('orders')
    const submitted = post('/topics/{topic}/jobs', orders, {
      topic: 'mail',
      jobs: [{ id: 'a', topic: 'mail', data: '' }],
    })
    await expect(submitted).rejects.toMatchObject({
      ...{ status: 400, code: 'invalid_request', message: 'the body has topic "mail"' },
    })
    const large = submit('orders', ['a', 'b'], { data: Buffer.alloc(101).toString('base64') })
    await expect(large).rejects.toMatchObject({ more: { failures: [{ id: 'a' }, { id: 'b' }] } })
    expect((await get('/topics/{topic}', orders)).ready).toBe(0)
  })

  it('are found by id in all topics, at most 20', async () => {
    await addTopic('orders')
    const other = await addOtherTopic()
    await submit('orders', ['a', 'b'])
    await submit(other, ['a'])
    const found = await get('/jobs', {}, { id: 'a' })
    expect(found.jobs.map(({ topic }: Answer) => topic).sort()).toEqual(['orders', other].sort())
    expect(ids(await get('/jobs', {}, { id: 'b' }))).toEqual(['b'])
    expect(ids(await get('/jobs', {}, { id: 'z' }))).toEqual([])
    for (let n = 0; n < 21; n++) {
      await addTopic(`many-${n}`)
      await submit(`many-${n}`, ['m'])
    }
    expect((await get('/jobs', {}, { id: 'm' })).jobs.length).toBe(20)
  })

  it('are cancelled; one that is processed by force alone', async () => {
    await addTopic('orders')
    await submit('orders', ['a'])
    expect(await remove('/topics/{topic}/jobs/{id}', { topic: 'orders', id: 'a' })).toEqual({
      ...{ status: 'success', id: 'a', previousState: 'ready' },
    })
    expect(service.audits.at(-1)).toBe('queue.cancel orders/a: ready')
    await expect(remove('/topics/{topic}/jobs/{id}', { topic: 'orders', id: 'a' })).rejects.toMatchObject({
      code: 'job_not_found',
    })
    await enter(1)
    await submit('orders', ['b'])
    await settled()
    await expect(remove('/topics/{topic}/jobs/{id}', { topic: 'orders', id: 'b' })).rejects.toMatchObject({
      ...{ status: 409, code: 'job_leased' },
    })
    const forced = await remove('/topics/{topic}/jobs/{id}', { topic: 'orders', id: 'b' }, undefined, { force: '1' })
    expect(forced.previousState).toBe('leased')
  })

  it('are refused with 429 and a time to wait while the disk is full', async () => {
    await addTopic('orders')
    service.failing = new JournalFullError('full')
    const refused = { status: 429, code: 'queue_full', more: { retryAfterMs: 1_000, retryAfterSeconds: 1 } }
    await expect(submit('orders', ['a'])).rejects.toMatchObject(refused)
    await expect(post('/topics/{topic}/dead/redrive', orders, { ids: ['x'] })).rejects.toMatchObject(refused)
    service.failing = undefined
  })
})

describe('dead jobs', () => {
  beforeEach(async () => {
    await addTopic('orders')
    await makeDead('orders', ['a', 'b', 'c'], 'no room')
    await makeDead('orders', ['d'], 'timeout')
  })
  const deadIds = async () => ids(await get('/topics/{topic}/dead', orders))

  it('are listed oldest first, by filter, with the requested fields', async () => {
    const page = await get('/topics/{topic}/dead', orders, { limit: 3 })
    expect(ids(page)).toEqual(['a', 'b', 'c'])
    expect(page.jobs[0]).not.toHaveProperty('data')
    expect(page.jobs[0]).not.toHaveProperty('head')
    const next = await get('/topics/{topic}/dead', orders, { cursor: page.next, data: '1' })
    expect(next).toMatchObject({ jobs: [{ id: 'd', data: Buffer.from('"d"').toString('base64') }], next: null })
    expect(next.jobs[0]).not.toHaveProperty('head')
    const heads = await get('/topics/{topic}/dead', orders, { error: 'timeout', head: '1' })
    expect(heads.jobs).toMatchObject([{ id: 'd', head: Buffer.from('"d"').toString('base64') }])
    expect(heads.jobs[0]).not.toHaveProperty('data')
    expect(await get('/topics/{topic}/dead/count', orders, { error: 'room' })).toEqual({ count: 3, exact: true })
    const { groups } = await get('/topics/{topic}/dead/groups', orders)
    expect(groups.map(({ count }: Answer) => count)).toEqual([3, 1])
    const { history } = await get('/topics/{topic}/jobs/{id}', { topic: 'orders', id: 'a' })
    expect(history.at(-1)).toMatchObject({ at: new Date(START).toISOString() })
  })

  it.each([
    ['ids', { ids: ['d', 'z', 'a', 'a'] }, ['a', 'd'], ['z']],
    ['a filter', { filter: { error: 'room' } }, ['a', 'b', 'c'], []],
    ['a filter with a limit', { filter: { error: 'room' }, limit: 2 }, ['a', 'b'], []],
    ['all', { all: true }, ['a', 'b', 'c', 'd'], []],
    ['all with a limit', { all: true, limit: 1 }, ['a'], []],
    ['none', { ids: ['z'] }, [], ['z']],
  ])('are redriven or deleted by %s', async (_, selection, chosen, missing) => {
    const answer = await post('/topics/{topic}/dead/redrive', orders, selection)
    expect(answer).toEqual({ status: 'success', redriven: chosen.length, missing })
    expect(service.audits.at(-1)).toBe(`queue.redrive orders: ${chosen.length} jobs`)
    expect(ids(await get('/topics/{topic}/jobs', orders)).sort()).toEqual(chosen)
    expect(await deadIds()).toEqual(['a', 'b', 'c', 'd'].filter((id) => !chosen.includes(id)))
  })

  it('are deleted, with the reason in the audit log', async () => {
    expect(await remove('/topics/{topic}/dead', orders, { ids: ['b', 'z'], reason: 'old' })).toEqual({
      ...{ status: 'success', removed: 1 },
    })
    expect(service.audits.at(-1)).toBe('queue.dead.delete orders: 1 jobs. Reason: old')
    expect(await deadIds()).toEqual(['a', 'c', 'd'])
    expect(await remove('/topics/{topic}/dead', orders, { ids: ['z'] })).toMatchObject({ removed: 0 })
    expect(await remove('/topics/{topic}/dead', orders, { all: true })).toMatchObject({ removed: 3 })
  })

  it('list at most 100 that are missing, and none that is not dead', async () => {
    await submit('orders', ['ready'])
    const many = [...numbered(100, 'm'), 'ready', 'a']
    const answer = await post('/topics/{topic}/dead/redrive', orders, { ids: many })
    expect(answer).toMatchObject({ redriven: 1, missing: numbered(100, 'm') })
    const few = await post('/topics/{topic}/dead/redrive', orders, { ids: ['ready', 'b'] })
    expect(few).toMatchObject({ redriven: 1, missing: ['ready'] })
  })

  it('move to another topic of the same partition, unless it has their id', async () => {
    const other = await addOtherTopic()
    const redriven = (to: string) => post('/topics/{topic}/dead/redrive', orders, { all: true, limit: 3, to })
    await expect(redriven(other)).rejects.toMatchObject({
      ...{ code: 'invalid_request' },
      message: 'the topics are in different partitions: a job cannot move in one transaction',
    })
    for (let n = 0; n < 20; n++) await addTopic(`s${n}`)
    const near = numbered(20, 's').find((name) => partitionOf(name) === partitionOf('orders')) as string
    await submit(near, ['b'])
    expect(await redriven(near)).toEqual({ status: 'success', redriven: 2, missing: [], conflicts: ['b'] })
    expect(service.audits.at(-1)).toBe(`queue.redrive orders: 2 jobs to ${near}`)
    expect(await deadIds()).toEqual(['b', 'd'])
    expect(ids(await get('/topics/{topic}/jobs', { topic: near })).sort()).toEqual(['a', 'b', 'c'])
    // To its own topic is a usual redrive.
    expect(await redriven('orders')).toEqual({ status: 'success', redriven: 2, missing: [] })
    await expect(redriven('orders-2')).rejects.toMatchObject({ status: expect.any(Number) })
  })
})

describe('consumers', () => {
  it('are listed in order of id, by topic and in pages', async () => {
    await addTopic('orders')
    const other = await addOtherTopic()
    const entered = [await enter(1), await enter(1, other, 'v'), await enter(1), await enter(1, other, 'v')]
    const sorted = entered.map(({ id }) => id).sort((a, b) => a - b)
    const list = async (query: object) => {
      const { consumers, next } = await get('/consumers', {}, query)
      return [consumers.map(({ id }: Answer) => Number(id.slice(2))), next]
    }
    expect(await list({})).toEqual([sorted, null])
    expect(await list({ limit: 3 })).toEqual([sorted.slice(0, 3), `c-${sorted[2]}`])
    expect(await list({ limit: 4 })).toEqual([sorted, null])
    expect(await list({ cursor: `c-${sorted[2]}` })).toEqual([sorted.slice(3), null])
    const ofOrders = entered.filter(({ topicName }) => topicName === 'orders').map(({ id }) => id)
    expect(await list({ topic: 'orders' })).toEqual([ofOrders, null])
  })

  it('are closed by an administrator', async () => {
    await addTopic('orders')
    const { id } = await enter(1)
    expect(await remove('/consumers/{id}', { id: `c-${id}` })).toEqual({ status: 'success', id: `c-${id}` })
    expect(service.ended).toEqual([`w ${CLOSE_CODES.disconnected} closed by an administrator`])
    expect(service.audits.at(-1)).toBe(`queue.consumer.close c-${id}: w`)
    await expect(remove('/consumers/{id}', { id: `c-${id}` })).rejects.toMatchObject({
      ...{ status: 404, code: 'not_found', message: `consumer c-${id} is not connected` },
    })
  })
})

describe('the journal', () => {
  it('is copied to a new file for each partition', async () => {
    const path = join(folder, 'copy.db')
    expect(await post('/backup', {}, { name: 'copy.db' })).toEqual({ status: 'success', path })
    expect(service.backups).toEqual([path, `${path}.1`])
    expect(service.audits).toEqual(['queue.backup copy.db: '])
    writeFileSync(path, '')
    await expect(post('/backup', {}, { name: 'copy.db' })).rejects.toMatchObject({
      message: 'there is a file copy.db already; choose another name',
    })
    Object.assign(service.partitions[1] as Partition, { unavailable: 'journal' })
    await expect(post('/backup', {}, { name: 'b.db' })).rejects.toMatchObject({ code: 'service_unavailable' })
    Object.assign(service.server.metrics, { journal: 'pg' })
    await expect(post('/backup', {}, { name: 'c.db' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('is made smaller in all partitions; in PostgreSQL once', async () => {
    expect(await post('/vacuum')).toEqual({ status: 'success', bytes: 201 })
    expect(service.backups).toEqual(['vacuum 0', 'vacuum 1'])
    expect(service.audits).toEqual(['queue.vacuum : 201 bytes'])
    Object.assign(service.server.metrics, { journal: 'pg' })
    expect(await post('/vacuum')).toEqual({ status: 'success', bytes: 100 })
  })
})

describe('a long redrive', () => {
  it('is begun, shown and refused while another one runs', async () => {
    await addTopic('orders')
    await makeDead('orders', ['a', 'b'])
    expect(await get('/topics/{topic}/redrive', orders)).toEqual({ redrive: null })
    const begun = await post('/topics/{topic}/redrive', orders, { ratePerSec: 1, reason: 'again' })
    expect(begun).toMatchObject({ total: 2, ratePerSec: 1 })
    expect(service.audits.at(-1)).toBe('queue.redrive.begin orders: 2 jobs, 1 a second. Reason: again')
    await expect(post('/topics/{topic}/redrive', orders, {})).rejects.toMatchObject({ code: 'redrive_running' })
    expect(await post('/topics/{topic}/redrive/pause', orders)).toMatchObject({ state: 'paused' })
    expect(await post('/topics/{topic}/redrive/resume', orders)).toMatchObject({ state: 'running' })
    expect(await post('/topics/{topic}/redrive/cancel', orders)).toMatchObject({ state: 'cancelled' })
    await expect(post('/topics/{topic}/redrive/pause', orders)).rejects.toMatchObject({ code: 'not_found' })
    expect((await get('/topics/{topic}/redrive', orders)).redrive).toMatchObject({ state: 'cancelled' })
  })

  it('moves jobs to a topic of the same partition only', async () => {
    await addTopic('orders')
    await makeDead('orders', ['a'])
    const to = await addOtherTopic()
    await expect(post('/topics/{topic}/redrive', orders, { to })).rejects.toMatchObject({ code: 'invalid_request' })
    for (let n = 0; n < 9; n++) await addTopic(`s${n}`)
    const near = numbered(9, 's').find((name) => partitionOf(name) === partitionOf('orders')) as string
    expect(await post('/topics/{topic}/redrive', orders, { to: near })).toMatchObject({ to: near, total: 1 })
  })
})
