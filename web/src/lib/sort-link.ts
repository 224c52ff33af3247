/** The sort order of a table in a URL: `lag:down`, `zone`. */

export type SortLink = { readonly column: string; readonly down: boolean }

export function formatSort({ column, down }: SortLink): string {
  return down ? `${column}:down` : column
}

/** Undefined for a column that is not sortable. */
export function parseSort(text: string, columns: readonly string[]): SortLink | undefined {
  const [column = '', direction, ...more] = text.split(':')
  if (!columns.includes(column) || more.length > 0 || (direction !== undefined && direction !== 'down'))
    return undefined
  return { column, down: direction === 'down' }
}
