/**
 * Writes a state as a snapshot: a folder of a running node, or one file to copy
 * (docs/design/storage.md#snapshot-format).
 *
 *   data_dir/snapshots/snap-<index>-<term>/MANIFEST
 *   data_dir/snapshots/chunks/<digest>.chk            shared by all snapshots, written once
 *
 * A chunk gets its name only after its content is durable, so an existing name implies a complete chunk. Then the
 * folder of chunks is synced, then the manifest appears. The caller is notified when the manifest is durable. It may
 * then write the log's mark and remove older snapshots (snapshot.ts).
 */

import { VacancyError } from '@vacancy/shared'
import {
  type Disk,
  type Env,
  guarded,
  isDiskFull,
  readFully,
  renameFile,
  replaceFile,
  syncFile,
  syncFolder,
  unlinkFile,
  writeFully,
} from '../env.ts'
import { type Steps, settled, type Wait, waited, walk, walkAtOnce } from '../steps.ts'
import {
  type Block,
  type BlockKind,
  type Content,
  chunkBytesOf,
  chunkFileName,
  cutRaw,
  type Digest,
  decodeManifest,
  digestText,
  encodeChunk,
  encodeManifest,
  equalBytes,
  type Manifest,
  type Part,
  type Position,
  sha256,
} from './format.ts'
import { encodeManifestFile, type Note } from './manifest-file.ts'
import { type SnapshotSource, type TableShape, windowOf } from './schema.ts'
import { encodeProperties, encodeTables } from './sections.ts'
import { beginSeed, SEED_HEADER_BYTES } from './seed.ts'
import { createWordsCoder, type EncodedPart, encodeWords, planWords, type WordsPart } from './words.ts'

/**
 * Encodes parts of words, by their global number. An encoder that processes several parts at once may return
 * promises. Undefined means that the source was aborted.
 */
export type WordsEncoder = {
  /** Parts to request before the first result is awaited. */
  readonly ahead: number
  encode(part: number): EncodedPart | undefined | Promise<EncodedPart | undefined>
}

/** Encodes on this thread. @param scratch address of WORDS_SCRATCH_BYTES in the source's memory */
export function inlineEncoder(source: SnapshotSource, scratch: number): WordsEncoder {
  const coder = createWordsCoder(source.memory, scratch, {
    tables: source.tables,
    ids: source.properties.ids,
    roomTypes: source.names.roomTypes,
  })
  const parts = planWords(source.tables).flat()
  const { orderedHash } = source.codecs
  return {
    ahead: 1,
    encode: (part) => encodeWords(coder, parts[part] as WordsPart, orderedHash, source.words),
  }
}

/**
 * The part of this snapshot that the next one may reuse, kept in memory. Discarded when a chunk turns out damaged.
 * Without it every chunk to be reused is first read and compared, and rewritten if it is not intact.
 */
export type PreviousSnapshot = {
  readonly index: number
  readonly parts: ReadonlyMap<string, KnownPart>
  /** Names of chunks that this process has written or compared. */
  readonly chunks: ReadonlySet<string>
}
type KnownPart = { readonly part: Part; readonly slicePackages: Uint32Array }

type PlannedBlock =
  | { readonly kind: 'words'; readonly parts: readonly WordsPart[] }
  | { readonly kind: Exclude<BlockKind, 'words'>; readonly parts: readonly Uint8Array[] }

function planBlocks(source: SnapshotSource): PlannedBlock[] {
  const blocks: PlannedBlock[] = [
    { kind: 'properties', parts: cutRaw(encodeProperties(source.names, source.properties)) },
    { kind: 'tables', parts: cutRaw(encodeTables(source.tables)) },
  ]
  for (const parts of planWords(source.tables)) blocks.push({ kind: 'words', parts })
  if (source.sessions.length > 0) blocks.push({ kind: 'sessions', parts: cutRaw(source.sessions) })
  if (source.settings.length > 0) blocks.push({ kind: 'settings', parts: cutRaw(source.settings) })
  if (source.replicated.length > 0) blocks.push({ kind: 'replicated', parts: cutRaw(source.replicated) })
  if (source.stays.length > 0) blocks.push({ kind: 'stays', parts: cutRaw(source.stays) })
  return blocks
}

