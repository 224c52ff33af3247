/** `--accept-loss`: keeps the readable part of a damaged data directory and sets the rest aside. */

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { assert, type CodecList } from '@vacancy/shared'
import { syncFolder, unlinkFile } from '../env.ts'
import { votersOnly } from '../raft/membership.ts'
import { CAPTURE_SCRATCH_BYTES, captureStore } from '../snapshot/capture.ts'
import { openSeedFile } from '../snapshot/load.ts'
import { forgetGenesis } from '../snapshot/restore.ts'
import type { SnapshotSource } from '../snapshot/schema.ts'
import { foreignness, loadNewestSteps } from '../snapshot/snapshot.ts'
import { inlineEncoder, type WordsEncoder, writeSeedFile, writeSnapshotDir } from '../snapshot/write.ts'
import { type Steps, settled } from '../steps.ts'
import type { ApplyContext } from '../store/apply-context.ts'
import { beginCopyOnWrite, endCopyOnWrite } from '../store/cow.ts'
import { latestTime, prepareSnapshots, publish, type Store, scratchOf } from '../store/store.ts'
import { replaySalvage, type Salvage, salvageWal } from '../wal/inspect.ts'
import { createWal } from '../wal/open.ts'
import type { SnapshotMark } from '../wal/payload.ts'
import {
  beginWriting,
  createCluster,
  type DataDirectory,
  ensureReserve,
  logIdentity,
  renewIdentity,
  setAside,
  walFolder,
  writeCluster,
} from './data-directory.ts'
import {
  applyRange,
  HISTORY,
  headOf,
  machineOf,
  placeLoad,
  RESCUE_FILE,
  type RecoveredNode,
  type Recovery,
} from './recovery-parts.ts'
import type { ReplicaOptions } from './replica-options.ts'

export function unfinishedRescue({ path }: DataDirectory): string {
  return `${path} holds ${RESCUE_FILE} of an interrupted --accept-loss recovery. Run vacancy run once to finish it.`
}

/**
 * Writes the verified data, the newest usable snapshot and the longest log prefix after it, into one file. Changes
 * nothing else, so that a crash or a full disk does no harm.
 *
 * @returns descriptions of the lost data
 */
export function* rescue(recovery: Recovery, shardId: string, damage: unknown): Steps<string[]> {
  const { env, directory, options, codecs, tools, loader } = recovery
  const lost: string[] = [`damage: ${(damage as Error).message}`]
  const wanted = { shardId, codecsOrderedHash: codecs.orderedHash, codecsText: codecs.text }
  const { loaded, refused } = yield* loadNewestSteps(env.disk, directory.path, wanted, loader.load)
  for (const { path } of refused) lost.push(`snapshot ${path} does not verify`)
  const store = loaded?.value ?? tools.createStore()
  const base: SnapshotMark = { index: loaded?.reader.manifest.index ?? 0, term: loaded?.reader.manifest.term ?? 0 }
  const { context } = machineOf(store, tools)
  const salvage = salvageWal(env.disk, walFolder(directory), base)
  const index = replaySalvaged(recovery, context, salvage, base, lost)
  if (salvage.lost) {
    const through =
      salvage.lost.through === undefined ? 'an unknown number of entries' : `entries up to ${salvage.lost.through}`
    lost.push(`lost: from entry ${salvage.lost.from} on, ${through}; kept: everything up to entry ${index}`)
  } else lost.push(`kept: everything up to entry ${index}, the last that verifies`)
  publish(store, index)
  const file = join(directory.path, RESCUE_FILE)
  const position = positionOf(options, shardId, { index, term: base.term + 1 })
  yield* settled(
    writeSnapshotNow(store, codecs, position, (source, encoder) => writeSeedFile(env, file, source, { encoder })),
  )
  return lost
}

/**
 * Starts from the rescued file. The original data are moved to quarantine/ first. The file goes last, when the node can
 * start without it: after a crash in between, the next start resumes here.
 *
 * @param lost is added to
 */
export function* startFromRescue(recovery: Recovery, lost: string[]): Steps<RecoveredNode> {
  const { env, directory, options, codecs, tools, loader, progress } = recovery
  const { path } = directory
  const file = join(path, RESCUE_FILE)
  const reader = openSeedFile(env.disk, file)
  const { manifest } = reader
  const shardId = options.shardId ?? manifest.shardId
  const foreign = foreignness(reader, { shardId, codecsOrderedHash: codecs.orderedHash, codecsText: codecs.text })
  if (foreign) throw foreign
  const store = yield* loader.load(reader)
  forgetGenesis(store)
  const { context, kernels } = machineOf(store, tools)
  progress('recovering', 'setting the data aside and rewriting it')
  const present = [...HISTORY, 'IDENTITY'].filter((name) => env.disk.stat(join(path, name)) !== undefined)
  const place = setAside(directory, present, lost[0] ?? 'loss accepted')
  if (place !== '') lost.push(`the original data is in ${place} and is not read again (vacancy quarantine list)`)
  renewIdentity(directory)
  directory.cluster = undefined
  const mark = { index: manifest.index, term: manifest.term }
  const snapshotDigest = Buffer.from(manifest.contentDigest).toString('hex')
  const genesis = { shardId, codecs, base: mark, snapshotDigest, voters: [options.nodeId] }
  const cluster = createCluster(genesis, (bytes) => createHash('sha256').update(bytes).digest())
  publish(store, mark.index)
  yield* settled(
    writeSnapshotNow(store, codecs, positionOf(options, shardId, mark), (source, encoder) =>
      writeSnapshotDir(env, path, source, { encoder, origin: 'recovery' }),
    ),
  )
  beginWriting(directory)
  const wal = createWal(env, walFolder(directory), logIdentity(directory, cluster), mark, tools.wal)
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
  { env, directory }: Recovery,
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

/** Position of a snapshot of a store without concurrent changes. */
export type Position = {
  readonly shardId: string
  readonly index: number
  readonly term: number
  readonly voters: readonly string[]
}

/** Writes a snapshot of a store without concurrent changes: after an accepted loss, and for `vacancy export`. */
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
