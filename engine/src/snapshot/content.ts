/** Visits the words of a snapshot file: every chunk is read, verified and decoded, part by part, in little memory. */

import type { Disk } from '../env.ts'
import { BYTES_PER_WORD } from './codec.ts'
import { decodePart, type SnapshotReader } from './load.ts'
import { type PlaneMap, sharedU32 } from './schema.ts'
import { createWordsCoder, planWords, WORDS_SCRATCH_BYTES } from './words.ts'

const PAGE_BYTES = 65_536
/** Bytes kept free before the planes: address 0 means none. */
const ORIGIN = 64

/** One night of consecutive rows of a table. */
export type NightOfRows = {
  readonly table: number
  /** Index into the days of the table. */
  readonly night: number
  readonly rowStart: number
  readonly rows: number
}

/**
 * Decodes one part after the other into a small area.
 *
 * The rows of a part may be anywhere in their table, and decoding places them relative to the table's first row. The
 * area therefore starts after as many bytes as the farthest row needs. The bytes before are never touched, and take
 * no memory.
 *
 * @param visit receives the words as low and high halves, those of the first row at `at`; valid until it returns
 */
export function visitWords(
  disk: Disk,
  reader: SnapshotReader,
  visit: (nights: NightOfRows, u32: Uint32Array, at: number) => void,
): void {
  const { tables, properties, names, words, places, firstPlane } = reader
  const parts = planWords(tables).flat()
  if (parts.length === 0) return
  const wordsMax = parts.reduce((most, part) => Math.max(most, part.words), 0)
  const farthest = parts.reduce((most, { slices }) => Math.max(most, ...slices.map(({ rowStart }) => rowStart)), 0)
  const area = ORIGIN + farthest * BYTES_PER_WORD
  const scratch = area + wordsMax * BYTES_PER_WORD
  const pages = Math.ceil((scratch + WORDS_SCRATCH_BYTES) / PAGE_BYTES)
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true })
  const u32 = new Uint32Array(memory.buffer)
  const coder = createWordsCoder(memory, scratch, { tables, ids: properties.ids, roomTypes: names.roomTypes })
  const planeMap: PlaneMap = {
    words: sharedU32(firstPlane[tables.length]),
    availableOffset: sharedU32(tables.length),
    statsBefore: 0,
  }
  for (const [part, { slices, words: wordsOfPart }] of parts.entries()) {
    u32.fill(0, area >>> 2, (area >>> 2) + wordsOfPart * 2)
    let next = area
    for (const { table, rowStart, rows, nights } of slices) {
      for (let night = 0; night < nights; night++) {
        planeMap.words[firstPlane[table] + night] = next - rowStart * BYTES_PER_WORD
        next += rows * BYTES_PER_WORD
      }
    }
    decodePart(disk, { words, form: places.form, firstPlane }, coder, planeMap, part)
    let at = area >>> 2
    for (const { table, rowStart, rows, nights } of slices) {
      for (let night = 0; night < nights; night++) {
        visit({ table, night, rowStart, rows }, u32, at)
        at += rows * 2
      }
    }
  }
}
