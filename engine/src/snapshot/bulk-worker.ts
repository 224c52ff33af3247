/**
 * Thread entry for bulk work: writes snapshots of the running store, keeps the last two, reads and stores chunks for
 * transfers between nodes, and scrubs the disk (docs/design/storage.md#snapshot-format,
 * docs/design/storage.md#snapshots). Otherwise idle.
 */

import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { assert, createCodecList, type ErrorName, VacancyError } from '@vacancy/shared'
import { createEnv, type Env, errnoOf, type Log, releaseMemory, runInBackground } from '../env.ts'
import type { EntryBatch } from '../raft/entry.ts'
import { isSnapshotHurried } from '../store/cow.ts'
import { attachMemory, type Memory, scratchOf } from '../store/store.ts'
import { type NightAsk, type NightPart, type SearchFrom, searchNight } from '../wal/night-log.ts'
import { type LogAsk, type LogCursors, readEntries } from '../wal/read.ts'
import { damaged } from '../wal/scan.ts'
import { scrubLogStep } from '../wal/scrub.ts'
import { CAPTURE_SCRATCH_BYTES, type CapturePoint, captureStore } from './capture.ts'
import { createExchanger, type ExchangeAnswer, type ExchangeAsk, type Exchanger, runExchange } from './exchange.ts'
import { retainSnapshots, scrubStep } from './snapshot.ts'
import { inlineEncoder, type PreviousSnapshot, writeSnapshotDir } from './write.ts'

/** All data on disk is read back once a day (docs/design/storage.md#scrubbing). */
const SCRUB_REST_MS = 86_400_000

export type BulkOptions = {
  readonly memory: WebAssembly.Memory
  readonly reader: number
  readonly dataDir: string
  readonly codecs: readonly string[]
  readonly bytesPerSecond: number
  /** Seed of the checksums of log records (wal/record.ts). */
  readonly logSeed: number
  /** To the replica thread. */
  readonly replica: MessagePort
}

export type ToBulk =
  | { readonly type: 'snapshot'; readonly point: CapturePoint; readonly origin: string }
  /** The log has the mark of the snapshot: older snapshots may be removed. */
  | {
      readonly type: 'retain'
      /** Indexes of snapshots that are being sent to other nodes, which are kept as well. */
      readonly pinned?: readonly number[]
    }
  | { readonly type: 'scrub' }
  /** Log entries for a lagging peer. */
  | { readonly type: 'log'; readonly id: number; readonly ask: LogAsk }
  /** A part of the log, for the history of a night. */
  | {
      readonly type: 'night'
      readonly id: number
      readonly ask: NightAsk
      readonly from: SearchFrom
      readonly stays: readonly string[]
    }
  /** Another state has replaced the memory: no earlier snapshot shares its content. */
  | { readonly type: 'forget' }
  /** Work for a transfer; the reply repeats the id. */
  | { readonly type: 'exchange'; readonly id: number; readonly ask: ExchangeAsk }

export type FromBulk =
  | {
      readonly type: 'written'
      readonly index: number
      readonly term: number
      readonly durationMs: number
      readonly chunkBytes: number
      readonly newChunkBytes: number
    }
  | { readonly type: 'gave-up'; readonly reason: string; readonly full: boolean }
  | { readonly type: 'retained' }
  | { readonly type: 'log'; readonly id: number; readonly batches: readonly EntryBatch[] | 'compacted' }
  /** What was found, or why it cannot be read. */
  | { readonly type: 'night'; readonly id: number; readonly part: NightPart | string }
  | { readonly type: 'exchanged'; readonly id: number; readonly answer: ExchangeAnswer }
  | { readonly type: 'damaged'; readonly code: ErrorName; readonly fields: VacancyError['fields'] }
  | { readonly type: 'failed'; readonly code: ErrorName; readonly fields: VacancyError['fields'] }

type Bulk = {
  readonly env: Env
  readonly memory: Memory
  readonly options: BulkOptions
  previous: (PreviousSnapshot & { readonly epoch: number }) | undefined
  /** Where scrubbing continues: the position of a chunk, then the name of a log file. */
  readonly scrubbed: { chunk: string; logFile: string; restsUntilMs: number }
  readonly exchanger: Exchanger
  readonly cursors: LogCursors
}

async function handle(bulk: Bulk, message: ToBulk): Promise<FromBulk | undefined> {
  const { env, options } = bulk
  if (message.type === 'retain') {
    retainSnapshots(env.disk, options.dataDir, message.pinned)
    return { type: 'retained' }
  }
  if (message.type === 'scrub') return scrub(bulk)
  if (message.type === 'log') {
    const batches = readEntries(env.disk, `${options.dataDir}/wal`, options.logSeed, bulk.cursors, message.ask)
    return { type: 'log', id: message.id, batches }
  }
  if (message.type === 'night') return { type: 'night', id: message.id, part: searchLog(bulk, message) }
  if (message.type === 'forget') {
    bulk.previous = undefined
    return undefined
  }
  if (message.type === 'exchange') return exchange(bulk, message.id, message.ask)
  return await writeSnapshot(bulk, message.point, message.origin)
}

