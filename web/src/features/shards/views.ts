/** Saved views: where each leads, and how one is put among the others. Pure. */

import type { SavedView } from '@vacancy/shared/contract'
import { routes } from '../../lib/routes.ts'

/** The page in that view. */
export function viewHref({ filter, sort, columns }: Omit<SavedView, 'name'>): string {
  return routes.shards({ filter, sort, columns: columns?.join(',') })
}

/** One of the same name gives way, in its place; a new one stands last. */
export function withView(views: readonly SavedView[], view: SavedView): readonly SavedView[] {
  const isKnown = views.some(({ name }) => name === view.name)
  return isKnown ? views.map((one) => (one.name === view.name ? view : one)) : [...views, view]
}
