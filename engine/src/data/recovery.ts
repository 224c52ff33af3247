/**
 * Restores a store with all acknowledged data from a data directory: the newest valid snapshot, then the log after it
 * (docs/design/storage.md#recovery, docs/design/storage.md#snapshots, docs/design/consensus.md#formation,
 * docs/design/http.md#codec-list).
 */

import { createHash } from 'node:crypto'
import { basename, join } from 'node:path'
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
import { hex } from '../snapshot/format.ts'
import type { SnapshotReader } from '../snapshot/load.ts'
import { lackingBytes, memoryTooSmall } from '../snapshot/replace.ts'
import { finishStore, prepareStore } from '../snapshot/restore.ts'
import { findSnapshots, type Loaded, loadNewestSteps } from '../snapshot/snapshot.ts'
import { WORDS_SCRATCH_BYTES } from '../snapshot/words.ts'
import { type Steps, settled, waited, walk } from '../steps.ts'
import type { ApplyContext } from '../store/apply-context.ts'
import { decodeBulkLoad, KIND, kindOfCommand } from '../store/command.ts'
import { PAGE_BYTES } from '../store/layout.ts'
import { latestTime, prepareSnapshots, publish, type Store, scratchOf } from '../store/store.ts'
import { hasDeleted, sweepOne } from '../store/window.ts'
import { assertConnects, createWal, openWal, type Recovered, recoveredTerm } from '../wal/open.ts'
import type { SnapshotMark } from '../wal/payload.ts'
import { replayEntries } from '../wal/scan.ts'
import { installWal, type Wal } from '../wal/wal.ts'
import {
  asideText,
  beginWriting,
  type Cluster,
  CODECS_FILE,
  createCluster,
  type DataDirectory,
  ensureReserve,
  logIdentity,
  openDataDirectory,
  readNote,
  renewIdentity,
  SUSPECT_FILE,
  setAside,
  walFolder,
  writeCluster,
  writeNote,
} from './data-directory.ts'
import { configurationAt } from './genesis.ts'
import {
  createTools,
  type Decide,
  endFormerLife,
  type Found,
  HISTORY,
  type Holding,
  headOf,
  type Loader,
  machineOf,
  type Progress,
  placeLoad,
  RESCUE_FILE,
  type RecoveredNode,
  type Recovery,
  type RecoveryTools,
} from './recovery-parts.ts'
import type { ReplicaOptions } from './replica-options.ts'
import { rescue, startFromRescue, unfinishedRescue } from './rescue.ts'

const DEFAULT_SHARD = 'standalone'

/**
 * Opens the directory and rebuilds the store.
 *
 * @throws corrupt_data (71) without changes, unless losses are accepted; wrong_shard, directory_in_use, …
 */
export function recoverNode(
  env: Env,
  options: ReplicaOptions,
  progress: Progress,
  found?: Found,
): Promise<RecoveredNode> {
  const decide = found && ((holding: Holding) => settled(found(holding)))
  return walk(recoverySteps(env, options, progress, createTools(options), decide))
}

/** The same as steps with other tools, because a simulation has no threads. */
export function* recoverySteps(
  env: Env,
  options: ReplicaOptions,
  progress: Progress,
  tools: RecoveryTools,
  found: Decide | undefined,
): Steps<RecoveredNode> {
  const codecs = createCodecList(options.codecs)
  progress('recovering', `opening ${options.dataDir}`)
  const directory = openDirectory(env, options)
  if (options.rejoin) setAsideForRejoin(env, directory)
  const loader = createLoader(env, options, tools, progress)
  const recovery: Recovery = { env, directory, options, codecs, tools, loader, progress }
  try {
    if (env.disk.stat(join(directory.path, RESCUE_FILE))) {
      if (found) throw new VacancyError('data_conflict', { reason: unfinishedRescue(directory) })
      env.log.warn({}, 'resuming an interrupted --accept-loss recovery')
      return yield* startFromRescue(recovery, [])
    }
    const codecMismatch = setAsideOtherCodecs(env, directory, codecs)
    const shardId = shardOf(env, directory, options)
    try {
      return yield* recoverFrom({ ...recovery, shardId, codecMismatch, decide: found })
    } catch (error) {
      const isDamage = error instanceof VacancyError && error.code === 'corrupt_data'
      if (!isDamage || !options.acceptLoss) throw error
      const lost = yield* rescue(recovery, shardId, error)
      return yield* startFromRescue(recovery, lost)
    }
  } finally {
    yield* settled(loader.close())
  }
}

