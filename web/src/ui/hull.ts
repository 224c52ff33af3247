/** The outlines of groups of points on a map. Pure. */
import type { Point } from './projection.ts'

export type Outline = { readonly name: string; readonly corners: readonly Pick<Point, 'x' | 'y'>[] }

/** Fewer points have no outline. */
const POINTS_MIN = 3

/** One outline per group, by name; groups that lie on a line have none. */
export function outlinesOf(points: readonly Point[], groupOf: (id: string) => string): readonly Outline[] {
  return [...Map.groupBy(points, ({ id }) => groupOf(id))]
    .map(([name, group]) => ({ name, corners: group.length < POINTS_MIN ? [] : hullOf(group) }))
    .filter(({ name, corners }) => name !== '' && corners.length >= POINTS_MIN)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The convex hull, by Andrew's monotone chain. */
export function hullOf(points: readonly Pick<Point, 'x' | 'y'>[]): readonly Pick<Point, 'x' | 'y'>[] {
  const sorted = points.toSorted((a, b) => a.x - b.x || a.y - b.y)
  return [...chainOf(sorted), ...chainOf(sorted.toReversed())]
}

type Corner = Pick<Point, 'x' | 'y'>

/** One side of the hull, without its last corner, which begins the other one. */
function chainOf(sorted: readonly Corner[]): Corner[] {
  const chain: Corner[] = []
  for (const point of sorted) {
    while (chain.length > 1 && turn(chain.at(-2) as Corner, chain.at(-1) as Corner, point) <= 0) chain.pop()
    chain.push(point)
  }
  return chain.slice(0, -1)
}

/** Above 0 for a turn to one side, below for the other, 0 on a line. */
function turn(a: Corner, b: Corner, c: Corner): number {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
}
