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

/** Colour of 1 room left up to `most`. */
export function roomsColour(rooms: number, most: number): string {
  const step = Math.ceil((rooms / Math.max(1, most)) * ROOMS_COLOURS.length)
  return ROOMS_COLOURS[Math.min(ROOMS_COLOURS.length, Math.max(1, step)) - 1] ?? ''
}

type PriceLegendProps = {
  readonly scale: Scale
  readonly dot?: boolean
  /** Prices are of stays, not of nights. */
  readonly isStay?: boolean
}

export function PriceLegend({ scale, dot = false, isStay = false }: PriceLegendProps) {
  const [from, to] = [price(scale.from), price(scale.to)]
  const none = isStay ? copy.heat.noneFits : copy.heat.noneLeft
  return (
    <Legend label={copy.heat.price(from, to)} colours={PRICE_COLOURS} dot={dot} none={none}>
      {[copy.heat.atMost(from), isStay ? copy.heat.atLeastTotal(to) : copy.heat.atLeastPrice(to)]}
    </Legend>
  )
}

export function RoomsLegend({ most }: { readonly most: number }) {
  const to = count(most)
  return (
    <Legend label={copy.heat.availability(to)} colours={ROOMS_COLOURS} dot>
      {[copy.heat.oneLeft, copy.heat.atLeastRooms(to)]}
    </Legend>
  )
}

type LegendProps = {
  readonly label: string
  readonly colours: readonly string[]
  /** Nights without a package are shown as a dot. */
  readonly dot: boolean
  /** What the hatching means. */
  readonly none?: string
  readonly children: readonly [from: string, to: string]
}

function Legend({ label, colours, dot, none = copy.heat.noneLeft, children: [from, to] }: LegendProps) {
  return (
    <div role="img" aria-label={label} className="flex flex-wrap items-center gap-2 text-small text-text-3">
      <span>{from}</span>
      <span aria-hidden="true" className="flex">
        {colours.map((colour) => (
          <span key={colour} className={clsx('size-4', colour)} />
        ))}
      </span>
      <span>{to}</span>
      <span className="ms-3 inline-flex items-center gap-2">
        <span className="hatch inline-block size-4 border border-line" aria-hidden="true" />
        {none}
      </span>
      {dot && (
        <span className="ms-3 inline-flex items-center gap-2">
          <span aria-hidden="true">·</span>
          {copy.heat.noPackage}
        </span>
      )}
    </div>
  )
}
