/** What every log entry does besides its command: outcome, shard time, request keys, digest marks and their checks. */
import { formatDay } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import { forgetGenesis } from '../snapshot/restore.ts'
import { TODAY } from '../testing/model.ts'
import { ask, createNodeInMemory, type LooseFields, restartEmpty } from '../testing/node-in-memory.ts'
import { plainPutWord } from '../testing/search-reference.ts'
import { applyCommand, recountDigest } from './apply.ts'
import { createApplyContext, type DigestMark } from './apply-context.ts'
import {
  beginCommand,
  type CommandKind,
  type CommandWriter,
  createCommandWriter,
  KIND,
  OUTCOME,
  stampCommand,
  writeBytes,
  writeF64,
  writeName,
  writeU8,
  writeU32,
} from './command.ts'
import { dayAt } from './day.ts'
import { STATE } from './layout.ts'
import { unorderedTables } from './row-order.ts'
import { encodeSetting, settingFault, staySettings } from './stay-settings.ts'
import {
  appliedIndex,
  countsOf,
  type Digest,
  FEATURE_LEVEL,
  featureLevel,
  INDEX_LEVEL,
  latestTime,
  publish,
  setState,
  state,
  stateDigest,
} from './store.ts'

const DAY_MS = 86_400_000
const NOW_MS = TODAY * DAY_MS + 3_600_000
const PLACE = { segment: 's', area: 'a', propertyType: 't', category: 'c', stars: 1, latitude: 1, longitude: 1 }
const NIGHT = { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 1) }
const nothing = () => undefined

const node = createNodeInMemory(TODAY, 48 << 20)
const { store } = node
const { memory } = store
let context: ReturnType<typeof createApplyContext>
let mismatches: { index: number; expected: Digest; own: Digest }[]

beforeEach(() => {
  restartEmpty(node, TODAY)
  setState(store, STATE.sessionBytesMax, 1 << 20)
  mismatches = []
  const note = (index: number, expected: Digest, own: Digest) => mismatches.push({ index, expected, own })
  context = createApplyContext(store, plainPutWord(memory), note)
  Object.assign(node, { context })
})

type Entry = { index?: number; timeMs?: number; day?: number; session?: number; number?: number }

/** Applies one entry, after one byte of another. @returns a copy of the outcome */
function apply(kind: CommandKind, body: (writer: CommandWriter) => void, entry: Entry = {}) {
  const { index = node.index + 1, timeMs = NOW_MS, day = TODAY, session, number = 1 } = entry
  const writer = createCommandWriter()
  writeU8(writer, 255)
  const key = new Uint8Array(24).fill(session ?? 0, 0, 16)
  new DataView(key.buffer).setBigUint64(16, BigInt(number), true)
  beginCommand(writer, kind, session === undefined ? undefined : key)
  body(writer)
  const bytes = writer.bytes.slice(0, writer.at)
  stampCommand(new DataView(bytes.buffer), 1, timeMs, day)
  node.index = index
  return { ...applyCommand(context, index, bytes, 1, bytes.length) }
}
const level = (to: number, entry: Entry = {}) => apply(KIND.featureLevel, (writer) => writeU32(writer, to), entry)
const idle = (entry: Entry) => apply(KIND.expireHolds, nothing, entry)
const drop = (day: number, reason: number, entry: Entry = {}) =>
  apply(
    KIND.dropBefore,
    (writer) => {
      writeU32(writer, day)
      writeU8(writer, reason)
    },
    entry,
  )
const genesis = (words: readonly number[], entry: Entry = {}) =>
  apply(
    KIND.genesis,
    (writer) => {
      for (const word of words) writeU32(writer, word)
    },
    entry,
  )
const check = (index: number, { lo, hi }: Digest, entry: Entry = {}) =>
  apply(
    KIND.digestCheck,
    (writer) => {
      writeF64(writer, index)
      writeU32(writer, lo)
      writeU32(writer, hi)
    },
    entry,
  )
const budget = (bytes: number) => apply(KIND.memoryBudget, (writer) => writeF64(writer, bytes))
const marked = () => context.marks.map(({ index }) => index)
const property = (fields: LooseFields = {}) =>
  ask(node, 'SETPROP', { ...PLACE, propertyId: 'p', amenities: [], ...fields })

