/** Metrics over time as the console asks for them. */

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { SeriesName } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'

/** As often as the control plane keeps a value. */
const SERIES_AGAIN_MS = 10_000

type SeriesOf = { readonly shard?: string; readonly node?: string }

/** Several metrics at once, of everything, of a shard, or of one node of it. */
export function useSeries(of: SeriesOf, names: readonly SeriesName[], from: string) {
  return useQuery({
    queryKey: ['GET /api/v1/series', of.shard ?? '', of.node ?? '', names.join(), from],
    queryFn: ({ signal }) =>
      call('GET /api/v1/series', { query: { ...of, names: names.join(), from, to: 'now' }, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: SERIES_AGAIN_MS,
    // There is nothing newer to fetch for who comes back.
    staleTime: SERIES_AGAIN_MS,
  })
}
