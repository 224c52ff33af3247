'use client'
/** Below the dates of a stay: its cheapest total by day of arrival, as a calendar of a few weeks. A click moves the stay. */
import clsx from 'clsx'
import { type KeyboardEvent, useRef } from 'react'
import { dateOf, dayOf } from '../../lib/days.ts'
import { counted, day, NONE, price, shortCount, weekday } from '../../lib/format.ts'
import { PRICE_COLOURS, PriceLegend } from '../../ui/heat-legend.tsx'
import { scaleOf, stepOf } from '../../ui/price-scale.ts'
import { type Arrivals, useArrivals } from './beside.ts'
import * as copy from './copy.ts'
import { type Draft, withField } from './request.ts'
import type { Done } from './run.ts'

const WEEK = 7
/** Longer prices are shortened; the name of a day has all of their digits. */
const PRICE_CHARS_MAX = 6
/** From Monday; day 0 was a Thursday. */
const columnOf = (date: string) => (((dayOf(date) ?? 0) + 3) % WEEK) + 1

type StripProps = {
  /** The last run, whose prices are shown. */
  readonly done: Done | undefined
  /** The form, whose stay a click moves. */
  readonly draft: Draft
  readonly onArrive: (moved: Draft) => void
}

export function ArrivalStrip({ done, draft, onArrive }: StripProps) {
  const arrivals = useArrivals(done, draft)
  if (!arrivals) return null
  const chosen = [draft.fields['dates']].flat().map(String).sort()[0] ?? ''
  const arrive = (dates: readonly string[]) =>
    onArrive(withField(withField(draft, 'cursor', undefined), 'dates', dates))
  return <Days {...arrivals} chosen={chosen} onArrive={arrive} />
}

type DaysProps = Arrivals & { readonly chosen: string; readonly onArrive: (dates: readonly string[]) => void }

function Days({ days, nights, note, chosen, onArrive }: DaysProps) {
  const grid = useRef<HTMLDivElement>(null)
  const totals = days.flatMap(({ total }) => total ?? [])
  const scale = scaleOf(totals)
  const stop = days.some(({ arrival }) => arrival === chosen) ? chosen : days[0]?.arrival
  const onKeyDown = (event: KeyboardEvent<HTMLButtonElement>, at: number) => {
    const steps: { readonly [key: string]: number } = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at - WEEK,
      ArrowDown: at + WEEK,
      Home: 0,
      End: days.length - 1,
    }
    const to = steps[event.key]
    if (to === undefined) return
    event.preventDefault()
    grid.current?.querySelector<HTMLElement>(`[data-arrival="${days[to]?.arrival}"]`)?.focus()
  }
  return (
    <section aria-label={copy.arrivals.label(nights)} className="flex min-w-0 flex-col gap-1 pt-1">
      {days.length > 0 && (
        <>
          <p className="text-small text-text-2">{copy.arrivals.label(nights)}</p>
          <div ref={grid} className="grid grid-cols-7 gap-px">
            {Array.from({ length: WEEK }, (_, n) => (
              <span key={n} aria-hidden="true" className="text-center text-small text-text-3">
                {weekday(dateOf(n + 4))}
              </span>
            ))}
            {days.map(({ arrival, total, properties }, n) => (
              <button
                key={arrival}
                type="button"
                data-arrival={arrival}
                data-total={total ?? undefined}
                aria-pressed={arrival === chosen}
                aria-label={
                  total === null
                    ? copy.arrivals.none(`${weekday(arrival)} ${day(arrival, true)}`)
                    : copy.arrivals.day(
                        `${weekday(arrival)} ${day(arrival, true)}`,
                        price(total),
                        counted(properties, 'property', 'properties'),
                      )
                }
                tabIndex={arrival === stop ? 0 : -1}
                onClick={() => {
                  const first = dayOf(arrival) ?? 0
                  onArrive(Array.from({ length: nights }, (_, night) => dateOf(first + night)))
                }}
                onKeyDown={(event) => onKeyDown(event, n)}
                style={n === 0 ? { gridColumnStart: columnOf(arrival) } : undefined}
                className={clsx(
                  'min-w-0 forced-color-adjust-none rounded-control border-2 py-0.5 text-center text-[0.6875rem] leading-tight pointer-coarse:min-h-11',
                  arrival === chosen ? 'border-text font-medium' : 'border-transparent',
                  total === null ? 'hatch text-text-2' : PRICE_COLOURS[stepOf(scale, total) - 1],
                )}
              >
                <span className="block">
                  {n === 0 || arrival.endsWith('-01') ? day(arrival) : day(arrival).split(' ')[0]}
                </span>
                <span className="num block text-center">{total === null ? NONE : shortPrice(total)}</span>
              </button>
            ))}
          </div>
          {totals.length > 0 && <PriceLegend scale={scale} isStay />}
        </>
      )}
      {note !== '' && (
        <p data-arrivals-note="" className="text-small text-text-3">
          {note}
        </p>
      )}
    </section>
  )
}

function shortPrice(total: number): string {
  const text = price(total)
  return text.length > PRICE_CHARS_MAX ? shortCount(total) : text
}
