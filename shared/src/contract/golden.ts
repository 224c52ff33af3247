/**
 * Golden searches: searches of a shard with what their results must hold. They are run on the shard, and on a snapshot
 * before it is installed (docs/design/control-plane.md#golden-searches).
 */

import { z } from 'zod'
import { type ControlRoute, count, time } from './control.ts'
import { oneLine, PLAYGROUND_LIMITS, queryFields } from './playground.ts'

export const GOLDEN_LIMITS = {
  /** Golden searches of one shard. */
  searchesMax: 100,
  /** Properties that one of them may require. */
  containsMax: 20,
  atLeastMax: 32_767,
  daysAheadMax: 365,
  p99MsMax: 10_000,
  /** How often a search with a bound of its time runs. */
  runs: 100,
  /** All searches of a shard together; on a snapshot with the start of the node. */
  checkMs: 300_000,
  /** Failed ones that a plan names one by one. */
  namedMax: 10,
} as const

const id = z.string().max(64)
const shard = z.string().min(1).max(128)
const name = oneLine.min(1)
const command = z.enum(['SEARCHPROP', 'SEARCHAVAIL'])

/** At least one of them is given. */
const expectation = z.object({
  /** Properties in the result, at least. */
  atLeast: z.int().min(1).max(GOLDEN_LIMITS.atLeastMax).nullable().default(null),
  /** Property ids that the result contains. */
  contains: z.array(z.string().min(1).max(64)).max(GOLDEN_LIMITS.containsMax).default([]),
  /** Milliseconds of the node, at most, in 99 of 100 runs. */
  p99Ms: z.number().positive().max(GOLDEN_LIMITS.p99MsMax).nullable().default(null),
})
export type Expectation = z.output<typeof expectation>

const triedBody = z.object({
  shard,
  command,
  fields: queryFields,
  /** The first of the dates is always this many days after the day of the shard; null: the dates stay as they are. */
  daysAhead: z.int().min(0).max(GOLDEN_LIMITS.daysAheadMax).nullable().default(null),
  expect: expectation,
})
const goldenBody = triedBody.extend({ name })

/** `slow`: the result is as expected, its time is not. `failed`: the result is not as expected, or it was refused. */
const GOLDEN_VERDICTS = ['passed', 'slow', 'failed'] as const

const outcome = z.object({
  verdict: z.enum(GOLDEN_VERDICTS),
  /** "finds 3 properties, at least 20 expected; without alp_7". */
  message: z.string(),
  /** Properties in the result; null when it was refused. */
  count: count.nullable(),
  /** Null without a bound. */
  p99Ms: z.number().nonnegative().nullable(),
})
export type GoldenOutcome = z.infer<typeof outcome>

const goldenResult = outcome.extend({ id: z.string(), name: z.string() })
export type GoldenResult = z.infer<typeof goldenResult>

const goldenSearch = goldenBody.extend({
  id: z.string(),
  /** Who changed it last. */
  by: z.string(),
  createdAt: time,
  changedAt: time,
  /** Of the last run on the shard since its last change; null before. */
  last: outcome.extend({ at: time, node: z.string() }).nullable(),
})
export type GoldenSearch = z.infer<typeof goldenSearch>

const goldenRun = z.object({ shard: z.string(), node: z.string(), at: time, results: z.array(goldenResult) })
export type GoldenRun = z.infer<typeof goldenRun>

/**
 * `none`: the shard has no golden searches. `due`: they were not run on this snapshot since they were changed.
 * `not-run`: they could not be run, as `message` says.
 */
const CHECK_STATES = ['none', 'due', 'running', 'done', 'not-run'] as const

const goldenCheck = z.object({
  snapshot: z.string(),
  shard: z.string(),
  state: z.enum(CHECK_STATES),
  message: z.string(),
  /** Searches run so far, of all. */
  done: count,
  of: count,
  /** When it ended; null before. */
  at: time.nullable(),
  /** In the order of their names; empty until it is done. */
  results: z.array(goldenResult),
})
export type GoldenCheck = z.infer<typeof goldenCheck>

export const GOLDEN_ROUTES = {
  'GET /api/v1/golden-searches': {
    access: 'viewer',
    summary: 'Golden searches of a shard, or of all, by shard and name, with their last result on the shard.',
    query: z.object({ shard: shard.optional() }),
    response: z.object({ searches: z.array(goldenSearch) }),
  },
  'POST /api/v1/golden-searches': {
    access: 'operator',
    summary: `Adds a golden search; a shard has at most ${GOLDEN_LIMITS.searchesMax}.`,
    body: goldenBody,
    bodyBytesMax: 2 * PLAYGROUND_LIMITS.requestCharsMax,
    status: 201,
    response: goldenSearch,
  },
  'POST /api/v1/golden-searches/try': {
    access: 'query',
    summary: 'Runs a golden search on its shard without storing it.',
    body: triedBody,
    bodyBytesMax: 2 * PLAYGROUND_LIMITS.requestCharsMax,
    response: outcome.extend({ node: z.string() }),
  },
  'PUT /api/v1/golden-searches/{id}': {
    access: 'operator',
    summary: 'Changes a golden search.',
    params: z.object({ id }),
    body: goldenBody,
    bodyBytesMax: 2 * PLAYGROUND_LIMITS.requestCharsMax,
    response: goldenSearch,
  },
  'DELETE /api/v1/golden-searches/{id}': {
    access: 'operator',
    summary: 'Removes a golden search.',
    params: z.object({ id }),
    status: 204,
    response: z.undefined(),
  },
  'POST /api/v1/shards/{shard}/golden-run': {
    access: 'operator',
    summary: 'Runs all golden searches of a shard, or one, at one of its nodes. One run at a time.',
    params: z.object({ shard }),
    body: z.object({ search: id.optional() }),
    response: goldenRun,
  },
} as const satisfies { readonly [name: string]: ControlRoute }

export const GOLDEN_CHECK_ROUTES = {
  'GET /api/v1/snapshots/{id}/golden-check': {
    access: 'viewer',
    summary: 'What the golden searches of its shard find in a stored snapshot.',
    params: z.object({ id }),
    response: goldenCheck,
  },
  'POST /api/v1/snapshots/{id}/golden-check': {
    access: 'operator',
    summary:
      'Runs them on the snapshot, with a node started for it. One snapshot at a time; a plan of an admin starts it by itself.',
    params: z.object({ id }),
    status: 202,
    response: goldenCheck,
  },
} as const satisfies { readonly [name: string]: ControlRoute }
