/** A queue with a million waiting jobs: how it starts, what it needs, and how it delivers. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { failure } from '../failure.ts'
import { type RowReport, rowOf } from '../format.ts'
import { median } from '../pauses.ts'
import { residentBytes } from '../process-memory.ts'
import { runProgram, stopProgram } from '../programs.ts'
import { judged, type Measure } from '../verdict.ts'
import {
  clientsOf,
  closeServer,
  openOurs,
  PAYLOAD_BYTES,
  refuseRefused,
  runClients,
  type Server,
  startOurs,
  withTopics,
} from './servers.ts'

export const MILLION_ROW = 7
const SETTLE_MS = 3_000

type WaitingOptions = {
  readonly dir: string
  /** Jobs that wait, and in the queue that it is compared with. */
  readonly jobs?: number
  readonly few?: number
  readonly starts?: number
  /** Of deliveries, in turns on both; the first two are not counted. */
  readonly rounds?: number
}

export async function measureWaiting(
  { dir, jobs = 1_000_000, few = 10_000, starts = 3, rounds = 22 }: WaitingOptions,
  say: (text: string) => void,
): Promise<RowReport> {
  let many = await withTopics(await startOurs(mkdtempSync(join(dir, 'run-'))))
  try {
    const empty = await settledBytes(many)
    await submit(many, jobs, 'many')
    const submitted = await settledBytes(many)
    say(`${jobs.toLocaleString('en')} jobs wait`)
    const startSeconds: number[] = []
    const readSeconds: number[] = []
    for (let n = 0; n < starts; n++) {
      await stop(many)
      readSeconds.push(await readRows(many, jobs))
      const begun = performance.now()
      many = await startOurs(many.dir)
      startSeconds.push((performance.now() - begun) / 1000)
      say(`start ${n + 1} of ${starts}: ${startSeconds.at(-1)?.toFixed(1)} s`)
    }
    const started = await settledBytes(many)
    const perJob = (bytes: number) => (bytes - empty) / jobs - PAYLOAD_BYTES
    const rates = await deliver(dir, many, { few, rounds, say })
    const measures: Measure[] = [
      judged({
        name: 'start over reading the rows and dropping them',
        value: median(startSeconds) / median(readSeconds),
        unit: '×',
        target: { atMost: 2 },
        why: `${median(startSeconds).toFixed(1)} s, reading takes ${median(readSeconds).toFixed(1)} s`,
      }),
      judged({
        name: 'memory of a job beside its payload, after submission',
        value: perJob(submitted),
        unit: 'B',
        target: { atMost: 600 },
      }),
      judged({ name: 'the same after a start', value: perJob(started), unit: 'B', target: { atMost: 600 } }),
      judged({
        name: `delivery as a share of that with ${few.toLocaleString('en')} waiting`,
        value: (median(rates.many) / median(rates.few)) * 100,
        unit: '%',
        target: { atLeast: 90 },
        why: `${Math.round(median(rates.many))} and ${Math.round(median(rates.few))} a second`,
      }),
    ]
    const what = `${jobs.toLocaleString('en')} waiting jobs of ${PAYLOAD_BYTES} bytes`
    return rowOf(MILLION_ROW, what, measures)
  } finally {
    await closeServer(many)
  }
}

async function settledBytes({ program }: Server): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  return residentBytes(program.pid).resident
}

async function submit(server: Server, jobs: number, run: string): Promise<void> {
  const plan = { batch: 1_000, connections: 4, isNew: false, payloadBytes: PAYLOAD_BYTES, run, repeats: true }
  refuseRefused(await runClients({ ...clientsOf(server), kind: 'submit', jobs, ...plan }))
}

async function stop({ program }: Server): Promise<void> {
  await stopProgram(program, { withinMs: 60_000 })
}

async function readRows({ dir }: Server, jobs: number): Promise<number> {
  const begun = performance.now()
  const read = Number(await runProgram(['bench/src/queue/read-rows.ts', join(dir, 'data', 'queue.db')]))
  if (read !== jobs) throw failure(`the file has ${read} jobs, not ${jobs}`)
  return (performance.now() - begun) / 1000
}

type Rates = { readonly many: number[]; readonly few: number[] }
type Deliveries = { readonly few: number; readonly rounds: number; readonly say: (text: string) => void }

/** Delivers as many jobs from the long queue as from a short one, in turns. */
async function deliver(dir: string, many: Server, { few, rounds, say }: Deliveries): Promise<Rates> {
  const short = await openOurs(dir)
  const rates: Rates = { many: [], few: [] }
  const measure = async (server: Server, into: number[], isCounted: boolean) => {
    const { ms } = await runClients({ ...clientsOf(server), kind: 'deliver', jobs: few, consumers: 50, prefetch: 100 })
    if (isCounted) into.push((few / ms) * 1000)
  }
  try {
    for (let round = 0; round < rounds; round++) {
      await submit(short, few, `few-${round}`)
      const isCounted = round >= 2
      await measure(many, rates.many, isCounted)
      await measure(short, rates.few, isCounted)
    }
    say(`delivered ${few.toLocaleString('en')} jobs ${rounds} times from each`)
    return rates
  } finally {
    await closeServer(short)
  }
}
