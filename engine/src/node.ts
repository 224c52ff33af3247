/**
 * One node: opens all parts in order and closes them in reverse (docs/design/overview.md). The main thread runs HTTP
 * and supervises the others: the replica (the only writer), the serving threads, and the threads that the replica
 * starts.
 */

import { cpus } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { type Transferable, Worker } from 'node:worker_threads'
import { type CodecList, ERRORS, type ErrorRow, EXIT, VacancyError } from '@vacancy/shared'
import { warnOfDescriptors } from '@vacancy/shared/descriptors'
import { LOCK_LOST_MS } from '@vacancy/shared/file-lock'
import {
  type Log,
  loadTls,
  openTls,
  openTokens,
  type TlsFiles,
  type TlsMaterial,
  tlsOptionsOf,
} from '@vacancy/shared/node'
import type { FromReplica, ToReplica } from './cluster/messages.ts'
import type { NightRead } from './cluster/nights.ts'
import { createCells } from './cluster/shared-status.ts'
import type { ClusterNodeOptions, openShard } from './cluster-node.ts'
import { type EngineConfig, memoryBytes, memoryShortage, requireNodeIdOf, servingThreads } from './config.ts'
import { usableCores } from './cores.ts'
import { lacksLock, ownerOf, requireFree } from './data/data-directory.ts'
import type { ReplicaOptions } from './data/replica-options.ts'
import { compileInBackground, createEnv, type Env } from './env.ts'
import { errorOf } from './failure.ts'
import { clockReason, clusterConditions, createConditions, followConditions, healthOf } from './http/conditions.ts'
import type {
  Certificate,
  ClusterAnswer,
  ClusterHandle,
  NodeHandle,
  SlowRequest,
  Unavailable,
  UnavailableReason,
} from './http/handle.ts'
import type { HttpServer } from './http/node.ts'
import { REASONS } from './http/reasons.ts'
import { requireKernels } from './kernels.ts'
import { SLICE_WORK } from './search/search.ts'
import type { ReplicaStatus, SnapshotInfo } from './status.ts'
import { segmentCounts } from './store/read.ts'
import { attachMemory, type Memory, refusesForMemory } from './store/store.ts'
import { isClosed } from './store/version.ts'
import { countersOf, startServingThreads, startTcpServer, type TcpServer } from './tcp/server.ts'
import { FIRST_SERVING_READER, planThreads, type ThreadPlan } from './thread-plan.ts'
import { createServingPipes } from './threads/serving-pipe.ts'
import { startMaintenance, watchCodecs, watchCores, watchEnds, watchReplica } from './timed-tasks.ts'
import { checkPeerTls } from './transport/peer-tls.ts'

const OWNER_LOOK_MS = 20

export type NodeOptions = {
  readonly cluster: ClusterNodeOptions | undefined
  readonly config: EngineConfig
  readonly codecs: CodecList
  readonly dataDir: string
  readonly shardId: string | undefined
  readonly nodeId: string
  readonly version: string
  readonly tcpHost: string
  readonly apiHost: string
  readonly authFile: string | undefined
  readonly tcpTls: TlsFiles | undefined
  readonly apiTls: TlsFiles | undefined
  readonly acceptLoss: boolean
  readonly rejoin: boolean
  readonly acceptDay: number
  readonly drainSeconds: number
  readonly logFormat: string
  /** Added to the wall clock, for tests that change it; 0 in production. */
  readonly clockOffsetMs: number
  readonly log: Log
  /** Called when the node ends on its own. */
  readonly onEnd: (exitCode: number) => void
}

export type RunningNode = {
  readonly tcpPort: number
  readonly apiPort: number
  readonly handle: NodeHandle
  /** Finishes requests in flight, hands over leadership, syncs, closes. */
  readonly stop: () => Promise<void>
  readonly reload: () => void
}

