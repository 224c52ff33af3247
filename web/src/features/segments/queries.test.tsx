// @vitest-environment happy-dom
import { act } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { intervalOf, problemOf, runHook } from '../../lib/testing/hook.tsx'
import * as queries from './queries.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const FILTERS = { area: '', type: 'hotel', category: '', stars: '4', amenity: '' }
const S = '/api/v1/shards/s%2F1'

test.each<[string, () => unknown, string]>([
  ['useSegments', () => queries.useSegments('s/1'), `${S}/segments?after=`],
  [
    'useSegmentProperties',
    () => queries.useSegmentProperties('s/1', 'x', FILTERS),
    `${S}/segments/x/properties?type=hotel&stars=4`,
  ],
  ['useWords', () => queries.useWords('s/1', 'x', 'area'), '/api/v1/words?shard=s%2F1&segment=x&kind=area&limit=200'],
  [
    'useCalendar',
    () => queries.useCalendar({ shard: 's/1', property: 'p', from: '', node: '' }, ''),
    `${S}/properties/p`,
  ],
  [
    'useCalendar of a node at an index',
    () => queries.useCalendar({ shard: 's/1', property: 'p', from: '2026-11-20', node: 'n1' }, '7'),
    `${S}/properties/p?from=2026-11-20&node=n1&atLeast=7`,
  ],
  ['useReplicas', () => queries.useReplicas('s/1', 'p', '', true), `${S}/properties/p/replicas`],
  [
    'useReplicas from a night',
    () => queries.useReplicas('s/1', 'p', '2026-11-20', true),
    `${S}/properties/p/replicas?from=2026-11-20`,
  ],
])('%s fetches its part once', async (_, hook, path) => {
  const run = await runHook(hook, { answer: () => ({ segments: [], more: false }) })
  expect(run.sent).toEqual([`GET ${path}`])
  expect(await intervalOf(run)).toBeUndefined()
})

test('replicas are read on request only', async () => {
  expect((await runHook(() => queries.useReplicas('s', 'p', '', false))).sent).toEqual([])
})

test('more segments begin after the last one', async () => {
  const answer = (path: string) => ({ segments: [{ name: 'a' }, { name: 'b' }], more: path.endsWith('after=') })
  const run = await runHook(() => queries.useSegments('s'), { answer })

  expect(run.result.current.hasNextPage).toBe(true)
  await act(async () => void run.result.current.fetchNextPage())
  await run.wait()

  expect(run.sent.at(-1)).toBe('GET /api/v1/shards/s/segments?after=b')
  expect(run.result.current.hasNextPage).toBe(false)
})

test.each([
  ['five times while the node is behind', 503, 6],
  ['not after another failure', 500, 1],
])('a calendar is read again %s', async (_, status, requests) => {
  const at = { shard: 's', property: 'p', from: '', node: 'n1' }
  const run = await runHook(() => queries.useCalendar(at, '7'), { answer: () => problemOf(status) })

  await run.wait(299)
  expect(run.sent).toHaveLength(1)
  await run.wait(60_000)

  expect(run.sent).toHaveLength(requests)
  expect(run.result.current.isError).toBe(true)
})

test('a range of nights is read by its number', async () => {
  const run = await runHook(() => undefined)
  await queries.readCalendar({ shard: 's', property: 'p', from: '2026-11-20', node: '' }, { nights: 0 })
  expect(run.sent).toEqual(['GET /api/v1/shards/s/properties/p?from=2026-11-20&nights=0'])
})
