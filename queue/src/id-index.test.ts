import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addById, createIdIndex, findById, itemsOf, removeById } from './id-index.ts'

type Item = { readonly id: string; readonly n: number }

const ids = fc.oneof(
  fc.nat(60).map((n) => `job-${n}`),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 4 }),
)

test('has what a map has, whatever is added and removed', () => {
  fc.assert(
    fc.property(fc.array(ids, { maxLength: 300 }), (all) => {
      const index = createIdIndex<Item>(Math.random)
      const model = new Map<string, Item>()
      for (const [n, id] of all.entries()) {
        expect(findById(index, id)).toBe(model.get(id))
        if (model.delete(id)) removeById(index, id)
        else {
          const item = { id, n }
          model.set(id, item)
          addById(index, item)
        }
        expect(index.size).toBe(model.size)
      }
      for (const [id, item] of model) expect(findById(index, id)).toBe(item)
      expect(itemsOf(index).sort((a, b) => a.n - b.n)).toEqual([...model.values()])
    }),
  )
})

test('grows and shrinks with its items, some of which have equal hashes', () => {
  const items = Array.from({ length: 200_000 }, (_, n): Item => ({ id: `00000000-${n}`, n }))
  const index = createIdIndex<Item>(() => 0.5)
  for (const item of items) addById(index, item)

  expect(index.size).toBe(items.length)
  expect(index.hashes.length).toBe(2 ** 19)
  // 32 bits for 200,000 ids: a few are equal.
  const hashes = new Set(index.hashes.filter((hash) => hash !== 0))
  expect(hashes.size).toBeLessThan(items.length)
  expect(hashes.size).toBeGreaterThan(items.length - 50)
  expect(items.every((item) => findById(index, item.id) === item)).toBe(true)
  expect(findById(index, 'another')).toBeUndefined()

  for (const { id, n } of items) if (n % 100 !== 0) removeById(index, id)
  expect(itemsOf(index)).toHaveLength(2_000)
  expect(index.hashes.length).toBe(2 ** 13)
  expect(items.every((item) => (findById(index, item.id) === item) === (item.n % 100 === 0))).toBe(true)
})

test('an id is added once and removed once', () => {
  const index = createIdIndex<Item>(Math.random)
  const first = { id: 'a', n: 1 }
  expect(addById(index, first)).toBeUndefined()
  expect(addById(index, { id: 'a', n: 2 })).toBe(first)
  expect(findById(index, 'a')).toBe(first)
  removeById(index, 'a')
  expect(() => removeById(index, 'a')).toThrow('removed once')
  expect(findById(undefined, 'a')).toBeUndefined()
})

test('each index has hashes of its own', () => {
  const [one, other] = [createIdIndex<Item>(Math.random), createIdIndex<Item>(Math.random)]
  for (let n = 0; n < 10; n++) for (const index of [one, other]) addById(index, { id: `job-${n}`, n })
  expect([...one.hashes].sort()).not.toEqual([...other.hashes].sort())
})
