/**
 * One node: opens everything in order, closes it in reverse (architecture.md). The main thread keeps the HTTP side and
 * watches over the others: replica (the one writer), serving threads, and what the replica starts itself.
 */

import { availableParallelism, cpus } from 'node:os'
import { MessageChannel, type Transferable, Worker } from 'node:worker_threads'
import { type CodecList, ERRORS, type ErrorRow, EXIT, VacancyError } from '@vacancy/shared'
import {
  type Log,
  loadTls,
  openTls,
  openTokens,
  type TlsFiles,
  type TlsMaterial,
  type TokenHash,
} from '@vacancy/shared/node'
import { createCells } from './cluster/cells.ts'
import type { FromReplica, ReplicaOptions, ToReplica } from './cluster/messages.ts'
import { checkPeerTls } from './cluster/peer-tls.ts'
import type { ClusterNodeOptions } from './clustered.ts'
import { type EngineConfig, type EngineSettings, memoryBytes, servingThreads } from './config.ts'
import { errorOf } from './failure.ts'
import { clusterConditions, createConditions, followConditions, healthOf } from './http/conditions.ts'
import type { NodeHandle, SlowRequest, Unavailable, UnavailableReason } from './http/handle.ts'
import type { HttpServer } from './http/node.ts'
import { REASONS } from './http/reasons.ts'
import { startMaintenance, watchCores } from './maintenance.ts'
import { hitBytes } from './search/parameters.ts'
import { CAPTURE_SCRATCH_BYTES } from './snapshot/capture.ts'
import { WORDS_SCRATCH_BYTES } from './snapshot/words.ts'
import type { ReplicaStatus, SnapshotInfo } from './status.ts'
import { segmentCounts } from './store/read.ts'
import { attachMemory, type Memory, refusesForMemory } from './store/store.ts'
import { isClosed } from './store/version.ts'
import { countersOf, startTcpServer, type TcpServer } from './tcp/server.ts'
import { SLAB_BYTES_MIN, SLABS, slabAreaBytes } from './tcp/slabs.ts'

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
  /** Added to the wall clock, for tests that turn it; 0 in production. */
  readonly clockOffsetMs: number
  readonly log: Log
  /** Called when the node must end by itself. */
  readonly onEnd: (exitCode: number) => void
}

export type RunningNode = {
  readonly tcpPort: number
  readonly apiPort: number
  readonly handle: NodeHandle
  /** Answers what is in flight, hands over, syncs, closes. */
  readonly stop: () => Promise<void>
  readonly reload: () => void
}

const MAIN_READER = 0
/** Reader 1 is the bulk thread's. */
const FIRST_SERVING_READER = 2
/** Young garbage is collected early: by default each thread would keep tens of megabytes of it. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 8 }
const SLOW_KEPT = 100
/** Scratch of the whole of a node's readers; more slabs than this are not reserved. */
const SLAB_AREA_BYTES_MAX = 64 << 20
/** Least memory for data, as a multiple of the scratch areas in it. */
const SCRATCH_ROOM = 1.25

type State = {
  memory: Memory | undefined
  status: ReplicaStatus | undefined
  snapshot: SnapshotInfo | undefined
  codecMismatch: string | undefined
  kernels: 'wasm' | 'typescript'
  shardId: string
  unavailable: Map<UnavailableReason, Unavailable>
  slow: SlowRequest[]
  /** Those that were seen last. */
  segments: readonly { readonly name: string; readonly properties: number }[]
  tcp: TcpServer | undefined
  stopping: boolean
  /** The replica thread ended by itself: there is nobody to wait for. */
  hasFailed: boolean
}