/** Destination of the chunks, in manifest order. */
type ChunkSink = {
  put(part: Part, bytes: Uint8Array): undefined | Wait<void>
  /** Whether a chunk already exists. */
  has(part: Part): boolean
}

function* put(sink: ChunkSink, part: Part, bytes: Uint8Array): Steps<void> {
  const wait = sink.put(part, bytes)
  if (wait) yield* waited(wait)
}

type EncodedBlocks = { readonly content: Content; readonly parts: Map<string, KnownPart> }

/** Encodes and writes everything except the manifest. @returns undefined when the source was aborted */
function* encodeBlocks(
  source: SnapshotSource,
  planned: readonly PlannedBlock[],
  encoder: WordsEncoder,
  sink: ChunkSink,
  previous?: PreviousSnapshot,
): Steps<EncodedBlocks | undefined> {
  const blocks: Block[] = []
  const parts = new Map<string, KnownPart>()
  const packagesOf = new Array<number>(source.names.segments.length).fill(0)
  const ahead = encodeAhead(source, planned, encoder, sink, previous)
  let packages = 0
  let { lo, hi } = source.digestWithoutPackages
  for (const block of planned) {
    const done: Part[] = []
    for (const part of block.parts) {
      if (!('slices' in part)) {
        const chunk = encodeChunk(block.kind, source.codecs.orderedHash, part)
        const entry = { digest: chunk.digest, bytes: chunk.bytes.length, packages: 0, packageDigest: { lo: 0, hi: 0 } }
        yield* put(sink, entry, chunk.bytes)
        done.push(entry)
        continue
      }
      const known = yield* nextWords(ahead, sink)
      if (!known) return undefined
      done.push(known.part)
      parts.set(keyOf(source, part), known)
      packages += known.part.packages
      lo = (lo + known.part.packageDigest.lo) >>> 0
      hi = (hi + known.part.packageDigest.hi) >>> 0
      part.slices.forEach((slice, i) => {
        const { segment } = source.tables[slice.table] as TableShape
        packagesOf[segment] = packagesOf[segment] + known.slicePackages[i]
      })
    }
    blocks.push({ kind: block.kind, parts: done })
  }
  expectDigest(source, { lo, hi })
  return { content: contentOf(source, blocks, { lo, hi }, packages, packagesOf), parts }
}

/** Parts of words in order, some of them started ahead. */
type Ahead = {
  /** Starts the next one. */
  readonly begin: () => KnownPart | EncodedPart | undefined | Promise<EncodedPart | undefined>
  readonly begun: ReturnType<Ahead['begin']>[]
  left: number
  readonly most: number
}

function encodeAhead(
  source: SnapshotSource,
  planned: readonly PlannedBlock[],
  encoder: WordsEncoder,
  sink: ChunkSink,
  previous: PreviousSnapshot | undefined,
): Ahead {
  const parts = planned.flatMap((block) => (block.kind === 'words' ? block.parts : []))
  let next = 0
  const begin: Ahead['begin'] = () => {
    const number = next++
    const known = reusable(source, parts[number] as WordsPart, previous)
    if (known && sink.has(known.part)) return known
    const encoded = encoder.encode(number)
    // Awaited in its turn; until then a failure must not count as an unhandled rejection.
    if (encoded instanceof Promise) encoded.catch(() => undefined)
    return encoded
  }
  return { begin, begun: [], left: parts.length, most: encoder.ahead }
}

/** Writes the next part of words. @returns undefined when the source was aborted */
function* nextWords(ahead: Ahead, sink: ChunkSink): Steps<KnownPart | undefined> {
  while (ahead.left > 0 && ahead.begun.length < ahead.most) {
    ahead.left--
    ahead.begun.push(ahead.begin())
  }
  const ready = yield* settled<KnownPart | EncodedPart | undefined>(ahead.begun.shift())
  if (!ready || 'part' in ready) return ready
  const { chunk, packages, packageDigest, slicePackages } = ready
  const part: Part = { digest: chunk.digest, bytes: chunk.bytes.length, packages, packageDigest }
  yield* put(sink, part, chunk.bytes)
  return { part, slicePackages }
}

