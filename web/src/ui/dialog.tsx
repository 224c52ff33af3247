'use client'
import { Suspense } from 'react'
import type { DialogProps } from './dialog-layer.tsx'
import { late } from './late.tsx'

// The dialog primitive weighs as much as a page: it is loaded when the first dialog opens.
const loadLayer = () => import('./dialog-layer.tsx')
const Layer = late(async () => (await loadLayer()).default)

/** Loads the dialog code in advance, on hover or focus of a control that opens one. */
export const preloadDialog = (): void => void loadLayer()

/** A modal dialog. Focus stays inside and returns to the opener. Full screen on phones. */
export function Dialog(props: DialogProps) {
  if (!props.open) return null
  return (
    <Suspense fallback={null}>
      <Layer {...props} side={false} />
    </Suspense>
  )
}

/** The same at the side of the page, for inspectors. */
export function Drawer(props: DialogProps) {
  if (!props.open) return null
  return (
    <Suspense fallback={null}>
      <Layer {...props} side />
    </Suspense>
  )
}
