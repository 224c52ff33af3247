/** docs/design/consensus.md#apply: a digest counts when a majority of the voters has it. */
import { expect, test } from 'vitest'
import { type DigestBook, judgeDigest, noteDigest } from './digests.ts'

const RIGHT = { index: 4_096, lo: 1, hi: 2 }
const WRONG = { index: 4_096, lo: 1, hi: 3 }
const OTHER = { index: 4_096, lo: 9, hi: 2 }
const alone = (...voters: number[]) => ({ voters, outgoing: [] })
const bookOf = (reports: Record<number, typeof RIGHT>): DigestBook => {
  const book: DigestBook = new Map()
  for (const [member, mark] of Object.entries(reports)) noteDigest(book, Number(member), mark)
  return book
}

test('a node by itself agrees with itself', () => {
  expect(judgeDigest(new Map(), alone(1), 1, RIGHT)).toBe('agreed')
})

test.each([
  ['one of two others has it', { 2: RIGHT }, 'agreed'],
  ['one has it, one has not', { 2: RIGHT, 3: WRONG }, 'agreed'],
  ['no other member has reported yet', {}, 'open'],
  ['one differs, one is silent', { 2: WRONG }, 'open'],
  ['both others differ', { 2: WRONG, 3: WRONG }, 'contradicted'],
  ['both others differ, also from each other', { 2: WRONG, 3: OTHER }, 'contradicted'],
  ['a learner does not count', { 2: WRONG, 7: WRONG }, 'open'],
] as const)('of three voters, %s', (_, reports, verdict) => {
  expect(judgeDigest(bookOf(reports), alone(1, 2, 3), 1, RIGHT)).toBe(verdict)
})

test('half of the voters is no majority, neither for nor against', () => {
  expect(judgeDigest(bookOf({ 2: WRONG }), alone(1, 2), 1, RIGHT)).toBe('open')
  expect(judgeDigest(bookOf({ 2: WRONG, 3: WRONG, 4: RIGHT }), alone(1, 2, 3, 4), 1, RIGHT)).toBe('open')
})

test('a joint configuration needs both halves', () => {
  const joint = { voters: [1, 4, 5], outgoing: [1, 2, 3] }
  expect(judgeDigest(bookOf({ 2: RIGHT }), joint, 1, RIGHT)).toBe('open')
  expect(judgeDigest(bookOf({ 2: RIGHT, 4: RIGHT }), joint, 1, RIGHT)).toBe('agreed')
  expect(judgeDigest(bookOf({ 2: WRONG, 3: WRONG, 4: WRONG }), joint, 1, RIGHT)).toBe('open')
  expect(judgeDigest(bookOf({ 2: WRONG, 3: WRONG, 4: WRONG, 5: WRONG }), joint, 1, RIGHT)).toBe('contradicted')
})

test('only reports of the same index count, and the last few are kept', () => {
  const book: DigestBook = new Map()
  for (let n = 1; n <= 20; n++) noteDigest(book, 2, { ...RIGHT, index: n * 4_096 })
  noteDigest(book, 2, { ...RIGHT, index: 20 * 4_096 })

  expect(judgeDigest(book, alone(1, 2, 3), 1, { ...RIGHT, index: 20 * 4_096 })).toBe('agreed')
  expect(judgeDigest(book, alone(1, 2, 3), 1, { ...RIGHT, index: 13 * 4_096 })).toBe('agreed')
  expect(judgeDigest(book, alone(1, 2, 3), 1, { ...RIGHT, index: 12 * 4_096 })).toBe('open')
  expect(judgeDigest(book, alone(1, 2, 3), 1, { ...RIGHT, index: 21 * 4_096 })).toBe('open')
})