/** The encoded state must match the store's own counts. A mismatch is a bug, and the snapshot must not be used. */
function expectDigest({ index, digest: expected }: SnapshotSource, found: Digest): void {
  if (expected === undefined || (expected.lo === found.lo && expected.hi === found.hi)) return
  throw new VacancyError('digest_mismatch', { index, found: digestText(found), wanted: digestText(expected) })
}

/** The same part of the previous snapshot, if none of its tables has changed since. */
function reusable(
  source: SnapshotSource,
  part: WordsPart,
  previous: PreviousSnapshot | undefined,
): KnownPart | undefined {
  if (previous === undefined || source.unchangedSince === undefined) return undefined
  for (const { table } of part.slices) if (!source.unchangedSince(table, previous.index)) return undefined
  return previous.parts.get(keyOf(source, part))
}

/** Names a part by its content, because numbers of tables and parts shift when a table is added or removed. */
function keyOf({ names, tables }: SnapshotSource, part: WordsPart): string {
  return part.slices
    .map(({ table, rowStart, rows, nights }) => {
      const { segment, roomType } = tables[table] as TableShape
      return [names.segments[segment], names.roomTypes[roomType], rowStart, rows, nights].join('\u0000')
    })
    .join('\u0001')
}

function contentOf(
  source: SnapshotSource,
  blocks: readonly Block[],
  digest: Digest,
  packages: number,
  packagesOf: readonly number[],
): Content {
  const propertiesOf = new Array<number>(source.names.segments.length).fill(0)
  for (let i = 0; i < source.properties.count; i++) {
    const segment = source.properties.segment[i]
    propertiesOf[segment] = propertiesOf[segment] + 1
  }
  return {
    shardId: source.shardId,
    codecs: source.codecs.names,
    codecsOrderedHash: source.codecs.orderedHash,
    lastMaintenanceDay: source.lastMaintenanceDay,
    digest,
    properties: source.properties.count,
    packages,
    sessions: source.sessionCount,
    window: windowOf(source.tables),
    // A name without a property stays among the names, but is not a segment.
    segments: source.names.segments
      .map((name, i) => ({ name, properties: propertiesOf[i], packages: packagesOf[i] }))
      .filter(({ properties }) => properties > 0),
    blocks,
  }
}

// As a folder of a node

export type WrittenSnapshot = {
  readonly path: string
  readonly manifest: Manifest
  readonly note: Note
  /** Bytes of all chunks, and of the new ones. */
  readonly chunkBytes: number
  readonly newChunkBytes: number
  readonly previous: PreviousSnapshot
}

export type WriteOptions = {
  readonly encoder: WordsEncoder
  /** Why it is written, for /snapshot-info. */
  readonly origin: string
  readonly previous?: PreviousSnapshot
  /** Bytes of new chunks per second; unlimited when absent. */
  readonly bytesPerSecond?: number
  /** Whether a caller waits for this snapshot, which lifts the rate limit. */
  readonly isHurried?: () => boolean
}

export function snapshotsFolder(dataDir: string): string {
  return `${dataDir}/snapshots`
}

export function chunksFolder(dataDir: string): string {
  return `${dataDir}/snapshots/chunks`
}

/**
 * Writes a snapshot into `data_dir`; durable and discoverable when the promise resolves. A failure leaves existing
 * snapshots untouched, and, unless it ends the process, no new chunks.
 *
 * @returns undefined when the source was aborted
 * @throws the errno error of a full disk; disk_failed after any other failed call, and digest_mismatch: both end the
 * process
 */
export function writeSnapshotDir(
  env: Env,
  dataDir: string,
  source: SnapshotSource,
  options: WriteOptions,
): Promise<WrittenSnapshot | undefined> {
  return walk(writeSnapshotDirSteps(env, dataDir, source, options))
}

