import { formatDay, parseDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import {
  ask,
  createNodeInMemory,
  type NodeInMemory,
  orderRows,
  raiseFeatureLevel,
  setMemoryBudget,
} from '../testing/node-in-memory.ts'
import { runPressure } from '../testing/pressure.ts'
import { applyCommand, recountDigest } from './apply.ts'
import { allocate } from './arena.ts'
import { fitsBudget, growthLeft, memoryBudgetOf, tableBytes, worstCapacity } from './charge.ts'
import { beginCommand, createCommandWriter, KIND, OUTCOME, stampCommand, writeBytes } from './command.ts'
import { capacityFor, grownCapacity } from './layout.ts'
import { recountCharge } from './recount.ts'
import { unorderedTables } from './row-order.ts'
import { removeSessions } from './sessions.ts'
import { publish, refusesForMemory, stateDigest } from './store.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
/** `VACANCY_PRESSURE=1000000` runs the long form. */
const COMMANDS = Number(process.env['VACANCY_PRESSURE'] ?? 40_000)
/** Small, so that a test fills it quickly. */
const BUDGET = 3 << 20
const TODAY = parseDay('2026-11-20') as number
const place = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 47, longitude: 8 }

function nodeAtLevel1(memoryBytes: number, budget?: number): NodeInMemory {
  const node = createNodeInMemory(TODAY, memoryBytes)
  raiseFeatureLevel(node)
  setMemoryBudget(node, budget ?? memoryBudgetOf(node.store))
  return node
}

function setProperty(node: NodeInMemory, i: number, fields: object = {}): number {
  return ask(node, 'SETPROP', { ...place, propertyId: `p${i}`, amenities: [], ...fields }).code
}

function setNight(node: NodeInMemory, i: number, night: number, roomType = 'r'): number {
  const date = formatDay(TODAY + night)
  return ask(node, 'SETROOMPKG', { propertyId: `p${i}`, roomType, date, availability: 1, finalPrice: i }).code
}

/** Adds properties with nights until one is refused. @returns how many there are */
function fill(node: NodeInMemory): number {
  for (let i = 0; ; i++) {
    if (setProperty(node, i) !== OUTCOME.done) return i
    for (let night = 0; night < 300; night++) if (setNight(node, i, night) !== OUTCOME.done) return i + 1
  }
}

test('the worst capacity of a table bounds every way to grow to its rows', () => {
  let capacity = capacityFor(1)
  for (let rows = 1; rows < 5_000; rows++) {
    if (rows > capacity) capacity = grownCapacity(capacity)
    expect(worstCapacity(rows)).toBeGreaterThanOrEqual(capacity)
    expect(worstCapacity(rows)).toBeGreaterThanOrEqual(capacityFor(rows))
  }
})

test('the charge of a table never decreases with more rows or nights', () => {
  for (let rows = 0; rows < 600; rows++) {
    expect(tableBytes(rows + 1, 30)).toBeGreaterThanOrEqual(tableBytes(rows, 30))
    expect(tableBytes(rows, 31)).toBeGreaterThan(tableBytes(rows, 30))
  }
})

test('above the budget growth is refused and changes nothing, updates and deletes succeed, and deletes free memory', () => {
  const node = nodeAtLevel1(64 << 20, BUDGET)
  const { memory } = node.store
  const count = fill(node)

  expect(refusesForMemory(memory)).toBe(true)
  // Used to leave the room type behind: the second of two checks came after it was made.
  for (let night = 0; night < 300; night++) setNight(node, 0, night, `room-${night}`)
  expect(stateDigest(memory)).toEqual(recountDigest(memory).digest)
  expect(setProperty(node, count + 1, { segment: 'another' })).toBe(OUTCOME.refused)
  expect(ask(node, 'SEARCHPROP', { segment: 'another' }).result.propertyIds ?? []).toEqual([])

  const digest = stateDigest(memory)
  for (let night = 0; night < 300; night++) {
    expect(
      ask(node, 'DECROOMAVL', { propertyId: 'p0', roomType: 'r', date: formatDay(TODAY + night), amount: 1 }).code,
    ).toBe(OUTCOME.done)
    expect(setNight(node, 0, night)).toBe(OUTCOME.done)
  }
  expect(stateDigest(memory)).toEqual(digest)
  for (let i = 0; i < count / 2; i++) ask(node, 'DELPROP', { propertyId: `p${i}` })

  publish(node.store, node.index)
  expect(refusesForMemory(memory)).toBe(false)
  expect(setProperty(node, 0)).toBe(OUTCOME.done)
  expect(node.store.writer.charge.bytes).toBe(recountCharge(memory))
})

