/** Queries of the queue pages. They poll: the live channel has no topics of the queue. */

import {
  keepPreviousData,
  type UseMutationResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query'
import type { JobState, TailEvent } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { useLiveStatus } from '../../lib/live.ts'
import { useRoute } from '../../lib/use-route.ts'
import type { DeadQuery } from './dead-filter.ts'

/** As many as the server keeps for a tail; older ones are dropped. */
const EVENTS_MAX = 200

/** What a live tail has shown so far. Pure. */
type Tail = {
  readonly cursor: string
  /** Newest first. */
  readonly events: readonly TailEvent[]
  /** Since the tail was opened. */
  readonly skipped: number
}

type TailPage = { readonly cursor: string; readonly events: readonly TailEvent[]; readonly skipped: number }

/** With a page added. A page of another tail, after a restart of the queue, begins with other numbers. */
export function tailAfter(before: Tail | undefined, page: TailPage): Tail {
  const isSame = before !== undefined && epochOf(before.cursor) === epochOf(page.cursor)
  const known = isSame ? before.events : []
  return {
    cursor: page.cursor,
    events: [...page.events.toReversed(), ...known].slice(0, EVENTS_MAX),
    skipped: (before?.skipped ?? 0) + page.skipped,
  }
}

const epochOf = (cursor: string): string => cursor.split('.')[0] ?? ''

const POLL_MS = 2_000
/** Statistics of so many topics are large. */
const MANY_TOPICS = 500
const MANY_POLL_MS = 10_000
const PAGE = 100
const SAMPLE = 20

/** The first part of the key of every query below: a change refreshes all of them. */
const QUEUE = 'queue'

/** Nothing is drawn while the page is paused, so nothing is fetched. */
function usePollMs(ms = POLL_MS): number | false {
  return useLiveStatus().paused ? false : ms
}

export function useQueueStats() {
  const pollMs = usePollMs()
  return useRoute(
    'GET /api/v1/queue/stats',
    {},
    {
      group: [QUEUE],
      refetchInterval: ({ state }) =>
        pollMs !== false && (state.data?.topics.length ?? 0) > MANY_TOPICS ? MANY_POLL_MS : pollMs,
    },
  )
}

/** The server takes a sample every ten seconds. */
const SAMPLE_MS = 10_000

/** Ready jobs and time to delivery in the last ten minutes, by topic. */
export function useTrends() {
  return useQuery({
    queryKey: [QUEUE, 'trends'],
    queryFn: async ({ signal }) => {
      const { topics } = await call('GET /api/v1/queue/history', { signal })
      return Object.fromEntries(topics.map(({ topic, ...trends }) => [topic, trends]))
    },
    refetchInterval: usePollMs(SAMPLE_MS),
  })
}

/** The course of a topic over so many minutes. */
export function useTopicHistory(topic: string, minutes: number) {
  return useRoute(
    'GET /api/v1/queue/topics/{topic}/history',
    { params: { topic }, query: { minutes } },
    { group: [QUEUE], placeholderData: keepPreviousData, refetchInterval: usePollMs(SAMPLE_MS) },
  )
}

const TAIL_POLL_MS = 1_000

/** What happens to the jobs of a topic, newest first, from now on. @param isPaused keeps what is shown */
export function useTail(topic: string, isPaused: boolean) {
  const queries = useQueryClient()
  const queryKey = ['queue-tail', topic]
  const pollMs = usePollMs(TAIL_POLL_MS)
  return useQuery({
    queryKey,
    queryFn: async ({ signal }) => {
      const before = queries.getQueryData<Tail>(queryKey)
      const page = await call('GET /api/v1/queue/topics/{topic}/tail', {
        params: { topic },
        query: before === undefined ? {} : { cursor: before.cursor },
        signal,
      })
      return tailAfter(before, page)
    },
    enabled: !isPaused,
    refetchInterval: pollMs,
    // Another visit begins with an empty list.
    gcTime: 0,
  })
}

export function useTopicStats(topic: string) {
  return useRoute(
    'GET /api/v1/queue/topics/{topic}/stats',
    { params: { topic } },
    { group: [QUEUE], refetchInterval: usePollMs() },
  )
}

export function useTopic(topic: string) {
  return useRoute(
    'GET /api/v1/queue/topics/{topic}',
    { params: { topic } },
    { group: [QUEUE], refetchInterval: usePollMs() },
  )
}

/** Jobs of a state, page by page. Dead ones match the filter. */
export function useJobs(topic: string, state: JobState, filter: DeadQuery) {
  return useInfiniteQuery({
    queryKey: [QUEUE, 'jobs', topic, state, state === 'dead' ? filter : {}],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const page = { limit: PAGE, head: '1' as const, ...(pageParam !== undefined && { cursor: pageParam }) }
      const params = { topic }
      return state === 'dead'
        ? call('GET /api/v1/queue/topics/{topic}/dead', { params, query: { ...page, ...filter }, signal })
        : call('GET /api/v1/queue/topics/{topic}/jobs', { params, query: { ...page, state }, signal })
    },
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    refetchInterval: usePollMs(),
  })
}

