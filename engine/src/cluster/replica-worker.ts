/**
 * Thread entry of the replica: recovers the store, then runs replica.ts with the log, bulk and serving threads around
 * it. The one writer of the store.
 */

import { MessageChannel, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import { assert, dayOf, formatDay, VacancyError } from '@vacancy/shared'
import { createEnv, type Env, type Log, releaseMemory } from '../env.ts'
import { errorOf, failureOf } from '../failure.ts'
import type { EntryBatch } from '../raft/entry.ts'
import type { Configuration } from '../raft/messages.ts'
import { campaign, createRaft, type Raft, type RaftConfig } from '../raft/raft.ts'
import type { BulkOptions, FromBulk, ToBulk } from '../snapshot/bulk-worker.ts'
import { snapshotId } from '../snapshot/format.ts'
import type { SnapshotHead } from '../snapshot/load.ts'
import { findSnapshots } from '../snapshot/snapshot.ts'
import type { SnapshotInfo } from '../status.ts'
import { applyCommand, latestTime, unorderedTables } from '../store/apply.ts'
import { createCommandWriter, KIND, writeName, writeU8 } from '../store/command.ts'
import { beginCopyOnWrite, endCopyOnWrite } from '../store/cow.ts'
import { NAMES, nameBytes } from '../store/dictionary.ts'
import { STATE } from '../store/layout.ts'
import { publish, type Store, state, stateDigest } from '../store/store.ts'
import { GAP_REASON, packagesBefore, sweepOne } from '../store/window.ts'
import type { LogAsk } from '../wal/read.ts'
import { checksumSeed } from '../wal/record.ts'
import { type FromWal, packWal, type ToWal } from '../wal/wal-thread.ts'
import { closeDataDirectory, logIdentity, releaseReserve, writeClean } from './data-directory.ts'
import type { FromReplica, ReplicaOptions, ToReplica } from './messages.ts'
import { type Progress, type RecoveredNode, recoverNode } from './recovery.ts'
import {
  addSink,
  applyCommitted,
  createReplica,
  drainReplica,
  onLogMessage,
  proposeBatch,
  proposeOwn,
  pump,
  type Replica,
  snapshotFailed,
  snapshotWritten,
  startMaintenance,
  startSnapshot,
  statusOf,
  tick,
} from './replica.ts'
import type { ShardPart } from './shard-side.ts'

const TICK_MS = 100
const STATUS_MS = 250
const BULK_READER = 1
/** Periodic snapshots leave the disk to the log (consensus.md §16.1). */
const SNAPSHOT_BYTES_PER_SECOND = 50e6
const SCRUB_STEP_MS = 10_000
const SCRUB_AFTER_MS = 3_600_000
/** The other values are for tests (consensus.md §3.1). */
const PRODUCTION = { preVote: true, checkQuorum: true, stepDownOnRemoval: true, validateChanges: true } as const
/** After a rest a single voter may go this far at once without being asked (consensus.md §11). */
const REST_DAYS_MAX = 30

type Threads = {
  readonly wal: Worker
  readonly walPort: MessagePort
  /** Starts the bulk thread when it is first needed: a node that nobody writes to does without. */
  readonly toBulk: (message: ToBulk) => void
  readonly stopBulk: () => Promise<void>
}

async function run(port: MessagePort, options: ReplicaOptions): Promise<void> {
  const send = (message: FromReplica, transfer: readonly MessagePort[] = []) => port.postMessage(message, [...transfer])
  // One logger a process: repeats are limited over all threads, and this one stays small.
  const tell = (level: keyof Log) => (fields: object, message: string) => send({ type: 'log', level, fields, message })
  const log: Log = { debug: tell('debug'), info: tell('info'), warn: tell('warn'), error: tell('error') }
  const env = createEnv(log)
  const startedMs = env.clock.monotonicMs()
  const shard = await openShard(env, options, send)
  const progress: Progress = (phase, detail) => send({ type: 'phase', phase, detail })
  const node = await recoverNode(env, options, progress, shard?.found)
  if (node.lost.length > 0) send({ type: 'lost', lines: node.lost })
  const [config, restored] = shard ? await shard.takePart(node) : [soleVoter(options, node), node.raft]
  const threads = startThreads(options, node, {
    onMessage: (message) => onBulkMessage(env, replica, node, message, send, shard, logReads),
    onError: (error) => fail(send, error),
  })
  const logReads = createLogReads((id, ask) => threads.toBulk({ type: 'log', id, ask }))
  const replica = assemble(env, options, node, threads, send, createRaft(config, restored), shard, logReads)
  threads.walPort.on('message', (message: FromWal) => onLogMessage(replica, message))
  threads.wal.on('error', (error) => fail(send, error))
  sendSnapshotInfo(env, options.dataDir, send)
  releaseMemory()
  if (shard) {
    shard.join(node, replica, threads.toBulk)
  } else {
    campaign(replica.raft)
    pump(replica)
    await elected(replica)
    beginShard(replica, node, options)
  }
  send({
    type: 'ready',
    memory: node.store.memory.wasm,
    shardId: node.shardId,
    kernels: node.kernels.kind,
    codecMismatch: node.codecMismatch,
    seconds: (env.clock.monotonicMs() - startedMs) / 1000,
  })
  const timers = [
    setInterval(() => tick(replica), TICK_MS),
    setInterval(() => sendStatus(replica, shard, send), STATUS_MS),
    startScrubbing(threads),
  ]
  sendStatus(replica, shard, send)
  port.on('message', (message: ToReplica) => {
    switch (message.type) {
      case 'serve':
        return serve(replica, shard, message.channel)
      case 'snapshot':
        return void startSnapshot(replica, message.origin)
      case 'maintain':
        return void maintain(replica, shard, options, message.force)
      case 'ask':
        return askShard(shard, message, send)
      case 'dial':
        return shard?.dial(message.nodes)
      case 'leave':
        return shard?.handOver()
      case 'reload':
        return shard?.reload()
      default:
        return void stop(replica, shard, node, threads, timers, send)
    }
  })
}

/** A member's part in its shard; the code for it is loaded only then. */
async function openShard(
  env: Env,
  options: ReplicaOptions,
  send: (message: FromReplica) => void,
): Promise<ShardPart | undefined> {
  if (!options.cluster) return undefined
  const { openShardPart } = await import('./shard-side.ts')
  return openShardPart(env, options, options.cluster, send)
}

function sendStatus(replica: Replica, shard: ShardPart | undefined, send: (message: FromReplica) => void): void {
  send({ type: 'status', status: statusOf(replica) })
  shard?.sendStatus()
}

function askShard(
  shard: ShardPart | undefined,
  { id, what }: Extract<ToReplica, { type: 'ask' }>,
  send: (message: FromReplica) => void,
): void {
  if (shard) shard.ask(what, (answer) => send({ type: 'asked', id, answer }))
  else send({ type: 'asked', id, answer: { status: 503, text: 'no leader' } })
}

/** A leader whose clock the others do not share proposes nothing (C4). */
function maintain(replica: Replica, shard: ShardPart | undefined, options: ReplicaOptions, force: boolean): void {
  if (shard && !force && shard.isClockSuspect()) return
  startMaintenance(replica, gapReason(replica, shard, options, force))
}

/** A node by itself is a shard with one voter. */
function soleVoter({ nodeId }: ReplicaOptions, { directory, raft, cluster }: RecoveredNode): RaftConfig {
  const { configuration } = raft
  const own = configuration?.members.find(({ node }) => node === nodeId)
  // What its log says so far may name nobody else yet: the shard must have been founded by this node alone, too.
  const isAlone = configuration?.members.length === 1 && cluster.voters.length === 1 && cluster.isFounder !== false
  if (own === undefined || !isAlone) {
    const reason =
      `${directory.path} belongs to a member of a shard of several nodes: start it with run-clustered. To go on with` +
      ' its data alone, export it (vacancy export) and start a node on an empty folder with that snapshot.'
    throw new VacancyError('data_conflict', { reason })
  }
  return { id: own.id, electionTicks: 10, heartbeatTicks: 1, random: () => 0, ...PRODUCTION }
}

/** Reads of the log that the bulk thread does for this one. */
type LogReads = {
  readonly read: NonNullable<Replica['readLog']>
  onRead(id: number, batches: readonly EntryBatch[] | 'compacted'): void
}

function createLogReads(post: (id: number, ask: LogAsk) => void): LogReads {
  const waiting = new Map<number, (batches: readonly EntryBatch[] | 'compacted') => void>()
  let nextId = 1
  return {
    read(ask, done) {
      waiting.set(nextId, done)
      post(nextId++, ask)
    },
    onRead(id, batches) {
      const done = waiting.get(id)
      waiting.delete(id)
      done?.(batches)
    },
  }
}

type OfBulk = { readonly onMessage: (message: FromBulk) => void; readonly onError: (error: unknown) => void }

function startThreads(options: ReplicaOptions, node: RecoveredNode, ofBulk: OfBulk): Threads {
  const walChannel = new MessageChannel()
  const wal = new Worker(new URL('../wal/wal-worker.ts', import.meta.url), {
    workerData: { state: packWal(node.wal), flushThreshold: options.walFlushThreshold, port: walChannel.port2 },
    transferList: [walChannel.port2],
    trackUnmanagedFds: false,
    resourceLimits: { maxYoungGenerationSizeMb: 8 },
  })
  let bulk: { readonly worker: Worker; readonly port: MessagePort } | undefined
  const startBulk = () => {
    const channel = new MessageChannel()
    const bulkOptions: BulkOptions = {
      memory: node.store.memory.wasm,
      reader: BULK_READER,
      dataDir: options.dataDir,
      codecs: options.codecs,
      bytesPerSecond: SNAPSHOT_BYTES_PER_SECOND,
      logSeed: checksumSeed(logIdentity(node.directory, node.cluster)),
      replica: channel.port2,
    }
    const worker = new Worker(new URL('../snapshot/bulk-worker.ts', import.meta.url), {
      workerData: bulkOptions,
      transferList: [channel.port2],
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    })
    worker.on('error', ofBulk.onError)
    channel.port1.on('message', ofBulk.onMessage)
    return { worker, port: channel.port1 }
  }
  return {
    wal,
    walPort: walChannel.port1,
    toBulk: (message) => {
      bulk ??= startBulk()
      bulk.port.postMessage(message)
    },
    stopBulk: async () => {
      await bulk?.worker.terminate()
    },
  }
}

/** Reads back what lies on disk, a little at a time; the first time after an hour, when the start is long over. */
function startScrubbing(threads: Threads): NodeJS.Timeout {
  let steps = 0
  return setInterval(() => {
    if (++steps * SCRUB_STEP_MS >= SCRUB_AFTER_MS) threads.toBulk({ type: 'scrub' })
  }, SCRUB_STEP_MS)
}

function assemble(
  env: Env,
  options: ReplicaOptions,
  node: RecoveredNode,
  threads: Threads,
  send: (message: FromReplica) => void,
  raft: Raft,
  shard: ShardPart | undefined,
  logReads: LogReads,
): Replica {
  const { store, context, directory } = node
  const snapshotIndex = node.snapshot?.manifest.index ?? 0
  return createReplica({
    env,
    raft,
    machine: {
      apply: (index, bytes, start, end) => applyCommand(context, index, bytes, start, end),
      publish: (index) => publish(store, index),
      digestMarks: () => context.marks,
      digest: () => stateDigest(store.memory),
      lastMaintenanceDay: () => state(store.memory, STATE.lastMaintenanceDay),
      latestTimeMs: () => latestTime(store.memory),
      packagesBefore: (day) => packagesBefore(store.memory, day),
      unorderedTables: () => unorderedTables(store.memory).map((table) => orderBody(store, table)),
      sweep: () => sweepOne(store),
    },
    snapshots: {
      start: (index, term, origin) => {
        const epoch = beginCopyOnWrite(store)
        const point = {
          epoch,
          index,
          term,
          shardId: node.shardId,
          ...(shard
            ? { voters: namesOf(raft.configuration, raft.configuration.voters), membership: raft.configuration }
            : { voters: [options.nodeId] }),
          recordsStart: store.writer.recordsStart,
          recordsEnd: store.writer.gap.low,
        }
        threads.toBulk({ type: 'snapshot', point, origin })
      },
      retain: () => threads.toBulk({ type: 'retain', pinned: shard?.pinned() ?? [] }),
    },
    log: (message: ToWal) => threads.walPort.postMessage(message),
    readLog: logReads.read,
    onFatal: (failure) => fail(send, errorOf(failure)),
    onMaintained: (day, removedPackages) => send({ type: 'maintained', day, removedPackages }),
    onReserve: () => releaseReserve(directory),
    space: () => env.disk.space(options.dataDir),
    snapshotIntervalMs: options.snapshotIntervalMs,
    snapshotTriggerCount: options.snapshotTriggerCount,
    snapshotIndex,
    tornTailBytes: node.tornTailBytes,
    acceptDay: options.acceptDay,
    lastTimeMs: node.lastTimeMs,
  })
}

/** Body of an orderRows command for one table. */
function orderBody(store: Store, table: { segment: number; roomType: number | undefined }): Uint8Array {
  const writer = createCommandWriter(1024)
  const put = (bytes: Uint8Array) => writeName(writer, bytes, 0, bytes.length)
  put(nameBytes(store.memory, NAMES.segment, table.segment))
  writeU8(writer, table.roomType === undefined ? 1 : 0)
  put(table.roomType === undefined ? new Uint8Array(0) : nameBytes(store.memory, NAMES.roomType, table.roomType))
  return writer.bytes.slice(0, writer.at)
}

/** Resolves when this node leads and the empty entry of its term is applied. */
function elected(replica: Replica): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (replica.raft.role === 'leader' && replica.raft.applied === replica.raft.lastIndex) resolve()
      else setImmediate(look)
    }
    look()
  })
}