test('refusals depend only on the log, not on readers, capacities or earlier allocations', () => {
  const small = nodeAtLevel1(64 << 20, 900 * 1024)
  const large = nodeAtLevel1(128 << 20, 900 * 1024)
  // Holes and spare blocks from a different history.
  for (let i = 0; i < 400; i++) {
    for (const node of [small, large]) setProperty(node, i, { segment: `gone-${i % 7}` })
  }
  for (let i = 0; i < 7; i++) for (const node of [small, large]) ask(node, 'DELSEGMENT', { segment: `gone-${i}` })
  allocate(large.store.writer.planes, 3 << 20)
  allocate(large.store.writer.records, 1 << 20)

  const outcomes = [small, large].map((node) => {
    const codes: number[] = []
    for (let i = 0; i < 120; i++) {
      codes.push(setProperty(node, i, { segment: `s${i % 3}` }))
      for (let night = 0; night < 40; night++) codes.push(setNight(node, i, night + (i % 7) * 40, `room${night % 5}`))
      // Moves, with all nights.
      if (i % 10 === 9) codes.push(setProperty(node, i, { segment: `s${(i + 1) % 3}` }))
    }
    return codes.join('')
  })

  expect(outcomes[0] === outcomes[1]).toBe(true)
  expect(outcomes[0]?.includes(String(OUTCOME.refused))).toBe(true)
  expect(stateDigest(small.store.memory)).toEqual(stateDigest(large.store.memory))
  expect(growthLeft(small.store)).toBe(growthLeft(large.store))
})

test('rows are sorted even at the memory limit; this used to be refused on some replicas only', () => {
  const node = nodeAtLevel1(64 << 20, BUDGET)
  fill(node)
  for (let i = 0; i < 200; i++) setProperty(node, i, { propertyType: i % 2 === 0 ? 'hotel' : 'villa' })
  ask(node, 'DELPROP', { propertyId: 'p3' })
  for (let i = 300; i < 302; i++) setProperty(node, i, { propertyType: 'a' })

  expect(orderRows(node, 's', 'r')).toBe(OUTCOME.done)
  expect(orderRows(node, 's')).toBe(OUTCOME.done)
  expect(unorderedTables(node.store.memory)).toHaveLength(0)
})

test('a refusal for lack of memory is not stored under its request key: retries used to get the stored 503 forever', () => {
  const node = nodeAtLevel1(64 << 20, BUDGET)
  const count = fill(node)
  // Down to the last property that fits.
  for (let i = count; setProperty(node, i, { segment: `s${i}` }) === OUTCOME.done; i++);
  const key = new Uint8Array(24).fill(7)
  new DataView(key.buffer).setBigUint64(16, 1n, true)
  const repeat = (): number => {
    const writer = createCommandWriter()
    beginCommand(writer, KIND.setProperty, key)
    const body = propertyBody('fresh-one')
    writeBytes(writer, body, 0, body.length)
    stampCommand(writer.view, 0, TODAY * 86_400_000 + 1000, TODAY)
    return applyCommand(node.context, ++node.index, writer.bytes, 0, writer.at).code
  }

  expect(repeat()).toBe(OUTCOME.refused)
  for (let i = 0; i < count / 2; i++) ask(node, 'DELPROP', { propertyId: `p${i}` })
  expect(repeat()).toBe(OUTCOME.done)
  const digest = stateDigest(node.store.memory)
  expect(repeat()).toBe(OUTCOME.done)
  expect(stateDigest(node.store.memory)).toEqual(digest)
})

/** Body of SETPROP as it is logged. */
function propertyBody(segment: string): Uint8Array {
  const name = (text: string) => [text.length, ...new TextEncoder().encode(text)]
  const numbers = new Uint8Array(16)
  return Uint8Array.from([
    ...new Uint8Array(16).fill(200),
    3,
    ...numbers,
    ...name(segment),
    ...name('a'),
    ...name('t'),
    ...name('c'),
    0,
  ])
}

test.for([2, 64])(
  `commands at the memory limit never exhaust memory, with %i readers (VACANCY_SEED=${SEED})`,
  // Some seeds refuse most commands, and take ten times as long as others.
  { timeout: 600_000 },
  (readers) => {
    const { node, accepted, refused, leastFill } = runPressure({
      seed: SEED,
      commands: COMMANDS,
      memoryBytes: 16 << 20,
      readers,
    })
    const { memory } = node.store

    expect(accepted).toBe(COMMANDS)
    expect(refused).toBeGreaterThan(0)
    expect(leastFill).toBeGreaterThan(0.9)
    expect(fitsBudget(node.store, 0, 0)).toBe(true)
    expect(node.store.writer.charge.bytes).toBe(recountCharge(memory))
    // The maintained digest also covers request keys.
    removeSessions(node.store)
    expect(stateDigest(memory)).toEqual(recountDigest(memory).digest)
  },
)
