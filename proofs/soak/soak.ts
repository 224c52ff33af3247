/** `npm run proofs -- soak`: a mixed load for a while on a real node; memory must stay flat, no thread stall, nothing fail. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineCommand } from '@vacancy/shared/node'
import { type Bench, closeBench, createBench, nodeOf, requestsOf, SIZES, sendersFor } from '../../bench/src/bench.ts'
import { percentile } from '../../bench/src/histogram.ts'
import { type LoadResult, runLoad, type Stream } from '../../bench/src/load.ts'
import { ROOT } from '../../bench/src/programs.ts'
import { metricsOf, type RunningNode } from '../../bench/src/running-node.ts'
import { type Check, type SoakLoad, type SoakSample, soakSample, soakVerdict, textOf } from './soak-verdict.ts'

/** 0: as many as the node takes by itself. */
const DEFAULT_THREADS = 0
const SAMPLE_MS = 5_000
const WARMUP_MS = 2_000

export const soakCommand = defineCommand({
  name: 'proofs soak',
  component: 'soak',
  summary:
    'Puts a mixed load on a node and watches memory, event loops and errors. Fails when one of them exceeds its limit.',
  flags: {
    minutes: { type: 'integer', min: 1, max: 10_080, default: 20, summary: 'How long the load lasts.' },
    packages: { type: 'integer', min: 1_000, max: 500_000_000, default: 6_000_000, summary: 'Size of the data set.' },
    dir: { type: 'text', default: join(ROOT, '.vacancy/soak'), value: 'DIR', summary: 'Folder for the data.' },
    json: { type: 'text', value: 'FILE', summary: 'Writes samples and verdicts as JSON.' },
  },
  run: async ({ flags }) => {
    const say = (text: string) => process.stderr.write(`${text}\n`)
    const size = { ...SIZES.quick, packages: flags.packages, runMs: flags.minutes * 60_000 }
    const bench = createBench({ size, dir: flags.dir, say })
    try {
      const { checks, samples } = await soak(bench)
      if (flags.json) writeFileSync(flags.json, `${JSON.stringify({ checks, samples }, null, 2)}\n`)
      return checks.every(({ passed }) => passed) ? 0 : 1
    } finally {
      await closeBench(bench, { keep: false })
    }
  },
})

async function soak(bench: Bench): Promise<{ checks: Check[]; samples: SoakSample[] }> {
  const node = await nodeOf(bench, DEFAULT_THREADS)
  const streams = await mixedStreams(bench)
  bench.say(`${bench.size.runMs / 60_000} minutes of searches and updates begin`)
  const samples: SoakSample[] = []
  const stopSampling = startSampling(node, samples, bench.say)
  const load = { host: node.host, port: node.port, processes: sendersFor(bench, 1) }
  const result = await runLoad({ ...load, warmupMs: WARMUP_MS, runMs: bench.size.runMs, streams }).finally(stopSampling)
  const checks = soakVerdict(samples, sumOf(result))
  print(result, checks)
  return { checks, samples }
}

/** About a tenth of what two cores carry: a soak looks for what adds up, not for what is fast. */
async function mixedStreams(bench: Bench): Promise<Stream[]> {
  const broad = await requestsOf(bench, 'broad')
  const selective = await requestsOf(bench, 'selective')
  const updates = await requestsOf(bench, 'updates')
  const regular = (requestsPerSecond: number) => ({ kind: 'regular', requestsPerSecond }) as const
  return [
    { name: 'broad searches', pacing: regular(1000), connections: 100, frames: broad.frames },
    { name: 'selective searches', pacing: regular(2000), connections: 200, frames: selective.frames },
    { name: 'updates', pacing: { kind: 'spike', requests: 20, periodMs: 10 }, connections: 4, batch: 20, ...updates },
  ]
}

/** Looks at the node every few seconds; the function it answers with ends that after a last look. */
function startSampling(node: RunningNode, samples: SoakSample[], say: (text: string) => void): () => Promise<void> {
  const begun = performance.now()
  const look = async () => {
    try {
      samples.push(soakSample(await metricsOf(node), (performance.now() - begun) / 1000))
    } catch (error) {
      // The load reports problems of the node; a missed sample alone is not a verdict.
      say(`no sample: ${(error as Error).message}`)
    }
  }
  const timer = setInterval(look, SAMPLE_MS)
  const first = look()
  return async () => {
    clearInterval(timer)
    await first
    await look()
  }
}

function sumOf({ streams, broken }: LoadResult): SoakLoad {
  const sum: SoakLoad = { sent: 0, answered: 0, errors: {}, broken }
  for (const { sent, answered, errors } of streams) {
    sum.sent += sent
    sum.answered += answered
    for (const [text, count] of Object.entries(errors)) sum.errors[text] = (sum.errors[text] ?? 0) + count
  }
  return sum
}

function print({ streams, void: reason }: LoadResult, checks: readonly Check[]): void {
  for (const { name, answered, latency } of streams) {
    const [p50, p99, p999] = [0.5, 0.99, 0.999].map((share) => percentile(latency, share).toFixed(2))
    process.stdout.write(`${name}: ${answered} answered, p50 ${p50}, p99 ${p99}, p99.9 ${p999} ms\n`)
  }
  if (reason) process.stdout.write(`These latencies do not count: ${reason}.\n`)
  for (const check of checks) process.stdout.write(textOf(check))
}