const MAIN_READER = 0
/** Collects young garbage early: by default each thread would keep tens of megabytes of it. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 8 }
const SLOW_KEPT = 100

type State = ReturnType<typeof createState>

/**
 * A process that was just killed keeps its folder and its ports until the system has reclaimed its memory. If the owner
 * is not ending, the next step reports it.
 *
 * A folder without its lock may be in use by a node in another container whose lock was deleted. That node notices it,
 * and ends before this one opens the folder.
 */
async function waitForOwner(env: Env, dataDir: string): Promise<void> {
  const until = env.clock.monotonicMs() + LOCK_LOST_MS
  const mayEnd = () => ownerOf(env, dataDir) !== 0 || lacksLock(env, dataDir)
  while (mayEnd() && env.clock.monotonicMs() < until) await wait(OWNER_LOOK_MS)
}

/** Starts a node. Resolves when it serves; throws VacancyError when it cannot. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  requireKernels('search', 'snapshot')
  const { config, log, codecs } = options
  const settings = config.values
  const wallMs = () => Date.now() + options.clockOffsetMs
  const startedMs = wallMs()
  const cores = usableCores()
  const threads = servingThreads(settings, cores)
  const counters = countersOf(threads)
  const state = createState(options)
  const setUnavailable = (reason: UnavailableReason, detail: string) => {
    if (state.unavailable.get(reason)?.detail === detail) return
    state.unavailable.set(reason, { reason, detail, sinceMs: wallMs() })
    log.info({ reason, detail }, REASONS[reason].stops === 'nothing' ? 'needs attention' : 'unavailable')
  }
  setUnavailable('starting', 'starting threads')
  warnOfDescriptors(log, settings.tcpMaxConnections)
  const shortage = memoryShortage(settings)
  if (shortage !== '') log.warn({}, shortage)
  const env = createEnv(log)
  await waitForOwner(env, options.dataDir)
  requireFree(env, options.dataDir)
  let http: HttpServer | undefined

  const files = openFiles(options, state, () => http)
  const { tokens, tcpTls, apiTls } = files
  const cells = createCells()
  const plan = planThreads(settings, cores)
  const replicaOptions = replicaOptionsOf(options, plan, cells)

  // Created before the replica thread, so that its first messages about the shard have a receiver.
  const clustered = options.cluster && (await import('./cluster-node.ts'))
  const replica = startReplica(replicaOptions)
  const sendToReplica: SendToReplica = (message, transfer = []) => replica.worker.postMessage(message, transfer)
  const shard =
    options.cluster &&
    clustered?.openShard({
      options: options.cluster,
      self: { nodeId: options.nodeId, shardId: options.shardId ?? '', zoneId: options.cluster.zoneId },
      codecs,
      heartbeatMs: settings.registryHeartbeatSecs * 1000,
      apiUrl: `${apiTls ? 'https' : 'http'}://${options.apiHost}:${settings.apiPort}`,
      apiScheme: apiTls ? 'https' : 'http',
      apiPort: () => settings.apiPort,
      dataDir: options.dataDir,
      loadUrls: settings.loadUrls,
      log,
      send: sendToReplica,
      health: () => healthOf(handle),
      segments: () => segmentsOf(state),
      isLoaded: () => state.memory !== undefined,
    })
  const conditions = createConditions(state.unavailable)
  let clusterCertificate: CertificateEnds | undefined
  const handle = createHandle({
    options,
    state,
    counters,
    threads,
    startedMs,
    cores,
    wallMs,
    sendToReplica,
    shard: shard?.handle,
    files,
    clusterCertificate: () => clusterCertificate,
  })
  const onShard = (message: OfShard) => {
    if (message.type === 'certificate') clusterCertificate = message
    takeShardMessage(message, { state, shard, conditions, setUnavailable, wallMs, log })
  }
  const recovered = follow(replica, state, options, setUnavailable, onShard)
  // The code that awaits it below gets the failure. Until then it must not be an unhandled rejection.
  recovered.catch(() => undefined)
  // Loaded while the replica thread reads the data, so that a start waits for the slower of the two only.
  const { createHttpServer } = await import('./http/node.ts')
  http = createHttpServer({
    handle,
    config,
    tokens: tokens?.tokens(),
    tls: apiTls?.material(),
    clock: { wallMs, monotonicMs: () => performance.now() },
    log,
    host: options.apiHost,
    port: settings.apiPort,
    dataDir: options.dataDir,
  })
  const api = http
  const serving = startServingThreads(threads)
  const cleanUp: (() => Promise<void> | void)[] = [
    () => api.close(),
    () => tokens?.close(),
    () => tcpTls?.close(),
    () => apiTls?.close(),
  ]
  try {
    const apiPort = await api.listening
    // Before it is active, so that bridges and the control plane can watch the start and its reasons.
    if (shard) cleanUp.push(() => shard.stop())
    shard?.start()
    const ready = await recovered
    state.memory = attachMemory(ready.memory)
    state.shardId = ready.shardId
    state.codecMismatch = ready.codecMismatch
    // Only now: the start waits for compiled code, too.
    compileInBackground()
    const parts = { serving, plan, ready, files, counters, cells: shard && cells }
    const tcp = await startTcp(options, state, parts, sendToReplica)
    state.tcp = tcp
    for (const reason of ['starting', 'recovering', 'loading'] as const) state.unavailable.delete(reason)
    cleanUp.push(...watchAll(options, state, sendToReplica, shard?.handle), watchReplica(state, setUnavailable))
    cleanUp.push(watchEnds(handle, state, setUnavailable))
    cleanUp.push(watchCodecs(options.dataDir, state, setUnavailable))
    log.info({ tcpPort: tcp.port, apiPort, seconds: ready.seconds, servingThreads: threads }, 'active')
    return {
      tcpPort: tcp.port,
      apiPort,
      handle,
      stop: () => stopNode(options, state, replica, cleanUp, setUnavailable),
      reload: () => {
        tokens?.reload()
        handle.rotateTls()
      },
    }
  } catch (error) {
    for (const close of cleanUp) await close()
    await state.tcp?.stop()
    await Promise.all([replica.worker, ...serving].map((worker) => worker.terminate()))
    throw error
  }
}

type ShardMessageParts = {
  readonly state: State
  readonly shard: ReturnType<typeof openShard> | undefined
  readonly conditions: ReturnType<typeof createConditions>
  readonly setUnavailable: (reason: UnavailableReason, detail: string) => void
  readonly wallMs: () => number
  readonly log: Log
}

/** Handles a message of the replica thread about the shard. */
function takeShardMessage(message: OfShard, parts: ShardMessageParts): void {
  const { state, shard, conditions, setUnavailable, wallMs, log } = parts
  if (message.type === 'admin-reply' && !shard) {
    state.waiting.get(message.id)?.(message.answer)
    state.waiting.delete(message.id)
    return
  }
  if (message.type !== 'certificate') shard?.onReplica(message)
  // Until the node is a member, its loaded data wait. The reason is reported separately.
  if (message.type === 'bootstrap' && state.unavailable.has('starting')) {
    state.unavailable.delete('recovering')
    state.unavailable.delete('loading')
    setUnavailable('starting', 'its membership in the shard is not decided yet')
  }
  if (!shard || message.type === 'certificate' || message.type === 'admin-reply') return
  const { info, registry, resolver } = shard.handle
  const now = clusterConditions({ info: info(), replica: state.status, registry: registry(), resolver: resolver() })
  followConditions(conditions, now, wallMs(), log)
}

