import { expect, test } from 'vitest'
import { dotsOf, dotsOn, linesInView } from './flow.ts'
import type { Box, Layout, Line } from './layout.ts'

const box = (x: number, y: number): Box => ({ thing: {} as Box['thing'], x, y, width: 100, height: 20 })
const line = (state: Line['state'], from = box(0, 0), to = box(300, 80)): Line => ({
  ...{ from, to, state, level: 'ok', reads: 10, writes: 2 },
})

test('dots follow the requests: none without any, and never more than six', () => {
  expect([0, 0.5, 3, 100, 1e6].map(dotsOn)).toEqual([0, 1, 2, 4, 6])
})

test('dots move from the sender to the receiver, begin again there, and are only on live connections', () => {
  const live = line('live')
  const [first] = dotsOf(live, 0.5, 0)
  expect(first).toEqual({ x: 100, y: 10 })
  const xs = [0, 1_000, 2_000, 3_000].map((ms) => dotsOf(live, 0.5, ms)[0]?.x ?? 0)
  expect(xs).toEqual(xs.toSorted((a, b) => a - b))
  expect(Math.max(...xs)).toBeLessThanOrEqual(300)
  expect(dotsOf(live, 0.5, 60_000)[0]?.x).toBeLessThanOrEqual(300)
  expect(dotsOf(line('down'), 100, 0)).toEqual([])
  expect(dotsOf(line('idle'), 100, 0)).toEqual([])
})

test('a connection is in view when any part of it is', () => {
  const lines = [line('live'), line('live', box(0, 500), box(300, 600)), line('live', box(0, 0), box(300, 900))]
  const layout: Layout = { width: 980, height: 900, boxes: new Map(), lines, zones: [] }

  expect(linesInView(layout, 200, 400)).toEqual([lines[2]])
  expect(linesInView(layout, 0, 1_000)).toEqual(lines)
})
