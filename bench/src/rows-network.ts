/** Rows 4 to 8 and 15: what clients of a node see, beside what a bare echo shows under the same load. */
import {
  type Bench,
  isShared,
  type Measured,
  measureLoad,
  nodeOf,
  type RequestKind,
  replyBytesOf,
  requestsOf,
  type Server,
  sendersFor,
  serverOf,
  stopBenchNode,
} from './bench.ts'
import { type Echo, startEcho } from './echo.ts'
import { createHistogram, type Histogram, percentile } from './histogram.ts'
import type { Stream } from './load.ts'
import type { SearchClass } from './queries.ts'
import { echoShare, judged, judgedLatency, judgedPeak, type Measure, meets } from './verdict.ts'

/** Serving threads of the rows that say N = 2. */
const THREADS = 2
const CLASS_NAMES: Record<SearchClass, string> = { broad: '300 hits, 20 KB', selective: 'selective, 2 KB' }

/** Row 4: 20,000 searches a second on 1,000 connections. */
export async function regularRow(bench: Bench): Promise<Measure[]> {
  const stream = await searchStream(bench, 'broad', { pacing: REGULAR, connections: 1000 })
  const echo = await withEcho(bench, ['broad'], (server) => run(bench, server, [echoing(stream)]))
  const node = await run(bench, await serverWith(bench, THREADS), [stream])
  return latencies(bench, { name: '', node, echo, targets: { p50: 0.1, p95: 0.3, p99: 1 } })
}

const REGULAR = { kind: 'regular', requestsPerSecond: 20_000 } as const

/** Row 8: 2,000 at once on 100 connections, twice a second. */
export async function spikeRow(bench: Bench): Promise<Measure[]> {
  const measures: Measure[] = []
  for (const kind of ['selective', 'broad'] as const) {
    const stream = await searchStream(bench, kind, {
      pacing: { kind: 'spike', requests: 2000, periodMs: 500 },
      connections: 100,
      batch: 20,
    })
    const echo = await withEcho(bench, [kind], (server) => run(bench, server, [echoing(stream)]))
    const node = await run(bench, await serverWith(bench, THREADS), [stream])
    const targets = kind === 'selective' ? { p50: 8, p99: 15 } : { p50: 18, p99: 36 }
    measures.push(...latencies(bench, { name: `${CLASS_NAMES[kind]}: `, node, echo, targets }))
  }
  return measures
}

/** Row 5: 50 connections, one request under way on each, one serving thread. */
export async function echoShareRow(bench: Bench): Promise<Measure[]> {
  const measures: Measure[] = []
  for (const kind of ['selective', 'broad'] as const) {
    const stream = await searchStream(bench, kind, { pacing: { kind: 'closed', pipelining: 1 }, connections: 50 })
    const echo = await withEcho(bench, [kind], (server) => run(bench, server, [echoing(stream)], 1), 1)
    const node = await run(bench, await serverWith(bench, 1), [stream], 1)
    measures.push(...shareMeasures(kind, { node, echo }))
  }
  return measures
}

function shareMeasures(kind: SearchClass, { node, echo }: { node: Measured; echo: Measured }): Measure[] {
  const { share, by } = echoShare(closedLoop(node), closedLoop(echo))
  const measure = judged({
    name: `${CLASS_NAMES[kind]}: share of echo`,
    value: share * 100,
    unit: '%',
    target: { atLeast: kind === 'selective' ? 45 : 30 },
  })
  const why =
    by === 'requests'
      ? 'by requests a second'
      : `by processor time a request, ${node.cpuMicros.toFixed(1)} to ${echo.cpuMicros.toFixed(1)} µs: the generator was the limit`
  return [
    { ...measure, why },
    {
      name: `${CLASS_NAMES[kind]}: requests`,
      value: perSecond(node),
      unit: '/s',
      baseline: { name: 'echo', value: perSecond(echo) },
    },
  ]
}

/** Row 7: as many as go through two serving threads. */
export async function peakRow(bench: Bench): Promise<Measure[]> {
  const measures: Measure[] = []
  for (const kind of ['broad', 'selective'] as const) {
    const node = await peakOf(bench, kind, THREADS)
    const measure = {
      name: CLASS_NAMES[kind],
      value: perSecond(node),
      unit: '/s',
      target: { atLeast: kind === 'broad' ? 60_000 : 110_000 },
    } as const
    const { generatorCores, cpuMicros } = node
    const peak = { isShared: isShared(bench, THREADS), generatorCores, cpuMicros, threads: THREADS }
    measures.push(judgedPeak(measure, peak))
  }
  return measures
}

/** Row 6: the same with two threads over one. */
export async function scalingRow(bench: Bench): Promise<Measure[]> {
  const kinds = ['broad', 'selective'] as const
  // All of one node before the other one is started.
  const two = await peaksOf(bench, kinds, THREADS)
  const one = await peaksOf(bench, kinds, 1)
  return kinds.map((kind, i) => {
    const value = (two[i] ?? Number.NaN) / (one[i] ?? Number.NaN)
    const measure = { name: CLASS_NAMES[kind], value, unit: '×', target: { atLeast: 1.8 } } as const
    if (!isShared(bench, THREADS) || meets(value, measure.target)) return judged(measure)
    const why = `the target is for a generator with its own cores; here are ${bench.cores} in all`
    return { ...judged(measure), why }
  })
}

/** Requests a second of each class, one after the other. */
async function peaksOf(bench: Bench, kinds: readonly SearchClass[], threads: number): Promise<number[]> {
  const peaks: number[] = []
  for (const kind of kinds) peaks.push(perSecond(await peakOf(bench, kind, threads)))
  return peaks
}

