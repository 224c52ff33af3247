/**
 * The node API on api_port (docs/design/http.md#node-api): each path is a row, and each response is read from the
 * handle that the engine's node.ts provides. Paths of clustered mode are in cluster.ts; a standalone node answers 404
 * for them.
 */

import { type Clock, formatDay, packPropertyId } from '@vacancy/shared'
import {
  NODE_HTTP_LIMITS,
  NODE_ROUTES,
  type NodeClock,
  type NodeCoverage,
  type NodeProperties,
  type NodeRoute,
  type NodeSlow,
  type NodeSnapshotInfo,
  type NodeStatus,
  type NodeWords,
  namesOf,
  peersRequest,
  WORD_KINDS,
} from '@vacancy/shared/contract'
import {
  configView,
  type HttpAnswer,
  HttpError,
  isLoopback,
  json,
  jsonText,
  type Log,
  METRICS_CONTENT_TYPE,
  registerMetrics,
  type TlsMaterial,
  type TokenHash,
  text,
  watchEventLoop,
} from '@vacancy/shared/node'
import { ENGINE_SCHEMA, type EngineConfig } from '../config.ts'
import type { ClockStatus, ReplicaStatus, StaysStatus } from '../status.ts'
import { propertyDetails, segmentCounts, segmentCoverage } from '../store/read.ts'
import { settingFault } from '../store/stay-settings.ts'
import { countsOf, type Memory, memoryUse } from '../store/store.ts'
import { backupRoutes } from './backup.ts'
import { CLUSTER_LIMITS, clusterAnswers, statusDocument } from './cluster.ts'
import { healthOf } from './conditions.ts'
import type { NodeHandle } from './handle.ts'
import { createListener, type Query, type Route, type Rules } from './listener.ts'
import { createNightAnswer } from './night.ts'
import { isReady, reasonBody } from './reasons.ts'
import { metricsText, scrape } from './scrape.ts'
import { findWords, type WordKind } from './words.ts'

export type HttpServerOptions = {
  readonly handle: NodeHandle
  readonly config: EngineConfig
  /** Undefined without an auth file. */
  readonly tokens: readonly TokenHash[] | undefined
  /** Undefined for plain HTTP. */
  readonly tls: TlsMaterial | undefined
  readonly clock: Clock
  readonly log: Log
  readonly host: string
  /** Absent: no backups can be made. */
  readonly dataDir?: string
  /** 0 = any free port. */
  readonly port: number
}

export type HttpServer = {
  /** The port once it is open; rejects with VacancyError port_taken. */
  readonly listening: Promise<number>
  readonly close: () => Promise<void>
  /** Uses this certificate for new connections. Throws when it is unusable, and the old one stays in force. */
  readonly rotateTls: (tls: TlsMaterial) => void
  readonly setTokens: (tokens: readonly TokenHash[] | undefined) => void
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { handle, config, clock, log, host, port } = options
  let { tokens } = options
  const stall = watchEventLoop()
  const adminClosed = isAdminClosed(config, host)
  if (!tokens && !adminClosed) {
    log.warn({ host }, 'no auth file, any caller of the API can stop the node')
  }
  const rules = (): Rules => ({ tokens, publicRead: config.values.apiPublicRead, adminClosed })
  const listener = createListener({
    routes: [
      ...nodeRoutes(handle, config, log, stall.takeSeconds),
      ...(options.dataDir === undefined ? [] : backupRoutes(options.dataDir)),
    ],
    rules,
    tls: options.tls,
    serverName: `vacancy/${handle.version}`,
    clock,
    log,
    host,
    port,
  })
  return {
    listening: listener.listening,
    async close() {
      stall.close()
      await listener.close()
    },
    rotateTls: listener.setTls,
    setTokens(next) {
      tokens = next
    },
  }
}

/**
 * Whether admin paths are closed without an auth file: when the configuration closes them, and on a listener reachable
 * from other machines unless the configuration opens them explicitly.
 */
export function isAdminClosed({ values, origins }: EngineConfig, host: string): boolean {
  return values.adminRequiresAuth || (!isLoopback(host) && origins.admin_requires_auth.from === 'default')
}

