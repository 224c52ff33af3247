/**
 * From a data directory to a store that holds everything it acknowledged: newest valid snapshot, then the log behind it
 * (consensus.md §15.4, §16; platform.md §7.11, §7.12).
 */

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { assert, type CodecList, createCodecList, VacancyError } from '@vacancy/shared'
import { type Env, syncFolder, unlinkFile } from '../env.ts'
import {
  ENTRY_HEADER_BYTES,
  ENTRY_KIND,
  type EntryBatch,
  entryKind,
  entryLength,
  entryTerm,
  viewOf,
} from '../raft/entry.ts'
import { decodeConfiguration, votersOnly } from '../raft/membership.ts'
import type { Configuration } from '../raft/messages.ts'
import type { RestoredState } from '../raft/raft.ts'
import { CAPTURE_SCRATCH_BYTES, captureStore } from '../snapshot/capture.ts'
import { hex } from '../snapshot/format.ts'
import { openSeedFile, openSnapshot, type SnapshotHead, type SnapshotReader } from '../snapshot/load.ts'
import { inlineDecoder, lackingBytes, replaceData } from '../snapshot/replace.ts'
import { finishStore, prepareStore } from '../snapshot/restore.ts'
import type { SnapshotSource } from '../snapshot/shapes.ts'
import {
  findSnapshots,
  foreignness,
  heldSnapshots,
  type Loaded,
  loadNewest,
  readHeldSnapshot,
  SEED_FILE,
  statesBefore,
} from '../snapshot/snapshot.ts'
import { WORDS_SCRATCH_BYTES } from '../snapshot/words.ts'
import { closeWordsPool, createWordsPool, decodeAll } from '../snapshot/words-pool.ts'
import { inlineEncoder, type WordsEncoder, writeSeedFile, writeSnapshotDir } from '../snapshot/write.ts'
import { type ApplyContext, applyCommand, createApplyContext, latestTime } from '../store/apply.ts'
import { allocate, release } from '../store/arena.ts'
import { decodeBulkLoad, KIND, kindOfCommand } from '../store/command.ts'
import { beginCopyOnWrite, endCopyOnWrite } from '../store/cow.ts'
import { createStore, prepareSnapshots, publish, type Store, scratchOf } from '../store/store.ts'
import { type Kernels, loadKernels } from '../threads/kernels.ts'
import { replaySalvage, type Salvage, salvageWal } from '../wal/inspect.ts'
import { assertConnects, createWal, openWal, type Recovered, recoveredTerm } from '../wal/open.ts'
import type { SnapshotMark } from '../wal/payload.ts'
import { replayEntries } from '../wal/scan.ts'
import { installWal, type Wal } from '../wal/wal.ts'
import {
  beginWriting,
  type Cluster,
  createCluster,
  type DataDirectory,
  ensureReserve,
  logIdentity,
  openDataDirectory,
  renewIdentity,
  setAside,
  walFolder,
  writeCluster,
} from './data-directory.ts'
import { digestText } from './digests.ts'
import { configurationAt, type Decision, type Held } from './formation.ts'
import type { ReplicaOptions } from './messages.ts'

export type RecoveredNode = {
  readonly directory: DataDirectory
  readonly shardId: string
  readonly store: Store
  readonly kernels: Kernels
  readonly context: ApplyContext
  readonly wal: Wal
  readonly raft: RestoredState
  readonly cluster: Cluster
  readonly snapshot: SnapshotHead | undefined
  readonly lastTimeMs: number
  readonly tornTailBytes: number
  readonly codecMismatch: string | undefined
  /** What `--accept-loss` gave up, in words. */
  readonly lost: readonly string[]
}

/**
 * Decides how a node that is not formed yet becomes part of a shard (formation.ts): it waits for its peers. Absent in
 * standalone mode, where a node founds a shard of its own at once.
 */
export type Found = (parts: {
  readonly directory: DataDirectory
  readonly shardId: string
  readonly codecs: CodecList
  readonly held: Exclude<Held, { state: 'formed' }>
}) => Promise<Extract<Decision, { kind: 'form' | 'join' | 'set-aside' | 'look-again' }>>

