/**
 * Metrics over time: rings of 10 s for 1 h and of 1 min for 24 h, for each node, each shard and the cluster. A slot
 * belongs to a time, so a missing value is a gap and never an old value.
 *
 *   fine[name * FINE + slot % FINE]         slot = floor(ms / 10,000)
 *   coarse[name * COARSE + slot % COARSE]   slot = floor(ms / 60,000)     mean of that minute
 *
 * A cell holds a non-negative value with the three displayed digits, in half the memory of a float: six bits of
 * exponent and ten of fraction, as in IEEE 754 but without a sign.
 *
 *   cell     value
 *   0        less than 2^-20
 *   0xFFFF   not reported
 *   other    (1 + (cell & 1023) / 1024) * 2 ^ ((cell >> 10) - 20), rounded: off by 0.05 % at most; more than 2^44 is 2^44
 *
 * Writer: the collector. 3.6 KB per series. Bounded by `bytesMax` in total; evicts the series updated least recently.
 */
import { createWriteStream } from 'node:fs'
import { readFile, rename, rm } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import { crc32 } from 'node:zlib'
import { hasRealDate } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { SERIES, type SeriesBody, type SeriesName } from '@vacancy/shared/contract'
import { significant } from './figures.ts'

const FINE = { slots: 360, ms: 10_000 } as const
const COARSE = { slots: 1_440, ms: 60_000 } as const
/** Older values of a node are not current. */
const LATEST_SLOTS = 2
const SERIES_LIMITS = { bytesMax: 96 << 20, namesMax: 40, fileBytesMax: 128 << 20 } as const

const NAMES = Object.keys(SERIES) as SeriesName[]
/** Of stays: recorded for shards only, whose replicas report the same. */
export const STAY_NAMES = NAMES.filter((name) => SERIES[name].of === 'shard' && name !== 'leader_moves')
/** Of a shard and of the cluster: sums, or the highest value of its nodes. */
const SHARD_NAMES: readonly SeriesName[] = [
  'queries',
  'writes',
  'errors',
  'p50',
  'p99',
  'lag_entries',
  'lag_seconds',
  'leader_moves',
  ...STAY_NAMES,
]
const NODE_NAMES = NAMES.filter((name) => SERIES[name].of === 'node' || SERIES[name].of === 'both')

/** The owner of a series: a node, a shard (node ''), or the cluster (both ''). */
export type Owner = { readonly shard: string; readonly node: string }

type Rings = {
  readonly owner: Owner
  readonly names: readonly SeriesName[]
  readonly fine: Uint16Array
  readonly coarse: Uint16Array
  /** Of the current minute. */
  readonly sums: Float64Array
  readonly counts: Uint32Array
  fineSlot: number
  coarseSlot: number
}

export type SeriesStore = { readonly rings: Map<string, Rings>; bytes: number }

export type Values = { readonly [name in SeriesName]?: number | null | undefined }

export function createSeries(): SeriesStore {
  return { rings: new Map(), bytes: 0 }
}

export function recordSeries(store: SeriesStore, owner: Owner, now: number, values: Values): void {
  const rings = ringsOf(store, owner)
  const fineSlot = Math.floor(now / FINE.ms)
  const coarseSlot = Math.floor(now / COARSE.ms)
  // A clock that was set back writes into existing slots; one that jumped forward has passed all of them.
  if (fineSlot < rings.fineSlot) return
  clearBetween(rings.fine, FINE.slots, rings.names.length, rings.fineSlot, fineSlot)
  clearBetween(rings.coarse, COARSE.slots, rings.names.length, rings.coarseSlot, coarseSlot)
  if (coarseSlot !== rings.coarseSlot) {
    rings.sums.fill(0)
    rings.counts.fill(0)
  }
  rings.fineSlot = fineSlot
  rings.coarseSlot = coarseSlot
  for (const [at, name] of rings.names.entries()) {
    const value = values[name]
    if (value === null || value === undefined) continue
    const place = at * FINE.slots + (fineSlot % FINE.slots)
    const isCount = name === 'leader_moves'
    const before = rings.fine[place] as number
    rings.fine[place] = cellOf(isCount && before !== GAP ? figureOf(before) + value : value)
    rings.sums[at] = (rings.sums[at] as number) + value
    rings.counts[at] = (rings.counts[at] as number) + 1
    const mean = (rings.sums[at] as number) / (isCount ? 1 : (rings.counts[at] as number))
    rings.coarse[at * COARSE.slots + (coarseSlot % COARSE.slots)] = cellOf(mean)
  }
}

const GAP = 0xffff
const FRACTION_BITS = 10
/** A float32 has 13 more fraction bits, and an exponent bias that is larger by 107. */
const DROPPED_BITS = 23 - FRACTION_BITS
const EXPONENT_OFFSET = (127 - 20) << FRACTION_BITS
const float = new Float32Array(1)
const bits = new Uint32Array(float.buffer)