function createState({ shardId }: NodeOptions) {
  return {
    memory: undefined as Memory | undefined,
    status: undefined as ReplicaStatus | undefined,
    snapshot: undefined as SnapshotInfo | undefined,
    codecMismatch: undefined as string | undefined,
    shardId: shardId ?? '',
    unavailable: new Map<UnavailableReason, Unavailable>(),
    slow: [] as SlowRequest[],
    /** The last known segments. */
    segments: [] as readonly { readonly name: string; readonly properties: number }[],
    /** Since the last status of the replica. */
    silentLooks: 0,
    tcp: undefined as TcpServer | undefined,
    /** Operator requests that the replica of a standalone node has not answered yet. */
    waiting: new Map<number, (answer: ClusterAnswer) => void>(),
    /** Reads of the history of nights that the replica has not answered yet. */
    nights: new Map<number, (read: NightRead | string) => void>(),
    nextRequest: 1,
    stopping: false,
    /** The replica thread ended on its own: there is no reply to wait for. */
    hasFailed: false,
  }
}

/** Tokens and certificates, which are reloaded on request. Changes are passed to their users. */
function openFiles(options: NodeOptions, state: State, http: () => HttpServer | undefined) {
  const { log } = options
  const tokens = options.authFile
    ? openTokens({
        file: options.authFile,
        log,
        onReload: (entries) => {
          state.tcp?.send({ type: 'tokens', tokens: entries })
          http()?.setTokens(entries)
        },
      })
    : undefined
  const tcpTls = options.tcpTls
    ? openTls({
        files: options.tcpTls,
        log,
        onReload: (material) => state.tcp?.send({ type: 'tls', options: tlsOptionsOf(material) }),
      })
    : undefined
  const apiTls = options.apiTls
    ? openTls({ files: options.apiTls, log, onReload: (material) => http()?.rotateTls(material) })
    : undefined
  return { tokens, tcpTls, apiTls }
}

