import { OPERATION_STATES, type PlanRequest } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { operationText } from './operation-text.ts'
import { announcementOf, currentStep, isRunning, planAgain } from './operation-view.ts'
import { formatPlanLink, parsePlanLink } from './plan-link.ts'
import { isOnlyFound, outcomeOf, planChanges, requiredInput, sortChecks, spareText, whyNot } from './plan-view.ts'
import { operationOf, planOf } from './testing/operations.ts'
import { states } from './tray-copy.ts'

const nothing = { reason: '', typed: '' }

test('a plan without warnings requires only the button', () => {
  expect(requiredInput(planOf())).toEqual({ reason: false, typed: false })
  expect(whyNot(planOf(), nothing, '')).toBe('')
})

test('a warning requires a reason of eight characters besides spaces', () => {
  const plan = planOf({ confirm: 2 })

  expect(whyNot(plan, nothing, '')).toContain('reason of at least 8')
  expect(whyNot(plan, { reason: '   short   ', typed: '' }, '')).toContain('reason')
  expect(whyNot(plan, { reason: 'memory swap', typed: '' }, '')).toBe('')
})

test('the highest level requires the exact id and a reason', () => {
  const plan = planOf({ confirm: 3 })

  expect(whyNot(plan, { reason: 'memory swap', typed: 'S3' }, '')).toBe('Type s3 to continue.')
  expect(whyNot(plan, { reason: '', typed: 's3' }, '')).toContain('reason')
  expect(whyNot(plan, { reason: 'memory swap', typed: ' s3 ' }, '')).toBe('')
})

test('a development environment requires no reason', () => {
  const plan = planOf({ confirm: 2, environment: { label: 'DEVELOPMENT', kind: 'development' } })

  expect(requiredInput(plan).reason).toBe(false)
  expect(whyNot(plan, nothing, '')).toBe('')
})

test('the outcome is one sentence, with the pause of writes where it is known', () => {
  const { before } = planOf()
  const demoted = { ...before, voters: 2, majority: 2, spare: 0 }

  expect(outcomeOf(planOf())).toBe('n3 leads s3 instead of n1.')
  expect(outcomeOf(planOf({ writePause: { expected: 180, worst: 420, source: 'here' } }))).toMatch(
    /^n3 leads s3 instead of n1\. Writes pause for about 180.ms, at worst 420.ms\.$/,
  )
  expect(outcomeOf(planOf({ kind: 'promote', node: 'n4', after: { ...before, voters: 4 } }))).toBe(
    'n4 becomes a voter: s3 then has 4 voters and can lose 1.',
  )
  expect(outcomeOf(planOf({ kind: 'demote', node: 'n2', after: demoted }))).toBe(
    'n2 becomes a learner: s3 then has 2 voters and cannot lose another.',
  )
  expect(outcomeOf(planOf({ kind: 'transfer-then-demote', node: 'n1', after: { ...demoted, leader: 'n2' } }))).toBe(
    'n2 leads s3, then n1 becomes a learner: 2 voters remain, the shard cannot lose another.',
  )
})

test('failed checks come first, passed ones apart', () => {
  const check = (id: string, level: 'ok' | 'info' | 'warn' | 'block') => ({ id, level, text: id })
  const { open, passed } = sortChecks([check('a', 'ok'), check('b', 'info'), check('c', 'warn'), check('d', 'block')])

  expect(open.map(({ id }) => id)).toEqual(['d', 'c', 'b'])
  expect(passed.map(({ id }) => id)).toEqual(['a'])
})

test('a blocked plan names the check, with any input', () => {
  const plan = planOf({ blocked: true, checks: [{ id: 'voter', level: 'block', text: 'n3 is a learner' }] })

  expect(whyNot(plan, { reason: 'memory swap', typed: 's3' }, '')).toBe('Blocked: n3 is a learner.')
})

test('a blocked plan promises no outcome, and counts its reasons where they are listed already', () => {
  const checks = ['n3 is a learner', 'n3 does not respond'].map((text, at) => ({
    ...{ id: `c${at}`, level: 'block' as const, text },
  }))

  expect(outcomeOf(planOf({ checks }))).toBe('Not possible now, for these reasons:')
  expect(whyNot(planOf({ checks }), nothing, '')).toBe('Blocked by 2 checks.')
})

