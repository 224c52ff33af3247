'use client'
import { useMe } from '../../lib/session.ts'
import { RadioGroup, Switch } from '../../ui/field.tsx'
import { Panel } from '../../ui/panel.tsx'
import { useSavePreferences } from './preferences.ts'
import { SettingsFrame } from './settings-frame.tsx'

export function AppearancePage() {
  const { preferences } = useMe()
  const save = useSavePreferences()
  return (
    <SettingsFrame id="appearance" ready>
      <Panel title="Look">
        <div className="flex flex-col gap-5">
          <RadioGroup
            label="Theme"
            value={preferences.theme}
            onChange={(theme) => save({ theme })}
            options={[
              { value: 'system', label: 'Like the system' },
              { value: 'light', label: 'Light' },
              { value: 'dark', label: 'Dark' },
              { value: 'contrast', label: 'High contrast', hint: 'Light or dark like the system, in black and white.' },
            ]}
          />
          <RadioGroup
            label="Rows"
            value={preferences.density}
            onChange={(density) => save({ density })}
            options={[
              { value: 'comfortable', label: 'Comfortable', hint: '40 px' },
              { value: 'compact', label: 'Compact', hint: '32 px' },
              { value: 'dense', label: 'Dense', hint: '28 px' },
            ]}
          />
        </div>
      </Panel>
      <Panel title="Keys">
        <Switch
          label="Keys of one letter"
          hint="Such as g s for shards and p for pause. They never act while something is typed."
          checked={preferences.keys}
          onChange={(keys) => save({ keys })}
        />
      </Panel>
    </SettingsFrame>
  )
}