/** The contract's rows with their handlers; on a standalone node also the cluster paths. */
function nodeRoutes(handle: NodeHandle, config: EngineConfig, log: Log, takeStall: () => number): Route[] {
  const { cluster } = handle
  const answers: Partial<Answers<RouteName>> = {
    ...nodeAnswers(handle, config, log, takeStall),
    ...(cluster && (clusterAnswers(handle, cluster, config.values) satisfies Answers<RouteName<'clustered'>>)),
  }
  const own = Object.entries<NodeRoute>(NODE_ROUTES).flatMap(
    ([name, { method, path, access, body, query, probed }]) => {
      const answer = answers[name as RouteName]
      const pattern = path.replace('{node_id}', '*')
      const takes = body === peersRequest ? 'list' : 'object'
      // A path that names a node may repeat it in the body, as the paths without do.
      const fields = pattern === path ? namesOf(body) : ['node_id', 'target_node_id']
      const names = { query: probed ? ('any' as const) : namesOf(query), repeats: ['ids'], fields }
      return answer ? [{ method, path: pattern, access, takes, answer, ...names } as const] : []
    },
  )
  if (cluster) return own
  return [...own, ...CLUSTERED_PATHS.flatMap((path) => [notStandalone('GET', path), notStandalone('POST', path)])]
}

type Routes = typeof NODE_ROUTES
type RouteName<Mode = NodeRoute['mode']> = {
  [Name in keyof Routes]: Routes[Name]['mode'] extends Mode ? Name : never
}[keyof Routes]
type Answers<Name extends RouteName> = { readonly [name in Name]: Route['answer'] }

function nodeAnswers(
  handle: NodeHandle,
  config: EngineConfig,
  log: Log,
  takeStall: () => number,
): Answers<RouteName<'both'>> {
  let ofProcess: ReturnType<typeof registerMetrics> | undefined
  return {
    health: () => json(200, { status: 'ok' }),
    healthz: () => healthz(handle),
    ready: () => ready(handle),
    async metrics() {
      ofProcess ??= registerMetrics({}, { process: true })
      const own = metricsText(scrape(handle, config.values.tcpMaxConnections, takeStall()))
      return text(200, own + (await ofProcess.text()), { 'Content-Type': METRICS_CONTENT_TYPE })
    },
    codecs: () => codecs(handle),
    status: () => json(200, status(handle)),
    snapshotInfo: () => snapshotInfo(handle),
    slow: () => json(200, slow(handle)),
    properties: (query) => properties(handle, query),
    words: (query) => words(handle, query),
    coverage: (query) => coverage(handle, query),
    night: createNightAnswer(handle),
    config: () => json(200, configView(ENGINE_SCHEMA, config)),
    saveSnapshot: () => started('snapshot', handle.saveSnapshot()),
    maintenance: ({ body }) => started('maintenance', handle.maintain(flag(body['force'], 'force'))),
    setTime: ({ body }) => setTime(handle, flag(body['confirm'], 'confirm')),
    setting: ({ body }) => changeSetting(handle, body),
    shutdown: (query) => shutdown(handle, query),
    reloadTokens() {
      const tokens = renew(log, 'the auth file cannot be used; the old tokens stay', handle.reloadTokens)
      if (tokens === undefined) throw new HttpError(409, 'this node has no auth file (--auth-file)')
      return json(200, { message: 'tokens reloaded', tokens })
    },
    tlsRotate() {
      const isDone = renew(log, 'the certificates cannot be used; the old ones stay', handle.rotateTls)
      if (!isDone) throw new HttpError(409, 'this node has no certificates')
      return json(202, { message: 'certificate rotation started' })
    },
  }
}

const CLUSTERED_PATHS = [
  '/node-info',
  '/leader',
  '/peers',
  '/admin/add-member/*',
  '/admin/remove-member/*',
  '/admin/transfer-leader/*',
  '/cluster/*',
]

function notStandalone(method: Route['method'], path: string): Route {
  const answer = () => {
    throw new HttpError(404, 'not available in standalone mode')
  }
  return { method, path, query: 'any', access: 'open', takes: 'anything', answer }
}

function slow(handle: NodeHandle): NodeSlow {
  const requests = handle.slow().map(({ atMs, traceId, ...request }) => ({
    ...request,
    at: time(atMs),
    trace_id: traceId,
  }))
  return { requests }
}

function healthz(handle: NodeHandle): HttpAnswer {
  const health = healthOf(handle)
  const reasons = handle.unavailable().map(({ reason }) => reason)
  const headers = reasons.length === 0 ? {} : { 'X-Reasons': reasons.join() }
  return text(health === 'unavailable' ? 503 : 200, health, headers)
}

