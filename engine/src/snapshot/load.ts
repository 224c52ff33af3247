/**
 * Loads a snapshot from a folder or a file: the shape of its state first, then its words to addresses of the caller.
 *
 * Everything is verified: the digests of manifest and chunks, checksum and length of their unpacked content, every
 * number against what it counts or points to, and finally packages and digest of each part of words. Any mismatch is
 * `corrupt_data` with file, offset and reason.
 */

import { type Disk, readFully } from '../env.ts'
import { damaged } from './columns.ts'
import {
  type Block,
  type BlockKind,
  type ChunkExpectation,
  chunkFileName,
  decodeChunk,
  type Manifest,
  type Part,
  verifyChunk,
} from './format.ts'
import { decodeLedger, type LoadedLedger } from './ledger.ts'
import { decodeManifestFile, MANIFEST_FILE_BYTES_MAX, type Note } from './manifest-file.ts'
import { firstPlanes, type Names, type PlaneMap, type PropertyColumns, type TableShape, windowOf } from './schema.ts'
import { decodeProperties, decodeTables } from './sections.ts'
import { readSeedHead } from './seed.ts'
import { decodeWords, planWords, type WordsCoder, type WordsPart } from './words.ts'

/** Largest size of blocks that are read as a whole, before compression. */
const SECTION_BYTES_MAX: Readonly<Record<Exclude<BlockKind, 'words'>, number>> = {
  properties: 2 ** 31 - 1,
  tables: 2 ** 31 - 1,
  sessions: 256 << 20,
  settings: 1 << 20,
  replicated: 1 << 20,
  stays: 2 ** 31 - 1,
}

/** Location of the chunks: consecutive in one file, or each in its own file. */
export type ChunkPlaces =
  | { readonly form: 'file'; readonly path: string; readonly start: number }
  | { readonly form: 'folder'; readonly path: string }

/** One chunk of a snapshot: expected properties and location. */
export type PlacedChunk = ChunkExpectation & { readonly number: number }

/** A snapshot of which only the manifest was read. */
export type SnapshotHead = {
  /** The file, or the folder with the manifest. */
  readonly path: string
  readonly manifest: Manifest
  readonly places: ChunkPlaces
  /** How this node obtained it; absent for a file. */
  readonly note: Note | undefined
  /** Bytes of the chunks and, of a file, all else. */
  readonly bytes: number
}

export type SnapshotReader = SnapshotHead & {
  readonly names: Names
  readonly properties: PropertyColumns
  readonly tables: readonly TableShape[]
  readonly sessions: Uint8Array
  readonly settings: Uint8Array
  /** Empty below feature level 1. */
  readonly replicated: Uint8Array
  readonly stays: LoadedLedger
  /** Number of the first plane of each table in a PlaneMap. */
  readonly firstPlane: Uint32Array
  readonly words: WordsJob
}

/** Everything a thread needs to decode words, except the names of rows and the memory. */
export type WordsJob = {
  readonly parts: readonly WordsPart[]
  readonly chunks: readonly PlacedChunk[]
}

/** Reads the manifest of a snapshot file. @throws corrupt_data, data_conflict, errno errors */
export function readSeedFile(disk: Disk, path: string): SnapshotHead {
  const { manifest, chunksStart, bytes } = readSeedHead(disk, path)
  return { path, manifest, places: { form: 'file', path, start: chunksStart }, note: undefined, bytes }
}

/**
 * Reads the manifest of a snapshot folder.
 *
 * @param path the folder with the MANIFEST
 * @param chunks the folder with the chunks
 */
export function readSnapshotDir(disk: Disk, path: string, chunks: string): SnapshotHead {
  const file = `${path}/MANIFEST`
  const { manifest, note } = decodeManifestFile(readWhole(disk, file, MANIFEST_FILE_BYTES_MAX), file)
  let bytes = 0
  for (const block of manifest.blocks) for (const part of block.parts) bytes += part.bytes
  return { path, manifest, places: { form: 'folder', path: chunks }, note, bytes }
}

