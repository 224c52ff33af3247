/**
 * Seeded data sets: which properties and packages there are, for the CSV writer, for queries and for checks.
 *
 * A data set is a pure function of its specification. It is made again wherever it is needed instead of being
 * read back from the files.
 */
import { createDraft, finishDraft, type Inventory, type NightlyPackage, type Shape } from './inventory.ts'
import { createRandom } from './random.ts'
import { REGION_SEGMENTS_MAX, region } from './region.ts'
import { uniform } from './uniform.ts'

export const SHAPES = ['uniform', 'region'] as const
export const NIGHTS = ['random', 'constant'] as const
export const PACKAGES_MAX = 500_000_000
/** The window of dates a node keeps is one year. */
export const DAYS_MAX = 366
export const SEGMENTS_MAX = 2_000

export type DatasetSpec = {
  shape: (typeof SHAPES)[number]
  packages: number
  /** Nights on sale. */
  days: number
  /** First night, in days since 1970-01-01. */
  from: number
  seed: number
  /** Number of segments; 0 = as many as the shape thinks right for the number of properties. */
  segments: number
  /** `random`: availability and price change from night to night. `constant`: they do not. */
  nights: (typeof NIGHTS)[number]
}

export type Dataset = Inventory & { spec: DatasetSpec; packageOf: NightlyPackage }

/** Most segments a shape has names or numbers for. */
export function segmentsMax(shape: DatasetSpec['shape']): number {
  return shape === 'region' ? REGION_SEGMENTS_MAX : SEGMENTS_MAX
}

export function createDataset(spec: DatasetSpec): Dataset {
  const shape = shapeOf(spec)
  const properties = Math.max(1, Math.round(spec.packages / shape.packagesPerProperty(spec.days)))
  const names = shape.names(spec.segments || shape.segmentsFor(properties))
  const draft = createDraft(names, spec.packages, spec.days)
  const random = createRandom(spec.seed)
  while (draft.packagesLeft > 0) shape.addProperty(draft, random)
  return { ...finishDraft(draft), spec, packageOf: spec.nights === 'constant' ? shape.constant : shape.varying }
}

function shapeOf(spec: DatasetSpec): Shape {
  return { uniform, region }[spec.shape]
}

/** How many nights a row has from the data set's first day on: all, but the last row may be cut. */
export function nightsOf({ rows }: Inventory, row: number): number {
  return (rows.packagesBefore[row + 1] ?? 0) - (rows.packagesBefore[row] ?? 0)
}

/** Names whose bits are set, in the order of their list. */
export function namesIn(mask: number, names: readonly string[]): string[] {
  return names.filter((_, bit) => (mask >>> bit) & 1)
}
