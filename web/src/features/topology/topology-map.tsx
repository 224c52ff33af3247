'use client'
/**
 * The map: a canvas, and a tree with the same things that holds the focus. Arrow keys walk the tree, and the map pans to
 * what they reach.
 */
import { type KeyboardEvent, type PointerEvent, useEffect, useId, useMemo, useRef, useState } from 'react'
import { useUrlParam } from '../../lib/url.ts'
import { Chip } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Combobox } from '../../ui/combobox.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { useColourScheme, useMedia } from '../../ui/media.ts'
import { Select } from '../../ui/select.tsx'
import * as copy from './copy.ts'
import { type Camera, draw, flow } from './draw.ts'
import { type Layout, layoutOf, type Traffic } from './layout.ts'
import { type Branch, type Model, treeOf } from './model.ts'

type MapProps = {
  readonly model: Model
  readonly focus: string
  readonly onFocus: (key: string) => void
  /** Focuses it, and shows the inspector. */
  readonly onOpen: (key: string) => void
}

/** `fit`: a small cluster is drawn larger, up to this. */
const ZOOM = { min: 0.08, fit: 1.5, max: 3, step: 1.25 } as const
const HEIGHT = { min: 240, max: 620 } as const
const START: Camera = { x: 0, y: 0, zoom: 1 }
const TRAFFIC = [
  { value: 'all', label: copy.map.all },
  { value: 'reads', label: copy.map.reads },
  { value: 'writes', label: copy.map.writes },
] as const

export function TopologyMap({ model, focus, onFocus, onOpen }: MapProps) {
  const [collapseText, setCollapse] = useUrlParam('collapse')
  const [traffic, setTraffic] = useState<Traffic>('all')
  const collapsed = useMemo(() => new Set(collapseText.split(',').filter(Boolean)), [collapseText])
  const layout = useMemo(() => layoutOf(model, collapsed), [model, collapsed])
  const named = model.zones.filter((zone) => zone !== '')
  const toggle = (zone: string) => {
    const next = new Set(collapsed)
    if (!next.delete(zone)) next.add(zone)
    setCollapse([...next].join(','), { push: true })
  }
  const options = useMemo(() => findable(model), [model])
  const find = (key: string) => {
    const thing = model.things.get(key)
    if (!thing) return
    if (collapsed.has(thing.zone)) toggle(thing.zone)
    onOpen(key)
  }
  return (
    <div className="flex min-w-0 flex-col gap-2 p-4">
      <div className="flex flex-wrap items-center gap-2">
        <div className="w-60 max-w-full">
          <Combobox label={copy.map.find} placeholder={copy.map.find} options={options} value="" onChange={find} />
        </div>
        {named.length > 1 && (
          // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
          <div role="group" aria-label={copy.map.zones} className="flex flex-wrap items-center gap-1">
            <span className="text-small text-text-2">{copy.map.zones}</span>
            {named.map((zone) => (
              <Chip key={zone} pressed={collapsed.has(zone)} onClick={() => toggle(zone)}>
                {zone}
              </Chip>
            ))}
          </div>
        )}
        <Select
          aria-label={copy.map.traffic}
          value={traffic}
          options={TRAFFIC}
          onChange={({ target }) => setTraffic(target.value as Traffic)}
        />
      </div>
      <Picture {...{ model, layout, traffic, focus, onFocus, onOpen }} />
      <p className="text-small text-text-3">{copy.map.legend}</p>
    </div>
  )
}

/** Everything on the map, the nodes by their shards. */
function findable({ things }: Model) {
  return [...things.values()].flatMap(({ key, kind, id, shard, message }) =>
    kind === 'zone'
      ? []
      : [{ value: key, label: `${copy.kinds[kind]} ${kind === 'node' ? `${shard}/${id}` : id}`, hint: message }],
  )
}

type PictureProps = MapProps & { readonly layout: Layout; readonly traffic: Traffic }

