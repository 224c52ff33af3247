/** Queries of the past beside the recorded states. */

import { keepPreviousData } from '@tanstack/react-query'
import { call } from '../../lib/api.ts'
import { useRoute } from '../../lib/use-route.ts'
import type { Window } from './moments.ts'

const KINDS = 'leader,role,state,membership,restart,codecs,operation'
const KEPT_MS = 72 * 3_600_000
const STEPS = 240
/** Where a view of the past starts, to be moved from there. */
const START = 'now-5m'

const iso = (at: number) => new Date(at).toISOString()

/** Events per part of the shown time. */
export function useTimeline({ from, to }: Window, shard: string | undefined) {
  return useRoute(
    'GET /api/v1/past/timeline',
    { query: { from: iso(from), to: iso(to), steps: STEPS, ...(shard !== undefined && { shard }) } },
    { placeholderData: keepPreviousData },
  )
}

/** Where a view of the past can start: minutes ago, or when the recording began if that is later. */
export function useRecordedFrom() {
  return useRoute(
    'GET /api/v1/past/timeline',
    { query: { from: START, to: 'now', steps: 1 } },
    { refetchInterval: 10_000 },
  )
}

/** What differs between two moments, and the events in between. */
export function useChanges(from: string, to: string, shard: string | undefined) {
  return useRoute('GET /api/v1/past/changes', { query: { from, to, ...(shard !== undefined && { shard }) } })
}

/** The time of the event before or after a moment; undefined when there is none. */
export async function eventBeside(
  at: number,
  side: 'previous' | 'next',
  shard: string | undefined,
): Promise<number | undefined> {
  const range =
    side === 'previous'
      ? { from: iso(at - KEPT_MS), to: iso(at - 1), order: 'newest' as const }
      : { from: iso(at + 1), to: 'now', order: 'oldest' as const }
  const { events } = await call('GET /api/v1/events', {
    query: { ...range, kinds: KINDS, limit: 1, ...(shard !== undefined && { shard }) },
  })
  const [event] = events
  return event && Date.parse(event.at)
}
