import { tries } from '@vacancy/testkit/random'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ENTRY_KIND, type EntryBatch, encodeEntry } from './entry.ts'
import {
  appendBatch,
  appendEntries,
  applyTo,
  commitTo,
  compactTo,
  createLog,
  giveOut,
  lastIndexOfTerm,
  lastOf,
  persistTo,
  type RaftLog,
  readTail,
  restartLog,
  tailFirst,
  takeBack,
  takeUnsent,
  termAt,
  trimTail,
  truncateFrom,
  unappliedBatches,
} from './log.ts'

const BATCH_OVERHEAD_BYTES = 256
const EMPTY = { firstIndex: 1, lastIndex: 0, lastTerm: 0, commit: 0, applied: 0, appliedTerm: 0, runs: [], entries: [] }

type Entry = { readonly term: number; readonly isConfiguration: boolean; readonly bytes: Uint8Array }
/** The same log as a list of entries, of which the first has the index `before` + 1. */
type Model = { before: number; termBefore: number; entries: Entry[]; unsent: number; firstIndex: number }
type World = { readonly log: RaftLog; readonly model: Model }
/** `pick` chooses a number within the range that the step allows. */
type Step = { readonly kind: keyof typeof STEPS; readonly pick: number; readonly size: number }

const lastIndex = ({ before, entries }: Model) => before + entries.length
const at = ({ before, entries }: Model, index: number) => entries[index - before - 1] as Entry
const range = (model: Model, from: number, to: number) =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => at(model, from + n))
const bytesOf = (entries: readonly { readonly bytes: Uint8Array }[]) =>
  Buffer.concat(entries.map(({ bytes }) => bytes)).toString('hex')
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
const within = (least: number, most: number, pick: number) => least + (pick % (most - least + 1))

/** New entries of one term, which is that of the last entry or the next one. */
function created({ model, log }: World, { pick, size }: Step): { term: number; entries: Entry[] } {
  const term = Math.max(1, log.lastTerm) + (pick % 3 === 0 ? 1 : 0)
  const entries = Array.from({ length: 1 + (size % 4) }, (_, n) => {
    const isConfiguration = (pick + n) % 5 === 0
    const kind = isConfiguration ? ENTRY_KIND.configuration : ENTRY_KIND.command
    return { term, isConfiguration, bytes: encodeEntry(term, kind, new Uint8Array((size + n) % 7).fill(pick)) }
  })
  model.entries.push(...entries)
  model.unsent += entries.length
  return { term, entries }
}

const STEPS = {
  append(world: World, step: Step) {
    const { term, entries } = created(world, { ...step, pick: step.pick | 1 })
    const plain = entries.map((entry) => entry.bytes)
    const first = appendEntries(world.log, term, plain.length, Buffer.concat(plain))
    expect(first).toBe(lastIndex(world.model) - entries.length + 1)
    // Only what is received is looked through for configurations: a leader knows its own.
    for (const [n, { isConfiguration }] of entries.entries())
      if (isConfiguration) world.log.configurations.push(first + n)
  },
  receive(world: World, step: Step) {
    const firstIndex = world.log.lastIndex + 1
    const { entries } = created(world, step)
    appendBatch(world.log, {
      firstIndex,
      count: entries.length,
      bytes: Buffer.concat(entries.map(({ bytes }) => bytes)),
    })
  },
  take({ log, model }: World) {
    const unsent = takeUnsent(log)
    expect(bytesOf(unsent)).toBe(bytesOf(range(model, lastIndex(model) - model.unsent + 1, lastIndex(model))))
    model.unsent = 0
  },
  persist({ log, model }: World, { pick }: Step) {
    persistTo(log, within(log.persisted, Math.max(log.persisted, lastIndex(model) - model.unsent), pick))
  },
  commit({ log }: World, { pick }: Step) {
    commitTo(log, within(log.commit, log.lastIndex, pick))
  },
  give({ log, model }: World, { size }: Step) {
    const { handedOut } = log
    const bound = Math.min(log.commit, log.persisted)
    const given = giveOut(log, size, bound)
    if (handedOut >= bound) return expect(given).toBeUndefined()
    expect(given?.firstIndex).toBe(handedOut + 1)
    expect(given?.count).toBeLessThanOrEqual(size)
    expect(log.handedOut).toBe(lastOf(given as EntryBatch))
    expect(log.handedOut).toBeLessThanOrEqual(bound)
    expect(bytesOf([given as EntryBatch])).toBe(bytesOf(range(model, handedOut + 1, log.handedOut)))
  },
  takeBack({ log }: World, { pick }: Step) {
    takeBack(log, within(log.applied, log.handedOut, pick))
  },
  apply({ log, model }: World) {
    const entries = range(model, log.applied + 1, log.handedOut)
    applyTo(log, log.handedOut, entries.length, sum(entries.map(({ bytes }) => bytes.length)))
  },
  truncate({ log, model }: World, { pick }: Step) {
    if (log.lastIndex === log.commit) return
    const index = within(log.commit + 1, log.lastIndex, pick)
    const persistedBefore = log.persisted
    const removed = lastIndex(model) - index + 1
    model.entries.length -= removed
    model.unsent = Math.max(0, model.unsent - removed)
    truncateFrom(log, index)
    expect(log.persisted).toBe(Math.min(persistedBefore, index - 1))
  },
  trim({ log }: World, { pick, size }: Step) {
    const bytesMax = (pick % 2) * size * 100
    trimTail(log, bytesMax)
    // What is left over the limit is needed.
    if (log.tailBytes > bytesMax)
      expect(lastOf(log.tail[log.tailHead] as EntryBatch)).toBeGreaterThan(Math.min(log.applied, log.persisted))
  },
  compact({ log, model }: World, { pick }: Step) {
    model.firstIndex = within(model.firstIndex, log.applied + 1, pick)
    compactTo(log, model.firstIndex)
  },
  read({ log, model }: World, { pick, size }: Step) {
    const from = within(tailFirst(log), log.lastIndex + 1, pick)
    const bytesMax = size * 20
    const batches = readTail(log, from, bytesMax)
    if (from > log.lastIndex) return expect(batches).toEqual([])
    const read = sum(batches.map(({ count }) => count))
    expect(batches[0]?.firstIndex).toBe(from)
    expect(bytesOf(batches)).toBe(bytesOf(range(model, from, from + read - 1)))
    expect(read === 1 || sum(batches.map(({ bytes }) => bytes.length)) <= bytesMax).toBe(true)
  },
  restart({ log, model }: World, { pick, size }: Step) {
    if (pick % 8 > 0 || log.lastIndex > log.commit || model.unsent > 0) return
    const index = log.lastIndex + 1 + size
    const term = log.lastTerm + 1
    Object.assign(model, { before: index, termBefore: term, entries: [], unsent: 0, firstIndex: index + 1 })
    restartLog(log, index, term)
  },
}

