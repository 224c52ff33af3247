import { afterEach, expect, test } from 'vitest'
import { until } from '../testing/until.ts'
import { createConsumer } from './consumer.ts'
import type { Consumer, ConsumerOptions } from './consumer-options.ts'
import { RejectJob, VacancyConsumerError } from './errors.ts'
import { jobFields, type Script, type ScriptedQueue, startScriptedQueue } from './testing/scripted-queue.ts'

const open: { close: (options?: { waitMs: number }) => Promise<void> }[] = []

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close({ waitMs: 0 })
})

async function start(
  script: Script,
  options: Partial<ConsumerOptions> = {},
): Promise<{ queue: ScriptedQueue; consumer: Consumer; errors: VacancyConsumerError[] }> {
  const queue = await startScriptedQueue(script)
  const errors: VacancyConsumerError[] = []
  const consumer = createConsumer({
    url: queue.url,
    token: 'secret',
    topic: 'orders',
    handler: () => undefined,
    onError: (error) => errors.push(error),
    ...options,
  })
  // Most tests do not wait for it.
  consumer.ended.catch(() => undefined)
  open.push(queue, consumer)
  return { queue, consumer, errors }
}

/** Accepts a consumer and delivers jobs. */
const delivering =
  (ids: readonly string[], more: object = {}): NonNullable<Script['consume']> =>
  ({ send }) => {
    send('accepted')
    for (const [n, id] of ids.entries()) send('job', jobFields(id, n + 1, null, more))
  }
const of = (queue: ScriptedQueue, action: string, peer = 0) =>
  (queue.peers[peer]?.received ?? []).filter((message) => message['action'] === action)

test('it subscribes with its name, prefetch and confirmations; the token is not in the address', async () => {
  const { queue } = await start({}, { concurrency: 7, name: 'worker-1' })

  await until(() => queue.peers.length === 1)

  const [peer] = queue.peers
  expect(Object.fromEntries(peer?.query ?? [])).toEqual({
    topic: 'orders',
    consumer: 'worker-1',
    prefetch: '7',
    confirm: '1',
  })
  expect(peer?.authorization).toBe('Bearer secret')
})

test('finished jobs of one turn are acknowledged in one message, without their lease', async () => {
  const { queue, consumer } = await start({ consume: delivering(['a', 'b', 'c']) })

  await until(() => consumer.stats().done === 3)

  const jobs = of(queue, 'ack').flatMap((message) => message['jobs'] as object[])
  expect(jobs).toEqual([
    { jobId: 'a', seqId: 1 },
    { jobId: 'b', seqId: 2 },
    { jobId: 'c', seqId: 3 },
  ])
  expect(consumer.stats()).toMatchObject({ delivered: 3, running: 0, unconfirmed: 0 })
})

test('an error is sent with its text; RejectJob chooses what follows', async () => {
  const handlers: Record<string, () => void> = {
    error: () => {
      throw new Error('HTTP 500')
    },
    dead: () => {
      throw new RejectJob('invalid address')
    },
    later: () => {
      throw new RejectJob('busy', { delayMs: 5_000 })
    },
    odd: () => {
      throw 'text'
    },
  }
  const { queue } = await start(
    { consume: delivering(Object.keys(handlers)) },
    { handler: async ({ id }) => handlers[id]?.() },
  )

  await until(() => of(queue, 'nack').length === 4)

  expect(of(queue, 'nack').map(({ action: _, lease: __, ...message }) => message)).toEqual([
    { jobId: 'error', seqId: 1, error: 'HTTP 500' },
    { jobId: 'dead', seqId: 2, error: 'invalid address', requeue: false },
    { jobId: 'later', seqId: 3, error: 'busy', requeue: true, delayMs: 5_000 },
    { jobId: 'odd', seqId: 4, error: 'text' },
  ])
})

