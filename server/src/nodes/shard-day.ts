/** The day of a shard, which its own time and its day boundary decide: not the clock of this machine or of a browser. */

import { dayOf } from '@vacancy/shared'
import { statusBody } from '@vacancy/shared/contract'
import type { NodeAddress } from '../cluster/cluster.ts'
import { parseJson, type Reach, requestNode } from './ask.ts'

/** The present day of the shard of a node; that of this machine in UTC when the node does not tell it. */
export async function shardToday(reach: Reach, node: NodeAddress, signal: AbortSignal): Promise<number> {
  const { status, body } = await requestNode(reach, node, '/status', { as: 'monitoring', signal })
  const { clock, stays } = (status === 200 && statusBody.safeParse(parseJson(body)).data) || {}
  const timeMs = clock?.shard_time ? Date.parse(clock.shard_time) : reach.clients.clock.wallMs()
  return dayOf(timeMs - (stays?.settings.day_begins_minutes ?? 0) * 60_000)
}