/** Reads and verifies the shape of the state: everything except words. */
export function openSnapshot(disk: Disk, head: SnapshotHead): SnapshotReader {
  const { manifest } = head
  const file = head.path
  const placed = placeChunks(head)
  const section = (kind: Exclude<BlockKind, 'words'>) => readSection(disk, head, placed, kind)
  checkBlocks(head)
  const { names, properties } = decodeProperties(section('properties'), file)
  const tables = decodeTables(section('tables'), file, names, properties)
  const reader: SnapshotReader = {
    ...head,
    names,
    properties,
    tables,
    sessions: section('sessions'),
    settings: section('settings'),
    replicated: section('replicated'),
    stays: decodeLedger(section('stays'), file),
    firstPlane: firstPlanes(tables),
    words: { parts: planWords(tables).flat(), chunks: placed.filter((chunk) => chunk.kind === 'words') },
  }
  checkCounts(reader, manifest)
  return reader
}

/** Reads a snapshot file except its words. @throws corrupt_data, data_conflict, errno errors */
export function openSeedFile(disk: Disk, path: string): SnapshotReader {
  return openSnapshot(disk, readSeedFile(disk, path))
}

/** Every chunk in the order of the manifest. */
export function placeChunks({ manifest, places }: SnapshotHead): PlacedChunk[] {
  const chunks: PlacedChunk[] = []
  let offset = places.form === 'file' ? places.start : 0
  for (const { kind, parts } of manifest.blocks) {
    for (const part of parts) {
      const file = places.form === 'file' ? places.path : `${places.path}/${chunkFileName(part.digest)}`
      chunks.push({ number: chunks.length, kind, part, codecsOrderedHash: manifest.codecsOrderedHash, file, offset })
      if (places.form === 'file') offset += part.bytes
    }
  }
  return chunks
}

/** Reads one chunk and verifies only its length. */
export function readChunk(disk: Disk, { file, offset, part }: PlacedChunk, form: ChunkPlaces['form']): Uint8Array {
  const stat = disk.stat(file)
  if (!stat || stat.isDirectory) throw damaged(file, 0, 'the chunk is missing')
  if (form === 'folder' && stat.bytes !== part.bytes) {
    throw damaged(file, 0, `the chunk has ${stat.bytes} bytes, expected ${part.bytes} by the manifest`)
  }
  const descriptor = disk.open(file, 'read')
  try {
    const bytes = new Uint8Array(part.bytes)
    const read = readFully(disk, descriptor, bytes, 0, part.bytes, offset)
    if (read !== part.bytes) throw damaged(file, offset + read, 'the file ends too early')
    return bytes
  } finally {
    disk.close(descriptor)
  }
}

/** Reads one chunk again and compares its digest (docs/design/storage.md#scrubbing). @throws corrupt_data */
export function scrubChunk(disk: Disk, head: SnapshotHead, chunk: PlacedChunk): void {
  verifyChunk(readChunk(disk, chunk, head.places.form), chunk)
}

/**
 * Reads, verifies and decodes one part of the words into empty planes. Several threads may do so concurrently.
 *
 * @param part index in `reader.words`
 */
export function decodePart(
  disk: Disk,
  { words, form, firstPlane }: { words: WordsJob; form: ChunkPlaces['form']; firstPlane: Uint32Array },
  coder: WordsCoder,
  planeMap: PlaneMap,
  part: number,
): void {
  const chunk = words.chunks[part] as PlacedChunk
  decodeWords(coder, words.parts[part] as WordsPart, readChunk(disk, chunk, form), chunk, planeMap, firstPlane)
}

