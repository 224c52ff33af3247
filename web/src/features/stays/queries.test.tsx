// @vitest-environment happy-dom
import { act } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { resumeLive } from '../../lib/live.ts'
import { problemOf, runHook } from '../../lib/testing/hook.tsx'
import * as queries from './queries.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  act(() => resumeLive())
  vi.useRealTimers()
  vi.unstubAllGlobals()
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
