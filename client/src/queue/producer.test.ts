import { afterEach, expect, test } from 'vitest'
import { VacancyJobRefusedError, VacancyJobRetryError, VacancyJobsError, VacancyJobUnknownError } from './errors.ts'
import { createProducer, type Producer, type ProducerOptions } from './producer.ts'
import { type Script, type ScriptedQueue, type SubmittedBody, startScriptedQueue } from './testing/scripted-queue.ts'

const open: { close: () => Promise<void> }[] = []

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

async function start(
  script: Script = {},
  options: Partial<ProducerOptions> = {},
): Promise<{ queue: ScriptedQueue; producer: Producer }> {
  const queue = await startScriptedQueue(script)
  const producer = createProducer({ url: queue.url, token: 'secret', ...options })
  open.push(queue, producer)
  return { queue, producer }
}

const idsOf = ({ jobs }: SubmittedBody) => jobs.map(({ id }) => id)
const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

test('concurrent submissions share a request per topic, in the order of the calls', async () => {
  const { queue, producer } = await start()

  await Promise.all([
    ...['a', 'b', 'c'].map((id) => producer.submit({ topic: 'orders', id })),
    producer.submit({ topic: 'mail', id: 'd' }),
  ])

  expect(queue.bodies.map((body) => [body.topic, idsOf(body)])).toEqual([
    ['orders', ['a', 'b', 'c']],
    ['mail', ['d']],
  ])
})

test('a request has at most batchJobs jobs and batchBytes bytes, but always one job', async () => {
  const { queue, producer } = await start({}, { batchJobs: 3, batchBytes: 600 })
  const small = Array.from({ length: 4 }, (_, n) => ({ topic: 'orders', id: `s${n}` }))
  const large = Array.from({ length: 3 }, (_, n) => ({ topic: 'orders', id: `l${n}`, text: 'x'.repeat(300) }))

  await producer.submit([...small, ...large, { topic: 'orders', id: 'huge', text: 'x'.repeat(2_000) }])

  expect(queue.bodies.map(idsOf)).toEqual([['s0', 's1', 's2'], ['s3', 'l0'], ['l1'], ['l2'], ['huge']])
})

test('payloads are JSON values, bytes or texts, sent as base64', async () => {
  const { queue, producer } = await start()

  await producer.submit([
    { topic: 't', id: 'json', data: { order: 1 } },
    { topic: 't', id: 'text value', data: 'text' },
    { topic: 't', id: 'bytes', data: new Uint8Array([0, 255]).subarray(1) },
    { topic: 't', id: 'text', text: '{"n": 12345678901234567890}' },
    { topic: 't', id: 'none' },
    { topic: 't', id: 'options', data: 0, priority: 3, delayMs: 5, runAt: '2027-01-01T00:00:00Z', maxAttempts: 2 },
  ])

  const sent = queue.bodies[0]?.jobs.map(({ data }) =>
    data === null ? null : Buffer.from(data, 'base64').toString('latin1'),
  )
  expect(sent).toEqual(['{"order":1}', '"text"', '\xff', '{"n": 12345678901234567890}', null, '0'])
  expect(queue.bodies[0]?.jobs[5]).toEqual({
    id: 'options',
    data: 'MA==',
    priority: 3,
    delay_ms: 5,
    run_at: '2027-01-01T00:00:00Z',
    max_attempts: 2,
  })
})

test('jobs without an id get a random one', async () => {
  const { queue, producer } = await start()

  const { id } = await producer.submit({ topic: 'orders' })

  expect(id).toMatch(/^[0-9a-f-]{36}$/)
  expect(queue.bodies.map(idsOf)).toEqual([[id]])
})

test('what no server can accept is refused before it is sent', async () => {
  const { queue, producer } = await start()
  const circle: { self?: unknown } = {}
  circle.self = circle

  for (const [job, reason] of [
    [{ topic: 'no spaces' }, undefined],
    [{ topic: 'orders', id: 7 as unknown as string }, 'invalid_id'],
    [{ topic: 'orders', data: circle }, 'invalid_data'],
    [{ topic: 'orders', data: () => 1 }, 'invalid_data'],
    [{ topic: 'orders', data: 1, text: '1' }, 'invalid_data'],
    [{ topic: 'orders', runAt: new Date(Number.NaN) }, 'invalid_option'],
  ] as const) {
    const error = await failureOf(producer.submit(job))
    expect(error).toBeInstanceOf(VacancyJobRefusedError)
    expect(error).toMatchObject({ code: 'invalid_request', reason })
  }
  expect(queue.bodies).toEqual([])
})

