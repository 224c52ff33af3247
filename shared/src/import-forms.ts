/**
 * Forms of dates, decimals and text that the columns of imports do not have, recognized in the first rows of a file: one
 * error that names the form, instead of one for each of its rows.
 */

import { IMPORT_COLUMNS, type ImportFileKind } from './import-columns.ts'

/** Rows that are enough to recognize a form. */
export const FORM_ROWS = 100

export type ImportForm = {
  /** Place of the column in IMPORT_COLUMNS. */
  readonly column: number
  /** Place of the row that shows it best. */
  readonly row: number
  /** Completes "Date … looks like". */
  readonly looksLike: string
  /** Keys of a mapping of import-source that read it, as JSON. */
  readonly mapping: string
}

const DATE = IMPORT_COLUMNS.packages.indexOf('Date')
const PRICE = IMPORT_COLUMNS.packages.indexOf('FinalPrice')
const LATITUDE = IMPORT_COLUMNS.properties.indexOf('Latitude')
const LONGITUDE = IMPORT_COLUMNS.properties.indexOf('Longitude')

/** @param rows cells of the first rows of data, in the order of IMPORT_COLUMNS */
export function otherForm(file: ImportFileKind, rows: readonly (readonly string[])[]): ImportForm | undefined {
  if (rows.length === 0) return undefined
  const found = unquotedDecimals(file, rows)
  if (found) return found
  if (file === 'properties') return decimalComma(rows, LATITUDE) ?? decimalComma(rows, LONGITUDE)
  return otherDate(rows) ?? decimalComma(rows, PRICE)
}

const DAY_FIRST = /^(\d{1,2})([./-])(\d{1,2})\2\d{4}$/
const YEAR_FIRST = /^\d{4}([./-])(\d{1,2})\1(\d{1,2})$/
const WITH_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/
const WITH_MONTH_NAME = /^\d{1,2}[. /-]*\p{L}{3,}[. /-]*\d{2,4}$|^\p{L}{3,}[. /-]*\d{1,2},?[. /-]*\d{4}$/u

function otherDate(rows: readonly (readonly string[])[]): ImportForm | undefined {
  const dates = rows.map((cells) => cells[DATE] ?? '')
  const all = (form: RegExp) => dates.every((date) => form.test(date))
  const of = (looksLike: string, mapping: string, row = 0) => ({ column: DATE, row, looksLike, mapping })
  const byForm = (form: string) => of(form, `"date": "${form}"`)
  const sql = '"sql", with a query that makes dates of it'
  if (all(/^\d{8}$/)) return byForm('YYYYMMDD')
  if (all(WITH_TIME)) return of('a date with a time', sql)
  if (all(WITH_MONTH_NAME)) return of('a date with the name of a month', sql)
  if (all(YEAR_FIRST)) {
    const sign = YEAR_FIRST.exec(dates[0] ?? '')?.[1] ?? '-'
    const isPadded = dates.every((date) => date.length === 10)
    // A date as it must be, that is wrong for another reason.
    if (sign === '-' && isPadded) return undefined
    return byForm(isPadded ? `YYYY${sign}MM${sign}DD` : `YYYY${sign}M${sign}D`)
  }
  if (!all(DAY_FIRST)) return undefined
  const parts = dates.map((date) => DAY_FIRST.exec(date) ?? [])
  const sign = parts[0]?.[2] ?? '.'
  const isPadded = dates.every((date) => date.length === 10)
  const [day, month] = isPadded ? ['DD', 'MM'] : ['D', 'M']
  const dayFirst = `${day}${sign}${month}${sign}YYYY`
  const monthFirst = `${month}${sign}${day}${sign}YYYY`
  const above12 = (part: 1 | 3) => parts.findIndex((each) => Number(each[part]) > 12)
  if (above12(1) >= 0) return { ...byForm(dayFirst), row: above12(1) }
  if (above12(3) >= 0) return { ...byForm(monthFirst), row: above12(3) }
  if (sign === '.') return byForm(dayFirst)
  return of(`${dayFirst} or ${monthFirst}`, `"date": "${dayFirst}" or "${monthFirst}"`)
}

const MAYBE_COMMA = /^[+-]?\d{1,3}(?:[.' ]?\d{3})*(?:,\d+)?$/

function decimalComma(rows: readonly (readonly string[])[], column: number): ImportForm | undefined {
  const values = rows.map((cells) => cells[column] ?? '')
  const row = values.findIndex((value) => value.includes(','))
  if (row < 0 || !values.every((value) => MAYBE_COMMA.test(value))) return undefined
  const thousands = values
    .map((value) => /^[+-]?\d{1,3}([.' ])\d{3}/.exec(value)?.[1])
    .find((sign) => sign !== undefined)
  const mapping = `"decimal": ","${thousands === undefined ? '' : `, "thousands": "${thousands}"`}`
  return { column, row, looksLike: 'a decimal with a comma', mapping }
}

/** `12,50` without quotes is two cells. */
function unquotedDecimals(file: ImportFileKind, rows: readonly (readonly string[])[]): ImportForm | undefined {
  const columns = file === 'packages' ? [PRICE] : [LATITUDE, LONGITUDE]
  const wanted = IMPORT_COLUMNS[file].length + columns.length
  const isSplit = (cells: readonly string[]) =>
    cells.length === wanted &&
    columns.every((column, at) => isWhole(cells[column + at]) && /^\d+$/.test(cells[column + at + 1] ?? ''))
  if (!rows.every(isSplit)) return undefined
  const looksLike = 'the first part of a decimal with a comma that has no quotes'
  return { column: columns[0] as number, row: 0, looksLike, mapping: '"decimal": ",", once such cells have quotes' }
}

const isWhole = (cell = '') => /^[+-]?\d+$/.test(cell)
