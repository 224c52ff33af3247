/** Attributes of the properties of a result, in as few requests to one node as possible. */
import { packPropertyId } from '@vacancy/shared'
import type { RouteRequest } from '@vacancy/shared/api/route'
import { NODE_HTTP_LIMITS, type PropertiesAnswer } from '@vacancy/shared/contract'
import { propertiesAt, type Reach } from '../nodes/ask.ts'
import { oneNode, targetOf } from '../nodes/target.ts'

export async function propertiesOf(
  reach: Reach,
  { body, signal }: Pick<RouteRequest<'POST /api/v1/query/properties'>, 'body' | 'signal'>,
): Promise<PropertiesAnswer> {
  const target = targetOf(reach.cluster, body)
  const node = oneNode(reach.cluster, target)
  const ids = [...new Set(body.ids)]
  const askable = ids.filter((id) => packPropertyId(id) !== undefined)
  const answers = await Promise.all(
    batchesOf(askable, NODE_HTTP_LIMITS.propertyIdsMax).map((batch) => propertiesAt(reach, node, batch, signal)),
  )
  const found = answers.flatMap(({ properties }) => properties)
  const known = new Set(found.map(({ id }) => id))
  return {
    shard: target.shard,
    node: node.id,
    properties: found,
    missing: ids.filter((id) => !known.has(id)),
  }
}

function batchesOf<T>(entries: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(entries.length / size) }, (_, n) => entries.slice(n * size, (n + 1) * size))
}
