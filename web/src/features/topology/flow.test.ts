import { expect, test } from 'vitest'
import { dotsOf, dotsOn, linesInView } from './flow.ts'
import type { Box, Layout, Line } from './layout.ts'

const box = (x: number, y: number): Box => ({ thing: {} as Box['thing'], x, y, width: 100, height: 20 })
const line = (state: Line['state'], from = box(0, 0), to = box(300, 80)): Line => ({
  ...{ from, to, state, level: 'ok', reads: 10, writes: 2 },
})

test('dots follow the requests: none without any, one more each time that 1 + requests is four times as many', () => {
  expect([-1, 0, 0.5, 2.9, 3, 14.9, 15, 63, 255, 1_023, 1e6].map(dotsOn)).toEqual([0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 6])
})

test('dots are at equal parts of a curve with level ends', () => {
  // From (100, 10) to (300, 90), bent by 100 at both ends.
  expect(dotsOf(line('live'), 100, 0)).toEqual([
    { x: 100, y: 10 },
    { x: 159.375, y: 22.5 },
    { x: 200, y: 50 },
    { x: 240.625, y: 77.5 },
  ])
})

test('a dot moves by 36 pixels in a second and begins again after the receiver', () => {
  const level = line('live', box(0, 0), box(300, 0))
  const xs = [0, 50, 150, 250].map((pixels) => dotsOf(level, 1, (pixels / 36) * 1_000)[0]?.x ?? 0)
  expect(xs.map((x) => Number(x.toFixed(3)))).toEqual([100, 159.375, 240.625, 159.375])

  // Boxes that touch have a line without length.
  expect(dotsOf(line('live', box(0, 0), box(100, 0)), 1, 500)).toEqual([{ x: 100, y: 10 }])
})

test('only live connections have dots', () => {
  for (const state of ['down', 'idle', 'declared', 'unknown'] as const) expect(dotsOf(line(state), 100, 0)).toEqual([])
})

test('a connection is in view when any part of it is', () => {
  const lines = [line('live'), line('live', box(0, 500), box(300, 600)), line('live', box(0, 0), box(300, 900))]
  const layout: Layout = { width: 980, height: 900, boxes: new Map(), lines, zones: [] }
  const seen = (top: number, bottom: number) => linesInView(layout, top, bottom).map((each) => lines.indexOf(each))

  expect(seen(200, 400)).toEqual([2])
  expect(seen(0, 1_000)).toEqual([0, 1, 2])
  // The first ends at 100, the second begins at 500.
  expect([seen(100, 499), seen(101, 500)]).toEqual([
    [0, 2],
    [1, 2],
  ])
  // The other way round the same: the sender may be the lower one.
  const up: Layout = { ...layout, lines: [line('live', box(0, 80), box(300, 0))] }
  expect(
    [linesInView(up, 100, 200), linesInView(up, -10, 0), linesInView(up, 101, 200)].map(({ length }) => length),
  ).toEqual([1, 1, 0])
})
