'use client'
/** Saved views of a list under a name, each with a link. */

import { Suspense, useState } from 'react'
import { late } from '../../ui/late.tsx'
import { Menu } from '../../ui/menu.tsx'
import * as copy from './list-copy.ts'
import type { ViewsProps } from './views-dialog.tsx'

const ViewsDialog = late(async () => (await import('./views-dialog.tsx')).default)

export function ViewsMenu(props: ViewsProps) {
  const { views } = props.layout
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Menu
        label={copy.views.title}
        button={copy.views.title}
        items={[
          ...views.map((view) => ({ label: view.name, href: props.hrefOf(view) })),
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
          <ViewsDialog {...props} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  )
}
