/** How many threads read the store, and the scratch memory of each. Pure. */
import { VacancyError } from '@vacancy/shared'
import { type EngineSettings, memoryBytes, servingThreads } from './config.ts'
import { COUNTS_BYTES_MOST } from './search/facets.ts'
import { valuesBytes } from './search/page.ts'
import { ENTRY, hitBytes } from './search/parameters.ts'
import { CAPTURE_SCRATCH_BYTES } from './snapshot/capture.ts'
import { WORDS_SCRATCH_BYTES } from './snapshot/words.ts'
import { SLAB_BYTES_MIN, SLABS, slabAreaBytes } from './tcp/slabs.ts'

/** Reader 1 belongs to the bulk thread. */
export const FIRST_SERVING_READER = 2
/** Upper bound of the scratch areas of all readers of a node; more slabs are not reserved. */
const SLAB_AREA_BYTES_MAX = 64 << 20
/** As many as may serve (`serving_threads`): more do not read a disk any faster. */
const LOAD_THREADS_MAX = 64
/** What a page needs for each hit beside it, and once: entry and values; room types, cursor, collected matches. */
const ENTRY_BYTES_MOST = ENTRY.bytes + valuesBytes(15)
const PAGE_ROOM_BYTES = (1 << 17) + COUNTS_BYTES_MOST
/** Least memory for data, as a multiple of the scratch areas in it. */
const SCRATCH_ROOM = 1.25

export type ThreadPlan = {
  readonly readers: number
  /** Threads that load a snapshot. */
  readonly loadThreads: number
  /** Of one reply. */
  readonly slabBytes: number
  readonly slabs: number
  /** Of one reader. */
  readonly scratchBytes: number
}

/**
 * Plans the threads that read the store and their scratch areas. A snapshot is loaded by as many threads as there are
 * cores, but by no more than may serve and no more than the memory has room for: each takes some of it permanently.
 *
 * @throws invalid_config when no memory would be left for data
 */
export function planThreads(settings: EngineSettings, cores: number): ThreadPlan {
  const threads = servingThreads(settings, cores)
  const least = (CAPTURE_SCRATCH_BYTES + WORDS_SCRATCH_BYTES) * SCRATCH_ROOM
  const fitting = Math.floor(memoryBytes(settings) / least) - FIRST_SERVING_READER
  const loadThreads = Math.max(1, threads, Math.min(cores, LOAD_THREADS_MAX, fitting))
  const readers = FIRST_SERVING_READER + loadThreads
  return { readers, loadThreads: Math.min(loadThreads, cores), ...scratchPlan(settings, readers) }
}

/**
 * The scratch area of a reader: slabs for the largest reply that the configuration allows, as many as the memory has
 * room for. Writing and loading snapshots use such areas, too.
 *
 * @throws invalid_config when no memory would be left for data
 */
function scratchPlan(
  settings: EngineSettings,
  readers: number,
): Pick<ThreadPlan, 'slabBytes' | 'slabs' | 'scratchBytes'> {
  const memory = memoryBytes(settings)
  const largest = PAGE_ROOM_BYTES + settings.queryLimit * (hitBytes(settings.maxDatesInQuery) + ENTRY_BYTES_MOST)
  const slabBytes = Math.max(SLAB_BYTES_MIN, Math.ceil(largest / 8192) * 8192)
  const budget = Math.min(SLAB_AREA_BYTES_MAX, memory / 4 / readers)
  const slabs = Math.max(2, Math.min(SLABS, Math.floor(budget / slabBytes) - 1))
  const slabArea = 16_384 + slabAreaBytes(slabBytes, slabs)
  const scratchBytes = Math.max(slabArea, CAPTURE_SCRATCH_BYTES + WORDS_SCRATCH_BYTES)
  const least = Math.ceil(readers * scratchBytes * SCRATCH_ROOM)
  if (memory < least) {
    throw new VacancyError('invalid_config', {
      reason:
        `memory_max_bytes: ${memory} is too little for ${readers} threads that need ${scratchBytes} each: give ${least}` +
        ' or more, or lower query_limit, max_dates_in_query or serving_threads',
    })
  }
  return { slabBytes, slabs, scratchBytes }
}
