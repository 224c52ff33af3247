/** Cluster events: found by comparing two views of a shard, stored for 72 h. */
import { randomUUID } from 'node:crypto'
import type { ClusterEvent, NodeView, ShardView } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { sql } from 'kysely'
import { secondsText } from './figures.ts'
import type { HistoryDatabase } from './tables.ts'
import { createTurns } from './turns.ts'

const EVENTS = {
  keptMs: 72 * 3_600_000,
  rowsMax: 500_000,
  /** Newest events shown on the overview. */
  recentMax: 30,
  waitingMax: 10_000,
  writeMs: 1_000,
  pruneMs: 3_600_000,
} as const

type Found = Omit<ClusterEvent, 'id' | 'at'>

/** What is known of a shard, which its next view is compared with. */
export type Told = {
  /** The last one that was read. */
  readonly view: ShardView
  /** Its last leader, and the term of that. */
  readonly leader: string | null
  readonly term: number | null
  /** Since when it is seen without a leader, in monotonic milliseconds. */
  readonly lostAt: number | undefined
  /** After the start, the nodes of a shard report one after the other. Until then, differences are not changes. */
  readonly isSettled: boolean
}

/** Shorter times without a leader are not measured by polling each second. */
const GAP_LEAST_MS = 1_000

/**
 * Pure. The first view of a shard is not a change, and neither is one of which too little was read: what happened
 * meanwhile is found in the next.
 */
export function changesOf(
  told: Told | undefined,
  view: ShardView,
  now: number,
): { readonly told: Told; readonly found: readonly Found[] } {
  const isUnread = view.state === 'unknown' && view.level === 'unk'
  if (told && isUnread) return { told: { ...told, lostAt: undefined }, found: [] }
  const isLost = view.leader === null
  const next: Told = {
    view,
    leader: isLost ? (told?.leader ?? null) : view.leader,
    term: isLost ? (told?.term ?? null) : view.term,
    lostAt: isLost ? (told?.lostAt ?? (told?.view.leader ? now : undefined)) : undefined,
    isSettled: told?.isSettled === true || (view.state !== 'unknown' && view.state !== 'electing'),
  }
  const lostMs = told?.lostAt === undefined ? 0 : now - told.lostAt
  return { told: next, found: told?.isSettled ? eventsBetween(told.view, view, { ...told, lostMs }) : [] }
}

/** Pure. @param last the leader before, and how long it was gone */
export function eventsBetween(
  before: ShardView,
  after: ShardView,
  { leader, term, lostMs }: Pick<Told, 'leader' | 'term'> & { readonly lostMs: number } = { ...before, lostMs: 0 },
): Found[] {
  const { id: shard } = after
  const found: Found[] = []
  // Led again in the same term, it was not elected again: only its reports were missing. A node may know the term of an
  // election before its leader, so that a later term alone says nothing.
  const isLater = term === null || after.term === null || after.term > term
  const isElected = after.leader !== leader || (before.leader === null && isLater)
  // The first observed leader is not a change.
  if (after.leader !== null && leader !== null && isElected) {
    const gap = lostMs >= GAP_LEAST_MS ? `, writes paused about ${secondsText(lostMs / 1000)}` : ''
    const message =
      leader === after.leader
        ? `${leader} leads ${shard} again${gap}`
        : `leadership of ${shard} moved ${leader} → ${after.leader}${gap}`
    found.push({ shard, node: after.leader, kind: 'leader', level: 'info', message })
  }
  if (before.state !== after.state) {
    found.push({ shard, node: null, kind: 'state', level: after.level, message: `${shard}: ${after.message}` })
  }
  const earlier = new Map(before.nodes.map((node) => [node.id, node]))
  for (const node of after.nodes) {
    const old = earlier.get(node.id)
    earlier.delete(node.id)
    if (!old)
      found.push({
        shard,
        node: node.id,
        kind: 'membership',
        level: 'info',
        message: `${node.id} of ${shard} was discovered`,
      })
    else found.push(...nodeEvents(shard, old, node))
  }
  for (const id of earlier.keys()) {
    found.push({ shard, node: id, kind: 'membership', level: 'info', message: `${id} of ${shard} is no longer known` })
  }
  return found
}

function nodeEvents(shard: string, old: NodeView, node: NodeView): Found[] {
  const found: Found[] = []
  const add = (kind: Found['kind'], level: Found['level'], message: string) =>
    found.push({ shard, node: node.id, kind, level, message })
  const where = `${shard} / ${node.id}`
  if (old.state !== node.state && old.freshness !== 'never') add('state', node.level, `${where}: ${node.message}`)
  if (old.voter !== node.voter && old.voter !== null && node.voter !== null) {
    add('membership', 'info', `${where} is ${node.voter ? 'a voter' : 'no longer a voter'}`)
  }
  if (old.role !== node.role && node.role === 'candidate') add('role', 'info', `${where} started an election`)
  if (old.startedAt !== node.startedAt && old.startedAt !== null && node.startedAt !== null) {
    add('restart', 'info', `${where} restarted, version ${node.version ?? 'not reported'}`)
  }
  if (old.orderedHash !== node.orderedHash && old.orderedHash !== null && node.orderedHash !== null) {
    add('codecs', 'warn', `${where} uses a different codec list`)
  }
  if (old.snapshot?.id !== node.snapshot?.id && old.snapshot !== null && node.snapshot !== null) {
    add('snapshot', 'ok', `${where} saved a snapshot at index ${node.snapshot.lastIndex}`)
  }
  return found
}

/** The newest events, and those not yet stored. */
export type Events = ReturnType<typeof createEvents>