test('at most `concurrency` handlers run at once, whatever is delivered', async () => {
  let running = 0
  let most = 0
  const { consumer } = await start(
    { consume: delivering(['a', 'b', 'c', 'd', 'e']) },
    {
      concurrency: 2,
      handler: async () => {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setImmediate(resolve))
        running--
      },
    },
  )

  await until(() => consumer.stats().done === 5)

  expect(most).toBe(2)
})

test('leases are extended while handlers run and wait, and extend() reports whether it counted', async () => {
  const answers: boolean[] = []
  const ends: (() => void)[] = []
  const consume: Script['consume'] = ({ socket, send }) => {
    send('accepted')
    socket.on('message', (data: Buffer) => {
      const { action, jobId, ms } = JSON.parse(data.toString('utf8'))
      const result = jobId === 'gone' ? 'stale' : 'extended'
      if (action === 'extend' && ms !== undefined) send('confirm', { jobId, data: { of: 'extend', result } })
    })
    for (const [n, id] of ['a', 'gone', 'waits'].entries())
      send('job', jobFields(id, n + 1, null, { ackDeadlineMs: 300 }))
  }
  let aborted: unknown
  const { queue } = await start(
    { consume },
    {
      concurrency: 2,
      handler: async ({ id }, { signal, extend }) => {
        answers.push(await extend(id === 'a' ? 250 : 200))
        if (id === 'gone') aborted = signal.reason
        await new Promise<void>((resolve) => ends.push(resolve))
      },
    },
  )

  await until(() => answers.length === 2 && of(queue, 'extend').filter(({ ms }) => ms === undefined).length >= 4)
  for (const end of ends) end()

  const extended = of(queue, 'extend').filter(({ ms }) => ms === undefined)
  expect(new Set(extended.map(({ jobId }) => jobId))).toContain('waits')
  expect(answers).toEqual([true, false])
  expect(aborted).toMatchObject({ code: 'lease_lost' })
})

test('a handler that runs too long is aborted, and its job fails', async () => {
  let signal: AbortSignal | undefined
  const { queue, consumer } = await start(
    { consume: delivering(['a']) },
    {
      maxRunMs: 100,
      handler: (_job, context) => {
        signal = context.signal
        return new Promise(() => undefined)
      },
    },
  )

  await until(() => of(queue, 'nack').length === 1)

  expect(of(queue, 'nack')[0]).toMatchObject({ error: 'the handler did not finish within 100 ms' })
  expect(signal?.reason).toMatchObject({ code: 'timed_out' })
  expect(consumer.stats().running).toBe(0)
})

test('a job that was finished without a connection is acknowledged by its id on the next one', async () => {
  let finish = () => {}
  const consume: Script['consume'] = (peer, n) => (n === 0 ? delivering(['a'])(peer, n) : peer.send('accepted'))
  const { queue, consumer, errors } = await start(
    { consume },
    { handler: () => new Promise<void>((resolve) => (finish = resolve)) },
  )
  await until(() => consumer.stats().running === 1)

  queue.peers[0]?.socket.terminate()
  await until(() => !consumer.stats().isConnected)
  finish()
  await until(() => consumer.stats().done === 1)

  expect(of(queue, 'ack', 1)).toEqual([{ action: 'ack', jobs: [{ jobId: 'a' }] }])
  expect(errors.map(({ code }) => code)).toEqual(['closed_1006'])
  expect(consumer.stats()).toMatchObject({ connections: 2, unconfirmed: 0 })
})

test('a job that is delivered again while its handler runs is not started twice', async () => {
  let finish = () => {}
  let starts = 0
  const { queue, consumer } = await start(
    { consume: delivering(['a']) },
    {
      handler: () => {
        starts++
        return new Promise<void>((resolve) => (finish = resolve))
      },
    },
  )
  await until(() => starts === 1)

  queue.peers[0]?.socket.terminate()
  await until(() => consumer.stats().delivered === 2)
  finish()
  await until(() => consumer.stats().done === 1)

  expect(starts).toBe(1)
  expect(of(queue, 'ack', 1)).toEqual([{ action: 'ack', jobs: [{ jobId: 'a', seqId: 1 }] }])
})