function cellOf(figure: number): number {
  float[0] = figure
  const rounded = ((bits[0] as number) + (1 << (DROPPED_BITS - 1))) >>> DROPPED_BITS
  return figure > 0 ? Math.min(Math.max(rounded - EXPONENT_OFFSET, 0), GAP - 1) : 0
}

function figureOf(cell: number): number {
  if (cell === 0) return 0
  bits[0] = (cell + EXPONENT_OFFSET) << DROPPED_BITS
  return float[0] as number
}

function ringsOf(store: SeriesStore, owner: Owner): Rings {
  const key = keyOf(owner)
  const known = store.rings.get(key)
  if (known) return known
  const names = namesOf(owner)
  const rings = {
    ...{ owner, names },
    fine: new Uint16Array(names.length * FINE.slots).fill(GAP),
    coarse: new Uint16Array(names.length * COARSE.slots).fill(GAP),
    sums: new Float64Array(names.length),
    counts: new Uint32Array(names.length),
    fineSlot: 0,
    coarseSlot: 0,
  }
  makeRoom(store, bytesOf(rings))
  store.rings.set(key, rings)
  return rings
}

function namesOf({ shard, node }: Owner): readonly SeriesName[] {
  if (node !== '') return NODE_NAMES
  return shard === '' ? NAMES : SHARD_NAMES
}

/**
 * The values of all nodes that were recorded in the last slots.
 *
 * @returns undefined when one of the nodes that are expected was recorded before, and not since
 */
export function latestOfNodes(
  store: SeriesStore,
  name: SeriesName,
  now: number,
  isExpected: (owner: Owner) => boolean,
): number[] | undefined {
  const oldest = Math.floor(now / FINE.ms) - LATEST_SLOTS
  const values: number[] = []
  for (const { owner, names, fine, fineSlot } of store.rings.values()) {
    const at = names.indexOf(name)
    if (owner.node === '' || at < 0) continue
    if (fineSlot < oldest) {
      if (isExpected(owner)) return undefined
      continue
    }
    const cell = fine[at * FINE.slots + (fineSlot % FINE.slots)] as number
    if (cell !== GAP) values.push(figureOf(cell))
  }
  return values
}

function makeRoom(store: SeriesStore, bytes: number): void {
  store.bytes += bytes
  if (store.bytes <= SERIES_LIMITS.bytesMax) return
  for (const [key, rings] of [...store.rings].sort(([, a], [, b]) => a.fineSlot - b.fineSlot)) {
    if (store.bytes <= SERIES_LIMITS.bytesMax) return
    store.rings.delete(key)
    store.bytes -= bytesOf(rings)
  }
}

function bytesOf({ fine, coarse }: Rings): number {
  return fine.byteLength + coarse.byteLength
}

/** Clears the slots after the last written one up to and including this one. */
function clearBetween(ring: Uint16Array, slots: number, names: number, last: number, now: number): void {
  const from = Math.max(last + 1, now - slots + 1)
  for (let slot = from; slot <= now; slot++) {
    for (let at = 0; at < names; at++) ring[at * slots + (slot % slots)] = GAP
  }
}

function keyOf({ shard, node }: Owner): string {
  return `${shard}\n${node}`
}

export type SeriesRequest = {
  readonly shard?: string | undefined
  readonly node?: string | undefined
  readonly names: string
  readonly from: string
  readonly to: string
}

/** The response of `GET /series`: fine values if they cover the range, else one per minute. */
export function readSeries(store: SeriesStore, request: SeriesRequest, now: number): SeriesBody {
  const names = request.names.split(',').filter((name) => name !== '') as SeriesName[]
  for (const name of names) {
    if (!Object.hasOwn(SERIES, name)) {
      throw problem('unknown-series', {
        detail: `There is no series ${name.slice(0, 64)}.`,
        hint: `Series: ${NAMES.join(', ')}.`,
        field: 'names',
      })
    }
  }
  if (names.length === 0 || names.length > SERIES_LIMITS.namesMax) {
    throw problem('unknown-series', {
      detail: `Request 1 to ${SERIES_LIMITS.namesMax} series.`,
      field: 'names',
      hint: NAMES.join(', '),
    })
  }
  const [from, to] = [readTime(request.from, now, 'from'), readTime(request.to, now, 'to')]
  if (from >= to) throw problem('bad-range', { field: 'from' })
  const isFine = now - from <= FINE.slots * FINE.ms
  const { ms, slots } = isFine ? FINE : COARSE
  const first = Math.max(Math.floor(from / ms), Math.floor(now / ms) - slots + 1)
  const last = Math.min(Math.floor(to / ms), Math.floor(now / ms))
  const owners = [...store.rings.values()].filter(({ owner }) => isWanted(owner, request))
  return {
    from: time(first * ms),
    to: time(Math.max(first, last) * ms),
    stepSeconds: ms / 1000,
    series: names.flatMap((name) =>
      owners.flatMap((rings) => {
        const at = rings.names.indexOf(name)
        if (at < 0) return []
        const values = valuesOf(rings, at, isFine, first, last)
        return [{ name, node: rings.owner.node === '' ? null : rings.owner.node, unit: SERIES[name].unit, values }]
      }),
    ),
  }
}

