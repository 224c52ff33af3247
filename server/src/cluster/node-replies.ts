/** Parses the responses of nodes, path by path, against the contract. */
import { parseId } from '@vacancy/shared'
import {
  clusterInfoBody,
  codecsBody,
  configBody,
  healthzText,
  leaderBody,
  type NodeConfig,
  nodeInfoBody,
  peersBody,
  type SeriesName,
  statusBody,
} from '@vacancy/shared/contract'
import { z } from 'zod'
import { significant } from '../history/figures.ts'
import { changeBetween, readMetrics } from '../history/reading.ts'
import { type HttpReply, NodeHttpError } from '../http/node-http.ts'
import type { NodeAddress } from './cluster.ts'
import { COLLECTOR, type Collector, type PolledNode } from './collector-state.ts'
import { isNamed, readAnswer } from './discovery.ts'
import { type NodeLimits, type NodeObservation, type Source, type SourcePath, withDigest } from './observation.ts'

/** @throws NodeHttpError garbage, other-node */
export function parseReply(
  collector: Collector,
  node: PolledNode,
  path: SourcePath,
  reply: HttpReply,
  now: number,
): Partial<NodeObservation> {
  const { observation } = node
  const is404 = reply.status === 404
  switch (path) {
    case '/healthz':
      return { health: { value: healthOf(reply), at: now } }
    case '/node-info': {
      if (is404) return { isStandalone: true, nodeInfo: undefined }
      const value = readAnswer(reply, nodeInfoBody)
      sameNode(observation.address, value.node_id, value.shard_id)
      return { isStandalone: false, nodeInfo: { value, at: now } }
    }
    case '/leader':
      return is404 ? {} : { namesLeader: { value: readAnswer(reply, leaderBody), at: now } }
    case '/peers':
      if (!is404) readAnswer(reply, peersBody)
      return {}
    case '/cluster/info': {
      if (is404) return { info: undefined }
      const value = readAnswer(reply, clusterInfoBody)
      sameNode(observation.address, value.node_id, value.shard_id)
      return { info: { value, at: now } }
    }
    case '/status': {
      const value = readAnswer(reply, statusBody)
      if (value.mode === 'standalone') sameNode(observation.address, observation.address.id, value.shard_id)
      // When a standalone node joins a shard, the cluster paths are polled again.
      return {
        status: { value, at: now },
        digests: withDigest(observation.digests, value),
        isStandalone: value.mode === 'standalone',
      }
    }
    case '/metrics':
      return readFigures(collector, node, reply, now)
    case '/codecs':
      return { codecs: { value: readAnswer(reply, codecsBody), at: now } }
    case '/config':
      return reply.status === 200 ? { limits: limitsOf(readAnswer(reply, configBody)) } : {}
  }
}

function readFigures(collector: Collector, node: PolledNode, reply: HttpReply, now: number): Partial<NodeObservation> {
  if (reply.status !== 200) readAnswer(reply, z.unknown())
  const reading = readMetrics(reply.body, now)
  if (!reading) throw new NodeHttpError('garbage', 'the response does not contain the metrics of a node')
  const change = node.reading && changeBetween(node.reading, reading)
  node.reading = reading
  collector.hooks.onReading(node.observation.address, reading, change)
  const rounded = (name: SeriesName) => {
    const value = change?.[name] ?? null
    return value === null ? null : significant(value)
  }
  const rates = change && {
    queries: rounded('queries'),
    writes: rounded('writes'),
    errors: rounded('errors'),
    p50: rounded('p50'),
    p99: rounded('p99'),
  }
  const { connectionsLimit } = reading
  const cpu = rounded('cpu') ?? undefined
  return { rates: rates ? { value: rates, at: now } : undefined, cpu, connectionsLimit }
}

/** The stored value of a path is unchanged; only its time is new. */
export function ageOf(observation: NodeObservation, path: SourcePath, now: number): Partial<NodeObservation> {
  switch (path) {
    case '/healthz':
      return observation.health ? { health: { ...observation.health, at: now } } : {}
    case '/node-info':
      return observation.nodeInfo ? { nodeInfo: { ...observation.nodeInfo, at: now } } : {}
    case '/leader':
      return observation.namesLeader ? { namesLeader: { ...observation.namesLeader, at: now } } : {}
    case '/cluster/info':
      return observation.info ? { info: { ...observation.info, at: now } } : {}
    case '/status':
      return observation.status ? { status: { ...observation.status, at: now } } : {}
    case '/codecs':
      return observation.codecs ? { codecs: { ...observation.codecs, at: now } } : {}
    case '/peers':
    case '/metrics':
    case '/config':
      return {}
  }
}

function healthOf({ status, body }: HttpReply): string {
  const { data } = healthzText.safeParse(body.trim())
  if (data === undefined) throw new NodeHttpError('garbage', `answered ${status} without a health state`)
  return data
}

export const OTHER_NODE = 'other-node'

/** A different node may respond at the address. */
function sameNode(address: NodeAddress, id: string, shard: string): void {
  if (!isNamed(address) || (address.id === id && address.shard === shard)) return
  const reported = `${parseId(shard) ?? 'a different shard'}/${parseId(id) ?? 'a different node'}`
  throw new NodeHttpError(OTHER_NODE, `${reported} answers at the address of ${address.shard}/${address.id}`)
}

export function sourceOf({ status, body, milliseconds }: HttpReply, at: number): Source {
  // Copied, because a substring keeps the whole string in memory.
  const text = body.length <= COLLECTOR.bodyKept ? body : Buffer.from(body.slice(0, COLLECTOR.bodyKept)).toString()
  return { status, at, milliseconds: Math.round(milliseconds * 10) / 10, error: undefined, body: text }
}

function limitsOf(config: NodeConfig): NodeLimits | undefined {
  const number = (key: string) => Number(config[key]?.value)
  const limits = {
    electionTimeoutMs: number('raft_tick_ms') * number('raft_election_tick'),
    snapshotIntervalSeconds: number('snapshot_interval_sec'),
    snapshotTriggerCount: number('snapshot_trigger_count'),
    maintenanceHour: number('maintenance_hour'),
  }
  return Object.values(limits).every(Number.isFinite) ? limits : undefined
}
