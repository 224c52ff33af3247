/** Saved views and their links. Pure. */

import type { SavedView } from '@vacancy/shared/contract'
import { routes } from '../../lib/routes.ts'

/** The URL of the list in this view. */
export function viewHref({ filter, sort, columns }: Omit<SavedView, 'name'>): string {
  return routes.shards({ filter, sort, columns: columns?.join(',') })
}

/** Replaces the view of the same name, or appends a new one. */
export function withView(views: readonly SavedView[], view: SavedView): readonly SavedView[] {
  const isKnown = views.some(({ name }) => name === view.name)
  return isKnown ? views.map((one) => (one.name === view.name ? view : one)) : [...views, view]
}
