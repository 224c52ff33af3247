'use client'
/** Property × date: price as colour and number with rooms left below; sold-out nights are hatched. */
import clsx from 'clsx'
import { type KeyboardEvent, memo, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { day, price, weekday } from '../../lib/format.ts'
import { PRICE_COLOURS, PriceLegend } from '../../ui/heat-legend.tsx'
import { type Scale, scaleOf, stepOf } from '../../ui/price-scale.ts'
import { Spacer, useVirtualRows } from '../../ui/virtual-rows.tsx'
import * as copy from './copy.ts'
import type { Stay } from './rows.ts'
import { totalOf } from './rows.ts'

/** Row height in rem, equal to `h-9`, and the gap between rows in pixels. */
const ROW_REM = 2.25
const GAP = 1
const HEAD_HEIGHT = 40
const OVERSCAN = 2
const FIRST_HEIGHT = 480
type CalendarProps = {
  readonly stays: readonly Stay[]
  readonly roomType: string
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
}

export function CalendarView({ stays, roomType, selected, onSelect }: CalendarProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const [at, setAt] = useState<readonly [number, number]>([0, 0])
  const isMoving = useRef(false)
  const dates = stays[0]?.days.map(({ date }) => date) ?? []
  // Only visible rows are rendered: thousands of cells would take longer than the query.
  const [height] = useState(rowHeight)
  const rows = useVirtualRows({
    scroller,
    count: stays.length,
    height,
    headHeight: HEAD_HEIGHT,
    firstHeight: FIRST_HEIGHT,
    overscan: OVERSCAN,
  })
  // The target cell of a key may be rendered only after its row has scrolled into view.
  useLayoutEffect(() => {
    if (!isMoving.current) return
    const cell = scroller.current?.querySelector<HTMLElement>(`[data-at="${at.join(',')}"]`)
    if (!cell) return
    isMoving.current = false
    cell.focus()
  })
  const scale = useMemo(() => scaleOf(stays.flatMap(({ days }) => days.map(({ finalPrice }) => finalPrice))), [stays])
  const widths = useMemo(() => widthsOf(stays), [stays])
  const dayTexts = useMemo(() => stays[0]?.days.map(({ date }) => day(date)) ?? [], [stays])
  const goTo = (row: number, column: number) => {
    const to = [clamp(row, stays.length), clamp(column, dates.length)] as const
    isMoving.current = true
    setAt(to)
    rows.scrollTo(to[0])
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const [row, column] = at
    const keys: { readonly [key: string]: readonly [number, number] } = {
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      Home: [row, 0],
      End: [row, dates.length - 1],
      PageUp: [row - 10, column],
      PageDown: [row + 10, column],
    }
    const to = keys[event.key]
    const stay = stays[row]
    if (to) goTo(...to)
    else if (event.key === 'Enter' && stay) onSelect(stay.propertyId)
    else return
    event.preventDefault()
  }
  // Tab enters the grid also when the last active cell is not rendered.
  const entry = rows.items.some(({ index }) => index === at[0]) ? at : ([rows.items[0]?.index ?? 0, at[1]] as const)
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <PriceLegend scale={scale} />
      <div
        ref={scroller}
        className="max-h-[var(--result-height,min(60vh,48rem))] scroll-ps-32 scroll-pt-10 overflow-auto"
      >
        <table
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: arrow keys move between its cells.
          role="grid"
          aria-label={copy.calendar.label}
          aria-rowcount={stays.length + 1}
          onKeyDown={onKeyDown}
          className="table-fixed border-separate border-spacing-px text-table"
          style={{ width: 'min-content' }}
        >
          {/* Fixed widths: scrolling must not move the columns. */}
          <colgroup>
            <col style={{ width: `${widths.property}ch` }} />
            {dates.map((date) => (
              <col key={date} style={{ width: `max(3.5rem, ${widths.night}ch)` }} />
            ))}
            <col style={{ width: `${widths.total}ch` }} />
          </colgroup>
          <thead>
            <tr>
              <th
                scope="col"
                className="sticky start-0 top-0 z-20 bg-surface pe-3 text-start font-normal text-small text-text-3"
              >
                {copy.calendar.property}
              </th>
              {dates.map((date) => (
                <th
                  key={date}
                  scope="col"
                  className="sticky top-0 z-10 bg-surface px-1 font-normal text-small text-text-3"
                >
                  {weekday(date)}
                  <br />
                  {day(date)}
                </th>
              ))}
              <th scope="col" className="sticky top-0 z-10 bg-surface px-2 text-end font-normal text-small text-text-3">
                {copy.calendar.total}
              </th>
            </tr>
          </thead>
          <Spacer height={rows.before} />
          <tbody>
            {rows.items.map(({ index: row }) => {
              const stay = stays[row]
              return (
                stay && (
                  <Nights
                    key={stay.propertyId}
                    stay={stay}
                    row={row}
                    scale={scale}
                    dayTexts={dayTexts}
                    roomType={roomType}
                    isSelected={stay.propertyId === selected}
                    entry={entry[0] === row ? entry[1] : -1}
                    onSelect={onSelect}
                    onArrive={setAt}
                  />
                )
              )
            })}
          </tbody>
          <Spacer height={rows.after} />
        </table>
      </div>
    </div>
  )
}

