/**
 * `npm run bench -- replicated`: what it costs to have every write on a majority of three nodes, beside a node that is alone,
 * under the same load in the same run; and how far followers are behind meanwhile.
 */

import { join } from 'node:path'
import { EXIT, VacancyError } from '@vacancy/shared'
import { defineCommand, whole } from '@vacancy/shared/node'
import { type Bench, requestsOf, SIZES, seedOf } from './bench.ts'
import { failure } from './failure.ts'
import type { RowReport } from './format.ts'
import { percentile } from './histogram.ts'
import { type LoadResult, runLoad, type Stream } from './load.ts'
import { metric } from './metrics.ts'
import { median, quantile } from './pauses.ts'
import { processSeconds } from './process-time.ts'
import { dirFlag, RECORD_FLAGS, recordSection, type SectionHead } from './record-section.ts'
import { metricsOf, type RunningNode, startNode, stopNode } from './running-node.ts'
import { becomesWhole, type Member, type RunningShard, startShard, stopShard } from './running-shard.ts'
import { judged, type Measure, type Target, worstOf } from './verdict.ts'

const PACKAGES = 500_000
/** Few feeds that each send some writes a millisecond, as channel managers do. */
const CONNECTIONS = 16
const WARMUP_MS = 1_000
const WARM_SECONDS = 4
const STALENESS = 'vacancy_read_staleness_seconds'
/** Status crosses threads four times a second: more looks would see the same figure again. */
const LOOK_MS = 240
/** A shard has as much of the machine as a node alone only where each of its nodes has two cores (serving and log). */
const CORES_PER_NODE = 2
const NODES = 3
const CONFIG = { serving_threads: 1 }

/** One run of the load on a node alone or on a shard; processor time in microseconds a write. */
export type Run = {
  readonly leader: number
  /** Of each node that does not lead; none of a node alone. */
  readonly followers: readonly number[]
  readonly p50Ms: number
  readonly p99Ms: number
  readonly perSecond: number
}

export type Runs = { alone: Run[]; shard: Run[]; alonePeak: Run[]; shardPeak: Run[]; stalenessSeconds: number[] }

export const replicatedCommand = defineCommand({
  name: 'bench replicated',
  component: 'replicated',
  summary: 'Writes to a node alone and to a shard of three in turn: processor time a write, throughput, staleness.',
  flags: {
    runs: { ...whole(5, 1, 100), summary: 'Runs of each, in turn.' },
    seconds: { ...whole(10, 1, 3_600, 'seconds'), summary: 'Length of a run.' },
    rate: { ...whole(10_000, 1_000, 200_000), summary: 'Writes a second.' },
    ...RECORD_FLAGS,
    root: { type: 'text', value: 'DIR', summary: 'Another copy of the repository to measure, built.' },
    dir: dirFlag('replicated'),
  },
  run: async ({ flags }) => {
    if (flags.root !== undefined && flags.write)
      throw new VacancyError('usage_error', { reason: '--write records this copy: leave out --root' })
    await recordSection(flags, { ...SIZES.quick, packages: PACKAGES }, headOf(flags), async (bench) => {
      const runs = await runInTurn(bench, flags)
      return { rows: rowsOf(runs, bench.cores), runs }
    })
    return EXIT.ok
  },
})

type Plan = { runs: number; seconds: number; rate: number; root: string | undefined }

const headOf = ({ runs, seconds, rate }: Plan): SectionHead => ({
  name: 'replicated',
  title: 'Replicated writes',
  command: `npm run bench -- replicated --runs ${runs} --seconds ${seconds} --rate ${rate}`,
  scope: `${runs} runs of ${seconds} s each on a node alone and on a shard of 3 nodes, ${rate.toLocaleString('en')} writes/s`,
  how: HOW,
})

const HOW = [
  `Both hold the same ${PACKAGES.toLocaleString('en')} packages with one serving thread a node and all other settings at their defaults. The nodes of the shard use mutual TLS. The load is on one of the two at a time, in turn.`,
  'Processor time is that of the whole process, all threads, user and kernel, from /proc. It includes ticks, heartbeats and metrics. Values are medians of the runs.',
  'Peak: 16 connections, 64 writes in flight on each, as fast as replies arrive. Writes that were refused with 429 are not counted.',
  `Staleness: ${STALENESS} of the followers, sampled about four times a second under the load.`,
]

