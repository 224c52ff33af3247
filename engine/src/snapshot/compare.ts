/**
 * The properties in which two snapshot files differ, for `vacancy inspect FILE --against OTHER`. Each property has
 * three sums of hashes, as the state digest has one over all records (store/digest.ts): of its attributes, of its room
 * types, and of its packages. They depend on names and ids only, so those of two files can be compared.
 */

import { PROPERTY_ID_BYTES, unpackPropertyId } from '@vacancy/shared'
import { SNAPSHOT_DIFFERENCES_MAX, type SnapshotDifferences } from '@vacancy/shared/contract'
import type { Disk } from '../env.ts'
import { type Lane, nameHash, packageHash, propertyHash, roomHash, rowKey } from '../store/digest.ts'
import { type NightOfRows, visitWords } from './content.ts'
import { snapshotId } from './format.ts'
import { openSeedFile, type SnapshotReader } from './load.ts'
import { DEAD_ROW } from './schema.ts'

const LANES = [0, 1] as const
/** Both lanes of a property, one after the other. */
type Sums = Uint32Array

type Prints = {
  readonly reader: SnapshotReader
  readonly attributes: Sums
  readonly rooms: Sums
  readonly packages: Sums
}

/** Compares two snapshot files. @throws corrupt_data, data_conflict, errno errors */
export function differencesOf(pathA: string, pathB: string, disk: Disk): SnapshotDifferences {
  const [readerA, readerB] = [openSeedFile(disk, pathA), openSeedFile(disk, pathB)]
  const isSameList = readerA.manifest.codecsOrderedHash === readerB.manifest.codecsOrderedHash
  const a = printsOf(disk, readerA, isSameList)
  const b = printsOf(disk, readerB, isSameList)
  const placesInB = placesOf(b)
  const onlyA: Found = { count: 0, first: [] }
  const onlyB: Found = { count: 0, first: [] }
  const changed: Changed = { count: 0, first: [] }
  const isInA = new Uint8Array(readerB.properties.count)
  for (let at = 0; at < readerA.properties.count; at++) {
    const other = placesInB.get(keyOf(a, at))
    if (other === undefined) {
      add(onlyA, () => nameOf(a, at))
      continue
    }
    isInA[other] = 1
    const what = (['attributes', 'rooms', 'packages'] as const).filter((sums) =>
      LANES.some((lane) => a[sums][at * 2 + lane] !== b[sums][other * 2 + lane]),
    )
    if (what.length > 0) add(changed, () => ({ ...nameOf(b, other), what }))
  }
  for (let at = 0; at < isInA.length; at++) if (isInA[at] === 0) add(onlyB, () => nameOf(b, at))
  return { a: snapshotId(readerA.manifest), b: snapshotId(readerB.manifest), onlyA, onlyB, changed }
}

type Listed<T> = { count: number; readonly first: T[] }
type Found = Listed<SnapshotDifferences['onlyA']['first'][number]>
type Changed = Listed<SnapshotDifferences['changed']['first'][number]>

/** Counts all, and lists the first. */
function add<T>(list: Listed<T>, make: () => T): void {
  list.count++
  if (list.first.length < SNAPSHOT_DIFFERENCES_MAX) list.first.push(make())
}

function nameOf({ reader: { names, properties } }: Prints, at: number): Found['first'][number] {
  return {
    id: unpackPropertyId(properties.ids, at * PROPERTY_ID_BYTES),
    segment: names.segments[properties.segment[at]],
  }
}

function keyOf({ reader: { properties } }: Prints, at: number): string {
  const { buffer, byteOffset } = properties.ids
  return Buffer.from(buffer, byteOffset + at * PROPERTY_ID_BYTES, PROPERTY_ID_BYTES).toString('latin1')
}

function placesOf(prints: Prints): ReadonlyMap<string, number> {
  const places = new Map<string, number>()
  for (let at = 0; at < prints.reader.properties.count; at++) places.set(keyOf(prints, at), at)
  return places
}

const encoder = new TextEncoder()

function hashesOf(names: readonly string[], lane: Lane): number[] {
  return names.map((name) => {
    const bytes = encoder.encode(name)
    return nameHash(lane, bytes, 0, bytes.length)
  })
}

