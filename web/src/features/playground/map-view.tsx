'use client'
/** Properties on a plain map without tiles, so that nothing is fetched. One key shows them as a table. */
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { price } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { readColours } from '../../ui/colours.ts'
import { useColourScheme } from '../../ui/media.ts'
import { Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import { type Arrow, hexagons, neighbourOf, type Point, type Projection, project, scaleBar } from './projection.ts'
import type { Details } from './result-table.tsx'
import { STEPS, scaleOf, stepOf } from './scale.ts'

/** Above this number points become hexagons with counts. */
const POINTS_MAX = 2_000
const HEXAGON = 14
const RADIUS = 5

type MapProps = {
  readonly ids: readonly string[]
  readonly details: Details
  /** Totals of stays by property. */
  readonly totals: ReadonlyMap<string, number>
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
}

export function MapView({ ids, details, totals, selected, onSelect }: MapProps) {
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const [width, setWidth] = useState(0)
  const [isList, setList] = useState(false)
  const height = Math.min(480, Math.max(260, width * 0.6))
  const places = ids.flatMap((id) => details.get(id) ?? [])
  const projection = project(places, { width, height })
  const scale = scaleOf([...totals.values()])
  const scheme = useColourScheme()

  useEffect(() => {
    const element = box.current
    if (!element) return
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    observer.observe(element)
    return () => observer.disconnect()
  }, [isList])
  useEffect(() => {
    if (canvas.current && width > 0)
      draw(canvas.current, {
        projection,
        width,
        height,
        selected,
        colourOf: (id) => {
          const total = totals.get(id)
          return total === undefined ? 'accent' : `price-${stepOf(scale, total)}`
        },
      })
  }, [projection, width, height, selected, totals, scale, scheme])

  const nearest = (x: number, y: number) => {
    let best: Point | undefined
    for (const point of projection.points) {
      if (!best || Math.hypot(point.x - x, point.y - y) < Math.hypot(best.x - x, best.y - y)) best = point
    }
    return best && Math.hypot(best.x - x, best.y - y) < 24 ? best.id : undefined
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key.startsWith('Arrow')) {
      const next = neighbourOf(projection.points, selected ?? '', event.key as Arrow)
      if (next !== undefined) onSelect(next)
    } else if (event.key.toLowerCase() === 'l') setList(true)
    else return
    event.preventDefault()
  }
  const chosen = selected === undefined ? undefined : details.get(selected)
  if (places.length === 0) return <p className="text-text-2">{copy.map.noPositions}</p>
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <div className="flex flex-wrap items-center gap-2">
        <Button kind="quiet" icon={isList ? 'map' : 'table'} aria-pressed={isList} onClick={() => setList(!isList)}>
          {isList ? copy.map.showMap : copy.map.showList}
        </Button>
        {places.length < ids.length && (
          <span className="text-small text-text-3">{copy.map.withoutPosition(ids.length - places.length)}</span>
        )}
      </div>
      {isList ? (
        <Table
          label={copy.map.list}
          rows={places}
          rowKey={({ id }) => id}
          onOpen={({ id }) => onSelect(id)}
          columns={[
            {
              id: 'id',
              header: copy.map.property,
              rowHeader: true,
              cell: ({ id }) => <span className="font-mono">{id}</span>,
            },
            {
              id: 'area',
              header: copy.map.area,
              cell: ({ area }) => area,
              compare: (a, b) => (a.area < b.area ? -1 : 1),
            },
            {
              id: 'latitude',
              header: copy.map.latitude,
              end: true,
              cell: ({ latitude }) => latitude.toFixed(5),
              compare: (a, b) => a.latitude - b.latitude,
            },
            {
              id: 'longitude',
              header: copy.map.longitude,
              end: true,
              cell: ({ longitude }) => longitude.toFixed(5),
              compare: (a, b) => a.longitude - b.longitude,
            },
          ]}
        />
      ) : (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
        <div
          ref={box}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move between properties.
          tabIndex={0}
          role="group"
          aria-label={copy.map.label(places.length)}
          onKeyDown={onKeyDown}
          className="min-w-0 rounded-control border border-line bg-sunken"
        >
          {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas takes no focus; the box around it does. */}
          <canvas
            ref={canvas}
            aria-hidden="true"
            style={{ width, height }}
            onClick={(event) => {
              const { left, top } = event.currentTarget.getBoundingClientRect()
              const id = nearest(event.clientX - left, event.clientY - top)
              if (id !== undefined) onSelect(id)
            }}
          />
        </div>
      )}
      <p role="status" className="min-h-5 text-small text-text-2">
        {chosen && `${chosen.id}, ${chosen.area}, ${chosen.latitude.toFixed(5)}, ${chosen.longitude.toFixed(5)}`}
        {chosen && totals.get(chosen.id) !== undefined && `, ${copy.map.total(price(totals.get(chosen.id)))}`}
      </p>
    </div>
  )
}

