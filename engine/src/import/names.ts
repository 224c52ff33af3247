/** Names of one kind, by their bytes: numbered in order of appearance, and ranked by bytes at the end. */

import { compareBytes } from '@vacancy/shared'

export type Names = {
  count: number
  /** UTF-8 bytes of name i: bytes[starts[i], starts[i + 1]). */
  bytes: Uint8Array
  starts: Uint32Array
  /** Open addressing: name + 1, 0 = free. */
  slots: Uint32Array
  /** The last name looked up: neighbours in a file often share it. */
  last: number
}

export function createNames(): Names {
  return {
    count: 0,
    bytes: new Uint8Array(1024),
    starts: new Uint32Array(64),
    slots: new Uint32Array(64),
    last: -1,
  }
}

/** @returns the number of the name text[start, end), assigned now if it is new */
export function numberOf(names: Names, text: Uint8Array, start: number, end: number): number {
  if (names.last >= 0 && isName(names, names.last, text, start, end)) return names.last
  const mask = names.slots.length - 1
  let slot = hashBytes(text, start, end) & mask
  for (;;) {
    const name = names.slots[slot] - 1
    if (name < 0) break
    if (isName(names, name, text, start, end)) {
      names.last = name
      return name
    }
    slot = (slot + 1) & mask
  }
  const name = append(names, text, start, end)
  names.slots[slot] = name + 1
  names.last = name
  if (names.count * 2 > names.slots.length) growSlots(names)
  return name
}

function isName({ bytes, starts }: Names, name: number, text: Uint8Array, start: number, end: number): boolean {
  const from = starts[name]
  if (starts[name + 1] - from !== end - start) return false
  for (let i = start; i < end; i++) {
    if (bytes[from + i - start] !== text[i]) return false
  }
  return true
}

function append(names: Names, text: Uint8Array, start: number, end: number): number {
  const from = names.starts[names.count]
  const to = from + end - start
  if (to > names.bytes.length) {
    const bytes = new Uint8Array(Math.max(names.bytes.length * 2, to))
    bytes.set(names.bytes)
    names.bytes = bytes
  }
  if (names.count + 2 > names.starts.length) {
    const starts = new Uint32Array(names.starts.length * 2)
    starts.set(names.starts)
    names.starts = starts
  }
  for (let i = start; i < end; i++) names.bytes[from + i - start] = text[i]
  names.count++
  names.starts[names.count] = to
  return names.count - 1
}

function growSlots(names: Names): void {
  const slots = new Uint32Array(names.slots.length * 4)
  for (let name = 0; name < names.count; name++) {
    let slot = hashBytes(names.bytes, names.starts[name], names.starts[name + 1]) & (slots.length - 1)
    while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1)
    slots[slot] = name + 1
  }
  names.slots = slots
}

/** FNV-1a, finished. */
function hashBytes(text: Uint8Array, start: number, end: number): number {
  let h = 0x811c9dc5
  for (let i = start; i < end; i++) h = Math.imul(h ^ text[i], 0x01000193)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  return (h ^ (h >>> 13)) >>> 0
}

/** @returns rank by bytes of each name */
export function ranksOf(names: Names): Uint32Array {
  const { count } = names
  const order = Array.from({ length: count }, (_, name) => name)
  order.sort((a, b) => compareBytes(bytesOf(names, a), bytesOf(names, b)))
  const ranks = new Uint32Array(count)
  for (const [rank, name] of order.entries()) ranks[name] = rank
  return ranks
}

function bytesOf({ bytes, starts }: Names, name: number): Uint8Array {
  return bytes.subarray(starts[name], starts[name + 1])
}

/** The names as text, in the order of their ranks. */
export function sortedNames(names: Names, ranks: Uint32Array): string[] {
  const decoder = new TextDecoder()
  const sorted = new Array<string>(names.count)
  for (let name = 0; name < names.count; name++) sorted[ranks[name]] = decoder.decode(bytesOf(names, name))
  return sorted
}
