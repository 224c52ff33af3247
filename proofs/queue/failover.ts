/**
 * `npm run proofs -- queue-failover`: two queues share PostgreSQL, and the one that owns more is killed, frozen or cut off from it
 * again and again, while producers submit and consumers acknowledge.
 *
 * - Every id that was answered with 200 is delivered.
 * - Nothing is written by a session without the lock.
 * - Every topic accepts jobs again within 15 s, within 1 s where the process died.
 */
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { EXIT, VacancyError } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { removeFolder, temporaryFolder } from '@vacancy/testkit/node'
import { startPostgres } from '@vacancy/testkit/postgres'
import { openRelay, type Relay } from '@vacancy/testkit/relay'
import { until } from '@vacancy/testkit/until'
import {
  consumeAll,
  countStrangers,
  type Producing,
  produce,
  type QueueProcess,
  recordStrangers,
  request,
  startQueueProcess,
} from '../../queue/src/testing/shared-queue.ts'

/** Seconds until every topic accepts jobs again. */
const SECONDS_MAX = { killed: 1, frozen: 15, cut: 15 } as const
type Fault = keyof typeof SECONDS_MAX
const FAULTS = Object.keys(SECONDS_MAX) as Fault[]
const TOPICS_OF_PARTITION = 3
/** A consumer that gets no response tries elsewhere. */
const SUBSCRIBE_MS = 5_000
const RETRY_MS = 100
const WITHIN_MS = 120_000

type FailoverReport = {
  /** Of each fault. */
  readonly rounds: number
  readonly partitions: number
  readonly accepted: number
  readonly lost: readonly string[]
  readonly strangers: number
  /** Longest time until every topic accepted a job again, of each fault. */
  readonly secondsMax: { readonly [fault in Fault]?: number }
  /** Faults that took longer than they may. */
  readonly late: readonly Fault[]
}

type Options = {
  /** Of each fault. */
  readonly rounds: number
  readonly partitions: number
  readonly faults?: readonly Fault[]
}
type Run = {
  readonly folder: string
  readonly databaseUrl: string
  readonly partitions: number
  readonly relays: readonly Relay[]
  /** Replaced when they are started again. */
  readonly processes: QueueProcess[]
  readonly topics: readonly string[]
  readonly seen: Set<string>
  isRunning: boolean
}

export async function failoverQueue(
  { rounds, partitions, faults = FAULTS }: Options,
  say: (line: string) => void = () => undefined,
): Promise<FailoverReport> {
  const postgres = await startPostgres({ isSynced: true })
  const databaseUrl = await postgres.createDatabase()
  const { hostname: host, port } = new URL(databaseUrl)
  const run: Run = {
    folder: temporaryFolder(),
    databaseUrl,
    partitions,
    relays: [await openRelay({ host, port: Number(port) }), await openRelay({ host, port: Number(port) })],
    processes: [],
    topics: Array.from({ length: partitions * TOPICS_OF_PARTITION }, (_, n) => `topic-${n}`),
    seen: new Set(),
    isRunning: true,
  }
  try {
    for (const n of [0, 1]) run.processes.push(await startProcess(run, n))
    for (const topic of run.topics)
      await until(`${topic} is served`, async () => {
        for (const { url } of run.processes)
          if ((await request(url, 'POST', '/producer/topic', { topic })).status === 200) return true
        return false
      })
    await recordStrangers(databaseUrl)
    const producing = produce(run.processes, run.topics)
    const consuming = run.topics.map((topic) => consume(run, topic))
    const secondsMax: { [fault in Fault]?: number } = {}
    for (let round = 1; round <= rounds; round++)
      for (const fault of faults) {
        const seconds = await failOver(run, producing, { fault, round })
        secondsMax[fault] = Math.max(secondsMax[fault] ?? 0, seconds)
        say(`round ${round} of ${rounds}: ${fault}, every topic accepts jobs again after ${seconds.toFixed(2)} s`)
      }
    await producing.stop()
    const missing = () => [...producing.accepted].filter((id) => !run.seen.has(id))
    await until('every accepted job was delivered', () => missing().length === 0, WITHIN_MS).catch((error: unknown) =>
      say(String(error)),
    )
    run.isRunning = false
    const strangers = await countStrangers(databaseUrl)
    const late = faults.filter((fault) => (secondsMax[fault] ?? 0) > SECONDS_MAX[fault])
    const accepted = producing.accepted.size
    const report = { rounds, partitions, accepted, lost: missing(), strangers, secondsMax, late }
    await endAll(run)
    await Promise.all(consuming)
    return report
  } finally {
    await endAll(run)
    for (const relay of run.relays) await relay.close()
    await postgres.close()
    removeFolder(run.folder)
  }
}

