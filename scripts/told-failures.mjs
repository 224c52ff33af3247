// What failed in a run of tests, in a line each: the full text stands far above, where a log that was cut may have lost it.
const CHARS_MAX = 400

/** A failure in one line: where, and how its message begins. */
export function told(name, error) {
  const colours = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g')
  const [message = 'no message'] = (error?.message ?? '').replaceAll(colours, '').split('\n')
  return `${name}: ${message}`.slice(0, CHARS_MAX)
}
