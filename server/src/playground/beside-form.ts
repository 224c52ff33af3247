/** What the form of a search shows beside its fields, read from a node after the hits. */

import { dayOf, formatDay, LIMITS, parseDay } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import type { ArrivalsAnswer, CountsAnswer } from '@vacancy/shared/contract'
import { COMMANDS, HIT_FIELDS, PROPERTY_FACETS, type RequestFields, SEARCH_FACETS } from '@vacancy/shared/wire'
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
  const fields = matchFields(readFields(command, body.fields))
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

/** The fields that say what matches. */
function matchFields(fields: RequestFields): RequestFields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !HIT_FIELDS.has(name)))
}

/** Days of arrival before and after that of the search. */
const EARLIER = 7
const LATER = 13
const OF_CALENDARS: ReadonlySet<string> = new Set(COMMANDS.PRICECAL.fields.map(({ name }) => name))

/** The lowest total of the stay by day of arrival, of all that the filters leave. */
export async function arrivalTotals(
  reach: Reach,
  { body, signal }: Pick<RouteRequest<'POST /api/v1/query/arrivals'>, 'body' | 'signal'>,
): Promise<ArrivalsAnswer> {
  const { command } = body
  if (command !== 'SEARCHAVAIL') {
    throw problem('no-search', { detail: `${command} has no nights.`, field: 'command', hint: 'Use SEARCHAVAIL.' })
  }
  const { dates, ...read } = matchFields(readFields(command, body.fields))
  const nights = (dates as readonly string[]).map((date) => parseDay(date) ?? Number.NaN).sort((a, b) => a - b)
  const first = nights[0] as number
  if (nights.length > LIMITS.stayNightsMax || nights.some((night, n) => night !== first + n)) {
    throw problem('invalid-fields', {
      detail: `dates must be 1 to ${LIMITS.stayNightsMax} nights, one after the other`,
      field: 'fields',
    })
  }
  const target = targetOf(reach.cluster, body)
  const node = oneNode(reach.cluster, target)
  const answer = { shard: target.shard, node: node.id, nights: nights.length }
  const window = reach.cluster.shard(target.shard)?.window
  const today = (window && parseDay(window.from)) ?? dayOf(reach.clients.clock.wallMs())
  const from = Math.max(first - EARLIER, today)
  const to = Math.min(first + LATER, (window && parseDay(window.to)) ?? Number.POSITIVE_INFINITY)
  if (from > to) return { ...answer, days: [] }
  const filters = Object.fromEntries(Object.entries(read).filter(([name]) => OF_CALENDARS.has(name)))
  const stays = { from: formatDay(from), to: formatDay(to), nights: nights.length }
  const { result } = await send(reach, [node], 'PRICECAL', { ...filters, ...stays }, signal)
  const days = result.days.map(({ arrival, total, properties }) => ({
    ...{ arrival, total: total === undefined ? null : Number(total), properties },
  }))
  return { ...answer, days }
}