function ready(handle: NodeHandle): HttpAnswer {
  const reasons = handle.unavailable()
  const isAll = isReady(reasons)
  return json(isAll ? 200 : 503, { ready: isAll, reasons: reasons.map(reasonBody) })
}

function codecs({ codecs: list }: NodeHandle): HttpAnswer {
  const { names, hash, hashHex, orderedHash } = list
  const rest = JSON.stringify({ hash_hex: hashHex, ordered_hash: orderedHash }).slice(1)
  // The hash is greater than 2^53, so its digits are inserted as text, which JSON.stringify cannot do.
  const body = `{"rate_features":${JSON.stringify(names)},"hash":${hash},${rest}`
  return jsonText(200, body)
}

/** One document with all parts of a node that a console shows. */
function status(handle: NodeHandle): NodeStatus {
  const reasons = handle.unavailable()
  const memory = handle.memory()
  const replica = handle.replica()
  const now = handle.wallMs()
  const use = process.memoryUsage()
  return {
    mode: handle.cluster ? 'clustered' : 'standalone',
    version: handle.version,
    shard_id: handle.shardId,
    health: healthOf(handle),
    reasons: reasons.map(reasonBody),
    started_at: time(handle.startedMs),
    uptime_seconds: Math.max(0, Math.floor((now - handle.startedMs) / 1000)),
    cores: { start: handle.coresAtStart, now: handle.coresNow() },
    serving_threads: handle.servingThreads,
    connections: handle.connectionsOpen(),
    kernels: 'wasm',
    ordered_hash: handle.codecs.orderedHash,
    codec_mismatch: handle.codecMismatch ?? null,
    memory: {
      rss: use.rss,
      heap: use.heapUsed,
      arraybuffers: use.arrayBuffers,
      ...(memory && storeMemory(memory)),
      ...(replica?.budget && {
        budget: replica.budget.budgetBytes,
        charged: replica.budget.chargedBytes,
        left: replica.budget.leftBytes,
      }),
    },
    ...(memory ? inventory(handle, memory) : { properties: 0, packages: 0, sessions: 0, segments: [] }),
    replica: replica
      ? {
          role: replica.role,
          term: replica.term,
          first_index: replica.firstIndex,
          last_index: replica.lastIndex,
          commit_index: replica.commitIndex,
          applied_index: replica.appliedIndex,
          lag_entries: replica.commitIndex - replica.appliedIndex,
        }
      : null,
    wal: replica ? { bytes: replica.walBytes, files: replica.walFiles } : null,
    disk: replica ? { free_bytes: replica.diskFreeBytes, full: replica.diskFull } : null,
    digest: replica ? digest(replica) : null,
    snapshot: snapshotDocument(handle) ?? null,
    snapshot_running: replica?.snapshotRunning ?? false,
    maintenance: replica
      ? {
          last_day: replica.lastMaintenanceDay,
          last_success_at: replica.lastMaintenanceMs > 0 ? time(replica.lastMaintenanceMs) : null,
          removed_packages: replica.removedPackages,
        }
      : null,
    clock: replica ? clockDocument(replica.clock) : null,
    ...(replica?.stays && { stays: staysDocument(replica.stays) }),
    cluster: handle.cluster ? statusDocument(handle, handle.cluster) : null,
  }
}

function staysDocument(stays: StaysStatus): NonNullable<NodeStatus['stays']> {
  const { held, bytes, oversoldNights, oversold, nextDeadlineMs, expired, refused, settings } = stays
  return {
    stays: stays.stays,
    held,
    bytes,
    oversold_nights: oversoldNights,
    oversold: oversold.map(({ propertyId, roomType, date, held, owed }) => ({
      ...{ property_id: propertyId, room_type: roomType, date, held, owed },
    })),
    next_deadline: nextDeadlineMs === 0 ? null : time(nextDeadlineMs),
    expired,
    overflowed_rooms: stays.overflowedRooms,
    unrecorded_rooms: stays.unrecordedRooms,
    evicted: { ...stays.evicted },
    refused: { ...refused },
    settings: { ...settings },
  }
}

function storeMemory(memory: Memory) {
  const { recordBytes, planeBytes, freeBytes } = memoryUse(memory)
  return { indexes: recordBytes, packages: planeBytes, free: freeBytes }
}

