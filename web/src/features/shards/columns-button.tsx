'use client'
import { type ComponentProps, Suspense } from 'react'
import { Button } from '../../ui/button.tsx'
import { late } from '../../ui/late.tsx'
import { Popover } from '../../ui/popover.tsx'
import * as copy from './list-copy.ts'

const ColumnChooser = late(async () => (await import('./column-chooser.tsx')).default)

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
