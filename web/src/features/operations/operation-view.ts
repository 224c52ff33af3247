/** Derived data of an operation: next step, announcement, plain text. Pure. */

import type { Level, Operation, OperationState, PlanRequest } from '@vacancy/shared/contract'
import * as copy from './tray-copy.ts'

export const STATE_LEVELS: Record<OperationState, Level> = {
  armed: 'info',
  requested: 'info',
  accepted: 'info',
  verifying: 'info',
  done: 'ok',
  elsewhere: 'warn',
  'no-change': 'warn',
  refused: 'crit',
  stopped: 'warn',
  unconfirmed: 'unk',
  cancelled: 'unk',
}

/** Whether the operation has not ended yet. */
export function isRunning(operation: Operation): boolean {
  return operation.endedAt === null && (STATE_LEVELS[operation.state] === 'info' || operation.cancellable)
}

/** The same plan again, for operations without the wanted result; of one that was stopped on the way the rest of it. */
export function planAgain(operation: Operation): PlanRequest | undefined {
  if (operation.rest) return operation.rest
  const again: readonly OperationState[] = ['elsewhere', 'no-change', 'refused', 'unconfirmed', 'cancelled']
  if (!again.includes(operation.state) || operation.node === null) return undefined
  return { kind: operation.kind, shard: operation.shard, node: operation.node }
}

/** The current step in one line. */
export function currentStep(operation: Operation): string {
  if (!isRunning(operation)) return operation.message
  if (operation.notice !== '') return operation.notice
  return operation.steps.find((step) => step.state === 'running')?.text ?? operation.message
}

/**
 * The announcement after a change of an operation: start, longer than usual, and end. Steps are not announced.
 */
export function announcementOf(before: Operation | undefined, after: Operation): string {
  if (!before) return isRunning(after) ? copy.tray.started(after.title) : ''
  if (before.state !== after.state && !isRunning(after)) {
    return copy.tray.ended(after.title, copy.states[after.state], after.message)
  }
  return before.notice === '' && after.notice !== '' ? copy.tray.notice(after.title, after.notice) : ''
}
