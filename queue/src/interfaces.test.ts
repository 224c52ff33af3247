import { TOKEN_FAILURES_MAX } from '@vacancy/shared/node'
import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { base64, call, openConsumer, startTestQueue, subscribe, type TestQueue, TOKENS } from './testing/queue.ts'

let queue: TestQueue

afterEach(async () => {
  await queue.stop()
})

const submitOne = (id: string, data: unknown = { id }, more: object = {}) =>
  queue.call('POST', '/producer/jobs', { job: { id, topic: 'orders', data: base64(data), ...more } })

async function startWithTopic(config: Parameters<typeof startTestQueue>[0] = {}, topic: object = {}): Promise<void> {
  queue = await startTestQueue(config)
  expect((await queue.call('POST', '/producer/topic', { topic: 'orders', config: topic })).status).toBe(200)
}

describe('what existing clients rely on', () => {
  it('creates a topic with 200, and answers 409 when it exists', async () => {
    await startWithTopic()
    const again = await queue.call('POST', '/producer/topic', { topic: 'orders' })
    expect(again.status).toBe(409)
    expect(again.body).toMatchObject({ error: 'topic_exists' })
  })

  it('accepts one job, a batch, and the singular path, each with 200 and whatever content type', async () => {
    await startWithTopic()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const job = (id: string) => ({ id, topic: 'orders', data: base64({ id }) })
    for (const [path, body] of [
      ['/producer/jobs', { job: job('a') }],
      ['/producer/jobs', { topic: 'orders', jobs: [job('b'), job('c')] }],
      ['/producer/job', { job: job('d') }],
    ] as const) {
      const answer = await queue.call('POST', path, body, { headers, token: TOKENS.producer })
      expect(answer.status).toBe(200)
      expect(answer.body).toMatchObject({ status: 'success', topic: 'orders', duplicates: 0 })
    }
  })

  it('keeps a backlog without consumers and delivers each job once, in order, on one port', async () => {
    await startWithTopic()
    for (let n = 0; n < 30; n++) expect((await submitOne(`job-${n}`)).status).toBe(200)
    const consumer = await subscribe(queue, 'orders')
    const ids: string[] = []
    for (let n = 0; n < 30; n++) {
      const job = await consumer.job()
      expect(job.seqId).toBe(n + 1)
      expect(job.data).toEqual({ id: job.jobId })
      ids.push(job.jobId)
      consumer.ack(job)
    }
    expect(ids).toEqual(Array.from({ length: 30 }, (_, n) => `job-${n}`))
    await consumer.close()
    const { body } = await queue.call('GET', '/api/v1/queue/topics/orders/stats')
    expect(body).toMatchObject({ ready: 0, leased: 0, totals: { delivered: 30, acked: 30, redelivered: 0 } })
  })

  it('sends a heartbeat as text when nothing else was sent', async () => {
    await startWithTopic({ heartbeatMs: 300 })
    const consumer = await subscribe(queue, 'orders')
    const heartbeat = await consumer.next()
    expect(heartbeat).toMatchObject({ action: 'heartbeat', topic: 'orders', jobId: '', seqId: 0 })
    await consumer.close()
  })

  it('accepts both spellings of acknowledgements', async () => {
    await startWithTopic()
    await submitOne('a')
    await submitOne('b')
    await submitOne('c')
    const consumer = await subscribe(queue, 'orders', { confirm: true })
    const [a, b, c] = [await consumer.job(), await consumer.job(), await consumer.job()]
    consumer.send({ action: 'ack', topic: 'orders', last_id: a.seqId, JobID: a.jobId })
    consumer.send({ action: 'ack', topic: 'orders', lastID: b.seqId, jobId: b.jobId })
    consumer.send({ action: 'ack', SEQ_ID: c.seqId })
    for (const job of [a, b, c]) {
      const confirm = await consumer.next(({ action }) => action === 'confirm')
      expect(confirm).toMatchObject({ jobId: job.jobId, data: { of: 'ack', result: 'done' } })
    }
    await consumer.close()
  })

  it('takes 1,000 new connections at once', { timeout: 240_000 }, async () => {
    await startWithTopic()
    const answers = await Promise.all(Array.from({ length: 1_000 }, (_, n) => submitOne(`job-${n}`)))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  })
})

