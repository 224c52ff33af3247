/**
 * `npm run bench -- writes`: how long one durable write takes beside what the machine needs for it at least, a sync of
 * the log and a round trip, alone and in a shard of three; and how many writes share a sync.
 */

import { join } from 'node:path'
import { EXIT } from '@vacancy/shared'
import { defineCommand, whole } from '@vacancy/shared/node'
import { syncLatency } from './baselines.ts'
import { type Bench, SIZES, seedOf } from './bench.ts'
import { startEcho } from './echo.ts'
import { failure } from './failure.ts'
import { type RowReport, rowOf } from './format.ts'
import { percentile } from './histogram.ts'
import { inTurns } from './in-turns.ts'
import { runLoad } from './load.ts'
import { median, ratios } from './pauses.ts'
import { dirFlag, RECORD_FLAGS, recordSection, type SectionHead } from './record-section.ts'
import { startNode, stopNode } from './running-node.ts'
import { ADMIN_TOKEN, becomesWhole, startShard, stopShard } from './running-shard.ts'
import { type At, decrementFrames, openStock } from './stays/stock.ts'
import { judged, type Measure } from './verdict.ts'

const PACKAGES = 500_000
const WARMUP_MS = 1_000
/** Of a node's reply to a decrement, head included. */
const REPLY_BYTES = 27
/** A group of the log with one decrement. */
const GROUP_BYTES = 200
const SYNCS = 2_000
const IN_FLIGHT = [1, 8, 64, 512] as const
const CONNECTIONS_MAX = 64
const FRAMES = 30_000
const TARGETS = { overFloor: 1.5, overAlone: 2 } as const

export const writesCommand = defineCommand({
  name: 'bench writes',
  component: 'writes',
  summary: 'Measures one durable write beside a sync and a bare round trip, alone and in a shard, and many at once.',
  flags: {
    rounds: { ...whole(5, 1, 100), summary: 'Runs of each, in turn; figures are medians.' },
    seconds: { ...whole(3, 1, 60, 'seconds'), summary: 'Length of a run.' },
    ...RECORD_FLAGS,
    dir: dirFlag('writes'),
  },
  run: async ({ flags }) => {
    await recordSection(flags, { ...SIZES.quick, packages: PACKAGES }, headOf(flags), async (bench) => {
      const runs = await measure(bench, flags)
      return { rows: rowsOf(runs), runs }
    })
    return EXIT.ok
  },
})

type Plan = { readonly rounds: number; readonly seconds: number }
type Rate = { readonly perSecond: number; readonly p50Ms: number }

/** By round; milliseconds at the median. */
type WriteRuns = {
  readonly syncMs: number[]
  readonly echoMs: number[]
  readonly aloneMs: number[]
  readonly shardMs: number[]
  /** By writes in flight. */
  readonly node: { readonly [inFlight: number]: Rate[] }
  readonly bare: { readonly [inFlight: number]: Rate[] }
}

const headOf = ({ rounds, seconds }: Plan): SectionHead => ({
  name: 'writes',
  title: 'Durable writes',
  command: `npm run bench -- writes --rounds ${rounds} --seconds ${seconds}`,
  scope: `${rounds} runs of ${seconds} s each in turn, decrements of one night`,
  how: HOW,
})

const HOW = [
  `One write at a time is one connection that sends its next request after the last reply. The floor is the sum of two medians: a write of ${GROUP_BYTES} bytes with its sync into a file of full length, one after the other, and a round trip to a bare echo with replies as long.`,
  'Nodes and shard have their default settings and one serving thread each; the shard has mutual TLS. Clients are the bare load generator, on the same cores.',
  'The bare server has one thread, and appends and syncs what it has read before it replies.',
]