/** Enough under way to keep every thread busy, in pieces of one write. */
const PEAK_CONNECTIONS = 64
const PEAK_PIPELINING = 8

async function peakOf(bench: Bench, kind: SearchClass, threads: number): Promise<Measured> {
  const key = `${kind} ${threads}`
  const known = bench.peaks.get(key)
  if (known) return known
  const stream = await searchStream(bench, kind, {
    pacing: { kind: 'closed', pipelining: PEAK_PIPELINING },
    connections: PEAK_CONNECTIONS,
  })
  const measured = await run(bench, await serverWith(bench, threads), [stream], threads)
  bench.peaks.set(key, measured)
  return measured
}

/** Most that a search may lose while updates are applied. */
const SLOWDOWN_MAX = 1.5
const UPDATES_PER_SECOND = 50_000

/** Row 15: row 4 while 50,000 updates a second are applied, synced and snapshotted. */
export async function mixedRow(bench: Bench): Promise<Measure[]> {
  const searches = await searchStream(bench, 'broad', { pacing: REGULAR, connections: 1000 })
  const updates = await updateStream(bench)
  const server = await serverWith(bench, THREADS)
  const alone = await run(bench, server, [searches])
  // Updates change the results of searches: from here on reply lengths are unknown.
  const mixed = await run(bench, server, [unchecked(searches), unchecked(updates)])
  await stopBenchNode(bench)
  // Both loads at once on the same threads, as the node has them.
  const echo = await withEcho(bench, ['broad', 'updates'], (both) =>
    run(bench, both, [echoing(searches), { ...echoing(updates), port: both.ports[1] ?? 0 }]),
  )
  return mixedMeasures(bench, { alone, mixed, echo })
}

/** A few feeds that each send a batch a millisecond, as channel managers do. */
async function updateStream(bench: Bench): Promise<Stream> {
  const requests = await requestsOf(bench, 'updates')
  const pacing = { kind: 'spike', requests: UPDATES_PER_SECOND / 1000, periodMs: 1 } as const
  return { name: 'updates', pacing, connections: 16, batch: UPDATES_PER_SECOND / 1000, ...requests }
}

function mixedMeasures(
  bench: Bench,
  { alone, mixed, echo }: { alone: Measured; mixed: Measured; echo: Measured },
): Measure[] {
  const before = percentile(latencyOf(alone), 0.99)
  const slow = judgedLatency(
    {
      name: 'searches p99',
      value: percentile(latencyOf(mixed), 0.99),
      unit: 'ms',
      target: { atMost: SLOWDOWN_MAX * before },
    },
    { echo: percentile(latencyOf(echo), 0.99), isShared: isShared(bench, THREADS) },
  )
  const applied = mixed.streams[1]
  return [
    { name: 'searches p99 without updates', value: before, unit: 'ms' },
    slow,
    judged({
      name: 'updates applied',
      value: applied?.perSecond ?? 0,
      unit: '/s',
      // Half a per cent: requests at the edges of the measured time.
      target: { atLeast: UPDATES_PER_SECOND * 0.995 },
    }),
    { name: 'updates p50', value: percentile(applied?.latency ?? createHistogram(), 0.5), unit: 'ms' },
    { name: 'updates p99', value: percentile(applied?.latency ?? createHistogram(), 0.99), unit: 'ms' },
  ]
}

async function searchStream(
  bench: Bench,
  kind: SearchClass,
  how: Pick<Stream, 'pacing' | 'connections' | 'batch'>,
): Promise<Stream> {
  return { name: 'searches', ...how, ...(await requestsOf(bench, kind)) }
}

/** The same load on an echo: it answers everything with one length. */
function echoing(stream: Stream): Stream {
  return unchecked(stream)
}

function unchecked({ replyBytes: _, ...stream }: Stream): Stream {
  return stream
}

async function serverWith(bench: Bench, threads: number): Promise<Server> {
  return serverOf(await nodeOf(bench, threads))
}

async function withEcho<T>(
  bench: Bench,
  kinds: readonly RequestKind[],
  use: (echo: Echo) => Promise<T>,
  threads = THREADS,
): Promise<T> {
  const replyBytes: number[] = []
  for (const kind of kinds) replyBytes.push(await replyBytesOf(bench, kind))
  const echo = await startEcho({ replyBytes, threads })
  try {
    return await use(echo)
  } finally {
    echo.stop()
  }
}

function run(bench: Bench, server: Server, streams: readonly Stream[], threads = THREADS): Promise<Measured> {
  const { warmupMs, runMs } = bench.size
  return measureLoad(server, { processes: sendersFor(bench, threads), warmupMs, runMs, streams })
}

function latencies(
  bench: Bench,
  { name, node, echo, targets }: { name: string; node: Measured; echo: Measured; targets: Record<string, number> },
): Measure[] {
  return Object.entries(targets).map(([at, atMost]) => {
    const share = Number(at.slice(1)) / 100
    return judgedLatency(
      { name: `${name}${at}`, value: percentile(latencyOf(node), share), unit: 'ms', target: { atMost } },
      { echo: percentile(latencyOf(echo), share), isShared: isShared(bench, THREADS) },
    )
  })
}

/** Latencies of the first stream, which is the searches. */
function latencyOf({ streams }: Measured): Histogram {
  return streams[0]?.latency ?? createHistogram()
}

function perSecond({ streams }: Measured): number {
  return streams[0]?.perSecond ?? 0
}

function closedLoop(measured: Measured): { perSecond: number; cpuMicros: number } {
  return { perSecond: perSecond(measured), cpuMicros: measured.cpuMicros }
}
