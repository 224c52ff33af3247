'use client'
import { lazy, type ReactNode, Suspense } from 'react'

export type DialogProps = {
  readonly open: boolean
  /** Escape, the cross, or a click beside it. */
  readonly onClose: () => void
  /** Names what is done to what: "Transfer leadership of s3 to n3". */
  readonly title: string
  /** At the end of the title row: the environment. */
  readonly label?: ReactNode
  readonly children: ReactNode
  /** Buttons, the one that acts last. */
  readonly footer?: ReactNode
  readonly wide?: boolean
  /** A click beside it does not close: something typed would be lost. */
  readonly keep?: boolean
  /** Begins in its first field instead of at its title. */
  readonly typing?: boolean
}

// Headless dialogs weigh as much as a page: they come when the first one opens.
const loadLayer = () => import('./dialog-layer.tsx')
const Layer = lazy(loadLayer)

/** Fetches the code of layers before the first one is needed, on hover or focus of what opens one. */
export const preloadDialog = (): void => void loadLayer()

/** Over the page, with the focus kept inside; it returns to what opened it. Full screen on phones. */
export function Dialog(props: DialogProps) {
  if (!props.open) return null
  return (
    <Suspense fallback={null}>
      <Layer {...props} side={false} />
    </Suspense>
  )
}

/** The same from the side, over the end of the page: an inspector. */
export function Drawer(props: DialogProps) {
  if (!props.open) return null
  return (
    <Suspense fallback={null}>
      <Layer {...props} side />
    </Suspense>
  )
}