describe('submission', () => {
  it('stores all jobs of a request or none, and names each faulty one', async () => {
    await startWithTopic({ maxJobBytes: 100 })
    const jobs = [
      { id: 'ok', data: base64('{}') },
      { id: '', data: base64('{}') },
      { id: 'a', data: 'not base64' },
      { id: 'b', data: base64('x'.repeat(101)) },
      { id: 'c', topic: 'mail', data: base64('{}') },
      { id: 'd', priority: 10 },
      { id: 'e\n' },
    ]
    const answer = await queue.call('POST', '/producer/jobs', { topic: 'orders', jobs })
    expect(answer.status).toBe(400)
    expect(answer.body.failures).toMatchObject([
      { index: 1, id: '', reason: 'invalid_id' },
      { index: 2, id: 'a', reason: 'invalid_base64' },
      { index: 3, id: 'b', reason: 'payload_too_large' },
      { index: 4, id: 'c', reason: 'topic_mismatch' },
      { index: 5, id: 'd', reason: 'invalid_option' },
      { index: 6, id: 'e\n', reason: 'invalid_id' },
    ])
    expect((await queue.call('GET', '/producer/jobs/orders/ok')).status).toBe(404)
  })

  it.each([
    ['POST', '/producer/topic', { topic: 'a', config: { max_atempts: 1 } }, 'config.max_atempts'],
    ['POST', '/producer/topic', { topic: 'a', confg: {} }, 'did you mean config?'],
    ['POST', '/producer/jobs?frce=1', { job: { id: 'a', topic: 'orders' } }, 'frce: is not a known parameter'],
    ['GET', '/producer/jobs/orders/a?dta=1', undefined, 'did you mean data?'],
    ['GET', '/producer/jobs/orders/a?data=true', undefined, 'data must be 0 or 1'],
    ['DELETE', '/producer/jobs/orders/a?forced=1', undefined, 'did you mean force?'],
    ['DELETE', '/producer/jobs/orders/a?force=1&force=0', undefined, 'force is given twice'],
    [
      'POST',
      '/api/v1/queue/topics/orders/jobs',
      { job: { id: 'b', topic: 'orders', runat: 1 } },
      'did you mean runAt?',
    ],
    ['PUT', '/api/v1/queue/topics/orders', { config: { order: true } }, 'did you mean ordered?'],
    ['POST', '/api/v1/queue/topics/orders/pause', { reason: 'x' }, 'reason: is not a known field'],
    ['GET', '/api/v1/queue/topics?prefx=a', undefined, 'prefx: is not a known parameter; did you mean prefix?'],
    ['GET', '/api/v1/queue/stats?topic=a', undefined, 'topic: is not a known parameter'],
  ] as const)('%s %s %j is refused by name, and nothing is done', async (method, path, body, text) => {
    await startWithTopic()
    await submitOne('a')
    const answer = await queue.call(method, path, body)
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(text)])
    const { body: stats } = await queue.call('GET', '/api/v1/queue/topics/orders/stats')
    expect(stats).toMatchObject({ ready: 1, paused: false })
  })

  it('says the same of a submission and an acknowledgement however often and late they are repeated', async () => {
    await startWithTopic({}, { dedup_window_sec: 60 })
    const post = async (json: object) =>
      (await queue.call('POST', '/producer/jobs', { job: { id: 'a', topic: 'orders', json } })).body
    const known = { status: 'success', topic: 'orders', accepted: 0, duplicates: 1, duplicateIds: ['a'] }
    expect(await post({ n: 1 })).toMatchObject({ accepted: 1 })
    expect(await post({ n: 1 })).toEqual(known)
    // With other content: the first one stays, and the response says so.
    expect(await post({ n: 2 })).toEqual({ ...known, differentIds: ['a'] })
    const consumer = await subscribe(queue, 'orders', { confirm: true })
    const ack = async () => {
      consumer.send({ action: 'ack', jobId: 'a' })
      return (await consumer.next(({ action }) => action === 'confirm')).data.result
    }
    expect(await consumer.job()).toMatchObject({ data: { n: 1 } })
    expect(await post({ n: 1 })).toEqual(known)
    expect([await ack(), await ack()]).toEqual(['done', 'unknown'])
    // Finished, and known for the time of the window.
    expect(await post({ n: 2 })).toEqual(known)
    expect(await ack()).toBe('unknown')
    await consumer.close()
  })

  it('counts known ids as duplicates, within and across concurrent requests', async () => {
    await startWithTopic()
    const jobs = (ids: string[]) => ({ topic: 'orders', jobs: ids.map((id) => ({ id, data: base64(id) })) })
    const answers = await Promise.all([
      queue.call('POST', '/producer/jobs', jobs(['a', 'b', 'a'])),
      queue.call('POST', '/producer/jobs', jobs(['a', 'b', 'a'])),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    const sums = answers.map(({ body }) => [body.accepted, body.duplicates] as const)
    expect(sums.map(([accepted, duplicates]) => accepted + duplicates)).toEqual([3, 3])
    expect(sums[0]?.[0] + sums[1]?.[0]).toBe(2)
  })

  it('delivers payloads byte for byte, as JSON where they are that and else as base64', async () => {
    await startWithTopic()
    const texts = [
      '{"n":12345678901234567890.10, "n":1}',
      ' [1 , 2]\n',
      '"\u2028 \\u0000 ü"',
      'null',
      '1e400',
      'x',
      '{"a":}',
    ]
    const bytes = [
      ...texts.map((text) => Buffer.from(text)),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('\uFEFF{}'),
      Buffer.alloc(0),
    ]
    for (const [n, payload] of bytes.entries()) expect((await submitOne(`job-${n}`, payload)).status).toBe(200)
    const consumer = await queue.consume()
    const raw: string[] = []
    consumer.socket.on('message', (data: Buffer) => raw.push(data.toString('utf8')))
    consumer.send({ action: 'init', uuid: 'w', topic: 'orders' })
    for (const payload of bytes) {
      const job = await consumer.job()
      const text = raw.find((each) => each.includes(`"jobId":"${job.jobId}"`)) ?? ''
      const isJson = texts.slice(0, 5).includes(payload.toString('utf8'))
      if (payload.length === 0) expect(text).toContain('"data":null')
      else if (isJson) expect(text).toContain(`"data":${payload.toString('utf8')},"attempt"`)
      else expect(job).toMatchObject({ encoding: 'base64', data: payload.toString('base64') })
      const { body } = await queue.call('GET', `/producer/jobs/orders/${job.jobId}?data=1`)
      expect(body.data).toBe(payload.length === 0 ? null : payload.toString('base64'))
    }
    await consumer.close()
  })

  it('refuses what it cannot use with the statuses of the contract, and keeps serving', async () => {
    await startWithTopic({ maxRequestBytes: 10_000, maxJobBytes: 5_000 })
    const post = (body: unknown, options?: object) => queue.call('POST', '/producer/jobs', body, options)
    const cases: readonly (readonly [unknown, number, string])[] = [
      ['{"job":', 400, 'invalid_json'],
      [Buffer.from([0x22, 0xff, 0x22]), 400, 'invalid_json'],
      ['[]', 400, 'invalid_request'],
      ['null', 400, 'invalid_request'],
      ['{}', 400, 'invalid_request'],
      [{ job: { id: 'a', topic: 'orders' }, jobs: [] }, 400, 'invalid_request'],
      [{ topic: 'orders', jobs: [] }, 400, 'invalid_request'],
      [{ topic: '__proto__', jobs: [{ id: 'a' }] }, 400, 'invalid_request'],
      [{ job: { id: 'a', topic: 'constructor' } }, 404, 'topic_not_found'],
      ['['.repeat(9_000), 400, 'invalid_json'],
      [`${'['.repeat(4_000)}${']'.repeat(4_000)}`, 400, 'invalid_request'],
      ['x'.repeat(10_001), 413, 'request_too_large'],
      [{ job: { id: 'x'.repeat(257), topic: 'orders' } }, 400, 'invalid_request'],
      [{ job: { id: 'a', topic: 'orders', delay_ms: 1, run_at: '2027-01-01T00:00:00Z' } }, 400, 'invalid_request'],
    ]
    for (const [body, status, error] of cases) {
      const answer = await post(body)
      expect([answer.status, answer.body.error]).toEqual([status, error])
    }
    expect((await post({}, { token: '' })).status).toBe(401)
    expect((await post({}, { token: 'wrong' })).headers['www-authenticate']).toBe('Bearer')
    expect((await post({}, { token: TOKENS.consumer })).status).toBe(403)
    expect((await queue.call('GET', '/producer/jobs')).headers['allow']).toBe('POST')
    expect((await queue.call('GET', '/producer/nothing')).status).toBe(404)
    expect(
      (await queue.call('POST', '/producer/jobs', { job: { id: 'a', topic: 'sync' } }, { token: TOKENS.orders }))
        .status,
    ).toBe(403)
    expect((await submitOne('<script>alert(1)</script>')).status).toBe(200)
  })

  it('answers 429 when the topic is full, and accepts duplicates all the same', async () => {
    await startWithTopic({}, { max_jobs: 2 })
    expect((await submitOne('a')).status).toBe(200)
    expect((await submitOne('b')).status).toBe(200)
    const full = await submitOne('c')
    expect(full.status).toBe(429)
    expect(full.headers['retry-after']).toBe('1')
    expect(full.body).toMatchObject({ error: 'queue_full', retryAfterMs: 1000 })
    expect((await submitOne('a')).body).toMatchObject({ accepted: 0, duplicates: 1, duplicateIds: ['a'] })
  })

  it('cancels a waiting job, refuses a leased one, and removes it by force', async () => {
    await startWithTopic()
    await submitOne('a')
    await submitOne('b')
    expect((await queue.call('DELETE', '/producer/jobs/orders/a')).body).toMatchObject({ previousState: 'ready' })
    const consumer = await subscribe(queue, 'orders')
    expect((await consumer.job()).jobId).toBe('b')
    expect((await queue.call('DELETE', '/producer/jobs/orders/b')).body).toMatchObject({ error: 'job_leased' })
    expect((await queue.call('DELETE', '/producer/jobs/orders/b?force=1')).body).toMatchObject({
      previousState: 'leased',
    })
    expect((await queue.call('GET', '/producer/jobs/orders/b')).status).toBe(404)
    await consumer.close()
  })
})

