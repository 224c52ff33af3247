/** VACANCY_RAFT_SEEDS: number of seeds; VACANCY_RAFT_SEED: the first seed. To repeat a failure, set it and one seed. */

import { expect, test } from 'vitest'
import { report, runSeed } from './raft.ts'

const FIRST = Number(process.env['VACANCY_RAFT_SEED'] ?? 1)
const SEEDS = Number(process.env['VACANCY_RAFT_SEEDS'] ?? 300)
const LONG_MS = 24 * 3_600_000

test(`${SEEDS} shards keep their guarantees under faults, and make progress when enough of them heals`, {
  timeout: LONG_MS,
}, () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const outcome = runSeed(seed)
    if (outcome.error !== undefined) expect.fail(report(outcome))
  }
})

test('the same seed gives the same run', () => {
  const run = () => {
    const { world } = runSeed(17)
    return [world.counts, world.slot, [...world.states].at(-1)]
  }
  expect(run()).toEqual(run())
})
