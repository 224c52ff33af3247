/** Typed nights of a stay: `2026-11-20..2026-11-23`, `2026-11-20+4`, or dates separated by commas. */
import type { PlaygroundShard } from '@vacancy/shared/contract'
import { dateOf, dayOf } from '../../lib/days.ts'
import * as copy from './copy.ts'

const SPAN_MAX = 366

export type Typed = { readonly ok: true; readonly dates: string[] } | { readonly ok: false; readonly reason: string }

/** A night is the date of its evening. Both ends of a range are nights of the stay; `+4` is four nights. */
export function parseDates(text: string): Typed {
  const dates: string[] = []
  for (const part of text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')) {
    const {
      from = '',
      to,
      more,
    } = /^(?<from>[^.+]*?)\s*(?:\.\.\s*(?<to>.+)|\+\s*(?<more>\d{1,3}))?$/.exec(part)?.groups ?? {}
    const first = dayOf(from)
    const last = to !== undefined ? dayOf(to) : first === undefined ? undefined : first + Number(more ?? 1) - 1
    if (first === undefined || last === undefined) {
      return { ok: false, reason: copy.dates.notADate(part) }
    }
    if (last < first) return { ok: false, reason: copy.dates.endsEarly(part) }
    if (last - first >= SPAN_MAX) return { ok: false, reason: copy.dates.tooLong(part) }
    for (let day = first; day <= last; day++) dates.push(dateOf(day))
  }
  return { ok: true, dates: [...new Set(dates)].sort() }
}

/** The shortest text that parses to the dates. */
export function formatDates(dates: readonly string[]): string {
  const parts: string[] = []
  for (const run of runsOf(dates)) {
    const [first] = run
    const last = run.at(-1)
    if (first !== undefined) parts.push(first === last ? first : `${first}..${last}`)
  }
  return parts.join(', ')
}

/** Groups consecutive dates. An invalid date is a group of its own. */
function runsOf(dates: readonly string[]): string[][] {
  const runs: string[][] = []
  for (const date of [...dates].sort()) {
    const run = runs.at(-1)
    const before = run && dayOf(run.at(-1) as string)
    if (before !== undefined && dayOf(date) === before + 1) run?.push(date)
    else runs.push([date])
  }
  return runs
}

/** "5 nights". */
export function countText(dates: readonly string[]): string {
  return copy.dates.count(dates.length)
}

export type Bounds = {
  readonly window: { readonly from: string; readonly to: string } | null
  readonly datesMax: number | null
  readonly shard: string
}

export const boundsOf = (shard: Pick<PlaygroundShard, 'id' | 'window' | 'datesMax'> | null): Bounds => ({
  window: shard?.window ?? null,
  datesMax: shard?.datesMax ?? null,
  shard: shard?.id ?? copy.page.anyShard,
})

/** Why a request with these nights is refused; undefined when it is not. */
export function whyNotNights(dates: readonly string[], { datesMax, shard }: Bounds): string | undefined {
  const wrong = dates.find((date) => dayOf(date) === undefined)
  if (wrong !== undefined) return copy.dates.notADate(wrong)
  return datesMax !== null && dates.length > datesMax ? copy.dates.tooMany(dates.length, datesMax, shard) : undefined
}

/** Names the nights for which the shard has no data; '' without any. */
export function outsideText(dates: readonly string[], { window, shard }: Bounds): string {
  if (window === null) return ''
  const outside = dates.filter((date) => dayOf(date) !== undefined && (date < window.from || date > window.to))
  return outside.length === 0 ? '' : copy.dates.outside(outside.length, dates.length, shard)
}

/** Why a day cannot be chosen; undefined when it can. `first` is the start of a range. */
export function whyNotDay(day: number, { window, datesMax, shard }: Bounds, first?: number): string | undefined {
  const from = window && dayOf(window.from)
  const to = window && dayOf(window.to)
  if (typeof from === 'number' && day < from) return copy.dates.before(shard)
  if (typeof to === 'number' && day > to) return copy.dates.after(shard)
  if (first !== undefined && datesMax !== null && Math.abs(day - first) >= datesMax) {
    return copy.dates.atMost(datesMax, shard)
  }
  return undefined
}

/** Number of packages by night. */
export type Sold = { readonly window: Bounds['window']; readonly packages: readonly number[] }

/** Whether the night is known to have no packages. */
export function isUnsold(day: number, { window, packages }: Sold): boolean {
  const from = window && dayOf(window.from)
  return typeof from === 'number' && !packages[day - from]
}
