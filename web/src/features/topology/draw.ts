/** Draws the map on its canvas. What is drawn depends on the zoom: names, then shapes, then one block for a shard. */
import type { Level } from '@vacancy/shared/contract'
import { rate } from '../../lib/format.ts'
import { readColours } from '../../ui/colours.ts'
import * as copy from './copy.ts'
import { type Box, curveOf, type Layout, type Line, lineWidth, type Traffic, trafficOf, ZONE_LEFT } from './layout.ts'
import type { Thing } from './model.ts'

/** With more connections in view there is too much motion to see anything. */
const FLOWING_MAX = 200
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

export type Camera = { readonly x: number; readonly y: number; readonly zoom: number }

export type Picture = {
  readonly layout: Layout
  readonly camera: Camera
  readonly width: number
  readonly height: number
  readonly focus: string
  readonly traffic: Traffic
}

/** Below the first only shapes, below the second one block for a shard. */
const NAMES_FROM = 0.6
const SHAPES_FROM = 0.25
const TOKENS = [
  ...(['ok', 'info', 'warn', 'crit', 'unk'] as const),
  ...(['surface', 'line', 'line-strong', 'text', 'text-2', 'focus', 'accent'] as const),
] as const
type Colours = { readonly [token in (typeof TOKENS)[number]]: string }

/** A sign beside the colour. */
const SIGNS: { readonly [level in Level]: string } = { ok: '', info: 'i', warn: '!', crit: '×', unk: '?' }
/** The key of a leader, as in icons/icon.tsx. */
const KEY = 'M8 2.25a2.75 2.75 0 1 1 0 5.5 2.75 2.75 0 0 1 0-5.5ZM8 7.75v6.5M8 10.5h2.5M8 13.75h2'

export function draw(canvas: HTMLCanvasElement, picture: Picture): void {
  const { width, height, camera, layout } = picture
  const ratio = devicePixelRatio
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(height * ratio)
  const context = canvas.getContext('2d')
  if (!context) return
  const colours = coloursOf(canvas)
  look(context, camera)
  const { font } = getComputedStyle(canvas)
  const family = font.replace(/^.*?\d+(?:\.\d+)?px(?:\s*\/\s*\S+)?\s*/, '')
  const top = camera.y - 40
  const bottom = camera.y + height / camera.zoom + 40
  drawZones(context, layout, colours, family, camera.zoom)
  const lines = linesInView(layout, top, bottom)
  for (const line of lines) drawLine(context, line, colours, picture.traffic)
  if (camera.zoom >= NAMES_FROM) {
    // Those of everything at once would hide the map.
    const { focus } = picture
    const near = lines.filter(({ from, to }) => from.thing.key === focus || to.thing.key === focus)
    for (const line of near) drawRate(context, line, colours, family, picture.traffic)
  }
  for (const box of layout.boxes.values()) {
    if (box.y < top || box.y > bottom) continue
    drawBox(context, box, colours, family, picture)
  }
}

function coloursOf(canvas: HTMLCanvasElement): Colours {
  const values = readColours(canvas.parentElement ?? canvas, TOKENS)
  return Object.fromEntries(TOKENS.map((token, at) => [token, values[at]])) as Colours
}

function look(context: CanvasRenderingContext2D, { x, y, zoom }: Camera): void {
  const scale = devicePixelRatio * zoom
  context.setTransform(scale, 0, 0, scale, -x * scale, -y * scale)
}

const DOT_RADIUS = 2.25
const FRAME_MS = 1000 / 30

/**
 * Moves dots along the connections on a canvas of its own, so that the map is not drawn again. Nothing moves where too
 * many connections are in view, or the map is too small for dots.
 *
 * @param current the picture that the map shows now
 * @returns stops it
 */
export function flow(canvas: HTMLCanvasElement, current: () => Omit<Picture, 'focus'>): () => void {
  const context = canvas.getContext('2d')
  if (!context) return () => {}
  const { accent } = coloursOf(canvas)
  let shown: Omit<Picture, 'focus'> | undefined
  let lines: readonly Line[] = []
  let drawnMs = Number.NEGATIVE_INFINITY
  const step = (nowMs: number) => {
    frame = requestAnimationFrame(step)
    const picture = current()
    const { width, height, camera, layout, traffic } = picture
    // While the map moves, the dots move with it.
    if (picture === shown && (nowMs - drawnMs < FRAME_MS || lines.length === 0)) return
    if (picture !== shown) {
      const inView = linesInView(layout, camera.y, camera.y + height / camera.zoom)
      const isFlowing = inView.length <= FLOWING_MAX && camera.zoom >= SHAPES_FROM
      lines = isFlowing ? inView : []
      canvas.dataset['flow'] = isFlowing ? 'moving' : 'still'
      if (width !== shown?.width || height !== shown.height) {
        canvas.width = Math.round(width * devicePixelRatio)
        canvas.height = Math.round(height * devicePixelRatio)
      }
      shown = picture
    }
    drawnMs = nowMs
    context.setTransform(1, 0, 0, 1, 0, 0)
    context.clearRect(0, 0, canvas.width, canvas.height)
    look(context, camera)
    context.fillStyle = accent
    context.beginPath()
    for (const line of lines) {
      for (const { x, y } of dotsOf(line, trafficOf(line, traffic), nowMs)) {
        context.moveTo(x + DOT_RADIUS, y)
        context.arc(x, y, DOT_RADIUS, 0, 2 * Math.PI)
      }
    }
    context.fill()
  }
  let frame = requestAnimationFrame(step)
  return () => cancelAnimationFrame(frame)
}

