/** The columns of a table that a person may choose, order and resize. Pure. */
import type { Widths } from '../../ui/column-edge.tsx'
import type { Column } from '../../ui/table.tsx'

export type TableColumns<R> = {
  readonly all: readonly Column<R>[]
  readonly defaults: readonly string[]
  /** Known ids, each once, the one that names the row first; the default columns for null. */
  readonly idsOf: (chosen: readonly string[] | null) => readonly string[]
  /** Unknown columns of a URL. */
  readonly unknown: (text: string) => readonly string[]
  /** Parses `shard,state,lag` of a URL; null without known columns. */
  readonly parse: (text: string) => readonly string[] | null
  /**
   * The columns to render. Chosen columns stay on narrow screens, where the table scrolls sideways. With widths set,
   * content is truncated.
   */
  readonly shown: (chosen: readonly string[] | null, widths: Widths) => readonly Column<R>[]
}

/** Truncates badges inside their background. */
const CUT = 'overflow-hidden text-ellipsis [&_[data-level]_span]:truncate'

/** @param more ids that are not shown by default */
export function columnsOf<R>(all: readonly Column<R>[], more: readonly string[]): TableColumns<R> {
  const ids = all.map(({ id }) => id)
  const name = ids[0] ?? ''
  const defaults = ids.filter((id) => !more.includes(id))
  const idsOf = (chosen: readonly string[] | null): readonly string[] => {
    if (chosen === null) return defaults
    const known = new Set(chosen.filter((id) => id !== name && ids.includes(id)))
    return known.size === 0 ? defaults : [name, ...known]
  }
  return {
    all,
    defaults,
    idsOf,
    unknown: (text) => [...new Set(text.split(','))].filter((id) => id !== '' && !ids.includes(id)),
    parse: (text) => {
      const known = text.split(',').filter((id) => ids.includes(id))
      return known.length === 0 ? null : idsOf(known)
    },
    shown: (chosen, widths) => {
      const isCut = Object.keys(widths).length > 0
      return idsOf(chosen).flatMap((id) => {
        const column = all.find((one) => one.id === id)
        if (!column) return []
        const { rank, ...rest } = column
        const isRanked = chosen === null && !isCut && rank !== undefined
        return [{ ...rest, ...(isRanked && { rank }), ...(isCut && { className: CUT }) }]
      })
    },
  }
}

/** Moves a column among the visible ones; the one that names the row stays first. */
export function movedColumn(ids: readonly string[], id: string, step: 1 | -1): readonly string[] {
  const [from, to] = [ids.indexOf(id), ids.indexOf(id) + step]
  const other = ids[to]
  if (from < 1 || to < 1 || other === undefined) return ids
  return ids.map((one, at) => (at === from ? other : at === to ? id : one))
}
