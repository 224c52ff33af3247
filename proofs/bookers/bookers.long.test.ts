import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runBookers } from './bookers.ts'

// Only Linux has all addresses of 127.0.0.0/8 without configuration.
test.runIf(process.platform === 'linux')(
  'bookers on a shard whose nodes are killed sell no room twice and keep every stay',
  async () => {
    // From VACANCY_SEED where it is set.
    const [seed = 0] = fc.sample(fc.nat(), 1)
    const say = (line: string) => void process.stderr.write(`${line}\n`)
    const report = await runBookers({
      seconds: 10,
      seed,
      clients: 32,
      lastRoomClients: 1_000,
      pace: 0.15,
      holdSecondsMax: 10,
      say,
    })

    expect(report.violations, `seed ${seed}`).toEqual([])
    expect(report.lastRoom).toMatchObject({ clients: 1_000, booked: 1, soldOut: 999 })
    expect(report.taken, `seed ${seed}`).toBeGreaterThan(200)
    expect(report.atEnd.compared, `seed ${seed}`).toBeGreaterThan(100)
    expect(report).toMatchObject({ allKilled: 1, restored: 1 })
    expect(report.leadersKilled).toBeGreaterThan(0)
  },
  240_000,
)
