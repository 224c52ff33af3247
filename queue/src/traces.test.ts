/** The trace of a submission, until a consumer has it (docs/queue.md#producers). */
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { call, startTestQueue, subscribe, type TestQueue, TOKENS } from './testing/queue.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`

let queue: TestQueue

beforeEach(async () => {
  queue = await startTestQueue()
  await queue.call('POST', '/producer/topic', { topic: 'orders' })
})
afterEach(() => queue.stop())

/** As a client sends it whose requests are read without Node's HTTP server. */
function submitPlainly(id: string, header: string): Promise<string> {
  const body = JSON.stringify({ job: { id, topic: 'orders', json: 1 } })
  const head = [
    'POST /producer/jobs HTTP/1.1',
    'Host: queue',
    `Authorization: Bearer ${TOKENS.producer}`,
    `Content-Length: ${body.length}`,
    'Connection: close',
    header,
  ]
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(new URL(queue.url).port), '127.0.0.1')
    socket.setEncoding('utf8')
    socket.on('data', (piece: string) => {
      text += piece
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  })
}

it('the traceparent of a request goes to the consumers of its jobs, by each way to submit them', async () => {
  const headers = { traceparent: TRACEPARENT }
  const jobs = (id: string) => ({ topic: 'orders', jobs: [{ id, json: 1 }] })
  expect((await call(queue.url, 'POST', '/producer/jobs', jobs('chunked'), { headers })).status).toBe(200)
  expect((await call(queue.url, 'POST', '/api/v1/queue/topics/orders/jobs', jobs('api'), { headers })).status).toBe(200)
  expect(await submitPlainly('plain', `traceparent: ${TRACEPARENT}`)).toContain('200 OK')
  const consumer = await subscribe(queue, 'orders', { prefetch: 10 })
  for (const id of ['chunked', 'api', 'plain'])
    expect(await consumer.job()).toMatchObject({ jobId: id, traceparent: TRACEPARENT })
})

it('a malformed traceparent is ignored, and consumers of jobs without one get the message they always got', async () => {
  expect(await submitPlainly('zeros', `traceparent: 00-${'0'.repeat(32)}-b7ad6b7169203331-01`)).toContain('200 OK')
  expect(await submitPlainly('twice', `traceparent: ${TRACEPARENT}\r\ntraceparent: ${TRACEPARENT}`)).toContain('200 OK')
  const consumer = await subscribe(queue, 'orders', { prefetch: 10 })
  for (const id of ['zeros', 'twice']) {
    const { jobId, ...message } = await consumer.job()
    expect(jobId).toBe(id)
    expect(Object.keys(message)).toEqual([
      ...['action', 'topic', 'seqId', 'data', 'attempt', 'deliveries', 'lease', 'ackDeadlineMs'],
    ])
  }
  expect(queue.log.join('')).not.toContain(TRACE)
})
