import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runFabricChaos } from './chaos.ts'
import { FAULTS } from './faults.ts'

test('a platform whose components are killed and stopped loses no write, and executes none twice', async () => {
  // From VACANCY_SEED where it is set.
  const [seed = 0] = fc.sample(fc.nat(), 1)
  const report = await runFabricChaos({
    seconds: 1,
    seed,
    pace: 0.15,
    say: (line) => void process.stderr.write(`${line}\n`),
  })

  expect(report.violations, `seed ${seed}`).toEqual([])
  expect(report.acknowledged, `seed ${seed}`).toBeGreaterThan(500)
  expect(Object.keys(report.faults)).toHaveLength(FAULTS.length)
}, 300_000)