describe('consumers', () => {
  it('take their jobs back when a connection breaks and they return under their name, and nothing is counted', async () => {
    await startWithTopic({}, { max_deliveries: 2 })
    await submitOne('a')
    let consumer = await subscribe(queue, 'orders', { confirm: true })
    const { lease } = await consumer.job()
    for (let n = 0; n < 5; n++) {
      consumer.socket.terminate()
      consumer = await subscribe(queue, 'orders', { confirm: true })
      expect(await consumer.job()).toMatchObject({ jobId: 'a', seqId: 1, attempt: 1, deliveries: 1, lease })
    }
    consumer.send({ action: 'ack', jobId: 'a', lease })
    expect((await consumer.next(({ action }) => action === 'confirm')).data).toEqual({ of: 'ack', result: 'done' })
    const { body } = await queue.call('GET', '/api/v1/queue/topics/orders/stats')
    expect(body.totals).toMatchObject({ delivered: 1, redelivered: 0, disconnected: 0, dead: 0 })
    await consumer.close()
  })

  it('lose their jobs to others when they do not come back in time, or under another name', async () => {
    await startWithTopic({ resumeGraceMs: 500 })
    await submitOne('a')
    const first = await subscribe(queue, 'orders')
    await first.job()
    first.socket.terminate()
    const second = await subscribe(queue, 'orders', { uuid: 'worker-8' })
    expect(await second.job()).toMatchObject({ jobId: 'a', attempt: 1, deliveries: 2 })
    await second.close()
  })

  it('return their jobs at once when they close the connection, without a failure', async () => {
    await startWithTopic({ resumeGraceMs: 600_000 })
    await submitOne('a')
    const first = await subscribe(queue, 'orders')
    expect(await first.job()).toMatchObject({ jobId: 'a', attempt: 1, deliveries: 1 })
    await first.close()
    const second = await subscribe(queue, 'orders')
    expect(await second.job()).toMatchObject({ jobId: 'a', attempt: 1, deliveries: 2 })
    await second.close()
  })

  it('see a failed job again after its back-off, and it is dead after max_attempts', async () => {
    await startWithTopic({}, { max_attempts: 2, retry_base_ms: 50 })
    await submitOne('a')
    const consumer = await subscribe(queue, 'orders', { confirm: true })
    const one = await consumer.job()
    consumer.send({ action: 'nack', jobId: 'a', seqId: one.seqId, error: 'HTTP 500 from "host-1"' })
    expect((await consumer.next(({ action }) => action === 'confirm')).data).toEqual({ of: 'nack', result: 'retry' })
    const two = await consumer.job()
    expect(two).toMatchObject({ attempt: 2, deliveries: 2 })
    // A stale negative acknowledgement touches nothing.
    consumer.send({ action: 'nack', jobId: 'a', seqId: one.seqId })
    expect((await consumer.next(({ action }) => action === 'confirm')).data).toEqual({ of: 'nack', result: 'stale' })
    consumer.send({ action: 'nack', jobId: 'a', seqId: two.seqId, error: 'HTTP 502 from "host-2"' })
    expect((await consumer.next(({ action }) => action === 'confirm')).data).toEqual({ of: 'nack', result: 'dead' })
    const groups = await queue.call('GET', '/api/v1/queue/topics/orders/dead/groups')
    expect(groups.body.groups).toMatchObject([{ group: 'HTTP * from *', count: 1, sampleId: 'a' }])
    for (const [query, count] of [
      ['', 1],
      ['group=HTTP%20*%20from%20*', 1],
      ['group=other', 0],
      ['error=502', 1],
      ['error=500', 0],
      ['group=HTTP%20*%20from%20*&minFailures=3', 0],
      ['after=2020-01-01T00:00:00Z&minFailures=2', 1],
    ] as const)
      expect((await queue.call('GET', `/api/v1/queue/topics/orders/dead/count?${query}`)).body).toEqual({
        count,
        exact: true,
      })
    const { body } = await queue.call('GET', '/api/v1/queue/topics/orders/jobs/a?data=1')
    expect(body).toMatchObject({ state: 'dead', reason: 'max_attempts', failures: 2, data: base64({ id: 'a' }) })
    expect(body.history.map(({ event }: { event: string }) => event)).toEqual(['nack', 'delivered', 'nack', 'dead'])
    const redriven = await queue.call('POST', '/api/v1/queue/topics/orders/dead/redrive', { ids: ['a', 'none'] })
    expect(redriven.body).toMatchObject({ redriven: 1, missing: ['none'] })
    expect(await consumer.job()).toMatchObject({ jobId: 'a', attempt: 1, deliveries: 1 })
    await consumer.close()
  })

  it('lose a job whose lease ends, and may still acknowledge it late', async () => {
    await startWithTopic({}, { ack_deadline_ms: 1_000, retry_base_ms: 60_000 })
    await submitOne('a')
    const consumer = await subscribe(queue, 'orders', { confirm: true })
    const job = await consumer.job()
    await expect
      .poll(async () => (await queue.call('GET', '/producer/jobs/orders/a')).body.state, { timeout: 10_000 })
      .toBe('delayed')
    consumer.send({ action: 'ack', jobId: 'a', seqId: job.seqId, lease: job['lease'] })
    expect((await consumer.next(({ action }) => action === 'confirm')).data).toEqual({ of: 'ack', result: 'stale' })
    consumer.send({ action: 'ack', jobId: 'a', seqId: job.seqId })
    expect((await consumer.next(({ action }) => action === 'confirm')).data).toEqual({ of: 'ack', result: 'late' })
    expect((await queue.call('GET', '/producer/jobs/orders/a')).body.state).toBe('done')
    await consumer.close()
  })

  it('get no more than their credit, and pause with 0', async () => {
    await startWithTopic()
    for (let n = 0; n < 5; n++) await submitOne(`job-${n}`)
    const consumer = await queue.consume(`token=${TOKENS.consumer}&topic=orders&consumer=w&prefetch=2`)
    expect(await consumer.next()).toMatchObject({ action: 'accepted', data: { prefetch: 2, adaptive: false } })
    const [one, two] = [await consumer.job(), await consumer.job()]
    consumer.send({ action: 'credit', prefetch: 0 })
    consumer.ack(one)
    consumer.ack(two)
    consumer.send({ action: 'ping' })
    expect((await consumer.next()).action).toBe('heartbeat')
    consumer.send({ action: 'credit', prefetch: 1 })
    expect((await consumer.job()).jobId).toBe('job-2')
    consumer.send({ action: 'release' })
    expect(await consumer.job()).toMatchObject({ jobId: 'job-2', attempt: 1, deliveries: 1 })
    consumer.send({ action: 'close' })
    consumer.send({ action: 'release' })
    expect((await consumer.closed).code).toBe(1000)
  })

  it('are refused or closed with the codes of the contract', async () => {
    await startWithTopic({ wsInitTimeoutMs: 300, wsMaxErrors: 3, wsReadLimitBytes: 2_000 })
    await expect(openConsumer(queue.url, 'token=wrong')).rejects.toThrow('401')
    await expect(openConsumer(queue.url, `token=${TOKENS.producer}`)).rejects.toThrow('403')
    await expect(openConsumer(queue.url, `token=${TOKENS.consumer}&topic=orders`)).rejects.toThrow('400')
    const closedAfter = async (message: unknown, isStarted = true): Promise<number> => {
      const consumer = isStarted ? await subscribe(queue, 'orders') : await queue.consume()
      if (message instanceof Uint8Array) consumer.socket.send(message)
      else if (message !== undefined) consumer.send(message)
      return (await consumer.closed).code
    }
    expect(await closedAfter(undefined, false)).toBe(4408)
    expect(await closedAfter({ action: 'ack', jobId: 'a' }, false)).toBe(4400)
    expect(await closedAfter({ action: 'init', uuid: '', topic: 'orders' }, false)).toBe(4400)
    expect(await closedAfter(Buffer.from([1, 2, 3]))).toBe(1003)
    expect(await closedAfter('{"action":')).toBe(1007)
    expect(await closedAfter('x'.repeat(2_001))).toBe(1009)
    const consumer = await subscribe(queue, 'orders')
    for (const message of [
      { action: 'dance' },
      { action: 'ack' },
      { action: 'ack', jobId: 7 },
      { action: 'ack', topic: 'mail', jobId: 'a' },
    ])
      consumer.send(message)
    const codes = []
    for (let n = 0; n < 4; n++) codes.push((await consumer.next(({ action }) => action === 'error')).data.code)
    expect(codes).toEqual(['unknown_action', 'bad_message', 'bad_message', 'wrong_topic'])
    expect((await consumer.closed).code).toBe(4400)
  })

  it('receive from a topic that is created after they connected, and 4404 when it is deleted', async () => {
    queue = await startTestQueue()
    const consumer = await queue.consume()
    consumer.send({ action: 'init', uuid: 'w', topic: 'orders' })
    expect(await consumer.next()).toMatchObject({ action: 'accepted', data: { topicExists: false } })
    await queue.call('POST', '/producer/topic', { topic: 'orders' })
    await submitOne('a')
    expect((await consumer.job()).jobId).toBe('a')
    expect((await queue.call('DELETE', '/api/v1/queue/topics/orders')).status).toBe(409)
    expect((await queue.call('DELETE', '/api/v1/queue/topics/orders?force=1')).body).toMatchObject({ deletedJobs: 1 })
    expect((await consumer.closed).code).toBe(4404)
    expect((await submitOne('b')).status).toBe(404)
  })

  it('get a drain message on shutdown, and their acknowledgements count until then', async () => {
    await startWithTopic({ shutdownGraceMs: 5_000 })
    await submitOne('a')
    const consumer = await subscribe(queue, 'orders')
    const job = await consumer.job()
    const restarted = queue.restart()
    expect((await consumer.next(({ action }) => action === 'drain')).data).toMatchObject({ reason: 'shutdown' })
    consumer.ack(job)
    expect((await consumer.closed).code).toBe(1001)
    queue = await restarted
    expect((await queue.call('GET', '/producer/jobs/orders/a')).status).toBe(404)
  })
})

