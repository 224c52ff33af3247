'use client'
/** The dates of a stay: typed, or picked in a month; days that cannot be chosen are marked and say why. */
import { useQuery } from '@tanstack/react-query'
import clsx from 'clsx'
import { type KeyboardEvent, useId, useRef, useState } from 'react'
import { call } from '../../lib/api.ts'
import { day as dayText } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import {
  type Bounds,
  countText,
  dateOf,
  dayOf,
  formatDates,
  isUnsold,
  monthOf,
  monthsOn,
  parseDates,
  whyNotDay,
} from './dates.ts'

type DatesProps = {
  readonly label: string
  readonly value: readonly string[]
  readonly onChange: (dates: readonly string[]) => void
  readonly bounds: Bounds
  /** Whose nights without packages are marked. */
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
    datesMax !== null && !single ? `${datesMax} dates at most` : '',
    window ? `held: ${dayText(window.from)} – ${dayText(window.to, true)}` : '',
  ].filter(Boolean)
  const counted = single || value.length === 0 ? '' : countText(value)
  return (
    <div className="flex flex-col gap-2">
      <Field
        label={label}
        required={required}
        error={typed && !typed.ok ? typed.reason : error}
        hint={[counted, ...limits].filter(Boolean).join(' · ')}
        aside={
          <Button
            kind="quiet"
            icon="calendar"
            aria-expanded={isOpen}
            className="h-6 px-1.5 text-small"
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? 'Close calendar' : 'Calendar'}
          </Button>
        }
      >
        {(wire) => (
          <Input
            {...wire}
            value={text ?? formatDates(value)}
            placeholder={single ? '2026-11-20' : '2026-11-20..2026-11-24 or 2026-11-20+4'}
            autoComplete="off"
            spellCheck={false}
            className="font-mono"
            onChange={(event) => {
              setText(event.target.value)
              const parsed = parseDates(event.target.value)
              if (parsed.ok) onChange(single ? parsed.dates.slice(0, 1) : parsed.dates)
            }}
            onBlur={() => setText(undefined)}
          />
        )}
      </Field>
      {isOpen && (
        <MonthGrid value={value} onChange={onChange} bounds={bounds} segment={segment ?? ''} single={single} />
      )}
    </div>
  )
}

const SOLD_MS = 60_000
const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

type GridProps = Pick<DatesProps, 'value' | 'onChange' | 'bounds'> & {
  readonly segment: string
  readonly single: boolean
}

function MonthGrid({ value, onChange, bounds, segment, single }: GridProps) {
  const id = useId()
  // A help, no more: without it every night looks as if it might be on sale.
  const sold = useQuery({
    queryKey: ['GET /api/v1/segment-days', bounds.shard, segment],
    queryFn: ({ signal }) => call('GET /api/v1/segment-days', { query: { shard: bounds.shard, segment }, signal }),
    enabled: segment !== '' && bounds.window !== null,
    staleTime: SOLD_MS,
  }).data
  const grid = useRef<HTMLTableElement>(null)
  const [first] = value
  const fallback = bounds.window ? dayOf(bounds.window.from) : undefined
  const [active, setActive] = useState((first && dayOf(first)) || fallback || Math.floor(Date.now() / 86_400_000))
  const [begun, setBegun] = useState<number>()
  const month = monthOf(active)
  const chosen = new Set(value)

  const focusOn = (next: number) => {
    setActive(next)
    requestAnimationFrame(() => grid.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus())
  }
  const choose = (picked: number) => {
    if (whyNotDay(picked, bounds, begun) !== undefined) return
    setActive(picked)
    if (single || begun === undefined) {
      onChange([dateOf(picked)])
      if (!single) setBegun(picked)
      return
    }
    const [from, to] = [Math.min(begun, picked), Math.max(begun, picked)]
    onChange(Array.from({ length: to - from + 1 }, (_, n) => dateOf(from + n)))
    setBegun(undefined)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const weekday = (new Date(active * 86_400_000).getUTCDay() + 6) % 7
    const next: { readonly [key: string]: number } = {
      ArrowLeft: active - 1,
      ArrowRight: active + 1,
      ArrowUp: active - 7,
      ArrowDown: active + 7,
      Home: active - weekday,
      End: active + 6 - weekday,
      PageUp: monthsOn(active, -1),
      PageDown: monthsOn(active, 1),
    }
    const to = next[event.key]
    if (to !== undefined) focusOn(to)
    else if (event.key === 'Enter' || event.key === ' ') choose(active)
    else if (event.key === 'Escape' && begun !== undefined) setBegun(undefined)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div className="w-fit rounded-panel border border-line p-2">
      <div className="flex items-center justify-between gap-2 pb-1">
        <IconButton label="Month before" icon="chevron-left" onClick={() => setActive(monthsOn(active, -1))} />
        <span id={id} aria-live="polite" className="font-medium">
          {month.title}
        </span>
        <IconButton label="Month after" icon="chevron-right" onClick={() => setActive(monthsOn(active, 1))} />
      </div>
      <table
        ref={grid}
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a grid of days, as the pattern has it.
        role="grid"
        aria-labelledby={id}
        onKeyDown={onKeyDown}
        className="border-separate border-spacing-0.5"
      >
        <thead>
          <tr>
            {WEEKDAYS.map((name) => (
              <th key={name} scope="col" className="font-normal text-small text-text-3">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {month.weeks.map((week) => (
            <tr key={week.find((day) => day !== undefined)}>
              {week.map((day, n) => {
                if (day === undefined) return <td key={`blank-${WEEKDAYS[n]}`} />
                const date = dateOf(day)
                const why = whyNotDay(day, bounds, begun)
                const isChosen = chosen.has(date)
                const isEmpty = why === undefined && sold !== undefined && isUnsold(day, sold)
                const note = why ?? (isEmpty ? `no packages of ${segment}` : undefined)
                return (
                  // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles its keys.
                  <td
                    key={date}
                    // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a cell of the grid.
                    role="gridcell"
                    tabIndex={day === active ? 0 : -1}
                    aria-selected={isChosen}
                    aria-disabled={why !== undefined || undefined}
                    aria-label={`${dayText(date, true)}${note ? `, ${note}` : ''}`}
                    data-date={date}
                    data-unsold={isEmpty || undefined}
                    data-tip={note}
                    onClick={() => choose(day)}
                    className={clsx(
                      'num size-8 cursor-pointer rounded-control text-center text-table pointer-coarse:size-11',
                      why !== undefined && 'hatch cursor-not-allowed text-text-3',
                      isChosen ? 'bg-accent font-medium text-on-accent' : why === undefined && 'hover:bg-sunken',
                    )}
                  >
                    {new Date(day * 86_400_000).getUTCDate()}
                    {isEmpty && <span className="mx-auto block size-1 rounded-full bg-current" />}
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {sold?.window && (
        <p className="flex items-center gap-2 pt-1 text-small text-text-3">
          <span aria-hidden="true" className="size-1 rounded-full bg-current" />
          no packages of {segment}
        </p>
      )}
      <p role="status" className="pt-1 text-small text-text-3">
        {single
          ? ''
          : begun === undefined
            ? 'Choose the first day'
            : `From ${dayText(dateOf(begun))}: choose the last day`}
      </p>
    </div>
  )
}
