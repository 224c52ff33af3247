/** Names and their numbers: lookups, growth, what is charged, and the bound of what new names allocate. */
import { createRandom } from '@vacancy/testkit/random'
import { describe, expect, test } from 'vitest'
import {
  compareBytes,
  countName,
  dictionaryGrowthBytes,
  discountNames,
  findName,
  hashOfName,
  internName,
  internText,
  NAME_KINDS,
  NAMES,
  nameBytes,
  nameCount,
  nameCounts,
  nameText,
} from './dictionary.ts'
import { nameHash } from './digest.ts'
import { recountCharge } from './recount.ts'
import { createStore, publish, type Store } from './store.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const encoder = new TextEncoder()

function emptyStore(): Store {
  return createStore({ memoryBytes: 8 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax: 0 })
}

function find({ memory }: Store, kind: (typeof NAME_KINDS)[number], text: string): number {
  // In the middle of other bytes, as in a request.
  const bytes = encoder.encode(`x${text}y`)
  return findName(memory, kind, bytes, 1, bytes.length - 1)
}

test('any names have the numbers 0, 1, 2 … in the order of their first use, of each kind alone', () => {
  const store = emptyStore()
  const random = createRandom(SEED)
  const models = NAME_KINDS.map(() => new Map<string, number>())
  for (let n = 0; n < 1_500; n++) {
    const kind = NAME_KINDS[random.below(NAME_KINDS.length)] as (typeof NAME_KINDS)[number]
    const model = models[NAME_KINDS.indexOf(kind)] as Map<string, number>
    const text = ['', 'é', 'a', '客室 '][random.below(4)] + String(random.below(400)).repeat(random.below(3))
    expect(find(store, kind, text), `VACANCY_SEED=${SEED}`).toBe(model.get(text) ?? -1)
    const number = internText(store, kind, text)
    if (!model.has(text)) model.set(text, model.size)
    expect(number).toBe(model.get(text))
  }
  const { memory } = store
  for (const [i, kind] of NAME_KINDS.entries()) {
    const names = [...(models[i] as Map<string, number>).keys()]
    expect(nameCount(memory, kind)).toBe(names.length)
    expect(names.map((_, name) => nameText(memory, kind, name))).toEqual(names)
    expect(names.map((text) => find(store, kind, text))).toEqual(names.map((_, name) => name))
    expect(find(store, kind, 'never used')).toBe(-1)
    const hashes = (lane: 0 | 1) => names.map((_, name) => hashOfName(memory, kind, name, lane))
    for (const lane of [0, 1] as const) {
      expect(hashes(lane)).toEqual(
        names.map((text) => nameHash(lane, encoder.encode(text), 0, encoder.encode(text).length)),
      )
    }
  }
  expect(store.writer.charge.bytes).toBe(recountCharge(memory))
})

test('a name that differs in one byte, or only in its length, is another one', () => {
  const store = emptyStore()
  const names = ['room', 'roon', 'Room', 'roo', 'room ', ' room', 'r', '']
  expect(names.map((name) => internText(store, NAMES.roomType, name))).toEqual(names.map((_, n) => n))
  expect(nameBytes(store.memory, NAMES.roomType, 3)).toEqual(encoder.encode('roo'))
  expect(() => nameBytes(store.memory, NAMES.roomType, names.length)).toThrow()
})

test('a part of a buffer is a name', () => {
  const store = emptyStore()
  const bytes = encoder.encode('a double room')
  expect(internName(store, NAMES.roomType, bytes, 2, 8)).toBe(0)
  expect(nameText(store.memory, NAMES.roomType, 0)).toBe('double')
  expect(internText(store, NAMES.roomType, 'double')).toBe(0)
})

describe('names that do not count', () => {
  test('are found, are not charged, and count again with their next use', () => {
    const store = emptyStore()
    const { memory, writer } = store
    for (const kind of NAME_KINDS) for (const text of ['a', 'b']) internText(store, kind, text)
    expect(nameCounts(memory, NAMES.area, 1)).toBe(true)
    discountNames(store)
    const all = NAME_KINDS.flatMap((kind) => [0, 1].map((name) => nameCounts(memory, kind, name)))
    expect(all).toEqual(all.map(() => false))
    expect([recountCharge(memory), find(store, NAMES.area, 'b')]).toEqual([0, 1])
    writer.charge.bytes = 0
    writer.charge.names.fill(0)

    expect(internText(store, NAMES.area, 'b')).toBe(1)
    expect([nameCounts(memory, NAMES.area, 0), nameCounts(memory, NAMES.area, 1)]).toEqual([false, true])
    expect(writer.charge.bytes).toBe(recountCharge(memory))
    countName(store, NAMES.amenity, 0)
    internText(store, NAMES.area, 'b')
    expect(writer.charge.bytes).toBe(recountCharge(memory))
    expect([...writer.charge.names]).toEqual([0, 1, 0, 0, 0, 1])
  })
})

test('the bound of new names covers what they allocate, and is zero while tables have room', () => {
  const store = emptyStore()
  const text = 8
  let grown = 0
  for (let n = 0; n < 600; n++) {
    const bound = dictionaryGrowthBytes(store.memory, 1)
    const before = store.writer.records.usedBytes
    for (const kind of NAME_KINDS) internText(store, kind, String(n))
    const taken = store.writer.records.usedBytes - before - NAME_KINDS.length * text
    // A block of slots has its mask, and is a multiple of eight bytes.
    expect(taken).toBeLessThanOrEqual(bound + NAME_KINDS.length * 8)
    if (taken > 0) grown++
    expect(bound > 0).toBe(taken > 0)
    publish(store, n)
  }
  // 16 entries and 32 slots at first, twice as many each time.
  expect(grown).toBe(7)
  expect(dictionaryGrowthBytes(emptyStore().memory, 1)).toBe(6 * (16 * 16 + 32 * 4))
  expect(dictionaryGrowthBytes(emptyStore().memory, 16)).toBe(6 * (16 * 16 + 32 * 4))
})

test('the space of a smaller table is free after it was copied', () => {
  const store = emptyStore()
  for (let n = 0; n < 17; n++) internText(store, NAMES.area, String(n))
  for (let n = 0; n < 2; n++) publish(store, n)
  expect(store.writer.limbo.addresses).toEqual([])
  // Names, 32 entries, and 64 slots with their mask.
  expect(store.writer.records.usedBytes).toBe(17 * 8 + 32 * 16 + 65 * 4 + 4)
})

test.each([
  ['', '', 0],
  ['a', 'b', -1],
  ['b', 'a', 1],
  ['a', 'ab', -1],
  ['ab', 'a', 1],
  ['Z', 'a', -1],
  ['é', 'z', 1],
])('the bytes of "%s" compared with those of "%s" give the sign %i', (a, b, sign) => {
  expect(Math.sign(compareBytes(encoder.encode(a), encoder.encode(b)))).toBe(sign)
})
