/**
 * Paths that only a clustered node has (docs/design/http.md#node-api): the leader, the members, and the changes that
 * operators request. This module checks the form of a change; the leader decides whether it is allowed.
 */

import { ID_RULE, parseId } from '@vacancy/shared'
import {
  CLUSTER_TEXTS,
  type ClusterInfo,
  type ClusterOperation,
  type ClusterOperations,
  dropLoadRequest,
  loadRequest,
  NODE_HTTP_LIMITS,
  type NodeInfo,
  type NodeStatus,
} from '@vacancy/shared/contract'
import { type HttpAnswer, HttpError, json, text } from '@vacancy/shared/node'
import type { FinishedOperation, MemberStatus, RunningOperation } from '../status.ts'
import type { ClusterHandle, ClusterRequest, NodeHandle, PullStatus } from './handle.ts'
import type { JsonObject, Query } from './listener.ts'

export const CLUSTER_LIMITS = {
  /** Changes waiting for a reply at once; more wait for a place. */
  inFlightMax: 4,
  placeMs: 1_000,
  answerMs: 5_000,
} as const

type Limits = { readonly [name in keyof typeof CLUSTER_LIMITS]: number }

/** The handlers by their names in the contract's table. */
export function clusterAnswers(
  handle: NodeHandle,
  cluster: ClusterHandle,
  settings: { readonly nodeInfoLeaderUrl: boolean },
  limits: Limits = CLUSTER_LIMITS,
) {
  const send = createSend(cluster, limits)
  return {
    nodeInfo: () => json(200, nodeInfo(handle, cluster, settings.nodeInfoLeaderUrl)),
    leader: () => json(200, cluster.info().leader),
    peers: () => json(200, peersOf(cluster)),
    setPeers: ({ list }: Query) => setPeers(cluster, list),
    addMember: (query: Query) => send({ kind: 'promote', node: nodeOfPath(query) }),
    removeMember: (query: Query) => send({ kind: 'demote', node: nodeOfPath(query) }),
    adminTransfer: (query: Query) => send({ kind: 'transfer', node: nodeOfPath(query) }),
    clusterInfo: () => json(200, infoDocument(handle, cluster)),
    clusterOperations: () => json(200, operations(cluster)),
    promote: ({ body }: Query) => send({ kind: 'promote', ...memberOf(body, 'node_id') }),
    demote: ({ body }: Query) => send({ kind: 'demote', ...memberOf(body, 'node_id') }),
    transfer: ({ body }: Query) => send({ kind: 'transfer', ...memberOf(body, 'target_node_id') }),
    load: ({ body }: Query) => load(cluster, send, body),
    dropLoad: ({ body }: Query) => send(dropOf(body)),
  }
}

/** Changes that reply with a text when they start; the others are in node.ts. */
type ShardChange = Exclude<ClusterRequest, { kind: 'set-time' | 'setting' | 'leave' }>

/** Sends requests to the leader, a few at a time, and never waits longer than a caller does. */
function createSend(cluster: ClusterHandle, limits: Limits): (request: ShardChange) => Promise<HttpAnswer> {
  const waiting: (() => void)[] = []
  let inFlight = 0
  const leave = () => {
    const next = waiting.shift()
    if (next) next()
    else inFlight--
  }
  const enter = async () => {
    if (inFlight < limits.inFlightMax) {
      inFlight++
      return
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    waiting.push(resolve)
    const late = setTimeout(() => {
      waiting.splice(waiting.indexOf(resolve), 1)
      reject(new HttpError(503, 'cluster busy, please retry'))
    }, limits.placeMs)
    await promise.finally(() => clearTimeout(late))
  }
  return async (request) => {
    await enter()
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new HttpError(504, 'command timeout')), limits.answerMs)
    try {
      const { status, text: message } = await Promise.race([cluster.request(request), late])
      if (status !== 202) throw new HttpError(status, message)
      return text(202, CLUSTER_TEXTS[request.kind])
    } finally {
      clearTimeout(timer)
      leave()
    }
  }
}