type NodeFiles = ReturnType<typeof openFiles>

/** Daily maintenance and the watch on the number of cores. @returns functions that stop them */
function watchAll(
  options: NodeOptions,
  state: State,
  sendToReplica: SendToReplica,
  shard: ClusterHandle | undefined,
): (() => void)[] {
  const settings = options.config.values
  return [
    startMaintenance({
      hour: settings.maintenanceHour,
      status: () => state.status,
      maintain: () => sendToReplica({ type: 'maintain', force: false }),
    }),
    watchCores({
      sample: () => {
        const processors = cpus().length
        return processors === 0 ? undefined : `${usableCores()}/${processors}`
      },
      isActive: settings.cpuWatch,
      whyStay: async () => (shard ? await whyStay(shard, options.drainSeconds) : ''),
      log: options.log,
      onChange: () => options.onEnd(EXIT.coresChanged),
    }),
  ]
}

/** Beyond `--drain-secs`, after which a process that is asked to stop ends at once (cli/run.ts). */
const STOP_MS = 5_000
/** A permission that arrives later, after a stall of this process, counts no more. */
const ASKED_MS = 5_000

/** Why a member may not end by itself now; '' when it may. The voters of a shard ask its leader (cluster/leaves.ts). */
async function whyStay(shard: ClusterHandle, drainSeconds: number): Promise<string> {
  const { members, nodeId } = shard.info()
  const voters = members.filter(({ isVoter }) => isVoter).map(({ id }) => id)
  if (!voters.includes(nodeId) || voters.length === 1) return ''
  const askedMs = performance.now()
  const { status, text } = await shard.request({ kind: 'leave', forMs: ASKED_MS + drainSeconds * 1000 + STOP_MS })
  if (status !== 202) return text
  return performance.now() < askedMs + ASKED_MS ? '' : 'the permission of the leader came late'
}

