/** Queries of metrics over time. */

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { SeriesName } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'

/** The interval at which the control plane records values. */
const SERIES_REFETCH_MS = 10_000

type SeriesOf = { readonly shard?: string; readonly node?: string }

/** Several metrics at once, of the cluster, a shard or a node. */
export function useSeries(of: SeriesOf, names: readonly SeriesName[], from: string) {
  return useQuery({
    queryKey: ['GET /api/v1/series', of.shard ?? '', of.node ?? '', names.join(), from],
    queryFn: ({ signal }) =>
      call('GET /api/v1/series', { query: { ...of, names: names.join(), from, to: 'now' }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: SERIES_REFETCH_MS,
    // No newer value exists within the interval.
    staleTime: SERIES_REFETCH_MS,
  })
}
