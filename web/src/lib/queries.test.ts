import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ApiProblem } from './problem.ts'
import { createQueries } from './queries.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const problem = (status: number) =>
  new ApiProblem('GET /x', { status, code: 'x', title: 'x', detail: '', hint: '', requestId: '' })

/** Milliseconds from the first request at which a query that always fails was sent. */
async function sentAt(error: Error): Promise<number[]> {
  const times: number[] = []
  const startMs = Date.now()
  const queryFn = () => {
    times.push(Date.now() - startMs)
    return Promise.reject(error)
  }
  const client = createQueries()
  const result = client.fetchQuery({
    queryKey: ['x'],
    queryFn,
    retry: client.getDefaultOptions().queries?.retry ?? false,
  })
  const failed = expect(result).rejects.toBe(error)
  await vi.advanceTimersByTimeAsync(60_000)
  await failed
  return times
}

test.each([
  ['no response', problem(0)],
  ['a server error', problem(503)],
  ['another failure', new Error('unreadable response')],
])('%s is retried twice, after 0.5 s and 1 s', async (_, error) => {
  expect(await sentAt(error)).toEqual([0, 500, 1_500])
})

test.each([400, 401, 403, 404, 499])('status %d is final', async (status) => {
  expect(await sentAt(problem(status))).toEqual([0])
})

test('a value is fresh for five seconds', async () => {
  const client = createQueries()
  let fetched = 0
  const get = () => client.fetchQuery({ queryKey: ['x'], queryFn: async () => ++fetched })
  await get()
  vi.advanceTimersByTime(4_999)
  await get()
  expect(fetched).toBe(1)
  vi.advanceTimersByTime(1)
  await get()
  expect(fetched).toBe(2)
})
