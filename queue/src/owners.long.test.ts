/** Several processes on one PostgreSQL: one owns, the others stand by, and nothing is lost when the owner is. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, queryDatabase, startPostgres } from '@vacancy/testkit/postgres'
import { openRelay, type Relay } from '@vacancy/testkit/relay'
import { happens } from '@vacancy/testkit/until'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openConsumer } from './testing/queue.ts'
import {
  consumeAll,
  countStrangers,
  healthOf,
  produce,
  type QueueProcess,
  recordStrangers,
  request,
  startQueueProcess,
} from './testing/shared-queue.ts'

const TEST_MS = 120_000

let postgres: Postgres
let folder: string
let databaseUrl: string
let started: QueueProcess[]
let relay: Relay | undefined

beforeAll(async () => {
  postgres = await startPostgres({ isSynced: true })
})
afterAll(async () => await postgres.close())

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-owners-'))
  databaseUrl = await postgres.createDatabase()
  started = []
})
afterEach(async () => {
  for (const { program } of started) program.signal('SIGKILL')
  await Promise.all(started.map(({ program }) => program.ended))
  await relay?.close()
  relay = undefined
  rmSync(folder, { recursive: true, force: true })
})

async function start(name: string, url = databaseUrl, flags: readonly string[] = []): Promise<QueueProcess> {
  const process = await startQueueProcess(join(folder, name), url, flags)
  started.push(process)
  return process
}

function eventually<T>(what: string, check: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
  const programs = started.map(({ program }, n) => ({ name: `process ${n + 1}`, output: program.output }))
  return happens(what, programs, check)
}

const isStandby = async (process: QueueProcess, owner: QueueProcess) => {
  const { status, owner: address } = await healthOf(process)
  return status === 'standby' && address === owner.url
}
const isOwner = async (process: QueueProcess) => (await healthOf(process)).status === 'ok'

const query = (sql: string) => queryDatabase(databaseUrl, sql)

/** Ends the sessions that hold the locks. */
const TERMINATE = `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted
  and database = (select oid from pg_database where datname = current_database())`

describe('a standby', () => {
  it('names the owner, is healthy as a standby, and takes over when the owner stops', {
    timeout: TEST_MS,
  }, async () => {
    const first = await start('first')
    const second = await start('second')
    await eventually('the second one stands by', () => isStandby(second, first))
    await request(first.url, 'POST', '/producer/topic', { topic: 'orders' })

    const refused = await request(second.url, 'POST', '/producer/jobs', { topic: 'orders', jobs: [{ id: 'a' }] })
    expect(refused).toMatchObject({ status: 503, body: { error: 'not_owner', owner: first.url } })
    const api = await request(second.url, 'GET', '/api/v1/queue/topics/orders')
    expect(api).toMatchObject({ status: 503, body: { code: 'not_owner', owner: first.url } })
    await expect(openConsumer(second.url)).rejects.toThrow('503')
    expect(await request(second.url, 'GET', '/ready')).toMatchObject({ status: 200, body: { ready: true } })
    expect(await healthOf(second)).toEqual({ status: 'standby', role: 'standby', owner: first.url })
    expect((await request(second.url, 'GET', '/metrics')).body).toContain('vacancy_queue_owner{partition="0"} 0')
    expect((await request(first.url, 'GET', '/metrics')).body).toContain('vacancy_queue_owner{partition="0"} 1')
    expect(await healthOf(first)).toMatchObject({ status: 'ok', journal: 'pg', durable: true })

    await first.program.stop()
    await eventually('the second one owns', () => isOwner(second))
    expect((await request(second.url, 'GET', '/metrics')).body).toContain(
      'vacancy_queue_owner_changes_total{partition="0"} 1',
    )
    expect(await request(second.url, 'GET', '/api/v1/queue/topics/orders')).toMatchObject({ status: 200 })
  })
})

