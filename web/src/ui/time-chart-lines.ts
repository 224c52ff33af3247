/** What a chart over time and its canvas share; the canvas is loaded on demand. */
import type { RefObject } from 'react'

export type ChartSeries = {
  readonly label: string
  readonly values: readonly (number | null)[]
  /** Its colour, the same in all charts; by default its place among the lines. */
  readonly colour?: number | typeof PLAIN
  /** Its dash pattern; by default that of its colour. */
  readonly dash?: number
}

/** The colour of text, for a line that stands for all others. */
export const PLAIN = 'plain'

export type ChartMark = {
  readonly at: string
  readonly label: string
  /** In two words, drawn beside the line: "leader n3". */
  readonly short: string
}

/** The time range of the charts of a page, as the page controls it. */
export type ChartControl = {
  /** Milliseconds; the time at which all charts show their values. */
  readonly pin: number | undefined
  readonly onPin: (at: number | undefined) => void
  readonly onZoom: (from: number, to: number) => void
  readonly onZoomOut: () => void
  readonly onStep: (step: 'in' | 'earlier' | 'later') => void
}

/** Props of the canvas, which is loaded on demand. */
export type CanvasProps = {
  /** The first step, RFC 3339. */
  readonly from: string
  readonly stepSeconds: number
  /** Charts with the same value share their cross-hair. */
  readonly sync?: string
  readonly series: readonly ChartSeries[]
  readonly marks: readonly ChartMark[]
  /** Whether the marks have their names, which need a row of their own. */
  readonly hasNames: boolean
  readonly height: number
  readonly format: (value: number) => string
  readonly control: ChartControl | undefined
  /** Step under the cross-hair; undefined without one. */
  readonly onCursor: (step: number | undefined) => void
  /** Receives the function that moves the cross-hair, also of the other charts, to a step. */
  readonly moveTo: RefObject<((step: number) => void) | undefined>
}

export const SERIES_MAX = 6
/** From the fourth line on a dash pattern distinguishes lines as well, and alone after the last colour. */
const DASHES: readonly (readonly number[])[] = [
  ...[[], [], [], [6, 3], [2, 3], [8, 3, 2, 3]],
  ...[
    [12, 3],
    [12, 3, 2, 3],
    [4, 2],
    [1, 2],
    [6, 2, 1, 2],
    [3, 1],
  ],
]
/** Lines that differ in colour or dash. */
export const LOOKS = DASHES.length

/** Colour, from 0, and dash pattern of a line. */
export function lookOf({ colour, dash }: ChartSeries, at: number): Look {
  const place = colour === PLAIN ? 0 : (colour ?? at)
  return { colour: colour === PLAIN ? PLAIN : place % SERIES_MAX, dash: DASHES[(dash ?? place) % LOOKS] ?? [] }
}
type Look = { readonly colour: number | typeof PLAIN; readonly dash: readonly number[] }

/** The newest value may not be there yet, and the first rate comes after the second report. */
const PENDING_STEPS = 2

/** Steps between which no line has a value, with the known ones around them. */
export function gapsOf(
  series: readonly Pick<ChartSeries, 'values'>[],
): readonly (readonly [from: number, to: number])[] {
  const steps = Math.max(0, ...series.map(({ values }) => values.length))
  const isKnown = (at: number) => series.some(({ values }) => typeof values[at] === 'number')
  const gaps: [number, number][] = []
  let from: number | undefined
  for (let at = 0; at < steps; at++) {
    if (!isKnown(at)) from ??= at
    else if (from !== undefined) {
      if (from > 0 || at > PENDING_STEPS) gaps.push([Math.max(0, from - 1), at])
      from = undefined
    }
  }
  if (from !== undefined && steps - from > PENDING_STEPS) gaps.push([Math.max(0, from - 1), steps - 1])
  return gaps
}
