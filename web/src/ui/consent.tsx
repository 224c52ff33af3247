/**
 * What is asked of somebody before a change that is hard to take back (docs/design/control-plane.md#plan): its name
 * typed, and why.
 */
import { Field, Input } from './field.tsx'

const REASON_MIN = 8
const REASON_MAX = 500

type ValueProps = { readonly value: string; readonly onChange: (value: string) => void }

export function TypedField({ text, value, onChange }: ValueProps & { readonly text: string }) {
  return (
    <Field label={`Type ${text} to confirm`} required>
      {(wire) => (
        <Input
          {...wire}
          value={value}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onChange(event.target.value.trim())}
        />
      )}
    </Field>
  )
}

export function ReasonField({ value, onChange }: ValueProps) {
  return (
    <Field label="Reason (kept in the audit log)" required>
      {(wire) => (
        <Input {...wire} value={value} maxLength={REASON_MAX} onChange={(event) => onChange(event.target.value)} />
      )}
    </Field>
  )
}

/** Why it cannot be done yet. */
export function lacksConsent(given: { text?: string; typed?: string; reason: string }): string | undefined {
  if (given.typed !== given.text) return `Type ${given.text} first`
  return given.reason.trim().length < REASON_MIN ? `Give a reason of ${REASON_MIN} characters or more` : undefined
}
