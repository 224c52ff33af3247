import { expect, it } from 'vitest'
import { killQueue } from './kill.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

it.each([
  { journal: 'sqlite', rounds: 10 },
  { journal: 'postgres', rounds: 3 },
] as const)(
  'kill -9 loses no accepted job and brings back no finished one ($journal)',
  { timeout: 300_000 },
  async (options) => {
    const { lost, returned, spoiled, accepted, settled } = await killQueue({ ...options, seed: SEED })
    expect({ seed: SEED, lost, returned, spoiled }).toEqual({ seed: SEED, lost: [], returned: [], spoiled: [] })
    expect(accepted).toBeGreaterThan(0)
    expect(settled).toBeGreaterThan(0)
  },
)
