'use client'
/** Queries of one route: the key is the route with its input, below a group that can be invalidated at once. */
import { type QueryKey, type UseQueryOptions, useQuery } from '@tanstack/react-query'
import type { ControlRouteName, RouteAnswer } from '@vacancy/shared/contract'
import { type CallInput, call } from './api.ts'

type RouteOptions<N extends ControlRouteName> = Omit<UseQueryOptions<RouteAnswer<N>>, 'queryKey' | 'queryFn'> & {
  readonly group?: QueryKey
}

export function useRoute<N extends ControlRouteName>(
  name: N,
  input: CallInput<N>,
  { group = [], ...options }: RouteOptions<N> = {},
) {
  return useQuery<RouteAnswer<N>>({
    ...options,
    queryKey: [...group, name, input],
    queryFn: ({ signal }) => call(name, { ...input, signal }),
  })
}
