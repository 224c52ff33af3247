/**
 * The leaders of each shard over time, as observed by this control plane, stored for 72 h. Times without observations
 * are in no span: the leader is unknown then, and nothing is filled in.
 */
import { SHARD_LEADERSHIP, type ShardLeadership, type ShardView } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { HistoryDatabase } from './tables.ts'
import { createTurns } from './turns.ts'

const LEADERSHIP = {
  keptMs: 72 * 3_600_000,
  rowsMax: 500_000,
  /** A crash loses at most this much. */
  writeMs: 10_000,
  pruneMs: 3_600_000,
  waitingMax: 10_000,
} as const
/** Longer pauses between observations, such as a suspended machine, leave an unknown time. */
const SLEPT_MS = 6 * LEADERSHIP.writeMs
/** Nodes report leader and term in two responses: the term may be outdated for this long. */
const SETTLE_MS = 5_000
const BATCH = 100

/** Milliseconds. A null leader: the responding nodes named none. */
export type LeaderSpan = {
  readonly from: number
  readonly to: number
  readonly leader: string | null
  readonly term: number | null
}

type Row = { shard: string; from_at: number; to_at: number; leader: string | null; term: number | null }

/** Spans of all shards that are not yet stored. */
export type Leadership = ReturnType<typeof createLeadership>

export function createLeadership(database: HistoryDatabase, log: Log, wallMs: () => number) {
  return {
    database,
    log,
    wallMs,
    /** Open spans; `to_at` is when each was last observed. */
    open: new Map<string, Row>(),
    /** Terms above that of the open span, which may belong to the next leader. */
    later: new Map<string, { readonly term: number; readonly at: number }>(),
    ended: [] as Row[],
    turns: createTurns((error) => log.error({ err: error }, 'storing leadership failed')),
    timers: [] as NodeJS.Timeout[],
  }
}

function endSpan(leadership: Leadership, shard: string, at: number): void {
  const row = leadership.open.get(shard)
  if (!row) return
  leadership.open.delete(shard)
  leadership.ended.push({ ...row, to_at: endOf(row, at) })
  if (leadership.ended.length > LEADERSHIP.waitingMax) {
    leadership.log.warn(
      { dropped: leadership.ended.length - LEADERSHIP.waitingMax },
      'leadership queue full, dropping the oldest',
    )
    leadership.ended = leadership.ended.slice(-LEADERSHIP.waitingMax)
  }
}

/** Extends every open span to now. */
function extendSpans(leadership: Leadership): void {
  const now = leadership.wallMs()
  for (const [shard, row] of leadership.open) {
    if (now - row.to_at > SLEPT_MS) {
      endSpan(leadership, shard, now)
      leadership.open.set(shard, { ...row, from_at: now, to_at: now })
    } else row.to_at = Math.max(row.to_at, now)
  }
}

async function writeSpans(leadership: Leadership): Promise<void> {
  const done = leadership.ended.slice(0, LEADERSHIP.waitingMax)
  const rows = [...done, ...leadership.open.values()]
  for (let at = 0; at < rows.length; at += BATCH) {
    await leadership.database
      .insertInto('leadership')
      .values(rows.slice(at, at + BATCH))
      .onConflict((conflict) =>
        conflict.columns(['shard', 'from_at']).doUpdateSet((given) => ({
          to_at: given.ref('excluded.to_at'),
          leader: given.ref('excluded.leader'),
          term: given.ref('excluded.term'),
        })),
      )
      .execute()
  }
  const written = new Set(done)
  leadership.ended = leadership.ended.filter((row) => !written.has(row))
}

async function pruneSpans(leadership: Leadership): Promise<void> {
  await leadership.database
    .deleteFrom('leadership')
    .where('to_at', '<', leadership.wallMs() - LEADERSHIP.keptMs)
    .execute()
  const edge = await leadership.database
    .selectFrom('leadership')
    .select('from_at')
    .orderBy('from_at', 'desc')
    .offset(LEADERSHIP.rowsMax)
    .limit(1)
    .executeTakeFirst()
  if (edge) await leadership.database.deleteFrom('leadership').where('from_at', '<=', edge.from_at).execute()
}

/** Failed writes are retried with the next ones. */
function stored(leadership: Leadership): Promise<void> {
  return leadership.turns('write', () => writeSpans(leadership))
}

/** A leader was elected again: its span is split where the later term was first observed. */
function leadsOn(leadership: Leadership, row: Row, { term, at }: { readonly term: number; readonly at: number }): void {
  const { shard, leader, to_at } = row
  leadership.later.delete(shard)
  leadership.open.delete(shard)
  leadership.ended.push({ ...row, to_at: at })
  leadership.open.set(shard, {
    shard,
    from_at: freeFrom(leadership, shard, at),
    to_at: Math.max(to_at, at),
    leader,
    term,
  })
}

/** Two spans of a shard never have the same start, however fast they follow each other. */
function freeFrom(leadership: Leadership, shard: string, now: number): number {
  const last = leadership.ended.findLast((row) => row.shard === shard)
  return last && last.from_at >= now ? last.from_at + 1 : now
}

