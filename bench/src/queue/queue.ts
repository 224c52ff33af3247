/**
 * `npm run bench:queue`: the job queue beside a server with the same interface that stores nothing, in turns on the same
 * machine. Also against any server of this interface, with `--url` and `--token`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EXIT, VacancyError } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { formatTable, type RowReport, type Section } from '../format.ts'
import { cpuPressure, describeMachine } from '../machine.ts'
import { writeBenchmark } from '../pages.ts'
import { quantile } from '../pauses.ts'
import { processSeconds } from '../process-time.ts'
import { ROOT } from '../programs.ts'
import { refusePartialWrite } from '../results.ts'
import { judged, type Measure, worstOf } from '../verdict.ts'
import { measureWaiting } from './million.ts'
import {
  clientsOf,
  closeServer,
  openFloor,
  openOurs,
  PAYLOAD_BYTES,
  refuseRefused,
  runClients,
  type Server,
  TOPICS,
} from './servers.ts'

/** Beyond this share of a core the client was the limit. */
const CLIENT_BUSY = 0.85

/** How jobs are submitted, and to how many consumers they are delivered. */
type Load = {
  readonly id: number
  readonly what: string
  readonly batch: number
  readonly connections: number
  readonly isNew: boolean
  readonly consumers: number
  readonly prefetch: number
  /** Shares of what the floor does. */
  readonly submitMin: number | undefined
  readonly deliverMin: number | undefined
  /** Processor time of a job, submitted and delivered, as a multiple of the floor's. */
  readonly cpuMax: number | undefined
  /** Jobs of a run, as a multiple of `--jobs`. */
  readonly share: number
}

const usual = { connections: 64, isNew: false, consumers: 50, prefetch: 100, cpuMax: undefined, share: 1 } as const
const LOADS: readonly Load[] = [
  {
    ...usual,
    id: 1,
    what: 'single jobs, connections kept; 50 consumers',
    batch: 1,
    submitMin: 0.85,
    deliverMin: 0.9,
    cpuMax: 1.25,
    share: 0.5,
  },
  {
    ...usual,
    id: 2,
    what: 'single jobs, a new connection for each request; 50 consumers',
    batch: 1,
    isNew: true,
    submitMin: undefined,
    deliverMin: undefined,
    share: 0.25,
  },
  {
    ...usual,
    id: 3,
    what: 'batches of 100; 50 consumers',
    batch: 100,
    connections: 16,
    submitMin: 0.85,
    deliverMin: 0.9,
    cpuMax: 1.3,
  },
  {
    ...usual,
    id: 4,
    what: 'batches of 1,000; one consumer of each topic',
    batch: 1_000,
    connections: 8,
    consumers: 4,
    prefetch: 1_000,
    submitMin: 0.8,
    deliverMin: 0.8,
  },
]
const LATENCY_ROW = 5
const BARE_ROW = 6

export const queueCommand = defineCommand({
  name: 'bench queue',
  component: 'queue',
  summary: 'Submits and delivers jobs, on the job queue and on a server that stores nothing, in turns.',
  flags: {
    jobs: { type: 'integer', min: 1_000, max: 10_000_000, default: 100_000, summary: 'Jobs of a run.' },
    rounds: { type: 'integer', min: 1, max: 100, default: 5, summary: 'Runs of each; figures are their medians.' },
    url: { type: 'text', default: '', value: 'URL', summary: 'A server that runs already, in the place of ours.' },
    token: { type: 'text', default: '', value: 'TOKEN', summary: 'Its token, with the rights to submit and consume.' },
    million: {
      type: 'boolean',
      summary: 'Measures a queue with a million waiting jobs, and nothing else. Takes minutes.',
    },
    only: { type: 'list', value: '1,3', summary: 'These rows only.' },
    write: { type: 'boolean', summary: 'Records the figures and renews the pages that quote them.' },
    json: { type: 'text', value: 'FILE', summary: 'Writes the figures as JSON.' },
    dir: { type: 'text', default: join(ROOT, '.vacancy/queue'), value: 'DIR', summary: 'Folder for the data.' },
  },
  run: async ({ flags }) => {
    refusePartialWrite(flags)
    if ((flags.url === '') !== (flags.token === ''))
      throw new VacancyError('usage_error', { reason: '--url and --token belong together' })
    if (flags.url !== '' && flags.write)
      throw new VacancyError('usage_error', { reason: '--write records our own server: leave out --url' })
    if (flags.million && (flags.write || flags.url !== '' || flags.only !== undefined))
      throw new VacancyError('usage_error', { reason: '--million stands alone' })
    const section = await measureQueue(flags, (text) => process.stderr.write(`${text}\n`))
    process.stdout.write(formatTable(section))
    if (flags.json) writeFileSync(flags.json, `${JSON.stringify(section, null, 2)}\n`)
    if (flags.write) writeBenchmark({ queue: section })
    return EXIT.ok
  },
})

