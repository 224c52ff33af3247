import { afterEach, beforeEach, expect, test, vi } from 'vitest'

// The framework has no request outside of its own pages.
let request: Record<string, string> = {}
vi.mock('next/headers', () => ({ headers: async () => new Headers(request) }))

import { firstData } from './first-data.ts'

const PLANES = Symbol.for('vacancy.control-planes')
const planes = globalThis as { [PLANES]?: unknown }
const fetched: [string, string][] = []
let summary: string | undefined

beforeEach(() => {
  fetched.length = 0
  summary = '{"shards":[]}'
  request = { 'x-control-plane': 'a', cookie: 'session=1', 'user-agent': 'Mozilla/5.0 (X11; Linux)' }
  const fetchText = async (path: string, cookie: string) => {
    fetched.push([path, cookie])
    return path.endsWith('me') ? '{"person":{}}' : summary
  }
  planes[PLANES] = new Map([['a', fetchText]])
})
afterEach(() => {
  delete planes[PLANES]
  vi.useRealTimers()
})

test('the first page contains the session and the summary, as the control plane of the request has them', async () => {
  vi.useFakeTimers({ now: 1_000 })

  expect(await firstData()).toEqual({ at: 1_000, isNarrow: false, me: '{"person":{}}', summary: '{"shards":[]}' })
  expect(fetched).toEqual([
    ['/api/v1/me', 'session=1'],
    ['/api/v1/summary', 'session=1'],
  ])
})
