/** The sentence above the attention list. */

import type { Summary } from '@vacancy/shared/contract'
import { age } from '../../lib/format.ts'
import * as copy from './copy.ts'

/** "3 items need attention.", or the health of the cluster and when it last changed; the events are beside it. */
export function attentionLead(summary: Pick<Summary, 'at' | 'attention' | 'counts' | 'events'>): string {
  const open = summary.attention.filter((item) => item.asideUntil === null).length
  if (open > 0) return copy.attention.count(open)
  const { shards, shardsHealthy } = summary.counts
  if (shards === 0) return copy.attention.noShards
  const health =
    shards === shardsHealthy
      ? shards === 1
        ? copy.attention.oneHealthy
        : copy.attention.allHealthy(shards)
      : copy.attention.someHealthy(shardsHealthy, shards)
  const [last] = summary.events
  if (!last) return health
  const ago = age(Math.max(0, Date.parse(summary.at) - Date.parse(last.at)))
  return copy.attention.lastChange(health, ago)
}

/** Whether no node responds: that is one fact of the cluster, and not one of each shard. */
export function isDark({ counts: { nodes, nodesAnswering } }: Pick<Summary, 'counts'>): boolean {
  return nodes > 0 && nodesAnswering === 0
}

/** The summary without items that are the same fact as a dark cluster. */
export function withoutDark<S extends Pick<Summary, 'counts' | 'attention'>>(summary: S): S {
  if (!isDark(summary)) return summary
  return { ...summary, attention: summary.attention.filter(({ rule, area }) => rule !== 1 || area !== 'shards') }
}
