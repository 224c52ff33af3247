import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { type RunResult, runSeed } from './cluster.ts'
import { coreProgram } from './core-node.ts'
import { driverProgram } from './driver-node.ts'
import { drawSchedule } from './faults.ts'
import { drawKnobs, PROFILES } from './knobs.ts'
import { addRun, createSummary, type Summary } from './report.ts'
import type { Program } from './world.ts'

/** Derived by `npm test` from the content of the commit. Repeat a failing seed with `npm run proofs -- sim`. */
const FROM = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)
// A batch ends with a complete run, and a rare one takes 40 s on an idle machine.
vi.setConfig({ testTimeout: 300_000 })

/** Shorter than nightly runs, for more seeds in the same time. */
const LENGTH = 0.5

function runMany(program: Program, seeds: number): Summary {
  const summary = createSummary()
  for (let n = 0; n < seeds; n++) {
    const seed = FROM + n
    const profile = PROFILES[n % PROFILES.length] ?? 'mixed'
    const result = runSeed({ seed, profile, program, length: LENGTH })
    addRun(summary, result, program.name)
    const again = `npm run proofs -- sim --seed ${seed} --profile ${profile} --program ${program.name} --length ${LENGTH}`
    expect(result.failure, `${again}\n${result.failure?.message}`).toBeUndefined()
  }
  return summary
}

test('cores keep their guarantees under faults', () => {
  const { checks, counts } = runMany(coreProgram, 96)
  for (const name of ['O1', 'O2', 'O3', 'O4', 'O6', 'O8', 'O13', 'O14'] as const)
    expect(checks[name], name).toBeGreaterThan(0)
  expect(counts['elections']).toBeGreaterThan(0)
})

test('whole nodes keep their guarantees on disks that lose data, fill up, fail and rot, and match a model of plain maps', () => {
  const { checks, counts } = runMany(driverProgram, 36)
  const ofStays = ['S1', 'S2', 'S3', 'S4', 'S5', 'S6'] as const
  for (const name of ['O1', 'O2', 'O3', 'O4', 'O7', 'O8', 'O9', 'O15', ...ofStays] as const)
    expect(checks[name], name).toBeGreaterThan(0)
  for (const name of ['snapshotsTaken', 'restarts', 'built', 'outsideWindow', 'moved', 'holds', 'bookings', 'expired'])
    expect(counts[name], name).toBeGreaterThan(0)
})

test('a seed is reproducible, and different seeds differ', () => {
  for (const program of [coreProgram, driverProgram]) {
    const run = (seed: number): RunResult => runSeed({ seed, profile: 'mixed', program, length: 0.2 })
    const first = run(FROM)
    expect(run(FROM).hash).toBe(first.hash)
    expect(run(FROM + 1).hash).not.toBe(first.hash)
  }
})

test('a schedule drawn from a seed gives the same run when it is passed as data', () => {
  const knobs = drawKnobs(FROM, 'crash', 0.2)
  const schedule = drawSchedule(FROM, knobs, 60_000_000)
  const options = { seed: FROM, profile: 'crash', program: coreProgram, knobs } as const
  const played = JSON.parse(JSON.stringify(schedule)) as typeof schedule
  expect(runSeed({ ...options, schedule: played }).hash).toBe(runSeed({ ...options, schedule }).hash)
})

test('a planted defect is found, and its run is shrunk', ({ onTestFinished }) => {
  const cwd = mkdtempSync(join(tmpdir(), 'vacancy-defect-'))
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }))
  const cli = join(import.meta.dirname, '../cli.ts')
  const args = ['--defect', 'raft/vote-ignores-log', 'sim', '--program', 'core', '--profile', 'elections']
  const { stdout, status } = spawnSync(process.execPath, [cli, ...args, '--from', String(FROM)], {
    cwd,
    encoding: 'utf8',
  })

  expect(status).toBe(1)
  const [, before, after] = /shrunk from (\d+) to (\d+) faults/.exec(stdout) ?? []
  expect(Number(after), stdout).toBeLessThanOrEqual(Number(before))
})

test('nodes that stall together, as on a suspended machine, keep their leader (driver/tick-burst)', () => {
  const knobs = {
    ...{
      voters: 3,
      learners: 0,
      tickMs: 10,
      electionTicks: 20,
      heartbeatTicks: 2,
      clockErrorPercent: 0,
      events: 12_000,
    },
    ...{ latencyUsMin: 100, latencyUsMax: 500, syncUsMin: 100, syncUsMax: 500, sometimesP: 0 },
    ...{ clients: 1, thinkUs: 100_000 },
  }
  let elections = 0
  for (let seed = 1; seed <= 3; seed++) {
    const schedule = [4, 5, 6, 7].flatMap((seconds) =>
      [1, 2, 3].map(
        (target) => ({ atUs: seconds * 1e6, kind: 'stall', target, lengthUs: 400_000, detail: 0 }) as const,
      ),
    )
    const options = { seed, profile: 'calm', program: driverProgram, knobs, schedule } as const
    const { failure, counts } = runSeed(options)
    expect(failure?.message, `seed ${seed}`).toBeUndefined()
    elections += counts.elections
  }
  expect(elections).toBe(3)
})

test('a node without a free memory block for a write within the budget ends, and recovers with the same state', () => {
  const sizes = { voters: 3, learners: 0, events: 12_000, builders: 2, buildUs: 200_000, builtProperties: 900 }
  const knobs = { ...sizes, memoryBudget: 0, clients: 1, thinkUs: 100_000 }
  const schedule = [4, 6, 8, 10, 12, 14].map((seconds, n) => {
    const detail = { target: n % 4, lengthUs: 0, detail: 0 }
    return { atUs: seconds * 1e6, kind: 'exhaust', ...detail } as const
  })
  let ended = 0
  for (let seed = FROM; ended === 0 && seed < FROM + 20; seed++) {
    const { failure, counts } = runSeed({ seed, profile: 'calm', program: driverProgram, knobs, schedule })
    expect(failure?.message, `seed ${seed}`).toBeUndefined()
    ended += counts.exhausted
  }
  expect(ended).toBeGreaterThan(0)
})
