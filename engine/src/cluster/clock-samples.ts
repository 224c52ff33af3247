/** Samples of the members' clocks, and the facts that members report about themselves. */

import type { Sample } from '../raft/messages.ts'
import type { FactsFrame } from '../transport/frames.ts'
import { peerDigest } from './applying.ts'
import { followTime } from './keep-time.ts'
import { idOf, type Member, SPOKEN_MAX } from './member-state.ts'
import { CLOCK_LIMITS } from './shard-time.ts'

export function sampleOf({ env, replica }: Member): Sample {
  const { machine, raft } = replica
  const mark = machine.digestMarks().at(-1)
  return {
    wallMs: Math.max(0, Math.floor(env.clock.wallMs())),
    isDiskFull: replica.isDiskFull,
    digestIndex: mark?.index ?? 0,
    digestLo: mark?.lo ?? 0,
    digestHi: mark?.hi ?? 0,
    applied: raft.applied,
  }
}

export function noteFacts(member: Member, peer: string, { featureLevel, memoryBudget, shardTimeMs }: FactsFrame): void {
  const id = idOf(member, peer)
  if (id > 0) member.facts.set(id, { featureLevel, memoryBudget })
  // An idle leader logs no entry that would carry its time.
  if (id > 0 && id === member.replica.raft.leader) followTime(member.replica, shardTimeMs, true)
}

export function noteSample(member: Member, from: number, sample: Sample | undefined): void {
  if (!sample) return
  const { env, samples } = member
  if (samples.size >= SPOKEN_MAX && !samples.has(from)) samples.clear()
  samples.set(from, { ...sample, receivedMs: env.clock.monotonicMs() })
  const { digestIndex, digestLo, digestHi } = sample
  if (digestIndex > 0) peerDigest(member.replica, from, { index: digestIndex, lo: digestLo, hi: digestHi })
}

/** Wall clocks of the other voters that reported within an election time-out, projected to now. */
export function voterClocks({ samples, replica, electionTicks, tickMs }: Member, monotonicMs: number): number[] {
  const { configuration, id } = replica.raft
  return configuration.voters.flatMap((voter) => {
    const sample = voter === id ? undefined : samples.get(voter)
    const ageMs = sample ? monotonicMs - sample.receivedMs : Number.POSITIVE_INFINITY
    return sample && ageMs <= electionTicks * tickMs ? [sample.wallMs + ageMs] : []
  })
}

/**
 * Whether this clock differs by more than 60 s from the median of the known voter clocks, its own included, or this
 * node leads and shard time does not follow its clock.
 */
export function isClockSuspect(member: Member): boolean {
  const { replica, env } = member
  if (replica.raft.role === 'leader' && replica.clock.state === 'holding') return true
  const wallMs = env.clock.wallMs()
  const clocks = [wallMs, ...voterClocks(member, env.clock.monotonicMs())].sort((a, b) => a - b)
  return Math.abs(clocks[clocks.length >>> 1] - wallMs) > CLOCK_LIMITS.agreeMs
}
