/**
 * The state of the cluster at any moment of the last 72 h: a picture of all shards each minute, and one of a shard each
 * time it changed in between; of the fabric one every five minutes and after each change. The state at a moment is the
 * picture before it, with the changes up to it (docs/design/control-plane.md#the-past). Times without pictures were not
 * observed and are never filled in.
 */
import { promisify } from 'node:util'
import { deflate, inflate } from 'node:zlib'
import type { NodeView, ShardView, TopologyView } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { HistoryDatabase } from './tables.ts'
import { createTurns, type Turns } from './turns.ts'

export const PICTURES = {
  keptMs: 72 * 3_600_000,
  bytesMax: 512 << 20,
  everyMs: 60_000,
  /** Of the fabric, which is large and changes rarely. */
  fabricEveryMs: 300_000,
  /** A state is known this long after a picture: one may come late, or fail once. */
  knownMs: 150_000,
  /** Waiting documents, while the database does not respond. */
  waitingMax: 2_000,
  writeMs: 1_000,
  pruneMs: 3_600_000,
} as const
/** Deleted at once when there are too many bytes. */
const PRUNED_MS = 3_600_000
const BATCH = 50
/** The picture of the whole cluster; shards have names. */
const WHOLE = ''
/** The picture of the fabric: no name has a line break. */
const FABRIC = '\nfabric'

const pack = promisify(deflate)
const unpack = promisify(inflate)

type Waiting = {
  readonly shard: string
  readonly at: number
  readonly value: ShardView | readonly ShardView[] | TopologyView | null
}

export type Pictures = {
  readonly database: HistoryDatabase
  readonly log: Log
  readonly wallMs: () => number
  /** By shard: what it was when it was last recorded. */
  readonly known: Map<string, string>
  /** When all shards were last recorded; undefined until the first time. */
  wholeAt: number | undefined
  /** The fabric when it was last recorded. */
  fabric: { readonly at: number; readonly state: string } | undefined
  waiting: Waiting[]
  readonly turns: Turns
  readonly timers: NodeJS.Timeout[]
}

export function createPictures(database: HistoryDatabase, log: Log, wallMs: () => number): Pictures {
  return {
    ...{ database, log, wallMs, known: new Map(), wholeAt: undefined, fabric: undefined, waiting: [] },
    timers: [],
    turns: createTurns((error) => log.error({ err: error }, 'storing pictures failed')),
  }
}

/** Records a shard when it differs from its last picture in more than figures. */
export function recordShard(pictures: Pictures, view: ShardView): void {
  const state = stateOf(view)
  if (pictures.known.get(view.id) === state) return
  pictures.known.set(view.id, state)
  // The first picture of all shards contains it.
  if (pictures.wholeAt !== undefined) add(pictures, { shard: view.id, at: pictures.wallMs(), value: view })
}

export function recordGone(pictures: Pictures, shard: string): void {
  if (!pictures.known.delete(shard) || pictures.wholeAt === undefined) return
  add(pictures, { shard, at: pictures.wallMs(), value: null })
}

/** Records all shards, once a minute. */
export function recordAll(pictures: Pictures, views: readonly ShardView[]): void {
  const at = pictures.wallMs()
  if (pictures.wholeAt !== undefined && at - pictures.wholeAt < PICTURES.everyMs && at >= pictures.wholeAt) return
  pictures.wholeAt = at
  for (const view of views) pictures.known.set(view.id, stateOf(view))
  add(pictures, { shard: WHOLE, at, value: views })
}

/** Records the fabric when it differs from its last picture in more than figures, and every five minutes. */
export function recordFabric(pictures: Pictures, view: TopologyView): void {
  const at = pictures.wallMs()
  const state = fabricState(view)
  const { fabric } = pictures
  if (fabric?.state === state && at - fabric.at < PICTURES.fabricEveryMs && at >= fabric.at) return
  pictures.fabric = { at, state }
  add(pictures, { shard: FABRIC, at, value: view })
}

function add(pictures: Pictures, one: Waiting): void {
  pictures.waiting.push(one)
  const { waiting } = pictures
  if (waiting.length <= PICTURES.waitingMax) return
  pictures.log.warn({ dropped: waiting.length - PICTURES.waitingMax }, 'picture queue full, dropping the oldest')
  pictures.waiting = waiting.slice(-PICTURES.waitingMax)
}

/** Everything that is not a figure: figures change with every report, and are those of the last minute. */
function stateOf(view: ShardView): string {
  const { id, zone, mode, state, level, leader, term, voters, votersUp, operation, change, lastChange } = view
  return JSON.stringify([
    ...[id, zone, mode, state, level, withoutFigures(view.message), leader, term, voters, votersUp],
    ...[operation, change, lastChange, view.nodes.map(nodeState)],
  ])
}

function nodeState(node: NodeView): readonly unknown[] {
  const { id, role, voter, state, level, rule, freshness, error, namesLeader, version, startedAt } = node
  return [
    ...[id, role, voter, state, level, withoutFigures(node.message), rule.number, freshness === 'gone', error?.code],
    ...[namesLeader, version, startedAt, node.orderedHash, node.snapshot?.id, node.apiUrl],
    node.reasons.map(({ reason }) => reason),
  ]
}

function fabricState({ registry, components, edges, shards }: TopologyView): string {
  return JSON.stringify([
    registry,
    components.map((one) => [
      ...[one.key, one.state, one.level, withoutFigures(one.message), one.version, one.registered],
      ...[one.lateSince !== null, one.differences, one.reasons.map(({ name }) => name), one.cuts],
    ]),
    edges.map(({ from, to, state, level }) => [from, to, state, level]),
    shards.map(({ id, zone, served }) => [id, zone, served]),
  ])
}