function drawZones(
  context: CanvasRenderingContext2D,
  layout: Layout,
  colours: Colours,
  family: string,
  zoom: number,
): void {
  context.lineWidth = 1
  context.textBaseline = 'middle'
  for (const { zone, y, height, hidden } of layout.zones) {
    context.strokeStyle = colours.line
    context.setLineDash([])
    context.strokeRect(ZONE_LEFT, y, layout.width - ZONE_LEFT - 8, height)
    if (zoom < SHAPES_FROM) continue
    context.fillStyle = colours['text-2']
    context.font = `12px ${family}`
    if (zone !== '') context.fillText(copy.map.zone(zone), ZONE_LEFT + 12, y + 13)
    if (hidden > 0) {
      const shown = [...layout.boxes.values()].some((box) => box.thing.kind === 'shard' && box.thing.zone === zone)
      context.fillText(copy.map.collapsed(hidden, !shown), ZONE_LEFT + 190, y + height - 20)
    }
  }
}

function drawLine(context: CanvasRenderingContext2D, line: Line, colours: Colours, traffic: Traffic): void {
  const { state, level } = line
  const perSecond = trafficOf(line, traffic)
  const { x1, y1, x2, y2, bend } = curveOf(line)
  context.beginPath()
  context.moveTo(x1, y1)
  context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2)
  context.lineWidth = lineWidth(perSecond)
  context.strokeStyle = level === 'ok' ? colours['line-strong'] : colours[level]
  context.setLineDash(state === 'live' ? [] : state === 'down' || state === 'idle' ? [7, 5] : [2, 4])
  context.stroke()
  context.setLineDash([])
}

/** The requests per second, in the middle of the line. */
function drawRate(
  context: CanvasRenderingContext2D,
  line: Line,
  colours: Colours,
  family: string,
  traffic: Traffic,
): void {
  const { x1, y1, x2, y2 } = curveOf(line)
  const perSecond = trafficOf(line, traffic)
  // Between a bridge and its shard there is room for four digits.
  const text = rate(perSecond >= 10 ? Math.round(perSecond) : perSecond)
  context.font = `12px ${family}`
  context.textBaseline = 'middle'
  const wide = context.measureText(text).width
  const [x, y] = [(x1 + x2) / 2 - wide / 2, (y1 + y2) / 2]
  context.fillStyle = colours.surface
  context.fillRect(x - 3, y - 8, wide + 6, 16)
  context.fillStyle = colours['text-2']
  context.fillText(text, x, y + 1)
}

function drawBox(
  context: CanvasRenderingContext2D,
  { thing, x, y, width, height }: Box,
  colours: Colours,
  family: string,
  { camera, focus }: Picture,
): void {
  const isFocused = thing.key === focus
  if (thing.kind === 'node' && camera.zoom < SHAPES_FROM) return
  const isBlock = camera.zoom < SHAPES_FROM
  context.lineWidth = thing.level === 'ok' ? 1 : 2
  context.fillStyle = isBlock ? colours[thing.level] : colours.surface
  context.strokeStyle = thing.level === 'ok' ? colours['line-strong'] : colours[thing.level]
  context.beginPath()
  context.roundRect(x, y, width, height, 4)
  context.fill()
  context.stroke()
  if (isFocused) {
    context.lineWidth = 2
    context.strokeStyle = colours.focus
    context.strokeRect(x - 4, y - 4, width + 8, height + 8)
  }
  if (isBlock) return
  const middle = y + height / 2 + 1
  context.textBaseline = 'middle'
  context.fillStyle = colours[thing.level === 'ok' ? 'text' : thing.level]
  context.font = `600 12px ${family}`
  if (thing.kind === 'node') return drawRole(context, thing.role, x + width / 2, y + height / 2)
  const sign = SIGNS[thing.level]
  context.fillText(sign, x + 8, middle)
  if (camera.zoom < NAMES_FROM && thing.kind !== 'shard') return
  context.fillStyle = colours.text
  context.font = `12px ${family}`
  const start = x + (sign === '' ? 8 : 20)
  context.fillText(shortened(context, labelOf(thing), x + width - 6 - start), start, middle)
}

/** Roles are shapes: key, dot, ring. */
function drawRole(context: CanvasRenderingContext2D, role: Thing['role'], x: number, y: number): void {
  context.strokeStyle = context.fillStyle
  context.lineWidth = 1.5
  switch (role) {
    case 'leader':
      context.translate(x - 8, y - 8)
      context.stroke(new Path2D(KEY))
      context.translate(8 - x, 8 - y)
      return
    case 'follower':
    case 'learner':
      context.beginPath()
      context.arc(x, y, role === 'follower' ? 3.5 : 4.75, 0, 2 * Math.PI)
      if (role === 'follower') return context.fill()
      context.setLineDash([2.4, 2.57])
      context.stroke()
      return context.setLineDash([])
    default:
      context.textAlign = 'center'
      context.fillText('?', x, y + 1)
      context.textAlign = 'start'
  }
}

/** The id of what registers is a name; of the others it is an address, and the kind tells more. */
function labelOf({ kind, id, component }: Thing): string {
  if (component === undefined || component.registered !== null) return id
  return `${copy.kinds[kind]} ${id.replace(/^.*(?=:\d+$)/, '')}`
}

function shortened(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text
  let length = text.length - 1
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length--
  return `${text.slice(0, length)}…`
}
