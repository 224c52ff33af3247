/**
 * Records of the writing thread by the packed id at their start: an open hash table of their addresses, at most half
 * full. 8 to 16 bytes a record, where a map of texts takes about 90.
 */

export type IdIndex = { slots: Uint32Array; count: number }

const SLOTS_MIN = 64

export function createIdIndex(): IdIndex {
  return { slots: new Uint32Array(SLOTS_MIN), count: 0 }
}

export function clearIds(index: IdIndex): void {
  index.slots = new Uint32Array(SLOTS_MIN)
  index.count = 0
}

export function hashOfId(bytes: Uint8Array, start: number): number {
  let h = 0x9e3779b1
  for (let i = 0; i < 16; i++) h = Math.imul(h ^ bytes[start + i], 0x01000193)
  h ^= h >>> 15
  h = Math.imul(h, 0x85ebca6b)
  return (h ^ (h >>> 13)) >>> 0
}

/** @returns the slot of the record with the id at `start` of `bytes`, or the free one where it belongs */
function slotOf({ slots }: IdIndex, u8: Uint8Array, bytes: Uint8Array, start: number): number {
  const mask = slots.length - 1
  for (let i = hashOfId(bytes, start) & mask; ; i = (i + 1) & mask) {
    const address = slots[i] as number
    if (address === 0) return i
    let same = 0
    while (same < 16 && u8[address + same] === bytes[start + same]) same++
    if (same === 16) return i
  }
}

/** @param u8 the memory that has the records. @returns the address of the record with the id, 0 when there is none */
export function findId(index: IdIndex, u8: Uint8Array, bytes: Uint8Array, start: number): number {
  return index.slots[slotOf(index, u8, bytes, start)] as number
}

/** Adds a record, or replaces the one with its id. */
export function putId(index: IdIndex, u8: Uint8Array, address: number): void {
  if ((index.count + 1) * 2 > index.slots.length) {
    const { slots } = index
    index.slots = new Uint32Array(slots.length * 2)
    for (const each of slots) if (each !== 0) index.slots[slotOf(index, u8, u8, each)] = each
  }
  const slot = slotOf(index, u8, u8, address)
  if (index.slots[slot] === 0) index.count++
  index.slots[slot] = address
}

/** Removes the record, whose id is still at its start. */
export function removeId(index: IdIndex, u8: Uint8Array, address: number): void {
  const { slots } = index
  const mask = slots.length - 1
  let free = slotOf(index, u8, u8, address)
  if (slots[free] !== address) return
  slots[free] = 0
  index.count--
  // Records behind it move up, so that no search ends before it reaches them.
  for (let i = (free + 1) & mask; slots[i] !== 0; i = (i + 1) & mask) {
    const home = hashOfId(u8, slots[i] as number) & mask
    if (((i - home) & mask) < ((i - free) & mask)) continue
    slots[free] = slots[i] as number
    slots[i] = 0
    free = i
  }
}
