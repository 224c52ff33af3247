import { expect, test } from 'vitest'
import { runChaos } from './chaos.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)

// Only Linux has all addresses of 127.0.0.0/8 without configuration.
const say = (line: string) => void process.stderr.write(`${line}\n`)

test.runIf(process.platform === 'linux')(
  'a shard under kills, stalls, partitions and membership changes loses nothing and converges',
  async () => {
    const report = await runChaos({ seconds: 20, seed: SEED, voters: 3, stallMsMax: 4_000, say })

    const about = `VACANCY_SEED=${SEED}, files in ${report.kept}`
    expect(report.violations, about).toEqual([])
    const { lost, doubled, negative, undecided, digestMismatches } = report
    expect({ lost, doubled, negative, undecided, digestMismatches }, about).toEqual({
      lost: 0,
      doubled: 0,
      negative: 0,
      undecided: 0,
      digestMismatches: 0,
    })
    expect(report.acknowledged, about).toBeGreaterThan(800)
    expect(Object.keys(report.faults).length, about).toBeGreaterThan(0)
    expect(report.booked, about).toBeGreaterThan(0)
    expect(report.expired + report.released, about).toBeGreaterThan(0)
  },
  400_000,
)