type NightsProps = {
  readonly stay: Stay
  readonly row: number
  readonly scale: Scale
  readonly dayTexts: readonly string[]
  readonly roomType: string
  readonly isSelected: boolean
  /** Column of the tab stop; -1 for none. */
  readonly entry: number
  readonly onSelect: (id: string) => void
  readonly onArrive: (at: readonly [number, number]) => void
}

/** The row of one property, memoized for scrolling. */
const Nights = memo(function Nights(props: NightsProps) {
  const { stay, row, scale, dayTexts, roomType, isSelected, entry, onSelect, onArrive } = props
  return (
    <tr aria-rowindex={row + 2} aria-selected={isSelected}>
      <th
        scope="row"
        className={clsx(
          'sticky start-0 z-10 bg-surface pe-3 text-start font-mono font-normal',
          isSelected && 'text-accent underline',
        )}
      >
        {stay.propertyId}
      </th>
      {stay.days.map((night, column) => {
        const left = night.availability === 0 ? copy.calendar.noneLeft : copy.calendar.left(night.availability)
        return (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles its keys.
          <td
            key={night.date}
            // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a cell of the grid.
            role="gridcell"
            tabIndex={column === entry ? 0 : -1}
            data-at={`${row},${column}`}
            data-date={night.date}
            data-room={roomType}
            data-availability={night.availability}
            data-price={night.finalPrice}
            aria-label={`${dayTexts[column]}, ${roomType}, ${left}, ${price(night.finalPrice)}`}
            data-tip={night.rateFeatures.join(', ') || undefined}
            onFocus={() => onArrive([row, column])}
            onClick={() => onSelect(stay.propertyId)}
            className={clsx(
              'h-9 forced-color-adjust-none whitespace-pre-line px-1.5 text-center text-[0.6875rem] leading-tight first-line:text-table',
              PRICE_COLOURS[stepOf(scale, night.finalPrice) - 1],
              night.availability === 0 && 'hatch',
            )}
          >
            {`${price(night.finalPrice)}\n${copy.calendar.left(night.availability)}`}
          </td>
        )
      })}
      <td className="num px-2">{price(totalOf(stay))}</td>
    </tr>
  )
})

/** Row height in pixels, for any font size. */
function rowHeight(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize) * ROW_REM + GAP
}

const DIGITS_MIN = 5

/** Column widths in digits, with padding. */
function widthsOf(stays: readonly Stay[]): { property: number; night: number; total: number } {
  // The highest price is the longest: writing thousands of them would take longer than drawing.
  const digits = (highest: number) => Math.max(DIGITS_MIN, price(highest).length)
  const most = (values: readonly number[]) => values.reduce((top, value) => Math.max(top, value), 0)
  return {
    property: Math.max(DIGITS_MIN, most(stays.map(({ propertyId }) => propertyId.length))) + 4,
    night: digits(most(stays.map(({ days }) => most(days.map(({ finalPrice }) => finalPrice))))) + 2,
    total: digits(most(stays.map(totalOf))) + 3,
  }
}

function clamp(value: number, length: number): number {
  return Math.max(0, Math.min(length - 1, value))
}