/** Starts a node. Resolves when it serves; throws VacancyError when it cannot. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { config, log, codecs } = options
  const settings = config.values
  const wallMs = () => Date.now() + options.clockOffsetMs
  const startedMs = wallMs()
  const cores = availableParallelism()
  const threads = servingThreads(settings, cores)
  const counters = countersOf(threads)
  const state: State = {
    memory: undefined,
    status: undefined,
    snapshot: undefined,
    codecMismatch: undefined,
    kernels: 'typescript',
    shardId: options.shardId ?? '',
    unavailable: new Map(),
    slow: [],
    segments: [],
    tcp: undefined,
    stopping: false,
    hasFailed: false,
  }
  const setUnavailable = (reason: UnavailableReason, detail: string) => {
    if (state.unavailable.get(reason)?.detail === detail) return
    state.unavailable.set(reason, { reason, detail, sinceMs: wallMs() })
    log.info({ reason, detail }, REASONS[reason].stops === 'nothing' ? 'somebody should look' : 'unavailable')
  }
  setUnavailable('starting', 'threads are being started')
  let http: HttpServer | undefined

  const tokens = options.authFile
    ? openTokens({
        file: options.authFile,
        log,
        onReload: (entries) => {
          state.tcp?.send({ type: 'tokens', tokens: entries })
          http?.setTokens(entries)
        },
      })
    : undefined
  const tcpTls = options.tcpTls
    ? openTls({
        files: options.tcpTls,
        log,
        onReload: ({ cert, key }) => state.tcp?.send({ type: 'tls', cert, key }),
      })
    : undefined
  const apiTls = options.apiTls
    ? openTls({ files: options.apiTls, log, onReload: (material) => http?.rotateTls(material) })
    : undefined

  const cells = createCells()
  const readers = FIRST_SERVING_READER + Math.max(threads, cores)
  const { slabBytes, slabs, scratchBytes } = scratchPlan(settings, readers)
  const replicaOptions: ReplicaOptions = {
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
    loadThreads: cores,
    acceptLoss: options.acceptLoss,
    rejoin: options.rejoin,
    acceptDay: options.acceptDay,
    forceTypescript: false,
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
      resolver: options.cluster.resolver,
      apiHost: options.apiHost,
      apiPort: settings.apiPort,
      cells,
    },
  }

  // Before the replica thread: what it says of the shard has a place to go from its first word on.
  const clustered = options.cluster && (await import('./clustered.ts'))
  const replica = startReplica(replicaOptions)
  const askReplica: AskReplica = (message, transfer = []) => replica.worker.postMessage(message, transfer)
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
      ask: askReplica,
      health: () => healthOf(handle),
      segments: () => segmentsOf(state),
      isLoaded: () => state.memory !== undefined,
    })
  const conditions = createConditions(state.unavailable)
  let clusterCertificate: number | undefined
  const handle: NodeHandle = {
    version: options.version,
    get shardId() {
      return state.shardId
    },
    startedMs,
    coresAtStart: cores,
    coresNow: availableParallelism,
    // While a snapshot of another node takes the place of the state there is nothing to read.
    memory: () => (state.memory && !isClosed(state.memory) ? state.memory : undefined),
    reader: MAIN_READER,
    codecs,
    get codecMismatch() {
      return state.codecMismatch
    },
    counters,
    connectionsOpen: () => state.tcp?.connectionsOpen() ?? 0,
    servingThreads: threads,
    kernels: () => state.kernels,
    unavailable: () => [...state.unavailable.values()],
    replica: () => state.status,
    snapshot: () => state.snapshot,
    slow: () => state.slow,
    wallMs,
    saveSnapshot: () => {
      if (!state.memory) return 'unavailable'
      if (state.status?.snapshotRunning) return 'running'
      askReplica({ type: 'snapshot', origin: 'requested' })
      return 'started'
    },
    maintain: (force) => {
      if (!state.memory) return 'unavailable'
      if (state.status?.maintenanceRunning) return 'running'
      askReplica({ type: 'maintain', force })
      return 'started'
    },
    shutdown: () => options.onEnd(EXIT.ok),
    reloadTokens: () => {
      if (!tokens) throw new VacancyError('invalid_tokens', { reason: 'this node has no auth file (--auth-file)' })
      return tokens.reload()
    },
    rotateTls: () => {
      tcpTls?.reload()
      apiTls?.reload()
      const peers = options.cluster?.tls
      if (!peers) return
      // The thread that uses it takes it later: whoever asks hears now whether it can.
      checkPeerTls(loadTls({ cert: peers.cert, key: peers.key, clientCa: peers.ca }), options.nodeId)
      askReplica({ type: 'reload' })
    },
    certificates: () => [
      ...(tcpTls ? [{ listener: 'tcp' as const, notAfterMs: tcpTls.material().notAfterMs }] : []),
      ...(apiTls ? [{ listener: 'api' as const, notAfterMs: apiTls.material().notAfterMs }] : []),
      ...(clusterCertificate === undefined ? [] : [{ listener: 'cluster' as const, notAfterMs: clusterCertificate }]),
    ],
    cluster: shard?.handle,
  }
  const onShard = (message: OfShard) => {
    if (message.type === 'certificate') clusterCertificate = message.notAfterMs
    else shard?.onReplica(message)
    // Until it is a member its own data wait, loaded; what it waits for stands beside.
    if (message.type === 'bootstrap' && state.unavailable.has('starting')) {
      state.unavailable.delete('recovering')
      state.unavailable.delete('loading')
      setUnavailable('starting', 'its part in the shard is not settled yet')
    }
    if (!shard || message.type === 'certificate' || message.type === 'asked') return
    const { info, registry, resolver } = shard.handle
    const now = clusterConditions({ info: info(), replica: state.status, registry: registry(), resolver: resolver() })
    followConditions(conditions, now, wallMs(), log)
  }
  const recovered = follow(replica, state, options, setUnavailable, onShard)
  // Whoever waits for it below hears of a failure; until then it is nobody's.
  recovered.catch(() => undefined)
  // Loaded while the replica thread reads the data: a start waits for the longer of the two only.
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
  })
  const api = http
  const cleanUp: (() => Promise<void> | void)[] = [
    () => api.close(),
    () => tokens?.close(),
    () => tcpTls?.close(),
    () => apiTls?.close(),
  ]
  try {
    const apiPort = await api.listening
    // Before it is active, so that bridges and the control plane watch it come up, or see what it waits for.
    if (shard) cleanUp.push(() => shard.stop())
    shard?.start()
    const ready = await recovered
    state.memory = attachMemory(ready.memory)
    state.shardId = ready.shardId
    state.codecMismatch = ready.codecMismatch
    const tcp = await startTcp(
      options,
      state,
      {
        threads,
        slabBytes,
        slabs,
        ready,
        tokens: tokens?.tokens(),
        tls: tcpTls?.material(),
        counters,
        cells: shard && cells,
      },
      askReplica,
    )
    state.tcp = tcp
    state.kernels = tcp.kernels
    state.unavailable.delete('starting')
    state.unavailable.delete('recovering')
    state.unavailable.delete('loading')
    cleanUp.push(
      startMaintenance({
        hour: settings.maintenanceHour,
        wallMs,
        status: () => state.status,
        maintain: () => askReplica({ type: 'maintain', force: false }),
      }),
    )
    cleanUp.push(
      watchCores({
        sample: () => `${availableParallelism()}/${cpus().length}`,
        isActive: settings.cpuWatch,
        log,
        onChange: () => options.onEnd(EXIT.coresChanged),
      }),
    )
    log.info(
      { tcpPort: tcp.port, apiPort, seconds: ready.seconds, kernels: tcp.kernels, servingThreads: threads },
      'active',
    )
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
    await replica.worker.terminate()
    throw error
  }
}

/**
 * The scratch area of a reader: slabs large enough for the largest reply that the configuration allows, as many as the
 * memory has room for. Snapshots are written and loaded in such areas, too.
 *
 * @throws invalid_config when nothing would be left for data
 */
