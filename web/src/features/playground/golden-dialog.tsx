'use client'
/** What a golden search must find: entered here, tried on the shard, and saved. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { GoldenSearch } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { dayOf } from '../../lib/days.ts'
import { routes } from '../../lib/routes.ts'
import { serverNow } from '../../lib/server-time.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Button } from '../../ui/button.tsx'
import { Switch, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { ErrorState } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import * as playground from './copy.ts'
import { bodyOf, daysAheadOf, formOf, type GoldenForm, type GoldenRequest } from './golden.ts'
import { golden as copy } from './golden-copy.ts'

type GoldenProps = {
  readonly request: GoldenRequest
  /** The golden search to change; without it a new one is saved. */
  readonly stored?: GoldenSearch | undefined
  readonly onClose: () => void
}

const EMPTY: GoldenForm = { name: '', atLeast: '', contains: '', p99Ms: '', moves: true }

export function GoldenDialog({ request, stored, onClose }: GoldenProps) {
  const [form, setForm] = useState<GoldenForm>(stored ? formOf(stored) : EMPTY)
  const whyNot = useWhyNot('operator')
  const queries = useQueryClient()
  const today = dayOf(new Date(serverNow()).toISOString().slice(0, 10)) as number
  const ahead = stored?.daysAhead ?? daysAheadOf(request, today)
  const made = bodyOf(request, form, ahead)
  const tried = useMutation({
    mutationFn: () => {
      if (!made.ok) throw new Error(made.reason)
      const { name: _, ...body } = made.body
      return call('POST /api/v1/golden-searches/try', { body })
    },
  })
  const save = useMutation({
    mutationFn: () => {
      if (!made.ok) throw new Error(made.reason)
      return stored
        ? call('PUT /api/v1/golden-searches/{id}', { params: { id: stored.id }, body: made.body })
        : call('POST /api/v1/golden-searches', { body: made.body })
    },
    onSuccess: ({ name, shard }) => {
      void queries.invalidateQueries({ queryKey: ['golden'] })
      toast({ message: copy.saved(name), href: { to: routes.golden({ shard }), label: playground.actions.open } })
      onClose()
    },
  })
  const set = (change: Partial<GoldenForm>) => {
    tried.reset()
    setForm({ ...form, ...change })
  }
  const reason = made.ok ? undefined : made.reason
  const why = whyNot ?? (form.name.trim() === '' ? copy.nameFirst : reason)
  return (
    <FormDialog
      title={stored ? copy.changeTitle(stored.name) : copy.title(request.shard)}
      action={stored ? copy.saveChanges : copy.save}
      why={why}
      busy={save.isPending}
      onClose={onClose}
      onSubmit={(event) => {
        event.preventDefault()
        if (why === undefined && !save.isPending) save.mutate()
      }}
    >
      <p className="prose text-text-2">{copy.lead}</p>
      <TextField label={copy.name} required maxLength={80} value={form.name} onChange={(name) => set({ name })} />
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField
          label={copy.atLeast}
          hint={copy.atLeastHint}
          inputMode="numeric"
          value={form.atLeast}
          onChange={(atLeast) => set({ atLeast })}
        />
        <TextField
          label={copy.p99}
          hint={copy.p99Hint}
          inputMode="decimal"
          value={form.p99Ms}
          onChange={(p99Ms) => set({ p99Ms })}
        />
      </div>
      <TextField
        label={copy.contains}
        hint={copy.containsHint}
        spellCheck={false}
        autoComplete="off"
        value={form.contains}
        onChange={(contains) => set({ contains })}
      />
      {ahead !== undefined && (
        <Switch
          label={copy.moves}
          hint={form.moves ? copy.movesHint(ahead) : copy.staysHint}
          checked={form.moves}
          onChange={(moves) => set({ moves })}
        />
      )}
      <div className="flex flex-wrap items-center gap-3">
        <Button icon="play" busy={tried.isPending} why={reason} onClick={() => tried.mutate()}>
          {copy.tryNow}
        </Button>
        {tried.data && (
          <p role="status" data-verdict={tried.data.verdict} className="min-w-0 break-words">
            <strong className={tried.data.verdict === 'passed' ? 'text-ok' : 'text-warn'}>
              {tried.data.verdict === 'passed' ? copy.holds : copy.fails}
            </strong>{' '}
            {tried.data.message} <span className="text-text-3">{copy.at(tried.data.node)}</span>
          </p>
        )}
      </div>
      {(save.error ?? tried.error) && <ErrorState error={save.error ?? tried.error} />}
    </FormDialog>
  )
}
