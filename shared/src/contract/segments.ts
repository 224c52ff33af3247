/**
 * Segments and properties of a shard (docs/design/control-plane.md#segments-and-properties): bounded reads of the
 * nodes' own interfaces, each with the node and the applied index it was read at.
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'
import { VIEW_ROLES } from './cluster-view.ts'
import { type ControlRoute, count, time } from './control.ts'
import { NIGHT_LIMITS, nightBody } from './night.ts'
import { propertiesBody } from './node.ts'

export const SEGMENT_LIMITS = {
  /** Segments in one page, by name. */
  segmentsMax: 100,
  /** Properties in one list. A larger segment is read in parts by its filters. */
  propertiesMax: 5_000,
  /** Searches behind one list. */
  searchesMax: 400,
  /** Nights of one calendar. */
  nightsMax: 62,
  roomTypesMax: 64,
  /** Differing cells that are listed. */
  differencesMax: 500,
} as const

const name = z.string().max(LIMITS.nameBytesMax)
const day = z.iso.date()
const shardParams = z.object({ shard: z.string().max(128) })
const propertyParams = shardParams.extend({ property: z.string().min(1).max(64) })

const segmentLine = z.object({
  name: z.string(),
  properties: count,
  /** Distinct areas; null where a segment has more than a node lists at once. */
  areas: count.nullable(),
  packages: count,
  /** `nights[i]` are the packages of night `window.from + i`. */
  nights: z.array(count),
})
export type SegmentLine = z.infer<typeof segmentLine>

const segmentsAnswer = z.object({
  shard: z.string(),
  node: z.string(),
  /** First and last night of the counts; null without packages. */
  window: z.object({ from: day, to: day }).nullable(),
  segments: z.array(segmentLine),
  /** More segments follow, by name. */
  more: z.boolean(),
  at: time,
})
export type SegmentsAnswer = z.infer<typeof segmentsAnswer>

const propertyFilters = z.object({
  area: name.optional(),
  type: name.optional(),
  category: name.optional(),
  /** At least. */
  stars: z.coerce.number().int().min(LIMITS.starsMin).max(LIMITS.starsMax).optional(),
  amenity: name.optional(),
})

const segmentProperties = z.object({
  shard: z.string(),
  segment: z.string(),
  node: z.string(),
  /** Properties of the segment without filters; null when it has none. */
  total: count.nullable(),
  properties: propertiesBody.shape.properties,
  /** More properties match than are listed. */
  more: z.boolean(),
  at: time,
})
export type SegmentProperties = z.infer<typeof segmentProperties>
export type PropertyDetails = SegmentProperties['properties'][number]

const night = z.object({
  date: day,
  availability: count,
  price: count,
  features: z.array(z.string()),
})
/** The package of a room type on a night. */
export type CalendarNight = z.infer<typeof night>

const applied = z.object({ from: z.string(), to: z.string() }).nullable()

export const calendarRange = {
  /** First night; today when absent. */
  from: day.optional(),
  nights: z.coerce.number().int().min(1).max(SEGMENT_LIMITS.nightsMax).default(SEGMENT_LIMITS.nightsMax),
}

const propertyCalendar = z.object({
  shard: z.string(),
  node: z.string(),
  role: z.enum(VIEW_ROLES),
  property: propertiesBody.shape.properties.element,
  /** First and last night with a package of any room type; null without packages. */
  window: z.object({ from: day, to: day }).nullable(),
  from: day,
  nights: count,
  /** By name; nights without a package are absent. */
  rooms: z.array(z.object({ room: z.string(), nights: z.array(night) })),
  /** The property has more room types than are listed. */
  more: z.boolean(),
  /** Applied indexes of the first and the last read; null when no reply reported one. */
  index: applied,
  /** The codec list, in the order of its bits. */
  rateFeatures: z.array(z.string()),
  at: time,
})
export type PropertyCalendar = z.infer<typeof propertyCalendar>

const calendarReplicas = z.object({
  shard: z.string(),
  at: time,
  nodes: z.array(
    z.object({
      node: z.string(),
      role: z.enum(VIEW_ROLES),
      index: applied,
      micros: z.number().nullable(),
      packages: count.nullable(),
      /** Why the node has no values; '' when it has. */
      error: z.string(),
    }),
  ),
  /** All nodes that replied have the same packages. */
  equal: z.boolean(),
  answered: count,
  /** Number of rounds: the read is repeated while indexes advance. */
  reads: count,
  /** Cells that differ; `values` are in the order of `nodes`, null without a package or a reply. */
  differences: z.array(z.object({ room: z.string(), date: day, values: z.array(night.nullable()) })),
  differencesCut: z.boolean(),
})
export type CalendarReplicas = z.infer<typeof calendarReplicas>

/** What a node found, with the node: a cursor is of the log of one node. */
const nightHistory = nightBody.extend({ shard: z.string(), node: z.string(), role: z.enum(VIEW_ROLES), at: time })
export type NightHistory = z.infer<typeof nightHistory>

export const SEGMENT_ROUTES = {
  'GET /api/v1/shards/{shard}/segments': {
    access: 'query',
    summary: 'Segments of a shard by name, with areas, properties and packages by night; at most 60 s old.',
    params: shardParams,
    query: z.object({
      after: name.default(''),
      limit: z.coerce.number().int().min(1).max(SEGMENT_LIMITS.segmentsMax).default(SEGMENT_LIMITS.segmentsMax),
    }),
    response: segmentsAnswer,
  },
  'GET /api/v1/shards/{shard}/segments/{segment}/properties': {
    access: 'query',
    summary: 'Properties of a segment by id, with attributes and positions.',
    params: shardParams.extend({ segment: name.min(1) }),
    query: propertyFilters,
    response: segmentProperties,
  },
  'GET /api/v1/shards/{shard}/properties/{property}': {
    access: 'query',
    summary: 'A property with its packages by room type and night.',
    params: propertyParams,
    query: z.object({
      ...calendarRange,
      node: z.string().max(128).optional(),
      /** An acknowledged write: the node waits until it has applied its index. */
      atLeast: z
        .string()
        .regex(/^\d{1,19}$/)
        .optional(),
    }),
    response: propertyCalendar,
  },
  'GET /api/v1/shards/{shard}/properties/{property}/night': {
    access: 'query',
    summary: 'Changes of one room type and night that the retained log of a node has, newest first.',
    params: propertyParams,
    query: z.object({
      room: name.min(1),
      date: day,
      /** That of the page before, when there is a cursor. */
      node: z.string().max(128).optional(),
      cursor: z.string().max(NIGHT_LIMITS.nightCursorCharsMax).optional(),
    }),
    response: nightHistory,
  },
  'GET /api/v1/shards/{shard}/properties/{property}/replicas': {
    access: 'query',
    summary: 'Reads the packages of a property on every node and lists the cells that differ.',
    params: propertyParams,
    query: z.object(calendarRange),
    response: calendarReplicas,
  },
} as const satisfies { readonly [name: string]: ControlRoute }
