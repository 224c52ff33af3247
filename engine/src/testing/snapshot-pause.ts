/**
 * The cost of a snapshot for concurrent writes (docs/design/storage.md#snapshot-format, target 13).
 *
 * A store in memory, the snapshot thread of a real node, and this thread, which applies availability writes spread over
 * all pages at a constant rate. Each write is timed, with and without a concurrent snapshot in alternation, so that
 * noise of the machine affects both. Results are medians of the rounds, so that one burst of noise does not decide.
 *
 * Like a node, the writer delays writes and hurries the snapshot when few spare pages are left
 * (docs/design/store.md#copy-on-write). That happens when the snapshot thread gets little processor time. Delays are
 * reported separately, not as the time of a write.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { assert } from '@vacancy/shared'
import { seeded } from '@vacancy/testkit/random'
import type { BulkOptions, FromBulk, ToBulk } from '../snapshot/bulk-worker.ts'
import { CAPTURE_SCRATCH_BYTES } from '../snapshot/capture.ts'
import type { Prepared } from '../snapshot/restore.ts'
import { WORDS_SCRATCH_BYTES } from '../snapshot/words.ts'
import { applyCommand } from '../store/apply.ts'
import { type ApplyContext, createApplyContext } from '../store/apply-context.ts'
import {
  beginCommand,
  type CommandWriter,
  createCommandWriter,
  KIND,
  stampCommand,
  writeBytes,
  writeName,
  writeU8,
  writeU32,
} from '../store/command.ts'
import { beginCopyOnWrite, endCopyOnWrite, hurrySnapshot, lacksSparePages } from '../store/cow.ts'
import { NAMES, nameBytes } from '../store/dictionary.ts'
import { TABLE } from '../store/layout.ts'
import { createStore, prepareSnapshots, publish, type Store } from '../store/store.ts'
import { field } from '../store/table-fields.ts'
import { loadKernels } from '../threads/kernels.ts'
import { fillSynthetic, SYNTHETIC_CODECS } from './synthetic.ts'

const DAY_MS = 86_400_000
const SEGMENTS = 10
const ROOM_TYPES = 4
const NIGHTS = 366
/** The snapshot limits of a node. */
const BYTES_PER_SECOND = 50e6
const WRITES_PER_SECOND = 50_000
const MS_A_WRITE = 1000 / WRITES_PER_SECOND
/** Writes between two publications, like a batch of the log. */
const BATCH = 64
/** Distinct writes, used in rotation. */
const COMMANDS = 1 << 18
const WARM_UP_WRITES = 100_000
/** After them the spare pages for this load have been touched, and code is compiled. */
const WARM_UP_SNAPSHOTS = 3
/** Each round has some ten thousand writes with and without a snapshot; percentiles are medians over the rounds. */
const ROUNDS = 7
const SAMPLES_MAX = 4_000_000
/** How often a writer that waits for spare pages looks for the end of the snapshot, like a node. */
const LOOK_MS = 5
const waitCell = new Int32Array(new SharedArrayBuffer(4))

/** Of single writes, µs. */
type Percentiles = { readonly p99: number; readonly p999: number }

export type Pause = {
  readonly snapshots: number
  /** Time of the writer's thread to start a snapshot: median, ms. Waking the other thread may cost it its core. */
  readonly startMs: number
  readonly alone: Percentiles
  readonly beside: Percentiles
  /** Snapshots during which writes were delayed because few spare pages were left. */
  readonly delayedSnapshots: number
  /** Longest such delay of writes; 0 without one. */
  readonly longestDelayMs: number
}

/** Sizes that a test makes smaller. */
export type PauseSize = { readonly memoryBytes?: number; readonly rounds?: number }

type Samples = { readonly micros: Float64Array; count: number }

type Bench = {
  readonly store: Store
  readonly context: ApplyContext
  readonly bulk: MessagePort
  readonly commands: Uint8Array
  readonly commandBytes: number
  next: number
  index: number
}

/** @param dataDir an empty folder for the snapshots */
export async function measurePause(
  packagesWanted: number,
  dataDir: string,
  { memoryBytes = 2 ** 32, rounds = ROUNDS }: PauseSize = {},
): Promise<Pause> {
  const scratchBytes = CAPTURE_SCRATCH_BYTES + WORDS_SCRATCH_BYTES
  const store = createStore({ memoryBytes, readers: 1, scratchBytes, sessionBytesMax: 1 << 20 })
  const { put } = loadKernels(store.memory)
  const today = Math.floor(Date.now() / DAY_MS)
  const propertiesPerSegment = Math.round(packagesWanted / NIGHTS / ROOM_TYPES / SEGMENTS)
  const shape = { segments: SEGMENTS, propertiesPerSegment, roomTypes: ROOM_TYPES, nights: NIGHTS }
  const prepared = fillSynthetic(store, put, { ...shape, firstDay: today, ordered: true, seed: 1 })
  publish(store, 1)
  prepareSnapshots(store)

  const { port1: bulk, port2: replica } = new MessageChannel()
  const workerData: BulkOptions = {
    memory: store.memory.wasm,
    reader: 0,
    dataDir,
    codecs: SYNTHETIC_CODECS.names,
    bytesPerSecond: BYTES_PER_SECOND,
    logSeed: 0,
    replica,
  }
  const url = new URL('../snapshot/bulk-worker.ts', import.meta.url)
  const worker = new Worker(url, { workerData, transferList: [replica] })
  const bench: Bench = {
    store,
    context: createApplyContext(store, put, () => assert(false, 'digests agree')),
    bulk,
    ...createWrites(store, prepared, today),
    next: 0,
    index: 1,
  }
  try {
    return await run(bench, rounds)
  } finally {
    bulk.close()
    await worker.terminate()
  }
}