describe('digest marks', () => {
  test.each([0, 1, 2, 3])('of level 1 begin with the genesis, of which word %i may be the only one', (word) => {
    level(1)
    idle({ index: 4096 })
    check(0, { lo: 0, hi: 0 }, { index: 5000 })
    expect([context.marks, context.newestMark]).toEqual([[], undefined])
    const words = [0, 0, 0, 0]
    words[word] = 7
    genesis(words)
    expect([0, 1, 2, 3].map((cell) => state(memory, STATE.genesis + cell))).toEqual(words)
    idle({ index: 8192 })
    expect(context.marks).toEqual([{ index: 8192, ...stateDigest(memory) }])
    expect(context.newestMark).toBe(undefined)
  })

  test('of level 1 are also left by a check of index 0, and that one is on all replicas', () => {
    level(1)
    genesis([1, 2, 3, 4])
    const before = stateDigest(memory)
    check(0, { lo: 5, hi: 5 }, { index: 77, timeMs: NOW_MS + 9_000 })
    expect(context.newestMark).toEqual({ index: 77, ...before })
    expect(context.marks).toEqual([{ index: 77, ...before }])
    // A check changes nothing, not even shard time.
    expect([latestTime(memory), stateDigest(memory)]).toEqual([NOW_MS, before])
    check(77, before, { index: 78 })
    expect([context.agreedIndex, context.marks, mismatches]).toEqual([77, [], []])
  })
})

describe('a digest check', () => {
  const marksAt = () => {
    for (const index of [4096, 8192, 12_288]) idle({ index, timeMs: NOW_MS + index })
    return context.marks.map((mark) => ({ ...mark }))
  }

  test('with the own digest is agreed, and forgets marks up to its index', () => {
    const [, second, third] = marksAt()
    check(8192, second as DigestMark, { index: 12_300 })
    expect([context.agreedIndex, context.marks, mismatches]).toEqual([8192, [third], []])
  })

  test.each([
    ['low', { lo: 1, hi: 0 }],
    ['high', { lo: 0, hi: 1 }],
  ])('with another %s half is reported with both digests', (_, delta) => {
    const [first, second] = marksAt() as [DigestMark, DigestMark]
    const expected = { lo: (first.lo + delta.lo) >>> 0, hi: (first.hi + delta.hi) >>> 0 }
    check(4096, expected, { index: 12_300 })
    expect(mismatches).toEqual([{ index: 4096, expected, own: first }])
    expect([context.agreedIndex, context.marks[0]]).toEqual([0, second])
  })

  test('of an index without a mark is skipped', () => {
    marksAt()
    check(8191, { lo: 1, hi: 2 }, { index: 12_300 })
    expect([context.agreedIndex, mismatches, marked()]).toEqual([0, [], [8192, 12_288]])
    check(20_000, { lo: 1, hi: 2 }, { index: 12_301 })
    expect([context.agreedIndex, mismatches, marked()]).toEqual([0, [], []])
  })
})

describe('a command with a request key', () => {
  test.each([
    [0, OUTCOME.refused],
    [1, OUTCOME.done],
  ])('that was refused is executed again from level 1 on: level %i', (at, code) => {
    if (at > 0) level(at)
    drop(TODAY, 0)
    const gap = { session: 1, timeMs: NOW_MS }
    expect(drop(TODAY + 5, 0, gap).code).toBe(OUTCOME.refused)
    expect(countsOf(memory).sessions).toBe(1)
    expect(recountDigest(memory).packages).toBe(0)
    drop(TODAY + 2, 0)
    expect(drop(TODAY + 5, 0, gap).code).toBe(code)
    expect(state(memory, STATE.droppedBefore)).toBe(code === OUTCOME.done ? TODAY + 5 : TODAY + 2)
  })
})

describe('settings in the log', () => {
  test.each([
    [0, 3],
    [1, 0],
  ])('lower the bytes of sessions, and evict from level 1 on: level %i', (at, sessions) => {
    if (at > 0) level(at)
    for (const session of [1, 2, 3]) idle({ session })
    apply(KIND.settings, (writer) => writeU32(writer, 60))
    expect([state(memory, STATE.sessionBytesMax), countsOf(memory).sessions]).toEqual([60, sessions])
  })

  test('evict sessions that do not fit the budget', () => {
    level(1)
    for (const session of [1, 2, 3]) idle({ session })
    const used = state(memory, STATE.sessionBytes)
    budget(8 * used)
    expect(countsOf(memory).sessions).toBe(3)
    budget(8 * used - 8)
    expect(countsOf(memory).sessions).toBe(2)
  })
})

test('settings of stays have defaults and bounds, both included', () => {
  expect(staySettings(memory)).toEqual({
    stays_bytes: 67_108_864,
    holds_max: 200_000,
    holds_max_per_source: 20_000,
    day_begins_minutes: 0,
  })
  for (const [name, min, max] of [
    ['stays_bytes', 1_048_576, 2_147_483_647],
    ['holds_max', 1, 10_000_000],
    ['holds_max_per_source', 1, 10_000_000],
    ['day_begins_minutes', -840, 1_200],
  ] as const) {
    expect([min, max].map((value) => settingFault(name, value))).toEqual(['', ''])
    for (const value of [min - 1, max + 1, min + 0.5]) {
      expect(settingFault(name, value)).toBe(`${name} must be ${min} to ${max}, got ${value}`)
    }
  }
  expect(settingFault('stays', 1)).toContain('unknown setting stays')
})

