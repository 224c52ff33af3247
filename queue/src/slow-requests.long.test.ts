import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { base64, startTestQueue, TOKENS } from './testing/queue.ts'

test('a request that takes too long is refused, and others are served', async () => {
  const queue = await startTestQueue({ readTimeoutSec: 1 })
  await queue.call('POST', '/producer/topic', { topic: 'orders', config: {} })

  expect(await aByteASecond(queue.url)).toContain('400')

  const job = { id: 'a', topic: 'orders', data: base64({}) }
  expect((await queue.call('POST', '/producer/jobs', { job })).status).toBe(200)
  await queue.stop()
})

test('large submissions of 64 producers at once are stored or refused, never of unknown outcome', {
  timeout: 120_000,
}, async () => {
  const queue = await startTestQueue()
  await queue.call('POST', '/producer/topic', { topic: 'orders' })
  const batch = (name: string) =>
    Array.from({ length: 700 }, (_, n) => ({ id: `${name}-${n}`, json: 'x'.repeat(1_500) }))
  const answers = await Promise.all(
    Array.from({ length: 64 }, (_, n) =>
      queue.call('POST', '/producer/jobs', { topic: 'orders', jobs: batch(String(n)) }),
    ),
  )
  const stored = answers.filter(({ status }) => status === 200).length
  expect(new Set(answers.map(({ status }) => status)).difference(new Set([200, 429]))).toEqual(new Set())
  expect(stored).toBeGreaterThan(0)
  const { body } = await queue.call('GET', '/api/v1/queue/topics/orders/stats')
  expect(body.ready).toBe(700 * stored)
  await queue.stop()
})

/** Sends a body so slowly that it times out. @returns the response */
function aByteASecond(url: string): Promise<string> {
  const { port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1')
    let text = ''
    socket.on('data', (data) => (text += data.toString()))
    socket.on('close', () => resolve(text))
    socket.on('error', () => resolve(text))
    socket.write(
      `POST /producer/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKENS.admin}\r\nContent-Length: 100\r\n\r\n`,
    )
    const timer = setInterval(() => socket.write('{'), 500)
    socket.on('close', () => clearInterval(timer))
  })
}
