// @vitest-environment happy-dom
import { act } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { pauseLive, resumeLive } from '../../lib/live.ts'
import { intervalOf, problemOf, runHook } from '../../lib/testing/hook.tsx'
import * as queries from './queries.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  act(() => resumeLive())
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const S = '/api/v1/shards/s%2F1'
const of = { property: 'p', room: '', date: '' }

test.each<[string, () => unknown, string]>([
  ['useStayFigures', () => queries.useStayFigures('s/1'), `${S}/stay-figures`],
  ['useStay', () => queries.useStay('s/1', 'a/b'), `${S}/stays/a%2Fb`],
  ['useStayList', () => queries.useStayList('s/1', of), `${S}/stays?property=p`],
  [
    'useStayList of a night',
    () => queries.useStayList('s/1', { ...of, room: 'r', date: '2026-11-20' }),
    `${S}/stays?property=p&room=r&date=2026-11-20`,
  ],
  [
    'useStayNights',
    () => queries.useStayNights('s/1', 'p', '2026-11-20', 42),
    `${S}/properties/p/stays?from=2026-11-20&nights=42`,
  ],
])('%s fetches its part and polls, while it is not paused', async (_, hook, path) => {
  const run = await runHook(hook, { answer: () => ({ next: '' }) })
  expect(run.sent).toEqual([`GET ${path}`])
  expect(await intervalOf(run)).toBe(5_000)
  act(() => pauseLive())
  expect(await intervalOf(run)).toBeUndefined()
})

test('nothing is fetched without an id or a property', async () => {
  expect((await runHook(() => queries.useStay('s', ''))).sent).toEqual([])
  expect((await runHook(() => queries.useStayList('s', { ...of, property: '' }))).sent).toEqual([])
})

test('more stays begin at the cursor', async () => {
  const answer = (path: string) => ({ next: path.includes('cursor') ? '' : 'c2' })
  const run = await runHook(() => queries.useStayList('s', of), { answer })

  expect(run.result.current.hasNextPage).toBe(true)
  await act(async () => void run.result.current.fetchNextPage())
  await run.wait()

  expect(run.sent.at(-1)).toBe('GET /api/v1/shards/s/stays?property=p&cursor=c2')
  expect(run.result.current.hasNextPage).toBe(false)
})

test.each([
  ['confirm', false],
  ['release', true],
] as const)('a stay is changed as it was seen, and read again: %s', async (kind, isRefused) => {
  const stay = { shard: 's', id: 'x1', state: 'held' } as Parameters<typeof queries.useChangeStay>[0]
  const answer = (path: string) => (isRefused && path.endsWith(kind) ? problemOf(409) : {})
  const run = await runHook(() => ({ one: queries.useStay('s', 'x1'), change: queries.useChangeStay(stay) }), {
    answer,
  })

  const changed = run.result.current.change(kind, 'why').then(
    () => 'done',
    () => 'refused',
  )
  await run.wait()

  expect(await changed).toBe(isRefused ? 'refused' : 'done')
  expect(run.sent).toEqual([
    'GET /api/v1/shards/s/stays/x1',
    `POST /api/v1/shards/s/stays/x1/${kind} {"confirm":"x1","seen":"held","reason":"why"}`,
    'GET /api/v1/shards/s/stays/x1',
  ])
})
