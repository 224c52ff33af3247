import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { makeCertificate } from '@vacancy/shared/testing/certificates'
import { afterEach, describe, expect, test } from 'vitest'
import { GOOD_CONNECTION_MS } from '../retry.ts'
import { until } from '../testing/until.ts'
import { systemWorld } from '../world.ts'
import { createConsumer } from './consumer.ts'
import { closeEndpoint, createEndpoint, type Endpoint, type EndpointOptions, post } from './endpoint.ts'
import { outcomeOf, outcomesOf } from './submission.ts'
import { jobFields, type Script, startScriptedQueue } from './testing/scripted-queue.ts'

const PAIR = makeCertificate({ subject: 'localhost' })

const open: { close: (options?: { waitMs: number }) => Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close({ waitMs: 0 })
})

/** Counts the attempts of a consumer that a queue never accepts. */
async function startRefused(more: object) {
  let attempts = 0
  const queue = await startScriptedQueue({
    upgrade: () => {
      attempts++
      return { status: 503, body: { error: 'service_unavailable', message: 'loading', ...more } }
    },
  })
  open.push(queue, createConsumer({ url: queue.url, topic: 'orders', handler: () => undefined }))
  return { attempts: () => attempts }
}

test('a consumer that was never accepted waits longer after each failure, in a process of any age', async () => {
  // As old as a connection that counts as good.
  await until(() => systemWorld.clock.monotonicMs() >= GOOD_CONNECTION_MS)

  const growing = await startRefused({})
  const steady = await startRefused({ retryAfterMs: 50 })
  await until(() => steady.attempts() >= 40)

  // 40 pauses of 50 ms are 2 s; pauses that double from 0.1 s, less up to half, allow 6 attempts in that time, 9 in 8 s.
  expect(growing.attempts()).toBeLessThan(12)
})

test('a connection on which only pings arrive is kept', async () => {
  const consume: Script['consume'] = (peer) => {
    peer.send('accepted')
    let pings = 0
    const timer = setInterval(() => {
      if (pings++ < 15) return peer.socket.ping()
      clearInterval(timer)
      peer.send('job', jobFields('a', 1, null))
    }, 100)
  }
  const queue = await startScriptedQueue({ consume })
  const errors: unknown[] = []
  const consumer = createConsumer({
    ...{ url: queue.url, topic: 'orders', silenceMs: 1_000, handler: () => undefined },
    onError: (error) => errors.push(error),
  })
  open.push(queue, consumer)

  await until(() => consumer.stats().done === 1)

  expect(errors).toEqual([])
  expect(queue.peers).toHaveLength(1)
})

test('an invalid option is named', () => {
  const options = { url: 'http://127.0.0.1:1', topic: 'orders', handler: () => undefined }
  expect(() => createConsumer({ ...options, topic: '' })).toThrow(/^topic must/)
  expect(() => createConsumer({ ...options, concurrency: 1_001 })).toThrow(/^concurrency must/)
  expect(() => createConsumer({ ...options, name: '' })).toThrow(/^name must/)
  expect(() => createConsumer({ ...options, handler: 1 as unknown as () => void })).toThrow(/^handler must/)
})

const jobs = (...ids: string[]) => ids.map((id) => ({ id, isRepeated: false }))

test('an id that occurs twice in a request is a duplicate the second time, or both times when it was known', () => {
  expect(outcomesOf(jobs('a', 'a'), ['a'])).toEqual(['accepted', 'duplicate'])
  expect(outcomesOf(jobs('a', 'a'), ['a', 'a'])).toEqual(['duplicate', 'duplicate'])
})

test('when more ids were known than are listed, jobs are stored by this request or before', () => {
  const body = JSON.stringify({ status: 'success', topic: 't', accepted: 0, duplicates: 2, duplicateIds: ['a'] })

  expect(outcomeOf(200, body, 2, undefined)).toEqual({ kind: 'stored', duplicateIds: undefined })
  expect(outcomesOf(jobs('a', 'b'), undefined)).toEqual(['stored', 'stored'])
})

test('a refusal names the time to wait in its body or in its header', () => {
  const body = JSON.stringify({ error: 'queue_full', message: 'full', retryAfterMs: 70 })

  expect(outcomeOf(429, body, 1, 1_000)).toMatchObject({ kind: 'repeat', waitMs: 70, inDoubt: false })
  expect(outcomeOf(429, '', 1, 1_000)).toMatchObject({ kind: 'repeat', code: 'http_429', waitMs: 1_000 })
})

test('failures without a place in the request are ignored', () => {
  const failures = [{ index: 9, id: 'x', reason: 'invalid_id' }, { id: 'y' }]
  const body = JSON.stringify({ error: 'invalid_request', message: 'm', failures })

  expect(outcomeOf(400, body, 1, undefined)).toEqual({
    kind: 'refused',
    code: 'invalid_request',
    message: 'm',
    maySplit: true,
  })
})

describe('an endpoint', () => {
  const endings: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of endings.splice(0).reverse()) await end()
  })

  function endpointOf(options: EndpointOptions): Endpoint {
    const endpoint = createEndpoint(options)
    endings.push(() => closeEndpoint(endpoint))
    return endpoint
  }

  async function serve(listener: RequestListener, server: Server = createServer(listener)) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    endings.push(() => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(resolve))
    })
    return (server.address() as AddressInfo).port
  }

  test('a response of exactly one MiB is read', async () => {
    const port = await serve((_, response) => response.end('x'.repeat(1 << 20)))
    const base = `http://127.0.0.1:${port}`
    expect(await post(endpointOf({ url: base }), base, '{}', 5_000)).toMatchObject({ status: 200 })
  })

  test('with https the certificate is verified by the options of the endpoint', async () => {
    const server = createTlsServer(PAIR, (_, response) => response.end('secure'))
    const port = await serve(() => undefined, server as unknown as Server)
    const url = `https://127.0.0.1:${port}`

    expect(await post(endpointOf({ url, tls: { ca: PAIR.cert } }), url, '{}', 5_000)).toMatchObject({
      text: 'secure',
    })
    expect(await post(endpointOf({ url }), url, '{}', 5_000)).toMatchObject({
      failure: expect.stringContaining('self-signed'),
    })
  })
})
