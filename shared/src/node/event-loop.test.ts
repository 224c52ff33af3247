import { expect, test } from 'vitest'
import { watchEventLoop } from './event-loop.ts'

const turnOf = (ms: number) => {
  for (const end = performance.now() + ms; performance.now() < end; );
}
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('the longest delay since the last call is that of a turn which took long', async () => {
  const watch = watchEventLoop()
  await sleep(120)
  watch.takeSeconds()

  turnOf(1_000)
  await sleep(120)

  expect(watch.takeSeconds()).toBeGreaterThanOrEqual(0.94)
  // Nothing was sampled since.
  expect(watch.takeSeconds()).toBe(0)
  watch.close()
})
