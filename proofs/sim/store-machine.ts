/**
 * The production store in a simulated node: recovered by data/recovery.ts, changed by store/apply.ts, captured at an
 * epoch and written in pieces during further writes, and offered, received and loaded by snapshot/.
 */

import { assert, type CodecList, VacancyError } from '@vacancy/shared'
import { staysOf } from '../../engine/src/cluster/stay-answers.ts'
import { onTakenOver, type RecoveredNode, type RecoveryTools } from '../../engine/src/data/recovery-parts.ts'
import { type Env, isDiskFull } from '../../engine/src/env.ts'
import { CAPTURE_SCRATCH_BYTES, type CapturePoint, captureStore } from '../../engine/src/snapshot/capture.ts'
import { createExchanger, runExchange } from '../../engine/src/snapshot/exchange.ts'
import { openSnapshot, readSnapshotDir, type SnapshotReader } from '../../engine/src/snapshot/load.ts'
import { inlineDecoder, lackingBytes, replaceData, replaceStore } from '../../engine/src/snapshot/replace.ts'
import { retainSnapshots } from '../../engine/src/snapshot/snapshot.ts'
import { WORDS_SCRATCH_BYTES } from '../../engine/src/snapshot/words.ts'
import {
  chunksFolder,
  inlineEncoder,
  type PreviousSnapshot,
  writeSnapshotDirSteps,
} from '../../engine/src/snapshot/write.ts'
import { follow } from '../../engine/src/steps.ts'
import { applyCommand } from '../../engine/src/store/apply.ts'
import { sumSegments } from '../../engine/src/store/apply-properties.ts'
import { allocate, release } from '../../engine/src/store/arena.ts'
import { budgetUse } from '../../engine/src/store/charge.ts'
import {
  beginCopyOnWrite,
  endCopyOnWrite,
  hurrySnapshot,
  isSnapshotHurried,
  lacksSparePages,
} from '../../engine/src/store/cow.ts'
import { dayAt } from '../../engine/src/store/day.ts'
import { findName, NAMES } from '../../engine/src/store/dictionary.ts'
import { STATE } from '../../engine/src/store/layout.ts'
import { readNight } from '../../engine/src/store/read.ts'
import { orderTables, unorderedTables } from '../../engine/src/store/row-order.ts'
import { effectsOfSetTime, lastSetTime } from '../../engine/src/store/set-time.ts'
import {
  clearStore,
  createStore,
  featureLevel,
  indexBase,
  latestTime,
  type Memory,
  publish,
  type Store,
  scratchOf,
  setState,
  state,
  stateDigest,
} from '../../engine/src/store/store.ts'
import { openStore } from '../../engine/src/store/version.ts'
import { hasDeleted, packagesBefore, sweepOne } from '../../engine/src/store/window.ts'
import { type Kernels, loadKernels } from '../../engine/src/threads/kernels.ts'
import type { Knobs } from './knobs.ts'
import type { Machine, Reference } from './machine.ts'
import { fatesDifference, heldCount, staysDifference } from './stays-reference.ts'
import { imageModels, seedOf } from './store-images.ts'
import { applyToModel, createStoreModel, differenceFrom, restoredModel, type StoreModel } from './store-model.ts'
import { beginRunAt, placeOf } from './store-workload.ts'

/**
 * Snapshot reads and writes do not overlap, so they share the slot of one reader; more slots would make every snapshot
 * copy more empty memory.
 */
const READER = 0
/** Initial capacity of the request key table, until the log changes it. */
const SESSION_BYTES = 1 << 20
/** The files of nodes differ. */
const LOCAL_STAYS_BYTES = 1_000

type Used = { readonly store: Store; readonly kernels: Kernels }

/**
 * Stores by node and size, reused by the next process and the next run after being cleared as for a snapshot. Runs in a
 * process are sequential.
 */
const stores = new Map<string, Used>()

function takeStore(node: number, memoryBytes: number): Used {
  const name = `${node} ${memoryBytes}`
  let used = stores.get(name)
  // A store that a defect left in the middle of a change is not reused.
  if (used && used.store.writer.marks.size === 0) {
    if (used.store.writer.copyOnWrite) endCopyOnWrite(used.store)
    clearStore(used.store)
    openStore(used.store)
    setState(used.store, STATE.sessionBytesMax, SESSION_BYTES)
  } else {
    const store = createStore({
      memoryBytes,
      readers: 1,
      scratchBytes: CAPTURE_SCRATCH_BYTES + WORDS_SCRATCH_BYTES,
      sessionBytesMax: SESSION_BYTES,
    })
    used = { store, kernels: loadKernels(store.memory) }
    stores.set(name, used)
  }
  publish(used.store, 0)
  return used
}

