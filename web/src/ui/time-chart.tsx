'use client'
import clsx from 'clsx'
import {
  createContext,
  type KeyboardEvent,
  Suspense,
  useContext,
  useDeferredValue,
  useId,
  useMemo,
  useRef,
  useState,
} from 'react'
import { clock, count, NONE, utc } from '../lib/format.ts'
import type { CopiedAs } from './chart-export.ts'
import * as copy from './data-copy.ts'
import { IconButton } from './icon-button.tsx'
import { late } from './late.tsx'
import { Menu } from './menu.tsx'
import {
  type CanvasProps,
  type ChartControl,
  type ChartMark,
  gapsOf,
  lookOf,
  PLAIN,
  SERIES_MAX,
} from './time-chart-lines.ts'

export type TimeChartProps = {
  readonly title: string
  readonly unit: string
  /** First step and end, RFC 3339. */
  readonly from: string
  readonly to: string
  readonly stepSeconds: number
  /** One value per step; null is a gap. At most six are drawn. */
  readonly series: CanvasProps['series']
  /** Events, drawn as vertical lines with their names. */
  readonly marks?: readonly ChartMark[]
  /** False for charts below others with the same marks: they have ticks alone. */
  readonly hasNames?: boolean
  /** Charts with the same value share their cross-hair. */
  readonly sync?: string
  readonly height?: number
  readonly format?: (value: number) => string
  /** Shown instead of a chart without any value. */
  readonly noData?: string
  /** The query of the same values in Prometheus; without one it cannot be copied. */
  readonly promql?: (() => Promise<string>) | undefined
}

/** Charts outside of one cannot be zoomed or pinned. */
export const ChartContext = createContext<ChartControl | undefined>(undefined)

const TABLE_ROWS_MAX = 60
const HEIGHT = 160
/** The height of a row of text. */
const LEGEND_ROW = 16

/** A constant: the chart draws again when the array changes. */
const NO_MARKS: readonly ChartMark[] = []

const Canvas = late(async () => (await import('./time-chart-canvas.tsx')).default)

/**
 * Values over time, with a cross-hair shared by all charts of a page. Dragging zooms all of them, a click pins the
 * cross-hair, T shows the values as a table.
 */
export function TimeChart(props: TimeChartProps) {
  const { title, unit, from, to, stepSeconds, sync, marks = NO_MARKS, height = HEIGHT, format = count } = props
  const { hasNames = true } = props
  const id = useId()
  const control = useContext(ChartContext)
  const [isTable, setTable] = useState(false)
  const [hovered, setStep] = useState<number>()
  const moveTo = useRef<(step: number) => void>(undefined)
  const figure = useRef<HTMLElement>(null)
  const series = useMemo(() => props.series.slice(0, SERIES_MAX), [props.series])
  const isBlank = useMemo(() => series.every(({ values }) => values.every((value) => value === null)), [series])
  const hasGaps = useMemo(() => gapsOf(series).length > 0, [series])
  // The lines come first: legends and menus of all charts take as long as drawing them.
  const isDrawn = useDeferredValue(true, false)
  const more = props.series.length - series.length
  const start = Date.parse(from)
  const steps = series[0]?.values.length ?? 0
  const timeOf = (at: number) => new Date(start + at * stepSeconds * 1_000).toISOString()
  const pinned = control?.pin === undefined ? -1 : Math.round((control.pin - start) / (stepSeconds * 1_000))
  const step = hovered ?? (pinned >= 0 && pinned < steps ? pinned : undefined)
  const near = step === undefined ? undefined : markAt(marks, start + step * stepSeconds * 1_000, stepSeconds)
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.target !== event.currentTarget) return
    const act = keyAct(event, { step: hovered ?? step ?? steps - 1, steps, control })
    if (event.key.toLowerCase() === 't') setTable(!isTable)
    else if (act === undefined) return
    else if (act === 'pin') control?.onPin(start + (hovered ?? step ?? steps - 1) * stepSeconds * 1_000)
    else if (typeof act === 'number') moveTo.current?.(act)
    event.preventDefault()
  }
  return (
    <figure
      ref={figure}
      aria-labelledby={id}
      data-chart={title}
      data-from={from}
      data-to={to}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: its keys move the cross-hair and show the table.
      tabIndex={0}
      onKeyDown={onKeyDown}
      className="flex min-w-0 flex-col gap-1 rounded-control"
    >
      <figcaption className="flex min-h-8 items-center gap-x-2">
        <span id={id} className="min-w-0 truncate font-medium text-table">
          {title}
          {unit && <span className="font-normal text-text-3">, {unit}</span>}
        </span>
        <span className="ms-auto min-w-0 truncate text-small text-text-2">{near?.label}</span>
        <IconButton
          label={isTable ? copy.timeChart.showChart(title) : copy.timeChart.showTable(title)}
          icon={isTable ? 'eye' : 'table'}
          className="!size-6"
          onClick={() => setTable(!isTable)}
        />
        {isDrawn && (
          <CopyMenu
            {...{ title, promql: props.promql, isTable: isTable || isBlank }}
            onCopy={async (as) => {
              const shown = { title, unit, series, timeOf, format }
              const { copyChart } = await import('./chart-export.ts')
              await copyChart(as, shown, figure.current, await props.promql?.())
            }}
          />
        )}
      </figcaption>
      {isTable ? (
        <ValueTable title={title} series={series} timeOf={timeOf} format={format} height={height} />
      ) : isBlank ? (
        <p
          className="flex items-center justify-center rounded-control bg-sunken text-small text-text-2"
          style={{ height }}
        >
          {props.noData ?? copy.timeChart.noData}
        </p>
      ) : (
        <div aria-hidden="true" className="min-w-0" style={{ height }}>
          <Suspense fallback={null}>
            <Canvas
              {...{ from, stepSeconds, series, marks, hasNames, height, format, control, moveTo }}
              {...(sync ? { sync } : {})}
              onCursor={setStep}
            />
          </Suspense>
        </div>
      )}
      {!isBlank && (
        <div style={{ minHeight: (series.length + 1) * LEGEND_ROW }}>
          {isDrawn && <Legend {...{ series, step, format, hasGaps }} time={step === undefined ? '' : timeOf(step)} />}
        </div>
      )}
      {more > 0 && <p className="text-small text-text-3">{copy.timeChart.more(more)}</p>}
      {marks.length > 0 && (
        <ul className="sr-only">
          {marks.map((mark) => (
            <li key={`${mark.at} ${mark.label}`}>{`${mark.label}, ${utc(mark.at)}`}</li>
          ))}
        </ul>
      )}
    </figure>
  )
}