test('with fencing a lost connection aborts handlers, and acknowledgements name their lease', async () => {
  let signal: AbortSignal | undefined
  let starts = 0
  const { queue, consumer } = await start(
    { consume: delivering(['a']) },
    {
      fencing: true,
      handler: (_job, context) => {
        starts++
        if (starts > 1) return
        signal = context.signal
        return new Promise(() => undefined)
      },
    },
  )
  await until(() => starts === 1)

  queue.peers[0]?.socket.terminate()
  await until(() => consumer.stats().done === 1)

  expect(signal?.reason).toMatchObject({ code: 'lease_lost' })
  expect(of(queue, 'ack', 1)).toEqual([{ action: 'ack', jobs: [{ jobId: 'a', seqId: 1, lease: 'l.1' }] }])
})

test('a connection on which nothing arrives is given up', async () => {
  const consume: Script['consume'] = (peer, n) => {
    peer.send('accepted')
    if (n > 0) peer.send('job', jobFields('a', 1, null))
  }
  const { consumer, errors } = await start({ consume }, { silenceMs: 500 })

  await until(() => consumer.stats().done === 1)

  expect(errors[0]).toMatchObject({ code: 'connection_lost' })
  expect(errors[0]?.message).toContain('nothing was received for 500 ms')
})

test('messages and fields that it does not know are ignored', async () => {
  const consume: Script['consume'] = (peer, n) => {
    peer.send('weather', { more: [] })
    peer.socket.send('no JSON')
    peer.socket.send('null')
    peer.socket.send('{"action":"job","jobId":7}')
    peer.send('confirm', { data: null })
    peer.send('confirm', { jobId: 'x', data: { of: 'ack', result: '__proto__' } })
    peer.send('error', { data: { code: 'unknown_job' } })
    peer.socket.send(Buffer.from([1]), { binary: true })
    delivering(['a'], { shape: 'round' })(peer, n)
  }
  const { consumer, errors } = await start({ consume })

  await until(() => consumer.stats().done === 1)

  expect(errors).toEqual([])
})

test('after drain it finishes its jobs, and then connects to the next address', async () => {
  let finish = () => {}
  const other = await startScriptedQueue({ consume: delivering(['b']) })
  open.push(other)
  const first = await startScriptedQueue({ consume: delivering(['a']) })
  const { consumer, errors } = await start(
    {},
    {
      url: [first.url, other.url],
      handler: ({ id }) => (id === 'a' ? new Promise<void>((resolve) => (finish = resolve)) : undefined),
    },
  )
  open.push(first)
  await until(() => consumer.stats().running === 1)

  first.peers[0]?.send('drain', { data: { reason: 'shutdown', closeInMs: 5_000 } })
  finish()
  await until(() => consumer.stats().done === 2)

  expect(other.peers).toHaveLength(1)
  expect(errors).toEqual([])
})

test('it follows the owner that a refused connection names', async () => {
  const owner = await startScriptedQueue({ consume: delivering(['a']) })
  open.push(owner)
  const body = { error: 'not_owner', message: 'elsewhere', owner: owner.url }
  const { consumer } = await start({ upgrade: () => ({ status: 503, body }) })

  await until(() => consumer.stats().done === 1)

  expect(owner.peers).toHaveLength(1)
})

test('it tries again after a 503, and ends after a refused token', async () => {
  const upgrade: Script['upgrade'] = (n) =>
    n === 0
      ? { status: 503, body: { error: 'service_unavailable', message: 'loading' } }
      : { status: 401, body: { error: 'unauthorized', message: 'a known token is needed' } }
  const { consumer, errors } = await start({ upgrade })

  await expect(consumer.ended).rejects.toMatchObject({
    code: 'unauthorized',
    topic: 'orders',
    message: 'The consumer cannot continue: a known token is needed.',
  })
  await expect(consumer.ended).rejects.toBeInstanceOf(VacancyConsumerError)
  expect(errors.map(({ code }) => code)).toEqual(['service_unavailable'])
})

