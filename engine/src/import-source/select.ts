/**
 * A table mapping → the SQL that makes the cells of properties.csv or packages.csv of its rows, in the part of the language
 * that PostgreSQL and DuckDB share. Rows are turned by the database, not one by one here.
 *
 * A value that is not in the form of its mapping gets a mark, which no valid cell has: the importer refuses it, with its
 * row, and the mark tells which words to use.
 */

import { IMPORT_COLUMNS, nearestName, VacancyError } from '@vacancy/shared'
import type { Finding } from '../import/row-errors.ts'
import { dateFormOf } from './date-form.ts'
import type { ColumnMapping, TableMapping } from './mapping.ts'

/** A column of a table, query or file, with its type as the database writes it. */
export type SourceColumn = { readonly name: string; readonly type: string }

/** One control character; a line end inside a cell becomes it, too, so that one row is one line. */
const MARK = 'chr(1)'
const MARK_TEXT = '\u0001'
const COLUMNS_SHOWN = 20
/** The name of what is selected from: without it DuckDB takes a column for the one of ours with the same name. */
export const ROWS = 'source_rows'

/**
 * The expressions of a SELECT, each named after our column, in their order.
 *
 * @throws VacancyError usage_error with a line for each column that is missing or cannot have its form
 */
export function selectOf(table: TableMapping, found: readonly SourceColumn[]): string {
  const faults: string[] = []
  const parts = IMPORT_COLUMNS[table.kind].map((name) => {
    const mapping = table.columns[name] ?? sameColumn(name, found)
    const expression = mapping && expressionOf(name, mapping, table, found, faults)
    if (!mapping) faults.push(`has no column ${name}${nearest(name, found)}. Map it in "columns", or give it a "value"`)
    return `${expression ?? "''"} AS ${quotedName(name)}`
  })
  if (faults.length > 0) {
    const names = found.slice(0, COLUMNS_SHOWN).map((column) => column.name)
    const more = found.length > names.length ? ` and ${found.length - names.length} more` : ''
    const lines = faults.map((fault) => `${table.kind} (${table.label}): ${fault}`)
    const all = `${table.kind} (${table.label}): its columns are ${names.join(', ')}${more}`
    throw new VacancyError('usage_error', { reason: [...lines, all].join('\n') })
  }
  return parts.join(',\n  ')
}

/** As in a header: case, blanks, `_` and `-` do not count. */
function sameColumn(name: string, found: readonly SourceColumn[]): ColumnMapping | undefined {
  const column = found.find((each) => each.name.toLowerCase().replace(/[_\-\s]/g, '') === name.toLowerCase())
  return column && { column: column.name }
}

function nearest(name: string, found: readonly SourceColumn[]): string {
  const near = nearestName(
    name,
    found.map((each) => each.name),
  )
  return near === undefined ? '' : `; the nearest is ${JSON.stringify(near)}`
}

/** `plain`: its text is what the import reads, as of dates and whole numbers. */
type TypeKind = 'list' | 'plain' | 'time' | 'number' | 'text'

function kindOfType(type: string): TypeKind {
  if (/\[\d*\]$/.test(type)) return 'list'
  if (/^(date|u?(tiny|small|big|huge)?int(eger)?)$/i.test(type)) return 'plain'
  if (/^(timestamp|datetime)/i.test(type)) return 'time'
  return /^(numeric|decimal|double|float|real)\b/i.test(type) ? 'number' : 'text'
}

const MIDNIGHT = '[ T]00:00:00([.]0+)?([+]00(:?00)?)?$'

