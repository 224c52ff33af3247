import { expect, test, vi } from 'vitest'
import { type RunResult, runSeed } from './cluster.ts'
import { arrayLog } from './core-log.ts'
import { createCoreProgram } from './core-node.ts'
import { DEFECTS } from './defects.ts'
import { driverProgram } from './driver-node.ts'
import { drawSchedule } from './faults.ts'
import { drawKnobs, PROFILES } from './knobs.ts'
import { addRun, createSummary, type Summary } from './report.ts'
import { shrink } from './shrink.ts'
import { walLog } from './wal-log.ts'
import type { Program } from './world.ts'

/** A seed that fails is played again with `npm run sim`. */
const FROM = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)
// A stretch ends with a run that is under way, and a rare one takes 40 s with nothing beside it.
vi.setConfig({ testTimeout: 300_000 })

/** A stretch of time for each of the three; at most so many seeds. */
const MS_MAX = 15_000
const SEEDS_MAX = 300
/** Not those whose failing seeds are known and not mended yet (docs/reliability.md): `npm run sim -- --profile refusals` runs them. */
const MENDED = PROFILES.filter((profile) => profile !== 'refusals')
/** Shorter runs than those of every night: more different ones in the same time. */
const LENGTH = 0.5

const core = createCoreProgram(arrayLog)
const log = createCoreProgram(walLog)

function runMany(program: Program, usesStore = false): Summary {
  const summary = createSummary()
  const started = performance.now()
  for (let n = 0; n < SEEDS_MAX && performance.now() - started < MS_MAX; n++) {
    const seed = FROM + n
    const profile = MENDED[n % MENDED.length] ?? 'mixed'
    const result = runSeed({ seed, profile, program, length: LENGTH, ...(usesStore && { knobs: { usesStore } }) })
    addRun(summary, result, program.name)
    const again = `npm run sim -- --seed ${seed} --profile ${profile} --program ${program.name} --length ${LENGTH}${usesStore ? ' --store' : ''}`
    expect(result.failure, `${again}\n${result.failure?.message}`).toBeUndefined()
  }
  return summary
}

test('cores keep their promises under faults (reliability.md §5, §6)', () => {
  const { runs, checks, counts } = runMany(core)
  expect(runs).toBeGreaterThan(5)
  for (const name of ['O1', 'O2', 'O3', 'O4', 'O6', 'O8', 'O13', 'O14'] as const)
    expect(checks[name], name).toBeGreaterThan(0)
  expect(counts['elections']).toBeGreaterThan(0)
})

test('cores over the log keep their promises on disks that forget, fill up, fail and rot', () => {
  const { checks } = runMany(log)
  for (const name of ['O1', 'O2', 'O3', 'O9'] as const) expect(checks[name], name).toBeGreaterThan(0)
})

test('whole nodes keep their promises under faults', () => {
  const { checks } = runMany(driverProgram)
  for (const name of ['O1', 'O2', 'O3', 'O7', 'O15'] as const) expect(checks[name], name).toBeGreaterThan(0)
})

test('whole nodes keep their promises over the store with its snapshots', () => {
  const { checks, counts } = runMany(driverProgram, true)
  for (const name of ['O1', 'O2', 'O3', 'O4', 'O8', 'O15'] as const) expect(checks[name], name).toBeGreaterThan(0)
  expect(counts['snapshotsTaken']).toBeGreaterThan(0)
})

test('a seed gives the same run twice, and another seed another one (§3)', () => {
  for (const program of [core, log, driverProgram]) {
    const run = (seed: number): RunResult => runSeed({ seed, profile: 'mixed', program, length: 0.2 })
    const first = run(FROM)
    expect(run(FROM).hash).toBe(first.hash)
    expect(run(FROM + 1).hash).not.toBe(first.hash)
  }
  const overStore = { seed: FROM, profile: 'mixed', program: driverProgram, length: 0.2 } as const
  const hash = () => runSeed({ ...overStore, knobs: { usesStore: true } }).hash
  expect(hash()).toBe(hash())
})

test('a schedule is data: what is drawn from a seed gives the same run when it is given', () => {
  const knobs = drawKnobs(FROM, 'crash', 0.2)
  const schedule = drawSchedule(FROM, knobs, 60_000_000)
  const options = { seed: FROM, profile: 'crash', program: core, knobs } as const
  const played = JSON.parse(JSON.stringify(schedule)) as typeof schedule
  expect(runSeed({ ...options, schedule: played }).hash).toBe(runSeed({ ...options, schedule }).hash)
})

test('a planted defect is found, and its run is cut down to less', () => {
  const defects = new Set(['raft/vote-ignores-log'])
  for (let seed = FROM; seed < FROM + 100; seed++) {
    const options = { seed, profile: 'elections', program: core, defects } as const
    const result = runSeed(options)
    if (!result.failure) continue
    const shrunk = shrink(options, result, 30)
    expect(shrunk.result.failure?.oracle).toBe(result.failure.oracle)
    expect(shrunk.result.schedule.length).toBeLessThanOrEqual(result.schedule.length)
    return
  }
  expect.fail('100 seeds did not find a vote that ignores the log')
})

/** Elections of short runs in which nothing goes wrong but that the leader stands still, for less than others wait. */
function electionsUnderStalls(defects: ReadonlySet<string>): number {
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
    ...{ latencyUsMin: 100, latencyUsMax: 500, syncUsMin: 100, syncUsMax: 500, sometimesP: 0, usesStore: false },
    ...{ clients: 1, thinkUs: 100_000 },
  }
  let elections = 0
  for (let seed = 1; seed <= 6; seed++) {
    const schedule = [4, 5, 6, 7, 8, 9, 10, 11].map(
      (seconds) =>
        ({ atUs: seconds * 1e6 + seed * 17_000, kind: 'stall', target: 0, lengthUs: 280_000, detail: 0 }) as const,
    )
    const options = { seed, profile: 'calm', program: driverProgram, knobs, schedule, defects } as const
    const { failure, counts } = runSeed(options)
    expect(failure?.message, `seed ${seed}`).toBeUndefined()
    elections += counts.elections
  }
  return elections
}

test('driver/tick-burst is noticed: leaders that stood still for a moment lose their place (consensus.md §3.4)', () => {
  const elections = electionsUnderStalls(new Set())
  expect(electionsUnderStalls(new Set(['driver/tick-burst']))).toBeGreaterThan(elections)
})

test('defects have names of their own and a layer that is to find them', () => {
  expect(new Set(DEFECTS.map(({ name }) => name)).size).toBe(DEFECTS.length)
  for (const { name, layer } of DEFECTS) expect(layer, name).not.toBe('')
})
