import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { topicConfig } from '@vacancy/shared/contract'
import { freePort } from '@vacancy/testkit/free-port'
import { afterEach, describe, expect, it } from 'vitest'
import { connect, dispatch, reject } from './delivery.ts'
import { commitGroup, createTopic, refuseGrowth, submit } from './queue.ts'
import { beginRedrive, redriveEnded, setRedriveState, stepRedrive } from './redrive.ts'
import { isMarked, readPack } from './sqlite-packs.ts'
import { createQueue, takeGroup } from './state.ts'
import { base64, call, openConsumer, startTestQueue, type TestQueue, TOKENS } from './testing/queue.ts'
import { startQueueProgram } from './testing/shared-queue.ts'

const idsOf = (count: number) => Array.from({ length: count }, (_, n) => `job-${n}`)

/** Submits jobs and rejects each for good. */
async function makeDead(url: string, topic: string, ids: readonly string[], error = 'bad payload'): Promise<void> {
  for (let from = 0; from < ids.length; from += 5_000) {
    const jobs = ids.slice(from, from + 5_000).map((id) => ({ id, topic, data: base64({ id }) }))
    expect((await call(url, 'POST', '/producer/jobs', { topic, jobs })).status).toBe(200)
  }
  const consumer = await openConsumer(url, `token=${TOKENS.consumer}&topic=${topic}&consumer=w&prefetch=1000`)
  for (let n = 0; n < ids.length; n++) {
    const { jobId, seqId } = await consumer.job()
    consumer.send({ action: 'nack', jobId, seqId, requeue: false, error })
  }
  await expect.poll(() => countsOf(url, topic), { timeout: 30_000 }).toMatchObject({ ready: 0, leased: 0 })
  await consumer.close()
}

async function countsOf(url: string, topic: string) {
  return (await call(url, 'GET', `/api/v1/queue/topics/${topic}`)).body
}

describe('a long redrive', () => {
  let queue: TestQueue

  afterEach(async () => {
    await queue.stop()
  })

  const path = '/api/v1/queue/topics/orders/redrive'
  const start = async (topics: readonly string[] = ['orders']) => {
    queue = await startTestQueue()
    for (const topic of topics) await queue.call('PUT', `/api/v1/queue/topics/${topic}`, { config: {} })
  }
  const stateOf = async () => (await queue.call('GET', path)).body.redrive

  it('makes all jobs ready that match, at its rate, and ends', async () => {
    await start()
    await makeDead(queue.url, 'orders', idsOf(40))
    await makeDead(queue.url, 'orders', ['other'], 'timeout')
    expect(await stateOf()).toBeNull()
    const begun = performance.now()
    const { status, body } = await queue.call('POST', path, { filter: { error: 'payload' }, ratePerSec: 100 })
    expect(status).toBe(202)
    expect(body).toMatchObject({ state: 'running', total: 40, to: null, ratePerSec: 100, filter: { error: 'payload' } })
    await expect.poll(stateOf, { timeout: 10_000 }).toMatchObject({ state: 'done', left: 0, redriven: 40 })
    expect(performance.now() - begun, 'at most 100 a second, with a first step of 10').toBeGreaterThan(250)
    expect(await countsOf(queue.url, 'orders')).toMatchObject({ ready: 40, dead: 1 })
  })

  it('pauses, resumes and is cancelled, and refuses a second one meanwhile', async () => {
    await start()
    await makeDead(queue.url, 'orders', idsOf(30))
    expect((await queue.call('POST', path, { ratePerSec: 1 })).status).toBe(202)
    expect((await queue.call('POST', path, {})).body).toMatchObject({ code: 'redrive_running', status: 409 })
    expect((await queue.call('POST', `${path}/pause`)).body).toMatchObject({ state: 'paused' })
    const { left } = await stateOf()
    expect((await queue.call('POST', `${path}/resume`)).body).toMatchObject({ state: 'running' })
    await expect.poll(async () => (await stateOf()).left, { timeout: 10_000 }).toBeLessThan(left)
    expect((await queue.call('POST', `${path}/cancel`)).body).toMatchObject({ state: 'cancelled' })
    const cancelled = await stateOf()
    const counts = await countsOf(queue.url, 'orders')
    expect(counts.ready + counts.dead).toBe(30)
    expect(counts.dead).toBe(cancelled.left)
    expect(cancelled.endedAt).not.toBeNull()
    expect((await queue.call('POST', `${path}/resume`)).status).toBe(404)
  })

  it('moves jobs to another topic, except those it knows, and pauses when the topic is deleted', async () => {
    await start(['orders', 'retry'])
    await makeDead(queue.url, 'orders', idsOf(5))
    await queue.call('POST', '/producer/jobs', { job: { id: 'job-3', topic: 'retry', data: base64(1) } })
    await queue.call('POST', path, { to: 'retry', ratePerSec: 20_000 })
    await expect.poll(stateOf).toMatchObject({ state: 'done', redriven: 4, conflicts: ['job-3'] })
    expect(await countsOf(queue.url, 'retry')).toMatchObject({ ready: 5 })
    expect(await countsOf(queue.url, 'orders')).toMatchObject({ ready: 0, dead: 1 })

    await makeDead(queue.url, 'orders', ['a', 'b', 'c'])
    await queue.call('POST', path, { to: 'retry', ratePerSec: 1 })
    await queue.call('DELETE', '/api/v1/queue/topics/retry?force=1')
    await expect
      .poll(stateOf, { timeout: 10_000 })
      .toMatchObject({ state: 'paused', reason: 'topic "retry" does not exist' })
  })

  it('does not redrive a job again that died once more', async () => {
    await start()
    await makeDead(queue.url, 'orders', idsOf(20))
    const consumer = await queue.consume(`token=${TOKENS.consumer}&topic=orders&consumer=w`)
    consumer.socket.on('message', (data: Buffer) => {
      const { action, jobId, seqId } = JSON.parse(data.toString('utf8'))
      if (action === 'job') consumer.send({ action: 'nack', jobId, seqId, requeue: false, error: 'again' })
    })
    await queue.call('POST', path, { ratePerSec: 20_000 })
    await expect.poll(stateOf).toMatchObject({ state: 'done', redriven: 20 })
    await expect.poll(() => countsOf(queue.url, 'orders')).toMatchObject({ ready: 0, leased: 0, dead: 20 })
    const { body } = await queue.call('GET', '/api/v1/queue/topics/orders/stats')
    expect(body.totals).toMatchObject({ redriven: 20 })
    await consumer.close()
  })

  it('refuses a topic that does not exist, and rates beyond the limit', async () => {
    await start()
    expect((await queue.call('POST', path, { to: 'none' })).body).toMatchObject({ code: 'topic_not_found' })
    expect((await queue.call('POST', path, { ratePerSec: 0 })).status).toBe(400)
    expect((await queue.call('POST', path, { ratePerSec: 20_001 })).status).toBe(400)
    expect((await queue.call('POST', `${path}/pause`)).body).toMatchObject({ code: 'not_found' })
  })
})

