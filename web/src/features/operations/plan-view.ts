/**
 * Derived data of the plan dialog: required input, why its button is disabled, changes
 * (docs/design/control-plane.md#plan).
 */

import type { Plan } from '@vacancy/shared/contract'
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
  const blocks = plan.checks.filter((check) => check.level === 'block')
  if (plan.blocked || blocks.length > 0) {
    return blocks.length > 0 ? copy.plan.blockedBy(blocks.map((check) => check.text).join('; ')) : copy.plan.blocked
  }
  const required = requiredInput(plan)
  if (required.typed && confirming.typed.trim() !== plan.confirmText) return copy.plan.typeToContinue(plan.confirmText)
  if (required.reason && confirming.reason.trim().length < REASON_CHARACTERS_MIN) {
    return copy.plan.reasonTooShort(REASON_CHARACTERS_MIN)
  }
  return ''
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
