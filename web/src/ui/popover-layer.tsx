'use client'
import * as Primitive from 'radix-ui/popover'
import type { ReactNode, RefObject } from 'react'
import { giveBackFocus } from './give-back-focus.ts'

export type PopoverLayerProps = {
  /** Accessible name. */
  readonly label: string
  readonly children: ReactNode | ((close: () => void) => ReactNode)
  readonly align?: 'start' | 'center' | 'end'
  readonly anchor: RefObject<HTMLButtonElement | null>
  readonly onClose: () => void
}

export default function PopoverLayer({ label, anchor, onClose, align = 'end', children }: PopoverLayerProps) {
  const isInAnchor = (target: EventTarget | null) => target instanceof Node && anchor.current?.contains(target)
  return (
    <Primitive.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Primitive.Anchor virtualRef={anchor as { readonly current: HTMLButtonElement }} />
      <Primitive.Portal>
        <Primitive.Content
          aria-label={label}
          align={align}
          sideOffset={6}
          collisionPadding={8}
          // A click on the trigger closes it through the trigger; handling both would open it again.
          onInteractOutside={(event) => isInAnchor(event.target) && event.preventDefault()}
          onCloseAutoFocus={(event) => giveBackFocus(event, anchor.current)}
          className="enter z-50 max-h-(--radix-popover-content-available-height) w-80 max-w-[calc(100vw-16px)] overflow-y-auto rounded-panel border border-line bg-overlay p-4 shadow-layer outline-none"
        >
          {typeof children === 'function' ? children(onClose) : children}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}
