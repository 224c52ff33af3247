import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type TopicConfig, topicConfig } from '@vacancy/shared/contract'
import type { Logger } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Journal, type JournalEvents, JournalFullError } from './journal.ts'
import { createQueueMetrics } from './metrics.ts'
import {
  createPartition,
  faultOf,
  momentOf,
  type Partition,
  type PartitionOptions,
  runSoon,
  startPartition,
} from './partition.ts'
import { handleProducer } from './producer.ts'
import { createTopic } from './queue.ts'
import type { QueueServer, QueueSettings } from './queue-server.ts'
import type { Queue } from './state.ts'
import { LIMITS, START } from './testing/engine.ts'
import { createQueueAccess, type QueueToken } from './tokens.ts'

const SETTINGS = {
  ...{ requestBytesMax: 2_000, jobsPerRequestMax: 3, jobBytesMax: 100, producerResponse: 'json', producerWaitMs: 400 },
  ...{ readTimeoutMs: 5_000, topicCreateRole: 'producer', topicDefaults: topicConfig.parse({ max_attempts: 9 }) },
} as unknown as QueueSettings

type Service = {
  readonly server: QueueServer
  readonly partition: Partition
  readonly events: JournalEvents[]
  readonly logged: string[]
  /** What becomes of groups; stored at once without. */
  writing: (() => Promise<void>) | undefined
}

const ROLES = {
  ...{ producer: { role: 'producer' }, consumer: { role: 'consumer' }, admin: { role: 'admin' } },
  mail: { role: 'producer', topics: ['mail*'] },
}

async function startService(settings: Partial<QueueSettings> = {}, allowQueryToken = false): Promise<Service> {
  const clock = { wallMs: () => Date.now(), monotonicMs: () => 1_000 + performance.now() }
  const logged: string[] = []
  const log = {
    info: () => undefined,
    error: (fields: object, text: string) => logged.push(`${text}: ${'path' in fields ? fields.path : ''}`),
  } as unknown as Logger
  const others = (text: string) => {
    const known = ROLES[text as keyof typeof ROLES]
    const token = { hash: new Uint8Array(32), name: text, expiresMs: Number.POSITIVE_INFINITY }
    return known === undefined ? undefined : ({ ...token, ...known } as QueueToken)
  }
  const access = createQueueAccess({ clock, others, isOtherGood: undefined, allowQueryToken }, [])
  const partitions: Partition[] = []
  const metrics = createQueueMetrics('memory')
  const server: QueueServer = { settings: { ...SETTINGS, ...settings }, log, access, metrics, partitions }
  const events: JournalEvents[] = []
  const options: PartitionOptions = {
    ...{ clock, log, partitions: 1, ackFlushMs: 5, random: () => 0.5, leasePrefix: () => 'p' },
    limits: { ...LIMITS, topicsMax: 2, groupChangesMax: 2_000 },
    open: async (given) => {
      events.push(given)
      return {
        load: async function* () {},
        write: () => service.writing?.() ?? Promise.resolve(),
        close: async () => undefined,
      } as unknown as Journal
    },
    ...{ send: () => undefined, sent: () => undefined, onLost: () => undefined },
    ...{ onLoading: () => undefined, onLoaded: () => undefined, onGroup: () => undefined, onError: () => undefined },
  }
  const partition = createPartition(0, options)
  partitions.push(partition)
  const service: Service = { server, partition, events, logged, writing: undefined }
  await startPartition(partition)
  return service
}

async function startTopic(config: Partial<TopicConfig> = {}, settings: Partial<QueueSettings> = {}): Promise<Service> {
  const service = await startService(settings)
  const { partition } = service
  createTopic(partition.queue as Queue, 'orders', topicConfig.parse(config), momentOf(partition))
  runSoon(partition)
  await pass()
  return service
}

/** Lets time pass, with all that is due; 0 for a few turns of the event loop. */
async function pass(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms)
  for (let n = 0; n < 4; n++) await new Promise((resolve) => setImmediate(resolve))
}

type FakeRequest = EventEmitter & { complete: boolean; readonly ended: string[] }
type FakeResponse = { statusCode: number; readonly headers: { [name: string]: unknown }; text: string | undefined }
type Call = {
  readonly request: FakeRequest
  readonly response: FakeResponse & { headersSent: boolean; destroyed: boolean }
}
type Options = { readonly token?: string; readonly headers?: object }

/** Begins a request, whose body the caller sends. */
function begin(
  { server }: Service,
  method: string,
  url: string,
  { token = 'producer', headers = {} }: Options = {},
): Call {
  const ended: string[] = []
  const authorization = token === '' ? {} : { authorization: `Bearer ${token}` }
  const request: FakeRequest = Object.assign(new EventEmitter(), {
    ...{ method, url, complete: false, ended, rawHeaders: [], headers: { ...authorization, ...headers } },
    socket: { remoteAddress: '10.0.0.1', destroy: () => void ended.push('connection closed') },
    resume: () => void ended.push('resumed'),
  })
  const response = {
    ...{ statusCode: 0, headersSent: false, destroyed: false, headers: {} as { [name: string]: unknown } },
    text: undefined as string | undefined,
    setHeader: (name: string, value: unknown) => {
      response.headers[name] = value
    },
    writeHead: (status: number, more: object) => {
      response.statusCode = status
      Object.assign(response.headers, more)
    },
    end: (text: string) => {
      response.text = text
    },
    destroy: () => void ended.push('response destroyed'),
  }
  handleProducer(server, request as unknown as IncomingMessage, response as unknown as ServerResponse)
  return { request, response }
}

