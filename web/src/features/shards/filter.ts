/** The filter language of the table of shards: words and `key:value`, all of which must hold (console.md §6.2). */

import type { ShardBrief } from '@vacancy/shared/contract'

/** What a filter may be long: it stands in an address. */
export const FILTER_CHARACTERS_MAX = 200
const SUGGESTIONS_MAX = 8

type Compare = '>' | '>=' | '<' | '<=' | '='

type Term =
  | { readonly kind: 'word'; readonly source: string; readonly value: string }
  | { readonly kind: 'text'; readonly source: string; readonly key: TextKey; readonly value: string }
  | {
      readonly kind: 'number'
      readonly source: string
      readonly key: NumberKey
      readonly compare: Compare
      readonly value: number
    }

export type Filter = {
  readonly terms: readonly Term[]
  /** One sentence for each part that is not understood; such a part filters nothing. */
  readonly faults: readonly string[]
}

/** Texts of a shard that a key looks at: it matches when one begins with the value. */
const TEXT_KEYS = {
  // A healthy node says nothing about its shard; an unhealthy one is what somebody looks for.
  state: (shard: ShardBrief) => [
    shard.state,
    ...shard.slots.map((slot) => slot.state).filter((state) => state !== 'healthy'),
  ],
  level: (shard: ShardBrief) => [shard.level],
  zone: (shard: ShardBrief) => [shard.zone],
  leader: (shard: ShardBrief) => [shard.leader ?? 'none'],
  node: (shard: ShardBrief) => shard.slots.map((slot) => slot.node),
  mode: (shard: ShardBrief) => [shard.mode],
} as const
type TextKey = keyof typeof TEXT_KEYS

/** Numbers of a shard that a key compares; what was not told matches no comparison. */
const NUMBER_KEYS = {
  lag: (shard: ShardBrief) => shard.maxLagEntries,
  spare: (shard: ShardBrief) => shard.spare,
  voters: (shard: ShardBrief) => shard.voters,
  queries: (shard: ShardBrief) => shard.rates.queries,
  writes: (shard: ShardBrief) => shard.rates.writes,
  p99: (shard: ShardBrief) => shard.rates.p99,
  packages: (shard: ShardBrief) => shard.packages,
  memory: (shard: ShardBrief) => shard.memoryBytes,
  term: (shard: ShardBrief) => shard.term,
} as const
type NumberKey = keyof typeof NUMBER_KEYS

export const FILTER_KEYS: readonly string[] = [...Object.keys(TEXT_KEYS), ...Object.keys(NUMBER_KEYS)]

/** Reads a filter. Anything can be typed: what is not understood is named and left out. */
export function parseFilter(text: string): Filter {
  const terms: Term[] = []
  const faults: string[] = []
  for (const source of text.slice(0, FILTER_CHARACTERS_MAX).split(/\s+/).filter(Boolean)) {
    const colon = source.indexOf(':')
    if (colon === -1) terms.push({ kind: 'word', source, value: source.toLowerCase() })
    else {
      const read = readPair(source, source.slice(0, colon).toLowerCase(), source.slice(colon + 1))
      if (typeof read === 'string') faults.push(read)
      else if (read) terms.push(read)
    }
  }
  return { terms, faults }
}

/** A term, a fault in words, or nothing while the value is still to be typed. */
function readPair(source: string, key: string, value: string): Term | string | undefined {
  if (Object.hasOwn(TEXT_KEYS, key)) {
    return value === '' ? undefined : { kind: 'text', source, key: key as TextKey, value: value.toLowerCase() }
  }
  if (!Object.hasOwn(NUMBER_KEYS, key)) return `${source}: there is no key ${key}; known are ${FILTER_KEYS.join(', ')}`
  if (/^[<>]?=?$/.test(value)) return undefined
  const match = /^(>=|<=|>|<|=)?(\d{1,15}(?:[.]\d{1,6})?)$/.exec(value)
  if (!match) return `${source}: ${key} is compared with a number, as in ${key}:>1000`
  return {
    kind: 'number',
    source,
    key: key as NumberKey,
    compare: (match[1] ?? '=') as Compare,
    value: Number(match[2]),
  }
}

/** Whether a shard passes every term. */
export function matchesFilter(filter: Filter, shard: ShardBrief): boolean {
  return filter.terms.every((term) => matchesTerm(term, shard))
}

function matchesTerm(term: Term, shard: ShardBrief): boolean {
  if (term.kind === 'text') return TEXT_KEYS[term.key](shard).some((text) => text.toLowerCase().startsWith(term.value))
  if (term.kind === 'number') {
    const value = NUMBER_KEYS[term.key](shard)
    return value !== null && compares(value, term.compare, term.value)
  }
  const texts = [shard.id, shard.zone, shard.says, ...shard.slots.map((slot) => slot.node)]
  return texts.some((text) => text.toLowerCase().includes(term.value))
}

function compares(value: number, compare: Compare, limit: number): boolean {
  switch (compare) {
    case '>':
      return value > limit
    case '>=':
      return value >= limit
    case '<':
      return value < limit
    case '<=':
      return value <= limit
    case '=':
      return value === limit
  }
}

/** The filter without one of its terms, as text. */
export function withoutTerm(filter: Filter, dropped: Term): string {
  return filter.terms
    .filter((term) => term !== dropped)
    .map((term) => term.source)
    .join(' ')
}

/**
 * Ways to go on with the word that is being typed at the end of a filter: keys, then values that the shards have.
 *
 * @returns whole texts of the filter, each with its last word completed
 */
export function completeFilter(text: string, shards: readonly ShardBrief[]): string[] {
  const start = text.lastIndexOf(' ') + 1
  const last = text.slice(start).toLowerCase()
  if (last === '') return []
  const colon = last.indexOf(':')
  const words = colon === -1 ? FILTER_KEYS.map((key) => `${key}:`) : valuesOf(last.slice(0, colon), shards)
  return words
    .filter((word) => word.toLowerCase().startsWith(last) && word.toLowerCase() !== last)
    .slice(0, SUGGESTIONS_MAX)
    .map((word) => text.slice(0, start) + word)
}

function valuesOf(key: string, shards: readonly ShardBrief[]): string[] {
  if (!Object.hasOwn(TEXT_KEYS, key)) return []
  const values = new Set(shards.flatMap((shard) => TEXT_KEYS[key as TextKey](shard)))
  return [...values].sort().map((value) => `${key}:${value}`)
}