function nodeInfo(handle: NodeHandle, cluster: ClusterHandle, withUrl: boolean): NodeInfo {
  const { leader, zoneId, nodeId } = cluster.info()
  return {
    leader_id: leader,
    shard_id: handle.shardId,
    zone_id: zoneId,
    node_id: nodeId,
    ...(withUrl && { leader_url: cluster.leaderUrl() }),
  }
}

/** The peers of a node; before it knows members, the nodes it dials. */
function peersOf(cluster: ClusterHandle): string[] {
  const { nodeId, members, peers } = cluster.info()
  const others = members.length > 0 ? members.map(({ id }) => id) : peers
  // Ids are ASCII: the order of UTF-16 units is the order of bytes.
  return [...new Set([nodeId, ...others])].sort()
}

function setPeers(cluster: ClusterHandle, list: readonly unknown[]): HttpAnswer {
  const { peersMax } = NODE_HTTP_LIMITS
  if (list.length < 1 || list.length > peersMax) {
    throw new HttpError(400, `peers must be 1 to ${peersMax} node ids, are ${list.length}`)
  }
  cluster.setPeers([...new Set(list.map((id) => validId(id, 'peers')))])
  return json(202, { message: 'peers updated' })
}

function nodeOfPath({ rest, body }: Query): string {
  if (rest === '') throw new HttpError(400, 'node_id is required')
  let decoded: string
  try {
    decoded = decodeURIComponent(rest)
  } catch (cause) {
    throw Object.assign(new HttpError(400, 'node_id is not percent-encoded UTF-8'), { cause })
  }
  if (Object.values(body).some((id) => id !== decoded)) throw new HttpError(400, 'path and body name different nodes')
  return validId(decoded, 'node_id')
}

function memberOf(body: JsonObject, key: 'node_id' | 'target_node_id'): { node: string; term?: number } {
  const { [key]: value, expected_term: term } = body
  if (value === undefined || value === null || value === '') throw new HttpError(400, `${key} is required`)
  const node = validId(value, key)
  if (term === undefined) return { node }
  if (!Number.isSafeInteger(term) || (term as number) < 0) throw new HttpError(400, 'expected_term must be a number')
  return { node, term: term as number }
}

function validId(value: unknown, key: string): string {
  const id = typeof value === 'string' ? parseId(value) : undefined
  if (id === undefined) throw new HttpError(400, `${key} must be ${ID_RULE}`)
  return id
}

async function load(
  cluster: ClusterHandle,
  send: (request: ShardChange) => Promise<HttpAnswer>,
  body: JsonObject,
): Promise<HttpAnswer> {
  const { data } = loadRequest.safeParse(body)
  if (!data) {
    const forms = 'file (an absolute path on this machine), digest (64 hexadecimal digits), or url with digest'
    throw new HttpError(400, `${forms} is required`)
  }
  if (!('url' in data)) return send({ kind: 'load', ...data })
  const { status, text: message } = cluster.pull(data)
  if (status !== 202) throw new HttpError(status, message)
  return text(202, CLUSTER_TEXTS.load)
}

function dropOf(body: JsonObject): ShardChange {
  const { data } = dropLoadRequest.safeParse(body)
  if (!data) throw new HttpError(400, 'digest (64 hexadecimal digits) is required')
  return { kind: 'drop-load', ...data }
}

