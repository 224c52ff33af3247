/** Runs golden searches at one node: once each, and as often as a percentile needs where one has a bound of its time. */
import { ProblemError } from '@vacancy/shared/api/route'
import { GOLDEN_LIMITS, type GoldenOutcome, type GoldenResult } from '@vacancy/shared/contract'
import type { RequestFields, Result } from '@vacancy/shared/wire'
import type { NodeAddress } from '../cluster/cluster.ts'
import { type Reach, readFields, send } from '../nodes/ask.ts'
import { type Found, fieldsOn, judge } from './expectations.ts'
import type { Golden } from './searches.ts'

type Search = Pick<Golden, 'command' | 'fields' | 'daysAhead' | 'expect'>

/** Where and when searches are run. */
export type RunAt = {
  readonly reach: Reach
  readonly node: NodeAddress
  /** The day of the shard. */
  readonly today: number
  /** The most properties in a reply; null when it is not known. */
  readonly queryLimit: number | null
  readonly signal: AbortSignal
}

/** @param onDone called after each with how many are done */
export async function runAll(
  searches: readonly Golden[],
  at: RunAt,
  onDone: (done: number) => void = () => {},
): Promise<GoldenResult[]> {
  const results: GoldenResult[] = []
  for (const search of searches) {
    results.push({ id: search.id, name: search.name, ...(await runOne(search, at)) })
    onDone(results.length)
  }
  return results
}

export async function runOne(search: Search, at: RunAt): Promise<GoldenOutcome> {
  return judge(search.expect, await find(search, at))
}

/** @throws ProblemError when the node gives no answer; what it refuses is a result */
async function find({ command, fields, daysAhead, expect }: Search, at: RunAt): Promise<Found> {
  const { reach, node, today, queryLimit, signal } = at
  const parsed = { ...fieldsOn(readFields(command, fields), daysAhead, today), explain: 1 }
  const micros: number[] = []
  let ids: string[] = []
  const runs = expect.p99Ms === null ? 1 : GOLDEN_LIMITS.runs
  try {
    for (let run = 0; run < runs; run++) {
      signal.throwIfAborted()
      const { result, reply } = await send(reach, [node], command, parsed, signal)
      const { explain } = result
      // A node that reports no times is measured from here.
      micros.push(explain ? explain.waitingMicros + explain.searchingMicros : reply.milliseconds * 1_000)
      if (run === 0) ids = idsOf(result)
    }
  } catch (error) {
    if (error instanceof ProblemError && REFUSALS.has(error.code)) return { refused: error.message }
    throw error
  }
  const limit = limitOf(parsed, queryLimit)
  return { ids, isCut: limit !== null && ids.length >= limit, micros }
}

/** What the data or the settings of a node make of a search. */
const REFUSALS: ReadonlySet<string> = new Set(['wire-validation-error', 'wire-not-found'])

function idsOf(result: Result<'SEARCHPROP'> | Result<'SEARCHAVAIL'>): string[] {
  return 'propertyIds' in result ? result.propertyIds : result.properties.map(({ propertyId }) => propertyId)
}

function limitOf({ limit }: RequestFields, queryLimit: number | null): number | null {
  const limits = [limit === undefined ? null : Number(limit), queryLimit].filter((each) => each !== null)
  return limits.length === 0 ? null : Math.min(...limits)
}