test('close() takes no more jobs, waits for handlers up to its limit, and gives the others back', async () => {
  const signals: AbortSignal[] = []
  let finish = () => {}
  const { queue, consumer } = await start(
    { consume: delivering(['quick', 'hangs', 'waits']) },
    {
      concurrency: 2,
      handler: ({ id }, { signal }) => {
        signals.push(signal)
        return new Promise<void>((resolve) => {
          if (id === 'quick') finish = resolve
        })
      },
    },
  )
  await until(() => consumer.stats().delivered === 3)

  const closed = consumer.close({ waitMs: 200 })
  await until(() => of(queue, 'credit').length === 1)
  queue.peers[0]?.send('job', jobFields('late', 4, null))
  finish()
  await closed
  await consumer.ended

  expect(of(queue, 'credit')).toEqual([{ action: 'credit', prefetch: 0 }])
  expect(of(queue, 'release').map(({ jobId }) => jobId)).toEqual(['waits', 'late', 'hangs'])
  expect(of(queue, 'ack')).toHaveLength(1)
  expect(signals[1]?.reason).toMatchObject({ code: 'consumer_closed' })
})

test('a delivery of a job whose acknowledgement is not confirmed is not processed, and given back', async () => {
  const consume: Script['consume'] = (peer, n) => {
    delivering(['a'])(peer, n)
    peer.socket.removeAllListeners('message')
    peer.socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString('utf8'))
      peer.received.push(message)
      if (message.action !== 'ack') return
      peer.send('job', jobFields('a', 2, null))
      peer.send('confirm', { jobId: 'a', seqId: 1, data: { of: 'ack', result: 'done' } })
    })
  }
  let starts = 0
  const { queue, consumer } = await start({ consume }, { handler: () => void starts++ })

  await until(() => of(queue, 'release').length === 1)

  expect(starts).toBe(1)
  expect(of(queue, 'release')).toEqual([{ action: 'release', jobId: 'a', seqId: 2 }])
  expect(consumer.stats()).toMatchObject({ delivered: 2, done: 1, unconfirmed: 0 })
})

/** A consumer that the server stops at once, with the error that ended it. */
const endedBy = async (script: Script) => {
  const { consumer, errors } = await start(script)
  const fatal = await consumer.ended.then(
    () => undefined,
    (error: VacancyConsumerError) => [error.code, error.message],
  )
  return { fatal, errors: errors.map(({ code, message }) => [code, message]) }
}

test.each([
  [1003, '', 'the server refuses binary messages (1003)'],
  [1007, '', 'the server could not read a message (1007)'],
  [4400, 'bad field', 'the server refuses the messages of this consumer (4400 bad field)'],
  [4401, '', 'the token is no longer valid (4401)'],
  [4409, '', 'a newer consumer has the same name (4409)'],
])('close code %d ends it, with the reason', async (code, reason, message) => {
  expect(await endedBy({ consume: ({ socket }) => socket.close(code, reason) })).toEqual({
    fatal: [`closed_${code}`, `The consumer cannot continue: ${message}.`],
    errors: [],
  })
})

test.each([
  [400, { error: 'invalid_request', message: 'no topic' }, 'invalid_request', 'no topic'],
  [401, { error: 'unauthorized' }, 'unauthorized', 'the server responds with status 401'],
  [403, {}, 'http_403', 'the server responds with status 403'],
])('a refusal with status %d ends it', async (status, body, code, message) => {
  expect(await endedBy({ upgrade: () => ({ status, body }) })).toEqual({
    fatal: [code, `The consumer cannot continue: ${message}.`],
    errors: [],
  })
})

test.each<[object, string | undefined, string]>([
  [{ code: 'topic_not_found', error: 'no such topic' }, 'topic_not_found', 'no such topic'],
  [{ code: 'forbidden' }, 'forbidden', 'forbidden'],
  [{}, 'rejected', 'rejected'],
])('a subscription that is rejected with %j ends it', async (data, code, message) => {
  const consume: Script['consume'] = ({ socket, send }) => {
    send('rejected', { data })
    socket.close(1000)
  }
  expect((await endedBy({ consume })).fatal).toEqual([code, `The consumer cannot continue: ${message}.`])
})

