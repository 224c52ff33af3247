import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createHeap,
  createList,
  createRing,
  createWheel,
  type HeapItem,
  heapFirst,
  heapPush,
  heapRemove,
  heapUpdate,
  listAppend,
  listRemove,
  NO_SLOT,
  NOT_IN_HEAP,
  ringAt,
  ringPush,
  ringShift,
  wheelAdd,
  wheelTake,
  wheelWaitMs,
} from './containers.ts'
import { addById, createIdIndex, findById, itemsOf, removeById } from './id-index.ts'

describe('a heap', () => {
  type Item = HeapItem & { key: number; readonly id: number }
  const isBefore = (a: Item, b: Item) => a.key < b.key || (a.key === b.key && a.id < b.id)
  const steps = fc.array(fc.tuple(fc.constantFrom('push', 'push', 'remove', 'update'), fc.nat(20), fc.nat(99)), {
    maxLength: 60,
  })

  test('has its items in order, whatever enters, leaves and changes', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const heap = createHeap<Item>(isBefore)
        const model: Item[] = []
        for (const [n, [kind, key, at]] of all.entries()) {
          const chosen = model[at % model.length]
          if (kind === 'push' || chosen === undefined) {
            const item = { heapIndex: NOT_IN_HEAP, key, id: n }
            heapPush(heap, item)
            model.push(item)
          } else if (kind === 'update') {
            chosen.key = key
            heapUpdate(heap, chosen)
          } else {
            heapRemove(heap, chosen)
            model.splice(model.indexOf(chosen), 1)
            expect(chosen.heapIndex).toBe(NOT_IN_HEAP)
          }
          const sorted = model.toSorted((a, b) => a.key - b.key || a.id - b.id)
          for (const count of [0, 1, 3, model.length, model.length + 1])
            expect(heapFirst(heap, count).map(({ id }) => id)).toEqual(sorted.slice(0, count).map(({ id }) => id))
          expect(heap.items.every((item, index) => item.heapIndex === index)).toBe(true)
        }
      }),
    )
  })
})

test('a list keeps its order when items leave from its start, its middle and its end', () => {
  type Item = { readonly id: number; next: Item | undefined; previous: Item | undefined }
  const list = createList<Item>()
  const items = [0, 1, 2, 3, 4].map((id): Item => ({ id, next: undefined, previous: undefined }))
  for (const item of items) listAppend(list, item)
  const forwards = () => {
    const ids = []
    for (let at = list.first; at !== undefined; at = at.next) ids.push(at.id)
    return ids
  }
  const backwards = () => {
    const ids = []
    for (let at = list.last; at !== undefined; at = at.previous) ids.push(at.id)
    return ids
  }
  const without = (id: number) => {
    listRemove(list, items[id] as Item)
    return [forwards(), backwards(), list.length]
  }

  expect(without(2)).toEqual([[0, 1, 3, 4], [4, 3, 1, 0], 4])
  expect(without(0)).toEqual([[1, 3, 4], [4, 3, 1], 3])
  expect(without(4)).toEqual([[1, 3], [3, 1], 2])
  expect(without(1)).toEqual([[3], [3], 1])
  expect(without(3)).toEqual([[], [], 0])
  listAppend(list, items[2] as Item)
  expect([forwards(), backwards()]).toEqual([[2], [2]])
})

test('a ring gives its items in the order in which they entered, also while it grows', () => {
  fc.assert(
    // A true value enters, a false one leaves. Sixteen fit before the ring grows.
    fc.property(fc.array(fc.boolean(), { minLength: 40, maxLength: 120 }), fc.nat(15), (steps, before) => {
      const ring = createRing<number>()
      const model: number[] = []
      // The head is somewhere inside when the ring is full for the first time.
      for (let n = 0; n < before; n++) {
        ringPush(ring, -1)
        ringShift(ring)
      }
      for (const [n, enters] of [...steps, ...new Array<boolean>(20).fill(true)].entries()) {
        if (enters) {
          ringPush(ring, n)
          model.push(n)
        } else expect(ringShift(ring)).toBe(model.shift())
        expect(ring.length).toBe(model.length)
        expect(model.map((_, index) => ringAt(ring, index))).toEqual(model)
        expect(() => ringAt(ring, model.length)).toThrow('an item of the ring')
      }
      expect(() => ringAt(ring, -1)).toThrow('an item of the ring')
    }),
  )
})

describe('a timing wheel', () => {
  type Item = { readonly id: string; slot: number; next: Item | undefined; previous: Item | undefined }
  const itemOf = (id: string): Item => ({ id, slot: NO_SLOT, next: undefined, previous: undefined })
  const START = 1_000_000
  /** The ids of the items that are taken at a time. */
  const takenAt = (wheel: ReturnType<typeof createWheel<Item>>, nowMs: number) => {
    const ids = []
    for (let item = wheelTake(wheel, nowMs); item !== undefined; item = wheelTake(wheel, nowMs)) {
      expect(item.slot).toBe(NO_SLOT)
      ids.push(item.id)
    }
    return ids
  }

  test('gives items from their time on, rounded up to tenths of a second, and waits for the next', () => {
    const wheel = createWheel<Item>(START)
    for (const [id, afterMs] of [
      ['late', 250],
      ['soon', 101],
      ['due', 0],
      ['past', -5_000],
      ['exact', 200],
    ] as const)
      wheelAdd(wheel, itemOf(id), START + afterMs)

    expect(takenAt(wheel, START)).toEqual(['due', 'past'])
    expect(wheelWaitMs(wheel, START)).toBe(100)
    expect(takenAt(wheel, START + 199)).toEqual([])
    expect(wheelWaitMs(wheel, START + 199)).toBe(1)
    expect(takenAt(wheel, START + 200)).toEqual(['soon', 'exact'])
    expect(takenAt(wheel, START + 10_000)).toEqual(['late'])
    expect(wheelWaitMs(wheel, START + 10_000)).toBe(Number.POSITIVE_INFINITY)
  })

  test('gives every item after a pause that is longer than its horizon, and only once', () => {
    const wheel = createWheel<Item>(START)
    for (const afterMs of [100, 5_000, 409_500]) wheelAdd(wheel, itemOf(`${afterMs}`), START + afterMs)

    expect(takenAt(wheel, START + 3_600_000).toSorted()).toEqual(['100', '409500', '5000'])
    expect(wheel.count).toBe(0)
    wheelAdd(wheel, itemOf('next'), START + 3_600_300)
    expect(takenAt(wheel, START + 3_600_200)).toEqual([])
    expect(takenAt(wheel, START + 3_600_300)).toEqual(['next'])
  })
})

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
