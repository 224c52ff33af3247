import { expect, test } from 'vitest'
import { outcomeOf, outcomesOf } from './submission.ts'

const jobs = (...ids: string[]) => ids.map((id) => ({ id, isRepeated: false }))

test('an id that occurs twice in a request is a duplicate the second time, or both times when it was known', () => {
  expect(outcomesOf(jobs('a', 'a'), ['a'])).toEqual(['accepted', 'duplicate'])
  expect(outcomesOf(jobs('a', 'a'), ['a', 'a'])).toEqual(['duplicate', 'duplicate'])
})

test('when more ids were known than are listed, jobs are stored by this request or before', () => {
  const body = JSON.stringify({ status: 'success', topic: 't', accepted: 0, duplicates: 2, duplicateIds: ['a'] })

  expect(outcomeOf(200, body, 2, undefined)).toEqual({ kind: 'stored', duplicateIds: undefined })
  expect(outcomesOf(jobs('a', 'b'), undefined)).toEqual(['stored', 'stored'])
})

test('a refusal names the time to wait in its body or in its header', () => {
  const body = JSON.stringify({ error: 'queue_full', message: 'full', retryAfterMs: 70 })

  expect(outcomeOf(429, body, 1, 1_000)).toMatchObject({ kind: 'repeat', waitMs: 70, inDoubt: false })
  expect(outcomeOf(429, '', 1, 1_000)).toMatchObject({ kind: 'repeat', code: 'http_429', waitMs: 1_000 })
})

test('failures without a place in the request are ignored', () => {
  const failures = [{ index: 9, id: 'x', reason: 'invalid_id' }, { id: 'y' }]
  const body = JSON.stringify({ error: 'invalid_request', message: 'm', failures })

  expect(outcomeOf(400, body, 1, undefined)).toEqual({
    kind: 'refused',
    code: 'invalid_request',
    message: 'm',
    maySplit: true,
  })
})
