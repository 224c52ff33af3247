'use client'
/**
 * Level 2: a build that leaves rows out on purpose, with the reason for it in the audit log
 * (docs/design/control-plane.md#imports).
 */
import type { ImportView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { counted } from '../../lib/format.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { Button } from '../../ui/button.tsx'
import { missingConfirmation, ReasonField } from '../../ui/confirm-fields.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SubmitProblem, useSubmit } from '../session/password-form.tsx'

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
      title={`Build ${view.name} without ${counted(rows, 'row')}`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form="build-again" kind="primary" busy={busy} why={missingConfirmation({ reason })}>
            Build without {counted(rows, 'row')}
          </Button>
        </>
      }
    >
      <form id="build-again" onSubmit={submit} className="flex flex-col gap-4">
        <p className="prose">
          The same files are built from, but for {counted(rows, 'row')} that this import rejected. What they say will
          not be in the snapshot. Packages of a property that is left out have no property then, and are rejected in
          turn.
        </p>
        <ReasonField value={reason} onChange={setReason} />
        <SubmitProblem error={error} waitSeconds={0} />
      </form>
    </Dialog>
  )
}