/** The same synchronously, for an encoder on this thread and without a rate limit. */
export function writeSnapshotDirAtOnce(
  env: Env,
  dataDir: string,
  source: SnapshotSource,
  options: Omit<WriteOptions, 'bytesPerSecond' | 'isHurried'>,
): WrittenSnapshot | undefined {
  return walkAtOnce(writeSnapshotDirSteps(env, dataDir, source, options))
}

/** The same in steps. */
export function* writeSnapshotDirSteps(
  env: Env,
  dataDir: string,
  source: SnapshotSource,
  options: WriteOptions,
): Steps<WrittenSnapshot | undefined> {
  const { disk, clock } = env
  const startMs = clock.monotonicMs()
  makeFolder(disk, snapshotsFolder(dataDir))
  makeFolder(disk, chunksFolder(dataDir))
  const sink = createFolderSink(env, chunksFolder(dataDir), options, startMs)
  try {
    const encoded = yield* encodeBlocks(source, planBlocks(source), options.encoder, sink, options.previous)
    if (!encoded) {
      sink.undo()
      return undefined
    }
    // Also when nothing was new: an earlier attempt may have ended between a change and its sync.
    syncFolder(disk, chunksFolder(dataDir))
    syncFolder(disk, snapshotsFolder(dataDir))
    syncFolder(disk, dataDir)
    const { index, term, configuration, membership } = source
    const bytes = encodeManifest({ ...encoded.content, index, term, configuration, membership })
    const durationMs = Math.round(clock.monotonicMs() - startMs)
    const note: Note = { createdAtMs: Math.round(clock.wallMs()), durationMs, origin: options.origin }
    const path = `${snapshotsFolder(dataDir)}/snap-${index}-${term}`
    makeFolder(disk, path)
    replaceFile(disk, `${path}/MANIFEST`, encodeManifestFile(bytes, note))
    syncFolder(disk, snapshotsFolder(dataDir))
    const manifest = decodeManifest(bytes, `${path}/MANIFEST`)
    const previous = { index, parts: encoded.parts, chunks: sink.chunks }
    return { path, manifest, note, chunkBytes: chunkBytesOf(manifest), newChunkBytes: sink.newBytes(), previous }
  } catch (error) {
    // The attempt repeats on a full disk, which would fill up further each time.
    if (isDiskFull(error)) sink.undo()
    throw error
  }
}

type FolderSink = ChunkSink & {
  /** Names of all chunks of this snapshot so far. */
  readonly chunks: ReadonlySet<string>
  newBytes(): number
  /** Removes the new chunks. */
  undo(): void
}

function createFolderSink(
  { disk, clock, schedule, sometimes }: Env,
  folder: string,
  { previous, bytesPerSecond, isHurried }: WriteOptions,
  startMs: number,
): FolderSink {
  const chunks = new Set<string>()
  const added: string[] = []
  let newBytes = 0
  const has = (part: Part): boolean => {
    const name = chunkFileName(part.digest)
    const isThere = disk.stat(`${folder}/${name}`)?.bytes === part.bytes
    const isKnown = chunks.has(name) || (previous?.chunks.has(name) && !sometimes?.('compare a chunk again', 0.5))
    if (!isThere || !(isKnown || isWhole(disk, `${folder}/${name}`, part))) {
      return false
    }
    chunks.add(name)
    return true
  }
  return {
    chunks,
    has,
    put(part, bytes) {
      if (has(part)) return undefined
      const name = chunkFileName(part.digest)
      putChunk(disk, `${folder}/${name}`, bytes)
      chunks.add(name)
      added.push(name)
      newBytes += bytes.length
      if (bytesPerSecond === undefined || isHurried?.()) return undefined
      const earlyMs = startMs + (newBytes / bytesPerSecond) * 1000 - clock.monotonicMs()
      return earlyMs > 0 ? (done) => void schedule.after(earlyMs, () => done(undefined)) : undefined
    },
    newBytes: () => newBytes,
    undo() {
      for (const name of added) unlinkFile(disk, `${folder}/${name}`)
    },
  }
}

