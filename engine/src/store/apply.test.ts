/** What every log entry does besides its command: outcome, shard time, request keys, digest marks and their checks. */
import { formatDay, packPropertyId } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import { TODAY } from '../testing/model.ts'
import {
  ask,
  createNodeInMemory,
  type LooseFields,
  raiseFeatureLevel,
  restartEmpty,
} from '../testing/node-in-memory.ts'
import { plainPutWord } from '../testing/search-reference.ts'
import { applyCommand, latestTime, recountDigest } from './apply.ts'
import { createApplyContext, type DigestMark } from './apply-context.ts'
import { knownFrom } from './as-of.ts'
import { memoryBudget } from './charge.ts'
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
import { STATE } from './layout.ts'
import { unorderedTables } from './row-order.ts'
import { encodeSetting, staySetting } from './stay-settings.ts'
import { countsOf, type Digest, featureLevel, setState, state, stateDigest } from './store.ts'

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
const level = (to: number) => apply(KIND.featureLevel, (writer) => writeU32(writer, to))
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
const genesis = (words: readonly number[]) =>
  apply(KIND.genesis, (writer) => {
    for (const word of words) writeU32(writer, word)
  })
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

function prepare(availability = 5): void {
  expect(property().error).toBe('')
  expect(ask(node, 'SETROOMPKG', { ...NIGHT, availability, finalPrice: 9 }).error).toBe('')
}

/** Body of a change of availability of the prepared night. */
const amount = (rooms: number) => (writer: CommandWriter) => {
  writeBytes(writer, packPropertyId('p') as Uint8Array, 0, 16)
  writeU32(writer, TODAY + 1)
  writeU8(writer, rooms)
  writeName(writer, new TextEncoder().encode('double'), 0, 6)
}

