/** Queries of the shard pages beside the live topics. */

import { useQuery } from '@tanstack/react-query'
import { call } from '../../lib/api.ts'

const EVENTS_AGAIN_MS = 5_000
const CONFIG_AGAIN_MS = 30_000
const LEADERSHIP_AGAIN_MS = 5_000

export function useShardEvents(shard: string, { node, limit = 100 }: { node?: string; limit?: number } = {}) {
  return useQuery({
    queryKey: ['GET /api/v1/shards/{shard}/events', shard, node ?? '', limit],
    queryFn: ({ signal }) =>
      call('GET /api/v1/shards/{shard}/events', {
        params: { shard },
        query: { limit, ...(node === undefined ? {} : { node }) },
        signal,
      }),
    refetchInterval: EVENTS_AGAIN_MS,
  })
}

export function useShardConfig(shard: string) {
  return useQuery({
    queryKey: ['GET /api/v1/shards/{shard}/config', shard],
    queryFn: ({ signal }) => call('GET /api/v1/shards/{shard}/config', { params: { shard }, signal }),
    refetchInterval: CONFIG_AGAIN_MS,
  })
}

export function useShardLeadership(shard: string) {
  return useQuery({
    queryKey: ['GET /api/v1/shards/{shard}/leadership', shard],
    queryFn: ({ signal }) => call('GET /api/v1/shards/{shard}/leadership', { params: { shard }, signal }),
    refetchInterval: LEADERSHIP_AGAIN_MS,
  })
}
