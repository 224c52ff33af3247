'use client'
/** The selected night, or the figures of several. */
import { count, day, price } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { FactRow } from '../../ui/facts.tsx'
import { NightStays } from '../stays/night-stays.tsx'
import { type CalendarGrid, datesBetween, figuresOf, type Nights } from './calendar-model.ts'
import * as copy from './copy.ts'
import type { NightStaysCount } from './property-calendar.tsx'

type NightProps = {
  readonly grid: CalendarGrid
  readonly selected: Nights
  readonly onQuery: (dates: string[]) => void
  readonly onEdit: () => void
  readonly whyNoEdit: string | undefined
  /** Rooms on hold and booked of a single night. */
  readonly taken: NightStaysCount | undefined
  readonly shard: string
  readonly property: string
}

export function NightPanel(props: NightProps) {
  const { grid, selected, onQuery, onEdit, whyNoEdit, taken, shard, property } = props
  const { room, from, to } = selected
  const isRange = from !== to
  const { nights, sold, soldOut, sum, min, max } = figuresOf(grid, selected)
  const night = isRange ? undefined : grid.night(room, from)
  return (
    <section
      aria-label={copy.night.label}
      data-nights={nights}
      data-sum={sum}
      className="flex flex-wrap items-start gap-x-6 gap-y-3 rounded-control border border-line bg-sunken px-4 py-3"
    >
      <div className="flex min-w-0 flex-col gap-2">
        <h3 aria-live="polite" className="font-semibold text-body">
          {isRange ? copy.night.range(room, day(from), day(to, true)) : copy.night.one(room, day(from, true))}
        </h3>
        {isRange && (
          <FactRow
            facts={[
              [copy.night.nights, copy.night.nightsOf(sold, nights)],
              ...(sold > 0
                ? [
                    [copy.night.sum, price(sum)] as const,
                    [copy.night.min, price(min)] as const,
                    [copy.night.max, price(max)] as const,
                    [copy.night.soldOut, price(soldOut)] as const,
                  ]
                : []),
            ]}
          />
        )}
        {!isRange && !night && <p className="text-text-2">{copy.night.none}</p>}
        {night && (
          <FactRow
            facts={[
              [copy.night.price, price(night.price)],
              [copy.night.rooms, night.availability === 0 ? copy.calendar.noneLeft : price(night.availability)],
              ...(taken
                ? [
                    [copy.stays.held, count(taken.held)] as const,
                    [copy.stays.booked, count(taken.booked)] as const,
                    ...(taken.owed > 0 ? [[copy.stays.owed, count(taken.owed)] as const] : []),
                  ]
                : []),
              [copy.night.features, night.features.join(', ') || copy.night.noFeatures],
            ]}
          />
        )}
      </div>
      <div className="ms-auto flex flex-wrap gap-2">
        <Button icon="playground" onClick={() => onQuery(datesBetween(from, to))}>
          {copy.night.query}
        </Button>
        <Button icon="edit" why={whyNoEdit} onClick={onEdit}>
          {copy.night.edit}
        </Button>
      </div>
      {!isRange && taken && <NightStays shard={shard} property={property} room={room} date={from} />}
    </section>
  )
}
