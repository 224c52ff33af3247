/**
 * Assigns words to the parts of a snapshot, and encodes and decodes one part.
 *
 * A table with more words than a part holds has its own block, split into ranges of rows with all their nights.
 * Consecutive smaller tables share a block of one part, because hundreds of thousands of small tables must not make
 * as many files. Every part is independent: all cores encode and decode even a shard with a single table, and a
 * changed word changes one chunk. Splitting by rows, not by nights, keeps the nights of a row together, most of which
 * equal the night before.
 *
 * Part before compression: masks, one byte per slice and night · byte plane 0 of all slices and nights · … · plane 7.
 * The slices follow from the shapes of the tables alone (planWords).
 */

import { assert } from '@vacancy/shared'
import { nameHash, rowKey } from '../store/digest.ts'
import { BYTE_PLANES, BYTES_PER_WORD, loadSnapshotKernel } from './codec.ts'
import { damaged } from './columns.ts'
import { type Chunk, type ChunkExpectation, type Digest, decodeChunk, encodeChunk, RAW_BYTES_MAX } from './format.ts'
import { DEAD_ROW, type PlaneMap, type TableShape } from './schema.ts'

/** The ring of days is far below it. */
export const NIGHTS_MAX = 1024
/** A word and, where rows are single, its mask. */
const WORDS_A_PART_MAX = Math.floor(RAW_BYTES_MAX / (BYTES_PER_WORD + 1))
const ROWS_A_PART_MAX = 65_536
/** Ranges begin on whole lines of a bitmap of rows, so that two threads never write the same byte of it. */
const ROWS_ALIGNED = 128

type WordsSlice = {
  readonly table: number
  readonly rowStart: number
  readonly rows: number
  readonly nights: number
}
export type WordsPart = { readonly slices: readonly WordsSlice[]; readonly words: number; readonly masks: number }

/** The blocks of words of these tables: parts by block. Part of the format: readers plan again. */
export function planWords(tables: readonly TableShape[]): WordsPart[][] {
  const blocks: WordsPart[][] = []
  let group: WordsSlice[] = []
  let groupWords = 0
  const closeGroup = () => {
    if (group.length > 0) blocks.push([partOf(group)])
    group = []
    groupWords = 0
  }
  for (let table = 0; table < tables.length; table++) {
    const { rows, days } = tables[table] as TableShape
    const words = rows.length * days.length
    if (words === 0) continue
    assert(days.length <= NIGHTS_MAX, 'a table has at most NIGHTS_MAX nights')
    const rowsMax = rowsAPart(days.length)
    if (rows.length > rowsMax) {
      closeGroup()
      blocks.push(cutTable(table, rows.length, days.length, rowsMax))
      continue
    }
    if (groupWords + words > WORDS_A_PART_MAX) closeGroup()
    group.push({ table, rowStart: 0, rows: rows.length, nights: days.length })
    groupWords += words
  }
  closeGroup()
  return blocks
}

function rowsAPart(nights: number): number {
  const rows = Math.min(Math.floor(WORDS_A_PART_MAX / nights), ROWS_A_PART_MAX)
  return rows - (rows % ROWS_ALIGNED)
}

function cutTable(table: number, rows: number, nights: number, rowsMax: number): WordsPart[] {
  const parts: WordsPart[] = []
  for (let rowStart = 0; rowStart < rows; rowStart += rowsMax) {
    parts.push(partOf([{ table, rowStart, rows: Math.min(rowsMax, rows - rowStart), nights }]))
  }
  return parts
}

function partOf(slices: WordsSlice[]): WordsPart {
  let words = 0
  let masks = 0
  for (const { rows, nights } of slices) {
    words += rows * nights
    masks += nights
  }
  return { slices, words, masks }
}

// The scratch area of one thread, in the memory of its kernel

const NIGHT_LIST_BYTES = NIGHTS_MAX * 4
const ADDRESSES = 0
const DAYS = ADDRESSES + NIGHT_LIST_BYTES
const AVAILABLE = DAYS + NIGHT_LIST_BYTES
const NIGHT_STATS = AVAILABLE + NIGHT_LIST_BYTES
const CURSORS = NIGHT_STATS + NIGHT_LIST_BYTES
const STATS = CURSORS + BYTE_PLANES * 4
const KEYS_LOW = STATS + 32
const KEYS_HIGH = KEYS_LOW + ROWS_A_PART_MAX * 4
const RAW = KEYS_HIGH + ROWS_A_PART_MAX * 4
/** Bytes a thread needs in the memory that holds the words, at an address that is a multiple of 8; about 4.5 MiB. */
export const WORDS_SCRATCH_BYTES = RAW + RAW_BYTES_MAX

