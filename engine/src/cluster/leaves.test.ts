import { expect, test } from 'vitest'
import { createLeaves, decideLeave } from './leaves.ts'

const FOR_MS = 20_000

/** A leader `n1` of three voters. @returns asks for a leave: '' when it is granted, otherwise why not */
function begin() {
  const leaves = createLeaves(0)
  const ask = (node: string, nowMs: number, away = '') =>
    decideLeave(leaves, { node, isLeader: node === 'n1', forMs: FOR_MS, away }, nowMs).text
  return { leaves, ask }
}

test('a leader lets nobody go until those that an earlier one let go have ended', () => {
  const { ask } = begin()
  expect(ask('n2', FOR_MS - 1)).toBe('all others have to be there for 20 s')
  expect(ask('n2', FOR_MS)).toBe('')
})

test('one voter goes at a time: others wait until it is back, and has been for a while; the leader goes last', () => {
  const { ask } = begin()
  const both = (nowMs: number, away = '') => ['n1', 'n3'].map((node) => ask(node, nowMs, away))
  expect(ask('n1', 50_000)).toBe('the leader ends last')
  expect(ask('n2', 50_000)).toBe('')
  expect(both(69_999)).toEqual(Array(2).fill('n2 is ending'))
  expect(both(100_000, 'n2')).toEqual(Array(2).fill('n2 is away or behind'))
  expect(both(119_999)).toEqual(Array(2).fill('all others have to be there for 20 s'))
  expect(both(120_000)).toEqual(['the leader ends last', ''])

  expect(ask('n1', 130_000, 'n3')).toBe('n3 is away or behind')
  expect([149_999, 150_000].map((nowMs) => ask('n1', nowMs))).toEqual(['all others have to be there for 20 s', ''])
  expect(ask('n2', 150_001)).toBe('n1 is ending')
})

test('a permission that was lost is given again, and lapses when its voter does not end', () => {
  const { ask } = begin()
  expect(['n2', 'n2'].map((node, at) => ask(node, 50_000 + 6_000 * at))).toEqual(['', ''])
  expect([75_999, 76_000].map((nowMs) => ask('n3', nowMs))).toEqual(['n2 is ending', ''])
})

test('a request of unknown length is not granted', () => {
  const { leaves } = begin()
  expect(decideLeave(leaves, { node: 'n2', isLeader: false, forMs: Number.NaN, away: '' }, 50_000).status).toBe(409)
})
