'use client'
import { LIMITS } from '@vacancy/shared'
/** What the form of a search shows beside its fields, read after the hits of a run so that it never delays them. */
import type { ArrivalsAnswer } from '@vacancy/shared/contract'
import { EDGE_TARGET } from '@vacancy/shared/snippets'
import { HIT_FIELDS, type JsonFields } from '@vacancy/shared/wire'
import { dayOf } from '../../lib/days.ts'
import { useRoute } from '../../lib/use-route.ts'
import { isSearch } from './catalogue.ts'
import * as copy from './copy.ts'
import { type Draft, withField } from './request.ts'
import type { Done } from './run.ts'

export type Counts = {
  /** How many properties match with this value; undefined where it is not known. */
  of(field: string, value: string): number | undefined
  /** What the numbers are, or why there are none; '' before the first. */
  readonly note: string
}

const NO_DRAFT: Draft = { shard: '', node: '', command: 'SEARCHPROP', fields: {} }

/** Of the matches of the last run, by the values of its filters. */
export function useCounts(done: Done | undefined, draft: Draft): Counts {
  const { data, error, isPlaceholderData } = useRoute('POST /api/v1/query/counts', inputOf(done), {
    group: groupOf(done),
    enabled: isEnabled(done),
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (before) => before,
    retry: false,
  })
  const isOfForm = done !== undefined && isSearch(draft.command) && matchesOf(draft) === matchesOf(done.draft)
  if (!isSearch(draft.command) || !data || error) {
    return { of: () => undefined, note: error && isSearch(draft.command) ? copy.counts.none(error.message) : '' }
  }
  return {
    of(field, value) {
      const counted = data.filters.find((filter) => filter.field === field)
      const known = counted?.values.find((each) => each.value === value)?.count
      return known ?? (counted && !counted.more ? 0 : undefined)
    },
    note: isOfForm && !isPlaceholderData ? copy.counts.of(data.node) : copy.counts.ofLastRun,
  }
}

export type Arrivals = Pick<ArrivalsAnswer, 'days' | 'nights'> & {
  /** That the prices are not those of the form, or why there are none; else ''. */
  readonly note: string
}

/** The cheapest totals around the arrival of the last run; undefined where the form or the run has none. */
export function useArrivals(done: Done | undefined, draft: Draft): Arrivals | undefined {
  const isStay = done?.draft.command === 'SEARCHAVAIL' && nightsOf(done.draft) > 0
  const { data, error, isPlaceholderData } = useRoute('POST /api/v1/query/arrivals', inputOf(done), {
    group: groupOf(done),
    enabled: isStay && isEnabled(done),
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (before) => before,
    retry: false,
  })
  if (!isStay || draft.command !== 'SEARCHAVAIL' || nightsOf(draft) === 0) return undefined
  if (error) return { days: [], nights: 0, note: copy.arrivals.failed(error.message) }
  if (!data) return undefined
  const isOfForm =
    !isPlaceholderData &&
    data.nights === nightsOf(draft) &&
    matchesOf(withField(draft, 'dates', [])) === matchesOf(withField(done.draft, 'dates', []))
  return { ...data, note: isOfForm ? '' : copy.arrivals.ofLastRun }
}

/** Of a stay of consecutive nights, as many as a calendar has; 0 for other dates. */
function nightsOf({ fields: { dates } }: Draft): number {
  if (!Array.isArray(dates) || dates.length > LIMITS.stayNightsMax) return 0
  const days = dates.map((date) => dayOf(String(date)) ?? Number.NaN).sort((a, b) => a - b)
  return days.every((day, n) => day === (days[0] as number) + n) ? days.length : 0
}

/** Not while runs are measured, which it would slow down. */
function isEnabled(done: Done | undefined): boolean {
  return done !== undefined && !done.isRepeating && isSearch(done.draft.command)
}

/** They are read again after each run, but not for each of its pages. */
function groupOf(done: Done | undefined): readonly string[] {
  return ['playground-beside', done?.draft.fields['cursor'] === undefined ? (done?.answer.at ?? '') : '']
}

/** Read where the hits came from. */
function inputOf(done: Done | undefined) {
  const { draft, answer } = done ?? { draft: NO_DRAFT, answer: { shard: '', node: '' } }
  const node = draft.node === '' ? answer.node : draft.node === EDGE_TARGET ? '' : draft.node
  const fields = { ...matchFields(draft.fields) } as never
  return {
    body: { command: draft.command, fields, ...(answer.shard && { shard: answer.shard }), ...(node && { node }) },
  }
}

/** The fields that say what matches. */
function matchFields(fields: JsonFields): JsonFields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !HIT_FIELDS.has(name)))
}

function matchesOf({ shard: _, ...draft }: Draft): string {
  return JSON.stringify({ ...draft, fields: Object.entries(matchFields(draft.fields)).sort() })
}
