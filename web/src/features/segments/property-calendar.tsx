'use client'
/** Room type × night of one property. Arrows move, Shift with arrows selects nights of a room type. */
import type { CalendarNight, StayNights } from '@vacancy/shared/contract'
import clsx from 'clsx'
import {
  Fragment,
  type KeyboardEvent,
  type MouseEvent,
  memo,
  useCallback,
  useLayoutEffect,
  useMemo,
  useRef,
} from 'react'
import { count, day, month, price, weekday } from '../../lib/format.ts'
import { FullMark, PRICE_COLOURS, PriceLegend, RoomsLegend, roomsColour } from '../../ui/heat-legend.tsx'
import { NARROW, NO_SECOND_COLUMN, NO_THIRD_COLUMN, useMedia } from '../../ui/media.ts'
import { percentile, type Scale, scaleOf, stepOf } from '../../ui/price-scale.ts'
import { blocksOf, type CalendarGrid, cellAfter, monthsOf, type Nights } from './calendar-model.ts'
import * as copy from './copy.ts'

export type Metric = 'price' | 'availability' | 'features'

type CalendarProps = {
  readonly property: string
  readonly grid: CalendarGrid
  readonly metric: Metric
  readonly selected: Nights | undefined
  /** `isOpen`: Enter or a click, which also show the night. */
  readonly onSelect: (nights: Nights, isOpen: boolean) => void
  /** A key moves to a night outside of the view. */
  readonly onLeave: (nights: Nights) => void
  /** `cellKey` of cells that differ between replicas. */
  readonly differing: ReadonlySet<string>
  /** Rooms on hold and booked, by `cellKey`. */
  readonly stays: StayMarks
}

export type NightStaysCount = StayNights['nights'][number]
type StayMarks = ReadonlyMap<string, NightStaysCount>

export function cellKey(room: string, date: string): string {
  return `${date} ${room}`
}

