'use client'
/** When the day of a shard begins, and its change. */
import { useState } from 'react'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'
import * as copy from './copy.ts'
import { useChangeSetting } from './queries.ts'

const DAY_MINUTES = 1_440
/** As the shard accepts them. */
const [MIN, MAX] = [-840, 1_200]

/** `480` as `08:00 UTC`, `-60` as `23:00 UTC the day before`. */
export function dayBegins(minutes: number): string {
  const days = Math.floor(minutes / DAY_MINUTES)
  const time = new Date((minutes - days * DAY_MINUTES) * 60_000).toISOString().slice(11, 16)
  return copy.day.at(time, days)
}

type DayDialogProps = { readonly shard: string; readonly minutes: number; readonly onClose: () => void }

export function DayDialog({ shard, minutes, onClose }: DayDialogProps) {
  const [typed, setTyped] = useState(String(minutes))
  const change = useChangeSetting(shard)
  const value = /^[-−]?\d{1,4}$/.test(typed.trim()) ? Number(typed.trim().replace('−', '-')) : Number.NaN
  const isValid = value >= MIN && value <= MAX
  return (
    <ConfirmDialog
      title={copy.day.title(shard)}
      action={copy.day.action}
      level={2}
      name={shard}
      why={isValid ? (value === minutes ? copy.day.same : undefined) : copy.day.invalid}
      onClose={onClose}
      run={async (reason) => {
        await change('day_begins_minutes', value, reason)
        toast({ message: copy.day.done(shard, dayBegins(value)), level: 'ok' })
      }}
    >
      <TextField label={copy.day.minutes} required hint={copy.day.hint} value={typed} onChange={setTyped} />
      {isValid && <p>{copy.day.effect(dayBegins(value))}</p>}
    </ConfirmDialog>
  )
}
