'use client'
/** Layout of the shard list: from the preferences on the server, or from a link. */

import type { SavedView } from '@vacancy/shared/contract'
import { useCallback, useMemo } from 'react'
import { useMe } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import type { Widths } from '../../ui/column-edge.tsx'
import { useSavePreferences } from '../settings/preferences.ts'
import * as copy from './list-copy.ts'
import { parseColumns, unknownColumns } from './shard-columns.tsx'

/** Accessible name of the table. */
export const SHARDS_TABLE = copy.list.title

export function useShardTable() {
  const { preferences } = useMe()
  const save = useSavePreferences()
  const [inUrl, setInUrl] = useUrlParam('columns')
  const { shards: table } = preferences
  const linked = useMemo(() => parseColumns(inUrl), [inUrl])
  return {
    /** Null for the default columns. */
    columns: linked ?? table.columns,
    /** Unknown columns of the URL. */
    unknown: useMemo(() => unknownColumns(inUrl), [inUrl]),
    widths: table.widths as Widths,
    views: table.views as readonly SavedView[],
    /** Saves the choice and drops columns of the URL. */
    setColumns: useCallback(
      (columns: readonly string[] | null) => {
        save({ shards: { columns: columns && [...columns] } })
        setInUrl(null)
      },
      [save, setInUrl],
    ),
    /** Keeps the widths of hidden columns. */
    setWidths: useCallback(
      (widths: Widths) => save({ shards: { widths: { ...table.widths, ...widths } } }),
      [save, table.widths],
    ),
    resetWidths: useCallback(() => save({ shards: { widths: {} } }), [save]),
    setViews: useCallback((views: readonly SavedView[]) => save({ shards: { views: [...views] } }), [save]),
  }
}
