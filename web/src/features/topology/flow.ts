/** Dots that move along the connections of the map, more and denser with the requests. Pure, except for the canvas. */
import { curveOf, type Layout, type Line } from './layout.ts'

/** With more connections in view there is too much motion to see anything. */
export const FLOWING_MAX = 200
const SPEED_PX_PER_S = 36
const DOTS_MAX = 6

/** The connections that are in view, by their height. */
export function linesInView({ lines }: Layout, top: number, bottom: number): Line[] {
  return lines.filter(
    ({ from, to }) => Math.max(from.y + from.height, to.y + to.height) >= top && Math.min(from.y, to.y) <= bottom,
  )
}

/** How many dots are on a connection: none without requests, one more with each doubling after the first. */
export function dotsOn(perSecond: number): number {
  return perSecond <= 0 ? 0 : Math.min(DOTS_MAX, 1 + Math.floor(Math.log2(1 + perSecond) / 2))
}

type Point = { readonly x: number; readonly y: number }

/** The places of the dots of a connection after some time, in the coordinates of the map. */
export function dotsOf(line: Line, perSecond: number, elapsedMs: number): Point[] {
  const count = line.state === 'live' ? dotsOn(perSecond) : 0
  const curve = curveOf(line)
  const length = Math.hypot(curve.x2 - curve.x1, curve.y2 - curve.y1) || 1
  const moved = (elapsedMs / 1000) * (SPEED_PX_PER_S / length)
  return Array.from({ length: count }, (_, at) => pointAt(curve, (moved + at / count) % 1))
}

/** A cubic curve with level ends. */
function pointAt({ x1, y1, x2, y2, bend }: ReturnType<typeof curveOf>, part: number): Point {
  const rest = 1 - part
  const [a, b, c, d] = [rest ** 3, 3 * rest ** 2 * part, 3 * rest * part ** 2, part ** 3]
  return { x: a * x1 + b * (x1 + bend) + c * (x2 - bend) + d * x2, y: (a + b) * y1 + (c + d) * y2 }
}