function inventory({ reader }: NodeHandle, memory: Memory) {
  const segments = segmentCounts({ memory, reader })
  return {
    ...countsOf(memory),
    segments: segments.map(({ name, properties, packages }) => ({ name, properties, packages })),
  }
}

function digest({ digest: now, newestMark }: Pick<ReplicaStatus, 'digest' | 'newestMark'>) {
  const lane = (half: number) => half.toString(16).padStart(8, '0')
  const text = ({ lo, hi }: ReplicaStatus['digest']) => `${lane(hi)}${lane(lo)}`
  if (!newestMark) return { value: text(now), checked_index: 0 }
  return { value: text(now), checked_index: newestMark.index, checked_value: text(newestMark) }
}

function clockDocument({ timeMs, offsetMs, state, lastSet }: ClockStatus): NodeClock {
  return {
    shard_time: timeMs === 0 ? null : time(timeMs),
    offset_seconds: offsetMs / 1000,
    state,
    last_set: lastSet
      ? {
          from: time(lastSet.fromMs),
          to: time(lastSet.toMs),
          import_nights: lastSet.importNights
            ? { from: formatDay(lastSet.importNights.from), to: formatDay(lastSet.importNights.end - 1) }
            : null,
          dropped_from: lastSet.droppedFrom === undefined ? null : formatDay(lastSet.droppedFrom),
        }
      : null,
  }
}

/** The leader decides. The response is its result or its plan. */
async function changeSetting(handle: NodeHandle, { name, value }: Query['body']): Promise<HttpAnswer> {
  if (typeof name !== 'string' || typeof value !== 'number') throw new HttpError(400, 'name and value are required')
  const fault = settingFault(name, value)
  if (fault !== '') throw new HttpError(400, fault)
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new HttpError(504, 'command timeout')), CLUSTER_LIMITS.answerMs)
  try {
    const { status: code, text: answer } = await Promise.race([handle.changeSetting(name, value), late])
    if (code !== 202) throw new HttpError(code, answer)
    return json(202, { message: answer })
  } finally {
    clearTimeout(timer)
  }
}

async function setTime(handle: NodeHandle, confirm: boolean): Promise<HttpAnswer> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new HttpError(504, 'command timeout')), CLUSTER_LIMITS.answerMs)
  try {
    const { status: code, text: answer } = await Promise.race([handle.setTime(confirm), late])
    if (code !== 202) throw new HttpError(code, answer)
    return jsonText(200, answer)
  } finally {
    clearTimeout(timer)
  }
}

function snapshotDocument(handle: NodeHandle): NodeSnapshotInfo | undefined {
  const snapshot = handle.snapshot()
  return (
    snapshot && {
      id: snapshot.id,
      created_at: time(snapshot.createdMs),
      shard_id: snapshot.shardId,
      last_index: snapshot.lastIndex,
      last_term: snapshot.lastTerm,
      properties: snapshot.properties,
      packages: snapshot.packages,
      segments: snapshot.segments,
      window: snapshot.window ?? null,
      codec_hash: snapshot.codecHash,
      bytes: snapshot.bytes,
      origin: snapshot.origin,
      duration_ms: snapshot.durationMs,
    }
  )
}

function snapshotInfo(handle: NodeHandle): HttpAnswer {
  const document = snapshotDocument(handle)
  if (!document) throw new HttpError(404, 'there is no snapshot yet')
  return json(200, document)
}

function time(ms: number): string {
  return new Date(ms).toISOString()
}

function loaded(handle: NodeHandle): Memory {
  const memory = handle.memory()
  if (!memory) throw new HttpError(503, 'the node has not loaded its data yet; see /ready')
  return memory
}

function properties(handle: NodeHandle, { search }: Query): HttpAnswer {
  const memory = loaded(handle)
  const ids = listedIn(search, 'ids')
  const { propertyIdsMax } = NODE_HTTP_LIMITS
  if (ids.length < 1 || ids.length > propertyIdsMax) {
    throw new HttpError(400, `ids must have 1 to ${propertyIdsMax} property ids with commas between, has ${ids.length}`)
  }
  const missing: string[] = []
  const found = ids.flatMap((id) => {
    const packed = packPropertyId(id)
    if (!packed) throw new HttpError(400, `${JSON.stringify(id.slice(0, 64))} is not a property id`)
    const details = propertyDetails({ memory, reader: handle.reader }, packed)
    if (details === 'changing') throw new HttpError(503, 'the data is changing too fast to read it, repeat')
    if (!details) {
      missing.push(id)
      return []
    }
    const { roomTypes, ...attributes } = details
    return { id, ...attributes, room_types: roomTypes }
  })
  return json(200, { properties: found, missing } satisfies NodeProperties)
}

