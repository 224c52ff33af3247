/**
 * The codec list: rate features by name, bit i for entry i, and its two hashes (platform.md §2.5).
 */

import { sha256 } from '@noble/hashes/sha2.js'
import { LIMITS } from './domain.ts'
import { VacancyError } from './errors.ts'

export type CodecList = {
  readonly names: readonly string[]
  readonly indexOf: ReadonlyMap<string, number>
  /** The registry's hash: blind to order and case, a u64. Nothing may rely on it alone. */
  readonly hash: bigint
  readonly hashHex: string
  /** SHA-256 of the list in its order, as hexadecimal digits: what snapshots and logs carry. */
  readonly orderedHash: string
  /** The names joined by commas, as on the wire. */
  readonly text: string
}

const encoder = new TextEncoder()
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const FORBIDDEN = /[,|"\\\u0000-\u001f\u007f]/

function faultOf(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'is not a text'
  if (name === '') return 'is empty'
  if (name.trim() !== name) return 'has blanks at its ends'
  if (FORBIDDEN.test(name)) return 'contains one of , | " \\ or a control character'
  if (encoder.encode(name).length > LIMITS.featureBytesMax) return `is longer than ${LIMITS.featureBytesMax} bytes`
  return undefined
}

/** @throws VacancyError `invalid_codecs` naming the entry */
export function createCodecList(names: readonly unknown[]): CodecList {
  if (names.length < 1 || names.length > LIMITS.featuresMax) {
    throw new VacancyError('invalid_codecs', {
      reason: `The codec list must have 1 to ${LIMITS.featuresMax} rate features, it has ${names.length}.`,
    })
  }
  const seen = new Set<string>()
  const checked = names.map((name, i) => {
    const fault = faultOf(name)
    if (fault) throw new VacancyError('invalid_codecs', { reason: `Rate feature ${i + 1} (${String(name)}) ${fault}.` })
    const text = name as string
    if (seen.has(text.toLowerCase())) {
      throw new VacancyError('invalid_codecs', {
        reason: `Rate feature ${i + 1} (${text}) is there twice, ignoring case.`,
      })
    }
    seen.add(text.toLowerCase())
    return text
  })
  const hash = orderBlindHash(checked)
  return {
    names: Object.freeze(checked),
    indexOf: new Map(checked.map((name, i) => [name, i])),
    hash,
    hashHex: hash.toString(16).padStart(16, '0'),
    orderedHash: hexOf(sha256(encoder.encode(JSON.stringify(checked)))),
    text: checked.join(','),
  }
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Lower case, sorted by bytes, joined by nothing; the first eight bytes of SHA-256, little-endian. */
function orderBlindHash(names: readonly string[]): bigint {
  const entries = names.map((name) => encoder.encode(name.toLowerCase()))
  entries.sort(compareBytes)
  const joined = new Uint8Array(entries.reduce((sum, entry) => sum + entry.length, 0))
  let at = 0
  for (const entry of entries) {
    joined.set(entry, at)
    at += entry.length
  }
  return new DataView(sha256(joined).slice(0, 8).buffer).getBigUint64(0, true)
}

/** Order of byte strings, shorter first when one begins the other. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const difference = (a[i] as number) - (b[i] as number)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** The mask of feature names; throws `validation` for a name that is not in the list. */
export function maskOf(codecs: CodecList, names: readonly string[]): number {
  let mask = 0
  for (const name of names) {
    const bit = codecs.indexOf.get(name)
    if (bit === undefined)
      throw new VacancyError('validation', { reason: `rate feature ${name} is not in the codec list` })
    mask |= 1 << bit
  }
  return mask >>> 0
}

export function namesOf(codecs: CodecList, mask: number): string[] {
  return codecs.names.filter((_name, bit) => ((mask >>> bit) & 1) === 1)
}

/** The entry that needs the fewest changes of characters, when they are few enough to have been a slip. */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  let best: string | undefined
  let fewest = Math.max(2, Math.floor(name.length / 2)) + 1
  for (const candidate of names) {
    const changes = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (changes < fewest) {
      fewest = changes
      best = candidate
    }
  }
  return best
}

/** Levenshtein's distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
