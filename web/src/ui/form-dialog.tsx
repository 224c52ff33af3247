'use client'
import { type FormEvent, useId } from 'react'
import { Button, type ButtonKind } from './button.tsx'
import { confirmFields } from './data-copy.ts'
import { Dialog } from './dialog.tsx'
import type { DialogProps } from './dialog-layer.tsx'

type FormDialogProps = Omit<DialogProps, 'open' | 'footer'> & {
  /** On the submitting button. */
  readonly action: string
  readonly kind?: ButtonKind
  /** Why it cannot be submitted yet. */
  readonly why?: string | undefined
  readonly busy: boolean
  readonly onSubmit: (event: FormEvent) => void
}

/** A dialog whose content is a form. A click outside keeps it open, unless told otherwise. */
export function FormDialog({ action, kind = 'primary', why, busy, onSubmit, children, ...dialog }: FormDialogProps) {
  const form = useId()
  return (
    <Dialog
      open
      keep
      {...dialog}
      footer={
        <>
          <Button onClick={dialog.onClose}>{confirmFields.cancel}</Button>
          <Button type="submit" form={form} kind={kind} busy={busy} why={why}>
            {action}
          </Button>
        </>
      }
    >
      <form id={form} aria-label={dialog.title} onSubmit={onSubmit} className="flex flex-col gap-4">
        {children}
      </form>
    </Dialog>
  )
}
