/** Shared by recovery and rescue: their tools, and applying entries to a store that is being filled. */

import { assert, type CodecList, VacancyError } from '@vacancy/shared'
import type { Disk, Env } from '../env.ts'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, entryKind, entryLength, entryTerm, viewOf } from '../raft/entry.ts'
import type { RestoredState } from '../raft/raft.ts'
import { hex } from '../snapshot/format.ts'
import { openSnapshot, type SnapshotHead, type SnapshotReader } from '../snapshot/load.ts'
import { inlineDecoder, lackingBytes, type OpenDecoder, openDecoder, replaceData } from '../snapshot/replace.ts'
import { forgetGenesis } from '../snapshot/restore.ts'
import { heldSnapshots, readHeldSnapshot, SEED_FILE, statesBefore } from '../snapshot/snapshot.ts'
import type { Steps } from '../steps.ts'
import { applyCommand } from '../store/apply.ts'
import { type ApplyContext, createApplyContext } from '../store/apply-context.ts'
import { decodeBulkLoad, KIND, kindOfCommand } from '../store/command.ts'
import { digestText } from '../store/digest.ts'
import { createStore, featureLevel, INDEX_LEVEL, type Store } from '../store/store.ts'
import { type Kernels, loadKernels } from '../threads/kernels.ts'
import type { Wal, WalOptions } from '../wal/wal.ts'
import { type Cluster, type DataDirectory, isSeedOf } from './data-directory.ts'
import type { Founded, Held } from './genesis.ts'
import type { ReplicaOptions } from './replica-options.ts'

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
  /** Descriptions of the data that `--accept-loss` gave up. */
  readonly lost: readonly string[]
}

/**
 * Decides how a node that is not formed yet joins or founds a shard (formation.ts): it waits for its peers. Absent in
 * standalone mode, where a node founds its own shard at once.
 */
export type Found = (holding: Holding) => Promise<Founded>

export type Holding = {
  readonly directory: DataDirectory
  readonly shardId: string
  readonly codecs: CodecList
  readonly held: Exclude<Held, { state: 'formed' }>
}

export type Decide = (holding: Holding) => Steps<Founded>

/** Dependencies of recovery. */
export type RecoveryTools = {
  readonly createStore: () => Store
  readonly kernelsOf: (store: Store) => Kernels
  /** Called when there is a snapshot to load. */
  readonly openDecoder: (disk: Disk, packages: number) => OpenDecoder
  readonly apply: typeof applyCommand
  readonly wal: WalOptions
}

/** What all steps of one recovery share. */
export type Recovery = {
  readonly env: Env
  readonly directory: DataDirectory
  readonly options: ReplicaOptions
  readonly codecs: CodecList
  readonly tools: RecoveryTools
  readonly loader: Loader
  readonly progress: Progress
}

export function createTools(options: ReplicaOptions): RecoveryTools {
  const { memoryBytes, readers, scratchBytes, sessionBytesMax, roomsHint } = options
  return {
    createStore: () => createStore({ memoryBytes, readers, scratchBytes, sessionBytesMax, roomsHint }),
    kernelsOf: ({ memory }) => loadKernels(memory),
    openDecoder: (disk, packages) => openDecoder(disk, Math.min(options.loadThreads, options.readers), packages),
    apply: applyCommand,
    wal: { fileBytes: options.walFileBytes },
  }
}

export type Progress = (phase: 'recovering' | 'loading', detail: string) => void

/** The verified part of damaged data, from when the file is complete until the node can start without it. */
export const RESCUE_FILE = 'rescued.snapshot'

/**
 * All files of one history, set aside together. CLUSTER is last because its presence shows that there is something to
 * move.
 */
export const HISTORY = ['CLEAN', 'wal', 'snapshots', SEED_FILE, 'CLUSTER']

export type Loader = {
  readonly load: (reader: SnapshotReader) => Steps<Store>
  readonly close: () => void | Promise<void>
}

/**
 * @param accept called with a digest in the log that differs from the one of this state; absent: that ends the process
 */
export function machineOf(
  store: Store,
  tools: RecoveryTools,
  accept: (index: number) => boolean = () => false,
): { kernels: Kernels; context: ApplyContext } {
  const kernels = tools.kernelsOf(store)
  const onDigestMismatch: ApplyContext['onDigestMismatch'] = (index, wanted, own) => {
    if (accept(index)) return
    throw new VacancyError('digest_mismatch', { index, found: digestText(own), wanted: digestText(wanted) })
  }
  const context = createApplyContext(store, kernels.put, onDigestMismatch)
  return { kernels, context }
}

/** The part of a loaded snapshot worth keeping: its columns take as much memory as those of the store. */
export function headOf(reader: SnapshotReader | undefined): SnapshotHead | undefined {
  if (!reader) return undefined
  const { path, manifest, places, note, bytes } = reader
  return { path, manifest, places, note, bytes }
}

type Founding = Pick<Cluster, 'baseIndex' | 'baseTerm' | 'snapshotDigest' | 'drawsGenesis'>

/**
 * A store was loaded from a snapshot. If that is the founding one of the shard, genesis and indexes in it are of the
 * shard that it was taken from, and end here, on members that joined as on founders. Only founders know whether their
 * shard draws its own genesis; every program that wrote data of feature level 5 does.
 */
export function endFormerLife(store: Store, cluster: Founding, manifest: Parameters<typeof isSeedOf>[1]): void {
  const draws = cluster.drawsGenesis || featureLevel(store.memory) >= INDEX_LEVEL
  if (draws && isSeedOf(cluster, manifest)) forgetGenesis(store)
}

/** The store of a running node has the state of a snapshot from a peer. */
export function onTakenOver(
  { store, context, cluster }: Pick<RecoveredNode, 'store' | 'context' | 'cluster'>,
  manifest: Parameters<typeof isSeedOf>[1],
): void {
  endFormerLife(store, cluster, manifest)
  context.marks.length = 0
  context.newestMark = undefined
  context.loaded = ''
}

/**
 * Replaces the data of the store with those of a bulk load, if its snapshot is here.
 *
 * @param keeps the previous state must already be kept; otherwise the running member keeps it first
 * @returns whether they were replaced
 */
export function placeLoad(
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
  // No readers exist yet and this thread decodes, so it completes synchronously.
  replaceData(env, context.store, reader, inlineDecoder(disk), (error) => {
    if (error) throw error
    isPlaced = true
  })
  assert(isPlaced, 'data are replaced synchronously without readers')
  context.loaded = digest
  env.log.info({ index, digest }, 'bulk load data restored')
  return true
}

/**
 * Applies entries from a window that is overwritten afterwards.
 *
 * @returns the number of applied entries: all, or those before a bulk load whose data are missing
 */
export function applyRange(
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
