/** Texts of the failure matrix. */
import type { FailureRow } from '@vacancy/shared/contract'
import { count, counted } from '../../lib/format.ts'

const SHARDS_NAMED = 6

export const kinds: { readonly [kind in FailureRow['kind']]: string } = {
  zone: 'Zone',
  machine: 'Machine',
  node: 'Node',
  registry: 'Registry',
  resolver: 'Resolver',
  proxy: 'Proxy',
  edge: 'Edge router',
  'zone-router': 'Zone router',
  bridge: 'Bridge',
}

export const failures = {
  title: 'What if',
  lead: 'What stops if one of these goes, by the present state. What is down already is not counted again.',
  table: 'Losses that stop something',
  none: 'No single loss stops anything: every shard keeps a majority, and every request finds another way.',
  lost: 'If this goes',
  writes: 'Writes stop for',
  reads: 'Reads stop for',
  pauses: 'Leader moves of',
  clients: 'Clients lose',
  nothing: '–',
  shards: (ids: readonly string[]) =>
    ids.length <= SHARDS_NAMED
      ? ids.join(', ')
      : `${ids.slice(0, SHARDS_NAMED).join(', ')} and ${count(ids.length - SHARDS_NAMED)} more`,
  harmless: (places: readonly (readonly [string, number])[]) =>
    `The loss of any other stops nothing: ${places.map(([kind, number]) => counted(number, nameOf(kind), plural(kind))).join(', ')}.`,
}

const nameOf = (kind: string) => (kinds[kind as FailureRow['kind']] ?? kind).toLowerCase()
const plural = (kind: string) =>
  kind === 'proxy' ? 'proxies' : kind === 'registry' ? 'registries' : `${nameOf(kind)}s`
