/**
 * The codec list: names of rate features ↔ bits of a mask, and the hashes by which nodes compare lists
 * (docs/design/http.md#codec-list).
 */

import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { LIMITS } from './domain.ts'
import { VacancyError } from './errors.ts'
import { cleanErrorText, textFault } from './text.ts'

export type CodecList = {
  /** In order: entry i is bit i of every mask. */
  readonly names: readonly string[]
  readonly indexOf: ReadonlyMap<string, number>
  /** Ignores order, case and the boundaries between names. May exceed 2^53: print its digits verbatim. */
  readonly hash: bigint
  /** The same hash as 16 hexadecimal digits. */
  readonly hashHex: string
  /** Differs for any two different lists: hexadecimal SHA-256 of their JSON. */
  readonly orderedHash: string
  /** The GETCODECS reply: the names joined by commas. */
  readonly text: string
}

const encoder = new TextEncoder()
const SEPARATORS = /[,|"\\]/

/**
 * Validates a list of names read from a file.
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
    const fault = nameFault(entry)
    if (fault !== '') throw invalid(`entry ${i + 1}, ${cleanErrorText(entry)},`, fault)
    const same = lowered.get(entry.toLowerCase())
    if (same !== undefined) throw invalid(`entry ${i + 1}, ${entry},`, `repeats ${same}; names are case-insensitive`)
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
  const fault = textFault(bytes, 0, bytes.length, LIMITS.featureBytesMax)
  if (fault !== '') return fault
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
 * little-endian u64. This is the hash of the existing registry, in which `["ab","c"]` and `["a","bc"]` are equal.
 */
function unorderedHash(names: readonly string[]): bigint {
  const sorted = names.map((name) => encoder.encode(name.toLowerCase())).sort(compareBytes)
  const digest = sorted.reduce((state, bytes) => state.update(bytes), sha256.create()).digest()
  return new DataView(digest.buffer, digest.byteOffset).getBigUint64(0, true)
}

/** The mask of some names: bit i for entry i. Undefined when a name is not in the list. */
export function maskOf(codecs: CodecList, names: Iterable<string>): number | undefined {
  let mask = 0
  for (const name of names) {
    const bit = codecs.indexOf.get(name)
    if (bit === undefined) return undefined
    mask |= 1 << bit
  }
  return mask
}

/** The names of a mask, in list order. Undefined when the mask has a bit beyond the list. */
export function namesOf(codecs: CodecList, mask: number): string[] | undefined {
  if (mask >>> codecs.names.length !== 0) return undefined
  const names: string[] = []
  for (let left = mask; left !== 0; left &= left - 1) names.push(codecs.names[31 - Math.clz32(left & -left)] as string)
  return names
}

/** Order of byte strings: negative, 0 or positive. JavaScript's own string order differs above U+FFFF. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) {
    const difference = (a[i] as number) - (b[i] as number)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}
