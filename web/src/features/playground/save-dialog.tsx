'use client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { SavedQuery } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { routes } from '../../lib/routes.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { RadioGroup, TextField } from '../../ui/field.tsx'
import { ErrorState } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import * as copy from './copy.ts'
import type { Draft } from './request.ts'

type SaveProps = {
  readonly draft: Draft
  readonly shard: string | undefined
  /** The query to edit; without it a new one is created. */
  readonly saved?: SavedQuery | undefined
  readonly onClose: () => void
}

/** Texts may contain parameters, `{{name}}`, which are filled in when the query is opened. */
export function SaveDialog({ draft, shard, saved, onClose }: SaveProps) {
  const [name, setName] = useState(saved?.name ?? '')
  const [folder, setFolder] = useState(saved?.folder ?? '')
  const [visible, setVisible] = useState(saved?.visible ?? 'me')
  const queries = useQueryClient()
  const isChange = saved?.mine === true
  const save = useMutation({
    mutationFn: () => {
      const { command, fields, node } = draft
      const body = {
        name,
        folder,
        visible,
        shard: shard ?? '',
        node: node || null,
        command,
        fields: { ...fields } as never,
      }
      return isChange
        ? call('PUT /api/v1/saved-queries/{id}', { params: { id: saved.id }, body })
        : call('POST /api/v1/saved-queries', { body })
    },
    onSuccess: ({ id }) => {
      void queries.invalidateQueries({ queryKey: ['saved-queries'] })
      toast({ message: copy.saveDialog.saved(name), href: { to: routes.savedQuery(id), label: copy.actions.open } })
      onClose()
    },
  })
  return (
    <Dialog
      open
      keep
      onClose={onClose}
      title={isChange ? copy.saveDialog.editTitle(saved.name) : copy.saveDialog.title}
      footer={
        <>
          <Button onClick={onClose}>{copy.actions.cancel}</Button>
          <Button
            kind="primary"
            busy={save.isPending}
            why={name.trim() === '' ? copy.saveDialog.nameFirst : undefined}
            onClick={() => save.mutate()}
          >
            {isChange ? copy.saveDialog.saveChanges : copy.saveDialog.save}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-3">
        <TextField label={copy.saveDialog.name} required maxLength={80} value={name} onChange={setName} />
        <TextField
          label={copy.saveDialog.folder}
          hint={copy.saveDialog.folderHint}
          maxLength={80}
          value={folder}
          onChange={setFolder}
        />
        <RadioGroup
          label={copy.saveDialog.visible}
          value={visible}
          onChange={setVisible}
          options={[
            { value: 'me', label: copy.saveDialog.me },
            { value: 'all', label: copy.saveDialog.all },
          ]}
        />
        {save.error && <ErrorState error={save.error} />}
      </div>
    </Dialog>
  )
}