/** Sends the pieces of a body, and its end. */
function send({ request }: Call, ...pieces: readonly string[]): void {
  for (const piece of pieces) request.emit('data', Buffer.from(piece))
  request.complete = true
  request.emit('end')
  request.emit('close')
}

async function call(service: Service, method: string, url: string, body?: unknown, options: Options = {}) {
  const begun = begin(service, method, url, options)
  begun.request.complete = body === undefined
  await pass()
  if (body !== undefined) send(begun, typeof body === 'string' ? body : JSON.stringify(body))
  await pass(5)
  const { statusCode, headers, text } = begun.response
  return { status: statusCode, headers, body: text === undefined || text === '' ? text : JSON.parse(text) }
}

const job = (id: string, more: object = {}) => ({ job: { id, topic: 'orders', data: 'e30=', ...more } })
const jobs = (...ids: readonly string[]) => ({ topic: 'orders', jobs: ids.map((id) => ({ id, data: 'e30=' })) })

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] })
  vi.setSystemTime(START)
})

afterEach(() => {
  vi.clearAllTimers()
  vi.useRealTimers()
})

describe('a request', () => {
  it.each([
    ['POST', '/producer/other?x=1', 404, 'there is no /producer/other', undefined],
    ['GET', '/producer/job', 405, 'use POST', 'POST'],
    ['POST', '/producer/jobs/orders/a', 405, 'use GET or DELETE', 'GET, DELETE'],
  ])('%s %s is answered with %d', async (method, url, status, message, allow) => {
    const answer = await call(await startTopic(), method, url)
    const error = status === 404 ? 'not_found' : 'method_not_allowed'
    expect([answer.status, answer.body, answer.headers['allow']]).toEqual([status, { error, message }, allow])
  })

  it.each([
    ['packed_body', 415, '/producer/jobs', { 'content-encoding': 'gzip' }],
    ['address_too_long', 414, `/producer/topic?${'x'.repeat(17_000)}`, {}],
  ])('is refused by its head: %s', async (error, status, url, headers) => {
    const answer = await call(await startTopic(), 'POST', url, undefined, { headers })
    expect(answer).toMatchObject({ status, body: { error } })
  })

  it('waits after many wrong tokens of its address, but not with a right one', async () => {
    const service = await startTopic()
    const answers = []
    for (let n = 0; n < 100 && answers.at(-1)?.status !== 429; n++)
      answers.push(await call(service, 'GET', '/producer/jobs/orders/a', undefined, { token: 'wrong' }))
    const { status, body, headers } = answers.at(-1) ?? { status: 0, body: undefined, headers: {} }
    const seconds = Number(headers['retry-after'])
    expect([status, body]).toEqual([
      429,
      {
        error: 'queue_full',
        message: `too many wrong tokens; try again in ${seconds} s`,
        retryAfterMs: seconds * 1000,
      },
    ])
    expect((await call(service, 'GET', '/producer/jobs/orders/a')).status).toBe(404)
    const again = () => call(service, 'GET', '/producer/jobs/orders/a', undefined, { token: 'wrong' })
    await pass((seconds - 1) * 1000)
    expect((await again()).body.message).toBe('too many wrong tokens; try again in 1 s')
    await pass(1_000)
    expect((await again()).status).toBe(401)
  })
})

describe('the body of a request', () => {
  const url = '/producer/jobs'

  it.each([
    ['2000', 0, 0],
    ['2001', 0, 413],
    [undefined, 2_000, 0],
    [undefined, 2_001, 413],
  ])('of %s announced and %d received bytes is answered with %d', async (announced, received, status) => {
    const service = await startTopic()
    const headers = announced === undefined ? {} : { 'content-length': announced }
    const begun = begin(service, 'POST', url, { headers })
    await pass()
    if (received > 0) begun.request.emit('data', Buffer.alloc(received))
    await pass()
    expect(begun.response.statusCode).toBe(status)
    if (status === 0) return
    const body = { error: 'request_too_large', message: 'a request has at most 2000 bytes' }
    expect(JSON.parse(begun.response.text ?? '')).toEqual(body)
    await pass(9_999)
    expect(begun.request.ended).toEqual(['resumed'])
    await pass(1)
    expect(begun.request.ended).toEqual(['resumed', 'connection closed'])
  })

  it.each([
    ['without a length', {}],
    ['with a length', { 'content-length': '9' }],
  ])('%s that does not arrive in time is refused', async (_, headers) => {
    const service = await startTopic()
    const begun = begin(service, 'POST', url, { headers })
    await pass()
    begun.request.emit('data', Buffer.from('{"'))
    await pass(3_000)
    begun.request.emit('data', Buffer.from('j'))
    await pass(1_999)
    expect(begun.response.statusCode).toBe(0)
    await pass(1)
    expect([begun.response.statusCode, JSON.parse(begun.response.text ?? '')]).toEqual([
      400,
      { error: 'invalid_request', message: 'the body did not arrive within 5 s' },
    ])
    expect(service.server.metrics.requestSeconds.get('POST /producer/jobs')?.sum).toBe(5)
  })
})

