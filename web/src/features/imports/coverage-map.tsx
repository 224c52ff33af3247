'use client'
/**
 * Packages by segment and day, as a map or a table (docs/design/control-plane.md#imports).
 */
import type { CoverageBody } from '@vacancy/shared/contract'
import { type PointerEvent, useEffect, useId, useMemo, useRef, useState } from 'react'
import { count, day } from '../../lib/format.ts'
import { readColours } from '../../ui/colours.ts'
import { type Column, Table } from '../../ui/table.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import * as copy from './result-copy.ts'

const STEPS = ['avail-1', 'avail-2', 'avail-3', 'avail-4', 'avail-5', 'avail-6']
const ROW_PX = 16
const DAY_MS = 86_400_000

type Segment = CoverageBody['segments'][number]
type Row = { readonly name: string; readonly properties: number; readonly packages: number; readonly empty: number }

type CoverageProps = {
  readonly title: string
  readonly from: string
  readonly segments: readonly Pick<Segment, 'name' | 'packages'>[]
  readonly properties: (name: string) => number
  /** Values are differences, positive and negative. */
  readonly isDifference?: boolean
}

export function CoverageMap(props: CoverageProps) {
  const { title, segments, properties } = props
  const [view, setView] = useState('map')
  const rows = useMemo(
    () =>
      segments.map(
        ({ name, packages }): Row => ({
          name,
          properties: properties(name),
          packages: packages.reduce((sum, each) => sum + each, 0),
          empty: packages.filter((each) => each === 0).length,
        }),
      ),
    [segments, properties],
  )
  return (
    <ViewTabs
      label={copy.coverage.views(title)}
      value={view}
      onChange={setView}
      tabs={[
        { id: 'map', label: copy.coverage.map },
        { id: 'table', label: copy.coverage.table },
      ]}
    >
      {view === 'map' ? (
        <CoverageCanvas {...props} />
      ) : props.isDifference ? (
        <DifferenceTable {...props} />
      ) : (
        <Table label={title} rows={rows} columns={COLUMNS} rowKey={keyOf} />
      )}
    </ViewTabs>
  )
}

/** Every day that differs, by segment: the same as the map in numbers. */
function DifferenceTable({ title, from, segments }: CoverageProps) {
  const rows = segments.flatMap(({ name, packages }) =>
    packages.flatMap((by, at) => (by === 0 ? [] : [{ name, date: dateOf(from, at), by }])),
  )
  return <Table label={title} rows={rows} columns={DIFFERENCE_COLUMNS} rowKey={({ name, date }) => `${name} ${date}`} />
}

type DayRow = { readonly name: string; readonly date: string; readonly by: number }

const DIFFERENCE_COLUMNS: readonly Column<DayRow>[] = [
  {
    id: 'segment',
    header: copy.coverage.segment,
    rowHeader: true,
    cell: ({ name }) => name,
    compare: (a, b) => (a.name < b.name ? -1 : 1),
  },
  {
    id: 'day',
    header: copy.coverage.day,
    cell: ({ date }) => day(date, true),
    compare: (a, b) => (a.date < b.date ? -1 : 1),
  },
  {
    id: 'by',
    header: copy.coverage.difference,
    end: true,
    cell: ({ by }) => signed(by),
    compare: (a, b) => a.by - b.by,
  },
]

const keyOf = (row: Row) => row.name
const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'segment',
    header: copy.coverage.segment,
    rowHeader: true,
    cell: ({ name }) => name,
    compare: (a, b) => (a.name < b.name ? -1 : 1),
  },
  {
    id: 'properties',
    header: copy.coverage.properties,
    end: true,
    rank: 2,
    cell: (row) => count(row.properties),
    compare: (a, b) => a.properties - b.properties,
  },
  {
    id: 'packages',
    header: copy.coverage.packages,
    end: true,
    cell: (row) => count(row.packages),
    compare: (a, b) => a.packages - b.packages,
  },
  {
    id: 'empty',
    header: copy.coverage.daysWithout,
    end: true,
    cell: (row) => count(row.empty),
    compare: (a, b) => a.empty - b.empty,
  },
]

function CoverageCanvas({ title, from, segments, isDifference = false }: CoverageProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const id = useId()
  const [cell, setCell] = useState('')
  const days = segments[0]?.packages.length ?? 0
  const most = segments.reduce(
    (top, { packages }) => packages.reduce((max, each) => Math.max(max, Math.abs(each)), top),
    0,
  )

  useEffect(() => {
    const target = canvas.current
    if (!target) return
    const draw = () => drawMap(target, segments, days, most, isDifference)
    draw()
    const resized = new ResizeObserver(draw)
    resized.observe(target)
    // Draws again when the theme changes.
    const themed = new MutationObserver(draw)
    themed.observe(document.documentElement, { attributes: true })
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', draw)
    return () => {
      resized.disconnect()
      themed.disconnect()
      scheme.removeEventListener('change', draw)
    }
  }, [segments, days, most, isDifference])

  const onPointerMove = (event: PointerEvent<HTMLCanvasElement>) => {
    const box = event.currentTarget.getBoundingClientRect()
    const at = Math.floor(((event.clientX - box.left) / box.width) * days)
    const segment = segments[Math.floor((event.clientY - box.top) / ROW_PX)]
    const packages = segment?.packages[at]
    if (!segment || packages === undefined) return setCell('')
    const date = day(dateOf(from, at))
    setCell(
      isDifference
        ? copy.coverage.differenceOf(segment.name, date, signed(packages))
        : copy.coverage.cell(segment.name, date, packages),
    )
  }
  if (days === 0) return <p className="text-text-2">{copy.coverage.none}</p>
  return (
    <figure aria-labelledby={id} className="flex flex-col gap-2" data-coverage={segments.length}>
      <div className="grid max-h-96 grid-cols-[minmax(0,10rem)_minmax(0,1fr)] overflow-y-auto">
        <div aria-hidden="true" className="text-small">
          {segments.map(({ name }) => (
            <div key={name} className="truncate pe-2 text-text-2" style={{ height: ROW_PX, lineHeight: `${ROW_PX}px` }}>
              {name}
            </div>
          ))}
        </div>
        <div aria-hidden="true">
          <canvas
            ref={canvas}
            className="w-full"
            style={{ height: segments.length * ROW_PX }}
            onPointerMove={onPointerMove}
            onPointerLeave={() => setCell('')}
          />
        </div>
      </div>
      <figcaption id={id} className="flex flex-wrap justify-between gap-x-4 text-small text-text-2">
        <span className="sr-only">{copy.coverage.label(title)}</span>
        <span>
          {day(from, true)} – {day(dateOf(from, days - 1), true)}
        </span>
        {isDifference && <Scale most={most} />}
        <span className="min-h-4 tabular-nums">{cell || (isDifference ? '' : copy.coverage.max(most))}</span>
      </figcaption>
    </figure>
  )
}

