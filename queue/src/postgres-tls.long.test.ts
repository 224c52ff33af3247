/** TLS to a PostgreSQL that refuses connections without it, and the key of its locks. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresUrl, tlsFault } from '@vacancy/shared/node'
import { runVacancy } from '@vacancy/testkit/node'
import { type Postgres, queryDatabase, startPostgres } from '@vacancy/testkit/postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSession } from './postgres-session.ts'
import { base64 } from './testing/queue.ts'
import { healthOf, type QueueProcess, request, startQueueProcess } from './testing/shared-queue.ts'

const TEST_MS = 60_000

let folder: string
let postgres: Postgres
const started: QueueProcess[] = []

async function certs(...args: readonly string[]): Promise<void> {
  const { code, output } = await runVacancy(['certs', ...args])
  if (code !== 0) throw new Error(output)
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-postgres-tls-'))
  const [ca, other] = [join(folder, 'ca'), join(folder, 'other')]
  await certs('init', '--out', ca)
  await certs('init', '--out', other)
  // Without the address 127.0.0.1.
  await certs('node', '--ca', ca, '--node-id', 'postgres', '--host', 'localhost', '--out', folder)
  const [cert, key] = ['postgres.pem', 'postgres.key'].map((name) => readFileSync(join(folder, name), 'utf8'))
  postgres = await startPostgres({ tls: { cert: cert ?? '', key: key ?? '' } })
}, TEST_MS)
afterAll(async () => {
  for (const { program } of started) program.signal('SIGKILL')
  await Promise.all(started.map(({ program }) => program.ended))
  await postgres.close()
  rmSync(folder, { recursive: true })
})

const plain = (address: string) => address.replace(/\?.*$/, '')
const byName = (address: string) => plain(address).replace('127.0.0.1', 'localhost')
const ca = () => join(folder, 'ca', 'ca.pem')

/** How a session was opened, or why it was not. */
async function attempt(address: string, mode: string, rootCert = ''): Promise<string> {
  try {
    const url = postgresUrl(address, { pgSslmode: mode, pgSslrootcert: rootCert })
    const session = await openSession(url, 'test', AbortSignal.timeout(10_000))
    const { rows } = await session.client.query<{ version: string | null }>(
      'select version from pg_stat_ssl where pid = pg_backend_pid()',
    )
    await session.client.end()
    return rows[0]?.version ?? 'without TLS'
  } catch (error) {
    return (error as Error).message
  }
}

test('each mode checks what its name promises', { timeout: TEST_MS }, async () => {
  const address = await postgres.createDatabase()
  expect(await attempt(plain(address), '')).toMatch(/no encryption/)
  expect(await attempt(plain(address), 'disable')).toMatch(/no encryption/)
  expect(await attempt(plain(address), 'require')).toMatch(/^TLSv1/)
  expect(await attempt(plain(address), 'verify-ca', ca())).toMatch(/^TLSv1/)
  expect(await attempt(plain(address), 'verify-ca', join(folder, 'other', 'ca.pem'))).toMatch(/certificate/)
  expect(await attempt(plain(address), 'verify-full', ca()), 'another host name').toMatch(/127\.0\.0\.1/)
  expect(await attempt(byName(address), 'verify-full', ca())).toMatch(/^TLSv1/)
  expect(await attempt(byName(address), '', ca()), 'a CA alone').toMatch(/^TLSv1/)
})

test('modes that continue without TLS are refused, and a CA is needed to check it', () => {
  const none = { pgSslmode: '', pgSslrootcert: '' }
  const at = (query: string) => `postgres://u:p@host/name${query}`
  expect(tlsFault(at(''), none)).toBeUndefined()
  expect(tlsFault(at('?sslmode=prefer'), none)).toMatch(/^sslmode prefer is not one of disable, require/)
  expect(tlsFault(at('?sslmode=verify-ca'), none)).toBe('sslmode verify-ca needs sslrootcert')
  expect(tlsFault(at('?sslmode=prefer'), { ...none, pgSslmode: 'require' })).toBeUndefined()
  expect(postgresUrl(at('?sslrootcert=/ca.pem'), none)).toContain('sslmode=verify-full')
})

test('a queue stores and delivers over TLS, and a session that is terminated is opened again', {
  timeout: TEST_MS,
}, async () => {
  const address = await postgres.createDatabase()
  const flags = ['--pg-sslmode', 'verify-full', '--pg-sslrootcert', ca(), '--pg-lock-key', '4711']
  const queue = await startQueueProcess(join(folder, 'first'), byName(address), flags)
  started.push(queue)
  const isOk = async () => (await healthOf(queue)).status
  await expect.poll(isOk, { timeout: 20_000 }).toBe('ok')
  await request(queue.url, 'POST', '/producer/topic', { topic: 'orders' })
  const submit = async (id: string) =>
    (await request(queue.url, 'POST', '/producer/jobs', { job: { id, topic: 'orders', data: base64({ id }) } })).status
  expect(await submit('a')).toBe(200)
  const [held] = await queryDatabase(
    address,
    `select l.classid::int8 as key, s.ssl from pg_locks l join pg_stat_ssl s using (pid) where locktype = 'advisory'`,
  )
  expect(held).toEqual({ key: '4711', ssl: true })

  await queryDatabase(address, `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'`)
  await expect.poll(() => submit('b').catch(() => 0), { timeout: 20_000 }).toBe(200)
  const { body } = await request(queue.url, 'GET', '/api/v1/queue/topics/orders')
  expect(body).toMatchObject({ ready: 2 })

  const other = ['--pg-sslmode', 'require', '--pg-lock-key', '12']
  await expect(startQueueProcess(join(folder, 'second'), plain(address), other)).rejects.toThrow(/pg_lock_key 4711/)
})
