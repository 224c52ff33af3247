/** Paths of the cluster management contract: plain text on success, otherwise JSON with an error. */
import { parseId } from '@vacancy/shared'
import { type Caller, ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import type { ShardView } from '@vacancy/shared/contract'
import { NodeHttpError } from '../http/node-http.ts'
import type { NodeAddress } from './cluster.ts'
import { addressesOf, type ClusterModule } from './cluster-state.ts'
import { shardView, shardViews } from './collector.ts'
import { requestNode, sendToNode } from './node-requests.ts'
import { runningOperations } from './operation-state.ts'

const CONTRACT_MS = 7_000

// The contract's paths: plain text on success, `{"error":"…"}` otherwise

function contractError(status: number, error: string): ProblemError {
  return new ProblemError(status, 'cluster', error, { more: { error } })
}

function requestedShard({ collector }: ClusterModule, id: string | undefined): ShardView {
  const shards = shardViews(collector)
  const shard = id === undefined ? (shards.length === 1 ? shards[0] : undefined) : shardView(collector, id)
  if (shard) return shard
  const known = shards
    .map((each) => each.id)
    .slice(0, 100)
    .join(', ')
  if (id !== undefined) throw contractError(404, `unknown shard; known shards: ${known || 'none yet'}`)
  throw contractError(400, shards.length === 0 ? 'no shard is known yet' : `shard is required: ?shard= one of ${known}`)
}

/** The leader, else any responding node. */
function requestedNode(module: ClusterModule, shard: ShardView): NodeAddress {
  const up = shard.nodes.filter(({ freshness }) => freshness === 'live' || freshness === 'delayed')
  const id = shard.leader ?? up[0]?.id
  const node = addressesOf(module, shard.id).find((each) => each.id === id && each.apiUrl !== '')
  if (node) return node
  throw contractError(503, 'no leader')
}

export async function infoOf(module: ClusterModule, id: string | undefined): Promise<unknown> {
  const shard = requestedShard(module, id)
  const node = requestedNode(module, shard)
  let reply: { readonly status: number; readonly body: string }
  try {
    reply = await requestNode(module, node, '/cluster/info', { timeoutMs: CONTRACT_MS })
  } catch (error) {
    if (error instanceof ProblemError) throw contractError(error.status, error.message)
    throw error
  }
  if (reply.status !== 200) throw contractError(reply.status, errorText(reply.body))
  return JSON.parse(reply.body)
}

function audited(error: ProblemError): ProblemError {
  error.isAudited = true
  return error
}

export async function pass(
  module: ClusterModule,
  request: Pick<RouteRequest<'POST /cluster/promote-learner'>, keyof Caller | 'query'>,
  change: { readonly path: string; readonly key: string; readonly node: string | undefined; readonly action: string },
): Promise<string> {
  const { principal, address, userAgent, requestId, query } = request
  if (change.node === undefined || change.node === '') throw contractError(400, `${change.key} is required`)
  if (parseId(change.node) === undefined) throw contractError(400, `${change.key} is not a node id`)
  const shard = requestedShard(module, query.shard)
  const running = runningOperations(module.operations).find((each) => each.shard === shard.id)
  const target = `${shard.id}/${change.node}`
  const note = { principal, address, userAgent, requestId, action: change.action, target }
  if (running) {
    await module.deps.audit({ ...note, result: 'refused', detail: 'another operation is running' })
    throw audited(contractError(409, `another membership operation is running: ${running.id}`))
  }
  const node = requestedNode(module, shard)
  // Before the request is sent, so that it is in the log whatever its outcome is.
  await module.deps.audit({ ...note, result: 'sent', detail: `to ${node.id}` })
  try {
    const { status, body } = await sendToNode(module, node, change.path, { [change.key]: change.node }, CONTRACT_MS)
    const isTaken = status >= 200 && status < 300
    await module.deps.audit({
      ...note,
      result: isTaken ? 'accepted' : 'refused',
      detail: `${status} ${isTaken ? body.slice(0, 200) : errorText(body)}`,
    })
    if (!isTaken) throw audited(contractError(status, errorText(body)))
    return body
  } catch (error) {
    if (!(error instanceof NodeHttpError)) throw error
    await module.deps.audit({ ...note, result: 'failed', detail: error.message })
    throw contractError(
      error.code === 'timeout' ? 504 : 503,
      error.code === 'timeout' ? 'command timeout' : `${node.id}: ${error.message}`,
    )
  }
}

function errorText(body: string): string {
  try {
    const { error } = JSON.parse(body) as { error?: unknown }
    if (typeof error === 'string') return error.slice(0, 500)
  } catch {
    // Not JSON: returned unchanged.
  }
  return body.trim().slice(0, 500)
}
