/**
 * Codec list changes (docs/design/control-plane.md#codec-list-change). The registry reads its list from a file at
 * startup, so the control plane cannot apply a change. It keeps a plan with a checklist instead, and follows it by
 * what registry and nodes report.
 */

import { z } from 'zod'
import { LIMITS } from '../domain.ts'
import { ACCESS_LIMITS } from './access.ts'
import { type ControlRoute, count, noBody, time } from './control.ts'

/** Longer names are refused when the list is read. */
const entryName = z.string().max(4 * LIMITS.featureBytesMax)

const codecEntries = z
  .array(
    z.object({
      name: entryName,
      /** The entry of the current list that this one was; null when it is new. */
      was: entryName.nullable(),
    }),
  )
  .min(1)
  .max(LIMITS.featuresMax)
export type CodecEntries = z.infer<typeof codecEntries>

const step = z.object({
  id: z.enum(['keep', 'stop', 'registry', 'start', 'data', 'queries']),
  title: z.string(),
  /** What to do, and its effect. */
  text: z.string(),
  commands: z.array(z.object({ label: z.string(), code: z.string() })),
  /** `hand`: no component reports it, so it is never checked off automatically. */
  state: z.enum(['hand', 'open', 'done', 'unknown']),
  /** The report that proves the state; '' when there is none. */
  evidence: z.string(),
})
export type CodecStep = z.infer<typeof step>

export const codecPlan = z.object({
  before: z.object({ names: z.array(z.string()), hash: z.string(), source: z.string() }),
  after: z.object({ names: z.array(z.string()), hash: z.string() }),
  /** The complete new file. */
  file: z.string(),
  /** The lists are equal. */
  same: z.boolean(),
  changes: z.array(
    z.object({
      kind: z.enum(['added', 'removed', 'renamed', 'moved']),
      name: z.string(),
      message: z.string(),
    }),
  ),
  /** Every known snapshot that was built with another list than the new one. */
  snapshots: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      shard: z.string(),
      /** It can be downloaded from this control plane. */
      stored: z.boolean(),
      bytes: count,
      heldBy: z.array(z.string()),
    }),
  ),
  /** Saved queries that name a removed entry. Other people's private queries are only counted. */
  queries: z.array(z.object({ id: z.string(), name: z.string(), owner: z.string(), uses: z.array(z.string()) })),
  hiddenQueries: count,
  nodes: z.array(
    z.object({
      shard: z.string(),
      node: z.string(),
      /** Null: not reported. */
      hash: z.string().nullable(),
      answers: z.boolean(),
    }),
  ),
  steps: z.array(step),
})
export type CodecPlan = z.infer<typeof codecPlan>

/**
 * A plan being carried out. The invalid queries and snapshots are those at the time it was saved; its steps are
 * current.
 */
const codecChange = z.object({
  id: z.string(),
  by: z.string(),
  reason: z.string(),
  createdAt: time,
  plan: codecPlan,
  /** Every step that components report is done. */
  complete: z.boolean(),
})
export type CodecChange = z.infer<typeof codecChange>

const codecUsage = z.object({
  /** By shard: packages that have each entry, in list order. */
  shards: z.array(
    z.object({
      shard: z.string(),
      /** From the snapshot installed last, as it was built; null when it was not built here. */
      of: z.object({ snapshot: z.string(), name: z.string(), at: time, packages: count }).nullable(),
      /** By entry; null when not counted. */
      packages: z.record(z.string(), count).nullable(),
    }),
  ),
})
export type CodecUsage = z.infer<typeof codecUsage>

export const CODEC_ROUTES = {
  'GET /api/v1/registry/codec-usage': {
    access: 'viewer',
    summary: 'Packages that have each rate feature, by shard, counted in the snapshots that were built here.',
    response: codecUsage,
  },
  'POST /api/v1/registry/codec-plan': {
    access: 'admin',
    summary: 'The effects of another codec list, and the steps to apply it. Changes nothing.',
    body: z.object({ entries: codecEntries }),
    response: codecPlan,
  },
  'GET /api/v1/registry/codec-change': {
    access: 'viewer',
    summary: 'The saved plan, with the progress of registry and nodes; null without one.',
    response: z.object({ change: codecChange.nullable() }),
  },
  'POST /api/v1/registry/codec-change': {
    access: 'admin',
    summary:
      'Saves a plan to follow its progress. Changes nothing on registry and nodes. 409 while another plan is saved.',
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
    summary: 'Discards the plan, finished or not. Changes nothing on registry and nodes.',
    params: z.object({ id: z.string().max(64) }),
    status: 204,
    response: noBody,
  },
} as const satisfies { readonly [name: string]: ControlRoute }
