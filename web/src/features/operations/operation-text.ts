/** An operation as text. Apart from operation-view.ts, which the shell loads. Pure. */

import type { Operation } from '@vacancy/shared/contract'
import { duration } from '../../lib/format.ts'
import * as copy from './copy.ts'
import { states } from './tray-copy.ts'

const STEP_MARKS: Record<Operation['steps'][number]['state'], string> = {
  waiting: '.',
  running: '>',
  done: '✓',
  failed: '×',
  skipped: '-',
}

/** An operation as plain text, for a ticket. */
export function operationText(operation: Operation): string {
  const head = [
    `${operation.title} (${operation.id})`,
    copy.operation.startedBy(operation.by, operation.createdAt, operation.reason),
  ]
  const steps = operation.steps.map((step) => {
    const time = step.milliseconds === null ? '' : `  ${duration(step.milliseconds)}`
    const evidence = step.evidence === '' ? '' : `  ${step.evidence}`
    return ` ${STEP_MARKS[step.state]} ${step.text}${time}${evidence}`
  })
  const tail = [`${states[operation.state]}: ${operation.message}`, timesText(operation)]
  const answer = operation.answer === '' ? [] : [`${copy.operation.response} ${operation.answer}`]
  return [...head, ...steps, ...tail.filter((line) => line !== ''), ...answer].join('\n')
}

/** "Writes paused for about 130 ms (estimate 180 ms). Times are accurate to ± 50 ms." */
export function timesText(operation: Operation): string {
  const uncertainty = operation.uncertaintyMs > 0 ? copy.operation.uncertainty(duration(operation.uncertaintyMs)) : ''
  if (operation.pauseMs === null) return uncertainty
  const estimate = operation.expectedPauseMs === null ? undefined : duration(operation.expectedPauseMs)
  return [copy.operation.pause(duration(operation.pauseMs), estimate), uncertainty].filter(Boolean).join(' ')
}
