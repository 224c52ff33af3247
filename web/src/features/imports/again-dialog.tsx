'use client'
/**
 * Builds without the rejected rows, with a reason recorded in the audit log
 * (docs/design/control-plane.md#imports).
 */
import type { ImportView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { missingConfirmation, ReasonField } from '../../ui/confirm-fields.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { SubmitProblem, useSubmit } from '../session/submit.tsx'
import * as copy from './copy.ts'

export function AgainDialog({ view, rows, onClose }: { view: ImportView; rows: number; onClose: () => void }) {
  const [reason, setReason] = useState('')
  const { busy, error, submit } = useSubmit(async () => {
    const { id } = await call('POST /api/v1/imports/{id}/again', { params: { id: view.id }, body: { reason } })
    navigate(routes.import(id))
  })
  return (
    <FormDialog
      title={copy.again.title(view.name, rows)}
      action={copy.again.build(rows)}
      why={missingConfirmation({ reason })}
      busy={busy}
      onSubmit={submit}
      onClose={onClose}
    >
      <p className="prose">{copy.again.effect(rows)}</p>
      <ReasonField value={reason} onChange={setReason} />
      <SubmitProblem error={error} waitSeconds={0} />
    </FormDialog>
  )
}
