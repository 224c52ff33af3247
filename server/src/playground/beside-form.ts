/** What the form of a search shows beside its fields, read from a node after the hits. */

import { LIMITS } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import type { CountsAnswer } from '@vacancy/shared/contract'
import { HIT_FIELDS, PROPERTY_FACETS, SEARCH_FACETS } from '@vacancy/shared/wire'
import { type Reach, readFields, send } from '../nodes/ask.ts'
import { oneNode, targetOf } from '../nodes/target.ts'

const { total: _, roomType: ROOM_TYPE, ...OF_PROPERTY_AND_NIGHTS } = SEARCH_FACETS
const PLAIN = Object.values(OF_PROPERTY_AND_NIGHTS).reduce<number>((bits, bit) => bits | bit, 0)
/** Lists: a match has all of their values, so another one narrows. */
const LISTS = SEARCH_FACETS.amenities | SEARCH_FACETS.rateFeatures

/** How many properties a search finds with each value of its filters, counted in one search. */
export async function filterCounts(
  reach: Reach,
  { body, signal }: Pick<RouteRequest<'POST /api/v1/query/counts'>, 'body' | 'signal'>,
): Promise<CountsAnswer> {
  const { command } = body
  if (command !== 'SEARCHPROP' && command !== 'SEARCHAVAIL') {
    throw problem('no-search', { detail: `${command} is not a search.`, field: 'command' })
  }
  const read = Object.entries(readFields(command, body.fields))
  const fields = Object.fromEntries(read.filter(([name]) => !HIT_FIELDS.has(name)))
  const anyRoom = fields['anyRoomType'] !== undefined || fields['roomTypes'] !== undefined ? ROOM_TYPE : 0
  const facets = command === 'SEARCHPROP' ? PLAIN & PROPERTY_FACETS : PLAIN | anyRoom
  const counting = { facets, disjunctiveFacets: facets & ~LISTS, facetValues: LIMITS.facetValuesMax, limit: 1 }
  const target = targetOf(reach.cluster, body)
  const node = oneNode(reach.cluster, target)
  const { result } = await send(reach, [node], command, { ...fields, ...counting }, signal)
  const filters = Object.entries(result.facets ?? {}).map(([facet, entries]) => ({
    field: facet === 'roomType' ? 'roomTypes' : facet,
    values: entries.flatMap((entry) => ('value' in entry ? { value: String(entry.value), count: entry.count } : [])),
    more: entries.length >= LIMITS.facetValuesMax,
  }))
  return { shard: target.shard, node: node.id, filters }
}