export function PropertyCalendar(props: CalendarProps) {
  const { property, grid, metric, selected, onSelect, onLeave, differing, stays } = props
  const scroller = useRef<HTMLDivElement>(null)
  const { across, names, least } = useWeeks()
  /** The end of the selection that keys move; the other end stays. */
  const focus = useRef<{ readonly room: string; readonly date: string }>(undefined)
  const anchor = useRef<string>(undefined)
  const isMoving = useRef(false)
  const scale = useMemo(() => scaleOf(valuesOf(grid, (night) => night.price)), [grid])
  const mostRooms = useMemo(() => {
    const rooms = valuesOf(grid, (night) => night.availability).sort((a, b) => a - b)
    return Math.max(1, percentile(rooms, 98))
  }, [grid])
  const colours = useMemo(() => ({ metric, scale, mostRooms }), [metric, scale, mostRooms])
  // The view may have moved: then the cell that a key goes to is drawn only now.
  useLayoutEffect(() => {
    if (!isMoving.current || !focus.current) return
    const { room, date } = focus.current
    const cell = scroller.current?.querySelector<HTMLElement>(`[data-at="${CSS.escape(cellKey(room, date))}"]`)
    if (!cell) return
    isMoving.current = false
    cell.focus()
  })
  const rangeTo = (room: string, date: string, isRange: boolean): Nights => {
    if (!isRange || anchor.current === undefined || focus.current?.room !== room) anchor.current = date
    const start = anchor.current
    focus.current = { room, date }
    return start < date ? { room, from: start, to: date } : { room, from: date, to: start }
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    // Keys may come faster than the focus moves.
    const { room, date } = (isMoving.current && focus.current) || (event.target as HTMLElement).dataset
    if (room === undefined || date === undefined) return
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault()
      const isInside = selected?.room === room && date >= selected.from && date <= selected.to
      return onSelect(isInside ? selected : rangeTo(room, date, false), true)
    }
    const to = cellAfter(event.key, { room, date }, grid, across)
    if (!to) return
    event.preventDefault()
    // A range is of one room type.
    const isRange = event.shiftKey && to.room === room
    if (isRange && anchor.current === undefined) anchor.current = date
    const nights = rangeTo(to.room, to.date, isRange)
    isMoving.current = true
    if (grid.dates.includes(to.date)) onSelect(nights, false)
    else onLeave(nights)
  }
  const latest = useRef({ rangeTo, onSelect })
  useLayoutEffect(() => {
    latest.current = { rangeTo, onSelect }
  })
  const onPick = useCallback((room: string, date: string, isRange: boolean) => {
    const { rangeTo, onSelect } = latest.current
    onSelect(rangeTo(room, date, isRange), true)
  }, [])
  const entry = entryOf(grid, focus.current ?? (selected && { room: selected.room, date: selected.from }))
  const width = useMemo(() => cellWidth(grid, least), [grid, least])
  const blocks = useMemo(() => blocksOf(grid.dates, across), [grid, across])
  return (
    <div className="flex min-w-0 flex-col gap-2">
      {metric === 'price' && <PriceLegend scale={scale} dot />}
      {metric !== 'price' && <RoomsLegend most={mostRooms} />}
      <div ref={scroller} className="max-h-[60vh] scroll-ps-32 scroll-pt-12 overflow-auto overscroll-contain pb-2">
        <table
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: arrow keys move between its cells.
          role="grid"
          aria-label={copy.calendar.label(property)}
          aria-multiselectable="true"
          aria-rowcount={blocks.length * (grid.rooms.length + 2)}
          onKeyDown={onKeyDown}
          className="table-fixed border-separate border-spacing-px text-table"
          style={{ width: 'min-content' }}
        >
          <colgroup>
            <col style={{ width: names }} />
            {blocks[0]?.map((date) => (
              <col key={date} style={{ width }} />
            ))}
          </colgroup>
          {blocks.map((dates) => (
            <tbody key={dates[0]}>
              <Head dates={dates} names={names} />
              {grid.rooms.map((room) => (
                <RoomRow
                  key={room}
                  room={room}
                  dates={dates}
                  grid={grid}
                  colours={colours}
                  from={selected?.room === room ? selected.from : ''}
                  to={selected?.room === room ? selected.to : ''}
                  entry={entry?.room === room ? entry.date : ''}
                  differing={differing}
                  stays={stays}
                  onPick={onPick}
                />
              ))}
            </tbody>
          ))}
        </table>
      </div>
      {stays.size > 0 && <StaysLegend stays={stays} />}
      <p className="text-small text-text-3 max-md:hidden pointer-coarse:hidden">{copy.calendar.keys}</p>
    </div>
  )
}

function valuesOf(grid: CalendarGrid, read: (night: CalendarNight) => number): number[] {
  return grid.rooms.flatMap((room) =>
    grid.dates.flatMap((date) => {
      const night = grid.night(room, date)
      return night ? [read(night)] : []
    }),
  )
}

/** Tab enters the grid at the selection, or at its first cell. */
function entryOf({ rooms, dates }: CalendarGrid, at: { readonly room: string; readonly date: string } | undefined) {
  if (at && rooms.includes(at.room) && dates.includes(at.date)) return at
  const [room, date] = [rooms[0], dates[0]]
  return room === undefined || date === undefined ? undefined : { room, date }
}

/** Wide enough for the longest price. */
function cellWidth(grid: CalendarGrid, least: string): string {
  const longest = valuesOf(grid, (night) => price(night.price).length).reduce((most, each) => Math.max(most, each), 3)
  return `max(${least}, ${longest + 1.5}ch)`
}

/** Whole weeks, so that a weekday is one column: as many as the window has room for. */
function useWeeks(): { readonly across: number; readonly names: string; readonly least: string } {
  const isNarrow = useMedia(NARROW)
  const isSmall = useMedia(NO_SECOND_COLUMN)
  const isMiddle = useMedia(NO_THIRD_COLUMN)
  const isWide = useMedia(FOUR_WEEKS)
  const weeks = isSmall ? 1 : isMiddle ? 2 : isWide ? 4 : 3
  return {
    across: 7 * weeks,
    ...(isNarrow ? { names: '3.75rem', least: '2.25rem' } : { names: '8rem', least: '2.5rem' }),
  }
}
const FOUR_WEEKS = '(min-width: 1600px)'

