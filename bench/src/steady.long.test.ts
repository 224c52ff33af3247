import { expect, test } from 'vitest'
import type { Request } from './pauses.ts'
import { flows, forgetBefore } from './steady.ts'

const OPEN = Number.POSITIVE_INFINITY
/** A request that was intended so many milliseconds ago. */
const ago = (ms: number, settledMs: number, error = ''): Request => ({
  intendedMs: performance.now() - ms,
  settledMs,
  error,
})

test('writes flow while the latest are answered and nothing old waits', () => {
  expect(flows([ago(900, 1), ago(100, 1), ago(5, OPEN)], 500)).toBe(true)
  expect(flows([ago(900, OPEN), ago(100, 1)], 500)).toBe(false)
  expect(flows([ago(900, 1), ago(100, OPEN)], 500)).toBe(false)
  expect(flows([ago(900, 1), ago(100, 1, 'deadline_exceeded')], 500)).toBe(false)
})

test('an answer to what was intended before the moment in question proves nothing', () => {
  const writes = [ago(200, 1), ago(100, 1)]

  expect(flows(writes, 500, performance.now() - 150)).toBe(true)
  expect(flows(writes, 500, performance.now() - 50)).toBe(false)
})

test('what is under way is never forgotten', () => {
  const requests = [ago(500, 10), ago(400, OPEN), ago(300, 20)]

  forgetBefore(requests, 1_000_000_000)

  expect(requests.map(({ settledMs }) => settledMs)).toEqual([OPEN, 20])
})
