// @vitest-environment happy-dom
import { act } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { runHook } from './testing/hook.tsx'
import { useUrlParam, useUrlTyped } from './url.ts'
import { useWriteMode } from './write-mode.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const address = () => location.pathname + location.search
/** Waits for what is not urgent. */
const settled = (run: { wait: (ms: number) => Promise<unknown> }) => run.wait(100)

test('a parameter is read from the URL and written to it, beside others', async () => {
  const run = await runHook(() => useUrlParam('sort'), { address: '/shards?a=1&sort=lag' })
  expect(run.result.current[0]).toBe('lag')
  const entries = history.length

  act(() => run.result.current[1]('zone'))
  await settled(run)
  expect(run.result.current[0]).toBe('zone')
  expect([address(), history.length]).toEqual(['/shards?a=1&sort=zone', entries])

  act(() => run.result.current[1]('', { push: true }))
  await settled(run)
  expect(run.result.current[0]).toBe('')
  expect([address(), history.length]).toEqual(['/shards?a=1', entries + 1])
})

test('typed text counts at once, and is in the URL after a quarter of a second without a key', async () => {
  const run = await runHook(() => useUrlTyped('q'), { address: '/?q=a' })
  const typed = () => run.result.current[0]

  act(() => run.result.current[1]('ab'))
  await run.wait(249)
  act(() => run.result.current[1]('abc'))
  await run.wait(249)
  expect([typed(), address()]).toEqual(['abc', '/?q=a'])
  await run.wait(1)
  expect([typed(), address()]).toEqual(['abc', '/?q=abc'])
  await settled(run)
  expect(typed()).toBe('abc')

  // Back or a link: the URL counts.
  history.replaceState(null, '', '/?q=other')
  act(() => void dispatchEvent(new PopStateEvent('popstate')))
  await settled(run)
  expect(typed()).toBe('other')
})

test('write mode is off until it is turned on, and again after 15 minutes', async () => {
  const run = await runHook(() => useWriteMode())
  const isOn = () => run.result.current[0]
  expect(isOn()).toBe(false)

  act(() => run.result.current[1](true))
  await run.wait(15 * 60_000 - 1)
  expect(isOn()).toBe(true)
  await run.wait(1)
  expect(isOn()).toBe(false)

  act(() => run.result.current[1](true))
  act(() => run.result.current[1](false))
  expect(isOn()).toBe(false)
  // Turned on again, it has the whole time again.
  act(() => run.result.current[1](true))
  await run.wait(10 * 60_000)
  act(() => run.result.current[1](true))
  await run.wait(10 * 60_000)
  expect(isOn()).toBe(true)
})
