import { describe, expect, it } from 'vitest'
import { createRun, step } from './model.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const STEPS = Number(process.env['VACANCY_QUEUE_STEPS'] ?? 100_000)
const STEPS_OF_RUN = 5_000

describe('the queue engine beside an exact model', () => {
  it('keeps every invariant after each random step', { timeout: 600_000 }, () => {
    const counts: { [step: string]: number } = {}
    for (let run = 0; run * STEPS_OF_RUN < STEPS; run++) {
      const seed = SEED + run
      const state = createRun(seed)
      for (let n = 0; n < STEPS_OF_RUN; n++) {
        try {
          step(state)
        } catch (error) {
          throw new Error(`VACANCY_SEED=${seed}, step ${n}: ${(error as Error).message}`, { cause: error })
        }
      }
      for (const [name, count] of Object.entries(state.counts)) counts[name] = (counts[name] ?? 0) + count
    }
    expect(Object.values(counts).every((count) => count > 0)).toBe(true)
  })
})
