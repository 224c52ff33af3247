/**
 * The mapping file of `vacancy import-source`: where the rows are, and which of their columns is which. Everything unknown
 * is refused by name (docs/operators.md#import-from-a-database).
 */

import { statSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { IMPORT_COLUMNS, type ImportFileKind, importColumnOf, unknownName, VacancyError } from '@vacancy/shared'
import { isSecretPlace, readText } from '@vacancy/shared/node'
import { dateFormFault } from './date-form.ts'

const FILE_BYTES_MAX = 1 << 20

const SOURCE_KINDS = ['csv', 'parquet', 'duckdb', 'postgres', 'mysql'] as const
type SourceKind = (typeof SOURCE_KINDS)[number]

export type CsvSource = {
  readonly kind: 'csv'
  readonly delimiter: string
  readonly quote: string
  /** The first row names the columns; else they are column0, column1 … */
  readonly header: boolean
  readonly encoding: string
}
export type ServerSource = {
  readonly kind: 'postgres' | 'mysql'
  /** An address without a password, or `env:NAME`, `file:PATH`. */
  readonly url: string
  /** `env:NAME` or `file:PATH`; '' for the one in the address, or none. */
  readonly password: string
  /** Of mysql: the file of the extension of DuckDB; '' installs it. */
  readonly extension: string
}
export type Source =
  | CsvSource
  | { readonly kind: 'parquet' }
  | { readonly kind: 'duckdb'; readonly file: string }
  | ServerSource

/** What becomes one of our columns. */
export type ColumnMapping = {
  /** Of the source; undefined when `value` is constant. */
  readonly column?: string
  readonly value?: string
  /** For rows without a value. */
  readonly default?: string
  /** Form of the date, such as DD.MM.YYYY. */
  readonly date?: string
  readonly decimal?: string
  readonly thousands?: string
  /** Between the names of a list. */
  readonly separator?: string
}

export type TableMapping = {
  readonly kind: ImportFileKind
  readonly source: Source
  /** As errors name it. */
  readonly label: string
  readonly table?: string
  /** Files with wildcards, absolute. */
  readonly file?: string
  readonly sql?: string
  /** By our names. A column that is absent is one of the same name. */
  readonly columns: { readonly [name: string]: ColumnMapping }
}

export type Mapping = {
  /** The folder of the file. */
  readonly folder: string
  readonly properties: TableMapping
  readonly packages: TableMapping
}

/** Which keys a column may have, beside column, value and default. */
const FORMS: { readonly [name: string]: readonly (keyof ColumnMapping)[] } = {
  Date: ['date'],
  Availability: ['thousands'],
  FinalPrice: ['decimal', 'thousands'],
  Latitude: ['decimal'],
  Longitude: ['decimal'],
  Amenities: ['separator'],
  RateFeature: ['separator'],
}

const SOURCE_KEYS = {
  csv: ['delimiter', 'quote', 'header', 'encoding'],
  parquet: [],
  duckdb: ['file'],
  postgres: ['url', 'password'],
  mysql: ['url', 'password', 'extension'],
} as const satisfies { readonly [kind in SourceKind]: readonly string[] }

/** @throws VacancyError usage_error with a line for each thing that is wrong */
export function readMapping(file: string): Mapping {
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found?.isFile()) throw usage(`${file} is not a file`)
  if (found.size > FILE_BYTES_MAX) throw usage(`${file} is larger than ${FILE_BYTES_MAX} bytes`)
  const text = readText(file, 'invalid_config')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new VacancyError('usage_error', { reason: `${file} is not JSON: ${(cause as Error).message}` }, { cause })
  }
  return parseMapping(value, dirname(file), file)
}

/** @param name of the file, in errors */
export function parseMapping(value: unknown, folder: string, name: string): Mapping {
  const faults: string[] = []
  const mapping = mappingOf(value, folder, faults)
  if (faults.length > 0) throw usage(faults.map((fault) => `${name}: ${fault}`).join('\n'))
  return mapping
}

function usage(reason: string): VacancyError {
  return new VacancyError('usage_error', { reason })
}

type Faults = string[]
type Fields = { readonly [name: string]: unknown }

function mappingOf(value: unknown, folder: string, faults: Faults): Mapping {
  const fields = fieldsOf(value, '', ['source', 'properties', 'packages'], faults)
  const source = fields['source'] === undefined ? undefined : sourceOf(fields['source'], 'source', folder, faults)
  const table = (kind: ImportFileKind) => {
    const given = fields[kind]
    if (fields['source'] === undefined && isObject(given) && given['source'] === undefined)
      faults.push(`${kind}: has no source, and the file has none for both`)
    return tableOf(kind, given, source, folder, faults)
  }
  return { folder, properties: table('properties'), packages: table('packages') }
}

