/**
 * The snapshots of a data directory: finding them, choosing one to start from, and removing old ones.
 *
 *   data_dir/seed.snapshot                          one file, from build-snapshot or an export
 *   data_dir/snapshots/snap-<index>-<term>/MANIFEST written by this node (write.ts)
 *   data_dir/snapshots/load-<content digest>/MANIFEST    received, to be loaded into the running shard
 *   data_dir/snapshots/before-<content digest>/MANIFEST  the state before a load, until an operator drops it
 *   data_dir/snapshots/chunks/<digest>.chk          shared by all of them
 *
 * Read this file first, then format.ts (the bytes), write.ts, load.ts, words.ts and codec.ts.
 */

import { VacancyError } from '@vacancy/shared'
import { type Disk, guarded, syncFolder, unlinkFile } from '../env.ts'
import type { Steps } from '../steps.ts'
import { damaged, isDamage } from './columns.ts'
import { chunkFileName } from './format.ts'
import {
  openSnapshot,
  type PlacedChunk,
  placeChunks,
  readSeedFile,
  readSnapshotDir,
  type SnapshotHead,
  type SnapshotReader,
  scrubChunk,
} from './load.ts'
import { chunksFolder, snapshotsFolder } from './write.ts'

export const SEED_FILE = 'seed.snapshot'
/** Valid snapshots to keep; the older one is used when the newest turns out damaged. */
const SNAPSHOTS_KEPT = 2
/** Maximum read rate of scrubbing (docs/design/storage.md#scrubbing). */
const SCRUB_BYTES_PER_SECOND = 10e6

export type FoundSnapshot = { readonly path: string; readonly index: number; readonly term: number } & (
  | { readonly state: 'readable'; readonly head: SnapshotHead }
  /** Damaged, or of an unknown format. */
  | { readonly state: 'refused'; readonly error: VacancyError }
)

/** All snapshots of a data directory, newest first. Manifests are read and checked, chunks are not. */
export function findSnapshots(disk: Disk, dataDir: string): FoundSnapshot[] {
  const found: FoundSnapshot[] = []
  for (const { path, index, term } of snapshotFolders(disk, dataDir)) {
    // A folder without a manifest is an unfinished snapshot, left by a crash.
    if (disk.stat(`${path}/MANIFEST`) === undefined) continue
    found.push(look(path, { index, term }, () => readFolder(disk, dataDir, path, index, term)))
  }
  const seed = `${dataDir}/${SEED_FILE}`
  if (disk.stat(seed)) found.push(look(seed, { index: 0, term: 0 }, () => readSeedFile(disk, seed)))
  return found.sort((a, b) => b.index - a.index || b.term - a.term)
}

function look(path: string, named: { index: number; term: number }, read: () => SnapshotHead): FoundSnapshot {
  try {
    const head = read()
    return { path, index: head.manifest.index, term: head.manifest.term, state: 'readable', head }
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    return { path, ...named, state: 'refused', error }
  }
}

function readFolder(disk: Disk, dataDir: string, path: string, index: number, term: number): SnapshotHead {
  const head = readSnapshotDir(disk, path, chunksFolder(dataDir))
  if (head.manifest.index !== index || head.manifest.term !== term) {
    const { manifest } = head
    throw damaged(`${path}/MANIFEST`, 0, `it is of index ${manifest.index} and term ${manifest.term}`)
  }
  return head
}

function snapshotFolders(disk: Disk, dataDir: string): { path: string; index: number; term: number }[] {
  const folder = snapshotsFolder(dataDir)
  if (disk.stat(folder) === undefined) return []
  const folders: { path: string; index: number; term: number }[] = []
  for (const name of disk.list(folder)) {
    const match = /^snap-(\d{1,16})-(\d{1,16})$/.exec(name)
    if (match) folders.push({ path: `${folder}/${name}`, index: Number(match[1]), term: Number(match[2]) })
  }
  return folders
}

/** The purpose of a bulk load folder (docs/design/consensus.md#log-commands). */
export type LoadFolder = 'load' | 'before'

export function loadFolder(dataDir: string, purpose: LoadFolder, contentDigest: string): string {
  return `${snapshotsFolder(dataDir)}/${purpose}-${contentDigest}`
}

export type HeldSnapshot = { readonly purpose: LoadFolder; readonly contentDigest: string; readonly path: string }

/** Snapshots of bulk loads. They are not used to start from, and are only found by their digest. */
export function heldSnapshots(disk: Disk, dataDir: string): HeldSnapshot[] {
  const folder = snapshotsFolder(dataDir)
  if (disk.stat(folder) === undefined) return []
  return disk.list(folder).flatMap((name) => {
    const match = /^(load|before)-([0-9a-f]{64})$/.exec(name)
    const path = `${folder}/${name}`
    if (!match || disk.stat(`${path}/MANIFEST`) === undefined) return []
    return [{ purpose: match[1] as LoadFolder, contentDigest: match[2], path }]
  })
}

