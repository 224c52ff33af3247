/**
 * From a data directory to a store that holds everything it acknowledged: newest valid snapshot, then the log behind it
 * (consensus.md §15.4, §16; platform.md §7.11, §7.12).
 */

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { assert, type CodecList, createCodecList, VacancyError } from '@vacancy/shared'
import { type Env, syncFolder } from '../env.ts'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, entryKind, entryLength, entryTerm, viewOf } from '../raft/entry.ts'
import type { RestoredState } from '../raft/raft.ts'
import { CAPTURE_SCRATCH_BYTES, captureStore } from '../snapshot/capture.ts'
import type { SnapshotHead, SnapshotReader } from '../snapshot/load.ts'
import { finishStore, prepareStore } from '../snapshot/restore.ts'
import type { SnapshotSource } from '../snapshot/shapes.ts'
import { findSnapshots, type Loaded, loadNewest, SEED_FILE } from '../snapshot/snapshot.ts'
import { closeWordsPool, createWordsPool, decodeAll } from '../snapshot/words-pool.ts'
import { inlineEncoder, type WordsEncoder, writeSnapshotDir } from '../snapshot/write.ts'
import { type ApplyContext, applyCommand, createApplyContext, latestTime } from '../store/apply.ts'
import { beginCopyOnWrite, endCopyOnWrite } from '../store/cow.ts'
import { createStore, prepareSnapshots, publish, type Store, scratchOf, stateDigest } from '../store/store.ts'
import { type Kernels, loadKernels } from '../threads/kernels.ts'
import { replaySalvage, type Salvage, salvageWal } from '../wal/inspect.ts'
import { assertConnects, createWal, openWal, type Recovered, recoveredTerm } from '../wal/open.ts'
import type { SnapshotMark } from '../wal/payload.ts'
import { replayEntries } from '../wal/scan.ts'
import type { Wal } from '../wal/wal.ts'
import {
  beginWriting,
  createCluster,
  type DataDirectory,
  ensureReserve,
  logIdentity,
  openDataDirectory,
  setAside,
  walFolder,
  writeCluster,
} from './data-directory.ts'
import type { ReplicaOptions } from './messages.ts'

export type RecoveredNode = {
  readonly directory: DataDirectory
  readonly shardId: string
  readonly store: Store
  readonly kernels: Kernels
  readonly context: ApplyContext
  readonly wal: Wal
  readonly raft: RestoredState
  readonly snapshot: SnapshotHead | undefined
  readonly lastTimeMs: number
  readonly tornTailBytes: number
  readonly codecMismatch: string | undefined
  /** What `--accept-loss` gave up, in words. */
  readonly lost: readonly string[]
}

export type Progress = (phase: 'recovering' | 'loading', detail: string) => void

const DEFAULT_SHARD = 'standalone'
/** Everything that belongs to one history; set aside as a whole, CLUSTER last: it says that there is something. */
const HISTORY = ['CLEAN', 'wal', 'snapshots', SEED_FILE, 'CLUSTER']

/**
 * Opens the directory and rebuilds the store.
 *
 * @throws corrupt_data (71) with nothing changed, unless losses are accepted; wrong_shard, directory_in_use, …
 */
export async function recoverNode(env: Env, options: ReplicaOptions, progress: Progress): Promise<RecoveredNode> {
  const codecs = createCodecList(options.codecs)
  progress('recovering', `${options.dataDir} is being opened`)
  const directory = openDirectory(env, options)
  const codecMismatch = setAsideOtherCodecs(env, directory, codecs)
  const shardId = shardOf(env, directory, options)
  const loader = createLoader(options, progress)
  try {
    return await recoverFrom(env, directory, options, codecs, shardId, codecMismatch, loader, progress)
  } catch (error) {
    const isDamage = error instanceof VacancyError && error.code === 'corrupt_data'
    if (!isDamage || !options.acceptLoss) throw error
    return await recoverWithLoss(env, directory, options, codecs, shardId, loader, progress, error)
  } finally {
    await loader.close()
  }
}

