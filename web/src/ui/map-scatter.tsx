'use client'
/** Properties on a plain map without tiles, so that nothing is fetched. One key shows them as a table. */
import { type KeyboardEvent, type PointerEvent, type RefObject, useEffect, useMemo, useRef, useState } from 'react'
import { Button } from './button.tsx'
import { outlinesOf } from './hull.ts'
import { IconButton } from './icon-button.tsx'
import * as copy from './map-copy.ts'
import { drawMap, POINTS_MAX } from './map-drawing.ts'
import {
  boxInView,
  isInView,
  type MapBox,
  moved,
  nearestPoint,
  offScreen,
  onScreen,
  type ViewBox,
  wholeView,
  ZOOM_AROUND,
  zoomed,
} from './map-view-box.ts'
import { useColourScheme } from './media.ts'
import { type Arrow, neighbourOf, type Projection, project, type Size } from './projection.ts'
import { Table } from './table.tsx'

type MapPlace = {
  readonly id: string
  readonly area: string
  readonly latitude: number
  readonly longitude: number
}

type MapProps = {
  readonly places: readonly MapPlace[]
  /** Number of properties without a known position. */
  readonly absent?: number
  /** Colour token of a property; the same function until colours change. */
  readonly colourOf: (id: string) => string
  /** Text of the selected or hovered property, after its position. */
  readonly describe?: (id: string) => string
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
  /** Shared with a table beside the map. */
  readonly hovered?: string | undefined
  readonly onHover?: (id: string | undefined) => void
  /** On Enter. */
  readonly onOpen?: (id: string) => void
  /** Searches in what is in view, once the map was zoomed in or out. */
  readonly onBox?: ((box: MapBox) => void) | undefined
}

const REACH = 16
const ZOOM_STEP = 1.6
const MOVE_PIXELS = 60
/** A shorter drag is a click. */
const DRAG_PIXELS = 4

