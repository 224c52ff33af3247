/** How many results a search has without each of its filters, to find the one that excludes most. */

import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import { PLAYGROUND_LIMITS, type RelaxAnswer } from '@vacancy/shared/contract'
import { COMMANDS, type RequestFields } from '@vacancy/shared/wire'
import { type Reach, readFields, send } from '../nodes/ask.ts'
import { type LimitsCache, limitsOf, rowCount } from '../nodes/query.ts'
import { oneNode, targetOf } from '../nodes/target.ts'
import type { SearchCommand } from './match.ts'
import { asEngineReads } from './why-not.ts'

/** Fields that form one filter, such as a position. */
const POSITION = ['longitude', 'latitude', 'radiusMetres']
const BOX = ['south', 'west', 'north', 'east']
/** Filters of a search from the command table: single values, each with its dependent fields, and lists. */
const FILTERS = COMMANDS.SEARCHAVAIL.fields
  .filter(({ isFilter, width, name }) => isFilter && width !== 'list' && name !== 'latitude')
  .map(({ name }) => (name === 'longitude' ? POSITION : [name]))
const LISTS = COMMANDS.SEARCHAVAIL.fields
  .filter(({ isFilter, width }) => isFilter && width === 'list')
  .map(({ name }) => name)

export async function relax(
  reach: Reach,
  limits: LimitsCache,
  { body, signal }: Pick<RouteRequest<'POST /api/v1/query/relax'>, 'body' | 'signal'>,
): Promise<RelaxAnswer> {
  const { command } = body
  if (command !== 'SEARCHPROP' && command !== 'SEARCHAVAIL') {
    throw problem('no-search', {
      detail: `${command} is not a search.`,
      field: 'command',
      hint: 'Only SEARCHPROP and SEARCHAVAIL have filters.',
    })
  }
  const fields = asEngineReads(command, readFields(command, body.fields))
  const target = targetOf(reach.cluster, body)
  const node = oneNode(reach.cluster, target)
  const { queryLimit } = await limitsOf(reach, limits, target.shard)
  const tried = await Promise.all(
    looserThan(command, fields).map(async ({ field, entry, fields: looser }) => {
      const { result } = await send(reach, [node], command, looser, signal)
      const count = rowCount(result)
      return { field, entry, count, limited: queryLimit !== null && count >= queryLimit }
    }),
  )
  return { shard: target.shard, node: node.id, tried: tried.sort((a, b) => b.count - a.count) }
}

type Looser = { readonly field: string; readonly entry: string | null; readonly fields: RequestFields }

/** The search without each of its filters, without limit and explanation. */
function looserThan(command: SearchCommand, fields: RequestFields): Looser[] {
  const { limit: _, explain: __, cursor: ___, ...plain } = fields
  const looser: Looser[] = []
  for (const together of [...FILTERS, BOX]) {
    const [field] = together as [string]
    if (plain[field] === undefined) continue
    const rest = Object.fromEntries(Object.entries(plain).filter(([name]) => !together.includes(name)))
    // By default, a search requires one available room.
    if (field === 'availability' && command === 'SEARCHAVAIL') rest['availability'] = 0
    looser.push({ field, entry: null, fields: rest })
  }
  for (const field of LISTS) {
    const entries = plain[field]
    if (!Array.isArray(entries) || (field === 'dates' && entries.length < 2)) continue
    for (const entry of entries as string[]) {
      looser.push({ field, entry, fields: { ...plain, [field]: entries.filter((other) => other !== entry) } })
    }
  }
  return looser.slice(0, PLAYGROUND_LIMITS.relaxMax)
}
