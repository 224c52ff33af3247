/**
 * A state → a snapshot, as a folder of a running node or as one file to copy (consensus.md §16.2).
 *
 *   data_dir/snapshots/snap-<index>-<term>/MANIFEST
 *   data_dir/snapshots/chunks/<digest>.chk            shared by all snapshots, written once
 *
 * A chunk gets its name only after its content is durable, so a name that is there can be trusted to be whole. Then the
 * folder of chunks is synced, then the manifest appears, and only when that is durable does the caller hear of it, who
 * then may write the log's mark and let older snapshots go (snapshot.ts).
 */

import { assert, VacancyError } from '@vacancy/shared'
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
import { encodeManifestFile, type Note } from './note.ts'
import { encodeProperties, encodeTables } from './sections.ts'
import { beginSeed, SEED_HEADER_BYTES } from './seed.ts'
import { type SnapshotSource, type TableShape, windowOf } from './shapes.ts'
import { createWordsCoder, type EncodedPart, encodeWords, planWords, type WordsPart } from './words.ts'

/**
 * Encodes parts of words by their number in the order of all. Those that take several parts at once may answer with
 * promises; undefined means that the source gave up.
 */
export type WordsEncoder = {
  /** Parts to ask for before the first one's answer is awaited. */
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
 * What the next snapshot may take over from this one, kept in memory. To be forgotten when a chunk turns out damaged:
 * without it every chunk that is to be used again is read and compared first, and rewritten where it is not whole.
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
  return blocks
}

/** Where chunks go, in the order of the manifest. */
type ChunkSink = {
  put(part: Part, bytes: Uint8Array): undefined | Promise<void>
  /** Whether a chunk is there already. */
  has(part: Part): boolean
}

/**
 * Writing as steps: what is yielded must be awaited before the next one. A promise comes only from an encoder with
 * threads or a limit of the rate; without them the very same steps run through at once, as simulations need it.
 */
type Steps<T> = Generator<Promise<unknown>, T, unknown>

async function walk<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next()
  while (!step.done) {
    try {
      step = steps.next(await step.value)
    } catch (error) {
      // Thrown by the steps themselves it comes out here again, because they have ended.
      step = steps.throw(error)
    }
  }
  return step.value
}

function walkAtOnce<T>(steps: Steps<T>): T {
  const step = steps.next()
  assert(step.done, 'nothing has to be awaited')
  return step.value
}

function* settled<T>(value: T | Promise<T>): Steps<T> {
  return value instanceof Promise ? ((yield value) as T) : value
}

type EncodedBlocks = { readonly content: Content; readonly parts: Map<string, KnownPart> }

/** Encodes and puts down everything but the manifest. @returns undefined when the source gave up */
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
        yield* settled(sink.put(entry, chunk.bytes))
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
        packagesOf[segment] = (packagesOf[segment] as number) + (known.slicePackages[i] as number)
      })
    }
    blocks.push({ kind: block.kind, parts: done })
  }
  expectDigest(source, { lo, hi })
  return { content: contentOf(source, blocks, { lo, hi }, packages, packagesOf), parts }
}

/** Parts of words in their order, some of them begun before they are needed. */
type Ahead = {
  /** Begins the next one. */
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
    // Awaited in its turn; until then a failure must not count as one that nobody handles.
    if (encoded instanceof Promise) encoded.catch(() => undefined)
    return encoded
  }
  return { begin, begun: [], left: parts.length, most: encoder.ahead }
}

/** The next part of words, put down. @returns undefined when the source gave up */
function* nextWords(ahead: Ahead, sink: ChunkSink): Steps<KnownPart | undefined> {
  while (ahead.left > 0 && ahead.begun.length < ahead.most) {
    ahead.left--
    ahead.begun.push(ahead.begin())
  }
  const ready = yield* settled<KnownPart | EncodedPart | undefined>(ahead.begun.shift())
  if (!ready || 'part' in ready) return ready
  const { chunk, packages, packageDigest, slicePackages } = ready
  const part: Part = { digest: chunk.digest, bytes: chunk.bytes.length, packages, packageDigest }
  yield* settled(sink.put(part, chunk.bytes))
  return { part, slicePackages }
}

/** What was encoded must be what the store believes it holds; anything else is a bug, and no snapshot to start from. */
function expectDigest({ index, digest: expected }: SnapshotSource, found: Digest): void {
  if (expected === undefined || (expected.lo === found.lo && expected.hi === found.hi)) return
  throw new VacancyError('digest_mismatch', { index, found: digestText(found), wanted: digestText(expected) })
}

/** The same part of the previous snapshot, when none of its tables has changed since. */
function reusable(
  source: SnapshotSource,
  part: WordsPart,
  previous: PreviousSnapshot | undefined,
): KnownPart | undefined {
  if (previous === undefined || source.unchangedSince === undefined) return undefined
  for (const { table } of part.slices) if (!source.unchangedSince(table, previous.index)) return undefined
  return previous.parts.get(keyOf(source, part))
}

/** Names a part by what is in it, because numbers of tables and parts move when a table comes or goes. */
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
    const segment = source.properties.segment[i] as number
    propertiesOf[segment] = (propertiesOf[segment] as number) + 1
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
    segments: source.names.segments.map((name, i) => ({
      name,
      properties: propertiesOf[i] as number,
      packages: packagesOf[i] as number,
    })),
    blocks,
  }
}

