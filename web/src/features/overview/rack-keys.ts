/**
 * Arrow keys in the key rack. Slots are ordered by shard and node and wrap with the window width, so up and down use
 * their rendered positions.
 */

export type Place = { readonly left: number; readonly top: number; readonly width: number; readonly height: number }

/**
 * The target slot of a key.
 *
 * @param places positions of the slots, in reading order
 * @returns index of the target slot; undefined for other keys
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

/** The slot with the nearest centre in the next row; the slot itself in the last row. */
function nearestInRow(places: readonly Place[], from: number, direction: 1 | -1): number {
  const start = places[from]
  if (!start) return from
  const middle = start.left + start.width / 2
  let best = from
  let bestRow = Number.POSITIVE_INFINITY
  let bestAside = Number.POSITIVE_INFINITY
  places.forEach((place, at) => {
    const row = (place.top - start.top) * direction
    // Half a slot: slots of one row may differ by a pixel.
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