function withoutFigures(message: string): string {
  return message.replace(/[\d,.]+/g, '#')
}

async function writePictures(pictures: Pictures): Promise<void> {
  while (pictures.waiting.length > 0) {
    const batch = pictures.waiting.slice(0, BATCH)
    const rows = []
    for (const { shard, at, value } of batch) {
      const document = value === null ? '' : (await pack(JSON.stringify(value))).toString('base64')
      rows.push({ shard, at, bytes: document.length, document })
    }
    // Two changes of a shard within a millisecond: the later one counts.
    const last = new Map(rows.map((row) => [`${row.shard}\n${row.at}`, row]))
    await pictures.database
      .insertInto('cluster_pictures')
      .values([...last.values()])
      .onConflict((conflict) =>
        conflict.columns(['shard', 'at']).doUpdateSet((given) => ({
          bytes: given.ref('excluded.bytes'),
          document: given.ref('excluded.document'),
        })),
      )
      .execute()
    const written = new Set(batch)
    pictures.waiting = pictures.waiting.filter((one) => !written.has(one))
  }
}

async function prunePictures(pictures: Pictures): Promise<void> {
  const { database } = pictures
  await database
    .deleteFrom('cluster_pictures')
    .where('at', '<', pictures.wallMs() - PICTURES.keptMs)
    .execute()
  for (;;) {
    const { bytes, oldest } = await database
      .selectFrom('cluster_pictures')
      .select(({ fn }) => [fn.sum<number | string | null>('bytes').as('bytes'), fn.min('at').as('oldest')])
      .executeTakeFirstOrThrow()
    if (Number(bytes ?? 0) <= PICTURES.bytesMax) return
    await database
      .deleteFrom('cluster_pictures')
      .where('at', '<', Number(oldest) + PRUNED_MS)
      .execute()
  }
}

export function startPictures(pictures: Pictures): void {
  pictures.timers.push(
    setInterval(() => void stored(pictures), PICTURES.writeMs),
    setInterval(() => void pictures.turns('prune', () => prunePictures(pictures)), PICTURES.pruneMs),
  )
}

export async function stopPictures(pictures: Pictures): Promise<void> {
  for (const timer of pictures.timers) clearInterval(timer)
  await stored(pictures)
}

/** All shards at a moment, by id; undefined when nothing was recorded shortly before it. */
export type PastState = {
  readonly at: number
  /** Of the figures. */
  readonly picturedAt: number
  readonly shards: readonly ShardView[]
}

/** Resolves once all pictures so far are stored. Failed writes are retried with the next ones. */
async function stored(pictures: Pictures): Promise<void> {
  await pictures.turns('write', () => writePictures(pictures))
}

export async function pastState(pictures: Pictures, at: number): Promise<PastState | undefined> {
  await stored(pictures)
  const whole = await lastPicture(pictures, WHOLE, at)
  if (!whole || at - whole.at > PICTURES.knownMs) return undefined
  const { at: picturedAt } = whole
  const changes = await pictures.database
    .selectFrom('cluster_pictures')
    .select(['shard', 'document'])
    .where('shard', 'not in', [WHOLE, FABRIC])
    .where('at', '>=', picturedAt)
    .where('at', '<=', at)
    .orderBy('at')
    .execute()
  const shards = new Map(((await read(whole.document)) as ShardView[]).map((view) => [view.id, view]))
  // Only the last change of a shard counts.
  for (const [shard, document] of new Map(changes.map(({ shard, document }) => [shard, document]))) {
    if (document === '') shards.delete(shard)
    else shards.set(shard, (await read(document)) as ShardView)
  }
  return { at, picturedAt, shards: [...shards.values()].sort((a, b) => (a.id < b.id ? -1 : 1)) }
}

/** The fabric at a moment; undefined when the cluster, or the fabric, was not recorded shortly before it. */
export async function pastFabric(pictures: Pictures, at: number): Promise<TopologyView | undefined> {
  await stored(pictures)
  const [whole, last] = await Promise.all([lastPicture(pictures, WHOLE, at), lastPicture(pictures, FABRIC, at)])
  if (!whole || at - whole.at > PICTURES.knownMs) return undefined
  if (!last || at - last.at > PICTURES.fabricEveryMs + PICTURES.knownMs) return undefined
  return (await read(last.document)) as TopologyView
}

async function lastPicture({ database }: Pictures, shard: string, at: number) {
  const row = await database
    .selectFrom('cluster_pictures')
    .select(['at', 'document'])
    .where('shard', '=', shard)
    .where('at', '<=', at)
    .orderBy('at', 'desc')
    .limit(1)
    .executeTakeFirst()
  // PostgreSQL returns large numbers as text.
  return row && { at: Number(row.at), document: row.document }
}

async function read(document: string): Promise<unknown> {
  return JSON.parse((await unpack(Buffer.from(document, 'base64'))).toString())
}

/** When the first picture was recorded, of all or of those since a moment; undefined before that. */
export async function firstPicture(pictures: Pictures, since = 0): Promise<number | undefined> {
  await stored(pictures)
  const row = await pictures.database
    .selectFrom('cluster_pictures')
    .select('at')
    .where('shard', '=', WHOLE)
    .where('at', '>=', since)
    .orderBy('at')
    .limit(1)
    .executeTakeFirst()
  return row && Number(row.at)
}

/** The first moment of a range whose state is known; undefined when nothing was recorded in it. */
export async function recordedFrom(
  pictures: Pictures,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<number | undefined> {
  const first = await firstPicture(pictures, from - PICTURES.knownMs)
  return first === undefined || first > to ? undefined : Math.max(first, from)
}
