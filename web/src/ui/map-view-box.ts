/** The part of a map that is in view: zoom and centre, in pixels of the projection that shows all points. */
import type { Point, Projection, Size } from './projection.ts'

export type ViewBox = { readonly zoom: number; readonly x: number; readonly y: number }

export const ZOOM_MAX = 256
/** Of a map that is searched: what lies around all of its points is in view, too. */
export const ZOOM_AROUND = 1 / 64

export function wholeView({ width, height }: Size): ViewBox {
  return { zoom: 1, x: width / 2, y: height / 2 }
}

/** A point of the projection on the screen. */
export function onScreen<P extends { readonly x: number; readonly y: number }>(
  point: P,
  { zoom, x, y }: ViewBox,
  { width, height }: Size,
): P {
  return { ...point, x: (point.x - x) * zoom + width / 2, y: (point.y - y) * zoom + height / 2 }
}

/** The point of the projection at a position on the screen. */
export function offScreen(at: { readonly x: number; readonly y: number }, view: ViewBox, { width, height }: Size) {
  return { x: (at.x - width / 2) / view.zoom + view.x, y: (at.y - height / 2) / view.zoom + view.y }
}

/** Zooms by a factor, not below `least`, and keeps what is at `at` on the screen in place. */
export function zoomed(
  view: ViewBox,
  factor: number,
  at: { readonly x: number; readonly y: number },
  size: Size,
  least = 1,
) {
  const zoom = Math.min(ZOOM_MAX, Math.max(least, view.zoom * factor))
  const fixed = offScreen(at, view, size)
  const next = {
    zoom,
    x: fixed.x - (at.x - size.width / 2) / zoom,
    y: fixed.y - (at.y - size.height / 2) / zoom,
  }
  return inside(next, size)
}

/** Moves the view by pixels of the screen. */
export function moved(view: ViewBox, dx: number, dy: number, size: Size): ViewBox {
  return inside({ ...view, x: view.x + dx / view.zoom, y: view.y + dy / view.zoom }, size)
}

/** Never shows more than half of the view beside the points. */
function inside({ zoom, x, y }: ViewBox, { width, height }: Size): ViewBox {
  if (Math.abs(zoom - 1) < 1e-6) return wholeView({ width, height })
  return { zoom, x: Math.min(width, Math.max(0, x)), y: Math.min(height, Math.max(0, y)) }
}

export function isInView({ x, y }: { readonly x: number; readonly y: number }, { width, height }: Size): boolean {
  return x >= 0 && y >= 0 && x <= width && y <= height
}

/** Degrees, both ends included. With west of more than east it crosses 180°. */
export type MapBox = { readonly south: number; readonly west: number; readonly north: number; readonly east: number }

/** Of a box: about a metre. */
const STEPS_PER_DEGREE = 1e5

/** What is in view, rounded outwards. */
export function boxInView(projection: Projection, view: ViewBox, size: Size): MapBox {
  const [from, to] = [offScreen({ x: 0, y: 0 }, view, size), offScreen({ x: size.width, y: size.height }, view, size)]
  const [first, last] = [projection.place(from.x, from.y), projection.place(to.x, to.y)]
  const below = (degrees: number) => Math.floor(degrees * STEPS_PER_DEGREE) / STEPS_PER_DEGREE
  const above = (degrees: number) => Math.ceil(degrees * STEPS_PER_DEGREE) / STEPS_PER_DEGREE
  const isAllAround = (to.x - from.x) * projection.degreesPerPixel >= 360
  return {
    south: Math.max(-90, below(last.latitude)),
    west: isAllAround ? -180 : Math.max(-180, below(first.longitude)),
    north: Math.min(90, above(first.latitude)),
    east: isAllAround ? 180 : Math.min(180, above(last.longitude)),
  }
}

/** The nearest point within `reach` pixels. */
export function nearestPoint(
  points: readonly Point[],
  at: { readonly x: number; readonly y: number },
  reach: number,
): Point | undefined {
  let best: Point | undefined
  let least = reach
  for (const point of points) {
    const distance = Math.hypot(point.x - at.x, point.y - at.y)
    if (distance <= least) [best, least] = [point, distance]
  }
  return best
}
