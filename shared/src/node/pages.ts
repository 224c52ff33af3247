/** Tables of the generated reference pages. */

import { groupDigits } from '../numbers.ts'

/**
 * A table of limits in Markdown.
 *
 * @param meanings what each of them bounds
 */
export function limitsTable<const T extends { readonly [name: string]: number | string }>(
  limits: T,
  meanings: { readonly [name in keyof T]: string },
): string {
  const rows = Object.entries(limits).map(([name, value]) => {
    const shown = typeof value === 'number' ? groupDigits(value) : value
    return `| \`${name}\` | ${shown} | ${meanings[name]} |`
  })
  return ['| Limit | Value | What it bounds |', '|---|---|---|', ...rows].join('\n')
}
