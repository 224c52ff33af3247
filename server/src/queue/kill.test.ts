import { expect, it } from 'vitest'
import { killQueue } from './testing/kill.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

it('kill -9 loses no accepted job and brings back no finished one', { timeout: 300_000 }, async () => {
  const { lost, returned, accepted, settled } = await killQueue({ rounds: 10, seed: SEED })
  expect({ seed: SEED, lost, returned }).toEqual({ seed: SEED, lost: [], returned: [] })
  expect(accepted).toBeGreaterThan(0)
  expect(settled).toBeGreaterThan(0)
})
