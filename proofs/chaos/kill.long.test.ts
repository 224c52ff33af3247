import { expect, test } from 'vitest'
import { killRounds } from './kill.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)

test('kill -9 under eight writing clients loses no acknowledged write and applies no decrement twice', async () => {
  const report = await killRounds({ rounds: 10, seed: SEED })

  expect(report.acknowledged, `seed ${SEED}`).toBeGreaterThan(20)
  expect(report.repeats, `seed ${SEED}`).toBeGreaterThan(0)
}, 180_000)
