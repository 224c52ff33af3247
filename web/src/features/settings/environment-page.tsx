'use client'
import { useQueryClient } from '@tanstack/react-query'
import type { Environment, RouteAnswer } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Input, RadioGroup } from '../../ui/field.tsx'
import { Panel } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import { SubmitProblem, useSubmit } from '../session/password-form.tsx'
import { ME_KEY } from '../session/session-gate.tsx'
import { EnvironmentLabel } from '../shell/environment-label.tsx'
import { SettingsFrame } from './settings-frame.tsx'
import { SETTINGS_KEY, useSettings } from './settings-query.ts'

const KINDS = [
  { value: 'development', label: 'Development', hint: 'Plans ask for no reason, and for nothing to be typed.' },
  { value: 'staging', label: 'Staging', hint: 'Plans ask as in production.' },
  { value: 'production', label: 'Production', hint: 'Warnings ask for a reason, losses for the id of the shard.' },
] as const

export function EnvironmentPage() {
  const settings = useSettings()
  return (
    <SettingsFrame id="environment" ready={!settings.isPending}>
      <Panel title="Which cluster this is" query={settings}>
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
    toast({ message: 'Environment saved' })
    await Promise.all([
      queries.invalidateQueries({ queryKey: SETTINGS_KEY }),
      queries.invalidateQueries({ queryKey: ME_KEY }),
    ])
  })
  return (
    <form aria-label="Environment" onSubmit={submit} className="flex max-w-140 flex-col gap-4">
      <Field
        label="Label"
        hint="Stands on every page and in every plan. At most 24 characters."
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
        label="Kind"
        value={environment.kind}
        onChange={(kind) => setEnvironment({ ...environment, kind })}
        options={KINDS.map((kind) => ({ ...kind, disabled: why !== undefined }))}
      />
      <Field
        label="Address for copied commands"
        hint="Such as https://console.example.com; left empty, the address that the page was opened by."
        error={error?.field === 'baseUrl' ? error.message : undefined}
      >
        {(wire) => (
          <Input
            {...wire}
            type="url"
            maxLength={256}
            readOnly={why !== undefined}
            value={baseUrl}
            onChange={(event) => setBaseUrl(event.target.value)}
          />
        )}
      </Field>
      <SubmitProblem error={error?.field ? undefined : error} waitSeconds={0} />
      <Button type="submit" kind="primary" className="self-start" busy={busy} why={why}>
        Save environment
      </Button>
    </form>
  )
}