/** With losses accepted, a damaged IDENTITY or CLUSTER is set aside like other damage. */
function openDirectory(env: Env, options: ReplicaOptions): DataDirectory {
  const { dataDir: path, nodeId } = options
  try {
    return openDataDirectory(env, path, { nodeId })
  } catch (error) {
    if (!(error instanceof VacancyError && error.code === 'corrupt_data' && (options.acceptLoss || options.rejoin)))
      throw error
    const place = join(path, 'quarantine', `damaged-${env.clock.wallMs()}`)
    env.log.warn({ place, err: error }, 'damaged identity set aside')
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

/**
 * The operator gives up this node's data. The node returns as a new member and gets its state from the others
 * (docs/design/storage.md#torn-tail-or-corruption).
 */
function setAsideForRejoin(env: Env, directory: DataDirectory): void {
  const all = [...HISTORY, 'IDENTITY', SUSPECT_FILE]
  const present = all.filter((name) => env.disk.stat(join(directory.path, name)) !== undefined)
  // SUSPECT moves last: after a crash in between, the next start continues here.
  const isSuspect = present.includes(SUSPECT_FILE)
  if (!present.includes('CLUSTER') && !isSuspect) return
  const why = isSuspect ? 'digest mismatch: rejoins from its peers' : 'rejoin requested (--rejoin)'
  const place = setAside(directory, present, why)
  renewIdentity(directory)
  directory.cluster = undefined
  env.log.warn({ place }, 'data set aside, rejoining as a new member')
}

/** Without `--shard-id`, the shard of the data, or the default for a new folder. */
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

/** Data of another codec list is set aside, where only an operator deletes it. The node starts empty. */
function setAsideOtherCodecs(env: Env, directory: DataDirectory, codecs: CodecList): string | undefined {
  const { cluster } = directory
  const seeds = findSnapshots(env.disk, directory.path)
  const ofSeed = seeds.find((found) => found.state === 'readable')
  const known = cluster
    ? { names: cluster.codecs, hash: cluster.codecHash }
    : ofSeed?.state === 'readable'
      ? { names: ofSeed.head.manifest.codecs, hash: ofSeed.head.manifest.codecsOrderedHash }
      : undefined
  if (!known || known.hash === codecs.orderedHash) return earlierChange(env, directory.path)
  const reason = `the data was made with the codec list ${known.names.join(', ')}; the list is now ${codecs.text}`
  writeNote(env, directory.path, CODECS_FILE, reason)
  // The same incarnation without its log could vote twice in one term, so IDENTITY is set aside too.
  const present = [...HISTORY, 'IDENTITY'].filter((name) => env.disk.stat(join(directory.path, name)) !== undefined)
  const place = setAside(directory, present, reason)
  renewIdentity(directory)
  directory.cluster = undefined
  env.log.warn({ place }, `${reason}: the node starts empty`)
  const note = `${reason}${asideText(basename(place))}`
  writeNote(env, directory.path, CODECS_FILE, note)
  return note
}

/** What an earlier start set aside, until an operator accepts it or puts it back. */
function earlierChange(env: Env, path: string): string | undefined {
  const note = readNote(env, path, CODECS_FILE)
  if (note === undefined || note.includes(asideText(''))) return note
  // A crash came before the data moved, and the list is the right one again.
  unlinkFile(env.disk, join(path, CODECS_FILE))
  return undefined
}

function createLoader(env: Env, options: ReplicaOptions, tools: RecoveryTools, progress: Progress): Loader {
  let decoder: ReturnType<RecoveryTools['openDecoder']> | undefined
  return {
    *load(reader) {
      const { manifest } = reader
      progress('loading', `snapshot of index ${manifest.index} with ${manifest.packages} packages`)
      decoder ??= tools.openDecoder(env.disk, manifest.packages)
      const { threads, decode } = decoder
      const store = tools.createStore()
      const tooMuch = missingMemory(store, reader, options.memoryBytes)
      if (tooMuch?.isCertain) throw tooMuch.error
      try {
        const { memory } = store
        const prepared = prepareStore(store, reader.names, reader.properties, reader.tables)
        const job = { reader, memory, planeMap: prepared.planeMap, scratch: scratchAreas(store, threads) }
        yield* waited<void>((done) => decode(job, done))
        finishStore(store, prepared, {
          sessions: reader.sessions,
          settings: reader.settings,
          replicated: reader.replicated,
          stays: reader.stays,
          lastMaintenanceDay: manifest.lastMaintenanceDay,
          digest: manifest.digest,
        })
      } catch (error) {
        // Memory ran out although the estimate predicted enough.
        if (tooMuch && error instanceof VacancyError && error.code === 'memory_exhausted') throw tooMuch.error
        throw error
      }
      return store
    },
    close: () => decoder?.close(),
  }
}

/**
 * A snapshot that may not fit the memory; undefined for one that fits. The data of an almost full node may only fit
 * with its reserve, so they are tried.
 */
function missingMemory(
  store: Store,
  reader: SnapshotReader,
  memoryBytes: number,
): { readonly isCertain: boolean; readonly error: VacancyError } | undefined {
  const error = memoryTooSmall(store, reader, 0, memoryBytes)
  if (error === undefined) return undefined
  return { isCertain: lackingBytes(store, reader, 0, 0) > 0, error }
}

/**
 * Scratch areas for decoding. First the spare pages, which no snapshot uses yet: memory touched once stays with the
 * process. The rest is in areas of readers, which are not active yet.
 */
function scratchAreas(store: Store, threads: number): number[] {
  const { start, pages } = store.writer.spare
  const room = Math.floor((pages * PAGE_BYTES) / WORDS_SCRATCH_BYTES)
  return Array.from({ length: threads }, (_, thread) =>
    thread < room ? start + thread * WORDS_SCRATCH_BYTES : scratchOf(store.memory, thread),
  )
}

type FolderRecovery = Recovery & {
  readonly shardId: string
  readonly codecMismatch: string | undefined
  readonly decide: Decide | undefined
}

function* recoverFrom(recovery: FolderRecovery): Steps<RecoveredNode> {
  const { env, directory, options, codecs, shardId, codecMismatch, tools, loader, progress, decide } = recovery
  const wanted = { shardId, codecsOrderedHash: codecs.orderedHash, codecsText: codecs.text }
  const found = yield* loadNewestSteps(env.disk, directory.path, wanted, loader.load)
  const { loaded } = found
  const store = loaded?.value ?? tools.createStore()
  const snapshot = loaded?.reader
  const base: SnapshotMark = { index: snapshot?.manifest.index ?? 0, term: snapshot?.manifest.term ?? 0 }
  let opened: { wal: Wal; recovered: Recovered | undefined }
  if (directory.cluster) opened = openLog(env, directory, found, base, tools, decide !== undefined)
  else {
    const refused = found.refused[0]
    // A new folder whose seed does not verify must not become an empty shard.
    if (!snapshot && refused) throw refused.error
    const cluster = yield* clusterOf(directory, options, codecs, shardId, snapshot, decide)
    if (cluster === 'reread') return yield* recoverFrom(recovery)
    if ('setAside' in cluster) {
      const present = HISTORY.filter((name) => env.disk.stat(join(directory.path, name)) !== undefined)
      const place = setAside(directory, present, cluster.setAside)
      env.log.warn({ place, reason: cluster.setAside }, 'snapshot of this node set aside')
      return yield* recoverFrom(recovery)
    }
    beginWriting(directory)
    const wal = createWal(env, walFolder(directory), logIdentity(directory, cluster), base, tools.wal)
    writeCluster(directory, cluster)
    opened = { wal, recovered: undefined }
  }
  const { wal, recovered } = opened
  const cluster = directory.cluster as Cluster | undefined
  assert(cluster !== undefined, 'the data directory belongs to a shard')
  if (snapshot) endFormerLife(store, cluster, snapshot.manifest)
  const lost: string[] = []
  let isReplaying = true
  const { kernels, context } = machineOf(store, tools, (index) => {
    if (!options.acceptLoss || !isReplaying) return false
    lost.push(`the state after entry ${index} differs from the logged one; continuing with it (--accept-loss)`)
    return true
  })
  const self = { node: options.nodeId, incarnation: directory.identity.incarnation }
  const begin = decide
    ? configurationAt(cluster, snapshot?.manifest)
    : (snapshot?.manifest.membership ?? votersOnly([{ id: 1, ...self }]))
  const hardState = recovered?.hardState ?? { term: base.term, vote: 0, commit: base.index }
  const place = (index: number, digest: string) =>
    placeLoad(env, directory, context, index, digest, decide !== undefined)
  const replayed = replay({
    ...{ env, context, tools, recovered, place, progress },
    after: base.index,
    commit: decide && hardState.commit,
    begin,
  })
  isReplaying = false
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
    lost,
  }
}

/** A folder with CLUSTER has a log, and the log decides: a newer snapshot file alone is not loaded over it. */
function openLog(
  env: Env,
  directory: DataDirectory,
  found: Loaded<Store>,
  base: SnapshotMark,
  tools: RecoveryTools,
  isClustered: boolean,
): { wal: Wal; recovered: Recovered | undefined } {
  const { cluster } = directory
  assert(cluster !== undefined, 'the data directory belongs to a shard')
  const opened = openWal(env, walFolder(directory), logIdentity(directory, cluster), {
    ...tools.wal,
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
    // The machine stopped between making the leader's snapshot current and restarting the log after it.
    if (!installWal(opened.wal, base)) throw new VacancyError('no_room', { directory: directory.path })
    return { wal: opened.wal, recovered: { ...opened.recovered, ...emptyBehind(opened.recovered, base) } }
  }
  assertConnects(opened.recovered, base)
  for (const { path, error } of found.refused) {
    env.log.error({ path, err: error }, 'damaged snapshot skipped, using the previous one and the log')
  }
  return opened
}

/** Whether the log contains this position. */
function isIn(recovered: Recovered, { index, term }: SnapshotMark): boolean {
  return recoveredTerm(recovered, index) === term
}

/** Contents of a log that restarted after a snapshot. */
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
    reason: 'the log begins after this snapshot, which is missing',
  })
}

