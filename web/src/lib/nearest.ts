import { distance } from 'fastest-levenshtein'

/** Known names by similarity to an unknown one, nearest first. */
export function nearest(wanted: string, known: readonly string[]): string[] {
  const text = wanted.toLowerCase()
  return known
    .map((name) => ({ name, far: distance(text, name.toLowerCase()) }))
    .toSorted((a, b) => a.far - b.far)
    .map(({ name }) => name)
}