export type Progress = (phase: 'recovering' | 'loading', detail: string) => void

const DEFAULT_SHARD = 'standalone'
/** What verified of damaged data, from when it is whole until the node can start without it. */
const RESCUE_FILE = 'rescued.snapshot'
/** Everything that belongs to one history; set aside as a whole, CLUSTER last: it says that there is something. */
const HISTORY = ['CLEAN', 'wal', 'snapshots', SEED_FILE, 'CLUSTER']

/**
 * Opens the directory and rebuilds the store.
 *
 * @throws corrupt_data (71) with nothing changed, unless losses are accepted; wrong_shard, directory_in_use, …
 */
export async function recoverNode(
  env: Env,
  options: ReplicaOptions,
  progress: Progress,
  found?: Found,
): Promise<RecoveredNode> {
  const codecs = createCodecList(options.codecs)
  progress('recovering', `${options.dataDir} is being opened`)
  const directory = openDirectory(env, options)
  if (options.rejoin) setAsideForRejoin(env, directory)
  const loader = createLoader(options, progress)
  try {
    if (env.disk.stat(join(directory.path, RESCUE_FILE))) {
      if (found) throw new VacancyError('data_conflict', { reason: unfinishedRescue(directory) })
      env.log.warn({}, 'a start that accepted a loss did not come to its end: this one goes on with what was rescued')
      return await startFromRescue(env, directory, options, codecs, loader, progress, [])
    }
    const codecMismatch = setAsideOtherCodecs(env, directory, codecs)
    const shardId = shardOf(env, directory, options)
    try {
      return await recoverFrom(env, directory, options, codecs, shardId, codecMismatch, loader, progress, found)
    } catch (error) {
      const isDamage = error instanceof VacancyError && error.code === 'corrupt_data'
      if (!isDamage || !options.acceptLoss) throw error
      const lost = await rescue(env, directory, options, codecs, shardId, loader, error)
      return await startFromRescue(env, directory, options, codecs, loader, progress, lost)
    }
  } finally {
    await loader.close()
  }
}

function unfinishedRescue({ path }: DataDirectory): string {
  return `${path} holds ${RESCUE_FILE} of a start that accepted a loss and did not come to its end: start it with vacancy run once.`
}