describe('behind a trusted proxy', () => {
  const submission = { job: { id: 'a', topic: 'orders', data: base64({}) } }
  const ways: { readonly [way: string]: (headers: { [name: string]: string }) => Promise<number> } = {
    'a plain submission': async (headers) => await statusOf('POST', '/producer/jobs', submission, headers),
    'any other request': async (headers) => await statusOf('GET', '/producer/jobs/orders/a', undefined, headers),
    'the API': async (headers) => await statusOf('GET', '/api/v1/queue/topics', undefined, headers),
    'a consumer': (headers) =>
      new Promise((resolve) => {
        const socket = new WebSocket(`${queue.url.replace('http', 'ws')}/ws?token=wrong`, { headers })
        socket.on('unexpected-response', (_request, { statusCode = 0 }) => {
          resolve(statusCode)
          socket.terminate()
        })
        socket.on('error', () => undefined)
      }),
  }
  const statusOf = async (method: string, path: string, body: unknown, headers: { [name: string]: string }) =>
    (await queue.call(method, path, body, { token: 'wrong', headers })).status

  it('limits wrong tokens by the address that the proxy names, and not by what its caller claims', async () => {
    await startWithTopic({ trustProxy: ['127.0.0.0/8'] })
    for (const [n, [way, ask]] of Object.entries(ways).entries()) {
      const from = (address: string) => ask({ 'x-forwarded-for': address })
      const wrong = Array.from({ length: TOKEN_FAILURES_MAX }, (_, i) => from(`6.6.6.${i}, 10.0.0.${n}`))
      expect(await Promise.all(wrong)).toEqual(wrong.map(() => 401))
      expect([way, await from(`10.0.0.${n}`), await from(`10.0.1.${n}`)]).toEqual([way, 429, 401])
    }
  })
})

