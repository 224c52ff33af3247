import { BUILD_PHASES, type BuildPhase } from '@vacancy/shared/contract'
import { describe, expect, test } from 'vitest'
import { type Pace, remainingSeconds, type Work } from './remaining.ts'

type Times = Readonly<Record<BuildPhase, number>>

/** What the phases of imports of 12 and 4 million nights took on two cores, times ten. */
const MEASURED: Times = { settings: 18, properties: 4, packages: 3, tables: 0.5, write: 3, verify: 4 }
const WORK: Work = { properties: 4_663_450, packages: 1_169_184_701 }
const THIRD: Times = { settings: 5.5, properties: 2.5, packages: 1.2, tables: 0.2, write: 2, verify: 3 }
const THIRD_WORK: Work = { properties: 1_554_513, packages: 390_043_152 }
/** Phases without progress until they are over. */
const SILENT: ReadonlySet<BuildPhase> = new Set(['tables', 'verify'])

const slower = (times: Times, by: (phase: BuildPhase) => number): Times =>
  Object.fromEntries(BUILD_PHASES.map((phase) => [phase, times[phase] * by(phase)])) as Times
const paceOf = (times: Times, work: Work): Pace => ({
  work,
  phases: BUILD_PHASES.map((phase) => ({ phase, seconds: times[phase] })),
})

/** By how much the foretold rest is wrong at most, from a tenth of the time on until a twentieth before the end. */
function worst(times: Times, work: Work, last?: Pace): number {
  const whole = BUILD_PHASES.reduce((sum, phase) => sum + times[phase], 0)
  let most = 1
  for (let seconds = whole / 10; seconds < 0.95 * whole; seconds += whole / 200) {
    let rest = seconds
    const phases: { phase: BuildPhase; seconds: number }[] = []
    for (const phase of BUILD_PHASES) {
      phases.push({ phase, seconds: Math.min(rest, times[phase]) })
      rest -= times[phase]
      if (rest < 0) break
    }
    const { phase, seconds: took } = phases.at(-1) as (typeof phases)[number]
    const share = SILENT.has(phase) ? 0 : took / times[phase]
    const told = remainingSeconds({ phase, share, phases, work, last })
    most = Math.max(most, told / (whole - seconds), (whole - seconds) / told)
  }
  return most
}

describe('from a tenth on the rest of an import is foretold within a factor of 1.5', () => {
  test('on the machine that was measured', () => {
    expect(worst(MEASURED, WORK)).toBeLessThan(1.5)
  })

  test.each([0.1, 0.4, 3])('on one that takes %d times as long', (factor) => {
    expect(
      worst(
        slower(MEASURED, () => factor),
        WORK,
      ),
    ).toBeLessThan(1.5)
  })

  test('on one with another balance of its phases, after one import', () => {
    const other = slower(MEASURED, (phase) => (phase === 'packages' ? 0.3 : phase === 'write' ? 6 : 1.5))
    expect(worst(other, WORK, paceOf(other, WORK))).toBeLessThan(1.5)
  })

  test.each([0.5, 4])('after an import of a third of the size, on one that takes %d times as long', (factor) => {
    const times = (all: Times) => slower(all, () => factor)
    expect(worst(times(MEASURED), WORK, paceOf(times(THIRD), THIRD_WORK))).toBeLessThan(1.5)
  })
})

test('an import too small to tell the pace of a machine is not asked', () => {
  const tiny = paceOf(
    slower(MEASURED, () => 0.1),
    { properties: 1_000, packages: 20_000 },
  )
  const moment = { phase: 'settings', share: 0.5, phases: [{ phase: 'settings', seconds: 0.6 }], work: WORK } as const
  expect(remainingSeconds({ ...moment, last: tiny })).toBe(remainingSeconds({ ...moment, last: undefined }))
})

test('nothing is left at the end', () => {
  const { phases } = paceOf(MEASURED, WORK)
  expect(remainingSeconds({ phase: 'verify', share: 1, phases, work: WORK, last: undefined })).toBe(0)
})
