/**
 * Indexes as clients see them: those of the log plus a base that is part of the state (docs/design/consensus.md#indexes).
 * A log begins at its time in microseconds. So an index of a former life of the data, from before a restore or an
 * import, is below the first one of this life, and none of the future is valid.
 */

import { STATE } from './layout.ts'
import { featureLevel, INDEX_LEVEL, indexBase, type Memory, type Store, setState, state } from './store.ts'

/** Greatest distance from the known indexes when the clock is behind them. */
const LEAP = 2 ** 40

/** The first index of this life; 0 for data whose indexes began below feature level 5. */
function firstIndex(memory: Memory): number {
  return state(memory, STATE.indexBeginHigh) * 2 ** 32 + state(memory, STATE.indexBeginLow)
}

/**
 * Begins the indexes of this life of the data with the present entry.
 *
 * @param index of the entry in the log
 * @param random 0 up to but not including 1. When the clock is behind the indexes of the data, it went back, and a
 * former life may have had any index from there on.
 * @returns the index of the entry for clients
 */
export function beginIndexes(store: Store, index: number, timeMs: number, random: number): number {
  const known = index + indexBase(store.memory)
  const now = timeMs * 1000
  const begin = now > known ? now : known + Math.floor(random * LEAP)
  setState(store, STATE.indexBaseLow, (begin - index) % 2 ** 32)
  setState(store, STATE.indexBaseHigh, Math.floor((begin - index) / 2 ** 32))
  setFirstIndex(store, begin)
  return begin
}

function setFirstIndex(store: Store, index: number): void {
  setState(store, STATE.indexBeginLow, index % 2 ** 32)
  setState(store, STATE.indexBeginHigh, Math.floor(index / 2 ** 32))
}

/** The former life has ended: no index is valid until this one begins. Its entries count on from there until then. */
export function endIndexes(store: Store): void {
  if (featureLevel(store.memory) >= INDEX_LEVEL) setFirstIndex(store, Number.MAX_SAFE_INTEGER)
}

/**
 * What is wrong with an index that a source names: it is below the first one of this life, or above all of them. 0
 * names no entry and is always of this life.
 *
 * @param next the index that the present entry has for clients
 */
export function foreignIndex(memory: Memory, index: number, next: number): '' | 'below' | 'above' {
  if (featureLevel(memory) < INDEX_LEVEL || index === 0) return ''
  if (index >= next) return 'above'
  return index < firstIndex(memory) ? 'below' : ''
}

/** The oldest index that a source may name. */
export function oldestIndex(memory: Memory, next: number): number {
  return Math.min(firstIndex(memory), next)
}
