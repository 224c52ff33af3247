/** Syncs of the journals, counted by strace: what the programs do, not what they say. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePort } from '@vacancy/testkit/free-port'
import { type Postgres, startPostgres } from '@vacancy/testkit/postgres'
import { until } from '@vacancy/testkit/until'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { base64, call, openConsumer, TOKENS } from './testing/queue.ts'
import { callsOf, isSync, type SystemCall, tracing } from './testing/traced.ts'

const PROGRAM = resolve(import.meta.dirname, '../../bin/vacancy.mjs')
const REQUESTS = 100
const AT_ONCE = 200

let folder: string
let url: string
let program: ChildProcess | undefined
let postgres: Postgres | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-syncs-'))
  writeFileSync(join(folder, 'auth.yml'), `tokens:\n  - { token: ${TOKENS.admin}, role: admin }\n`)
})

afterEach(async () => {
  await end('SIGKILL')
  await postgres?.close()
  postgres = undefined
  rmSync(folder, { recursive: true, force: true })
})

async function start(databaseUrl: string, trace?: string): Promise<void> {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const place = ['--data-dir', join(folder, 'data'), '--auth-file', join(folder, 'auth.yml')]
  const own = [process.execPath, PROGRAM, 'queue', 'serve', '--listen-port', String(port), ...place]
  const [name = '', ...args] = [...(trace === undefined ? [] : tracing(trace)), ...own]
  program = spawn(name, args, { stdio: 'ignore', env: { ...process.env, DATABASE_URL: databaseUrl } })
  await until('the queue serves', async () => (await call(url, 'GET', '/api/v1/queue/health')).status === 200)
}

async function end(signal: NodeJS.Signals): Promise<void> {
  const running = program
  program = undefined
  if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
  const ended = new Promise((done) => running.once('exit', done))
  running.kill(signal)
  await ended
}

const submit = async (id: string) => {
  const { status } = await call(url, 'POST', '/producer/jobs', { job: { id, topic: 'orders', data: base64({ id }) } })
  expect(status).toBe(200)
}

/** Groups since the start, as the queue counts them. */
async function groups(): Promise<number> {
  const { text } = await call(url, 'GET', '/metrics')
  return Number(/^vacancy_queue_journal_commit_seconds_count\S* (\d+)$/m.exec(text)?.[1])
}

/** Requests one after the other, then many at once, then each job acknowledged and confirmed before the next. */
async function work(): Promise<void> {
  for (let n = 0; n < REQUESTS; n++) await submit(`one-${n}`)
  await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => submit(`many-${n}`)))
  const consumer = await openConsumer(url, `token=${TOKENS.admin}&topic=orders&consumer=w&prefetch=1&confirm=1`)
  for (let n = 0; n < REQUESTS; n++) {
    consumer.ack(await consumer.job())
    // The next job may be here before it.
    await until('it is confirmed', () => consumer.messages.filter(({ action }) => action === 'confirm').length > n)
  }
  await consumer.close()
}

const isAnswer = ({ target, text }: SystemCall) => target.startsWith('socket:') && text.startsWith('HTTP/1.1 200')

