'use client'
import { memo, useEffect, useRef } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { clock, day } from '../lib/format.ts'
import { readColours } from './colours.ts'
import { queueDraw } from './draw-queue.ts'
import { type CanvasProps, DASHES, SERIES_MAX } from './time-chart.tsx'

const LABEL_WIDTH = 52
/** Half of the width of a time label below the axis. */
const LABEL_WIDTH_NONE = 20
const LABEL_HEIGHT = 13
const FONT = '11px system-ui, sans-serif'

/** Memoized: moving the cross-hair must not render it again. */
export default memo(function TimeChartCanvas(props: CanvasProps) {
  const holder = useRef<HTMLDivElement>(null)
  const chart = useRef<Drawn>(undefined)
  const latest = useRef(props)
  latest.current = props
  const { from, stepSeconds, series, marks, height, sync } = props
  // The chart is created again when its lines change; new values only update it.
  const lines = series.map(({ label }) => label).join('\n')

  // `lines` stands for the series; the next effect updates their values.
  useEffect(() => {
    const element = holder.current
    if (!element) return
    const dark = matchMedia('(prefers-color-scheme: dark)')
    let cancelDraw = () => {}
    const make = () => {
      const theme = `${document.documentElement.dataset['theme']} ${dark.matches}`
      const madeOf = [lines, height, sync, theme].join('\n')
      cancelDraw()
      // Unchanged, on a page that was hidden.
      if (chart.current?.madeOf === madeOf) return
      cancelDraw = queueDraw(element, (width) => {
        chart.current?.plot.destroy()
        const options = optionsOf(width, coloursOf(theme, element), latest)
        const plot = new UPlot(options, dataOf(latest.current), element)
        chart.current = { plot, madeOf, of: latest.current }
      })
    }
    make()
    const resized = new ResizeObserver(() => {
      const plot = chart.current?.plot
      if (plot && plot.width !== element.clientWidth) plot.setSize({ width: element.clientWidth, height })
    })
    resized.observe(element)
    // Colours on a canvas do not follow the theme.
    const themed = new MutationObserver(make)
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    dark.addEventListener('change', make)
    return () => {
      cancelDraw()
      resized.disconnect()
      themed.disconnect()
      dark.removeEventListener('change', make)
      // Still in the document: its page is hidden, or the chart is about to be created again.
      if (element.isConnected) return
      chart.current?.plot.destroy()
      chart.current = undefined
    }
  }, [lines, height, sync])

  // The values are read through `latest`.
  useEffect(() => {
    const drawn = chart.current
    if (!drawn || isSame(drawn.of, latest.current)) return
    drawn.of = latest.current
    drawn.plot.setData(dataOf(latest.current))
  }, [from, stepSeconds, series, marks])

  return <div ref={holder} className="w-full min-w-0" />
})

/** A chart, the inputs of its options, and the values it shows. */
type Drawn = { readonly plot: UPlot; readonly madeOf: string; of: CanvasProps }

function isSame(a: CanvasProps, b: CanvasProps): boolean {
  return a.from === b.from && a.stepSeconds === b.stepSeconds && a.series === b.series && a.marks === b.marks
}

function dataOf({ from, stepSeconds, series }: CanvasProps): UPlot.AlignedData {
  const start = Date.parse(from) / 1_000
  const times = (series[0]?.values ?? []).map((_, at) => start + at * stepSeconds)
  return [times, ...series.map(({ values }) => [...values])] as UPlot.AlignedData
}

type Colours = {
  readonly theme: string
  readonly line: string
  readonly quiet: string
  readonly accent: string
  readonly lines: readonly string[]
}

const SERIES = Array.from({ length: SERIES_MAX }, (_, at) => `series-${at + 1}`)
/** Colours of the current theme, cached for all charts, since reading them makes the browser resolve styles. */
let known: Colours | undefined

function coloursOf(theme: string, element: HTMLElement): Colours {
  if (known?.theme !== theme) {
    const [line = '', quiet = '', accent = '', ...lines] = readColours(element, ['line', 'text-3', 'accent', ...SERIES])
    known = { theme, line, quiet, accent, lines }
  }
  return known
}

