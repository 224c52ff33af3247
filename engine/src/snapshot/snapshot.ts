/**
 * Which snapshots a data directory has, which one to start from, and which may go.
 *
 *   data_dir/seed.snapshot                          one file, from build-snapshot or an export
 *   data_dir/snapshots/snap-<index>-<term>/MANIFEST written by this node (write.ts)
 *   data_dir/snapshots/load-<content digest>/MANIFEST    brought here to be loaded into the running shard
 *   data_dir/snapshots/before-<content digest>/MANIFEST  the state before a load, until an operator drops it
 *   data_dir/snapshots/chunks/<digest>.chk          shared by all of them
 *
 * Start here, then format.ts (what the bytes are), write.ts, load.ts, words.ts and codec.ts.
 */

import { formatDay, VacancyError } from '@vacancy/shared'
import { type Disk, guarded, syncFolder, unlinkFile } from '../env.ts'
import { damaged, isDamage } from './columns.ts'
import { chunkFileName, encodeManifest, snapshotId, verifyChunk } from './format.ts'
import {
  openSnapshot,
  type PlacedChunk,
  placeChunks,
  readChunk,
  readSeedFile,
  readSnapshotDir,
  type SnapshotHead,
  type SnapshotReader,
  scrubChunk,
} from './load.ts'
import { beginSeed } from './seed.ts'
import { chunksFolder, snapshotsFolder } from './write.ts'

export const SEED_FILE = 'seed.snapshot'
/** Valid snapshots that are kept; the older one serves when the newest turns out damaged. */
export const SNAPSHOTS_KEPT = 2
/** Scrubbing reads no faster than this (consensus.md V7). */
export const SCRUB_BYTES_PER_SECOND = 10e6

export type FoundSnapshot = { readonly path: string; readonly index: number; readonly term: number } & (
  | { readonly state: 'readable'; readonly head: SnapshotHead }
  /** Damaged, or of a format this version does not know. */
  | { readonly state: 'refused'; readonly error: VacancyError }
)

