'use client'
import { memo, useEffect, useRef } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { clock, day } from '../lib/format.ts'
import { readColours } from './colours.ts'
import { queueDraw } from './draw-queue.ts'
import { type CanvasProps, gapsOf, lookOf, PLAIN, SERIES_MAX } from './time-chart-lines.ts'

/** Half of the width of a time label below the axis may stick out. */
const END_PADDING = 26
const DIGIT_WIDTH = 6.3
const TOP_PADDING = 8
/** Room for the names of the events. */
const MARKS_PADDING = 18
/** The height of a mark without its name. */
const TICK = 6
/** Between the lines of the hatching. */
const HATCH = 6
/** Shorter drags are clicks. */
const DRAG_MIN = 4
/** A click this close to an event pins its time. */
const MARK_REACH = 5
const FONT = '11px system-ui, sans-serif'

/** Memoized: moving the cross-hair must not render it again. */
export default memo(function TimeChartCanvas(props: CanvasProps) {
  const holder = useRef<HTMLDivElement>(null)
  const chart = useRef<Drawn>(undefined)
  const latest = useRef(props)
  latest.current = props
  const { from, stepSeconds, series, marks, hasNames, height, sync, control, moveTo } = props
  const pin = control?.pin
  // The chart is created again when its lines change; new values only update it.
  const lines = series.map((line, at) => `${line.label} ${JSON.stringify(lookOf(line, at))}`).join('\n')

  // `lines` stands for the series; the next effect updates their values.
  useEffect(() => {
    const element = holder.current
    if (!element) return
    const dark = matchMedia('(prefers-color-scheme: dark)')
    let cancelDraw = () => {}
    const make = () => {
      const theme = `${document.documentElement.dataset['theme']} ${dark.matches}`
      const madeOf = [lines, hasNames, height, sync, theme].join('\n')
      cancelDraw()
      // Unchanged, on a page that was hidden.
      if (chart.current?.madeOf === madeOf) return
      cancelDraw = queueDraw(element, (width) => {
        chart.current?.plot.destroy()
        const options = optionsOf(width, coloursOf(theme, element), latest)
        const plot = new UPlot(options, dataOf(latest.current), element)
        // A drag ends with a click as well, which the library keeps from its element.
        plot.over.addEventListener('click', (event) => onClick(plot, latest.current, event))
        chart.current = { plot, madeOf, of: latest.current }
        moveTo.current = (step) => moveCursor(plot, step)
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
  }, [lines, hasNames, height, sync, moveTo])

  // The values are read through `latest`.
  useEffect(() => {
    const drawn = chart.current
    if (!drawn || isSame(drawn.of, latest.current)) return
    const hasOtherMarks = drawn.of.marks !== latest.current.marks
    drawn.of = latest.current
    drawn.plot.setData(dataOf(latest.current))
    // Their names need room above the plot, which is measured only when a scale changes.
    if (hasOtherMarks) drawn.plot.redraw(false, true)
  }, [from, stepSeconds, series, marks])

  useEffect(() => {
    chart.current?.plot.redraw(false)
  }, [pin])

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

/** Moves the cross-hair of this chart and, as a pointer would, of those in sync with it. */
function moveCursor(plot: UPlot, step: number): void {
  const seconds = plot.data[0][step]
  if (seconds === undefined) return
  // The types omit the third argument: publish it to the charts in sync.
  const setCursor = plot.setCursor as (at: { left: number; top: number }, fires: boolean, publishes: boolean) => void
  setCursor({ left: plot.valToPos(seconds, 'x'), top: 0 }, true, true)
}

type Colours = {
  readonly theme: string
  readonly line: string
  readonly quiet: string
  readonly text: string
  readonly accent: string
  readonly lines: readonly string[]
}

const SERIES = Array.from({ length: SERIES_MAX }, (_, at) => `series-${at + 1}`)
/** Colours of the current theme, cached for all charts, since reading them makes the browser resolve styles. */
let known: Colours | undefined

function coloursOf(theme: string, element: HTMLElement): Colours {
  if (known?.theme !== theme) {
    const tokens = ['line', 'text-3', 'text-2', 'accent', ...SERIES]
    const [line = '', quiet = '', text = '', accent = '', ...lines] = readColours(element, tokens)
    known = { theme, line, quiet, text, accent, lines }
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
    padding: [
      () => (latest.current.hasNames && latest.current.marks.length > 0 ? MARKS_PADDING : TOP_PADDING),
      END_PADDING,
      0,
      0,
    ],
    cursor: {
      y: false,
      drag: { x: latest.current.control !== undefined, y: false, dist: DRAG_MIN, setScale: false },
      points: { size: 6 },
      // Pressing and releasing concern one chart; the range of the others follows from the URL.
      ...(sync
        ? {
            sync: {
              key: sync,
              filters: { pub: (type: string) => !type.startsWith('mousedown') && !type.startsWith('mouseup') },
            },
          }
        : {}),
      bind: {
        dblclick: () => () => {
          latest.current.control?.onZoomOut()
          return null
        },
      },
    },
    scales: { y: { range: (_chart, low, high) => rangeOf(low, high) } },
    axes: [
      // Labels of short ranges have seconds.
      { ...axis, space: (_chart, _axis, from, to) => (to - from < 240 ? 64 : 44), size: 22, values: timeLabels },
      {
        ...axis,
        space: 28,
        incrs: INCREMENTS,
        filter: (_chart, splits) => shownSplits(latest.current, splits),
        grid: { ...axis.grid, filter: (_chart, splits) => shownSplits(latest.current, splits) },
        // As wide as its longest label, so that the plot has the rest of the cell.
        size: (_chart, labels) => 12 + DIGIT_WIDTH * Math.max(2, ...(labels ?? []).map((label) => label.length)),
        values: (_chart, splits) => splits.map((value) => (value === null ? '' : latest.current.format(value))),
      },
    ],
    series: [
      {},
      ...series.map((line, at) => {
        const { colour, dash } = lookOf(line, at)
        return {
          label: line.label,
          stroke: (colour === PLAIN ? colours.text : colours.lines[colour]) ?? '',
          width: 1.5,
          dash: [...dash],
          // A value between two gaps has no line.
          points: { show: true, size: 4, filter: (chart: UPlot, at: number) => aloneOf(chart.data[at] ?? []) },
          // A missing value is a gap, never zero or a connecting line.
          spanGaps: false,
        }
      }),
    ],
    hooks: {
      setCursor: [(chart) => latest.current.onCursor(chart.cursor.idx ?? undefined)],
      setSelect: [(chart) => onSelect(chart, latest.current)],
      drawClear: [(chart) => drawGaps(chart, latest.current, colours.quiet)],
      draw: [
        (chart) => drawMarks(chart, latest.current, colours),
        (chart) => drawPin(chart, latest.current, colours.accent),
      ],
    },
  }
}

/** Steps with a value, beside which there is none. */
function aloneOf(values: ArrayLike<number | null | undefined>): number[] {
  const isKnown = (at: number) => typeof values[at] === 'number'
  return Array.from(values, (_, at) => at).filter((at) => isKnown(at) && !isKnown(at - 1) && !isKnown(at + 1))
}

const DAY_SECONDS = 86_400

/** Steps of 1, 2 and 5: a step of 2.5 has digits that labels round off. */
const INCREMENTS = Array.from({ length: 19 }, (_, at) => [1, 2, 5].map((step) => Number(`${step}e${at - 3}`))).flat()

/** UTC labels: days for steps of days, else hours and minutes, with seconds below a minute. */
function timeLabels(_chart: UPlot, splits: number[]): string[] {
  const step = (splits[1] ?? 0) - (splits[0] ?? 0)
  return splits.map((seconds) => {
    const time = new Date(seconds * 1_000).toISOString()
    if (step >= DAY_SECONDS || seconds % DAY_SECONDS === 0) return day(time)
    return clock(time).slice(0, step < 60 ? 8 : 5)
  })
}

/** Without any value above zero only the zero has a line and a label. */
function shownSplits({ series }: CanvasProps, splits: number[]): (number | null)[] {
  const isFlat = series.every(({ values }) => values.every((value) => value === null || value <= 0))
  return isFlat ? splits.map((value) => (value > 0 ? null : value)) : splits
}

/** A drag: its range, for all charts of the page. */
function onSelect(chart: UPlot, { control }: CanvasProps): void {
  const { left, width } = chart.select
  if (width < DRAG_MIN) return
  const [from, to] = [chart.posToVal(left, 'x'), chart.posToVal(left + width, 'x')]
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  control?.onZoom(from * 1_000, to * 1_000)
}

/** A click pins the time under it, exactly that of an event nearby; a second click there unpins. */
function onClick(chart: UPlot, { control, marks }: CanvasProps, event: MouseEvent): void {
  const { left, idx } = chart.cursor
  if (!control || left === undefined || left < 0 || event.button !== 0) return
  const near = marks.find(({ at }) => Math.abs(chart.valToPos(Date.parse(at) / 1_000, 'x') - left) <= MARK_REACH)
  const seconds = idx === null || idx === undefined ? undefined : chart.data[0][idx]
  const at = near ? Date.parse(near.at) : seconds === undefined ? undefined : seconds * 1_000
  control.onPin(at === control.pin ? undefined : at)
}

/** Starts at zero, so that heights compare. */
function rangeOf(low: number | null, high: number | null): UPlot.Range.MinMax {
  if (low === null || high === null) return [0, 1]
  return [Math.min(0, low), high > 0 ? high * 1.1 : 1]
}

/** Hatches the times without any value. */
function drawGaps({ ctx, bbox, valToPos, data }: UPlot, { series }: CanvasProps, colour: string): void {
  const unit = devicePixelRatio
  const [times] = data
  ctx.save()
  ctx.strokeStyle = colour
  ctx.globalAlpha = 0.35
  ctx.lineWidth = unit
  for (const [from, to] of gapsOf(series)) {
    const [left, right] = [from, to].map((step) => valToPos(times[step] ?? 0, 'x', true)) as [number, number]
    ctx.save()
    ctx.beginPath()
    ctx.rect(left, bbox.top, right - left, bbox.height)
    ctx.clip()
    ctx.beginPath()
    for (let x = left - bbox.height; x < right; x += HATCH * unit) {
      ctx.moveTo(x, bbox.top + bbox.height)
      ctx.lineTo(x + bbox.height, bbox.top)
    }
    ctx.stroke()
    ctx.restore()
  }
  ctx.restore()
}

/** Lines at the times of events, each with its name where there is room; ticks alone in charts without names. */
function drawMarks({ ctx, bbox, valToPos }: UPlot, { marks, hasNames }: CanvasProps, { accent, text }: Colours): void {
  const unit = devicePixelRatio
  ctx.save()
  ctx.strokeStyle = accent
  ctx.fillStyle = text
  ctx.lineWidth = unit
  ctx.font = FONT.replace('11px', `${11 * unit}px`)
  ctx.textAlign = 'left'
  ctx.textBaseline = 'alphabetic'
  ctx.setLineDash([3 * unit, 3 * unit])
  ctx.beginPath()
  const end = bbox.left + bbox.width
  let free = Number.NEGATIVE_INFINITY
  for (const { at, short } of marks) {
    const x = Math.round(valToPos(Date.parse(at) / 1_000, 'x', true))
    if (x < bbox.left || x > end) continue
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + (hasNames ? bbox.height : TICK * unit))
    // Measuring is slow: only where a name may fit.
    if (!hasNames || x < free) continue
    const { width } = ctx.measureText(short)
    const left = Math.min(x, end - width)
    if (left < free) continue
    free = left + width + 6 * unit
    ctx.fillText(short, left, bbox.top - 5 * unit)
  }
  ctx.stroke()
  ctx.restore()
}

function drawPin({ ctx, bbox, valToPos }: UPlot, { control }: CanvasProps, colour: string): void {
  if (control?.pin === undefined) return
  const x = Math.round(valToPos(control.pin / 1_000, 'x', true))
  if (x < bbox.left || x > bbox.left + bbox.width) return
  ctx.save()
  ctx.strokeStyle = colour
  ctx.lineWidth = 2 * devicePixelRatio
  ctx.setLineDash([])
  ctx.beginPath()
  ctx.moveTo(x, bbox.top)
  ctx.lineTo(x, bbox.top + bbox.height)
  ctx.stroke()
  ctx.restore()
}
