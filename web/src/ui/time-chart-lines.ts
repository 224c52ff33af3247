/** What a chart over time and its canvas share; the canvas is loaded on demand. */
import type { RefObject } from 'react'

type ChartSeries = { readonly label: string; readonly values: readonly (number | null)[] }

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
  readonly height: number
  readonly format: (value: number) => string
  readonly control: ChartControl | undefined
  /** Step under the cross-hair; undefined without one. */
  readonly onCursor: (step: number | undefined) => void
  /** Receives the function that moves the cross-hair, also of the other charts, to a step. */
  readonly moveTo: RefObject<((step: number) => void) | undefined>
}

export const SERIES_MAX = 6
/** From the fourth line on a dash pattern distinguishes lines as well. */
export const DASHES: readonly (readonly number[])[] = [[], [], [], [6, 3], [2, 3], [8, 3, 2, 3]]
