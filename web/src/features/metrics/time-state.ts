'use client'
/** The time range of a page of charts: it is in the URL, and all charts of the page share it. */
import { hasRealDate } from '@vacancy/shared'
import { useMemo, useState } from 'react'
import { useMoment, useSearch } from '../../lib/address.tsx'
import { serverNow } from '../../lib/server-time.ts'
import {
  isRange,
  rangeBetweenMs,
  stepRange,
  type TimeRange,
  type TypedRange,
  type ZoomHistory,
  zoomIn,
  zoomOut,
} from '../../lib/time-range.ts'
import { useSetUrl } from '../../lib/url.ts'
import type { ChartControl } from '../../ui/time-chart-lines.ts'

/** Shown before and after the moment of a past view. */
const AROUND_MS = 30 * 60_000

export type TimeState = {
  readonly range: TimeRange
  readonly control: ChartControl
  /** The time that the user pinned, RFC 3339; a past view shows its moment without one. */
  readonly pinned: string | undefined
  /** Sets a chosen or typed range; the zooms before are forgotten. */
  readonly choose: (range: TypedRange) => void
}

/** @param fallback the start of the range without one in the URL: "now-1h" */
export function useTimeRange(fallback: string): TimeState {
  const search = useSearch()
  const moment = useMoment()
  const setUrl = useSetUrl()
  const [history, setHistory] = useState<ZoomHistory>([])
  const { from, to } = rangeOf(search, fallback, moment)
  const text = search.get('pin') ?? ''
  const given = hasRealDate(text) ? Date.parse(text) : Number.NaN
  const pinned = Number.isNaN(given) ? undefined : new Date(given).toISOString()
  const shown = pinned ?? moment
  const pin = shown === undefined ? undefined : Date.parse(shown)
  return useMemo(() => {
    const range = { from, to }
    const isFallback = (next: TimeRange) => next.from === fallback && next.to === 'now'
    const show = (next: TimeRange) =>
      setUrl(
        isFallback(next) ? { from: null, to: null } : { from: next.from, to: next.to === 'now' ? null : next.to },
        {
          push: true,
        },
      )
    const zoomTo = (next: TimeRange) => {
      setHistory(zoomIn(history, range))
      show(next)
    }
    return {
      range,
      pinned,
      control: {
        pin,
        onPin: (at) => setUrl({ pin: at === undefined ? null : new Date(at).toISOString() }),
        onZoom: (start, end) => zoomTo(rangeBetweenMs(start, end)),
        onZoomOut: () => {
          const out = zoomOut(history, range, serverNow())
          setHistory(out.history)
          show(out.range)
        },
        onStep: (step) => zoomTo(stepRange(range, serverNow(), step)),
      },
      choose: (next) => {
        setHistory([])
        show(next)
        if (next.pin !== undefined) setUrl({ pin: next.pin })
      },
    }
  }, [from, to, pin, pinned, history, fallback, setUrl])
}

function rangeOf(search: URLSearchParams, fallback: string, moment: string | undefined): TimeRange {
  const now = serverNow()
  const given = { from: search.get('from') ?? fallback, to: search.get('to') ?? 'now' }
  const hasOwn = search.has('from') || search.has('to')
  if (hasOwn && isRange(given, now)) return given
  if (moment === undefined) return { from: fallback, to: 'now' }
  const at = Date.parse(moment)
  const range = rangeBetweenMs(at - AROUND_MS, Math.min(now, at + AROUND_MS))
  return at + AROUND_MS > now ? { from: range.from, to: 'now' } : range
}
