/** Queries of stays. They poll: the live channel has no topic of them. */

import { keepPreviousData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import type { StayFigures, StayRecord } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { useLiveStatus } from '../../lib/live.ts'
import { useRoute } from '../../lib/use-route.ts'

const POLL_MS = 5_000
/** The first part of the key of every query below: a change refreshes all of them. */
const STAYS = 'stays'

/** Nothing is drawn while the page is paused, so nothing is fetched. */
function usePollMs(): number | false {
  return useLiveStatus().paused ? false : POLL_MS
}

export function useStayFigures(shard: string) {
  return useRoute(
    'GET /api/v1/shards/{shard}/stay-figures',
    { params: { shard } },
    { group: [STAYS, shard], refetchInterval: usePollMs(), retry: false },
  )
}

/** @param id '' for none */
export function useStay(shard: string, id: string) {
  return useRoute(
    'GET /api/v1/shards/{shard}/stays/{stay}',
    { params: { shard, stay: id } },
    { group: [STAYS, shard], enabled: id !== '', refetchInterval: usePollMs(), retry: false },
  )
}

export type StaysOf = {
  /** '' for none. */
  readonly property: string
  /** '' for any. */
  readonly room: string
  /** '' for any. */
  readonly date: string
}

export function useStayList(shard: string, { property, room, date }: StaysOf) {
  return useInfiniteQuery({
    queryKey: [STAYS, shard, 'list', property, room, date],
    queryFn: ({ signal, pageParam }) =>
      call('GET /api/v1/shards/{shard}/stays', {
        params: { shard },
        query: { property, ...(room && { room }), ...(date && { date }), ...(pageParam && { cursor: pageParam }) },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next || undefined,
    enabled: property !== '',
    refetchInterval: usePollMs(),
    retry: false,
  })
}

/** Rooms on hold and booked in a view of the calendar. */
export function useStayNights(shard: string, property: string, from: string, nights: number) {
  return useRoute(
    'GET /api/v1/shards/{shard}/properties/{property}/stays',
    { params: { shard, property }, query: { from, nights } },
    { group: [STAYS, shard], placeholderData: keepPreviousData, refetchInterval: usePollMs(), retry: false },
  )
}

export function useChangeSetting(shard: string) {
  const queries = useQueryClient()
  return async (name: keyof StayFigures['settings'], value: number, reason: string): Promise<void> => {
    await call('POST /api/v1/shards/{shard}/settings', { params: { shard }, body: { name, value, reason } })
    await queries.invalidateQueries({ queryKey: [STAYS, shard] })
    void queries.invalidateQueries({ queryKey: ['property-calendar'] })
  }
}

export function useChangeStay({ shard, id, state }: Pick<StayRecord, 'shard' | 'id' | 'state'>) {
  const queries = useQueryClient()
  return async (kind: 'confirm' | 'release', reason: string): Promise<void> => {
    try {
      await call(`POST /api/v1/shards/{shard}/stays/{stay}/${kind}`, {
        params: { shard, stay: id },
        body: { confirm: id, seen: state, reason },
      })
    } finally {
      // After a refusal, too: the record is not as it was shown.
      await queries.invalidateQueries({ queryKey: [STAYS, shard] })
      void queries.invalidateQueries({ queryKey: ['property-calendar'] })
    }
  }
}
