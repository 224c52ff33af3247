/**
 * The registry service: HTTP around its state, a sweep that removes silent components, and a writer that persists
 * changes (docs/design/http.md#registry).
 */

import type { IncomingMessage } from 'node:http'
import { COMPONENT_KINDS, type ComponentKind, REGISTRY_LIMITS, reserveRequest } from '@vacancy/shared/contract'
import {
  certificateEnds,
  createReadiness,
  ENDS_REASON,
  endingText,
  type HttpAnswer,
  HttpError,
  type HttpMethod,
  json,
  jsonText,
  METRICS_CONTENT_TYPE,
  nextTokenEnd,
  registerMetrics,
  setCertificateEnds,
  type TlsMaterial,
  text,
  tokenEnds,
} from '@vacancy/shared/node'
import { type Access, createDoor, type Door } from '../access.ts'
import { configRoute } from '../config-page.ts'
import { createListener, type Query, type Route } from '../http.ts'
import { REGISTRY_METRICS, SERIES_MAX } from '../metrics.ts'
import { clash, deleteRegister, deleteSegment, deleteShard, postRegister, postSegments, putSegment } from './changes.ts'
import { codecsOf, type RegistryOptions, rejected, type Service, stateOf } from './service.ts'
import * as registry from './state.ts'
import { StorageUnavailable } from './store.ts'
import {
  codecsText,
  conflictsOf,
  getSegment,
  getShardNodes,
  getShardSegments,
  getVersions,
  listAnswer,
  shardsOf,
  topologyOf,
} from './views.ts'

/** Interval of the sweep for silent components. */
const SWEEP_MS = 1_000

export type RunningRegistry = {
  readonly port: number
  readonly setTls: (tls: TlsMaterial) => void
  /** Answers waiting requests, accepts no more, and writes pending changes. */
  readonly stop: () => Promise<void>
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
  // A series that appears with its first event hides that event from increases.
  for (const kind of COMPONENT_KINDS) metrics.of.registry_heartbeat_timeout_total.inc({ kind }, 0)
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
    notes: createReadiness(clock),
    waiters: new Set(),
    kept: new Map(),
    clashes: new Map(),
    keptBytes: 0,
    keptVersions: undefined,
    keptCodecs: undefined,
    notified: '',
    isSweeping: false,
    isStopping: false,
    certificate: options.tls,
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
      service.certificate = tls
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
  const probed = (...row: Parameters<typeof route>): Route => ({ ...route(...row), query: 'any' })
  const alive = () => text(200, 'OK')
  return [
    probed('GET', '/health', 'open', alive),
    probed('GET', '/healthz', 'open', alive),
    probed('GET', '/ready', 'open', () => {
      service.notes.set(ENDS_REASON, endsText(service))
      const ready = service.readiness.read()
      const reasons = [...ready.reasons, ...service.notes.read().reasons]
      return json(ready.ready ? 200 : 503, { ...ready, reasons })
    }),
    probed('GET', '/metrics', 'read', async () => ({
      status: 200,
      headers: { 'Content-Type': METRICS_CONTENT_TYPE },
      body: await service.metrics.text(),
    })),
    configRoute((access) => countingRefusals(service, door(access)), service.options.config),
    route('GET', '/codecs', 'read', () => jsonText(200, codecsText(codecsOf(service)))),
    { ...route('POST', '/register', 'component', (query) => postRegister(service, query)), fields: 'any' },
    route('DELETE', '/register/{kind}/{id}', 'component', (query) => deleteRegister(service, query)),
    {
      ...route('GET', '/versions', 'read', (query) => getVersions(service, query)),
      query: ['since', 'epoch', 'wait_secs'],
    },
    {
      ...route('POST', '/shards/{shard}/segments', 'component', (query) => postSegments(service, query)),
      bodyBytesMax: REGISTRY_LIMITS.segmentsBodyBytesMax,
      fields: 'any',
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
    {
      ...route('PUT', '/segments/{segment}', 'admin', (query) => putSegment(service, query)),
      fields: Object.keys(reserveRequest.shape),
    },
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

// Metrics.

function countAnswer({ metrics }: Service, pattern: string, status: number, seconds: number): void {
  const endpoint = pattern === '' ? 'none' : pattern
  metrics.of.registry_requests_total.inc({ endpoint })
  metrics.of.registry_request_duration_seconds.observe({ endpoint }, seconds)
  if (status === 413) metrics.of.registry_rejected_total.inc({ reason: 'too_large' })
  if (status < 400) return
  metrics.of.registry_request_errors_total.inc({ endpoint, error: status < 500 ? 'client_error' : 'server_error' })
}

/** What ends soon, of the certificate and of the auth file. */
function endsText({ options, certificate }: Service): string {
  const nowMs = options.clock.wallMs()
  return endingText(
    [...certificateEnds('the listener', certificate), ...tokenEnds(options.tokens() ?? [], nowMs)],
    nowMs,
  )
}

function collect({ metrics, store, options, certificate }: Service): void {
  const { of } = metrics
  setCertificateEnds(of.tls_cert_not_after_seconds, 'http', certificate)
  of.token_not_after_seconds.set(nextTokenEnd(options.tokens() ?? [], options.clock.wallMs()))
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