describe('digest marks', () => {
  test('are left by every 4,096th entry, with the digest after it', () => {
    prepare()
    const digests: DigestMark[] = []
    for (const index of [4095, 4096, 4097, 8191, 8192, 8193]) {
      idle({ index, timeMs: NOW_MS + index })
      digests.push({ index, ...stateDigest(memory) })
    }
    expect(context.marks).toEqual([digests[1], digests[4]])
    expect(context.newestMark).toEqual(digests[4])
  })

  test('are those of the 64 newest indexes', () => {
    for (let n = 1; n <= 64; n++) idle({ index: n * 4096 })
    expect([marked().length, marked()[0]]).toEqual([64, 4096])
    idle({ index: 65 * 4096 })
    expect([marked().length, marked()[0], marked().at(-1)]).toEqual([64, 2 * 4096, 65 * 4096])
  })

  test('exist once for an index', () => {
    for (const index of [4096, 4096, 8192]) idle({ index })
    expect(marked()).toEqual([4096, 8192])
  })

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

  test('are not left by a check of index 0 below level 1, which advances shard time', () => {
    check(0, { lo: 0, hi: 0 }, { index: 5, timeMs: NOW_MS + 1 })
    expect([context.marks, context.newestMark, latestTime(memory)]).toEqual([[], undefined, NOW_MS + 1])
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

describe('shard time', () => {
  const times = [1, 2 ** 32 - 1, 2 ** 32 + 1, NOW_MS, NOW_MS + 2 ** 32, NOW_MS + 2 ** 32 + 1]
  test.each(times)('is that of the newest entry: %i ms', (timeMs) => {
    idle({ timeMs })
    expect(latestTime(memory)).toBe(timeMs)
  })

  test.each(times.slice(2))('is set by an operator to %i ms', (timeMs) => {
    level(1)
    const { code } = apply(KIND.setTime, (writer) => writeF64(writer, timeMs))
    expect([code, latestTime(memory)]).toEqual([OUTCOME.done, timeMs])
  })

  test('is not set below level 1', () => {
    const { code } = apply(KIND.setTime, (writer) => writeF64(writer, 5))
    expect([code, latestTime(memory)]).toEqual([OUTCOME.refused, NOW_MS])
  })

  test('of an entry without a key ends sessions that were last used a day before', () => {
    idle({ session: 1, timeMs: NOW_MS })
    idle({ timeMs: NOW_MS + DAY_MS - 1 })
    expect(countsOf(memory).sessions).toBe(1)
    idle({ timeMs: NOW_MS + DAY_MS })
    expect(countsOf(memory).sessions).toBe(0)
  })
})

describe('an outcome', () => {
  test('has nothing of the command before it', () => {
    raiseFeatureLevel(node)
    prepare(2)
    const failed = apply(KIND.decreaseAvailability, amount(3))
    expect(failed).toMatchObject({ code: OUTCOME.underflow, value: 2, index: node.index })
    const line = { propertyId: 'p', roomType: 'double', arrival: NIGHT.date, nights: 1, rooms: 9 }
    ask(node, 'BOOKSTAY', { stayId: 'x', lines: [line] })
    expect(context.applied).toMatchObject({ code: OUTCOME.soldOut, detail: expect.stringContaining('left=2') })
    ask(node, 'BOOKSTAY', { stayId: 'x', lines: [{ ...line, rooms: 1 }] })
    expect(context.applied.stay).toBeGreaterThan(0)

    expect(idle({})).toEqual({ code: 0, value: 0, index: node.index, detail: '', stay: 0 })
    expect(apply(KIND.increaseAvailability, amount(3))).toMatchObject({ code: 0, value: 4, stay: 0 })
  })

  test('leaves no memory reserved', () => {
    prepare()
    expect(store.writer.promisedBytes).toBe(0)
  })
})

describe('a command with a request key', () => {
  test('is executed once, and its retry has the outcome and index of the first', () => {
    prepare(5)
    const first = apply(KIND.decreaseAvailability, amount(2), { session: 1 })
    expect(first).toMatchObject({ code: OUTCOME.done, value: 3 })
    const retry = apply(KIND.decreaseAvailability, amount(2), { session: 1 })
    expect(retry).toEqual(first)
    expect(node.index).toBe(first.index + 1)
    const next = apply(KIND.decreaseAvailability, amount(2), { session: 1, number: 2 })
    expect(next).toMatchObject({ code: OUTCOME.done, value: 1, index: node.index })
    const other = apply(KIND.decreaseAvailability, amount(1), { session: 2 })
    expect(other).toMatchObject({ code: OUTCOME.done, value: 0 })
  })

  test('that fails keeps its failure, although it would succeed later', () => {
    prepare(1)
    const first = apply(KIND.decreaseAvailability, amount(2), { session: 1 })
    expect(first).toMatchObject({ code: OUTCOME.underflow, value: 1 })
    apply(KIND.increaseAvailability, amount(9))
    expect(apply(KIND.decreaseAvailability, amount(2), { session: 1 })).toEqual(first)
  })

  test.each([
    ['kind', KIND.increaseAvailability, 2],
    ['body', KIND.decreaseAvailability, 3],
  ] as const)('is not a retry with another %s', (_, kind, rooms) => {
    prepare(5)
    apply(KIND.decreaseAvailability, amount(2), { session: 1 })
    expect(apply(kind, amount(rooms), { session: 1 })).toMatchObject({ code: OUTCOME.keyReused, value: 0 })
    expect(apply(KIND.increaseAvailability, amount(0)).value).toBe(3)
  })

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

  test('that was refused does not leave more sessions than fit', () => {
    level(1)
    apply(KIND.settings, (writer) => writeU32(writer, 1))
    drop(TODAY, 0)
    drop(TODAY + 5, 0, { session: 1 })
    expect(countsOf(memory).sessions).toBe(0)
  })
})

describe('maintenance', () => {
  test('drops past days, is refused after a gap without a reason, and may be repeated', () => {
    prepare()
    expect(drop(TODAY, 0).code).toBe(OUTCOME.done)
    expect(drop(TODAY + 4, 0).code).toBe(OUTCOME.refused)
    expect(countsOf(memory).packages).toBe(1)
    expect(drop(TODAY + 4, 1).code).toBe(OUTCOME.done)
    expect(countsOf(memory).packages).toBe(0)
    expect(drop(TODAY + 4, 0).code).toBe(OUTCOME.done)
    expect(drop(TODAY + 3, 0).code).toBe(OUTCOME.done)
    expect(state(memory, STATE.droppedBefore)).toBe(TODAY + 4)
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

  test.each([1, 2 ** 32 - 1, 2 ** 32, 5 * 2 ** 32 + 7])('have a memory budget of %i bytes', (bytes) => {
    budget(bytes)
    expect(memoryBudget(memory)).toBe(bytes)
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

  test('include those of stays', () => {
    level(2)
    const body = encodeSetting('holds_max', 12)
    apply(KIND.setting, (writer) => writeBytes(writer, body, 0, body.length))
    expect(staySetting(memory, 'holds_max')).toBe(12)
  })
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
    expect(() => level(4)).toThrow('feature level 4 is newer than this program, which supports 3')
    expect(featureLevel(memory)).toBe(0)
  })

  test.each([
    [[3], 0],
    [[1, 3], 0],
    [[2, 3], 50],
    [[2, 3, 3], 50],
    [[1, 2], 0],
  ])('%j leaves a ledger that is complete from index %i on', (levels, from) => {
    node.index = 50 - levels.indexOf(3) - 1
    for (const to of levels) level(to)
    expect(knownFrom(memory)).toBe(from)
  })

  test('of a row swap is 1', () => {
    for (const propertyId of ['p', 'q']) property({ propertyId })
    const swap = (writer: CommandWriter) => {
      writeName(writer, new TextEncoder().encode('s'), 0, 1)
      writeU8(writer, 1)
      writeU8(writer, 0)
      writeU32(writer, 2)
      writeU32(writer, 0)
    }
    expect(apply(KIND.swapRows, swap).code).toBe(OUTCOME.refused)
    level(1)
    expect(unorderedTables(memory).length).toBe(1)
    expect(apply(KIND.swapRows, swap).code).toBe(OUTCOME.done)
    expect(unorderedTables(memory)).toEqual([])
  })

  test.each([KIND.bookStay, KIND.holdStay, KIND.confirmStay, KIND.releaseStay])('of stay command %i is 2', (kind) => {
    level(1)
    expect(() => apply(kind, nothing)).toThrow('stays are logged from their feature level on')
  })
})

describe('a bulk load', () => {
  const digest = Uint8Array.from({ length: 32 }, (_, n) => n * 8)
  const hex = Buffer.from(digest).toString('hex')
  const load = () => apply(KIND.bulkLoad, (writer) => writeBytes(writer, digest, 0, 32))

  test('takes the data that has been loaded', () => {
    context.loaded = hex
    expect(load().code).toBe(OUTCOME.done)
    expect(context.loaded).toBe('')
  })

  test.each(['', hex.slice(2), hex.replace('08', '09')])('fails when the loaded data is %j', (loaded) => {
    context.loaded = loaded
    expect(load).toThrow('the data is replaced before its load entry is applied')
  })
})

test.each([2, 3])('holds end with the first entry after their time, from level 2 on: level %i', (at) => {
  level(at)
  prepare(5)
  const line = { propertyId: 'p', roomType: 'double', arrival: NIGHT.date, nights: 1, rooms: 2 }
  for (const stayId of ['kept', 'x']) ask(node, 'HOLDSTAY', { stayId, seconds: 60, lines: [line] })
  ask(node, 'CONFIRMSTAY', { stayId: 'kept' })
  const states = () =>
    ['kept', 'x'].map((stayId) => (ask(node, 'GETSTAY', { stayId }).result as { state?: string }).state)
  idle({ timeMs: NOW_MS + 59_999 })
  expect(states()).toEqual(['booked', 'held'])
  idle({ timeMs: NOW_MS + 60_000 })
  expect(states()).toEqual(['booked', 'expired'])
  ask(node, 'RELEASESTAY', { stayId: 'kept' })
  expect(states()).toEqual(['released', 'expired'])
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
