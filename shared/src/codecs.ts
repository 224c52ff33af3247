/** The codec list: names of rate features ↔ bits of a mask, and the hashes by which nodes compare lists (platform.md §2.5). */

import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { LIMITS } from './domain.ts'
import { VacancyError } from './errors.ts'
import { cleanErrorText, textFault } from './text.ts'

export type CodecList = {
  /** In order: entry i is bit i of every mask. */
  readonly names: readonly string[]
  readonly indexOf: ReadonlyMap<string, number>
  /** Ignores order, case and where one name ends and the next begins; greater than 2^53: print its digits verbatim. */
  readonly hash: bigint
  /** The same as 16 hexadecimal digits. */
  readonly hashHex: string
  /** Tells any two different lists apart: hexadecimal SHA-256 of their JSON. */
  readonly orderedHash: string
  /** What GETCODECS answers: the names joined by commas. */
  readonly text: string
}

const encoder = new TextEncoder()
const SEPARATORS = /[,|"\\]/

/**
 * Checks a list of names as it comes from a file.
 *
 * @throws VacancyError invalid_codecs, naming the entry
 */
export function createCodecList(entries: readonly unknown[]): CodecList {
  if (entries.length < 1 || entries.length > LIMITS.featuresMax) {
    throw invalid('the list', `must have 1 to ${LIMITS.featuresMax} entries, has ${entries.length}`)
  }
  const names: string[] = []
  const lowered = new Map<string, string>()
  for (const [i, entry] of entries.entries()) {
    if (typeof entry !== 'string') throw invalid(`entry ${i + 1}`, `must be text, is ${JSON.stringify(entry)}`)
    const says = nameFault(entry)
    if (says !== '') throw invalid(`entry ${i + 1}, ${cleanErrorText(entry)},`, says)
    const same = lowered.get(entry.toLowerCase())
    if (same !== undefined)
      throw invalid(`entry ${i + 1}, ${entry},`, `repeats ${same}; letter case does not tell names apart`)
    lowered.set(entry.toLowerCase(), entry)
    names.push(entry)
  }
  const hash = unorderedHash(names)
  return Object.freeze({
    names: Object.freeze(names),
    indexOf: new Map(names.map((name, i) => [name, i])),
    hash,
    hashHex: hash.toString(16).padStart(16, '0'),
    orderedHash: bytesToHex(sha256(encoder.encode(JSON.stringify(names)))),
    text: names.join(','),
  })
}

function nameFault(name: string): string {
  const bytes = encoder.encode(name)
  const says = textFault(bytes, 0, bytes.length, LIMITS.featureBytesMax)
  if (says !== '') return says
  if (!name.isWellFormed()) return 'is not valid Unicode'
  if (name.trim() !== name) return 'must not begin or end with a blank'
  if (SEPARATORS.test(name)) return 'must not hold , | " or \\'
  return ''
}

function invalid(entry: string, reason: string): VacancyError {
  return new VacancyError('invalid_codecs', { entry, reason })
}

/**
 * Lower-cased entries in byte order, SHA-256 over their bytes without separator, the first 8 digest bytes as a
 * little-endian u64: what the existing registry computes. `["ab","c"]` and `["a","bc"]` are one hash to it.
 */
function unorderedHash(names: readonly string[]): bigint {
  const sorted = names.map((name) => encoder.encode(name.toLowerCase())).sort(compareBytes)
  const digest = sorted.reduce((state, bytes) => state.update(bytes), sha256.create()).digest()
  return new DataView(digest.buffer, digest.byteOffset).getBigUint64(0, true)
}

/** The mask of some names: bit i for entry i; undefined when one of them is not in the list. */
export function maskOf(codecs: CodecList, names: Iterable<string>): number | undefined {
  let mask = 0
  for (const name of names) {
    const bit = codecs.indexOf.get(name)
    if (bit === undefined) return undefined
    mask |= 1 << bit
  }
  return mask
}

/** The names of a mask, in the order of the list; undefined when it has a bit beyond the list. */
export function namesOf(codecs: CodecList, mask: number): string[] | undefined {
  if (mask >>> codecs.names.length !== 0) return undefined
  return codecs.names.filter((_, bit) => ((mask >>> bit) & 1) === 1)
}

/** Order of byte strings: negative, 0 or positive. JavaScript's own order of strings differs beyond U+FFFF. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) {
    const difference = (a[i] as number) - (b[i] as number)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/**
 * The entry that someone who wrote `name` probably meant; undefined when none is near. Nearness is the number of
 * letters to insert, drop or change, ignoring case; of equally near ones, the first.
 */
export function nearestName(name: string, names: Iterable<string>): string | undefined {
  const wanted = [...name.slice(0, 2 * LIMITS.featureBytesMax).toLowerCase()]
  let nearest: string | undefined
  let nearestDistance = Number.POSITIVE_INFINITY
  for (const candidate of names) {
    const letters = [...candidate.toLowerCase()]
    const distance = editDistance(wanted, letters)
    // More than half of the letters different: another word, not a slip.
    if (distance * 2 > Math.max(wanted.length, letters.length) || distance >= nearestDistance) continue
    nearest = candidate
    nearestDistance = distance
  }
  return nearest
}

function editDistance(a: readonly string[], b: readonly string[]): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
