/**
 * The product's store as the state machine of a simulated node, with the product's snapshots on the simulated disk:
 * applied by store/apply.ts, captured at an epoch while writes go on, written, offered, received and loaded by snapshot/.
 *
 * The log holds the commands of the workload, which name a register. Each is a package of its own: a property, a room
 * type and a night; what is applied is the product's command for that package, with the same header and request key.
 */

import { assert, dayOf } from '@vacancy/shared'
import { isDiskFull } from '../env.ts'
import { viewOf } from '../raft/entry.ts'
import { CAPTURE_SCRATCH_BYTES, type CapturePoint, captureStore } from '../snapshot/capture.ts'
import { createExchanger, runExchange } from '../snapshot/exchange.ts'
import { openSnapshot, readSnapshotDir, type SnapshotReader } from '../snapshot/load.ts'
import { inlineDecoder, lackingBytes, replaceStore } from '../snapshot/replace.ts'
import { findSnapshots, makeDurable, retainSnapshots } from '../snapshot/snapshot.ts'
import { WORDS_SCRATCH_BYTES } from '../snapshot/words.ts'
import { chunksFolder, inlineEncoder, type PreviousSnapshot, writeSnapshotDirAtOnce } from '../snapshot/write.ts'
import { type ApplyContext, applyCommand, createApplyContext, latestTime } from '../store/apply.ts'
import {
  beginCommand,
  COMMAND_HEADER_BYTES,
  type CommandWriter,
  createCommandWriter,
  GIVEN,
  KIND,
  kindOfCommand,
  OUTCOME,
  stampCommand,
  timeOfCommand,
  writeBytes,
  writeF64,
  writeName,
  writeU8,
  writeU32,
} from '../store/command.ts'
import { beginCopyOnWrite, endCopyOnWrite } from '../store/cow.ts'
import { findName, NAMES } from '../store/dictionary.ts'
import { STATE } from '../store/layout.ts'
import { readNight } from '../store/read.ts'
import {
  clearStore,
  createStore,
  prepareSnapshots,
  publish,
  type Store,
  scratchOf,
  setState,
  state,
  stateDigest,
} from '../store/store.ts'
import type { PutWord } from '../store/table.ts'
import { openStore } from '../store/version.ts'
import { packagesBefore, sweepOne } from '../store/window.ts'
import { loadKernels } from '../threads/kernels.ts'
import { EPOCH_MS } from './clocks.ts'
import type { Machine, MachineParts, Reference } from './machine.ts'
import { violate } from './oracles.ts'
import { toyCommandAt } from './toy-machine.ts'

const MEMORY_BYTES = 64 << 20
const READER = 0
const BULK_READER = 1
const SESSION_BYTES = 1 << 20
const PROPERTIES = 4
const ROOM_TYPES = 4
/** Far enough ahead that no clock of these runs makes it the past, within the year that can be sold. */
const FIRST_NIGHT = dayOf(EPOCH_MS) + 300

type Used = { readonly store: Store; readonly put: PutWord }

/**
 * Stores by the number of the node, used again by its next process and by the next run: they are cleared as for a
 * snapshot. Runs follow one another in a process, never side by side.
 */
const stores: (Used | undefined)[] = []

function takeStore(number: number): Used {
  let used = stores[number]
  // What a defect left in the middle of a change is not to be used again.
  if (used && used.store.writer.marks.size === 0) {
    if (used.store.writer.copyOnWrite) endCopyOnWrite(used.store)
    clearStore(used.store)
    openStore(used.store)
    setState(used.store, STATE.sessionBytesMax, SESSION_BYTES)
  } else {
    const store = createStore({
      memoryBytes: MEMORY_BYTES,
      readers: 2,
      scratchBytes: CAPTURE_SCRATCH_BYTES + WORDS_SCRATCH_BYTES,
      sessionBytesMax: SESSION_BYTES,
    })
    used = { store, put: loadKernels(store.memory).put }
    stores[number] = used
  }
  publish(used.store, 0)
  return used
}

const encoder = new TextEncoder()
const ROOM_NAMES = Array.from({ length: ROOM_TYPES }, (_, n) => encoder.encode(`room${n}`))
const PROPERTY_IDS = Array.from({ length: PROPERTIES }, (_, n) => new Uint8Array(16).fill(n + 1))

