/** The shard and nodes of a query. */

import { problem } from '@vacancy/shared/api/errors'
import { EDGE_TARGET } from '@vacancy/shared/contract'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'

export type Target = { readonly shard: string; readonly nodes: readonly NodeAddress[] }

/** @throws ProblemError 400 when the shard is ambiguous, 404 for unknown names */
export function targetOf(
  cluster: Cluster,
  request: { readonly shard?: string | undefined; readonly node?: string | undefined },
): Target {
  const known = cluster.shards().map(({ id }) => id)
  const shard = request.shard || (known.length === 1 ? known[0] : undefined)
  if (shard === undefined) {
    if (known.length === 0) {
      throw problem('no-shard')
    }
    throw problem('shard-required', {
      detail: `There are ${known.length} shards: give one of them.`,
      field: 'shard',
      hint: listed(known),
    })
  }
  const nodes = cluster.addresses(shard)
  if (!known.includes(shard) || nodes.length === 0) {
    throw problem('shard-not-found', { detail: `There is no shard ${shard}.`, field: 'shard', hint: listed(known) })
  }
  // Reads beside the query itself, such as a preview, go to the nodes.
  if (!request.node || request.node === EDGE_TARGET) return { shard, nodes }
  const node = nodes.find(({ id }) => id === request.node)
  if (node) return { shard, nodes: [node] }
  throw problem('node-not-found', {
    detail: `Shard ${shard} has no node ${request.node}.`,
    field: 'node',
    hint: listed(nodes.map(({ id }) => id)),
  })
}

/**
 * The edge routers, for a query through them. The shard is the one that owns the segment.
 *
 * @throws ProblemError 409 when no edge router is known
 */
export function edgeTarget(cluster: Cluster, segment: string | undefined, shard: string | undefined): Target {
  const nodes = cluster.edges()
  if (nodes.length === 0) throw problem('no-edge')
  return { shard: (segment && cluster.ownerOf(segment)) || shard || '', nodes }
}

const LISTED_MAX = 20

function listed(names: readonly string[]): string {
  const more = names.length > LISTED_MAX ? `, and ${names.length - LISTED_MAX} more` : ''
  return names.length === 0 ? '' : `Known: ${names.slice(0, LISTED_MAX).join(', ')}${more}.`
}

/**
 * One node for related reads: the requested one, else a healthy one, preferably not the leader, which handles the
 * writes.
 */
export function oneNode(cluster: Cluster, { shard, nodes }: Target): NodeAddress {
  const rank = (node: NodeAddress) => {
    const view = cluster.node(shard, node.id)
    if (node.tcp === undefined) return 9
    if (!view || view.freshness === 'gone' || view.freshness === 'never') return 5
    if (view.state === 'unreachable' || view.state === 'not-answering' || view.state === 'unavailable') return 6
    return (view.state === 'healthy' ? 0 : 2) + (view.role === 'leader' ? 1 : 0)
  }
  const [best] = nodes.toSorted((a, b) => rank(a) - rank(b))
  if (!best) throw problem('no-node', { detail: `Shard ${shard} has no node.` })
  return best
}
