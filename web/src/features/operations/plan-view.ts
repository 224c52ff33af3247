/**
 * Derived data of the plan dialog: required input, why its button is disabled, changes
 * (docs/design/control-plane.md#plan).
 */

import type { Plan } from '@vacancy/shared/contract'
import { duration, shortCount } from '../../lib/format.ts'
import * as copy from './plan-copy.ts'

const REASON_CHARACTERS_MIN = 8
export const REASON_CHARACTERS_MAX = 500

export type Confirming = { readonly reason: string; readonly typed: string }

/** The input that a plan requires, by its `confirm` level. Development environments require no reason. */
export function requiredInput(plan: Plan): { readonly reason: boolean; readonly typed: boolean } {
  return { reason: plan.confirm >= 2 && plan.environment.kind !== 'development', typed: plan.confirm === 3 }
}

/**
 * Why the plan cannot run now; '' when it can. Missing input comes last.
 *
 * @param unavailable why no action is available: the role, or the connection
 */
export function whyNot(plan: Plan, confirming: Confirming, unavailable: string): string {
  if (unavailable !== '') return unavailable
  if (isBlocked(plan)) {
    const blocks = plan.checks.filter((check) => check.level === 'block').map((check) => check.text)
    return blocks.length > 0 ? copy.plan.blockedBy(blocks) : copy.plan.blocked
  }
  const required = requiredInput(plan)
  if (required.typed && confirming.typed.trim() !== plan.confirmText) return copy.plan.typeToContinue(plan.confirmText)
  if (required.reason && confirming.reason.trim().length < REASON_CHARACTERS_MIN) {
    return copy.plan.reasonTooShort(REASON_CHARACTERS_MIN)
  }
  return ''
}

/** Whether a check forbids the plan. */
export function isBlocked({ blocked, checks }: Plan): boolean {
  return blocked || checks.some((check) => check.level === 'block')
}

/** The outcome of the plan, in one sentence. */
export function outcomeOf(plan: Plan): string {
  if (isBlocked(plan)) return copy.outcome.blocked
  const { before, after, node, shard } = plan
  const name = node ?? ''
  const spare = spareText(after.spare)
  switch (plan.kind) {
    case 'transfer':
      return copy.outcome.transfer(shard, before.leader, after.leader ?? name, pauseText(plan))
    case 'promote':
      return copy.outcome.promote(name, shard, after.voters, spare)
    case 'demote':
      return copy.outcome.demote(name, shard, after.voters, spare)
    case 'transfer-then-demote':
      return copy.outcome.transferThenDemote(name, shard, after.leader, after.voters, spare)
    case 'replace-voter':
      return copy.outcome.replaceVoter(replacementOf(plan), name, after.voters, spare)
    case 'install':
    case 'undo-install':
      return copy.outcome.install(shard, after.data ? shortCount(after.data.packages) : undefined)
  }
}

/** The learner that takes the place of a voter; '' for another kind of plan. */
export function replacementOf({ changes }: Plan): string {
  return changes?.find(({ kind }) => kind === 'promote')?.node ?? ''
}

function pauseText({ writePause }: Plan): string {
  return writePause === null ? '' : copy.outcome.pause(duration(writePause.expected), duration(writePause.worst))
}

/** Failed checks first, then warnings and notes; passed ones apart. */
export function sortChecks(checks: Plan['checks']): { readonly open: Plan['checks']; readonly passed: Plan['checks'] } {
  const weights = { block: 0, warn: 1, info: 2, ok: 3 } as const
  const open = checks.filter(({ level }) => level !== 'ok')
  return {
    open: open.toSorted((a, b) => weights[a.level] - weights[b.level]),
    passed: checks.filter(({ level }) => level === 'ok'),
  }
}

/**
 * Changes between two plans of the same request, as sentences. Fluctuating numbers, such as a lag of 3 that becomes 4, do
 * not count.
 */
export function planChanges(before: Plan, after: Plan): string[] {
  const changes: string[] = []
  const { basis: was } = before
  const { basis: is } = after
  if (was.leader !== is.leader) changes.push(copy.plan.leaderChanged(was.leader, is.leader))
  else if (was.term !== is.term) changes.push(copy.plan.termChanged(was.term, is.term))
  if (was.peersHash !== is.peersHash) changes.push(membersChanged(before, after))
  const levels = new Map(before.checks.map((check) => [check.id, check.level]))
  for (const check of after.checks) {
    const level = levels.get(check.id)
    if (level === check.level || (level === undefined && check.level === 'ok')) continue
    changes.push(`${copy.plan.levels[check.level]}: ${check.text}.`)
  }
  return changes
}

/** Whether the checks of a plan found something new, and the cluster is as it was. */
export function isOnlyFound({ basis: was }: Plan, { basis: is }: Plan): boolean {
  return was.leader === is.leader && was.term === is.term && was.peersHash === is.peersHash && was.found !== is.found
}

function membersChanged(before: Plan, after: Plan): string {
  const roles = new Map(before.before.nodes.map((node) => [node.node, node.role]))
  const moved = after.before.nodes
    .filter((node) => roles.get(node.node) !== node.role)
    .map(({ node, role }) => (roles.has(node) ? copy.plan.roleChanged(node, role) : copy.plan.memberAdded(node, role)))
  const left = before.before.nodes
    .filter((node) => !after.before.nodes.some((other) => other.node === node.node))
    .map(({ node }) => copy.plan.memberRemoved(node))
  return copy.plan.membersChanged([...moved, ...left].join(', ') || copy.plan.votersChanged)
}

/** "can lose 1". */
export function spareText(spare: number): string {
  if (spare < 0) return copy.plan.noMajority
  return spare === 0 ? copy.plan.cannotLose : copy.plan.canLose(spare)
}