const placeOf = (register: number) => ({
  id: PROPERTY_IDS[register % PROPERTIES] as Uint8Array,
  room: ROOM_NAMES[(register >>> 2) % ROOM_TYPES] as Uint8Array,
  day: FIRST_NIGHT + (register >>> 4),
})

/** Applies what the log holds, as the product's commands. */
type Applier = { readonly context: ApplyContext; readonly writer: CommandWriter }

function createApplier({ store, put }: Used, parts: Partial<MachineParts>): Applier {
  const { onDigestMismatch, env } = parts
  const context = createApplyContext(store, put, (index) => onDigestMismatch?.(index), env?.defects)
  return { context, writer: createCommandWriter(256) }
}

function apply(applier: Applier, index: number, bytes: Uint8Array, start: number, end: number) {
  const { context, writer } = applier
  const view = viewOf(bytes)
  const command = toyCommandAt(bytes, start, end)
  if (!command) {
    const isFirst = kindOfCommand(view, start) === KIND.genesis && !hasGenesis(context.store)
    const applied = applyCommand(context, index, bytes, start, end)
    if (isFirst) createProperties(applier, index, timeOfCommand(view, start))
    return applied
  }
  const { kind, register, amount, body } = command
  const { id, room, day } = placeOf(register)
  writer.at = 0
  writeBytes(writer, bytes, start, body)
  // To set what may not be there yet is to put a package there.
  if (kind === KIND.setAvailability) viewOf(writer.bytes).setUint16(0, KIND.setPackage, true)
  writeBytes(writer, id, 0, 16)
  writeU32(writer, day)
  if (kind === KIND.setAvailability) {
    writeU8(writer, GIVEN.availability | GIVEN.price)
    writeU8(writer, amount)
    writeU32(writer, 100 + register)
    writeU32(writer, 0)
  } else if (kind !== KIND.deletePackage) writeU8(writer, amount)
  writeName(writer, room, 0, room.length)
  const applied = applyCommand(context, index, writer.bytes, 0, writer.at)
  // That command answers with no number, a register with what it holds now.
  if (kind === KIND.setAvailability && applied.code === OUTCOME.done) applied.value = amount
  return applied
}

function hasGenesis({ memory }: Store): boolean {
  return [0, 1, 2, 3].some((cell) => state(memory, STATE.genesis + cell) !== 0)
}

/** The packages need properties; they come with the first entry of the shard. */
function createProperties({ context, writer }: Applier, index: number, timeMs: number): void {
  for (const [n, id] of PROPERTY_IDS.entries()) {
    writer.at = 0
    beginCommand(writer, KIND.setProperty)
    stampCommand(writer.view, 0, timeMs, dayOf(timeMs))
    writeBytes(writer, id, 0, 16)
    writeU8(writer, 1 + n)
    writeF64(writer, 47 + n / 10)
    writeF64(writer, 8)
    for (const name of [`segment${n % 2}`, 'area', 'hotel', 'budget']) {
      const text = encoder.encode(name)
      writeName(writer, text, 0, text.length)
    }
    writeU8(writer, 0)
    const { code } = applyCommand(context, index, writer.bytes, 0, writer.at)
    assert(code === OUTCOME.done, 'a property can be set')
  }
}

function packageIn({ memory }: Store, register: number): number {
  const { id, room, day } = placeOf(register)
  const night = readNight({ memory, reader: READER }, id, findName(memory, NAMES.roomType, room, 0, room.length), day)
  assert(night !== 'changing', 'nobody writes while a register is read')
  return typeof night === 'string' ? -1 : night.availability
}

/** Of the oracles: whatever is planted in the nodes, it is as it should be. */
export function createStoreReference(): Reference {
  const used = takeStore(0)
  const applier = createApplier(used, {})
  return {
    apply: (index, bytes, start, end) => apply(applier, index, bytes, start, end),
    digest: () => stateDigest(used.store.memory),
    lastMaintenanceDay: () => state(used.store.memory, STATE.lastMaintenanceDay),
  }
}

