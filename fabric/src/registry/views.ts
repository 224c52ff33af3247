/** What the registry shows: lists with versions, and views for operators (docs/design/http.md#registry). */

import { assert, type CodecList } from '@vacancy/shared'
import {
  type conflictsBody,
  REGISTRY_LIMITS,
  type shardsBody,
  sortedSegments,
  type topologyBody,
} from '@vacancy/shared/contract'
import { type HttpAnswer, HttpError, json, jsonText } from '@vacancy/shared/node'
import type { z } from 'zod'
import type { Query } from '../http.ts'
import type { Component, RegistryState } from './model.ts'
import { etagOf, refuse, type Service, stateOf } from './service.ts'
import * as registry from './state.ts'

/** Bytes of cached responses: segment lists are long and requested often. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024

export function getShardSegments(service: Service, { path, headers }: Query): HttpAnswer {
  const shard = path['shard'] as string
  const claim = stateOf(service).claims.get(shard)
  if (!claim) throw new HttpError(404, 'unknown shard')
  return listAnswer(service, headers, registry.datasets.segments(shard), (version) => ({
    version,
    zone: claim.zone,
    segments: registry.segmentsOfShard(stateOf(service), shard),
  }))
}

export function getShardNodes(service: Service, { path, headers }: Query): HttpAnswer {
  const shard = path['shard'] as string
  if (!stateOf(service).nodesOf.has(shard)) throw new HttpError(404, 'unknown shard')
  return listAnswer(service, headers, registry.datasets.nodes(shard), (version) => ({
    version,
    nodes: registry.nodesOfShard(stateOf(service), shard),
  }))
}

export function getSegment(service: Service, { path }: Query): HttpAnswer {
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

function claimsOf(state: RegistryState, shards: readonly string[]): { shard: string; zone: string }[] {
  return shards.map((shard) => ({ shard, zone: known(state.claims.get(shard)).zone }))
}

function known<T>(value: T | undefined): T {
  assert(value !== undefined, 'the registry knows zone and claims of what it lists')
  return value
}

function isKnown(headers: Query['headers'], etag: string): boolean {
  const known = headers['if-none-match'] ?? ''
  return known.split(',').some((each) => each.trim().replace(/^W\//, '') === etag)
}

/** A list with its version: 304 when the caller has it; serialized once per version. */
export function listAnswer(
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

export async function getVersions(service: Service, { parameters, headers, gone }: Query): Promise<HttpAnswer> {
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

/** The hash is a u64 and is sent as digits: a Number would lose the last ones (docs/design/http.md#codec-list). */
export function codecsText({ names, hash, hashHex, orderedHash }: CodecList): string {
  return `{"rate_features":${JSON.stringify(names)},"hash":${hash},"hash_hex":"${hashHex}","ordered_hash":"${orderedHash}"}`
}

export function shardsOf(state: RegistryState): z.input<typeof shardsBody> {
  const rows = registry.shards(state).map((shard) => {
    const row = {
      zone: known(registry.zoneOfShard(state, shard)),
      nodes: state.nodesOf.get(shard)?.size ?? 0,
      bridges: state.bridgesOf.get(shard)?.size ?? 0,
      segments: state.ownedBy.get(shard)?.size ?? 0,
    }
    return [shard, row] as const
  })
  return { shards: Object.fromEntries(rows) }
}

export function conflictsOf(state: RegistryState): z.input<typeof conflictsBody>['conflicts'] {
  return registry.conflicts(state).map(({ segment, shards }) => ({
    segment,
    owner_shard: known(shards[0]),
    owner_zone: known(claimsOf(state, shards)[0]).zone,
    claims: claimsOf(state, shards),
  }))
}

export function topologyOf(service: Service): z.input<typeof topologyBody> {
  const { store, options } = service
  const state = stateOf(service)
  const nowMs = options.clock.monotonicMs()
  const listed = ({ id, zone, seenMs, details }: Component) => {
    return { id, zone, age_secs: Math.max(0, nowMs - seenMs) / 1000, ...details }
  }
  const sharded = (component: Component) => ({ ...listed(component), shard: known(component.shard) })
  const shards = registry.shards(state).map((shard) => {
    const row = {
      zone: known(registry.zoneOfShard(state, shard)),
      term: state.claims.get(shard)?.term ?? 0,
      nodes: registry.nodesOfShard(state, shard),
      bridges: sortedSegments(state.bridgesOf.get(shard) ?? []),
      segments: state.ownedBy.get(shard)?.size ?? 0,
    }
    return [shard, row] as const
  })
  return {
    epoch: state.epoch,
    global_version: state.globalVersion,
    warming: store.isWarming(),
    heartbeat_timeout_secs: Math.round(options.heartbeatTimeoutMs / 1000),
    zones: registry.zones(state),
    shards: Object.fromEntries(shards),
    routers: registry.componentsOf(state, 'router').map(listed),
    bridges: registry.componentsOf(state, 'bridge').map(sharded),
    nodes: registry.componentsOf(state, 'node').map(sharded),
    segments: Object.fromEntries([...state.queues].map(([segment, [owner]]) => [segment, known(owner)])),
    conflicts: conflictsOf(state),
    reservations: [...state.reservations].map(([segment, { shard, untilMs }]) => ({
      segment,
      shard,
      until: new Date(untilMs).toISOString(),
    })),
    versions: Object.fromEntries(state.versions),
  }
}