test('a subscription that is rejected for now goes to the owner, or is tried again', async () => {
  const owner = await startScriptedQueue({ consume: delivering(['a']) })
  open.push(owner)
  const consume: Script['consume'] = ({ socket, send }, n) => {
    const data = n === 0 ? { code: 'service_unavailable', error: 'loading' } : { code: 'not_owner', owner: owner.url }
    send('rejected', { data })
    socket.close(1000)
  }
  const { consumer, errors } = await start({ consume })

  await until(() => consumer.stats().done === 1)

  expect(errors.map(({ code }) => code)).toEqual(['service_unavailable', 'not_owner'])
  expect(errors[0]?.message).toMatch(/^127\.0\.0\.1:\d+: loading$/)
})

/** Four attempts that wait for growing times: what was to happen at once has happened by then. */
async function fourAttempts(): Promise<void> {
  const { errors } = await start({ upgrade: () => ({ status: 503, body: { error: 'service_unavailable' } }) })
  await until(() => errors.length === 4)
}

test('owners that name each other are followed three times, then it waits', async () => {
  const urls: { queue?: string; other?: string } = {}
  const to = (name: keyof typeof urls) => () => {
    const body = { error: 'not_owner', message: 'elsewhere', owner: urls[name], retryAfterMs: 60_000 }
    return { status: 503, body }
  }
  const other = await startScriptedQueue({ upgrade: to('queue') })
  open.push(other)
  urls.other = other.url
  const queue = await startScriptedQueue({ upgrade: to('other') })
  open.push(queue)
  urls.queue = queue.url
  const { errors } = await start({}, { url: queue.url })

  await until(() => errors.length === 4)
  await fourAttempts()

  expect(errors.map(({ message }) => message)).toEqual(
    [queue, other, queue, other].map(({ port }) => `127.0.0.1:${port}: elsewhere`),
  )
})

test.each([
  ['its body', { retryAfterMs: 60_000 }, {}],
  ['its header', {}, { 'retry-after': '60' }],
])('a server that names a time in %s gets no request before', async (_, more, headers) => {
  const { errors } = await start({
    upgrade: () => ({ status: 503, body: { error: 'service_unavailable', message: 'm', ...more }, headers }),
  })
  await until(() => errors.length === 1)

  await fourAttempts()

  expect(errors).toHaveLength(1)
})

test('a job is handed over with its fields, and the usual ones for what is absent', async () => {
  const jobs: unknown[] = []
  const base64 = Buffer.from([0, 255]).toString('base64')
  const consume: Script['consume'] = ({ send }) => {
    send('accepted')
    send('job', { ...jobFields('a', 1, null), topic: 'orders', attempt: 3, deliveries: 4, ackDeadlineMs: 5_000 })
    send('job', { jobId: 'b', seqId: 2, data: base64, encoding: 'base64', topic: 'orders' })
    send('job', { jobId: 'c', seqId: 3, data: base64, topic: 'orders', attempt: 'x', ackDeadlineMs: 0 })
  }
  const { consumer } = await start({ consume }, { handler: (job) => void jobs.push(job) })

  await until(() => consumer.stats().done === 3)

  const usual = { topic: 'orders', attempt: 1, deliveries: 1, ackDeadlineMs: 30_000 }
  expect(jobs).toEqual([
    { topic: 'orders', id: 'a', data: null, attempt: 3, deliveries: 4, ackDeadlineMs: 5_000 },
    { ...usual, id: 'b', data: Buffer.from([0, 255]) },
    { ...usual, id: 'c', data: base64 },
  ])
})

