'use client'
import { type ComponentProps, lazy, Suspense } from 'react'
import { Button } from '../../ui/button.tsx'
import { Popover } from '../../ui/popover.tsx'
import * as copy from './list-copy.ts'

const ColumnChooser = lazy(() => import('./column-chooser.tsx'))

export function ColumnsButton(props: ComponentProps<typeof ColumnChooser>) {
  return (
    <Popover
      label={copy.chooser.title}
      trigger={(wire) => (
        // Narrow screens have cards instead of columns.
        <Button icon="columns" className="max-sm:hidden" {...wire}>
          {copy.chooser.title}
        </Button>
      )}
    >
      <Suspense fallback={null}>
        <ColumnChooser {...props} />
      </Suspense>
    </Popover>
  )
}
