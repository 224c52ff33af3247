/**
 * Who led each shard from when to when, as this control plane saw it, kept for 72 h. A stretch that no look covers is in
 * no span: nobody knows who led then, and nothing is filled in.
 */
import { SHARD_LEADERSHIP, type ShardLeadership, type ShardView } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { Database } from '../database.ts'

export const LEADERSHIP = {
  keptMs: 72 * 3_600_000,
  rowsMax: 500_000,
  /** A crash forgets at most this much. */
  writeMs: 10_000,
  pruneMs: 3_600_000,
  waitingMax: 10_000,
} as const
/** Looks that stood still longer than this (a machine that slept) leave a stretch that is not known. */
const SLEPT_MS = 6 * LEADERSHIP.writeMs
/** Who leads and in which term are two answers of a node: for so long the second may still be that of before. */
const SETTLE_MS = 5_000
const BATCH = 100

/** Milliseconds; a null leader: those who answered named none. */
export type LeaderSpan = {
  readonly from: number
  readonly to: number
  readonly leader: string | null
  readonly term: number | null
}

type Row = { shard: string; from_at: number; to_at: number; leader: string | null; term: number | null }

export type Leadership = {
  /** Takes a shard as it is seen now; with `known` false nothing can be said of its leader yet. */
  look(shard: Pick<ShardView, 'id' | 'leader' | 'term'>, known: boolean): void
  gone(shard: string): void
  of(shard: string): Promise<ShardLeadership>
  start(): void
  stop(): Promise<void>
}

export function createLeadership(database: Database, log: Log, wallMs: () => number): Leadership {
  /** What goes on now, and has no end yet; `to_at` is when it was last seen to go on. */
  const open = new Map<string, Row>()
  let ended: Row[] = []
  let writing = Promise.resolve()
  const timers: NodeJS.Timeout[] = []

  function end(shard: string, at: number): void {
    const row = open.get(shard)
    if (!row) return
    open.delete(shard)
    ended.push({ ...row, to_at: endOf(row, at) })
    if (ended.length > LEADERSHIP.waitingMax) {
      log.warn({ dropped: ended.length - LEADERSHIP.waitingMax }, 'leaders change faster than they can be written')
      ended = ended.slice(-LEADERSHIP.waitingMax)
    }
  }

  /** Everything that goes on was seen to go on until now. */
  function goOn(): void {
    const now = wallMs()
    for (const [shard, row] of open) {
      if (now - row.to_at > SLEPT_MS) {
        end(shard, now)
        open.set(shard, { ...row, from_at: now, to_at: now })
      } else row.to_at = Math.max(row.to_at, now)
    }
  }

  async function write(): Promise<void> {
    const done = ended.slice(0, LEADERSHIP.waitingMax)
    const rows = [...done, ...open.values()]
    for (let at = 0; at < rows.length; at += BATCH) {
      await database
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
    ended = ended.filter((row) => !written.has(row))
  }

  async function prune(): Promise<void> {
    await database
      .deleteFrom('leadership')
      .where('to_at', '<', wallMs() - LEADERSHIP.keptMs)
      .execute()
    const edge = await database
      .selectFrom('leadership')
      .select('from_at')
      .orderBy('from_at', 'desc')
      .offset(LEADERSHIP.rowsMax)
      .limit(1)
      .executeTakeFirst()
    if (edge) await database.deleteFrom('leadership').where('from_at', '<=', edge.from_at).execute()
  }

  /** What cannot be written now is tried again with the next. */
  function soon(work: () => Promise<void>): void {
    writing = writing.then(work).catch((error) => log.error({ err: error }, 'leadership could not be written'))
  }

  return {
    look({ id, leader, term }, known) {
      const now = wallMs()
      const row = open.get(id)
      if (!known) return end(id, now)
      if (row?.leader === leader) {
        // A later term of the same leader is another election that it won; one that is told late is the same.
        const isLater = leader !== null && row.term !== null && term !== null && term > row.term
        if (!isLater || now - row.from_at < SETTLE_MS) {
          if (isLater || row.term === null) row.term = leader === null ? null : term
          return
        }
      }
      end(id, now)
      const from = freeFrom(id, now)
      open.set(id, { shard: id, from_at: from, to_at: from, leader, term: leader === null ? null : term })
    },
    gone: (shard) => end(shard, wallMs()),
    async of(shard) {
      goOn()
      const to = wallMs()
      const from = to - SHARD_LEADERSHIP.hours * 3_600_000
      const rows = await database
        .selectFrom('leadership')
        .selectAll()
        .where('shard', '=', shard)
        .where('to_at', '>', from)
        .orderBy('from_at', 'desc')
        .limit(SHARD_LEADERSHIP.spansMax)
        .execute()
      // What is not written down yet, over what is.
      const spans = new Map(rows.map((row) => [Number(row.from_at), spanOf(row)]))
      for (const row of [...ended, ...open.values()]) if (row.shard === shard) spans.set(row.from_at, spanOf(row))
      return leadershipOf([...spans.values()], from, to)
    },
    start() {
      timers.push(
        setInterval(() => {
          goOn()
          soon(write)
        }, LEADERSHIP.writeMs),
        setInterval(() => soon(prune), LEADERSHIP.pruneMs),
      )
    },
    async stop() {
      for (const timer of timers) clearInterval(timer)
      goOn()
      for (const shard of [...open.keys()]) end(shard, wallMs())
      soon(write)
      await writing
    },
  }

  /** Two spans of a shard never begin at once, however fast they follow each other. */
  function freeFrom(shard: string, now: number): number {
    const last = ended.findLast((row) => row.shard === shard)
    return last && last.from_at >= now ? last.from_at + 1 : now
  }
}

/** What nobody looked at for long is not said to have gone on until now. */
function endOf(row: Row, at: number): number {
  return at - row.to_at > SLEPT_MS ? row.to_at : Math.max(row.to_at, at)
}

/** PostgreSQL gives large numbers as text. */
function spanOf({ from_at, to_at, leader, term }: Row): LeaderSpan {
  return { from: Number(from_at), to: Number(to_at), leader, term: term === null ? null : Number(term) }
}

/**
 * What a stretch of time shows of some spans. Pure.
 *
 * An election is a leader that follows another, or the same one in another term, or a time without any. It is counted
 * where it was seen to end: the first leader that is known was elected before.
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

/** The same leader in another term; the term of a span that was cut short may still be that of the leader before. */
function isReelected(last: LeaderSpan, next: LeaderSpan): boolean {
  if (last.term === null || next.term === null || last.to - last.from < SETTLE_MS) return false
  return last.term !== next.term
}
