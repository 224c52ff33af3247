/**
 * `npm run bench -- queue`: the job queue beside a server with the same interface that stores nothing, in turns on the same
 * machine.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { EXIT, VacancyError } from '@vacancy/shared'
import { LIVE } from '@vacancy/shared/live'
import { defineCommand, whole } from '@vacancy/shared/node'
import { WebSocket } from 'ws'
import { failure } from '../failure.ts'
import { type RowReport, rowOf, type Section } from '../format.ts'
import { writeBenchmark } from '../pages.ts'
import { median, quantile } from '../pauses.ts'
import { connectTo, POSTGRES_USER, type PostgresServer, startPostgresServer } from '../postgres-server.ts'
import { dirFlag, measureSection, RECORD_FLAGS, type SectionHead, storeSection } from '../record-section.ts'
import { readResults, refusePartialWrite } from '../results.ts'
import { judged, type Measure, NotMeasured } from '../verdict.ts'
import { type Load, measureLoad } from './load.ts'
import { MILLION_ROW, measureWaiting } from './million.ts'
import {
  clientsOf,
  closeServer,
  openFloor,
  openOurs,
  PAYLOAD_BYTES,
  runClients,
  type Server,
  startControlPlane,
  startOurs,
  TOPICS,
  withTopics,
} from './servers.ts'

/** Checkpoints of a run should not depend on when it began. */
const SETTINGS = ['shared_buffers=256MB', 'max_wal_size=4GB', 'checkpoint_timeout=30min']
const POLL_MS = 20

/**
 * The queue with its journal in PostgreSQL, beside the floor: what a job costs in our process and in the database.
 *
 * @throws NotMeasured where PostgreSQL is not installed
 */