/** With losses accepted, a damaged IDENTITY or CLUSTER is set aside like anything else. */
function openDirectory(env: Env, options: ReplicaOptions): DataDirectory {
  const { dataDir: path, nodeId } = options
  try {
    return openDataDirectory(env, path, { nodeId })
  } catch (error) {
    if (!(error instanceof VacancyError && error.code === 'corrupt_data' && options.acceptLoss)) throw error
    const place = join(path, 'quarantine', `damaged-${env.clock.wallMs()}`)
    env.log.warn({ place, err: error }, 'the identity of the folder is damaged: it is set aside')
    if (!env.disk.stat(join(path, 'quarantine'))) env.disk.makeDirectory(join(path, 'quarantine'))
    env.disk.makeDirectory(place)
    for (const name of ['IDENTITY', 'CLUSTER', 'CLEAN']) {
      const from = join(path, name)
      if (env.disk.stat(from)) env.disk.rename(from, join(place, name))
    }
    syncFolder(env.disk, path)
    return openDataDirectory(env, path, { nodeId })
  }
}

/** A shard id that nobody named is that of the data, or the default for a new folder. */
function shardOf(env: Env, directory: DataDirectory, options: ReplicaOptions): string {
  const { cluster } = directory
  if (cluster) {
    if (options.shardId === undefined || options.shardId === cluster.shardId) return cluster.shardId
    throw new VacancyError('wrong_shard', {
      directory: directory.path,
      found: cluster.shardId,
      wanted: options.shardId,
    })
  }
  if (options.shardId !== undefined) return options.shardId
  const found = findSnapshots(env.disk, directory.path).find((snapshot) => snapshot.state === 'readable')
  return found?.state === 'readable' ? found.head.manifest.shardId : DEFAULT_SHARD
}

/** Data of another codec list is set aside, where only an operator deletes it; the node starts empty (§7.12). */
function setAsideOtherCodecs(env: Env, directory: DataDirectory, codecs: CodecList): string | undefined {
  const { cluster } = directory
  const seeds = findSnapshots(env.disk, directory.path)
  const ofSeed = seeds.find((found) => found.state === 'readable')
  const known = cluster
    ? { names: cluster.codecs, hash: cluster.codecHash }
    : ofSeed?.state === 'readable'
      ? { names: ofSeed.head.manifest.codecs, hash: ofSeed.head.manifest.codecsOrderedHash }
      : undefined
  if (!known || known.hash === codecs.orderedHash) return undefined
  const reason = `the data was made with the codec list ${known.names.join(', ')}; the list is now ${codecs.text}`
  const present = HISTORY.filter((name) => env.disk.stat(join(directory.path, name)) !== undefined)
  const place = setAside(directory, present, reason)
  directory.cluster = undefined
  env.log.warn({ place }, `${reason}: the node starts empty`)
  return `${reason}; set aside in ${place}`
}

type Loader = { readonly load: (reader: SnapshotReader) => Promise<Store>; readonly close: () => Promise<void> }

function createLoader(options: ReplicaOptions, progress: Progress): Loader {
  // The threads start while manifests are read; a start without a snapshot has no use for them.
  let pool: ReturnType<typeof createWordsPool> | undefined
  return {
    async load(reader) {
      const { manifest } = reader
      progress('loading', `snapshot of index ${manifest.index} with ${manifest.packages} packages`)
      pool ??= createWordsPool(Math.min(options.loadThreads, options.readers))
      const store = emptyStore(options)
      const prepared = prepareStore(store, reader.names, reader.properties, reader.tables)
      const scratch = Array.from({ length: pool.threads }, (_, thread) => scratchOf(store.memory, thread))
      await decodeAll(pool, reader, store.memory.wasm, prepared.planeMap, scratch)
      finishStore(store, prepared, {
        sessions: reader.sessions,
        settings: reader.settings,
        lastMaintenanceDay: manifest.lastMaintenanceDay,
        digest: manifest.digest,
      })
      return store
    },
    async close() {
      if (pool) await closeWordsPool(pool)
    },
  }
}

