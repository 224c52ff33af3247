'use client'
import clsx from 'clsx'
import * as Primitive from 'radix-ui/dialog'
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import * as copy from './copy.ts'
import { giveBackFocus } from './give-back-focus.ts'
import { IconButton } from './icon-button.tsx'

const CENTRED = 'enter inset-0 m-auto h-fit max-h-dvh w-full sm:max-h-[calc(100dvh-3rem)] sm:rounded-panel max-sm:h-dvh'
const ASIDE = 'enter-side inset-y-0 end-0 w-full sm:max-w-[90vw] sm:border-s'

const TABBABLE = 'a[href], button, input:not([type="hidden"]), select, textarea, summary, [tabindex="0"]'
/** Where typing starts: not a choice that is made already. */
const FIELD = '[data-first-field], input:not([type="hidden"], [type="radio"], [type="checkbox"]), select, textarea'

/** The field in which a dialog starts; on touch screens none, since a keyboard would cover what is to be read. */
function firstField(body: HTMLElement | null): HTMLElement | null {
  if (isTouched()) return null
  return markedField(body) ?? body?.querySelector<HTMLElement>(FIELD) ?? null
}

const isTouched = () => globalThis.matchMedia?.('(pointer: coarse)').matches ?? false

/** A drawer is read first, so it starts in a field only where one is marked. */
function markedField(body: HTMLElement | null): HTMLElement | null {
  return isTouched() ? null : (body?.querySelector<HTMLElement>('[data-first-field]') ?? null)
}

/** Focuses the first field of content that is loaded after the dialog opened. */
function focusLater(body: HTMLElement, heading: HTMLElement): MutationObserver {
  const observer = new MutationObserver(() => {
    const field = firstField(body)
    // The focus is not taken from where it was moved to.
    if (document.activeElement !== heading) observer.disconnect()
    else if (field) {
      observer.disconnect()
      field.focus({ preventScroll: true })
    }
  })
  observer.observe(body, { childList: true, subtree: true })
  return observer
}

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

export default function DialogLayer(props: DialogProps & { readonly side: boolean }) {
  const { open, onClose, title, label, children, footer, wide, keep, onConfirm, side } = props
  const heading = useRef<HTMLHeadingElement>(null)
  const body = useRef<HTMLDivElement>(null)
  const [opener] = useState(() => document.activeElement)
  const later = useRef<MutationObserver>(undefined)
  useEffect(() => () => later.current?.disconnect(), [])
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && onConfirm) {
      event.preventDefault()
      onConfirm()
    }
    // The title is not in the tab order, so that the focus trap does not know what comes before it.
    if (event.key === 'Tab' && event.shiftKey && document.activeElement === heading.current) {
      event.preventDefault()
      const controls = event.currentTarget.querySelectorAll<HTMLElement>(TABBABLE)
      ;[...controls].findLast((control) => control.checkVisibility?.() !== false)?.focus()
    }
  }
  return (
    <Primitive.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Primitive.Portal>
        <Primitive.Overlay className="fixed inset-0 z-40 bg-[rgb(11_13_18/0.45)]" />
        <Primitive.Content
          aria-describedby={undefined}
          onOpenAutoFocus={(event) => {
            event.preventDefault()
            const field = side ? markedField(body.current) : firstField(body.current)
            ;(field ?? heading.current)?.focus()
            if (!side && !field && body.current && heading.current) {
              later.current = focusLater(body.current, heading.current)
            }
          }}
          onKeyDown={onKeyDown}
          onCloseAutoFocus={(event) => giveBackFocus(event, opener)}
          onPointerDownOutside={(event) => keep && event.preventDefault()}
          // The first Escape closes an open list of suggestions, the next one the dialog.
          onEscapeKeyDown={(event) => {
            if (document.activeElement?.matches('[role="combobox"][aria-expanded="true"]')) event.preventDefault()
          }}
          className={clsx(
            'fixed z-50 flex flex-col border-line bg-overlay shadow-layer outline-none sm:border',
            side ? clsx(ASIDE, wide ? 'sm:w-200' : 'sm:w-120') : clsx(CENTRED, wide ? 'sm:max-w-220' : 'sm:max-w-140'),
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
            {label && <span className="shrink-0">{label}</span>}
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