type Fault = {
  readonly name: string
  readonly inject: (owner: QueueProcess) => Promise<void> | void
  readonly heal: (owner: QueueProcess) => void
  readonly closeCode: number
}
const FAULTS: readonly Fault[] = [
  {
    name: 'killed',
    inject: ({ program }) => program.signal('SIGKILL'),
    heal: () => undefined,
    closeCode: 1006,
  },
  {
    name: 'frozen',
    inject: ({ program }) => program.signal('SIGSTOP'),
    heal: ({ program }) => program.signal('SIGCONT'),
    closeCode: 1013,
  },
  {
    name: 'cut off from PostgreSQL',
    inject: () => relay?.cut(),
    heal: () => relay?.mend(),
    closeCode: 1013,
  },
  {
    name: 'reset by the network',
    inject: async () => {
      await relay?.listen(false)
      relay?.reset()
    },
    heal: () => void relay?.listen(true),
    closeCode: 1013,
  },
]

describe('an owner', () => {
  it.each(FAULTS)(
    'that is $name commits nothing more, and no accepted job is lost',
    { timeout: TEST_MS },
    async ({ inject, heal, closeCode }) => {
      const { hostname: host, port } = new URL(databaseUrl)
      relay = await openRelay({ host, port: Number(port) })
      const first = await start('first', databaseUrl.replace(`:${port}/`, `:${relay.at.port}/`))
      const second = await start('second')
      await eventually('the second one stands by', () => isStandby(second, first))
      await request(first.url, 'POST', '/producer/topic', { topic: 'orders' })
      await recordStrangers(databaseUrl)
      const seen = new Set<string>()
      const consumer = await consumeAll(first, 'orders', seen)
      const producing = produce([first, second], ['orders'])
      await eventually('jobs are accepted', () => producing.accepted.size > 50)

      await inject(first)
      await eventually('the second one owns', () => isOwner(second))
      const before = producing.accepted.size
      await eventually('jobs are accepted again', () => producing.accepted.size > before + 50)
      // The old owner still believes that it is one, or finds these when it continues.
      const stale = ['stale-1', 'stale-2', 'stale-3']
      const statuses = Promise.all(
        stale.map((id) =>
          request(first.url, 'POST', '/producer/jobs', { topic: 'orders', jobs: [{ id }] }).then(
            ({ status }) => status,
            () => 0,
          ),
        ),
      )
      heal(first)
      if (first.program.isRunning() && closeCode === 1013)
        await eventually('the first one stands by', () => isStandby(first, second))
      expect(await statuses).not.toContain(200)
      expect((await consumer.closed).code).toBe(closeCode)
      await producing.stop()

      const rest = await consumeAll(second, 'orders', seen)
      await eventually('every accepted job was delivered', () => [...producing.accepted].every((id) => seen.has(id)))
      for (const id of stale)
        expect(await request(second.url, 'GET', `/producer/jobs/orders/${id}`)).toMatchObject({
          status: 404,
          body: { error: 'job_not_found' },
        })
      await rest.close()
      expect(await countStrangers(databaseUrl)).toBe(0)
    },
  )

  it('whose session is ended by PostgreSQL closes its consumers, and one of them owns again', {
    timeout: TEST_MS,
  }, async () => {
    const first = await start('first')
    const second = await start('second')
    await request(first.url, 'POST', '/producer/topic', { topic: 'orders' })
    const seen = new Set<string>()
    const consumer = await consumeAll(first, 'orders', seen)
    const producing = produce([first, second], ['orders'])
    await eventually('jobs are accepted', () => producing.accepted.size > 50)

    await query(TERMINATE)

    expect((await consumer.closed).code).toBe(1013)
    const owner = await eventually('one owns again', async () =>
      (await isOwner(second)) ? second : (await isOwner(first)) ? first : undefined,
    )
    const before = producing.accepted.size
    await eventually('jobs are accepted again', () => producing.accepted.size > before + 50)
    await producing.stop()
    await consumeAll(owner, 'orders', seen)
    await eventually('every accepted job was delivered', () => [...producing.accepted].every((id) => seen.has(id)))
  })

  it('continues after a restart of PostgreSQL without losing an accepted job', { timeout: TEST_MS }, async () => {
    const first = await start('first')
    await request(first.url, 'POST', '/producer/topic', { topic: 'orders' })
    const producing = produce([first], ['orders'])
    await eventually('jobs are accepted', () => producing.accepted.size > 50)

    await postgres.stop()
    await eventually('the loss is reported', async () => {
      const { body } = await request(first.url, 'GET', '/ready')
      return body.ready === false
    })
    await postgres.start()

    await eventually('it owns again', () => isOwner(first))
    const before = producing.accepted.size
    await eventually('jobs are accepted again', () => producing.accepted.size > before + 50)
    await producing.stop()
    const seen = new Set<string>()
    await consumeAll(first, 'orders', seen)
    await eventually('every accepted job was delivered', () => [...producing.accepted].every((id) => seen.has(id)))
  })
})

