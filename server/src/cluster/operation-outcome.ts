/**
 * Decides from observations of the nodes which steps of an operation are done and when it has ended. Pure; the runner
 * in membership.ts calls it with each observation and keeps the result.
 */
import type { ShardView } from '@vacancy/shared/contract'
import { isUp } from './derive.ts'
import type { NodeObservation } from './observation.ts'
import { majorityOf } from './plans.ts'

export const OUTCOME_LIMITS = {
  slowMs: 10_000,
  endMs: 30_000,
  /** A shard without writes is confirmed this long after the target became leader. */
  idleMs: 1_000,
  /** An election that follows an accepted transfer is over. */
  elsewhereMs: 3_000,
} as const

export type ShardObservation = {
  readonly now: number
  readonly shard: ShardView
  readonly observations: readonly NodeObservation[]
}

export type TransferTrack = {
  readonly target: string
  readonly oldLeader: string | null
  readonly term: number | null
  /** The last change that the nodes reported before the request: a different one belongs to this operation. */
  readonly lastChange: ShardView['lastChange']
  readonly oldLeaderAt: number | undefined
  readonly steppedDown: Sighting | undefined
  readonly leads: (Sighting & { readonly commit: number | null }) | undefined
  readonly confirmed: Sighting | undefined
}

type Sighting = { readonly at: number; readonly evidence: string }

export type Outcome =
  | { readonly end: undefined }
  | { readonly end: 'done' | 'elsewhere' | 'no-change' | 'unconfirmed'; readonly message: string }

const NOT_ENDED: Outcome = { end: undefined }

export function observeTransfer(track: TransferTrack, observation: ShardObservation): TransferTrack {
  const { shard, now } = observation
  const old = shard.nodes.find(({ id }) => id === track.oldLeader)
  const isOldLeading = old?.health === 'active_leader'
  let next = track
  if (isOldLeading && !track.leads) next = { ...next, oldLeaderAt: timeOf(old.ages.health, now) }
  if (!next.steppedDown && !isOldLeading) {
    const evidence = old
      ? `${old.id} is ${old.health ?? 'silent'}`
      : track.oldLeader === null
        ? 'no leader before'
        : `${track.oldLeader} led before`
    next = { ...next, steppedDown: { at: now, evidence } }
  }
  const target = shard.nodes.find(({ id }) => id === track.target)
  const names = shard.nodes.filter(({ voter, namesLeader }) => voter && namesLeader === track.target)
  const isHigher = shard.term === null || track.term === null || shard.term > track.term
  if (!next.leads && shard.leader === track.target && target?.health === 'active_leader' && isHigher) {
    const doesItself = names.some(({ id }) => id === track.target)
    if (doesItself && names.length >= shard.majority) {
      const terms = shard.term === null ? '' : `, term ${track.term ?? '?'} → ${shard.term}`
      const evidence = `${names.length} of ${shard.voters} voters name ${track.target}${terms}`
      next = { ...next, leads: { at: now, evidence, commit: target.commitIndex } }
      next = { ...next, steppedDown: next.steppedDown ?? { at: now, evidence: `${track.oldLeader} no longer leads` } }
    }
  }
  if (next.leads && !next.confirmed && shard.leader === track.target) {
    const [before, commit] = [next.leads.commit, target?.commitIndex ?? null]
    if (before !== null && commit !== null && commit > before) {
      next = { ...next, confirmed: { at: now, evidence: `commit index ${before} → ${commit} under ${track.target}` } }
    } else if (now - next.leads.at >= OUTCOME_LIMITS.idleMs) {
      next = { ...next, confirmed: { at: now, evidence: 'no writes to confirm' } }
    }
  }
  return next
}

