import { between, chance, pick, streamOf } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { applyCommand } from '../../engine/src/store/apply.ts'
import { createApplyContext } from '../../engine/src/store/apply-context.ts'
import {
  beginCommand,
  type CommandKind,
  createCommandWriter,
  KIND,
  OUTCOME,
  stampCommand,
  writeU8,
  writeU32,
} from '../../engine/src/store/command.ts'
import { dayAt } from '../../engine/src/store/day.ts'
import { recountCharge } from '../../engine/src/store/recount.ts'
import { createStore, FEATURE_LEVEL } from '../../engine/src/store/store.ts'
import { plainPutWord } from '../../engine/src/testing/search-reference.ts'
import { EPOCH_MS } from './clocks.ts'
import { changeOfSource, fill, type StayDraws, someRequest } from './stay-clients.ts'
import { HOTELS, heldCount, staysDifference } from './stays-reference.ts'
import { applyToModel, createStoreModel, differenceFrom } from './store-model.ts'
import { orderOf } from './store-order.ts'
import { type Built, command, drawBatch, firstCommands, imageCommands, todayAt } from './store-workload.ts'
import type { World } from './world.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)

const DAY_MS = 86_400_000
const noDigest = () => expect.fail('no digest is logged here')

function createPair() {
  const store = createStore({ memoryBytes: 48 << 20, readers: 1, scratchBytes: 65_536, sessionBytesMax: 1 << 20 })
  const { memory } = store
  const context = createApplyContext(store, plainPutWord(memory), noDigest)
  const model = createStoreModel()
  let index = 0
  const clock = { timeMs: EPOCH_MS }
  const run = (bytes: Uint8Array) => {
    stampCommand(new DataView(bytes.buffer), 0, clock.timeMs, dayAt(memory, clock.timeMs))
    const applied = { ...applyCommand(context, ++index, bytes, 0, bytes.length) }
    const expected = applyToModel(model, index, bytes, 0, bytes.length, applied)
    const [code, wanted] = [applied, expected].map((each) => each.code * 256 + each.value)
    return { code, expected: wanted, index: applied.index, isDone: applied.code === OUTCOME.done }
  }
  return { store, memory, model, clock, run }
}

test(`store and model are equal after all commands of builders (VACANCY_SEED=${SEED})`, () => {
  const { memory, model, run } = createPair()
  const random = streamOf(SEED, 'model')
  const built: Built = { properties: 0, propertiesMax: 400, fillsMemory: false, session: 0 }
  for (const bytes of firstCommands(random)) run(bytes)
  for (let batch = 0; batch < 300; batch++) {
    for (const bytes of drawBatch(random, built, todayAt(0))) {
      const { code, expected } = run(bytes)
      expect(code).toBe(expected)
    }
    if (batch % 20 === 0) expect(differenceFrom(model, memory)).toBe('')
  }
  expect(differenceFrom(model, memory)).toBe('')
  for (const name of ['moved', 'deletedProperties', 'deletedSegments', 'deletedRooms', 'deletedDays'] as const)
    expect(model.counts[name], name).toBeGreaterThan(0)
})

test(`records, nights and rooms of stays are those of the model, over days and refreshes (VACANCY_SEED=${SEED})`, () => {
  const { store, memory, model, clock, run } = createPair()
  const random = streamOf(SEED, 'stays')
  const draws: StayDraws = { random, holdsLong: SEED % 2 === 0, lines: new Map(), indexes: new Map() }
  const toldIndexes: World['toldIndexes'] = []
  const runOne = (bytes: Uint8Array, what: string) => {
    const applied = run(bytes)
    expect(applied.code, what).toBe(applied.expected)
    if (applied.isDone) toldIndexes.push({ index: applied.index, life: 0 })
    return applied
  }
  run(raiseTo(FEATURE_LEVEL))
  for (const hotel of HOTELS) for (const bytes of fill(random, hotel)) runOne(bytes, 'the hotels are filled')
  // A late repeat is drawn about once in 500 steps.
  for (let n = 0; n < 500 || (n < 10_000 && model.stays.counts.lateRepeats === 0); n++) {
    clock.timeMs += random.below(20_000)
    if (chance(random, 0.01)) {
      clock.timeMs += between(random, 1, 9) * DAY_MS
      const today = dayAt(memory, clock.timeMs)
      runOne(
        command(KIND.dropBefore, undefined, (writer) => {
          writeU32(writer, today)
          writeU8(writer, 0)
        }),
        `step ${n}`,
      )
    }
    if (chance(random, 0.25)) for (const bytes of changeOfSource({ toldIndexes }, random)) runOne(bytes, `step ${n}`)
    const { stayId, bytes, takes } = someRequest(draws)
    // Requests are repeated at once and later.
    for (let copies = pick(random, [1, 1, 2]); copies > 0; copies--) {
      const { isDone, index } = runOne(bytes.slice(), `step ${n}`)
      if (takes && isDone) draws.indexes.set(stayId, index)
    }
    if (n % 5 > 0) continue
    expect(staysDifference(model.stays, memory), `step ${n}`).toBeUndefined()
    expect(differenceFrom(model, memory), `step ${n}`).toBe('')
    expect(store.writer.charge.bytes, `step ${n}`).toBe(recountCharge(memory))
  }
  clock.timeMs += 25 * 3_600_000
  run(requestOf(1))
  expect(heldCount(model.stays)).toBe(0)
  expect(staysDifference(model.stays, memory)).toBeUndefined()
  for (const name of ['holds', 'bookings', 'expired', 'released', 'lateRepeats'] as const)
    expect(model.stays.counts[name], name).toBeGreaterThan(0)
})