describe('a restart', () => {
  it('keeps topics, waiting, delayed and dead jobs with their payloads, failures and history', async () => {
    await startWithTopic({}, { max_attempts: 1, dedup_window_sec: 600 })
    await submitOne('done')
    const consumer = await subscribe(queue, 'orders', { confirm: true, prefetch: 1 })
    consumer.ack(await consumer.job())
    await consumer.next(({ action }) => action === 'confirm')
    await submitOne('dead', 'not json')
    const dead = await consumer.job()
    consumer.send({ action: 'nack', jobId: 'dead', seqId: dead.seqId, error: 'boom' })
    await consumer.next(({ action }) => action === 'confirm')
    await consumer.close()
    await submitOne('ready', { text: 'äöü' }, { priority: 3, ack_deadline_ms: 5_000 })
    await submitOne('later', null, { delay_ms: 3_600_000 })
    queue = await queue.restart()
    const job = async (id: string) => (await queue.call('GET', `/producer/jobs/orders/${id}?data=1`)).body
    expect(await job('ready')).toMatchObject({ state: 'ready', priority: 3, data: base64({ text: 'äöü' }) })
    expect(await job('later')).toMatchObject({ state: 'delayed' })
    expect(await job('dead')).toMatchObject({ state: 'dead', lastError: 'boom', data: base64('not json') })
    expect((await submitOne('done')).body).toMatchObject({ accepted: 0, duplicates: 1 })
  })
})