function isWanted({ shard, node }: Owner, request: SeriesRequest): boolean {
  if (request.shard === undefined) return shard === '' && node === ''
  if (shard !== request.shard) return false
  return request.node === undefined || node === request.node
}

function valuesOf(rings: Rings, at: number, isFine: boolean, first: number, last: number): (number | null)[] {
  const [ring, slots, written] = isFine
    ? [rings.fine, FINE.slots, rings.fineSlot]
    : [rings.coarse, COARSE.slots, rings.coarseSlot]
  const values: (number | null)[] = []
  for (let slot = first; slot <= last; slot++) {
    const isHeld = slot <= written && slot > written - slots
    const cell = isHeld ? (ring[at * slots + (slot % slots)] as number) : GAP
    values.push(cell === GAP ? null : significant(figureOf(cell)))
  }
  return values
}

/** `now`, `now-90s`, `now-15m`, `now-6h`, `now-1d`, or a time. */
export function readTime(text: string, now: number, field: string): number {
  if (text === 'now') return now
  const ago = /^now-(\d{1,6})([smhd])$/.exec(text)
  if (ago) return now - Number(ago[1]) * (UNITS[ago[2] as keyof typeof UNITS] as number)
  const at = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/.test(text) && hasRealDate(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(at)) return at
  throw problem('bad-time', { detail: `${text.slice(0, 40)} is not a time.`, field })
}

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

function time(ms: number): string {
  return new Date(ms).toISOString()
}

// On disk: 8 bytes magic, u32 LE length of the head, its JSON, the rings in its order, u32 LE CRC-32 of all before.

const MAGIC = 'VACSER2\n'

type Head = {
  readonly rings: readonly (Owner & { readonly fineSlot: number; readonly coarseSlot: number })[]
  readonly names: typeof NAMES
}

/** Writes a temporary file and renames it. */
export async function saveSeries(store: SeriesStore, file: string): Promise<void> {
  const all = [...store.rings.values()]
  const head: Head = {
    rings: all.map(({ owner, fineSlot, coarseSlot }) => ({ ...owner, fineSlot, coarseSlot })),
    names: NAMES,
  }
  const json = Buffer.from(JSON.stringify(head))
  const start = Buffer.alloc(12)
  start.write(MAGIC)
  start.writeUInt32LE(json.length, 8)
  const stream = createWriteStream(`${file}.new`)
  let sum = 0
  const put = async (bytes: Uint8Array) => {
    sum = crc32(bytes, sum)
    if (!stream.write(bytes)) await new Promise<void>((resolve) => stream.once('drain', resolve))
  }
  await put(start)
  await put(json)
  for (const { fine, coarse } of all) {
    // Copied, because the rings change while the write waits.
    await put(bytesCopy(fine))
    await put(bytesCopy(coarse))
  }
  const end = Buffer.alloc(4)
  end.writeUInt32LE(sum)
  stream.end(end)
  await finished(stream)
  await rename(`${file}.new`, file)
}

function bytesCopy(values: Uint16Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength).slice()
}

/**
 * Loads saved series into a store at its start.
 *
 * @returns '' or why the file was ignored; it is then deleted, since metrics are not worth a repair
 */
export async function loadSeries(store: SeriesStore, file: string): Promise<string> {
  let bytes: Buffer
  try {
    bytes = await readFile(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
  const fault = takeBytes(store, bytes)
  if (fault !== '') await rm(file, { force: true })
  return fault
}

function takeBytes(store: SeriesStore, bytes: Buffer): string {
  if (bytes.length < 16 || bytes.length > SERIES_LIMITS.fileBytesMax) return `has ${bytes.length} bytes`
  if (bytes.toString('latin1', 0, 8) !== MAGIC) return 'is not a series file'
  if (crc32(bytes.subarray(0, -4)) !== bytes.readUInt32LE(bytes.length - 4)) return 'has a wrong checksum'
  const headEnd = 12 + bytes.readUInt32LE(8)
  const head = JSON.parse(bytes.toString('utf8', 12, headEnd)) as Head
  if (head.names.join() !== NAMES.join()) return 'has another version'
  let at = headEnd
  for (const { fineSlot, coarseSlot, ...owner } of head.rings) {
    const rings = ringsOf(store, owner)
    at += copyInto(rings.fine, bytes, at)
    at += copyInto(rings.coarse, bytes, at)
    rings.fineSlot = fineSlot
    rings.coarseSlot = coarseSlot
  }
  return ''
}

function copyInto(values: Uint16Array, bytes: Buffer, from: number): number {
  const target = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
  target.set(bytes.subarray(from, from + target.length))
  return target.length
}
