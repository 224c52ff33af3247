'use client'
import { useQueryClient } from '@tanstack/react-query'
import type { Environment, RouteAnswer } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Button } from '../../ui/button.tsx'
import { EnvironmentLabel } from '../../ui/environment-label.tsx'
import { Field, Input, RadioGroup, TextField } from '../../ui/field.tsx'
import { Panel } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import { ME_KEY } from '../session/session-gate.tsx'
import { SubmitProblem, useSubmit } from '../session/submit.tsx'
import * as copy from './copy.ts'
import { SettingsFrame } from './settings-frame.tsx'
import { SETTINGS_KEY, useSettings } from './settings-query.ts'

const KINDS = (['development', 'staging', 'production'] as const).map((value) => ({
  value,
  label: copy.environment.kinds[value],
  hint: copy.environment.kindHints[value],
}))

/** A label that is the name of the kind follows it. */
function ofKind({ kind: before, label }: Environment, kind: Environment['kind']): Environment {
  return { kind, label: label.trim().toLowerCase() === before ? kind.toUpperCase() : label }
}

export function EnvironmentPage() {
  const settings = useSettings()
  return (
    <SettingsFrame id="environment" ready={!settings.isPending}>
      <Panel title={copy.environment.panel} query={settings}>
        {(data) => <EnvironmentForm key={JSON.stringify(data.environment)} settings={data} />}
      </Panel>
    </SettingsFrame>
  )
}

function EnvironmentForm({ settings }: { settings: RouteAnswer<'GET /api/v1/settings'> }) {
  const queries = useQueryClient()
  const why = useWhyNot('admin')
  const [environment, setEnvironment] = useState<Environment>(settings.environment)
  const [baseUrl, setBaseUrl] = useState(settings.baseUrl)
  const { busy, error, submit } = useSubmit(async () => {
    await call('PUT /api/v1/settings', {
      body: { environment: { ...environment, label: environment.label.trim() }, baseUrl: baseUrl.trim() },
    })
    toast({ message: copy.environment.saved })
    await Promise.all([
      queries.invalidateQueries({ queryKey: SETTINGS_KEY }),
      queries.invalidateQueries({ queryKey: ME_KEY }),
    ])
  })
  return (
    <form aria-label={copy.environment.panel} onSubmit={submit} className="flex max-w-140 flex-col gap-4">
      <Field
        label={copy.environment.label}
        hint={copy.environment.labelHint}
        aside={<EnvironmentLabel environment={{ ...environment, label: environment.label || '…' }} />}
        error={error?.field === 'environment.label' ? error.message : undefined}
      >
        {(wire) => (
          <Input
            {...wire}
            required
            maxLength={24}
            readOnly={why !== undefined}
            value={environment.label}
            onChange={(event) => setEnvironment({ ...environment, label: event.target.value })}
          />
        )}
      </Field>
      <RadioGroup
        label={copy.environment.kind}
        value={environment.kind}
        onChange={(kind) => setEnvironment(ofKind(environment, kind))}
        options={KINDS.map((kind) => ({ ...kind, disabled: why !== undefined }))}
      />
      <TextField
        label={copy.environment.baseUrl}
        hint={copy.environment.baseUrlHint}
        error={error?.field === 'baseUrl' ? error.message : undefined}
        type="url"
        maxLength={256}
        readOnly={why !== undefined}
        value={baseUrl}
        onChange={setBaseUrl}
      />
      <SubmitProblem error={error?.field ? undefined : error} waitSeconds={0} />
      <Button type="submit" kind="primary" className="self-start" busy={busy} why={why}>
        {copy.environment.save}
      </Button>
    </form>
  )
}
