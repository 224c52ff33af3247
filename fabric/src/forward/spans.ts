/** Spans of routers and bridges (docs/operators.md#tracing). */

import type { Tracing } from '@vacancy/shared/node'
import type { Ended } from './forwarder.ts'
import { traceOf } from './traces.ts'

/** The span of a request that has ended, beside those of the other hops: the caller of all is its parent. */
export function recordSpan(tracing: Tracing, { request, result, seconds }: Ended, endMs: number): void {
  const parent = traceOf(request)
  if (!parent?.isSampled) return
  const { command, segment, tries, lastHop } = request
  tracing.record({
    ...{ name: command, parent, startMs: endMs - seconds * 1000, endMs },
    attributes: { command, segment, tries, hop: lastHop?.id, result },
    fault: result === 'ok' ? '' : result,
  })
}
