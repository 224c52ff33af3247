'use client'
/** Views of the table of shards that somebody saved: a filter, an order and columns under a name, each a link. */

import { lazy, Suspense, useState } from 'react'
import { Menu } from '../../ui/menu.tsx'
import { useShardTable } from './shard-table.ts'
import { viewHref } from './views.ts'

const ViewsDialog = lazy(() => import('./views-dialog.tsx'))

export type PresentView = {
  readonly filter: string
  readonly sort: string
  readonly columns: readonly string[] | null
}

export function ViewsMenu(present: PresentView) {
  const { views } = useShardTable()
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Menu
        label="Views"
        button="Views"
        items={[
          ...views.map((view) => ({ label: view.name, href: viewHref(view) })),
          ...(views.length > 0 ? (['line'] as const) : []),
          {
            label: views.length > 0 ? 'Save or delete views…' : 'Save this view…',
            icon: 'star' as const,
            onSelect: () => setOpen(true),
          },
        ]}
      />
      {isOpen && (
        <Suspense fallback={null}>
          <ViewsDialog present={present} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  )
}
