/**
 * How long an import still takes: from the times of its own phases, those of the last import on this machine, and the
 * costs of a known machine where neither tells. Pure.
 */
import { BUILD_PHASES, type BuildPhase, type FileKind } from '@vacancy/shared/contract'

/** Bytes of both files, unpacked. */
export type Work = Readonly<Record<FileKind, number>>

type PhaseTime = { readonly phase: BuildPhase | 'errors'; readonly seconds: number }

/** What a finished import took. */
export type Pace = { readonly work: Work; readonly phases: readonly PhaseTime[] }

type Cost = { readonly seconds: number; readonly perGigabyte: number; readonly of: readonly FileKind[] }

/**
 * As measured with 4 and 12 million nights, 392 MB and 1.2 GB, on two cores. On another machine the phases of an import
 * so far, and the last import, correct it.
 */
const COSTS: Readonly<Record<BuildPhase, Cost>> = {
  settings: { seconds: 0, perGigabyte: 1.5, of: ['properties', 'packages'] },
  properties: { seconds: 0.15, perGigabyte: 50, of: ['properties'] },
  packages: { seconds: 0.05, perGigabyte: 0.25, of: ['packages'] },
  tables: { seconds: 0.02, perGigabyte: 0.05, of: ['packages'] },
  write: { seconds: 0.15, perGigabyte: 0.15, of: ['packages'] },
  verify: { seconds: 0.25, perGigabyte: 0.15, of: ['packages'] },
}

/** Times of a smaller import are mostly those of starting programs. */
const PACE_BYTES_MIN = 10e6
/** Part of the expected time below which the pace so far says little. */
const TOLD_SHARE = 0.03
/** From this share of a phase on, its own pace tells its end. */
const OWN_SHARE = 0.15

/** A phase that takes longer than expected and tells no share takes this part of its time so far longer. */
const LATE_SHARE = 0.2

export type Moment = {
  readonly phase: BuildPhase
  /** Of this phase, from 0 to 1. */
  readonly share: number
  /** So far, with this phase. */
  readonly phases: readonly PhaseTime[]
  readonly work: Work
  /** Of the last import on this machine. */
  readonly last: Pace | undefined
}

/** Seconds until the end. */
export function remainingSeconds({ phase, share, phases, work, last }: Moment): number {
  const expected = (each: BuildPhase) => expectedSeconds(each, work, last)
  const at = BUILD_PHASES.indexOf(phase)
  const took = (each: BuildPhase) => phases.find((one) => one.phase === each)?.seconds ?? 0
  const [before, after] = [BUILD_PHASES.slice(0, at), BUILD_PHASES.slice(at + 1)]
  const all = sumOf(BUILD_PHASES, expected)
  // A phase that has not told its share says nothing of the pace.
  const spent = sumOf(before, took) + (share > 0 ? took(phase) : 0)
  const known = sumOf(before, expected) + share * expected(phase)
  // How much slower than expected this machine is now.
  const slowness = (spent + TOLD_SHARE * all) / (known + TOLD_SHARE * all)
  const byOthers = expected(phase) * slowness
  const weight = Math.min(1, share / OWN_SHARE)
  const whole = share === 0 ? byOthers : weight * (took(phase) / share) + (1 - weight) * byOthers
  const ofPhase = share === 0 ? Math.max(whole - took(phase), LATE_SHARE * took(phase)) : whole * (1 - share)
  return ofPhase + slowness * sumOf(after, expected)
}

function expectedSeconds(phase: BuildPhase, work: Work, last: Pace | undefined): number {
  const known = last && last.work.properties + last.work.packages >= PACE_BYTES_MIN
  const before = known ? last.phases.find((one) => one.phase === phase)?.seconds : undefined
  const cost = costOf(phase, work)
  return before === undefined || last === undefined ? cost : (before * cost) / costOf(phase, last.work)
}

function costOf(phase: BuildPhase, work: Work): number {
  const { seconds, perGigabyte, of } = COSTS[phase]
  return seconds + (perGigabyte * sumOf(of, (kind) => work[kind])) / 1e9
}

function sumOf<T>(all: readonly T[], amountOf: (each: T) => number): number {
  return all.reduce((sum, each) => sum + amountOf(each), 0)
}