type KeyState = { readonly step: number; readonly steps: number; readonly control: ChartControl | undefined }

/** The step to move to, 'pin', or 'done' when the range was changed; undefined for other keys. */
function keyAct(
  { key, altKey }: KeyboardEvent,
  { step, steps, control }: KeyState,
): number | 'pin' | 'done' | undefined {
  if (altKey) {
    if (!control) return undefined
    if (key === 'ArrowLeft') control.onStep('earlier')
    else if (key === 'ArrowRight') control.onStep('later')
    else if (key === 'ArrowUp') control.onStep('in')
    else if (key === 'ArrowDown') control.onZoomOut()
    else return undefined
    return 'done'
  }
  if (steps === 0) return undefined
  if (key === 'ArrowLeft') return Math.max(0, step - 1)
  if (key === 'ArrowRight') return Math.min(steps - 1, step + 1)
  if (key === 'Home') return 0
  if (key === 'End') return steps - 1
  return key === 'Enter' && control ? 'pin' : undefined
}

/** The mark at a time, within one step. */
function markAt(marks: readonly ChartMark[], time: number, stepSeconds: number): ChartMark | undefined {
  let best: ChartMark | undefined
  let least = stepSeconds * 1_000
  for (const mark of marks) {
    const away = Math.abs(Date.parse(mark.at) - time)
    if (away <= least) [best, least] = [mark, away]
  }
  return best
}

type CopyMenuProps = {
  readonly title: string
  readonly promql: TimeChartProps['promql']
  /** No picture is shown. */
  readonly isTable: boolean
  readonly onCopy: (as: CopiedAs) => void
}

function CopyMenu({ title, promql, isTable, onCopy }: CopyMenuProps) {
  return (
    <Menu
      label={copy.timeChart.actions(title)}
      size="!size-6"
      items={[
        {
          label: copy.timeChart.copyPng,
          icon: 'copy',
          why: isTable ? copy.timeChart.noPicture : undefined,
          onSelect: () => onCopy('png'),
        },
        { label: copy.timeChart.copyCsv, icon: 'copy', onSelect: () => onCopy('csv') },
        {
          label: copy.timeChart.copyPromql,
          icon: 'copy',
          why: promql === undefined ? copy.timeChart.noPromql : undefined,
          onSelect: () => onCopy('promql'),
        },
      ]}
    />
  )
}

