/**
 * Keeps a program running: it is restarted whenever it ends, with growing delays while it does not last, unless its
 * exit code requires attention.
 */

import { EXIT } from '@vacancy/shared'
import { type End, lastLines, type ProcessGroup, type RunningProgram, sizeOf, startProgram } from './launch.ts'

/** Delay before the first restart after a long run. Doubles each time the program did not last. */
const PAUSE_MS = 5_000
const PAUSE_MS_MAX = 60_000
/** After running this long, the delays start over. */
const LASTED_MS = 60_000
/** Wrong flags, foreign data, a taken port, damage: a restart would fail the same way. */
const FOR_A_PERSON: readonly number[] = [EXIT.usage, EXIT.conflict, EXIT.bind, EXIT.corruption]

export type Supervised = {
  readonly name: string
  /** Undefined while it does not run. */
  readonly pid: () => number | undefined
  /** Of its first start. Rejects with the end of its log when it ended before it served. */
  readonly serving: Promise<string>
  /** Its output after another word at its first start. */
  readonly announced: (word: string) => Promise<string>
  /** Stops it gracefully and for good. Resolves when it has ended. */
  readonly stop: () => Promise<void>
}

export type Tell = {
  readonly started: (name: string) => void
  /**
   * @param againMs until it is restarted; undefined when it is not
   * @param logged the end of its log
   */
  readonly ended: (
    name: string,
    what: { readonly end: End; readonly againMs: number | undefined; readonly logged: readonly string[] },
  ) => void
}

export function superviseProgram(
  group: ProcessGroup,
  program: { readonly name: string; readonly args: readonly string[]; readonly log: string },
  { tell, restarts }: { readonly tell: Tell; readonly restarts: boolean },
): Supervised {
  const { name, log } = program
  let running: RunningProgram | undefined
  let timer: NodeJS.Timeout | undefined
  let isStopping = false
  let starts = 0
  const start = (): RunningProgram => {
    const logStart = sizeOf(log)
    const startedMs = performance.now()
    const child = startProgram(group, { ...program, isApart: true })
    running = child
    tell.started(name)
    child.ended.then((end) => {
      running = undefined
      if (isStopping || group.isStopping) return
      starts = performance.now() - startedMs >= LASTED_MS ? 0 : starts
      const againMs = restarts && maySucceed(end) ? pauseMs(starts++) : undefined
      if (againMs !== undefined) timer = setTimeout(start, againMs)
      tell.ended(name, { end, againMs, logged: lastLines(log, logStart) })
    })
    return child
  }
  const { serving, announced } = start()
  return {
    name,
    pid: () => running?.pid,
    serving,
    announced,
    async stop() {
      isStopping = true
      clearTimeout(timer)
      await running?.stop()
    },
  }
}

export function maySucceed({ code }: End): boolean {
  return !FOR_A_PERSON.includes(code)
}

/** @param starts how often it was started again without lasting */
export function pauseMs(starts: number): number {
  return Math.min(PAUSE_MS * 2 ** starts, PAUSE_MS_MAX)
}
