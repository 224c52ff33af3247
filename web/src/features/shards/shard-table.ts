'use client'
/** How the signed-in person likes the table of shards: kept on the server, and for one link what the link says. */

import type { SavedView } from '@vacancy/shared/contract'
import { useCallback, useMemo } from 'react'
import { useMe } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import type { Widths } from '../../ui/column-edge.tsx'
import { useSavePreferences } from '../settings/preferences.ts'
import { parseColumns, unknownColumns } from './shard-columns.tsx'

/** Its name. */
export const SHARDS_TABLE = 'Shards'

export function useShardTable() {
  const { preferences } = useMe()
  const save = useSavePreferences()
  const [inUrl, setInUrl] = useUrlParam('columns')
  const { shards: table } = preferences
  const linked = useMemo(() => parseColumns(inUrl), [inUrl])
  return {
    /** Null: as the console chooses. */
    columns: linked ?? table.columns,
    /** Columns that the address names and that there are not. */
    unknown: useMemo(() => unknownColumns(inUrl), [inUrl]),
    widths: table.widths as Widths,
    views: table.views as readonly SavedView[],
    /** What is chosen here holds from now on; a link that said something else has been left. */
    setColumns: useCallback(
      (columns: readonly string[] | null) => {
        save({ shards: { columns: columns && [...columns] } })
        setInUrl(null)
      },
      [save, setInUrl],
    ),
    /** Those of columns that are not shown stay as they were. */
    setWidths: useCallback(
      (widths: Widths) => save({ shards: { widths: { ...table.widths, ...widths } } }),
      [save, table.widths],
    ),
    resetWidths: useCallback(() => save({ shards: { widths: {} } }), [save]),
    setViews: useCallback((views: readonly SavedView[]) => save({ shards: { views: [...views] } }), [save]),
  }
}
