import { OPERATION_STATES } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { operationText } from './operation-text.ts'
import { announcementOf, currentStep, isRunning, planAgain } from './operation-view.ts'
import { operationOf } from './testing/operations.ts'
import { states } from './tray-copy.ts'

const ENDED = '2026-11-20T18:30:31.000Z'

test('every state has its own label', () => {
  const labels = OPERATION_STATES.map((state) => states[state])

  expect(new Set(labels).size).toBe(OPERATION_STATES.length)
})

test('an operation runs until it ends, and "accepted" is not the end', () => {
  expect(OPERATION_STATES.filter((state) => isRunning(operationOf({ state })))).toEqual([
    'armed',
    'requested',
    'accepted',
    'verifying',
  ])
  expect(isRunning(operationOf({ state: 'done', endedAt: ENDED }))).toBe(false)
})

test('operations without the wanted result can be planned again', () => {
  const again = OPERATION_STATES.filter((state) => planAgain(operationOf({ state, endedAt: ENDED })))

  expect(again).toEqual(['elsewhere', 'no-change', 'refused', 'unconfirmed', 'cancelled'])
  expect(planAgain(operationOf({ state: 'elsewhere' }))).toEqual({ kind: 'transfer', shard: 's3', node: 'n3' })
  expect(planAgain(operationOf({ state: 'cancelled', kind: 'install', node: null }))).toBeUndefined()
})

test('the current line is the step, then the notice, then the outcome', () => {
  expect(currentStep(operationOf())).toBe('n3 leads')
  expect(currentStep(operationOf({ notice: 'Longer than usual' }))).toBe('Longer than usual')
  expect(
    currentStep(operationOf({ state: 'done', message: 'n3 leads', notice: 'Longer than usual', endedAt: ENDED })),
  ).toBe('n3 leads')
})

test('start, longer than usual and end are announced, steps are not', () => {
  const running = operationOf({ state: 'accepted' })
  const slow = operationOf({ state: 'verifying', notice: 'Longer than usual' })
  const done = operationOf({ state: 'done', message: 'n3 leads s3', endedAt: ENDED })

  expect(announcementOf(undefined, running)).toBe('Transfer leadership of s3 to n3: started.')
  expect(announcementOf(running, operationOf({ state: 'verifying' }))).toBe('')
  expect(announcementOf(running, slow)).toBe('Transfer leadership of s3 to n3: Longer than usual')
  expect(announcementOf(slow, slow)).toBe('')
  expect(announcementOf(slow, done)).toBe('Transfer leadership of s3 to n3: Done. n3 leads s3')
  expect(announcementOf(undefined, done)).toBe('')
})

test('the text of an operation has its steps, times and the exact response', () => {
  const text = operationText(
    operationOf({ state: 'done', message: 'Done in 232 ms', pauseMs: 130, expectedPauseMs: 180, endedAt: ENDED }),
  )

  expect(text.split('\n')).toEqual([
    'Transfer leadership of s3 to n3 (op_1)',
    'by ana, 2026-11-20T18:30:00.000Z, reason: n1 gets new memory',
    ' ✓ Requested  0 ms',
    ' ✓ Accepted  14 ms  n1 answered "transfer in progress"',
    ' > n3 leads',
    'Done: Done in 232 ms',
    'Writes paused for about 130 ms (estimate 180 ms). Times are accurate to ± 50 ms.',
    'Response of the cluster: transfer in progress',
  ])
})
