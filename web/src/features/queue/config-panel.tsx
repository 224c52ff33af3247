'use client'
import { type FormEvent, useState } from 'react'
import { call } from '../../lib/api.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Button } from '../../ui/button.tsx'
import { Failed } from '../../ui/confirm-dialog.tsx'
import { Panel } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import { ConfigFields } from './config-fields.tsx'
import { CONFIG_KEYS, type ConfigTexts, configChange, configFaults } from './config-values.ts'
import * as copy from './copy.ts'
import { useQueueChange, useTopic } from './queries.ts'

/** The configuration of a topic. Only what was changed is sent. */
export function ConfigPanel({ topic }: { readonly topic: string }) {
  const query = useTopic(topic)
  const admin = useWhyNot('admin')
  const [texts, setTexts] = useState<ConfigTexts>({})
  const [problem, setProblem] = useState<unknown>()
  const faults = configFaults(texts)
  const change = configChange(texts, query.data?.config)
  const isChanged = Object.keys(change).length > 0 || Object.keys(faults).length > 0
  const why = admin ?? (Object.keys(faults).length > 0 ? copy.config.bad : isChanged ? undefined : copy.config.nothing)
  const save = useQueueChange((config: ReturnType<typeof configChange>) =>
    call('PUT /api/v1/queue/topics/{topic}', { params: { topic }, body: { config } }),
  )
  const send = async (event: FormEvent) => {
    event.preventDefault()
    if (why !== undefined || save.isPending) return
    setProblem(undefined)
    try {
      await save.mutateAsync(change)
      setTexts({})
      toast({ message: copy.config.saved(Object.keys(change).join(', ')) })
    } catch (error) {
      setProblem(error)
    }
  }
  return (
    <Panel title={copy.config.title} query={query} skeleton={8}>
      {({ config }) => (
        <form aria-label={copy.config.title} onSubmit={send} className="flex max-w-200 flex-col gap-4">
          <p className="text-small text-text-3">{copy.config.hint}</p>
          <ConfigFields
            keys={CONFIG_KEYS}
            present={config}
            texts={texts}
            faults={faults}
            onChange={setTexts}
            why={admin}
          />
          {problem !== undefined && <Failed error={problem} />}
          <div className="flex flex-wrap gap-2">
            <Button type="submit" kind="primary" why={why} busy={save.isPending}>
              {copy.config.save}
            </Button>
            {isChanged && <Button onClick={() => setTexts({})}>{copy.config.revert}</Button>}
          </div>
        </form>
      )}
    </Panel>
  )
}
