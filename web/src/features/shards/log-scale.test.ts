import { expect, test } from 'vitest'
import { logBarOf, logBarText, logScaleOf } from './log-scale.ts'
import { nodeOf } from './testing/shards.ts'

const leader = nodeOf({ id: 'n1', role: 'leader', firstIndex: 1_000, lastIndex: 2_000, commitIndex: 1_900 })
const scale = { first: 1_000, last: 2_000 }

test('the scale is the log of the leader', () => {
  const ahead = nodeOf({ id: 'n2', firstIndex: 1, lastIndex: 9_999 })

  expect(logScaleOf([leader, ahead], 'n1')).toEqual(scale)
})

test('without a leader the scale spans all nodes, and there is none without reports', () => {
  const other = nodeOf({ id: 'n2', firstIndex: 1_500, lastIndex: 2_400 })
  const silent = nodeOf({ id: 'n3', firstIndex: null, lastIndex: null })

  expect(logScaleOf([leader, other, silent], null)).toEqual({ first: 1_000, last: 2_400 })
  expect(logScaleOf([silent], null)).toBeUndefined()
})

test('the bar of the leader has a committed and an uncommitted part', () => {
  expect(logBarOf(leader, scale)).toEqual({
    committedTo: 0.9,
    uncommittedTo: 1,
    missing: 0,
    needsSnapshot: false,
    position: 2_000,
  })
})

test('the bar of a follower ends at its match index', () => {
  const node = nodeOf({ id: 'n2', lastIndex: 2_000, matchIndex: 1_500, commitIndex: 1_400 })

  expect(logBarOf(node, scale)).toMatchObject({ committedTo: 0.4, uncommittedTo: 0.5, missing: 500 })
})

test('one missing entry of a million is visible', () => {
  const node = nodeOf({ id: 'n2', matchIndex: 999_999, commitIndex: 999_999 })

  expect(logBarOf(node, { first: 0, last: 1_000_000 })).toMatchObject({ uncommittedTo: 0.985, missing: 1 })
})

test('a node before the first entry of the leader needs a snapshot', () => {
  const node = nodeOf({ id: 'n2', matchIndex: 500, commitIndex: 500 })

  expect(logBarOf(node, scale)).toMatchObject({ uncommittedTo: 0, needsSnapshot: true, missing: 1_500 })
})

test('the bar of an empty log is full', () => {
  const node = nodeOf({ id: 'n2', matchIndex: 0, lastIndex: 0, commitIndex: 0 })

  expect(logBarOf(node, { first: 0, last: 0 })).toMatchObject({ committedTo: 1, uncommittedTo: 1, missing: 0 })
})

test('a bar has a text description', () => {
  const node = nodeOf({ id: 'n2', matchIndex: 1_500, commitIndex: 1_400 })
  const silent = nodeOf({ id: 'n4', matchIndex: null, lastIndex: null })

  expect(logBarText(node, logBarOf(node, scale), String)).toBe('log up to 1500, committed to 1400, 500 missing')
  expect(logBarText(silent, logBarOf(silent, scale), String)).toBe('n4 does not report a log position')
})