/** All snapshots of a data directory, newest first. Manifests are read and checked, chunks are not. */
export function findSnapshots(disk: Disk, dataDir: string): FoundSnapshot[] {
  const found: FoundSnapshot[] = []
  for (const { path, index, term } of snapshotFolders(disk, dataDir)) {
    // A folder without a manifest is what a crash left of a snapshot that was never finished.
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

/** What the folder of a bulk load is for (consensus.md §11). */
export type LoadFolder = 'load' | 'before'

export function loadFolder(dataDir: string, purpose: LoadFolder, contentDigest: string): string {
  return `${snapshotsFolder(dataDir)}/${purpose}-${contentDigest}`
}

export type HeldSnapshot = { readonly purpose: LoadFolder; readonly contentDigest: string; readonly path: string }

/** Snapshots of bulk loads. They are none to start from: nobody looks at them but by their digest. */
export function heldSnapshots(disk: Disk, dataDir: string): HeldSnapshot[] {
  const folder = snapshotsFolder(dataDir)
  if (disk.stat(folder) === undefined) return []
  return disk.list(folder).flatMap((name) => {
    const match = /^(load|before)-([0-9a-f]{64})$/.exec(name)
    const path = `${folder}/${name}`
    if (!match || disk.stat(`${path}/MANIFEST`) === undefined) return []
    return [{ purpose: match[1] as LoadFolder, contentDigest: match[2] as string, path }]
  })
}

/** @throws corrupt_data */
export function readHeldSnapshot(disk: Disk, dataDir: string, { path }: HeldSnapshot): SnapshotHead {
  return readSnapshotDir(disk, path, chunksFolder(dataDir))
}

/** Note on the state before a load: which snapshot was loaded over it. */
const BEFORE_ORIGIN = 'before-load-'

export function originBefore(loaded: string): string {
  return `${BEFORE_ORIGIN}${loaded}`
}

/** A state that a load replaced at the index behind its own. */
export type StateBefore = {
  readonly path: string
  readonly contentDigest: string
  readonly index: number
  /** Content digest of what was loaded over it. */
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

/** Why a snapshot cannot serve this node, whatever its state: wrong_shard or codecs_changed. */
export function foreignness({ manifest, path }: SnapshotHead, wanted: Wanted): VacancyError | undefined {
  if (manifest.shardId !== wanted.shardId) {
    return new VacancyError('wrong_shard', { directory: path, found: manifest.shardId, wanted: wanted.shardId })
  }
  if (manifest.codecsOrderedHash === wanted.codecsOrderedHash) return undefined
  const reason = `${manifest.codecs.join(',')} in the snapshot, ${wanted.codecsText} here`
  return new VacancyError('codecs_changed', { file: 'this node', directory: path, reason })
}

export type Loaded<T> = {
  /** What `load` made of the newest snapshot that it could use; undefined when there is none. */
  readonly loaded: { readonly reader: SnapshotReader; readonly value: T } | undefined
  /** Newer ones that could not be used, and why. */
  readonly refused: readonly { readonly path: string; readonly error: VacancyError }[]
}

/**
 * Loads the newest snapshot that verifies completely; a damaged one gives way to the one before (consensus.md §16.2).
 *
 * @param load takes the words (words-pool.ts, decodeAll); may be called again with an older snapshot when it throws
 *   corrupt_data, so it must begin from nothing each time
 * @throws wrong_shard, codecs_changed, data_conflict: those no older snapshot can cure
 */
export async function loadNewest<T>(
  disk: Disk,
  dataDir: string,
  wanted: Wanted,
  load: (reader: SnapshotReader) => T | Promise<T>,
): Promise<Loaded<T>> {
  const refused: { path: string; error: VacancyError }[] = []
  for (const found of findSnapshots(disk, dataDir)) {
    try {
      if (found.state === 'refused') throw found.error
      const foreign = foreignness(found.head, wanted)
      if (foreign) throw foreign
      const reader = openSnapshot(disk, found.head)
      makeDurable(disk, dataDir, found.head)
      return { loaded: { reader, value: await load(reader) }, refused }
    } catch (error) {
      if (!isDamage(error)) throw error
      refused.push({ path: found.path, error })
    }
  }
  return { loaded: undefined, refused }
}

/**
 * Makes the names of a snapshot durable that was found at a start: a process that was killed while it published may have
 * left them in the page cache alone, and what is built on them must not lose its ground with the next power cut (V5).
 */
export function makeDurable(disk: Disk, dataDir: string, { path, places }: SnapshotHead): void {
  if (places.form === 'file') {
    syncFolder(disk, dataDir)
    return
  }
  // Chunks and the folders themselves were durable before there was a manifest.
  syncFolder(disk, path)
  syncFolder(disk, snapshotsFolder(dataDir))
}

/** Reads every chunk of a snapshot and compares digests. @throws corrupt_data */
export function verifySnapshot(disk: Disk, head: SnapshotHead): void {
  for (const chunk of placeChunks(head)) scrubChunk(disk, head, chunk)
}

/**
 * Removes what is older than the newest `SNAPSHOTS_KEPT` snapshots that look whole, then chunks nobody refers to. The
 * seed file is the operator's and stays. Called when the log's mark of the newest one is durable, by the thread that
 * writes snapshots.
 *
 * @param pinned indexes of snapshots that are kept beside, because they are being sent
 * @returns folders that were removed
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
  // Manifests are gone for good before the first of their chunks is: a manifest that is there has all its chunks.
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

/** Removes chunks that no manifest refers to and what crashes left of unfinished ones. @returns files removed */
export function collectChunks(disk: Disk, dataDir: string): number {
  const folder = chunksFolder(dataDir)
  if (disk.stat(folder) === undefined) return 0
  const used = new Set<string>()
  for (const found of findSnapshots(disk, dataDir)) {
    // What a manifest that cannot be read refers to is not known: nothing goes until it is repaired or gone.
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
      /** Whether the newest one is among them; otherwise the next snapshot replaces what was lost. */
      readonly isNewest: boolean
    }

/**
 * Reads one more chunk again and compares its digest (consensus.md V7).
 *
 * @param after where the step before ended, '' to begin; worth remembering over a restart
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

/** Chunks that lie at the same place are the same; places sort in the order of a file. */
function placeOf({ file, offset }: PlacedChunk): string {
  return `${file}@${String(offset).padStart(16, '0')}`
}

/**
 * Writes a snapshot as one file, whatever form it has now; every chunk is checked on the way. Its members stay behind:
 * what is restored from a file is a new shard (consensus.md §16.2).
 *
 * @throws corrupt_data when a chunk is damaged; then there is no file
 */
export function exportSeedFile(disk: Disk, head: SnapshotHead, path: string): number {
  const manifest = encodeManifest({ ...head.manifest, membership: undefined })
  const seed = beginSeed(disk, path, manifest.length)
  try {
    for (const chunk of placeChunks(head)) {
      const bytes = readChunk(disk, chunk, head.places.form)
      verifyChunk(bytes, chunk)
      seed.put(bytes)
    }
    return seed.finish(manifest)
  } catch (error) {
    seed.abandon()
    throw error
  }
}

/** The document of GET /snapshot-info (platform.md §7.4). */
export function snapshotInfo(head: SnapshotHead) {
  const { manifest, note } = head
  const { window } = manifest
  return {
    id: snapshotId(manifest),
    created_at: note ? new Date(note.createdAtMs).toISOString() : null,
    shard_id: manifest.shardId,
    last_index: manifest.index,
    last_term: manifest.term,
    properties: manifest.properties,
    packages: manifest.packages,
    segments: manifest.segments.length,
    window: window ? { from: formatDay(window.from), to: formatDay(window.to) } : null,
    codec_hash: manifest.codecsOrderedHash,
    bytes: head.bytes,
    origin: note?.origin ?? 'file',
    duration_ms: note?.durationMs ?? null,
  }
}
