// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { intervalOf, runHook } from '../../lib/testing/hook.tsx'
import { useShardConfig, useShardEvents, useShardLeadership } from './queries.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const S = '/api/v1/shards/s%2F1'
const PAST = '/shards/s1?at=2026-11-20T18:30:00Z'
// 72 hours before.
const RANGE = 'from=2026-11-17T18%3A30%3A00.000Z&to=2026-11-20T18%3A30%3A00.000Z'

test.each<[string, () => unknown, string, string, number | undefined]>([
  ['events', () => useShardEvents('s/1'), '/', `${S}/events?limit=100`, 5_000],
  [
    'events of a node',
    () => useShardEvents('s/1', { node: 'n1', limit: 7 }),
    '/',
    `${S}/events?limit=7&node=n1`,
    5_000,
  ],
  ['events of the past', () => useShardEvents('s/1'), PAST, `/api/v1/events?limit=100&shard=s%2F1&${RANGE}`, undefined],
  ['configuration', () => useShardConfig('s/1'), '/', `${S}/config`, 30_000],
  ['leadership', () => useShardLeadership('s/1'), '/', `${S}/leadership`, 5_000],
  [
    'leadership of the past',
    () => useShardLeadership('s/1'),
    PAST,
    `${S}/leadership?to=2026-11-20T18%3A30%3A00.000Z`,
    undefined,
  ],
])('%s: what is requested, and how often', async (_, hook, address, path, everyMs) => {
  const run = await runHook(hook, { address })
  expect(run.sent).toEqual([`GET ${path}`])
  expect(await intervalOf(run)).toBe(everyMs)
})