test('one invalid job fails alone; the others of its request are sent again', async () => {
  const respond: Script['respond'] = ({ jobs }) => {
    const failures = jobs.flatMap(({ id }, index) =>
      id.startsWith('bad') ? [{ index, id, reason: 'payload_too_large' }] : [],
    )
    return failures.length === 0
      ? undefined
      : { status: 400, body: { error: 'invalid_request', message: 'some jobs are invalid', failures } }
  }
  const { queue, producer } = await start({ respond })

  const error = await failureOf(producer.submit(['a', 'bad', 'b'].map((id) => ({ topic: 'orders', id, data: null }))))

  expect(error).toBeInstanceOf(VacancyJobsError)
  const { errors, stored } = error as VacancyJobsError
  expect(errors).toMatchObject([{ code: 'invalid_request', topic: 'orders', id: 'bad', reason: 'payload_too_large' }])
  expect(errors[0]).toBeInstanceOf(VacancyJobRefusedError)
  expect(stored.map(({ id }) => id)).toEqual(['a', 'b'])
  expect(queue.bodies.map(idsOf)).toEqual([
    ['a', 'bad', 'b'],
    ['a', 'b'],
  ])
})

test('a request that is too large is split until the job is found', async () => {
  const respond: Script['respond'] = ({ jobs }) =>
    jobs.length > 2 || jobs.some(({ id }) => id === 'huge')
      ? { status: 413, body: { error: 'request_too_large', message: 'a request has at most 10 bytes' } }
      : undefined
  const { producer } = await start({ respond })

  const results = await Promise.allSettled(
    ['a', 'b', 'huge', 'c', 'd'].map((id) => producer.submit({ topic: 'orders', id })),
  )

  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  expect(results[2]).toMatchObject({ reason: { code: 'request_too_large', id: 'huge' } })
})

test.each([
  [401, 'unauthorized'],
  [403, 'forbidden'],
  [404, 'topic_not_found'],
])('status %d fails the jobs at once, with its code and message', async (status, code) => {
  const { queue, producer } = await start({ respond: () => ({ status, body: { error: code, message: 'the reason' } }) })

  const error = await failureOf(producer.submit({ topic: 'orders', id: 'a' }))

  expect(error).toBeInstanceOf(VacancyJobRefusedError)
  expect(error).toMatchObject({ code, topic: 'orders', id: 'a', message: 'Job "a" was refused: the reason.' })
  expect(queue.bodies).toHaveLength(1)
})

test('a full topic is tried again after the time that the server names, while other topics continue', async () => {
  let isFull = true
  const respond: Script['respond'] = ({ topic }) =>
    topic === 'orders' && isFull
      ? { status: 429, body: { error: 'queue_full', message: 'the topic is full', retryAfterMs: 50 } }
      : undefined
  const { queue, producer } = await start({ respond })

  const waiting = producer.submit({ topic: 'orders', id: 'a' })
  await producer.submit({ topic: 'mail', id: 'b' })
  isFull = false

  expect(await waiting).toMatchObject({ id: 'a', outcome: 'accepted' })
  expect(queue.bodies.length).toBeGreaterThanOrEqual(3)
})

test.each([
  ['a cut connection', 'cut' as const],
  ['a 503', { status: 503, body: { error: 'outcome_unknown', message: 'the journal failed' } }],
  ['a 502 of a proxy', { status: 502, body: '<html>' }],
  ['a page that is not of a queue', { status: 200, body: '<html>' }],
  ['no response', 'silence' as const],
])('after %s the same ids are sent again, with the jobs submitted meanwhile', async (_, failure) => {
  const respond: Script['respond'] = (_body, n) => (n === 0 ? failure : undefined)
  const { queue, producer } = await start({ respond }, { requestMs: 200 })

  const first = producer.submit({ topic: 'orders', id: 'a' })
  await new Promise((resolve) => setImmediate(resolve))
  const second = producer.submit({ topic: 'orders', id: 'b' })
  await Promise.all([first, second])

  expect(queue.bodies.map(idsOf)).toEqual([['a'], ['a', 'b']])
  expect(producer.stats()).toMatchObject({ pendingJobs: 0, pendingBytes: 0, stored: 2, repeats: 1 })
})

test('a result shows whether the id was known before this call', async () => {
  const respond: Script['respond'] = ({ topic, jobs }, n) => {
    const known = jobs.map(({ id }) => id).filter((id) => id.startsWith('old') || topic === 'cut')
    if (topic === 'cut' && n === 0) return 'cut'
    const counts = { accepted: jobs.length - known.length, duplicates: known.length }
    return { status: 200, body: { status: 'success', topic, ...counts, duplicateIds: known } }
  }
  const { producer } = await start({ respond })

  const repeated = await producer.submit({ topic: 'cut', id: 'a' })
  const [fresh, old] = await producer.submit(['new', 'old'].map((id) => ({ topic: 'orders', id })))

  expect([repeated.outcome, fresh?.outcome, old?.outcome]).toEqual(['stored', 'accepted', 'duplicate'])
})

