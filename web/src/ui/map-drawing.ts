/** Draws the map on a canvas: coordinate grid, outlines of areas, points or hexagons with counts, marks, scale bar. */
import { readColours } from './colours.ts'
import type { Outline } from './hull.ts'
import { STEPS } from './price-scale.ts'
import { hexagons, type Point, type Projection, type Size, scaleBar } from './projection.ts'

/** Above this number in view points become hexagons with counts. */
export const POINTS_MAX = 2_000
const HEXAGON = 14
const RADIUS = 5

type Drawing = {
  /** All points on the screen, and those in view. */
  readonly points: readonly Point[]
  readonly inView: readonly Point[]
  readonly outlines: readonly Outline[]
  readonly place: Projection['place']
  readonly metresPerPixel: number
  readonly size: Size
  readonly selected: string | undefined
  readonly hovered: string | undefined
  /** Colour token of a property. */
  readonly colourOf: (id: string) => string
}

const TOKENS = [
  'line',
  'sunken',
  'text',
  'text-2',
  'text-3',
  'series-3',
  'focus',
  'accent',
  ...Array.from({ length: STEPS }, (_, step) => `price-${step + 1}`),
]

export function drawMap(canvas: HTMLCanvasElement, drawing: Drawing): void {
  const { points, inView, size, selected, hovered, colourOf } = drawing
  const { width, height } = size
  const ratio = devicePixelRatio
  canvas.width = width * ratio
  canvas.height = height * ratio
  const context = canvas.getContext('2d')
  if (!context) return
  context.scale(ratio, ratio)
  const colours = readColours(canvas, TOKENS)
  const colour = (token: string) => colours[TOKENS.indexOf(token)] ?? ''
  context.font = '11px system-ui, sans-serif'
  context.strokeStyle = colour('line')
  context.fillStyle = colour('text-3')
  drawGrid(context, drawing)
  drawOutlines(context, drawing.outlines, colour('series-3'), colour('text-2'), width)
  if (inView.length > POINTS_MAX) {
    drawHexagons(context, inView, colour('series-3'), colour('text'))
  } else {
    context.strokeStyle = colour('text')
    for (const { id, x, y } of inView) {
      // Neighbours are separated by the colour of the ground; the stroke keeps every colour visible on it.
      drawCircle(context, x, y, RADIUS + 2, colour('sunken'))
      drawCircle(context, x, y, RADIUS, colour(colourOf(id)))
      context.stroke()
    }
  }
  for (const [id, token, width] of [
    [hovered, 'text', 1.5],
    [selected, 'focus', 3],
  ] as const) {
    const marked = id === undefined ? undefined : points.find((point) => point.id === id)
    if (!marked) continue
    drawCircle(context, marked.x, marked.y, RADIUS + 6, colour('sunken'))
    drawCircle(context, marked.x, marked.y, RADIUS, colour(colourOf(marked.id)))
    context.strokeStyle = colour(token)
    context.lineWidth = width
    context.beginPath()
    context.arc(marked.x, marked.y, RADIUS + 4, 0, 2 * Math.PI)
    context.stroke()
    context.lineWidth = 1
  }
  const bar = scaleBar(drawing.metresPerPixel, 110)
  context.fillStyle = colour('text-3')
  context.fillRect(12, height - 12, bar.pixels, 2)
  context.fillText(bar.text, 12, height - 18)
}

function drawGrid(context: CanvasRenderingContext2D, { place, metresPerPixel, size: { width, height } }: Drawing) {
  // Two neighbouring labels must differ.
  const digits = metresPerPixel < 2 ? 4 : metresPerPixel < 20 ? 3 : 2
  for (let n = 1; n < 4; n++) {
    const [x, y] = [(width * n) / 4, (height * n) / 4]
    context.beginPath()
    context.moveTo(x, 0)
    context.lineTo(x, height)
    context.moveTo(0, y)
    context.lineTo(width, y)
    context.stroke()
    context.fillText(`${place(x, 0).longitude.toFixed(digits)}°`, x + 3, 11)
    context.fillText(`${place(0, y).latitude.toFixed(digits)}°`, 3, y - 3)
  }
}

