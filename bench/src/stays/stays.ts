/**
 * `npm run bench -- stays`: what a booking of three nights costs beside one decrement, alone and replicated; searches beside
 * writes; and how soon after its deadline a hold returns its rooms.
 */

import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, type VacancyClient } from '@vacancy/client'
import { EXIT } from '@vacancy/shared'
import { defineCommand, whole } from '@vacancy/shared/node'
import { type Bench, requestsOf, SIZES, seedOf } from '../bench.ts'
import { type Echo, startEcho } from '../echo.ts'
import { failure } from '../failure.ts'
import { type RowReport, rowOf } from '../format.ts'
import { percentile } from '../histogram.ts'
import { inTurns } from '../in-turns.ts'
import { runLoad, type Stream } from '../load.ts'
import { median, quantile, ratios } from '../pauses.ts'
import { processSeconds } from '../process-time.ts'
import { dirFlag, RECORD_FLAGS, recordSection, type SectionHead } from '../record-section.ts'
import { startNode, stopNode } from '../running-node.ts'
import { ADMIN_TOKEN, becomesWhole, startShard, stopShard } from '../running-shard.ts'
import { retried, SEARCH_CONNECTIONS, SEARCHES_PER_SECOND, searchP99, taken } from '../search-p99.ts'
import { judged, type Measure } from '../verdict.ts'
import { type At, decrementFrames, openStock, STAY_NIGHTS, type Stock, stayFrames, takeStay } from './stock.ts'

const HOLD_SECONDS = 10
/** Between two looks at a stay, which makes a delay look longer by up to as much. */
const LOOK_MS = 20
/** A stay is watched from so long before its deadline. */
const AHEAD_MS = 300
const OVERDUE_MS_MAX = 60_000

/** When rooms of holds return: every hold is watched from outside, by clients of the leader, until it is listed as expired. */
type Returned = {
  /** From each deadline until a client saw the stay as expired. */
  readonly delaysMs: readonly number[]
  /** Stays that were seen as expired before their deadline. */
  readonly early: number
}

/** @param perSecond holds; their deadlines come as fast */
async function measureHolds({ host, port }: At, stock: Stock, count: number, perSecond: number): Promise<Returned> {
  const client = await connect({ host, port, deadlineMs: OVERDUE_MS_MAX })
  try {
    const begun = performance.now()
    const watched: Promise<number>[] = []
    for (let n = 0; n < count; n++) {
      await wait(Math.max(0, begun + (n * 1_000) / perSecond - performance.now()))
      watched.push(delayOf(client, stock))
    }
    const delaysMs = await Promise.all(watched)
    return { delaysMs, early: delaysMs.filter((ms) => ms < 0).length }
  } finally {
    await client.close()
  }
}

/** Holds one stay. @returns how long after its deadline it was seen as expired */
async function delayOf(client: VacancyClient, stock: Stock): Promise<number> {
  const { stayId, lines } = takeStay(stock)
  const { deadlineMs } = await client.holdStay({ stayId, lines, seconds: HOLD_SECONDS })
  if (deadlineMs === undefined) throw failure(`${stayId} has no deadline`)
  await wait(Math.max(0, deadlineMs - AHEAD_MS - Date.now()))
  for (;;) {
    const { state } = await client.stay(stayId)
    const delay = Date.now() - deadlineMs
    if (state === 'expired') return delay
    if (state !== 'held' || delay > OVERDUE_MS_MAX)
      throw failure(`${stayId} is ${state} ${delay} ms after its deadline`)
    await wait(LOOK_MS)
  }
}

const PACKAGES = 500_000
const CLIENTS = 64
const WARMUP_MS = 1_000
/** Writes a second when latency is measured: nothing queues. */
const PACED_PER_SECOND = 2_000
/** More than a shard on a machine of some cores can take: each stay is sent once. */
const PEAK_PER_SECOND_MAX = 60_000
/** What is written beside searches: requests a second, and most in one write of the generator. */
type Beside = { readonly perSecond: number; readonly batch: number }
const BOOKINGS: Beside = { perSecond: 2_000, batch: 1 }
const UPDATES: Beside = { perSecond: 50_000, batch: 64 }
const HOLDS_PER_SECOND = 100
/** Of a node's reply to a decrement, head included. */
const DECREMENT_REPLY_BYTES = 17
const TARGETS = { latency: 1.3, replicated: 60, searches: 1.2, returnedMs: 500 } as const