type Drawn = { readonly series: CanvasProps['series']; readonly format: (value: number) => string }

type LegendProps = Drawn & { readonly step: number | undefined; readonly time: string; readonly hasGaps: boolean }

/** Pattern, name, newest value or that at the cross-hair, least and highest value of each line. */
function Legend({ series, step, time, format, hasGaps }: LegendProps) {
  const spans = useMemo(() => series.map(({ values }) => spanOf(values)), [series])
  const { last, min, max } = copy.timeChart
  const text = (value: number | null | undefined) => (value === null || value === undefined ? NONE : format(value))
  return (
    <div className="grid grid-cols-[minmax(0,1fr)_repeat(3,minmax(3.5rem,max-content))] gap-x-3 text-small text-text-2">
      <div aria-hidden="true" className="col-span-4 grid grid-cols-subgrid text-end text-text-3 tabular-nums">
        <span className="inline-flex min-w-0 items-center gap-1.5">
          {hasGaps && (
            <>
              <span className="hatch h-3 w-[18px] shrink-0 border border-line" />
              <span className="truncate">{copy.timeChart.gap}</span>
            </>
          )}
        </span>
        <span>{step === undefined ? last : clock(time)}</span>
        <span>{min}</span>
        <span>{max}</span>
      </div>
      <ul className="contents">
        {series.map((line, at) => {
          const { label, values } = line
          const span = spans[at]
          const look = lookOf(line, at)
          return (
            <li key={label} className="col-span-4 grid grid-cols-subgrid text-end tabular-nums">
              <span className="inline-flex min-w-0 items-center gap-1.5">
                <svg
                  width="18"
                  height="4"
                  aria-hidden="true"
                  className={clsx('shrink-0', look.colour === PLAIN ? 'text-text-2' : SERIES_TEXT[look.colour])}
                >
                  <line
                    x1="0"
                    y1="2"
                    x2="18"
                    y2="2"
                    stroke="currentColor"
                    strokeWidth="2"
                    strokeDasharray={look.dash.join(' ')}
                  />
                </svg>
                <span className="truncate">{label}</span>
              </span>
              <span className="text-text">
                <span className="sr-only">{` ${step === undefined ? last : clock(time)} `}</span>
                {text(step === undefined ? span?.last : values[step])}
              </span>
              <span>
                <span className="sr-only">{` ${min} `}</span>
                {text(span?.min)}
              </span>
              <span>
                <span className="sr-only">{` ${max} `}</span>
                {text(span?.max)}
              </span>
            </li>
          )
        })}
      </ul>
    </div>
  )
}

type Span = { readonly last: number | null; readonly min: number | null; readonly max: number | null }

/** The newest, least and highest of the known values. */
function spanOf(values: readonly (number | null)[]): Span {
  let last: number | null = null
  let min: number | null = null
  let max: number | null = null
  for (const value of values) {
    if (value === null) continue
    last = value
    if (min === null || value < min) min = value
    if (max === null || value > max) max = value
  }
  return { last, min, max }
}

const SERIES_TEXT = [
  'text-series-1',
  'text-series-2',
  'text-series-3',
  'text-series-4',
  'text-series-5',
  'text-series-6',
] as const

function ValueTable({
  title,
  series,
  timeOf,
  format,
  height,
}: Drawn & { title: string; timeOf: (step: number) => string; height: number }) {
  const steps = series[0]?.values.length ?? 0
  const every = Math.max(1, Math.ceil(steps / TABLE_ROWS_MAX))
  const rows: { time: string; at: number }[] = []
  for (let at = steps - 1; at >= 0; at -= every) rows.push({ time: timeOf(at), at })
  return (
    <div className="overflow-auto rounded-control border border-line" style={{ maxHeight: Math.max(height, HEIGHT) }}>
      <table aria-label={title} className="w-full text-small">
        <thead>
          <tr>
            <th scope="col" className="sticky top-0 bg-surface px-2 text-start font-medium">
              {copy.timeChart.timeColumn}
            </th>
            {series.map(({ label }) => (
              <th key={label} scope="col" className="sticky top-0 bg-surface px-2 text-end font-medium">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ time, at }) => (
            <tr key={time}>
              <th scope="row" className="px-2 text-start font-normal tabular-nums">
                {clock(time)}
              </th>
              {series.map(({ label, values }) => {
                const value = values[at]
                return (
                  <td key={label} className="num px-2">
                    {value === null || value === undefined ? NONE : format(value)}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
