/** What the registry holds: versions, segments with their claims, reservations. Pure. */

import type { DatasetsView } from '@vacancy/shared/contract'
import type { RegistryState } from './fabric.ts'

/** @param filter part of the name of a segment or shard */
export function datasetsOf(registry: RegistryState, filter: string, limit: number): DatasetsView {
  const { topology } = registry
  const claims = new Map(topology?.conflicts.map((each) => [each.segment, each.claims.map(({ shard }) => shard)]))
  const reserved = new Map(topology?.reservations?.map(({ segment, until }) => [segment, until]))
  const rows = Object.entries(topology?.segments ?? {})
    .filter(([segment, shard]) => segment.includes(filter) || shard.includes(filter))
    .sort(([a], [b]) => NATURAL.compare(a, b))
  return {
    address: registry.address,
    up: registry.isUp,
    error: registry.address === null ? 'no registry is configured' : registry.error,
    at: registry.at === undefined ? null : new Date(registry.at).toISOString(),
    epoch: topology?.epoch ?? null,
    globalVersion: topology?.global_version ?? null,
    warming: topology?.warming ?? false,
    datasets: Object.entries(topology?.versions ?? {})
      .sort(([a], [b]) => NATURAL.compare(a, b))
      .map(([name, version]) => ({ name, version, entries: entriesOf(topology, name) })),
    segments: rows.slice(0, limit).map(([segment, shard]) => ({
      segment,
      shard,
      claims: (claims.get(segment) ?? []).filter((each) => each !== shard),
      reservedUntil: reserved.get(segment) ?? null,
    })),
    total: rows.length,
  }
}

/** Entries of a list such as `zones/z1/routers`; null for a list of an unknown kind. */
function entriesOf(topology: RegistryState['topology'], name: string): number | null {
  const [, owner, id = '', list] = /^(zones|shards)\/(.+)\/(routers|shards|segments|nodes)$/s.exec(name) ?? []
  if (!topology || owner === undefined) return null
  const shards = Object.values(topology.shards).filter(({ zone }) => zone === id)
  if (owner === 'shards') {
    const shard = topology.shards[id]
    return list === 'nodes' ? (shard?.nodes.length ?? null) : (shard?.segments ?? null)
  }
  if (list === 'routers') return topology.routers.filter(({ zone }) => zone === id).length
  return list === 'shards' ? shards.length : shards.reduce((sum, { segments }) => sum + segments, 0)
}

const NATURAL = new Intl.Collator('en', { numeric: true })
