'use client'
import { type ReactNode, Suspense } from 'react'
import { late } from './late.tsx'

export type DialogProps = {
  readonly open: boolean
  /** On Escape, the close button, or a click outside. */
  readonly onClose: () => void
  /** Names the action and its object: "Transfer leadership of s3 to n3". */
  readonly title: string
  /** At the end of the title row, for the environment. */
  readonly label?: ReactNode
  readonly children: ReactNode
  /** Buttons, the confirming one last. */
  readonly footer?: ReactNode
  readonly wide?: boolean
  /** A click outside does not close it, so that typed text is not lost. */
  readonly keep?: boolean
  /** On Ctrl Enter or ⌘ Enter, from anywhere in it: the same as its confirming button. */
  readonly onConfirm?: () => void
}

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
