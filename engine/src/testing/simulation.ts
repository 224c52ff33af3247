/**
 * The simulated env: a disk that loses unsynced data, a clock that advances on request, and reproducible random
 * numbers, all from one seed (docs/design/testing.md#simulation).
 *
 * Timers are events in a queue ordered by time and creation; `advance` runs them one by one.
 */

import { assert } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import type { Env, Log } from '../env.ts'
import { createSimulatedDisk, type SimulatedDisk } from './disk.ts'

type Timer = { readonly atMs: number; readonly order: number; readonly run: () => void }

type LogLine = { level: keyof Log; message: string; fields: object }

export type Simulation = {
  readonly env: Env
  readonly disk: SimulatedDisk
  /** All log records. */
  readonly lines: LogLine[]
  /** Advances both clocks and runs due events. */
  advance(ms: number): void
  /** Runs due events, including those they schedule, without advancing the clocks. */
  settle(): void
  setWall(ms: number): void
  /** Live processes by id; this one exists from the start. */
  readonly processes: Map<number, string>
}

export type SimulationOptions = {
  seed?: number
  disk?: SimulatedDisk
  wallMs?: number
  processId?: number
  /** Processes of an earlier simulation, when this one continues with its disk. */
  processes?: Map<number, string>
}

/** Events that may run at one time before the run counts as an endless loop. */
const EVENTS_AT_ONCE_MAX = 1_000_000

export function createSimulation(options: SimulationOptions = {}): Simulation {
  const { seed = 1, disk = createSimulatedDisk(), wallMs = Date.UTC(2026, 0, 15, 12), processId = 100 } = options
  const random = createRandom(seed)
  const lines: LogLine[] = []
  const timers: Timer[] = []
  const processes = options.processes ?? new Map<number, string>()
  processes.set(processId, `start-of-${processId}`)
  let monotonic = 0
  let wall = wallMs
  let order = 0

  const note =
    (level: keyof Log) =>
    (fields: object, message: string): void => {
      lines.push({ level, message, fields })
    }
  const runDue = (untilMs: number): void => {
    for (let events = 0; ; events++) {
      assert(events < EVENTS_AT_ONCE_MAX, 'a simulation settles')
      let next: Timer | undefined
      for (const timer of timers) {
        if (timer.atMs > untilMs) continue
        if (!next || timer.atMs < next.atMs || (timer.atMs === next.atMs && timer.order < next.order)) next = timer
      }
      if (!next) return
      timers.splice(timers.indexOf(next), 1)
      if (next.atMs > monotonic) {
        wall += next.atMs - monotonic
        monotonic = next.atMs
      }
      next.run()
    }
  }

  const env: Env = {
    clock: { wallMs: () => wall, monotonicMs: () => monotonic },
    random: { bytes: (count) => Uint8Array.from({ length: count }, () => random.below(256)) },
    disk,
    schedule: {
      after(delayMs, run) {
        const timer = { atMs: monotonic + Math.max(0, delayMs), order: order++, run }
        timers.push(timer)
        return () => {
          const at = timers.indexOf(timer)
          if (at >= 0) timers.splice(at, 1)
        }
      },
    },
    host: { processId, bootId: 'simulated-boot', startOf: (id) => processes.get(id) },
    log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
  }
  return {
    env,
    disk,
    lines,
    advance(ms) {
      const end = monotonic + ms
      runDue(end)
      wall += end - monotonic
      monotonic = end
    },
    settle: () => runDue(monotonic),
    setWall(ms) {
      wall = ms
    },
    processes,
  }
}
