'use client'
import clsx from 'clsx'
import * as Primitive from 'radix-ui/dialog'
import { useRef, useState } from 'react'
import * as copy from './copy.ts'
import type { DialogProps } from './dialog.tsx'
import { giveBackFocus } from './give-back-focus.ts'
import { IconButton } from './icon-button.tsx'

const CENTRED = 'enter inset-0 m-auto h-fit max-h-dvh w-full sm:max-h-[calc(100dvh-3rem)] sm:rounded-panel max-sm:h-dvh'
const ASIDE = 'enter-side inset-y-0 end-0 w-full sm:w-120 sm:max-w-[90vw] sm:border-s'

export default function DialogLayer(props: DialogProps & { readonly side: boolean }) {
  const { open, onClose, title, label, children, footer, wide, keep, typing, side } = props
  const heading = useRef<HTMLHeadingElement>(null)
  const body = useRef<HTMLDivElement>(null)
  const [opener] = useState(() => document.activeElement)
  return (
    <Primitive.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Primitive.Portal>
        <Primitive.Overlay className="fixed inset-0 z-40 bg-[rgb(11_13_18/0.45)]" />
        <Primitive.Content
          aria-describedby={undefined}
          onOpenAutoFocus={(event) => {
            event.preventDefault()
            const field = typing ? body.current?.querySelector<HTMLElement>('input, select, textarea') : undefined
            ;(field ?? heading.current)?.focus()
          }}
          onCloseAutoFocus={(event) => giveBackFocus(event, opener)}
          onPointerDownOutside={(event) => keep && event.preventDefault()}
          // The first Escape closes an open list of suggestions, the next one the dialog.
          onEscapeKeyDown={(event) => {
            if (document.activeElement?.matches('[role="combobox"][aria-expanded="true"]')) event.preventDefault()
          }}
          className={clsx(
            'fixed z-50 flex flex-col border-line bg-overlay shadow-layer outline-none sm:border',
            side ? ASIDE : clsx(CENTRED, wide ? 'sm:max-w-220' : 'sm:max-w-140'),
          )}
        >
          <header className="flex items-center gap-3 border-line border-b py-2 ps-5 pe-3">
            <Primitive.Title
              ref={heading}
              tabIndex={-1}
              className="min-w-0 grow break-words rounded-control py-1 text-section outline-none"
            >
              {title}
            </Primitive.Title>
            {label}
            <IconButton label={copy.dialog.close} icon="cross" onClick={onClose} />
          </header>
          <div ref={body} className="min-h-0 grow overflow-y-auto px-5 py-4 -outline-offset-2">
            {children}
          </div>
          {footer && (
            <footer className="flex flex-wrap items-center justify-end gap-2 border-line border-t px-5 py-3">
              {footer}
            </footer>
          )}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}
