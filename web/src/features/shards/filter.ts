/**
 * What the filter of the table of shards looks at (docs/design/control-plane.md#tables); the language itself stands in
 * lib/filter.ts.
 */

import type { ShardBrief } from '@vacancy/shared/contract'
import { type Filter, parseFilter } from '../../lib/filter.ts'

const NUMBERS = ['lag', 'spare', 'voters', 'queries', 'writes', 'p99', 'packages', 'memory', 'term'] as const
const TEXTS = ['state', 'zone', 'leader', 'node', 'id', 'level', 'mode', 'says'] as const
type Key = (typeof NUMBERS)[number] | (typeof TEXTS)[number]

/** A shard by the keys of the filter. What was not told is null and passes no comparison. */
export function shardFields(shard: ShardBrief): Record<Key, string | number | null> {
  return {
    id: shard.id,
    // A healthy node says nothing about its shard; an unhealthy one is what somebody looks for.
    state: [shard.state, ...unhealthyStates(shard)].join(' '),
    level: shard.level,
    zone: shard.zone,
    leader: shard.leader ?? 'none',
    node: shard.slots.map((slot) => slot.node).join(' '),
    mode: shard.mode,
    says: shard.message,
    lag: shard.maxLagEntries,
    spare: shard.spare,
    voters: shard.voters,
    queries: shard.rates.queries,
    writes: shard.rates.writes,
    p99: shard.rates.p99,
    packages: shard.packages,
    memory: shard.memoryBytes,
    term: shard.term,
  }
}

function unhealthyStates(shard: ShardBrief): string[] {
  return shard.slots.map((slot) => slot.state).filter((state) => state !== 'healthy')
}

/** A filter without the pairs that cannot be meant, and a sentence for each of those. */
export function parseShardFilter(text: string): { readonly filter: Filter; readonly faults: readonly string[] } {
  const { words, pairs } = parseFilter(text)
  const faults: string[] = []
  const known = pairs.filter(({ key, op, value }) => {
    if (isOneOf(TEXTS, key)) return true
    if (!isOneOf(NUMBERS, key)) {
      faults.push(`there is no key ${key}; known are ${[...TEXTS, ...NUMBERS].join(', ')}`)
    } else if (Number.isNaN(Number(value))) {
      faults.push(`${key} is compared with a number, as in ${key}:>1000, not with ${op === ':' ? '' : op}${value}`)
    } else return true
    return false
  })
  return { filter: { words, pairs: known }, faults }
}

function isOneOf(keys: readonly string[], key: string): boolean {
  return keys.includes(key)
}

/** Keys for completion, with the values that there are. */
export function filterKeys(shards: readonly ShardBrief[]): { readonly [key: string]: readonly string[] } {
  const values = (of: (shard: ShardBrief) => readonly string[]) => [...new Set(shards.flatMap(of))].sort()
  return {
    state: values((shard) => [shard.state, ...unhealthyStates(shard)]),
    zone: values((shard) => [shard.zone]),
    leader: values((shard) => [shard.leader ?? 'none']),
    level: values((shard) => [shard.level]),
    lag: ['>1000'],
    spare: ['0'],
    ...Object.fromEntries(NUMBERS.filter((key) => key !== 'lag' && key !== 'spare').map((key) => [key, []])),
  }
}
