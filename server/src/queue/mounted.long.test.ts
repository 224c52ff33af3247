import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { base64, openConsumer, startTestQueue, type TestQueue, TOKENS } from '@vacancy/queue/testing'
import { CLOSE_CODES } from '@vacancy/shared/contract'
import { freePort } from '@vacancy/testkit/free-port'
import { startPostgres } from '@vacancy/testkit/postgres'
import { afterEach, describe, expect, it } from 'vitest'
import { startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'

let plane: TestControlPlane
const stops: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

async function start(options: Parameters<typeof startTestControlPlane>[0] = {}): Promise<TestControlPlane> {
  plane = await startTestControlPlane(options)
  stops.push(plane.stop)
  return plane
}

const job = (id: string) => ({ job: { id, topic: 'orders', data: base64({ id }) } })

/** The value of a caller's bearer token. */
function bearerOf({ headers }: { readonly headers: { readonly [name: string]: string } }): string {
  return headers['authorization']?.replace('Bearer ', '') ?? ''
}

describe('the queue of a control plane', () => {
  it('accepts and delivers jobs on its listener with tokens of the console', async () => {
    await start()
    const producer = await plane.token('producer')
    const consumer = await plane.token('consumer')
    expect((await producer.call('POST', '/producer/topic', { topic: 'orders' })).status).toBe(200)
    expect((await producer.call('POST', '/producer/jobs', job('a'))).status).toBe(200)
    const client = await openConsumer(plane.url, `token=${bearerOf(consumer)}&topic=orders&consumer=w`)
    const delivered = await client.job()
    expect(delivered).toMatchObject({ jobId: 'a', data: { id: 'a' } })
    client.ack(delivered)
    const viewer = await plane.signIn('viewer')
    await expect
      .poll(async () => (await viewer.call('GET', '/api/v1/queue/topics/orders')).body)
      .toMatchObject({ ready: 0, leased: 0 })
    await client.close()
  })

  it('refuses tokens with another role, and other topics than those of a token', async () => {
    await start()
    const admin = await plane.signIn('admin')
    const consumer = await plane.token('consumer')
    const client = await plane.token('client')
    expect((await consumer.call('POST', '/producer/jobs', job('a'))).status).toBe(403)
    expect((await client.call('POST', '/producer/jobs', job('a'))).status).toBe(403)
    expect((await consumer.call('GET', '/api/v1/queue/topics')).status).toBe(403)
    expect((await plane.anonymous().call('POST', '/producer/jobs', job('a'))).status).toBe(401)
    expect((await admin.call('POST', '/producer/jobs', job('a'))).status, 'a session is no token').toBe(401)

    const made = await admin.call('POST', '/api/v1/tokens', { name: 'mail', role: 'producer', topics: ['mail-*'] })
    expect(made.body.token).toMatchObject({ role: 'producer', topics: ['mail-*'] })
    const headers = { authorization: `Bearer ${made.body.value}` }
    const asMail = (body: unknown) => plane.anonymous().call('POST', '/producer/topic', body, headers)
    expect((await asMail({ topic: 'orders' })).status).toBe(403)
    expect((await asMail({ topic: 'mail-out' })).status).toBe(200)
  })

  it('takes topics for producers and consumers only, and only valid ones', async () => {
    await start()
    const admin = await plane.signIn('admin')
    const create = (body: object) => admin.call('POST', '/api/v1/tokens', { name: 'x', ...body })
    expect((await create({ role: 'client', topics: ['orders'] })).status).toBe(400)
    expect((await create({ role: 'producer', topics: ['no spaces'] })).status).toBe(400)
    expect((await create({ role: 'producer', topics: [] })).status).toBe(400)
  })

  it('lists the tokens of its auth file, without their values, as the file is now', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vacancy-queue-auth-'))
    stops.push(async () => rmSync(folder, { recursive: true }))
    const queueAuthFile = join(folder, 'queue-auth.yml')
    const entries = ['- { token: mail-secret, role: producer, name: mail, topics: [mail-*] }']
    const write = () => writeFileSync(queueAuthFile, `tokens:\n${entries.join('\n')}\n`)
    write()
    await start({ config: { queueAuthFile } })
    const admin = await plane.signIn('admin')
    const list = () => admin.call('GET', '/api/v1/tokens')
    const mail = { name: 'mail', role: 'producer', topics: ['mail-*'], expiresAt: null }
    const first = await list()
    expect(first.body.queueFile).toEqual({ path: queueAuthFile, tokens: [mail] })
    expect(first.text).not.toContain('mail-secret')

    entries.push('- { token: other-secret, role: consumer, expires: 2030-01-01T00:00:00Z }')
    write()
    plane.reload()
    const other = { name: '', role: 'consumer', topics: null, expiresAt: '2030-01-01T00:00:00.000Z' }
    expect((await list()).body.queueFile.tokens).toEqual([mail, other])
    await start()
    expect((await (await plane.signIn('admin')).call('GET', '/api/v1/tokens')).body.queueFile).toBeNull()
  })

  it('does not begin a console session with a token of the queue', async () => {
    await start()
    const token = bearerOf(await plane.token('producer'))
    const answer = await plane.anonymous().call('POST', '/api/v1/session/token', { token })
    expect(answer.status).toBe(401)
  })

  it('closes a consumer when its token is revoked, and refuses the token', async () => {
    await start()
    const admin = await plane.signIn('admin')
    const consumer = await plane.token('consumer')
    await admin.call('PUT', '/api/v1/queue/topics/orders', { config: {} })
    const query = `token=${bearerOf(consumer)}&topic=orders&consumer=w`
    const client = await openConsumer(plane.url, query)
    expect((await admin.call('DELETE', `/api/v1/tokens/${consumer.id}`)).status).toBe(204)
    expect(await client.closed).toMatchObject({ code: CLOSE_CODES.tokenRevoked })
    await expect(openConsumer(plane.url, query)).rejects.toThrow('401')
  })

  it('lets viewers read, operators pause and admins delete, and writes changes to the audit log', async () => {
    await start()
    const [viewer, operator, admin] = [
      await plane.signIn('viewer'),
      await plane.signIn('operator'),
      await plane.signIn('admin'),
    ]
    expect((await admin.call('PUT', '/api/v1/queue/topics/orders', { config: { max_attempts: 2 } })).status).toBe(201)
    expect((await viewer.call('GET', '/api/v1/queue/topics')).body.topics).toHaveLength(1)
    expect((await viewer.call('POST', '/api/v1/queue/topics/orders/pause')).status).toBe(403)
    expect((await operator.call('POST', '/api/v1/queue/topics/orders/pause')).status).toBe(200)
    expect((await operator.call('DELETE', '/api/v1/queue/topics/orders')).status).toBe(403)
    expect((await admin.call('DELETE', '/api/v1/queue/topics/orders')).status).toBe(200)
    const { entries } = (await viewer.call('GET', '/api/v1/audit')).body
    const actions = entries.map(({ action, result }: { action: string; result: string }) => `${action} ${result}`)
    expect(actions).toEqual(
      expect.arrayContaining([
        'queue.topic.create done',
        'queue.topic.pause done',
        'queue.topic.delete done',
        'POST /api/v1/queue/topics/{topic}/pause refused',
      ]),
    )
  })

  it('keeps its jobs over a restart, and tells about itself in readiness and metrics', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'vacancy-mounted-'))
    stops.push(async () => rmSync(dataDir, { recursive: true }))
    const first = await startTestControlPlane({ dataDir })
    const producer = await first.token('producer')
    await producer.call('POST', '/producer/topic', { topic: 'orders' })
    expect((await producer.call('POST', '/producer/jobs', job('a'))).status).toBe(200)
    await first.stop()
    const second = await start({ dataDir })
    const monitoring = await second.token('monitoring')
    expect((await monitoring.call('GET', '/api/v1/queue/topics/orders')).body).toMatchObject({ ready: 1 })
    expect((await monitoring.call('GET', '/ready')).body).toMatchObject({ ready: true })
    const { text } = await monitoring.call('GET', '/metrics')
    expect(text).toContain('vacancy_queue_ready_jobs{topic="orders"} 1')
    const names = text.split('\n').filter((line) => line.startsWith('# HELP '))
    expect(new Set(names).size, 'no metric twice').toBe(names.length)
  })

  it('gives new topics the configured defaults', async () => {
    await start({ config: { queueTopicDefaults: '{"max_attempts":8}' } })
    const admin = await plane.signIn('admin')
    const { body } = await admin.call('PUT', '/api/v1/queue/topics/orders', { config: {} })
    expect(body.config).toMatchObject({ max_attempts: 8, ack_deadline_ms: 30_000 })
  })

  it('serves none when it is switched off', async () => {
    await start({ config: { queue: false } })
    const producer = await plane.token('producer')
    expect((await producer.call('POST', '/producer/topic', { topic: 'orders' })).status).toBe(404)
    const viewer = await plane.signIn('viewer')
    expect((await viewer.call('GET', '/api/v1/queue/topics')).status).toBe(404)
  })
})

