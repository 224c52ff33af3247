import { expect, test } from 'vitest'
import { endedChildrenOf, secondsOf } from './process-time.ts'

test('user and kernel time are added up, whatever the process calls itself', () => {
  const rest = 'S 1 100 100 0 -1 4194304 5000 0 3 0 1234 66 250 50 20 0 12 0 999 1000000 2000'

  expect(secondsOf(`100 (node) ${rest}`)).toBe(13)
  expect(secondsOf(`100 (a (strange) name) ${rest}`)).toBe(13)
  expect(endedChildrenOf(`100 (node) ${rest}`)).toBe(3)
})