/** Months and days of the rows below. */
const Head = memo(function Head({ dates, names }: { readonly dates: readonly string[]; readonly names: string }) {
  return (
    <>
      <tr>
        <th
          scope="col"
          rowSpan={2}
          className="sticky start-0 top-0 z-20 bg-surface pe-2 text-start align-bottom font-normal text-small text-text-3"
        >
          {copy.calendar.room}
        </th>
        {monthsOf(dates).map(({ month: of, nights }) => (
          <th
            key={of}
            scope="colgroup"
            colSpan={nights}
            className="sticky top-0 z-10 h-6 bg-surface text-start font-medium text-small"
          >
            <span className="sticky" style={{ insetInlineStart: names }}>
              {month(of)}
            </span>
          </th>
        ))}
      </tr>
      <tr>
        {dates.map((date) => (
          <th
            key={date}
            scope="col"
            className={clsx(
              'sticky top-6 z-10 bg-surface font-normal text-small',
              isWeekend(date) ? 'text-text-2' : 'text-text-3',
            )}
          >
            {weekday(date).slice(0, 2)}
            <br />
            <span className={clsx(isWeekend(date) && 'font-medium')}>{Number(date.slice(8))}</span>
          </th>
        ))}
      </tr>
    </>
  )
})

function isWeekend(date: string): boolean {
  return ['Sat', 'Sun'].includes(weekday(date))
}

type Colours = { readonly metric: Metric; readonly scale: Scale; readonly mostRooms: number }

type RowProps = {
  readonly room: string
  readonly dates: readonly string[]
  readonly grid: CalendarGrid
  readonly colours: Colours
  /** The selection within this row; '' for none. */
  readonly from: string
  readonly to: string
  /** The date that Tab enters; '' for none. */
  readonly entry: string
  readonly differing: ReadonlySet<string>
  readonly stays: StayMarks
  readonly onPick: (room: string, date: string, isRange: boolean) => void
}

/** Only the rows that a key changes are drawn again. */
const RoomRow = memo(function RoomRow(props: RowProps) {
  const { room, dates, grid, colours, from, to, entry, differing, stays, onPick } = props
  const onClick = ({ target, shiftKey }: MouseEvent) => {
    const { date } = (target as HTMLElement).closest<HTMLElement>('[data-date]')?.dataset ?? {}
    if (date !== undefined) onPick(room, date, shiftKey)
  }
  return (
    <tr onClick={onClick}>
      <th
        scope="row"
        // On a phone one with the same first letters must differ: it wraps, after an underscore if it has one.
        className="sticky start-0 z-10 max-w-32 truncate bg-surface pe-2 text-start font-normal max-sm:min-w-15 max-sm:pe-0.5 max-sm:whitespace-normal max-sm:text-small max-sm:leading-4 max-sm:[overflow-wrap:anywhere]"
        data-tip={room.length > 14 ? room : undefined}
      >
        {room.split(/(?<=_)/).map((part, at) => (
          <Fragment key={at}>
            {part}
            <wbr />
          </Fragment>
        ))}
      </th>
      {dates.map((date) => {
        const night = grid.night(room, date)
        const isSelected = date >= from && date <= to && from !== ''
        const isDiffering = differing.has(cellKey(room, date))
        const taken = stays.get(cellKey(room, date))
        return (
          <td
            key={date}
            // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a cell of the grid.
            role="gridcell"
            tabIndex={date === entry ? 0 : -1}
            aria-selected={isSelected}
            aria-label={labelOf(room, date, night, taken, isDiffering)}
            data-at={cellKey(room, date)}
            data-date={date}
            data-room={room}
            data-availability={night?.availability}
            data-price={night?.price}
            data-differs={isDiffering || undefined}
            data-held={taken?.held}
            data-booked={taken?.booked}
            className={clsx(
              'relative h-8 text-center text-[0.6875rem] leading-none',
              night ? `${colourOf(night, colours)} forced-color-adjust-none` : 'bg-sunken text-text-3',
              night?.availability === 0 && (colours.metric === 'price' ? 'line-through' : 'hatch'),
              isSelected && 'z-[1] outline-2 outline-accent -outline-offset-2',
            )}
          >
            {night ? textOf(night, colours.metric) : '·'}
            {night?.availability === 0 && colours.metric === 'price' && (
              <FullMark className="absolute start-0 bottom-0" />
            )}
            {taken && <StayMark taken={taken} />}
            {isDiffering && (
              <span
                aria-hidden="true"
                className="absolute start-0 top-0 rounded-ee-control bg-crit px-0.5 text-[0.625rem] text-surface leading-3"
              >
                ≠
              </span>
            )}
          </td>
        )
      })}
    </tr>
  )
})