/** The document of `/cluster/info`, also part of `/status`. */
function infoDocument(handle: NodeHandle, cluster: ClusterHandle): ClusterInfo {
  const info = cluster.info()
  const replica = handle.replica()
  const idsOf = (isVoter: boolean) => info.members.filter((each) => each.isVoter === isVoter).map(({ id }) => id)
  const { bootstrap, operation } = info
  const [last] = info.lastOperations
  return {
    leader_id: info.leader,
    members: { voters: idsOf(true).sort(), learners: idsOf(false).sort() },
    node_id: info.nodeId,
    shard_id: handle.shardId,
    zone_id: info.zoneId,
    cluster_id: info.clusterId,
    leader_url: cluster.leaderUrl(),
    term: info.term,
    first_index: replica?.firstIndex ?? 0,
    last_index: replica?.lastIndex ?? 0,
    commit_index: replica?.commitIndex ?? 0,
    applied_index: replica?.appliedIndex ?? 0,
    joint: info.isJoint,
    nodes: info.members.map(memberDocument),
    bootstrap: bootstrap
      ? {
          waits_for: bootstrap.waitsFor,
          why: bootstrap.why,
          needed: bootstrap.needed,
          voters: bootstrap.voters.map((voter) => ({ ...voter })),
        }
      : null,
    operation: operation ? runningDocument(operation) : null,
    last_operation: last ? finishedDocument(last) : null,
    ...(replica?.stays && { settings: { ...replica.stays.settings } }),
  }
}

function memberDocument(member: MemberStatus): ClusterInfo['nodes'][number] {
  const { id, role, isVoter, health, matchIndex, lagEntries, lagMs, host } = member
  return {
    id,
    role,
    voter: isVoter,
    health,
    match_index: matchIndex ?? null,
    lag_entries: lagEntries ?? null,
    lag_seconds: lagMs === undefined ? null : lagMs / 1000,
    host,
  }
}

function operations(cluster: ClusterHandle): ClusterOperations {
  const { operation, lastOperations } = cluster.info()
  return {
    operation: operation ? runningDocument(operation) : null,
    operations: lastOperations.map(finishedDocument),
  }
}

function runningDocument({ kind, node, startedMs, step }: RunningOperation): NonNullable<ClusterInfo['operation']> {
  return { kind, node, started_at: new Date(startedMs).toISOString(), step }
}

function finishedDocument({ kind, node, result, reason, atMs }: FinishedOperation): ClusterOperation {
  return { kind, node, result, reason, at: new Date(atMs).toISOString() }
}

function pullDocument(pull: PullStatus | undefined): NonNullable<NodeStatus['cluster']>['pull'] {
  if (!pull) return null
  const { digest, state, bytesDone, bytesTotal, error, startedMs } = pull
  const started_at = new Date(startedMs).toISOString()
  return { digest, state, bytes_done: bytesDone, bytes_total: bytesTotal, error, started_at }
}

/** The part of `/status` that only a clustered node has. */
export function statusDocument(handle: NodeHandle, cluster: ClusterHandle): NonNullable<NodeStatus['cluster']> {
  const { isLeading, stalenessMs, installing, awaitedLoad, isClockSuspect, transport } = cluster.info()
  const registry = cluster.registry()
  const resolver = cluster.resolver()
  return {
    info: infoDocument(handle, cluster),
    leading: isLeading,
    staleness_seconds: stalenessMs === undefined ? null : stalenessMs / 1000,
    peers: peersOf(cluster),
    installing: installing
      ? {
          from: installing.from,
          index: installing.index,
          bytes_done: installing.bytesDone,
          bytes_total: installing.bytesTotal,
        }
      : null,
    awaited_load: awaitedLoad ? { digest: awaitedLoad.digest, bytes_missing: awaitedLoad.bytesMissing } : null,
    pull: pullDocument(cluster.pulled()),
    clock_suspect: isClockSuspect,
    connections_rejected: { ...transport.rejected },
    registry: registry
      ? {
          up: registry.isReachable,
          address: registry.address,
          error: registry.fault,
          heartbeat_age_seconds: registry.heartbeatAgeMs === undefined ? null : registry.heartbeatAgeMs / 1000,
          codec_mismatch: registry.codecMismatch === '' ? null : registry.codecMismatch,
          published: registry.published ? { ...registry.published } : null,
          refusal: registry.refusal,
        }
      : null,
    resolver: resolver ? { address: resolver.address, error: resolver.error, errors: { ...resolver.errors } } : null,
  }
}