export const staysCommand = defineCommand({
  name: 'bench stays',
  component: 'stays',
  summary:
    'Books stays of three nights beside decrements, alone and replicated, and beside searches; watches holds expire.',
  flags: {
    rounds: { ...whole(5, 1, 100), summary: 'Runs of each, in turn; figures are medians.' },
    seconds: { ...whole(8, 1, 60, 'seconds'), summary: 'Length of a run.' },
    holds: { ...whole(2_000, 10, 100_000), summary: 'Holds whose expiry is watched.' },
    ...RECORD_FLAGS,
    dir: dirFlag('stays'),
  },
  run: async ({ flags }) => {
    await recordSection(flags, { ...SIZES.quick, packages: PACKAGES }, headOf(flags), async (bench) => {
      const runs = { ...(await onNode(bench, flags)), ...(await onShard(bench, flags)) }
      return { rows: rowsOf(runs), runs }
    })
    return EXIT.ok
  },
})

type Plan = { readonly rounds: number; readonly seconds: number; readonly holds: number }

/** One run of a load of writes: processor time of the node under it, microseconds a write. */
export type WriteRun = {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly perSecond: number
  readonly cpuMicros: number
}
type Pair = { readonly stays: WriteRun[]; readonly decrements: WriteRun[] }
export type StaysRuns = {
  readonly paced: Pair
  readonly replicated: Pair
  /** p99 of searches, ms. */
  readonly searches: {
    readonly alone: number[]
    readonly beside: number[]
    readonly decrements: number[]
    readonly bare: number[]
    readonly updates: number[]
    readonly bareUpdates: number[]
  }
  readonly holds: Returned
}

const headOf = ({ rounds, seconds, holds }: Plan): SectionHead => ({
  name: 'stays',
  title: 'Stays',
  command: `npm run bench -- stays --rounds ${rounds} --seconds ${seconds} --holds ${holds}`,
  scope: `${rounds} runs of ${seconds} s each in turn, bookings of one room for ${STAY_NIGHTS} nights beside decrements of one night`,
  how: HOW,
})

const HOW = [
  `Beside ${PACKAGES.toLocaleString('en')} packages of the data set the nodes hold 1,000 properties with 30 nights of 255 rooms. Every stay has a new id. All other settings are at their defaults, except \`stays_bytes\`.`,
  `Row 1 is on a node alone, ${PACED_PER_SECOND.toLocaleString('en')} writes/s on ${CLIENTS} connections. Row 2 is on a shard of three with mutual TLS: ${CLIENTS} clients with one write in flight each.`,
  'Processor time is that of the whole process that has the load, all threads.',
  `Row 3: ${SEARCHES_PER_SECOND.toLocaleString('en')} searches of 300 hits a second on ${SEARCH_CONNECTIONS} connections, without writes, with ${BOOKINGS.perSecond.toLocaleString('en')} bookings/s, with as many decrements, and with ${UPDATES.perSecond.toLocaleString('en')} updates/s, up to ${UPDATES.batch} in a write.`,
  'The bare server has one thread, gets as many writes instead of the node, and appends and syncs what it reads to a file before it replies: so much is due to the machine.',
  'Row 4: a client asks for every hold each 20 ms until it has expired, so that a delay includes up to as much. Clocks are those of one machine.',
  'What unused stays cost is measured by `npm run bench -- compare`.',
]

type Writes = {
  readonly node: At
  readonly pid: number
  readonly pacing: Stream['pacing']
  readonly stock: Stock
  /** Requests of a run. */
  readonly count: number
}

/** Bookings and decrements in turns. */
async function measurePair(
  bench: Bench,
  { rounds, seconds }: Plan,
  { node, pid, pacing, stock, count }: Writes,
  what: string,
): Promise<Pair> {
  const writes = (frames: Uint8Array[]): Stream => ({ name: 'writes', pacing, connections: CLIENTS, frames })
  const of = (frames: () => Uint8Array[]) =>
    retried(bench, async () => await load(node, pid, writes(frames()), seconds))
  const loads = {
    stays: () => of(() => stayFrames(stock, count)),
    decrements: () => of(() => decrementFrames(stock, count)),
  }
  // Compilers have done their work before anything is measured.
  await loads.stays()
  await loads.decrements()
  return await inTurns(rounds, loads, (round) => bench.say(`${what}: round ${round} of ${rounds}`))
}

