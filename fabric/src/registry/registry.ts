/**
 * The registry service: HTTP around its state, a sweep that removes silent components, and a writer that persists
 * changes (docs/design/http.md#registry).
 */

import type { IncomingMessage } from 'node:http'
import { type Clock, type CodecList, createCodecList, ID_RULE, parseId } from '@vacancy/shared'
import {
  COMPONENT_KINDS,
  type ComponentKind,
  REGISTRY_LIMITS,
  type RegisterRequest,
  registerRequest,
  reserveRequest,
  segmentFault,
  segmentsChecksum,
  segmentsRequest,
  sortedSegments,
} from '@vacancy/shared/contract'
import {
  type ConfigView,
  createReadiness,
  type HttpAnswer,
  HttpError,
  type HttpMethod,
  json,
  jsonText,
  type Log,
  METRICS_CONTENT_TYPE,
  type Metrics,
  type Readiness,
  registerMetrics,
  type TlsMaterial,
  text,
} from '@vacancy/shared/node'
import type { z } from 'zod'
import { type Access, type AccessRules, createDoor, type Door, scopeFault } from '../access.ts'
import { configRoute } from '../config-page.ts'
import { createListener, empty, type Query, type Route } from '../http.ts'
import { REGISTRY_METRICS, SERIES_MAX } from '../metrics.ts'
import type { RegistryState } from './model.ts'
import * as registry from './state.ts'
import { type OpenStore, type RegistryStore, StorageUnavailable } from './store.ts'

/** Interval of the sweep for silent components. */
const SWEEP_MS = 1_000
/** Minimum interval between two log lines about one id used by two processes. */
const CLASH_LOG_MS = 60_000
/** Bytes of cached responses: segment lists are long and requested often. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024

export type RegistryOptions = {
  readonly host: string
  readonly port: number
  readonly store: RegistryStore
  readonly codecs: CodecList
  readonly heartbeatTimeoutMs: number
  /** A push with segments of others changes nothing. */
  readonly rejectsConflicts: boolean
  readonly tokens: AccessRules['tokens']
  readonly publicRead: boolean
  readonly tls: TlsMaterial | undefined
  readonly version: string
  /** For `/config`. */
  readonly config: ConfigView
  readonly clock: Clock
  readonly log: Log
  /** Requests still in progress this long after the stop are cut off. */
  readonly drainMs: number
  /** 16 random hexadecimal digits. */
  readonly newEpoch: () => string
}

export type RunningRegistry = {
  readonly port: number
  readonly setTls: (tls: TlsMaterial) => void
  /** Answers waiting requests, accepts no more, and writes pending changes. */
  readonly stop: () => Promise<void>
}

type Service = {
  readonly options: RegistryOptions
  readonly store: OpenStore
  readonly metrics: Metrics<typeof REGISTRY_METRICS>
  readonly readiness: Readiness
  readonly waiters: Set<() => void>
  readonly kept: Map<string, { readonly etag: string; readonly body: string }>
  readonly clashes: Map<string, number>
  keptBytes: number
  keptVersions: { readonly etag: string; readonly isWarming: boolean; readonly body: string } | undefined
  keptCodecs: CodecList | undefined
  /** Epoch and global version when waiting requests were last answered. */
  notified: string
  isSweeping: boolean
  isStopping: boolean
  certificateEndsMs: number | undefined
}

/**
 * Starts the registry.
 *
 * @throws VacancyError port_taken; data_conflict when the state cannot be read; disk_failed when it cannot be written
 */
