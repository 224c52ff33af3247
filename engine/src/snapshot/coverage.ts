/**
 * What a snapshot file holds, counted from the file itself: every chunk is read, verified and decoded, part by part, so
 * memory stays small however large the file is. The counters of `vacancy inspect FILE`, and the read-back that an
 * import compares with what it was told to build.
 */

import { formatDay } from '@vacancy/shared'
import type { SnapshotFile } from '@vacancy/shared/contract'
import { createEnv, type Disk, type Log } from '../env.ts'
import { BYTES_PER_WORD } from './codec.ts'
import { snapshotId } from './format.ts'
import { decodePart, openSeedFile, type SnapshotReader } from './load.ts'
import type { PlaneMap } from './shapes.ts'
import { sharedU32 } from './shapes.ts'
import { createWordsCoder, planWords, WORDS_SCRATCH_BYTES } from './words.ts'

const PAGE_BYTES = 65_536
/** Bytes kept free in front of the planes: address 0 is no address. */
const ORIGIN = 64

/** More room types than this share a place of the histogram. */
export const ROOMS_COUNTED_MAX = 24

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/** Counts a snapshot file. @throws corrupt_data, data_conflict, errno errors */
export function coverageOf(path: string, disk: Disk = createEnv(silent).disk): SnapshotFile {
  const reader = openSeedFile(disk, path)
  const { manifest, names, properties } = reader
  const first = manifest.window?.from ?? 0
  const days = manifest.window ? manifest.window.to - first + 1 : 0
  const segments = names.segments.map((name, i) => ({
    name,
    properties: manifest.segments[i]?.properties ?? 0,
    rooms: 0,
    packages: new Array<number>(days).fill(0),
  }))
  const byFeature = new Array<number>(manifest.codecs.length).fill(0)
  countWords(disk, reader, byFeature, (table, night, packages, rooms) => {
    const shape = reader.tables[table]
    const segment = shape && segments[shape.segment]
    if (!shape || !segment) return
    const day = (shape.days[night] as number) - first
    segment.packages[day] = (segment.packages[day] as number) + packages
    segment.rooms += rooms
  })
  return {
    path,
    id: snapshotId(manifest),
    shard: manifest.shardId,
    codecs: manifest.codecs,
    codecHash: manifest.codecsOrderedHash,
    bytes: reader.bytes,
    properties: properties.count,
    packages: segments.reduce((sum, each) => sum + each.packages.reduce((total, count) => total + count, 0), 0),
    roomTypes: names.roomTypes.length,
    window: manifest.window ? { from: formatDay(manifest.window.from), to: formatDay(manifest.window.to) } : null,
    roomsPerProperty: histogram(reader),
    packagesPerFeature: byFeature,
    segments,
  }
}

function histogram({ properties: { count, roomStart } }: SnapshotReader): number[] {
  const places = new Array<number>(ROOMS_COUNTED_MAX + 2).fill(0)
  for (let i = 0; i < count; i++) {
    const rooms = (roomStart[i + 1] as number) - (roomStart[i] as number)
    const place = Math.min(rooms, ROOMS_COUNTED_MAX + 1)
    places[place] = (places[place] as number) + 1
  }
  return places
}

/**
 * Decodes part after part into one small area and counts what is there.
 *
 * The rows of a part lie anywhere in their table, and decoding places them from the table's first row on. So the area
 * begins behind as many bytes as the farthest row needs; what lies before is never touched, and takes no memory.
 *
 * @param byFeature gets the packages that have entry i of the codec list
 */
function countWords(
  disk: Disk,
  reader: SnapshotReader,
  byFeature: number[],
  count: (table: number, night: number, packages: number, rooms: number) => void,
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
    words: sharedU32(firstPlane[tables.length] as number),
    availableOffset: sharedU32(tables.length),
    statsBefore: 0,
  }
  for (const [part, { slices, words: wordsOfPart }] of parts.entries()) {
    u32.fill(0, area >>> 2, (area >>> 2) + wordsOfPart * 2)
    let next = area
    for (const { table, rowStart, rows, nights } of slices) {
      for (let night = 0; night < nights; night++) {
        planeMap.words[(firstPlane[table] as number) + night] = next - rowStart * BYTES_PER_WORD
        next += rows * BYTES_PER_WORD
      }
    }
    decodePart(disk, { words, form: places.form, firstPlane }, coder, planeMap, part)
    let at = area >>> 2
    for (const { table, rows, nights } of slices) {
      for (let night = 0; night < nights; night++) {
        let packages = 0
        let rooms = 0
        for (const end = at + rows * 2; at < end; at += 2) {
          const low = u32[at] as number
          if ((low | (u32[at + 1] as number)) === 0) continue
          packages++
          rooms += low & 0xff
          for (let mask = low >>> 8; mask !== 0; mask &= mask - 1) {
            const bit = 31 - Math.clz32(mask & -mask)
            byFeature[bit] = (byFeature[bit] as number) + 1
          }
        }
        count(table, night, packages, rooms)
      }
    }
  }
}