type QueueOptions = {
  readonly jobs: number
  readonly rounds: number
  readonly url: string
  readonly token: string
  readonly only: readonly string[] | undefined
  readonly dir: string
  readonly million?: boolean
}

/** Measures every row. */
export async function measureQueue(options: QueueOptions, say: (text: string) => void): Promise<Section> {
  const machine = describeMachine()
  const startedAt = new Date().toISOString()
  const begun = performance.now()
  const pressure = cpuPressure()
  mkdirSync(options.dir, { recursive: true })
  const isWanted = (id: number) => !options.million && (options.only?.includes(String(id)) ?? true)
  const rows: RowReport[] = []
  for (const load of LOADS) if (isWanted(load.id)) rows.push(await measureLoad(options, load, say))
  if (isWanted(LATENCY_ROW)) rows.push(await measureLatency(options, say))
  if (isWanted(BARE_ROW)) rows.push(await measureFloor(options, say))
  if (options.million) rows.push(await measureWaiting({ dir: options.dir }, say))
  return {
    name: 'queue',
    title: 'The job queue',
    command: options.million
      ? 'npm run bench:queue -- --million'
      : `npm run bench:queue -- --jobs ${options.jobs} --rounds ${options.rounds}`,
    scope: `${(options.million ? 1_000_000 : options.jobs).toLocaleString('en')} jobs of ${PAYLOAD_BYTES} bytes in ${TOPICS.length} topics, durable on SQLite`,
    startedAt,
    seconds: (performance.now() - begun) / 1000,
    machine,
    rows,
    notes: pressure(),
    how: HOW,
  }
}

const HOW = [
  'The floor is Fastify and `ws` in one process: the same bodies parsed, base64 decoded, ids in a set, the same frames and credit, nothing stored and no other rule.',
  'Jobs are submitted without consumers, then delivered. Clients are another process on the same two cores. Ours and the floor run in turns, each on an empty folder; figures are medians.',
  'Processor time is that of the server, user and system, with the thread that writes the journal. Where the client was the limit, it decides.',
]

/** What one run of a load took, on one server. */
type Figures = {
  readonly submitPerSecond: number
  readonly deliverPerSecond: number
  /** Microseconds of the server for a job, submitted and delivered. */
  readonly cpuMicros: number
  /** The client was the limit while submitting, or delivering. */
  readonly isClientBusy: boolean
}

async function measureLoad(options: QueueOptions, load: Load, say: (text: string) => void): Promise<RowReport> {
  const jobs = Math.max(load.batch * TOPICS.length, Math.round(options.jobs * load.share))
  const ours: Figures[] = []
  const floor: Figures[] = []
  for (let round = 0; round < options.rounds; round++) {
    const turn = [
      async () => ours.push(await runLoad(() => openOurs(options), load, jobs, `${round}o`)),
      async () => floor.push(await runLoad(() => openFloor('floor'), load, jobs, `${round}f`)),
    ]
    // Neither is always the first.
    for (const run of round % 2 === 0 ? turn : turn.reverse()) await run()
    say(`${load.what}: round ${round + 1} of ${options.rounds}`)
  }
  const measures = [
    ...rateMeasures('submitted', ours, floor, (each) => each.submitPerSecond, load.submitMin),
    ...rateMeasures('delivered', ours, floor, (each) => each.deliverPerSecond, load.deliverMin),
    ...cpuMeasures(ours, floor, load.cpuMax),
  ]
  const isClientBusy = [...ours, ...floor].some((each) => each.isClientBusy)
  const why = 'the client was the limit in some runs; processor time decides'
  return { id: load.id, what: load.what, verdict: worstOf(measures), measures, ...(isClientBusy && { why }) }
}

const median = (values: readonly number[]) => quantile(values, 0.5)

/** The rate, and its share of the floor's with the smallest and largest of all rounds. */
function rateMeasures(
  name: string,
  ours: readonly Figures[],
  floor: readonly Figures[],
  pick: (figures: Figures) => number,
  min: number | undefined,
): Measure[] {
  const value = median(ours.map(pick))
  const baseline = { name: 'floor', value: median(floor.map(pick)) }
  const shares = ours.map((each, round) => pick(each) / pick(floor[round] as Figures))
  const spread = `${quantile(shares, 0).toFixed(2)} to ${quantile(shares, 1).toFixed(2)} in the rounds`
  const share = { name: `${name}: share of the floor`, value: median(shares) * 100, unit: '%', why: spread } as const
  return [
    { name, value, unit: '/s', baseline },
    min === undefined ? share : judged({ ...share, target: { atLeast: min * 100 } }),
  ]
}

