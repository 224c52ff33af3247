/** Properties by id, while the index grows, is copied a few slots at a time, and shrinks. */
import { createRandom, type Random } from '@vacancy/testkit/random'
import { describe, expect, test } from 'vitest'
import { GONE_ROW, PROPERTY, STATE } from './layout.ts'
import { findProperty, indexGrowthBytes, indexProperty, reserveProperties, unindexProperty } from './property-index.ts'
import { createPropertyRecord } from './segment.ts'
import { createStore, publish, type Store, setState, state } from './store.ts'
import { field, setField } from './table-fields.ts'
import { retire } from './version.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
/** More entries than this are copied to a larger index a few slots at a time. */
const COPIED_AT_ONCE = 8_192
const PLAIN = { segment: 0, area: 0, type: 0, category: 0, stars: 1, latitude: 0, longitude: 0, amenities: [] }

function emptyStore(level: number): Store {
  const store = createStore({ memoryBytes: 24 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax: 0 })
  setState(store, STATE.featureLevel, level)
  return store
}

function idOf(n: number): Uint8Array {
  const id = new Uint8Array(16)
  const view = new DataView(id.buffer)
  view.setUint32(n % 12, n, true)
  id[15] = n % 12
  return id
}

function add(store: Store, n: number): number {
  const property = createPropertyRecord(store, idOf(n), 0, PLAIN)
  indexProperty(store, property)
  return property
}

function remove(store: Store, property: number): void {
  unindexProperty(store, property)
  retire(store, false, property, PROPERTY.bytes)
}

const slotsOf = ({ memory }: Store) => {
  const slots = state(memory, STATE.propertySlots)
  return slots === 0 ? 0 : field(memory, slots) + 1
}

/** Numbers up to `end` whose lookup differs from the model. */
function wrong(store: Store, model: ReadonlyMap<number, number>, end: number): number[] {
  return Array.from({ length: end }, (_, n) => n).filter(
    (n) => findProperty(store.memory, idOf(n), 0) !== (model.get(n) ?? 0),
  )
}

function check(store: Store, model: ReadonlyMap<number, number>, end: number): void {
  expect(wrong(store, model, end), `VACANCY_SEED=${SEED}`).toEqual([])
  expect(state(store.memory, STATE.propertyCount)).toBe(model.size)
}

/** Adds up to `count` properties, a third of which are removed again or replaced. */
function fill(store: Store, model: Map<number, number>, random: Random, count: number): void {
  while (model.size < count) {
    const n = random.below(2 * count)
    const known = model.get(n)
    if (known === undefined) {
      model.set(n, add(store, n))
    } else if (random.below(3) === 0) {
      remove(store, known)
      model.delete(n)
    }
  }
}

describe.each([0, 1])('an index at feature level %i', (level) => {
  test('finds exactly the properties in it, is less than half full, and becomes small again', () => {
    const store = emptyStore(level)
    const random = createRandom(SEED)
    const model = new Map<number, number>()
    expect([findProperty(store.memory, idOf(1), 0), slotsOf(store)]).toEqual([0, 0])
    remove(store, add(store, 7))
    for (let n = 0; n < 2; n++) publish(store, 1)
    const used = store.writer.records.usedBytes
    for (const count of [20, 33, 1_000, 3_000, COPIED_AT_ONCE]) {
      fill(store, model, random, count)
      check(store, model, 2 * count)
      publish(store, 1)
      expect(slotsOf(store)).toBeGreaterThanOrEqual(2 * model.size)
      expect(Math.log2(slotsOf(store)) % 1).toBe(0)
    }
    for (const [n, property] of [...model]) {
      remove(store, property)
      model.delete(n)
      // Eight slots for each property at most: that is what they are charged for.
      if (slotsOf(store) > Math.max(64, 8 * model.size)) throw new Error(`${slotsOf(store)} for ${model.size}`)
      if (model.size % 2_000 === 0) check(store, model, 2 * COPIED_AT_ONCE)
    }
    for (let n = 0; n < 2; n++) publish(store, 1)
    expect([slotsOf(store), store.writer.records.usedBytes]).toEqual([64, used])
  })
})

test('a large index is copied while properties come and go, and the copy takes its place', () => {
  const store = emptyStore(1)
  const random = createRandom(SEED)
  const model = new Map<number, number>()
  const sizes = new Set<number>()
  let copied = 0
  for (let n = 0; n < 9_000; n++) {
    const size = slotsOf(store)
    const hadCopy = store.writer.indexCopy !== undefined
    model.set(n, add(store, n))
    if (hadCopy && store.writer.indexCopy === undefined && slotsOf(store) > size) copied++
    sizes.add(slotsOf(store))
    // Some of those in copied slots, and some that are not.
    if (random.below(8) === 0) {
      const gone = random.below(n)
      const property = model.get(gone)
      if (property !== undefined) remove(store, property)
      model.delete(gone)
    }
    if (n % 1_000 === 999) check(store, model, 9_000)
  }
  expect(copied).toBe(1)
  expect([...sizes].at(-1)).toBe(32_768)
  check(store, model, 9_000)
  expect(state(store.memory, STATE.propertySlotsUsed) * 2).toBeLessThanOrEqual(slotsOf(store))
})

test('properties of a deleted segment are not found, and not counted until they are removed', () => {
  const store = emptyStore(1)
  const [kept, gone] = [add(store, 1), add(store, 2)]
  setField(store, gone + PROPERTY.row, GONE_ROW)
  setState(store, STATE.propertyCount, 1)
  store.writer.goneProperties = 1
  expect([1, 2].map((n) => findProperty(store.memory, idOf(n), 0))).toEqual([kept, 0])
  // Its id is free for another property.
  const again = add(store, 2)
  expect([1, 2].map((n) => findProperty(store.memory, idOf(n), 0))).toEqual([kept, again])
  remove(store, gone)
  expect([state(store.memory, STATE.propertyCount), store.writer.goneProperties]).toEqual([2, 0])
  expect(findProperty(store.memory, idOf(2), 0)).toBe(again)
})

test.each([
  [1, 64],
  [32, 64],
  [33, 128],
  [64, 128],
  [65, 256],
])('space for %i properties is reserved at once', (properties, slots) => {
  const store = emptyStore(1)
  reserveProperties(store, 0)
  expect(slotsOf(store)).toBe(0)
  reserveProperties(store, properties)
  expect(slotsOf(store)).toBe(slots)
  for (let n = 0; n < properties; n++) add(store, n)
  expect(slotsOf(store)).toBe(slots)
})

test('the bound for one more property is zero until the index is half full, then that of a larger one', () => {
  const store = emptyStore(0)
  const bounds: number[] = []
  for (let n = 0; n < 70; n++) {
    const bound = indexGrowthBytes(store.memory)
    const size = slotsOf(store)
    add(store, n)
    if (slotsOf(store) !== size) {
      bounds.push(bound)
      expect(bound + 8).toBeGreaterThanOrEqual(4 + slotsOf(store) * 4)
    } else expect(bound).toBe(0)
  }
  expect(bounds).toEqual([64 * 4, 64 * 16, 128 * 16])
})
