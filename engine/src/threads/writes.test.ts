import { expect, test } from 'vitest'
import {
  answerOfLogged,
  beginProposal,
  createProposals,
  dropProposal,
  endProposal,
  REFUSED,
  refusedText,
  takeProposals,
} from './writes.ts'

test('every refusal of the replica is a bare code, and only an unknown outcome is 408', () => {
  const texts = Object.entries(REFUSED).map(([name, code]) => [name, refusedText(code)])

  expect(Object.fromEntries(texts)).toEqual({
    overloaded: '429',
    notServing: '503',
    diskFull: '503',
    memoryFull: '503',
    notLeader: '308',
    outcomeUnknown: '408',
    noLeader: '503',
    transferring: '503',
    notCaughtUp: '308',
  })
})

test('a logged write is reported as refused only when another entry is committed in its place', () => {
  expect(answerOfLogged('overwritten')).toBe(REFUSED.notLeader)
  expect(answerOfLogged('unsure')).toBeUndefined()
  expect(answerOfLogged('given-up')).toBe(REFUSED.outcomeUnknown)
})

test('the planted defects report a write as refused that may still be applied', () => {
  expect(answerOfLogged('unsure', new Set(['writes/retryable-though-logged']))).toBe(REFUSED.notLeader)
  expect(refusedText(answerOfLogged('given-up', new Set(['writes/unknown-as-failed'])) ?? 0)).toBe('503')
})

test('an outcome of the store has no text, and outcomes of the replica are apart from each other', () => {
  expect([refusedText(0), refusedText(239), refusedText(249)]).toEqual([undefined, undefined, undefined])
  expect(new Set(Object.values(REFUSED)).size).toBe(9)
})

/** Adds a command of these bytes; the token is that of its writer. */
function add(proposals: ReturnType<typeof createProposals>, token: number, bytes: readonly number[]): void {
  const writer = beginProposal(proposals)
  for (const byte of bytes) writer.bytes[writer.at++] = byte
  endProposal(proposals, token)
}

test('a batch has token, length and bytes of each command, and the next batch begins empty', () => {
  const proposals = createProposals()
  expect(proposals.count).toBe(0)
  add(proposals, 0x01020304, [9, 8, 7])
  add(proposals, 0xffffffff, [])
  add(proposals, 5, [6])
  expect(proposals.count).toBe(3)

  const batch = [...new Uint8Array(takeProposals(proposals))]
  expect(batch).toEqual([
    ...[4, 3, 2, 1, 3, 0, 0, 0, 9, 8, 7],
    ...[255, 255, 255, 255, 0, 0, 0, 0],
    ...[5, 0, 0, 0, 1, 0, 0, 0, 6],
  ])
  expect([proposals.count, takeProposals(proposals).byteLength]).toEqual([0, 0])
  add(proposals, 1, [2])
  expect([...new Uint8Array(takeProposals(proposals))]).toEqual([1, 0, 0, 0, 1, 0, 0, 0, 2])
})

test('a batch keeps its bytes while the next one is written', () => {
  const proposals = createProposals()
  add(proposals, 1, [1, 1])
  const first = new Uint8Array(takeProposals(proposals))
  add(proposals, 2, [2, 2])
  expect([...first]).toEqual([1, 0, 0, 0, 2, 0, 0, 0, 1, 1])
})

test('a dropped command leaves those before it, and its place to the next one', () => {
  const proposals = createProposals()
  add(proposals, 1, [1])
  const writer = beginProposal(proposals)
  writer.bytes[writer.at++] = 99
  dropProposal(proposals)
  add(proposals, 2, [2])
  expect(proposals.count).toBe(2)
  expect([...new Uint8Array(takeProposals(proposals))]).toEqual([1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 0, 0, 2])
})
