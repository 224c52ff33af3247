import { distance } from 'fastest-levenshtein'

/** The names most like one that does not exist, nearest first: for "did you mean". */
export function nearest(wanted: string, known: readonly string[]): string[] {
  const text = wanted.toLowerCase()
  return known
    .map((name) => ({ name, far: distance(text, name.toLowerCase()) }))
    .toSorted((a, b) => a.far - b.far)
    .map(({ name }) => name)
}