/** Recovery with this node's store, on this thread. */
export function storeTools(
  env: Env,
  node: number,
  knobs: Knobs,
  wal: RecoveryTools['wal'],
  apply: typeof applyCommand,
): RecoveryTools {
  return {
    createStore: () => {
      const { store } = takeStore(node, knobs.memoryBytes)
      // Only planted defects read these (defects/store.ts).
      Object.assign(store.writer, { localTimeMs: env.clock.wallMs, localStaysBytes: node * LOCAL_STAYS_BYTES })
      return store
    },
    kernelsOf: (store) => {
      const used = [...stores.values()].find((each) => each.store === store)
      assert(used !== undefined, 'stores are created here')
      return used.kernels
    },
    openDecoder: () => ({ ...inlineDecoder(env.disk), close: () => undefined }),
    apply,
    wal,
  }
}

/** The store of the oracles: a model that shares no code with the one of nodes. */
export function createStoreReference({ epochMs }: Pick<Knobs, 'epochMs'>): Reference {
  beginRunAt(epochMs)
  return referenceOf(createStoreModel(imageModels()))
}

function referenceOf(model: StoreModel): Reference {
  return {
    apply: (index, bytes, start, end, observed) => applyToModel(model, index, bytes, start, end, observed),
    lastMaintenanceDay: () => model.lastMaintenanceDay,
    get counts() {
      return { ...model.counts, ...model.stays.counts }
    },
    restored: () => referenceOf(restoredModel(model)),
    differenceFrom: (memory) => differenceFrom(model, memory),
    stays: {
      replyAt: (index) => model.stays.replies.get(index),
      differenceFrom: (memory) => staysDifference(model.stays, memory),
      held: () => heldCount(model.stays),
      lastDeadlineMs: () => Math.max(0, ...[...model.stays.model.stays.values()].map(({ deadlineMs }) => deadlineMs)),
      fatesDifference: (promised) => fatesDifference(model.stays, promised),
    },
  }
}

export type StoreMachineParts = {
  readonly env: Env
  readonly dataDir: string
  readonly codecs: CodecList
  readonly node: RecoveredNode
  /** Runs it later in this process, after a short time or the duration of a snapshot step. */
  readonly later: (work: 'exchange' | 'snapshot', run: () => void) => void
  /** Snapshot bytes per second; other writes run between its pieces. */
  readonly snapshotBytesPerSecond: number
  readonly onFatal: (reason: string) => void
}

