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

/** Four attempts that wait for growing times: what was to happen at once has happened by then. */
async function fourAttempts(): Promise<void> {
  const { errors } = await start({ upgrade: () => ({ status: 503, body: { error: 'service_unavailable' } }) })
  await until(() => errors.length === 4)
}

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
