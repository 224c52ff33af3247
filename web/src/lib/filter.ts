/** Filter expressions: words, and pairs such as `state:behind` or `lag:>1000`. */

type FilterPair = { readonly key: string; readonly op: ':' | '>' | '<'; readonly value: string }
export type Filter = { readonly words: readonly string[]; readonly pairs: readonly FilterPair[] }

const TOKEN = /(?:[^\s"]|"[^"]*"?)+/g

/** Converts to lower case. `"two words"` is one value, also after a key. */
export function parseFilter(text: string): Filter {
  const words: string[] = []
  const pairs: FilterPair[] = []
  for (const [token] of text.toLowerCase().matchAll(TOKEN)) {
    const plain = token.replaceAll('"', '')
    const colon = token.startsWith('"') ? -1 : plain.indexOf(':')
    if (colon < 1) {
      if (plain) words.push(plain)
      continue
    }
    const sign = plain[colon + 1]
    const op = sign === '>' || sign === '<' ? sign : ':'
    const value = plain.slice(colon + (op === ':' ? 1 : 2))
    // `state:` is incomplete and filters nothing yet.
    if (value) pairs.push({ key: plain.slice(0, colon), op, value })
  }
  return { words, pairs }
}

/** The complete `key:value` parts of a text, as typed. */
export function filterParts(text: string): readonly string[] {
  return [...text.matchAll(TOKEN)].map(([token]) => token).filter((token) => parseFilter(token).pairs.length > 0)
}

/** The text without one of its parts. */
export function withoutPart(text: string, part: string): string {
  const tokens = [...text.matchAll(TOKEN)].map(([token]) => token)
  const at = tokens.indexOf(part)
  return tokens.filter((_, index) => index !== at).join(' ')
}

type Fields = { readonly [key: string]: string | number | null | undefined }

/** Whether a row matches: each word in any field, each pair in the field of its key. */
export function passes(filter: Filter, fields: Fields): boolean {
  // Most filters are pairs: all texts are searched only for words.
  const all = filter.words.length === 0 ? [] : Object.values(fields).map((value) => String(value ?? '').toLowerCase())
  return (
    filter.words.every((word) => all.some((value) => value.includes(word))) &&
    filter.pairs.every(({ key, op, value }) => pairPasses(fields[key], op, value))
  )
}

function pairPasses(field: Fields[string], op: FilterPair['op'], value: string): boolean {
  if (field === null || field === undefined) return false
  if (op === '>') return Number(field) > Number(value)
  if (op === '<') return Number(field) < Number(value)
  return typeof field === 'number' ? field === Number(value) : field.toLowerCase().includes(value)
}