/** Records the current view of a shard; with `known` false its leader is unknown. */
export function observeLeader(
  leadership: Leadership,
  { id, leader, term }: Pick<ShardView, 'id' | 'leader' | 'term'>,
  known: boolean,
): void {
  const now = leadership.wallMs()
  const row = leadership.open.get(id)
  const later = leadership.later.get(id)
  if (row?.leader === leader && known) {
    // A later term of the same leader is another election that it won, unless the term was only reported late.
    const isLater = leader !== null && row.term !== null && term !== null && term > row.term
    if (!isLater || now - row.from_at < SETTLE_MS) {
      if (isLater || row.term === null) row.term = leader === null ? null : term
      return
    }
    // Nodes know the term of an election before its leader: it is the term of this leader only if it continues in it.
    if (later?.term !== term) leadership.later.set(id, { term, at: now })
    else if (now - later.at >= SETTLE_MS) leadsOn(leadership, row, later)
    return
  }
  if (row && later && term !== null && term > later.term) leadsOn(leadership, row, later)
  leadership.later.delete(id)
  endSpan(leadership, id, now)
  if (!known) return
  const from = freeFrom(leadership, id, now)
  leadership.open.set(id, { shard: id, from_at: from, to_at: from, leader, term: leader === null ? null : term })
}

export function forgetLeader(leadership: Leadership, shard: string): void {
  endSpan(leadership, shard, leadership.wallMs())
}

/** @param end the last moment of the 24 h; now without one */
export async function shardLeadership(
  leadership: Leadership,
  shard: string,
  end = Number.POSITIVE_INFINITY,
): Promise<ShardLeadership> {
  extendSpans(leadership)
  const to = Math.min(leadership.wallMs(), end)
  const from = to - SHARD_LEADERSHIP.hours * 3_600_000
  // The newest spans may start a few milliseconds after now, so that no two have the same start.
  const isPast = end < leadership.wallMs()
  let query = leadership.database
    .selectFrom('leadership')
    .selectAll()
    .where('shard', '=', shard)
    .where('to_at', '>', from)
  if (isPast) query = query.where('from_at', '<', to)
  const rows = await query.orderBy('from_at', 'desc').limit(SHARD_LEADERSHIP.spansMax).execute()
  // Spans that are not yet stored override stored ones.
  const spans = new Map(rows.map((row) => [Number(row.from_at), spanOf(row)]))
  for (const row of [...leadership.ended, ...leadership.open.values()])
    if (row.shard === shard && !(isPast && row.from_at >= to)) spans.set(row.from_at, spanOf(row))
  return leadershipOf([...spans.values()], from, to)
}

export function startLeadership(leadership: Leadership): void {
  leadership.timers.push(
    setInterval(() => {
      extendSpans(leadership)
      void stored(leadership)
    }, LEADERSHIP.writeMs),
    setInterval(() => void leadership.turns('prune', () => pruneSpans(leadership)), LEADERSHIP.pruneMs),
  )
}

export async function stopLeadership(leadership: Leadership): Promise<void> {
  for (const timer of leadership.timers) clearInterval(timer)
  extendSpans(leadership)
  for (const shard of [...leadership.open.keys()]) endSpan(leadership, shard, leadership.wallMs())
  await stored(leadership)
}

/** A span that was not observed for long does not extend to now. */
function endOf(row: Row, at: number): number {
  return at - row.to_at > SLEPT_MS ? row.to_at : Math.max(row.to_at, at)
}

/** PostgreSQL returns large numbers as text. */
function spanOf({ from_at, to_at, leader, term }: Row): LeaderSpan {
  return { from: Number(from_at), to: Number(to_at), leader, term: term === null ? null : Number(term) }
}

/**
 * Summarizes the spans in a range of time. Pure.
 *
 * An election is a new leader, the same leader in another term, or a leader after a time without one. It is counted at
 * its end: the first known leader was elected before.
 */
export function leadershipOf(spans: readonly LeaderSpan[], from: number, to: number): ShardLeadership {
  const all = spans.filter((span) => span.to >= from).toSorted((a, b) => a.from - b.from)
  const shown = all.slice(-SHARD_LEADERSHIP.spansMax)
  const within = (ms: number) => Math.min(Math.max(ms, from), to)
  let elections = 0
  let gap: number | null = null
  let last: LeaderSpan | undefined
  let isLost = false
  for (const span of shown) {
    if (span.leader === null) {
      gap = Math.max(gap ?? 0, within(span.to) - within(span.from))
      isLost = true
      continue
    }
    const isOther = last !== undefined && (last.leader !== span.leader || isReelected(last, span))
    if (isOther || isLost) elections++
    isLost = false
    last = span
  }
  const time = (ms: number) => new Date(ms).toISOString()
  return {
    from: time(from),
    to: time(to),
    spans: shown.map(({ leader, term, ...span }) => ({
      ...{ from: time(within(span.from)), to: time(within(span.to)), leader, term },
    })),
    elections,
    longestGapMs: gap,
    knownMs: shown.reduce((known, span) => known + within(span.to) - within(span.from), 0),
    isCut: all.length >= SHARD_LEADERSHIP.spansMax,
  }
}

/** The same leader in another term. The term of a very short span may be that of the previous leader. */
function isReelected(last: LeaderSpan, next: LeaderSpan): boolean {
  if (last.term === null || next.term === null || last.to - last.from < SETTLE_MS) return false
  return last.term !== next.term
}