async function endAll({ processes }: Run): Promise<void> {
  for (const { program } of processes) program.signal('SIGKILL')
  await Promise.all(processes.map(({ program }) => program.ended))
}

function startProcess({ folder, databaseUrl, partitions, relays }: Run, n: number): Promise<QueueProcess> {
  const url = new URL(databaseUrl)
  url.port = String(relays[n]?.at.port)
  return startQueueProcess(join(folder, String(n)), url.href, ['--partitions', String(partitions)])
}

/** @returns seconds until every topic accepts jobs again */
async function failOver(
  run: Run,
  { accepted }: Producing,
  { fault, round }: { readonly fault: Fault; readonly round: number },
): Promise<number> {
  const owned = await Promise.all(run.processes.map(ownedBy))
  const n = (owned[0] ?? 0) >= (owned[1] ?? 0) ? 0 : 1
  const victim = run.processes[n] as QueueProcess
  const before = accepted.size
  await until('jobs are accepted', () => accepted.size > before, WITHIN_MS)
  const started = performance.now()
  if (fault === 'killed') victim.program.signal('SIGKILL')
  else if (fault === 'frozen') victim.program.signal('SIGSTOP')
  else run.relays[n]?.cut()
  const other = run.processes[1 - n] as QueueProcess
  const servedByOther = run.topics.map(async (topic) => {
    // A job of its own, so that a duplicate of an earlier one does not count as accepted.
    const id = `${fault}-${round}`
    await until(
      `${topic} is served by the other process`,
      async () => (await request(other.url, 'POST', '/producer/jobs', { topic, jobs: [{ id }] })).status === 200,
      WITHIN_MS,
    )
    accepted.add(`${topic}/${id}`)
  })
  await Promise.all(servedByOther)
  await until('the other process owns everything', async () => (await ownedBy(other)) === run.partitions, WITHIN_MS)
  const seconds = (performance.now() - started) / 1000
  if (fault === 'killed') run.processes[n] = await startProcess(run, n)
  else if (fault === 'frozen') victim.program.signal('SIGCONT')
  else run.relays[n]?.mend()
  await until('the first process is ready again', async () => await isReady(run.processes[n]), WITHIN_MS)
  return seconds
}

async function ownedBy({ url }: QueueProcess): Promise<number> {
  const { body } = await request(url, 'GET', '/metrics')
  return [...String(body).matchAll(/vacancy_queue_owner\{partition="\d+"\} 1/g)].length
}

async function isReady(process: QueueProcess | undefined): Promise<boolean> {
  return process !== undefined && (await request(process.url, 'GET', '/ready')).body.ready === true
}

/** Consumes a topic wherever it is served. */
async function consume(run: Run, topic: string): Promise<void> {
  for (let n = 0; run.isRunning; n++) {
    try {
      const process = run.processes[n % run.processes.length] as QueueProcess
      const opening = consumeAll(process, topic, run.seen)
      const consumer = await Promise.race([opening, wait(SUBSCRIBE_MS, undefined)])
      await consumer?.closed
    } catch {
      // Not served there: the next one may.
      await wait(RETRY_MS)
    }
  }
}

export const queueFailoverCommand = defineCommand({
  name: 'proofs queue-failover',
  component: 'queue-failover',
  summary:
    'Two queues share PostgreSQL. The one that owns more is killed, frozen and cut off from PostgreSQL, in turns.',
  flags: {
    rounds: { type: 'integer', min: 1, max: 100_000, default: 20, summary: 'Rounds of each fault.' },
    partitions: { type: 'integer', min: 1, max: 64, default: 1, summary: 'Partitions that the two share.' },
    faults: { type: 'list', default: FAULTS, summary: `Of ${FAULTS.join(', ')}.` },
  },
  run: async ({ flags: { rounds, partitions, faults } }) => {
    const unknown = faults.find((fault) => !FAULTS.includes(fault as Fault))
    if (unknown !== undefined)
      throw new VacancyError('usage_error', { reason: `--faults: ${unknown} is none of ${FAULTS.join(', ')}` })
    const options = { rounds, partitions, faults: faults as readonly Fault[] }
    const report = await failoverQueue(options, (line) => process.stderr.write(`${line}\n`))
    process.stdout.write(`${JSON.stringify(report)}\n`)
    return report.lost.length + report.strangers + report.late.length === 0 ? EXIT.ok : EXIT.failure
  },
})
