'use client'
/** Parts of a stay that lists and its record share. */
import type { StayLineView, StayListEntry, StayRecord } from '@vacancy/shared/contract'
import { Icon } from '../../icons/icon.tsx'
import { dateOf, dayOf } from '../../lib/days.ts'
import { age, day, duration, NONE, utc } from '../../lib/format.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { useNow } from '../../ui/clock.ts'
import { Link } from '../../ui/link.tsx'
import type { Column } from '../../ui/table.tsx'
import * as copy from './copy.ts'

const ICONS = { held: 'hourglass', booked: 'check', released: 'back', expired: 'clock', void: 'cross' } as const

/** A stay that ended has no rooms, and no badge that catches the eye. */
export function StayState({ state }: { readonly state: StayRecord['state'] }) {
  if (state === 'held' || state === 'booked') {
    return (
      <Badge level={state === 'held' ? 'info' : 'ok'} icon={ICONS[state]}>
        {copy.states[state]}
      </Badge>
    )
  }
  return (
    <span className="inline-flex items-center gap-1 text-small text-text-2">
      <Icon name={ICONS[state]} size={14} />
      {copy.states[state]}
    </span>
  )
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000

/** The time until a deadline, counting down each second. */
export function Countdown({ to }: { readonly to: string | null }) {
  const now = useNow()
  if (to === null) return <span className="text-text-3">{NONE}</span>
  // Rounded up: 0 s are left when it has passed.
  const left = Math.ceil((Date.parse(to) - now) / SECOND_MS) * SECOND_MS
  return (
    <time dateTime={to} data-tip={utc(to)} className="whitespace-nowrap tabular-nums">
      {left > 0 ? copy.record.left(left < MINUTE_MS ? age(left) : duration(left)) : copy.record.passed}
    </time>
  )
}

/** `24 Dec – 26 Dec, 3 nights`. */
export function nightsText({ arrival, nights }: Pick<StayLineView, 'arrival' | 'nights'>): string {
  const last = dateOf((dayOf(arrival) ?? 0) + nights - 1)
  return copy.record.nightsOf(day(arrival), day(last), nights)
}

/** Rooms of the lines that touch a property. */
export function roomsOf(lines: readonly StayLineView[]): number {
  return lines.reduce((sum, { rooms }) => sum + rooms, 0)
}

/** Whether a stay still has rooms. */
export function isOpen({ state }: Pick<StayListEntry, 'state'>): boolean {
  return state === 'held' || state === 'booked'
}

/** The lines of a stay that take a room type on a night. */
export function linesOn(
  lines: readonly StayLineView[],
  of: { property: string; room: string; date: string },
): StayLineView[] {
  const night = dayOf(of.date) ?? 0
  return lines.filter(({ property, room, arrival, nights }) => {
    const first = dayOf(arrival) ?? 0
    return property === of.property && room === of.room && night >= first && night < first + nights
  })
}

/** The room type of the first line, and how many lines follow. */
export function roomsText({ lines }: StayListEntry): string {
  const [first] = lines
  return first ? copy.list.several(first.room, lines.length - 1) : ''
}

/** Columns that every list of stays has. @param hrefOf the record of a stay */
export function stayColumns(hrefOf: (id: string) => string) {
  return {
    stay: {
      id: 'stay',
      header: copy.list.id,
      rowHeader: true,
      cell: ({ id }) => (
        <Link href={hrefOf(id)} className="whitespace-nowrap font-mono">
          {id}
        </Link>
      ),
    },
    state: {
      id: 'state',
      header: copy.list.state,
      className: 'whitespace-nowrap',
      cell: ({ state }) => <StayState state={state} />,
    },
    deadline: {
      id: 'deadline',
      header: copy.list.deadline,
      cell: ({ deadline, state }) => <Countdown to={state === 'held' ? deadline : null} />,
    },
    source: {
      id: 'source',
      header: copy.list.source,
      className: 'whitespace-nowrap',
      cell: ({ source }) => source || NONE,
    },
    since: { id: 'since', header: copy.list.since, cell: ({ since }) => <Age at={since} /> },
  } as const satisfies { readonly [id: string]: Column<StayListEntry> }
}

/** A row of a list on a narrow screen. */
export function StayCard({
  href,
  stay,
  rooms,
}: {
  readonly href: string
  readonly stay: StayListEntry
  readonly rooms?: number
}) {
  const { id, state, deadline, lines, source, since } = stay
  return (
    <div className="flex flex-col gap-1.5">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <Link href={href} className="break-all font-mono">
          {id}
        </Link>
        <StayState state={state} />
      </div>
      <p>
        {`${copy.night.roomsOf(rooms ?? roomsOf(lines))}, ${roomsText(stay)}`}
        {lines[0] && <span className="block text-text-2">{nightsText(lines[0])}</span>}
      </p>
      <p className="flex flex-wrap gap-x-3 text-small text-text-2">
        {state === 'held' && <Countdown to={deadline} />}
        <span>{source}</span>
        <Age at={since} />
      </p>
    </div>
  )
}
