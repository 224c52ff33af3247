/**
 * The registry's state as keys and values of etcd, below a prefix. Pure.
 *
 *   meta                    the epoch, and the base of all versions
 *   codecs                  the codec list
 *   serial                  written by every change, which compares it first: so all changes have one order
 *   components/{kind}/{id}  zone and shard
 *   hb/{kind}/{id}          the last written heartbeat, with a lease
 *   claims/{shard}          zone, term, segments; `behind` ranks the shard in the queues where it is not first
 *   reserved/{shard}        the segments reserved for it
 *   versions/{dataset}      its version is the base plus the revision that wrote the key
 *   versions-all            the same for all datasets, where one change touches too many; names those without a key
 *   parts/{part}/{i}        pieces of a value that is too long for one transaction
 *   janitor                 with a lease: the process that removes what has timed out
 *
 * A segment has no key of its own: one list has up to 100,000 of them, and a transaction 128 operations.
 */

import { createHash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { COMPONENT_KINDS, type ComponentKind, compareText } from '@vacancy/shared/contract'
import { z } from 'zod'
import type { Write } from './etcd-client.ts'
import type { Claim, Component, Journal, RegistryState, Reservation, Values } from './model.ts'
import { storedClaim, storedComponent, storedReservation } from './stored.ts'

export const ETCD_LIMITS = {
  /** Operations of a transaction. etcd's own limit is 128 (`--max-txn-ops`). */
  operationsMax: 120,
  /** Longer values are split: 120 of them stay below etcd's 1.5 MiB for a request. */
  inlineBytesMax: 8 * 1024,
  partBytesMax: 512 * 1024,
  /** Above this a change writes `versions-all`. */
  versionsMax: 50,
} as const

export const FORMAT = 1

const count = z.int().nonnegative()
const metaRow = z.object({ format: z.literal(FORMAT), epoch: z.string().regex(/^[0-9a-f]{16}$/), base: count })
const codecsRow = z.array(z.string())
const componentRow = z.object({ zone: z.string(), shard: z.string().optional() })
const ranks = z.array(z.tuple([z.string(), count]))
const longRow = { part: z.string().optional(), parts: count.optional() }
const claimRow = z.object({ zone: z.string(), term: count, ...longRow }).loose()
const claimLists = z.object({ segments: z.array(z.string()), behind: ranks })
const reservedRow = z.object(longRow).loose()
const allLists = z.object({ datasets: z.array(z.string()) })
const reservedLists = z.object({ until_ms: ranks })

/** What is known of the keys besides the state. */
export type Image = ReturnType<typeof createImage>

export function createImage(base: number) {
  return {
    /** Revision that last wrote a key of the state. */
    revisions: new Map<string, number>(),
    /** Shard → its ranks, as written. */
    behind: new Map<string, ReadonlyMap<string, number>>(),
    /** Key → the part that holds its long value, and the hash of the value. */
    long: new Map<string, { readonly part: string | undefined; readonly hash: string }>(),
    /** Parts that exist, with their pieces until the value is read. */
    parts: new Map<string, Map<number, Buffer>>(),
    /** `node/n1`: components whose heartbeat is in etcd. */
    beating: new Set<string>(),
    isJanitorTaken: false,
    /** Datasets that only `versions-all` names. */
    named: [] as readonly string[],
    base,
  }
}

/** A value in etcd that is not of this program. */
export class RowFault extends Error {
  override readonly name = 'RowFault'
}

function parsed<T extends z.ZodType>(schema: T, key: string, text: string | Buffer): z.infer<T> {
  let value: unknown
  try {
    value = JSON.parse(text.toString())
  } catch (error) {
    throw new RowFault(`${key}: is not valid JSON: ${(error as Error).message}`)
  }
  return checked(schema, key, value)
}

function checked<T extends z.ZodType>(schema: T, key: string, value: unknown): z.infer<T> {
  const { success, data, error } = schema.safeParse(value)
  if (success) return data
  const [issue] = error.issues
  throw new RowFault(`${key}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? 'is not valid'}`)
}

// Reading.

export type Row = { readonly key: string; readonly value: Buffer; readonly modRevision: number }

export type Meta = { readonly epoch: string; readonly base: number; readonly modRevision: number }

export function metaOf(rows: readonly Row[]): Meta | undefined {
  const row = rows.find(({ key }) => key === 'meta')
  if (row === undefined) return undefined
  const { epoch, base } = parsed(metaRow, 'meta', row.value)
  return { epoch, base, modRevision: row.modRevision }
}

export function codecsOf(rows: readonly Row[]): readonly string[] | undefined {
  const row = rows.find(({ key }) => key === 'codecs')
  return row && parsed(codecsRow, 'codecs', row.value)
}

/** `kind/id` of a key below `components/` or `hb/`; undefined for a kind of another version. */
function componentOf(rest: string): readonly [kind: ComponentKind, id: string] | undefined {
  const [name, id] = rest.split('/') as [string, string?]
  const kind = COMPONENT_KINDS.find((each) => each === name)
  return kind === undefined || id === undefined ? undefined : [kind, id]
}

/**
 * All rows as the document that restoreValue takes, and the image beside it.
 *
 * @throws RowFault
 */
export function documentOf(rows: readonly Row[], meta: Meta): { readonly document: object; readonly image: Image } {
  const image = createImage(meta.base)
  const components: object[] = []
  const claims: { shard: string; zone: string; term: number; segments: string[] }[] = []
  const reservations: { segment: string; shard: string; until_ms: number }[] = []
  const versions: (readonly [string, number])[] = []
  let all = 0
  let codecs: readonly string[] = []
  let codecsVersion = 0
  for (const { key, value } of rows) if (key.startsWith('parts/')) keepPart(image, key, value)
  for (const { key, value, modRevision } of rows) {
    const [table, rest] = splitKey(key)
    if (isState(table)) image.revisions.set(key, modRevision)
    if (table === 'components') {
      const named = componentOf(rest)
      if (named) components.push({ kind: named[0], id: named[1], ...parsed(componentRow, key, value) })
    } else if (table === 'claims') {
      const { claim, behind } = claimOf(image, key, value, undefined)
      image.behind.set(rest, behind)
      claims.push({ shard: rest, ...claim })
    } else if (table === 'reserved') {
      for (const [segment, until] of reservedOf(image, key, value, undefined)) {
        reservations.push({ segment, shard: rest, until_ms: until })
      }
    } else if (table === 'versions') versions.push([rest, modRevision])
    else if (table === 'versions-all') {
      all = modRevision
      image.named = namedIn(image, key, value)
    } else if (table === 'hb') image.beating.add(rest)
    else if (table === 'janitor') image.isJanitorTaken = true
    else if (table === 'codecs') {
      codecs = parsed(codecsRow, key, value)
      codecsVersion = modRevision
    }
  }
  const highest = versions.reduce((max, [, revision]) => Math.max(max, revision), Math.max(all, codecsVersion))
  dropPieces(image)
  const document = {
    format: FORMAT,
    epoch: meta.epoch,
    first_version: meta.base,
    global_version: meta.base + highest,
    codecs,
    versions: Object.fromEntries([
      ...image.named.map((name) => [name, meta.base + all]),
      ...versions.map(([name, revision]) => [name, meta.base + Math.max(revision, all)]),
    ]),
    components,
    claims,
    contested: contestedOf(image, claims, reservations),
    reservations,
  }
  return { document, image }
}

function contestedOf(
  image: Image,
  claims: readonly { readonly shard: string; readonly segments: readonly string[] }[],
  reservations: readonly { readonly segment: string; readonly shard: string }[],
): { segment: string; shards: string[] }[] {
  const claimants = new Map<string, string | string[]>()
  const join = (segment: string, shard: string) => {
    const others = claimants.get(segment)
    if (others === undefined) claimants.set(segment, shard)
    else if (typeof others === 'string') claimants.set(segment, [others, shard])
    else others.push(shard)
  }
  for (const { segment, shard } of reservations) join(segment, shard)
  for (const { shard, segments } of claims) for (const segment of segments) join(segment, shard)
  return [...claimants].flatMap(([segment, shards]) =>
    typeof shards === 'string' ? [] : [{ segment, shards: inOrder(shards, (shard) => rankIn(image, shard, segment)) }],
  )
}

function rankIn(image: Image, shard: string, segment: string): number {
  return image.behind.get(shard)?.get(segment) ?? 0
}

function inOrder(shards: readonly string[], rank: (shard: string) => number): string[] {
  return [...shards].sort((a, b) => rank(a) - rank(b) || compareText(a, b))
}

function splitKey(key: string): readonly [table: string, rest: string] {
  const slash = key.indexOf('/')
  return slash < 0 ? [key, ''] : [key.slice(0, slash), key.slice(slash + 1)]
}

const STATE_TABLES = ['components', 'claims', 'reserved', 'versions', 'versions-all', 'codecs', 'serial']
function isState(table: string): boolean {
  return STATE_TABLES.includes(table)
}

function keepPart(image: Image, key: string, value: Buffer): void {
  const [part, index] = splitKey(splitKey(key)[1])
  const pieces = image.parts.get(part) ?? new Map<number, Buffer>()
  pieces.set(Number(index), value)
  image.parts.set(part, pieces)
}

type ClaimRead = { readonly claim: Claim & { segments: string[] }; readonly behind: ReadonlyMap<string, number> }

/** @param state holds the lists of a part that was read before */
function claimOf(image: Image, key: string, value: Buffer, state: RegistryState | undefined): ClaimRead {
  const row = parsed(claimRow, key, value)
  const shard = splitKey(key)[1]
  const same = isRead(image, key, row) ? state?.claims.get(shard) : undefined
  const lists = same
    ? { segments: [...same.segments], behind: [...(image.behind.get(shard) ?? [])] }
    : checked(claimLists, key, longValue(image, key, row))
  const { zone, term, segments } = checked(storedClaim, key, { shard, ...row, segments: lists.segments })
  return { claim: { zone, term, segments }, behind: new Map(lists.behind) }
}

function reservedOf(image: Image, key: string, value: Buffer, state: RegistryState | undefined): [string, number][] {
  const row = parsed(reservedRow, key, value)
  const shard = splitKey(key)[1]
  if (state && isRead(image, key, row)) {
    return [...state.reservations].flatMap(([segment, each]) => (each.shard === shard ? [[segment, each.untilMs]] : []))
  }
  const { until_ms: untilMs } = checked(reservedLists, key, longValue(image, key, row))
  for (const [segment, until] of untilMs) checked(storedReservation, key, { segment, shard, until_ms: until })
  return untilMs
}

function namedIn(image: Image, key: string, value: Buffer): readonly string[] {
  const row = parsed(reservedRow, key, value)
  return isRead(image, key, row) ? image.named : checked(allLists, key, longValue(image, key, row)).datasets
}

type LongRow = { readonly part?: string | undefined; readonly parts?: number | undefined }

function isRead(image: Image, key: string, { part }: LongRow): boolean {
  return part !== undefined && image.long.get(key)?.part === part
}

/** The lists of a row: its own fields, or those in its parts. */
function longValue(image: Image, key: string, row: LongRow): unknown {
  if (row.part === undefined) {
    image.long.set(key, { part: undefined, hash: '' })
    return row
  }
  const pieces = image.parts.get(row.part)
  const buffers = Array.from({ length: row.parts ?? 0 }, (_, i) => pieces?.get(i))
  if (buffers.length === 0 || buffers.some((piece) => piece === undefined)) {
    throw new RowFault(`${key}: a piece of it is missing below parts/${row.part}`)
  }
  try {
    const text = gunzipSync(Buffer.concat(buffers as Buffer[]), { maxOutputLength: UNPACKED_BYTES_MAX }).toString()
    const lists = JSON.parse(text)
    image.long.set(key, { part: row.part, hash: hashOf(text) })
    return lists
  } catch (error) {
    throw new RowFault(`${key}: parts/${row.part} cannot be read: ${(error as Error).message}`)
  }
}

const UNPACKED_BYTES_MAX = 256 * 1024 * 1024

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

// Events of other processes.

export type RowEvent = { readonly key: string; readonly value: Buffer | undefined; readonly revision: number }

export type Seen = {
  readonly values: Values
  readonly heartbeats: readonly { readonly kind: ComponentKind; readonly id: string; readonly value: Buffer }[]
  /** The state has to be read as a whole. */
  readonly needsLoad: boolean
  readonly isChanged: boolean
}

/**
 * What the events of one revision say, as values for writeValues. Updates the image.
 *
 * @throws RowFault
 */
export function readEvents(state: RegistryState, image: Image, events: readonly RowEvent[], nowMs: number): Seen {
  const components: Values['components'][number][] = []
  const versions = new Map<string, number>()
  const heartbeats: { kind: ComponentKind; id: string; value: Buffer }[] = []
  const claims = new Map<string, { claim: Claim | undefined; behind: ReadonlyMap<string, number> }>()
  const reserved = new Map<string, ReadonlyMap<string, number>>()
  let codecs: readonly string[] | undefined
  let [needsLoad, highest] = [false, 0]
  for (const { key, value } of events) if (key.startsWith('parts/') && value) keepPart(image, key, value)
  for (const { key, value, revision } of events) {
    const [table, rest] = splitKey(key)
    if (isState(table)) {
      // Own changes are known already.
      if ((image.revisions.get(key) ?? 0) >= revision) continue
      if (!value && !image.revisions.has(key)) continue
      if (value) image.revisions.set(key, revision)
      else image.revisions.delete(key)
    }
    switch (table) {
      case 'components': {
        const named = componentOf(rest)
        if (named) components.push([...named, value && componentFrom(state, named, key, value, nowMs)])
        break
      }
      case 'hb': {
        const named = componentOf(rest)
        if (value) image.beating.add(rest)
        else image.beating.delete(rest)
        if (named && value) heartbeats.push({ kind: named[0], id: named[1], value })
        break
      }
      case 'claims':
        if (value) claims.set(rest, claimOf(image, key, value, state))
        else claims.set(rest, { claim: undefined, behind: new Map() })
        break
      case 'reserved':
        reserved.set(rest, new Map(value ? reservedOf(image, key, value, state) : []))
        break
      case 'versions':
      case 'versions-all':
        highest = Math.max(highest, revision)
        // A version never goes away: an operator removed keys.
        if (!value) needsLoad = true
        else if (table === 'versions') versions.set(rest, image.base + revision)
        else {
          image.named = namedIn(image, key, value)
          for (const name of [...state.versions.keys(), ...image.named]) versions.set(name, image.base + revision)
        }
        break
      case 'codecs':
        highest = Math.max(highest, revision)
        if (value) codecs = parsed(codecsRow, key, value)
        else needsLoad = true
        break
      case 'meta':
        needsLoad = true
        break
      case 'janitor':
        image.isJanitorTaken = value !== undefined
        break
      case 'parts':
        if (!value) image.parts.delete(splitKey(rest)[0])
        break
      case 'serial':
        if (!value) needsLoad = true
        break
    }
  }
  const lists = listsAfter(state, image, claims, reserved)
  dropPieces(image)
  const values = {
    components,
    ...lists,
    versions: [...versions],
    codecs,
    globalVersion: Math.max(state.globalVersion, highest === 0 ? 0 : image.base + highest),
  }
  const isChanged = components.length + claims.size + reserved.size + highest > 0
  return { values, heartbeats, needsLoad, isChanged }
}

function componentFrom(
  state: RegistryState,
  [kind, id]: readonly [ComponentKind, string],
  key: string,
  value: Buffer,
  nowMs: number,
): Component {
  const { zone, shard } = checked(storedComponent, key, { kind, id, ...parsed(componentRow, key, value) })
  const known = state.components[kind].get(id)
  return { details: {}, instanceBefore: undefined, ...known, kind, id, zone, shard, seenMs: nowMs }
}

/** Claims, reservations and the queues that differ through changed rows. */
function listsAfter(
  state: RegistryState,
  image: Image,
  claims: ReadonlyMap<string, { readonly claim: Claim | undefined; readonly behind: ReadonlyMap<string, number> }>,
  reserved: ReadonlyMap<string, ReadonlyMap<string, number>>,
): Pick<Values, 'claims' | 'queues' | 'reservations'> {
  const affected = new Set<string>()
  const holds = new Map<string, Set<string>>()
  for (const [shard, { claim, behind }] of claims) {
    const [before, after] = [new Set(state.claims.get(shard)?.segments), new Set(claim?.segments)]
    for (const segment of before) if (!after.has(segment)) affected.add(segment)
    for (const segment of after) if (!before.has(segment)) affected.add(segment)
    for (const segment of [...(image.behind.get(shard)?.keys() ?? []), ...behind.keys()]) affected.add(segment)
    holds.set(shard, after)
    if (claim) image.behind.set(shard, behind)
    else image.behind.delete(shard)
  }
  const reservations = new Map<string, Reservation | undefined>()
  for (const [segment, { shard }] of state.reservations) {
    if (reserved.has(shard) && !reserved.get(shard)?.has(segment)) reservations.set(segment, undefined)
  }
  for (const [shard, untilMs] of reserved) {
    for (const [segment, until] of untilMs) reservations.set(segment, { shard, untilMs: until })
  }
  for (const segment of reservations.keys()) affected.add(segment)
  const queues = [...affected].map((segment) => {
    const was = state.queues.get(segment) ?? []
    const wasReservedFor = state.reservations.get(segment)?.shard
    const isReservedFor = reservations.has(segment) ? reservations.get(segment)?.shard : wasReservedFor
    const isIn = (shard: string) =>
      shard === isReservedFor || (holds.get(shard)?.has(segment) ?? (was.includes(shard) && shard !== wasReservedFor))
    const all = new Set([...was, ...holds.keys(), ...(isReservedFor === undefined ? [] : [isReservedFor])])
    const queue = inOrder([...all].filter(isIn), (shard) => rankIn(image, shard, segment))
    return [segment, queue] as const
  })
  return { claims: [...claims].map(([shard, { claim }]) => [shard, claim]), queues, reservations: [...reservations] }
}

/** Pieces are needed until their value was read. */
function dropPieces(image: Image): void {
  for (const { part } of image.long.values()) if (part !== undefined) image.parts.get(part)?.clear()
}

// Writing.

export type Encoded = {
  /** Operations of the transaction. */
  readonly writes: readonly Write[]
  /** Pieces of long values, to be written before. */
  readonly pieces: readonly { readonly key: string; readonly value: Buffer }[]
  /** The values to set, once the transaction's revision is known; the global version is 0 when it stays. */
  readonly valuesAt: (revision: number) => Values
  /** Brings the image up to that revision. */
  readonly noteIn: (image: Image, revision: number) => void
}

/**
 * A change as operations. The state is as after the change.
 *
 * @param after valuesAfter of the journal
 * @param newPart a fresh name for a long value
 */
export function encodeChange(
  state: RegistryState,
  image: Image,
  journal: Journal,
  after: Values,
  newPart: () => string,
): Encoded {
  const writes: Write[] = []
  const pieces: { key: string; value: Buffer }[] = []
  const long = new Map<string, { part: string | undefined; hash: string } | undefined>()
  const put = (key: string, value: object) => writes.push({ put: key, value: JSON.stringify(value) })
  const remove = (key: string) => {
    writes.push({ remove: key })
    replaceParts(key)
    long.set(key, undefined)
  }
  const replaceParts = (key: string) => {
    const part = image.long.get(key)?.part
    if (part !== undefined) writes.push({ remove: `parts/${part}/`, isPrefix: true })
  }
  /** Puts fields and lists in one value, or the lists in parts. */
  const putLong = (key: string, fields: object, lists: object) => {
    const text = JSON.stringify(lists)
    if (text.length <= ETCD_LIMITS.inlineBytesMax / 3) {
      replaceParts(key)
      long.set(key, { part: undefined, hash: '' })
      put(key, { ...fields, ...lists })
      return
    }
    const hash = hashOf(text)
    const known = image.long.get(key)
    const packed = gzipSync(text, { level: 1 })
    const parts = Math.ceil(packed.length / ETCD_LIMITS.partBytesMax)
    const isSame = known?.part !== undefined && known.hash === hash
    const part = isSame ? (known.part as string) : newPart()
    if (!isSame) {
      replaceParts(key)
      for (let i = 0; i < parts; i++) {
        const value = packed.subarray(i * ETCD_LIMITS.partBytesMax, (i + 1) * ETCD_LIMITS.partBytesMax)
        pieces.push({ key: `parts/${part}/${i}`, value })
      }
    }
    long.set(key, { part, hash })
    put(key, { ...fields, part, parts })
  }
  for (const [kind, id, component] of after.components) {
    const key = `components/${kind}/${id}`
    if (component) put(key, { zone: component.zone, ...(component.shard !== undefined && { shard: component.shard }) })
    else {
      remove(key)
      writes.push({ remove: `hb/${kind}/${id}` })
    }
  }
  const ranksAfter = ranksOf(state, image, journal)
  for (const [shard, claim] of after.claims) {
    const behind = [...(ranksAfter.get(shard) ?? [])]
    if (claim) putLong(`claims/${shard}`, { zone: claim.zone, term: claim.term }, { segments: claim.segments, behind })
    else remove(`claims/${shard}`)
  }
  for (const shard of shardsReserved(journal, after)) {
    const untilMs = [...state.reservations].flatMap(([segment, each]) =>
      each.shard === shard ? [[segment, each.untilMs]] : [],
    )
    if (untilMs.length > 0) putLong(`reserved/${shard}`, {}, { until_ms: untilMs })
    else if (image.revisions.has(`reserved/${shard}`)) remove(`reserved/${shard}`)
  }
  if (after.codecs) put('codecs', after.codecs)
  const isAll = after.versions.length > ETCD_LIMITS.versionsMax
  const lacking = after.versions.flatMap(([name]) => (image.revisions.has(`versions/${name}`) ? [] : [name]))
  const named = isAll ? [...new Set([...image.named, ...lacking])] : image.named
  if (isAll) putLong('versions-all', {}, { datasets: named })
  else for (const [dataset] of after.versions) put(`versions/${dataset}`, {})
  const bumped = isAll ? [...state.versions.keys()] : after.versions.map(([dataset]) => dataset)
  return {
    writes,
    pieces,
    valuesAt: (revision) => ({
      ...after,
      versions: bumped.map((dataset) => [dataset, image.base + revision]),
      globalVersion: bumped.length > 0 || after.codecs ? image.base + revision : 0,
    }),
    noteIn(now, revision) {
      now.named = named
      for (const write of writes) {
        if ('put' in write) now.revisions.set(write.put, revision)
        else if (write.isPrefix) now.parts.delete(splitKey(splitKey(write.remove)[1])[0])
        else now.revisions.delete(write.remove)
      }
      for (const [key, value] of long) {
        if (value) now.long.set(key, value)
        else now.long.delete(key)
      }
      for (const [shard, claim] of after.claims) {
        if (claim) now.behind.set(shard, ranksAfter.get(shard) ?? new Map())
        else now.behind.delete(shard)
      }
    },
  }
}

function shardsReserved(journal: Journal, after: Values): Set<string> {
  const both = [...journal.reservations.values(), ...after.reservations.map(([, reservation]) => reservation)]
  return new Set(both.flatMap((reservation) => (reservation ? [reservation.shard] : [])))
}

/**
 * Ranks to write for the shards whose claims a change touched. A shard that stays in a queue keeps its rank, and one
 * that joins gets the next; so no row of another shard has to change.
 */
function ranksOf(state: RegistryState, image: Image, journal: Journal): Map<string, Map<string, number>> {
  const before = new Map<string, Set<string>>()
  const heldBefore = (shard: string, segment: string): boolean => {
    if (!journal.claims.has(shard)) return true
    const held = before.get(shard) ?? new Set(journal.claims.get(shard)?.segments)
    before.set(shard, held)
    return held.has(segment)
  }
  const ranksByShard = new Map<string, Map<string, number>>()
  for (const shard of journal.claims.keys()) {
    const own = new Map<string, number>()
    ranksByShard.set(shard, own)
    for (const segment of state.claims.get(shard)?.segments ?? []) {
      const queue = state.queues.get(segment) ?? []
      if (queue.length < 2) continue
      let last = -1
      for (const each of queue) {
        const known = heldBefore(each, segment) ? rankIn(image, each, segment) : undefined
        last = known !== undefined && known > last ? known : last + 1
        if (each === shard) break
      }
      if (last > 0) own.set(segment, last)
    }
  }
  return ranksByShard
}