describe('four partitions over two processes', () => {
  const topics = Array.from({ length: 12 }, (_, n) => `topic-${n}`)
  const flags = ['--partitions', '4']
  /** Topics by the process that serves them, each found at the owner that another process names. */
  const ownersOf = async (processes: readonly QueueProcess[]) => {
    const owners = new Map<string, string>()
    for (const topic of topics)
      for (const { url } of processes) {
        const { status, body } = await request(url, 'GET', `/api/v1/queue/topics/${topic}`)
        if (status === 200) owners.set(topic, url)
        else if (body.code !== 'not_owner') return new Map<string, string>()
      }
    return owners
  }

  it('are shared evenly, and one process takes over those of another that was killed', {
    timeout: TEST_MS,
  }, async () => {
    const first = await start('first', databaseUrl, flags)
    for (const topic of topics) await request(first.url, 'POST', '/producer/topic', { topic })
    const second = await start('second', databaseUrl, flags)
    const both = [first, second]
    expect(await healthOf(second)).toMatchObject({ status: 'standby' })
    await expect(start('third', databaseUrl, ['--partitions', '2'])).rejects.toThrow(
      'it has 4 partitions, the setting partitions is 2',
    )
    const producing = produce(both, topics)

    const owned =
      ({ url }: QueueProcess) =>
      async () => {
        const { body } = await request(url, 'GET', '/metrics')
        return [...String(body).matchAll(/vacancy_queue_owner\{partition="\d"\} 1/g)].length
      }
    await eventually('each owns two', async () => (await owned(first)()) === 2 && (await owned(second)()) === 2)
    const owners = await eventually('every topic is served once', async () => {
      const found = await ownersOf(both)
      return found.size === topics.length && found
    })
    expect(new Set(owners.values()).size).toBe(2)
    const moved = topics.find((topic) => owners.get(topic) === second.url)
    // The former owner learns a moment later who the new one is.
    await eventually('a consumer learns the owner', async () => {
      const waiting = await openConsumer(first.url)
      waiting.send({ action: 'init', uuid: 'w', topic: moved })
      const { data } = await waiting.next()
      expect(data).toMatchObject({ code: 'not_owner' })
      expect((await waiting.closed).code).toBe(1013)
      return (data as { readonly owner?: string }).owner === second.url
    })

    const before = producing.accepted.size
    await eventually('jobs are accepted', () => producing.accepted.size > before + 100)
    second.program.signal('SIGKILL')
    await eventually('the first one owns all', async () => (await owned(first)()) === 4)
    const killed = producing.accepted.size
    await eventually('jobs are accepted again', () => producing.accepted.size > killed + 100)
    await producing.stop()
    const seen = new Set<string>()
    for (const topic of topics) await consumeAll(first, topic, seen)
    await eventually('every accepted job was delivered', () => [...producing.accepted].every((id) => seen.has(id)))
  })
})
