// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { intervalOf, runHook } from '../../lib/testing/hook.tsx'
import { eventBeside, useChanges, useRecordedFrom, useTimeline } from './queries.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const [FROM, TO] = [Date.UTC(2026, 10, 20, 18), Date.UTC(2026, 10, 20, 19)]
const RANGE = 'from=2026-11-20T18%3A00%3A00.000Z&to=2026-11-20T19%3A00%3A00.000Z'

test.each<[string, () => unknown, string, number | undefined]>([
  [
    'timeline',
    () => useTimeline({ from: FROM, to: TO }, undefined),
    `/api/v1/past/timeline?${RANGE}&steps=240`,
    undefined,
  ],
  [
    'timeline of a shard',
    () => useTimeline({ from: FROM, to: TO }, 's1'),
    `/api/v1/past/timeline?${RANGE}&steps=240&shard=s1`,
    undefined,
  ],
  ['start', () => useRecordedFrom(), '/api/v1/past/timeline?from=now-5m&to=now&steps=1', 10_000],
  ['changes', () => useChanges('a', 'b', undefined), '/api/v1/past/changes?from=a&to=b', undefined],
  ['changes of a shard', () => useChanges('a', 'b', 's1'), '/api/v1/past/changes?from=a&to=b&shard=s1', undefined],
])('%s: what is requested, and how often', async (_, hook, path, everyMs) => {
  const run = await runHook(hook)
  expect(run.sent).toEqual([`GET ${path}`])
  expect(await intervalOf(run)).toBe(everyMs)
})

test('the event beside a moment is the nearest one that is not at it', async () => {
  const events = [{ at: '2026-11-20T18:30:00.000Z' }]
  const { sent } = await runHook(() => undefined, {
    answer: (path) => ({ events: path.includes('oldest') ? [] : events }),
  })

  expect(await eventBeside(FROM, 'previous', undefined)).toBe(Date.UTC(2026, 10, 20, 18, 30))
  expect(await eventBeside(FROM, 'next', 's1')).toBeUndefined()

  const kinds = 'kinds=leader%2Crole%2Cstate%2Cmembership%2Crestart%2Ccodecs%2Coperation&limit=1'
  expect(sent).toEqual([
    `GET /api/v1/events?from=2026-11-17T18%3A00%3A00.000Z&to=2026-11-20T17%3A59%3A59.999Z&order=newest&${kinds}`,
    `GET /api/v1/events?from=2026-11-20T18%3A00%3A00.001Z&to=now&order=oldest&${kinds}&shard=s1`,
  ])
})