it('is in the PostgreSQL of the control plane, where another one takes it over', { timeout: 240_000 }, async () => {
  const postgres = await startPostgres()
  stops.push(postgres.close)
  const databaseUrl = await postgres.createDatabase()
  const first = await startTestControlPlane({ databaseUrl })
  const second = await start({ databaseUrl })
  const producer = await first.token('producer')
  await producer.call('POST', '/producer/topic', { topic: 'orders' })
  expect((await producer.call('POST', '/producer/jobs', job('a'))).status).toBe(200)
  const elsewhere = () =>
    second.anonymous().call('POST', '/producer/jobs', job('b'), { authorization: `Bearer ${bearerOf(producer)}` })
  await expect.poll(async () => (await elsewhere()).body).toMatchObject({ error: 'not_owner', owner: first.url })
  expect((await second.anonymous().call('GET', '/ready')).body, 'it takes over').toMatchObject({ ready: true })
  await first.stop()
  await expect.poll(async () => (await elsewhere()).status, { timeout: 20_000 }).toBe(200)
  const viewer = await second.signIn('viewer')
  expect((await viewer.call('GET', '/api/v1/queue/topics/orders')).body).toMatchObject({ ready: 2 })
})

it('stays in a file although there is a database, with the setting', { timeout: 240_000 }, async () => {
  const postgres = await startPostgres()
  stops.push(postgres.close)
  await start({ databaseUrl: await postgres.createDatabase(), config: { queueJournal: 'sqlite' } })
  const viewer = await plane.signIn('viewer')
  expect((await viewer.call('GET', '/api/v1/queue/health')).body).toMatchObject({ journal: 'sqlite' })
})