function emptyStore(options: ReplicaOptions): Store {
  const { memoryBytes, readers, scratchBytes, sessionBytesMax, roomsHint } = options
  return createStore({ memoryBytes, readers, scratchBytes, sessionBytesMax, roomsHint })
}

async function recoverFrom(
  env: Env,
  directory: DataDirectory,
  options: ReplicaOptions,
  codecs: CodecList,
  shardId: string,
  codecMismatch: string | undefined,
  loader: Loader,
  progress: Progress,
): Promise<RecoveredNode> {
  const wanted = { shardId, codecsOrderedHash: codecs.orderedHash, codecsText: codecs.text }
  const found = await loadNewest(env.disk, directory.path, wanted, loader.load)
  const { loaded } = found
  const store = loaded?.value ?? emptyStore(options)
  const snapshot = loaded?.reader
  const base: SnapshotMark = { index: snapshot?.manifest.index ?? 0, term: snapshot?.manifest.term ?? 0 }
  const { wal, recovered } = directory.cluster
    ? openLog(env, directory, found, base)
    : { wal: form(env, directory, options, codecs, shardId, snapshot, found), recovered: undefined }
  const { kernels, context } = machineOf(store, options)
  const replayed = replay(env, context, recovered, base.index, progress)
  publish(store, replayed)
  prepareSnapshots(store)
  ensureReserve(directory)
  const hardState = recovered?.hardState ?? { term: base.term, vote: 0, commit: base.index }
  return {
    directory,
    shardId,
    store,
    kernels,
    context,
    wal,
    raft: {
      ...hardState,
      // With one voter everything durable is committed as soon as it leads; it was applied above.
      commit: replayed,
      lastIndex: replayed,
      lastTerm: (recovered && recoveredTerm(recovered, replayed)) || base.term,
      applied: replayed,
    },
    snapshot: headOf(snapshot),
    lastTimeMs: latestTime(store.memory),
    tornTailBytes: recovered?.tornBytes ?? 0,
    codecMismatch,
    lost: [],
  }
}

function machineOf(store: Store, options: ReplicaOptions): { kernels: Kernels; context: ApplyContext } {
  const kernels = loadKernels(store.memory, options.forceTypescript ? 'typescript' : undefined)
  const context = createApplyContext(store, kernels.put, (index, wanted, own) => {
    const text = ({ lo, hi }: { lo: number; hi: number }) => `${hi.toString(16)}-${lo.toString(16)}`
    throw new VacancyError('digest_mismatch', { index, found: text(own), wanted: text(wanted) })
  })
  return { kernels, context }
}

/** What is worth keeping of a snapshot that was loaded: its columns take as much memory as the store's own. */
function headOf(reader: SnapshotReader | undefined): SnapshotHead | undefined {
  if (!reader) return undefined
  const { path, manifest, places, note, bytes } = reader
  return { path, manifest, places, note, bytes }
}

/** A folder with CLUSTER has a log, and the log decides; a lone newer snapshot file is not loaded over it (§7.11). */
function openLog(
  env: Env,
  directory: DataDirectory,
  found: Loaded<Store>,
  base: SnapshotMark,
): { wal: Wal; recovered: Recovered } {
  const { cluster } = directory
  assert(cluster !== undefined, 'the folder is formed')
  const opened = openWal(env, walFolder(directory), logIdentity(directory, cluster), {
    isClean: directory.isClean,
    onVerified: () => beginWriting(directory),
  })
  const marks = opened.recovered.marks
  const newest = marks[marks.length - 1]
  if (newest && newest.index > 0 && newest.index > base.index && opened.recovered.firstIndex > base.index + 1) {
    throw found.refused[0]?.error ?? missingSnapshot(directory, newest)
  }
  assertConnects(opened.recovered, base)
  for (const { path, error } of found.refused) {
    env.log.error({ path, err: error }, 'a damaged snapshot was passed over; the one before it and the log were used')
  }
  return opened
}