export async function startRegistry(options: RegistryOptions): Promise<RunningRegistry> {
  const { clock, log } = options
  const metrics = registerMetrics(REGISTRY_METRICS, { process: true })
  const readiness = createReadiness(clock)
  metrics.of.registry_storage_up.set(1)
  // Undefined while the store opens: no request waits for a change yet.
  let running: Service | undefined
  const service: Service = {
    options,
    store: await options.store.open({
      clock,
      log,
      codecs: options.codecs,
      heartbeatTimeoutMs: options.heartbeatTimeoutMs,
      newEpoch: options.newEpoch,
      onChange: () => running && notify(running),
      onWrite(seconds) {
        metrics.of.registry_json_write_total.inc()
        metrics.of.registry_storage_latency_seconds.observe(seconds)
        metrics.of.registry_last_persist_timestamp.set(Math.floor(clock.wallMs() / 1000))
      },
      onTrouble(reason) {
        if (reason !== '') metrics.of.registry_json_write_errors_total.inc()
        metrics.of.registry_storage_up.set(reason === '' ? 1 : 0)
        readiness.set('storage', reason)
      },
      onClash: ({ kind, id }) => running && clash(running, kind, id),
    }),
    metrics,
    readiness,
    waiters: new Set(),
    kept: new Map(),
    clashes: new Map(),
    keptBytes: 0,
    keptVersions: undefined,
    keptCodecs: undefined,
    notified: '',
    isSweeping: false,
    isStopping: false,
    certificateEndsMs: options.tls?.notAfterMs,
  }
  running = service
  notify(service)
  metrics.onCollect(() => collect(service))
  const listener = createListener({
    routes: routesOf(service, createDoor(options)),
    tls: options.tls,
    serverName: `vacancy/${options.version}`,
    log,
    host: options.host,
    port: options.port,
    onAnswer: (endpoint, status, seconds) => countAnswer(service, endpoint, status, seconds),
  })
  let port: number
  try {
    port = await listener.listening
    await service.store.start()
  } catch (error) {
    await listener.close(0)
    await service.store.close().catch(() => undefined)
    throw error
  }
  const timer = setInterval(() => void sweep(service), SWEEP_MS)
  return {
    port,
    setTls(tls) {
      listener.setTls(tls)
      service.certificateEndsMs = tls.notAfterMs
    },
    async stop() {
      service.isStopping = true
      service.readiness.set('stopping', 'The registry is shutting down.')
      notify(service)
      await listener.close(options.drainMs)
      clearInterval(timer)
      await service.store.close()
    },
  }
}

// The state over time.

/** The current state. @throws StorageUnavailable while it was never read */
function stateOf({ store }: Service): RegistryState {
  const state = store.state()
  if (state === undefined) throw new StorageUnavailable()
  return state
}

/** Removes silent components and ends reservations. No component is removed before all had time for a heartbeat. */
async function sweep(service: Service): Promise<void> {
  const { store, options, metrics } = service
  const state = store.state()
  if (service.isSweeping || state === undefined || !store.isSweeping()) return
  service.isSweeping = true
  try {
    const wallMs = options.clock.wallMs()
    if ([...state.reservations.values()].some(({ untilMs }) => untilMs <= wallMs)) {
      const ended = await store.change((now) => registry.expireReservations(now, wallMs))
      options.log.info({ segments: ended.slice(0, 10) }, 'reservations expired unused')
    }
    const [nowMs, timeoutMs] = [options.clock.monotonicMs(), options.heartbeatTimeoutMs]
    const silent = registry.silentComponents(state, nowMs, timeoutMs).filter((each) => store.maySweep(each))
    for (let from = 0; from < silent.length; from += store.sweptAtOnceMax) {
      const some = silent.slice(from, from + store.sweptAtOnceMax)
      const gone = await store.change((now) => registry.expire(now, nowMs, timeoutMs, some), some)
      for (const { kind, id, zone, shard } of gone) {
        metrics.of.registry_heartbeat_timeout_total.inc({ kind })
        options.log.warn({ kind, id, zone, shard }, `removed ${kind} ${id}: no heartbeat in time`)
      }
    }
  } catch (error) {
    // The store reports its trouble itself; the next sweep repeats what is left.
    if (!(error instanceof StorageUnavailable)) throw error
  } finally {
    service.isSweeping = false
  }
}

/** After each change: answers requests that wait for one. */
function notify(service: Service): void {
  const state = service.store.state()
  const mark = state === undefined ? '' : `${state.epoch}.${state.globalVersion}`
  if (service.notified === mark && !service.isStopping) return
  service.notified = mark
  for (const wake of [...service.waiters]) wake()
}

