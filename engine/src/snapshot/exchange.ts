/**
 * Disk operations of a transfer between nodes (docs/design/storage.md#transfer): read ranges of chunks for other
 * nodes, store received chunks in `incoming/`, and make a complete snapshot current. Plain functions: the bulk thread
 * runs them for the replica thread, which must not wait for a disk, and a simulator runs them inline.
 *
 *   data_dir/incoming/<digest>.chk   received, verified, durable except for its name
 *
 * A chunk is named by its content, so a verified one is valid for every later offer of any leader, and after
 * restarts. Names are not synced one by one: a chunk whose name is lost in a crash is downloaded again. All names are
 * synced, in their final location, before a manifest refers to them.
 */

import { assert, unreachable, VacancyError } from '@vacancy/shared'
import {
  type Disk,
  type Env,
  guarded,
  isDiskFull,
  readFully,
  renameFile,
  replaceFile,
  syncFolder,
  unlinkFile,
} from '../env.ts'
import { isDamage } from './columns.ts'
import {
  chunkFileName,
  decodeManifest,
  encodeManifest,
  equalBytes,
  hex,
  type Manifest,
  type Membership,
  type Part,
  sha256,
  verifyChunk,
} from './format.ts'
import { placeChunks, readChunk, readSeedFile, readSnapshotDir, type SnapshotHead } from './load.ts'
import { encodeManifestFile } from './manifest-file.ts'
import {
  findSnapshots,
  foreignness,
  heldSnapshots,
  loadFolder,
  originBefore,
  readHeldSnapshot,
  removeFolder,
  SEED_FILE,
  type StateBefore,
  statesBefore,
  type Wanted,
} from './snapshot.ts'
import { chunksFolder, makeFolder, putChunk, snapshotsFolder } from './write.ts'

/** Kept free beyond the need of a transfer, because the log continues meanwhile. */
const INCOMING_RESERVE_BYTES = 64 << 20

export type ChunkName = { readonly digest: string; readonly bytes: number }

export type ExchangeAsk =
  /** The newest snapshot of this node, to offer it. */
  | { readonly kind: 'newest' }
  /** The existing and the missing chunks of a snapshot. */
  | { readonly kind: 'plan'; readonly manifest: Uint8Array }
  /** Whether an existing chunk is intact. One in the seed file is copied out of it. */
  | { readonly kind: 'verify'; readonly chunk: ChunkName }
  /** Verifies and stores a received chunk. */
  | { readonly kind: 'store'; readonly digest: string; readonly bytes: Uint8Array }
  /** A range of a chunk, or of a manifest by its own digest. */
  | { readonly kind: 'read'; readonly digest: string; readonly offset: number; readonly length: number }
  /** All chunks are verified: the snapshot becomes current. */
  | { readonly kind: 'current'; readonly manifest: Uint8Array; readonly origin: string }
  /** The same for a snapshot to load into the running shard: it is kept separately, under its content digest. */
  | { readonly kind: 'hold'; readonly manifest: Uint8Array; readonly origin: string }
  /** A snapshot file of this machine to load: copied, and held as above. */
  | { readonly kind: 'import'; readonly file: string; readonly wanted: Wanted }
  /** The snapshot of a load, or the state before one, by its content digest. */
  | { readonly kind: 'find'; readonly contentDigest: string }
  /** The snapshot at a position is the state before the load of `loaded`: it is kept until it is dropped. */
  | { readonly kind: 'keep'; readonly index: number; readonly term: number; readonly loaded: string }
  /** The state before a load, by its own content digest or that of the loaded snapshot. */
  | { readonly kind: 'before'; readonly contentDigest: string }
  /** An operator gives up the rollback: drops the state before a load, and the snapshot it loaded. */
  | { readonly kind: 'drop'; readonly contentDigest: string }

export type Newest = {
  readonly index: number
  readonly term: number
  readonly manifest: Uint8Array
  /** Hexadecimal digest under which the manifest can be read like a chunk. */
  readonly manifestDigest: string
  readonly membership: Membership | undefined
}

type Held = Newest & { readonly path: string }

type Plan = ReturnType<typeof planIncoming>

