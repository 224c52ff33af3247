/** What the samples of a soak say: is memory flat, did a thread stall, did anything fail? */
import { metric, type Sample } from '../../bench/src/metrics.ts'

export type SoakSample = {
  /** From the start of the load. */
  seconds: number
  rssBytes: number
  /** Longest delay of a serving thread's event loop since the sample before. */
  delaySeconds: number | undefined
  /** The server's own faults since its start. */
  serverErrors: number
}

/** The first part of a soak fills caches, pools and the log: it is not looked at. */
const SETTLING_SHARE = 0.25
/** Memory is flat while the line through its samples rises by no more than this over the time looked at. */
const GROWTH_SHARE_MAX = 0.02
const GROWTH_BYTES_MAX = 10e6
const STALL_SECONDS_MAX = 0.05

const DELAY_METRIC = 'vacancy_event_loop_delay_seconds'

export function soakSample(samples: readonly Sample[], seconds: number): SoakSample {
  return {
    seconds,
    rssBytes: metric(samples, 'process_resident_memory_bytes') ?? Number.NaN,
    delaySeconds: metric(samples, DELAY_METRIC, { thread: 'serving' }),
    serverErrors: metric(samples, 'tcp_errors_total') ?? Number.NaN,
  }
}

export type SoakLoad = { sent: number; answered: number; errors: Record<string, number>; broken: string }
export type Check = { name: string; passed: boolean; text: string }

export const textOf = ({ name, passed, text }: Check) => `${passed ? 'passed' : 'FAILED'}  ${name}: ${text}\n`

export function soakVerdict(samples: readonly SoakSample[], load: SoakLoad): Check[] {
  const memory = samples.map(({ seconds, rssBytes }) => ({ seconds, bytes: rssBytes }))
  return [flatCheck('memory is flat', memory), stallCheck(samples), errorCheck(samples, load)]
}

/** A size at a time from the start of the load. */
export type SizeSample = { readonly seconds: number; readonly bytes: number }

/** Whether a size stays about the same once it has settled. */
export function flatCheck(name: string, samples: readonly SizeSample[]): Check {
  const settled = samples.slice(Math.floor(samples.length * SETTLING_SHARE))
  const mean = settled.reduce((sum, { bytes }) => sum + bytes, 0) / settled.length
  const lasted = (settled.at(-1)?.seconds ?? 0) - (settled[0]?.seconds ?? 0)
  const growth = slopeOf(settled) * lasted
  const bound = Math.max(GROWTH_BYTES_MAX, GROWTH_SHARE_MAX * mean)
  return {
    name,
    passed: settled.length >= 3 && growth <= bound,
    text: `${(growth / 1e6).toFixed(1)} MB more in ${Math.round(lasted / 60)} minutes at ${(mean / 1e6).toFixed(0)} MB, allowed are ${(bound / 1e6).toFixed(1)}`,
  }
}

/** Bytes a second: the line of least squares. */
function slopeOf(samples: readonly SizeSample[]): number {
  const meanX = samples.reduce((sum, { seconds }) => sum + seconds, 0) / samples.length
  const meanY = samples.reduce((sum, { bytes }) => sum + bytes, 0) / samples.length
  let above = 0
  let below = 0
  for (const { seconds, bytes } of samples) {
    above += (seconds - meanX) * (bytes - meanY)
    below += (seconds - meanX) ** 2
  }
  return above / below
}

function stallCheck(samples: readonly SoakSample[]): Check {
  const name = `no serving thread stalls for more than ${STALL_SECONDS_MAX * 1000} ms`
  // The first sample tells of the time before the load, when the node loaded its data.
  const delays = samples.slice(1).map(({ delaySeconds }) => delaySeconds)
  const longest = Math.max(...delays.map((seconds) => seconds ?? Number.NaN))
  if (delays.length === 0 || Number.isNaN(longest)) {
    return { name, passed: false, text: `the node does not serve ${DELAY_METRIC} of its serving threads` }
  }
  return { name, passed: longest <= STALL_SECONDS_MAX, text: `the longest took ${(longest * 1000).toFixed(1)} ms` }
}

function errorCheck(samples: readonly SoakSample[], load: SoakLoad): Check {
  const replies = Object.entries(load.errors).map(([text, count]) => `${count} × ${text}`)
  const unanswered = load.sent - load.answered
  const server = (samples.at(-1)?.serverErrors ?? 0) - (samples[0]?.serverErrors ?? 0)
  const faults = [
    ...(load.broken ? [load.broken] : []),
    ...replies,
    ...(unanswered > 0 ? [`${unanswered} requests without an answer`] : []),
    ...(server === 0 ? [] : [`${server} errors of the server`]),
  ]
  return {
    name: 'no errors',
    passed: faults.length === 0,
    text: faults.join('; ') || `${load.answered.toLocaleString('en')} requests answered`,
  }
}
