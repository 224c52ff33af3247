/** What a live tail has shown so far. Pure. */
import type { TailEvent } from '@vacancy/shared/contract'

/** As many as the server keeps for a tail; older ones are dropped. */
const EVENTS_MAX = 200

export type Tail = {
  readonly cursor: string
  /** Newest first. */
  readonly events: readonly TailEvent[]
  /** Since the tail was opened. */
  readonly skipped: number
}

type TailPage = { readonly cursor: string; readonly events: readonly TailEvent[]; readonly skipped: number }

/** With a page added. A page of another tail, after a restart of the queue, begins with other numbers. */
export function tailAfter(before: Tail | undefined, page: TailPage): Tail {
  const isSame = before !== undefined && epochOf(before.cursor) === epochOf(page.cursor)
  const known = isSame ? before.events : []
  return {
    cursor: page.cursor,
    events: [...page.events.toReversed(), ...known].slice(0, EVENTS_MAX),
    skipped: (before?.skipped ?? 0) + page.skipped,
  }
}

const epochOf = (cursor: string): string => cursor.split('.')[0] ?? ''