export type ExchangeAnswer =
  | { readonly state: 'newest'; readonly newest: Newest | undefined }
  | Plan
  | { readonly state: 'verified' | 'stored' | 'bad' | 'full' }
  | { readonly state: 'read'; readonly bytes: Uint8Array | undefined }
  | { readonly state: 'current' | 'held' | 'kept'; readonly path: string }
  | { readonly state: 'found'; readonly found: Held | undefined }
  | { readonly state: 'before'; readonly before: StateBefore | undefined }
  | { readonly state: 'dropped'; readonly isDone: boolean }
  /** Not dropped: a start from a snapshot of this node before that index would repeat the load. */
  | { readonly state: 'needed'; readonly index: number }
  /** Not made current: these chunks are missing. */
  | { readonly state: 'lacking'; readonly missing: readonly ChunkName[] }
  | { readonly state: 'refused'; readonly error: VacancyError['fields'] & { readonly code: VacancyError['code'] } }

/** Executes `ask`. In production it runs on another thread, so `done` is never called synchronously. */
export type Exchange = (ask: ExchangeAsk, done: (answer: ExchangeAnswer) => void) => void

export type Exchanger = {
  readonly env: Env
  readonly dataDir: string
  /** Chunks of the seed file, by digest, for the file of that size. */
  seed: { readonly bytes: number; readonly places: ReadonlyMap<string, Place> } | undefined
  /** The manifest that was offered last. Peers may download it in ranges. */
  offered: { readonly digest: string; readonly bytes: Uint8Array } | undefined
}

type Place = { readonly file: string; readonly offset: number; readonly bytes: number }

export function incomingFolder(dataDir: string): string {
  return `${dataDir}/incoming`
}

export function createExchanger(env: Env, dataDir: string): Exchanger {
  return { env, dataDir, seed: undefined, offered: undefined }
}

/** @throws disk_failed, which ends the process; all other errors are replies */
export function runExchange(exchanger: Exchanger, ask: ExchangeAsk): ExchangeAnswer {
  try {
    return answerTo(exchanger, ask)
  } catch (error) {
    if (isDiskFull(error)) return { state: 'full' }
    if (!(error instanceof VacancyError) || error.code === 'disk_failed') throw error
    return { state: 'refused', error: { ...error.fields, code: error.code } }
  }
}

function answerTo(exchanger: Exchanger, ask: ExchangeAsk): ExchangeAnswer {
  switch (ask.kind) {
    case 'newest':
      return { state: 'newest', newest: newestOf(exchanger) }
    case 'plan':
      return planIncoming(exchanger, ask.manifest)
    case 'verify':
      return { state: verifyHeld(exchanger, ask.chunk) ? 'verified' : 'bad' }
    case 'store':
      return { state: storeIncoming(exchanger, ask.digest, ask.bytes) ? 'stored' : 'bad' }
    case 'read':
      return { state: 'read', bytes: readRange(exchanger, ask.digest, ask.offset, ask.length) }
    case 'current':
    case 'hold':
      return place(exchanger, ask.manifest, ask.origin, ask.kind)
    case 'import':
      return importFile(exchanger, ask.file, ask.wanted)
    case 'find':
      return { state: 'found', found: findHeld(exchanger, ask.contentDigest) }
    case 'keep':
      return keepBefore(exchanger, ask.index, ask.term, ask.loaded)
    case 'before':
      return { state: 'before', before: beforeOf(exchanger, ask.contentDigest)[0] }
    case 'drop':
      return dropLoad(exchanger, ask.contentDigest)
    default:
      return unreachable(ask)
  }
}

/** The same for a simulator: on this thread, in a later turn. */
export function inlineExchange(env: Env, dataDir: string): Exchange {
  const exchanger = createExchanger(env, dataDir)
  return (ask, done) => {
    env.schedule.after(0, () => done(runExchange(exchanger, ask)))
  }
}

function newestOf(exchanger: Exchanger): Newest | undefined {
  const { env, dataDir } = exchanger
  const found = findSnapshots(env.disk, dataDir).find((snapshot) => snapshot.state === 'readable')
  if (found?.state !== 'readable') return undefined
  return describe(exchanger, found.head.manifest)
}

/** The description of a snapshot. From now on its manifest can be read by its digest. */
function describe(exchanger: Exchanger, manifest: Manifest): Newest {
  const bytes = encodeManifest(manifest)
  exchanger.offered = { digest: hex(manifest.manifestDigest), bytes }
  const { index, term, membership } = manifest
  return { index, term, manifest: bytes, manifestDigest: exchanger.offered.digest, membership }
}