// Routes.

function routesOf(service: Service, door: Door): Route[] {
  const route = (
    method: HttpMethod,
    path: string,
    access: Access,
    answer: (query: Query) => HttpAnswer | Promise<HttpAnswer>,
  ) => ({
    method,
    path,
    admit: countingRefusals(service, door(access)),
    answer: access === 'open' ? answer : (query: Query) => markingAge(service, () => answer(query)),
  })
  const alive = () => text(200, 'OK')
  return [
    route('GET', '/health', 'open', alive),
    route('GET', '/healthz', 'open', alive),
    route('GET', '/ready', 'open', () => {
      const ready = service.readiness.read()
      return json(ready.ready ? 200 : 503, ready)
    }),
    route('GET', '/metrics', 'read', async () => ({
      status: 200,
      headers: { 'Content-Type': METRICS_CONTENT_TYPE },
      body: await service.metrics.text(),
    })),
    configRoute((access) => countingRefusals(service, door(access)), service.options.config),
    route('GET', '/codecs', 'read', () => jsonText(200, codecsText(codecsOf(service)))),
    route('POST', '/register', 'component', (query) => postRegister(service, query)),
    route('DELETE', '/register/{kind}/{id}', 'component', (query) => deleteRegister(service, query)),
    route('GET', '/versions', 'read', (query) => getVersions(service, query)),
    {
      ...route('POST', '/shards/{shard}/segments', 'component', (query) => postSegments(service, query)),
      bodyBytesMax: REGISTRY_LIMITS.segmentsBodyBytesMax,
    },
    route('GET', '/shards/{shard}/segments', 'read', (query) => getShardSegments(service, query)),
    route('GET', '/shards/{shard}/nodes', 'read', (query) => getShardNodes(service, query)),
    route('GET', '/zones/{zone}/routers', 'read', ({ path, headers }) => {
      const zone = path['zone'] as string
      return listAnswer(service, headers, registry.datasets.routers(zone), (version) => ({
        version,
        routers: registry.routersIn(stateOf(service), zone),
      }))
    }),
    route('GET', '/zones/{zone}/segments', 'read', ({ path, headers }) => {
      const zone = path['zone'] as string
      return listAnswer(service, headers, registry.datasets.zoneSegments(zone), (version) => ({
        version,
        segments: registry.segmentsOfZone(stateOf(service), zone),
      }))
    }),
    route('GET', '/zones/{zone}/shards', 'read', ({ path, headers }) => {
      const zone = path['zone'] as string
      return listAnswer(service, headers, registry.datasets.shards(zone), (version) => ({
        version,
        shards: registry.bridgesByShard(stateOf(service), zone),
      }))
    }),
    route('GET', '/topology', 'read', () => json(200, topologyOf(service))),
    route('GET', '/zones', 'read', () => json(200, { zones: registry.zones(stateOf(service)) })),
    route('GET', '/shards', 'read', () => json(200, shardsOf(stateOf(service)))),
    route('DELETE', '/shards/{shard}', 'admin', (query) => deleteShard(service, query)),
    route('GET', '/conflicts', 'read', () => json(200, { conflicts: conflictsOf(stateOf(service)) })),
    route('GET', '/segments/{segment}', 'read', (query) => getSegment(service, query)),
    route('PUT', '/segments/{segment}', 'admin', (query) => putSegment(service, query)),
    route('DELETE', '/segments/{segment}', 'admin', (query) => deleteSegment(service, query)),
  ]
}

/** Adds the age of a stale answer, and turns a change that cannot be kept into 503. */
async function markingAge({ store }: Service, answer: () => HttpAnswer | Promise<HttpAnswer>): Promise<HttpAnswer> {
  let given: HttpAnswer
  try {
    given = await answer()
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error
    given = json(503, { error: error.message })
  }
  const age = store.staleSeconds()
  return age === undefined ? given : { ...given, headers: { ...given.headers, 'X-Registry-Stale': String(age) } }
}

