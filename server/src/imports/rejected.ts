/** Row errors of an import as written by build-snapshot: in pages, and as downloads. */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import {
  type AlikeErrors,
  type FileKind,
  IMPORT_LIMITS,
  type ImportError,
  type REJECTED_FILES,
} from '@vacancy/shared/contract'

/** Maximum length of a row on a page; downloads have the whole row. */
const ROW_CHARACTERS_MAX = 2_000
const FORMULA = /^[=+\-@\t\r]/

/** A line of the file: `row` as text, or `row64` if it is not UTF-8. */
type Kept = Omit<ImportError, 'row'> & { readonly row?: string; readonly row64?: string }

async function* keptIn(file: string): AsyncGenerator<Kept> {
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })
  for await (const line of lines) if (line !== '') yield JSON.parse(line) as Kept
}

/** Lines of a file to omit, from 1. */
export type RejectedLines = Readonly<Record<FileKind, ReadonlySet<number>>>

export type KeptRows = {
  /** Stored errors of each file. */
  readonly of: { readonly properties: number; readonly packages: number }
  readonly lines: RejectedLines
  /** Their records; undefined when an error concerns a whole file, so that no rows can be omitted for it. */
  readonly rows: number | undefined
}

/** The stored errors, and the lines they are in. */
export async function keptOf(file: string): Promise<KeptRows> {
  const of = { properties: 0, packages: 0 }
  const lines = { properties: new Set<number>(), packages: new Set<number>() }
  const records = new Set<string>()
  let isWhole = false
  for await (const kept of keptIn(file)) {
    const kind = kept.file === 'properties.csv' ? 'properties' : 'packages'
    of[kind]++
    if (kept.line === 0) isWhole = true
    records.add(`${kind} ${kept.line}`)
    // A record continues after a line end inside quotes.
    const row = kept.row ?? (kept.row64 === undefined ? '' : Buffer.from(kept.row64, 'base64').toString('latin1'))
    for (let at = 0, more = row.split('\n').length; at < more; at++) lines[kind].add(kept.line + at)
  }
  return { of, lines, rows: isWhole ? undefined : records.size }
}

export async function errorsPage(
  errorsFile: string,
  query: {
    readonly kind?: string | undefined
    readonly text?: string | undefined
    readonly cursor: number
    readonly limit: number
  },
): Promise<{ errors: ImportError[]; next: number | null; total: number; alike: AlikeErrors[] }> {
  const errors: ImportError[] = []
  const alike = new Map<string, AlikeErrors>()
  const text = query.text?.toLowerCase()
  let total = 0
  for await (const kept of keptIn(errorsFile)) {
    if (query.kind !== undefined && kept.kind !== query.kind) continue
    const error = errorOf(kept)
    if (text !== undefined && !isFound(error, text)) continue
    if (total >= query.cursor && errors.length < query.limit) errors.push(error)
    total++
    const { file, column, name, kind, value, message, line } = error
    const key = JSON.stringify([file, column, kind, value, message])
    const first = alike.get(key) ?? { file, column, name, kind, value, message, line, count: 0 }
    alike.set(key, { ...first, count: first.count + 1 })
  }
  const end = query.cursor + errors.length
  const most = [...alike.values()].sort((a, b) => b.count - a.count).slice(0, IMPORT_LIMITS.alikeMax)
  return { errors, next: end < total ? end : null, total, alike: most }
}

function isFound({ file, line, value, message, row }: ImportError, text: string): boolean {
  if (/^(?:line )?[\d,]+$/.test(text)) return String(line) === text.replace(/\D/g, '')
  return [file, value, message, row ?? ''].some((part) => part.toLowerCase().includes(text))
}

function errorOf({ row, row64, ...rest }: Kept): ImportError {
  const shown = row ?? (row64 === undefined ? null : Buffer.from(row64, 'base64').toString('utf8'))
  return { ...rest, row: shown === null ? null : shown.slice(0, ROW_CHARACTERS_MAX) }
}

/** The content of a download, in pieces. */
export function rejectedFile(file: string, which: (typeof REJECTED_FILES)[number]): Readable {
  switch (which) {
    case 'rejected-properties.csv':
      return Readable.from(rowsOf(file, 'properties.csv'), { objectMode: false })
    case 'rejected-packages.csv':
      return Readable.from(rowsOf(file, 'packages.csv'), { objectMode: false })
    case 'errors.csv':
      return Readable.from(asCsv(file), { objectMode: false })
    case 'errors.json':
      return Readable.from(asJson(file), { objectMode: false })
  }
}

/** Rows with their exact bytes, so that they can be fixed and uploaded again. The faults of a row follow each other. */
async function* rowsOf(file: string, name: string): AsyncGenerator<Buffer> {
  let before = 0
  for await (const { file: of, line, row, row64 } of keptIn(file)) {
    if (of !== name || line === before || (row === undefined && row64 === undefined)) continue
    before = line
    yield Buffer.concat([
      row64 === undefined ? Buffer.from(row ?? '') : Buffer.from(row64, 'base64'),
      Buffer.from('\n'),
    ])
  }
}

async function* asCsv(file: string): AsyncGenerator<Buffer> {
  yield Buffer.from('file,line,column,name,kind,value,message\r\n')
  for await (const { file: of, line, column, name, kind, value, message } of keptIn(file)) {
    yield Buffer.from(`${[of, line, column, name, kind, value, message].map(csvCell).join(',')}\r\n`)
  }
}

async function* asJson(file: string): AsyncGenerator<Buffer> {
  let before = '[\n'
  for await (const kept of keptIn(file)) {
    yield Buffer.from(`${before}${JSON.stringify(errorOf(kept))}`)
    before = ',\n'
  }
  yield Buffer.from(before === '[\n' ? '[]\n' : '\n]\n')
}

/** A cell that spreadsheets treat as text, whatever it begins with. */
export function csvCell(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const text = FORMULA.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) || text !== value ? `"${text.replaceAll('"', '""')}"` : text
}
