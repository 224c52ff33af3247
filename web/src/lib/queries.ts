/** How often and how long questions are asked again, for all queries of the console. */
import { QueryClient } from '@tanstack/react-query'
import { ApiProblem } from './problem.ts'

const RETRIES = 2
const FRESH_MS = 5_000

export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: FRESH_MS,
        // Refusals stay refusals; only silence and a server in trouble are worth a second try.
        retry: (failures, error) =>
          failures < RETRIES && !(error instanceof ApiProblem && error.status > 0 && error.status < 500),
        retryDelay: (failures) => 500 * 2 ** failures,
        networkMode: 'always',
      },
      mutations: { retry: false, networkMode: 'always' },
    },
  })
}
