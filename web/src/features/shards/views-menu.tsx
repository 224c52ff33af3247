'use client'
/** Saved views of the shard list: filter, sort and columns under a name, each with a link. */

import { lazy, Suspense, useState } from 'react'
import { Menu } from '../../ui/menu.tsx'
import * as copy from './list-copy.ts'
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
        label={copy.views.title}
        button={copy.views.title}
        items={[
          ...views.map((view) => ({ label: view.name, href: viewHref(view) })),
          ...(views.length > 0 ? (['line'] as const) : []),
          {
            label: views.length > 0 ? copy.views.saveOrDelete : copy.views.saveDialog,
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