test('the model detects a command that only one of the two applied', () => {
  const { memory, model, run } = createPair()
  const commands = imageCommands(streamOf(SEED, 'image'), 20)
  for (const bytes of commands.slice(0, -1)) run(bytes)
  expect(differenceFrom(model, memory)).toBe('')
  const last = commands.at(-1) as Uint8Array
  stampCommand(new DataView(last.buffer), 0, EPOCH_MS, todayAt(0))
  applyToModel(model, 1_000, last, 0, last.length, { code: OUTCOME.done, value: 0, index: 1_000 })
  expect(differenceFrom(model, memory)).not.toBe('')
})

test('the model detects a request that takes effect twice, and one that is refused forever', () => {
  const model = createStoreModel()
  model.level = 1
  const writer = createCommandWriter()
  const key = new Uint8Array(24)
  key[16] = 2
  beginCommand(writer, KIND.settings, key)
  const bytes = writer.bytes.slice(0, writer.at)
  const apply = (index: number, code: number, at = index) =>
    applyToModel(model, index, bytes, 0, bytes.length, { code, value: 0, index: at }).code
  expect(apply(1, OUTCOME.refused)).toBe(OUTCOME.refused)
  expect(apply(2, OUTCOME.refused, 1)).not.toBe(OUTCOME.refused)
  expect(apply(3, OUTCOME.done)).toBe(OUTCOME.done)
  expect(apply(4, OUTCOME.done, 3)).toBe(OUTCOME.done)
  expect(apply(5, OUTCOME.done)).not.toBe(OUTCOME.done)
})

/** A numbered request of the only session, without a body, that changes no record. */
function requestOf(number: number, kind: CommandKind = KIND.deleteProperty): Uint8Array {
  const writer = createCommandWriter()
  const key = new Uint8Array(24).fill(0, 16)
  key[16] = number
  beginCommand(writer, kind, key)
  for (let n = 0; n < 4; n++) writeU32(writer, number)
  return writer.bytes.slice(0, writer.at)
}

const raiseTo = (level: number) => command(KIND.featureLevel, undefined, (writer) => writeU32(writer, level))

test('the model detects a stored result that differs from the log', () => {
  const { memory, model, run } = createPair()
  run(requestOf(1))
  expect(differenceFrom(model, memory)).toBe('')
  run(raiseTo(1))
  for (const number of [2, 3, 2]) expect(run(requestOf(number)).code).toBe(OUTCOME.unknownProperty * 256)
  expect(differenceFrom(model, memory)).toBe('')
  for (const results of model.results.values()) results.set(3, { code: OUTCOME.done, value: 0, index: 4 })
  expect(differenceFrom(model, memory)).toContain('request 3 of session')
})

test('requests of an evicted session are counted, except those that open a session', () => {
  const model = createStoreModel()
  const apply = (number: number, index: number, code: number, at = index) => {
    const bytes = requestOf(number)
    return applyToModel(model, index, bytes, 0, bytes.length, { code, value: 0, index: at }).code
  }
  expect(apply(2, 1, OUTCOME.sessionExpired, 0)).toBe(OUTCOME.sessionExpired)
  expect(model.counts).toMatchObject({ forgotten: 0, forgottenRepeats: 0 })
  apply(1, 2, OUTCOME.unknownProperty)
  apply(2, 3, OUTCOME.unknownProperty)
  apply(3, 4, OUTCOME.sessionExpired, 0)
  expect(model.counts).toMatchObject({ forgotten: 1, forgottenRepeats: 0 })
  apply(2, 5, OUTCOME.sessionExpired, 0)
  expect(model.counts).toMatchObject({ forgotten: 2, forgottenRepeats: 1 })
  expect(apply(1, 6, OUTCOME.sessionExpired, 0)).not.toBe(OUTCOME.sessionExpired)
})

test('a different row order is a different state', () => {
  const [a, b] = [createPair(), createPair()]
  const commands = imageCommands(streamOf(SEED, 'order'), 6)
  for (const bytes of commands) a.run(bytes.slice())
  for (const bytes of commands) b.run(bytes.slice())
  expect(orderOf(a.memory)).toBe(orderOf(b.memory))
  const properties = commands.filter((bytes) => bytes[0] === KIND.setProperty)
  const other = createPair()
  for (const bytes of properties.toReversed()) other.run(bytes.slice())
  for (const bytes of commands.filter((each) => each[0] !== KIND.setProperty)) other.run(bytes.slice())
  expect(differenceFrom(other.model, a.memory)).toBe('')
  expect(orderOf(other.memory)).not.toBe(orderOf(a.memory))
})