test('results are counted by kind; what the server could not use is reported, unless its confirmation shows it', async () => {
  const consume: Script['consume'] = ({ send }) => {
    send('accepted')
    for (const [of, result] of [
      ['ack', 'late'],
      ['ack', 'unknown'],
      ['ack', 'stale'],
      ['nack', 'retry'],
      ['nack', 'dead'],
      ['release', 'released'],
      ['release', 'stale'],
      ['extend', 'done'],
      ['ack', 'toString'],
    ])
      send('confirm', { jobId: 'x', data: { of, result } })
    send('error', { data: { code: 'stale_lease', error: 'x' } })
    send('error', { data: { code: 'unknown_job', error: 'x' } })
    send('error', { data: { code: 'bad_message', error: 'no jobs' } })
  }
  const { consumer, errors } = await start({ consume })

  await until(() => errors.length > 0)

  expect(errors.map(({ code, message, topic }) => [code, message, topic])).toEqual([
    ['bad_message', 'no jobs', 'orders'],
  ])
  expect(consumer.stats()).toEqual({
    ...{ isConnected: true, connections: 1, running: 0, unconfirmed: 0, delivered: 0 },
    ...{ done: 0, late: 1, unknown: 1, stale: 1, retry: 1, dead: 1, released: 1 },
  })
})

test('a failed job has the text of its error, or its name, up to 1,000 characters', async () => {
  const errors: Record<string, unknown> = {
    named: new TypeError(''),
    long: new Error('x'.repeat(1_001)),
    requeued: new RejectJob('again', { requeue: true }),
    nothing: undefined,
  }
  const { queue } = await start(
    { consume: delivering(Object.keys(errors)) },
    { handler: ({ id }) => Promise.reject(errors[id]), fencing: false },
  )

  await until(() => of(queue, 'nack').length === 4)

  expect(of(queue, 'nack').map(({ error, requeue, delayMs, lease }) => [error, requeue, delayMs, lease])).toEqual([
    ['TypeError', undefined, undefined, 'l.1'],
    ['x'.repeat(1_000), undefined, undefined, 'l.2'],
    ['again', true, undefined, 'l.3'],
    ['undefined', undefined, undefined, 'l.4'],
  ])
})

test('acknowledgements of many jobs are several messages, far below the limit of one', async () => {
  const ids = Array.from({ length: 300 }, (_, n) => `job-${String(n).padStart(36, '0')}`)
  const { queue, consumer } = await start({ consume: delivering(ids) }, { concurrency: 1_000 })

  await until(() => consumer.stats().done === 300)

  const messages = of(queue, 'ack') as { jobs: object[] }[]
  // An id of 40 bytes, a lease of 3 to 5 and 64 around them: the 149th passes 16,000 bytes.
  const sizes = messages.map(({ jobs }) => jobs.length)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(150)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(300)
  expect(Math.max(...messages.map((message) => JSON.stringify(message).length))).toBeLessThanOrEqual(16_000)
})

test('a job that failed without a connection is not reported: the queue took it back', async () => {
  let fail = () => {}
  const consume: Script['consume'] = (peer, n) => (n === 0 ? delivering(['a'])(peer, n) : peer.send('accepted'))
  const { queue, consumer } = await start(
    { consume },
    { handler: () => new Promise<void>((_, reject) => (fail = () => reject(new Error('x')))) },
  )
  await until(() => consumer.stats().running === 1)

  queue.peers[0]?.socket.terminate()
  await until(() => !consumer.stats().isConnected)
  fail()
  await until(() => consumer.stats().running === 0)
  await until(() => consumer.stats().isConnected)

  expect(of(queue, 'nack', 1)).toEqual([])
  expect(consumer.stats()).toMatchObject({ unconfirmed: 0, connections: 2 })
})