/** A new shard logs what all replicas must agree on: its random bits (G6) and the settings that change results. */
function beginShard(replica: Replica, node: RecoveredNode, options: ReplicaOptions): void {
  const { memory } = node.store
  const isNew = [0, 1, 2, 3].every((cell) => state(memory, STATE.genesis + cell) === 0)
  if (isNew) {
    const settings = new Uint8Array(4)
    new DataView(settings.buffer).setUint32(0, options.sessionBytesMax, true)
    proposeOwn(replica, KIND.genesis, replica.env.random.bytes(16))
    proposeOwn(replica, KIND.settings, settings)
    return
  }
  const logged = state(memory, STATE.sessionBytesMax)
  if (logged === options.sessionBytesMax) return
  replica.env.log.warn(
    { logged, configured: options.sessionBytesMax },
    'session_table_bytes: the value in the log holds',
  )
}

/** Why maintenance may go further than a few days at once (consensus.md §11). */
function gapReason(replica: Replica, shard: ShardPart | undefined, options: ReplicaOptions, force: boolean): number {
  if (force) return GAP_REASON.operator
  const last = replica.machine.lastMaintenanceDay()
  if (last === 0) return GAP_REASON.none
  const today = dayOf(replica.env.clock.wallMs())
  const gap = today - last
  // Several clocks that agree are believed at once; a single one up to a month (§11).
  const isBelieved = shard ? shard.clocksAgree() : gap <= REST_DAYS_MAX
  if (isBelieved || options.acceptDay >= today) {
    if (gap > 3) replica.env.log.warn({ days: gap }, 'the node rested: its window is turned by several days at once')
    return GAP_REASON.rest
  }
  replica.env.log.error(
    { days: gap, today: formatDay(today) },
    'the clock is far ahead of the last maintenance: nothing is dropped; if it is right, start with --accept-date',
  )
  return GAP_REASON.none
}

