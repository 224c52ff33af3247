/** The sentence over the list of what needs attention. */

import type { Summary } from '@vacancy/shared/contract'
import { age, count, counted } from '../../lib/format.ts'

/** "3 things need attention.", or that all is well and what changed last. */
export function attentionLead(summary: Pick<Summary, 'at' | 'attention' | 'counts' | 'events'>): string {
  const open = summary.attention.filter((item) => item.asideUntil === null).length
  if (open > 0) return `${counted(open, 'thing needs', 'things need')} attention.`
  const { shards, shardsHealthy } = summary.counts
  if (shards === 0) return 'Nothing is known that could need attention.'
  const health =
    shards === shardsHealthy
      ? `${shards === 1 ? 'The one shard is' : `All ${count(shards)} shards are`} healthy.`
      : `${count(shardsHealthy)} of ${counted(shards, 'shard')} are healthy, nothing else needs attention.`
  const [last] = summary.events
  if (!last) return health
  const ago = age(Math.max(0, Date.parse(summary.at) - Date.parse(last.at)))
  return `${health} Last change ${ago === 'now' ? ago : `${ago} ago`}: ${last.message}.`
}
