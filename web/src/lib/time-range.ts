/**
 * Time ranges of charts: typed texts, their bounds, and the history of zooms. Pure. A bound is `now`, `now-3h`, or a time
 * in UTC, as the control plane takes it (docs/design/control-plane.md#history).
 */

export type TimeRange = { readonly from: string; readonly to: string }

/** What a typed text means; a single time is also pinned. */
export type TypedRange = TimeRange & { readonly pin?: string }

/** Six values of ten seconds. */
const RANGE_MIN_MS = 60_000
/** The control plane keeps values for 24 h. */
export const RANGE_MAX_MS = 86_400_000
/** A typed time is shown with this much before and after it. */
const AROUND_MS = 15 * 60_000
const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: RANGE_MAX_MS } as const

const AGO = /^(?:now-)?(\d{1,6})\s*([smhd])$/
const TIME = /^(?:(\d{4}-\d{2}-\d{2})[ T])?(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d{1,3})?)?Z?$/

/** `now-3h`, `3h`, `18:20`, `2026-11-20 18:00..18:30`; undefined when it is none of them. */
export function parseRange(text: string, now: number): TypedRange | undefined {
  const [first = '', second, ...rest] = text.trim().split(/\s*\.\.\s*|\s+to\s+/)
  if (rest.length > 0) return undefined
  if (second !== undefined) return rangeBetween(first, second, now)
  const ago = agoOf(first)
  if (ago !== undefined) return { from: ago, to: 'now' }
  const at = timeOf(first, now, undefined)
  if (at === undefined || at > now) return undefined
  const to = at + AROUND_MS
  return { from: isoOf(at - AROUND_MS), to: to > now ? 'now' : isoOf(to), pin: isoOf(at) }
}

function rangeBetween(first: string, second: string, now: number): TimeRange | undefined {
  const from = agoOf(first) ?? textOf(timeOf(first, now, undefined))
  if (from === undefined) return undefined
  const start = boundMs(from, now)
  const to = second === 'now' ? 'now' : (agoOf(second) ?? textOf(timeOf(second, now, start)))
  if (to === undefined) return undefined
  return boundMs(to, now) > start && start < now ? { from, to } : undefined
}

const textOf = (at: number | undefined) => (at === undefined ? undefined : isoOf(at))

function agoOf(text: string): string | undefined {
  const [, amount, unit] = AGO.exec(text) ?? []
  return amount === undefined || Number(amount) === 0 ? undefined : `now-${Number(amount)}${unit}`
}

/**
 * A time without a date is the last one before now; after a start it is the first one behind it.
 *
 * @param start the start of the range whose end this is
 */
function timeOf(text: string, now: number, start: number | undefined): number | undefined {
  const [, date, hours = '', minutes = '', seconds = '00'] = TIME.exec(text) ?? []
  if (hours === '' || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined
  const base = isoOf(start ?? now).slice(0, 10)
  const at = Date.parse(`${date ?? base}T${hours.padStart(2, '0')}:${minutes}:${seconds}Z`)
  // A day that its month does not have.
  if (Number.isNaN(at) || (date !== undefined && isoOf(at).slice(0, 10) !== date)) return undefined
  if (date !== undefined) return at
  if (start !== undefined && at > start) return at
  // Past midnight; an end that is still to come was typed by mistake.
  if (start !== undefined) return at + RANGE_MAX_MS > now ? undefined : at + RANGE_MAX_MS
  return at > now ? at - RANGE_MAX_MS : at
}

const isoOf = (at: number) => new Date(at).toISOString()

/** Milliseconds of a bound; NaN when it is not one. */
export function boundMs(text: string, now: number): number {
  if (text === 'now') return now
  const [, amount, unit] = /^now-(\d{1,6})([smhd])$/.exec(text) ?? []
  if (amount !== undefined) return now - Number(amount) * UNITS[unit as keyof typeof UNITS]
  return /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/.test(text) ? Date.parse(text) : Number.NaN
}

/** Whether a range from a URL can be requested. */
export function isRange({ from, to }: TimeRange, now: number): boolean {
  return boundMs(from, now) < boundMs(to, now)
}

/** `now-3h`, or `2026-11-20 18:00..18:30`: what would be typed for the range. */
export function rangeText({ from, to }: TimeRange): string {
  if (to === 'now' && from.startsWith('now-')) return from
  const [start, end] = [timeText(from), timeText(to)]
  return `${start}..${start.slice(0, 10) === end.slice(0, 10) ? end.slice(11) : end}`
}

function timeText(bound: string): string {
  if (bound.startsWith('now')) return bound
  const text = bound.slice(0, 19).replace('T', ' ')
  return text.endsWith(':00') ? text.slice(0, -3) : text
}

/** The range between two moments, widened to the least that can be drawn. */
export function rangeBetweenMs(a: number, b: number): TimeRange {
  const [low, high] = a < b ? [a, b] : [b, a]
  const missing = Math.max(0, RANGE_MIN_MS - (high - low)) / 2
  return { from: isoOf(Math.round(low - missing)), to: isoOf(Math.round(high + missing)) }
}

/** Ranges to return to, the last one last. */
export type ZoomHistory = readonly TimeRange[]
const ZOOMS_MAX = 20

export function zoomIn(history: ZoomHistory, shown: TimeRange): ZoomHistory {
  return [...history, shown].slice(-ZOOMS_MAX)
}

/** The range before the last zoom; without one twice the shown range, to at most 24 h and not beyond now. */
export function zoomOut(
  history: ZoomHistory,
  shown: TimeRange,
  now: number,
): { readonly history: ZoomHistory; readonly range: TimeRange } {
  const last = history.at(-1)
  if (last) return { history: history.slice(0, -1), range: last }
  const [from, to] = [boundMs(shown.from, now), boundMs(shown.to, now)]
  const length = Math.min(RANGE_MAX_MS, 2 * (to - from))
  if (shown.to === 'now') return { history, range: { from: `now-${Math.round(length / 60_000)}m`, to: 'now' } }
  const end = Math.min(now, (from + to) / 2 + length / 2)
  return { history, range: { from: isoOf(Math.round(end - length)), to: isoOf(Math.round(end)) } }
}

/** Half of a range, its end if that is now, or a third of it earlier or later: zooming and panning without a pointer. */
export function stepRange(shown: TimeRange, now: number, step: 'in' | 'earlier' | 'later'): TimeRange {
  const [from, to] = [boundMs(shown.from, now), boundMs(shown.to, now)]
  const length = to - from
  if (step === 'in') {
    // The newest values stay: charts start where data start, which may be late in the range.
    const cut = shown.to === 'now' ? 0 : length / 4
    return rangeBetweenMs(to - cut - length / 2, to - cut)
  }
  const by = Math.round(length / 3)
  const end = step === 'earlier' ? to - by : Math.min(now, to + by)
  return { from: isoOf(end - length), to: isoOf(end) }
}

const RECENT_MAX = 5

/** Adds a range to the last typed ones, newest first. */
export function addRecent(recent: readonly string[], text: string): readonly string[] {
  return [text, ...recent.filter((other) => other !== text)].slice(0, RECENT_MAX)
}