function scratchPlan(
  settings: EngineSettings,
  readers: number,
): { slabBytes: number; slabs: number; scratchBytes: number } {
  const memory = memoryBytes(settings)
  const largest = 64 + settings.queryLimit * hitBytes(settings.maxDatesInQuery)
  const slabBytes = Math.max(SLAB_BYTES_MIN, Math.ceil(largest / 8192) * 8192)
  const budget = Math.min(SLAB_AREA_BYTES_MAX, memory / 4 / readers)
  const slabs = Math.max(2, Math.min(SLABS, Math.floor(budget / slabBytes) - 1))
  const slabArea = 16_384 + slabAreaBytes(slabBytes, slabs)
  const scratchBytes = Math.max(slabArea, CAPTURE_SCRATCH_BYTES + WORDS_SCRATCH_BYTES)
  const least = Math.ceil(readers * scratchBytes * SCRATCH_ROOM)
  if (memory < least) {
    throw new VacancyError('invalid_config', {
      reason:
        `memory_max_bytes: ${memory} is too little for ${readers} threads that need ${scratchBytes} each: give ${least}` +
        ' or more, or lower query_limit, max_dates_in_query or serving_threads',
    })
  }
  return { slabBytes, slabs, scratchBytes }
}

/** While other data take the place of the store's, what was there last: the registry must not take it for none. */
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
type AskReplica = (message: ToReplica, transfer?: Transferable[]) => void

function startReplica(workerData: ReplicaOptions): Replica {
  // Descriptors of log files go from this thread to the log's: none may be closed because a thread ends.
  const options = { workerData, trackUnmanagedFds: false, resourceLimits: THREAD_LIMITS }
  return { worker: new Worker(new URL('./cluster/replica-worker.ts', import.meta.url), options) }
}

/** What the replica thread says of the shard. */
type OfShard = Extract<FromReplica, { type: 'bootstrap' | 'cluster' | 'asked' | 'certificate' }>