export function MapScatter(props: MapProps) {
  const { places, absent = 0, colourOf, describe, selected, onSelect, hovered, onHover, onOpen, onBox } = props
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const width = useWidth(box)
  const [isList, setList] = useState(false)
  const [given, setView] = useState<ViewBox>()
  const [ownHover, setOwnHover] = useState<string>()
  const drag = useRef<{ readonly x: number; readonly y: number; readonly view: ViewBox; isMoved: boolean }>(undefined)
  const height = Math.min(480, Math.max(260, width * 0.6))
  const size = useMemo(() => ({ width, height }), [width, height])
  const projection = useMemo(() => project(places, size), [places, size])
  const view = given ?? wholeView(size)
  const scheme = useColourScheme()
  const hover = onHover ? hovered : ownHover
  const points = useMemo(
    () => projection.points.map((point) => onScreen(point, view, size)),
    [projection, view.zoom, view.x, view.y, size],
  )
  const outlines = useOutlines(places, projection, view, size)
  const inView = useMemo(() => points.filter((point) => isInView(point, size)), [points, size])
  const isBinned = inView.length > POINTS_MAX

  const zoomAt = (factor: number, at = { x: width / 2, y: height / 2 }) =>
    setView((before) => zoomed(before ?? wholeView(size), factor, at, size, onBox ? ZOOM_AROUND : 1))
  useWheelZoom(canvas, zoomAt)
  useEffect(() => {
    if (!canvas.current || width === 0) return
    const place = (x: number, y: number) => {
      const at = offScreen({ x, y }, view, size)
      return projection.place(at.x, at.y)
    }
    const metresPerPixel = projection.metresPerPixel / view.zoom
    drawMap(canvas.current, {
      points,
      inView,
      outlines,
      place,
      metresPerPixel,
      size,
      selected,
      hovered: hover,
      colourOf,
    })
  }, [points, inView, outlines, projection, size, selected, hover, colourOf, scheme])

  /** Keys zoom at the selection. */
  const isSelected = ({ id }: { readonly id: string }) => id === selected
  const hoverOver = (id: string | undefined) => (onHover ? onHover(id) : setOwnHover(id))
  const positionOf = ({ clientX, clientY, currentTarget }: PointerEvent<HTMLCanvasElement>) => {
    const { left, top } = currentTarget.getBoundingClientRect()
    return { x: clientX - left, y: clientY - top }
  }
  const onPointerMove = (event: PointerEvent<HTMLCanvasElement>) => {
    const at = positionOf(event)
    const from = drag.current
    if (!from) {
      const id = isBinned ? undefined : nearestPoint(inView, at, REACH)?.id
      if (id !== hover) hoverOver(id)
      return
    }
    if (Math.hypot(at.x - from.x, at.y - from.y) >= DRAG_PIXELS) from.isMoved = true
    if (from.isMoved) setView(moved(from.view, from.x - at.x, from.y - at.y, size))
  }
  const onPointerUp = (event: PointerEvent<HTMLCanvasElement>) => {
    const wasDrag = drag.current?.isMoved
    drag.current = undefined
    if (wasDrag) return
    const at = positionOf(event)
    if (isBinned) return zoomAt(ZOOM_STEP * ZOOM_STEP, at)
    const id = nearestPoint(inView, at, REACH)?.id
    if (id !== undefined) onSelect(id)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const arrow = event.key.startsWith('Arrow') ? (event.key as Arrow) : undefined
    if (arrow && event.shiftKey) setView(moved(view, ...MOVES[arrow], size))
    else if (arrow) {
      const next = neighbourOf(points, selected ?? '', arrow)
      const target = points.find(({ id }) => id === next)
      if (next === undefined || !target) return
      onSelect(next)
      // The selected property never leaves the view.
      if (!isInView(target, size)) setView(moved(view, target.x - width / 2, target.y - height / 2, size))
    } else if (event.key === 'Enter' && selected !== undefined && onOpen) onOpen(selected)
    else if (event.key === '+' || event.key === '=') zoomAt(ZOOM_STEP, inView.find(isSelected))
    else if (event.key === '-') zoomAt(1 / ZOOM_STEP, inView.find(isSelected))
    else if (event.key === '0') setView(undefined)
    else if (event.key.toLowerCase() === 'l') setList(true)
    else return
    event.preventDefault()
  }
  const shown = places.find(({ id }) => id === (hover ?? selected))
  if (places.length === 0) return <p className="text-text-2">{copy.map.noPositions}</p>
  const listed = new Set(inView.map(({ id }) => id))
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <Toolbar
        isList={isList}
        onList={setList}
        onZoom={zoomAt}
        onAll={() => setView(undefined)}
        onBox={onBox && view.zoom !== 1 ? () => onBox(boxInView(projection, view, size)) : undefined}
        note={
          (isBinned ? copy.map.binned(inView.length) : copy.map.inView(inView.length, places.length)) +
          (absent > 0 ? ` · ${copy.map.withoutPosition(absent)}` : '')
        }
      />
      {isList ? (
        <PlaceTable places={places.filter(({ id }) => listed.has(id))} selected={selected} onSelect={onSelect} />
      ) : (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
        <div
          ref={box}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move between properties.
          tabIndex={0}
          role="group"
          aria-label={copy.map.label(places.length)}
          data-in-view={inView.length}
          data-zoom={view.zoom.toFixed(2)}
          onKeyDown={onKeyDown}
          className="min-w-0 rounded-control border border-line bg-sunken"
        >
          {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas takes no focus; the box around it does. */}
          <canvas
            ref={canvas}
            aria-hidden="true"
            className="touch-pan-y"
            style={{ width, height, cursor: hover === undefined ? 'grab' : 'pointer' }}
            onPointerDown={(event) => {
              if (event.button !== 0) return
              event.currentTarget.setPointerCapture(event.pointerId)
              drag.current = { ...positionOf(event), view, isMoved: false }
            }}
            onPointerMove={onPointerMove}
            onPointerUp={onPointerUp}
            onPointerCancel={() => {
              drag.current = undefined
            }}
            onPointerLeave={() => hoverOver(undefined)}
          />
        </div>
      )}
      <p role="status" className="min-h-5 text-small text-text-2">
        {shown && textOf(shown, describe?.(shown.id) ?? '')}
      </p>
    </div>
  )
}