/** The colours of losses and gains with their numbers. */
function Scale({ most }: { readonly most: number }) {
  return (
    <span className="inline-flex items-center gap-2 tabular-nums" data-scale={most}>
      {signed(-most)}
      <span aria-hidden="true" className="inline-flex overflow-hidden rounded-control">
        {SCALE.map((step) => (
          <span
            key={step}
            className="size-4 text-center text-text leading-4 forced-color-adjust-none"
            style={{
              backgroundColor: colourOf(step, LOSS_STEPS.map(variable), GAIN_STEPS.map(variable), variable('sunken')),
            }}
          >
            {step === 0 ? 0 : ''}
          </span>
        ))}
      </span>
      {copy.coverage.packagesOf(signed(most))}
    </span>
  )
}

const variable = (token: string) => `var(--color-${token})`
/** From the largest loss to the largest gain. */
const SCALE = [-1, -0.66, -0.33, 0, 0.33, 0.66, 1]
/** One hue for losses and one for gains, each from small to large. */
const LOSS_STEPS = ['loss-1', 'loss-2', 'loss-3']
const GAIN_STEPS = ['avail-2', 'avail-4', 'avail-6']

/** @param share of the largest difference, from -1 to 1 */
function colourOf(share: number, losses: readonly string[], gains: readonly string[], none: string): string {
  if (share === 0) return none
  const steps = share < 0 ? losses : gains
  return steps[Math.min(steps.length - 1, Math.floor(Math.abs(share) * steps.length))] ?? none
}

function signed(by: number): string {
  return by > 0 ? `+${count(by)}` : count(by)
}

function dateOf(from: string, days: number): string {
  return new Date(Date.parse(from) + days * DAY_MS).toISOString().slice(0, 10)
}

function drawMap(
  canvas: HTMLCanvasElement,
  segments: readonly Pick<Segment, 'packages'>[],
  days: number,
  most: number,
  isDifference: boolean,
): void {
  const context = canvas.getContext('2d')
  const { clientWidth: width } = canvas
  if (!context || width === 0) return
  const scale = devicePixelRatio
  canvas.width = width * scale
  canvas.height = segments.length * ROW_PX * scale
  context.scale(scale, scale)
  const tokens = ['sunken', 'text', 'surface', ...STEPS, ...LOSS_STEPS, ...GAIN_STEPS]
  const [none = '', ink = '', paper = '', ...rest] = readColours(canvas.parentElement ?? canvas, tokens)
  const steps = rest.slice(0, STEPS.length)
  const losses = rest.slice(STEPS.length, STEPS.length + LOSS_STEPS.length)
  const gains = rest.slice(STEPS.length + LOSS_STEPS.length)
  const cell = width / days
  context.font = '10px system-ui, sans-serif'
  context.textAlign = 'center'
  context.textBaseline = 'middle'
  for (const [row, { packages }] of segments.entries()) {
    for (const [at, value] of packages.entries()) {
      const share = value / Math.max(1, most)
      const step = Math.min(STEPS.length - 1, Math.floor(Math.abs(share) * STEPS.length))
      const ground = isDifference ? colourOf(share, losses, gains, none) : value === 0 ? none : (steps[step] ?? none)
      context.fillStyle = ground
      context.fillRect(at * cell, row * ROW_PX, Math.max(1, cell - (cell > 4 ? 1 : 0)), ROW_PX - 1)
      if (!isDifference || value === 0) continue
      // Sign and number where there is room, else the sign alone, so that colour is never alone.
      const text = [signed(value), value > 0 ? '+' : '−'].find((each) => context.measureText(each).width < cell - 3)
      if (text === undefined) continue
      context.fillStyle = readable(ground, ink, paper)
      context.fillText(text, (at + 0.5) * cell, (row + 0.5) * ROW_PX)
    }
  }
}

/** Whichever of two colours has more contrast on another. */
function readable(on: string, ...texts: readonly [string, string]): string {
  const [ground, a, b] = [on, ...texts].map(luminance) as [number, number, number]
  const contrast = (text: number) => (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05)
  return contrast(a) >= contrast(b) ? texts[0] : texts[1]
}

/** WCAG 2.2, of `rgb(r, g, b)`. */
function luminance(colour: string): number {
  const [r = 0, g = 0, b = 0] = (colour.match(/\d+/g) ?? []).map((channel) => {
    const share = Number(channel) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}