/** More outlines cover one another. */
const OUTLINES_MAX = 40
/** Between the outermost properties and the outline. */
const OUTLINE_PIXELS = 10
const LABEL_HEIGHT = 14
const LABEL_GAP = 5

function drawOutlines(
  context: CanvasRenderingContext2D,
  outlines: readonly Outline[],
  fill: string,
  text: string,
  width: number,
): void {
  if (outlines.length > OUTLINES_MAX) return
  const labels: { readonly x: number; readonly y: number; readonly half: number }[] = []
  context.textAlign = 'center'
  for (const { name, corners } of outlines) {
    const outside = widened(corners)
    context.beginPath()
    for (const { x, y } of outside) context.lineTo(x, y)
    context.closePath()
    context.fillStyle = fill
    context.globalAlpha = 0.1
    context.fill()
    context.strokeStyle = fill
    context.globalAlpha = 0.8
    context.stroke()
    context.globalAlpha = 1
    const half = context.measureText(name).width / 2
    const top = labelPlace(
      outside.reduce((highest, corner) => (corner.y < highest.y ? corner : highest)),
      half,
      width,
    )
    const isFree = labels.every(
      (one) => Math.abs(one.x - top.x) > one.half + half || Math.abs(one.y - top.y) > LABEL_HEIGHT,
    )
    if (!isFree) continue
    labels.push({ x: top.x, y: top.y, half })
    context.fillStyle = text
    context.fillText(name, top.x, top.y)
  }
  context.textAlign = 'start'
}

/** Above a corner, within the map where the corner is in it. */
function labelPlace({ x, y }: { readonly x: number; readonly y: number }, half: number, width: number) {
  const isInside = x >= 0 && x <= width && y >= 0
  if (!isInside) return { x, y: y - LABEL_GAP }
  return {
    x: Math.min(Math.max(x, half + LABEL_GAP), width - half - LABEL_GAP),
    y: Math.max(y - LABEL_GAP, LABEL_HEIGHT),
  }
}

/** The corners moved away from their middle. */
function widened(corners: Outline['corners']): Outline['corners'] {
  const sum = corners.reduce((all, { x, y }) => ({ x: all.x + x, y: all.y + y }), { x: 0, y: 0 })
  const middle = { x: sum.x / corners.length, y: sum.y / corners.length }
  return corners.map(({ x, y }) => {
    const away = Math.hypot(x - middle.x, y - middle.y) || 1
    const factor = 1 + OUTLINE_PIXELS / away
    return { x: middle.x + (x - middle.x) * factor, y: middle.y + (y - middle.y) * factor }
  })
}

function drawCircle(context: CanvasRenderingContext2D, x: number, y: number, radius: number, fill: string): void {
  context.fillStyle = fill
  context.beginPath()
  context.arc(x, y, radius, 0, 2 * Math.PI)
  context.fill()
}

function drawHexagons(context: CanvasRenderingContext2D, points: readonly Point[], fill: string, text: string): void {
  const bins = hexagons(points, HEXAGON)
  const most = bins.reduce((sum, { ids }) => Math.max(sum, ids.length), 1)
  context.textAlign = 'center'
  for (const { x, y, ids } of bins) {
    context.globalAlpha = 0.12 + (0.3 * ids.length) / most
    context.fillStyle = fill
    context.beginPath()
    for (let corner = 0; corner < 6; corner++) {
      const angle = (Math.PI / 3) * corner + Math.PI / 6
      context.lineTo(x + HEXAGON * Math.cos(angle), y + HEXAGON * Math.sin(angle))
    }
    context.fill()
    context.globalAlpha = 1
    context.fillStyle = text
    context.fillText(String(ids.length), x, y + 4)
  }
  context.textAlign = 'start'
}
