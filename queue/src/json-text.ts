/**
 * Where the values of a JSON text are. A payload that a producer gives as JSON is delivered as these very characters:
 * parsing would change long numbers, and the order of some names. Only for texts that `JSON.parse` accepts.
 */

type Span = { readonly from: number; readonly to: number }

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = /\s*/y
const SCALAR = /[^\s,\]}]*/y

/** The characters of `json` in each job of a body, by position; the job of a body with one is the first. */
export function jsonPayloads(text: string): readonly (string | undefined)[] {
  const body = membersOf(text, after(SPACE, text, 0))
  const [job, jobs] = [body.get('job'), body.get('jobs')]
  const spans = job !== undefined ? [job] : jobs === undefined ? [] : elementsOf(text, jobs.from)
  return spans.map(({ from }) => {
    const span = text[from] === '{' ? membersOf(text, from).get('json') : undefined
    return span === undefined ? undefined : text.slice(span.from, span.to)
  })
}

/** The values of the object that begins here. Of a name that occurs twice, the last one counts, as when it is parsed. */
function membersOf(text: string, start: number): ReadonlyMap<string, Span> {
  const members = new Map<string, Span>()
  for (let at = after(SPACE, text, start + 1); text[at] !== '}'; ) {
    const nameEnd = endOfString(text, at)
    const name = JSON.parse(text.slice(at, nameEnd)) as string
    const from = after(SPACE, text, after(SPACE, text, nameEnd) + 1)
    const to = endOfValue(text, from)
    members.set(name, { from, to })
    at = next(text, to)
  }
  return members
}

/** The values of the list that begins here. */
function elementsOf(text: string, start: number): readonly Span[] {
  const elements: Span[] = []
  for (let from = after(SPACE, text, start + 1); text[from] !== ']'; ) {
    const to = endOfValue(text, from)
    elements.push({ from, to })
    from = next(text, to)
  }
  return elements
}

/** Behind a value: the next one, or the bracket. */
function next(text: string, end: number): number {
  const at = after(SPACE, text, end)
  return text[at] === ',' ? after(SPACE, text, at + 1) : at
}

function endOfValue(text: string, from: number): number {
  if (text[from] === '"') return endOfString(text, from)
  if (text[from] !== '{' && text[from] !== '[') return after(SCALAR, text, from)
  let depth = 0
  for (let at = from; ; ) {
    const character = text[at]
    if (character === '"') {
      at = endOfString(text, at)
      continue
    }
    at++
    if (character === '{' || character === '[') depth++
    else if ((character === '}' || character === ']') && --depth === 0) return at
  }
}

function endOfString(text: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const unit = text.charCodeAt(at)
    if (unit === BACKSLASH) at++
    else if (unit === QUOTE) return at + 1
  }
}

/** @param pattern sticky, and matches nothing, too */
function after(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  pattern.test(text)
  return pattern.lastIndex
}
