import { expect, test } from 'vitest'
import { outcomeOf, planChanges, requiredInput, sortChecks, spareText, whyNot } from './plan-view.ts'
import { planOf } from './testing/operations.ts'

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

test('a new term with the same leader counts', () => {
  const after = planOf({ basis: { leader: 'n1', term: 43, peersHash: 'a' } })

  expect(planChanges(planOf(), after)).toEqual(['The term was 41 and is now 43.'])
})

test('spare voters as text', () => {
  expect([-1, 0, 1, 2].map(spareText)).toEqual(['no majority', 'cannot lose another', 'can lose 1', 'can lose 2'])
})
