'use client'
import { type FormEvent, useState } from 'react'
import { call } from '../../lib/api.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Failed } from '../../ui/confirm-dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { toast } from '../../ui/toast.tsx'
import { ConfigFields } from './config-fields.tsx'
import { type ConfigTexts, configChange, configFaults } from './config-values.ts'
import * as copy from './copy.ts'
import { useQueueChange, useQueueStats } from './queries.ts'

/** As the queue checks it. */
const TOPIC_NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$/

/** Settings that are usually chosen at the start. The others have defaults and can be changed later. */
const USUAL = ['max_attempts', 'ack_deadline_ms', 'retry_base_ms', 'ordered'] as const

export function CreateDialog({ onClose }: { readonly onClose: () => void }) {
  const admin = useWhyNot('admin')
  const known = (useQueueStats().data?.topics ?? []).map(({ topic }) => topic)
  const [name, setName] = useState('')
  const [texts, setTexts] = useState<ConfigTexts>({})
  const [problem, setProblem] = useState<unknown>()
  const faults = configFaults(texts)
  const fault = known.includes(name)
    ? copy.create.exists(name)
    : TOPIC_NAME.test(name)
      ? undefined
      : copy.create.badName
  const why = admin ?? fault ?? (Object.keys(faults).length > 0 ? copy.config.bad : undefined)
  const create = useQueueChange((topic: string) =>
    call('PUT /api/v1/queue/topics/{topic}', { params: { topic }, body: { config: configChange(texts) } }),
  )
  const send = async (event: FormEvent) => {
    event.preventDefault()
    if (why !== undefined || create.isPending) return
    setProblem(undefined)
    try {
      const { created } = await create.mutateAsync(name)
      toast({ message: created ? copy.create.done(name) : copy.create.exists(name), level: created ? 'ok' : 'warn' })
      onClose()
      navigate(routes.topic(name))
    } catch (error) {
      setProblem(error)
    }
  }
  return (
    <FormDialog
      title={copy.create.title}
      action={copy.create.confirm(name)}
      why={why}
      busy={create.isPending}
      onSubmit={send}
      onClose={onClose}
    >
      <TextField
        label={copy.create.name}
        required
        hint={copy.create.nameHint}
        error={name === '' ? undefined : fault}
        value={name}
        maxLength={200}
        autoComplete="off"
        spellCheck={false}
        className="font-mono"
        onChange={(text) => setName(text.trim())}
      />
      <details>
        <summary className="w-fit text-text-2 underline underline-offset-2">{copy.create.settings}</summary>
        <div className="pt-3">
          <ConfigFields keys={USUAL} texts={texts} faults={faults} onChange={setTexts} />
        </div>
      </details>
      {problem !== undefined && <Failed error={problem} />}
    </FormDialog>
  )
}
