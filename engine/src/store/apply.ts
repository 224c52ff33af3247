/**
 * Applies logged commands: the only place where state changes (docs/design/consensus.md#log-commands). Deterministic:
 * the result depends only on state and command. All checks precede the first change, and changes go through table.ts
 * and segment.ts, so an error means that nothing changed.
 */

import { assert, LIMITS } from '@vacancy/shared'
import { type Applied, type ApplyContext, type DigestMark, fail, keyOf, promiseMemory } from './apply-context.ts'
import { changeAvailability, deleteDay, deletePackage, setPackage } from './apply-packages.ts'
import { deleteProperty, deleteRoom, deleteSegment, propertyDigest, setProperty } from './apply-properties.ts'
import { confirmStay, countRefusal, keepLedger, releaseStay, takeStay } from './apply-stays.ts'
import { enterAsOf } from './as-of.ts'
import { worstCapacity } from './charge.ts'
import { beginIndexes } from './client-index.ts'
import { CONTENT_DIGEST_BYTES, KIND, OUTCOME, openCommand, readBytes, readF64, readU8, readU32 } from './command.ts'
import { nameHash, packageHash, roomHash } from './digest.ts'
import { capacityFor, PROPERTY, PROPERTY_TABLE, ROOMS, STATE, TABLE } from './layout.ts'
import { enterLevel1 } from './level.ts'
import { forEachNight, owePackage, packageOfNight } from './nights.ts'
import { nightsOfRow } from './planes.ts'
import { readTable, sortedRows, swapRows } from './row-order.ts'
import { forEachProperty, roomCount, roomEntry, segmentOf } from './segment.ts'
import { evictSessions, expireSessions, lookUpRequest, sessionOf, settleSession, storeResult } from './sessions.ts'
import { setTime } from './set-time.ts'
import { applySetting } from './stay-settings.ts'
import { clampSettled, relistSettled } from './stays.ts'
import {
  AS_OF_LEVEL,
  type Digest,
  digestOfWords,
  FEATURE_LEVEL,
  featureLevel,
  hasGenesis,
  INDEX_LEVEL,
  indexBase,
  LEDGER_LEVEL,
  latestTime,
  type Memory,
  STAYS_LEVEL,
  type Store,
  setState,
  state,
  stateDigest,
} from './store.ts'
import { rebuildBytes, rebuildTable } from './table.ts'
import { field, setField } from './table-fields.ts'
import { dropBefore } from './window.ts'

/** Interval in entries at which the leader logs its digest (docs/design/consensus.md#apply). */
const DIGEST_EVERY = 4_096

const MARKS_MAX = 64

const KEY_NUMBER_AT = 16

/** Applies one logged command at its index. */
export function applyCommand(
  context: ApplyContext,
  index: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): Applied {
  const { reader, applied, store } = context
  openCommand(reader, bytes, start, end)
  applied.code = OUTCOME.done
  applied.value = 0
  applied.index = index + indexBase(store.memory)
  applied.detail = ''
  applied.stay = 0
  // From feature level 1 on a check changes nothing, so that the digest of an idle shard is constant.
  if (reader.kind !== KIND.digestCheck || featureLevel(store.memory) < 1) {
    noteTime(store, reader.timeMs)
    expireSessions(store, reader.timeMs)
    if (featureLevel(store.memory) >= STAYS_LEVEL) keepLedger(context)
  }
  if (reader.key < 0) execute(context, index)
  else executeOnce(context, index)
  store.writer.promisedBytes = 0
  if (index % DIGEST_EVERY === 0) {
    const mark = noteMark(context, index)
    if (featureLevel(store.memory) < 1) context.newestMark = mark
  }
  return applied
}

/**
 * Nothing is noted before the random genesis: until then, below feature level 5, members that loaded the founding
 * snapshot of the shard from a peer have the genesis that the snapshot contains, and its founders have none.
 */
function noteMark({ marks, store }: ApplyContext, index: number): DigestMark | undefined {
  if (featureLevel(store.memory) >= 1 && !hasGenesis(store.memory)) return undefined
  const mark = { index, ...stateDigest(store.memory) }
  if (marks.at(-1)?.index !== index) marks.push(mark)
  if (marks.length > MARKS_MAX) marks.shift()
  return mark
}

function noteTime(store: Store, timeMs: number): void {
  if (timeMs === latestTime(store.memory)) return
  setState(store, STATE.timeLow, timeMs % 2 ** 32)
  setState(store, STATE.timeHigh, Math.floor(timeMs / 2 ** 32))
}