test('deliveries that wait are forgotten with their connection', async () => {
  const ends: (() => void)[] = []
  const started: string[] = []
  const consume: Script['consume'] = (peer, n) =>
    n === 0 ? delivering(['a', 'waits'])(peer, n) : peer.send('accepted')
  const { queue, consumer } = await start(
    { consume },
    {
      concurrency: 1,
      handler: ({ id }) => {
        started.push(id)
        return new Promise<void>((resolve) => ends.push(resolve))
      },
    },
  )
  await until(() => consumer.stats().delivered === 2)

  queue.peers[0]?.socket.terminate()
  await until(() => consumer.stats().connections === 2)
  for (const end of ends) end()
  await until(() => consumer.stats().done === 1)

  expect(started).toEqual(['a'])
  expect(of(queue, 'ack', 1)).toEqual([{ action: 'ack', jobs: [{ jobId: 'a' }] }])
})

test('extend() is false without a connection and after the end of the job, and its time is checked', async () => {
  const contexts: { extend: (ms?: number) => Promise<boolean> }[] = []
  let finish = () => {}
  const consume: Script['consume'] = (peer, n) => (n === 0 ? delivering(['a'])(peer, n) : peer.send('accepted'))
  const { queue, consumer } = await start(
    { consume },
    {
      handler: (_job, context) => {
        contexts.push(context)
        return new Promise<void>((resolve) => (finish = resolve))
      },
    },
  )
  await until(() => contexts.length === 1)
  const extend = (ms?: number) => contexts[0]?.extend(ms)

  await expect(extend(0)).rejects.toThrow('ms must be a whole number, 1 to 2147483647, got 0')
  const unanswered = extend()
  await until(() => of(queue, 'extend').length === 1)
  expect(of(queue, 'extend')).toEqual([{ action: 'extend', jobId: 'a', seqId: 1, lease: 'l.1', ms: 30_000 }])
  queue.peers[0]?.socket.terminate()
  expect(await unanswered).toBe(false)
  await until(() => consumer.stats().connections === 2)
  // The job has no delivery on this connection.
  expect(await extend(5)).toBe(false)
  finish()
  await until(() => consumer.stats().done === 1)
  expect(await extend(5)).toBe(false)
})

test('a server that drains is left once nothing is in hand, and its close is no error', async () => {
  const other = await startScriptedQueue({ consume: delivering(['b']) })
  open.push(other)
  const first = await startScriptedQueue({
    consume: ({ send }) => {
      send('accepted')
      send('drain', { data: { reason: 'shutdown' } })
    },
  })
  const { consumer, errors } = await start({}, { url: [first.url, other.url] })
  open.push(first)
  await until(() => consumer.stats().connections === 1)

  first.peers[0]?.socket.close(1001)
  await until(() => consumer.stats().done === 1)

  expect(errors).toEqual([])
})

test('close() waits for acknowledgements, and with no time to wait gives everything back', async () => {
  const ends: (() => void)[] = []
  const consume: Script['consume'] = (peer, n) => {
    delivering(['a', 'b'])(peer, n)
    peer.socket.removeAllListeners('message')
    peer.socket.on('message', (data: Buffer) => peer.received.push(JSON.parse(data.toString('utf8'))))
  }
  const { queue, consumer } = await start(
    { consume },
    { handler: ({ id }) => (id === 'a' ? undefined : new Promise<void>((resolve) => ends.push(resolve))) },
  )
  await until(() => of(queue, 'ack').length === 1)
  let isClosed = false

  const closed = consumer.close({ waitMs: 60_000 }).then(() => (isClosed = true))
  await until(() => of(queue, 'credit').length === 1)
  for (const end of ends) end()
  await until(() => of(queue, 'ack').length === 2)
  expect(isClosed).toBe(false)
  for (const jobId of ['a', 'b']) queue.peers[0]?.send('confirm', { jobId, data: { of: 'ack', result: 'done' } })
  await closed

  expect(of(queue, 'release')).toEqual([])
  expect(consumer.stats()).toMatchObject({ isConnected: false, running: 0, unconfirmed: 0, done: 2 })
  const hangs = await start({ consume: delivering(['c']) }, { handler: () => new Promise(() => undefined) })
  await until(() => hangs.consumer.stats().running === 1)
  await hangs.consumer.close({ waitMs: 0 })
  await until(() => of(hangs.queue, 'release').length === 1)
  expect(of(hangs.queue, 'release')).toEqual([{ action: 'release', jobId: 'c', seqId: 1 }])
})