export function createStoreMachine(parts: StoreMachineParts): Machine {
  const { env, dataDir, codecs, node, later } = parts
  const { disk } = env
  const { store, context, shardId } = node
  const { memory } = store
  const { marks } = context
  const exchanger = createExchanger(env, dataDir)
  const decoder = inlineDecoder(disk)
  let previous: (PreviousSnapshot & { readonly epoch: number }) | undefined
  let prepared: SnapshotReader | undefined
  /** Empty blocks. */
  const taken: { readonly start: number; readonly bytes: number }[] = []
  const readFolder = (path: string): SnapshotReader | string => {
    try {
      const reader = openSnapshot(disk, readSnapshotDir(disk, path, chunksFolder(dataDir)))
      const lacking = lackingBytes(store, reader, decoder.threads)
      return lacking === 0 ? reader : `${lacking} bytes of memory are missing for the snapshot in ${path}`
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      return error.message
    }
  }
  const onReplaced = (done: () => void) => (error?: unknown) => {
    if (error) throw error
    previous = undefined
    // When memory was filled from empty, those blocks are used.
    taken.length = 0
    done()
  }
  const write = (point: CapturePoint, ended: Parameters<Machine['takeSnapshot']>[3]): void => {
    const end = (reason: string): void => {
      const { copyOnWrite, spare } = store.writer
      if (copyOnWrite) endCopyOnWrite(store)
      ended(reason, spare.failed)
    }
    const scratch = scratchOf(memory, READER)
    const captured = captureStore(memory, point, codecs, scratch, previous)
    if (!captured) return end(NO_COPIES)
    const { source } = captured
    const options = {
      encoder: inlineEncoder(source, scratch + CAPTURE_SCRATCH_BYTES),
      origin: 'automatic',
      bytesPerSecond: parts.snapshotBytesPerSecond,
      isHurried: () => isSnapshotHurried(memory),
      ...(previous ? { previous } : {}),
    }
    follow(
      writeSnapshotDirSteps(env, dataDir, source, options),
      (written) => {
        if (written) previous = { ...written.previous, epoch: point.epoch }
        end(written ? '' : NO_COPIES)
      },
      (error) => {
        if (!isDiskFull(error)) throw error
        end('the disk is full')
      },
    )
  }
  return {
    memory,
    apply: (index, bytes, start, end) => applyCommand(context, index, bytes, start, end),
    publish: (index) => publish(store, index),
    digestMarks: () => marks,
    newestMark: () => context.newestMark,
    digest: () => stateDigest(memory),
    lastMaintenanceDay: () => state(memory, STATE.lastMaintenanceDay),
    latestTimeMs: () => latestTime(memory),
    packagesBefore: (day) => packagesBefore(memory, day),
    isUnordered: () => unorderedTables(memory).length > 0,
    orderTables: () => orderTables(memory),
    sweep: () => sweepOne(store),
    featureLevel: () => featureLevel(memory),
    indexBase: () => indexBase(memory),
    hasDeleted: () => hasDeleted(store),
    prepareDeletes: () => sumSegments(store, SUMMED_ROWS),
    budgetUse: () => budgetUse(store),
    stays: staysOf(store),
    lacksSparePages: () => lacksSparePages(store),
    hurrySnapshot: () => hurrySnapshot(store),
    time: {
      dayAt: (timeMs) => dayAt(memory, timeMs),
      noteDay: () => undefined,
      effectsOf: (timeMs) => effectsOfSetTime(memory, timeMs),
      lastSet: () => lastSetTime(memory),
    },
    value: (register) => packageIn(memory, register),
    mark(index) {
      marks.push({ index, ...stateDigest(memory) })
      if (marks.length > MARKS_MAX) marks.shift()
    },
    takeSnapshot(index, term, configuration, ended) {
      const voters = configuration.members.filter(({ id }) => configuration.voters.includes(id))
      const point: CapturePoint = {
        epoch: beginCopyOnWrite(store),
        index,
        term,
        shardId,
        voters: voters.map((member) => member.node),
        membership: configuration,
        recordsStart: store.writer.recordsStart,
        recordsEnd: store.writer.gap.low,
      }
      later('snapshot', () => write(point, ended))
    },
    backUp: (index, term) => (store.writer.copyOnWrite ? undefined : seedOf(store, index, term)?.file),
    retain: (pinned) => void retainSnapshots(disk, dataDir, pinned),
    exchange: (ask, done) =>
      later('exchange', () => {
        const answer = runExchange(exchanger, ask)
        if (answer.state === 'current') previous = undefined
        done(answer)
      }),
    prepareSwitch(path) {
      const reader = readFolder(path)
      if (typeof reader === 'string') return reader
      prepared = reader
      return ''
    },
    switchState(_offer, done) {
      assert(prepared !== undefined, 'the new state was prepared')
      const reader = prepared
      prepared = undefined
      const switched = () => {
        onTakenOver(node, reader.manifest)
        done()
      }
      replaceStore(env, store, reader, decoder, onReplaced(switched))
    },
    exhaust(takes) {
      const { planes, gap } = store.writer
      for (const { start, bytes } of taken.splice(0).reverse()) release(planes, start, bytes)
      while (takes && gap.high - gap.low >= BLOCK_GRAIN) {
        const bytes = (gap.high - gap.low) & ~(BLOCK_GRAIN - 1)
        taken.push({ start: allocate(planes, bytes), bytes })
      }
    },
    bulkData: {
      check(path) {
        const reader = readFolder(path)
        return typeof reader === 'string' ? reader : ''
      },
      replace(path, digest, done) {
        const reader = readFolder(path)
        if (typeof reader === 'string') return parts.onFatal(reader)
        const placed = () => {
          context.loaded = digest
          done()
        }
        replaceData(env, store, reader, decoder, onReplaced(placed))
      },
    },
  }
}

const MARKS_MAX = 64
const BLOCK_GRAIN = 16
const SUMMED_ROWS = 16
const NO_COPIES = 'no memory was left for copies of changed pages'

function packageIn(memory: Memory, register: number): number {
  const { id, room, day } = placeOf(register)
  const night = readNight({ memory, reader: READER }, id, findName(memory, NAMES.roomType, room, 0, room.length), day)
  assert(night !== 'changing', 'no writes run while a register is read')
  return typeof night === 'string' ? -1 : night.availability
}
