/**
 * Replaces the state of a running node with that of a snapshot, in the same memory (docs/design/storage.md#transfer,
 * docs/design/consensus.md#log-commands): readers leave, everything is cleared, the snapshot is loaded as at startup,
 * and readers may enter again.
 *
 * The state is replaced in place because a node with a full shard has no memory for two states, and because then no
 * thread needs another memory. Steps that can fail come first: chunks are verified on arrival, and `lackingBytes` and
 * `openSnapshot` are checked before the log restarts. A later failure ends the process, and its next start loads the
 * same snapshot from disk.
 */

import { assert, VacancyError } from '@vacancy/shared'
import type { Disk, Env } from '../env.ts'
import { allocate, release } from '../store/arena.ts'
import {
  capacityFor,
  LEAF_BYTES,
  PROPERTY,
  planeBytes,
  SESSION,
  STATE,
  STAY_NIGHT,
  STAY_PROPERTY,
  TABLE,
} from '../store/layout.ts'
import { stayBytes } from '../store/stays.ts'
import {
  clearStore,
  countsOf,
  type Memory,
  memoryReserve,
  prepareSnapshots,
  type Store,
  state,
} from '../store/store.ts'
import { areReadersOut, closeStore, openStore } from '../store/version.ts'
import type { LoadedLedger } from './ledger.ts'
import { decodePart, type SnapshotReader } from './load.ts'
import { finishStore, type KeptState, keptStateOf, prepareStore, putBackState } from './restore.ts'
import type { PlaneMap } from './schema.ts'
import { createWordsCoder, WORDS_SCRATCH_BYTES } from './words.ts'
import { closeWordsPool, createWordsPool, decodeAll, type WordsPool } from './words-pool.ts'

/** Polling interval for readers to leave; a search takes milliseconds. */
const READERS_LOOK_MS = 1

type DecodeJob = {
  readonly reader: SnapshotReader
  readonly memory: Memory
  readonly planeMap: PlaneMap
  /** An area of WORDS_SCRATCH_BYTES for each thread. */
  readonly scratch: readonly number[]
}

/** Decodes all words of a snapshot into planes of empty words, on as many threads as it has. */
export type Decoder = {
  readonly threads: number
  decode(job: DecodeJob, done: (error?: unknown) => void): void
}

/** On this thread, at once. */
export function inlineDecoder(disk: Disk): Decoder {
  return {
    threads: 1,
    decode({ reader, memory, planeMap, scratch }, done) {
      const { tables, properties, names, words, places, firstPlane } = reader
      const coder = createWordsCoder(memory.wasm, scratch[0], {
        tables,
        ids: properties.ids,
        roomTypes: names.roomTypes,
      })
      for (let part = 0; part < words.parts.length; part++) {
        decodePart(disk, { words, form: places.form, firstPlane }, coder, planeMap, part)
      }
      done()
    },
  }
}

function pooledDecoder(pool: WordsPool): Decoder {
  return {
    threads: pool.threads,
    decode({ reader, memory, planeMap, scratch }, done) {
      decodeAll(pool, reader, memory.wasm, planeMap, scratch).then(() => done(), done)
    },
  }
}

/** So many are decoded sooner than a thread starts. */
const INLINE_PACKAGES_MAX = 2_000_000

export type OpenDecoder = Decoder & { close(): void | Promise<void> }

/** For a snapshot of so many packages. */
export function openDecoder(disk: Disk, threads: number, packages: number): OpenDecoder {
  if (packages <= INLINE_PACKAGES_MAX) return { ...inlineDecoder(disk), close: () => undefined }
  const pool = createWordsPool(threads)
  return { ...pooledDecoder(pool), close: () => closeWordsPool(pool) }
}

function ledgerBytes({ stays, nights }: LoadedLedger): number {
  let bytes = nights.length * STAY_NIGHT.bytes
  for (const { lines, replaced } of stays) {
    bytes += stayBytes(lines.length, replaced?.lines.length) + lines.length * STAY_PROPERTY.bytes
  }
  return bytes
}

/** Bytes that a store needs for a snapshot: planes and rows exactly, lists approximately, without bitmaps. */
export function loadedBytes({ properties, tables, names, sessions, stays, manifest }: SnapshotReader): number {
  let bytes = sessions.length + manifest.sessions * SESSION.bytes + ledgerBytes(stays)
  for (const { rows, days } of tables) {
    const capacity = capacityFor(rows.length)
    bytes += TABLE.bytes + capacity * 20 + days.length * planeBytes(capacity) + Math.ceil(days.length / 32) * LEAF_BYTES
  }
  // Index by id at most half full, a row of the property table, room types and amenities as lists.
  bytes += properties.count * (PROPERTY.bytes + 16 + 20)
  bytes += properties.rooms.length * 12 + properties.amenities.length * 4
  for (const list of Object.values(names)) bytes += list.length * 64
  return bytes
}