/** Start options of the replica thread. */
function replicaOptionsOf(
  options: NodeOptions,
  { readers, loadThreads, scratchBytes }: ThreadPlan,
  cells: ReturnType<typeof createCells>,
): ReplicaOptions {
  const { config, codecs } = options
  const settings = config.values
  return {
    dataDir: options.dataDir,
    shardId: options.shardId,
    nodeId: options.nodeId,
    codecs: codecs.names,
    memoryBytes: memoryBytes(settings),
    readers,
    scratchBytes,
    sessionBytesMax: settings.sessionTableBytes,
    roomsHint: settings.avgRoomTypesPerProperty,
    snapshotIntervalMs: settings.snapshotIntervalSec * 1000,
    snapshotTriggerCount: settings.snapshotTriggerCount,
    walFlushThreshold: settings.walFlushThreshold,
    walFileBytes: settings.walFileBytes,
    loadThreads,
    acceptLoss: options.acceptLoss,
    rejoin: options.rejoin,
    acceptDay: options.acceptDay,
    cluster: options.cluster && {
      zoneId: options.cluster.zoneId,
      initialVoters: options.cluster.initialVoters,
      seeds: options.cluster.seeds,
      formWithMajority: options.cluster.formWithMajority,
      tickMs: settings.raftTickMs,
      electionTicks: settings.raftElectionTick,
      heartbeatTicks: settings.raftHeartbeatTick,
      host: options.cluster.host,
      port: settings.quicPort,
      tls: options.cluster.tls,
      requireNodeId: requireNodeIdOf(config),
      resolver: options.cluster.resolver,
      apiHost: options.apiHost,
      apiPort: settings.apiPort,
      cells,
    },
  }
}

type HandleParts = {
  readonly options: NodeOptions
  readonly state: State
  readonly counters: ReturnType<typeof countersOf>
  readonly threads: number
  readonly startedMs: number
  readonly cores: number
  readonly wallMs: () => number
  readonly sendToReplica: SendToReplica
  readonly shard: NodeHandle['cluster']
  readonly files: NodeFiles
  /** When the certificate for traffic between nodes expires, ms; undefined without one. */
  readonly clusterCertificate: () => CertificateEnds | undefined
}

/** The node as the HTTP API reads and controls it. */
function createHandle(parts: HandleParts): NodeHandle {
  const { options, state, counters, threads, startedMs, cores, wallMs, sendToReplica, shard, clusterCertificate } =
    parts
  const { config, codecs } = options
  const { tokens, tcpTls, apiTls } = parts.files
  return {
    version: options.version,
    get shardId() {
      return state.shardId
    },
    startedMs,
    coresAtStart: cores,
    coresNow: () => usableCores(),
    // While a snapshot of another node replaces the state, there is no state to read.
    memory: () => (state.memory && !isClosed(state.memory) ? state.memory : undefined),
    reader: MAIN_READER,
    codecs,
    get codecMismatch() {
      return state.codecMismatch
    },
    counters,
    connectionsOpen: () => state.tcp?.connectionsOpen() ?? 0,
    servingThreads: threads,
    unavailable: () => [...state.unavailable.values()],
    replica: () => state.status,
    snapshot: () => state.snapshot,
    slow: () => state.slow,
    wallMs,
    saveSnapshot: () => {
      if (!state.memory) return 'unavailable'
      if (state.status?.snapshotRunning) return 'running'
      sendToReplica({ type: 'snapshot', origin: 'requested' })
      return 'started'
    },
    maintain: (force) => {
      if (!state.memory) return 'unavailable'
      if (state.status?.maintenanceRunning) return 'running'
      sendToReplica({ type: 'maintain', force })
      return 'started'
    },
    setTime: (confirm) => {
      if (!state.memory) return Promise.resolve({ status: 503, text: 'the node has not loaded its data yet' })
      if (shard) return shard.request({ kind: 'set-time', confirm })
      return new Promise((resolve) => {
        const id = state.nextRequest++
        state.waiting.set(id, resolve)
        sendToReplica({ type: 'admin-request', id, what: { kind: 'set-time', confirm } })
      })
    },
    changeSetting: (name, value) => {
      if (!state.memory) return Promise.resolve({ status: 503, text: 'the node has not loaded its data yet' })
      if (shard) return shard.request({ kind: 'setting', name, value })
      return new Promise((resolve) => {
        const id = state.nextRequest++
        state.waiting.set(id, resolve)
        sendToReplica({ type: 'admin-request', id, what: { kind: 'setting', name, value } })
      })
    },
    night: (ask, from) => {
      const id = state.nextRequest++
      return new Promise((resolve) => {
        state.nights.set(id, resolve)
        sendToReplica({ type: 'night', id, ask, from })
      })
    },
    shutdown: () => options.onEnd(EXIT.ok),
    reloadTokens: () => tokens?.reload(),
    rotateTls: () => {
      tcpTls?.reload()
      apiTls?.reload()
      const peers = options.cluster?.tls
      if (!peers) return tcpTls !== undefined || apiTls !== undefined
      // The thread that uses the certificate loads it later. This check reports an unusable one to the caller now.
      checkPeerTls(
        loadTls({ cert: peers.cert, key: peers.key, clientCa: peers.ca }),
        options.nodeId,
        requireNodeIdOf(config),
      )
      sendToReplica({ type: 'reload' })
      return true
    },
    certificates: () => {
      return [
        ...endsOf('tcp', tcpTls?.material()),
        ...endsOf('api', apiTls?.material()),
        ...endsOf('cluster', clusterCertificate()),
      ]
    },
    tokens: () => tokens?.tokens() ?? [],
    cluster: shard,
  }
}

