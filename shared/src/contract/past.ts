/** The past of the cluster: states at a moment, events between two, and what changed (docs/design/control-plane.md#the-past). */

import { z } from 'zod'
import { clusterEvent, eventKinds, nodeDocument, operation, shardView, summary } from './cluster-view.ts'
import { type ControlRoute, count, time } from './control.ts'
import { topologyView } from './topology-view.ts'

const PAST_LIMITS = { hours: 72, stepsMax: 480, eventsMax: 500 } as const

const id = z.string().max(128)
/** `now`, `now-1h`, or a time. */
const moment = z.string().max(64)
const range = z.object({ from: moment.default('now-24h'), to: moment.default('now'), shard: id.optional() })

const timeline = z.object({
  from: time,
  to: time,
  stepSeconds: z.number(),
  /** The first recorded moment; null before there is one. */
  oldest: time.nullable(),
  /** The first moment of the range with a recorded state; null when it has none. */
  recordedFrom: time.nullable(),
  /** Events of each step, and how many of them are changes of leader. */
  events: z.array(count),
  leaders: z.array(count),
})

const pastChanges = z.object({
  from: time,
  to: time,
  /** Differences between the two states, as events. Changes that were undone in between are not among them. */
  changes: z.array(clusterEvent.omit({ id: true, at: true })),
  /** What happened in between, oldest first. */
  events: z.array(clusterEvent),
  /** More events exist than are listed. */
  more: z.boolean(),
})
export type PastChanges = z.infer<typeof pastChanges>

export const PAST_ROUTES = {
  'GET /api/v1/events': {
    access: 'viewer',
    summary: 'Events between two moments, of all shards or one, newest or oldest first.',
    query: range.extend({
      node: id.optional(),
      kinds: eventKinds.optional(),
      order: z.enum(['newest', 'oldest']).default('newest'),
      limit: z.coerce.number().int().min(1).max(PAST_LIMITS.eventsMax).default(100),
    }),
    response: z.object({ from: time, to: time, events: z.array(clusterEvent) }),
  },
  'GET /api/v1/past/summary': {
    access: 'viewer',
    summary: 'The overview as it was at a moment.',
    query: z.object({ at: moment }),
    response: summary,
  },
  'GET /api/v1/past/shards/{shard}': {
    access: 'viewer',
    summary: 'One shard as it was at a moment.',
    params: z.object({ shard: id }),
    query: z.object({ at: moment }),
    response: shardView,
  },
  'GET /api/v1/past/shards/{shard}/nodes/{node}': {
    access: 'viewer',
    summary: 'One node as it was at a moment, without its raw responses.',
    params: z.object({ shard: id, node: id }),
    query: z.object({ at: moment }),
    response: nodeDocument,
  },
  'GET /api/v1/past/topology': {
    access: 'viewer',
    summary: 'The fabric as it was at a moment: components, connections, and what was cut off.',
    query: z.object({ at: moment }),
    response: topologyView,
  },
  'GET /api/v1/past/operations/{id}': {
    access: 'viewer',
    summary: 'An operation as far as it was at a moment.',
    params: z.object({ id }),
    query: z.object({ at: moment }),
    response: operation,
  },
  'GET /api/v1/past/timeline': {
    access: 'viewer',
    summary: 'How many events there were in each part of a time range.',
    query: range.extend({ steps: z.coerce.number().int().min(1).max(PAST_LIMITS.stepsMax).default(240) }),
    response: timeline,
  },
  'GET /api/v1/past/changes': {
    access: 'viewer',
    summary: 'What changed between two moments.',
    query: range,
    response: pastChanges,
  },
} as const satisfies { readonly [name: string]: ControlRoute }
