'use client'
import clsx from 'clsx'
import { lazy, Suspense, useId, useMemo, useState } from 'react'
import { clock, count, NONE, utc } from '../lib/format.ts'
import * as copy from './data-copy.ts'
import { IconButton } from './icon-button.tsx'

type ChartSeries = { readonly label: string; readonly values: readonly (number | null)[] }
export type ChartMark = { readonly at: string; readonly label: string; readonly href?: string }

export type TimeChartProps = {
  readonly title: string
  readonly unit: string
  /** First step and end, RFC 3339. */
  readonly from: string
  readonly to: string
  readonly stepSeconds: number
  /** One value per step; null is a gap. At most six are drawn. */
  readonly series: readonly ChartSeries[]
  /** Events, drawn as vertical lines. */
  readonly marks?: readonly ChartMark[]
  /** Charts with the same value share their cross-hair. */
  readonly sync?: string
  readonly height?: number
  readonly format?: (value: number) => string
}

/** Props of the canvas, which is loaded on demand. */
export type CanvasProps = Pick<TimeChartProps, 'from' | 'stepSeconds' | 'sync'> & {
  readonly series: readonly ChartSeries[]
  readonly marks: readonly ChartMark[]
  readonly height: number
  readonly format: (value: number) => string
  /** Step under the cross-hair; undefined without one. */
  readonly onCursor: (step: number | undefined) => void
}

export const SERIES_MAX = 6
/** From the fourth line on a dash pattern distinguishes lines as well. */
export const DASHES: readonly (readonly number[])[] = [[], [], [], [6, 3], [2, 3], [8, 3, 2, 3]]
const TABLE_ROWS_MAX = 60
const HEIGHT = 160

/** A constant: the chart draws again when the array is another one. */
const NO_MARKS: readonly ChartMark[] = []

const Canvas = lazy(() => import('./time-chart-canvas.tsx'))

/** Values over time, with a cross-hair shared by all charts of a page. T shows them as a table. */
export function TimeChart(props: TimeChartProps) {
  const { title, unit, from, to, stepSeconds, sync, marks = NO_MARKS, height = HEIGHT, format = count } = props
  const id = useId()
  const [isTable, setTable] = useState(false)
  const [step, setStep] = useState<number>()
  const series = useMemo(() => props.series.slice(0, SERIES_MAX), [props.series])
  const more = props.series.length - series.length
  const timeOf = (at: number) => new Date(Date.parse(from) + at * stepSeconds * 1_000).toISOString()
  return (
    <figure
      aria-labelledby={id}
      data-chart={title}
      data-from={from}
      data-to={to}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: T on it shows the table.
      tabIndex={0}
      onKeyDown={(event) => {
        if (event.key.toLowerCase() === 't' && !event.ctrlKey && !event.metaKey) setTable(!isTable)
      }}
      className="flex min-w-0 flex-col gap-1 rounded-control"
    >
      <figcaption className="flex min-h-8 items-center gap-x-3">
        <span id={id} className="min-w-0 truncate font-medium text-table">
          {title}
          {unit && <span className="font-normal text-text-3">, {unit}</span>}
        </span>
        <span className="ms-auto text-small text-text-3 tabular-nums">
          {step === undefined ? '' : clock(timeOf(step))}
        </span>
        <IconButton
          label={isTable ? copy.timeChart.showChart(title) : copy.timeChart.showTable(title)}
          icon={isTable ? 'eye' : 'table'}
          className="!size-6"
          onClick={() => setTable(!isTable)}
        />
      </figcaption>
      {isTable ? (
        <ValueTable title={title} series={series} timeOf={timeOf} format={format} height={height} />
      ) : (
        <div aria-hidden="true" className="min-w-0" style={{ height }}>
          <Suspense fallback={null}>
            <Canvas
              {...{ from, stepSeconds, series, marks, height, format }}
              {...(sync ? { sync } : {})}
              onCursor={setStep}
            />
          </Suspense>
        </div>
      )}
      <Legend series={series} step={step} format={format} />
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

type Drawn = { readonly series: readonly ChartSeries[]; readonly format: (value: number) => string }

/** Pattern, name and value of each line: at the cross-hair, or the newest. */
function Legend({ series, step, format }: Drawn & { step: number | undefined }) {
  return (
    <ul className="flex flex-wrap gap-x-4 text-small text-text-2">
      {series.map(({ label, values }, at) => {
        const value = step === undefined ? values.findLast((one) => one !== null) : values[step]
        return (
          <li key={label} className="inline-flex min-w-0 items-center gap-1.5">
            <svg width="18" height="4" aria-hidden="true" className={clsx('shrink-0', SERIES_TEXT[at])}>
              <line
                x1="0"
                y1="2"
                x2="18"
                y2="2"
                stroke="currentColor"
                strokeWidth="2"
                strokeDasharray={DASHES[at]?.join(' ')}
              />
            </svg>
            <span className="truncate">{label}</span>
            <span className="text-text tabular-nums">
              {value === null || value === undefined ? NONE : format(value)}
            </span>
          </li>
        )
      })}
    </ul>
  )
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
