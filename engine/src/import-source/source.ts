/** What a source of rows does, whatever it is. */

import type { TableMapping } from './mapping.ts'
import type { SourceColumn } from './select.ts'

export type OpenSource = {
  /** The columns of the rows of a table. @throws VacancyError usage_error when there is no such table or file */
  describe(table: TableMapping): Promise<readonly SourceColumn[]>
  /**
   * Writes rows as CSV with a header and closes the file.
   *
   * @param select expressions of `selectOf`
   * @param rowsMax only the first rows
   */
  write(table: TableMapping, select: string, path: string, rowsMax: number | undefined): Promise<Written>
  close(): Promise<void>
}

export type Written = {
  readonly rows: number
  /** Lines of a file that are no rows, with all of them counted. */
  readonly rejected: { readonly count: number; readonly first: readonly Rejected[] }
}

/** @param line counted in its file */
type Rejected = { readonly file: string; readonly line: number; readonly reason: string; readonly text: string }

export const NONE_REJECTED: Written['rejected'] = { count: 0, first: [] }
