/** Retries and freshness of all queries of the console. */
import { QueryClient } from '@tanstack/react-query'
import { ApiProblem } from './problem.ts'

const RETRIES = 2
const FRESH_MS = 5_000

export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: FRESH_MS,
        // Client errors are final. No response and server errors are retried.
        retry: (failures, error) =>
          failures < RETRIES && !(error instanceof ApiProblem && error.status > 0 && error.status < 500),
        retryDelay: (failures) => 500 * 2 ** failures,
        networkMode: 'always',
      },
      mutations: { retry: false, networkMode: 'always' },
    },
  })
}
