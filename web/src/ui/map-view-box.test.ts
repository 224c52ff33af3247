import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isInView, moved, nearestPoint, offScreen, onScreen, wholeView, ZOOM_MAX, zoomed } from './map-view-box.ts'

const SIZE = { width: 600, height: 400 }
const positions = fc.record({ x: fc.integer({ min: 0, max: 600 }), y: fc.integer({ min: 0, max: 400 }) })

test('what is zoomed at stays in place, and positions convert both ways', () => {
  fc.assert(
    fc.property(positions, fc.integer({ min: 1, max: 6 }), (at, steps) => {
      let view = wholeView(SIZE)
      for (let step = 0; step < steps; step++) view = zoomed(view, 1.6, at, SIZE)
      const point = onScreen(at, view, SIZE)
      // At the whole view a position on the screen is a point of the projection.
      expect(point.x).toBeCloseTo(at.x, 6)
      expect(point.y).toBeCloseTo(at.y, 6)
      const back = offScreen(point, view, SIZE)
      expect(back.x).toBeCloseTo(at.x, 6)
    }),
  )
})

test('zoom and moves are bounded, and zooming out shows all again', () => {
  const middle = { x: 300, y: 200 }
  const close = zoomed(wholeView(SIZE), 10_000, middle, SIZE)
  expect(close.zoom).toBe(ZOOM_MAX)
  expect(moved(close, 1e9, -1e9, SIZE)).toEqual({ zoom: ZOOM_MAX, x: SIZE.width, y: 0 })
  expect(zoomed(close, 1e-9, middle, SIZE)).toEqual(wholeView(SIZE))
  expect(moved(wholeView(SIZE), 50, 50, SIZE)).toEqual(wholeView(SIZE))
})

test('the nearest point is found within its reach only', () => {
  const points = [
    { id: 'a', x: 10, y: 10 },
    { id: 'b', x: 20, y: 10 },
  ]
  expect(nearestPoint(points, { x: 16, y: 10 }, 16)?.id).toBe('b')
  expect(nearestPoint(points, { x: 60, y: 10 }, 16)).toBeUndefined()
  expect([isInView({ x: 0, y: 400 }, SIZE), isInView({ x: -1, y: 0 }, SIZE)]).toEqual([true, false])
})
