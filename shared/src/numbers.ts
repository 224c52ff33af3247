/** How numbers and times are written for people, the same in console, control plane, node and terminal. */

/** `12,400` and `-1,234.5`: groups of three digits, separated by commas. */
export function groupDigits(value: number): string {
  const [whole = '', decimals] = String(value).split('.')
  const grouped = whole.replace(/\B(?=(?:\d{3})+$)/g, ',')
  return decimals === undefined ? grouped : `${grouped}.${decimals}`
}

/** The text with its first letter in upper case. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** `zone eu-1`, and `zone-1` for a name that says so itself. */
export function zoneText(zone: string): string {
  return /^zone\b/i.test(zone) ? zone : `zone ${zone}`
}

/** `20 Nov 2026, 18:27:33 UTC` of a date. */
export function utcText(at: { toUTCString(): string }): string {
  const text = at.toUTCString()
  return `${text.slice(5, 16).replace(/^0/, '')}, ${text.slice(17, 25)} UTC`
}
