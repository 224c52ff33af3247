/**
 * Reads the state of one node of the shard over its HTTP API. `/healthz` and `/node-info` are needed; `/peers`,
 * `/cluster/info` and `/status` are used where they are served. Unknown and missing fields are tolerated, because
 * existing nodes have other ones: `leader_url` among them, which is ignored.
 */

import type { Clock } from '@vacancy/shared'
import type { HttpCaller, HttpResult } from '@vacancy/shared/node'
import { z } from 'zod'
import type { Resolver, ResolveTarget } from '../resolve.ts'
import { identityFault, type NodePlace, type NodeReport } from './topology.ts'

export type ProbeStep = 'resolver' | 'healthz' | 'node-info' | 'identity'

export type ProbeOptions = {
  readonly id: string
  readonly shard: string
  readonly zone: string
  readonly resolver: Pick<Resolver, 'find' | 'again'>
  readonly nodes: HttpCaller
  readonly scheme: 'http' | 'https'
  readonly ports: { readonly tcp: number; readonly api: number }
  readonly timeoutMs: number
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly unserved: Unserved
}

/** Node and path → until when it is not requested again, because the node does not serve it. Written by probeNode. */
export type Unserved = Map<string, number>

export type Probe =
  | { readonly kind: 'ok'; readonly report: NodeReport; readonly peers: readonly string[] }
  | { readonly kind: 'failed'; readonly step: ProbeStep; readonly reason: string; readonly host: string }

/** Pause between requests of a path that is not served. */
const UNSERVED_MS = 60_000
const UNSERVED_MAX = 2_000
const BYTES_MAX = { small: 65_536, info: 1_048_576, status: 8_388_608 } as const

const text = z.string().nullish()
const nodeInfo = z.object({ leader_id: text, shard_id: text, zone_id: text, node_id: text })
const peerIds = z.array(z.string())
const clusterInfo = z.object({
  members: z.object({ voters: z.array(z.string()) }),
  term: z.number().optional(),
})
const status = z.object({ replica: z.object({ lag_entries: z.number().nonnegative() }).nullish() })

/** Never rejects. Takes at most twice the timeout. */
export async function probeNode(options: ProbeOptions): Promise<Probe> {
  const { id, shard, zone, resolver, ports } = options
  const target: ResolveTarget = { kind: 'node', shard, id }
  const found = await inTime(resolver.find(target), options.timeoutMs)
  if (found?.kind !== 'found')
    return { kind: 'failed', step: 'resolver', reason: found?.reason ?? 'no response in time', host: '' }
  const { host, port = ports.tcp, apiPort = ports.api } = found.address
  const address: NodePlace = { host, tcpPort: port, apiPort }
  const failed = (step: ProbeStep, reason: string): Probe => {
    // The node may have moved, or the resolver may have named a wrong host. Looked up at most once a second.
    void resolver.again(target)
    return { kind: 'failed', step, reason, host }
  }
  const [health, info, peers, cluster, state] = await Promise.all([
    request(options, address, '/healthz', BYTES_MAX.small),
    request(options, address, '/node-info', BYTES_MAX.small),
    optional(options, address, '/peers', BYTES_MAX.small, peerIds),
    optional(options, address, '/cluster/info', BYTES_MAX.info, clusterInfo),
    optional(options, address, '/status', BYTES_MAX.status, status),
  ])
  const healthText = health.kind === 'answer' ? health.body.trim() : ''
  if (health.kind === 'failed') return failed('healthz', health.reason)
  if (health.status !== 200 || healthText === 'unavailable')
    return { kind: 'failed', step: 'healthz', reason: `${healthText.slice(0, 50)} (${health.status})`, host }
  const shown = bodyOf(info, nodeInfo)
  if (shown === undefined)
    return failed('node-info', info.kind === 'failed' ? info.reason : `unusable response (${info.status})`)
  const identity = {
    node: shown.node_id ?? undefined,
    shard: shown.shard_id ?? undefined,
    zone: shown.zone_id ?? undefined,
  }
  const fault = identityFault(identity, { node: id, shard, zone })
  if (fault !== '') return failed('identity', fault)
  return {
    kind: 'ok',
    report: {
      id,
      address,
      health: healthText.slice(0, 50),
      leaderId: shown.leader_id ?? '',
      members: cluster && { voters: cluster.members.voters, term: cluster.term ?? 0 },
      lag: state?.replica?.lag_entries,
    },
    peers: peers ?? [],
  }
}

function inTime<T>(promise: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), timeoutMs)
    void promise.then((value) => {
      clearTimeout(timer)
      resolve(value)
    })
  })
}

/** Undefined where it is not served, or not in this form. */
async function optional<S extends z.ZodType>(
  options: ProbeOptions,
  address: NodePlace,
  path: string,
  bytesMax: number,
  schema: S,
): Promise<z.infer<S> | undefined> {
  const { unserved, clock, id } = options
  const key = `${id} ${path}`
  const nowMs = clock.monotonicMs()
  if (nowMs < (unserved.get(key) ?? Number.NEGATIVE_INFINITY)) return undefined
  const result = await request(options, address, path, bytesMax)
  if (result.kind === 'answer' && [401, 403, 404, 405].includes(result.status)) {
    if (unserved.size >= UNSERVED_MAX) unserved.clear()
    unserved.set(key, nowMs + UNSERVED_MS)
  } else unserved.delete(key)
  return bodyOf(result, schema)
}

function bodyOf<S extends z.ZodType>(result: HttpResult, schema: S): z.infer<S> | undefined {
  if (result.kind === 'failed' || result.status !== 200) return undefined
  try {
    return schema.safeParse(JSON.parse(result.body)).data
  } catch {
    // Not JSON: the caller treats it as a response of another form.
    return undefined
  }
}

function request(options: ProbeOptions, address: NodePlace, path: string, bytesMax: number): Promise<HttpResult> {
  const { nodes, scheme, timeoutMs, signal } = options
  const host = address.host.includes(':') ? `[${address.host}]` : address.host
  return new Promise((resolve) => {
    const end = (result: HttpResult): void => {
      signal.removeEventListener('abort', abort)
      resolve(result)
    }
    const outgoing = { method: 'GET', path, timeoutMs, bytesMax } as const
    const cancel = nodes.request(`${scheme}://${host}:${address.apiPort}`, outgoing, end)
    const abort = (): void => {
      cancel()
      end({ kind: 'failed', reason: 'cancelled' })
    }
    signal.addEventListener('abort', abort)
  })
}
