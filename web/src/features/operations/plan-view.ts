/**
 * What the plan dialog makes of a plan: how much it asks for, why its button does nothing, what changed
 * (docs/design/control-plane.md#plan).
 */

import type { Plan } from '@vacancy/shared/contract'

const REASON_CHARACTERS_MIN = 8
export const REASON_CHARACTERS_MAX = 500

export type Confirming = { readonly reason: string; readonly typed: string }

/** What the plan asks to be filled in. The control plane decides `confirm`; a development cluster asks no reason. */
export function asksFor(plan: Plan): { readonly reason: boolean; readonly typed: boolean } {
  return { reason: plan.confirm >= 2 && plan.environment.kind !== 'development', typed: plan.confirm === 3 }
}

/**
 * Why the plan cannot be run as things are, in a sentence; '' when it can. What a person can mend comes last.
 *
 * @param heldBy why nothing at all can be done now: the role, or being cut off
 */
export function whyNot(plan: Plan, confirming: Confirming, heldBy: string): string {
  if (heldBy !== '') return heldBy
  const blocks = plan.checks.filter((check) => check.level === 'block')
  if (plan.blocked || blocks.length > 0) {
    return blocks.length > 0 ? `Blocked: ${blocks.map((check) => check.text).join('; ')}.` : 'Blocked.'
  }
  const asked = asksFor(plan)
  if (asked.typed && confirming.typed.trim() !== plan.confirmText) return `Type ${plan.confirmText} to go on.`
  if (asked.reason && confirming.reason.trim().length < REASON_CHARACTERS_MIN) {
    return `Give a reason of at least ${REASON_CHARACTERS_MIN} characters.`
  }
  return ''
}

/**
 * What changed between two plans for the same thing, as sentences. Numbers that move all the time (a lag of 3 that
 * becomes 4) are drawn but are no news.
 */
export function planChanges(before: Plan, after: Plan): string[] {
  const changes: string[] = []
  const { basis: was } = before
  const { basis: is } = after
  if (was.leader !== is.leader)
    changes.push(`The leader was ${was.leader ?? 'nobody'} and is now ${is.leader ?? 'nobody'}.`)
  else if (was.term !== is.term)
    changes.push(`The term was ${was.term ?? 'not told'} and is now ${is.term ?? 'not told'}.`)
  if (was.peersHash !== is.peersHash) changes.push(membersChanged(before, after))
  const levels = new Map(before.checks.map((check) => [check.id, check.level]))
  for (const check of after.checks) {
    const level = levels.get(check.id)
    if (level === check.level || (level === undefined && check.level === 'ok')) continue
    changes.push(`${LEVEL_SAYS[check.level]}: ${check.text}.`)
  }
  return changes
}

export const LEVEL_SAYS: Record<Plan['checks'][number]['level'], string> = {
  ok: 'Passed',
  info: 'Note',
  warn: 'Warning',
  block: 'Blocked',
}

function membersChanged(before: Plan, after: Plan): string {
  const roles = new Map(before.before.nodes.map((node) => [node.node, node.role]))
  const moved = after.before.nodes
    .filter((node) => roles.get(node.node) !== node.role)
    .map((node) => `${node.node} is ${roles.has(node.node) ? 'now' : 'new as'} ${node.role}`)
  const left = before.before.nodes
    .filter((node) => !after.before.nodes.some((other) => other.node === node.node))
    .map((node) => `${node.node} is gone`)
  return `Members changed: ${[...moved, ...left].join(', ') || 'voters are not the same'}.`
}

/** "can lose 1", for a picture. */
export function spareSays(spare: number): string {
  if (spare < 0) return 'no majority'
  return spare === 0 ? 'cannot lose another' : `can lose ${spare}`
}