/** A command with a request key: executed on its first arrival, replied to from the session table afterwards. */
function executeOnce(context: ApplyContext, index: number): void {
  const { reader, applied, store } = context
  const { bytes, end, key, at, kind } = reader
  const number = Number(reader.view.getBigUint64(key + KEY_NUMBER_AT, true))
  const low = nameHash(0, bytes, at, end) ^ kind
  const high = nameHash(1, bytes, at, end) ^ kind
  const earlier = lookUpRequest(store, bytes, key, number, reader.timeMs, low, high)
  if (earlier.seen) {
    applied.code = earlier.code
    applied.value = earlier.value
    applied.index = earlier.index
    return
  }
  const { session: found } = earlier
  const moves = store.writer.sessionMoves
  execute(context, index)
  const session = moves === store.writer.sessionMoves ? found : sessionOf(store, bytes, key)
  // Nothing was done and the same request may succeed later, so a retry must be executed.
  const isRetryable = applied.code === OUTCOME.refused && featureLevel(store.memory) >= 1
  // Its session may be new, and counts.
  if (isRetryable) {
    settleSession(store, session)
    return evictSessions(store)
  }
  storeResult(store, session, number, applied.code, applied.value, applied.index, low, high)
}

function execute(context: ApplyContext, index: number): void {
  switch (context.reader.kind) {
    case KIND.setPackage:
    case KIND.setPackageAsOf:
      return setPackage(context)
    case KIND.setAvailabilityAsOf:
    case KIND.setAvailability:
    case KIND.increaseAvailability:
    case KIND.decreaseAvailability:
      return changeAvailability(context)
    case KIND.setProperty:
      return setProperty(context)
    case KIND.deletePackage:
      return deletePackage(context)
    case KIND.deleteDay:
      return deleteDay(context)
    case KIND.deleteRoom:
      return deleteRoom(context)
    case KIND.deleteProperty:
      return deleteProperty(context)
    case KIND.deleteSegment:
      return deleteSegment(context)
    case KIND.dropBefore: {
      const day = readU32(context.reader)
      const result = dropBefore(context.store, day, readU8(context.reader))
      if (result === 'gap-refused') context.applied.code = OUTCOME.refused
      return
    }
    case KIND.settings:
      setState(context.store, STATE.sessionBytesMax, readU32(context.reader))
      if (featureLevel(context.store.memory) >= 1) evictSessions(context.store)
      return
    case KIND.genesis:
      for (let cell = 0; cell < 4; cell++) setState(context.store, STATE.genesis + cell, readU32(context.reader))
      if (featureLevel(context.store.memory) >= INDEX_LEVEL) beginLife(context, index)
      return
    case KIND.digestCheck:
      return checkDigest(context, index)
    case KIND.orderRows:
      return orderRows(context)
    case KIND.swapRows:
      if (featureLevel(context.store.memory) < 1) return fail(context, OUTCOME.refused)
      return swapRows(context.store, context.reader)
    case KIND.bulkLoad:
      return takeLoad(context)
    case KIND.featureLevel:
      return raiseFeatureLevel(context, index)
    case KIND.memoryBudget:
      return setMemoryBudget(context)
    case KIND.setTime:
      return takeTime(context)
    case KIND.bookStay:
    case KIND.holdStay:
    case KIND.confirmStay:
    case KIND.releaseStay:
      return executeStay(context)
    case KIND.expireHolds:
      // What every entry does first is all of it.
      return
    case KIND.setting:
      return applySetting(context.store, context.reader)
    default:
      assert(false, `command kind ${context.reader.kind} is unknown to this version`)
  }
}

/**
 * The data begin another life: a shard was formed from them, or they come from a program that told no life from
 * another. The random bits are those of the genesis.
 */
function beginLife(context: ApplyContext, index: number): void {
  const { store, applied, reader } = context
  const random = state(store.memory, STATE.genesis) / 2 ** 32
  applied.index = beginIndexes(store, index, reader.timeMs, random)
}

function executeStay(context: ApplyContext): void {
  const { kind } = context.reader
  const { index } = context.applied
  assert(featureLevel(context.store.memory) >= STAYS_LEVEL, 'stays are logged from their feature level on')
  if (kind === KIND.confirmStay) confirmStay(context, index)
  else if (kind === KIND.releaseStay) releaseStay(context, index)
  else takeStay(context, index)
  countRefusal(context)
}

/** Sets the smallest memory budget of the voters. Above it growth is refused; existing data stays. */
function setMemoryBudget({ reader, store }: ApplyContext): void {
  const bytes = readF64(reader)
  setState(store, STATE.memoryBudgetLow, bytes % 2 ** 32)
  setState(store, STATE.memoryBudgetHigh, Math.floor(bytes / 2 ** 32))
  // A part of it is for sessions: a snapshot of this state must fit them all.
  evictSessions(store)
}

/** The level never decreases. A level unknown to this program fails `execute` on the first newer command. */
function raiseFeatureLevel(context: ApplyContext, index: number): void {
  const { store } = context
  const level = readU32(context.reader)
  if (level <= featureLevel(store.memory)) return
  assert(level <= FEATURE_LEVEL, `feature level ${level} is newer than this program, which supports ${FEATURE_LEVEL}`)
  if (featureLevel(store.memory) < 1) enterLevel1(store)
  // Levels 2 and 3 add commands and change no rule of earlier ones.
  if (level >= INDEX_LEVEL && featureLevel(store.memory) < INDEX_LEVEL) beginLife(context, index)
  if (level >= AS_OF_LEVEL) enterAsOf(store, context.applied.index)
  if (level >= LEDGER_LEVEL && featureLevel(store.memory) < LEDGER_LEVEL) {
    relistSettled(store, () => setState(store, STATE.featureLevel, level))
    clampSettled(store, context.reader.timeMs)
    oweMissing(store)
  }
  setState(store, STATE.featureLevel, level)
}

