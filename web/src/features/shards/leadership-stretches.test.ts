import type { ShardLeadership } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { axisFrom, stretchesOf } from './leadership-stretches.ts'

const MINUTE = 60_000
const at = (minute: number) => new Date(minute * MINUTE).toISOString()

const leadershipOf = (...spans: ShardLeadership['spans']): ShardLeadership => ({
  ...{ from: at(0), to: at(100), spans, elections: 0, longestGapMs: null, knownMs: 0, isCut: false },
})

test('a period without data is one unknown stretch', () => {
  expect(stretchesOf(leadershipOf())).toEqual([{ kind: 'unknown', from: 0, to: 100 * MINUTE }])
})

test('uncovered time is an unknown stretch, before, between and after spans', () => {
  const stretches = stretchesOf(
    leadershipOf(
      { from: at(10), to: at(40), leader: 'n1', term: 4 },
      { from: at(40), to: at(41), leader: null, term: null },
      { from: at(60), to: at(90), leader: 'n3', term: null },
    ),
  )

  expect(stretches.map(({ kind, from, to }) => [kind, from / MINUTE, to / MINUTE])).toEqual([
    ['unknown', 0, 10],
    ['leader', 10, 40],
    ['none', 40, 41],
    ['unknown', 41, 60],
    ['leader', 60, 90],
    ['unknown', 90, 100],
  ])
})

test('a short gap between spans is not unknown time', () => {
  const late = new Date(50 * MINUTE + 400).toISOString()
  const stretches = stretchesOf(
    leadershipOf(
      { from: at(0), to: at(50), leader: 'n1', term: 1 },
      { from: late, to: at(100), leader: 'n2', term: 2 },
    ),
  )

  expect(stretches.map(({ kind }) => kind)).toEqual(['leader', 'leader'])
})

test.each([
  [undefined, 1_440],
  [0, 1_440],
  [700, 1_440],
  [900, 720],
  [1_250, 240],
  [1_427, 60],
  [1_429, 12],
  [1_439.9, 12],
])('a day of which minute %s is the first that was seen is shown as %s minutes', (first, length) => {
  const spans = first === undefined ? [] : [{ from: at(first), to: at(1_440), leader: 'n1', term: 1 }]

  expect(1_440 - axisFrom({ ...leadershipOf(...spans), to: at(1_440) }) / MINUTE).toBe(length)
})
