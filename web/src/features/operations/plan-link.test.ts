import type { PlanRequest } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { formatPlanLink, parsePlanLink } from './plan-link.ts'

const cases: [string, PlanRequest][] = [
  ['transfer:s3:n3', { kind: 'transfer', shard: 's3', node: 'n3' }],
  ['transfer:s3', { kind: 'transfer', shard: 's3' }],
  ['transfer:s3:n3:wait', { kind: 'transfer', shard: 's3', node: 'n3', waitForLag: true }],
  ['promote:s3:n4', { kind: 'promote', shard: 's3', node: 'n4' }],
  ['demote:s3:n2', { kind: 'demote', shard: 's3', node: 'n2' }],
  ['transfer-then-demote:s3:n1', { kind: 'transfer-then-demote', shard: 's3', node: 'n1' }],
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
  'transfer:s3:n3:now',
  'transfer:s3:n3:wait:x',
  'constructor:s3:n3',
  'drop-table:s3:n3',
  `transfer:${'s'.repeat(129)}:n1`,
])('%j is invalid', (link) => {
  expect(parsePlanLink(link)).toBeUndefined()
})