async function measurePostgres(
  options: { readonly jobs: number; readonly rounds: number; readonly dir: string },
  load: Load,
  say: (text: string) => void,
): Promise<RowReport> {
  const folder = mkdtempSync(join(options.dir, 'postgres-'))
  try {
    const postgres = await startPostgresServer(folder, SETTINGS)
    try {
      let databases = 0
      return await measureLoad(
        options,
        load,
        {
          openOurs: () => openOnPostgres(postgres, `queue_${++databases}`, options.dir),
          openOther: () => openFloor('floor'),
          other: 'floor',
        },
        say,
      )
    } finally {
      await postgres.stop()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Our program on an empty database. */
async function openOnPostgres(postgres: PostgresServer, name: string, dir: string): Promise<Server> {
  const admin = await connectTo(postgres.port)
  try {
    await admin.query(`create database ${name}`)
  } finally {
    await admin.end()
  }
  const url = `postgres://${POSTGRES_USER}@127.0.0.1:${postgres.port}/${name}`
  const server = await startOurs(mkdtempSync(join(dir, 'run-')), url)
  const client = await connectTo(postgres.port, name)
  try {
    return {
      ...(await withTopics(server)),
      databaseSeconds: postgres.cpuSeconds,
      settle: async () => {
        for (;;) {
          const { rowCount } = await client.query('select from vacancy_queue.jobs limit 1')
          if (rowCount === 0) return
          await new Promise((resolve) => setTimeout(resolve, POLL_MS))
        }
      },
      end: () => client.end(),
    }
  } catch (error) {
    await client.end()
    await closeServer(server)
    throw error
  }
}

/** As the page of the queue asks for statistics. */
const PAGE_POLL_MS = 2_000

/** The queue inside a control plane with its console and the page of the queue open, beside the queue alone. */
function measureConsole(
  options: { readonly jobs: number; readonly rounds: number; readonly dir: string },
  load: Load,
  say: (text: string) => void,
): Promise<RowReport> {
  const { dir } = options
  return measureLoad(
    options,
    load,
    { openOurs: () => openConsole(dir), openOther: () => openOurs(dir), other: 'queue alone' },
    say,
  )
}

/** A control plane whose queue page is open until it is closed. */
async function openConsole(dir: string): Promise<Server> {
  const { server, link } = await startControlPlane(mkdtempSync(join(dir, 'run-')))
  try {
    const page = await openPage(server.url, link)
    return { ...(await withTopics(server)), end: page.close }
  } catch (error) {
    await closeServer(server)
    throw error
  }
}

/** Does what a browser does while it shows the page. */
async function openPage(url: URL, link: URL): Promise<{ readonly close: () => Promise<void> }> {
  const cookie = await signIn(url, link)
  const get = async (path: string): Promise<void> => {
    const response = await fetch(new URL(path, url), { headers: { cookie } })
    await response.text()
    if (response.status !== 200) throw failure(`${path} was answered with ${response.status}`)
  }
  // A page is open when it has been rendered: until then the console is still being loaded.
  await get('/queue')
  const live = new WebSocket(`ws://${url.host}${LIVE.path}`, { headers: { cookie, origin: url.origin } })
  await new Promise((resolve, reject) => {
    live.once('open', resolve)
    live.once('error', reject)
  })
  for (const [id, topic] of ['summary', 'ops'].entries()) live.send(JSON.stringify({ t: 'sub', id, topic }))
  await get('/api/v1/me')
  await get('/api/v1/queue/stats')
  let fault: Error | undefined
  const timer = setInterval(() => {
    get('/api/v1/queue/stats').catch((error: Error) => {
      fault ??= error
    })
  }, PAGE_POLL_MS)
  return {
    close: async () => {
      clearInterval(timer)
      live.terminate()
      if (fault !== undefined) throw fault
    },
  }
}

/** @returns the cookie of the session */
async function signIn(url: URL, link: URL): Promise<string> {
  const response = await fetch(new URL('/api/v1/session/link', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url.origin },
    body: JSON.stringify({ code: new URLSearchParams(link.hash.slice(1)).get('code') }),
  })
  await response.text()
  const cookie = response.headers.get('set-cookie')?.split(';')[0]
  if (response.status !== 200 || cookie === undefined) throw failure(`signing in was answered with ${response.status}`)
  return cookie
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
// 7 is the million.
const POSTGRES_LOAD: Load = {
  ...usual,
  id: 8,
  what: 'batches of 100 on PostgreSQL; 50 consumers',
  batch: 100,
  connections: 16,
  submitMin: undefined,
  deliverMin: undefined,
  cpuMax: 1.15,
  databaseMax: 0.85,
}
const CONSOLE_LOAD: Load = {
  ...usual,
  id: 9,
  what: 'batches of 100, in a control plane whose queue page is open; 50 consumers',
  batch: 100,
  connections: 16,
  submitMin: 0.95,
  deliverMin: 0.95,
}

export const queueCommand = defineCommand({
  name: 'bench queue',
  component: 'queue',
  summary: 'Submits and delivers jobs, on the job queue and on a server that stores nothing, in turns.',
  flags: {
    jobs: { ...whole(300_000, 1_000, 10_000_000), summary: 'Jobs of a run.' },
    rounds: { ...whole(5, 1, 100), summary: 'Runs of each; figures are their medians.' },
    million: {
      type: 'boolean',
      summary: 'Measures a queue with a million waiting jobs, and nothing else. Takes minutes.',
    },
    only: { type: 'list', value: '1,3', summary: 'These rows only.' },
    ...RECORD_FLAGS,
    dir: dirFlag('queue'),
  },
  run: async ({ flags }) => {
    refusePartialWrite(flags)
    if (flags.million && flags.only !== undefined)
      throw new VacancyError('usage_error', { reason: '--million measures a row of its own: leave out --only' })
    const { section } = await measureSection(headOf(flags), async () => ({
      rows: await measureQueue(flags, (text) => process.stderr.write(`${text}\n`)),
    }))
    storeSection(section, { ...flags, write: false })
    if (flags.write) writeBenchmark({ queue: withKeptRows(section, readResults().queue) })
    return EXIT.ok
  },
})

/**
 * A run of a million jobs takes minutes and is apart. It adds its row to the figures that were recorded before, and the
 * row stays when the others are recorded again.
 */
function withKeptRows(section: Section, before: Section | undefined): Section {
  const isMillion = (row: RowReport) => row.id === MILLION_ROW
  const million = section.rows.find(isMillion)
  const inOrder = (rows: readonly RowReport[]) => rows.toSorted((a, b) => a.id - b.id)
  if (before === undefined) return section
  if (million === undefined) return { ...section, rows: inOrder([...section.rows, ...before.rows.filter(isMillion)]) }
  const { command, startedAt, machine } = section
  const row = { ...million, why: `\`${command}\`, ${startedAt.slice(0, 10)}, commit ${machine.commit}` }
  return { ...before, rows: inOrder([...before.rows.filter((each) => !isMillion(each)), row]) }
}

type QueueOptions = {
  readonly jobs: number
  readonly rounds: number
  readonly only: readonly string[] | undefined
  readonly dir: string
  readonly million?: boolean
}

/** Measures every row. */
async function measureQueue(options: QueueOptions, say: (text: string) => void): Promise<RowReport[]> {
  mkdirSync(options.dir, { recursive: true })
  const isWanted = (id: number) => !options.million && (options.only?.includes(String(id)) ?? true)
  const rows: RowReport[] = []
  const besideFloor = { openOurs: () => openOurs(options.dir), openOther: () => openFloor('floor'), other: 'floor' }
  for (const load of LOADS) if (isWanted(load.id)) rows.push(await measureLoad(options, load, besideFloor, say))
  if (isWanted(LATENCY_ROW)) rows.push(await measureLatency(options, say))
  if (isWanted(BARE_ROW)) rows.push(await measureFloor(options, say))
  if (isWanted(POSTGRES_LOAD.id)) rows.push(await postgresRow(options, say))
  if (isWanted(CONSOLE_LOAD.id)) rows.push(await measureConsole(options, CONSOLE_LOAD, say))
  if (options.million) rows.push(await measureWaiting({ dir: options.dir }, say))
  return rows
}

const headOf = ({ jobs, rounds, million }: QueueOptions): SectionHead => ({
  name: 'queue',
  title: 'The job queue',
  command: `npm run bench -- queue ${million ? '--million' : `--jobs ${jobs} --rounds ${rounds}`}`,
  scope: `${(million ? 1_000_000 : jobs).toLocaleString('en')} jobs of ${PAYLOAD_BYTES} bytes in ${TOPICS.length} topics, durable`,
  how: HOW,
})

const HOW = [
  'The floor is Fastify and `ws` in one process: the same bodies parsed, base64 decoded, ids in a set, the same frames and credit, nothing stored and no other rule. It answers all requests of a turn of its event loop together, as the queue answers those of a commit group; answered one by one it does half as many single jobs.',
  'Jobs are submitted without consumers, then delivered. Clients are another process on the same two cores. Ours and the floor run in turns, each on an empty folder; figures are medians.',
  'The journal is in SQLite, except in the row that names PostgreSQL. There, time in the database is that of all its processes, compared with the time of the floor, which stores nothing.',
  'The open page is a session that asks for statistics every two seconds and follows the live channel, as the page does in a browser; it draws nothing.',
  'Processor time is that of the server, user and system, with the thread that writes the journal. Where the client was the limit, it decides.',
]

async function postgresRow(options: QueueOptions, say: (text: string) => void): Promise<RowReport> {
  try {
    return await measurePostgres(options, POSTGRES_LOAD, say)
  } catch (error) {
    if (!(error instanceof NotMeasured)) throw error
    const { id, what } = POSTGRES_LOAD
    return { id, what, verdict: 'not measured', measures: [], why: error.message }
  }
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
  const ours = await of(() => openOurs(options.dir))
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
  return rowOf(LATENCY_ROW, 'one job after the other', measures)
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
  return rowOf(BARE_ROW, 'the floor beside a server that reads the body and answers', measures)
}