/** @returns undefined with a fault when its kind is unknown */
function sourceOf(value: unknown, at: string, folder: string, faults: Faults): Source | undefined {
  const all = [...new Set(['kind', ...Object.values(SOURCE_KEYS).flat()])]
  const given = fieldsOf(value, at, all, faults)
  const kind = SOURCE_KINDS.find((each) => each === given['kind'])
  if (kind === undefined) {
    const kinds = SOURCE_KINDS.join(', ')
    if (isObject(value)) faults.push(`${at}.kind: ${shown(given['kind'])} is not one of ${kinds}`)
    return undefined
  }
  const known: readonly string[] = ['kind', ...SOURCE_KEYS[kind]]
  for (const key of Object.keys(given))
    if (all.includes(key) && !known.includes(key)) faults.push(`${at}.${key}: is not for a source of kind ${kind}`)
  const text = (key: string, otherwise: string) => textOf(given[key], `${at}.${key}`, otherwise, faults)
  switch (kind) {
    case 'csv':
      return {
        kind,
        delimiter: signOf(given['delimiter'], `${at}.delimiter`, ',', faults),
        quote: signOf(given['quote'], `${at}.quote`, '"', faults),
        header: booleanOf(given['header'], `${at}.header`, true, faults),
        encoding: encodingOf(text('encoding', 'utf-8'), `${at}.encoding`, faults),
      }
    case 'parquet':
      return { kind }
    case 'duckdb':
      return { kind, file: absolute(folder, needed(text('file', ''), `${at}.file`, faults)) }
    case 'postgres':
    case 'mysql': {
      const password = text('password', '')
      if (password !== '' && !isSecretPlace(password))
        faults.push(`${at}.password: is the place of the password, env:NAME or file:PATH, not the password itself`)
      const url = needed(text('url', ''), `${at}.url`, faults)
      const fault = url === '' ? undefined : urlFault(kind, url)
      if (fault !== undefined) faults.push(`${at}.url: ${fault}`)
      const extension = text('extension', '')
      return {
        ...{ kind, url: placeIn(folder, url), password: placeIn(folder, password) },
        extension: extension === '' ? '' : absolute(folder, extension),
      }
    }
  }
}

const SCHEMES = { postgres: ['postgres:', 'postgresql:'], mysql: ['mysql:', 'mariadb:'] } as const

/** What is wrong with an address of the mapping, or one that its variable or file has. The address itself is not shown. */
export function urlFault(kind: 'postgres' | 'mysql', url: string, isSecret = false): string | undefined {
  if (!isSecret && isSecretPlace(url)) return undefined
  const parsed = URL.parse(url)
  const example = `${SCHEMES[kind][0]}//user@host/database`
  if (parsed === null || !(SCHEMES[kind] as readonly string[]).includes(parsed.protocol))
    return `is not an address such as ${example}, nor env:NAME or file:PATH`
  if (parsed.pathname.length < 2) return `names no database, as ${example} does`
  if (!isSecret && parsed.password !== '')
    return 'has a password; give its place as "password": "env:NAME" or "file:PATH", or the place of the whole address'
  return undefined
}

/** `file:` of a mapping is relative to it, like all of its files. */
function placeIn(folder: string, place: string): string {
  return place.startsWith('file:') ? `file:${absolute(folder, place.slice('file:'.length))}` : place
}

function tableOf(
  kind: ImportFileKind,
  value: unknown,
  shared: Source | undefined,
  folder: string,
  faults: Faults,
): TableMapping {
  if (value === undefined) faults.push(`${kind}: is missing; it says which rows become ${kind}.csv`)
  const fields = value === undefined ? {} : fieldsOf(value, kind, ['source', 'table', 'file', 'sql', 'columns'], faults)
  const own = fields['source']
  const source = own === undefined ? shared : sourceOf(own, `${kind}.source`, folder, faults)
  const [table, file, sql] = ['table', 'file', 'sql'].map((key) => textOf(fields[key], `${kind}.${key}`, '', faults))
  const isFile = source?.kind === 'csv' || source?.kind === 'parquet'
  if (source !== undefined && isObject(value)) {
    if (isFile && !file) faults.push(`${kind}.file: is missing; a source of kind ${source.kind} has files`)
    if (isFile && table) faults.push(`${kind}.table: is not for a source of kind ${source.kind}; give "file"`)
    if (!isFile && file) faults.push(`${kind}.file: is not for a source of kind ${source.kind}; give "table" or "sql"`)
    if (!isFile && !table === !sql) faults.push(`${kind}: needs either "table" or "sql"`)
  }
  return {
    kind,
    source: source ?? { kind: 'parquet' },
    label: table || (isFile ? file : '') || `${kind} of the query`,
    ...(table && { table }),
    ...(file && { file: absolute(folder, file) }),
    ...(sql && { sql: sql.replace(/;\s*$/, '') }),
    columns: columnsOf(kind, fields['columns'], faults),
  }
}

