/**
 * State shared by the rows of the report: data sets, snapshots, a running node, requests. Each is created on first
 * use and kept until the end.
 */
import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { dayOf, formatDay } from '@vacancy/shared'
import { encodeRequest } from '@vacancy/shared/wire'
import { checkAnswers } from './check-answers.ts'
import type { Order } from './csv.ts'
import { createDataset, type Dataset, type DatasetSpec } from './dataset.ts'
import { failure } from './failure.ts'
import { type Load, type LoadResult, runLoad, type Stream } from './load.ts'
import { metric } from './metrics.ts'
import { lastJson, ROOT, runProgram } from './programs.ts'
import { createTables, type Search, type SearchClass, searches, type Tables, type Update, updates } from './queries.ts'
import { metricsOf, type RunningNode, startNode, stopNode } from './running-node.ts'
import { holdsSample } from './sample.ts'
import { NotMeasured } from './verdict.ts'

/** What a load needs of its requests: frames without a correlation id, and the length of each answer. */
type Requests = { frames: Uint8Array[]; replyBytes: number[] }

function searchRequests(searches: readonly Search[]): Requests {
  return {
    frames: searches.map(({ fields }) => encodeRequest({ command: 'SEARCHAVAIL', correlationId: 0, fields })),
    replyBytes: searches.map(({ fields, hits }) => searchReplyBytes(hits, fields.dates.length)),
  }
}

function updateRequests(updates: readonly Update[]): Requests {
  return {
    frames: updates.map(({ command, fields }) => encodeRequest({ command, correlationId: 0, fields })),
    replyBytes: updates.map(({ command }) => UPDATE_REPLY_BYTES[command]),
  }
}

/** Frame head, SUCCESS, field count (docs/design/protocol.md#bare-frame, docs/design/protocol.md#payload). */
const SUCCESS_BYTES = 9 + 8 + 2
const FIELD_HEAD_BYTES = 7
const PACKED_ID_BYTES = 16
const DAY_BYTES = 11

/** SETROOMAVL answers with the new availability, SETROOMPKG with nothing (docs/design/protocol.md#successes). */
const UPDATE_REPLY_BYTES = { SETROOMAVL: SUCCESS_BYTES + FIELD_HEAD_BYTES + 1, SETROOMPKG: SUCCESS_BYTES } as const

/** docs/design/protocol.md#searches: the number of days, then an id and a day vector for each property. */
function searchReplyBytes(hits: number, nights: number): number {
  const property = FIELD_HEAD_BYTES + PACKED_ID_BYTES + FIELD_HEAD_BYTES + 2 + nights * DAY_BYTES
  return SUCCESS_BYTES + FIELD_HEAD_BYTES + 2 + hits * property
}

export type BenchSize = {
  name: 'full' | 'quick'
  packages: number
  /** Packages of the file in no order: enough to be larger than every cache. */
  shuffledPackages: number
  warmupMs: number
  runMs: number
  /** Searches before memory is read (target 1). */
  memoryRunMs: number
}

export const SIZES: Record<BenchSize['name'], BenchSize> = {
  full: {
    name: 'full',
    packages: 60_000_000,
    shuffledPackages: 12_000_000,
    warmupMs: 5_000,
    runMs: 30_000,
    memoryRunMs: 120_000,
  },
  quick: {
    name: 'quick',
    packages: 6_000_000,
    shuffledPackages: 2_000_000,
    warmupMs: 1_000,
    runMs: 3_000,
    memoryRunMs: 8_000,
  },
}

/** random and constant: nights, grouped file; shuffled: random nights in no order. */
export type DataKind = 'random' | 'constant' | 'shuffled'
export type Data = { dir: string; dataset: Dataset; bytes: number }
export type Seed = { file: string; codecs: string; bytes: number; seconds: number; summary: Record<string, unknown> }

export type Bench = ReturnType<typeof createBench>

/** Named numbers, as a benchmark beside an engine module prints them. */
export type Figures = Record<string, number>

const DAYS = 60
const DIFFERENT_SEARCHES = 4_000
const DIFFERENT_UPDATES = 20_000
const CHECKED_SEARCHES = 60

