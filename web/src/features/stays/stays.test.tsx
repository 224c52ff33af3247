// @vitest-environment happy-dom
import { act, render } from '@testing-library/react'
import type { StayLineView } from '@vacancy/shared/contract'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { resumeLive } from '../../lib/live.ts'
import { problemOf, runHook } from '../../lib/testing/hook.tsx'
import { dayBegins } from './day-dialog.tsx'
import * as queries from './queries.ts'
import { Countdown, linesOn, nightsText, roomsOf, roomsText } from './stay-parts.tsx'

const line = (arrival: string, nights: number, more: Partial<StayLineView> = {}): StayLineView => ({
  ...{ property: 'h1', room: 'double', arrival, nights, rooms: 2, uncounted: false },
  ...more,
})

test('nights of a stay end before its departure', () => {
  expect(nightsText(line('2026-12-30', 3))).toBe('30 Dec – 1 Jan, 3 nights')
  expect(nightsText(line('2026-12-30', 1))).toBe('30 Dec, 1 night')
})

test('rooms of a night are those of the lines that take this room type on it', () => {
  const lines = [
    line('2026-12-24', 3),
    line('2026-12-26', 1, { rooms: 1 }),
    line('2026-12-24', 3, { room: 'suite' }),
    line('2026-12-24', 3, { property: 'h2' }),
  ]
  const on = (date: string) => roomsOf(linesOn(lines, { property: 'h1', room: 'double', date }))

  expect([on('2026-12-23'), on('2026-12-24'), on('2026-12-26'), on('2026-12-27')]).toEqual([0, 2, 3, 0])
  expect(roomsText({ lines } as Parameters<typeof roomsText>[0])).toBe('double and 3 more lines')
})

test('a deadline counts down and then has passed, without a negative time', () => {
  vi.useFakeTimers({ now: Date.parse('2026-11-25T18:00:00Z'), toFake: ['setInterval', 'clearInterval', 'Date'] })
  render(<Countdown to="2026-11-25T18:01:05.300Z" />)
  const shown = () => document.querySelector('time')?.textContent?.replaceAll(/\s/g, ' ')
  expect(shown()).toBe('in 1 min 06 s')
  act(() => vi.advanceTimersByTime(65_000))
  expect(shown()).toBe('in 1 s')
  act(() => vi.advanceTimersByTime(5_000))
  expect(shown()).toBe('has passed')
  vi.useRealTimers()
})

test.each([
  [0, '00:00 UTC'],
  [480, '08:00 UTC'],
  [-60, '23:00 UTC the day before'],
  [1_200, '20:00 UTC'],
])('a day that begins %d minutes after midnight UTC begins at %s', (minutes, text) => {
  expect(dayBegins(minutes)).toBe(text)
})

describe('queries', () => {
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
})
