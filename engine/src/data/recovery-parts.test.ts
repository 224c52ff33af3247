import { expect, test } from 'vitest'
import { createNodeInMemory } from '../testing/node-in-memory.ts'
import { machineOf, type RecoveryTools } from './recovery-parts.ts'

const tools = { kernelsOf: () => ({ put: () => undefined }) } as unknown as RecoveryTools
const begin = (accept?: (index: number) => boolean) =>
  machineOf(createNodeInMemory(20_000).store, tools, accept).context

const [wanted, own] = [
  { lo: 1, hi: 2 },
  { lo: 3, hi: 4 },
]

test('a digest in the log that differs from that of the state ends a start, which names both', () => {
  expect(() => begin().onDigestMismatch(7, wanted, own)).toThrow(
    expect.objectContaining({
      code: 'digest_mismatch',
      message: 'The state after index 7 has digest 4-3, expected 2-1.',
    }),
  )
})

test('a caller decides for each index whether a different digest is accepted', () => {
  const { onDigestMismatch } = begin((index) => index === 7)
  expect(() => onDigestMismatch(7, wanted, own)).not.toThrow()
  expect(() => onDigestMismatch(8, wanted, own)).toThrow(expect.objectContaining({ code: 'digest_mismatch' }))
})