/** Follows the replica's messages for as long as it lives. @returns when it is ready */
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
      state.hasFailed = true
      if (!isReady) return reject(error)
      if (state.stopping) return
      setUnavailable('disk_failed', error.message)
      log.error({ err: error }, 'the replica thread stopped; the node ends')
      options.onEnd(exit)
    }
    worker.on('error', (error) => {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
      fail(new VacancyError('assertion_failed', { reason }), EXIT.assertion)
    })
    worker.on('message', (message: FromReplica) => {
      switch (message.type) {
        case 'phase':
          // What a shard waits for follows from what it reports (http/conditions.ts).
          if (message.phase === 'forming' || message.phase === 'joining') return undefined
          return setUnavailable(message.phase, message.detail)
        case 'bootstrap':
        case 'cluster':
        case 'asked':
        case 'certificate':
          return onShard(message)
        case 'ready':
          isReady = true
          return resolve(message)
        case 'status':
          return takeStatus(state, message.status, setUnavailable, log)
        case 'snapshot':
          state.snapshot = message.info
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

export function exitOf(error: VacancyError): number {
  const row: ErrorRow = ERRORS[error.code]
  return row.exit ?? EXIT.failure
}

/** Conditions under which the node goes on but refuses something; each said once, and once when it is over. */
function takeStatus(
  state: State,
  status: ReplicaStatus,
  setUnavailable: (reason: UnavailableReason, detail: string) => void,
  log: Log,
): void {
  const before = state.status
  state.status = status
  if (status.diskFull && !before?.diskFull) {
    setUnavailable('disk_full', `${status.diskFreeBytes} bytes are free; reads go on, writes are refused`)
  } else if (!status.diskFull && state.unavailable.delete('disk_full')) log.info({}, 'the disk has room again')
  // A disk that is full has a reason of its own.
  const isLow = status.diskLow && !status.diskFull
  if (isLow && !state.unavailable.has('disk_low')) {
    setUnavailable('disk_low', `${status.diskFreeBytes} bytes are free`)
  } else if (!isLow && state.unavailable.delete('disk_low')) log.info({}, 'the disk is no longer almost full')
  const isFull = state.memory !== undefined && refusesForMemory(state.memory)
  if (isFull) setUnavailable('memory_full', 'writes that need memory are refused; reads, updates and deletes go on')
  else if (state.unavailable.delete('memory_full')) log.info({}, 'there is memory again')
}

async function startTcp(
  options: NodeOptions,
  state: State,
  parts: {
    threads: number
    slabBytes: number
    slabs: number
    ready: Extract<FromReplica, { type: 'ready' }>
    tokens: readonly TokenHash[] | undefined
    tls: TlsMaterial | undefined
    counters: ReturnType<typeof countersOf>
    cells: SharedArrayBuffer | undefined
  },
  askReplica: AskReplica,
): Promise<TcpServer> {
  const { config, log, codecs } = options
  const settings = config.values
  const channels = Array.from({ length: parts.threads }, () => new MessageChannel())
  const starting = startTcpServer(
    {
      threads: parts.threads,
      host: options.tcpHost,
      port: settings.tcpPort,
      firstReader: FIRST_SERVING_READER,
      channels: channels.map(({ port1 }) => port1),
      memory: parts.ready.memory,
      codecs: codecs.names,
      datesMax: settings.maxDatesInQuery,
      queryLimit: settings.queryLimit,
      connectionsMax: settings.tcpMaxConnections,
      userTimeoutMs: settings.tcpUserTimeoutMs === 0 ? 0 : Math.max(200, settings.tcpUserTimeoutMs),
      keepaliveSeconds: settings.tcpKeepaliveSeconds,
      receiveBufferBytes: settings.tcpRecvBufferSize,
      sendBufferBytes: settings.tcpSendBufferSize,
      requireLogin: settings.tcpRequireLogin,
      // Standalone there is nobody else to read from (platform.md §7.8 has the key for clusters).
      leaderReads: parts.cells === undefined || settings.leaderReads,
      cells: parts.cells,
      tokens: parts.tokens,
      tls: parts.tls && { cert: parts.tls.cert, key: parts.tls.key },
      slabBytes: parts.slabBytes,
      slabs: parts.slabs,
      forceTypescript: false,
      clockOffsetMs: options.clockOffsetMs,
    },
    parts.counters,
    ({ command, milliseconds, rows, at }) => noteSlow(state, { command, milliseconds, rows, atMs: at }),
    (error) => {
      log.error({ err: error }, 'a serving thread stopped; the node ends')
      options.onEnd(EXIT.assertion)
    },
  )
  for (const { port2 } of channels) askReplica({ type: 'serve', channel: port2 }, [port2])
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
  setUnavailable('stopping', 'an orderly stop was asked for')
  // §18: somebody else leads before the clients of this node are sent away.
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
