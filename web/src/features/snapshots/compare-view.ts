/** What two compared sides differ in: days of each segment, and entries of the codec lists. Pure. */
import type { Comparison, SnapshotDifferences } from '@vacancy/shared/contract'

type Segment = Comparison['segments'][number]

export type Extreme = { readonly day: number; readonly by: number }

/** The days that differ, and those with the largest loss and gain of packages. */
export function daysThatDiffer({ days }: Pick<Segment, 'days'>): {
  readonly count: number
  readonly least: Extreme | undefined
  readonly most: Extreme | undefined
} {
  let count = 0
  let least: Extreme | undefined
  let most: Extreme | undefined
  for (const [day, by] of days.entries()) {
    if (by === 0) continue
    count++
    if (by < 0 && by < (least?.by ?? 0)) least = { day, by }
    if (by > 0 && by > (most?.by ?? 0)) most = { day, by }
  }
  return { count, least, most }
}

/** Segments with a difference first, the largest of them first; equal ones keep their order. */
export function differingFirst(segments: readonly Segment[]): readonly Segment[] {
  const size = ({ properties, days, in: side }: Segment) =>
    days.reduce((sum, by) => sum + Math.abs(by), 0) + Math.abs(properties.b - properties.a) + (side === 'both' ? 0 : 1)
  return segments.toSorted((a, b) => size(b) - size(a))
}

/** An entry of a codec list with its places, from 0; null where the list does not have it. */
export type CodecEntry = { readonly name: string; readonly a: number | null; readonly b: number | null }

/** The entries whose places differ, by their place in A, then in B; undefined when a list is not known. */
export function codecDifferences(
  a: readonly string[] | null,
  b: readonly string[] | null,
): readonly CodecEntry[] | undefined {
  if (a === null || b === null) return undefined
  const placeIn = (list: readonly string[], name: string) => {
    const at = list.indexOf(name)
    return at < 0 ? null : at
  }
  return [...new Set([...a, ...b])]
    .map((name) => ({ name, a: placeIn(a, name), b: placeIn(b, name) }))
    .filter((entry) => entry.a !== entry.b)
}

export type PropertyChange = {
  readonly id: string
  readonly segment: string
  readonly in: 'a' | 'b' | 'both'
  /** What changed of a property in both. */
  readonly what: SnapshotDifferences['changed']['first'][number]['what']
}

/** The listed properties: removed ones, then added ones, then changed ones. */
export function propertyChanges({ onlyA, onlyB, changed }: SnapshotDifferences): {
  readonly rows: readonly PropertyChange[]
  readonly isEqual: boolean
  /** How many are listed of a kind that has more; undefined when all are. */
  readonly cutTo: number | undefined
} {
  const lists = [onlyA, onlyB, changed]
  return {
    rows: [
      ...onlyA.first.map((one) => ({ ...one, in: 'a' as const, what: [] })),
      ...onlyB.first.map((one) => ({ ...one, in: 'b' as const, what: [] })),
      ...changed.first.map((one) => ({ ...one, in: 'both' as const })),
    ],
    isEqual: lists.every(({ count }) => count === 0),
    cutTo: lists.find(({ count, first }) => count > first.length)?.first.length,
  }
}
