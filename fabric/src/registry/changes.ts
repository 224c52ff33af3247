import {
  COMPONENT_KINDS,
  type ComponentDetails,
  type ComponentKind,
  type pushedBody,
  type RegisterRequest,
  registerRequest,
  reserveRequest,
  segmentFault,
  segmentsChecksum,
  segmentsRequest,
  sortedSegments,
} from '@vacancy/shared/contract'
import { type HttpAnswer, HttpError, json } from '@vacancy/shared/node'
import type { z } from 'zod'
import { empty, type Query } from '../http.ts'
import { SERIES_MAX } from '../metrics.ts'
import type { RegistryState } from './model.ts'
import {
  codecsOf,
  etagOf,
  knownOf,
  parsed,
  pathId,
  refuse,
  rejected,
  type Service,
  stateOf,
  within,
} from './service.ts'
import * as registry from './state.ts'

/** Minimum interval between two log lines about one id used by two processes. */
const CLASH_LOG_MS = 60_000
export async function postRegister(service: Service, query: Query): Promise<HttpAnswer> {
  const { store, options } = service
  const given = knownOf(service, '/register', Object.keys(registerRequest.shape), query.body)
  const body = parsed(service, registerRequest, given.body)
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
  const answer = {
    epoch: state.epoch,
    global_version: state.globalVersion,
    heartbeat_timeout_secs: Math.round(options.heartbeatTimeoutMs / 1000),
    ordered_hash: codecsOf(service).orderedHash,
  }
  return json(200, answer, given.headers)
}

function detailsOf({ kind, id, zone, shard, ...details }: RegisterRequest): ComponentDetails {
  return details
}

/** Counts two processes under one id, and logs it once in a while. */
export function clash({ clashes, options, metrics }: Service, kind: ComponentKind, id: string): void {
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

export async function deleteRegister(service: Service, query: Query): Promise<HttpAnswer> {
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

export async function postSegments(service: Service, query: Query): Promise<HttpAnswer> {
  const { store, options, metrics } = service
  const shard = pathId(service, query, 'shard')
  const given = knownOf(service, '/shards/{shard}/segments', Object.keys(segmentsRequest.shape), query.body)
  const body = parsed(service, segmentsRequest, given.body)
  within(service, query, { shard, zone: body.zone })
  const { zone, term } = body
  const segments = sortedSegments(body.segments)
  if (body.checksum !== undefined && body.checksum !== segmentsChecksum(segments)) {
    throw refuse(service, 400, 'invalid', `checksum: is not that of the ${segments.length} segments sent`)
  }
  const push = { zone, segments, term }
  const result = await store.change((state) => registry.pushSegments(state, shard, push, options.rejectsConflicts))
  const headers = { ...given.headers, ...etagOf(stateOf(service), registry.datasets.segments(shard)) }
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

function conflictAnswer(result: {
  readonly accepted: number
  readonly conflicts: readonly registry.Conflict[]
}): z.input<typeof pushedBody> {
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

export async function deleteShard(service: Service, query: Query): Promise<HttpAnswer> {
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

export async function putSegment(service: Service, query: Query): Promise<HttpAnswer> {
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

export async function deleteSegment(service: Service, query: Query): Promise<HttpAnswer> {
  const segment = query.path['segment'] as string
  const ended = await service.store.change((state) => registry.endReservation(state, segment))
  if (!ended) throw new HttpError(404, 'no reservation')
  service.options.log.info({ segment }, `the reservation of segment ${segment} was ended`)
  return empty()
}
