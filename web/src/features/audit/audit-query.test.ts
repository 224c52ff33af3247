import { expect, test } from 'vitest'
import { auditQuery } from './audit-query.ts'

const none = { actor: '', action: '', target: '', from: '', to: '' }

test('an empty filter has no parameters', () => {
  expect(auditQuery(none)).toEqual({})
})

test('days are whole days in UTC, invalid days are ignored', () => {
  expect(auditQuery({ ...none, actor: 'ana', from: '2026-11-20', to: '2026-11-20' })).toEqual({
    actor: 'ana',
    from: '2026-11-20T00:00:00.000Z',
    to: '2026-11-20T23:59:59.999Z',
  })
  expect(auditQuery({ ...none, from: 'yesterday' })).toEqual({})
})
