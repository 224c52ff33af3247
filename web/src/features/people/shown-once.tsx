'use client'
import type { ReactNode } from 'react'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, Input } from '../../ui/field.tsx'
import * as copy from './copy.ts'

type ShownOnceProps = {
  readonly title: string
  readonly label: string
  readonly value: string
  readonly children: ReactNode
  readonly onClose: () => void
}

/** A secret that the server returned once: shown until the dialog is closed, and never again. */
export function ShownOnce({ title, label, value, children, onClose }: ShownOnceProps) {
  return (
    <Dialog
      open
      keep
      title={title}
      onClose={onClose}
      footer={
        <Button kind="primary" onClick={onClose}>
          {copy.shownOnce.done}
        </Button>
      }
    >
      <div className="flex flex-col gap-3">
        <p className="prose text-text-2">{children}</p>
        <Field label={label} hint={copy.shownOnce.hint}>
          {(wire) => (
            <div className="flex gap-1">
              <Input
                {...wire}
                required={false}
                readOnly
                value={value}
                className="font-mono"
                data-secret=""
                onFocus={(event) => event.target.select()}
              />
              <CopyButton text={value} label={copy.shownOnce.copy(label)} />
            </div>
          )}
        </Field>
      </div>
    </Dialog>
  )
}