export function createBench({ size, dir, say }: { size: BenchSize; dir: string; say: (text: string) => void }) {
  mkdirSync(dir, { recursive: true })
  return {
    size,
    dir,
    say,
    /** Cores there are. */
    cores: availableParallelism(),
    data: new Map<DataKind, Data>(),
    seeds: new Map<DataKind, Seed>(),
    tables: undefined as Tables | undefined,
    requests: new Map<string, Requests>(),
    /** Peaks by threads and class: two rows look at the same ones. */
    peaks: new Map<string, Measured>(),
    /** Output of the benchmarks next to the engine's modules, by path. */
    figures: new Map<string, Figures>(),
    node: undefined as { threads: number; running: RunningNode } | undefined,
    /** What went wrong beside the rows. */
    notes: [] as string[],
  }
}

/** Stops the node and removes all files, unless they are to be kept. */
export async function closeBench(bench: Bench, { keep }: { keep: boolean }): Promise<void> {
  await stopBenchNode(bench)
  if (!keep) rmSync(bench.dir, { recursive: true, force: true })
}

export async function dataOf(bench: Bench, kind: DataKind): Promise<Data> {
  const known = bench.data.get(kind)
  if (known) return known
  const { size } = bench
  const spec: DatasetSpec = {
    shape: 'uniform',
    packages: kind === 'shuffled' ? size.shuffledPackages : size.packages,
    days: DAYS,
    from: dayOf(Date.now()),
    seed: 1,
    segments: 0,
    nights: kind === 'constant' ? 'constant' : 'random',
  }
  const dir = join(bench.dir, kind)
  const order: Order = kind === 'shuffled' ? 'shuffled' : 'grouped'
  if (!holdsSample(dir, { spec, order })) {
    bench.say(`writing ${spec.packages} packages (${kind})`)
    await runProgram(['bench/src/cli.ts', 'sample', ...sampleArguments(spec, { dir, order })])
  }
  const data = { dir, dataset: createDataset(spec), bytes: statSync(join(dir, 'packages.csv')).size }
  bench.data.set(kind, data)
  return data
}

function sampleArguments(spec: DatasetSpec, { dir, order }: { dir: string; order: Order }): string[] {
  const { packages, days, seed, shape, nights } = spec
  const from = formatDay(spec.from)
  const values = { packages, days, from, seed, shape, nights, order, out: dir, progress: 'none' }
  return Object.entries(values).map(([flag, value]) => `--${flag}=${value}`)
}

/** The snapshot that build-snapshot makes of a data set, with the summary it prints. */
export async function seedOf(bench: Bench, kind: DataKind): Promise<Seed> {
  const known = bench.seeds.get(kind)
  if (known) return known
  const { dir } = await dataOf(bench, kind)
  const out = join(bench.dir, `${kind}-snapshot`)
  bench.say(`building the snapshot (${kind})`)
  const begun = performance.now()
  const printed = await runProgram(
    ['bin/vacancy.mjs', 'build-snapshot', '--shard-id', 'bench', '--input-path', dir].concat([
      '--output-path',
      out,
      '--overwrite',
      '--progress',
      'json',
    ]),
  )
  const file = join(out, 'seed.snapshot')
  const seed = {
    file,
    codecs: join(dir, 'codecs.yml'),
    bytes: statSync(file).size,
    seconds: (performance.now() - begun) / 1000,
    summary: lastJson(printed) as Record<string, unknown>,
  }
  bench.seeds.set(kind, seed)
  return seed
}

export async function tablesOf(bench: Bench): Promise<Tables> {
  bench.tables ??= createTables((await dataOf(bench, 'random')).dataset)
  return bench.tables
}

export type RequestKind = SearchClass | 'updates'

export async function requestsOf(bench: Bench, kind: RequestKind): Promise<Requests> {
  const known = bench.requests.get(kind)
  if (known) return known
  const tables = await tablesOf(bench)
  const requests =
    kind === 'updates'
      ? updateRequests(updates(tables, { count: DIFFERENT_UPDATES, seed: 3 }))
      : searchRequests(searches(tables, { kind, count: DIFFERENT_SEARCHES, seed: 2 }))
  bench.requests.set(kind, requests)
  return requests
}

/** Mean length of the replies to a kind of requests: what an echo has to send to be compared with it. */
export async function replyBytesOf(bench: Bench, kind: RequestKind): Promise<number> {
  const { replyBytes } = await requestsOf(bench, kind)
  return Math.round(replyBytes.reduce((sum, bytes) => sum + bytes, 0) / replyBytes.length)
}

