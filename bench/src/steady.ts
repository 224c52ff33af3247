/**
 * A steady stream of single writes and reads on a shard, sent at their moments whatever comes back: what a booking
 * platform sees while leaders come and go. Everything goes through the native client with its defaults: it finds the
 * leader, follows changes, and repeats writes under their request keys.
 */
import type { VacancyClient } from '@vacancy/client'
import type { Request } from './pauses.ts'

export type SteadyOptions = {
  writeEveryMs: number
  readEveryMs: number
  write(client: VacancyClient, place: number): Promise<unknown>
  read(client: VacancyClient): Promise<unknown>
}

export type Steady = {
  readonly writes: Request[]
  readonly reads: Request[]
  /** Longest time that a request was sent after its moment, since it was set to 0. */
  lateMsMax: number
  stop(): void
}

/** Timers have a resolution of a millisecond. */
const TURN_MS = 1

export function startSteady(client: VacancyClient, options: SteadyOptions): Steady {
  const begun = performance.now()
  const timer = setInterval(() => turn(), TURN_MS)
  const steady: Steady = { writes: [], reads: [], lateMsMax: 0, stop: () => clearInterval(timer) }
  let writesSent = 0
  let readsSent = 0
  const turn = () => {
    const now = performance.now()
    for (; begun + writesSent * options.writeEveryMs <= now; writesSent++) {
      const intendedMs = begun + writesSent * options.writeEveryMs
      steady.lateMsMax = Math.max(steady.lateMsMax, now - intendedMs)
      follow(steady.writes, intendedMs, options.write(client, writesSent))
    }
    for (; begun + readsSent * options.readEveryMs <= now; readsSent++) {
      follow(steady.reads, begun + readsSent * options.readEveryMs, options.read(client))
    }
  }
  return steady
}

function follow(requests: Request[], intendedMs: number, answer: Promise<unknown>): void {
  const request: Request = { intendedMs, settledMs: Number.POSITIVE_INFINITY, error: '' }
  requests.push(request)
  answer.then(
    () => {
      request.settledMs = performance.now()
    },
    (error: unknown) => {
      request.settledMs = performance.now()
      const { code, message } = error as Error & { code?: string }
      request.error = code ?? message
    },
  )
}

/** Forgets what was settled before a moment; what is under way stays. */
export function forgetBefore(requests: Request[], ms: number): void {
  const kept = requests.findIndex(({ settledMs }) => settledMs >= ms)
  requests.splice(0, kept < 0 ? requests.length : kept)
}

/**
 * Whether writes flow: all that were intended up to `calmMs` ago are settled, and one of those since then was answered
 * that was intended after `sinceMs`.
 */
export function flows(writes: readonly Request[], calmMs: number, sinceMs = Number.NEGATIVE_INFINITY): boolean {
  const calmFromMs = performance.now() - calmMs
  const isBehind = ({ intendedMs, settledMs }: Request) =>
    intendedMs <= calmFromMs && settledMs === Number.POSITIVE_INFINITY
  const isFresh = ({ intendedMs, settledMs, error }: Request) =>
    intendedMs > Math.max(calmFromMs, sinceMs) && error === '' && settledMs < Number.POSITIVE_INFINITY
  return writes.some(isFresh) && !writes.some(isBehind)
}