/** Names of members, in the order of their ids. */
function namesOf({ members }: Configuration, ids: readonly number[]): string[] {
  return members.filter(({ id }) => ids.includes(id)).map(({ node }) => node)
}

function serve(replica: Replica, shard: ShardPart | undefined, channel: MessagePort): void {
  const sink = addSink(replica, (answers) => channel.postMessage(answers, [answers]))
  channel.on('message', (batch: ArrayBuffer | Float64Array) => {
    if (batch instanceof ArrayBuffer) return proposeBatch(replica, sink, batch)
    assert(shard !== undefined, 'only members of a shard wait for its word')
    shard.askReads(sink, batch)
    pump(replica)
    applyCommitted(replica)
  })
}

function onBulkMessage(
  env: Env,
  replica: Replica,
  node: RecoveredNode,
  message: FromBulk,
  send: (message: FromReplica) => void,
  shard: ShardPart | undefined,
  logReads: LogReads,
): void {
  switch (message.type) {
    case 'written':
      endSnapshot(node)
      snapshotWritten(replica, message.index, message.term, message.durationMs)
      return sendSnapshotInfo(env, node.directory.path, send)
    case 'gave-up':
      endSnapshot(node)
      return snapshotFailed(replica, message.reason)
    case 'log':
      return logReads.onRead(message.id, message.batches)
    case 'exchanged':
      return shard?.onExchanged(message.id, message.answer)
    case 'damaged':
      return env.log.error({ code: message.code, ...message.fields }, 'a chunk of a snapshot no longer verifies')
    case 'failed':
      return fail(send, errorOf({ code: message.code, fields: message.fields, message: '' }))
    default:
      return
  }
}