/** The node over the random data set with this many serving threads (0: its default); its answers are checked before it is measured. */
export async function nodeOf(bench: Bench, threads: number): Promise<RunningNode> {
  if (bench.node?.threads === threads) return bench.node.running
  await stopBenchNode(bench)
  const seed = await seedOf(bench, 'random')
  bench.say(`starting a node with ${threads || 'the default number of'} serving threads`)
  const running = await startNode({
    dir: join(bench.dir, 'node'),
    seed: seed.file,
    codecs: seed.codecs,
    // All else is the contract's default: snapshots run, every write is synced.
    config: { serving_threads: threads, query_limit: 1000 },
  })
  bench.node = { threads, running }
  const tables = await tablesOf(bench)
  for (const kind of ['selective', 'broad'] as const) {
    await checkAnswers(running, tables, searches(tables, { kind, count: CHECKED_SEARCHES, seed: 11 }))
  }
  return running
}

/** Rows that check results need a node with unmodified data. */
export async function stopBenchNode(bench: Bench): Promise<void> {
  const { node } = bench
  bench.node = undefined
  if (!node) return
  const fault = await stopNode(node.running)
  if (!fault) return
  bench.notes.push(fault)
  bench.say(fault)
}

/** Runs a benchmark next to an engine module. With --json its last line is one object of named numbers. */
export async function figuresOf(bench: Bench, path: string, args: readonly string[] = []): Promise<Figures> {
  const key = [path, ...args].join(' ')
  const known = bench.figures.get(key)
  if (known) return known
  if (!existsSync(join(ROOT, path))) throw new NotMeasured(`${path} does not exist`)
  bench.say(`running ${path}`)
  const full = bench.size.name === 'full' ? ['--full'] : []
  const figures = lastJson(await runProgram([path, '--json', ...full, ...args])) as Figures
  bench.figures.set(key, figures)
  return figures
}

export function figure(figures: Figures, name: string): number {
  const value = figures[name]
  if (typeof value !== 'number') throw new NotMeasured(`its benchmark prints no "${name}"`)
  return value
}

/** Anything that takes a load and knows the processor time it used. */
export type Server = { host: string; port: number; cpuSeconds(): Promise<number> }

export function serverOf(node: RunningNode): Server {
  const cpuSeconds = async () => {
    const seconds = metric(await metricsOf(node), 'process_cpu_seconds_total')
    if (seconds === undefined) throw new NotMeasured('the node serves no process_cpu_seconds_total')
    return seconds
  }
  return { host: node.host, port: node.port, cpuSeconds }
}

export type Measured = LoadResult & {
  /** Processor time of the server, a request. */
  cpuMicros: number
}

/** A void run is not evidence about the server: it is repeated. */
const TRIES = 3

/**
 * Runs a load. Throws when the server failed it, and retries when the generator did.
 *
 * @param takesVoid for figures that are only compared with each other: the last run counts, with the reason why it is
 * void
 */
export async function measureLoad(
  server: Server,
  load: Pick<Load, 'processes' | 'warmupMs' | 'runMs'> & { streams: readonly Stream[] },
  takesVoid = false,
): Promise<Measured> {
  let reason = ''
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const cpuBefore = await server.cpuSeconds()
    const result = await runLoad({ ...load, host: server.host, port: server.port })
    const cpuSeconds = (await server.cpuSeconds()) - cpuBefore
    const sent = result.streams.reduce((sum, stream) => sum + stream.sent - stream.refused, 0)
    refuseWrongAnswers(result)
    const isTaken = result.void === '' || (takesVoid && attempt === TRIES)
    if (isTaken) return { ...result, cpuMicros: (cpuSeconds * 1e6) / sent }
    reason = result.void
  }
  throw new NotMeasured(`${TRIES} runs were void: ${reason}`)
}

function refuseWrongAnswers({ streams, broken }: LoadResult): void {
  if (broken) throw failure(broken)
  for (const { name, sent, answered, errors, bytesReceived, bytesExpected } of streams) {
    const [text, count] = Object.entries(errors)[0] ?? []
    if (text !== undefined) throw failure(`${count} of ${sent} ${name} were answered with ${text}`)
    if (answered < sent) throw failure(`${sent - answered} of ${sent} ${name} got no answer`)
    if (bytesExpected > 0 && bytesReceived !== bytesExpected) {
      throw failure(`${name} were answered with ${bytesReceived} bytes, expected ${bytesExpected}`)
    }
  }
}

/**
 * Sending processes beside a node with this many serving threads: the cores it leaves, at least one. More than the
 * cores can carry would only push each other aside.
 */
export function sendersFor(bench: Bench, threads: number): number {
  return Math.max(1, Math.min(4, bench.cores - threads))
}

/** Whether generator and node compete for the cores. */
export function isShared(bench: Bench, threads: number): boolean {
  return bench.cores < threads + sendersFor(bench, threads)
}