/** With losses accepted, a damaged IDENTITY or CLUSTER is set aside like anything else. */
function openDirectory(env: Env, options: ReplicaOptions): DataDirectory {
  const { dataDir: path, nodeId } = options
  try {
    return openDataDirectory(env, path, { nodeId })
  } catch (error) {
    if (!(error instanceof VacancyError && error.code === 'corrupt_data' && (options.acceptLoss || options.rejoin)))
      throw error
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

/** V4: the operator gives this node's data up; it comes back as a new member and gets everything from the others. */
function setAsideForRejoin(env: Env, directory: DataDirectory): void {
  const present = [...HISTORY, 'IDENTITY'].filter((name) => env.disk.stat(join(directory.path, name)) !== undefined)
  if (!present.includes('CLUSTER')) return
  const place = setAside(directory, present, 'the node was told to rejoin its shard (--rejoin)')
  renewIdentity(directory)
  directory.cluster = undefined
  env.log.warn({ place }, 'the data was set aside; the node comes back as a new member')
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
  // The same incarnation without its log would vote again where it has voted: IDENTITY goes along.
  const present = [...HISTORY, 'IDENTITY'].filter((name) => env.disk.stat(join(directory.path, name)) !== undefined)
  const place = setAside(directory, present, reason)
  renewIdentity(directory)
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
      const scratch = takeScratch(store, pool.threads)
      await decodeAll(pool, reader, store.memory.wasm, prepared.planeMap, scratch.addresses)
      scratch.giveBack()
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

/**
 * Scratch areas for decoding, from where copies of pages will lie: memory that was touched once stays with the process.
 * Where there is no room, those of readers that do not read yet.
 */
function takeScratch(store: Store, threads: number): { readonly addresses: number[]; readonly giveBack: () => void } {
  const { planes } = store.writer
  const taken = Array.from({ length: threads }, () => allocate(planes, WORDS_SCRATCH_BYTES))
  return {
    addresses: taken.map((address, thread) => address || scratchOf(store.memory, thread)),
    giveBack() {
      for (const address of taken) if (address !== 0) release(planes, address, WORDS_SCRATCH_BYTES)
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
  decide: Found | undefined,
): Promise<RecoveredNode> {
  const wanted = { shardId, codecsOrderedHash: codecs.orderedHash, codecsText: codecs.text }
  const found = await loadNewest(env.disk, directory.path, wanted, loader.load)
  const { loaded } = found
  const store = loaded?.value ?? emptyStore(options)
  const snapshot = loaded?.reader
  const base: SnapshotMark = { index: snapshot?.manifest.index ?? 0, term: snapshot?.manifest.term ?? 0 }
  let opened: { wal: Wal; recovered: Recovered | undefined }
  if (directory.cluster) opened = openLog(env, directory, found, base, options, decide !== undefined)
  else {
    const refused = found.refused[0]
    // A new folder with a seed that does not verify must not become an empty shard.
    if (!snapshot && refused) throw refused.error
    const cluster = await clusterOf(directory, options, codecs, shardId, snapshot, decide)
    const again = () => recoverFrom(env, directory, options, codecs, shardId, codecMismatch, loader, progress, decide)
    if (cluster === 'look-again') return await again()
    if ('setAside' in cluster) {
      const present = HISTORY.filter((name) => env.disk.stat(join(directory.path, name)) !== undefined)
      const place = setAside(directory, present, cluster.setAside)
      env.log.warn({ place, reason: cluster.setAside }, 'the snapshot of this node was set aside')
      return await again()
    }
    beginWriting(directory)
    const wal = createWal(env, walFolder(directory), logIdentity(directory, cluster), base, {
      fileBytes: options.walFileBytes,
    })
    writeCluster(directory, cluster)
    opened = { wal, recovered: undefined }
  }
  const { wal, recovered } = opened
  const cluster = directory.cluster as Cluster | undefined
  assert(cluster !== undefined, 'the folder is formed')
  const { kernels, context } = machineOf(store, options)
  const self = { node: options.nodeId, incarnation: directory.identity.incarnation }
  const begin = decide
    ? configurationAt(cluster, snapshot?.manifest)
    : (snapshot?.manifest.membership ?? votersOnly([{ id: 1, ...self }]))
  const hardState = recovered?.hardState ?? { term: base.term, vote: 0, commit: base.index }
  const place = (index: number, digest: string) =>
    placeLoad(env, directory, context, index, digest, decide !== undefined)
  const replayed = replay(env, context, recovered, base.index, decide && hardState.commit, begin, place, progress)
  publish(store, replayed.applied)
  prepareSnapshots(store)
  ensureReserve(directory, options.walFileBytes)
  const { applied, entries, configuration } = replayed
  const termAt = (index: number) => (recovered && recoveredTerm(recovered, index)) || base.term
  const lastIndex = recovered?.lastIndex ?? base.index
  return {
    directory,
    shardId,
    store,
    kernels,
    context,
    wal,
    cluster,
    raft: {
      ...hardState,
      commit: Math.max(applied, hardState.commit),
      ...readableLog(recovered, applied),
      lastIndex,
      lastTerm: termAt(lastIndex),
      applied,
      appliedTerm: termAt(applied),
      configuration,
      entries,
      isMute: false,
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
    throw new VacancyError('digest_mismatch', { index, found: digestText(own), wanted: digestText(wanted) })
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
  options: ReplicaOptions,
  isClustered: boolean,
): { wal: Wal; recovered: Recovered | undefined } {
  const { cluster } = directory
  assert(cluster !== undefined, 'the folder is formed')
  const opened = openWal(env, walFolder(directory), logIdentity(directory, cluster), {
    fileBytes: options.walFileBytes,
    isClean: directory.isClean,
    onVerified: () => beginWriting(directory),
  })
  const marks = opened.recovered.marks
  const newest = marks[marks.length - 1]
  if (newest && newest.index > 0 && newest.index > base.index && opened.recovered.firstIndex > base.index + 1) {
    throw found.refused[0]?.error ?? missingSnapshot(directory, newest)
  }
  const { lastIndex, hardState } = opened.recovered
  const isAhead = base.index > lastIndex || (base.index > hardState.commit && !isIn(opened.recovered, base))
  if (isClustered && isAhead) {
    // The machine stopped between making a snapshot of the leader's current and beginning the log behind it.
    if (!installWal(opened.wal, base)) throw new VacancyError('no_room', { directory: directory.path })
    return { wal: opened.wal, recovered: { ...opened.recovered, ...emptyBehind(opened.recovered, base) } }
  }
  assertConnects(opened.recovered, base)
  for (const { path, error } of found.refused) {
    env.log.error({ path, err: error }, 'a damaged snapshot was passed over; the one before it and the log were used')
  }
  return opened
}

/** The log leads to this position. */
function isIn(recovered: Recovered, { index, term }: SnapshotMark): boolean {
  return recoveredTerm(recovered, index) === term
}

/** What a log says that was begun anew behind a snapshot. */
function emptyBehind(
  { scan, hardState: before }: Recovered,
  mark: SnapshotMark,
): Pick<Recovered, 'scan' | 'hardState' | 'marks' | 'firstIndex' | 'lastIndex'> {
  const position = { firstIndex: mark.index + 1, lastIndex: mark.index }
  const hardState = { ...before, commit: mark.index }
  return { scan: { ...scan, ...position, hardState, marks: [mark], terms: [] }, hardState, marks: [mark], ...position }
}

function missingSnapshot(directory: DataDirectory, mark: SnapshotMark): VacancyError {
  return new VacancyError('corrupt_data', {
    file: join(directory.path, 'snapshots', `snap-${mark.index}-${mark.term}`),
    offset: 0,
    reason: 'the log begins behind this snapshot, which is missing',
  })
}

/**
 * First start: what the shard begins with.
 *
 * @returns or why the held snapshot must be set aside first, in words (G5), or that the folder has another one now
 */
async function clusterOf(
  directory: DataDirectory,
  options: ReplicaOptions,
  codecs: CodecList,
  shardId: string,
  snapshot: SnapshotReader | undefined,
  decide: Found | undefined,
): Promise<Cluster | { readonly setAside: string } | 'look-again'> {
  const digest = snapshot ? Buffer.from(snapshot.manifest.contentDigest).toString('hex') : ''
  const base = { index: snapshot?.manifest.index ?? 0, term: snapshot?.manifest.term ?? 0 }
  if (!decide) {
    const genesis = { shardId, codecs, base, snapshotDigest: digest, voters: [options.nodeId] }
    return createCluster(genesis, (bytes) => createHash('sha256').update(bytes).digest())
  }
  const held = snapshot ? ({ state: 'seeded', digest, ...base } as const) : ({ state: 'empty' } as const)
  const decision = await decide({ directory, shardId, codecs, held })
  if (decision.kind === 'look-again') return 'look-again'
  if (decision.kind === 'set-aside') return { setAside: decision.reason }
  if (decision.kind === 'form') return decision.cluster
  if (snapshot && !decision.keepsSnapshot) {
    return { setAside: 'the shard has another history than the snapshot of this node' }
  }
  return { ...decision.cluster, isFounder: false }
}

type Replayed = {
  applied: number
  /** In force at `applied`. */
  configuration: Configuration
  /** Durable entries behind it, whose fate the shard decides. */
  readonly entries: EntryBatch[]
}

/**
 * Applies what the log has behind the snapshot: all that is known to be committed. Where this node is the only voter,
 * everything durable is as good as that. So it is where no shard decides any more (`vacancy export`): the survivor of a
 * lost quorum may hold what was acknowledged, and what it applied itself, without a commit index on disk that says so.
 *
 * What stands behind a bulk load whose data are not at hand is not applied: a member gets them from others (loading.ts).
 *
 * @param commit undefined: everything
 * @param place puts the data of a bulk load in place of the store's, for the entry at that index
 * @throws corrupt_data when there is nobody to get the data of a load from
 */
function replay(
  env: Env,
  context: ApplyContext,
  recovered: Recovered | undefined,
  after: number,
  commit: number | undefined,
  begin: Configuration,
  place: (index: number, digest: string) => boolean,
  progress: Progress,
): Replayed {
  const replayed: Replayed = { applied: after, configuration: begin, entries: [] }
  if (!recovered || recovered.lastIndex <= after) return replayed
  let saidAt = env.clock.monotonicMs()
  progress('recovering', `${recovered.lastIndex - after} entries of the log are being applied`)
  let isHeld = false
  const mayApply = (index: number) => commit === undefined || index <= commit || isAlone(replayed.configuration)
  replayEntries(env.disk, recovered.scan, after + 1, (firstIndex, count, window, start, end) => {
    const view = viewOf(window)
    let at = start
    let index = firstIndex
    for (const last = firstIndex + count - 1; index <= last && !isHeld && mayApply(index); index++) {
      const body = at + ENTRY_HEADER_BYTES
      const stop = body + entryLength(view, at)
      assert(entryTerm(view, at) > 0, 'entries have a term')
      const kind = entryKind(view, at)
      if (kind === ENTRY_KIND.command) {
        if (kindOfCommand(view, body) === KIND.bulkLoad) {
          const digest = hex(decodeBulkLoad(window, body).digest)
          isHeld = !place(index, digest)
          if (isHeld && commit === undefined) throw missingLoad(index, digest)
          if (isHeld) break
        }
        applyCommand(context, index, window, body, stop)
      }
      if (kind === ENTRY_KIND.configuration) {
        replayed.configuration = decodeConfiguration(window.subarray(body, stop))
      }
      replayed.applied = index
      at = stop
    }
    publish(context.store, replayed.applied)
    if (at < end) keepEntries(replayed.entries, index, window.subarray(at, end))
    if (env.clock.monotonicMs() - saidAt < 500) return
    saidAt = env.clock.monotonicMs()
    progress('recovering', `${recovered.lastIndex - replayed.applied} entries of the log are left to apply`)
  })
  const kept = replayed.entries.reduce((sum, batch) => sum + batch.count, 0)
  assert(replayed.applied + kept === recovered.lastIndex, 'the log is read to its end')
  return replayed
}

/**
 * The data of a bulk load, in place of the store's, if its snapshot is here.
 *
 * @param keeps the state before it must be kept already: otherwise the member keeps it first, when it is running
 * @returns whether they are
 */
function placeLoad(
  env: Env,
  { path }: DataDirectory,
  context: ApplyContext,
  index: number,
  digest: string,
  keeps: boolean,
): boolean {
  const { disk } = env
  const held = heldSnapshots(disk, path).find(({ contentDigest }) => contentDigest === digest)
  const isKept = statesBefore(disk, path).some((before) => before.index === index - 1 && before.loaded === digest)
  if (!held || (keeps && !isKept)) return false
  const reader = openSnapshot(disk, readHeldSnapshot(disk, path, held))
  if (lackingBytes(context.store, reader, 1) > 0) return false
  let isPlaced = false
  // Nobody reads yet, and this thread decodes, so it is done at once.
  replaceData(env, context.store, reader, inlineDecoder(disk), (error) => {
    if (error) throw error
    isPlaced = true
  })
  assert(isPlaced, 'data are replaced at once where nobody reads')
  context.loaded = digest
  env.log.info({ index, digest }, 'the data of a bulk load were put in place again')
  return true
}

function missingLoad(index: number, digest: string): VacancyError {
  const reason = `entry ${index} loads snapshot ${digest}, which is not in this folder or does not fit the memory`
  return new VacancyError('corrupt_data', { file: 'snapshots', offset: 0, reason })
}

/** Where the log on disk begins, and the terms of its entries; nothing when it begins behind what is applied. */
function readableLog(recovered: Recovered | undefined, applied: number): Pick<RestoredState, 'firstIndex' | 'terms'> {
  const first = recovered?.firstIndex ?? applied + 1
  const before = recovered ? recoveredTerm(recovered, first - 1) : 0
  if (!recovered || first > applied || (before === 0 && first > 1)) return { firstIndex: applied + 1 }
  return { firstIndex: first, terms: [{ term: before, firstIndex: first - 1 }, ...recovered.scan.terms] }
}

function isAlone({ voters, outgoing, learners }: Configuration): boolean {
  return voters.length === 1 && outgoing.length === 0 && learners.length === 0
}

/** Copies entries out of a window, in batches of one term. */
function keepEntries(kept: EntryBatch[], firstIndex: number, entries: Uint8Array): void {
  const bytes = entries.slice()
  const view = viewOf(bytes)
  let index = firstIndex
  for (let at = 0; at < bytes.length; ) {
    const start = at
    const term = entryTerm(view, at)
    const first = index
    while (at < bytes.length && entryTerm(view, at) === term) {
      at += ENTRY_HEADER_BYTES + entryLength(view, at)
      index++
    }
    kept.push({ firstIndex: first, count: index - first, bytes: bytes.subarray(start, at) })
  }
}

/**
 * Applies entries out of a window that is overwritten afterwards.
 *
 * @returns entries that were applied: all of them, or those before a bulk load whose data are not at hand
 */
function applyRange(
  context: ApplyContext,
  place: (index: number, digest: string) => boolean,
  firstIndex: number,
  count: number,
  window: Uint8Array,
  start: number,
  end: number,
): number {
  const view = viewOf(window)
  let at = start
  for (let i = 0; i < count; i++) {
    const body = at + ENTRY_HEADER_BYTES
    const stop = body + entryLength(view, at)
    assert(entryTerm(view, at) > 0, 'entries have a term')
    if (entryKind(view, at) === ENTRY_KIND.command) {
      const isLoad = kindOfCommand(view, body) === KIND.bulkLoad
      if (isLoad && !place(firstIndex + i, hex(decodeBulkLoad(window, body).digest))) return i
      applyCommand(context, firstIndex + i, window, body, stop)
    }
    at = stop
  }
  assert(at === end, 'entries fill their range')
  return count
}

/**
 * Rescues what verifies, the newest usable snapshot and the longest prefix of the log behind it, into one file, and
 * changes nothing else: with a crash, or a full disk, everything is as it was.
 *
 * @returns what is lost, in words
 */
async function rescue(
  env: Env,
  directory: DataDirectory,
  options: ReplicaOptions,
  codecs: CodecList,
  shardId: string,
  loader: Loader,
  damage: unknown,
): Promise<string[]> {
  const lost: string[] = [`damage: ${(damage as Error).message}`]
  const wanted = { shardId, codecsOrderedHash: codecs.orderedHash, codecsText: codecs.text }
  const { loaded, refused } = await loadNewest(env.disk, directory.path, wanted, loader.load)
  for (const { path } of refused) lost.push(`snapshot ${path} does not verify`)
  const store = loaded?.value ?? emptyStore(options)
  const base: SnapshotMark = { index: loaded?.reader.manifest.index ?? 0, term: loaded?.reader.manifest.term ?? 0 }
  const { context } = machineOf(store, options)
  const salvage = salvageWal(env.disk, walFolder(directory), base)
  const index = replaySalvaged(env, directory, context, salvage, base, lost)
  if (salvage.lost) {
    const through =
      salvage.lost.through === undefined ? 'an unknown number of entries' : `entries up to ${salvage.lost.through}`
    lost.push(`lost: from entry ${salvage.lost.from} on, ${through}; kept: everything up to entry ${index}`)
  } else lost.push(`kept: everything up to entry ${index}, the last that verifies`)
  publish(store, index)
  const file = join(directory.path, RESCUE_FILE)
  await writeSnapshotNow(
    store,
    codecs,
    positionOf(options, shardId, { index, term: base.term + 1 }),
    (source, encoder) => writeSeedFile(env, file, source, { encoder }),
  )
  return lost
}

/**
 * Starts from what was rescued. Everything as it was goes to quarantine/ first. The file goes last, when the node can
 * start without it: after a crash in between the next start begins here again.
 *
 * @param lost is added to
 */
async function startFromRescue(
  env: Env,
  directory: DataDirectory,
  options: ReplicaOptions,
  codecs: CodecList,
  loader: Loader,
  progress: Progress,
  lost: string[],
): Promise<RecoveredNode> {
  const { path } = directory
  const file = join(path, RESCUE_FILE)
  const reader = openSeedFile(env.disk, file)
  const { manifest } = reader
  const shardId = options.shardId ?? manifest.shardId
  const foreign = foreignness(reader, { shardId, codecsOrderedHash: codecs.orderedHash, codecsText: codecs.text })
  if (foreign) throw foreign
  const store = await loader.load(reader)
  const { context, kernels } = machineOf(store, options)
  progress('recovering', 'the data is being set aside and written anew')
  const present = [...HISTORY, 'IDENTITY'].filter((name) => env.disk.stat(join(path, name)) !== undefined)
  const place = setAside(directory, present, lost[0] ?? 'a loss was accepted')
  if (place !== '')
    lost.push(`everything as it was lies in ${place}; nothing there is read again (vacancy quarantine list)`)
  renewIdentity(directory)
  directory.cluster = undefined
  const mark = { index: manifest.index, term: manifest.term }
  const snapshotDigest = Buffer.from(manifest.contentDigest).toString('hex')
  const genesis = { shardId, codecs, base: mark, snapshotDigest, voters: [options.nodeId] }
  const cluster = createCluster(genesis, (bytes) => createHash('sha256').update(bytes).digest())
  publish(store, mark.index)
  await writeSnapshotNow(store, codecs, positionOf(options, shardId, mark), (source, encoder) =>
    writeSnapshotDir(env, path, source, { encoder, origin: 'recovery' }),
  )
  beginWriting(directory)
  const wal = createWal(env, walFolder(directory), logIdentity(directory, cluster), mark, {
    fileBytes: options.walFileBytes,
  })
  writeCluster(directory, cluster)
  unlinkFile(env.disk, file)
  syncFolder(env.disk, path)
  prepareSnapshots(store)
  ensureReserve(directory, options.walFileBytes)
  const { index, term } = mark
  return {
    directory,
    shardId,
    store,
    kernels,
    context,
    wal,
    cluster,
    raft: {
      term,
      vote: 0,
      commit: index,
      firstIndex: index + 1,
      lastIndex: index,
      lastTerm: term,
      applied: index,
      appliedTerm: term,
      configuration: votersOnly([{ id: 1, node: options.nodeId, incarnation: directory.identity.incarnation }]),
      entries: [],
      isMute: false,
    },
    snapshot: headOf(reader),
    lastTimeMs: latestTime(store.memory),
    tornTailBytes: 0,
    codecMismatch: undefined,
    lost,
  }
}

function positionOf({ nodeId }: ReplicaOptions, shardId: string, { index, term }: SnapshotMark): Position {
  return { shardId, index, term, voters: [nodeId] }
}

function replaySalvaged(
  env: Env,
  directory: DataDirectory,
  context: ApplyContext,
  salvage: Salvage,
  base: SnapshotMark,
  lost: string[],
): number {
  const place = (index: number, digest: string) => placeLoad(env, directory, context, index, digest, false)
  let last = salvage.lastIndex
  replaySalvage(env.disk, salvage, base, (firstIndex, count, window, start, end) => {
    if (firstIndex > last) return
    const applied = applyRange(context, place, firstIndex, count, window, start, end)
    if (applied === count) return
    last = firstIndex + applied - 1
    lost.push(`lost: from entry ${last + 1} on, a bulk load whose snapshot is not in this folder`)
  })
  return last
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
