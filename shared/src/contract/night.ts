/**
 * The history of one night of a property (docs/design/storage.md#history-of-a-night): what the retained log has of it,
 * as a node finds it and as the console shows it.
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'

export const NIGHT_LIMITS = {
  /** Bytes of the log that one request searches. */
  nightBytesMax: 33_554_432,
  /** Changes after which a request ends. A part of the log that has more is still listed as a whole. */
  nightChangesMax: 200,
  /** Requests at once on one node, waiting ones included. */
  nightRequestsMax: 8,
  /** Characters of a cursor. */
  nightCursorCharsMax: 96,
} as const

const count = z.int().nonnegative()
const time = z.iso.datetime()
const day = z.iso.date()

/** What changed a night. `replaced`: a stay ended because another one took its place. */
const NIGHT_CHANGES = [
  'package',
  'rooms',
  'increase',
  'decrease',
  'hold',
  'book',
  'confirm',
  'release',
  'expire',
  'replaced',
  'delete-package',
  'delete-day',
  'delete-room',
  'delete-property',
  'delete-segment',
  'import',
  'past',
  'time',
] as const
export type NightChangeKind = (typeof NIGHT_CHANGES)[number]

/**
 * The log has commands, not outcomes. `refused` and `unchanged` ones had no effect; of an `unknown` one neither the
 * ledger nor the state of the night tells whether it had.
 */
const NIGHT_OUTCOMES = ['done', 'refused', 'unchanged', 'unknown'] as const
export type NightOutcome = (typeof NIGHT_OUTCOMES)[number]

/** A night before or after a change. Null where it is not known; without a package neither rooms nor price. */
const nightState = z.object({ package: z.boolean().nullable(), rooms: count.nullable(), price: count.nullable() })

const nightChange = z.object({
  /** As clients see it. */
  index: count,
  /** Shard time; null for entries from before the shard had one. */
  at: time.nullable(),
  kind: z.enum(NIGHT_CHANGES),
  outcome: z.enum(NIGHT_OUTCOMES),
  /** Null for a change of all room types. */
  room_type: z.string().nullable(),
  /** What the command sets, adds or takes; null for what it leaves as it was. */
  rooms: count.nullable(),
  price: count.nullable(),
  features: z.array(z.string()).nullable(),
  /** Of a stay, and the one that it replaces. */
  stay: z.string().nullable(),
  replaces: z.string().nullable(),
  /** The source of the stay, or the name of the token that sent the command; '' where the log has none. */
  source: z.string().nullable(),
  /** Content digest of the snapshot that was installed. */
  snapshot: z.string().nullable(),
  before: nightState,
  after: nightState,
})
export type NightChange = z.infer<typeof nightChange>

/** `GET /night`: a page of changes, newest first. */
export const nightBody = z.object({
  property: z.string(),
  /** Null for all room types. */
  room_type: z.string().nullable(),
  date: day,
  /** The log entry up to which the node has applied the log. */
  applied_index: count,
  changes: z.array(nightChange),
  /** The entries that this page covers; null when the log has none below its cursor. */
  searched: z.object({ from_index: count, to_index: count, from_time: time.nullable() }).nullable(),
  /** The oldest entry that the node keeps. */
  retained_from: count,
  /** Of the next page; '' when all of the retained log is searched. */
  next: z.string(),
})
export type NodeNight = z.infer<typeof nightBody>

/** The parameters of `GET /night`. */
export const nightQuery = z.object({
  property: z.string().min(1).max(64),
  /** All of them when absent. */
  room_type: z.string().min(1).max(LIMITS.nameBytesMax).optional(),
  date: day,
  cursor: z.string().max(NIGHT_LIMITS.nightCursorCharsMax).optional(),
})