function chunksOf(manifest: Manifest): Map<string, Part> {
  const chunks = new Map<string, Part>()
  for (const { parts } of manifest.blocks) for (const part of parts) chunks.set(hex(part.digest), part)
  return chunks
}

function planIncoming(exchanger: Exchanger, bytes: Uint8Array) {
  const { env, dataDir } = exchanger
  const manifest = decodeManifest(bytes, 'the offered manifest')
  const chunks = chunksOf(manifest)
  forgetOthers(exchanger, chunks)
  const held: ChunkName[] = []
  const missing: ChunkName[] = []
  let missingBytes = 0
  for (const [digest, part] of chunks) {
    const chunk = { digest, bytes: part.bytes }
    const place = placeOf(exchanger, digest)
    if (place?.bytes === part.bytes) held.push(chunk)
    else missing.push(chunk)
    const isInFolder = place?.bytes === part.bytes && place.offset === 0
    if (!isInFolder) missingBytes += part.bytes
  }
  return {
    state: 'planned' as const,
    shardId: manifest.shardId,
    codecsOrderedHash: manifest.codecsOrderedHash,
    contentDigest: hex(manifest.contentDigest),
    packages: manifest.packages,
    /** Existing chunks, to be verified. */
    held,
    missing,
    bytesTotal: [...chunks.values()].reduce((sum, part) => sum + part.bytes, 0),
    /** Whether the disk has space for the missing chunks. */
    hasRoom: env.disk.space(dataDir).freeBytes >= missingBytes + INCOMING_RESERVE_BYTES,
  }
}

/** Removes chunks of earlier offers that this one does not need, and unfinished files of crashes. */
function forgetOthers({ env, dataDir }: Exchanger, wanted: ReadonlyMap<string, Part>): void {
  const folder = incomingFolder(dataDir)
  if (!env.disk.stat(folder)) return
  for (const name of env.disk.list(folder)) {
    if (!wanted.has(name.replace(/[.]chk$/, ''))) unlinkFile(env.disk, `${folder}/${name}`)
  }
}

/** Location of a chunk. A received one comes first, because the other one of that name was found damaged. */
function placeOf(exchanger: Exchanger, digest: string): Place | undefined {
  const { env, dataDir } = exchanger
  for (const folder of [incomingFolder(dataDir), chunksFolder(dataDir)]) {
    const file = `${folder}/${digest}.chk`
    const stat = env.disk.stat(file)
    if (stat && !stat.isDirectory) return { file, offset: 0, bytes: stat.bytes }
  }
  return seedPlaces(exchanger)?.get(digest)
}

/** The seed is an operator's file and may appear and disappear. */
function seedPlaces(exchanger: Exchanger): ReadonlyMap<string, Place> | undefined {
  const { env, dataDir } = exchanger
  const path = `${dataDir}/${SEED_FILE}`
  const stat = env.disk.stat(path)
  if (!stat) return undefined
  if (exchanger.seed?.bytes === stat.bytes) return exchanger.seed.places
  const places = new Map<string, Place>()
  let head: SnapshotHead | undefined
  try {
    head = readSeedFile(env.disk, path)
  } catch (error) {
    // A damaged seed counts as missing here; recovery reports it.
    if (!isDamage(error)) throw error
  }
  for (const { part, file, offset } of head ? placeChunks(head) : []) {
    places.set(hex(part.digest), { file, offset, bytes: part.bytes })
  }
  exchanger.seed = { bytes: stat.bytes, places }
  return places
}

function readPlace(disk: Disk, place: Place, offset: number, length: number): Uint8Array | undefined {
  if (offset < 0 || length <= 0 || offset + length > place.bytes) return undefined
  const file = disk.open(place.file, 'read')
  try {
    const bytes = new Uint8Array(length)
    return readFully(disk, file, bytes, 0, length, place.offset + offset) === length ? bytes : undefined
  } finally {
    disk.close(file)
  }
}

function readRange(exchanger: Exchanger, digest: string, offset: number, length: number): Uint8Array | undefined {
  const { offered } = exchanger
  if (offered?.digest === digest) {
    return offset + length <= offered.bytes.length ? offered.bytes.slice(offset, offset + length) : undefined
  }
  const place = placeOf(exchanger, digest)
  if (place) return readPlace(exchanger.env.disk, place, offset, length)
  const manifest = manifestOf(exchanger, digest)
  if (!manifest) return undefined
  describe(exchanger, manifest)
  return readRange(exchanger, digest, offset, length)
}

