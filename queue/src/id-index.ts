/**
 * Items by id, in a hash table with linear probing. A `Map` would make each id that it holds an internalized string of
 * V8, with an entry in a table of its own: with a million jobs this took a sixth of the main thread's time at a start.
 */
import { assert } from '@vacancy/shared'

type Identified = { readonly id: string }

export type IdIndex<T extends Identified> = {
  size: number
  /** By slot, a power of two; 0: the slot is empty. */
  hashes: Int32Array
  items: (T | undefined)[]
  /** Two words of 32 bits that clients do not know, so that they cannot choose ids with equal hashes. */
  readonly key: readonly [number, number]
}

const SLOTS_MIN = 16

/** @param random a value of [0, 1) */
export function createIdIndex<T extends Identified>(random: () => number): IdIndex<T> {
  const word = () => (random() * 2 ** 32) | 0
  return { size: 0, ...emptySlots(SLOTS_MIN), key: [word(), word()] }
}

function emptySlots(count: number): { hashes: Int32Array; items: undefined[] } {
  return { hashes: new Int32Array(count), items: new Array(count) }
}

export function findById<T extends Identified>(index: IdIndex<T> | undefined, id: string): T | undefined {
  return index?.items[slotOf(index, id, hashOf(index, id))]
}

/** Adds an item unless its id is known. @returns the item that has this id already */
export function addById<T extends Identified>(index: IdIndex<T>, item: T): T | undefined {
  const hash = hashOf(index, item.id)
  const slot = slotOf(index, item.id, hash)
  if (index.hashes[slot] !== 0) return index.items[slot]
  index.hashes[slot] = hash
  index.items[slot] = item
  index.size++
  if (index.size * 4 > index.hashes.length * 3) resize(index, index.hashes.length * 2)
  return undefined
}

/** @throws when no item has this id */
export function removeById<T extends Identified>(index: IdIndex<T>, id: string): void {
  const { hashes, items } = index
  const mask = hashes.length - 1
  let free = slotOf(index, id, hashOf(index, id))
  assert(hashes[free] !== 0, 'an id is removed once')
  // Items behind it move up, so that a search from their own slot does not end at the free one.
  for (let slot = (free + 1) & mask; hashes[slot] !== 0; slot = (slot + 1) & mask) {
    const hash = hashes[slot] as number
    if (((slot - hash) & mask) < ((slot - free) & mask)) continue
    hashes[free] = hash
    items[free] = items[slot]
    free = slot
  }
  hashes[free] = 0
  items[free] = undefined
  index.size--
  if (index.size * 8 < hashes.length && hashes.length > SLOTS_MIN) resize(index, hashes.length / 2)
}

/** In no order. */
export function itemsOf<T extends Identified>({ items }: IdIndex<T>): T[] {
  return items.filter((item) => item !== undefined)
}

/** The slot of an id, or the empty one where it would be. */
function slotOf<T extends Identified>({ hashes, items }: IdIndex<T>, id: string, hash: number): number {
  const mask = hashes.length - 1
  let slot = hash & mask
  while (hashes[slot] !== 0 && (hashes[slot] !== hash || (items[slot] as T).id !== id)) slot = (slot + 1) & mask
  return slot
}

function resize<T extends Identified>(index: IdIndex<T>, count: number): void {
  const { hashes, items } = index
  const mask = count - 1
  Object.assign(index, emptySlots(count))
  for (let from = 0; from < hashes.length; from++) {
    const hash = hashes[from] as number
    if (hash === 0) continue
    let slot = hash & mask
    while (index.hashes[slot] !== 0) slot = (slot + 1) & mask
    index.hashes[slot] = hash
    index.items[slot] = items[from]
  }
}

/** HalfSipHash-1-3 of the UTF-16 units, two in a word; never 0. */
function hashOf({ key: [k0, k1] }: Pick<IdIndex<Identified>, 'key'>, id: string): number {
  let v0 = k0
  let v1 = k1
  let v2 = k0 ^ 0x6c796765
  let v3 = k1 ^ 0x74656462
  const { length } = id
  const words = length >> 1
  // One round for each word, one for the last unit and the length, and three at the end.
  for (let n = 0; n < words + 4; n++) {
    let word = 0
    if (n < words) word = id.charCodeAt(2 * n) | (id.charCodeAt(2 * n + 1) << 16)
    else if (n === words) word = (length << 16) | ((length & 1) === 0 ? 0 : id.charCodeAt(length - 1))
    else if (n === words + 1) v2 ^= 0xff
    v3 ^= word
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
    v0 ^= word
  }
  return v1 ^ v3 || 1
}
