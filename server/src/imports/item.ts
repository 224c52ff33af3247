/** An import as stored, and in memory. */
import { type FileKind, IMPORT_ENDS, type ImportState, type ImportView } from '@vacancy/shared/contract'
import type { Selectable } from 'kysely'
import type { Pace, Work } from './remaining.ts'
import type { ImportTables } from './tables.ts'
import type { UploadRow } from './uploads.ts'

export type FileNote = {
  readonly name: string
  readonly bytes: number
  readonly sha256: string | null
  readonly rows: number | null
  readonly unpacked: boolean
}

export type ImportDetail = {
  readonly message: string
  readonly hint: string
  readonly files: Readonly<Record<FileKind, FileNote>>
  readonly errors: ImportView['errors']
  readonly counters: ImportView['counters']
  readonly snapshot: string | null
  /** Decimals of the prices in packages.csv. */
  readonly priceDecimals: number
  readonly result: ImportView['result']
  /** What its phases took, once it is built. */
  readonly pace: Pace | null
  readonly log: readonly string[]
}

export type Row = Selectable<ImportTables['imports']>

/** An import in memory; `row` and `detail` are stored. */
export type Item = {
  row: Row
  detail: ImportDetail
  progress: ImportView['progress']
  rates: number[]
  /** While it is being built. */
  work: Work
  /** Aborts its build; set while it is being built. */
  end: AbortController | undefined
  isCancelled: boolean
}

export function itemOf(row: Row, detail: ImportDetail): Item {
  return {
    row,
    detail,
    progress: null,
    rates: [],
    work: { properties: 0, packages: 0 },
    end: undefined,
    isCancelled: false,
  }
}

/** Details stored by versions that could not omit rows, read decimals or foretell the end lack the fields for it. */
export function detailOf(text: string): ImportDetail {
  const detail: ImportDetail = { ...{ priceDecimals: 0, pace: null }, ...JSON.parse(text) }
  if (!detail.errors) return detail
  return { ...detail, errors: { ...{ rows: null, again: 'It was built by an older version.' }, ...detail.errors } }
}

export function isOver({ state }: Row): boolean {
  return IMPORT_ENDS.includes(state as ImportState)
}

export function noteOf({ name, bytes, sha256 }: UploadRow): FileNote {
  return { name, bytes, sha256, rows: null, unpacked: false }
}
