/** `npm run proofs -- queue-soak`: the job queue at half its top rate for a while, with failures and reconnects. */
import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commitOf, defineCommand } from '@vacancy/shared/node'
import { metric, parseMetrics } from '../../bench/src/metrics.ts'
import { writeRun } from '../../bench/src/pages.ts'
import { residentBytes } from '../../bench/src/process-memory.ts'
import { lastJson, ROOT, runProgram } from '../../bench/src/programs.ts'
import {
  clientsOf,
  closeServer,
  openOurs,
  PAYLOAD_BYTES,
  runClients,
  type Server,
} from '../../bench/src/queue/servers.ts'
import type { RecordedRun } from '../../bench/src/results.ts'
import type { SoakCounts, SoakPlan } from './queue-soak-clients.ts'
import { type QueueSoak, queueSoakVerdict } from './queue-soak-verdict.ts'
import { type Check, textOf } from './soak-verdict.ts'

const CONSUMERS = 50
const SAMPLE_MS = 5_000
/** Jobs whose submission and delivery at the same time shows the top rate. */
const TOP_JOBS = 100_000

export const queueSoakCommand = defineCommand({
  name: 'proofs queue-soak',
  component: 'queue-soak',
  summary:
    'Loads the job queue at half its top rate, with failures and reconnects, and drains it. Fails when memory or files grow, the event loop lags, or anything is left.',
  flags: {
    minutes: { type: 'integer', min: 1, max: 10_080, default: 20, summary: 'How long the load lasts.' },
    dir: { type: 'text', default: join(ROOT, '.vacancy/soak-queue'), value: 'DIR', summary: 'Folder for the data.' },
    write: {
      type: 'boolean',
      summary: 'Records the run and renews the page that shows it. Only if every check passed.',
    },
    json: { type: 'text', value: 'FILE', summary: 'Writes samples and verdicts as JSON.' },
  },
  run: async ({ flags }) => {
    const say = (text: string) => process.stderr.write(`${text}\n`)
    const soak = await soakQueue({ dir: flags.dir, seconds: flags.minutes * 60, topJobs: TOP_JOBS }, say)
    const checks = queueSoakVerdict(soak)
    print(soak, checks)
    const hasPassed = checks.every(({ passed }) => passed)
    if (flags.write && hasPassed) writeRun('soak-queue', soakRun(soak, checks, flags.minutes))
    if (flags.json) writeFileSync(flags.json, `${JSON.stringify({ checks, ...soak }, null, 2)}\n`)
    return hasPassed ? 0 : 1
  },
})

type SoakOptions = { readonly dir: string; readonly seconds: number; readonly topJobs: number }

export async function soakQueue(
  { dir, seconds, topJobs }: SoakOptions,
  say: (text: string) => void,
): Promise<QueueSoak> {
  mkdirSync(dir, { recursive: true })
  const top = await topRate(dir, topJobs)
  const perSecond = Math.floor(top / 2)
  say(`${Math.round(top)} jobs a second at most; ${seconds} s with ${perSecond} begin`)
  const server = await openOurs(dir)
  try {
    const plan: SoakPlan = {
      ...clientsOf(server),
      perSecond,
      seconds,
      consumers: CONSUMERS,
      payloadBytes: PAYLOAD_BYTES,
      run: 'soak',
    }
    // What is read tells of the time since it was read last.
    await delayP99(server)
    const samples = sampling(server)
    const clients = runProgram(['proofs/soak/queue-soak-clients.ts', JSON.stringify(plan)])
    const counts = lastJson(await clients.finally(samples.stop)) as SoakCounts
    return { perSecond, seconds, counts, delayP99: await delayP99(server), ...samples.taken }
  } finally {
    await closeServer(server)
  }
}

/** Jobs a second that are submitted while others are delivered. */
async function topRate(dir: string, jobs: number): Promise<number> {
  const server = await openOurs(dir)
  try {
    const at = clientsOf(server)
    const submit = { batch: 100, connections: 16, isNew: false, payloadBytes: PAYLOAD_BYTES, run: 'top' }
    const both = await Promise.all([
      runClients({ ...at, kind: 'submit', jobs, ...submit }),
      runClients({ ...at, kind: 'deliver', jobs, consumers: CONSUMERS, prefetch: 100 }),
    ])
    return (jobs / Math.max(...both.map(({ ms }) => ms))) * 1000
  } finally {
    await closeServer(server)
  }
}

/** Seconds, of all turns of the event loop since the last call. */
async function delayP99({ url, token }: Server): Promise<number> {
  const response = await fetch(new URL('/metrics', url), { headers: { authorization: `Bearer ${token}` } })
  const samples = parseMetrics(await response.text())
  return metric(samples, 'vacancy_queue_event_loop_delay_seconds', { quantile: '0.99' }) ?? Number.NaN
}

function sampling({ program, dir }: Server) {
  const taken: Pick<QueueSoak, 'memory' | 'files'> = { memory: [], files: [] }
  const begun = performance.now()
  const look = () => {
    const seconds = (performance.now() - begun) / 1000
    taken.memory.push({ seconds, bytes: residentBytes(program?.pid ?? 0).resident })
    const files = ['queue.db', 'queue.db-wal'].map((name) => join(dir, 'data', name)).filter(existsSync)
    taken.files.push({ seconds, bytes: files.reduce((sum, file) => sum + statSync(file).size, 0) })
  }
  look()
  const timer = setInterval(look, SAMPLE_MS)
  return { taken, stop: () => clearInterval(timer) }
}

function soakRun(soak: QueueSoak, checks: readonly Check[], minutes: number): RecordedRun {
  return {
    title: `${minutes} minutes at half the top rate`,
    command: `npm run proofs -- queue-soak --minutes ${minutes}`,
    date: new Date().toISOString().slice(0, 10),
    commit: commitOf(ROOT),
    lines: [`${countsText(soak)}.`, ...checks.map(({ name, text }) => `${sentence(name)}: ${text}.`)],
  }
}

const sentence = (text: string) => `${text[0]?.toUpperCase()}${text.slice(1)}`

function countsText({ counts, perSecond }: QueueSoak): string {
  const of = (count: number) => count.toLocaleString('en')
  return `${of(counts.submitted)} jobs at ${of(perSecond)} a second, ${of(counts.deliveries)} deliveries, ${of(counts.failed)} failed, ${of(counts.reconnects)} reconnects, ${of(counts.repeated)} requests repeated`
}

function print(soak: QueueSoak, checks: readonly Check[]): void {
  process.stdout.write(`${countsText(soak)}\n`)
  for (const check of checks) process.stdout.write(textOf(check))
}
