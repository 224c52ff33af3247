/** JSON output of the engine's programs: about snapshot files, and while one is built. */

import { z } from 'zod'
import { count } from './control.ts'

const day = z.iso.date()
const days = z.object({ from: day, to: day }).readonly()

/** `vacancy inspect FILE --json` of a valid snapshot file. */
export const snapshotFileBody = z
  .object({
    path: z.string(),
    /** Content digest. */
    id: z.string(),
    shard: z.string(),
    codecs: z.array(z.string()).readonly(),
    codecHash: z.string(),
    bytes: count,
    properties: count,
    packages: count,
    roomTypes: count,
    window: days.nullable(),
    /** Index n: properties with n room types. The last index counts all that have more. */
    roomsPerProperty: z.array(count).readonly(),
    /** Packages that have entry i of the codec list; absent in coverage written by earlier versions. */
    packagesPerFeature: z.array(count).readonly().optional(),
    /** By name. `packages[i]` are those of day `window.from + i`, `rooms` all rooms left on all days. */
    segments: z
      .array(
        z.object({ name: z.string(), properties: count, rooms: count, packages: z.array(count).readonly() }).readonly(),
      )
      .readonly(),
  })
  .readonly()
export type SnapshotFile = z.infer<typeof snapshotFileBody>

/** The same of an invalid file: the reason. */
export const damagedFileBody = z.object({ path: z.string(), damage: z.string() })

/** Properties listed of each kind by `vacancy inspect FILE --against OTHER`; all are counted. */
export const SNAPSHOT_DIFFERENCES_MAX = 100
const named = z.object({ id: z.string(), segment: z.string() })
const listOf = <T extends z.ZodType>(one: T) => z.object({ count, first: z.array(one).max(SNAPSHOT_DIFFERENCES_MAX) })

/** `vacancy inspect FILE --against OTHER --json`: the properties that differ, the first of each kind by segment. */
export const snapshotDifferencesBody = z.object({
  /** Content digests of FILE and OTHER. */
  a: z.string(),
  b: z.string(),
  onlyA: listOf(named),
  onlyB: listOf(named),
  /** In both, with what differs; in the segment of b. */
  changed: listOf(named.extend({ what: z.array(z.enum(['attributes', 'rooms', 'packages'])) })),
})
export type SnapshotDifferences = z.infer<typeof snapshotDifferencesBody>

/** A line of `vacancy build-snapshot --progress json`. */
export const buildEvent = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('progress'),
    phase: z.enum(['properties', 'packages', 'errors', 'tables', 'write']),
    /** Bytes read, or parts written, in this phase. */
    done: z.number(),
    total: z.number(),
    /** Lines of packages.csv read so far. */
    packages: count,
    seconds: z.number(),
    recordsPerSecond: z.number(),
    /** Estimate until the end of this phase; absent before any progress. */
    etaSeconds: z.number().optional(),
  }),
  z.object({
    event: z.literal('done'),
    snapshotId: z.string(),
    path: z.string(),
    bytes: count,
    packages: count,
    properties: count,
    outOfWindow: count,
    seconds: z.number(),
    recordsPerSecond: z.number(),
    threads: count,
    kernel: z.string(),
    notes: z.array(z.string()).readonly(),
  }),
  z.object({ event: z.literal('failed'), count, countByKind: z.record(z.string(), count).readonly() }),
])
export type BuildEvent = z.infer<typeof buildEvent>
export type BuildDone = Extract<BuildEvent, { event: 'done' }>
