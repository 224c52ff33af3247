import { describe, expect, it } from 'vitest'
import { loseSyncs } from './losing.ts'
import { SYNCS } from './losing-journal.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const FAULTS = 2_000

describe('the queue on a disk that loses what was not synced', () => {
  it('loses no accepted job, and brings back no finished one', { timeout: 240_000 }, async () => {
    const { found, faults, duplicates } = await loseSyncs({ faults: 500, seed: SEED })
    expect({ seed: SEED, found }).toEqual({ seed: SEED, found: [] })
    expect(Object.entries(faults).filter(([, count]) => count === 0)).toEqual([])
    expect(duplicates, 'requests of unknown outcome were repeated').toBeGreaterThan(0)
  })

  it.each(SYNCS)('does when a sync is left out: %s', { timeout: 240_000 }, async (sync) => {
    expect((await loseSyncs({ faults: FAULTS, seed: SEED, without: sync })).found).not.toEqual([])
  })
})
