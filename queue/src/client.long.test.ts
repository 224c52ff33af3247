/** The client of `@vacancy/client/queue` against a real queue. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Consumer,
  type ConsumerOptions,
  createConsumer,
  createProducer,
  type Producer,
  RejectJob,
  VacancyJobRefusedError,
  type VacancyJobsError,
} from '@vacancy/client/queue'
import { freePort } from '@vacancy/testkit/free-port'
import { runVacancy } from '@vacancy/testkit/node'
import { type Program, startProgram } from '@vacancy/testkit/program'
import { openRelay } from '@vacancy/testkit/relay'
import { until } from '@vacancy/testkit/until'
import { afterEach, expect, test } from 'vitest'
import { startTestQueue, type TestQueue, TOKENS } from './testing/queue.ts'

const VACANCY = join(import.meta.dirname, '../../bin/vacancy.mjs')
const ended: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end()
})

async function start(config: Parameters<typeof startTestQueue>[0] = {}, topic: object = {}): Promise<TestQueue> {
  const queue = await startTestQueue(config)
  ended.push(() => queue.stop())
  expect((await queue.call('POST', '/producer/topic', { topic: 'orders', config: topic })).status).toBe(200)
  return queue
}

function produce(url: string): Producer {
  const producer = createProducer({ url, token: TOKENS.producer })
  ended.push(() => producer.close())
  return producer
}

function consume(url: string, options: Pick<ConsumerOptions, 'handler'> & Partial<ConsumerOptions>): Consumer {
  const consumer = createConsumer({ url, token: TOKENS.consumer, topic: 'orders', ...options })
  ended.push(() => consumer.close({ waitMs: 0 }))
  return consumer
}

const jobsOf = (count: number, prefix = 'job') =>
  Array.from({ length: count }, (_, n) => ({ topic: 'orders', id: `${prefix}-${n}`, data: { n } }))
const statsOf = async (queue: TestQueue) => (await queue.call('GET', '/api/v1/queue/topics/orders/stats')).body

test('10,000 jobs are stored in order and processed once each, by two consumers', async () => {
  const queue = await start()
  const producer = produce(queue.url)
  const seen: string[] = []
  const handler: ConsumerOptions['handler'] = ({ id, data }) => {
    expect(data).toEqual({ n: Number(id.slice(4)) })
    seen.push(id)
  }

  const jobs = jobsOf(10_000)
  const stored = await Promise.all(jobs.map((job) => producer.submit(job)))
  const consumers = [1, 2].map(() => consume(queue.url, { handler, concurrency: 100 }))
  await until('all jobs are confirmed', () => consumers.reduce((sum, each) => sum + each.stats().done, 0) === 10_000)

  expect(stored.every(({ outcome }) => outcome === 'accepted')).toBe(true)
  expect(new Set(seen).size).toBe(10_000)
  expect(await statsOf(queue)).toMatchObject({ ready: 0, leased: 0, totals: { delivered: 10_000, acked: 10_000 } })
})

test('payloads arrive as they were submitted', async () => {
  const queue = await start()
  const payloads = [{ a: [1, null, 'ü'] }, 'text', 0, false, null, new Uint8Array([0, 255, 10])]
  const received = new Map<string, unknown>()

  await produce(queue.url).submit(payloads.map((data, n) => ({ topic: 'orders', id: String(n), data })))
  const consumer = consume(queue.url, { handler: ({ id, data }) => received.set(id, data) })
  await until('all are done', () => consumer.stats().done === payloads.length)

  expect([...received].sort().map(([, data]) => data)).toEqual([...payloads.slice(0, -1), Buffer.from([0, 255, 10])])
})

test('an id that is known is a duplicate; one invalid job of many fails alone', async () => {
  const queue = await start({ maxJobBytes: 1_000 })
  const producer = produce(queue.url)
  await producer.submit({ topic: 'orders', id: 'known' })

  const error = await producer
    .submit([
      ...jobsOf(150, 'good'),
      { topic: 'orders', id: 'large', data: 'x'.repeat(2_000) },
      { topic: 'orders', id: 'known' },
    ])
    .then(
      () => undefined,
      (failure: unknown) => failure as VacancyJobsError,
    )

  expect(error?.errors).toHaveLength(1)
  expect(error?.errors[0]).toBeInstanceOf(VacancyJobRefusedError)
  expect(error?.errors[0]).toMatchObject({ id: 'large', code: 'invalid_request', reason: 'payload_too_large' })
  expect(error?.stored).toHaveLength(151)
  expect(error?.stored.at(-1)).toEqual({ topic: 'orders', id: 'known', outcome: 'duplicate' })
  expect((await statsOf(queue)).ready).toBe(151)
})

test('200 invalid jobs fail, although a response lists 100 of them', async () => {
  const queue = await start()
  const bad = Array.from({ length: 200 }, (_, n) => ({ topic: 'orders', id: `\u0000${n}` }))

  const error = await produce(queue.url)
    .submit([...bad, ...jobsOf(3)])
    .catch((failure: VacancyJobsError) => failure)

  expect((error as VacancyJobsError).errors).toHaveLength(200)
  expect((error as VacancyJobsError).stored).toHaveLength(3)
})

test('batches that the server finds too large are split', async () => {
  const queue = await start({ maxJobsPerRequest: 7, maxRequestBytes: 4_096, maxJobBytes: 2_048 })

  const stored = await produce(queue.url).submit(jobsOf(100))

  expect(stored).toHaveLength(100)
  expect((await statsOf(queue)).ready).toBe(100)
})

test('refusals are those of the server: unknown topic, unknown token, a token for other topics', async () => {
  const queue = await start()
  const codeOf = async (token: string, topic: string) => {
    const producer = createProducer({ url: queue.url, token })
    const error = await producer.submit({ topic, id: 'a' }).catch((failure: VacancyJobRefusedError) => failure)
    await producer.close()
    expect(error).toBeInstanceOf(VacancyJobRefusedError)
    return (error as VacancyJobRefusedError).code
  }

  expect(await codeOf(TOKENS.producer, 'absent')).toBe('topic_not_found')
  expect(await codeOf('unknown', 'orders')).toBe('unauthorized')
  expect(await codeOf(TOKENS.orders, 'other')).toBe('forbidden')
  expect(await codeOf(TOKENS.consumer, 'orders')).toBe('forbidden')
})

test('a full topic makes submissions wait until consumers make room', async () => {
  const queue = await start({}, { max_jobs: 20 })
  const producer = produce(queue.url)
  await producer.submit(jobsOf(20))

  const waiting = producer.submit({ topic: 'orders', id: 'one-more' })
  await until('the queue refused it', () => producer.stats().repeats > 0)
  const consumer = consume(queue.url, { handler: () => undefined })

  expect((await waiting).outcome).toBe('accepted')
  await until('all are done', () => consumer.stats().done === 21)
})

test('a paused topic delivers when it is resumed', async () => {
  const queue = await start()
  await queue.call('POST', '/api/v1/queue/topics/orders/pause')
  await produce(queue.url).submit(jobsOf(3))
  const consumer = consume(queue.url, { handler: () => undefined })
  await until('it is connected', () => consumer.stats().isConnected)

  expect(consumer.stats().delivered).toBe(0)
  await queue.call('POST', '/api/v1/queue/topics/orders/resume')
  await until('all are done', () => consumer.stats().done === 3)
})

test('a handler that outlives the ack deadline keeps its job', async () => {
  const queue = await start({}, { ack_deadline_ms: 1_000 })
  await produce(queue.url).submit({ topic: 'orders', id: 'slow' })
  let starts = 0
  const consumer = consume(queue.url, {
    handler: async () => {
      starts++
      await until('three deadlines passed', async () => (await statsOf(queue)).totals.expired > 0, 3_000).catch(
        () => {},
      )
    },
  })

  await until('it is done', () => consumer.stats().done === 1)

  expect(starts).toBe(1)
  expect(await statsOf(queue)).toMatchObject({ totals: { delivered: 1, expired: 0, acked: 1 } })
})

test('a handler that throws has its job retried and then dead, with the error', async () => {
  const queue = await start({}, { max_attempts: 2, retry_base_ms: 10 })
  await produce(queue.url).submit([
    { topic: 'orders', id: 'fails' },
    { topic: 'orders', id: 'rejected' },
  ])
  const attempts: number[] = []
  const consumer = consume(queue.url, {
    handler: ({ id, attempt }) => {
      if (id === 'rejected') throw new RejectJob('invalid address')
      attempts.push(attempt)
      throw new Error(`HTTP 500 at attempt ${attempt}`)
    },
  })

  await until('both are dead', () => consumer.stats().dead === 2)

  const { jobs } = (await queue.call('GET', '/api/v1/queue/topics/orders/dead')).body
  const dead = jobs.map(({ id, reason, lastError }: Record<string, string>) => [id, reason, lastError])
  expect(dead).toEqual([
    ['rejected', 'rejected', 'invalid address'],
    ['fails', 'max_attempts', 'HTTP 500 at attempt 2'],
  ])
  expect(attempts).toEqual([1, 2])
  expect(consumer.stats()).toMatchObject({ retry: 1, dead: 2, done: 0 })
})

test('a cancelled job aborts its handler', async () => {
  const queue = await start({}, { ack_deadline_ms: 1_000 })
  await produce(queue.url).submit({ topic: 'orders', id: 'a' })
  let signal: AbortSignal | undefined
  const consumer = consume(queue.url, {
    handler: (_job, context) => {
      signal = context.signal
      return new Promise((resolve) => context.signal.addEventListener('abort', resolve))
    },
  })
  await until('it runs', () => consumer.stats().running === 1)

  await queue.call('DELETE', '/producer/jobs/orders/a?force=1')
  await until('its acknowledgement is refused', () => consumer.stats().unknown === 1)

  expect(signal?.reason).toMatchObject({ code: 'lease_lost' })
})

test('a consumer ends when its token is not that of a consumer', async () => {
  const queue = await start()
  const consumer = createConsumer({
    url: queue.url,
    token: TOKENS.producer,
    topic: 'orders',
    handler: () => undefined,
  })

  await expect(consumer.ended).rejects.toMatchObject({ code: 'forbidden' })
})

test('producer and consumer continue after a graceful restart, and nothing is processed twice', async () => {
  const port = await freePort()
  const queue = await startTestQueue({ listenPort: port, shutdownGraceMs: 30_000 })
  await queue.call('POST', '/producer/topic', { topic: 'orders' })
  const producer = produce(queue.url)
  const seen: string[] = []
  let isSlow = true
  const consumer = consume(queue.url, {
    concurrency: 5,
    handler: async ({ id }) => {
      seen.push(id)
      if (isSlow) await until('the queue drains', () => !isSlow)
    },
  })
  await producer.submit(jobsOf(20))
  await until('handlers run', () => consumer.stats().running === 5)

  const restarted = queue.restart()
  const during = producer.submit(jobsOf(20, 'during'))
  setImmediate(() => {
    isSlow = false
  })
  const second = await restarted
  ended.push(() => second.stop())
  await during
  await until('all are done', () => consumer.stats().done === 40)

  expect(new Set(seen).size).toBe(40)
  expect(seen).toHaveLength(40)
  expect(consumer.stats().connections).toBe(2)
})

test('kill -9 in the middle loses no job, and only jobs without a confirmed acknowledgement run again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-client-kill-'))
  const authFile = join(folder, 'auth.yml')
  const lines = [
    `  - { token: ${TOKENS.producer}, role: producer }`,
    `  - { token: ${TOKENS.consumer}, role: consumer }`,
  ]
  writeFileSync(authFile, `tokens:\n${lines.join('\n')}\n  - { token: ${TOKENS.admin}, role: admin }\n`)
  const port = await freePort()
  const serve = async (): Promise<Program> => {
    const flags = ['--listen-port', String(port), '--data-dir', join(folder, 'data'), '--auth-file', authFile]
    const program = startProgram([VACANCY, 'queue', 'serve', ...flags], { isBound: true })
    await program.printed(/serving: /)
    return program
  }
  let program = await serve()
  const url = `http://127.0.0.1:${port}`
  ended.push(async () => {
    program.signal('SIGKILL')
    await program.ended
    rmSync(folder, { recursive: true })
  })
  await fetch(`${url}/producer/topic`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKENS.producer}` },
    body: '{"topic":"orders"}',
  })
  const producer = produce(url)
  const runs = new Map<string, number>()
  const consumer = consume(url, {
    concurrency: 20,
    handler: async ({ id }) => {
      runs.set(id, (runs.get(id) ?? 0) + 1)
      await new Promise((resolve) => setImmediate(resolve))
    },
  })

  const submitting: Promise<unknown>[] = []
  let unconfirmed = 0
  for (let round = 0; round < 2; round++) {
    for (const job of jobsOf(1_000, `round-${round}`)) submitting.push(producer.submit(job))
    const before = consumer.stats().done
    await until('some are done', () => consumer.stats().done > before + 100)
    program.signal('SIGKILL')
    await program.ended
    await until('handlers finished', () => !consumer.stats().isConnected && consumer.stats().running === 0)
    unconfirmed += consumer.stats().unconfirmed
    program = await serve()
  }
  await Promise.all(submitting)
  await until('all jobs ran', () => runs.size === 2_000 && consumer.stats().unconfirmed === 0)

  expect(producer.stats()).toMatchObject({ stored: 2_000, failed: 0 })
  const repeated = [...runs.values()].filter((count) => count > 1)
  expect(repeated.length).toBeLessThanOrEqual(unconfirmed)
})

test('resets and holes in the network lose no job, and run none twice', async () => {
  // Jobs whose response was lost are submitted again, and may be done by then.
  const queue = await start({ heartbeatMs: 100 }, { dedup_window_sec: 600 })
  const { hostname, port } = new URL(queue.url)
  const relay = await openRelay({ host: hostname, port: Number(port) })
  ended.push(() => relay.close())
  const url = `http://127.0.0.1:${relay.at.port}`
  const producer = createProducer({ url, token: TOKENS.producer, requestMs: 500, batchJobs: 50 })
  ended.push(() => producer.close())
  const runs = new Map<string, number>()
  const consumer = consume(url, {
    concurrency: 30,
    silenceMs: 500,
    handler: async ({ id }) => {
      runs.set(id, (runs.get(id) ?? 0) + 1)
      await new Promise((resolve) => setTimeout(resolve, runs.size % 20))
    },
  })

  const submitting = jobsOf(3_000).map((job) => producer.submit(job))
  for (let fault = 0; fault < 5; fault++) {
    const before = consumer.stats().done
    await until('some are done', () => consumer.stats().done > before + 50)
    if (fault !== 3) relay.reset()
    else {
      relay.cut()
      await until('the silence is noticed', () => !consumer.stats().isConnected)
      relay.mend()
    }
  }
  const stored = await Promise.all(submitting)
  await until('all jobs ran', () => runs.size === 3_000 && consumer.stats().unconfirmed === 0)

  expect(stored.filter(({ outcome }) => outcome === 'duplicate')).toEqual([])
  expect([...runs].filter(([, count]) => count > 1)).toEqual([])
  expect(await statsOf(queue)).toMatchObject({ ready: 0, leased: 0, dead: 0, totals: { accepted: 3_000 } })
})

test('a consumer that closes leaves its jobs to others at once', async () => {
  const queue = await start()
  await produce(queue.url).submit(jobsOf(3))
  const first = consume(queue.url, { handler: () => new Promise(() => undefined), concurrency: 2 })
  await until('two handlers run', () => first.stats().running === 2)

  await first.close({ waitMs: 50 })

  expect(await statsOf(queue)).toMatchObject({ ready: 3, leased: 0, consumers: 0 })
  const second = consume(queue.url, { handler: ({ attempt }) => expect(attempt).toBe(1) })
  await until('all are done', () => second.stats().done === 3)
})

test('bodies far beyond the limit of the server are split, too', async () => {
  const queue = await start({ maxRequestBytes: 100_000, maxJobBytes: 50_000 })
  const jobs = Array.from({ length: 200 }, (_, n) => ({ topic: 'orders', id: `large-${n}`, data: 'x'.repeat(20_000) }))

  expect(await produce(queue.url).submit(jobs)).toHaveLength(200)
})

test('producer, consumer and commands use TLS, with the authority that is named', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-queue-tls-'))
  ended.push(async () => rmSync(folder, { recursive: true }))
  const node = ['--ca', folder, '--node-id', 'queue', '--host', 'localhost,127.0.0.1', '--out', folder]
  await runVacancy(['certs', 'init', '--out', folder])
  await runVacancy(['certs', 'node', ...node])
  const queue = await startTestQueue({ tlsCert: join(folder, 'queue.pem'), tlsKey: join(folder, 'queue.key') })
  ended.push(() => queue.stop())
  const ca = join(folder, 'ca.pem')
  const tls = { ca: readFileSync(ca) }
  const flags = ['--url', queue.url, '--token', TOKENS.admin, '--tls-ca', ca]
  const producer = createProducer({ url: queue.url, token: TOKENS.producer, tls })
  ended.push(() => producer.close())
  const consumer = createConsumer({ url: queue.url, token: TOKENS.consumer, tls, topic: 'orders', handler: () => {} })
  ended.push(() => consumer.close())

  const { code, output } = await runVacancy(['queue', 'topics', ...flags])
  expect(output).toContain('No topics.')
  expect(code).toBe(0)
  const created = await fetchWith(ca, `${queue.url}/producer/topic`)
  expect(created).toBe(200)
  await producer.submit({ topic: 'orders', id: 'a' })
  await until('it is done', () => consumer.stats().done === 1)

  const { output: listed } = await runVacancy(['queue', 'submit', 'orders', 'x', '--id', 'b', ...flags])
  expect(listed).toContain('b accepted')
})

function fetchWith(ca: string, url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${TOKENS.producer}` }
    const sent = request(url, { method: 'POST', ca: readFileSync(ca), headers, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    sent.on('error', reject)
    sent.end('{"topic":"orders"}')
  })
}