/**
 * The genesis of the shard at the first start.
 *
 * @returns or why the held snapshot must be set aside first (docs/design/consensus.md#formation), or that the folder
 * has another one now
 */
function* clusterOf(
  directory: DataDirectory,
  options: ReplicaOptions,
  codecs: CodecList,
  shardId: string,
  snapshot: SnapshotReader | undefined,
  decide: Decide | undefined,
): Steps<Cluster | { readonly setAside: string } | 'reread'> {
  const digest = snapshot ? Buffer.from(snapshot.manifest.contentDigest).toString('hex') : ''
  const base = { index: snapshot?.manifest.index ?? 0, term: snapshot?.manifest.term ?? 0 }
  if (!decide) {
    const genesis = { shardId, codecs, base, snapshotDigest: digest, voters: [options.nodeId] }
    const cluster = createCluster(genesis, (bytes) => createHash('sha256').update(bytes).digest())
    return { ...cluster, drawsGenesis: true }
  }
  const held = snapshot ? ({ state: 'seeded', digest, ...base } as const) : ({ state: 'empty' } as const)
  const decision = yield* decide({ directory, shardId, codecs, held })
  if (decision.kind === 'reread') return 'reread'
  if (decision.kind === 'set-aside') return { setAside: decision.reason }
  if (decision.kind === 'form') return { ...decision.cluster, drawsGenesis: true }
  if (snapshot && !decision.keepsSnapshot) {
    return { setAside: 'the history of the shard differs from the snapshot of this node' }
  }
  return { ...decision.cluster, isFounder: false }
}

