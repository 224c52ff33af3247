/**
 * Thread entry of the replica: recovers the store, then runs replica.ts with the log, bulk and serving threads around
 * it. The only writer of the store.
 */

import { MessageChannel, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import { assert, formatDay, VacancyError } from '@vacancy/shared'
import { LOCK_LOOK_MS } from '@vacancy/shared/file-lock'
import {
  checkLock,
  closeDataDirectory,
  logIdentity,
  readNote,
  releaseReserve,
  SUSPECT_FILE,
  setAside,
  spaceOf,
  writeClean,
  writeNote,
} from '../data/data-directory.ts'
import { recoverNode } from '../data/recovery.ts'
import type { Progress, RecoveredNode } from '../data/recovery-parts.ts'
import type { ReplicaOptions } from '../data/replica-options.ts'
import { createEnv, type Env, type Log, releaseMemory } from '../env.ts'
import { errorOf, failureOf } from '../failure.ts'
import { createBell, createPipes, createSender, type PipeEnd, type Send } from '../pipe.ts'
import type { EntryBatch } from '../raft/entry.ts'
import type { Configuration } from '../raft/messages.ts'
import { campaign, createRaft, type Raft, type RaftConfig } from '../raft/raft.ts'
import type { BulkOptions, FromBulk, ToBulk } from '../snapshot/bulk-worker.ts'
import { snapshotId } from '../snapshot/format.ts'
import type { SnapshotHead } from '../snapshot/load.ts'
import { findSnapshots } from '../snapshot/snapshot.ts'
import type { SnapshotInfo } from '../status.ts'
import { applyCommand } from '../store/apply.ts'
import { sumSegments } from '../store/apply-properties.ts'
import { budgetUse, memoryBudgetOf } from '../store/charge.ts'
import { encodeSettings, KIND } from '../store/command.ts'
import { beginCopyOnWrite, endCopyOnWrite, hurrySnapshot, lacksSparePages } from '../store/cow.ts'
import { dayAt } from '../store/day.ts'
import { STATE } from '../store/layout.ts'
import { orderTables, unorderedTables } from '../store/row-order.ts'
import { effectsOfSetTime, lastSetTime } from '../store/set-time.ts'
import {
  FEATURE_LEVEL,
  featureLevel,
  hasGenesis,
  indexBase,
  latestTime,
  noteShardDay,
  publish,
  type Store,
  state,
  stateDigest,
} from '../store/store.ts'
import { hasDeleted, packagesBefore, sweepOne } from '../store/window.ts'
import { type Attention, attendSoon, createGathering, listen } from '../threads/attend.ts'
import { attachDirectReplies, takeOffers, writeReplies } from '../threads/direct-replies.ts'
import { ANSWERS, REQUESTS, type ServingEnd } from '../threads/serving-pipe.ts'
import { createSpinner } from '../threads/spin.ts'
import { createInlineLog } from '../wal/inline-log.ts'
import type { LogAsk } from '../wal/read.ts'
import { checksumSeed } from '../wal/record.ts'
import { FROM_WAL, TO_WAL } from '../wal/wal-pipe.ts'
import { packWal, type ToWal } from '../wal/wal-thread.ts'
import type { LogOfThread } from '../wal/wal-worker.ts'
import { answerStayReads } from './answers.ts'
import { applyCommitted } from './applying.ts'
import { maintain } from './daily-maintenance.ts'
import { pump } from './hand-over.ts'
import { onLogMessage } from './log-answers.ts'
import { snapshotFailed, snapshotWritten, startSnapshot } from './maintenance.ts'
import type { ShardPart } from './member-runtime.ts'
import type { AdminAnswer } from './member-state.ts'
import type { FromReplica, ToReplica } from './messages.ts'
import { createNightReads } from './nights.ts'
import { proposeBatch, proposeOwn, raiseFeatureLevel, setMemoryBudget } from './proposals.ts'
import { drainReplica, statusOf, tick } from './replica.ts'
import { addSink, createReplica, type Replica } from './replica-state.ts'
import { setShardTime } from './set-shard-time.ts'
import { changeSetting } from './settings.ts'
import { staysOf } from './stay-answers.ts'

const TICK_MS = 100
/** Timers and messages of other threads are late by so much at most. */
const LINGER_MS = 1
/** Of so many ticks one sends the status: a timer of its own would wake the thread more often. */
const STATUS_TICKS = 3
const RULES_MS = 2_000
/** Rows to sum per tick, some milliseconds of work (apply.ts). */
const SUMMED_ROWS = 512
const BULK_READER = 1
/** Rate limit of periodic snapshots, which leaves disk bandwidth to the log (docs/design/storage.md#when). */
const SNAPSHOT_BYTES_PER_SECOND = 50e6
const SCRUB_STEP_MS = 10_000
const SCRUB_AFTER_MS = 3_600_000
/** The other values are for tests (docs/design/consensus.md#raft-core). */
const PRODUCTION = { preVote: true, checkQuorum: true, stepDownOnRemoval: true, validateChanges: true } as const

type Threads = {
  readonly wal: Worker
  readonly walEnd: PipeEnd
  readonly toLog: Send<ToWal>
  /** Starts the bulk thread at its first use: an idle node runs without it. */
  readonly toBulk: (message: ToBulk) => void
  readonly stopBulk: () => Promise<void>
}

async function run(port: MessagePort, options: ReplicaOptions): Promise<void> {
  const send = (message: FromReplica, transfer: readonly MessagePort[] = []) => port.postMessage(message, [...transfer])
  // One logger per process: it limits repeats over all threads and keeps this one small.
  const logAt = (level: keyof Log) => (fields: object, message: string) => send({ type: 'log', level, fields, message })
  const log: Log = { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') }
  const env = createEnv(log)
  const startedMs = env.clock.monotonicMs()
  const suspect = readNote(env, options.dataDir, SUSPECT_FILE)
  // A wiped node that is the only initial voter would found an empty shard: it has no peer to take the state from.
  const hasPeers = (options.cluster?.initialVoters.length ?? 1) > 1
  if (suspect !== undefined && !hasPeers && !options.acceptLoss && !options.rejoin)
    throw new VacancyError('suspect_data', { directory: options.dataDir, reason: suspect })
  const shard = await openShard(env, options, send)
  const progress: Progress = (phase, detail) => send({ type: 'phase', phase, detail })
  const wal = startLogThread()
  const rejoin = options.rejoin || (suspect !== undefined && hasPeers)
  const node = await recoverNode(env, { ...options, rejoin }, progress, shard?.found)
  if (suspect !== undefined && !shard) setAside(node.directory, [SUSPECT_FILE], 'accepted-loss')
  // An error in a callback leaves the replica in an unknown state. It must not answer peers and clients any more.
  process.on('uncaughtException', (error) => {
    shard?.freeze()
    endSuspect(env, options, node, error, send)
  })
  if (node.lost.length > 0) send({ type: 'lost', lines: node.lost })
  const [config, restored] = shard ? await shard.takePart(node) : [soleVoter(options, node), node.raft]
  const threads = startThreads(wal, options, node, {
    onMessage: (message) => {
      if (message.type === 'night') nights.onPart(message.id, message.part)
      else onBulkMessage(env, replica, node, message, send, shard, logReads)
    },
    onError: (error) => fail(send, error),
  })
  const nights = createNightReads(threads.toBulk, (id, read) => send({ type: 'night', id, read }))
  const logReads = createLogReads((id, request) => threads.toBulk({ type: 'log', id, ask: request }))
  const raft = createRaft(config, restored)
  // A member must answer its peers also while the disk does not answer.
  const inline = shard
    ? undefined
    : createInlineLog({
        wal: node.wal,
        toThread: threads.toLog,
        onStored: (message) => onLogMessage(replica, message),
        onWaiting: () => attendSoon(attention),
        monotonicMs: env.clock.monotonicMs,
      })
  const toLog = inline?.send ?? threads.toLog
  const replica = assemble({ env, options, node, threads, send, raft, shard, logReads, toLog })
  const attention: Attention = {
    bell: threads.walEnd.bell,
    sources: [],
    // A member of a shard hears its peers in its event loop only.
    lingerMs: shard ? 0 : LINGER_MS,
    // Apply may have work of its own, in a later turn.
    mayLinger: () => !replica.isStopping && !replica.isApplying,
    maySpin: () => inline?.mayStore() ?? false,
    spinner: createSpinner(),
    settle: () => inline?.settle() ?? 0,
    gatherMs: () => inline?.gatherMs() ?? 0,
    gathering: createGathering(),
    isAttending: false,
    heard: 0,
  }
  const isClosed = new Promise<boolean>((resolve) => {
    listen(attention, threads.walEnd, FROM_WAL, (message) => {
      inline?.onAnswer(message)
      if (message.type === 'closed') resolve(message.isClean)
      else onLogMessage(replica, message)
    })
  })
  threads.wal.on('error', (error) => fail(send, error))
  sendSnapshotInfo(env, options.dataDir, send)
  if (shard) {
    shard.join(node, replica, threads.toBulk)
  } else {
    campaign(replica.raft)
    pump(replica)
    await elected(replica)
    beginShard(replica, node, options)
    keepRules(replica, node.store)
  }
  send({
    type: 'ready',
    memory: node.store.memory.wasm,
    bell: threads.walEnd.bell,
    shardId: node.shardId,
    codecMismatch: node.codecMismatch,
    seconds: (env.clock.monotonicMs() - startedMs) / 1000,
  })
  releaseMemory()
  let ticks = 0
  const timers = [
    setInterval(() => {
      tick(replica)
      shard?.beat()
      if (++ticks % STATUS_TICKS === 0) sendStatus(replica, shard, send)
    }, TICK_MS),
    setInterval(() => checkLock(node.directory), LOCK_LOOK_MS),
    startScrubbing(threads),
    // A full disk may have refused the entries.
    ...(shard ? [] : [setInterval(() => keepRules(replica, node.store), RULES_MS)]),
  ]
  sendStatus(replica, shard, send)
  port.on('message', (message: ToReplica) => {
    switch (message.type) {
      case 'serve':
        return serve(attention, replica, shard, message.pipe)
      case 'snapshot':
        return void startSnapshot(replica, message.origin)
      case 'maintain':
        return void maintain(replica, message.force)
      case 'admin-request':
        return requestShard(replica, shard, message, send)
      case 'night':
        return nights.read(replica, node.store, message)
      case 'dial':
        return shard?.dial(message.nodes)
      case 'leave':
        return shard?.handOver()
      case 'reload':
        return shard?.reload()
      default:
        return void stop({ replica, shard, node, threads, timers, isClosed, send })
    }
  })
}

/** The shard member; its code is loaded only here. */
async function openShard(
  env: Env,
  options: ReplicaOptions,
  send: (message: FromReplica) => void,
): Promise<ShardPart | undefined> {
  if (!options.cluster) return undefined
  const { openShardPart } = await import('./member-runtime.ts')
  return openShardPart(env, options, options.cluster, send)
}

function sendStatus(replica: Replica, shard: ShardPart | undefined, send: (message: FromReplica) => void): void {
  send({ type: 'status', status: statusOf(replica) })
  shard?.sendStatus()
}

function requestShard(
  replica: Replica,
  shard: ShardPart | undefined,
  { id, what }: Extract<ToReplica, { type: 'admin-request' }>,
  send: (message: FromReplica) => void,
): void {
  const onAnswer = (answer: AdminAnswer): void => send({ type: 'admin-reply', id, answer })
  if (shard) shard.request(what, onAnswer)
  else if (what.kind === 'set-time') setShardTime(replica, what.confirm, onAnswer)
  else if (what.kind === 'setting') onAnswer(changeSetting(replica, what.name, what.value))
  else onAnswer({ status: 503, text: 'no leader' })
}

/** A node by itself is a shard with one voter. */
function soleVoter({ nodeId }: ReplicaOptions, { directory, raft, cluster }: RecoveredNode): RaftConfig {
  const { configuration } = raft
  const own = configuration?.members.find(({ node }) => node === nodeId)
  // The log may not name another node yet: the shard must also have been founded by this node alone.
  const isAlone = configuration?.members.length === 1 && cluster.voters.length === 1 && cluster.isFounder !== false
  if (own === undefined || !isAlone) {
    const reason =
      `${directory.path} belongs to a member of a shard of several nodes: start it with run-clustered. To continue with` +
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

function createLogReads(post: (id: number, request: LogAsk) => void): LogReads {
  const waiting = new Map<number, (batches: readonly EntryBatch[] | 'compacted') => void>()
  let nextId = 1
  return {
    read(request, done) {
      waiting.set(nextId, done)
      post(nextId++, request)
    },
    onRead(id, batches) {
      const done = waiting.get(id)
      waiting.delete(id)
      done?.(batches)
    },
  }
}

type OfBulk = { readonly onMessage: (message: FromBulk) => void; readonly onError: (error: unknown) => void }

/** It loads its code while this thread reads the data. */
function startLogThread(): Worker {
  const options = { name: 'log', trackUnmanagedFds: false, resourceLimits: { maxYoungGenerationSizeMb: 8 } }
  const wal = new Worker(new URL('../wal/wal-worker.ts', import.meta.url), options)
  wal.unref()
  return wal
}

function startThreads(wal: Worker, options: ReplicaOptions, node: RecoveredNode, ofBulk: OfBulk): Threads {
  const [walEnd, replicaEnd] = createPipes(createBell(), createBell())
  const log: LogOfThread = {
    state: packWal(node.wal),
    flushThreshold: options.walFlushThreshold,
    lends: !options.cluster,
    replica: replicaEnd,
  }
  wal.ref()
  wal.postMessage(log, [replicaEnd.port])
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
      name: 'bulk',
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
    walEnd,
    toLog: createSender(walEnd, TO_WAL),
    toBulk: (message) => {
      bulk ??= startBulk()
      bulk.port.postMessage(message)
    },
    stopBulk: async () => {
      await bulk?.worker.terminate()
    },
  }
}

/** Reads back the data on disk, a little at a time, starting an hour after the start of the node. */
function startScrubbing(threads: Threads): NodeJS.Timeout {
  let steps = 0
  return setInterval(() => {
    if (++steps * SCRUB_STEP_MS >= SCRUB_AFTER_MS) threads.toBulk({ type: 'scrub' })
  }, SCRUB_STEP_MS)
}

type ReplicaParts = {
  readonly env: Env
  readonly options: ReplicaOptions
  readonly node: RecoveredNode
  readonly threads: Threads
  readonly send: (message: FromReplica) => void
  readonly raft: Raft
  readonly shard: ShardPart | undefined
  readonly logReads: LogReads
  readonly toLog: (message: ToWal) => void
}

function assemble({ env, options, node, threads, send, raft, shard, logReads, toLog }: ReplicaParts): Replica {
  const { store, context, directory } = node
  const snapshotIndex = node.snapshot?.manifest.index ?? 0
  return createReplica({
    env,
    raft,
    machine: {
      apply: (index, bytes, start, end) => applyCommand(context, index, bytes, start, end),
      publish: (index) => publish(store, index),
      digestMarks: () => context.marks,
      newestMark: () => context.newestMark,
      digest: () => stateDigest(store.memory),
      lastMaintenanceDay: () => state(store.memory, STATE.lastMaintenanceDay),
      latestTimeMs: () => latestTime(store.memory),
      packagesBefore: (day) => packagesBefore(store.memory, day),
      isUnordered: () => unorderedTables(store.memory).length > 0,
      orderTables: () => orderTables(store.memory),
      sweep: () => sweepOne(store),
      hasDeleted: () => hasDeleted(store),
      prepareDeletes: () => sumSegments(store, SUMMED_ROWS),
      featureLevel: () => featureLevel(store.memory),
      indexBase: () => indexBase(store.memory),
      budgetUse: () => budgetUse(store),
      stays: staysOf(store),
      lacksSparePages: () => lacksSparePages(store),
      hurrySnapshot: () => hurrySnapshot(store),
      time: {
        dayAt: (timeMs) => dayAt(store.memory, timeMs),
        noteDay: (day) => noteShardDay(store.memory, day),
        effectsOf: (timeMs) => effectsOfSetTime(store.memory, timeMs),
        lastSet: () => lastSetTime(store.memory),
      },
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
    log: toLog,
    readLog: logReads.read,
    onFatal: (failure) => fail(send, errorOf(failure)),
    onMaintained: (day, removedPackages) => send({ type: 'maintained', day, removedPackages }),
    onReserve: () => releaseReserve(directory),
    space: () => spaceOf(env.disk, directory),
    snapshotIntervalMs: options.snapshotIntervalMs,
    snapshotTriggerCount: options.snapshotTriggerCount,
    snapshotIndex,
    tornTailBytes: node.tornTailBytes,
    acceptDay: options.acceptDay,
    lastTimeMs: node.lastTimeMs,
  })
}

/** A standalone node has its own feature level and its own memory. */
function keepRules(replica: Replica, store: Store): void {
  if (raiseFeatureLevel(replica, FEATURE_LEVEL)) setMemoryBudget(replica, memoryBudgetOf(store))
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

/**
 * A new shard logs what all replicas must agree on: its random bits (docs/design/consensus.md#formation) and the
 * settings that change results.
 */
function beginShard(replica: Replica, node: RecoveredNode, options: ReplicaOptions): void {
  const { memory } = node.store
  if (!hasGenesis(memory)) {
    proposeOwn(replica, KIND.genesis, replica.env.random.bytes(16))
    proposeOwn(replica, KIND.settings, encodeSettings(options.sessionBytesMax))
    return
  }
  const logged = state(memory, STATE.sessionBytesMax)
  if (logged === options.sessionBytesMax) return
  replica.env.log.warn(
    { logged, configured: options.sessionBytesMax },
    'session_table_bytes: using the value in the log',
  )
}

/** Names of members in the order of their ids. */
function namesOf({ members }: Configuration, ids: readonly number[]): string[] {
  return members.filter(({ id }) => ids.includes(id)).map(({ node }) => node)
}

function serve(attention: Attention, replica: Replica, shard: ShardPart | undefined, pipe: ServingEnd): void {
  const send = createSender(pipe, ANSWERS)
  const direct = attachDirectReplies(pipe.direct)
  const sink = addSink(replica, (answers) => {
    const taken = takeOffers(direct, answers)
    send(answers, [answers], taken.areAll)
    writeReplies(direct, taken)
  })
  listen(attention, pipe, REQUESTS, (batch) => {
    if (batch instanceof ArrayBuffer) return proposeBatch(replica, sink, batch)
    if (batch instanceof Uint8Array) return answerStayReads(replica, sink, batch)
    assert(shard !== undefined, 'a node alone answers reads without a confirmation')
    shard.requestReads(sink, batch)
    pump(replica)
    applyCommitted(replica)
  })
}

function onBulkMessage(
  env: Env,
  replica: Replica,
  node: RecoveredNode,
  message: Exclude<FromBulk, { readonly type: 'night' }>,
  send: (message: FromReplica) => void,
  shard: ShardPart | undefined,
  logReads: LogReads,
): void {
  switch (message.type) {
    case 'written':
      endSnapshot(node)
      snapshotWritten(replica, message.index, message.term, message.durationMs)
      return sendSnapshotInfo(env, node.directory.path, send)
    case 'gave-up': {
      const ranOutOfPages = node.store.writer.spare.failed
      endSnapshot(node)
      return snapshotFailed(replica, message.reason, ranOutOfPages)
    }
    case 'log':
      return logReads.onRead(message.id, message.batches)
    case 'exchanged':
      return shard?.onExchanged(message.id, message.answer)
    case 'damaged':
      replica.corruptions++
      return env.log.error({ code: message.code, ...message.fields }, 'snapshot chunk no longer verifies')
    case 'failed':
      // Ends this thread, as any other uncaught error does.
      throw errorOf({ code: message.code, fields: message.fields, message: '' })
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

type Stopping = {
  readonly replica: Replica
  readonly shard: ShardPart | undefined
  readonly node: RecoveredNode
  readonly threads: Threads
  readonly timers: readonly NodeJS.Timeout[]
  /** Whether the log ended as after a clean shutdown, once it has. */
  readonly isClosed: Promise<boolean>
  readonly send: (message: FromReplica) => void
}

async function stop({ replica, shard, node, threads, timers, isClosed, send }: Stopping): Promise<void> {
  await shard?.leave()
  // The first timer continues: writers that wait for other members still get their unknown outcome in time
  // (docs/design/consensus.md#outcome-of-a-proposal).
  for (const timer of timers.slice(1)) clearInterval(timer)
  await drainReplica(replica)
  clearInterval(timers[0])
  await shard?.close()
  replica.log({ type: 'close' })
  const isClean = await isClosed
  await threads.stopBulk()
  if (isClean) writeClean(node.directory)
  closeDataDirectory(node.directory)
  send({ type: 'stopped' })
}

function fail(send: (message: FromReplica) => void, error: unknown): void {
  send({ type: 'failed', ...failureOf(error) })
}

/** Ends this thread, and with it the replica, after an error that no callback caught. */
function endSuspect(
  env: Env,
  options: ReplicaOptions,
  node: RecoveredNode,
  error: unknown,
  send: (message: FromReplica) => void,
): void {
  noteMismatch(env, options, error, node.context.agreedIndex)
  const failure = failureOf(error)
  const isUnknown = failure.code === 'internal'
  send({ type: 'failed', ...failure, code: isUnknown ? 'assertion_failed' : failure.code })
  process.exit(1)
}

/** Records the mismatch before the process ends, so that the next start does not begin with the wrong state. */
function noteMismatch(env: Env, { dataDir }: ReplicaOptions, error: unknown, agreedIndex: number): void {
  if (!(error instanceof VacancyError && error.code === 'digest_mismatch')) return
  const agreed = agreedIndex > 0 ? ` It agreed with the log at entry ${agreedIndex}.` : ''
  try {
    writeNote(env, dataDir, SUSPECT_FILE, `${error.message}${agreed}`)
  } catch (cause) {
    env.log.error({ err: cause }, 'recording the digest mismatch in the data directory failed')
  }
}

const nothing = () => undefined
const SILENT: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing }

const port = parentPort
if (port) {
  const options = workerData as ReplicaOptions
  run(port, options).catch((error: unknown) => {
    // A standalone node finds the same mismatch at each start. A member can get the state from others.
    if (options.cluster) noteMismatch(createEnv(SILENT), options, error, 0)
    fail((message) => port.postMessage(message), error)
  })
}