export function createEvents(database: HistoryDatabase, log: Log, wallMs: () => number) {
  const turns = createTurns((error) => log.error({ err: error }, 'storing events failed'))
  return {
    database,
    log,
    wallMs,
    /** Newest first. */
    recent: [] as ClusterEvent[],
    waiting: [] as ClusterEvent[],
    turns,
    timers: [] as NodeJS.Timeout[],
  }
}

async function writeEvents(events: Events): Promise<void> {
  const batch = events.waiting.slice(0, BATCH)
  if (batch.length === 0) return
  await events.database
    .insertInto('cluster_events')
    .values(batch.map((event) => ({ ...event, at: Date.parse(event.at) })))
    .execute()
  events.waiting = events.waiting.slice(batch.length)
}

async function pruneEvents(events: Events): Promise<void> {
  await events.database
    .deleteFrom('cluster_events')
    .where('at', '<', events.wallMs() - EVENTS.keptMs)
    .execute()
  const edge = await events.database
    .selectFrom('cluster_events')
    .select('at')
    .orderBy('at', 'desc')
    .offset(EVENTS.rowsMax)
    .limit(1)
    .executeTakeFirst()
  if (edge) await events.database.deleteFrom('cluster_events').where('at', '<=', edge.at).execute()
}

export function addEvents(events: Events, found: readonly Found[], at: number): void {
  if (found.length === 0) return
  const added = found.map((event) => ({ id: randomUUID(), at: new Date(at).toISOString(), ...event }))
  // Routine snapshots are too frequent for the overview.
  const news = added.filter(({ kind }) => kind !== 'snapshot')
  events.recent = [...news.reverse(), ...events.recent].slice(0, EVENTS.recentMax)
  events.waiting.push(...added)
  if (events.waiting.length > EVENTS.waitingMax) {
    events.log.warn({ dropped: events.waiting.length - EVENTS.waitingMax }, 'event queue full, dropping the oldest')
    events.waiting = events.waiting.slice(-EVENTS.waitingMax)
  }
}

type EventQuery = {
  readonly shard?: string | undefined
  readonly node?: string | undefined
  readonly kinds?: readonly string[] | undefined
  /** Milliseconds, both included. */
  readonly from?: number
  readonly to?: number
  readonly order?: 'newest' | 'oldest'
  readonly limit: number
}

export async function eventsOf(events: Events, wanted: EventQuery): Promise<ClusterEvent[]> {
  await storedEvents(events)
  const { shard, node, kinds, from, to, order = 'newest', limit } = wanted
  let query = events.database.selectFrom('cluster_events').selectAll()
  if (shard !== undefined) query = query.where('shard', '=', shard)
  if (node !== undefined) query = query.where('node', '=', node)
  if (kinds !== undefined) query = query.where('kind', 'in', kinds)
  if (from !== undefined) query = query.where('at', '>=', from)
  if (to !== undefined) query = query.where('at', '<=', to)
  const direction = order === 'newest' ? 'desc' : 'asc'
  const rows = await query.orderBy('at', direction).orderBy('id').limit(limit).execute()
  return rows.map(eventOf)
}

/** Resolves once all events so far are stored. */
async function storedEvents(events: Events): Promise<void> {
  await events.turns('write', () => writeEvents(events))
}

/** Events of each of equally long steps from a time, and how many of them are changes of leader. */
export async function eventDensity(
  events: Events,
  shard: string | undefined,
  range: { readonly from: number; readonly to: number },
  steps: number,
): Promise<{ readonly events: number[]; readonly leaders: number[] }> {
  await storedEvents(events)
  const stepMs = (range.to - range.from) / steps
  const step = sql<number>`cast(floor((at - ${range.from}) / ${stepMs}) as integer)`
  let query = events.database
    .selectFrom('cluster_events')
    .select(({ fn }) => [step.as('step'), 'kind', fn.countAll<number | string>().as('count')])
    .where('at', '>=', range.from)
    .where('at', '<', range.to)
    // As frequent as the clock, they would hide everything else.
    .where('kind', '<>', 'snapshot')
  if (shard !== undefined) query = query.where('shard', '=', shard)
  const rows = await query.groupBy([step, 'kind']).execute()
  const found = { events: new Array<number>(steps).fill(0), leaders: new Array<number>(steps).fill(0) }
  for (const { step, kind, count } of rows) {
    const at = Math.min(steps - 1, Number(step))
    found.events[at] = (found.events[at] ?? 0) + Number(count)
    if (kind === 'leader') found.leaders[at] = (found.leaders[at] ?? 0) + Number(count)
  }
  return found
}

export async function startEvents(events: Events): Promise<void> {
  const rows = await events.database
    .selectFrom('cluster_events')
    .selectAll()
    .where('kind', '<>', 'snapshot')
    .orderBy('at', 'desc')
    .limit(EVENTS.recentMax)
    .execute()
  events.recent = rows.map(eventOf)
  events.timers.push(
    setInterval(() => void storedEvents(events), EVENTS.writeMs),
    setInterval(() => void events.turns('prune', () => pruneEvents(events)), EVENTS.pruneMs),
  )
}

export async function stopEvents(events: Events): Promise<void> {
  for (const timer of events.timers) clearInterval(timer)
  while (events.waiting.length > 0) {
    const before = events.waiting.length
    await storedEvents(events)
    if (events.waiting.length === before) return
  }
}

const BATCH = 100

function eventOf(row: {
  id: string
  at: number
  shard: string
  node: string | null
  kind: string
  level: string
  message: string
}): ClusterEvent {
  const { id, shard, node, message } = row
  const kind = row.kind as ClusterEvent['kind']
  // PostgreSQL returns large numbers as text.
  return {
    id,
    at: new Date(Number(row.at)).toISOString(),
    shard,
    node,
    kind,
    level: row.level as ClusterEvent['level'],
    message,
  }
}
