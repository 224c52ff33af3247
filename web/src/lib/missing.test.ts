import { expect, test } from 'vitest'
import { missingText } from './missing.ts'

const sources = (...names: string[]) => names.map((source) => ({ source }))

test.each([
  [['s1/n1'], 4, '1 of 4 nodes did not respond'],
  [['registry http://127.0.0.1:7000', 's1/n1'], 4, '1 of 4 nodes and 1 other source did not respond'],
  [['s1/n1 /metrics', 's1/n1 /status', 's1/n2'], 4, '1 of 4 nodes and 2 other sources did not respond'],
  [['registry http://127.0.0.1:7000'], 4, '1 source did not respond'],
  [['s1/n1', 's1/n2', 's1/n3', 's1/n4', 'registry x'], 4, '4 of 4 nodes and 1 other source did not respond'],
  [['s1/n1'], undefined, '1 node did not respond'],
])('registry and single paths are not counted as nodes: %j of %s', (names, nodes, text) => {
  expect(missingText(sources(...names), nodes)).toBe(text)
})
