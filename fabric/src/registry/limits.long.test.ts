import { REGISTRY_LIMITS } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { createState, pushSegments, reserve } from './state.ts'

test('claims and reservations have limits', () => {
  const state = createState({ epoch: '0123456789abcdef', firstVersion: 1_000, codecs: ['a'] })
  const push = (shard: string, segments: readonly string[]) =>
    pushSegments(state, shard, { zone: 'z1', segments, term: undefined }, false)
  const lists = Array.from({ length: 10 }, (_, s) => Array.from({ length: 100_000 }, (_, i) => `${s}-${i}`))
  for (const [s, list] of lists.entries()) expect(push(`s${s}`, list)).toMatchObject({ ok: true })

  expect(push('more', ['x'])).toMatchObject({ ok: false, refused: 'limit' })
  expect(push('s0', (lists[0] as string[]).slice(1))).toMatchObject({ ok: true })
  expect(push('more', ['x'])).toMatchObject({ ok: true })
  for (let i = 0; i < REGISTRY_LIMITS.reservationsMax; i++) reserve(state, `r${i}`, 's1', 0)
  expect(reserve(state, 'one-more', 's1', 0)).toMatchObject({ ok: false, refused: 'limit' })
})
