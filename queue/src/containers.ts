/** Containers of the queue. Each takes one item in or out in O(log n) or better, from any place. */
import { assert } from '@vacancy/shared'

/** An item knows its place, so that it can leave from anywhere; a heap sets it. */
export type HeapItem = { heapIndex: number }
/** `heapIndex` of an item that is in no heap. */
export const NOT_IN_HEAP = -1

/** A binary min-heap. */
export type Heap<T extends HeapItem> = {
  readonly items: T[]
  readonly isBefore: (a: T, b: T) => boolean
}

export function createHeap<T extends HeapItem>(isBefore: (a: T, b: T) => boolean): Heap<T> {
  return { items: [], isBefore }
}

export function heapPush<T extends HeapItem>(heap: Heap<T>, item: T): void {
  assert(item.heapIndex === NOT_IN_HEAP, 'an item is in one heap at a time')
  heap.items.push(item)
  rise(heap, item, heap.items.length - 1)
}

/** Removes an item from any place. */
export function heapRemove<T extends HeapItem>(heap: Heap<T>, item: T): void {
  const index = item.heapIndex
  assert(heap.items[index] === item, 'an item leaves the heap that it is in')
  const last = heap.items.pop() as T
  item.heapIndex = NOT_IN_HEAP
  if (last !== item) settle(heap, last, index)
}

/** Restores the order after the key of an item changed. */
export function heapUpdate<T extends HeapItem>(heap: Heap<T>, item: T): void {
  settle(heap, item, item.heapIndex)
}

/** The first `count` items in order, without removing them, in O(count log count). */
export function heapFirst<T extends HeapItem>({ items, isBefore }: Heap<T>, count: number): T[] {
  const found: T[] = []
  const edge: number[] = items.length > 0 ? [0] : []
  while (found.length < count && edge.length > 0) {
    let least = 0
    for (let n = 1; n < edge.length; n++)
      if (isBefore(items[edge[n] as number] as T, items[edge[least] as number] as T)) least = n
    const index = edge[least] as number
    found.push(items[index] as T)
    const children = [2 * index + 1, 2 * index + 2].filter((child) => child < items.length)
    edge.splice(least, 1, ...children)
  }
  return found
}

function settle<T extends HeapItem>(heap: Heap<T>, item: T, index: number): void {
  const parent = heap.items[(index - 1) >> 1]
  if (index > 0 && heap.isBefore(item, parent as T)) rise(heap, item, index)
  else sink(heap, item, index)
}

function rise<T extends HeapItem>({ items, isBefore }: Heap<T>, item: T, from: number): void {
  let index = from
  while (index > 0) {
    const above = (index - 1) >> 1
    const parent = items[above] as T
    if (!isBefore(item, parent)) break
    items[index] = parent
    parent.heapIndex = index
    index = above
  }
  items[index] = item
  item.heapIndex = index
}

function sink<T extends HeapItem>({ items, isBefore }: Heap<T>, item: T, from: number): void {
  const { length } = items
  let index = from
  while (2 * index + 1 < length) {
    let below = 2 * index + 1
    if (below + 1 < length && isBefore(items[below + 1] as T, items[below] as T)) below++
    const child = items[below] as T
    if (!isBefore(child, item)) break
    items[index] = child
    child.heapIndex = index
    index = below
  }
  items[index] = item
  item.heapIndex = index
}

/** An item of a list; it is in one list at a time. */
export type ListItem<T> = { next: T | undefined; previous: T | undefined }

/** A doubly linked list through the items themselves. */
export type List<T extends ListItem<T>> = { first: T | undefined; last: T | undefined; length: number }

export function createList<T extends ListItem<T>>(): List<T> {
  return { first: undefined, last: undefined, length: 0 }
}

export function listAppend<T extends ListItem<T>>(list: List<T>, item: T): void {
  item.previous = list.last
  item.next = undefined
  if (list.last === undefined) list.first = item
  else list.last.next = item
  list.last = item
  list.length++
}

/** @param item must be in this list */
export function listRemove<T extends ListItem<T>>(list: List<T>, item: T): void {
  if (item.previous === undefined) list.first = item.next
  else item.previous.next = item.next
  if (item.next === undefined) list.last = item.previous
  else item.next.previous = item.previous
  item.next = undefined
  item.previous = undefined
  list.length--
  assert(list.length >= 0, 'a list has no negative length')
}