/** @throws corrupt_data */
export function readHeldSnapshot(disk: Disk, dataDir: string, { path }: HeldSnapshot): SnapshotHead {
  return readSnapshotDir(disk, path, chunksFolder(dataDir))
}

/** Note on the state before a load: the snapshot that replaced it. */
const BEFORE_ORIGIN = 'before-load-'

export function originBefore(loaded: string): string {
  return `${BEFORE_ORIGIN}${loaded}`
}

/** A state that a load replaced at the next index. */
export type StateBefore = {
  readonly path: string
  readonly contentDigest: string
  readonly index: number
  /** Content digest of the snapshot that replaced it. */
  readonly loaded: string
}

export function statesBefore(disk: Disk, dataDir: string): StateBefore[] {
  return heldSnapshots(disk, dataDir).flatMap((held) => {
    const head = held.purpose === 'before' ? readable(() => readHeldSnapshot(disk, dataDir, held)) : undefined
    if (!head?.note?.origin.startsWith(BEFORE_ORIGIN)) return []
    const { path, contentDigest } = held
    return [{ path, contentDigest, index: head.manifest.index, loaded: head.note.origin.slice(BEFORE_ORIGIN.length) }]
  })
}

export type Wanted = { readonly shardId: string; readonly codecsOrderedHash: string; readonly codecsText: string }

/** Why a snapshot cannot be used by this node, whatever its state: wrong_shard or codecs_changed. */
export function foreignness({ manifest, path }: SnapshotHead, wanted: Wanted): VacancyError | undefined {
  if (manifest.shardId !== wanted.shardId) {
    return new VacancyError('wrong_shard', { directory: path, found: manifest.shardId, wanted: wanted.shardId })
  }
  if (manifest.codecsOrderedHash === wanted.codecsOrderedHash) return undefined
  const reason = `${manifest.codecs.join(',')} in the snapshot, ${wanted.codecsText} here`
  return new VacancyError('codecs_changed', { file: 'this node', directory: path, reason })
}

export type Loaded<T> = {
  /** The result of `load` for the newest usable snapshot; undefined when there is none. */
  readonly loaded: { readonly reader: SnapshotReader; readonly value: T } | undefined
  /** Newer snapshots that could not be used, with the reasons. */
  readonly refused: readonly { readonly path: string; readonly error: VacancyError }[]
}

/**
 * Loads the newest snapshot that verifies completely; a damaged one falls back to the previous one
 * (docs/design/storage.md#snapshot-format).
 *
 * @param load receives the words (words-pool.ts, decodeAll). It may be called again with an older snapshot after it
 * threw corrupt_data, so each call must start from scratch
 * @throws wrong_shard, codecs_changed, data_conflict: no older snapshot can help
 */
export function* loadNewestSteps<T>(
  disk: Disk,
  dataDir: string,
  wanted: Wanted,
  load: (reader: SnapshotReader) => Steps<T>,
): Steps<Loaded<T>> {
  const refused: { path: string; error: VacancyError }[] = []
  for (const found of findSnapshots(disk, dataDir)) {
    try {
      if (found.state === 'refused') throw found.error
      const foreign = foreignness(found.head, wanted)
      if (foreign) throw foreign
      const reader = openSnapshot(disk, found.head)
      makeDurable(disk, dataDir, found.head)
      return { loaded: { reader, value: yield* load(reader) }, refused }
    } catch (error) {
      if (!isDamage(error)) throw error
      refused.push({ path: found.path, error })
    }
  }
  return { loaded: undefined, refused }
}

/**
 * Makes the names of a snapshot found at startup durable. A process killed while publishing may have left them only
 * in the page cache, and data built on them must survive the next power failure
 * (docs/design/storage.md#torn-tail-or-corruption).
 */
export function makeDurable(disk: Disk, dataDir: string, { path, places }: SnapshotHead): void {
  if (places.form === 'file') {
    syncFolder(disk, dataDir)
    return
  }
  // Chunks and the folders themselves were durable before the manifest existed.
  syncFolder(disk, path)
  syncFolder(disk, snapshotsFolder(dataDir))
}

/** Reads every chunk of a snapshot and compares digests. @throws corrupt_data */
export function verifySnapshot(disk: Disk, head: SnapshotHead): void {
  for (const chunk of placeChunks(head)) scrubChunk(disk, head, chunk)
}

/**
 * Removes snapshots older than the newest `SNAPSHOTS_KEPT` that look complete, then unreferenced chunks. The seed
 * file is the operator's and stays. Called by the thread that writes snapshots, when the log's mark of the newest one
 * is durable.
 *
 * @param pinned indexes of snapshots to keep as well, because they are being sent
 * @returns removed folders
 */
