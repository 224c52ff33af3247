/** What every journal does, on a SQLite file and in PostgreSQL. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onBothDatabases } from '@vacancy/testkit/databases'
import { until } from '@vacancy/testkit/until'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { base64, startTestQueue, subscribe, type TestQueue } from './testing/queue.ts'

/** Of each kind that is stored in its own way. */
const PAYLOADS: { readonly [id: string]: string | undefined } = {
  json: base64('{"big":12345678901234567890,"dup":1,"dup":2}'),
  wide: base64('{"name":"Grüße 🎉 \u2028"}'),
  escapes: base64('"\\u0000 \\ud800"'),
  binary: base64(Buffer.from(Array.from({ length: 300 }, (_, n) => n & 255))),
  large: base64(`"${'x'.repeat(20_000)}"`),
  largeBinary: base64(Buffer.alloc(300_000, 0xfe)),
  empty: base64(''),
  none: undefined,
}

onBothDatabases((newDatabase) => {
  let folder: string
  let databaseUrl: string
  let queue: TestQueue

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vacancy-journal-'))
    writeFileSync(
      join(folder, 'auth.yml'),
      'tokens:\n  - { token: admin_2024, role: admin }\n  - { token: consumer-token, role: consumer }\n',
    )
    databaseUrl = await newDatabase()
    queue = await startTestQueue({ databaseUrl }, folder)
  })

  afterEach(async () => {
    await queue.program.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  async function restart(): Promise<void> {
    await queue.program.stop()
    queue = await startTestQueue({ databaseUrl }, folder)
  }

  const submit = (jobs: readonly object[], topic = 'orders') => queue.call('POST', '/producer/jobs', { topic, jobs })
  const job = async (id: string) => (await queue.call('GET', `/producer/jobs/orders/${id}?data=1`)).body
  const topic = async () => (await queue.call('GET', '/api/v1/queue/topics/orders')).body

  it('keeps payloads of every kind, byte for byte', async () => {
    await queue.call('POST', '/producer/topic', { topic: 'orders' })
    await submit(Object.entries(PAYLOADS).map(([id, data]) => ({ id, data })))
    const before = await Promise.all(Object.keys(PAYLOADS).map(job))

    await restart()

    expect(await Promise.all(Object.keys(PAYLOADS).map(job))).toEqual(before)
    for (const [id, data] of Object.entries(PAYLOADS)) expect((await job(id)).data).toBe(data || null)
    const consumer = await subscribe(queue, 'orders', { prefetch: 20 })
    for (const id of Object.keys(PAYLOADS)) {
      const message = await consumer.job()
      const payload = PAYLOADS[id] || undefined
      const decoded = () => JSON.parse(Buffer.from(payload as string, 'base64').toString('utf8'))
      const isText = message['encoding'] === 'base64'
      expect([message.jobId, message.data]).toEqual([id, payload && !isText ? decoded() : (payload ?? null)])
      expect(isText).toBe(id.toLowerCase().includes('binary'))
    }
  })

  it('keeps the trace of a job in front of payloads of every kind, in rows and in packs', async () => {
    await queue.call('POST', '/producer/topic', { topic: 'orders' })
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const jobs = Object.entries(PAYLOADS).map(([id, data]) => ({ id, data, traceparent }))
    await submit(jobs)
    for (const { id, data } of jobs) await submit([{ id: `${id}-alone`, data, traceparent }])
    await submit([{ id: 'untraced', json: 1 }])
    const ids = [...jobs.flatMap(({ id }) => [id, `${id}-alone`]), 'untraced']
    const before = await Promise.all(ids.map(job))

    await restart()

    expect(await Promise.all(ids.map(job))).toEqual(before)
    for (const { id, data } of jobs) {
      expect((await job(id)).data).toBe(data || null)
      expect((await job(`${id}-alone`)).data).toBe(data || null)
    }
    const consumer = await subscribe(queue, 'orders', { prefetch: 50 })
    for (const _ of ids) {
      const message = await consumer.job()
      expect(message['traceparent']).toBe(message.jobId === 'untraced' ? undefined : traceparent)
    }
  })

  it('keeps options, failures, dead jobs with their history, and finished ids', async () => {
    const config = { dedup_window_sec: 600, retry_base_ms: 60_000, max_attempts: 2 }
    await queue.call('POST', '/producer/topic', { topic: 'orders', config })
    const submitted = await submit([
      {
        id: 'options',
        priority: 7,
        max_attempts: 9,
        ack_deadline_ms: 5_000,
        run_at: new Date(Date.now() + 86_400_000),
      },
      { id: 'retried' },
      { id: 'dead' },
      { id: 'done' },
      { id: 'back' },
    ])
    expect(submitted.body).toMatchObject({ accepted: 5 })
    const consumer = await subscribe(queue, 'orders', { confirm: true })
    for (const id of ['retried', 'dead', 'done', 'back']) {
      const { jobId, seqId } = await consumer.job()
      expect(jobId).toBe(id)
      const error = 'it\0broke ü'
      if (id === 'done') consumer.send({ action: 'ack', jobId, seqId })
      else if (id !== 'back') consumer.send({ action: 'nack', jobId, seqId, error, requeue: id !== 'dead' })
    }
    const confirmed = () => consumer.messages.filter(({ action }) => action === 'confirm').length
    await until('three confirmations', () => confirmed() === 3)
    // Its job comes back with a history.
    await consumer.close()
    await until('the job is back', async () => (await topic()).ready === 1)
    const before = await Promise.all(['options', 'retried', 'dead', 'back'].map(job))

    await restart()

    const shown = (value: unknown) => JSON.parse(JSON.stringify(value).replaceAll('\\u0000', '\ufffd'))
    const after = await Promise.all(['options', 'retried', 'dead', 'back'].map(job))
    expect(shown(after)).toEqual(shown(before))
    expect(await topic()).toMatchObject({ ready: 1, delayed: 2, dead: 1, leased: 0 })
    expect((await submit([{ id: 'done' }])).body).toMatchObject({ accepted: 0, duplicateIds: ['done'] })
  })

  it('stores what happens to a job several times within one group', async () => {
    await queue.call('POST', '/producer/topic', { topic: 'orders', config: { retry_base_ms: 0, max_attempts: 3 } })
    await submit([{ id: 'a' }, { id: 'b' }])
    const consumer = await subscribe(queue, 'orders', { confirm: true })
    for (let n = 0; n < 6; n++) {
      const { jobId, seqId } = await consumer.job()
      consumer.send({ action: 'nack', jobId, seqId, error: `failure ${n}`, delayMs: 0 })
    }
    await until('both are dead', async () => (await topic()).dead === 2)
    await queue.call('POST', '/api/v1/queue/topics/orders/dead/redrive', { ids: ['a'] })
    await consumer.close()

    await restart()

    expect(await job('a')).toMatchObject({ state: 'ready', failures: 0 })
    expect(await job('b')).toMatchObject({ state: 'dead', failures: 3, reason: 'max_attempts' })
  })

  it('loads more rows than one page has, in order', async () => {
    await queue.call('POST', '/producer/topic', { topic: 'orders' })
    const ids = Array.from({ length: 6_000 }, (_, n) => `job-${n}`)
    await submit(ids.map((id) => ({ id })))

    await restart()

    expect(await topic()).toMatchObject({ ready: 6_000 })
    const { body } = await queue.call('GET', '/api/v1/queue/topics/orders/jobs?limit=500')
    expect(body.jobs.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 500))
  })

  it('forgets the rows of a deleted topic, and a new one of the same name begins empty', async () => {
    await queue.call('POST', '/producer/topic', { topic: 'orders' })
    await submit(Array.from({ length: 5_000 }, (_, n) => ({ id: `job-${n}` })))
    await queue.call('DELETE', '/api/v1/queue/topics/orders?force=1')
    await queue.call('POST', '/producer/topic', { topic: 'orders' })
    expect((await submit([{ id: 'job-1' }])).body).toMatchObject({ accepted: 1 })

    await restart()

    expect(await topic()).toMatchObject({ ready: 1 })
  })

  it('is refused when it has another number of partitions', async () => {
    await queue.call('POST', '/producer/topic', { topic: 'orders' })
    await queue.program.stop()
    await expect(startTestQueue({ databaseUrl, partitions: 2 }, folder)).rejects.toThrow(
      'it has 1 partitions, the setting partitions is 2',
    )
    queue = await startTestQueue({ databaseUrl }, folder)
    expect(await topic()).toMatchObject({ ready: 0 })
  })

  it('gives space back on request', async () => {
    expect(await queue.call('POST', '/api/v1/queue/vacuum')).toMatchObject({ status: 200, body: { status: 'success' } })
  })
})
