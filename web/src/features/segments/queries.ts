/** Queries of segments and properties. */

import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { CompletionAnswer } from '@vacancy/shared/contract'
import { ApiProblem, call } from '../../lib/api.ts'
import { useRoute } from '../../lib/use-route.ts'

const FRESH_MS = 60_000

export function useSegments(shard: string) {
  return useInfiniteQuery({
    queryKey: ['segments', shard],
    queryFn: ({ signal, pageParam }) =>
      call('GET /api/v1/shards/{shard}/segments', { params: { shard }, query: { after: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: ({ more, segments }) => (more ? segments.at(-1)?.name : undefined),
    staleTime: FRESH_MS,
  })
}

export type SegmentFilters = {
  readonly area: string
  readonly type: string
  readonly category: string
  readonly stars: string
  readonly amenity: string
}

export function useSegmentProperties(shard: string, segment: string, filters: SegmentFilters) {
  const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== ''))
  return useRoute(
    'GET /api/v1/shards/{shard}/segments/{segment}/properties',
    { params: { shard, segment }, query: given },
    { staleTime: FRESH_MS, placeholderData: keepPreviousData },
  )
}

const WORDS_MAX = 200

/** Names in use within a segment. */
export function useWords(shard: string, segment: string, kind: CompletionAnswer['kind']) {
  return useRoute('GET /api/v1/words', { query: { shard, segment, kind, limit: WORDS_MAX } }, { staleTime: FRESH_MS })
}

export type CalendarAt = {
  readonly shard: string
  readonly property: string
  /** First night; '' for today. */
  readonly from: string
  /** '' for any. */
  readonly node: string
}

const BEHIND_TRIES_MAX = 5
const BEHIND_MS = 300

/** @param atLeast index that the node must have applied; '' for none */
export function useCalendar(at: CalendarAt, atLeast: string) {
  return useQuery({
    queryKey: ['property-calendar', at, atLeast],
    queryFn: ({ signal }) => readCalendar(at, { atLeast, signal }),
    placeholderData: keepPreviousData,
    // The node has not applied the index yet.
    retry: (failures, error) => error instanceof ApiProblem && error.status === 503 && failures < BEHIND_TRIES_MAX,
    retryDelay: BEHIND_MS,
  })
}

type ReadOptions = { readonly atLeast?: string; readonly nights?: number; readonly signal?: AbortSignal }

export function readCalendar(
  { shard, property, from, node }: CalendarAt,
  { atLeast = '', nights, signal }: ReadOptions = {},
) {
  return call('GET /api/v1/shards/{shard}/properties/{property}', {
    params: { shard, property },
    query: {
      ...(from && { from }),
      ...(node && { node }),
      ...(atLeast && { atLeast }),
      ...(nights !== undefined && { nights }),
    },
    ...(signal && { signal }),
  })
}

export function useReplicas(shard: string, property: string, from: string, isOn: boolean) {
  return useRoute(
    'GET /api/v1/shards/{shard}/properties/{property}/replicas',
    { params: { shard, property }, query: from === '' ? {} : { from } },
    { enabled: isOn, gcTime: 0 },
  )
}

export type NightOf = { readonly property: string; readonly room: string; readonly date: string }

/** Changes of a night, newest first. A page continues in the log of the node that had the page before. */
export function useNightHistory(shard: string, { property, room, date }: NightOf, node: string) {
  return useInfiniteQuery({
    queryKey: ['night-history', shard, property, room, date, node],
    queryFn: ({ signal, pageParam: { cursor, from } }) =>
      call('GET /api/v1/shards/{shard}/properties/{property}/night', {
        params: { shard, property },
        query: { room, date, ...(from && { node: from }), ...(cursor && { cursor }) },
        signal,
      }),
    initialPageParam: { cursor: '', from: node },
    getNextPageParam: (page) => (page.next === '' ? undefined : { cursor: page.next, from: page.node }),
    staleTime: 0,
    retry: false,
  })
}
