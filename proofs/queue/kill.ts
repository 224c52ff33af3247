/**
 * `npm run proofs -- queue-kill`: kills a queue with SIGKILL at random times while producers submit and consumers acknowledge,
 * restarts it, and compares what was promised with what is left (docs/design/queue.md#journal).
 *
 * - Every id that was answered with 200 is delivered, finished or listed as dead.
 * - No job returns whose acknowledgement was confirmed, which is sent once it is stored.
 */

import { setTimeout as wait } from 'node:timers/promises'
import { EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { removeFolder, temporaryFolder } from '@vacancy/testkit/node'
import { startPostgres } from '@vacancy/testkit/postgres'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { until } from '@vacancy/testkit/until'
import { base64, openConsumer, type TestConsumer, TOKENS } from '../../queue/src/testing/queue.ts'
import { type QueueProcess, request, startQueueProcess, unfinished } from '../../queue/src/testing/shared-queue.ts'
import { SEED_FLAG, seedOfNow } from '../seed.ts'

const TOPICS = ['orders', 'mail']
const PRODUCERS = 6
const CONSUMERS_OF_TOPIC = 2
const ROUND_MS = { min: 100, max: 1_200 }
/** Longer than a lease, and what the consumers need for everything. */
const DRAIN_MS = 600_000
/** Long: a queue that is killed ends its connections. */
const RESPONSE_MS = 60_000
/** Added to the payloads of one producer: its batches are large enough to be written to files of their own. */
const LARGE = 'x'.repeat(20_000)

type Fate = {
  /** The 200 arrived. */
  isAccepted: boolean
  deliveries: number
  /** Its acknowledgement was confirmed. */
  isConfirmed: boolean
  /** Confirmed before a kill: it must not return. */
  isSettled: boolean
}

export type KillReport = {
  readonly seed: number
  readonly rounds: number
  readonly accepted: number
  readonly delivered: number
  readonly settled: number
  readonly lost: readonly string[]
  readonly returned: readonly string[]
  /** Delivered with another payload. */
  readonly spoiled: readonly string[]
}

type Run = {
  readonly seed: number
  readonly random: Random
  url: string
  readonly fates: Map<string, Fate>
  readonly returned: Set<string>
  readonly spoiled: Set<string>
  next: number
  isRunning: boolean
}

type Message = TestConsumer['messages'][number]
type Journal = 'sqlite' | 'postgres'
type KillOptions = { readonly rounds: number; readonly seed: number; readonly journal?: Journal }

export async function killQueue(
  { rounds, seed, journal = 'sqlite' }: KillOptions,
  say: (line: string) => void = () => undefined,
): Promise<KillReport> {
  const folder = temporaryFolder()
  const run: Run = {
    seed,
    random: createRandom(seed),
    url: '',
    fates: new Map(),
    returned: new Set(),
    spoiled: new Set(),
    next: 0,
    isRunning: false,
  }
  // What is synced must be on disk: the database of other tests does without.
  const postgres = journal === 'postgres' ? await startPostgres({ isSynced: true }) : undefined
  const databaseUrl = (await postgres?.createDatabase()) ?? ''
  const start = async () => {
    const process = await startQueueProcess(folder, databaseUrl)
    run.url = process.url
    return process
  }
  let process = await start()
  try {
    for (const topic of TOPICS)
      await post(run, '/producer/topic', { topic, config: { max_attempts: 2, retry_base_ms: 20 } })
    for (let round = 1; round <= rounds; round++) {
      await traffic(run, process)
      process = await start()
      if (round % 10 === 0) say(`round ${round} of ${rounds}: ${run.fates.size} jobs`)
    }
    return report(run, rounds, await drain(run))
  } finally {
    process.program.signal('SIGKILL')
    await process.program.ended
    await postgres?.close()
    removeFolder(folder)
  }
}

/** Producers and consumers work until the process is killed. */
async function traffic(run: Run, { program }: QueueProcess): Promise<void> {
  run.isRunning = true
  const consumers = await Promise.all(
    TOPICS.flatMap((topic) => Array.from({ length: CONSUMERS_OF_TOPIC }, () => consume(run, topic, 0.7))),
  )
  const producers = Array.from({ length: PRODUCERS }, (_, n) => produce(run, n))
  await wait(ROUND_MS.min + run.random.below(ROUND_MS.max - ROUND_MS.min))
  program.signal('SIGKILL')
  run.isRunning = false
  await program.ended
  for (const fate of run.fates.values()) if (fate.isConfirmed) fate.isSettled = true
  await Promise.all(producers)
  for (const { socket } of consumers) socket.terminate()
}

/** Submits single jobs or batches, and repeats what was not answered with the same ids. */
async function produce(run: Run, number: number): Promise<void> {
  const topic = TOPICS[number % TOPICS.length] as string
  while (run.isRunning) {
    const size = number < PRODUCERS / 2 ? 1 : 1 + run.random.below(50)
    const ids = Array.from({ length: size }, () => `job-${run.next++}`)
    for (const id of ids)
      run.fates.set(`${topic}/${id}`, {
        isAccepted: false,
        deliveries: 0,
        isConfirmed: false,
        isSettled: false,
      })
    const more = number === PRODUCERS - 1 ? LARGE : ''
    const jobs = ids.map((id) => ({ id, topic, data: base64({ id, more }) }))
    const body = size === 1 ? { job: jobs[0] } : { topic, jobs }
    if ((await post(run, '/producer/jobs', body)) !== 200) continue
    for (const id of ids) (run.fates.get(`${topic}/${id}`) as Fate).isAccepted = true
  }
}

/** Acknowledges a share of its jobs, fails some for good, and leaves the others. @returns once it is connected */
async function consume(run: Run, topic: string, share: number): Promise<TestConsumer> {
  const query = `token=${TOKENS.consumer}&topic=${topic}&consumer=w&prefetch=50&confirm=1`
  const consumer = await openConsumer(run.url, query)
  void (async () => {
    for (;;) receive(run, consumer, await consumer.next(), share)
  })()
  return consumer
}

function receive(run: Run, consumer: TestConsumer, message: Message, share: number): void {
  const { action, topic, jobId, seqId, data: content } = message
  const fate = run.fates.get(`${topic}/${jobId}`)
  if (fate === undefined) return
  if (action === 'confirm' && content.of === 'ack' && content.result === 'done') fate.isConfirmed = true
  if (action !== 'job') return
  fate.deliveries++
  if (content.id !== jobId || (content.more !== '' && content.more !== LARGE)) run.spoiled.add(`${topic}/${jobId}`)
  if (fate.isSettled) run.returned.add(`${topic}/${jobId}`)
  const chance = run.random.below(100) / 100
  if (chance < share) consumer.ack(message)
  else if (chance > 0.97) consumer.send({ action: 'nack', jobId, seqId, requeue: chance < 0.985 })
}

/** Takes everything that is left. @returns the ids that are listed as dead */
async function drain(run: Run): Promise<ReadonlySet<string>> {
  const consumers = await Promise.all(TOPICS.map((topic) => consume(run, topic, 1)))
  await until(`seed ${run.seed}: no job is left`, async () => (await unfinished(run.url, TOPICS)) === 0, DRAIN_MS)
  for (const { socket } of consumers) socket.terminate()
  const dead = new Set<string>()
  for (const topic of TOPICS) {
    for (let cursor: string | null = ''; cursor !== null; ) {
      const from: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const path = `/api/v1/queue/topics/${topic}/dead?limit=500${from}`
      const page = (await request(run.url, 'GET', path, undefined, RESPONSE_MS)).body
      for (const { id } of page.jobs) dead.add(`${topic}/${id}`)
      cursor = page.next
    }
  }
  return dead
}

function report(run: Run, rounds: number, left: ReadonlySet<string>): KillReport {
  const fates = [...run.fates]
  const accepted = fates.filter(([, { isAccepted }]) => isAccepted)
  return {
    seed: run.seed,
    rounds,
    accepted: accepted.length,
    delivered: fates.filter(([, { deliveries }]) => deliveries > 0).length,
    settled: fates.filter(([, { isSettled }]) => isSettled).length,
    lost: accepted.filter(([id, { deliveries }]) => deliveries === 0 && !left.has(id)).map(([id]) => id),
    returned: [...run.returned],
    spoiled: [...run.spoiled],
  }
}

/** @returns the status; 0 without a response */
function post(run: Run, path: string, body: unknown): Promise<number> {
  return request(run.url, 'POST', path, body, RESPONSE_MS).then(
    ({ status }) => status,
    () => 0,
  )
}

export const queueKillCommand = defineCommand({
  name: 'proofs queue-kill',
  component: 'queue-kill',
  summary:
    'Kills a queue at random times while clients submit and acknowledge, and compares what was promised with what is left.',
  flags: {
    rounds: { type: 'integer', min: 1, max: 1_000_000, default: 50, summary: 'Kills.' },
    journal: {
      type: 'choice',
      choices: ['sqlite', 'postgres'],
      default: 'sqlite',
      summary: 'PostgreSQL is found or installed.',
    },
    seed: SEED_FLAG,
  },
  run: async ({ flags: { rounds, journal, seed = seedOfNow() } }) => {
    const options = { rounds, seed, journal: journal as Journal }
    const report = await killQueue(options, (line) => process.stderr.write(`${line}\n`))
    process.stdout.write(`${JSON.stringify(report)}\n`)
    const { lost, returned, spoiled } = report
    return lost.length + returned.length + spoiled.length === 0 ? EXIT.ok : EXIT.failure
  },
})
