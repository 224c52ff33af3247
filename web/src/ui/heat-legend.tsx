/** Colours of prices and of rooms left, each step with black or white text by contrast, and their legends. */
import clsx from 'clsx'
import { count, price } from '../lib/format.ts'
import * as copy from './data-copy.ts'
import type { Scale } from './price-scale.ts'

export const PRICE_COLOURS = [
  'bg-price-1 text-[#fff]',
  'bg-price-2 text-[#fff]',
  'bg-price-3 text-[#fff]',
  'bg-price-4 text-[#000]',
  'bg-price-5 text-[#000]',
  'bg-price-6 text-[#000]',
  'bg-price-7 text-[#000]',
] as const

/** The ramp of the dark theme runs the other way, and so does the text on it. */
const ROOMS_COLOURS = [
  'bg-avail-1 text-[light-dark(#000,#fff)]',
  'bg-avail-2 text-[light-dark(#000,#fff)]',
  'bg-avail-3 text-[light-dark(#000,#fff)]',
  'bg-avail-4 text-[#000]',
  'bg-avail-5 text-[light-dark(#fff,#000)]',
  'bg-avail-6 text-[light-dark(#fff,#000)]',
] as const

/** Colour of 1 room left, the first of the ramp, up to `most`, its last. */
export function roomsColour(rooms: number, most: number): string {
  const last = ROOMS_COLOURS.length - 1
  const step = Math.round((Math.max(0, rooms - 1) / Math.max(1, most - 1)) * last)
  return ROOMS_COLOURS[Math.min(last, step)] ?? ''
}

/** Marks a night whose price is shown although no room is left. */
export function FullMark({ className }: { readonly className?: string }) {
  return (
    <span
      aria-hidden="true"
      className={clsx('rounded-se-control bg-surface px-0.5 text-[0.625rem] text-text leading-3', className)}
    >
      {copy.heat.full}
    </span>
  )
}

type PriceLegendProps = {
  readonly scale: Scale
  readonly dot?: boolean
  /** Prices are of stays, not of nights. */
  readonly isStay?: boolean
  /** Whether sold-out nights, or stays that do not fit, are shown at all. */
  readonly hasNone?: boolean
}

export function PriceLegend({ scale, dot = false, isStay = false, hasNone = true }: PriceLegendProps) {
  const [from, to] = [price(scale[0] ?? 0), price(scale.at(-1) ?? 0)]
  const none = hasNone ? (isStay ? copy.heat.noneFits : copy.heat.noneLeft) : ''
  return (
    <Legend label={copy.heat.price(from, to)} colours={PRICE_COLOURS} dot={dot} none={none} isMarked={dot}>
      {[copy.heat.atMost(from), isStay ? copy.heat.overTotal(to) : copy.heat.overPrice(to)]}
    </Legend>
  )
}

export function RoomsLegend({ most }: { readonly most: number }) {
  const to = count(most)
  // No more colours than there are numbers of rooms.
  const colours =
    most > ROOMS_COLOURS.length ? ROOMS_COLOURS : Array.from({ length: most }, (_, at) => roomsColour(at + 1, most))
  return (
    <Legend label={copy.heat.availability(to)} colours={colours} dot>
      {[copy.heat.oneLeft, most === 1 ? '' : copy.heat.atLeastRooms(to)]}
    </Legend>
  )
}

type LegendProps = {
  readonly label: string
  readonly colours: readonly string[]
  /** Nights without a package are shown as a dot. */
  readonly dot: boolean
  /** What the hatching, or the mark, means; '' without it. */
  readonly none?: string
  readonly isMarked?: boolean
  readonly children: readonly [from: string, to: string]
}

function Legend({ label, colours, dot, none = copy.heat.noneLeft, isMarked, children: [from, to] }: LegendProps) {
  return (
    <div role="img" aria-label={label} className="flex flex-wrap items-center gap-2 text-small text-text-3">
      <span>{from}</span>
      <span aria-hidden="true" className="flex">
        {colours.map((colour) => (
          <span key={colour} className={clsx('size-4 forced-color-adjust-none', colour)} />
        ))}
      </span>
      <span>{to}</span>
      {none !== '' && (
        <span className="ms-3 inline-flex items-center gap-2">
          {isMarked ? (
            <FullMark className="border border-line" />
          ) : (
            <span
              className="hatch inline-block size-4 border border-line forced-color-adjust-none"
              aria-hidden="true"
            />
          )}
          {none}
        </span>
      )}
      {dot && (
        <span className="ms-3 inline-flex items-center gap-2">
          <span aria-hidden="true">·</span>
          {copy.heat.noPackage}
        </span>
      )}
    </div>
  )
}
