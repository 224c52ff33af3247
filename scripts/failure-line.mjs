// One line per failed test, for the end of the output: the full text is far above, and may be missing from a
// truncated log.
const FIRST_CHARS_MAX = 400
const REST_CHARS_MAX = 1_200

/** A failure in one line: its location, the first line of its message, and the end of the rest, where causes stand. */
export function failureLine(name, error) {
  const colours = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g')
  const lines = (error?.message || 'no message').replaceAll(colours, '').split('\n')
  const [first, ...rest] = lines.map((line) => line.trim()).filter((line) => line !== '')
  const cause = rest.join(' | ').slice(-REST_CHARS_MAX)
  return `${name}: ${first}`.slice(0, FIRST_CHARS_MAX) + (cause && ` | ${cause}`)
}