async function run(bench: Bench, rounds: number): Promise<Pause> {
  const warmUp = createSamples()
  applyPaced(bench, warmUp, WARM_UP_WRITES)
  for (let i = 0; i < WARM_UP_SNAPSHOTS; i++) await besideSnapshot(bench, warmUp)
  const alone: Percentiles[] = []
  const beside: Percentiles[] = []
  const starts: Start[] = []
  for (let round = 0; round < rounds; round++) {
    const writes = createSamples()
    starts.push(await besideSnapshot(bench, writes))
    beside.push(percentilesOf(writes))
    const same = createSamples()
    applyPaced(bench, same, writes.count)
    alone.push(percentilesOf(same))
  }
  return {
    snapshots: rounds,
    startMs: median(starts.map(({ startMs }) => startMs)),
    alone: medians(alone),
    beside: medians(beside),
    delayedSnapshots: starts.filter(({ delayMs }) => delayMs > 0).length,
    longestDelayMs: Math.max(...starts.map(({ delayMs }) => delayMs)),
  }
}

/** Writes that set the availability of random packages. All have the same length. */
function createWrites(store: Store, { tables, shapes }: Prepared, today: number) {
  const { memory } = store
  const random = seeded(2)
  const below = (n: number) => Math.floor(random() * n)
  const names = tables.map((table) => nameBytes(memory, NAMES.roomType, field(memory, table + TABLE.roomType)))
  const writer: CommandWriter = createCommandWriter()
  for (let i = 0; i < COMMANDS; i++) {
    const n = below(tables.length)
    const id = field(memory, tables[n] + TABLE.rowIds) + below(shapes[n]?.rows.length ?? 0) * 16
    const name = names[n] as Uint8Array
    const start = writer.at
    beginCommand(writer, KIND.setAvailability)
    writeBytes(writer, memory.u8, id, id + 16)
    writeU32(writer, today + below(NIGHTS))
    writeU8(writer, below(200))
    writeName(writer, name, 0, name.length)
    stampCommand(writer.view, start, today * DAY_MS, today)
  }
  const commandBytes = writer.at / COMMANDS
  assert(Number.isInteger(commandBytes), 'all commands have the same length')
  return { commands: writer.bytes, commandBytes }
}

type Start = { readonly startMs: number; readonly delayMs: number }

/** Writes from the start of a snapshot to its end. */
async function besideSnapshot(bench: Bench, times: Samples): Promise<Start> {
  const { store, bulk } = bench
  const started = performance.now()
  const epoch = beginCopyOnWrite(store)
  const { recordsStart, gap } = store.writer
  const position = { epoch, index: bench.index, term: 1, shardId: 'bench', voters: ['n1'] }
  const point = { ...position, recordsStart, recordsEnd: gap.low }
  bulk.postMessage({ type: 'snapshot', point, origin: 'bench' } satisfies ToBulk)
  const startMs = performance.now() - started
  const early = applyPaced(bench, times, Number.POSITIVE_INFINITY)
  const waiting = performance.now()
  const answer = early ?? awaitSnapshot(bench)
  const delayMs = early ? 0 : performance.now() - waiting
  assert(answer?.type === 'written', `the snapshot was written: ${JSON.stringify(answer)}`)
  endCopyOnWrite(store)
  bulk.postMessage({ type: 'retain' } satisfies ToBulk)
  while (!receiveMessageOnPort(bulk)) await sleep(1)
  return { startMs, delayMs }
}

/**
 * Applies writes at the rate without sleeping, since late wake-ups would be measured instead.
 *
 * @returns the message of the snapshot thread, immediately; undefined after `most` writes, and when the next write must
 * wait for spare pages
 */
function applyPaced(bench: Bench, times: Samples, most: number): FromBulk | undefined {
  const { context, commands, commandBytes, store, bulk } = bench
  let due = performance.now()
  for (let i = 0; i < most; i++) {
    const start = (bench.next++ % COMMANDS) * commandBytes
    const index = ++bench.index
    let begun = performance.now()
    while (begun < due) begun = performance.now()
    const { code } = applyCommand(context, index, commands, start, start + commandBytes)
    const micros = (performance.now() - begun) * 1000
    assert(code === 0, 'every package is there')
    addSample(times, micros)
    due += MS_A_WRITE
    if (lacksSparePages(store)) {
      publish(store, index)
      return undefined
    }
    if (i % BATCH !== BATCH - 1) continue
    publish(store, index)
    const received = receiveMessageOnPort(bulk)
    if (received) return received.message as FromBulk
  }
  return undefined
}

/** Waits for the end of the snapshot without limiting its disk rate. */
function awaitSnapshot({ store, bulk }: Bench): FromBulk {
  hurrySnapshot(store)
  for (;;) {
    const received = receiveMessageOnPort(bulk)
    if (received) return received.message as FromBulk
    Atomics.wait(waitCell, 0, 0, LOOK_MS)
  }
}

function createSamples(): Samples {
  return { micros: new Float64Array(SAMPLES_MAX), count: 0 }
}

function addSample(samples: Samples, micros: number): void {
  assert(samples.count < SAMPLES_MAX, 'a snapshot ends')
  samples.micros[samples.count++] = micros
}

function percentilesOf({ micros, count }: Samples): Percentiles {
  const taken = micros.subarray(0, count)
  return { p99: percentile(taken, 0.99), p999: percentile(taken, 0.999) }
}

function medians(rounds: readonly Percentiles[]): Percentiles {
  return { p99: median(rounds.map(({ p99 }) => p99)), p999: median(rounds.map(({ p999 }) => p999)) }
}

function median(samples: readonly number[]): number {
  return percentile(Float64Array.from(samples), 0.5)
}

function percentile(samples: Float64Array, share: number): number {
  const sorted = samples.toSorted()
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
