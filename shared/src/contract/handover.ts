/**
 * Handing over every leader of a zone or machine before a restart, and back afterwards: one plan, one transfer per shard,
 * one after another (docs/design/control-plane.md#handovers).
 */

import { z } from 'zod'
import { ACCESS_LIMITS, environmentBody } from './access.ts'
import { type ControlRoute, count, time } from './control.ts'

export const HANDOVER_LIMITS = { shardsMax: 2_000, listed: 20 } as const

const name = z.string().min(1).max(253)
const scope = z.object({ kind: z.enum(['zone', 'machine']), name })
export type HandoverScope = z.infer<typeof scope>

/** The leaders of a zone or machine; or, with `back`, those that an earlier handover moved. */
const handoverRequest = z.union([
  z.strictObject({ zone: name }),
  z.strictObject({ machine: name }),
  z.strictObject({ back: z.string().min(1).max(64) }),
])
export type HandoverRequest = z.infer<typeof handoverRequest>

/** A shard whose nodes go. `stopped`: it is without them already. */
const shardImpact = z.object({
  shard: z.string(),
  writes: z.enum(['stop', 'stopped', 'pause', 'continue', 'unknown']),
  reads: z.enum(['stop', 'stopped', 'continue']),
  /** Voters that serve and stay. */
  votersLeft: count,
  majority: count,
})
export type ShardImpact = z.infer<typeof shardImpact>

const handoverPlan = z.object({
  kind: z.enum(['prepare', 'bring-back']),
  scope,
  /** The handover whose leaders return. */
  back: z.string().nullable(),
  /** "Hand over the leaders of zone eu-1". */
  title: z.string(),
  items: z.array(
    z.object({
      shard: z.string(),
      from: z.string(),
      to: z.string().nullable(),
      /** Why its leader stays; '' when it moves. */
      blocked: z.string(),
      warnings: z.array(z.string()),
    }),
  ),
  moves: count,
  /** Shards that stop when the scope goes, with their leaders moved or not. */
  stops: z.array(shardImpact),
  /** Milliseconds that writes of one shard wait, at worst; null when nothing was measured. */
  worstPauseMs: z.number().nullable(),
  reasonRequired: z.boolean(),
  environment: environmentBody,
  /** Of the shards and their leaders: a start names it, and is refused when they changed. */
  basis: z.string(),
})
export type HandoverPlan = z.infer<typeof handoverPlan>

const handoverItem = z.object({
  shard: z.string(),
  from: z.string(),
  to: z.string().nullable(),
  /** `stays`: its leader could not move when it was planned. `skipped`: another node leads meanwhile. */
  state: z.enum(['waiting', 'running', 'done', 'failed', 'skipped', 'stays']),
  operation: z.string().nullable(),
  message: z.string(),
  /** Starts, counted: each has its own operation. */
  attempts: count,
})
export type HandoverItem = z.infer<typeof handoverItem>

const handover = z.object({
  id: z.string(),
  kind: z.enum(['prepare', 'bring-back']),
  scope,
  back: z.string().nullable(),
  title: z.string(),
  by: z.string(),
  reason: z.string(),
  /** `stopped`: a transfer was not done; it is continued or left. */
  state: z.enum(['running', 'stopped', 'done', 'left']),
  message: z.string(),
  createdAt: time,
  endedAt: time.nullable(),
  items: z.array(handoverItem),
})
export type Handover = z.infer<typeof handover>

/** With the shards that stop now if the scope goes; none for a way back. */
const handoverView = handover.extend({ stops: z.array(shardImpact) })
export type HandoverView = z.infer<typeof handoverView>

const idParams = z.object({ id: z.string().max(64) })

export const HANDOVER_ROUTES = {
  'POST /api/v1/handovers/plan': {
    access: 'viewer',
    summary: 'Plans to hand over the leaders of a zone or machine, or to bring them back. Changes nothing.',
    body: handoverRequest,
    response: handoverPlan,
  },
  'POST /api/v1/handovers': {
    access: 'admin',
    summary: 'Starts a handover: one transfer per shard, in order. 409 `plan-out-of-date` has the new plan in `plan`.',
    body: z.object({
      request: handoverRequest,
      basis: z.string().max(64),
      reason: z.string().trim().max(ACCESS_LIMITS.reasonMax).default(''),
    }),
    status: 202,
    response: handoverView,
  },
  'GET /api/v1/handovers': {
    access: 'viewer',
    summary: `The last ${HANDOVER_LIMITS.listed} handovers, newest first.`,
    response: z.object({ handovers: z.array(handover) }),
  },
  'GET /api/v1/handovers/{id}': {
    access: 'viewer',
    summary: 'One handover, with the transfer of each shard, and what stops now if the scope goes.',
    params: idParams,
    response: handoverView,
  },
  'POST /api/v1/handovers/{id}/continue': {
    access: 'admin',
    summary: 'Continues a stopped handover with the shard whose transfer was not done.',
    params: idParams,
    status: 202,
    response: handoverView,
  },
  'POST /api/v1/handovers/{id}/leave': {
    access: 'admin',
    summary: 'Leaves a handover as it is: the running transfer ends, further shards keep their leader.',
    params: idParams,
    response: handoverView,
  },
} as const satisfies { readonly [name: string]: ControlRoute }