export function createStoreNode(parts: MachineParts): Machine {
  const { env, dataDir, shardId, codecs } = parts
  const { disk } = env
  const used = takeStore(parts.node)
  const { store } = used
  const { memory } = store
  const applier = createApplier(used, parts)
  const { marks } = applier.context
  const exchanger = createExchanger(env, dataDir)
  const decoder = inlineDecoder(disk)
  let previous: (PreviousSnapshot & { readonly epoch: number }) | undefined
  let prepared: SnapshotReader | undefined
  const replace = (reader: SnapshotReader): void => {
    let isDone = false
    replaceStore(env, store, reader, decoder, (error) => {
      if (error) throw error
      isDone = true
    })
    assert(isDone, 'nobody reads while a state is replaced')
  }
  const write = (point: CapturePoint): string => {
    const scratch = scratchOf(memory, BULK_READER)
    const captured = captureStore(memory, point, codecs, scratch, previous)
    const written =
      captured &&
      writeSnapshotDirAtOnce(env, dataDir, captured.source, {
        encoder: inlineEncoder(captured.source, scratch + CAPTURE_SCRATCH_BYTES),
        origin: 'automatic',
        ...(previous ? { previous } : {}),
      })
    if (!written) return 'no memory was left for copies of changed pages'
    previous = { ...written.previous, epoch: point.epoch }
    return ''
  }
  prepareSnapshots(store)
  return {
    apply: (index, bytes, start, end) => apply(applier, index, bytes, start, end),
    publish: (index) => publish(store, index),
    digestMarks: () => marks,
    digest: () => stateDigest(memory),
    lastMaintenanceDay: () => state(memory, STATE.lastMaintenanceDay),
    latestTimeMs: () => latestTime(memory),
    packagesBefore: (day) => packagesBefore(memory, day),
    unorderedTables: () => [],
    sweep: () => sweepOne(store),
    value: (register) => packageIn(store, register),
    genesis() {
      const genesis = new Uint8Array(16)
      for (let cell = 0; cell < 4; cell++)
        viewOf(genesis).setUint32(cell * 4, state(memory, STATE.genesis + cell), true)
      return genesis
    },
    mark: (index) => void marks.push({ index, ...stateDigest(memory) }),
    load() {
      const [newest] = findSnapshots(disk, dataDir)
      if (!newest) return undefined
      // No fault of these runs touches snapshots, so what cannot be read was badly written.
      if (newest.state === 'refused') return violate('O10', `a snapshot is refused: ${newest.error.message}`)
      const reader = openSnapshot(disk, newest.head)
      makeDurable(disk, dataDir, newest.head)
      replace(reader)
      const { index, term, membership: configuration } = reader.manifest
      publish(store, index)
      return { index, term, configuration }
    },
    takeSnapshot(index, term, configuration, ended) {
      const voters = configuration.members.filter(({ id }) => configuration.voters.includes(id))
      const point: CapturePoint = {
        epoch: beginCopyOnWrite(store),
        index,
        term,
        shardId,
        voters: voters.map(({ node }) => node),
        membership: configuration,
        recordsStart: store.writer.recordsStart,
        recordsEnd: store.writer.gap.low,
        defects: env.defects,
      }
      // Writes go on meanwhile, on the same pages.
      parts.later('snapshot', () => {
        let reason: string
        try {
          reason = write(point)
        } catch (error) {
          if (!isDiskFull(error)) throw error
          reason = 'the disk is full'
        }
        if (store.writer.copyOnWrite) endCopyOnWrite(store)
        ended(reason)
      })
    },
    retain: (pinned) => void retainSnapshots(disk, dataDir, pinned),
    exchange: (ask, done) =>
      parts.later('exchange', () => {
        const answer = runExchange(exchanger, ask)
        if (answer.state === 'current') previous = undefined
        done(answer)
      }),
    prepareSwitch(path) {
      const reader = openSnapshot(disk, readSnapshotDir(disk, path, chunksFolder(dataDir)))
      if (lackingBytes(store, reader, decoder.threads) > 0) return 'its memory is too small'
      prepared = reader
      return ''
    },
    switchState(_offer, done) {
      assert(prepared !== undefined, 'what is switched to was prepared')
      replace(prepared)
      prepared = undefined
      previous = undefined
      marks.length = 0
      done()
    },
  }
}

assert(COMMAND_HEADER_BYTES === 15, 'the header of a command is what is copied')