test('role and connection come before missing input', () => {
  const plan = planOf({ confirm: 2 })

  expect(whyNot(plan, nothing, 'Needs the admin role')).toBe('Needs the admin role')
  expect(whyNot(planOf({ blocked: true }), nothing, 'Disconnected')).toBe('Disconnected')
})

test('leader, members and check levels count as changes', () => {
  const after = planOf({
    basis: { leader: 'n2', term: 42, peersHash: 'b' },
    before: {
      ...planOf().before,
      nodes: [
        { node: 'n1', role: 'follower', level: 'ok', message: '' },
        { node: 'n3', role: 'follower', level: 'ok', message: '' },
        { node: 'n4', role: 'learner', level: 'ok', message: '' },
      ],
    },
    checks: [
      { id: 'one-leader', level: 'ok', text: 'one leader, seen by 3 of 3' },
      { id: 'lag', level: 'warn', text: 'lag 1,400' },
      { id: 'cores', level: 'ok', text: 'as many cores' },
    ],
  })

  expect(planChanges(planOf(), after)).toEqual([
    'The leader was n1 and is now n2.',
    'Members changed: n1 is now follower, n4 was added as learner, n2 was removed.',
    'Warning: lag 1,400.',
  ])
})

test('a lag that changes within its check does not count', () => {
  const after = planOf({ checks: [{ id: 'lag', level: 'ok', text: 'lag 7' }] })

  expect(planChanges(planOf(), after)).toEqual([])
})

test('what checks found later is another plan of the same cluster', () => {
  const { basis } = planOf()
  const found = planOf({
    basis: { ...basis, found: 'old' },
    checks: [{ id: 'golden', level: 'warn', text: '1 of 3 golden searches lose their results' }],
  })

  expect(isOnlyFound(planOf(), found)).toBe(true)
  expect(isOnlyFound(planOf(), planOf({ basis: { ...basis, term: 43, found: 'old' } }))).toBe(false)
  expect(planChanges(planOf(), found)).toEqual(['Warning: 1 of 3 golden searches lose their results.'])
})

test('a new term with the same leader counts', () => {
  const after = planOf({ basis: { leader: 'n1', term: 43, peersHash: 'a' } })

  expect(planChanges(planOf(), after)).toEqual(['The term was 41 and is now 43.'])
})

test('spare voters as text', () => {
  expect([-1, 0, 1, 2].map(spareText)).toEqual(['no majority', 'cannot lose another', 'can lose 1', 'can lose 2'])
})

const cases: [string, PlanRequest][] = [
  ['transfer:s3:n3', { kind: 'transfer', shard: 's3', node: 'n3' }],
  ['transfer:s3', { kind: 'transfer', shard: 's3' }],
  ['transfer:s3:n3:wait', { kind: 'transfer', shard: 's3', node: 'n3', waitForLag: true }],
  ['promote:s3:n4', { kind: 'promote', shard: 's3', node: 'n4' }],
  ['demote:s3:n2', { kind: 'demote', shard: 's3', node: 'n2' }],
  ['transfer-then-demote:s3:n1', { kind: 'transfer-then-demote', shard: 's3', node: 'n1' }],
  ['replace-voter:s3:n1', { kind: 'replace-voter', shard: 's3', node: 'n1' }],
  ['replace-voter:s3:n1:n4', { kind: 'replace-voter', shard: 's3', node: 'n1', replacement: 'n4' }],
  ['install:s3:8f3a', { kind: 'install', shard: 's3', snapshot: '8f3a' }],
  ['undo-install:s3', { kind: 'undo-install', shard: 's3' }],
]

test.each(cases)('%s is a plan, both ways', (link, request) => {
  expect(parsePlanLink(link)).toEqual(request)
  expect(formatPlanLink(request)).toBe(link)
})

test.each([
  '',
  'transfer',
  'transfer:',
  'promote:s3',
  'undo-install:s3:n1',
  'promote:s3:n4:wait',
  'replace-voter:s3',
  'replace-voter:s3:n1:',
  'transfer:s3:n3:now',
  'transfer:s3:n3:wait:x',
  'constructor:s3:n3',
  'drop-table:s3:n3',
  `transfer:${'s'.repeat(129)}:n1`,
])('%j is invalid', (link) => {
  expect(parsePlanLink(link)).toBeUndefined()
})

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
  const rest = { kind: 'demote', shard: 's3', node: 'n1' } as const
  expect(planAgain(operationOf({ state: 'stopped', kind: 'replace-voter', rest }))).toEqual(rest)
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
