/**
 * Changing the codec list, rehearsed (console.md §14). The registry takes its list from its file at its start, so nobody
 * can run such a change from here: it is a plan with a checklist, which follows what registry and nodes report.
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'
import { ACCESS_LIMITS } from './access.ts'
import { type ControlRoute, count, noBody, time } from './control.ts'

/** Longer ones are refused by name where the list is read. */
const entryName = z.string().max(4 * LIMITS.featureBytesMax)

export const codecEntries = z
  .array(
    z.object({
      name: entryName,
      /** Entry of the list in force that this one was; null: it is new. */
      was: entryName.nullable(),
    }),
  )
  .min(1)
  .max(LIMITS.featuresMax)
export type CodecEntries = z.infer<typeof codecEntries>

const step = z.object({
  id: z.enum(['keep', 'stop', 'registry', 'start', 'data', 'queries']),
  title: z.string(),
  /** What to do, and what happens then. */
  text: z.string(),
  commands: z.array(z.object({ label: z.string(), code: z.string() })),
  /** `hand`: nobody reports it, so nothing ticks it. */
  state: z.enum(['hand', 'open', 'done', 'unknown']),
  /** What was reported that shows the state; '' where nothing is. */
  evidence: z.string(),
})
export type CodecStep = z.infer<typeof step>

export const codecPlan = z.object({
  before: z.object({ names: z.array(z.string()), hash: z.string(), source: z.string() }),
  after: z.object({ names: z.array(z.string()), hash: z.string() }),
  /** The new file, whole. */
  file: z.string(),
  /** Nothing differs. */
  same: z.boolean(),
  changes: z.array(
    z.object({
      kind: z.enum(['added', 'removed', 'renamed', 'moved']),
      name: z.string(),
      says: z.string(),
    }),
  ),
  /** Every snapshot that is known and was made with another list than the new one. */
  snapshots: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      shard: z.string(),
      /** It can be downloaded here. */
      stored: z.boolean(),
      bytes: count,
      heldBy: z.array(z.string()),
    }),
  ),
  /** Saved queries that name an entry that goes; of private ones of others only how many there are. */
  queries: z.array(z.object({ id: z.string(), name: z.string(), owner: z.string(), uses: z.array(z.string()) })),
  hiddenQueries: count,
  nodes: z.array(
    z.object({
      shard: z.string(),
      node: z.string(),
      /** Null: it did not tell. */
      hash: z.string().nullable(),
      answers: z.boolean(),
    }),
  ),
  steps: z.array(step),
})
export type CodecPlan = z.infer<typeof codecPlan>

/** A plan that somebody carries out. What it lists as invalid is as it was when it was kept; its steps are of now. */
export const codecChange = z.object({
  id: z.string(),
  by: z.string(),
  reason: z.string(),
  createdAt: time,
  plan: codecPlan,
  /** All that reports itself is done. */
  complete: z.boolean(),
})
export type CodecChange = z.infer<typeof codecChange>

export const codecUsage = z.object({
  /** By shard: packages that have each entry, in the order of the list. */
  shards: z.array(
    z.object({
      shard: z.string(),
      /** Counted of the snapshot that it was given last, as it was built; null: of none that was built here. */
      of: z.object({ snapshot: z.string(), name: z.string(), at: time, packages: count }).nullable(),
      /** By entry; null where nobody counted. */
      packages: z.record(z.string(), count).nullable(),
    }),
  ),
})
export type CodecUsage = z.infer<typeof codecUsage>

export const CODEC_ROUTES = {
  'GET /api/v1/registry/codec-usage': {
    access: 'viewer',
    summary: 'Packages that have each rate feature, by shard, as counted of the snapshots that were built here.',
    status: 200,
    response: codecUsage,
  },
  'POST /api/v1/registry/codec-plan': {
    access: 'admin',
    summary: 'What another codec list would mean, and how it is brought into force. Changes nothing.',
    body: z.object({ entries: codecEntries }),
    status: 200,
    response: codecPlan,
  },
  'GET /api/v1/registry/codec-change': {
    access: 'viewer',
    summary: 'The plan that is carried out, with how far registry and nodes are; null without one.',
    status: 200,
    response: z.object({ change: codecChange.nullable() }),
  },
  'POST /api/v1/registry/codec-change': {
    access: 'admin',
    summary: 'Keeps a plan to follow it. Changes nothing at registry and nodes. 409 while another one is kept.',
    body: z.object({
      entries: codecEntries,
      reason: z.string().trim().min(ACCESS_LIMITS.reasonMin).max(ACCESS_LIMITS.reasonMax),
      /** Ordered hash of the new list. */
      confirm: z.string().max(128),
    }),
    status: 201,
    response: codecChange,
  },
  'DELETE /api/v1/registry/codec-change/{id}': {
    access: 'admin',
    summary: 'Puts a plan away, carried out or not. Changes nothing at registry and nodes.',
    params: z.object({ id: z.string().max(64) }),
    status: 204,
    response: noBody,
  },
} as const satisfies { readonly [name: string]: ControlRoute }
