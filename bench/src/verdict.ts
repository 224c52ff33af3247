/** What a measured value means against its target, its baseline of the same run, and this machine. */

/**
 * `not measurable`: a bare program in the place of ours misses the target on this machine, and ours is near it.
 * `not measured`: there is no value, or no target.
 */
export type Verdict = 'met' | 'missed' | 'not measurable' | 'not measured'

/** '' is a count. */
const UNITS = ['', 'ms', 'µs', 's', 'GB', 'MB', 'B', '/s', 'M/s', 'GB/s', '×', '%'] as const
export type Unit = (typeof UNITS)[number]

/** One figure of a row of the report. */
export type Measure = {
  name: string
  value: number
  unit: Unit
  /** Absent: a figure to read beside the others. */
  target?: Target
  /** What the value is compared with, in the same unit and from the same run. `ratio` where both are recorded rounded. */
  baseline?: { name: string; value: number; ratio?: number }
  verdict?: Verdict
  /** One sentence: why it is not measurable here, or what lies behind the verdict. */
  why?: string
}

export type Target = { atMost: number } | { atLeast: number }

/** A baseline excuses a value that misses the target with it, up to this many times its own. */
const BASELINE_TIMES_MAX = 3

export const meets = (value: number, target: Target): boolean =>
  'atMost' in target ? value <= target.atMost : value >= target.atLeast

/** Fills in the verdict of a measure that stands for itself. */
export function judged(measure: Measure & { target: Target }): Measure {
  return { ...measure, verdict: meets(measure.value, measure.target) ? 'met' : 'missed' }
}

/** A latency, with the same percentile of a bare echo under the same load as its baseline. */
export function judgedLatency(
  measure: Measure & { target: { atMost: number } },
  { echo, isShared }: { echo: number; isShared: boolean },
): Measure {
  const { value, target } = measure
  const withEcho = { ...measure, baseline: { name: 'echo', value: echo } }
  if (value <= target.atMost) return { ...withEcho, verdict: 'met' }
  if (isShared && echo > target.atMost && value <= BASELINE_TIMES_MAX * echo) {
    const why = `on these shared cores the bare echo misses it, too, and this is within ${BASELINE_TIMES_MAX} times the echo`
    return { ...withEcho, verdict: 'not measurable', why }
  }
  return { ...withEcho, verdict: 'missed' }
}

/** Requests a second, where the generator may have taken the cores the node would have needed. */
export function judgedPeak(
  measure: Measure & { target: { atLeast: number } },
  { isShared, generatorCores, cpuMicros, threads }: Peak,
): Measure {
  const { value, target } = measure
  if (value >= target.atLeast) return { ...measure, verdict: 'met' }
  const alone = (threads * 1e6) / cpuMicros
  const cost = `the node took ${cpuMicros.toFixed(1)} µs of processor a request`
  if (!isShared || alone < target.atLeast) return { ...measure, verdict: 'missed', why: cost }
  // Nothing that was measured shows that it would: missed, with what is known.
  const why = `the generator kept ${generatorCores.toFixed(1)} of the shared cores busy; ${cost}, ${Math.round(alone)}/s on ${threads} of its own`
  return { ...measure, verdict: 'missed', why }
}

export type Peak = {
  isShared: boolean
  /** Cores the generator kept busy. */
  generatorCores: number
  /** Processor time of the node, a request. */
  cpuMicros: number
  /** Serving threads. */
  threads: number
}

/** Below this share of a core a server waited for requests: the generator was the limit, not the server. */
const BUSY_CORE_MIN = 0.9

export type ClosedLoop = { perSecond: number; cpuMicros: number }

/**
 * The node's share of what a bare echo does on one thread. Requests a second say it where both were busy; where
 * either waited for the generator the share is that of processor time a request, which the generator cannot change.
 */
export function echoShare(node: ClosedLoop, echo: ClosedLoop): { share: number; by: 'requests' | 'processor' } {
  const wereBusy = [node, echo].every(({ perSecond, cpuMicros }) => (perSecond * cpuMicros) / 1e6 >= BUSY_CORE_MIN)
  if (wereBusy) return { share: node.perSecond / echo.perSecond, by: 'requests' }
  return { share: echo.cpuMicros / node.cpuMicros, by: 'processor' }
}

/** The verdict of a row: as bad as its worst measure. A row without a judged measure has none to give. */
export function worstOf(measures: readonly Measure[]): Verdict {
  const verdicts = measures.map(({ verdict }) => verdict)
  const worst = (['missed', 'not measured', 'not measurable', 'met'] as const).find((each) => verdicts.includes(each))
  return worst ?? 'not measured'
}

/** Thrown by a row that cannot be measured on this machine or from the current build; the message is the reason. */
export class NotMeasured extends Error {
  override name = 'NotMeasured'
}

/** What an error means for a target: the node failed under it, or there is nothing to measure it with. */
export const verdictOf = (error: unknown): Verdict => (error instanceof NotMeasured ? 'not measured' : 'missed')

/** Measures of one part of a row; an error there becomes a measure without a value, and the other parts stay. */
export async function part(name: string, measure: () => Promise<Measure[]>): Promise<Measure[]> {
  try {
    return await measure()
  } catch (error) {
    return [{ name, value: Number.NaN, unit: 's', verdict: verdictOf(error), why: (error as Error).message }]
  }
}
