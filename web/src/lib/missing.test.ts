import { expect, test } from 'vitest'
import { missingSays } from './missing.ts'

const sources = (...names: string[]) => names.map((source) => ({ source }))

test.each([
  [['s1/n1'], 4, '1 of 4 nodes did not answer'],
  [['registry http://127.0.0.1:7000', 's1/n1'], 4, '1 of 4 nodes and 1 other source did not answer'],
  [['s1/n1 /metrics', 's1/n1 /status', 's1/n2'], 4, '1 of 4 nodes and 2 other sources did not answer'],
  [['registry http://127.0.0.1:7000'], 4, '1 source did not answer'],
  [['s1/n1', 's1/n2', 's1/n3', 's1/n4', 'registry x'], 4, '4 of 4 nodes and 1 other source did not answer'],
  [['s1/n1'], undefined, '1 node did not answer'],
])('the registry and single paths used to be counted as nodes: %j of %s', (names, nodes, says) => {
  expect(missingSays(sources(...names), nodes)).toBe(says)
})