async function writeSnapshot(bulk: Bulk, point: CapturePoint, origin: string): Promise<FromBulk> {
  const { env, memory, options, previous } = bulk
  const startMs = env.clock.monotonicMs()
  const scratch = scratchOf(memory, options.reader)
  const captured = captureStore(memory, point, createCodecList(options.codecs), scratch, previous)
  if (!captured) return { type: 'gave-up', reason: 'no memory was left for copies of changed pages', full: false }
  try {
    const written = await writeSnapshotDir(env, options.dataDir, captured.source, {
      encoder: inlineEncoder(captured.source, scratch + CAPTURE_SCRATCH_BYTES),
      origin,
      bytesPerSecond: options.bytesPerSecond,
      isHurried: () => isSnapshotHurried(memory),
      ...(previous ? { previous } : {}),
    })
    if (!written) return { type: 'gave-up', reason: 'no memory was left for copies of changed pages', full: false }
    bulk.previous = { ...written.previous, epoch: point.epoch }
    return {
      type: 'written',
      index: point.index,
      term: point.term,
      durationMs: Math.round(env.clock.monotonicMs() - startMs),
      chunkBytes: written.chunkBytes,
      newChunkBytes: written.newChunkBytes,
    }
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'ENOSPC' || code === 'EDQUOT') return { type: 'gave-up', reason: 'the disk is full', full: true }
    throw error
  }
}

/** Only a question of a person: a log that cannot be read for it ends no node. */
function searchLog(
  { env, options }: Bulk,
  { ask, from, stays }: Extract<ToBulk, { type: 'night' }>,
): NightPart | string {
  try {
    return searchNight(env.disk, `${options.dataDir}/wal`, options.logSeed, ask, from, stays)
  } catch (error) {
    return `the log cannot be read: ${(error as Error).message}`
  }
}

function exchange(bulk: Bulk, id: number, ask: ExchangeAsk): FromBulk {
  const answer = runExchange(bulk.exchanger, ask)
  // The state of another node replaces this one: nothing is shared with the previous snapshot.
  if (answer.state === 'current') bulk.previous = undefined
  return { type: 'exchanged', id, answer }
}

/**
 * One step of scrubbing (docs/design/storage.md#scrubbing): the chunks of the snapshots, then the log, then a pause.
 */
function scrub(bulk: Bulk): FromBulk | undefined {
  const { env, options, scrubbed } = bulk
  if (env.clock.monotonicMs() < scrubbed.restsUntilMs) return undefined
  if (scrubbed.logFile === '') {
    const step = scrubStep(env.disk, options.dataDir, scrubbed.chunk)
    if (step.state !== 'done') {
      scrubbed.chunk = step.after
      if (step.state !== 'damaged') return undefined
      // The next snapshot must not reuse chunks that no longer verify.
      bulk.previous = undefined
      return { type: 'damaged', code: step.error.code, fields: step.error.fields }
    }
  }
  const step = scrubLogStep(env.disk, `${options.dataDir}/wal`, scrubbed.logFile)
  // A restart would refuse this log (docs/design/storage.md#torn-tail-or-corruption). Report it now, while the other
  // members have its content.
  // members have what is in it.
  if (step?.damage) throw damaged(step.damage)
  scrubbed.logFile = step?.file ?? ''
  if (step) return undefined
  scrubbed.chunk = ''
  scrubbed.restsUntilMs = env.clock.monotonicMs() + SCRUB_REST_MS
  return undefined
}

/** Requests that do not change anything a snapshot in progress relies on. */
const ASIDE: ReadonlySet<ExchangeAsk['kind']> = new Set(['newest', 'plan', 'verify', 'store', 'read', 'find', 'before'])

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

if (parentPort) {
  runInBackground()
  const options = workerData as BulkOptions
  const env = createEnv(silent)
  const bulk: Bulk = {
    env,
    exchanger: createExchanger(env, options.dataDir),
    cursors: new Map(),
    memory: attachMemory(options.memory),
    options,
    previous: undefined,
    scrubbed: { chunk: '', logFile: '', restsUntilMs: 0 },
  }
  let queue = Promise.resolve()
  const run = async (message: ToBulk) => {
    try {
      const answer = await handle(bulk, message)
      if (answer) options.replica.postMessage(answer)
      // The image of the records and their columns: as much memory as the store uses for them.
      if (message.type === 'snapshot') releaseMemory()
    } catch (error) {
      assert(error instanceof VacancyError, `writing a snapshot failed: ${String(error)}`)
      options.replica.postMessage({ type: 'failed', code: error.code, fields: error.fields } satisfies FromBulk)
    }
  }
  options.replica.on('message', (message: ToBulk) => {
    // Chunks are read and received during a snapshot: peers wait at most ten seconds.
    if (
      message.type === 'log' ||
      message.type === 'night' ||
      (message.type === 'exchange' && ASIDE.has(message.ask.kind))
    )
      void run(message)
    // Sequential: a clean-up or a rename must not remove chunks of a snapshot in progress.
    else queue = queue.then(() => run(message))
  })
}