/**
 * Bytes by which a store's memory is too small for a snapshot; 0 when it fits.
 *
 * @param kept bytes that must stay free. The reserve below which a node refuses writes covers what the estimate leaves
 *   out. The state of a shard that is almost full may only fit with it.
 */
export function lackingBytes(
  store: Store,
  reader: SnapshotReader,
  decoders: number,
  kept = memoryReserve(store.memory),
): number {
  return Math.max(0, loadedBytes(reader) + decoders * WORDS_SCRATCH_BYTES + kept - roomOf(store))
}

function roomOf({ writer: { records, planes } }: Store): number {
  return planes.origin - records.origin
}

/**
 * Why a snapshot does not fit the memory of a store; undefined when it does.
 *
 * @param memoryBytes the setting, memory_max_bytes
 * @param kept as of `lackingBytes`
 */
export function memoryTooSmall(
  store: Store,
  reader: SnapshotReader,
  decoders: number,
  memoryBytes: number,
  kept = memoryReserve(store.memory),
): VacancyError | undefined {
  const lacking = lackingBytes(store, reader, decoders, kept)
  if (lacking === 0) return undefined
  const room = roomOf(store) - kept
  const { index, packages } = reader.manifest
  return new VacancyError('memory_too_small', {
    index,
    packages,
    needed: Math.ceil(lacking + room),
    room,
    memory: memoryBytes,
  })
}

/**
 * Replaces the state of a store. Until `done`, the store must not be written to, and no snapshot of it may be in
 * progress.
 *
 * @param done called with the error, if any; the store is then unusable and the process ends
 */
export function replaceStore(
  env: Pick<Env, 'schedule'>,
  store: Store,
  reader: SnapshotReader,
  decoder: Decoder,
  done: (error?: unknown) => void,
): void {
  replace(env, store, reader, decoder, undefined, done)
}

/**
 * Replaces the data of a store, and keeps sessions, settings and the day of maintenance: the effect of a bulk load
 * (docs/design/consensus.md#log-commands), executed before its entry is applied.
 */
export function replaceData(
  env: Pick<Env, 'schedule'>,
  store: Store,
  reader: SnapshotReader,
  decoder: Decoder,
  done: (error?: unknown) => void,
): void {
  replace(env, store, reader, decoder, keptStateOf(store), done)
}

function replace(
  { schedule }: Pick<Env, 'schedule'>,
  store: Store,
  reader: SnapshotReader,
  decoder: Decoder,
  kept: KeptState | undefined,
  done: (error?: unknown) => void,
): void {
  closeStore(store)
  const guarded = (step: () => void) => {
    try {
      step()
    } catch (error) {
      done(error)
    }
  }
  const waitForReaders = () => {
    if (!areReadersOut(store)) schedule.after(READERS_LOOK_MS, waitForReaders)
    else guarded(() => load(store, reader, decoder, kept, guarded, done))
  }
  waitForReaders()
}

function load(
  store: Store,
  reader: SnapshotReader,
  decoder: Decoder,
  kept: KeptState | undefined,
  guarded: (step: () => void) => void,
  done: (error?: unknown) => void,
): void {
  clearStore(store)
  // Except the scratch areas of the readers, which hold unsent replies.
  const scratch = Array.from({ length: decoder.threads }, () => allocate(store.writer.planes, WORDS_SCRATCH_BYTES))
  assert(!scratch.includes(0), 'there was room for the snapshot and for decoding it')
  const { memory } = store
  const prepared = prepareStore(store, reader.names, reader.properties, reader.tables)
  decoder.decode({ reader, memory, planeMap: prepared.planeMap, scratch }, (error) => {
    if (error !== undefined) return done(error)
    guarded(() => {
      for (const address of scratch) release(store.writer.planes, address, WORDS_SCRATCH_BYTES)
      const { manifest, sessions, settings, replicated, stays } = reader
      const { lastMaintenanceDay, digest } = manifest
      finishStore(store, prepared, { sessions, settings, replicated, stays, lastMaintenanceDay, digest })
      expectWhole(store, reader)
      if (kept) putBackState(store, kept)
      prepareSnapshots(store)
      openStore(store)
      done()
    })
  })
}

/** Compares the loaded state with the manifest. The digests of the words were compared when they were decoded. */
function expectWhole({ memory }: Store, { manifest }: SnapshotReader): void {
  const { properties, packages, sessions } = countsOf(memory)
  assert(properties === manifest.properties, 'all properties were loaded')
  assert(packages === manifest.packages, 'all packages were loaded')
  assert(sessions === manifest.sessions, 'all sessions were loaded')
  assert(state(memory, STATE.lastMaintenanceDay) === manifest.lastMaintenanceDay, 'the day of maintenance was loaded')
}
