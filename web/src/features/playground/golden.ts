/** The form of a golden search as texts, and the request body it stands for. Pure. */
import type { GoldenSearch, RouteInput } from '@vacancy/shared/contract'
import { dayOf } from '../../lib/days.ts'
import { golden as copy } from './golden-copy.ts'

type GoldenBody = RouteInput<'POST /api/v1/golden-searches'>['body']
/** A search that can be a golden one. */
export type GoldenRequest = Pick<GoldenSearch, 'shard' | 'command' | 'fields'>

export type GoldenForm = {
  readonly name: string
  readonly atLeast: string
  readonly contains: string
  readonly p99Ms: string
  /** The dates move with the day. */
  readonly moves: boolean
}

const IDS_MAX = 20
const AHEAD_MAX = 365
/** What continues another search, waits for the log of one shard, or is only looked at. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...['cursor', 'minIndex', 'maxStalenessMs', 'linearizable', 'explain', 'trace'],
])

export function formOf({ name, expect, daysAhead }: Pick<GoldenSearch, 'name' | 'expect' | 'daysAhead'>): GoldenForm {
  const { atLeast, contains, p99Ms } = expect
  return {
    name,
    atLeast: atLeast === null ? '' : String(atLeast),
    contains: contains.join(' '),
    p99Ms: p99Ms === null ? '' : String(p99Ms),
    moves: daysAhead !== null,
  }
}

/** Days from today to the first date; undefined for a search without dates to come. */
export function daysAheadOf({ fields }: Pick<GoldenRequest, 'fields'>, today: number): number | undefined {
  const days = [fields['dates'] ?? []].flat().flatMap((date) => dayOf(String(date)) ?? [])
  if (days.length === 0) return undefined
  const ahead = Math.min(...days) - today
  return ahead >= 0 && ahead <= AHEAD_MAX ? ahead : undefined
}

/** @param daysAhead of dates that move with the day */
export function bodyOf(
  request: GoldenRequest,
  form: GoldenForm,
  daysAhead: number | undefined,
): { readonly ok: true; readonly body: GoldenBody } | { readonly ok: false; readonly reason: string } {
  const refused = (reason: string) => ({ ok: false as const, reason })
  const numbers = [
    [form.atLeast, copy.atLeast, /^[1-9]\d*$/],
    [form.p99Ms, copy.p99, /^(?!0*\.?0*$)\d+(?:\.\d+)?$/],
  ] as const
  for (const [text, label, pattern] of numbers) {
    if (text.trim() !== '' && !pattern.test(text.trim())) return refused(copy.notNumber(label))
  }
  const [atLeast = null, p99Ms = null] = numbers.map(([text]) => (text.trim() === '' ? null : Number(text)))
  const contains = [...new Set(form.contains.split(/[\s,;]+/).filter((id) => id !== ''))]
  if (contains.length > IDS_MAX) return refused(copy.tooManyIds)
  if (atLeast === null && p99Ms === null && contains.length === 0) return refused(copy.expectFirst)
  const { shard, command } = request
  const fields = Object.fromEntries(Object.entries(request.fields).filter(([name]) => !LEFT_OUT.has(name)))
  return {
    ok: true,
    body: {
      ...{ shard, command, fields, name: form.name.trim() },
      daysAhead: form.moves ? (daysAhead ?? null) : null,
      expect: { atLeast, contains, p99Ms },
    },
  }
}
