import { expect, test } from 'vitest'
import { faultOf } from './check-subjects.mjs'

test.each([
  ['x'.repeat(60), undefined],
  ['é'.repeat(60), undefined],
  ['x'.repeat(61), `abc1234 ${'x'.repeat(61)}: more than 60 characters`],
  ['engine: do this; docs: and that', 'abc1234 engine: do this; docs: and that: more than one idea'],
])('the subject "%s"', (subject, fault) => {
  expect(faultOf(`abc1234 ${subject}`)).toBe(fault)
})
