import { afterEach, expect, test, vi } from 'vitest'
import { watchEventLoop } from './event-loop.ts'

afterEach(() => vi.useRealTimers())

/** A turn of the event loop that takes so long: the timer runs late, and once. */
function turnOf(ms: number): void {
  const now = performance.now()
  vi.spyOn(performance, 'now').mockReturnValueOnce(now + ms)
  vi.advanceTimersToNextTimer()
}

test('the longest delay since the last call is that of a turn which took long', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const watch = watchEventLoop()
  vi.advanceTimersByTime(200)
  expect(watch.takeSeconds()).toBe(0)

  turnOf(1_000)

  expect(watch.takeSeconds()).toBeCloseTo(0.95)
  expect(watch.takeSeconds()).toBe(0)
  watch.close()
  expect(vi.getTimerCount()).toBe(0)
})
