import { expect, it } from 'vitest'
import { runSteps } from './model-run.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const STEPS = Number(process.env['VACANCY_QUEUE_STEPS'] ?? 100_000)

it('the queue engine beside an exact model keeps every invariant after each random step', { timeout: 600_000 }, () => {
  expect(Object.values(runSteps(STEPS, SEED)).every((count) => count > 0)).toBe(true)
})
