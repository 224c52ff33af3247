'use client'
/** Actions that a majority of the voters of a shard must accept, and why they are not available. */

import type { PersonRole, ShardBrief } from '@vacancy/shared/contract'
import { useLive } from './live.ts'
import { useWhyNot } from './session.ts'

type ShardState = Pick<ShardBrief, 'state' | 'message' | 'leader'>

/** Why the members, the leader and the data set of a shard cannot be changed: its plans are refused for the same. */
export function whyNoChange({ state, message }: ShardState): string | undefined {
  return state === 'quorum-lost' ? message : undefined
}

/**
 * Why a shard accepts no write. A leader that responds may reach a majority that the control plane does not reach, so
 * it decides itself.
 */
export function whyNoWrite(shard: ShardState): string | undefined {
  return shard.leader === null ? whyNoChange(shard) : undefined
}

const RULES = { change: whyNoChange, write: whyNoWrite }

/** Why an action on a shard is not available now: the person, the connection or the shard; undefined when it is. */
export function useWhyNotOn(shard: string, role: PersonRole, action: keyof typeof RULES): string | undefined {
  const whyNot = useWhyNot(role)
  const ofShard = useLive('summary', ({ shards }) => {
    const brief = shards.find(({ id }) => id === shard)
    return brief && RULES[action](brief)
  }).data
  return whyNot ?? ofShard
}
