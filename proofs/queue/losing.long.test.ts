import { describe, expect, it } from 'vitest'
import { loseGroups } from './losing.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)

describe('the queue over a journal that fails', () => {
  it('loses no accepted job, and brings back no finished one', { timeout: 240_000 }, async () => {
    const { found, faults, duplicates } = await loseGroups({ faults: 500, seed: SEED })
    expect({ seed: SEED, found }).toEqual({ seed: SEED, found: [] })
    expect(Object.entries(faults).filter(([, count]) => count === 0)).toEqual([])
    expect(duplicates, 'requests of unknown outcome were repeated').toBeGreaterThan(0)
  })
})
