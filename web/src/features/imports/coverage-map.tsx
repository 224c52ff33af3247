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
      ) : (
        <Table label={title} rows={rows} columns={COLUMNS} rowKey={keyOf} />
      )}
    </ViewTabs>
  )
}

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
    setCell(segment && packages !== undefined ? copy.coverage.cell(segment.name, day(dateOf(from, at)), packages) : '')
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
        <span className="min-h-4 tabular-nums">{cell || copy.coverage.max(most)}</span>
      </figcaption>
    </figure>
  )
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
  const [none = '', less = '', ...steps] = readColours(canvas.parentElement ?? canvas, ['sunken', 'warn', ...STEPS])
  const cell = width / days
  for (const [row, { packages }] of segments.entries()) {
    for (const [at, value] of packages.entries()) {
      const step = Math.min(STEPS.length - 1, Math.floor((Math.abs(value) / Math.max(1, most)) * STEPS.length))
      context.fillStyle = value === 0 ? none : isDifference && value < 0 ? less : (steps[step] ?? none)
      context.fillRect(at * cell, row * ROW_PX, Math.max(1, cell - (cell > 4 ? 1 : 0)), ROW_PX - 1)
    }
  }
}
