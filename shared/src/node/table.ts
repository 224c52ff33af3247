/** Tables for a terminal. */

import { groupDigits } from '../numbers.ts'

export type Table = {
  readonly columns: readonly string[]
  /** Numbers are right-aligned. */
  readonly rows: readonly (readonly (string | number)[])[]
  /** The number of rows as text: `12 properties`. */
  readonly counted: string
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${groupDigits(number)} ${number === 1 ? one : many}`
}

/** The lines of a table: a header and one line per row; none without columns or rows. */
export function tableLines({ columns, rows }: Table, rowsMax: number = rows.length): string[] {
  const shown = rows.slice(0, rowsMax)
  if (shown.length === 0 || columns.length === 0) return []
  const widths = columns.map((name, at) => Math.max(name.length, ...shown.map((row) => String(row[at]).length)))
  const line = (row: readonly (string | number)[], isHeading = false) =>
    row
      .map((cell, at) => {
        const isNumber = isHeading ? typeof shown[0]?.[at] === 'number' : typeof cell === 'number'
        return isNumber ? String(cell).padStart(widths[at] ?? 0) : String(cell).padEnd(widths[at] ?? 0)
      })
      .join('  ')
      .trimEnd()
  const more = rows.length - shown.length
  return [line(columns, true), ...shown.map((row) => line(row)), ...(more > 0 ? [`… and ${more} more`] : [])]
}