type CertificateEnds = Pick<TlsMaterial, 'notAfterMs' | 'authorityNotAfterMs'>

function endsOf(listener: 'tcp' | 'api' | 'cluster', ends: CertificateEnds | undefined): Certificate[] {
  if (!ends) return []
  const { notAfterMs, authorityNotAfterMs } = ends
  if (authorityNotAfterMs === undefined || listener === 'api') return [{ listener, notAfterMs }]
  return [
    { listener, notAfterMs },
    { listener: `${listener}_authority`, notAfterMs: authorityNotAfterMs },
  ]
}

/** While other data replace those of the store, the last segments: the registry must not get an empty list. */
function segmentsOf(state: State): State['segments'] {
  const { memory } = state
  if (!memory) return []
  try {
    state.segments = segmentCounts({ memory, reader: MAIN_READER })
  } catch (error) {
    if (!(error instanceof VacancyError && error.code === 'not_serving')) throw error
  }
  return state.segments
}

type Replica = { readonly worker: Worker }
type SendToReplica = (message: ToReplica, transfer?: Transferable[]) => void

function startReplica(workerData: ReplicaOptions): Replica {
  // The log thread uses descriptors opened by this one: none may be closed because a thread ends.
  const options = { name: 'replica', workerData, trackUnmanagedFds: false, resourceLimits: THREAD_LIMITS }
  return { worker: new Worker(new URL('./cluster/replica-worker.ts', import.meta.url), options) }
}

/** Messages of the replica thread about the shard. */
type OfShard = Extract<FromReplica, { type: 'bootstrap' | 'cluster' | 'admin-reply' | 'certificate' }>

/** Handles the replica's messages for as long as it lives. @returns when it is ready */
function follow(
  { worker }: Replica,
  state: State,
  options: NodeOptions,
  setUnavailable: (reason: UnavailableReason, detail: string) => void,
  onShard: (message: OfShard) => void,
): Promise<Extract<FromReplica, { type: 'ready' }>> {
  const { log } = options
  return new Promise((resolve, reject) => {
    let isReady = false
    const fail = (error: VacancyError, exit: number) => {
      if (state.hasFailed) return
      state.hasFailed = true
      if (!isReady) return reject(error)
      if (state.stopping) return
      const reason = failureReason(error)
      setUnavailable(reason, error.message)
      log.error({ err: error, exitCode: exit }, 'the replica thread stopped; the node ends')
      if (reason !== 'digest_mismatch') return options.onEnd(exit)
      // A differing state serves no more reads. `/ready` shows the reason for a while.
      void state.tcp?.stop()
      setTimeout(() => options.onEnd(exit), MISMATCH_SHOWN_MS)
    }
    worker.on('error', (error) => {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
      fail(new VacancyError('assertion_failed', { reason }), EXIT.assertion)
    })
    worker.on('message', (message: FromReplica) => {
      switch (message.type) {
        case 'phase':
          // The reason of a waiting shard follows from its reports (http/conditions.ts).
          if (message.phase === 'forming' || message.phase === 'joining') return undefined
          return setUnavailable(message.phase, message.detail)
        case 'bootstrap':
        case 'cluster':
        case 'admin-reply':
        case 'certificate':
          return onShard(message)
        case 'ready':
          isReady = true
          return resolve(message)
        case 'status':
          takeStatus(state, message.status, setUnavailable, log)
          return takeClock(state, message.status, options.cluster === undefined, setUnavailable, log)
        case 'snapshot':
          state.snapshot = message.info
          return undefined
        case 'night':
          state.nights.get(message.id)?.(message.read)
          state.nights.delete(message.id)
          return undefined
        case 'maintained':
          return log.info({ day: message.day, removedPackages: message.removedPackages }, 'maintenance done')
        case 'lost':
          for (const line of message.lines) log.warn({}, line)
          return undefined
        case 'log':
          return log[message.level](message.fields, message.message)
        case 'failed': {
          const error = errorOf(message)
          return fail(error, exitOf(error))
        }
        default:
          return undefined
      }
    })
  })
}

