/**
 * The content of a snapshot file, counted from the file itself: every chunk is read, verified and decoded, part by
 * part, so that memory stays small for any file size. Used by `vacancy inspect FILE`, and for the read-back that an
 * import compares with its input.
 */

import { formatDay } from '@vacancy/shared'
import type { SnapshotFile } from '@vacancy/shared/contract'
import { createEnv, type Disk, type Log } from '../env.ts'
import { visitWords } from './content.ts'
import { snapshotId } from './format.ts'
import { openSeedFile, type SnapshotReader } from './load.ts'

/** All larger numbers of room types share the last bucket of the histogram. */
const ROOMS_COUNTED_MAX = 24

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/** Counts a snapshot file. @throws corrupt_data, data_conflict, errno errors */
export function coverageOf(path: string, disk: Disk = createEnv(silent).disk): SnapshotFile {
  const reader = openSeedFile(disk, path)
  const { manifest, names, properties } = reader
  const first = manifest.window?.from ?? 0
  const days = manifest.window ? manifest.window.to - first + 1 : 0
  const propertiesOf = new Map(manifest.segments.map((segment) => [segment.name, segment.properties]))
  const segments = names.segments.map((name) => ({
    name,
    properties: propertiesOf.get(name) ?? 0,
    rooms: 0,
    packages: new Array<number>(days).fill(0),
  }))
  const byFeature = new Array<number>(manifest.codecs.length).fill(0)
  countWords(disk, reader, byFeature, (table, night, packages, rooms) => {
    const shape = reader.tables[table]
    const segment = shape && segments[shape.segment]
    if (!shape || !segment) return
    const day = shape.days[night] - first
    segment.packages[day] = segment.packages[day] + packages
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
    segments: segments.filter(({ properties: held }) => held > 0),
  }
}

function histogram({ properties: { count, roomStart } }: SnapshotReader): number[] {
  const places = new Array<number>(ROOMS_COUNTED_MAX + 2).fill(0)
  for (let i = 0; i < count; i++) {
    const rooms = roomStart[i + 1] - roomStart[i]
    const place = Math.min(rooms, ROOMS_COUNTED_MAX + 1)
    places[place] = places[place] + 1
  }
  return places
}

/** @param byFeature receives the packages that have entry i of the codec list */
function countWords(
  disk: Disk,
  reader: SnapshotReader,
  byFeature: number[],
  count: (table: number, night: number, packages: number, rooms: number) => void,
): void {
  visitWords(disk, reader, ({ table, night, rows: rowCount }, u32, start) => {
    let packages = 0
    let rooms = 0
    for (let at = start, end = start + rowCount * 2; at < end; at += 2) {
      const low = u32[at]
      if ((low | u32[at + 1]) === 0) continue
      packages++
      rooms += low & 0xff
      for (let mask = low >>> 8; mask !== 0; mask &= mask - 1) {
        const bit = 31 - Math.clz32(mask & -mask)
        byFeature[bit] = byFeature[bit] + 1
      }
    }
    count(table, night, packages, rooms)
  })
}