describe.skipIf(process.platform !== 'linux')('syncs that the system saw', () => {
  it('SQLite: exactly one for each group, and each response behind its own', { timeout: 240_000 }, async () => {
    const trace = join(folder, 'trace')
    await start('', trace)
    await call(url, 'POST', '/producer/topic', { topic: 'orders' })
    const before = await groups()
    const begun = callsOf(trace).length
    await work()
    const isOfLog = (each: SystemCall) => isSync(each) && each.target.endsWith('queue.db-wal')
    let written = 0
    let calls: SystemCall[] = []
    // The job that was delivered last returns to the queue some time after its connection ended.
    await until('each group has one sync', async () => {
      written = (await groups()) - before
      calls = callsOf(trace).slice(begun)
      return calls.filter(isOfLog).length === written
    })
    await end('SIGKILL')

    expect(written).toBeGreaterThanOrEqual(2 * REQUESTS + 1)
    expect(written, 'requests at once share a group').toBeLessThan(2 * REQUESTS + AT_ONCE)
    // One request after the other: what was written before a response was synced before it.
    let dirty = 0
    let answered = 0
    for (const each of calls) {
      if (each.target.endsWith('queue.db-wal')) dirty = isSync(each) ? 0 : dirty + 1
      else if (isAnswer(each) && answered++ < REQUESTS) expect(dirty).toBe(0)
    }
    expect(answered).toBeGreaterThanOrEqual(REQUESTS + AT_ONCE)
  })

  it('SQLite: the bytes of a large group are synced before the log refers to them', {
    timeout: 240_000,
  }, async () => {
    const trace = join(folder, 'trace')
    await start('', trace)
    await call(url, 'POST', '/producer/topic', { topic: 'orders' })
    const begun = callsOf(trace).length
    const jobs = Array.from({ length: 100 }, (_, n) => ({
      id: `large-${n}`,
      data: base64({ text: 'x'.repeat(10_000) }),
    }))
    expect((await call(url, 'POST', '/producer/jobs', { topic: 'orders', jobs })).status).toBe(200)
    const kindOf = (each: SystemCall) => {
      if (isAnswer(each)) return 'answered'
      const file = /queue[.]db-packs-[0-9a-f]{8}-1$/.test(each.target) ? 'packs' : 'log'
      if (file === 'log' && !each.target.endsWith('queue.db-wal')) return undefined
      return `${file} ${isSync(each) ? 'synced' : 'written'}`
    }
    // A call is traced when it has ended: the client has its answer before that, and a kill would omit the call.
    const own = await until('the answer is traced', () => {
      const steps = callsOf(trace)
        .slice(begun)
        .flatMap((each) => kindOf(each) ?? [])
      // The answer to the request before it may be traced late.
      const since = steps.slice(steps.indexOf('packs written'))
      return since.includes('answered') && since
    })
    await end('SIGKILL')
    const turns = own.filter((step, n) => step !== own[n - 1])
    expect(turns).toEqual(['packs written', 'packs synced', 'log written', 'log synced', 'answered'])
  })

  it('SQLite: what a killed process left in the log is synced before it is confirmed again', {
    timeout: 240_000,
  }, async () => {
    await start('')
    await call(url, 'POST', '/producer/topic', { topic: 'orders' })
    await submit('a')
    // Its log may hold groups that were written and not synced.
    await end('SIGKILL')
    const trace = join(folder, 'trace')
    await start('', trace)
    const { body } = await call(url, 'POST', '/producer/jobs', { topic: 'orders', jobs: [{ id: 'a' }] })
    expect(body).toMatchObject({ accepted: 0, duplicateIds: ['a'] })
    await end('SIGKILL')

    const calls = callsOf(trace)
    const answer = calls.findIndex(({ text }) => text.startsWith('HTTP/1.1 200'))
    const synced = calls.slice(0, answer).filter(isSync)
    expect(synced.map(({ target }) => target.replace(/^.*\//, ''))).toContain('queue.db')
  })

  it('PostgreSQL: at least one for each group that is answered alone', { timeout: 240_000 }, async () => {
    postgres = await startPostgres({ isSynced: true, through: (own) => tracing(join(own, 'trace')) })
    const trace = join(postgres.folder, 'trace')
    await start(await postgres.createDatabase())
    await call(url, 'POST', '/producer/topic', { topic: 'orders' })
    const before = await groups()
    const begun = callsOf(trace).length
    await work()
    const written = (await groups()) - before
    await end('SIGTERM')

    const syncs = callsOf(trace)
      .slice(begun)
      .filter((each) => isSync(each) && /\/pg_wal\/[0-9A-F]{24}$/.test(each.target)).length
    expect(written).toBeGreaterThanOrEqual(2 * REQUESTS + 1)
    expect(syncs).toBeGreaterThanOrEqual(written)
  })
})