/** The reason of `/ready` for an error that ends the node. */
function failureReason({ code }: VacancyError): UnavailableReason {
  switch (code) {
    case 'digest_mismatch':
    case 'disk_failed':
      return code
    case 'memory_too_small':
      return 'memory_full'
    default:
      return 'stopping'
  }
}

/** How long `/ready` returns the reason before the process ends. */
const MISMATCH_SHOWN_MS = 10_000

function exitOf(error: VacancyError): number {
  const row: ErrorRow = ERRORS[error.code]
  return row.exit ?? EXIT.failure
}

/** Conditions under which the node continues but refuses some requests. Each is logged once, and once when it ends. */
function takeStatus(
  state: State,
  status: ReplicaStatus,
  setUnavailable: (reason: UnavailableReason, detail: string) => void,
  log: Log,
): void {
  const before = state.status
  state.status = status
  state.silentLooks = 0
  if (status.isStuck) setUnavailable('disk_stuck', 'a sync of the log has not returned')
  else if (state.unavailable.delete('disk_stuck')) log.info({ reason: 'disk_stuck' }, 'reason cleared')
  if (status.diskFull && !before?.diskFull) {
    setUnavailable('disk_full', `${status.diskFreeBytes} bytes are free; reads continue, writes are refused`)
  } else if (!status.diskFull && state.unavailable.delete('disk_full')) log.info({}, 'disk space available again')
  // A full disk has its own reason.
  const isLow = status.diskLow && !status.diskFull
  if (isLow && !state.unavailable.has('disk_low')) {
    setUnavailable('disk_low', `${status.diskFreeBytes} bytes are free`)
  } else if (!isLow && state.unavailable.delete('disk_low')) log.info({}, 'low disk space cleared')
  const isFull = state.memory !== undefined && refusesForMemory(state.memory)
  if (isFull) setUnavailable('memory_full', 'writes that need memory are refused; reads, updates and deletes continue')
  else if (state.unavailable.delete('memory_full')) log.info({}, 'memory available again')
  if (status.stays?.isFull) {
    const { ended, booked } = status.stays.evicted
    const detail = `${ended} ended stays and ${booked} bookings were forgotten before their time`
    setUnavailable('stays_full', detail)
  } else if (state.unavailable.delete('stays_full')) log.info({}, 'stays are remembered for their time again')
}

/** The clock difference of a member to the other voters is reported with the shard's conditions. */
function takeClock(
  state: State,
  { clock, lastMaintenanceDay }: ReplicaStatus,
  isAlone: boolean,
  setUnavailable: (reason: UnavailableReason, detail: string) => void,
  log: Log,
): void {
  const [reason, detail] = clockReason(clock, lastMaintenanceDay)
  if (reason === 'clock' || (reason && isAlone)) setUnavailable(reason, detail)
  for (const other of ['clock', ...(isAlone ? ['clock_suspect' as const] : [])] as const) {
    if (other !== reason && state.unavailable.delete(other)) log.info({ reason: other }, 'reason cleared')
  }
}

