/** The nights of a segment as one strip: a colour per night by its share of the fullest one. */

import { dateOf, dayOf } from '../../lib/days.ts'
import { count, day } from '../../lib/format.ts'
import * as copy from './copy.ts'

const STEPS = 6

export type Strip = {
  /** CSS background; nights without packages are transparent. */
  readonly background: string
  /** What the strip shows, in words. */
  readonly text: string
}

export function stripOf(nights: readonly number[], from: string): Strip {
  const most = Math.max(1, ...nights)
  const width = 100 / Math.max(1, nights.length)
  const stops: string[] = []
  // Neighbours of the same colour are one stop.
  for (let at = 0; at < nights.length; ) {
    const colour = colourOf(nights[at] as number, most)
    const begin = at
    while (at < nights.length && colourOf(nights[at] as number, most) === colour) at++
    stops.push(`${colour} ${(begin * width).toFixed(3)}% ${(at * width).toFixed(3)}%`)
  }
  const sold = nights.filter((packages) => packages > 0).length
  const least = Math.min(...nights)
  const start = dayOf(from)
  const fewest =
    sold > 0 && start !== undefined
      ? copy.segments.fewest(count(least), day(dateOf(start + nights.indexOf(least))))
      : undefined
  return {
    background: stops.length === 0 ? 'none' : `linear-gradient(to right, ${stops.join(', ')})`,
    text: copy.segments.strip(sold, nights.length, fewest),
  }
}

function colourOf(packages: number, most: number): string {
  if (packages === 0) return 'transparent'
  return `var(--color-avail-${Math.max(1, Math.ceil((packages / most) * STEPS))})`
}
