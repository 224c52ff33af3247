/** Changes a setting that all nodes of a shard share, for a person, with audit entries before and after. */
import { setTimeout as sleep } from 'node:timers/promises'
import { problem } from '@vacancy/shared/api/errors'
import { callerOf, ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import { PLAYGROUND_LIMITS, type StayFigures } from '@vacancy/shared/contract'
import type { WriteAudit } from '../access/audit.ts'
import { type Reach, reasonOf, refusedBy } from '../nodes/ask.ts'
import { targetOf } from '../nodes/target.ts'
import { stayFigures, writeNode } from './stays.ts'

const PATH = '/admin/settings'
/** A node measures its figures once a second. */
const SHOWN_MS = 5_000
const LOOK_MS = 250

type Change = RouteRequest<'POST /api/v1/shards/{shard}/settings'>

/** @returns the figures with the setting; those before the change when the node does not show it in time */
export async function changeSetting(
  { reach, audit }: { readonly reach: Reach; readonly audit: WriteAudit },
  request: Change,
): Promise<StayFigures> {
  const { params, body } = request
  const target = targetOf(reach.cluster, { shard: params.shard })
  const { name, value } = body
  const note = async (result: string, detail: string) =>
    audit({
      ...{ ...callerOf(request), action: 'shard.setting', target: target.shard, result, detail },
      reason: body.reason.trim(),
    })
  const before = await stayFigures(reach, { params, signal: AbortSignal.timeout(PLAYGROUND_LIMITS.queryMs) })
  // Audited before it is sent, so that no change is missing in the log.
  await note('requested', `${name} = ${value}, was ${before.settings[name] ?? 'unknown'}`)
  try {
    const node = writeNode(reach, target)
    const options = {
      as: 'admin',
      method: 'POST',
      body: { name, value },
      timeoutMs: PLAYGROUND_LIMITS.queryMs,
    } as const
    const answer = await reach.cluster.request(node, PATH, options)
    if (answer.status === 400) throw problem('invalid-request', { detail: reasonOf(answer.body), field: 'value' })
    if (answer.status !== 202) throw refusedBy(node, PATH, answer.status, reasonOf(answer.body), 'node_admin_token')
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    await note('failed', error.message)
    error.isAudited = true
    throw error
  }
  await note('done', `${name} = ${value}`)
  let figures = before
  for (let waitedMs = 0; figures.settings[name] !== value && waitedMs < SHOWN_MS; waitedMs += LOOK_MS) {
    await sleep(LOOK_MS)
    figures = await stayFigures(reach, { params, signal: AbortSignal.timeout(PLAYGROUND_LIMITS.queryMs) })
  }
  return figures
}
