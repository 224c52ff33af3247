'use client'
/** Layout of a table: from the preferences on the server, or from a link. */

import type { SavedView } from '@vacancy/shared/contract'
import { useCallback, useMemo } from 'react'
import { useMe } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import type { Widths } from '../../ui/column-edge.tsx'
import { useSavePreferences } from '../settings/preferences.ts'
import type { TableColumns } from './table-columns.ts'

export type TableLayout = ReturnType<typeof useTableLayout>

/** @param name of the table in the preferences */
export function useTableLayout<R>(name: 'shards' | 'queue', { parse, unknown }: TableColumns<R>) {
  const { preferences } = useMe()
  const save = useSavePreferences()
  const [inUrl, setInUrl] = useUrlParam('columns')
  const table = preferences[name]
  const linked = useMemo(() => parse(inUrl), [parse, inUrl])
  return {
    /** Null for the default columns. */
    columns: linked ?? table.columns,
    /** Unknown columns of the URL. */
    unknown: useMemo(() => unknown(inUrl), [unknown, inUrl]),
    widths: table.widths as Widths,
    views: table.views as readonly SavedView[],
    /** Saves the choice and drops columns of the URL. */
    setColumns: useCallback(
      (columns: readonly string[] | null) => {
        save({ [name]: { columns: columns && [...columns] } })
        setInUrl(null)
      },
      [name, save, setInUrl],
    ),
    /** Keeps the widths of hidden columns. */
    setWidths: useCallback(
      (widths: Widths) => save({ [name]: { widths: { ...table.widths, ...widths } } }),
      [name, save, table.widths],
    ),
    resetWidths: useCallback(() => save({ [name]: { widths: {} } }), [name, save]),
    setViews: useCallback((views: readonly SavedView[]) => save({ [name]: { views: [...views] } }), [name, save]),
  }
}
