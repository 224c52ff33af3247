import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hullOf, outlinesOf } from './hull.ts'
import { keptOrder } from './kept-order.ts'
import {
  boxInView,
  isInView,
  moved,
  nearestPoint,
  offScreen,
  onScreen,
  wholeView,
  ZOOM_AROUND,
  ZOOM_MAX,
  zoomed,
} from './map-view-box.ts'
import { project } from './projection.ts'
import { pathOf } from './sparkline.tsx'

test('the line goes from 0 at the bottom to the highest value at the top', () => {
  expect(pathOf([0, 5, 10])).toBe('M1.5 18.5L48.0 10.0L94.5 1.5')
})

test('gaps interrupt the line, and no values draw nothing', () => {
  expect(pathOf([1, null, 1])).toBe('M1.5 1.5M94.5 1.5')
  expect(pathOf([null, null])).toBe('')
  expect(pathOf([])).toBe('')
})

test('zeros are a line at the bottom', () => {
  expect(pathOf([0, 0])).toBe('M1.5 18.5L94.5 18.5')
})

test('a square has its four corners, without points inside or on its sides', () => {
  const square = [
    ...[0, 10].flatMap((x) => [0, 10].map((y) => ({ x, y }))),
    ...[
      { x: 5, y: 5 },
      { x: 5, y: 0 },
      { x: 0, y: 5 },
    ],
  ]
  expect(hullOf(square)).toHaveLength(4)
})

test('no point of any set on a grid of 4 × 3 lies outside of its hull', () => {
  const grid = [0, 1, 2, 3].flatMap((x) => [0, 1, 2].map((y) => ({ x, y })))
  for (let set = 1; set < 2 ** grid.length; set++) {
    const points = grid.filter((_, at) => set & (1 << at))
    const corners = hullOf(points)
    const isInside = corners.every((a, at) => {
      const b = corners[(at + 1) % corners.length] ?? a
      return points.every(({ x, y }) => (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x) >= 0)
    })
    if (!isInside) expect.fail(`${JSON.stringify(corners)} of ${JSON.stringify(points)}`)
  }
})

test('areas with too few properties, or all of them on a line, have no outline', () => {
  const at = (id: string, x: number, y: number) => ({ id, x, y })
  const points = [at('a1', 0, 0), at('a2', 4, 0), at('a3', 0, 4), at('b1', 0, 0), at('b2', 1, 1), at('b3', 2, 2)]
  const outlines = outlinesOf([...points, at('c1', 1, 2), at('1', 5, 9)], ([area = '']) => (area === '1' ? '' : area))
  expect(outlines.map(({ name, corners }) => [name, corners.length])).toEqual([['a', 3]])
})

test('rows keep their place when their values change', () => {
  expect(keptOrder(['a', 'b', 'c'], ['c', 'a', 'b'])).toEqual(['a', 'b', 'c'])
})

test('new rows come last in sort order, removed rows leave', () => {
  expect(keptOrder(['a', 'b', 'c'], ['z', 'c', 'd', 'a'])).toEqual(['a', 'c', 'z', 'd'])
})

test('the first rows are sorted', () => {
  expect(keptOrder([], ['c', 'a'])).toEqual(['c', 'a'])
})

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

test('the box of a view has the places in view and none beyond its edge, also across 180°', () => {
  // Places have six decimals.
  const micro = (degrees: number) => Math.round(degrees * 1e6) / 1e6
  const degrees = (most: number) => fc.integer({ min: -most * 1e6, max: most * 1e6 }).map((n) => n / 1e6)
  const [size, edge] = [{ width: 400, height: 300 }, 1]
  fc.assert(
    fc.property(
      fc.array(fc.tuple(degrees(5), degrees(5)), { minLength: 2, maxLength: 20 }),
      degrees(80),
      degrees(180),
      fc.double({ min: 0.05, max: 200, noNaN: true }),
      fc.tuple(degrees(400), degrees(300)),
      (offsets, latitude, longitude, factor, by) => {
        const around = (east: number) => micro(((longitude + east + 540) % 360) - 180)
        const places = offsets.map(([north, east], n) => ({
          ...{ id: String(n), latitude: micro(latitude + north), longitude: around(east) },
        }))
        const projection = project(places, size)
        const view = moved(zoomed(wholeView(size), factor, { x: 200, y: 150 }, size, ZOOM_AROUND), ...by, size)
        const box = boxInView(projection, view, size)
        const isInBox = ({ latitude: north, longitude: east }: (typeof places)[number]) =>
          north >= box.south &&
          north <= box.north &&
          (box.west <= box.east ? east >= box.west && east <= box.east : east >= box.west || east <= box.east)
        for (const [n, place] of places.entries()) {
          const { x, y } = onScreen(projection.points[n] as { x: number; y: number }, view, size)
          if (isInView({ x, y }, size)) expect(isInBox(place), JSON.stringify({ place, box })).toBe(true)
          const isBeyond =
            !isInView({ x: x - edge, y: y - edge }, size) && !isInView({ x: x + edge, y: y + edge }, size)
          // A step of the box is more than a pixel in a deep view.
          const isAllAround = box.west === -180 && box.east === 180
          if (isBeyond && view.zoom < 20 && !isAllAround)
            expect(isInBox(place), JSON.stringify({ place, box })).toBe(false)
        }
        expect([box.south, box.west, box.north, box.east].every((side) => Math.abs(side) <= 180)).toBe(true)
      },
    ),
    { numRuns: 300 },
  )
})
