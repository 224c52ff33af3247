// @vitest-environment happy-dom
import { act } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { pauseLive, resumeLive } from '../../lib/live.ts'
import { intervalOf, runHook } from '../../lib/testing/hook.tsx'
import * as queries from './queries.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  act(() => resumeLive())
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const BODY = { topics: [], events: [], jobs: [], consumers: [], next: null, cursor: 'c1', skipped: 0 }
const answer = () => BODY
const T = '/api/v1/queue/topics/a%2Fb'

test.each<[string, () => unknown, string, number | undefined]>([
  ['useQueueStats', () => queries.useQueueStats(), '/api/v1/queue/stats', 2_000],
  ['useTrends', () => queries.useTrends(), '/api/v1/queue/history', 10_000],
  ['useTopicHistory', () => queries.useTopicHistory('a/b', 60), `${T}/history?minutes=60`, 10_000],
  ['useTail', () => queries.useTail('a/b', false), `${T}/tail`, 1_000],
  ['useTopicStats', () => queries.useTopicStats('a/b'), `${T}/stats`, 2_000],
  ['useTopic', () => queries.useTopic('a/b'), T, 2_000],
  ['useJobs', () => queries.useJobs('a/b', 'ready', { group: 'g' }), `${T}/jobs?limit=100&head=1&state=ready`, 2_000],
  [
    'useJobs of dead ones',
    () => queries.useJobs('a/b', 'dead', { group: 'g' }),
    `${T}/dead?limit=100&head=1&group=g`,
    2_000,
  ],
  ['useJob', () => queries.useJob('a/b', 'c/d'), `${T}/jobs/c%2Fd`, 2_000],
  ['useJobData', () => queries.useJobData('a/b', 'c/d'), `${T}/jobs/c%2Fd?data=1`, undefined],
  ['useDeadGroups', () => queries.useDeadGroups('a/b'), `${T}/dead/groups`, 2_000],
  ['useDeadCount', () => queries.useDeadCount('a/b', { error: 'e' }), `${T}/dead/count?error=e`, 2_000],
  ['useDeadSample', () => queries.useDeadSample('a/b', { error: 'e' }), `${T}/dead?error=e&limit=20`, undefined],
  ['useRedrive', () => queries.useRedrive('a/b'), `${T}/redrive`, 2_000],
  ['useConsumers', () => queries.useConsumers(undefined), '/api/v1/queue/consumers?limit=100', 2_000],
  ['useConsumers of a topic', () => queries.useConsumers('t'), '/api/v1/queue/consumers?limit=100&topic=t', 2_000],
])('%s fetches its part and polls', async (_, hook, path, everyMs) => {
  const run = await runHook(hook, { answer })
  expect(run.sent).toEqual([`GET ${path}`])

  expect(await intervalOf(run)).toBe(everyMs)

  act(() => pauseLive())
  expect(await intervalOf(run)).toBeUndefined()
})

test('statistics of more than 500 topics are fetched less often', async () => {
  const topics = (count: number) => ({ topics: Array.from({ length: count }, (_, n) => ({ topic: `t${n}` })) })
  const few = await runHook(() => queries.useQueueStats(), { answer: () => topics(500) })
  expect(await intervalOf(few)).toBe(2_000)
  few.unmount()

  const many = await runHook(() => queries.useQueueStats(), { answer: () => topics(501) })
  expect(await intervalOf(many)).toBe(10_000)
  act(() => pauseLive())
  expect(await intervalOf(many)).toBeUndefined()
})

test('trends are found by topic', async () => {
  const { result } = await runHook(() => queries.useTrends(), {
    answer: () => ({ topics: [{ topic: 'a', ready: [1], deliveryP99: [null] }] }),
  })
  expect(result.current.data).toEqual({ a: { ready: [1], deliveryP99: [null] } })
})

test('the tail continues at its cursor; a paused one fetches nothing', async () => {
  const run = await runHook(() => queries.useTail('t', false), { answer })
  await run.wait(1_000)
  expect(run.sent[1]).toBe('GET /api/v1/queue/topics/t/tail?cursor=c1')

  expect((await runHook(() => queries.useTail('t', true), { answer })).sent).toEqual([])
})

test('nothing is counted without a filter', async () => {
  expect((await runHook(() => queries.useDeadCount('t', undefined), { answer })).sent).toEqual([])
  expect((await runHook(() => queries.useDeadSample('t', undefined), { answer })).sent).toEqual([])
})

test.each<[string, () => { fetchNextPage: () => unknown; hasNextPage: boolean }, string]>([
  [
    'jobs',
    () => queries.useJobs('t', 'ready', {}),
    '/api/v1/queue/topics/t/jobs?limit=100&head=1&cursor=c2&state=ready',
  ],
  ['dead jobs', () => queries.useJobs('t', 'dead', {}), '/api/v1/queue/topics/t/dead?limit=100&head=1&cursor=c2'],
  ['consumers', () => queries.useConsumers(undefined), '/api/v1/queue/consumers?limit=100&cursor=c2'],
])('the next page of %s begins at the cursor of the last one', async (_, hook, path) => {
  const run = await runHook(hook, { answer: (path) => ({ ...BODY, next: path.includes('cursor') ? null : 'c2' }) })
  expect(run.result.current.hasNextPage).toBe(true)

  await act(async () => void run.result.current.fetchNextPage())
  await run.wait()

  expect(run.sent.at(-1)).toBe(`GET ${path}`)
  expect(run.result.current.hasNextPage).toBe(false)
})

test('the jobs of a state do not depend on the filter of dead ones', async () => {
  let filter = { group: 'g' }
  const run = await runHook(() => queries.useJobs('t', 'ready', filter), { answer })
  filter = { group: 'h' }
  run.rerender()
  await run.wait()
  expect(run.sent).toHaveLength(1)
})

test('a change shows what is there afterwards, also when it failed', async () => {
  const send = vi.fn(async (isRight: boolean) => {
    if (!isRight) throw new Error('refused')
  })
  const run = await runHook(() => ({ topic: queries.useTopic('t'), change: queries.useQueueChange(send) }), { answer })

  for (const [n, isRight] of [true, false].entries()) {
    await act(async () => run.result.current.change.mutate(isRight))
    await run.wait()
    expect(send).toHaveBeenCalledTimes(n + 1)
    expect(run.sent).toHaveLength(n + 2)
  }
})
