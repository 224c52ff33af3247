/** Which dead jobs are shown, redriven or deleted: in the URL, and in requests. Pure. */
import type { DeadFilter } from '@vacancy/shared/contract'

/** As typed. */
export type DeadFields = {
  readonly group: string
  readonly error: string
  readonly failures: string
  readonly after: string
  readonly before: string
}
export const DEAD_FIELDS = ['group', 'error', 'failures', 'after', 'before'] as const satisfies (keyof DeadFields)[]

export type DeadQuery = {
  readonly group?: string
  readonly error?: string
  readonly minFailures?: number
  readonly after?: string
  readonly before?: string
}

/** Fields that are empty or not complete yet do not filter. */
export function deadQuery({ group, error, failures, after, before }: DeadFields): DeadQuery {
  const [from, to] = [timeOf(after), timeOf(before)]
  return {
    ...(group !== '' && { group }),
    ...(error !== '' && { error }),
    ...(/^\d{1,6}$/.test(failures) && { minFailures: Number(failures) }),
    ...(from !== undefined && { after: from }),
    ...(to !== undefined && { before: to }),
  }
}

/** `2026-11-20 18:30`, in UTC. */
export function timeOf(text: string): string | undefined {
  const at = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(text)
    ? Date.parse(`${text.slice(0, 16).replace(' ', 'T')}:00Z`)
    : Number.NaN
  return Number.isNaN(at) ? undefined : new Date(at).toISOString()
}

export const isFiltering = (query: DeadQuery): boolean => Object.keys(query).length > 0

/** What a redrive or a deletion is about. */
export type DeadSelection =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'filter'; readonly filter: DeadQuery }

type SelectionBody = { readonly ids: string[] } | { readonly filter: DeadFilter; readonly limit: number }

/**
 * The selection as a request. A filter is limited to jobs that died before `until`: those that fail again meanwhile would
 * be redriven without end.
 */
export function selectionBody(selection: DeadSelection, until: string, limit: number): SelectionBody {
  if (selection.kind === 'ids') return { ids: [...selection.ids] }
  const { filter } = selection
  const before = filter.before === undefined || filter.before > until ? until : filter.before
  return { filter: { ...filter, before }, limit }
}
