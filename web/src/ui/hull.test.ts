import { expect, test } from 'vitest'
import { hullOf, outlinesOf } from './hull.ts'

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