function Picture({ model, layout, traffic, focus, onFocus, onOpen }: PictureProps) {
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const dots = useRef<HTMLCanvasElement>(null)
  const mayMove = useMedia('(prefers-reduced-motion: no-preference)')
  const [width, setWidth] = useState(0)
  const [camera, setCamera] = useState(START)
  const scheme = useColourScheme()
  // The whole width is shown at first, larger than drawn only while the height fits as well.
  const fitted =
    width === 0 ? 1 : Math.min(ZOOM.fit, width / layout.width, Math.max(1, HEIGHT.max / Math.max(1, layout.height)))
  const height = Math.round(Math.min(HEIGHT.max, Math.max(HEIGHT.min, layout.height * fitted)))
  useEffect(() => {
    const element = box.current
    if (!element) return
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    if (width > 0) setCamera({ ...START, zoom: fitted })
  }, [width, layout.width])
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      if (canvas.current && width > 0) draw(canvas.current, { layout, camera, width, height, focus, traffic })
    })
    return () => cancelAnimationFrame(frame)
  }, [layout, camera, width, height, focus, traffic, scheme])

  const shown = useMemo(() => ({ layout, camera, width, height, traffic }), [layout, camera, width, height, traffic])
  const latest = useRef(shown)
  useEffect(() => {
    latest.current = shown
  })
  const isShown = width > 0
  // Again with each scheme, whose colours it reads.
  useEffect(() => {
    if (!dots.current || !isShown || !mayMove) return undefined
    return flow(dots.current, () => latest.current)
  }, [isShown, scheme, mayMove])

  const place = layout.boxes.get(focus)
  useEffect(() => {
    if (place) setCamera((now) => panTo(now, place, width, height))
  }, [place, width, height])

  const zoomBy = (factor: number, at = { x: width / 2, y: height / 2 }) => {
    setCamera((now) => {
      const zoom = Math.min(ZOOM.max, Math.max(ZOOM.min, now.zoom * factor))
      return { zoom, x: now.x + at.x / now.zoom - at.x / zoom, y: now.y + at.y / now.zoom - at.y / zoom }
    })
  }
  useWheel(canvas, zoomBy)
  const drag = useDrag((dx, dy) => setCamera((now) => ({ ...now, x: now.x - dx / now.zoom, y: now.y - dy / now.zoom })))
  const pick = (event: PointerEvent<HTMLCanvasElement>) => {
    const { left, top } = event.currentTarget.getBoundingClientRect()
    const x = (event.clientX - left) / camera.zoom + camera.x
    const y = (event.clientY - top) / camera.zoom + camera.y
    const found = [...layout.boxes.values()].find(
      (each) => x >= each.x && x <= each.x + each.width && y >= each.y && y <= each.y + each.height,
    )
    if (found) onOpen(found.thing.key)
  }
  const fit = () =>
    setCamera({ ...START, zoom: Math.max(ZOOM.min, Math.min(ZOOM.fit, width / layout.width, height / layout.height)) })
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === '+') zoomBy(ZOOM.step)
    else if (event.key === '-') zoomBy(1 / ZOOM.step)
    else if (event.key === '0') fit()
    else return
    event.preventDefault()
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
    <div role="group" aria-label={copy.page.map} className="relative min-w-0" onKeyDown={onKeyDown}>
      <div className="flex flex-wrap justify-end gap-1 pb-2">
        <IconButton label={copy.map.zoomIn} icon="plus" kind="default" onClick={() => zoomBy(ZOOM.step)} />
        <IconButton label={copy.map.zoomOut} icon="minus" kind="default" onClick={() => zoomBy(1 / ZOOM.step)} />
        <Button onClick={fit}>{copy.map.fit}</Button>
        <Button onClick={() => setCamera((now) => ({ ...now, zoom: 1 }))}>{copy.map.full}</Button>
      </div>
      <div
        ref={box}
        className="relative overflow-clip rounded-control border border-line bg-sunken has-[[role=tree]:focus-visible]:outline-2 has-[[role=tree]:focus-visible]:outline-focus"
      >
        {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas takes no focus; the tree beside it does. */}
        <canvas
          ref={canvas}
          aria-hidden="true"
          data-map=""
          style={{ width: '100%', height }}
          className="block cursor-grab touch-pan-y font-sans active:cursor-grabbing"
          onPointerDown={drag.start}
          onPointerMove={drag.move}
          onPointerUp={(event) => {
            if (!drag.end()) pick(event)
          }}
          onPointerCancel={drag.end}
        />
        {mayMove && (
          // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas takes no focus.
          <canvas
            ref={dots}
            aria-hidden="true"
            data-flow=""
            style={{ width: '100%', height }}
            className="pointer-events-none absolute inset-0"
          />
        )}
        <Tree {...{ model, focus, onFocus, onOpen }} />
      </div>
    </div>
  )
}

/** Moves just enough that the box is visible. */
function panTo(
  camera: Camera,
  box: { x: number; y: number; width: number; height: number },
  width: number,
  height: number,
): Camera {
  if (width === 0) return camera
  const margin = 16
  const along = (start: number, size: number, from: number, length: number) => {
    const visible = length / camera.zoom
    if (start - margin < from) return start - margin
    return start + size + margin > from + visible ? start + size + margin - visible : from
  }
  return { ...camera, x: along(box.x, box.width, camera.x, width), y: along(box.y, box.height, camera.y, height) }
}

type Flat = {
  readonly branch: Branch
  readonly level: number
  readonly parent: string
  readonly at: number
  readonly of: number
}