test('a consumer that is closed before it could connect stops trying', async () => {
  const { consumer, errors } = await start({
    upgrade: () => ({ status: 503, body: { error: 'service_unavailable', message: 'm', retryAfterMs: 60_000 } }),
  })
  await until(() => errors.length === 1)

  await consumer.close()
  await consumer.ended
  await consumer.close()

  expect(consumer.stats()).toMatchObject({ isConnected: false, connections: 0 })
})

test('redirections count in a row: a connection that was accepted begins again', async () => {
  const owner = await startScriptedQueue({
    consume: (peer, n) => {
      if (n === 3) return delivering(['a'])(peer, n)
      peer.send('accepted')
      peer.socket.terminate()
    },
  })
  open.push(owner)
  const body = { error: 'not_owner', message: 'elsewhere', owner: owner.url, retryAfterMs: 60_000 }
  const { consumer } = await start({ upgrade: () => ({ status: 503, body }) })

  await until(() => consumer.stats().done === 1)

  expect(owner.peers).toHaveLength(4)
})

test('the result of a handler that ran too long does not count', async () => {
  const ends: (() => void)[] = []
  const { queue, consumer } = await start(
    { consume: delivering(['a', 'b']) },
    {
      maxRunMs: 100,
      handler: () => new Promise<void>((resolve, reject) => ends.push(ends.length === 0 ? resolve : reject)),
    },
  )
  await until(() => of(queue, 'nack').length === 2)

  for (const end of ends) end()
  queue.peers[0]?.send('job', jobFields('c', 3, null))
  await until(() => ends.length === 3)

  expect(of(queue, 'ack')).toEqual([])
  expect(of(queue, 'nack')).toHaveLength(2)
  expect(consumer.stats().running).toBe(1)
})

test('close() does not wait longer than until the last handler has failed', async () => {
  let fail = () => {}
  const { queue, consumer } = await start(
    { consume: delivering(['a']) },
    { handler: () => new Promise<void>((_, reject) => (fail = () => reject(new Error('x')))) },
  )
  await until(() => consumer.stats().running === 1)
  let isClosed = false

  const closed = consumer.close({ waitMs: 600_000 }).then(() => (isClosed = true))
  await until(() => of(queue, 'credit').length === 1)
  fail()
  await until(() => isClosed)
  await closed

  expect(of(queue, 'nack')).toHaveLength(1)
})

test('a job that waits is started after one that failed, as after one that succeeded', async () => {
  const { queue, consumer } = await start(
    { consume: delivering(['a', 'b', 'c']) },
    { concurrency: 1, handler: ({ id }) => (id === 'b' ? undefined : Promise.reject(new Error(id))) },
  )

  await until(() => of(queue, 'nack').length === 2 && consumer.stats().done === 1)

  expect(of(queue, 'nack').map(({ jobId }) => jobId)).toEqual(['a', 'c'])
})

test('a delivery that came before a confirmation is given back only on its own connection', async () => {
  const consume: Script['consume'] = (peer, n) => {
    if (n > 0) return peer.send('accepted')
    delivering(['a'])(peer, n)
    peer.socket.removeAllListeners('message')
    // The job comes again instead of a confirmation.
    peer.socket.once('message', () => peer.send('job', jobFields('a', 2, null)))
  }
  const { queue, consumer } = await start({ consume })
  await until(() => consumer.stats().delivered === 2)

  queue.peers[0]?.socket.terminate()
  await until(() => consumer.stats().done === 1)
  queue.peers[1]?.send('job', jobFields('b', 1, null))
  await until(() => consumer.stats().done === 2)

  expect(queue.peers[1]?.received).toEqual([
    { action: 'ack', jobs: [{ jobId: 'a' }] },
    { action: 'ack', jobs: [{ jobId: 'b', seqId: 1 }] },
  ])
})