function textOf({ id, area, latitude, longitude }: MapPlace, more: string): string {
  const parts = [id, area, `${latitude.toFixed(5)}, ${longitude.toFixed(5)}`, more]
  return parts.filter(Boolean).join(' · ')
}

/** The outlines of the areas on the screen. */
function useOutlines(places: MapProps['places'], { points }: Projection, view: ViewBox, size: Size) {
  const outlines = useMemo(() => {
    const areas = new Map(places.map(({ id, area }) => [id, area]))
    return outlinesOf(points, (id) => areas.get(id) ?? '')
  }, [places, points])
  return useMemo(
    () =>
      outlines.map(({ name, corners }) => ({
        name,
        corners: corners.map((corner) => onScreen({ ...corner, id: '' }, view, size)),
      })),
    [outlines, view.zoom, view.x, view.y, size],
  )
}

/** The width of an element that may be taken away and come back. */
function useWidth(box: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0)
  const observed = useRef<ResizeObserver>(undefined)
  useEffect(() => {
    observed.current?.disconnect()
    if (!box.current) return
    observed.current = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    observed.current.observe(box.current)
  })
  useEffect(() => () => observed.current?.disconnect(), [])
  return width
}

type Zoom = (factor: number, at?: { readonly x: number; readonly y: number }) => void

/** React listens for the wheel passively, which cannot keep the page from zooming. */
function useWheelZoom(canvas: RefObject<HTMLCanvasElement | null>, zoom: Zoom): void {
  useEffect(() => {
    const element = canvas.current
    if (!element) return
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      zoom(event.deltaY < 0 ? ZOOM_STEP : 1 / ZOOM_STEP, { x: event.offsetX, y: event.offsetY })
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => element.removeEventListener('wheel', onWheel)
  })
}

type ToolbarProps = {
  readonly isList: boolean
  readonly onList: (isList: boolean) => void
  readonly onZoom: Zoom
  readonly onAll: () => void
  readonly onBox: (() => void) | undefined
  readonly note: string
}

function Toolbar({ isList, onList, onZoom, onAll, onBox, note }: ToolbarProps) {
  return (
    <div className="flex flex-wrap items-center gap-1">
      <IconButton
        label={isList ? copy.map.showMap : copy.map.showList}
        icon={isList ? 'map' : 'table'}
        pressed={isList}
        onClick={() => onList(!isList)}
      />
      {!isList && (
        <>
          <IconButton label={copy.map.zoomIn} icon="plus" onClick={() => onZoom(ZOOM_STEP)} />
          <IconButton label={copy.map.zoomOut} icon="minus" onClick={() => onZoom(1 / ZOOM_STEP)} />
          <IconButton label={copy.map.all} icon="refresh" onClick={onAll} />
        </>
      )}
      {onBox && <Button onClick={onBox}>{copy.map.searchHere}</Button>}
      <span className="text-small text-text-3">
        {note}
        <span className="max-md:hidden pointer-coarse:hidden"> · {copy.map.wheel}</span>
      </span>
    </div>
  )
}

const MOVES: { readonly [arrow in Arrow]: readonly [number, number] } = {
  ArrowLeft: [-MOVE_PIXELS, 0],
  ArrowRight: [MOVE_PIXELS, 0],
  ArrowUp: [0, -MOVE_PIXELS],
  ArrowDown: [0, MOVE_PIXELS],
}

type PlaceTableProps = Pick<MapProps, 'places' | 'selected' | 'onSelect'>

const LISTED_MAX = 500

function PlaceTable({ places, selected, onSelect }: PlaceTableProps) {
  return (
    <Table
      label={copy.map.list}
      rows={places.slice(0, LISTED_MAX)}
      total={places.length}
      rowKey={({ id }) => id}
      onOpen={({ id }) => onSelect(id)}
      focus={selected}
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
  )
}