type Replayed = {
  applied: number
  /** In force at `applied`. */
  configuration: Configuration
  /** Durable entries after it. The shard decides whether they are committed. */
  readonly entries: EntryBatch[]
}

type Replaying = Pick<Recovery, 'env' | 'tools' | 'progress'> & {
  readonly context: ApplyContext
  readonly recovered: Recovered | undefined
  /** The index of the state to begin with. */
  readonly after: number
  /** Undefined: all entries. */
  readonly commit: number | undefined
  readonly begin: Configuration
  /** Replaces the data of the store with those of a bulk load, for the entry at that index. */
  readonly place: (index: number, digest: string) => boolean
}

/**
 * Applies the entries after the snapshot that are known to be committed. If this node is the only voter, every durable
 * entry counts as committed. The same holds when no shard decides any more (`vacancy export`): the survivor of a lost
 * quorum may hold acknowledged entries, even entries it applied itself, without a commit index on disk that covers
 * them.
 *
 * Entries after a bulk load whose data are missing are not applied: a member gets the data from others
 * (bulk-load-apply.ts).
 *
 * @throws corrupt_data when there is no other member to get the data of a load from
 */
function replay(replaying: Replaying): Replayed {
  const { env, context, tools, recovered, after, commit, begin, place, progress } = replaying
  const replayed: Replayed = { applied: after, configuration: begin, entries: [] }
  if (!recovered || recovered.lastIndex <= after) return replayed
  let reportedAt = env.clock.monotonicMs()
  progress('recovering', `${recovered.lastIndex - after} log entries to apply`)
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
        tools.apply(context, index, window, body, stop)
      }
      if (kind === ENTRY_KIND.configuration) {
        replayed.configuration = decodeConfiguration(window.subarray(body, stop))
      }
      replayed.applied = index
      at = stop
    }
    while (hasDeleted(context.store)) sweepOne(context.store)
    publish(context.store, replayed.applied)
    if (at < end) keepEntries(replayed.entries, index, window.subarray(at, end))
    if (env.clock.monotonicMs() - reportedAt < 500) return
    reportedAt = env.clock.monotonicMs()
    progress('recovering', `${recovered.lastIndex - replayed.applied} log entries left to apply`)
  })
  const kept = replayed.entries.reduce((sum, batch) => sum + batch.count, 0)
  assert(replayed.applied + kept === recovered.lastIndex, 'the log is read to its end')
  return replayed
}

function missingLoad(index: number, digest: string): VacancyError {
  const reason = `entry ${index} loads snapshot ${digest}, which is missing in this folder or does not fit the memory`
  return new VacancyError('corrupt_data', { file: 'snapshots', offset: 0, reason })
}

/** Where the log on disk begins, and the terms of its entries; empty when it begins after the applied index. */
function readableLog(recovered: Recovered | undefined, applied: number): Pick<RestoredState, 'firstIndex' | 'terms'> {
  const first = recovered?.firstIndex ?? applied + 1
  const before = recovered ? recoveredTerm(recovered, first - 1) : 0
  if (!recovered || first > applied || (before === 0 && first > 1)) return { firstIndex: applied + 1 }
  return { firstIndex: first, terms: [{ term: before, firstIndex: first - 1 }, ...recovered.scan.terms] }
}

function isAlone({ voters, outgoing, learners }: Configuration): boolean {
  return voters.length === 1 && outgoing.length === 0 && learners.length === 0
}

/** Copies entries from a window, in batches of one term. */
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