/** A manifest by its own digest. */
function manifestOf({ env, dataDir }: Exchanger, digest: string): Manifest | undefined {
  const own = findSnapshots(env.disk, dataDir).flatMap((found) =>
    found.state === 'readable' ? [found.head.manifest] : [],
  )
  const held = heldSnapshots(env.disk, dataDir).map((each) => readHeldSnapshot(env.disk, dataDir, each).manifest)
  return [...own, ...held].find(({ manifestDigest }) => hex(manifestDigest) === digest)
}

/** Bit rot must not spread from one snapshot to the next. */
function verifyHeld(exchanger: Exchanger, { digest, bytes }: ChunkName): boolean {
  const { env, dataDir } = exchanger
  const place = placeOf(exchanger, digest)
  if (place?.bytes !== bytes) return false
  const content = readPlace(env.disk, place, 0, bytes)
  if (!content || hex(sha256(content)) !== digest) {
    if (place.file.startsWith(incomingFolder(dataDir))) unlinkFile(env.disk, place.file)
    return false
  }
  if (place.offset !== 0) putIncoming(exchanger, digest, content)
  return true
}

function storeIncoming(exchanger: Exchanger, digest: string, bytes: Uint8Array): boolean {
  if (hex(sha256(bytes)) !== digest) return false
  putIncoming(exchanger, digest, bytes)
  return true
}

function putIncoming({ env, dataDir }: Exchanger, digest: string, bytes: Uint8Array): void {
  makeFolder(env.disk, incomingFolder(dataDir))
  putChunk(env.disk, `${incomingFolder(dataDir)}/${digest}.chk`, bytes)
}

/**
 * Makes a snapshot current. Chunks reach their final location, durably, before the manifest. Received chunks replace
 * those of the same name, which were found damaged.
 */
function place(exchanger: Exchanger, bytes: Uint8Array, origin: string, kind: 'current' | 'hold'): ExchangeAnswer {
  const { env, dataDir } = exchanger
  const { disk } = env
  const manifest = decodeManifest(bytes, 'the offered manifest')
  const chunks = chunksOf(manifest)
  const missing: ChunkName[] = []
  for (const [digest, part] of chunks) {
    const place = placeOf(exchanger, digest)
    // A chunk that exists only in a seed file was never copied out of it, so it was never verified.
    if (place?.bytes !== part.bytes || place.offset !== 0) missing.push({ digest, bytes: part.bytes })
  }
  if (missing.length > 0) return { state: 'lacking', missing }
  const [incoming, target, snapshots] = [incomingFolder(dataDir), chunksFolder(dataDir), snapshotsFolder(dataDir)]
  makeFolder(disk, snapshots)
  makeFolder(disk, target)
  for (const [, part] of chunks) {
    const name = chunkFileName(part.digest)
    if (disk.stat(`${incoming}/${name}`)) renameFile(disk, `${incoming}/${name}`, `${target}/${name}`)
  }
  // The source folder needs no sync: a name that a crash restores there is dropped with the next offer.
  syncFolder(disk, target)
  syncFolder(disk, snapshots)
  syncFolder(disk, dataDir)
  const path =
    kind === 'current'
      ? `${snapshots}/snap-${manifest.index}-${manifest.term}`
      : loadFolder(dataDir, 'load', hex(manifest.contentDigest))
  putManifest(exchanger, path, bytes, origin)
  dropIncoming(exchanger)
  return { state: kind === 'current' ? 'current' : 'held', path }
}

/** Writes a folder with a manifest, durably. All its chunks are in their final location. */
function putManifest({ env, dataDir }: Exchanger, path: string, manifest: Uint8Array, origin: string): void {
  makeFolder(env.disk, path)
  const note = { createdAtMs: Math.round(env.clock.wallMs()), durationMs: 0, origin }
  replaceFile(env.disk, `${path}/MANIFEST`, encodeManifestFile(manifest, note))
  syncFolder(env.disk, snapshotsFolder(dataDir))
}

// Bulk loads