test('an empty response stores the jobs, too', async () => {
  const { producer } = await start({ respond: () => ({ status: 200 }) })

  expect(await producer.submit({ topic: 'orders', id: 'a' })).toEqual({ topic: 'orders', id: 'a', outcome: 'stored' })
})

test('the owner that a response names gets the requests of that topic from then on', async () => {
  const owner = await startScriptedQueue()
  open.push(owner)
  const respond: Script['respond'] = ({ topic }) =>
    topic === 'orders'
      ? { status: 503, body: { error: 'not_owner', message: 'elsewhere', owner: owner.url } }
      : undefined
  const { queue, producer } = await start({ respond })

  await producer.submit({ topic: 'orders', id: 'a' })
  await producer.submit({ topic: 'mail', id: 'b' })

  expect(owner.bodies.map(idsOf)).toEqual([['a']])
  expect(queue.bodies.map(idsOf)).toEqual([['a'], ['b']])
})

test('of several addresses the next one is used when one fails', async () => {
  const gone = await startScriptedQueue()
  await gone.close()
  const queue = await startScriptedQueue()
  const producer = createProducer({ url: [gone.url, queue.url] })
  open.push(queue, producer)

  await producer.submit({ topic: 'orders', id: 'a' })
  await producer.submit({ topic: 'orders', id: 'b' })

  expect(queue.bodies.map(idsOf)).toEqual([['a'], ['b']])
  expect(producer.stats().repeats).toBe(1)
})

test('a job fails at its deadline, and its error shows whether it may be stored', async () => {
  const full = await start(
    {
      respond: () => ({
        status: 429,
        body: { error: 'queue_full', message: 'the topic is full', retryAfterMs: 60_000 },
      }),
    },
    { deadlineMs: 150 },
  )
  const silent = await start({ respond: () => 'silence' }, { deadlineMs: 150 })

  const refused = await failureOf(full.producer.submit({ topic: 'orders', id: 'a' }))
  const doubtful = await failureOf(silent.producer.submit({ topic: 'orders', id: 'b' }))

  expect(refused).toBeInstanceOf(VacancyJobRetryError)
  expect(String(refused)).toContain('queue_full: the topic is full')
  expect(doubtful).toBeInstanceOf(VacancyJobUnknownError)
  expect(doubtful).toMatchObject({ code: 'deadline_exceeded', id: 'b' })
  await silent.queue.close()
  open.splice(open.indexOf(silent.queue), 1)
})

test('beyond the limit of pending jobs a submission is refused; ready() waits for room', async () => {
  let go = false
  const respond: Script['respond'] = () =>
    go ? undefined : { status: 429, body: { error: 'queue_full', message: 'full', retryAfterMs: 20 } }
  const { producer } = await start({ respond }, { maxPendingJobs: 2, maxPendingBytes: 10_000 })
  const pending = [producer.submit({ topic: 'orders', id: 'a' }), producer.submit({ topic: 'orders', id: 'b' })]

  const error = await failureOf(producer.submit({ topic: 'orders', id: 'c' }))
  go = true
  await producer.ready()
  await Promise.all(pending)
  const large = await failureOf(producer.submit({ topic: 'orders', id: 'd', text: 'x'.repeat(10_000) }))

  expect(error).toBeInstanceOf(VacancyJobRetryError)
  expect(error).toMatchObject({ code: 'backpressure', id: 'c' })
  expect(large).toMatchObject({ code: 'backpressure', id: 'd' })
})

test('close() stores what is pending, and refuses more', async () => {
  const { queue, producer } = await start()

  const pending = producer.submit({ topic: 'orders', id: 'a' })
  await producer.close()

  expect(await pending).toMatchObject({ outcome: 'accepted' })
  expect(queue.bodies).toHaveLength(1)
  expect(await failureOf(producer.submit({ topic: 'orders', id: 'b' }))).toMatchObject({ code: 'client_closed' })
})

test('an invalid option is named', () => {
  const url = 'http://127.0.0.1:1'
  expect(() => createProducer({ url: 'queue' })).toThrow(/^url must be an address/)
  expect(() => createProducer({ url: [] })).toThrow(/^url must list/)
  expect(() => createProducer({ url, token: 'a secret' })).toThrow(/^token must be printable/)
  expect(() => createProducer({ url, batchJobs: 0 })).toThrow(/^batchJobs must be a whole number/)
})
