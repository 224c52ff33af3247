import { expect, test } from 'vitest'
import { report, runSeed } from './raft.sim.ts'

const SEEDS = Number(process.env['VACANCY_RAFT_SEEDS'] ?? 300)
const FIRST = Number(process.env['VACANCY_RAFT_SEED'] ?? 1)

test(`${SEEDS} shards keep their promises under faults, and make progress when enough of them heals`, {
  timeout: 3_600_000,
}, () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const outcome = runSeed(seed)
    if (outcome.error !== undefined) expect.fail(report(outcome))
  }
})
