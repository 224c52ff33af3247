import { afterEach, expect, test } from 'vitest'
import { GOOD_CONNECTION_MS } from '../retry.ts'
import { until } from '../testing/until.ts'
import { systemWorld } from '../world.ts'
import { createConsumer } from './consumer.ts'
import { jobFields, type Script, startScriptedQueue } from './testing/scripted-queue.ts'

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
