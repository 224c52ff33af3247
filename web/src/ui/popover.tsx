'use client'
import { type ReactNode, type RefObject, Suspense, useRef, useState } from 'react'
import { late } from './late.tsx'

type TriggerWire = {
  readonly ref: RefObject<HTMLButtonElement | null>
  readonly onClick: () => void
  readonly 'aria-haspopup': 'dialog'
  readonly 'aria-expanded': boolean
}

type PopoverProps = {
  /** Accessible name. */
  readonly label: string
  /** Renders the button with the given attributes. */
  readonly trigger: (wire: TriggerWire) => ReactNode
  readonly children: ReactNode | ((close: () => void) => ReactNode)
  readonly align?: 'start' | 'center' | 'end'
}

export type PopoverLayerProps = Omit<PopoverProps, 'trigger'> & {
  readonly anchor: RefObject<HTMLButtonElement | null>
  readonly onClose: () => void
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
