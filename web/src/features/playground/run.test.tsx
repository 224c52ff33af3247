// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, renderHook, waitFor } from '@testing-library/react'
import type { ReactNode } from 'react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import '../../ui/testing/dom.ts'
import type { Draft } from './request.ts'
import { useRuns } from './run.ts'

type Request = {
  readonly body: { readonly command: string; readonly keep: boolean; readonly node?: string }
  readonly signal: AbortSignal
  readonly reply: (totalMicros: number) => void
  readonly fail: () => void
}

const DRAFT: Draft = { shard: '', node: '', command: 'SEARCHPROP', fields: { segment: 's' } }
let requests: Request[] = []

beforeEach(() => {
  requests = []
  vi.stubGlobal('fetch', (_: string, { body, signal }: { body: string; signal: AbortSignal }) => {
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
      requests.push({
        body: JSON.parse(body),
        signal,
        reply: (totalMicros) => resolve(Response.json({ count: 1, totalMicros })),
        fail: () => reject(new TypeError('no network')),
      })
    })
  })
})
afterEach(() => vi.unstubAllGlobals())

function runs() {
  const queries = new QueryClient()
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={queries}>{children}</QueryClientProvider>
  )
  return renderHook(() => useRuns(), { wrapper })
}
const last = () => requests.at(-1) as Request

test('a run ends with its result', async () => {
  const { result } = runs()
  expect(result.current.run).toEqual({ state: 'none' })

  act(() => void result.current.start(DRAFT, 's1'))
  expect(result.current.run.state).toBe('running')
  expect(last().body).toMatchObject({ command: 'SEARCHPROP', shard: 's1', keep: true, write: false })

  await act(async () => last().reply(900))
  await waitFor(() => expect(result.current.run.state).toBe('done'))
  expect(result.current.run).toMatchObject({ draft: DRAFT, answer: { totalMicros: 900 }, isRepeating: false })
})

test('a new run cancels the one before, whose result no longer counts', async () => {
  const { result } = runs()
  act(() => void result.current.start(DRAFT, undefined))
  act(() => void result.current.start({ ...DRAFT, node: 'n2' }, undefined))

  expect(requests.map(({ signal }) => signal.aborted)).toEqual([true, false])
  await act(async () => last().reply(5))
  await waitFor(() => expect(result.current.run).toMatchObject({ state: 'done', draft: { node: 'n2' } }))
  expect(last().body.node).toBe('n2')
})

test('the last result stays while the next one runs, and after it failed', async () => {
  const { result } = runs()
  act(() => void result.current.start(DRAFT, undefined))
  await act(async () => last().reply(7))
  await waitFor(() => expect(result.current.run.state).toBe('done'))

  act(() => void result.current.start(DRAFT, undefined))
  expect(result.current.before).toMatchObject({ answer: { totalMicros: 7 } })
  await act(async () => last().fail())
  await waitFor(() => expect(result.current.run.state).toBe('failed'))
  expect(result.current.before).toMatchObject({ answer: { totalMicros: 7 } })
})

test('a stopped run leaves the last result', async () => {
  const { result } = runs()
  act(() => void result.current.start(DRAFT, undefined))
  act(() => result.current.stop())

  expect(last().signal.aborted).toBe(true)
  expect(result.current.run).toEqual({ state: 'none' })
})

test('leaving the page cancels the run', () => {
  const { result, unmount } = runs()
  act(() => void result.current.start(DRAFT, undefined))
  unmount()
  expect(last().signal.aborted).toBe(true)
})

test('repeats keep only times, and count failures', async () => {
  const { result } = runs()
  act(() => void result.current.start(DRAFT, undefined, { times: 3 }))
  await act(async () => last().reply(10))
  await vi.waitUntil(() => requests.length === 2)
  await act(async () => last().fail())
  await vi.waitUntil(() => requests.length === 3)
  await act(async () => last().reply(30))

  await waitFor(() => expect(result.current.run).toMatchObject({ isRepeating: false }))
  expect(result.current.run).toMatchObject({ repeats: { runs: [10, 30], failed: 1, wanted: 3 } })
  expect(requests.map(({ body }) => body.keep)).toEqual([true, false, false])
})

test('a repeated run is measured as often as wanted, at most 50 times a second', async () => {
  const { result } = runs()
  act(() => void result.current.start(DRAFT, undefined, { times: 2, confirm: 'yes' }))
  expect(last().body).toMatchObject({ confirm: 'yes', keep: true })
  await act(async () => last().reply(10))
  expect(result.current.run).toMatchObject({ isRepeating: true, repeats: { runs: [10], failed: 0, wanted: 2 } })
  await vi.waitUntil(() => requests.length === 2)
  expect(last().body).toMatchObject({ confirm: '', keep: false })

  await act(async () => last().reply(20))
  await waitFor(() => expect(result.current.run).toMatchObject({ isRepeating: false }))
  expect(result.current.run).toMatchObject({ answer: { totalMicros: 10 }, repeats: { runs: [10, 20] } })
  expect(requests).toHaveLength(2)
})