describe('a queue elsewhere', () => {
  let elsewhere: TestQueue

  async function startBoth(token: string = TOKENS.admin): Promise<void> {
    elsewhere = await startTestQueue()
    stops.push(elsewhere.stop)
    await start({ config: { queueUrl: elsewhere.url, queueToken: token } })
  }

  it('shows and changes its topics with the permissions and the audit log of the console', async () => {
    await startBoth()
    const [viewer, operator, admin] = [
      await plane.signIn('viewer'),
      await plane.signIn('operator'),
      await plane.signIn('admin'),
    ]
    expect((await admin.call('PUT', '/api/v1/queue/topics/orders', { config: {} })).status).toBe(201)
    expect((await elsewhere.call('POST', '/producer/jobs', job('a'))).status).toBe(200)
    expect((await viewer.call('GET', '/api/v1/queue/topics?prefix=ord')).body.topics).toMatchObject([
      { topic: 'orders', ready: 1 },
    ])
    expect((await viewer.call('GET', '/api/v1/queue/topics/orders/jobs/a')).body).toMatchObject({ id: 'a' })
    expect((await viewer.call('POST', '/api/v1/queue/topics/orders/pause')).status).toBe(403)
    expect((await operator.call('POST', '/api/v1/queue/topics/orders/pause')).status).toBe(200)
    const missing = await viewer.call('GET', '/api/v1/queue/topics/none')
    expect(missing.status).toBe(404)
    expect(missing.body).toMatchObject({ code: 'topic_not_found', detail: 'topic "none" does not exist' })
    const [entry] = (await viewer.call('GET', '/api/v1/audit')).body.entries.filter(
      ({ action }: { action: string }) => action.includes('/pause') && action.startsWith('queue'),
    )
    expect(entry).toMatchObject({ target: '/api/v1/queue/topics/orders/pause', actor: operator.me?.person.name })
    expect((await plane.anonymous().call('POST', '/producer/jobs', job('b'))).status, 'not served here').toBe(404)
  })

  it('names the setting that is wrong when it is not reached, or refuses the token', async () => {
    await startBoth('wrong')
    const viewer = await plane.signIn('viewer')
    const refused = await viewer.call('GET', '/api/v1/queue/topics')
    expect(refused.status).toBe(502)
    expect(refused.body).toMatchObject({ code: 'queue-token', hint: expect.stringContaining('queue_token') })

    await start({ config: { queueUrl: `http://127.0.0.1:${await freePort()}`, queueToken: TOKENS.admin } })
    const unreached = await (await plane.signIn('viewer')).call('GET', '/api/v1/queue/topics')
    expect(unreached.body).toMatchObject({ status: 502, code: 'queue-unreachable' })
  })
})
