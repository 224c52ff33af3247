/** Saved views and their links. Pure. */

import type { SavedView } from '@vacancy/shared/contract'
import { routes } from '../../lib/routes.ts'
import * as copy from './list-copy.ts'

/** The URL of the list in this view. */
export function viewHref({ filter, sort, columns }: Omit<SavedView, 'name'>): string {
  return routes.shards({ filter, sort, columns: columns?.join(',') })
}

/** What a view of a table shows, in a line. @param all "all shards", without a filter */
export function viewText(
  { filter, sort, columns }: Omit<SavedView, 'name'>,
  all: string,
  idsOf: (columns: readonly string[]) => readonly string[],
): string {
  const [column, direction] = sort.split(':')
  return [
    filter === '' ? all : filter,
    ...(column ? [copy.views.sortedBy(column, direction === 'down')] : []),
    columns === null ? copy.views.defaultColumns : copy.views.columnCount(idsOf(columns).length),
  ].join(' · ')
}

/** Replaces the view of the same name, or appends a new one. */
export function withView(views: readonly SavedView[], view: SavedView): readonly SavedView[] {
  const isKnown = views.some(({ name }) => name === view.name)
  return isKnown ? views.map((one) => (one.name === view.name ? view : one)) : [...views, view]
}