test.each([
  [480, -1],
  [-840, 0],
  [60, 0],
])('a day that begins %i minutes after midnight UTC: at 01:00 UTC it is the day %i', (minutes, days) => {
  const body = encodeSetting('day_begins_minutes', minutes)
  level(FEATURE_LEVEL)
  drop(TODAY, 1)
  apply(KIND.setting, (writer) => writeBytes(writer, body, 0, body.length))

  expect(staySettings(memory).day_begins_minutes).toBe(minutes)
  expect(dayAt(memory, NOW_MS)).toBe(TODAY + days)
  // The day is over again, and maintenance runs for it once more.
  expect(state(memory, STATE.lastMaintenanceDay)).toBe(TODAY + days)
  expect(state(memory, STATE.droppedBefore)).toBe(TODAY)
})

describe('the feature level', () => {
  test('is raised, and never lowered', () => {
    const levels = [0, 1, 1, 0, 2, 1, 3, 2, 3].map((to) => {
      level(to)
      return featureLevel(memory)
    })
    expect(levels).toEqual([0, 1, 1, 1, 2, 2, 3, 3, 3])
  })

  test('above that of the program ends it', () => {
    const next = FEATURE_LEVEL + 1
    const text = `feature level ${next} is newer than this program, which supports ${FEATURE_LEVEL}`
    expect(() => level(next)).toThrow(text)
    expect(featureLevel(memory)).toBe(0)
  })
})

describe('indexes that clients see', () => {
  test('begin at the time of the log in microseconds, and count on from there', () => {
    expect(level(FEATURE_LEVEL).index).toBe(NOW_MS * 1000)

    expect(idle({}).index).toBe(NOW_MS * 1000 + 1)
    publish(store, node.index)
    expect(appliedIndex(memory)).toBe(NOW_MS * 1000 + 1)
  })

  test('count on over a later step of the feature level', () => {
    level(INDEX_LEVEL)

    expect(level(FEATURE_LEVEL, { timeMs: NOW_MS + 1_000 }).index).toBe(NOW_MS * 1000 + 1)
  })

  test('are those of the log below feature level 5', () => {
    level(INDEX_LEVEL - 1)

    expect(idle({}).index).toBe(node.index)
  })

  test.each([
    ['later', 1_000, (NOW_MS + 1_000) * 1000],
    // Half of the greatest leap: the first random bit of the genesis is set.
    ['with the clock set back', -86_400_000, NOW_MS * 1000 + 4 + 2 ** 39],
  ])('of a life that is formed from these data %s are above all of this one', (_, laterMs, first) => {
    level(FEATURE_LEVEL)
    for (let n = 0; n < 3; n++) idle({})
    forgetGenesis(store)

    expect(genesis([2 ** 31, 0, 0, 1], { timeMs: NOW_MS + laterMs }).index).toBe(first)
    expect(idle({ timeMs: NOW_MS + laterMs }).index).toBe(first + 1)
  })
})

test('the recounted digest has every room and package of every segment', () => {
  for (const [n, segment] of ['s', 'x', 's'].entries()) {
    property({ propertyId: `p${n}`, segment })
    for (const roomType of ['double', 'suite'])
      ask(node, 'SETROOMPKG', { ...NIGHT, propertyId: `p${n}`, roomType, availability: n, finalPrice: 5 })
  }
  expect(recountDigest(memory)).toEqual({ digest: stateDigest(memory), properties: 3, packages: 6 })
})

test('a command of an unknown kind ends the program', () => {
  expect(() => apply(99 as CommandKind, nothing)).toThrow('command kind 99 is unknown to this version')
})

test.each([0, 1])('rows are sorted in one step; without a table nothing is sorted: level %i', (at) => {
  if (at > 0) level(at)
  for (const [n, segment] of ['s', 's', 'x', 'x'].entries())
    property({ propertyId: `p${n}`, segment, area: `a${9 - n}` })
  const order = (segment: string) =>
    apply(KIND.orderRows, (writer) => {
      writeName(writer, new TextEncoder().encode(segment), 0, 1)
      writeU8(writer, 1)
      writeU8(writer, 0)
    })
  const before = stateDigest(memory)
  expect(order('q').code).toBe(OUTCOME.done)
  expect(unorderedTables(memory).length).toBe(2)
  expect(order('s').code).toBe(OUTCOME.done)
  expect(unorderedTables(memory).length).toBe(1)
  if (at === 0) expect(stateDigest(memory)).toEqual(before)
  const { digest, properties } = recountDigest(memory)
  expect([digest, properties]).toEqual([stateDigest(memory), 4])
})
