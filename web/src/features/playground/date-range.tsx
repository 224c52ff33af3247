'use client'
/** Dates of a stay: typed, or picked in a calendar that explains disabled days. */
import { Suspense, useState } from 'react'
import { day as dayText } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { late } from '../../ui/late.tsx'
import { Skeleton } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { countText, formatDates, outsideText, parseDates } from './dates.ts'
import type { GridProps } from './month-grid.tsx'

// Loaded when the first calendar opens.
const MonthGrid = late(async () => (await import('./month-grid.tsx')).default)

export type DatesProps = Pick<GridProps, 'value' | 'onChange' | 'bounds'> & {
  readonly label: string
  /** Segment whose nights without packages are marked. */
  readonly segment: string | undefined
  readonly required: boolean
  readonly error?: string | undefined
  /** One date only. */
  readonly single?: boolean
}

export function DatesField(props: DatesProps) {
  const { label, value, onChange, bounds, segment, required, error, single = false } = props
  const [text, setText] = useState<string>()
  const [isOpen, setOpen] = useState(false)
  const typed = text === undefined ? undefined : parseDates(text)
  const { datesMax, window } = bounds
  const limits = [
    datesMax !== null && !single ? copy.dates.max(datesMax) : '',
    window ? copy.dates.data(dayText(window.from), dayText(window.to, true)) : '',
  ].filter(Boolean)
  const counted = single || value.length === 0 ? '' : countText(value)
  return (
    <div className="flex flex-col gap-2">
      <Field
        label={label}
        required={required}
        error={typed && !typed.ok ? typed.reason : error}
        hint={[counted, outsideText(value, bounds), ...limits].filter(Boolean).join(' · ')}
        aside={
          <Button
            kind="quiet"
            icon="calendar"
            aria-expanded={isOpen}
            className="h-6 px-1.5 text-small"
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? copy.dates.closeCalendar : copy.dates.openCalendar}
          </Button>
        }
      >
        {(wire) => (
          <Input
            {...wire}
            value={text ?? formatDates(value)}
            placeholder={single ? '2026-11-20' : '2026-11-20..2026-11-23 or 2026-11-20+4'}
            autoComplete="off"
            spellCheck={false}
            className="font-mono"
            onChange={(event) => {
              setText(event.target.value)
              const parsed = parseDates(event.target.value)
              // Text that is not a date stays in the request, whose check reports it.
              const next = parsed.ok ? parsed.dates : event.target.value.split(',').map((part) => part.trim())
              onChange(single ? next.slice(0, 1) : next)
            }}
            onBlur={() => setText(undefined)}
          />
        )}
      </Field>
      {isOpen && (
        <Suspense fallback={<Skeleton rows={6} />}>
          <MonthGrid value={value} onChange={onChange} bounds={bounds} segment={segment ?? ''} single={single} />
        </Suspense>
      )}
    </div>
  )
}