function expressionOf(
  name: string,
  mapping: ColumnMapping,
  { kind, label }: TableMapping,
  found: readonly SourceColumn[],
  faults: string[],
): string | undefined {
  if (mapping.value !== undefined) return quotedText(mapping.value)
  const column = found.find((each) => each.name === mapping.column)
  if (column === undefined) {
    faults.push(
      `${JSON.stringify(mapping.column)}, mapped to ${name}, is not a column${nearest(mapping.column ?? '', found)}`,
    )
    return undefined
  }
  const type = kindOfType(column.type)
  const forms = (['date', 'decimal', 'thousands', 'separator'] as const).filter((key) => mapping[key] !== undefined)
  if (forms.length > 0 && type !== 'text') {
    faults.push(
      `${column.name} is ${column.type}: "${forms.join('", "')}" is for text (${kind}.columns.${name} of ${label})`,
    )
    return undefined
  }
  const raw = `${ROWS}.${quotedName(column.name)}`
  if (type === 'list') return withDefault(`array_to_string(${raw}, '|')`, mapping)
  const plain = `CAST(${raw} AS TEXT)`
  if (type === 'plain') return mapping.default === undefined ? plain : withDefault(plain, mapping)
  if (type === 'time') return withDefault(`regexp_replace(${plain}, ${quotedText(MIDNIGHT)}, '')`, mapping)
  if (type === 'number') {
    const isWhole = name === 'Stars' || name === 'Availability'
    return withDefault(isWhole ? `regexp_replace(${plain}, '[.]0+$', '')` : plain, mapping)
  }
  const line = `translate(${plain}, chr(10) || chr(13), ${MARK} || ${MARK})`
  if (mapping.separator !== undefined)
    return withDefault(`replace(${line}, ${quotedText(mapping.separator)}, '|')`, mapping)
  const cell = `nullif(trim(${line}), '')`
  if (mapping.date !== undefined) return withDefault(dateExpression(cell, mapping.date), mapping)
  if (mapping.decimal !== undefined || mapping.thousands !== undefined)
    return withDefault(numberExpression(cell, mapping), mapping)
  return withDefault(line, mapping)
}

/** An empty cell is written without quotes, which import faster. */
function withDefault(expression: string, mapping: ColumnMapping): string {
  const cell = `nullif(${expression}, '')`
  return mapping.default === undefined ? cell : `coalesce(${cell}, ${quotedText(mapping.default)})`
}

function dateExpression(cell: string, form: string): string {
  const { pattern, year, month, day, isShort } = dateFormOf(form)
  const quoted = quotedText(pattern)
  const part = (group: number) => `lpad(regexp_replace(${cell}, ${quoted}, '\\${group}'), 2, '0')`
  const date = isShort
    ? `regexp_replace(${cell}, ${quoted}, '\\${year}') || '-' || ${part(month)} || '-' || ${part(day)}`
    : `regexp_replace(${cell}, ${quoted}, '\\${year}-\\${month}-\\${day}')`
  return `CASE WHEN ${cell} ~ ${quoted} THEN ${date} ELSE ${MARK} || ${cell} END`
}

function numberExpression(cell: string, { decimal = '.', thousands }: ColumnMapping): string {
  const fraction = `(${oneOf(decimal)}\\d+)?`
  const grouped = thousands === undefined ? '' : `|[+-]?\\d{1,3}(${oneOf(thousands)}\\d{3})+${fraction}`
  const pattern = quotedText(`^([+-]?\\d+${fraction}${grouped})$`)
  const whole = thousands === undefined ? cell : `replace(${cell}, ${quotedText(thousands)}, '')`
  return `CASE WHEN ${cell} ~ ${pattern} THEN replace(${whole}, ${quotedText(decimal)}, '.') ELSE ${MARK} || ${cell} END`
}

/** A sign as a pattern. */
function oneOf(sign: string): string {
  return sign === '^' || sign === '\\' ? `\\${sign}` : `[${sign}]`
}

export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export function quotedText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** A finding of the importer in the words of the source. Line 1 of its files is the header. */
export function renamedFor(tables: readonly TableMapping[]): (finding: Finding) => Finding {
  return (finding) => {
    const table = tables.find(({ kind }) => `${kind}.csv` === finding.file)
    if (table === undefined) return finding
    const { kind, label, columns } = table
    if (finding.line === 0) return { ...finding, file: `${label} as ${finding.file}` }
    const as = IMPORT_COLUMNS[kind][finding.column - 1] ?? ''
    const mapping = columns[as]
    const isMarked = finding.value.startsWith(MARK_TEXT)
    return {
      ...finding,
      file: label,
      line: finding.line - 1,
      name: mapping?.column ?? as,
      as,
      value: isMarked ? finding.value.slice(MARK_TEXT.length) : finding.value,
      message: mapping !== undefined && isMarked ? formMessage(mapping, finding.message) : inRows(finding.message),
    }
  }
}

function formMessage({ date, decimal = '.', thousands }: ColumnMapping, otherwise: string): string {
  if (date !== undefined) return `is not a date ${date}`
  if (thousands === undefined && decimal === '.') return inRows(otherwise)
  const groups = thousands === undefined ? '' : `, with ${JSON.stringify(thousands)} between thousands`
  return `is not a number with ${JSON.stringify(decimal)} before its decimals${groups}`
}

/** `repeats the property of line 3` counts the header. */
function inRows(message: string): string {
  return message.replace(/\bof line (\d+)\b/, (_, line: string) => `of row ${Number(line) - 1}`)
}
