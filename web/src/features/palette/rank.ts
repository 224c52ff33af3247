/** Ranks names by input: letters in order, better when adjacent and early. */

/** Higher is better; undefined when a letter is missing. */
export function rankOf(typed: string, name: string): number | undefined {
  const wanted = typed.toLowerCase().replaceAll(/\s+/g, ' ').trim()
  const text = name.toLowerCase()
  if (wanted === '') return 0
  if (text.startsWith(wanted)) return 1_000 - text.length
  const word = text.indexOf(` ${wanted}`)
  if (word >= 0) return 800 - word
  const whole = text.indexOf(wanted)
  if (whole >= 0) return 600 - whole
  let from = 0
  let gaps = 0
  for (const letter of wanted) {
    const at = text.indexOf(letter, from)
    if (at < 0) {
      // A space between words that match separately is skipped.
      if (letter === ' ') continue
      return undefined
    }
    if (from > 0) gaps += at - from
    from = at + 1
  }
  return 400 - gaps - text.length / 100
}

/** The best rank over several names of an entry. */
export function bestRank(typed: string, names: readonly (string | undefined)[]): number | undefined {
  let best: number | undefined
  for (const name of names) {
    const rank = name === undefined ? undefined : rankOf(typed, name)
    if (rank !== undefined && (best === undefined || rank > best)) best = rank
  }
  return best
}