async function startTcp(
  options: NodeOptions,
  state: State,
  parts: {
    serving: readonly Worker[]
    plan: ThreadPlan
    ready: Extract<FromReplica, { type: 'ready' }>
    files: NodeFiles
    counters: ReturnType<typeof countersOf>
    cells: SharedArrayBuffer | undefined
  },
  sendToReplica: SendToReplica,
): Promise<TcpServer> {
  const { config, log, codecs } = options
  const settings = config.values
  const { tokens, tcpTls } = parts.files
  const tls = tcpTls?.material()
  const pipes = parts.serving.map(() => createServingPipes(parts.ready.bell))
  const starting = startTcpServer(
    {
      threads: parts.serving,
      host: options.tcpHost,
      port: settings.tcpPort,
      firstReader: FIRST_SERVING_READER,
      pipes: pipes.map(([servingEnd]) => servingEnd),
      memory: parts.ready.memory,
      codecs: codecs.names,
      datesMax: settings.maxDatesInQuery,
      calendarDays: settings.maxCalendarDays,
      queryLimit: settings.queryLimit,
      connectionsMax: settings.tcpMaxConnections,
      userTimeoutMs: settings.tcpUserTimeoutMs === 0 ? 0 : Math.max(200, settings.tcpUserTimeoutMs),
      keepaliveSeconds: settings.tcpKeepaliveSeconds,
      receiveBufferBytes: settings.tcpRecvBufferSize,
      sendBufferBytes: settings.tcpSendBufferSize,
      requireLogin: settings.tcpRequireLogin,
      // A standalone node has no other node to read from (docs/design/http.md#configuration has the key for clusters).
      leaderReads: parts.cells === undefined || settings.leaderReads,
      cells: parts.cells,
      tokens: tokens?.tokens(),
      tls: tls && tlsOptionsOf(tls),
      slabBytes: parts.plan.slabBytes,
      slabs: parts.plan.slabs,
      searchSliceWork: SLICE_WORK,
      clockOffsetMs: options.clockOffsetMs,
    },
    parts.counters,
    ({ command, milliseconds, rows, traceId, at }) =>
      noteSlow(state, { command, milliseconds, rows, traceId, atMs: at }),
    ({ remote, name, expiresMs }) =>
      log.warn({ remote, name, expired: new Date(expiresMs).toISOString() }, 'login refused: the token expired'),
    (error) => {
      log.error({ err: error }, 'a serving thread stopped, the node ends')
      options.onEnd(EXIT.assertion)
    },
  )
  for (const [, pipe] of pipes) sendToReplica({ type: 'serve', pipe }, [pipe.port])
  return await starting
}

function noteSlow(state: State, slow: SlowRequest): void {
  state.slow.push(slow)
  state.slow.sort((a, b) => b.milliseconds - a.milliseconds)
  state.slow.length = Math.min(state.slow.length, SLOW_KEPT)
}

async function stopNode(
  options: NodeOptions,
  state: State,
  { worker }: Replica,
  cleanUp: readonly (() => Promise<void> | void)[],
  setUnavailable: (reason: UnavailableReason, detail: string) => void,
): Promise<void> {
  if (state.stopping) return
  state.stopping = true
  setUnavailable('stopping', 'graceful shutdown requested')
  // Another node must lead before the clients of this node are disconnected (docs/design/storage.md#shutdown).
  if (options.cluster && !state.hasFailed) worker.postMessage({ type: 'leave' } satisfies ToReplica)
  if (!state.hasFailed) await state.tcp?.drain(options.drainSeconds * 1000)
  await state.tcp?.stop()
  const stopped = new Promise<void>((resolve) => {
    worker.on('message', (message: FromReplica) => {
      if (message.type === 'stopped') resolve()
    })
    worker.once('exit', () => resolve())
  })
  if (!state.hasFailed) {
    worker.postMessage({ type: 'stop' } satisfies ToReplica)
    await stopped
  }
  await worker.terminate()
  for (const close of [...cleanUp].reverse()) await close()
}
