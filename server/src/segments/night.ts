/** The history of one night, from the log that a node keeps. Its cursor is of that node, which is named with it. */
import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import { type NightHistory, nightBody } from '@vacancy/shared/contract'
import { parseJson, type Reach, reasonOf, refusedBy } from '../nodes/ask.ts'
import { oneNode, targetOf } from '../nodes/target.ts'

/** A thread in the background reads the log. It is started by the first request, and yields to all others. */
const NIGHT_MS = 25_000

type NightRequest = Pick<
  RouteRequest<'GET /api/v1/shards/{shard}/properties/{property}/night'>,
  'params' | 'query' | 'signal'
>

export async function nightHistory(reach: Reach, { params, query, signal }: NightRequest): Promise<NightHistory> {
  const { room, date, cursor } = query
  const target = targetOf(reach.cluster, { shard: params.shard, node: query.node })
  const node = oneNode(reach.cluster, target)
  const asked = new URLSearchParams({ property: params.property, room_type: room, date, ...(cursor && { cursor }) })
  const path = `/night?${asked}`
  const { status, body } = await reach.cluster.request(node, path, { as: 'client', signal, timeoutMs: NIGHT_MS })
  if (status === 400) throw problem('invalid-request', { detail: reasonOf(body) })
  if (status === 404) {
    throw problem('node-answer', {
      detail: `${node.id} has no histories of nights: it runs an older version.`,
      hint: 'Upgrade the node, or read from another one.',
    })
  }
  if (status !== 200) throw refusedBy(node, path, status, body)
  const parsed = nightBody.safeParse(parseJson(body))
  if (!parsed.success) throw refusedBy(node, path, status, 'the response is not a history of a night')
  return {
    ...parsed.data,
    shard: target.shard,
    node: node.id,
    role: reach.cluster.node(target.shard, node.id)?.role ?? 'unknown',
    at: new Date(reach.clients.clock.wallMs()).toISOString(),
  }
}