async function measure(bench: Bench, plan: Plan): Promise<WriteRuns> {
  const { file: seed, codecs } = await seedOf(bench, 'random')
  const config = { serving_threads: 1 }
  const { rounds } = plan
  const echo = await startEcho({ replyBytes: [REPLY_BYTES], threads: 1 })
  const bare = await startEcho({ replyBytes: [REPLY_BYTES], threads: 1, journal: join(bench.dir, 'journal') })
  bench.say('starting a node alone and a shard of 3')
  const node = await startNode({ dir: join(bench.dir, 'alone'), seed, codecs, config })
  const shard = await startShard({ dir: join(bench.dir, 'shard'), seed, codecs, config, hasLinks: false })
  try {
    const leader = await becomesWhole(shard)
    const stock = await openStock(node)
    await openStock(leader, ADMIN_TOKEN)
    const frames = decrementFrames(stock, FRAMES)
    const rate = (at: At, inFlight: number) => () => load(at, frames, inFlight, plan.seconds)
    const p50 = (at: At) => async () => (await rate(at, 1)()).p50Ms
    // Compilers have done their work before anything is measured.
    for (const at of [node, leader]) await rate(at, CONNECTIONS_MAX)()
    const sync = async () => percentile(syncLatency({ dir: bench.dir, bytes: GROUP_BYTES, count: SYNCS }), 0.5)
    const one = { syncMs: sync, echoMs: p50(echo), aloneMs: p50(node), shardMs: p50(leader) }
    const ones = await inTurns(rounds, one, (round) => bench.say(`one at a time: round ${round} of ${rounds}`))
    const many = (at: At) => Object.fromEntries(IN_FLIGHT.map((inFlight) => [inFlight, rate(at, inFlight)]))
    const onNode = await inTurns(rounds, many(node), (round) => bench.say(`a node: round ${round} of ${rounds}`))
    const onBare = await inTurns(rounds, many(bare), (round) => bench.say(`bare: round ${round} of ${rounds}`))
    return { ...ones, node: onNode, bare: onBare }
  } finally {
    echo.stop()
    bare.stop()
    await stopShard(shard)
    const fault = await stopNode(node)
    if (fault) bench.notes.push(fault)
  }
}

async function load({ host, port }: At, frames: readonly Uint8Array[], inFlight: number, seconds: number) {
  const connections = Math.min(inFlight, CONNECTIONS_MAX)
  const pacing = { kind: 'closed', pipelining: inFlight / connections } as const
  const times = { warmupMs: WARMUP_MS, runMs: seconds * 1000 }
  const streams = [{ name: 'writes', pacing, connections, frames }]
  const { streams: results, broken } = await runLoad({ host, port, processes: 1, ...times, streams })
  const [result] = results
  const [error] = Object.entries(result?.errors ?? {})
  if (broken || error || !result) throw failure(broken || `writes were answered with ${error?.[0]}`)
  return { perSecond: result.perSecond, p50Ms: percentile(result.latency, 0.5) }
}

/** The figures of all runs. */
function rowsOf(runs: WriteRuns): RowReport[] {
  const { syncMs, echoMs, aloneMs, shardMs } = runs
  const floorMs = syncMs.map((ms, round) => ms + (echoMs[round] ?? Number.NaN))
  return [
    rowOf(1, 'one durable write at a time, a node alone', [
      over('p50 over sync and round trip', aloneMs, floorMs, TARGETS.overFloor),
      ms('p50', aloneMs, { name: 'sync and round trip', value: median(floorMs) }),
      ms('sync', syncMs),
      ms('round trip of a bare echo', echoMs),
    ]),
    rowOf(2, 'one durable write at a time, a shard of three', [
      over('p50 over that of a node alone', shardMs, aloneMs, TARGETS.overAlone),
      ms('p50', shardMs, { name: 'a node alone', value: median(aloneMs) }),
    ]),
    rowOf(
      3,
      'durable writes at once, a node alone',
      IN_FLIGHT.flatMap((inFlight) => rates(runs, inFlight)),
    ),
  ]
}

function ms(name: string, values: readonly number[], baseline?: Measure['baseline']): Measure {
  return { name, value: median(values), unit: 'ms', ...(baseline && { baseline }) }
}

function over(name: string, of: readonly number[], to: readonly number[], atMost: number): Measure {
  return judged({ name, ...ratios(of, to), unit: '×', target: { atMost } })
}

function rates({ node, bare }: WriteRuns, inFlight: number): Measure[] {
  const middle = (rounds: readonly Rate[] = [], of: keyof Rate) => median(rounds.map((round) => round[of]))
  const measure = (of: keyof Rate, name: string, unit: '/s' | 'ms'): Measure => ({
    name: `${inFlight} in flight: ${name}`,
    value: middle(node[inFlight], of),
    unit,
    baseline: { name: 'bare server', value: middle(bare[inFlight], of) },
  })
  return [measure('perSecond', 'writes', '/s'), measure('p50Ms', 'p50', 'ms')]
}