function colourOf(night: CalendarNight, { metric, scale, mostRooms }: Colours): string {
  if (metric === 'price') return PRICE_COLOURS[stepOf(scale, night.price) - 1] ?? ''
  // None left is hatched on the plain ground, and never a step of the ramp.
  return night.availability === 0 ? 'bg-surface text-text' : roomsColour(night.availability, mostRooms)
}

function textOf(night: CalendarNight, metric: Metric): string {
  if (metric === 'price') return price(night.price)
  return count(metric === 'availability' ? night.availability : night.features.length)
}

function labelOf(
  room: string,
  date: string,
  night: CalendarNight | undefined,
  taken: NightStaysCount | undefined,
  isDiffering: boolean,
): string {
  const left = night?.availability === 0 ? copy.calendar.noneLeft : copy.calendar.left(night?.availability ?? 0)
  return [
    day(date),
    room,
    ...(night ? [left, price(night.price), copy.calendar.features(night.features.length)] : [copy.calendar.noPackage]),
    ...(taken ? [copy.stays.text(taken)] : []),
    ...(isDiffering ? [copy.calendar.differs] : []),
  ].join(', ')
}

/** Paper with a border, since the cells below have any colour of the ramp. */
const MARKS = {
  held: 'bg-warn text-surface',
  booked: 'border-line-strong border-s border-b bg-surface text-text-2',
  oversold: 'bg-crit font-semibold text-surface',
}

type MarkProps = { readonly kind: keyof typeof MARKS; readonly text: string; readonly className?: string }

function Mark({ kind, text, className }: MarkProps) {
  return (
    <span
      aria-hidden="true"
      data-mark={kind}
      className={clsx('rounded-es-control px-0.5 text-[0.625rem] leading-3', MARKS[kind], className)}
    >
      {text}
    </span>
  )
}

/** In the end corner: rooms on hold, with an exclamation mark when some of them are missing; without holds those booked. */
function StayMark({ taken: { held, booked, owed } }: { readonly taken: NightStaysCount }) {
  const className = 'absolute end-0 top-0'
  if (owed > 0) return <Mark kind="oversold" text={`${held}!`} className={className} />
  return held > 0 ? (
    <Mark kind="held" text={String(held)} className={className} />
  ) : (
    <Mark kind="booked" text={String(booked)} className={className} />
  )
}

function StaysLegend({ stays }: { readonly stays: StayMarks }) {
  const hasDebt = [...stays.values()].some(({ owed }) => owed > 0)
  const entries = [
    ['held', '2', copy.stays.heldMark],
    ['booked', '3', copy.stays.bookedMark],
    ...(hasDebt ? ([['oversold', '2!', copy.stays.oversoldMark]] as const) : []),
  ] as const
  return (
    <p className="flex flex-wrap items-center gap-x-4 gap-y-1 text-small text-text-2">
      {entries.map(([kind, text, label]) => (
        <span key={kind} className="inline-flex items-center gap-1.5">
          <Mark kind={kind} text={text} />
          {label}
        </span>
      ))}
    </p>
  )
}
