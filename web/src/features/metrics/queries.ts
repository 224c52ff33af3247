/** Queries of metrics over time, and of the events beside them. */

import { keepPreviousData } from '@tanstack/react-query'
import type { SeriesName } from '@vacancy/shared/contract'
import type { TimeRange } from '../../lib/time-range.ts'
import { useRoute } from '../../lib/use-route.ts'

/** The interval at which the control plane records values. */
const SERIES_REFETCH_MS = 10_000
const EVENTS_MAX = 500

type SeriesOf = { readonly shard?: string; readonly node?: string }

/** A range that ends now grows; one in the past stays as it is. */
const isGrowing = ({ to }: TimeRange) => to.startsWith('now')

/** Several metrics at once, of the cluster, a shard or a node. */
export function useSeries(of: SeriesOf, names: readonly SeriesName[], range: TimeRange) {
  return useRoute(
    'GET /api/v1/series',
    { query: { ...of, names: names.join(), ...range } },
    {
      placeholderData: keepPreviousData,
      refetchInterval: isGrowing(range) && SERIES_REFETCH_MS,
      // No newer value exists within the interval.
      staleTime: SERIES_REFETCH_MS,
    },
  )
}

/** What happened within a time range, newest first. */
export function useEvents(of: SeriesOf, range: TimeRange) {
  return useRoute(
    'GET /api/v1/events',
    { query: { ...of, kinds: KINDS, ...range, limit: EVENTS_MAX } },
    {
      placeholderData: keepPreviousData,
      refetchInterval: isGrowing(range) && SERIES_REFETCH_MS,
      staleTime: SERIES_REFETCH_MS,
    },
  )
}

const KINDS = 'leader,restart,operation,codecs,membership,state'