async function runInTurn(bench: Bench, { runs: count, seconds, rate, root }: Plan): Promise<Runs> {
  const { file: seed, codecs } = await seedOf(bench, 'random')
  const steady = await writes(bench, { kind: 'spike', requests: rate / 1000, periodMs: 1 }, Math.ceil(rate / 1000))
  const peak = { ...(await writes(bench, { kind: 'closed', pipelining: 64 }, 64)), takesRefusals: true }
  const runs: Runs = { alone: [], shard: [], alonePeak: [], shardPeak: [], stalenessSeconds: [] }
  bench.say('starting a node alone and a shard of 3')
  const node = await startNode({ dir: join(bench.dir, 'alone'), seed, codecs, config: CONFIG, root })
  const shard = await startShard({ dir: join(bench.dir, 'shard'), seed, codecs, config: CONFIG, hasLinks: false, root })
  try {
    // Compilers of both have done their work before anything is measured.
    await loadNode(node, peak, WARM_SECONDS)
    await loadShard(bench, shard, peak, WARM_SECONDS)
    for (let run = 1; run <= count; run++) {
      runs.alone.push(await loadNode(node, steady, seconds))
      const watch = watchStaleness(shard, runs.stalenessSeconds)
      runs.shard.push(await loadShard(bench, shard, steady, seconds).finally(watch))
      runs.alonePeak.push(await loadNode(node, peak, seconds / 2))
      runs.shardPeak.push(await loadShard(bench, shard, peak, seconds / 2))
      const [alone, led] = [runs.alone.at(-1)?.leader ?? Number.NaN, runs.shard.at(-1)?.leader ?? Number.NaN]
      bench.say(`run ${run} of ${count}: ${alone.toFixed(1)} µs a write alone, ${led.toFixed(1)} on the leader`)
    }
  } finally {
    await stopShard(shard)
    const fault = await stopNode(node)
    if (fault) bench.notes.push(fault)
  }
  return runs
}

async function writes(bench: Bench, pacing: Stream['pacing'], batch: number): Promise<Stream> {
  const { frames } = await requestsOf(bench, 'updates')
  return { name: 'writes', pacing, connections: CONNECTIONS, batch, frames }
}

async function loadNode(node: RunningNode, stream: Stream, seconds: number): Promise<Run> {
  return await loadOf({ host: node.host, port: node.port }, [node.program.pid], stream, seconds)
}

/** A run with a leader change is not valid: it is repeated, and reported. */
const TRIES = 3

async function loadShard(bench: Bench, shard: RunningShard, stream: Stream, seconds: number): Promise<Run> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await loadLeader(shard, stream, seconds)
    } catch (error) {
      if (attempt === TRIES) throw error
      bench.notes.push(`A run on the shard was repeated: ${(error as Error).message}`)
    }
  }
}

async function loadLeader(shard: RunningShard, stream: Stream, seconds: number): Promise<Run> {
  const leader = await becomesWhole(shard)
  const others = shard.members.filter((member) => member !== leader)
  const pids = [leader, ...others].map(({ program }) => program?.pid ?? 0)
  const run = await loadOf(leader, pids, stream, seconds)
  if ((await becomesWhole(shard)) !== leader) throw failure('another node led the shard in the end')
  return run
}

/** @param pids of the processes whose time is taken, that of the node under the load first */
async function loadOf(
  { host, port }: Pick<Member, 'host' | 'port'>,
  pids: readonly number[],
  stream: Stream,
  seconds: number,
): Promise<Run> {
  const before = pids.map(processSeconds)
  const result = await runLoad({
    host,
    port,
    processes: 1,
    warmupMs: WARMUP_MS,
    runMs: seconds * 1000,
    streams: [stream],
  })
  const after = pids.map(processSeconds)
  const { answered, latency, perSecond } = answeredOf(result)
  const micros = after.map((value, i) => ((value - (before[i] ?? 0)) * 1e6) / answered)
  return {
    leader: micros[0] ?? Number.NaN,
    followers: micros.slice(1),
    p50Ms: percentile(latency, 0.5),
    p99Ms: percentile(latency, 0.99),
    perSecond,
  }
}