function missingSnapshot(directory: DataDirectory, mark: SnapshotMark): VacancyError {
  return new VacancyError('corrupt_data', {
    file: join(directory.path, 'snapshots', `snap-${mark.index}-${mark.term}`),
    offset: 0,
    reason: 'the log begins behind this snapshot, which is missing',
  })
}

/** First start: genesis, log, then CLUSTER, which says that both are there. */
function form(
  env: Env,
  directory: DataDirectory,
  options: ReplicaOptions,
  codecs: CodecList,
  shardId: string,
  snapshot: SnapshotReader | undefined,
  found: Loaded<Store>,
): Wal {
  // A new folder with a seed that does not verify must not become an empty shard.
  const refused = found.refused[0]
  if (!snapshot && refused) throw refused.error
  const base = { index: snapshot?.manifest.index ?? 0, term: snapshot?.manifest.term ?? 0 }
  const digest = snapshot ? Buffer.from(snapshot.manifest.contentDigest).toString('hex') : ''
  const genesis = { shardId, codecs, base, snapshotDigest: digest, voters: [options.nodeId] }
  const cluster = createCluster(genesis, (bytes) => createHash('sha256').update(bytes).digest())
  beginWriting(directory)
  const wal = createWal(env, walFolder(directory), logIdentity(directory, cluster), base)
  writeCluster(directory, cluster)
  return wal
}

/** Applies what the log has behind the snapshot. */
function replay(
  env: Env,
  context: ApplyContext,
  recovered: Recovered | undefined,
  after: number,
  progress: Progress,
): number {
  if (!recovered || recovered.lastIndex <= after) return Math.max(after, recovered?.lastIndex ?? 0)
  let applied = after
  let saidAt = env.clock.monotonicMs()
  progress('recovering', `${recovered.lastIndex - after} entries of the log are being applied`)
  replayEntries(env.disk, recovered.scan, after + 1, (firstIndex, count, window, start, end) => {
    applyRange(context, firstIndex, count, window, start, end)
    applied = firstIndex + count - 1
    publish(context.store, applied)
    if (env.clock.monotonicMs() - saidAt < 500) return
    saidAt = env.clock.monotonicMs()
    progress('recovering', `${recovered.lastIndex - applied} entries of the log are left to apply`)
  })
  assert(applied === recovered.lastIndex, 'the log is applied to its end')
  return applied
}

/** Applies entries out of a window that is overwritten afterwards. */
function applyRange(
  context: ApplyContext,
  firstIndex: number,
  count: number,
  window: Uint8Array,
  start: number,
  end: number,
): void {
  const view = viewOf(window)
  let at = start
  for (let i = 0; i < count; i++) {
    const body = at + ENTRY_HEADER_BYTES
    const stop = body + entryLength(view, at)
    assert(entryTerm(view, at) > 0, 'entries have a term')
    if (entryKind(view, at) === ENTRY_KIND.command) {
      applyCommand(context, firstIndex + i, window, body, stop)
    }
    at = stop
  }
  assert(at === end, 'entries fill their range')
}

/**
 * Starts from what verifies: the newest usable snapshot and the longest prefix of the log behind it. Everything as it
 * was goes to quarantine/; what was acknowledged behind the damage is lost, and said.
 */
