/** An operation in words: what its state means, what may be done next, what is announced, and all of it as text. */

import type { Level, Operation, OperationState, PlanRequest } from '@vacancy/shared/contract'

type StateWords = {
  readonly word: string
  readonly level: Level
  /** What it means for who started it. */
  readonly means: string
}

export const OPERATION_WORDS: Record<OperationState, StateWords> = {
  armed: { word: 'Armed', level: 'info', means: 'Nothing was sent yet. It begins by itself once its condition holds.' },
  requested: { word: 'Requested', level: 'info', means: 'The request is on its way to the leader.' },
  accepted: { word: 'Accepted', level: 'info', means: 'The cluster took it on. That is not yet the result.' },
  verifying: { word: 'Verifying', level: 'info', means: 'Waiting until a majority of the voters shows the result.' },
  done: { word: 'Done', level: 'ok', means: 'A majority of the voters shows the result.' },
  elsewhere: {
    word: 'Went elsewhere',
    level: 'warn',
    means: 'The cluster changed, but to another node than asked for.',
  },
  'no-change': { word: 'No change', level: 'warn', means: 'Nothing moved: the shard is as it was before.' },
  refused: { word: 'Refused', level: 'crit', means: 'The cluster refused it. Nothing was changed.' },
  unconfirmed: {
    word: 'Unconfirmed',
    level: 'unk',
    means: 'That is not the same as failed.',
  },
  cancelled: { word: 'Cancelled', level: 'unk', means: 'It was cancelled before anything was sent.' },
}

/** Whether it is still to end. */
export function isRunning(operation: Operation): boolean {
  return operation.endedAt === null && (OPERATION_WORDS[operation.state].level === 'info' || operation.cancellable)
}

/** The same plan once more, for what did not get where it should. */
export function planAgain(operation: Operation): PlanRequest | undefined {
  const again: readonly OperationState[] = ['elsewhere', 'no-change', 'refused', 'unconfirmed', 'cancelled']
  if (!again.includes(operation.state) || operation.node === null) return undefined
  return { kind: operation.kind, shard: operation.shard, node: operation.node }
}

/** The step that an operation is at, for one line. */
export function currentStep(operation: Operation): string {
  if (!isRunning(operation)) return operation.message
  if (operation.notice !== '') return operation.notice
  return operation.steps.find((step) => step.state === 'running')?.text ?? operation.message
}

/**
 * What one polite live region says of an operation: that it began, that it takes longer than usual, how it ended.
 * Steps in between are drawn and not spoken.
 */
export function announcementOf(before: Operation | undefined, after: Operation): string {
  if (!before) return isRunning(after) ? `${after.title}: started.` : ''
  if (before.state !== after.state && !isRunning(after)) {
    return `${after.title}: ${OPERATION_WORDS[after.state].word}. ${after.message}`
  }
  return before.notice === '' && after.notice !== '' ? `${after.title}: ${after.notice}` : ''
}

const STEP_MARKS: Record<Operation['steps'][number]['state'], string> = {
  waiting: '.',
  running: '>',
  done: '✓',
  failed: '×',
  skipped: '-',
}

/** Everything known of an operation as plain text, for a ticket. */
export function operationText(operation: Operation): string {
  const head = [
    `${operation.title} (${operation.id})`,
    `by ${operation.by}, ${operation.createdAt}${operation.reason === '' ? '' : `, reason: ${operation.reason}`}`,
  ]
  const steps = operation.steps.map((step) => {
    const time = step.milliseconds === null ? '' : `  ${Math.round(step.milliseconds)} ms`
    const evidence = step.evidence === '' ? '' : `  ${step.evidence}`
    return ` ${STEP_MARKS[step.state]} ${step.text}${time}${evidence}`
  })
  const tail = [`${OPERATION_WORDS[operation.state].word}: ${operation.message}`, timesSay(operation)]
  const answer = operation.answer === '' ? [] : [`Answer of the cluster: ${operation.answer}`]
  return [...head, ...steps, ...tail.filter((line) => line !== ''), ...answer].join('\n')
}

/** "± 50 ms. Writes paused about 130 ms (estimate 180 ms)." with what is known of it. */
export function timesSay(operation: Operation): string {
  const uncertain =
    operation.uncertaintyMs > 0 ? `Times are uncertain by ± ${Math.round(operation.uncertaintyMs)} ms.` : ''
  if (operation.pauseMs === null) return uncertain
  const estimate = operation.expectedPauseMs === null ? '' : ` (estimate ${Math.round(operation.expectedPauseMs)} ms)`
  return [`Writes paused about ${Math.round(operation.pauseMs)} ms${estimate}.`, uncertain].filter(Boolean).join(' ')
}
