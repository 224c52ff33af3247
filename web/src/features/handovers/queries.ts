'use client'

/** Queries and mutations of handovers. */

import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { HandoverRequest, HandoverView } from '@vacancy/shared/contract'
import { type ApiProblem, call } from '../../lib/api.ts'
import { useRoute } from '../../lib/use-route.ts'

const PLAN_REFETCH_MS = 2_000
const RUN_REFETCH_MS = 500
const LIST_REFETCH_MS = 5_000

const handoverKey = (id: string) => ['GET /api/v1/handovers/{id}', id] as const

export function useHandoverPlan(request: HandoverRequest | undefined) {
  return useRoute(
    'POST /api/v1/handovers/plan',
    { body: request as HandoverRequest },
    {
      enabled: request !== undefined,
      refetchInterval: PLAN_REFETCH_MS,
      placeholderData: keepPreviousData,
      retry: false,
    },
  )
}

export function useHandover(id: string) {
  return useQuery({
    queryKey: handoverKey(id),
    queryFn: ({ signal }) => call('GET /api/v1/handovers/{id}', { params: { id }, signal }),
    refetchInterval: ({ state }) => (state.data?.state === 'running' ? RUN_REFETCH_MS : LIST_REFETCH_MS),
    retry: false,
  })
}

export function useHandovers() {
  return useRoute('GET /api/v1/handovers', {}, { refetchInterval: LIST_REFETCH_MS })
}

type Start = { readonly request: HandoverRequest; readonly basis: string; readonly reason: string }

export function useStartHandover() {
  const queries = useQueryClient()
  return useMutation<HandoverView, ApiProblem, Start>({
    mutationFn: (body) => call('POST /api/v1/handovers', { body }),
    onSuccess: (handover) => queries.setQueryData(handoverKey(handover.id), handover),
  })
}

export function useSteerHandover(id: string) {
  const queries = useQueryClient()
  return useMutation<HandoverView, ApiProblem, 'continue' | 'leave'>({
    mutationFn: (how) =>
      how === 'continue'
        ? call('POST /api/v1/handovers/{id}/continue', { params: { id } })
        : call('POST /api/v1/handovers/{id}/leave', { params: { id } }),
    onSuccess: (handover) => queries.setQueryData(handoverKey(id), handover),
  })
}