async function recoverWithLoss(
  env: Env,
  directory: DataDirectory,
  options: ReplicaOptions,
  codecs: CodecList,
  shardId: string,
  loader: Loader,
  progress: Progress,
  damage: unknown,
): Promise<RecoveredNode> {
  const lost: string[] = [`damage: ${(damage as Error).message}`]
  const wanted = { shardId, codecsOrderedHash: codecs.orderedHash, codecsText: codecs.text }
  const { loaded, refused } = await loadNewest(env.disk, directory.path, wanted, loader.load)
  for (const { path } of refused) lost.push(`snapshot ${path} does not verify`)
  const store = loaded?.value ?? emptyStore(options)
  const base: SnapshotMark = { index: loaded?.reader.manifest.index ?? 0, term: loaded?.reader.manifest.term ?? 0 }
  const { context, kernels } = machineOf(store, options)
  const salvage = salvageWal(env.disk, walFolder(directory), base)
  const index = replaySalvaged(env, context, salvage, base)
  if (salvage.lost) {
    const through =
      salvage.lost.through === undefined ? 'an unknown number of entries' : `entries up to ${salvage.lost.through}`
    lost.push(`lost: from entry ${salvage.lost.from} on, ${through}; kept: everything up to entry ${index}`)
  } else lost.push(`kept: everything up to entry ${index}, the last that verifies`)
  progress('recovering', 'the data is being set aside and written anew')
  const present = HISTORY.filter((name) => env.disk.stat(join(directory.path, name)) !== undefined)
  const place = setAside(directory, present, (damage as Error).message)
  directory.cluster = undefined
  lost.push(`everything as it was lies in ${place}; nothing there is read again (vacancy quarantine list)`)
  const genesis = {
    shardId,
    codecs,
    base: { index, term: base.term + 1 },
    snapshotDigest: createHash('sha256')
      .update(JSON.stringify(stateDigest(store.memory)))
      .digest('hex'),
    voters: [options.nodeId],
  }
  const cluster = createCluster(genesis, (bytes) => createHash('sha256').update(bytes).digest())
  publish(store, index)
  await writeSnapshotNow(
    store,
    codecs,
    { shardId, index, term: base.term + 1, voters: [options.nodeId] },
    (source, encoder) => writeSnapshotDir(env, directory.path, source, { encoder, origin: 'recovery' }),
  )
  beginWriting(directory)
  const wal = createWal(env, walFolder(directory), logIdentity(directory, cluster), { index, term: base.term + 1 })
  writeCluster(directory, cluster)
  prepareSnapshots(store)
  ensureReserve(directory)
  return {
    directory,
    shardId,
    store,
    kernels,
    context,
    wal,
    raft: { term: base.term + 1, vote: 0, commit: index, lastIndex: index, lastTerm: base.term + 1, applied: index },
    snapshot: headOf(loaded?.reader),
    lastTimeMs: latestTime(store.memory),
    tornTailBytes: 0,
    codecMismatch: undefined,
    lost,
  }
}

function replaySalvaged(env: Env, context: ApplyContext, salvage: Salvage, base: SnapshotMark): number {
  replaySalvage(env.disk, salvage, base, (firstIndex, count, window, start, end) => {
    applyRange(context, firstIndex, count, window, start, end)
  })
  return salvage.lastIndex
}

/** Position of a snapshot that is written while nothing else happens. */
export type Position = {
  readonly shardId: string
  readonly index: number
  readonly term: number
  readonly voters: readonly string[]
}

/** Writes a snapshot of a store that nobody changes meanwhile: after a loss was accepted, and for `vacancy export`. */
export async function writeSnapshotNow<T>(
  store: Store,
  codecs: CodecList,
  position: Position,
  write: (source: SnapshotSource, encoder: WordsEncoder) => Promise<T>,
): Promise<T> {
  const epoch = beginCopyOnWrite(store)
  try {
    const { recordsStart, gap } = store.writer
    const scratch = scratchOf(store.memory, 0)
    const point = { ...position, epoch, recordsStart, recordsEnd: gap.low }
    const captured = captureStore(store.memory, point, codecs, scratch)
    assert(captured !== undefined, 'a store at rest can be captured')
    return await write(captured.source, inlineEncoder(captured.source, scratch + CAPTURE_SCRATCH_BYTES))
  } finally {
    endCopyOnWrite(store)
  }
}
