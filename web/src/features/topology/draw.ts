/** Draws the map on its canvas. What is drawn depends on the zoom: names, then shapes, then one block for a shard. */
import type { Level } from '@vacancy/shared/contract'
import { readColours } from '../../ui/colours.ts'
import * as copy from './copy.ts'
import { type Box, type Layout, type Line, lineWidth, ZONE_LEFT } from './layout.ts'

export type Traffic = 'all' | 'reads' | 'writes'
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
  ...(['surface', 'line', 'line-strong', 'text', 'text-2', 'focus'] as const),
] as const
type Colours = { readonly [token in (typeof TOKENS)[number]]: string }

/** A sign beside the colour. */
const SIGNS: { readonly [level in Level]: string } = { ok: '', info: 'i', warn: '!', crit: '×', unk: '?' }
const ROLE_SIGNS = {
  leader: 'L',
  follower: 'F',
  learner: 'N',
  candidate: 'C',
  standalone: 'S',
  unknown: '?',
} as const

export function draw(canvas: HTMLCanvasElement, picture: Picture): void {
  const { width, height, camera, layout } = picture
  const ratio = devicePixelRatio
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(height * ratio)
  const context = canvas.getContext('2d')
  if (!context) return
  const values = readColours(canvas.parentElement ?? canvas, TOKENS)
  const colours = Object.fromEntries(TOKENS.map((token, at) => [token, values[at]])) as Colours
  context.setTransform(
    ratio * camera.zoom,
    0,
    0,
    ratio * camera.zoom,
    -camera.x * camera.zoom * ratio,
    -camera.y * camera.zoom * ratio,
  )
  const { font } = getComputedStyle(canvas)
  const family = font.replace(/^.*?\d+(?:\.\d+)?px(?:\/\S+)?\s*/, '')
  const top = camera.y - 40
  const bottom = camera.y + height / camera.zoom + 40
  drawZones(context, layout, colours, family, camera.zoom)
  for (const line of layout.lines) {
    if (Math.max(line.from.y, line.to.y) < top || Math.min(line.from.y, line.to.y) > bottom) continue
    drawLine(context, line, colours, picture.traffic)
  }
  for (const box of layout.boxes.values()) {
    if (box.y < top || box.y > bottom) continue
    drawBox(context, box, colours, family, picture)
  }
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
  const { from, to, state, level, reads, writes } = line
  const perSecond = traffic === 'reads' ? reads : traffic === 'writes' ? writes : reads + writes
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2]
  const [x2, y2] = [to.x, to.y + to.height / 2]
  const bend = (x2 - x1) / 2
  context.beginPath()
  context.moveTo(x1, y1)
  context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2)
  context.lineWidth = lineWidth(perSecond)
  context.strokeStyle = level === 'ok' ? colours['line-strong'] : colours[level]
  context.setLineDash(state === 'live' ? [] : state === 'down' || state === 'idle' ? [7, 5] : [2, 4])
  context.stroke()
  context.setLineDash([])
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
  const sign = thing.kind === 'node' ? ROLE_SIGNS[thing.role ?? 'unknown'] : SIGNS[thing.level]
  if (thing.kind === 'node') {
    context.textAlign = 'center'
    context.fillText(sign, x + width / 2, middle)
    context.textAlign = 'start'
    return
  }
  context.fillText(sign, x + 8, middle)
  if (camera.zoom < NAMES_FROM && thing.kind !== 'shard') return
  context.fillStyle = colours.text
  context.font = `12px ${family}`
  const start = x + (sign === '' ? 8 : 20)
  context.fillText(shortened(context, thing.id, x + width - 6 - start), start, middle)
}

function shortened(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text
  let length = text.length - 1
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length--
  return `${text.slice(0, length)}…`
}