// As a folder of a node

export type WrittenSnapshot = {
  readonly path: string
  readonly manifest: Manifest
  readonly note: Note
  /** Bytes of all chunks, and of those that were not there before. */
  readonly chunkBytes: number
  readonly newChunkBytes: number
  readonly previous: PreviousSnapshot
}

export type WriteOptions = {
  readonly encoder: WordsEncoder
  /** Why it is taken, for /snapshot-info. */
  readonly origin: string
  readonly previous?: PreviousSnapshot
  /** Bytes of new chunks a second; no limit when absent. */
  readonly bytesPerSecond?: number
}

export function snapshotsFolder(dataDir: string): string {
  return `${dataDir}/snapshots`
}

export function chunksFolder(dataDir: string): string {
  return `${dataDir}/snapshots/chunks`
}

/**
 * Writes a snapshot into `data_dir`; durable and to be found when the promise resolves. What ends otherwise leaves the
 * snapshots that were there as they are; unless it ends the process, it leaves no chunks either.
 *
 * @returns undefined when the source gave up
 * @throws the errno error of a full disk; disk_failed after any other failed call, digest_mismatch: both end the process
 */
export function writeSnapshotDir(
  env: Env,
  dataDir: string,
  source: SnapshotSource,
  options: WriteOptions,
): Promise<WrittenSnapshot | undefined> {
  return walk(folderSteps(env, dataDir, source, options))
}

/** The same in one go, for an encoder on this thread and no limit of the rate. */
export function writeSnapshotDirAtOnce(
  env: Env,
  dataDir: string,
  source: SnapshotSource,
  options: Omit<WriteOptions, 'bytesPerSecond'>,
): WrittenSnapshot | undefined {
  return walkAtOnce(folderSteps(env, dataDir, source, options))
}

function* folderSteps(
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
    // Also when nothing was new here: an earlier attempt may have ended between a change and its sync.
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
    // A full disk is met again and again; each time it would be fuller.
    if (isDiskFull(error)) sink.undo()
    throw error
  }
}

type FolderSink = ChunkSink & {
  /** Names of all chunks of this snapshot so far. */
  readonly chunks: ReadonlySet<string>
  newBytes(): number
  /** Removes the chunks that were not there before. */
  undo(): void
}

function createFolderSink(
  { disk, clock, schedule }: Env,
  folder: string,
  { previous, bytesPerSecond }: WriteOptions,
  startMs: number,
): FolderSink {
  const chunks = new Set<string>()
  const added: string[] = []
  let newBytes = 0
  const has = (part: Part): boolean => {
    const name = chunkFileName(part.digest)
    const isThere = disk.stat(`${folder}/${name}`)?.bytes === part.bytes
    if (!isThere || !(chunks.has(name) || previous?.chunks.has(name) || isWhole(disk, `${folder}/${name}`, part))) {
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
      if (bytesPerSecond === undefined) return undefined
      const earlyMs = startMs + (newBytes / bytesPerSecond) * 1000 - clock.monotonicMs()
      return earlyMs > 0 ? new Promise<void>((resolve) => schedule.after(earlyMs, resolve)) : undefined
    },
    newBytes: () => newBytes,
    undo() {
      for (const name of added) unlinkFile(disk, `${folder}/${name}`)
    },
  }
}

/** Whether a chunk of an earlier process holds what its name says. */
function isWhole(disk: Disk, path: string, part: Part): boolean {
  const file = disk.open(path, 'read')
  try {
    const bytes = new Uint8Array(part.bytes)
    return readFully(disk, file, bytes, 0, bytes.length, 0) === bytes.length && equalBytes(sha256(bytes), part.digest)
  } finally {
    disk.close(file)
  }
}

/** A folder that may be there; its name is not yet durable. */
export function makeFolder(disk: Disk, path: string): void {
  if (!disk.stat(path)) guarded('mkdir', path, () => disk.makeDirectory(path))
}

/** Writes a chunk under a temporary name and gives it its own when it is durable. The folder is synced once, later. */
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
 * Writes a snapshot as one file; it appears under its name when it is whole and durable.
 *
 * @returns undefined when the source gave up
 * @throws errno errors of a full disk or a folder that cannot be written; disk_failed
 */
export function writeSeedFile(
  env: Env,
  path: string,
  source: SnapshotSource,
  options: SeedOptions,
): Promise<WrittenSeed | undefined> {
  return walk(seedSteps(env, path, source, options))
}

/** The same in one go, for an encoder on this thread. */
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

/** Chunks are written before the manifest, which stands in front of them; its length depends on the plan alone. */
function manifestBytesOf(source: SnapshotSource, planned: readonly PlannedBlock[], position: Position): number {
  const none = { digest: new Uint8Array(32), bytes: 0, packages: 0, packageDigest: { lo: 0, hi: 0 } }
  const blocks = planned.map(({ kind, parts }) => ({ kind, parts: parts.map(() => none) }))
  const noPackages = source.names.segments.map(() => 0)
  const content = contentOf(source, blocks, { lo: 0, hi: 0 }, 0, noPackages)
  return encodeManifest({ ...content, ...position }).length
}