/** What the log counts, and what it answers, are those of the list. */
function check({ log, model }: World): void {
  const last = lastIndex(model)
  const termOf = (index: number) => (index === model.before ? model.termBefore : at(model, index).term)
  expect([log.firstIndex, log.lastIndex, log.lastTerm]).toEqual([model.firstIndex, last, termOf(last)])
  expect(log.appliedTerm).toBe(termOf(log.applied))
  for (let index = model.firstIndex - 2; index <= last + 1; index++)
    expect(termAt(log, index)).toBe(index < model.firstIndex - 1 || index > last ? -1 : termOf(index))
  for (const term of [0, log.appliedTerm, log.lastTerm - 1, log.lastTerm]) {
    for (const index of [model.firstIndex - 2, model.firstIndex, last - 1, last, last + 3]) {
      let expected = Math.min(index, last)
      while (expected >= model.firstIndex - 1 && termOf(expected) > term) expected--
      if (index >= model.firstIndex - 1 && expected < model.firstIndex - 1) expected = Math.max(0, model.firstIndex - 2)
      expect(lastIndexOfTerm(log, index, term)).toBe(expected)
    }
  }

  const unapplied = range(model, log.applied + 1, last)
  expect([log.unappliedEntries, log.unappliedBytes]).toEqual([
    unapplied.length,
    sum(unapplied.map(({ bytes }) => bytes.length)),
  ])
  expect(log.configurations).toEqual(
    unapplied.flatMap(({ isConfiguration }, n) => (isConfiguration ? [log.applied + 1 + n] : [])),
  )
  expect(sum(log.unsent.map(({ count }) => count))).toBe(model.unsent)
  const live = log.tail.slice(log.tailHead) as EntryBatch[]
  expect(log.tailBytes).toBe(sum(live.map(({ bytes }) => bytes.length + BATCH_OVERHEAD_BYTES)))
  expect(tailFirst(log)).toBe(live[0]?.firstIndex ?? last + 1)
  expect(tailFirst(log)).toBeLessThanOrEqual(log.applied + 1)
  expect(bytesOf(live)).toBe(bytesOf(range(model, tailFirst(log), last)))
  const [first] = unappliedBatches(log)
  if (first) expect(first.firstIndex <= log.applied + 1 && lastOf(first) > log.applied).toBe(true)
  expect(first === undefined).toBe(unapplied.length === 0)
}

test('is the log that a list of entries describes, after any steps', () => {
  const kinds = Object.keys(STEPS) as (keyof typeof STEPS)[]
  const step = fc.record({ kind: fc.constantFrom(...kinds), pick: fc.nat(255), size: fc.integer({ min: 1, max: 9 }) })
  fc.assert(
    fc.property(fc.array(step, { size: 'max', maxLength: 250 }), (steps) => {
      const model: Model = { before: 0, termBefore: 0, entries: [], unsent: 0, firstIndex: 1 }
      const world: World = { log: createLog(EMPTY), model }
      for (const each of steps) {
        STEPS[each.kind](world, each)
        check(world)
      }
    }),
    { numRuns: tries(60) },
  )
})

test('forgets the slots of dropped batches when they are the majority', () => {
  const log = createLog(EMPTY)
  const entry = encodeEntry(1, ENTRY_KIND.command, Uint8Array.of(1))
  for (let n = 0; n < 200; n++) appendEntries(log, 1, 1, entry)
  takeUnsent(log)
  persistTo(log, 200)
  commitTo(log, 200)
  while (log.handedOut < 200) giveOut(log, 1, 200)
  applyTo(log, 200, 200, 200 * entry.length)

  trimTail(log, 100 * (entry.length + BATCH_OVERHEAD_BYTES))
  expect([log.tailHead, log.tail.length]).toEqual([100, 200])
  trimTail(log, 99 * (entry.length + BATCH_OVERHEAD_BYTES))
  expect([log.tailHead, log.tail.length]).toEqual([0, 99])
  trimTail(log, 0)
  expect([log.tailHead, log.tail.length, log.tailBytes]).toEqual([0, 0, 0])
})