export function retainSnapshots(disk: Disk, dataDir: string, pinned: readonly number[] = []): string[] {
  const whole = findSnapshots(disk, dataDir).filter(
    (found) => found.state === 'readable' && found.head.places.form === 'folder' && hasAllChunks(disk, found.head),
  )
  const oldest = whole[SNAPSHOTS_KEPT - 1]
  const removed: string[] = []
  for (const { path, index, term } of snapshotFolders(disk, dataDir)) {
    const isUnfinished = disk.stat(`${path}/MANIFEST`) === undefined
    const isOld = oldest !== undefined && (index < oldest.index || (index === oldest.index && term < oldest.term))
    if (!isUnfinished && (!isOld || pinned.includes(index))) continue
    removeFolder(disk, path)
    removed.push(path)
  }
  // Manifests are removed durably before the first of their chunks: an existing manifest has all its chunks.
  if (removed.length > 0) syncFolder(disk, snapshotsFolder(dataDir))
  collectChunks(disk, dataDir)
  return removed
}

function hasAllChunks(disk: Disk, head: SnapshotHead): boolean {
  return placeChunks(head).every(({ file, part }) => disk.stat(file)?.bytes === part.bytes)
}

export function removeFolder(disk: Disk, path: string): void {
  for (const name of disk.list(path)) unlinkFile(disk, `${path}/${name}`)
  guarded('rmdir', path, () => disk.removeDirectory(path))
}

/** Removes unreferenced chunks and unfinished files of crashes. @returns files removed */
export function collectChunks(disk: Disk, dataDir: string): number {
  const folder = chunksFolder(dataDir)
  if (disk.stat(folder) === undefined) return 0
  const used = new Set<string>()
  for (const found of findSnapshots(disk, dataDir)) {
    // The chunks of an unreadable manifest are unknown: nothing is removed until it is repaired or deleted.
    if (found.state === 'refused') return 0
    for (const { part } of placeChunks(found.head)) used.add(chunkFileName(part.digest))
  }
  for (const held of heldSnapshots(disk, dataDir)) {
    const head = readable(() => readHeldSnapshot(disk, dataDir, held))
    if (!head) return 0
    for (const { part } of placeChunks(head)) used.add(chunkFileName(part.digest))
  }
  const unused = disk.list(folder).filter((name) => /[.]chk([.]tmp)?$/.test(name) && !used.has(name))
  for (const name of unused) unlinkFile(disk, `${folder}/${name}`)
  return unused.length
}

function readable(read: () => SnapshotHead): SnapshotHead | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    return undefined
  }
}

export type ScrubStep =
  | { readonly state: 'done' }
  | {
      readonly state: 'whole'
      readonly after: string
      /** How long to wait before the next step, so that reading stays below SCRUB_BYTES_PER_SECOND. */
      readonly waitMs: number
    }
  | {
      readonly state: 'damaged'
      readonly after: string
      readonly waitMs: number
      readonly error: VacancyError
      /** Snapshots that need this chunk. */
      readonly snapshots: readonly string[]
      /** Whether the newest one is among them; otherwise the next snapshot replaces the lost content. */
      readonly isNewest: boolean
    }

/**
 * Verifies the digest of one more chunk (docs/design/storage.md#scrubbing).
 *
 * @param after where the previous step ended, '' to start; worth keeping across restarts
 */
export function scrubStep(disk: Disk, dataDir: string, after: string): ScrubStep {
  const heads = findSnapshots(disk, dataDir).flatMap((found) => (found.state === 'readable' ? [found.head] : []))
  const placed = heads.flatMap((head) => placeChunks(head).map((chunk) => ({ head, chunk, place: placeOf(chunk) })))
  let next: (typeof placed)[number] | undefined
  for (const candidate of placed) {
    if (candidate.place > after && (next === undefined || candidate.place < next.place)) next = candidate
  }
  if (next === undefined) return { state: 'done' }
  const { head, chunk, place } = next
  const step = { after: place, waitMs: Math.ceil((chunk.part.bytes / SCRUB_BYTES_PER_SECOND) * 1000) }
  try {
    scrubChunk(disk, head, chunk)
    return { state: 'whole', ...step }
  } catch (error) {
    if (!isDamage(error)) throw error
    const users = placed.filter((other) => other.place === place).map((other) => other.head)
    const snapshots = [...new Set(users)].map(({ path }) => path)
    return { state: 'damaged', ...step, error, snapshots, isNewest: users.includes(heads[0] as SnapshotHead) }
  }
}

/** Chunks at the same location are the same. Locations sort in file order. */
function placeOf({ file, offset }: PlacedChunk): string {
  return `${file}@${String(offset).padStart(16, '0')}`
}