/** Whether the content of a chunk of an earlier process matches its name. */
function isWhole(disk: Disk, path: string, part: Part): boolean {
  const file = disk.open(path, 'read')
  try {
    const bytes = new Uint8Array(part.bytes)
    return readFully(disk, file, bytes, 0, bytes.length, 0) === bytes.length && equalBytes(sha256(bytes), part.digest)
  } finally {
    disk.close(file)
  }
}

/** Creates a folder unless it exists; its name is not yet durable. */
export function makeFolder(disk: Disk, path: string): void {
  if (!disk.stat(path)) guarded('mkdir', path, () => disk.makeDirectory(path))
}

/** Writes a chunk under a temporary name and renames it when it is durable. The folder is synced once, later. */
export function putChunk(disk: Disk, path: string, bytes: Uint8Array): void {
  const temporary = `${path}.tmp`
  if (disk.stat(temporary)) unlinkFile(disk, temporary)
  const file = guarded('open', temporary, () => disk.open(temporary, 'create'))
  try {
    guarded('write', temporary, () => writeFully(disk, file, bytes, 0, bytes.length, 0))
  } catch (error) {
    disk.close(file)
    if (isDiskFull(error)) unlinkFile(disk, temporary)
    throw error
  }
  syncFile(disk, file, temporary)
  disk.close(file)
  renameFile(disk, temporary, path)
}

// As one file

export type SeedOptions = {
  readonly encoder: WordsEncoder
  /** Called after each chunk. */
  readonly onProgress?: (done: { readonly parts: number; readonly of: number; readonly chunkBytes: number }) => void
}

export type WrittenSeed = { readonly manifest: Manifest; readonly bytes: number }

/**
 * Writes a snapshot as one file, which appears under its name when it is complete and durable.
 *
 * @returns undefined when the source was aborted
 * @throws errno errors of a full disk or an unwritable folder; disk_failed
 */
export function writeSeedFile(
  env: Env,
  path: string,
  source: SnapshotSource,
  options: SeedOptions,
): Promise<WrittenSeed | undefined> {
  return walk(seedSteps(env, path, source, options))
}

/** The same synchronously, for an encoder on this thread. */
export function writeSeedFileAtOnce(
  env: Env,
  path: string,
  source: SnapshotSource,
  options: SeedOptions,
): WrittenSeed | undefined {
  return walkAtOnce(seedSteps(env, path, source, options))
}

function* seedSteps(
  env: Env,
  path: string,
  source: SnapshotSource,
  options: SeedOptions,
): Steps<WrittenSeed | undefined> {
  const planned = planBlocks(source)
  const of = planned.reduce((sum, block) => sum + block.parts.length, 0)
  const { index, term, configuration, membership } = source
  const position: Position = { index, term, configuration, membership }
  const seed = beginSeed(env.disk, path, manifestBytesOf(source, planned, position))
  try {
    let parts = 0
    let chunkBytes = 0
    const put = (_part: Part, bytes: Uint8Array): undefined => {
      seed.put(bytes)
      parts++
      chunkBytes += bytes.length
      options.onProgress?.({ parts, of, chunkBytes })
    }
    const encoded = yield* encodeBlocks(source, planned, options.encoder, { put, has: () => false })
    if (!encoded) {
      seed.abandon()
      return undefined
    }
    const manifest = encodeManifest({ ...encoded.content, ...position })
    const bytes = seed.finish(manifest)
    return { manifest: decodeManifest(manifest, path, SEED_HEADER_BYTES), bytes }
  } catch (error) {
    seed.abandon()
    throw error
  }
}

/** Chunks are written before the manifest, which precedes them in the file; its length depends only on the plan. */
function manifestBytesOf(source: SnapshotSource, planned: readonly PlannedBlock[], position: Position): number {
  const none = { digest: new Uint8Array(32), bytes: 0, packages: 0, packageDigest: { lo: 0, hi: 0 } }
  const blocks = planned.map(({ kind, parts }) => ({ kind, parts: parts.map(() => none) }))
  const noPackages = source.names.segments.map(() => 0)
  const content = contentOf(source, blocks, { lo: 0, hi: 0 }, 0, noPackages)
  return encodeManifest({ ...content, ...position }).length
}
