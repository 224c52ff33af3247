/**
 * Fields and keys of the shard filter (docs/design/console.md#tables); lib/filter.ts parses its syntax.
 */

import type { ShardBrief } from '@vacancy/shared/contract'
import { type Filter, parseFilter } from '../../lib/filter.ts'
import * as copy from './list-copy.ts'

const NUMBERS = ['lag', 'spare', 'voters', 'queries', 'writes', 'p99', 'packages', 'memory', 'term'] as const
const TEXTS = ['state', 'zone', 'leader', 'node', 'id', 'level', 'mode', 'summary'] as const
type Key = (typeof NUMBERS)[number] | (typeof TEXTS)[number]

/** The fields of a shard by filter key. Missing values are null and match no comparison. */
export function shardFields(shard: ShardBrief): Record<Key, string | number | null> {
  return {
    id: shard.id,
    // States of unhealthy nodes count for the shard; healthy ones would match every shard.
    state: [shard.state, ...unhealthyStates(shard)].join(' '),
    level: shard.level,
    zone: shard.zone,
    leader: shard.leader ?? 'none',
    node: shard.slots.map((slot) => slot.node).join(' '),
    mode: shard.mode,
    summary: shard.message,
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

/** The filter without invalid pairs, and a message for each of those. */
export function parseShardFilter(text: string): { readonly filter: Filter; readonly faults: readonly string[] } {
  const { words, pairs } = parseFilter(text)
  const faults: string[] = []
  const known = pairs.filter(({ key, op, value }) => {
    if (isOneOf(TEXTS, key)) return true
    if (!isOneOf(NUMBERS, key)) {
      faults.push(copy.list.unknownKey(key, [...TEXTS, ...NUMBERS].join(', ')))
    } else if (Number.isNaN(Number(value))) {
      faults.push(copy.list.needsNumber(key, `${op === ':' ? '' : op}${value}`))
    } else return true
    return false
  })
  return { filter: { words, pairs: known }, faults }
}

function isOneOf(keys: readonly string[], key: string): boolean {
  return keys.includes(key)
}

/** Keys for completion, with the values in use. */
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
