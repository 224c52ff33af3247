/** A codec list while it is edited: each entry knows which one of the list in force it was. Pure. */

export type Entry = {
  /** Its own for as long as the list is edited, whatever it is called. */
  readonly key: number
  readonly name: string
  readonly was: string | null
}
export type Draft = { readonly entries: readonly Entry[]; readonly nextKey: number }

/** docs/design/http.md#codec-list; the control plane has the last word. */
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

/** @param by places, negative towards the beginning; beyond an end it stays there */
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

/** What is wrong with an entry; '' when nothing is. */
export function faultOf({ entries }: Draft, { key, name }: Entry): string {
  if (name === '') return 'Give it a name'
  if (name.trim() !== name) return 'It must not begin or end with a blank'
  if (/[,|"\\]/.test(name)) return 'It must not hold , | " or \\'
  if (/\p{Cc}/u.test(name)) return 'It must not hold control characters'
  if (encoder.encode(name).length > NAME_BYTES_MAX) return `It must have ${NAME_BYTES_MAX} bytes at most`
  const same = entries.find((other) => other.key !== key && other.name.toLowerCase() === name.toLowerCase())
  return same ? `It repeats ${same.name}: letter case does not tell names apart` : ''
}

/** What becomes of an entry, in a word beside it; '' when it stays as it is. */
export function changeOf({ name, was }: Entry, at: number, names: readonly string[]): string {
  if (was === null) return 'new'
  const words = [
    ...(was === name ? [] : [`was ${was}`]),
    ...(names.indexOf(was) === at ? [] : [`from place ${names.indexOf(was)}`]),
  ]
  return words.join(', ')
}