function optionsOf(width: number, colours: Colours, latest: { readonly current: CanvasProps }): UPlot.Options {
  const { series, height, sync } = latest.current
  const axis = {
    stroke: colours.quiet,
    font: FONT,
    grid: { stroke: colours.line, width: 1 },
    ticks: { show: false },
  }
  return {
    width,
    height,
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
    legend: { show: false },
    padding: [8, series.length > 1 ? LABEL_WIDTH : LABEL_WIDTH_NONE, 0, 0],
    cursor: {
      y: false,
      drag: { x: false, y: false },
      points: { size: 6 },
      ...(sync ? { sync: { key: sync } } : {}),
    },
    scales: { y: { range: (_chart, low, high) => rangeOf(low, high) } },
    axes: [
      { ...axis, space: 64, size: 22, values: timeLabels },
      { ...axis, space: 28, size: 52, values: (_chart, splits) => splits.map((value) => latest.current.format(value)) },
    ],
    series: [
      {},
      ...series.map(({ label }, at) => ({
        label,
        stroke: colours.lines[at] ?? '',
        width: 1.5,
        dash: [...(DASHES[at] ?? [])],
        points: { show: false },
        // A missing value is a gap, never zero or a connecting line.
        spanGaps: false,
      })),
    ],
    hooks: {
      setCursor: [(chart) => latest.current.onCursor(chart.cursor.idx ?? undefined)],
      draw: [
        (chart) => drawMarks(chart, latest.current, colours.accent),
        (chart) => drawLabels(chart, latest.current, colours.lines),
      ],
    },
  }
}

const DAY_SECONDS = 86_400

/** UTC labels: days for steps of days, else hours and minutes, with seconds below a minute. */
function timeLabels(_chart: UPlot, splits: number[]): string[] {
  const step = (splits[1] ?? 0) - (splits[0] ?? 0)
  return splits.map((seconds) => {
    const time = new Date(seconds * 1_000).toISOString()
    if (step >= DAY_SECONDS || seconds % DAY_SECONDS === 0) return day(time)
    return clock(time).slice(0, step < 60 ? 8 : 5)
  })
}

/** Starts at zero, so that heights compare. */
function rangeOf(low: number | null, high: number | null): UPlot.Range.MinMax {
  if (low === null || high === null) return [0, 1]
  return [Math.min(0, low), high > 0 ? high * 1.1 : 1]
}

function drawMarks({ ctx, bbox, valToPos }: UPlot, { marks }: CanvasProps, colour: string): void {
  ctx.save()
  ctx.strokeStyle = colour
  ctx.lineWidth = devicePixelRatio
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio])
  for (const { at } of marks) {
    const x = Math.round(valToPos(Date.parse(at) / 1_000, 'x', true))
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
  }
  ctx.restore()
}

/** Labels at the line ends, moved apart where they would overlap. */
function drawLabels(chart: UPlot, { series }: CanvasProps, colours: readonly string[]): void {
  if (series.length < 2) return
  const { ctx, bbox, valToPos } = chart
  const ends = series
    .map(({ label, values }, at) => ({ label, at, value: values.findLast((value) => value !== null) ?? null }))
    .flatMap(({ label, at, value }) => (value === null ? [] : [{ label, at, y: valToPos(value, 'y', true) }]))
    .toSorted((a, b) => a.y - b.y)
  ctx.save()
  ctx.font = FONT.replace('11px', `${11 * devicePixelRatio}px`)
  ctx.textBaseline = 'middle'
  let next = Number.NEGATIVE_INFINITY
  for (const { label, at, y } of ends) {
    const place = Math.max(y, next)
    next = place + LABEL_HEIGHT * devicePixelRatio
    ctx.fillStyle = colours[at] ?? ''
    ctx.fillText(label, bbox.left + bbox.width + 6 * devicePixelRatio, place, (LABEL_WIDTH - 8) * devicePixelRatio)
  }
  ctx.restore()
}