/** From feature level 4 on, rooms on hold are missing where there is no package. */
function oweMissing(store: Store): void {
  const nights: number[] = []
  forEachNight(store.memory, (night) => nights.push(night))
  for (const night of nights) if (!packageOfNight(store, night)) owePackage(store, night)
}

/** The only command that may set shard time back. Its own timestamp is the time before it. */
function takeTime(context: ApplyContext): void {
  const { store, reader } = context
  const timeMs = readF64(reader)
  if (featureLevel(store.memory) < 1) return fail(context, OUTCOME.refused)
  setTime(store, context.applied.index, reader.timeMs, timeMs)
  noteTime(store, timeMs)
}

/**
 * Replaces the store's data with that of a snapshot, as one step at one index. The chunks may have to be fetched
 * first, so the driver has already done it between the previous entry and this one (`replaceData`). Sessions, members
 * and the day of maintenance stay.
 */
function takeLoad(context: ApplyContext): void {
  const { reader } = context
  const start = readBytes(reader, CONTENT_DIGEST_BYTES)
  let digest = ''
  for (let i = start; i < reader.at; i++) digest += reader.bytes[i].toString(16).padStart(2, '0')
  assert(context.loaded === digest, 'the data is replaced before its load entry is applied')
  context.loaded = ''
}

/** Sorts the rows of one table in one step: below feature level 1, and in logs from before `swapRows`. */
function orderRows(context: ApplyContext): void {
  const { reader, store } = context
  const { memory } = store
  const table = readTable(memory, reader)
  if (table === 0) return
  const live = field(memory, table + TABLE.liveRows)
  const isMeasured = featureLevel(memory) >= 1
  const capacity = isMeasured ? worstCapacity(live) : capacityFor(live)
  // The table stays unsorted, which only makes searches slower.
  if (!isMeasured && !promiseMemory(store, rebuildBytes(memory, table, capacity))) return fail(context, OUTCOME.refused)
  rebuildTable(store, table, sortedRows(memory, table), capacity)
  setField(store, table + TABLE.unordered, 0)
}

// Checks

/**
 * Compares a logged digest with this replica's own at the same index. A replica without one, after a start, skips the
 * comparison. A check for index 0 makes every replica record its digest at this entry (feature level 1).
 */
function checkDigest(context: ApplyContext, at: number): void {
  const { reader, marks, store } = context
  const index = readF64(reader)
  if (index === 0 && featureLevel(store.memory) >= 1) {
    context.newestMark = noteMark(context, at)
    return
  }
  const expected: Digest = { lo: readU32(reader), hi: readU32(reader) }
  const own = marks.find((mark) => mark.index === index)
  while (marks.length > 0 && (marks[0]?.index as number) <= index) marks.shift()
  if (!own) return
  if (expected.lo !== own.lo || expected.hi !== own.hi) context.onDigestMismatch(index, expected, own)
  else context.agreedIndex = index
}

/** The digest computed from every record except request keys. The maintained sum must equal it. For tests. */
export function recountDigest(memory: Memory): { digest: Digest; packages: number; properties: number } {
  let { lo, hi } = digestOfWords(memory)
  let packages = 0
  let properties = 0
  const capacity = state(memory, STATE.segmentCapacity)
  for (let name = 0; name < capacity; name++) {
    const segment = segmentOf(memory, name)
    if (segment === 0) continue
    forEachProperty(memory, segment, (property) => {
      properties++
      lo = (lo + propertyDigest(memory, property, 0)) >>> 0
      hi = (hi + propertyDigest(memory, property, 1)) >>> 0
      const rooms = roomCount(memory, property)
      for (let n = 0; n < rooms; n++) {
        const entry = roomEntry(memory, property, n)
        const roomType = field(memory, entry + ROOMS.roomType)
        const low = keyOf(memory, property, roomType, 0)
        const high = keyOf(memory, property, roomType, 1)
        lo = (lo + roomHash(0, low)) >>> 0
        hi = (hi + roomHash(1, high)) >>> 0
        for (const found of nightsOfRow(memory, field(memory, entry + ROOMS.table), field(memory, entry + ROOMS.row))) {
          packages++
          lo = (lo + packageHash(0, low, found.day, found.lo, found.hi)) >>> 0
          hi = (hi + packageHash(1, high, found.day, found.lo, found.hi)) >>> 0
        }
      }
    })
  }
  return { digest: { lo, hi }, packages, properties }
}

assert(PROPERTY.id === 0, 'a property starts with its id')

assert(PROPERTY_TABLE > LIMITS.roomTypesPerPropertyMax, 'no room type has the number of the property table')
