'use client'
/** A month calendar. Disabled days show the reason. */
import clsx from 'clsx'
import { type ComponentProps, createContext, useContext, useState } from 'react'
import { DayButton, DayPicker } from 'react-day-picker'
import { dateOf, dayOf } from '../../lib/days.ts'
import { day as dayText } from '../../lib/format.ts'
import { serverNow } from '../../lib/server-time.ts'
import { useRoute } from '../../lib/use-route.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import * as copy from './copy.ts'
import { type Bounds, isUnsold, whyNotDay } from './dates.ts'

const DAY_MS = 86_400_000
const SOLD_MS = 60_000

/** State of a day; `refused` is why it is disabled. */
type DayState = { readonly refused?: string | undefined; readonly isEmpty: boolean; readonly note: string | undefined }

const DayStates = createContext<(day: Date) => DayState>(() => ({ isEmpty: false, note: undefined }))

export type GridProps = {
  readonly value: readonly string[]
  readonly onChange: (dates: readonly string[]) => void
  readonly bounds: Bounds
  readonly segment: string
  readonly single: boolean
}

export default function MonthGrid({ value, onChange, bounds, segment, single }: GridProps) {
  // Optional: without it no night is marked as having no packages.
  const sold = useRoute(
    'GET /api/v1/segment-days',
    { query: { shard: bounds.shard, segment } },
    { enabled: segment !== '' && bounds.window !== null, staleTime: SOLD_MS },
  ).data
  const chosen = value.filter((date) => dayOf(date) !== undefined).map((date) => new Date(date))
  const [begun, setBegun] = useState<number>()
  const stateOf = (date: Date): DayState => {
    const day = dayNumber(date)
    const refused = whyNotDay(day, bounds, begun)
    const isEmpty = refused === undefined && sold !== undefined && isUnsold(day, sold)
    return { refused, isEmpty, note: refused ?? (isEmpty ? copy.dates.noPackages(segment) : undefined) }
  }
  const choose = (date: Date) => {
    const picked = dayNumber(date)
    if (stateOf(date).refused !== undefined) return
    if (single || begun === undefined) {
      onChange([dateOf(picked)])
      if (!single) setBegun(picked)
      return
    }
    const [from, to] = [Math.min(begun, picked), Math.max(begun, picked)]
    onChange(Array.from({ length: to - from + 1 }, (_, n) => dateOf(from + n)))
    setBegun(undefined)
  }
  const onSelect = (_: unknown, date: Date) => choose(date)
  return (
    <div className="w-fit rounded-panel border border-line p-2">
      <DayStates value={stateOf}>
        <DayPicker
          {...(single
            ? { mode: 'single', selected: chosen[0], onSelect }
            : { mode: 'multiple', selected: chosen, onSelect })}
          timeZone="UTC"
          weekStartsOn={1}
          defaultMonth={chosen[0] ?? new Date(bounds.window?.from ?? serverNow())}
          navLayout="around"
          components={{ DayButton: Day, PreviousMonthButton: PreviousMonth, NextMonthButton: NextMonth }}
          formatters={{ formatWeekdayName: (date, _, dates) => dates?.format(date, 'ccc') ?? '' }}
          labels={{
            labelDayButton: (date) => {
              const { note } = stateOf(date)
              return `${dayText(dateOf(dayNumber(date)), true)}${note ? `, ${note}` : ''}`
            },
          }}
          onDayKeyDown={(_, __, event) => {
            if (event.key !== 'Escape' || begun === undefined) return
            event.preventDefault()
            event.stopPropagation()
            setBegun(undefined)
          }}
          classNames={{
            month: 'grid grid-cols-[auto_1fr_auto] items-center gap-y-1',
            caption_label: 'block text-center font-medium',
            month_grid: 'col-span-3 border-separate border-spacing-0.5',
            weekday: 'font-normal text-small text-text-3',
            day: 'p-0',
          }}
        />
      </DayStates>
      {sold?.window && (
        <p className="flex items-center gap-2 pt-1 text-small text-text-3">
          <span aria-hidden="true" className="size-1 rounded-full bg-current" />
          {copy.dates.noPackages(segment)}
        </p>
      )}
      <p role="status" className="pt-1 text-small text-text-3">
        {single ? '' : begun === undefined ? copy.dates.chooseFirst : copy.dates.chooseLast(dayText(dateOf(begun)))}
      </p>
    </div>
  )
}

const dayNumber = (date: Date): number => Math.floor(date.getTime() / DAY_MS)

/** A disabled day stays focusable, so that its reason can be read. */
function Day(props: ComponentProps<typeof DayButton>) {
  const { refused, isEmpty, note } = useContext(DayStates)(props.day.date)
  const isRefused = refused !== undefined
  return (
    <DayButton
      {...props}
      aria-disabled={isRefused || undefined}
      data-date={props.day.isoDate}
      data-unsold={isEmpty || undefined}
      data-tip={note}
      className={clsx(
        'num size-8 rounded-control text-center text-table pointer-coarse:size-11',
        isRefused ? 'hatch cursor-not-allowed text-text-3' : 'cursor-pointer',
        props.modifiers['selected'] ? 'bg-accent font-medium text-on-accent' : !isRefused && 'hover:bg-sunken',
      )}
    >
      {props.children}
      {isEmpty && <span className="mx-auto block size-1 rounded-full bg-current" />}
    </DayButton>
  )
}

function PreviousMonth({ onClick }: ComponentProps<'button'>) {
  return <IconButton label={copy.dates.previousMonth} icon="chevron-left" onClick={onClick} />
}

function NextMonth({ onClick }: ComponentProps<'button'>) {
  return <IconButton label={copy.dates.nextMonth} icon="chevron-right" onClick={onClick} />
}
