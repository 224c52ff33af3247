'use client'
/**
 * A change that asks first (docs/design/control-plane.md#plan). Level 1 has one button, level 2 needs a reason, and
 * level 3, which removes data, also the name of what it changes.
 */
import { type ReactNode, useState } from 'react'
import { ApiProblem } from '../lib/problem.ts'
import { useMe } from '../lib/session.ts'
import { missingConfirmation, ReasonField, TypedField } from './confirm-fields.tsx'
import { EnvironmentLabel } from './environment-label.tsx'
import { FormDialog } from './form-dialog.tsx'

export type Level = 1 | 2 | 3

/** In a development environment one button is enough. */
export function useConfirmLevel(level: Level): Level {
  return useMe().environment.kind === 'development' ? 1 : level
}

type ConfirmProps = {
  readonly title: string
  readonly level: Level
  /** Typed at level 3. */
  readonly name: string
  /** On the confirming button. */
  readonly action: string
  /** Why it cannot be confirmed yet. */
  readonly why?: string | undefined
  /** Closes the dialog unless it fails. */
  readonly run: (reason: string) => Promise<void>
  readonly onClose: () => void
  readonly children: ReactNode
}

export function ConfirmDialog({ title, level, name, action, why, run, onClose, children }: ConfirmProps) {
  const { environment } = useMe()
  const required = useConfirmLevel(level)
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  const [problem, setProblem] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const missing =
    why ?? (required === 1 ? undefined : missingConfirmation({ reason, ...(required === 3 && { text: name, typed }) }))
  const confirm = async () => {
    if (missing !== undefined || isBusy) return
    setBusy(true)
    setProblem(undefined)
    try {
      await run(reason.trim())
      onClose()
    } catch (error) {
      setProblem(error)
      setBusy(false)
    }
  }
  return (
    <FormDialog
      title={title}
      action={action}
      kind={level === 3 ? 'danger-filled' : 'primary'}
      keep={typed !== '' || reason !== ''}
      label={<EnvironmentLabel environment={environment} />}
      why={missing}
      busy={isBusy}
      onClose={onClose}
      onConfirm={() => void confirm()}
      onSubmit={(event) => {
        event.preventDefault()
        void confirm()
      }}
    >
      {children}
      {required === 3 && <TypedField text={name} value={typed} onChange={setTyped} />}
      {required > 1 && <ReasonField value={reason} onChange={setReason} />}
      {problem !== undefined && <Failed error={problem} />}
    </FormDialog>
  )
}

/** Why a request failed, and what to do. */
export function Failed({ error }: { readonly error: unknown }) {
  return (
    <div role="alert" className="break-words text-crit">
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {error instanceof ApiProblem && error.hint && <p className="text-small text-text-2">{error.hint}</p>}
    </div>
  )
}