describe('the API of the queue', () => {
  it('is for admin and monitoring tokens, and tells producers and consumers so', async () => {
    await startWithTopic()
    const status = async (token: string, method = 'GET', path = '/api/v1/queue/topics') =>
      (await queue.call(method, path, undefined, { token })).status
    expect([await status(TOKENS.monitoring), await status(TOKENS.admin)]).toEqual([200, 200])
    expect([await status(''), await status(TOKENS.producer), await status(TOKENS.consumer)]).toEqual([401, 403, 403])
    expect(await status(TOKENS.monitoring, 'POST', '/api/v1/queue/topics/orders/pause')).toBe(403)
    expect((await queue.call('GET', '/metrics', undefined, { token: TOKENS.monitoring })).text).toContain(
      'vacancy_queue_ready_jobs{topic="orders"} 0',
    )
    expect((await queue.call('GET', '/api/v1/queue/health', undefined, { token: '' })).body).toMatchObject({
      status: 'ok',
      durable: true,
    })
  })

  it('pauses, resumes, configures and purges a topic', async () => {
    await startWithTopic()
    const path = '/api/v1/queue/topics/orders'
    expect((await queue.call('POST', `${path}/pause`)).body).toMatchObject({ paused: true })
    await submitOne('a')
    const consumer = await subscribe(queue, 'orders')
    consumer.send({ action: 'ping' })
    expect((await consumer.next()).action).toBe('heartbeat')
    expect((await queue.call('POST', `${path}/resume`)).body).toMatchObject({ paused: false })
    expect((await consumer.job()).jobId).toBe('a')
    expect((await queue.call('PUT', path, { config: { max_attempts: 9 } })).body).toMatchObject({
      created: false,
      config: { max_attempts: 9 },
    })
    expect((await queue.call('PUT', path, { config: { max_attempts: 0 } })).status).toBe(400)
    expect((await queue.call('PUT', '/api/v1/queue/topics/mail', { config: {} })).status).toBe(201)
    const consumers = (await queue.call('GET', '/api/v1/queue/consumers?topic=orders')).body.consumers
    expect(consumers).toMatchObject([{ uuid: 'worker-7', leased: 1 }])
    expect((await queue.call('DELETE', `/api/v1/queue/consumers/${consumers[0].id}`)).status).toBe(200)
    expect((await consumer.closed).code).toBe(4403)
    await submitOne('b')
    expect((await queue.call('POST', `${path}/purge`, { states: ['ready', 'delayed'] })).body).toMatchObject({
      removed: 2,
    })
    expect((await call(queue.url, 'GET', `${path}/jobs?state=ready`)).body.jobs).toEqual([])
  })

  it('purges the named states alone, and deletes a topic with unfinished jobs by force alone', async () => {
    await startWithTopic()
    const path = '/api/v1/queue/topics/orders'
    await submitOne('a')
    await submitOne('late', {}, { delay_ms: 60_000 })
    expect((await queue.call('POST', `${path}/purge`, { states: ['delayed'] })).body).toMatchObject({ removed: 1 })
    expect((await queue.call('GET', path)).body).toMatchObject({ ready: 1, delayed: 0 })
    expect(await queue.call('DELETE', path)).toMatchObject({ status: 409, body: { code: 'topic_not_empty' } })
    expect((await queue.call('DELETE', `${path}?force=1`)).body).toMatchObject({ deletedJobs: 1 })
    expect((await submitOne('b')).body).toMatchObject({ error: 'topic_not_found' })
  })

  it('shows the beginning of payloads in lists, whatever they are', async () => {
    await startWithTopic()
    const bytes = Buffer.alloc(200, 0xff)
    const payloads = [
      ['bytes', bytes.toString('base64'), bytes.subarray(0, 120)],
      ['json', base64({ text: 'a'.repeat(200) }), Buffer.from(`{"text":"${'a'.repeat(111)}`)],
      ['wide', base64(['é'.repeat(200)]), Buffer.from(`["${'é'.repeat(200)}`).subarray(0, 120)],
      ['short', base64({ id: 1 }), Buffer.from('{"id":1}')],
    ] as const
    for (const [id, data] of payloads)
      expect((await queue.call('POST', '/producer/jobs', { job: { id, topic: 'orders', data } })).status).toBe(200)
    await queue.call('POST', '/producer/jobs', { job: { id: 'none', topic: 'orders' } })
    const path = '/api/v1/queue/topics/orders/jobs'
    const { jobs } = (await queue.call('GET', `${path}?head=1`)).body
    expect(jobs.map(({ id, head }: { id: string; head: string | null }) => [id, head])).toEqual([
      ...payloads.map(([id, , head]) => [id, head.toString('base64')]),
      ['none', null],
    ])
    expect((await queue.call('GET', path)).body.jobs[0]).not.toHaveProperty('head')
  })

  it('reports paused topics in statistics, and logs the reason for a change', async () => {
    await startWithTopic({}, { paused: true })
    const path = '/api/v1/queue/topics/orders'
    expect((await queue.call('GET', `${path}/stats`)).body).toMatchObject({ paused: true })
    await submitOne('a')
    await queue.call('POST', `${path}/purge`, { states: ['ready'], reason: ' test data ' })
    expect(queue.log.join()).toContain('ready: 1 jobs. Reason: test data')
    expect((await queue.call('DELETE', `${path}?reason=no%20longer%20used`)).status).toBe(200)
  })
})

it('logs every change, however often it is repeated', async () => {
  await startWithTopic()
  for (let n = 0; n < 5; n++) await queue.call('POST', '/api/v1/queue/topics/orders/pause')
  const changes = queue.log.filter((line) => line.includes('"queue.topic.pause"'))
  expect(changes).toHaveLength(5)
})
