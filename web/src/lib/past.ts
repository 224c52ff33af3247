/** The past view: `?at=` shows the cluster as it was at a moment (docs/design/console.md#the-past). Pure. */

export const AT = 'at'
/** In a link: ends the past view. */
export const NOW = 'now'

const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?Z$/

/** The moment of a URL, RFC 3339; undefined for now and for anything else. */
export function momentOf(search: { get(name: string): string | null }): string | undefined {
  const text = search.get(AT) ?? ''
  const at = MOMENT.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : new Date(at).toISOString()
}