function countingRefusals(service: Service, admit: Route['admit']): Route['admit'] {
  return (request: IncomingMessage) => {
    try {
      return admit(request)
    } catch (error) {
      if (error instanceof HttpError) rejected(service, error.status === 403 ? 'forbidden' : 'unauthorized')
      throw error
    }
  }
}

type RejectReason =
  | 'invalid'
  | 'limit'
  | 'conflict'
  | 'stale_term'
  | 'zone'
  | 'forbidden'
  | 'unauthorized'
  | 'too_large'

function rejected({ metrics }: Service, reason: RejectReason): void {
  metrics.of.registry_rejected_total.inc({ reason })
}

function refuse(service: Service, status: number, reason: RejectReason, message: string): HttpError {
  rejected(service, reason)
  return new HttpError(status, message)
}

/** @throws HttpError 400 naming the field */
function parsed<T extends z.ZodType>(service: Service, schema: T, body: unknown): z.infer<T> {
  const { success, data, error } = schema.safeParse(body)
  if (success) return data
  const [issue] = error.issues
  const field = issue?.path.map(String).join('.') ?? ''
  throw refuse(service, 400, 'invalid', `${field === '' ? 'the body' : field}: ${issue?.message ?? 'is not valid'}`)
}

function pathId(service: Service, { path }: Query, name: string): string {
  const value = parseId(path[name] as string)
  if (value === undefined) throw refuse(service, 400, 'invalid', `${name}: must be ${ID_RULE}`)
  return value
}

/** @throws HttpError 403 when the caller's token is for another shard or zone */
function within(service: Service, { caller }: Query, touched: { shard: string | undefined; zone: string }): void {
  const fault = scopeFault(caller, touched)
  if (fault !== '') throw refuse(service, 403, 'forbidden', fault)
}

// Components.

async function postRegister(service: Service, query: Query): Promise<HttpAnswer> {
  const { store, options } = service
  const body = parsed(service, registerRequest, query.body)
  const kind = COMPONENT_KINDS.find((each) => each === body.kind)
  if (kind === undefined) throw refuse(service, 400, 'invalid', `unknown registration kind: ${body.kind.slice(0, 64)}`)
  const shard = kind === 'router' ? undefined : (body.shard ?? undefined)
  if (kind !== 'router' && shard === undefined) throw refuse(service, 400, 'invalid', `shard is required for ${kind}`)
  const { id, zone } = body
  within(service, query, { shard, zone })
  const before = stateOf(service).components[kind].get(id)
  if (before) within(service, query, before)
  const registration = { kind, id, zone, shard, details: detailsOf(body) }
  const rule = (state: RegistryState) => registry.register(state, registration, options.clock.monotonicMs())
  const isHeartbeat = before !== undefined && before.zone === zone && before.shard === shard
  const result = isHeartbeat ? rule(stateOf(service)) : await store.change(rule)
  if (!result.ok) throw refuse(service, 400, 'limit', `${result.field}: ${result.reason}`)
  store.heard(kind, id)
  if (result.clash) clash(service, kind, id)
  if (result.changed) options.log.info({ kind, id, zone, shard }, `${kind} ${id} ${before ? 'moved' : 'registered'}`)
  const state = stateOf(service)
  return json(200, {
    epoch: state.epoch,
    global_version: state.globalVersion,
    heartbeat_timeout_secs: Math.round(options.heartbeatTimeoutMs / 1000),
    ordered_hash: codecsOf(service).orderedHash,
  })
}

function detailsOf({ kind, id, zone, shard, ...details }: RegisterRequest) {
  return details
}

/** Counts two processes under one id, and logs it once in a while. */
function clash({ clashes, options, metrics }: Service, kind: ComponentKind, id: string): void {
  metrics.of.registry_identity_conflicts_total.inc({ kind })
  const nowMs = options.clock.monotonicMs()
  const key = `${kind} ${id}`
  if (nowMs - (clashes.get(key) ?? Number.NEGATIVE_INFINITY) < CLASH_LOG_MS) return
  clashes.delete(key)
  const [oldest] = clashes.keys()
  if (clashes.size >= SERIES_MAX && oldest !== undefined) clashes.delete(oldest)
  clashes.set(key, nowMs)
  options.log.warn({ kind, id }, `two processes register as ${kind} ${id} alternately: give one of them another id`)
}

