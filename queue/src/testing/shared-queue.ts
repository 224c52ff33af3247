/** Queues as processes that share one PostgreSQL, and producers that continue wherever a queue serves. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { assert } from '@vacancy/shared'
import { freePort } from '@vacancy/testkit/free-port'
import { queryDatabase } from '@vacancy/testkit/postgres'
import { type Program, startProgram } from '@vacancy/testkit/program'
import { openConsumer, subscribe, type TestConsumer, TOKENS } from './queue.ts'

const PROGRAM = resolve(import.meta.dirname, '../../../bin/vacancy.mjs')
/** A frozen process does not answer at all. */
const RESPONSE_MS = 1_500
const BATCH = 5

export type QueueProcess = { readonly url: string; readonly program: Program }

export async function startQueueProcess(
  folder: string,
  databaseUrl: string,
  flags: readonly string[] = [],
): Promise<QueueProcess> {
  mkdirSync(folder, { recursive: true })
  const authFile = join(folder, 'auth.yml')
  const roles = { admin: TOKENS.admin, consumer: TOKENS.consumer }
  const lines = Object.entries(roles).map(([role, token]) => `  - { token: ${token}, role: ${role} }\n`)
  writeFileSync(authFile, `tokens:\n${lines.join('')}`)
  const port = await freePort()
  const start = { authFile, port, databaseUrl }
  const program = await startQueueProgram(folder, start, ['--shutdown-grace-ms', '500', ...flags])
  return { url: `http://127.0.0.1:${port}`, program }
}

type Start = { readonly authFile: string; readonly port: number; readonly databaseUrl: string }

/** `vacancy queue serve` as a process, serving. */
export async function startQueueProgram(
  folder: string,
  { authFile, port, databaseUrl }: Start,
  flags: readonly string[] = [],
): Promise<Program> {
  const own = ['--listen-port', String(port), '--data-dir', join(folder, 'data'), '--auth-file', authFile]
  const args = [PROGRAM, 'queue', 'serve', ...own, ...flags]
  const program = startProgram(args, { env: { DATABASE_URL: databaseUrl }, isBound: true })
  await program.printed(/serving: /)
  return program
}

// biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the response.
type Reply = { readonly status: number; readonly body: any }

/** @throws when there is no response in time */
export async function request(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  withinMs = RESPONSE_MS,
): Promise<Reply> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKENS.admin}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(withinMs),
  })
  const text = await response.text()
  return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
}

/** Jobs of topics that are neither finished nor dead. */
export async function unfinished(url: string, topics: readonly string[]): Promise<number> {
  let jobs = 0
  for (const topic of topics) {
    const { ready, delayed, leased } = (await request(url, 'GET', `/api/v1/queue/topics/${topic}`)).body
    jobs += ready + delayed + leased
  }
  return jobs
}

export async function healthOf({ url }: QueueProcess): Promise<Reply['body']> {
  return (await request(url, 'GET', '/api/v1/queue/health')).body
}

export type Producing = {
  /** Ids that were answered with 200, as `topic/id`. */
  readonly accepted: Set<string>
  readonly stop: () => Promise<void>
}

/** Submits one request after the other, each with the same ids to the processes in turn until it is accepted. */
export function produce(processes: readonly QueueProcess[], topics: readonly string[]): Producing {
  const accepted = new Set<string>()
  let isRunning = true
  const submit = async (topic: string) => {
    for (let n = 0, at = 0; isRunning; n++) {
      const jobs = Array.from({ length: BATCH }, (_, item) => ({ id: `job-${n}-${item}` }))
      for (let isAccepted = false; isRunning && !isAccepted; ) {
        const { url } = processes[at % processes.length] as QueueProcess
        // No response, or another one than 200: to be repeated elsewhere.
        const status = await request(url, 'POST', '/producer/jobs', { topic, jobs }).then(
          (reply) => reply.status,
          () => 0,
        )
        isAccepted = status === 200
        if (!isAccepted) at++
      }
      if (isRunning) for (const { id } of jobs) accepted.add(`${topic}/${id}`)
    }
  }
  const running = topics.map(submit)
  return {
    accepted,
    stop: async () => {
      isRunning = false
      await Promise.all(running)
    },
  }
}

/** Acknowledges everything. */
export async function consumeAll({ url }: QueueProcess, topic: string, seen: Set<string>): Promise<TestConsumer> {
  const consumer = await subscribe({ consume: (query) => openConsumer(url, query) }, topic, { prefetch: 500 })
  void (async () => {
    for (;;) {
      const job = await consumer.job()
      seen.add(`${topic}/${job.jobId}`)
      if (consumer.socket.readyState === consumer.socket.OPEN) consumer.ack(job)
    }
  })()
  return consumer
}

// --- What the database sees ---

/** From now on every statement that writes jobs without holding a lock is recorded with its transaction. */
export async function recordStrangers(url: string): Promise<void> {
  await queryDatabase(url, 'create table strangers (pid int4 not null)')
  await queryDatabase(
    url,
    `create function record_stranger() returns trigger language plpgsql as $$ begin
      insert into strangers select pg_backend_pid() where not exists
        (select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' and granted);
      return null;
    end $$`,
  )
  await queryDatabase(
    url,
    `create trigger record_stranger after insert or update or delete on vacancy_queue.jobs
      for each statement execute function record_stranger()`,
  )
}

/** How many were recorded. A write of this process shows that they are. */
export async function countStrangers(url: string): Promise<number> {
  const count = async (): Promise<number> => {
    const [row] = await queryDatabase(url, 'select count(*)::int4 as count from strangers')
    return row?.count ?? 0
  }
  const before = await count()
  await queryDatabase(url, 'delete from vacancy_queue.jobs where false')
  assert((await count()) === before + 1, 'a write without a lock is recorded')
  return before
}
