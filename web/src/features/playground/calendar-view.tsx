'use client'
/** Property × date: price as colour and number, rooms left beneath; none left is hatched and says 0. */
import clsx from 'clsx'
import { type KeyboardEvent, useRef, useState } from 'react'
import { day, price, weekday } from '../../lib/format.ts'
import type { Stay } from './rows.ts'
import { totalOf } from './rows.ts'
import { type Scale, STEPS, scaleOf, stepOf } from './scale.ts'

const ROWS_MAX = 200
/** Ground and ink of each step: black or white, whichever is easier to read on it (console.md §16). */
const COLOURS = [
  'bg-price-1 text-[#fff]',
  'bg-price-2 text-[#fff]',
  'bg-price-3 text-[#fff]',
  'bg-price-4 text-[#000]',
  'bg-price-5 text-[#000]',
  'bg-price-6 text-[#000]',
  'bg-price-7 text-[#000]',
] as const

type CalendarProps = {
  readonly stays: readonly Stay[]
  readonly roomType: string
  readonly selected: string | undefined
  readonly onSelect: (id: string) => void
}

export function CalendarView({ stays, roomType, selected, onSelect }: CalendarProps) {
  const grid = useRef<HTMLTableElement>(null)
  const [at, setAt] = useState<readonly [number, number]>([0, 0])
  const shown = stays.slice(0, ROWS_MAX)
  const dates = shown[0]?.days.map(({ date }) => date) ?? []
  const scale = scaleOf(stays.flatMap(({ days }) => days.map(({ finalPrice }) => finalPrice)))
  const goTo = (row: number, column: number) => {
    const to = [clamp(row, shown.length), clamp(column, dates.length)] as const
    setAt(to)
    grid.current?.querySelector<HTMLElement>(`[data-at="${to.join(',')}"]`)?.focus()
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
    const stay = shown[row]
    if (to) goTo(...to)
    else if (event.key === 'Enter' && stay) onSelect(stay.propertyId)
    else return
    event.preventDefault()
  }
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <Legend scale={scale} />
      <div className="max-h-[min(60vh,48rem)] overflow-auto">
        <table
          ref={grid}
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: arrows move in it, as in a grid.
          role="grid"
          aria-label="Prices by property and date"
          aria-rowcount={stays.length + 1}
          onKeyDown={onKeyDown}
          className="border-separate border-spacing-px text-table"
        >
          <thead>
            <tr>
              <th
                scope="col"
                className="sticky start-0 top-0 z-20 bg-surface pe-3 text-start font-normal text-small text-text-3"
              >
                property
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
                total
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((stay, row) => (
              <tr key={stay.propertyId} aria-selected={stay.propertyId === selected}>
                <th
                  scope="row"
                  className={clsx(
                    'sticky start-0 z-10 bg-surface pe-3 text-start font-mono font-normal',
                    stay.propertyId === selected && 'text-accent underline',
                  )}
                >
                  {stay.propertyId}
                </th>
                {stay.days.map((night, column) => {
                  const left = night.availability === 0 ? 'none left' : `${night.availability} left`
                  return (
                    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles its keys.
                    <td
                      key={night.date}
                      // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a cell of the grid.
                      role="gridcell"
                      tabIndex={at[0] === row && at[1] === column ? 0 : -1}
                      data-at={`${row},${column}`}
                      data-date={night.date}
                      data-room={roomType}
                      data-availability={night.availability}
                      data-price={night.finalPrice}
                      aria-label={`${day(night.date)}, ${roomType}, ${left}, ${price(night.finalPrice)}`}
                      data-tip={night.rateFeatures.join(', ') || undefined}
                      onFocus={() => setAt([row, column])}
                      onClick={() => onSelect(stay.propertyId)}
                      className={clsx(
                        'h-9 min-w-14 px-1.5 text-center leading-tight',
                        COLOURS[stepOf(scale, night.finalPrice) - 1],
                        night.availability === 0 && 'hatch',
                      )}
                    >
                      {price(night.finalPrice)}
                      <span className="block text-[0.6875rem]">{night.availability} left</span>
                    </td>
                  )
                })}
                <td className="num px-2">{price(totalOf(stay))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {stays.length > shown.length && (
        <p className="text-small text-text-3">
          The first {ROWS_MAX} of {stays.length} properties; the table has all.
        </p>
      )}
    </div>
  )
}

function clamp(value: number, length: number): number {
  return Math.max(0, Math.min(length - 1, value))
}

function Legend({ scale }: { readonly scale: Scale }) {
  return (
    <div
      role="img"
      aria-label={`Colours from ${price(scale.from)} to ${price(scale.to)}`}
      className="flex items-center gap-2 text-small text-text-3"
    >
      <span>≤ {price(scale.from)}</span>
      <span aria-hidden="true" className="flex">
        {Array.from({ length: STEPS }, (_, n) => (
          <span key={COLOURS[n]} className={clsx('size-4', COLOURS[n])} />
        ))}
      </span>
      <span>≥ {price(scale.to)} a night</span>
      <span className="hatch ms-3 inline-block size-4 border border-line" aria-hidden="true" />
      <span>none left</span>
    </div>
  )
}
