/**
 * Confirmation of a change that is hard to undo (docs/design/control-plane.md#plan): its name, typed, and a reason.
 */
import * as copy from './data-copy.ts'
import { TextField } from './field.tsx'

const REASON_MIN = 8
const REASON_MAX = 500

type ValueProps = { readonly value: string; readonly onChange: (value: string) => void }

export function TypedField({ text, value, onChange }: ValueProps & { readonly text: string }) {
  return (
    <TextField
      label={copy.confirmFields.typeToConfirm(text)}
      required
      value={value}
      autoComplete="off"
      spellCheck={false}
      onChange={(text) => onChange(text.trim())}
    />
  )
}

export function ReasonField({ value, onChange }: ValueProps) {
  return (
    <TextField label={copy.confirmFields.reason} required value={value} maxLength={REASON_MAX} onChange={onChange} />
  )
}

/** What is still missing before the change can be confirmed; undefined when nothing is. */
export function missingConfirmation(given: { text?: string; typed?: string; reason: string }): string | undefined {
  if (given.typed !== given.text) return copy.confirmFields.typeFirst(given.text)
  return given.reason.trim().length < REASON_MIN ? copy.confirmFields.reasonTooShort(REASON_MIN) : undefined
}
