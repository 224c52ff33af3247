/**
 * Keeps a program running: whatever ends it, it is started again, later each time that it did not last; unless its exit
 * code says that a person has to look first.
 */

import { EXIT } from '@vacancy/shared'
import { type Crew, type End, lastLines, type RunningProgram, sizeOf, startProgram } from './launch.ts'

/** Pause before the first start after a longer run; twice as long with each that did not last. */
const PAUSE_MS = 5_000
const PAUSE_MS_MAX = 60_000
/** A program that ran for this long has begun anew. */
const LASTED_MS = 60_000
/** Wrong flags, data of somebody else, a taken port, damage: another start ends the same way. */
const FOR_A_PERSON: readonly number[] = [EXIT.usage, EXIT.conflict, EXIT.bind, EXIT.corruption]

export type Supervised = {
  readonly name: string
  /** Undefined while it does not run. */
  readonly pid: () => number | undefined
  /** Of its first start: rejects with what it said when it ended before it served. */
  readonly serving: Promise<string>
  /** What it printed behind another word at its first start. */
  readonly told: (word: string) => Promise<string>
  /** Asks it to stop; resolves when it has ended. It is not started again. */
  readonly stop: () => Promise<void>
}

export type Tell = {
  readonly started: (name: string) => void
  /**
   * @param againMs until it is started again; undefined when it is not
   * @param said the end of its log
   */
  readonly ended: (
    name: string,
    what: { readonly end: End; readonly againMs: number | undefined; readonly said: readonly string[] },
  ) => void
}

export function superviseProgram(
  crew: Crew,
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
    const child = startProgram(crew, { ...program, isApart: true })
    running = child
    tell.started(name)
    child.ended.then((end) => {
      running = undefined
      if (isStopping || crew.isStopping) return
      starts = performance.now() - startedMs >= LASTED_MS ? 0 : starts
      const againMs = restarts && maySucceed(end) ? pauseMs(starts++) : undefined
      if (againMs !== undefined) timer = setTimeout(start, againMs)
      tell.ended(name, { end, againMs, said: lastLines(log, logStart) })
    })
    return child
  }
  const { serving, told } = start()
  return {
    name,
    pid: () => running?.pid,
    serving,
    told,
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