describe('a submission', () => {
  const url = '/producer/jobs'

  it.each<[Partial<TopicConfig>, string]>([
    [{ max_jobs: 2 }, 'max_jobs'],
    [{ max_bytes: 5 }, 'max_bytes'],
  ])('to a topic with %j that is full is refused', async (config, limit) => {
    const service = await startTopic(config)
    const message = `the topic is full: its unfinished jobs have reached ${limit}`
    const { status, body } = await call(service, 'POST', url, jobs('a', 'b', 'c'))
    expect([status, body]).toEqual([429, { error: 'queue_full', message, retryAfterMs: 1_000 }])
    expect([...service.server.metrics.rejected]).toEqual([[`orders ${limit}`, 3]])
  })

  it('is refused on a full disk, then for a second without a try', async () => {
    const service = await startTopic()
    let writes = 0
    service.writing = () => {
      writes++
      return Promise.reject(new JournalFullError('full'))
    }
    for (let n = 0; n < 2; n++) {
      const { status, body } = await call(service, 'POST', url, jobs('a', 'b'))
      const refused = { error: 'queue_full', message: 'the disk of the queue is full', retryAfterMs: 1_000 }
      expect([status, body]).toEqual([429, refused])
    }
    expect([writes, [...service.server.metrics.rejected]]).toEqual([1, [['orders disk', 4]]])
  })

  it('that could not be stored in time is refused before it is taken, and one that was taken waits', async () => {
    const service = await startTopic()
    let stored: () => void = () => undefined
    service.writing = () =>
      new Promise((resolve) => {
        stored = resolve
      })
    const taken = ['a', 'b'].map((id) => {
      const begun = begin(service, 'POST', url)
      send(begun, JSON.stringify(job(id)))
      return begun
    })
    await pass()
    await pass(401)
    const { status, body, headers } = await call(service, 'POST', url, job('c'))
    expect([status, body, headers['retry-after']]).toEqual([
      429,
      {
        error: 'queue_full',
        message: 'the journal is behind: storing would take longer than 400 ms',
        retryAfterMs: 1_000,
      },
      '1',
    ])
    expect([...service.server.metrics.rejected]).toEqual([['orders busy', 1]])
    await pass(10_000)
    expect(taken.map(({ response }) => response.statusCode)).toEqual([0, 0])
    stored()
    await pass()
    stored()
    await pass()
    expect(taken.map(({ response }) => response.statusCode)).toEqual([200, 200])
    expect(service.partition.queue?.topics.get('orders')?.jobs.size).toBe(2)
  })

  it('is refused while many groups wait for a slow journal', async () => {
    const service = await startTopic()
    service.writing = () => new Promise((resolve) => setTimeout(resolve, 350))
    const statuses: number[] = []
    for (let n = 0; n < 12; n++) {
      const begun = begin(service, 'POST', url)
      send(begun, JSON.stringify(job(`job-${n}`)))
      await pass(100)
      statuses.push(begun.response.statusCode)
    }
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(2)
    await pass(2_000)
    expect((await call(service, 'POST', url, job('last'))).status).toBe(0)
    expect(statuses).not.toContain(503)
  })

  it('with a journal that hangs or fails has an unknown outcome', async () => {
    const service = await startTopic()
    const unknown = (why: string) => ({
      error: 'outcome_unknown',
      message: `${why}; repeat the request with the same ids`,
    })
    service.writing = () => new Promise(() => undefined)
    const late = begin(service, 'POST', url)
    send(late, JSON.stringify(job('a')))
    await pass()
    await pass(5_000)
    expect([faultOf(service.partition), late.response.statusCode]).toEqual([undefined, 0])
    await pass(24_900)
    expect([faultOf(service.partition), late.response.statusCode]).toEqual(['journal', 0])
    await pass(100)
    const failed = [503, unknown('the journal failed while storing')]
    expect([late.response.statusCode, JSON.parse(late.response.text ?? '')]).toEqual(failed)
    // It is opened again.
    await pass(1_000)
    expect(service.events.length).toBe(2)
    createTopic(service.partition.queue as Queue, 'orders', topicConfig.parse({}), momentOf(service.partition))
    const lost = begin(service, 'POST', url)
    send(lost, JSON.stringify(job('b')))
    await pass()
    service.events[1]?.onLost(new Error('gone'))
    await pass()
    expect([lost.response.statusCode, JSON.parse(lost.response.text ?? '')]).toEqual(failed)
  })
})