/** The only stream of the load. Its writes were all answered, or it throws; a late generator does not change the cost of a write. */
function answeredOf({ streams, broken }: LoadResult): LoadResult['streams'][number] {
  const [stream] = streams
  const [error] = Object.entries(stream?.errors ?? {})
  if (broken) throw failure(broken)
  if (!stream || stream.answered < stream.sent) throw failure('not all writes were answered')
  if (error) throw failure(`${error[1]} of ${stream.sent} writes were answered with ${error[0]}`)
  return stream
}

/** @returns ends it */
function watchStaleness({ members }: RunningShard, seconds: number[]): () => void {
  const timer = setInterval(async () => {
    for (const member of members) {
      try {
        const samples = await metricsOf(member)
        const isFollower = metric(samples, 'vacancy_raft_role', { role: 'follower' }) === 1
        const value = metric(samples, STALENESS)
        if (isFollower && value !== undefined) seconds.push(value)
      } catch {
        // The load reports problems of a node; a failed poll alone is not one.
      }
    }
  }, LOOK_MS)
  return () => clearInterval(timer)
}

/** The figures of all runs. */
export function rowsOf(runs: Runs, cores: number): RowReport[] {
  const alone = median(runs.alone.map(({ leader }) => leader))
  const share = (name: string, micros: number, atMost: number): Measure =>
    judged({ name, value: micros / alone, unit: '×', target: { atMost } })
  const leader = median(runs.shard.map((run) => run.leader))
  // The busier of the two in each run.
  const follower = median(runs.shard.map(({ followers }) => Math.max(...followers)))
  const cost: Measure[] = [
    share('leader over a node alone', leader, 1.7),
    share('follower over a node alone', follower, 1),
    { name: 'a node alone', value: alone, unit: 'µs', ...spreadOf(runs.alone.map((run) => run.leader)) },
    { name: 'leader', value: leader, unit: 'µs', ...spreadOf(runs.shard.map((run) => run.leader)) },
    { name: 'follower', value: follower, unit: 'µs' },
  ]
  return [
    { id: 1, what: 'processor time a write', verdict: worstOf(cost), measures: cost },
    rowOf(2, 'writes a second at the peak', throughput(runs, cores)),
    rowOf(3, 'staleness of followers', staleness(runs.stalenessSeconds)),
    rowOf(4, 'latency at the steady rate', [
      ...latencies('a node alone', runs.alone),
      ...latencies('shard', runs.shard),
    ]),
  ]
}

function rowOf(id: number, what: string, measures: Measure[]): RowReport {
  return { id, what, verdict: worstOf(measures), measures }
}

const spreadOf = (values: readonly number[]) => ({
  why: `from ${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)} µs`,
})

function throughput({ alonePeak, shardPeak }: Runs, cores: number): Measure[] {
  const [alone, shard] = [alonePeak, shardPeak].map((some) => median(some.map(({ perSecond }) => perSecond)))
  const value = (100 * (shard ?? Number.NaN)) / (alone ?? Number.NaN)
  const target: Target = { atLeast: 60 }
  const measure = { name: 'shard over a node alone', value, unit: '%', target } as const
  const needed = CORES_PER_NODE * NODES
  const share: Measure =
    cores >= needed
      ? judged(measure)
      : {
          ...judged(measure),
          why: `three nodes share ${cores} cores here with each other and the generator; the target is for ${CORES_PER_NODE} of its own for each`,
        }
  return [
    share,
    { name: 'a node alone', value: alone ?? Number.NaN, unit: '/s' },
    { name: 'shard', value: shard ?? Number.NaN, unit: '/s' },
  ]
}

function staleness(seconds: readonly number[]): Measure[] {
  return [
    judged({ name: 'p50', value: quantile(seconds, 0.5), unit: 's', target: { atMost: 0.4 } }),
    judged({ name: 'p99', value: quantile(seconds, 0.99), unit: 's', target: { atMost: 0.6 } }),
    { name: 'most', value: quantile(seconds, 1), unit: 's' },
    { name: 'samples', value: seconds.length, unit: '' },
  ]
}

function latencies(name: string, runs: readonly Run[]): Measure[] {
  return [
    { name: `${name}, p50`, value: median(runs.map(({ p50Ms }) => p50Ms)), unit: 'ms' },
    { name: `${name}, p99`, value: median(runs.map(({ p99Ms }) => p99Ms)), unit: 'ms' },
  ]
}
