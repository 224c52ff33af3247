// One line per failed test, for the end of the output: the full text is far above, and may be missing from a
// truncated log.
const CHARS_MAX = 400

/** A failure in one line: its location and the start of its message. */
export function failureLine(name, error) {
  const colours = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g')
  const [message = 'no message'] = (error?.message ?? '').replaceAll(colours, '').split('\n')
  return `${name}: ${message}`.slice(0, CHARS_MAX)
}