/** Changes with the theme, for drawing the canvas again. */
type Drawing = {
  readonly projection: Projection
  readonly width: number
  readonly height: number
  readonly selected: string | undefined
  /** Colour token of a property. */
  readonly colourOf: (id: string) => string
}

const TOKENS = [
  'line',
  'text',
  'text-3',
  'series-3',
  'focus',
  'accent',
  ...Array.from({ length: STEPS }, (_, step) => `price-${step + 1}`),
]

function draw(canvas: HTMLCanvasElement, { projection, width, height, selected, colourOf }: Drawing): void {
  const ratio = devicePixelRatio
  canvas.width = width * ratio
  canvas.height = height * ratio
  const context = canvas.getContext('2d')
  if (!context) return
  context.scale(ratio, ratio)
  const colours = readColours(canvas, TOKENS)
  const colour = (token: string) => colours[TOKENS.indexOf(token)] ?? ''
  const [line, text] = [colour('line'), colour('text-3')]
  context.font = '11px system-ui, sans-serif'
  context.strokeStyle = line
  context.fillStyle = text
  drawGrid(context, projection, width, height)
  if (projection.points.length > POINTS_MAX) {
    drawHexagons(context, projection.points, colour('series-3'), text)
  } else {
    context.strokeStyle = colour('text')
    for (const { id, x, y } of projection.points) {
      context.fillStyle = colour(colourOf(id))
      context.beginPath()
      context.arc(x, y, RADIUS, 0, 2 * Math.PI)
      context.fill()
      context.stroke()
    }
  }
  const chosen = projection.points.find(({ id }) => id === selected)
  if (chosen) {
    context.strokeStyle = colour('focus')
    context.lineWidth = 3
    context.beginPath()
    context.arc(chosen.x, chosen.y, RADIUS + 4, 0, 2 * Math.PI)
    context.stroke()
    context.lineWidth = 1
  }
  const bar = scaleBar(projection.metresPerPixel, 110)
  context.fillStyle = text
  context.fillRect(12, height - 12, bar.pixels, 2)
  context.fillText(bar.text, 12, height - 18)
}

function drawGrid(context: CanvasRenderingContext2D, { place }: Projection, width: number, height: number): void {
  for (let n = 1; n < 4; n++) {
    const [x, y] = [(width * n) / 4, (height * n) / 4]
    context.beginPath()
    context.moveTo(x, 0)
    context.lineTo(x, height)
    context.moveTo(0, y)
    context.lineTo(width, y)
    context.stroke()
    context.fillText(`${place(x, 0).longitude.toFixed(2)}°`, x + 3, 11)
    context.fillText(`${place(0, y).latitude.toFixed(2)}°`, 3, y - 3)
  }
}

function drawHexagons(context: CanvasRenderingContext2D, points: readonly Point[], fill: string, text: string): void {
  const bins = hexagons(points, HEXAGON)
  const most = Math.max(...bins.map(({ ids }) => ids.length))
  context.textAlign = 'center'
  for (const { x, y, ids } of bins) {
    context.globalAlpha = 0.25 + (0.75 * ids.length) / most
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