async function onNode(bench: Bench, plan: Plan): Promise<Pick<StaysRuns, 'paced' | 'searches'>> {
  const { rounds, seconds } = plan
  const { file: seed, codecs } = await seedOf(bench, 'random')
  bench.say('starting a node alone')
  const node = await startNode({ dir: join(bench.dir, 'alone'), seed, codecs, config: { serving_threads: 1 } })
  let bare: Echo | undefined
  try {
    const stock = await openStock(node)
    const pacing = { kind: 'regular', requestsPerSecond: PACED_PER_SECOND } as const
    const count = PACED_PER_SECOND * (seconds + 1)
    const paced = await measurePair(bench, plan, { node, pid: node.program.pid, pacing, stock, count }, 'a node alone')
    const countBeside = BOOKINGS.perSecond * (seconds + WARMUP_MS / 1000)
    const journal = join(bench.dir, 'journal')
    bare = await startEcho({ replyBytes: [DECREMENT_REPLY_BYTES], threads: 1, journal })
    const { frames: updates } = await requestsOf(bench, 'updates')
    const p99 = (frames?: () => Uint8Array[], port = node.port, { perSecond, batch }: Beside = BOOKINGS) => {
      const pacing = { kind: 'regular', requestsPerSecond: perSecond } as const
      const writes = (frames: () => Uint8Array[]) => () =>
        ({ name: 'writes', pacing, connections: CLIENTS, batch, frames: frames(), port }) satisfies Stream
      return searchP99(bench, node, seconds, frames && writes(frames))
    }
    const loads = {
      alone: () => p99(),
      beside: () => p99(() => stayFrames(stock, countBeside)),
      decrements: () => p99(() => decrementFrames(stock, countBeside)),
      bare: () => p99(() => decrementFrames(stock, countBeside), bare?.port),
      updates: () => p99(() => updates, node.port, UPDATES),
      bareUpdates: () => p99(() => updates, bare?.port, UPDATES),
    }
    const searches = await inTurns(rounds, loads, (round) => bench.say(`searches: round ${round} of ${rounds}`))
    return { paced, searches }
  } finally {
    bare?.stop()
    const fault = await stopNode(node)
    if (fault) bench.notes.push(fault)
  }
}

async function onShard(bench: Bench, plan: Plan): Promise<Pick<StaysRuns, 'replicated' | 'holds'>> {
  const { seconds, holds } = plan
  const { file: seed, codecs } = await seedOf(bench, 'random')
  bench.say('starting a shard of 3')
  const config = { serving_threads: 1 }
  const shard = await startShard({ dir: join(bench.dir, 'shard'), seed, codecs, config, hasLinks: false })
  try {
    const leader = await becomesWhole(shard)
    const stock = await openStock(leader, ADMIN_TOKEN)
    const pid = leader.program?.pid ?? 0
    const pacing = { kind: 'closed', pipelining: 1 } as const
    const count = Math.ceil(PEAK_PER_SECOND_MAX * (seconds + WARMUP_MS / 1000))
    const replicated = await measurePair(bench, plan, { node: leader, pid, pacing, stock, count }, 'a shard')
    bench.say(`${holds} holds`)
    const returned = await measureHolds(leader, stock, holds, HOLDS_PER_SECOND)
    if ((await becomesWhole(shard)) !== leader) throw failure('another node led the shard in the end')
    return { replicated, holds: returned }
  } finally {
    await stopShard(shard)
  }
}

async function load(at: At, pid: number, stream: Stream, seconds: number): Promise<WriteRun> {
  const { host, port } = at
  const before = processSeconds(pid)
  const times = { warmupMs: WARMUP_MS, runMs: seconds * 1000 }
  const { streams, broken } = await runLoad({ host, port, processes: 1, ...times, streams: [stream] })
  const cpuSeconds = processSeconds(pid) - before
  const result = taken(streams[0], broken)
  if (result.sent > stream.frames.length) throw failure('the load is faster than its requests: some were sent twice')
  const { latency, perSecond, answered } = result
  return {
    p50Ms: percentile(latency, 0.5),
    p99Ms: percentile(latency, 0.99),
    perSecond,
    cpuMicros: (cpuSeconds * 1e6) / answered,
  }
}

