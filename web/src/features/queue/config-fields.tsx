'use client'
import type { TopicConfig } from '@vacancy/shared/contract'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { type ConfigFaults, type ConfigTexts, isNumeric, usualText } from './config-values.ts'
import * as copy from './copy.ts'

type ConfigFieldsProps = {
  readonly keys: readonly (keyof TopicConfig)[]
  /** The values before a change; defaults without them. */
  readonly present?: TopicConfig
  readonly texts: ConfigTexts
  readonly faults: ConfigFaults
  readonly onChange: (texts: ConfigTexts) => void
  readonly why?: string | undefined
}

/** Fields of the configuration of a topic. Typed values stay when the present ones change. */
export function ConfigFields({ keys, present, texts, faults, onChange, why }: ConfigFieldsProps) {
  return (
    <div className="grid gap-x-6 gap-y-4 sm:grid-cols-2">
      {keys.map((key) => {
        const [label, hint] = copy.config.keys[key]
        const stored = present === undefined ? usualText(key) : String(present[key])
        const text = texts[key] ?? stored
        const change = (value: string) => onChange({ ...texts, [key]: value })
        return isNumeric(key) ? (
          <TextField
            key={key}
            label={label}
            hint={hint}
            error={faults[key]}
            name={key}
            inputMode="decimal"
            readOnly={why !== undefined}
            value={text}
            onChange={(text) => change(text.trim())}
          />
        ) : (
          <Checkbox
            key={key}
            name={key}
            label={label}
            hint={hint}
            disabled={why !== undefined}
            checked={text === 'true'}
            onChange={({ target }) => change(String(target.checked))}
          />
        )
      })}
    </div>
  )
}
