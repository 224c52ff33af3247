/**
 * Stays of a shard for people (docs/design/control-plane.md#stays): found by id, listed by property, room type or night,
 * confirmed and released. Read from the nodes' own interfaces, each with the node that replied.
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'
import { STAY_STATES } from '../wire/stay.ts'
import { VIEW_ROLES } from './cluster-view.ts'
import { type ControlRoute, count, time } from './control.ts'
import { oversoldNight, settingNames } from './node.ts'
import { calendarRange } from './segments.ts'

export const STAY_PAGE_LIMITS = {
  /** Stays of one page. */
  listMax: LIMITS.stayListMax,
  /** Pages read for the calendar of a property. */
  calendarPagesMax: 10,
  reasonCharsMax: 500,
} as const

const name = z.string().max(LIMITS.nameBytesMax)
const day = z.iso.date()
const shardParams = z.object({ shard: z.string().max(128) })
/** In any spelling that the shard accepts. */
const stayParams = shardParams.extend({ stay: z.string().min(1).max(64) })

const state = z.enum(STAY_STATES)
/** Numbers beyond 2^53 − 1 are decimal text on the wire; here all are. */
const u64 = z.string().regex(/^\d{1,20}$/)

const line = z.object({
  property: z.string(),
  room: z.string(),
  arrival: day,
  nights: count,
  rooms: count,
  /** Takes rooms without their price in the total. */
  uncounted: z.boolean(),
})
export type StayLineView = z.infer<typeof line>

const read = { shard: z.string(), node: z.string(), role: z.enum(VIEW_ROLES), at: time }

const stayEntry = z.object({
  id: z.string(),
  state,
  /** When a held stay expires. */
  deadline: time.nullable(),
  /** Log index at which the stay reached its state, and shard time then. */
  index: u64,
  since: time,
  source: z.string(),
  lines: z.array(line),
})
export type StayListEntry = z.infer<typeof stayEntry>

const stayList = z.object({
  ...read,
  property: z.string(),
  stays: z.array(stayEntry),
  /** Of the next page; '' on the last one. */
  next: z.string(),
})

const stayRecord = z.object({
  ...read,
  id: z.string(),
  state,
  deadline: time.nullable(),
  total: u64,
  index: u64,
  /** Null where no list of its property has it any more. */
  since: time.nullable(),
  source: z.string().nullable(),
  /** `days`: what is left and the price on each night that has a package; null once the stay has ended. */
  lines: z.array(
    line.extend({
      days: z.array(z.object({ date: day, left: count, price: count, features: z.array(z.string()) })).nullable(),
    }),
  ),
})
export type StayRecord = z.infer<typeof stayRecord>

const stayNights = z.object({
  ...read,
  /** Nights of the range with rooms on hold or booked. Booked ones are counted while the shard keeps their record. */
  nights: z.array(z.object({ room: z.string(), date: day, held: count, booked: count, stays: count, owed: count })),
  /** The property has more stays than were read; the oldest are not counted. */
  more: z.boolean(),
})
export type StayNights = z.infer<typeof stayNights>

const stayFigures = z.object({
  ...read,
  /** Records of all states. */
  records: count,
  held: count,
  nextDeadline: time.nullable(),
  oversoldNights: count,
  /** Some of them; empty on older nodes. */
  oversold: z.array(oversoldNight),
  bytes: count,
  settings: z.object({
    stays_bytes: count,
    holds_max: count,
    holds_max_per_source: count,
    /** When the day of the shard begins, after midnight UTC; null on older nodes. */
    day_begins_minutes: z.int().nullable(),
  }),
})
export type StayFigures = z.infer<typeof stayFigures>

const stayChange = z.object({
  /** The id as the record shows it: a change of another stay is refused. */
  confirm: z.string().max(64),
  /** The state on which the decision is based. */
  seen: state,
  reason: z.string().max(STAY_PAGE_LIMITS.reasonCharsMax).default(''),
})

export const STAY_ROUTES = {
  'GET /api/v1/shards/{shard}/stays': {
    access: 'query',
    summary: 'Stays of a property, a room type or a night, newest first.',
    params: shardParams,
    query: z.object({
      property: z.string().min(1).max(64),
      room: name.optional(),
      date: day.optional(),
      cursor: z.string().max(128).optional(),
      limit: z.coerce.number().int().min(1).max(STAY_PAGE_LIMITS.listMax).default(STAY_PAGE_LIMITS.listMax),
    }),
    response: stayList,
  },
  'GET /api/v1/shards/{shard}/stays/{stay}': {
    access: 'query',
    summary: 'One stay with its lines, total, state, deadline and source.',
    params: stayParams,
    response: stayRecord,
  },
  'GET /api/v1/shards/{shard}/stay-figures': {
    access: 'query',
    summary: 'Stays on hold, the next deadline, and oversold nights of a shard.',
    params: shardParams,
    response: stayFigures,
  },
  'GET /api/v1/shards/{shard}/properties/{property}/stays': {
    access: 'query',
    summary: 'Rooms on hold and booked by room type and night, from the stays that the shard remembers.',
    params: shardParams.extend({ property: z.string().min(1).max(64) }),
    query: z.object(calendarRange),
    response: stayNights,
  },
  'POST /api/v1/shards/{shard}/settings': {
    access: 'operator',
    summary: 'Changes a setting that all nodes of the shard share. Replies with its figures once they show it.',
    params: shardParams,
    body: z.object({
      name: settingNames,
      value: z.int(),
      reason: z.string().max(STAY_PAGE_LIMITS.reasonCharsMax).default(''),
    }),
    response: stayFigures,
  },
  'POST /api/v1/shards/{shard}/stays/{stay}/confirm': {
    access: 'operator',
    summary: 'Makes a held stay booked. Needs its id and the state that the person saw.',
    params: stayParams,
    body: stayChange,
    response: stayRecord,
  },
  'POST /api/v1/shards/{shard}/stays/{stay}/release': {
    access: 'operator',
    summary: 'Gives the rooms of a held or booked stay back. Needs its id and the state that the person saw.',
    params: stayParams,
    body: stayChange,
    response: stayRecord,
  },
} as const satisfies { readonly [name: string]: ControlRoute }
