'use client'
import type { ReactNode } from 'react'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, Input } from '../../ui/field.tsx'

type OnceShownProps = {
  readonly title: string
  readonly label: string
  readonly value: string
  readonly children: ReactNode
  readonly onClose: () => void
}

/** A secret that is in this answer and nowhere else: shown until it is put away, never again. */
export function OnceShown({ title, label, value, children, onClose }: OnceShownProps) {
  return (
    <Dialog
      open
      keep
      title={title}
      onClose={onClose}
      footer={
        <Button kind="primary" onClick={onClose}>
          Done, it is kept
        </Button>
      }
    >
      <div className="flex flex-col gap-3">
        <p className="prose text-text-2">{children}</p>
        <Field label={label} hint="Shown only now: it cannot be read again.">
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
              <CopyButton text={value} label={`Copy ${label.toLowerCase()}`} />
            </div>
          )}
        </Field>
      </div>
    </Dialog>
  )
}