export function transferOutcome(track: TransferTrack, observation: ShardObservation, sinceRequestMs: number): Outcome {
  const { shard } = observation
  const { target, oldLeader } = track
  if (track.confirmed) return { end: 'done', message: `${target} leads ${shard.id}` }
  // An accepted request may still be on its way: another leader than both is a result only after an election.
  if (
    shard.leader !== null &&
    shard.leader !== target &&
    shard.leader !== oldLeader &&
    sinceRequestMs >= OUTCOME_LIMITS.elsewhereMs
  ) {
    return { end: 'elsewhere', message: `Leadership went to ${shard.leader}, not ${target}` }
  }
  const failed = failedChange(track.lastChange, shard, 'transfer', target)
  if (failed !== undefined && shard.leader === oldLeader) {
    return { end: 'no-change', message: `${oldLeader} still leads: ${failed}` }
  }
  if (sinceRequestMs < OUTCOME_LIMITS.endMs) return NOT_ENDED
  if (shard.leader === oldLeader && oldLeader !== null) {
    return { end: 'no-change', message: `${oldLeader} still leads after ${OUTCOME_LIMITS.endMs / 1000} s` }
  }
  return {
    end: 'unconfirmed',
    message: 'Not confirmed. The cluster may still do this; it is watched for 10 more minutes.',
  }
}

export type MemberTrack = {
  readonly kind: 'promote' | 'demote'
  readonly node: string
  readonly lastChange: ShardView['lastChange']
}

/** How many voters list the node as expected. Done when a majority of them does. */
export function memberEvidence(
  track: MemberTrack,
  { observations }: ShardObservation,
): { readonly isDone: boolean; readonly evidence: string } {
  const lists = observations.flatMap((each) =>
    isUp(each) && each.info ? [{ id: each.address.id, members: each.info.value.members }] : [],
  )
  const isListed = ({ members }: (typeof lists)[number]) =>
    track.kind === 'promote' ? members.voters.includes(track.node) : !members.voters.includes(track.node)
  const newest = lists.filter(isListed)[0]
  const voters = newest?.members.voters ?? []
  const agree = newest ? lists.filter((list) => voters.includes(list.id) && isListed(list)) : []
  const isDone = voters.length > 0 && agree.length >= majorityOf(voters.length)
  const left = newest && !newest.members.learners.includes(track.node)
  const what = track.kind === 'promote' ? 'as voter' : left ? 'no longer' : 'as learner'
  return { isDone, evidence: `${agree.length} of ${voters.length} voters list ${track.node} ${what}` }
}

export function memberOutcome(track: MemberTrack, observation: ShardObservation, sinceRequestMs: number): Outcome {
  const { shard } = observation
  const { isDone, evidence } = memberEvidence(track, observation)
  const { kind, node } = track
  if (isDone)
    return {
      end: 'done',
      message: kind === 'promote' ? `${node} is a voter` : `${node} is no longer a voter: ${evidence}`,
    }
  const failed = failedChange(track.lastChange, shard, kind, node)
  if (failed !== undefined) return { end: 'no-change', message: `Nothing changed: ${failed}` }
  // A leader waits up to 10 minutes until a learner has caught up, and reports the change meanwhile.
  const isRunning = shard.change?.kind === kind && shard.change.node === node
  if (sinceRequestMs < OUTCOME_LIMITS.endMs || isRunning) return NOT_ENDED
  if (shard.leader !== null)
    return { end: 'no-change', message: `Nothing changed after ${OUTCOME_LIMITS.endMs / 1000} s: ${evidence}` }
  return {
    end: 'unconfirmed',
    message: 'Not confirmed. The cluster may still do this; it is watched for 10 more minutes.',
  }
}

/** Why it failed according to the nodes; undefined when they report no failure. */
function failedChange(
  before: ShardView['lastChange'],
  shard: ShardView,
  kind: string,
  node: string,
): string | undefined {
  const last = shard.lastChange
  if (last?.kind !== kind || last.node !== node || last.result !== 'failed') return undefined
  return before?.at === last.at ? undefined : last.reason
}

function timeOf(text: string | null, otherwise: number): number {
  return text === null ? otherwise : Date.parse(text)
}