async function deleteRegister(service: Service, query: Query): Promise<HttpAnswer> {
  const { store, options } = service
  const kind = COMPONENT_KINDS.find((each) => each === query.path['kind'])
  if (kind === undefined) throw new HttpError(404, 'unknown kind')
  const id = query.path['id'] as string
  const known = stateOf(service).components[kind].get(id)
  if (!known) throw new HttpError(404, `unknown ${kind}`)
  within(service, query, known)
  if (!(await store.change((state) => registry.deregister(state, kind, id))))
    throw new HttpError(404, `unknown ${kind}`)
  options.log.info({ kind, id }, `${kind} ${id} deregistered`)
  return empty()
}

// Segments.

async function postSegments(service: Service, query: Query): Promise<HttpAnswer> {
  const { store, options, metrics } = service
  const shard = pathId(service, query, 'shard')
  const body = parsed(service, segmentsRequest, query.body)
  within(service, query, { shard, zone: body.zone })
  const { zone, term } = body
  const segments = sortedSegments(body.segments)
  if (body.checksum !== undefined && body.checksum !== segmentsChecksum(segments)) {
    throw refuse(service, 400, 'invalid', `checksum: is not that of the ${segments.length} segments sent`)
  }
  const push = { zone, segments, term }
  const result = await store.change((state) => registry.pushSegments(state, shard, push, options.rejectsConflicts))
  const headers = etagOf(stateOf(service), registry.datasets.segments(shard))
  if (result.ok) {
    if (result.changed) {
      metrics.of.registry_segment_updates_total.inc({ shard: shardLabel(service, shard) })
      metrics.of.registry_segment_update_last_timestamp.set(Math.floor(options.clock.wallMs() / 1000))
      options.log.info({ shard, zone, term, segments: segments.length }, `shard ${shard} published its segments`)
      if (result.conflicts.length > 0) {
        const some = result.conflicts.slice(0, 10).map(({ segment, ownerShard }) => `${segment} of ${ownerShard}`)
        options.log.warn({ shard, conflicts: some }, `shard ${shard} claims segments that other shards own`)
      }
    }
    return result.conflicts.length === 0 ? empty(headers) : json(200, conflictAnswer(result), headers)
  }
  switch (result.refused) {
    case 'stale term':
      rejected(service, 'stale_term')
      options.log.warn({ shard, term, known: result.term }, `a former leader of shard ${shard} pushed its segments`)
      return json(409, { error: 'stale term', term: result.term })
    case 'zone':
      throw refuse(service, 409, 'zone', `zone: the nodes of ${shard} are registered in ${result.zone}, not in ${zone}`)
    case 'conflicts':
      rejected(service, 'conflict')
      return json(409, conflictAnswer(result))
    case 'limit':
      throw refuse(service, 400, 'limit', `segments: ${result.reason}`)
  }
}

function conflictAnswer(result: { readonly accepted: number; readonly conflicts: readonly registry.Conflict[] }) {
  return {
    accepted: result.accepted,
    conflicts: result.conflicts.map(({ segment, ownerShard, ownerZone }) => ({
      segment,
      owner_shard: ownerShard,
      owner_zone: ownerZone,
    })),
  }
}

/** The first shards have a series each, for the life of the process. */
function shardLabel(service: Service, shard: string): string {
  const known = shardsWithSeries.get(service) ?? new Set<string>()
  shardsWithSeries.set(service, known)
  if (known.size < SERIES_MAX) known.add(shard)
  return known.has(shard) ? shard : 'other'
}

const shardsWithSeries = new WeakMap<Service, Set<string>>()

