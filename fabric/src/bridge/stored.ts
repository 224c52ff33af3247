/** The topology of a shard as JSON, for the cache of a bridge. Pure. */

import { z } from 'zod'
import type { Topology } from './topology.ts'

const port = z.int().min(1).max(65_535)

export const storedTopology = z.object({
  format: z.literal(1),
  shard: z.string(),
  zone: z.string(),
  nodes: z.array(
    z.object({
      id: z.string(),
      host: z.string(),
      tcp_port: port,
      api_port: port,
      role: z.enum(['leader', 'follower', 'other']),
      health: z.string(),
    }),
  ),
})
export type StoredTopology = z.infer<typeof storedTopology>

export function storeTopology({ nodes }: Topology, shard: string, zone: string): StoredTopology {
  return {
    format: 1,
    shard,
    zone,
    nodes: [...nodes.values()].map(({ id, address, role, health }) => ({
      id,
      host: address.host,
      tcp_port: address.tcpPort,
      api_port: address.apiPort,
      role,
      health,
    })),
  }
}

/** Lags are not stored: they are those of another time. */
export function topologyFrom({ nodes }: StoredTopology): Topology {
  const leader = nodes.find(({ role }) => role === 'leader')?.id
  return {
    ...(leader !== undefined && { leader }),
    nodes: new Map(
      nodes.map(({ id, host, tcp_port: tcpPort, api_port: apiPort, role, health }) => [
        id,
        { id, address: { host, tcpPort, apiPort }, role: role === 'leader' && id !== leader ? 'other' : role, health },
      ]),
    ),
  }
}