/** The things of the map for the keyboard and for screen readers; not visible. */
function Tree({ model, focus, onFocus, onOpen }: MapProps) {
  const id = useId()
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(model.zones.map((zone) => `zone ${zone}`)))
  const branches = useMemo(() => treeOf(model), [model])
  const flat = useMemo(() => flatten(branches, open), [branches, open])
  // What is focused elsewhere, by a click or a search, is in the tree as well.
  useEffect(() => {
    const above = pathTo(branches, focus)
    setOpen((now) => (above.every((key) => now.has(key)) ? now : new Set([...now, ...above])))
  }, [branches, focus])
  const at = Math.max(
    0,
    flat.findIndex(({ branch }) => branch.thing.key === focus),
  )
  const active = flat[at]
  const setOpened = (key: string, isOpen: boolean) => {
    const next = new Set(open)
    if (isOpen) next.add(key)
    else next.delete(key)
    setOpen(next)
  }
  const go = (index: number) => {
    const key = flat[Math.min(Math.max(index, 0), flat.length - 1)]?.branch.thing.key
    if (key !== undefined) onFocus(key)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (!active) return
    const { thing, children } = active.branch
    const act: { readonly [key: string]: () => void } = {
      ArrowDown: () => go(focus === '' ? 0 : at + 1),
      ArrowUp: () => go(at - 1),
      Home: () => go(0),
      End: () => go(flat.length - 1),
      ArrowRight: () => (children.length > 0 && !open.has(thing.key) ? setOpened(thing.key, true) : go(at + 1)),
      ArrowLeft: () => {
        if (open.has(thing.key) && children.length > 0) setOpened(thing.key, false)
        else if (active.parent !== '') onFocus(active.parent)
      },
      Enter: () => {
        onOpen(thing.key)
        document.querySelector<HTMLElement>('[data-inspector] a, [data-inspector] button')?.focus()
      },
    }
    const does = act[event.key]
    if (!does) return
    event.preventDefault()
    does()
  }
  return (
    <div
      role="tree"
      tabIndex={0}
      aria-label={copy.map.label(model.things.size)}
      aria-activedescendant={active && `${id}-${active.branch.thing.key}`}
      onKeyDown={onKeyDown}
      className="sr-only"
    >
      {flat.map(({ branch: { thing, children }, level, at: place, of }) => (
        <div
          key={thing.key}
          id={`${id}-${thing.key}`}
          role="treeitem"
          tabIndex={-1}
          aria-level={level}
          aria-posinset={place}
          aria-setsize={of}
          aria-selected={thing.key === focus}
          {...(children.length > 0 && { 'aria-expanded': open.has(thing.key) })}
          data-thing={thing.key}
          data-level={thing.level}
        >
          {`${copy.kinds[thing.kind]} ${thing.id}${thing.message === '' ? '' : `, ${thing.message}`}`}
        </div>
      ))}
    </div>
  )
}

/** The keys above a thing, from the root on. */
function pathTo(branches: readonly Branch[], key: string, above: readonly string[] = []): readonly string[] {
  for (const { thing, children } of branches) {
    if (thing.key === key) return above
    const found = pathTo(children, key, [...above, thing.key])
    if (found.length > 0) return found
  }
  return []
}

function flatten(branches: readonly Branch[], open: ReadonlySet<string>, level = 1, parent = ''): Flat[] {
  return branches.flatMap((branch, index) => [
    { branch, level, parent, at: index + 1, of: branches.length },
    ...(open.has(branch.thing.key) ? flatten(branch.children, open, level + 1, branch.thing.key) : []),
  ])
}

/** Not passive: the page must not scroll while the map zooms, which takes Ctrl as a pinch does. */
function useWheel(
  canvas: { readonly current: HTMLCanvasElement | null },
  zoomBy: (factor: number, at: { x: number; y: number }) => void,
): void {
  const latest = useRef(zoomBy)
  useEffect(() => {
    latest.current = zoomBy
  })
  useEffect(() => {
    const element = canvas.current
    if (!element) return
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      const { left, top } = element.getBoundingClientRect()
      latest.current(Math.exp(-event.deltaY / 200), { x: event.clientX - left, y: event.clientY - top })
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => element.removeEventListener('wheel', onWheel)
  }, [canvas])
}

const DRAG_FROM_PX = 4

/** @returns `end` tells whether the pointer moved: a click selects */
function useDrag(onMove: (dx: number, dy: number) => void) {
  const last = useRef<{ x: number; y: number; moved: number }>(undefined)
  return {
    start(event: PointerEvent<HTMLElement>) {
      last.current = { x: event.clientX, y: event.clientY, moved: 0 }
      event.currentTarget.setPointerCapture(event.pointerId)
    },
    move(event: PointerEvent) {
      const from = last.current
      if (!from) return
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y]
      last.current = { x: event.clientX, y: event.clientY, moved: from.moved + Math.abs(dx) + Math.abs(dy) }
      if (last.current.moved >= DRAG_FROM_PX) onMove(dx, dy)
    },
    end(): boolean {
      const wasDrag = (last.current?.moved ?? 0) >= DRAG_FROM_PX
      last.current = undefined
      return wasDrag
    },
  }
}
