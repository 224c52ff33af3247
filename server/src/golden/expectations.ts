/** What a golden search expects, and whether a result is that. Pure. */
import { formatDay, groupDigits, packPropertyId, parseDay } from '@vacancy/shared'
import type { Expectation, GoldenOutcome } from '@vacancy/shared/contract'
import type { RequestFields } from '@vacancy/shared/wire'

/** What a search found, and the microseconds that the node took for each run; or why it was refused. */
export type Found =
  | { readonly ids: readonly string[]; readonly isCut: boolean; readonly micros: readonly number[] }
  | { readonly refused: string }

/** Property ids that are named one by one. */
const IDS_NAMED = 3

export function judge(expect: Expectation, found: Found): GoldenOutcome {
  if ('refused' in found) {
    return { verdict: 'failed', message: `refused: ${found.refused}`, count: null, p99Ms: null }
  }
  const has = new Set(found.ids.map(keyOf))
  const { size } = has
  const missing = expect.contains.filter((id) => !has.has(keyOf(id)))
  const p99Ms = expect.p99Ms === null ? null : p99Of(found.micros)
  const isShort = expect.atLeast !== null && size < expect.atLeast
  const isSlow = p99Ms !== null && expect.p99Ms !== null && p99Ms > expect.p99Ms
  const all = `finds ${groupDigits(size)} ${size === 1 ? 'property' : 'properties'}`
  const message = [
    isShort
      ? `${all}${found.isCut ? ', the limit of its reply' : ''}, at least ${groupDigits(expect.atLeast ?? 0)} expected`
      : all,
    ...(missing.length > 0 ? [`without ${named(missing)}`] : []),
    ...(p99Ms === null
      ? []
      : [`p99 ${msText(p99Ms)}${isSlow ? `, at most ${msText(expect.p99Ms ?? 0)} expected` : ''}`]),
  ].join('; ')
  return { verdict: isShort || missing.length > 0 ? 'failed' : isSlow ? 'slow' : 'passed', message, count: size, p99Ms }
}

/** Ids are compared as they are stored: a UUID has two spellings. */
function keyOf(id: string): string {
  return packPropertyId(id)?.join() ?? id
}

function named(ids: readonly string[]): string {
  const more = ids.length - IDS_NAMED
  return `${ids.slice(0, IDS_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** The least time that 99 of 100 runs did not exceed. */
export function p99Of(micros: readonly number[]): number | null {
  const sorted = [...micros].sort((a, b) => a - b)
  const at = sorted[Math.ceil(sorted.length * 0.99) - 1]
  return at === undefined ? null : at / 1_000
}

function msText(ms: number): string {
  return `${Number(ms.toPrecision(3))} ms`
}

/** The fields on a day: with `daysAhead` the first date is that long after it, and the others keep their distance. */
export function fieldsOn(fields: RequestFields, daysAhead: number | null, today: number): RequestFields {
  const days = daysOf(fields)
  if (daysAhead === null || days.length === 0) return fields
  const shift = today + daysAhead - Math.min(...days)
  return { ...fields, dates: days.map((day) => formatDay(day + shift)) }
}

/** The days of a search; none when it has no dates. */
export function daysOf({ dates }: RequestFields): number[] {
  return Array.isArray(dates) ? dates.flatMap((date) => parseDay(String(date)) ?? []) : []
}