/** What the rows of tables are called, for their keys in the digest. */
export type RowNames = {
  readonly tables: readonly TableShape[]
  /** 16 bytes a property. */
  readonly ids: Uint8Array
  readonly roomTypes: readonly string[]
}

/** One thread's means to encode and decode words. */
export type WordsCoder = ReturnType<typeof createWordsCoder>

/** @param scratch address of WORDS_SCRATCH_BYTES that are this thread's own */
export function createWordsCoder(
  memory: WebAssembly.Memory,
  scratch: number,
  names: RowNames,
  kernel = loadSnapshotKernel(memory),
) {
  assert(scratch > 0 && scratch % 8 === 0, 'the scratch area is 8-byte aligned')
  assert(scratch + WORDS_SCRATCH_BYTES <= memory.buffer.byteLength, 'the scratch area is within the memory')
  const encoder = new TextEncoder()
  return {
    kernel,
    u8: new Uint8Array(memory.buffer),
    u32: new Uint32Array(memory.buffer),
    scratch,
    names,
    roomTypeHashes: names.roomTypes.map((name) => {
      const bytes = encoder.encode(name)
      return [nameHash(0, bytes, 0, bytes.length), nameHash(1, bytes, 0, bytes.length)] as const
    }),
    /** The list of addresses in the scratch area that sources fill in. */
    addresses: new Uint32Array(memory.buffer, scratch + ADDRESSES, NIGHTS_MAX),
  }
}

export type EncodedPart = {
  readonly chunk: Chunk
  readonly packages: number
  readonly packageDigest: Digest
  /** Packages of each slice of the part. */
  readonly slicePackages: Uint32Array
}

/**
 * Encodes one part.
 *
 * @param words as in SnapshotSource
 * @returns undefined when the source was aborted
 */
export function encodeWords(
  coder: WordsCoder,
  part: WordsPart,
  codecsOrderedHash: string,
  words: (table: number, rowStart: number, rows: number, addresses: Uint32Array) => boolean,
): EncodedPart | undefined {
  const { u8, u32, scratch, kernel } = coder
  const raw = scratch + RAW
  const planes = raw + part.masks
  assert(part.masks + part.words * BYTES_PER_WORD <= RAW_BYTES_MAX, 'a part fits its scratch area')
  for (let plane = 0; plane < BYTE_PLANES; plane++) u32[cursorCell(coder, plane)] = planes + plane * part.words
  clearStats(coder)
  const slicePackages = new Uint32Array(part.slices.length)
  let masks = raw
  for (let i = 0; i < part.slices.length; i++) {
    const slice = part.slices[i] as WordsSlice
    if (!words(slice.table, slice.rowStart, slice.rows, coder.addresses)) return undefined
    prepareRows(coder, slice)
    const before = u32[(scratch + STATS) >>> 2]
    kernel.encode(
      scratch + ADDRESSES,
      slice.nights,
      slice.rows,
      scratch + DAYS,
      scratch + KEYS_LOW,
      scratch + KEYS_HIGH,
      masks,
      scratch + CURSORS,
      scratch + STATS,
    )
    slicePackages[i] = u32[(scratch + STATS) >>> 2] - before
    masks += slice.nights
  }
  // Planes are full only where every night needed them: move them together.
  let end = planes
  for (let plane = 0; plane < BYTE_PLANES; plane++) {
    const start = planes + plane * part.words
    const stop = u32[cursorCell(coder, plane)]
    assert(stop <= start + part.words, 'a plane holds at most one byte a word')
    u8.copyWithin(end, start, stop)
    end += stop - start
  }
  return {
    chunk: encodeChunk('words', codecsOrderedHash, u8.subarray(raw, end)),
    ...statsOf(coder),
    slicePackages,
  }
}

/**
 * Decodes one part into planes of empty words.
 *
 * @param firstPlane as firstPlanes of schema.ts
 * @throws corrupt_data when the chunk is not what the manifest and the tables say
 */
