/** The names most like one that does not exist, nearest first: for "did you mean". */
export function nearest(wanted: string, known: readonly string[]): string[] {
  const text = wanted.toLowerCase()
  return known
    .map((name) => ({ name, far: distance(text, name.toLowerCase()) }))
    .toSorted((a, b) => a.far - b.far)
    .map(({ name }) => name)
}

/** Levenshtein: letters put in, taken out or changed. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
