/** A codec list being edited. Each entry keeps its original name. Pure. */
import * as copy from './copy.ts'

export type Entry = {
  /** Stable while the list is edited. */
  readonly key: number
  readonly name: string
  readonly was: string | null
}
export type Draft = { readonly entries: readonly Entry[]; readonly nextKey: number }

/** docs/design/http.md#codec-list; the control plane checks it as well. */
export const ENTRIES_MAX = 24
const NAME_BYTES_MAX = 64
const encoder = new TextEncoder()

export function draftOf(names: readonly string[]): Draft {
  return { entries: names.map((name, key) => ({ key, name, was: name })), nextKey: names.length }
}

export function added({ entries, nextKey }: Draft): Draft {
  return { entries: [...entries, { key: nextKey, name: '', was: null }], nextKey: nextKey + 1 }
}

export function removed({ entries, nextKey }: Draft, key: number): Draft {
  return { entries: entries.filter((entry) => entry.key !== key), nextKey }
}

export function renamed({ entries, nextKey }: Draft, key: number, name: string): Draft {
  return { entries: entries.map((entry) => (entry.key === key ? { ...entry, name } : entry)), nextKey }
}

/** @param by positions, negative towards the start; clamped to the list */
export function moved({ entries, nextKey }: Draft, key: number, by: number): Draft {
  const from = entries.findIndex((entry) => entry.key === key)
  const to = Math.max(0, Math.min(entries.length - 1, from + by))
  const [entry] = entries.slice(from, from + 1)
  if (!entry || from === to) return { entries, nextKey }
  const others = entries.filter((one) => one !== entry)
  return { entries: [...others.slice(0, to), entry, ...others.slice(to)], nextKey }
}

export function isSame({ entries }: Draft, names: readonly string[]): boolean {
  return entries.length === names.length && entries.every(({ name }, at) => name === names[at])
}

/** The error of an entry; '' for a valid one. */
export function faultOf({ entries }: Draft, { key, name }: Entry): string {
  if (name === '') return copy.entryErrors.empty
  if (name.trim() !== name) return copy.entryErrors.blanks
  if (/[,|"\\]/.test(name)) return copy.entryErrors.characters
  if (/\p{Cc}/u.test(name)) return copy.entryErrors.control
  if (encoder.encode(name).length > NAME_BYTES_MAX) return copy.entryErrors.tooLong(NAME_BYTES_MAX)
  const same = entries.find((other) => other.key !== key && other.name.toLowerCase() === name.toLowerCase())
  return same ? copy.entryErrors.duplicate(same.name) : ''
}

/** The change of an entry; '' when unchanged. */
export function changeOf({ name, was }: Entry, at: number, names: readonly string[]): string {
  if (was === null) return copy.entryChanges.new
  const changes = [
    ...(was === name ? [] : [copy.entryChanges.was(was)]),
    ...(names.indexOf(was) === at ? [] : [copy.entryChanges.from(names.indexOf(was))]),
  ]
  return changes.join(', ')
}