export function decodeWords(
  coder: WordsCoder,
  part: WordsPart,
  chunk: Uint8Array,
  expected: ChunkExpectation,
  planeMap: PlaneMap,
  firstPlane: Uint32Array,
): void {
  const { u8, u32, scratch, kernel, names } = coder
  const bytes = decodeChunk(chunk, expected)
  const wrong = (reason: string) => damaged(expected.file, expected.offset, reason)
  if (bytes.length < part.masks) throw wrong('a part of words is shorter than its masks')
  const planeBytes = planeLengths(part, bytes)
  let length = part.masks
  for (const count of planeBytes) length += count
  // The kernel reads only below the cursors that follow from the masks, so this single check bounds it.
  if (length !== bytes.length) throw wrong(`a part of words has ${bytes.length} bytes, its masks say ${length}`)
  const raw = scratch + RAW
  u8.set(bytes, raw)
  let cursor = raw + part.masks
  for (let plane = 0; plane < BYTE_PLANES; plane++) {
    u32[cursorCell(coder, plane)] = cursor
    cursor += planeBytes[plane]
  }
  clearStats(coder)
  let masks = raw
  for (const slice of part.slices) {
    prepareRows(coder, slice)
    const available = planeMap.availableOffset[slice.table]
    const first = firstPlane[slice.table]
    for (let night = 0; night < slice.nights; night++) {
      const words = planeMap.words[first + night]
      u32[((scratch + ADDRESSES) >>> 2) + night] = words + slice.rowStart * BYTES_PER_WORD
      u32[((scratch + AVAILABLE) >>> 2) + night] = words + available + (slice.rowStart >>> 3)
      u32[((scratch + NIGHT_STATS) >>> 2) + night] = words - planeMap.statsBefore
    }
    kernel.decode(
      scratch + ADDRESSES,
      slice.nights,
      slice.rows,
      scratch + DAYS,
      scratch + KEYS_LOW,
      scratch + KEYS_HIGH,
      masks,
      scratch + CURSORS,
      scratch + STATS,
      available === 0 ? 0 : scratch + AVAILABLE,
      planeMap.statsBefore === 0 ? 0 : scratch + NIGHT_STATS,
    )
    masks += slice.nights
  }
  const { packages, packageDigest } = statsOf(coder)
  if (packages !== expected.part.packages) {
    throw wrong(`a part of words holds ${packages} packages, expected ${expected.part.packages} by the manifest`)
  }
  const { lo, hi } = expected.part.packageDigest
  if (packageDigest.lo !== lo || packageDigest.hi !== hi) throw wrong('the package digest differs')
  assert(names.tables.length === firstPlane.length - 1, 'planes are of these tables')
}

/** Bytes of each plane of a part, from its masks. */
function planeLengths(part: WordsPart, bytes: Uint8Array): number[] {
  const lengths = new Array<number>(BYTE_PLANES).fill(0)
  let at = 0
  for (const { rows, nights } of part.slices) {
    for (let night = 0; night < nights; night++) {
      const mask = bytes[at++]
      if (mask === 0) continue
      for (let plane = 0; plane < BYTE_PLANES; plane++) {
        if (((mask >>> plane) & 1) === 1) lengths[plane] = lengths[plane] + rows
      }
    }
  }
  return lengths
}

/** Days of the table and keys of the rows into the scratch area. */
function prepareRows({ u32, scratch, names, roomTypeHashes }: WordsCoder, slice: WordsSlice): void {
  const { rows, days, roomType } = names.tables[slice.table] as TableShape
  assert(slice.nights === days.length && slice.rowStart + slice.rows <= rows.length, 'a slice is within its table')
  u32.set(days, (scratch + DAYS) >>> 2)
  const [hashLow, hashHigh] = roomTypeHashes[roomType] as readonly [number, number]
  const low = (scratch + KEYS_LOW) >>> 2
  const high = (scratch + KEYS_HIGH) >>> 2
  for (let row = 0; row < slice.rows; row++) {
    const property = rows[slice.rowStart + row]
    // Dead rows have no words and so no use for a key.
    if (property === DEAD_ROW) continue
    u32[low + row] = rowKey(0, names.ids, property * 16, hashLow)
    u32[high + row] = rowKey(1, names.ids, property * 16, hashHigh)
  }
}

function cursorCell(coder: WordsCoder, plane: number): number {
  return ((coder.scratch + CURSORS) >>> 2) + plane
}

function clearStats({ u32, scratch }: WordsCoder): void {
  u32.fill(0, (scratch + STATS) >>> 2, ((scratch + STATS) >>> 2) + 3)
}

function statsOf({ u32, scratch }: WordsCoder): { packages: number; packageDigest: Digest } {
  const cell = (scratch + STATS) >>> 2
  const packageDigest = { lo: u32[cell + 1], hi: u32[cell + 2] }
  return { packages: u32[cell], packageDigest }
}
