'use client'
/** The dialogs and the drawer over the playground, each loaded when it is opened. */
import type { HistoryEntry } from '@vacancy/shared/contract'
import { type ComponentProps, Suspense } from 'react'
import { late } from '../../ui/late.tsx'
import type { Code } from './code-dialog.tsx'
import type { Draft } from './request.ts'

const WhyDialog = late(async () => (await import('./why-dialog.tsx')).WhyDialog)
const ReplicasDialog = late(async () => (await import('./replicas-dialog.tsx')).ReplicasDialog)
const WriteDialog = late(async () => (await import('./write-dialog.tsx')).WriteDialog)
const CodeDialog = late(async () => (await import('./code-dialog.tsx')).CodeDialog)
const HistoryDrawer = late(async () => (await import('./history-drawer.tsx')).HistoryDrawer)
const SaveDialog = late(async () => (await import('./save-dialog.tsx')).SaveDialog)

export type Layer =
  | { readonly as: 'why'; readonly property: string }
  | { readonly as: 'code'; readonly codes: readonly Code[] }
  | { readonly as: 'replicas' | 'write' | 'save' | 'history' }
  | undefined

type LayersProps = {
  readonly layer: Layer
  readonly draft: Draft
  readonly shard: string | undefined
  /** Of the last run. */
  readonly last: ComponentProps<typeof HistoryDrawer>['last']
  readonly onClose: () => void
  readonly onUse: (draft: Draft) => void
  readonly onCompare: (entry: HistoryEntry) => void
  /** @param confirm what the person typed to confirm it */
  readonly onWrite: (confirm: string) => void
}

export function Layers({ layer, draft, shard, last, onClose, onUse, onCompare, onWrite }: LayersProps) {
  if (!layer) return null
  const props = { draft, shard, onClose }
  return (
    <Suspense fallback={null}>
      {layer.as === 'why' && <WhyDialog {...props} property={layer.property} />}
      {layer.as === 'replicas' && <ReplicasDialog {...props} />}
      {layer.as === 'code' && <CodeDialog codes={layer.codes} onClose={onClose} />}
      {layer.as === 'save' && <SaveDialog {...props} />}
      {layer.as === 'history' && (
        <HistoryDrawer
          draft={draft}
          last={last}
          onClose={onClose}
          onUse={(next, entry) => {
            onClose()
            onUse(next)
            onCompare(entry)
          }}
          onCompare={onCompare}
        />
      )}
      {layer.as === 'write' && (
        <WriteDialog
          {...props}
          onWrite={(confirm) => {
            onClose()
            onWrite(confirm)
          }}
        />
      )}
    </Suspense>
  )
}
