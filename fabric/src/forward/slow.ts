/** The last requests that took longer than a limit, for `/debug/slow`. */

import type { Clock } from '@vacancy/shared'
import type { Ended } from './forwarder.ts'

const SLOW_MAX = 100

export type SlowLog = { readonly slowMs: number; readonly entries: SlowEntry[]; next: number }

type SlowEntry = {
  readonly at: string
  readonly segment: string
  readonly command: string
  readonly kind: 'read' | 'write'
  readonly hop: string | null
  readonly tries: number
  readonly result: string
  readonly milliseconds: number
}

export function createSlowLog(slowMs: number): SlowLog {
  return { slowMs, entries: [], next: 0 }
}

export function noteSlow(log: SlowLog, { request, result, seconds }: Ended, clock: Clock): void {
  if (seconds * 1000 < log.slowMs) return
  log.entries[log.next] = {
    at: new Date(clock.wallMs()).toISOString(),
    segment: request.segment,
    command: request.command,
    kind: request.isWrite ? 'write' : 'read',
    hop: request.lastHop?.id ?? null,
    tries: request.tries,
    result,
    milliseconds: Math.round(seconds * 10_000) / 10,
  }
  log.next = (log.next + 1) % SLOW_MAX
}

/** The newest first. */
export function slowEntries({ entries, next }: SlowLog): readonly SlowEntry[] {
  return [...entries.slice(next), ...entries.slice(0, next)].reverse()
}
