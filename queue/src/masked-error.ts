/** Groups errors that differ in their details only. */

const MASKED_MAX = 200
/** UUIDs, hexadecimal ids, quoted parts, and words with digits such as `10.0.0.7:5123`, `job-9` or `5s`. */
const DETAILS =
  /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|"[^"]*"|'[^']*'|`[^`]*`|[\w.:-]*\d[\w.:-]*/gi

/** The text with numbers, quoted parts and ids replaced by `*`, cut to 200 characters. */
export function maskedError(text: string): string {
  const [line = ''] = text.trim().split('\n', 1)
  return line
    .slice(0, MASKED_MAX * 4)
    .replace(DETAILS, '*')
    .slice(0, MASKED_MAX)
}