/** Entries of a list, with commas between or as a repeated parameter. Each is decoded by itself: an id may have a comma. */
function listedIn(search: string, name: string): readonly string[] {
  return search
    .split('&')
    .filter((pair) => pair.startsWith(`${name}=`))
    .flatMap((pair) => pair.slice(name.length + 1).split(','))
    .map((entry) => new URLSearchParams(`entry=${entry}`).get('entry') ?? '')
    .filter((entry) => entry !== '')
}

function words(handle: NodeHandle, { parameters }: Query): HttpAnswer {
  const memory = loaded(handle)
  const kind = (parameters.get('kind') ?? 'segment') as WordKind
  if (!WORD_KINDS.includes(kind)) throw new HttpError(400, `kind must be one of ${WORD_KINDS.join(', ')}`)
  const limit = limitOf(parameters.get('limit'), NODE_HTTP_LIMITS.wordsDefault, NODE_HTTP_LIMITS.wordsMax)
  const segment = parameters.get('segment') || undefined
  const { words, more } = findWords(memory, handle.reader, {
    kind,
    segment,
    prefix: parameters.get('prefix') ?? '',
    limit,
  })
  return json(200, { kind, segment: segment ?? null, words, more } satisfies NodeWords)
}

function coverage(handle: NodeHandle, { parameters }: Query): HttpAnswer {
  const memory = loaded(handle)
  const { coverageMax } = NODE_HTTP_LIMITS
  const limit = limitOf(parameters.get('limit'), coverageMax, coverageMax)
  const { segments, more } = segmentCoverage({ memory, reader: handle.reader }, parameters.get('after') ?? '', limit)
  let from = Number.POSITIVE_INFINITY
  let to = 0
  for (const { days } of segments) {
    for (const day of days.keys()) {
      from = Math.min(from, day)
      to = Math.max(to, day)
    }
  }
  const length = to === 0 ? 0 : to - from + 1
  const { properties, packages } = countsOf(memory)
  return json(200, {
    properties,
    packages,
    ordered_hash: handle.codecs.orderedHash,
    applied_index: handle.replica()?.appliedIndex ?? null,
    window: length === 0 ? null : { from: formatDay(from), to: formatDay(to) },
    segments: segments.map(({ name, properties: count, days }) => ({
      name,
      properties: count,
      packages: Array.from({ length }, (_, i) => days.get(from + i) ?? 0),
    })),
    more,
  } satisfies NodeCoverage)
}

function limitOf(given: string | null, otherwise: number, most: number): number {
  if (given === null) return otherwise
  const limit = /^\d{1,9}$/.test(given) ? Number(given) : 0
  if (limit < 1 || limit > most) throw new HttpError(400, `limit must be 1 to ${most}`)
  return limit
}

function flag(value: unknown, name: string): boolean {
  if (value === undefined) return false
  if (typeof value !== 'boolean') throw new HttpError(400, `${name} must be true or false`)
  return value
}

function started(what: 'snapshot' | 'maintenance', outcome: 'started' | 'running' | 'unavailable'): HttpAnswer {
  if (outcome === 'running') throw new HttpError(409, `${what} already in progress`)
  if (outcome === 'unavailable') throw new HttpError(503, 'the node is not ready; see /ready')
  return json(202, { message: `${what} started` })
}

function shutdown(handle: NodeHandle, { body }: Query): HttpAnswer {
  if (body['confirm'] !== true) throw new HttpError(400, 'confirmation required')
  // The caller gets its response before the listener closes.
  return { ...json(202, { message: 'shutting down' }), after: handle.shutdown }
}

/** Files of the start that are unusable now are not the caller's fault: always 500. */
function renew<T>(log: Log, problem: string, renewal: () => T): T {
  try {
    return renewal()
  } catch (error) {
    log.error({ err: error }, problem)
    throw new HttpError(500, `${problem}: ${(error as Error).message}`)
  }
}
