'use client'
import { type ReactNode, type RefObject, Suspense, useRef, useState } from 'react'
import { late } from './late.tsx'
import type { PopoverLayerProps } from './popover-layer.tsx'

type TriggerWire = {
  readonly ref: RefObject<HTMLButtonElement | null>
  readonly onClick: () => void
  readonly 'aria-haspopup': 'dialog'
  readonly 'aria-expanded': boolean
}

type PopoverProps = Omit<PopoverLayerProps, 'anchor' | 'onClose'> & {
  /** Renders the button with the given attributes. */
  readonly trigger: (wire: TriggerWire) => ReactNode
}

const Layer = late(async () => (await import('./popover-layer.tsx')).default)

/** A small layer anchored to its button. */
export function Popover({ trigger, ...rest }: PopoverProps) {
  const anchor = useRef<HTMLButtonElement>(null)
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      {trigger({
        ref: anchor,
        onClick: () => setOpen(!isOpen),
        'aria-haspopup': 'dialog',
        'aria-expanded': isOpen,
      })}
      {isOpen && (
        <Suspense fallback={null}>
          <Layer {...rest} anchor={anchor} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  )
}
