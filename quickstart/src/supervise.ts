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

export type Ended = {
  readonly end: End
  /** Until it is restarted; undefined when it is not. */
  readonly againMs: number | undefined
  /** The end of its log. */
  readonly logged: readonly string[]
}

export type Supervised = {
  readonly name: string
  /** Undefined while it does not run. */
  readonly pid: () => number | undefined
  /** How it ended last; undefined while it runs. */
  readonly ended: () => Ended | undefined
  /** Of its first start. Rejects with the end of its log when it ended before it served. */
  readonly serving: Promise<string>
  /** Its output after another word at its first start. */
  readonly announced: (word: string) => Promise<string>
  /** Stops it gracefully and for good. Resolves when it has ended. */
  readonly stop: () => Promise<void>
  /** Ends it at once and for good. */
  readonly kill: () => Promise<void>
}

export type Tell = {
  /** Also when it is started again. */
  readonly started: (isAgain: boolean) => void
  /** Not on request. */
  readonly ended: (ended: Ended) => void
}

export function superviseProgram(
  group: ProcessGroup,
  program: {
    readonly name: string
    readonly args: readonly string[]
    readonly log: string
    readonly nodeOptions?: string
  },
  { tell, restarts }: { readonly tell: Tell; readonly restarts: boolean },
): Supervised {
  const { name, log } = program
  let running: RunningProgram | undefined
  let timer: NodeJS.Timeout | undefined
  let ended: Ended | undefined
  let isStopping = false
  let isAgain = false
  let starts = 0
  const start = (): RunningProgram => {
    const logStart = sizeOf(log)
    const startedMs = performance.now()
    const child = startProgram(group, { ...program, isApart: true })
    running = child
    ended = undefined
    tell.started(isAgain)
    isAgain = true
    child.ended.then((end) => {
      running = undefined
      starts = performance.now() - startedMs >= LASTED_MS ? 0 : starts
      const isWanted = isStopping || group.isStopping
      const againMs = restarts && !isWanted && maySucceed(end) ? pauseMs(starts++) : undefined
      if (againMs !== undefined) timer = setTimeout(start, againMs)
      ended = { end, againMs, logged: lastLines(log, logStart) }
      if (!isWanted) tell.ended(ended)
    })
    return child
  }
  const { serving, announced } = start()
  const forGood = async (end: (program: RunningProgram) => Promise<unknown>) => {
    isStopping = true
    clearTimeout(timer)
    if (running) await end(running)
  }
  return {
    name,
    pid: () => running?.pid,
    serving,
    announced,
    ended: () => ended,
    stop: () => forGood((program) => program.stop()),
    kill: () =>
      forGood(async ({ pid, ended }) => {
        process.kill(pid, 'SIGKILL')
        await ended
      }),
  }
}

export function maySucceed({ code }: End): boolean {
  return !FOR_A_PERSON.includes(code)
}

/** @param starts how often it was started again without lasting */
export function pauseMs(starts: number): number {
  return Math.min(PAUSE_MS * 2 ** starts, PAUSE_MS_MAX)
}