function endSnapshot({ store }: RecoveredNode): void {
  if (store.writer.copyOnWrite) endCopyOnWrite(store)
}

function sendSnapshotInfo(env: Env, dataDir: string, send: (message: FromReplica) => void): void {
  const found = findSnapshots(env.disk, dataDir).find((snapshot) => snapshot.state === 'readable')
  if (found?.state === 'readable') send({ type: 'snapshot', info: infoOf(found.head) })
}

function infoOf(head: SnapshotHead): SnapshotInfo {
  const { manifest, note } = head
  const { window } = manifest
  return {
    id: snapshotId(manifest),
    createdMs: note?.createdAtMs ?? 0,
    shardId: manifest.shardId,
    lastIndex: manifest.index,
    lastTerm: manifest.term,
    properties: manifest.properties,
    packages: manifest.packages,
    segments: manifest.segments.length,
    window: window && { from: formatDay(window.from), to: formatDay(window.to) },
    codecHash: manifest.codecsOrderedHash,
    bytes: head.bytes,
    origin: (note?.origin ?? 'seed') as SnapshotInfo['origin'],
    durationMs: note?.durationMs ?? 0,
  }
}

async function stop(
  replica: Replica,
  shard: ShardPart | undefined,
  node: RecoveredNode,
  threads: Threads,
  timers: readonly NodeJS.Timeout[],
  send: (message: FromReplica) => void,
): Promise<void> {
  await shard?.leave()
  // The first one goes on: whoever waits for what others decide is told in time that nobody knows (X6).
  for (const timer of timers.slice(1)) clearInterval(timer)
  await drainReplica(replica)
  clearInterval(timers[0])
  await shard?.close()
  const closed = new Promise<boolean>((resolve) => {
    threads.walPort.on('message', (message: FromWal) => {
      if (message.type === 'closed') resolve(message.isClean)
    })
  })
  threads.walPort.postMessage({ type: 'close' } satisfies ToWal)
  const isClean = await closed
  await threads.stopBulk()
  if (isClean) writeClean(node.directory)
  closeDataDirectory(node.directory)
  send({ type: 'stopped' })
}

function fail(send: (message: FromReplica) => void, error: unknown): void {
  send({ type: 'failed', ...failureOf(error) })
}

const port = parentPort
if (port) {
  run(port, workerData as ReplicaOptions).catch((error: unknown) => fail((message) => port.postMessage(message), error))
}