function importFile(exchanger: Exchanger, file: string, wanted: Wanted): ExchangeAnswer {
  const head = readSeedFile(exchanger.env.disk, file)
  const foreign = foreignness(head, wanted)
  if (foreign) throw foreign
  const { manifest, places } = head
  for (const chunk of placeChunks(head)) {
    const digest = hex(chunk.part.digest)
    if (verifyHeld(exchanger, { digest, bytes: chunk.part.bytes })) continue
    const bytes = readChunk(exchanger.env.disk, chunk, places.form)
    verifyChunk(bytes, chunk)
    putIncoming(exchanger, digest, bytes)
  }
  return place(exchanger, encodeManifest({ ...manifest, membership: undefined }), 'load', 'hold')
}

/** The snapshot of a load, or the state before one: a rollback is another load. */
function findHeld(exchanger: Exchanger, contentDigest: string): Held | undefined {
  const { env, dataDir } = exchanger
  const held = heldSnapshots(env.disk, dataDir).find((each) => each.contentDigest === contentDigest)
  if (!held) return undefined
  return { ...describe(exchanger, readHeldSnapshot(env.disk, dataDir, held).manifest), path: held.path }
}

function keepBefore(exchanger: Exchanger, index: number, term: number, loaded: string): ExchangeAnswer {
  const { env, dataDir } = exchanger
  // A node that was stopped during it repeats the same entry.
  const kept = statesBefore(env.disk, dataDir).find((before) => before.index === index && before.loaded === loaded)
  if (kept) return { state: 'kept', path: kept.path }
  const { manifest } = readSnapshotDir(
    env.disk,
    `${snapshotsFolder(dataDir)}/snap-${index}-${term}`,
    chunksFolder(dataDir),
  )
  const path = loadFolder(dataDir, 'before', hex(manifest.contentDigest))
  putManifest(exchanger, path, encodeManifest(manifest), originBefore(loaded))
  return { state: 'kept', path }
}

/** States before loads that match this digest, the last load first. */
function beforeOf({ env, dataDir }: Exchanger, contentDigest: string): StateBefore[] {
  return statesBefore(env.disk, dataDir)
    .filter((before) => before.contentDigest === contentDigest || before.loaded === contentDigest)
    .sort((a, b) => b.index - a.index)
}

/** Removes a state that an operator gave up, unless a start would need it. The next clean-up removes its chunks. */
function dropLoad(exchanger: Exchanger, contentDigest: string): ExchangeAnswer {
  const { env, dataDir } = exchanger
  const { disk } = env
  const dropped = beforeOf(exchanger, contentDigest)
  const loadIndex = (dropped[0]?.index ?? -1) + 1
  const own = findSnapshots(disk, dataDir).filter(({ path }) => path.startsWith(snapshotsFolder(dataDir)))
  if (own.some(({ index }) => index < loadIndex)) return { state: 'needed', index: loadIndex }
  const others = statesBefore(disk, dataDir).filter(({ path }) => dropped.every((each) => each.path !== path))
  const loads = new Set([contentDigest, ...dropped.map(({ loaded }) => loaded)])
  const folders = heldSnapshots(disk, dataDir).filter(({ purpose, contentDigest: name, path }) =>
    purpose === 'before'
      ? dropped.some((each) => each.path === path)
      : loads.has(name) && others.every(({ loaded }) => loaded !== name),
  )
  for (const { path } of folders) removeFolder(disk, path)
  if (folders.length > 0) syncFolder(disk, snapshotsFolder(dataDir))
  return { state: 'dropped', isDone: folders.length > 0 }
}

/** Remaining files belong to no current offer. */
function dropIncoming({ env, dataDir }: Pick<Exchanger, 'env' | 'dataDir'>): void {
  const { disk } = env
  const folder = incomingFolder(dataDir)
  if (!disk.stat(folder)) return
  for (const name of disk.list(folder)) unlinkFile(disk, `${folder}/${name}`)
  guarded('rmdir', folder, () => disk.removeDirectory(folder))
}

/** Whether a manifest matches the digest. A large one is downloaded like a chunk. */
export function isManifest(bytes: Uint8Array, digest: string): boolean {
  assert(digest.length === 64, 'a digest has 32 bytes')
  if (bytes.length < 32) return false
  const end = bytes.length - 32
  return hex(bytes.subarray(end)) === digest && equalBytes(sha256(bytes.subarray(0, end)), bytes.subarray(end))
}
