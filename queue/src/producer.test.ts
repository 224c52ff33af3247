import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type TopicConfig, topicConfig } from '@vacancy/shared/contract'
import type { Logger } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { connect } from './delivery.ts'
import { type Journal, type JournalEvents, JournalFullError } from './journal.ts'
import { createQueueMetrics } from './metrics.ts'
import {
  createPartition,
  momentOf,
  type Partition,
  type PartitionOptions,
  runSoon,
  startPartition,
} from './partition.ts'
import { answerSubmission, handleProducer, isProducerPath } from './producer.ts'
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
    ...{ method, url, complete: false, ended, headers: { ...authorization, ...headers } },
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

it.each([
  ['/producer', true],
  ['/producer?a=1', true],
  ['/producer/', true],
  ['/producer/jobs?token=a', true],
  ['/producers', false],
  ['/api/producer/jobs', false],
  ['/', false],
])('the path %s belongs to producers: %s', (url, isTheirs) => {
  expect(isProducerPath(url)).toBe(isTheirs)
})

describe('a request', () => {
  it.each([
    ['POST', '/producer', 404, 'there is no /producer', 'none', undefined],
    ['POST', '/producer/other?x=1', 404, 'there is no /producer/other', 'none', undefined],
    ['GET', '/producer/jobs', 405, 'use POST', '/producer/jobs', 'POST'],
    ['GET', '/producer/job', 405, 'use POST', '/producer/jobs', 'POST'],
    ['PUT', '/producer/topic', 405, 'use POST', '/producer/topic', 'POST'],
    ['POST', '/producer/jobs/orders/a', 405, 'use GET or DELETE', '/producer/jobs/{topic}/{id}', 'GET, DELETE'],
    ['BREW', '/producer/jobs', 405, 'use POST', '/producer/jobs', 'POST'],
  ])('%s %s is answered with %d, and counted', async (method, url, status, message, route, allow) => {
    const service = await startTopic()
    const answer = await call(service, method, url)
    const error = status === 404 ? 'not_found' : 'method_not_allowed'
    expect([answer.status, answer.body, answer.headers['allow']]).toEqual([status, { error, message }, allow])
    const counted = method === 'BREW' ? 'other' : method
    expect([...service.server.metrics.requests]).toEqual([[`${counted} ${route} ${status}`, 1]])
  })

  it('with an unknown path shows the beginning of it', async () => {
    const { body } = await call(await startTopic(), 'POST', `/producer/${'x'.repeat(300)}`)
    expect(body.message).toBe(`there is no /producer/${'x'.repeat(190)}`)
  })

  it.each([
    ['', 401, { error: 'unauthorized', message: 'a valid token is required: Authorization: Bearer …' }],
    ['wrong', 401, { error: 'unauthorized', message: 'a valid token is required: Authorization: Bearer …' }],
    ['consumer', 403, { error: 'forbidden', message: 'this needs the role producer; the token has the role consumer' }],
    ['mail', 403, { error: 'forbidden', message: 'the token is not for topic "orders"' }],
    ['admin', 200, { status: 'success', topic: 'orders', accepted: 1, duplicates: 0 }],
  ])('with the token "%s" is answered with %d', async (token, status, body) => {
    const service = await startTopic()
    const answer = await call(service, 'POST', '/producer/jobs', job('a'), { token })
    expect([answer.status, answer.body]).toEqual([status, body])
    expect(answer.headers['www-authenticate']).toBe(status === 401 ? 'Bearer' : undefined)
    expect(answer.headers['content-length']).toBe(Buffer.byteLength(JSON.stringify(body)))
    expect(service.server.metrics.authFailures).toBe(status === 401 ? 1 : 0)
  })

  it('may have its token in the query where that is allowed', async () => {
    const url = '/producer/jobs/orders/a?token=producer'
    expect((await call(await startService(), 'GET', url, undefined, { token: '' })).status).toBe(401)
    const service = await startService({}, true)
    expect((await call(service, 'GET', url, undefined, { token: '' })).body.error).toBe('topic_not_found')
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

  it('that fails for no known reason shows nothing of it, and its query is not logged', async () => {
    const service = await startTopic()
    Object.defineProperty(service.server.partitions[0], 'queue', {
      get: () => {
        throw new Error('secret')
      },
    })
    const { status, body } = await call(service, 'POST', '/producer/jobs?token=secret', job('a'))
    expect([status, body]).toEqual([503, { error: 'service_unavailable', message: 'internal error, see the log' }])
    expect(service.logged).toEqual(['a queue request failed: /producer/jobs'])
  })
})

describe('the body of a request', () => {
  const url = '/producer/jobs'

  it('may come in pieces', async () => {
    const service = await startTopic()
    const text = JSON.stringify(job('ü'))
    const begun = begin(service, 'POST', url, { headers: { 'content-length': String(Buffer.byteLength(text)) } })
    send(begun, text.slice(0, 9), text.slice(9, 20), text.slice(20))
    await pass()
    await pass(10_000)
    expect(begun.response).toMatchObject({ statusCode: 200 })
    expect(begun.request.ended).toEqual([])
  })

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

  it('that ends with its connection is counted, and answered to no one', async () => {
    const service = await startTopic()
    const begun = begin(service, 'POST', url)
    await pass()
    begun.request.emit('data', Buffer.from('{"'))
    begun.response.destroyed = true
    begun.request.emit('close')
    await pass()
    expect([begun.response.text, service.server.metrics.requests.size]).toEqual([undefined, 1])
  })

  it('cannot be refused after the response has begun', async () => {
    const begun = begin(await startTopic(), 'POST', url)
    await pass()
    begun.response.headersSent = true
    begun.request.emit('close')
    await pass()
    expect([begun.response.text, begun.request.ended]).toEqual([undefined, ['response destroyed']])
  })
})

describe('a submission', () => {
  const url = '/producer/jobs'

  it('is answered with what was accepted', async () => {
    const service = await startTopic()
    expect((await call(service, 'POST', url, jobs('a', 'b'))).body).toEqual({
      ...{ status: 'success', topic: 'orders', accepted: 2, duplicates: 0 },
    })
    expect((await call(service, 'POST', '/producer/job', jobs('b', 'c', 'a"'))).body).toEqual({
      ...{ status: 'success', topic: 'orders', accepted: 2, duplicates: 1, duplicateIds: ['b'] },
    })
    expect((await call(service, 'POST', `${url}?x=1`, jobs('a"', 'd', 'c'))).body).toMatchObject({
      ...{ accepted: 1, duplicates: 2, duplicateIds: ['a"', 'c'] },
    })
  })

  it('may be answered with an empty body', async () => {
    const service = await startTopic({}, { producerResponse: 'empty' })
    expect(await call(service, 'POST', url, job('a'))).toMatchObject({ status: 200, body: '' })
  })

  it.each([
    ['{', 400, { error: 'invalid_json', message: 'the body is not JSON in UTF-8' }],
    [jobs(), 400, { error: 'invalid_request', message: 'jobs must be a list of at least one job' }],
    [jobs('a', 'b', 'c', 'd'), 400, { error: 'invalid_request', message: '4 jobs; a request has at most 3' }],
    [{ ...jobs('a'), topic: 'other' }, 404, { error: 'topic_not_found', message: 'topic "other" does not exist' }],
  ])('%j is refused', async (body, status, error) => {
    const answer = await call(await startTopic(), 'POST', url, body)
    expect([answer.status, answer.body]).toEqual([status, error])
  })

  it('with a faulty job lists it', async () => {
    const { status, body } = await call(await startTopic(), 'POST', url, jobs('a', ''))
    expect(status).toBe(400)
    expect(body).toMatchObject({ error: 'invalid_request', failures: [{ index: 1, id: '', reason: 'invalid_id' }] })
  })

  it.each<[Partial<TopicConfig>, string, string]>([
    [{ max_jobs: 2 }, 'max_jobs', 'the topic is full: its unfinished jobs have reached max_jobs'],
    [{ max_bytes: 5 }, 'max_bytes', 'the topic is full: its unfinished jobs have reached max_bytes'],
  ])('to a topic with %j that is full is refused', async (config, reason, message) => {
    const service = await startTopic(config)
    const { status, body, headers } = await call(service, 'POST', url, jobs('a', 'b', 'c'))
    expect([status, body, headers['retry-after']]).toEqual([
      429,
      { error: 'queue_full', message, retryAfterMs: 1_000 },
      '1',
    ])
    expect([...service.server.metrics.rejected]).toEqual([[`orders ${reason}`, 3]])
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

  it('that is not stored in time, or with a journal that fails, has an unknown outcome', async () => {
    const service = await startTopic()
    const unknown = (why: string) => ({
      error: 'outcome_unknown',
      message: `${why}; repeat the request with the same ids`,
    })
    service.writing = () => new Promise(() => undefined)
    const late = begin(service, 'POST', url)
    send(late, JSON.stringify(job('a')))
    await pass(399)
    expect(late.response.statusCode).toBe(0)
    await pass(1)
    expect([late.response.statusCode, JSON.parse(late.response.text ?? '')]).toEqual([
      503,
      unknown('not stored within 400 ms'),
    ])
    const lost = begin(service, 'POST', url)
    send(lost, JSON.stringify(job('b')))
    await pass()
    service.events[0]?.onLost(new Error('gone'))
    await pass()
    expect(JSON.parse(lost.response.text ?? '')).toEqual(unknown('the journal failed while storing'))
  })

  it('whose body has arrived is answered alike, and counted', async () => {
    const service = await startTopic()
    const caller = { authorization: 'Bearer producer', query: undefined, address: '10.0.0.1' }
    const stored = Promise.withResolvers<void>()
    service.writing = () => stored.promise
    const answered = answerSubmission(service.server, caller, Buffer.from(JSON.stringify(job('a'))))
    await pass()
    await pass(250)
    stored.resolve()
    const body = '{"status":"success","topic":"orders","accepted":1,"duplicates":0}'
    expect(await answered).toEqual({ status: 200, headers: {}, body })
    const refused = await answerSubmission(service.server, { ...caller, authorization: undefined }, Buffer.from('{'))
    expect(refused).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } })
    expect([...service.server.metrics.requests]).toEqual([
      ['POST /producer/jobs 200', 1],
      ['POST /producer/jobs 401', 1],
    ])
    expect(service.server.metrics.requestSeconds.get('POST /producer/jobs')?.sum).toBe(0.25)
  })
})

describe('a job', () => {
  const url = '/producer/jobs/orders/a'

  it('is shown, with its payload on request', async () => {
    const service = await startTopic()
    await call(service, 'POST', '/producer/jobs', job('a', { data: 'eyJuIjoxfQ==' }))
    const { status, body } = await call(service, 'GET', url)
    expect([status, body.id, body.state, 'data' in body]).toEqual([200, 'a', 'ready', false])
    expect((await call(service, 'GET', `${url}?data=0`)).body).toEqual(body)
    expect((await call(service, 'GET', `${url}?data=1`)).body).toEqual({ ...body, data: 'eyJuIjoxfQ==' })
  })

  it.each([
    ['/producer/jobs/orders/b', 'job_not_found', 'job "b" is not known'],
    ['/producer/jobs/other/a', 'topic_not_found', 'topic "other" does not exist'],
    ['/producer/jobs/orders/', 'not_found', 'the path is /producer/jobs/{topic}/{id}'],
    ['/producer/jobs/orders', 'not_found', 'the path is /producer/jobs/{topic}/{id}'],
    ['/producer/jobs/or%20ders/a', 'not_found', 'the path is /producer/jobs/{topic}/{id}'],
    ['/producer/jobs/orders/%ff', 'not_found', 'the path is /producer/jobs/{topic}/{id}'],
    ['/producer/jobs/%ff/a', 'not_found', 'the path is /producer/jobs/{topic}/{id}'],
  ])('%s is not found: %s', async (path, error, message) => {
    const service = await startTopic()
    for (const method of ['GET', 'DELETE'])
      expect(await call(service, method, path)).toMatchObject({ status: 404, body: { error, message } })
  })

  it('with a slash or an escape in its id is found', async () => {
    const service = await startTopic()
    await call(service, 'POST', '/producer/jobs', job('a/ü b'))
    expect((await call(service, 'GET', '/producer/jobs/orders/a/%C3%BC%20b')).body.id).toBe('a/ü b')
    const refused = { error: 'forbidden', message: 'the token is not for topic "orders"' }
    expect((await call(service, 'GET', url, undefined, { token: 'mail' })).body).toEqual(refused)
  })

  it('is cancelled, also while it is being stored', async () => {
    const service = await startTopic()
    await call(service, 'POST', '/producer/jobs', job('a'))
    expect(await call(service, 'DELETE', url)).toMatchObject({
      ...{ status: 200, body: { status: 'success', id: 'a', previousState: 'ready' } },
    })
    const stored = Promise.withResolvers<void>()
    service.writing = () => stored.promise
    send(begin(service, 'POST', '/producer/jobs'), JSON.stringify(job('a')))
    await pass()
    const cancelled = begin(service, 'DELETE', url)
    await pass()
    expect(cancelled.response.statusCode).toBe(0)
    stored.resolve()
    await pass()
    await pass()
    expect([cancelled.response.statusCode, JSON.parse(cancelled.response.text ?? '').previousState]).toEqual([
      200,
      'ready',
    ])
    expect(service.partition.queue?.topics.get('orders')?.jobs.size).toBe(0)
  })

  it('that is being processed is cancelled only by force', async () => {
    const service = await startTopic()
    await call(service, 'POST', '/producer/jobs', job('a'))
    const fields = { name: 'w', topicName: 'orders', prefetch: 9, confirms: false, tokenName: 't', remote: 'r' }
    connect(service.partition.queue as Queue, fields, momentOf(service.partition))
    runSoon(service.partition)
    await pass()
    const message = 'job "a" is being processed; force=1 removes it anyway'
    const refused = { status: 409, body: { error: 'job_leased', message } }
    expect(await call(service, 'DELETE', url)).toMatchObject(refused)
    expect(await call(service, 'DELETE', `${url}?force=0`)).toMatchObject(refused)
    expect((await call(service, 'DELETE', `${url}?force=1`)).body.previousState).toBe('leased')
  })
})

describe('a topic', () => {
  const url = '/producer/topic'

  it('is created with the defaults of the server and its own configuration', async () => {
    const service = await startService()
    const { status, body } = await call(service, 'POST', url, { topic: 'orders', config: { max_jobs: 5 } })
    expect([status, body]).toEqual([200, { status: 'success', topic: 'orders', created: true }])
    expect(service.partition.queue?.topics.get('orders')?.config).toMatchObject({ max_attempts: 9, max_jobs: 5 })
  })

  it.each([
    ['{', 400, 'invalid_json', 'the body is not JSON in UTF-8'],
    [[], 400, 'invalid_request', /^the body: /],
    [{ topic: 'a b' }, 400, 'invalid_request', 'topic: must be 1 to 200 letters, digits or . _ : -'],
    [{ topic: 'x', config: { max_jobs: 0 } }, 400, 'invalid_request', /^config\.max_jobs: /],
    [{ topic: 'orders' }, 409, 'topic_exists', 'topic "orders" exists'],
  ])('%j is refused', async (body, status, error, message) => {
    const answer = await call(await startTopic(), 'POST', url, body)
    expect([answer.status, answer.body.error]).toEqual([status, error])
    expect(answer.body.message).toMatch(message)
  })

  it('is created by those who may', async () => {
    const message = 'only admin tokens create topics here'
    const service = await startService({ topicCreateRole: 'admin' })
    expect((await call(service, 'POST', url, { topic: 'a' })).body).toEqual({ error: 'forbidden', message })
    expect((await call(service, 'POST', url, { topic: 'a' }, { token: 'admin' })).status).toBe(200)
    const usual = await startService()
    expect((await call(usual, 'POST', url, { topic: 'a' }, { token: 'mail' })).status).toBe(403)
    expect((await call(usual, 'POST', url, { topic: 'mail-1' }, { token: 'mail' })).status).toBe(200)
  })

  it('is refused where there are too many', async () => {
    const service = await startTopic()
    expect((await call(service, 'POST', url, { topic: 'b' })).status).toBe(200)
    const { status, body } = await call(service, 'POST', url, { topic: 'c' })
    expect([status, body.error, body.message]).toEqual([
      ...[429, 'queue_full', 'there are 10000 topics, the most that are allowed'],
    ])
  })
})
