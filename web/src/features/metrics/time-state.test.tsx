// @vitest-environment happy-dom
import { act } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { runHook } from '../../lib/testing/hook.tsx'
import { useTimeRange } from './time-state.ts'

const NOW = Date.UTC(2026, 10, 20, 18, 30)
beforeEach(() => void vi.useFakeTimers({ now: NOW }))
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const run = async (address: string) => {
  const running = await runHook(() => useTimeRange('now-1h'), { address })
  return {
    state: () => running.result.current,
    search: () => Object.fromEntries(new URLSearchParams(location.search)),
    change: async (act_: (state: ReturnType<typeof useTimeRange>) => void) => {
      act(() => act_(running.result.current))
      await running.wait(100)
    },
  }
}
const iso = (time: string) => `2026-11-20T${time}.000Z`

test('a pin is in the URL; a past view shows its moment', async () => {
  const { state, search, change } = await run('/shards?pin=nonsense')
  expect([state().pinned, state().control.pin]).toEqual([undefined, undefined])

  await change(({ control }) => control.onPin?.(NOW - 60_000))
  expect(search()).toEqual({ pin: iso('18:29:00') })
  expect([state().pinned, state().control.pin]).toEqual([iso('18:29:00'), NOW - 60_000])
  await change(({ control }) => control.onPin?.(undefined))
  expect(search()).toEqual({})

  const past = await run('/shards?at=2026-11-20T17:00:00Z')
  expect([past.state().pinned, past.state().control.pin]).toEqual([undefined, NOW - 90 * 60_000])
})

test('zooming goes in by steps and out again through the same ranges', async () => {
  const { state, search, change } = await run('/shards')
  const entries = history.length

  await change(({ control }) => control.onZoom?.(NOW - 1_800_000, NOW - 600_000))
  expect(search()).toEqual({ from: iso('18:00:00'), to: iso('18:20:00') })
  expect(history.length).toBe(entries + 1)
  await change(({ control }) => control.onStep?.('in'))
  expect(state().range).toEqual({ from: iso('18:05:00'), to: iso('18:15:00') })

  await change(({ control }) => control.onZoomOut?.())
  expect(state().range).toEqual({ from: iso('18:00:00'), to: iso('18:20:00') })
  await change(({ control }) => control.onZoomOut?.())
  // The usual range is not in the URL.
  expect(search()).toEqual({})
  await change(({ control }) => control.onZoomOut?.())
  expect(search()).toEqual({ from: 'now-120m' })
})

test('a chosen range forgets the zooms before; a typed time is pinned', async () => {
  const { state, search, change } = await run('/shards')
  await change(({ control }) => control.onStep?.('earlier'))

  await change(({ choose }) => choose({ from: 'now-3h', to: 'now' }))
  expect(search()).toEqual({ from: 'now-3h' })
  await change(({ control }) => control.onZoomOut?.())
  expect(state().range).toEqual({ from: 'now-360m', to: 'now' })

  await change(({ choose }) => choose({ from: iso('17:00:00'), to: iso('17:30:00'), pin: iso('17:15:00') }))
  expect(search()).toEqual({ from: iso('17:00:00'), to: iso('17:30:00'), pin: iso('17:15:00') })
  // The end alone is not the usual range.
  await change(({ choose }) => choose({ from: 'now-1h', to: 'now-30m' }))
  expect(search()).toMatchObject({ from: 'now-1h', to: 'now-30m' })
})