function columnsOf(kind: ImportFileKind, value: unknown, faults: Faults): { [name: string]: ColumnMapping } {
  const columns: { [name: string]: ColumnMapping } = {}
  if (value === undefined) return columns
  if (!isObject(value)) {
    faults.push(`${kind}.columns: must be an object`)
    return columns
  }
  for (const [written, column] of Object.entries(value)) {
    const name = importColumnOf(kind, written)
    if (name === undefined) faults.push(`${kind}.columns: ${unknownName(written, IMPORT_COLUMNS[kind])}`)
    else if (columns[name] !== undefined) faults.push(`${kind}.columns: ${name} is given twice`)
    else columns[name] = columnOf(name, column, `${kind}.columns.${written}`, faults)
  }
  return columns
}

function columnOf(name: string, value: unknown, at: string, faults: Faults): ColumnMapping {
  if (typeof value === 'string') return { column: needed(value, at, faults) }
  const forms = FORMS[name] ?? []
  const all = ['column', 'value', 'default', 'date', 'decimal', 'thousands', 'separator']
  const fields = fieldsOf(value, at, all, faults)
  const mapping: { [key: string]: string } = {}
  for (const [key, given] of Object.entries(fields)) {
    if (!all.includes(key)) continue
    const isForm = !['column', 'value', 'default'].includes(key)
    if (isForm && !(forms as readonly string[]).includes(key)) {
      faults.push(`${at}.${key}: is not for ${name}${forms.length > 0 ? `, which may have ${forms.join(', ')}` : ''}`)
    } else if (key === 'date') {
      const form = textOf(given, `${at}.date`, '', faults)
      const fault = dateFormFault(form)
      if (fault !== undefined) faults.push(`${at}.date: ${shown(form)} ${fault}`)
      mapping[key] = form
    } else if (isForm) {
      mapping[key] = signOf(given, `${at}.${key}`, '', faults)
      if (/[\d+-]/.test(mapping[key])) faults.push(`${at}.${key}: must be a sign, not ${shown(mapping[key])}`)
    } else {
      mapping[key] = textOf(given, `${at}.${key}`, '', faults)
    }
  }
  if (!isObject(value)) return {}
  if ((mapping['value'] === undefined) === (mapping['column'] === undefined))
    faults.push(`${at}: needs either "column" or "value"`)
  if (mapping['value'] !== undefined && Object.keys(mapping).length > 1)
    faults.push(`${at}: has a "value", which is for all rows, so nothing else is read`)
  if (mapping['decimal'] !== undefined && mapping['decimal'] === mapping['thousands'])
    faults.push(`${at}: "decimal" and "thousands" are the same sign`)
  return mapping
}

// Values.

function fieldsOf(value: unknown, at: string, known: readonly string[], faults: Faults): Fields {
  const place = at === '' ? '' : `${at}: `
  if (!isObject(value)) {
    faults.push(`${place}must be an object`)
    return {}
  }
  for (const key of Object.keys(value)) if (!known.includes(key)) faults.push(`${place}${unknownName(key, known)}`)
  return value
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOf(value: unknown, at: string, otherwise: string, faults: Faults): string {
  if (value === undefined) return otherwise
  if (typeof value === 'string' && !value.includes('\0')) return value
  faults.push(`${at}: ${shown(value)} must be text`)
  return otherwise
}

function booleanOf(value: unknown, at: string, otherwise: boolean, faults: Faults): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? otherwise
  faults.push(`${at}: ${shown(value)} must be true or false`)
  return otherwise
}

/** One character. */
function signOf(value: unknown, at: string, otherwise: string, faults: Faults): string {
  const text = textOf(value, at, otherwise, faults)
  if ([...text].length === 1 || value === undefined) return text
  faults.push(`${at}: ${shown(value)} must be one character`)
  return otherwise
}

function needed(text: string, at: string, faults: Faults): string {
  if (text === '') faults.push(`${at}: is missing`)
  return text
}

/** Some of those that the platform decodes, for the error. */
const ENCODINGS = ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252', 'iso-8859-1', 'iso-8859-15', 'windows-1250']

function encodingOf(name: string, at: string, faults: Faults): string {
  try {
    return new TextDecoder(name).encoding
  } catch {
    // The only reason to throw is an unknown name.
    const fault = unknownName(name, ENCODINGS)
    faults.push(`${at}: ${fault}${/did you/.test(fault) ? '' : `; some are ${ENCODINGS.join(', ')}`}`)
    return 'utf-8'
  }
}

function absolute(folder: string, path: string): string {
  return path === '' || isAbsolute(path) ? path : join(folder, path)
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 80)
}