export function useJob(topic: string, id: string) {
  return useRoute(
    'GET /api/v1/queue/topics/{topic}/jobs/{id}',
    { params: { topic, id } },
    { group: [QUEUE], refetchInterval: usePollMs() },
  )
}

/** The payload of a job in base64: it never changes, so it is fetched once. */
export function useJobData(topic: string, id: string) {
  return useQuery({
    queryKey: ['queue-data', topic, id],
    queryFn: async ({ signal }) => {
      const params = { topic, id }
      const { data } = await call('GET /api/v1/queue/topics/{topic}/jobs/{id}', {
        params,
        query: { data: '1' },
        signal,
      })
      return { data }
    },
    staleTime: Number.POSITIVE_INFINITY,
  })
}

export function useDeadGroups(topic: string) {
  return useRoute(
    'GET /api/v1/queue/topics/{topic}/dead/groups',
    { params: { topic } },
    { group: [QUEUE], refetchInterval: usePollMs() },
  )
}

/** How many dead jobs match now, for a plan. */
export function useDeadCount(topic: string, filter: DeadQuery | undefined) {
  return useRoute(
    'GET /api/v1/queue/topics/{topic}/dead/count',
    { params: { topic }, query: filter ?? {} },
    { group: [QUEUE], enabled: filter !== undefined, refetchInterval: usePollMs() },
  )
}

/** The first dead jobs that match. */
export function useDeadSample(topic: string, filter: DeadQuery | undefined) {
  return useRoute(
    'GET /api/v1/queue/topics/{topic}/dead',
    { params: { topic }, query: { ...filter, limit: SAMPLE } },
    { group: [QUEUE], enabled: filter !== undefined },
  )
}

/** The redrive at a rate that runs, or the last one. */
export function useRedrive(topic: string) {
  return useRoute(
    'GET /api/v1/queue/topics/{topic}/redrive',
    { params: { topic } },
    { group: [QUEUE], refetchInterval: usePollMs() },
  )
}

export function useConsumers(topic: string | undefined) {
  return useInfiniteQuery({
    queryKey: [QUEUE, 'consumers', topic ?? ''],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      call('GET /api/v1/queue/consumers', {
        query: {
          limit: PAGE,
          ...(topic !== undefined && { topic }),
          ...(pageParam !== undefined && { cursor: pageParam }),
        },
        signal,
      }),
    getNextPageParam: ({ next }) => next,
    refetchInterval: usePollMs(),
  })
}

/** A change of the queue. Whether it worked or not, the pages show what is there afterwards. */
export function useQueueChange<V, R>(send: (value: V) => Promise<R>): UseMutationResult<R, Error, V> {
  const queries = useQueryClient()
  return useMutation({ mutationFn: send, onSettled: () => queries.invalidateQueries({ queryKey: [QUEUE] }) })
}