describe.each([
  { what: 'to its own topic', to: undefined },
  { what: 'to another topic', to: 'retry' },
])('a redrive of 25,000 jobs $what', ({ to }) => {
  it('continues after kill -9, and leaves each job in exactly one place', { timeout: 180_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vacancy-redrive-'))
    const authFile = join(folder, 'auth.yml')
    writeFileSync(
      authFile,
      `tokens:\n  - { token: ${TOKENS.admin}, role: admin }\n  - { token: ${TOKENS.consumer}, role: consumer }\n`,
    )
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const jobs = 25_000
    const target = to ?? 'orders'
    let program = await startQueueProgram(folder, { authFile, port, databaseUrl: '' })
    try {
      for (const topic of ['orders', 'retry']) await call(url, 'POST', '/producer/topic', { topic })
      await makeDead(url, 'orders', idsOf(jobs))
      const path = '/api/v1/queue/topics/orders/redrive'
      expect((await call(url, 'POST', path, { to, ratePerSec: 10_000 })).status).toBe(202)
      const redrive = async () => (await call(url, 'GET', path)).body.redrive
      await expect.poll(async () => (await redrive()).redriven, { interval: 20 }).toBeGreaterThan(jobs / 4)
      program.signal('SIGKILL')
      await program.ended

      const places = rowsOf(join(folder, 'data', 'queue.db'))
      expect(places.length).toBe(jobs)
      expect(new Set(places.map(({ id }) => id)).size).toBe(jobs)
      const dead = places.filter(({ state }) => state === 1)
      expect(dead.length, 'some were redriven, and some not').toBeGreaterThan(0)
      expect(dead.length).toBeLessThan(jobs)
      expect(new Set(dead.map(({ topic }) => topic))).toEqual(new Set(['orders']))
      expect(new Set(places.filter(({ state }) => state === 0).map(({ topic }) => topic))).toEqual(new Set([target]))

      program = await startQueueProgram(folder, { authFile, port, databaseUrl: '' })
      const restarted = await redrive()
      expect(restarted.left).toBeLessThanOrEqual(dead.length)
      await expect.poll(redrive, { timeout: 240_000 }).toMatchObject({ state: 'done', left: 0 })
      expect(await countsOf(url, target)).toMatchObject({ ready: jobs, dead: 0 })
      const consumer = await openConsumer(url, `token=${TOKENS.consumer}&topic=${target}&consumer=w&prefetch=1000`)
      const seen = new Set<string>()
      for (let n = 0; n < jobs; n++) {
        const job = await consumer.job()
        seen.add(job.jobId)
        consumer.ack(job)
      }
      expect(seen.size).toBe(jobs)
      await consumer.close()
    } finally {
      program.signal('SIGKILL')
      await program.ended
      rmSync(folder, { recursive: true })
    }
  })
})

