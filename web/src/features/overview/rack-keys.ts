/**
 * Arrow keys in the key rack. Slots lie in the order of shards and nodes but wrap as the window is wide, so that up and
 * down go by where they are drawn.
 */

export type Place = { readonly left: number; readonly top: number; readonly width: number; readonly height: number }

/**
 * The slot that a key leads to.
 *
 * @param places where each slot is drawn, in reading order
 * @returns index of the slot to go to; undefined for a key that the rack leaves alone
 */
export function moveInRack(places: readonly Place[], from: number, key: string): number | undefined {
  const last = places.length - 1
  switch (key) {
    case 'ArrowLeft':
      return Math.max(0, from - 1)
    case 'ArrowRight':
      return Math.min(last, from + 1)
    case 'Home':
      return 0
    case 'End':
      return last
    case 'ArrowUp':
      return nearestInRow(places, from, -1)
    case 'ArrowDown':
      return nearestInRow(places, from, 1)
    default:
      return undefined
  }
}

/** The slot of the next row in a direction whose middle is nearest; the slot itself in the last row. */
function nearestInRow(places: readonly Place[], from: number, direction: 1 | -1): number {
  const start = places[from]
  if (!start) return from
  const middle = start.left + start.width / 2
  let best = from
  let bestRow = Number.POSITIVE_INFINITY
  let bestAside = Number.POSITIVE_INFINITY
  places.forEach((place, at) => {
    const row = (place.top - start.top) * direction
    // Half a slot: rows of one line may differ by a pixel, and never overlap by more.
    if (row < start.height / 2) return
    const aside = Math.abs(place.left + place.width / 2 - middle)
    const isNearerRow = row < bestRow - start.height / 2
    if (!isNearerRow && (row > bestRow + start.height / 2 || aside >= bestAside)) return
    best = at
    bestRow = row
    bestAside = aside
  })
  return best
}
