/** Queries of the shard pages beside the live topics. */

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { EVENT_KINDS } from '@vacancy/shared/contract'
import { useMoment } from '../../lib/address.tsx'
import { call } from '../../lib/api.ts'
import { useRoute } from '../../lib/use-route.ts'

const EVENTS_AGAIN_MS = 5_000
const EVENTS_KEPT_MS = 72 * 3_600_000
const CONFIG_AGAIN_MS = 30_000
const LEADERSHIP_AGAIN_MS = 5_000

/** All kinds but snapshots, which are saved by the clock and would hide the others. */
export const EVENTFUL = EVENT_KINDS.filter((kind) => kind !== 'snapshot')

/** Newest first; in a past view those up to its moment. */
export function useShardEvents(
  shard: string,
  { node, kinds = EVENTFUL, limit = 100 }: { node?: string; kinds?: readonly string[]; limit?: number } = {},
) {
  const moment = useMoment()
  const of = { limit, kinds: kinds.join(','), ...(node === undefined ? {} : { node }) }
  return useQuery({
    queryKey: ['GET /api/v1/shards/{shard}/events', shard, node ?? '', of.kinds, limit, moment ?? ''],
    queryFn: async ({ signal }) => {
      if (moment === undefined) {
        return await call('GET /api/v1/shards/{shard}/events', { params: { shard }, query: of, signal })
      }
      const from = new Date(Date.parse(moment) - EVENTS_KEPT_MS).toISOString()
      return await call('GET /api/v1/events', { query: { ...of, shard, from, to: moment }, signal })
    },
    refetchInterval: moment === undefined && EVENTS_AGAIN_MS,
    placeholderData: keepPreviousData,
  })
}

export function useShardConfig(shard: string) {
  return useRoute('GET /api/v1/shards/{shard}/config', { params: { shard } }, { refetchInterval: CONFIG_AGAIN_MS })
}

export function useShardLeadership(shard: string) {
  const moment = useMoment()
  return useRoute(
    'GET /api/v1/shards/{shard}/leadership',
    { params: { shard }, query: moment === undefined ? {} : { to: moment } },
    { refetchInterval: moment === undefined && LEADERSHIP_AGAIN_MS, placeholderData: keepPreviousData },
  )
}