function cpuMeasures(ours: readonly Figures[], floor: readonly Figures[], max: number | undefined): Measure[] {
  const value = median(ours.map(({ cpuMicros }) => cpuMicros))
  const baseline = { name: 'floor', value: median(floor.map(({ cpuMicros }) => cpuMicros)) }
  const times = median(ours.map(({ cpuMicros }, round) => cpuMicros / (floor[round] as Figures).cpuMicros))
  const ratio = { name: 'processor time over the floor', value: times, unit: '×' } as const
  return [
    { name: 'processor time of a job', value, unit: 'µs', baseline },
    max === undefined ? ratio : judged({ ...ratio, target: { atMost: max } }),
  ]
}

async function runLoad(open: () => Promise<Server>, load: Load, jobs: number, run: string): Promise<Figures> {
  const server = await open()
  try {
    const at = clientsOf(server)
    const { batch, connections, isNew, consumers, prefetch } = load
    const stamp = `${run}-${load.id}-${Date.now().toString(36)}`
    const cpuBefore = cpuOf(server)
    const submitted = await runClients({
      ...at,
      kind: 'submit',
      jobs,
      batch,
      connections,
      isNew,
      payloadBytes: PAYLOAD_BYTES,
      run: stamp,
    })
    refuseRefused(submitted)
    const delivered = await runClients({ ...at, kind: 'deliver', jobs, consumers, prefetch })
    const cpu = cpuOf(server) - cpuBefore
    return {
      submitPerSecond: (jobs / submitted.ms) * 1000,
      deliverPerSecond: (jobs / delivered.ms) * 1000,
      cpuMicros: (cpu / jobs) * 1e6,
      isClientBusy: [submitted, delivered].some(({ cpuSeconds, ms }) => (cpuSeconds * 1000) / ms > CLIENT_BUSY),
    }
  } finally {
    await closeServer(server)
  }
}

/** NaN for a server that runs elsewhere. */
function cpuOf({ program }: Server): number {
  return program === undefined ? Number.NaN : processSeconds(program.pid)
}

async function measureLatency(options: QueueOptions, say: (text: string) => void): Promise<RowReport> {
  const jobs = 1_000
  const of = async (open: () => Promise<Server>): Promise<readonly number[]> => {
    const server = await open()
    try {
      const at = clientsOf(server)
      const plan = { ...at, kind: 'latency', jobs, payloadBytes: PAYLOAD_BYTES, run: `l${Date.now()}` } as const
      return (await runClients(plan)).latencies
    } finally {
      await closeServer(server)
    }
  }
  const ours = await of(() => openOurs(options))
  const floor = await of(() => openFloor('floor'))
  say('latency: done')
  const measure = (name: string, q: number, atMost: number) =>
    judged({
      name,
      value: quantile(ours, q),
      unit: 'ms',
      target: { atMost },
      baseline: { name: 'floor', value: quantile(floor, q) },
    })
  const measures = [measure('accepted to delivered, p50', 0.5, 3), measure('accepted to delivered, p99', 0.99, 15)]
  return { id: LATENCY_ROW, what: 'one job after the other', verdict: worstOf(measures), measures }
}

/** The floor must not be slow by itself. */
async function measureFloor({ jobs, rounds }: QueueOptions, say: (text: string) => void): Promise<RowReport> {
  const rates: Record<'floor' | 'bare', number[]> = { floor: [], bare: [] }
  for (let round = 0; round < rounds; round++) {
    for (const kind of ['floor', 'bare'] as const) {
      const server = await openFloor(kind)
      try {
        const at = clientsOf(server)
        const amount = Math.round(jobs / 2)
        const plan = { batch: 1, connections: 64, isNew: false, payloadBytes: PAYLOAD_BYTES, run: `b${round}` }
        const { ms } = await runClients({ ...at, kind: 'submit', jobs: amount, ...plan })
        rates[kind].push((amount / ms) * 1000)
      } finally {
        await closeServer(server)
      }
    }
    say(`floor and bare HTTP: round ${round + 1} of ${rounds}`)
  }
  const shares = rates.floor.map((each, round) => (each / (rates.bare[round] as number)) * 100)
  const measures: Measure[] = [
    {
      name: 'single jobs',
      value: median(rates.floor),
      unit: '/s',
      baseline: { name: 'bare', value: median(rates.bare) },
    },
    judged({ name: 'share of bare HTTP', value: median(shares), unit: '%', target: { atLeast: 50 } }),
  ]
  return {
    id: BARE_ROW,
    what: 'the floor beside a server that reads the body and answers',
    verdict: worstOf(measures),
    measures,
  }
}
