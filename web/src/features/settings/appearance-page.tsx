'use client'
import { useMe } from '../../lib/session.ts'
import { RadioGroup, Switch } from '../../ui/field.tsx'
import { Panel } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { useSavePreferences } from './preferences.ts'
import { SettingsFrame } from './settings-frame.tsx'

export function AppearancePage() {
  const { preferences } = useMe()
  const save = useSavePreferences()
  return (
    <SettingsFrame id="appearance" ready>
      <Panel title={copy.appearance.panel}>
        <div className="flex flex-col gap-5">
          <RadioGroup
            label={copy.appearance.theme}
            value={preferences.theme}
            onChange={(theme) => save({ theme })}
            options={[
              { value: 'system', label: copy.appearance.themes.system },
              { value: 'light', label: copy.appearance.themes.light },
              { value: 'dark', label: copy.appearance.themes.dark },
              { value: 'contrast', label: copy.appearance.themes.contrast, hint: copy.appearance.contrastHint },
            ]}
          />
          <RadioGroup
            label={copy.appearance.density}
            value={preferences.density}
            onChange={(density) => save({ density })}
            options={[
              {
                value: 'comfortable',
                label: copy.appearance.densities.comfortable,
                hint: copy.appearance.rowHeight(40),
              },
              { value: 'compact', label: copy.appearance.densities.compact, hint: copy.appearance.rowHeight(32) },
              { value: 'dense', label: copy.appearance.densities.dense, hint: copy.appearance.rowHeight(28) },
            ]}
          />
        </div>
      </Panel>
      <Panel title={copy.appearance.keyboard}>
        <Switch
          label={copy.appearance.keys}
          hint={copy.appearance.keysHint}
          checked={preferences.keys}
          onChange={(keys) => save({ keys })}
        />
      </Panel>
    </SettingsFrame>
  )
}