/** A FIFO queue in a growing ring. */
export type Ring<T> = { items: (T | undefined)[]; head: number; length: number }

const RING_START = 16

export function createRing<T>(): Ring<T> {
  return { items: new Array(RING_START), head: 0, length: 0 }
}

export function ringPush<T>(ring: Ring<T>, item: T): void {
  if (ring.length === ring.items.length) {
    const grown: (T | undefined)[] = new Array(ring.length * 2)
    for (let n = 0; n < ring.length; n++) grown[n] = ring.items[(ring.head + n) & (ring.length - 1)]
    ring.items = grown
    ring.head = 0
  }
  ring.items[(ring.head + ring.length) & (ring.items.length - 1)] = item
  ring.length++
}

/** @param index from the oldest */
export function ringAt<T>({ items, head, length }: Ring<T>, index: number): T {
  assert(index >= 0 && index < length, 'an item of the ring')
  return items[(head + index) & (items.length - 1)] as T
}

export function ringShift<T>(ring: Ring<T>): T | undefined {
  if (ring.length === 0) return undefined
  const item = ring.items[ring.head]
  ring.items[ring.head] = undefined
  ring.head = (ring.head + 1) & (ring.items.length - 1)
  ring.length--
  return item
}

/** An item of a timing wheel: `slot` is NO_SLOT when it is in none. */
export type WheelItem<T> = ListItem<T> & { slot: number }
export const NO_SLOT = -1

const SLOT_MS = 100
const SLOTS = 4_096

/**
 * A timing wheel: items by the time at which they are looked at next, in slots of 100 ms. An item beyond the horizon of
 * seven minutes is looked at there and put back.
 */
export type Wheel<T extends WheelItem<T>> = {
  readonly slots: List<T>[]
  /** The slot that `wheelTake` looks at next, counted from time 0. */
  tick: number
  count: number
}

/** @param nowMs monotonic */
export function createWheel<T extends WheelItem<T>>(nowMs: number): Wheel<T> {
  return {
    slots: Array.from({ length: SLOTS }, () => createList<T>()),
    tick: Math.floor(nowMs / SLOT_MS),
    count: 0,
  }
}

export function wheelAdd<T extends WheelItem<T>>(wheel: Wheel<T>, item: T, atMs: number): void {
  // Rounded up: an item is never looked at before its time.
  const tick = Math.ceil(atMs / SLOT_MS)
  const bounded = Math.min(Math.max(tick, wheel.tick), wheel.tick + SLOTS - 1)
  item.slot = bounded % SLOTS
  listAppend(wheel.slots[item.slot] as List<T>, item)
  wheel.count++
}

export function wheelRemove<T extends WheelItem<T>>(wheel: Wheel<T>, item: T): void {
  assert(item.slot !== NO_SLOT, 'an item leaves a wheel that it is in')
  listRemove(wheel.slots[item.slot] as List<T>, item)
  item.slot = NO_SLOT
  wheel.count--
}

/** Removes the next item whose time has come. */
export function wheelTake<T extends WheelItem<T>>(wheel: Wheel<T>, nowMs: number): T | undefined {
  const last = Math.floor(nowMs / SLOT_MS)
  // After a long pause one turn visits every slot.
  if (wheel.count === 0 || last - wheel.tick > SLOTS) wheel.tick = Math.max(wheel.tick, last - SLOTS)
  while (wheel.tick <= last) {
    const item = wheel.slots[wheel.tick % SLOTS]?.first
    if (item !== undefined) {
      wheelRemove(wheel, item)
      return item
    }
    if (wheel.count === 0) wheel.tick = last
    wheel.tick++
  }
  return undefined
}

/** Until the next slot is looked at; infinite for an empty wheel. */
export function wheelWaitMs<T extends WheelItem<T>>(wheel: Wheel<T>, nowMs: number): number {
  return wheel.count === 0 ? Number.POSITIVE_INFINITY : Math.max(0, wheel.tick * SLOT_MS - nowMs)
}