function readWhole(disk: Disk, path: string, bytesMax: number): Uint8Array {
  const stat = disk.stat(path)
  if (!stat || stat.isDirectory) throw damaged(path, 0, 'the file does not exist')
  if (stat.bytes > bytesMax) throw damaged(path, 0, `a file of ${stat.bytes} bytes exceeds the limit`)
  const file = disk.open(path, 'read')
  try {
    const bytes = new Uint8Array(stat.bytes)
    const read = readFully(disk, file, bytes, 0, bytes.length, 0)
    if (read !== bytes.length) throw damaged(path, read, 'the file ends too early')
    return bytes
  } finally {
    disk.close(file)
  }
}

/** All parts of the block of a kind, unpacked and joined; empty when there is no such block. */
function readSection(
  disk: Disk,
  { places, path }: SnapshotHead,
  placed: readonly PlacedChunk[],
  kind: Exclude<BlockKind, 'words'>,
): Uint8Array {
  const raws: Uint8Array[] = []
  let length = 0
  for (const chunk of placed) {
    if (chunk.kind !== kind) continue
    const raw = decodeChunk(readChunk(disk, chunk, places.form), chunk)
    length += raw.length
    if (length > SECTION_BYTES_MAX[kind]) throw damaged(path, 0, `its ${kind} exceed the limit`)
    raws.push(raw)
  }
  if (raws.length === 1) return raws[0] as Uint8Array
  const joined = new Uint8Array(length)
  let at = 0
  for (const raw of raws) {
    joined.set(raw, at)
    at += raw.length
  }
  return joined
}

/** Checks that blocks are in writing order, each kind except words at most once. */
function checkBlocks({ manifest, path }: SnapshotHead): void {
  const order: readonly BlockKind[] = ['properties', 'tables', 'words', 'sessions', 'settings', 'replicated', 'stays']
  let before = -1
  for (const { kind, parts } of manifest.blocks) {
    const at = order.indexOf(kind)
    if (at < before || (at === before && kind !== 'words')) throw damaged(path, 0, `a block of ${kind} is out of order`)
    if (parts.length === 0) throw damaged(path, 0, `a block of ${kind} has no parts`)
    before = at
  }
  for (const kind of ['properties', 'tables'] as const) {
    if (!manifest.blocks.some((block) => block.kind === kind)) throw damaged(path, 0, `it has no ${kind}`)
  }
}

/** Checks properties, tables and words against the counts in the manifest. */
function checkCounts({ path, names, properties, tables }: SnapshotReader, manifest: Manifest): void {
  const expect = (holds: boolean, reason: string) => {
    if (!holds) throw damaged(path, 0, reason)
  }
  const planned = planWords(tables)
  const blocks = manifest.blocks.filter((block: Block) => block.kind === 'words')
  expect(planned.length === blocks.length, `it has ${blocks.length} blocks of words, its tables need ${planned.length}`)
  let packages = 0
  blocks.forEach((block, i) => {
    expect(block.parts.length === planned[i]?.length, `block ${i} of its words has ${block.parts.length} parts`)
    block.parts.forEach((part: Part) => {
      packages += part.packages
    })
  })
  expect(
    packages === manifest.packages,
    `its parts hold ${packages} packages, expected ${manifest.packages} by its manifest`,
  )
  expect(
    properties.count === manifest.properties,
    `it holds ${properties.count} properties, not ${manifest.properties}`,
  )
  const propertiesOf = new Array<number>(names.segments.length).fill(0)
  for (let i = 0; i < properties.count; i++) {
    const segment = properties.segment[i]
    propertiesOf[segment] = propertiesOf[segment] + 1
  }
  const window = windowOf(tables)
  expect(
    window?.from === manifest.window?.from && window?.to === manifest.window?.to,
    'its manifest has different days',
  )
  const held = names.segments.map((name, i) => ({ name, properties: propertiesOf[i] }))
  const segments = held.filter((segment) => segment.properties > 0)
  expect(manifest.segments.length === segments.length, 'its manifest names different segments')
  manifest.segments.forEach((segment, i) => {
    expect(segment.name === segments[i]?.name, 'its manifest names different segments')
    const properties = segments[i]?.properties
    expect(segment.properties === properties, `segment ${segment.name} has a different number of properties`)
  })
}