/** The figures of all runs. */
export function rowsOf({ paced, replicated, searches, holds }: StaysRuns): RowReport[] {
  return [
    rowOf(1, 'booking of three nights beside a decrement, a node alone', latencies(paced)),
    rowOf(2, 'replicated bookings', throughput(replicated)),
    rowOf(3, 'searches beside writes', searchMeasures(searches)),
    rowOf(4, 'rooms of a hold return after its deadline', holdMeasures(holds)),
  ]
}

const middle = (runs: readonly WriteRun[], of: keyof WriteRun) => median(runs.map((run) => run[of]))

function processorTime({ stays, decrements }: Pair): Measure {
  const baseline = { name: 'decrement', value: middle(decrements, 'cpuMicros') }
  return { name: 'processor time', value: middle(stays, 'cpuMicros'), unit: 'µs', baseline }
}

function latencies(pair: Pair): Measure[] {
  const { stays, decrements } = pair
  const p50 = (runs: readonly WriteRun[]) => runs.map(({ p50Ms }) => p50Ms)
  const beside = (of: 'p50Ms' | 'p99Ms') => ({ name: 'decrement', value: middle(decrements, of) })
  return [
    judged({
      name: 'p50 over that of a decrement',
      unit: '×',
      target: { atMost: TARGETS.latency },
      ...ratios(p50(stays), p50(decrements)),
    }),
    { name: 'p50', value: middle(stays, 'p50Ms'), unit: 'ms', baseline: beside('p50Ms') },
    { name: 'p99', value: middle(stays, 'p99Ms'), unit: 'ms', baseline: beside('p99Ms') },
    processorTime(pair),
  ]
}

function throughput(pair: Pair): Measure[] {
  const { stays, decrements } = pair
  const rate = (runs: readonly WriteRun[]) => runs.map(({ perSecond }) => perSecond)
  const { value, why } = ratios(rate(stays), rate(decrements))
  const share = { name: 'share of replicated decrements', value: value * 100, unit: '%', why } as const
  return [
    judged({ ...share, target: { atLeast: TARGETS.replicated } }),
    {
      name: 'bookings a second',
      value: middle(stays, 'perSecond'),
      unit: '/s',
      baseline: { name: 'decrements', value: middle(decrements, 'perSecond') },
    },
    processorTime(pair),
  ]
}

function searchMeasures({ alone, beside, decrements, bare, updates, bareUpdates }: StaysRuns['searches']): Measure[] {
  const judge = (what: string, at: readonly number[], bareAt: readonly number[]): Measure =>
    judged({
      name: `p99 beside ${what}, over that beside a bare server`,
      unit: '×',
      target: { atMost: TARGETS.searches },
      ...ratios(at, bareAt),
    })
  const withoutWrites = { name: 'without writes', value: median(alone) }
  const p99 = (what: string, at: readonly number[]): Measure => ({
    name: `p99 beside ${what}`,
    value: median(at),
    unit: 'ms',
    baseline: withoutWrites,
    why: `over that without writes: ${ratios(at, alone).why}`,
  })
  return [
    judge('bookings', beside, bare),
    judge('updates', updates, bareUpdates),
    p99('bookings', beside),
    p99('decrements', decrements),
    p99('a bare server for bookings', bare),
    p99('updates', updates),
    p99('a bare server for updates', bareUpdates),
  ]
}

function holdMeasures({ delaysMs, early }: Returned): Measure[] {
  return [
    judged({ name: 'p99', value: quantile(delaysMs, 0.99), unit: 'ms', target: { atMost: TARGETS.returnedMs } }),
    judged({ name: 'before their deadline', value: early, unit: '', target: { atMost: 0 } }),
    { name: 'p50', value: quantile(delaysMs, 0.5), unit: 'ms' },
    { name: 'holds', value: delaysMs.length, unit: '' },
  ]
}
