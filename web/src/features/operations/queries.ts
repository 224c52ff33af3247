/** Queries and mutations of plans and operations. */

import { keepPreviousData, type UseQueryResult, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { Operation, Plan, PlanRequest } from '@vacancy/shared/contract'
import { useEffect } from 'react'
import { type ApiProblem, call } from '../../lib/api.ts'
import { followStarted } from '../../lib/followed-operations.ts'
import { liveKey, useLive } from '../../lib/live.ts'
import { formatPlanLink } from './plan-link.ts'

const PLAN_REFETCH_MS = 1_000

export function planKey(request: PlanRequest): readonly string[] {
  return ['plan', formatPlanLink(request)]
}

/**
 * A plan that is fetched again each second and when its shard changes. The previous plan stays while the next one loads.
 */
export function usePlan(request: PlanRequest, isWatched: boolean): UseQueryResult<Plan> {
  const shard = useLive(`shard:${request.shard}`)
  const query = useQuery({
    queryKey: planKey(request),
    queryFn: ({ signal }) => call('POST /api/v1/plans', { body: request, signal }),
    refetchInterval: isWatched ? PLAN_REFETCH_MS : false,
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 0,
    gcTime: 0,
  })
  const { refetch } = query
  const basis = shard.data && `${shard.data.leader} ${shard.data.term} ${shard.data.operation} ${shard.data.state}`
  useEffect(() => {
    if (basis && isWatched) void refetch({ cancelRefetch: false })
  }, [basis, isWatched, refetch])
  return query
}

export type Started = { readonly plan: string; readonly reason: string; readonly confirm: string }

/** Starts a plan. The response only confirms the start; the live channel reports progress. */
export function useStartOperation() {
  const queries = useQueryClient()
  return useMutation<Operation, ApiProblem, Started>({
    mutationFn: ({ plan, reason, confirm }) =>
      // The plan runs once: a repeated request with its key returns the same operation.
      call('POST /api/v1/operations', { body: { plan, reason, confirm }, headers: { 'idempotency-key': plan } }),
    onSuccess: (operation) => {
      followStarted(operation)
      queries.setQueryData(liveKey(`op:${operation.id}`), operation)
    },
  })
}

export function useCancelOperation() {
  return useMutation<Operation, ApiProblem, string>({
    mutationFn: (id) => call('POST /api/v1/operations/{id}/cancel', { params: { id } }),
  })
}
