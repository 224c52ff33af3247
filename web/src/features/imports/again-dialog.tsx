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
import { Button } from '../../ui/button.tsx'
import { missingConfirmation, ReasonField } from '../../ui/confirm-fields.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SubmitProblem, useSubmit } from '../session/submit.tsx'
import * as copy from './copy.ts'

export function AgainDialog({ view, rows, onClose }: { view: ImportView; rows: number; onClose: () => void }) {
  const [reason, setReason] = useState('')
  const { busy, error, submit } = useSubmit(async () => {
    const { id } = await call('POST /api/v1/imports/{id}/again', { params: { id: view.id }, body: { reason } })
    navigate(routes.import(id))
  })
  return (
    <Dialog
      open
      keep
      onClose={onClose}
      title={copy.again.title(view.name, rows)}
      footer={
        <>
          <Button onClick={onClose}>{copy.common.cancel}</Button>
          <Button type="submit" form="build-again" kind="primary" busy={busy} why={missingConfirmation({ reason })}>
            {copy.again.build(rows)}
          </Button>
        </>
      }
    >
      <form id="build-again" onSubmit={submit} className="flex flex-col gap-4">
        <p className="prose">{copy.again.effect(rows)}</p>
        <ReasonField value={reason} onChange={setReason} />
        <SubmitProblem error={error} waitSeconds={0} />
      </form>
    </Dialog>
  )
}
