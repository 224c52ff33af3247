/** Forms of dates in a mapping: YYYY, MM or M, DD or D, and signs between them. */

/** How a form is read: a pattern that PostgreSQL and DuckDB share, and which of its groups is what. */
export type DateForm = {
  readonly pattern: string
  readonly year: number
  readonly month: number
  readonly day: number
  /** Whether month and day may have one digit. */
  readonly isShort: boolean
}

const PARTS = { YYYY: '(\\d{4})', MM: '(\\d\\d)', DD: '(\\d\\d)', M: '(\\d{1,2})', D: '(\\d{1,2})' } as const
const TOKEN = /YYYY|MM|DD|M|D/g
/** A sign, or a time that is always the same, such as 00:00. */
const BETWEEN = /^[ ./:,T0-]*$/

/** Completes `"DD.MM.JJJJ" …`; undefined for a form. */
export function dateFormFault(form: string): string | undefined {
  const tokens = form.match(TOKEN) ?? []
  const rest = form.replace(TOKEN, '')
  const has = (...names: string[]) => tokens.filter((token) => names.includes(token)).length === 1
  if (form.length <= 32 && BETWEEN.test(rest) && has('YYYY') && has('MM', 'M') && has('DD', 'D')) return undefined
  return 'is not a form such as DD.MM.YYYY, M/D/YYYY or YYYYMMDD; use "sql" for others'
}

/** @param form without a fault */
export function dateFormOf(form: string): DateForm {
  const tokens: readonly string[] = form.match(TOKEN) ?? []
  const signs = form.split(TOKEN).map((text) => text.replaceAll('.', '[.]'))
  const pattern = signs.map((sign, at) => `${sign}${PARTS[tokens[at] as keyof typeof PARTS] ?? ''}`).join('')
  const groupOf = (...names: string[]) => tokens.findIndex((token) => names.includes(token)) + 1
  return {
    pattern: `^${pattern}$`,
    ...{ year: groupOf('YYYY'), month: groupOf('MM', 'M'), day: groupOf('DD', 'D') },
    isShort: tokens.includes('M') || tokens.includes('D'),
  }
}
