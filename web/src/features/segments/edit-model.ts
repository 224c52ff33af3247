/** What an edit changes: the typed values, checked, and the old and new values of each night. */
import type { CalendarNight } from '@vacancy/shared/contract'
import { count } from '../../lib/format.ts'
import * as copy from './copy.ts'

const ROOMS_MAX = 255
/** One less than the value that means "no bound" in a search. */
const PRICE_MAX = 4_294_967_294

/** As typed; '' and undefined leave the value as it is. */
export type ChangeInput = {
  readonly availability: string
  readonly price: string
  readonly features: readonly string[] | undefined
}

export type Change = {
  readonly availability: number | undefined
  readonly price: number | undefined
  readonly features: readonly string[] | undefined
}

type Checked =
  | { readonly ok: true; readonly change: Change }
  | { readonly ok: false; readonly field: 'availability' | 'price'; readonly reason: string }

export function changeOf({ availability, price, features }: ChangeInput): Checked {
  const rooms = wholeOf(availability, ROOMS_MAX)
  if (rooms === null) return { ok: false, field: 'availability', reason: copy.edit.whole(count(ROOMS_MAX)) }
  const amount = wholeOf(price, PRICE_MAX)
  if (amount === null) return { ok: false, field: 'price', reason: copy.edit.whole(count(PRICE_MAX)) }
  return { ok: true, change: { availability: rooms, price: amount, features } }
}

/** @returns undefined for no text, null for another text than a whole number up to `most` */
function wholeOf(text: string, most: number): number | null | undefined {
  const typed = text.trim()
  if (typed === '') return undefined
  return /^\d{1,10}$/.test(typed) && Number(typed) <= most ? Number(typed) : null
}

export type NightChange = {
  readonly date: string
  /** Undefined without a package, which the write creates. */
  readonly before: CalendarNight | undefined
  readonly after: Pick<CalendarNight, 'availability' | 'price' | 'features'>
  readonly isChanged: boolean
}

export function changesOf(
  dates: readonly string[],
  nights: ReadonlyMap<string, CalendarNight>,
  { availability, price, features }: Change,
): NightChange[] {
  const isGiven = availability !== undefined || price !== undefined || features !== undefined
  return dates.map((date) => {
    const before = nights.get(date)
    const after = {
      availability: availability ?? before?.availability ?? 0,
      price: price ?? before?.price ?? 0,
      features: features ?? before?.features ?? [],
    }
    const isSame =
      before !== undefined &&
      before.availability === after.availability &&
      before.price === after.price &&
      sameNames(before.features, after.features)
    return { date, before, after: { ...after, features: [...after.features] }, isChanged: isGiven && !isSame }
  })
}

/** The order of features has no meaning. */
function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name) => b.includes(name))
}
