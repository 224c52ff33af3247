/** How many results a search has without one of its filters: which one is in the way (console.md §9.4). */
import { PLAYGROUND_LIMITS, type RelaxAnswer } from '@vacancy/shared/contract'
import type { RequestFields } from '@vacancy/shared/wire'
import { type Asked, ProblemError } from '../route.ts'
import { type Reach, readFields, send } from './ask.ts'
import type { SearchCommand } from './match.ts'
import { type LimitsCache, limitsOf, rowCount } from './query.ts'
import { oneNode, targetOf } from './target.ts'
import { asEngineReads } from './why-not.ts'

/** Fields that narrow a search; together in a row, they go together. */
const FILTERS: readonly (readonly string[])[] = [
  ['area'],
  ['propertyId'],
  ['propertyType'],
  ['stars'],
  ['category'],
  ['longitude', 'latitude', 'radiusMetres'],
  ['availability'],
  ['finalPrice'],
  ['minPrice'],
]
const LISTS = ['amenities', 'rateFeatures', 'dates']

export async function relax(
  reach: Reach,
  limits: LimitsCache,
  { body, signal }: Pick<Asked<'POST /api/v1/query/relax'>, 'body' | 'signal'>,
): Promise<RelaxAnswer> {
  const { command } = body
  if (command !== 'SEARCHPROP' && command !== 'SEARCHAVAIL') {
    throw new ProblemError(400, 'no-search', `${command} is no search.`, {
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
export function looserThan(command: SearchCommand, fields: RequestFields): Looser[] {
  const { limit: _, explain: __, ...plain } = fields
  const looser: Looser[] = []
  for (const together of FILTERS) {
    const [field] = together as [string]
    if (plain[field] === undefined) continue
    const rest = Object.fromEntries(Object.entries(plain).filter(([name]) => !together.includes(name)))
    // Without a bound of its own, a search asks for one room left.
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