it('counts the jobs of a step as left when the disk is full for it and it was cancelled meanwhile', () => {
  const now = { wallMs: 1_000_000, monotonicMs: 0 }
  const limits = {
    topicsMax: 10,
    bytesMax: 1e9,
    groupChangesMax: 100,
    groupBytesMax: 1e6,
    prefetchDefault: 64,
    prefetchMax: 1_000,
    ackDeadlineMsMax: 60_000,
    leaseFactorMax: 10,
    resumeGraceMs: 2_000,
  }
  const queue = createQueue({ limits, random: () => 0.5, leasePrefix: 'l', nextConsumer: 1, consumerStride: 1 }, now)
  const commitAll = () => {
    while (takeGroup(queue) !== undefined) commitGroup(queue, now)
  }
  createTopic(queue, 'orders', topicConfig.parse({}), now)
  const topic = queue.topics.get('orders')
  if (topic === undefined) throw new Error('the topic was created')
  const job = { priority: 0, flags: 1, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: '1', bytes: 1 }
  submit(
    queue,
    topic,
    idsOf(3).map((id) => ({ ...job, id })),
    now,
  )
  commitAll()
  const fields = { name: 'w', topicName: 'orders', prefetch: 10, confirms: false, tokenName: 't', remote: '' }
  const consumer = connect(queue, fields, now)
  dispatch(queue, now, () => undefined)
  const failure = { error: 'bad payload', requeue: false }
  for (const jobId of idsOf(3)) reject(queue, consumer, { jobId, seqId: undefined, lease: undefined }, failure, now)
  commitAll()

  beginRedrive(queue, topic, { filter: {}, to: undefined, ratePerSec: 10, by: 'test' }, now)
  const { redrive } = topic
  const step = stepRedrive(queue, topic, 2, now)
  setRedriveState(queue, topic, 'cancelled', now)
  expect(redrive?.record.left, 'while the step is being stored').toBe(1)
  takeGroup(queue)
  refuseGrowth(queue, now)
  if (redrive === undefined || step.kind !== 'moved') throw new Error('the redrive took a step')
  redriveEnded(queue, topic, redrive, step, false)

  expect(topic.counts.dead).toBe(3)
  expect(redrive.record).toMatchObject({ state: 'cancelled', left: 3 })
  const last = queue.groups.at(-1)?.changes.at(-1)
  expect(last, 'it is stored').toMatchObject({ kind: 'topic', redrive: { state: 'cancelled', left: 3 } })
})
type JobRow = { readonly id: string; readonly state: number; readonly topic: string }

/** Every row of a queue that was killed. */
function rowsOf(file: string): JobRow[] {
  const database = new DatabaseSync(file)
  const all = (text: string) => database.prepare(text).all() as { readonly [column: string]: unknown }[]
  const rows = all('SELECT id, state, name AS topic FROM jobs JOIN topics USING (topic_no)') as JobRow[]
  const names = new Map(all('SELECT topic_no, name FROM topics').map(({ topic_no, name }) => [topic_no, String(name)]))
  for (const row of all('SELECT *, packs.seq AS seq FROM packs LEFT JOIN pack_marks USING (seq)')) {
    const pack = { seq: Number(row['seq']), count: Number(row['count']), createdAt: Number(row['created_at']) }
    const marks = (row['marks'] as Uint8Array | null) ?? undefined
    readPack({ ...pack, data: row['data'] as Uint8Array }, ({ index, id, topicNumber }) => {
      if (!isMarked(marks, index)) rows.push({ id, state: 0, topic: names.get(topicNumber) ?? '' })
    })
  }
  database.close()
  return rows
}
