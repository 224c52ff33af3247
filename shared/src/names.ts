/**
 * Names that a caller wrote: of fields, parameters, options and columns. An unknown one is refused with the known one that
 * it resembles; a name is the same in snake_case and in camelCase.
 */

import { LIMITS } from './domain.ts'
import { cutToBytes } from './text.ts'

/** Bytes of a foreign name that an error quotes. */
const QUOTED_BYTES_MAX = 64

type Values = { readonly [name: string]: unknown }

/**
 * The values of an object under their known names, whichever spelling they came in.
 *
 * @param known names in one spelling; aliases are names of their own
 * @returns the values, or the fault: a name that is unknown, or given in two spellings
 */
export function knownValues(given: object, known: readonly string[]): Values | string {
  const values: { [name: string]: unknown } = {}
  const spelt = new Map<string, string>()
  for (const [written, value] of Object.entries(given)) {
    const name = known.includes(written) ? written : known.find((each) => spellingOf(each) === spellingOf(written))
    if (name === undefined) return unknownName(written, known)
    const other = spelt.get(name)
    if (other !== undefined) return `${other} and ${written} are the same field: give one`
    spelt.set(name, written)
    values[name] = value
  }
  return values
}

/** `max_total` and `maxTotal` as `maxTotal`. */
export function spellingOf(name: string): string {
  return name.replaceAll(/_([a-z0-9])/g, (_whole, letter: string) => letter.toUpperCase())
}

/** `maxTotal` as `max_total`. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** The refusal of a name: `"maxTotals" is not known; did you mean max_total?` */
export function unknownName(name: string, known: Iterable<string>): string {
  return `${JSON.stringify(cutToBytes(name, QUOTED_BYTES_MAX))} is not known${suggestion(name, known)}`
}

/** The end of a refusal: `; did you mean max_total?`, or '' where no known name is similar. */
export function suggestion(name: string, known: Iterable<string>, prefix = ''): string {
  const nearest = nearestName(name, known)
  return nearest === undefined ? '' : `; did you mean ${prefix}${nearest}?`
}

/**
 * The entry most similar to `name`; undefined when none is similar. The distance is the number of letters to insert,
 * delete or change, ignoring case. Ties go to the first entry.
 */
export function nearestName(name: string, names: Iterable<string>): string | undefined {
  const wanted = [...name.slice(0, 2 * LIMITS.featureBytesMax).toLowerCase()]
  let nearest: string | undefined
  let nearestDistance = Number.POSITIVE_INFINITY
  for (const candidate of names) {
    const letters = [...candidate.toLowerCase()]
    const distance = editDistance(wanted, letters)
    // More than half of the letters differ: a different word, not a misspelling.
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
