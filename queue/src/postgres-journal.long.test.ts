/** What PostgreSQL must be like for a queue, and what its tables show. */

import { type Postgres, queryDatabase, startPostgres } from '@vacancy/testkit/postgres'
import { until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { openPooler } from './testing/pooler.ts'
import { base64, startTestQueue, subscribe } from './testing/queue.ts'

let postgres: Postgres
let databaseUrl: string

beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(async () => await postgres.close())
beforeEach(async () => {
  databaseUrl = await postgres.createDatabase()
})

const query = (sql: string, url = databaseUrl) => queryDatabase(url, sql)

it('refuses a pooler that gives each transaction another server process', async () => {
  const { hostname: host, port } = new URL(databaseUrl)
  const pooler = await openPooler({ host, port: Number(port) })
  const pooled = databaseUrl.replace(`:${port}/`, `:${pooler.port}/`)
  expect(await query('select 1 as one', pooled)).toEqual([{ one: 1 }])

  await expect(startTestQueue({ databaseUrl: pooled })).rejects.toThrow(
    /cannot be used: a pooler between this process and PostgreSQL .* set the pooler to session pooling/,
  )

  // Nothing was created or locked through it.
  expect(await query(`select from pg_namespace where nspname = 'vacancy_queue'`)).toEqual([])
  expect(await query(`select from pg_locks where locktype = 'advisory'`)).toEqual([])
  await pooler.close()
})

it('refuses a database that it could not store every id in, or cannot write to', async () => {
  await query(`create database ascii encoding 'SQL_ASCII' template template0`)
  await expect(startTestQueue({ databaseUrl: databaseUrl.replace(/[^/]*$/, 'ascii') })).rejects.toThrow(
    /^the queue vacancy_queue of the PostgreSQL database 127\.0\.0\.1:\d+\/ascii cannot be used: .*encoding SQL_ASCII/,
  )
  await query(`alter database ${databaseUrl.split('/').at(-1)} set default_transaction_read_only = on`)
  await expect(startTestQueue({ databaseUrl })).rejects.toThrow('the server is read-only')
  await expect(startTestQueue({ databaseUrl: 'postgres://127.0.0.1:1/none' })).rejects.toThrow(
    '127.0.0.1:1/none cannot be used: connect ECONNREFUSED',
  )
})

it('keeps several queues in one database, by schema, and writes the address of the owner', async () => {
  const orders = await startTestQueue({ databaseUrl, pgSchema: 'orders_queue' })
  const mails = await startTestQueue({ databaseUrl, pgSchema: 'mail_queue', advertiseUrl: 'http://mail.example:9000' })
  await orders.call('POST', '/producer/topic', { topic: 'a' })
  await orders.call('POST', '/producer/jobs', { topic: 'a', jobs: [{ id: 'x', data: base64('{"a":1}') }] })

  expect((await mails.call('GET', '/api/v1/queue/topics')).body.topics).toEqual([])
  expect(
    await query('select partition, id, state, convert_from(data, $$UTF8$$) as data from orders_queue.jobs'),
  ).toEqual([{ partition: 0, id: 'x', state: 0, data: '{"a":1}' }])
  expect(await query('select address from mail_queue.owner')).toEqual([{ address: 'http://mail.example:9000' }])
  // Its port is known only after it owns the partition.
  await until('the address is written', async () => {
    const [row] = await query('select address from orders_queue.owner')
    return row?.address === orders.url
  })
  await orders.stop()
  await mails.stop()
})

it('loses the journal, not a job, when PostgreSQL refuses a write', async () => {
  const queue = await startTestQueue({ databaseUrl })
  await queue.call('POST', '/producer/topic', { topic: 'orders' })
  const submit = (id: string) => queue.call('POST', '/producer/jobs', { topic: 'orders', jobs: [{ id }] })
  expect((await submit('a')).status).toBe(200)
  await query('alter table vacancy_queue.jobs add constraint no_b check (id <> $$b$$)')

  expect((await submit('b')).body).toMatchObject({ error: 'outcome_unknown' })

  await query('alter table vacancy_queue.jobs drop constraint no_b')
  await until('it accepts again', async () => (await submit('c')).status === 200)
  expect((await queue.call('GET', '/api/v1/queue/topics/orders')).body).toMatchObject({ ready: 2 })
  const { text } = await queue.call('GET', '/metrics')
  expect(text).toContain('vacancy_queue_owner_changes_total{partition="0"} 2')
  await queue.stop()
})

it('refuses jobs with 429 while the disk of PostgreSQL is full, and lets consumers finish what is there', async () => {
  const queue = await startTestQueue({ databaseUrl })
  await queue.call('POST', '/producer/topic', { topic: 'orders', config: { dedup_window_sec: 60 } })
  const submit = (id: string) => queue.call('POST', '/producer/jobs', { topic: 'orders', jobs: [{ id }] })
  for (const id of ['a', 'b']) expect((await submit(id)).status).toBe(200)
  await query(`create function fill() returns trigger language plpgsql as $$ begin
    raise exception 'could not extend file' using errcode = 'disk_full';
  end $$`)
  await query('create trigger fill before insert on vacancy_queue.jobs execute function fill()')
  const consumer = await subscribe(queue, 'orders', { confirm: true })
  const jobs = [await consumer.job(), await consumer.job()]

  // In one group with what frees space.
  const refused = submit('c')
  for (const job of jobs) consumer.ack(job)
  expect(await refused).toMatchObject({ status: 429, body: { error: 'queue_full' } })
  const done = () => consumer.messages.filter(({ data }) => data?.result === 'done').length
  await until('both are done', () => done() === 2)

  await query('drop trigger fill on vacancy_queue.jobs')
  await until('it accepts again', async () => (await submit('c')).status === 200)
  expect(await query('select id from vacancy_queue.jobs')).toEqual([{ id: 'c' }])
  const { text } = await queue.call('GET', '/metrics')
  expect(text).toContain('vacancy_queue_owner_changes_total{partition="0"} 1')
  await consumer.close()
  await queue.stop()
})

it('is backed up with its database', async () => {
  const queue = await startTestQueue({ databaseUrl })
  const answer = await queue.call('POST', '/api/v1/queue/backup', { name: 'copy.db' })
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  await queue.stop()
})