function getShardSegments(service: Service, { path, headers }: Query): HttpAnswer {
  const shard = path['shard'] as string
  const claim = stateOf(service).claims.get(shard)
  if (!claim) throw new HttpError(404, 'unknown shard')
  return listAnswer(service, headers, registry.datasets.segments(shard), (version) => ({
    version,
    zone: claim.zone,
    segments: registry.segmentsOfShard(stateOf(service), shard),
  }))
}

function getShardNodes(service: Service, { path, headers }: Query): HttpAnswer {
  const shard = path['shard'] as string
  if (!stateOf(service).nodesOf.has(shard)) throw new HttpError(404, 'unknown shard')
  return listAnswer(service, headers, registry.datasets.nodes(shard), (version) => ({
    version,
    nodes: registry.nodesOfShard(stateOf(service), shard),
  }))
}

async function deleteShard(service: Service, query: Query): Promise<HttpAnswer> {
  const shard = query.path['shard'] as string
  switch (await service.store.change((state) => registry.forgetShard(state, shard))) {
    case 'unknown':
      throw new HttpError(404, 'unknown shard')
    case 'has nodes':
      throw refuse(service, 409, 'conflict', `shard ${shard} has live nodes`)
    case 'forgotten':
      service.options.log.warn({ shard }, `shard ${shard} was forgotten by an admin`)
      return empty()
  }
}

function getSegment(service: Service, { path }: Query): HttpAnswer {
  const state = stateOf(service)
  const segment = path['segment'] as string
  const owner = registry.ownerOf(state, segment)
  if (!owner) throw new HttpError(404, 'unknown segment')
  const reservation = state.reservations.get(segment)
  return json(200, {
    segment,
    ...owner,
    claims: claimsOf(state, state.queues.get(segment) ?? []),
    ...(reservation && { reserved_until: new Date(reservation.untilMs).toISOString() }),
  })
}

function claimsOf(state: RegistryState, shards: readonly string[]): { shard: string; zone: string | undefined }[] {
  return shards.map((shard) => ({ shard, zone: state.claims.get(shard)?.zone }))
}

async function putSegment(service: Service, query: Query): Promise<HttpAnswer> {
  const segment = query.path['segment'] as string
  const fault = segmentFault(segment)
  if (fault !== '') throw refuse(service, 400, 'invalid', `segment: ${fault}`)
  const { shard } = parsed(service, reserveRequest, query.body)
  const wallMs = service.options.clock.wallMs()
  const result = await service.store.change((state) => registry.reserve(state, segment, shard, wallMs))
  if (result.ok) {
    service.options.log.info({ segment, shard }, `segment ${segment} goes to shard ${shard}`)
    return empty()
  }
  switch (result.refused) {
    case 'unknown shard':
      throw new HttpError(404, 'unknown shard')
    case 'owned':
      throw refuse(service, 409, 'conflict', `segment: belongs to shard ${result.owner}`)
    case 'limit':
      throw refuse(service, 400, 'limit', `segment: ${result.reason}`)
  }
}

async function deleteSegment(service: Service, query: Query): Promise<HttpAnswer> {
  const segment = query.path['segment'] as string
  const ended = await service.store.change((state) => registry.endReservation(state, segment))
  if (!ended) throw new HttpError(404, 'no reservation')
  service.options.log.info({ segment }, `the reservation of segment ${segment} was ended`)
  return empty()
}

// Lists and versions.

function etagOf(state: RegistryState, dataset: string): { readonly ETag: string } {
  return { ETag: `"${state.epoch}.${registry.versionOf(state, dataset)}"` }
}