/** @param isSameList whether the other snapshot has the same codec list, so that rate features have the same bits */
function printsOf(disk: Disk, reader: SnapshotReader, isSameList: boolean): Prints {
  const { properties, names, tables, manifest } = reader
  const sums = () => new Uint32Array(properties.count * 2)
  const prints: Prints = { reader, attributes: sums(), rooms: sums(), packages: sums() }
  const roomTypes = LANES.map((lane) => hashesOf(names.roomTypes, lane))
  const features = LANES.map((lane) => hashesOf(manifest.codecs, lane))
  for (const lane of LANES) addProperties(prints, lane, roomTypes[lane])
  const keys = rowKeys(reader, roomTypes)
  visitWords(disk, reader, (nights, u32, start) => {
    const { table, night, rowStart, rows } = nights
    const day = tables[table].days[night]
    const numbers = tables[table].rows
    const keyOfRow = keys(nights)
    for (let row = 0; row < rows; row++) {
      const low = u32[start + row * 2]
      const high = u32[start + row * 2 + 1]
      const property = numbers[rowStart + row]
      if ((low | high) === 0 || property === DEAD_ROW) continue
      for (const lane of LANES) {
        const key = keyOfRow[row * 2 + lane]
        const hash = isSameList
          ? packageHash(lane, key, day, low, high)
          : packageHash(lane, (key + featuresHash(low >>> 8, features[lane])) | 0, day, low & 0xff, high)
        const place = property * 2 + lane
        prints.packages[place] = prints.packages[place] + hash
      }
    }
  })
  return prints
}

/** Keys of the rows of a part, which are the same for all of its nights. */
function rowKeys({ tables, properties }: SnapshotReader, roomTypes: readonly (readonly number[])[]) {
  let known = { table: -1, rowStart: -1 }
  let keys = new Uint32Array(0)
  return (nights: NightOfRows): Uint32Array => {
    const { table, rowStart, rows } = nights
    if (known.table === table && known.rowStart === rowStart) return keys
    known = nights
    keys = new Uint32Array(rows * 2)
    for (let row = 0; row < rows; row++) {
      const property = tables[table].rows[rowStart + row]
      if (property === DEAD_ROW) continue
      for (const lane of LANES) {
        const roomType = roomTypes[lane][tables[table].roomType]
        keys[row * 2 + lane] = rowKey(lane, properties.ids, property * PROPERTY_ID_BYTES, roomType)
      }
    }
    return keys
  }
}

/** Rate features by name: another codec list gives them other bits. */
function featuresHash(features: number, hashes: readonly number[]): number {
  let sum = 0
  for (let mask = features; mask !== 0; mask &= mask - 1) sum = (sum + hashes[31 - Math.clz32(mask & -mask)]) | 0
  return sum
}

function addProperties({ reader, attributes, rooms }: Prints, lane: Lane, roomTypes: readonly number[]): void {
  const { properties, names } = reader
  const hashes = {
    segment: hashesOf(names.segments, lane),
    area: hashesOf(names.areas, lane),
    type: hashesOf(names.types, lane),
    category: hashesOf(names.categories, lane),
    amenity: hashesOf(names.amenities, lane),
  }
  for (let at = 0; at < properties.count; at++) {
    const idStart = at * PROPERTY_ID_BYTES
    const place = at * 2 + lane
    attributes[place] = propertyHash(lane, {
      ...{ id: properties.ids, idStart, stars: properties.stars[at] },
      ...{ latitude: properties.latitude[at], longitude: properties.longitude[at] },
      segmentHash: hashes.segment[properties.segment[at]],
      areaHash: hashes.area[properties.area[at]],
      typeHash: hashes.type[properties.type[at]],
      categoryHash: hashes.category[properties.category[at]],
      amenityHashes: Array.from(
        properties.amenities.subarray(properties.amenityStart[at], properties.amenityStart[at + 1]),
        (amenity) => hashes.amenity[amenity],
      ),
    })
    for (const room of properties.rooms.subarray(properties.roomStart[at], properties.roomStart[at + 1])) {
      rooms[place] = rooms[place] + roomHash(lane, rowKey(lane, properties.ids, idStart, roomTypes[room]))
    }
  }
}
