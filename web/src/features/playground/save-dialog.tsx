'use client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { SavedQuery } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { routes } from '../../lib/routes.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, Input, RadioGroup } from '../../ui/field.tsx'
import { ErrorState } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Draft } from './request.ts'

type SaveProps = {
  readonly draft: Draft
  readonly shard: string | undefined
  /** The query that is changed; without one a new one is made. */
  readonly saved?: SavedQuery | undefined
  readonly onClose: () => void
}

/** Texts may hold `{{name}}`: whoever opens the query is asked for these. */
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
      toast({ message: `Saved as ${name}`, href: { to: routes.savedQuery(id), label: 'Open it' } })
      onClose()
    },
  })
  return (
    <Dialog
      open
      keep
      onClose={onClose}
      title={isChange ? `Change ${saved.name}` : 'Save this query'}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            busy={save.isPending}
            why={name.trim() === '' ? 'Give it a name first' : undefined}
            onClick={() => save.mutate()}
          >
            {isChange ? 'Save the changes' : 'Save the query'}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-3">
        <Field label="Name" required>
          {(wire) => <Input {...wire} maxLength={80} value={name} onChange={({ target }) => setName(target.value)} />}
        </Field>
        <Field label="Folder" hint="Queries of one folder stand together.">
          {(wire) => (
            <Input {...wire} maxLength={80} value={folder} onChange={({ target }) => setFolder(target.value)} />
          )}
        </Field>
        <RadioGroup
          label="Who may see it"
          value={visible}
          onChange={setVisible}
          options={[
            { value: 'me', label: 'Only you' },
            { value: 'all', label: 'Everybody who may sign in' },
          ]}
        />
        {save.error && <ErrorState error={save.error} />}
      </div>
    </Dialog>
  )
}