function isKnown(headers: Query['headers'], etag: string): boolean {
  const known = headers['if-none-match'] ?? ''
  return known.split(',').some((each) => each.trim().replace(/^W\//, '') === etag)
}

/** A list with its version: 304 when the caller has it; serialized once per version. */
function listAnswer(
  service: Service,
  headers: Query['headers'],
  dataset: string,
  list: (version: number) => object,
): HttpAnswer {
  const state = stateOf(service)
  const etag = etagOf(state, dataset)
  if (isKnown(headers, etag.ETag)) return { status: 304, headers: etag, body: '' }
  const kept = service.kept.get(dataset)
  if (kept && kept.etag === etag.ETag) return jsonText(200, kept.body, etag)
  const body = JSON.stringify(list(registry.versionOf(state, dataset)))
  keepAnswer(service, dataset, etag.ETag, body)
  return jsonText(200, body, etag)
}

function keepAnswer(service: Service, dataset: string, etag: string, body: string): void {
  const { kept } = service
  service.keptBytes += body.length - (kept.get(dataset)?.body.length ?? 0)
  // Deleted first, so that the map keeps the order of creation.
  kept.delete(dataset)
  kept.set(dataset, { etag, body })
  for (const [oldest, { body: old }] of kept) {
    if (service.keptBytes <= KEPT_BYTES_MAX) break
    kept.delete(oldest)
    service.keptBytes -= old.length
  }
}

async function getVersions(service: Service, { parameters, headers, gone }: Query): Promise<HttpAnswer> {
  const waitSeconds = wholeParameter(service, parameters, 'wait_secs', REGISTRY_LIMITS.waitSecondsMax) ?? 0
  const since = wholeParameter(service, parameters, 'since', Number.MAX_SAFE_INTEGER)
  const before = stateOf(service)
  const epoch = parameters.get('epoch') ?? before.epoch
  const isSame = epoch === before.epoch && since === before.globalVersion
  if (waitSeconds > 0 && isSame && !service.isStopping && service.waiters.size < REGISTRY_LIMITS.waitersMax) {
    await nextChange(service, waitSeconds, gone)
  }
  const state = stateOf(service)
  const etag = `"${state.epoch}.${state.globalVersion}"`
  if (waitSeconds === 0 && isKnown(headers, etag)) return { status: 304, headers: { ETag: etag }, body: '' }
  return jsonText(200, versionsText(service, state, etag), { ETag: etag })
}

/** Serialized once for all requests that waited for the same change. */
function versionsText(service: Service, state: RegistryState, etag: string): string {
  const { store, keptVersions } = service
  const warming = store.isWarming()
  if (keptVersions?.etag === etag && keptVersions.isWarming === warming) return keptVersions.body
  const body = JSON.stringify({
    global_version: state.globalVersion,
    versions: Object.fromEntries(state.versions),
    epoch: state.epoch,
    warming,
  })
  service.keptVersions = { etag, isWarming: warming, body }
  return body
}

/** Resolves when the state has another version, after the timeout, or when no request waits any more. */
function nextChange(service: Service, waitSeconds: number, gone: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const end = () => {
    clearTimeout(timer)
    service.waiters.delete(end)
    gone.removeEventListener('abort', end)
    resolve()
  }
  const timer = setTimeout(end, waitSeconds * 1000)
  service.waiters.add(end)
  gone.addEventListener('abort', end)
  return promise
}

function wholeParameter(service: Service, parameters: URLSearchParams, name: string, max: number): number | undefined {
  const written = parameters.get(name)
  if (written === null) return undefined
  if (/^\d{1,16}$/.test(written) && Number(written) <= max) return Number(written)
  throw refuse(service, 400, 'invalid', `${name}: must be a whole number from 0 to ${max}`)
}

/** The list in force: another process may have changed it. */
function codecsOf(service: Service): CodecList {
  const { names } = service.keptCodecs ?? service.options.codecs
  const inForce = service.store.state()?.codecs ?? names
  const isSame = inForce.length === names.length && inForce.every((name, i) => name === names[i])
  if (!isSame) service.keptCodecs = createCodecList(inForce)
  return service.keptCodecs ?? service.options.codecs
}

/** The hash is a u64 and is sent as digits: a Number would lose the last ones (docs/design/http.md#codec-list). */
function codecsText({ names, hash, hashHex, orderedHash }: CodecList): string {
  return `{"rate_features":${JSON.stringify(names)},"hash":${hash},"hash_hex":"${hashHex}","ordered_hash":"${orderedHash}"}`
}

// Views for operators.

function shardsOf(state: RegistryState) {
  const rows = registry.shards(state).map((shard) => [
    shard,
    {
      zone: registry.zoneOfShard(state, shard),
      nodes: state.nodesOf.get(shard)?.size ?? 0,
      bridges: state.bridgesOf.get(shard)?.size ?? 0,
      segments: state.ownedBy.get(shard)?.size ?? 0,
    },
  ])
  return { shards: Object.fromEntries(rows) }
}

function conflictsOf(state: RegistryState) {
  return registry.conflicts(state).map(({ segment, shards }) => ({
    segment,
    owner_shard: shards[0],
    owner_zone: state.claims.get(shards[0] as string)?.zone,
    claims: claimsOf(state, shards),
  }))
}

function topologyOf(service: Service) {
  const { store, options } = service
  const state = stateOf(service)
  const nowMs = options.clock.monotonicMs()
  const listed = (kind: ComponentKind) =>
    registry.componentsOf(state, kind).map(({ id, zone, shard, seenMs, details }) => ({
      id,
      zone,
      shard,
      age_secs: Math.max(0, nowMs - seenMs) / 1000,
      ...details,
    }))
  const shards = registry.shards(state).map((shard) => [
    shard,
    {
      zone: registry.zoneOfShard(state, shard),
      term: state.claims.get(shard)?.term ?? 0,
      nodes: registry.nodesOfShard(state, shard),
      bridges: sortedSegments(state.bridgesOf.get(shard) ?? []),
      segments: state.ownedBy.get(shard)?.size ?? 0,
    },
  ])
  return {
    epoch: state.epoch,
    global_version: state.globalVersion,
    warming: store.isWarming(),
    heartbeat_timeout_secs: Math.round(options.heartbeatTimeoutMs / 1000),
    zones: registry.zones(state),
    shards: Object.fromEntries(shards),
    routers: listed('router'),
    bridges: listed('bridge'),
    nodes: listed('node'),
    segments: Object.fromEntries([...state.queues].map(([segment, queue]) => [segment, queue[0]])),
    conflicts: conflictsOf(state),
    reservations: [...state.reservations].map(([segment, { shard, untilMs }]) => ({
      segment,
      shard,
      until: new Date(untilMs).toISOString(),
    })),
    versions: Object.fromEntries(state.versions),
  }
}

// Metrics.

function countAnswer({ metrics }: Service, pattern: string, status: number, seconds: number): void {
  const endpoint = pattern === '' ? 'none' : pattern
  metrics.of.registry_requests_total.inc({ endpoint })
  metrics.of.registry_request_duration_seconds.observe({ endpoint }, seconds)
  if (status === 413) metrics.of.registry_rejected_total.inc({ reason: 'too_large' })
  if (status < 400) return
  metrics.of.registry_request_errors_total.inc({ endpoint, error: status < 500 ? 'client_error' : 'server_error' })
}

function collect({ metrics, store, options, certificateEndsMs }: Service): void {
  const { of } = metrics
  if (certificateEndsMs !== undefined) of.tls_cert_not_after_seconds.set({ listener: 'http' }, certificateEndsMs / 1000)
  const state = store.state()
  if (state === undefined) return
  of.registry_registered_routers.set(state.components.router.size)
  of.registry_registered_bridges.set(state.components.bridge.size)
  of.registry_registered_nodes.set(state.components.node.size)
  of.registry_registered_zones.set(registry.zones(state).length)
  of.registry_segment_conflicts.set(state.conflictCount)
  of.registry_component_age_seconds.reset()
  const nowMs = options.clock.monotonicMs()
  let series = 0
  const oldest = new Map<ComponentKind, number>()
  for (const kind of COMPONENT_KINDS) {
    for (const { id, seenMs } of state.components[kind].values()) {
      const age = Math.max(0, nowMs - seenMs) / 1000
      series += 1
      if (series <= SERIES_MAX) of.registry_component_age_seconds.set({ kind, id }, age)
      else oldest.set(kind, Math.max(age, oldest.get(kind) ?? 0))
    }
  }
  for (const [kind, age] of oldest) of.registry_component_age_seconds.set({ kind, id: 'other' }, age)
}
