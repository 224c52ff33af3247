'use client'
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { parseDay } from '@vacancy/shared'
import { useCallback } from 'react'
import { call } from '../../lib/api.ts'
import { useLiveSignal } from '../../lib/live.ts'

/** The filter in the URL; '' for none. */
export type AuditFilter = {
  readonly actor: string
  readonly action: string
  readonly target: string
  /** Days, `2026-11-20`; both ends included. */
  readonly from: string
  readonly to: string
}

const PAGE = 100

/** Whether a day was typed that is none, or not yet. */
export function isInvalidDay(name: keyof AuditFilter, value: string): boolean {
  if ((name !== 'from' && name !== 'to') || value === '') return false
  return parseDay(value) === undefined
}

/** Converts a filter to query parameters. */
export function auditQuery({ actor, action, target, from, to }: AuditFilter) {
  return {
    ...(actor && { actor }),
    ...(action && { action }),
    ...(target && { target }),
    ...(from !== '' && !isInvalidDay('from', from) && { from: `${from}T00:00:00.000Z` }),
    ...(to !== '' && !isInvalidDay('to', to) && { to: `${to}T23:59:59.999Z` }),
  }
}

/** Entries by page, newest first, refreshed when the live channel announces new ones. */
export function useAudit(filter: AuditFilter) {
  const queries = useQueryClient()
  const refresh = useCallback(() => void queries.invalidateQueries({ queryKey: ['audit'] }), [queries])
  useLiveSignal('audit', refresh)
  return useInfiniteQuery({
    queryKey: ['audit', filter],
    queryFn: ({ pageParam, signal }) =>
      call('GET /api/v1/audit', { query: { ...auditQuery(filter), limit: PAGE, ...pageParam }, signal }),
    initialPageParam: {} as { cursor?: string },
    getNextPageParam: ({ next }) => (next === null ? undefined : { cursor: next }),
  })
}
